"""An infeasible model names the rows and fixings of the user's own that conflict: each set is one, and no smaller one is."""

from __future__ import annotations

from typing import Any

import engines
import numpy as np
import pyomo.environ as pyo
import pytest
from engines import Entry, every_way, solve
from long_cases import long

import octsvm
from octsvm import solvers
from octsvm.formulations.registry import NAMES

RNG = np.random.default_rng(7)
X = RNG.random((7, 2))
Y = np.array([0, 1, 0, 1, 1, 0, 1])


def build(formulation: str, **more: Any) -> pyo.ConcreteModel:
    return engines.small(formulation, X, Y, **more)


def binaries(model: pyo.ConcreteModel) -> list[Any]:
    """Integers of the formulation, of which rows are made."""
    return [v for v in model.component_data_objects(pyo.Var) if v.is_binary() and not v.fixed]


def crowd(model: pyo.ConcreteModel) -> Any:
    """Rows and a fixing that conflict, among rows that any tree keeps; the variable that is fixed."""
    one, two, three = binaries(model)[-3:]
    model.harmless = pyo.ConstraintList()
    for var in binaries(model)[:8]:
        model.harmless.add(var <= 1)
    model.total = pyo.Constraint(expr=one + two + three >= 1)
    model.group = pyo.Block()
    model.group.none = pyo.Constraint([1, 2], rule=lambda b, k: (one if k == 1 else two) <= 0)
    three.fix(0)
    return three


def require_each(model: pyo.ConcreteModel, conflict: tuple[str, ...], solver: str) -> None:
    """What is named has no tree by itself, and without any one of it there is one: by brute force, on another engine."""
    rows = {r.name: r for c in ("mine", "total", "group", "harmless") for r in rows_in(model, c)}
    fixed = {f"{v.name} = {v.value:g}": v for v in model.component_data_objects(pyo.Var) if v.fixed}
    parts: dict[str, Any] = rows | fixed
    assert set(conflict) <= set(parts)
    for row in rows.values():
        row.deactivate()

    def take(name: str, part: Any, on: bool) -> None:
        if name in rows:
            part.activate() if on else part.deactivate()
        else:
            part.fix() if on else part.unfix()

    for name in conflict:
        take(name, parts[name], True)
    assert infeasible(model, solver)
    for name in conflict:
        take(name, parts[name], False)
        assert not infeasible(model, solver), name
        take(name, parts[name], True)


def rows_in(model: pyo.ConcreteModel, name: str) -> list[Any]:
    found = model.component(name)
    if found is None:
        return []
    return list(found.component_data_objects(pyo.Constraint) if found.ctype is pyo.Block else found.values())


def infeasible(model: pyo.ConcreteModel, solver: str) -> bool:
    return octsvm.solve(model, solver=solver, time_limit=20, gap=0.9).status == "infeasible"


def another(than: str) -> str:
    """The engine that is soonest done with models like these, other than that one."""
    names = [name for name in ("cbc", "scip", "gurobi") if solvers.installed(name) is not None]
    return next(name for name in [*names, "highs"] if name != than)


@every_way
@pytest.mark.parametrize("formulation", NAMES)
@pytest.mark.quick_cases("oct-highs", "re_svm-highs")
@pytest.mark.every_value
def test_the_rows_that_conflict_are_named(entry: Entry, formulation: str) -> None:
    # Of the models with cones that of re_svm is soonest solved by another engine.
    model = build(formulation, **({"norm": "l1"} if formulation in ("octsvm", "moctsvm") else {}))
    fixed = crowd(model)
    result = solve(entry, model, time_limit=20)
    assert (result.status, result.stop) == ("infeasible", "infeasible")
    assert result.conflict
    assert not any("harmless" in name for name in result.conflict)
    assert ", ".join(result.conflict) in result.notes[-1]
    assert "leave one of them out" in result.notes[-1] or "leave it out" in result.notes[-1]
    assert result.to_dict()["conflict"] == list(result.conflict)
    assert fixed.fixed
    assert fixed.value == 0
    require_each(model, result.conflict, another(entry.name))


@pytest.mark.parametrize("seed", [*range(2), *long(range(2, 8))])
@pytest.mark.parametrize("formulation", ["oct", "re_svm"])
@pytest.mark.quick_cases("oct-0", "oct-1")
def test_of_random_rows_each_named_one_is_needed(formulation: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = build(formulation)
    own = list(rng.permutation(binaries(model))[:4])
    model.mine = pyo.ConstraintList()
    for _ in range(12):
        a, b = (own[k] for k in rng.choice(len(own), 2, replace=False))
        model.mine.add([a + b >= 1, a + b <= 1, a >= b, a - b >= 1 - 2 * rng.integers(2)][rng.integers(4)])
    result = octsvm.solve(model, time_limit=20)
    if result.status == "infeasible":
        assert result.conflict
        require_each(model, result.conflict, another(result.solver))
    else:
        assert result.conflict == ()


def test_a_row_alone_and_a_fixing_alone() -> None:
    model = build("oct")
    first = binaries(model)[0]
    model.mine = pyo.Constraint(expr=first >= 2)
    result = octsvm.solve(model)
    assert result.conflict == ("mine",)
    assert result.notes[-1] == "no tree keeps mine of yours: leave it out, or relax it"
    model = build("oct")
    sides = [model.assignment.z[0, t] for t in (2, 3)]
    for side in sides:
        side.fix(0)
    result = octsvm.solve(model)
    assert result.status == "infeasible"
    assert sorted(result.conflict) == [f"{side.name} = 0" for side in sides]


def test_a_model_of_nobody_else() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.Binary)
    model.objective = pyo.Objective(expr=model.x[0])
    model.low = pyo.Constraint(expr=model.x[0] + model.x[1] >= 1)
    model.high = pyo.Constraint(expr=model.x[0] + model.x[1] <= 0.5)
    model.other = pyo.Constraint(expr=model.x[2] <= 1)
    result = octsvm.solve(model)
    assert (result.stop, sorted(result.conflict)) == ("infeasible", ["high", "low"])


def test_no_time_no_smallest_set(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("oct")
    crowd(model)
    from octsvm.solving import conflicts

    known = conflicts.find_conflict(model, 10.0)
    assert known is not None
    assert known.smallest
    calls = []
    monkeypatch.setattr(conflicts.Clock, "late", lambda self: bool(calls.append(1)) or len(calls) > 1)
    hurried = conflicts.find_conflict(model, 10.0)
    assert hurried is not None
    assert not hurried.smallest
    assert len(hurried.names) > len(known.names)
    assert "a smaller set may conflict as well" in hurried.note()


def test_what_is_feasible_or_not_known_names_nothing() -> None:
    from octsvm.solving.conflicts import find_conflict

    assert find_conflict(build("octsvm"), 5.0) is None
    model = build("re_svm")
    model.curved = pyo.Constraint(expr=model.split.omega[1, 0] ** 2 <= -1)  # no linear row says so
    assert find_conflict(model, 5.0) is None


def small_octsvm(norm: str = "l2", upper_bound: float | None = None) -> pyo.ConcreteModel:
    rng = np.random.default_rng(0)
    X = rng.random((14, 3))
    y = (X @ [1.0, -0.7, 0.5] > 0.4).astype(int)
    return octsvm.build("octsvm", X, y, depth=1, c1=10, c2=5, c3=0.5, norm=norm, upper_bound=upper_bound)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("upper_bound", [None, 5000])
def test_rows_against_the_norm_conflict_at_any_cost(norm: str, upper_bound: float | None) -> None:
    model = small_octsvm(norm, upper_bound)
    model.tiny = pyo.Constraint(expr=model.margin.delta <= 0.4)
    model.big = pyo.Constraint(expr=model.split.omega[1, 0] >= 1)
    result = octsvm.solve(model, solver="highs", time_limit=20)
    assert (result.status, result.conflict) == ("infeasible", ("tiny", "big"))
    text = result.summary()
    assert "inf =" not in text
    assert "inf%" not in text


@pytest.mark.parametrize(("delta", "status"), [(0.42, "infeasible"), (0.43, "optimal")])
@pytest.mark.slow
def test_the_norm_counts_all_weights_of_a_node(delta: float, status: str) -> None:
    # ½‖(0.6, 0.6)‖ = 0.4243: each weight alone goes with either δ.
    model = small_octsvm(upper_bound=5000)
    model.tiny = pyo.Constraint(expr=model.margin.delta <= delta)
    model.first = pyo.Constraint(expr=model.split.omega[1, 0] >= 0.6)
    model.second = pyo.Constraint(expr=model.split.omega[1, 1] >= 0.6)
    result = octsvm.solve(model, solver="highs", time_limit=20)
    assert (result.status == "infeasible") == (status == "infeasible")
    if status == "infeasible":
        assert result.conflict == ("tiny", "first", "second")
    else:
        assert result.tree is not None


def test_the_advice_on_a_narrow_model_asks_for_more_than_it_has() -> None:
    model = small_octsvm(upper_bound=150)
    model.wide = pyo.Constraint(expr=model.margin.delta >= 300)
    result = octsvm.solve(model, solver="highs", time_limit=20)
    assert result.status == "no_tree"
    assert "upper_bound= more than 150" in result.notes[-1]


def test_a_tree_without_a_split_is_put_down_to_prices_only_where_it_is_proved() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.random((10, 2)), np.array([0, 1] * 5)
    costs = {"depth": 1, "c1": 0.01, "c2": 0.01, "c3": 5}
    model = octsvm.build("octsvm", X, y, **costs)
    assert any("Larger c1 and c2" in note for note in octsvm.solve(model, time_limit=20).notes)
    model.mine = pyo.Constraint(expr=model.pruning.d[1] == 0)
    assert not any("Larger c1 and c2" in note for note in octsvm.solve(model, time_limit=20).notes)


def test_what_a_model_remembers_is_told_in_a_line() -> None:
    text = repr(small_octsvm().info)
    assert len(text) < 300
    assert "14 rows" in text
