"""Annealing over labels where margins are hard: the optimum on small tables, and when it applies."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import oracles
import pytest

import octsvm
from octsvm.formulations.bounds.scores import ScoreCosts
from octsvm.heuristics.budget import Budget
from octsvm.heuristics.hard_margin_search import HardMarginSearch, margins_are_hard
from octsvm.heuristics.score_relaxation import Plane

C1, C2 = 100.0, 1.0


def table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Eight rows; of every other table some are equal, in both classes."""
    rng = np.random.default_rng([31, seed])
    X = rng.integers(0, 3, (8, 2)) / 2 if seed % 2 else rng.random((8, 2))
    y = rng.choice([-1.0, 1.0], 8)
    y[:2] = 1, -1
    return X, y


@pytest.mark.parametrize("seed", range(8))
def test_it_comes_to_the_optimum_of_small_tables(seed: int) -> None:
    X, y = table(seed)
    costs = ScoreCosts.of(X, y, np.ones(len(y)), C1, C2)
    zero = np.zeros(2)
    first = min(Plane(costs.objective(zero, side), zero, side) for side in (-1.0, 1.0))
    assert margins_are_hard(costs, first.cost)
    search = HardMarginSearch(costs, first, seed)
    seen = [first, *search.run(Budget(60.0, 300))]
    assert all(later.cost < earlier.cost for earlier, later in pairwise(seen))
    assert all(plane.cost == costs.objective(plane.omega, plane.omega0) for plane in seen[1:])
    assert search.best.cost == pytest.approx(oracles.re_svm_optimum(X, y, c1=C1, c2=C2), rel=1e-5)


def test_margins_are_soft_where_an_error_may_pay() -> None:
    X, y = table(0)
    assert not margins_are_hard(ScoreCosts.of(X, y, np.ones(len(y)), 1.0, 1.0), 4.0)
    few = np.where(np.arange(len(y)) == 3, 1e-3, 1.0)  # an error of that row costs a tenth of a unit
    assert not margins_are_hard(ScoreCosts.of(X, y, few, C1, C2), 4.0)
    nothing = np.where(np.arange(len(y)) == 3, 0.0, 1.0)
    assert margins_are_hard(ScoreCosts.of(X, y, nothing, C1, C2), 4.0)


@pytest.mark.slow
def test_a_limit_of_work_repeats() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.random((30, 6)), np.where(rng.random(30) < 0.5, 1, -1)
    first, second = (
        octsvm.fit("re_svm", X, y, c1=C1, c2=C2, strategy="heuristic", work_limit={"rounds": 1}) for _ in "ab"
    )
    assert first.tree.to_json() == second.tree.to_json()
