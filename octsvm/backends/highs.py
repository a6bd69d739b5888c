"""HiGHS through highspy, on matrices.

Every solve gets a fresh native model (no state survives), runs in a thread of its own (so that Ctrl-C and the hard
deadline work while the solver holds the processor), and checks that each option was accepted.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import highspy
import numpy as np

from ..errors import EngineFailed, InvalidParameter
from ..solvers import SolverSpec
from .engine_log import EngineLog
from .matrix_program import Array, Limits, LinearProgram, Outcome, Request, Row, Watch
from .mps import Silent, linear_part
from .own_options import settings
from .protocol import fitting
from .supervisor import Supervisor

_STOPS = {
    highspy.HighsModelStatus.kOptimal: "optimal",
    highspy.HighsModelStatus.kInfeasible: "infeasible",
    highspy.HighsModelStatus.kUnbounded: "unbounded",
    highspy.HighsModelStatus.kUnboundedOrInfeasible: "inf_or_unbd",
    highspy.HighsModelStatus.kTimeLimit: "time_limit",
    highspy.HighsModelStatus.kIterationLimit: "node_limit",
    highspy.HighsModelStatus.kSolutionLimit: "node_limit",
    highspy.HighsModelStatus.kInterrupt: "interrupted",
    highspy.HighsModelStatus.kModelEmpty: "optimal",
    highspy.HighsModelStatus.kMemoryLimit: "memory_limit",
    highspy.HighsModelStatus.kObjectiveBound: "objective_limit",
    highspy.HighsModelStatus.kObjectiveTarget: "objective_limit",
}

LAST_SECONDS = 30.0  # at most so long the end of the interpreter waits for the engine
_runs: set[_Run] = set()
_gate = threading.Lock()
_ending = threading.Event()


class _Run:
    """One call into the engine's code. The interpreter waits for its end: a thread that comes back later aborts the process."""

    def __init__(self) -> None:
        self.stop = self.left_behind = False
        self.over = threading.Event()
        self._for_main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> _Run:
        with _gate:
            if _ending.is_set() and not self._for_main:
                raise SystemExit  # of a thread: it ends without a word
            _runs.add(self)
        return self

    def __exit__(self, *failure: object) -> None:
        _runs.discard(self)
        self.over.set()


@atexit.register
def _end_all() -> None:
    with _gate:
        _ending.set()
        left = list(_runs)
    for run in left:
        run.stop = True
    until = time.monotonic() + LAST_SECONDS
    for run in left:
        run.over.wait(max(0.0, until - time.monotonic()))


if hasattr(os, "register_at_fork"):  # the threads that run the engine are not in the child
    os.register_at_fork(after_in_child=_runs.clear)


def version() -> str:
    """Version of the HiGHS library."""
    return str(Silent().version())


_KINDS = {"kBool": bool, "kInt": int, "kDouble": float, "kString": str}


def _set(h: Any, name: str | None, value: Any) -> None:
    why = ""
    known, kind = h.getOptionType(name)
    try:
        if known == highspy.HighsStatus.kOk:
            value = fitting(value, _KINDS.get(kind.name))
            known = h.setOptionValue(name, value)
    except ValueError as error:
        known, why = highspy.HighsStatus.kError, f" ({error})"
    if known != highspy.HighsStatus.kOk:
        raise InvalidParameter(
            f"HiGHS does not take the option {name} = {value!r}{why}. See https://ergo-code.github.io/HiGHS for its options."
        )


def _native(program: LinearProgram, spec: SolverSpec, limits: Limits, scale: float, relax: bool) -> Any:
    A = program.A
    lp = linear_part(
        program, program.cost * scale, program.offset * scale, (A.indptr, A.indices, A.data), relax
    )
    h = Silent()
    own: Any = {spec.native("feasibility_tolerance"): 1e-9} if relax else limits.options
    _set(h, spec.native("time_limit"), float(max(0.0, limits.seconds)))
    for name, value in settings(spec, limits, own).items():
        _set(h, name, value)
    if spec.cutoff and limits.cutoff < np.inf:
        _set(h, spec.cutoff, limits.cutoff * scale)
    if h.passModel(lp) == highspy.HighsStatus.kError:
        raise EngineFailed(
            "HiGHS refused the model's matrix; please report this with the model's .mps file (octsvm.write)."
        )
    return h


class _Progress:
    """What the callbacks of a running engine tell, on its threads; it is passed on in the thread that waits for the engine.

    It must not hold the native model: the model holds its methods, and would never be freed.
    """

    def __init__(self, request: Request, supervisor: Supervisor) -> None:
        self._request, self._supervisor = request, supervisor
        self.run = _Run()
        self._news = queue.SimpleQueue[tuple[float, int, Array | None]]()
        self.best: Array | None = None
        self.bound, self.nodes = -np.inf, 0

    def subscribe(self, h: Any) -> None:
        """Be called by the engine from now on."""
        if self._request.program.integer.any():
            h.cbMipImprovingSolution.subscribe(self._on_incumbent)
            h.cbMipLogging.subscribe(self._on_bound)
            h.cbMipInterrupt.subscribe(self._on_interrupt_check)
        h.cbSimplexInterrupt.subscribe(self._on_interrupt_check)

    def wake(self) -> None:
        """Let who waits in :meth:`pass_on` go on."""
        self._news.put((self.bound, self.nodes, None))

    def pass_on(self, seconds: float) -> None:
        """Tell the callback what came, or what is known where nothing comes within ``seconds``, until the solve is to stop."""
        news = []
        with contextlib.suppress(queue.Empty):
            news.append(self._news.get(timeout=seconds))
            while True:
                news.append(self._news.get_nowait())
        points = [entry for entry in news[:-1] if entry[2] is not None]
        for known in [*points, *(news[-1:] or [(self.bound, self.nodes, None)])]:
            if not self._supervisor.stopping:
                self._supervisor.ask(*known)

    def _on_bound(self, event: Any, point: Array | None = None) -> None:
        out = event.data_out
        self.nodes = max(self.nodes, int(out.mip_node_count))
        self.bound = float(out.mip_dual_bound) / self._request.scale
        self._news.put((self.bound, self.nodes, point))

    def _on_incumbent(self, event: Any) -> None:
        self.best = np.array(event.data_out.mip_solution, dtype=float)
        self._on_bound(event, self.best)

    def _on_interrupt_check(self, event: Any) -> None:
        if self._supervisor.stopping or self.run.stop:
            event.interrupt()


def _run(h: Any, progress: _Progress, supervisor: Supervisor) -> bool:
    """Run in a thread of its own; whether it ended, rather than being left behind."""
    if not any(run.left_behind for run in list(_runs)):
        highspy.Highs.resetGlobalScheduler(True)  # otherwise a second thread count is refused
    failure: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            with progress.run:
                h.run()
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()
            progress.wake()

    def finished() -> bool:
        # Not Thread.join: interrupted by Ctrl-C, it takes the thread for finished while it still runs.
        ended = done.is_set()
        supervisor.guarded(lambda: progress.pass_on(0.0 if ended else 0.1))
        return ended

    threading.Thread(target=work, daemon=True).start()
    ended = supervisor.wait(finished)
    progress.run.left_behind = not ended
    if supervisor.error is not None:
        raise supervisor.error
    if ended and failure:
        if isinstance(failure[0], SystemExit):
            raise failure[0]
        raise EngineFailed(f"HiGHS broke down: {failure[0]}") from None
    return ended


def solve(request: Request, start: Array | None = None, watch: Watch | None = None) -> Outcome:
    """Solve a (mixed-integer) linear program.

    Raises
    ------
    EngineFailed
    """
    spec, limits = request.spec, request.limits
    h = _native(request.program, spec, limits, request.scale, relax=False)
    log = EngineLog(spec, limits.log)
    _set(h, "output_flag", True)
    h.cbLogging.subscribe(lambda event: log.text(event.message))
    if start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = np.asarray(start, dtype=float)
        h.setSolution(solution)
    supervisor = Supervisor(limits.seconds, watch)
    progress = _Progress(request, supervisor)
    progress.subscribe(h)
    with contextlib.closing(log), supervisor:
        ended = _run(h, progress, supervisor)
    if ended:
        outcome = _answered(h, request, progress, supervisor)
    else:  # what it had found until then
        failure = f"{spec.title} did not stop when told to, and was left behind"
        known = progress.best, progress.bound, progress.nodes
        outcome = request.outcome(supervisor.reason, *known, failure=failure)
    return replace(outcome, start=log.start, version=version(), failure=outcome.failure or log.trouble)


def _status(h: Any, supervisor: Supervisor) -> str:
    """Our reason for the end."""
    stop = _STOPS.get(h.getModelStatus(), "error")
    if supervisor.stopping and stop in ("interrupted", "error"):
        stop = supervisor.reason  # stopped early on, HiGHS leaves its status unset
    if supervisor.pressed and stop != "infeasible":
        stop = "interrupted"
    return stop


def _answered(h: Any, request: Request, progress: _Progress, supervisor: Supervisor) -> Outcome:
    """The outcome of a solve that ended."""
    stop, info = _status(h, supervisor), h.getInfo()
    mixed = bool(request.program.integer.any())
    x = None
    if int(info.primal_solution_status) == 2:
        x = np.array(h.getSolution().col_value, dtype=float)
    elif progress.best is not None and stop not in ("infeasible", "inf_or_unbd"):
        x = progress.best
    bound = request.objective(x) if stop == "optimal" else -np.inf
    if mixed:
        bound = float(info.mip_dual_bound) / request.scale
    return request.outcome(
        stop,
        x,
        bound if abs(bound) < 1e19 else -np.inf,
        max(progress.nodes, int(info.mip_node_count) if mixed else 0),
        native=h.modelStatusToString(h.getModelStatus()),
    )


def _run_for(h: Any, seconds: float) -> None:
    """Run in this thread, for so many seconds more than before."""
    _set(h, "time_limit", float(max(0.0, seconds)) + h.getRunTime())
    with _Run():
        h.run()


class FixedProgram:
    """The continuous rest of a program whose integers are fixed; rows can be added between solves."""

    def __init__(self, program: LinearProgram, spec: SolverSpec, limits: Limits, x: Array) -> None:
        self._program = program
        self._h = _native(program, spec, limits, program.cost_scale(limits.size), relax=True)
        fixed = np.flatnonzero(program.integer).astype(np.int32)
        whole = np.round(x[fixed])
        if len(fixed):
            self._h.changeColsBounds(len(fixed), fixed, whole, whole)

    def add_rows(self, rows: Sequence[Row]) -> None:
        """Append rows to the native model only."""
        for row in rows:
            self._h.addRow(
                float(row.low),
                highspy.kHighsInf,
                len(row.at),
                np.asarray(row.at, dtype=np.int32),
                np.asarray(row.value, dtype=float),
            )

    def solve(self, seconds: float) -> tuple[str, Array | None, float]:
        """Stop, point and objective."""
        _run_for(self._h, seconds)
        stop = _STOPS.get(self._h.getModelStatus(), "error")
        if stop != "optimal":
            return stop, None, np.inf
        x = np.array(self._h.getSolution().col_value, dtype=float)
        return stop, x, self._program.objective(x)


class Answer(NamedTuple):
    """A point of a linear program and the multipliers of its rows."""

    x: Array
    multipliers: Array


class WarmProgram:
    """A small linear program that is solved again and again, each time from where it ended."""

    def __init__(self, cost: Array, low: Array, high: Array) -> None:
        self._h = Silent()
        for name, value in (("output_flag", False), ("presolve", "off"), ("solver", "simplex")):
            _set(self._h, name, value)
        self._columns = np.arange(len(cost), dtype=np.int32)
        self._h.addVars(len(cost), low, high)
        self._h.changeColsCost(len(cost), self._columns, np.asarray(cost, dtype=float))

    def add_row(self, at: Any, value: Array, low: float, high: float = highspy.kHighsInf) -> None:
        """Append a row between ``low`` and ``high``, with its columns and their values."""
        self._h.addRow(low, high, len(at), np.asarray(at, dtype=np.int32), np.asarray(value, dtype=float))

    def solve(
        self, seconds: float, cost: Array | None = None, low: Array | None = None, high: Array | None = None
    ) -> Answer | None:
        """Solve it with other costs or bounds of all columns; None where it is not solved in that time."""
        if cost is not None:
            self._h.changeColsCost(len(cost), self._columns, cost)
        if low is not None:
            self._h.changeColsBounds(len(low), self._columns, low, high)
        _run_for(self._h, seconds)
        if self._h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        found = self._h.getSolution()
        return Answer(np.array(found.col_value), np.array(found.row_dual))
