"""Which tree is returned, and what is said of it."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import octsvm
from octsvm.formulations.base import Evaluation, ModelInfo
from octsvm.formulations.registry import formulation as find_formulation
from octsvm.solving.cutting_planes import CuttingPlaneLoop
from octsvm.solving.outcome import Candidate, Contest, Outcome

X = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0], [5.0, 0.0]]
Y = ["a", "a", "b", "b", "a", "a"]


def model_without_the_trees_that_are_known() -> pyo.ConcreteModel:
    """Rows of the user's own that exclude the constant tree; a tree with two splits is left."""
    model = octsvm.build("oct", X, Y, depth=2, alpha=0.01, variant="rank")
    model.mine = pyo.Constraint(expr=model.split.d[1] + model.split.d[3] >= 2)
    return model


def test_no_tree_is_known_is_not_there_is_none() -> None:
    model = model_without_the_trees_that_are_known()
    nothing = octsvm.solve(model, time_limit=1e-3)
    assert (nothing.status, nothing.stop, nothing.tree) == ("no_tree", "time_limit", None)
    assert nothing.bound < math.inf
    assert "nothing says that there is none" in nothing.summary()
    assert octsvm.solve(model).status == "optimal"
    model.more = pyo.Constraint(expr=model.split.d[1] <= 0)
    none = octsvm.solve(model)
    assert (none.status, none.stop, none.tree, none.bound) == ("infeasible", "infeasible", None, math.inf)


def test_infeasible_is_not_believed_where_another_solver_has_a_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CuttingPlaneLoop, "run", lambda *_: "infeasible")
    model = model_without_the_trees_that_are_known()
    wrong = octsvm.solve(model)
    assert (wrong.status, wrong.stop, wrong.tree, wrong.bound) == ("no_tree", "numeric", None, 0.0)
    assert any("has a point of it" in note for note in wrong.notes)
    model.more = pyo.Constraint(expr=model.split.d[1] <= 0)
    assert octsvm.solve(model).status == "infeasible"


def test_variables_of_the_users_own_without_values_leave_no_tree() -> None:
    model = octsvm.build("oct", X, Y, depth=1)
    model.w = pyo.Var(bounds=(0, 0.6))
    model.needs = pyo.Constraint(expr=model.w >= model.cost - 1)  # no tree is so cheap
    model.objective.set_value(model.cost + 0.5 * model.w)
    result = octsvm.solve(model, time_limit=1e-6)
    assert result.status in ("no_tree", "infeasible")  # a fast engine proves it in what is left
    assert result.tree is None
    assert math.isinf(result.gap)


@pytest.mark.parametrize(("more", "most"), [({"upper_bound": 8.0}, 8.0), ({"big_m": 1.0}, 0.0)])
def test_the_bound_of_no_tree_holds_for_all_trees(more: dict[str, Any], most: float) -> None:
    """Where big-M was built from 8 the model says nothing of trees that cost more, and with a small big_m of none."""
    table = np.random.default_rng(0).random((14, 2)), ["a", "b"] * 7
    with pytest.warns(UserWarning, match="proved") if "big_m" in more else nullcontext():
        model = octsvm.build("octsvm", *table, depth=1, **more)
    outcome = Outcome(info_of(model), "interrupted", bound=17.0, how={"solver": "s", "solver_version": "1"})
    outcome.limit_bound(False, "build it anew")
    result = outcome.result(1.0)
    assert (result.status, result.bound) == ("no_tree", most)
    assert result.notes


def info_of(model: pyo.ConcreteModel) -> ModelInfo:
    found: ModelInfo = model.info
    return found


def held(objective: float, source: str = "answer") -> Candidate:
    tree: Any = None
    return Candidate(tree, Evaluation(objective, {"errors": objective}, {}), objective, source)


@pytest.mark.parametrize(
    ("stop", "objective", "bound", "found", "mismatch", "status", "said"),
    [
        ("optimal", 3.0, 3.0, True, "", "optimal", "optimal"),
        ("time_limit", 3.0, 3.0, True, "", "optimal", "optimal"),
        ("time_limit", 3.0, 1.0, True, "", "feasible", "time_limit"),
        ("time_limit", 3.0, 1.0, False, "", "fallback", "time_limit"),
        ("optimal", 3.0, 1.0, True, "", "feasible", "numeric"),
        ("optimal", 3.0, 3.0, True, "it routes rows otherwise", "unverified", "numeric"),
        ("file", 3.0, 0.0, True, "", "feasible", "file"),
        ("file", 0.0, 0.0, True, "", "optimal", "file"),
    ],
)
def test_status_and_stop(
    stop: str, objective: float, bound: float, found: bool, mismatch: str, status: str, said: str
) -> None:
    info = info_of(octsvm.build("oct", X, Y, depth=1))
    outcome = Outcome(
        info,
        stop,
        held(objective),
        bound=bound,
        found=found,
        mismatch=mismatch,
        how={"solver": "s", "solver_version": "1"},
    )
    result = outcome.result(1.5)
    assert (result.status, result.stop) == (status, said)
    assert result.bound <= result.objective
    assert result.seconds == 1.5
    assert (result.notes[-1:] == (mismatch,)) == bool(mismatch)


def test_a_refuted_bound_is_dropped() -> None:
    outcome = Outcome(info_of(octsvm.build("oct", X, Y, depth=1)), "optimal", held(2.0), bound=2.5)
    outcome.limit_bound(False, "build it anew")
    assert outcome.bound == 0.0
    assert "refuted" in outcome.notes[0]


def test_a_tie_stays_with_the_first_and_the_model_holds_the_best() -> None:
    model = octsvm.build("oct", X, Y, depth=2, alpha=0.1)
    best = octsvm.fit("oct", X, Y, depth=2, alpha=0.1).tree
    form = find_formulation("oct")
    contest = Contest(model, form, info_of(model))
    constant = form.constant_tree(model.info.data, model.info.params)
    contest.enter(constant, "constant")
    assert contest.best is not None
    assert contest.best.source == "constant"
    contest.enter(best, "start")
    contest.enter(best, "answer")
    contest.enter(constant, "constant")
    assert contest.best.source == "start"
    assert contest.best.objective == pytest.approx(pyo.value(model.cost))
    assert np.array_equal(octsvm.extract(model).splits, best.splits)


@pytest.mark.parametrize(("heavy", "proved"), [(1e4, True), (1e12, False)])
def test_costs_below_an_engine_s_tolerances_are_not_called_optimal(heavy: float, proved: bool) -> None:
    """The best tree costs 41; with heavy rows that is less than the engine tells apart."""
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0]
    model = octsvm.build("oct", X, y, depth=2, alpha=0.5, weights=[heavy] * 4)
    model.toll = pyo.Var(within=pyo.Binary)
    model.paid = pyo.Constraint(expr=model.toll >= model.split.d[1])
    model.objective.set_value(model.cost + 40 * model.toll)
    result = octsvm.solve(model, solver="highs", time_limit=20)
    assert (result.status == "optimal") == proved
    assert result.objective == pytest.approx(41.0)
    assert proved or (result.stop == "numeric" and any("apart" in note for note in result.notes))


@pytest.mark.parametrize("unit", [1e-11, 1.0])
def test_costs_that_are_tiny_are_no_proof(unit: float) -> None:
    X = np.random.default_rng(1).random((12, 2))
    y = (X[:, 0] > 0.5).astype(int)
    model = octsvm.build("oct", X, y, weights=np.full(12, unit), depth=1, alpha=0.0, variant="rank")
    stopped = octsvm.solve(model, callback=lambda p: True)
    assert (stopped.status, stopped.gap) == ("fallback", 1.0)
    fitted = octsvm.fit(
        "octsvm", X, y, weights=np.full(12, unit), depth=1, strategy="exact", callback=lambda p: True
    )
    assert (fitted.status, fitted.gap) == ("fallback", 1.0)
