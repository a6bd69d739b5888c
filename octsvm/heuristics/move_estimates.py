"""What a move of the local search will cost, from linear SVMs of the nodes that it touches only.

Solving for all hyperplanes together takes 3 to 10 ms, most moves are for the worse, and an estimate takes a tenth of
that. Two are in use.

Where an error of 1 costs more than the whole margin term, margins are hard: the dual values of all rows together are the
slope of the margin term, which is the term itself, so that none reaches c1 and no error is made. The problem then separates
exactly. The margin term is that of the node whose rows need the largest norm, ½ max_t N_t, and N_t is the hard-margin
subproblem of one node (:mod:`.hard_margin`), the same for every tree that sends these rows there.

Elsewhere the dual value of each node's norm is held where it was at the tree that is changed. The problem then separates into
one of each node, min (λ_t/2)‖ω‖ + errors, whose sum is no more than what the move leads to (Lagrangian duality). Each of
them is solved with the curvature that the norm has at its present length r: (λ/2)‖ω‖ ≤ λ/(4r)·‖ω‖² + λr/4, with equality
at ‖ω‖ = r.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..formulations.base import BoolArray, FloatArray, IntArray
from ..formulations.margin_trees import norms
from . import hard_margin
from .fixed_assignment import Assignment, Solution
from .linear_svm import LARGE, least_violation
from .tree_builder import Hyperplanes, TreeBuilder

# Rows with larger scores are not expected to cross, so that their side needs no constraint.
CROSSING_SCORE = 2.0
LARGEST_PENALTY = 1e5  # of an error, or of a row on the wrong side
TOO_COSTLY = 1.5  # times the cost of the tree: norms with a larger margin term are not told apart
MOST_CACHED = 50_000  # norms, a number each


@dataclass
class SolvedTree:
    """A tree whose hyperplanes are optimal for its assignment.

    ``node_values`` and ``node_norms`` keep what was computed of its nodes: the Lagrangian term of a node, and the least norm
    that its rows need.
    """

    planes: Hyperplanes
    assignment: Assignment
    solution: Solution
    node_values: dict[int, float] = field(default_factory=dict)
    node_norms: dict[int, float] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        """The objective."""
        return self.planes.cost


def changed_rows(before: Assignment, after: Assignment) -> IntArray:
    """Rows with another node or label on some level, or at a node that splits in one of the two only."""
    other: BoolArray = (after.node != before.node) | (after.label != before.label)
    opened = after.split != before.split
    if opened.any():
        other |= opened[after.node - 1]
    return np.flatnonzero(other.any(axis=1))


def crossed(
    X: FloatArray, assignment: Assignment, planes: Hyperplanes, row: int, level: int
) -> tuple[IntArray, FloatArray]:
    """Nodes and scores (n, D + 1) with a row on the other side on this level, and below it where the tree routes it."""
    node, score = assignment.node.copy(), assignment.score.copy()
    score[row, level], t = 0.0, int(node[row, level + 1]) ^ 1
    for below in range(level + 1, node.shape[1]):
        node[row, below] = t
        score[row, below] = s = float(X[row] @ planes.omega[t - 1] + planes.omega0[t - 1])
        t = 2 * t + (s >= 0)
    return node, score


class MoveEstimates:
    """Estimates for the trees of a builder; the least norms of its row sets are cached."""

    def __init__(self, builder: TreeBuilder) -> None:
        self.builder = builder
        self.possible = builder.norm == "l2" and len(builder.X) <= LARGE
        self._norms: dict[int, float] = {}
        # Margin terms up to it are those of hard margins.
        self._hard_margin_limit = builder.margin(
            hard_margin.largest_error_free_norm(builder.weights, builder.c1, builder.single)
        )

    def __call__(self, at: SolvedTree, after: Assignment, limit: float) -> float:
        """About what ``after``, a neighbour of ``at``, costs; once that is above ``limit``, some number above it."""
        rows = changed_rows(at.assignment, after)
        touched = self._touched(at.assignment, after, rows)
        cost = at.cost + self._label_costs(at, after, rows) - self._label_costs(at, at.assignment, rows)
        cost += self.builder.c3 * (int(after.split.sum()) - int(at.assignment.split.sum()))
        margin = self.builder.margin(float(norms(at.solution.omega, "l2").max()))
        if margin <= self._hard_margin_limit:
            rest = cost - margin
            if rest >= limit:
                return rest
            largest = self._largest_margin(at, after, touched, limit - rest)
            if largest <= self._hard_margin_limit:
                return rest + largest
        for t in touched:
            if not at.assignment.split[t - 1]:
                continue
            if t not in at.node_values:
                at.node_values[t] = self._lagrangian_term(at, at.assignment, t)
            cost -= at.node_values[t]
        for t in touched:
            if cost >= limit:
                break  # the terms left are not negative
            cost += self._lagrangian_term(at, after, t)
        return cost

    def _label_costs(self, at: SolvedTree, assignment: Assignment, rows: IntArray) -> float:
        """What the rows pay for labels, and at nodes that do not split."""
        builder, node = self.builder, assignment.node[rows]
        y, w = builder.sign[rows][:, None], builder.weights[rows][:, None]
        given_up = np.where(assignment.label[rows] != y, builder.c2, 0.0)
        unsplit = builder.loss(y * at.planes.omega0[node - 1])
        return float((w * np.where(assignment.split[node - 1], given_up, unsplit)).sum())

    def _touched(self, before: Assignment, after: Assignment, rows: IntArray) -> list[int]:
        """The nodes that split and to which a row comes, or from which one goes, or where its side or label is another."""
        found: set[int] = set()
        for level in range(self.builder.depth + 1):
            here: BoolArray = (after.node[rows, level] != before.node[rows, level]) | (
                after.label[rows, level] != before.label[rows, level]
            )
            here |= after.split[after.node[rows, level] - 1] != before.split[after.node[rows, level] - 1]
            if level < self.builder.depth:
                here |= after.node[rows, level + 1] != before.node[rows, level + 1]
            for one in (before, after):
                node = one.node[rows[here], level]
                found.update(node[one.split[node - 1]].tolist())
        return sorted(found, reverse=True)  # fewer rows first

    def _largest_margin(self, at: SolvedTree, after: Assignment, touched: list[int], limit: float) -> float:
        """The margin term of the largest norm that a node needs; above ``limit``, of one that is large enough."""
        for t in (np.flatnonzero(at.assignment.split) + 1).tolist():
            if t not in at.node_norms:
                at.node_norms[t] = self._needed_norm(at, at.assignment, t)
        largest = self.builder.margin(
            max((at.node_norms[t] for t in at.node_norms if t not in touched), default=0.0)
        )
        for t in touched:
            if largest >= limit:
                break
            largest = max(largest, self.builder.margin(self._needed_norm(at, after, t)))
        return largest

    def _needed_norm(self, at: SolvedTree, assignment: Assignment, t: int) -> float:
        """The least norm with which no row at node ``t`` makes an error."""
        builder, level = self.builder, t.bit_length() - 1
        rows = np.flatnonzero(assignment.node[:, level] == t)
        side = assignment.node[rows, level + 1] % 2 if t <= builder.B else np.zeros(0)
        key = hash((rows.tobytes(), assignment.label[rows, level].tobytes(), side.tobytes()))
        if key not in self._norms:
            if len(self._norms) > MOST_CACHED:
                self._norms.clear()
            # Norms that cost far more than the whole tree are of no use, however large they are.
            largest = builder.norm_costing(TOO_COSTLY * at.cost)
            found = hard_margin.at_node(builder.X, assignment, t, rows, builder.mu, largest)
            self._norms[key] = largest if found is None else float(norms(found.omega[None, :], "l2")[0])
        return self._norms[key]

    def _lagrangian_term(self, at: SolvedTree, assignment: Assignment, t: int) -> float:
        """About the least of λ_t/2·‖ω‖ and the errors at node ``t``."""
        builder, level = self.builder, t.bit_length() - 1
        rows = np.flatnonzero(assignment.node[:, level] == t)
        sizes = norms(at.solution.omega, "l2")
        size = float(sizes[t - 1] if at.assignment.split[t - 1] else sizes.max())
        unit = (
            1.0 if builder.single else max(float(at.solution.norm_dual[t - 1]), 1e-3) / (2 * max(size, 1e-3))
        )
        value = unit * self._violation(assignment, t, rows, builder.c1 / unit)
        return value if builder.single else value + unit * size**2 / 2

    def _violation(self, assignment: Assignment, t: int, rows: IntArray, penalty: float) -> float:
        """The least ½‖ω‖² and errors at ``penalty`` each, all rows kept on their sides."""
        builder, level = self.builder, t.bit_length() - 1
        over = assignment.label[rows, level] > 0
        X, bound = builder.X[rows], np.where(over, 1.0, -1.0)
        penalties = np.minimum(builder.weights[rows] * penalty, LARGEST_PENALTY)
        if t <= builder.B:
            right = assignment.node[rows, level + 1] % 2 == 1
            # Where the label agrees with the side and margins are kept, the routing constraint is implied.
            near = (np.abs(assignment.score[rows, level]) < CROSSING_SCORE) | (right != over)
            X = np.concatenate([X, X[near]])
            over = np.concatenate([over, right[near]])
            bound = np.concatenate([bound, np.where(right[near], 0.0, -builder.mu)])
            penalties = np.concatenate([penalties, np.full(int(near.sum()), LARGEST_PENALTY)])
        return least_violation(X, over, bound, penalties) if len(X) else 0.0
