"""What a saved tree's file says of its fit, and the commands that use it: predict --proba and --keep, plot."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli.test_table_preparation import COLUMNS, FIT, FORM, messy, run  # type: ignore[import-not-found]

from octsvm import OCTClassifier, RESVMClassifier, Tree, cli

RISK = ["--label", "risk"]


@pytest.fixture
def saved(tmp_path: Path) -> tuple[str, str]:
    """A messy table, and a tree that was fitted to it."""
    table, tree = messy(tmp_path), str(tmp_path / "tree.json")
    assert run("fit", table, *FORM, *COLUMNS, *FIT, "--out", tree).exit_code == 0
    return table, tree


def changed(tree: str, change: Callable[[dict[str, Any]], Any]) -> str:
    content = json.loads(Path(tree).read_text())
    change(content)
    Path(tree).write_text(json.dumps(content))
    return tree


def test_the_file_is_a_tree_as_before(saved: tuple[str, str]) -> None:
    tree = Tree.from_json(Path(saved[1]))
    kept = json.loads(Path(saved[1]).read_text())["fit"]
    assert tree.to_dict().items() <= json.loads(Path(saved[1]).read_text()).items()
    assert kept["result"]["status"] == "optimal"
    assert (kept["separator"], kept["decimal"]) == (";", ",")
    assert np.sum(kept["node_weights"][0]) == 24


def test_a_later_table_is_read_as_the_training_table_was(saved: tuple[str, str]) -> None:
    table, tree = saved
    assert "accuracy 1.0000 on 24 rows" in run("predict", tree, table, *RISK).stderr
    again = run("predict", tree, table, "--separator", ",")
    assert again.exit_code == cli.WRONG_INPUT


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("oct", lambda: OCTClassifier(max_depth=1, alpha=0.1)),
        ("re_svm", lambda: RESVMClassifier()),
    ],
)
def test_probabilities_are_those_of_the_classifier(
    name: str, made: Callable[[], Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.random((12, 2)).round(2), columns=["a", "b"])
    y = np.where(X["a"] + 0.3 * rng.random(12) > 0.6, "x", "y")
    X.assign(kind=y).to_csv(tmp_path / "t.csv", index=False)
    line = ["-f", name, *(["--depth", "1", "--alpha", "0.1"] if name == "oct" else [])]
    fitted = run("fit", str(tmp_path / "t.csv"), *line, "-q", "--out", str(tmp_path / "tree.json"))
    assert fitted.exit_code == 0, fitted.output
    found = run("predict", str(tmp_path / "tree.json"), str(tmp_path / "t.csv"), "--proba", "--json")
    content = json.loads(found.stdout)
    assert content["classes"] == ["x", "y"]
    model = made().fit(X, y)
    assert np.allclose(content["probabilities"], model.predict_proba(X), atol=1e-5)
    as_csv = pd.read_csv(
        io.StringIO(run("predict", str(tmp_path / "tree.json"), str(tmp_path / "t.csv"), "--proba").stdout)
    )
    assert np.allclose(as_csv[["probability of x", "probability of y"]], content["probabilities"])
    assert as_csv["prediction"].tolist() == model.predict(X).tolist()


def test_class_weights_count_in_probabilities(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,kind\n" + "1,x\n1,x\n1,y\n2,x\n" * 3)
    tree = str(tmp_path / "tree.json")
    run("fit", str(tmp_path / "t.csv"), *FIT, "--class-weight", "y=4", "--out", tree)
    found = json.loads(run("predict", tree, str(tmp_path / "t.csv"), "--proba", "--json").stdout)
    assert found["probabilities"][0] == pytest.approx([2 / 6, 4 / 6])


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        ("p r q", ["--against-rest", "p"]),
        ("p q ?", ["--missing", "?", "--skip-unlabelled"]),
        ("1 1.5 1.5", []),  # 1 is read as a fraction beside one
        ("0.0 -0.0 1.5", []),
        ("1e0 2 2", []),
        ("1.500 2.000 2.000", ["--decimal", ",", "--separator", ";"]),
        ("1,5 3A 3A", ["--decimal", ",", "--separator", ";"]),
    ],
)
def test_labels_of_the_training_table_are_known_again(
    labels: str, options: list[str], tmp_path: Path
) -> None:
    table, tree = tmp_path / "t.csv", str(tmp_path / "tree.json")
    cells = [f"{i};{label}" for i, label in enumerate(labels.split())] * 4
    text = "\n".join(["a;kind", *cells, ""])
    table.write_text(text if "--separator" in options else text.replace(";", ","))
    assert run("fit", str(table), *FIT, *options, "--out", tree).exit_code == 0
    found = run("suspects", tree, "-q")
    assert found.exit_code == 0, found.output
    assert len(found.stdout.splitlines()) == 1
    found = run("predict", tree, str(table), "--label", "kind", "--json")
    assert json.loads(found.stdout)["accuracy"] == 1


def test_values_given_in_several_options_are_all_tried_and_unscaled_fits_are_refused(tmp_path: Path) -> None:
    table, tree = tmp_path / "t.csv", str(tmp_path / "tree.json")
    table.write_text("a,kind\n" + "1,x\n2,x\n3,y\n4,y\n" * 2)
    line = ["fit", str(table), "-f", "oct", "--depth", "1", "-q", "--out", tree]
    assert run(*line).exit_code == 0
    over = ["--over", "alpha=1,2", "--over", "alpha=2,3"]
    assert "3 trees" in run("suspects", tree, *over).stderr
    assert "--jobs 0 should be" in run("suspects", tree, *over, "--jobs", 0).stderr
    assert run(*line, "--no-scale").exit_code == 0
    found = run("suspects", tree, *over)
    assert found.exit_code == cli.WRONG_INPUT
    assert "--no-scale" in found.stderr


def test_ready_made_features_are_predicted_into_a_file_as_well(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("colour,kind\n" + "red,x\nblue,y\ngreen,y\n" * 4)
    tree, out = str(tmp_path / "tree.json"), tmp_path / "out.csv"
    run("fit", str(tmp_path / "t.csv"), "--encode", "colour", *FIT, "--out", tree)
    (tmp_path / "made.csv").write_text("colour=blue,colour=green,colour=red\n1,0,0\n0,0,1\n")
    assert run("predict", tree, str(tmp_path / "made.csv"), "--out", str(out)).exit_code == 0
    assert out.read_text().split() == ["prediction", "y", "x"]


def test_columns_are_kept_as_they_are_written(saved: tuple[str, str], tmp_path: Path) -> None:
    table, tree = saved
    lines = Path(table).read_text().splitlines()
    found = run("predict", tree, table, "--keep", "all").stdout.splitlines()
    assert found[0] == lines[0] + ";prediction"
    assert found[1] == lines[1] + ";" + "high"
    some = run("predict", tree, table, "--keep", "customer,income").stdout.splitlines()
    assert some[:2] == ["customer;income;prediction", "K-0;0,0;high"]
    for wrong, says in (("custmer", "Did you mean 'customer'?"), ("nothing", "no column 'nothing' to keep")):
        refused = run("predict", tree, table, "--keep", wrong)
        assert refused.exit_code == cli.WRONG_INPUT
        assert says in refused.output
    Path(tmp_path / "twice.csv").write_text(
        "\n".join([lines[0] + ";prediction", *(line + ";x" for line in lines[1:])])
    )
    twice = run("predict", tree, str(tmp_path / "twice.csv"), "--keep", "all")
    assert twice.exit_code == cli.WRONG_INPUT
    assert "a column 'prediction' already" in twice.output


def test_a_tree_alone_has_no_probabilities_and_predicts(saved: tuple[str, str]) -> None:
    table, tree = saved
    changed(tree, lambda content: content.pop("fit"))
    refused = run("predict", tree, table, *FORM, "--proba")
    assert refused.exit_code == cli.WRONG_INPUT
    assert "the file holds the tree alone" in refused.output
    assert run("predict", tree, table, *FORM).exit_code == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda fit: fit.update(version=2), "newer octsvm: version"),
        (lambda fit: fit.update(node_weights="many"), "damaged"),
        (lambda fit: fit.update(node_weights=[[1.0, 2.0]]), "do not fit its nodes"),
        (lambda fit: fit.update(node_weights=[[-1.0, 2.0]] * 3), "damaged"),
        (lambda fit: fit.pop("separator"), "separator"),
        (lambda fit: fit["node_weights"][0].pop(), "different lengths"),
        (lambda fit: fit["result"].update(terms={"errors": []}), "terms.errors"),
        (lambda fit: fit["result"].update(gap="small"), "gap"),
        (lambda fit: fit["result"].update(notes=5), "notes"),
        (lambda fit: fit["result"].update(params=[1]), "params"),
        (lambda fit: fit["result"].pop("formulation"), "formulation"),
    ],
)
def test_a_damaged_record_is_refused(change: Callable[[Any], Any], says: str, saved: tuple[str, str]) -> None:
    table, tree = saved
    changed(tree, lambda content: change(content["fit"]))
    found = run("predict", tree, table, "--proba")
    assert found.exit_code == cli.WRONG_INPUT, found.output
    assert says in found.output
    assert len(found.output.splitlines()) == 1


def test_half_of_a_character_is_wrong_input(saved: tuple[str, str], tmp_path: Path) -> None:
    """JSON can hold one, and no text can."""
    table, tree = saved
    changed(tree, lambda content: content.update(classes=["a\ud800", *content["classes"][1:]]))
    for command in (
        ("predict", tree, table, "--json"),
        ("predict", tree, table, "--out", str(tmp_path / "o.csv")),
    ):
        found = run(*command)
        assert found.exit_code in (cli.OK, cli.WRONG_INPUT)
        assert "fault" not in found.output
    assert found.exit_code == cli.WRONG_INPUT
    assert r"\ud800' holds half of a character" in found.output


def test_a_picture_of_the_tree(saved: tuple[str, str], tmp_path: Path) -> None:
    out = tmp_path / "tree.svg"
    assert run("plot", saved[1], "--out", str(out)).exit_code == 0
    root = ET.fromstring(out.read_text())
    assert root.tag.endswith("svg")
    comments = out.read_text()
    assert "is not 'north'" in comments  # in a comment beside the glyphs
    again = out.read_bytes()
    run("plot", saved[1], "--out", str(out))
    assert out.read_bytes() == again
    run("plot", saved[1], "--out", str(out), "--dark")
    assert out.read_bytes() != again
    assert run("plot", saved[1], "--out", str(tmp_path / "tree.png")).exit_code == 0
    assert (tmp_path / "tree.png").read_bytes().startswith(b"\x89PNG")
    refused = run("plot", saved[1], "--out", str(tmp_path / "tree.bmp"))
    assert refused.exit_code == cli.WRONG_INPUT
    assert "svg, png, pdf" in refused.output


@pytest.mark.slow
def test_a_picture_that_leaves_weights_out_says_how_to_see_all(tmp_path: Path) -> None:
    tree, out = str(tmp_path / "tree.json"), str(tmp_path / "tree.svg")
    assert run("fit", "iris", "--against-rest", "setosa", "-f", "re_svm", "-q", "--out", tree).exit_code == 0
    assert "splits have up to 4 weights, --weights 4 shows all" in run("plot", tree, "--out", out).stdout
    assert run("plot", tree, "--out", out, "--weights", "4").stdout == f"written    {out}\n"


def test_predictions_in_a_file_are_told_of_and_names_are_guessed_by_their_words(tmp_path: Path) -> None:
    rows = [(f"A{i}", "" if i % 6 == 5 else str(i), "yes" if i > 9 else "no") for i in range(24)]
    table = tmp_path / "t.csv"
    table.write_text("application_id,size,repaid\n" + "".join(",".join(r) + "\n" for r in rows))
    tree, out = str(tmp_path / "t.json"), tmp_path / "p.csv"
    fitted = run("fit", str(table), "--drop", "application_id", "--impute", "median", "-f", "octsvm", "--depth", "0",
                 "-q", "--time-limit", "20", "--out", tree)  # fmt: skip
    assert fitted.exit_code == 0, fitted.output
    found = run("predict", tree, str(table), "--proba", "--out", str(out))
    assert found.output == f"written    {out}: 24 rows, 4 of them with missing values filled in\n"
    shares = [cell for line in out.read_text().splitlines()[1:] for cell in line.split(",")[1:]]
    assert max(map(len, shares)) <= len("0.123456")
    assert "Did you mean 'application_id'?" in run("predict", tree, str(table), "--keep", "id").output
    strange = run("predict", tree, "toy").output
    assert "there is no such file" in strange
    assert "Did you mean" not in strange
    assert "built-in data are for fitting" in strange
