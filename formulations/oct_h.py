"""OCT-H: optimal classification trees with oblique splits (Bertsimas & Dunn 2017), K classes.

A row goes left where a_t'x < b_t. In the model it then stays below b_t by μ, with ‖a_t‖₁ <= 1; optimal weights
shrink towards that scale, where a plain comparison would contradict the model. Extraction therefore rescales every
split to ‖a_t‖₁ = 1 and moves b_t to the middle between the rows that it separates; the routing of the training
rows stays what the model said. A tree whose rows are separated by less than μ is not in the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import pyomo.environ as pyo
from pydantic import Field

from . import blocks, leaf_trees
from .base import (
    FEASIBILITY,
    BoolArray,
    Data,
    FloatArray,
    IntArray,
    ModelInfo,
    Tried,
    origin,
    structure,
    table,
    values,
)
from .blocks.assignment import leaf_assignment_size
from .blocks.leaf_label import leaf_labels_size
from .blocks.routing import oblique_routing_size, set_oblique_routing
from .blocks.rows import model_builder
from .blocks.sizes import BlockSize, Shape
from .blocks.split import oblique_splits_size, set_oblique_splits
from .blocks.topology import Topology
from .errors import TreeNotAdmitted
from .params import LeafLabelledParams
from .registry import register
from .trees import AxisTree, ObliqueTree, tree_on

NAME = "oct_h"
# Rows of the largest table proved optimal, by norm and depth: :mod:`octsvm.diagnostics.model_size` says how measured.
PROVED_ROWS: dict[str, dict[int, int]] = {"": {1: 80, 2: 40}}


class OCTHParams(LeafLabelledParams):
    """Parameters of OCT-H: those of :class:`~octsvm.formulations.params.LeafLabelledParams`, and these.

    Attributes
    ----------
    mu : float
        μ, by how much a row that goes left stays below the threshold, for ‖a_t‖₁ <= 1 and x in [0, 1].
    variant : None or "bd"
        There is one.
    """

    mu: float = Field(0.005, gt=0, lt=1)
    variant: Literal["bd"] | None = None


@model_builder
def build(data: Data, params: OCTHParams, upper_bound: float = np.inf) -> pyo.ConcreteModel:
    """Build OCT-H on ``data`` (features in [0, 1]).

    Source: Bertsimas & Dunn (2017), Section 4. ``upper_bound`` is not needed.
    """
    sparse = params.complexity == "features"
    m = pyo.ConcreteModel(name="OCT-H")
    topology = blocks.add_topology(m, params.depth)
    splits = blocks.add_oblique_splits(m, topology, data.p, sparse)
    assignment = blocks.add_leaf_assignment(m, topology, data.n, params.leaf_size(data.n))
    blocks.add_oblique_routing(m, topology, splits, assignment, data.X, params.mu)
    blocks.add_leaf_labels(m, topology, assignment, data.y, data.K, data.weights)
    counted = splits.s if sparse else splits.d
    leaf_trees.add_objective(m, data, params, sum(counted[key] for key in counted))
    m.info = ModelInfo(NAME, params, data, structure=structure(m))
    return m


def size(params: OCTHParams, table: Data | Shape) -> BlockSize:
    """What :func:`build` builds on ``table``; of a shape every value counts as nonzero."""
    tree, (n, p, K) = Topology(params.depth), (table.n, table.p, table.K)
    entries = n * p
    if isinstance(table, Data):
        params.leaf_size(n)
        entries = int(np.count_nonzero(table.X))
    splits = oblique_splits_size(tree, p, params.complexity == "features")
    leaves = leaf_assignment_size(tree, n) + leaf_labels_size(tree, n, K)
    return splits + leaves + oblique_routing_size(tree, n, entries)


def extract(model: pyo.ConcreteModel) -> ObliqueTree:
    """Read the tree from the values of the model's variables, each split rescaled and centred."""
    tree, path = _read(model)
    return _centre(tree, model.info.data, path)


def extract_as_it_stands(model: pyo.ConcreteModel) -> ObliqueTree:
    """As :func:`extract`, with weights and thresholds as the model has them.

    A threshold moves by a rounding error at most, to where it separates the rows as the model says.
    """
    tree, path = _read(model)
    b, X = tree.b.copy(), model.info.data.X
    for t in (np.flatnonzero(tree.split) + 1).tolist():
        low, high = _range(tree, t, X, path)
        if low < high < b[t - 1] <= high + FEASIBILITY:
            b[t - 1] = high
    return replace(tree, b=b)


def _read(model: pyo.ConcreteModel) -> tuple[ObliqueTree, IntArray]:
    """The tree in the values as they are, and the nodes that the model puts each row in (n, D + 1)."""
    data, params = origin(model, OCTHParams)
    branch, J = model.topology.tree.branch, range(data.p)
    split = values(model.split.d, list(branch)) > 0.5
    a = np.where(split[:, None], table(model.split.a, branch, J), 0.0)
    if hasattr(model.split, "s"):
        a = np.where(table(model.split.s, branch, J) > 0.5, a, 0.0)
    b = np.where(split, values(model.split.b, list(branch)), 0.0)
    path = leaf_trees.leaf_path(model)
    return tree_on(data, ObliqueTree, params.depth, a, b, split, leaf_trees.read_labels(model, path)), path


def _centre(tree: ObliqueTree, data: Data, path: IntArray) -> ObliqueTree:
    a, b = tree.a.copy(), tree.b.copy()
    for t in (np.flatnonzero(tree.split) + 1).tolist():
        size = np.abs(a[t - 1]).sum()
        if size == 0:
            continue
        a[t - 1] /= size
        scaled = replace(tree, a=a.copy())
        low, high = _range(scaled, t, data.X, path)
        # Weights at the level of rounding are dropped where the separation survives it.
        a[t - 1] = np.where(np.abs(a[t - 1]) < 1e-9, 0.0, a[t - 1])
        clean_low, clean_high = _range(replace(tree, a=a), t, data.X, path)
        if clean_low < clean_high:
            low, high = clean_low, clean_high
        else:
            a = scaled.a
        if -np.inf < low and high < np.inf:
            middle = low + (high - low) / 2
            b[t - 1] = middle if low < middle <= high else high
        else:
            b[t - 1] = min(max(b[t - 1] / size, np.nextafter(low, np.inf)), high)
    return replace(tree, a=a, b=b)


def _range(tree: ObliqueTree, t: int, X: FloatArray, path: IntArray) -> tuple[float, float]:
    """Largest score on the left and smallest on the right (-inf and inf where a side is empty)."""
    left, right = leaf_trees.sides(path, t)
    low = tree.node_score(t, X[left]).max(initial=-np.inf)
    high = tree.node_score(t, X[right]).min(initial=np.inf)
    return float(low), float(high)


def embed(model: pyo.ConcreteModel, tree: ObliqueTree, relabelled: BoolArray | None = None) -> ObliqueTree:
    """Set every variable of ``model`` to the values that ``tree`` has there, and return the tree.

    Splits are scaled to ‖a_t‖₁ = 1, and b_t is put where the rows on the left are below it by μ.

    Raises
    ------
    TreeNotAdmitted
        With the reason, e.g. where the rows on the two sides of a split are less than μ apart.
    """
    return _embed(model, tree, _place)


def embed_as_it_stands(
    model: pyo.ConcreteModel, tree: ObliqueTree, relabelled: BoolArray | None = None
) -> ObliqueTree:
    """As :func:`embed`, with the tree's own weights and thresholds.

    Raises
    ------
    TreeNotAdmitted
        Also where the model's rows do not take them as they are.
    """
    return _embed(model, tree, _left_as_it_is)


def _embed(
    model: pyo.ConcreteModel, tree: ObliqueTree, place: Callable[..., tuple[FloatArray, float]]
) -> ObliqueTree:
    data, params = origin(model, OCTHParams)
    tree = normalise(tree, data, params)
    path = tree._route(data.X)
    a, b = np.zeros_like(tree.a), np.zeros_like(tree.b)
    for t in (np.flatnonzero(tree.split) + 1).tolist():
        a[t - 1], b[t - 1] = place(tree, t, data, path, params.mu)
    set_oblique_splits(model.split, a, b, tree.split)
    set_oblique_routing(model.routing, data.X @ a.T)
    leaf_trees.embed_leaves(model, data, path, tree.label, params.leaf_size(data.n))
    return tree


def _place(tree: ObliqueTree, t: int, data: Data, path: IntArray, mu: float) -> tuple[FloatArray, float]:
    """Weights with ‖a‖₁ <= 1 and a threshold that the model's rows accept."""
    left, right = leaf_trees.sides(path, t)
    size = float(np.abs(tree.a[t - 1]).sum())
    a = tree.a[t - 1] / size if size > 0 else tree.a[t - 1]
    if not (left.any() and right.any()):
        a = a * (1 - mu) / 2  # one side is empty: any scale will do, and this one leaves room for μ
        return a, 1.0 if left.any() else -1.0
    score = data.X @ a
    low, high = float(score[left].max()), float(score[right].min())
    if high - low < mu - FEASIBILITY:
        raise TreeNotAdmitted(
            f"Node {t} separates its rows by {high - low:.3g} (for weights with ‖a‖₁ = 1 on scaled features), and the "
            f"model asks for mu={mu:g}. Build it with a smaller mu to admit this tree."
        )
    return a, (low + mu + high) / 2


def _left_as_it_is(
    tree: ObliqueTree, t: int, data: Data, path: IntArray, mu: float
) -> tuple[FloatArray, float]:
    """The weights and the threshold of node t, refused where the model's rows do not take them."""
    a, b = tree.a[t - 1], float(tree.b[t - 1])
    low, high = _range(tree, t, data.X, path)
    size = float(np.abs(a).sum())
    if (
        size > 1 + FEASIBILITY
        or abs(b) > 1 + FEASIBILITY
        or low + mu > b + FEASIBILITY
        or b > high + FEASIBILITY
    ):
        raise TreeNotAdmitted(
            f"Node {t} has weights of ‖a‖₁ = {size:.6g} and the threshold {b:.6g}; the model asks for at most 1, and for "
            f"mu={mu:g} between the threshold and the rows on its left."
        )
    return a, b


def normalise(tree: AxisTree | ObliqueTree, data: Data, params: OCTHParams) -> ObliqueTree:
    """The same tree in the model's depth, with the data's classes and scaling."""
    given = leaf_trees.as_oblique(tree) if isinstance(tree, AxisTree) else tree
    return leaf_trees.normalise_oblique(given, data, params)


def require(tree: ObliqueTree, data: Data, params: OCTHParams) -> None:
    """Refuse a tree whose rows are less than μ apart, or with a leaf in use that is smaller than N_min."""
    path = tree._route(data.X)
    for t in (np.flatnonzero(tree.split) + 1).tolist():
        _place(tree, t, data, path, params.mu)
    leaf_trees.require_leaf_sizes(path, params.leaf_size(data.n))


@register
class OCTH(leaf_trees.LeafFormulation):
    """OCT-H, as :mod:`octsvm.formulations.oct_h` says."""

    name = NAME
    title = "optimal classification tree, oblique splits"
    Params = OCTHParams
    Tree = ObliqueTree
    uses_scaling = True
    variants = ("bd",)
    heuristic = "octsvm.heuristics.oblique_tree:candidates"
    tried = Tried(
        ({"depth": [1, 2], "alpha": leaf_trees.SHARES},), usual={"depth": 1, "alpha": 0.02}, steps=600
    )
    libraries = ("sklearn.tree", "sklearn.svm")
    proved_rows = PROVED_ROWS
    build = staticmethod(build)
    extract = staticmethod(extract)
    extract_as_it_stands = staticmethod(extract_as_it_stands)
    embed = staticmethod(embed)
    embed_as_it_stands = staticmethod(embed_as_it_stands)
    constant_tree = staticmethod(leaf_trees.constant_oblique_tree)
    size = staticmethod(size)
    normalise = staticmethod(normalise)
    require = staticmethod(require)
