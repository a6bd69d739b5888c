"""Which rows and fixings of the user's own no tree keeps together, where a model is infeasible.

Engines that find irreducible sets of rows count the formulation's own among them, by the thousand. Here only the user's are
taken out, in halves and then one by one, and what is left is solved for any point at all (a deletion filter: Chinneck
2008, Feasibility and Infeasibility in Optimization, ch. 6), by the embedded solver, whatever engine said "infeasible".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr.visitor import identify_variables

from ..backends.matrix_program import Row
from ..formulations.base import FEASIBILITY
from ..options import Clock
from . import certificate as checks
from .engine import embedded, solve_embedded
from .own_terms import COMPLETION_SECONDS, is_nonnegative, rest_of, rows_as_program

SECONDS = 10.0  # at most, for naming what conflicts


class Conflict(NamedTuple):
    """Rows and fixings that no tree keeps together; ``smallest`` where it is known that each is needed for that.

    With ``refuted`` there are none: a point was found that keeps all rows.
    """

    names: tuple[str, ...]
    smallest: bool
    refuted: bool = False

    def note(self) -> str:
        """What the result says of it."""
        if self.refuted:
            return f"the engine calls the model infeasible, and {embedded().title} has a point of it: nothing is proved"
        if not self.names:
            return "the model has no solution without rows and fixings of your own either"
        if len(self.names) == 1:
            return f"no tree keeps {self.names[0]} of yours: leave it out, or relax it"
        more = "" if self.smallest else " (a smaller set may conflict as well: there was no time to find out)"
        return (
            f"no tree keeps these of your rows and fixings together: {', '.join(self.names)}; leave one of them out, or relax "
            f"it{more}"
        )


def find_conflict(model: pyo.ConcreteModel, seconds: float) -> Conflict | None:
    """A set of the user's rows and fixings that conflict, as small as can be found in ``seconds``.

    None where it was not proved that they do, as where nonlinear rows take part. Of a model that belongs to no formulation
    all rows are the user's.
    """
    clock = Clock(seconds)
    claims = _Claims(model, releasing=True)
    kept = list(range(len(claims.parts)))
    said = claims.verdict(kept, clock.left())
    if said != "infeasible":
        return Conflict((), False, refuted=True) if said == "feasible" and claims.whole else None
    if claims.verdict((), clock.left()) == "infeasible":
        changed = (f"{name} (changed since the model was built)" for name in checks.changed_inside(model))
        return Conflict(tuple(changed), False)
    kept, smallest = _needed(kept, claims.verdict, clock)
    return Conflict(tuple(claims.parts[k].name for k in kept), smallest)


def _needed(
    kept: list[int], verdict: Callable[[Collection[int], float], str], clock: Clock
) -> tuple[list[int], bool]:
    """Of parts that conflict those that do so alone, and whether each is known to be needed for that."""
    decided, size = True, max(1, len(kept) // 2)
    while True:
        at = 0
        while at < len(kept):
            if clock.late():
                return kept, False
            rest = kept[:at] + kept[at + size :]
            said = verdict(rest, clock.left())
            if said == "infeasible":
                kept = rest
                continue
            # With fewer parts than now these are needed all the more.
            decided = decided and (size > 1 or said == "feasible")
            at += size
        if size == 1:
            return kept, decided
        size = max(1, size // 2)


def rows_without_values(model: pyo.ConcreteModel) -> tuple[str, ...]:
    """Rows that leave the user's variables without a value none, all others as they are; empty where that is not proved."""
    found = rest_of(model, {id(v): v for v in checks.without_value(model)})
    if found is None:
        return ()
    program, rows = found
    clock = Clock(COMPLETION_SECONDS)
    # Values of the tree are off by rounding errors, which break no row: as for :func:`certificate.broken_row`.
    room = FEASIBILITY * np.maximum(1.0, np.nan_to_num(np.abs(program.row_low), posinf=1.0))
    room = np.maximum(room, FEASIBILITY * np.nan_to_num(np.abs(program.row_high), posinf=1.0))
    program = replace(program, cost=np.zeros(program.n))

    def verdict(kept: Collection[int], left: float) -> str:
        out_of_it = np.ones(len(rows), dtype=bool)
        out_of_it[list(kept)] = False
        low = np.where(out_of_it, -np.inf, program.row_low - room)
        high = np.where(out_of_it, np.inf, program.row_high + room)
        out = solve_embedded(replace(program, row_low=low, row_high=high), left)
        return "infeasible" if out.stop == "infeasible" else "feasible" if out.x is not None else ""

    every = list(range(len(rows)))
    if verdict(every, clock.left()) != "infeasible":
        return ()
    return tuple(rows[k].name for k in _needed(every, verdict, clock)[0])


def infeasible_at_any_cost(model: pyo.ConcreteModel) -> bool:
    """Whether the user's rows contradict each other, or what the formulation says of its integers, whatever a tree costs."""
    claims = _Claims(model, releasing=False)
    return claims.verdict(range(len(claims.parts)), COMPLETION_SECONDS) == "infeasible"


class _Part(NamedTuple):
    """A row or a fixing of the user's own, and its place among the program's rows or columns."""

    name: str
    row: int | None
    column: int | None


class _Claims:
    """The linear rows that a model's trees keep whatever they cost, as a program in which the user's own can be left out.

    Left out altogether is what rests on UB: bounds of the formulation's continuous variables, and its rows with any of them,
    but for ½‖ω_t‖ <= δ, which holds of every tree: tangents of it are added as points break it.
    With ``releasing``, variables that the user fixed are columns that can be let go. ``whole`` says whether no row is left out.
    """

    def __init__(self, model: pyo.ConcreteModel, releasing: bool) -> None:
        info = getattr(model, "info", None)
        components = (
            checks.user_components(model)
            if info is not None
            else list(model.component_objects(descend_into=False))
        )
        self._users = {id(v) for c in components for v in checks.variables_of(c)}
        self._own_rows = {id(row) for c in components for row in checks.rows_of(c)}
        self._exact = info is None or not math.isfinite(info.upper_bound)
        built = checks.as_built(model)
        at_build = () if built is None else built.fixed
        fixed = [v for v in model.component_data_objects(pyo.Var) if v.fixed and v.name not in at_build]
        self.parts: list[_Part] = []
        with _released(fixed if releasing else []):
            self._read(model, {id(v): float(v.value) for v in fixed if releasing})

    def _read(self, model: pyo.ConcreteModel, values: dict[int, float]) -> None:
        rows, columns = _norm_rows(model)
        cones = _norms(model)
        for norm in cones:
            columns |= {id(v): v for v in (*norm.vector, norm.rhs)}
        columns |= {id(v): v for v in model.component_data_objects(pyo.Var) if not v.fixed and _crosses(v)}
        self.whole = self._exact
        for row in model.component_data_objects(pyo.Constraint, active=True):
            variables = list(identify_variables(row.body, include_fixed=True))
            if id(row) not in self._own_rows and any(map(self._is_costly, variables)):
                continue
            free = [v for v in variables if not v.fixed]
            constant = all(v.fixed or id(v) in values for v in variables)
            if constant and checks.excess(row)[0] <= FEASIBILITY:
                continue  # off by a rounding error, for which engines have other tolerances
            if row.body.polynomial_degree() in (0, 1):
                self.parts += [_Part(row.name, len(rows), None)] if id(row) in self._own_rows else []
                rows.append(row)
                columns |= {id(v): v for v in free}
            else:
                self.whole = False
        self.parts += [
            _Part(f"{v.name} = {values[key]:g}", None, k)
            for k, (key, v) in enumerate(columns.items())
            if key in values
        ]
        bounds = [
            (v.value, v.value)
            if v.fixed
            else ((0.0 if is_nonnegative(v) else None), None)
            if self._is_costly(v)
            else v.bounds
            for v in columns.values()
        ]
        at = {key: k for k, key in enumerate(columns)}
        self._cones = [(np.array([at[id(v)] for v in n.vector]), at[id(n.rhs)], n.factor) for n in cones]
        self._values = np.array([values.get(key, np.nan) for key in columns])
        self._program = rows_as_program(rows, list(columns.values()), bounds)

    def _is_costly(self, var: Any) -> bool:
        """Whether what bounds a variable is the cost of its tree."""
        own = self._exact or id(var) in self._users or var.bounds == (0, 1) or _crosses(var)
        return not own and var.is_continuous()

    def verdict(self, kept: Collection[int], seconds: float) -> str:
        """With these of the user's parts: "infeasible", "feasible", or "" where ``seconds`` do not tell."""
        whole = self._program
        if whole is None:
            return ""
        kept = set(kept)
        low, high, integer = whole.low.copy(), whole.high.copy(), whole.integer.copy()
        row_low, row_high = whole.row_low.copy(), whole.row_high.copy()
        for k, part in enumerate(self.parts):
            if part.row is not None and k not in kept:
                row_low[part.row], row_high[part.row] = -np.inf, np.inf
            if part.column is not None and k in kept:
                low[part.column] = high[part.column] = self._values[part.column]
                integer[part.column] = False  # whatever it was fixed to
        bare = np.diff(whole.A.indptr) == 0  # of fixed variables alone
        if (bare & ((row_low > 0) | (row_high < 0))).any() or (low > high).any():
            return "infeasible"
        if bare.all() and not self._cones:
            return "feasible"
        program = replace(whole, low=low, high=high, integer=integer, row_low=row_low, row_high=row_high)
        clock = Clock(seconds)
        while not clock.late():
            out = solve_embedded(program, clock.left())
            if out.x is None:
                return "infeasible" if out.stop == "infeasible" else ""
            tangents = self._tangents(out.x)
            if not tangents:
                return "feasible"
            program.add_rows(tangents)
        return ""

    def _tangents(self, x: Any) -> list[Row]:
        """Rows 2δ - u'ω_t >= 0, ‖u‖ = 1, of the norms that the point breaks."""
        found = []
        for vector, rhs, factor in self._cones:
            size = float(np.linalg.norm(x[vector]))
            if size - factor * x[rhs] > FEASIBILITY * max(1.0, size):
                found.append(Row((*vector, rhs), (*(-x[vector] / size), factor), 0.0))
        return found


def _crosses(var: Any) -> bool:
    """Whether the bounds of a variable leave it nothing, which only the user can have made of them."""
    low, high = var.bounds
    return low is not None and high is not None and bool(low > high)


def _norms(model: pyo.ConcreteModel) -> list[Any]:
    """The cones ½‖ω_t‖₂ <= δ of the formulation whose row is active; others of its cones rest on UB."""
    margin = model.component("margin")
    delta = None if margin is None else margin.component("delta")
    cones = () if delta is None else getattr(margin, "second_order_cones", ())
    return [c for c in cones if c.rhs is delta and c.row.active]


def _norm_rows(model: pyo.ConcreteModel) -> tuple[list[Any], dict[int, Any]]:
    """The rows of ½‖ω_t‖₁ <= δ, and their free variables; none with the other norm."""
    margin = model.component("margin")
    if margin is None or margin.component("abs_omega") is None or margin.component("delta") is None:
        return [], {}
    rows = [
        row
        for name in ("abs_above", "abs_below", "cone")
        for row in margin.component(name).values()
        if row.active
    ]
    return rows, {id(v): v for row in rows for v in checks.variables_in(row.body) if not v.fixed}


@contextmanager
def _released(fixed: list[Any]) -> Iterator[None]:
    """Variables unfixed for a while."""
    try:
        for var in fixed:
            var.unfix()
        yield
    finally:
        for var in fixed:
            var.fix()
