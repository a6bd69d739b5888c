"""What the command line says of a table's columns: which are features, and what makes numbers of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidData, InvalidParameter
from ..formulations.checks import listed
from .table_remarks import holds_categories, nearest

if TYPE_CHECKING:
    from .csv_tables import CsvTable

ALL = "all"
BALANCED = "balanced"

options = (
    click.option("--features", multiple=True, metavar="NAME", help="Column to use as a feature, once for each; all but the label by default."),
    click.option("--drop", multiple=True, metavar="NAME", help="Column to leave out, such as an identifier; once for each."),
    click.option(
        "--encode", multiple=True, metavar=f"NAME|{ALL}",
        help="Column of categories: a feature of 0 and 1 for each of them (one, where there are two). all: every column of text.",
    ),
    click.option(
        "--dates", multiple=True, metavar="NAME[=FORM]",
        help="Column of dates: days since 1970-01-01. FORM, such as %d/%m/%Y, where they are neither 2026-12-31 nor 31.12.2026.",
    ),
    click.option("--missing", multiple=True, metavar="TEXT", help='What stands for a missing value besides nothing, NA and the like, such as "?".'),
    click.option(
        "--impute", multiple=True, metavar="[NAME=]RULE",
        help="Fill missing values of all columns, or of one: median or mean of the training rows (categories: the most frequent), "
        "most_frequent, or category (a category of its own). Without it they are refused.",
    ),
    click.option("--skip-unlabelled", is_flag=True, help="Leave out rows without a label; else they are refused."),
    click.option(
        "--class-weight", multiple=True, metavar=f"{BALANCED}|LABEL=WEIGHT",
        help="Weight of an error on a row of this label, 1 where nothing is said. balanced: rows / (classes * rows of the label).",
    ),
)  # fmt: skip


def named(name: str, header: Sequence[str], given: Sequence[str], what: str) -> list[str]:
    """The columns that are ``given`` one by one, or several with commas between them; ``what`` says what they are for."""
    out: list[str] = []
    for text in given:
        parts = [text] if text in header else [p.strip() for p in text.split(",")]
        if not all(p in header for p in parts):
            column = next(p for p in parts if p not in header)
            raise InvalidData(
                f"{name}, line 1: there is no column {column!r} to {what}.{nearest(column, header)} Its columns are: "
                f"{listed(header)}."
            )
        out += [p for p in parts if p not in out]
    return out


def _with_values(name: str, header: Sequence[str], given: Sequence[str], what: str) -> dict[str, str]:
    """Columns and what is said of each behind the last "="; "" where nothing is."""
    out: dict[str, str] = {}
    for text in given:
        whole = text in header or "=" not in text
        column, value = (text, "") if whole else text.rsplit("=", 1)
        for one in named(name, header, [column], what):
            before = out.get(one, "")
            if before and value and before != value:
                raise InvalidParameter(
                    f"{name}: the column {one!r} is named twice to {what}, as {before} and {value}. Leave one out."
                )
            out[one] = value or before
    return out


def wanted(data: CsvTable, options: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for, as :meth:`octsvm.Preparation.learn` takes it; empty where nothing was."""
    from ..formulations.preparation import RULES

    header = list(data.X.columns)
    text = [c for c in header if holds_categories(data.X[c])]
    dates = _with_values(data.name, header, options["dates"], "read as dates")
    encode: list[str] = []
    for given in options["encode"]:
        every = given == ALL and ALL not in header
        encode += (
            [c for c in text if c not in dates] if every else named(data.name, header, [given], "encode")
        )
    if options["encode"] and not encode:
        raise InvalidData(
            f"{data.name}: no column holds text, so there is nothing to encode. Leave --encode out."
        )
    rules = [r for r in dict.fromkeys(options["impute"]) if r in RULES]
    if len(rules) > 1:
        raise InvalidParameter(
            f"--impute {' and '.join(rules)}: give one rule for all columns, and others as NAME=RULE."
        )
    impute = {"": rules[0]} if rules else {}
    of_columns = [r for r in options["impute"] if r not in RULES]
    for column, rule in _with_values(data.name, header, of_columns, "fill").items():
        if rule not in RULES:
            raise InvalidParameter(f"--impute {column}={rule}: the rule should be one of {', '.join(RULES)}.")
        impute[column] = rule
    asked = {"encode": list(dict.fromkeys(encode)), "dates": dates, "impute": impute}
    return asked if any(asked.values()) else {}


def prepared(data: CsvTable, options: Mapping[str, Any], rows: Any = None) -> CsvTable:
    """The table with the features that its columns make, as learned on ``rows`` (all by default)."""
    import pandas as pd

    from ..formulations.preparation import Preparation

    asked = wanted(data, options)
    if not asked:
        return data
    shown = data.X if rows is None else data.X.iloc[rows]
    with data.located():
        learned = Preparation.learn(shown, **asked, missing=tuple(options["missing"]))
        matrix = learned.matrix(data.X)
    X = pd.DataFrame(matrix, columns=list(learned.feature_names), index=data.X.index)
    return replace(data, X=X, preparation=learned)


def row_weights(y: Any, given: Sequence[str]) -> Any:
    """Weight of each row of ``y (n,)`` by what is ``given`` of its class, None where nothing is."""
    if not given:
        return None
    import numpy as np

    from ..data import class_weights, read_labels

    classes, position = read_labels(y.tolist(), len(y))
    if BALANCED in given and len(given) > 1:
        raise InvalidParameter("--class-weight balanced says all weights: leave the others out.")
    asked: Any = BALANCED if BALANCED in given else dict.fromkeys(classes, 1.0)
    by_text = {str(label): label for label in classes}
    for text in () if asked == BALANCED else given:
        label, sign, weight = text.rpartition("=")
        if not sign:
            raise InvalidParameter(
                f"--class-weight {text!r} should be balanced, or LABEL=WEIGHT such as {next(iter(by_text))}=2."
            )
        if label not in by_text:
            raise InvalidParameter(
                f"--class-weight {text!r}: no row has the label {label!r}; there are {', '.join(map(repr, by_text))}."
            )
        try:
            asked[by_text[label]] = float(weight)
        except ValueError:
            raise InvalidParameter(f"--class-weight {text!r}: {weight!r} is no number.") from None
    return class_weights(asked, np.ones(len(y)), classes, position).tolist()
