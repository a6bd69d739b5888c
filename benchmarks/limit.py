"""The limit: the linear rows of the default OCTSVM written by hand as numpy arrays and passed to HiGHS.

No expression, no names, no model to add to: what is left to gain where a model is given up for a matrix. The rows
and their order are those of the model; tests/test_benchmarks.py compares them number by number.
"""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from octsvm.formulations.base import Data
from octsvm.formulations.blocks import big_m
from octsvm.formulations.bounds.hull import margin_bound
from octsvm.formulations.margin_trees import constant_margin_tree, evaluate
from octsvm.formulations.octsvm import OCTSVMParams, chosen_rows

Array = NDArray[Any]


class Matrix:
    """Rows low <= A x <= high, collected family by family; columns are numbered by name and index."""

    def __init__(self) -> None:
        self.columns: dict[str, Array] = {}
        self.width = 0
        self.height = 0
        self.bounds: list[tuple[Array, Array]] = []
        self.row: list[Array] = []
        self.column: list[Array] = []
        self.value: list[Array] = []
        self.low: list[Array] = []
        self.high: list[Array] = []

    def add_columns(self, name: str, shape: tuple[int, ...], low: Any, high: Any) -> Array:
        """Numbers of new columns, in the given shape."""
        count = int(np.prod(shape))
        at = np.arange(self.width, self.width + count).reshape(shape)
        self.columns[name] = at
        self.width += count
        self.bounds.append((np.broadcast_to(low, shape).ravel(), np.broadcast_to(high, shape).ravel()))
        return at

    def add_rows(self, shape: tuple[int, ...], low: Any, high: Any, *terms: tuple[Any, Array]) -> None:
        """One row for each place of ``shape``; a term is (coefficients, columns), broadcast, summed over a last axis."""
        count = int(np.prod(shape))
        number = np.arange(self.height, self.height + count).reshape(shape)
        for value, column in terms:
            long = np.broadcast_shapes(np.shape(value), np.shape(column))
            extra = long[len(shape) :]
            full = (*shape, *extra)
            self.row.append(np.broadcast_to(number.reshape(*shape, *(1,) * len(extra)), full).ravel())
            self.column.append(np.broadcast_to(column, full).ravel())
            self.value.append(np.broadcast_to(value, full).ravel())
        self.low.append(np.broadcast_to(low, shape).ravel())
        self.high.append(np.broadcast_to(high, shape).ravel())
        self.height += count

    def csr(self) -> Any:
        """The matrix (rows, columns)."""
        triplets = (
            np.concatenate(self.value),
            (np.concatenate(self.row), np.concatenate(self.column)),
        )
        return sp.csr_array(sp.coo_array(triplets, shape=(self.height, self.width)))


def matrix(data: Data, params: OCTSVMParams) -> Matrix:
    """The rows of OCTSVM (compact), the cone apart, on scaled ``data``."""
    n, p, depth, mu, inf = data.n, data.p, params.depth, params.mu_svm, np.inf
    T, B = 2 ** (depth + 1) - 1, 2**depth - 1
    ub = evaluate(constant_margin_tree(data, params), data.X_original, data.y, params, data.weights).objective
    keys = chosen_rows(data, params)
    alone = [mix for mix, t in keys if t == 1]
    W = 2 * margin_bound(alone, data.weights, params.c1, params.c2, params.c3, ub)
    M = big_m.score_bound(W, big_m.farthest(data.X, params.norm))
    E = big_m.error_bound(ub, params.c1, data.weights, M)
    centred, y, big = data.X - data.X.mean(axis=0), data.sign[:, None], 1.0 + M[:, None]

    m = Matrix()
    omega = m.add_columns("omega", (T, p), -W, W)
    omega0 = m.add_columns("omega0", (T,), -inf, inf)
    s = m.add_columns("s", (n, T), -M[:, None], M[:, None])
    d = m.add_columns("d", (T,), 0, 1)
    z = m.add_columns("z", (n, T), 0, 1)
    theta = m.add_columns("theta", (n, B), 0, 1)
    xi = m.add_columns("xi", (n, T), 0, 1)
    e = m.add_columns("e", (n, T), 0, E[:, None])
    delta = m.add_columns("delta", (), 0, W / 2)
    nodes = sorted({t for _, t in keys})
    r = m.add_columns("r", (len(nodes),), 0, W)

    parent = np.arange(2, T + 1) // 2 - 1
    left, right = 2 * np.arange(1, B + 1) - 1, 2 * np.arange(1, B + 1)
    M_, zb, sb = M[:, None], z[:, :B], s[:, :B]
    m.add_rows((n, T), 0, 0, (centred[:, None, :], omega[None]), (1.0, omega0[None, :]), (-1.0, s))
    m.add_rows((T, p), -inf, 0, (1.0, omega), (-W, d[:, None]))
    m.add_rows((T, p), 0, inf, (1.0, omega), (W, d[:, None]))
    m.add_rows((T - 1,), -inf, 0, (1.0, d[1:]), (-1.0, d[parent]))
    if depth:
        first = m.height
        for u in range(1, depth + 1):
            m.add_rows((n,), 1, 1, (1.0, z[:, 2**u - 1 : 2 ** (u + 1) - 1]))
        _interleave(m, first, n, depth)
    m.add_rows((n, T - 1), -inf, 0, (1.0, z[:, 1:]), (-1.0, z[:, parent]))
    m.add_rows((n, B), -M_, inf, (1.0, sb), (-M_, theta))
    m.add_rows((n, B), -inf, 0, (1.0, sb), (-M_, theta), (mu, z[:, left]))
    m.add_rows((n, B), -inf, 0, (1.0, zb), (-1.0, z[:, left]), (-1.0, theta))
    m.add_rows((n, B), -inf, 1, (1.0, zb), (-1.0, z[:, right]), (1.0, theta))
    m.add_rows((n, B), -inf, 1, (1.0, z[:, left]), (1.0, theta))
    m.add_rows((n, B), -inf, 0, (1.0, z[:, right]), (-1.0, theta))
    m.add_rows((n, T), -inf, 0, (1.0, xi), (-1.0, z))
    m.add_rows((n, T), 1.0 - big, inf, (y, s), (1.0, e), (-big, z), (big, xi))
    m.add_rows((n, T), 1.0 - 2 * big, inf, (-y, s), (1.0, e), (-big, xi), (-big, z))
    other = np.where(y > 0, z[:, left], z[:, right])
    k = np.where(y > 0, 1.0 + mu, 1.0)
    m.add_rows((n, B), 0, inf, (1.0, e[:, :B]), (k, xi[:, :B]), (-k, other))
    m.add_rows((n, B), 0, inf, (1.0, e[:, :B]), (-1.0, xi[:, :B]), (1.0, other))
    m.add_rows((len(nodes),), -inf, 0, (1.0, r), (-2.0, delta))
    m.add_rows((len(nodes),), -inf, 0, (1.0, r), (-W, d[np.array(nodes, dtype=int) - 1]))
    for mix, t in keys:
        at = list(mix.rows)
        inside = [] if t == 1 else [(-2.0, z[None, at, t - 1])]
        low = 2.0 - 2.0 * len(at) * (t > 1)
        errors = (np.array([mix.weights]), e[None, at, t - 1])
        m.add_rows(
            (1,), low, inf, errors, (2.0, xi[None, at, t - 1]), (mix.distance, r[nodes.index(t)]), *inside
        )
    return m


def _interleave(m: Matrix, first: int, n: int, depth: int) -> None:
    """Renumber the rows of the levels from level by level to row by row of the table, as the model has them."""
    for k in range(depth):
        at = len(m.row) - depth + k
        m.row[at] = first + (m.row[at] - first - k * n) * depth + k


def hand_over(data: Data, params: OCTSVMParams) -> Any:
    """Build the matrix and pass it to HiGHS; what the time of the limit is taken of."""
    m = matrix(data, params)
    A = m.csr()
    w, columns = data.weights[:, None], m.columns
    cost = np.zeros(m.width)
    cost[columns["delta"]] = 1.0
    cost[columns["e"]], cost[columns["xi"]], cost[columns["d"]] = params.c1 * w, params.c2 * w, params.c3
    whole = np.zeros(m.width, dtype=bool)
    for name in ("d", "theta", "xi"):
        whole[columns[name].ravel()] = True
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = m.width, m.height
    lp.col_cost_ = cost
    low, high = (np.concatenate(side).astype(float) for side in zip(*m.bounds, strict=True))
    low[columns["z"][:, 0]] = 1.0
    lp.col_lower_, lp.col_upper_ = low, high
    lp.row_lower_, lp.row_upper_ = np.concatenate(m.low).astype(float), np.concatenate(m.high).astype(float)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = A.indptr.astype(np.int32), A.indices.astype(np.int32)
    lp.a_matrix_.value_ = A.data
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    lp.integrality_ = [kinds[k] for k in whole.astype(int).tolist()]
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.passModel(lp)
    return A
