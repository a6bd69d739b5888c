"""A program that reads a model's file and writes a solution's: any AMPL solver, and others whose entry says how.

Each solve has a folder of its own, in which the program runs, and a process group of its own. Past the limit it gets an
interrupt (many then write their incumbent), and is killed where that does not help. Without a readable solution file there
is no answer, whatever the exit code says.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np

from ..errors import EngineFailed, InvalidParameter, InvalidSolutionFile, OutputNotWritable
from ..solvers import SolverSpec, expand
from .child import GRACE, PATIENCE, TAIL, death, own_limit, settings
from .engine_log import EngineLog, discard
from .matrix_program import SEEDS, Array, Limits, LinearProgram, Outcome, Watch, claimed_bound
from .mps import write_model
from .solution_formats import SolutionFile, read

ASL_STOPS = ((100, "optimal"), (200, "numeric"), (300, "infeasible"), (400, "unbounded"), (500, "time_limit"))
ASL_INTERRUPTED = 422
# Runs a program that is killed when this process dies (Linux): its group is its own, so that nothing else would reach it.
LAUNCHER = """
import ctypes, os, signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    os._exit(3)
try:
    os.execv(sys.argv[2], sys.argv[2:])
except OSError as error:
    print(f"{sys.argv[2]} could not be started: {error.strerror}", flush=True)
    os._exit(127)
"""
LIMITS = ("time_limit", "node_limit", "error")


def solve(
    program: LinearProgram,
    spec: SolverSpec,
    limits: Limits,
    start: Array | None = None,
    watch: Watch | None = None,
    nl: Any = None,
) -> Outcome:
    """Write the model (or take the .nl file of it), run the program on it, and read what it wrote.

    Raises
    ------
    InvalidParameter
        An option of the caller's that the program has no way to take, or refuses.
    OutputNotWritable
        The model's file could not be written.
    EngineFailed
        The program could not be started.
    """
    began = time.monotonic()
    scale = program.cost_scale(limits.size) if nl is None else nl.scale
    own = dict(limits.options)
    if own and spec.option_file is None and not spec.own_option:
        raise InvalidParameter(
            f"{spec.title} has no way to take options of your own here ({', '.join(own)})."
        )
    log = EngineLog(spec, limits.log)
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(prefix="octsvm-"))
        model = _model_file(program, spec, scale, folder, nl)
        used = settings(spec, limits, own)
        start_state = ""
        start_file = None
        if start is not None:
            start_state = "unsupported" if spec.start.passes == "none" else ""
            if spec.start.passes != "none" and program.integer.any():
                start_file = _start_file(program, spec, start, folder)
        left = max(0.1, limits.seconds - (time.monotonic() - began))
        values = _values(spec, limits, model, folder, start_file, left)
        argv = _arguments(spec, values, own)
        if spec.option_file is not None:
            _option_file(spec, used, min(left, own_limit(limits, spec.native("time_limit") or "")), folder)
        code, killed, pressed, asked = _run(spec, argv, folder, limits, began, log, watch)
        late = time.monotonic() > began + limits.seconds
        found, trouble = _answer(spec, values["solution"])
        if own:
            _check_refused(spec, own, log, found is None and not (killed or pressed or asked))
    except OSError as error:
        raise OutputNotWritable(
            f"A file for {spec.title} cannot be written: {error.strerror or error}. TMPDIR names another folder for "
            "temporary files."
        ) from None
    finally:
        log.close()
        if folder is not None:
            discard(folder)
    x = None
    stop, native = "error", ""
    if found is not None:
        stop, native = _stop(spec, found, log.stop)
        if found.has_point and stop not in ("infeasible", "unbounded", "inf_or_unbd"):
            x = _point(program, found, nl)
    bound = -np.inf
    if log.bound is not None:
        bound = log.bound / scale + (program.offset if nl is None else 0.0)
    if stop in ("optimal", "gap_limit") and x is not None and found is not None:
        # Its log names the bound now and then only; what it says at the end is that the gap is closed.
        claimed = program.objective(x)
        if found.objective is not None and nl is None:
            claimed = found.objective / scale + program.offset
        if abs(claimed - program.objective(x)) <= 1e-6 * max(1.0, abs(claimed)):
            bound = max(bound, claimed_bound(claimed, limits, spec.native("gap")))
    failure = ""
    if found is None:
        if killed or pressed or asked:
            stop = "time_limit" if late and not (asked or pressed) else "interrupted"
            failure = f"{spec.title} did not stop when told to, and was ended" if killed else ""
        else:
            said = trouble or "it wrote no solution file"
            failure = f"{spec.title} broke down: {said}, and {death(code)}"
            lines = log.tail(TAIL)
            if lines:
                failure += ". The end of its log: " + " / ".join(lines)
    elif stop == "interrupted" and late and not (asked or pressed):
        stop = "time_limit"
    elif (asked or pressed) and stop in LIMITS:
        stop = "interrupted"  # a program has few words for why it ended early
    if stop == "infeasible":
        bound = np.inf
    elif stop in ("unbounded", "inf_or_unbd"):
        bound = -np.inf
    failure = "; ".join(text for text in (failure, log.trouble) if text)
    return Outcome(
        stop,
        x,
        np.inf if x is None else program.objective(x),
        bound,
        log.nodes,
        start=start_state or log.start,
        native=native,
        failure=failure,
        version=log.version,
        options=used,
    )


def _model_file(program: LinearProgram, spec: SolverSpec, scale: float, folder: Path, nl: Any) -> Path:
    if nl is not None:
        # Into its own folder: an AMPL solver writes its solution next to the model.
        path = folder / "model.nl"
        path.write_bytes(Path(nl.path).read_bytes())
        return path
    path = folder / f"model.{spec.format}"
    write_model(program, path, scale)
    return path


def _start_file(program: LinearProgram, spec: SolverSpec, start: Array, folder: Path) -> Path:
    path = folder / "start.txt"
    chosen = np.flatnonzero(program.integer) if spec.start.passes == "integers" else np.arange(program.n)
    line = spec.start.line
    with path.open("w", encoding="utf-8") as out:
        if spec.start.head:
            out.write(spec.start.head.format(objective=program.objective(start)) + "\n")
        for k in chosen.tolist():
            value = round(start[k]) if program.integer[k] else float(start[k])
            out.write(line.format(index=k, name=f"c{k}", value=value) + "\n")
    return path


def _values(
    spec: SolverSpec, limits: Limits, model: Path, folder: Path, start: Path | None, seconds: float
) -> dict[str, Any]:
    """What the placeholders of the arguments stand for; None where a thing is not there."""
    solution = model.with_suffix(".sol") if spec.answer == "asl" else folder / "solution.txt"
    return {
        "model": str(model),
        "stub": str(model.with_suffix("")),
        "folder": str(folder),
        "solution": str(solution),
        "start": None if start is None else str(start),
        "options": None if spec.option_file is None else str(folder / spec.option_file.name),
        "time_limit": f"{seconds:.3f}",
        "seconds": str(max(1, math.floor(seconds))),
        "gap": repr(float(limits.gap)),
        "gap_abs": "1e-09",
        "threads": str(limits.threads),
        "more_threads": str(limits.threads) if limits.threads > 1 else None,
        "seed": str(limits.seed % SEEDS),
        "seed_above_zero": str(limits.seed % SEEDS + 1),
        "node_limit": None if limits.nodes is None else str(limits.nodes),
        "work_limit": None if limits.work is None else repr(limits.work),
        "feasibility_tolerance": repr(spec.tolerances.feasibility),
        "integrality_tolerance": repr(limits.integrality),
    }


def _arguments(spec: SolverSpec, values: dict[str, Any], own: dict[str, Any]) -> list[str]:
    out = [spec.program or spec.name]
    own_options = [
        part.format(key=key, value=value)
        for key, value in (own.items() if spec.option_file is None else ())
        for part in spec.own_option
    ]
    for entry in spec.argv:
        group = (entry,) if isinstance(entry, str) else entry
        if group == ("{own}",):
            out += own_options
            continue
        names = {name for part in group for _, name, _, _ in Formatter().parse(part) if name}
        if all(values.get(name) is not None for name in names):
            out += [part.format(**values) for part in group]
    return out


def _option_file(spec: SolverSpec, used: dict[str, Any], seconds: float, folder: Path) -> None:
    assert spec.option_file is not None
    limit = spec.native("time_limit")
    lines = dict(used) | ({limit: f"{seconds:.3f}"} if limit else {})
    text = "".join(spec.option_file.line.format(key=key, value=value) + "\n" for key, value in lines.items())
    (folder / spec.option_file.name).write_text(text, encoding="utf-8")


def _run(
    spec: SolverSpec,
    argv: list[str],
    folder: Path,
    limits: Limits,
    began: float,
    log: EngineLog,
    watch: Watch | None,
) -> tuple[int | None, bool, bool, bool]:
    """Run it to its end: exit code; whether it was killed; whether Ctrl-C, or ``watch``, asked it to stop."""
    env = os.environ | {key: expand(value) for key, value in spec.env.items()}
    if sys.platform == "linux":
        argv = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid()), *argv]
    try:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise EngineFailed(
            f"{spec.title} could not be started: {error.strerror or error}. See whether it runs by itself, or get it anew: "
            f"{spec.install}."
        ) from None
    reader = threading.Thread(target=log.drain, args=(process.stdout,), daemon=True)
    reader.start()

    def signalled(number: int) -> None:
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)

    killed = pressed = asked = False
    stop_at, kill_at = began + limits.seconds + PATIENCE, np.inf
    try:
        while process.poll() is None:
            try:
                now = time.monotonic()
                if (asked or pressed or now > stop_at) and kill_at == np.inf:
                    signalled(signal.SIGINT)
                    kill_at = now + GRACE
                if now > kill_at:
                    killed = True
                    break
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.05)
                if watch is not None and not asked and watch(-np.inf, log.nodes, None):
                    asked = True
            except KeyboardInterrupt:  # may arrive at any line
                pressed = True
    finally:
        code = process.poll()
        signalled(signal.SIGKILL)  # whatever it started ends with it
        with contextlib.suppress(OSError):
            process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        reader.join(2)
        with contextlib.suppress(OSError, ValueError):
            process.stdout.close()  # type: ignore[union-attr]
    return code, killed, pressed, asked


def _check_refused(spec: SolverSpec, own: dict[str, Any], log: EngineLog, died: bool) -> None:
    """Whether the log refuses an option of the caller's: in the entry's words, or by name where there is no answer.

    Raises
    ------
    InvalidParameter
    """
    for line in log.tail(10**6):
        if (spec.log.refused and re.search(spec.log.refused, line)) or (
            died and any(name in line for name in own)
        ):
            raise InvalidParameter(
                f"{spec.title} does not take an option: {line}. See its manual for names and values."
            )


def _answer(spec: SolverSpec, path: str) -> tuple[SolutionFile | None, str]:
    """The solution file, or why there is none that can be read."""
    if not os.path.exists(path):
        return None, ""
    try:
        return read(path, spec.answer), ""
    except InvalidSolutionFile as error:
        return None, str(error)


def _stop(spec: SolverSpec, found: SolutionFile, logged: str) -> tuple[str, str]:
    """Our reason, and the program's own words."""
    words = " ".join(found.status.split())
    if found.code is not None:
        if found.code == ASL_INTERRUPTED:
            return "interrupted", words
        for below, stop in ASL_STOPS:
            if found.code < below:
                # A limit's code says that there was one; the log says which.
                return (logged or stop) if stop == "time_limit" else stop, words
        return "error", words
    for stop, pattern in spec.log.stop.items():
        if re.search(pattern, words):
            return stop, words
    return logged or ("optimal" if found.has_point else "error"), words


def _point(program: LinearProgram, found: SolutionFile, nl: Any) -> Array | None:
    x = np.clip(np.zeros(program.n), program.low, program.high)
    if found.ordered is not None:
        columns = np.arange(program.n) if nl is None else nl.columns
        if len(found.ordered) != len(columns):
            return None
        x[columns] = found.ordered
    else:
        assert found.values is not None
        x[:] = 0.0
        for name, value in found.values.items():
            if name[0] == "c" and name[1:].isdigit() and int(name[1:]) < program.n:
                x[int(name[1:])] = value
    return x if np.isfinite(x).all() else None
