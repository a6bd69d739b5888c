"""``octsvm race``, ``plan`` and the solver options of ``fit``: one model on many engines, side by side."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import run
from instances import halves
from waiting import PATIENCE

import octsvm
from octsvm import cli, solvers
from octsvm.diagnostics.race import COLUMNS, contestants, disagreements

QUICK = ["--formulation", "oct", "--depth", "1"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    X, y = halves()
    path = tmp_path / "table.csv"
    pd.DataFrame(X, columns=["a", "b"]).assign(kind=np.where(y, "up", "down")).to_csv(path, index=False)
    return path


# -- race ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formulation", "params"),
    [
        pytest.param("oct", {"depth": 1, "alpha": 0.1}, marks=pytest.mark.long),
        ("re_svm", {"c1": 5.0, "c2": 9.0}),
    ],
)
@pytest.mark.slow
def test_all_that_are_installed_agree(formulation: str, params: dict[str, Any]) -> None:
    X, y = halves()
    fitted = octsvm.fit(formulation, X, y, **params)
    frame = octsvm.race(formulation, X, y, time_limit=60, start=fitted.tree, **params)
    assert tuple(frame.columns) == COLUMNS
    assert list(frame["solver"]) == contestants()
    ran = frame[frame["status"] != "refused"]
    assert set(ran["status"]) == {"optimal"}, frame
    assert set(ran["certificate"]) == {"ok"}
    known = fitted.objective
    assert ran["objective"].to_numpy() == pytest.approx(known, rel=1.1e-4, abs=1e-6)
    assert (ran["bound"] <= known + 1e-6).all()
    assert (ran["seconds"] >= 0).all()
    for row in ran.itertuples():
        spec = solvers.require(row.solver)
        assert (row.startup > 0) == (spec.backend == "child")
        assert (row.start == "unsupported") == (spec.start.passes == "none")
    assert frame.attrs == {"disagreements": (), "interrupted": False}


def test_the_model_comes_back_as_it_was() -> None:
    import pyomo.environ as pyo

    model = octsvm.build("oct", *halves(), depth=1)
    octsvm.embed(model, octsvm.solve(model).tree)
    before = [v.value for v in model.component_data_objects(pyo.Var)]
    frame = octsvm.race(model, solvers=["highs", "glpk"] if solvers.installed("glpk") else ["highs"])
    assert set(frame["status"]) == {"optimal"}
    assert before == [v.value for v in model.component_data_objects(pyo.Var)]


def test_a_start_is_handed_to_each() -> None:
    X, y = halves()
    tree = octsvm.fit("oct", X, y, depth=1).tree
    frame = octsvm.race("oct", X, y, depth=1, start=tree, solvers=["highs"])
    assert list(frame["start"]) == ["accepted"]


ENTRIES = """\
solvers:
  small: {inherit: highs, title: Small, licence: {linear: {variables: 3}, quadratic: {variables: 3}}}
  plain: {inherit: highs, title: Plain, classes: [LP]}
  gone: {inherit: highs, title: Gone, requires: {distribution: gone, module: gone_module}, install: get it}
"""


def test_refusals_have_their_short_reason(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from octsvm.solving import licences

    (tmp_path / "mine.yaml").write_text(ENTRIES)
    monkeypatch.setenv(solvers.ENVIRONMENT, str(tmp_path / "mine.yaml"))
    monkeypatch.setattr(licences, "limited", lambda name: name == "small")
    X, y = halves()
    frame = octsvm.race("oct", X, y, depth=1, solvers=["small", "plain", "gone", "highs"])
    assert list(frame["status"]) == ["refused"] * 3 + ["optimal"]
    assert list(frame["stop"]) == ["licence", "unsupported", "not installed", "optimal"]
    assert "its licence takes no model of" in frame["note"][0]
    assert frame["note"][1] == "does not solve a MILP"
    result = run("race", table, *QUICK, "--solvers", "small,plain,gone,highs", "--quiet")
    assert result.exit_code == 0, result.output
    for part in ("small: its licence takes no model of", "plain: does not solve a MILP", "gone: get it"):
        assert part in result.stdout
    assert result.stderr == ""


def test_wrong_use_is_refused_before_anything_is_solved(table: Path) -> None:
    X, y = halves()
    model = octsvm.build("oct", X, y, depth=1)
    with pytest.raises(octsvm.InvalidParameter, match="needs a table too"):
        octsvm.race("oct")
    with pytest.raises(octsvm.InvalidParameter, match="a built model has them already"):
        octsvm.race(model, X, y)
    with pytest.raises(octsvm.UnknownSolver, match="'hihgs'"):
        octsvm.race(model, solvers=["highs", "hihgs"])
    with pytest.raises(octsvm.UnknownSolver, match="no solver of its own"):
        octsvm.race(model, solvers=["auto"])
    assert run("race", table, *QUICK, "--solvers", "hihgs").exit_code == cli.WRONG_INPUT
    assert run("race", table, *QUICK, "--out", "no/such/folder.csv").exit_code == cli.WRONG_INPUT


def test_the_command_has_table_csv_and_json(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "results.csv"
    result = run("race", table, *QUICK, "--solvers", "highs,scip", "--out", out)
    if solvers.installed("scip") is None:
        pytest.skip("scip is not installed")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == [
        "solver", "status", "stop", "seconds", "start-up", "objective", "bound", "gap", "nodes", "rounds",
        "certificate", "start",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[1:]] == ["highs", "scip"]
    saved = pd.read_csv(out)
    assert list(saved["solver"]) == ["highs", "scip"]
    assert list(saved.columns) == list(COLUMNS)
    assert "highs" in result.stderr  # its line once it is done
    content = json.loads(run("race", table, *QUICK, "--solvers", "highs", "--json").stdout)
    assert content["schema"] == "octsvm.race"
    assert content["disagreements"] == []
    assert content["results"][0]["status"] == "optimal"


def row(solver: str, **more: Any) -> dict[str, Any]:
    plain = {"status": "optimal", "stop": "optimal", "objective": 5.0, "bound": 5.0, "certificate": "ok"}
    return {"solver": solver} | plain | more


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        ([row("a"), row("b", objective=5.0004, bound=4.9999)], []),
        ([row("a"), row("b", objective=5.01, bound=5.009)], ["a and b both claim the optimum, 5 and 5.01"]),
        ([row("a"), row("b", status="feasible", stop="time_limit", objective=7.0, bound=4.0)], []),
        (
            [row("a"), row("b", status="feasible", stop="time_limit", objective=4.5, bound=4.0)],
            ["a claims a bound of 5, and the tree of b costs 4.5"],
        ),
        (
            [row("a"), row("b", status="feasible", stop="time_limit", objective=7.0, bound=6.0)],
            ["b claims a bound of 6, and the tree of a costs 5"],
        ),
        (
            [row("a"), row("b", status="unverified", objective=3.0, bound=3.0, certificate="mismatch")],
            ["a and b both claim the optimum, 5 and 3"],
        ),
        (
            [row("a"), row("b", status="infeasible", stop="infeasible", objective=math.inf, bound=math.inf)],
            ["a says optimal, and b says infeasible"],
        ),
        ([row("a"), row("b", status="refused", stop="licence", objective=math.nan, bound=math.nan)], []),
        ([row("a", objective=0.0, bound=0.0), row("b", objective=1e-9, bound=-1e-9)], []),
    ],
)
def test_disagreements(rows: list[dict[str, Any]], parts: list[str]) -> None:
    assert list(disagreements(rows, 1e-4)) == parts
    assert len(disagreements(rows[::-1], 1e-4)) == len(parts)


LIAR = """\
import sys
from pathlib import Path

model, out = map(Path, sys.argv[1:])
names = [w[0] for w in (line.split() for line in model.read_text().splitlines()) if len(w) > 1 and w[0][:1] == "c"]
count = 1 + max(int(n[1:]) for n in names if n[1:].isdigit())
lines = ["Model status", "Optimal", "", "# Primal solution values", "Feasible", "Objective 0", f"# Columns {count}"]
lines += [f"c{k} 0" for k in range(count)]
out.write_text("\\n".join([*lines, "# Rows 0", ""]))
"""


def test_two_that_disagree_have_their_own_exit_code(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import octsvm.solving.dispatch

    honest = octsvm.solving.dispatch.solve

    def solve(model: Any, *, solver: str, **options: Any) -> Any:
        from dataclasses import replace

        result = honest(model, solver="highs", **options)
        return replace(
            result, objective=result.objective + (solver == "liar"), bound=result.bound + (solver == "liar")
        )

    monkeypatch.setattr(octsvm.solving.dispatch, "solve", solve)
    (tmp_path / "mine.yaml").write_text("solvers: {liar: {inherit: highs, title: Liar}}")
    monkeypatch.setenv(solvers.ENVIRONMENT, str(tmp_path / "mine.yaml"))
    result = run("race", table, *QUICK, "--solvers", "highs,liar", "--quiet")
    assert result.exit_code == cli.DISAGREEMENT == 5
    assert "highs and liar both claim the optimum" in result.stderr
    assert "liar" in result.stdout


@pytest.mark.skipif(os.name == "nt", reason="the program is a shell script")
def test_a_program_that_lies_is_found_out(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "liar.py").write_text(LIAR)
    path = tmp_path / "liar"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tmp_path / "liar.py"}" "$@"\n')
    path.chmod(0o755)
    (tmp_path / "mine.yaml").write_text(
        f"solvers: {{liar: {{title: Liar, backend: executable, executable: ['{path}'], format: mps, answer: highs,\n"
        "  argv: ['{model}', '{solution}'], classes: [LP, MILP], install: nowhere}}"
    )
    monkeypatch.setenv(solvers.ENVIRONMENT, str(tmp_path / "mine.yaml"))
    X, y = halves()
    frame = octsvm.race("oct", X, y, depth=1, variant="rank", solvers=["liar", "highs"]).set_index("solver")
    assert frame["status"]["highs"] == "optimal"
    assert frame["status"]["liar"] != "optimal", frame


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
@pytest.mark.slow
def test_ctrl_c_shows_what_there_is(tmp_path: Path) -> None:
    out = tmp_path / "results.csv"
    child = subprocess.Popen(
        [
            sys.executable, "-m", "octsvm", "race", "breast_cancer", "--depth", "1", "--solvers", ",".join(["highs"] * 9),
            "--time-limit", "2", "--out", str(out), "--json",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    seen = ""
    assert child.stderr is not None
    while "fallback" not in seen and "feasible" not in seen:  # the first one is done
        line = child.stderr.readline()
        assert line, seen
        seen += line
    child.send_signal(signal.SIGINT)
    text, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == cli.INTERRUPTED, err
    content = json.loads(text)
    assert content["interrupted"] is True
    assert 1 <= len(content["results"]) < 9
    assert content["results"][0]["stop"] == "time_limit"
    assert len(pd.read_csv(out)) == len(content["results"])
    assert "Traceback" not in err


# -- plan ---------------------------------------------------------------------------------------------------------


def test_plan_prints_what_python_does(table: Path) -> None:
    X, y = halves()
    frame = pd.DataFrame(X, columns=["a", "b"])
    for solver in ("auto", "highs"):
        expected = octsvm.plan(octsvm.build("oct", frame, np.where(y, "up", "down"), depth=1), solver)
        assert run("plan", table, *QUICK, "--solver", solver).stdout == f"{expected}\n"
        shown = run("plan", table, *QUICK, "--solver", solver, "--json").stdout
        assert json.loads(shown) == json.loads(json.dumps(expected.to_dict()))
    content = json.loads(run("plan", table, "--depth", 1, "--solver", "highs", "--json").stdout)
    assert content["schema"] == "octsvm.plan"
    assert content["problem"]["class"] == "MISOCP"
    assert content["as_it_stands"] is False


# -- fit ----------------------------------------------------------------------------------------------------------


def test_fit_takes_auto_and_native_options(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    known = octsvm.fit

    def fit(*args: Any, **options: Any) -> Any:
        seen.update(options)
        return known(*args, **options)

    monkeypatch.setattr(octsvm, "fit", fit)
    result = run(
        "fit", table, *QUICK, "--options", "mip_heuristic_effort=0.2", "--options", "presolve = on",
        "--options", "mip_detect_symmetry=false", "--options", "mip_pool_age_limit=20", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert seen["options"] == {
        "mip_heuristic_effort": 0.2,
        "presolve": "on",
        "mip_detect_symmetry": False,
        "mip_pool_age_limit": 20,
    }
    result = run("fit", table, *QUICK, "--solver", "auto", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["solver"] in solvers.table().prefer
    assert seen["solver"] == "auto"


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (["--options", "presolve"], ["'presolve' should be the solver's own name of an option"]),
        (["--options", "no_such_option=1"], ["no_such_option"]),
        (["--solver", "gone"], ["gone is not installed here", "get it", "Installed are"]),
        (["--solver", "hihgs"], ["'hihgs' is not in the solver table", "Did you mean 'highs'?"]),
        (["--solver", "small"], ["too small for oct on 10 training rows", "fewer rows, levels or features"]),
        (["--solver", "plain"], ["plain cannot take this model", "solves LP"]),
        (["--solver", "neos:bonmin"], ["NEOS_EMAIL is not set"]),
    ],
)
def test_what_a_solver_does_not_take_is_one_line(
    args: list[str], parts: list[str], table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from octsvm.solving import licences

    (tmp_path / "mine.yaml").write_text(ENTRIES)
    monkeypatch.setenv(solvers.ENVIRONMENT, str(tmp_path / "mine.yaml"))
    monkeypatch.delenv("NEOS_EMAIL", raising=False)
    monkeypatch.setattr(licences, "limited", lambda name: name == "small")
    result = run("fit", table, *QUICK, "--quiet", *args)
    assert result.exit_code == cli.WRONG_INPUT, result.output
    assert result.stdout == ""
    for part in parts:
        assert part in result.stderr
    assert "Error: " in result.stderr.splitlines()[-1]


def test_an_engine_that_breaks_down_has_its_own_exit_code(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        octsvm,
        "fit",
        lambda *args, **options: (_ for _ in ()).throw(octsvm.EngineFailed("It broke. Try again.")),
    )
    result = run("fit", table, *QUICK, "--quiet")
    assert result.exit_code == cli.UNEXPECTED
    assert result.stderr == "Error: It broke. Try again.\n"
