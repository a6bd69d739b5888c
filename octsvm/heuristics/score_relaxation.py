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
from ..formulations.bounds.scores import DualBound, Envelope, Intervals, ScoreCosts
from .active_set import SOFT, UNBOUNDED

# Of ω_0 about its last value, which the objective lacks: the method needs a strictly convex one.
CURVATURE = 1e-6
# Until that takes less than this from the bound, relative to the cost of interest.
PROXIMAL_STEPS, PRECISION = 3, 1e-6
BEND = 1e6  # a violation v costs v²/(2·BEND) more than it should, for the same reason
MISSED = 1e-3  # by which, at most, a margin is taken to be missed for that
PRICE = 1e3  # times the cost of interest, of leaving an interval by 1; hard rows would say nothing where none is left
MOST_ITERATIONS = 20_000
DUAL_TOL = 1e-9  # with DAQP's own 1e-12 it cycles where many samples are at their margins at once
NORM_STEPS, NORM_CLOSE = 3, 0.3  # until the norm that the margin was taken about is that of the hyperplane
PRECISE_STEPS, PRECISE = 20, 1e-3
LEAST_NORM = 1e-3
FAR = 8.0  # times an end of its interval


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
        self._kinks = 2 if costs.jumps else 1  # rows of a group for its kinks, two each
        copies = self._kinks + 1
        self._A = np.ascontiguousarray(np.tile(np.column_stack([costs.X, np.ones(G)]), (copies, 1)))
        self._soft = np.full(copies * G, SOFT, dtype=np.int32)
        self._bend = np.full(copies * G, BEND)
        self._price = np.full(G, PRICE * (1.0 + most))
        self._about, self._precise = 0.0, PRECISION * (1e-3 + most)
        self._G, self._p = G, p
        self._norm = 1.0  # of the last hyperplane

    def solve(self, box: Intervals, envelope: Envelope | None = None, precise: bool = False) -> Relaxed:
        """Solve it on intervals (G,), as far as the time goes; its bound holds in any case.

        ``envelope`` is that of the intervals, where it is known.
        """
        if envelope is None:
            envelope = self.costs.envelope(box.low, box.high)
        if self.costs.squared:
            return self._solve(box, envelope, 1.0)
        # ½‖ω‖ has the gradient of ‖ω‖²/(4v) where v is its norm.
        best: Relaxed | None = None
        steps, close = (PRECISE_STEPS, PRECISE) if precise else (NORM_STEPS, NORM_CLOSE)
        for _ in range(steps):
            v = max(LEAST_NORM, min(max(self._norm, box.shortest / FAR), box.longest * FAR))
            found = self._solve(box, envelope, 2 * v)
            norm = max(LEAST_NORM, float(np.sqrt(found.omega @ found.omega)))
            # A norm beyond an end of its interval is brought back to it, as by a multiplier.
            wanted = min(max(norm, box.shortest), box.longest)
            self._norm = norm if wanted == norm else v * wanted / norm
            best = found if best is None or found.bound.value > best.bound.value else best
            if abs(self._norm - v) <= close * v:
                break
        assert best is not None
        return best

    def forget(self) -> None:
        """Start the next solution from nothing."""
        self._model, self._about = None, 0.0

    def improved(self, found: Relaxed, box: Intervals, envelope: Envelope | None = None) -> Relaxed:
        """The better of a solution and a more precise one, where that takes more than one program."""
        if self.costs.squared:
            return found
        again = self.solve(box, envelope, precise=True)
        return again if again.bound.value > found.bound.value else found

    def plane(self, found: Relaxed) -> Plane:
        """The hyperplane of a solution; where that is cheaper, scaled up until samples that the bend left just short of it keep the margin."""
        omega, omega0 = found.omega, found.omega0
        plane = Plane(self.costs.objective(omega, omega0), omega, omega0)
        scores = np.abs(self.costs.X @ omega + omega0)
        short = scores[(scores > 1 - MISSED) & (scores < 1)]
        if not len(short):
            return plane
        omega, omega0 = omega / short.min(), omega0 / float(short.min())
        return min(plane, Plane(self.costs.objective(omega, omega0), omega, omega0), key=lambda one: one.cost)

    def _solve(self, box: Intervals, envelope: Envelope, scale: float) -> Relaxed:
        """With ½‖ω‖² + ``scale`` times the rest as the objective."""
        self.solves += 1
        warm = self._model is not None
        G, p, low, high = self._G, self._p, box.low, box.high
        total = envelope.slope.sum() * scale
        slope = np.append(scale * (envelope.slope @ self.costs.X), total - CURVATURE * self._about)
        lower, upper = [np.maximum(envelope.low, -UNBOUNDED)], [np.minimum(envelope.high, UNBOUNDED)]
        dear, dearer = [envelope.below], [envelope.above]
        if self._kinks == 2:
            lower.append(np.full(G, -UNBOUNDED))
            upper.append(np.minimum(envelope.further, UNBOUNDED))
            dear.append(np.zeros(G))
            dearer.append(envelope.beyond)
        rows = np.concatenate([*lower, low]), np.concatenate([*upper, high])
        if self._model is None:
            self._start(slope, *rows)
        else:
            self._model.update(f=slope, bupper=rows[1], blower=rows[0])
        self._model.soft_weights(
            w_l=scale * np.concatenate([*dear, self._price]),
            w_u=scale * np.concatenate([*dearer, self._price]),
            rho_l=self._bend,
            rho_u=self._bend,
        )
        self._model.settings = {"time_limit": max(1e-3, self._left())}
        for _ in range(PROXIMAL_STEPS):
            x, _, status, info = self._model.solve()
            if status < 0 or not np.isfinite(x[p]):
                self.forget()
                if warm and self._left() > 0:  # from where it ended last it cycled: once more from nothing
                    return self._solve(box, envelope, scale)
                break
            off, self._about = CURVATURE * abs(float(x[p]) - self._about), float(x[p])
            if off * float(self.costs.share @ (high - low)) <= self._precise * scale:
                break
            slope[p] = total - CURVATURE * self._about
            self._model.update(f=slope)
        dual = np.nan_to_num(np.array(info["lam"]), posinf=0.0, neginf=0.0).reshape(-1, G) / scale
        theta = _balanced(envelope, dual[0], dual[1] if self._kinks == 2 else 0.0, dual[-1])
        return Relaxed(theta, self.costs.dual_bound(theta, box), np.array(x[:p]), float(x[p]))

    def _start(self, slope: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        import daqp

        H = np.eye(self._p + 1)
        H[-1, -1] = CURVATURE
        self._model = daqp.Model()
        self._model.setup(H, slope, self._A, upper, lower, self._soft)
        self._model.settings = {"iter_limit": MOST_ITERATIONS, "dual_tol": DUAL_TOL}


def _balanced(
    envelope: Envelope, soft: FloatArray, further: FloatArray | float, hard: FloatArray
) -> FloatArray:
    """Multipliers (G,) that sum to 0, without what the bend adds to those of kinks that are passed.

    The sum is made up at the group whose multiplier is farthest from where it would leave its kink or the end of its
    interval; there it takes nothing from the bound, to first order.
    """
    soft = np.clip(soft, -envelope.below, envelope.above)
    beyond = np.clip(further, 0.0, envelope.beyond)
    theta = envelope.slope + soft + beyond + hard
    room = np.maximum(np.minimum(soft + envelope.below, envelope.above - soft), np.abs(hard))
    most, over = int(room.argmax()), float(theta.sum())
    if room[most] > abs(over):
        theta[most] -= over
    return theta
