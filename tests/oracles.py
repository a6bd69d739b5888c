"""Brute-force optimal values of the five models, for comparison with the solvers.

Nothing in here knows Pyomo or the package under test: numpy, scipy's LPs and clarabel's convex programs only.
Each function takes ``X (n, p)`` *as it is* (no rescaling) and labels ``y (n,)``, and returns the optimal
value as a float, ``np.inf`` where no tree is feasible. The definitions are those of the project's model
notes, sections 1-4 and 7:

* OCT, OCT-H: Bertsimas & Dunn, Optimal classification trees, Mach. Learn. 106 (2017);
* RE-SVM: Blanco, Japon, Puerto, Comput. Ind. Eng. 172 (2022);
* OCTSVM: Blanco, Japon, Puerto, Adv. Data Anal. Classif. 16 (2022);
* MOCTSVM: Blanco, Japon, Puerto, Mach. Learn. (2023), as the page on the model says.

All of them are exponential in n: they are meant for a dozen rows at most (OCT: a few dozen).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import Any, Literal

import clarabel
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

Array = NDArray[Any]
ErrorScale = Literal["count", "baseline"]
Complexity = Literal["splits", "features"]
Norm = Literal["l1", "l2"]
Boundary = Literal["strict", "printed"]

__all__ = ["moctsvm_optimum", "oct_h_optimum", "oct_optimum", "octsvm_optimum", "optimum", "re_svm_optimum"]


# ------------------------------------------------------------------------------------------------ common he


def _row_weights(weights: ArrayLike | None, n: int) -> Array:
    """Row weights ``(n,)``, all ones by default; negative or non-finite ones are refused."""
    if weights is None:
        return np.ones(n)
    w = np.asarray(weights, dtype=float)
    if w.shape != (n,) or not np.all(np.isfinite(w)) or np.any(w < 0):
        raise ValueError("weights must be (n,), finite and nonnegative")
    return w


def _class_weights(y: ArrayLike, weights: Array) -> Array:
    """``(n, K)``: the weight of row i in the column of its class, zero elsewhere."""
    _, code = np.unique(np.asarray(y), return_inverse=True)
    table = np.zeros((len(code), int(code.max()) + 1))
    table[np.arange(len(code)), code] = weights
    return table


def _error_unit(per_class: Array, error_scale: ErrorScale) -> float:
    """What one unit of error costs: 1, or 1 / (errors of the majority class over all rows)."""
    if error_scale == "count":
        return 1.0
    if error_scale != "baseline":
        raise ValueError(f"unknown error_scale {error_scale!r}")
    baseline = float(per_class.sum() - per_class.sum(axis=0).max())
    return (
        1.0 / baseline if baseline > 0 else 1.0
    )  # one class only: no tree has errors, the unit is irrelevant


def _signs(y: ArrayLike) -> Array:
    """Labels in {-1, +1} as floats."""
    s = np.asarray(y, dtype=float)
    if not np.all(np.isin(s, (-1.0, 1.0))):
        raise ValueError("labels must be -1 or +1")
    return s


# ------------------------------------------------------------------------------------------------ OCT


def oct_optimum(
    X: ArrayLike,
    y: ArrayLike,
    *,
    depth: int,
    alpha: float,
    n_min: int = 1,
    error_scale: ErrorScale = "count",
    weights: ArrayLike | None = None,
) -> float:
    """Best axis-parallel tree: weighted errors (in units of ``error_scale``) + ``alpha`` per split.

    ``X (n, p)``, any units; ``y (n,)``, any K classes. Every split = a feature and a gap between two
    neighbouring distinct values of the rows that reach the node; a node may stay unsplit; every leaf holds at
    least ``n_min`` rows (counted without weights). Exhaustive recursion over (row set, depth), MODELS section
    1.
    """
    data = np.asarray(X, dtype=float)
    n, p = data.shape
    per_class = _class_weights(y, _row_weights(weights, n))
    unit = _error_unit(per_class, error_scale)
    memo: dict[tuple[bytes, int], float] = {}

    def best(rows: Array, levels: int) -> float:
        if len(rows) < n_min:
            return np.inf
        counts = per_class[rows].sum(axis=0)
        value = unit * float(counts.sum() - counts.max())
        if levels == 0 or value <= alpha or len(rows) < 2 * n_min:
            return value
        key = (rows.tobytes(), levels)
        if key in memo:
            return memo[key]
        for j in range(p):
            column = data[rows, j]
            for threshold in np.unique(column)[1:]:
                left = column < threshold
                if min(left.sum(), (~left).sum()) < n_min:
                    continue
                partial = alpha + best(rows[left], levels - 1)
                if partial < value:
                    value = min(value, partial + best(rows[~left], levels - 1))
        memo[key] = value
        return value

    return best(np.arange(n), depth)


# ------------------------------------------------------------------------------------------------ OCT-H


def _separation(data: Array, left: Array, right: Array, features: tuple[int, ...]) -> float:
    """Largest m: a'x + m <= b on ``left``, a'x >= b on ``right``; ||a||_1, |b| <= 1, a on ``features``."""
    q = len(features)
    cols = list(features)
    lo, hi = data[left][:, cols], data[right][:, cols]
    # variables: a = up - un (q each), b, m
    rows_left = np.hstack([lo, -lo, -np.ones((len(left), 1)), np.ones((len(left), 1))])
    rows_right = np.hstack([-hi, hi, np.ones((len(right), 1)), np.zeros((len(right), 1))])
    norm = np.r_[np.ones(2 * q), 0.0, 0.0][None, :]
    a_ub = np.vstack([rows_left, rows_right, norm])
    b_ub = np.r_[np.zeros(len(left) + len(right)), 1.0]
    cost = np.r_[np.zeros(2 * q + 1), -1.0]
    bounds = [(0.0, None)] * (2 * q) + [(-1.0, 1.0), (None, 2.0)]
    result = linprog(cost, A_ub=a_ub, b_ub=b_ub, bounds=bounds, method="highs")
    if result.status == 2:
        return -np.inf
    if result.status != 0:
        raise RuntimeError(f"separation LP: {result.message}")
    return float(-result.fun)


def oct_h_optimum(
    X: ArrayLike,
    y: ArrayLike,
    *,
    depth: int,
    alpha: float,
    n_min: int = 1,
    mu: float = 0.005,
    complexity: Complexity = "splits",
    error_scale: ErrorScale = "count",
    weights: ArrayLike | None = None,
) -> float:
    """Best tree with oblique splits: weighted errors + ``alpha`` per split (or per feature used in a split).

    ``X (n, p)`` in [0, 1], ``y (n,)`` any K classes. A node's splits are all the ways to divide its rows by
    a'x + mu <= b (left) and a'x >= b (right), ||a||_1 <= 1, |b| <= 1, one LP per candidate; with
    ``complexity="features"`` a split costs alpha times the size of the smallest feature set that allows it
    (at least 1). Splits that send all rows to one side are legal and never better than no split, hence not
    listed. Candidates are tried in order of what they would cost, so the first separable one ends the search.
    MODELS section 2.
    """
    data = np.asarray(X, dtype=float)
    n, p = data.shape
    per_class = _class_weights(y, _row_weights(weights, n))
    unit = _error_unit(per_class, error_scale)
    if complexity not in ("splits", "features"):
        raise ValueError(f"unknown complexity {complexity!r}")
    if complexity == "splits":
        supports = [(1, tuple(range(p)))]
    else:
        supports = [(k, f) for k in range(1, p + 1) for f in combinations(range(p), k)]

    @cache
    def separable(left: tuple[int, ...], right: tuple[int, ...], features: tuple[int, ...]) -> bool:
        # swapping the sides keeps the largest margin (a -> -a), so each pair is asked once
        return _separation(data, np.array(left), np.array(right), features) >= mu - 1e-9

    @cache
    def best(rows: tuple[int, ...], levels: int) -> float:
        if len(rows) < n_min:
            return np.inf
        counts = per_class[list(rows)].sum(axis=0)
        value = unit * float(counts.sum() - counts.max())
        if levels == 0 or value <= alpha:
            return value
        candidates = []
        for code in range(
            2 ** (len(rows) - 1) - 1
        ):  # the first row's side holds it; the other side is not empty
            one = (rows[0], *(r for k, r in enumerate(rows[1:]) if code >> k & 1))
            two = tuple(r for r in rows if r not in one)
            below = best(one, levels - 1) + best(two, levels - 1)
            candidates += [(alpha * k + below, one, two, f) for k, f in supports if alpha * k + below < value]
        for total, one, two, f in sorted(candidates):
            if separable(one, two, f):
                return total
        return value

    return best(tuple(range(n)), depth)


# ------------------------------------------------------------------------------------------------ convex pr


@dataclass(frozen=True)
class _Answer:
    feasible: bool
    value: float = np.inf
    dual_value: float = np.inf
    x: Array = field(default_factory=lambda: np.zeros(0))
    z: Array = field(default_factory=lambda: np.zeros(0))


def _settings(tolerance: float, equilibrate: bool, iterations: int) -> Any:
    s = clarabel.DefaultSettings()
    s.verbose = False
    s.max_threads = 1
    s.tol_gap_abs = s.tol_gap_rel = s.tol_feas = tolerance
    s.equilibrate_enable = equilibrate
    s.max_iter = iterations
    return s


_ATTEMPTS = [_settings(1e-9, True, 100), _settings(1e-9, False, 200), _settings(1e-8, True, 200)]


def _conic(p: Any, q: Array, a: Array, b: Array, linear: int, cones: list[int]) -> _Answer:
    """min x'Px/2 + q'x, b - a x in (R_+^linear, second-order cones of the given sizes).

    Only a clean "infeasible" counts as such. An answer short of the tolerance is tried again with other
    settings, and taken only when value and dual value agree to 1e-7.
    """
    kinds = [clarabel.NonnegativeConeT(linear), *(clarabel.SecondOrderConeT(k) for k in cones)]
    matrix = sp.csc_matrix(a)
    good = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
    seen = []
    for settings in _ATTEMPTS:
        r = clarabel.DefaultSolver(p, q, matrix, b, kinds, settings).solve()
        seen.append(str(r.status))
        if r.status == clarabel.SolverStatus.PrimalInfeasible:
            return _Answer(False)
        accurate = abs(r.obj_val - r.obj_val_dual) <= 1e-7 * (1.0 + abs(r.obj_val))
        if r.status == good[0] or (r.status == good[1] and accurate and settings is _ATTEMPTS[-1]):
            return _Answer(True, r.obj_val, r.obj_val_dual, np.asarray(r.x), np.asarray(r.z))
    raise RuntimeError(f"convex program not solved: {seen}")


# ------------------------------------------------------------------------------------------------ RE-SVM


def re_svm_optimum(
    X: ArrayLike,
    y: ArrayLike,
    *,
    c1: float,
    c2: float,
    norm: Norm = "l2",
    weights: ArrayLike | None = None,
) -> float:
    """min ||w||_2^2 / 2 + c1 sum e + c2 sum xi, over all 2^n relabellings, one convex QP each.

    ``norm="l1"``: ||w||_1 in place of the square (an LP each).

    ``X (n, p)`` as it is, ``y (n,)`` in {-1, +1}; ``weights (n,)`` multiply both costs of a row. Relabellings
    are visited by rising relabelling cost, and the search ends where that cost alone reaches the best value.
    MODELS section 3.
    """
    data, sign = np.asarray(X, dtype=float), _signs(y)
    n, p = data.shape
    w = _row_weights(weights, n)
    extra = p if norm == "l1" else 0
    size = p + 1 + extra + n  # w, w0, (|w|), e
    quadratic = np.zeros((size, size))
    cost = np.zeros(size)
    if norm == "l2":
        quadratic[:p, :p] = np.eye(p)
    elif norm == "l1":
        cost[p + 1 : 2 * p + 1] = 1.0
    else:
        raise ValueError(f"unknown norm {norm!r}")
    cost[p + 1 + extra :] = c1 * w
    hessian = sp.csc_matrix(quadratic)
    absolute = np.zeros((2 * extra, size))
    if extra:
        absolute[:, :p] = np.vstack([np.eye(p), -np.eye(p)])
        absolute[:, p + 1 : 2 * p + 1] = -np.vstack([np.eye(p), np.eye(p)])
    positive = np.hstack([np.zeros((n, size - n)), -np.eye(n)])
    score = np.hstack([data, np.ones((n, 1))])
    flips = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(bool)
    price = c2 * (flips @ w)
    best = np.inf
    for k in np.argsort(price, kind="stable"):
        if price[k] >= best:
            break
        target = np.where(flips[k], -sign, sign)
        if np.all(target == target[0]):
            best = min(best, float(price[k]))
            continue
        hinge = np.hstack([-target[:, None] * score, np.zeros((n, extra)), -np.eye(n)])
        a = np.vstack([hinge, positive, absolute])
        b = np.r_[-np.ones(n), np.zeros(n + 2 * extra)]
        best = min(best, float(price[k]) + _conic(hessian, cost, a, b, len(b), []).value)
    return best


# ------------------------------------------------------------------------------------------------ OCTSVM
#
# A tree is a choice of one "atom" per split node: which rows go right and left, and which rows are relabelled
# (at the last level: only the latter). The nodes are coupled by delta alone,
#
#     value = min over atoms of  min over delta of  delta + sum_t g_t(delta),
#
# g_t convex and nonincreasing: the least c1 * hinge loss of that atom with ||w|| <= 2 delta, plus its
# constants. A dual solution at one delta is a straight line below g_t for all delta. So on an interval [a, b]
# of delta, with a line for every atom, the value of any tree is at least the smaller of its two sums at the
# end points, and the best of all trees under such sums is a dynamic program over (level, row set). Intervals
# are halved and atoms without any tree below the incumbent are dropped until few trees are left, which are
# solved one by one as joint cone programs.


@dataclass
class _Atom:
    right: int  # bit sets of rows; both zero at the last level
    left: int
    target: tuple[tuple[int, float], ...]  # (row, label after relabelling)
    constant: float  # relabelling cost + c3
    flat: bool  # the hinge loss is zero for every delta


class _OctSvm:
    """The enumeration behind :func:`octsvm_optimum`."""

    def __init__(
        self,
        data: Array,
        sign: Array,
        weight: Array,
        depth: int,
        c1: float,
        c2: float,
        c3: float,
        mu: float,
        norm: Norm,
        strict: bool,
    ) -> None:
        self.data, self.sign, self.weight, self.depth = data, sign, weight, depth
        self.c1, self.c2, self.c3, self.mu, self.norm, self.strict = c1, c2, c3, mu, norm, strict
        self.n, self.p = data.shape
        self.free = sp.csc_matrix((1, 1))
        self._sep: dict[tuple[int, int], float] = {}
        self._sides: dict[int, list[tuple[int, int]]] = {}
        self._joint: dict[tuple[int, ...], float] = {}
        full = (1 << self.n) - 1
        self.upper = self.unsplit(full, 0)
        if self.upper > 0:
            self._build(full)

    # -- small pieces --------------------------------------------------------------------------------------

    def rows(self, mask: int) -> list[int]:
        return [i for i in range(self.n) if mask >> i & 1]

    def constant_cost(self, mask: int) -> float:
        """Cheapest constant classifier of the rows: the lighter class pays min(2 c1, c2) a row (|w0| = 1)."""
        rows = self.rows(mask)
        plus = sum(self.weight[i] for i in rows if self.sign[i] > 0)
        minus = sum(self.weight[i] for i in rows if self.sign[i] < 0)
        return float(min(plus, minus) * min(2 * self.c1, self.c2))

    def unsplit(self, mask: int, level: int) -> float:
        """Cost of a subtree without splits. As printed, w0 = 0 lets each row choose its side for c1."""
        cost = self.constant_cost(mask)
        if level == self.depth:
            return cost
        cost += self.unsplit(mask, level + 1)
        if not self.strict:  # at w0 = 0 the classes part for c1 a row, and pure row sets cost nothing below
            cost = min(cost, self.c1 * float(sum(self.weight[i] for i in self.rows(mask))))
        return cost

    def least_delta(self, right: int, left: int) -> float:
        """Smallest delta that allows s >= 0 on ``right`` and s <= -mu on ``left``; inf where none does."""
        if not self.strict or not right or not left:
            return 0.0
        key = (min(right, left), max(right, left))  # the same for swapped sides
        if key not in self._sep:
            self._sep[key] = self._least_delta(*key)
        return self._sep[key]

    def _least_delta(self, right: int, left: int) -> float:
        # the largest t with s >= 0 | s <= -t at ||w|| <= 1: always feasible, so no infeasibility certificate
        # is read
        r, k, p = self.rows(right), self.rows(left), self.p
        extra = p if self.norm == "l1" else 0
        size = p + 1 + extra + 1
        a = np.zeros((len(r) + len(k) + 1, size))
        a[: len(r), :p], a[: len(r), p] = -self.data[r], -1.0
        a[len(r) : -1, :p], a[len(r) : -1, p], a[len(r) : -1, -1] = self.data[k], 1.0, 1.0
        a[-1, -1] = -1.0  # t >= 0
        linear, conic, _, cones = self._norm_rows(size, 0, p + 1, None)
        a = np.vstack([a, linear, conic])
        b = np.zeros(len(a))
        if cones:
            b[-p - 1] = 1.0
        else:
            b[-1] = 1.0
        cost = np.zeros(size)
        cost[-1] = -1.0
        answer = _conic(sp.csc_matrix((size, size)), cost, a, b, len(a) - sum(cones), cones)
        margin = -answer.value
        return self.mu / (2 * margin) if margin > 1e-8 else np.inf

    def _norm_rows(self, size: int, w: int, u: int, delta: int | None) -> tuple[Array, Array, int, list[int]]:
        """Rows of ||w|| <= 2 delta: linear, cone, index of the bound's row among its kind, cone sizes.

        ``w``, ``u``: first columns of w and (l1) of |w|; ``delta``: its column, or None (then b holds the
        bound).
        """
        p = self.p
        if self.norm == "l2":
            cone = np.zeros((p + 1, size))
            cone[1:, w : w + p] = -np.eye(p)
            if delta is not None:
                cone[0, delta] = -2.0
            return np.zeros((0, size)), cone, 0, [p + 1]
        rows = np.zeros((2 * p + 1, size))
        rows[:p, w : w + p], rows[p : 2 * p, w : w + p] = np.eye(p), -np.eye(p)
        rows[:p, u : u + p] = rows[p : 2 * p, u : u + p] = -np.eye(p)
        rows[-1, u : u + p] = 1.0
        if delta is not None:
            rows[-1, delta] = -2.0
        return rows, np.zeros((0, size)), 2 * p, []

    def sides(self, mask: int) -> list[tuple[int, int]]:
        """All (right, left) that a hyperplane allows: those of the set without its last row, extended."""
        if mask == 0:
            return [(0, 0)]
        if mask not in self._sides:
            top = 1 << (mask.bit_length() - 1)
            found = []
            for right, left in self.sides(mask ^ top):
                for one in ((right | top, left), (right, left | top)):
                    if self.least_delta(*one) <= self.upper:
                        found.append(one)
            self._sides[mask] = found
        return self._sides[mask]

    # -- atoms and the graph of row sets -------------------------------------------------------------------

    def _branch_atoms(self, right: int, left: int) -> Iterator[_Atom]:
        """All sensible relabellings for given sides: a row on its own side is never relabelled."""
        fixed = [(i, 1.0) for i in self.rows(right) if self.sign[i] > 0]
        fixed += [(i, -1.0) for i in self.rows(left) if self.sign[i] < 0]
        wrong = [i for i in self.rows(right) if self.sign[i] < 0] + [
            i for i in self.rows(left) if self.sign[i] > 0
        ]
        for code in range(2 ** len(wrong)):
            flipped = [i for k, i in enumerate(wrong) if code >> k & 1]
            kept = [i for k, i in enumerate(wrong) if not code >> k & 1]
            constant = self.c3 + self.c2 * float(sum(self.weight[i] for i in flipped))
            if constant + self.c1 * float(sum(self.weight[i] for i in kept)) >= self.upper:
                continue
            target = fixed + [(i, -self.sign[i]) for i in flipped] + [(i, self.sign[i]) for i in kept]
            flat = not kept and (right == 0 or left == 0)
            yield _Atom(right, left, tuple(sorted(target)), constant, flat)

    def _last_atoms(self, mask: int) -> Iterator[_Atom]:
        """All relabellings of the rows at a node of the last level."""
        rows = self.rows(mask)
        for code in range(2 ** len(rows)):
            flipped = {i for k, i in enumerate(rows) if code >> k & 1}
            constant = self.c3 + self.c2 * float(sum(self.weight[i] for i in flipped))
            if constant >= self.upper:
                continue
            target = tuple((i, -self.sign[i] if i in flipped else self.sign[i]) for i in rows)
            if (
                len({t for _, t in target}) > 1
            ):  # one label only: a node without a split is as good, and free of c3
                yield _Atom(0, 0, target, constant, False)

    def _build(self, full: int) -> None:
        self.atoms: list[_Atom] = []
        group: list[int] = []  # of every atom
        bound: list[float] = []  # the least delta of every group
        groups: dict[tuple[int, int, bool], int] = {}

        def group_of(right: int, left: int, last: bool) -> int:
            key = (right, left, last)
            if key not in groups:
                start = len(self.atoms)
                self.atoms += self._last_atoms(right) if last else self._branch_atoms(right, left)
                if start == len(self.atoms):
                    groups[key] = -1
                else:
                    groups[key] = len(bound)
                    bound.append(0.0 if last else self.least_delta(right, left))
                    group.extend([groups[key]] * (len(self.atoms) - start))
            return groups[key]

        # node 0 is the empty row set, node 1 the root; options per level: (node, group, right child, left
        # child)
        fixed = [0.0, self.unsplit(full, 0)]
        level_nodes = {full: 1}
        self.options: list[tuple[Array, Array, Array, Array]] = []
        for level in range(self.depth + 1):
            below: dict[int, int] = {0: 0}
            found: list[tuple[int, int, int, int]] = []
            for mask, node in level_nodes.items():
                if mask == 0:
                    continue
                if level == self.depth:
                    g = group_of(mask, 0, True)
                    if g >= 0:
                        found.append((node, g, 0, 0))
                    continue
                for right, left in self.sides(mask):
                    g = group_of(right, left, False)
                    if g < 0:
                        continue
                    for child in (right, left):
                        if child not in below:
                            below[child] = len(fixed)
                            fixed.append(self.unsplit(child, level + 1))
                    found.append((node, g, below[right], below[left]))
            table = np.array(found, dtype=int).reshape(-1, 4)
            self.options.append((table[:, 0], table[:, 1], table[:, 2], table[:, 3]))
            level_nodes = below
        self.fixed = np.array(fixed)
        self.group = np.array(group, dtype=int)
        self.bound = np.array(bound)
        self.by_node: dict[int, list[tuple[int, int, int]]] = {}
        for nodes, gs, rights, lefts in self.options:
            for node, g, right, left in zip(
                nodes.tolist(), gs.tolist(), rights.tolist(), lefts.tolist(), strict=True
            ):
                self.by_node.setdefault(node, []).append((g, right, left))

    # -- convex programs -----------------------------------------------------------------------------------

    def _block(self, atom: _Atom) -> tuple[Array, Array, Array]:
        """One atom's linear rows over (w, w0, |w| for l1, e): matrix, right-hand side, cost (without c1)."""
        index = [i for i, _ in atom.target]
        t = np.array([v for _, v in atom.target])
        m, p = len(index), self.p
        extra = p if self.norm == "l1" else 0
        r, k = self.rows(atom.right), self.rows(atom.left)
        size = p + 1 + extra + m
        a = np.zeros((2 * m + len(r) + len(k), size))
        a[:m, :p], a[:m, p], a[:m, size - m :] = -t[:, None] * self.data[index], -t, -np.eye(m)
        a[m : 2 * m, size - m :] = -np.eye(m)
        a[2 * m : 2 * m + len(r), :p], a[2 * m : 2 * m + len(r), p] = -self.data[r], -1.0
        a[2 * m + len(r) :, :p], a[2 * m + len(r) :, p] = self.data[k], 1.0
        b = np.r_[-np.ones(m), np.zeros(m + len(r)), np.full(len(k), -self.mu if self.strict else 0.0)]
        return a, b, np.r_[np.zeros(size - m), self.weight[index]]

    def line(self, atom: _Atom, delta: float) -> tuple[float, float] | None:
        """Intercept and slope of a line below the atom's hinge loss, which it touches at ``delta``."""
        a, b, cost = self._block(atom)
        linear, conic, at, cones = self._norm_rows(len(cost), 0, self.p + 1, None)
        place = len(b) + at
        rhs = np.r_[b, np.zeros(len(linear) + len(conic))]
        rhs[place] = 2 * delta
        matrix = np.vstack([a, linear, conic])
        try:
            answer = _conic(
                sp.csc_matrix((len(cost), len(cost))), cost, matrix, rhs, len(b) + len(linear), cones
            )
        except RuntimeError:
            return None  # the line known so far stays
        if not answer.feasible:
            return None
        slope = -2 * float(answer.z[place])
        return answer.dual_value - slope * delta, slope

    def joint(self, chosen: tuple[int, ...]) -> float:
        """Value of the tree with these atoms (without unsplit nodes): one cone program over all its nodes."""
        if chosen in self._joint:
            return self._joint[chosen]
        atoms = [self.atoms[k] for k in chosen]
        blocks = [self._block(atom) for atom in atoms]
        size = 1 + sum(len(cost) for _, _, cost in blocks)
        first = np.zeros((1, size))
        first[0, 0] = -1.0
        linear, conic, rhs, cones, cost = [first], [], [np.zeros(1)], [], np.zeros(size)
        cost[0] = 1.0
        at = 1
        for a, b, c in blocks:
            wide = np.zeros((len(a), size))
            wide[:, at : at + len(c)] = a
            lin, con, _, kinds = self._norm_rows(size, at, at + self.p + 1, 0)
            linear += [wide, lin]
            rhs += [b, np.zeros(len(lin))]
            conic.append(con)
            cones += kinds
            cost[at : at + len(c)] = self.c1 * c
            at += len(c)
        top = np.vstack(linear)
        matrix = np.vstack([top, *conic])
        b = np.r_[np.concatenate(rhs), np.zeros(len(matrix) - len(top))]
        answer = _conic(sp.csc_matrix((size, size)), cost, matrix, b, len(top), cones)
        value = answer.value + sum(atom.constant for atom in atoms)
        self._joint[chosen] = value
        return value

    # -- bounds on an interval of delta --------------------------------------------------------------------

    def _inside(self, cost: Array) -> tuple[Array, Array]:
        """(least cost per group, least cost per node) for given costs of the atoms (inf: dropped)."""
        least = np.full(len(self.bound), np.inf)
        np.minimum.at(least, self.group, cost)
        value = self.fixed.copy()
        for nodes, gs, rights, lefts in reversed(self.options):
            np.minimum.at(value, nodes, least[gs] + value[rights] + value[lefts])
        return least, value

    def _through(self, least: Array, value: Array) -> Array:
        """Per group: the least cost of the rest of a tree that uses it."""
        outside = np.full(len(value), np.inf)
        outside[1] = 0.0
        rest = np.full(len(least), np.inf)
        for nodes, gs, rights, lefts in self.options:
            np.minimum.at(rest, gs, outside[nodes] + value[rights] + value[lefts])
            np.minimum.at(outside, rights, outside[nodes] + least[gs] + value[lefts])
            np.minimum.at(outside, lefts, outside[nodes] + least[gs] + value[rights])
        return rest

    def _trees(
        self, node: int, budget: float, cost: Array, members: dict[int, Array], least: Array, value: Array
    ) -> Iterator[tuple[float, float, tuple[int, ...]]]:
        """(cost, fixed part, atoms) of every subtree at ``node`` whose cost stays below ``budget``."""
        if self.fixed[node] < budget:
            yield float(self.fixed[node]), float(self.fixed[node]), ()
        for g, right, left in self.by_node.get(node, ()):
            if least[g] + value[right] + value[left] >= budget:
                continue
            for k in members[g]:
                own = cost[k]
                if own + value[right] + value[left] >= budget:
                    continue
                for cr, fr, ar in self._trees(right, budget - own - value[left], cost, members, least, value):
                    for cl, fl, al in self._trees(left, budget - own - cr, cost, members, least, value):
                        yield own + cr + cl, fr + fl, (int(k), *ar, *al)

    def _survivors(
        self, limit: int, ends: list[tuple[Array, float, Array, Array]]
    ) -> list[tuple[float, Any]] | None:
        """The trees below the incumbent at one of the end points, or None where they exceed ``limit``."""
        found: dict[tuple[int, ...], float] = {}
        for cost, offset, least, value in ends:
            alive = np.flatnonzero(np.isfinite(cost))
            members: dict[int, Array] = {}
            for g in np.unique(self.group[alive]):
                members[int(g)] = alive[self.group[alive] == g]
            for _, fixed, atoms in self._trees(1, self.cut - offset, cost, members, least, value):
                if not atoms:
                    continue
                if atoms in self._joint and self._joint[atoms] + fixed > self.cut:
                    continue  # known and not better
                found[atoms] = fixed
                if len(found) > limit:
                    return None
        return [(fixed, atoms) for atoms, fixed in found.items()]

    @property
    def cut(self) -> float:
        """Trees at or above this value are not looked at: 1e-7 below the incumbent, relatively."""
        return self.upper * (1 - 1e-7)

    def solve(self) -> float:
        """The optimal value, by halving intervals of delta (see above)."""
        if self.upper <= 0:
            return 0.0
        intercept = np.array([atom.constant for atom in self.atoms])
        for k, atom in enumerate(self.atoms):  # a row on the wrong side has e >= 1
            for i, t in atom.target:
                if (t > 0 and atom.left >> i & 1) or (t < 0 and atom.right >> i & 1):
                    intercept[k] += self.c1 * self.weight[i]
        still = np.array([atom.flat or self.c1 == 0 for atom in self.atoms], dtype=bool)
        lowest = self.bound[self.group] if len(self.atoms) else np.zeros(0)
        heap: list[tuple[float, int, float, float, Array, Array, Array, bool]] = []
        heapq.heappush(
            heap, (0.0, 0, 0.0, self.upper, np.ones(len(intercept), bool), intercept, 0 * intercept, False)
        )
        ticket = 1
        while heap:
            bound, _, a, b, alive, intercept, slope, fresh = heapq.heappop(heap)
            b = min(b, self.upper)
            if bound >= self.cut or b <= a:
                continue
            alive = alive & (lowest <= b)
            ends, keep, bound = [], np.zeros(len(alive), bool), np.inf
            for end in (a, b):
                cost = np.where(alive, intercept + slope * end, np.inf)
                least, value = self._inside(cost)
                rest = self._through(least, value)
                keep |= rest[self.group] + cost + end < self.cut
                bound = min(bound, value[1] + end)
                ends.append((cost, end, least, value))
            alive &= keep
            if bound >= self.cut or not alive.any():
                continue
            left = int(alive.sum())
            found = self._survivors(max(20, left // 2) if fresh else 10, ends)
            if found is not None:
                for fixed, atoms in found:
                    self.upper = min(self.upper, fixed + self.joint(atoms))
                continue
            for cost, _, least, value in ends:  # the most promising tree, for the incumbent
                atoms, fixed = self._best(cost, least, value)
                if atoms:
                    self.upper = min(self.upper, fixed + self.joint(atoms))
            middle = float(np.sqrt((a + 0.01) * (b + 0.01)) - 0.01) if b - a > 1e-3 else (a + b) / 2
            if not fresh:
                intercept, slope = intercept.copy(), slope.copy()
                for k in np.flatnonzero(alive & ~still).tolist():
                    at = middle if lowest[k] <= a else max(middle, (lowest[k] + b) / 2)
                    touching = self.line(self.atoms[k], at)
                    if touching is None:
                        continue
                    new = self.atoms[k].constant + self.c1 * touching[0], self.c1 * touching[1]
                    if new[0] + new[1] * at > intercept[k] + slope[k] * at:
                        intercept[k], slope[k] = new
                parts = [(a, b, True)]
            elif b - a < 1e-9 * (1 + self.upper):
                raise RuntimeError("interval of delta exhausted: bounds do not meet")
            else:
                parts = [(a, middle, False), (middle, b, False)]
            for lo, hi, done in parts:
                heapq.heappush(heap, (bound, ticket, lo, hi, alive, intercept, slope, done))
                ticket += 1
        return self.upper

    def _best(self, cost: Array, least: Array, value: Array) -> tuple[tuple[int, ...], float]:
        """Atoms and fixed cost of the tree that attains ``value`` at the root."""
        atoms: list[int] = []
        fixed, todo = 0.0, [1]
        while todo:
            node = todo.pop(0)
            options = [(least[g] + value[r] + value[k], g, r, k) for g, r, k in self.by_node.get(node, ())]
            top = min(options, default=None)
            if top is None or self.fixed[node] <= top[0]:
                fixed += float(self.fixed[node])
                continue
            inside = np.flatnonzero(self.group == top[1])
            atoms.append(int(inside[np.argmin(cost[inside])]))
            todo = [top[2], top[3], *todo]
        return tuple(atoms), fixed


def octsvm_optimum(
    X: ArrayLike,
    y: ArrayLike,
    *,
    depth: int,
    c1: float,
    c2: float,
    c3: float,
    mu: float = 1e-3,
    norm: Norm = "l2",
    boundary: Boundary = "strict",
    weights: ArrayLike | None = None,
) -> float:
    """min delta + c1 sum e + c2 sum xi + c3 sum d over trees of depth + 1 levels, every level charged.

    ``X (n, p)`` as it is, ``y (n,)`` in {-1, +1}; delta = max_t ||w_t|| / 2 in the given norm;
    ``weights (n,)`` multiply both costs of a row. ``boundary="strict"``: the best tree in which every row at
    a node above the last level has s >= 0 (right) or s <= -mu (left). ``boundary="printed"``: the paper's
    rows, s >= 0 right and s <= 0 left, so rows with s = 0 take either side (also at unsplit nodes with
    intercept 0). Relative accuracy about 1e-7. MODELS section 4.
    """
    data, sign = np.asarray(X, dtype=float), _signs(y)
    if norm not in ("l1", "l2") or boundary not in ("strict", "printed"):
        raise ValueError(f"unknown norm {norm!r} or boundary {boundary!r}")
    if not 0 < mu <= 1:
        raise ValueError("mu must lie in (0, 1]")
    weight = _row_weights(weights, len(sign))
    search = _OctSvm(data, sign, weight, depth, c1, c2, c3, mu, norm, boundary == "strict")
    return float(search.solve())


# ------------------------------------------------------------------------------------------------ MOCTSVM

Side = tuple[int, ...]  # rows
Sides = tuple[Side, Side]  # left and right of a node


def _bipartitions(rows: Side) -> Iterator[Sides]:
    """All ways to send ``rows`` left and right with a row on either side."""
    for code in range(1, 2 ** len(rows) - 1):
        right = tuple(i for k, i in enumerate(rows) if code >> k & 1)
        yield tuple(i for i in rows if i not in right), right


class _SideProgram:
    """min delta + c1 sum e over the hyperplanes of given nodes, whose rows are on given sides."""

    def __init__(self, data: Array, price: Array, mu: float, norm: Norm) -> None:
        self.data, self.price, self.mu, self.norm = data, price, mu, norm

    def __call__(self, nodes: tuple[Sides, ...]) -> float:
        p = self.data.shape[1]
        own = p + 1 + (p if self.norm == "l1" else 0)  # w, w0, (|w|) of a node
        held = sum(len(left) + len(right) for left, right in nodes)
        size = 1 + own * len(nodes) + held
        cost, rows, right_hand = np.zeros(size), [], []
        cost[0] = 1.0

        def row(bound: float, *entries: tuple[slice | int, Any]) -> None:
            rows.append(np.zeros(size))
            for at, value in entries:
                rows[-1][at] = value
            right_hand.append(bound)

        error = 1 + own * len(nodes)
        for k, (left, right) in enumerate(nodes):
            at = 1 + own * k
            for i, sign in [(i, -1.0) for i in left] + [(i, 1.0) for i in right]:
                score = (slice(at, at + p + 1), -sign * np.append(self.data[i], 1.0))
                row(-1.0, score, (error, -1.0))
                row(0.0 if sign > 0 else -self.mu, score)
                row(0.0, (error, -1.0))
                cost[error] = self.price[i]
                error += 1
            if self.norm == "l1":
                absolute = slice(at + p + 1, at + own)
                for j in range(p):
                    row(0.0, (at + j, 1.0), (at + p + 1 + j, -1.0))
                    row(0.0, (at + j, -1.0), (at + p + 1 + j, -1.0))
                row(0.0, (absolute, 1.0), (0, -2.0))
        linear, cones = len(rows), []
        if self.norm == "l2":
            for k in range(len(nodes)):
                row(0.0, (0, -2.0))
                for j in range(p):
                    row(0.0, (1 + own * k + j, -1.0))
                cones.append(p + 1)
        answer = _conic(
            sp.csc_matrix((size, size)), cost, np.array(rows), np.array(right_hand), linear, cones
        )
        return answer.value if answer.feasible else np.inf


def moctsvm_optimum(
    X: ArrayLike,
    y: ArrayLike,
    *,
    depth: int,
    c1: float,
    c2: float,
    c3: float,
    mu: float = 1e-3,
    norm: Norm = "l2",
    weights: ArrayLike | None = None,
) -> float:
    """min delta + c1 sum e + c2 sum L + c3 sum d over all ways to send the rows to the leaves of ``depth`` levels of splits.

    ``X (n, p)`` as it is, ``y (n,)`` of any classes. A row left of a node has s <= -mu and e >= 1 + s there, one on the
    right s >= 0 and e >= 1 - s; a leaf costs c2 for each row outside of its heaviest class; a node that does not split
    costs nothing. Each choice of sides is a cone program (norm l1: an LP) with the shared delta; choices are visited by a
    bound of theirs, the largest program of one of their nodes, until it reaches the best value.
    """
    data = np.asarray(X, dtype=float)
    w = _row_weights(weights, len(data))
    per_class = _class_weights(y, w)
    program = cache(_SideProgram(data, c1 * w, mu, norm))

    def trees(rows: Side, levels: int) -> list[tuple[float, tuple[Sides, ...]]]:
        """What leaves and splits cost, and the nodes that split, for every subtree of the rows."""
        total = per_class[list(rows)].sum(axis=0)
        found: list[tuple[float, tuple[Sides, ...]]] = [(c2 * float(total.sum() - total.max()), ())]
        if not levels or len(rows) < 2:
            return found
        for sides in _bipartitions(rows):
            if program((sides,)) == np.inf:
                continue
            left, right = (trees(side, levels - 1) for side in sides)
            found += [(c3 + a + b, (sides, *one, *two)) for a, one in left for b, two in right]
        return found

    def bound(tree: tuple[float, tuple[Sides, ...]]) -> float:
        return tree[0] + max((program((sides,)) for sides in tree[1]), default=0.0)

    best = np.inf
    for at_least, (fixed, nodes) in sorted((bound(t), t) for t in trees(tuple(range(len(data))), depth)):
        if at_least >= best:
            break
        best = min(best, fixed + (program(nodes) if nodes else 0.0))
    return float(best)


# ------------------------------------------------------------------------------------------------ by name


def optimum(formulation: str, X: ArrayLike, y: ArrayLike, params: dict[str, Any], **more: Any) -> float:
    """The oracle of ``formulation`` under the package's public parameter names (``mu_svm`` is ``mu``).

    ``more`` goes to the oracle as it is: ``weights``, and for OCTSVM ``boundary``.
    """
    call = dict(params)
    if "mu_svm" in call:
        call["mu"] = call.pop("mu_svm")
    if formulation == "moctsvm":
        return moctsvm_optimum(X, y, **call, **more)
    if formulation == "octsvm":
        return octsvm_optimum(X, y, **call, **more)
    if formulation == "re_svm":
        return re_svm_optimum(X, y, **call, **more)
    if formulation == "oct":
        return oct_optimum(X, y, **call, **more)
    if formulation == "oct_h":
        return oct_h_optimum(X, y, **call, **more)
    raise ValueError(f"unknown formulation {formulation!r}")
