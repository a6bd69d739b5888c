"""Text that stands for numbers or dates: 1,234.5, 1.234,5, $ 12, 12 %, 3 kg, 2026-01-31. What it is, and how pandas reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Form(NamedTuple):
    """One way to write a number or a date.

    Attributes
    ----------
    what : str
        In words.
    pattern : Pattern
        What such a text matches.
    code : str
        Python that makes numbers of a column of such texts; ``{0}`` is the column.
    plain : str
        What to write in a file instead.
    """

    what: str
    pattern: re.Pattern[str]
    code: str
    plain: str


_NUMBER = r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?"
_GROUPED = r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"
_SIGN = r"[$€£¥₹]|USD|EUR|GBP|CHF|JPY|CNY|INR"
_AMOUNT = rf"({_GROUPED}|{_NUMBER})"
_DATE = r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
_TIME = r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?([+-]\d{2}:?\d{2}|Z)?"
_NUMBERS_ALONE = '{0}.astype(str).str.replace(r"[^0-9.eE+-]", "", regex=True).astype(float)'

# The first that all texts of a column match. With "1,234" alone, nobody knows whether it is 1234 or 1.234.
FORMS = (
    Form(
        "numbers with thousands separators",
        re.compile(rf"{_GROUPED}|{_NUMBER}"),
        '{0}.astype(str).str.replace(",", "").astype(float)',
        "Write them without (1234 for 1,234). Where the comma is the decimal sign, and no cell has a point besides: --decimal , "
        "with another --separator.",
    ),
    Form(
        "numbers with a decimal comma",
        re.compile(r"[+-]?\d*,\d+|[+-]?\d+,?"),
        '{0}.astype(str).str.replace(",", ".").astype(float)',
        "Say so: --decimal , with --separator ';' or whatever separates the columns.",
    ),
    Form(
        "numbers with thousands separators and a decimal comma",
        re.compile(r"[+-]?\d{1,3}(\.\d{3})*(,\d+)?"),
        '{0}.astype(str).str.replace(".", "").str.replace(",", ".").astype(float)',
        "Write them without the points (1234,5 for 1.234,5), and say --decimal ,",
    ),
    Form(
        "numbers with thousands separators",
        re.compile(rf"[+-]?\d{{1,3}}([ '_\u2019\u00a0\u202f\u2009]\d{{3}})+([.,]\d+)?|{_NUMBER}"),
        '{0}.astype(str).str.replace(r"[^0-9.,+-]", "", regex=True).str.replace(",", ".").astype(float)',
        "Write them without.",
    ),
    Form(
        "percentages",
        re.compile(rf"{_AMOUNT}\s*[%‰]|{_NUMBER}"),
        _NUMBERS_ALONE,
        "Write the number alone (12 for 12 %).",
    ),
    Form(
        "amounts of money",
        re.compile(rf"[+-]?\s*({_SIGN})\s*{_AMOUNT}|{_AMOUNT}\s*({_SIGN})|{_AMOUNT}"),
        _NUMBERS_ALONE,
        "Write the amount alone, without currency and thousands separators.",
    ),
    Form(
        "dates or times",
        re.compile(rf"({_DATE})([T ]{_TIME})?|{_TIME}"),
        'pd.to_datetime({0}, format="mixed", utc=True).map(pd.Timestamp.timestamp)',
        "Turn them into numbers, e.g. days since a fixed date.",
    ),
    Form(
        "numbers with a unit",
        re.compile(rf"{_AMOUNT}\s*(?P<unit>[A-Za-zµ°Ω²³/]{{1,8}})|{_NUMBER}"),
        '{0}.astype(str).str.extract(r"([0-9.,+-]+)")[0].str.replace(",", "").astype(float)',
        "Write the number alone, all of one unit.",
    ),
)


def form_of(texts: Iterable[str]) -> Form | None:
    """How all of ``texts`` are written; None where they are not of one form, or are plain numbers."""
    cells = list(dict.fromkeys(t.strip() for t in texts))
    number = re.compile(_NUMBER)
    if not cells or all(number.fullmatch(c) for c in cells):
        return None
    for form in FORMS:
        found = [form.pattern.fullmatch(c) for c in cells]
        if all(found) and len({m.groupdict().get("unit") for m in found if m} - {None}) <= 1:
            return form
    return None
