"""What a change of a tree's structure will cost, from machines of the nodes that it touches only.

Solving for all hyperplanes together takes 3 to 10 ms, most changes are for the worse, and an estimate takes a tenth of
that. Two are in use.

Where an error of 1 costs more than the whole margin term, margins are hard: the multipliers of all rows together are the slope
of the margin term, which is the term itself, so that none reaches c1 and no error is made. The problem then falls apart
exactly. The margin term is that of the node whose rows need the longest vector, ½ max_t N_t, and N_t is a machine of its
own (:mod:`.hard_margins`), the same for every tree that sends these rows there.

Elsewhere the price of each node's norm is held where it was at the tree that is changed. The problem then falls apart into
one of each node, min (λ_t/2)‖ω‖ + errors, whose sum is no more than what the change costs (Lagrangian duality). Each of
them is solved with the curvature that the norm has at its present length r: (λ/2)‖ω‖ ≤ λ/(4r)·‖ω‖² + λr/4, with equality
at ‖ω‖ = r.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..formulations.base import BoolArray, IntArray
from ..formulations.margin_trees import norms
from . import fixed_assignment as convex
from . import hard_margin as hard_margins
from .linear_svm import LARGE, least_violation

if TYPE_CHECKING:
    from .local_search import Settled
    from .tree_builder import Workshop

CROSSING = 2.0  # scores from which no row is expected to cross
DEAREST = 1e5  # the largest price of an error, or of a row on the wrong side
TOO_LONG = 1.5  # for a vector whose margin term costs that many times the tree
MOST_KEPT = 50_000  # machines, by a number each


def changed_rows(before: convex.Fixed, fixed: convex.Fixed) -> IntArray:
    """Rows with another node or label on some level, or at a node that splits in one only."""
    other: BoolArray = (fixed.node != before.node) | (fixed.label != before.label)
    opened = fixed.split != before.split
    if opened.any():
        other |= opened[fixed.node - 1]
    return np.flatnonzero(other.any(axis=1))


class Estimates:
    """Estimates for the trees of a workshop; machines are kept by what they are machines of."""

    def __init__(self, shop: Workshop) -> None:
        self.shop = shop
        self.possible = shop.norm == "l2" and len(shop.X) <= LARGE
        self._needed: dict[int, float] = {}
        # Margin terms up to it are those of hard margins.
        self._hard = shop.margin(hard_margins.longest_kept(shop.weights, shop.c1, shop.single))

    def __call__(self, at: Settled, fixed: convex.Fixed, limit: float) -> float:
        """About what ``fixed``, a change of ``at``, costs; once that is above ``limit``, some number above it."""
        rows = changed_rows(at.fixed, fixed)
        touched = self._touched(at.fixed, fixed, rows)
        cost = at.cost + self._given_up(at, fixed, rows) - self._given_up(at, at.fixed, rows)
        cost += self.shop.c3 * (int(fixed.split.sum()) - int(at.fixed.split.sum()))
        margin = self.shop.margin(float(norms(at.solved.omega, "l2").max()))
        if margin <= self._hard:
            rest = cost - margin
            if rest >= limit:
                return rest
            longest = self._longest(at, fixed, touched, limit - rest)
            if longest <= self._hard:
                return rest + longest
        for t in touched:
            if not at.fixed.split[t - 1]:
                continue
            if t not in at.values:
                at.values[t] = self._soft(at, at.fixed, t)
            cost -= at.values[t]
        for t in touched:
            if cost >= limit:
                break  # and it can only become dearer
            cost += self._soft(at, fixed, t)
        return cost

    def _given_up(self, at: Settled, fixed: convex.Fixed, rows: IntArray) -> float:
        """What the rows pay for labels, and at nodes that do not split."""
        shop, node = self.shop, fixed.node[rows]
        y, w = shop.sign[rows][:, None], shop.weights[rows][:, None]
        given_up = np.where(fixed.label[rows] != y, shop.c2, 0.0)
        unsplit = shop.loss(y * at.planes.omega0[node - 1])
        return float((w * np.where(fixed.split[node - 1], given_up, unsplit)).sum())

    def _touched(self, before: convex.Fixed, fixed: convex.Fixed, rows: IntArray) -> list[int]:
        """The nodes that split and to which a row comes, or from which one goes, or where its side or label is another."""
        found: set[int] = set()
        for level in range(self.shop.depth + 1):
            here: BoolArray = (fixed.node[rows, level] != before.node[rows, level]) | (
                fixed.label[rows, level] != before.label[rows, level]
            )
            here |= fixed.split[fixed.node[rows, level] - 1] != before.split[fixed.node[rows, level] - 1]
            if level < self.shop.depth:
                here |= fixed.node[rows, level + 1] != before.node[rows, level + 1]
            for one in (before, fixed):
                node = one.node[rows[here], level]
                found.update(node[one.split[node - 1]].tolist())
        return sorted(found, reverse=True)  # fewer rows first

    def _longest(self, at: Settled, fixed: convex.Fixed, touched: list[int], limit: float) -> float:
        """The margin term of the longest vector that a node needs; above ``limit``, of one that is long enough."""
        for t in (np.flatnonzero(at.fixed.split) + 1).tolist():
            if t not in at.lengths:
                at.lengths[t] = self._length(at, at.fixed, t)
        longest = self.shop.margin(max((at.lengths[t] for t in at.lengths if t not in touched), default=0.0))
        for t in touched:
            if longest >= limit:
                break
            longest = max(longest, self.shop.margin(self._length(at, fixed, t)))
        return longest

    def _length(self, at: Settled, fixed: convex.Fixed, t: int) -> float:
        """The length that the rows at node ``t`` need."""
        shop, level = self.shop, t.bit_length() - 1
        rows = np.flatnonzero(fixed.node[:, level] == t)
        side = fixed.node[rows, level + 1] % 2 if t <= shop.B else np.zeros(0)
        key = hash((rows.tobytes(), fixed.label[rows, level].tobytes(), side.tobytes()))
        if key not in self._needed:
            if len(self._needed) > MOST_KEPT:
                self._needed.clear()
            # Vectors that cost far more than the whole tree are of no use, however long they are.
            longest = shop.widest(TOO_LONG * at.cost)
            found = hard_margins.at_node(shop.X, fixed, t, rows, shop.mu, longest)
            self._needed[key] = longest if found is None else float(norms(found.omega[None, :], "l2")[0])
        return self._needed[key]

    def _soft(self, at: Settled, fixed: convex.Fixed, t: int) -> float:
        """The least of a node's price times half its norm and its errors, about."""
        shop, level = self.shop, t.bit_length() - 1
        rows = np.flatnonzero(fixed.node[:, level] == t)
        sizes = norms(at.solved.omega, "l2")
        size = float(sizes[t - 1] if at.fixed.split[t - 1] else sizes.max())
        unit = 1.0 if shop.single else max(float(at.solved.price[t - 1]), 1e-3) / (2 * max(size, 1e-3))
        value = unit * self._violation(fixed, t, rows, shop.c1 / unit)
        return value if shop.single else value + unit * size**2 / 2

    def _violation(self, fixed: convex.Fixed, t: int, rows: IntArray, price: float) -> float:
        """The least ½‖ω‖² and errors at ``price``, all rows kept on their sides."""
        shop, level = self.shop, t.bit_length() - 1
        over = fixed.label[rows, level] > 0
        X, bound = shop.X[rows], np.where(over, 1.0, -1.0)
        most = np.minimum(shop.weights[rows] * price, DEAREST)
        if t <= shop.B:
            right = fixed.node[rows, level + 1] % 2 == 1
            # Where the label says the same as the side and margins are kept, the side says nothing new.
            near = (np.abs(fixed.score[rows, level]) < CROSSING) | (right != over)
            X = np.concatenate([X, X[near]])
            over, bound = (
                np.concatenate([over, right[near]]),
                np.concatenate([bound, np.where(right[near], 0.0, -shop.mu)]),
            )
            most = np.concatenate([most, np.full(int(near.sum()), DEAREST)])
        return least_violation(X, over, bound, most) if len(X) else 0.0
