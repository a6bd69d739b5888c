"""A bound that the caller vouches for: whose it is stands wherever the status stands, and it cannot contradict a tree."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import other_host
import pyomo.environ as pyo
import pytest
from click.testing import CliRunner

import octsvm
from octsvm.cli import main

RNG = np.random.default_rng(5)
X = RNG.random((8, 2))
Y = (X[:, 0] + 0.3 * X[:, 1] > 0.6).astype(int)
Y[2] = 1 - Y[2]
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "oct_h": ("oct_h", {"depth": 1, "alpha": 0.1}),
    "re_svm": ("re_svm", {"c1": 50.0, "c2": 60.0, "norm": "l1"}),
}


def build(case: str) -> pyo.ConcreteModel:
    name, params = CASES[case]
    return octsvm.build(name, X, Y, **params)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The model solved by a program elsewhere."""

    def solved(engine: str, case: str) -> Path:
        solve = other_host.engines()[engine]
        if solve is None:
            pytest.skip(f"no program here that is or speaks {engine}")
        folder = tmp_path_factory.mktemp(engine)
        path = folder / f"{case}.sol"
        if not path.is_file():
            solve([(octsvm.write(build(case), folder / f"{case}.mps"), path)])
        return path

    return solved


@functools.cache
def optimum_of(case: str) -> octsvm.Result:
    return octsvm.solve(build(case), gap=0.0, solver="highs")


@pytest.mark.parametrize("engine", ["highs", "scip", "cplex"])
@pytest.mark.parametrize("case", CASES)
def test_a_true_bound_makes_it_optimal_on_somebodys_word(case: str, engine: str, answers: Any) -> None:
    best = optimum_of(case)
    path = answers(engine, case)
    result = octsvm.read_solution(build(case), path, bound=best.bound, bound_source="the night's log")
    assert (result.status, result.stop, result.bound_source) == ("optimal", "file", "the night's log")
    assert result.bound == pytest.approx(best.objective, rel=1e-4)
    said = "if the bound is right that is taken on trust from the night's log"
    assert said in result.summary()
    assert "proved" not in result.summary().splitlines()[1]
    assert "(gap 0.000%), taken on trust from the night's log" in result.summary()
    assert "taken on trust from the night&#x27;s log" in result._repr_html_()
    assert json.loads(result.to_json())["bound_source"] == "the night's log"
    assert "is taken on trust from the night's log" in result.notes[0]
    plain = octsvm.read_solution(build(case), path)
    assert (plain.status, plain.bound_source, plain.bound) == ("feasible", "", 0.0)


def test_what_building_proved_needs_nobodys_word(answers: Any) -> None:
    model = octsvm.build("oct", X, Y, depth=1, alpha=0.1)
    best = octsvm.solve(model)
    assert model.info.least == pytest.approx(best.objective)
    solve = other_host.engines()["highs"]
    assert solve is not None
    folder = answers("highs", "re_svm").parent
    solve([(octsvm.write(model, folder / "oct.mps"), folder / "oct.sol")])
    for given in ({}, {"bound": 0.9 * best.objective}, {"bound": best.objective, "bound_source": "a log"}):
        result = octsvm.read_solution(model, folder / "oct.sol", **given)
        assert (result.status, result.bound_source) == ("optimal", "")
        assert result.bound == model.info.least
        assert "building the model proved" in result.notes[0]
        assert "on trust" not in str(result)


def file_of_values(model: pyo.ConcreteModel, path: Path) -> float:
    """Write the model's values as a solution file; what they cost."""
    cost = float(pyo.value(model.objective))
    octsvm.write(model, path.with_suffix(".mps"))
    columns = json.loads(path.with_suffix(".mps.json").read_text())["columns"]
    value = {v.name: v.value for v in model.component_data_objects(pyo.Var)}
    lines = [f"{c} {value[v]!r}\n" for c, v in columns if v is not None]
    path.write_text(f"# Objective value = {cost!r}\n" + "".join(lines))
    return cost


def test_a_tree_that_was_met_in_building_refutes_a_bound_and_is_returned(tmp_path: Path) -> None:
    model = octsvm.build("oct", X, (X[:, 0] > np.median(X[:, 0])).astype(int), depth=1, alpha=0.1)
    best = octsvm.solve(model).tree
    poor = replace(best, threshold=np.sort(X[:, best.feature[0]])[:2].mean(keepdims=True))  # one row alone
    octsvm.embed(model, poor)
    cost = file_of_values(model, tmp_path / "poor.sol")
    assert cost > model.info.least + 0.5
    result = octsvm.read_solution(model, tmp_path / "poor.sol")
    assert result.objective == pytest.approx(model.info.least)
    assert any("met in building" in note for note in result.notes)
    with pytest.raises(octsvm.InvalidParameter, match="cannot be right"):
        octsvm.read_solution(model, tmp_path / "poor.sol", bound=cost)


def test_a_bound_that_leaves_a_gap_proves_nothing(answers: Any) -> None:
    path = answers("highs", "re_svm")
    best = octsvm.solve(build("re_svm")).objective
    result = octsvm.read_solution(build("re_svm"), path, bound=0.5 * best)
    assert (result.status, result.bound) == ("feasible", 0.5 * best)
    assert result.bound_source == "the caller of read_solution"
    assert result.gap == pytest.approx(0.5, rel=1e-3)
    # 0 is known without anybody's word.
    free = octsvm.read_solution(build("re_svm"), path, bound=-3.0)
    assert (free.bound, free.bound_source) == (0.0, "")


def test_a_bound_above_a_checked_tree_is_refused(answers: Any) -> None:
    path, model = answers("highs", "re_svm"), build("re_svm")
    best = octsvm.solve(build("re_svm")).objective
    with pytest.raises(octsvm.InvalidParameter, match=r"cannot be right: a tree that costs .* was checked"):
        octsvm.read_solution(model, path, bound=1.01 * best)
    assert all(v.value is None for v in model.component_data_objects(pyo.Var))  # as before


def test_a_bound_counts_for_the_trees_that_the_model_holds(answers: Any) -> None:
    path = answers("highs", "re_svm")
    name, params = CASES["re_svm"]
    best = octsvm.solve(build("re_svm")).objective
    low = octsvm.build(name, X, Y, **params, upper_bound=0.9 * best)  # its big-M leaves out every tree
    result = octsvm.read_solution(low, path, bound=best, on_mismatch="ignore")
    assert result.bound <= 0.9 * best * (1 + 1e-9)
    assert result.status != "optimal"


def test_nor_for_trees_that_rows_of_ones_own_put_beyond_big_m(tmp_path: Path) -> None:
    """An intercept of 8, which the model has no room for, would cost 1 with a label given up."""
    line = [[0.0], [1 / 3], [2 / 3], [1.0]]
    model = octsvm.build("re_svm", line, [1, -1, 1, 1], norm="l1", upper_bound=4.0)
    model.mine = pyo.Constraint(expr=model.split.omega0[1] >= 8 * (1 - model.relabelling.xi[0, 1]))
    octsvm.solve(model)
    cost = file_of_values(model, tmp_path / "far.sol")
    result = octsvm.read_solution(model, tmp_path / "far.sol", bound=cost)
    assert cost > 1
    assert (result.status, result.bound, result.bound_source) == ("feasible", 0.0, "")
    assert "big_m=" in result.notes[-1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bound": "1"}, "bound='1' should be a finite number"),
        ({"bound": float("nan")}, "bound=nan should be"),
        ({"bound": True}, "bound=True should be"),
        ({"bound_source": "CPLEX"}, "give bound= as well"),
        ({"bound": 1.0, "bound_source": " "}, "should be text"),
    ],
)
def test_what_is_no_bound(given: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(octsvm.InvalidParameter, match=words):
        octsvm.read_solution(build("oct_h"), tmp_path / "never-read.sol", **given)


@pytest.mark.slow
def test_the_command_takes_it(tmp_path: Path) -> None:
    run = CliRunner().invoke
    out, answer = str(tmp_path / "toy.mps"), tmp_path / "toy.sol"
    model = ["--formulation", "oct_h", "--depth", "1"]
    assert run(main, ["write", "toy", *model, "--out", out]).exit_code == 0
    solve = other_host.engines()["highs"]
    assert solve is not None
    solve([(Path(out), answer)])
    found = json.loads(run(main, ["read", "toy", str(answer), *model, "--json"]).stdout)
    trusted = [*model, "--bound", str(found["objective"]), "--bound-source", "HiGHS by hand"]
    done = run(main, ["read", "toy", str(answer), *trusted])
    assert done.exit_code == 0, done.output
    assert "taken on trust from HiGHS by hand" in done.output
