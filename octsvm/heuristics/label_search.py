"""Starts for RE-SVM: linear SVMs as for trees, then iterated local search over the labels that are given up.

What a sample pays depends on its score, and where its label is given up is a place on that scale. Once it is chosen for every
place on which side of it the sample is, its label is too, and the best hyperplane is that of a linear SVM, which takes some hundred
microseconds. A step moves a few places to their other side, those next to the hyperplane rather than others, solves, and goes on
with the sides that the solution has while that is better. What may be the best is solved for once more by the relaxation of
:mod:`.score_relaxation`, which is exact then. Samples with equal features move together: on tables of few distinct values single
samples cannot. There steps of another kind change the weights of features one by one.

Source: iterated local search as in Lourenço, Martin and Stützle (Handbook of Metaheuristics, 2003).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..formulations.base import BoolArray, Data, FloatArray
from ..formulations.bounds.scores import Intervals, ScoreCosts
from ..formulations.margin_trees import constant_side
from ..formulations.trees import MarginTree, tree_on
from . import margin_tree as tree_search
from .active_set import least_violation
from .budget import Budget
from .feature_weights import drawn, features_of_few_values, reweighted
from .hard_margin_search import HardMarginSearch, margins_are_hard
from .score_relaxation import Plane, ScoreRelaxation
from .tree_builder import best_intercepts

LARGEST = 1_000  # rows, beyond which a solution takes too long
SHARE = 0.8  # of the seconds for linear SVMs, before the labels
SVM_STEPS = 150
HARD_SHARE, HARD_STEPS = 0.8, 2_000  # of what is left then, for labels where margins are hard
MOST_MOVED = 5  # places
REWEIGHTED = 0.6  # of the steps, on tables of few values: these change weights
MOST_WEIGHTS = 8  # changed one after the other
DESCENDED = 1.02  # times the present cost: up to which it is gone down from there
SPREADS = (0.1, 0.5, 2.0)  # of the scores beyond which a place is moved rarely, in units of the margin
DESCENTS = 10  # of labels and hyperplane in turn
WORSE = 1.02  # times the present cost: up to which a worse hyperplane is gone on with
RESTART = 60  # steps after which it is the best one again
ROWS_OF_A_TICK = 100  # up to which a step counts as one of the budget
PATIENCE = 1_000  # steps without a better one
IMPROVES = 1e-9  # relative
INEXACT = 1e-3  # relative: by how much the bend of errors may spoil a hyperplane; one that may be the best is solved for exactly
MOST_ITERATIONS = 2_000


class LabelSearch:
    """Iterated local search from a hyperplane.

    Attributes
    ----------
    best : Plane
    """

    def __init__(self, costs: ScoreCosts, first: Plane, seconds_left: Callable[[], float], seed: int) -> None:
        self.costs, self.best = costs, first
        self._present, self._rng, self._steps = first, np.random.default_rng(seed), 0
        self._relaxation = ScoreRelaxation(costs, seconds_left, first.cost)
        radius = float(np.sqrt((costs.X**2).sum(axis=1)).max())
        self._reach = 1.0 + np.sqrt(2 * first.cost) * 2 * radius
        group, at = costs.places
        within = np.abs(at) < self._reach  # farther off no label is given up
        self._group, self._at, self._movable = group[within], at[within], within
        self._solves = 0
        plus, minus = np.flatnonzero(costs.plus), np.flatnonzero(costs.minus)
        self._samples = np.append(plus, minus)
        self._sign = np.repeat([1.0, -1.0], [len(plus), len(minus)])
        self._weights = np.append(costs.plus[plus], costs.minus[minus])
        self._solved: dict[bytes, Plane | None] = {}
        self._exactly: dict[bytes, Plane | None] = {}
        self._few = features_of_few_values(costs.X)
        self._reweighting = REWEIGHTED if len(self._few) else 0.0

    @property
    def solves(self) -> int:
        """How many programs were solved."""
        return self._solves + self._relaxation.solves

    def run(self, budget: Budget) -> Iterator[Plane]:
        """Better and better hyperplanes."""
        idle, patience = 0, PATIENCE if len(self._at) else 1
        # Seconds of a step go with that.
        ticks = range(max(1, round((len(self.costs.X) / ROWS_OF_A_TICK) ** 2)))
        while idle < patience and not any(budget.tick() for _ in ticks):
            idle = 0 if self.step() else idle + 1
            if not idle:
                yield self.best

    def step(self) -> bool:
        """Move places, or change weights, and go down from there; whether that is the best so far."""
        self._steps += 1
        over = self._reweighted() if self._rng.random() < self._reweighting else self._moved()
        found = None if over is None else self._descended(over)
        better = found is not None and found.cost < self.best.cost * (1 - IMPROVES)
        if found is not None and better:
            self.best = found
        if self._steps % RESTART == 0:
            self._present = self.best
        elif found is not None and found.cost < self._present.cost * WORSE:
            self._present = found
        return better

    def go_on_from(self, plane: Plane) -> None:
        """Take a better hyperplane that was found elsewhere."""
        self.best = self._present = plane

    def _scores(self, plane: Plane) -> FloatArray:
        """At every place, the score of its group."""
        return (self.costs.X @ plane.omega + plane.omega0)[self._group]

    def _moved(self) -> BoolArray:
        """On which side of its place each group is, a few of them on the other one."""
        scores, rng = self._scores(self._present), self._rng
        noise = rng.exponential(size=len(scores)) * float(rng.choice(SPREADS))
        order = np.argsort(np.abs(scores - self._at) + noise, kind="stable")
        over: BoolArray = scores > self._at
        over[order[: int(rng.integers(1, MOST_MOVED + 1))]] ^= True
        return over

    def _reweighted(self) -> BoolArray | None:
        """On which side of its place each group is for a few other weights, one feature after the other; None where that is far worse."""
        costs, rng = self.costs, self._rng
        omega = self._present.omega
        for _ in range(int(rng.integers(1, MOST_WEIGHTS + 1))):
            fresh = reweighted(costs.X, self._few, omega, rng)
            if not len(fresh):
                return None
            along = fresh @ costs.X.T
            omega0, paid = best_intercepts(
                along[:, self._samples], self._sign, self._weights, np.ones(1), costs.c1, costs.c2
            )
            cost = paid[:, 0] + (fresh**2).sum(axis=1) / 2
            k = drawn(cost, rng)
            omega = fresh[k]
            if cost[k] < self._present.cost * DESCENDED:
                over: BoolArray = (along[k] + omega0[k, 0])[self._group] > self._at
                return over
        return None

    def _descended(self, over: BoolArray) -> Plane | None:
        """The best hyperplane for these sides, then for those that it has, while that is better; None where there is none."""
        best: Plane | None = None
        for _ in range(DESCENTS):
            found = self._best_of(over)
            if found is None or (best is not None and found.cost >= best.cost * (1 - IMPROVES)):
                break
            best = found
            over = self._scores(best) > self._at
        if best is not None and best.cost < self.best.cost * (1 + INEXACT):
            exact = self._exact(over)
            best = exact if exact is not None and exact.cost < best.cost else best
        return best

    def _best_of(self, over: BoolArray) -> Plane | None:
        """The best hyperplane for the labels of these sides, which on small tables come again and again; None where there is none."""
        sides = over.tobytes()
        if sides not in self._solved:
            self._solves += 1
            label = self._sign.copy()
            label[self._movable] = np.where(over, 1.0, -1.0)
            costs = self.costs
            found = least_violation(
                costs.X[self._samples], label > 0, label, costs.c1 * self._weights, MOST_ITERATIONS
            )
            self._solved[sides] = (
                self._exact(over) if found is None else Plane(costs.objective(*found[1:]), *found[1:])
            )
        return self._solved[sides]

    def _exact(self, over: BoolArray) -> Plane | None:
        """The best hyperplane within these sides, to a few more digits: many a step comes back to the best one."""
        sides = over.tobytes()
        if sides not in self._exactly:
            self._exactly[sides] = self._solved_exactly(over)
        return self._exactly[sides]

    def _solved_exactly(self, over: BoolArray) -> Plane | None:
        low, high = np.full(len(self.costs.X), -self._reach), np.full(len(self.costs.X), self._reach)
        np.maximum.at(low, self._group[over], self._at[over])
        np.minimum.at(high, self._group[~over], self._at[~over])
        if (low > high).any():
            return None
        return self._relaxation.plane(self._relaxation.solve(Intervals(low, high)))


def candidates(data: Data, params: Any, budget: Budget, seed: int) -> Iterator[MarginTree]:
    """Single hyperplanes, each better than those before: of linear SVMs, then of other labels where the norm is "l2"."""
    searched = params.norm == "l2" and params.c1 > 0 and data.n <= LARGEST
    best: MarginTree | None = None
    for best in tree_search.candidates(
        data, params, budget.part(SHARE, SVM_STEPS) if searched else budget, seed
    ):
        yield best
    if not searched:
        return
    costs = ScoreCosts.of(data.X, data.sign, data.weights, params.c1, params.c2)
    omega = np.zeros(data.p) if best is None else best.omega[0]
    omega0 = constant_side(data) if best is None else float(best.omega0[0] + omega @ costs.center)
    known = Plane(costs.objective(omega, omega0), omega, omega0)
    for plane in _searches(costs, known, budget, seed):
        intercept = np.array([plane.omega0 - plane.omega @ costs.center])
        split = np.array([bool(plane.omega.any())])
        yield tree_on(data, MarginTree, 0, plane.omega[None, :].copy(), intercept, split)


def _searches(costs: ScoreCosts, known: Plane, budget: Budget, seed: int) -> Iterator[Plane]:
    """Better and better hyperplanes, where margins are hard at first by a search of its own."""
    if margins_are_hard(costs, known.cost):
        hard = HardMarginSearch(costs, known, seed)
        yield from hard.run(budget.part(HARD_SHARE, HARD_STEPS))
        known = hard.best
    yield from LabelSearch(costs, known, budget.left, seed).run(budget)
