"""From columns to features: scikit-learn's transformers say what comes out, and saved files give it back."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

import octsvm
from octsvm import InvalidData, InvalidParameter, Preparation, Tree

COLOURS = ["red", "green", None, "blue", "red", "green", "red"]
TABLE = pd.DataFrame(
    {
        "colour": COLOURS,
        "size": [1.0, np.nan, 3.0, 3.0, np.nan, 1.0, 10.0],
        "smoker": ["no", "yes", "no", "yes", None, "yes", "no"],
        "day": ["2026-01-01", "1969-12-31", "2026-01-03", None, "2026-01-02", "2026-01-01", "2026-01-01"],
    }
)
RULE: dict[str, Any] = {"encode": ["colour", "smoker"], "dates": ["day"], "impute": "most_frequent"}


@pytest.mark.parametrize("rule", ["median", "mean", "most_frequent"])
def test_numbers_are_filled_as_by_scikit_learn(rule: str) -> None:
    numbers = pd.DataFrame(np.random.default_rng(3).integers(0, 4, (40, 3)), columns=list("abc"), dtype=float)
    numbers = numbers.mask(np.random.default_rng(4).random((40, 3)) < 0.3)
    train, test = numbers[:25], numbers[25:]
    learned = Preparation.learn(train, impute=rule)
    expected = SimpleImputer(strategy=rule).fit(train).transform(test)
    assert np.array_equal(learned.matrix(test), expected)


def test_categories_are_encoded_as_by_scikit_learn() -> None:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {"a": rng.choice(list("xyz"), 30), "b": rng.choice(["no", "yes"], 30), "c": ["k"] * 30}
    )
    learned = Preparation.learn(table, encode=["a", "b", "c"])
    encoder = OneHotEncoder(drop="if_binary", handle_unknown="ignore", sparse_output=False).fit(table)
    assert np.array_equal(learned.matrix(table), encoder.transform(table))
    names = [n.replace("_", "=", 1) for n in encoder.get_feature_names_out()]
    assert learned.feature_names == tuple(names)
    strange = table.assign(a="w")
    with pytest.warns(UserWarning, match=r"'a' holds 'w'.*30 rows.*a=x, a=y, a=z"):
        found = learned.matrix(strange)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(found, encoder.transform(strange))


def test_most_frequent_category_is_that_of_scikit_learn() -> None:
    table = pd.DataFrame({"a": ["b", "a", np.nan, "a", "b", "c"]}, dtype=object)
    learned = Preparation.learn(table, encode=["a"], impute="median")
    assert learned.columns[0].fill == SimpleImputer(strategy="most_frequent").fit(table).statistics_[0] == "a"
    assert learned.columns[0].rule == "most_frequent"


def test_every_kind_of_column_comes_out_by_hand() -> None:
    learned = Preparation.learn(TABLE, **RULE)
    assert learned.feature_names == ("colour=blue", "colour=green", "colour=red", "size", "smoker=yes", "day")
    first, third = learned.matrix(TABLE)[[0, 2]]
    days = (pd.Timestamp("2026-01-01") - pd.Timestamp("1970-01-01")).days
    assert first.tolist() == [0, 0, 1, 1, 0, days]
    assert third.tolist() == [0, 0, 1, 3, 0, days + 2]  # the missing colour is the most frequent one
    assert learned.matrix(TABLE)[1, -1] == -1
    turned = TABLE[["day", "smoker", "size", "colour"]].assign(more=1)
    assert np.array_equal(learned.matrix(turned), learned.matrix(TABLE))
    assert np.array_equal(learned.matrix(pl.from_pandas(TABLE)), learned.matrix(TABLE))


def test_a_missing_category_may_be_one_of_its_own() -> None:
    learned = Preparation.learn(TABLE[["colour"]], encode=["colour"], impute={"colour": "category"})
    assert learned.columns[0].categories == ("blue", "green", "missing", "red")
    assert learned.matrix(TABLE)[2].tolist() == [0, 0, 1, 0]


def test_codes_are_what_they_are_whatever_pandas_makes_of_them() -> None:
    learned = Preparation.learn(pd.DataFrame({"code": ["1", "2", "3"]}), encode=["code"])
    for column in ([1, 2, 3], [1.0, 2.0, 3.0], ["1.0", " 2", "3"], pd.array([1, 2, 3], dtype="Int64")):
        assert np.array_equal(learned.matrix(pd.DataFrame({"code": column})), np.eye(3))


def test_texts_that_stand_for_missing_values() -> None:
    table = pd.DataFrame({"a": ["1", "?", "4"], "b": ["x", "y", "?"]})
    learned = Preparation.learn(table, encode=["b"], impute="mean", missing=["?"])
    assert learned.matrix(table).tolist() == [[1, 0], [2.5, 1], [4, 0]]
    with pytest.raises(InvalidData, match="row 1"):
        Preparation.learn(table, encode=["b"], impute="mean")


@pytest.mark.parametrize(
    ("column", "form", "found"),
    [
        (["31.12.2025", "1.1.2026"], "%d.%m.%Y", [20453, 20454]),
        (["2026-01-01T12:00", "2026-01-01 18:00+06:00"], "iso", [20454.5, 20454.5]),
        (["01.01.2026 06:00", "02.01.2026 00:00"], "%d.%m.%Y %H:%M", [20454.25, 20455]),
        (pd.to_datetime(["2026-01-01", "2026-01-02"]), "iso", [20454, 20455]),
    ],
)
def test_dates(column: Any, form: str, found: list[float]) -> None:
    table = pd.DataFrame({"day": column})
    learned = Preparation.learn(table, dates=["day"])
    assert learned.columns[0].form == form
    assert learned.matrix(table).ravel().tolist() == found


def test_dates_in_another_form() -> None:
    table = pd.DataFrame({"day": ["01/02/2026", "03/02/2026"]})
    with pytest.raises(InvalidData, match="Give the form"):
        Preparation.learn(table, dates=["day"])
    assert np.diff(Preparation.learn(table, dates={"day": "%d/%m/%Y"}).matrix(table).ravel()) == [2]
    with pytest.raises(InvalidData, match="'01/22/2026' in row 0"):
        Preparation.learn(table, dates={"day": "%d/%m/%Y"}).matrix(pd.DataFrame({"day": ["01/22/2026"]}))


@pytest.mark.parametrize(
    ("trained", "form", "later", "read"),
    [
        ("31.12.2025", "", "2026-01-01", True),
        ("2025-12-31", "", "01.01.2026", True),
        ("2025-12-31", "", "01.01.2026 00:00", True),
        ("12/31/2025", "%m/%d/%Y", "2026-01-01", True),
        ("12.31.2025", "%m.%d.%Y", "13.01.2026", False),  # a slip, or another order
        ("31/12/2025", "%d/%m/%Y", "01/13/2026", False),
    ],
)
def test_dates_written_otherwise_later_are_read_where_that_leaves_no_doubt(
    trained: str, form: str, later: str, read: bool
) -> None:
    learned = Preparation.learn(pd.DataFrame({"day": [trained]}), dates={"day": form})
    if read:
        assert learned.matrix(pd.DataFrame({"day": [later]})).tolist() == [[20454]]
    else:
        with pytest.raises(InvalidData, match="or all as 2026-12-31"):
            learned.matrix(pd.DataFrame({"day": [later]}))
    with pytest.raises(InvalidData, match="row 1"):  # both forms in one column
        learned.matrix(pd.DataFrame({"day": [trained, later]}))


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(InvalidData, match=r"'size' has a missing value in row 1.*impute="):
        Preparation.learn(TABLE[["size"]]).matrix(TABLE)
    with pytest.raises(InvalidData, match="'colour' has a missing value in row 2"):
        Preparation.learn(TABLE[["colour"]], encode=["colour"]).matrix(TABLE)
    with pytest.raises(InvalidParameter, match="no median"):
        Preparation.learn(TABLE[["colour"]], encode=["colour"], impute={"colour": "median"})
    with pytest.raises(InvalidParameter, match="'size' holds numbers"):
        Preparation.learn(TABLE[["size"]], impute="category")
    with pytest.raises(InvalidParameter, match="unknown; known: median"):
        Preparation.learn(TABLE[["size"]], impute="medain")
    with pytest.raises(InvalidData, match="no column 'weight'"):
        Preparation.learn(TABLE, encode=["weight"])
    with pytest.raises(InvalidData, match="no value at all"):
        Preparation.learn(pd.DataFrame({"a": [None, None]}), impute="median")
    with pytest.raises(InvalidData, match="another value in every row"):
        Preparation.learn(pd.DataFrame({"a": list("abcdefghij")}), encode=["a"])
    with pytest.raises(InvalidData, match="would be called 'a=x'"):
        Preparation.learn(pd.DataFrame({"a": ["x", "y", "z"], "a=x": [1, 2, 3]}), encode=["a"])
    with pytest.raises(InvalidData, match="lacks the column 'smoker'"):
        Preparation.learn(TABLE, **RULE).matrix(TABLE[["colour", "size", "day"]])


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"encode": "colour"}, r"encode=\['colour'\]"),
        ({"dates": "day"}, r"dates=\['day'\]"),
        ({"missing": "NA"}, r"missing=\['NA'\]"),
        ({"missing": -999}, r"missing=\['-999'\]"),
        ({"missing": [-999]}, "-999, which is no text. Write '-999'"),
        ({"dates": {"day": "%d/%d/%Y"}}, "'%d/%d/%Y' is no form of the dates in column 'day'"),
        ({"dates": {"day": "%Q"}}, "'%Q' is no form"),
    ],
)
def test_what_is_asked_for_is_several_texts_and_forms_of_dates(how: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        Preparation.learn(TABLE, **how)


def test_numbers_stand_for_missing_values_too() -> None:
    table = pd.DataFrame({"a": [1.0, -999.0, 3.0], "b": [-999, 5, 5]})
    learned = Preparation.learn(table, missing=["-999"], impute="mean")
    assert learned.matrix(table).tolist() == [[1, 5], [2, 5], [3, 5]]


def test_infinite_numbers_and_dates_past_the_calendar_are_refused_by_their_row() -> None:
    with pytest.raises(InvalidData, match="'a' is infinite in row 1"):
        Preparation.learn(pd.DataFrame({"a": [1.0, np.inf, np.nan]}), impute="mean")
    days = pd.DataFrame({"day": ["2026-01-01", "2026-01-02", "9999-12-31T23:59:59-05:00"]})
    with pytest.raises(InvalidData, match="9999-12-31T23:59:59-05:00' in row 2"):
        Preparation.learn(days, dates=["day"])


def fitted() -> tuple[Tree, pd.DataFrame, np.ndarray]:
    table = pd.concat([TABLE] * 3, ignore_index=True)
    y = np.where(table["colour"] == "green", "left", "right")
    learned = Preparation.learn(table, **RULE)
    X = pd.DataFrame(learned.matrix(table), columns=list(learned.feature_names))
    tree = octsvm.fit("oct", X, y, depth=1, alpha=0.1).tree
    assert tree is not None
    return tree.prepared_by(learned), table, y


def test_a_tree_takes_tables_as_they_are_and_keeps_that_in_its_file() -> None:
    tree, table, y = fitted()
    again = Tree.from_json(json.dumps(json.loads(tree.to_json())))
    assert again.preparation == tree.preparation
    for one in (tree, again):
        assert np.array_equal(one.predict(table), y)
        assert np.array_equal(one.predict(one.preparation.matrix(table)), y)  # type: ignore[union-attr]
    assert octsvm.evaluate("oct", again, table, y, alpha=0.1).objective == pytest.approx(0.1)
    for text in (str(tree), octsvm.export_text(tree)):
        assert "colour is not 'green'" in text
    assert "label=\"is not 'green'\"" in octsvm.export_graphviz(tree)
    assert octsvm.export_dict(tree)["preparation"] == tree.preparation.to_dict()  # type: ignore[union-attr]


def test_the_column_that_a_table_lacks_is_named_and_no_feature() -> None:
    tree, table, _ = fitted()
    with pytest.raises(InvalidData, match="lacks the column 'size'"):
        tree.predict(table.drop(columns=["size"]))
    features = pd.DataFrame(tree.features_of(table), columns=list(tree.feature_names))
    with pytest.raises(InvalidData, match="lacks the column 'colour=blue'"):
        tree.predict(features.drop(columns=["colour=blue"]))


def test_a_tree_refuses_another_preparation() -> None:
    tree, table, _ = fitted()
    with pytest.raises(InvalidData, match="not the 6 of the tree"):
        tree.prepared_by(Preparation.learn(table[["size"]], impute="mean"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: p.update(version=2), "newer|version 2"),
        (lambda p: p.pop("version"), "no version"),
        (lambda p: p["columns"][0].update(kind="pickle"), "damaged: columns.0.kind"),
        (lambda p: p["columns"][0].update(categories=["red", "red"]), "damaged"),
        (lambda p: p["columns"][0].update(fill="mauve"), "damaged"),
        (lambda p: p["columns"][1].update(fill="three"), "damaged"),
        (lambda p: p["columns"].pop(), "not the 6 of the tree"),
        (lambda p: p.update(code="import os"), "damaged: code"),
    ],
)
def test_a_damaged_file_is_refused(change: Any, says: str) -> None:
    saved = fitted()[0].to_dict()
    change(saved["preparation"])
    with pytest.raises(InvalidData, match=says):
        Tree.from_dict(saved)


def test_words_for_dates_are_those_of_the_calendar() -> None:
    learned = Preparation.learn(TABLE, **RULE)
    assert learned.worded(5, 20454) == ("day before 2026-01-01", "day from 2026-01-01 on")
    assert learned.worded(5, 20454.5) == ("day before 2026-01-01 12:00:00", "day from 2026-01-01 12:00:00 on")
    assert learned.worded(4, 0.5) == ("smoker is not 'yes'", "smoker is 'yes'")
    assert learned.worded(3, 0.5) is None
