"""Rewrites between what a model holds and what a solver takes; each is applied for a solve and undone after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar, Literal

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from ..backends.matrix_program import Array, LinearProgram, Row
from ..errors import InvalidParameter, UnsupportedProblem
from ..formulations.base import imported
from ..formulations.checks import nearest
from ..problem_class import ProblemClass


class Bridge(ABC):
    """One rewrite, for one solve: a new object each time. A subclass writes ``gives`` and ``rewrite``.

    Attributes
    ----------
    name : str
        Under which it is registered.
    exactness : str
        "exact" (the same solutions), "converges" (a relaxation that ``cuts`` refine) or "relaxes" (it stays one).
    takes : str
        The models that it takes, in words.
    classes : tuple of str
        The classes of problem that it may give.
    """

    name: ClassVar[str]
    exactness: ClassVar[Literal["exact", "converges", "relaxes"]]
    takes: ClassVar[str]
    classes: ClassVar[tuple[str, ...]]

    def __init__(self) -> None:
        self._changes = ExitStack()

    @classmethod
    @abstractmethod
    def gives(cls, problem: ProblemClass) -> str | None:
        """The class that it turns ``problem`` into, None where it does not apply."""

    @abstractmethod
    def rewrite(self, model: pyo.ConcreteModel, problem: ProblemClass) -> None:
        """Change ``model`` by ``add_block``, ``deactivate`` and ``replace``, which ``undo`` takes back."""

    def apply(self, model: pyo.ConcreteModel, problem: ProblemClass) -> None:
        """Rewrite ``model``; an error on the way leaves it as it was."""
        try:
            self.rewrite(model, problem)
        except BaseException:
            self.undo()
            raise

    def undo(self) -> None:
        """Restore the model exactly; may be called twice."""
        self._changes.close()

    @contextmanager
    def applied(self, model: pyo.ConcreteModel, problem: ProblemClass) -> Iterator[None]:
        """Apply it for the time of a ``with``."""
        try:
            self.apply(model, problem)
            yield
        finally:
            self.undo()

    def add_block(self, model: pyo.ConcreteModel, name: str) -> Any:
        """A new block of ``model``, until ``undo``."""
        block = pyo.Block(concrete=True)
        model.add_component(name, block)
        self._changes.callback(model.del_component, name)
        return block

    def deactivate(self, row: Any) -> None:
        """Take an active row out of the model, until ``undo``."""
        row.deactivate()
        self._changes.callback(row.activate)

    def replace(self, expression: Any, new: Any) -> None:
        """Let a named expression be ``new``, until ``undo``."""
        self._changes.callback(expression.set_value, expression.expr)
        expression.set_value(new)

    def own_variables(self) -> list[Any]:
        """Variables that it adds to the model, whose values ``repair`` sets."""
        return []

    def attach(self, program: LinearProgram) -> None:  # noqa: B027 - a bridge without columns has none to look up
        """Look up the columns of the rewritten model, before any of the methods below."""

    def native(self, program: LinearProgram) -> tuple[LinearProgram, NDArray[np.int64]]:
        """The program as it stands without this bridge, and which columns it keeps."""
        return program, np.arange(program.n)

    def cuts(self, x: Array, violated: bool = True) -> list[Row]:
        """Rows that every feasible point obeys: those that ``x (n,)`` violates, or all that are known of it."""
        return []

    def repair(self, x: Array) -> Array | None:
        """A point of the original model made from the point ``x (n,)`` of the rewritten one, None where there is none."""
        return x


LINEAR = ("LP", "MILP")
"""Classes that are solved in rounds: what a bridge refines by its cuts."""

_kinds: dict[str, type[Bridge] | str] = {}


def register(name: str, kind: type[Bridge] | str) -> None:
    """Add a bridge behind those that are there: its class, or "module:class", which is imported when it is needed."""
    _kinds[name] = kind


register("outer_approximation", "octsvm.bridges.outer_approximation:OuterApproximation")
register("perspective", "octsvm.bridges.perspective:Perspective")
register("norm", "octsvm.bridges.perspective:Norm")


def names() -> list[str]:
    """Names of the bridges, in the order in which they are tried."""
    return list(_kinds)


def bridge(name: str) -> Bridge:
    """A new bridge called ``name``.

    Raises
    ------
    InvalidParameter
        With the nearest name.
    """
    if name not in _kinds:
        hint = nearest(str(name).lower().replace("-", "_"), _kinds, 0.4)
        raise InvalidParameter(f"{name!r} is not a bridge.{hint} There are: {', '.join(_kinds)}.")
    kind = _kinds[name]
    if isinstance(kind, str):
        kind = _kinds[name] = imported(kind)
    return kind()


def leading_to(problem: ProblemClass, classes: tuple[str, ...], name: str | None = None) -> Bridge | None:
    """The first bridge from ``problem`` into one of ``classes``, None where there is none; with ``name`` only that one.

    Raises
    ------
    InvalidParameter
        Where no bridge is called ``name``.
    UnsupportedProblem
        Where the bridge called ``name`` does not lead there.
    """
    for candidate in map(bridge, names() if name is None else [name]):
        if candidate.gives(problem) in classes:
            return candidate
    if name is None:
        return None
    raise UnsupportedProblem(
        f"The bridge {name} does not lead from this model to {', '.join(classes) or 'any class'}: it takes "
        f"{candidate.takes} and gives {' or '.join(candidate.classes)}, and this is a {problem}."
    )
