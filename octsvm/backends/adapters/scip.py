"""SCIP through PySCIPOpt.

The linear part goes as an .mps file, which is read many times faster than rows are added one by one; models with parts
that are not quadratic go as an .nl file.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from pyscipopt import SCIP_EVENTTYPE, SCIP_PARAMSETTING, Eventhdlr, Model, quicksum

from ..mps import write_mps
from ..protocol import Answer, Job, Reporter, set_options

INFINITE = 1e19
_EVENTS = (SCIP_EVENTTYPE.BESTSOLFOUND, SCIP_EVENTTYPE.NODESOLVED)
_STOPS = {
    "optimal": "optimal",
    "gaplimit": "gap_limit",
    "timelimit": "time_limit",
    "nodelimit": "node_limit",
    "totalnodelimit": "node_limit",
    "stallnodelimit": "node_limit",
    "sollimit": "solution_limit",
    "bestsollimit": "solution_limit",
    "memlimit": "memory_limit",
    "userinterrupt": "interrupted",
    "infeasible": "infeasible",
    "unbounded": "unbounded",
    "inforunbd": "inf_or_unbd",
    "primallimit": "objective_limit",
    "duallimit": "objective_limit",
}
# As in SCIP's shell, these set a whole group of parameters: default, aggressive, fast or off.
_EMPHASES = {
    "heuristics/emphasis": "setHeuristics",
    "presolving/emphasis": "setPresolve",
    "separating/emphasis": "setSeparating",
}


def version() -> str:
    """Version of SCIP itself, not of its Python interface."""
    m = Model()
    return f"{m.getMajorVersion()}.{m.getMinorVersion()}.{m.getTechVersion()}"


class _Watch(Eventhdlr):
    """Reports points as they are found and the bound as it moves."""

    def __init__(self, reporter: Reporter, read: Any) -> None:
        self.reporter, self.read = reporter, read
        self.last = 0.0

    def eventinit(self) -> None:
        for kind in _EVENTS:
            self.model.catchEvent(kind, self)

    def eventexit(self) -> None:
        for kind in _EVENTS:
            self.model.dropEvent(kind, self)

    def eventexec(self, event: Any) -> None:
        if event.getType() == SCIP_EVENTTYPE.BESTSOLFOUND:
            self.reporter.point(self.read(self.model.getBestSol()))
        elif time.monotonic() - self.last < 0.1:
            return
        self.last = time.monotonic()
        bound = self.model.getDualbound()
        if abs(bound) < INFINITE:
            self.reporter.bound(bound, self.model.getNNodes())


def solve(job: Job, reporter: Reporter) -> Answer:
    """Solve one job."""
    model = Model()
    by_arrays = not job.nl
    model.hideOutput(False)
    model.setParam("display/verblevel", 4)
    if by_arrays:
        write_mps(job, "model.mps")
        model.readProblem("model.mps")
    else:
        model.readProblem(job.nl)
    variables: list[Any] = [None] * job.n
    for var in model.getVars():
        name = var.name
        if name[0] in "xbic" and name[1:].isdigit():
            variables[int(name[1:])] = var
    if by_arrays:
        _add_quadratics(job, model, variables)

    def read(solution: Any) -> Any:
        return np.array([0.0 if v is None else model.getSolVal(solution, v) for v in variables])

    def put(name: str, value: Any) -> None:
        if name in _EMPHASES:
            getattr(model, _EMPHASES[name])(getattr(SCIP_PARAMSETTING, value.upper()))
        else:
            model.setParam(name, value)

    set_options(job.settings, lambda name: str if name in _EMPHASES else type(model.getParam(name)), put)
    if job.start is not None:
        _pass_start(job, model, variables)
    watch = _Watch(reporter, read)
    model.includeEventhdlr(watch, "octsvm", "reports points and bounds")
    reporter.on_stop(model.interruptSolve)
    model.setParam(job.time_option, max(0.0, job.deadline - time.monotonic()))
    model.optimizeNogil()
    native = str(model.getStatus())
    stop = _STOPS.get(native, "error")
    x = None
    solved = model.getNSols() > 0 and stop not in ("unbounded", "inf_or_unbd", "infeasible")
    if solved and abs(model.getPrimalbound()) < INFINITE:
        x = read(model.getBestSol())
    bound = float(model.getDualbound())
    return Answer(stop, x, bound if abs(bound) < INFINITE else -np.inf, int(model.getNTotalNodes()), native)


def _add_quadratics(job: Job, model: Any, variables: list[Any]) -> None:
    def form(first: Any, second: Any, coef: Any) -> Any:
        return quicksum(
            float(c) * variables[i] * variables[j] for i, j, c in zip(first, second, coef, strict=True)
        )

    if job.quadratic_cost is not None:
        # SCIP's objectives are linear: an upper bound on the quadratic part is minimised in its place.
        top = model.addVar("quadratic_cost", lb=None, ub=None, obj=1.0)
        model.addCons(form(*job.quadratic_cost) <= top)
    for first, second, coef, at, value, low, high in job.quadratic_rows:
        body = form(first, second, coef) + quicksum(
            float(v) * variables[j] for j, v in zip(at, value, strict=True)
        )
        if np.isfinite(low):
            model.addCons(body >= float(low))
        if np.isfinite(high):
            model.addCons(body <= float(high))


def _pass_start(job: Job, model: Any, variables: list[Any]) -> None:
    assert job.start is not None
    solution = model.createSol()
    for var, value in zip(variables, job.start.tolist(), strict=True):
        if var is not None:
            model.setSolVal(solution, var, value)
    if job.quadratic_cost is not None:
        first, second, coef = job.quadratic_cost
        value = float(np.sum(coef * job.start[first] * job.start[second]))
        extra = [v for v in model.getVars() if v.name == "quadratic_cost"]
        model.setSolVal(solution, extra[0], value + 1e-9 * max(1.0, abs(value)))
    model.addSol(solution)
