"""SHOT through SHOTpy, on an .nl file."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import numpy as np
import SHOTpy

from ..protocol import Answer, Job, Reporter, set_options

_STOPS = {
    "AbsoluteGap": "gap_limit",
    "RelativeGap": "gap_limit",
    "TimeLimit": "time_limit",
    "IterationLimit": "node_limit",
    "UserAbort": "interrupted",
    "InfeasibleProblem": "infeasible",
    "UnboundedProblem": "unbounded",
    "ConstraintTolerance": "optimal",
    "Error": "error",
    "NumericIssues": "numeric",
}


def version() -> str:
    """Version of the package."""
    from importlib import metadata

    return metadata.version("SHOTpy")


def _kind(solver: Any, name: str) -> type | None:
    for kind, getter in ((bool, "Bool"), (int, "Int"), (float, "Double"), (str, "String")):
        with contextlib.suppress(RuntimeError):
            getattr(solver, f"get{getter}Setting")(name)
            return kind
    return None


def solve(job: Job, reporter: Reporter) -> Answer:
    """Solve one job."""
    solver = SHOTpy.Solver()
    set_options(job.settings, lambda name: _kind(solver, name), solver.updateSetting)
    solver.updateSetting(job.time_option, max(0.1, job.deadline - time.monotonic()))
    if not solver.setProblem(job.nl):
        raise RuntimeError("SHOT could not read the model")

    reported = [time.monotonic(), -np.inf]

    def report_bound(context: Any) -> None:
        if reporter.stopping:
            context.terminate()
        if context.globalDualBound > reported[1] and time.monotonic() > reported[0] + 0.05:
            reported[:] = [time.monotonic(), context.globalDualBound]
            reporter.bound(context.globalDualBound, 0)

    places = SHOTpy.CallbackLocation
    solver.registerCallback(places.NewPrimalSolution, lambda context: reporter.point(context.point))
    solver.registerCallback(places.TerminationCheck, report_bound)
    solver.solveProblem()
    native = f"{solver.getModelReturnStatus().name}/{solver.getTerminationReason().name}"
    stop = _STOPS.get(solver.getTerminationReason().name, "numeric")
    if solver.getModelReturnStatus().name == "OptimalGlobal":
        stop = "optimal"
    x = np.array(solver.getPrimalSolution().point, dtype=float) if solver.hasPrimalSolution() else None
    bound = float(solver.getGlobalDualBound())
    return Answer(stop, x, bound if abs(bound) < 1e19 else -np.inf, 0, native)
