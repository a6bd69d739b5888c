"""What looks odd in a table from a file: what to write instead, or to leave out, in the words of the command line."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..formulations.checks import listed, plural
from ..formulations.written_numbers import Form, Writing, form_of, is_number

if TYPE_CHECKING:
    import pandas as pd

IDENTIFIERS = re.compile(
    r"index|key|no\.?|nr\.?|#|row|uuid|guid|(.*[ _.-])?id|.*[a-z]I[dD]|row.?(no|number|id)|number|nummer"
)
LABELS = re.compile(r"class(es)?|label|target|y|species|diagnosis|outcome|category|kind|type", re.IGNORECASE)
# (12) for -12, <5, >= 3, ~7, 1/12, 50+: numbers to a reader, and nobody knows how they are meant; plain ones may stand among them.
NUMBER = r"\d+(?:[.,]\d+)?"
UNREAD = re.compile(rf"\(\s*{NUMBER}\s*\)|[<>≤≥~≈±]?\s*=?\s*[+-]?{NUMBER}\s*\+?|{NUMBER}\s*/\s*{NUMBER}")
FEW = 20  # at least so many rows say that a running number is one; at most so many texts are classes


class Refusal(NamedTuple):
    """What is wrong with a column, the row (from 0) that shows it, and what mends it: options, or the form of its numbers.

    ``as_label`` is said where no label was named.
    """

    message: str
    row: int | None = None
    options: tuple[str, ...] = ()
    form: Form | None = None
    as_label: str = ""


def together(found: Sequence[Refusal]) -> str:
    """The options that mend all that was ``found``; "" where there are none for one of them, or two contradict each other."""
    forms = [r.form for r in found if r.form is not None]
    comma = any(f.writing.decimal == "," for f in forms if f.writing is not None)
    writings = [f.other if comma and f.other is not None else f.writing for f in forms]
    if not all(r.options or r.form for r in found) or len({w.decimal for w in writings if w}) > 1:
        return ""
    options = [o for w in writings if w for o in _options(w)] + [o for r in found for o in r.options]
    once = list(dict.fromkeys(options))
    return "" if sum(o.startswith("--thousands") for o in once) > 1 else " ".join(once)


def _options(writing: Writing) -> list[str]:
    """What makes a file's numbers be read as they are written."""
    said = [
        ("--decimal", writing.decimal, "."),
        ("--thousands", writing.thousands, "" if writing.decimal == "." else "."),
    ]
    return [f"{flag} {shlex.quote(sign)}" for flag, sign, plain in said if sign and sign != plain] + [
        f"--strip {shlex.quote(sign)}" for sign in writing.strip
    ]


def _read_as(form: Form) -> str:
    assert form.writing is not None
    other = (
        ""
        if form.other is None
        else f" Where the comma is the decimal sign: {' '.join(_options(form.other))}"
    )
    return f"Read them with {' '.join(_options(form.writing))}{'.' if other else ''}{other}"


def on_header(header: Sequence[str]) -> list[str]:
    """Remarks on the columns' names."""
    unnamed = [c for c in header if c.startswith("Unnamed: ")]
    out = [
        f"line 1: a column without a name is used as the feature {c!r}. If it only numbers the rows, leave it out "
        f"(--drop {quoted(c)}): a tree would learn from it."
        for c in unnamed[:1]
    ]
    if any(_is_measurement(c) for c in header):
        out.append(
            "line 1: the first line is taken as the columns' names, and it looks like a row of values. "
            "Put a header line above it."
        )
    return out


def on_identifiers(frame: pd.DataFrame) -> list[str]:
    """Remarks on features that only say which row it is; a tree would learn from them."""
    out = []
    for name in frame.columns:
        column = frame[name]
        if (
            column.dtype.kind not in "iu"
            or len(column) < 2
            or not column.is_unique
            or name.startswith("Unnamed: ")
        ):
            continue
        steps = column.diff().iloc[1:]
        runs = len(column) >= FEW and bool((steps == 1).all()) and column.iloc[0] in (0, 1)
        if runs or IDENTIFIERS.fullmatch(name if name[-2:] in ("Id", "ID") else name.lower()):
            what = (
                "numbers the rows"
                if (steps == 1).all()
                else "has another number in every row, as identifiers have"
            )
            out.append(
                f"the column {name!r} {what}, and a tree learns from it. If it is no feature: --drop {quoted(name)}."
            )
    return out


def on_cells(column: pd.Series, name: str, *, needed: bool = False) -> Refusal | None:
    """What is wrong with a feature that holds text, or text among numbers; None where it holds numbers.

    ``needed`` says that a tree needs the column, so that leaving it out is no advice.
    """
    if column.dtype.kind in "biuf" or not len(column):
        return None
    values = column.tolist()
    leave_out = "" if needed else f", or leave it out: --drop {quoted(name)}"
    if column.dtype.kind in "mM":
        return _dates(name, "", needed, None, leave_out)
    held = [i for i, missing in enumerate(column.isna().tolist()) if not missing]
    odd = [i for i in held if not is_number(values[i])]
    if not odd:
        return None
    row, texts = odd[0], [str(values[i]) for i in held]
    shown, form = _shown(values[row]), form_of(texts)
    if form is not None and form.writing is None:
        return _dates(name, f", such as {shown}", needed, row, leave_out)
    if form is not None:
        return Refusal(f"column {name!r} holds {form.what}, such as {shown}. {_read_as(form)}", row, (), form)
    if len(odd) > len(values) / 2 and (unread := [t for t in texts if UNREAD.fullmatch(t.strip())]) == texts:
        return Refusal(
            f"column {name!r} holds numbers in a form that is not read, such as {_shown(unread[0])}. Write each as a number, such as "
            f"12.5 or -12{leave_out}.",
            row,
        )
    if len(odd) > len(values) / 2:
        return _text(name, texts, needed, leave_out, row)
    kinds = {str(values[i]).strip() for i in odd}
    mend = () if needed else (*(f"--missing {quoted(k)}" for k in sorted(kinds)), "--impute median")
    hint = "fill in a number." if not mend or len(kinds) > 3 else f"{' '.join(mend)}."
    return Refusal(
        f"column {name!r} holds {shown} among numbers ({plural(len(odd), 'such cell')}). Correct the cell or remove the row; "
        f"if it stands for a missing value{':' if hint.startswith('--') else ','} {hint}",
        row,
        mend if len(kinds) <= 3 else (),
    )


def on_missing(column: pd.Series, name: str, *, needed: bool = False) -> Refusal | None:
    """What to do about a column's missing values; None where it has none. ``needed`` as for :func:`on_cells`."""
    gaps = column.isna().to_numpy()
    if not gaps.any():
        return None
    cure = (
        "The tree keeps nothing to fill it with: fit one with --impute, or write a number."
        if needed
        else f"Fill it: --impute median (or mean, most_frequent), for this column alone --impute {quoted(name)}=median. Or leave the "
        f"column out: --drop {quoted(name)}."
    )
    count = int(gaps.sum())
    held = f"{count} missing values" if count > 1 else "a missing value"
    return Refusal(
        f"column {name!r} has {held}. {cure}", int(gaps.argmax()), () if needed else ("--impute median",)
    )


def on_labels(values: Sequence[Any], label: str) -> list[str]:
    """Remarks on labels, or categories, that differ only in spaces or in case."""
    alike: dict[str, list[str]] = {}
    for value in dict.fromkeys(v for v in values if isinstance(v, str)):
        alike.setdefault(" ".join(value.casefold().split()), []).append(value)
    return [
        f"the column {label!r} holds {listed(several)}, which differ in spaces or case only and are taken for different values. Write "
        "them alike if they are one."
        for several in alike.values()
        if len(several) > 1
    ]


def on_encoded(column: pd.Series, name: str, writing: Writing) -> list[str]:
    """Remarks on a column that is read as categories: numbers in it, or names that are nearly one."""
    texts = list(dict.fromkeys(v.strip() for v in column.tolist() if isinstance(v, str)))
    numbers = sum(writing.numbers([text]) is not None for text in texts)
    if len(texts) <= FEW or numbers <= len(texts) / 2:
        return on_labels(texts, name)
    return [
        f"the column {name!r} holds {numbers} different numbers, and --encode makes a feature of each of them. To use it as a number "
        "leave it out of --encode."
    ]


def holds_categories(column: pd.Series) -> bool:
    """Whether a feature holds text that stands neither for numbers, nor dates, nor missing values among numbers."""
    if column.dtype.kind in "biufmM":
        return False
    held = [v for v, gap in zip(column.tolist(), column.isna(), strict=True) if not gap]
    odd = sum(not is_number(v) for v in held)
    return odd > len(column) / 2 and form_of(map(str, held)) is None


def on_names(texts: Sequence[str], name: str, row: int | None = None) -> Refusal | None:
    """What to do about a column that holds another text in every row; None for others."""
    if len(texts) < 10 or len(set(texts)) < len(texts):
        return None
    option = f"--drop {quoted(name)}"
    return Refusal(
        f"column {name!r} holds another text in every row, such as {_shown(texts[0])}, as names and identifiers do. "
        f"Leave it out: {option}.",
        row,
        (option,),
    )


def _text(name: str, texts: list[str], needed: bool, leave_out: str, row: int) -> Refusal:
    if not needed and (named := on_names(texts, name, row)):
        return named
    known = list(dict.fromkeys(texts))
    some = ", ".join(map(_shown, known[:3])) + (", ..." if len(known) > 3 else "")
    option = f"--encode {quoted(name)}"
    cure = "Write a number for each" if needed else f"As a feature of 0 and 1 for each of them: {option}"
    return Refusal(
        f"column {name!r} holds text ({some}), and features must be numbers. {cure}{leave_out}.",
        row,
        () if needed else (option,),
        as_label=f" If it is the label: --label {quoted(name)}." if len(known) <= FEW and not needed else "",
    )


def _dates(name: str, such_as: str, needed: bool, row: int | None, leave_out: str) -> Refusal:
    option = f"--dates {quoted(name)}"
    cure = "Turn them into numbers first" if needed else f"As days since 1970-01-01: {option}"
    return Refusal(
        f"column {name!r} holds dates or times{such_as}. {cure}{leave_out}.", row, () if needed else (option,)
    )


def other_label(frame: pd.DataFrame, y: Any, label: str) -> tuple[str, Refusal] | None:
    """The column that looks like a label, where the last one, taken as the label, holds measurements; and advice."""
    import numpy as np

    values = np.asarray(y)
    found = _likely_label(frame)
    if found is None or values.dtype.kind != "f" or len(np.unique(values)) <= 10 or not (values % 1).any():
        return None
    option = f"--label {quoted(found)}"
    return found, Refusal(
        f"the last column, {label!r}, is taken as the label, and it holds measurements. {found!r} has {frame[found].nunique()} "
        f"different values: if that is the label, {option}. Otherwise cut {label!r} into classes first.",
        None,
        (option,),
    )


def on_default_label(frame: pd.DataFrame, y: Any, label: str) -> list[str]:
    """Remarks where the last column, taken as the label, holds many whole numbers and another one looks like a label."""
    import numpy as np

    values = np.asarray(y)
    found = _likely_label(frame)
    if found is None or values.dtype.kind not in "iu" or len(np.unique(values)) <= FEW:
        return []
    return [
        f"the last column, {label!r}, is taken as the label, and it holds {len(np.unique(values))} different numbers. Is {found!r} the "
        f"label, with {frame[found].nunique()} different values? Then --label {quoted(found)}."
    ]


def _likely_label(frame: pd.DataFrame) -> str | None:
    """The column that looks most like labels: by its name, or by text with few different values."""
    few = [c for c in frame.columns if 2 <= frame[c].nunique() <= min(FEW, len(frame) / 2)]
    text = sorted((c for c in few if frame[c].dtype.kind not in "biufmM"), key=lambda c: frame[c].nunique())
    named = [c for c in few if LABELS.fullmatch(c)]
    return next(iter([*named, *text, *few[:1]]), None)


def _shown(value: Any, most: int = 40) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


def nearest(name: str, names: Sequence[str]) -> str:
    """The question whether another one of ``names`` was meant; "" where none is near."""
    by_lower = {c.lower(): c for c in names}
    whole = [c for c in names if name.lower() in re.split(r"[\W_]+", c.lower())]
    if len(whole) == 1:  # "id" is "application_id" rather than "paid"
        return f" Did you mean {whole[0]!r}?"
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.5)
    return f" Did you mean {by_lower[close[0]]!r}?" if close else ""


def quoted(name: str) -> str:
    """A column's name as an argument of a command."""
    from ..formulations.trees import printable

    return shlex.quote(printable(name))


def _is_measurement(text: str) -> bool:
    # Whole numbers are fine as names: a table written without names has 0, 1, 2, ...
    try:
        return not float(text).is_integer()
    except (ValueError, OverflowError):
        return False
