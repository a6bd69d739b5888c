"""Gurobi through gurobipy."""

from __future__ import annotations

import time
from typing import Any

import gurobipy as gp
import numpy as np
from gurobipy import GRB

from ..protocol import Answer, Job, Refused, Reporter, set_options

_STOPS = {
    GRB.OPTIMAL: "optimal",
    GRB.INFEASIBLE: "infeasible",
    GRB.INF_OR_UNBD: "inf_or_unbd",
    GRB.UNBOUNDED: "unbounded",
    GRB.CUTOFF: "objective_limit",
    GRB.NODE_LIMIT: "node_limit",
    GRB.ITERATION_LIMIT: "node_limit",
    GRB.TIME_LIMIT: "time_limit",
    GRB.SOLUTION_LIMIT: "solution_limit",
    GRB.INTERRUPTED: "interrupted",
    GRB.NUMERIC: "numeric",
    GRB.SUBOPTIMAL: "numeric",
    GRB.USER_OBJ_LIMIT: "objective_limit",
    GRB.WORK_LIMIT: "work_limit",
    GRB.MEM_LIMIT: "memory_limit",
}
_NAMES = {getattr(GRB.Status, name): name for name in dir(GRB.Status) if name.isupper()}


def version() -> str:
    """Version of the library."""
    return ".".join(map(str, gp.gurobi.version()))


def solve(job: Job, reporter: Reporter) -> Answer:
    """Solve one job."""
    try:
        return _solve(job, reporter)
    except gp.GurobiError as error:
        if error.errno in (GRB.Error.SIZE_LIMIT_EXCEEDED, GRB.Error.NO_LICENSE):
            raise Refused("licence", str(error)) from None
        raise


def _solve(job: Job, reporter: Reporter) -> Answer:
    model = gp.Model()
    x = model.addMVar(
        job.n,
        lb=np.maximum(job.low, -GRB.INFINITY),
        ub=np.minimum(job.high, GRB.INFINITY),
        vtype=np.where(job.integer, GRB.INTEGER, GRB.CONTINUOUS),
    )
    model.update()
    variables = x.tolist()
    _add_rows(job, model, variables)
    _add_quadratics(job, model, variables)
    set_options(job.settings, lambda name: (model.getParamInfo(name) or (name, None))[1], model.setParam)
    if job.start is not None:
        x.setAttr("Start", job.start)

    def report(model: Any, where: int) -> None:
        if where == GRB.Callback.MIPSOL:
            reporter.point(model.cbGetSolution(variables))
        elif where == GRB.Callback.MIP:
            reporter.bound(model.cbGet(GRB.Callback.MIP_OBJBND), int(model.cbGet(GRB.Callback.MIP_NODCNT)))

    reporter.on_stop(model.terminate)
    model.setParam(job.time_option, max(0.0, job.deadline - time.monotonic()))
    model.optimize(report)
    return _answer(job, model, x)


def _add_rows(job: Job, model: Any, variables: list[Any]) -> None:
    # Row by row: scipy, which a matrix would need, takes ten times as long to load as gurobipy.
    indptr, indices, data = (part.tolist() for part in job.matrix)
    has_low, has_high = np.isfinite(job.row_low), np.isfinite(job.row_high)
    equal = has_low & has_high & (job.row_low == job.row_high)
    for chosen, sense, side in (
        (equal, "=", job.row_low),
        (has_low & ~equal, ">", job.row_low),
        (has_high & ~equal, "<", job.row_high),
    ):
        for row in np.flatnonzero(chosen).tolist():
            cells = slice(indptr[row], indptr[row + 1])
            body = gp.LinExpr(data[cells], [variables[j] for j in indices[cells]])
            model.addLConstr(body, sense, float(side[row]))


def _add_quadratics(job: Job, model: Any, variables: list[Any]) -> None:
    """The objective, and the quadratic rows."""

    def quadratic(first: Any, second: Any, coef: Any) -> Any:
        out = gp.QuadExpr()
        out.addTerms(coef.tolist(), [variables[i] for i in first], [variables[j] for j in second])
        return out

    objective: Any = gp.LinExpr(job.cost.tolist(), variables) + job.offset
    if job.quadratic_cost is not None:
        objective = quadratic(*job.quadratic_cost) + objective
    model.setObjective(objective, GRB.MINIMIZE)
    for first, second, coef, at, value, lowest, highest in job.quadratic_rows:
        body = quadratic(first, second, coef) + gp.LinExpr(list(value), [variables[j] for j in at])
        if np.isfinite(lowest):
            model.addQConstr(body >= lowest)
        if np.isfinite(highest):
            model.addQConstr(body <= highest)


def _answer(job: Job, model: Any, x: Any) -> Answer:
    status = int(model.Status)
    found: Any = None
    if model.SolCount > 0 and status not in (GRB.UNBOUNDED, GRB.INF_OR_UNBD):
        found = np.asarray(x.X, dtype=float)
    stop = _STOPS.get(status, "error")
    mixed = bool(job.integer.any())
    try:
        bound: float = float(model.ObjBound) if mixed or stop != "optimal" else float(model.ObjVal)
    except (gp.GurobiError, AttributeError):
        bound = -float("inf")
    return Answer(stop, found, bound, int(model.NodeCount) if mixed else 0, _NAMES.get(status, str(status)))
