"""The variants of OCT side by side, and what each part of the flow variant is worth.

    python -m benchmarks run oct_variants --only what=compare                # iris, wine, breast_cancer at depth 2
    python -m benchmarks run oct_variants --data DIR --only what=quarters    # depth 3 in 30 s, against CART
    python -m benchmarks run oct_variants --data DIR --only what=ablation    # parts taken out, or put in

A quarter of each data set in DIR (stratified, seed 0) is used. Every solve of the ablation has the same start; alpha = 0
and N_min = 1 (published optima are for these). Limits are 600, 30 and 60 seconds unless --limit gives another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyomo.environ as pyo

import octsvm
from octsvm.formulations import blocks, leaf_trees
from octsvm.formulations.base import ModelInfo, structure
from octsvm.formulations.oct import groups_of

from .. import tables
from ..cases import SETS, quarter
from ..study import Line, Study, Watch, every, kept

FREE: dict[str, Any] = {"alpha": 0.0, "n_min": 1}
OPEN = ("iris", "wine", "breast_cancer")  # of scikit-learn


def sample(name: str, data: Any) -> tuple[Any, Any]:
    """``X`` and ``y`` of a set of scikit-learn, or of the quarter of a set in ``data``."""
    from sklearn import datasets

    if name in OPEN:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return X, y
    X, y, _, _ = quarter(data, name)
    return X.to_numpy(), y.to_numpy()


def record(result: octsvm.Result, watch: Watch) -> Line:
    """What is kept of a run."""
    differing = {"differing_rows": len(result.differing_rows)}
    return kept(result, "status", "objective", "bound", "nodes") | watch.seconds() | differing


# -- variants -------------------------------------------------------------------------------------------------------


def compared(cell: Line, asked: Any) -> Line:
    """A variant, by ``octsvm.fit`` as everybody calls it."""
    X, y = sample(cell["set"], asked.data)
    watch, limit = Watch(), asked.limit or 600
    result = octsvm.fit("oct", X, y, depth=cell["depth"], variant=cell["model"], time_limit=limit, **FREE)
    return record(result, watch)


def against_cart(cell: Line, asked: Any) -> Line:
    """The training objective beside that of CART with the same depth and least leaf size."""
    from sklearn.tree import DecisionTreeClassifier

    X, y = sample(cell["set"], asked.data)
    depth, alpha = cell["depth"], cell["alpha"]
    cart = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=1, random_state=0).fit(X, y)
    known = float((cart.predict(X) != y).sum()) + alpha * int((cart.tree_.children_left >= 0).sum())
    watch, limit = Watch(), asked.limit or 30
    params = {"depth": depth, "alpha": alpha, "n_min": 1, "variant": cell["model"]}
    return {"cart": known, **record(octsvm.fit("oct", X, y, time_limit=limit, **params), watch)}


# -- ablation -------------------------------------------------------------------------------------------------------


def described(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """The model, whose parts are its own."""
    m.info = ModelInfo("oct", m.info.params, m.info.data, structure=structure(m))
    return m


def without_bounds(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """The flow alone."""
    m.del_component("subtree_bounds")
    m.cost.set_value(sum(m.leaf_label.L.values()) + m.info.params.alpha * sum(m.split.d.values()))
    return described(m)


def sides_only(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """The rows of the root's two sides, and no bound on the objective's variable."""
    m.subtree_bounds.total.setlb(None)
    return described(m)


def total_only(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """The bound on the objective's variable, and no rows of the root's two sides."""
    m.subtree_bounds.left.deactivate()
    m.subtree_bounds.right.deactivate()
    return described(m)


def whole_errors(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """Errors of a leaf are integers, which tells an engine that the objective is."""
    without_bounds(m)
    for var in m.leaf_label.L.values():
        var.domain = pyo.NonNegativeIntegers
    return described(m)


def class_borders(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """On the last level, no cut between two values that belong to one class only, and that the same.

    With N_min = 1 an optimum is left: the rows of such a run are wrong left of the cut or right of it by class alone,
    so the errors are linear in how many of them lie left, and one end of the run is as good. But not every tree is.
    """
    without_bounds(m)
    groups = groups_of(m.info.data)
    m.dominated = pyo.ConstraintList()
    last = m.topology.tree.levels[m.topology.tree.depth - 1]
    for j, count in enumerate(groups.n_values.tolist()):
        held = np.zeros((count, groups.weight.shape[1]))
        np.add.at(held, groups.position[:, j], groups.weight)
        pure = np.where((held > 0).sum(axis=1) == 1, held.argmax(axis=1), -1)
        for v in range(1, count):  # cut v is taken where u_v = 1 and u_(v + 1) = 0
            if pure[v - 1] >= 0 and pure[v - 1] == pure[v]:
                for t in last:
                    this = m.split.a[t, j] if v == 1 else m.split.u[t, j, v]
                    above = m.split.u[t, j, v + 1] if v + 1 < count else 0.0
                    m.dominated.add(this == above)
    return m


def rows_apart(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """Equal rows are not merged."""
    info, merged = m.info, groups_of(m.info.data)
    data, params = info.data, info.params
    weight = np.zeros((data.n, data.K))
    weight[np.arange(data.n), data.y] = data.weights
    position = merged.position[merged.of_row]
    fresh = pyo.ConcreteModel()
    topology = blocks.add_topology(fresh, params.depth)
    split = blocks.add_cut_splits(fresh, topology, merged.n_values)
    assignment = blocks.add_group_assignment(fresh, topology, np.arange(data.n), params.leaf_size(data.n))
    blocks.add_flow_routing(fresh, topology, split, assignment, position, merged.n_values)
    blocks.add_group_leaf_labels(fresh, topology, assignment, weight)
    leaf_trees.add_objective(fresh, data, params, sum(split.d.values()))
    return fresh


PARTS: dict[str, Callable[[pyo.ConcreteModel], pyo.ConcreteModel] | None] = {
    "flow": None,
    "flow, bound of the whole tree only": total_only,
    "flow, bounds of the sides only": sides_only,
    "flow without bounds": without_bounds,
    "flow without bounds, rows apart": rows_apart,
    "flow without bounds, whole errors": whole_errors,
    "flow without bounds, cuts at class borders": class_borders,
}


@lru_cache(maxsize=1)
def start_of(name: str, depth: int, data: Any) -> Any:
    """The tree of the default strategy after ten seconds, from which all models of the ablation start."""
    return octsvm.fit("oct", *sample(name, data), depth=depth, time_limit=10, **FREE).tree


def ablated(cell: Line, asked: Any) -> Line:
    """A model with one thing changed."""
    name, depth, part = cell["set"], cell["depth"], cell["model"]
    start, watch = start_of(name, depth, asked.data), Watch()
    variant = part if part in ("rank", "bd") else "flow"
    m = octsvm.build("oct", *sample(name, asked.data), depth=depth, variant=variant, **FREE)
    change = PARTS.get(part)
    if change is not None:
        m = change(m)
    known = start if hasattr(m, "info") else None
    return record(octsvm.solve(m, start=known, time_limit=asked.limit or 60, on_mismatch="ignore"), watch)


SHOWN = ["set", "depth", "alpha", "model", "cart", "status", "objective", "bound", "nodes", "seconds", "cpu"]
MEASURES = {"compare": compared, "quarters": against_cart, "ablation": ablated}


def cells(asked: Any) -> Iterator[Line]:
    variants = [(s, "flow") for s in OPEN] + [(s, v) for s in OPEN[:2] for v in ("bd", "rank")]
    for name, variant in variants:
        yield {"what": "compare", "set": name, "depth": 2, "alpha": 0.0, "model": variant}
    yield from every(what=["quarters"], set=SETS, depth=[3], alpha=(0.0, 1.0), model=("flow", "rank"))
    sets = ("iris", "wine", "monks", "breastcancer", "heart")
    yield from every(what=["ablation"], set=sets, depth=[2], alpha=[0.0], model=(*PARTS, "rank", "bd"))


def measure(cell: Line, asked: Any) -> Line:
    return MEASURES[cell["what"]](cell, asked)


def report(lines: list[Line]) -> str:
    """A table for each of the three."""
    out = []
    for what in MEASURES:
        mine = [line for line in lines if line["what"] == what]
        head = [k for k in SHOWN if mine and k in mine[0]]
        rows = [[f"{c[k]:.4g}" if isinstance(c[k], float) else c[k] for k in head] for c in mine]
        out += [tables.table(head, rows)] if mine else []
    return "\n\n".join(out)


STUDY = Study(
    key=("what", "set", "depth", "alpha", "model"),
    options={"data": None, "limit": None},
    quick={"limit": 1.0},
)
