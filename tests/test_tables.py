"""Tables of pandas, polars, Arrow and numpy: taken as they are, or refused with the column, the row and what to write."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import octsvm
from octsvm import OCTClassifier

FRAME = pd.DataFrame({"x2": [0.0, 1, 2, 3, 4, 5], "x1": [5.0, 1, 4, 0, 3, 2]})
COLUMNS: dict[str, Any] = FRAME.to_dict("list")
LABELS = list("aaabbb")

TAKEN: dict[str, Any] = {
    "polars": pl.DataFrame(COLUMNS),
    "polars of 128 bits": pl.DataFrame({name: pl.Series(v).cast(pl.Int128) for name, v in COLUMNS.items()}),
    "polars of decimals": pl.DataFrame({n: [decimal.Decimal(int(v)) for v in c] for n, c in COLUMNS.items()}),
    "arrow": pa.table(COLUMNS),
    "arrow in pieces": pa.concat_tables([pa.table(FRAME[:2].to_dict("list")), pa.table(FRAME[2:].to_dict("list"))]),
    "arrow batch": pa.RecordBatch.from_pandas(FRAME),
    "arrow dictionary": pa.table({name: pa.array(v).dictionary_encode() for name, v in COLUMNS.items()}),
    "pandas on arrow": FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "records": FRAME.to_records(index=False),
    "what can become one of pandas": SimpleNamespace(to_pandas=lambda: FRAME),
}  # fmt: skip


@pytest.mark.parametrize("kind", TAKEN)
def test_tables_with_names_give_the_same_tree_everywhere(kind: str) -> None:
    table = TAKEN[kind]
    result = octsvm.fit("oct", table, LABELS, depth=1, alpha=0.1)
    assert result.tree.feature_names == ("x2", "x1")
    assert result.tree.predict(table).tolist() == result.tree.predict(FRAME[["x1", "x2"]]).tolist() == LABELS
    assert octsvm.evaluate("oct", result.tree, table, LABELS, alpha=0.1).objective == pytest.approx(0.1)
    assert octsvm.build("oct", table, LABELS, depth=1).info.data.digest == result.data_digest
    assert len(octsvm.relabelling_report(result, table, LABELS)) == 0
    fitted = OCTClassifier(max_depth=1, alpha=0.1).fit(table, LABELS)
    assert fitted.feature_names_in_.tolist() == ["x2", "x1"]
    assert fitted.predict(table).tolist() == LABELS
    assert fitted.score(table, LABELS) == 1


REFUSED: dict[str, tuple[Any, str]] = {
    "polars, missing": (pl.DataFrame({"a": [1, None]}), "'a' has a missing value in row 1"),
    "polars, text": (pl.DataFrame({"a": ["u", "v"]}), "'a' holds text"),
    "polars, dates": (pl.DataFrame({"a": [datetime.date(2026, 1, 1)] * 2}), "'a' holds dates"),
    "polars, structs": (pl.DataFrame({"a": [{"u": 1}] * 2}), "'a', row 0 holds"),
    "polars, lazy": (pl.DataFrame({"a": [1, 2]}).lazy(), r"X\.collect\(\)"),
    "arrow, one name twice": (
        pa.Table.from_arrays([pa.array([1, 2])] * 2, names=["a", "a"]),
        "Two columns of X are called 'a'|columns are called 'a'",
    ),
    "arrow, times": (pa.table({"a": [datetime.datetime(2026, 1, 1)] * 2}), "'a' holds dates"),
    "pandas on arrow, missing": (pd.DataFrame({"a": pd.array([1, None], dtype="int64[pyarrow]")}), "missing value in row 1"),
    "dates as objects": (pd.DataFrame({"a": [datetime.date(2026, 1, 1)] * 2}), "'a' holds dates"),
    "masked records": (
        np.ma.array([(1, 2), (3, 4)], mask=[(1, 0), (0, 0)], dtype=[("a", int), ("b", float)]),
        "'a' has a missing value in row 0",
    ),
    "records of arrays": (np.zeros(2, dtype=[("a", float, (2,))]), r"'a' holds arrays of shape \(2,\).*a column of its own"),
    "a mapping": ({"a": [1, 2]}, r"pd\.DataFrame\(X\)"),
    "rows by name": ([{"a": 1}, {"a": 2}], r"pd\.DataFrame\(X\)"),
    "a generator": (([k] for k in range(2)), r"list\(X\)"),
    "text among numbers": ([[1.0], ["u"]], "'x1' holds text"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_table_of_numbers_is_refused_by_functions_and_classifiers_alike(kind: str) -> None:
    X, words = REFUSED[kind]
    for call in (octsvm.fit, octsvm.build):
        with pytest.raises(octsvm.InvalidData, match=words):
            call("oct", X, ["p", "q"])
    with pytest.raises(octsvm.InvalidData, match=words):
        OCTClassifier().fit(X, ["p", "q"])


@pytest.mark.parametrize(
    "kind", ["csr_matrix", "csr_array", "csc_array", "coo_array", "dok_array", "lil_array", "bsr_array"]
)
def test_sparse_tables_are_refused_with_their_line_by_all_but_classifiers(kind: str) -> None:
    import scipy.sparse as sp

    X, y = getattr(sp, kind)(FRAME.to_numpy()), LABELS
    result = octsvm.fit("oct", FRAME.to_numpy(), y, depth=1, alpha=0.1)
    fitted = OCTClassifier(max_depth=1).fit(FRAME.to_numpy(), y)
    calls: list[Callable[[], Any]] = [
        lambda: octsvm.fit("oct", X, y),
        lambda: octsvm.build("oct", X, y),
        lambda: octsvm.evaluate("oct", result.tree, X, y),
        lambda: octsvm.relabelling_report(result, X, y),
        lambda: result.tree.predict(X),
    ]
    for call in calls:
        with pytest.raises(octsvm.InvalidData, match=r"X\.toarray\(\)"):
            call()
    assert fitted.predict(X).tolist() == fitted.predict(FRAME.to_numpy()).tolist()


def test_classifiers_without_names_take_columns_by_position() -> None:
    fitted = OCTClassifier(max_depth=1, alpha=0.1).fit(FRAME.to_numpy(), LABELS)
    with pytest.warns(UserWarning, match="feature names"):
        assert fitted.predict(FRAME.set_axis(["x1", "x2"], axis=1)).tolist() == LABELS
    for names in (["p", "p"], [1, 0]):
        assert fitted.predict(FRAME.set_axis(names, axis=1)).tolist() == LABELS
    numbered = OCTClassifier(max_depth=1, alpha=0.1).fit(FRAME.set_axis([3, 7], axis=1), LABELS)
    assert numbered.predict(FRAME.to_numpy()).tolist() == LABELS
    with pytest.raises(octsvm.InvalidData, match=r"X\.columns\.astype\(str\)"):
        OCTClassifier().fit(FRAME.set_axis([3, "b"], axis=1), LABELS)


# -- indices ------------------------------------------------------------------------------------------------------

INDEXED = pd.DataFrame({"a": [0.0, 1.0, 2.0]}, index=["p", "q", "r"])
GIVEN = pd.Series([0, 1, 1], index=INDEXED.index)
WEIGHTS = pd.Series([1.0, 2.0, 3.0], index=INDEXED.index)


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (["r", "p", "q"], "same index in different orders"),
        (["p", "q", "s"], r"row 2 is 'r' in .* and 's' in"),
    ],
    ids=["order", "rows"],
)
def test_indices_that_do_not_fit_are_refused_everywhere(index: list[str], words: str) -> None:
    table, y, strange, heavy = INDEXED, GIVEN, GIVEN.set_axis(index), WEIGHTS.set_axis(index)
    result = octsvm.fit("oct", table, y, depth=1)
    fitted = OCTClassifier(max_depth=1).fit(table, y)
    grid = {"max_depth": [1]}
    calls: list[Callable[[], Any]] = [
        lambda: octsvm.fit("oct", table, strange, depth=1),
        lambda: octsvm.fit("oct", table, y, weights=heavy, depth=1),
        lambda: octsvm.fit("oct", table.to_numpy(), y, weights=heavy, depth=1),  # y and weights differ
        lambda: octsvm.build("oct", table, strange, depth=1),
        lambda: octsvm.build("oct", table, y, weights=heavy, depth=1),
        lambda: octsvm.evaluate("oct", result.tree, table, strange),
        lambda: octsvm.evaluate("oct", result.tree, table, y, weights=heavy),
        lambda: octsvm.relabelling_report(result, table, strange),
        lambda: octsvm.suspect_rows(OCTClassifier(), grid, table, strange),
        lambda: OCTClassifier(max_depth=1).fit(table, strange),
        lambda: OCTClassifier(max_depth=1).fit(table, strange.to_frame()),
        lambda: OCTClassifier(max_depth=1).fit(table, y, sample_weight=heavy),
        lambda: fitted.score(table, strange),
        lambda: fitted.score(table, y, sample_weight=heavy),
    ]
    for call in calls:
        with pytest.raises(octsvm.InvalidData, match=words):
            call()


@pytest.mark.parametrize(
    ("one", "two", "words"),
    [
        (
            pd.Index([0, 1, pd.NA], dtype="Int64"),
            pd.Index([pd.NA, 1, 2], dtype="Int64"),
            "row 0 is 0 in X and <NA> in y",
        ),
        (["a", "a", "b"], ["a", "b", "b"], "row 1 is 'a' in X and 'b' in y"),
    ],
    ids=["missing", "repeated"],
)
def test_indices_with_missing_or_repeated_entries_differ_by_row(one: Any, two: Any, words: str) -> None:
    with pytest.raises(octsvm.InvalidData, match=words):
        octsvm.build("oct", INDEXED.set_axis(one), GIVEN.set_axis(two))


def test_an_index_that_only_counts_the_rows_fits_every_other() -> None:
    for y in (GIVEN, GIVEN.reset_index(drop=True), GIVEN.to_numpy(), GIVEN.tolist()):
        for weights in (None, WEIGHTS, WEIGHTS.reset_index(drop=True), [1.0, 2.0, 3.0]):
            for table in (INDEXED, INDEXED.reset_index(drop=True)):
                octsvm.build("oct", table, y, weights=weights, depth=1)
    with pytest.raises(octsvm.InvalidData, match=r"y\.loc\[X\.index\]"):
        octsvm.build("oct", INDEXED.reset_index(drop=True), GIVEN.set_axis([2, 0, 1]))


def test_equal_indices_with_missing_or_repeated_entries_fit() -> None:
    for index in ([np.nan, 1.0, 2.0], [7, 7, 7], pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])):
        octsvm.build(
            "oct", INDEXED.set_axis(index), GIVEN.set_axis(index), weights=WEIGHTS.set_axis(index), depth=1
        )


@pytest.mark.parametrize(
    "column",
    [
        np.array([2**63 + k for k in range(6)], dtype=np.uint64),
        np.array([-(2**60) - k for k in range(6)], dtype=np.int64),
        [10**20 + k for k in range(6)],
    ],
    ids=["uint64", "int64", "of Python"],
)
@pytest.mark.parametrize("kind", ["array", "frame", "Int64", "list"])
def test_whole_numbers_that_are_one_in_double_precision_are_refused(column: Any, kind: str) -> None:
    def table(values: Any) -> Any:
        if kind == "array":
            return np.asarray(values).reshape(-1, 1)
        if kind == "list":
            return [[int(v)] for v in values]
        frame = pd.DataFrame({"x1": values})
        small = kind == "Int64" and all(-(2**63) <= int(v) < 2**63 for v in values)
        return frame.astype("Int64") if small else frame

    y = list("aaabbb")
    with pytest.raises(
        octsvm.InvalidData, match=r"'x1' holds -?\d+ and -?\d+, which are one number in double"
    ):
        octsvm.fit("oct", table(column), y, depth=1)
    apart = [int(v) * 1 + k * 2**14 for k, v in enumerate(np.asarray(column, dtype=object))]
    if kind != "Int64" or max(apart) < 2**63:
        fitted = octsvm.fit("oct", [[v] for v in apart], y, depth=1, alpha=0.1)
        assert (
            fitted.tree.predict(table([apart[0]] * 6)).tolist() == ["a"] * 6
        )  # equal ones are no fault later
