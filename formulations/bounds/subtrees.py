"""Lower bounds on what the two subtrees below each root split cost, in plain numpy.

The cost of a subtree on a set S of rows is α·splits + errors. Write opt(S) for the least cost of a subtree of some
depth d, and opt_N(S) for the least one whose leaves in use hold N_min rows or more. Four facts carry the search:

1. opt_N(S) >= opt(S): N_min only takes subtrees away.
2. S ⊂ S' gives opt(S) <= opt(S'): the best subtree of S' is one for S, with the same splits, and errs on no more
   weight there (weights are not negative).
3. S ⊂ S' gives opt(S') <= opt(S) + w(S' - S): the best subtree of S errs on S' by at most what was added.
4. opt(S) >= Σ_g (w_g - max_k w_gk) over the groups g of equal rows in S, whatever the depth: a subtree gives all rows
   of a group one class (the equivalent points of Angelino, Larus-Stone, Alabi, Seltzer & Rudin, JMLR 18, 2018).

By 2 and 3 a value computed for one set bounds every other one, of any feature: opt(S') >= opt(S) - w(S - S'), the similarity
bound of MurTree (Demirović et al., JMLR 23, 2022). Along one feature the left sets grow with the cut and the right sets
shrink, so a value computed at one cut bounds those at all others: by 2 on one side of it, by 3 on the other. The search computes values in the middle of each run of
cuts that the bounds leave below the best tree known, until none is left or the work limit is reached. Mazumder, Meng
& Wang (ICML 2022, Quant-BnB) search trees of depth two and three in this manner; here every cut is left with a
bound of its own, whether it was looked at or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..base import BoolArray, FloatArray, IntArray

CELLS = 30_000  # numbers held at once by a batch of single splits: they should stay in the cache
MULTIPLIED = 64  # groups up to which a product of matrices is quicker than cumulative sums
LARGEST_MATRIX = 2_000_000  # numbers of its second factor: thousands of features would make it far larger
ONE_THREAD = 200_000  # multiplications of a product that OpenBLAS does not share among threads
EXACT = 2**24  # up to which whole numbers are exact in single precision
CLOSE = 1e-9  # relative: costs this close are equal


@dataclass(frozen=True, eq=False)
class Groups:
    """The training rows, equal ones merged.

    Attributes
    ----------
    of_row : ndarray of int, shape (n,)
        The group of each row.
    position : ndarray of int, shape (G, p)
        Place of the group's value among the distinct values of each feature, from 0.
    n_values : ndarray of int, shape (p,)
    weight : ndarray of shape (G, K)
        Weight of each class.
    size : ndarray of int, shape (G,)
        Number of rows.
    """

    of_row: IntArray
    position: IntArray
    n_values: IntArray
    weight: FloatArray
    size: IntArray

    @classmethod
    def of(cls, position: IntArray, y: IntArray, weights: FloatArray, K: int) -> Groups:
        """Merge equal rows of ``position (n, p)``, whose columns hold 0, 1, ... without gaps."""
        merged, of_row = np.unique(position, axis=0, return_inverse=True)
        of_row = of_row.ravel()
        weight = np.zeros((len(merged), K))
        np.add.at(weight, (of_row, y), weights)
        return cls(of_row, merged, position.max(axis=0) + 1, weight, np.bincount(of_row))


@dataclass(frozen=True)
class Found:
    """What is known of a subtree: opt >= ``free``, opt_N >= ``sized``, and one that costs ``upper``.

    ``feature`` and ``cut`` are its first split, -1 and 0 where it has none; the cut counts the values of the rows that
    reach it. ``left`` and ``right`` are what is below, None for leaves.
    """

    free: float
    sized: float
    upper: float
    feature: int = -1
    cut: int = 0
    left: Found | None = None
    right: Found | None = None

    @property
    def proved(self) -> bool:
        """Whether the subtree is a best one."""
        return self.sized >= self.upper - CLOSE * abs(self.upper)


@dataclass(frozen=True, eq=False)
class RootBounds:
    """Lower bounds on what the subtrees below the root cost.

    Attributes
    ----------
    left, right : list of ndarray
        For each feature, a number for each cut 1 .. n_values - 1 (rows at positions below the cut go left).
    unsplit : float
        On a tree without a split.
    found : Found
        The whole tree.
    """

    left: list[FloatArray]
    right: list[FloatArray]
    unsplit: float
    found: Found


class Table:
    """Groups of rows sorted by each feature.

    Parameters
    ----------
    position : ndarray of int, shape (G, p)
    order : ndarray of int, shape (p, G)
        Groups by their position, for each feature.
    W : ndarray of shape (G, K)
        What errors on each class cost.
    size : ndarray of int, shape (G,)
    """

    def __init__(self, position: IntArray, order: IntArray, W: FloatArray, size: IntArray) -> None:
        self.order, self.W, self.size = order, W, size
        ordered = np.take_along_axis(position.T, order, axis=1)
        step = ordered[:, 1:] != ordered[:, :-1]
        place = np.zeros(order.shape, dtype=np.int64)
        np.cumsum(step, axis=1, out=place[:, 1:])
        self.position = np.empty_like(position)
        np.put_along_axis(self.position.T, order, place, axis=1)
        self.n_values = place[:, -1] + 1
        self._feature, self._end = np.nonzero(step)
        self.cuts = len(self._end)
        self.value = ordered

    @classmethod
    def whole(cls, groups: Groups, error: float) -> Table:
        """All groups, an error of weight 1 at the cost ``error``."""
        order = np.argsort(groups.position, axis=0, kind="stable").T
        return cls(groups.position, order, error * groups.weight, groups.size)

    def part(self, inside: BoolArray) -> Table:
        """The groups ``inside (G,)``."""
        p = len(self.order)
        order = (np.cumsum(inside) - 1)[self.order[inside[self.order]].reshape(p, -1)]
        return Table(self.position[inside], order, self.W[inside], self.size[inside])

    @cached_property
    def costs(self) -> FloatArray:
        """``W``, in single precision where all sums of it are exact in that, which takes half the time."""
        exact = self.W.sum() < EXACT and np.array_equal(self.W, np.rint(self.W))
        return self.W.astype(np.float32) if exact else self.W

    @cached_property
    def _below(self) -> FloatArray:
        """Whether each group is below each cut, as 0 and 1, in blocks of cuts (blocks, G, cuts of a block).

        Blocks are so small that libraries of linear algebra multiply them on one thread, which on several take longer.
        """
        G = len(self.size)
        feature, end = self._feature, self._end
        block = max(1, ONE_THREAD // (G * self.at_once))
        padded = np.append(np.arange(self.cuts), np.zeros(-self.cuts % block, dtype=int))
        feature, end = feature[padded], end[padded]
        value = self.position[self.order[feature, end], feature]
        below = np.asarray(self.position[:, feature] <= value, dtype=self.costs.dtype)
        return np.ascontiguousarray(below.reshape(G, -1, block).swapaxes(0, 1))

    @property
    def at_once(self) -> int:
        """How many sets are cut together."""
        return max(1, CELLS // self.order.size)

    def sums_at_cuts(self, sets: BoolArray, values: FloatArray) -> FloatArray:
        """Σ of ``values (G,)`` over the groups of ``sets (c, G)`` below each cut of all features (c, cuts)."""
        chosen = sets * values
        if len(values) <= MULTIPLIED and len(values) * self.cuts <= LARGEST_MATRIX:
            found = (chosen @ self._below).swapaxes(0, 1)
            return np.asarray(found.reshape(len(sets), -1)[:, : self.cuts])
        sums = np.cumsum(chosen[:, self.order], axis=2, dtype=values.dtype)
        return np.asarray(sums.reshape(len(sums), -1)[:, self._feature * len(values) + self._end])

    def sums_below(self, values: FloatArray) -> FloatArray:
        """Σ of ``values (G,)`` below each cut 0 .. M - 1 of each feature (p, M), M - 1 the most values of a feature."""
        p, M = len(self.n_values), int(self.n_values.max()) + 1
        flat = (self.position + 1 + M * np.arange(p)).ravel()
        filled = np.bincount(flat, weights=np.repeat(values, p), minlength=p * M)
        return np.asarray(np.cumsum(filled.reshape(p, M), axis=1))


class Search:
    """Bounds on subtrees, within a limit of work.

    Parameters
    ----------
    split : float
        α.
    n_min : int
        N_min.
    limit : float
        How many cumulative sums may be taken: results repeat, as they would not under a time limit.
    stop : callable, optional
        Asked in every round whether to stop.
    late : callable, optional
        Asked within a round whether there is no time at all; ``stop``, which may count, by default.
    """

    def __init__(
        self,
        split: float,
        n_min: int,
        limit: float,
        stop: Callable[[], bool] = lambda: False,
        late: Callable[[], bool] | None = None,
    ) -> None:
        self.split, self.n_min, self.limit, self.work = float(split), n_min, limit, 0
        self._stop, self._late, self._stopped = stop, late or stop, False

    def over(self) -> bool:
        """Whether the search is to end."""
        self._stopped = self._stopped or self.work > self.limit or self._stop()
        return self._stopped

    def leaf(self, table: Table) -> Found:
        """Depth 0."""
        weight, rows = table.W.sum(axis=0), int(table.size.sum())
        cost = float(weight.sum() - weight.max())
        sized = np.inf if 0 < rows < self.n_min else cost
        return Found(cost, sized, sized)

    def _children(self, table: Table, lefts: BoolArray, depth: int) -> tuple[FloatArray, ...]:
        """opt and opt_N of depth 0 or 1, left and right, for ``lefts (c, G)``: four arrays (c,), exact.

        They are shorter where there is no time for all.
        """
        p, G = table.order.shape
        K = table.W.shape[1]
        inside, whole = lefts @ table.W, table.W.sum(axis=0)
        rows, all_rows = lefts @ table.size, int(table.size.sum())
        out = []
        for weight, count in ((inside, rows), (whole - inside, all_rows - rows)):
            cost = weight.sum(axis=1) - weight.max(axis=1)
            out += [cost, np.where((count > 0) & (count < self.n_min), np.inf, cost)]
        if depth == 0 or not table.cuts:
            return tuple(out)
        stumps = self._stumps_of_two_classes if K == 2 else self._stumps
        step = table.at_once
        for first in range(0, len(lefts), step):
            if first and self._late():
                self._stopped = True
                return tuple(values[:first] for values in out)
            part = slice(first, min(first + step, len(lefts)))
            self.work += len(lefts[part]) * p * G * K
            small = self._too_small(table, lefts[part]) if self.n_min > 1 else None
            for values, cost in zip(out, stumps(table, lefts[part], small), strict=True):
                np.minimum(values[part], cost + self.split, out=values[part])
        return tuple(out)

    def _too_small(self, table: Table, lefts: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Where a cut of the rows of ``lefts (c, G)``, and of the others, leaves a side with too few (c, cuts)."""
        sizes, everything = table.size.astype(table.costs.dtype), np.ones((1, len(table.size)), dtype=bool)
        one = table.sums_at_cuts(lefts, sizes)
        two = table.sums_at_cuts(everything, sizes) - one
        held = (lefts @ sizes)[:, None]
        left, right = (
            ((here > 0) & (here < self.n_min)) | ((here < whole) & (whole - here < self.n_min))
            for here, whole in ((one, held), (two, sizes.sum() - held))
        )
        return left, right

    def _stumps(
        self, table: Table, lefts: BoolArray, small: tuple[BoolArray, BoolArray] | None
    ) -> Iterator[FloatArray]:
        """Errors of the best single split of ``lefts (c, G)`` and of the others: opt and opt_N of each, four arrays (c,)."""
        everything = np.ones((1, len(table.size)), dtype=bool)
        sums = [
            (table.sums_at_cuts(lefts, values), table.sums_at_cuts(everything, values), lefts @ values)
            for values in np.ascontiguousarray(table.costs.T)
        ]
        inside, whole = lefts @ table.W, table.W.sum(axis=0)
        for side, weight in enumerate((inside.sum(axis=1), whole.sum() - inside.sum(axis=1))):
            below, above = [], []
            for k, (one, both, held) in enumerate(sums):
                below.append(both - one if side else one)
                above.append((whole[k] - held if side else held)[:, None] - below[-1])
            right = np.maximum.reduce(below) + np.maximum.reduce(above)
            yield weight - right.max(axis=1)
            yield weight - (right if small is None else np.where(small[side], -np.inf, right)).max(axis=1)

    def _stumps_of_two_classes(
        self, table: Table, lefts: BoolArray, small: tuple[BoolArray, BoolArray] | None
    ) -> Iterator[FloatArray]:
        """The same for two classes, of which the difference d below a cut says enough.

        Of a set with the difference D, both sides have (weight + |d| + |D - d|) / 2 right. That is convex in d, and largest at the
        largest or the smallest one.
        """
        values = table.costs[:, 0] - table.costs[:, 1]
        everything = np.ones((1, len(values)), dtype=bool)
        one = table.sums_at_cuts(lefts, values)
        inside, weight = lefts @ values, lefts @ table.W.sum(axis=1)
        sides = (
            (one, inside, weight),
            (table.sums_at_cuts(everything, values) - one, values.sum() - inside, table.W.sum() - weight),
        )
        for side, (d, D, held) in enumerate(sides):
            ends = np.stack([d.min(axis=1), d.max(axis=1)])
            yield (held - (np.abs(ends) + np.abs(D - ends)).max(axis=0)) / 2
            if small is None:
                right = (np.abs(ends) + np.abs(D - ends)).max(axis=0)
            else:
                both = np.abs(d) + np.abs(D[:, None] - d)
                right = np.where(small[side], -np.inf, both).max(axis=1)
            yield (held - right) / 2

    def subtree(self, table: Table, depth: int, target: float = np.inf) -> Found:
        """Bounds of a subtree; below ``target`` they are exact, as far as the limit goes."""
        return self.leaf(table) if depth == 0 else self.root(table, depth, target).found

    def root(self, table: Table, depth: int, target: float = np.inf, stepwise: bool = False) -> RootBounds:
        """Bounds for each cut of a subtree of one level or more.

        With ``stepwise`` the target is raised by and by, so that a search which the limit ends has raised the least
        bound of all cuts rather than proved some of them in full.
        """
        n_values = table.n_values
        p, M = len(n_values), int(n_values.max()) + 1
        weight = table.W.sum(axis=1)
        below = table.sums_below(weight)
        A = table.sums_below(weight - table.W.max(axis=1))  # fact 4
        C = A[:, -1:] - A
        leaf = self.leaf(table)
        unsplit = self._one_level_less(table, depth, target, leaf, float(A[0, -1]))
        at, last = np.arange(p), n_values
        A[at, last] = np.maximum(A[at, last], unsplit.free)
        C[:, 0] = np.maximum(C[:, 0], unsplit.free)
        own = np.full((2, p, M), -np.inf)
        cuts = np.arange(M)
        real = (cuts >= 1) & (cuts < n_values[:, None])
        tried = np.full((p, M), -np.inf)
        best = unsplit if unsplit.upper < leaf.upper else leaf
        feature, cut, upper, below_it = best.feature, best.cut, best.upper, (best.left, best.right)
        level = upper / 16 if stepwise and depth > 2 else np.inf
        first = True
        while True:
            # Facts 2 and 3 along each feature.
            A = np.maximum.accumulate(A, axis=1)
            np.maximum(A, _from_above(A - below) + below, out=A)
            C = _from_above(C)
            np.maximum(C, np.maximum.accumulate(C + below, axis=1) - below, out=C)
            goal = min(upper, target, level)
            total = self.split + np.maximum(A, own[0]) + np.maximum(C, own[1])
            open_ = real & (total < goal - CLOSE * abs(goal)) & (tried < goal)
            if not open_.any():
                if goal < min(upper, target):
                    level = 2 * level if level > 0 else np.inf
                    continue
                break
            if self.over() and depth > 1:
                break
            j, v = self._best_single(table, open_) if first else _middles(open_)
            first = False
            lefts = table.position.T[j] < v[:, None]
            if depth <= 2:
                sides = self._children(table, lefts, depth - 1)
                j, v = j[: len(sides[0])], v[: len(sides[0])]
                tried[j, v] = np.inf
                A[j, v], C[j, v] = np.maximum(A[j, v], sides[0]), np.maximum(C[j, v], sides[2])
                own[0, j, v], own[1, j, v] = sides[1], sides[3]
                cost = self.split + sides[1] + sides[3]
                k = int(np.argmin(cost))
                if cost[k] < upper:
                    upper, feature, cut, below_it = float(cost[k]), int(j[k]), int(v[k]), (None, None)
                continue
            for k in range(len(j)):
                cell = (int(j[k]), int(v[k]))
                goal = min(upper, target, level)
                tried[cell] = goal
                if self._stopped:
                    break
                if self.split + max(A[cell], own[0][cell]) + max(C[cell], own[1][cell]) >= goal:
                    continue
                one = self.subtree(table.part(lefts[k]), depth - 1, goal - self.split - C[cell])
                A[cell], own[0][cell] = max(A[cell], one.free), one.sized
                if self.split + max(A[cell], one.sized) + C[cell] >= goal:
                    continue
                two = self.subtree(table.part(~lefts[k]), depth - 1, goal - self.split - one.sized)
                C[cell], own[1][cell] = max(C[cell], two.free), two.sized
                if one.proved and two.proved:
                    tried[cell] = np.inf
                # Fact 3 between features: what is known of these two sets bounds all others.
                for some, value in ((lefts[k], A[cell]), (~lefts[k], C[cell])):
                    shared = table.sums_below(np.where(some, weight, 0.0))
                    all_of_it = shared[:, -1:]
                    np.maximum(A, value - (all_of_it - shared), out=A)
                    np.maximum(C, value - shared, out=C)
                if self.split + one.upper + two.upper < upper:
                    upper, (feature, cut), below_it = self.split + one.upper + two.upper, cell, (one, two)
        if depth == 2 and below_it == (None, None) and feature >= 0 and unsplit.upper > upper:
            inside = table.position[:, feature] < cut
            below_it = (self.subtree(table.part(inside), 1), self.subtree(table.part(~inside), 1))
        left, right = np.maximum(A, own[0]), np.maximum(C, own[1])
        free = min(leaf.free, unsplit.free, float((self.split + A + C)[real].min(initial=np.inf)))
        sized = min(leaf.sized, unsplit.sized, float((self.split + left + right)[real].min(initial=np.inf)))
        return RootBounds(
            [left[j, 1 : n_values[j]] for j in range(p)],
            [right[j, 1 : n_values[j]] for j in range(p)],
            leaf.sized,
            Found(free, max(free, sized), upper, feature, cut, *below_it),
        )

    def _one_level_less(self, table: Table, depth: int, target: float, leaf: Found, least: float) -> Found:
        """A subtree of ``depth`` - 1 on all of the table: it bounds the cuts near the ends, and is a tree of its own."""
        if depth == 1:
            return leaf
        if depth <= 3:
            return self.subtree(table, depth - 1, target)
        shallow = self.subtree(table, 2, target)  # the search of three levels would take all of the work
        return replace(shallow, free=least, sized=least)

    def _best_single(self, table: Table, open_: BoolArray) -> tuple[IntArray, IntArray]:
        """The best single split of each feature: a good tree early closes many cuts."""
        sums = np.stack([table.sums_below(column) for column in table.W.T])
        right = sums.max(axis=0) + (sums[:, :, -1:] - sums).max(axis=0)
        v = np.argmax(np.where(open_, right, -np.inf), axis=1)
        j = np.flatnonzero(open_[np.arange(len(v)), v])
        return j, v[j]


def _from_above(values: FloatArray) -> FloatArray:
    """Largest value at this column or a later one."""
    return np.asarray(np.maximum.accumulate(values[:, ::-1], axis=1)[:, ::-1])


def _middles(open_: BoolArray) -> tuple[IntArray, IntArray]:
    """The middle of every run of open cuts."""
    padded = np.zeros((open_.shape[0], open_.shape[1] + 2), dtype=np.int8)
    padded[:, 1:-1] = open_
    change = np.diff(padded, axis=1)
    j, start = np.nonzero(change == 1)
    _, end = np.nonzero(change == -1)
    return j, (start + end - 1) // 2
