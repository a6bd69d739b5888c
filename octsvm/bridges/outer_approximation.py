"""Second-order cones and a squared norm -> linear rows, refined until the gap closes. Converges.

**Takes** the marked rows ‖v‖ <= κu (u >= 0) and the marked objective term ½‖v‖². **Gives** a linear model with one
lifted variable r_j per coordinate (a perspective, disaggregated form, which needs far fewer rounds than cuts on the
norm itself):

    cone    Σ_j r_j <= κ² u     with r_j u >= v_j², that is  r_j >= 2 w v_j - w² u   for every slope w = v_j/u
    square  ½‖v‖² -> Σ_j r_j    with r_j >= ½v_j²,  that is  r_j >= w v_j - ½w²      for every slope w = v_j

Each row is a tangent of a convex function, so it cuts off no feasible point: the linear model is a relaxation and its
bound holds. Where u is not free to rise (a binary, or fixed), the cone is not lifted: the rows |v_j| <= κu say that v = 0 where
u = 0, and cuts on the norm itself do the rest.

**Back**: ``repair`` raises u to max ‖v‖/κ and r to its true value, which is feasible for the original model; where u
cannot rise and the norm is exceeded, the point is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from ..backends.matrix_program import Array, LinearProgram, QuadraticForm, QuadraticRow, Row
from ..errors import UnsupportedProblem
from ..formulations.blocks.rows import linear
from ..problem_class import ProblemClass
from . import Bridge

BLOCK = "outer_approximation"
VIOLATION = 1e-9
# Slopes that the first relaxation starts with, as multiples of the steepest one (for a cone, |v_j| <= κu).
FIRST_SLOPES = (1.0, 0.5, 0.2)


class PlainCone(NamedTuple):
    """‖x[v]‖ <= factor·u, not lifted: ``u`` is one column, or none where u is ``fixed`` (0 otherwise)."""

    v: NDArray[np.int64]
    u: NDArray[np.int64]
    factor: float
    fixed: float = 0.0

    def side(self, x: Array) -> float:
        """factor·u at ``x``."""
        return self.factor * (self.fixed + float(x[self.u].sum()))


class OuterApproximation(Bridge):
    """See the module's text."""

    name = "outer_approximation"
    exactness = "converges"
    takes = "models whose quadratic parts are all marked, cones and squared norms,"
    classes = ("LP", "MILP")

    def __init__(self) -> None:
        super().__init__()
        self._block: Any = None
        self._cones: list[Any] = []
        self._squares: list[Any] = []
        self._own: list[Any] = []
        # Columns of the program: of cones whose u can rise, of the others, and of squared norms.
        self._lifted: list[Any] = []
        self._plain: list[PlainCone] = []
        self._squares_at: list[Any] = []

    @classmethod
    def gives(cls, problem: ProblemClass) -> str | None:
        """A linear class where every quadratic part of the problem is marked, otherwise None."""
        if problem.unmarked or not (problem.cones or problem.squared_norms):
            return None
        return "MILP" if problem.binaries or problem.integers else "LP"

    def rewrite(self, model: pyo.ConcreteModel, problem: ProblemClass) -> None:
        """Deactivate the quadratic rows and add ``model.outer_approximation`` with the lifted variables."""
        self._cones, self._squares = list(problem.cones), list(problem.squared_norms)
        block = self._block = self.add_block(model, BLOCK)
        lifted = [(k, c) for k, c in enumerate(self._cones) if _rises(c.rhs)]
        block.r = pyo.Var(
            [(k, j) for k, c in lifted for j in range(len(c.vector))], domain=pyo.NonNegativeReals
        )
        block.q = pyo.Var(
            [(k, j) for k, s in enumerate(self._squares) for j in range(len(s.vector))],
            domain=pyo.NonNegativeReals,
        )
        self._own = [*block.r.values(), *block.q.values()]
        block.cuts = pyo.ConstraintList()
        block.sum = pyo.ConstraintList()
        for k, cone in enumerate(self._cones):
            self.deactivate(cone.row)
            if _rises(cone.rhs):
                self._lift_cone(block, cone, [block.r[k, j] for j in range(len(cone.vector))])
            else:
                for v in cone.vector:
                    for sign in (1.0, -1.0):
                        block.cuts.add((None, linear([sign, -cone.factor], [v, cone.rhs]), 0.0))
        for k, square in enumerate(self._squares):
            self._lift_square(block, square, [block.q[k, j] for j in range(len(square.vector))])

    @staticmethod
    def _lift_cone(block: Any, cone: Any, r: list[Any]) -> None:
        """Σ r <= κ²u, and the first rows r_j >= 2wv_j - w²u."""
        block.sum.add((None, linear([1.0] * len(r) + [-(cone.factor**2)], [*r, cone.rhs]), 0.0))
        for r_j, v in zip(r, cone.vector, strict=True):
            for w in _first_slopes(cone.factor):
                block.cuts.add((0.0, linear([1.0, -2 * w, w * w], [r_j, v, cone.rhs]), None))

    def _lift_square(self, block: Any, square: Any, q: list[Any]) -> None:
        """Σ q in the objective, and the first rows q_j >= wv_j - ½w²."""
        self.replace(square.expression, linear([1.0] * len(q), q))
        for q_j, v in zip(q, square.vector, strict=True):
            for w in _first_slopes(v.ub):
                block.cuts.add((-0.5 * w * w, linear([1.0, -w], [q_j, v]), None))

    def own_variables(self) -> list[Any]:
        """The lifted variables, whose values ``repair`` sets."""
        return self._own

    def attach(self, program: LinearProgram) -> None:
        """Look up the columns of the compiled model."""
        block, at = self._block, program.position
        if program.infeasible:
            return
        self._lifted, self._plain = [], []
        for k, c in enumerate(self._cones):
            there = [j for j, v in enumerate(c.vector) if _has_column(v, at)]
            v = np.array([at[id(c.vector[j])] for j in there], dtype=np.int64)
            if _rises(c.rhs):
                r = np.array([at[id(block.r[k, j])] for j in there], dtype=np.int64)
                self._lifted.append((v, r, at[id(c.rhs)], c.factor))
            else:
                u = [at[id(c.rhs)]] if id(c.rhs) in at else []
                fixed = 0.0 if u else float(c.rhs.value or 0.0)
                self._plain.append(PlainCone(v, np.array(u, dtype=np.int64), c.factor, fixed))
        # A coordinate whose bounds are 0 may stand in no row: it has no column, and is 0.
        self._squares_at = []
        for k, square in enumerate(self._squares):
            pairs = [(v, block.q[k, j]) for j, v in enumerate(square.vector)]
            columns = [(at[id(v)], at[id(q)]) for v, q in pairs if _has_column(v, at) and id(q) in at]
            if columns:
                at_v, at_q = zip(*columns, strict=True)
                self._squares_at.append((np.array(at_v), np.array(at_q)))

    def native(self, program: LinearProgram) -> tuple[LinearProgram, NDArray[np.int64]]:
        """The program as it stands without this bridge, with its cones and squares as quadratic parts; its columns."""
        rows, none = [], np.zeros(0, dtype=np.int64)
        for c in [PlainCone(v, np.array([u]), f) for v, _, u, f in self._lifted] + self._plain:
            at = np.append(c.v, c.u)
            form = QuadraticForm(at, at, np.append(np.ones(len(c.v)), np.full(len(c.u), -(c.factor**2))))
            rows.append(QuadraticRow(form, none, np.zeros(0), -np.inf, (c.factor * c.fixed) ** 2))
        forms = [] if program.quadratic_cost is None else [program.quadratic_cost]
        forms += [QuadraticForm(v, v, 0.5 * program.cost[q]) for v, q in self._squares_at]
        squares = QuadraticForm(*map(np.concatenate, zip(*forms, strict=True))) if forms else None
        lifted = [r for _, r, _, _ in self._lifted] + [q for _, q in self._squares_at]
        whole = replace(program, quadratic_rows=[*program.quadratic_rows, *rows], quadratic_cost=squares)
        return whole.without_columns(np.concatenate([none, *lifted]))

    def cuts(self, x: Array, violated: bool = True) -> list[Row]:
        """Tangents at ``x``: those that it violates, or all."""
        least = VIOLATION if violated else -np.inf
        rows: list[Row] = []
        for v, r, u, factor in self._lifted:
            height = max(float(x[u]), float(np.linalg.norm(x[v])) / factor)
            if height <= 1e-12:
                continue
            slopes = x[v] / height
            short = 2 * slopes * x[v] - slopes**2 * x[u] - x[r]
            # Solvers drop tiny coefficients; a slope below 1e-4 is worth 1e-8 of u.
            for j in np.flatnonzero((short > least * max(1.0, height)) & (np.abs(slopes) > 1e-4)):
                w = float(slopes[j])
                rows.append(Row((int(r[j]), int(v[j]), int(u)), (1.0, -2 * w, w * w), 0.0))
        for c in self._plain:
            size = float(np.linalg.norm(x[c.v]))
            if size > c.side(x) + VIOLATION * max(1.0, size):
                used = c.v[np.abs(x[c.v]) > 1e-6 * size]
                slopes = (*(-x[used] / size).tolist(), *[c.factor] * len(c.u))
                rows.append(Row((*used.tolist(), *c.u.tolist()), slopes, -c.factor * c.fixed))
        for v, q in self._squares_at:
            largest = float(np.abs(x[v]).max(initial=0.0))
            short = 0.5 * x[v] ** 2 - x[q]
            for j in np.flatnonzero((short > least * max(1.0, largest**2)) & (np.abs(x[v]) > 1e-5 * largest)):
                w = float(x[v[j]])
                rows.append(Row((int(q[j]), int(v[j])), (1.0, -w), -0.5 * w * w))
        return rows

    def repair(self, x: Array) -> Array | None:
        """A point of the original model with the same v: u raised, r at its true value. None where u cannot rise."""
        out = x.copy()
        for v, _, u, factor in self._lifted:
            out[u] = max(out[u], float(np.linalg.norm(out[v])) / factor)
        if any(float(np.linalg.norm(out[c.v])) > c.side(out) + 1e-6 for c in self._plain):
            return None
        for v, r, u, _ in self._lifted:
            out[r] = out[v] ** 2 / out[u] if out[u] > 0 else 0.0
        for v, q in self._squares_at:
            out[q] = 0.5 * out[v] ** 2
        return out


def _rises(rhs: Any) -> bool:
    """Whether a side is free to rise."""
    return bool(rhs.is_continuous() and not rhs.fixed)


def _first_slopes(steepest: float | None) -> Iterator[float]:
    if steepest is None:
        return  # the user has taken the bound away
    for share in FIRST_SLOPES:
        yield share * steepest
        yield -share * steepest


def _has_column(var: Any, position: dict[int, int]) -> bool:
    """Whether a coordinate is a column of the program; without one it must be 0.

    Raises
    ------
    UnsupportedProblem
        If it is fixed elsewhere.
    """
    if id(var) in position:
        return True
    if var.fixed and var.value:
        raise UnsupportedProblem(
            f"{var.name} is fixed to {var.value:g} inside a norm, which the outer approximation does not follow. "
            "Bound it from both sides instead (setlb, setub)."
        )
    return False
