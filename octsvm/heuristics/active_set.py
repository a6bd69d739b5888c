"""Linear machines by a dual active-set method, DAQP (Arnström, Bemporad and Axehill, IEEE Transactions on Automatic Control, 2022).

What decides a machine is a handful of rows, whatever their number. On tables of a hundred rows an active-set method is
there after some 50 µs, and exactly; SMO takes ten times as long, and where errors are dear it ends far from the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..formulations.base import BoolArray, FloatArray

CURVATURE = 1e-3  # of ω_0, which has no price: the method wants a strictly convex objective
MISSED = 1e-6  # by which a margin may be missed before the vector is scaled up for it
SOFT = 8  # DAQP's number for rows that may be violated
BEND = 1e3  # an error e costs e²/(2·BEND) more than it should: the method wants that strictly convex, too
MOST_STEPS = 300  # more are needed where thousands would be
UNBOUNDED = 1e30


@dataclass(frozen=True)
class Machine:
    """ω (p,), ω_0 and the multipliers (n,) of the rows in ½‖ω‖², none below 0."""

    omega: FloatArray
    omega0: float
    multipliers: FloatArray


@cache
def _curvature(p: int) -> FloatArray:
    H = np.eye(p + 1)
    H[p, p] = CURVATURE
    return H


def _problem(X: FloatArray, over: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Curvature, the rows' coefficients for ≤, and their middle, which they are moved to."""
    n, p = X.shape
    middle: FloatArray = np.add.reduce(X) / n
    sign = 1.0 - 2.0 * over
    A = np.empty((n, p + 1))
    np.multiply(X - middle, sign[:, None], out=A[:, :p])
    A[:, p] = sign
    return _curvature(p).copy(), A, middle


def shortest(X: FloatArray, over: BoolArray, bound: FloatArray, longest: float = np.inf) -> Machine | None:
    """The shortest ω with ω'x + ω_0 ≥ bound > 0 for the rows ``over``, and ≤ -bound for the others; None if above ``longest``.

    No vector at all counts as one that is too long. Rows ``X (n, p)``, ``over`` and ``bound (n,)``.
    """
    import daqp

    n, p = X.shape
    if over.all() or not over.any():
        most = float(bound.max(initial=0.0))
        return Machine(np.zeros(p), most if over.any() else -most, np.zeros(n))
    H, A, middle = _problem(X, over)
    enough = longest**2 / 2 if longest < 1e15 else UNBOUNDED
    x, _, status, info = daqp.solve(H, np.zeros(p + 1), A, -bound, fval_bound=enough)
    if status != 1:
        return None
    kept = float(((A @ x) / -bound).min())
    if kept < 1 - MISSED:
        return None
    x = np.asarray(x) / min(1.0, kept)
    return Machine(x[:p], float(x[p] - x[:p] @ middle), np.maximum(0.0, np.asarray(info["lam"])))


def least_violation(
    X: FloatArray, over: BoolArray, bound: FloatArray, most: FloatArray, steps: int = MOST_STEPS
) -> tuple[float, FloatArray, float] | None:
    """The least ½‖ω‖² + Σ most·violation of ω'x + ω_0 ≥ bound where ``over``, and ≤ bound elsewhere, with its ω and ω_0.

    None after as many ``steps``.
    """
    import daqp

    n, p = X.shape
    H, A, middle = _problem(X, over)
    above = np.where(over, -bound, bound)
    model: Any = daqp.Model()
    model.setup(H, np.zeros(p + 1), A, above, np.full(n, -UNBOUNDED), np.full(n, SOFT, dtype=np.int32))
    model.settings = {"iter_limit": steps}
    model.soft_weights(w_u=most, rho_u=np.full(n, BEND))
    x, _, status, _ = model.solve()
    if status not in (1, 2):
        return None
    x = np.asarray(x)
    omega = x[:p]
    paid = float(most @ np.maximum(0.0, A @ x - above))
    return float(omega @ omega) / 2 + paid, omega, float(x[p] - omega @ middle)
