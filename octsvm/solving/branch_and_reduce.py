"""Branch and reduce over scores: RE-SVM solved to proof without binaries and without big-M.

A node is an interval for every score. Its bound is that of the relaxation on them
(:mod:`octsvm.heuristics.score_relaxation`), and whatever that bound leaves of the intervals under the incumbent's cost is
all that is kept (reduction): by the multipliers of every relaxation that is solved, by trying both sides of a place where
a label is given up, and by moving an end of an interval inwards for as long as no tree of that cost has its score there.
Where a sample's label is not settled, the node is branched at that place; with all of them settled its relaxation is exact.
Which places are tried for that, pseudo-costs say: by how much their two sides raised the bound where they were tried before.

Source: reduction as in Ryoo and Sahinidis (Journal of Global Optimization, 1996); pseudo-costs with trials as in Achterberg,
Koch and Martin (Operations Research Letters, 2005); bounds on scores for the ramp loss in
Baldomero-Naranjo, Martínez-Merino and Rodríguez-Chía (European Journal of Operational Research, 2020). **differs:** no
binaries; the envelopes follow the intervals.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple

import numpy as np

from ..formulations.base import FloatArray, IntArray
from ..formulations.bounds.scores import DualBound, Envelope, Intervals, ScoreCosts
from ..heuristics.score_relaxation import Plane, Relaxed, ScoreRelaxation

WORTH = 0.02  # of the widths of unsettled intervals: a round of reduction that takes less is the last one
ROUNDS = 20  # of reduction, at most
CLOSE = 0.9  # of the cutoff: from there on a relaxation is solved more precisely
ROOT_SHARE = 0.15  # of the seconds, for reduction before the first branching
ROOT_SOLVES = 2_000  # relaxations for it in place of these seconds, where a limit of work ends the search
# Of the gap asked for, by which trees must be better to be looked for; the rest is for rounding.
SHARE_OF_GAP = 0.99
STEPS = 4  # of moving one end of an interval
STEP_WORTH = 0.02  # of an interval's width
# Places in a row that a node tries without a better one to branch at, and without settling one: trials narrow the intervals
# little as long as bounds are far below the incumbent, and then more of them are not worth their time.
LOOKAHEAD, FARTHER = 1, 8
# Of the widths of unsettled intervals: what the last trials have to take for a node to look farther.
TAKEN = 0.01
MEMORY = 0.003  # weight of the last trial in that, so that the first nodes look farther in any case
RELIABLE = 4  # trials after which a place is branched at without trying others for comparison
LEAST_GAIN = 1e-6  # of a bound, in products
DESCENTS = 20  # of labels and hyperplane in turn


class Place(NamedTuple):
    """Where the label of a group's samples of one class is given up."""

    g: int
    at: float


class _Sides(NamedTuple):
    """Envelopes on intervals, and on their parts below and above the places where labels are given up, at once."""

    box: Intervals
    whole: Envelope
    parts: dict[float, tuple[Envelope, Envelope]]  # by place

    @classmethod
    def of(cls, costs: ScoreCosts, box: Intervals) -> _Sides:
        """Of all groups on ``box``."""
        places = sorted(set(costs.places[1].tolist()))
        ends = [(costs.before(place), place) for place in places]
        at = [[np.clip(end, box.low, box.high) for end in pair] for pair in ends]
        low = np.stack([box.low, *(end for _, b in at for end in (box.low, b))])
        high = np.stack([box.high, *(end for a, _ in at for end in (a, box.high))])
        all_ = costs.envelope(low, high)
        whole, *rest = (Envelope(*(part[k] for part in all_)) for k in range(len(low)))
        return cls(box, whole, dict(zip(places, zip(rest[::2], rest[1::2], strict=True), strict=True)))

    def envelope(self, place: Place, below: bool) -> Envelope:
        """That of the box with one score at most, or at least, at ``place``."""
        part = self.parts[place.at][0 if below else 1]
        copies = [values.copy() for values in self.whole]
        for fresh, values in zip(copies, part, strict=True):
            fresh[place.g] = values[place.g]
        return Envelope(*copies)


class Reduction:
    """Cuts intervals down to the scores that trees of less than a cost can have.

    ``incumbent`` is the best hyperplane known; with ``improve`` better ones that are met take its place. Trees that are not
    better than it by more than the relative ``gap`` are not looked for. ``stop`` is asked in between whether to end.
    """

    def __init__(
        self,
        costs: ScoreCosts,
        incumbent: Plane,
        gap: float,
        stop: Callable[[], bool],
        seconds_left: Callable[[], float],
        improve: bool = True,
    ) -> None:
        self.costs, self.incumbent, self.gap, self.stop = costs, incumbent, gap, stop
        self.seconds_left = seconds_left
        self.improve = improve
        self.relaxation = ScoreRelaxation(costs, seconds_left, incumbent.cost)
        self._group, self._at = costs.places
        self._places = [Place(g, at) for g, at in zip(self._group.tolist(), self._at.tolist(), strict=True)]
        # At every place, from its trials: sums of the product of what both sides raised the bound by, and of its depth; one more
        # place for all of them; and how often each was tried.
        self._raised, self._trials = np.zeros((len(self._at) + 1, 2)), np.zeros(len(self._at))
        self._taken = 1.0  # share of the widths that a trial takes

    @property
    def cutoff(self) -> float:
        """Trees that cost this or more are of no interest."""
        return self.incumbent.cost * (1 - self.gap)

    def unsettled(self, box: Intervals) -> IntArray:
        """Which of the places where labels are given up lie within the intervals."""
        g, at = self._group, self._at
        hair = 1e-9 * (1 + np.abs(at))
        return np.flatnonzero((box.low[g] < at - hair) & (box.high[g] > at + hair))

    def width(self, box: Intervals) -> float:
        """Sum of the widths of the intervals that are not settled."""
        g = self._group[self.unsettled(box)]
        return float((box.high[g] - box.low[g]).sum())

    def relax(self, box: Intervals, envelope: Envelope | None = None) -> tuple[Relaxed, Intervals]:
        """Solve the relaxation, try its hyperplane, and keep what its multipliers admit of the intervals."""
        if box.empty:
            none = np.zeros_like(box.low)
            nowhere = DualBound(np.inf, none, none, 0.0, 0.0)
            return Relaxed(none, nowhere, self.incumbent.omega, self.incumbent.omega0), box
        found = self.relaxation.solve(box, envelope)
        if CLOSE * self.cutoff <= found.bound.value < self.cutoff:
            found = self.relaxation.improved(found, box, envelope)
        self.offer(found)
        if found.bound.value >= self.cutoff:
            return found, box.nothing
        return found, self.costs.admitted(found.theta, found.bound, box, self.cutoff)

    # -- better hyperplanes ---------------------------------------------------------------------------------

    def offer(self, found: Relaxed) -> None:
        """Make the hyperplane the incumbent if it is better, and go down from it."""
        plane = self.relaxation.plane(found) if self.improve else self.incumbent
        if plane.cost < self.incumbent.cost * (1 - 1e-9):
            self.incumbent = plane
            self.descend()

    def descend(self) -> None:
        """Settle all labels as the incumbent does, take the best hyperplane for them, and again while that is better."""
        costs = self.costs
        for _ in range(DESCENTS):
            scores = costs.X @ self.incumbent.omega + self.incumbent.omega0
            reach = float(np.abs(scores).max()) * 2 + 2
            low, high = np.full_like(scores, -reach), np.full_like(scores, reach)
            for g, at in zip(self._group, self._at, strict=True):
                if scores[g] <= at:
                    high[g] = min(high[g], at)
                else:
                    low[g] = max(low[g], at)
            found = self.relaxation.solve(Intervals(low, high))
            plane = self.relaxation.plane(found)
            if plane.cost >= self.incumbent.cost * (1 - 1e-9):
                return
            self.incumbent = plane

    # -- reduction ------------------------------------------------------------------------------------------

    def thoroughly(
        self, box: Intervals, seconds: float = np.inf, solves: float = np.inf
    ) -> Iterator[tuple[float, Intervals]]:
        """Reduce by all means while a round pays, for so many seconds or relaxations: a bound and the intervals after each."""
        until, most = self.seconds_left() - seconds, self.relaxation.solves + solves

        def late() -> bool:
            return self.stop() or self.seconds_left() <= until or self.relaxation.solves >= most

        for _ in range(ROUNDS):
            before = self.width(box)
            found, box = self.relax(box)
            yield found.bound.value, box
            if not box.empty:
                box, _ = self.probe(box, found, late=late)
            box = self.squeeze(box, late)
            yield found.bound.value, box
            if box.empty or late() or self.width(box) >= (1 - WORTH) * before:
                return

    def _by_promise(self, box: Intervals, found: Relaxed) -> tuple[IntArray, FloatArray]:
        """Unsettled places, those first that promise to raise the bound most, and the depth of all (their number,).

        The depth is the square of what a group pays more than its envelope says; what is promised by it, earlier trials of the
        place say, with the average trial as one more.
        """
        scores = self.costs.X @ found.omega + found.omega0
        paid = self.costs.of_score(scores) - found.theta * scores - found.bound.parts
        depth = np.maximum(paid, LEAST_GAIN)[self._group] ** 2
        known = self._raised[:-1] + self._raised[-1] / max(1.0, self._trials.sum())
        promise = (
            depth * known[:, 0] / np.maximum(known[:, 1], LEAST_GAIN**2) if self._trials.any() else depth
        )
        k = self.unsettled(box)
        return k[np.argsort(-promise[k], kind="stable")], depth

    def _learn(self, k: int, gain: float, depth: float) -> None:
        """From a trial of place ``k``."""
        self._raised[[k, -1]] += gain, depth
        self._trials[k] += 1

    @property
    def lookahead(self) -> int:
        """How many places in a row a node is to try in vain."""
        return FARTHER if self._taken > TAKEN else LOOKAHEAD

    def sides_of(self, box: Intervals, k: int) -> tuple[Intervals, Intervals]:
        """What is on both sides of place ``k``."""
        g, at = self._places[k]
        return box.under(g, self.costs.before(at)), box.over(g, at)

    def probe(
        self,
        box: Intervals,
        found: Relaxed,
        lookahead: float = np.inf,
        late: Callable[[], bool] | None = None,
    ) -> tuple[Intervals, dict[int, tuple[float, float]]]:
        """Try both sides of unsettled places: what neither admits is out.

        Returns the intervals, and the bounds of both sides of each place that was tried, by its number. Ends after
        ``lookahead`` places in a row that neither settle anything nor raise the bounds more than one before; where that is 1,
        after one that is known well enough.
        """
        tried: dict[int, tuple[float, float]] = {}
        best, idle, sides = -np.inf, 0, None
        order, depth = self._by_promise(box, found)
        for k in order.tolist():
            place = g, at = self._places[k]
            if idle >= lookahead or (late or self.stop)():
                break
            if not box.low[g] < at < box.high[g]:
                continue
            sides = sides if sides is not None and sides.box is box else _Sides.of(self.costs, box)
            below, above = self.sides_of(box, k)
            one, under = self.relax(below, sides.envelope(place, below=True))
            two, over = self.relax(above, sides.envelope(place, below=False))
            tried[k] = one.bound.value, two.bound.value
            gain = gain_of(found.bound.value, tried[k], self.cutoff)
            self._learn(k, gain, depth[k])
            settled = under.empty or over.empty
            idle = 0 if settled or gain > best else idle + 1
            best = max(best, gain)
            if lookahead == 1 and self._trials[k] >= RELIABLE and not settled:
                idle = 1
            before = box
            rest = over if under.empty else under if over.empty else under.hull(over)
            narrower = rest.shortest > box.shortest or rest.longest < box.longest
            if narrower or (rest.low > box.low).any() or (rest.high < box.high).any():
                box = box.meeting(rest)
            if lookahead < np.inf:
                taken = (
                    0.0 if box is before else 1.0 if box.empty else 1 - self.width(box) / self.width(before)
                )
                self._taken += MEMORY * (taken - self._taken)
            if box.empty:
                break
        return box, tried

    def squeeze(self, box: Intervals, late: Callable[[], bool]) -> Intervals:
        """Move the ends of unsettled intervals inwards."""
        for g in dict.fromkeys(self._group[self.unsettled(box)].tolist()):
            for at_low in (True, False):
                if late() or box.empty:
                    return box
                box = self._squeezed(box, g, at_low)
        return box

    def _squeezed(self, box: Intervals, g: int, at_low: bool) -> Intervals:
        for _ in range(STEPS):
            width = box.high[g] - box.low[g]
            pinned = box.under(g, box.low[g]) if at_low else box.over(g, box.high[g])
            theta = self.relaxation.solve(pinned).theta
            bound = self.costs.dual_bound(theta, box)
            fresh = box.meeting(self.costs.admitted(theta, bound, box, self.cutoff))
            if fresh.empty:
                return fresh
            moved = fresh.low[g] - box.low[g] if at_low else box.high[g] - fresh.high[g]
            box = fresh
            if moved <= STEP_WORTH * width:
                break
        return box


def gain_of(bound: float, children: tuple[float, float], cutoff: float) -> float:
    """How much the bounds of two children exceed their node's, as far as that is of interest, as a product."""
    return float(np.maximum(np.minimum(children, cutoff) - bound, LEAST_GAIN).prod())


class Node(NamedTuple):
    """Intervals in which the best tree may lie, and what it costs there at least; ``number`` breaks ties."""

    bound: float
    number: int
    box: Intervals
    reduction: Reduction


class BranchAndReduce:
    """The search from given intervals; best bound first.

    Attributes
    ----------
    nodes : int
        Nodes that were looked at.
    root : Intervals
        What reduction left of the given ones before the first branching; empty where nothing.
    """

    def __init__(self, reduction: Reduction, box: Intervals, floor: float) -> None:
        self.reduction, self.nodes, self.root = reduction, 0, box
        self._numbers = count()
        self._open = [Node(floor, next(self._numbers), box, reduction)]
        self._settled: list[Node] = []  # in which nothing is left to branch at
        self._least_settled = np.inf  # of their bounds

    def add(self, reduction: Reduction, box: Intervals, floor: float) -> None:
        """Look in further intervals, of other costs; trees below the least of all cutoffs are looked for."""
        heapq.heappush(self._open, Node(floor, next(self._numbers), box, reduction))

    @property
    def solves(self) -> int:
        """Relaxations that were solved."""
        return self.reduction.relaxation.solves

    @property
    def bound(self) -> float:
        """No tree with its scores in the given intervals costs less, unless it is the incumbent."""
        least = self._open[0].bound if self._open else np.inf
        return min(least, self._least_settled, self.reduction.cutoff)

    @property
    def closed(self) -> bool:
        """Whether no tree better than the incumbent, by more than the gap, is left to be looked for."""
        return self.bound >= self.reduction.cutoff

    def left_of(self, reduction: Reduction) -> tuple[float, Intervals] | None:
        """A bound on the trees of some intervals that are left to be looked for, and intervals around them; None where none are."""
        nodes = [n for n in (*self._open, *self._settled) if n.reduction is reduction and not n.box.empty]
        nodes = [node for node in nodes if node.bound < reduction.cutoff]
        if not nodes:
            return None
        box = nodes[0].box
        for node in nodes[1:]:
            box = box.hull(node.box)
        return min(node.bound for node in nodes), box

    def run(self, by_work: bool = False, thoroughly: bool = True) -> Iterator[None]:
        """Look at one node after another, until none is left or the reduction's ``stop`` says so.

        ``by_work`` where a limit of work ends the search: the same is done then whenever it is asked. ``thoroughly`` reduces the
        given intervals first, where they are one node.
        """
        limits = (np.inf, ROOT_SOLVES) if by_work else (self.reduction.seconds_left() * ROOT_SHARE,)
        one = thoroughly and len(self._open) == 1
        rounds = self.reduction.thoroughly(self._open[0].box, *limits) if one else ()
        for value, box in rounds:
            root = self._open[0]
            self._open[0] = root._replace(bound=max(root.bound, value), box=box)
            self.root = box
            yield
        while self._open and self._open[0].bound < self.reduction.cutoff and not self.reduction.stop():
            node = self._open[0]
            self.nodes += 1
            children = self._children(node)
            if self.reduction.stop():
                return  # it may not have been looked at to the end
            heapq.heappop(self._open)
            for child in children:
                heapq.heappush(self._open, child)
            yield

    def _children(self, node: Node) -> list[Node]:
        reduction, box = node.reduction, node.box
        if box.empty:
            return []
        found, box = reduction.relax(box)
        if box.empty:
            return []
        bound = max(node.bound, found.bound.value)
        norms = reduction.costs.parts_by_norm(box)
        if norms:
            return [Node(bound, next(self._numbers), part, reduction) for part in norms]
        box, tried = reduction.probe(box, found, reduction.lookahead)
        if box.empty or bound >= reduction.cutoff:
            return []
        places = reduction.unsettled(box).tolist()
        if not places:
            # The relaxation is exact there, and its hyperplane was tried.
            found = reduction.relaxation.solve(box, precise=True)
            if found.bound.value < reduction.cutoff:  # or it is short of exact for where it started
                reduction.relaxation.forget()
                found = max(
                    found, reduction.relaxation.solve(box, precise=True), key=lambda one: one.bound.value
                )
            bound = max(bound, found.bound.value)
            if bound < reduction.cutoff:
                self._settled.append(node._replace(bound=bound, box=box))
                self._least_settled = min(self._least_settled, bound)
            return []
        cutoff = reduction.cutoff
        k = max(places, key=lambda k: gain_of(bound, tried.get(k, (bound, bound)), cutoff))
        return [
            Node(max(bound, value), next(self._numbers), part, reduction)
            for value, part in zip(tried.get(k, (bound, bound)), reduction.sides_of(box, k), strict=True)
            if value < reduction.cutoff and not part.empty
        ]
