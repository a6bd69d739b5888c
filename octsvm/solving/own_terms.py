"""Terms of the user's own in the objective: what they cost at least, and values for variables of the user's own.

big-M holds for the trees whose own cost (``model.cost``) is at most UB, whatever the user adds to it. Of all other trees
it is known that they cost more than UB plus the least that the user's terms come to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from pyomo.common.errors import InfeasibleConstraintException
from pyomo.contrib.fbbt.fbbt import compute_bounds_on_expr
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn import generate_standard_repn

from ..backends.matrix_program import LinearProgram, bounds_of
from ..formulations.base import FEASIBILITY, ModelInfo
from ..formulations.blocks.big_m import SLACK
from ..formulations.blocks.roles import role_of
from ..problem_class import degree
from . import certificate as checks
from .compile import require_finite_rows
from .engine import solve_embedded

FAR_OUT = 1e5  # of a variable of the user's own, or an objective below 0: engines bound what has no bounds at 1e6 and beyond
CLOSE = 1e-12  # relative: prices that are the same but for rounding
COMPLETION_SECONDS = 1.0  # at most, for values of the user's own variables, whatever the limit of the call


class Least(NamedTuple):
    """What the objective is beside ``share`` times the own cost comes to ``fixed`` + r·``scaled`` at least, where that is r·UB, r >= 1.

    ``scaled`` is never positive, and ``share`` never negative.
    """

    fixed: float
    scaled: float
    share: float = 1.0

    def floor(self) -> float:
        """No tree of the model costs less: costs of its own are not negative."""
        return self.fixed + self.scaled

    def ceiling(self, upper_bound: float) -> float:
        """No tree whose own cost exceeds UB costs less: it pays r·share·UB + ``fixed`` + r·``scaled`` at least."""
        own = self.share * upper_bound if self.share else 0.0
        return self.fixed + self.scaled + own if self.scaled + own >= 0 else -math.inf


NOTHING = Least(0.0, 0.0)  # where the user added none


def least_terms(model: pyo.ConcreteModel) -> Least:
    """What the user's terms in the objective come to at least, from the bounds of their variables.

    The objective may have the own cost in it several times, or not at all: the share of it that leaves most is taken.
    Nothing is known of one that has no value.
    """
    if checks.has_own_objective(model):
        return NOTHING
    objective = checks.active_objective(model).expr
    try:
        with _released(model):
            return _most(model, objective)
    except (
        ValueError,
        ArithmeticError,
    ):  # a parameter without a value, a division by zero: refused by name later
        return Least(-math.inf, 0.0)


def _most(model: pyo.ConcreteModel, objective: Any) -> Least:
    """What the user's terms come to at least, with the share of the own cost that leaves most."""
    found = _Ranges(model, model.info)
    return max(
        (
            _beside(objective - share * model.cost.expr, found)._replace(share=share)
            for share in _shares(model, objective)
        ),
        key=lambda least: (least.ceiling(model.info.upper_bound), least.floor()),
    )


@contextmanager
def _released(model: pyo.ConcreteModel) -> Iterator[None]:
    """Variables that are fixed for the trees up to UB alone, as the formulation or tightening does, free for a while."""
    structure = model.info.structure
    names = structure.fixed if structure else ()
    held = [v for v in model.component_data_objects(pyo.Var) if v.fixed and v.name in names]
    for var in held:
        var.fixed = False
    try:
        yield
    finally:
        for var in held:
            var.fixed = True


def _shares(model: pyo.ConcreteModel, objective: Any) -> set[float]:
    """How often the own cost may be in an objective: once, or by what the variables of it are in there."""
    parts = []
    for expression in (objective, model.cost.expr):
        repn = generate_standard_repn(expression, quadratic=True, compute_values=True)
        linear = zip(map(id, repn.linear_vars), repn.linear_coefs, strict=True)
        parts.append(dict(linear))
    whole, cost = parts
    least = max(0.0, min((whole.get(v, 0.0) / c for v, c in cost.items() if c > 0), default=1.0))
    # A little less leaves prices that are rounded no lower than 0.
    return {1.0} if abs(least - 1.0) < CLOSE else {1.0, least * (1 - CLOSE)}


def _beside(terms: Any, found: _Ranges) -> Least:
    """What ``terms`` come to at least."""
    repn = generate_standard_repn(terms, quadratic=True, compute_values=True)
    fixed, scaled = float(repn.constant), 0.0
    for coef, var in zip(repn.linear_coefs, repn.linear_vars, strict=True):
        low, high, grows = found.of(var)
        part = min(coef * low, coef * high) if coef else 0.0
        if grows and math.isfinite(part):
            scaled += min(0.0, part)
        else:
            fixed += part
    for coef, (first, second) in zip(repn.quadratic_coefs, repn.quadratic_vars, strict=True):
        fixed += _product(coef, found.of(first), found.of(second), first is second)
    if repn.nonlinear_expr is not None:
        variables = list(identify_variables(repn.nonlinear_expr, include_fixed=False))
        open_ = any(found.of(v)[2] for v in variables)
        try:
            bounds = (None, None) if open_ else compute_bounds_on_expr(repn.nonlinear_expr)
        except InfeasibleConstraintException:  # it has no value anywhere
            bounds = (None, None)
        fixed += -math.inf if bounds[0] is None else float(bounds[0])
    return Least(fixed, scaled) if not math.isnan(fixed) else Least(-math.inf, 0.0)


Range = tuple[
    float, float, bool
]  # least and greatest value, and whether a finite one grows with the tree's own cost


def _product(coef: float, first: Range, second: Range, square: bool) -> float:
    """The least value of coef·x·y; no bound where a range grows with the tree's cost, but that a square is not negative."""
    if square and coef >= 0:
        return 0.0
    if first[2] or second[2]:
        return -math.inf
    ends = [coef * a * b for a in first[:2] for b in second[:2] if not (a == 0 or b == 0)]
    if not all(math.isfinite(e) for e in ends):
        return -math.inf
    return min([*ends, 0.0] if len(ends) < 4 else ends)


class _Ranges:
    """Between which values a variable lies at every tree of the formulation, whatever that costs.

    Bounds that come from big-M hold for trees up to UB, and grow at most as its multiples do. That of a score holds for
    one tree of those with equal cost only, so it counts as none.
    """

    def __init__(self, model: pyo.ConcreteModel, info: ModelInfo) -> None:
        users = {id(v) for c in checks.user_components(model) for v in checks.variables_of(c)}
        self._cost = model.cost.expr
        self._users, self._bounded = users, math.isfinite(info.upper_bound)
        self._upper_bound = info.upper_bound
        W, delta = info.big_m.get("weights", 0.0), model.find_component("margin.delta")
        # What bounds δ may be far below UB, and then grows faster than UB does; ‖ω‖ <= 2δ <= 2 UB holds for all.
        largest = 2 * info.upper_bound * (1 + SLACK)
        self._growth = max(1.0, largest / W) if delta is not None and W > 0 else 1.0
        self._known = "weights" in info.big_m and info.upper_bound > 0  # nothing is a multiple of 0
        scores = getattr(getattr(model, "split", None), "s", None)
        self._scores = set() if scores is None else {id(v) for v in scores.values()}
        self._by_rows: dict[int, Range] = {}
        for component in checks.user_components(model):
            for row in checks.rows_of(component):
                self._read(row)

    @cached_property
    def _prices(self) -> dict[int, float]:
        """What the variables cost that the formulation's own cost has a price for."""
        repn = generate_standard_repn(self._cost, quadratic=True, compute_values=True)
        return {id(v): float(c) for c, v in zip(repn.linear_coefs, repn.linear_vars, strict=True) if c > 0}

    def of(self, var: Any) -> Range:
        """Where ``var`` lies, by its bounds and, for variables of the user's own without, by a row of theirs."""
        return self._by_rows.get(id(var)) or self._by_bounds(var)

    def _read(self, row: Any) -> None:
        """What a linear row says of the user's variables in it that lack a bound, from the bounds of the others."""
        repn = generate_standard_repn(row.body, quadratic=False, compute_values=True)
        parts = list(zip(repn.linear_coefs, repn.linear_vars, strict=True))
        lacking = [v for _, v in parts if id(v) in self._users and (v.lb is None or v.ub is None)]
        if repn.nonlinear_expr is not None or not lacking:
            return
        for own in lacking:
            coef = sum(c for c, v in parts if v is own)
            others = [(c, *self.of(v)) for c, v in parts if v is not own]
            grows = any(more for *_, more in others)
            low, high = -math.inf, math.inf
            for side, largest in ((row.lb, True), (row.ub, False)):
                if side is None:
                    continue
                fixed, grown = float(repn.constant), 0.0
                for c, least, greatest, more in others:
                    part = (max if largest else min)(c * least, c * greatest)
                    fixed, grown = (fixed, grown + part) if more else (fixed + part, grown)
                end = (side - fixed) / coef
                if (coef > 0) is largest:
                    low = max(low, (min(end, 0.0) if grows else end) - grown / coef)
                else:
                    high = min(high, (max(end, 0.0) if grows else end) - grown / coef)
            if own.is_integer() and not grows:
                low, high = np.ceil(low - FEASIBILITY), np.floor(high + FEASIBILITY)
            self._by_rows[id(own)] = _narrowed(self.of(own), float(low), float(high), grows)

    def _by_bounds(self, var: Any) -> Range:
        low, high = (-math.inf if var.lb is None else var.lb), (math.inf if var.ub is None else var.ub)
        if var.fixed:
            return float(var.value), float(var.value), False
        if not self._bounded or id(var) in self._users or not var.is_continuous() or (low, high) == (0, 1):
            return low, high, False
        role = role_of(var)
        price = self._prices.get(id(var), 0.0)
        # An error that costs nothing may be as large as one likes, at any cost of the tree.
        score = role is None or (role.sample is not None and (low < 0 or not price))
        if score or not self._known:
            positive = id(var) not in self._scores and is_nonnegative(var)
            return (low if positive else -math.inf), math.inf, True
        # An error may be larger than the tree needs, and then its price alone bounds it.
        if price and low >= 0:
            return low, self._upper_bound * (1 + SLACK) / price, True
        return low * self._growth, high * self._growth, True


def is_nonnegative(var: Any) -> bool:
    """Whether bounds say so at any cost of the tree; both are 0 where big-M is built from a tree that costs nothing."""
    return var.lb is not None and var.lb >= 0 != var.ub


def _narrowed(known: Range, low: float, high: float, grows: bool) -> Range:
    """The common part of two ranges; one that grows has 0 in it, so that its multiples hold the others."""
    low, high, grows = max(known[0], low), min(known[1], high), known[2] or grows
    return (min(low, 0.0), max(high, 0.0), True) if grows else (low, high, False)


# -- values of the user's own variables ---------------------------------------------------------------------------------


def complete(model: pyo.ConcreteModel, seconds: float = COMPLETION_SECONDS) -> bool:
    """Give the variables of the user's own that have no value the best ones that the others leave them, if there are any.

    Only the rows that they stand in are looked at. False, and nothing set, where these are not linear or no values were
    found in ``seconds``.
    """
    lacking = {id(v): v for v in checks.without_value(model)}
    if not lacking:
        return True
    rest = rest_of(model, lacking)
    if rest is None:
        return False
    program, _ = rest
    for cost in (program.cost, np.zeros(program.n)):  # where the best is unbounded, any will do
        program.cost = cost
        out = solve_embedded(program, seconds, gap=1e-6)
        if out.x is not None and program.violation(out.x) <= 1e-6:
            program.load(out.x)
            return True
        if out.stop not in ("unbounded", "inf_or_unbd"):
            return False
    return False


def holds_in_all_rows(model: pyo.ConcreteModel) -> bool:
    """Whether no row waits for a variable of the user's own that has no value: an embedded tree is then a point of the model."""
    lacking = {id(v) for v in checks.without_value(model)}
    return not lacking or not any(
        id(var) in lacking
        for row in model.component_data_objects(pyo.Constraint, active=True, descend_into=True)
        for var in identify_variables(row.body, include_fixed=False)
    )


def runs_away(model: pyo.ConcreteModel) -> bool:
    """Whether a variable of the user's own, far out at the present values, may go on, and the objective falls all the way.

    Engines put bounds of their own where a model that is not convex has none, and call what they meet there optimal.
    """
    expression = checks.active_objective(model).expr
    users = {id(v): v for c in checks.user_components(model) for v in checks.variables_of(c)}
    far = [v for v in users.values() if not v.fixed and v.value is not None and abs(v.value) >= FAR_OUT]
    rows = list(model.component_data_objects(pyo.Constraint, active=True, descend_into=True)) if far else []
    return any(_falls_along(var, expression, rows) for var in far)


def is_deep(model: pyo.ConcreteModel) -> bool:
    """Whether the objective has other parts than powers, and is far below 0: near a pole engines stop at any point of it."""
    expression = checks.active_objective(model).expr
    return degree(expression) == math.inf and float(pyo.value(expression)) <= -FAR_OUT


def _falls_along(var: Any, expression: Any, rows: list[Any]) -> bool:
    """Whether ``var`` may be a thousand and a million times farther out, and ``expression`` is twice as low each time."""
    before, value = var.value, float(pyo.value(expression))
    mine = [row for row in rows if any(v is var for v in identify_variables(row.body))]
    try:
        for factor in (1e3, 1e6):
            var.set_value(before * factor, skip_validation=True)
            if (var.lb is not None and var.value < var.lb) or (var.ub is not None and var.value > var.ub):
                return False
            further = float(pyo.value(expression))
            if further >= value - abs(value) or any(checks.excess(row)[0] > FEASIBILITY for row in mine):
                return False
            value = further
    finally:
        var.set_value(before, skip_validation=True)
    return True


def without_optimum(program: LinearProgram, seconds: float = COMPLETION_SECONDS) -> str:
    """Why a program has no optimum: "unbounded" where it has a point, "infeasible", or "inf_or_unbd" where nobody knows."""
    if program.quadratic or program.partial:
        return "inf_or_unbd"
    out = solve_embedded(replace(program, cost=np.zeros(program.n)), seconds)
    if out.x is not None:
        return "unbounded"
    return "infeasible" if out.stop == "infeasible" else "inf_or_unbd"


def is_unbounded(program: LinearProgram, seconds: float = COMPLETION_SECONDS) -> bool:
    """Whether the embedded solver calls a program unbounded and has a point of it; False where it does not take it."""
    if program.quadratic or program.partial:
        return False
    said = solve_embedded(program, seconds).stop
    return said in ("unbounded", "inf_or_unbd") and without_optimum(program, seconds) == "unbounded"


def rest_of(model: pyo.ConcreteModel, lacking: dict[int, Any]) -> tuple[LinearProgram, list[Any]] | None:
    """Costs and rows, and the rows themselves, of the variables ``lacking`` a value, all others as they are.

    None where they are not linear.

    Raises
    ------
    InvalidParameter
        A number in them is too large for any engine.
    """
    rows = [
        row
        for row in model.component_data_objects(pyo.Constraint, active=True, descend_into=True)
        if any(id(v) in lacking and not v.fixed for v in checks.variables_in(row.body))
    ]
    with _others_fixed(model, lacking):
        program = rows_as_program(rows, list(lacking.values()), [v.bounds for v in lacking.values()])
        repn = generate_standard_repn(checks.active_objective(model).expr, quadratic=False)
    if program is None or repn.nonlinear_expr is not None:
        return None
    require_finite_rows(rows, program)
    for coef, var in zip(repn.linear_coefs, repn.linear_vars, strict=True):
        program.cost[program.position[id(var)]] = coef
    return program, rows


def rows_as_program(
    rows: list[Any], columns: list[Any], bounds: list[tuple[Any, Any]]
) -> LinearProgram | None:
    """The rows as a program without costs in ``columns``, all others fixed; None where they are not linear."""
    position = {id(v): k for k, v in enumerate(columns)}
    A = sp.lil_array((len(rows), len(columns)))
    sides: list[Any] = []
    for i, row in enumerate(rows):
        repn = generate_standard_repn(row.body, quadratic=False, compute_values=True)
        if repn.nonlinear_expr is not None:
            return None
        for coef, var in zip(repn.linear_coefs, repn.linear_vars, strict=True):
            A[i, position[id(var)]] = coef
        sides.append(tuple(None if side is None else side - repn.constant for side in (row.lb, row.ub)))
    row_low, row_high = bounds_of(sides)
    low, high = bounds_of(bounds)
    return LinearProgram(
        columns=columns,
        cost=np.zeros(len(columns)),
        offset=0.0,
        low=low,
        high=high,
        integer=np.array([not v.is_continuous() for v in columns], dtype=bool),
        A=sp.csr_array(A),
        row_low=row_low,
        row_high=row_high,
        position=position,
    )


@contextmanager
def _others_fixed(model: pyo.ConcreteModel, lacking: dict[int, Any]) -> Iterator[None]:
    """All variables that have a value, fixed at it for a while."""
    freed = [
        v
        for v in model.component_data_objects(pyo.Var)
        if not v.fixed and v.value is not None and id(v) not in lacking
    ]
    try:
        for var in freed:
            var.fix()
        yield
    finally:
        for var in freed:
            var.unfix()
