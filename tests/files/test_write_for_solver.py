"""A model file and the solver that it is for: what does not fit is said when it is written."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
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
