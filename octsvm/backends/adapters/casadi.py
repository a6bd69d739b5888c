"""Bonmin as CasADi carries it, on an .nl file. It cannot be stopped from outside: past its limit it is killed."""

from __future__ import annotations

import time

import casadi
import numpy as np

from ..protocol import Answer, Job, Refused, Reporter

PLUGIN = "bonmin"
_STOPS = {
    "SUCCESS": "optimal",
    "OPTIMAL": "optimal",
    "LIMIT_EXCEEDED": "time_limit",
    "INFEASIBLE": "infeasible",
    "CONTINUOUS_UNBOUNDED": "unbounded",
    "UNBOUNDED": "unbounded",
    "USER_INTERRUPT": "interrupted",
    "MINLP_ERROR": "error",
}


def version() -> str:
    """Version of CasADi, which does not tell Bonmin's."""
    return f"CasADi {casadi.CasadiMeta.version()}"


def solve(job: Job, reporter: Reporter) -> Answer:
    """Solve one job.

    Raises
    ------
    Refused
    """
    builder = casadi.NlpBuilder()
    builder.import_nl(job.nl)
    settings = dict(job.settings)
    settings[job.time_option] = max(0.1, job.deadline - time.monotonic())
    options = {**settings, "discrete": list(builder.discrete), "print_time": False, "error_on_fail": False}
    problem = {"f": builder.f, "x": casadi.vertcat(*builder.x), "g": casadi.vertcat(*builder.g)}
    try:
        solver = casadi.nlpsol("engine", PLUGIN, problem, options)
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines() if "option" in line.lower()]
        if lines:
            named = [line for line in lines if any(name in line for name in job.own_options)]
            raise Refused("option", (named or [f"{', '.join(job.own_options)} ({lines[0]})"])[0]) from None
        raise
    reporter.ready()
    out = solver(x0=builder.x_init, lbx=builder.x_lb, ubx=builder.x_ub, lbg=builder.g_lb, ubg=builder.g_ub)
    stats = solver.stats()
    native = str(stats.get("return_status", ""))
    stop = _STOPS.get(native, "error")
    x = np.asarray(out["x"], dtype=float).ravel()
    objective = float(out["f"])
    holds = bool(np.isfinite(x).all()) and abs(objective) < 1e19
    whole = np.array([bool(d) for d in builder.discrete], dtype=bool)
    found = x if holds and stop not in ("infeasible", "unbounded", "error") else None
    if found is not None and (
        np.abs(x[whole] - np.round(x[whole])).max(initial=0.0) > 1e-4 or _violation(builder, out, x) > 1e-4
    ):
        found = None  # at a limit without a solution the point is whatever was last tried
    bound = objective if stop == "optimal" and not whole.any() else -np.inf
    return Answer(stop, found, bound, 0, native)


def _violation(builder: casadi.NlpBuilder, out: dict[str, casadi.DM], x: np.ndarray) -> float:
    worst = 0.0
    for value, low, high in (
        (np.asarray(out["g"], dtype=float).ravel(), builder.g_lb, builder.g_ub),
        (x, builder.x_lb, builder.x_ub),
    ):
        size = np.maximum(1.0, np.abs(value))
        for excess in (
            np.asarray(low, dtype=float).ravel() - value,
            value - np.asarray(high, dtype=float).ravel(),
        ):
            worst = max(worst, float(np.max(excess / size, initial=0.0)))
    return worst
