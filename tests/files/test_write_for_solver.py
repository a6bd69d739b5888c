"""A model file and the solver that it is for: what does not fit is said when it is written."""

from __future__ import annotations

import re
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from click.testing import CliRunner
from places import ROOT

import octsvm
from octsvm import solvers
from octsvm.cli import main

RNG = np.random.default_rng(1)
X = RNG.random((8, 2))
Y = (X[:, 0] > 0.5).astype(int)
MODELS: dict[str, Any] = {
    "MISOCP": ("octsvm", {"depth": 1}),
    "MIQP": ("re_svm", {}),
    "MILP": ("oct", {"depth": 1}),
}


def said(kind: str, ending: str, solver: str, tmp_path: Path) -> list[str]:
    name, params = MODELS[kind]
    model = octsvm.build(name, X, Y, **params)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        octsvm.write(model, tmp_path / f"model.{ending}", solver=solver)
    assert (tmp_path / f"model.{ending}").is_file()
    assert all(w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", list(solvers.table()))
@pytest.mark.quick_cases("*-MISOCP", "highs-*")
def test_what_fits_is_written_without_a_word(kind: str, name: str, tmp_path: Path) -> None:
    spec = solvers.get(name)
    for ending in ("lp", "mps", "nl"):
        found = said(kind, ending, name, tmp_path)
        assert any(re.search(rf"reads .*and this is an \.{ending} file", text) for text in found) is (
            ending not in spec.file_formats
        )
        assert any("in a file nothing is rewritten" in text for text in found) is (kind not in spec.classes)
        tangents = kind == "MISOCP" and kind in spec.classes and spec.cone_form in ("perspective", "norm")
        assert any("takes tangents" in text for text in found) is tangents


def test_a_big_m_that_the_tolerance_blurs_is_named(tmp_path: Path) -> None:
    model = octsvm.build("octsvm", X, Y, depth=1, c1=1e6, c2=500.0)
    with pytest.warns(UserWarning, match=r"In 'model.mps' big-M .* larger mu_svm="):
        octsvm.write(model, tmp_path / "model.mps", solver="gurobi")


def test_the_words(tmp_path: Path) -> None:
    (text,) = said("MISOCP", "mps", "glpk", tmp_path)
    assert text.startswith("'model.mps' is not for glpk: it solves LP, MILP, and this is a MISOCP")
    assert "norm='l1' makes a linear model" in text
    assert "the file is for gurobi, cplex, xpress, scip" in text
    first, second = said("MISOCP", "lp", "bonmin", tmp_path)
    assert first == "'model.lp' is not for bonmin: it reads .nl, and this is an .lp file."
    assert "octsvm.solve(model, solver='bonmin') hands it the cones in another form (perspective)" in second
    assert said("MISOCP", "lp", "scip", tmp_path) == []
    with pytest.raises(octsvm.UnknownSolver, match="Did you mean 'glpk'"):
        said("MILP", "lp", "glkp", tmp_path)


def test_the_command_says_it(tmp_path: Path) -> None:
    out = tmp_path / "toy.lp"
    done = CliRunner().invoke(main, ["write", "toy", "--depth", "0", "--out", str(out), "--solver", "highs"])
    assert done.exit_code == 0, done.output
    assert "is not for highs: it solves LP, MILP" in done.output
    assert out.is_file()


def test_the_page_says_what_the_table_says() -> None:
    page = (ROOT / "docs" / "solvers.md").read_text(encoding="utf-8")
    titles = {spec.title: spec for spec in solvers.table().values()}
    rows = re.findall(r"^\| (\w+) \| ((?:`\.\w+`(?:, )?)+) \| (yes|no) \|", page, re.MULTILINE)
    assert len(rows) >= 7
    for title, formats, conic in rows:
        spec = titles[title]
        assert set(re.findall(r"\.(\w+)", formats)) == set(spec.file_formats), title
        assert ("MISOCP" in spec.classes) is (conic == "yes"), title


def a_start(folder: Path, name: str, **how: Any) -> tuple[Path, float]:
    """A model's file and a start beside it; what that costs."""
    X = [[float(i), float(i * 7 % 10)] for i in range(20)]
    y = ["ab"[(i > 6) ^ (i * 7 % 10 > 8)] for i in range(20)]
    tree = octsvm.fit("oct", X, y, depth=2, alpha=0.5, strategy="heuristic", time_limit=1).tree
    model = octsvm.build("oct", X, y, depth=2, alpha=0.5)
    cost = octsvm.evaluate("oct", tree, X, y, alpha=0.5).objective
    return octsvm.write(model, folder / name, start=tree, **how), cost


@pytest.mark.parametrize("name", ["model.lp", "model.mps"])
@pytest.mark.parametrize("compact", [False, True])
def test_gurobi_reads_the_start(name: str, compact: bool, tmp_path: Path) -> None:
    gurobi = pytest.importorskip("gurobipy")
    path, cost = a_start(tmp_path, name, compact=compact)
    with gurobi.Env(params={"OutputFlag": 0}) as env, gurobi.read(str(path), env) as model:
        model.Params.SolutionLimit, model.Params.Presolve, model.Params.Heuristics = 1, 0, 0
        model.read(str(path.with_suffix(".mst")))
        model.optimize()
        assert model.ObjVal == pytest.approx(cost)


def test_scip_reads_the_start(tmp_path: Path) -> None:
    scip = pytest.importorskip("pyscipopt")
    path, cost = a_start(tmp_path, "model.lp")
    model = scip.Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.readProblem(str(path.with_suffix(".mst")))
    model.setParam("limits/solutions", 1)
    model.optimize()
    assert model.getObjVal() == pytest.approx(cost)


@pytest.mark.skipif(shutil.which("cbc") is None, reason="the program cbc is not here")
def test_cbc_reads_the_start(tmp_path: Path) -> None:
    path, cost = a_start(tmp_path, "model.mps", solver="cbc")
    line = ["cbc", str(path), "-mipstart", str(path.with_suffix(".mst")), "-solve"]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert f"MIPStart provided solution with cost {cost:g}" in said


def test_a_start_is_in_the_nl_file_and_one_that_is_none_is_refused(tmp_path: Path) -> None:
    path, _ = a_start(tmp_path, "model.nl")
    assert not path.with_suffix(".mst").exists()
    assert re.search(r"^x[1-9]\d*\s", path.read_text(), re.MULTILINE)
    model = octsvm.build("oct", [[0.0], [1.0]], ["a", "b"], depth=1)
    other = octsvm.fit("oct", [[0.0], [1.0]], ["c", "d"], depth=1).tree
    with pytest.raises(octsvm.TreeNotAdmitted):
        octsvm.write(model, tmp_path / "other.lp", start=other)
    assert not (tmp_path / "other.lp").exists()
    with pytest.raises(octsvm.InvalidParameter, match="belongs to no formulation"):
        octsvm.write(pyo.ConcreteModel(), tmp_path / "other.lp", start=other)
