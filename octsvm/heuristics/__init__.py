"""Start heuristics: good trees fast, each a point of its model, before an engine is called.

One module a family; :func:`find` calls the one of a formulation and returns the best tree it came up with.
"""

from __future__ import annotations

from collections.abc import Callable

from ..formulations.base import Data, Formulation
from ..formulations.params import Params
from ..formulations.registry import formulation
from ..formulations.trees import Tree
from .budget import Budget


def load(name: str, data: Data | None = None, params: Params | None = None) -> None:
    """Import what the heuristics of formulation ``name`` use (on a table, if given): seconds, the first time in a process.

    Their own seconds are a fraction of that on small tables, and would be over before the search began.
    """
    formulation(name).load_libraries(data, params)


def find(
    form: Formulation,
    data: Data,
    params: Params,
    seconds: float,
    steps: int | None = None,
    seed: int = 0,
    budget: Budget | None = None,
    watch: Callable[[float], bool] | None = None,
) -> tuple[Tree | None, bool]:
    """The best tree of the formulation's heuristic that the model admits and that beats the constant tree.

    The second value says whether Ctrl-C ended the search; what was found until then is returned. ``budget`` replaces
    ``seconds`` and ``steps``; ``watch`` is called with the cost of every better tree and returns True to stop.

    Deterministic for a seed where ``steps`` rather than ``seconds`` ends it.
    """
    from ..errors import TreeNotAdmitted

    def cost(tree: Tree) -> float:
        return form.evaluate_on(tree, data, params).objective

    best, lowest = None, cost(form.constant_tree(data, params)) * (1 - 1e-9) - 1e-12
    spending = Budget(seconds, steps) if budget is None else budget
    try:
        for tree in form.candidates(data, params, spending, seed):
            try:
                tree = form.normalise(tree, data, params)
                found = cost(tree)
                if found < lowest:
                    form.require(tree, data, params)
                    best, lowest = tree, found
                    if watch is not None and watch(lowest):
                        spending.stop()
                        break
            except TreeNotAdmitted:
                continue
    except KeyboardInterrupt:
        spending.stop()
        return best, True
    return best, False
