"""Combinations of samples: their bounds against the costs of hyperplanes of every kind."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from long_cases import long

import octsvm
from octsvm.formulations.base import Data
from octsvm.formulations.bounds.levels import top_level
from octsvm.formulations.bounds.scores import Intervals
from octsvm.solving.combinations import CombinationProgram, Combinations

COSTS = (
    (1.0, 1.0, 1.0),
    (10.0, 5.0, 0.5),
    (1.0, 10.0, 0.1),
    (2.0, 0.5, 0.05),
    (100.0, 1.0, 1.0),
    (2.0, 0.0, 0.5),
)
LONGEST = 60.0


def never() -> bool:
    return False


def unlimited() -> float:
    return math.inf


def table(seed: int) -> tuple[Data, tuple[float, float, float]]:
    """Twelve rows, many of them equal in every other table; weights in some."""
    rng = np.random.default_rng([31, seed])
    X = rng.integers(0, 3, (12, 2)) / 2 if seed % 2 else rng.random((12, 2))
    X[0], X[1] = 0.0, 1.0
    y = rng.integers(0, 2, 12)
    y[:2] = 0, 1
    weights = rng.random(12) + 0.5 if seed % 3 == 0 else None
    return octsvm.build("octsvm", X, y, weights=weights, depth=0).info.data, COSTS[seed % len(COSTS)]


def hyperplanes(rng: np.random.Generator, X: np.ndarray) -> Any:
    """ω and ω_0 of many lengths, some through rows, some with a margin that ends at one."""
    for _ in range(40):
        omega = rng.normal(size=X.shape[1])
        omega *= rng.choice([0.0, 0.5, 3.0, 0.9 * LONGEST]) / np.linalg.norm(omega)
        yield omega, float(rng.choice([0.0, 1.0, -1.0, rng.normal()]) - X[rng.integers(len(X))] @ omega)


@pytest.mark.parametrize("squared", [False, True], ids=["norm", "square"])
@pytest.mark.parametrize("seed", [*range(6), *long(range(6, 18))])
@pytest.mark.slow_cases("[45]-*", "[0-2]-square")
def test_no_bound_lies_above_a_hyperplane_and_none_is_lost(seed: int, squared: bool) -> None:
    """In each case of a top level, on all intervals and on some that the hyperplane has its scores in."""
    data, costs = table(seed)
    rng, pool, checked = np.random.default_rng(seed), None, 0
    for case in top_level(data, *costs, 1, LONGEST, 1e-3):
        problem = case._replace(costs=replace(case.costs, squared=squared))
        if pool is None:
            pool = Combinations(problem.costs, LONGEST)
            CombinationProgram(problem.costs, pool).find(problem.box, never, unlimited)
        program = CombinationProgram(problem.costs, pool)
        for omega, omega0 in hyperplanes(rng, problem.costs.X):
            score = problem.costs.X @ omega + omega0
            if ((score > -problem.costs.boundary) & (score < 0)).any():
                continue
            length = float(np.linalg.norm(omega))
            wide = Intervals(
                np.minimum(problem.box.low, score), np.maximum(problem.box.high, score), 0.0, LONGEST
            )
            some = wide._replace(
                low=np.where(
                    rng.random(len(score)) < 0.5, score - rng.exponential(size=len(score)), wide.low
                ),
                high=np.where(rng.random(len(score)) < 0.5, score, wide.high),
                shortest=length / 2,
            )
            cost = problem.costs.objective(omega, omega0)
            for box in (wide, some):
                packed = program.solve(*program.bounds(box), math.inf)
                assert packed is not None
                assert packed.bound <= cost + 1e-9 * (1 + abs(cost))
                left = program.settled(packed, box, cost)
                assert (left.low <= score).all()
                assert (left.high >= score).all()
                checked += 1
    assert pool is not None
    assert pool.found
    assert checked > 100


def test_what_meets_and_what_does_not() -> None:
    """The corners of a square, one class on each diagonal: one of four labels goes, however steep the hyperplane."""
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    data = octsvm.build("octsvm", X, [1, 1, 0, 0], depth=0).info.data
    problem = top_level(data, 10.0, 3.0, 1.0, 0, LONGEST, 1e-3)[0]
    pool = Combinations(problem.costs, LONGEST)
    program = CombinationProgram(problem.costs, pool)
    given_up = program.find(problem.box, never, unlimited)
    packed = program.solve(*program.bounds(problem.box), math.inf)
    assert any(one.meets and len(one.at) == 4 for one in pool.found)
    assert given_up == pytest.approx(1.0, abs=1e-5)
    assert packed is not None
    # The split, the label, and ½‖ω‖ of the hyperplane between one corner and the two next to it.
    assert 1.0 + 3.0 < packed.bound <= 1.0 + 3.0 + math.sqrt(2)


def test_no_answer_without_time() -> None:
    data, costs = table(1)
    problem = top_level(data, *costs, 1, LONGEST, 1e-3)[0]
    pool = Combinations(problem.costs, LONGEST)
    program = CombinationProgram(problem.costs, pool)
    assert program.find(problem.box, lambda: True, unlimited) == 0.0
    assert pool.found == []
