"""What a move will cost: estimates against the cone program solved, and linear SVMs against a quadratic program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from octsvm.formulations.margin_trees import norms
from octsvm.formulations.registry import formulation
from octsvm.heuristics import Budget, alternating_optimisation, fixed_assignment, linear_svm
from octsvm.heuristics.local_search import ESTIMATE_ERROR, SolvedTree
from octsvm.heuristics.margin_tree import TreeSearch

# Errors that cost less than the margin, labels that are given up rather than errors made, and both of large penalty.
SOFT = [(1.0, 1.0, 0.1), (0.1, 10.0, 0.01), (0.3, 0.5, 0.05)]
HARD = [(1e3, 1.0, 0.1), (1e4, 10.0, 0.5), (1e5, 3.0, 0.0)]
LARGE = [(1e3, 1e3, 1.0), (1e5, 1e5, 10.0)]


def builder_of(seed: int, c1: float, c2: float, c3: float, depth: int, name: str = "octsvm") -> TreeSearch:
    """A builder of 40 rows with some labels flipped, and a best tree after some steps."""
    rng = np.random.default_rng(seed)
    n, p = 40, int(rng.integers(2, 9))
    X = rng.random((n, p))
    sign = np.where(X[:, 0] + 0.5 * X[:, 1] > 0.7, 1.0, -1.0)
    sign[rng.permutation(n)[:3]] *= -1
    if name == "re_svm":  # its margin term is a square, and larger
        c1, c2 = 30 * c1, 30 * c2
    wanted = {"c1": c1, "c2": c2} | ({} if name == "re_svm" else {"c3": c3, "depth": depth})
    params = formulation(name).Params.make(name, **wanted)
    builder = TreeSearch(X, sign, np.ones(n), params, Budget(60.0, 40), seed)
    for _ in builder.run():
        pass
    builder.budget = Budget(60.0)
    return builder


def assignment_cost(builder: TreeSearch, at: SolvedTree, assignment: fixed_assignment.Assignment) -> float:
    """The objective of the cone program and of what is fixed in it; infinite where nothing routes like that."""
    found = fixed_assignment.solve(builder.X, builder.weights, assignment, builder.search.costs)
    if found is None:
        return np.inf
    s = (
        np.einsum("ij,ikj->ik", builder.X, found.omega[assignment.node - 1])
        + found.omega0[assignment.node - 1]
    )
    sign = builder.sign[:, None]
    paid = builder.c1 * np.maximum(0.0, 1.0 - assignment.label * s) + np.where(
        assignment.label == sign, 0.0, builder.c2
    )
    unsplit = builder.loss(sign * at.planes.omega0[assignment.node - 1])
    paid = np.where(assignment.split[assignment.node - 1], paid, unsplit)
    return (
        builder.margin(float(norms(found.omega, "l2").max()))
        + builder.c3 * float(assignment.split.sum())
        + float((builder.weights @ paid).sum())
    )


def moves(builder: TreeSearch) -> Iterator[tuple[SolvedTree, fixed_assignment.Assignment]]:
    """Moves, exchanges and compound moves of the best tree."""
    search = builder.search
    search.optimise_best()
    at = search.at
    if at is None:
        return
    for assignment in [
        *search._moves(at),
        *search._exchanges(at),
        *(search._compound_move(at) for _ in range(6)),
    ]:
        yield at, assignment


def test_the_least_violation_is_that_of_the_quadratic_program_and_not_above_it() -> None:
    rng = np.random.default_rng(0)
    for _ in range(12):
        n, p = int(rng.integers(8, 30)), int(rng.integers(1, 6))
        X, over = rng.random((n, p)), rng.random(n) < 0.5
        bound = np.where(over, rng.choice([0.0, 1.0], n), rng.choice([-1e-3, -1.0], n))
        most = rng.choice([0.0, 0.5, 3.0, 20.0], n)
        value, wanted = linear_svm.least_violation(X, over, bound, most), quadratic(X, over, bound, most)
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
    value = linear_svm.least_violation(X, over, bound, most)
    monkeypatch.setattr(linear_svm, "binding", lambda: None)
    assert linear_svm.least_violation(X, over, bound, most) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("costs", HARD)
@pytest.mark.quick_cases("costs0-*")
def test_with_hard_margins_the_estimate_is_the_cost(costs: tuple[float, float, float], depth: int) -> None:
    seen = 0
    for seed in range(3):
        builder = builder_of(seed, *costs, depth)
        for at, assignment in moves(builder):
            wanted = assignment_cost(builder, at, assignment)
            value = builder.search.estimates(at, assignment, np.inf)
            if wanted < 1.5 * at.cost:
                assert value == pytest.approx(wanted, rel=0.03)
                seen += 1
    assert seen > 10


@pytest.mark.parametrize("costs", SOFT + HARD + LARGE)
@pytest.mark.parametrize(("name", "depth"), [("octsvm", 1), ("octsvm", 2), ("re_svm", 0)])
@pytest.mark.quick_cases("octsvm-1-*", "re_svm-0-costs0")
@pytest.mark.every_value
def test_no_move_that_is_better_is_left_out(name: str, depth: int, costs: tuple[float, float, float]) -> None:
    tried = 0
    for seed in range(2):
        builder = builder_of(seed, *costs, depth, name)
        for at, assignment in moves(builder):
            limit = at.cost * (1 + ESTIMATE_ERROR)
            tried += 1
            if assignment_cost(builder, at, assignment) < at.cost * (1 - 1e-3):
                assert builder.search.estimates(at, assignment, limit) < limit
    assert tried > 10


@pytest.mark.parametrize("costs", SOFT + HARD + LARGE)
def test_a_sweep_has_the_cost_of_its_tree(costs: tuple[float, float, float]) -> None:
    for depth in (0, 1, 2):
        builder = builder_of(depth, *costs, depth)
        planes = builder.best
        for randomised in (True, False, True):
            weighting = alternating_optimisation.Weighting(
                sides=0.5, C=30.0, relabelled=0.3, randomised=randomised
            )
            planes = alternating_optimisation.sweep(builder, planes, 8.0, weighting)
            assert planes.cost == pytest.approx(builder.value(planes), rel=1e-9)
            assert float(norms(planes.omega, "l2").max()) <= 8.0 * (1 + 1e-9)
            for t in range(2, builder.T + 1):
                assert planes.split[t // 2 - 1] or not planes.split[t - 1]
