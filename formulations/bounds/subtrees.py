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

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..base import BoolArray, FloatArray, IntArray

CELLS = 30_000  # numbers held at once by a batch of single splits: they should stay in the cache
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
        self.ends = np.flatnonzero(step.ravel())
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
    def columns(self) -> tuple[list[FloatArray], IntArray]:
        """Cost of each class (p, G), and number of rows (p, G), in the order of each feature."""
        return [self.W[:, k][self.order] for k in range(self.W.shape[1])], self.size[self.order]

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
        if depth == 0 or not len(table.ends):
            return tuple(out)
        columns, sizes = table.columns
        step = max(1, CELLS // (p * G))
        for first in range(0, len(lefts), step):
            if first and self._late():
                self._stopped = True
                return tuple(values[:first] for values in out)
            part = slice(first, min(first + step, len(lefts)))
            some = lefts[part]
            self.work += len(some) * p * G * K
            among = some[:, table.order]  # (c, p, G)

            def below(values: FloatArray | IntArray, among: BoolArray = among) -> FloatArray:
                sums = np.cumsum(values * among, axis=2)[:, :, :-1]
                return np.asarray(sums.reshape(len(sums), -1)[:, table.ends])

            best = [np.zeros((len(some), len(table.ends))) for _ in range(4)]
            for k, values in enumerate(columns):
                total = np.cumsum(values, axis=1)[:, :-1].ravel()[table.ends]
                one = below(values)
                two = total - one
                for largest, sums in (
                    (best[0], one),
                    (best[1], inside[part, k : k + 1] - one),
                    (best[2], two),
                    (best[3], (whole[k] - inside[part, k : k + 1]) - two),
                ):
                    np.maximum(largest, sums, out=largest)
            if self.n_min > 1:
                counts = below(sizes)
                total_rows = np.cumsum(sizes, axis=1)[:, :-1].ravel()[table.ends]
            for side in (0, 1):
                weight = inside[part].sum(axis=1) if side == 0 else (whole - inside[part]).sum(axis=1)
                cost = weight[:, None] - best[2 * side] - best[2 * side + 1] + self.split
                np.minimum(out[2 * side][part], cost.min(axis=1), out=out[2 * side][part])
                if self.n_min > 1:
                    here = counts if side == 0 else total_rows - counts
                    held = (rows[part] if side == 0 else all_rows - rows[part])[:, None]
                    small = ((here > 0) & (here < self.n_min)) | ((here < held) & (held - here < self.n_min))
                    cost = np.where(small, np.inf, cost)
                np.minimum(out[2 * side + 1][part], cost.min(axis=1), out=out[2 * side + 1][part])
        return tuple(out)

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
