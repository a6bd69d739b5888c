"""Branch and reduce with combinations: where many samples are wrong because the classes overlap.

There the relaxation over scores says little before most labels are settled, and that over combinations (:mod:`.combinations`)
much: a node has the larger of both bounds, and is branched as the one that gave it wants.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..formulations.bounds.scores import Intervals
from .branch_and_reduce import LEAST_GAIN, ROOT_SHARE, BranchAndReduce, Node, Reduction, gain_of
from .combinations import CombinationProgram, Combinations, Packed

NODE_TRIES = 2  # combinations that a node looks for
# Labels that a node tries; so many in vain end it, as does one known by so many trials.
CANDIDATES, LOOKAHEAD, RELIABLE = 8, 2, 4
HALF = 1e-6  # of a label: values nearer to 0 or 1 are whole


class OverlapSearch(BranchAndReduce):
    """The search of one or more cases; the first one is that whose combinations are looked for at once.

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
