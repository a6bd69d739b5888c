"""The cone program of a fixed assignment: its solution against cutting planes, its dual values, and rows far out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from octsvm.heuristics import fixed_assignment
from octsvm.heuristics.tree_builder import boundary_shift

MU = 1e-3
WHAT = [("l2", False), ("l1", False), ("l2", True), ("l1", True)]


class Problem:
    """A random tree that routes random rows, labels of which some are given up, weights, and costs."""

    def __init__(self, seed: int, depth: int, norm: str, single: bool) -> None:
        rng = np.random.default_rng([seed, depth])
        n, p = int(rng.integers(6, 15)), int(rng.integers(1, 4))
        self.X, self.weights = (
            rng.random((n, p)),
            rng.choice([0.0, 0.5, 1.0, 3.0], size=n, p=[0.1, 0.2, 0.6, 0.1]),
        )
        T = 2 ** (depth + 1) - 1
        split = rng.random(T) < 0.8
        split[0] = True
        for t in range(2, T + 1):
            split[t - 1] &= split[t // 2 - 1]
        node = np.ones((n, depth + 1), dtype=np.int64)
        score = np.empty((n, depth + 1))
        for level in range(depth + 1):
            for t in np.unique(node[:, level]).tolist():
                rows = np.flatnonzero(node[:, level] == t)
                s = np.full(len(rows), rng.choice([-1.0, 1.0]))
                if split[t - 1]:
                    omega = rng.normal(size=p) * 4
                    s = (self.X[rows] - np.median(self.X[rows], axis=0)) @ omega
                    s += boundary_shift(s, MU)
                score[rows, level] = s
                if level < depth:
                    node[rows, level + 1] = 2 * t + (s >= 0)
        label = np.where(
            rng.random((n, depth + 1)) < 0.7,
            np.sign(score) + (score == 0),
            rng.choice([-1.0, 1.0], size=(n, 1)),
        )
        self.assignment = fixed_assignment.Assignment(node, label, split, score)
        self.costs = fixed_assignment.Costs(
            float(rng.choice([0.3, 2.0, 20.0])), 0.0 if single else MU, norm, single
        )

    def solve(self) -> fixed_assignment.Solution | None:
        return fixed_assignment.solve(self.X, self.weights, self.assignment, self.costs)

    def scores(self, found: fixed_assignment.Solution) -> Any:
        at = self.assignment.node - 1
        return np.einsum("ij,ikj->ik", self.X, found.omega[at]) + found.omega0[at]

    def cost(self, found: fixed_assignment.Solution) -> float:
        """Margin term and errors of the nodes that split, from the definition."""
        order = 1 if self.costs.norm == "l1" else 2
        size = np.linalg.norm(found.omega, ord=order, axis=1).max()
        margin = size / 2 if not self.costs.single else size if order == 1 else size**2 / 2
        error = np.maximum(0, 1 - self.assignment.label * self.scores(found))
        counted = self.assignment.split[self.assignment.node - 1]
        return float(margin + self.costs.c1 * (self.weights[:, None] * error * counted).sum())

    def optimum(self, side: dict[tuple[int, int], float] | None = None, hinge: Any = None) -> float:
        """The same by linear programs, with all rows and cuts of the margin term, none of it shared with the package.

        ``side`` and ``hinge`` give slack to rows, by (row, level).
        """
        assignment, (n, p) = self.assignment, self.X.shape
        nodes = [t for t in range(1, len(assignment.split) + 1) if assignment.split[t - 1]]
        m = len(nodes)
        size, theta = m * (p + 1), m * (p + 1) + m * p  # |ω|, and the margin term
        places = [
            (i, level)
            for level in range(assignment.node.shape[1])
            for i in range(n)
            if assignment.split[assignment.node[i, level] - 1]
        ]
        columns = theta + 1 + len(places)
        cost = np.zeros(columns)
        cost[theta] = 1.0
        rows: list[Any] = []
        right: list[float] = []
        for q, (i, level) in enumerate(places):
            k = nodes.index(assignment.node[i, level])
            score = np.zeros(columns)
            score[k * (p + 1) : (k + 1) * (p + 1)] = np.append(self.X[i], 1.0)
            row = -assignment.label[i, level] * score
            row[theta + 1 + q] = -1.0
            rows.append(row)
            right.append(-1.0 + (hinge or {}).get((i, level), 0.0))
            cost[theta + 1 + q] = self.costs.c1 * self.weights[i]
            if level + 1 < assignment.node.shape[1]:
                goes_right = assignment.node[i, level + 1] % 2 == 1
                rows.append(-score if goes_right else score)
                right.append((0.0 if goes_right else -self.costs.mu) + (side or {}).get((i, level), 0.0))
        for k in range(m):
            for j in range(p):
                for sign in (1.0, -1.0):
                    row = np.zeros(columns)
                    row[k * (p + 1) + j], row[size + k * p + j] = sign, -1.0
                    rows.append(row)
                    right.append(0.0)
        bounds = [(None, None)] * (m * (p + 1)) + [(0, None)] * (columns - m * (p + 1))
        factor = 1.0 if self.costs.single else 0.5
        if self.costs.norm == "l1":
            for k in range(m):
                row = np.zeros(columns)
                row[size + k * p : size + (k + 1) * p], row[theta] = factor, -1.0
                rows.append(row)
                right.append(0.0)
        for _ in range(300):
            found = linprog(cost, A_ub=np.array(rows), b_ub=right, bounds=bounds)
            if found.status == 2:
                return np.inf
            assert found.status == 0
            worst = 0.0
            for k in range(m if self.costs.norm == "l2" else 0):
                omega = found.x[k * (p + 1) : k * (p + 1) + p]
                norm = float(np.linalg.norm(omega))
                real = norm**2 / 2 if self.costs.single else norm / 2
                worst = max(worst, real - found.x[theta])
                if norm > 0:
                    row = np.zeros(columns)
                    row[k * (p + 1) : k * (p + 1) + p] = omega if self.costs.single else omega / norm / 2
                    row[theta] = -1.0
                    rows.append(row)
                    right.append(norm**2 / 2 if self.costs.single else 0.0)
            if worst <= 1e-6 * max(0.1, found.fun):
                return float(found.fun)
        raise AssertionError("the cuts do not close the gap")


def problems(count: int, norm: str, single: bool) -> list[Problem]:
    return [Problem(seed, 0 if single else seed % 3, norm, single) for seed in range(count)]


@pytest.mark.parametrize(("norm", "single"), WHAT)
def test_the_solution_is_the_optimum_and_routes_as_fixed(norm: str, single: bool) -> None:
    for one in problems(12, norm, single):
        found = one.solve()
        assert found is not None
        assert one.cost(found) == pytest.approx(one.optimum(), rel=1e-5, abs=1e-7)
        scores, node = one.scores(found), one.assignment.node
        for level in range(node.shape[1] - 1):
            splits = one.assignment.split[node[:, level] - 1]
            right = node[:, level + 1] % 2 == 1
            assert (scores[splits & right, level] >= 0).all()
            assert (scores[splits & ~right, level] <= -one.costs.mu).all()
        assert not found.omega[~one.assignment.split].any()
        assert not found.omega0[~one.assignment.split].any()


@pytest.mark.parametrize(("norm", "single"), WHAT)
@pytest.mark.quick_cases("l1-*")
def test_dual_values_are_slopes_of_the_optimum(norm: str, single: bool) -> None:
    rng = np.random.default_rng(3)
    positive = 0
    for one in problems(4, norm, single)[1:]:
        found, best = one.solve(), one.optimum()
        assert found is not None
        for kind, values in (("side", found.side), ("hinge", found.hinge)):
            assert (values >= -1e-7).all()
            assert not values[~one.assignment.split[one.assignment.node - 1]].any()
            places = np.argwhere(values > 1e-4)
            others = np.argwhere(values <= 1e-4)
            positive += len(places)
            for i, level in [*rng.permutation(places)[:2], *rng.permutation(others)[:1]]:
                if kind == "side" and level == one.assignment.node.shape[1] - 1:
                    continue
                for slack in (1e-2, -1e-2):
                    # The optimum is convex in the slack: its slopes on both sides hold the dual value between them.
                    other = one.optimum(**{kind: {(int(i), int(level)): slack}})
                    assert other >= best - values[i, level] * slack - 1e-5 * max(1.0, best)
    assert positive > 10


@pytest.mark.parametrize(("norm", "single"), WHAT)
@pytest.mark.parametrize("passes", [1, 2, fixed_assignment.PASSES])
def test_rows_far_out_are_brought_in_where_they_matter(
    norm: str, single: bool, passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixed_assignment, "PASSES", passes)
    for one in problems(6, norm, single):
        # As if all rows were far beyond their margins: none is in the problem at first.
        far = fixed_assignment.solve(
            one.X, one.weights, replace(one.assignment, score=100 * one.assignment.label), one.costs
        )
        assert far is not None
        assert one.cost(far) == pytest.approx(one.optimum(), rel=1e-5, abs=1e-7)


def test_a_routing_that_no_hyperplanes_have_is_none() -> None:
    X = np.array([[0.2], [0.2], [0.7]])
    node = np.array([[1, 2], [1, 3], [1, 3]])
    for norm in ("l2", "l1"):
        assignment = fixed_assignment.Assignment(
            node, np.ones((3, 2)), np.array([True, True, True]), np.zeros((3, 2))
        )
        assert (
            fixed_assignment.solve(X, np.ones(3), assignment, fixed_assignment.Costs(1.0, MU, norm, False))
            is None
        )
        # Between two that go right none goes left.
        between = replace(assignment, node=np.array([[1, 3], [1, 2], [1, 3]]))
        apart = np.array([[0.0], [0.5], [1.0]])
        assert (
            fixed_assignment.solve(apart, np.ones(3), between, fixed_assignment.Costs(1.0, MU, norm, False))
            is None
        )


def test_without_a_split_there_is_nothing_to_solve() -> None:
    assignment = fixed_assignment.Assignment(
        np.ones((3, 1), np.int64), np.ones((3, 1)), np.array([False]), np.ones((3, 1))
    )
    assert (
        fixed_assignment.solve(
            np.eye(3), np.ones(3), assignment, fixed_assignment.Costs(1.0, MU, "l2", False)
        )
        is None
    )


class TestSeconds:
    """A search asks for the time between trees, and one program of a wide table can take minutes."""

    @pytest.fixture
    def problem(self) -> Problem:
        return Problem(3, 1, "l2", False)

    def test_a_small_program_is_solved_even_if_time_is_up(self, problem: Problem) -> None:
        found = fixed_assignment.solve(
            problem.X, problem.weights, problem.assignment, problem.costs, seconds=0.0
        )
        assert found is not None
        assert problem.cost(found) == pytest.approx(problem.optimum(), rel=1e-4, abs=1e-4)

    @pytest.mark.slow
    def test_iterations_end_with_the_seconds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(0)
        X, n = rng.random((1500, 100)), 1500
        score = (X - 0.5) @ rng.normal(size=(100, 1))
        label = np.where(rng.random((n, 1)) < 0.9, np.sign(score), -np.sign(score))
        assignment = fixed_assignment.Assignment(np.ones((n, 1), dtype=int), label, np.ones(1, bool), score)
        costs = fixed_assignment.Costs(1.0, 0.0, "l2", False)
        assert fixed_assignment.solve(X, np.ones(n), assignment, costs) is not None
        monkeypatch.setattr(fixed_assignment, "SETUP_SECONDS", 0.0)
        monkeypatch.setattr(fixed_assignment, "LEAST_SECONDS", 1e-6)
        assert fixed_assignment.solve(X, np.ones(n), assignment, costs, seconds=1e-6) is None
