"""Names in files are those that Pyomo itself gives, where readers understand them."""

from __future__ import annotations

import gc
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.core.base.label import NameLabeler, TextLabeler

import octsvm
from octsvm.files.labels import Names
from octsvm.formulations.blocks.rows import uncollected


def test_names_are_those_of_pyomo() -> None:
    model = pyo.ConcreteModel("a b")
    model.b, model.c = pyo.Block([1, 2]), pyo.Block()
    indices = {
        "x": [1, -2, 0],
        "y.z": [(1, -2), (-3, 4)],
        "q": ["a", "b c"],
        "k[": [("a", 1), (2.5, 3)],
        "t": [True, False],
        "o": [(1,)],
        "12": [3],
    }
    for block in (model, model.b[1], model.b[2], model.c):
        for name, index in indices.items():
            block.add_component(name, pyo.Var(index))
        block.s = pyo.Var()
    variables = list(model.component_data_objects(pyo.Var))
    for ours, theirs in ((Names(), TextLabeler()), (Names(plain=True), NameLabeler())):
        assert [ours(v) for v in variables] == [theirs(v) for v in variables]
    assert {"x(_2)", "b(1)_s", "c__y_z_(1__2)"} <= {Names()(v) for v in variables}


@pytest.mark.parametrize("ending", [".lp", ".mps"])
@pytest.mark.parametrize("formulation", ["oct", "oct_h", "re_svm", "octsvm"])
def test_a_written_file_is_that_of_pyomo(formulation: str, ending: str, tmp_path: Path) -> None:
    model = octsvm.build(formulation, np.random.default_rng(1).random((8, 2)), np.arange(8) % 2)
    ours, theirs = octsvm.write(model, tmp_path / f"ours{ending}"), tmp_path / f"theirs{ending}"
    model.write(str(theirs), io_options={"symbolic_solver_labels": True})
    # SCIP refuses the blanks, GLPK the sense, which is that of every reader.
    wanted = theirs.read_bytes().replace(b" ^ 2", b"^2").replace(b"\nOBJSENSE\n MIN\n", b"\n")
    assert ours.read_bytes() == wanted


@pytest.mark.parametrize("formulation", ["oct", "oct_h", "re_svm", "octsvm"])
def test_a_written_nl_and_its_names_are_those_of_pyomo(formulation: str, tmp_path: Path) -> None:
    model = octsvm.build(formulation, np.random.default_rng(1).random((8, 2)), np.arange(8) % 2)
    octsvm.write(model, tmp_path / "ours.nl")
    model.write(str(tmp_path / "theirs.nl"), io_options={"symbolic_solver_labels": False})
    assert (tmp_path / "ours.nl").read_bytes() == (tmp_path / "theirs.nl").read_bytes()
    model.write(str(tmp_path / "theirs.nl"), io_options={"symbolic_solver_labels": True})
    for ending in (".row", ".col"):
        assert (tmp_path / f"ours{ending}").read_bytes() == (tmp_path / f"theirs{ending}").read_bytes()


def test_the_collector_is_back_after_a_build_that_fails() -> None:
    @uncollected
    def build() -> None:
        assert not gc.isenabled()
        raise KeyError

    assert gc.isenabled()
    with pytest.raises(KeyError):
        build()
    assert gc.isenabled()


@pytest.mark.parametrize("ending", ["lp", "mps"])
@pytest.mark.parametrize(
    "name",
    [
        "1st",
        ".5",
        "e5",
        "free",
        "inf",
        "End",
        "bounds",
        "a b",
        "x:1",
        "\\ comment",
        "a\nend",
        "<=",
        "x>=1",
        "ü",
        "[x]",
        "sos",
        "semi",
        "subject",
        "😀",
        "a" * 300,
    ],
)
@pytest.mark.quick_cases("*-lp")
@pytest.mark.every_value
def test_any_name_of_a_users_own_is_one_name_in_the_file(name: str, ending: str, tmp_path: Path) -> None:
    model = octsvm.build("oct", [[0.0], [0.4], [0.7], [1.0]], list("abab"), depth=1, alpha=0.1)
    model.add_component(name, pyo.Var(bounds=(0, 1), initialize=0))
    model.own = pyo.Constraint([name], rule=lambda b, _: b.component(name) >= 0.5 * b.split.d[1])
    model.objective.set_value(model.cost + model.component(name))
    optimum = octsvm.solve(model).objective
    engine = highspy.Highs()
    engine.setOptionValue("output_flag", False)
    path = octsvm.write(model, tmp_path / f"model.{ending}")
    assert engine.readModel(str(path)) != highspy.HighsStatus.kError
    engine.run()
    assert engine.getInfo().objective_function_value == pytest.approx(optimum)
    columns = json.loads(path.with_name(f"{path.name}.json").read_text())["columns"]
    assert model.component(name).name in [variable for _, variable in columns]
    for program, argv in READERS.items():
        if shutil.which(program) is None:
            continue
        answer = tmp_path / f"{ending}.{program}"
        subprocess.run([program, *argv(path, answer)], capture_output=True, check=False, timeout=60)
        found = octsvm.read_solution(model, answer, sidecar=path)
        assert found.objective == pytest.approx(optimum)


# Programs that read what HiGHS reads in ways of their own: how they are called with a model file and the answer's place.
READERS: dict[str, Callable[[Path, Path], list[str]]] = {
    "glpsol": lambda model, answer: [
        "--lp" if model.suffix == ".lp" else "--freemps",
        str(model),
        "-w",
        str(answer),
    ],
    "cbc": lambda model, answer: [str(model), "-solve", "-solution", str(answer)],
}


def test_long_names_that_begin_alike_stay_apart() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(["a" * 300 + end for end in "bc"])
    model.y = pyo.Var([1], ["z" * 300])
    model.add_component("w" * 300, pyo.Var([1, 2]))
    names = [Names()(v) for v in model.component_data_objects(pyo.Var)]
    assert len(set(names)) == 5
    assert all(len(name) <= 101 and name.isascii() for name in names)
