"""What the scores of RE-SVM's samples cost, and what a cost leaves of them, in plain numpy.

All a sample pays is a function of its score s = ω'x + ω_0 alone. Of class + it is

    f(s) = min(c1 max(0, 1 - s), c2 + c1 max(0, 1 + s))          (keep the label, or give it up)

and f(-s) of class -. Samples with equal features share their score: a group with weights a and b of the two classes
pays F(s) = a f(s) + b f(-s), so that RE-SVM is

    min ½‖ω‖² + Σ_g F_g(s_g)     s.t.  s_g = ω'x_g + ω_0,  low_g <= s_g <= high_g

without binaries and without big-M. F is piecewise linear; where the two parts of f meet (``switch``) it is concave, so
on an interval it and its convex envelope have their kinks at the ends, -1 and 1.

**Bounds.** For any θ (G,), with r = Σ θ_g and s_g = ω'x_g + ω_0 multiplied by θ_g, weak duality gives

    ½‖ω‖² + Σ F_g(s_g) >= -½‖Σ θ_g x_g‖² + min_{ω_0} r ω_0 + Σ_g min_{low <= s <= high} (F_g(s) - θ_g s)

whose minima are at kinks: a bound for every θ, however it was found. Left to itself, the last minimum of one group says
which of its scores a tree up to a given cost can have (:meth:`ScoreCosts.admitted`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..base import FloatArray, IntArray

ROUNDING = 1e-9  # relative: by that much intervals are left wider than computed


class Envelope(NamedTuple):
    """The convex envelope of each F on its interval, up to a constant (all arrays (G,)).

    slope·s + below·max(0, low - s) + above·max(0, s - high), where an infinite ``low`` or ``high`` stands for none.
    """

    slope: FloatArray
    low: FloatArray
    below: FloatArray
    high: FloatArray
    above: FloatArray


class DualBound(NamedTuple):
    """A lower bound on the whole cost, what each group's part (G,) of it is, and the larger of its values at both ends."""

    value: float
    parts: FloatArray
    ends: FloatArray


@dataclass(frozen=True, eq=False)
class ScoreCosts:
    """RE-SVM's cost as a function of the scores of groups of samples with equal features.

    Attributes
    ----------
    X : ndarray of shape (G, p)
        Features of each group, centred.
    center : ndarray of shape (p,)
        What was subtracted from them.
    plus, minus : ndarray of shape (G,)
        Weights of the samples of class + and class -.
    group : ndarray of int, shape (n,)
        The group of each sample.
    c1, c2 : float
        Cost of a unit of error, and of a label that is given up.
    """

    X: FloatArray
    center: FloatArray
    plus: FloatArray
    minus: FloatArray
    group: IntArray
    c1: float
    c2: float

    @classmethod
    def of(cls, X: FloatArray, sign: FloatArray, weights: FloatArray, c1: float, c2: float) -> ScoreCosts:
        """Of rows ``X (n, p)`` with labels ``sign (n,)`` of -1 and +1 and ``weights (n,)``."""
        rows, group = np.unique(X, axis=0, return_inverse=True)
        group = np.asarray(group, dtype=np.int64).ravel()
        plus, minus = (
            np.bincount(group, weights=np.where(side, weights, 0.0), minlength=len(rows)).astype(np.float64)
            for side in (sign > 0, sign < 0)
        )
        center = X.mean(axis=0)
        return cls(rows - center, center, plus, minus, group, float(c1), float(c2))

    @cached_property
    def share(self) -> FloatArray:
        """The share (G,) of the samples that is in each group."""
        return np.bincount(self.group, minlength=len(self.X)) / len(self.group)

    @property
    def switch(self) -> float:
        """The score below which a sample of class + gives up its label; of class -, above its negative."""
        if self.c1 == 0:
            return 0.0  # nothing costs anything: any will do
        return 1 - self.c2 / self.c1 if self.c2 >= 2 * self.c1 else -self.c2 / (2 * self.c1)

    @cached_property
    def places(self) -> tuple[IntArray, FloatArray]:
        """Where labels are given up: groups, and the score of each at which its samples of one class change over."""
        sides = ((self.plus, self.switch), (self.minus, -self.switch))
        group = np.concatenate([np.flatnonzero(weight > 0) for weight, _ in sides])
        return group, np.concatenate([np.full(int((weight > 0).sum()), at) for weight, at in sides])

    def of_score(self, s: FloatArray) -> FloatArray:
        """F at scores ``s (..., G)``."""
        c1, c2 = self.c1, self.c2
        over, under = c1 * np.maximum(0.0, 1.0 - s), c1 * np.maximum(0.0, 1.0 + s)
        return self.plus * np.minimum(over, c2 + under) + self.minus * np.minimum(under, c2 + over)

    def objective(self, omega: FloatArray, omega0: float) -> float:
        """The cost of ω (p,) and ω_0, which belongs to centred rows."""
        return float(omega @ omega) / 2 + float(self.of_score(self.X @ omega + omega0).sum())

    def envelope(self, low: FloatArray, high: FloatArray) -> Envelope:
        """Convex envelopes on [low, high] (..., G)."""
        b, c = np.clip(-1.0, low, high), np.clip(1.0, low, high)
        fa, fb, fc, fd = self.of_score(np.stack([low, b, c, high]))
        # A point is a kink where it lies below every chord from a point on its left to one on its right.
        b_kink = (b > low) & (b < high) & (fb < _chord(low, fa, high, fd, b))
        b_kink &= (c >= high) | (fb < _chord(low, fa, c, fc, b))
        c_kink = (c > low) & (c < high) & (fc < _chord(low, fa, high, fd, c))
        c_kink &= (b <= low) | (fc < _chord(b, fb, high, fd, c))
        left, f_left = np.where(b_kink, b, low), np.where(b_kink, fb, fa)
        right, f_right = np.where(c_kink, c, high), np.where(c_kink, fc, fd)
        slope = _slope(left, f_left, right, f_right)
        return Envelope(
            slope,
            np.where(b_kink, b, -np.inf),
            np.where(b_kink, np.maximum(0.0, slope - _slope(low, fa, left, f_left)), 0.0),
            np.where(c_kink, c, np.inf),
            np.where(c_kink, np.maximum(0.0, _slope(right, f_right, high, fd) - slope), 0.0),
        )

    def dual_bound(self, theta: FloatArray, low: FloatArray, high: FloatArray) -> DualBound:
        """No hyperplane whose scores lie in [low, high] (G,) costs less; for any ``theta`` (G,)."""
        points = np.stack([low, high, np.clip(-1.0, low, high), np.clip(1.0, low, high)])
        values = self.of_score(points) - theta * points
        parts = values.min(axis=0)
        pull, r = theta @ self.X, float(theta.sum())
        # ω_0 is a score less ω'x, whose mean over all samples is 0.
        omega0 = self.share @ low if r > 0 else self.share @ high
        value = float(parts.sum()) - float(pull @ pull) / 2 + r * float(omega0)
        return DualBound(value, parts, np.maximum(values[0], values[1]))

    def admitted(
        self, theta: FloatArray, bound: DualBound, low: FloatArray, high: FloatArray, cost: float
    ) -> tuple[FloatArray, FloatArray]:
        """The least and the greatest score (G,) that a tree of at most ``cost`` can have; crossed where there is none.

        ``bound`` is that of ``theta`` on [low, high].
        """
        most = cost - (bound.value - bound.parts)
        if (bound.ends <= most).all():
            return low, high
        kinks = np.array([-1.0, self.switch, -self.switch, 1.0])
        points = np.stack([low, *(np.clip(k, low, high) for k in np.sort(kinks)), high])
        value = self.of_score(points) - theta * points
        hair = ROUNDING * (1 + np.abs(most))
        fresh_low = _first_within(points, value, most + hair)
        fresh_high = -_first_within(-points[::-1], value[::-1], most + hair)
        width = ROUNDING * (1 + high - low)
        return np.maximum(low, fresh_low - width), np.minimum(high, fresh_high + width)


class ScoreProblem(NamedTuple):
    """A whole model as a function of scores: what they cost, and intervals (G,) that some best tree has its scores in."""

    costs: ScoreCosts
    low: FloatArray
    high: FloatArray


def _first_within(points: FloatArray, value: FloatArray, most: FloatArray) -> FloatArray:
    """The first place, from the left, where the function through ``points (K, G)`` is at most ``most`` (G,)."""
    within = value <= most
    k = within.argmax(axis=0)
    at = np.arange(len(most))
    previous = np.maximum(k - 1, 0)
    x0, x1, v0, v1 = points[previous, at], points[k, at], value[previous, at], value[k, at]
    drop = v0 - v1
    share = np.where(drop > 0, (v0 - most) / np.where(drop > 0, drop, 1.0), 0.0)
    found = np.where(k > 0, x0 + np.clip(share, 0.0, 1.0) * (x1 - x0), points[0])
    return np.where(within.any(axis=0), found, np.inf)


def _slope(x0: FloatArray, f0: FloatArray, x1: FloatArray, f1: FloatArray) -> FloatArray:
    wide = x1 > x0
    return np.where(wide, (f1 - f0) / np.where(wide, x1 - x0, 1.0), 0.0)


def _chord(x0: FloatArray, f0: FloatArray, x1: FloatArray, f1: FloatArray, x: FloatArray) -> FloatArray:
    """The line through two points, at ``x``, less a rounding error."""
    return f0 + _slope(x0, f0, x1, f1) * (x - x0) - 1e-12 * (1 + np.abs(f0) + np.abs(f1))
