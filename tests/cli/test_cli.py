"""The command line: what it prints where, its files, its exit codes, and no traceback whatever it is given."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from command_line import run
from waiting import PATIENCE, at_most

import octsvm
from octsvm import cli
from octsvm.cli import csv_tables as tables
from octsvm.cli import options as shared
from octsvm.tuning.folds import MOST_REPEATS

QUICK = ["--formulation", "oct", "--depth", "1"]
TABLE = "width,height,kind\n" + "".join(f"{i},{i * 7 % 10},{'low' if i < 5 else 'high'}\n" for i in range(10))


def refused(*args: Any) -> str:
    """The message of a command that ends with exit code 2, one line but for the usage."""
    result = run(*args)
    assert result.exit_code == cli.WRONG_INPUT, result.output
    assert result.stdout == ""
    return result.stderr


def process(*args: Any, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "octsvm", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def tree(table: Path) -> Path:
    path = table.with_name("tree.json")
    assert run("fit", table, *QUICK, "--out", path).exit_code == 0
    return path


# -- fit ----------------------------------------------------------------------------------------------------------


def test_summary_on_stdout_and_progress_on_stderr(table: Path) -> None:
    result = run("fit", table, *QUICK)
    assert result.exit_code == 0
    for part in (
        "optimal",
        "objective  1 = 0 errors + 1 complexity",
        "bound",
        "gap",
        "train 1.0000 (10 rows)",
    ):
        assert part in result.stdout
    assert "[1] width < 4.5: class 'low'" in result.stdout
    assert "10 rows to train on, 0 to test on" in result.stderr
    assert "best tree" in result.stderr
    assert " s  best tree" not in result.stdout
    assert "\r" not in result.stderr  # no terminal


def test_json_is_one_object_and_nothing_else(table: Path) -> None:
    result = run("fit", table, *QUICK, "--json", "--quiet")
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert found["schema"] == "octsvm.result"
    assert (found["objective"], found["bound"], found["status"]) == (1.0, 1.0, "optimal")
    assert found["train_accuracy"] == 1.0
    assert found["test_accuracy"] is None
    assert octsvm.Tree.from_dict(found["tree"]).predict([[1, 8]]).tolist() == ["low"]


def test_toy_gives_up_the_wrong_labels() -> None:
    found = json.loads(run("fit", "toy", "--depth", "0", "--test-size", "0", "--json").stdout)
    clean = tables.load("toy").X.sum(axis=1).to_numpy() > 10
    wrong = np.flatnonzero((tables.load("toy").y == "blue") != clean)
    assert found["status"] == "optimal"
    assert [r["row"] for r in found["relabelled"]] == wrong.tolist()


def test_built_in_data_hold_a_quarter_out() -> None:
    found = json.loads(run("fit", "iris", *QUICK, "--json").stdout)
    assert (found["train_rows"], found["test_rows"]) == (112, 38)
    assert 0.5 < found["test_accuracy"] < 0.8  # one split cannot tell three classes apart
    everything = json.loads(run("fit", "iris", *QUICK, "--test-size", "0", "--json").stdout)
    assert (everything["train_rows"], everything["objective"]) == (
        150,
        51.0,
    )  # published: 50 errors, one split


def test_split_and_flips_are_seeded(table: Path) -> None:
    def rows(seed: int) -> list[int]:
        args = ["fit", table, *QUICK, "--test-size", "0.4", "--flip", "0.5", "--seed", seed, "--json"]
        return list(json.loads(run(*args).stdout)["flipped_rows"])

    assert rows(1) == rows(1)
    assert len(rows(1)) == 3
    assert len({tuple(rows(s)) for s in range(4)}) > 1


def test_flips_are_reported(table: Path) -> None:
    line = ["--depth", "0", "--c1", "20", "--c2", "5", "--flip", "0.1", "--seed", "1"]
    result = run("fit", table, *line)
    assert result.exit_code == 0
    assert "1 label flipped" in result.stderr
    assert "1.0000 of the labels before flipping" in result.stdout
    assert "relabelled 1 row" in result.stdout
    assert "1 of the 1 flipped ones among them" in result.stdout
    found = json.loads(run("fit", table, *line, "--json").stdout)
    (row,) = found["flipped_rows"]
    (record,) = found["relabelled"]
    assert (record["row"], record["line"]) == (row, row + 2)
    given = "high" if tables.load(str(table)).y[row] == "low" else "low"
    assert (record["given"], record["believed"]) == (given, "high" if given == "low" else "low")
    assert f"line {row + 2}: given {given!r}, believed " in result.stdout


@pytest.mark.slow
def test_every_term_is_said_in_words_and_held_out_rows_too(table: Path) -> None:
    for name in ("oct", "oct_h", "re_svm", "octsvm", "moctsvm"):
        depth = (
            () if name == "re_svm" else ("--depth", "1" if name.startswith("oct_") or name == "oct" else "0")
        )
        if name == "moctsvm":
            depth = ("--depth", "1")
        line = ["fit", table, "-f", name, *depth, "--time-limit", "20", "-q"]
        shown, found = run(*line).stdout, json.loads(run(*line, "--json").stdout)
        for term, cost in found["terms"].items():
            words = next(x for x in shown.splitlines() if re.match(rf"(costs)? +\S+ +{term} ", x))
            assert f"{0.0 if abs(cost) < 1e-9 else cost:.6g}" in words.split()[:2], words
            assert len(words.split(term, 1)[1].split()) >= 3, words
        assert "no rows are held out" in shown
        assert "--test-size" in shown
        assert "the most frequent label alone 0.5000" in shown
        assert ("weights by effect" in shown) == ("*width" in shown or "*height" in shown)
    assert "held out" not in run("fit", "iris", *QUICK).stdout


def test_parameters_reach_the_model(table: Path) -> None:
    args = ["-f", "oct", "--depth", 1, "--alpha", "0.25", "--n-min", "0.2", "--complexity", "features"]
    found = json.loads(
        run("fit", table, *args, "--error-scale", "baseline", "--variant", "bd", "--json").stdout
    )
    assert found["params"] == {
        "depth": 1,
        "alpha": 0.25,
        "n_min": 0.2,
        "complexity": "features",
        "error_scale": "baseline",
        "variant": "bd",
    }
    assert json.loads(run("fit", table, *QUICK, "--n-min", "2", "--json").stdout)["params"]["n_min"] == 2
    args = ["--depth", 0, "--c1", 2, "--c2", 3, "--c3", 0.5, "--mu-svm", 0.01, "--norm", "l1"]
    found = json.loads(run("fit", table, *args, "--no-scale", "--json", "--test-size", 0).stdout or "{}")
    assert found == {}  # --no-scale: these features are not in [0, 1]
    found = json.loads(run("fit", table, *args, "--json").stdout)
    assert {k: found["params"][k] for k in ("c1", "c2", "c3", "mu_svm", "norm")} == {
        "c1": 2,
        "c2": 3,
        "c3": 0.5,
        "mu_svm": 0.01,
        "norm": "l1",
    }


@pytest.mark.slow
def test_limits_reach_the_solve() -> None:
    with at_most(6.0):
        fit = run("fit", "wine", "-f", "oct", "--depth", 2, "--variant", "rank", "--time-limit", 2, "--json")
    found = json.loads(fit.stdout)
    assert found["stop"] == "time_limit"
    # 112 rows: too many for a proof in one round, and few enough for a round to end by itself.
    found = json.loads(
        run(
            "fit", "iris", "--against-rest", "setosa", "--depth", 0, "--work-limit", "rounds=1", "--json"
        ).stdout
    )
    assert (found["rounds"], found["stop"]) == (1, "work_limit")


def test_start_is_not_made_worse(table: Path, tree: Path) -> None:
    result = run("fit", table, *QUICK, "--start", tree, "--work-limit", 1, "--json")
    assert json.loads(result.stdout)["objective"] == 1.0


def test_log_is_appended(table: Path, tmp_path: Path) -> None:
    log = tmp_path / "solver.log"
    log.write_text("mine\n")
    assert run("fit", table, *QUICK, "--log", log).exit_code == 0
    assert log.read_text().startswith("mine\n")
    assert len(log.read_text()) > 100


def test_tree_file_is_written_whole(table: Path, tree: Path) -> None:
    assert octsvm.Tree.from_json(tree).predict([[9, 0]]).tolist() == ["high"]
    assert sorted(p.name for p in tree.parent.iterdir()) == ["table.csv", "tree.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a device file")
def test_device_is_written_to_and_stays(table: Path) -> None:
    before = os.stat(os.devnull)
    assert run("fit", table, *QUICK, "--out", os.devnull).exit_code == 0
    assert os.stat(os.devnull).st_mode == before.st_mode


def test_unverified_answer_is_explained_and_its_tree_written(shared: Path, tmp_path: Path) -> None:
    out = tmp_path / "tree.json"
    case = shared / "cases" / "on_the_plane_b.csv"
    result = run("fit", case, "--variant", "paper", "--no-scale", "--depth", 1, "--out", out, "--json")
    assert result.exit_code == cli.UNVERIFIED
    assert "does not hold outside the solver" in result.stderr
    assert "variant paper" in result.stderr
    found = json.loads(result.stdout)
    assert found["status"] == "unverified"
    assert octsvm.Tree.from_json(out).to_dict() == found["tree"]


def test_given_up_labels_that_are_numbers_are_plain(tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text("width,kind\n" + "".join(f"{i},{int((i > 5) != (i == 2))}\n" for i in range(12)))
    line = ["fit", path, "--depth", "0", "--c1", "20", "--c2", "5"]
    (record,) = json.loads(run(*line, "--json").stdout)["relabelled"]
    assert (record["line"], record["given"], record["believed"]) == (4, 1, 0)
    assert "line 4: given 1, believed 0" in run(*line).stdout


def test_no_tree_has_its_own_exit_code(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    fitted = octsvm.fit("oct", [[0.0], [1.0]], [0, 1], depth=1)
    nothing = dataclasses.replace(fitted, tree=None, status="infeasible", stop="infeasible")
    monkeypatch.setattr(octsvm, "fit", lambda *args, **options: nothing)
    result = run("fit", table, *QUICK, "--json")
    assert result.exit_code == cli.NO_TREE
    assert json.loads(result.stdout)["tree"] is None
    assert "no tree" in result.stderr


def test_unexpected_error_is_one_line(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise KeyError("a\nb")

    monkeypatch.setattr(octsvm, "fit", broken)
    result = run("fit", table, *QUICK, "--quiet")
    assert result.exit_code == cli.UNEXPECTED
    assert result.stderr.count("\n") == 1
    assert "unexpected KeyError (test_cli.py, line" in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
@pytest.mark.slow
def test_sigterm_keeps_the_best_tree_of_a_solve(tmp_path: Path) -> None:
    out = tmp_path / "tree.json"
    hard = ("-f", "oct", "--depth", 3, "--variant", "rank")
    child = process("fit", "wine", *hard, "--time-limit", PATIENCE, "--json", "--out", out)
    assert child.stderr is not None
    for line in child.stderr:
        if "best tree" in line:
            break
    child.send_signal(signal.SIGTERM)
    stdout, stderr = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, stderr
    assert "Traceback" not in stderr
    # Solver libraries write to stdout behind Python's back; only a real process shows that it is clean.
    found = json.loads(stdout)
    assert found["stop"] == "interrupted"
    assert octsvm.Tree.from_json(out).to_dict() == found["tree"]


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
@pytest.mark.parametrize(("number", "code"), [("SIGINT", cli.INTERRUPTED), ("SIGTERM", 143)])
def test_the_signal_that_ended_a_command_is_its_exit_code(
    number: str, code: int, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def ended(*args: Any, **options: Any) -> None:
        signal.raise_signal(getattr(signal, number))

    monkeypatch.setattr(octsvm, "fit", ended)
    assert run("fit", table, *QUICK, "--quiet").exit_code == code
    monkeypatch.setattr(octsvm, "race", ended)
    assert run("race", table, "-f", "oct", "--depth", 1).exit_code == code
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
def test_progress_on_a_terminal_rewrites_one_line(table: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    args = [
        sys.executable,
        "-m",
        "octsvm",
        "fit",
        "wine",
        "-f",
        "oct_h",
        "--depth",
        "2",
        "--time-limit",
        "2",
    ]
    child = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=theirs, text=True)
    out, _ = child.communicate(timeout=PATIENCE)
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert child.returncode == 0
    assert shown.count("\r") > 3
    assert re.search(r"\r +\d\.\d s  best tree [\d.]+  bound [\d.]+  gap [\d.]+%", shown)
    assert shown.endswith("\n")
    assert " s  best tree" not in out


def test_one_class_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("a,b\n1,x\n2,x\n")
    result = run("fit", path, *QUICK)
    assert result.exit_code == 0
    assert "Warning: y holds one class only ('x')" in result.stderr
    assert ".py" not in result.stderr


def test_odd_header_lines_are_remarked(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text(",a,kind\n0,1,x\n1,2,y\n")
    result = run("fit", path, *QUICK)
    assert result.exit_code == 0
    assert "'Unnamed: 0'" in result.stderr
    path.write_text(",Unnamed: 0,kind\n0,0,x\n1,1,y\n")  # written with its index twice
    found = json.loads(run("fit", path, *QUICK, "--json").stdout)
    assert found["tree"]["feature_names"] == ["Unnamed: 0.1", "Unnamed: 0"]
    path.write_text("5.1,3.5,x\n4.9,3.0,x\n7.0,3.2,y\n")
    result = run("fit", path, *QUICK)
    assert result.exit_code == 0
    assert "looks like a row of values" in result.stderr


def test_tables_as_people_save_them(tmp_path: Path) -> None:
    path = tmp_path / "saved.csv"
    path.write_bytes(b"\xef\xbb\xbfa;kind;b\r\n1;x;2\r\n3;y;4\r\n\r\n")  # byte-order mark, CRLF, blank line
    for sign, name in ((b";", ";"), (b"\t", "tab")):
        path.write_bytes(path.read_bytes().replace(b";", sign))
        result = run("fit", path, *QUICK, "--separator", name, "--label", "kind", "--json")
        found = json.loads(result.stdout)
        assert found["tree"]["feature_names"] == ["a", "b"]
        assert found["tree"]["classes"] == ["x", "y"]


def test_lines_are_those_of_the_file_where_one_holds_a_quoted_nothing(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text('a\n\n1\n""\n3\n')
    read = tables.read_table(tmp_path / "one.csv", labelled=False)
    assert list(zip(read.lines or (), read.X["a"].isna(), strict=True)) == [(3, False), (4, True), (5, False)]


# -- predict ------------------------------------------------------------------------------------------------------


def test_predict_picks_columns_by_name(tree: Path, tmp_path: Path) -> None:
    data = tmp_path / "new.csv"
    data.write_text("note,height,width\nhello,9,0\nworld,0,9\n")
    result = run("predict", tree, data, "-q")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "prediction\nlow\nhigh\n", "")


def test_predict_with_known_labels(tree: Path, table: Path, tmp_path: Path) -> None:
    result = run("predict", tree, table, "--label", "kind", "-q")
    assert result.stderr == "accuracy 1.0000 on 10 rows\n"
    assert len(result.stdout.splitlines()) == 11
    out = tmp_path / "predictions.csv"
    result = run("predict", tree, table, "--label", "kind", "--out", out)
    assert result.stdout == f"written    {out}: 10 rows\naccuracy 1.0000 on 10 rows\n"
    assert pd.read_csv(out)["prediction"].tolist() == pd.read_csv(table)["kind"].tolist()
    found = json.loads(run("predict", tree, table, "--label", "kind", "--json").stdout)
    assert (found["rows"], found["accuracy"]) == (10, 1.0)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("rest", [[], ["--against-rest", "1"]])
def test_rows_without_a_label_are_not_judged(kind: str, rest: list[str], tmp_path: Path) -> None:
    train, data, tree = tmp_path / "train.csv", tmp_path / "new", tmp_path / "tree.json"
    train.write_text("a,kind\n" + "1,1\n2,2\n" * 4)
    assert run("fit", train, *QUICK, *rest, "--out", tree).exit_code == 0
    frame = pd.DataFrame({"a": [1, 2, 1, 2], "kind": pd.array([1, 2, 2, None], dtype="Int64")})
    (frame.to_csv if kind == "csv" else frame.to_parquet)(data, index=False)
    result = run("predict", tree, data, "--label", "kind", "-q")
    assert "1 of the 4 rows have no label" in result.stderr
    assert result.stderr.endswith("accuracy 0.6667 on 3 rows\n")
    assert len(result.stdout.splitlines()) == 5


def test_labels_that_are_all_missing_judge_nothing(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("width,height,kind\n0,9,\n")
    result = run("predict", tree, tmp_path / "new.csv", "--label", "kind")
    assert result.exit_code == cli.WRONG_INPUT
    assert "no row has a label in 'kind'" in result.stderr


@pytest.mark.slow
def test_predict_as_python_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.random((30, 2)), columns=["a", "b"])
    y = (X["a"] + X["b"] > 1).astype(int)
    octsvm.fit("octsvm", X, y, depth=0, time_limit=10).tree.to_json(tmp_path / "tree.json")
    X.assign(label=y).to_csv(tmp_path / "data.csv", index=False)
    found = json.loads(run("predict", tmp_path / "tree.json", tmp_path / "data.csv", "--json").stdout)
    assert found["predictions"] == octsvm.Tree.from_json(tmp_path / "tree.json").predict(X).tolist()
    assert found["accuracy"] is None


@pytest.mark.slow
def test_predict_against_rest(tmp_path: Path) -> None:
    tree, data = tmp_path / "tree.json", tmp_path / "iris.csv"
    iris = tables.load("iris")
    iris.X.assign(kind=iris.y).to_csv(data, index=False)
    args = ["--against-rest", "setosa", "--depth", 0, "--time-limit", 20, "--out", tree]
    assert run("fit", data, *args).exit_code == 0
    assert octsvm.Tree.from_json(tree).classes == ("not setosa", "setosa")
    result = run("predict", tree, data, "--label", "kind", "--against-rest", "setosa", "-q")
    assert result.stderr == "accuracy 1.0000 on 150 rows\n"


# -- show, write, doctor, completion ------------------------------------------------------------------------------


def oblique(depth: int) -> octsvm.Tree:
    """Every node splits on eight features with long names."""
    B = 2**depth - 1
    names = tuple(f"a feature with a long name, number {j}" for j in range(8))
    rng = np.random.default_rng(0)
    return octsvm.ObliqueTree(
        depth,
        ("bad [red]", "good"),
        names,
        octsvm.fit("oct_h", np.eye(8), [0, 1] * 4, depth=1, alpha=9, time_limit=5).tree.scaling,
        rng.normal(size=(B, 8)),
        rng.normal(size=B),
        np.ones(B, dtype=bool),
        np.arange(B + 1) % 2,
    )


def test_show_draws_the_tree(tree: Path) -> None:
    result = run("show", tree)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "axis-parallel tree, 1 level of splits, 1 split, 2 features, original units"
    assert lines[1] == "classes: 'high', 'low'"
    assert lines[3:] == ["[1] width", "├── < 4.5: class 'low'", "└── >= 4.5: class 'high'"]
    assert "< 0.5: class" in run("show", tree, "--units", "scaled").stdout
    text = run("show", tree, "--text").stdout.splitlines()[3:]
    assert text == octsvm.Tree.from_json(tree).to_text().splitlines()


def test_show_stays_readable_for_deep_oblique_trees(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    deep = oblique(6)
    deep.to_json(path)
    result = CliRunner(env={"COLUMNS": "100"}).invoke(cli.main, ["show", str(path)])
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    # Every node and every leaf is there, wrapped lines keep to their branch, and names are not taken for markup.
    shown = re.findall(r"\[(\d+)\] ", result.stdout)
    assert sorted(map(int, shown)) == list(range(1, 64))
    assert result.stdout.count("class 'bad [red]'") == 32
    assert all(
        set(line[:4]) <= set("├─└│ ")
        for line in lines[3:]
        if not re.match(r"\[1\]", line) and line[0] in "├└│"
    )
    few = CliRunner(env={"COLUMNS": "200"}).invoke(cli.main, ["show", str(path), "--weights", "1"]).stdout
    assert "(7 with less effect)" in few


@pytest.mark.parametrize("units", ["original", "scaled"])
@pytest.mark.parametrize("formulation", ["oct", "oct_h", "re_svm", "octsvm"])
@pytest.mark.quick_cases("*-original", "oct-scaled")
def test_shown_json_predicts_as_the_tree_does(formulation: str, units: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.uniform(-5, 20, (14, 2)), columns=["a", "b"])
    y = np.where(X["a"] + X["b"] > 15, "up", "down")
    params = {} if formulation == "re_svm" else {"depth": 1}
    fitted = octsvm.fit(formulation, X, y, time_limit=3, **params).tree
    fitted.to_json(tmp_path / "tree.json")
    found = json.loads(run("show", tmp_path / "tree.json", "--units", units, "--json").stdout)
    nodes = {node["node"]: node for node in found["nodes"]}
    M = X if units == "original" else (X - fitted.scaling.low) / fitted.scaling.span
    predicted = []
    for _, row in M.iterrows():
        node = nodes[1]
        while "class" not in node:
            score = sum(w * row[name] for name, w in node["weights"].items())
            node = nodes[node["yes" if score < node["below"] else "no"]]
        predicted.append(node["class"])
    assert predicted == fitted.predict(X).tolist()


@pytest.mark.slow
def test_show_names_relabelled_rows(tmp_path: Path) -> None:
    path = tmp_path / "tree.json"
    assert run("fit", "toy", "--depth", "0", "--test-size", "0", "--out", path).exit_code == 0
    assert "relabelled rows (3, counted among the training rows" in run("show", path).stdout


@pytest.mark.parametrize("kind", ["lp", "nl", "mps"])
def test_write_with_readable_and_with_generic_names(kind: str, table: Path, tmp_path: Path) -> None:
    path = tmp_path / f"model.{kind}"
    result = run("write", table, *QUICK, "--out", path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "classes    0 = 'high', 1 = 'low'" in result.stdout
    assert "features   0 = 'width', 1 = 'height'" in result.stdout
    line = next(line for line in result.stdout.splitlines() if line.startswith("written"))
    assert line.split(None, 1)[1].split(", ") == [
        str(path),
        *(str(path.with_suffix(s)) for s in (".row", ".col") if kind == "nl"),
        f"{path}.json",
    ]
    named = path if kind != "nl" else path.with_suffix(".col")
    assert re.search(r"leaf_label[._]c[(\[]0[,_]2", named.read_text())
    assert path.with_suffix(".row").exists() == (kind == "nl")
    long = path.stat().st_size
    result = run("write", table, *QUICK, "--out", path, "--compact", "--json")
    found = json.loads(result.stdout)
    assert (found["classes"], found["features"]) == (["high", "low"], ["width", "height"])
    assert (found["files"], found["names"]) == ([str(path), f"{path}.json"], "generic")
    assert "leaf_label" not in path.read_text()
    # Names of the earlier model would be wrong for this one.
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name, f"{path.name}.json", "table.csv"]
    result = run("write", table, *QUICK, "--out", path, "--no-sidecar", "--compact")
    assert result.stdout.startswith(f"written    {path}\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name, "table.csv"]
    assert path.stat().st_size <= long


def test_read_knows_the_kinds_of_solution_files() -> None:
    from octsvm.backends.solution_formats import WRITTEN_BY
    from octsvm.cli.read import KINDS

    assert tuple(sorted(WRITTEN_BY)) == KINDS


def test_what_was_solved_elsewhere_is_read(table: Path, tmp_path: Path) -> None:
    import highspy

    quick = [*QUICK, "--variant", "rank"]
    path, saved = tmp_path / "model.lp", tmp_path / "read.json"
    assert run("write", table, *quick, "--out", path).exit_code == 0
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(path))
    solver.run()
    solver.writeSolution(str(tmp_path / "model.sol"), 0)
    result = run("read", table, tmp_path / "model.sol", *quick, "--out", saved)
    assert (result.exit_code, result.stderr) == (0, "")
    for part in ("status     feasible", "objective  1 = ", "which says 'Optimal'", "accuracy   train 1.0000"):
        assert part in result.stdout
    found = json.loads(run("read", table, tmp_path / "model.sol", *quick, "--json", "--kind", "highs").stdout)
    assert (found["objective"], found["solver"], found["stop"], found["train_rows"]) == (
        1.0,
        "highs",
        "file",
        10,
    )
    assert "--depth 1 there and 2 here" in refused(
        "read", table, tmp_path / "model.sol", *quick, "--depth", "2"
    )
    assert "No solution" not in refused("read", table, path, *quick)
    assert run("show", saved, "--text").exit_code == 0
    text = (tmp_path / "model.sol").read_text()
    # Row 0 in the other leaf: the answer does not hold.
    wrong = text.replace("assignment_z(0_2) 1", "assignment_z(0_2) 0").replace(
        "assignment_z(0_3) 0", "assignment_z(0_3) 1"
    )
    assert wrong != text
    (tmp_path / "model.sol").write_text(wrong)
    result = run("read", table, tmp_path / "model.sol", *quick)
    assert result.exit_code == cli.UNVERIFIED
    assert "does not hold outside the solver" in result.stderr


def test_write_takes_a_start(table: Path, tree: Path) -> None:
    out = tree.with_name("model.lp")
    assert run("write", table, *QUICK, "--start", tree, "--out", out).exit_code == 0
    assert "'margin'" not in refused("write", table, "--depth", "1", "--start", tree, "--out", out)


def test_write_to_a_device(table: Path, tmp_path: Path) -> None:
    link = tmp_path / "model.lp"
    link.symlink_to(os.devnull)
    assert run("write", table, *QUICK, "--out", link).exit_code == 0
    assert link.is_symlink()


@pytest.mark.slow
def test_doctor_says_what_works_what_stands_in_and_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    entry = (root / "solvers.yaml").read_text()
    highs = entry[entry.index("  highs:") : entry.index("\n  gurobi:") + 1]
    rare = highs.replace("highs:", "rare:", 1).replace("highspy", "no_such_module")
    front = rare.replace("rare:", "front:", 1).rstrip("\n") + "\n    otherwise: highs\n"
    (tmp_path / "mine.yaml").write_text(entry + rare + front)
    monkeypatch.setenv("OCTSVM_SOLVERS", str(tmp_path / "mine.yaml"))
    result = run("doctor")
    assert result.exit_code == 0, result.stdout  # one solver more would be fine, and is not needed
    shown = " ".join(result.stdout.split())
    for name in ("python", "octsvm", "pyomo", "numpy", "highspy", "click"):
        assert re.search(rf"ok {name} [\d.]+ ", shown), name
    assert re.search(r"ok highs [^;]*; a trial model was solved", shown)
    assert re.search(r"ok front [^;]* \(highs stands in for it\)[^;]*; a trial model was solved", shown)
    assert "missing rare not installed; solves LP, MILP" in shown
    assert "pip install no_such_module" in shown
    (tmp_path / "mine.yaml").write_text("solvers: 3")
    result = run("doctor")
    assert result.exit_code == 1
    assert "failed" in result.stdout
    assert "OCTSVM_SOLVERS" in result.stdout


def test_doctor_sees_old_and_broken_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    from octsvm.diagnostics import doctor

    known = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "0.0.1" if name == "pyomo" else known(name))
    monkeypatch.setattr(octsvm.api, "solve", lambda *args, **options: 1 / 0)
    checks = {c.name: c for c in doctor.examine()}
    assert checks["pyomo"].state == "failed"
    assert "pip install --upgrade 'pyomo>=" in checks["pyomo"].cure
    assert checks["highs"].state == "failed"
    assert "ZeroDivisionError" in checks["highs"].detail
    assert run("doctor").exit_code == 1
    assert json.loads(run("doctor", "--json").stdout)["ok"] is False


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_OCTSVM_COMPLETE" in result.stdout
    assert json.loads(run("completion", shell, "--json").stdout)["script"] == result.stdout.removesuffix("\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("octsvm f", {"fit"}),
        ("octsvm fit ir", {"iris"}),
        ("octsvm size br", {"breast_cancer"}),
        ("octsvm fit iris --formulation oc", {"oct", "oct_h", "octsvm"}),
        ("octsvm fit iris -f re", {"re_svm"}),
        ("octsvm fit iris --solver hi", {"highs"}),
        ("octsvm fit iris --solver au", {"auto"}),
        ("octsvm plan iris --solver sc", {"scip"}),
        ("octsvm solvers gl", {"glpk"}),
        ("octsvm fit iris --nor", {"--norm"}),
        ("octsvm write iris --variant pa", {"paper"}),
        ("octsvm show tree.json --units sc", {"scaled"}),
        ("octsvm completion z", {"zsh"}),
    ],
)
def test_names_complete(words: str, expected: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_OCTSVM_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    result = CliRunner().invoke(cli.main, [], prog_name="octsvm")
    assert set(result.stdout.split()) == {f"plain,{name}" for name in expected}


def test_files_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text(TABLE)
    offered = {item.value: item.type for item in shared.TABLE.shell_complete(None, None, "")}  # type: ignore[arg-type]
    assert {"iris", "toy", "mine.csv"} <= set(offered)
    (item,) = shared.TABLE.shell_complete(None, None, "sub/m")  # type: ignore[arg-type]
    assert item.type == "file"


SHOWS = """
import json, os, sys
from octsvm import cli
for environment, *words in json.loads(sys.argv[1]):
    os.environ.update(environment)
    try:
        cli.main(words)
    except SystemExit:
        sys.stdout.flush()
        os.write(1, b"\\0")  # ends what one of them shows
    for name in environment:
        del os.environ[name]
"""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.slow
def test_colours_on_a_terminal_only(tree: Path, terminal: bool) -> None:
    coloured: list[dict[str, str]] = [{"TERM": "xterm-256color"}]
    plain = [{"TERM": "xterm-256color", "NO_COLOR": "1"}, {"TERM": "dumb"}]
    commands = [(e, "show", name) for e in coloured + plain for name in ("tree.json", "nowhere.json")]
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLORTERM")}
    ours, theirs = os.openpty()
    target = theirs if terminal else subprocess.PIPE
    child = subprocess.Popen(
        [sys.executable, "-c", SHOWS, json.dumps(commands)],
        stdout=target,
        stderr=target if terminal else subprocess.STDOUT,
        cwd=tree.parent,
        env=inherited,
    )
    out, _ = child.communicate(timeout=PATIENCE)
    os.close(theirs)
    shown = (os.read(ours, 65536) if terminal else out).split(b"\0")[:-1]
    os.close(ours)
    assert len(shown) == len(commands)
    assert all(shown)
    assert [b"\x1b[" in one for one in shown] == [terminal and e in coloured for e, *_ in commands]


# -- Ctrl-C at any moment -----------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
@pytest.mark.parametrize(
    ("sign", "after", "again", "model"),
    [
        ("rows to train", 0.0, None, "-f oct --depth 3 --variant rank"),  # the model is being built
        # Once, later: test_sigterm_keeps_the_best_tree_of_a_solve, by the same way.
        ("best tree", 0.3, 0.05, "-f oct --depth 3 --variant rank"),  # pressed twice
        ("rows to train", 0.7, None, "--against-rest class_1 --depth 1"),
        ("best tree", 1.0, None, "--against-rest class_1 --depth 1"),
    ],
)
@pytest.mark.slow
def test_ctrl_c_at_any_moment(
    sign: str, after: float, again: float | None, model: str, tmp_path: Path
) -> None:
    out = tmp_path / "tree.json"
    child = process("fit", "wine", *model.split(), "--time-limit", 100, "--out", out)
    assert child.stderr is not None
    for line in child.stderr:
        if sign in line:
            break
    time.sleep(after)
    child.send_signal(signal.SIGINT)
    if again is not None:
        time.sleep(again)
        child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=PATIENCE)
    for text in ("Traceback", "Exception ignored", "terminate called", "fault in octsvm"):
        assert text not in stderr
    # A second Ctrl-C may come while Python ends, and then ends it at once; a shell reports both as 130.
    assert child.returncode in (0, cli.INTERRUPTED, -signal.SIGINT), stderr
    if child.returncode == 0:
        assert "stop       interrupted" in stdout
    elif child.returncode == cli.INTERRUPTED:
        assert stderr.rstrip().endswith("Interrupted.")
    assert {p.name for p in tmp_path.iterdir()} <= {"tree.json"}
    if sign == "best tree" and again is None:
        assert child.returncode == 0, stderr
        assert out.exists()
    if out.exists():
        octsvm.Tree.from_json(out)


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
@pytest.mark.slow
def test_ctrl_c_that_a_library_swallowed_still_ends_the_solve(tmp_path: Path) -> None:
    code = """
import signal, sys
import octsvm, octsvm.api
from octsvm import cli
real = octsvm.fit
def fit(*args, **options):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        pass  # as an import or a destructor may do
    return real(*args, **options)
octsvm.fit = fit
cli.main(["fit", "wine", "-f", "oct", "--depth", "3", "--variant", "rank", "--time-limit", "100"])
"""
    with at_most(50.0):
        child = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path
        )
    assert child.returncode == 0
    assert "stop       interrupted" in child.stdout


# -- the program itself -------------------------------------------------------------------------------------------


def test_version() -> None:
    assert run("--version").stdout == f"octsvm, version {octsvm.__version__}\n"


@pytest.mark.parametrize("name", ["", *sorted(cli.main.commands)])
def test_help_has_examples_exit_codes_and_json(name: str) -> None:
    result = run(*name.split(), "--help")
    assert result.exit_code == 0
    for part in ("Examples", f"octsvm {name}", "Exit codes:", "130", "--json"):
        assert part in result.stdout
    assert run(*name.split(), "-h").stdout == result.stdout


def test_help_of_tune_says_how_often_folds_are_drawn() -> None:
    assert MOST_REPEATS == 2
    assert "twice at most" in " ".join(run("tune", "--help").output.split())


def test_help_names_every_exit_code() -> None:
    for name, codes in (
        ("fit", range(5)),
        ("doctor", range(3)),
        ("show", range(3)),
        ("plan", range(3)),
        ("race", (0, 1, 2, 5)),
        ("", range(6)),
    ):
        shown = run(*name.split(), "--help").stdout
        assert all(re.search(rf"^ +{code}  \S", shown, re.MULTILINE) for code in (*codes, 130))


def test_no_command_shows_the_help() -> None:
    assert "octsvm fit" in refused()


HEAVY = ("matplotlib", "pyomo", "numpy", "pandas", "sklearn", "scipy", "highspy", "pydantic", "rich")


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import octsvm", HEAVY),
        ("import octsvm.cli", HEAVY),
        # Once a function is used, Pyomo is there; what reads tables, fits other trees or solves comes with its use.
        ("import octsvm; octsvm.build, octsvm.Tree", ("pandas", "sklearn", "highspy")),
    ],
)
@pytest.mark.slow_cases("*build*")
def test_imports_load_nothing_heavy(statement: str, unwanted: tuple[str, ...]) -> None:
    code = f"import sys; {statement}; print([m for m in {unwanted!r} if m in sys.modules])"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout == "[]\n"


@pytest.mark.parametrize("command", [["--help"], ["fit", "--help"], ["--version"]])
def test_help_loads_none_of_the_large_libraries(command: list[str]) -> None:
    """They take a second; without them help is there in a tenth."""
    script = (
        "import sys\nfrom octsvm.cli import main\ntry:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'pyomo', 'numpy', 'scipy', 'pandas', 'sklearn', 'highspy', 'pydantic'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


# -- labels of files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("train", "new", "classes", "accuracy"),
    [
        ("1,1 2,1 5,2 6,2 9,3A 9,3A", "1,1 5,2", "1 2 3A", 1.0),  # text in one file, numbers in the next
        ("1,1 2,1 5,2 6,2", "1,1 5,2 6,3A", "1 2", 2 / 3),  # the other way round
        ("1,1 2,1 5,2.5 6,2.5", "1,1 2,1.0", "1.0 2.5", 1.0),
        ("1,1 2,1 5,2 6,2", "1,1 5,2 6,", "1 2", 1.0),  # a gap is neither right nor wrong
        ("1,True 2,True 5,False 6,False", "1,True 5,maybe", "False True", 0.5),
        ("1,01 2,01 5,1 6,1", "5,1 6,1", "01 1", 1.0),  # codes
        ("1,007 2,007 5,008 6,008", "1,007 5,008", "007 008", 1.0),
        (
            "1,9007199254740993 2,9007199254740993 5,9007199254740992 6,9007199254740992",
            "1,9007199254740993",
            None,
            1.0,
        ),
        ("1,123456789012345678901 2,123456789012345678901 5,7 6,7", "1,123456789012345678901", None, 1.0),
    ],
)
def test_what_a_label_is_does_not_depend_on_what_else_a_file_holds(
    train: str, new: str, classes: str | None, accuracy: float, tmp_path: Path
) -> None:
    files = []
    for name, rows in (("train", train), ("new", new)):
        files.append(tmp_path / f"{name}.csv")
        files[-1].write_text("\n".join(["a,class", *rows.split(), ""]))
    tree = tmp_path / "tree.json"
    assert run("fit", files[0], "-f", "oct", "--depth", "2", "--alpha", "0.1", "--out", tree).exit_code == 0
    known = octsvm.Tree.from_json(tree).classes
    if classes is not None:
        assert list(map(str, known)) == classes.split()
    assert len(known) == len({row.split(",")[1] for row in train.split()})
    found = run("predict", tree, files[1], "--label", "class", "--json")
    assert found.exit_code == 0
    assert json.loads(found.stdout)["accuracy"] == pytest.approx(accuracy)


# -- streams that are closed --------------------------------------------------------------------------------------


# Without stderr alone: test_messages_that_nobody_gets_change_no_exit_code.
@pytest.mark.parametrize(("closed", "shown"), [("<&- >&- 2>&-", ""), ("| true", "--json")])
@pytest.mark.slow
def test_a_closed_stream_is_no_fault_once_the_file_is_written(
    table: Path, tree: Path, closed: str, shown: str, tmp_path: Path
) -> None:
    out = tmp_path / "again.json"
    command = f"{sys.executable} -m octsvm fit {table} -f oct --depth 1 {shown} --out {out} {closed}"
    if "|" in closed:
        command = f"set -o pipefail; {command}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "fault" not in done.stderr
    assert json.loads(out.read_text()) == json.loads(tree.read_text())


@pytest.mark.parametrize("command", [["show"], ["show", "--json"], ["--help"]])
@pytest.mark.slow
def test_a_closed_stdout_drops_what_is_printed(command: list[str], tree: Path) -> None:
    words = [*command, str(tree)] if command[0] == "show" else command
    line = " ".join([sys.executable, "-m", "octsvm", *words, ">&-"])
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_one_is_counted_as_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,y\n1,l\n2,l\n8,r\n9,r\n")
    (tmp_path / "n.csv").write_text("a,y\n1,l\n")
    tree = tmp_path / "tree.json"
    fitted = run("fit", tmp_path / "t.csv", "-f", "oct", "--depth", 1, "--out", tree)
    assert "oct on 4 rows and 1 feature, " in fitted.stdout
    assert "4 rows to train on, 0 to test on, 1 feature\n" in fitted.stderr
    assert "1 split, 1 feature, " in run("show", tree).stdout
    told = run("predict", tree, tmp_path / "n.csv", "--label", "y", "--out", tmp_path / "p.csv").stdout
    assert "p.csv: 1 row\n" in told
    assert "on 1 row\n" in told
    assert "on 4 rows, 1 feature, " in run("size", "--n", 4, "--p", 1).stdout


def test_a_plan_is_that_of_a_fit_unless_a_solver_is_named() -> None:
    default = run("plan", "toy", "-f", "oct", "--depth", 0).stdout
    assert default.startswith("solver     highs: ")
    assert "because    no solver was named" in default
    assert run("plan", "toy", "-f", "re_svm").stdout.startswith("solver     branch_and_reduce: ")
    chosen = run("plan", "toy", "-f", "oct", "--depth", 0, "--solver", "auto").stdout
    assert "because    the first of the table's preferences" in chosen
