"""The start heuristic of MOCTSVM: its trees are points of the model, near the optimum, and never worse when deeper."""

from __future__ import annotations

import instances
import numpy as np
import oracles
import pytest

import octsvm
from octsvm import heuristics
from octsvm.data import prepare
from octsvm.formulations.registry import formulation
from octsvm.heuristics.budget import Budget
from octsvm.heuristics.side_builder import SideBuilder
from octsvm.heuristics.side_tree import SideSearch, as_tree
from octsvm.heuristics.tree_builder import Hyperplanes
from octsvm.options import SolveOptions
from octsvm.solving import dispatch

FORM = formulation("moctsvm")


def three_classes(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = (X[:, 0] + 0.1 * rng.normal(size=n) > 0.5).astype(int) + (X[:, 1] > 0.6)
    y[:3] = [0, 1, 2]
    return X, y


def found(X: np.ndarray, y: np.ndarray, steps: int = 60, seed: int = 0, **params: object) -> float:
    data, checked = prepare(FORM, X, y), FORM.Params(**params)
    tree, _ = heuristics.find(FORM, data, checked, seconds=300, steps=steps, seed=seed)
    tree = FORM.constant_tree(data, checked) if tree is None else tree
    return FORM.evaluate(tree, data.X_original, data.y, checked, data.weights).objective


@pytest.mark.slow
def test_tiny_instances_are_solved_nearly_always() -> None:
    optimal = 0
    chosen = instances.tiny("moctsvm", 7, seed=5)  # every depth
    for instance in chosen:
        optimum = oracles.optimum("moctsvm", instance.X, instance.y, instance.params)
        data = prepare(FORM, instance.X, instance.y, scale=False)
        checked = FORM.Params(**instance.params)
        tree, _ = heuristics.find(FORM, data, checked, seconds=60, steps=60)
        tree = FORM.constant_tree(data, checked) if tree is None else tree
        objective = FORM.evaluate(tree, data.X_original, data.y, checked, data.weights).objective
        assert objective >= optimum * (1 - 2e-6) - 1e-9
        optimal += objective <= optimum * (1 + 1e-4) + 1e-9
    assert optimal >= len(chosen) - 1


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.slow
def test_costs_are_those_of_the_formulation(norm: str) -> None:
    X, y = three_classes(40)
    data = prepare(FORM, X, y)
    params = FORM.Params(depth=3, c1=1.0, c2=8.0, c3=0.2, norm=norm)
    trees = 0
    for planes in SideSearch(data, params, Budget(300, 40), 0).run():
        tree = as_tree(planes, data, 3)
        FORM.require(tree, data, params)
        cost = FORM.evaluate(tree, data.X_original, data.y, params, data.weights).objective
        assert planes.cost == pytest.approx(cost, rel=1e-9)
        trees += 1
    assert trees


@pytest.mark.slow
def test_a_deeper_tree_starts_from_the_shallower_ones() -> None:
    X, y = three_classes(40)
    costs = [found(X, y, depth=depth, c1=1.0, c2=10.0, c3=0.3) for depth in (1, 2, 3)]
    assert costs[0] * (1 + 1e-7) >= costs[1]
    assert costs[1] * (1 + 1e-7) >= costs[2]
    assert costs[2] < costs[0] * 0.9


def test_splits_with_an_empty_side_are_taken_out() -> None:
    X, y = three_classes(12)
    data = prepare(FORM, X, y)
    builder = SideBuilder(data, FORM.Params(depth=3), Budget(10), 0)
    planes = builder.unsplit()
    along = np.array([4.0, 0.0, 0.0])
    for t, omega0 in ((1, 9.0), (3, -2.0), (7, -9.0)):  # only the middle one has rows on both sides
        planes.omega[t - 1], planes.omega0[t - 1], planes.split[t - 1] = along, omega0, True
    fresh = builder.without_idle_splits(Hyperplanes(planes.omega, planes.omega0, planes.split))
    assert np.flatnonzero(fresh.split).tolist() == [0]
    assert fresh.omega0[0] == -2.0
    sides = [builder.route(p)[0][:, -1] for p in (planes, fresh)]
    assert len({tuple(pair) for pair in zip(*map(np.ndarray.tolist, sides), strict=True)}) == 2


@pytest.mark.slow
def test_equal_steps_give_equal_trees() -> None:
    X, y = three_classes(40, seed=2)
    params = {"depth": 2, "c1": 1.0, "c2": 5.0, "c3": 0.2}
    assert found(X, y, seed=3, **params) == found(X, y, seed=3, **params)


@pytest.mark.slow
def test_large_tables_go_over_a_sample() -> None:
    X, y = three_classes(3200)
    result = octsvm.fit("moctsvm", X, y, strategy="heuristic", work_limit=5, depth=2, c1=1.0, c2=10.0, c3=1.0)
    assert result.status == "feasible"
    assert (result.tree.predict(X) == y).mean() > 0.85


@pytest.mark.slow
def test_neighbourhoods_of_the_model_make_no_tree_worse() -> None:
    X, y = three_classes(16, seed=4)
    params = {"depth": 2, "c1": 1.0, "c2": 10.0, "c3": 0.3}
    ((_, start),) = octsvm.fit_path("moctsvm", X, y, [params], work_limit=1)
    model = octsvm.build("moctsvm", X, y, start=start.tree, **params)
    options = SolveOptions(start=start.tree, work_limit={"rounds": 3})
    result = dispatch.solve_with(model, options, neighbourhoods=True)
    assert result.status == "feasible"
    assert result.rounds > 0
    assert result.objective <= start.objective * (1 + 1e-9)  # rounding: the same tree, embedded anew


def test_a_path_over_a_grid() -> None:
    X, y = three_classes(20, seed=1)
    grid = [{"c1": 1.0, "c2": c2} for c2 in (1.0, 5.0, 20.0)]
    results = list(octsvm.fit_path("moctsvm", X, y, grid, depth=2, c3=0.2, work_limit=15))
    assert len(results) == 3
    wrong = [result.counts["misclassified"] for _, result in sorted(results, key=lambda one: one[0])]
    assert wrong == sorted(wrong, reverse=True)
