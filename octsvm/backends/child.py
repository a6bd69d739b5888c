"""An engine's Python interface in a process of its own: whatever happens there costs that solve alone.

The parent sends arrays and reads messages: feasible points and bounds as they are found, so that a crash, a hang or a
kill loses nothing that was known. Past the limit the process is told to stop, then killed with all that it started.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..errors import EngineFailed, LicenseTooSmall, OctsvmError, UnsupportedProblem
from ..solvers import SolverSpec
from .engine_log import EngineLog
from .interpreter import found_interpreter
from .matrix_program import Array, Outcome, QuadraticForm, Request, Watch
from .own_options import not_taken, settings
from .protocol import Answer, Job, read_message, write_message
from .supervisor import Supervisor, death, environment

LAST_SECONDS = 0.2  # for a worker to end by itself after its last message


def job_for(request: Request, start: Array | None) -> Job:
    """The job of one solve."""

    def form(f: QuadraticForm, factor: float) -> tuple[Any, Any, Any]:
        return f.first, f.second, f.coef * factor

    program, spec, scale = request.program, request.spec, request.scale
    rows = slice(None if request.nl is None else 0)  # a file has them instead
    A = program.A if request.nl is None else program.A[:0]
    squares = program.quadratic_cost if request.nl is None else None
    return Job(
        cost=program.cost * scale,
        offset=program.offset * scale,
        low=program.low,
        high=program.high,
        integer=program.integer,
        matrix=(A.indptr, A.indices, A.data),
        row_low=program.row_low[rows],
        row_high=program.row_high[rows],
        quadratic_cost=None if squares is None else form(squares, scale),
        quadratic_rows=[
            (*form(r.form, 1.0), r.at, r.value, r.low, r.high) for r in program.quadratic_rows[rows]
        ],
        nl="" if request.nl is None else str(request.nl.path),
        settings=settings(spec, request.limits, dict(request.limits.options)),
        own_options=tuple(request.limits.options),
        deadline=time.monotonic() + request.seconds,
        time_option=spec.native("time_limit") or "",
        start=start,
    )


class _Worker:
    """The process of an adapter: takes one job, and sends messages.

    Raises
    ------
    EngineFailed
        It could not be started.
    """

    def __init__(self, spec: SolverSpec, log: EngineLog, supervisor: Supervisor) -> None:
        self.messages: queue.Queue[tuple[Any, ...]] = queue.Queue()
        home = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(p for p in (home, os.environ.get("PYTHONPATH", "")) if p)
        python = found_interpreter()
        if python is None:
            raise EngineFailed(
                f"{spec.title} runs in a Python process of its own, and this Python runs within "
                f"{sys.executable or 'another program'}, with no interpreter beside it. Name one of the same version with "
                "multiprocessing.set_executable(path), or use a solver that runs in this process or is a program (octsvm "
                "solvers says which do)."
            )
        try:
            supervisor.make_folder()
            self._process = supervisor.start(
                [python, "-m", f"{__package__}.worker", spec.adapter, str(os.getpid())],
                environment({"PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}),
                output=self._read,
                errors=log.drain,
            )
        except OSError as error:
            raise EngineFailed(
                f"No process for {spec.title} could be started: {error.strerror or error}. See whether the folder for "
                "temporary files can be written to (TMPDIR names another)."
            ) from None

    def send(self, job: Job) -> None:
        """Send the job, on a thread: the worker loads its engine before it reads."""

        def write() -> None:
            with contextlib.suppress(OSError):
                write_message(self._process.stdin, job)  # type: ignore[arg-type]

        threading.Thread(target=write, daemon=True).start()

    def _read(self, stream: IO[bytes]) -> None:
        try:
            while True:
                self.messages.put(read_message(stream))
        except Exception:
            self.messages.put(("end",))

    def stop(self) -> None:
        """Tell it to stop."""
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(b"s")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]


class _Findings:
    """What the messages of a worker come to."""

    def __init__(self, request: Request, supervisor: Supervisor) -> None:
        self._request, self._supervisor = request, supervisor
        self.best: Array | None = None
        self.objective = np.inf
        self.bound, self.nodes = -np.inf, 0
        self.startup, self.version = 0.0, ""
        self.answer: Answer | None = None
        self.refusal: tuple[str, str] | None = None
        self.failure = ""

    def next(self, messages: queue.Queue[tuple[Any, ...]]) -> bool:
        """Act on the next message, if one comes soon; whether it was the last one."""
        try:
            message = messages.get(timeout=0.05)
        except queue.Empty:
            self._ask()
            return False
        return self._take(message)

    def rest(self, messages: queue.Queue[tuple[Any, ...]]) -> None:
        """Act on what came in before a kill."""
        while not messages.empty() and self.answer is None:
            self._take(messages.get_nowait())

    def raise_bound(self, theirs: float | None) -> None:
        """Take a bound of the engine's, in its own scale, where it is a better one."""
        if theirs is not None and abs(theirs) < 1e19:
            self.bound = max(self.bound, theirs / self._request.scale)

    def _ask(self, point: Array | None = None) -> None:
        self._supervisor.ask(self.bound, self.nodes, point)

    def _take(self, message: tuple[Any, ...]) -> bool:
        kind = message[0]
        if kind == "version":
            self.version = message[1]
            self.startup = time.monotonic() - self._supervisor.began
        elif kind == "point":
            self._improve(message[1])
        elif kind == "bound":
            self.raise_bound(message[1])
            self.nodes = max(self.nodes, message[2])
            self._ask()
        elif kind == "done":
            self.answer = message[1]
        elif kind == "refused":
            self.refusal = (message[1], message[2])
        elif kind == "failed":
            self.failure = message[1]
        return kind in ("done", "refused", "failed", "end")

    def _improve(self, values: Any) -> None:
        point = self._request.point(values)
        value = self._request.objective(point)
        if value < self.objective:
            self.best, self.objective = point, value
            self._ask(point)


def solve(request: Request, start: Array | None = None, watch: Watch | None = None) -> Outcome:
    """Solve the program (or the .nl file of it) in a process of its own.

    Raises
    ------
    LicenseTooSmall, InvalidParameter, UnsupportedProblem
        The engine does not take the job.
    EngineFailed
        No process could be started.
    """
    spec, limits = request.spec, request.limits
    supervisor = Supervisor(limits.seconds, watch)
    log = EngineLog(spec, limits.log)
    found = _Findings(request, supervisor)
    with contextlib.closing(log), supervisor:
        worker = _Worker(spec, log, supervisor)
        job = job_for(request, start)
        worker.send(job)
        supervisor.wait(lambda: found.next(worker.messages), worker.stop)
        found.rest(worker.messages)
        supervisor.poll(LAST_SECONDS)
        code = supervisor.end()
    if found.refusal is not None:
        raise _refused(spec, *found.refusal)
    found.raise_bound(log.bound)
    found.nodes = max(found.nodes, log.nodes)
    if found.answer is not None:
        outcome = _answered(request, found, found.answer, log, supervisor)
    else:  # it died or was ended: what it had found until then
        said = found.failure or death(code) + log.ending()
        stop, failure = supervisor.without_answer(spec.title, said)
        outcome = request.outcome(stop, found.best, found.bound, found.nodes, failure=failure)
    return replace(
        outcome,
        start=log.start,
        startup=found.startup,
        options=job.settings,
        version=found.version,
    )


def _answered(
    request: Request, found: _Findings, answer: Answer, log: EngineLog, supervisor: Supervisor
) -> Outcome:
    """The outcome of a worker that came to its end."""
    x, failure, stop = found.best, "", answer.stop
    given = request.point(answer.x)
    if answer.x is not None and given is None:
        failure = (
            f"{request.spec.title} answered with something that is no point of the model, and it was dropped"
        )
    worst = found.objective + 1e-9 * max(1.0, abs(found.objective))
    if given is not None and (x is None or request.objective(given) <= worst):
        x = given
    if stop == "node_limit" and np.isfinite(answer.bound):
        found.bound = -np.inf  # as the rounds do: a limit of nodes gives what the engine ends with
    found.raise_bound(answer.bound)
    bound = found.bound
    if stop in ("optimal", "gap_limit") and answer.bound == -np.inf and given is not None and x is given:
        # Its log names the bound now and then only; what it says at the end is that the gap is closed.
        bound = max(bound, request.claimed_bound(request.objective(given)))
    return request.outcome(
        supervisor.reason if stop == "interrupted" else stop,
        x,
        bound,
        max(found.nodes, answer.nodes),
        native=answer.native,
        failure="; ".join(text for text in (failure, log.trouble) if text),
    )


def _refused(spec: SolverSpec, kind: str, text: str) -> OctsvmError:
    if kind == "licence":
        return LicenseTooSmall(
            f"{spec.title} refuses this model for its licence: {text}. Another solver takes it (`octsvm solvers`), or a "
            f"licence: {spec.install}."
        )
    if kind == "option":
        return not_taken(spec, text)
    return UnsupportedProblem(f"{spec.title} refuses this model: {text}")
