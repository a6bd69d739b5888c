"""Starts for the SVM models: trees of support vector machines under a shared cap on the norm, then local search.

What a unit of margin is worth is not known beforehand: δ is the largest half norm, so all nodes may grow to it for
free. Trees are therefore grown for a path of caps R on the norm. With R given, the cost of a subtree is that of its
top node plus those of its two halves, so that growing and pruning are one recursion. A node's hyperplane is a direction,
a length of at most R and an intercept: directions come from support vector machines (rows that are cheaper to
relabel change sides and the machine is fitted again) and from the axes; for a direction, the best intercept at every
length is found exactly, by sorting the kinks of the piecewise linear cost.

On small tables trees whose root gives up few labels join them (:mod:`.few_labels`).

The best tree is then improved: all lengths together, single nodes along subgradients, random changes and machines
fitted anew with the other nodes kept, all hyperplanes together for the routing and the labels as they are or with a few
of them changed (:mod:`.structure_search`), and pruning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formulations._svm import norms
from ..formulations.base import BoolArray, Data, FloatArray, IntArray
from ..formulations.trees import MarginTree
from . import few_labels
from .axis_search import sample
from .machines import LARGE, fit_sparse_svm, fit_svm
from .separators import separator
from .structure_search import Search

if TYPE_CHECKING:
    from . import Budget

PATH = (
    1.0,
    100.0,
    1e4,
    1e-1,
    10.0,
)  # SVM costs C, in multiples of 1 (features in [0, 1]), the usual ones first
SEPARATING = (100.0, 1e4)  # the same for machines that give rows up one by one
COSTS = (1.0, 100.0, 10.0, 1e4, 1e3, 1e-1)  # of trees grown from the machines of one C
CAPS = np.geomspace(0.5, 2e4, 12)  # norms
LOPSIDED = [
    (factor, dearer, side) for factor in (3.0, 10.0, 1.0) for dearer in (2.0, 4.0) for side in (1.0, -1.0)
]
LENGTHS = np.array([1.0, 0.6, 0.3, 0.1])  # of a normal vector, as shares of the cap
RELABEL_ROUNDS = 3
TRIES = 24  # directions looked at together
SETTLE_AFTER, PROMISING = 4, 1.05  # steps without success, and how much dearer than the best
KICK_AFTER = 15  # steps of the local search without success
PROPOSALS = 6  # sets of labels of which the best is taken
PATIENCE = 2000  # steps without a better tree; fewer where a step takes longer, from 200 rows on
SAMPLE_STEPS = 400
FEW_STEPS = 600  # sets of labels and machines below them
FULL_PASSES = 3  # over the nodes, on all rows of a large table
SLACK = 1e-9
KINDS = ("rescale", "refit", "regrow", "prune", "change", "step", "leap", "separate", "replace")  # of steps
LIKELY = np.array([1.0, 3.0, 1.0, 0.3, 2.0, 1.5, 0.5, 1.0, 2.0])  # how often before any has paid


def clear_of_the_plane(score: FloatArray, mu: float) -> float:
    """The smallest shift of ω_0 after which no row has -μ < s < 0."""
    if not ((score > -mu) & (score < 0)).any():
        return 0.0
    near = score[np.abs(score) < 0.5]
    if len(near) > 300:
        near = near[np.argsort(np.abs(near), kind="stable")[:300]]
    shifts = np.concatenate([-near + SLACK, -near - mu - SLACK])
    shifts = shifts[np.argsort(np.abs(shifts), kind="stable")]
    low = np.sort(score)
    # A shift is clear where no score lies strictly between -μ - shift and -shift.
    inside = np.searchsorted(low, -shifts, "left") - np.searchsorted(low, -mu - shifts, "right")
    clear = np.flatnonzero(inside <= 0)
    return float(shifts[clear[0]]) if len(clear) else 0.0


@dataclass
class Planes:
    """A margin tree as bare arrays: ω (T, p), ω_0 (T,), split (T,), and its objective."""

    omega: FloatArray
    omega0: FloatArray
    split: BoolArray
    cost: float = np.inf

    def copy(self) -> Planes:
        """Arrays of its own."""
        return Planes(self.omega.copy(), self.omega0.copy(), self.split.copy(), self.cost)


@dataclass
class Grown:
    """A subtree of :meth:`Workshop.grow`: its cost under the cap, and its planes by node."""

    cost: float
    planes: dict[int, tuple[FloatArray, float]]


@dataclass(frozen=True)
class Growth:
    """How trees are grown: under a cap on the norm, with fewer directions if ``quick``, or from the machines of one C.

    ``separating``: from machines that give rows up one by one (:mod:`.separators`), by chance among the next ones with ``chance``.
    """

    cap: float = 0.0
    quick: bool = False
    C: float | None = None
    fixed: dict[int, tuple[FloatArray, float]] = field(default_factory=dict)
    separating: bool = False
    chance: bool = False


class Workshop:
    """Rows, costs and what was computed for sets of rows; everything in scaled units.

    ``single`` means RE-SVM: one node, its own margin term, no price of a split.
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
        self.mu = 0.0 if self.single else float(params.boundary or 0.0)
        self.budget = budget
        self.rng = np.random.default_rng(seed)
        self._machines: dict[tuple[bytes, float], list[tuple[FloatArray, float]]] = {}
        self.best: Planes | None = None

    # -- costs ----------------------------------------------------------------------------------------------

    def margin(self, size: float) -> float:
        """The margin term for a largest norm."""
        if not self.single:
            return size / 2
        return size**2 / 2 if self.norm == "l2" else size

    def loss(self, ys: FloatArray) -> FloatArray:
        """The cheaper of error and relabelling."""
        return np.minimum(self.c1 * np.maximum(0.0, 1.0 - ys), self.c2 + self.c1 * np.maximum(0.0, 1.0 + ys))

    def constant(self, rows: IntArray) -> tuple[float, float]:
        """Cost of a constant classifier at one level, and its side."""
        w, y = self.weights[rows], self.sign[rows]
        plus, minus = float(w[y > 0].sum()), float(w[y < 0].sum())
        return min(plus, minus) * min(2 * self.c1, self.c2), 1.0 if plus >= minus else -1.0

    def route(self, planes: Planes) -> tuple[IntArray, FloatArray]:
        """Nodes (n, D + 1) and the scores there."""
        n = len(self.X)
        node = np.ones((n, self.depth + 1), dtype=np.int64)
        score = np.empty((n, self.depth + 1))
        if n * self.T <= 200_000:
            S = self.X @ planes.omega.T + planes.omega0
            everyone = np.arange(n)
            for level in range(self.depth + 1):
                score[:, level] = S[everyone, node[:, level] - 1]
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

    def value(self, planes: Planes) -> float:
        """The objective; infinite where a row goes left within μ of a plane."""
        _, score = self.route(planes)
        if self.mu and ((score[:, :-1] < 0) & (score[:, :-1] > -self.mu)).any():
            return np.inf
        size = float(norms(planes.omega, self.norm).max())
        paid = self.weights @ self.loss(self.sign[:, None] * score)
        return self.margin(size) + self.c3 * float(planes.split.sum()) + float(paid.sum())

    def offer(self, planes: Planes) -> bool:
        """Keep a copy where it is better than the best."""
        planes.cost = self.value(planes)
        if self.best is None or planes.cost < self.best.cost * (1 - 1e-9) - 1e-12:
            self.best = planes.copy()
            return True
        return False

    def unsplit(self) -> Planes:
        """No split at all."""
        _, side = self.constant(np.arange(len(self.X)))
        return Planes(
            np.zeros((self.T, self.X.shape[1])), np.full(self.T, side), np.zeros(self.T, dtype=bool)
        )

    # -- one node -------------------------------------------------------------------------------------------

    def unit(self, U: FloatArray) -> FloatArray:
        """Rows of ``U`` brought to norm 1; zero rows are dropped."""
        size = norms(U, self.norm)
        return U[size > 1e-12] / size[size > 1e-12, None]

    def intercepts(
        self, along: FloatArray, y: FloatArray, w: FloatArray, lengths: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Best intercept and its cost (k, L) for scores length·along + ω_0; ``along (k, m)`` of k directions.

        In ω_0 the cost is c2·Σ_{y=+1} w plus a sum of ramps Δ·max(0, ω_0 - place): one for each kink of each row.
        """
        if self.c1 == 0:
            shape = (len(along), len(lengths))
            return np.zeros(shape), np.zeros(shape)
        # Kinks of the loss in u = y s, with the change of slope there, from u = -∞ on.
        if self.c2 < 2 * self.c1:
            kinks: tuple[tuple[float, float], ...] = (
                (-1.0, self.c1),
                (-self.c2 / (2 * self.c1), -2 * self.c1),
                (1.0, self.c1),
            )
        else:
            kinks = ((1.0 - self.c2 / self.c1, -self.c1), (1.0, self.c1))
        s = along[:, None, :] * lengths[None, :, None]
        place = np.concatenate([y * u - s for u, _ in kinks], axis=2)
        change = np.concatenate([w * d for _, d in kinks])
        order = np.argsort(place, axis=2)
        place, change = np.take_along_axis(place, order, axis=2), change[order]
        slope = np.cumsum(change, axis=2)
        base = self.c2 * float(w[y > 0].sum())
        step = slope[:, :, :-1] * np.diff(place, axis=2)
        cost = np.concatenate([np.zeros_like(step[:, :, :1]), np.cumsum(step, axis=2)], axis=2) + base
        at = np.argmin(cost, axis=2)
        pick = at[:, :, None]
        return (
            np.take_along_axis(place, pick, axis=2)[:, :, 0],
            np.take_along_axis(cost, pick, axis=2)[:, :, 0],
        )

    def machines(self, rows: IntArray, C: float) -> list[tuple[FloatArray, float]]:
        """Support vector machines for these rows (ω, ω_0): relabel what is cheaper to relabel, fit again, and so on."""
        key = (rows.tobytes(), C)
        if key in self._machines:
            return self._machines[key]
        X, y, w = self.X[rows], self.sign[rows], self.weights[rows]
        found: list[tuple[FloatArray, float]] = []
        label = y
        for _ in range(RELABEL_ROUNDS):
            if self._machines and self.budget.spent():
                return found  # and not kept: it is not all there is
            omega, omega0 = fit_svm(X, label, w, C)
            if not omega.any():
                break
            found.append((omega, omega0))
            ys = y * (X @ omega + omega0)
            give_up = self.c2 + self.c1 * np.maximum(0, 1 + ys) < self.c1 * np.maximum(0, 1 - ys)
            fresh = np.where(give_up, -y, y)
            if (fresh == label).all():
                break
            label = fresh
        if self.norm == "l1" and not self.budget.spent():
            sparse = fit_sparse_svm(X, y, w, C)
            if sparse.any():
                found.append((sparse, 0.0))
        self._machines[key] = found
        return found

    def separators(self, rows: IntArray, how: Growth) -> list[tuple[FloatArray, float]]:
        """One machine for these rows that gives up few of them; none once the budget is spent."""
        assert how.C is not None
        key = (rows.tobytes(), -how.C)
        if not how.chance and key in self._machines:
            return self._machines[key]
        if self.budget.spent():
            return []
        omega, omega0 = separator(
            self.X[rows],
            self.sign[rows],
            self.weights[rows],
            how.C,
            self.rng if how.chance else None,
            self.budget.spent,
        )
        found = [(omega, omega0)] if omega.any() else []
        if not how.chance:
            self._machines[key] = found
        return found

    def path(self, quick: bool, cap: float) -> tuple[float, ...]:
        """SVM costs to try: that of a machine which sets δ alone (to the next power of ten), 10, then all others."""
        C = self.c1 * (2 * cap if not self.single else 1.0)
        own = float(10.0 ** np.clip(np.ceil(np.log10(C)), -1, 4))
        return (own, 10.0) if quick else tuple(dict.fromkeys((own, *PATH)))

    def directions(self, rows: IntArray, quick: bool, cap: float) -> FloatArray:
        """Unit normal vectors (k, p) worth trying for these rows."""
        X, y, w = self.X[rows], self.sign[rows], self.weights[rows]
        found = [omega for C in self.path(quick, cap) for omega, _ in self.machines(rows, C)]
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

    def node(self, rows: IntArray, how: Growth) -> list[tuple[float, FloatArray, float]]:
        """The cheapest hyperplanes for these rows: cost, ω, ω_0."""
        y, w = self.sign[rows], self.weights[rows]
        if how.C is not None:
            found = self.separators(rows, how) if how.separating else self.machines(rows, how.C)
            if not found:
                return []
            S = self.X[rows] @ np.array([omega for omega, _ in found]).T + [omega0 for _, omega0 in found]
            paid = w @ self.loss(y[:, None] * S)
            if self.single:
                paid = paid + [self.margin(float(norms(omega[None, :], self.norm)[0])) for omega, _ in found]
            k = len(found) - 1 if self.norm == "l2" and not self.single else int(np.argmin(paid))
            return [(float(paid[k]), *found[k])]
        U = self.directions(rows, how.quick, how.cap)
        if not how.quick:
            U = np.concatenate([U, self.axes(rows)])
        if not len(U):
            return []
        along = U @ self.X[rows].T
        lengths = how.cap * LENGTHS[: 2 if how.quick else len(LENGTHS)]
        omega0, cost = self.intercepts(along, y, w, lengths)
        out = []
        for flat in np.argsort(cost, axis=None, kind="stable")[:3]:
            k, g = divmod(int(flat), len(lengths))
            out.append((float(cost[k, g]), U[k] * lengths[g], float(omega0[k, g])))
        return out

    # -- trees ----------------------------------------------------------------------------------------------

    def grow(self, t: int, rows: IntArray, how: Growth, limit: float) -> Grown:
        """The best subtree found at node ``t`` for these rows; it may be a leaf. Below ``limit`` or not at all."""
        levels = self.depth + 1 - (t.bit_length() - 1)
        alone, _ = self.constant(rows)
        best = Grown(levels * alone, {})
        if best.cost <= self.c3 or limit <= self.c3:
            return best
        limit = min(limit, best.cost)
        if t in how.fixed:
            omega, omega0 = how.fixed[t]
            s = self.X[rows] @ omega + omega0
            options = [(float(self.weights[rows] @ self.loss(self.sign[rows] * s)), omega, omega0)]
        else:
            options = self.node(rows, how)
        for here, omega, omega0 in options[: 1 if how.quick or t > self.B else 2]:
            if self.c3 + here >= limit:
                continue
            if t > self.B:
                best, limit = Grown(self.c3 + here, {t: (omega, omega0)}), self.c3 + here
                continue
            s = self.X[rows] @ omega + omega0
            shift = clear_of_the_plane(s, self.mu)
            if shift:
                s, omega0 = s + shift, omega0 + shift
                here = float(self.weights[rows] @ self.loss(self.sign[rows] * s))
            rest = limit - here - self.c3
            left = self.grow(2 * t, rows[s < 0], how, rest)
            if left.cost >= rest:
                continue
            right = self.grow(2 * t + 1, rows[s >= 0], how, rest - left.cost)
            cost = self.c3 + here + left.cost + right.cost
            if cost < limit:
                best, limit = Grown(cost, {t: (omega, omega0), **left.planes, **right.planes}), cost
        return best

    def assemble(self, grown: Grown) -> Planes:
        """The subtree at the root as a tree; nodes that do not split say the heavier class of their rows."""
        planes = self.unsplit()
        for t, (omega, omega0) in grown.planes.items():
            planes.omega[t - 1], planes.omega0[t - 1], planes.split[t - 1] = omega, omega0, True
        self.say_heavier(planes)
        return planes

    def say_heavier(self, planes: Planes) -> None:
        """Intercepts ±1 of the nodes that do not split: the heavier class of the rows that come there."""
        node = np.ones(len(self.X), dtype=np.int64)
        for level in range(self.depth + 1):
            for t in np.unique(node):
                rows = np.flatnonzero(node == t)
                if not planes.split[t - 1]:
                    planes.omega0[t - 1] = self.constant(rows)[1]
                if level < self.depth:
                    s = self.X[rows] @ planes.omega[t - 1] + planes.omega0[t - 1]
                    node[rows] = 2 * t + (s >= 0)

    def try_growth(self, how: Growth) -> bool:
        """Grow a tree; whether it is the best so far, once its lengths are."""
        assert self.best is not None
        # Grown from machines, vectors are longer or shorter than they will be: what it costs says little yet.
        limit = self.best.cost if how.C is None else np.inf
        grown = self.grow(1, np.arange(len(self.X)), how, limit)
        if not grown.planes:
            return False
        planes = self.rescaled(self.assemble(grown))
        return planes is not None and self.offer(planes)

    # -- improving ------------------------------------------------------------------------------------------

    def rescaled(self, planes: Planes) -> Planes | None:
        """All lengths together: the cheapest largest norm, every node at its best length up to it."""
        size = norms(planes.omega, self.norm)
        node, _ = self.route(planes)
        nodes = [int(t) for t in np.flatnonzero(planes.split & (size > 0)) + 1]
        if not nodes:
            return planes
        fresh = planes.copy()
        for width, count in ((4.0, 13), (1.15, 9), (1.02, 7), (1.003, 7)):
            largest = float(norms(fresh.omega, self.norm).max())
            if largest == 0:
                return None
            grid = np.sort(np.concatenate([largest * np.geomspace(1 / width, width, count), size[size > 0]]))
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
        """Whether other lengths of the best tree's vectors are better."""
        assert self.best is not None
        fresh = self.rescaled(self.best)
        return fresh is not None and self.offer(fresh)

    def prune(self) -> bool:
        """Take out splits from the last level up, as long as that pays."""
        assert self.best is not None
        done = False
        for t in range(self.T, 0, -1):
            if not self.best.split[t - 1]:
                continue
            done = self.offer(self.without(self.best, t)) or done
        return done

    def change(self, t: int, spread: float) -> bool:
        """Other hyperplanes at node ``t``, the other nodes kept: along the subgradient, and at random."""
        assert self.best is not None
        best = self.best
        level = t.bit_length() - 1
        node, score = self.route(best)
        rows = np.flatnonzero(node[:, level] == t)
        if not len(rows):
            return False
        X, y, w = self.X[rows], self.sign[rows], self.weights[rows]
        sizes = norms(best.omega, self.norm)
        size, cap = float(sizes[t - 1]), float(sizes.max())
        if size == 0:
            return False
        u = best.omega[t - 1] / size
        ys = y * score[rows, level]
        kept = self.c1 * np.maximum(0, 1 - ys) <= self.c2 + self.c1 * np.maximum(0, 1 + ys)
        pull = np.where(kept, np.where(ys < 1, 1.0, 0.0), np.where(ys > -1, -1.0, 0.0)) * w * y
        gradient = (pull * X.T).sum(axis=1) - pull.sum() * X.mean(axis=0)
        length = float(np.sqrt(gradient @ gradient))
        p = X.shape[1]
        tries = int(np.clip(200_000 // len(rows), 4, TRIES))
        noise = self.rng.normal(size=(tries, p)) / np.sqrt(p)
        noise *= self.rng.random((tries, p)) < self.rng.choice([1.0, 0.3, 1.5 / p], size=(tries, 1))
        noise *= spread * np.sqrt(float(u @ u)) * self.rng.random((tries, 1)) * 2
        U = u + noise
        if length > 0:
            steps = np.array([0.01, 0.03, 0.1, 0.3]) * min(1.0, 4 * spread) * np.sqrt(float(u @ u)) / length
            U[: len(steps)] = u + steps[:, None] * gradient
        others = np.delete(sizes, t - 1).max(initial=0.0)
        lengths = np.unique([cap, size, 0.9 * cap, 1.1 * cap] if size >= others else [cap, size, 0.8 * size])
        U = self.unit(np.concatenate([U, u[None, :]]))
        omega0, cost = self.intercepts(U @ X.T, y, w, lengths)
        cost = cost + np.array([self.margin(max(float(r), others)) for r in lengths])
        now = float(w @ self.loss(ys)) + self.margin(cap)
        order = np.argsort(cost, axis=None, kind="stable")[: 1 if t > self.B else 6]
        for flat in order:
            k, g = divmod(int(flat), len(lengths))
            if t > self.B and cost[k, g] >= now * (1 - 1e-9):
                return False
            if self._with_plane(t, U[k] * lengths[g], float(omega0[k, g]), rows):
                return True
        return False

    def refit(self, t: int, kick: bool = False) -> bool:
        """A machine fitted to the labels as they are relabelled now, or to other weights; what is below kept or grown.

        A ``kick`` changes several labels, and is for a tree whose cost was set to infinity.
        """
        assert self.best is not None
        level = t.bit_length() - 1
        node, score = self.route(self.best)
        rows = np.flatnonzero(node[:, level] == t)
        if not len(rows):
            return False
        ys = self.sign[rows] * score[rows, level]
        kept = self.c1 * np.maximum(0, 1 - ys) <= self.c2 + self.c1 * np.maximum(0, 1 + ys)
        label, w = self.sign[rows], self.weights[rows]
        cap = float(norms(self.best.omega, self.norm).max())
        kind = 0.0 if kick else self.rng.random()
        careful = bool(kind < 0.7)
        if careful:
            # Where one machine alone sets δ, its own optimum has C = c1 dR/dmargin; less of δ's price means a larger C.
            rate = 2 * cap if not self.single else 1.0
            C = self.c1 * rate * float(self.rng.choice([1.0, 1.0, 2.0, 5.0, 30.0]))
            if kind < 0.4:
                kept = self._other_labels(kept, ys, rows, min(max(C, 1e-3), 1e5), kick)
            label = np.where(kept, label, -label)
            if self.c2 < 2 * self.c1:
                w = w * np.where(kept, 1.0, float(self.rng.choice([0.0, 0.3, 1.0, 1.0])))
            else:
                w = w * kept  # a row that was given up costs c2, wherever it lies
        else:
            C = float(10 ** self.rng.uniform(-0.5, 4.5))
            w = w * self.rng.exponential(size=len(rows))
            if self.rng.random() < 0.7:
                w = w * (kept | (self.rng.random(len(rows)) < 0.2))
        C = min(max(C, 1e-3), 1e5)
        omega, omega0 = fit_svm(self.X[rows], label, w, C, careful=careful)
        size = float(norms(omega[None, :], self.norm)[0])
        if size <= 1e-12:
            return False
        if not (kick and t <= self.B) and self._with_plane(t, omega, omega0, rows):
            return True
        others = float(np.delete(norms(self.best.omega, self.norm), t - 1).max(initial=0.0))
        lengths = np.unique([cap, 0.9 * cap, 1.1 * cap, size, max(others, 0.3 * cap)])
        places, cost = self.intercepts(
            (self.X[rows] @ omega / size)[None, :], self.sign[rows], self.weights[rows], lengths
        )
        cost = cost[0] + np.array([self.margin(max(float(r), others)) for r in lengths])
        g = int(np.argmin(cost))
        plane = omega * (lengths[g] / size), float(places[0, g])
        if not (kick and t <= self.B) and self._with_plane(t, *plane, rows):
            return True
        if t > self.B:
            return False
        fixed = {
            int(s) + 1: (self.best.omega[s], float(self.best.omega0[s]))
            for s in np.flatnonzero(self.best.split)
            if not _below(int(s) + 1, t)
        }
        return self.try_growth(Growth(max(cap, float(lengths[g])), True, None, fixed | {t: plane}))

    def believed(self, score: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """The cheaper label of every row, or of some ``rows``, on every level: for scores (n, levels) as ±1."""
        sign = (self.sign if rows is None else self.sign[rows])[:, None]
        ys = sign * score
        kept = self.c1 * np.maximum(0, 1 - ys) <= self.c2 + self.c1 * np.maximum(0, 1 + ys)
        found: FloatArray = np.where(kept, sign, -sign)
        return found

    @property
    def best_cost(self) -> float:
        """Of the best tree; infinite before there is one."""
        return np.inf if self.best is None else self.best.cost

    def clear(self, planes: Planes) -> None:
        """From the root down: no row within μ of a plane that it lies left of, and unsplit nodes say the heavier class."""
        node = np.ones(len(self.X), dtype=np.int64)
        for _ in range(self.depth + 1):
            for t in np.unique(node).tolist():
                rows = np.flatnonzero(node == t)
                if not planes.split[t - 1]:
                    planes.omega0[t - 1] = self.constant(rows)[1]
                s = self.X[rows] @ planes.omega[t - 1] + planes.omega0[t - 1]
                if planes.split[t - 1] and t <= self.B and self.mu:
                    shift = clear_of_the_plane(s, self.mu)
                    planes.omega0[t - 1] += shift
                    s = s + shift
                node[rows] = 2 * t + (s >= 0)

    def _other_labels(
        self, kept: BoolArray, ys: FloatArray, rows: IntArray, C: float, kick: bool
    ) -> BoolArray:
        """Other rows given up or taken back: those next to the plane, or far on the wrong side."""
        far = np.abs(ys) if self.rng.random() < 0.5 else ys
        best, lowest = kept, np.inf
        proposals = 1 if kick or self.rng.random() < 0.5 else PROPOSALS
        for _ in range(proposals):
            # Support vectors all have a margin of 1: in a random order.
            near = np.argsort(far + 0.2 * self.rng.random(len(ys)), kind="stable")[:12]
            many = int(self.rng.integers(2, 5)) if kick or self.rng.random() < 0.4 else 1
            fresh = kept.copy()
            fresh[self.rng.permutation(near)[:many]] ^= True
            if proposals == 1:
                return fresh
            y, w = self.sign[rows], self.weights[rows]
            v, v0 = fit_svm(self.X[rows], np.where(fresh, y, -y), w, C)
            size = float(norms(v[None, :], self.norm)[0])
            cost = self.margin(size) + float(w @ self.loss(y * (self.X[rows] @ v + v0)))
            if cost < lowest:
                best, lowest = fresh, cost
        return best

    def _with_plane(self, t: int, omega: FloatArray, omega0: float, rows: IntArray) -> bool:
        assert self.best is not None
        fresh = self.best.copy()
        fresh.omega[t - 1], fresh.split[t - 1] = omega, True
        if t <= self.B and self.mu:
            omega0 += clear_of_the_plane(self.X[rows] @ omega + omega0, self.mu)
        fresh.omega0[t - 1] = omega0
        if t <= self.B:
            self.say_heavier(fresh)
        return self.offer(fresh)

    def regrow(self, t: int, factor: float, quick: bool) -> bool:
        """The tree grown anew at a cap near the present one, with the nodes above and beside ``t`` kept."""
        assert self.best is not None
        cap = float(norms(self.best.omega, self.norm).max()) * factor
        if cap == 0:
            return False
        fixed = {
            int(s) + 1: (self.best.omega[s], float(self.best.omega0[s]))
            for s in np.flatnonzero(self.best.split)
            if not _below(int(s) + 1, t)
        }
        return self.try_growth(Growth(cap, quick, None, fixed))

    def separate(self, t: int, search: Search) -> bool:
        """A machine at ``t`` that gives up few rows, by chance among the next ones, and such machines below it."""
        assert self.best is not None
        if self.rng.random() < 0.5:
            t = 1
        fixed = {
            int(s) + 1: (self.best.omega[s], float(self.best.omega0[s]))
            for s in np.flatnonzero(self.best.split)
            if not _below(int(s) + 1, t)
        }
        C = np.inf if self.rng.random() < 0.4 else float(10 ** self.rng.uniform(1.5, 4))
        how = Growth(C=C, fixed=fixed, separating=True, chance=True)
        grown = self.grow(1, np.arange(len(self.X)), how, np.inf)
        planes = self.rescaled(self.assemble(grown)) if grown.planes else None
        return planes is not None and search.promoted(planes)

    def run(self) -> Iterator[Planes]:
        """Trees, each better than those before."""
        constant = self.unsplit()
        constant.cost = self.value(constant)
        self.best = constant
        if constant.cost <= self.c3 or self.c1 == 0:
            return  # a split costs that much by itself; without c1 nothing is paid
        if self.single:
            yield from self.alternate()
        for C in COSTS:
            if self.budget.spent():
                break
            if self.try_growth(Growth(C=C)):
                yield self.best
        for C in SEPARATING:
            if self.budget.spent():
                break
            if self.try_growth(Growth(C=C, separating=True)):
                yield self.best
        for planes in few_labels.trees(self, FEW_STEPS):
            fresh = self.rescaled(planes)
            if fresh is not None and self.offer(fresh):
                yield self.best
        if self.best.split.any() and (Search(self).settle_best() or self.prune()):
            yield self.best
        yield from self.lopsided()
        caps = [float(c) for c in CAPS]
        for quick in (True, False):
            near = float(norms(self.best.omega, self.norm).max()) or 15.0
            for cap in sorted(caps, key=lambda c: abs(np.log(c / near)))[: 5 if quick else 3]:
                if self.budget.spent():
                    break
                if self.margin(cap * 0.1) < self.best.cost and self.try_growth(Growth(cap, quick)):
                    yield self.best
        yield from self.improve()

    def lopsided(self) -> Iterator[Planes]:
        """Trees whose root is a machine for dearer errors of one class: that class comes to one side, the other is pure."""
        assert self.best is not None
        cap = float(norms(self.best.omega, self.norm).max())
        if self.depth == 0 or cap == 0:
            return
        search, everyone = Search(self), np.arange(len(self.X))
        for factor, dearer, side in LOPSIDED:
            if self.budget.spent():
                return
            w = np.where(self.sign == side, dearer, 1.0) * self.weights
            C = min(max(self.path(True, cap)[0] * factor, 1e-2), 1e5)
            root = fit_svm(self.X, self.sign, w, C)
            size = float(norms(root[0][None, :], self.norm)[0])
            if not size:
                continue
            grown = self.grow(1, everyone, Growth(max(cap, size), True, None, {1: root}), np.inf)
            planes = self.rescaled(self.assemble(grown)) if grown.planes else None
            if planes is not None and search.promoted(planes, np.inf):
                yield self.best

    def alternate(self) -> Iterator[Planes]:
        """RE-SVM: the machine of the labels (C = c1) and the labels of the machine in turn, from several labellings."""
        assert self.best is not None
        everyone, y = np.arange(len(self.X)), self.sign
        C = float(np.clip(self.c1, 1e-3, 1e5))
        labellings = [y]
        for path in (1.0, 100.0, 1e-2, 1e4):
            if self.budget.spent():
                return
            omega, omega0 = fit_svm(self.X, y, self.weights, path)
            ys = y * (self.X @ omega + omega0)
            labellings += [np.where(ys < 0, -y, y), np.where(ys < -0.5, -y, y)]
            for label in labellings[-3:] if path == 1.0 else labellings[-2:]:
                for _ in range(RELABEL_ROUNDS):
                    if self.budget.spent():
                        return
                    omega, omega0 = fit_svm(self.X, label, self.weights, C, careful=True)
                    if self._with_plane(1, omega, omega0, everyone):
                        yield self.best
                    ys = y * (self.X @ omega + omega0)
                    give_up = self.c2 + self.c1 * np.maximum(0, 1 + ys) < self.c1 * np.maximum(0, 1 - ys)
                    fresh = np.where(give_up, -y, y)
                    if (fresh == label).all():
                        break
                    label = fresh

    def improve(self) -> Iterator[Planes]:
        """Local search from the best tree, until it is exhausted or the budget is.

        Where nothing improves for a while, a node is moved for the worse, and the search goes on from there; if it
        does not come out below the best tree, it returns to it.
        """
        assert self.best is not None
        top, spread, idle, stale = self.best, 0.3, 0, 0
        search, unsettled = Search(self), True
        paid, tried = np.zeros(len(KINDS)), np.zeros(len(KINDS))
        self.prune()
        patience = max(100, PATIENCE * 200 // max(200, len(self.X)))
        while stale < patience and self.best.split.any() and not self.budget.spent():
            if self.best.cost < top.cost * (1 - SLACK) - 1e-12:
                top, stale = self.best, 0
                yield top
            nodes = np.flatnonzero(self.best.split) + 1
            t = int(self.rng.choice(nodes))
            if unsettled and idle >= SETTLE_AFTER and self.best.cost <= top.cost * PROMISING:
                unsettled = False
                if search.settle_best():
                    idle = 0
                    continue
            if idle > KICK_AFTER:
                self.best, idle, unsettled = top.copy(), 0, True
                self.kick()
                continue
            # Kinds of steps that paid are taken more often.
            share = (paid + 1.0) / (tried + 4.0) * LIKELY
            number = int(self.rng.choice(len(KINDS), p=share / share.sum()))
            kind = KINDS[number]
            if kind == "rescale":
                done = self.rescale()
            elif kind == "refit":
                done = self.refit(t)
            elif kind == "regrow":
                s = int(self.rng.integers(1, self.T + 1))
                factor = float(self.rng.choice([0.7, 0.85, 1.0, 1.2, 1.5]))
                done = self.regrow(s, factor, bool(self.rng.random() < 0.7))
            elif kind == "prune":
                done = self.prune()
            elif kind == "step":
                done = search.step()
            elif kind == "leap":
                done = search.leap()
            elif kind == "replace":
                done = search.replace()
            elif kind == "separate":
                done = self.separate(t, search)
            else:
                done = self.change(t, spread)
                spread = min(1.0, spread * 1.5) if done else max(1e-3, spread * 0.9)
                if spread <= 1e-3:
                    spread = 0.5
            paid, tried = 0.98 * paid, 0.98 * tried
            paid[number] += done
            tried[number] += 1
            idle, stale, unsettled = 0 if done else idle + 1, stale + 1, unsettled or done
        self.best = top if self.best.cost > top.cost else self.best
        search.settle_best()
        self.prune()
        if self.best.cost < top.cost:
            top = self.best
            yield top
        self.best = top

    def without(self, planes: Planes, t: int) -> Planes:
        """The tree without the subtree at ``t``."""
        fresh = planes.copy()
        below = [t]
        for s in below:
            below += [c for c in (2 * s, 2 * s + 1) if c <= self.T]
        for s in below:
            fresh.split[s - 1], fresh.omega[s - 1] = False, 0.0
        self.say_heavier(fresh)
        return fresh

    def with_plane(self, planes: Planes, t: int, omega: FloatArray, omega0: float) -> Planes:
        """The tree with another plane at ``t`` and what is below it grown anew."""
        cap = max(float(norms(planes.omega, self.norm).max()), float(norms(omega[None, :], self.norm)[0]))
        fixed = {
            int(s) + 1: (planes.omega[s], float(planes.omega0[s]))
            for s in np.flatnonzero(planes.split)
            if not _below(int(s) + 1, t)
        }
        how = Growth(cap, True, None, fixed | {t: (omega, omega0)})
        return self.assemble(self.grow(1, np.arange(len(self.X)), how, np.inf))

    def kick(self) -> bool:
        """Move a node for the worse: the best tree is what came of it, whatever it costs."""
        assert self.best is not None
        before = self.best
        nodes = np.flatnonzero(before.split) + 1
        self.best = Planes(before.omega, before.omega0, before.split)
        for _ in range(4):
            if self.refit(int(self.rng.choice(nodes)), kick=True):
                return True
        self.best = before
        return False


def _below(t: int, top: int) -> bool:
    while t > top:
        t //= 2
    return t == top


def as_margin_tree(planes: Planes, data: Data, params: Any) -> MarginTree:
    """The planes as a tree of the formulation."""
    depth = getattr(params, "depth", 0)
    # Without weights there is no side to choose, and a split would only cost.
    split = planes.split & planes.omega.any(axis=1) if depth == 0 else planes.split
    return MarginTree(
        depth,
        data.classes,
        data.feature_names,
        data.scaling,
        planes.omega.copy(),
        planes.omega0.copy(),
        split,
    )


def candidates(data: Data, params: Any, budget: Budget, seed: int) -> Iterator[MarginTree]:
    """Trees of OCTSVM, or single hyperplanes of RE-SVM, each better than those before."""

    def as_tree(planes: Planes) -> MarginTree:
        return as_margin_tree(planes, data, params)

    if data.n <= LARGE:
        shop = Workshop(data.X, data.sign, data.weights, params, budget, seed)
        for planes in shop.run():
            yield as_tree(planes)
        return
    rows = sample(data, seed)
    small = Workshop(
        data.X[rows],
        data.sign[rows],
        data.weights[rows] * (data.n / len(rows)),
        params,
        budget.part(0.5, SAMPLE_STEPS),
        seed,
    )
    for _ in small.run():
        pass
    if small.best is None or not small.best.split.any():
        return
    shop = Workshop(data.X, data.sign, data.weights, params, budget, seed)
    shop.best = shop.unsplit()
    shop.best.cost = shop.value(shop.best)
    # On all rows: planes that rows of the sample kept clear of may have others near them.
    planes = small.best.copy()
    shop.clear(planes)
    shop.offer(planes)
    if not shop.best.split.any():
        return
    yield as_tree(shop.best)
    for step in (shop.prune, shop.rescale):
        if budget.spent():
            return
        if step():
            yield as_tree(shop.best)
    for _ in range(FULL_PASSES):
        for k in np.flatnonzero(shop.best.split):
            if budget.spent():
                return
            if shop.change(int(k) + 1, 0.05):
                yield as_tree(shop.best)


tree_candidates = single_candidates = candidates
