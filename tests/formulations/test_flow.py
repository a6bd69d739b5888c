"""The flow variant of OCT: its bounds on subtrees, its trees, its optima, against enumeration and other variants."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pyomo.environ as pyo
import pytest

import octsvm
from octsvm.data import prepare
from octsvm.formulations import oct
from octsvm.formulations.bounds import subtrees
from octsvm.formulations.registry import formulation as find_formulation
from octsvm.formulations.trees import AxisTree

LIMITS = (0, 200, 3000, 10**9)


def tables(count: int, seed: int, most: int = 11) -> Any:
    """Small tables with ties, equal rows of one class or several, weights (zero too), two or three classes."""
    rng = np.random.default_rng(seed)
    for index in range(count):
        n, p, K = int(rng.integers(4, most)), int(rng.integers(1, 4)), 2 + index % 2
        X = rng.integers(0, int(rng.integers(2, 8)), (n, p)).astype(float)
        if index % 3 == 0:
            X[:, 0] = rng.random(n)
        if index % 4 == 0:
            X[1] = X[0]
        y = rng.integers(0, K, n)
        y[:K] = np.arange(K)
        weights = [np.ones(n), rng.integers(0, 4, n).astype(float), rng.random(n) * 3][index % 3]
        weights[0] = max(weights[0], 0.5)
        alpha = float(rng.choice([0.0, 0.1, 0.4, 1.0]))
        yield X, y, weights, {"depth": 1 + index % 3, "alpha": alpha, "n_min": int(rng.choice([1, 1, 2, 3]))}


def best(X: np.ndarray, y: np.ndarray, weights: np.ndarray, depth: int, alpha: float, n_min: int) -> float:
    """The cheapest subtree by enumeration; infinite where no leaf may be so small."""
    if len(y) < n_min:
        return np.inf
    return oracles.oct_optimum(X, y, depth=depth, alpha=alpha, n_min=n_min, weights=weights)


def searched(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray, params: dict[str, Any], limit: float, stepwise: bool
) -> subtrees.RootBounds:
    position = np.column_stack([np.unique(c, return_inverse=True)[1] for c in X.T])
    groups = subtrees.Groups.of(position, y, weights, int(y.max()) + 1)
    search = subtrees.Search(params["alpha"], params["n_min"], limit)
    return search.root(subtrees.Table.whole(groups, 1.0), params["depth"], stepwise=stepwise)


@pytest.mark.parametrize("stepwise", [False, True])
@pytest.mark.slow
def test_no_side_of_any_root_split_costs_less_than_its_bound(stepwise: bool) -> None:
    cuts = tight = 0
    for X, y, weights, params in tables(30, seed=1):
        for limit in LIMITS:
            found = searched(X, y, weights, params, limit, stepwise)
            rest = params | {"depth": params["depth"] - 1}
            optimum = best(X, y, weights, **params)
            assert found.unsplit <= best(X, y, weights, **(params | {"depth": 0})) + 1e-9
            assert found.found.sized <= optimum + 1e-9
            assert found.found.upper >= optimum - 1e-9
            for j in range(X.shape[1]):
                for k, threshold in enumerate(np.unique(X[:, j])[1:]):
                    left = X[:, j] < threshold
                    for side, bounds in ((left, found.left), (~left, found.right)):
                        least = best(X[side], y[side], weights[side], **rest)
                        assert bounds[j][k] <= least + 1e-9
                        tight += bool(bounds[j][k] > 0 and bounds[j][k] == pytest.approx(least))
                        cuts += 1
    assert tight > cuts / 10  # bounds of nothing would pass, too


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_what_is_known_of_one_set_bounds_the_others_of_a_deep_tree(alpha: float) -> None:
    """Depth 3, where values of one feature bound the sides of all others: against subtrees of two levels on each side."""
    for seed in range(2):
        rng = np.random.default_rng([7, seed])
        n = 18
        X, y = rng.integers(0, 6, (n, 4)) / 5, rng.integers(0, 2 + seed % 2, n)
        weights = rng.choice([0.5, 1.0, 3.0], n) if seed % 3 else np.ones(n)
        n_min = 1 + seed % 2
        found = searched(X, y, weights, {"alpha": alpha, "n_min": n_min, "depth": 3}, np.inf, bool(seed % 2))
        position = np.column_stack([np.unique(c, return_inverse=True)[1] for c in X.T])
        least = np.inf
        for j in range(X.shape[1]):
            for k in range(1, int(position[:, j].max()) + 1):
                costs = []
                for side, bounds in ((position[:, j] < k, found.left), (position[:, j] >= k, found.right)):
                    ranks = np.column_stack([np.unique(c, return_inverse=True)[1] for c in X[side].T])
                    groups = subtrees.Groups.of(ranks, y[side], weights[side], int(y.max()) + 1)
                    exact = subtrees.Search(alpha, n_min, np.inf).subtree(
                        subtrees.Table.whole(groups, 1.0), 2
                    )
                    assert bounds[j][k - 1] <= exact.upper + 1e-9
                    costs.append(exact.upper)
                least = min(least, alpha + sum(costs))
        assert found.found.proved
        assert found.found.upper <= least + 1e-9
        assert found.found.sized == pytest.approx(min(least, found.found.upper))


@pytest.mark.slow
def test_without_a_limit_the_search_finds_and_proves_the_optimum() -> None:
    for X, y, weights, params in tables(150, seed=2):
        found = searched(X, y, weights, params, np.inf, False).found
        optimum = best(X, y, weights, **params)
        assert found.proved
        assert found.upper == pytest.approx(optimum)
        assert found.sized == pytest.approx(optimum)


@pytest.mark.slow
def test_a_search_stops_when_it_is_told_to_and_its_bounds_hold() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 4)), rng.integers(0, 2, 60)
    position = np.column_stack([np.unique(c, return_inverse=True)[1] for c in X.T])
    groups = subtrees.Groups.of(position, y, np.ones(60), 2)
    whole = subtrees.Table.whole(groups, 1.0)
    full = subtrees.Search(0.0, 1, np.inf).root(whole, 3)
    for rounds in (0, 1, 5, 40):
        asked = iter(range(rounds))
        some = subtrees.Search(0.0, 1, np.inf, lambda asked=asked: next(asked, None) is None)
        cut_off = some.root(whole, 3, stepwise=True)
        assert cut_off.found.sized <= full.found.upper
        assert cut_off.found.upper >= full.found.upper
        for one, other in zip(cut_off.left, full.left, strict=True):
            exact = full.found.upper  # bounds above the best tree are not worked out
            assert (np.minimum(one, exact) <= np.maximum(other, exact)).all()
    assert full.found.proved


@pytest.mark.parametrize("work", [0, oct.WORK])
@pytest.mark.parametrize("strategy", ["exact", "balanced"])
@pytest.mark.quick_cases("exact-50000000")
def test_the_optimum_is_that_of_enumeration(work: int, strategy: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(oct, "WORK", work)
    monkeypatch.setattr(oct, "MORE_WORK", work)
    for X, y, weights, params in tables(6, seed=4, most=9):
        scale = "baseline" if params["n_min"] == 2 else "count"
        optimum = oracles.oct_optimum(X, y, weights=weights, error_scale=scale, **params)
        result = octsvm.fit(
            "oct", X, y, weights=weights, variant="flow", error_scale=scale, strategy=strategy, **params
        )
        assert result.status == "optimal"
        assert result.objective == pytest.approx(optimum, rel=1e-4, abs=1e-8)
        assert result.bound <= optimum * (1 + 2e-6) + 1e-9
        assert result.differing_rows == ()


def without_bounds(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    m.del_component("subtree_bounds")
    m.cost.set_value(sum(m.leaf_label.L.values()) + m.info.params.alpha * sum(m.split.d.values()))
    return m


@pytest.mark.slow
def test_the_flow_alone_has_the_same_optimum() -> None:
    for X, y, weights, params in tables(6, seed=5, most=9):
        m = without_bounds(octsvm.build("oct", X, y, weights=weights, variant="flow", **params))
        found = octsvm.solve(m).objective
        assert found == pytest.approx(best(X, y, weights, **params), rel=1e-4, abs=1e-8)


@pytest.mark.slow
def test_variants_agree_in_their_trees_values() -> None:
    rng = np.random.default_rng(6)
    for X, y, weights, params in tables(20, seed=6):
        B = 2 ** params["depth"] - 1
        feature = rng.integers(-1, X.shape[1], B)
        for t in range(2, B + 1):
            if feature[t // 2 - 1] < 0:
                feature[t - 1] = -1
        threshold = np.array([rng.choice(np.unique(X[:, max(j, 0)])) for j in feature])
        form = find_formulation("oct")
        tree = form.constant_tree(prepare(form, X, y), oct.OCTParams(**params))
        tree = AxisTree(
            params["depth"], tree.classes, tree.feature_names, tree.scaling, feature, threshold,
            rng.integers(0, len(tree.classes), B + 1),
        )  # fmt: skip
        costs = {}
        for variant in ("flow", "rank"):
            m = octsvm.build("oct", X, y, weights=weights, variant=variant, **params)
            try:
                embedded = octsvm.embed(m, tree)
            except octsvm.TreeNotAdmitted:
                continue
            costs[variant] = pyo.value(m.objective)
            assert (embedded.predict(X) == tree.predict(X)).all()
            back = octsvm.extract(m)
            assert (back.predict(X) == tree.predict(X)).all()
        if "rank" in costs:
            assert costs["flow"] <= costs["rank"] + 1e-9  # less by α for a split at or below the least value


def test_a_split_that_sends_all_rows_right_gives_way_to_its_right_subtree() -> None:
    X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [3.0, 1.0]])
    y = np.array([0, 0, 1, 1])
    m = octsvm.build("oct", X, y, depth=2, alpha=0.25, variant="flow")
    tree = octsvm.fit("oct", X, y, depth=2, alpha=0.25).tree
    tree = AxisTree(2, tree.classes, tree.feature_names, tree.scaling, np.array([1, -1, 0]),
                    np.array([0.0, 0.0, 1.5]), np.array([1, 1, 0, 1]))  # fmt: skip
    embedded = octsvm.embed(m, tree)
    assert (embedded.predict(X) == y).all()
    assert embedded.splits.sum() == 1
    assert pyo.value(m.objective) == 0.25


def test_equal_rows_share_a_variable_and_keep_their_names() -> None:
    X = np.array([[0.0], [0.0], [1.0], [1.0], [2.0]])
    m = octsvm.build("oct", X, [0, 1, 1, 1, 0], depth=1, alpha=0.1, variant="flow")
    assert len(m.assignment.f) == 3 * 2
    assert len(m.assignment.z) == 5 * 2
    assert m.assignment.z[0, 2] is m.assignment.z[1, 2]
    m.own = pyo.Constraint(expr=m.assignment.z[0, 2] + m.assignment.z[4, 3] >= 2)
    copied = m.clone()
    assert copied.assignment.z[0, 2] is copied.assignment.f[0, 2]
    for model in (m, copied):
        result = octsvm.solve(model)
        assert result.tree.nodes(X)[[0, 4], 1].tolist() == [2, 3]


def test_the_bounds_hold_with_rows_of_the_users_own() -> None:
    for X, y, _, params in tables(10, seed=8, most=9):
        m = octsvm.build("oct", X, y, variant="flow", **params)
        m.own = pyo.Constraint(expr=sum(m.split.a[1, j] for j in range(X.shape[1])) <= 0)
        constant = best(X, y, np.ones(len(y)), **(params | {"depth": 0}))
        assert octsvm.solve(m).objective == pytest.approx(constant)
