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

    ``stop`` is told the bound so far, now and then, and whether combinations are used, and asked whether to end. Below the roots they
    are used where at least ``overlap`` labels must be given up.
    """
    value, nodes, by_work, overlapping = 0.0, 0, most_nodes is not None, False
    known = Plane(cost, np.zeros(problems[0].costs.X.shape[1]), 0.0)

    def late() -> bool:
        return clock.late() or stop(value, overlapping)

    try:
        left, least = clock.left, gap * SHARE_OF_GAP
        cases = [(Reduction(p.costs, known, least, late, left, improve=False), p.box) for p in problems]
        search = OverlapSearch(cases, overlap, by_work)
        overlapping = search.overlapping
        for _ in search.run(by_work):
            value, nodes = max(value, search.bound), search.nodes
            if late() or (most_nodes is not None and nodes >= most_nodes):
                break
    except KeyboardInterrupt:  # within a node, whose part the search's own bound may lack
        return LevelBound(value, nodes, False, interrupted=True)
    value = max(value, search.bound)
    return LevelBound(value, search.nodes, search.closed)
