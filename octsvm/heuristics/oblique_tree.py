"""Starts for OCT-H: top-down trees of linear SVMs, and axis-parallel trees whose gaps are wide enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..formulations import leaf_trees
from ..formulations.base import BoolArray, Data, FloatArray
from ..formulations.trees import ObliqueTree, tree_on
from . import axis_search
from .budget import Budget
from .linear_svm import fit_linear_svm

PATH = np.geomspace(1e-1, 1e5, 7)  # SVM costs C; features are in [0, 1]


def candidates(data: Data, params: Any, budget: Budget, seed: int) -> Iterator[ObliqueTree]:
    """Trees of SVMs over a path of C, then axis-parallel trees as oblique ones.

    In that order: the search for axis-parallel trees uses up whatever budget it gets.
    """
    for C in PATH:
        if budget.tick():
            return
        yield grow(data, params, float(C), budget)
    for tree in axis_search.candidates(data, params, budget, seed):
        yield tree_on(data, ObliqueTree, tree.depth, *tree.weights("scaled"), tree.splits, tree.label)


def grow(data: Data, params: Any, C: float, budget: Budget) -> ObliqueTree:
    """Split each node by an SVM of its heaviest class against the rest, in a gap of at least μ, while that pays and there is time."""
    depth, n_min = params.depth, params.leaf_size(data.n)
    B = 2**depth - 1
    a, b, split = np.zeros((B, data.p)), np.zeros(B), np.zeros(B, dtype=bool)
    factor = leaf_trees.error_factor(data.y, data.weights, data.K, params.error_scale)
    node = np.ones(data.n, dtype=np.int64)
    for t in range(1, B + 1):
        rows = node == t
        totals = leaf_trees.class_weights(data.y[rows], data.weights[rows], data.K)
        errors = totals.sum() - totals.max() if rows.any() else 0.0
        pays = (t == 1 or split[t // 2 - 1]) and factor * errors > params.alpha
        if pays and not budget.overdue():
            sign = np.where(data.y[rows] == np.argmax(totals), -1.0, 1.0)
            omega, omega0 = fit_linear_svm(data.X[rows], sign, data.weights[rows], C)
            place = threshold(data.X[rows] @ omega, -omega0, params.mu * np.abs(omega).sum(), n_min)
            if omega.any() and place is not None:
                a[t - 1], b[t - 1], split[t - 1] = omega, place, True
        right = np.where(split[t - 1], data.X @ a[t - 1] >= b[t - 1], True)
        node = np.where(rows, 2 * node + right, node)
    return leaf_trees.with_best_labels(data, ObliqueTree, depth, a, b, split)


def threshold(score: FloatArray, wanted: float, gap: float, n_min: int) -> float | None:
    """The middle of the gap of at least ``gap`` nearest to ``wanted`` that leaves n_min rows on both sides."""
    values = np.sort(score)
    wide: BoolArray = np.diff(values) >= gap * (1 + 1e-6) + 1e-12
    count = np.arange(1, len(values))
    wide &= (count >= n_min) & (len(values) - count >= n_min)
    if not wide.any():
        return None
    middles = (values[1:] + values[:-1])[wide] / 2
    return float(middles[np.argmin(np.abs(middles - wanted))])
