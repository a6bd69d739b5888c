"""strategy="heuristic" and its parts: never worse, never below the optimum, repeatable, and the model stays what it is."""

from __future__ import annotations

from typing import Any

import instances
import numpy as np
import oracles
import pyomo.environ as pyo
import pytest
from instances import noisy
from waiting import at_most

import octsvm
from octsvm.data import prepare
from octsvm.formulations.registry import formulation as find_formulation
from octsvm.heuristics import Budget, linear_svm, margin_tree
from octsvm.options import SolveOptions
from octsvm.result import STOPS
from octsvm.solving import certificate as certify
from octsvm.solving import dispatch, strategies
from octsvm.solving import large_neighbourhood as neighbourhoods

# Share of the tiny instances on which the heuristic must reach the optimum of brute force.
REACHED = {"oct": 1.0, "oct_h": 0.6, "re_svm": 0.9, "octsvm": 0.8, "moctsvm": 0.8}
FIXED = {"work_limit": {"nodes": 400, "rounds": 12}, "time_limit": 120}
FEW = FIXED | {"work_limit": {"nodes": 40, "rounds": 2}}


@pytest.mark.parametrize("formulation", instances.FORMULATIONS)
@pytest.mark.quick_cases("oct")
def test_it_reaches_the_optimum_of_most_tiny_instances_and_is_never_below(formulation: str) -> None:
    tried = reached = 0
    for instance in instances.tiny(formulation, 3, seed=41):
        result = octsvm.fit(
            formulation,
            instance.X,
            instance.y,
            scale=formulation == "oct",
            strategy="heuristic",
            **FIXED,
            **instance.params,
        )
        optimum = oracles.optimum(formulation, instance.X, instance.y, instance.params)
        assert result.objective >= optimum * (1 - 1e-6) - 1e-9
        assert result.bound <= optimum + 1e-9
        assert result.stop in STOPS
        tried += 1
        reached += result.objective <= optimum * (1 + 1e-4) + 1e-9
    assert reached >= REACHED[formulation] * tried, f"{reached} of {tried}"


@pytest.mark.parametrize("formulation", instances.FORMULATIONS)
@pytest.mark.slow
def test_it_is_never_worse_than_the_constant_tree_or_the_start(formulation: str) -> None:
    X, y = noisy(14)
    params = {"alpha": 0.5} if formulation in ("oct", "oct_h") else {"c1": 3.0, "c2": 2.0}
    params |= {} if formulation == "re_svm" else {"depth": 1}
    form = find_formulation(formulation)
    data, checked = prepare(form, X, y), form.Params.make(formulation, **params)
    constant = form.constant_tree(data, checked)
    cost = form.evaluate(constant, data.X_original, data.y, checked, data.weights).objective
    first = octsvm.fit(formulation, X, y, strategy="heuristic", **FEW, **params)
    assert first.objective <= cost
    again = octsvm.fit(
        formulation, X, y, strategy="heuristic", start=first.tree, seed=1, work_limit={"rounds": 1}, **params
    )
    assert again.objective <= first.objective * (1 + 1e-9)


@pytest.mark.parametrize("formulation", instances.FORMULATIONS)
@pytest.mark.quick_cases("oct")
def test_the_same_seed_and_work_limit_give_the_same_tree(formulation: str) -> None:
    X, y = noisy(16)
    params = {"c1": 3.0, "c2": 2.0} if formulation in ("re_svm", "octsvm") else {}
    params |= {} if formulation == "re_svm" else {"depth": 1}
    one, two = (
        octsvm.fit(formulation, X, y, strategy="heuristic", seed=3, **FEW, **params) for _ in range(2)
    )
    assert one.tree.to_json() == two.tree.to_json()
    assert (one.objective, one.nodes, one.rounds) == (two.objective, two.nodes, two.rounds)
    assert one.rounds <= 2


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("formulation", ["re_svm", "octsvm"])
@pytest.mark.quick_cases("re_svm-l1")
def test_norms_and_weights_are_those_of_the_objective(formulation: str, norm: str) -> None:
    X, y = noisy()
    weights = np.random.default_rng(1).random(len(X)) + 0.2
    weights[:3] = 0.0
    params: dict[str, Any] = {"c1": 3.0, "c2": 2.0, "norm": norm}
    params |= {} if formulation == "re_svm" else {"depth": 1, "c3": 0.1}
    result = octsvm.fit(formulation, X, y, weights=weights, strategy="heuristic", **FEW, **params)
    again = octsvm.evaluate(
        formulation, result.tree, X, y, weights=weights, **{k: v for k, v in params.items() if k != "depth"}
    )
    assert again.objective == pytest.approx(result.objective, rel=1e-9)
    model = octsvm.build(formulation, X, y, weights=weights, start=result.tree, **params)
    octsvm.embed(model, result.tree)


@pytest.mark.slow
def test_duplicated_rows_cost_as_rows_of_weight_two() -> None:
    X, y = noisy(20)
    params: dict[str, Any] = {"depth": 1, "c1": 3.0, "c2": 2.0, "c3": 0.1}
    tree = octsvm.fit("octsvm", X, y, weights=np.full(20, 2.0), strategy="heuristic", **FEW, **params).tree
    costs = {k: v for k, v in params.items() if k != "depth"}
    one = octsvm.evaluate("octsvm", tree, X, y, weights=np.full(20, 2.0), **costs)
    two = octsvm.evaluate("octsvm", tree, np.tile(X, (2, 1)), np.tile(y, 2), **costs)
    assert one.objective == pytest.approx(two.objective)


@pytest.mark.slow
def test_neighbourhoods_leave_the_model_as_it_was() -> None:
    X, y = noisy(20)
    model = octsvm.build("octsvm", X, y, depth=1, c1=3.0, c2=2.0, c3=0.1)

    def picture() -> list[Any]:
        rows = [
            (c.name, c.active, str(c.expr)) for c in model.component_data_objects(pyo.Constraint, active=None)
        ]
        return rows + [
            (v.name, v.bounds, v.fixed, v.domain.name) for v in model.component_data_objects(pyo.Var)
        ]

    before = picture()
    options = SolveOptions(work_limit={"rounds": 6})
    result = dispatch.solve_with(model, options, neighbourhoods=True)
    assert picture() == before
    assert result.rounds == 6
    assert result.bound == 0
    # From the constant tree, with nothing but neighbourhoods: they find a tree that splits.
    assert result.tree.splits.any()
    assert certify.is_own(model)


@pytest.mark.slow
def test_an_interrupt_returns_the_incumbent(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy(20)
    calls = []
    plain = neighbourhoods.Search.solve

    def pressed(self: neighbourhoods.Search, sub: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(self, sub)

    monkeypatch.setattr(neighbourhoods.Search, "solve", pressed)
    limit = {"rounds": 5}
    result = octsvm.fit("octsvm", X, y, depth=1, c1=3.0, c2=2.0, strategy="heuristic", work_limit=limit)
    assert result.stop == "interrupted"
    assert result.status == "feasible"
    assert result.objective == pytest.approx(
        octsvm.evaluate("octsvm", result.tree, X, y, c1=3.0, c2=2.0).objective
    )


@pytest.mark.slow
def test_a_callback_stops_it_and_sees_the_incumbent_fall() -> None:
    X, y = noisy()
    seen: list[float] = []

    def stop(progress: octsvm.Progress) -> bool:
        seen.append(progress.incumbent)
        return len(seen) >= 3

    result = octsvm.fit(
        "octsvm", X, y, depth=1, c1=3.0, c2=2.0, strategy="heuristic", time_limit=60, callback=stop
    )
    assert result.stop == "interrupted"
    assert seen == sorted(seen, reverse=True)
    assert result.objective <= seen[-1] * (1 + 1e-9)


@pytest.mark.parametrize("formulation", ["oct", "octsvm"])
@pytest.mark.slow
def test_large_tables_get_a_checked_tree_without_a_model(
    formulation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a model was built")

    monkeypatch.setattr(strategies, "build_from", refuse)
    rng = np.random.default_rng(0)
    X = rng.random(
        (strategies.LARGEST_SEARCHED // 3 + 1, 4)
    )  # rows times nodes, of which these trees have three
    y = (X[:, 0] + X[:, 1] > 1).astype(int)
    params = {"depth": 1, "c1": 1.0, "c2": 1.0, "c3": 1.0} if formulation == "octsvm" else {"depth": 2}
    one, two = (
        octsvm.fit(formulation, X, y, strategy="heuristic", work_limit=10, time_limit=300, **params)
        for _ in range(2)
    )
    assert one.status == "feasible"
    assert one.bound == 0
    assert "no model was built" in one.notes[0]
    assert one.tree.to_json() == two.tree.to_json()
    costs = {k: v for k, v in params.items() if k != "depth"}
    assert octsvm.evaluate(formulation, one.tree, X, y, **costs).objective == pytest.approx(one.objective)
    assert np.mean(one.tree.predict(X) == y) > 0.85


def test_where_a_constant_tree_is_best_nothing_is_searched() -> None:
    X, y = noisy(60)
    with at_most(1.0):
        result = octsvm.fit(
            "octsvm", X, y, depth=2, c1=1e-5, c2=1e-5, c3=1.0, strategy="heuristic", time_limit=1
        )
    assert result.status == "fallback"
    assert not result.tree.splits.any()


def test_the_search_works_on_the_objective_that_is_certified() -> None:
    X, y = noisy(40)
    for name, more in (("octsvm", {"depth": 2, "c3": 0.1}), ("re_svm", {})):
        for norm in ("l2", "l1"):
            form = find_formulation(name)
            params = form.Params.make(name, c1=3.0, c2=2.0, norm=norm, **more)
            data = prepare(form, X, y)
            builder = margin_tree.TreeSearch(data.X, data.sign, data.weights, params, Budget(60, 60), 0)
            for planes in builder.run():
                tree = octsvm.formulations.trees.MarginTree(
                    builder.depth,
                    data.classes,
                    data.feature_names,
                    data.scaling,
                    planes.omega,
                    planes.omega0,
                    planes.split,
                )
                known = form.evaluate(tree, data.X_original, data.y, params, data.weights)
                assert known.objective == pytest.approx(planes.cost, rel=1e-9)


def test_the_best_intercept_is_found_exactly() -> None:
    rng = np.random.default_rng(5)
    X, y = noisy(15)
    form = find_formulation("octsvm")
    for c1, c2 in ((1.0, 0.5), (1.0, 3.0), (2.0, 4.0)):
        data = prepare(form, X, y)
        params = form.Params.make("octsvm", c1=c1, c2=c2)
        builder = margin_tree.TreeSearch(data.X, data.sign, data.weights, params, Budget(60), 0)
        w = rng.random(15)
        along = rng.normal(size=(2, 15))
        lengths = np.array([0.5, 3.0])
        place, cost = builder.intercepts(along, data.sign, w, lengths)
        for k in range(2):
            for g in range(2):
                s = along[k] * lengths[g]
                assert w @ builder.loss(data.sign * (s + place[k, g])) == pytest.approx(cost[k, g])
                grid = np.linspace(-12, 12, 4001)
                values = builder.loss(data.sign * (s + grid[:, None])) @ w
                assert cost[k, g] <= values.min() + 1e-9


def test_the_binding_gives_the_linear_svm_of_the_public_class(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy(40)
    sign, weights = np.where(np.asarray(y), 1.0, -1.0), np.random.default_rng(0).random(40) + 0.1
    fast = linear_svm.fit_linear_svm(X, sign, weights, 5.0, careful=True)
    monkeypatch.setattr(linear_svm, "binding", lambda: None)
    slow = linear_svm.fit_linear_svm(X, sign, weights, 5.0, careful=True)
    assert fast[0] == pytest.approx(slow[0], rel=1e-2, abs=1e-3)
    assert fast[1] == pytest.approx(slow[1], rel=1e-2, abs=1e-3)


def test_an_engine_without_a_node_limit_is_not_asked_for_one() -> None:
    X, y = noisy(12)
    with pytest.raises(octsvm.InvalidParameter, match="no such limit"):
        octsvm.fit(
            "oct", X, y, depth=1, strategy="heuristic", solver="highs", work_limit={"work": 3.0}, time_limit=5
        )
