"""HiGHS through highspy, on matrices.

Every solve gets a fresh native model (no state survives), runs in a thread of its own (so that Ctrl-C and the hard
deadline work while the solver holds the processor), and checks that each option was accepted.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import highspy
import numpy as np

from ..errors import EngineFailed, InvalidParameter
from ..solvers import SolverSpec
from .engine_log import EngineLog
from .matrix_program import SEEDS, Array, Limits, LinearProgram, Outcome, Row, Watch

GRACE = 1.0  # seconds past the limit after which a solve is told to stop; twice that, and it is left behind

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
}
for _name, _stop in (("kMemoryLimit", "memory_limit"), ("kObjectiveBound", "objective_limit")):
    if hasattr(highspy.HighsModelStatus, _name):
        _STOPS[getattr(highspy.HighsModelStatus, _name)] = _stop

_left_behind: list[threading.Event] = []  # solves that did not stop when told to


@atexit.register
def _await_those_left_behind() -> None:
    # A solver thread that still runs when the process ends would abort it.
    for done in _left_behind:
        done.wait(30)


class _Silent(highspy.Highs):
    """HiGHS that prints nothing when it is made (its banner comes with the first call after construction)."""

    def enableCallbacks(self) -> None:
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()


def version() -> str:
    """Version of the HiGHS library."""
    return str(_Silent().version())


def _set(h: Any, name: str | None, value: Any) -> None:
    if h.setOptionValue(name, value) != highspy.HighsStatus.kOk:
        raise InvalidParameter(
            f"HiGHS does not take the option {name} = {value!r}. See https://ergo-code.github.io/HiGHS for its options."
        )


def _native(program: LinearProgram, spec: SolverSpec, limits: Limits, scale: float, relax: bool) -> Any:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.n, program.A.shape[0]
    lp.col_cost_ = program.cost * scale
    lp.offset_ = program.offset * scale
    lp.col_lower_, lp.col_upper_ = program.low, program.high
    lp.row_lower_, lp.row_upper_ = program.row_low, program.row_high
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = program.A.indptr.astype(np.int32)
    lp.a_matrix_.index_ = program.A.indices.astype(np.int32)
    lp.a_matrix_.value_ = program.A.data
    if not relax and program.integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(k)] for k in program.integer]
    h = _Silent()
    options = {neutral: spec.native(neutral) or neutral for neutral in spec.options}
    for name, value in spec.fixed.items():
        _set(h, name, value)
    _set(h, options["time_limit"], float(max(0.0, limits.seconds)))
    _set(h, options["threads"], int(limits.threads))
    _set(h, options["seed"], int(limits.seed) % SEEDS)
    _set(h, options["feasibility_tolerance"], spec.tolerances.feasibility if not relax else 1e-9)
    _set(h, options["integrality_tolerance"], limits.integrality)
    if h.passModel(lp) == highspy.HighsStatus.kError:
        raise EngineFailed(
            "HiGHS refused the model's matrix; please report this with the model's .mps file (octsvm.write)."
        )
    return h


def _run(h: Any, seconds: float, stop: threading.Event, tick: Callable[[], None]) -> tuple[bool, bool]:
    """Run in a thread of its own: whether it finished (or was left behind), and whether Ctrl-C was pressed.

    Ctrl-C, and an exception of ``tick``, set ``stop`` and wait for the end.

    ``tick`` is called about ten times a second meanwhile: HiGHS itself may be silent for long.
    """
    if all(done.is_set() for done in _left_behind):
        highspy.Highs.resetGlobalScheduler(True)  # otherwise a second thread count is refused
    failure: list[BaseException] = []

    def work() -> None:
        try:
            h.run()
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    # Not Thread.join: interrupted by Ctrl-C, it takes the thread for finished while it still runs.
    done = threading.Event()
    thread = threading.Thread(target=work, daemon=True)
    deadline = time.monotonic() + seconds
    asked = [0.0]

    def wait() -> bool:
        while not done.wait(0.1):
            tick()
            now = time.monotonic()
            if now > deadline + GRACE:
                stop.set()
            if stop.is_set():
                asked[0] = asked[0] or now
                if now > asked[0] + GRACE:
                    _left_behind.append(done)
                    return False
        return True

    thread.start()
    pressed, broken = False, None
    while True:
        try:
            finished = wait()
            break
        except KeyboardInterrupt:  # it may arrive at any line of the wait
            pressed = True
            stop.set()
        except (
            BaseException
        ) as error:  # of the caller's callback: the solver must have ended before it goes on
            broken = broken or error
            stop.set()
    if broken is not None:
        raise broken
    if not finished:
        return False, pressed
    if failure:
        raise EngineFailed(f"HiGHS broke down: {failure[0]}") from None
    return True, pressed


def solve(
    program: LinearProgram,
    spec: SolverSpec,
    limits: Limits,
    start: Array | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Solve a (mixed-integer) linear program.

    Raises
    ------
    EngineFailed
    """
    scale = program.cost_scale(limits.size)
    h = _native(program, spec, limits, scale, relax=False)
    _set(h, spec.native("gap"), float(limits.gap))
    _set(h, spec.native("gap_abs"), 1e-9)
    if limits.nodes is not None:
        _set(h, spec.native("node_limit"), int(limits.nodes))
    for name, value in limits.options.items():
        _set(h, name, value)
    log = EngineLog(spec, limits.log)
    _set(h, "output_flag", True)
    h.cbLogging.subscribe(lambda event: log.text(event.message))
    if start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = np.asarray(start, dtype=float)
        h.setSolution(solution)

    stop = threading.Event()
    asked: list[bool] = []
    best: list[Array] = []
    nodes, known = [0], [-np.inf]
    one_at_a_time = threading.Lock()

    broken: list[BaseException] = []

    def tell(point: Array | None) -> None:
        if watch is not None and not stop.is_set():
            with one_at_a_time:
                if watch(known[0], nodes[0], point):
                    asked.append(True)
                    stop.set()

    def tell_from_engine(point: Array | None) -> None:
        try:
            tell(point)
        except BaseException as error:  # must not unwind through the engine
            broken.append(error)
            stop.set()

    def look(event: Any, point: Array | None) -> None:
        out = event.data_out
        nodes[0] = max(nodes[0], int(out.mip_node_count))
        known[0] = float(out.mip_dual_bound) / scale
        tell_from_engine(point)

    def improved(event: Any) -> None:
        point = np.array(event.data_out.mip_solution, dtype=float)
        best[:] = [point]
        look(event, point)

    def interrupt(event: Any) -> None:
        if stop.is_set():
            event.interrupt()

    mixed = bool(program.integer.any())
    if mixed:
        h.cbMipImprovingSolution.subscribe(improved)
        h.cbMipLogging.subscribe(lambda event: look(event, None))
        h.cbMipInterrupt.subscribe(interrupt)
    h.cbSimplexInterrupt.subscribe(interrupt)

    began = time.monotonic()
    try:
        finished, pressed = _run(h, limits.seconds, stop, lambda: tell(None))
    finally:
        log.close()
    if broken:
        raise broken[0]
    late = time.monotonic() - began > limits.seconds
    if not finished:
        x = best[0] if best else None
        reason = "time_limit" if late and not pressed else "interrupted"
        return Outcome(
            reason,
            x,
            np.inf if x is None else program.objective(x),
            known[0],
            nodes[0],
            start=log.start,
            version=version(),
            failure=f"{spec.title} did not stop when told to, and was left behind",
        )

    status = _STOPS.get(h.getModelStatus(), "error")
    if stop.is_set() and status in (
        "interrupted",
        "error",
    ):  # stopped early on, HiGHS leaves its status unset
        status = "time_limit" if late and not asked and not pressed else "interrupted"
    if pressed and status != "infeasible":
        status = "interrupted"
    info = h.getInfo()
    x = None
    if int(info.primal_solution_status) == 2:
        x = np.array(h.getSolution().col_value, dtype=float)
    elif best and status not in ("infeasible", "inf_or_unbd"):
        x = best[0]
    objective = np.inf if x is None else program.objective(x)
    bound = float(info.mip_dual_bound) / scale if mixed else (objective if status == "optimal" else -np.inf)
    if status == "infeasible":
        bound = np.inf
    if abs(bound) >= 1e19 and status != "infeasible":
        bound = -np.inf
    return Outcome(
        status,
        x,
        objective,
        bound,
        max(nodes[0], int(info.mip_node_count) if mixed else 0),
        start=log.start,
        native=h.modelStatusToString(h.getModelStatus()),
        version=version(),
        failure=log.trouble,
    )


class FixedProgram:
    """The continuous rest of a program whose integers are fixed; rows can be added between solves."""

    def __init__(self, program: LinearProgram, spec: SolverSpec, limits: Limits, x: Array) -> None:
        self._program = program
        self._scale = program.cost_scale(limits.size)
        self._spec = spec
        self._h = _native(program, spec, limits, self._scale, relax=True)
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
        _set(self._h, self._spec.native("time_limit"), float(max(0.0, seconds)) + self._h.getRunTime())
        self._h.run()
        stop = _STOPS.get(self._h.getModelStatus(), "error")
        if stop != "optimal":
            return stop, None, np.inf
        x = np.array(self._h.getSolution().col_value, dtype=float)
        return stop, x, self._program.objective(x)
