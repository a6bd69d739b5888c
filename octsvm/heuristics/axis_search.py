"""Starts for OCT: a search of two levels below every split of a greedy tree, then of the whole tree.

Subtrees of depth one and two are found exactly (:mod:`..formulations.bounds.subtrees`); deeper trees take their upper levels
from CART and from the best single splits, and exact subtrees below. Then all levels are searched. The tree is optimal where the
budget lets that search end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..formulations import leaf_trees
from ..formulations.base import BoolArray, Data, FloatArray
from ..formulations.bounds import subtrees
from ..formulations.heap import level
from ..formulations.oct import between, groups_of, wants_cart
from ..formulations.trees import AxisTree, tree_on
from .budget import Budget

LARGE = 3000  # rows beyond which the search goes over a sample
SAMPLE = 2000  # rows
SAMPLE_STEPS = 1500  # of the budget, for each of the two searches over a sample
MOST_ROOTS = 12  # single splits tried above the exact levels of a deeper tree


@dataclass(frozen=True)
class AxisCosts:
    """What the objective charges: an error, a split, and the least number of rows in a leaf."""

    error: float
    split: float
    n_min: int


@dataclass(frozen=True)
class AxisSubtree:
    """A split with its two subtrees, or a leaf (``feature`` -1)."""

    cost: float
    label: int
    feature: int = -1
    threshold: float = 0.0
    left: AxisSubtree | None = None
    right: AxisSubtree | None = None


class AxisSearch:
    """The training rows, sorted once by every feature."""

    def __init__(self, data: Data, costs: AxisCosts) -> None:
        self.data, self.X, self.costs = data, data.X_original, costs
        self.Y = np.eye(data.K)[data.y] * data.weights[:, None]
        self.order = np.argsort(self.X, axis=0, kind="stable")

    @cached_property
    def groups(self) -> subtrees.Groups:
        """The rows with equal ones merged; only subtrees of two levels and more want it."""
        return groups_of(self.data)

    @cached_property
    def table(self) -> subtrees.Table:
        """The groups, sorted by every feature."""
        return subtrees.Table.whole(self.groups, self.costs.error)

    def leaf(self, rows: BoolArray) -> AxisSubtree:
        """The majority class of the rows."""
        total = self.Y[rows].sum(axis=0)
        return AxisSubtree(self.costs.error * float(total.sum() - total.max()), int(np.argmax(total)))

    def joined(
        self, at: AxisSubtree, j: int, threshold: float, one: AxisSubtree, two: AxisSubtree
    ) -> AxisSubtree:
        """The rows of ``at`` split by feature ``j``, with ``one`` below on the left and ``two`` on the right."""
        return AxisSubtree(self.costs.split + one.cost + two.cost, at.label, j, threshold, one, two)

    def split_costs(self, rows: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Cost of a single split after each position in each column's order (m - 1, p), and the sorted values."""
        order = self.order.T[rows[self.order.T]].reshape(self.X.shape[1], -1).T
        values = np.take_along_axis(self.X, order, axis=0)
        left = np.cumsum(self.Y[order], axis=0)
        total, left = left[-1, 0], left[:-1]
        errors = total.sum() - left.max(axis=2) - (total - left).max(axis=2)
        cost = self.costs.error * errors + self.costs.split
        m = len(order)
        count = np.arange(1, m)[:, None]
        small = (count < self.costs.n_min) | (m - count < self.costs.n_min)
        return np.where(small | (values[1:] == values[:-1]), np.inf, cost), values

    def stump(self, rows: BoolArray) -> AxisSubtree:
        """The best single split, or a leaf."""
        best = self.leaf(rows)
        if best.cost <= self.costs.split or rows.sum() < 2 * self.costs.n_min:
            return best
        cost, values = self.split_costs(rows)
        if not cost.size or cost.min() >= best.cost:
            return best
        k, j = (int(v) for v in np.unravel_index(int(np.argmin(cost)), cost.shape))
        threshold = between(values[k, j], values[k + 1, j])
        left = rows & (self.X[:, j] < threshold)
        return AxisSubtree(
            float(cost[k, j]), best.label, j, threshold, self.leaf(left), self.leaf(rows & ~left)
        )

    def exact(self, rows: BoolArray, depth: int, budget: Budget) -> AxisSubtree:
        """The best subtree, as far as the budget goes."""
        if depth <= 1:
            return self.stump(rows) if depth else self.leaf(rows)
        search = subtrees.Search(self.costs.split, self.costs.n_min, np.inf, budget.tick, budget.overdue)
        inside = np.bincount(self.groups.of_row[rows], minlength=len(self.groups.size)) > 0
        best, found = self.stump(rows), self._read(search.subtree(self.table.part(inside), depth), rows)
        return found if found.cost < best.cost else best

    def _read(self, found: subtrees.Found | None, rows: BoolArray) -> AxisSubtree:
        leaf = self.leaf(rows)
        if found is None or found.feature < 0:
            return leaf
        j = found.feature
        values = np.unique(self.X[rows, j])
        threshold = between(values[found.cut - 1], values[found.cut])
        left = rows & (self.X[:, j] < threshold)
        one, two = self._read(found.left, left), self._read(found.right, rows & ~left)
        return self.joined(leaf, j, threshold, one, two)

    def below(self, rows: BoolArray, depth: int, budget: Budget) -> AxisSubtree:
        """A good subtree of the given depth: exact up to two levels, the best few splits above."""
        if depth == 0 or budget.overdue():
            return self.leaf(rows)
        if depth == 1:
            return self.stump(rows)
        if depth == 2:
            return self.exact(rows, 2, budget)
        best = self.stump(rows)
        if best.cost <= self.costs.split or rows.sum() < 2 * self.costs.n_min:
            return best
        cost, values = self.split_costs(rows)
        for j in np.argsort(cost.min(axis=0), kind="stable")[:MOST_ROOTS]:
            k = int(np.argmin(cost[:, j]))
            if not np.isfinite(cost[k, j]) or budget.tick():
                break
            threshold = between(values[k, j], values[k + 1, j])
            left = rows & (self.X[:, j] < threshold)
            one, two = self.below(left, depth - 1, budget), self.below(rows & ~left, depth - 1, budget)
            found = self.joined(best, int(j), threshold, one, two)
            best = found if found.cost < best.cost else best
        return best


def as_tree(data: Data, depth: int, root: AxisSubtree) -> AxisTree:
    """The subtree as a fitted tree in heap order."""
    B = 2**depth - 1
    feature, threshold = np.full(B, -1, dtype=np.int64), np.zeros(B)
    label = np.zeros(B + 1, dtype=np.int64)

    def fill(t: int, sub: AxisSubtree) -> None:
        if t > B:
            label[t - B - 1] = sub.label
        elif sub.feature < 0 or sub.left is None or sub.right is None:
            fill(2 * t, sub)
            fill(2 * t + 1, sub)
        else:
            feature[t - 1], threshold[t - 1] = sub.feature, sub.threshold
            fill(2 * t, sub.left)
            fill(2 * t + 1, sub.right)

    fill(1, root)
    return tree_on(data, AxisTree, depth, feature, threshold, label)


def cart(data: Data, depth: int, n_min: int, seed: int) -> AxisTree:
    """CART of scikit-learn, thresholds moved between the training values it separates."""
    from sklearn.tree import DecisionTreeClassifier

    # On ranks: scikit-learn works in single precision, which merges close values and overflows for large ones.
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1] for column in data.X_original.T])
    folded = seed % 2**32  # scikit-learn takes no more
    fitted = DecisionTreeClassifier(max_depth=max(1, depth), min_samples_leaf=n_min, random_state=folded).fit(
        ranks, data.y, sample_weight=data.weights
    )
    inner: Any = fitted.tree_
    B = 2**depth - 1
    feature, threshold = np.full(B, -1, dtype=np.int64), np.zeros(B)

    def fill(node: int, t: int, rows: BoolArray) -> None:
        if t > B or inner.children_left[node] < 0:
            return
        j = int(inner.feature[node])
        left = rows & (ranks[:, j] <= inner.threshold[node])
        if not left.any() or left.sum() == rows.sum():
            return
        low, high = data.X_original[left, j].max(), data.X_original[rows & ~left, j].min()
        if low >= high:
            return
        feature[t - 1], threshold[t - 1] = j, between(low, high)
        fill(inner.children_left[node], 2 * t, left)
        fill(inner.children_right[node], 2 * t + 1, rows & ~left)

    fill(0, 1, np.ones(data.n, dtype=bool))
    return leaf_trees.with_best_labels(data, AxisTree, depth, feature, threshold)


def candidates(data: Data, params: Any, budget: Budget, seed: int) -> Iterator[AxisTree]:
    """CART, pruned bottom-up, then the search; on a large table the search goes over a sample of it."""
    factor = leaf_trees.error_factor(data.y, data.weights, data.K, params.error_scale)
    search = AxisSearch(data, AxisCosts(factor, params.alpha, params.leaf_size(data.n)))
    found = _by_sample if data.n > LARGE and params.depth > 0 else _by_search
    for root in found(search, params.depth, budget, seed):
        yield as_tree(data, params.depth, root)


def _by_search(search: AxisSearch, depth: int, budget: Budget, seed: int) -> Iterator[AxisSubtree]:
    """Single splits, then CART and the search where they find more."""
    all_rows = np.ones(search.data.n, dtype=bool)
    yield search.leaf(all_rows)
    if depth == 0:
        return
    yield search.stump(all_rows)
    if not wants_cart(search.data, depth):
        yield search.exact(all_rows, depth, budget)
        return
    greedy = cart(search.data, depth, search.costs.n_min, seed)
    yield pruned(greedy, search)
    if depth > 1 and not budget.overdue():
        yield search.below(all_rows, depth, budget)
        yield with_exact_ends(greedy, search, budget)
    if depth > 2 and not budget.overdue():
        yield search.exact(all_rows, depth, budget)


def _by_sample(search: AxisSearch, depth: int, budget: Budget, seed: int) -> Iterator[AxisSubtree]:
    """CART on all rows and the search on a sample, both pruned on all rows; then the last splits, exactly."""
    data, costs = search.data, search.costs
    found = [cart(data, depth, costs.n_min, seed)]
    yield pruned(found[0], search)
    if depth > 1 and not budget.tick():
        few = sample(data, seed)
        share = data.n / few.n
        small = AxisSearch(
            few, AxisCosts(costs.error * share, costs.split, max(1, round(costs.n_min / share)))
        )
        part = budget.part(0.5, SAMPLE_STEPS)
        greedy = cart(few, depth, small.costs.n_min, seed)
        found.append(as_tree(few, depth, with_exact_ends(greedy, small, part)))
        part = budget.part(0.5, SAMPLE_STEPS)
        found.append(as_tree(few, depth, small.below(np.ones(few.n, dtype=bool), depth, part)))
        for tree in found[1:]:
            yield pruned(tree, search)
    for tree in found:
        if budget.tick():
            return
        yield with_exact_stumps(tree, search)


def sample(data: Data, seed: int) -> Data:
    """At most SAMPLE rows (and two of every class) as a table of their own, drawn by class."""
    rng = np.random.default_rng(seed)
    share = SAMPLE / data.n
    parts = []
    for k in range(data.K):
        rows = np.flatnonzero(data.y == k)
        parts.append(rng.permutation(rows)[: max(2, round(share * len(rows)))])
    drawn = np.sort(np.concatenate(parts))
    arrays = {name: getattr(data, name)[drawn] for name in ("X_original", "X", "y", "weights")}
    return replace(data, index=None, **arrays)


def upper_splits(
    tree: AxisTree, search: AxisSearch, end: Callable[[int, BoolArray], AxisSubtree | None]
) -> AxisSubtree:
    """The best pruning of the tree's splits down to where ``end(t, rows)`` says what stands at node t instead of its split."""

    def at(t: int, rows: BoolArray) -> AxisSubtree:
        found = end(t, rows)
        if found is not None:
            return found
        leaf = search.leaf(rows)
        j, threshold = int(tree.feature[t - 1]), float(tree.threshold[t - 1])
        left = rows & (search.X[:, j] < threshold)
        inside = int(left.sum())
        if min(inside, int(rows.sum()) - inside) < search.costs.n_min:
            return leaf
        one, two = at(2 * t, left), at(2 * t + 1, rows & ~left)
        found = search.joined(leaf, j, threshold, one, two)
        return leaf if leaf.cost <= found.cost else found

    return at(1, np.ones(search.data.n, dtype=bool))


def pruned(tree: AxisTree, search: AxisSearch) -> AxisSubtree:
    """The tree's best pruning."""
    return upper_splits(tree, search, lambda t, rows: None if tree._splits_at(t) else search.leaf(rows))


def with_exact_stumps(tree: AxisTree, search: AxisSearch) -> AxisSubtree:
    """The tree's upper splits with the best single split, or none, in place of each of its last ones."""

    def end(t: int, rows: BoolArray) -> AxisSubtree | None:
        if t <= tree.n_branch // 2 and tree._splits_at(t):
            return None
        return search.stump(rows) if t <= tree.n_branch else search.leaf(rows)

    return upper_splits(tree, search, end)


def with_exact_ends(tree: AxisTree, search: AxisSearch, budget: Budget) -> AxisSubtree:
    """The tree's upper splits with exact subtrees in place of its last two levels."""

    def end(t: int, rows: BoolArray) -> AxisSubtree | None:
        depth = tree.depth - level(t)
        if depth > 2 and tree._splits_at(t):
            return None
        return search.below(rows, min(depth, 2), budget)

    return upper_splits(tree, search, end)
