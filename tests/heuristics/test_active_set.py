"""Linear SVMs by the active-set method against an interior-point method, and hard-margin subproblems against the whole cone program."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_move_estimates import builder_of, moves, quadratic

from octsvm.formulations.margin_trees import norms
from octsvm.heuristics import active_set, fixed_assignment, hard_margin, linear_svm

LARGE_PENALTY = 1e6  # a penalty of errors beside which the norm does not count


def table(seed: int, noise: float = 0.0) -> tuple[Any, Any]:
    """Rows and the side of each; without noise a hyperplane has them right."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(4, 60)), int(rng.integers(1, 12))
    X = rng.random((n, p)) if seed % 2 else rng.integers(0, 4, (n, p)) / 3.0  # ties and equal rows
    along = X @ rng.normal(size=p)
    over = along > np.median(along)
    wrong = rng.random(n) < noise
    return X, over ^ wrong


@pytest.mark.parametrize("seed", range(20))
def test_the_least_norm_is_that_of_the_quadratic_program(seed: int) -> None:
    X, over = table(seed)
    side = np.where(over, 1.0, -1.0)
    bound = np.random.default_rng(seed).choice([1.0, 1.3], size=len(X))
    found = active_set.minimum_norm(X, over, bound)
    assert found is not None
    assert (side * (X @ found.omega + found.omega0) - bound).min() >= -1e-9
    half = float(found.omega @ found.omega) / 2
    assert half == pytest.approx(
        quadratic(X, over, side * bound, np.full(len(X), LARGE_PENALTY)), rel=1e-5, abs=1e-6
    )
    assert (found.dual_values >= 0).all()
    assert float(found.dual_values @ bound) == pytest.approx(2 * half, rel=1e-5, abs=1e-9)
    if half > 0:
        largest = np.sqrt(2 * half)
        assert active_set.minimum_norm(X, over, bound, 0.99 * largest) is None
        assert active_set.minimum_norm(X, over, bound, 1.01 * largest) is not None


def test_rows_that_no_hyperplane_separates_have_no_solution() -> None:
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    over = np.array([True, True, False, False])
    assert active_set.minimum_norm(X, over, np.ones(4)) is None
    assert active_set.minimum_norm(np.zeros((2, 3)), np.array([True, False]), np.ones(2)) is None


def test_rows_of_one_side_need_no_norm() -> None:
    X = np.random.default_rng(0).random((5, 2))
    for over, intercept in ((True, 1.5), (False, -1.5)):
        found = active_set.minimum_norm(X, np.full(5, over), np.array([1.0, 1.5, 1.0, 1.0, 1.0]))
        assert found is not None
        assert not found.omega.any()
        assert found.omega0 == intercept


@pytest.mark.parametrize("seed", range(20))
def test_the_least_violation_is_that_of_the_quadratic_program(seed: int) -> None:
    X, over = table(seed, noise=0.2)
    rng = np.random.default_rng(seed)
    side = np.where(over, 1.0, -1.0)
    bound, most = side * rng.choice([0.0, 1.0], len(X)), rng.choice([0.5, 20.0, 1e3], len(X))
    found = active_set.least_violation(X, over, bound, most, 5000)
    assert found is not None
    value, omega, omega0 = found
    assert value == pytest.approx(quadratic(X, over, bound, most), rel=2e-3, abs=1e-4)
    s = X @ omega + omega0
    paid = float(most @ np.maximum(0.0, side * (bound - s)))
    assert value == pytest.approx(paid + float(omega @ omega) / 2, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("C", [10.0, 300.0, 1e5])
def test_errors_of_large_penalty_cost_less_than_by_the_other_method(
    seed: int, C: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, over = table(seed, noise=0.1)
    sign, weights = np.where(over, 1.0, -1.0), np.random.default_rng(seed).exponential(size=len(X))

    def cost(plane: tuple[Any, float]) -> float:
        hinge = np.maximum(0.0, 1.0 - sign * (X @ plane[0] + plane[1]))
        return float(plane[0] @ plane[0]) / 2 + C * float(weights @ hinge)

    ours = cost(linear_svm.fit_linear_svm(X, sign, weights, C))
    monkeypatch.setattr(linear_svm, "FEW", 0)
    assert ours <= cost(linear_svm.fit_linear_svm(X, sign, weights, C)) * (1 + 2e-3) + 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_the_least_slack_is_that_of_the_linear_program(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, over = table(seed, noise=0.15)
    sign, weights = np.where(over, 1.0, -1.0), np.random.default_rng(seed).random(len(X)).round(1)

    def slack(plane: tuple[Any, float]) -> float:
        return float(weights @ np.maximum(0.0, 1.0 - sign * (X @ plane[0] + plane[1])))

    ours = slack(linear_svm.least_slack(X, sign, weights))
    monkeypatch.setattr(linear_svm, "FEW", 0)
    assert ours == pytest.approx(slack(linear_svm.least_slack(X, sign, weights)), rel=0.02, abs=0.02)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("costs", [(1e3, 1.0, 0.1), (1e5, 3.0, 0.0), (300.0, 300.0, 1.0)])
@pytest.mark.quick_cases("*-0", "costs0-*")
def test_with_hard_margins_every_node_by_itself_is_as_good_as_all_together(
    costs: tuple[float, float, float], depth: int
) -> None:
    solved = 0
    for seed in range(3):
        builder = builder_of(seed, *costs, depth, "octsvm" if depth else "re_svm")
        asked = builder.search.costs
        for _, assignment in moves(builder):
            whole = fixed_assignment.solve(
                builder.X, builder.weights, assignment, asked, tolerance=fixed_assignment.TIGHT
            )
            ours = hard_margin.solve(builder.X, builder.weights, assignment, asked)
            if whole is None or ours is None:
                continue
            solved += 1

            def cost(
                found: fixed_assignment.Solution,
                assignment: fixed_assignment.Assignment = assignment,
                builder: Any = builder,
            ) -> float:
                s = (
                    np.einsum("ij,ikj->ik", builder.X, found.omega[assignment.node - 1])
                    + found.omega0[assignment.node - 1]
                )
                missing = np.where(
                    assignment.split[assignment.node - 1], np.maximum(0.0, 1.0 - assignment.label * s), 0.0
                )
                return float(
                    builder.margin(float(norms(found.omega, "l2").max()))
                    + builder.c1 * (builder.weights[:, None] * missing).sum()
                )

            assert cost(ours) == pytest.approx(cost(whole), rel=1e-4, abs=1e-6)
            assert cost(ours) <= cost(whole) * (1 + 1e-6) + 1e-9
            # The dual values say what a unit less of margin saves, all rows together: the slope of the term. They balance the
            # curvature of ω_0 as well, a thousandth of it.
            slope = float((ours.hinge * np.where(assignment.split[assignment.node - 1], 1.0, 0.0)).sum())
            assert slope == pytest.approx(cost(ours) * (2 if builder.single else 1), rel=2e-3, abs=1e-6)
            assert ours.norm_dual.sum() == (0.0 if builder.single else 1.0)
    assert solved > 10


def test_where_errors_pay_no_margin_is_hard() -> None:
    builder = builder_of(1, 300.0, 300.0, 1.0, 1)
    _, assignment = next(moves(builder))
    assert (
        hard_margin.solve(builder.X, builder.weights, assignment, replace(builder.search.costs, c1=1e-3))
        is None
    )
    assert (
        hard_margin.solve(builder.X, builder.weights, assignment, replace(builder.search.costs, norm="l1"))
        is None
    )
