"""Starts for OCT: a search of two levels below every split of a greedy tree, then of the whole tree.

Subtrees of depth one and two are found exactly (:mod:`..formulations.bounds.subtrees`); deeper trees take their upper levels
from CART and from the best single splits, and exact subtrees below. Then all levels are searched. The tree is optimal where the
budget lets that search end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..formulations import leaf_trees
from ..formulations.base import BoolArray, Data, FloatArray, IntArray
from ..formulations.bounds import subtrees
from ..formulations.oct import wants_cart
from ..formulations.trees import AxisTree
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

    def __init__(self, X: FloatArray, y: IntArray, K: int, weights: FloatArray, costs: AxisCosts) -> None:
        self.X, self.y, self.K, self.weights, self.costs = X, y, K, weights, costs
        self.Y = np.eye(K)[y] * weights[:, None]
        self.order = np.argsort(X, axis=0, kind="stable")

    @cached_property
    def groups(self) -> subtrees.Groups:
        """The rows with equal ones merged; only subtrees of two levels and more want it."""
        position = np.column_stack([np.unique(column, return_inverse=True)[1] for column in self.X.T])
        return subtrees.Groups.of(position, self.y, self.weights, self.K)

    @cached_property
    def table(self) -> subtrees.Table:
        """The groups, sorted by every feature."""
        return subtrees.Table.whole(self.groups, self.costs.error)

    def leaf(self, rows: BoolArray) -> AxisSubtree:
        """The majority class of the rows."""
        total = self.Y[rows].sum(axis=0)
        return AxisSubtree(self.costs.error * float(total.sum() - total.max()), int(np.argmax(total)))

    def _sorted(self, rows: BoolArray) -> IntArray:
        """Indices of the rows in each column's order (m, p)."""
        p = self.X.shape[1]
        return self.order.T[rows[self.order.T]].reshape(p, -1).T

    def split_costs(self, rows: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Cost of a single split after each position in each column's order (m - 1, p), and the sorted values."""
        order = self._sorted(rows)
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
        threshold = middle(values[k, j], values[k + 1, j])
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
        threshold = middle(values[found.cut - 1], values[found.cut])
        left = rows & (self.X[:, j] < threshold)
        one, two = self._read(found.left, left), self._read(found.right, rows & ~left)
        return AxisSubtree(self.costs.split + one.cost + two.cost, leaf.label, j, threshold, one, two)

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
            threshold = middle(values[k, j], values[k + 1, j])
            left = rows & (self.X[:, j] < threshold)
            one, two = self.below(left, depth - 1, budget), self.below(rows & ~left, depth - 1, budget)
            total = self.costs.split + one.cost + two.cost
            if total < best.cost:
                best = AxisSubtree(total, best.label, int(j), threshold, one, two)
        return best


def middle(low: float, high: float) -> float:
    """Between two values, and above the lower one."""
    value = low + (high - low) / 2
    return float(value if value > low else high)


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
    return AxisTree(depth, data.classes, data.feature_names, data.scaling, feature, threshold, label)


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
        feature[t - 1], threshold[t - 1] = j, middle(low, high)
        fill(inner.children_left[node], 2 * t, left)
        fill(inner.children_right[node], 2 * t + 1, rows & ~left)

    fill(0, 1, np.ones(data.n, dtype=bool))
    label = np.zeros(B + 1, dtype=np.int64)
    tree = AxisTree(depth, data.classes, data.feature_names, data.scaling, feature, threshold, label)
    return replace(tree, label=leaf_trees.leaf_labels(depth, tree._route(data.X_original), data))


def candidates(data: Data, params: Any, budget: Budget, seed: int) -> Iterator[AxisTree]:
    """CART, pruned bottom-up, then the search; on a large table the search goes over a sample of it."""
    if data.n > LARGE and params.depth > 0:
        yield from large_candidates(data, params, budget, seed)
        return
    factor = leaf_trees.error_factor(data.y, data.weights, data.K, params.error_scale)
    costs = AxisCosts(factor, params.alpha, params.leaf_size(data.n))
    search = AxisSearch(data.X_original, data.y, data.K, data.weights, costs)
    all_rows = np.ones(data.n, dtype=bool)
    yield as_tree(data, params.depth, search.leaf(all_rows))
    if params.depth == 0:
        return
    yield as_tree(data, params.depth, search.stump(all_rows))
    if not wants_cart(data, params.depth):
        yield as_tree(data, params.depth, search.exact(all_rows, params.depth, budget))
        return
    greedy = cart(data, params.depth, costs.n_min, seed)
    yield as_tree(data, params.depth, bottom_up(greedy, search, 1, all_rows))
    if params.depth > 1 and not budget.overdue():
        yield as_tree(data, params.depth, search.below(all_rows, params.depth, budget))
        yield as_tree(data, params.depth, with_exact_ends(greedy, search, 1, all_rows, budget))
    if params.depth > 2 and not budget.overdue():
        yield as_tree(data, params.depth, search.exact(all_rows, params.depth, budget))


def large_candidates(data: Data, params: Any, budget: Budget, seed: int) -> Iterator[AxisTree]:
    """CART on all rows and the search on a sample, both pruned on all rows; then the last splits, exactly."""
    factor = leaf_trees.error_factor(data.y, data.weights, data.K, params.error_scale)
    costs = AxisCosts(factor, params.alpha, params.leaf_size(data.n))
    search = AxisSearch(data.X_original, data.y, data.K, data.weights, costs)
    all_rows = np.ones(data.n, dtype=bool)
    found = [cart(data, params.depth, costs.n_min, seed)]
    yield as_tree(data, params.depth, bottom_up(found[0], search, 1, all_rows))
    if params.depth > 1 and not budget.tick():
        rows = sample(data, seed)
        share = data.n / len(rows)
        scaled = AxisCosts(factor * share, params.alpha, max(1, round(costs.n_min / share)))
        small = AxisSearch(data.X_original[rows], data.y[rows], data.K, data.weights[rows], scaled)
        part, sample_rows = budget.part(0.5, SAMPLE_STEPS), np.ones(len(rows), dtype=bool)
        subset = replace(
            data,
            X_original=data.X_original[rows],
            X=data.X[rows],
            y=data.y[rows],
            weights=data.weights[rows],
            index=None,
        )
        greedy = cart(subset, params.depth, scaled.n_min, seed)
        ends = with_exact_ends(greedy, small, 1, sample_rows, part)
        found.append(as_tree(subset, params.depth, ends))
        found.append(
            as_tree(
                subset, params.depth, small.below(sample_rows, params.depth, budget.part(0.5, SAMPLE_STEPS))
            )
        )
        for tree in found[1:]:
            yield as_tree(data, params.depth, bottom_up(tree, search, 1, all_rows))
    for tree in found:
        if budget.tick():
            return
        yield as_tree(data, params.depth, with_exact_stumps(tree, search, 1, all_rows))


def sample(data: Data, seed: int) -> IntArray:
    """Positions of at most SAMPLE rows (and two of every class), drawn by class."""
    rng = np.random.default_rng(seed)
    share = SAMPLE / data.n
    parts = []
    for k in range(data.K):
        rows = np.flatnonzero(data.y == k)
        parts.append(rng.permutation(rows)[: max(2, round(share * len(rows)))])
    return np.sort(np.concatenate(parts))


def with_exact_stumps(tree: AxisTree, search: AxisSearch, t: int, rows: BoolArray) -> AxisSubtree:
    """The tree's upper splits with the best single split, or none, in place of each of its last ones."""
    if t > tree.n_branch // 2 or tree.feature[t - 1] < 0:
        return search.stump(rows) if t <= tree.n_branch else search.leaf(rows)
    leaf = search.leaf(rows)
    j, threshold = int(tree.feature[t - 1]), float(tree.threshold[t - 1])
    left = rows & (search.X[:, j] < threshold)
    inside = int(left.sum())
    if min(inside, int(rows.sum()) - inside) < search.costs.n_min:
        return leaf
    one = with_exact_stumps(tree, search, 2 * t, left)
    two = with_exact_stumps(tree, search, 2 * t + 1, rows & ~left)
    cost = search.costs.split + one.cost + two.cost
    return leaf if leaf.cost <= cost else AxisSubtree(cost, leaf.label, j, threshold, one, two)


def bottom_up(tree: AxisTree, search: AxisSearch, t: int, rows: BoolArray) -> AxisSubtree:
    """The tree's best pruning."""
    leaf = search.leaf(rows)
    if t > tree.n_branch or tree.feature[t - 1] < 0:
        return leaf
    j, threshold = int(tree.feature[t - 1]), float(tree.threshold[t - 1])
    left = rows & (search.X[:, j] < threshold)
    inside = int(left.sum())
    if min(inside, int(rows.sum()) - inside) < search.costs.n_min:
        return leaf
    one, two = bottom_up(tree, search, 2 * t, left), bottom_up(tree, search, 2 * t + 1, rows & ~left)
    cost = search.costs.split + one.cost + two.cost
    return leaf if leaf.cost <= cost else AxisSubtree(cost, leaf.label, j, threshold, one, two)


def with_exact_ends(
    tree: AxisTree, search: AxisSearch, t: int, rows: BoolArray, budget: Budget
) -> AxisSubtree:
    """The tree's upper splits with exact subtrees in place of its last two levels."""
    depth = tree.depth - (t.bit_length() - 1)
    leaf = search.leaf(rows)
    if depth <= 2 or tree.feature[t - 1] < 0:
        return search.below(rows, min(depth, 2), budget)
    j, threshold = int(tree.feature[t - 1]), float(tree.threshold[t - 1])
    left = rows & (search.X[:, j] < threshold)
    one = with_exact_ends(tree, search, 2 * t, left, budget)
    two = with_exact_ends(tree, search, 2 * t + 1, rows & ~left, budget)
    cost = search.costs.split + one.cost + two.cost
    return leaf if leaf.cost <= cost else AxisSubtree(cost, leaf.label, j, threshold, one, two)
