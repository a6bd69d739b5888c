"""Starts for MOCTSVM: trees of linear SVMs, then a search over the sides of the rows.

The search goes on by depth, with trees of two levels of splits, then of three, and so on, so that a deeper tree starts from
the best shallower one. At each depth trees are grown from linear SVMs (:mod:`.side_builder`) and from
axis-parallel trees; then the best tree is improved: rows cross their hyperplanes, nodes are fitted anew to the sides that
the leaves below prefer, subtrees are grown anew or pruned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, islice, zip_longest
from typing import Any

import numpy as np

from ..formulations import leaf_trees
from ..formulations.base import Data, FloatArray, IntArray
from ..formulations.heap import is_below
from ..formulations.margin_trees import norms
from ..formulations.trees import ObliqueTree
from .axis_search import sample
from .budget import Budget
from .fixed_assignment import LOOSE, Assignment
from .linear_svm import LARGE, fit_linear_svm
from .margin_tree import AdaptiveSelection
from .move_estimates import SolvedTree, crossed
from .side_builder import SideBuilder
from .tree_builder import Hyperplanes, outside

SVM_COSTS = (10.0, 100.0, 1.0, 1e4, 1e3, 1e-1)  # C of the linear SVMs; features are in [0, 1]
PROMISING = 1.3  # times the best cost, up to which a tree's hyperplanes are optimised
LOOSELY = 2e-3  # relative, how much cheaper a tree's best hyperplanes may be than those of a loose tolerance
# Moves of a walk, how many of the first are drawn from, and how much worse it may get.
WALKS, FIRST, WORSENING = 4, 6, 0.2
MOVES = 3  # of one step, each a cone program
NEAR = 0.3  # added to a row's distance, so that those on a hyperplane do not outweigh all others
SHARE = 0.75  # of the seconds that are left, for each depth below the last
LEVEL_STEPS = 60  # of the budget, for the same
PATIENCE = 60  # steps without a better tree; below the last depth
LAST_PATIENCE = 400  # the same at the last depth
WEIGHTS = {"cross": 3.0, "walk": 1.5, "refit": 2.0, "regrow": 2.0, "prune": 0.5, "grow": 1.0}  # of the steps


class SideSearch(SideBuilder):
    """Grows trees and improves the best one."""

    _solved: SolvedTree | None = None  # the best tree, where it was optimised
    _costs: list[float]  # C of the trees that were not grown yet
    _pending: Iterator[tuple[int, int]] = iter(())  # moves from there that were not tried

    def run(self) -> Iterator[Hyperplanes]:
        """Trees, each better than those before."""
        whole, last = self.budget, self.depth
        yield from self._first_trees()
        for levels in range(min(2, last), last + 1):
            self.levels = levels
            self.budget = whole if levels == last else whole.part(SHARE, LEVEL_STEPS)
            self._costs = list(SVM_COSTS)
            while self._costs and levels <= 2 and not self.budget.tick():  # deeper, they join the other steps
                if self.grow_next():
                    yield self.best
            yield from self._improve(LAST_PATIENCE if levels == last else PATIENCE)
            if whole.tick():
                return

    def _first_trees(self) -> Iterator[Hyperplanes]:
        """A tree of each depth whose hyperplanes are not optimised, which can take a second on a table with many features."""
        for levels in range(1, self.depth + 1):
            self.levels = levels
            for C in SVM_COSTS[:2]:
                if self.budget.tick():
                    return
                planes = self.assemble(self.grow(1, np.arange(len(self.X)), C))
                if planes is not None and self.offer(self.rescaled(planes)):
                    yield self.best

    def grow_next(self) -> bool:
        """Grow a tree of linear SVMs of the next C, or a subtree of a random one after the last; whether it is better."""
        if not self._costs:
            return self.regrow()
        return self.optimise_and_offer(
            self.assemble(self.grow(1, np.arange(len(self.X)), self._costs.pop(0)))
        )

    def optimise_and_offer(self, planes: Hyperplanes | None) -> bool:
        """Whether the tree is the best so far, at its best scale and, if that is promising, with its best hyperplanes."""
        if planes is None:
            return False
        planes = self.without_idle_splits(self.rescaled(planes))
        better = self.offer(planes)
        if planes.cost > self.best.cost * PROMISING or not planes.split.any():
            return better
        return self._optimised(self.assignment(planes)) or better

    def _optimised(self, assignment: Assignment) -> bool:
        """Whether the best hyperplanes for an assignment make the best tree so far."""
        loose = self.solve(assignment, LOOSE)
        if loose is None or loose.cost > self.best.cost * (1 + LOOSELY):
            return False
        better = self.offer(loose.planes)
        found = None if self.budget.late() else self.solve(assignment)
        if found is None or not self.offer(found.planes):
            return better
        self._go_on_from(found)
        return True

    def _go_on_from(self, found: SolvedTree) -> None:
        """Take the moves of the best tree from now on, for whose assignment this was found."""
        self._solved = replace(found, planes=self.best)
        self._pending = self._moves(self._solved)

    # -- improvement ----------------------------------------------------------------------------------------

    def _improve(self, patience: int) -> Iterator[Hyperplanes]:
        """Steps drawn by how often they succeeded, until none does for a while or the budget is used up."""
        steps: dict[str, Callable[[], bool]] = {
            "cross": self.cross,
            "walk": self.walk,
            "refit": self.refit,
            "regrow": self.regrow,
            "prune": self.prune,
            "grow": self.grow_next,
        }
        selection, apply = AdaptiveSelection([WEIGHTS[name] for name in steps]), list(steps.values())
        idle = 0
        while idle < patience and not self.budget.tick():
            number = selection.draw(self.rng)
            done = apply[number]()
            selection.record(number, done)
            idle = 0 if done else idle + 1
            if done:
                yield self.best

    def cross(self) -> bool:
        """Let the next few rows cross a hyperplane, the most promising first; whether one of them makes a better tree."""
        if (self._solved is None or self._solved.planes is not self.best) and not self._solve_best():
            return False
        assert self._solved is not None
        before = self.best
        for row, level in islice(self._pending, MOVES):
            if self.budget.late() or self._optimised(self._crossed(self._solved, row, level)):
                break
        return before is not self.best

    def walk(self) -> bool:
        """Take promising moves one after another, also for the worse; whether that leads below the best tree."""
        if not self.best.split.any():
            return False
        before = planes = self.best
        found = self.solve(self.assignment(before), LOOSE)
        for _ in range(WALKS):
            if found is None or self.budget.late() or found.cost > before.cost * (1 + WORSENING):
                break
            at = replace(found, planes=planes)
            moves = list(islice(self._moves(at), FIRST))
            if not moves:
                break
            assignment = self._crossed(at, *moves[int(self.rng.integers(len(moves)))])
            found = self.solve(assignment, LOOSE)
            if found is not None:
                planes = found.planes
                if found.cost < before.cost * (1 + LOOSELY) and self._optimised(assignment):
                    return True
        return False

    def _solve_best(self) -> bool:
        """Optimise the hyperplanes of the best tree; whether there is a solution to start from."""
        found = self.solve(self.assignment(self.best))
        if found is None:
            return False
        self.offer(found.planes)
        self._go_on_from(found)
        return True

    def _moves(self, at: SolvedTree) -> Iterator[tuple[int, int]]:
        """Rows and levels: in turn those that would cost less on the other side and those with the largest dual values,
        then all others next to a hyperplane.
        """
        node, distance = at.assignment.node, np.abs(at.assignment.score[:, :-1])
        saved = np.zeros(distance.shape)
        for t in (np.flatnonzero(at.planes.split) + 1).tolist():
            level = t.bit_length() - 1
            rows = np.flatnonzero(node[:, level] == t)
            right = node[rows, level + 1] % 2 == 1
            gain = self._saving_on_the_right(t, rows, node, at.planes)
            saved[rows, level] = gain * np.where(right, -1.0, 1.0)
        pull = at.solution.side[:, :-1]
        near = np.where(at.assignment.split[node - 1][:, :-1], 1.0 / (NEAR + distance), 0.0)
        orders = [
            np.argsort(-worth, axis=None, kind="stable")[: np.count_nonzero(worth > least)]
            for worth, least in ((np.maximum(saved, 0.0) * near, 0.0), (pull, 1e-6 * pull.max(initial=0.0)))
        ]
        nearest = np.argsort(-near * self.rng.uniform(0.5, 1.0, near.shape), axis=None)[
            : np.count_nonzero(near)
        ]
        done = set[int]()
        for place in chain(chain.from_iterable(zip_longest(*orders)), nearest.tolist()):
            if place is not None and place not in done:
                done.add(place)
                yield divmod(int(place), self.depth)

    def _crossed(self, at: SolvedTree, row: int, level: int) -> Assignment:
        """The row on the other side on this level, and below it where the tree routes it."""
        return self.assigned(*crossed(self.X, at.assignment, at.planes, row, level), at.planes)

    def refit(self) -> bool:
        """Fit a node anew to the sides that cost less below it; the subtrees below are kept or grown anew."""
        nodes = np.flatnonzero(self.best.split) + 1
        if not len(nodes):
            return False
        t = int(self.rng.choice(nodes))
        level = t.bit_length() - 1
        node, score = self.route(self.best)
        rows = np.flatnonzero(node[:, level] == t)
        if len(rows) < 2:
            return False
        s = score[rows, level]
        saved = self._saving_on_the_right(t, rows, node, self.best)
        side = np.where(np.abs(saved) > 1e-9, np.sign(saved), np.where(s >= 0, 1.0, -1.0))
        keen = float(self.rng.choice([0.1, 0.3, 1.0, 3.0]))
        w = self.weights[rows] * (self.c1 + keen * np.abs(saved))
        if self.rng.random() < 0.5:
            w = w * self.rng.exponential(size=len(rows))
        size = float(norms(self.best.omega, self.norm).max())
        C = float(np.clip(2 * size * self.rng.choice([0.3, 1.0, 3.0]), 1e-3, 1e5))
        omega, omega0 = fit_linear_svm(self.X[rows], side, w, C)
        if not omega.any():
            return False
        if self.rng.random() < 0.5:
            given = outside(self.best, t) | {t: (omega, omega0)}
            return self._grown(given, 2 * self.c1 * size, randomised=False)
        fresh = self.best.copy()
        fresh.omega[t - 1], fresh.omega0[t - 1] = omega, omega0
        return self.optimise_and_offer(self.clear_boundaries(fresh))

    def _saving_on_the_right(self, t: int, rows: IntArray, node: IntArray, planes: Hyperplanes) -> FloatArray:
        """What each row at ``t`` costs less below its right side than below its left one; leaves have the classes of ``node``."""
        counts = np.zeros((self.T + 1, self.K))
        np.add.at(counts, (node[:, -1], self.y), self.weights)
        label = counts.argmax(axis=1)
        S, every = self.X[rows] @ planes.omega.T + planes.omega0, np.arange(len(rows))
        saved = np.zeros(len(rows))
        for child, sign in ((2 * t, 1.0), (2 * t + 1, -1.0)):
            at = np.full(len(rows), child)
            for _ in range(t.bit_length(), self.depth):
                s = S[every, at - 1]
                saved += sign * self.c1 * np.maximum(0.0, 1.0 - np.abs(s))
                at = 2 * at + (s >= 0)
            saved += sign * self.c2 * (label[at] != self.y[rows])
        return saved

    def regrow(self) -> bool:
        """Grow the subtree at a random node that splits, or could, anew, from linear SVMs of random weights and a random C."""
        split = (np.flatnonzero(self.best.split) + 1).tolist()
        below = [c for t in split for c in (2 * t, 2 * t + 1) if c < 2**self.levels]
        t = int(self.rng.choice(np.unique([1, *split, *below])))
        given = outside(self.best, t)
        return self._grown(given, float(10 ** self.rng.uniform(-0.5, 4)), randomised=True)

    def _grown(self, given: dict[int, tuple[FloatArray, float]], C: float, randomised: bool) -> bool:
        C = float(np.clip(C, 1e-3, 1e5))
        return self.optimise_and_offer(
            self.assemble(self.grow(1, np.arange(len(self.X)), C, given, randomised))
        )

    def prune(self) -> bool:
        """Take a subtree out of the best tree; whether that is better."""
        for t in self.rng.permutation(np.flatnonzero(self.best.split) + 1).tolist():
            fresh = self.best.copy()
            below = [s for s in range(t, self.B + 1) if is_below(s, t)]
            for s in below:
                fresh.split[s - 1], fresh.omega[s - 1], fresh.omega0[s - 1] = False, 0.0, 1.0
            if self.optimise_and_offer(fresh):
                return True
        return False


def as_tree(planes: Hyperplanes, data: Data, depth: int) -> ObliqueTree:
    """The hyperplanes as a tree of the formulation, each leaf of its heaviest class."""
    B = 2**depth - 1
    b = np.where(planes.split, -planes.omega0, 0.0)[:B]
    splits = planes.omega[:B].copy(), b, planes.split[:B].copy()
    return leaf_trees.with_best_labels(data, ObliqueTree, depth, *splits)


def candidates(data: Data, params: Any, budget: Budget, seed: int) -> Iterator[ObliqueTree]:
    """Trees of MOCTSVM, each better than those before."""
    if data.n > LARGE:
        yield from _of_a_sample(data, params, budget, seed)
        return
    for planes in SideSearch(data, params, budget, seed).run():
        yield as_tree(planes, data, params.depth)


def _of_a_sample(data: Data, params: Any, budget: Budget, seed: int) -> Iterator[ObliqueTree]:
    """The trees of a sample, brought to the best scale on all rows."""
    few = sample(data, seed)
    few = replace(few, weights=few.weights * (data.n / few.n))
    whole = SideBuilder(data, params, budget, seed)
    for planes in SideSearch(few, params, budget, seed).run():
        if whole.offer(whole.rescaled(whole.clear_boundaries(planes.copy()))):
            yield as_tree(whole.best, data, params.depth)
