"""Local search over assignments: optimising never costs, moves are taken where they are better, and it all repeats."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import octsvm
from octsvm.data import prepare
from octsvm.formulations.registry import formulation as find_formulation
from octsvm.heuristics import Budget, local_search
from octsvm.heuristics.local_search import LocalSearch
from octsvm.heuristics.margin_tree import TreeSearch, as_margin_tree
from octsvm.heuristics.tree_builder import Hyperplanes

TABLES = {"noisy": (28, 3), "tenths": (30, 1), "twice": (24, 3)}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "l2": ("octsvm", "noisy", {"depth": 2, "c1": 3.0, "c2": 2.0, "c3": 0.1}),
    "l1": ("octsvm", "noisy", {"depth": 2, "c1": 3.0, "c2": 2.0, "c3": 0.1, "norm": "l1"}),
    "depth 0": ("octsvm", "noisy", {"depth": 0, "c1": 10.0, "c2": 5.0, "c3": 0.1}),
    "free relabelling": ("octsvm", "noisy", {"depth": 1, "c1": 3.0, "c2": 0.0, "c3": 0.1}),
    "tiny costs": ("octsvm", "noisy", {"depth": 2, "c1": 1e-5, "c2": 1e-5, "c3": 1e-7}),
    "large costs": ("octsvm", "tenths", {"depth": 2, "c1": 1e5, "c2": 1e5, "c3": 1.0}),
    "duplicates": ("octsvm", "twice", {"depth": 1, "c1": 3.0, "c2": 4.0, "c3": 0.1}),
    "as printed": ("octsvm", "noisy", {"depth": 1, "c1": 3.0, "c2": 4.0, "c3": 0.1, "variant": "paper"}),
    "re_svm": ("re_svm", "noisy", {"c1": 3.0, "c2": 2.0}),
    "re_svm l1": ("re_svm", "tenths", {"c1": 30.0, "c2": 20.0, "norm": "l1"}),
}


def builder_of(case: str, seed: int = 0, **changes: Any) -> TreeSearch:
    name, table, params = CASES[case]
    n, digits = TABLES[table]
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, 3)), digits)
    y = octsvm.flip_labels((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5), 0.1, seed=seed)
    if table == "twice":
        X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
        y[1] = not y[1]  # equal rows of different labels as well
    form = find_formulation(name)
    data = prepare(form, X, y, weights=rng.choice([0.0, 1.0, 2.0], size=len(X), p=[0.1, 0.7, 0.2]))
    checked = form.Params.make(name, **(params | changes))
    return TreeSearch(data.X, data.sign, data.weights.copy(), checked, Budget(120), seed)


def searched(case: str, seed: int = 0, steps: int = 60, **changes: Any) -> LocalSearch:
    """The search of a builder after some steps, its best tree optimised; all weights are 1."""
    builder = builder_of(case, seed, **changes)
    builder.weights[:] = 1.0
    builder.budget = Budget(120, steps)
    for _ in builder.run():
        pass
    builder.budget = Budget(120)
    search = LocalSearch(builder)
    search.optimise_best()
    return search


def trees(case: str, seed: int, count: int = 4) -> list[Hyperplanes]:
    """A few trees of the case that split; grown with c2 = 2 where c2 = 0 in the case."""
    builder = builder_of(case, seed, **({"c2": 2.0} if CASES[case][2]["c2"] == 0 else {}))
    builder.budget = Budget(120, 60)
    found = [planes.copy() for planes in islice(builder.run(), count)]
    if not found:  # a split does not pay here: one is looked at all the same
        planes = builder.unsplit()
        planes.omega[0], planes.split[0] = np.random.default_rng(seed).normal(size=builder.X.shape[1]), True
        planes.omega0[0] = -float(np.median(builder.X @ planes.omega[0]))
        builder.clear_boundaries(planes)
        found = [planes]
    return [planes for planes in found if planes.split.any()]


@pytest.mark.parametrize("case", CASES)
def test_optimising_never_costs_and_the_tree_routes_as_assigned(case: str) -> None:
    better = 0
    for seed in range(3):
        builder = builder_of(case, seed)
        for planes in trees(case, seed):
            before = builder.value(planes)
            solved = LocalSearch(builder).optimise(planes)
            assert solved is not None
            assert solved.cost <= before * (1 + 1e-6) + 1e-12
            assert solved.cost == pytest.approx(builder.value(solved.planes), rel=1e-12)
            node, score = builder.route(solved.planes)
            assert (node == solved.assignment.node).all()
            assert solved.planes.split.tolist() == planes.split.tolist()
            if builder.mu:
                assert not ((score[:, :-1] < 0) & (score[:, :-1] > -builder.mu)).any()
            # Once more finds nothing: hyperplanes and labels are at rest.
            again = LocalSearch(builder).optimise(solved.planes)
            assert again is not None
            assert again.cost == pytest.approx(solved.cost, rel=1e-6)
            better += solved.cost < before * (1 - 1e-6)
    assert better


@pytest.mark.parametrize("case", CASES)
def test_moves_keep_the_best_tree_or_take_a_better_one(case: str) -> None:
    builder = builder_of(case)
    builder.best = trees(case, 0)[0]
    builder.best.cost = builder.value(builder.best)
    search = LocalSearch(builder)
    for k in range(10):
        before = builder.best
        done = search.try_compound_move() if k % 3 == 2 else search.try_moves()
        if done:
            assert builder.best.cost < before.cost
        else:
            assert builder.best is before
        assert builder.best.cost == pytest.approx(builder.value(builder.best), rel=1e-12)


def test_the_same_seed_searches_alike() -> None:
    ends = []
    for _ in range(2):
        builder = builder_of("l2")
        builder.best = trees("l2", 0)[0]
        search = LocalSearch(builder)
        done = [search.try_compound_move() if k % 2 else search.try_moves() for k in range(12)]
        ends.append((done, builder.best.omega.tolist(), builder.best.omega0.tolist()))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("c2", [1.0, 10.0])
def test_a_row_that_crosses_may_open_a_split_and_the_estimate_has_its_cost(c2: float) -> None:
    opened = 0
    for seed in range(8):
        search = searched("l2", seed, 20, c1=0.3, c2=c2, c3=0.02)
        builder, at = search.builder, search.at
        if at is None:
            continue
        for assignment in search._moves(at):
            more = np.flatnonzero(assignment.split & ~at.assignment.split) + 1
            if not len(more):
                continue
            (t,) = more.tolist()
            opened += 1
            assert t > builder.B
            rows = assignment.node[:, -1] == t
            assert (assignment.label[rows, -1] == builder.sign[rows]).all()
            assert set(builder.sign[rows]) == {-1.0, 1.0}
            assert at.assignment.split[t // 2 - 1]
            found = search.solve(assignment, at.planes)
            value = search.estimates(at, assignment, np.inf)
            if found is not None:
                assert value <= found.cost * (1 + local_search.ESTIMATE_ERROR)
                assert found.planes.split[t - 1]
    assert opened > 5


def test_a_used_up_budget_optimises_nothing() -> None:
    builder = builder_of("l2")
    builder.best = trees("l2", 0)[0]
    builder.best.cost = builder.value(builder.best)
    builder.budget = Budget(60, 0)
    search = LocalSearch(builder)
    before = builder.best
    assert not search.optimise_best()
    assert not search.try_moves()
    assert not search.try_compound_move()
    assert builder.best is before


def test_without_a_split_nothing_is_searched() -> None:
    builder = builder_of("l2")
    builder.best = builder.unsplit()
    builder.best.cost = builder.value(builder.best)
    search = LocalSearch(builder)
    assert not search.optimise_best()
    assert not search.try_moves()
    assert not search.try_compound_move()


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_the_model_with_these_integers_fixed_has_the_same_optimum(norm: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.random((14, 2))
    y = octsvm.flip_labels((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5), 0.1)
    params = {"depth": 1, "c1": 3.0, "c2": 4.0, "c3": 0.1, "norm": norm}
    form = find_formulation("octsvm")
    data, checked = prepare(form, X, y), form.Params.make("octsvm", **params)
    builder = TreeSearch(data.X, data.sign, data.weights, checked, Budget(60, 40), 0)
    first = next(planes.copy() for planes in builder.run() if planes.split[0])
    builder.budget = Budget(60)
    solved = LocalSearch(builder).optimise(first)
    assert solved is not None
    tree = as_margin_tree(solved.planes, data, checked)
    model = octsvm.build("octsvm", X, y, start=as_margin_tree(first, data, checked), **params)
    octsvm.embed(model, tree)
    for variable in model.component_data_objects(pyo.Var):
        if not variable.is_continuous():
            variable.fix(round(variable.value))
    result = octsvm.solve(model, gap=1e-6, time_limit=60)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(solved.cost, rel=1e-5)
