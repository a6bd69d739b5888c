"""What errors and relabelled rows must be worth where the classes are hard to separate, in plain numpy.

Let rows of class + with weights μ and rows of class - with weights ν (each summing to 1) sit in one node, none of
them relabelled. Their hinge rows give Σμ_i s_i - Σν_h s_h >= 2 - Σμ_i e_i - Σν_h e_h, and the left side is
ω'(Σμ_i x_i - Σν_h x_h) <= ‖ω‖·dist with the distance of the two weighted means. So, for every hyperplane of norm r or
less,

    Σμ_i e_i + Σν_h e_h + 2 Σ ξ_k + r·dist >= 2        (k over the support),

since one relabelled row already makes the left side 2. No big-M is in it. With one row on each side this is about a
pair; where the two means meet (dist = 0), no hyperplane, however steep, avoids the price.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..base import FloatArray, IntArray

INNER = 1e-3  # weights below that are left to the smaller set without the row
VIOLATED = 1e-3
LEAST_DISTANCE = 1e-7  # solvers drop smaller coefficients; a larger distance only weakens the row
ROUNDS = 10
LARGEST_TABLE = 24  # rows; sets of up to four are looked through, of which there are about n⁴/50
MOST_DIFFERENCES = 1_000_000_000  # of single values that neighbours are looked for among, some seconds
BLOCK = 4_000_000  # numbers that are held at a time
ROUNDING = 1e-12  # relative, of squared distances by matrix products
SLACK = 1e-6
TINY = 1e-11
PIVOTS = 400
STEPS = 6  # of the bound on δ


@dataclass(frozen=True)
class Combination:
    """Two means of rows: ``rows`` and their ``weights`` (1 in total for each class), and the means' distance."""

    rows: tuple[int, ...]
    weights: tuple[float, ...]
    distance: float


def dual_length(d: FloatArray, norm: str) -> FloatArray:
    """Length of the rows of ``d (k, p)`` in the dual of ``norm`` ("l2": Euclidean, "l1": maximum norm)."""
    return np.sqrt((d**2).sum(axis=1)) if norm == "l2" else np.abs(d).max(axis=1, initial=0.0)


def _combinations(
    X: FloatArray, sign: FloatArray, rows: IntArray, weights: FloatArray, norm: str
) -> list[Combination]:
    signed = weights * sign[rows]
    distance = np.maximum(dual_length((signed[:, :, None] * X[rows]).sum(axis=1), norm), LEAST_DISTANCE)
    return [
        Combination(tuple(at), tuple(w), d)
        for at, w, d in zip(rows.tolist(), weights.tolist(), distance.tolist(), strict=True)
    ]


def pairs(X: FloatArray, sign: FloatArray, norm: str = "l2") -> list[Combination]:
    """All pairs of rows of different classes, the nearest first."""
    plus, minus = np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)
    rows = np.array([(i, h) for i in plus for h in minus], dtype=np.int64).reshape(-1, 2)
    found = _combinations(X, sign, rows, np.ones((len(rows), 2)), norm)
    return sorted(found, key=lambda combination: combination.distance)


def n_neighbours(sign: FloatArray, p: int) -> int:
    """How many rows :func:`neighbours` takes of the smaller class: all, or as many as the limit of differences allows."""
    few, many = sorted((int((sign > 0).sum()), int((sign < 0).sum())))
    return min(few, max(1, MOST_DIFFERENCES // max(1, many * p)))


def neighbours(X: FloatArray, sign: FloatArray, norm: str = "l2") -> list[Combination]:
    """Each row of the smaller class (+ if they are equal) and the nearest of the other.

    On tables so large that it would take minutes, rows of the smaller class are taken at equal intervals.
    """
    few, many = np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)
    if len(few) > len(many):
        few, many = many, few
    count = n_neighbours(sign, X.shape[1])
    few, other = few[np.arange(count) * len(few) // max(1, count)], X[many]
    nearest = _nearest_l2(other, X[few]) if norm == "l2" else _nearest_max(other, X[few])
    rows = np.column_stack([few, many[nearest]])
    return _combinations(X, sign, rows, np.ones((len(rows), 2)), norm)


def _nearest_l2(other: FloatArray, points: FloatArray) -> IntArray:
    """The first of the nearest rows of ``other (m, p)`` for each of the ``points (k, p)``, in Euclidean distance."""
    squares, out = (other**2).sum(axis=1), np.zeros(len(points), dtype=np.int64)
    step = max(1, BLOCK // len(other))
    for first in range(0, len(points), step):
        some = points[first : first + step]
        # Short of |x|², up to rounding; rows that are nearest within it are compared exactly.
        about = squares - 2 * some @ other.T
        close = about <= about.min(axis=1, keepdims=True) + ROUNDING * (1.0 + squares.max())
        for k, mask in enumerate(close):
            rows = np.flatnonzero(mask)
            out[first + k] = rows[np.argmin(dual_length(other[rows] - some[k], "l2"))]
    return out


def _nearest_max(other: FloatArray, points: FloatArray) -> IntArray:
    """The same in the maximum norm."""
    columns = np.ascontiguousarray(other.T)
    out = np.zeros(len(points), dtype=np.int64)
    for k, point in enumerate(points):
        largest = np.zeros(len(other))
        for column, value in zip(columns, point.tolist(), strict=True):
            np.maximum(largest, np.abs(column - value), out=largest)
        out[k] = np.argmin(largest)
    return out


def _solve2(
    aa: FloatArray, bb: FloatArray, ab: FloatArray, ra: FloatArray, rb: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The 2×2 systems [aa ab; ab bb](s, t) = (ra, rb); where they are singular, (0, 0)."""
    det = aa * bb - ab**2
    det = np.where(det > 1e-12, det, np.inf)
    return (bb * ra - ab * rb) / det, (aa * rb - ab * ra) / det


def _indices(mask: Any) -> list[int]:
    found: list[int] = np.flatnonzero(mask).tolist()
    return found


def _table(sets: Iterable[tuple[int, ...]], size: int) -> IntArray:
    return np.array(list(sets), dtype=np.int64).reshape(-1, size)


def small_combinations(X: FloatArray, sign: FloatArray, norm: str = "l2") -> list[Combination]:
    """One row against two or three of the other class, and two against two, at the weights of least distance.

    Sets whose least (Euclidean) distance is at a smaller set are left out.
    """
    found: list[Combination] = []
    dot = lambda a, b: (a * b).sum(axis=1)  # noqa: E731

    def keep(rows: IntArray, weights: FloatArray) -> None:
        inner = np.flatnonzero((weights > INNER).all(axis=1))
        found.extend(_combinations(X, sign, rows[inner], weights[inner], norm))

    for own in (1, -1):
        one, other = _indices(sign == own), _indices(sign == -own)
        c = _table(((i, *q) for i in one for q in combinations(other, 2)), 3)
        u, w = X[c[:, 2]] - X[c[:, 1]], X[c[:, 0]] - X[c[:, 1]]
        t = dot(u, w) / np.maximum(dot(u, u), 1e-300)
        keep(c, np.column_stack([np.ones(len(c)), 1 - t, t]))
        c = _table(((i, *q) for i in one for q in combinations(other, 3)), 4)
        u, v, w = (X[c[:, k]] - X[c[:, 1]] for k in (2, 3, 0))
        s, t = _solve2(dot(u, u), dot(v, v), dot(u, v), dot(u, w), dot(v, w))
        keep(c, np.column_stack([np.ones(len(c)), 1 - s - t, s, t]))
    plus, minus = _indices(sign > 0), _indices(sign < 0)
    c = _table((a + b for a in combinations(plus, 2) for b in combinations(minus, 2)), 4)
    u, v, w = X[c[:, 1]] - X[c[:, 0]], X[c[:, 3]] - X[c[:, 2]], X[c[:, 2]] - X[c[:, 0]]
    s, minus_t = _solve2(dot(u, u), dot(v, v), dot(u, v), dot(u, w), dot(v, w))
    t = -minus_t
    keep(c, np.column_stack([1 - s, s, 1 - t, t]))
    return found


def packing(load: FloatArray, capacity: FloatArray, gain: FloatArray) -> tuple[FloatArray, FloatArray]:
    """max gain'y with load'y <= capacity, y >= 0, and the prices of the capacities; all numbers but gains >= 0.

    The simplex method on a dense tableau, for problems of some dozens of rows; y = 0 is its first point, so that it may
    stop at any time. ``load`` is (k, m), ``capacity (m,)``, ``gain (k,)``.
    """
    k, m = load.shape
    tableau = np.hstack([load.T, np.eye(m), capacity[:, None]])
    price = np.concatenate([gain, np.zeros(m + 1)])
    basis = np.arange(k, k + m)
    for _ in range(PIVOTS):
        enter = int(np.argmax(price[:-1]))
        if price[enter] <= TINY:
            break
        column = tableau[:, enter]
        up = np.flatnonzero(column > TINY)
        if not len(up):
            break  # no capacity limits it, which rows of combinations do not do
        leave = int(up[np.argmin(tableau[up, -1] / column[up])])
        tableau[leave] /= tableau[leave, enter]
        others = np.arange(m) != leave
        tableau[others] -= np.outer(tableau[others, enter], tableau[leave])
        price -= price[enter] * tableau[leave]
        basis[leave] = enter
    y = np.zeros(k + m)
    y[basis] = np.maximum(tableau[:, -1], 0.0)
    y = y[:k]
    used = y @ load
    over = used > TINY
    # Rounding never overdraws a capacity.
    y *= min(1.0, float((capacity[over] / used[over]).min(initial=1.0)))
    return y, np.maximum(-price[k : k + m], 0.0)


class RootProblem:
    """The linear program of one node that holds all rows: min δ + c1 Σ w e + c2 Σ w ξ under the rows of some combinations.

    Every tree that splits has such a node, its root; what a tree costs besides (lower levels, splits) is not negative.
    Its dual packs weights y of the combinations into the costs; every packing is a bound, Σ y_k (2 - 2δ dist_k), on what the
    root's errors and relabelled rows cost at δ.
    """

    def __init__(self, weights: FloatArray, c1: float, c2: float) -> None:
        self.n = len(weights)
        self.cost = np.concatenate([c1 * weights, c2 * weights, [1.0]])

    def matrix(self, combinations: list[Combination]) -> FloatArray:
        """A row (2n + 1) for each combination over e, ξ and δ = r/2."""
        A = np.zeros((len(combinations), 2 * self.n + 1))
        for k, combination in enumerate(combinations):
            at = np.array(combination.rows)
            A[k, at], A[k, self.n + at], A[k, -1] = combination.weights, 2.0, 2.0 * combination.distance
        return A

    def cheapest(self, A: FloatArray) -> FloatArray:
        """An optimum (2n + 1,) under the rows ``A``."""
        return packing(A, self.cost, np.full(len(A), 2.0))[1]

    def widest(self, A: FloatArray, budget: float) -> float:
        """A bound on δ at a cost of at most ``budget``: δ + Σ y_k (2 - 2δ dist_k) <= budget for some packings y."""
        most = budget
        for _ in range(STEPS):
            y, _ = packing(A[:, :-1], self.cost[:-1], 2.0 - most * A[:, -1])
            slope = 1.0 - float(y @ A[:, -1])
            if slope <= TINY:
                break
            found = (budget - 2.0 * float(y.sum())) / slope
            if found >= most * (1 - VIOLATED):
                break
            most = found
            if most <= 0:
                return 0.0
        return most


def chosen_combinations(
    X: FloatArray,
    sign: FloatArray,
    weights: FloatArray,
    c1: float,
    c2: float,
    norm: str,
    base: list[Combination],
    most: int,
) -> list[Combination]:
    """At most ``most`` of :func:`small_combinations`: in rounds, those that the cheapest point of the root violates most."""
    if len(X) > LARGEST_TABLE or not base:
        return []
    candidates = small_combinations(X, sign, norm)
    if not candidates:
        return []
    root = RootProblem(weights, c1, c2)
    rows, matrix = root.matrix(base), root.matrix(candidates)
    chosen: list[int] = []
    for _ in range(ROUNDS):
        short = 2.0 - matrix @ root.cheapest(rows)
        short[chosen] = 0.0
        worst = np.argsort(-short, kind="stable")[: max(4, len(X) // 2)]
        worst = worst[short[worst] > VIOLATED][: most - len(chosen)]
        if not len(worst):
            break
        chosen += worst.tolist()
        rows = np.vstack([rows, matrix[worst]])
    return [candidates[k] for k in chosen]


def margin_bound(
    combinations: list[Combination], weights: FloatArray, c1: float, c2: float, c3: float, upper_bound: float
) -> float:
    """Bound on δ at every tree with an objective of at most UB.

    δ > 0 needs a split, so c3 is paid, and the root pays errors and relabelled rows as :class:`RootProblem` has them:
    δ is at most its largest value there at a cost of UB - c3. Where hardly any tree that splits is that cheap, a
    twentieth of UB is returned.
    """
    widest = upper_bound * (1 + SLACK) - c3
    if combinations and len(weights) <= LARGEST_TABLE and widest > 0:
        root = RootProblem(weights, c1, c2)
        widest = root.widest(root.matrix(combinations), widest) * (1 + SLACK)
    return max(widest, upper_bound / 20)
