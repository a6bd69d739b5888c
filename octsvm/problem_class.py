"""The class of a model, computed from its active constraints, objective and variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from .formulations.blocks import SecondOrderCone, SquaredNorm

CLASSES = ("LP", "MILP", "QP", "MIQP", "SOCP", "MISOCP", "QCP", "MIQCP", "NLP", "MINLP")


@dataclass(frozen=True)
class ProblemClass:
    """Class and counts of a model.

    Attributes
    ----------
    name : str
        One of :data:`CLASSES`.
    variables, binaries, integers, rows : int
        Free variables and active rows. ``integers`` counts general integers.
    cones : tuple of SecondOrderCone
        Marked cone rows that are active.
    squared_norms : tuple of SquaredNorm
        Marked quadratic terms of the objective.
    unmarked : tuple of str
        Names of quadratic or nonlinear rows (or the objective) that no block has marked.
    """

    name: str
    variables: int
    binaries: int
    integers: int
    rows: int
    cones: tuple[SecondOrderCone, ...]
    squared_norms: tuple[SquaredNorm, ...]
    unmarked: tuple[str, ...]

    @property
    def quadratic(self) -> bool:
        """Whether anything is not linear."""
        return bool(self.cones or self.squared_norms or self.unmarked)

    def __str__(self) -> str:
        parts = [f"{self.binaries} binaries" if self.binaries else "", f"{self.rows} rows"]
        if self.cones:
            parts.append(f"{len(self.cones)} cone rows")
        return f"{self.name} ({', '.join(p for p in [f'{self.variables} variables', *parts] if p)})"


def blocks(model: pyo.ConcreteModel) -> Iterator[Any]:
    """The model and all its active blocks."""
    yield from model.block_data_objects(active=True)


def marks(model: pyo.ConcreteModel) -> tuple[list[SecondOrderCone], list[SquaredNorm]]:
    """Marked cone rows that are active, and marked quadratic terms of active blocks."""
    cones: list[SecondOrderCone] = []
    squares: list[SquaredNorm] = []
    for block in blocks(model):
        cones += [c for c in getattr(block, "second_order_cones", ()) if c.row.active]
        squares += getattr(block, "squared_norms", ())
    return cones, squares


def degree(expression: Any) -> float:
    """Degree of an expression in its free variables; infinite where it is no polynomial."""
    if type(expression) is LinearExpression:
        return 1
    found = expression.polynomial_degree() if hasattr(expression, "polynomial_degree") else 0
    return float("inf") if found is None else found


def _degree_without(squares: list[SquaredNorm], objective: Any) -> float:
    """Degree of the objective apart from its marked squares."""
    kept = [(s.expression, s.expression.expr) for s in squares]
    try:
        for expression, _ in kept:
            expression.set_value(0.0)
        return degree(objective.expr)
    finally:
        for expression, original in kept:
            expression.set_value(original)


def classify(model: pyo.ConcreteModel) -> ProblemClass:
    """Compute the class of ``model``."""
    cones, squares = marks(model)
    cone_rows = {id(c.row) for c in cones}
    rows, unmarked, row_degree = 0, [], 1.0
    for row in model.component_data_objects(pyo.Constraint, active=True, descend_into=True):
        rows += 1
        if id(row) in cone_rows:
            continue
        d = degree(row.body)
        if d > 1:
            unmarked.append(row.name)
            row_degree = max(row_degree, d)
    objectives = list(model.component_data_objects(pyo.Objective, active=True, descend_into=True))
    objective_degree = max((degree(o.expr) for o in objectives), default=1.0)
    if objective_degree > 1 and (not squares or _degree_without(squares, objectives[0]) > 1):
        unmarked.append(objectives[0].name)
    binaries = integers = variables = 0
    for var in model.component_data_objects(pyo.Var, active=True, descend_into=True):
        if var.fixed:
            continue
        variables += 1
        if var.is_binary():
            binaries += 1
        elif var.is_integer():
            integers += 1
    if max(row_degree, objective_degree) > 2:
        name = "NLP"
    elif row_degree > 1:
        name = "QCP"
    elif cones:
        name = "SOCP"
    elif objective_degree > 1:
        name = "QP"
    else:
        name = "LP"
    if binaries or integers:
        name = {"LP": "MILP", "NLP": "MINLP"}.get(name, "MI" + name)
    return ProblemClass(
        name, variables, binaries, integers, rows, tuple(cones), tuple(squares), tuple(unmarked)
    )
