"""Second-order cones in the smooth convex form that a nonlinear engine needs. A relaxation, by at most 5e-6 of u.

**Takes** the marked rows ‖v‖ <= κu (u >= 0). Written as v'v <= κ²u² they describe a convex set by a function that is not
convex; an engine that takes tangents of what it is given (outer approximation) then cuts off feasible points, and calls
a wrong value optimal. **Gives** a nonlinear model in one of two convex, differentiable forms:

    perspective   v'v/(u + ε) <= κ²u        since v'v <= κ²u² <= κ²u(u + ε); and it asks for κu >= ‖v‖ - κε/2 at least,
                                            as u(u + ε) <= (u + ε/2)²
    norm          √(v'v + ε²) - ε <= κu     since √(a² + ε²) - ε <= a for a = ‖v‖; and it asks for κu >= ‖v‖ - ε

with ε = 1e-5 in the first and 1e-6 in the second. At u = 0 the first has curvature 1/ε: with ε = 1e-6 Bonmin (B-OA and
B-Hyb) broke down on two of four models of 10 to 12 rows, with 1e-5 on none; with 1e-4 its B-Hyb called a wrong value
optimal on one of eight smaller ones.

Both admit every point of the cone, so that a bound holds.

**Back**: ``repair`` raises u to ‖v‖/κ; where u cannot rise (a binary) and the norm is exceeded, the point is refused. A
solve replaces u and v anyway, by polishing with the cone itself; nothing of the form is left in an answer.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ..backends.matrix_program import Array, LinearProgram
from ..problem_class import ProblemClass
from . import Bridge

BLOCK = "cone_forms"
SLACK = 1e-6  # of a norm that cannot be met by raising u


class ConeForm(Bridge):
    """See the module's text."""

    exactness = "relaxes"
    takes = "models with marked cones"
    classes = ("NLP", "MINLP")

    def __init__(self) -> None:
        super().__init__()
        self._cones: list[Any] = []
        self._columns: list[Any] = []

    @classmethod
    def gives(cls, problem: ProblemClass) -> str | None:
        """A nonlinear class where a cone is marked, otherwise None."""
        if not problem.cones:
            return None
        return "MINLP" if problem.binaries or problem.integers else "NLP"

    @staticmethod
    @abstractmethod
    def row(vector: tuple[Any, ...], rhs: Any, factor: float) -> Any:
        """‖vector‖ <= factor·rhs in this form."""

    def rewrite(self, model: pyo.ConcreteModel, problem: ProblemClass) -> None:
        """Deactivate the cones and add ``model.cone_forms`` with a row for each."""
        self._cones = list(problem.cones)
        block = self.add_block(model, BLOCK)
        block.rows = pyo.ConstraintList()
        for cone in self._cones:
            self.deactivate(cone.row)
            block.rows.add(self.row(cone.vector, cone.rhs, cone.factor))

    def attach(self, program: LinearProgram) -> None:
        """Look up the columns of the cones; what is fixed has none."""
        at, self._columns = program.position, []
        for cone in self._cones:
            v = [at[id(w)] for w in cone.vector if id(w) in at]
            fixed = [w.value or 0.0 for w in cone.vector if id(w) not in at]
            self._columns.append((v, fixed, at.get(id(cone.rhs)), cone))

    def repair(self, x: Array) -> Array | None:
        """The point with u raised to max ‖v‖/κ; None where a norm is exceeded and u cannot rise."""
        out = x.copy()
        sizes = [float(np.linalg.norm([*out[v], *fixed])) for v, fixed, _, _ in self._columns]
        for size, (_, _, u, cone) in zip(sizes, self._columns, strict=True):
            if u is not None and cone.rhs.is_continuous():
                out[u] = max(out[u], size / cone.factor)
            elif size > cone.factor * (cone.rhs.value if u is None else out[u]) + SLACK:
                return None
        return out


class Perspective(ConeForm):
    """v'v/(u + ε) <= κ²u."""

    name = "perspective"
    EPSILON = 1e-5

    @staticmethod
    def row(vector: tuple[Any, ...], rhs: Any, factor: float) -> Any:
        """The row of one cone."""
        return sum(v**2 for v in vector) / (rhs + Perspective.EPSILON) - factor**2 * rhs <= 0


class Norm(ConeForm):
    """√(v'v + ε²) - ε <= κu."""

    name = "norm"
    EPSILON = 1e-6

    @staticmethod
    def row(vector: tuple[Any, ...], rhs: Any, factor: float) -> Any:
        """The row of one cone."""
        epsilon = Norm.EPSILON
        return pyo.sqrt(sum(v**2 for v in vector) + epsilon**2) - epsilon - factor * rhs <= 0
