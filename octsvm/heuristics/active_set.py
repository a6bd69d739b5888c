"""Linear SVMs by a dual active-set method, DAQP (Arnström, Bemporad and Axehill, IEEE Transactions on Automatic Control, 2022).

A handful of rows are support vectors, however many there are. On tables of a hundred rows an active-set method takes some
50 µs and is exact; SMO takes ten times as long, and with a large penalty of errors it ends far from the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..formulations.base import BoolArray, FloatArray

CURVATURE = 1e-3  # of ω_0, which the objective lacks: the method needs a strictly convex one
MISSED = 1e-6  # by which a margin may be missed; a solution is scaled up to keep it, and refused beyond
SOFT = 8  # DAQP's code for constraints that may be violated
BEND = 1e3  # an error e costs e²/(2·BEND) more than it should, for the same reason
MOST_ITERATIONS = 300  # where they do not suffice, thousands rarely do
UNBOUNDED = 1e30


@dataclass(frozen=True)
class HardMarginSVM:
    """ω (p,), ω_0 and the dual values (n,) of the rows with the objective ½‖ω‖², none below 0."""

    omega: FloatArray
    omega0: float
    dual_values: FloatArray


@cache
def _curvature(p: int) -> FloatArray:
    H = np.eye(p + 1)
    H[p, p] = CURVATURE
    return H


def _problem(X: FloatArray, over: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Hessian, the rows' coefficients for ≤ about their mean, and that mean."""
    n, p = X.shape
    mean: FloatArray = np.add.reduce(X) / n
    sign = 1.0 - 2.0 * over
    A = np.empty((n, p + 1))
    np.multiply(X - mean, sign[:, None], out=A[:, :p])
    A[:, p] = sign
    return _curvature(p).copy(), A, mean


def minimum_norm(
    X: FloatArray, over: BoolArray, bound: FloatArray, largest: float = np.inf
) -> HardMarginSVM | None:
    """The ω of least norm with ω'x + ω_0 ≥ bound > 0 for the rows ``over``, and ≤ -bound for the others; None above ``largest``.

    None also where there is no such ω. Rows ``X (n, p)``, ``over`` and ``bound (n,)``.
    """
    import daqp

    n, p = X.shape
    if over.all() or not over.any():
        most = float(bound.max(initial=0.0))
        return HardMarginSVM(np.zeros(p), most if over.any() else -most, np.zeros(n))
    H, A, mean = _problem(X, over)
    enough = largest**2 / 2 if largest < 1e15 else UNBOUNDED
    x, _, status, info = daqp.solve(H, np.zeros(p + 1), A, -bound, fval_bound=enough)
    if status != 1:
        return None
    kept = float(((A @ x) / -bound).min())
    if kept < 1 - MISSED:
        return None
    x = np.asarray(x) / min(1.0, kept)
    return HardMarginSVM(x[:p], float(x[p] - x[:p] @ mean), np.maximum(0.0, np.asarray(info["lam"])))


def least_violation(
    X: FloatArray, over: BoolArray, bound: FloatArray, penalty: FloatArray, iterations: int = MOST_ITERATIONS
) -> tuple[float, FloatArray, float] | None:
    """The least ½‖ω‖² + Σ penalty·violation of ω'x + ω_0 ≥ bound where ``over``, and ≤ bound elsewhere, with its ω and ω_0.

    None where as many ``iterations`` do not suffice.
    """
    import daqp

    n, p = X.shape
    H, A, mean = _problem(X, over)
    above = np.where(over, -bound, bound)
    model: Any = daqp.Model()
    model.setup(H, np.zeros(p + 1), A, above, np.full(n, -UNBOUNDED), np.full(n, SOFT, dtype=np.int32))
    model.settings = {"iter_limit": iterations}
    model.soft_weights(w_u=penalty, rho_u=np.full(n, BEND))
    x, _, status, _ = model.solve()
    if status not in (1, 2):
        return None
    x = np.asarray(x)
    omega = x[:p]
    paid = float(penalty @ np.maximum(0.0, A @ x - above))
    return float(omega @ omega) / 2 + paid, omega, float(x[p] - omega @ mean)
