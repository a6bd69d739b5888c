"""An engine's Python interface in a process of its own: whatever happens there costs that solve alone.

The parent sends arrays and reads messages: feasible points and bounds as they are found, so that a crash, a hang or a
kill loses nothing that was known. Past the limit the process is told to stop, then killed with all that it started.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import EngineFailed, InvalidParameter, LicenseTooSmall, UnsupportedProblem
from ..solvers import Option, SolverSpec
from .engine_log import EngineLog, discard
from .matrix_program import SEEDS, Array, Limits, LinearProgram, Outcome, QuadraticForm, Watch, claimed_bound
from .protocol import Answer, Job, read_message, write_message

PATIENCE = 0.4  # seconds past the limit after which a solve is told to stop
GRACE = 1.0  # seconds that it then has before it is killed
TAIL = 6  # lines of the log that an error quotes


def settings(spec: SolverSpec, limits: Limits, own: dict[str, Any]) -> dict[str, Any]:
    """The solver's own options for these limits, without the time limit."""
    out = dict(spec.fixed)
    values: dict[str, Any] = {
        "gap": float(limits.gap),
        "gap_abs": 1e-9,
        "threads": int(limits.threads),
        "seed": int(limits.seed) % SEEDS,
        "node_limit": limits.nodes,
        "work_limit": limits.work,
        "feasibility_tolerance": spec.tolerances.feasibility,
        "integrality_tolerance": limits.integrality,
    }
    for neutral, value in values.items():
        option = spec.options.get(neutral)
        if option is None or value is None:
            continue
        if isinstance(option, Option):
            if option.measure == "smaller":  # its gap is relative to the smaller of objective and bound
                value = value / (1 - value)
            option = option.name
        # two of ours may be one of theirs: the stricter counts
        out[option] = min(out[option], value) if option in out and option not in spec.fixed else value
    return out | own


def own_limit(limits: Limits, name: str) -> float:
    """The seconds of these limits, or fewer where the caller's own options ask for fewer by the solver's name."""
    own = limits.options.get(name)
    return min(limits.seconds, float(own)) if isinstance(own, (int, float)) else limits.seconds


def job_for(program: LinearProgram, spec: SolverSpec, limits: Limits, scale: float, nl: Path | None) -> Job:
    """The job of one solve; the objective is multiplied by ``scale``."""

    def form(f: QuadraticForm, factor: float) -> tuple[Any, Any, Any]:
        return f.first, f.second, f.coef * factor

    arrays = nl is None
    A = program.A
    time_option = spec.native("time_limit") or ""
    return Job(
        cost=program.cost * scale,
        offset=program.offset * scale,
        low=program.low,
        high=program.high,
        integer=program.integer,
        matrix=(A.indptr, A.indices, A.data) if arrays else (A.indptr[:1], A.indices[:0], A.data[:0]),
        row_low=program.row_low if arrays else program.row_low[:0],
        row_high=program.row_high if arrays else program.row_high[:0],
        quadratic_cost=None
        if program.quadratic_cost is None or not arrays
        else form(program.quadratic_cost, scale),
        quadratic_rows=[(*form(r.form, 1.0), r.at, r.value, r.low, r.high) for r in program.quadratic_rows]
        if arrays
        else [],
        nl="" if nl is None else str(nl),
        settings=settings(spec, limits, dict(limits.options)),
        own_options=tuple(limits.options),
        deadline=time.monotonic() + own_limit(limits, time_option),
        time_option=time_option,
    )


class _Process:
    """A worker, its messages and its log."""

    def __init__(self, adapter: str, log: EngineLog) -> None:
        self.folder = tempfile.mkdtemp(prefix="octsvm-")
        home = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(p for p in (home, os.environ.get("PYTHONPATH", "")) if p)
        self.messages: queue.Queue[tuple[Any, ...]] = queue.Queue()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.worker", adapter, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env=os.environ | {"PYTHONPATH": path},
                start_new_session=True,
            )
        except BaseException:
            discard(self.folder)
            raise
        self._threads = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=log.drain, args=(self.process.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def send(self, job: Job) -> None:
        with contextlib.suppress(OSError):
            write_message(self.process.stdin, job)  # type: ignore[arg-type]

    def _read(self) -> None:
        try:
            while True:
                self.messages.put(read_message(self.process.stdout))  # type: ignore[arg-type]
        except Exception:
            self.messages.put(("end",))

    def stop(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.write(b"s")  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            self.process.kill()

    def close(self) -> int | None:
        """End it with all that it started, and leave nothing behind; its exit code."""
        code = self.process.poll()
        if code is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self.process.wait(0.2)
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        for thread in self._threads:
            thread.join(1)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.close()  # type: ignore[union-attr]
        discard(self.folder)
        return code if code is not None else self.process.poll()


def death(code: int | None) -> str:
    """What an exit code says, for a user."""
    if code is None:
        return "its process did not end"
    if code >= 0:
        return f"its process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    more = " (often for want of memory)" if name == "SIGKILL" else ""
    return f"its process was ended by {name}{more}"


def solve(
    program: LinearProgram,
    spec: SolverSpec,
    limits: Limits,
    start: Array | None = None,
    watch: Watch | None = None,
    nl: Any = None,
) -> Outcome:
    """Solve ``program`` (or the .nl file of it) in a process of its own.

    Raises
    ------
    LicenseTooSmall, InvalidParameter, UnsupportedProblem
        The engine does not take the job.
    EngineFailed
        No process could be started.
    """
    scale = program.cost_scale(limits.size) if nl is None else nl.scale
    began = time.monotonic()
    log = EngineLog(spec, limits.log)
    try:
        process = _Process(spec.adapter, log)
    except OSError as error:
        raise EngineFailed(
            f"No process for {spec.title} could be started: {error.strerror or error}. See whether the folder for temporary "
            "files can be written to (TMPDIR names another)."
        ) from None
    best, best_objective = None, np.inf
    bound, nodes, startup = -np.inf, 0, 0.0
    start_state, version = "", [""]
    if start is not None:
        start_state = "unsupported" if spec.start.passes == "none" else ""
    answer: Answer | None = None
    trouble: tuple[str, str] | None = None
    asked = pressed = False
    stop_at, kill_at = began + limits.seconds + PATIENCE, np.inf
    killed = False
    job = job_for(program, spec, limits, scale, None if nl is None else nl.path)

    width = program.n if nl is None else len(nl.columns)

    def point_of(x: Any) -> Array | None:
        """A point in the columns of the program; None for what cannot be one."""
        if not isinstance(x, np.ndarray) or x.shape != (width,) or not np.isfinite(x).all():
            return None
        if nl is None:
            return x
        out = np.clip(np.zeros(program.n), program.low, program.high)
        out[nl.columns] = x
        return out

    def tell(point: Array | None) -> None:
        nonlocal asked
        if watch is not None and not asked and watch(bound, nodes, point):
            asked = True

    def take(message: tuple[Any, ...]) -> bool:
        """Act on a message; whether it was the last one."""
        nonlocal best, best_objective, bound, nodes, startup, start_state, answer, trouble
        kind = message[0]
        if kind == "version":
            version[0] = message[1]
            startup = time.monotonic() - began
        elif kind == "point":
            point = point_of(message[1])
            value = np.inf if point is None else program.objective(point)
            if value < best_objective:
                best, best_objective = point, value
                tell(point)
        elif kind == "bound":
            if abs(message[1]) < 1e19:
                bound = max(bound, message[1] / scale)
            nodes = max(nodes, message[2])
            tell(None)
        elif kind == "start":
            start_state = message[1]
        elif kind == "done":
            answer = message[1]
            return True
        elif kind in ("refused", "failed"):
            trouble = (message[1], message[2]) if kind == "refused" else ("failed", message[1])
            return True
        return kind == "end"

    try:
        if start is not None and spec.start.passes != "none":
            job.start = start
        sender = threading.Thread(target=process.send, args=(job,), daemon=True)
        sender.start()
        finished = False
        while not finished:
            try:
                now = time.monotonic()
                if (asked or pressed or now > stop_at) and kill_at == np.inf:
                    process.stop()
                    kill_at = now + GRACE
                if now > kill_at:
                    process.kill()
                    killed = True
                    break
                try:
                    finished = take(process.messages.get(timeout=0.05))
                except queue.Empty:
                    tell(None)
            except KeyboardInterrupt:  # may arrive at any line
                pressed = True
        while not process.messages.empty() and answer is None:  # what came in before a kill
            take(process.messages.get_nowait())
    finally:
        code = process.close()
        log.close()
    late = time.monotonic() > began + limits.seconds
    if trouble is not None and trouble[0] != "failed":
        _refuse(spec, *trouble)
    common: dict[str, Any] = {
        "start": start_state or log.start,
        "startup": startup,
        "options": job.settings,
        "version": version[0],
    }
    if answer is not None:
        x, failure = best, ""
        given = point_of(answer.x)
        if answer.x is not None and given is None:
            failure = (
                f"{spec.title} answered with something that is no point of the model, and it was dropped"
            )
        worst = best_objective + 1e-9 * max(1.0, abs(best_objective))
        if given is not None and (best is None or program.objective(given) <= worst):
            x = given
        if abs(answer.bound) < 1e19:
            bound = max(bound, answer.bound / scale)
        if log.bound is not None:
            bound = max(bound, log.bound / scale)
        stop = answer.stop
        if stop in ("optimal", "gap_limit") and answer.bound == -np.inf and given is not None and x is given:
            # Its log names the bound now and then only; what it says at the end is that the gap is closed.
            bound = max(bound, claimed_bound(program.objective(given), limits, spec.native("gap")))
        if stop in ("unbounded", "inf_or_unbd"):
            x, bound = None, -np.inf
        if stop == "interrupted" and late and not asked and not pressed:
            stop = "time_limit"
        if stop == "infeasible":
            bound = np.inf
        return Outcome(
            stop,
            x,
            np.inf if x is None else program.objective(x),
            bound,
            max(nodes, answer.nodes, log.nodes),
            native=answer.native,
            failure="; ".join(text for text in (failure, log.trouble) if text),
            **common,
        )
    if log.bound is not None:
        bound = max(bound, log.bound / scale)
    if killed or pressed:
        stop = "time_limit" if killed and late and not asked and not pressed else "interrupted"
        failure = f"{spec.title} did not stop when told to, and was ended" if killed else ""
    else:
        stop = "error"
        said = trouble[1] if trouble is not None else death(code)
        failure = f"{spec.title} broke down: {said}"
        lines = log.tail(TAIL)
        if lines and trouble is None:
            failure += ". The end of its log: " + " / ".join(lines)
    objective = np.inf if best is None else program.objective(best)
    return Outcome(stop, best, objective, bound, max(nodes, log.nodes), failure=failure, **common)


def _refuse(spec: SolverSpec, kind: str, text: str) -> None:
    if kind == "licence":
        raise LicenseTooSmall(
            f"{spec.title} refuses this model for its licence: {text}. Another solver takes it (`octsvm solvers`), or a "
            f"licence: {spec.install}."
        )
    if kind == "option":
        raise InvalidParameter(
            f"{spec.title} does not take an option: {text}. See its manual for names and values."
        )
    raise UnsupportedProblem(f"{spec.title} refuses this model: {text}")
