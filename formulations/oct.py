"""OCT: optimal classification trees with axis-parallel splits (Bertsimas & Dunn 2017), K classes.

An axis-parallel tree depends on the order of each feature's values only. The default variant "rank" therefore
replaces every value by its rank among the training values, scaled to [0, 1]: neighbouring values are never closer
than 1/(number of values - 1), far above any solver's tolerance, whatever the units. Thresholds are mapped back to
the middle of the gap that they separate. "bd" builds the rows on scaled values as printed and refuses gaps under
1e-5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyomo.environ as pyo
from pydantic import Field

from . import _leafy
from .base import (
    BoolArray,
    Data,
    Evaluation,
    FloatArray,
    Formulation,
    IntArray,
    ModelInfo,
    structure,
    values,
)
from .blocks import (
    add_axis_routing,
    add_axis_splits,
    add_counted_leaf_labels,
    add_leaf_assignment,
    add_leaf_labels,
    add_leafwise_axis_routing,
    add_topology,
)
from .blocks.rows import uncollected
from .errors import InvalidData, TreeNotAdmitted
from .params import MAX_DEPTH, _LeafSize
from .trees import AxisTree

SMALLEST_GAP = 1e-5  # of "bd": ten times the solvers' feasibility tolerance


class OCTParams(_LeafSize):
    """Parameters of OCT.

    Attributes
    ----------
    depth : int
        D, levels of splits.
    alpha : float
        α, the cost of a split in errors.
    n_min : int or float
        N_min, rows in every leaf in use: a count, or a share of n (rounded up).
    complexity : "splits" or "features"
        The same for axis-parallel splits.
    error_scale : "count" or "baseline"
        Errors as counted (Blanco, Japón, Puerto) or divided by those of the majority class (Bertsimas & Dunn).
    variant : None, "rank" or "bd"
        None is "rank".
    """

    depth: int = Field(2, ge=0, le=MAX_DEPTH)
    alpha: float = Field(1.0, ge=0)
    complexity: Literal["splits", "features"] = "splits"
    error_scale: Literal["count", "baseline"] = "count"
    variant: Literal["rank", "bd"] | None = None


@dataclass(frozen=True)
class _Levels:
    """Distinct values of each feature as the model sees them.

    ``original[j]`` and ``scaled[j]`` are ascending; ``position (n, p)`` is each row's index into them; ``step (p,)``
    is ε_j, 0 for a constant column.
    """

    original: list[FloatArray]
    scaled: list[FloatArray]
    position: IntArray
    step: FloatArray

    @property
    def X(self) -> FloatArray:
        return np.column_stack([self.scaled[j][self.position[:, j]] for j in range(len(self.scaled))])

    @property
    def constant(self) -> BoolArray:
        return np.asarray(self.step == 0)


def _levels(data: Data, variant: str) -> _Levels:
    original, scaled, position = [], [], []
    step = np.zeros(data.p)
    for j in range(data.p):
        value, index = np.unique(data.X_original[:, j], return_inverse=True)
        original.append(value)
        position.append(index)
        if variant == "rank":
            scaled.append(np.arange(len(value)) / max(1, len(value) - 1))
            step[j] = 1.0 / (len(value) - 1) if len(value) > 1 else 0.0
        else:
            low, span = data.scaling.low[j], data.scaling.span[j]
            scaled.append((value - low) / span if span > 0 else np.zeros(len(value)))
            if len(value) > 1:
                step[j] = np.diff(scaled[j]).min()
                if step[j] < SMALLEST_GAP:
                    raise InvalidData(
                        f"Column {data.feature_names[j]!r} has two values {step[j]:.2g} apart after scaling, and "
                        f"variant='bd' needs gaps of {SMALLEST_GAP:g} to stay clear of solver tolerances. Use the "
                        "default variant, which works on ranks and has no such limit."
                    )
                if scaled[j][0] < 0 or scaled[j][-1] > 1:
                    raise InvalidData(
                        f"Column {data.feature_names[j]!r} lies outside [0, 1], which variant='bd' needs. "
                        "Leave scale=True."
                    )
    return _Levels(original, scaled, np.column_stack(position).astype(np.int64), step)


@uncollected
def build(data: Data, params: OCTParams, upper_bound: float = np.inf) -> pyo.ConcreteModel:
    """Build OCT on ``data``.

    Source: Bertsimas & Dunn (2017), (24); the paper's Section 2 for the objective. ``upper_bound`` is not needed.

    Raises
    ------
    InvalidData, InvalidParameter
    """
    variant = params.variant or "rank"
    n_min = params.leaf_size(data.n)
    levels = _levels(data, variant)
    m = pyo.ConcreteModel(name=f"OCT ({variant})")
    topology = add_topology(m, params.depth)
    splits = add_axis_splits(m, topology, data.p, levels.constant)
    assignment = add_leaf_assignment(m, topology, data.n, n_min)
    route = add_leafwise_axis_routing if variant == "bd" else add_axis_routing
    route(m, topology, splits, assignment, levels.X, levels.step)
    label = add_counted_leaf_labels if variant == "bd" else add_leaf_labels
    label(m, topology, assignment, data.y, data.K, data.weights)
    _leafy.add_objective(m, data, params, sum(splits.d[t] for t in topology.tree.branch))
    m.info = ModelInfo("oct", params, data, structure=structure(m))
    return m


def _cut(levels: _Levels, j: int, b: float) -> int:
    """Number of values of feature j on the left of threshold b: those below it by at least ε_j, up to rounding."""
    return int(np.searchsorted(levels.scaled[j], b - levels.step[j] / 2))


def extract(model: pyo.ConcreteModel) -> AxisTree:
    """Read the tree from the values of the model's variables.

    Thresholds lie in the middle of the gap between the training rows that they separate. A leaf without rows predicts
    the majority of its nearest ancestor with rows.
    """
    info: ModelInfo = model.info
    data, depth = info.data, info.params.depth  # type: ignore[attr-defined]
    levels = _levels(data, info.params.variant or "rank")  # type: ignore[attr-defined]
    B = 2**depth - 1
    feature, threshold = np.full(B, -1, dtype=np.int64), np.zeros(B)
    path = np.ones((data.n, depth + 1), dtype=np.int64)
    d = values(model.split.d, list(range(1, B + 1)))
    for level in range(depth):
        path[:, level + 1] = 2 * path[:, level] + 1
        for t in range(2**level, 2 ** (level + 1)):
            if d[t - 1] < 0.5:
                continue
            j = int(np.argmax(values(model.split.a, [(t, j) for j in range(data.p)])))
            cut = _cut(levels, j, float(values(model.split.b, [t])[0]))
            here = path[:, level] == t
            left = here & (levels.position[:, j] < cut)
            path[left, level + 1] = 2 * t
            feature[t - 1] = j
            threshold[t - 1] = _middle(levels.original[j], levels.position[:, j], cut, left, here & ~left)
    label = _leafy.leaf_labels(depth, path, data, _leafy.model_classes(model, data.K))
    return AxisTree(depth, data.classes, data.feature_names, data.scaling, feature, threshold, label)


def _middle(value: FloatArray, position: IntArray, cut: int, left: BoolArray, right: BoolArray) -> float:
    low = position[left].max() if left.any() else cut - 1
    high = position[right].min() if right.any() else cut
    if low < 0:
        return float(value[0])
    if high >= len(value):
        return float(np.nextafter(value[-1], np.inf))
    middle = value[low] + (value[high] - value[low]) / 2
    return float(middle if middle > value[low] else value[high])


def embed(model: pyo.ConcreteModel, tree: AxisTree, relabelled: BoolArray | None = None) -> AxisTree:
    """Set every variable of ``model`` to the values that ``tree`` has there, and return the tree.

    Raises
    ------
    TreeNotAdmitted
        With the reason, if no point of the model belongs to the tree.
    """
    info: ModelInfo = model.info
    data, params = info.data, info.params
    assert isinstance(params, OCTParams)
    if not isinstance(tree, AxisTree):
        raise TreeNotAdmitted(f"OCT takes trees with axis-parallel splits, not {type(tree).__name__}.")
    tree = normalise(tree, data, params)
    levels = _levels(data, params.variant or "rank")
    path = tree._route(data.X_original)
    depth = params.depth
    for level in range(depth):
        for t in range(2**level, 2 ** (level + 1)):
            j = int(tree.feature[t - 1])
            b = 0.0
            if j >= 0:
                if levels.constant[j]:
                    raise TreeNotAdmitted(
                        f"Node {t} splits on {data.feature_names[j]!r}, which is constant in the model's data."
                    )
                here = path[:, level] == t
                left = here & (path[:, level + 1] == 2 * t)
                if left.any():
                    b = float(levels.scaled[j][levels.position[left, j].max()] + levels.step[j])
                if b > 1 + 1e-9:
                    raise TreeNotAdmitted(
                        f"The threshold of node {t} lies above every value of {data.feature_names[j]!r}: it sends all "
                        "rows left, which the model (b_t <= 1) does not have. Put the left subtree in the node's place."
                    )
            model.split.d[t].set_value(float(j >= 0))
            model.split.b[t].set_value(min(b, 1.0))
            for k in range(data.p):
                model.split.a[t, k].set_value(float(k == j))
    _leafy.embed_leaves(model, info, path, tree.label, params.leaf_size(data.n))
    if hasattr(model.routing, "q"):
        _embed_positions(model, tree, levels)
    return tree


def _embed_positions(model: pyo.ConcreteModel, tree: AxisTree, levels: _Levels) -> None:
    usable = levels.step[levels.step > 0]
    low = float(usable.min()) if usable.size else 1.0
    X = levels.X
    for t in range(1, tree.n_branch + 1):
        j = int(tree.feature[t - 1])
        model.routing.g[t].set_value(low if j < 0 else float(levels.step[j]))
        for i in range(len(X)):
            model.routing.q[i, t].set_value(0.0 if j < 0 else float(X[i, j]))


def normalise(tree: AxisTree, data: Data, params: OCTParams) -> AxisTree:
    """The same tree in the model's depth and with the data's classes."""
    _leafy.require_same_features(tree, data)
    arrays = _leafy.to_depth(tree, params.depth)
    known = _leafy.label_map(tree, data)[arrays["label"]]
    if (known < 0).any():
        path = AxisTree(
            params.depth,
            tree.classes,
            data.feature_names,
            data.scaling,
            arrays["feature"],
            arrays["threshold"],
            arrays["label"],
        )._route(data.X_original)
        used = _leafy.leaf_sizes(params.depth, path) > 0
        if (used & (known < 0)).any():
            raise TreeNotAdmitted("A leaf of the tree predicts a class that the model's data does not have.")
        known = np.where(known < 0, 0, known)
    return AxisTree(
        params.depth,
        data.classes,
        data.feature_names,
        data.scaling,
        arrays["feature"],
        arrays["threshold"],
        known,
    )


def require(tree: AxisTree, data: Data, params: OCTParams) -> None:
    """Refuse a tree with a leaf in use that is smaller than N_min.

    Raises
    ------
    TreeNotAdmitted
    """
    _leafy.require_leaf_sizes(tree.depth, tree._route(data.X_original), params.leaf_size(data.n))


def evaluate(
    tree: AxisTree,
    X: FloatArray,
    y: IntArray,
    params: OCTParams,
    weights: FloatArray,
    relabelled: BoolArray | None = None,
) -> Evaluation:
    """Objective terms of ``tree`` on rows ``X (n, p)`` in original units, in plain numpy.

    ``y (n,)`` holds indices into the tree's classes.
    """
    path = tree._route(X)
    wrong = (tree.class_index_at(path, X) != y).astype(float)
    return _leafy.evaluate_leaves(
        wrong, y, len(tree.classes), weights, params.error_scale, params.alpha, float(tree.splits.sum())
    )


def constant_tree(data: Data, params: OCTParams) -> AxisTree:
    """The tree that predicts the majority class everywhere."""
    B = 2**params.depth - 1
    return AxisTree(
        params.depth,
        data.classes,
        data.feature_names,
        data.scaling,
        np.full(B, -1, dtype=np.int64),
        np.zeros(B),
        np.full(B + 1, _leafy.constant_label(data), dtype=np.int64),
    )


FORMULATION = Formulation(
    name="oct",
    title="optimal classification tree, axis-parallel splits",
    Params=OCTParams,
    Tree=AxisTree,
    binary_only=False,
    uses_scaling=False,
    build=build,
    embed=embed,
    extract=extract,
    evaluate=evaluate,
    constant_tree=constant_tree,
    normalise=normalise,
    assigned_path=_leafy.leaf_path,
    improve=_leafy.with_majority_labels,
    require=require,
    variants=("rank", "bd"),
)
