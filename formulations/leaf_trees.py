"""What OCT and OCT-H share: leaves with class labels, sizes and errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from .base import BoolArray, Data, Evaluation, FloatArray, Formulation, IntArray, Scaling, table
from .blocks.assignment import set_leaf_assignment
from .blocks.leaf_label import set_leaf_labels
from .errors import TreeNotAdmitted
from .heap import level
from .params import Params
from .read_matrix import MadeUpNames, UndecidedNames
from .trees import AxisTree, ObliqueTree, rescaled, tree_on

LeafyTree = TypeVar("LeafyTree", AxisTree, ObliqueTree)


# Relative costs of a split that ``octsvm.tune`` tries: the share of the rows that it has to set right.
SHARES = [0.005, 0.01, 0.02, 0.05, 0.1]


def class_weights(y: IntArray, weights: FloatArray, K: int) -> FloatArray:
    """Total weight of each class (K,)."""
    return np.bincount(y, weights=weights, minlength=K).astype(np.float64)


def error_factor(y: IntArray, weights: FloatArray, K: int, error_scale: str) -> float:
    """What an error costs: 1, or 1/L̂ with L̂ the errors of the majority class (B&D)."""
    if error_scale == "count":
        return 1.0
    baseline = float(weights.sum() - class_weights(y, weights, K).max())
    return 1.0 / baseline if baseline > 0 else 1.0


def leaf_labels(path: IntArray, data: Data, chosen: IntArray | None = None) -> IntArray:
    """Weighted majority of each leaf (2^D,); an empty leaf takes that of its nearest ancestor with rows.

    ``chosen`` overrules it where a leaf with rows has a class there (-1: none).
    """
    depth = path.shape[1] - 1
    first = 2**depth
    label = np.zeros(first, dtype=np.int64)
    for leaf in range(first, 2 * first):
        node, level = leaf, depth
        while not (rows := path[:, level] == node).any():
            node, level = node // 2, level - 1
        if chosen is not None and node == leaf and chosen[leaf - first] >= 0:
            label[leaf - first] = chosen[leaf - first]
        else:
            label[leaf - first] = int(np.argmax(class_weights(data.y[rows], data.weights[rows], data.K)))
    return label


def with_best_labels(data: Data, kind: type[LeafyTree], depth: int, *splits: Any) -> LeafyTree:
    """The tree of the ``kind`` with these splits, each leaf of the class that :func:`leaf_labels` gives it."""
    tree = tree_on(data, kind, depth, *splits, np.zeros(2**depth, dtype=np.int64))
    return replace(tree, label=leaf_labels(tree._route(rows_for(tree, data)), data))


def rows_for(tree: LeafyTree, data: Data) -> FloatArray:
    """The rows of ``data`` in the units that the tree routes."""
    return data.X if tree.routes_on_scaled else data.X_original


def with_majority_labels(tree: LeafyTree, data: Data, params: Params) -> LeafyTree:
    """The same splits with the best class in every leaf."""
    path = tree.nodes(data.X_original)
    best, leaves = leaf_labels(path, data), np.arange(2**tree.depth)
    places = (path[:, -1] - len(leaves)) * data.K + data.y
    total = np.bincount(places, data.weights, len(leaves) * data.K).reshape(-1, data.K)
    keep = (total[leaves, tree.label] >= total[leaves, best]) & (total.sum(axis=1) > 0)
    return replace(tree, label=np.where(keep, tree.label, best))


def leaf_sizes(path: IntArray) -> IntArray:
    """Rows in each leaf (2^D,)."""
    first = 2 ** (path.shape[1] - 1)
    return np.bincount(path[:, -1] - first, minlength=first)


def sides(path: IntArray, t: int) -> tuple[BoolArray, BoolArray]:
    """Which rows with the given ``path (n, D + 1)`` go left at branch node ``t``, and which go right."""
    here, below = path[:, level(t)] == t, path[:, level(t) + 1]
    return here & (below == 2 * t), here & (below != 2 * t)


def assigned_nodes(model: pyo.ConcreteModel, nodes: range) -> IntArray:
    """Which of the ``nodes`` of a level the model's z puts each row in (n,)."""
    z = table(model.assignment.z, range(model.info.data.n), nodes)
    return np.asarray(nodes)[np.argmax(z, axis=1)]


def leaf_path(model: pyo.ConcreteModel) -> IntArray:
    """The node of each level above the leaf that the model's z puts each row in (n, D + 1)."""
    tree = model.topology.tree
    leaf = assigned_nodes(model, tree.leaf)
    return np.column_stack([leaf >> (tree.depth - u) for u in range(tree.depth + 1)])


def read_labels(model: pyo.ConcreteModel, path: IntArray) -> IntArray:
    """The class that the model's c gives each leaf (2^D,); where it gives none, that of :func:`leaf_labels`."""
    data: Data = model.info.data
    c = table(model.leaf_label.c, range(data.K), model.topology.tree.leaf)
    return leaf_labels(path, data, np.where(c.max(axis=0) > 0.5, np.argmax(c, axis=0), -1))


def to_depth(tree: LeafyTree, depth: int) -> dict[str, Any]:
    """The per-node arrays of ``tree`` in a heap of another depth.

    Deeper: the new levels do not split (they send every row right), so a leaf's class moves to all leaves below.

    Raises
    ------
    TreeNotAdmitted
        If the tree splits below the model's last level.
    """
    names = ("feature", "threshold") if isinstance(tree, AxisTree) else ("a", "b", "split")
    B = 2**depth - 1
    if tree.splits[B:].any():
        raise TreeNotAdmitted(
            f"The tree splits on {tree.depth} levels and the model has {depth}. Build the model with depth={tree.depth}."
        )
    out: dict[str, Any] = {}
    for name in names:
        old: NDArray[Any] = getattr(tree, name)
        out[name] = np.full((B, *old.shape[1:]), -1 if name == "feature" else 0, dtype=old.dtype)
        both = slice(min(B, len(old)))
        out[name][both] = old[both]
    if tree.depth > depth:
        # An unsplit node sends every row right: its class stands in the rightmost leaf below it.
        out["label"] = tree.label[np.arange(1, 2**depth + 1) * 2 ** (tree.depth - depth) - 1]
    else:
        out["label"] = np.repeat(tree.label, 2 ** (depth - tree.depth))
    return out


def in_model(tree: LeafyTree, data: Data, arrays: dict[str, Any]) -> LeafyTree:
    """The tree with ``arrays`` of another depth in place of its own, and with the data's features and classes.

    Raises
    ------
    TreeNotAdmitted
        A leaf in use predicts a class that the data lacks.
    """
    depth = len(arrays["label"]).bit_length() - 1
    tree = type(tree)(depth, tree.classes, data.feature_names, data.scaling, **arrays)
    position = {c: k for k, c in enumerate(data.classes)}
    known = np.array([position.get(c, -1) for c in tree.classes], dtype=np.int64)[tree.label]
    if (known < 0).any():
        path = tree._route(rows_for(tree, data))
        if ((leaf_sizes(path) > 0) & (known < 0)).any():
            raise TreeNotAdmitted("A leaf of the tree predicts a class that the model's data does not have.")
        known = np.where(known < 0, 0, known)
    return replace(tree, classes=data.classes, label=known)


def require_same_features(tree: Any, data: Data) -> None:
    """Refuse a tree on another number of features, or on features of other names where both have some.

    Raises
    ------
    TreeNotAdmitted
    """
    theirs, ours = tree.feature_names, data.feature_names
    if len(theirs) != len(ours):
        raise TreeNotAdmitted(
            f"The tree was trained on {len(theirs)} features and the model's data has {len(ours)}."
        )
    named = not any(isinstance(names, (MadeUpNames, UndecidedNames)) for names in (theirs, ours))
    if named and tuple(theirs) != tuple(ours):
        j = next(j for j, (a, b) in enumerate(zip(theirs, ours, strict=True)) if a != b)
        raise TreeNotAdmitted(
            f"Feature {j + 1} of the tree is {theirs[j]!r} and that of the model's data {ours[j]!r}. Build the model on "
            "X[list(tree.feature_names)], or on X.to_numpy() where the features are the same."
        )


def require_leaf_sizes(path: IntArray, n_min: int) -> IntArray:
    """Rows in each leaf (2^D,), refused where a leaf in use is smaller than N_min.

    Raises
    ------
    TreeNotAdmitted
    """
    sizes = leaf_sizes(path)
    small = (sizes > 0) & (sizes < n_min)
    if small.any():
        k = int(np.argmax(small))
        raise TreeNotAdmitted(
            f"Leaf {k + len(sizes)} of the tree holds {sizes[k]} training rows, and n_min asks for {n_min}."
        )
    return sizes


def embed_leaves(model: pyo.ConcreteModel, data: Data, path: IntArray, label: IntArray, n_min: int) -> None:
    """Set ``assignment`` and ``leaf_label`` from each row's path and each leaf's class.

    Raises
    ------
    TreeNotAdmitted
        If a leaf in use is smaller than N_min, or predicts a class that the data lacks.
    """
    unknown = (require_leaf_sizes(path, n_min) > 0) & (label < 0)
    if unknown.any():
        raise TreeNotAdmitted(
            f"Leaf {int(np.argmax(unknown)) + len(label)} of the tree predicts a class that the model's data does not have."
        )
    set_leaf_assignment(model.assignment, path)
    set_leaf_labels(model.leaf_label, path, label, data)


def evaluate(
    tree: Any,
    X: FloatArray,
    y: IntArray,
    params: Any,
    weights: FloatArray,
    relabelled: BoolArray | None = None,
) -> Evaluation:
    """Errors and complexity of ``tree`` on rows ``X (n, p)`` in original units as an :class:`Evaluation`.

    ``y (n,)`` holds indices into the tree's classes. Where features are counted, an axis-parallel split has one, as one
    without any weight has.
    """
    complexity = float(tree.splits.sum())
    if params.complexity == "features" and isinstance(tree, ObliqueTree):
        complexity = float(np.maximum(1, np.count_nonzero(tree.a[tree.split], axis=1)).sum())
    M = tree.scaling.transform(X) if tree.routes_on_scaled else X
    wrong = (tree.class_index_at(tree._route(M), M) != y).astype(float)
    errors = float((weights * wrong).sum())
    factor = error_factor(y, weights, len(tree.classes), params.error_scale)
    terms = {"errors": errors * factor, "complexity": params.alpha * complexity}
    counts = {"errors": errors, "complexity": complexity, "wrong_rows": float(wrong.sum())}
    return Evaluation(terms["errors"] + terms["complexity"], terms, counts)


def as_oblique(tree: AxisTree) -> ObliqueTree:
    """The same tree, its splits written as weights of the features in original units."""
    a, b = tree.weights("original")
    unscaled = Scaling.identity(len(tree.feature_names))
    return ObliqueTree(tree.depth, tree.classes, tree.feature_names, unscaled, a, b, tree.splits, tree.label)


def normalise_oblique(tree: ObliqueTree, data: Data, params: Any) -> ObliqueTree:
    """The same tree in the model's depth, with the data's classes and scaling.

    Raises
    ------
    TreeNotAdmitted
        Of another kind or on other features, too deep, or a leaf in use predicts a class that the data lacks.
    """
    if not isinstance(tree, ObliqueTree):
        raise TreeNotAdmitted(f"The model takes trees with oblique splits, not {type(tree).__name__}.")
    require_same_features(tree, data)
    tree = rescaled(tree, data.scaling)
    return in_model(tree, data, to_depth(tree, params.depth))


def constant_oblique_tree(data: Data, params: Any) -> ObliqueTree:
    """The tree that predicts the majority class everywhere."""
    B = 2**params.depth - 1
    splits = np.zeros((B, data.p)), np.zeros(B), np.zeros(B, dtype=bool)
    return tree_on(data, ObliqueTree, params.depth, *splits, constant_labels(data, params.depth))


def constant_labels(data: Data, depth: int) -> IntArray:
    """The weighted majority class, for every leaf (2^D,)."""
    heaviest = np.argmax(class_weights(data.y, data.weights, data.K))
    return np.full(2**depth, heaviest, dtype=np.int64)


def add_objective(model: pyo.ConcreteModel, data: Data, params: Params, complexity: Any) -> None:
    """Add ``model.cost`` and ``model.objective``: Σ_t L_t (scaled) + α · complexity."""
    factor = error_factor(data.y, data.weights, data.K, params.error_scale)  # type: ignore[attr-defined]
    leaf = model.topology.tree.leaf
    model.cost = pyo.Expression(
        expr=factor * sum(model.leaf_label.L[t] for t in leaf) + params.alpha * complexity,  # type: ignore[attr-defined]
        doc="Σ_t L_t + α · complexity",
    )
    model.objective = pyo.Objective(expr=model.cost, doc="errors and complexity")


class LeafFormulation(Formulation):
    """What formulations share whose trees have a class at each leaf."""

    evaluate = staticmethod(evaluate)
    improve = staticmethod(with_majority_labels)
    assigned_path = staticmethod(leaf_path)
