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
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np

from ..errors import EngineFailed, InvalidSolutionFile
from ..solvers import SolverSpec, expand
from .engine_log import EngineLog
from .matrix_program import Array, Limits, LinearProgram, Outcome, Request, Watch
from .mps import write_model
from .own_options import neutral_values, not_taken, settings
from .scratch import unwritable
from .solution_formats import SolutionFile, read
from .supervisor import Supervisor, bound_to_this_process, death, environment

LIMITS = ("time_limit", "node_limit", "error")


def solve(request: Request, start: Array | None = None, watch: Watch | None = None) -> Outcome:
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
    spec, limits = request.spec, request.limits
    supervisor = Supervisor(limits.seconds, watch)
    log = EngineLog(spec, limits.log)
    try:
        with contextlib.closing(log), supervisor:
            argv, solution, options = _prepare(request, start, supervisor)
            code = _run(request, argv, log, supervisor)
            found, trouble = _answer(spec, solution)
            if limits.options:
                stopped = supervisor.ended or supervisor.called_off
                _check_refused(spec, limits.options, log, found is None and not stopped)
    except OSError as error:
        raise unwritable(spec.title, error) from None
    if found is None:
        said = f"{trouble or 'it wrote no solution file'}, and {death(code)}{log.ending()}"
        stop, failure = supervisor.without_answer(spec.title, said)
        outcome = request.outcome(stop, None, _logged_bound(request, log), log.nodes, failure=failure)
    else:
        outcome = _answered(request, found, log, supervisor)
    return replace(
        outcome,
        start=log.start,
        failure="; ".join(text for text in (outcome.failure, log.trouble) if text),
        version=log.version,
        options=options,
    )


def _prepare(
    request: Request, start: Array | None, supervisor: Supervisor
) -> tuple[list[str], str, dict[str, Any]]:
    """Write what the program reads: its arguments, where it writes its solution, and the options that it has."""
    program, spec, limits = request.program, request.spec, request.limits
    own = dict(limits.options)
    folder = supervisor.make_folder()
    model = _model_file(request, folder)
    used = settings(spec, limits, own)
    start_file = None
    if start is not None and program.integer.any():
        start_file = _start_file(program, spec, start, folder)
    left = max(0.1, supervisor.left())
    values = _values(spec, limits, model, start_file, left)
    if spec.option_file is not None:
        _option_file(spec, used, min(left, request.seconds), folder)
    return _arguments(spec, values, own), values["solution"], used


def _run(request: Request, argv: list[str], log: EngineLog, supervisor: Supervisor) -> int | None:
    """Run the program to its end, or until it refuses an option of the caller's; its exit code."""
    spec, own = request.spec, request.limits.options
    env = environment({key: expand(value) for key, value in spec.env.items()})
    try:
        supervisor.start(bound_to_this_process(argv), env, output=log.drain)
    except OSError as error:
        raise EngineFailed(
            f"{spec.title} could not be started: {error.strerror or error}. See whether it runs by itself, or get it anew: "
            f"{spec.install}."
        ) from None

    def finished() -> bool:
        ended = supervisor.poll(0.05)
        supervisor.ask(-np.inf, log.nodes)
        return ended or bool(own and log.refused)

    supervisor.wait(finished, supervisor.interrupt)
    return supervisor.end()


def _answered(request: Request, found: SolutionFile, log: EngineLog, supervisor: Supervisor) -> Outcome:
    """The outcome of a program that wrote a solution file."""
    stop, native = _stop(request.spec, found, log.stop)
    x = _point(request, found) if found.has_point else None
    bound = _logged_bound(request, log)
    if stop in ("optimal", "gap_limit") and x is not None:
        bound = max(bound, _claimed_bound(request, found, x))
    if stop == "interrupted":
        stop = supervisor.reason
    elif supervisor.called_off and stop in LIMITS:
        stop = "interrupted"  # a program has few words for why it ended early
    return request.outcome(stop, x, bound, log.nodes, native=native)


def _logged_bound(request: Request, log: EngineLog) -> float:
    """The last bound of the log, which leaves out the objective's constant where the file has none."""
    if log.bound is None:
        return -np.inf
    return log.bound / request.scale + (request.program.offset if request.nl is None else 0.0)


def _claimed_bound(request: Request, found: SolutionFile, x: Array) -> float:
    """What the program claims at its end, where its objective is the point's: the gap is closed."""
    # Its log names the bound now and then only.
    objective = claimed = request.program.objective(x)
    if found.objective is not None and request.nl is None:
        claimed = found.objective / request.scale + request.program.offset
    if abs(claimed - objective) > 1e-6 * max(1.0, abs(claimed)):
        return -np.inf
    return request.claimed_bound(claimed)


def _model_file(request: Request, folder: Path) -> Path:
    if request.nl is not None:
        # Into its own folder: an AMPL solver writes its solution next to the model.
        path = folder / "model.nl"
        path.write_bytes(request.nl.path.read_bytes())
        return path
    path = folder / f"model.{request.spec.format}"
    write_model(request.program, path, request.scale)
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
    spec: SolverSpec, limits: Limits, model: Path, start: Path | None, seconds: float
) -> dict[str, Any]:
    """What the placeholders of the arguments stand for; None where a thing is not there."""
    folder, ours = model.parent, neutral_values(spec, limits)
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
        "more_threads": str(ours["threads"]) if limits.threads > 1 else None,
        "seed_above_zero": str(ours["seed"] + 1),
    } | {name: None if value is None else repr(value) for name, value in ours.items()}


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


def _check_refused(spec: SolverSpec, own: Mapping[str, Any], log: EngineLog, died: bool) -> None:
    """Refuse an option of the caller's that the log refuses: in the entry's words, or by name where there is no answer."""
    named = [line for line in log.tail(10**6) if died and any(name in line for name in own)]
    for line in [log.refused, *named]:
        if line:
            asked = "" if any(name in line for name in own) else f" ({', '.join(own)})"
            raise not_taken(spec, line + asked)


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
        # A limit's code says that there was one; the log says which.
        return (logged if logged and found.stop == "time_limit" else found.stop), words
    for stop, pattern in spec.log.stop.items():
        if re.search(pattern, words):
            return stop, words
    return logged or ("optimal" if found.has_point else "error"), words


def _point(request: Request, found: SolutionFile) -> Array | None:
    if found.ordered is not None:
        return request.point(found.ordered)
    assert found.values is not None
    x = np.zeros(request.program.n)
    for name, value in found.values.items():
        if name[0] == "c" and name[1:].isdigit() and int(name[1:]) < len(x):
            x[int(name[1:])] = value
    return x if np.isfinite(x).all() else None
