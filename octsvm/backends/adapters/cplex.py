"""CPLEX through its Python interface; the linear part goes as an .mps file."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import cplex
import numpy as np
from cplex.exceptions import CplexError

from ..mps import write_mps
from ..protocol import Answer, Job, Refused, Reporter, set_options

_TOO_LARGE = 1016
_NOT_CONVEX = (5002, 5012)
_STOPS = {
    1: "optimal", 2: "unbounded", 3: "infeasible", 4: "inf_or_unbd", 5: "optimal", 6: "numeric",
    10: "node_limit", 11: "time_limit", 12: "objective_limit", 13: "interrupted", 25: "work_limit",
    101: "optimal", 102: "gap_limit", 103: "infeasible", 104: "solution_limit", 105: "node_limit",
    106: "node_limit", 107: "time_limit", 108: "time_limit", 109: "error", 110: "error",
    111: "memory_limit", 112: "memory_limit", 113: "interrupted", 114: "interrupted", 115: "optimal",
    118: "unbounded", 119: "inf_or_unbd", 131: "work_limit", 132: "work_limit",
}  # fmt: skip


def version() -> str:
    """Version of the library."""
    return str(cplex.Cplex().get_version())


class _Watch:
    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.best = np.inf

    def invoke(self, context: Any) -> None:
        """Called by CPLEX now and then, and when its incumbent has changed."""
        info = cplex.callbacks.Context.info
        with contextlib.suppress(CplexError):  # e.g. an incumbent that has just been replaced
            value = context.get_incumbent_objective()
            if value < self.best:
                self.reporter.point(context.get_incumbent())
                self.best = value
        with contextlib.suppress(CplexError):
            self.reporter.bound(
                context.get_double_info(info.best_bound), context.get_long_info(info.node_count)
            )


def _parameter(model: Any, dotted: str) -> Any:
    at = model.parameters
    for part in dotted.split("."):
        if part.startswith("_"):
            raise AttributeError("no parameter")
        at = getattr(at, part)
    if not callable(getattr(at, "type", None)):
        raise AttributeError("a group of parameters, or none")
    return at


def solve(job: Job, reporter: Reporter) -> Answer:
    """Solve one job."""
    try:
        return _solve(job, reporter)
    except CplexError as error:
        code = error.args[2] if len(error.args) > 2 else None
        if code == _TOO_LARGE:
            raise Refused("licence", str(error.args[0])) from None
        if code in _NOT_CONVEX:
            raise Refused(
                "unsupported", f"it solves convex quadratic models only ({error.args[0]})"
            ) from None
        raise


def _solve(job: Job, reporter: Reporter) -> Answer:
    write_mps(job, "model.mps")
    model = cplex.Cplex("model.mps")
    if job.quadratic_cost is not None:
        # CPLEX halves the matrix of its objective, and wants both halves of what is off the diagonal.
        rows: list[dict[int, float]] = [{} for _ in range(job.n)]
        for i, j, c in zip(*(part.tolist() for part in job.quadratic_cost), strict=True):
            for a, b in ((i, j), (j, i)):
                rows[a][b] = rows[a].get(b, 0.0) + c
        model.objective.set_quadratic([cplex.SparsePair(list(row), list(row.values())) for row in rows])
    for first, second, coef, at, value, low, high in job.quadratic_rows:
        for side, sense in ((low, "G"), (high, "L")):
            if np.isfinite(side):
                model.quadratic_constraints.add(
                    lin_expr=cplex.SparsePair(at.tolist(), value.tolist()),
                    quad_expr=cplex.SparseTriple(first.tolist(), second.tolist(), coef.tolist()),
                    sense=sense,
                    rhs=float(side),
                )
    set_options(
        job.settings,
        lambda name: _parameter(model, name).type(),
        lambda name, value: _parameter(model, name).set(value),
    )
    # A quadratic model whose integers are all fixed is none with integers for CPLEX.
    mixed = str(model.problem_type[model.get_problem_type()]).startswith(("MI", "fixed_MI"))
    if job.start is not None and mixed:
        model.MIP_starts.add(
            cplex.SparsePair(list(range(job.n)), job.start.tolist()), model.MIP_starts.effort_level.auto
        )
    aborter = model.use_aborter(cplex.Aborter())
    reporter.on_stop(aborter.abort)
    if mixed:
        model.set_callback(_Watch(reporter), cplex.callbacks.Context.id.global_progress)
    _parameter(model, job.time_option).set(max(0.0, job.deadline - time.monotonic()))
    model.solve()
    solution = model.solution
    status = int(solution.get_status())
    stop = _STOPS.get(status, "error")
    x, bound, nodes = None, -np.inf, 0
    if solution.is_primal_feasible() and stop not in ("unbounded", "inf_or_unbd"):
        x = np.array(solution.get_values(), dtype=float)
    if mixed:
        try:
            bound = float(solution.MIP.get_best_objective())
            nodes = int(solution.progress.get_num_nodes_processed())
        except CplexError:  # nothing was found before the limit
            pass
    elif stop == "optimal" and x is not None:
        bound = float(solution.get_objective_value())
    return Answer(stop, x, bound, nodes, str(solution.get_status_string()))
