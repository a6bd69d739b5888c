"""A practitioner's messy table on the command line: from text, dates and gaps to a tree that reads the same file again."""

from __future__ import annotations

import datetime
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import run

from octsvm import Tree, cli

N = 24
HEAD = "customer;signed up;income;region;smoker;visits;risk"
FORM = ["--separator", ";", "--decimal", ","]
COLUMNS = shlex.split("--drop customer --dates 'signed up' --encode all --missing ? --impute median")
FIT = ["-f", "oct", "--depth", "1", "--alpha", "0.1", "-q"]


def rows(regions: Sequence[str] = ("north", "south", "west")) -> list[list[str]]:
    """The label says whether the region is the first."""
    out = []
    for i in range(N):
        region = regions[i % len(regions)]
        income = "" if i == 4 else f"{i % 7},{i % 10}"
        visits = "?" if i in (3, 8) else str(i * 5 % 8)
        smoker = "" if i == 7 else ("yes" if i % 2 else "no")
        signed_up, risk = f"{i % 28 + 1}.12.2025", "high" if i % 3 == 0 else "low"
        out.append([f"K-{i}", signed_up, income, region, smoker, visits, risk])
    return out


def messy(place: Path, name: str = "messy.csv", **changes: Any) -> str:
    path = place / name
    path.write_text("\n".join([HEAD, *(";".join(r) for r in rows(**changes))]) + "\n")
    return str(path)


def test_from_a_messy_file_to_predictions_without_python(tmp_path: Path) -> None:
    table, tree = messy(tmp_path), str(tmp_path / "tree.json")
    found = run("fit", table, *FORM, *COLUMNS, *FIT, "--out", tree)
    assert found.exit_code == 0, found.output
    assert "region is not 'north': class 'low'" in found.output
    kept = json.loads(Path(tree).read_text())["preparation"]
    assert kept["missing"] == ["?"]
    assert {c["name"]: c.get("rule") for c in kept["columns"]} == {
        "signed up": "median", "income": "median", "region": "most_frequent", "smoker": "most_frequent", "visits": "median",
    }  # fmt: skip
    again = run("predict", tree, table, *FORM, "--label", "risk", "--json")
    assert json.loads(again.stdout)["accuracy"] == 1.0
    assert "[1] region\n├── is not 'north': class 'low'" in run("show", tree).output
    assert json.loads(run("show", tree, "--json").stdout)["preparation"] == kept


@pytest.mark.parametrize("form", ["", "=%d/%m/%Y", "=%d %b %Y"])
@pytest.mark.slow
def test_dates_alone_are_read_once(form: str, tmp_path: Path) -> None:
    """Where no column is encoded, features are called as the columns are."""
    written = [
        (datetime.date(2026, 1, 1) + datetime.timedelta(days=i)).strftime(form[1:] or "%Y-%m-%d")
        for i in range(N)
    ]
    path, tree, page = tmp_path / "t.csv", str(tmp_path / "t.json"), tmp_path / "t.html"
    path.write_text(
        "\n".join(["since,b,kind", *(f"{when},{i * 7 % 5},{'xy'[i > 11]}" for i, when in enumerate(written))])
    )
    found = run(
        "fit", str(path), "--dates", f"since{form}", *FIT, "--out", tree, "--test-size", "0.25", "--json"
    )
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["train_accuracy"] == 1.0
    assert json.loads(run("predict", tree, str(path), "--label", "kind", "--json").stdout)["accuracy"] >= 0.9
    assert "before 2026-01-" in run("show", tree).output
    assert run("report", tree, str(path), "--out", str(page)).exit_code == 0


def test_numbers_and_dates_alone_then_dates_in_another_form(tmp_path: Path) -> None:
    days, tree = pd.date_range("2026-01-01", periods=12, freq="MS"), str(tmp_path / "tree.json")
    for name, form in (("t.csv", "%d.%m.%Y"), ("new.csv", "%Y-%m-%d")):
        table = pd.DataFrame({"day": days.strftime(form), "half": ["first"] * 6 + ["second"] * 6})
        table.to_csv(tmp_path / name, index=False)
    found = run("fit", str(tmp_path / "t.csv"), "--dates", "day", *FIT, "--out", tree)
    assert found.exit_code == 0, found.output
    assert "day before 2026-06-16" in found.output
    again = run("predict", tree, str(tmp_path / "new.csv"), "--label", "half", "--json")
    assert json.loads(again.stdout)["accuracy"] == 1.0


def test_a_category_that_training_did_not_show(tmp_path: Path) -> None:
    table, tree = messy(tmp_path), str(tmp_path / "tree.json")
    run("fit", table, *FORM, *COLUMNS, *FIT, "--out", tree)
    new = messy(tmp_path, "new.csv", regions=("east", "south", "west"))
    found = run("predict", tree, new, *FORM)
    assert found.exit_code == 0
    assert "Warning: Column 'region' holds 'east'" in found.stderr
    assert "(8 rows)" in found.stderr
    assert set(found.stdout.split()) == {"prediction", "low"}


def test_a_gap_in_prediction_that_the_tree_has_nothing_for(tmp_path: Path) -> None:
    for name, cell in (("t.csv", "3"), ("new.csv", "")):
        text = "a,kind\n" + "".join(f"{i if i else cell},{'xy'[i % 2]}\n" for i in range(12))
        (tmp_path / name).write_text(text)
    assert run("fit", str(tmp_path / "t.csv"), *FIT, "--out", str(tmp_path / "tree.json")).exit_code == 0
    found = run("predict", str(tmp_path / "tree.json"), str(tmp_path / "new.csv"))
    assert found.exit_code == cli.WRONG_INPUT
    assert "line 2: column 'a' has a missing value. The tree keeps nothing to fill it with" in found.output


def test_what_fills_gaps_is_learned_on_the_training_rows_alone(tmp_path: Path) -> None:
    tree = tmp_path / "tree.json"
    values = np.arange(40.0)
    pd.DataFrame(
        {"a": [*values, *[None] * 4], "b": [*values[::-1], *range(4)], "kind": ["x", "y"] * 22}
    ).to_csv(tmp_path / "t.csv", index=False)
    more = ["--impute", "mean", "--test-size", "0.5", "--json", "--out"]
    found = run("fit", str(tmp_path / "t.csv"), *FIT, *more, str(tree))
    assert found.exit_code == 0, found.output
    kept = Tree.from_json(tree).preparation
    assert kept is not None
    assert kept.columns[0].fill != values.mean()
    assert json.loads(found.stdout)["test_rows"] == 22


@pytest.mark.parametrize(
    ("left_out", "says"),
    [
        ("--drop", "--drop customer"),
        ("--dates", "--dates 'signed up'"),
        ("--encode", "--encode region"),
        ("--missing", "--missing '?' --impute median"),
        ("--impute", "--impute median"),
    ],
)
def test_every_stumble_says_the_way_out(left_out: str, says: str, tmp_path: Path) -> None:
    at = COLUMNS.index(left_out)
    line = COLUMNS[:at] + COLUMNS[at + 2 :]
    found = run("fit", messy(tmp_path), *FORM, *line, *FIT)
    assert found.exit_code == cli.WRONG_INPUT
    assert says in found.output
    lines = found.output.splitlines()
    assert len(lines) == 1 or lines[-1].startswith("All at once: --")


WRONG = {
    "gap without a rule": ([*COLUMNS[:-2], "--impute", "visits=median", "--impute", "region=category"], "line 6: column 'income' has a missing value"),
    "no such feature": (["--features", "incone"], "Did you mean 'income'?"),
    "label as feature": (["--label", "risk", "--features", "risk"], "cannot be a feature"),
    "used and dropped": (["--features", "income", "--drop", "income"], "Leave one of them out"),
    "rule": (["--impute", "medain"], "medain"),
    "two rules of a column": (["--impute", "income=mean", "--impute", "income=median"], "named twice to fill, as mean and median"),
    "no form of dates": ([*COLUMNS, "--dates", "signed up=%d/%d/%Y"], "'%d/%d/%Y' is no form of the dates in column 'signed up'"),
    "rule of a column": (["--impute", "income=medain"], "one of median, mean"),
    "two rules": (["--impute", "median", "--impute", "mean"], "one rule for all columns"),
    "weights": ([*COLUMNS, "--class-weight", "hihg=2"], "there are 'high', 'low'"),
    "no weight": ([*COLUMNS, "--class-weight", "high=much"], "no number"),
    "two weights": ([*COLUMNS, "--class-weight", "balanced", "--class-weight", "high=2"], "leave the others out"),
    "form of dates": ([*COLUMNS, "--dates", "signed up=%m/%d/%Y"], "no date written as %m/%d/%Y"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_input_is_one_line(kind: str, tmp_path: Path) -> None:
    more, says = WRONG[kind]
    found = run("fit", messy(tmp_path), *FORM, *more, *FIT)
    assert found.exit_code == cli.WRONG_INPUT, found.output
    assert says in found.output
    lines = found.output.splitlines()
    assert len(lines) == 1 or lines[-1].startswith("All at once: --")


def test_features_are_those_that_are_named(tmp_path: Path) -> None:
    for given in (["--features", "visits,income"], ["--features", "visits", "--features", "income"]):
        line = [*given, "--missing", "?", "--impute", "visits=median", "--impute", "income=mean"]
        found = run("fit", messy(tmp_path), *FORM, *line, *FIT, "--json")
        assert found.exit_code == 0, found.output
        assert json.loads(found.stdout)["tree"]["feature_names"] == ["income", "visits"]


def test_codes_of_categories_keep_their_zeros(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "code,b,kind\n" + "".join(f"0{i % 3},{i},{'xy'[i % 3 == 1]}\n" for i in range(12))
    )
    found = run("fit", str(tmp_path / "t.csv"), "--encode", "code", *FIT)
    assert "code is not '01': class 'x'" in found.output, found.output


def test_class_weights_decide_which_errors_cost_more(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,kind\n" + "".join(f"1,{'xxxy'[i % 4]}\n2,x\n" for i in range(12)))
    line = ["fit", str(tmp_path / "t.csv"), *FIT, "--json"]
    counts = []
    for weight in ([], ["--class-weight", "y=9"], ["--class-weight", "balanced"]):
        found = json.loads(run(*line, *weight).stdout)
        counts.append((found["counts"]["wrong_rows"], len(set(found["tree"]["label"]))))
    assert counts == [(3, 1), (9, 2), (9, 2)]


def test_a_model_that_was_written_is_read_with_the_same_columns_and_weights(tmp_path: Path) -> None:
    table = messy(tmp_path)
    same = [*FORM, *COLUMNS, "--class-weight", "balanced", "-f", "oct", "--depth", "1", "--alpha", "0.1"]
    assert run("write", table, "--out", str(tmp_path / "m.mps"), *same).exit_code == 0
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(tmp_path / "m.mps"))
    solver.run()
    solver.writeSolution(str(tmp_path / "m.sol"), 0)
    found = run("read", table, str(tmp_path / "m.sol"), *same, "--out", str(tmp_path / "t.json"))
    assert found.exit_code == 0, found.output
    assert "region is not 'north'" in found.output
    assert Tree.from_json(tmp_path / "t.json").preparation is not None
    for command in ("size", "plan"):
        assert run(command, table, *same).exit_code == 0


def excel_of_a_german(place: Path) -> str:
    """What Excel saves in Germany: Windows' encoding, points between thousands, decimal commas, and a row without a label."""
    lines = ["Größe;Umsatz;Ausfall"]
    for i in range(12):
        lines.append(f"{('klein', 'groß')[i % 2]};{i}.{100 + i},50;{'' if i == 4 else '01'[i % 2]}")
    (place / "t.csv").write_bytes("\n".join(lines).encode("cp1252"))
    return str(place / "t.csv")


@pytest.mark.slow
def test_a_file_of_a_german_excel(tmp_path: Path) -> None:
    table, tree, page = excel_of_a_german(tmp_path), str(tmp_path / "tree.json"), str(tmp_path / "r.html")
    line = [*FORM, "--encode", "Größe", *FIT]
    assert "--encoding cp1252" in run("fit", table, *line).output
    refused = run("fit", table, *line, "--encoding", "cp1252")
    assert "line 6: The label of line 6 is missing" in refused.output
    assert "--skip-unlabelled" in refused.output
    whole = [*line, "--encoding", "cp1252", "--skip-unlabelled", "--out", tree]
    found = run("fit", table, *whole)
    assert found.exit_code == 0, found.output
    assert "rows without a label are left out: 1." in found.stderr
    assert "Größe is not 'klein'" in found.output
    saved = Tree.from_json(Path(tree))
    assert saved.classes == (0, 1)
    assert saved.scaling.low[1] == 0.1 * 1000 + 0.5  # 0.100,50
    assert saved.scaling.span[1] == 11 * 1001
    assert run("predict", tree, table, "--keep", "Umsatz").stdout.splitlines()[1] == "0.100,50;0"
    assert run("report", tree, "--out", page, "--keep", "Umsatz").exit_code == 0
    wrong = run("fit", table, *line, "--encoding", "klingon")
    assert wrong.exit_code == cli.WRONG_INPUT
    assert "there is no encoding 'klingon'" in wrong.output


def test_points_are_no_thousands_where_they_may_be_anything_else(tmp_path: Path) -> None:
    cases = {"21.02.2025": "--dates a", "1.2.3": "--encode a", "1.22": "holds"}
    for text, says in cases.items():
        (tmp_path / "t.csv").write_text(
            "a;b;kind\n" + "".join(f"{text};{i};{'xy'[i % 2]}\n" for i in range(6))
        )
        found = run("fit", str(tmp_path / "t.csv"), *FORM, *FIT)
        assert found.exit_code == cli.WRONG_INPUT, text
        assert says in found.output, found.output
