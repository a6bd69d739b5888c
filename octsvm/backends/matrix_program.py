"""A linear model as arrays: what every matrix backend is handed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from numpy.typing import NDArray
from pyomo.common.errors import (
    InfeasibleConstraintException,
    InvalidConstraintError,
    InvalidExpressionError,
)
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn import generate_standard_repn
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from ..formulations.blocks.rows import uncollected

if TYPE_CHECKING:
    from ..solvers import SolverSpec

Array = NDArray[np.float64]
MOST_CURVED = 500  # variables of a quadratic form up to which its curvature is computed
FAR = 1e6  # from 1, of a coefficient: from there on rows and columns get units of their own
MOST = 1e14  # of a coefficient: HiGHS takes none of 1e15
NEAR = 1e3  # to 1, of a bound
# In an engine's units of cost, of which its dual tolerance is 1e-7: of a price as small, that is a usual gap, and it hides much
# smaller ones of columns with bounds as wide.
LEAST_PRICE, WIDE = 1e-3, 1e4
FLAT = 1e-9  # of the largest curvature: less than that below 0 is rounding
SEEDS = 2_000_000_000  # larger ones are refused by some engines; ours are taken modulo this


class Row(NamedTuple):
    """A linear row Σ value·x[at] >= low, by column position."""

    at: Sequence[int]
    value: Sequence[float]
    low: float


class QuadraticForm(NamedTuple):
    """Σ coef·x[first]·x[second], by column position."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    coef: Array

    def at_point(self, x: Array) -> float:
        """Its value."""
        return float(np.sum(self.coef * x[self.first] * x[self.second]))

    def is_convex(self, sign: float = 1.0) -> bool:
        """Whether ``sign`` times the form is convex; False as well where it has too many variables to tell."""
        used, place = np.unique(np.concatenate([self.first, self.second]), return_inverse=True)
        if len(used) > MOST_CURVED:
            return False
        Q = np.zeros((len(used), len(used)))
        np.add.at(Q, (place[: len(self.first)], place[len(self.first) :]), sign * self.coef / 2)
        curvatures = np.linalg.eigvalsh(Q + Q.T)
        return bool(len(used) == 0 or curvatures[0] >= -FLAT * np.abs(curvatures).max())


class QuadraticRow(NamedTuple):
    """low <= form + Σ value·x[at] <= high, by column position."""

    form: QuadraticForm
    at: NDArray[np.int64]
    value: Array
    low: float
    high: float

    def is_convex(self) -> bool:
        """Whether its points are known to be a convex set."""
        return (self.high == np.inf or self.form.is_convex()) and (
            self.low == -np.inf or self.form.is_convex(-1.0)
        )


@dataclass
class LinearProgram:
    """min cost'x + offset, row_low <= A x <= row_high, low <= x <= high, some x integer.

    Attributes
    ----------
    columns : list of Pyomo variables
    A : csr_array (m, n)
    integer : ndarray (n,) of bool
    quadratic_rows : list of QuadraticRow
        Only for engines that take them as they stand.
    quadratic_cost : QuadraticForm or None
        Of the objective, likewise.
    partial : bool
        Whether the model has rows or terms that are not in this program (nonlinear ones of the user's own).
    unit : ndarray (n,) or None
        What one of each column is in its variable; None where that is 1 for all.
    """

    columns: list[Any]
    cost: Array
    offset: float
    low: Array
    high: Array
    integer: NDArray[np.bool_]
    A: Any
    row_low: Array
    row_high: Array
    position: dict[int, int] = field(default_factory=dict)
    infeasible: bool = False
    quadratic_rows: list[QuadraticRow] = field(default_factory=list)
    quadratic_cost: QuadraticForm | None = None
    partial: bool = False
    unit: Array | None = None

    @classmethod
    @uncollected
    def compile(cls, model: pyo.ConcreteModel) -> LinearProgram:
        """Translate a model without nonlinear terms; a maximisation is turned around."""
        objective = next(model.component_data_objects(pyo.Objective, active=True))
        try:
            info = _standard_form(model)
        except InfeasibleConstraintException:  # a row of constants alone, e.g. of fixed variables
            none, no_rows = np.zeros(0), sp.csr_array((0, 0))
            return cls([], none, 0.0, none, none, none.astype(bool), no_rows, none, none, infeasible=True)
        sign = 1.0 if objective.sense == pyo.minimize else -1.0
        rhs = np.asarray(info.rhs, dtype=float)
        kind = np.array([row.bound_type for row in info.rows])
        columns = list(info.columns)
        low, high = bounds_of(v.bounds for v in columns)
        return cls(
            columns=columns,
            cost=sign * np.asarray(info.c.todense()).ravel(),
            offset=sign * float(info.c_offset[0]),
            low=low,
            high=high,
            integer=np.array([v.is_integer() or v.is_binary() for v in columns], dtype=bool),
            A=sp.csr_array(info.A),
            row_low=np.where(kind <= 0, rhs, -np.inf),
            row_high=np.where(kind >= 0, rhs, np.inf),
            position={id(v): k for k, v in enumerate(columns)},
        )

    @property
    def n(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def add_rows(self, rows: Sequence[Row]) -> None:
        """Append rows."""
        if not rows:
            return
        indptr = np.cumsum([0] + [len(r.at) for r in rows])
        extra = sp.csr_array(
            (
                np.concatenate([np.asarray(r.value, dtype=float) for r in rows]),
                np.concatenate([np.asarray(r.at, dtype=np.int64) for r in rows]),
                indptr,
            ),
            shape=(len(rows), self.n),
        )
        self.A = sp.csr_array(sp.vstack([self.A, extra]))
        self.row_low = np.concatenate([self.row_low, [r.low for r in rows]])
        self.row_high = np.concatenate([self.row_high, np.full(len(rows), np.inf)])

    def objective(self, x: Array) -> float:
        """cost'x + offset, and the squares."""
        value = float(self.cost @ x + self.offset)
        return value if self.quadratic_cost is None else value + self.quadratic_cost.at_point(x)

    @property
    def quadratic(self) -> bool:
        """Whether there is any quadratic row or term."""
        return bool(self.quadratic_rows) or self.quadratic_cost is not None

    def is_convex(self) -> bool:
        """Whether it is known to be convex but for its integers."""
        cost = self.quadratic_cost is None or self.quadratic_cost.is_convex()
        return not self.partial and cost and all(row.is_convex() for row in self.quadratic_rows)

    def violation(self, x: Array) -> float:
        """Largest violation of a row or bound, relative to the size of its side."""
        rows = self.A @ x
        worst = 0.0
        for value, low, high in ((rows, self.row_low, self.row_high), (x, self.low, self.high)):
            for side, sign in ((low, 1.0), (high, -1.0)):
                at = np.isfinite(side)
                excess = sign * (side[at] - value[at]) / np.maximum(1.0, np.abs(side[at]))
                worst = max(worst, float(excess.max(initial=0.0)))
        for row in self.quadratic_rows:
            value = row.form.at_point(x) + float(row.value @ x[row.at])
            worst = max(worst, (row.low - value) / max(1.0, abs(row.low)) if np.isfinite(row.low) else 0.0)
            worst = max(worst, (value - row.high) / max(1.0, abs(row.high)) if np.isfinite(row.high) else 0.0)
        return worst

    def with_columns(self, extra: Sequence[Any]) -> LinearProgram:
        """The program with further variables of the model appended, which stand in none of its linear rows."""
        if not extra:
            return self
        k, columns = len(extra), [*self.columns, *extra]
        low, high = bounds_of(v.bounds for v in extra)
        return replace(
            self,
            columns=columns,
            cost=np.concatenate([self.cost, np.zeros(k)]),
            low=np.concatenate([self.low, low]),
            high=np.concatenate([self.high, high]),
            integer=np.concatenate([self.integer, [v.is_integer() or v.is_binary() for v in extra]]),
            A=sp.csr_array(sp.hstack([self.A, sp.csr_array((self.A.shape[0], k))])),
            position={id(v): j for j, v in enumerate(columns)},
        )

    def without_columns(self, dropped: NDArray[np.int64]) -> tuple[LinearProgram, NDArray[np.int64]]:
        """The program without some columns and without every linear row that has one; the columns that stay.

        Quadratic parts must not have any of them.
        """
        stays = np.ones(self.n, dtype=bool)
        stays[dropped] = False
        keep, every = np.flatnonzero(stays), np.arange(self.A.shape[0])
        touched = np.repeat(every, np.diff(self.A.indptr))[~stays[self.A.indices]]
        rows = np.setdiff1d(every, touched)
        place = np.cumsum(stays) - 1
        columns = [self.columns[k] for k in keep]

        def moved(form: QuadraticForm) -> QuadraticForm:
            return QuadraticForm(place[form.first], place[form.second], form.coef)

        return (
            replace(
                self,
                columns=columns,
                cost=self.cost[keep],
                low=self.low[keep],
                high=self.high[keep],
                integer=self.integer[keep],
                A=sp.csr_array(self.A[rows][:, keep]),
                row_low=self.row_low[rows],
                row_high=self.row_high[rows],
                position={id(v): j for j, v in enumerate(columns)},
                quadratic_rows=[r._replace(form=moved(r.form), at=place[r.at]) for r in self.quadratic_rows],
                quadratic_cost=None if self.quadratic_cost is None else moved(self.quadratic_cost),
            ),
            keep,
        )

    def fixed_at(self, columns: NDArray[Any], values: Array) -> LinearProgram:
        """The same program with some columns fixed."""
        low, high = self.low.copy(), self.high.copy()
        low[columns] = high[columns] = values
        return replace(self, low=low, high=high)

    def in_units(self, needed: bool = False) -> LinearProgram:
        """The program with rows and columns in units of their own, where ``needed`` or coefficients are far from 1.

        A row is measured by its side and its columns that are about 1, which at first are integers and what is bounded closely;
        a further column by the rows that are measured. Units are powers of two, so that nothing is rounded.
        """
        size = sp.csr_array(abs(self.A))
        size.eliminate_zeros()
        if not size.nnz or (not needed and size.data.max() <= FAR and size.data.min() >= 1 / FAR):
            return self
        ends = np.maximum(np.abs(self.low), np.abs(self.high))
        known = self.integer | ((ends <= NEAR) & (ends >= 1 / NEAR))
        sides = np.maximum(_finite(self.row_low), _finite(self.row_high))
        rows, columns = np.zeros(size.shape[0]), np.ones(self.n)  # 0 where nothing is known yet
        while known.any():
            scaled = size * (columns * known)
            found = (rows == 0) & (scaled.sum(axis=1) > 0)
            rows[found] = _powers(np.maximum(_largest(scaled, 1), sides)[found])
            by_rows = _largest(sp.csr_array(sp.diags_array(rows) @ size), 0)
            new = ~known & (by_rows > 0)
            columns[new] = _powers(by_rows[new])
            known |= new
            if not new.any():
                break
        rows[rows == 0] = 1.0
        return replace(self._with_rows_times(rows)._measured_in(columns), unit=columns)

    def in_units_of_cost(self, size: float) -> tuple[LinearProgram, Array]:
        """The program with columns in units by which an engine sees their prices, and these units (n,).

        Objectives of about ``size`` are scaled for an engine; where that is 1e9, a price of 1 is then below its dual tolerance,
        and a column that may be 1e9 is taken for one without. Seen: trees called optimal that cost a third too much.
        """
        price = np.abs(self.cost) * self.cost_scale(size)
        hidden = ~self.integer & (price > 0) & (price < LEAST_PRICE) & (self.high - self.low > WIDE)
        unit = np.where(hidden, _powers(price), 1.0)
        if not hidden.any():
            return self, unit
        program = self._measured_in(unit)
        largest = _largest(abs(program.A), 1)
        return program._with_rows_times(np.where(largest > MOST, _powers(largest), 1.0)), unit

    def _with_rows_times(self, factor: Array) -> LinearProgram:
        """The program with each row times its ``factor`` (m,)."""
        A = sp.csr_array(sp.diags_array(factor) @ self.A)
        return replace(self, A=A, row_low=self.row_low * factor, row_high=self.row_high * factor)

    def _measured_in(self, unit: Array) -> LinearProgram:
        """The program in columns that are ``unit`` (n,) times as large."""

        def measured(form: QuadraticForm) -> QuadraticForm:
            return form._replace(coef=form.coef * unit[form.first] * unit[form.second])

        return replace(
            self,
            cost=self.cost * unit,
            low=self.low / unit,
            high=self.high / unit,
            A=sp.csr_array(self.A @ sp.diags_array(unit)),
            quadratic_rows=[
                r._replace(form=measured(r.form), value=r.value * unit[r.at]) for r in self.quadratic_rows
            ],
            quadratic_cost=None if self.quadratic_cost is None else measured(self.quadratic_cost),
        )

    def load(self, x: Array) -> None:
        """Write ``x`` into the model's variables."""
        x = x if self.unit is None else x * self.unit
        for var, value, integer in zip(self.columns, x.tolist(), self.integer.tolist(), strict=True):
            var.set_value(float(round(value)) if integer else value, skip_validation=True)

    def cost_scale(self, size: float) -> float:
        """A power of two that brings objectives of about ``size`` into the range where tolerances are meant for."""
        if not np.isfinite(size) or size <= 0 or 1.0 <= size <= 1e4:
            return 1.0
        return float(2.0 ** np.round(np.log2(100.0 / size)))


def bounds_of(given: Iterable[tuple[float | None, float | None]]) -> tuple[Array, Array]:
    """Lower and upper bounds, as arrays; None stands for no bound."""
    low, high = np.array(list(given), dtype=float).reshape(-1, 2).T
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def _largest(size: Any, axis: int) -> Array:
    """The largest entry of each row (axis 1) or column (axis 0) of a matrix without negative ones."""
    if not all(size.shape):
        return np.zeros(size.shape[1 - axis])
    return np.asarray(size.max(axis=axis).todense(), dtype=float).ravel()


def _finite(side: Array) -> Array:
    """The sizes of sides of rows; 0 of those that are open."""
    return np.where(np.isfinite(side), np.abs(side), 0.0)


def _powers(size: Array) -> Array:
    """Powers of two that bring ``size`` to about 1; 1 where it is 0."""
    return np.where(size > 0, 2.0 ** -np.round(np.log2(np.where(size > 0, size, 1.0))), 1.0)


def _standard_form(model: pyo.ConcreteModel) -> Any:
    try:
        return LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    except (InvalidExpressionError, InvalidConstraintError):
        with _without_zero_terms(model):
            return LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)


@contextmanager
def _without_zero_terms(model: pyo.ConcreteModel) -> Iterator[None]:
    """Leave out nonlinear terms whose coefficient is 0: they make no model nonlinear, and Pyomo's compiler stops at them."""
    kept = []
    try:
        for part in model.component_data_objects(
            (pyo.Constraint, pyo.Objective), active=True, descend_into=True
        ):
            row = part.ctype is pyo.Constraint
            body = part.body if row else part.expr
            repn = generate_standard_repn(body, quadratic=True, compute_values=True)
            free = next(identify_variables(body, include_fixed=False), None)
            if free is None or not repn.is_linear():
                continue
            terms = zip(repn.linear_coefs, repn.linear_vars, strict=True)
            linear = sum((c * v for c, v in terms), 0.0 * free) + repn.constant
            kept.append((part, part.expr))
            part.set_value((part.lb, linear, part.ub) if row else linear)
        yield
    finally:
        for part, expression in kept:
            part.set_value(expression)


@dataclass(frozen=True)
class Limits:
    """What a single solve may use. ``gap`` is relative; seconds from now."""

    seconds: float
    gap: float
    nodes: int | None = None
    threads: int = 1
    seed: int = 0
    integrality: float | None = None  # the tolerance of the solver's entry where it is not given
    size: float = np.inf  # about how large the objective is
    log: Any = None
    work: float | None = None  # in the engine's own deterministic units
    options: Mapping[str, Any] = field(default_factory=dict)  # the engine's own, by its names
    cutoff: float = np.inf  # nothing of that cost or more is looked for, where the engine can be told so


LOOSENING = ("gap", "cutoff", "increment")  # what options are called that let an engine be done earlier


@dataclass(frozen=True)
class ModelFile:
    """An .nl file of the model, where its variables stand among the program's columns (-1: nowhere, as one that its bounds fix
    and that has coefficients 0 only), and its objective's scale."""

    path: Path
    columns: NDArray[np.int64]
    scale: float


@dataclass(frozen=True)
class Outcome:
    """What a single solve came to.

    ``stop`` is one of the reasons of :data:`octsvm.result.STOPS`; ``x`` is None without a feasible point; ``start`` is
    what became of the start ("accepted", "rejected", "unsupported", "" where none was given or nothing is known);
    ``native`` is the engine's own word for its status; ``failure`` says what went wrong, for a user.
    """

    stop: str
    x: Array | None
    objective: float
    bound: float
    nodes: int
    start: str = ""
    native: str = ""
    failure: str = ""
    version: str = ""
    startup: float = 0.0  # seconds that a process of the engine's own took to start and to load it
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """One solve, as a backend is handed it; where there is an .nl file, it stands in for the program's arrays."""

    program: LinearProgram
    spec: SolverSpec
    limits: Limits
    nl: ModelFile | None = None

    @cached_property
    def scale(self) -> float:
        """What the objective is multiplied by for the engine."""
        return self.program.cost_scale(self.limits.size) if self.nl is None else float(self.nl.scale)

    @property
    def seconds(self) -> float:
        """The seconds of the limits, or fewer where the caller's own options ask for fewer by the solver's name."""
        name = (self.spec.native("time_limit") or "").lower()
        own = [value for key, value in self.limits.options.items() if key.lower() == name]
        return min([self.limits.seconds, *(float(v) for v in own if isinstance(v, (int, float)))])

    def point(self, values: Any) -> Array | None:
        """What the engine says of its variables, as a point of the program; None for what cannot be one."""
        width = self.program.n if self.nl is None else len(self.nl.columns)
        if not isinstance(values, np.ndarray) or values.shape != (width,) or not np.isfinite(values).all():
            return None
        if self.nl is None:
            return values
        out = np.clip(np.zeros(self.program.n), self.program.low, self.program.high)
        here = self.nl.columns >= 0
        out[self.nl.columns[here]] = values[here]
        return out

    def objective(self, x: Array | None) -> float:
        """The program's objective at a point; infinite without one."""
        return np.inf if x is None else self.program.objective(x)

    def outcome(self, stop: str, x: Array | None, bound: float, nodes: int, **more: Any) -> Outcome:
        """What the solve came to; of a model that has no optimum there is no point, and the bound says why."""
        if stop in ("infeasible", "unbounded", "inf_or_unbd"):
            x, bound = None, np.inf if stop == "infeasible" else -np.inf
        return Outcome(stop, x, self.objective(x), bound, nodes, **more)

    def claimed_bound(self, objective: float) -> float:
        """The bound that the engine claims by saying that it is done, where it names none itself.

        None (minus infinity) where the caller's own options may have made it content with less than the gap of the limits.
        """
        limits = self.limits
        for name, value in limits.options.items():
            if name == self.spec.native("gap") and isinstance(value, int | float) and value <= limits.gap:
                continue  # it asks for more, not less
            if any(word in name.lower() for word in LOOSENING):
                return -np.inf
        return objective - limits.gap * abs(objective) - 1e-9


Watch = Callable[[float, int, Array | None], bool]
"""Called with (bound, nodes, a new feasible point or None) while a solve runs; True asks it to stop."""
