"""The bound from the top level of OCTSVM: against brute force over all trees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracles
import pytest
from long_cases import long

import octsvm
from octsvm.formulations.registry import formulation
from octsvm.options import Clock
from octsvm.solving.level_bound import LevelBound, LevelSearch, Pace
from octsvm.solving.strategies import LEVEL_ROWS

COSTS = (
    (1.0, 1.0, 1.0),
    (10.0, 5.0, 0.5),
    (1.0, 10.0, 0.1),
    (2.0, 0.5, 0.05),
    (10.0, 30.0, 9.0),
    (3.0, 6.0, 0.2),
)
SHOWN = (*range(10), 14)  # seeds with every depth, costs, norm, weights and ties; 14 the L1 norm at depth 2
GAP = 1e-5


def tiny(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
    """A table of few rows, scaled to [0, 1] already; every third one with many ties, every other one with weights."""
    rng = np.random.default_rng([21, seed])
    depth = seed % 3
    n, p = int(rng.integers(3, 5 if depth == 2 else 7 - depth)), int(rng.integers(1, 3))
    X = rng.integers(0, 3, (n, p)) / 2 if seed % 3 == 0 else rng.random((n, p))
    X[0], X[1] = 0.0, 1.0
    sign = rng.choice([-1.0, 1.0], n)
    sign[:2] = 1.0, -1.0
    weights = rng.choice([0.5, 1.0, 2.0, 3.0], n) if seed % 2 else np.ones(n)
    c1, c2, c3 = COSTS[seed % len(COSTS)]
    params = {"depth": depth, "c1": c1, "c2": c2, "c3": c3}
    return X, sign, weights, params | ({"norm": "l1"} if seed % 5 == 4 else {})


def bound_of(
    X: np.ndarray,
    sign: np.ndarray,
    weights: np.ndarray,
    params: dict[str, Any],
    cost: float,
    **more: Any,
) -> LevelBound:
    """What a search proves, without a limit if none is given, where a tree of that cost is known."""
    form = formulation("octsvm")
    info = octsvm.build("octsvm", X, sign, weights=weights, **params).info
    problems = form.top_level(info.data, info.params, cost)
    return LevelSearch(problems, cost, GAP, **more).run(lambda *_: False, Clock())


@pytest.mark.parametrize("overlap", [0.0, math.inf], ids=["combinations", "scores"])
@pytest.mark.parametrize("seed", [*SHOWN, *long(seed for seed in range(90) if seed not in SHOWN)])
@pytest.mark.quick_cases("[02-4689]-combinations")
@pytest.mark.every_value
def test_no_bound_lies_above_the_optimum(seed: int, overlap: float) -> None:
    """Whatever tree is known: the best one, or a worse one; with combinations, and without."""
    X, sign, weights, params = tiny(seed)
    known = oracles.octsvm_optimum(X, sign, weights=weights, **params)
    constant = (params["depth"] + 1) * min(2 * params["c1"], params["c2"])
    constant *= min(float(weights[sign > 0].sum()), float(weights[sign < 0].sum()))
    for cost in (known, min(constant, known * 1.3 + 0.1)):
        found = bound_of(X, sign, weights, params, cost, overlap=overlap)
        assert found.value <= known * (1 + 1e-6) + 1e-7
    if params["depth"] == 0 and "norm" not in params:
        # The bound is exact there.
        assert found.value >= min(known, cost * (1 - GAP)) - 1e-3 * known


def test_combinations_prove_more_where_classes_overlap() -> None:
    """After few nodes: ten labels at least; intervals of scores alone prove 2.4 then."""
    X, y = made(60, 2, 3, 0.4)
    sign, weights = np.where(y > 0, 1.0, -1.0), np.ones(60)
    params = {"depth": 1, "c1": 10, "c2": 5, "c3": 0.5}
    cost = 2 * 5 * float(min((y > 0).sum(), (y == 0).sum()))
    assert bound_of(X, sign, weights, params, cost, most_nodes=20).value > 50


def made(n: int, p: int, seed: int, share: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Uniform rows, two classes by a hyperplane, a share of the labels wrong."""
    rng = np.random.default_rng([22, seed])
    X = rng.random((n, p))
    y = (X.sum(axis=1) > p / 2).astype(int)
    wrong = rng.random(n) < share
    return X, np.where(wrong, 1 - y, y)


@pytest.mark.slow
def test_a_fit_is_proved_without_a_model_where_no_child_splits() -> None:
    X, y = made(LEVEL_ROWS, 2, 2, 0.0)
    params = {"depth": 1, "c1": 1, "c2": 1, "c3": 1}
    start = octsvm.fit("octsvm", X, y, strategy="heuristic", work_limit=1, **params).tree
    result = octsvm.fit("octsvm", X, y, strategy="exact", start=start, time_limit=240, **params)
    assert result.status == "optimal"
    assert "top level" in result.notes[0]
    assert result.gap <= 1e-4
    assert result.engine == {}


@pytest.mark.slow
def test_the_bound_of_the_top_level_is_the_results_where_the_engine_has_none_as_good() -> None:
    X, y = made(60, 2, 1)
    limits = {"work_limit": {"nodes": 1, "rounds": 1}, "time_limit": 300}
    result = octsvm.fit("octsvm", X, y, depth=2, c1=10, c2=5, c3=0.5, on_mismatch="ignore", **limits)
    form = formulation("octsvm")
    info = octsvm.build("octsvm", X, y, depth=2, c1=10, c2=5, c3=0.5).info
    problems = form.top_level(info.data, info.params, result.objective)
    search = LevelSearch(problems, result.objective, 1e-4, most_nodes=1)
    alone = search.run(lambda *_: False, Clock(60))
    assert result.status in ("feasible", "optimal")
    assert alone.value <= result.bound <= result.objective * (1 + 1e-9)


@pytest.mark.slow
def test_printed_rows_small_tables_and_work_limits_without_nodes_have_no_such_bound() -> None:
    X, y = made(44, 2, 2)

    def stop(progress: octsvm.Progress) -> bool:
        return progress.phase not in ("start heuristics", "bounding")

    for more, rows in (({"variant": "paper"}, 44), ({}, 30), ({"work_limit": {"rounds": 1}}, 44)):
        result = octsvm.fit("octsvm", X[:rows], y[:rows], depth=1, time_limit=6, callback=stop, **more)
        assert result.stop == "interrupted"
        assert not any("top level" in note for note in result.notes)


def test_the_pace_is_what_the_last_third_of_the_time_closed() -> None:
    pace = Pace(10.0)
    assert pace.after(0.0, 0.0) == 0.0
    assert pace.after(6.0, 4.0) == 0.4
    assert pace.after(9.0, 7.0) == 0.5  # from 4 at 6 seconds
    assert pace.after(13.0, 7.0) == 0.5  # from 4 at 8.67 seconds
    assert pace.after(13.6, 7.0) == 0.0  # 7 was there at 9.07 seconds
    assert pace.after(13.6, 10.0) == 1.0
    assert pace.after(40.0, 10.0) == 0.0


def test_where_no_label_is_in_doubt_a_moment_proves_the_tree() -> None:
    X = np.random.default_rng(0).uniform(0, 10, size=(120, 2))
    X = X[abs(X.sum(axis=1) - 10) > 2]
    y = X.sum(axis=1) > 10
    phases: list[str] = []
    result = octsvm.fit(
        "octsvm", X, y, depth=1, time_limit=400, callback=lambda progress: phases.append(progress.phase)
    )
    assert result.status == "optimal"
    assert "no model was built" in result.notes[0]
    # The start alone would take ten seconds.
    assert result.seconds < 10
    assert "building" not in phases
