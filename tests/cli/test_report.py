"""The report of a tree: one page, escaped, without network; its suspects are the tree's, its cost is recomputed."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli.test_fitted_file import changed  # type: ignore[import-not-found]
from cli.test_table_preparation import COLUMNS, FIT, FORM, messy, run  # type: ignore[import-not-found]

import octsvm
from octsvm import Tree, cli

EVIL = "<script>alert('x')</script> & \"more\""


class Page(HTMLParser):
    """Tags, addresses and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("src", "srcset", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def report(*line: str, out: Path) -> Page:
    found = run("report", *line, "--out", str(out))
    assert found.exit_code == 0, found.output
    return Page(out.read_text(encoding="utf-8"))


def noisy(place: Path, name: str = "noisy.csv") -> tuple[str, list[int]]:
    """Two classes with a gap between them, and two labels that are wrong."""
    rng = np.random.default_rng(8)
    X = rng.uniform(0, 10, (60, 2)).round(2)
    X = X[np.abs(X.sum(axis=1) - 10) > 2.5][:24]
    y = np.where(X.sum(axis=1) > 10, "up", "down")
    wrong = [3, 17]
    y[wrong] = np.where(y[wrong] == "up", "down", "up")
    pd.DataFrame(X, columns=["a", "b"]).assign(code=range(100, 124), kind=y).to_csv(place / name, index=False)
    return str(place / name), wrong


@pytest.mark.slow
def test_the_suspects_are_the_labels_that_were_planted(tmp_path: Path) -> None:
    table, wrong = noisy(tmp_path)
    tree = str(tmp_path / "tree.json")
    assert (
        run(
            "fit", table, "--drop", "code", "-f", "re_svm", "--c1", "10", "--c2", "10", "-q", "--out", tree
        ).exit_code
        == 0
    )
    found = json.loads(run("report", tree, "--out", str(tmp_path / "r.html"), "--json").stdout)["suspects"]
    assert sorted(s["row"] for s in found) == wrong
    frame = pd.read_csv(table)
    given = octsvm.relabelling_report(Tree.from_json(Path(tree)), frame, frame["kind"])
    by_row = given.set_index("row")
    for s in found:
        assert s["cost"] == pytest.approx(by_row.loc[s["row"], "cost"])
        assert s["support"] == pytest.approx(by_row.loc[s["row"], "margin_before"])
        assert [s["given"], s["believed"]] == by_row.loc[s["row"], ["given", "believed"]].tolist()
    listed = tmp_path / "s.csv"
    assert "2 suspects among 24 rows" in run("suspects", tree, "--keep", "code", "--out", str(listed)).output
    shown = pd.read_csv(listed)
    assert listed.read_text() == run("suspects", tree, "--keep", "code").stdout
    assert json.loads(run("suspects", tree, "--json").stdout)["suspects"] == found
    assert shown["line"].tolist() == [s["row"] + 2 for s in found]
    named = tmp_path / "named.csv"
    named.write_text(Path(table).read_text().replace("code", "line", 1))
    twice = run("suspects", tree, str(named), "--keep", "line")
    assert twice.exit_code == cli.WRONG_INPUT
    assert "a column 'line' already" in twice.output
    assert shown["code"].tolist() == [s["row"] + 100 for s in found]
    assert shown["believed"].tolist() == [s["believed"] for s in found]
    assert shown["support"].tolist() == pytest.approx([s["support"] for s in found], abs=1e-6)
    many = run("suspects", tree, "--over", "c1=1,10", "--over", "c2=5,10", "--time-limit", "5", "--json")
    counted = json.loads(many.stdout)["suspects"]
    assert [s["row"] for s in counted if s["against"] == s["trees"] == 4] == [s["row"] for s in found]
    by_hand = octsvm.suspect_rows(
        octsvm.RESVMClassifier(time_limit=5), {"c1": [1, 10], "c2": [5, 10]}, frame[["a", "b"]], frame["kind"]
    )
    assert {s["row"]: s["against"] for s in counted} == dict(by_hand["against"][by_hand["against"] > 0])
    refused = run("suspects", tree, "--over", "c9=1")
    assert refused.exit_code == cli.WRONG_INPUT
    assert "re_svm has no such parameter; it has c1, c2, " in refused.output
    page = report(tree, "--keep", "code", out=tmp_path / "r.html")
    for row in wrong:
        assert f"{row + 2}{100 + row}" in page.text
    assert "recomputed from the saved tree and the table" in page.text
    assert "as it was" in page.text
    assert "no rows were held out" in page.text


@pytest.mark.slow
def test_a_page_is_whole_and_needs_nothing(tmp_path: Path) -> None:
    table, tree = messy(tmp_path), str(tmp_path / "tree.json")
    run(
        "fit",
        table,
        *FORM,
        *COLUMNS,
        *FIT,
        "--test-size",
        "0.25",
        "--class-weight",
        "balanced",
        "--out",
        tree,
    )
    page = report(tree, out=tmp_path / "r.html")
    assert page.addresses
    assert all(a.startswith(("data:image/svg+xml;base64,", "#")) for a in page.addresses)
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert page.tags.count("img") == 2
    for words in (
        "18 rows to train on, 6 held out",
        "region is not 'north'",
        "region=north",
        "most frequent",
        "as it was",
    ):
        assert words in page.text, words
    first = (tmp_path / "r.html").read_bytes()
    report(tree, out=tmp_path / "r.html")
    assert (tmp_path / "r.html").read_bytes() == first


@pytest.mark.slow
def test_flipped_labels_are_those_that_were_trained_on(tmp_path: Path) -> None:
    table, _ = noisy(tmp_path)
    tree = str(tmp_path / "tree.json")
    run("fit", table, *FIT, "--flip", "0.2", "--out", tree)
    page = report(tree, out=tmp_path / "r.html")
    assert "5 labels of training rows were changed on purpose" in page.text
    assert "as it was" in page.text


def test_names_and_labels_cannot_be_run(tmp_path: Path) -> None:
    frame = pd.DataFrame({f"a{EVIL}": range(12), "colour": ["x", EVIL] * 6, "kind": [EVIL, "y"] * 6})
    frame.to_csv(tmp_path / "t.csv", index=False)
    tree = str(tmp_path / "tree.json")
    fitted = run("fit", str(tmp_path / "t.csv"), "--encode", "colour", *FIT, "--out", tree)
    assert fitted.exit_code == 0, fitted.output
    page = report(tree, "--keep", "all", out=tmp_path / "r.html")
    assert "script" not in page.tags
    assert "<script>alert" in page.text


def test_a_built_in_table_in_two_classes(tmp_path: Path) -> None:
    tree = str(tmp_path / "tree.json")
    assert run("fit", "iris", "--against-rest", "setosa", *FIT, "--out", tree).exit_code == 0
    page = report(tree, out=tmp_path / "r.html")
    assert "not setosa" in page.text
    assert "The tree agrees with every label" in page.text
    assert "as it was" in page.text


def test_another_table_is_refused(tmp_path: Path) -> None:
    table, tree = messy(tmp_path), str(tmp_path / "tree.json")
    run("fit", table, *FORM, *COLUMNS, *FIT, "--out", tree)
    other = messy(tmp_path, "other.csv", regions=("south", "north", "west"))
    cases = [
        ([tree, other], "not the table that the tree was fitted to"),
        ([tree, str(tmp_path / "none.csv")], "no such file"),
        ([tree, table, "--label", "rsk"], "Did you mean 'risk'?"),
    ]
    for line, says in cases:
        found = run("report", *line, "-q", "--out", str(tmp_path / "r.html"))
        assert found.exit_code == cli.WRONG_INPUT, found.output
        assert says in found.output
        assert len(found.output.splitlines()) == 1
    changed(tree, lambda content: content.pop("fit"))
    found = run("report", tree, "--out", str(tmp_path / "r.html"))
    assert "the file holds the tree alone" in found.output


@pytest.mark.slow
def test_a_fit_that_was_altered_is_seen(tmp_path: Path) -> None:
    table, tree = messy(tmp_path), str(tmp_path / "tree.json")
    run("fit", table, *FORM, *COLUMNS, *FIT, "--out", tree)
    changed(tree, lambda content: content["fit"]["result"].update(objective=0.01))
    assert "which is NOT what the fit said" in report(tree, out=tmp_path / "r.html").text


@pytest.mark.slow
def test_fit_and_report_list_suspects_in_one_order_and_say_what_is_so(tmp_path: Path) -> None:
    table, _ = noisy(tmp_path)
    tree = str(tmp_path / "tree.json")
    line = [
        "fit",
        table,
        "--label",
        "kind",
        "--drop",
        "code",
        "-f",
        "re_svm",
        "--c2",
        "0.5",
        "-q",
        "--time-limit",
        "60",
    ]
    summary = run(*line, "--out", tree)
    assert summary.exit_code == 0, summary.output
    listed = [int(part.split(":")[0]) for part in summary.output.split("           line ")[1:]]
    out = tmp_path / "r.html"
    found = json.loads(run("report", tree, "--out", str(out), "--json").stdout)["suspects"]
    assert [s["row"] + 2 for s in found if s["cost"] is not None][: len(listed)] == listed
    assert [s["support"] for s in found] == sorted(s["support"] for s in found)
    otherwise = sum(p != g for p, g in zip(
        Tree.from_json(Path(tree)).predict(pd.read_csv(table)).tolist(), pd.read_csv(table)["kind"], strict=True
    ))  # fmt: skip
    assert f"{otherwise} of 24 rows are predicted otherwise than given" in " ".join(out.read_text().split())
    run(*line[:-2], "--time-limit", "10", "--c2", "1000", "--c1", "0.01", "--out", tree)
    page = " ".join(report(tree, out=out).text.split())
    assert "gave up no label of a training row" in page or "agrees with every label" in page


@pytest.mark.slow
def test_who_proved_it_is_said_alike_wherever_no_solver_was_called(tmp_path: Path) -> None:
    tree, who = str(tmp_path / "tree.json"), "octsvm's own search"
    fit = ["fit", "iris", "--against-rest", "setosa", "--depth", "1", "-q", "--out", tree]
    assert f"({who} {octsvm.__version__})" in run(*fit).stdout
    found = json.loads(run(*fit, "--json").stdout)
    assert (found["status"], found["solver"], found["solver_version"]) == ("optimal", who, octsvm.__version__)
    assert f"{who} {octsvm.__version__}." in report(tree, out=tmp_path / "r.html").text
    search = json.loads(run(*fit[:4], "-f", "re_svm", "-q", "--json").stdout)
    assert (search["solver"], search["solver_version"]) == (
        "branch_and_reduce",
        f"of octsvm {octsvm.__version__}",
    )
