"""Every big-M of the SVM models, computed from the data, each with its proof.

UB stands for the objective of any feasible tree (a start, or the best constant classifier).
"""

from __future__ import annotations

import warnings

import numpy as np

from ..base import FloatArray

# A tree whose objective equals UB must stay feasible when both are computed in floating point.
SLACK = 1e-6


def farthest(X: FloatArray, norm: str = "l2") -> FloatArray:
    """max_h ‖x_i - x_h‖_* for every row (n,), in the dual of ``norm`` ("l2": Euclidean, "l1": maximum norm)."""
    if norm == "l1":  # the farthest value of a feature is its least or its greatest
        return np.maximum(X - X.min(axis=0), X.max(axis=0) - X).max(axis=1, initial=0.0)
    n, out = len(X), np.zeros(len(X))
    # Centred, no row is longer than the largest distance, of which the farthest row of any is half away at least.
    X = X - X.mean(axis=0)
    squares = (X**2).sum(axis=1)
    chunk = max(1, int(4e6 // max(1, n)))
    for first in range(0, n, chunk):
        part = X[first : first + chunk]
        # ‖x_h‖² - 2 x_i'x_h says which row is farthest; the difference itself says how far.
        other = X[(squares - 2 * (part @ X.T)).argmax(axis=1)]
        out[first : first + chunk] = np.sqrt(((part - other) ** 2).sum(axis=1))
    return out


def weight_bound(upper_bound: float, margin: str) -> float:
    """W >= ‖ω_t‖ at every tree with an objective of at most UB.

    ``margin`` names the margin term. "largest" (OCTSVM): δ <= UB and ½‖ω_t‖ <= δ give W = 2 UB. "squared"
    (RE-SVM, l2): ½‖ω‖² <= UB gives W = √(2 UB). "norm" (RE-SVM, l1): ‖ω‖₁ <= UB.
    """
    bound = upper_bound * (1 + SLACK)
    return {"largest": 2 * bound, "squared": float(np.sqrt(2 * bound)), "norm": bound}[margin]


def score_bound(W: float, distance: FloatArray) -> FloatArray:
    """M_i >= |s_it| at some optimum, at every node: 1 + W·max_h ‖x_i - x_h‖.

    If two rows have scores of different sign, |s_i| <= |s_i - s_h| = |ω'(x_i - x_h)| <= W ‖x_i - x_h‖ for an h
    on the other side. If all rows have scores of one sign and all exceed 1, moving ω_0 until the smallest is 1
    changes no side and raises no error; then |s_i| <= 1 + |s_i - s_h| for the row h with |s_h| = 1.

    Rows of a user's own may forbid that move: :mod:`octsvm.solving.excluded_trees`.
    """
    return 1.0 + W * distance


def error_bound(upper_bound: float, c1: float, weights: FloatArray, M: FloatArray) -> FloatArray:
    """Bound on e_it: the term w_i c1 e_it alone is at most UB, and e = 1 - y s <= 1 + M_i."""
    cost = c1 * weights
    with np.errstate(divide="ignore"):
        by_cost = np.where(cost > 0, upper_bound * (1 + SLACK) / np.where(cost > 0, cost, 1.0), np.inf)
    return np.minimum(1.0 + M, np.maximum(by_cost, 0.0))


def intercept_bound(W: float, M: FloatArray, centred: FloatArray, norm: str = "l2") -> float:
    """Bound on the intercept for centred rows: |ω_0| <= |s_i| + ‖ω‖ ‖x_i - x̄‖_* for any row i."""
    size = np.sqrt((centred**2).sum(axis=1)) if norm == "l2" else np.abs(centred).max(axis=1, initial=0.0)
    return float((M + W * size).min())


def chosen_score_bound(proved: FloatArray, big_m: float | None) -> FloatArray:
    """The proved M_i, or the caller's number for all rows, with a warning where it is not the proved one."""
    if big_m is None:
        return proved
    largest = float(proved.max())
    if big_m < largest:
        warnings.warn(
            f"big_m={big_m:g} is below the proved bound {largest:g} for this data, so the best tree may be cut off "
            "and a bound from this model is not a bound on all trees. Leave big_m=None for the proved values.",
            stacklevel=2,
        )
    elif big_m > 10 * largest:
        warnings.warn(
            f"big_m={big_m:g} is far above the proved bound {largest:g}: the model is weaker for it, and a solver's "
            f"integrality tolerance of 1e-6 lets routing and relabelling slip by {big_m * 1e-6:g}. "
            "Leave big_m=None for the proved values, unless rows of your own need larger ones.",
            stacklevel=2,
        )
    return np.full_like(proved, float(big_m))
