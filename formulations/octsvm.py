"""OCTSVM: optimal classification trees with SVM splits and relabelling (Blanco, Japón, Puerto 2022); two classes.

    min δ + c1 Σ_i Σ_t e_it + c2 Σ_i Σ_t ξ_it + c3 Σ_t d_t,     ½‖ω_t‖ <= δ at every node t of all D + 1 levels

Every level is charged: a row sits in one node of each level and pays its error and its relabelling in each.

The default ("compact") differs from the printed model in three ways.

* The products ξω are replaced by two hinge rows (see :func:`blocks.add_hinge`): the same integer points.
* Scores are variables, z is continuous (θ leaves it no choice), θ stands at branch nodes only.
* A row that goes left is strictly left, s <= -μ (9′). As printed, rows with s = 0 choose their side, and the optimum
  need not belong to any tree. printed <= infimum over all trees <= default; the default is the best tree in which
  every training row that reaches a branch node has s >= 0 or s <= -μ.

Besides, it has rows that are implied and need no big-M (:func:`blocks.add_misrouting_inequalities`, :func:`blocks.add_convex_hull_inequalities`): every tree
obeys them, with whatever labels given up. W is twice a bound on δ (:func:`hull.margin_bound`) that every tree with an
objective of at most UB obeys: like each M it holds for trees up to UB, and those are the ones that the model admits.

``variant="paper"`` builds the rows as printed, with β; with ``mu_svm`` given it has (9′) and equals the default.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pydantic import Field

from . import blocks, margin_trees
from .base import BoolArray, Data, IntArray, ModelInfo, Tried, origin, structure, values
from .blocks import big_m
from .blocks.assignment import level_assignment_size, set_level_assignment
from .blocks.hinge import hinge_size, product_hinge_size
from .blocks.margin import margin_size, set_margin
from .blocks.relabelling import relabelling_size
from .blocks.routing import set_side_routing, side_routing_size
from .blocks.rows import linear, model_builder
from .blocks.sizes import BlockSize, Shape
from .blocks.split import hyperplanes_size, pruning_size, set_pruning
from .blocks.topology import Topology
from .blocks.valid_inequalities import (
    convex_hull_entries,
    convex_hull_inequalities_size,
    misrouting_inequalities_size,
    set_convex_hull_inequalities,
)
from .bounds import hull, levels
from .bounds.scores import ScoreProblem
from .heap import is_below
from .kernels import model_rows
from .leaf_trees import assigned_nodes
from .params import TreeParams
from .registry import register
from .trees import MarginTree

NAME = "octsvm"
MOST_PAIRS = 500  # of rows, times nodes
MOST_SETS = 40
# Rows of the largest table proved optimal, by norm and depth: :mod:`octsvm.diagnostics.model_size` says how measured.
PROVED_ROWS: dict[str, dict[int, int]] = {"l2": {0: 40, 1: 20, 2: 20}, "l1": {0: 40, 1: 20, 2: 20}}


class OCTSVMParams(margin_trees.MarginParams, TreeParams):
    """Parameters of OCTSVM: those of :class:`~octsvm.formulations.margin_trees.MarginParams`, paid on every level, and these.

    Attributes
    ----------
    depth : int
        D of the paper: levels of splits *above* the last level. All D + 1 levels carry hyperplanes, so D = 2 decides
        on three levels, as OCT with depth 3 does.
    c3 : float
        Cost of a split.
    mu_svm : float
        μ of (9′): how far below 0 a row that goes left must be; the margin's unit is 1. With variant="paper" it
        applies only if given.
    """

    c3: float = Field(1.0, ge=0)
    mu_svm: float = Field(1e-3, gt=0, le=1)

    def margin_cost(self, size: float) -> float:
        """The margin term δ of a tree whose largest norm is ``size``."""
        return size / 2

    @property
    def boundary(self) -> float | None:
        """μ of (9′), or None where a row on a hyperplane may choose its side (the rows as printed)."""
        if self.variant == "paper" and "mu_svm" not in self.model_fields_set:
            return None
        return self.mu_svm


@model_builder
def build(data: Data, params: OCTSVMParams, upper_bound: float = np.inf) -> pyo.ConcreteModel:
    """Build OCTSVM on ``data`` (features in [0, 1]); ``upper_bound`` is the objective of a known tree;
    infinite: that of the best constant tree.

    Source: Blanco, Japón, Puerto, (OCTSVM). Rows for c1, c2 carry the weights of the data.
    """
    data.require_two_classes(NAME)
    data = model_rows(data, params)
    variant = params.variant or "compact"
    ub = margin_trees.known_cost(data, params, upper_bound)
    printed = variant == "paper"
    combined = [] if printed else chosen_rows(data, params)
    delta = ub * (1 + big_m.SLACK)
    if not printed:
        alone = [one for one, t in combined if t == 1]
        delta = hull.margin_bound(alone, data.weights, params.c1, params.c2, params.c3, ub)
    W = 2 * delta
    proved = big_m.score_bound(W, big_m.farthest(data.X, params.norm))
    M = big_m.chosen_score_bound(proved, params.big_m)
    E = big_m.error_bound(ub, params.c1, data.weights, M)

    m = pyo.ConcreteModel(name=f"OCTSVM ({variant}, {params.norm})")
    topology = blocks.add_topology(m, params.depth)
    nodes = topology.tree.nodes
    split = blocks.add_hyperplanes(m, nodes, data.X, W, M)
    pruning = blocks.add_pruning(m, topology, split, None if printed else W)
    assignment = blocks.add_level_assignment(m, topology, data.n, binary=printed)
    blocks.add_side_routing(
        m, topology, split, assignment, M, params.boundary, last_level=printed, forced=not printed
    )
    relabelling = blocks.add_relabelling(m, nodes, data.n, None if printed else assignment)
    if printed:
        W0 = big_m.intercept_bound(W, M, data.X - split.center, params.norm)
        hinge = blocks.add_product_hinge(
            m, nodes, split, relabelling, data.sign, data.X, W, W0, M, E, assignment
        )
        margin = blocks.add_margin(m, nodes, split, params.norm, W / 2, pruning, W)
    else:
        hinge = blocks.add_hinge(m, nodes, split, data.sign, M, E, assignment, relabelling)
        margin = blocks.add_margin(m, nodes, split, params.norm, W / 2)
        blocks.add_misrouting_inequalities(
            m, topology, assignment, hinge, relabelling, data.sign, params.boundary or 0.0
        )
        if combined:
            blocks.add_convex_hull_inequalities(
                m, combined, W, margin, pruning, assignment, hinge, relabelling
            )
    _add_objective(m, data, params)
    largest = margin_trees.largest_big_m(W, M) | {"scores_proved": float(proved.max())}
    m.info = ModelInfo(NAME, params, data, ub, largest, structure=structure(m))
    return m


def _add_objective(m: pyo.ConcreteModel, data: Data, params: OCTSVMParams) -> None:
    w, nodes = data.weights.tolist(), m.topology.tree.nodes
    keys = [(i, t) for i in range(data.n) for t in nodes]
    errors, relabelled = [params.c1 * w[i] for i, _ in keys], [params.c2 * w[i] for i, _ in keys]
    e, xi, d = m.hinge.e, m.relabelling.xi, m.pruning.d
    m.cost = pyo.Expression(
        expr=linear(
            [1.0, *errors, *relabelled, *(params.c3 for _ in nodes)],
            [m.margin.delta, *(e[k] for k in keys), *(xi[k] for k in keys), *(d[t] for t in nodes)],
        ),
        doc="δ + c1 Σ e_it + c2 Σ ξ_it + c3 Σ d_t",
    )
    m.objective = pyo.Objective(expr=m.cost, doc="margin, errors, relabelling and splits")


def chosen_rows(data: Data, params: OCTSVMParams) -> list[tuple[hull.Combination, int]]:
    """Which rows of :func:`blocks.add_convex_hull_inequalities` stand in the model: all pairs at all nodes, and the sets of up to four rows
    that matter most at branch nodes; for larger tables each row of the smaller class and its nearest of the other, at the root.
    """
    T, B = 2 ** (params.depth + 1) - 1, max(1, 2**params.depth - 1)
    X, sign, norm = data.X, data.sign, params.norm
    if _only_neighbours(data, T):
        return [(mix, 1) for mix in hull.neighbours(X, sign, norm)]
    base = hull.pairs(X, sign, norm)
    more = hull.chosen_combinations(X, sign, data.weights, params.c1, params.c2, norm, base, MOST_SETS)
    return [(mix, t) for mix in base for t in range(1, T + 1)] + [
        (mix, t) for mix in more for t in range(1, B + 1)
    ]


def _only_neighbours(data: Data, T: int) -> bool:
    """Whether all pairs of rows of different classes would be too many at ``T`` nodes."""
    return int((data.sign > 0).sum()) * int((data.sign < 0).sum()) * T > MOST_PAIRS


def size(params: OCTSVMParams, table: Data | Shape) -> BlockSize:
    """What :func:`build` builds on ``table``.

    Of a shape every value counts as nonzero, the classes as of one size, and no sets of more than two rows are counted.
    """
    tree, n, p = Topology(params.depth), table.n, margin_trees.model_columns(params, table)
    T, printed = len(tree.nodes), params.variant == "paper"
    below, strict, entries = T - 1, params.boundary is not None, margin_trees.centred_entries(table, p)
    out = hyperplanes_size(n, p, T, entries) + pruning_size(p, T, weights=not printed)
    out += level_assignment_size(tree, n, is_binary=printed) + margin_size(p, T, params.norm, printed)
    out += side_routing_size(tree, n, strict, last_level=printed, forced=not printed)
    if printed:
        return out + relabelling_size(n, T) + product_hinge_size(n, p, T, entries, below)
    out += (
        relabelling_size(n, T, below) + hinge_size(n, T, placed=below) + misrouting_inequalities_size(tree, n)
    )
    if isinstance(table, Data) and _only_neighbours(table, T):
        few = hull.n_neighbours(table.sign, p)
        return out + convex_hull_inequalities_size(1, few, 5 * few)
    if isinstance(table, Data):
        keys = chosen_rows(table, params)
        return out + convex_hull_inequalities_size(
            len({t for _, t in keys}), len(keys), convex_hull_entries(keys)
        )
    pairs = (n // 2) * (n - n // 2)
    if pairs * T > MOST_PAIRS:
        return out + convex_hull_inequalities_size(1, n // 2, 5 * (n // 2))
    return out + convex_hull_inequalities_size(T, pairs * T, pairs * (7 * T - 2))


def extract(model: pyo.ConcreteModel) -> MarginTree:
    """Read the tree from the values of the model's variables.

    Rows on a boundary are put back on the side that the model's z says (:func:`margin_trees.snapping_shifts`).
    """
    data, params = origin(model, OCTSVMParams)
    split = values(model.pruning.d, list(model.topology.tree.nodes)) > 0.5
    tree = margin_trees.read_margin_tree(model, params.depth, split)
    shifts = margin_trees.snapping_shifts(tree._node_scores(data.X), tree.omega, assigned_path(model))
    return margin_trees.with_given_up(model, replace(tree, omega0=tree.omega0 + shifts))


def assigned_path(model: pyo.ConcreteModel) -> IntArray:
    """The node of each level that the model's z puts each row in (n, D + 1)."""
    return np.column_stack([assigned_nodes(model, level) for level in model.topology.tree.levels])


def embed(model: pyo.ConcreteModel, tree: MarginTree, relabelled: BoolArray | None = None) -> MarginTree:
    """Set every variable of ``model`` to the values that ``tree`` has there, and return the tree as embedded.

    Intercepts are moved first (:func:`margin_trees.normalise_margin`), each row takes the cheaper of error and relabelling
    unless ``relabelled (n, T)`` prescribes it, and δ is the largest half norm: the objective never rises.

    Raises
    ------
    TreeNotAdmitted
        With the reason: too deep, a row that goes left but is not below -μ, or an objective worse than the bound
        that the model was built from.
    """
    data, params = origin(model, OCTSVMParams)
    tree = margin_trees.normalise_margin(tree, data, params)
    require_strict(tree, data, params)
    tree, path, score = margin_trees.embed_margin_tree(model, tree, relabelled)
    largest = float(margin_trees.norms(tree.omega, params.norm).max())
    set_margin(model.margin, tree.omega, params.margin_cost(largest))
    set_pruning(model.pruning, tree.split)
    set_level_assignment(model.assignment, path)
    set_side_routing(model.routing, score)
    if hasattr(model, "mixes"):
        set_convex_hull_inequalities(model.mixes, model.margin, model.pruning)
    return tree


def require_strict(tree: MarginTree, data: Data, params: OCTSVMParams) -> None:
    """Refuse a tree in which a training row goes left with -μ < s < 0 (no such rule in the printed rows)."""
    if params.boundary is not None:
        margin_trees.require_beyond(tree._node_scores(data.X), tree._route(data.X), params.boundary)


def top_level(data: Data, params: OCTSVMParams, upper_bound: float) -> list[ScoreProblem] | None:
    """Cases of the root's cost; None for the printed rows, whose rows on a hyperplane choose their sides.

    With norm="l1" they are those of "l2", which is the smaller norm.
    """
    if params.boundary is None or params.c1 == 0:
        return None
    data = model_rows(data, params)
    longest = big_m.weight_bound(upper_bound, "largest")
    costs = params.c1, params.c2, params.c3
    return levels.top_level(data, *costs, params.depth, longest, params.boundary)


def in_case(model: pyo.ConcreteModel, case: ScoreProblem) -> list[tuple[Any, float, float]]:
    """What the trees of a case have in common: scores, labels and margin at the root, and which of its children split.

    Each label is the cheaper one at its score, so that it follows where the interval is on one side of ``switch``.
    """
    data, costs, box = model.info.data, case.costs, case.box
    s, xi, d = model.split.s, model.relabelling.xi, model.pruning.d
    low, high = box.low[costs.group], box.high[costs.group]
    kept = np.where(data.sign > 0, low, -high) >= costs.switch
    given_up = np.where(data.sign > 0, high, -low) < costs.switch
    known = [(d[1], 1.0, 1.0), (model.margin.delta, box.shortest / 2, np.inf)]
    known += [(s[i, 1], *ends) for i, ends in enumerate(zip(low.tolist(), high.tolist(), strict=True))]
    known += [(xi[i, 1], 0.0, 0.0) for i in np.flatnonzero(kept).tolist()]
    known += [(xi[i, 1], 1.0, 1.0) for i in np.flatnonzero(given_up).tolist()]
    for child, label in enumerate(case.below or (), start=2):
        if label == levels.SPLITS:
            known.append((d[child], 1.0, 1.0))
            continue
        side = (0.0, np.inf) if label > 0 else (-np.inf, 0.0)
        for t in (t for t in model.topology.tree.nodes if is_below(t, child)):
            known.append((d[t], 0.0, 0.0))
            known += [(s[i, t], *side) for i in range(data.n)]
    return known


@register
class OCTSVM(margin_trees.MarginFormulation):
    """OCTSVM, as :mod:`octsvm.formulations.octsvm` says."""

    name = NAME
    title = "optimal classification tree with SVM splits and relabelling"
    Params = OCTSVMParams
    heuristic = "octsvm.heuristics.margin_tree:candidates"
    tried = Tried(
        (
            {"depth": [0], "c1": [1.5, 3.0, 6.0, 12.0, 32.0], "c2": margin_trees.RATIOS, "c3": [0.0]},
            {"depth": [1, 2], "c1": [3.0, 8.0, 32.0], "c2": margin_trees.RATIOS, "c3": [0.01, 0.05]},
        ),
        usual={"depth": 0, "c1": 3.0, "c2": 2.0, "c3": 0.0},
        kernels=({**margin_trees.RADIAL, "depth": [0], "c1": [3.0, 12.0, 48.0], "c3": [0.0]},),
    )
    proved_rows = PROVED_ROWS
    build = staticmethod(build)
    extract = staticmethod(extract)
    embed = staticmethod(embed)
    size = staticmethod(size)
    require = staticmethod(require_strict)
    assigned_path = staticmethod(assigned_path)
    top_level = staticmethod(top_level)
    in_case = staticmethod(in_case)

    def unit_cost(self, data: Data, params: OCTSVMParams) -> float:
        """Of :func:`~.margin_trees.noise_cost`."""
        return margin_trees.noise_cost(model_rows(data, params), params.norm)
