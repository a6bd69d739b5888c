"""What each feature does in a fitted tree."""

from __future__ import annotations

import numpy as np

from ..formulations.base import FloatArray
from ..formulations.heap import children
from ..formulations.trees import KernelTree, Tree


def feature_importances(tree: Tree, node_weights: FloatArray) -> FloatArray:
    """Mean decrease of Gini impurity (p,), each split's shared out by the absolute weights of the scaled features.

    ``node_weights (nodes, K)`` is the training weight of each class at each node, in heap order.

    Raises
    ------
    AttributeError
        The tree has a kernel other than "linear".
    """
    if isinstance(tree, KernelTree) and not tree.weighs_features:
        raise AttributeError(
            f"feature_importances_: the splits of this tree have no weights of features, only of samples (kernel "
            f"{tree.kernel.describe()}). sklearn.inspection.permutation_importance asks any classifier."
        )
    weights = np.abs(tree.weights("scaled")[0])  # type: ignore[attr-defined]
    found = np.zeros(weights.shape[1])
    for t in (np.flatnonzero(tree.splits) + 1).tolist():
        gain = _impurity(node_weights[t - 1]) - sum(_impurity(node_weights[c - 1]) for c in children(t))
        if gain > 0 and weights[t - 1].any():
            found += gain * weights[t - 1] / weights[t - 1].sum()
    total = found.sum()
    return found / total if total > 0 else found


def _impurity(weights: FloatArray) -> float:
    """Gini impurity of a node with these ``weights (K,)``, times its weight."""
    total = float(weights.sum())
    return total - float(weights @ weights) / total if total > 0 else 0.0
