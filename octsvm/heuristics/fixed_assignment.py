"""The convex problem that is left once routing and relabelling are fixed: all hyperplanes with their shared δ.

With every row's node on every level (z, θ) and the label that is believed of it there (ξ), OCTSVM is a second-order cone
program in ω_t, ω_t0, e and δ, and RE-SVM a quadratic program; under the norm l1 both are linear. Clarabel solves it.
Everything is in scaled units, and nodes that do not split cost the same throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..formulations.base import BoolArray, FloatArray, IntArray

BAND = 3.0  # rows farther than this beyond their margin and off their hyperplane are left away at first
PASSES = 4  # in each the rows that were wrongly left away are brought in; in the last one all are in
CLEAR = 1e-7  # by which rows keep clear of their hyperplane
# The same, and the tolerances, where costs are so small that this much counts.
SHARP_CLEAR, SHARP = 2e-9, 1e-10
ITERATIONS = 60
ROUGH = (1e-3, 1e-3, 1e-6)  # tolerances of the gap, absolute and relative, and of the rows


@dataclass(frozen=True)
class Fixed:
    """What is fixed: ``node`` (n, D + 1) of each row on each level, ``label`` (n, D + 1) believed there, ±1, ``split`` (T,).

    ``score`` (n, D + 1) is that of a tree nearby: rows far out are left away at first.
    """

    node: IntArray
    label: FloatArray
    split: BoolArray
    score: FloatArray


@dataclass(frozen=True)
class Solved:
    """Best ω (T, p) and ω_0 (T,) of the nodes that split, zeros elsewhere, and multipliers (n, D + 1), none below 0.

    ``side`` says what the objective falls by for a unit by which a row may cross to the other side, ``hinge`` for a
    unit by which its margin may be smaller: the slope at the solution. Rows at nodes that do not split have none.
    ``price`` (T,) is what a unit of a node's ½‖ω_t‖ costs: they share the 1 of δ, and nodes shorter than δ allows have none.
    """

    omega: FloatArray
    omega0: FloatArray
    side: FloatArray
    hinge: FloatArray
    price: FloatArray


@dataclass(frozen=True)
class Costs:
    """What the problem is made of besides the rows.

    ``mu`` is how far off the plane a row that goes left lies, ``norm`` "l2" or "l1", ``single`` means RE-SVM. What is given up
    (c2) and splits (c3) cost the same whatever the hyperplanes are.
    """

    c1: float
    mu: float
    norm: str
    single: bool


def solve(
    X: FloatArray,
    weights: FloatArray,
    fixed: Fixed,
    costs: Costs,
    rough: bool = False,
    sharp: bool = False,
) -> Solved | None:
    """The best hyperplanes for what is fixed, for rows ``X (n, p)`` and ``weights (n,)``.

    ``rough``: nearly the best, sooner; ``sharp``: so close to the other side of their planes that rows may end up there.

    None where no node splits, where no hyperplanes route as fixed, and where the solver gives up.
    """
    nodes = np.flatnonzero(fixed.split) + 1
    if not len(nodes):
        return None
    levels = fixed.node.shape[1]
    near = (fixed.label * fixed.score < 1.0 + BAND) | (np.abs(fixed.score) < BAND)
    for left in reversed(range(PASSES)):
        if left == 0:
            near[:] = True
        found = _solve(X, weights, fixed, near, nodes, costs, rough, sharp)
        if found is None:
            return None
        missing = False
        for level in range(levels):
            t = fixed.node[:, level]
            s = np.einsum("ij,ij->i", X, found.omega[t - 1]) + found.omega0[t - 1]
            out = fixed.label[:, level] * s < 1 - 1e-9
            if level < levels - 1:
                right = fixed.node[:, level + 1] % 2 == 1
                out |= np.where(right, s < 0, s > -costs.mu)
            out &= fixed.split[t - 1] & ~near[:, level]
            near[:, level] |= out
            missing = missing or bool(out.any())
        if not missing:
            break
    return found


class _Rows:
    """Entries of the constraint matrix, group of rows by group of rows."""

    def __init__(self) -> None:
        self.count = 0
        self._row: list[IntArray] = []
        self._column: list[IntArray] = []
        self._value: list[FloatArray] = []
        self.right: list[FloatArray] = []

    def add(self, right: FloatArray, *blocks: tuple[IntArray, FloatArray]) -> slice:
        """Rows with this right-hand side; each block is dense, (rows, columns), at these columns."""
        rows = np.arange(self.count, self.count + len(right))
        for columns, values in blocks:
            self._row.append(np.repeat(rows, len(columns)))
            self._column.append(np.tile(columns, len(rows)))
            self._value.append(values.ravel())
        return self._close(right)

    def add_diagonal(self, columns: IntArray, values: FloatArray) -> None:
        """Entries of the rows added last, one a row."""
        self._row.append(np.arange(self.count - len(columns), self.count))
        self._column.append(columns)
        self._value.append(values)

    def _close(self, right: FloatArray) -> slice:
        self.right.append(right)
        self.count += len(right)
        return slice(self.count - len(right), self.count)

    def matrix(self, columns: int) -> Any:
        """All rows, as a sparse matrix by columns."""
        entries = np.concatenate(self._value)
        at = np.concatenate(self._row), np.concatenate(self._column)
        return sparse.csc_matrix((entries, at), shape=(self.count, columns))


def _solve(
    X: FloatArray,
    weights: FloatArray,
    fixed: Fixed,
    near: BoolArray,
    nodes: IntArray,
    costs: Costs,
    rough: bool,
    sharp: bool,
) -> Solved | None:
    """The same for the rows ``near`` (n, D + 1) and their nodes only; ``nodes`` are those that split."""
    import clarabel

    p, m, T = X.shape[1], len(nodes), len(fixed.split)
    levels = fixed.node.shape[1]
    branch = 2 ** (levels - 1) - 1
    # Columns: ω and ω_0 of each node, then |ω| of all nodes under l1, δ (not of RE-SVM), and e.
    width = p + 1
    sparse_norm = costs.norm == "l1"
    sizes_at = m * width
    delta = sizes_at + (m * p if sparse_norm else 0)
    errors_at = delta + (0 if costs.single else 1)
    rows = _Rows()
    price: list[FloatArray] = []
    of_hinge: list[tuple[slice, IntArray, int]] = []
    of_side: list[tuple[slice, IntArray, int]] = []
    count = errors_at
    for k, t in enumerate(nodes.tolist()):
        level = t.bit_length() - 1
        here = np.flatnonzero((fixed.node[:, level] == t) & near[:, level])
        if not len(here):
            continue
        own = np.arange(k * width, (k + 1) * width)
        A = np.column_stack([X[here], np.ones(len(here))])
        y = fixed.label[here, level]
        at = rows.add(np.full(len(here), -1.0), (own, -y[:, None] * A))
        rows.add_diagonal(np.arange(count, count + len(here)), np.full(len(here), -1.0))
        of_hinge.append((at, here, level))
        price.append(costs.c1 * weights[here])
        count += len(here)
        if t <= branch:
            right = fixed.node[here, level + 1] % 2 == 1
            clear = SHARP_CLEAR if sharp else CLEAR
            at = rows.add(
                np.where(right, -clear, -costs.mu - clear), (own, np.where(right, -1.0, 1.0)[:, None] * A)
            )
            of_side.append((at, here, level))
    n_errors = count - errors_at
    rows.add(np.zeros(n_errors))
    rows.add_diagonal(np.arange(errors_at, count), np.full(n_errors, -1.0))
    cones = []
    of_norm = 0
    q = np.concatenate([np.zeros(errors_at), *price])
    P = sparse.csc_matrix((count, count))
    if not costs.single:
        q[delta] = 1.0
    if sparse_norm:
        E = np.eye(p)
        for k in range(m):
            omega = np.arange(k * width, k * width + p)
            size = np.arange(sizes_at + k * p, sizes_at + (k + 1) * p)
            rows.add(np.zeros(p), (omega, E), (size, -E))
            rows.add(np.zeros(p), (omega, -E), (size, -E))
            if costs.single:
                q[size] = 1.0
            else:
                rows.add(np.zeros(1), (size, np.ones((1, p))), (np.array([delta]), np.array([[-2.0]])))
        cones.append(clarabel.NonnegativeConeT(rows.count))
    elif costs.single:
        cones.append(clarabel.NonnegativeConeT(rows.count))
        diagonal = np.zeros(count)
        diagonal[:p] = 1.0
        P = sparse.diags(diagonal, format="csc")
    else:
        cones.append(clarabel.NonnegativeConeT(rows.count))
        of_norm = rows.count
        for k in range(m):
            rows.add(np.zeros(p + 1))
            columns = np.concatenate([[delta], np.arange(k * width, k * width + p)])
            rows.add_diagonal(columns, -np.concatenate([[2.0], np.ones(p)]))
            cones.append(clarabel.SecondOrderConeT(p + 1))
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, ITERATIONS
    if rough:
        settings.tol_gap_abs, settings.tol_gap_rel, settings.tol_feas = ROUGH
    if sharp:
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = SHARP
    if hasattr(settings, "max_threads"):
        settings.max_threads = 1
    found = clarabel.DefaultSolver(
        P, q, rows.matrix(count), np.concatenate(rows.right), cones, settings
    ).solve()
    if str(found.status) not in ("Solved", "AlmostSolved"):
        return None
    x, z = np.asarray(found.x)[:sizes_at].reshape(m, width), np.asarray(found.z)
    omega, omega0 = np.zeros((T, p)), np.zeros(T)
    omega[nodes - 1], omega0[nodes - 1] = x[:, :p], x[:, p]
    side, hinge = np.zeros(fixed.node.shape), np.zeros(fixed.node.shape)
    for at, here, level in of_hinge:
        hinge[here, level] = z[at]
    for at, here, level in of_side:
        side[here, level] = z[at]
    of_size = np.zeros(T)
    if of_norm:
        of_size[nodes - 1] = 2 * z[of_norm :: p + 1][:m]
    return Solved(omega, omega0, side, hinge, of_size)
