"""Branch and reduce with combinations, for RE-SVM: against brute force, and where it takes the place of other ways."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracles
import pytest
from long_cases import long

from octsvm.formulations.bounds.scores import Intervals, ScoreCosts, ScoreProblem
from octsvm.heuristics.score_relaxation import Plane
from octsvm.solving.branch_and_reduce import BranchAndReduce, Reduction
from octsvm.solving.overlap_search import OverlapSearch
from octsvm.solving.own_search import Turns

GAP = 1e-5
COSTS = ((1.0, 1.0), (10.0, 5.0), (1.0, 10.0), (50.0, 1.0), (2.0, 0.5))


def problem(
    X: np.ndarray, sign: np.ndarray, weights: np.ndarray, c1: float, c2: float
) -> tuple[ScoreProblem, Plane]:
    """Within scores that no better hyperplane than the constant one leaves."""
    costs = ScoreCosts.of(X, sign, weights, c1, c2)
    first = min(
        (Plane(costs.objective(np.zeros(X.shape[1]), s), np.zeros(X.shape[1]), s) for s in (-1.0, 1.0)),
        key=lambda plane: plane.cost,
    )
    return ScoreProblem(costs, costs.within_norm(math.sqrt(2 * first.cost))), first


def search_of(costs: ScoreCosts, box: Intervals, first: Plane, overlap: float = 0.0) -> OverlapSearch:
    reduction = Reduction(costs, first, GAP, lambda: False, lambda: math.inf)
    return OverlapSearch([(reduction, box)], overlap, by_work=True)


@pytest.mark.parametrize("seed", [*range(10), *long(range(10, 200))])
def test_the_optimum_is_that_of_brute_force(seed: int) -> None:
    """Where combinations are used from the first node on; many equal samples in every other table, weights in every third."""
    rng = np.random.default_rng([33, seed])
    n, p = int(rng.integers(4, 9)), int(rng.integers(1, 3))
    X = rng.integers(0, 3, (n, p)) / 2 if seed % 2 else rng.random((n, p))
    sign = rng.choice([-1.0, 1.0], n)
    sign[:2] = 1.0, -1.0
    weights = rng.choice([0.5, 1.0, 2.0], n) if seed % 3 == 0 else np.ones(n)
    c1, c2 = COSTS[seed % len(COSTS)]
    known = oracles.re_svm_optimum(X, sign, c1=c1, c2=c2, weights=weights)
    given, first = problem(X, sign, weights, c1, c2)
    search = search_of(given.costs, given.box, first)
    for _ in search.run(by_work=True):
        assert search.bound <= known * (1 + 1e-7)
    assert search.closed
    assert search.reduction.incumbent.cost == pytest.approx(known, rel=2 * GAP)


def overlapping(n: int) -> tuple[ScoreProblem, Plane]:
    """Features of three values; labels that have nothing to do with them."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, (n, 6)) / 2
    return problem(X, rng.choice([-1.0, 1.0], n), np.ones(n), 10.0, 5.0)


@pytest.mark.slow
def test_where_classes_overlap_combinations_take_the_place_of_labels() -> None:
    given, first = overlapping(100)
    by_labels = BranchAndReduce(
        Reduction(given.costs, first, GAP, lambda: False, lambda: math.inf), given.box, 0.0
    )
    made: list[Any] = []

    def otherwise() -> BranchAndReduce:
        made.append(search_of(given.costs, by_labels.root, by_labels.reduction.incumbent, overlap=4.0))
        return made[0]

    turns = Turns([by_labels], True, otherwise)
    while not made:
        assert not turns.step()
    before = by_labels.nodes
    for _ in range(20):
        turns.step()
    assert made[0].overlapping
    assert made[0].nodes > 0
    assert by_labels.nodes == before
    assert by_labels.bound < turns.bound == made[0].bound < turns.incumbent.cost


def test_without_overlap_it_is_the_search_by_labels() -> None:
    X = np.linspace(0, 1, 20)[:, None]
    given, first = problem(X, np.where(X[:, 0] > 0.5, 1.0, -1.0), np.ones(20), 10.0, 5.0)
    search = search_of(given.costs, given.box, first, overlap=4.0)
    assert not search.overlapping
    for _ in search.run(by_work=True):
        pass
    assert search.closed
