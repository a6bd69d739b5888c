"""Second-order cones in the smooth convex form that a nonlinear engine needs. A relaxation, by at most 5e-6 of u.

A cone ‖v‖ <= κu (u >= 0) written as v'v <= κ²u² describes a convex set by a function that is not convex; an engine that
takes tangents of what it is given (outer approximation) then cuts off feasible points, and calls a wrong value optimal.
Two convex, differentiable forms:

    perspective   v'v/(u + ε) <= κ²u        since v'v <= κ²u² <= κ²u(u + ε); and it asks for κu >= ‖v‖ - κε/2 at least,
                                            as u(u + ε) <= (u + ε/2)²
    norm          √(v'v + ε²) - ε <= κu     since √(a² + ε²) - ε <= a for a = ‖v‖; and it asks for κu >= ‖v‖ - ε

with ε = 1e-5 in the first and 1e-6 in the second. At u = 0 the first has curvature 1/ε: with ε = 1e-6 Bonmin (B-OA and
B-Hyb) broke down on two of four models of 10 to 12 rows, with 1e-5 on none; with 1e-4 its B-Hyb called a wrong value
optimal on one of eight smaller ones.

Both admit every point of the cone, so that a bound holds; a point is made one of the cone by raising u, or, where u is
binary, only taken as far as its integers go.

**Back**: polishing with the cone itself replaces u and v; nothing of the form is left in an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyomo.environ as pyo

from ..problem_class import ProblemClass

BLOCK = "cone_forms"
EPSILON = {"perspective": 1e-5, "norm": 1e-6}


def _perspective(vector: tuple[Any, ...], rhs: Any, factor: float) -> Any:
    return sum(v**2 for v in vector) / (rhs + EPSILON["perspective"]) - factor**2 * rhs <= 0


def _norm(vector: tuple[Any, ...], rhs: Any, factor: float) -> Any:
    epsilon = EPSILON["norm"]
    return pyo.sqrt(sum(v**2 for v in vector) + epsilon**2) - epsilon - factor * rhs <= 0


FORMS = {"perspective": _perspective, "norm": _norm}


@contextmanager
def written_as(
    form: str, model: pyo.ConcreteModel, problem: ProblemClass, scale: float = 1.0
) -> Iterator[None]:
    """The model with its marked cones in ``form`` and its objective multiplied by ``scale``, restored at the end.

    "quadratic" leaves the cones as they stand.
    """
    objective = next(model.component_data_objects(pyo.Objective, active=True, descend_into=True))
    expression = objective.expr
    rewritten = FORMS.get(form)
    try:
        if scale != 1.0:
            objective.set_value(scale * expression)
        if rewritten is not None and problem.cones:
            block = pyo.Block(concrete=True)
            model.add_component(BLOCK, block)
            block.rows = pyo.ConstraintList()
            for cone in problem.cones:
                cone.row.deactivate()
                block.rows.add(rewritten(cone.vector, cone.rhs, cone.factor))
        yield
    finally:
        if scale != 1.0:
            objective.set_value(expression)
        if rewritten is not None and problem.cones:
            for cone in problem.cones:
                cone.row.activate()
            if model.component(BLOCK) is not None:
                model.del_component(BLOCK)
