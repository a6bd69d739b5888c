"""What octsvm.write leaves beside a model file, and what it refuses to write."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import octsvm
from octsvm.files import column_map
from octsvm.files import write as export

X = np.random.default_rng(1).random((8, 2))
Y = np.arange(8) % 2


def content(model_file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(column_map.beside(model_file).read_text())
    return found


@pytest.mark.parametrize("ending", [".lp", ".mps", ".nl"])
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("formulation", ["oct", "oct_h", "re_svm", "octsvm"])
@pytest.mark.quick_cases("*-False-*", "oct-True-*")
def test_a_column_map_ties_columns_to_variables(
    formulation: str, compact: bool, ending: str, tmp_path: Path
) -> None:
    model = octsvm.build(formulation, X, Y)
    path = octsvm.write(model, tmp_path / f"model{ending}", compact=compact)
    found = content(path)
    info = model.info
    assert (found["schema"], found["version"]) == ("octsvm.model_file", 1)
    assert (found["file"], found["format"]) == (path.name, ending[1:])
    assert found["names"] == ("generic" if compact else "readable")
    assert (found["formulation"], found["data_digest"]) == (formulation, info.data.digest)
    assert found["params"] == info.params.model_dump()
    assert found["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (found["n"], found["p"]) == (8, 2)
    assert found["versions"]["octsvm"] == octsvm.__version__
    assert set(found["versions"]) == {"octsvm", "pyomo"}
    variables = [v for _, v in found["columns"]]
    everything = {v.name for v in model.component_data_objects(pyo.Var)}
    assert len(set(variables)) == len(variables)
    assert set(variables) <= everything
    assert len(variables) > 0.9 * len(everything)  # without those that stand in no row
    columns = [c for c, _ in found["columns"]]
    if ending == ".nl":
        names = path.with_suffix(".col")
        assert names.exists() != compact
        assert columns == (
            [f"x{k}" for k in range(len(columns))] if compact else names.read_text().splitlines()
        )
        assert compact or columns == variables
    else:
        text = path.read_text().split()
        assert set(columns) <= {w.removesuffix("^2") for w in text}
        assert compact == all(name not in text for name in ("split_omega0(1)", "split_d(1)"))


@pytest.mark.parametrize("ending", [".lp", ".mps"])
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize(("formulation", "params"), [("oct", {}), ("oct_h", {}), ("octsvm", {"norm": "l1"})])
def test_columns_stand_in_the_order_of_the_file(
    formulation: str, params: Any, compact: bool, ending: str, tmp_path: Path
) -> None:
    highspy = pytest.importorskip("highspy")
    model = octsvm.build(formulation, X, Y, depth=1, **params)
    model.objective.set_value(model.cost + 3)  # the constant is a column of its own
    path = octsvm.write(model, tmp_path / f"model{ending}", compact=compact)
    reader = highspy.Highs()
    reader.setOptionValue("output_flag", False)
    reader.readModel(str(path))
    columns = content(path)["columns"]
    assert [c for c, _ in columns] == list(reader.getLp().col_names_)
    assert [v for _, v in columns].count(None) == 1


def test_a_model_of_no_formulation_has_one_too(tmp_path: Path) -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var([1, 2], bounds=(0, 1))
    model.o = pyo.Objective(expr=model.x[1] - model.x[2], sense=pyo.maximize)
    model.c = pyo.Constraint(expr=model.x[1] + model.x[2] <= 1)
    path = octsvm.write(model, tmp_path / "model.mps")
    found = content(path)
    assert (found["formulation"], found["params"], found["data_digest"]) == (None, None, None)
    assert sorted(found["columns"]) == [["x(1)", "x[1]"], ["x(2)", "x[2]"]]
    assert "OBJSENSE\n MAX\n" in path.read_text()


def test_a_column_map_can_be_left_out(tmp_path: Path) -> None:
    model = octsvm.build("oct", X, Y, depth=1)
    octsvm.write(model, tmp_path / "model.lp")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.lp", "model.lp.json"]
    octsvm.write(model, tmp_path / "model.lp", sidecar=False)  # that of the earlier one would be wrong
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.lp"]
    mine = tmp_path / "model.lp.json"
    mine.write_text("mine")
    octsvm.write(model, tmp_path / "model.lp", sidecar=False)
    assert mine.read_text() == "mine"
    tree = tmp_path / "model.json"
    tree.write_text("a tree")
    octsvm.write(model, tmp_path / "model.lp")
    octsvm.write(model, tmp_path / "model.mps")
    assert tree.read_text() == "a tree"
    assert export.files_of(tmp_path / "model.mps") == [tmp_path / "model.mps", tmp_path / "model.mps.json"]


@pytest.mark.parametrize("ending", ["lp", "nl", "mps"])
def test_a_column_map_that_cannot_be_written_leaves_no_file(
    ending: str, tmp_path: Path, monkeypatch: Any
) -> None:
    model = octsvm.build("oct", X, Y, depth=1)
    whole = Path.write_text

    def full(self: Path, text: str, *args: Any, **kwargs: Any) -> int:
        if not self.name.endswith(".json"):
            return whole(self, text, *args, **kwargs)
        whole(self, text[:100], *args, **kwargs)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(octsvm.OutputNotWritable, match="No space left"):
        octsvm.write(model, tmp_path / f"model.{ending}")
    assert list(tmp_path.iterdir()) == []


def test_the_model_comes_last(tmp_path: Path, monkeypatch: Any) -> None:
    """Whoever sees the new model sees its column map, too."""
    order: list[str] = []
    replace = os.replace

    def noted(source: Any, target: Any) -> None:
        order.append(Path(target).name)
        replace(source, target)

    monkeypatch.setattr("octsvm.files.write.os.replace", noted)
    octsvm.write(octsvm.build("oct", X, Y, depth=1), tmp_path / "model.nl")
    assert order[-1] == "model.nl"
    assert sorted(order) == ["model.col", "model.nl", "model.nl.json", "model.row"]


def test_a_link_leads_to_both_files(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.lp"
    link.symlink_to(tmp_path / "there" / "model.lp")
    octsvm.write(octsvm.build("oct", X, Y, depth=1), link)
    assert sorted(p.name for p in (tmp_path / "there").iterdir()) == ["model.lp", "model.lp.json"]
    assert link.is_symlink()


@pytest.mark.skipif(not Path(os.devnull).exists(), reason="no device to write to")
def test_a_device_gets_the_model_alone(tmp_path: Path) -> None:
    link = tmp_path / "model.lp"
    link.symlink_to(os.devnull)
    octsvm.write(octsvm.build("oct", X, Y, depth=1), link)
    assert [p.name for p in tmp_path.iterdir()] == ["model.lp"]
    assert not Path(os.devnull + ".json").exists()


def test_writing_keeps_no_record_in_the_model(tmp_path: Path) -> None:
    model = octsvm.build("oct", X, Y, depth=1)
    for ending in ("lp", "mps", "nl"):
        octsvm.write(model, tmp_path / f"model.{ending}")
    assert not model.solutions.symbol_map


# ------------------------------------------------------------------------------------- what a format does not carry


def cubic(model: pyo.ConcreteModel) -> None:
    model.mine = pyo.Constraint(expr=model.split.b[1] ** 3 <= 0.5)


def exponential(model: pyo.ConcreteModel) -> None:
    model.mine = pyo.Constraint(expr=pyo.exp(model.split.b[1]) <= 2)


def curved_cost(model: pyo.ConcreteModel) -> None:
    model.objective.deactivate()
    model.mine = pyo.Objective(expr=pyo.exp(model.split.b[1]))


@pytest.mark.parametrize("ending", ["lp", "mps"])
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("change", [cubic, exponential, curved_cost])
def test_a_nonlinear_row_is_for_nl_alone(change: Any, compact: bool, ending: str, tmp_path: Path) -> None:
    model = octsvm.build("oct", X, Y, depth=1, variant="rank")
    change(model)
    with pytest.raises(octsvm.UnsupportedProblem) as caught:
        octsvm.write(model, tmp_path / f"model.{ending}", compact=compact)
    for part in ("'mine'", f".{ending} file", "linear and quadratic", ".nl", "SCIP"):
        assert part in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert octsvm.write(model, tmp_path / "model.nl").exists()


@pytest.mark.parametrize("ending", ["lp", "mps"])
def test_other_things_that_a_format_does_not_carry(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"model.{ending}"
    model = octsvm.build("oct", X, Y, depth=1, variant="rank")
    model.second = pyo.Objective(expr=model.split.b[1])
    with pytest.raises(
        octsvm.UnsupportedProblem, match=r"2 active objectives \(objective, second\).*Deactivate"
    ):
        octsvm.write(model, path)
    model.second.deactivate()
    model.objective.deactivate()
    with pytest.raises(octsvm.UnsupportedProblem, match=r"0 active objectives \(none\).*Activate one"):
        octsvm.write(model, path)
    model.objective.activate()
    for name in ("a b", "a_b"):
        model.add_component(name, pyo.Var(bounds=(0, 1)))
    model.both = pyo.Constraint(expr=model.component("a b") + model.component("a_b") <= 1)
    with pytest.raises(octsvm.InvalidParameter, match="compact=True"):
        octsvm.write(model, path)
    assert list(tmp_path.iterdir()) == []
    assert octsvm.write(model, path, compact=True) == path


@pytest.mark.skipif(os.name != "posix", reason="names of POSIX")
@pytest.mark.parametrize("ending", ["lp", "nl", "mps"])
@pytest.mark.parametrize("letters", [248, 250, 251, 255])
def test_a_name_that_leaves_no_room_for_what_is_added(letters: int, ending: str, tmp_path: Path) -> None:
    model = octsvm.build("oct", X, Y, depth=1)
    path = tmp_path / f"{'x' * (letters - len(ending) - 1)}.{ending}"
    if letters <= 250:
        octsvm.write(model, path)
        assert path.with_name(f"{path.name}.json") in export.files_of(path)
        return
    with pytest.raises(
        octsvm.OutputNotWritable, match=r"x(\.\w+)?\.(json|row)' cannot be written: File name too long"
    ):
        octsvm.write(model, path)
    assert list(tmp_path.iterdir()) == []
    compact = ending == "nl"  # without files of names, which are called alike
    octsvm.write(model, path, compact=compact, sidecar=False)
    assert export.files_of(path) == [path]
