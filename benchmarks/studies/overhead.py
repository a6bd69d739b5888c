"""What handing a model over costs: octsvm.solve against bare Pyomo, engine by engine.

The model is easy for every engine (presolve ends it) and large to hand over: 20,000 rows, 260,000 nonzeros. Measured is the
wall clock of the whole call; the start of an engine's own process, which bare Pyomo does not have where it runs in
Python, is given apart. Engines whose free licence is too small for it are measured at the largest size that it takes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

import octsvm
from octsvm import solvers
from octsvm.solving import licences

from ..study import Line, SkippedError, Study, every
from ..tables import table

# Bare Pyomo's way to each engine, the quickest that loads a solution.
BARE: dict[str, tuple[str, dict[str, Any]]] = {
    "highs": ("appsi_highs", {}),
    "gurobi": ("gurobi_direct", {}),
    "cplex": ("cplex_direct", {}),
    "xpress": ("xpress_direct", {}),
    "scip": ("scip_direct", {}),
    "cbc": ("cbc", {}),
    "glpk": ("glpk", {}),
}


def easy(rows: int, per_row: int = 13, seed: int = 0) -> pyo.ConcreteModel:
    """min Σx, every row Σ of ``per_row`` variables >= -1: x = 0 is optimal, and presolve sees it."""
    rng = np.random.default_rng(seed)
    n = max(per_row, rows // 4)
    model = pyo.ConcreteModel(name="easy")
    model.x = pyo.Var(range(n), bounds=(0, 1))
    for j in range(0, n, 10):
        model.x[j].domain = pyo.Binary
    at = np.array([rng.choice(n, per_row, replace=False) for _ in range(rows)])
    value = rng.uniform(0.1, 1.0, (rows, per_row))
    x = list(model.x.values())
    model.rows = pyo.Constraint(
        range(rows),
        rule=lambda m, i: (
            -1.0,
            LinearExpression(linear_coefs=value[i].tolist(), linear_vars=[x[j] for j in at[i]]),
            None,
        ),
    )
    model.objective = pyo.Objective(expr=sum(model.x.values()))
    return model


def size_for(name: str, rows: int) -> int:
    """Rows that the engine's licence takes, at most ``rows``."""
    spec = solvers.get(name)
    most = licences.ceiling(spec, quadratic=False)
    if most is None or not licences.limited(name):
        return rows
    return min(rows, *(int(0.75 * m) for m in (most.rows, most.total) if m is not None))


def cells(asked: Any) -> Iterator[Line]:
    return every(engine=BARE)


def measure(cell: Line, asked: Any) -> Line:
    """Medians of both routes on one engine, taken in turn."""
    name, rows, repeat = cell["engine"], asked.rows, asked.repeat
    if solvers.installed(name) is None:
        raise SkippedError("it is not installed")
    factory, options = BARE[name]
    model = easy(size_for(name, rows))
    seconds: dict[str, list[float]] = {"bare": [], "ours": [], "startup": []}
    spec = solvers.require(name)
    more = {"executable": spec.program} if spec.program else {}
    for _ in range(repeat):
        began = time.perf_counter()
        pyo.SolverFactory(factory, **more).solve(model, **options)
        seconds["bare"].append(time.perf_counter() - began)
        began = time.perf_counter()
        result = octsvm.solve(model, solver=name, time_limit=120, on_mismatch="ignore")
        seconds["ours"].append(time.perf_counter() - began)
        seconds["startup"].append(result.engine["startup_seconds"])
        assert abs(result.objective) < 1e-6, result
    return {"rows": len(model.rows)} | {name: statistics.median(all_) for name, all_ in seconds.items()}


def report(lines: list[Line]) -> str:
    rows = []
    for line in lines:
        seconds = [f"{line[k]:.2f} s" for k in ("bare", "ours", "startup")]
        rows.append([line["engine"], f"{line['rows']:,}", *seconds, f"{line['ours'] / line['bare']:.2f}"])
    head = ["engine", "rows", "bare Pyomo", "octsvm.solve", "of it, start of a process", "ratio"]
    return table(head, rows)


STUDY = Study(
    key=("engine",),
    options={"rows": 20_000, "repeat": 3},
    quick={"rows": 200, "repeat": 1},
    code=("octsvm/solving", "octsvm/backends"),
)
