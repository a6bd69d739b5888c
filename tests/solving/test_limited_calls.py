"""build, fit_path, read_solution and race under a time limit: declared as that of a fit, and kept."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import octsvm
from octsvm.formulations.registry import formulation
from octsvm.options import Clock
from octsvm.solving import strategies

OVER = 2.0  # seconds
SMALL = [[0.1, 0.9], [0.2, 0.7], [0.8, 0.2], [0.9, 0.3], [0.4, 0.1], [0.5, 0.8]], list("aabbab")
FORMULATIONS: list[tuple[str, dict[str, Any]]] = [
    ("oct", {"depth": 2}),
    ("oct_h", {"depth": 2}),
    ("re_svm", {}),
    ("octsvm", {"depth": 1}),
    ("moctsvm", {"depth": 1}),
]


def table(n: int, p: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.random((n, p))
    return X, (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n) > 1).astype(int)


def late(self: Clock, share: float = 1.0) -> bool:
    return self.limit < np.inf


@pytest.mark.parametrize(("name", "params"), FORMULATIONS)
def test_a_model_is_built_to_its_end_or_not_at_all(
    name: str, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table(150, 4)
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
        octsvm.build("octsvm", *table(2000, 200), depth=9, time_limit=5)
    assert time.monotonic() - began < OVER


@pytest.mark.parametrize(("name", "params"), FORMULATIONS)
def test_a_path_ends_with_its_limit_and_has_a_result(name: str, params: dict[str, Any]) -> None:
    X, y = table(400, 6)
    price = "alpha" if name in ("oct", "oct_h") else "c1"
    settings = [{price: 0.5 + k} for k in range(60)]
    formulation(name).load_libraries()
    began = time.monotonic()
    found = list(octsvm.fit_path(name, X, y, settings, time_limit=1, **params))
    assert time.monotonic() - began < 1 + OVER
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
    model = octsvm.build("octsvm", *SMALL, depth=1)
    octsvm.write(model, folder / "m.mps")
    result = octsvm.solve(model)
    solution = folder / "m.sol"
    solution.write_text(
        "solution status: optimal\n"
        + f"objective value: {result.objective!r}\n"
        + "".join(f"{name} {value!r}\n" for name, value in named_values(folder, model).items())
    )
    return octsvm.build("octsvm", *SMALL, depth=1), solution, result.objective


def named_values(folder: Path, model: Any) -> dict[str, float]:
    """Values by the columns of the written file."""
    from octsvm.files import column_map

    columns = column_map.read(folder / "m.mps.json").columns
    by_name = {v.name: v for v in model.component_data_objects(pyo.Var)}
    return {column: float(by_name[v].value or 0.0) for column, v in columns if v is not None}


def test_a_solution_is_read_within_a_limit_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, path, objective = solved_file(tmp_path)
    assert octsvm.read_solution(model, path, kind="scip", time_limit=600).objective == pytest.approx(
        objective, rel=1e-4
    )
    again = octsvm.build("octsvm", *SMALL, depth=1)
    before = [(v, v.value) for v in again.component_data_objects(pyo.Var)]
    monkeypatch.setattr(Clock, "late", late)
    with pytest.raises(octsvm.TimeLimitReached, match="to check the answer"):
        octsvm.read_solution(again, path, kind="scip", time_limit=5)
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
