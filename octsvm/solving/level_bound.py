"""A bound on every tree from its top level alone: branch and reduce over the scores at the root.

A formulation whose levels pay by themselves says what its top level costs
(:meth:`octsvm.formulations.base.Formulation.top_level`); where many samples are wrong its optimum is found long before the
engine's bound comes near it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..formulations.bounds.scores import ScoreProblem
from ..heuristics.score_relaxation import Plane
from ..options import Clock
from .branch_and_reduce import BranchAndReduce, Reduction

SHARE_OF_GAP = 0.99  # of the gap asked for; the rest is for rounding


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


def level_bound(
    problems: Sequence[ScoreProblem],
    cost: float,
    gap: float,
    stop: Callable[[float], bool],
    clock: Clock,
    most_nodes: int | None = None,
) -> LevelBound:
    """Search all cases of a top level for trees that cost less than ``cost`` by more than the relative ``gap``.

    ``stop`` is told the bound so far, now and then, and asked whether to end.
    """
    value = 0.0
    known = Plane(cost, np.zeros(problems[0].costs.X.shape[1]), 0.0)

    def late() -> bool:
        return clock.late() or stop(value)

    cases = [
        (
            Reduction(problem.costs, known, gap * SHARE_OF_GAP, late, clock.left, improve=False),
            problem.box,
        )
        for problem in problems
    ]
    search = BranchAndReduce(*cases[0], 0.0)
    for case in cases[1:]:
        search.add(*case, 0.0)
    try:
        for _ in search.run():
            value = max(value, search.bound)
            if late() or (most_nodes is not None and search.nodes >= most_nodes):
                break
    except KeyboardInterrupt:  # within a node, whose part the search's own bound may lack
        return LevelBound(value, search.nodes, False, interrupted=True)
    value = max(value, search.bound)
    return LevelBound(value, search.nodes, search.closed)
