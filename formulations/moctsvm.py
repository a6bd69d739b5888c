"""MOCTSVM: margins at the splits, classes at the leaves, any number of classes.

At a branch node a sample is on one of two sides, whatever its class, and pays for lying inside the margin of its side.
A leaf predicts a class and pays for the samples of others, as in OCT. Its trees are those of OCT-H, of which ω_t = a_t
and ω_t0 = -b_t keep their scale. A node that does not split sends every sample right and costs nothing (ω_t = 0, ω_t0 = 1).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pyomo.environ as pyo
from pydantic import Field

from . import blocks, leaf_trees, margin_trees
from .base import (
    BoolArray,
    Data,
    Evaluation,
    FloatArray,
    IntArray,
    ModelInfo,
    Tried,
    origin,
    structure,
    values,
)
from .blocks import big_m
from .blocks.assignment import (
    leaf_assignment_size,
    level_assignment_size,
    set_leaf_assignment,
    set_level_assignment,
)
from .blocks.hinge import set_side_hinge, side_hinge_size
from .blocks.leaf_label import leaf_labels_size, set_leaf_labels
from .blocks.margin import margin_size, set_margin
from .blocks.routing import set_side_routing, side_routing_size
from .blocks.rows import linear, model_builder
from .blocks.sizes import BlockSize, Shape
from .blocks.split import hyperplanes_size, pruning_size, set_hyperplanes, set_pruning
from .blocks.topology import Topology
from .params import Norm, TreeParams
from .registry import register
from .trees import ObliqueTree, tree_on, visited

NAME = "moctsvm"
# Rows of the largest table proved optimal, by norm and depth: :mod:`octsvm.diagnostics.model_size` says how measured.
PROVED_ROWS: dict[str, dict[int, int]] = {"l2": {1: 20, 2: 20}, "l1": {1: 40, 2: 20}}


class MOCTSVMParams(TreeParams):
    """Parameters of MOCTSVM.

    Attributes
    ----------
    depth : int
        D, levels of splits; the leaves below them carry classes.
    c1 : float
        Cost of a unit of error: of what a sample lies inside the margin of its side.
    c2 : float
        Cost of a sample in a leaf of another class.
    c3 : float
        Cost of a split.
    mu_svm : float
        How far below 0 the score of a row that goes left must be; the margin's unit is 1.
    norm : "l2" or "l1"
        Of the normal vectors in δ; "l1" makes the model a MILP.
    variant : None, "compact" or "levels"
        None is "compact", which assigns samples to leaves; "levels" assigns and routes them level by level, as OCTSVM does.
    """

    c1: float = Field(1.0, ge=0)
    c2: float = Field(1.0, ge=0)
    c3: float = Field(1.0, ge=0)
    mu_svm: float = Field(1e-3, gt=0, le=1)
    norm: Norm = "l2"
    variant: Literal["compact", "levels"] | None = None


@model_builder
def build(data: Data, params: MOCTSVMParams, upper_bound: float = np.inf) -> pyo.ConcreteModel:
    """Build MOCTSVM on ``data`` (features in [0, 1]); ``upper_bound`` is the objective of a known tree;
    infinite: that of the best constant tree.

    Source: Blanco, Japón, Puerto, *Multiclass optimal classification trees with SVM-splits* (2023). Rows for c1, c2
    carry the weights of the data.
    """
    levels = params.variant == "levels"
    constant = evaluate(
        leaf_trees.constant_oblique_tree(data, params), data.X_original, data.y, params, data.weights
    )
    ub = constant.objective if np.isinf(upper_bound) else upper_bound
    # Where a normal vector is not zero there is a split, and c3 is paid.
    delta = max(0.0, ub * (1 + big_m.SLACK) - params.c3)
    W = 2 * delta
    M = big_m.score_bound(W, big_m.farthest(data.X, params.norm))

    m = pyo.ConcreteModel(name=f"MOCTSVM ({params.variant or 'compact'}, {params.norm})")
    topology = blocks.add_topology(m, params.depth)
    branch = topology.tree.branch
    split = blocks.add_hyperplanes(m, branch, data.X, W, M)
    pruning = blocks.add_pruning(m, topology, split, W, branch)
    if levels:
        assignment = blocks.add_level_assignment(m, topology, data.n)
        blocks.add_side_routing(m, topology, split, assignment, M, params.mu_svm)
    else:
        assignment = blocks.add_leaf_assignment(m, topology, data.n, 1)
    blocks.add_side_hinge(m, topology, split, pruning, assignment, M, None if levels else params.mu_svm)
    blocks.add_margin(m, branch, split, params.norm, delta)
    blocks.add_leaf_labels(m, topology, assignment, data.y, data.K, data.weights)
    _add_objective(m, data, params)
    m.info = ModelInfo(NAME, params, data, ub, margin_trees.largest_big_m(W, M), structure=structure(m))
    return m


def _add_objective(m: pyo.ConcreteModel, data: Data, params: MOCTSVMParams) -> None:
    w, tree = data.weights.tolist(), m.topology.tree
    keys = [(i, t) for i in range(data.n) for t in tree.branch]
    coefs = [1.0, *(params.c1 * w[i] for i, _ in keys)]
    coefs += [params.c2] * len(tree.leaf) + [params.c3] * len(tree.branch)
    errors = [m.hinge.e[key] for key in keys]
    others = [m.leaf_label.L[t] for t in tree.leaf] + [m.pruning.d[t] for t in tree.branch]
    m.cost = pyo.Expression(
        expr=linear(coefs, [m.margin.delta, *errors, *others]), doc="δ + c1 Σ e_it + c2 Σ L_t + c3 Σ d_t"
    )
    m.objective = pyo.Objective(expr=m.cost, doc="margin, errors, samples of other classes and splits")


def size(params: MOCTSVMParams, table: Data | Shape) -> BlockSize:
    """What :func:`build` builds on ``table``; of a shape every value counts as nonzero."""
    tree, n, p = Topology(params.depth), table.n, table.p
    B, levels = len(tree.branch), params.variant == "levels"
    out = hyperplanes_size(n, p, B, margin_trees.centred_entries(table, p)) + pruning_size(p, B)
    out += side_hinge_size(tree, n, levels, strict=not levels) + margin_size(p, B, params.norm)
    out += leaf_labels_size(tree, n, table.K, levels)
    if levels:
        return out + level_assignment_size(tree, n) + side_routing_size(tree, n, strict=True)
    return out + leaf_assignment_size(tree, n)


def extract(model: pyo.ConcreteModel) -> ObliqueTree:
    """Read the tree from the values of the model's variables.

    Rows on a boundary are put back on the side that the model's z says (:func:`margin_trees.snapping_shifts`).
    """
    data, params = origin(model, MOCTSVMParams)
    split = values(model.pruning.d, list(model.topology.tree.branch)) > 0.5
    omega, omega0 = margin_trees.read_hyperplanes(model, split)
    path = leaf_trees.leaf_path(model)
    b, label = np.where(split, -omega0, 0.0), leaf_trees.read_labels(model, path)
    tree = tree_on(data, ObliqueTree, params.depth, omega, b, split, label)
    shift = margin_trees.snapping_shifts(scores(tree, data.X), omega, path)
    return replace(tree, b=np.where(split, tree.b - shift, 0.0))


def scores(tree: ObliqueTree, M: FloatArray) -> FloatArray:
    """a_t'x - b_t (n, B) of scaled rows ``M (n, p)`` at the branch nodes; 1 where a node does not split."""
    if not tree.n_branch:
        return np.ones((len(M), 0))
    found = [tree.node_score(t, M) - tree.b[t - 1] for t in range(1, tree.n_branch + 1)]
    return np.where(tree.split, np.column_stack(found), 1.0)


def side_errors(tree: ObliqueTree, M: FloatArray, path: IntArray) -> FloatArray:
    """max(0, 1 - |s_it|) (n, B) at the nodes of each row's ``path (n, D + 1)`` that split, else 0."""
    here = visited(path, tree.n_nodes)[:, : tree.n_branch]
    return np.where(here, np.maximum(0.0, 1.0 - np.abs(scores(tree, M))), 0.0)


def embed(model: pyo.ConcreteModel, tree: ObliqueTree, relabelled: BoolArray | None = None) -> ObliqueTree:
    """Set every variable of ``model`` to the values that ``tree`` has there, and return the tree as embedded.

    Thresholds are moved first (:func:`normalise`), and δ is the largest half norm: the objective never rises.

    Raises
    ------
    TreeNotAdmitted
        With the reason: another kind of tree, too deep, a row that goes left but is not below -μ, or an objective worse
        than the bound that the model was built from.
    """
    data, params = origin(model, MOCTSVMParams)
    tree = normalise(tree, data, params)
    require(tree, data, params)
    result = evaluate(tree, data.X_original, data.y, params, data.weights)
    margin_trees.require_within(result.objective, model.info.upper_bound)
    path, score = tree._route(data.X), scores(tree, data.X)
    set_hyperplanes(model.split, tree.a, np.where(tree.split, -tree.b, 1.0), score)
    set_pruning(model.pruning, tree.split)
    set_side_hinge(model.hinge, side_errors(tree, data.X, path))
    set_margin(model.margin, tree.a, result.terms["margin"])
    if params.variant == "levels":
        set_level_assignment(model.assignment, path)
        set_side_routing(model.routing, score)
    else:
        set_leaf_assignment(model.assignment, path)
    set_leaf_labels(model.leaf_label, path, tree.label, data)
    return tree


def require(tree: ObliqueTree, data: Data, params: MOCTSVMParams) -> None:
    """Refuse a tree in which a training row goes left with -μ < s < 0."""
    margin_trees.require_beyond(scores(tree, data.X), tree._route(data.X), params.mu_svm)


def normalise(tree: ObliqueTree, data: Data, params: MOCTSVMParams) -> ObliqueTree:
    """The same tree in the model's depth, with the data's classes and scaling, thresholds moved towards the rows.

    Where all training rows have a score of one sign beyond 1, the threshold moves until the smallest is 1: no side
    changes and no error grows, and the scores then obey the proved bounds (:func:`blocks.big_m.score_bound`).
    """
    tree = leaf_trees.normalise_oblique(tree, data, params)
    b = tree.b.copy()
    for t in (np.flatnonzero(tree.split) + 1).tolist():
        b[t - 1] += margin_trees.beyond(tree.node_score(t, data.X) - b[t - 1])
    return replace(tree, b=b)


def evaluate(
    tree: ObliqueTree,
    X: FloatArray,
    y: IntArray,
    params: MOCTSVMParams,
    weights: FloatArray,
    relabelled: BoolArray | None = None,
) -> Evaluation:
    """Objective terms of ``tree`` on rows ``X (n, p)`` in original units, in plain numpy, walking the tree.

    ``y (n,)`` holds indices into the tree's classes. Nodes that do not split cost nothing.
    """
    M = tree.scaling.transform(X)
    path = tree._route(M)
    error = float((weights @ side_errors(tree, M, path)).sum())
    wrong = tree.class_index_at(path, M) != y
    misclassified, splits = float(weights @ wrong), float(tree.split.sum())
    largest = float(margin_trees.norms(tree.a, params.norm).max(initial=0.0))
    terms = {
        "margin": largest / 2,
        "errors": params.c1 * error,
        "misclassified": params.c2 * misclassified,
        "splits": params.c3 * splits,
    }
    counts = {
        "errors": error,
        "misclassified": misclassified,
        "splits": splits,
        "largest_norm": largest,
        "wrong_rows": float(wrong.sum()),
    }
    return Evaluation(sum(terms.values()), terms, counts)


@register
class MOCTSVM(leaf_trees.LeafFormulation):
    """MOCTSVM, as :mod:`octsvm.formulations.moctsvm` says."""

    name = NAME
    title = "optimal classification tree with SVM splits and classes at the leaves"
    Params = MOCTSVMParams
    Tree = ObliqueTree
    uses_scaling = True
    uses_upper_bound = True
    variants = ("compact", "levels")
    heuristic = "octsvm.heuristics.side_tree:candidates"
    tried = Tried(
        ({"depth": [1, 2], "c1": [1.0, 3.0, 10.0], "c2": [1.0, 3.0], "c3": [0.01, 0.05]},),
        usual={"depth": 1, "c1": 3.0, "c2": 1.0, "c3": 0.05},
        steps=480,  # a quarter of them finds no tree for exclusive or on 200 rows
    )
    proved_rows = PROVED_ROWS
    libraries = margin_trees.LIBRARIES
    libraries_for = staticmethod(margin_trees.libraries_for)
    build = staticmethod(build)
    extract = staticmethod(extract)
    embed = staticmethod(embed)
    evaluate = staticmethod(evaluate)
    constant_tree = staticmethod(leaf_trees.constant_oblique_tree)
    size = staticmethod(size)
    normalise = staticmethod(normalise)
    require = staticmethod(require)

    def unit_cost(self, data: Data, params: MOCTSVMParams) -> float:
        """Of :func:`~.margin_trees.noise_cost`."""
        return margin_trees.noise_cost(data, params.norm)
