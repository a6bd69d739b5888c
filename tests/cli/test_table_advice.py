"""Columns that are no features, on the command line: what they look like, and what to do about them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from command_line import run

import octsvm
from octsvm import cli

FIT = ["-f", "oct", "--depth", "1", "--alpha", "0.1", "-q"]
N = 24
OTHER = [i * 7 % 10 for i in range(N)]
CLASS = ["xy"[i % 2] for i in range(N)]


def table(place: Path, **columns: list) -> str:
    quoted = [[f'"{v}"' if "," in str(v) else str(v) for v in column] for column in columns.values()]
    path = place / "table.csv"
    path.write_text("\n".join([",".join(columns), *map(",".join, zip(*quoted, strict=True))]) + "\n")
    return str(path)


REFUSED = {
    "thousands": ([f"1,{200 + i}" for i in range(N)], ["thousands separators", "'1,200'", "--thousands ,", "--decimal ,"]),
    "some thousands": ([i if i % 5 else f"1,{200 + i}" for i in range(N)], ["thousands separators", "'1,200'"]),
    "decimal comma": ([f"1,{i}" for i in range(N)], ["decimal comma", "--decimal ,"]),
    "currency": ([f"$ {i}.50" for i in range(N)], ["amounts of money", "--strip '$'"]),
    "percent": ([f"{i} %" for i in range(N)], ["percentages", "--strip %"]),
    "unit": ([f"{i} kg" for i in range(N)], ["with a unit", "'0 kg'", "--strip kg"]),
    "dates": ([f"2026-01-{i + 1:02}" for i in range(N)], ["dates or times", "days since", "--drop a"]),
    "dates in words": ([f"{i + 1} Jan 2026" for i in range(N)], ["dates or times", "'1 Jan 2026'", "--dates a"]),
    "underscores": ([f"1_{i:03}" for i in range(N)], ["thousands separators", "'1_000'", "--thousands _"]),
    "other minus, unit": ([f"\u2212{i} kg" for i in range(N)], ["with a unit", "--strip kg"]),
    "accounts": ([f"({i})" for i in range(N)], ["numbers in a form that is not read", "'(0)'", "--drop a"]),
    "limits": ([f"<{i}" if i < 20 else i for i in range(N)], ["numbers in a form that is not read", "'<0'"]),
    "fractions": ([f"{i}/24" for i in range(N)], ["numbers in a form that is not read", "'0/24'"]),
    "versions": ([f"1.2.{i}" for i in range(N)], ["another text in every row"]),
    "names": ([f"P{i}" for i in range(N)], ["another text in every row", "--drop a"]),
    "text": (["red", "green", "blue"] * 8, ["holds text ('red', 'green', 'blue')", "0 and 1", "--label a", "--drop a"]),
    "money among numbers": ([i if i % 5 else f"${i}" for i in range(N)], ["amounts of money", "'$0'"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_text_that_is_no_feature_is_refused_with_what_to_do(kind: str, tmp_path: Path) -> None:
    column, says = REFUSED[kind]
    found = run("fit", table(tmp_path, a=column, b=OTHER, kind=CLASS), *FIT)
    assert found.exit_code == cli.WRONG_INPUT
    assert "line 2: column 'a'" in found.output
    assert len(found.output.splitlines()) == 1
    for word in says:
        assert word in found.output
    dropped = run("fit", str(tmp_path / "table.csv"), "--drop", "a", *FIT)
    assert dropped.exit_code == 0, dropped.output
    assert "1 feature" in dropped.output


REMARKED = {
    "running number": ("n", list(range(1, N + 1)), "numbers the rows"),
    "identifier": ("patient_id", [1000 + 3 * i for i in range(N)], "identifiers"),
    "a name with a blank": ("row id", [7 * i + 5 for i in range(N)], "--drop 'row id'"),
    "without a name": ("", list(range(N)), "--drop 'Unnamed: 0'"),
}


@pytest.mark.parametrize("kind", REMARKED)
def test_what_tells_rows_apart_is_used_and_remarked_once(kind: str, tmp_path: Path) -> None:
    name, column, says = REMARKED[kind]
    path = table(tmp_path, **{name: column, "b": OTHER, "kind": CLASS})
    found = CliRunner().invoke(cli.main, ["fit", path, *FIT])
    assert found.exit_code == 0
    assert found.stderr.count("Warning:") == 1
    assert says in found.stderr
    quiet = run("fit", path, "--drop", name or "Unnamed: 0", *FIT)
    assert quiet.exit_code == 0
    assert "Warning" not in quiet.stderr


def test_features_that_differ_in_every_row_are_not_remarked(tmp_path: Path) -> None:
    found = run(
        "fit",
        table(tmp_path, width=[i * i for i in range(N)], idea=[i * 3 for i in range(N)], kind=CLASS),
        *FIT,
    )
    assert found.exit_code == 0
    assert "Warning" not in found.stderr


@pytest.mark.parametrize(("name", "values"), [("species", CLASS), ("class", [i % 2 for i in range(N)])])
def test_a_label_in_the_first_column_is_pointed_at(name: str, values: list, tmp_path: Path) -> None:
    path = table(tmp_path, **{name: values, "a": OTHER, "b": [i * 0.37 for i in range(N)]})
    found = run("fit", path, *FIT)
    assert found.exit_code == cli.WRONG_INPUT
    assert f"--label {name}" in found.output
    assert "measurements" in found.output
    assert run("fit", path, "--label", name, *FIT).exit_code == 0


def test_the_last_column_that_is_left_is_the_label(tmp_path: Path) -> None:
    path = table(tmp_path, a=OTHER, kind=CLASS, id=list(range(N)))
    found = run("fit", path, "--drop", "id", *FIT, "--json")
    assert json.loads(found.stdout)["label"] == "kind"


@pytest.mark.parametrize(
    ("drop", "says"),
    [
        (["ib"], "Did you mean 'b'?"),
        (["kind", "--label", "kind"], "is the label"),
        (["a", "--drop", "b"], "no feature"),
    ],
)
def test_what_cannot_be_dropped_is_refused(drop: list[str], says: str, tmp_path: Path) -> None:
    found = run("fit", table(tmp_path, a=OTHER, b=OTHER, kind=CLASS), "--drop", *drop, *FIT)
    assert found.exit_code == cli.WRONG_INPUT
    assert says in found.output


def test_columns_of_built_in_tables_can_be_dropped() -> None:
    found = run("size", "iris", "-f", "oct", "--drop", "petal width (cm)", "--drop", "petal length (cm)")
    assert found.exit_code == 0, found.output
    assert run("size", "iris", "-f", "oct", "--drop", "petal").exit_code == cli.WRONG_INPUT


def test_another_separator_is_pointed_at_where_the_rows_hold_commas(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "a;b;kind\n" + "".join(f"1,{i};{b};{k}\n" for i, (b, k) in enumerate(zip(OTHER, CLASS, strict=True)))
    )
    found = run("fit", str(tmp_path / "t.csv"), *FIT)
    assert "--separator" in found.output
    found = run("fit", str(tmp_path / "t.csv"), "--separator", ";", *FIT)
    assert "--decimal ," in found.output
    assert run("fit", str(tmp_path / "t.csv"), "--separator", ";", "--decimal", ",", *FIT).exit_code == 0


def test_predict_does_not_advise_to_leave_out_what_the_tree_needs(tmp_path: Path) -> None:
    path = table(tmp_path, a=OTHER, b=OTHER, kind=CLASS)
    tree = str(tmp_path / "tree.json")
    assert run("fit", path, *FIT, "--out", tree).exit_code == 0
    for column in (
        [f"P{i}" for i in range(N)],
        [f"2026-01-{i + 1:02}" for i in range(N)],
        ["u", "v"] * (N // 2),
    ):
        found = run("predict", tree, table(tmp_path, a=column, b=OTHER))
        assert found.exit_code == cli.WRONG_INPUT
        assert "column 'a'" in found.output
        assert "--drop" not in found.output
        assert "--label" not in found.output


def test_a_default_label_of_many_numbers_is_warned_of_and_the_summary_names_the_label(tmp_path: Path) -> None:
    path = table(
        tmp_path, a=OTHER, colour=["red", "green", "blue"] * 8, paid=CLASS, age=[20 + i for i in range(N)]
    )
    line = ["fit", path, "--encode", "colour,paid", "-f", "oct", "--depth", "1", "--alpha", "0.1", "-q"]
    found = CliRunner().invoke(cli.main, line)
    assert "is taken as the label, and it holds 24 different numbers. Is 'paid' the label" in found.stderr
    assert "label      age: 24 different values" in found.stdout
    named = CliRunner().invoke(cli.main, ["fit", path, "--label", "paid", "--encode", "colour", *FIT])
    assert "Warning" not in named.stderr
    assert "label      paid: 'x', 'y'" in named.stdout


MESSY = {
    "price": [f"{1 + i},{200 + i}.50" for i in range(N)],
    "rent": [f"€ {900 + i}" for i in range(N)],
    "share": [f"{i} %" for i in range(N)],
    "since": [f"2026-01-{i + 1:02}" for i in range(N)],
    "colour": ["red", "green", "blue"] * 8,
    "size": [i if i != 3 else "" for i in range(N)],
    "name": [f"P{i}" for i in range(N)],
    "kind": CLASS,
}


def test_all_columns_are_advised_on_at_once_and_the_advice_works(tmp_path: Path) -> None:
    path = table(tmp_path, **MESSY)
    found = run("fit", path, *FIT)
    assert found.exit_code == cli.WRONG_INPUT
    lines = found.output.splitlines()
    assert lines[0].endswith(
        "7 things in the columns stand in the way, where the last column, 'kind', is taken as the label:"
    )
    assert [re.search(r"column '(\w+)'", line)[1] for line in lines[1:-1]] == [
        *list(MESSY)[:5],
        "name",
        "size",
    ]  # type: ignore[index]
    start, advised = lines[-1].split(": ", 1)
    assert start == "All at once"
    tree = str(tmp_path / "tree.json")
    done = run("fit", path, *shlex.split(advised), *FIT, "--out", tree)
    assert done.exit_code == 0, done.output
    saved = octsvm.Tree.from_json(Path(tree))
    assert dict(zip(saved.feature_names, saved.scaling.low.tolist(), strict=True)) == {
        "price": 1200.5, "rent": 900, "share": 0, "since": 20454, "size": 0,
        **{f"colour={c}": 0 for c in ("blue", "green", "red")},
    }  # fmt: skip
    # The tree's file says how the table was written, so predict needs no option, and an option wins over it.
    assert len(run("predict", tree, path).stdout.splitlines()) == N + 1
    refused = run("predict", tree, path, "--strip", "")
    assert "2 things in the columns stand in the way" in refused.output
    assert "--drop" not in refused.output


WRITTEN = [
    (["--separator", ";", "--decimal", ","], ["1.234,5", "2,5", "12"], [1234.5, 2.5, 12]),
    (["--decimal", ","], ["1.234,5", "2,5", "12"], [1234.5, 2.5, 12]),
    (["--separator", ";", "--decimal", ",", "--strip", "€"], ["1.234,50 €", "€ 2", "-€ 3"], [1234.5, 2, -3]),
    (["--thousands", " "], ["1 234.5", "12 000 000", "7"], [1234.5, 12e6, 7]),
    (["--thousands", "'"], ["1\u2019234", "1'000.5", "7"], [1234, 1000.5, 7]),
    (["--thousands", "_"], ["1_234.5", "12_000_000", "7"], [1234.5, 12e6, 7]),
    ([], ["\u22121.5", "2", "\u22127"], [-1.5, 2, -7]),
    (["--decimal", ",", "--strip", "€"], ["\u22121,5 €", "2 €", "7"], [-1.5, 2, 7]),
    (["--thousands", ",", "--strip", "$", "--strip", "%"], ["$1,234", "+$ 5", "- 6"], [1234, 5, -6]),
]  # fmt: skip


@pytest.mark.parametrize(("options", "texts", "numbers"), WRITTEN)
def test_numbers_are_read_as_the_options_say(
    options: list[str], texts: list[str], numbers: list[float], tmp_path: Path
) -> None:
    sign = ";" if "--separator" in options else ","
    rows = [sign.join(['"' + t + '"', str(i), "xy"[i % 2]]) for i, t in enumerate(texts * 4)]
    (tmp_path / "t.csv").write_text("\n".join([sign.join(["a", "b", "kind"]), *rows]) + "\n")
    tree = tmp_path / "t.json"
    found = run("fit", str(tmp_path / "t.csv"), *options, *FIT, "--out", str(tree))
    assert found.exit_code == 0, found.output
    scaling = octsvm.Tree.from_json(tree).scaling
    assert (scaling.low[0], scaling.low[0] + scaling.span[0]) == (min(numbers), max(numbers))
    assert run("predict", str(tree), str(tmp_path / "t.csv")).exit_code == 0


@pytest.mark.parametrize(
    ("options", "column", "says"),
    [
        (
            ["--strip", "€", "--strip", "$"],
            ["€ 1", "$ 2"],
            "holds text",
        ),  # two currencies are no numbers of one kind
        (["--thousands", ","], ["1,23", "4"], "--decimal ,"),
        (["--thousands", "."], ["1", "2"], "is not the decimal sign"),
        (["--thousands", "0"], ["1", "2"], "one sign"),
        (["--decimal", ";"], ["1", "2"], "should be '.' or ','"),
    ],
)
def test_what_is_no_number_by_the_options_is_refused(
    options: list[str], column: list[str], says: str, tmp_path: Path
) -> None:
    found = run("fit", table(tmp_path, a=column * 12, b=OTHER, kind=CLASS), *options, *FIT)
    assert found.exit_code == cli.WRONG_INPUT
    assert says in found.output


def test_advice_for_a_german_table_is_one_line_that_works(tmp_path: Path) -> None:
    rows = [f"{1 + i}.100,50 €;{i},500;{'xy'[i % 2]}" for i in range(N)]
    (tmp_path / "t.csv").write_text("\n".join(["a;b;kind", *rows]) + "\n")
    found = run("fit", str(tmp_path / "t.csv"), "--separator", ";", *FIT)
    assert found.output.splitlines()[-1] == "All at once: --decimal , --strip '€'"
    again = run("fit", str(tmp_path / "t.csv"), "--separator", ";", "--decimal", ",", "--strip", "€", *FIT)
    assert again.exit_code == 0, again.output
