"""Whether a size-limited licence is in force: asked of the engine itself, once, and only where a model is too large for it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from ..backends.engine_log import UNHEARD
from ..backends.matrix_program import Limits, LinearProgram
from ..errors import OctsvmError
from ..problem_class import ProblemClass
from ..solvers import Ceiling, SolverSpec

PROBE_SECONDS = 20.0


def ceiling(spec: SolverSpec, quadratic: bool) -> Ceiling | None:
    """The ceiling of the free licence that counts for a model, None for a solver without one."""
    if spec.licence is None:
        return None
    return spec.licence.quadratic if quadratic else spec.licence.linear


def too_large(spec: SolverSpec, variables: int, rows: int, quadratic: bool) -> str:
    """Why a model of this size is refused by the licence that is in force, empty where it is not."""
    most = ceiling(spec, quadratic)
    broken = "" if most is None else most.broken_by(variables, rows)
    return broken if broken and limited(spec.name) else ""


@lru_cache(maxsize=32)
def limited(name: str) -> bool:
    """Whether the engine refuses a model just above the ceiling of its free licence.

    Only the ceiling of linear models is probed; a licence that lifts it lifts the other.
    """
    from .. import solvers
    from .engine import Engine

    spec = solvers.get(name)
    if spec.licence is None:
        return False
    most = spec.licence.linear
    ceilings = [m for m in (most.variables, most.rows, most.total) if m is not None]
    if not ceilings:
        return False
    n = 1 + max(ceilings)
    none = np.zeros(n)
    program = LinearProgram(
        columns=[None] * n,
        cost=none,
        offset=0.0,
        low=none,
        high=np.ones(n),
        integer=np.zeros(n, dtype=bool),
        A=sp.csr_array((0, n)),
        row_low=np.zeros(0),
        row_high=np.zeros(0),
    )
    try:
        out = Engine(spec, program, None, native=True).solve(Limits(PROBE_SECONDS, 0.0, log=UNHEARD))
    except OctsvmError:
        return True
    if out.stop == "interrupted":
        raise KeyboardInterrupt  # Ctrl-C was meant for the caller's solve, and says nothing about a licence
    return out.stop != "optimal"


def sizes(problem: ProblemClass, native: bool) -> tuple[int, int, bool]:
    """Variables, rows, and whether there are quadratics, of what an engine is handed at first."""
    variables, rows = problem.variables, problem.rows
    if native:
        return variables, rows, problem.quadratic
    lifted = sum(len(c.vector) for c in problem.cones) + sum(len(s.vector) for s in problem.squared_norms)
    return variables + lifted, rows + 6 * lifted, False
