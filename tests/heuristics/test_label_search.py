"""Local search over labels: hyperplanes of the cost that they claim, and the optimum on small tables."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import oracles
import pytest

import octsvm
from octsvm.formulations.bounds.scores import ScoreCosts
from octsvm.heuristics.budget import Budget
from octsvm.heuristics.label_search import LabelSearch
from octsvm.heuristics.score_relaxation import Plane


def table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Seven rows of three values a feature: equal rows of both classes are among them."""
    rng = np.random.default_rng([20, seed])
    X = rng.integers(0, 3, (7, 2)) / 2
    y = rng.choice([-1.0, 1.0], 7)
    y[:2] = 1, -1
    return X, y


@pytest.mark.parametrize("seed", range(12))
def test_it_comes_to_the_optimum_of_small_tables(seed: int) -> None:
    X, y = table(seed)
    c1, c2 = ((10.0, 5.0), (1.0, 10.0), (100.0, 30.0))[seed % 3]
    costs = ScoreCosts.of(X, y, np.ones(len(y)), c1, c2)
    zero = np.zeros(2)
    first = Plane(min(costs.objective(zero, side) for side in (-1.0, 1.0)), zero, 1.0)
    seen = [first]
    search = LabelSearch(costs, first, lambda: math.inf, 0)
    seen += search.run(Budget(60.0, 300))
    assert all(later.cost < earlier.cost for earlier, later in pairwise(seen))
    assert all(plane.cost == costs.objective(plane.omega, plane.omega0) for plane in seen[1:])
    assert search.best.cost == pytest.approx(oracles.re_svm_optimum(X, y, c1=c1, c2=c2), rel=1e-5)


@pytest.mark.slow
def test_steps_can_be_repeated_and_labels_are_moved_where_no_svm_beats_the_constant_one() -> None:
    rng = np.random.default_rng(1)
    X = rng.random((24, 18))
    y = np.where(rng.random(24) < 0.5, 1, -1)
    first, second = (
        octsvm.fit("re_svm", X, y, c1=100, c2=1, strategy="heuristic", work_limit={"rounds": 1}) for _ in "ab"
    )
    assert first.tree.to_json() == second.tree.to_json()
    assert first.objective < min((y > 0).sum(), (y < 0).sum())
