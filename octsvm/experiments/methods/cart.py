"""CART: scikit-learn's DecisionTreeClassifier with cost-complexity pruning."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sklearn.tree import DecisionTreeClassifier

from ..cells import Fit, PartData
from ..protocol import MethodSpec
from .one_by_one import one_by_one


def least_rows(data: PartData) -> int:
    """Rows that a leaf holds at least: the share of the training rows, rounded up, and never less than 1."""
    return max(1, math.ceil(data.min_samples_leaf * len(data.y) - 1e-9))


def classifier(data: PartData, alpha: float, spec: MethodSpec, seed: int) -> DecisionTreeClassifier:
    """CART with the limits of a part and a point of the grid, not fitted.

    ``alpha`` is scikit-learn's ``ccp_alpha`` as it is: the price of a leaf in *shares of impurity* (Gini, weighted by
    the share of rows), so that values above 0.5 leave the root only, and the grid of the paper acts in its lower half.
    """
    return DecisionTreeClassifier(
        max_depth=spec.fixed.get("depth"),
        min_samples_leaf=least_rows(data),
        ccp_alpha=alpha,
        random_state=seed % 2**32,
    )


@one_by_one
def fit_grid(data: PartData, setting: Mapping[str, float], spec: MethodSpec, seed: int) -> Fit:
    """Fit ``alpha`` of a point of the grid."""
    tree = classifier(data, setting["alpha"], spec, seed).fit(data.X, data.y)
    return Fit(tree.predict, 0.0, status="heuristic", splits=tree.get_n_leaves() - 1)
