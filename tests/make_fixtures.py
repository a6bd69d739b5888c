"""Makes tests/fixtures/*.json: optimal OCTs of depth 2 by exhaustive search, `python tests/make_fixtures.py`.

For every root split the best split of each side is found by cumulative class counts; no Pyomo, no models.
"""

from __future__ import annotations

import numpy as np
from places import FIXTURES
from sklearn.datasets import load_breast_cancer, load_wine

from octsvm.formulations.base import Scaling
from octsvm.formulations.trees import AxisTree

HERE = FIXTURES


def best_stump(X: np.ndarray, Y: np.ndarray, order: np.ndarray) -> tuple[int, int, float, int, int]:
    """Errors, feature, threshold and the two classes of the best single split (or none) of one-hot ``Y (n, K)``.

    ``order (n, p)`` sorts the columns of ``X (n, p)``.
    """
    n = len(X)
    total = Y.sum(axis=0)
    majority = int(np.argmax(total))
    best = (int(n - total.max()), -1, 0.0, majority, majority)
    if best[0] == 0:
        return best
    values = np.take_along_axis(X, order, axis=0)
    left = np.cumsum(Y[order], axis=0)[:-1]  # (n - 1, p, K)
    errors = n - left.max(axis=2) - (total - left).max(axis=2)
    errors[values[1:] == values[:-1]] = n
    if errors.size and errors.min() < best[0]:
        k, j = np.unravel_index(int(np.argmin(errors)), errors.shape)
        threshold = (values[k, j] + values[k + 1, j]) / 2
        best = (
            int(errors[k, j]),
            int(j),
            float(threshold),
            int(left[k, j].argmax()),
            int((total - left[k, j]).argmax()),
        )
    return best


def best_of_depth_two(X: np.ndarray, y: np.ndarray) -> tuple[int, AxisTree]:
    n, p = X.shape
    K = int(y.max()) + 1
    Y = np.eye(K, dtype=int)[y]
    order = np.argsort(X, axis=0, kind="stable")
    best: tuple = (n + 1,)
    for j in range(p):
        values = X[order[:, j], j]
        for k in np.flatnonzero(values[1:] > values[:-1]):
            side = np.zeros(n, dtype=bool)
            side[order[: k + 1, j]] = True
            stumps = []
            for rows in (side, ~side):
                position = np.cumsum(rows) - 1
                inside = position[order.T[rows[order.T]].reshape(p, -1).T]
                stumps.append(best_stump(X[rows], Y[rows], inside))
                if stumps[0][0] >= best[0]:
                    break
            if len(stumps) == 2 and stumps[0][0] + stumps[1][0] < best[0]:
                best = (stumps[0][0] + stumps[1][0], j, (values[k] + values[k + 1]) / 2, *stumps)
    errors, j, threshold, a, b = best
    tree = AxisTree(
        2,
        tuple(range(K)),
        tuple(f"x{i + 1}" for i in range(p)),
        Scaling.learn(X),
        np.array([j, a[1], b[1]]),
        np.array([threshold, a[2], b[2]]),
        np.array([a[3], a[4], b[3], b[4]]),
    )
    return errors, tree


if __name__ == "__main__":
    for name, load in (("wine", load_wine), ("breast_cancer", load_breast_cancer)):
        features, labels = load(return_X_y=True)
        found, optimal = best_of_depth_two(features, labels)
        print(name, found, int((optimal.predict(features) != labels).sum()))
        optimal.to_json(HERE / f"{name}_depth_2.json")
