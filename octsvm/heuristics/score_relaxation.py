"""RE-SVM's relaxation in scores, solved by a dual active-set method that starts from where it ended last.

With every F of :mod:`octsvm.formulations.bounds.scores` replaced by its convex envelope, RE-SVM is a quadratic program in
ω and ω_0 alone, with a soft row for the kinks of each group and a dear one for its interval. DAQP (Arnström, Bemporad and
Axehill, IEEE Transactions on Automatic Control, 2022) takes it in p + 1 dimensions; an interval that changes costs it a
few pivots. Nothing that it says is believed: its dual values are multipliers for a bound that is recomputed in numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..formulations.base import FloatArray
from ..formulations.bounds.scores import DualBound, Envelope, ScoreCosts

SOFT = 8  # DAQP's code for rows that may be violated
CURVATURE = (
    1e-6  # of ω_0 about its last value, which the objective lacks: the method needs a strictly convex one
)
PROXIMAL_STEPS, PRECISION = (
    3,
    1e-6,
)  # until that takes less than this from the bound, relative to the cost of interest
BEND = 1e6  # a violation v costs v²/(2·BEND) more than it should, for the same reason
PRICE = 1e3  # times the cost of interest, of leaving an interval by 1; hard rows would say nothing where none is left
UNBOUNDED = 1e30
MOST_ITERATIONS = 20_000


class Plane(NamedTuple):
    """A hyperplane on centred rows, ω (p,) and ω_0, and what it costs."""

    cost: float
    omega: FloatArray
    omega0: float


class Relaxed(NamedTuple):
    """What the relaxation on intervals came to: multipliers (G,), the bound they prove, and a hyperplane."""

    theta: FloatArray
    bound: DualBound
    omega: FloatArray
    omega0: float


class ScoreRelaxation:
    """The relaxation of one :class:`ScoreCosts`, for any intervals.

    ``most`` is about the largest cost of interest: where the intervals admit no hyperplane at all, the bound is far above.

    Attributes
    ----------
    solves : int
        How often it was solved.
    """

    def __init__(self, costs: ScoreCosts, seconds_left: Callable[[], float], most: float) -> None:
        G, p = costs.X.shape
        self.costs, self.solves = costs, 0
        self._left = seconds_left
        self._model: Any = None
        self._A = np.ascontiguousarray(np.tile(np.column_stack([costs.X, np.ones(G)]), (2, 1)))
        self._soft = np.full(2 * G, SOFT, dtype=np.int32)
        self._bend = np.full(2 * G, BEND)
        self._price = np.full(G, PRICE * (1.0 + most))
        self._about, self._precise = 0.0, PRECISION * (1e-3 + most)
        self._G, self._p = G, p

    def solve(self, low: FloatArray, high: FloatArray, envelope: Envelope | None = None) -> Relaxed:
        """Solve it on [low, high] (G,), as far as the time goes; its bound holds in any case.

        ``envelope`` is that of the intervals, where it is known.
        """
        self.solves += 1
        G, p = self._G, self._p
        if envelope is None:
            envelope = self.costs.envelope(low, high)
        slope = np.append(envelope.slope @ self.costs.X, envelope.slope.sum() - CURVATURE * self._about)
        lower = np.concatenate([np.maximum(envelope.low, -UNBOUNDED), low])
        upper = np.concatenate([np.minimum(envelope.high, UNBOUNDED), high])
        if self._model is None:
            self._start(slope, lower, upper)
        else:
            self._model.update(f=slope, bupper=upper, blower=lower)
        self._model.soft_weights(
            w_l=np.concatenate([envelope.below, self._price]),
            w_u=np.concatenate([envelope.above, self._price]),
            rho_l=self._bend,
            rho_u=self._bend,
        )
        self._model.settings = {"time_limit": max(1e-3, self._left())}
        for _ in range(PROXIMAL_STEPS):
            x, _, status, info = self._model.solve()
            if status < 0 or not np.isfinite(x[p]):
                self._model, self._about = None, 0.0  # start anew the next time
                break
            off, self._about = CURVATURE * abs(float(x[p]) - self._about), float(x[p])
            if off * float(self.costs.share @ (high - low)) <= self._precise:
                break
            slope[p] = envelope.slope.sum() - CURVATURE * self._about
            self._model.update(f=slope)
        dual = np.nan_to_num(np.array(info["lam"]), posinf=0.0, neginf=0.0)
        theta = _balanced(envelope, dual[:G], dual[G:])
        return Relaxed(theta, self.costs.dual_bound(theta, low, high), np.array(x[:p]), float(x[p]))

    def _start(self, slope: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        import daqp

        H = np.eye(self._p + 1)
        H[-1, -1] = CURVATURE
        self._model = daqp.Model()
        self._model.setup(H, slope, self._A, upper, lower, self._soft)
        self._model.settings = {"iter_limit": MOST_ITERATIONS}


def _balanced(envelope: Envelope, soft: FloatArray, hard: FloatArray) -> FloatArray:
    """Multipliers (G,) that sum to 0, without what the bend adds to those of kinks that are passed.

    The sum is made up at the group whose multiplier is farthest from where it would leave its kink or the end of its
    interval; there it takes nothing from the bound, to first order.
    """
    soft = np.clip(soft, -envelope.below, envelope.above)
    theta = envelope.slope + soft + hard
    room = np.maximum(np.minimum(soft + envelope.below, envelope.above - soft), np.abs(hard))
    most, over = int(room.argmax()), float(theta.sum())
    if room[most] > abs(over):
        theta[most] -= over
    return theta
