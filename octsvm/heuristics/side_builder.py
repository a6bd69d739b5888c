"""Trees of MOCTSVM as bare arrays: what they cost, how they are grown from linear SVMs, and their best hyperplanes.

A split does not know classes. To grow one, the classes at a node are divided into two groups, and a linear SVM of these is
fitted; the sides are then those of its hyperplane. With the sides of all rows given, the best hyperplanes with their shared
δ are those of a cone program (:mod:`.fixed_assignment`), in which the side takes the place of the label.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from ..formulations.base import Data, FloatArray, IntArray
from ..formulations.heap import is_below
from ..formulations.margin_trees import norms
from . import fixed_assignment
from .budget import Budget
from .fixed_assignment import STANDARD, Assignment, Costs, Tolerance
from .linear_svm import fit_linear_svm
from .move_estimates import SolvedTree
from .tree_builder import Builder, Hyperplanes, Subtree

ALL_GROUPINGS = 4  # classes up to which all ways to divide them are tried
BEST_GROUPINGS = 3  # of a node, those below which a subtree is grown
FACTORS = np.geomspace(1e-3, 1e3, 25)  # of all norms together
FINE_FACTORS = np.geomspace(0.8, 1.25, 9)
MOST_CELLS = 20_000  # rows times levels up to which the cone program is solved


class SideBuilder(Builder):
    """Grows, evaluates and improves trees for the rows of a table, and keeps the best one; everything in scaled units.

    ``levels`` is how many levels may split, at most the depth. A node without a split has ω = 0 and ω_0 = 1.
    """

    def __init__(self, data: Data, params: Any, budget: Budget, seed: int) -> None:
        self.X, self.y, self.K, self.weights = data.X, data.y, data.K, data.weights
        self.depth = self.levels = int(params.depth)
        self.T, self.B = 2 ** (self.depth + 1) - 1, 2**self.depth - 1
        self.c1, self.c2, self.c3 = float(params.c1), float(params.c2), float(params.c3)
        self.mu, self.norm = float(params.mu_svm), params.norm
        self.costs = Costs(self.c1, self.mu, self.norm, single=False)
        self.budget, self.rng = budget, np.random.default_rng(seed)
        self.best = self.unsplit()
        self.best.cost = self.value(self.best)

    # -- costs ----------------------------------------------------------------------------------------------

    def unsplit(self) -> Hyperplanes:
        """The tree without a split."""
        return Hyperplanes(np.zeros((self.T, self.X.shape[1])), np.ones(self.T), np.zeros(self.T, dtype=bool))

    def side(self, rows: IntArray) -> float:
        """All go right."""
        return 1.0

    def route(self, planes: Hyperplanes) -> tuple[IntArray, FloatArray]:
        """Nodes (n, D + 1) and the scores there; those of leaves are 1."""
        n = len(self.X)
        node, score = np.ones((n, self.depth + 1), dtype=np.int64), np.ones((n, self.depth + 1))
        S, every = self.X @ planes.omega[: self.B].T + planes.omega0[: self.B], np.arange(n)
        for level in range(self.depth):
            score[:, level] = S[every, node[:, level] - 1]
            node[:, level + 1] = 2 * node[:, level] + (score[:, level] >= 0)
        return node, score

    def misclassified(self, leaf: IntArray, rows: IntArray | slice = slice(None)) -> float:
        """Weight of the ``rows`` that are not of the heaviest class of their ``leaf``."""
        places = (int(leaf.max(initial=0)) + 1) * self.K
        counts = np.bincount(leaf * self.K + self.y[rows], self.weights[rows], places).reshape(-1, self.K)
        return float(counts.sum() - counts.max(axis=1).sum())

    def value(self, planes: Hyperplanes) -> float:
        """The objective; infinite where a row goes left with a score above -μ."""
        node, score = self.route(planes)
        if ((score < 0) & (score > -self.mu)).any():
            return np.inf
        error = float(self.weights @ np.maximum(0.0, 1.0 - np.abs(score)).sum(axis=1))
        margin = float(norms(planes.omega, self.norm).max()) / 2
        fixed = self.c2 * self.misclassified(node[:, -1]) + self.c3 * float(planes.split.sum())
        return margin + self.c1 * error + fixed

    # -- hyperplanes ----------------------------------------------------------------------------------------

    def rescaled(self, planes: Hyperplanes) -> Hyperplanes:
        """The tree with all normal vectors multiplied by the best factor."""
        _, score = self.route(planes)
        splits = score != 1.0
        size = float(norms(planes.omega, self.norm).max()) / 2
        found = planes.copy()
        for factors in (FACTORS, FINE_FACTORS):
            cost = [
                f * size
                + self.c1
                * float(self.weights @ np.where(splits, np.maximum(0, 1 - f * np.abs(score)), 0).sum(axis=1))
                for f in factors
            ]
            best = float(factors[int(np.argmin(cost))])
            found.omega, size, score = found.omega * best, size * best, score * best
            found.omega0 = np.where(found.split, found.omega0 * best, found.omega0)
        return self.clear_boundaries(found)

    def assignment(self, planes: Hyperplanes) -> Assignment:
        """Where the tree sends each row."""
        return self.assigned(*self.route(planes), planes)

    def assigned(self, node: IntArray, score: FloatArray, planes: Hyperplanes) -> Assignment:
        """The rows at ``node`` (n, D + 1), of which a node that all rows leave to one side does not split."""
        split, side = planes.split.copy(), np.ones(node.shape)
        side[:, :-1] = np.where(node[:, 1:] % 2 == 1, 1.0, -1.0)
        return Assignment(node, side, split, score)

    def solve(self, assignment: Assignment, tolerance: Tolerance = STANDARD) -> SolvedTree | None:
        """The best tree for an assignment; None where there is none, or the table is too large."""
        if assignment.node.size > MOST_CELLS:
            return None
        found = fixed_assignment.solve(
            self.X, self.weights, assignment, self.costs, tolerance, self.budget.left()
        )
        if found is None:
            return None
        omega0 = np.where(assignment.split, found.omega0, 1.0)
        planes = Hyperplanes(found.omega, omega0, assignment.split.copy())
        planes.cost = self.value(planes)
        return SolvedTree(planes, assignment, found)

    def without_idle_splits(self, planes: Hyperplanes) -> Hyperplanes:
        """The tree without splits that send all of their rows to one side, which only cost."""
        fresh = planes.copy()
        for t in np.flatnonzero(planes.split)[::-1].tolist():
            node, _ = self.route(fresh)
            level = (t + 1).bit_length() - 1
            sides = np.unique(node[node[:, level] == t + 1, level + 1])
            if len(sides) < 2:
                self._lift(fresh, t + 1, int(sides[0]) if len(sides) else 2 * t + 3)
        return fresh

    def _lift(self, planes: Hyperplanes, t: int, child: int) -> None:
        """Put the subtree at ``child`` in the place of its parent ``t``."""
        before, cut = planes.copy(), child.bit_length()
        for s in range(t, self.T + 1):
            if not is_below(s, t):
                continue
            steps = s.bit_length() - t.bit_length()
            source = (child << steps) | (s & ((1 << steps) - 1))
            inside = source.bit_length() == cut + steps and source <= self.T
            planes.split[s - 1] = before.split[source - 1] if inside else False
            planes.omega[s - 1] = before.omega[source - 1] if inside else 0.0
            planes.omega0[s - 1] = before.omega0[source - 1] if inside else 1.0

    # -- growing --------------------------------------------------------------------------------------------

    def groupings(self, rows: IntArray) -> Iterator[FloatArray]:
        """Ways to divide the classes of the ``rows`` in two, as ±1 for each class (K,)."""
        total = np.bincount(self.y[rows], self.weights[rows], minlength=self.K)
        present = np.flatnonzero(total)
        if len(present) <= ALL_GROUPINGS:
            for size in range(1, len(present)):
                for some in combinations(present[1:].tolist(), size):
                    yield np.where(np.isin(np.arange(self.K), some), 1.0, -1.0)
            return
        for k in present[np.argsort(-total[present], kind="stable")][:BEST_GROUPINGS]:
            yield np.where(np.arange(self.K) == k, 1.0, -1.0)
        means = np.array([self.X[rows[self.y[rows] == k]].mean(axis=0) for k in present])
        for _ in range(BEST_GROUPINGS):
            along = means @ self.rng.normal(size=means.shape[1])
            yield np.where(np.isin(np.arange(self.K), present[along > np.median(along)]), 1.0, -1.0)

    def grow(
        self,
        t: int,
        rows: IntArray,
        C: float,
        given: dict[int, tuple[FloatArray, float]] | None = None,
        randomised: bool = False,
    ) -> Subtree:
        """The subtree at ``t`` for these rows, from linear SVMs of this C; hyperplanes ``given`` by node are kept."""
        alone = self.c2 * self.misclassified(np.zeros(len(rows), dtype=np.int64), rows)
        best = Subtree(alone, {})
        forced = None if given is None else given.get(t)
        pays = forced is not None or alone > self.c3
        if t.bit_length() > self.levels or not pays or len(rows) < 2 or self.budget.late():
            return best
        trials = [(0.0, *forced)] if forced is not None else self._trials(rows, C, randomised)
        for at_node, omega, omega0 in trials:
            s = self.X[rows] @ omega + omega0
            if forced is not None:
                at_node = self._paid(s, rows)
            cost, planes = at_node + self.c3, {t: (omega, omega0)}
            for child, side in ((2 * t, s < 0), (2 * t + 1, s >= 0)):
                part = self.grow(child, rows[side], C, given, randomised)
                cost, planes = cost + part.cost, planes | part.planes
            if cost < best.cost or forced is not None:
                best = Subtree(cost, planes)
        return best

    def _paid(self, score: FloatArray, rows: IntArray) -> float:
        return self.c1 * float(self.weights[rows] @ np.maximum(0.0, 1.0 - np.abs(score)))

    def _trials(self, rows: IntArray, C: float, randomised: bool) -> list[tuple[float, FloatArray, float]]:
        """Hyperplanes for these rows, those first after which two leaves are cheapest: errors at the node, ω, ω_0."""
        found: list[tuple[float, float, FloatArray, float]] = []
        for grouping in self.groupings(rows):
            w = self.weights[rows]
            if randomised:
                w = w * self.rng.exponential(size=len(rows))
            omega, omega0 = fit_linear_svm(self.X[rows], grouping[self.y[rows]], w, C)
            s = self.X[rows] @ omega + omega0
            if not omega.any() or (s >= 0).all() or (s < 0).all():
                continue
            at_node = self._paid(s, rows)
            leaves = self.c2 * self.misclassified((s >= 0).astype(np.int64), rows)
            found.append((at_node + leaves, at_node, omega, omega0))
        found.sort(key=lambda one: one[0])
        most = 1 if randomised and self.rng.random() < 0.5 else BEST_GROUPINGS
        return [one[1:] for one in found[:most]]

    def assemble(self, subtree: Subtree) -> Hyperplanes | None:
        """The subtree of the root as a tree; None where it does not split."""
        return self.with_planes(subtree.planes) if subtree.planes else None
