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
from click.testing import CliRunner, Result

import octsvm
from octsvm import cli, tables

QUICK = ["--formulation", "oct", "--depth", "1"]
TABLE = "width,height,kind\n" + "".join(f"{i},{i * 7 % 10},{'low' if i < 5 else 'high'}\n" for i in range(10))


def run(*args: Any) -> Result:
    result = CliRunner().invoke(cli.main, [str(a) for a in args])
    assert "Traceback" not in result.output
    return result


def refused(*args: Any) -> str:
    """The message of a command that ends with exit code 2, one line but for the usage."""
    result = run(*args)
    assert result.exit_code == cli.WRONG_INPUT, result.output
    assert result.stdout == ""
    return result.stderr


def process(*args: Any, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "octsvm.cli", *map(str, args)],
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
    assert "incumbent" in result.stderr
    assert "incumbent" not in result.stdout
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


def test_json_of_a_process_is_clean() -> None:
    # Solver libraries write to stdout behind Python's back; only a real process shows that.
    child = process("fit", "toy", *QUICK, "--json", "--quiet")
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, "")
    assert json.loads(out)["status"] == "optimal"


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
    result = run("fit", table, "--depth", "0", "--c1", "20", "--c2", "5", "--flip", "0.1", "--seed", "1")
    assert result.exit_code == 0
    assert "1 labels flipped" in result.stderr
    assert "1.0000 of the labels before flipping" in result.stdout
    assert "relabelled 1 row" in result.stdout
    assert "1 of the 1 flipped ones among them" in result.stdout


def test_one_class_against_the_rest() -> None:
    result = run("fit", "iris", "--against-rest", "setosa", "--depth", "0", "--time-limit", "20", "--json")
    found = json.loads(result.stdout)
    assert found["tree"]["classes"] == ["not setosa", "setosa"]
    assert found["train_accuracy"] == 1.0


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


def test_limits_reach_the_solve() -> None:
    began = time.monotonic()
    found = json.loads(run("fit", "wine", "-f", "oct", "--depth", 2, "--time-limit", 2, "--json").stdout)
    assert time.monotonic() - began < 6
    assert found["stop"] == "time_limit"
    found = json.loads(run("fit", "toy", "--depth", 1, "--work-limit", "rounds=1", "--json").stdout)
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


def test_interrupt_outside_the_solve(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(octsvm, "fit", interrupted)
    result = run("fit", table, *QUICK, "--quiet")
    assert result.exit_code == cli.INTERRUPTED
    assert result.stderr.strip() == "Interrupted."


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_interrupt_of_a_solve_keeps_the_best_tree(tmp_path: Path) -> None:
    out = tmp_path / "tree.json"
    child = process("fit", "wine", "-f", "oct", "--depth", 3, "--time-limit", 60, "--json", "--out", out)
    assert child.stderr is not None
    for line in child.stderr:
        if "incumbent" in line:
            break
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=20)
    assert child.returncode == 0, stderr
    assert "Traceback" not in stderr
    found = json.loads(stdout)
    assert found["stop"] == "interrupted"
    assert octsvm.Tree.from_json(out).to_dict() == found["tree"]


def test_progress_on_a_terminal_rewrites_one_line(table: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    args = [
        sys.executable,
        "-m",
        "octsvm.cli",
        "fit",
        "wine",
        "-f",
        "oct",
        "--depth",
        "2",
        "--time-limit",
        "2",
    ]
    child = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=theirs, text=True)
    out, _ = child.communicate(timeout=60)
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert child.returncode == 0
    assert shown.count("\r") > 3
    assert re.search(r"\r +\d\.\d s  incumbent [\d.]+  bound [\d.]+  gap [\d.]+%", shown)
    assert shown.endswith("\n")
    assert "incumbent" not in out


def test_one_class_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("a,b\n1,x\n2,x\n")
    result = run("fit", path, *QUICK)
    assert result.exit_code == 0
    assert "Warning: y holds one class only ('x')" in result.stderr
    assert ".py" not in result.stderr


# -- wrong input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["the file is empty", "header line"]),
        ("\n\n  \n", ["the file is empty"]),
        ("a,b,c\n", ["no rows", "line 1"]),
        ("a,b,c\n1,2,x\n3,4\n", ["line 3", "2 values", "3 columns"]),
        ("a,b,c\n1,2,x\n\n3,4,5,y\n", ["line 4", "4 values", "3 columns"]),
        ('a,b,c\n1,"2,x\n3,4,y\n', ["line 2", "quotation mark"]),
        ("a\n1\n2\n", ["line 1", "single column, 'a'"]),
        ("a;b;c\n1;2;x\n", ["single column", "';'", "--separator"]),
        ("a,a,c\n1,2,x\n3,4,y\n", ["line 1", "two columns are called 'a'"]),
        ("a,b,c\n1,2,x\n3,?,y\n4,5,y\n", ["line 3", "'b'", "'?'", "among numbers", "missing value"]),
        ("a,b,c\n1,red,x\n3,blue,y\n", ["line 2", "'b'", "'red'", "get_dummies"]),
        ("a,b,c\n1,2,x\n\n3,,y\n", ["line 4", "'b'", "missing"]),
        ("a,b,c\n1,2,x\n3,inf,y\n", ["line 3", "'b'", "infinite"]),
        ("a,b,c\n1,2,x\n3,4,\n", ["line 3", "label", "missing"]),
        ("a,b,c\n1,2,caf\xe9\n", ["line 2", "0xe9", "UTF-8"]),
        ("a,b,c\n1,2,x\n3,\0,y\n", ["line 3", "zero byte"]),
        ("a,b,c\n" + "".join(f"1,2,{i}.5\n" for i in range(12)), ["measurement"]),
    ],
)
def test_wrong_tables_are_refused_by_file_and_line(tmp_path: Path, text: str, parts: list[str]) -> None:
    path = tmp_path / "wrong.csv"
    path.write_bytes(text.encode("latin-1"))
    message = refused("fit", path, *QUICK, "--quiet")
    assert message.startswith("Error: ")
    assert message.count("\n") == 1
    for part in [str(path), *parts]:
        assert part in message


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (["nowhere.csv"], ["nowhere.csv", "no such file", "iris"]),
        (["irs"], ["irs", "Did you mean 'iris'?"]),
        (["FOLDER"], ["directory", "table.csv"]),
        (["TABLE/x.csv"], ["cannot be read"]),
        (["TABLE", "--label", "kin"], ["'kin'", "Did you mean 'kind'?", "'width', 'height', 'kind'"]),
        (["iris", "--label", "species"], ["'species'", "built-in"]),
        (["TABLE", "--separator", "::"], ["'::'", "one character"]),
        (["TABLE", "-f", "octt"], ["'octt'", "Did you mean 'oct'?"]),
        (["TABLE", "--alpha", "1"], ["'alpha'", "octsvm", "c1"]),
        (["TABLE", "-f", "oct", "--c1", "1"], ["'c1'", "alpha"]),
        (["TABLE", "--depth", "-1"], ["depth=-1"]),
        (["TABLE", "--depth", "two"], ["--depth", "two"]),
        (["TABLE", "--norm", "l3"], ["norm='l3'", "'l2' or 'l1'"]),
        (["TABLE", "--variant", "bd"], ["variant='bd'", "paper"]),
        (["TABLE", *QUICK, "--n-min", "some"], ["'some'", "count of rows"]),
        (["TABLE", *QUICK, "--n-min", "99"], ["n_min=99", "10 rows"]),
        (["TABLE", *QUICK, "--n-min", "1.5"], ["n_min=1.5", "share"]),
        (["TABLE", "--c1", "nan"], ["c1=nan"]),
        (["TABLE", "--test-size", "1"], ["--test-size"]),
        (["TABLE", "--test-size", "0.01"], ["--test-size 0"]),
        (["TABLE", "--flip", "2"], ["--flip"]),
        (["TABLE", "--time-limit", "0"], ["time_limit"]),
        (["TABLE", "--time-limit", "-5"], ["time_limit"]),
        (["TABLE", "--gap", "1"], ["gap=1.0"]),
        (["TABLE", "--threads", "0"], ["threads=0"]),
        (["TABLE", "--seed", "-1"], ["--seed", "-1"]),
        (["TABLE", "--work-limit", "many"], ["'many'", "rounds=3"]),
        (["TABLE", "--work-limit", "cuts=3"], ["'cuts=3'", "rounds=3"]),
        (["TABLE", "--solver", "high"], ["'high'", "Did you mean 'highs'?"]),
        (["TABLE", "--start", "nowhere.json"], ["nowhere.json"]),
        (["TABLE", "--start", "TABLE"], ["not JSON"]),
        (["TABLE", "--out", "nowhere/tree.json"], ["nowhere/tree.json", "no directory"]),
        (["TABLE", "--out", "FOLDER"], ["directory"]),
        (["TABLE", "--log", "nowhere/solver.log"], ["nowhere/solver.log", "no directory"]),
        (["TABLE", "--against-rest", "lo"], ["'lo'", "Did you mean 'low'?"]),
        (["iris"], ["separates two classes", "--formulation oct", "--against-rest versicolor"]),
        (["iris", "-f", "re_svm"], ["separates two classes", "--against-rest"]),
        (["TABLE", "--no-scale"], ["width", "[0, 1]"]),
        (["TABLE", "--dept", "1"], ["--dept", "--depth"]),
        (["TABLE", "another.csv"], ["another.csv"]),
    ],
)
def test_wrong_usage_is_refused(table: Path, args: list[str], parts: list[str]) -> None:
    places = {"TABLE": str(table), "FOLDER": str(table.parent), "TABLE/x.csv": str(table / "x.csv")}
    message = refused("fit", *(places.get(a, a) for a in args))
    for part in parts:
        assert part in message


def test_odd_header_lines_are_remarked(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text(",a,kind\n0,1,x\n1,2,y\n")
    result = run("fit", path, *QUICK)
    assert result.exit_code == 0
    assert "'Unnamed: 0'" in result.stderr
    path.write_text("5.1,3.5,x\n4.9,3.0,x\n7.0,3.2,y\n")
    result = run("fit", path, *QUICK)
    assert result.exit_code == 0
    assert "looks like a row of values" in result.stderr


def test_tables_as_people_save_them(tmp_path: Path) -> None:
    path = tmp_path / "saved.csv"
    path.write_bytes(b"\xef\xbb\xbfa;kind;b\r\n1;x;2\r\n3;y;4\r\n\r\n")  # byte-order mark, CRLF, blank line
    result = run("fit", path, *QUICK, "--separator", ";", "--label", "kind", "--json")
    found = json.loads(result.stdout)
    assert found["tree"]["feature_names"] == ["a", "b"]
    assert found["tree"]["classes"] == ["x", "y"]


# -- predict ------------------------------------------------------------------------------------------------------


def test_predict_picks_columns_by_name(tree: Path, tmp_path: Path) -> None:
    data = tmp_path / "new.csv"
    data.write_text("note,height,width\nhello,9,0\nworld,0,9\n")
    result = run("predict", tree, data)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "prediction\nlow\nhigh\n", "")


def test_predict_with_known_labels(tree: Path, table: Path, tmp_path: Path) -> None:
    result = run("predict", tree, table, "--label", "kind")
    assert result.stderr == "accuracy 1.0000 on 10 rows\n"
    assert len(result.stdout.splitlines()) == 11
    out = tmp_path / "predictions.csv"
    result = run("predict", tree, table, "--label", "kind", "--out", out)
    assert result.stdout == "accuracy 1.0000 on 10 rows\n"
    assert pd.read_csv(out)["prediction"].tolist() == pd.read_csv(table)["kind"].tolist()
    found = json.loads(run("predict", tree, table, "--label", "kind", "--json").stdout)
    assert (found["rows"], found["accuracy"]) == (10, 1.0)


def test_predict_as_python_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.random((30, 2)), columns=["a", "b"])
    y = (X["a"] + X["b"] > 1).astype(int)
    octsvm.fit("octsvm", X, y, depth=0, time_limit=10).tree.to_json(tmp_path / "tree.json")
    X.assign(label=y).to_csv(tmp_path / "data.csv", index=False)
    found = json.loads(run("predict", tmp_path / "tree.json", tmp_path / "data.csv", "--json").stdout)
    assert found["predictions"] == octsvm.Tree.from_json(tmp_path / "tree.json").predict(X).tolist()
    assert found["accuracy"] is None


def test_predict_against_rest(tmp_path: Path) -> None:
    tree, data = tmp_path / "tree.json", tmp_path / "iris.csv"
    iris = tables.load("iris")
    iris.X.assign(kind=iris.y).to_csv(data, index=False)
    args = ["--against-rest", "setosa", "--depth", 0, "--time-limit", 20, "--out", tree]
    assert run("fit", data, *args).exit_code == 0
    result = run("predict", tree, data, "--label", "kind", "--against-rest", "setosa")
    assert result.stderr == "accuracy 1.0000 on 150 rows\n"


@pytest.mark.parametrize(
    ("text", "args", "parts"),
    [
        ("width,kind\n1,low\n", [], ["'height'", "trained on"]),
        ("width,height\n1,2\n3,\n", [], ["line 3", "'height'", "missing"]),
        ("width,height\n1,2\n3,tall\n", [], ["line 3", "'tall'"]),
        ("width,height\n", [], ["no rows"]),
        ("width,height\n1,2,3\n", [], ["line 2", "3 values"]),
        ("width,height,kind\n1,2,low\n", ["--label", "kid"], ["Did you mean 'kind'?"]),
        ("width,height,kind\n1,2,blue\n", ["--label", "kind"], ["'blue'", "'high', 'low'"]),
        ("width,height\n1,2\n", ["--out", "nowhere/p.csv"], ["no directory"]),
    ],
)
def test_wrong_data_for_a_tree(
    tree: Path, tmp_path: Path, text: str, args: list[str], parts: list[str]
) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    message = refused("predict", tree, path, *args)
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["not JSON"]),
        ("[1, 2]", ["not a saved tree"]),
        ('{"schema": "octsvm.tree", "version": 99}', ["version 99", "Upgrade"]),
        ('{"schema": "octsvm.tree", "version": 1, "kind": "axis"}', ["damaged"]),
        ("\xff", ["cannot be read"]),
    ],
)
def test_wrong_trees(table: Path, tmp_path: Path, text: str, parts: list[str]) -> None:
    path = tmp_path / "wrong.json"
    path.write_bytes(text.encode("latin-1"))
    message = refused("predict", path, table)
    for part in parts:
        assert part in message


# -- the program itself -------------------------------------------------------------------------------------------


def test_version() -> None:
    assert run("--version").stdout == f"octsvm, version {octsvm.__version__}\n"


@pytest.mark.parametrize("args", [["--help"], ["fit", "--help"], ["predict", "-h"]])
def test_help_has_examples_and_exit_codes(args: list[str]) -> None:
    result = run(*args)
    assert result.exit_code == 0
    for part in (
        "Examples:",
        "octsvm fit" if args[0] != "predict" else "octsvm predict",
        "Exit codes:",
        "130",
    ):
        assert part in result.stdout


def test_no_command_shows_the_help() -> None:
    assert "octsvm fit" in refused()


def test_help_loads_nothing_heavy() -> None:
    code = "import sys, octsvm.cli; print([m for m in ('pandas', 'pyomo', 'sklearn', 'numpy') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )
    seconds = []
    for _ in range(3):
        began = time.monotonic()
        subprocess.run([sys.executable, "-m", "octsvm.cli", "--help"], capture_output=True, check=True)
        seconds.append(time.monotonic() - began)
    assert min(seconds) < 0.3
