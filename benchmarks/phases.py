"""One function a phase: prepares what it needs, and returns what is timed."""

from __future__ import annotations

import atexit
import gc
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression
from pyomo.core.expr.visitor import identify_variables

import octsvm
from octsvm.backends.matrix_program import LinearProgram
from octsvm.bridges import leading_to
from octsvm.data import prepare
from octsvm.formulations.registry import formulation
from octsvm.problem_class import classify
from octsvm.solving import certificate as certification

from .cases import Case
from .study import peak_memory

PEERS = {"pyoptree": "pyoptree", "odtlearn": "odtlearn[cbc]"}  # what each is installed by
SOLVE_SECONDS = 30.0


def size(model: pyo.ConcreteModel) -> dict[str, int]:
    """Rows, nonzeros (variables by row) and variables of a model."""
    rows = nonzeros = 0
    for row in model.component_data_objects(pyo.Constraint, active=True):
        rows += 1
        body = row.body
        nonzeros += (
            body.nargs() if type(body) is LinearExpression else sum(1 for _ in identify_variables(body))
        )
    variables = sum(1 for _ in model.component_data_objects(pyo.Var))
    return {"rows": rows, "nonzeros": nonzeros, "variables": variables}


def hand_off(model: pyo.ConcreteModel) -> LinearProgram:
    """What stands between a model and HiGHS: its class, the bridge to a linear one, and the matrix; then undone."""
    problem = classify(model)
    bridge = None if problem.name in ("LP", "MILP") else leading_to(problem, ("LP", "MILP"))
    if bridge is not None:
        bridge.apply(model, problem)
    try:
        return LinearProgram.compile(model)
    finally:
        if bridge is not None:
            bridge.undo()


@contextmanager
def prepared(case: Case, phase: str) -> Iterator[tuple[Callable[[], Any], pyo.ConcreteModel | None]]:
    """What is to be timed, and the model it works on."""
    X, y = case.table()
    form = formulation(case.formulation)
    build = partial(octsvm.build, case.formulation, X, y, **case.params)
    if phase == "build":
        yield build, None
        return
    if phase == "limit":
        from .limit import hand_over

        params = form.Params.make(case.formulation, **case.params)
        yield partial(hand_over, prepare(form, X, y, scale=True, weights=None), params), None
        return
    model = build()
    tree = form.constant_tree(model.info.data, model.info.params)
    if phase == "certify":
        octsvm.embed(model, tree)
    with tempfile.TemporaryDirectory() as folder:
        ways = {
            "solve": partial(octsvm.solve, model, time_limit=SOLVE_SECONDS),
            "hand_off": partial(hand_off, model),
            "embed": partial(octsvm.embed, model, tree),
            "certify": partial(certification.certify, model, form),
        }
        file = Path(folder) / f"model.{phase.removeprefix('write_')}"
        yield ways.get(phase, partial(octsvm.write, model, file)), model


def measure(case: Case, phase: str, repeat: int, seconds: float) -> dict[str, Any]:
    """Medians over at most ``repeat`` runs, fewer where they would take more than ``seconds``."""
    if case.small() != case:
        with prepared(case.small(), phase) as (warm_up, _):
            warm_up()
    wall: list[float] = []
    cpu: list[float] = []
    with prepared(case, phase) as (run, model):
        while not wall or (len(wall) < repeat and sum(wall) * (1 + 1 / len(wall)) < seconds):
            if repeat > 1:
                gc.collect()  # the last run's garbage is not this one's cost
            began, used = time.perf_counter(), time.process_time()
            result = run()
            wall.append(time.perf_counter() - began)
            cpu.append(time.process_time() - used)
            if len(wall) == 1:
                peak = peak_memory()
                facts = _facts(phase, result, model)
            del result
    return {**summary(wall, cpu, facts["nonzeros"]), **facts, "peak_mb": peak}


def _facts(phase: str, result: Any, model: pyo.ConcreteModel | None) -> dict[str, Any]:
    if phase == "limit":
        return {"rows": result.shape[0], "nonzeros": int(result.nnz)}
    if phase == "hand_off":
        return {"rows": result.A.shape[0], "nonzeros": int(result.A.nnz), "variables": result.n}
    facts: dict[str, Any] = size(result if model is None else model)
    if phase == "solve":
        facts |= {"status": result.status, "objective": result.objective, "bound": result.bound}
    return facts


def summary(wall: list[float], cpu: list[float], nonzeros: int) -> dict[str, Any]:
    """``seconds`` and ``cpu_seconds`` are medians; ``spread`` is (slowest - fastest)/median of the wall times."""
    seconds = statistics.median(wall)
    return {
        "runs": len(wall),
        "seconds": seconds,
        "fastest": min(wall),
        "cpu_seconds": statistics.median(cpu),
        "spread": (max(wall) - min(wall)) / seconds,
        "us_per_nonzero": 1e6 * seconds / nonzeros if nonzeros else None,
    }


def python_with(package: str) -> str:
    """A new Python with another package; where it does not install, its measurement says what is missing."""
    folder = Path(tempfile.mkdtemp(prefix="benchmarks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    python = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", package], capture_output=True, check=False)
    return python


def peer(package: str, case: Case, python: str | None, repeat: int) -> dict[str, Any]:
    """The build of another package in its own Python; ``error`` says why there is none."""
    if python is None:
        return {"error": "not asked for: give --peers, a Python that has it, or 'install'"}
    if python == "install":
        python = python_with(PEERS[package])
    script = Path(__file__).with_name("peers.py")
    done = subprocess.run(
        [python, str(script), package, str(case.params["depth"]), str(repeat)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = done.stdout.strip().splitlines()
    if not lines:
        return {"error": (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]}
    found = json.loads(lines[-1])
    if "error" in found:
        return {"error": found["error"]}
    return {
        **summary(found["wall"], found["cpu"], found["nonzeros"]),
        "rows": found["rows"],
        "nonzeros": found["nonzeros"],
        "peer_versions": found["versions"],
    }
