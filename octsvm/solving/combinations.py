"""What a node of many samples must pay because its classes overlap: a linear program over combinations of samples.

A combination is a mean of samples of each class, with weights m_k and the means' distance (:mod:`octsvm.formulations.bounds.hull` has
the proof): for every hyperplane of norm r or less,

    Σ m_k e_k + 2 Σ ξ_k + dist·r >= 2,          and where the means meet, Σ (e_k + ξ_k) >= 1.

With ½r + c1 Σ e + c2 Σ ξ as the objective they make a relaxation of :class:`.scores.ScoreCosts` without scores and without big-M. Where
the side matters by itself a binary y_g says which one a group takes; where the means meet, some sample is on the wrong side.
Few of the combinations are ever needed: those that a point violates are found by another linear program, whose objective is what the
left side comes to. In both programs the multipliers alone are believed, and the bound that they prove is recomputed in numpy.

Source: infeasible subsystems as vertices of a polyhedron, Gleeson and Ryan (ORSA Journal on Computing, 1990); cuts from them in place of
big-M, Codato and Fischetti (Operations Research, 2006).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..backends.highs import WarmProgram
from ..formulations.base import FloatArray, IntArray
from ..formulations.bounds.scores import Intervals, ScoreCosts

MOST_COMBINATIONS = 1_000  # beyond which programs take too long
TRIES = 20  # combinations that are looked for in a round, of which some are new
ROUNDS, STALLED, WORTH = 150, 10, 0.005  # rounds at most; so many that raise the bound by less end it
VIOLATED = 1e-3
LEAST_WEIGHT = 1e-7
USED = 0.2  # of each sample of a combination: what the search for the next one of a round takes it to cost besides
NOISE = 1e-4
DEAR = 100.0  # of a unit of distance: means that meet are looked for
# Of the norm: in the sum of absolute values, which is the longer one, distances cost too much.
NORM_SHARES = 1.0, 0.5, 0.7
TANGENTS = 40  # of ½r², up to the largest norm
MEETING = 1e-6  # by which, times the largest norm, two means may miss each other


class Combination(NamedTuple):
    """Samples, by their places in :class:`Combinations`, their weights, the means' distance, and whether that is none."""

    at: IntArray
    weights: FloatArray
    distance: float
    meets: bool


class Combinations:
    """Combinations that were found so far. A sample is here all of one class in a group.

    Attributes
    ----------
    group : ndarray of int, shape (K,)
    sign, weights : ndarray of shape (K,)
        Class and weight of each sample.
    found : list of Combination
    """

    def __init__(self, costs: ScoreCosts, longest: float) -> None:
        plus, minus = np.flatnonzero(costs.plus > 0), np.flatnonzero(costs.minus > 0)
        self.group = np.concatenate([plus, minus])
        self.sign = np.concatenate([np.ones(len(plus)), -np.ones(len(minus))])
        self.weights = np.concatenate([costs.plus[plus], costs.minus[minus]])
        self.longest = longest
        self.found: list[Combination] = []
        self._X = costs.X[self.group]
        K, p = self._X.shape
        # Σ y_k m_k x_k = v⁺ - v⁻, and the weights of each class sum to 1.
        self._program = WarmProgram(np.zeros(K + 2 * p), np.zeros(K + 2 * p), np.full(K + 2 * p, np.inf))
        for j in range(p):
            row = np.concatenate([self.sign * self._X[:, j], np.zeros(2 * p)])
            row[K + j], row[K + p + j] = -1.0, 1.0
            at = np.flatnonzero(row)
            self._program.add_row(at, row[at], 0.0, 0.0)
        for side in (1.0, -1.0):
            at = np.flatnonzero(self.sign == side)
            self._program.add_row(at, np.ones(len(at)), 1.0, 1.0)
        self._random = np.random.default_rng(0)
        self._known: set[tuple[int, ...]] = set()

    def separate(
        self,
        r: float,
        e: FloatArray,
        xi: FloatArray,
        tries: int,
        late: Callable[[], bool],
        seconds: Callable[[], float],
    ) -> int:
        """Look for combinations that a point violates, in so many ways; how many are new."""
        K, p = self._X.shape
        used, new = np.zeros(K), 0
        for k in range(tries):
            if late() or len(self.found) >= MOST_COMBINATIONS:
                break
            price = e + (2.0 if k % 4 < 2 else 1.0) * xi + used + NOISE * self._random.random(K)
            far = DEAR if k % 2 == 0 else max(r, 0.01) * NORM_SHARES[k % 3]
            answer = self._program.solve(seconds(), cost=np.concatenate([price, np.full(2 * p, far)]))
            if answer is None:
                break
            combination = self._combination(np.asarray(answer.x[:K]))
            at, weights, distance, meets = combination
            used[at] += USED
            short = 2 - float(weights @ e[at] + 2 * xi[at].sum()) - distance * r
            if meets:
                short = max(short, 2 * (1 - float((e[at] + xi[at]).sum())))
            key = (*at.tolist(), round(distance * 1e6))
            if short > VIOLATED and key not in self._known:
                self._known.add(key)
                self.found.append(combination)
                new += 1
        return new

    def _combination(self, weights: FloatArray) -> Combination:
        weights = np.where(weights > LEAST_WEIGHT, weights, 0.0)
        for side in (1.0, -1.0):
            weights[self.sign == side] /= weights[self.sign == side].sum()
        at = np.flatnonzero(weights)
        distance = float(np.linalg.norm((weights[at] * self.sign[at]) @ self._X[at]))
        return Combination(at, weights[at], distance, distance * self.longest <= MEETING)


class Packed(NamedTuple):
    """A bound, and the point (columns) and reduced costs that belong to it, within bounds ``low`` and ``high`` of the columns."""

    bound: float
    point: FloatArray
    reduced: FloatArray
    low: FloatArray
    high: FloatArray


class CombinationProgram:
    """The linear program of some costs, over r, e (K,), ξ (K,) and, where sides matter, y (G,): 1 where the score is not below 0."""

    def __init__(self, costs: ScoreCosts, combinations: Combinations) -> None:
        self.costs, self.combinations = costs, combinations
        self._K, sides = len(combinations.group), len(costs.X) if costs.jumps else 0
        weights = combinations.weights
        self._cost = np.concatenate([[0.5], costs.c1 * weights, costs.c2 * weights, np.zeros(sides)])
        self._constant = costs.constant
        if sides:
            left = costs.left_pays + np.zeros(sides)
            self._cost[-sides:] = costs.right_pays - left
            self._constant += float(left.sum())
        if costs.squared:  # ½r² in place of ½r, in a column of its own
            self._cost = np.append(self._cost, 1.0)
            self._cost[0] = 0.0
        n = len(self._cost)
        self._program = WarmProgram(self._cost, np.zeros(n), np.ones(n))
        self._rows: list[tuple[IntArray, FloatArray, float]] = []
        self._columns: sp.csr_array | None = None
        self._entered = 0
        if sides:
            self._tie_sides()
        if costs.squared:
            for v in np.linspace(0.0, combinations.longest, TANGENTS + 1)[1:].tolist():
                self._add(np.array([0, n - 1]), np.array([-v, 1.0]), -v * v / 2)

    def _tie_sides(self) -> None:
        """On the wrong side a sample pays e >= 1 or gives up its label; having given it up on its own side, it pays e >= 1."""
        K = self._K
        for k, (g, sign) in enumerate(zip(self.combinations.group, self.combinations.sign, strict=True)):
            at = np.array([1 + k, 1 + K + k, 1 + 2 * K + g])
            self._add(at, np.array([1.0, 1.0, sign]), float(sign > 0))
            self._add(at, np.array([1.0, -1.0, -sign]), -float(sign > 0))

    def _add(self, at: IntArray, value: FloatArray, least: float) -> None:
        self._program.add_row(at, value, least)
        self._rows.append((at, value, least))
        self._columns = None

    def _enter(self) -> None:
        """The combinations found since the last time."""
        K, pool = self._K, self.combinations
        for at, weights, distance, meets in pool.found[self._entered :]:
            if not meets:
                twos = np.full(len(at), 2.0)
                where = np.concatenate([[0], 1 + at, 1 + K + at])
                self._add(where, np.concatenate([[distance], weights, twos]), 2.0)
                continue
            # Of two means that miss each other by that, one sample has y s of at most half of it times the norm.
            self._add(np.concatenate([1 + at, 1 + K + at]), np.ones(2 * len(at)), 1.0 - MEETING / 2)
            if self.costs.jumps and self.costs.boundary > MEETING:
                wrong = np.zeros(len(self.costs.X))
                np.subtract.at(wrong, pool.group[at], pool.sign[at])
                groups = np.flatnonzero(wrong)
                if len(groups):
                    self._add(1 + 2 * K + groups, wrong[groups], 1.0 - float((pool.sign[at] > 0).sum()))
        self._entered = len(pool.found)

    def bounds(self, box: Intervals) -> tuple[FloatArray, FloatArray]:
        """Of the columns, within intervals of the scores and the norm."""
        pool, switch = self.combinations, self.costs.switch
        low, high = box.low[pool.group], box.high[pool.group]
        plus = pool.sign > 0
        least, most = np.where(plus, low, -high), np.where(plus, high, -low)  # of y s
        kept = least >= switch
        given_up = ~kept & (most <= switch)
        e_low = np.maximum(0.0, np.where(kept, 1 - most, np.where(given_up, 1 + least, 0.0)))
        e_high = np.maximum(e_low, np.where(given_up, 1 + most, 1 - least))
        lows = [[box.shortest], e_low, given_up.astype(float)]
        highs = [[box.longest], e_high, (~kept).astype(float)]
        if self.costs.jumps:
            lows.append((box.low >= 0).astype(float))
            highs.append((box.high >= 0).astype(float))
        if self.costs.squared:
            lows.append([box.shortest**2 / 2])
            highs.append([box.longest**2 / 2])
        return np.concatenate(lows), np.concatenate(highs)

    def label(self, k: int) -> int:
        """The column that says whether sample ``k`` gives up its label."""
        return 1 + self._K + k

    def parts(self, k: int, box: Intervals) -> tuple[Intervals, Intervals]:
        """Of the intervals, where sample ``k`` keeps its label, and where it gives it up."""
        g, switch = int(self.combinations.group[k]), self.costs.switch
        if self.combinations.sign[k] > 0:
            return box.over(g, switch), box.under(g, switch)
        return box.under(g, -switch), box.over(g, -switch)

    def split(self, point: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """r, e and ξ of a point."""
        K = self._K
        return float(point[0]), point[1 : 1 + K], point[1 + K : 1 + 2 * K]

    def solve(self, low: FloatArray, high: FloatArray, seconds: float) -> Packed | None:
        """Solve it within bounds of the columns; None where the solver does not answer in time.

        No hyperplane within them costs less than the bound of the answer.
        """
        self._enter()
        answer = self._program.solve(seconds, low=low, high=high)
        if answer is None:
            return None
        if self._columns is None:
            at, value, least = zip(*self._rows, strict=True) if self._rows else ((), (), ())
            ends = np.cumsum([0, *map(len, at)])
            flat = [np.concatenate([np.zeros(0), *part]) for part in (value, at)]
            A = sp.csr_array((flat[0], flat[1].astype(np.int32), ends), shape=(len(at), len(low)))
            self._columns, self._least = A.T.tocsr(), np.array(least, dtype=float)
        y = np.maximum(0.0, answer.multipliers)
        reduced = self._cost - self._columns @ y
        bound = float(self._least @ y + np.minimum(reduced * low, reduced * high).sum()) + self._constant
        return Packed(bound, answer.x, reduced, low, high)

    def find(self, box: Intervals, late: Callable[[], bool], seconds: Callable[[], float]) -> float:
        """Look for combinations on some intervals for as long as that raises the bound, and keep those that matter there.

        Returns how many labels are given up, in parts, where all of them hold.
        """
        low, high = self.bounds(box)
        packed = self.solve(low, high, seconds())
        bounds: list[float] = []
        for _ in range(ROUNDS):
            if packed is None or not self.combinations.separate(
                *self.split(packed.point), TRIES, late, seconds
            ):
                break
            packed = self.solve(low, high, seconds())
            bounds.append(-np.inf if packed is None else packed.bound)
            if len(bounds) > STALLED and bounds[-1] < bounds[-1 - STALLED] * (1 + WORTH):
                break
        if packed is None:
            return 0.0
        r, e, xi = self.split(packed.point)
        self.combinations.found = [
            one
            for one in self.combinations.found
            if one.weights @ e[one.at] + 2 * xi[one.at].sum() + one.distance * r < 2 + USED
        ]
        return float(xi.sum())

    def settled(self, packed: Packed, box: Intervals, cost: float) -> Intervals:
        """What a tree of at most ``cost`` can have of the intervals: a label that would cost more by its reduced cost is settled."""
        pool, switch, room = self.combinations, self.costs.switch, cost - packed.bound
        labels = slice(1 + self._K, 1 + 2 * self._K)
        reduced, open_ = packed.reduced[labels], packed.low[labels] < packed.high[labels]
        low, high = box.low.copy(), box.high.copy()
        for k in np.flatnonzero(open_ & (np.abs(reduced) > room + 1e-9 * (1 + abs(cost)))).tolist():
            g, plus, kept = pool.group[k], pool.sign[k] > 0, reduced[k] > 0
            if plus == kept:
                low[g] = max(low[g], switch if plus else -switch)
            else:
                high[g] = min(high[g], switch if plus else -switch)
        return box._replace(low=low, high=high)
