"""Our own search as a solver: what it takes, what it is asked for, and what it says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracles
import pyomo.environ as pyo
import pytest
from waiting import at_most

import octsvm
from octsvm.formulations.bounds.scores import Intervals, ScoreCosts, ScoreProblem
from octsvm.heuristics.score_relaxation import Plane
from octsvm.solving.branch_and_reduce import BranchAndReduce, Reduction
from octsvm.solving.hyperplane_search import HyperplaneSearch
from octsvm.solving.own_search import Turns

NAME = "branch_and_reduce"


def table(n: int = 30, p: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels of a hyperplane, one in five turned around."""
    rng = np.random.default_rng([18, seed])
    X = rng.random((n, p))
    y = np.where(X[:, 0] + X[:, 1] > 1, 1, -1)
    y[rng.permutation(n)[: n // 5]] *= -1
    return X, y


@pytest.mark.parametrize("seed", range(12))
def test_fit_proves_the_optimum_of_brute_force(seed: int) -> None:
    X, y = table(7, 2, seed)
    c1, c2 = ((1.0, 1.0), (10.0, 5.0), (1.0, 10.0), (50.0, 1.0))[seed % 4]
    weights = np.random.default_rng(seed).choice([1.0, 2.0, 0.5], len(y)) if seed % 2 else np.ones(len(y))
    variant = "paper" if seed % 3 == 0 else None
    result = octsvm.fit("re_svm", X, y, c1=c1, c2=c2, scale=False, weights=weights, variant=variant, gap=1e-6)
    known = oracles.re_svm_optimum(X, y, c1=c1, c2=c2, weights=weights)
    assert (result.solver, result.status, result.stop) == (NAME, "optimal", "optimal")
    assert result.objective == pytest.approx(known, rel=1e-5)
    assert result.bound <= known * (1 + 1e-7)


@pytest.mark.slow
def test_default_agrees_with_an_engine() -> None:
    X, y = table(16, 3)
    ours, engine = (octsvm.fit("re_svm", X, y, c1=3, c2=2, **how) for how in ({}, {"solver": "highs"}))
    assert (ours.solver, engine.solver) == (NAME, "highs")
    assert ours.objective == pytest.approx(engine.objective, rel=2e-4)
    assert max(ours.bound, engine.bound) <= min(ours.objective, engine.objective) * (1 + 1e-6)


@pytest.mark.parametrize(
    "asked",
    [
        {"solver": "highs"},
        {"options": {"mip_feasibility_tolerance": 1e-7}},
        {"bridge": "outer_approximation"},
        {"threads": 2},
    ],
    ids=str,
)
def test_an_engine_that_is_wanted_is_used(asked: dict[str, Any]) -> None:
    X, y = table(8, 2)
    assert octsvm.fit("re_svm", X, y, **asked).solver == "highs"


@pytest.mark.slow
def test_other_models_are_refused_by_name_and_left_to_engines_without() -> None:
    X, y = table(8, 2)
    models = {
        "norm='l1'": octsvm.build("re_svm", X, y, norm="l1"),
        "octsvm": octsvm.build("octsvm", X, y, depth=1),
        "of your own": octsvm.build("re_svm", X, y),
        "of your own.": octsvm.build("re_svm", X, y),
    }
    models["of your own"].row = pyo.Constraint(expr=models["of your own"].relabelling.xi[0, 1] == 0)
    models["of your own."].relabelling.xi[1, 1].fix(1)
    with pytest.warns(UserWarning, match="big_m"):
        models["no smaller than the proved"] = octsvm.build("re_svm", X, y, big_m=0.5)
    for part, model in models.items():
        with pytest.raises(octsvm.UnsupportedProblem, match="cannot take this model") as caught:
            octsvm.solve(model, solver=NAME)
        assert part.rstrip(".") in str(caught.value)
        assert octsvm.solve(model, time_limit=5).solver == "highs"


def test_rows_of_ones_own_hold_where_no_solver_is_named() -> None:
    X, y = table(10, 2, 3)
    free = octsvm.fit("re_svm", X, y, c1=5, c2=1)
    assert free.counts["relabelled"] > 0
    model = octsvm.build("re_svm", X, y, c1=5, c2=1, upper_bound=1e3)
    model.none = pyo.Constraint(expr=sum(model.relabelling.xi.values()) == 0)
    kept = octsvm.solve(model)
    assert kept.counts["relabelled"] == 0
    assert kept.objective > free.objective


@pytest.mark.slow
def test_node_limit_can_be_repeated() -> None:
    X, y = table(40, 8, 1)
    first, second = (octsvm.fit("re_svm", X, y, work_limit=3, time_limit=300) for _ in range(2))
    assert (first.stop, first.nodes) == ("work_limit", 3)
    assert first.tree.to_json() == second.tree.to_json()
    assert first.bound == second.bound


@pytest.mark.slow
def test_bound_rises_and_time_limit_and_callback_hold() -> None:
    X, y = table(80, 10, 2)
    with at_most(3.0):
        short = octsvm.fit("re_svm", X, y, time_limit=1)
    assert short.stop == "time_limit"
    assert 0 < short.bound < short.objective
    bounds = [point.bound for point in short.trace]
    assert bounds == sorted(bounds)
    seen: list[octsvm.Progress] = []

    def watch(progress: octsvm.Progress) -> bool:
        seen.append(progress)
        return len(seen) >= 3

    stopped = octsvm.fit("re_svm", X, y, callback=watch, time_limit=60)
    assert stopped.stop == "interrupted"
    assert stopped.status == "feasible"
    assert math.isfinite(seen[-1].incumbent)


def test_work_in_an_engines_units_is_refused() -> None:
    X, y = table(8, 2)
    with pytest.raises(octsvm.InvalidParameter, match="branch_and_reduce has no such limit"):
        octsvm.fit("re_svm", X, y, work_limit={"work": 5}, solver=NAME)


def test_its_plan_and_its_name() -> None:
    X, y = table(8, 2)
    plan = octsvm.plan(octsvm.build("re_svm", X, y), solver=NAME)
    assert plan.native
    assert plan.slack == 0
    with pytest.raises(octsvm.UnknownSolver, match="branch_and_reduce"):
        octsvm.fit("re_svm", X, y, solver="branch_and_bound")


@pytest.mark.parametrize(("n", "p", "overlap", "halves"), [(40, 2, 0.4, True), (12, 8, 0.1, False)])
def test_of_few_features_the_better_way_ends_the_search(n: int, p: int, overlap: float, halves: bool) -> None:
    """Where classes overlap that is by halves of boxes of hyperplanes, where there are more of these, and few samples are wrong, by labels."""
    rng = np.random.default_rng(3)
    X = rng.random((n, p))
    sign = np.where(rng.random(n) < overlap, 1, -1) * np.where(X[:, 0] > 0.5, 1.0, -1.0)
    costs = ScoreCosts.of(X, sign, np.ones(n), 1.0, 1.0)
    first = Plane(costs.objective(np.zeros(p), 1.0), np.zeros(p), 1.0)
    reach = np.full(len(costs.X), 30.0)
    problem = ScoreProblem(costs, Intervals(-reach, reach))
    searches = [
        by(Reduction(costs, first, 1e-4, lambda: False, lambda: math.inf), problem.box, 0.0)
        for by in (BranchAndReduce, HyperplaneSearch)
    ]
    turns = Turns(searches, True, otherwise=lambda: searches[0])
    while not turns.step():
        pass
    assert turns.closed
    assert [search.closed for search in searches] == [not halves, halves]
