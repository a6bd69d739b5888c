"""The limit: the linear rows of the default OCTSVM written by hand as numpy arrays and passed to HiGHS.

No expression, no names, no model to add to: what is left to gain where a model is given up for a matrix. The rows
and their order are those of the model; tests/test_benchmarks.py compares them number by number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from octsvm.backends.matrix_program import LinearProgram
from octsvm.backends.mps import Silent, linear_part
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
        self.width = self.height = 0
        self.bounds: list[tuple[Array, Array]] = []  # of the columns
        self.sides: list[tuple[Array, Array]] = []  # of the rows
        self.terms: list[tuple[Array, Array, Array]] = []  # value, row, column

    def add_columns(self, name: str, shape: tuple[int, ...], low: Any, high: Any) -> Array:
        """Numbers of new columns, in the given shape."""
        at = self.width + np.arange(int(np.prod(shape))).reshape(shape)
        self.columns[name] = at
        self.width += at.size
        self.bounds.append((np.broadcast_to(low, shape).ravel(), np.broadcast_to(high, shape).ravel()))
        return at

    def add_rows(self, shape: tuple[int, ...], low: Any, high: Any, *terms: tuple[Any, Array]) -> None:
        """One row for each place of ``shape``; a term is (coefficients, columns), broadcast, summed over a last axis."""
        number = self.height + np.arange(int(np.prod(shape))).reshape(shape)
        for value, column in terms:
            extra = len(np.broadcast_shapes(np.shape(value), np.shape(column))) - len(shape)
            of_row = number.reshape(*shape, *(1,) * extra)
            self.terms.append(tuple(part.ravel() for part in np.broadcast_arrays(value, of_row, column)))  # type: ignore[arg-type]
        self.sides.append((np.broadcast_to(low, shape).ravel(), np.broadcast_to(high, shape).ravel()))
        self.height += number.size

    def program(self) -> LinearProgram:
        """All of it, without costs and integers."""
        value, row, column = map(np.concatenate, zip(*self.terms, strict=True))
        A = sp.csr_array(sp.coo_array((value, (row, column)), shape=(self.height, self.width)))
        A.eliminate_zeros()
        low, high, row_low, row_high = (
            np.concatenate(side).astype(float)
            for pairs in (self.bounds, self.sides)
            for side in zip(*pairs, strict=True)
        )
        return LinearProgram(
            [], np.zeros(self.width), 0.0, low, high, np.zeros(self.width, bool), A, row_low, row_high
        )


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
        level = np.floor(np.log2(np.arange(1, T + 1)))
        on_level = level == np.arange(1, depth + 1)[:, None]
        m.add_rows((n, depth), 1, 1, (on_level.astype(float), z[:, None, :]))
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


def hand_over(data: Data, params: OCTSVMParams) -> Any:
    """Build the matrix and pass it to HiGHS; what the time of the limit is taken of."""
    m = matrix(data, params)
    program, w, columns = m.program(), data.weights[:, None], m.columns
    cost = program.cost
    cost[columns["delta"]] = 1.0
    cost[columns["e"]], cost[columns["xi"]], cost[columns["d"]] = params.c1 * w, params.c2 * w, params.c3
    for name in ("d", "theta", "xi"):
        program.integer[columns[name].ravel()] = True
    program.low[columns["z"][:, 0]] = 1.0
    A = program.A
    Silent().passModel(linear_part(program, cost, 0.0, (A.indptr, A.indices, A.data)))
    return A
