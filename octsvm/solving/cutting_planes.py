"""The loop around an engine: solve, polish with the integers fixed, refine, until the gap closes or a limit is hit.

Without a bridge there is one round. With the outer approximation every round gives a bound (the relaxation's) and an
incumbent (the polished point, repaired into one of the original model). Polishing fixes all integers and solves the
convex rest; its tangents make the next round exact at that assignment, so a round either closes the gap or meets a
new assignment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..backends.matrix_program import Array, Limits, LinearProgram, Outcome
from ..bridges import Bridge
from ..errors import EngineFailed, LicenseTooSmall
from ..options import SolveOptions
from ..result import Progress, TracePoint, relative_gap
from .engine import Engine, solve_embedded
from .own_terms import is_unbounded
from .polish import STARTS_WITHIN, polish_point, repaired

POLISH_GRACE = 0.5  # seconds past the deadline that polishing may still take
TIGHTEST_INTEGRALITY = 1e-9
REFINE_ROUNDS = 20
SAID = {"infeasible": "infeasible", "unbounded": "unbounded", "inf_or_unbd": "infeasible or unbounded"}
TIE = 1e-12  # of about how large objectives are, 1 at most
MOST_THREADS = 64  # asked of an engine on a machine of fewer processors: HiGHS hangs where thousands are
LEAST_GAP = 1e-9  # relative, of a single round


class Known(NamedTuple):
    """What is known of a model before its solve."""

    floor: float  # no point costs less
    size: float  # about how large the objective is
    improve: Callable[[Array], Array | None] | None = None  # betters what routing leaves free in a point
    small: bool = False  # a table so small that proofs are likely and rounds short
    searched: bool = False  # by heuristics
    hand_over: bool = True  # the incumbent to the engine, as its start
    cutoff: float = np.inf  # what a better point costs less than, where a bound is wanted rather than a point
    bent: bool = False  # big-M is so large that engines cannot tell a margin from nothing


class Round(NamedTuple):
    """How things stood when the engine was asked: what it is to reach, and what it is handed."""

    exact: bool  # whether its claim holds for the model itself
    tight: float  # the least gap that is asked of it
    target: float  # the gap that is asked of it now
    best: Array | None
    objective: float
    bound: float
    own: bool
    start: Array | None


class CuttingPlaneLoop:
    """State of one solve.

    Attributes
    ----------
    best : ndarray or None
        Best point of the (repaired) model, aligned with ``program.columns``.
    objective, bound : float
    own : bool
        Whether ``best`` was found by the engine rather than given as a start.
    last : Outcome or None
        What the engine's last solve came to.
    start : str
        What became of the start that the engine was handed; empty where it does not say.
    startup : float
        Seconds that processes of the engine's own took to start, over all rounds.
    """

    def __init__(
        self,
        program: LinearProgram,
        engine: Engine,
        bridge: Bridge | None,
        asked: SolveOptions,
        problem: Known,
    ) -> None:
        self.program, self.engine, self.bridge, self.improve = program, engine, bridge, problem.improve
        self.spec = engine.spec
        self.asked, self.size, self.bent = asked, problem.size, problem.bent
        self.tie = TIE * min(1.0, self.size)  # what is better by less is as good
        self.deadline = time.monotonic() + asked.clock.left()
        self.small = problem.small  # then a round is short, and is not ended early for better tangents
        # Our own search has been where the engine's heuristics would look; on a small model they take most of the time.
        for_small = problem.small and problem.searched
        self._cutoff = problem.cutoff
        self.options: dict[str, Any] = {
            **(self.spec.small if for_small else self.spec.bounding if self._cutoff < np.inf else {}),
            **(asked.options or {}),
        }
        self.integrality = self.spec.tolerances.integrality
        self.last: Outcome | None = None
        self.start, self.startup = "", 0.0
        self.best: Array | None = None
        self.own = False
        self.objective, self.bound = float("inf"), problem.floor
        self._endless = problem.floor == -np.inf  # whether terms may have no least value, as far as is known
        self.rounds = self.nodes = 0
        self.trace: list[TracePoint] = []
        self.notes: list[str] = []
        self._asked_to_stop = False
        self._hand_over = problem.hand_over  # the incumbent, to the engine, as its start
        self._met = False  # a point seen on the way closed the gap, and the engine was told to stop
        self._proved = False  # the gap was closed before the round: the engine is let finish
        self._stalled = False  # a round with a loose target brought nothing
        self._assignments: set[bytes] = set()  # integers of the engine's answers
        self._is_new = False  # whether the last answer's were met for the first time

    # -- bookkeeping ----------------------------------------------------------------------------------------

    def left(self) -> float:
        """Seconds until the limit, below 0 beyond it."""
        return self.deadline - time.monotonic()

    def out_of_work(self) -> bool:
        """Whether a limit of rounds or nodes is reached."""
        rounds, nodes = self.asked.limits.rounds, self.asked.limits.nodes
        if rounds is not None and self.rounds >= rounds:
            return True
        return nodes is not None and self.rounds > 0 and self.nodes >= nodes

    def _limits(self, gap: float) -> Limits:
        nodes = None if self.asked.limits.nodes is None else max(0, self.asked.limits.nodes - self.nodes)
        return Limits(
            self.left(),
            gap,
            nodes,
            min(self.asked.threads, max(MOST_THREADS, os.cpu_count() or 1)),
            self.asked.seed,
            self.integrality,
            min(self.size, self.objective),
            self.asked.log,
            self.asked.limits.work,
            self.options,
        )

    def tell(self, nodes: int = 0) -> bool:
        """Tell the caller's callback how things are, with so many nodes more than are counted; whether it asks to stop."""
        seconds = self.asked.clock.seconds()
        last = self.trace[-1] if self.trace else None
        if last is None or last.incumbent != self.objective or last.bound != self.bound:
            self.trace.append(TracePoint(seconds, self.objective, self.bound))
        if self.asked.callback is not None and self.asked.callback(
            Progress(seconds, self.objective, self.bound, self.rounds, self.nodes + nodes)
        ):
            self._asked_to_stop = True
        return self._asked_to_stop

    def _watch(self, bound: float, nodes: int, point: Array | None) -> bool:
        if abs(bound) < 1e19:
            self.bound = max(self.bound, bound)
        if point is not None:
            self._take(point, own=True)
        self._met = self._closed() and not self._proved
        return self.tell(nodes) or self._met

    def _distance(self) -> float:
        return relative_gap(self.objective, self.bound, self.size)

    def _closed(self) -> bool:
        return self._distance() <= self.asked.gap

    def _admitted(self, point: Array | None) -> Array | None:
        """A point as one of the program, None where it breaks a row."""
        whole = None if point is None else repaired(self.program, self.bridge, point)
        return None if whole is None or self.program.violation(whole) > STARTS_WITHIN else whole

    def _take(self, point: Array, own: bool) -> bool:
        whole = repaired(self.program, self.bridge, point)
        if whole is None:
            return False
        objective = self.program.objective(whole)
        if objective >= self.objective - self.tie:
            return False
        self.best, self.objective, self.own = whole, objective, own
        return True

    # -- polishing ------------------------------------------------------------------------------------------

    def polish(self, x: Array, own: bool) -> None:
        """Fix the integers of ``x`` and solve the convex rest with the embedded solver; keep what is better."""
        if self.program.quadratic or self.program.partial:
            self._take(x, own)  # rows that no bridge knows: nothing to polish with
            return
        best, value, stop = polish_point(
            self.program, self.bridge, x, self._limits(self.asked.gap), lambda: self.left() + POLISH_GRACE
        )
        if best is not None:
            if value < self.objective - self.tie or (self.best is None):
                self.best, self.objective, self.own = best, value, own
            if self.bridge is not None:
                self.program.add_rows(self.bridge.cuts(best, violated=False))
        elif stop not in ("infeasible", "inf_or_unbd"):
            # No time to polish; a point that only integrality slack makes feasible is dropped.
            self._take(x, own)
        if self.bridge is not None:
            self.program.add_rows(self.bridge.cuts(x))

    def refine(self) -> None:
        """Alternate: best choice of what the routing leaves free (``improve``), then polish, while that pays."""
        for _ in range(REFINE_ROUNDS):
            if self.improve is None or self.best is None or self.left() <= 0:
                return
            better = self._admitted(self.improve(self.best))
            if better is None:
                return
            before = self.objective
            if self.program.objective(better) >= before - 1e-9 * max(1.0, abs(before)):
                return
            self._take(better, self.own)
            self.polish(better, self.own)

    # -- the loop -------------------------------------------------------------------------------------------

    def run(self, start: Array | None) -> str:
        """Run to the end and return why it stopped."""
        if self.program.infeasible:
            return "infeasible"
        if not self.program.n:
            self.best, self.objective, self.bound = np.zeros(0), self.program.offset, self.program.offset
            return "optimal"
        if start is not None:
            self.begin_with(start)
        while True:
            reason = self._limit_reached() or self._round()
            if reason:
                return reason

    def begin_with(self, start: Array) -> None:
        """Take a start as the first incumbent if it is a point of the program; NaN marks what it leaves open."""
        known = np.isfinite(start)
        if not known.all():
            whole = np.flatnonzero(known & self.program.integer)
            if self.program.quadratic or self.program.partial:
                self.notes.append("the start leaves variables of your own open, and was not used")
                return
            fixed = self.program.fixed_at(whole, np.round(start[whole]))
            out = solve_embedded(fixed, self.left(), self.asked.gap)
            if out.x is None:
                self.notes.append(
                    "the start could not be completed by values for your own variables, and was not used"
                )
                return
            start = out.x
        point = self._admitted(start)
        if point is None:
            self.notes.append("the start is no point of the model with your own rows, and was not used")
            return
        self._take(point, own=False)
        self.polish(point, own=False)
        self.refine()
        self.tell()

    def adopt(self, x: Array) -> bool:
        """Take a point that was found elsewhere, read as a tree and polished; whether it is better than the incumbent."""
        before = self.objective
        point = self._admitted(x if self.improve is None else self.improve(x))
        if point is None or not self._take(point, own=True):
            return False
        self.polish(point, own=True)
        self.refine()
        self.tell()
        return self.objective < before

    def keep(self, point: Array, own: bool) -> bool:
        """Take a point as it is, unpolished; whether it is admitted and better than the incumbent."""
        admitted = self._admitted(point)
        return admitted is not None and self._take(admitted, own)

    def _limit_reached(self) -> str:
        """Why no further round is begun; empty where one is."""
        # Whoever names an engine, or asks for its log, gets its own answer, even where all is proved before.
        if self._closed() and (self.rounds or not self.asked.engine_wanted):
            return "optimal"
        if self._asked_to_stop:
            return "interrupted"
        if self.left() <= self.engine.seconds_of_writing():
            return "time_limit"
        return "work_limit" if self.out_of_work() else ""

    def _round(self) -> str:
        """Ask the engine once and keep what comes of it: why the loop ends with that, empty where it goes on."""
        begun = self._begin_round()
        try:
            limits = replace(self._limits(begun.target), cutoff=self._cutoff)
            out = self.engine.solve(limits, begun.start, self._watch)
        except LicenseTooSmall as error:
            if not self.rounds:
                raise
            self.notes.append(f"refinement had to end: {error}")
            return "licence"
        self._count(out)
        # Points seen on the way use the engine's tolerances; only polished ones stand.
        seen, claim = self.best, self.objective
        self.best, self.objective, self.own = begun.best, begun.objective, begun.own
        if out.stop in ("unbounded", "inf_or_unbd", "infeasible"):
            return self._without_solution(out.stop)
        if out.stop == "node_limit" and np.isfinite(out.bound):
            # When bounds were told on the way hangs on the clock, and a limit of work repeats.
            self.bound, most = begun.bound, max(begun.bound, out.bound)
            self.trace = [point._replace(bound=min(point.bound, most)) for point in self.trace]
        self._keep(out, seen, claim)
        return self._end_of_round(out) or self._refined(begun)

    def _begin_round(self) -> Round:
        """What is asked of the engine: early rounds, which only place tangents, are content with a wider gap."""
        exact = self.bridge is None or self.engine.native
        # Polishing may move a point by the engine's tolerances: a little less than the gap is asked of it.
        share = 0.25 if not exact else 1.0 if self.bridge is None and self.spec.trusted else 0.9
        tight = max(self.asked.gap * share, LEAST_GAP) if share < 1.0 else self.asked.gap
        wide = max(tight, min(1e-2, self._distance() / 10))
        self._met, self._proved = False, self._closed()
        return Round(
            exact=exact,
            tight=tight,
            target=tight if exact or self._stalled or self.small else wide,
            best=self.best,
            objective=self.objective,
            bound=self.bound,
            own=self.own,
            start=self.best if self._hand_over else None,
        )

    def _count(self, out: Outcome) -> None:
        self.last = out
        self.start = self.start or out.start
        self.startup += out.startup
        self.rounds += 1
        self.nodes += out.nodes
        if out.failure:
            self.notes.append(out.failure)

    def _without_solution(self, stop: str) -> str:
        """Why the loop ends where the engine says that the model has no optimum."""
        if self.spec.claim == "none":
            self.notes.append(f"{self.spec.title} calls the model {SAID[stop]}, which is no proof here")
            return "numeric"
        if stop == "infeasible" and self._endless and (self.bridge is None or not self.engine.native):
            # Seen with an engine whose presolve has one word for both.
            stop = "unbounded" if is_unbounded(self.program) else stop
        if stop != "infeasible":
            return stop  # a point of an unbounded model is worth nothing
        if self.best is None:
            return "infeasible"
        self.notes.append("the engine called the refined model infeasible although a solution is known")
        return "numeric"

    def _keep(self, out: Outcome, seen: Array | None, claim: float) -> None:
        """The bound and the polished points of a round: the engine's answer, and what it had ``seen`` at cost ``claim``."""
        if np.isfinite(out.bound):
            self.bound = max(self.bound, out.bound)
        self._is_new = False
        if out.x is not None:
            integers = np.round(out.x[self.program.integer]).tobytes()
            self._is_new = integers not in self._assignments
            self._assignments.add(integers)
            try:
                self.polish(out.x, own=True)
            except KeyboardInterrupt:
                self._take(out.x, own=True)
                raise
            self.refine()
        if seen is not None and claim < self.objective - 1e-3 * abs(claim):
            self.polish(seen, own=True)  # the engine ended on a worse point than it had shown
        self.tell()

    def _end_of_round(self, out: Outcome) -> str:
        """Why the loop ends with an engine that stopped so; empty where it was done."""
        if out.stop == "error":
            if self.bent:
                return "numeric"  # no fault of the engine's
            if self.best is None and self.rounds == 1:
                raise EngineFailed(
                    f"{out.failure or f'{self.spec.title} broke down on this model without an answer'}. Try another "
                    "seed or another solver, or write the model with octsvm.write and solve it elsewhere."
                )
            return "error"
        if self._closed():
            return "optimal"
        if out.stop == "node_limit":
            return "work_limit"
        if out.stop not in ("optimal", "gap_limit") and not self._met:
            return "interrupted" if self._asked_to_stop else out.stop
        self._met = False
        return ""

    def _refined(self, begun: Round) -> str:
        """Prepare the next round; "numeric" where nothing is left to try."""
        progress = self.objective < begun.objective - self.tie
        progress = progress or self.bound > begun.bound + 1e-9 * max(1.0, abs(self.bound))
        if progress and not begun.exact:
            return ""
        if not begun.exact and begun.target > begun.tight:
            self._stalled = True  # ask for all of the accuracy before anything is concluded
        elif not begun.exact and self._is_new:
            return ""  # another tree of the same cost, such as a mirrored one: now it has its tangents, too
        elif begun.start is not None:
            # Seen with an engine whose presolve misplaces a start, so that its false value ends the search early.
            self._hand_over = False
            self.notes.append(
                "the engine's claim did not hold; solved again without handing it the incumbent"
            )
        elif self.integrality > TIGHTEST_INTEGRALITY:
            # The engine says it is done and its own solution does not confirm it: integrality slack.
            self.integrality = TIGHTEST_INTEGRALITY
            self.notes.append(f"solved again with an integrality tolerance of {TIGHTEST_INTEGRALITY:g}")
        else:
            return "numeric"
        return ""
