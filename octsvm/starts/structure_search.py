"""Local search over routing and labels: whatever is changed, all hyperplanes are the best ones for it.

A tree's structure is the node of every row on every level, the labels believed there and the nodes that split. For a
structure the rest is convex (:mod:`.convex`), and its multipliers say which rows hold a hyperplane back: those are
sent to the other side, given up, or taken back first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from . import convex
from .machines import fit_svm

if TYPE_CHECKING:
    from .workshop import Planes, Workshop

ALTERNATIONS = 6  # of hyperplanes and labels
MOST_MOVES, STEP = 16, 3  # single changes that are tried of a tree, and at a time
NEAR = 1.5  # of a hyperplane
PROMISING, HOPEFUL = (
    1.1,
    1.02,
)  # how much dearer than the best a tree may be to be settled, and to be so further
IMPROVES = 1e-7  # relative


@dataclass
class Settled:
    """A tree whose hyperplanes are the best for its structure."""

    planes: Planes
    fixed: convex.Fixed
    solved: convex.Solved

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

    # -- settling -------------------------------------------------------------------------------------------

    def structure(self, planes: Planes) -> convex.Fixed:
        """Routing of a tree and the cheaper label of every row on every level."""
        node, score = self.shop.route(planes)
        return convex.Fixed(node, self.shop.believed(score), planes.split, score)

    def solve(self, fixed: convex.Fixed, base: Planes, rough: bool = False) -> Settled | None:
        """The best hyperplanes of a structure, as a tree that was routed and charged; None where there are none."""
        shop = self.shop
        found = convex.solve(shop.X, shop.weights, fixed, self.costs, rough)
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
        self._next = iter(()) if self.at is None else self._changes(self.at)
        return better

    def step(self) -> bool:
        """A few single changes of the workshop's best tree, the next ones in their order; whether one is better."""
        if self._of != self.shop.best_cost and self.settle_best():
            return True
        if self.at is None:
            return False
        for fixed in islice(self._next, STEP):
            found = self.solve(fixed, self.at.planes, rough=True)
            if found is not None and self.shop.offer(found.planes):
                self.settle_best()
                return True
        return False

    # -- single changes -------------------------------------------------------------------------------------

    def leap(self) -> bool:
        """Several rows next to the hyperplanes changed at once; whether that is better."""
        best = self.shop.best
        assert best is not None
        if self._of != best.cost:
            return self.settle_best()
        if self.at is None:
            return False
        found = self.solve(self._several(self.at), best, rough=True)
        return found is not None and self._settled_better(found.planes)

    def replace(self) -> bool:
        """Another machine at a node, and what is below it grown anew; whether that is better."""
        best = self.shop.best
        assert best is not None
        planes = self._other_machine(best)
        planes = None if planes is None else self.shop.rescaled(planes)
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
        """Structures next to this one, those first whose rows hold the hyperplanes back most."""
        both = np.stack([at.solved.side, at.solved.hinge])
        largest = float(both.max(initial=0.0))
        if largest <= 0:
            return
        for flat in np.argsort(-both, axis=None, kind="stable")[:MOST_MOVES].tolist():
            kind, row, level = (int(k) for k in np.unravel_index(flat, both.shape))
            if both[kind, row, level] <= 1e-6 * largest:
                return
            if kind == 0 or (level < self.shop.depth and self.follows):
                yield self._crossed(at.fixed, at.planes, row, level)
            else:
                yield _believed_otherwise(at.fixed, row, level)

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


def _believed_otherwise(fixed: convex.Fixed, row: int, level: int) -> convex.Fixed:
    label, score = fixed.label.copy(), fixed.score.copy()
    label[row, level] *= -1
    score[row, level] = 0.0
    return dataclasses.replace(fixed, label=label, score=score)
