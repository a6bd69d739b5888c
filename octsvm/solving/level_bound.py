"""A bound on every tree from its top level alone: branch and reduce over the scores at the root.

A formulation whose levels pay by themselves says what its top level costs
(:meth:`octsvm.formulations.base.Formulation.top_level`); where many samples are wrong its optimum is found long before the
engine's bound comes near it. There the relaxation over scores says little before most labels are settled, and that over
combinations (:mod:`.combinations`) much: a node has the larger of both bounds, and is branched as the one that gave it wants. Where
combinations say that few labels must be given up, intervals of scores come farther, and from the roots on the search is that of RE-SVM.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..formulations.bounds.scores import Intervals, ScoreProblem
from ..heuristics.score_relaxation import Plane
from ..options import Clock
from .branch_and_reduce import LEAST_GAIN, ROOT_SHARE, SHARE_OF_GAP, BranchAndReduce, Node, Reduction, gain_of
from .combinations import CombinationProgram, Combinations, Packed

OVERLAP = 4.0  # labels that must be given up, from which on combinations are used; measured on quarters of data sets
NODE_TRIES = 2  # combinations that a node looks for
# Labels that a node tries; so many in vain end it, as does one known by so many trials.
CANDIDATES, LOOKAHEAD, RELIABLE = 8, 2, 4
HALF = 1e-6  # of a label: values nearer to 0 or 1 are whole


class LevelBound(NamedTuple):
    """No tree costs less than ``value``; ``closed`` where none is better than the one known by more than the gap.

    ``interrupted`` where Ctrl-C ended the search.
    """

    value: float
    nodes: int
    closed: bool
    interrupted: bool = False

    def __str__(self) -> str:
        return f"branch and reduce over the scores of the top level ({self.nodes} nodes)"


class Pace:
    """How fast a bound comes closer to ``cost``: the share that the last third of the time has closed of what was open before it."""

    def __init__(self, cost: float) -> None:
        self.cost = cost
        self._seconds, self._bounds = [0.0], [0.0]

    def after(self, seconds: float, bound: float) -> float:
        """That share, with the bound of now."""
        if bound > self._bounds[-1]:
            self._seconds.append(seconds)
            self._bounds.append(bound)
        before = self._bounds[bisect_right(self._seconds, seconds * 2 / 3) - 1]
        return (bound - before) / (self.cost - before) if before < self.cost else 0.0


class LevelSearch(BranchAndReduce):
    """The search of all cases of a top level; the first one is that whose combinations are looked for at once.

    Below the roots they are used where they say that at least ``overlap`` labels are given up: then the search is ``overlapping``.
    ``by_work`` as in ``run``.
    """

    def __init__(self, cases: Sequence[tuple[Reduction, Intervals]], overlap: float, by_work: bool) -> None:
        first, box = cases[0]
        self._combinations = Combinations(first.costs, box.longest)
        until = 0.0 if by_work else first.seconds_left() * (1 - ROOT_SHARE)
        given_up = CombinationProgram(first.costs, self._combinations).find(
            box, lambda: first.stop() or first.seconds_left() < until, first.seconds_left
        )
        self.overlapping = given_up >= overlap
        self._programs = {
            reduction: CombinationProgram(reduction.costs, self._combinations) for reduction, _ in cases
        }
        super().__init__(first, box, self._floor(first, box))
        for reduction, intervals in cases[1:]:
            self.add(reduction, intervals, self._floor(reduction, intervals))
        # Of each label kept and given up: sums of what that raised the bound by, for a whole unit, and numbers of trials.
        K = len(self._combinations.group)
        self._raised, self._trials = np.full((K, 2), LEAST_GAIN), np.full((K, 2), LEAST_GAIN)

    def _floor(self, reduction: Reduction, box: Intervals) -> float:
        """What combinations say of a whole case."""
        program = self._programs[reduction]
        packed = program.solve(*program.bounds(box), reduction.seconds_left())
        return 0.0 if packed is None else packed.bound

    def _children(self, node: Node) -> list[Node]:
        reduction, box = node.reduction, node.box
        if not self.overlapping:
            return super()._children(node)
        if box.empty:
            return []
        found, box = reduction.relax(box)
        if box.empty:
            return []
        program = self._programs[reduction]
        packed = self._packed(program, reduction, box)
        if packed is None:
            return super()._children(node._replace(box=box))
        box = program.settled(packed, box, reduction.cutoff)
        bound = max(node.bound, packed.bound)
        if box.empty or bound >= reduction.cutoff:
            return []
        if packed.bound > found.bound.value:
            children = self._by_labels(node._replace(bound=bound, box=box), program, packed)
            if children is not None:
                return children
        return super()._children(node._replace(bound=bound, box=box))

    def _packed(self, program: CombinationProgram, reduction: Reduction, box: Intervals) -> Packed | None:
        """The relaxation over combinations, with those that its point violates."""
        seconds = reduction.seconds_left
        low, high = program.bounds(box)
        packed = program.solve(low, high, seconds())
        if packed is None or packed.bound >= reduction.cutoff:
            return packed
        new = self._combinations.separate(*program.split(packed.point), NODE_TRIES, reduction.stop, seconds)
        return (program.solve(low, high, seconds()) or packed) if new else packed

    def _by_labels(self, node: Node, program: CombinationProgram, packed: Packed) -> list[Node] | None:
        """Children where one label is kept, and given up: that whose trial raises both bounds most. None where all are whole."""
        reduction, cutoff = node.reduction, node.reduction.cutoff
        xi = program.split(packed.point)[2]
        open_ = np.flatnonzero((xi > HALF) & (xi < 1 - HALF))
        if not len(open_):
            return None
        distance = np.column_stack([xi, 1 - xi])
        expected = np.maximum(self._raised / self._trials * distance, LEAST_GAIN).prod(axis=1)[open_]
        best, most, idle, bounds = -1, -np.inf, 0, (node.bound, node.bound)
        for k in open_[np.argsort(-expected, kind="stable")][:CANDIDATES].tolist():
            if reduction.stop():
                break
            values = []
            for given_up in (0, 1):
                low, high = packed.low.copy(), packed.high.copy()
                low[program.label(k)] = high[program.label(k)] = given_up
                child = program.solve(low, high, reduction.seconds_left())
                values.append(node.bound if child is None else max(node.bound, child.bound))
                gained = min(values[-1], cutoff) - node.bound
                self._raised[k, given_up] += gained / distance[k, given_up]
                self._trials[k, given_up] += 1
            gain = gain_of(node.bound, (values[0], values[1]), cutoff)
            idle = idle + 1 if gain <= most else 0
            if gain > most:
                best, most, bounds = k, gain, (values[0], values[1])
            if idle >= LOOKAHEAD or self._trials[k, 0] > RELIABLE:
                break
        if best < 0:
            return [node._replace(number=next(self._numbers))]
        return [
            Node(bound, next(self._numbers), part, reduction)
            for bound, part in zip(bounds, program.parts(best, node.box), strict=True)
            if bound < cutoff and not part.empty
        ]


def level_bound(
    problems: Sequence[ScoreProblem],
    cost: float,
    gap: float,
    stop: Callable[[float, bool], bool],
    clock: Clock,
    most_nodes: int | None = None,
    overlap: float = OVERLAP,
) -> LevelBound:
    """Search all cases of a top level for trees that cost less than ``cost`` by more than the relative ``gap``.

    ``stop`` is told the bound so far, now and then, and whether classes overlap so far, and asked whether to end. Below the roots combinations are used where at
    least ``overlap`` labels must be given up.
    """
    value, nodes, by_work, overlapping = 0.0, 0, most_nodes is not None, False
    known = Plane(cost, np.zeros(problems[0].costs.X.shape[1]), 0.0)

    def late() -> bool:
        return clock.late() or stop(value, overlapping)

    try:
        left, least = clock.left, gap * SHARE_OF_GAP
        cases = [(Reduction(p.costs, known, least, late, left, improve=False), p.box) for p in problems]
        search = LevelSearch(cases, overlap, by_work)
        overlapping = search.overlapping
        for _ in search.run(by_work):
            value, nodes = max(value, search.bound), search.nodes
            if late() or (most_nodes is not None and nodes >= most_nodes):
                break
    except KeyboardInterrupt:  # within a node, whose part the search's own bound may lack
        return LevelBound(value, nodes, False, interrupted=True)
    value = max(value, search.bound)
    return LevelBound(value, search.nodes, search.closed)
