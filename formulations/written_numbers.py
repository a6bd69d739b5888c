"""Text that stands for numbers or dates: 1,234.5, 1.234,5, $ 12, 12 %, 3 kg, 2026-01-31. What it is, and what reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

_ALIKE = {" ": "[ \u00a0\u202f\u2009]", "'": "['\u2019]"}  # signs between thousands that are taken for one
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_DIGITS = re.compile(r"\d[\d.,_'\u2019 \u00a0\u202f\u2009]*([eE][+-]?\d+)?|\.\d+")
_MONEY = re.compile("[$€£¥₹]|USD|EUR|GBP|CHF|JPY|CNY|INR")
_UNIT = re.compile("[A-Za-zµ°Ω²³/]{1,8}")
_MINUS = "\u2212"  # of typesetters, for -
_MONTH = "(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = (
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|"
    rf"\d{{1,2}}[-. ]*{_MONTH}[-., ]*\d{{2,4}}|{_MONTH}\.? \d{{1,2}},? \d{{4}}"
)
_TIME = r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?([+-]\d{2}:?\d{2}|Z)?"
_WHEN = re.compile(rf"({_DATE})([T ]{_TIME})?|{_TIME}")


class Writing(NamedTuple):
    """How a file writes its numbers: the decimal sign, what separates thousands ("" for nothing), and signs beside them."""

    decimal: str = "."
    thousands: str = ""
    strip: tuple[str, ...] = ()

    def numbers(self, texts: Iterable[str]) -> list[float] | None:
        """What ``texts`` stand for; None where one of them is no number, or two of them carry different signs."""
        decimal, between = re.escape(self.decimal), _ALIKE.get(self.thousands, re.escape(self.thousands))
        whole = rf"\d{{1,3}}(?:{between}\d{{3}})+|\d+" if between else r"\d+"
        number = re.compile(rf"([+-]?)\s*((?:{whole})(?:{decimal}\d*)?|{decimal}\d+)((?:[eE][+-]?\d+)?)")
        signs, out = set(), []
        for text in texts:
            bare, sign = self._bare(text)
            found = number.fullmatch(bare)
            if found is None:
                return None
            signs |= {sign} - {""}
            digits = re.sub(between, "", found[2]) if between else found[2]
            out.append(float(found[1] + digits.replace(self.decimal, ".") + found[3]))
        return out if len(signs) <= 1 else None

    def _bare(self, text: str) -> tuple[str, str]:
        """``text`` without the sign beside it, and that sign."""
        text = text.strip().replace(_MINUS, "-")
        for sign in sorted(self.strip, key=len, reverse=True):
            before = re.match(rf"([+-]?)\s*{re.escape(sign)}", text)
            if before is not None:
                return before[1] + text[before.end() :].strip(), sign
            if text.endswith(sign):
                return text.removesuffix(sign).strip(), sign
        return text, ""

    def code(self, column: str) -> str:
        """Python that makes numbers of the expression ``column``, a column of a frame of pandas."""
        out = f"{column}.astype(str)"
        for sign in (*self.strip, *([self.thousands] if self.thousands else [])):
            out += (
                f'.str.replace("{_ALIKE[sign]}", "", regex=True)'
                if sign in _ALIKE
                else f'.str.replace("{sign}", "")'
            )
        return out + ('.str.replace(",", ".")' if self.decimal == "," else "") + ".astype(float)"

    def worded(self) -> str:
        """What such numbers are; "" where the sign beside them is none that is known."""
        if self.strip:
            (sign,) = self.strip
            known = {"%": "percentages", "‰": "percentages"}.get(sign, "")
            return known or (
                "amounts of money"
                if _MONEY.fullmatch(sign)
                else "numbers with a unit"
                if _UNIT.fullmatch(sign)
                else ""
            )
        signs = [
            *(["thousands separators"] if self.thousands else []),
            *(["a decimal comma"] if self.decimal == "," else []),
        ]
        return f"numbers with {' and '.join(signs)}"


class Form(NamedTuple):
    """What texts are, in words, and the ``writing`` that reads them, None for dates; ``other`` reads 1,234 as a fraction.

    ``minus`` says that they have the minus sign of typesetters, which a :class:`Writing` reads.
    """

    what: str
    writing: Writing | None
    other: Writing | None = None
    minus: bool = False

    def code(self, column: str) -> str:
        """Python that makes numbers of the expression ``column``, a column of a frame of pandas."""
        if self.writing is not None:
            return self.writing.code(f'{column}.str.replace("{_MINUS}", "-")' if self.minus else column)
        return f'pd.to_datetime({column}, format="mixed", utc=True).map(pd.Timestamp.timestamp)'


def is_number(value: Any) -> bool:
    """Whether a cell can be read as a number; 1_000 can in Python alone, and is text in tables."""
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):  # the last: digits beyond what a double holds
        return False
    return not (isinstance(value, str) and "_" in value)


def form_of(texts: Iterable[str]) -> Form | None:
    """How all of ``texts`` are written; None where they are not of one form, or are plain numbers."""
    written = list(dict.fromkeys(t.strip() for t in texts))
    cells = [cell.replace(_MINUS, "-") for cell in written]
    minus = cells != written
    if not cells:
        return None
    if all(map(_NUMBER.fullmatch, cells)):
        return Form("numbers with another minus sign", Writing(), minus=True) if minus else None
    if all(map(_WHEN.fullmatch, cells)):
        return Form("dates or times", None)
    parts = [_DIGITS.split(cell, maxsplit=1) for cell in cells]
    before = {part[0].strip("+- ") for part in parts} - {""}
    beside = before | {part[-1].strip() for part in parts} - {""}
    if len(beside) > 1 or (before and not all(map(_MONEY.fullmatch, before))):
        return None
    # The first that reads all. With "1,234" alone, nobody knows whether it is 1234 or 1.234.
    for decimal, thousands in (
        (".", ""),
        (".", ","),
        (",", ""),
        (",", "."),
        *((d, t) for t in (*_ALIKE, "_") for d in ".,"),
    ):
        if thousands and any(re.search(rf"(?<!\d)0{re.escape(thousands)}", cell) for cell in cells):
            continue  # 0,123 is a fraction
        writing = Writing(decimal, thousands, tuple(beside))
        if writing.numbers(cells) is not None:
            fraction = Writing(",", "", writing.strip) if thousands == "," else None
            other = fraction if fraction is not None and fraction.numbers(cells) is not None else None
            return Form(what, writing, other, minus) if (what := writing.worded()) else None
    return None
