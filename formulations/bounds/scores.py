"""What the scores of RE-SVM's samples cost, and what a cost leaves of them, in plain numpy.

All a sample pays is a function of its score s = ω'x + ω_0 alone. Of class + it is

    f(s) = min(c1 max(0, 1 - s), c2 + c1 max(0, 1 + s))          (keep the label, or give it up)

and f(-s) of class -. Samples with equal features share their score: a group with weights a and b of the two classes
pays F(s) = a f(s) + b f(-s), so that RE-SVM is

    min ½‖ω‖² + Σ_g F_g(s_g)     s.t.  s_g = ω'x_g + ω_0,  low_g <= s_g <= high_g

without binaries and without big-M. F is piecewise linear; where the two parts of f meet (``switch``) it is concave, so
on an interval it and its convex envelope have their kinks at the ends, -1 and 1.

**Levels.** OCTSVM pays δ >= ½‖ω‖ in place of ½‖ω‖², and a sample that goes left (s < 0) or right at the root may cost more
below: ``left_pays`` and ``right_pays`` are added to F on the two sides of 0, where it then jumps. The norm lies in an interval
[shortest, longest], too.

**Bounds.** For any θ (G,), with r = Σ θ_g and s_g = ω'x_g + ω_0 multiplied by θ_g, weak duality gives

    m(‖ω‖) + Σ F_g(s_g) >= min_v (m(v) - v ‖Σ θ_g x_g‖) + min_{ω_0} r ω_0 + Σ_g min_{low <= s <= high} (F_g(s) - θ_g s)

with m(v) = ½v² or ½v, and the last minima are at kinks: a bound for every θ, however it was found. Left to itself, the last minimum of one group says
which of its scores a tree up to a given cost can have (:meth:`ScoreCosts.admitted`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..base import FloatArray, IntArray
from ..blocks import big_m

ROUNDING = 1e-9  # relative: by that much intervals are left wider than computed


class Envelope(NamedTuple):
    """The convex envelope of each F on its interval, up to a constant (all arrays (G,)).

    slope·s + below·max(0, low - s) + above·max(0, s - high) + beyond·max(0, s - further), where an infinite ``low``, ``high`` or
    ``further`` stands for none; only where costs jump there is a ``further``.
    """

    slope: FloatArray
    low: FloatArray
    below: FloatArray
    high: FloatArray
    above: FloatArray
    further: FloatArray
    beyond: FloatArray


class DualBound(NamedTuple):
    """A lower bound on the whole cost, what each group's part (G,) of it is, and the larger of its values at both ends.

    ``pull`` is ‖Σ θ_g x_g‖, and ``margin`` the norm's part of the bound.
    """

    value: float
    parts: FloatArray
    ends: FloatArray
    pull: float
    margin: float


class Intervals(NamedTuple):
    """Between which values each score (G,) lies, and the norm of ω."""

    low: FloatArray
    high: FloatArray
    shortest: float = 0.0
    longest: float = np.inf

    @property
    def empty(self) -> bool:
        """Whether some score, or the norm, has no value left."""
        return self.shortest > self.longest or bool((self.low > self.high).any())

    @property
    def nothing(self) -> Intervals:
        """Empty ones of this size."""
        return Intervals(np.full_like(self.low, np.inf), np.full_like(self.high, -np.inf))

    def meeting(self, other: Intervals) -> Intervals:
        """What they have in common with others."""
        return Intervals(
            np.maximum(self.low, other.low),
            np.minimum(self.high, other.high),
            max(self.shortest, other.shortest),
            min(self.longest, other.longest),
        )

    def hull(self, other: Intervals) -> Intervals:
        """The least intervals with both in them."""
        return Intervals(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            min(self.shortest, other.shortest),
            max(self.longest, other.longest),
        )

    def under(self, g: int, place: float) -> Intervals:
        """With score ``g`` at most ``place``."""
        high = self.high.copy()
        high[g] = min(high[g], place)
        return self._replace(high=high)

    def over(self, g: int, place: float) -> Intervals:
        """With score ``g`` at least ``place``."""
        low = self.low.copy()
        low[g] = max(low[g], place)
        return self._replace(low=low)


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
    squared : bool
        Whether the margin is ½‖ω‖², or ½‖ω‖.
    constant : float
        Is paid in any case.
    left_pays, right_pays : ndarray of shape (G,), or 0
        What a group pays besides where its score is below 0, and where it is not; one of the two is 0.
    boundary : float
        No score lies between -boundary and 0, where the side matters.
    """

    X: FloatArray
    center: FloatArray
    plus: FloatArray
    minus: FloatArray
    group: IntArray
    c1: float
    c2: float
    squared: bool = True
    constant: float = 0.0
    left_pays: FloatArray | float = 0.0
    right_pays: FloatArray | float = 0.0
    boundary: float = 0.0

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
    def jumps(self) -> bool:
        """Whether the side at 0 matters to any group by itself."""
        return bool(np.any(self.left_pays != self.right_pays))

    @cached_property
    def places(self) -> tuple[IntArray, FloatArray]:
        """Where labels are given up: groups, and the score of each at which its samples of one class change over.

        So it is at 0 where the side matters.
        """
        jump = np.abs(np.subtract(self.left_pays, self.right_pays)) + np.zeros(len(self.X))
        sides = ((self.plus, self.switch), (self.minus, -self.switch), (jump, 0.0))
        group = np.concatenate([np.flatnonzero(weight > 0) for weight, _ in sides])
        return group, np.concatenate([np.full(int((weight > 0).sum()), at) for weight, at in sides])

    def before(self, at: float) -> float:
        """The greatest score on the left of a place."""
        return at - self.boundary if at == 0 else at

    def of_score(self, s: FloatArray) -> FloatArray:
        """F at scores ``s (..., G)``."""
        c1, c2 = self.c1, self.c2
        over, under = c1 * np.maximum(0.0, 1.0 - s), c1 * np.maximum(0.0, 1.0 + s)
        value = self.plus * np.minimum(over, c2 + under) + self.minus * np.minimum(under, c2 + over)
        return value + np.where(s < 0, self.left_pays, self.right_pays) if self.jumps else value

    def _closed(self, s: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """F at scores ``s (..., G)`` in [low, high], at 0 the least that F comes to near it within them."""
        value = self.of_score(s)
        if not self.jumps:
            return value
        # A score of 0 goes right; in intervals that end at 0 the others are on the left.
        here = np.where(low >= 0, self.right_pays, np.where(high <= 0, self.left_pays, 0.0))
        return value + np.where(s == 0, here - self.right_pays, 0.0)

    @cached_property
    def farthest(self) -> FloatArray:
        """How far the farthest other group is from each (G,)."""
        return big_m.farthest(self.X)

    def within_norm(self, longest: float) -> Intervals:
        """Intervals that some best hyperplane has its scores in, among those with such a norm or a smaller one."""
        reach = big_m.score_bound(longest, self.farthest)
        return Intervals(-reach, reach, 0.0, longest)

    def parts_by_norm(self, box: Intervals) -> list[Intervals]:
        """The two halves of an interval of norms that reaches over more than one doubling; none of a shorter one."""
        longest = box.longest
        if self.squared or longest <= max(2 * box.shortest, 1.0 / max(1e-9, float(self.farthest.max()))):
            return []
        return [box.meeting(self.within_norm(longest / 2)), box._replace(shortest=longest / 2)]

    def objective(self, omega: FloatArray, omega0: float) -> float:
        """The cost of ω (p,) and ω_0, which belongs to centred rows."""
        square = float(omega @ omega)
        margin = square / 2 if self.squared else np.sqrt(square) / 2
        return float(margin + self.of_score(self.X @ omega + omega0).sum()) + self.constant

    def envelope(self, low: FloatArray, high: FloatArray) -> Envelope:
        """Convex envelopes on [low, high] (..., G)."""
        if self.jumps:
            return self._envelope_with_jumps(low, high)
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
            np.full_like(low, np.inf),
            np.zeros_like(low),
        )

    def _envelope_with_jumps(self, low: FloatArray, high: FloatArray) -> Envelope:
        """The same where 0 may be a kink besides -1 and 1: the lower hull of five points."""
        points = np.stack([low, *(np.clip(k, low, high) for k in (-1.0, 0.0, 1.0)), high])
        value = self._closed(points, low, high)
        kinks, slopes = [], []
        x, f = points[0], value[0]  # the last point of the hull so far
        for k in (1, 2, 3):
            inside = (points[k] > low) & (points[k] < high)
            for i in range(k):
                for j in range(k + 1, 5):
                    chord = _chord(points[i], value[i], points[j], value[j], points[k])
                    between = (points[i] < points[k]) & (points[k] < points[j])
                    inside &= ~between | (value[k] < chord)
            kinks.append(inside)
            slopes.append(_slope(x, f, points[k], value[k]))
            x, f = np.where(inside, points[k], x), np.where(inside, value[k], f)
        last = _slope(x, f, high, value[4])
        # From the right: what the slope is behind each kink.
        behind, bends = last, []
        for inside, slope in zip(kinks[::-1], slopes[::-1], strict=True):
            bends.append(np.where(inside, np.maximum(0.0, behind - slope), 0.0))
            behind = np.where(inside, slope, behind)
        beyond, above, below = bends
        high_kink, further = (np.where(kinks[k], points[k + 1], np.inf) for k in (1, 2))
        low_kink = np.where(kinks[0], points[1], -np.inf)
        return Envelope(behind + below, low_kink, below, high_kink, above, further, beyond)

    def dual_bound(self, theta: FloatArray, box: Intervals) -> DualBound:
        """No hyperplane within the intervals costs less; for any ``theta`` (G,)."""
        parts, values = self._least_parts(theta, box.low, box.high)
        direction, r = theta @ self.X, float(theta.sum())
        # ω_0 is a score less ω'x, whose mean over all samples is 0.
        omega0 = self.share @ box.low if r > 0 else self.share @ box.high
        pull = float(np.sqrt(direction @ direction))
        margin = self._margin(pull, box)
        value = float(parts.sum()) + margin + r * float(omega0) + self.constant
        return DualBound(value, parts, np.maximum(values[0], values[1]), pull, margin)

    def parts(self, theta: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """The sum (...) over all groups of the least of F_g(s) - θ_g s on [low, high] (..., G)."""
        return self._least_parts(theta, low, high)[0].sum(axis=-1)

    def _least_parts(
        self, theta: FloatArray, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The least of F_g(s) - θ_g s (..., G), and its values (K, ..., G) where that can be: at both ends first."""
        kinks = (-1.0, 0.0, 1.0) if self.jumps else (-1.0, 1.0)
        points = np.stack([low, high, *(np.clip(k, low, high) for k in kinks)])
        values = self._closed(points, low, high) - theta * points
        return values.min(axis=0), values

    def _margin(self, pull: float, box: Intervals) -> float:
        """The least of m(v) - v·pull over the norms v within the intervals."""
        if self.squared:
            v = min(max(pull, box.shortest), box.longest)
            return v * v / 2 - v * pull
        return (0.5 - pull) * (box.shortest if pull <= 0.5 else box.longest)

    def admitted(self, theta: FloatArray, bound: DualBound, box: Intervals, cost: float) -> Intervals:
        """The scores (G,) and norms that a tree of at most ``cost`` can have; crossed where there is none.

        ``bound`` is that of ``theta`` on the intervals.
        """
        low, high = box.low, box.high
        if not self.squared:
            box = self._admitted_norms(bound, box, cost)
        most = cost - (bound.value - bound.parts)
        if (bound.ends <= most).all():
            return box
        kinks = sorted((-1.0, self.switch, -self.switch, 1.0))
        points = [low, *(np.clip(k, low, high) for k in kinks), high]
        value = list(self._closed(np.stack(points), low, high))
        if self.jumps:  # 0 twice, as the end of what is on its left, and of what is on its right
            at = 1 + int(np.searchsorted(kinks, 0.0))
            zero = np.clip(0.0, low, high)
            value[at:at] = self._both_sides(zero, low, high)
            points[at:at] = [zero, zero]
        at_points = np.stack(points)
        values = np.stack(value) - theta * at_points
        hair = ROUNDING * (1 + np.abs(most))
        fresh_low = _first_within(at_points, values, most + hair)
        fresh_high = -_first_within(-at_points[::-1], values[::-1], most + hair)
        width = ROUNDING * (1 + high - low)
        return box._replace(low=np.maximum(low, fresh_low - width), high=np.minimum(high, fresh_high + width))

    def _both_sides(self, zero: FloatArray, low: FloatArray, high: FloatArray) -> list[FloatArray]:
        """F at ``zero``, 0 where that is within [low, high], seen from the left and from the right."""
        value = self.of_score(zero) - np.where(zero < 0, self.left_pays, self.right_pays)
        left = np.where(low >= 0, self.right_pays, self.left_pays)
        right = np.where((low >= 0) | (high > 0), self.right_pays, self.left_pays)
        return [value + left, value + right]

    def _admitted_norms(self, bound: DualBound, box: Intervals, cost: float) -> Intervals:
        """Norms v with (½ - pull)·v no more than the cost leaves."""
        slack, rate = cost - (bound.value - bound.margin), 0.5 - bound.pull
        if abs(rate) < 1e-9:
            return box
        end = slack / rate
        hair = ROUNDING * (1 + abs(end))
        if rate > 0:
            return box._replace(longest=min(box.longest, end + hair))
        return box._replace(shortest=max(box.shortest, end - hair))


class ScoreProblem(NamedTuple):
    """A whole model as a function of scores: what they cost, and intervals that some best tree has its scores in.

    ``below`` says of a case of :func:`.levels.top_level` what its two children do: the label of one that does not split, or
    :data:`.levels.SPLITS`.
    """

    costs: ScoreCosts
    box: Intervals
    below: tuple[float, float] | None = None


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
