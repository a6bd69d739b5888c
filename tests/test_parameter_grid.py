"""fit_path: certified, never above the constant tree nor below the optimum, the same whatever is skipped."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from itertools import product
from typing import Any

import instances
import numpy as np
import oracles
import pytest
from instances import noisy

import octsvm
from octsvm import parameter_grid as paths
from octsvm.data import prepare
from octsvm.formulations.registry import formulation as find_formulation
from octsvm.heuristics.local_search import LocalSearch
from octsvm.result import OWN_SEARCH, Result

FORMULATIONS = instances.FORMULATIONS
# Share of the settings of tiny instances that must come out at the optimum of brute force.
REACHED = {"oct": 1.0, "oct_h": 0.6, "re_svm": 0.8, "octsvm": 0.6, "moctsvm": 0.6}
GRIDS: dict[str, list[dict[str, Any]]] = {
    "oct": [{"alpha": a} for a in (0.0, 0.5, 2.0, 10.0)],
    "oct_h": [{"alpha": a} for a in (0.0, 0.5, 2.0, 10.0)],
    "re_svm": [{"c1": a, "c2": b} for a in (0.1, 3.0, 30.0) for b in (0.1, 2.0, 200.0)],
    **{
        name: [{"c1": a, "c2": b, "c3": 0.1} for a in (0.1, 3.0, 30.0) for b in (0.1, 2.0, 200.0)]
        for name in ("octsvm", "moctsvm")
    },
}
DEPTHS = {"oct": 2, "oct_h": 1, "octsvm": 1, "moctsvm": 1}
SHARED = {name: {"depth": DEPTHS[name]} if name in DEPTHS else {} for name in GRIDS}


def run(name: str, X: Any, y: Any, settings: Any = None, **more: Any) -> dict[int, Result]:
    more = SHARED[name] | more if settings is None else more
    return dict(octsvm.fit_path(name, X, y, GRIDS[name] if settings is None else settings, **more))


def cost(name: str, tree: Any, X: Any, y: Any, params: Any, **more: Any) -> float:
    costs = {k: v for k, v in params.items() if k != "depth"}
    return float(octsvm.evaluate(name, tree, X, y, **costs, **more).objective)


def same(one: dict[int, Result], two: dict[int, Result]) -> bool:
    return all(one[k].tree.to_json() == two[k].tree.to_json() for k in one.keys() & two.keys())


@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.quick_cases("oct", "octsvm")
def test_every_result_is_certified_and_no_worse_than_the_constant_tree(name: str) -> None:
    X, y = noisy()
    y = octsvm.flip_labels(X[:, 0] > 0.5, 0.1) if name == "re_svm" else y
    weights = np.random.default_rng(1).choice([0.0, 1.0, 2.5], size=len(X), p=[0.1, 0.6, 0.3])
    form = find_formulation(name)
    for scale, w in ((True, None), (False, weights)):
        found = run(name, X, y, scale=scale, weights=w)
        assert list(found) == list(range(len(GRIDS[name])))
        for k, result in found.items():
            params = SHARED[name] | GRIDS[name][k]
            found_again = cost(name, result.tree, X, y, params, weights=w)
            assert found_again == pytest.approx(result.objective, rel=1e-9)
            data, checked = prepare(form, X, y, scale=scale, weights=w), form.Params.make(name, **params)
            constant = form.evaluate(form.constant_tree(data, checked), X, data.y, checked, data.weights)
            assert result.objective <= constant.objective
            assert (result.status == "fallback") == (not result.tree.splits.any())
            assert (result.bound, result.solver, result.n) == (0.0, OWN_SEARCH, len(X))
            assert all(result.params[key] == value for key, value in params.items())
        assert any(result.status == "feasible" for result in found.values())


@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.quick_cases("oct", "re_svm")
def test_tiny_grids_are_mostly_at_the_optimum_and_never_below(name: str) -> None:
    tried = reached = 0
    for instance in instances.tiny(name, 3, seed=53):
        other = {"alpha": 0.3} if "alpha" in instance.params else {"c2": 2 * instance.params["c2"]}
        settings = [instance.params, instance.params | other]
        for k, result in run(name, instance.X, instance.y, settings, scale=name == "oct").items():
            optimum = oracles.optimum(name, instance.X, instance.y, settings[k])
            assert result.objective >= optimum * (1 - 1e-6) - 1e-9
            tried += 1
            reached += result.objective <= optimum * (1 + 1e-4) + 1e-9
    assert reached >= REACHED[name] * tried, f"{reached} of {tried}"


@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.quick_cases("oct", "re_svm")
def test_what_is_skipped_changes_nothing(name: str) -> None:
    X, y = noisy(14)
    settings, shared = GRIDS[name][-4:], SHARED[name] | {"work_limit": 4}
    everything = run(name, X, y, settings, **shared)
    rng = np.random.default_rng(7)
    for _ in range(2):
        skip = set(rng.permutation(len(everything))[: len(everything) // 2 + 1].tolist())
        some = run(name, X, y, settings, skip=skip, **shared)
        assert list(some) == [k for k in everything if k not in skip]
        assert same(everything, some)
        assert all(some[k].objective == everything[k].objective for k in some)
    assert not run(name, X, y, settings, skip=range(len(everything)), **shared)


def trees_of_every_formulation() -> list[str]:
    X, y = noisy(14)
    few = {name: GRIDS[name][1:5:3] for name in FORMULATIONS}
    return [r.tree.to_json() for n in few for r in run(n, X, y, few[n], **SHARED[n], work_limit=3).values()]


@pytest.mark.slow
def test_another_process_finds_the_same() -> None:
    code = "import json, test_parameter_grid as t; print(json.dumps(t.trees_of_every_formulation()))"
    path = [entry for entry in sys.path if entry]
    printed = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(printed) == trees_of_every_formulation()


@pytest.mark.slow
def test_the_seed_and_the_work_limit_count() -> None:
    X, y = noisy(24)
    for name in ("oct_h", "octsvm"):
        ours, numpys = {"seed": 3, "work_limit": 2}, {"seed": np.int64(3), "work_limit": np.int64(2)}
        assert same(run(name, X, y, **ours), run(name, X, y, **numpys))
    little, more = run("oct_h", X, y, work_limit=1), run("oct_h", X, y, work_limit=200)
    assert sum(r.objective for r in more.values()) < sum(r.objective for r in little.values())


@pytest.mark.slow
def test_depths_norms_and_boundaries_in_one_grid() -> None:
    X, y = noisy(14)
    settings = [
        {"depth": depth, "norm": norm, "variant": variant, "c2": 2.0}
        for depth, norm, variant in product((0, 1), ("l2", "l1"), ("compact", "paper"))
    ]
    settings.append({"depth": 1, "norm": "l1", "variant": "compact", "c2": 20.0})
    shared: dict[str, Any] = {"c1": 3.0, "c3": 0.1, "work_limit": 3}
    found = run("octsvm", X, y, settings, **shared)
    assert list(found) == list(range(len(settings)))
    for k, result in found.items():
        assert result.tree.depth == settings[k]["depth"]
        again = cost("octsvm", result.tree, X, y, settings[k] | {"c1": 3.0, "c3": 0.1})
        assert again == pytest.approx(result.objective, rel=1e-9)
    alone = [
        k for k, s in enumerate(settings) if (s["depth"], s["norm"], s["variant"]) == (1, "l1", "compact")
    ]
    apart = run("octsvm", X, y, [settings[k] for k in alone], **shared)
    assert [r.tree.to_json() for r in apart.values()] == [found[k].tree.to_json() for k in alone]


@pytest.mark.parametrize("name", ["oct", "oct_h"])
def test_depths_and_leaf_sizes_in_one_grid(name: str) -> None:
    X, y = noisy(40)
    settings = [{"depth": depth, "n_min": n_min} for depth in (2, 1) for n_min in (12, 1, 4)]
    found = run(name, X, y, settings, alpha=0.1)
    for k, result in found.items():
        assert result.tree.depth == settings[k]["depth"]
        model = octsvm.build(name, X, y, alpha=0.1, **settings[k])
        octsvm.embed(model, result.tree)  # raises where the model does not admit it
    # Of trees of all settings the cheapest that fits is taken: less freedom is never cheaper.
    assert found[1].objective <= found[2].objective <= found[0].objective
    assert found[1].objective <= found[4].objective


@pytest.mark.slow
def test_trees_that_give_up_no_label_serve_larger_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy(16)
    searched = []
    plain = LocalSearch.optimise_best

    def look(self: Any) -> bool:
        searched.append(self.builder.c2)
        return plain(self)

    monkeypatch.setattr(LocalSearch, "optimise_best", look)
    prices = [1.0, 50.0, 5e3, 5e5]
    run("octsvm", X, y, [{"c2": prices[0]}], depth=2, c1=1.0, c3=0.01, work_limit=1)
    assert searched
    found = run("octsvm", X, y, [{"c2": c2} for c2 in prices], depth=2, c1=1.0, c3=0.01)
    kept = [k for k in found if not found[k].counts["relabelled"]]
    assert 1 <= len(kept) < len(prices)
    assert kept == list(range(kept[0], len(prices)))
    objectives = [found[k].objective for k in kept]
    assert objectives == pytest.approx([objectives[0]] * len(kept), rel=1e-12)
    for k in found:
        params = {"depth": 2, "c1": 1.0, "c2": prices[k], "c3": 0.01}
        assert cost("octsvm", found[k].tree, X, y, params) == pytest.approx(found[k].objective, rel=1e-9)
    assert len({found[k].tree.to_json() for k in kept}) == 1


@pytest.mark.slow
def test_long_paths_along_the_price_need_no_deep_stack() -> None:
    X, y = noisy(12, 2)
    settings = [{"c2": 1.0 + k} for k in range(1500)]
    found = run("re_svm", X, y, settings, c1=3.0, skip=range(1499))
    assert list(found) == [1499]


@pytest.mark.slow
def test_grids_away_from_the_diagonal_have_a_pool_too() -> None:
    X, y = noisy()
    settings = [{"c2": 50.0 * (k + 1)} for k in range(25)]
    found = run("octsvm", X, y, settings, depth=1, c1=1.0, c3=1.0)
    assert all(result.counts["splits"] for result in found.values())


def test_equal_settings_have_equal_trees_and_numpy_numbers_are_numbers() -> None:
    X, y = noisy(20)
    setting = {"c1": np.float64(3.0), "c2": np.float32(2.0)}
    found = run("re_svm", X, y, [setting, {"c1": 3.0, "c2": 2.0}, setting])
    assert len({r.tree.to_json() for r in found.values()}) == 1


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"settings": []}, "settings is empty"),
        ({"settings": {"c1": 1.0}}, "list of mappings"),
        ({"settings": "c1"}, "list of mappings"),
        ({"settings": 3}, "list of mappings"),
        ({"settings": [{"c1": 1.0}, 2.0]}, r"settings\[1\] is 2.0"),
        ({"settings": [{1: 2.0}]}, r"settings\[0\] is"),
        ({"settings": [{"c1": 1.0}, {"c2": 1.0}], "c2": 2.0}, r"'c2' is in settings\[1\].* name it once"),
        ({"settings": [{"c5": 1.0}]}, "'c5' is not a parameter of 'octsvm'. Did you mean 'c"),
        ({"settings": [{"formulation": "oct"}]}, "'formulation' is not a parameter"),
        ({"settings": [{"c1": -1.0}]}, "c1=-1.0 is not allowed"),
        ({"dept": 2}, "Did you mean 'depth'"),
        ({"gap": 0.1}, "'gap' is not a parameter"),
        ({"work_limit": 0}, "work_limit=0 should be a whole number, 1 or more"),
        ({"work_limit": 2.5}, "work_limit=2.5"),
        ({"work_limit": "many"}, "work_limit='many'"),
        ({"work_limit": True}, "work_limit=True"),
        ({"seed": -1}, "seed=-1 should be a whole number, 0 or more"),
        ({"skip": 3}, "skip=3 should be a collection"),
    ],
)
def test_wrong_arguments_teach_when_called(wrong: dict[str, Any], match: str) -> None:
    X, y = noisy(10)
    with pytest.raises(octsvm.InvalidParameter, match=match):
        octsvm.fit_path("octsvm", X, y, **({"settings": [{"c1": 1.0}]} | wrong))


def test_wrong_data_is_refused_when_called() -> None:
    X, y = noisy(10)
    with pytest.raises(octsvm.InvalidData, match="10 rows and y has 9"):
        octsvm.fit_path("octsvm", X, y[:9], [{}])
    with pytest.raises(octsvm.InvalidData, match="two classes"):
        octsvm.fit_path("re_svm", X, np.arange(10) % 3, [{}])
    with pytest.raises(octsvm.UnknownFormulation):
        octsvm.fit_path("octsv", X, y, [{}])
    with pytest.raises(octsvm.InvalidParameter, match="n_min=11"):
        octsvm.fit_path("oct", X, y, [{"n_min": 2}, {"n_min": 11}])


@pytest.mark.parametrize("name", FORMULATIONS)
def test_one_class_is_predicted_everywhere(name: str) -> None:
    X, _ = noisy(10)
    with pytest.warns(UserWarning, match="one class only") as seen:
        path = octsvm.fit_path(name, X, ["a"] * 10, GRIDS[name], **SHARED[name], skip={0})
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dict(path)
    assert list(found) == list(range(1, len(GRIDS[name])))
    assert {r.status for r in found.values()} == {"optimal"}
    assert set(found[1].tree.predict(X)) == {"a"}


@pytest.mark.slow
def test_results_come_one_by_one() -> None:
    X, y = noisy(16)
    path = octsvm.fit_path("octsvm", X, y, GRIDS["octsvm"][:3], depth=1, work_limit=2)
    assert iter(path) is path
    first, _ = next(path)
    assert first == 0
    assert [k for k, _ in path] == [1, 2]


def test_an_interrupt_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy(12)
    monkeypatch.setattr(paths, "find", lambda *_, **__: (None, True))
    with pytest.raises(KeyboardInterrupt):
        next(octsvm.fit_path("oct", X, y, [{}]))
