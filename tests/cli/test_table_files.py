"""Files on the command line: every encoding and format that pandas reads gives the same tree, others are named."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import time
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import run

from octsvm import InvalidData, Tree, cli
from octsvm.cli import csv_tables as cli_tables

FRAME = pd.DataFrame(
    {"width": [1, 2, 3, 4, 5, 6], "height": [2.5, 1, 5, 4, 9, 9.5], "code": ["01", "01", "01", "1", "1", "1"]}
)
CSV = FRAME.to_csv(index=False)
FIT = ["-f", "oct", "--depth", "1", "--alpha", "0.1", "-q"]


def written(write: Callable[..., Any], frame: pd.DataFrame = FRAME, **options: Any) -> bytes:
    target = io.BytesIO()
    write(frame, target, **options)
    return target.getvalue()


def zipped(**files: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def sheets(**frames: pd.DataFrame) -> bytes:
    target = io.BytesIO()
    with pd.ExcelWriter(target) as writer:
        for name, frame in frames.items():
            frame.to_excel(writer, sheet_name=name, index=False)
    return target.getvalue()


READ = {
    "UTF-8 with a mark": CSV.encode("utf-8-sig"),
    "UTF-16": CSV.encode("utf-16"),
    "UTF-16, big end first": b"\xfe\xff" + CSV.encode("utf-16-be"),
    "UTF-16 without a mark": CSV.encode("utf-16-le"),
    "UTF-32": CSV.encode("utf-32"),
    "lines of Windows": CSV.replace("\n", "\r\n").encode(),
    "lines of old Macs": CSV.replace("\n", "\r").encode(),
    "gzip": gzip.compress(CSV.encode()),
    "gzip of UTF-16": gzip.compress(CSV.encode("utf-16")),
    "bzip2": bz2.compress(CSV.encode()),
    "xz": lzma.compress(CSV.encode()),
    "zip": zipped(table=CSV),
    "Parquet": written(pd.DataFrame.to_parquet),
    "Parquet in gzip": gzip.compress(written(pd.DataFrame.to_parquet)),
    "Feather": written(pd.DataFrame.to_feather),
    "ORC": written(pd.DataFrame.to_orc),
    "Stata": written(pd.DataFrame.to_stata, write_index=False),
    "Stata, newer": written(pd.DataFrame.to_stata, write_index=False, version=118),
    "Excel": sheets(all=FRAME),
    "Excel, numbers as text": sheets(all=FRAME.astype(str)),
    "Excel, empty sheet first": sheets(nothing=pd.DataFrame(), all=FRAME),
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The tree of the plain table."""
    folder = tmp_path_factory.mktemp("expected")
    (folder / "plain.csv").write_text(CSV)
    done = run("fit", str(folder / "plain.csv"), *FIT, "--out", str(folder / "tree.json"))
    assert done.exit_code == 0, done.output
    return Tree.from_json(folder / "tree.json").to_dict()


@pytest.mark.parametrize("kind", READ)
def test_every_file_that_pandas_reads_gives_the_same_tree(
    kind: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    table, plain, tree = tmp_path / "table", tmp_path / "plain.csv", tmp_path / "tree.json"
    table.write_bytes(READ[kind])
    plain.write_text(CSV)
    fitted = run("fit", str(table), *FIT, "--out", str(tree))
    assert fitted.exit_code == 0, fitted.output
    assert Tree.from_json(tree).to_dict() == expected
    assert json.loads(tree.read_text())["classes"] == ["01", "1"]  # and no numbers
    for new in (table, plain):
        found = run("predict", str(tree), str(new), "--label", "code", "--json")
        assert json.loads(found.output)["accuracy"] == 1


DATABASE = sqlite3.connect(":memory:")
DATABASE.execute("create table t (a)")
NAMED: dict[str, tuple[bytes, str]] = {
    "JSON": (FRAME.to_json().encode(), "is JSON"),
    "JSON by lines": (FRAME.to_json(orient="records", lines=True).encode(), "JSON, one record a line"),
    "HTML": (b"<!DOCTYPE html>\n<html></html>", "HTML"),
    "ARFF": (b"% iris\n@RELATION iris\n", "ARFF"),
    "pickle": (pickle.dumps(FRAME), "a pickle, which is never opened"),
    "numpy": (b"\x93NUMPY\x01\0v\0", "array of numpy"),
    "SQLite": (DATABASE.serialize(), "SQLite"),
    "PDF": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\0", "PDF"),
    "two files in a ZIP": (zipped(a=CSV, b=CSV), "ZIP archive of 2 files"),
    "Word": (zipped(**{"word/document.xml": "<w/>"}), "a Word document"),
    "cut Parquet": (READ["Parquet"][:200], "Parquet file that cannot be read"),
    "cut Excel": (READ["Excel"][:2000], "cannot be read"),
    "cut gzip": (READ["gzip"][:40], "compressed by gzip and damaged"),
    "cut UTF-16": (READ["UTF-16"][:-1], "UTF-16 that is damaged"),
    "gzip twice": (gzip.compress(READ["gzip"]), "more than once"),
    "empty Excel": (sheets(nothing=pd.DataFrame()), "without values"),
    "empty gzip": (gzip.compress(b""), "empty"),
    "columns of one name": (sheets(all=FRAME.set_axis(["a", "a ", "c"], axis=1)), "two columns are called 'a'"),
    "dates": (sheets(all=FRAME.assign(width=pd.date_range("2026-01-01", periods=6))), "'width' holds dates"),
    "missing value": (sheets(all=FRAME.assign(width=[1, 2, None, 4, 5, 6])), "line 4: column 'width' has a missing value"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NAMED)
def test_other_files_are_named_for_what_they_are(kind: str, tmp_path: Path) -> None:
    raw, words = NAMED[kind]
    (tmp_path / "table").write_bytes(raw)
    found = run("fit", str(tmp_path / "table"), *FIT)
    assert found.exit_code == cli.WRONG_INPUT
    assert words in found.output
    assert len(found.output.splitlines()) == 1


@pytest.mark.parametrize("content", [b"1", b"\0"], ids=["text", "zero bytes"])
@pytest.mark.slow
def test_a_file_that_unpacks_to_far_more_is_refused_at_once(content: bytes, tmp_path: Path) -> None:
    many = content * (66 << 20)  # above 64 MiB, which are never too many
    for name, raw in (("a.gz", gzip.compress(many)), ("a.zip", zipped(a=many.decode()))):
        (tmp_path / name).write_bytes(raw)
        began = time.process_time()
        found = run("fit", str(tmp_path / name), *FIT)
        assert time.process_time() - began < 2
        assert found.exit_code == cli.WRONG_INPUT
        assert "200 times its own size" in found.output


def test_text_whose_first_column_is_called_like_a_format_is_text(tmp_path: Path) -> None:
    for name in ("ORC", "PAR1", "BZh", "PK", "RDX", "[a]"):
        (tmp_path / "table.csv").write_text(CSV.replace("width", name))
        assert run("fit", str(tmp_path / "table.csv"), *FIT).exit_code == 0, name


def test_labels_of_a_sheet_are_those_of_a_text_file(tmp_path: Path) -> None:
    """Numbers where all are numbers, text where one is not: in both, and the one is predicted for the other."""
    for labels in ([1, 1, 1, 2, 2, 2], [1, 1, 1, 2, 2, "3A"]):
        frame = FRAME.assign(code=np.array(labels, dtype=object))
        (tmp_path / "a.xlsx").write_bytes(sheets(all=frame))
        (tmp_path / "a.csv").write_text(frame.to_csv(index=False))
        texts = []
        for name in ("a.xlsx", "a.csv"):
            assert run("fit", str(tmp_path / name), *FIT, "--out", str(tmp_path / "t.json")).exit_code == 0
            texts.append(Tree.from_json(tmp_path / "t.json").to_json())
            (tmp_path / "b.xlsx").write_bytes(sheets(all=frame[:3]))
            found = run(
                "predict", str(tmp_path / "t.json"), str(tmp_path / "b.xlsx"), "--label", "code", "--json"
            )
            assert json.loads(found.output)["accuracy"] == 1
        assert texts[0] == texts[1]


def test_of_several_sheets_the_first_is_read_and_the_others_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(sheets(one=FRAME, two=FRAME))
    found = run("fit", str(tmp_path / "a.xlsx"), *FIT)
    assert found.exit_code == 0
    assert "the sheet 'one' is read, and not 'two'" in found.output


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_a_sign_for_a_missing_value_is_one_among_numbers_too(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, -999], "b": [-999.0, 1.5], "c": [True, False], "kind": ["x", "y"]})
    content = {"csv": frame.to_csv(index=False).encode(), "xlsx": sheets(all=frame)}
    (tmp_path / "t").write_bytes(content.get(kind) or written(pd.DataFrame.to_parquet, frame))
    read = cli_tables.read_table(tmp_path / "t", missing=["-999", "1.5"])
    assert read.X.isna().to_numpy().tolist() == [[False, True, False], [True, True, False]]


def test_a_sheet_may_begin_further_down_and_names_may_be_called_NA(tmp_path: Path) -> None:
    blank = pd.DataFrame([[None, None], [None, None], ["NA", "kind"], [1, "x"], [2, None], [3, "y"]])
    with pd.ExcelWriter(tmp_path / "t.xlsx") as writer:
        blank.to_excel(writer, header=False, index=False)
    read = cli_tables.read_table(tmp_path / "t.xlsx")
    assert (list(read.X.columns), read.label) == (["NA"], "kind")
    assert list(read.lines or ()) == [4, 5, 6]


def test_two_columns_of_one_name_are_refused_in_a_sheet_too(tmp_path: Path) -> None:
    (tmp_path / "t.xlsx").write_bytes(sheets(all=FRAME.set_axis(["a", "a", "kind"], axis=1)))
    with pytest.raises(InvalidData, match="line 1: two columns are called 'a'"):
        cli_tables.read_table(tmp_path / "t.xlsx")


def test_dates_are_labels_as_they_are_in_text(tmp_path: Path) -> None:
    days = pd.to_datetime(["2026-01-01"] * 3 + ["2026-01-02"] * 3)
    (tmp_path / "t").write_bytes(written(pd.DataFrame.to_parquet, FRAME.assign(code=days)))
    found = run("fit", tmp_path / "t", *FIT, "--out", tmp_path / "t.json")
    assert found.exit_code == 0, found.output
    assert Tree.from_json(tmp_path / "t.json").classes == ("2026-01-01", "2026-01-02")


@pytest.mark.parametrize(
    ("held", "classes"),
    [
        ([b"a", b"a\xff"], ("a", "a\\xff")),
        ([Decimal(2**60), Decimal(2**60 + 1)], (2**60, 2**60 + 1)),
        ([Decimal("0.50"), Decimal("1.00")], (0.5, 1.0)),
        ([pd.Period("2026-01"), pd.Period("2026-02")], ("2026-01", "2026-02")),
    ],
    ids=["bytes", "whole decimals", "decimals", "periods"],
)
def test_labels_that_saved_trees_do_not_hold_are_read_as_in_text(
    held: Any, classes: Any, tmp_path: Path
) -> None:
    frame = FRAME.assign(width=[1, 2, 3, 4, 5, 6], code=[held[0]] * 3 + [held[1]] * 3)
    (tmp_path / "t").write_bytes(written(pd.DataFrame.to_parquet, frame))
    found = run("fit", tmp_path / "t", *FIT, "--out", tmp_path / "t.json")
    assert found.exit_code == 0, found.output
    assert Tree.from_json(tmp_path / "t.json").classes == classes
    predicted = run("predict", tmp_path / "t.json", tmp_path / "t", "--label", "code")
    assert "accuracy 1.0000" in predicted.output


def test_bytes_are_text_among_features_too(tmp_path: Path) -> None:
    frame = FRAME.assign(width=[b"1.5", b"2", None] * 2, height=[b"red", b"blue", None] * 2)
    (tmp_path / "t").write_bytes(written(pd.DataFrame.to_parquet, frame))
    X = cli_tables.read_table(tmp_path / "t").X
    assert X["width"].dropna().tolist() == [1.5, 2.0] * 2
    assert X["height"].dropna().tolist() == ["red", "blue"] * 2


def test_a_column_of_lists_is_refused_by_its_name(tmp_path: Path) -> None:
    frame = FRAME.assign(width=[[1, 2], [3]] * 3)
    (tmp_path / "t").write_bytes(written(pd.DataFrame.to_parquet, frame))
    with pytest.raises(InvalidData, match=r"'width' holds several values in one cell.*--drop width"):
        cli_tables.read_table(tmp_path / "t")
    assert list(cli_tables.read_table(tmp_path / "t", drop=["width"]).X.columns) == ["height"]
