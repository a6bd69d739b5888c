"""Bonmin as CasADi carries it, on an .nl file. It cannot be stopped from outside: past its limit it is killed."""

from __future__ import annotations

import re
import time
from typing import Any

import casadi
import numpy as np

from ..protocol import Answer, Job, Refused, Reporter, set_options

PLUGIN = "bonmin"
_KINDS = {"is_int": int, "is_double": float, "is_string": str, "is_bool": bool}
_UNKNOWN = re.compile(r"No such BONMIN option|Unknown option")
_REFUSES = re.compile(r"Invalid options were detected|type mismatch|Unknown option")
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
    """Solve one job."""
    settings = dict(job.settings)
    set_options({name: settings[name] for name in job.own_options}, _kind, settings.__setitem__)
    builder = casadi.NlpBuilder()
    builder.import_nl(job.nl)
    settings[job.time_option] = max(0.1, job.deadline - time.monotonic())
    options = {**settings, "discrete": list(builder.discrete), "print_time": False, "error_on_fail": False}
    problem = {"f": builder.f, "x": casadi.vertcat(*builder.x), "g": casadi.vertcat(*builder.g)}
    try:
        solver = casadi.nlpsol("engine", PLUGIN, problem, options)
        out = solver(
            x0=builder.x_init, lbx=builder.x_lb, ubx=builder.x_ub, lbg=builder.g_lb, ubg=builder.g_ub
        )
    except RuntimeError as error:
        if job.own_options and _REFUSES.search(str(error)):
            raise Refused("option", ", ".join(f"{k} = {settings[k]!r}" for k in job.own_options)) from None
        raise
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


def _kind(name: str) -> type | None:
    """What the plugin takes for an option: it says so where it is given what is none, before it solves anything."""
    x: Any = casadi.MX.sym("x")
    given: Any = {name: {}, "discrete": [True], "print_time": False, "error_on_fail": False}
    try:
        casadi.nlpsol("kinds", PLUGIN, {"x": x, "f": x}, given)(x0=0, lbx=0, ubx=0)
    except Exception as error:
        unknown = _UNKNOWN.search(str(error))
        if unknown:
            raise Refused("option", f"{name} ({unknown[0]})") from None
        return next((kind for word, kind in _KINDS.items() if f'"{word}()"' in str(error)), None)
    return None


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
