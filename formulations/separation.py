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

import numpy as np

from .base import BoolArray, FloatArray, IntArray

INNER = 1e-3  # weights below that are left to the smaller set without the row
VIOLATED = 1e-3
ROUNDS = 10
LARGEST_TABLE = 24  # rows; sets of up to four are looked through, of which there are about n⁴/50
SLACK = 1e-6


@dataclass(frozen=True)
class Mix:
    """Two means of rows: ``rows`` and their ``weights`` (1 in total for each class), and the means' distance."""

    rows: tuple[int, ...]
    weights: tuple[float, ...]
    distance: float


def dual_length(d: FloatArray, norm: str) -> FloatArray:
    """Length of the rows of ``d (k, p)`` in the dual of ``norm`` ("l2": Euclidean, "l1": maximum norm)."""
    return np.sqrt((d**2).sum(axis=1)) if norm == "l2" else np.abs(d).max(axis=1, initial=0.0)


def _mixes(X: FloatArray, sign: FloatArray, rows: IntArray, weights: FloatArray, norm: str) -> list[Mix]:
    signed = weights * sign[rows]
    distance = dual_length((signed[:, :, None] * X[rows]).sum(axis=1), norm)
    return [
        Mix(tuple(at), tuple(w), d)
        for at, w, d in zip(rows.tolist(), weights.tolist(), distance.tolist(), strict=True)
    ]


def pairs(X: FloatArray, sign: FloatArray, norm: str = "l2", most: int | None = None) -> list[Mix]:
    """All pairs of rows of different classes, the nearest first; with ``most`` the nearest only."""
    plus, minus = np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)
    rows = np.array([(i, h) for i in plus for h in minus], dtype=np.int64).reshape(-1, 2)
    found = _mixes(X, sign, rows, np.ones((len(rows), 2)), norm)
    return sorted(found, key=lambda mix: mix.distance)[:most]


def neighbours(X: FloatArray, sign: FloatArray, norm: str = "l2") -> list[Mix]:
    """Each row and the nearest of the other class (at most n pairs); any number of rows."""
    plus, minus = np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)
    found: set[tuple[int, int]] = set()
    for a, b in ((plus, minus), (minus, plus)):
        for i in a if len(b) else []:
            h = int(b[np.argmin(dual_length(X[b] - X[i], norm))])
            found.add((int(i), h) if sign[i] > 0 else (h, int(i)))
    rows = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
    return _mixes(X, sign, rows, np.ones((len(rows), 2)), norm)


def _solve2(aa: FloatArray, bb: FloatArray, ab: FloatArray, ra: FloatArray, rb: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The 2×2 systems [aa ab; ab bb](s, t) = (ra, rb); where they are singular, (0, 0)."""
    det = aa * bb - ab**2
    det = np.where(det > 1e-12, det, np.inf)
    return (bb * ra - ab * rb) / det, (aa * rb - ab * ra) / det


def _table(sets: Iterable[tuple[int, ...]], size: int) -> IntArray:
    return np.array(list(sets), dtype=np.int64).reshape(-1, size)


def small_mixes(X: FloatArray, sign: FloatArray, norm: str = "l2") -> list[Mix]:
    """One row against two or three of the other class, and two against two, at the weights of least distance.

    Sets whose least (Euclidean) distance is at a smaller set are left out.
    """
    found: list[Mix] = []
    dot = lambda a, b: (a * b).sum(axis=1)  # noqa: E731

    def keep(rows: IntArray, weights: FloatArray) -> None:
        inner: BoolArray = (weights > INNER).all(axis=1)
        found.extend(_mixes(X, sign, rows[inner], weights[inner], norm))

    for own in (1, -1):
        one, other = np.flatnonzero(sign == own), np.flatnonzero(sign == -own)
        c = _table(((i, *q) for i in one for q in combinations(other, 2)), 3)
        u, w = X[c[:, 2]] - X[c[:, 1]], X[c[:, 0]] - X[c[:, 1]]
        t = dot(u, w) / np.maximum(dot(u, u), 1e-300)
        keep(c, np.column_stack([np.ones(len(c)), 1 - t, t]))
        c = _table(((i, *q) for i in one for q in combinations(other, 3)), 4)
        u, v, w = (X[c[:, k]] - X[c[:, 1]] for k in (2, 3, 0))
        s, t = _solve2(dot(u, u), dot(v, v), dot(u, v), dot(u, w), dot(v, w))
        keep(c, np.column_stack([np.ones(len(c)), 1 - s - t, s, t]))
    plus, minus = np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)
    c = _table((a + b for a in combinations(plus, 2) for b in combinations(minus, 2)), 4)
    u, v, w = X[c[:, 1]] - X[c[:, 0]], X[c[:, 3]] - X[c[:, 2]], X[c[:, 2]] - X[c[:, 0]]
    s, minus_t = _solve2(dot(u, u), dot(v, v), dot(u, v), dot(u, w), dot(v, w))
    t = -minus_t
    keep(c, np.column_stack([1 - s, s, 1 - t, t]))
    return found


class RootProblem:
    """The linear program of one node that holds all rows: min δ + c1 Σ w e + c2 Σ w ξ under the rows of some mixes.

    Every tree that splits has such a node, its root; what a tree costs besides (lower levels, splits) is not negative.
    """

    def __init__(self, mixes: list[Mix], weights: FloatArray, c1: float, c2: float) -> None:
        self.n = len(weights)
        self.cost = np.concatenate([c1 * weights, c2 * weights, [1.0]])
        self.bounds = [(0.0, None)] * self.n + [(0.0, 1.0)] * self.n + [(0.0, None)]
        self.rows = self.matrix(mixes)

    def matrix(self, mixes: list[Mix]) -> FloatArray:
        """A row (2n + 1) for each mix over e, ξ and δ = r/2."""
        A = np.zeros((len(mixes), 2 * self.n + 1))
        for k, mix in enumerate(mixes):
            at = np.array(mix.rows)
            A[k, at], A[k, self.n + at], A[k, -1] = mix.weights, 2.0, 2.0 * mix.distance
        return A

    def cheapest(self) -> FloatArray | None:
        """An optimum (2n + 1,)."""
        from scipy.optimize import linprog

        out = linprog(self.cost, A_ub=-self.rows, b_ub=np.full(len(self.rows), -2.0), bounds=self.bounds)
        return np.asarray(out.x) if out.status == 0 else None

    def widest(self, budget: float) -> float | None:
        """The largest δ at a cost of at most ``budget``; None where no point costs that little."""
        from scipy.optimize import linprog

        goal = np.zeros(2 * self.n + 1)
        goal[-1] = -1.0
        A = np.vstack([-self.rows, self.cost])
        b = np.append(np.full(len(self.rows), -2.0), budget)
        out = linprog(goal, A_ub=A, b_ub=b, bounds=self.bounds)
        return float(out.x[-1]) if out.status == 0 else budget if out.status != 2 else None


def chosen_mixes(
    X: FloatArray, sign: FloatArray, weights: FloatArray, c1: float, c2: float, norm: str, base: list[Mix], most: int
) -> list[Mix]:
    """At most ``most`` of :func:`small_mixes`: in rounds, those that the cheapest point of the root violates most."""
    if len(X) > LARGEST_TABLE or not base:
        return []
    candidates = small_mixes(X, sign, norm)
    if not candidates:
        return []
    root = RootProblem(base, weights, c1, c2)
    matrix = root.matrix(candidates)
    chosen: list[int] = []
    for _ in range(ROUNDS):
        x = root.cheapest()
        if x is None:
            break
        short = 2.0 - matrix @ x
        short[chosen] = 0.0
        worst = np.argsort(-short, kind="stable")[: max(4, len(X) // 2)]
        worst = worst[short[worst] > VIOLATED][: most - len(chosen)]
        if not len(worst):
            break
        chosen += worst.tolist()
        root.rows = np.vstack([root.rows, matrix[worst]])
    return [candidates[k] for k in chosen]


def margin_bound(mixes: list[Mix], weights: FloatArray, c1: float, c2: float, c3: float, upper_bound: float) -> float:
    """Bound on δ at every tree with an objective of at most UB.

    δ > 0 needs a split, so c3 is paid, and the root pays errors and relabelled rows as :class:`RootProblem` has them:
    δ is at most its largest value there at a cost of UB - c3. Where no tree that splits is that cheap, a twentieth of UB
    is returned.
    """
    budget = upper_bound * (1 + SLACK) - c3
    widest = budget
    if mixes and len(weights) <= LARGEST_TABLE and budget > 0:
        found = RootProblem(mixes, weights, c1, c2).widest(budget)
        widest = 0.0 if found is None else min(budget, found * (1 + SLACK) + SLACK * min(1.0, upper_bound))
    return max(widest, upper_bound / 20)
