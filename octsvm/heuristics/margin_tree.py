"""Starts for the SVM models: trees of linear SVMs, then local search.

Trees are grown by :mod:`.tree_builder`: from linear SVMs of single costs C, from hard-margin SVMs with outlier trimming, from
class-weighted roots, and under a path of caps on the norm. On small tables trees whose root gives up few labels join them
(:mod:`.few_relabelled`).

The best tree is then improved by operators that are selected adaptively: all norms together, single nodes along subgradients
or at random, linear SVMs fitted anew with the other nodes kept, alternating-optimisation sweeps
(:mod:`.alternating_optimisation`), moves of the local search over assignments (:mod:`.local_search`), and pruning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from ..formulations.base import BoolArray, Data, FloatArray, IntArray
from ..formulations.margin_trees import norms
from ..formulations.trees import MarginTree, tree_on
from . import few_relabelled
from .alternating_optimisation import Weighting, sweep
from .axis_search import sample
from .budget import Budget
from .fixed_assignment import Assignment
from .linear_svm import LARGE, fit_linear_svm
from .local_search import LocalSearch
from .tree_builder import (
    RELABEL_ROUNDS,
    SLACK,
    Hyperplanes,
    InductionOptions,
    TreeBuilder,
    boundary_shift,
    outside,
)

SVM_COSTS = (1.0, 100.0, 10.0, 1e4, 1e3, 1e-1)  # of trees grown from linear SVMs of one C
TRIMMING_COSTS = (100.0, 1e4)  # the same for hard-margin SVMs with outlier trimming
CAPS = np.geomspace(0.02, 2e4, 16)  # norms
# Of them, those nearest to the norm of the best tree, with few and with all directions.
QUICK_CAPS, ALL_CAPS = 5, 3
# Of a root: factor of its cost C, weight of a class, the class.
CLASS_WEIGHTS = [
    (factor, weight, side) for factor in (3.0, 10.0, 1.0) for weight in (2.0, 4.0) for side in (1.0, -1.0)
]
OPTIMISED_STARTS = 1.4  # times the best cost: of 456 trees that cost more none ended as the best
TRIES = 24  # directions evaluated together
OPTIMISE_AFTER, PROMISING = 4, 1.05  # steps without success; times the best cost up to which it is worth it
LARGE_PENALTY = 10.0  # c1 from which errors cost more than the margin, so that other operators succeed
PERTURB_AFTER = (15, 10)  # steps without success: below LARGE_PENALTY, and from there on
RANDOM_RESTARTS = 8  # of the root, where no tree beats the constant one
CHAINS, SWEEPS = 3, 4  # of alternating-optimisation sweeps, each chain from the best tree
PROPOSALS = 6  # sets of labels, of which the best is taken
PROBABLY_DEAR = 0.2  # times the cost of the constant tree: labels that cost less are not taken for too dear
PATIENCE = 2000  # steps without a better tree; fewer where a step takes longer, from 200 rows on
LEAST_PATIENCE = 100
SAMPLE_STEPS = 400  # of the budget, for the search of a sample
RELABELLED_STEPS = 600  # of the budget, for the enumeration of small relabelled sets
FULL_PASSES = 3  # over the nodes, on all rows of a large table
FORGETTING = 0.98  # factor of the numbers of successes and attempts after each step
# Initial weights of the operators: below LARGE_PENALTY, and from there on.
OPERATORS = {
    "rescale": (0.5, 0.1),
    "refit": (1.0, 2.5),
    "regrow": (1.0, 2.5),
    "prune": (0.2, 0.2),
    "change": (1.0, 0.2),
    "move": (3.0, 2.5),
    "compound move": (0.7, 0.3),
    "trim outliers": (0.2, 3.0),
    "replace hyperplane": (2.0, 1.3),
    "sweep": (1.0, 0.05),
    "tabu search": (0.7, 1.2),
    "exchange": (0.7, 0.8),
}


class AdaptiveSelection:
    """Adaptive operator selection: operators that succeeded, or with ``forgetting`` did lately, are drawn more often."""

    def __init__(self, weights: list[float], forgetting: float = 1.0) -> None:
        self._weights, self._forgetting = weights, forgetting
        self._successes, self._attempts = np.zeros(len(weights)), np.zeros(len(weights))

    def draw(self, rng: np.random.Generator) -> int:
        """The number of an operator."""
        share = (self._successes + 1.0) / (self._attempts + 4.0) * self._weights
        return int(rng.choice(len(share), p=share / share.sum()))

    def record(self, number: int, success: bool) -> None:
        """Count an attempt of the operator."""
        self._successes *= self._forgetting
        self._attempts *= self._forgetting
        self._successes[number] += success
        self._attempts[number] += 1


class TreeSearch(TreeBuilder):
    """Grows trees and improves the best one."""

    @cached_property
    def search(self) -> LocalSearch:
        """The local search over the assignment of the best tree; what it solved once is cached."""
        return LocalSearch(self)

    def change(self, t: int, spread: float) -> bool:
        """Change the hyperplane at node ``t`` along the subgradient or at random, the other nodes kept."""
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
        pull = (
            np.where(self.keeps_label(ys), np.where(ys < 1, 1.0, 0.0), np.where(ys > -1, -1.0, 0.0)) * w * y
        )
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
            if self._offer_hyperplane(t, U[k] * lengths[g], float(omega0[k, g]), rows):
                return True
        return False

    def refit(self, t: int, perturb: bool = False) -> bool:
        """Fit a linear SVM to node ``t`` by labels given up or by random weights, the subtrees below kept or grown anew.

        With ``perturb`` several labels change; it is for a tree whose cost was set to infinity.
        """
        level = t.bit_length() - 1
        node, score = self.route(self.best)
        rows = np.flatnonzero(node[:, level] == t)
        if not len(rows):
            return False
        cap = float(norms(self.best.omega, self.norm).max())
        kind = 0.0 if perturb else self.rng.random()
        careful = bool(kind < 0.7)
        ys = self.sign[rows] * score[rows, level]
        if careful:
            label, w, C = self._by_labels(rows, ys, cap, kind < 0.4, perturb)
        else:
            label, w, C = self._by_random_weights(rows, ys)
        omega, omega0 = fit_linear_svm(self.X[rows], label, w, C, careful=careful)
        if float(norms(omega[None, :], self.norm)[0]) <= 1e-12:
            return False
        keep_below = not (perturb and t <= self.B)
        if keep_below and self._offer_hyperplane(t, omega, omega0, rows):
            return True
        omega, omega0, length = self._with_best_norm(t, omega, rows, cap)
        if keep_below and self._offer_hyperplane(t, omega, omega0, rows):
            return True
        if t > self.B:
            return False
        given = outside(self.best, t) | {t: (omega, omega0)}
        return self.grow_and_offer(InductionOptions(max(cap, length), True, None, given))

    def _by_labels(
        self, rows: IntArray, ys: FloatArray, cap: float, change: bool, perturb: bool
    ) -> tuple[FloatArray, FloatArray, float]:
        """Labels, weights and C of an SVM for the cheaper labels, some of them changed if ``change``."""
        kept, label, w = self.keeps_label(ys), self.sign[rows], self.weights[rows]
        # Where one node alone sets δ, its own optimum has C = c1 dR/dmargin; a smaller dual value of its norm means a larger C.
        rate = 2 * cap if not self.single else 1.0
        C = min(max(self.c1 * rate * float(self.rng.choice([1.0, 1.0, 2.0, 5.0, 30.0])), 1e-3), 1e5)
        if change:
            kept = self._other_labels(kept, ys, rows, C, perturb)
        if self.c2 < 2 * self.c1:
            w = w * np.where(kept, 1.0, float(self.rng.choice([0.0, 0.3, 1.0, 1.0])))
        else:
            w = w * kept  # a row whose label is given up costs c2, wherever it lies
        return np.where(kept, label, -label), w, C

    def _by_random_weights(self, rows: IntArray, ys: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Labels, random weights and a random C, mostly without the rows whose labels are given up."""
        kept = self.keeps_label(ys)
        C = float(10 ** self.rng.uniform(-0.5, 4.5))
        w = self.weights[rows] * self.rng.exponential(size=len(rows))
        if self.rng.random() < 0.7:
            w = w * (kept | (self.rng.random(len(rows)) < 0.2))
        return self.sign[rows], w, C

    def _with_best_norm(
        self, t: int, omega: FloatArray, rows: IntArray, cap: float
    ) -> tuple[FloatArray, float, float]:
        """ω and ω_0 of this direction at its best norm for the ``rows`` at node ``t``, and that norm."""
        size = float(norms(omega[None, :], self.norm)[0])
        others = float(np.delete(norms(self.best.omega, self.norm), t - 1).max(initial=0.0))
        lengths = np.unique([cap, 0.9 * cap, 1.1 * cap, size, max(others, 0.3 * cap)])
        along = (self.X[rows] @ omega / size)[None, :]
        places, cost = self.intercepts(along, self.sign[rows], self.weights[rows], lengths)
        cost = cost[0] + np.array([self.margin(max(float(r), others)) for r in lengths])
        g = int(np.argmin(cost))
        return omega * (lengths[g] / size), float(places[0, g]), float(lengths[g])

    def _other_labels(
        self, kept: BoolArray, ys: FloatArray, rows: IntArray, C: float, perturb: bool
    ) -> BoolArray:
        """Labels given up or taken back of rows next to the hyperplane, or far on its wrong side."""
        far = np.abs(ys) if self.rng.random() < 0.5 else ys
        best, lowest = kept, np.inf
        proposals = 1 if perturb or self.rng.random() < 0.5 else PROPOSALS
        for _ in range(proposals):
            # Support vectors all have a margin of 1: in a random order.
            near = np.argsort(far + 0.2 * self.rng.random(len(ys)), kind="stable")[:12]
            many = int(self.rng.integers(2, 5)) if perturb or self.rng.random() < 0.4 else 1
            fresh = kept.copy()
            fresh[self.rng.permutation(near)[:many]] ^= True
            if proposals == 1:
                return fresh
            y, w = self.sign[rows], self.weights[rows]
            v, v0 = fit_linear_svm(self.X[rows], np.where(fresh, y, -y), w, C)
            size = float(norms(v[None, :], self.norm)[0])
            cost = self.margin(size) + float(w @ self.loss(y * (self.X[rows] @ v + v0)))
            if cost < lowest:
                best, lowest = fresh, cost
        return best

    def _offer_hyperplane(self, t: int, omega: FloatArray, omega0: float, rows: IntArray) -> bool:
        fresh = self.best.copy()
        fresh.omega[t - 1], fresh.split[t - 1] = omega, True
        if t <= self.B and self.mu:
            omega0 += boundary_shift(self.X[rows] @ omega + omega0, self.mu)
        fresh.omega0[t - 1] = omega0
        if t <= self.B:
            self.set_sides(fresh)
        return self.offer(fresh)

    def regrow(self) -> bool:
        """Grow the subtree at a random node anew, at a cap near the present norm, with the nodes outside of it kept."""
        t = int(self.rng.integers(1, self.T + 1))
        factor = float(self.rng.choice([0.7, 0.85, 1.0, 1.2, 1.5]))
        quick = bool(self.rng.random() < 0.7)
        cap = float(norms(self.best.omega, self.norm).max()) * factor
        if cap == 0:
            return False
        return self.grow_and_offer(InductionOptions(cap, quick, None, outside(self.best, t)))

    def trim_outliers(self, t: int) -> bool:
        """Grow the subtree at ``t``, or the whole tree, anew from hard-margin SVMs with randomised outlier trimming."""
        if self.rng.random() < 0.5:
            t = 1
        given = outside(self.best, t)
        C = np.inf if self.rng.random() < 0.4 else float(10 ** self.rng.uniform(1.5, 4))
        options = InductionOptions(C=C, given=given, trimming=True, randomised=True)
        subtree = self.grow(1, np.arange(len(self.X)), options, np.inf)
        planes = self.rescaled(self.assemble(subtree), coarse=True) if subtree.planes else None
        return self.search.offer_optimised(planes)

    def tao_sweeps(self) -> bool:
        """Alternating-optimisation sweeps, the first of a chain with random weights, while they improve; whether the best tree gets better."""
        rng = self.rng
        cap = float(norms(self.best.omega, self.norm).max()) * float(rng.choice([0.7, 1.0, 1.4]))
        capped = self.c2 < 2 * self.c1  # then c2 is what a row can cost at most
        C = (self.c2 if capped else self.c1) * (2 * cap if not self.single else 1.0)
        relabelled = float(rng.choice([0.0, 0.3, 1.0])) if capped else 0.0
        lowest: Hyperplanes | None = None
        for _ in range(CHAINS):
            planes = self.best
            for k in range(SWEEPS):
                if self.budget.late():
                    break
                factor = 10 ** rng.uniform(0.0, 2.5 if capped else 1.0)
                weighting = Weighting(
                    10 ** rng.uniform(-1.5, 0.7), float(np.clip(C * factor, 1e-2, 1e5)), relabelled, k == 0
                )
                fresh = sweep(self, planes, cap, weighting)
                if k and fresh.cost >= planes.cost:
                    break
                planes = fresh
            if lowest is None or planes.cost < lowest.cost:
                lowest = planes
        assert lowest is not None
        if not lowest.split.any() or lowest.cost > 1.5 * self.best.cost:
            return False
        return self.search.offer_optimised(self.rescaled(lowest, coarse=True))

    def run(self) -> Iterator[Hyperplanes]:
        """Trees, each better than those before."""
        self.offer(self.unsplit())
        if self.best.cost <= self.c3 or self.c1 == 0:
            return  # no split can pay off; without c1 nothing costs anything
        if self.depth == 0 and self.labels_are_dear():
            yield self.best
            return
        if self.single:
            yield from self.alternate_relabelling()
        ways = [InductionOptions(C=C) for C in SVM_COSTS]
        ways += [InductionOptions(C=C, trimming=True) for C in TRIMMING_COSTS]
        for options in ways:
            if self.budget.tick():
                break
            if self.grow_and_offer(options):
                yield self.best
        for planes in few_relabelled.trees(self, RELABELLED_STEPS):
            if self.offer(self.rescaled(planes)):
                yield self.best
        if self.best.split.any() and (self.search.optimise_best() or self.prune()):
            yield self.best
        yield from self.class_weighted_starts()
        caps = [float(c) for c in CAPS]
        for quick in (True, False):
            near = float(norms(self.best.omega, self.norm).max()) or min(
                15.0, 0.3 * self.norm_costing(self.best.cost)
            )
            for cap in sorted(caps, key=lambda c: abs(np.log(c / near)))[: QUICK_CAPS if quick else ALL_CAPS]:
                if self.budget.tick():
                    break
                if self.margin(cap * 0.1) < self.best.cost and self.grow_and_offer(
                    InductionOptions(cap, quick)
                ):
                    yield self.best
        if self.random_restarts():
            yield self.best
        yield from self.improve()

    def labels_are_dear(self) -> bool:
        """Offer the best hyperplane that keeps all labels, a convex problem; whether nothing can be cheaper.

        Whatever gives a label up pays c2 times its weight: if that is more than this hyperplane costs, this one is optimal.
        """
        price = self.c2 * float(self.weights[self.weights > 0].min())
        if price < PROBABLY_DEAR * self.best.cost or self.budget.tick():
            return False
        planes = self.with_planes({1: fit_linear_svm(self.X, self.sign, self.weights, 1.0)})
        node, score = self.route(planes)
        found = self.search.solve(Assignment(node, self.sign[:, None], planes.split, score), planes)
        if found is None or found.cost > price:
            return False
        self.offer(found.planes)
        self.search.polish()
        return True

    def random_restarts(self) -> bool:
        """Random restarts where no tree beats the constant one: random roots and sweeps from there; whether one of them does."""
        all_rows = np.arange(len(self.X))
        for _ in range(RANDOM_RESTARTS):
            if self.best.split.any() or self.budget.tick():
                break
            w = self.weights * self.rng.exponential(size=len(all_rows))
            C = float(10 ** self.rng.uniform(-0.5, 3))
            planes = self.with_planes({1: fit_linear_svm(self.X, self.sign, w, C)})
            for randomised in (True, False):
                planes = sweep(self, planes, np.inf, Weighting(1.0, C, 0.0, randomised))
            if self.search.offer_optimised(self.rescaled(planes, coarse=True), np.inf):
                return True
        return False

    def class_weighted_starts(self) -> Iterator[Hyperplanes]:
        """Trees with a class-weighted root: the class of larger weight comes to one side, and the other side is pure."""
        cap = float(norms(self.best.omega, self.norm).max())
        if self.depth == 0 or cap == 0:
            return
        search, all_rows = self.search, np.arange(len(self.X))
        for factor, class_weight, side in CLASS_WEIGHTS:
            if self.budget.tick():
                return
            w = np.where(self.sign == side, class_weight, 1.0) * self.weights
            C = min(max(self.svm_costs(True, cap)[0] * factor, 1e-2), 1e5)
            root = fit_linear_svm(self.X, self.sign, w, C)
            size = float(norms(root[0][None, :], self.norm)[0])
            if not size:
                continue
            subtree = self.grow(1, all_rows, InductionOptions(max(cap, size), True, None, {1: root}), np.inf)
            planes = self.rescaled(self.assemble(subtree)) if subtree.planes else None
            if search.offer_optimised(planes, OPTIMISED_STARTS):
                yield self.best

    def alternate_relabelling(self) -> Iterator[Hyperplanes]:
        """RE-SVM: alternate between the linear SVM of the labels (C = c1) and the cheaper labels for it, from several labellings."""
        all_rows, y = np.arange(len(self.X)), self.sign
        C = float(np.clip(self.c1, 1e-3, 1e5))
        labellings = [y]
        for first_cost in (1.0, 100.0, 1e-2, 1e4):
            if self.budget.tick():
                return
            omega, omega0 = fit_linear_svm(self.X, y, self.weights, first_cost)
            ys = y * (self.X @ omega + omega0)
            labellings += [np.where(ys < 0, -y, y), np.where(ys < -0.5, -y, y)]
            for label in labellings[-3:] if first_cost == 1.0 else labellings[-2:]:
                for _ in range(RELABEL_ROUNDS):
                    if self.budget.tick():
                        return
                    omega, omega0 = fit_linear_svm(self.X, label, self.weights, C, careful=True)
                    if self._offer_hyperplane(1, omega, omega0, all_rows):
                        yield self.best
                    ys = y * (self.X @ omega + omega0)
                    fresh = np.where(self.keeps_label(ys), y, -y)
                    if (fresh == label).all():
                        break
                    label = fresh

    def improve(self) -> Iterator[Hyperplanes]:
        """Local search from the best tree, until it is exhausted or the budget is.

        Where nothing improves for a while, a node is changed for the worse (a perturbation), and the search goes on from
        there; if it does not come out below the best tree, it returns to it.
        """
        top, idle, stale, unsolved = self.best, 0, 0, True
        large = int(self.c1 >= LARGE_PENALTY)
        operators = self._operators()
        selection = AdaptiveSelection([OPERATORS[name][large] for name in operators], FORGETTING)
        apply = list(operators.values())
        self._spread = 0.3
        self.prune()
        patience = max(LEAST_PATIENCE, PATIENCE * 200 // max(200, len(self.X)))
        while stale < patience and top.split.any() and not self.budget.tick():
            if not self.best.split.any():  # where a perturbation may lead
                self.best, idle, unsolved = top.copy(), 0, True
            if self.best.cost < top.cost * (1 - SLACK) - 1e-12:
                top, stale = self.best, 0
                yield top
            t = int(self.rng.choice(np.flatnonzero(self.best.split) + 1))
            if unsolved and idle >= OPTIMISE_AFTER and self.best.cost <= top.cost * PROMISING:
                unsolved = False
                if self.search.optimise_best():
                    idle = 0
                    continue
            if idle > PERTURB_AFTER[large]:
                self.best, idle, unsolved = top.copy(), 0, True
                self.perturb()
                continue
            number = selection.draw(self.rng)
            done = apply[number](t)
            selection.record(number, done)
            idle, stale, unsolved = 0 if done else idle + 1, stale + 1, unsolved or done
        self.best = top if self.best.cost > top.cost else self.best
        self.search.polish()
        self.prune()
        if self.best.cost < top.cost:
            top = self.best
            yield top
        self.best = top

    def _operators(self) -> dict[str, Callable[[int], bool]]:
        """Every operator of ``OPERATORS``, for a node that splits; True where it made the best tree better."""
        search = self.search
        return {
            "rescale": lambda _: self.rescale(),
            "refit": self.refit,
            "regrow": lambda _: self.regrow(),
            "prune": lambda _: self.prune(),
            "change": self._change_adaptively,
            "move": lambda _: search.try_moves(),
            "compound move": lambda _: search.try_compound_move(),
            "trim outliers": self.trim_outliers,
            "replace hyperplane": lambda _: search.replace_hyperplane(),
            "sweep": lambda _: self.tao_sweeps(),
            "tabu search": lambda _: search.tabu_search(),
            "exchange": lambda _: search.try_exchange(),
        }

    def _change_adaptively(self, t: int) -> bool:
        """Change node ``t`` by a spread that grows with success and shrinks without."""
        done = self.change(t, self._spread)
        self._spread = min(1.0, self._spread * 1.5) if done else max(1e-3, self._spread * 0.9)
        if self._spread <= 1e-3:
            self._spread = 0.5
        return done

    def perturb(self) -> bool:
        """Change a node for the worse; the result becomes the best tree, whatever it costs."""
        before = self.best
        nodes = np.flatnonzero(before.split) + 1
        self.best = Hyperplanes(before.omega, before.omega0, before.split)
        for _ in range(4):
            if self.refit(int(self.rng.choice(nodes)), perturb=True):
                return True
        self.best = before
        return False


def as_margin_tree(planes: Hyperplanes, data: Data, params: Any) -> MarginTree:
    """The hyperplanes as a tree of the formulation."""
    depth = getattr(params, "depth", 0)
    # With ω = 0 there is no side to choose, and a split would only cost.
    split = planes.split & planes.omega.any(axis=1) if depth == 0 else planes.split
    return tree_on(data, MarginTree, depth, planes.omega.copy(), planes.omega0.copy(), split)


def candidates(data: Data, params: Any, budget: Budget, seed: int) -> Iterator[MarginTree]:
    """Trees of OCTSVM, or single hyperplanes of RE-SVM, each better than those before."""
    if data.n <= LARGE:
        found = TreeSearch(data.X, data.sign, data.weights, params, budget, seed).run()
    else:
        found = _large_run(data, params, budget, seed)
    for planes in found:
        yield as_margin_tree(planes, data, params)


def _large_run(data: Data, params: Any, budget: Budget, seed: int) -> Iterator[Hyperplanes]:
    """The tree of a sample, improved on all rows."""
    few = sample(data, seed)
    weights = few.weights * (data.n / few.n)
    small = TreeSearch(few.X, few.sign, weights, params, budget.part(0.5, SAMPLE_STEPS), seed)
    for _ in small.run():
        pass
    if not small.best.split.any():
        return
    builder = TreeSearch(data.X, data.sign, data.weights, params, budget, seed)
    builder.offer(builder.unsplit())
    # Rows outside the sample may be too close to a hyperplane.
    planes = small.best.copy()
    builder.clear_boundaries(planes)
    builder.offer(planes)
    if not builder.best.split.any():
        return
    yield builder.best
    for step in (builder.prune, builder.rescale):
        if budget.tick():
            return
        if step():
            yield builder.best
    for _ in range(FULL_PASSES):
        for k in np.flatnonzero(builder.best.split):
            if budget.tick():
                return
            if builder.change(int(k) + 1, 0.05):
                yield builder.best
