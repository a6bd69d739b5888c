"""The rows on sides and on mixes of rows: no tree is cut off, the optimum stays, the relaxation is no weaker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from instances import tiny
from long_cases import long
from model_values import largest_violation
from oracles import optimum
from scipy.optimize import linprog

import octsvm
from octsvm.data import prepare
from octsvm.formulations import octsvm as formulation
from octsvm.formulations.base import Scaling
from octsvm.formulations.bounds import hull
from octsvm.formulations.errors import TreeNotAdmitted
from octsvm.formulations.registry import formulation as find_formulation
from octsvm.formulations.trees import MarginTree

ADDED = ("side_costs", "mixes")


def random_tree(X: np.ndarray, depth: int, rng: np.random.Generator) -> MarginTree:
    """Any hyperplanes, steep and flat ones, some nodes unsplit (and then all below them)."""
    T, p = 2 ** (depth + 1) - 1, X.shape[1]
    split = rng.random(T) < 0.8
    for t in range(2, T + 1):
        split[t - 1] &= split[t // 2 - 1]
    omega = rng.normal(size=(T, p)) * rng.choice([0.5, 3.0, 20.0], size=(T, 1)) * split[:, None]
    through = X[rng.integers(0, len(X), T)] + rng.normal(size=(T, p)) * 0.05
    omega0 = np.where(split, -(omega * through).sum(axis=1), rng.choice([-1.0, 1.0], T))
    names = tuple(f"x{j}" for j in range(p))
    return MarginTree(depth, (-1, 1), names, Scaling.identity(p), omega, omega0, split)


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.quick_cases("0-l1", "1-l2", "2-l1")
def test_no_tree_is_cut_off(norm: str, depth: int) -> None:
    rng = np.random.default_rng([depth, len(norm)])
    admitted = 0
    for case in range(12):
        n, p = int(rng.integers(4, 10)), int(rng.integers(1, 4))
        X = rng.random((n, p)) if case % 3 else rng.integers(0, 3, (n, p)) / 2
        y = np.where(rng.random(n) < 0.5, 1, -1)
        y[:2] = 1, -1
        X[0], X[1] = (0.0, 1.0)
        c1, c2 = rng.choice([0.1, 1.0, 10.0]), rng.choice([0.1, 1.0, 10.0])
        params: dict[str, Any] = {"depth": depth, "c1": c1, "c2": c2, "c3": 0.1, "norm": norm}
        form = find_formulation("octsvm")
        checked, data = form.Params.make("octsvm", **params), prepare(form, X, y, scale=False)
        tree = form.normalise(random_tree(X, depth, rng), data, checked)
        # The model has no more room than this tree's own cost: its δ, its M and its rows are as tight as they get.
        marks = rng.random((n, tree.n_nodes)) < 0.3 if case % 2 else None
        cost = form.evaluate(tree, X, data.y, checked, data.weights, marks).objective
        model = octsvm.build("octsvm", X, y, scale=False, upper_bound=cost, **params)
        try:
            form.require(tree, data, checked)
        except TreeNotAdmitted:
            continue  # a row within μ of a plane, which (9') excludes
        model_tree = formulation.embed(model, tree, marks)
        admitted += 1
        assert model_tree.depth == depth
        assert largest_violation(model) <= 1e-6
        assert model.margin.delta.value <= model.margin.delta.ub + 1e-9
    assert admitted >= 6


def test_a_mix_binds_every_hyperplane() -> None:
    rng = np.random.default_rng(3)
    for norm in ("l2", "l1"):
        X, sign = rng.random((9, 3)), np.repeat([1.0, -1.0], [5, 4])
        mixes = hull.pairs(X, sign, norm) + hull.small_combinations(X, sign, norm)
        assert {len(mix.rows) for mix in mixes} == {2, 3, 4}
        for _ in range(200):
            omega, omega0 = rng.normal(size=3) * rng.choice([1.0, 10.0]), rng.normal()
            size = np.sqrt(omega @ omega) if norm == "l2" else np.abs(omega).sum()
            xi = rng.random(9) < 0.1
            e = np.maximum(0.0, 1.0 - np.where(xi, -sign, sign) * (X @ omega + omega0))
            for mix in mixes:
                at = list(mix.rows)
                assert np.dot(mix.weights, e[at]) + 2 * xi[at].sum() + size * mix.distance >= 2 - 1e-9


def test_the_mixes_of_least_distance_are_found() -> None:
    square = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    found = hull.small_combinations(square, np.array([1.0, 1.0, -1.0, -1.0]))
    assert sorted(len(mix.rows) for mix in found) == [
        3,
        3,
        3,
        3,
        4,
    ]  # a corner and the middle of two others; all four
    assert found[-1].weights == pytest.approx((0.5,) * 4)
    assert found[-1].distance == hull.LEAST_DISTANCE  # the diagonals cross
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.25, 0.25]])
    inside = [
        m for m in hull.small_combinations(triangle, np.array([-1.0, -1.0, -1.0, 1.0])) if len(m.rows) == 4
    ]
    assert inside[0].weights == pytest.approx((1.0, 0.5, 0.25, 0.25))


def test_packing_is_what_a_solver_finds() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        k, m = rng.integers(2, 30, 2)
        load, capacity = rng.random((k, m)) * (rng.random((k, m)) < 0.4) + 0.01, rng.random(m)
        gain = rng.normal(size=k)
        y, price = hull.packing(load, capacity, gain)
        known = linprog(-gain, A_ub=load.T, b_ub=capacity)
        assert (y @ load <= capacity * (1 + 1e-12)).all()
        assert gain @ y == pytest.approx(-known.fun, abs=1e-9)
        assert capacity @ price == pytest.approx(-known.fun, abs=1e-9)


def test_the_bound_on_the_margin_term_is_that_of_the_linear_program() -> None:
    rng = np.random.default_rng(6)
    smaller = 0
    for _ in range(20):
        n = int(rng.integers(5, 12))
        X, sign, weights = rng.random((n, 2)), np.where(np.arange(n) % 2 == 0, 1.0, -1.0), rng.random(n) + 0.5
        c1, c2, ub = 1.0, float(rng.choice([0.5, 2.0])), float(rng.uniform(3, 6))
        mixes = hull.pairs(X, sign) + hull.small_combinations(X, sign)
        root = hull.RootProblem(weights, c1, c2)
        A = root.matrix(mixes)
        found = hull.margin_bound(mixes, weights, c1, c2, 0.1, ub)
        goal = np.zeros(2 * n + 1)
        goal[-1] = -1.0
        rows = np.vstack([-A, root.cost])
        known = linprog(goal, A_ub=rows, b_ub=np.append(np.full(len(A), -2.0), ub - 0.1))
        if known.status == 0:
            assert found >= known.x[-1] - 1e-6
            smaller += found < ub - 0.1 - 1e-3
        assert found >= ub / 20
    assert smaller >= 5


TINY = tiny("octsvm", 10, seed=77)


@pytest.mark.parametrize("instance", [*TINY[:4], *long(TINY[4:])], ids=lambda i: i.name)
def test_the_optimum_is_that_of_brute_force(instance: Any) -> None:
    best = optimum("octsvm", instance.X, instance.y, instance.params)
    result = octsvm.fit("octsvm", instance.X, instance.y, scale=False, time_limit=30, **instance.params)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, rel=2e-4, abs=1e-6)


def relaxed(model: pyo.ConcreteModel) -> float:
    copy = pyo.TransformationFactory("core.relax_integer_vars").create_using(model)
    pyo.SolverFactory("appsi_highs").solve(copy)
    return float(pyo.value(copy.objective))


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.slow
def test_the_relaxation_is_stronger_with_them(depth: int) -> None:
    rng = np.random.default_rng(8)
    X = rng.random((12, 2))
    y = np.where((X[:, 0] - 0.5) * (X[:, 1] - 0.5) >= 0, 1, -1)
    model = octsvm.build("octsvm", X, y, depth=depth, c1=1.0, c2=1.0, c3=0.1, norm="l1")
    whole = relaxed(model)
    values = []
    for name in ADDED:
        model.component(name).deactivate()
        values.append(relaxed(model))
    assert whole >= values[0] - 1e-7 >= values[1] - 2e-7
    assert whole > 2 * values[1]


def test_large_tables_get_few_rows() -> None:
    rng = np.random.default_rng(9)
    X = rng.random((172, 60))
    y = np.where(X[:, 0] + X[:, 1] > 1, 1, -1)
    model = octsvm.build("octsvm", X, y, depth=2)
    rows = {
        name: sum(1 for _ in model.component(name).component_data_objects(pyo.Constraint)) for name in ADDED
    }
    everything = sum(1 for _ in model.component_data_objects(pyo.Constraint))
    assert rows["mixes"] == min((y > 0).sum(), (y < 0).sum()) + 2
    assert sum(rows.values()) < 0.15 * (everything - sum(rows.values()))


def test_a_limit_of_the_callers_own_is_kept() -> None:
    X = np.array([[0.1], [0.3], [0.5], [0.7], [0.9]])
    y = np.array([-1, 1, -1, 1, 1])
    params = {"depth": 1, "c1": 1.0, "c2": 0.4, "c3": 0.1}
    free = octsvm.solve(octsvm.build("octsvm", X, y, **params))
    model = octsvm.build("octsvm", X, y, upper_bound=2 * 2 * 2 * params["c1"], **params)
    for xi in model.relabelling.xi.values():
        xi.fix(0)
    kept = octsvm.solve(model)
    dear = octsvm.fit("octsvm", X, y, **{**params, "c2": 1e3})
    assert free.objective < kept.objective
    assert kept.objective == pytest.approx(dear.objective, rel=1e-4)
