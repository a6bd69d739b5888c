"""A time limit holds within two seconds, whatever the size, the depth and the strategy."""

from __future__ import annotations

import gc
import itertools
import threading
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from waiting import PATIENCE, at_most

import octsvm
import octsvm.api  # whole, before anything of it is replaced
from octsvm.backends import executable
from octsvm.formulations.blocks.rows import collected, uncollected
from octsvm.formulations.blocks.sizes import Shape
from octsvm.formulations.bounds import hull
from octsvm.formulations.registry import formulation
from octsvm.solving import certificate, dispatch, engine, steps_ahead, strategies

OVER = 2.0  # seconds


def table(n: int, p: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.random((n, p))
    return X, (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n) > 1).astype(int)


def held(name: str, X: Any, y: Any, limit: float, **params: Any) -> octsvm.Result:
    """A fit within the limit, its tree checked by itself."""
    with at_most(limit + OVER):
        result = octsvm.fit(name, X, y, time_limit=limit, **params)
    costs = {k: v for k, v in params.items() if k not in ("depth", "strategy", "solver", "callback", "start")}
    assert octsvm.evaluate(name, result.tree, X, y, **costs).objective == pytest.approx(result.objective)
    return result


def refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("a step was taken that there is no time for")


@pytest.fixture
def handing_over_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small models count as large, and compiling one would take hours."""
    monkeypatch.setattr(steps_ahead, "MANY_VARIABLES", 10)
    monkeypatch.setattr(dispatch, "COMPILING", 1e9)


@pytest.fixture(autouse=True)
def loaded() -> None:
    """The first import of the heuristics' libraries is no part of a limit."""
    for name in ("oct", "oct_h", "re_svm", "octsvm"):
        formulation(name).load_libraries()


@pytest.mark.parametrize("strategy", ["balanced", "exact"])
@pytest.mark.parametrize(
    ("name", "n", "p", "params"),
    [
        ("oct", 400, 30, {"depth": 4}),
        ("oct", 150, 4, {"depth": 9}),
        ("oct", 1000, 100, {"depth": 2}),
        ("oct_h", 1500, 50, {"depth": 3}),
        ("octsvm", 1500, 50, {"depth": 2}),
        ("octsvm", 150, 4, {"depth": 9}),
        ("re_svm", 4000, 60, {}),
    ],
)
@pytest.mark.quick_cases("oct-150-*")
def test_where_the_limit_leaves_no_time_no_model_is_built(
    name: str, n: int, p: int, params: dict[str, Any], strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strategies, "build_from", refuse)
    X, y = table(n, p)
    result = held(name, X, y, 1.0, strategy=strategy, **params)
    assert result.stop == "time_limit"
    assert result.status in ("feasible", "fallback")
    assert result.bound == 0
    assert result.notes[0].startswith("no time to build the model (")


def test_a_small_model_is_built_at_a_short_limit() -> None:
    X, y = table(40, 3)
    result = held("oct", X, y, 2.0, depth=2)
    assert not any("no time" in note for note in result.notes)
    assert result.status == "optimal"


def test_equal_values_of_a_table_count_before_it_is_called_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(3000, 6)
    form = formulation("oct")
    whole = form.size(form.Params.make("oct", depth=2), Shape(3000, 6, 2)).nonzeros
    monkeypatch.setattr(strategies, "MODEL_SECONDS", 2 * PATIENCE / whole)  # of a table without equal values
    result = octsvm.fit("oct", np.round(2 * X), y, strategy="exact", time_limit=PATIENCE, depth=2)
    assert result.status == "optimal"
    assert not any("no time" in note for note in result.notes)


def test_a_start_comes_back_where_no_model_is_built() -> None:
    X, y = table(600, 40)
    start = octsvm.fit("oct", X[:, :], y, depth=1, time_limit=1).tree
    best = octsvm.evaluate("oct", start, X, y).objective
    result = held("oct", X, y, 1.0, depth=4, start=start, strategy="exact")
    assert result.objective <= best * (1 + 1e-9)
    assert result.status == "feasible"


def test_a_solver_that_is_not_there_is_refused_also_without_a_model() -> None:
    X, y = table(600, 40)
    with pytest.raises(octsvm.UnknownSolver):
        octsvm.fit("oct", X, y, depth=4, time_limit=1, solver="no such solver")


def test_progress_is_told_also_without_a_model() -> None:
    X, y = table(600, 40)
    seen: list[octsvm.Progress] = []
    held("oct", X, y, 1.0, depth=4, callback=lambda progress: bool(seen.append(progress)))
    assert seen
    assert all(a.incumbent >= b.incumbent for a, b in itertools.pairwise(seen))


def test_size_without_a_search_is_an_upper_one() -> None:
    form = formulation("oct")
    X, y = table(60, 3)
    model = octsvm.build("oct", X, y, depth=2)
    data, params = model.info.data, model.info.params
    exact, most = form.size(params, data), form.size(params, data, stop=lambda: True)
    assert (most.variables, most.binaries) == (exact.variables, exact.binaries)
    assert exact.nonzeros <= most.nonzeros <= 2 * exact.nonzeros


@pytest.mark.parametrize("limit", [0.01, 1.0])
@pytest.mark.parametrize("name", ["oct", "octsvm"])
@pytest.mark.quick_cases("oct-1.0")
def test_a_large_model_is_not_handed_over_late(
    name: str, limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table(300, 30) if name == "oct" else table(1200, 30)
    model = octsvm.build(name, X, y, depth=3)
    monkeypatch.setattr(dispatch, "compile_program", refuse)
    monkeypatch.setattr(dispatch, "COMPILING", 1e3)
    with at_most(limit + OVER):
        result = octsvm.solve(model, time_limit=limit)
    assert result.stop == "time_limit"
    assert "no time to hand the model over" in result.notes[0]
    assert result.objective == pytest.approx(octsvm.evaluate(name, result.tree, X, y).objective)


@pytest.mark.parametrize("strategy", ["balanced", "exact"])
@pytest.mark.parametrize("name", ["oct", "octsvm"])
def test_the_heuristics_get_the_time_that_a_model_which_is_not_handed_over_leaves(
    name: str, strategy: str, handing_over_takes_long: None
) -> None:
    X, y = table(36, 3)  # too few rows for a bound from the top level, which would take a third of the limit
    result = held(name, X, y, 2.0, depth=2, strategy=strategy)
    assert "no time to hand the model over" in result.notes[0]
    assert result.tree.splits.any()
    assert name == "oct" or result.seconds > 1.5  # OCT's heuristic comes to an end
    # The bounds that OCT finds in building may prove the tree.
    assert (result.status, result.stop) in (("feasible", "time_limit"), ("optimal", "optimal"))
    assert result.status == "feasible" or result.bound == pytest.approx(result.objective, rel=1e-3)


def own_part(model: Any, kind: str) -> None:
    """A row of the user's own on the variables of the root; "impossible" admits no tree, "priced" has a variable in it."""
    first = [v for v in model.component_data_objects(pyo.Var) if v.is_binary()][:6]
    if kind == "priced":
        model.z = pyo.Var(bounds=(0, None))
        model.objective.set_value(model.cost + 0.01 * model.z)
    most = {"loose": 5.5, "impossible": -1}.get(kind, model.find_component("z"))
    model.mine = pyo.Constraint(expr=sum(first) <= most)


@pytest.mark.parametrize("kind", ["loose", "priced", "impossible"])
@pytest.mark.parametrize("name", ["oct", "oct_h", "octsvm"])
@pytest.mark.quick_cases("oct-loose", "octsvm-impossible")
def test_a_large_model_with_own_rows_is_not_handed_over_late(
    name: str, kind: str, handing_over_takes_long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = octsvm.build(name, *table(40, 3), depth=2)
    own_part(model, kind)
    before = [(v, v.value) for v in model.component_data_objects(pyo.Var)]
    monkeypatch.setattr(dispatch, "compile_program", refuse)
    result = octsvm.solve(model, time_limit=5)
    assert result.stop == "time_limit"
    assert "no time to hand the model over" in result.notes[0]
    assert result.bound == 0
    if kind == "impossible":
        assert result.status == "no_tree"
        assert all(var.value == value for var, value in before)
    else:
        assert certificate.broken_row(model) is None
        assert result.objective == pytest.approx(pyo.value(model.objective))
        assert result.status in ("feasible", "fallback")  # OCT meets a tree in building


def test_a_start_that_other_labels_would_save_is_not_refused_for_want_of_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = table(40, 3)
    start = octsvm.fit("octsvm", X, y, depth=1, time_limit=1).tree
    model = octsvm.build("octsvm", X, y, depth=1)
    model.mine = pyo.Constraint(expr=pyo.quicksum(model.relabelling.xi.values()) <= -1)  # no tree at all
    with pytest.raises(octsvm.TreeNotAdmitted):
        octsvm.solve(model, time_limit=5, start=start)
    monkeypatch.setattr(steps_ahead, "MANY_VARIABLES", 10)
    monkeypatch.setattr(dispatch, "OTHER_WAYS", 1e9)
    result = octsvm.solve(model, time_limit=5, start=start)
    assert (result.status, result.stop) == ("no_tree", "time_limit")


@pytest.mark.parametrize("solver", ["cbc", "glpk", "bonmin", "scip"])
def test_a_model_is_not_written_for_an_engine_late(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if octsvm.solvers.installed(solver) is None:
        pytest.skip(f"{solver} is not installed")

    model = octsvm.build("octsvm", *table(40, 3), depth=1)
    if solver == "scip":
        model.mine = pyo.Constraint(expr=pyo.exp(next(iter(model.margin.delta.values()))) <= 1e9)
    monkeypatch.setattr(engine, "WRITING", dict.fromkeys(engine.WRITING, 1e3))
    for place, writer in ((engine, "write_nl"), (engine, "write_linear_nl"), (executable, "write_model")):
        monkeypatch.setattr(place, writer, refuse)
    result = octsvm.solve(model, time_limit=5, solver=solver)
    assert result.stop == "time_limit"
    assert result.tree is not None


def test_neighbours_are_the_nearest_rows() -> None:
    rng = np.random.default_rng(0)
    for k in range(30):
        n, p = int(rng.integers(5, 200)), int(rng.integers(1, 8))
        X = rng.random((n, p)) if k % 2 else rng.integers(0, 4, (n, p)) / 3.0
        sign = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
        few, many = np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)
        for norm in ("l2", "l1"):
            wanted = [(int(i), int(many[np.argmin(hull.dual_length(X[many] - X[i], norm))])) for i in few]
            assert [mix.rows for mix in hull.neighbours(X, sign, norm)] == wanted


def test_neighbours_of_a_very_large_table_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = table(400, 5)
    sign = np.where(np.arange(400) % 4 == 0, 1.0, -1.0)
    assert hull.n_neighbours(sign, 5) == 100 == len(hull.neighbours(X, sign))
    monkeypatch.setattr(hull, "MOST_DIFFERENCES", 300 * 5 * 20)
    found = hull.neighbours(X, sign)
    assert hull.n_neighbours(sign, 5) == 20 == len(found)
    assert len({mix.rows[0] for mix in found}) == 20


def test_collection_is_paused_in_all_threads_and_comes_back() -> None:
    inside = threading.Event(), threading.Event()

    @uncollected
    def wait(k: int) -> None:
        inside[k].set()
        assert inside[1 - k].wait(PATIENCE)
        assert not gc.isenabled()

    @uncollected
    def engine() -> bool:
        with collected():
            return gc.isenabled()

    threads = [threading.Thread(target=wait, args=(k,)) for k in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.isenabled()
    assert engine()
    assert gc.isenabled()
    assert not gc.get_freeze_count()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["balanced", "exact", "heuristic"])
@pytest.mark.parametrize(
    ("name", "n", "p", "params"),
    [
        *[("oct", 150, 4, {"depth": depth}) for depth in (3, 6, 9)],
        *[("oct", 2000, 50, {"depth": depth}) for depth in (1, 3)],
        ("oct", 5000, 50, {"depth": 2}),
        ("oct", 2000, 200, {"depth": 4}),
        ("oct_h", 2000, 50, {"depth": 3}),
        ("octsvm", 2000, 50, {"depth": 3}),
        ("octsvm", 5000, 50, {"depth": 2}),
        ("octsvm", 2000, 200, {"depth": 9}),
        ("octsvm", 300, 10, {"depth": 1}),
        ("re_svm", 2000, 50, {}),
        ("re_svm", 5000, 50, {}),
    ],
)
def test_large_tables_and_deep_trees(
    name: str, n: int, p: int, params: dict[str, Any], strategy: str
) -> None:
    held(name, *table(n, p), 2.0, strategy=strategy, **params)
