"""Local search over assignments: after every move, all hyperplanes are optimal for the new assignment.

The assignment of a tree is the node of every row on every level, the label taken of it there, and the nodes that split. With
the assignment fixed the rest is convex (:mod:`.fixed_assignment`). Its dual values say which rows hold a hyperplane back: the
moves send those to the other side, give their labels up or take them back first, and in turn rows that would cost less on the
other side. The cost of a move is estimated (:mod:`.move_estimates`) before it is solved for, and no assignment is solved for
twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from itertools import chain, islice, zip_longest

import numpy as np

from . import fixed_assignment, hard_margin
from .alternating_optimisation import saving_on_the_right
from .fixed_assignment import LOOSE, STANDARD, TIGHT, Assignment, Costs, Tolerance
from .linear_svm import fit_linear_svm
from .move_estimates import MoveEstimates, SolvedTree, changed_rows, crossed
from .tree_builder import Hyperplanes, TreeBuilder

ALTERNATIONS = 6  # of hyperplanes and labels; one or two are usual
MOST_MOVES = 24  # moves by dual value from a tree; half as many by saving
MOVES_ESTIMATED, MOVES_SOLVED = 8, 3  # of a call of try_moves: the rest is left for the next one
TABU_MOVES = 6  # of a tabu search
TABU_NEIGHBOURS, TABU_FIRST = 12, 4  # estimated before each move; of so many of the best the first is drawn
# Relative to the best: where it ends, and where labels are optimised too.
TABU_WORSENING, TABU_OPTIMISED = 0.2, 0.03
EXCHANGES, COMPOUND_MOVES = 8, 8  # proposals, of which the one with the best estimate is tried
DISTANCE_OFFSET = 0.2  # added to the distances that savings are divided by
ESTIMATE_ERROR = 2e-3  # relative: moves whose estimate is worse by less are still tried
NEAR_HYPERPLANE = 1.5  # scores of rows that are next to a hyperplane (the margin's unit is 1)
# Times the best cost: trees that are optimised, and beyond the first solution.
PROMISING, WORTH_ALTERNATING = 1.1, 1.02
IMPROVEMENT = 1e-9  # relative: what counts as better
POLISHED_ROWS = 400  # up to which a last solution takes a few milliseconds
MOST_SEEN = 2 * 10**7  # bytes of the nodes of remembered trees, each of which takes five times that


class LocalSearch:
    """Optimises the best tree of a builder, and moves its rows one by one."""

    def __init__(self, builder: TreeBuilder) -> None:
        self.builder = builder
        self.at: SolvedTree | None = None  # the builder's best tree, once optimised
        self._optimised_cost = np.nan  # of the builder's best tree when it was optimised last
        self._pending: Iterator[Assignment] = iter(())
        self.costs = Costs(builder.c1, builder.mu, builder.norm, builder.single)
        # Whether a row that crosses takes the label of its new side: keeping the old one costs 2·c1 or more.
        self.label_follows_side = builder.c2 < 2 * builder.c1
        self.estimates = MoveEstimates(builder)
        # Most trees that are worth a look come to assignments that were seen before.
        self._seen: dict[tuple[int, bool], SolvedTree | None] = {}
        self._remaining: dict[int, Iterator[Assignment]] = {}

    # -- one assignment -------------------------------------------------------------------------------------

    def assignment_of(self, planes: Hyperplanes) -> Assignment:
        """Routing of a tree and the cheaper label of every row on every level."""
        node, score = self.builder.route(planes)
        return Assignment(node, self.builder.cheaper_labels(score), planes.split, score)

    def solve(self, assignment: Assignment, base: Hyperplanes, loose: bool = False) -> SolvedTree | None:
        """The optimal hyperplanes of an assignment, as a tree that was routed and evaluated; None where there are none.

        ``loose``: to a loose tolerance, or what is known to a better one.
        """
        key = _key(assignment)
        for exact in (True, False) if loose else (True,):
            if (key, exact) in self._seen:
                return self._seen[key, exact]
        if len(self._seen) * assignment.node.nbytes > MOST_SEEN:
            self._seen.clear()
        found = self._solve_assignment(assignment, base, LOOSE if loose else STANDARD)
        self._seen[key, not loose] = found
        return found

    def _solve_assignment(
        self,
        assignment: Assignment,
        base: Hyperplanes,
        tolerance: Tolerance,
    ) -> SolvedTree | None:
        builder, found = self.builder, None
        if tolerance is not TIGHT:
            found = hard_margin.solve(builder.X, builder.weights, assignment, self.costs)
        if found is None:
            seconds = builder.budget.left()
            found = fixed_assignment.solve(
                builder.X, builder.weights, assignment, self.costs, tolerance, seconds
            )
        if found is None:
            return None
        planes = base.copy()
        planes.split = assignment.split.copy()
        planes.omega = np.where(planes.split[:, None], found.omega, 0.0)
        planes.omega0 = np.where(planes.split, found.omega0, planes.omega0)
        builder.clear_boundaries(planes)
        planes.cost = builder.value(planes)
        return SolvedTree(planes, assignment, found) if np.isfinite(planes.cost) else None

    def optimise(self, planes: Hyperplanes, limit: float = np.inf) -> SolvedTree | None:
        """Optimise hyperplanes and labels in turn until neither changes, or the cost of a solution is above ``limit``."""
        best: SolvedTree | None = None
        for _ in range(ALTERNATIONS):
            if self.builder.budget.tick():
                break
            found = self.solve(self.assignment_of(planes), planes)
            if found is None or (best is not None and found.cost >= best.cost * (1 - IMPROVEMENT)):
                break
            best, planes = found, found.planes
            if best.cost > limit:
                break
        return best

    def optimise_best(self) -> bool:
        """Optimise the builder's best tree; whether it gets better."""
        best = self.builder.best
        self.at = self.optimise(best) if best.split.any() else None
        better = self.at is not None and self.builder.offer(self.at.planes)
        # Not the cost of ``at``: where rounding makes it worse than the tree it came from, it is not optimised again.
        self._optimised_cost = self.builder.best.cost
        self._pending = iter(()) if self.at is None else self._remaining_moves(self.at)
        return better

    def _remaining_moves(self, at: SolvedTree) -> Iterator[Assignment]:
        """The moves of a tree that were not tried when it was the best one before."""
        key = _key(at.assignment)
        if key not in self._remaining:
            if len(self._remaining) * at.assignment.node.nbytes > MOST_SEEN // 4:
                self._remaining.clear()
            self._remaining[key] = self._moves(at)
        return self._remaining[key]

    def polish(self) -> None:
        """Solve for the best tree, which may come from a loose solution, to a tight tolerance; on small tables even if time is up."""
        if not self.builder.best.split.any():
            return
        if not self.builder.budget.tick():
            self.optimise_best()
        elif len(self.builder.X) > POLISHED_ROWS:
            return
        best = self.builder.best
        assignment = self.assignment_of(best)
        for found in (self.solve(assignment, best), self._solve_assignment(assignment, best, TIGHT)):
            if found is not None:
                self.builder.offer(found.planes)

    def try_moves(self) -> bool:
        """Try the next few moves of the builder's best tree in their order; whether one is better."""
        if self._optimised_cost != self.builder.best.cost and self.optimise_best():
            return True
        if self.at is None:
            return False
        together = MOVES_ESTIMATED if self.estimates.possible else MOVES_SOLVED
        for assignment in self.most_promising(self.at, list(islice(self._pending, together)), MOVES_SOLVED):
            found = self.solve(assignment, self.at.planes, loose=True)
            if found is not None and self.builder.offer(found.planes):
                self.optimise_best()
                return True
        return False

    def tabu_search(self) -> bool:
        """Tabu search: take the best move again and again, also for the worse, and move no row twice; whether that leads below the best.


        The first move is drawn from a few of the best, so that two searches from the same tree differ.
        """
        builder, best = self.builder, self.builder.best
        if self._optimised_cost != best.cost and self.optimise_best():
            return True
        if self.at is None or not self.estimates.possible:
            return False
        at, tabu = self.at, set[int]()
        for k in range(TABU_MOVES):
            if builder.budget.tick():
                return False
            moves = [
                assignment
                for assignment in islice(self._moves(at), TABU_NEIGHBOURS)
                if not tabu.intersection(changed_rows(at.assignment, assignment).tolist())
            ]
            order = self.most_promising(at, moves, TABU_FIRST if k == 0 else 1, TABU_WORSENING)
            if not order:
                return False
            assignment = order[int(builder.rng.integers(len(order)))]
            tabu.update(changed_rows(at.assignment, assignment).tolist())
            found = self.solve(assignment, at.planes, loose=True)
            if found is None or found.cost > best.cost * (1 + TABU_WORSENING):
                return False
            if found.cost < best.cost * (1 + TABU_OPTIMISED):
                found = self.optimise(found.planes, best.cost * (1 + TABU_OPTIMISED)) or found
            if builder.offer(found.planes):
                return True
            at = found
        return False

    # -- estimates ------------------------------------------------------------------------------------------

    def most_promising(
        self,
        at: SolvedTree,
        moves: list[Assignment],
        most: int,
        slack: float = ESTIMATE_ERROR,
    ) -> list[Assignment]:
        """Of these moves of a tree the ``most`` that may be better by their estimates, best first."""
        if not self.estimates.possible:
            return moves[:most]
        limit = at.cost * (1 + slack)
        found = np.full(len(moves), np.inf)
        for k, assignment in enumerate(moves):
            if self.builder.budget.late():
                break
            found[k] = self.estimates(at, assignment, limit)
        return [moves[k] for k in np.argsort(found, kind="stable")[:most] if found[k] < limit]

    # -- moves ----------------------------------------------------------------------------------------------

    def try_compound_move(self) -> bool:
        """Move several rows next to the hyperplanes at once; whether that is better."""
        return self._try_most_promising(lambda at: [self._compound_move(at) for _ in range(COMPOUND_MOVES)])

    def try_exchange(self) -> bool:
        """Take a label back, and give one up that holds the hyperplane back instead; whether that is better."""
        return self._try_most_promising(self._exchanges)

    def _try_most_promising(self, moves: Callable[[SolvedTree], list[Assignment]]) -> bool:
        """Optimise the best tree, or else take the best of these ``moves`` from it; whether that is better."""
        if self._optimised_cost != self.builder.best.cost:
            return self.optimise_best()
        if self.at is None:
            return False
        best = self.most_promising(self.at, moves(self.at), 1, WORTH_ALTERNATING - 1)
        found = self.solve(best[0], self.at.planes, loose=True) if best else None
        return found is not None and self._optimise_and_offer(found.planes)

    def replace_hyperplane(self) -> bool:
        """Put another linear SVM at a node and grow the subtrees below it anew; whether that is better."""
        planes = self._refitted_hyperplane(self.builder.best)
        return self.offer_optimised(None if planes is None else self.builder.rescaled(planes, coarse=True))

    def offer_optimised(self, planes: Hyperplanes | None, factor: float = PROMISING) -> bool:
        """Whether a tree is the best so far, as it is or optimised; the latter up to ``factor`` times the best cost."""
        if planes is None or self.builder.offer(planes):
            return planes is not None
        return planes.cost <= self.builder.best.cost * factor and self._optimise_and_offer(planes)

    def _optimise_and_offer(self, planes: Hyperplanes) -> bool:
        limit = self.builder.best.cost * WORTH_ALTERNATING
        found = self.optimise(planes, limit) if planes.split.any() else None
        return found is not None and self.builder.offer(found.planes)

    def _compound_move(self, at: SolvedTree) -> Assignment:
        assignment, rng = at.assignment, self.builder.rng
        splits = assignment.split[assignment.node - 1]
        near = np.flatnonzero((splits & (np.abs(assignment.score) < NEAR_HYPERPLANE)).ravel())
        if not len(near):
            return assignment
        for place in rng.choice(near, size=int(rng.integers(2, 6))).tolist():
            row, level = divmod(int(place), assignment.node.shape[1])
            if level < self.builder.depth and rng.random() < 0.6:
                assignment = self._crossed(assignment, at.planes, row, level)
            else:
                assignment = _relabelled(assignment, row, level)
        return assignment

    def _exchanges(self, at: SolvedTree) -> list[Assignment]:
        assignment, builder = at.assignment, self.builder
        splits = assignment.split[assignment.node - 1]
        given_up = np.argwhere(splits & (assignment.label != builder.sign[:, None]))
        found: list[Assignment] = []
        if not len(given_up):
            return found
        for _ in range(EXCHANGES):
            back, level = given_up[int(builder.rng.integers(len(given_up)))].tolist()
            pull = np.maximum(at.solution.hinge[:, level], at.solution.side[:, level])
            pull = np.where(assignment.node[:, level] == assignment.node[back, level], pull, 0.0)
            pull = np.maximum(pull, 0.0)
            pull[back] = 0.0
            if not pull.any():
                continue
            row = int(builder.rng.choice(len(pull), p=pull / pull.sum()))
            found.append(
                self._relabelled_and_crossed(
                    self._relabelled_and_crossed(assignment, at.planes, back, level), at.planes, row, level
                )
            )
        return found

    def _relabelled_and_crossed(
        self, assignment: Assignment, planes: Hyperplanes, row: int, level: int
    ) -> Assignment:
        """The other label of a row, which crosses its hyperplane where the label follows the side."""
        if level < self.builder.depth and self.label_follows_side:
            return self._crossed(assignment, planes, row, level)
        return _relabelled(assignment, row, level)

    def _refitted_hyperplane(self, planes: Hyperplanes) -> Hyperplanes | None:
        """A linear SVM of random weights at a random node, and the subtrees below it grown anew."""
        builder, rng = self.builder, self.builder.rng
        node, score = builder.route(planes)
        t = int(rng.choice(np.flatnonzero(planes.split) + 1))
        level = t.bit_length() - 1
        rows = np.flatnonzero(node[:, level] == t)
        if len(rows) < 2:
            return None
        label = (
            builder.cheaper_labels(score[rows], rows)[:, level] if rng.random() < 0.5 else builder.sign[rows]
        )
        w = builder.weights[rows] * rng.exponential(size=len(rows))
        if rng.random() < 0.5:
            # A larger weight of one class: its rows come to one side, and the other one is pure.
            w *= np.where(label == rng.choice([-1.0, 1.0]), 10 ** rng.uniform(0.3, 1.5), 1.0)
        omega, omega0 = fit_linear_svm(builder.X[rows], label, w, float(10 ** rng.uniform(-0.5, 4)))
        return builder.with_hyperplane(planes, t, omega, omega0) if omega.any() else None

    def _moves(self, at: SolvedTree) -> Iterator[Assignment]:
        """Neighbours of the assignment, the most promising first.

        Rows with the largest dual values, in turn with those that would cost less on another side; then all rows next
        to a hyperplane, since some pay off only by the room that they make for others.
        """
        done = set[tuple[int, int, bool]]()
        for pair in chain(
            zip_longest(self._moves_by_dual_value(at), self._moves_by_saving(at)),
            zip(self._moves_by_distance(at)),
        ):
            for move in pair:
                if move is None or move in done:
                    continue
                done.add(move)
                row, level, crosses = move
                if not crosses:
                    yield _relabelled(at.assignment, row, level)
                    continue
                assignment = self._crossed(at.assignment, at.planes, row, level)
                yield assignment
                opened = self._with_new_split(assignment, row, level + 1)
                if opened is not None:
                    yield opened

    def _moves_by_dual_value(self, at: SolvedTree) -> list[tuple[int, int, bool]]:
        """Rows and levels with the largest dual values, and whether to cross there or to take the other label."""
        both = np.stack([at.solution.side, at.solution.hinge])
        largest = float(both.max(initial=0.0))
        found: list[tuple[int, int, bool]] = []
        # Rows with errors all have the dual value c1: those next to the hyperplane first.
        alike = np.round(both / max(largest, 1e-300), 3)
        distance = np.broadcast_to(np.abs(at.assignment.score), both.shape)
        for flat in np.lexsort((distance.ravel(), -alike.ravel())).tolist():
            kind, row, level = (int(k) for k in np.unravel_index(flat, both.shape))
            if both[kind, row, level] <= 1e-6 * largest or len(found) == MOST_MOVES:
                break
            crosses = kind == 0 or (level < self.builder.depth and self.label_follows_side)
            # A label that costs more than the whole tree cannot pay off.
            if crosses or self.builder.c2 * self.builder.weights[row] < at.cost:
                found.append((row, level, crosses))
        return found

    def _moves_by_saving(self, at: SolvedTree) -> list[tuple[int, int, bool]]:
        """Rows that would cost less below the other side of a hyperplane, by the saving over the distance."""
        builder, assignment = self.builder, at.assignment
        found: list[tuple[float, int, int]] = []
        for t in (np.flatnonzero(assignment.split[: builder.B]) + 1).tolist():
            level = t.bit_length() - 1
            rows = np.flatnonzero(assignment.node[:, level] == t)
            right = assignment.node[rows, level + 1] % 2 == 1
            gain = saving_on_the_right(builder, at.planes, t, rows) * np.where(right, -1.0, 1.0)
            worth = gain / (DISTANCE_OFFSET + np.abs(assignment.score[rows, level]))
            found += [(float(worth[k]), int(rows[k]), level) for k in np.flatnonzero(gain > 0)]
        found.sort(key=lambda one: -one[0])
        return [(row, level, True) for _, row, level in found[: MOST_MOVES // 2]]

    def _moves_by_distance(self, at: SolvedTree) -> list[tuple[int, int, bool]]:
        """Rows that cross the hyperplanes of branch nodes, the nearest ones first."""
        depth, assignment = self.builder.depth, at.assignment
        distance = np.where(assignment.split[assignment.node - 1], np.abs(assignment.score), np.inf)[
            :, :depth
        ]
        order = np.argsort(distance, axis=None, kind="stable")[: int((distance < NEAR_HYPERPLANE).sum())]
        return [(*divmod(int(place), depth), True) for place in order]

    def _with_new_split(self, assignment: Assignment, row: int, level: int) -> Assignment | None:
        """The assignment with a split at the last level, where the row comes to a node without one that has both classes; else None."""
        builder, t = self.builder, int(assignment.node[row, level])
        if level < builder.depth or assignment.split[t - 1]:
            return None
        rows = assignment.node[:, level] == t
        if abs(builder.sign[rows].sum()) == rows.sum():
            return None
        split, label, score = assignment.split.copy(), assignment.label.copy(), assignment.score.copy()
        split[t - 1] = True
        label[rows, level] = builder.sign[rows]
        score[rows, level] = 0.0
        return dataclasses.replace(assignment, split=split, label=label, score=score)

    def _crossed(self, assignment: Assignment, planes: Hyperplanes, row: int, level: int) -> Assignment:
        """The row on the other side of its hyperplane on this level, and below it where the tree routes it."""
        node, score = crossed(self.builder.X, assignment, planes, row, level)
        label = assignment.label.copy()
        below = score[[row], level + 1 :]
        label[row, level + 1 :] = self.builder.cheaper_labels(below, np.array([row]))[0]
        if self.label_follows_side:
            # On the far side the old label costs c1 or more, and the other one c2 at most.
            label[row, level] = 1.0 if node[row, level + 1] % 2 == 1 else -1.0
        return dataclasses.replace(assignment, node=node, label=label, score=score)


def _key(assignment: Assignment) -> int:
    split = assignment.split[assignment.node - 1]
    return hash((assignment.node.tobytes(), (assignment.label * split).tobytes(), assignment.split.tobytes()))


def _relabelled(assignment: Assignment, row: int, level: int) -> Assignment:
    label, score = assignment.label.copy(), assignment.score.copy()
    label[row, level] *= -1
    score[row, level] = 0.0
    return dataclasses.replace(assignment, label=label, score=score)
