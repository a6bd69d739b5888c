"""Hyperplanes with another weight for one feature, on tables where most features have few values.

There the best hyperplanes are often rules over a few features, such as 4 x₁ + 2 x₄ - 2 x₅ >= 3, with ties everywhere: linear SVMs
are far from them, and moving single samples to the other side leads nowhere, as none can move alone.
"""

from __future__ import annotations

import numpy as np

from ..formulations.base import FloatArray, IntArray

FEW_VALUES = 10  # of a feature
FACTORS = (0.0, 1.0, 2.0)  # of the other weights
# Of hyperplanes that are so much worse than the best (relative), one is drawn.
CHOSEN_WITHIN = 0.05


def features_of_few_values(X: FloatArray) -> IntArray:
    """The features of ``X (n, p)`` that have few values, at least two; none where most features have more."""
    values = np.array([len(np.unique(column)) for column in X.T])
    few = np.flatnonzero((values > 1) & (values <= FEW_VALUES))
    return few if 2 * len(few) >= X.shape[1] else few[:0]


def reweighted(X: FloatArray, features: IntArray, omega: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Vectors (k, p) that differ from ``omega (p,)`` in one of the features, by what sets two rows of ``X`` a margin apart.

    The other weights are kept, doubled, or dropped. None where the rows that were drawn do not differ.
    """
    values = X[rng.integers(len(X), size=(2, len(features))), features]
    apart = np.abs(values[0] - values[1])
    used, apart = np.tile(features[apart > 0], 2), apart[apart > 0]
    found = np.tile(omega * rng.choice(FACTORS), (len(used), 1))
    found[range(len(used)), used] += np.concatenate([2 / apart, -2 / apart])
    return found


def drawn(cost: FloatArray, rng: np.random.Generator) -> int:
    """The number of one of the best."""
    return int(np.argmin(cost * (1 + CHOSEN_WITHIN * rng.exponential(size=len(cost)))))
