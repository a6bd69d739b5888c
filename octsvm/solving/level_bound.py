"""A bound on every tree from its top level alone: branch and reduce over the scores at the root.

A formulation whose levels pay by themselves says what its top level costs
(:meth:`octsvm.formulations.base.Formulation.top_level`); where many samples are wrong its optimum is found long before the
engine's bound comes near it, with the combinations of :mod:`.overlap_search`. Where these say that few labels must be given up,
intervals of scores come farther, and from the roots on the search is that of RE-SVM.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..formulations.bounds.scores import ScoreProblem
from ..heuristics.score_relaxation import Plane
from ..options import Clock
from .branch_and_reduce import SHARE_OF_GAP, Reduction
from .overlap_search import OverlapSearch

OVERLAP = 4.0  # labels that must be given up, from which on combinations are used; measured on quarters of data sets


class Case(NamedTuple):
    """What is left of a case of the top level: its trees that may be better than the one known cost ``bound`` or more.

    Their scores at the root lie in the problem's intervals.
    """

    problem: ScoreProblem
    bound: float


class LevelBound(NamedTuple):
    """No tree costs less than ``value``; ``closed`` where none is better than the one known by more than the gap.

    ``cases`` are those in which there may be trees that cost less than ``below``, ``interrupted`` says whether Ctrl-C ended the search.
    """

    value: float
    nodes: int
    closed: bool
    cases: tuple[Case, ...] = ()
    below: float = np.inf
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


class LevelSearch:
    """A search of all cases of a top level for trees that cost less than ``cost`` by more than the relative ``gap``.

    Below the roots combinations are used where at least ``overlap`` labels must be given up. With ``most_nodes`` the same is done
    whenever it is asked.
    """

    def __init__(
        self,
        problems: Sequence[ScoreProblem],
        cost: float,
        gap: float,
        most_nodes: int | None = None,
        overlap: float = OVERLAP,
    ) -> None:
        least = gap * SHARE_OF_GAP
        self.below = cost * (1 - least)
        self._problems, self._most, self._overlap = problems, most_nodes, overlap
        self._value, self._clock = 0.0, Clock()
        self._stop: Callable[[float, bool], bool] = lambda *_: False
        self._search: OverlapSearch | None = None
        known = Plane(cost, np.zeros(problems[0].costs.X.shape[1]), 0.0)
        self._reductions = [
            Reduction(p.costs, known, least, self._late, lambda: self._clock.left(), improve=False)
            for p in problems
        ]

    @property
    def overlapping(self) -> bool:
        """Whether combinations are used below the roots."""
        return self._search is not None and self._search.overlapping

    def _late(self) -> bool:
        return self._clock.late() or self._stop(self._value, self.overlapping)

    def run(self, stop: Callable[[float, bool], bool], clock: Clock) -> LevelBound:
        """Search, or go on with it, until the clock is out or ``stop`` says so.

        ``stop`` is told the bound so far, now and then, and whether combinations are used.
        """
        self._stop, self._clock = stop, clock
        by_work = self._most is not None
        try:
            if self._search is None:
                boxes = [(r, p.box) for r, p in zip(self._reductions, self._problems, strict=True)]
                self._search = OverlapSearch(boxes, self._overlap, by_work)
            for _ in self._search.run(by_work):
                self._value = max(self._value, self._search.bound)
                if self._late() or (self._most is not None and self._search.nodes >= self._most):
                    break
            self._value = max(self._value, self._search.bound)
            left = [self._search.left_of(reduction) for reduction in self._reductions]
        except KeyboardInterrupt:  # within a node, whose part the search's own bound may lack
            nodes = 0 if self._search is None else self._search.nodes
            return LevelBound(self._value, nodes, False, interrupted=True)
        cases = [
            Case(p._replace(box=found[1]), found[0])
            for p, found in zip(self._problems, left, strict=True)
            if found is not None
        ]
        search = self._search
        return LevelBound(self._value, search.nodes, search.closed, tuple(cases), self.below)


def narrowed(
    level: LevelBound, cost: float, gap: float, clock: Clock, seconds: float, stop: Callable[[], bool]
) -> LevelBound:
    """The same bound with the intervals of each open case narrowed for so many seconds at most, unless ``stop`` asks for the end."""
    least, cases = gap * SHARE_OF_GAP, []
    known = Plane(cost, np.zeros(level.cases[0].problem.costs.X.shape[1]), 0.0)
    for problem, bound in level.cases:
        part = clock.part(seconds)

        def late(part: Clock = part) -> bool:
            return part.late() or stop()

        reduction = Reduction(problem.costs, known, least, late, part.left, improve=False)
        box = problem.box
        for value, fresh in reduction.thoroughly(box):
            box, bound = fresh, max(bound, value)
            if box.empty:
                break
        if not box.empty and bound < reduction.cutoff:
            cases.append(Case(problem._replace(box=box), bound))
    below = cost * (1 - least)
    value = min((bound for _, bound in cases), default=below)
    return level._replace(
        value=max(level.value, value), closed=not cases, cases=tuple(cases), below=min(below, level.below)
    )
