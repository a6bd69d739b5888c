"""The class of a model, computed from its active constraints, objective and variables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.numeric_types import native_numeric_types, native_types
from pyomo.core.expr import (
    DivisionExpression,
    ExternalFunctionExpression,
    LinearExpression,
    MonomialTermExpression,
    PowExpression,
    ProductExpression,
    UnaryFunctionExpression,
)
from pyomo.repn import generate_standard_repn

from .errors import InvalidParameter, UnsupportedProblem
from .formulations.base import FEASIBILITY
from .formulations.blocks import SecondOrderCone, SquaredNorm
from .formulations.checks import plural

CLASSES = ("LP", "MILP", "QP", "MIQP", "SOCP", "MISOCP", "QCP", "MIQCP", "NLP", "MINLP")


@dataclass(frozen=True)
class ProblemClass:
    """Class and counts of a model."""

    name: str  # one of CLASSES
    variables: int  # free ones, as the binaries and (general) integers among them
    binaries: int
    integers: int
    rows: int  # active ones
    cones: tuple[SecondOrderCone, ...]  # marked cone rows that are active
    squared_norms: tuple[SquaredNorm, ...]  # marked quadratic terms of the objective
    # Names of rows (or the objective) that are not linear, and that no block has marked.
    unmarked: tuple[str, ...]

    @property
    def quadratic(self) -> bool:
        """Whether anything is not linear."""
        return bool(self.cones or self.squared_norms or self.unmarked)

    def __str__(self) -> str:
        parts = [plural(self.variables, "variable")]
        if self.binaries:
            parts.append("1 binary" if self.binaries == 1 else f"{self.binaries} binaries")
        parts.append(plural(self.rows, "row"))
        if self.cones:
            parts.append(plural(len(self.cones), "cone row"))
        return f"{self.name} ({', '.join(parts)})"


def marks(model: pyo.ConcreteModel) -> tuple[list[SecondOrderCone], list[SquaredNorm]]:
    """Marked cone rows that are active, and marked quadratic terms of active blocks; without those of fixed variables alone."""
    cones: list[SecondOrderCone] = []
    squares: list[SquaredNorm] = []
    for block in model.block_data_objects(active=True):
        cones += [
            c
            for c in getattr(block, "second_order_cones", ())
            if c.row.active and not (c.rhs.fixed and _all_fixed(c.vector))
        ]
        squares += [s for s in getattr(block, "squared_norms", ()) if not _all_fixed(s.vector)]
    return cones, squares


def _all_fixed(vector: tuple[Any, ...]) -> bool:
    return all(v.fixed for v in vector)


def degree(expression: Any) -> float:
    """Degree of an expression in its free variables; infinite where it is no polynomial, or has parts without a value."""
    if type(expression) is LinearExpression:
        return 1
    try:
        found = expression.polynomial_degree() if hasattr(expression, "polynomial_degree") else 0
    except (ValueError, ArithmeticError):  # require_plain refuses them by name
        found = None
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


TRANSFORMATIONS = {
    "Disjunction": "pyo.TransformationFactory('gdp.bigm').apply_to(model)",
    "Disjunct": "pyo.TransformationFactory('gdp.bigm').apply_to(model)",
    "LogicalConstraint": "pyo.TransformationFactory('core.logical_to_linear').apply_to(model)",
    "Complementarity": "pyo.TransformationFactory('mpec.simple_disjunction').apply_to(model), then 'gdp.bigm'",
    "SOSConstraint": "binary variables and linear rows in its place (pw_repn='INC' for a Piecewise)",
    "DerivativeVar": "pyo.TransformationFactory('dae.finite_difference').apply_to(model)",
    "Arc": "pyo.TransformationFactory('network.expand_arcs').apply_to(model)",
}
PIECEWISE = "pyo.TransformationFactory('contrib.piecewise.incremental').apply_to(model)"
STATING = "Var Constraint Objective Expression Param Set RangeSet SetOf ContinuousSet Block"  # what everything knows
SILENT = (
    "Suffix BuildAction BuildCheck BooleanVar ExternalFunction PiecewiseLinearFunction Port"  # by themselves
)
PLAIN = frozenset(f"{STATING} {SILENT}".split())  # kinds of components that need no transformation


def require_plain(model: pyo.ConcreteModel) -> None:
    """Refuse what no engine and no file can be given: before anything is solved or written.

    That are components which a transformation has to rewrite, and rows and objectives with coefficients that are no
    numbers, with variables of another model, with fixed variables without values, or with external functions.
    """
    for component in model.component_objects(active=True):
        kind = component.ctype.__name__
        if kind not in PLAIN and any(getattr(data, "active", True) for data in component.values()):
            way = TRANSFORMATIONS.get(
                kind, "the transformation of Pyomo's that belongs to it, or rows in its place"
            )
            raise UnsupportedProblem(
                f"{component.name!r} is {'an' if kind[0] in 'AEIOU' else 'a'} {kind}, which no solver and no file is given as it stands. Use {way}, and solve or "
                "write the model then."
            )
    known = {id(v) for v in model.model().component_data_objects(pyo.Var)}
    for var in model.component_data_objects(pyo.Var, active=True):
        try:
            _ = var.bounds
        except (ValueError, ArithmeticError) as error:
            raise InvalidParameter(
                f"The variable {var.name!r} has bounds that are no numbers: {' '.join(str(error).split())}"
            ) from None
    for row in model.component_data_objects(pyo.Constraint, active=True):
        if _is_plain_row(row, known):
            continue
        try:
            low, body, high = row.to_bounded_expression()
        except ValueError as error:
            raise InvalidParameter(f"The row {row.name!r} has no sides of numbers: {error}") from None
        _require_numbers(row, body, known)
        for side, open_ in ((low, -math.inf), (high, math.inf)):
            value = None if side is None else _value(side)
            if side is not None and (value is None or not (math.isfinite(value) or value == open_)):
                raise InvalidParameter(
                    f"The row {row.name!r} has a side that is {value}. Correct it, or leave the row out."
                )
    for objective in model.component_data_objects(pyo.Objective, active=True):
        _require_numbers(objective, objective.expr, known)


def _require_numbers(row: Any, expression: Any, known: set[int]) -> None:
    """Refuse numbers in ``expression`` that are none, and variables that are not ``known`` or fixed without a value."""
    waiting, calculates = [(expression, None)], False
    while waiting:
        node, beside = waiting.pop()
        if type(node) is LinearExpression:
            # Nearly every row: its terms are looked at one by one only where there is something to find.
            waiting += _terms_to_look_at(node, known)
        elif node.__class__ in native_numeric_types:
            if not isinstance(node, int | float | np.number | np.bool_):
                raise InvalidParameter(
                    f"The row or objective {row.name!r} has the number {node!r}, a {type(node).__name__}, which files for solvers "
                    "cannot hold. Write float(...) of it."
                )
            if not math.isfinite(node):
                raise InvalidParameter(_no_number(row, node, beside))
        elif node is None or node.__class__ in native_types:
            continue
        elif node.is_variable_type():
            home = node.parent_component()
            if id(node) not in known and (home is None or home.parent_block() is None):
                raise InvalidParameter(
                    f"The row or objective {row.name!r} has a variable that was taken out of the model. Put it back, deactivate the "
                    "rows that it stands in, or build the model again."
                )
            if id(node) not in known and isinstance(
                node.model(), pyo.ConcreteModel
            ):  # or in a block that was taken out
                raise InvalidParameter(
                    f"The row or objective {row.name!r} has the variable {node.name!r}, which does not belong to this model. "
                    "Use this model's own variables (a clone has its own)."
                )
            if node.fixed:
                _require_fixed_inside(node, row)
        elif node.is_expression_type():
            if isinstance(node, ExternalFunctionExpression):
                raise UnsupportedProblem(
                    f"The row or objective {row.name!r} calls an external function, which no solver is given. Write it with "
                    "Pyomo's own operators."
                )
            if type(node).__name__ == "PiecewiseLinearExpression":
                raise UnsupportedProblem(
                    f"The row or objective {row.name!r} has a piecewise linear function as it stands. Use {PIECEWISE}, and "
                    "solve or write the model then."
                )
            arguments = node.args
            calculates = calculates or _calculates(node, arguments)
            found = next(
                (a for a in arguments if hasattr(a, "is_variable_type") and a.is_variable_type()), beside
            )
            waiting += [(argument, found) for argument in arguments]
        elif (value := _value(node)) is None or not math.isfinite(value):  # a parameter
            raise InvalidParameter(_no_number(row, value, beside, node))
    if calculates:
        _require_values(row, expression)


def _value(constant: Any) -> float | None:
    """The value of a parameter or of arithmetic with some; None where it has none."""
    try:
        found: float | None = pyo.value(constant, exception=False)
    except ArithmeticError:
        return None
    return found


def _calculates(node: Any, arguments: Any) -> bool:
    """Whether an expression computes with parameters or fixed variables, numbers each: what comes of it may be none."""
    if isinstance(node, DivisionExpression | UnaryFunctionExpression):
        return True
    return isinstance(node, PowExpression | ProductExpression) and any(
        argument.__class__ not in native_types
        and (not argument.is_potentially_variable() or (argument.is_variable_type() and argument.fixed))
        for argument in arguments
    )


def _require_values(row: Any, expression: Any) -> None:
    """Refuse arithmetic of constants without a value: a division by zero, the logarithm of a negative number."""
    try:
        repn = generate_standard_repn(expression, quadratic=True, compute_values=True)
        numbers = [repn.constant, *repn.linear_coefs, *repn.quadratic_coefs]
        why = "" if all(math.isfinite(number) for number in numbers) else "an overflow"
    except (ValueError, ArithmeticError, TypeError) as error:
        why = "a division by zero" if isinstance(error, ZeroDivisionError) else " ".join(str(error).split())
    if why:
        raise InvalidParameter(
            f"The row or objective {row.name!r} computes with parameters or fixed variables what has no value: {why}. Correct "
            "them, or leave the term out."
        )


def _require_fixed_inside(var: Any, row: Any) -> None:
    """Refuse a variable that is fixed at no number, or out of its bounds or its domain: engines know its value alone."""
    if var.value is None:
        raise InvalidParameter(
            f"The variable {var.name!r} in {row.name!r} is fixed and has no value. Fix it at a number, or unfix it."
        )
    (low, high), value = var.bounds, var.value
    if not math.isfinite(value):
        why = "which is no number"
    elif (low is not None and value < low - FEASIBILITY * max(1.0, abs(low))) or (
        high is not None and value > high + FEASIBILITY * max(1.0, abs(high))
    ):
        why = f"and its bounds are {low} and {high}"
    elif not var.is_continuous() and abs(value - round(value)) > FEASIBILITY:
        why = "and its domain has whole numbers only"
    else:
        return
    raise InvalidParameter(
        f"The variable {var.name!r} in {row.name!r} is fixed at {value:g}, {why}. Fix it at another value, or unfix it."
    )


def _is_plain_row(row: Any, known: set[int]) -> bool:
    """Whether a row is a linear expression without anything to look at, between finite numbers: nearly every one is.

    Pyomo's own way to take a row apart takes several times as long.
    """
    body = None
    for part in row.expr.args:
        if type(part) is float:
            if part - part != 0.0:
                return False
        elif body is None and type(part) is LinearExpression:
            body = part
        else:
            return False
    return body is not None and not _terms_to_look_at(body, known)


def _terms_to_look_at(expression: Any, known: set[int]) -> list[tuple[Any, None]]:
    """The terms of a linear expression that are not a finite number times a free variable of the model."""
    odd = []
    for part in expression.args:
        if type(part) is MonomialTermExpression:
            coef, var = part._args_
            # A number less itself is 0 unless it is infinite or none: the cheapest way to ask, for a million terms.
            if type(coef) is float and coef - coef == 0.0 and id(var) in known and not var._fixed:
                continue
        odd.append((part, None))
    return odd


def _no_number(row: Any, value: Any, variable: Any, parameter: Any = None) -> str:
    place = "" if variable is None else f" beside {variable.name!r}"
    name = "" if parameter is None else f" (the parameter {parameter.name!r})"
    return (
        f"The row or objective {row.name!r} has the coefficient {value}{place}{name}, which is no number that a solver can be "
        "given. Correct it, or leave the term out."
    )


def classify(model: pyo.ConcreteModel) -> ProblemClass:
    """Compute the class of ``model``."""
    cones, squares = marks(model)
    cone_rows = {id(c.row) for c in cones}
    rows, unmarked, row_degree = 0, [], 1.0
    for row in model.component_data_objects(pyo.Constraint, active=True):
        rows += 1
        if id(row) in cone_rows:
            continue
        d = degree(row.body)
        if d > 1:
            unmarked.append(row.name)
            row_degree = max(row_degree, d)
    objectives = list(model.component_data_objects(pyo.Objective, active=True))
    objective_degree = max((degree(o.expr) for o in objectives), default=1.0)
    if objective_degree > 1 and (not squares or _degree_without(squares, objectives[0]) > 1):
        unmarked.append(objectives[0].name)
    binaries = integers = variables = 0
    for var in model.component_data_objects(pyo.Var, active=True):
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
