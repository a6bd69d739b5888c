"""Top-down induction of trees of linear SVMs under a shared cap on the norm, and what these trees cost.

The cost of a node's norm is not known beforehand: δ is the largest half norm, and up to it the norms of all nodes are
free. Trees are therefore grown for a path of caps R on the norm. With R given, the cost of a subtree is that of its
top node plus those of its two halves, so that growing and pruning are one recursion. A node's hyperplane is a direction,
a norm of at most R and an intercept: directions come from linear SVMs (rows that are cheaper to relabel change their label and
the SVM is fitted again) and from the axes; for a direction, the best intercept at every norm is found exactly, by sorting the
kinks of the piecewise linear cost. Or trees are grown from linear SVMs of one C, and their norms are chosen afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..formulations.base import BoolArray, FloatArray, IntArray
from ..formulations.heap import is_below
from ..formulations.margin_trees import norms
from .budget import Budget
from .linear_svm import fit_linear_svm, fit_sparse_linear_svm
from .outlier_trimming import trimmed_svm

PATH = (1.0, 100.0, 1e4, 1e-1, 10.0)  # SVM costs C (features are in [0, 1]), the usual ones first
LENGTHS = np.array([1.0, 0.6, 0.3, 0.1])  # norms, as shares of the cap
RELABEL_ROUNDS = 3  # of an SVM and the labels that are cheaper to give up
# Of norms: the factor around the present one, and how many. Each grid is finer than the one before.
# Factors of the largest norm, finer and finer, and as many far smaller ones.
GRIDS = [
    (np.geomspace(1 / width, width, count), np.geomspace(1 / 64, 1, count))
    for width, count in ((4.0, 13), (1.15, 9), (1.02, 7), (1.003, 7))
]
COARSE_GRIDS = 2  # of them, for trees that are optimised afterwards
SLACK = 1e-9  # beyond the boundary rule, against rounding
NEXT_TO_IT, MOST_SHIFTS = 0.5, 300  # scores and number of rows that a shift of an intercept is chosen by
SMALL = 200_000  # rows times nodes up to which the scores of all rows at all nodes are computed at once


def boundary_shift(score: FloatArray, mu: float) -> float:
    """The smallest shift of ω_0 after which no row has -μ < s < 0."""
    if not ((score > -mu) & (score < 0)).any():
        return 0.0
    near = score[np.abs(score) < NEXT_TO_IT]
    if len(near) > MOST_SHIFTS:
        near = near[np.argsort(np.abs(near), kind="stable")[:MOST_SHIFTS]]
    shifts = np.concatenate([-near + SLACK, -near - mu - SLACK])
    shifts = shifts[np.argsort(np.abs(shifts), kind="stable")]
    low = np.sort(score)
    # A shift is clear where no score lies strictly between -μ - shift and -shift.
    inside = np.searchsorted(low, -shifts, "left") - np.searchsorted(low, -mu - shifts, "right")
    clear = np.flatnonzero(inside <= 0)
    return float(shifts[clear[0]]) if len(clear) else 0.0


@dataclass
class Hyperplanes:
    """A margin tree as bare arrays: ω (T, p), ω_0 (T,), split (T,), and its objective."""

    omega: FloatArray
    omega0: FloatArray
    split: BoolArray
    cost: float = np.inf

    def copy(self) -> Hyperplanes:
        """A copy with arrays of its own."""
        return Hyperplanes(self.omega.copy(), self.omega0.copy(), self.split.copy(), self.cost)


@dataclass
class Subtree:
    """A subtree of :meth:`TreeBuilder.grow`: its cost under the cap, and its hyperplanes (ω, ω_0) by node."""

    cost: float
    planes: dict[int, tuple[FloatArray, float]]


@dataclass(frozen=True)
class InductionOptions:
    """How trees are grown: under a ``cap`` on the norm, with fewer directions if ``quick``, or from linear SVMs of one ``C``.

    ``given`` are hyperplanes by node that are kept. ``trimming``: from hard-margin SVMs with outlier trimming
    (:mod:`.outlier_trimming`), whose outliers are drawn at random if ``randomised``.
    """

    cap: float = 0.0
    quick: bool = False
    C: float | None = None
    given: dict[int, tuple[FloatArray, float]] = field(default_factory=dict)
    trimming: bool = False
    randomised: bool = False


class Builder(ABC):
    """What keeps the best tree for the rows ``X`` of a table; its ``best`` costs inf before one was offered."""

    X: FloatArray
    depth: int
    B: int
    mu: float
    best: Hyperplanes

    @abstractmethod
    def value(self, planes: Hyperplanes) -> float:
        """The objective; infinite where a row goes left with a score above -μ."""

    @abstractmethod
    def unsplit(self) -> Hyperplanes:
        """The tree without a split."""

    @abstractmethod
    def side(self, rows: IntArray) -> float:
        """The intercept of a node that does not split, for the rows there."""

    def offer(self, planes: Hyperplanes | None) -> bool:
        """Keep a copy where there is a tree, and it is better than the best."""
        if planes is None:
            return False
        planes.cost = self.value(planes)
        if planes.cost < self.best.cost * (1 - 1e-9) - 1e-12:
            self.best = planes.copy()
            return True
        return False

    def with_planes(self, given: dict[int, tuple[FloatArray, float]]) -> Hyperplanes:
        """The tree that splits by these hyperplanes (ω, ω_0) by node."""
        planes = self.unsplit()
        for t, (omega, omega0) in given.items():
            planes.omega[t - 1], planes.omega0[t - 1], planes.split[t - 1] = omega, omega0, True
        return planes

    def set_sides(self, planes: Hyperplanes, clear: bool = False) -> Hyperplanes:
        """Set the intercepts of the nodes that do not split, from the root down; those of others are shifted where ``clear``.

        A shift leaves no score in (-μ, 0).
        """
        node = np.ones(len(self.X), dtype=np.int64)
        for _ in range(self.depth + 1):
            for t in np.unique(node).tolist():
                rows = np.flatnonzero(node == t)
                if not planes.split[t - 1]:
                    planes.omega0[t - 1] = self.side(rows)
                s = self.X[rows] @ planes.omega[t - 1] + planes.omega0[t - 1]
                if clear and planes.split[t - 1] and t <= self.B and self.mu:
                    shift = boundary_shift(s, self.mu)
                    planes.omega0[t - 1] += shift
                    s = s + shift
                node[rows] = 2 * t + (s >= 0)
        return planes

    def clear_boundaries(self, planes: Hyperplanes) -> Hyperplanes:
        """Shift intercepts from the root down until no score is in (-μ, 0)."""
        return self.set_sides(planes, clear=True)


class TreeBuilder(Builder):
    """Grows, evaluates and prunes trees for the rows of a table, and keeps the best one; everything in scaled units.

    ``single`` means RE-SVM: one node, its own margin term, no cost of a split. Linear SVMs are cached by their rows and C.
    """

    def __init__(
        self,
        X: FloatArray,
        sign: FloatArray,
        weights: FloatArray,
        params: Any,
        budget: Budget,
        seed: int,
    ) -> None:
        self.X, self.sign, self.weights = X, sign, weights
        self.single = not hasattr(params, "depth")
        self.depth = 0 if self.single else int(params.depth)
        self.T, self.B = 2 ** (self.depth + 1) - 1, 2**self.depth - 1
        self.c1, self.c2 = float(params.c1), float(params.c2)
        self.c3 = 0.0 if self.single else float(params.c3)
        self.norm = params.norm
        self.margin: Callable[[float], float] = params.margin_cost  # of the largest norm
        self.mu = 0.0 if self.single else float(params.boundary or 0.0)
        self.budget = budget
        self.rng = np.random.default_rng(seed)
        self._linear_svms: dict[tuple[bytes, float], list[tuple[FloatArray, float]]] = {}
        self.best = self.unsplit()

    # -- costs ----------------------------------------------------------------------------------------------

    def norm_costing(self, cost: float) -> float:
        """The norm whose margin term is ``cost``."""
        if not self.single:
            return 2 * cost
        return float(np.sqrt(2 * cost)) if self.norm == "l2" else cost

    def loss(self, ys: FloatArray) -> FloatArray:
        """The cheaper of error and relabelling, for scores times labels."""
        return np.minimum(self.c1 * np.maximum(0.0, 1.0 - ys), self.c2 + self.c1 * np.maximum(0.0, 1.0 + ys))

    def constant(self, rows: IntArray) -> tuple[float, float]:
        """Cost of a constant classifier at one level, and its side."""
        w, y = self.weights[rows], self.sign[rows]
        plus, minus = float(w[y > 0].sum()), float(w[y < 0].sum())
        return min(plus, minus) * min(2 * self.c1, self.c2), 1.0 if plus >= minus else -1.0

    def side(self, rows: IntArray) -> float:
        """The majority class."""
        return self.constant(rows)[1]

    def route(self, planes: Hyperplanes) -> tuple[IntArray, FloatArray]:
        """Nodes (n, D + 1) and the scores there."""
        n = len(self.X)
        node = np.ones((n, self.depth + 1), dtype=np.int64)
        score = np.empty((n, self.depth + 1))
        if n * self.T <= SMALL:
            S = self.X @ planes.omega.T + planes.omega0
            all_rows = np.arange(n)
            for level in range(self.depth + 1):
                score[:, level] = S[all_rows, node[:, level] - 1]
                if level < self.depth:
                    node[:, level + 1] = 2 * node[:, level] + (score[:, level] >= 0)
            return node, score
        for level in range(self.depth + 1):
            for t in np.unique(node[:, level]):
                rows = np.flatnonzero(node[:, level] == t)
                score[rows, level] = self.X[rows] @ planes.omega[t - 1] + planes.omega0[t - 1]
            if level < self.depth:
                node[:, level + 1] = 2 * node[:, level] + (score[:, level] >= 0)
        return node, score

    def value(self, planes: Hyperplanes) -> float:
        """The objective; infinite where a row goes left with a score above -μ."""
        _, score = self.route(planes)
        if self.mu and ((score[:, :-1] < 0) & (score[:, :-1] > -self.mu)).any():
            return np.inf
        size = float(norms(planes.omega, self.norm).max())
        paid = self.weights @ self.loss(self.sign[:, None] * score)
        return self.margin(size) + self.c3 * float(planes.split.sum()) + float(paid.sum())

    def unsplit(self) -> Hyperplanes:
        """The tree without a split."""
        omega0 = np.full(self.T, self.side(np.arange(len(self.X))))
        return Hyperplanes(np.zeros((self.T, self.X.shape[1])), omega0, np.zeros(self.T, dtype=bool))

    # -- one node -------------------------------------------------------------------------------------------

    def unit(self, U: FloatArray) -> FloatArray:
        """Rows of ``U`` brought to norm 1; zero rows are dropped."""
        size = norms(U, self.norm)
        return U[size > 1e-12] / size[size > 1e-12, None]

    def intercepts(
        self, along: FloatArray, y: FloatArray, w: FloatArray, lengths: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """:func:`best_intercepts` for the costs of this table."""
        return best_intercepts(along, y, w, lengths, self.c1, self.c2)

    def linear_svms(self, rows: IntArray, C: float) -> list[tuple[FloatArray, float]]:
        """Linear SVMs (ω, ω_0) for these rows: relabel what is cheaper to relabel, fit again, and so on."""
        key = (rows.tobytes(), C)
        if key in self._linear_svms:
            return self._linear_svms[key]
        X, y, w = self.X[rows], self.sign[rows], self.weights[rows]
        found: list[tuple[FloatArray, float]] = []
        label = y
        for _ in range(RELABEL_ROUNDS):
            if self._linear_svms and self.budget.tick():
                return found  # and not cached: it is incomplete
            omega, omega0 = fit_linear_svm(X, label, w, C)
            if not omega.any():
                break
            found.append((omega, omega0))
            ys = y * (X @ omega + omega0)
            fresh = np.where(self.keeps_label(ys), y, -y)
            if (fresh == label).all():
                break
            label = fresh
        if self.norm == "l1" and not self.budget.tick():
            sparse = fit_sparse_linear_svm(X, y, w, C)
            if sparse.any():
                found.append((sparse, 0.0))
        self._linear_svms[key] = found
        return found

    def trimmed_svms(self, rows: IntArray, options: InductionOptions) -> list[tuple[FloatArray, float]]:
        """A hard-margin SVM with outlier trimming for these rows; none once the budget is used up."""
        assert options.C is not None
        key = (rows.tobytes(), -options.C)
        if not options.randomised and key in self._linear_svms:
            return self._linear_svms[key]
        if self.budget.tick():
            return []
        omega, omega0 = trimmed_svm(
            self.X[rows],
            self.sign[rows],
            self.weights[rows],
            options.C,
            self.rng if options.randomised else None,
            self.budget.tick,
        )
        found = [(omega, omega0)] if omega.any() else []
        if not options.randomised:
            self._linear_svms[key] = found
        return found

    def svm_costs(self, quick: bool, cap: float) -> tuple[float, ...]:
        """SVM costs C to try: that of an SVM whose norm alone is δ (to the next power of ten), 10, then all others."""
        C = self.c1 * (2 * cap if not self.single else 1.0)
        own = float(10.0 ** np.clip(np.ceil(np.log10(max(C, 0.1))), -1, 4))
        return (own, 10.0) if quick else tuple(dict.fromkeys((own, *PATH)))

    def directions(self, rows: IntArray, quick: bool, cap: float) -> FloatArray:
        """Unit normal vectors (k, p) to try for these rows: of linear SVMs, and from mean to mean of the classes."""
        X, y, w = self.X[rows], self.sign[rows], self.weights[rows]
        found = [omega for C in self.svm_costs(quick, cap) for omega, _ in self.linear_svms(rows, C)]
        if w[y > 0].sum() > 0 and w[y < 0].sum() > 0:
            plus, minus = y > 0, y < 0
            found.append(
                np.average(X[plus], axis=0, weights=w[plus]) - np.average(X[minus], axis=0, weights=w[minus])
            )
        return self.unit(np.array(found).reshape(-1, X.shape[1]))

    def axes(self, rows: IntArray) -> FloatArray:
        """Unit vectors along the features and against them, for the features that vary."""
        used = np.flatnonzero(np.ptp(self.X[rows], axis=0) > 0)
        E = np.eye(self.X.shape[1])[used]
        return np.concatenate([E, -E])

    def best_hyperplanes(
        self, rows: IntArray, options: InductionOptions
    ) -> list[tuple[float, FloatArray, float]]:
        """The best few hyperplanes for these rows: cost, ω, ω_0."""
        y, w = self.sign[rows], self.weights[rows]
        if options.C is not None:
            found = (
                self.trimmed_svms(rows, options) if options.trimming else self.linear_svms(rows, options.C)
            )
            if not found:
                return []
            S = self.X[rows] @ np.array([omega for omega, _ in found]).T + [omega0 for _, omega0 in found]
            paid = w @ self.loss(y[:, None] * S)
            if self.single:
                paid = paid + [self.margin(float(norms(omega[None, :], self.norm)[0])) for omega, _ in found]
            k = len(found) - 1 if self.norm == "l2" and not self.single else int(np.argmin(paid))
            return [(float(paid[k]), *found[k])]
        U = self.directions(rows, options.quick, options.cap)
        if not options.quick:
            U = np.concatenate([U, self.axes(rows)])
        if not len(U):
            return []
        along = U @ self.X[rows].T
        lengths = options.cap * LENGTHS[: 2 if options.quick else len(LENGTHS)]
        omega0, cost = self.intercepts(along, y, w, lengths)
        out = []
        for flat in np.argsort(cost, axis=None, kind="stable")[:3]:
            k, g = divmod(int(flat), len(lengths))
            out.append((float(cost[k, g]), U[k] * lengths[g], float(omega0[k, g])))
        return out

    # -- trees ----------------------------------------------------------------------------------------------

    def grow(self, t: int, rows: IntArray, options: InductionOptions, limit: float) -> Subtree:
        """The best subtree found at node ``t`` for these rows, which may be a leaf; a subtree costs less than ``limit``."""
        levels = self.depth + 1 - (t.bit_length() - 1)
        alone, _ = self.constant(rows)
        best = Subtree(levels * alone, {})
        if best.cost <= self.c3 or limit <= self.c3:
            return best
        limit = min(limit, best.cost)
        if t in options.given:
            omega, omega0 = options.given[t]
            s = self.X[rows] @ omega + omega0
            candidates = [(float(self.weights[rows] @ self.loss(self.sign[rows] * s)), omega, omega0)]
        else:
            candidates = self.best_hyperplanes(rows, options)
        for here, omega, omega0 in candidates[: 1 if options.quick or t > self.B else 2]:
            if self.c3 + here >= limit:
                continue
            if t > self.B:
                best, limit = Subtree(self.c3 + here, {t: (omega, omega0)}), self.c3 + here
                continue
            s = self.X[rows] @ omega + omega0
            shift = boundary_shift(s, self.mu)
            if shift:
                s, omega0 = s + shift, omega0 + shift
                here = float(self.weights[rows] @ self.loss(self.sign[rows] * s))
            rest = limit - here - self.c3
            left = self.grow(2 * t, rows[s < 0], options, rest)
            if left.cost >= rest:
                continue
            right = self.grow(2 * t + 1, rows[s >= 0], options, rest - left.cost)
            cost = self.c3 + here + left.cost + right.cost
            if cost < limit:
                best, limit = Subtree(cost, {t: (omega, omega0), **left.planes, **right.planes}), cost
        return best

    def assemble(self, subtree: Subtree) -> Hyperplanes:
        """The subtree of the root as a tree; nodes that do not split take the majority class of their rows."""
        return self.set_sides(self.with_planes(subtree.planes))

    def grow_and_offer(self, options: InductionOptions) -> bool:
        """Grow a tree and optimise its norms; whether it is the best so far."""
        # Norms of linear SVMs are larger or smaller than they will be: the cost is no bound yet.
        limit = self.best.cost if options.C is None else np.inf
        subtree = self.grow(1, np.arange(len(self.X)), options, limit)
        return bool(subtree.planes) and self.offer(self.rescaled(self.assemble(subtree)))

    # -- norms, labels, pruning -----------------------------------------------------------------------------

    def rescaled(self, planes: Hyperplanes, coarse: bool = False) -> Hyperplanes | None:
        """The tree with the best norms: over a grid of largest norms, every node has its best norm up to it.

        ``coarse``: to a few hundredths, for trees that are optimised afterwards. None where all norms are 0.
        """
        size = norms(planes.omega, self.norm)
        node, _ = self.route(planes)
        nodes = [int(t) for t in np.flatnonzero(planes.split & (size > 0)) + 1]
        if not nodes:
            return planes
        fresh = planes.copy()
        for factors, smaller in GRIDS[: COARSE_GRIDS if coarse else len(GRIDS)]:
            largest = float(norms(fresh.omega, self.norm).max())
            if largest == 0:
                return None
            grid = largest * factors
            if self.margin(largest) > self.best.cost:
                # The margin term alone is above the best cost: far smaller norms are tried as well.
                grid = np.concatenate([grid, self.norm_costing(self.best.cost) * smaller])
            grid = np.sort(np.concatenate([grid, size[size > 0]]))
            table, places = np.zeros((len(nodes), len(grid))), np.zeros((len(nodes), len(grid)))
            for k, t in enumerate(nodes):
                rows = np.flatnonzero(node[:, t.bit_length() - 1] == t)
                y, w = self.sign[rows], self.weights[rows]
                along = self.X[rows] @ (planes.omega[t - 1] / size[t - 1])
                if not len(rows):
                    continue
                if t > self.B:
                    omega0, cost = self.intercepts(along[None, :], y, w, grid)
                    table[k], places[k] = cost[0], omega0[0]
                else:
                    at = planes.omega0[t - 1] / size[t - 1]
                    s = (along + at)[None, :] * grid[:, None]
                    table[k], places[k] = self.loss(y * s) @ w, grid * at
                    left = (along + at) < 0
                    if left.any():
                        table[k][s[:, left].max(axis=1) > -self.mu] = np.inf
            lowest = np.minimum.accumulate(table, axis=1)
            total = np.array([self.margin(float(r)) for r in grid]) + lowest.sum(axis=0)
            g = int(np.argmin(total))
            if not np.isfinite(total[g]):
                return planes
            for k, t in enumerate(nodes):
                pick = int(np.argmin(table[k, : g + 1]))
                fresh.omega[t - 1] = planes.omega[t - 1] * (grid[pick] / size[t - 1])
                fresh.omega0[t - 1] = places[k, pick]
        return fresh

    def rescale(self) -> bool:
        """Optimise the norms of the best tree; whether it gets better."""
        return self.offer(self.rescaled(self.best))

    def prune(self) -> bool:
        """Take out subtrees from the last level up where that is better, on a large tree while there is time; whether any is."""
        done, large = False, len(self.X) * self.T > SMALL
        for t in range(self.T, 0, -1):
            if not self.best.split[t - 1]:
                continue
            if large and self.budget.overdue():
                break
            done = self.offer(self.without(self.best, t)) or done
        return done

    def cheaper_labels(self, score: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """The cheaper label of every row, or of some ``rows``, on every level: for scores (n, levels) as ±1."""
        sign = (self.sign if rows is None else self.sign[rows])[:, None]
        found: FloatArray = np.where(self.keeps_label(sign * score), sign, -sign)
        return found

    def keeps_label(self, ys: FloatArray) -> BoolArray:
        """Where keeping the label costs no more than giving it up, for scores times labels."""
        kept: BoolArray = self.c1 * np.maximum(0, 1 - ys) <= self.c2 + self.c1 * np.maximum(0, 1 + ys)
        return kept

    def without(self, planes: Hyperplanes, t: int) -> Hyperplanes:
        """The tree without the subtree at ``t``."""
        fresh = planes.copy()
        below = [t]
        for s in below:
            below += [c for c in (2 * s, 2 * s + 1) if c <= self.T]
        for s in below:
            fresh.split[s - 1], fresh.omega[s - 1] = False, 0.0
        return self.set_sides(fresh)

    def with_hyperplane(self, planes: Hyperplanes, t: int, omega: FloatArray, omega0: float) -> Hyperplanes:
        """The tree with another hyperplane at ``t`` and the subtrees below it grown anew."""
        cap = max(float(norms(planes.omega, self.norm).max()), float(norms(omega[None, :], self.norm)[0]))
        given = outside(planes, t) | {t: (omega, omega0)}
        options = InductionOptions(cap, True, None, given)
        return self.assemble(self.grow(1, np.arange(len(self.X)), options, np.inf))


def best_intercepts(
    along: FloatArray, y: FloatArray, w: FloatArray, lengths: FloatArray, c1: float, c2: float
) -> tuple[FloatArray, FloatArray]:
    """Best intercept and its cost (k, L) for scores length·along + ω_0; ``along (k, m)`` of k directions.

    In ω_0 the cost is c2·Σ_{y=+1} w plus a sum of ramps Δ·max(0, ω_0 - place): one for each kink of each row.
    """
    if c1 == 0:
        shape = (len(along), len(lengths))
        return np.zeros(shape), np.zeros(shape)
    # Kinks of the loss in u = y s, with the change of slope there, from u = -∞ on.
    if c2 < 2 * c1:
        kinks: tuple[tuple[float, float], ...] = (
            (-1.0, c1),
            (-c2 / (2 * c1), -2 * c1),
            (1.0, c1),
        )
    else:
        kinks = ((1.0 - c2 / c1, -c1), (1.0, c1))
    s = along[:, None, :] * lengths[None, :, None]
    place = np.concatenate([y * u - s for u, _ in kinks], axis=2)
    change = np.concatenate([w * d for _, d in kinks])
    shape, many = place.shape[:2], place.shape[2]
    # A row for each direction and length, and plain indices: most calls are so tiny that calls of numpy are what they cost.
    place = place.reshape(-1, many)
    order = place.argsort(axis=1)
    every = np.arange(len(place))
    place, slope = place[every[:, None], order], change[order].cumsum(axis=1)
    cost = np.zeros_like(place)
    np.cumsum(slope[:, :-1] * (place[:, 1:] - place[:, :-1]), axis=1, out=cost[:, 1:])
    cost += c2 * float(w[y > 0].sum())
    at = cost.argmin(axis=1)
    return place[every, at].reshape(shape), cost[every, at].reshape(shape)


def outside(planes: Hyperplanes, t: int) -> dict[int, tuple[FloatArray, float]]:
    """Hyperplanes (ω, ω_0) by node of a tree without its subtree at ``t``."""
    return {
        int(s) + 1: (planes.omega[s], float(planes.omega0[s]))
        for s in np.flatnonzero(planes.split)
        if not is_below(int(s) + 1, t)
    }
