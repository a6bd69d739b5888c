"""Text that stands for numbers: recognised for what it is, and the line that is advised reads it."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import octsvm
from octsvm.formulations.written_numbers import Writing, form_of

READ = [
    (["1,234", "5"], "thousands separators", [1234, 5]),
    (["1,234.5", "12"], "thousands separators", [1234.5, 12]),
    (["1 234,5", "5 000"], "thousands separators", [1234.5, 5000]),
    (["1'234.5", "2"], "thousands separators", [1234.5, 2]),
    (["1.234.567,5", "12"], "thousands separators and a decimal comma", [1234567.5, 12]),
    (["1,5", "-2"], "decimal comma", [1.5, -2]),
    (["0,123", "0,456"], "decimal comma", [0.123, 0.456]),
    (["12 %", "3.5%"], "percentages", [12, 3.5]),
    (["$1,234", "$ 2"], "amounts of money", [1234, 2]),
    (["12 €", "1.50 €"], "amounts of money", [12, 1.5]),
    (["USD 3", "4"], "amounts of money", [3, 4]),
    (["12 kg", "3kg"], "numbers with a unit", [12, 3]),
    (["1_234.5", "12"], "thousands separators", [1234.5, 12]),
    (["\u22121.5", "2"], "another minus sign", [-1.5, 2]),
    (["\u22121,5", "2"], "decimal comma", [-1.5, 2]),
    (["2 Jan 1970", "3 January 1970"], "dates or times", [86400, 172800]),
    (["02-JAN-1970", "03-JAN-1970"], "dates or times", [86400, 172800]),
    (["Jan 2, 1970", "Jan. 3, 1970"], "dates or times", [86400, 172800]),
    (["1970-01-02", "1970-01-03"], "dates or times", [86400, 172800]),
    (["1/2/1970", "1/3/1970"], "dates or times", [86400, 172800]),
    (["1970-01-01T00:00:10Z", "1970-01-01 00:01"], "dates or times", [10, 60]),
]


@pytest.mark.parametrize(("texts", "what", "numbers"), READ)
def test_the_advised_line_reads_what_is_written(texts: list[str], what: str, numbers: list[float]) -> None:
    form = form_of(texts)
    assert form is not None
    assert what in form.what
    X = pd.DataFrame({"n": [0.0, 1.0], "a": texts})
    with pytest.raises(octsvm.InvalidData) as caught:
        octsvm.fit("oct", X, ["p", "q"])
    assert form.what in str(caught.value)
    line = re.search(r"X\['a'\] = .*\)", str(caught.value))
    assert line is not None
    space = {"X": X, "pd": pd}
    exec(line[0], space)
    assert space["X"]["a"].tolist() == numbers
    octsvm.build("oct", space["X"], ["p", "q"], depth=1)


@pytest.mark.parametrize(
    "texts",
    [
        ["a", "b"],
        ["1", "2.5e3"],
        ["1", "?"],
        ["A1", "B2"],
        ["may", "june"],
        ["march 5", "may 6"],
        ["1a", "2b"],
        [],
        ["1,2,3", "4"],
    ],
)
def test_other_texts_are_of_no_form(texts: list[str]) -> None:
    assert form_of(texts) is None


@pytest.mark.parametrize("decimal", ".,")
@pytest.mark.parametrize("thousands", ["", ".", ",", " ", "'"])
@pytest.mark.parametrize("sign", ["", "€", "%", "kg"])
def test_numbers_are_read_back_however_they_are_written(decimal: str, thousands: str, sign: str) -> None:
    if decimal == thousands:
        return
    rng = np.random.default_rng(len(sign) + ord(decimal))
    numbers = [
        1234567.25,
        0.5,
        *(rng.normal(size=30) * 10.0 ** rng.integers(0, 7, size=30)).round(2).tolist(),
    ]
    swap = str.maketrans({",": thousands, ".": decimal})
    texts = [
        f"{x:,.2f}".translate(swap) + (f" {sign}" if k % 3 and sign else "") for k, x in enumerate(numbers)
    ]
    form = form_of(texts)
    if (decimal, thousands, sign) == (".", "", ""):
        assert form is None  # plain numbers
        return
    assert form is not None
    assert form.writing == Writing(decimal, thousands, (sign,) if sign else ())
    assert form.writing.numbers(texts) == numbers
    assert eval(form.code("column"), {"column": pd.Series(texts)}).tolist() == numbers


def test_a_column_of_identifiers_is_to_be_left_out() -> None:
    X = pd.DataFrame({"n": range(12), "id": [f"P{i}" for i in range(12)]})
    with pytest.raises(octsvm.InvalidData, match=r"X = X\.drop\(columns=\['id'\]\)"):
        octsvm.fit("oct", X, ["p", "q"] * 6)
