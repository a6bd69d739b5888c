"""The whole model by cases: which children of the root split is settled in each, and what is known of its scores.

The cases are those that a bound from the top level left open (:mod:`.level_bound`). Each is the same program with closer bounds
of its columns, solved by the same engine from the same incumbent, until none of its trees can be better than that. The bound is
that of the weakest case. Those that are easiest, by the bound they come with, are solved first: their time is not used up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..backends.matrix_program import Array, LinearProgram
from ..bridges import Bridge
from ..errors import LicenseTooSmall
from ..result import Progress
from .branch_and_reduce import SHARE_OF_GAP
from .cutting_planes import CuttingPlaneLoop, Known
from .engine import Engine
from .polish import STARTS_WITHIN

SLACK = 1e-6  # relative: by that much the cost of a tree may differ from that of its point
ENDING = ("interrupted", "licence", "error")  # what ends one case so ends all


class Restriction(NamedTuple):
    """Variables with the least and the greatest value that they have in a case, of which no better tree costs less than ``bound``."""

    bounds: Sequence[tuple[Any, float, float]]
    bound: float


class Cases(NamedTuple):
    """What all trees that cost less than ``below`` lie in.

    With ``overlapping`` classes the search that left them comes farther than an engine which is no help in one of them.
    """

    below: float
    each: Sequence[Restriction]
    overlapping: bool = False


class CaseSearch:
    """One search, on the rounds that hold the incumbent."""

    def __init__(self, rounds: CuttingPlaneLoop, bridge: Bridge | None, native: bool, cases: Cases) -> None:
        self.rounds, self.bridge, self.native = rounds, bridge, native
        self.below, self.overlapping = cases.below, cases.overlapping
        self.cases = sorted(cases.each, key=lambda case: -case.bound)
        self.bounds = [case.bound for case in self.cases]

    def restricted(self, case: Restriction) -> LinearProgram:
        """The program within a case, tangents that were placed so far included."""
        program = self.rounds.program
        low, high = program.low.copy(), program.high.copy()
        for var, least, most in case.bounds:
            k = program.position.get(id(var))
            if k is not None:
                unit = 1.0 if program.unit is None else program.unit[k]
                low[k], high[k] = max(low[k], least / unit), min(high[k], most / unit)
        return replace(program, low=low, high=high)

    def run(self, start: Array | None) -> str:
        """Solve one case after another and return why that ended; the incumbent is ``rounds.best``.

        Where one is not done in its share of the time, and the engine's bound on it is none better than that which it came with, time
        has a better use: the search that left the cases, or the whole program. Otherwise the others follow, and then the weakest has
        what they left, if that is more than it had. Where no point as good as ``below`` is known, the cases may lack the best one, and
        the whole program is solved.
        """
        rounds = self.rounds
        if start is not None:
            rounds.begin_with(start)
        if not rounds.objective * (1 - SHARE_OF_GAP * rounds.asked.gap) <= self.below + SLACK * abs(
            self.below
        ):
            return rounds.run(None)
        rounds.notes.append(f"solved in {len(self.cases)} cases of which children of the root split")
        waiting, given = list(range(len(self.cases))), [0.0] * len(self.cases)
        ended = "optimal"
        while waiting:
            fresh = [k for k in waiting if not given[k]]
            k = fresh[0] if fresh else min(waiting, key=self.bounds.__getitem__)
            seconds = rounds.left() / max(1, len(fresh))
            if seconds <= given[k]:
                return "time_limit"
            given[k] = seconds
            stop = self._solve(k, seconds)
            rounds.bound = max(rounds.bound, min([self.below, *self.bounds]))
            if rounds.tell():
                return "interrupted"
            if stop != "time_limit":
                waiting.remove(k)
            helpless = stop == "time_limit" and self.bounds[k] <= self.cases[k].bound
            if helpless and not self.overlapping:
                rounds.notes.append("the engine was no help in one of them, and solved the whole model")
                return rounds.run(None)
            if helpless or stop in ENDING:
                return stop
            if stop not in ("optimal", "time_limit"):  # what the others have may be better
                ended = stop
        return ended

    def _solve(self, k: int, seconds: float) -> str:
        """Solve a case in so many seconds, and keep what comes of it: why that ended."""
        rounds, program = self.rounds, self.restricted(self.cases[k])
        # A little less than the gap, of which the rest is for rounding.
        cutoff = rounds.objective - SHARE_OF_GAP * rounds.asked.gap * abs(rounds.objective)
        cutoff = min(self.below, cutoff)
        if (program.low > program.high).any():
            self.bounds[k] = max(self.bounds[k], cutoff)
            return "optimal"

        def watched(progress: Progress) -> bool:
            proved = min(max(self.bounds[k], inner.bound), cutoff)
            rounds.bound = max(rounds.bound, min([proved, *self.bounds[:k], *self.bounds[k + 1 :]]))
            return rounds.tell(progress.nodes)

        inner = CuttingPlaneLoop(
            program,
            Engine(rounds.spec, program, self.bridge, self.native),
            self.bridge,
            rounds.asked.within(seconds, callback=watched),
            Known(
                self.bounds[k],
                rounds.size,
                rounds.improve,
                rounds.small,
                searched=True,
                hand_over=not rounds.spec.cutoff and self._is_in(program),
                cutoff=cutoff,
                bent=rounds.bent,
            ),
        )
        inner.best, inner.objective = rounds.best, rounds.objective
        try:
            stop = inner.run(None)
        except LicenseTooSmall as error:
            if not rounds.rounds:
                raise
            rounds.notes.append(f"the other cases had to be left: {error}")
            return "licence"
        finally:
            if inner.best is not None:
                rounds.keep(inner.best, own=inner.own)
            rounds.notes += [note for note in inner.notes if note not in rounds.notes]
            rounds.nodes += inner.nodes
            rounds.rounds += inner.rounds
            rounds.last = inner.last or rounds.last
            rounds.start = rounds.start or inner.start
            rounds.startup += inner.startup
            # Its tangents hold in all cases.
            rounds.program.A, rounds.program.row_low, rounds.program.row_high = (
                program.A,
                program.row_low,
                program.row_high,
            )
        proved = inner.bound
        if inner.last is not None and inner.last.stop == "infeasible" and rounds.spec.claim != "none":
            proved, stop = cutoff, "optimal"
        self.bounds[k] = max(self.bounds[k], min(proved, cutoff))
        return stop

    def _is_in(self, program: LinearProgram) -> bool:
        """Whether the incumbent is a point of a case."""
        best = self.rounds.best
        return best is not None and program.violation(best) <= STARTS_WITHIN
