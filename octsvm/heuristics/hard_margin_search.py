"""RE-SVM with dear errors: simulated annealing over the labels that are given up.

Where an error costs more than the margin term of any tree of interest, margins are hard (:mod:`.hard_margin`): once it is
chosen which labels are given up, the least norm that separates the rest is all there is to it. DAQP takes some hundred
microseconds for it, and stops early where the norm is above what the step may accept. A step changes the label of a support
vector, or of a sample whose label is given up. Cycles of falling temperature start from linear SVMs of random weights and costs,
and a few from each best hyperplane.

Source: simulated annealing as in Kirkpatrick, Gelatt and Vecchi (Science, 1983).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..formulations.base import BoolArray
from ..formulations.bounds.scores import ScoreCosts
from . import hard_margin
from .active_set import HardMarginSVM, minimum_norm
from .budget import Budget
from .linear_svm import fit_linear_svm
from .score_relaxation import Plane

STEPS = 100  # of a cycle
HOT, COLD = 0.5, 0.05  # temperature at its beginning and its end, times c2
TWO_LABELS = 0.3  # of the steps change two
START_COSTS = (-1.0, 2.0)  # of the SVMs that cycles start from, as powers of ten
WORTH_A_CYCLE = 1.5  # times the best cost: from starts up to it
STEPS_OF_A_TICK = 10  # of the budget
FROM_BEST = 6  # first cycles, of which every other one starts from the best hyperplane
PATIENCE = 200  # cycles without a better hyperplane
IMPROVES = 1e-9  # relative


class _State(NamedTuple):
    """On which side each group is, what that costs, and the hyperplane."""

    over: BoolArray
    cost: float
    svm: HardMarginSVM


class HardMarginSearch:
    """The search from a hyperplane, where :func:`margins_are_hard`.

    Attributes
    ----------
    best : Plane
    """

    def __init__(self, costs: ScoreCosts, first: Plane, seed: int) -> None:
        self.costs, self.best = costs, first
        self._rng = np.random.default_rng(seed)
        self._ones = np.ones(len(costs.X))
        self._kept = costs.plus >= costs.minus  # sides on which each group gives up least
        # What a group pays on each side for labels given up.
        self._pays_over, self._pays_under = costs.c2 * costs.minus, costs.c2 * costs.plus

    def run(self, budget: Budget) -> Iterator[Plane]:
        """Better and better hyperplanes."""
        idle = 0
        while idle < PATIENCE and not budget.tick():
            start = self._from_best() if idle % 2 == 0 and idle < FROM_BEST else self._from_svm()
            idle += 1
            for plane in self._cycle(start, budget) if start is not None else ():
                idle = 0
                yield plane

    def _cycle(self, at: _State, budget: Budget) -> Iterator[Plane]:
        """Anneal from there, and give every hyperplane that is better than the best."""
        rng = self._rng
        for k in range(STEPS):
            if k % STEPS_OF_A_TICK == 0 and budget.tick():
                return
            temperature = self.costs.c2 * HOT * (COLD / HOT) ** (k / STEPS)
            held_back = np.flatnonzero((at.svm.dual_values > 0) | (at.over != self._kept))
            if not len(held_back):
                return
            over = at.over.copy()
            over[rng.choice(held_back, size=2 if rng.random() < TWO_LABELS else 1)] ^= True
            found = self._state(over, at.cost + temperature * float(rng.exponential()))
            if found is None:
                continue
            at = found
            if at.cost < self.best.cost * (1 - IMPROVES):
                omega, omega0 = at.svm.omega, at.svm.omega0
                self.best = Plane(self.costs.objective(omega, omega0), omega, omega0)
                yield self.best

    def _state(self, over: BoolArray, limit: float) -> _State | None:
        """The best hyperplane for these sides; None where it costs more than ``limit``, or there is none."""
        labels = float(np.where(over, self._pays_over, self._pays_under).sum())
        if labels >= limit:
            return None
        svm = minimum_norm(self.costs.X, over, self._ones, float(np.sqrt(2 * (limit - labels))))
        return None if svm is None else _State(over, labels + float(svm.omega @ svm.omega) / 2, svm)

    def _from_best(self) -> _State | None:
        over = self.costs.X @ self.best.omega + self.best.omega0 >= 0
        return self._state(over, WORTH_A_CYCLE * self.best.cost)

    def _from_svm(self) -> _State | None:
        costs, rng = self.costs, self._rng
        weights = np.abs(costs.plus - costs.minus) * rng.exponential(size=len(costs.X))
        C = float(10 ** rng.uniform(*START_COSTS))
        omega, omega0 = fit_linear_svm(costs.X, np.where(self._kept, 1.0, -1.0), weights, C)
        return self._state(costs.X @ omega + omega0 >= 0, WORTH_A_CYCLE * self.best.cost)


def margins_are_hard(costs: ScoreCosts, cost: float) -> bool:
    """Whether no hyperplane of RE-SVM that costs less than ``cost`` is better with an error than with hard margins for its labels."""
    weights = np.concatenate([costs.plus, costs.minus])
    return (
        costs.squared
        and 2 * cost <= hard_margin.largest_error_free_norm(weights[weights > 0], costs.c1, single=True) ** 2
    )
