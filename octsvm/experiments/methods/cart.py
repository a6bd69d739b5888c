"""CART: scikit-learn's DecisionTreeClassifier with cost-complexity pruning."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from ..cells import Fit, PartData
from ..protocol import MethodSpec


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


def fit_grid(
    data: PartData,
    settings: Sequence[Mapping[str, float]],
    spec: MethodSpec,
    seed: int,
    skip: Collection[int],
) -> Iterator[tuple[int, Fit]]:
    """Fit ``alpha`` of every point of the grid that is not in ``skip``."""
    for index, setting in enumerate(settings):
        if index in skip:
            continue
        began = time.perf_counter()
        tree = classifier(data, setting["alpha"], spec, seed).fit(data.X, data.y)
        seconds = time.perf_counter() - began

        def predict(X: NDArray[np.float64], tree: DecisionTreeClassifier = tree) -> NDArray[np.int64]:
            return np.asarray(tree.predict(X), dtype=np.int64)

        yield index, Fit(predict, seconds, status="heuristic", splits=tree.get_n_leaves() - 1)
