"""The decision path of a row through a tree as it is drawn: from the root to the leaf where nothing splits any more."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..formulations.base import FloatArray, IntArray
from ..formulations.trees import MarginTree, Tree


def levels(tree: Tree) -> int:
    """Levels of nodes, leaves included; the leaves of a margin tree are the two sides of its last level's nodes."""
    return tree.depth + (2 if isinstance(tree, MarginTree) else 1)


def decision_paths(tree: Tree, X: Any) -> IntArray:
    """Heap numbers of the nodes that each row of ``X (m, p)`` visits (m, levels), 0 behind its leaf."""
    M = tree._matrix(X)
    path = tree._route(M)
    if isinstance(tree, MarginTree):
        last = path[:, -1]
        side = np.zeros(len(M), dtype=np.int64)
        for t in np.unique(last):
            rows = np.flatnonzero(last == t)
            side[rows] = tree._goes_right(int(t), M[rows])
        path = np.column_stack([path, 2 * last + side])
    # Unsplit nodes send their rows on in the heap, but not in the picture.
    goes_on = np.logical_and.accumulate(tree.splits[path[:, :-1] - 1], axis=1)
    path[:, 1:][~goes_on] = 0
    return path


def weights_at_nodes(tree: Tree, X: Any, position: IntArray, weights: FloatArray, k: int) -> FloatArray:
    """Weight of the rows of each of ``k`` classes (nodes, k) that come by each node; line t - 1 belongs to node t."""
    total = np.zeros((2 ** levels(tree), k))
    path = decision_paths(tree, X)
    for level in range(path.shape[1]):
        np.add.at(total, (path[:, level], position), weights)
    return total[1:]


def leaf_scores(tree: MarginTree, X: Any, leaf: IntArray) -> FloatArray:
    """Score (m,) at the split that decides on each row: the last one on its path to its ``leaf (m,)``."""
    M = tree._matrix(X)
    score = np.full(len(M), tree.omega0[0])
    for t in np.unique(leaf[leaf > 1] // 2):
        rows = np.flatnonzero(leaf // 2 == t)
        score[rows] = tree.node_score(int(t), M[rows])
    return score
