"""Xpress through its Python interface; the linear part goes as an .mps file."""

from __future__ import annotations

import re
import sys
import time
import warnings
from typing import Any

import numpy as np

warnings.simplefilter("ignore")  # its licence speaks at the import

# What it does not need and takes where it is there: to load these takes ten times as long as to load Xpress.
_UNUSED = {"pandas", "scipy.sparse"} - sys.modules.keys()
sys.modules.update(dict.fromkeys(_UNUSED))  # type: ignore[arg-type]

import xpress as xp  # noqa: E402

for _name in _UNUSED:
    del sys.modules[_name]

from ..mps import write_mps  # noqa: E402
from ..protocol import Answer, Job, Refused, Reporter, set_options  # noqa: E402

_TOO_LARGE = re.compile(r"\?120 |maximum is \d+")
_STOPPED = {1: "time_limit", 2: "interrupted", 3: "node_limit", 4: "node_limit", 5: "gap_limit", 6: "solution_limit",
            7: "memory_limit", 8: "solution_limit", 9: "interrupted", 14: "work_limit"}  # fmt: skip


def version() -> str:
    """Version of the library."""
    return str(xp.getVersion())


def solve(job: Job, reporter: Reporter) -> Answer:
    """Solve one job."""
    try:
        return _solve(job, reporter)
    except (xp.SolverError, xp.ModelError, xp.InterfaceError) as error:
        if _TOO_LARGE.search(str(error)):
            raise Refused("licence", " ".join(str(error).split())) from None
        raise


def _solve(job: Job, reporter: Reporter) -> Answer:
    write_mps(job, "model.mps")
    model = xp.problem()
    model.readProb("model.mps")
    _add_quadratics(job, model, model.getVariable())
    set_options(job.settings, lambda name: type(model.getControl(name)), model.setControl)
    if job.integer.any():
        if job.start is not None:
            model.addMipSol(job.start.tolist(), list(range(job.n)), "start")
        _report_progress(model, reporter)
    reporter.on_stop(lambda: model.interrupt(xp.StopType.USER))
    model.setControl(job.time_option, max(1e-3, job.deadline - time.monotonic()))
    model.optimize()
    return _answer(job, model)


def _add_quadratics(job: Job, model: Any, variables: list[Any]) -> None:
    if job.quadratic_cost is not None:
        first, second, coef = job.quadratic_cost
        # Xpress halves the matrix of its objective, and takes one triangle.
        entries: dict[tuple[int, int], float] = {}
        for i, j, c in zip(first.tolist(), second.tolist(), coef.tolist(), strict=True):
            pair = (min(i, j), max(i, j))
            entries[pair] = entries.get(pair, 0.0) + (2.0 * c if i == j else c)
        pairs = list(entries)
        model.chgMQObj(
            [variables[i] for i, _ in pairs], [variables[j] for _, j in pairs], [entries[p] for p in pairs]
        )
    for first, second, coef, at, value, low, high in job.quadratic_rows:
        body = xp.Sum(
            float(c) * variables[i] * variables[j] for i, j, c in zip(first, second, coef, strict=True)
        )
        if len(at):
            body = body + xp.Sum(float(v) * variables[j] for j, v in zip(at, value, strict=True))
        if np.isfinite(low):
            model.addConstraint(body >= float(low))
        if np.isfinite(high):
            model.addConstraint(body <= float(high))


def _report_progress(model: Any, reporter: Reporter) -> None:
    """Report points as they are found, and the bound at most ten times a second."""
    last = 0.0

    def report_bound(problem: Any, _: Any, *more: Any) -> None:
        nonlocal last
        if time.monotonic() > last + 0.1:
            last = time.monotonic()
            reporter.bound(bound_of(problem.attributes), int(problem.attributes.nodes))

    def report_point(problem: Any, _: Any) -> None:
        reporter.point(problem.getCallbackSolution())
        report_bound(problem, None)

    model.addIntsolCallback(report_point, None, 0)
    model.addMiplogCallback(report_bound, None, 0)


def _answer(job: Job, model: Any) -> Answer:
    a = model.attributes
    solved, found, stopped = int(a.solvestatus), int(a.solstatus), int(a.stopstatus)
    native = f"solve {a.solvestatus}, solution {a.solstatus}, stop {a.stopstatus}"
    if found == 3:
        stop = "infeasible"
    elif found == 4:
        stop = "unbounded"
    elif solved == 3:
        stop = "gap_limit" if stopped == 5 else "optimal"
    elif solved == 1:
        stop = _STOPPED.get(stopped, "interrupted")
    else:
        stop = "error"
    x = None
    if found in (1, 2):
        x = np.asarray(model.getSolution(), dtype=float)
    mixed = bool(job.integer.any())
    bound = bound_of(a) if mixed else (float(a.objval) if stop == "optimal" else -np.inf)
    return Answer(stop, x, bound, int(a.nodes) if mixed else 0, native)


def bound_of(attributes: Any) -> float:
    """That of the search; before the first relaxation is solved the attribute says 0, which is none."""
    begun = int(attributes.mipstatus) > xp.MIPStatus.LP_NOT_OPTIMAL
    bound = float(attributes.bestbound) if begun else -np.inf
    return bound if abs(bound) < 1e19 else -np.inf
