"""Starts for the SVM models: trees of support vector machines, then local search.

Trees are grown as :mod:`.workshop` has it, from machines of single costs C, from machines that give rows up one by one and
from roots for which one class is dearer, and under a path of caps on the norm. On small tables trees whose root gives up few
labels join them (:mod:`.few_labels`).

The best tree is then improved: all lengths together, single nodes along subgradients, random changes and machines
fitted anew with the other nodes kept, all nodes in turn (:mod:`.alternating`), all hyperplanes together for the routing and the
labels as they are or with a few of them changed (:mod:`.structure_search`), and pruning.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formulations.base import BoolArray, Data, FloatArray, IntArray
from ..formulations.margin_trees import norms
from ..formulations.trees import MarginTree
from . import few_relabelled as few_labels
from .alternating_optimisation import Taste, swept
from .axis_search import sample
from .linear_svm import LARGE, fit_svm
from .local_search import Search
from .tree_builder import RELABEL_ROUNDS, SLACK, Growth, Planes, Workshop, clear_of_the_plane, is_below

if TYPE_CHECKING:
    from . import Budget

SEPARATING = (100.0, 1e4)  # the same for machines that give rows up one by one
COSTS = (1.0, 100.0, 10.0, 1e4, 1e3, 1e-1)  # of trees grown from the machines of one C
CAPS = np.geomspace(0.02, 2e4, 16)  # norms
LOPSIDED = [
    (factor, dearer, side) for factor in (3.0, 10.0, 1.0) for dearer in (2.0, 4.0) for side in (1.0, -1.0)
]
TRIES = 24  # directions looked at together
SETTLE_AFTER, PROMISING = 4, 1.05  # steps without success, and how much dearer than the best
KICK_AFTER = (15, 10)  # steps without success, where errors are cheap, and where they are dear
SCATTERED = 8  # roots by chance
CHAINS, SWEEPS = 3, 4  # of nodes fitted in turn, from the best tree
PROPOSALS = 6  # sets of labels of which the best is taken
PATIENCE = 2000  # steps without a better tree; fewer where a step takes longer, from 200 rows on
SAMPLE_STEPS = 400
FEW_STEPS = 600  # sets of labels and machines below them
FULL_PASSES = 3  # over the nodes, on all rows of a large table
DEAR = 10.0  # c1 from which errors are dearer than the margin
# How often a kind of step is taken before any has paid: where errors are cheap, and where they are dear.
KINDS = {
    "rescale": (0.5, 0.1),
    "refit": (1.0, 2.5),
    "regrow": (1.0, 2.5),
    "prune": (0.2, 0.2),
    "change": (1.0, 0.2),
    "step": (3.0, 2.5),
    "leap": (0.7, 0.3),
    "separate": (0.2, 3.0),
    "replace": (2.0, 1.3),
    "alternate": (1.0, 0.05),
    "walk": (0.7, 1.2),
    "swap": (0.7, 0.8),
}


class TreeSearch(Workshop):
    """Grows trees and improves the best one."""

    @cached_property
    def search(self) -> Search:
        """The search over the structure of its best tree; what it solved once is kept."""
        return Search(self)

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
            if not is_below(int(s) + 1, t)
        }
        return self.try_growth(Growth(max(cap, float(lengths[g])), True, None, fixed | {t: plane}))

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
            if not is_below(int(s) + 1, t)
        }
        return self.try_growth(Growth(cap, quick, None, fixed))

    def separate(self, t: int) -> bool:
        """A machine at ``t`` that gives up few rows, by chance among the next ones, and such machines below it."""
        assert self.best is not None
        if self.rng.random() < 0.5:
            t = 1
        fixed = {
            int(s) + 1: (self.best.omega[s], float(self.best.omega0[s]))
            for s in np.flatnonzero(self.best.split)
            if not is_below(int(s) + 1, t)
        }
        C = np.inf if self.rng.random() < 0.4 else float(10 ** self.rng.uniform(1.5, 4))
        how = Growth(C=C, fixed=fixed, separating=True, chance=True)
        grown = self.grow(1, np.arange(len(self.X)), how, np.inf)
        planes = self.rescaled(self.assemble(grown), rough=True) if grown.planes else None
        return planes is not None and self.search.promoted(planes)

    def alternated(self) -> bool:
        """All nodes fitted in turn, first with weights by chance, as long as that pays; whether what comes of it is better."""
        assert self.best is not None
        rng = self.rng
        cap = float(norms(self.best.omega, self.norm).max()) * float(rng.choice([0.7, 1.0, 1.4]))
        capped = self.c2 < 2 * self.c1  # what a row can cost at most, which is what it weighs then
        C = (self.c2 if capped else self.c1) * (2 * cap if not self.single else 1.0)
        flipped = float(rng.choice([0.0, 0.3, 1.0])) if capped else 0.0
        lowest: Planes | None = None
        for _ in range(CHAINS):
            planes = self.best
            for k in range(SWEEPS):
                if self.budget.late():
                    break
                factor = 10 ** rng.uniform(0.0, 2.5 if capped else 1.0)
                taste = Taste(
                    10 ** rng.uniform(-1.5, 0.7), float(np.clip(C * factor, 1e-2, 1e5)), flipped, k == 0
                )
                fresh = swept(self, planes, cap, taste)
                if k and fresh.cost >= planes.cost:
                    break
                planes = fresh
            if lowest is None or planes.cost < lowest.cost:
                lowest = planes
        assert lowest is not None
        if not lowest.split.any() or lowest.cost > 1.5 * self.best.cost:
            return False
        lengthened = self.rescaled(lowest, rough=True)
        return lengthened is not None and self.search.promoted(lengthened)

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
        if self.best.split.any() and (self.search.settle_best() or self.prune()):
            yield self.best
        yield from self.lopsided()
        caps = [float(c) for c in CAPS]
        for quick in (True, False):
            near = float(norms(self.best.omega, self.norm).max()) or min(
                15.0, 0.3 * self.widest(self.best.cost)
            )
            for cap in sorted(caps, key=lambda c: abs(np.log(c / near)))[: 5 if quick else 3]:
                if self.budget.spent():
                    break
                if self.margin(cap * 0.1) < self.best.cost and self.try_growth(Growth(cap, quick)):
                    yield self.best
        if self.scattered():
            yield self.best
        yield from self.improve()

    def scattered(self) -> bool:
        """Where no tree beats the constant one yet: roots by chance, and what suits them below; whether one of them does."""
        assert self.best is not None
        everyone = np.arange(len(self.X))
        for _ in range(SCATTERED):
            if self.best.split.any() or self.budget.spent():
                break
            w = self.weights * self.rng.exponential(size=len(everyone))
            C = float(10 ** self.rng.uniform(-0.5, 3))
            planes = self.unsplit()
            planes.omega[0], planes.omega0[0] = fit_svm(self.X, self.sign, w, C)
            planes.split[0] = True
            for chance in (True, False):
                planes = swept(self, planes, np.inf, Taste(1.0, C, 0.0, chance))
            fresh = self.rescaled(planes, rough=True)
            if fresh is not None and self.search.promoted(fresh, np.inf):
                return True
        return False

    def lopsided(self) -> Iterator[Planes]:
        """Trees whose root is a machine for dearer errors of one class: that class comes to one side, the other is pure."""
        assert self.best is not None
        cap = float(norms(self.best.omega, self.norm).max())
        if self.depth == 0 or cap == 0:
            return
        search, everyone = self.search, np.arange(len(self.X))
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
        search, unsettled = self.search, True
        paid, tried = np.zeros(len(KINDS)), np.zeros(len(KINDS))
        dear = int(self.c1 >= DEAR)
        likely = np.array([kind[dear] for kind in KINDS.values()])
        kinds = list(KINDS)
        self.prune()
        patience = max(100, PATIENCE * 200 // max(200, len(self.X)))
        while stale < patience and top.split.any() and not self.budget.spent():
            if not self.best.split.any():  # where a kick may lead
                self.best, idle, unsettled = top.copy(), 0, True
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
            if idle > KICK_AFTER[dear]:
                self.best, idle, unsettled = top.copy(), 0, True
                self.kick()
                continue
            # Kinds of steps that paid are taken more often.
            share = (paid + 1.0) / (tried + 4.0) * likely
            number = int(self.rng.choice(len(KINDS), p=share / share.sum()))
            kind = kinds[number]
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
            elif kind == "swap":
                done = search.swap()
            elif kind == "walk":
                done = search.walk()
            elif kind == "alternate":
                done = self.alternated()
            elif kind == "separate":
                done = self.separate(t)
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
        search.polish()
        self.prune()
        if self.best.cost < top.cost:
            top = self.best
            yield top
        self.best = top

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
        shop = TreeSearch(data.X, data.sign, data.weights, params, budget, seed)
        for planes in shop.run():
            yield as_tree(planes)
        return
    rows = sample(data, seed)
    small = TreeSearch(
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
    shop = TreeSearch(data.X, data.sign, data.weights, params, budget, seed)
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
