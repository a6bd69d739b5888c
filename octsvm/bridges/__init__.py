"""Rewrites between what a model holds and what a solver takes; each is applied for a solve and undone after it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from ..backends.matrix_program import Array, LinearProgram, Row
from ..problem_class import ProblemClass


class Bridge(Protocol):
    """One rewrite.

    ``gives(problem)`` is the class it turns a problem into, or None where it does not apply. ``apply`` changes the
    model, ``undo`` restores it exactly. ``cuts`` are rows that a point violates and every feasible point obeys;
    ``repair`` turns a point of the rewritten model into one of the original.
    """

    name: str
    exactness: str

    @staticmethod
    def gives(problem: ProblemClass) -> str | None: ...

    def apply(self, model: pyo.ConcreteModel, problem: ProblemClass) -> None: ...

    def undo(self) -> None: ...

    def own_variables(self) -> list[Any]: ...

    def attach(self, program: LinearProgram) -> None: ...

    def native(self, program: LinearProgram) -> tuple[LinearProgram, NDArray[np.int64]]: ...

    def cuts(self, x: Array, violated: bool = True) -> list[Row]: ...

    def repair(self, x: Array) -> Array | None: ...


def leading_to(problem: ProblemClass, classes: tuple[str, ...]) -> Bridge | None:
    """A bridge from ``problem`` into one of ``classes``, None where there is none."""
    from .outer_approximation import OuterApproximation

    for bridge in (OuterApproximation,):
        if bridge.gives(problem) in classes:
            return bridge()
    return None


def relative_gap(objective: float, bound: float, size: float = 1.0) -> float:
    """(objective - bound)/|objective|: 0 where they meet, infinite without an objective.

    They meet within 2e-9 of ``size``, about how large objectives are (1 at most).
    """
    if not np.isfinite(objective):
        return float("inf")
    difference = max(0.0, objective - bound)
    if difference <= 2e-9 * min(1.0, size):
        return 0.0
    return difference / max(abs(objective), difference)
