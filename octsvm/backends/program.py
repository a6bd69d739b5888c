"""A linear model as arrays: what every matrix backend is handed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from numpy.typing import NDArray
from pyomo.common.errors import InfeasibleConstraintException
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from ..formulations.blocks.rows import uncollected

Array = NDArray[np.float64]


class Row(NamedTuple):
    """A linear row Σ value·x[at] >= low, by column position."""

    at: Sequence[int]
    value: Sequence[float]
    low: float


@dataclass
class LinearProgram:
    """min cost'x + offset, row_low <= A x <= row_high, low <= x <= high, some x integer.

    Attributes
    ----------
    columns : list of Pyomo variables
    A : csr_array (m, n)
    integer : ndarray (n,) of bool
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

    @classmethod
    @uncollected
    def compile(cls, model: pyo.ConcreteModel) -> LinearProgram:
        """Translate a model without nonlinear terms; a maximisation is turned around."""
        objective = next(model.component_data_objects(pyo.Objective, active=True, descend_into=True))
        try:
            info = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
        except InfeasibleConstraintException:  # a row of constants alone, e.g. of fixed variables
            none = np.zeros(0)
            return cls(
                [],
                none,
                0.0,
                none,
                none,
                none.astype(bool),
                sp.csr_array((0, 0)),
                none,
                none,
                infeasible=True,
            )
        sign = 1.0 if objective.sense == pyo.minimize else -1.0
        rhs = np.asarray(info.rhs, dtype=float)
        kind = np.array([row.bound_type for row in info.rows])
        columns = list(info.columns)
        bounds = [v.bounds for v in columns]
        return cls(
            columns=columns,
            cost=sign * np.asarray(info.c.todense()).ravel(),
            offset=sign * float(info.c_offset[0]),
            low=np.array([-np.inf if lo is None else lo for lo, _ in bounds], dtype=float),
            high=np.array([np.inf if hi is None else hi for _, hi in bounds], dtype=float),
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
        """cost'x + offset."""
        return float(self.cost @ x + self.offset)

    def violation(self, x: Array) -> float:
        """Largest violation of a row or bound, relative to the size of its side."""
        rows = self.A @ x
        worst = 0.0
        for value, low, high in ((rows, self.row_low, self.row_high), (x, self.low, self.high)):
            for side, sign in ((low, 1.0), (high, -1.0)):
                at = np.isfinite(side)
                excess = sign * (side[at] - value[at]) / np.maximum(1.0, np.abs(side[at]))
                worst = max(worst, float(excess.max(initial=0.0)))
        return worst

    def fixed_at(self, columns: NDArray[Any], values: Array) -> LinearProgram:
        """The same program with some columns fixed."""
        low, high = self.low.copy(), self.high.copy()
        low[columns] = high[columns] = values
        return replace(self, low=low, high=high)

    def load(self, x: Array) -> None:
        """Write ``x`` into the model's variables."""
        for var, value, integer in zip(self.columns, x.tolist(), self.integer.tolist(), strict=True):
            var.set_value(float(round(value)) if integer else value, skip_validation=True)

    def cost_scale(self, size: float) -> float:
        """A power of two that brings objectives of about ``size`` into the range where tolerances are meant for."""
        if not np.isfinite(size) or size <= 0 or 1.0 <= size <= 1e4:
            return 1.0
        return float(2.0 ** np.round(np.log2(100.0 / size)))


@dataclass(frozen=True)
class Limits:
    """What a single solve may use. ``gap`` is relative; seconds from now."""

    seconds: float
    gap: float
    nodes: int | None
    threads: int
    seed: int
    integrality: float
    size: float = np.inf  # about how large the objective is
    log: Any = None


@dataclass(frozen=True)
class Outcome:
    """What a single solve came to.

    ``stop`` is one of the reasons of :data:`octsvm.result.STOPS`; ``x`` is None without a feasible point.
    """

    stop: str
    x: Array | None
    objective: float
    bound: float
    nodes: int


Watch = Callable[[float, int, Array | None], bool]
"""Called with (bound, nodes, a new feasible point or None) while a solve runs; True asks it to stop."""
