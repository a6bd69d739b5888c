"""The whole model by cases of its top level: against brute force, and what a limit or a wrong case leaves."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import oracles
import pytest
from long_cases import long
from test_level_bound import GAP, SHOWN, made, tiny

import octsvm
from octsvm import solvers
from octsvm.formulations.registry import formulation
from octsvm.options import Clock, SolveOptions
from octsvm.solving.case_search import Cases, CaseSearch, Restriction
from octsvm.solving.dispatch import solve_with
from octsvm.solving.level_bound import LevelBound, LevelSearch, narrowed

FORM = formulation("octsvm")


def left_open(model: Any, cost: float, nodes: int) -> LevelBound:
    """What few nodes leave of the cases of a model's top level, where a tree of that cost is known, narrowed once more."""
    info = model.info
    problems = FORM.top_level(info.data, info.params, cost)
    level = LevelSearch(problems, cost, GAP, most_nodes=nodes).run(lambda *_: False, Clock())
    return narrowed(level, cost, GAP, Clock(), math.inf, lambda: False) if level.cases else level


def cases_of(model: Any, level: LevelBound) -> Cases:
    each = [Restriction(FORM.in_case(model, case.problem), case.bound) for case in level.cases]
    return Cases(level.below, each)


@pytest.mark.parametrize("worse", [1.0, 1.5])
@pytest.mark.parametrize("seed", [*SHOWN, *long(seed for seed in range(300) if seed not in SHOWN)])
@pytest.mark.quick_cases("[1-5]-1.5", "7-1.0")
@pytest.mark.every_value
def test_the_optimum_is_that_of_brute_force(seed: int, worse: float) -> None:
    """Whatever tree is known: the best one, or a worse one."""
    X, sign, weights, params = tiny(seed)
    known = oracles.octsvm_optimum(X, sign, weights=weights, **params)
    model = octsvm.build("octsvm", X, sign, weights=weights, **params)
    cost = min(model.info.upper_bound, known * worse + 1e-9)
    level = left_open(model, cost, nodes=seed % 4 + 1)
    assert level.value <= known * (1 + 1e-6) + 1e-7
    cases = cases_of(model, level)
    if not cases.each:  # nothing better than the known tree is left
        assert cost <= known * (1 + 2 * GAP) + 1e-7
        return
    options = SolveOptions(time_limit=60, gap=GAP)
    result = solve_with(model, options, cases=cases)
    assert result.bound <= known * (1 + 1e-6) + 1e-7
    assert min(cost, result.objective) <= known * (1 + 2 * GAP) + 1e-6
    if cost > known * (1 + 1e-3) and known > 1e-6:
        assert result.status == "optimal"
        assert result.objective == pytest.approx(known, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi"])
@pytest.mark.slow
def test_every_engine_solves_them(solver: str) -> None:
    if solvers.installed(solver) is None:
        pytest.skip(f"{solver} is not installed")
    X, y = made(12, 2, 4, 0.2)
    params = {"depth": 1, "c1": 3.0, "c2": 2.0, "c3": 0.2}
    model = octsvm.build("octsvm", X, y, **params)
    whole = octsvm.solve(model, solver=solver, time_limit=60)
    level = left_open(model, model.info.upper_bound, nodes=1)
    assert len(level.cases) > 1
    result = solve_with(model, SolveOptions(solver=solver, time_limit=60), cases=cases_of(model, level))
    assert result.status == "optimal"
    assert result.objective == pytest.approx(whole.objective, rel=3e-4)
    assert result.rounds >= len(level.cases)


def test_a_limit_leaves_the_bound_of_the_weakest_case() -> None:
    """Cases that nobody looked at keep theirs, and a case whose bounds cross has no tree."""
    X, y = made(20, 2, 1, 0.2)
    model = octsvm.build("octsvm", X, y, depth=1, c1=3.0, c2=2.0, c3=0.2)
    split, score = model.pruning.d[1], model.split.s[0, 1]
    start = FORM.constant_tree(model.info.data, model.info.params)
    cases = [Restriction([(split, 1.0, 1.0)], 0.25), Restriction([(score, 2.0, 1.0)], 0.5)]
    stopped = solve_with(
        model,
        SolveOptions(time_limit=60, start=start, callback=lambda progress: progress.phase == "solving"),
        cases=Cases(math.inf, cases),
    )
    assert stopped.stop == "interrupted"
    assert 0.25 <= stopped.bound <= stopped.objective
    alone = solve_with(model, SolveOptions(time_limit=60, start=start), cases=Cases(math.inf, cases[1:]))
    assert alone.status == "optimal"
    assert alone.objective == pytest.approx(model.info.upper_bound)


class Planned(CaseSearch):
    """What becomes of each attempt is known: the seconds that it takes, the case's bound after it, and why it ended."""

    def __init__(
        self,
        limit: float,
        bounds: list[float],
        attempts: list[tuple[float, float, str]],
        overlapping: bool = True,
    ) -> None:
        self.time_left, self.attempts = limit, iter(attempts)
        self.made: list[tuple[int, float]] = []
        told: Any = SimpleNamespace(notes=[], bound=0.0, objective=100.0, asked=SimpleNamespace(gap=0.0))
        told.tell, told.left = lambda: False, lambda: self.time_left
        told.run = lambda start: "whole"
        each = [Restriction([], bound) for bound in bounds]
        super().__init__(told, None, False, Cases(100.0, each, overlapping))

    def _solve(self, k: int, seconds: float) -> str:
        self.made.append((k, seconds))
        taken, self.bounds[k], stop = next(self.attempts)
        self.time_left -= taken
        return stop


def test_other_cases_follow_one_that_is_not_done_where_the_engine_raised_its_bound() -> None:
    done = (10.0, 100.0, "optimal")
    helped = Planned(90.0, [1.0, 3.0, 2.0], [(30.0, 5.0, "time_limit"), done, done, done])
    assert helped.run(None) == "optimal"
    # An equal share of what is left for each, and for the one that was not done what the others left.
    assert helped.made == [(0, 30.0), (1, 30.0), (2, 50.0), (0, 40.0)]
    assert helped.rounds.bound == 100.0
    numeric = Planned(90.0, [1.0, 2.0], [(5.0, 10.0, "numeric"), done])
    assert numeric.run(None) == "numeric"
    assert [k for k, _ in numeric.made] == [0, 1]
    helpless = Planned(90.0, [1.0, 3.0, 2.0], [(30.0, 3.0, "time_limit")])
    assert helpless.run(None) == "time_limit"
    assert helpless.rounds.bound == 1.0
    assert Planned(90.0, [1.0], [(30.0, 1.0, "time_limit")], overlapping=False).run(None) == "whole"
    twice = Planned(60.0, [1.0, 2.0], [(30.0, 5.0, "time_limit"), (30.0, 4.0, "time_limit")])
    assert twice.run(None) == "time_limit"
    assert twice.rounds.bound == 4.0


def test_where_no_point_as_good_as_the_cases_is_known_the_whole_model_is_solved() -> None:
    """A big_m of the user's may refuse the tree that the cases rest on, and with it all that they hold."""
    X, y = made(8, 2, 4, 0.2)
    model = octsvm.build("octsvm", X, y, depth=1, c1=3.0, c2=2.0, c3=0.2)
    whole = octsvm.solve(model, time_limit=60)
    none = Restriction([(model.pruning.d[1], 0.0, 0.0)], 0.0)
    result = solve_with(model, SolveOptions(time_limit=60), cases=Cases(whole.objective / 2, [none]))
    assert result.status == "optimal"
    assert result.objective == pytest.approx(whole.objective, rel=3e-4)
    assert result.bound <= whole.objective * (1 + 1e-6)
