"""The cone program that is left once the assignment is fixed: all hyperplanes with their shared δ.

With every row's node on every level (z, θ) and the label that is taken of it there (ξ), OCTSVM is a second-order cone
program in ω_t, ω_t0, e and δ, and RE-SVM a quadratic program; under the norm l1 both are linear. Clarabel solves it.
Everything is in scaled units; what nodes without a split cost is a constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..formulations.base import BoolArray, FloatArray, IntArray
from ..options import Clock

# Beyond its margin and off its hyperplane: rows farther out than this are left out of the first pass.
BAND = 3.0
PASSES = 4  # each adds the rows that were wrongly left out; the last one has all rows
ITERATIONS = 60  # of the interior-point method; 10 to 30 are usual
# Seconds for each entry of the matrix before the first iteration, of which a limit does not stop any: 0.2 to 0.5 µs, and as
# much for an iteration with 200 features.
SETUP_SECONDS = 1e-6
LEAST_SECONDS = 0.3  # so that the last tree of a search is solved for on a small table, even if time is up


@dataclass(frozen=True)
class Tolerance:
    """How exactly the cone program is solved.

    ``accuracy`` holds the tolerances of the absolute gap, of the relative gap and of feasibility (None: Clarabel's own);
    ``clearance`` is how far beyond the boundary rule rows are kept, so that rounding does not send them to the other side.
    """

    accuracy: tuple[float, float, float] | None = None
    clearance: float = 1e-7


STANDARD = Tolerance()
LOOSE = Tolerance((1e-3, 1e-3, 1e-6))  # for trees of which only the cost is compared
TIGHT = Tolerance((1e-10, 1e-10, 1e-10), 2e-9)  # where costs are so small that the clearance of 1e-7 counts
CLEAR = STANDARD.clearance


@dataclass(frozen=True)
class Assignment:
    """The discrete part of a tree: ``node`` (n, D + 1) of each row on each level, ``label`` (n, D + 1) taken there, ±1, ``split`` (T,).

    ``score`` (n, D + 1) is that of a tree nearby: rows far from their hyperplane are left out at first.
    """

    node: IntArray
    label: FloatArray
    split: BoolArray
    score: FloatArray


@dataclass(frozen=True)
class Solution:
    """Optimal ω (T, p) and ω_0 (T,) of the nodes that split, zeros elsewhere, and dual values (n, D + 1), none below 0.

    ``side`` is the dual value of a row's routing constraint: what the objective falls by for each unit by which the row may
    cross its hyperplane. ``hinge`` is that of its margin constraint. Rows at nodes that do not split have none.
    ``norm_dual`` (T,) is the dual value of ½‖ω_t‖ ≤ δ: over the nodes it sums to 1, and is 0 where ½‖ω_t‖ < δ.
    """

    omega: FloatArray
    omega0: FloatArray
    side: FloatArray
    hinge: FloatArray
    norm_dual: FloatArray


@dataclass(frozen=True)
class Costs:
    """What the cone program needs besides the rows.

    ``mu`` is how far below 0 the score of a row that goes left is, ``norm`` "l2" or "l1", ``single`` means RE-SVM. The costs
    of labels given up (c2) and of splits (c3) do not depend on the hyperplanes.
    """

    c1: float
    mu: float
    norm: str
    single: bool


def solve(
    X: FloatArray,
    weights: FloatArray,
    assignment: Assignment,
    costs: Costs,
    tolerance: Tolerance = STANDARD,
    seconds: float = np.inf,
) -> Solution | None:
    """The optimal hyperplanes for an assignment of the rows ``X (n, p)`` with ``weights (n,)``.

    None where no node splits, where no hyperplanes route the rows as assigned, where the solver gives up, and where
    ``seconds`` are over or will not do. With a ``TIGHT`` tolerance rows are so close to the boundary that rounding may send
    them to the other side.
    """
    if not assignment.split.any():
        return None
    clock, splits = Clock(max(seconds, LEAST_SECONDS)), assignment.split[assignment.node - 1]
    near = (assignment.label * assignment.score < 1.0 + BAND) | (np.abs(assignment.score) < BAND)
    for left in reversed(range(PASSES)):
        if left == 0:
            near[:] = True
        entries = 2.0 * np.count_nonzero(near & splits) * (X.shape[1] + 1)
        if SETUP_SECONDS * entries > clock.left():
            return None
        program = _ConeProgram(X, weights, assignment, costs, near, tolerance.clearance)
        found = program.solve(tolerance, clock.left())
        if found is None or not _add_violated(X, assignment, costs.mu, found, near):
            break
    return found


def _add_violated(X: FloatArray, assignment: Assignment, mu: float, found: Solution, near: BoolArray) -> bool:
    """Mark the rows as ``near`` that were left out and whose constraints are violated; whether there are any."""
    levels = assignment.node.shape[1]
    added = False
    for level in range(levels):
        t = assignment.node[:, level]
        s = np.einsum("ij,ij->i", X, found.omega[t - 1]) + found.omega0[t - 1]
        out = assignment.label[:, level] * s < 1 - 1e-9
        if level < levels - 1:
            right = assignment.node[:, level + 1] % 2 == 1
            out |= np.where(right, s < 0, s > -mu)
        out &= assignment.split[t - 1] & ~near[:, level]
        near[:, level] |= out
        added = added or bool(out.any())
    return added


class _Rows:
    """Entries of the constraint matrix, added block by block."""

    def __init__(self) -> None:
        self.count = 0
        self._row: list[IntArray] = []
        self._column: list[IntArray] = []
        self._value: list[FloatArray] = []
        self.right: list[FloatArray] = []

    def add(self, right: FloatArray, *blocks: tuple[IntArray, FloatArray]) -> slice:
        """Add rows with this right-hand side; each block is dense, (rows, columns), at these columns."""
        at = slice(self.count, self.count + len(right))
        rows = np.arange(at.start, at.stop)
        for columns, values in blocks:
            self._row.append(np.repeat(rows, len(columns)))
            self._column.append(np.tile(columns, len(rows)))
            self._value.append(values.ravel())
        self.right.append(right)
        self.count = at.stop
        return at

    def add_diagonal(self, columns: IntArray, values: FloatArray) -> None:
        """Add an entry to each of the rows added last."""
        self._row.append(np.arange(self.count - len(columns), self.count))
        self._column.append(columns)
        self._value.append(values)

    def matrix(self, columns: int) -> Any:
        """All rows, as a sparse matrix by columns."""
        entries = np.concatenate(self._value)
        at = np.concatenate(self._row), np.concatenate(self._column)
        return sparse.csc_matrix((entries, at), shape=(self.count, columns))


class _ConeProgram:
    """The program over the rows ``near`` (n, D + 1) at the nodes that split.

    Columns: ω and ω_0 of each node, then |ω| of all nodes under l1, δ (not of RE-SVM), and e. Constraints: for each node the
    margins, then the routing; e ≥ 0; then the norms.
    """

    def __init__(
        self,
        X: FloatArray,
        weights: FloatArray,
        assignment: Assignment,
        costs: Costs,
        near: BoolArray,
        clearance: float,
    ) -> None:
        self.assignment, self.costs, self.clearance = assignment, costs, clearance
        self.nodes = np.flatnonzero(assignment.split) + 1
        self.p, self.m = X.shape[1], len(self.nodes)
        self.width = self.p + 1  # columns of a node
        self.abs_at = self.m * self.width
        self.delta = self.abs_at + (self.m * self.p if costs.norm == "l1" else 0)
        self.errors_at = self.count = self.delta + (0 if costs.single else 1)
        self.rows = _Rows()
        self._hinges: list[tuple[slice, IntArray, int]] = []  # constraints, rows of the data, level
        self._sides: list[tuple[slice, IntArray, int]] = []
        penalty: list[FloatArray] = []
        for k, t in enumerate(self.nodes.tolist()):
            level = t.bit_length() - 1
            here = np.flatnonzero((assignment.node[:, level] == t) & near[:, level])
            if len(here):
                self._add_node(k, t, here, X[here])
                penalty.append(costs.c1 * weights[here])
        n_errors = self.count - self.errors_at
        self.rows.add(np.zeros(n_errors))
        self.rows.add_diagonal(np.arange(self.errors_at, self.count), np.full(n_errors, -1.0))
        self.q = np.concatenate([np.zeros(self.errors_at), *penalty])
        if not costs.single:
            self.q[self.delta] = 1.0

    def _add_node(self, k: int, t: int, here: IntArray, X: FloatArray) -> None:
        """Margin constraints of the rows at node ``t``, the ``k``-th that splits, and their sides at a branch node."""
        level = t.bit_length() - 1
        own = np.arange(k * self.width, (k + 1) * self.width)
        A = np.column_stack([X, np.ones(len(here))])
        y = self.assignment.label[here, level]
        at = self.rows.add(np.full(len(here), -1.0), (own, -y[:, None] * A))
        self.rows.add_diagonal(np.arange(self.count, self.count + len(here)), np.full(len(here), -1.0))
        self._hinges.append((at, here, level))
        self.count += len(here)
        if level < self.assignment.node.shape[1] - 1:
            right = self.assignment.node[here, level + 1] % 2 == 1
            bound = np.where(right, -self.clearance, -self.costs.mu - self.clearance)
            at = self.rows.add(bound, (own, np.where(right, -1.0, 1.0)[:, None] * A))
            self._sides.append((at, here, level))

    def _add_absolute_values(self) -> None:
        """Norm l1: -|ω| ≤ ω ≤ |ω|, whose sum is the margin term of RE-SVM and at most 2δ of OCTSVM."""
        p, E = self.p, np.eye(self.p)
        for k in range(self.m):
            omega = np.arange(k * self.width, k * self.width + p)
            size = np.arange(self.abs_at + k * p, self.abs_at + (k + 1) * p)
            self.rows.add(np.zeros(p), (omega, E), (size, -E))
            self.rows.add(np.zeros(p), (omega, -E), (size, -E))
            if self.costs.single:
                self.q[size] = 1.0
            else:
                delta = np.array([self.delta]), np.array([[-2.0]])
                self.rows.add(np.zeros(1), (size, np.ones((1, p))), delta)

    def _add_norm_cones(self) -> None:
        """Norm l2 of OCTSVM: (2δ, ω_t) in a second-order cone."""
        for k in range(self.m):
            self.rows.add(np.zeros(self.p + 1))
            omega = np.arange(k * self.width, k * self.width + self.p)
            columns = np.concatenate([[self.delta], omega])
            self.rows.add_diagonal(columns, -np.concatenate([[2.0], np.ones(self.p)]))

    def solve(self, tolerance: Tolerance, seconds: float) -> Solution | None:
        """The optimum and its dual values by Clarabel; None where there is none, or none in so many seconds."""
        import clarabel

        P, norm_at = sparse.csc_matrix((self.count, self.count)), 0
        if self.costs.norm == "l1":
            self._add_absolute_values()
        cones = [clarabel.NonnegativeConeT(self.rows.count)]
        if self.costs.norm == "l2" and self.costs.single:
            diagonal = np.zeros(self.count)
            diagonal[: self.p] = 1.0
            P = sparse.diags(diagonal, format="csc")
        elif self.costs.norm == "l2":
            norm_at = self.rows.count
            self._add_norm_cones()
            cones += [clarabel.SecondOrderConeT(self.p + 1) for _ in range(self.m)]
        found = clarabel.DefaultSolver(
            P,
            self.q,
            self.rows.matrix(self.count),
            np.concatenate(self.rows.right),
            cones,
            _settings(tolerance, seconds),
        ).solve()
        if str(found.status) not in ("Solved", "AlmostSolved"):
            return None
        return self._solution(np.asarray(found.x), np.asarray(found.z), norm_at)

    def _solution(self, x: FloatArray, z: FloatArray, norm_at: int) -> Solution:
        """Hyperplanes and dual values of a primal and a dual solution; cones of norms begin at row ``norm_at``, if there are any."""
        T, shape = len(self.assignment.split), self.assignment.node.shape
        own = x[: self.abs_at].reshape(self.m, self.width)
        omega, omega0 = np.zeros((T, self.p)), np.zeros(T)
        omega[self.nodes - 1], omega0[self.nodes - 1] = own[:, : self.p], own[:, self.p]
        side, hinge, norm_dual = np.zeros(shape), np.zeros(shape), np.zeros(T)
        for at, here, level in self._hinges:
            hinge[here, level] = z[at]
        for at, here, level in self._sides:
            side[here, level] = z[at]
        if norm_at:
            norm_dual[self.nodes - 1] = 2 * z[norm_at :: self.p + 1][: self.m]
        return Solution(omega, omega0, side, hinge, norm_dual)


def _settings(tolerance: Tolerance, seconds: float) -> Any:
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter, settings.time_limit = False, ITERATIONS, seconds
    if tolerance.accuracy is not None:
        settings.tol_gap_abs, settings.tol_gap_rel, settings.tol_feas = tolerance.accuracy
    if hasattr(settings, "max_threads"):
        settings.max_threads = 1
    return settings
