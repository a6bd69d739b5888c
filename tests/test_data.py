"""Tables, labels, weights and parameters: what is taken, what is refused, and what the refusal says."""

from __future__ import annotations

import copy
import decimal
import functools
import pickle
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import octsvm

FORMULATIONS = ("oct", "oct_h", "re_svm", "octsvm")
SVM = ("re_svm", "octsvm")

TABLE = np.array(
    [[0, 3, 1], [1, 1, 0], [2, 4, 1], [3, 1, 0], [4, 5, 1], [5, 9, 0], [6, 2, 1], [7, 6, 0]], dtype=float
)
LABELS = np.array([0, 0, 1, 0, 1, 1, 0, 1])


def tree_of(X: Any, y: Any = LABELS, formulation: str = "oct", **more: Any) -> octsvm.Result:
    params = {"oct": {"depth": 1, "alpha": 0.1}, "oct_h": {"depth": 1}, "re_svm": {}, "octsvm": {"depth": 0}}
    return octsvm.fit(formulation, X, y, **(params[formulation] | more))


@functools.cache
def reference_of(formulation: str) -> octsvm.Result:
    return tree_of(TABLE, LABELS, formulation)


# ------------------------------------------------------------------------------------------------ tables taken

TABLES: dict[str, Any] = {
    "array": TABLE,
    "fortran order": np.asfortranarray(TABLE),
    **{
        f"{kind}{bits}": TABLE.astype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)
    },
    **{kind: TABLE.astype(kind) for kind in ("float16", "float32", "longdouble")},
    "strided view": np.repeat(TABLE, 2, axis=0)[::2],
    "negative strides": TABLE[::-1, ::-1][::-1, ::-1],
    "object array of numbers": TABLE.astype(object),
    "list of lists": TABLE.tolist(),
    "list of int lists": TABLE.astype(int).tolist(),
    "tuple of tuples": tuple(map(tuple, TABLE.tolist())),
    "list of arrays": list(TABLE),
    "decimals": [[decimal.Decimal(int(v)) for v in row] for row in TABLE],
    "frame": pd.DataFrame(TABLE, columns=["a", "b", "c"]),
    "frame with odd index": pd.DataFrame(TABLE, columns=["a", "b", "c"], index=list("hgfedcba")),
    "frame with equal index": pd.DataFrame(TABLE, columns=["a", "b", "c"], index=[7] * 8),
    "frame with numbered columns": pd.DataFrame(TABLE),
    "frame of mixed dtypes": pd.DataFrame(
        {
            "a": TABLE[:, 0].astype(np.int8),
            "b": TABLE[:, 1].astype(np.float32),
            "c": TABLE[:, 2].astype(bool),
        }
    ),
    "frame of nullable dtypes": pd.DataFrame(
        {
            "a": pd.array(TABLE[:, 0].astype(int), dtype="Int64"),
            "b": pd.array(TABLE[:, 1], dtype="Float64"),
            "c": pd.array(TABLE[:, 2].astype(bool), dtype="boolean"),
        }
    ),
    "frame of number categories": pd.DataFrame(
        {
            "a": pd.Categorical(TABLE[:, 0].astype(int)),
            "b": pd.Categorical(TABLE[:, 1], categories=[9.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]),
            "c": TABLE[:, 2],
        }
    ),
    "frame of objects": pd.DataFrame(TABLE, columns=["a", "b", "c"]).astype(object),
    "frame of sparse columns": pd.DataFrame(
        {name: pd.arrays.SparseArray(TABLE[:, j]) for j, name in enumerate("abc")}
    ),
    "frame with two-level columns": pd.DataFrame(
        TABLE, columns=pd.MultiIndex.from_tuples([("u", "a"), ("u", "b"), ("v", "a")])
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_gives_the_same_tree(kind: str) -> None:
    X = TABLES[kind]
    reference, result = reference_of("oct"), tree_of(X)
    assert result.objective == reference.objective
    assert result.data_digest == reference.data_digest
    assert result.tree.feature.tolist() == reference.tree.feature.tolist()
    assert result.tree.threshold.tolist() == reference.tree.threshold.tolist()
    np.testing.assert_array_equal(result.tree.predict(X), reference.tree.predict(TABLE))


def test_columns_keep_their_names() -> None:
    assert tree_of(TABLES["frame"]).tree.feature_names == ("a", "b", "c")
    assert tree_of(TABLES["frame with numbered columns"]).tree.feature_names == ("0", "1", "2")
    assert tree_of(TABLE).tree.feature_names == ("x1", "x2", "x3")
    assert len(set(tree_of(TABLES["frame with two-level columns"]).tree.feature_names)) == 3


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_the_callers_objects_stay_as_they_were(formulation: str) -> None:
    X = pd.DataFrame({"a": TABLE[:, 0], "b": TABLE[:, 1].astype(int), "c": TABLE[:, 2].astype(bool)})
    y = pd.Series(np.where(LABELS > 0, "yes", "no"), index=range(10, 18), name="label")
    weights = pd.Series(np.linspace(1, 2, 8))
    before = X.copy(deep=True), y.copy(deep=True), weights.copy(deep=True)
    result = tree_of(X, y, formulation, weights=weights)
    result.tree.predict(X)
    pd.testing.assert_frame_equal(X, before[0])
    pd.testing.assert_series_equal(y, before[1])
    pd.testing.assert_series_equal(weights, before[2])

    rows, labels = TABLE.tolist(), LABELS.tolist()
    kept = copy.deepcopy((rows, labels))
    tree_of(rows, labels, formulation)
    assert (rows, labels) == kept


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_read_only_arrays_are_taken(formulation: str) -> None:
    X, y, weights = TABLE.copy(), LABELS.copy(), np.ones(8)
    for array in (X, y, weights):
        array.setflags(write=False)
    tree = tree_of(X, y, formulation, weights=weights).tree
    tree.predict(X)
    np.testing.assert_array_equal(X, TABLE)
    np.testing.assert_array_equal(y, LABELS)


def test_a_result_does_not_follow_later_changes_of_the_callers_arrays() -> None:
    X, y, weights = TABLE.copy(), LABELS.copy(), np.ones(8)
    model = octsvm.build("oct", X, y, depth=1, weights=weights)
    X[:] = 0
    y[:] = 0
    weights[:] = 0
    assert octsvm.solve(model).objective == octsvm.fit("oct", TABLE, LABELS, depth=1).objective


# ------------------------------------------------------------------------------------------------ labels taken

POSITIVE = LABELS > 0
LABEL_KINDS: dict[str, Any] = {
    "0/1": LABELS,
    "1/2": LABELS + 1,
    "-1/+1": 2 * LABELS - 1,
    "floats": LABELS.astype(float),
    "fractions": np.where(POSITIVE, 1.5, 0.5),
    "bool": POSITIVE,
    "list of bool": POSITIVE.tolist(),
    "strings": np.where(POSITIVE, "yes", "no"),
    "list of strings": np.where(POSITIVE, "yes", "no").tolist(),
    "object strings": np.where(POSITIVE, "yes", "no").astype(object),
    "numpy strings": [np.str_("yes") if v else np.str_("no") for v in POSITIVE],
    "empty string as a class": ["yes" if v else "" for v in POSITIVE],
    "uint8": LABELS.astype(np.uint8),
    "int8": (2 * LABELS - 1).astype(np.int8),
    "numpy bools in a list": list(POSITIVE),
    "tuple": tuple(LABELS.tolist()),
    "column vector": LABELS.reshape(-1, 1),
    "series": pd.Series(LABELS),
    "series with odd index": pd.Series(LABELS, index=list("hgfedcba")),
    "series with equal index": pd.Series(LABELS, index=[3] * 8),
    "one-column frame": pd.DataFrame({"y": LABELS}),
    "string dtype": pd.Series(np.where(POSITIVE, "yes", "no"), dtype="string"),
    "nullable bool": pd.array(POSITIVE, dtype="boolean"),
    "nullable int": pd.Series(LABELS, dtype="Int64"),
    "categorical": pd.Categorical(np.where(POSITIVE, "yes", "no"), categories=["yes", "no", "unused"]),
    "categorical series": pd.Series(pd.Categorical(LABELS), index=range(5, 13)),
}


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("kind", LABEL_KINDS)
@pytest.mark.quick_cases("*-oct", "categorical-*")
@pytest.mark.every_value
def test_every_kind_of_label_comes_back_as_it_was_given(kind: str, formulation: str) -> None:
    y = LABEL_KINDS[kind]
    reference, result = reference_of(formulation), tree_of(TABLE, y, formulation)
    # Whatever sorts last counts as +1; all these kinds sort like 0/1.
    assert result.objective == pytest.approx(reference.objective, rel=1e-9, abs=1e-9)
    given = np.asarray(y).ravel()
    low, high = given[~POSITIVE][0], given[POSITIVE][0]
    predicted = result.tree.predict(TABLE)
    assert predicted.shape == (8,)
    expected = np.where(reference.tree.predict(TABLE) == 1, high, low)
    assert predicted.tolist() == expected.tolist()
    assert {type(v) for v in predicted.tolist()} <= {type(v) for v in given.tolist()}


def test_equal_rows_with_different_labels_are_fine() -> None:
    X, y = np.zeros((4, 2)), ["a", "b", "a", "b"]
    for formulation in FORMULATIONS:
        result = tree_of(X, y, formulation)
        assert result.status == "optimal"
        assert result.tree.predict(X).tolist() in (["a"] * 4, ["b"] * 4)
        assert result.counts["wrong_rows"] == 2


# ---------------------------------------------------------------------------------------------------- refusals


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]} | columns)


def refused(words: list[str], call: Any, *args: Any, **more: Any) -> str:
    """The one line that says why ``call`` takes no such data."""
    with pytest.raises(octsvm.InvalidData) as caught:
        call(*args, **more)
    message = str(caught.value)
    assert type(caught.value) is octsvm.InvalidData
    assert "\n" not in message
    for word in words:
        assert word in message
    return message


BAD_TABLES: list[tuple[str, Any, list[str]]] = [
    ("nan", np.array([[1, 2], [3, np.nan]]), ["'x2'", "row 1", "missing"]),
    ("inf", np.array([[1, np.inf], [3, 4]]), ["'x2'", "row 0", "infinite", "Replace"]),
    ("minus inf in a frame", frame(b=[1, -np.inf]), ["'b'", "row 1", "infinite"]),
    ("nan in a frame", frame(b=[np.nan, 1]), ["'b'", "row 0", "missing", "Fill"]),
    ("None in a list", [[1, 2], [None, 4]], ["'x1'", "row 1", "missing"]),
    ("NA of a nullable int", frame(b=pd.array([1, None], dtype="Int64")), ["'b'", "row 1", "missing"]),
    ("NA of a nullable float", frame(b=pd.array([None, 1.5], dtype="Float64")), ["'b'", "row 0", "missing"]),
    ("NA of a nullable bool", frame(b=pd.array([True, None], dtype="boolean")), ["'b'", "row 1", "missing"]),
    ("NA in an object column", frame(b=np.array([1, pd.NA], dtype=object)), ["'b'", "row 1", "missing"]),
    ("missing category", frame(b=pd.Categorical([1, None])), ["'b'", "row 1", "missing"]),
    ("masked array", np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 0]]), ["'x2'", "row 0"]),
    ("overflowing range", [[1e308, 0], [-1e308, 1]], ["'x1'", "overflows"]),
    ("a number beyond doubles", [[1, 10**400], [2, 3]], ["'x2'", "row 0"]),
    ("dates", frame(b=pd.date_range("2026-01-01", periods=2)), ["'b'", "dates", "days since"]),
    ("dates with zone", frame(b=pd.date_range("2026-01-01", periods=2, tz="UTC")), ["'b'", "dates"]),
    ("durations", frame(b=pd.to_timedelta([1, 2], unit="D")), ["'b'", "durations"]),
    ("dates in an array", np.array([["2026-01-01", "2026-01-02"]] * 2, dtype="M8[D]"), ["'x1'", "dates"]),
    ("periods", frame(b=pd.period_range("2026", periods=2, freq="Y")), ["'b'", "row 0", "Period"]),
    ("complex", np.array([[1, 2j], [3, 4]]), ["complex", "'x1'", "two columns"]),
    ("lists in a column", frame(b=np.array([[1], [2, 3]], dtype=object)), ["'b'", "row 0", "list"]),
    ("one dimension", np.array([1.0, 2.0]), ["(2,)", "reshape(-1, 1)"]),
    ("a series", pd.Series([1.0, 2.0]), ["(2,)", "reshape(-1, 1)"]),
    ("three dimensions", np.zeros((2, 2, 1)), ["(2, 2, 1)", "two dimensions"]),
    ("a scalar", 3.0, ["()"]),
    ("text instead of a table", "table.csv", ["()"]),
    ("None instead of a table", None, ["X has shape ()", "rows and features"]),
    ("ragged", [[1, 2], [3]], ["ragged", "same number"]),
    ("no rows", np.zeros((0, 2)), ["empty", "0 rows"]),
    ("no columns", np.zeros((2, 0)), ["empty", "0 columns"]),
    ("empty list", [], ["(0,)"]),
    ("sparse", scipy.sparse.eye(2).tocsr(), ["sparse", "X.toarray()"]),
    ("empty frame", pd.DataFrame({"a": []}), ["empty", "0 rows"]),
    ("frame without columns", pd.DataFrame(index=[0, 1]), ["empty", "0 columns"]),
    ("two columns of one name", pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), ["'a'", "own name"]),
    ("two names that read alike", pd.DataFrame([[1, 2], [3, 4]], columns=["1", 1]), ["'1'", "own name"]),
]


@pytest.mark.parametrize(("X", "words"), [b[1:] for b in BAD_TABLES], ids=[b[0] for b in BAD_TABLES])
def test_a_table_that_cannot_be_used_is_refused_by_column_and_row(X: Any, words: list[str]) -> None:
    for formulation in FORMULATIONS:
        refused(words, octsvm.fit, formulation, X, [0, 1])


# Text: the message holds a line of Python; that line, executed, must lead to a table that is taken.

TEXT: list[tuple[str, Any, str]] = [
    ("object column", pd.DataFrame({"n": [1, 2, 3], "c": np.array(["r", "g", "r"], dtype=object)}), "'c'"),
    ("str column", pd.DataFrame({"n": [1, 2, 3], "c": ["r", "g", "r"]}), "'c'"),
    ("string dtype", pd.DataFrame({"c": pd.array(["r", "g", "r"], dtype="string"), "n": [1, 2, 3]}), "'c'"),
    ("category", pd.DataFrame({"c": pd.Categorical(["r", "g", "r"]), "n": [1, 2, 3]}), "'c'"),
    ("one text among numbers", pd.DataFrame({"n": [1, 2, 3], "c": np.array([1, 2, "?"], dtype=object)}), "'c'"),
    ("numbers as text", pd.DataFrame({"n": [1, 2, 3], "c": ["1", "2.5", "-3"]}), "'c'"),
    ("numbers as string dtype", pd.DataFrame({"c": pd.array(["1", "2", "3"], dtype="string")}), "'c'"),
    ("name with a quote", pd.DataFrame({"it's": ["r", "g", "r"], "n": [1, 2, 3]}), '"it\'s"'),
    ("numbered text column", pd.DataFrame({0: [1, 2, 3], 1: ["r", "g", "r"]}), "'1'"),
    ("numbered column of numbers as text", pd.DataFrame({0: [1, 2, 3], 1: ["1", "2", "3"]}), "'1'"),
    ("object array", np.array([[1, "r"], [2, "g"], [3, "r"]], dtype=object), "'x2'"),
    ("list of mixed rows", [[1, "r"], [2, "g"], [3, "r"]], "'x2'"),
    ("array of numbers as text", np.array([["1", "2"], ["3", "4"], ["5", "7"]]), "'x1'"),
    ("list of numbers as text", [["1", 2], ["3", 4], ["5", 7]], "'x1'"),
]  # fmt: skip


def line_to_write(message: str) -> str:
    found = re.search(r"X(\[[^]]+\])? = .*\)", message)
    assert found, f"no line of Python in: {message}"
    return found.group(0)


@pytest.mark.parametrize(("X", "column"), [t[1:] for t in TEXT], ids=[t[0] for t in TEXT])
def test_text_is_refused_with_the_line_that_cures_it(X: Any, column: str) -> None:
    y = [0, 1, 0]
    message = refused(["holds text", column], octsvm.fit, "oct", X, y, depth=1)
    space: dict[str, Any] = {"X": copy.deepcopy(X), "pd": pd, "np": np}
    exec(line_to_write(message), space)
    assert octsvm.fit("oct", space["X"], y, depth=1).tree is not None
    if "looks like numbers" in message or "to_numeric" in message:
        assert (
            np.asarray(space["X"]).shape[1] == np.asarray(X).shape[1]
        )  # turned into numbers, not into flags


def test_bytes_are_text() -> None:
    with pytest.raises(octsvm.InvalidData, match="'x1' holds text"):
        octsvm.fit("oct", np.array([[b"r"], [b"g"]]), [0, 1])


BAD_LABELS: list[tuple[str, Any, list[str]]] = [
    ("too few", [0], ["2 rows", "1 label", "one label a row"]),
    ("too many", [0, 1, 0], ["2 rows", "3 labels"]),
    ("none at all", [], ["2 rows", "0 labels"]),
    ("None", None, ["None"]),
    ("a string", "ab", ["'ab'"]),
    ("a scalar", 1, ["1"]),
    ("a set has no order", {"a", "b"}, ["order", "a set", "Give a list"]),
    ("a mapping", {"a": 0, "b": 1}, ["dict"]),
    ("nan", [0.0, np.nan], ["row 1", "missing", "Drop the row"]),
    ("None among strings", ["a", None], ["row 1", "missing"]),
    ("NA of a string dtype", pd.array([None, "b"], dtype="string"), ["row 0", "missing"]),
    ("NA of a nullable int", pd.array([1, None], dtype="Int64"), ["row 1", "missing"]),
    ("missing category", pd.Categorical(["a", None]), ["row 1", "missing"]),
    ("NaT", np.array(["NaT", "2026-01-01"], dtype="M8[D]"), ["row 0"]),
    ("inf", [0.0, np.inf], ["row 1", "inf"]),
    ("an infinite Decimal", [decimal.Decimal(1), decimal.Decimal("Infinity")], ["row 1", "Inf"]),
    ("a label beyond doubles", [1, 10**400], ["row 1"]),
    ("numbers and text", [1, "a"], ["mixes", "numbers and text", "astype(str)"]),
    ("true/false and numbers", [True, 0], ["mixes", "numbers", "true/false"]),
    ("true/false and text", [True, "a"], ["mixes", "text", "true/false"]),
    ("two columns", np.eye(2), ["row 0"]),
    ("one-hot frame", pd.DataFrame({"a": [1, 0], "b": [0, 1]}), ["2 columns"]),
]


@pytest.mark.parametrize(("y", "words"), [b[1:] for b in BAD_LABELS], ids=[b[0] for b in BAD_LABELS])
def test_labels_that_cannot_be_used_are_refused(y: Any, words: list[str]) -> None:
    for formulation in FORMULATIONS:
        refused(words, octsvm.fit, formulation, [[0.0], [1.0]], y)
    refused(words, octsvm.build, "oct", [[0.0], [1.0]], y)


def test_the_cure_for_mixed_labels_works() -> None:
    y = pd.Series([1, "a"], dtype=object)
    with pytest.raises(octsvm.InvalidData, match=r"y\.astype\(str\)"):
        octsvm.fit("oct", [[0.0], [1.0]], y)
    assert octsvm.fit("oct", [[0.0], [1.0]], y.astype(str), depth=1, alpha=0).objective == 0


def test_measurements_are_no_labels() -> None:
    y = np.linspace(0, 1, 40) ** 2
    with pytest.raises(octsvm.InvalidData, match=r"measurement.*Cut it"):
        octsvm.fit("oct", np.arange(40.0)[:, None], y)


@pytest.mark.parametrize("formulation", SVM)
def test_three_classes_are_too_many_for_the_svm_models(formulation: str) -> None:
    X, y = np.arange(6.0)[:, None], list("abcabc")
    with pytest.raises(octsvm.InvalidData) as caught:
        octsvm.fit(formulation, X, y)
    message = str(caught.value)
    assert repr(formulation) in message
    assert "'a', 'b', 'c'" in message
    assert "'oct'" in message
    assert "'oct_h'" in message
    assert octsvm.fit("oct", X, y, depth=1).tree.classes == ("a", "b", "c")
    many = [f"k{i}" for i in range(40)]
    with pytest.raises(octsvm.InvalidData, match=r"40.*\.\.\.") as caught:
        octsvm.fit(formulation, np.arange(40.0)[:, None], many)
    assert len(str(caught.value)) < 400


BAD_WEIGHTS: list[tuple[str, Any, list[str]]] = [
    ("too few", [1.0], ["(1,)", "2 rows"]),
    ("too many", [1.0, 1.0, 1.0], ["(3,)", "2 rows"]),
    ("a scalar", 2.0, ["()", "2 rows"]),
    ("a column", [[1.0], [2.0]], ["(2, 1)"]),
    ("negative", [1.0, -0.5], ["row 1", "-0.5", "not negative"]),
    ("nan", [np.nan, 1.0], ["row 0", "nan"]),
    ("NA", pd.array([1, None], dtype="Int64"), ["row 1"]),
    ("inf", [1.0, np.inf], ["row 1", "inf"]),
    ("all zero", [0.0, 0.0], ["zero"]),
    ("an infinite sum", [1e308, 1e308], ["add up", "Divide"]),
    ("text", ["a", "b"], ["numbers"]),
    ("numbers as text", ["1", "2"], ["numbers"]),
    ("complex", [1j, 1.0], ["numbers"]),
    ("dates", np.array(["2026-01-01", "2026-01-02"], dtype="M8[D]"), ["numbers"]),
    ("durations", np.array([1, 2], dtype="m8[s]"), ["numbers"]),
    ("a mapping", {0: 1.0, 1: 1.0}, ["numbers"]),
    ("ragged", [[1.0], [1.0, 2.0]], ["numbers"]),
]


def test_weights_that_no_solver_takes_beside_the_other_numbers() -> None:
    with pytest.raises(octsvm.InvalidParameter, match="weights of rows and costs are such numbers"):
        octsvm.fit("oct", TABLE, LABELS, depth=1, weights=np.full(8, 1e-300))


@pytest.mark.parametrize(("weights", "words"), [b[1:] for b in BAD_WEIGHTS], ids=[b[0] for b in BAD_WEIGHTS])
def test_weights_that_cannot_be_used_are_refused(weights: Any, words: list[str]) -> None:
    for formulation in FORMULATIONS:
        message = refused(words, octsvm.fit, formulation, [[0.0], [1.0]], [0, 1], weights=weights)
        assert "weight" in message.lower()


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_weight_of_two_is_the_row_twice_and_zero_is_no_error(formulation: str) -> None:
    weights = np.array([1, 2, 1, 2, 1, 1, 2, 1])
    twice = np.repeat(np.arange(8), weights)
    heavy = tree_of(TABLE, LABELS, formulation, weights=weights, gap=1e-6)
    repeated = tree_of(TABLE[twice], LABELS[twice], formulation, gap=1e-6)
    assert heavy.objective == pytest.approx(repeated.objective, rel=2e-6)
    alone = tree_of(TABLE, LABELS, formulation, weights=LABELS.astype(float), gap=1e-6)
    assert alone.objective == pytest.approx(0, abs=1e-9)


# ---------------------------------------------------------------------------------------------- one class only


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_one_class_gives_a_constant_tree_and_a_warning(formulation: str) -> None:
    with pytest.warns(UserWarning, match="one class only \\('only'\\)"):
        result = octsvm.fit(formulation, TABLE, ["only"] * 8)
    assert result.status == "optimal"
    assert result.objective == result.bound == 0
    assert result.tree.predict(TABLE * 100 - 7).tolist() == ["only"] * 8
    assert not result.tree.splits.any()
    assert "only" in str(result.tree)
    assert octsvm.Tree.from_json(result.tree.to_json()).predict(TABLE).tolist() == ["only"] * 8
    assert result.summary()
    assert any("one class" in note for note in result.notes)
    with pytest.warns(UserWarning, match="one class"):
        single = octsvm.fit(formulation, [[3.0, 4.0]], [True])
    assert single.tree.predict([[0.0, 0.0]]).tolist() == [True]


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ({"solver": "hihgs"}, octsvm.UnknownSolver),
        ({"time_limit": -1}, octsvm.InvalidParameter),
        ({"gap": 2}, octsvm.InvalidParameter),
        ({"work_limit": 0}, octsvm.InvalidParameter),
        ({"threads": 0}, octsvm.InvalidParameter),
        ({"seed": "x"}, octsvm.InvalidParameter),
        ({"n_min": 9}, octsvm.InvalidParameter),
        ({"depht": 2}, octsvm.InvalidParameter),
    ],
)
@pytest.mark.parametrize("y", [["a"] * 8, list("abababab")], ids=["one class", "two classes"])
def test_wrong_options_are_refused_whatever_the_labels(y: list[str], option: Any, error: type) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error):
            octsvm.fit("oct", TABLE, y, **option)


# ----------------------------------------------------------------------------------------------------- scaling


@pytest.mark.parametrize("formulation", ["oct_h", "re_svm", "octsvm"])
def test_unscaled_features_must_lie_in_the_unit_interval(formulation: str) -> None:
    inside = (TABLE - TABLE.min(axis=0)) / np.ptp(TABLE, axis=0)
    result = tree_of(inside, LABELS, formulation, scale=False)
    assert result.tree.scaling.low.tolist() == [0, 0, 0]
    assert result.tree.scaling.span.tolist() == [1, 1, 1]
    assert result.objective == pytest.approx(tree_of(TABLE, LABELS, formulation).objective, rel=2e-4)
    for column, value in ((1, 1.0000001), (2, -1e-9)):
        outside = pd.DataFrame(inside, columns=["a", "b", "c"])
        outside.iloc[0, column] = value
        with pytest.raises(octsvm.InvalidData, match=f"scale=False.*'{'abc'[column]}'.*scale=True"):
            tree_of(outside, LABELS, formulation, scale=False)
    assert tree_of(TABLE, LABELS, "oct", scale=False).objective == tree_of(TABLE).objective


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_scaling_is_learned_on_the_training_rows_and_kept(formulation: str) -> None:
    tree = tree_of(TABLE, LABELS, formulation).tree
    assert tree.scaling.low.tolist() == TABLE.min(axis=0).tolist()
    assert tree.scaling.span.tolist() == np.ptp(TABLE, axis=0).tolist()
    far = np.vstack([TABLE, TABLE * 1e6, -1e6 * TABLE, np.full((1, 3), 1e12)])
    together = tree.predict(far)
    # Rows far outside the range change nothing for the others.
    np.testing.assert_array_equal(together[:8], tree.predict(TABLE))
    np.testing.assert_array_equal(together, [tree.predict(row[None])[0] for row in far])


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_frames_columns_are_found_by_name(formulation: str) -> None:
    X = pd.DataFrame(TABLE, columns=["a", "b", "c"])
    tree = tree_of(X, LABELS, formulation).tree
    expected = tree.predict(X).tolist()
    assert tree.predict(X[["c", "a", "b"]]).tolist() == expected
    assert tree.predict(X.assign(extra="text")[["extra", "b", "a", "c"]]).tolist() == expected
    assert tree.predict(TABLE).tolist() == expected  # without names: by position
    with pytest.raises(octsvm.InvalidData, match="'b'"):
        tree.predict(X.rename(columns={"b": "beta"}))
    unnamed = tree_of(TABLE, LABELS, formulation).tree
    assert unnamed.predict(X).tolist() == unnamed.predict(TABLE).tolist()


MOVES: dict[str, Any] = {
    "shift": lambda X: X - 5,
    "scale": lambda X: X * 1000,
    "1e5": lambda X: X * 1e5,
    "1e-3": lambda X: X * 1e-3,
    "one unit a column": lambda X: X * np.array([1e5, 1.0, 1e-3]) - np.array([5e4, 5.0, 0.0]),
    "tiny range far from 0": lambda X: X * 1e-3 + 1e5,
    "constant column": lambda X: np.column_stack([X, np.full(len(X), -7.0)]),
    "constant column first": lambda X: np.column_stack([np.zeros(len(X)), X]),
    "column twice": lambda X: np.column_stack([X, X[:, 0]]),
}


@pytest.mark.parametrize("move", [k for k in MOVES if k != "column twice"])
@pytest.mark.parametrize(
    ("formulation", "params"),
    [
        ("oct", {"depth": 1, "alpha": 0.1}),
        ("oct", {"depth": 2, "alpha": 0.1}),
        ("oct_h", {"depth": 1, "alpha": 0.1}),
        ("re_svm", {"c1": 2.0, "c2": 3.0}),
        ("re_svm", {"c1": 2.0, "c2": 3.0, "norm": "l1"}),
        ("octsvm", {"depth": 0, "c1": 5.0, "c2": 4.0, "c3": 0.1}),
    ],
)
@pytest.mark.quick_cases("oct-*")
@pytest.mark.every_value
def test_units_and_constant_columns_do_not_matter(move: str, formulation: str, params: Any) -> None:
    X = MOVES[move](TABLE)
    still = octsvm.fit(formulation, TABLE, LABELS, gap=1e-6, **params)
    moved = octsvm.fit(formulation, X, LABELS, gap=1e-6, **params)
    assert still.status == moved.status == "optimal"
    assert moved.objective == pytest.approx(still.objective, rel=2e-6)
    again = octsvm.evaluate(formulation, moved.tree, X, LABELS, **params)
    assert again.objective == pytest.approx(moved.objective, rel=1e-9)


def test_a_repeated_column_changes_no_axis_tree() -> None:
    X = MOVES["column twice"](TABLE)
    assert tree_of(X).objective == tree_of(TABLE).objective


# ------------------------------------------------------------------------------------------------- flip_labels


@pytest.mark.parametrize("share", [0, 0.0, 0.1, 0.25, 1 / 3, 0.5, 1, 1.0, np.float64(0.2), np.float32(0.25)])
@pytest.mark.parametrize("kind", [k for k in LABEL_KINDS if k != "column vector"])
def test_exactly_the_share_asked_for_is_flipped(share: float, kind: str) -> None:
    y = LABEL_KINDS[kind]
    before = copy.deepcopy(y)
    flipped = octsvm.flip_labels(y, share, seed=3)
    given = np.asarray(y).ravel()
    assert flipped.shape == (8,)
    assert (flipped != given).sum() == round(float(share) * 8)
    assert set(flipped.tolist()) <= set(given.tolist())
    assert np.asarray(before).tolist() == np.asarray(y).tolist()


def test_a_column_of_labels_can_be_flipped() -> None:
    flipped = octsvm.flip_labels(LABELS.reshape(-1, 1), 0.5, seed=1)
    assert flipped.tolist() == octsvm.flip_labels(LABELS, 0.5, seed=1).tolist()


def test_flips_follow_the_seed_and_nothing_else() -> None:
    y = np.tile(["a", "b"], 50)
    np.random.seed(1)
    first = octsvm.flip_labels(y, 0.3, seed=7)
    np.random.seed(2)
    np.testing.assert_array_equal(first, octsvm.flip_labels(y, 0.3, seed=7))
    assert (first != octsvm.flip_labels(y, 0.3, seed=8)).any()
    np.testing.assert_array_equal(octsvm.flip_labels(y, 0.3), octsvm.flip_labels(y, 0.3, seed=0))


def test_with_several_classes_every_other_one_is_as_likely() -> None:
    y = np.zeros(3000, dtype=int)
    y[:3] = [1, 2, 3]
    flipped = octsvm.flip_labels(y, 1.0, seed=0)
    assert (flipped != y).all()
    counts = np.bincount(flipped[3:], minlength=4)
    assert counts[0] == 0
    assert counts[1:].min() > 900  # 999 each is expected, with a standard deviation of 26


@pytest.mark.parametrize("share", [-0.1, 1.1, np.nan, np.inf, "0.1", None, True, [0.1], 1j])
def test_a_share_that_is_none_is_refused(share: Any) -> None:
    with pytest.raises(octsvm.InvalidParameter, match=r"share=.*between 0 and 1"):
        octsvm.flip_labels([0, 1], share)


@pytest.mark.parametrize("seed", [-1, "x", 1.5, [object()]])
def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    with pytest.raises(octsvm.InvalidParameter, match="seed"):
        octsvm.flip_labels([0, 1], 0.5, seed=seed)


def test_labels_that_cannot_be_flipped_are_refused() -> None:
    with pytest.raises(octsvm.InvalidData, match="one class"):
        octsvm.flip_labels(["a", "a"], 0.5)
    assert octsvm.flip_labels(["a", "a"], 0.0).tolist() == ["a", "a"]
    with pytest.raises(octsvm.InvalidData, match="row 1"):
        octsvm.flip_labels(["a", None], 0.5)
    with pytest.raises(octsvm.InvalidData, match="None"):
        octsvm.flip_labels(None, 0.5)


# -------------------------------------------------------------------------------------------------- parameters

NOT_NUMBERS = [None, "1", [1], True, float("nan"), float("inf")]
DEPTHS = [-1, 11, 1.5, 2.0, "2", None, True, [1]]
COSTS = [-1e-9, *NOT_NUMBERS]
LEAF_SIZES = [0, -1, 0.0, 1.0, 5.0, -0.1, 1.5, True, "1", None, float("nan"), [1]]
CHOICES = ["nonsense", "", 1, None, True]
VARIANTS = ["nonsense", "", 1, True]
BIG_MS = [0, -1.0, "1", [1], float("nan"), float("inf"), True]

BAD_PARAMETERS: dict[str, dict[str, list[Any]]] = {
    "oct": {
        "depth": DEPTHS,
        "alpha": COSTS,
        "n_min": LEAF_SIZES,
        "complexity": CHOICES,
        "error_scale": CHOICES,
        "variant": [*VARIANTS, "paper", "compact"],
    },
    "oct_h": {
        "depth": DEPTHS,
        "alpha": COSTS,
        "n_min": LEAF_SIZES,
        "complexity": CHOICES,
        "error_scale": CHOICES,
        "mu": [0, 0.0, -0.1, 1, 1.5, *NOT_NUMBERS],
        "variant": [*VARIANTS, "rank", "paper"],
    },
    "re_svm": {
        "c1": COSTS,
        "c2": COSTS,
        "norm": [*CHOICES, "L2", "l3"],
        "variant": [*VARIANTS, "rank", "bd"],
        "big_m": BIG_MS,
        "kernel": ["sigmoid", "precomputed", "", 1, True, [1]],
        "gamma": [0, -1.0, "scaled", "", *NOT_NUMBERS],
        "degree": [0, -1, 1.5, *NOT_NUMBERS],
        "coef0": NOT_NUMBERS,
    },
    "octsvm": {
        "depth": DEPTHS,
        "c1": COSTS,
        "c2": COSTS,
        "c3": COSTS,
        "mu_svm": [0, 0.0, -0.1, 1.5, *NOT_NUMBERS],
        "norm": [*CHOICES, "L2", "l3"],
        "variant": [*VARIANTS, "rank", "bd"],
        "big_m": BIG_MS,
        "kernel": ["sigmoid", "precomputed", "", 1, True, [1]],
        "gamma": [0, -1.0, "scaled", "", *NOT_NUMBERS],
        "degree": [0, -1, 1.5, *NOT_NUMBERS],
        "coef0": NOT_NUMBERS,
    },
}


def parameters_of(formulation: str) -> set[str]:
    from octsvm.formulations.registry import formulation as find

    return set(find(formulation).Params.model_fields)


def test_the_table_of_bad_parameters_names_every_parameter() -> None:
    for formulation in FORMULATIONS:
        assert set(BAD_PARAMETERS[formulation]) == parameters_of(formulation)


@pytest.mark.parametrize(
    ("formulation", "name", "value"),
    [(f, k, v) for f, names in BAD_PARAMETERS.items() for k, vs in names.items() for v in vs],
)
def test_a_parameter_out_of_range_or_of_the_wrong_type_is_refused(
    formulation: str, name: str, value: Any
) -> None:
    for call in (octsvm.fit, octsvm.build):
        with pytest.raises(octsvm.InvalidParameter) as caught:
            call(formulation, TABLE, LABELS, **{name: value})
        message = str(caught.value)
        assert message.startswith(f"{name}={value!r}")
        assert repr(formulation) in message


@pytest.mark.parametrize(
    ("formulation", "given", "meant"),
    [
        ("oct", "depht", "depth"),
        ("oct", "Depth", "depth"),
        ("oct", "nmin", "n_min"),
        ("oct", "alfa", "alpha"),
        ("oct", "errorscale", "error_scale"),
        ("oct_h", "complexty", "complexity"),
        ("oct_h", "mu_", "mu"),
        ("re_svm", "C1", "c1"),
        ("re_svm", "c_2", "c2"),
        ("re_svm", "norms", "norm"),
        ("octsvm", "bigm", "big_m"),
        ("octsvm", "mu_svn", "mu_svm"),
        ("octsvm", "varaint", "variant"),
    ],
)
def test_a_misspelt_parameter_is_refused_with_the_nearest(formulation: str, given: str, meant: str) -> None:
    with pytest.raises(octsvm.InvalidParameter) as caught:
        octsvm.fit(formulation, TABLE, LABELS, **{given: 1})
    assert f"Did you mean {meant!r}?" in str(caught.value)
    for name in parameters_of(formulation):
        assert name in str(caught.value)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_parameter_of_another_formulation_is_refused(formulation: str) -> None:
    everything = set().union(*(parameters_of(f) for f in FORMULATIONS))
    for name in sorted(everything - parameters_of(formulation)):
        with pytest.raises(octsvm.InvalidParameter, match=f"'{name}' is not a parameter of '{formulation}'"):
            octsvm.build(formulation, TABLE, LABELS, **{name: 1})


@pytest.mark.parametrize(
    ("given", "meant"), [("OCT", "oct"), ("oct-h", "oct_h"), ("resvm", "re_svm"), ("octsmv", "octsvm")]
)
def test_an_unknown_formulation_is_refused_with_the_nearest(given: str, meant: str) -> None:
    for call in (octsvm.fit, octsvm.build):
        with pytest.raises(octsvm.UnknownFormulation) as caught:
            call(given, TABLE, LABELS)
        assert f"Did you mean {meant!r}?" in str(caught.value)
        for name in FORMULATIONS:
            assert name in str(caught.value)
    with pytest.raises(octsvm.UnknownFormulation):
        octsvm.fit(None, TABLE, LABELS)  # type: ignore[arg-type]


def test_numpy_scalars_are_taken_as_parameters() -> None:
    plain = octsvm.fit("oct", TABLE, LABELS, depth=1, alpha=0.5, n_min=2)
    numpy = octsvm.fit(
        "oct", TABLE, LABELS, depth=np.int64(1), alpha=np.float64(0.5), n_min=np.int32(2), time_limit=np.int64(60),
        gap=np.float64(1e-4), threads=np.int64(1), seed=np.int64(0), work_limit=np.int64(1000),
    )  # fmt: skip
    assert numpy.objective == plain.objective
    assert numpy.params == plain.params
    assert all(type(v) in (int, float, str, type(None)) for v in numpy.params.values())
    svm = octsvm.fit("re_svm", TABLE, LABELS, c1=np.float32(0.5), c2=np.int8(2), norm=np.str_("l1"))
    assert svm.params == octsvm.fit("re_svm", TABLE, LABELS, c1=0.5, c2=2.0, norm="l1").params
    share = octsvm.fit("oct", TABLE, LABELS, depth=1, n_min=np.float64(0.25))
    assert share.objective == octsvm.fit("oct", TABLE, LABELS, depth=1, n_min=2).objective


def leaf_sizes(result: octsvm.Result, X: Any) -> list[int]:
    return np.unique(result.tree.nodes(X)[:, -1], return_counts=True)[1].tolist()


@pytest.mark.parametrize("formulation", ["oct", "oct_h"])
@pytest.mark.slow
def test_n_min_is_a_count_or_a_share_that_is_rounded_up(formulation: str) -> None:
    X = np.arange(20.0)[:, None]
    y = [1] + [0] * 19  # one row alone on the left is worth a leaf of its own, if it may have one

    def errors(n_min: Any) -> float:
        result = octsvm.fit(formulation, X, y, depth=1, alpha=0, n_min=n_min)
        assert min(leaf_sizes(result, X)) >= 1
        return result.objective

    assert errors(1) == errors(0.05) == errors(0.01) == 0  # 0.05 * 20 is 1, however it is rounded
    assert errors(2) == errors(0.051) == errors(0.1) == 1

    y = [1] * 3 + [0] * 17
    assert errors(3) == errors(0.15) == 0  # 0.15 * 20 is 3
    assert errors(4) == errors(0.1500001) == errors(0.2) == 1
    for n_min in (7, 0.35, 0.3 + 0.05):
        result = octsvm.fit(formulation, X, [0, 1] * 10, depth=1, alpha=0, n_min=n_min)
        assert min(leaf_sizes(result, X)) >= 7


@pytest.mark.parametrize("formulation", ["oct", "oct_h"])
def test_n_min_beyond_the_rows_is_refused_and_beyond_rows_per_leaf_is_fine(formulation: str) -> None:
    with pytest.raises(octsvm.InvalidParameter, match=r"n_min=9 .* 9 rows .* 8 rows"):
        octsvm.fit(formulation, TABLE, LABELS, n_min=9)
    all_in_one = octsvm.fit(formulation, TABLE, LABELS, n_min=8, depth=2)
    assert leaf_sizes(all_in_one, TABLE) == [8]
    assert all_in_one.objective == 4
    three = octsvm.fit(
        formulation, TABLE, LABELS, n_min=3, depth=2, alpha=0
    )  # four leaves of 3 exceed 8 rows
    assert three.status == "optimal"
    assert len(leaf_sizes(three, TABLE)) <= 2
    assert min(leaf_sizes(three, TABLE)) >= 3
    almost = octsvm.fit(formulation, TABLE, LABELS, n_min=0.999, depth=1)
    assert leaf_sizes(almost, TABLE) == [8]


def test_a_big_m_of_ones_own_is_checked_against_the_proved_one() -> None:
    params = {"depth": 0, "c1": 1.0, "c2": 1.0, "c3": 0.1}
    proved = octsvm.build("octsvm", TABLE, LABELS, **params).info.big_m["scores"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        octsvm.build("octsvm", TABLE, LABELS, big_m=2 * proved, **params)
    with pytest.warns(UserWarning, match="below the proved bound"):
        octsvm.build("octsvm", TABLE, LABELS, big_m=proved / 2, **params)
    with pytest.warns(UserWarning, match="far above the proved bound"):
        octsvm.build("octsvm", TABLE, LABELS, big_m=1e6 * proved, **params)
    with pytest.warns(UserWarning, match="below the proved bound"):
        octsvm.build("re_svm", TABLE, LABELS, big_m=0.5)


# -- names of columns that were made up ---------------------------------------------------------------------------

SWAPPED = pd.DataFrame({"x2": [0.0, 1, 2, 3, 4, 5], "x1": [5.0, 1, 4, 0, 3, 2]})
HALVES = list("aaabbb")


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_tree_without_names_takes_the_columns_of_a_frame_by_position(formulation: str) -> None:
    tree = octsvm.fit(formulation, SWAPPED.to_numpy(), HALVES).tree
    expected = tree.predict(SWAPPED.to_numpy()).tolist()
    again = octsvm.Tree.from_json(tree.to_json())
    frames = [SWAPPED, SWAPPED.set_axis(["p", "q"], axis=1), SWAPPED.set_axis(["x1", "x1"], axis=1)]
    for known in (tree, again, pickle.loads(pickle.dumps(tree))):
        assert [known.predict(frame).tolist() for frame in frames] == [expected] * 3
        params = {} if formulation == "re_svm" else {"depth": tree.depth}
        values = {
            octsvm.evaluate(formulation, known, X, HALVES, **params).objective
            for X in (SWAPPED, SWAPPED.to_numpy())
        }
        assert len(values) == 1
    with pytest.raises(octsvm.InvalidData, match=r"3 columns.*2 without names"):
        again.predict(SWAPPED.assign(more=1.0))


def test_a_tree_with_names_such_as_made_up_ones_takes_columns_by_name() -> None:
    tree = octsvm.fit("oct", SWAPPED, HALVES, depth=1, alpha=0.1).tree
    named = octsvm.fit("oct", SWAPPED[["x1", "x2"]], HALVES, depth=1, alpha=0.1).tree
    for known in (tree, named, octsvm.Tree.from_json(named.to_json())):
        assert known.predict(SWAPPED).tolist() == known.predict(SWAPPED[["x1", "x2"]]).tolist() == HALVES
        with pytest.raises(octsvm.InvalidData, match="lacks the column 'x"):
            known.predict(SWAPPED.set_axis(["p", "q"], axis=1))


def test_a_saved_tree_that_does_not_say_whether_names_were_given_is_never_guessed() -> None:
    content = octsvm.fit("oct", SWAPPED.to_numpy(), HALVES, depth=1, alpha=0.1).tree.to_dict()
    assert content.pop("named_features") is False
    old = octsvm.Tree.from_dict(content)
    assert old.predict(SWAPPED.to_numpy()).tolist() == HALVES
    assert old.predict(SWAPPED.set_axis(["p", "q"], axis=1)).tolist() == HALVES
    assert old.predict(SWAPPED.set_axis(["x1", "x2"], axis=1)).tolist() == HALVES
    with pytest.raises(octsvm.InvalidData, match="names or positions"):
        old.predict(SWAPPED)
    assert "named_features" not in old.to_dict()


def test_the_table_of_a_built_model_cannot_be_changed() -> None:
    X, y, weights = np.random.default_rng(0).random((8, 2)), np.arange(8) % 2, np.ones(8)
    for scale in (True, False):
        data = octsvm.build("re_svm", X, y, scale=scale, weights=weights).info.data
        for array in (data.X_original, data.X, data.y, data.weights):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
    assert X.flags.writeable
    assert y.flags.writeable
    assert weights.flags.writeable
