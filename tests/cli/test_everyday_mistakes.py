"""What happens in every office: a file named twice, another decimal sign, a bad cell, a column gone, a label mistyped."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from waiting import PATIENCE

from octsvm import cli
from octsvm.cli.progress import signs_of_life
from octsvm.cli.tune import _kept as kept_folds
from octsvm.formulations.preparation import Preparation

N = 24
FORM = ["--separator", ";", "--decimal", ","]
FIT = [*FORM, "--label", "kind", "--encode", "line", "-f", "oct", "--depth", "1", "--alpha", "0.1", "-q"]


def run(*line: object) -> Result:
    return CliRunner().invoke(cli.main, [str(word) for word in line])


def rows(pressure: str = "{}", **cells: str) -> list[list[str]]:
    """Lot, line, weight in grams and pressure, where the second half has a higher one."""
    return [
        [
            f"L{i}",
            "ABC"[i % 3],
            f"1.{200 + i * 7 % 10},5",
            pressure.format(f"{3 + (i >= N // 2)},{100 + i * 7 % 23}"),
        ]
        for i in range(N)
    ]


def written(path: Path, lines: list[list[str]], labels: list[str] | None = None) -> Path:
    heads = ["lot", "line", "weight", "pressure"]
    text = [*heads, "kind"] if labels else heads
    body = [[*line, *([labels[i]] if labels else [])] for i, line in enumerate(lines)]
    path.write_text("\n".join(";".join(line) for line in [text, *body]) + "\n")
    return path


LABELS = ["low"] * (N // 2) + ["high"] * (N // 2)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return written(tmp_path / "table.csv", rows(), LABELS)


@pytest.fixture
def tree(table: Path) -> Path:
    out = table.with_name("tree.json")
    done = run("fit", table, *FIT, "--drop", "lot", "--out", out)
    assert done.exit_code == 0, done.output
    return out


# -- files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "fit table.csv --label kind --out ./table.csv",
        "fit table.csv --label kind --log table.csv",
        "fit toy --start tree.json --out tree.json",
        "tune table.csv --label kind --out table.csv",
        "predict tree.json table.csv --out tree.json",
        "predict tree.json table.csv --out link.csv",
        "suspects tree.json --out table.csv",
        "suspects tree.json --out tree.json",
        "report tree.json --out table.csv",
        "report tree.json --out tree.json",
        "plot tree.svg --out tree.svg",
        "race table.csv --label kind --out table.csv",
        "write model.lp --out model.lp",
        "read table.csv model.lp --out model.lp",
        "table2 export tree.json tree.json",
    ],
)
def test_no_command_writes_over_what_it_reads(line: str, tree: Path) -> None:
    folder = tree.parent
    (folder / "link.csv").symlink_to("table.csv")
    for name in ("tree.svg", "model.lp"):
        (folder / name).write_bytes(tree.read_bytes())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    found = run(*line.split())
    assert found.exit_code == cli.WRONG_INPUT, found.output
    assert "this command reads that file" in found.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_what_is_written_has_the_decimal_sign_of_the_table(tree: Path) -> None:
    proba = run("predict", tree, "table.csv", "--keep", "pressure", "--proba").stdout.splitlines()
    assert proba[1] == "3,100;low;0,0;1,0"
    labels = [*LABELS]
    labels[0] = "high"
    written(Path("noisy.csv"), rows(), labels)
    run("fit", "noisy.csv", *FIT, "--drop", "lot", "--out", "noisy.json")
    listed = run("suspects", "noisy.json").stdout.splitlines()
    assert re.fullmatch(r"2;high;low;low;0,\d+;training", listed[1])


def test_a_name_that_is_nearly_one_beside_it_is_suggested_and_no_other(table: Path) -> None:
    assert "Did you mean" not in run("fit", table.with_name("zzz.csv")).stderr
    assert f"Did you mean '{table.name}'?" in run("fit", table.with_name("tabel.csv")).stderr


# -- numbers ------------------------------------------------------------------------------------------------------


def test_numbers_far_from_training_are_warned_of_with_the_way_out(tree: Path) -> None:
    points = [[lot, line, weight, pressure.replace(",", ".")] for lot, line, weight, pressure in rows()]
    written(Path("new.csv"), points)
    found = run("predict", tree, "new.csv")
    assert "new.csv, line 2: column 'pressure' holds 3100 (24 such rows), far outside the 3.1" in found.stderr
    assert "(--decimal .)" in found.stderr
    plain = [[lot, line, weight.replace(".", "").replace(",", "."), p] for lot, line, weight, p in points]
    written(Path("new.csv"), plain)
    mended = run("predict", tree, "new.csv", "--decimal", ".")
    assert "Warning" not in mended.stderr
    assert mended.stdout == run("predict", tree, "table.csv").stdout
    assert "Warning" not in run("predict", tree, "table.csv").stderr


def test_the_bad_cell_among_numbers_with_a_decimal_comma_is_named(tree: Path) -> None:
    bad = rows()
    bad[7][3] = "n/a ca. 4"
    written(Path("bad.csv"), bad, LABELS)
    for line in (["fit", "bad.csv", *FIT, "--drop", "lot"], ["predict", tree, "bad.csv"]):
        found = run(*line)
        assert found.exit_code == cli.WRONG_INPUT
        assert "line 9: column 'pressure' holds 'n/a ca. 4' among numbers" in found.stderr
        assert "--encode" not in found.stderr
    every = run("fit", "bad.csv", *[word if word != "line" else "all" for word in FIT], "--drop", "lot")
    assert "'n/a ca. 4' among numbers" in every.stderr
    done = run("fit", "bad.csv", *FIT, "--drop", "lot", "--missing", "n/a ca. 4", "--impute", "median")
    assert done.exit_code == 0, done.output


def test_a_label_of_numbers_and_text_stays_as_it_is_written(table: Path) -> None:
    labels = ["1,5", "2", "3A"] * 8
    written(table, rows(), labels)
    found = run("fit", table, *FIT, "--drop", "lot")
    assert "label      kind: '1,5', '2', '3A'" in found.stdout, found.output


def test_numbers_that_are_encoded_are_warned_of(table: Path) -> None:
    found = run("fit", table, *FIT, "--drop", "lot", "--encode", "pressure")
    assert (
        "the column 'pressure' holds 24 different numbers, and --encode makes a feature of each"
        in found.stderr
    )
    assert "Warning" not in run("fit", table, *FIT, "--drop", "lot").stderr


# -- columns and labels -------------------------------------------------------------------------------------------


def test_the_column_that_is_missing_is_the_one_that_is_named(tree: Path) -> None:
    lines = Path("table.csv").read_text().splitlines()
    Path("less.csv").write_text("\n".join(";".join(line.split(";")[:3]) for line in lines))
    found = run("predict", tree, "less.csv")
    assert found.exit_code == cli.WRONG_INPUT
    assert "there is no column 'pressure', which the tree was trained on" in found.stderr
    Path("comma.csv").write_text(Path("table.csv").read_text().replace(",", ".").replace(";", ","))
    assert "(--separator)" in run("predict", tree, "comma.csv").stderr


@pytest.mark.parametrize("line", ["suspects tree.json", "report tree.json --out report.html"])
def test_where_the_table_of_the_fit_went_is_asked(line: str, tree: Path, table: Path) -> None:
    table.rename("moved.csv")
    found = run(*line.split())
    assert found.exit_code == cli.WRONG_INPUT
    assert "the table that the tree was fitted to is not there" in found.stderr
    command, saved, *rest = line.split()
    assert run(command, saved, "moved.csv", *rest).exit_code == 0


@pytest.mark.parametrize("column", ["kind", "line"])
def test_names_that_differ_in_spaces_or_case_only_are_warned_of(column: str, table: Path) -> None:
    lines, labels = rows(), [*LABELS]
    if column == "kind":
        labels[1], labels[2] = "low ", "Low"
        says = "the column 'kind' holds 'low', 'low ', 'Low', which differ in spaces or case only"
    else:
        lines[0][1] = "a"
        says = "the column 'line' holds 'a', 'A', which differ in spaces or case only"
    found = run("fit", written(table, lines, labels), *FIT, "--drop", "lot")
    assert says in found.stderr
    assert found.exit_code == 0


def test_a_list_of_faults_says_which_column_is_taken_as_the_label(table: Path) -> None:
    found = run("fit", table, *FORM)
    assert "where the last column, 'kind', is taken as the label:" in found.stderr.splitlines()[0]
    assert "taken as the label" not in run("fit", table, *FORM, "--label", "kind").stderr


def test_one_category_that_is_new_is_no_other_ones_as_well() -> None:
    learned = Preparation.learn(_frame(["a", "b", "c"] * 2), encode=["x"])
    with pytest.warns(UserWarning, match=r"holds 'd', not there in training \(1 row\): it has 0"):
        learned.matrix(_frame(["a", "d"]))
    with pytest.warns(
        UserWarning, match=r"holds 'd' and other values, not there in training \(2 rows\): they have"
    ):
        learned.matrix(_frame(["e", "d"][::-1]))


def _frame(values: list[str]):  # type: ignore[no-untyped-def]
    import pandas as pd

    return pd.DataFrame({"x": values})


def test_the_one_date_that_is_none_is_named(table: Path) -> None:
    lines = [[*line[:2], f"{i % 28 + 1:02}.01.2025", line[3]] for i, line in enumerate(rows())]
    lines[5][2] = "31.02.2025"
    found = run("fit", written(table, lines, LABELS), *FIT, "--drop", "lot", "--dates", "weight")
    assert "line 7: Column 'weight' holds '31.02.2025', which is no date" in found.stderr


# -- what is said of a tree ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_label_given_up_and_predicted_all_the_same_is_said_to_be(tmp_path: Path) -> None:
    """A saved tree of two splits that gave up row 0 at its root, while the leaf predicts what was given."""
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 10, (40, 2)).round(2)
    y = np.where((X[:, 0] > 5) ^ (X[:, 1] > 8), "up", "down")
    path = tmp_path / "t.csv"
    path.write_text("a,b,kind\n" + "".join(f"{a},{b},{k}\n" for (a, b), k in zip(X, y, strict=True)))
    tree = tmp_path / "tree.json"
    line = ["fit", path, "--depth", "1", "--c1", "5", "--c2", "1", "--c3", "0.1", "--time-limit", "5", "-q"]
    found = run(*line, "--work-limit", "1", "--json", "--out", tree)
    records = json.loads(found.stdout)["relabelled"]
    kept = {r["row"] for r in records if r["predicted"] == r["given"]}
    assert kept, "the table should have such a row"
    listed = json.loads(run("suspects", tree, "--json").stdout)["suspects"]
    assert kept == {s["row"] for s in listed if s["predicted"] == s["given"]}
    assert "predicted" in run("suspects", tree).stdout.splitlines()[0].split(",")
    shown = run(*line, "--work-limit", "1").stdout
    marked = re.findall(r"line (\d+): .*; given up at a split, and predicted as given", shown)
    lines = {r["line"] for r in records if r["predicted"] == r["given"]}
    assert set(map(int, marked)) <= lines
    assert marked


def test_what_arithmetic_leaves_of_no_cost_is_none() -> None:
    from octsvm.result import shown_cost

    assert [shown_cost(v) for v in (3.3e-12, 0.5)] == ["0", "0.5"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.slow
def test_interrupt_ends_all_trees_of_suspects(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 10, (150, 4)).round(2)
    y = rng.integers(0, 2, 150)
    path, tree = tmp_path / "t.csv", tmp_path / "tree.json"
    path.write_text(
        "a,b,c,d,kind\n" + "".join(",".join(map(str, [*x, k])) + "\n" for x, k in zip(X, y, strict=True))
    )
    assert (
        run(
            "fit", path, "--depth", "1", "--work-limit", "1", "--time-limit", "1", "-q", "--out", tree
        ).exit_code
        == 0
    )
    command = ["suspects", str(tree), "--over", "c1=1,2,3,4,5,6", "--time-limit", str(PATIENCE)]
    child = subprocess.Popen(
        [sys.executable, "-m", "octsvm", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr is not None
    said = ""
    while "fitting 6 trees" not in said:  # the first line after a second of it
        said = child.stderr.readline()
        assert said
    child.send_signal(signal.SIGINT)
    out, rest = child.communicate(timeout=PATIENCE)
    assert (child.returncode, out) == (cli.INTERRUPTED, "")
    assert rest.splitlines()[-1] == "Interrupted."


# -- time ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_takes_long_says_so_and_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with signs_of_life("at work"):
        said = ""
        until = time.monotonic() + PATIENCE
        while "at work" not in said:
            assert time.monotonic() < until
            time.sleep(0.1)
            said += capsys.readouterr().err
    assert re.fullmatch(r" +\d+\.\d s  at work\n", said)
    for command in ("predict", "suspects", "report", "plot", "tune"):
        assert "--quiet" in run(command, "--help").output
    threads = threading.active_count()
    with signs_of_life("at work", quiet=True):
        assert threading.active_count() == threads


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.slow
def test_interrupt_of_folds_says_what_is_kept_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["tune", "breast_cancer", "--time-limit", str(PATIENCE), "--store", "f.jsonl"]
    child = subprocess.Popen(
        [sys.executable, "-m", "octsvm", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr is not None
    assert " s" in child.stderr.readline()  # it is at its folds, or has done one
    child.send_signal(signal.SIGINT)
    rest = child.communicate(timeout=PATIENCE)[1].splitlines()
    assert child.returncode == cli.INTERRUPTED, rest
    assert "in f.jsonl" in " ".join(rest[-3:])


def test_an_empty_store_is_not_said_to_hold_folds(tmp_path: Path) -> None:
    assert "are lost; --store" in kept_folds(None)
    store = tmp_path / "f.jsonl"
    assert "none in" in kept_folds(str(store))
    store.write_text("")
    assert "none in" in kept_folds(str(store))
    store.write_text("{}\n")
    assert "goes on" in kept_folds(str(store))


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.slow
def test_interrupted_processes_of_folds_leave_nothing_behind() -> None:
    words = "tune iris -f oct --depth 1 --jobs 2 --time-limit"
    child = subprocess.Popen(
        [sys.executable, "-m", "octsvm", *words.split(), str(PATIENCE)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stderr is not None
    while "folds: " not in child.stderr.readline():
        assert child.poll() is None
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does
    rest = child.communicate(timeout=PATIENCE)[1]  # which workers that live on would not let end
    assert "leaked" not in rest
    assert child.returncode == cli.INTERRUPTED, rest


def test_a_tuning_that_gives_no_label_up_names_a_command() -> None:
    line = "tune toy --depth 0 --c1 1 --c2 100 --folds 2 --repeats 1 --time-limit 20 -q"
    found = run(*line.split())
    assert found.exit_code == 0, found.output
    assert "use octsvm suspects TREE.json --over" in " ".join(found.stdout.split())
    assert "suspect_rows" not in found.stdout


def test_pictures_without_matplotlib_name_a_command(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = run("plot", tree, "--out", "tree.svg")
    assert found.exit_code == cli.WRONG_INPUT
    assert "octsvm[plot]" in found.stderr
    assert "octsvm show does without" in found.stderr
    assert "export_text" not in found.stderr
