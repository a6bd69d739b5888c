"""Branch and bound over hyperplanes: where features are few, and more samples are wrong than labels can be settled one by one.

A node is a box of hyperplanes, and every score lies in an interval then. As in :mod:`.branch_and_reduce` envelopes on these
intervals make a relaxation, multipliers of it prove a bound, and what the bound leaves of the box is all that is kept. But a node
is halved in the direction that moves the scores most, and many nodes are looked at in one pass of array operations: of each,
the relaxation is solved only roughly, by a few steps of Newton's method on a smoothed objective, from where its parent ended.
That takes a twentieth of what an exact solution does, and the bound holds for any multipliers. For θ (G,), q = Σ θ_g x_g and r = Σ θ_g
no hyperplane of a box costs less than

    Σ_g min_{low_g <= s <= high_g} (F_g(s) - θ_g s) + min_ω (½‖ω‖² + q'ω) + min_{ω_0} r ω_0

with the last minima over the box; they are taken coordinate by coordinate.

Coordinates are the directions in which the samples lie, from the longest: in short ones a box need not be halved often.

Source: bounds by intervals and halving as in Horst and Tuy (Global Optimization, 1996); smoothed hinges as in Lee and Mangasarian
(SSVM, Computational Optimization and Applications, 2001).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..formulations.base import FloatArray, IntArray
from ..formulations.bounds.scores import ROUNDING, Envelope, Intervals
from ..heuristics.score_relaxation import Plane
from .branch_and_reduce import Reduction

BATCH = 64  # nodes that are looked at in one pass; the arrays of more are no longer near the processor
ROUND = 8  # passes, at most, until the lowest bounds are looked for again
MANY = 30_000  # nodes that are open, for one of these passes more
# Scores over which a kink is rounded off, a step of Newton's method each; then those for bounds so close to the cutoff that they may
# be short of it by that alone.
SMOOTH: tuple[float, ...] = (1.0, 0.3, 0.1)
FINER: tuple[float, ...] = (0.03, 0.01, 3e-3, 1e-3)
CLOSE = 0.99  # of the cutoff
CHEAPER = 20  # nodes in the time of one relaxation of :mod:`.score_relaxation`
NARROW = 1e-9  # of scores: boxes that move them by no more are not halved
FLAT = 1e-10  # of the longest direction: in shorter ones the samples do not differ
CURVATURE = 1e-6  # of ω_0, which has none


class HyperplaneSearch:
    """RE-SVM's search of all hyperplanes whose scores lie in given intervals; none costs less than ``floor``.

    Attributes
    ----------
    nodes : int
        Nodes that were halved.
    reduction : Reduction
        Its costs, incumbent and cutoff; it does not reduce anything here.
    """

    def __init__(self, reduction: Reduction, box: Intervals, floor: float) -> None:
        self.reduction, self.nodes, self._box = reduction, 0, box
        costs = reduction.costs
        _, lengths, directions = np.linalg.svd(costs.X, full_matrices=False)
        self._directions = directions[lengths > FLAT * max(lengths.max(initial=0.0), FLAT)]
        self._r = len(self._directions)
        self._A = np.column_stack([costs.X @ self._directions.T, np.ones(len(costs.X))])
        self._felt = np.abs(self._A).mean(axis=0)
        self._squares = np.einsum("gi,gj->gij", self._A, self._A).reshape(len(self._A), -1)
        # ω_0 is the mean of all scores, as rows are centred.
        ends = np.full(self._r, min(box.longest, np.sqrt(2 * reduction.incumbent.cost)))
        self._low = np.append(-ends, costs.share @ box.low)[None]
        self._high = np.append(ends, costs.share @ box.high)[None]
        self._at = np.zeros((1, self._r + 1))  # where a node's parent ended
        self._bounds = np.array([floor])
        self._size = 1  # of these arrays' rows that are in use
        self._least = floor  # of the bounds of what is open
        self._settled = np.inf  # of those of boxes that are too narrow

    @property
    def solves(self) -> int:
        """About how many relaxations of :mod:`.score_relaxation` could have been solved in the same time."""
        return self.nodes // CHEAPER

    @property
    def bound(self) -> float:
        """No hyperplane of the given intervals costs less, unless it is the incumbent."""
        return min(self._least, self._settled, self.reduction.cutoff)

    @property
    def closed(self) -> bool:
        """Whether no hyperplane better than the incumbent, by more than the gap, is left to be looked for."""
        return self.bound >= self.reduction.cutoff

    def run(self, by_work: bool = False) -> Iterator[None]:
        """Halve nodes, the lowest bounds first, until none is left or the reduction's ``stop`` says so."""
        while True:
            self._make_room(2 * BATCH * ROUND)  # now, as nodes of a round are told by their rows
            bounds = self._bounds[: self._size]
            self._least = float(bounds.min(initial=np.inf))
            open_ = int((bounds < self.reduction.cutoff).sum())
            if not open_:
                return
            take = min(open_, BATCH * min(ROUND, 1 + open_ // MANY))
            lowest = np.argpartition(bounds, take - 1)[:take]
            for nodes in np.split(lowest, np.arange(BATCH, take, BATCH)):
                if self.reduction.stop():
                    return
                self._halve(nodes)
                yield

    def _halve(self, nodes: IntArray) -> None:
        """Put what is left of both halves of some nodes in their place."""
        low, high = self._low[nodes], self._high[nodes]
        width = self._felt * (high - low)
        at = width.argmax(axis=1)
        each = np.arange(len(nodes))
        narrow = width[each, at] <= NARROW
        if narrow.any():
            self._settled = min(self._settled, float(self._bounds[nodes[narrow]].min()))
        middle = (low[each, at] + high[each, at]) / 2
        below, above = high.copy(), low.copy()
        below[each, at] = above[each, at] = middle
        floor = np.tile(self._bounds[nodes], 2)
        low, high = np.vstack([low, above]), np.vstack([below, high])
        bound, low, high, points = self._looked_at(low, high, np.tile(self._at[nodes], (2, 1)))
        self.nodes += len(nodes)
        bound = np.maximum(bound, floor)
        left = np.flatnonzero(
            (bound < self.reduction.cutoff) & (low <= high).all(axis=1) & ~np.tile(narrow, 2)
        )
        self._bounds[nodes] = np.inf
        new = slice(self._size, self._size + len(left))
        self._bounds[new], self._low[new], self._high[new] = bound[left], low[left], high[left]
        self._at[new] = points[left]
        self._size += len(left)

    def _make_room(self, more: int) -> None:
        """For more nodes: in the place of those that are done, or in longer arrays where few are."""
        if self._size + more <= len(self._bounds):
            return
        live = np.flatnonzero(self._bounds[: self._size] < self.reduction.cutoff)
        size = 2 * (len(live) + more)
        for name in ("_bounds", "_low", "_high", "_at"):
            old = getattr(self, name)
            new = np.empty((size, *old.shape[1:]))
            new[: len(live)] = old[live]
            setattr(self, name, new)
        self._size = len(live)

    # -- the relaxation of many nodes -------------------------------------------------------------------------

    def _looked_at(
        self, low: FloatArray, high: FloatArray, points: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Of boxes (N, r + 1): bounds (N,), what they leave of the boxes, and the points (N, r + 1) that the relaxation came to.

        Better hyperplanes among these become the incumbent.
        """
        costs = self.reduction.costs
        middle = (low + high) / 2 @ self._A.T
        reach = (high - low) / 2 @ np.abs(self._A).T
        reach += ROUNDING * (1 + np.abs(middle) + reach)
        least = np.maximum(middle - reach, self._box.low)
        most = np.minimum(middle + reach, self._box.high)
        nothing = (least > most).any(axis=1)
        least = np.minimum(least, most)
        envelope = costs.envelope(least, most)
        cutoff = self.reduction.cutoff
        close, smooth, bound = np.arange(len(low)), SMOOTH, np.full(len(low), -np.inf)
        while len(close):
            few = Envelope(*(part[close] for part in envelope))
            points[close], theta = self._solved(few, low[close], high[close], points[close], smooth)
            parts = costs.parts(theta, least[close], most[close])
            bound[close], low[close], high[close] = self._proved(theta, low[close], high[close], parts)
            within = (bound[close] >= CLOSE * cutoff) & (bound[close] < cutoff)
            close, smooth = close[within & (smooth is SMOOTH)], FINER
        self._offer(points)
        return np.where(nothing, np.inf, bound), low, high, points

    def _solved(
        self,
        envelope: Envelope,
        low: FloatArray,
        high: FloatArray,
        points: FloatArray,
        smooth: tuple[float, ...],
    ) -> tuple[FloatArray, FloatArray]:
        """About the best points of boxes, and the slopes (N, G) of the envelopes there."""
        d = np.arange(self._r + 1)
        points = np.clip(points, low, high)
        for over in smooth:
            theta, bent = _slopes(envelope, points @ self._A.T, over)
            gradient = theta @ self._A
            gradient[:, :-1] += points[:, :-1]
            H = (bent @ self._squares).reshape(-1, len(d), len(d))
            H[:, d, d] += np.append(np.ones(self._r), CURVATURE)
            fixed = ((points <= low) & (gradient > 0)) | ((points >= high) & (gradient < 0))
            H[fixed[:, :, None] | fixed[:, None, :]] = 0.0
            H[:, d, d] += fixed
            step = np.linalg.solve(H, np.where(fixed, 0.0, gradient)[:, :, None])[:, :, 0]
            points = np.clip(points - step, low, high)
        return points, _slopes(envelope, points @ self._A.T, smooth[-1])[0]

    def _proved(
        self, theta: FloatArray, low: FloatArray, high: FloatArray, parts: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The bounds that multipliers (N, G) prove on boxes, and what trees below the cutoff can have of these.

        Each coordinate w adds the least of curved/2·w² + q w; where that would be too much by itself, w is out.
        """
        q, curved = theta @ self._A, np.append(np.ones(self._r), 0.0)
        best = np.where(curved > 0, np.clip(-q, low, high), np.where(q > 0, low, high))
        terms = (curved / 2 * best + q) * best
        bound = parts + terms.sum(axis=1) + self.reduction.costs.constant
        room = self.reduction.cutoff - (bound[:, None] - terms)
        room += ROUNDING * (1 + np.abs(room))
        root = np.sqrt(np.maximum(0.0, q * q + 2 * room))
        end = room / np.where(np.abs(q) > ROUNDING, q, np.inf)
        fresh_low = np.where(curved > 0, -q - root, np.where(q < -ROUNDING, end, -np.inf))
        fresh_high = np.where(curved > 0, -q + root, np.where(q > ROUNDING, end, np.inf))
        hair = ROUNDING * (1 + np.abs(low) + np.abs(high))
        return bound, np.maximum(low, fresh_low - hair), np.minimum(high, fresh_high + hair)

    def _offer(self, points: FloatArray) -> None:
        """Make the best hyperplane among the points the incumbent, where it is better, and go down from it."""
        reduction, costs = self.reduction, self.reduction.costs
        value = costs.of_score(points @ self._A.T).sum(axis=1)
        best = int((value + (points[:, :-1] ** 2).sum(axis=1) / 2).argmin())
        omega, omega0 = points[best, :-1] @ self._directions, float(points[best, -1])
        plane = Plane(costs.objective(omega, omega0), omega, omega0)
        if plane.cost < reduction.incumbent.cost * (1 - ROUNDING):
            reduction.incumbent = plane
            reduction.descend()


def _slopes(envelope: Envelope, scores: FloatArray, smooth: float) -> tuple[FloatArray, FloatArray]:
    """First and second derivatives of envelopes (N, G) at scores, each kink rounded off over ``smooth``."""
    slope, bent = envelope.slope.copy(), np.zeros_like(scores)
    for kink, change, side in ((envelope.low, envelope.below, -1.0), (envelope.high, envelope.above, 1.0)):
        passed = side * (scores - kink) / smooth + 0.5
        slope += side * change * np.clip(passed, 0.0, 1.0)
        bent += np.where((passed > 0) & (passed < 1), change / smooth, 0.0)
    return slope, bent
