"""A time limit holds within two seconds, whatever the size, the depth and the strategy, and whatever is limited."""

from __future__ import annotations

import gc
import inspect
import itertools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
from instances import sloped
from waiting import PATIENCE, at_most

import octsvm
import octsvm.api  # whole, before anything of it is replaced
from octsvm.backends import executable
from octsvm.formulations.blocks.rows import collected, uncollected
from octsvm.formulations.blocks.sizes import Shape
from octsvm.formulations.bounds import hull
from octsvm.formulations.registry import formulation
from octsvm.options import Clock
from octsvm.solving import certificate, dispatch, engine, steps_ahead, strategies

OVER = 2.0  # seconds


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
    monkeypatch.setattr(steps_ahead, "COMPILING", 1e9)


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
@pytest.mark.every_value
def test_where_the_limit_leaves_no_time_no_model_is_built(
    name: str, n: int, p: int, params: dict[str, Any], strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strategies, "build_from", refuse)
    X, y = sloped(n, p)
    result = held(name, X, y, 0.4, strategy=strategy, **params)
    assert result.stop == "time_limit"
    assert result.status in ("feasible", "fallback")
    assert result.bound == 0
    assert result.notes[0].startswith("no time to build the model (")


def test_a_small_model_is_built_at_a_short_limit() -> None:
    X, y = sloped(40, 3)
    result = held("oct", X, y, 2.0, depth=2)
    assert not any("no time" in note for note in result.notes)
    assert result.status == "optimal"


@pytest.mark.slow
def test_equal_values_of_a_table_count_before_it_is_called_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = sloped(3000, 6)
    form = formulation("oct")
    whole = form.size(form.Params.make("oct", depth=2), Shape(3000, 6, 2)).nonzeros
    monkeypatch.setattr(strategies, "MODEL_SECONDS", 2 * PATIENCE / whole)  # of a table without equal values
    result = octsvm.fit("oct", np.round(2 * X), y, strategy="exact", time_limit=PATIENCE, depth=2)
    assert result.status == "optimal"
    assert not any("no time" in note for note in result.notes)


def test_a_start_comes_back_where_no_model_is_built() -> None:
    X, y = sloped(600, 40)
    start = octsvm.fit("oct", X[:, :], y, depth=1, time_limit=0.4).tree
    best = octsvm.evaluate("oct", start, X, y).objective
    result = held("oct", X, y, 0.4, depth=4, start=start, strategy="exact")
    assert result.objective <= best * (1 + 1e-9)
    assert result.status == "feasible"


def test_a_solver_that_is_not_there_is_refused_also_without_a_model() -> None:
    X, y = sloped(600, 40)
    with pytest.raises(octsvm.UnknownSolver):
        octsvm.fit("oct", X, y, depth=4, time_limit=1, solver="no such solver")


@pytest.mark.slow
def test_progress_is_told_also_without_a_model() -> None:
    X, y = sloped(600, 40)
    seen: list[octsvm.Progress] = []
    held("oct", X, y, 1.0, depth=4, callback=lambda progress: bool(seen.append(progress)))
    assert seen
    assert all(a.incumbent >= b.incumbent for a, b in itertools.pairwise(seen))


def test_size_without_a_search_is_an_upper_one() -> None:
    form = formulation("oct")
    X, y = sloped(60, 3)
    model = octsvm.build("oct", X, y, depth=2)
    data, params = model.info.data, model.info.params
    exact, most = form.size(params, data), form.size(params, data, stop=lambda: True)
    assert (most.variables, most.binaries) == (exact.variables, exact.binaries)
    assert exact.nonzeros <= most.nonzeros <= 2 * exact.nonzeros


@pytest.mark.parametrize("strategy", ["balanced", "exact"])
@pytest.mark.parametrize("name", ["oct", "octsvm"])
@pytest.mark.slow_cases("octsvm-*")
def test_the_heuristics_get_the_time_that_a_model_which_is_not_handed_over_leaves(
    name: str, strategy: str, handing_over_takes_long: None
) -> None:
    X, y = sloped(36, 3)  # too few rows for a bound from the top level, which would take a third of the limit
    result = held(name, X, y, 3, depth=2, strategy=strategy)
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
@pytest.mark.every_value
def test_a_large_model_with_own_rows_is_not_handed_over_late(
    name: str, kind: str, handing_over_takes_long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = octsvm.build(name, *sloped(40, 3), depth=2)
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
    X, y = sloped(40, 3)
    start = octsvm.fit("octsvm", X, y, depth=1, time_limit=0.4).tree
    model = octsvm.build("octsvm", X, y, depth=1)
    model.mine = pyo.Constraint(expr=pyo.quicksum(model.relabelling.xi.values()) <= -1)  # no tree at all
    with pytest.raises(octsvm.TreeNotAdmitted):
        octsvm.solve(model, time_limit=5, start=start)
    monkeypatch.setattr(steps_ahead, "MANY_VARIABLES", 10)
    monkeypatch.setattr(steps_ahead, "OTHER_WAYS", 1e9)
    result = octsvm.solve(model, time_limit=5, start=start)
    assert (result.status, result.stop) == ("no_tree", "time_limit")


@pytest.mark.parametrize("solver", ["cbc", "glpk", "bonmin", "scip"])
def test_a_model_is_not_written_for_an_engine_late(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if octsvm.solvers.installed(solver) is None:
        pytest.skip(f"{solver} is not installed")

    model = octsvm.build("octsvm", *sloped(40, 3), depth=1)
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
    X, _ = sloped(400, 5)
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
        ("oct", 150, 4, {"depth": 9}),
        ("oct", 5000, 50, {"depth": 2}),
        ("oct", 2000, 200, {"depth": 4}),
        ("oct_h", 2000, 50, {"depth": 3}),
        ("octsvm", 300, 10, {"depth": 1}),
        ("octsvm", 5000, 50, {"depth": 2}),
        ("octsvm", 2000, 200, {"depth": 9}),
        ("re_svm", 5000, 50, {}),
    ],
)
@pytest.mark.every_value
def test_large_tables_and_deep_trees(
    name: str, n: int, p: int, params: dict[str, Any], strategy: str
) -> None:
    held(name, *sloped(n, p), 2.0, strategy=strategy, **params)


# -- build, fit_path, read_solution and race, whose limit is declared as that of a fit ------------------------------------

SMALL = [[0.1, 0.9], [0.2, 0.7], [0.8, 0.2], [0.9, 0.3], [0.4, 0.1], [0.5, 0.8]], list("aabbab")
FORMULATIONS: list[tuple[str, dict[str, Any]]] = [
    ("oct", {"depth": 2}),
    ("oct_h", {"depth": 2}),
    ("re_svm", {}),
    ("octsvm", {"depth": 1}),
    ("moctsvm", {"depth": 1}),
]


def late(self: Clock, share: float = 1.0) -> bool:
    return self.limit < np.inf


@pytest.mark.parametrize(("name", "params"), FORMULATIONS)
def test_a_model_is_built_to_its_end_or_not_at_all(
    name: str, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = sloped(150, 4)
    whole = octsvm.build(name, X, y, time_limit=600, **params)
    assert whole.nvariables() == octsvm.build(name, X, y, **params).nvariables()
    monkeypatch.setattr(Clock, "late", late)  # between two rows
    with pytest.raises(
        octsvm.TimeLimitReached, match=r"no time to build the model \(\d+ variables"
    ) as caught:
        octsvm.build(name, X, y, time_limit=5, **params)
    assert isinstance(caught.value, (octsvm.OctsvmError, TimeoutError))
    if formulation(name).uses_upper_bound:
        with pytest.raises(octsvm.TimeLimitReached):
            octsvm.build(name, X, y, time_limit=5, upper_bound=1000.0, **params)


def test_what_no_machine_could_build_in_time_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "build_from", None)
    began = time.monotonic()
    with pytest.raises(octsvm.TimeLimitReached, match="462363071 nonzeros"):
        octsvm.build("octsvm", *sloped(2000, 200), depth=9, time_limit=5)
    assert time.monotonic() - began < OVER


@pytest.mark.parametrize(("name", "params"), FORMULATIONS)
def test_a_path_ends_with_its_limit_and_has_a_result(name: str, params: dict[str, Any]) -> None:
    X, y = sloped(400, 6)
    price = "alpha" if name in ("oct", "oct_h") else "c1"
    settings = [{price: 0.5 + k} for k in range(60)]
    formulation(name).load_libraries()
    began = time.monotonic()
    found = list(octsvm.fit_path(name, X, y, settings, time_limit=0.4, **params))
    assert time.monotonic() - began < 0.4 + OVER
    assert [k for k, _ in found] == list(range(len(found)))
    assert found
    for k, result in found[:2]:
        objective = octsvm.evaluate(name, result.tree, X, y, **settings[k]).objective
        assert objective == pytest.approx(result.objective)


def test_a_path_without_a_limit_has_all_settings() -> None:
    settings = [{"c1": 1.0}, {"c1": 10.0}]
    wanted = [r.objective for _, r in octsvm.fit_path("re_svm", *SMALL, settings)]
    found = [r.objective for _, r in octsvm.fit_path("re_svm", *SMALL, settings, time_limit=600)]
    assert found == wanted
    assert len(found) == 2


def solved_file(folder: Path) -> tuple[Any, Path, float]:
    """A model, a solution file of it, and its objective."""
    model = octsvm.build("octsvm", *SMALL, depth=1, norm="l1")
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(octsvm.write(model, folder / "m.mps")))
    solver.run()
    solver.writeSolution(str(folder / "m.sol"), 0)
    return model, folder / "m.sol", octsvm.solve(model).objective


@pytest.mark.slow
def test_a_solution_is_read_within_a_limit_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, path, objective = solved_file(tmp_path)
    assert octsvm.read_solution(model, path, time_limit=600).objective == pytest.approx(objective, rel=1e-4)
    again = octsvm.build("octsvm", *SMALL, depth=1, norm="l1")
    before = [(v, v.value) for v in again.component_data_objects(pyo.Var)]
    monkeypatch.setattr(Clock, "late", late)
    with pytest.raises(octsvm.TimeLimitReached, match="to check the answer"):
        octsvm.read_solution(again, path, time_limit=5)
    assert all(v.value == value for v, value in before)


def test_a_race_builds_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "LEAST_BUILDING_SECONDS", 1e3)
    with pytest.raises(octsvm.TimeLimitReached):
        octsvm.race("oct", *SMALL, depth=1, solvers=["highs"], time_limit=5)


CALLS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (octsvm.build, ("oct", *SMALL)),
    (octsvm.fit_path, ("oct", *SMALL, [{}])),
    (octsvm.read_solution, (None, "no file")),
]


@pytest.mark.parametrize(("call", "args"), CALLS)
def test_the_limit_is_declared_and_checked_as_that_of_a_fit(
    call: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    assert inspect.signature(call).parameters["time_limit"].default is None
    assert "Wall-clock seconds over everything" in (call.__doc__ or "")
    for wrong in (0, -1, "5", float("nan"), True):
        with pytest.raises(octsvm.InvalidParameter, match=r"time_limit=.* positive number of seconds"):
            call(*args, time_limit=wrong)
    with pytest.raises(octsvm.InvalidParameter, match="timelimit"):
        call(*args, timelimit=5)
