"""Local search over routing and labels: whatever is changed, all hyperplanes are the best ones for it.

A tree's structure is the node of every row on every level, the labels believed there and the nodes that split. For a
structure the rest is convex (:mod:`.convex`), and its multipliers say which rows hold a hyperplane back: those are
sent to the other side, given up, or taken back first, and with them rows that would pay less on the other side. What a change
will cost is estimated (:mod:`.estimates`) before it is solved, and structures that were seen before are not solved again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from . import fixed_assignment as convex
from . import hard_margin as hard_margins
from .alternating_optimisation import saved_on_the_right
from .linear_svm import fit_svm
from .move_estimates import Estimates, changed_rows

if TYPE_CHECKING:
    from .tree_builder import Planes, Workshop

ALTERNATIONS = 6  # of hyperplanes and labels
MOST_MOVES = 24  # single changes that are tried of a tree
STEP, SOLVED = 8, 3  # those looked at together, and of them those solved
STEPS, CHOICES, FIRST = 6, 12, 4  # of a walk, changes looked at for one, and those the first is one of
DETOUR, CLOSE = 0.2, 0.03  # how much dearer than the best a walk may become, and where its trees are settled
SWAPS, LEAPS = 8, 8  # proposals of which that with the best estimate is tried
ARM = 0.2  # added to the distances of rows that would rather be elsewhere
DOUBT = 2e-3  # of an estimate, relative
NEAR = 1.5  # of a hyperplane
PROMISING, HOPEFUL = 1.1, 1.02  # how much dearer than the best a tree may be to be settled, and further so
IMPROVES = 1e-9  # relative
POLISHED = 400  # rows: a few milliseconds
MOST_SEEN = 2 * 10**7  # bytes of the nodes of remembered trees, each of which takes five times that


@dataclass
class Settled:
    """A tree whose hyperplanes are the best for its structure."""

    planes: Planes
    fixed: convex.Fixed
    solved: convex.Solved
    # Of its nodes, by node: what each costs by itself, and the length that its rows need.
    values: dict[int, float] = field(default_factory=dict)
    lengths: dict[int, float] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        """The objective."""
        return self.planes.cost


class Search:
    """Settles the best tree of a workshop, and changes its structure row by row."""

    def __init__(self, shop: Workshop) -> None:
        self.shop = shop
        self.at: Settled | None = None  # the workshop's best tree, once settled
        self._of = np.nan  # what the workshop's best tree cost when it was settled
        self._next: Iterator[convex.Fixed] = iter(())
        self.costs = convex.Costs(shop.c1, shop.mu, shop.norm, shop.single)
        self.follows = shop.c2 < 2 * shop.c1  # whether a row that crosses takes the label of the side
        self.estimates = Estimates(shop)
        # Most trees that are worth a look settle to structures that were seen before.
        self._seen: dict[tuple[int, bool], Settled | None] = {}
        self._left: dict[int, Iterator[convex.Fixed]] = {}

    # -- settling -------------------------------------------------------------------------------------------

    def structure(self, planes: Planes) -> convex.Fixed:
        """Routing of a tree and the cheaper label of every row on every level."""
        node, score = self.shop.route(planes)
        return convex.Fixed(node, self.shop.believed(score), planes.split, score)

    def solve(self, fixed: convex.Fixed, base: Planes, rough: bool = False) -> Settled | None:
        """The best hyperplanes of a structure, as a tree that was routed and charged; None where there are none."""
        key = _key(fixed)
        for careful in (True, False) if rough else (True,):
            if (key, careful) in self._seen:
                return self._seen[key, careful]
        if len(self._seen) * fixed.node.nbytes > MOST_SEEN:
            self._seen.clear()
        found = self._solved(fixed, base, rough=rough)
        self._seen[key, not rough] = found
        return found

    def _solved(
        self, fixed: convex.Fixed, base: Planes, *, rough: bool = False, sharp: bool = False
    ) -> Settled | None:
        shop = self.shop
        found = None if sharp else hard_margins.solve(shop.X, shop.weights, fixed, self.costs)
        if found is None:
            found = convex.solve(shop.X, shop.weights, fixed, self.costs, rough, sharp)
        if found is None:
            return None
        planes = base.copy()
        planes.split = fixed.split.copy()
        planes.omega = np.where(planes.split[:, None], found.omega, 0.0)
        planes.omega0 = np.where(planes.split, found.omega0, planes.omega0)
        shop.clear(planes)
        planes.cost = shop.value(planes)
        return Settled(planes, fixed, found) if np.isfinite(planes.cost) else None

    def settle(self, planes: Planes, limit: float = np.inf) -> Settled | None:
        """Hyperplanes and labels in turn until neither changes, or until the first ones leave the cost above ``limit``."""
        best: Settled | None = None
        for _ in range(ALTERNATIONS):
            if self.shop.budget.spent():
                break
            found = self.solve(self.structure(planes), planes)
            if found is None or (best is not None and found.cost >= best.cost * (1 - IMPROVES)):
                break
            best, planes = found, found.planes
            if best.cost > limit:
                break
        return best

    def settle_best(self) -> bool:
        """The workshop's best tree with the best hyperplanes for its structure; whether it is better."""
        best = self.shop.best
        assert best is not None
        self.at = self.settle(best) if best.split.any() else None
        better = self.at is not None and self.shop.offer(self.at.planes)
        # Not the cost of ``at``: where it is a hair dearer than the tree it came from, it is not settled again.
        self._of = self.shop.best_cost
        self._next = iter(()) if self.at is None else self._changes_left(self.at)
        return better

    def _changes_left(self, at: Settled) -> Iterator[convex.Fixed]:
        """The changes of a tree that were not tried when it was the best one before."""
        key = _key(at.fixed)
        if key not in self._left:
            if len(self._left) * at.fixed.node.nbytes > MOST_SEEN // 4:
                self._left.clear()
            self._left[key] = self._changes(at)
        return self._left[key]

    def polish(self) -> None:
        """The best tree, which may come from a rough solution, with the very best hyperplanes; on small tables even if time is up."""
        best = self.shop.best
        assert best is not None
        if not best.split.any():
            return
        if not self.shop.budget.spent():
            self.settle_best()
        elif len(self.shop.X) > POLISHED:
            return
        best = self.shop.best
        assert best is not None
        fixed = self.structure(best)
        for found in (self.solve(fixed, best), self._solved(fixed, best, sharp=True)):
            if found is not None:
                self.shop.offer(found.planes)

    def step(self) -> bool:
        """A few single changes of the workshop's best tree, the next ones in their order; whether one is better."""
        if self._of != self.shop.best_cost and self.settle_best():
            return True
        if self.at is None:
            return False
        together = STEP if self.estimates.possible else SOLVED
        for fixed in self.promising(self.at, list(islice(self._next, together)), SOLVED):
            found = self.solve(fixed, self.at.planes, rough=True)
            if found is not None and self.shop.offer(found.planes):
                self.settle_best()
                return True
        return False

    def walk(self) -> bool:
        """The cheapest change again and again, also for the worse and none twice (tabu search); whether that leads below the best.

        The first change is one of the cheapest by chance, so that walks from the same tree differ.
        """
        shop, best = self.shop, self.shop.best
        assert best is not None
        if self._of != best.cost and self.settle_best():
            return True
        if self.at is None or not self.estimates.possible:
            return False
        at, moved = self.at, set[int]()
        for k in range(STEPS):
            if shop.budget.spent():
                return False
            changed = [
                fixed
                for fixed in islice(self._changes(at), CHOICES)
                if not moved.intersection(changed_rows(at.fixed, fixed).tolist())
            ]
            order = self.promising(at, changed, FIRST if k == 0 else 1, DETOUR)
            if not order:
                return False
            fixed = order[int(shop.rng.integers(len(order)))]
            moved.update(changed_rows(at.fixed, fixed).tolist())
            found = self.solve(fixed, at.planes, rough=True)
            if found is None or found.cost > best.cost * (1 + DETOUR):
                return False
            if found.cost < best.cost * (1 + CLOSE):
                found = self.settle(found.planes, best.cost * (1 + CLOSE)) or found
            if shop.offer(found.planes):
                return True
            at = found
        return False

    # -- estimates ------------------------------------------------------------------------------------------

    def promising(
        self, at: Settled, changed: list[convex.Fixed], most: int, doubt: float = DOUBT
    ) -> list[convex.Fixed]:
        """Of these changes of a tree the ``most`` that may be better by their estimates, best first."""
        if not self.estimates.possible:
            return changed[:most]
        limit = at.cost * (1 + doubt)
        found = np.full(len(changed), np.inf)
        for k, fixed in enumerate(changed):
            if self.shop.budget.late():
                break
            found[k] = self.estimates(at, fixed, limit)
        return [changed[k] for k in np.argsort(found, kind="stable")[:most] if found[k] < limit]

    # -- single changes -------------------------------------------------------------------------------------

    def leap(self) -> bool:
        """Several rows next to the hyperplanes changed at once; whether that is better."""
        best = self.shop.best
        assert best is not None
        if self._of != best.cost:
            return self.settle_best()
        if self.at is None:
            return False
        return self._best_of([self._several(self.at) for _ in range(LEAPS)])

    def swap(self) -> bool:
        """A row that was given up taken back, and one that holds its hyperplane back given up for it; whether that is better."""
        best = self.shop.best
        assert best is not None
        if self._of != best.cost:
            return self.settle_best()
        return self.at is not None and self._best_of(self._swaps(self.at))

    def _best_of(self, changed: list[convex.Fixed]) -> bool:
        assert self.at is not None
        promising = self.promising(self.at, changed, 1, HOPEFUL - 1)
        found = self.solve(promising[0], self.at.planes, rough=True) if promising else None
        return found is not None and self._settled_better(found.planes)

    def replace(self) -> bool:
        """Another machine at a node, and what is below it grown anew; whether that is better."""
        best = self.shop.best
        assert best is not None
        planes = self._other_machine(best)
        planes = None if planes is None else self.shop.rescaled(planes, rough=True)
        return planes is not None and self.promoted(planes)

    def promoted(self, planes: Planes, dearer: float = PROMISING) -> bool:
        """Whether the tree, or what it settles to where it is not much dearer, is the best so far."""
        best = self.shop.best
        assert best is not None
        if self.shop.offer(planes):
            return True
        return planes.cost <= best.cost * dearer and self._settled_better(planes)

    def _settled_better(self, planes: Planes) -> bool:
        limit = self.shop.best_cost * HOPEFUL
        found = self.settle(planes, limit) if planes.split.any() else None
        return found is not None and self.shop.offer(found.planes)

    def _several(self, at: Settled) -> convex.Fixed:
        fixed, rng = at.fixed, self.shop.rng
        splits = fixed.split[fixed.node - 1]
        near = np.flatnonzero((splits & (np.abs(fixed.score) < NEAR)).ravel())
        if not len(near):
            return fixed
        for place in rng.choice(near, size=int(rng.integers(2, 6))).tolist():
            row, level = divmod(int(place), fixed.node.shape[1])
            if level < self.shop.depth and rng.random() < 0.6:
                fixed = self._crossed(fixed, at.planes, row, level)
            else:
                fixed = _believed_otherwise(fixed, row, level)
        return fixed

    def _swaps(self, at: Settled) -> list[convex.Fixed]:
        fixed, shop = at.fixed, self.shop
        splits = fixed.split[fixed.node - 1]
        given_up = np.argwhere(splits & (fixed.label != shop.sign[:, None]))
        found: list[convex.Fixed] = []
        if not len(given_up):
            return found
        for _ in range(SWAPS):
            back, level = given_up[int(shop.rng.integers(len(given_up)))].tolist()
            pull = np.maximum(at.solved.hinge[:, level], at.solved.side[:, level])
            pull = np.where(fixed.node[:, level] == fixed.node[back, level], pull, 0.0)
            pull = np.maximum(pull, 0.0)
            pull[back] = 0.0
            if not pull.any():
                continue
            row = int(shop.rng.choice(len(pull), p=pull / pull.sum()))
            found.append(self._turned(self._turned(fixed, at.planes, back, level), at.planes, row, level))
        return found

    def _turned(self, fixed: convex.Fixed, planes: Planes, row: int, level: int) -> convex.Fixed:
        """The other label believed of a row, on the other side where that follows."""
        if level < self.shop.depth and self.follows:
            return self._crossed(fixed, planes, row, level)
        return _believed_otherwise(fixed, row, level)

    def _other_machine(self, planes: Planes) -> Planes | None:
        """A machine of other weights at a node, and what is below it grown anew."""
        shop, rng = self.shop, self.shop.rng
        node, score = shop.route(planes)
        t = int(rng.choice(np.flatnonzero(planes.split) + 1))
        level = t.bit_length() - 1
        rows = np.flatnonzero(node[:, level] == t)
        if len(rows) < 2:
            return None
        label = shop.believed(score[rows], rows)[:, level] if rng.random() < 0.5 else shop.sign[rows]
        w = shop.weights[rows] * rng.exponential(size=len(rows))
        if rng.random() < 0.5:  # one class dearer: its rows come to one side, which then needs no split
            w *= np.where(label == rng.choice([-1.0, 1.0]), 10 ** rng.uniform(0.3, 1.5), 1.0)
        omega, omega0 = fit_svm(shop.X[rows], label, w, float(10 ** rng.uniform(-0.5, 4)))
        return shop.with_plane(planes, t, omega, omega0) if omega.any() else None

    def _changes(self, at: Settled) -> Iterator[convex.Fixed]:
        """Structures next to this one, the most hopeful first.

        Rows that hold the hyperplanes back most, and in turn those that would cost less elsewhere; then all that are next
        to a hyperplane, among which are those that the others would have to make room for.
        """
        done = set[tuple[int, int, bool]]()
        for pair in chain(zip_longest(self._held(at), self._elsewhere(at)), zip(self._next_to_it(at))):
            for move in pair:
                if move is None or move in done:
                    continue
                done.add(move)
                row, level, crosses = move
                if not crosses:
                    yield _believed_otherwise(at.fixed, row, level)
                    continue
                fixed = self._crossed(at.fixed, at.planes, row, level)
                yield fixed
                opened = self._opened(fixed, row, level + 1)
                if opened is not None:
                    yield opened

    def _held(self, at: Settled) -> list[tuple[int, int, bool]]:
        """Rows and levels with the largest multipliers, and whether to cross there or to believe the other label."""
        both = np.stack([at.solved.side, at.solved.hinge])
        largest = float(both.max(initial=0.0))
        found: list[tuple[int, int, bool]] = []
        # Rows that pay for errors all have the price of one: those next to the hyperplane first.
        alike = np.round(both / max(largest, 1e-300), 3)
        distance = np.broadcast_to(np.abs(at.fixed.score), both.shape)
        for flat in np.lexsort((distance.ravel(), -alike.ravel())).tolist():
            kind, row, level = (int(k) for k in np.unravel_index(flat, both.shape))
            if both[kind, row, level] <= 1e-6 * largest or len(found) == MOST_MOVES:
                break
            crosses = kind == 0 or (level < self.shop.depth and self.follows)
            # A label that is given up for more than all there is to pay is given up for nothing.
            if crosses or self.shop.c2 * self.shop.weights[row] < at.cost:
                found.append((row, level, crosses))
        return found

    def _elsewhere(self, at: Settled) -> list[tuple[int, int, bool]]:
        """Rows that would pay less below the other side of a hyperplane, next to it first."""
        shop, fixed = self.shop, at.fixed
        found: list[tuple[float, int, int]] = []
        for t in (np.flatnonzero(fixed.split[: shop.B]) + 1).tolist():
            level = t.bit_length() - 1
            rows = np.flatnonzero(fixed.node[:, level] == t)
            right = fixed.node[rows, level + 1] % 2 == 1
            gain = saved_on_the_right(shop, at.planes, t, rows) * np.where(right, -1.0, 1.0)
            worth = gain / (ARM + np.abs(fixed.score[rows, level]))
            found += [(float(worth[k]), int(rows[k]), level) for k in np.flatnonzero(gain > 0)]
        found.sort(key=lambda one: -one[0])
        return [(row, level, True) for _, row, level in found[: MOST_MOVES // 2]]

    def _next_to_it(self, at: Settled) -> list[tuple[int, int, bool]]:
        """Rows next to the hyperplanes of the branch nodes, to cross them."""
        depth, fixed = self.shop.depth, at.fixed
        distance = np.where(fixed.split[fixed.node - 1], np.abs(fixed.score), np.inf)[:, :depth]
        order = np.argsort(distance, axis=None, kind="stable")[: int((distance < NEAR).sum())]
        return [(*divmod(int(place), depth), True) for place in order]

    def _opened(self, fixed: convex.Fixed, row: int, level: int) -> convex.Fixed | None:
        """A split at the last level where the row comes to a node without one and to rows of the other class; None elsewhere."""
        shop, t = self.shop, int(fixed.node[row, level])
        if level < shop.depth or fixed.split[t - 1]:
            return None
        rows = fixed.node[:, level] == t
        if abs(shop.sign[rows].sum()) == rows.sum():
            return None
        split, label, score = fixed.split.copy(), fixed.label.copy(), fixed.score.copy()
        split[t - 1] = True
        label[rows, level] = shop.sign[rows]
        score[rows, level] = 0.0
        return dataclasses.replace(fixed, split=split, label=label, score=score)

    def _crossed(self, fixed: convex.Fixed, planes: Planes, row: int, level: int) -> convex.Fixed:
        """The row on the other side of its hyperplane on this level, and wherever that leads."""
        shop = self.shop
        node, score, label = fixed.node.copy(), fixed.score.copy(), fixed.label.copy()
        t = int(node[row, level + 1]) ^ 1
        for below in range(level + 1, shop.depth + 1):
            node[row, below] = t
            s = float(shop.X[row] @ planes.omega[t - 1] + planes.omega0[t - 1])
            score[row, below] = s
            label[row, below] = shop.believed(np.array([[s]]), np.array([row]))[0, 0]
            t = 2 * t + (s >= 0)
        score[row, level] = 0.0
        if self.follows:
            # On the far side the old label costs c1 or more, and the other one c2 at most: it goes with the side.
            label[row, level] = 1.0 if node[row, level + 1] % 2 == 1 else -1.0
        return dataclasses.replace(fixed, node=node, label=label, score=score)


def _key(fixed: convex.Fixed) -> int:
    split = fixed.split[fixed.node - 1]
    return hash((fixed.node.tobytes(), (fixed.label * split).tobytes(), fixed.split.tobytes()))


def _believed_otherwise(fixed: convex.Fixed, row: int, level: int) -> convex.Fixed:
    label, score = fixed.label.copy(), fixed.score.copy()
    label[row, level] *= -1
    score[row, level] = 0.0
    return dataclasses.replace(fixed, label=label, score=score)
