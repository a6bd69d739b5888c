"""What a change of a tree will cost: estimates against the convex problem solved, and machines against a quadratic program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from octsvm.formulations.margin_trees import norms
from octsvm.formulations.registry import formulation
from octsvm.heuristics import Budget
from octsvm.heuristics import alternating_optimisation as alternating
from octsvm.heuristics import fixed_assignment as convex
from octsvm.heuristics import linear_svm as machines
from octsvm.heuristics.local_search import DOUBT, Settled
from octsvm.heuristics.margin_tree import TreeSearch

# Errors below the price of the margin, labels that are given up rather than errors made, and both dear.
SOFT = [(1.0, 1.0, 0.1), (0.1, 10.0, 0.01), (0.3, 0.5, 0.05)]
HARD = [(1e3, 1.0, 0.1), (1e4, 10.0, 0.5), (1e5, 3.0, 0.0)]
DEAR = [(1e3, 1e3, 1.0), (1e5, 1e5, 10.0)]


def shop_of(seed: int, c1: float, c2: float, c3: float, depth: int, name: str = "octsvm") -> TreeSearch:
    """A workshop of 40 rows with some labels flipped, and a best tree after some steps."""
    rng = np.random.default_rng(seed)
    n, p = 40, int(rng.integers(2, 9))
    X = rng.random((n, p))
    sign = np.where(X[:, 0] + 0.5 * X[:, 1] > 0.7, 1.0, -1.0)
    sign[rng.permutation(n)[:3]] *= -1
    if name == "re_svm":  # its margin term is a square, and dearer
        c1, c2 = 30 * c1, 30 * c2
    wanted = {"c1": c1, "c2": c2} | ({} if name == "re_svm" else {"c3": c3, "depth": depth})
    params = formulation(name).Params.make(name, **wanted)
    shop = TreeSearch(X, sign, np.ones(n), params, Budget(60.0, 40), seed)
    for _ in shop.run():
        pass
    shop.budget = Budget(60.0)
    return shop


def structure_cost(shop: TreeSearch, at: Settled, fixed: convex.Fixed) -> float:
    """The objective of the convex problem and what is fixed in it; infinite where nothing routes like that."""
    found = convex.solve(shop.X, shop.weights, fixed, shop.search.costs)
    if found is None:
        return np.inf
    s = np.einsum("ij,ikj->ik", shop.X, found.omega[fixed.node - 1]) + found.omega0[fixed.node - 1]
    sign = shop.sign[:, None]
    paid = shop.c1 * np.maximum(0.0, 1.0 - fixed.label * s) + np.where(fixed.label == sign, 0.0, shop.c2)
    unsplit = shop.loss(sign * at.planes.omega0[fixed.node - 1])
    paid = np.where(fixed.split[fixed.node - 1], paid, unsplit)
    return (
        shop.margin(float(norms(found.omega, "l2").max()))
        + shop.c3 * float(fixed.split.sum())
        + float((shop.weights @ paid).sum())
    )


def changes(shop: TreeSearch) -> Iterator[tuple[Settled, convex.Fixed]]:
    """Single and several changes of the best tree."""
    search = shop.search
    search.settle_best()
    at = search.at
    if at is None:
        return
    for fixed in [*search._changes(at), *search._swaps(at), *(search._several(at) for _ in range(6))]:
        yield at, fixed


def test_the_least_violation_is_that_of_the_quadratic_program_and_not_above_it() -> None:
    rng = np.random.default_rng(0)
    for _ in range(12):
        n, p = int(rng.integers(8, 30)), int(rng.integers(1, 6))
        X, over = rng.random((n, p)), rng.random(n) < 0.5
        bound = np.where(over, rng.choice([0.0, 1.0], n), rng.choice([-1e-3, -1.0], n))
        most = rng.choice([0.0, 0.5, 3.0, 20.0], n)
        value, wanted = machines.least_violation(X, over, bound, most), quadratic(X, over, bound, most)
        assert value <= wanted * (1 + 1e-6) + 1e-6
        assert value == pytest.approx(wanted, rel=0.02, abs=1e-3)


def quadratic(X: Any, over: Any, bound: Any, most: Any) -> float:
    """The same by an interior point method."""
    import clarabel
    from scipy import sparse

    n, p = X.shape
    side = np.where(over, 1.0, -1.0)
    rows = np.block(
        [[-side[:, None] * np.column_stack([X, np.ones(n)]), -np.eye(n)], [np.zeros((n, p + 1)), -np.eye(n)]]
    )
    P = sparse.diags(np.r_[np.ones(p), np.zeros(n + 1)], format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = clarabel.DefaultSolver(
        P,
        np.r_[np.zeros(p + 1), most],
        sparse.csc_matrix(rows),
        np.r_[-side * bound, np.zeros(n)],
        [clarabel.NonnegativeConeT(2 * n)],
        settings,
    ).solve()
    return float(found.obj_val)


def test_without_the_binding_the_public_class_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    X, over, most = rng.random((20, 3)), rng.random(20) < 0.5, rng.uniform(0.0, 5.0, 20)
    bound = np.where(over, 1.0, -1.0)
    value = machines.least_violation(X, over, bound, most)
    monkeypatch.setattr(machines, "binding", lambda: None)
    assert machines.least_violation(X, over, bound, most) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("costs", HARD)
def test_with_hard_margins_the_estimate_is_the_cost(costs: tuple[float, float, float], depth: int) -> None:
    seen = 0
    for seed in range(5):
        shop = shop_of(seed, *costs, depth)
        for at, fixed in changes(shop):
            wanted = structure_cost(shop, at, fixed)
            value = shop.search.estimates(at, fixed, np.inf)
            if wanted < 1.5 * at.cost:
                assert value == pytest.approx(wanted, rel=0.03)
                seen += 1
    assert seen > 10


@pytest.mark.parametrize("costs", SOFT + HARD + DEAR)
@pytest.mark.parametrize(("name", "depth"), [("octsvm", 1), ("octsvm", 2), ("re_svm", 0)])
def test_no_change_that_is_better_is_left_out(
    name: str, depth: int, costs: tuple[float, float, float]
) -> None:
    tried = 0
    for seed in range(3):
        shop = shop_of(seed, *costs, depth, name)
        for at, fixed in changes(shop):
            limit = at.cost * (1 + DOUBT)
            tried += 1
            if structure_cost(shop, at, fixed) < at.cost * (1 - 1e-3):
                assert shop.search.estimates(at, fixed, limit) < limit
    assert tried > 10


@pytest.mark.parametrize("costs", SOFT + HARD + DEAR)
def test_a_sweep_says_what_its_tree_costs(costs: tuple[float, float, float]) -> None:
    for depth in (0, 1, 2):
        shop = shop_of(depth, *costs, depth)
        assert shop.best is not None
        planes = shop.best
        for chance in (True, False, True):
            taste = alternating.Taste(sides=0.5, C=30.0, flipped=0.3, chance=chance)
            planes = alternating.swept(shop, planes, 8.0, taste)
            assert planes.cost == pytest.approx(shop.value(planes), rel=1e-9)
            assert float(norms(planes.omega, "l2").max()) <= 8.0 * (1 + 1e-9)
            for t in range(2, shop.T + 1):
                assert planes.split[t // 2 - 1] or not planes.split[t - 1]


def test_a_structure_is_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = shop_of(4, 1.0, 1.0, 0.1, 1)
    assert shop.best is not None
    shop.search._seen.clear()
    solved, solve = [], convex.solve

    def counted(*arguments: Any) -> Any:
        solved.append(arguments)
        return solve(*arguments)

    monkeypatch.setattr(convex, "solve", counted)
    fixed = shop.search.structure(shop.best)
    first = shop.search.solve(fixed, shop.best)
    assert first is not None
    assert shop.search.solve(fixed, shop.best, rough=True) is first
    assert shop.search.solve(fixed, shop.best) is first
    assert len(solved) == 1
