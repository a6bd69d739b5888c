"""From a model to arrays (and an .nl file where an engine wants one); the model comes back unchanged.

The linear rows, with marked cones and squares as a bridge leaves them, become a :class:`LinearProgram`. Quadratic rows
and terms of the user's own, which no block has marked, follow as quadratic parts; what is neither is left to engines that
read .nl files, and the program is then ``partial``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyomo.environ as pyo
from pyomo.common.errors import InfeasibleConstraintException
from pyomo.core.expr.numvalue import is_fixed
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn import generate_standard_repn
from pyomo.repn.plugins.nl_writer import NLWriter

from .. import bridges
from ..backends.matrix_program import Array, LinearProgram, ModelFile, QuadraticForm, QuadraticRow, bounds_of
from ..bridges import LINEAR, Bridge
from ..errors import InvalidParameter
from ..formulations.base import FEASIBILITY
from ..problem_class import ProblemClass, degree
from .certificate import excess

LIGHT = 0.01  # of the heaviest sample
TOO_LARGE = 1e15  # of a coefficient in a row
INFINITE = 1e20  # of a side or a price: what HiGHS and others take for infinite


def compile_program(model: pyo.ConcreteModel, problem: ProblemClass, bridge: Bridge | None) -> LinearProgram:
    """Translate ``model``; the bridge is applied and stays so (its ``undo`` is the caller's)."""
    if bridge is not None:
        bridge.apply(model, problem)
    if not problem.unmarked and (bridge is None or bridge.gives(problem) in LINEAR):
        program = _linear(model)
        if bridge is None:
            return program.in_units(_weighs_little(model))
        bridge.attach(program)
        return program
    objective = _objective(model)
    curved = [
        row for row in model.component_data_objects(pyo.Constraint, active=True) if degree(row.body) > 1
    ]
    rows = [generate_standard_repn(row.body, quadratic=True, compute_values=True) for row in curved]
    parts, cost, linear = [row.body for row in curved], None, objective.expr
    if degree(objective.expr) > 1:
        parts.append(objective.expr)
        cost = generate_standard_repn(objective.expr, quadratic=True, compute_values=True)
        linear = cost.constant + sum(c * v for c, v in zip(cost.linear_coefs, cost.linear_vars, strict=True))
    with _deactivated(curved), _replaced(objective, linear):
        program = _linear(model)
    extra = {id(v): v for e in parts for v in identify_variables(e, include_fixed=False)}
    program = program.with_columns([v for k, v in extra.items() if k not in program.position])
    partial = any(r.nonlinear_expr is not None for r in (rows if cost is None else [*rows, cost]))
    program = replace(
        program,
        quadratic_rows=[
            _quadratic_row(r, row, program.position)
            for r, row in zip(rows, curved, strict=True)
            if r.nonlinear_expr is None
        ],
        quadratic_cost=None if cost is None or partial else _form(cost, program.position),
        partial=partial,
    )
    if bridge is not None:
        bridge.attach(program)
    return program


def _weighs_little(model: pyo.ConcreteModel) -> bool:
    """Whether rows may be off by much of a sample's weight: they are told within a tolerance of 1e-6, whatever that weighs."""
    info = getattr(model, "info", None)
    return info is not None and float(info.data.weights.max()) < LIGHT


def _linear(model: pyo.ConcreteModel) -> LinearProgram:
    """The linear rows; rows of fixed variables alone hold within the tolerance that a tree is embedded with."""
    with _deactivated(_suffixes(model)):
        program = LinearProgram.compile(model)
        if program.infeasible:
            with _deactivated(_rows_that_hold(model)):
                program = LinearProgram.compile(model)
    beyond = program.low - program.high
    program.infeasible |= bool((beyond > FEASIBILITY * np.maximum(1.0, np.abs(program.high))).any())
    return program


def _suffixes(model: pyo.ConcreteModel) -> list[Any]:
    """What a user has Pyomo hand over with files belongs to no solve: readers of .nl files stumble over it."""
    return list(model.component_objects(pyo.Suffix, active=True))


def _rows_that_hold(model: pyo.ConcreteModel) -> list[Any]:
    """The rows of fixed variables alone that are off by a rounding error at most; Pyomo has no tolerance."""
    rows = model.component_data_objects(pyo.Constraint, active=True)
    return [row for row in rows if is_fixed(row.body) and excess(row)[0] <= FEASIBILITY]


@contextmanager
def _deactivated(components: list[Any]) -> Iterator[None]:
    """Leave active components out of the model for a while."""
    try:
        for component in components:
            component.deactivate()
        yield
    finally:
        for component in components:
            component.activate()


@contextmanager
def _replaced(objective: Any, expression: Any) -> Iterator[None]:
    """Let an objective be another ``expression`` for a while."""
    before = objective.expr
    try:
        if expression is not before:
            objective.set_value(expression)
        yield
    finally:
        if expression is not before:
            objective.set_value(before)


def require_finite(model: pyo.ConcreteModel, program: LinearProgram, size: float) -> None:
    """Refuse numbers that engines take for infinite, or do not take, in a program whose objectives are about ``size``.

    Raises
    ------
    InvalidParameter
        Naming the row or the objective.
    """
    if _is_beyond(program):
        _refuse_largest(model.component_data_objects(pyo.Constraint, active=True))
    elif (np.abs(program.cost) * program.cost_scale(size) >= INFINITE).any():
        _refuse_largest([_objective(model)])


def require_finite_rows(rows: Iterable[Any], program: LinearProgram) -> None:
    """As :func:`require_finite`, for a program that is made of ``rows`` alone.

    Raises
    ------
    InvalidParameter
    """
    if _is_beyond(program):
        _refuse_largest(rows)


def _is_beyond(program: LinearProgram) -> bool:
    """Whether a coefficient or a side is too large for engines."""
    A = abs(program.A)
    sides = (program.row_low[program.row_low < np.inf], -program.row_high[program.row_high > -np.inf])
    return bool(
        (A.nnz and A.data.max() >= TOO_LARGE) or any(side.max(initial=0.0) >= INFINITE for side in sides)
    )


def _refuse_largest(rows: Iterable[Any]) -> NoReturn:
    """Refuse the largest number of some rows, or of an objective, by name."""
    what, largest = "", 0.0
    for row in rows:
        body = row.body if row.ctype is pyo.Constraint else row.expr
        repn = generate_standard_repn(body, quadratic=True, compute_values=True)
        found = [
            (abs(c), f"{row.name!r} has {c:g} beside {v.name!r}")
            for c, v in zip(repn.linear_coefs, repn.linear_vars, strict=True)
        ]
        if row.ctype is pyo.Constraint:
            found += [
                (abs(side), f"{row.name!r} has the side {side:g}")
                for side in (row.lb, row.ub)
                if side is not None
            ]
        worst, text = max(found, default=(0.0, ""))
        if worst > largest:
            largest, what = worst, text
    raise InvalidParameter(
        f"{what}, which solvers take for infinite, or do not take beside the other numbers of this model. Give it other units "
        "(weights of rows and costs are such numbers, too), or leave it out."
    )


def _objective(model: pyo.ConcreteModel) -> Any:
    return next(model.component_data_objects(pyo.Objective, active=True))


def _form(repn: Any, position: dict[int, int]) -> QuadraticForm:
    pairs = [(position[id(a)], position[id(b)]) for a, b in repn.quadratic_vars]
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return QuadraticForm(first, second, np.array(repn.quadratic_coefs, dtype=float))


def _quadratic_row(repn: Any, row: Any, position: dict[int, int]) -> QuadraticRow:
    at = np.array([position[id(v)] for v in repn.linear_vars], dtype=np.int64)
    (low,), (high,) = bounds_of([(row.lb, row.ub)])
    shift = float(repn.constant)
    coefs = np.array(repn.linear_coefs, dtype=float)
    return QuadraticRow(_form(repn, position), at, coefs, float(low) - shift, float(high) - shift)


def write_nl(
    model: pyo.ConcreteModel,
    problem: ProblemClass,
    program: LinearProgram,
    form: str,
    scale: float,
    folder: Path,
) -> ModelFile:
    """Write ``model`` (no bridge applied) into ``folder``, its objective multiplied by ``scale``.

    Its cones are in ``form``: that of the bridge of this name, or as they stand where there is none.
    """
    path = folder / "model.nl"
    bridge = bridges.bridge(form) if form in bridges.names() else None
    if bridge is not None and bridge.gives(problem) is None:
        bridge = None
    objective = _objective(model)
    with (
        _deactivated(_suffixes(model)),
        _replaced(objective, objective.expr if scale == 1.0 else scale * objective.expr),
        bridge.applied(model, problem) if bridge is not None else nullcontext(),
        path.open("w", newline="") as out,
    ):
        options = {"linear_presolve": False, "scale_model": False, "export_defined_variables": False}
        try:
            info = NLWriter().write(model, out, **options)
        except InfeasibleConstraintException:
            out.seek(0)
            out.truncate()
            with _deactivated(_rows_that_hold(model)):
                info = NLWriter().write(model, out, **options)
    columns = np.array([program.position.get(id(v), -1) for v in info.variables], dtype=np.int64)
    return ModelFile(path, columns, scale)


def start_point(program: LinearProgram, bridge: Bridge | None) -> Array:
    """The model's values; NaN for variables of the user's own that have none, 0 for the bridge's (it repairs them)."""
    x = np.array([v.value for v in program.columns], dtype=float)
    lifted = {id(v) for v in (() if bridge is None else bridge.own_variables())}
    x[np.isnan(x) & np.array([id(v) in lifted for v in program.columns], dtype=bool)] = 0.0
    return x if program.unit is None else x / program.unit
