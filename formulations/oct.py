"""OCT: optimal classification trees with axis-parallel splits (Bertsimas & Dunn 2017), K classes.

An axis-parallel tree depends on the order of each feature's values only. No variant but "bd" looks at more.

"flow", the default: a node chooses among the cuts between neighbouring values, and rows flow from the root to a
leaf (:mod:`.blocks.flow`). It holds the trees of the other variants, at the same costs. A tree is given by the feature
and the set of rows on the left of each node. With d, a, u integer, u_tj1 = a_tj >= u_tj2 >= ... and Σ_j a_tj = d_t <= 1 leave
one feature j and one cut v, or none, and q_gt is 1 exactly where group g lies below that cut. Then f_gt is 1 for
the one leaf that the cuts lead to, by induction from the root: all flow of a group passes the root, which sends it to
one side, and below it the rows goes_left and goes_right close one side of each node. Leaf sizes, classes and errors
are those of the other variants, summed up over equal rows. Conversely every such tree has these values
(:func:`embed`). What is left out is a split at or below the least value of its feature: it sends all rows right and is
paid for; :func:`normalise` puts the right subtree in its place. Splits above the largest value are in no variant. Two
more rows give bounds on what the subtrees of the root cost; they hold at every tree (:func:`~.blocks.flow.add_subtree_bounds`).

"rank" has big-M rows, on each value's rank among the training values, scaled to [0, 1]: neighbouring values are never
closer than 1/(number of values - 1), far above any solver's tolerance, whatever the units. "bd" builds the rows on
scaled values as printed and refuses gaps under 1e-5. Thresholds are mapped back to the middle of the gap that they
separate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyomo.environ as pyo

from . import blocks, leaf_trees
from .base import BoolArray, Data, FloatArray, IntArray, ModelInfo, Tried, origin, structure, values
from .blocks.assignment import leaf_assignment_size
from .blocks.flow import (
    cut_splits_size,
    flow_routing_size,
    group_assignment_size,
    group_leaf_labels_size,
    set_cut_splits,
    set_flow_routing,
    subtree_bounds_size,
)
from .blocks.leaf_label import counted_leaf_labels_size, leaf_labels_size
from .blocks.routing import axis_routing_size, leafwise_axis_routing_size, set_axis_routing
from .blocks.rows import model_builder
from .blocks.sizes import BlockSize, Shape
from .blocks.split import axis_splits_size, set_axis_splits
from .blocks.topology import Topology
from .bounds import subtrees
from .errors import InvalidData, TreeNotAdmitted
from .heap import children, rightmost
from .params import LeafLabelledParams
from .registry import register
from .trees import AxisTree, tree_on

NAME = "oct"
SMALLEST_GAP = 1e-5  # of "bd": ten times the solvers' feasibility tolerance
DEFAULT = "flow"
SEARCHED_AT_ONCE = 5_000  # values in a table whose best tree of two levels is found within half a second
# Cumulative sums that the bounds of "flow" may take, about two seconds; and where a clock ends them.
WORK, MORE_WORK = 50_000_000, 800_000_000
# Rows of the largest table proved optimal, by norm and depth: :mod:`octsvm.diagnostics.model_size` says how measured.
PROVED_ROWS: dict[str, dict[int, int]] = {"": {1: 2560, 2: 2560, 3: 160}}


class OCTParams(LeafLabelledParams):
    """Parameters of OCT: those of :class:`~octsvm.formulations.params.LeafLabelledParams`, and these.

    Attributes
    ----------
    variant : None, "flow", "rank" or "bd"
        None is "flow".
    """

    variant: Literal["flow", "rank", "bd"] | None = None


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


def _variant(params: OCTParams) -> str:
    return params.variant or DEFAULT


def _levels(data: Data, variant: str) -> _Levels:
    original, scaled, position = [], [], []
    step = np.zeros(data.p)
    for j in range(data.p):
        value, index = np.unique(data.X_original[:, j], return_inverse=True)
        original.append(value)
        position.append(index)
        if variant != "bd":
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


@model_builder
def build(
    data: Data,
    params: OCTParams,
    upper_bound: float = np.inf,
    stop: Callable[[], bool] | None = None,
) -> pyo.ConcreteModel:
    """Build OCT on ``data``.

    Source: Bertsimas & Dunn (2017), (24); the paper's Section 2 for the objective. ``upper_bound`` is not needed.
    ``stop`` is asked in between whether the search for the bounds of "flow" is to end before its work is done; the model
    is then as exact, and its bounds are lower.
    """
    variant = _variant(params)
    n_min = params.leaf_size(data.n)
    levels = _levels(data, variant)
    m = pyo.ConcreteModel(name=f"OCT ({variant})")
    topology = blocks.add_topology(m, params.depth)
    if variant == "flow":
        groups = groups_of(data, levels)
        factor = leaf_trees.error_factor(data.y, data.weights, data.K, params.error_scale)
        splits = blocks.add_cut_splits(m, topology, groups.n_values)
        assignment = blocks.add_group_assignment(m, topology, groups.of_row, n_min)
        blocks.add_flow_routing(m, topology, splits, assignment, groups.position, groups.n_values)
        labels = blocks.add_group_leaf_labels(m, topology, assignment, groups.weight)
        bounds = root_bounds(groups, params, n_min, factor, stop)
        block = blocks.add_subtree_bounds(m, topology, splits, labels, bounds, factor, params.alpha)
        m.cost = pyo.Expression(expr=block.total, doc="Σ_t L_t + α · complexity")
        m.objective = pyo.Objective(expr=m.cost, doc="errors and complexity")
        known = tree_of(bounds.found, data, params.depth)
        m.info = ModelInfo(NAME, params, data, structure=structure(m), tree=known, least=block.total.lb)
        return m
    splits = blocks.add_axis_splits(m, topology, data.p, levels.constant)
    assignment = blocks.add_leaf_assignment(m, topology, data.n, n_min)
    route = blocks.add_leafwise_axis_routing if variant == "bd" else blocks.add_axis_routing
    route(m, topology, splits, assignment, levels.X, levels.step)
    label = blocks.add_counted_leaf_labels if variant == "bd" else blocks.add_leaf_labels
    label(m, topology, assignment, data.y, data.K, data.weights)
    leaf_trees.add_objective(m, data, params, sum(splits.d[t] for t in topology.tree.branch))
    m.info = ModelInfo(NAME, params, data, structure=structure(m))
    return m


def size(params: OCTParams, table: Data | Shape, stop: Callable[[], bool] | None = None) -> BlockSize:
    """What :func:`build` builds on ``table``; of a shape all values differ and none is zero.

    Where ``stop`` says so from the beginning, no bounds are searched, and it is at most as much as is said.
    """
    tree, variant, (n, p, K) = Topology(params.depth), _variant(params), (table.n, table.p, table.K)
    if variant == "flow":
        return _flow_size(params, table, tree, stop)
    features, entries, left, gaps = p, n * p, n * p, p
    if isinstance(table, Data):
        params.leaf_size(n)
        # The rows are built on ranks, or on scaled values: both are 0 at the smallest value of a column.
        levels = _levels(table, variant)
        X, step = levels.X[:, ~levels.constant], levels.step[~levels.constant]
        beyond = step - step.min(initial=np.inf) if step.size else step
        features, gaps = len(step), int(np.count_nonzero(beyond))
        entries, left = int(np.count_nonzero(X)), int(np.count_nonzero(X + beyond))
    out = axis_splits_size(tree, features) + leaf_assignment_size(tree, n)
    if variant == "bd":
        return out + leafwise_axis_routing_size(tree, n, entries, left) + counted_leaf_labels_size(tree, n, K)
    return out + axis_routing_size(tree, n, entries, gaps) + leaf_labels_size(tree, n, K)


def _flow_size(
    params: OCTParams, table: Data | Shape, tree: Topology, stop: Callable[[], bool] | None
) -> BlockSize:
    n, p = table.n, table.p
    G, features, cuts, below_last, classes = n, p, p * (n - 1), p * (n - 1), n
    steps, unsplit = 2 * p * (n - 1), True
    if isinstance(table, Data):
        groups = groups_of(table)
        factor = leaf_trees.error_factor(table.y, table.weights, table.K, params.error_scale)
        G, classes = len(groups.size), int((groups.weight > 0).sum())
        features, cuts = int((groups.n_values > 1).sum()), int((groups.n_values - 1).sum())
        below_last, steps = int((groups.position < groups.n_values - 1).sum()), 2 * cuts
        if stop is None or not stop():  # otherwise as many steps as there can be
            bounds = root_bounds(groups, params, params.leaf_size(n), factor, stop)
            jumps = [
                np.diff(np.minimum(v, bounds.found.upper), prepend=0.0) for v in bounds.left + bounds.right
            ]
            steps, unsplit = sum(int(np.count_nonzero(v)) for v in jumps), bounds.unsplit != 0
    out = cut_splits_size(tree, features, cuts) + group_assignment_size(tree, G)
    out += flow_routing_size(tree, G, below_last) + group_leaf_labels_size(tree, G, table.K, classes)
    return out + subtree_bounds_size(tree, params.alpha > 0, steps, unsplit)


def groups_of(data: Data, levels: _Levels | None = None) -> subtrees.Groups:
    """The training rows with equal ones merged."""
    position = (_levels(data, "rank") if levels is None else levels).position
    return subtrees.Groups.of(position, data.y, data.weights, data.K)


def root_bounds(
    groups: subtrees.Groups,
    params: OCTParams,
    n_min: int,
    factor: float,
    stop: Callable[[], bool] | None = None,
) -> subtrees.RootBounds:
    """The numbers of ``subtree_bounds``: exact for depth 1 and, within the limit of work, for depth 2 and 3."""
    work, asked = (WORK, lambda: False) if stop is None else (MORE_WORK, stop)
    search = subtrees.Search(params.alpha, n_min, work, asked)
    table = subtrees.Table.whole(groups, factor)
    if not params.depth:
        found = search.leaf(table)
        return subtrees.RootBounds([], [], found.sized, found)
    return search.root(table, params.depth, stepwise=True)


def tree_of(found: subtrees.Found, data: Data, depth: int) -> AxisTree:
    """The subtree that a search found, as a tree on ``data``."""
    B = 2**depth - 1
    feature, threshold = np.full(B, -1, dtype=np.int64), np.zeros(B)

    def fill(t: int, sub: subtrees.Found | None, rows: BoolArray) -> None:
        if sub is None or sub.feature < 0 or t > B:
            return
        column = data.X_original[:, sub.feature]
        value = np.unique(column[rows])
        feature[t - 1] = sub.feature
        threshold[t - 1] = between(value[sub.cut - 1], value[sub.cut])
        left = column < threshold[t - 1]
        fill(2 * t, sub.left, rows & left)
        fill(2 * t + 1, sub.right, rows & ~left)

    fill(1, found, np.ones(data.n, dtype=bool))
    return leaf_trees.with_best_labels(data, AxisTree, depth, feature, threshold)


def between(low: float, high: float) -> float:
    """The middle between two values, above the lower one."""
    middle = low + (high - low) / 2
    return float(middle if middle > low else high)


def _cut(levels: _Levels, j: int, b: float) -> int:
    """Number of values of feature j on the left of threshold b: those below it by at least ε_j, up to rounding."""
    return int(np.searchsorted(levels.scaled[j], b - levels.step[j] / 2))


def extract(model: pyo.ConcreteModel) -> AxisTree:
    """Read the tree from the values of the model's variables.

    Thresholds lie in the middle of the gap between the training rows that they separate. A leaf without rows predicts
    the majority of its nearest ancestor with rows.
    """
    data, params = origin(model, OCTParams)
    depth, levels = params.depth, _levels(data, _variant(params))
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
            if hasattr(model.split, "b"):
                cut = _cut(levels, j, float(values(model.split.b, [t])[0]))
            else:
                higher = [(t, j, v) for v in range(2, len(levels.original[j]))]
                cut = 1 + int((values(model.split.u, higher) > 0.5).sum())
            here = path[:, level] == t
            left = here & (levels.position[:, j] < cut)
            path[left, level + 1] = 2 * t
            feature[t - 1] = j
            threshold[t - 1] = _middle(levels.original[j], levels.position[:, j], cut, left, here & ~left)
    return tree_on(data, AxisTree, depth, feature, threshold, leaf_trees.read_labels(model, path))


def _middle(value: FloatArray, position: IntArray, cut: int, left: BoolArray, right: BoolArray) -> float:
    low = position[left].max() if left.any() else cut - 1
    high = position[right].min() if right.any() else cut
    if low < 0:
        return float(value[0])
    if high >= len(value):
        return float(np.nextafter(value[-1], np.inf))
    return between(value[low], value[high])


def embed(model: pyo.ConcreteModel, tree: AxisTree, relabelled: BoolArray | None = None) -> AxisTree:
    """Set every variable of ``model`` to the values that ``tree`` has there, and return the tree.

    Raises
    ------
    TreeNotAdmitted
        With the reason, if no point of the model belongs to the tree.
    """
    data, params = origin(model, OCTParams)
    tree = normalise(tree, data, params)
    levels = _levels(data, _variant(params))
    path = tree._route(data.X_original)
    cut, threshold = _places(tree, path, levels, data)
    if hasattr(model.split, "u"):
        groups = groups_of(data, levels)
        set_cut_splits(model.split, tree.feature, cut)
        set_flow_routing(model.routing, tree.feature, cut, groups.position)
        if (bounds := model.component("subtree_bounds")) is not None:
            cost = leaf_trees.evaluate(tree, data.X_original, data.y, params, data.weights).objective
            bounds.total.set_value(cost, skip_validation=True)
    else:
        set_axis_splits(model.split, tree.feature, threshold)
        set_axis_routing(model.routing, tree.feature, levels.X, levels.step)
    leaf_trees.embed_leaves(model, data, path, tree.label, params.leaf_size(data.n))
    return tree


def _places(tree: AxisTree, path: IntArray, levels: _Levels, data: Data) -> tuple[IntArray, FloatArray]:
    """Cut and threshold b of each node (B,); 0 where it does not split."""
    cut, threshold = np.zeros(tree.n_branch, dtype=np.int64), np.zeros(tree.n_branch)
    for t in (np.flatnonzero(tree.feature >= 0) + 1).tolist():
        j = int(tree.feature[t - 1])
        if levels.constant[j]:
            raise TreeNotAdmitted(
                f"Node {t} splits on {data.feature_names[j]!r}, which is constant in the model's data."
            )
        left, _ = leaf_trees.sides(path, t)
        b, cut[t - 1] = 0.0, 1  # no row lies below a first cut that leaves the left empty
        if left.any():
            cut[t - 1] = int(levels.position[left, j].max()) + 1
            b = float(levels.scaled[j][cut[t - 1] - 1] + levels.step[j])
        if b > 1 + 1e-9:
            raise TreeNotAdmitted(
                f"The threshold of node {t} lies above every value of {data.feature_names[j]!r}: it sends all "
                "rows left, which the model (b_t <= 1) does not have. Put the left subtree in the node's place."
            )
        threshold[t - 1] = min(b, 1.0)
    return cut, threshold


def normalise(tree: AxisTree, data: Data, params: OCTParams) -> AxisTree:
    """The same tree in the model's depth and with the data's classes; in "flow" without the splits that it leaves out.

    Raises
    ------
    TreeNotAdmitted
        Of another kind or on other features, too deep, or a leaf in use predicts a class that the data lacks.
    """
    if not isinstance(tree, AxisTree):
        raise TreeNotAdmitted(f"OCT takes trees with axis-parallel splits, not {type(tree).__name__}.")
    leaf_trees.require_same_features(tree, data)
    arrays = leaf_trees.to_depth(tree, params.depth)
    if _variant(params) == "flow":
        arrays = _without_empty_left(arrays, data)
    return leaf_trees.in_model(tree, data, arrays)


def _without_empty_left(arrays: dict[str, Any], data: Data) -> dict[str, Any]:
    """The tree with the right subtree in place of each node whose threshold lies at or below all values."""
    feature, threshold, label = (arrays[name] for name in ("feature", "threshold", "label"))
    low, high = data.X_original.min(axis=0), data.X_original.max(axis=0)
    B = len(feature)

    def useless(t: int) -> bool:
        j = feature[t - 1]
        return bool(j >= 0 and threshold[t - 1] <= low[j] < high[j])

    if not any(useless(t) for t in range(1, B + 1)):
        return arrays
    out = {"feature": np.full(B, -1, dtype=np.int64), "threshold": np.zeros(B), "label": label.copy()}
    source = {1: 1}  # for every node the one of the tree that comes to its place
    for t in range(1, 2 * B + 2):
        old = source[t]
        while old <= B and useless(old):
            old = 2 * old + 1
        if t > B:  # an unsplit node sends every row right
            out["label"][t - B - 1] = label[rightmost(old, B.bit_length()) - B - 1]
        elif old <= B and feature[old - 1] >= 0:
            out["feature"][t - 1], out["threshold"][t - 1] = feature[old - 1], threshold[old - 1]
            source[2 * t], source[2 * t + 1] = children(old)
        else:
            source[2 * t] = source[2 * t + 1] = old
    return out


def require(tree: AxisTree, data: Data, params: OCTParams) -> None:
    """Refuse a tree with a leaf in use that is smaller than N_min."""
    leaf_trees.require_leaf_sizes(tree._route(data.X_original), params.leaf_size(data.n))


def constant_tree(data: Data, params: OCTParams) -> AxisTree:
    """The tree that predicts the majority class everywhere."""
    B = 2**params.depth - 1
    splits = np.full(B, -1, dtype=np.int64), np.zeros(B)
    return tree_on(data, AxisTree, params.depth, *splits, leaf_trees.constant_labels(data, params.depth))


def wants_cart(data: Data, depth: int) -> bool:
    """Whether greedy trees help the start heuristic: on small tables it searches two levels exactly, and at once."""
    return depth > 2 or data.n * data.p > SEARCHED_AT_ONCE


@register
class OCT(leaf_trees.LeafFormulation):
    """OCT, as :mod:`octsvm.formulations.oct` says."""

    name = NAME
    title = "optimal classification tree, axis-parallel splits"
    Params = OCTParams
    Tree = AxisTree
    variants = ("flow", "rank", "bd")
    searches = True
    heuristic = "octsvm.heuristics.axis_search:candidates"
    tried = Tried(
        ({"depth": [1, 2, 3], "alpha": leaf_trees.SHARES},), usual={"depth": 2, "alpha": 0.02}, steps=6000
    )
    libraries = ("sklearn.tree",)
    proved_rows = PROVED_ROWS
    build = staticmethod(build)
    extract = staticmethod(extract)
    embed = staticmethod(embed)
    constant_tree = staticmethod(constant_tree)
    size = staticmethod(size)
    normalise = staticmethod(normalise)
    require = staticmethod(require)

    def libraries_for(self, data: Data, params: Any) -> tuple[str, ...]:
        """None where the search alone is at once at the best tree."""
        return self.libraries if wants_cart(data, params.depth) else ()
