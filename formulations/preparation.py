"""From a table's columns to features: categories as 0/1 columns, dates as days, missing values filled by a stated rule.

What is learned on the training rows is plain data, kept in the tree, and used again on every later table. The rules are
those of scikit-learn's ``OneHotEncoder(drop="if_binary", handle_unknown="ignore")`` and ``SimpleImputer``.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from . import checks
from .checks import listed, plural
from .errors import InvalidData, InvalidParameter
from .read_file import damaged, require_version
from .read_matrix import Frame, frame_of, is_missing, read_column
from .written_numbers import is_number

VERSION = 1
RULES = ("median", "mean", "most_frequent", "category")
MISSING = "missing"  # what the rule "category" calls a missing value
ISO = "iso"
DATE_FORMS = (ISO, *(f"%d.%m.%Y{time}" for time in ("", " %H:%M", " %H:%M:%S")))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Column(BaseModel):
    """One column of the table."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)
    name: str
    kind: Literal["number", "category", "date"] = "number"
    # In order. Two of them make one feature, that of the second; others make one each.
    categories: tuple[str, ...] = Field(default=(), strict=False)
    form: str = ""  # of a date: "iso", or the form in the codes of datetime.strptime
    fill: float | str | None = None  # what stands for a missing value (days for a date); None: one is refused
    rule: str | None = None  # where fill comes from, one of RULES

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(set(self.categories)) < len(self.categories) or bool(self.categories) != (
            self.kind == "category"
        ):
            raise ValueError("a category has distinct categories, and nothing else has any")
        if self.fill is not None and isinstance(self.fill, str) != (self.kind == "category"):
            raise ValueError("fill is a text for a category, and a number for others")
        if self.kind == "category" and self.fill is not None and self.fill not in self.categories:
            raise ValueError("fill is one of the categories")
        return self

    @property
    def indicated(self) -> tuple[str, ...]:
        """Categories that have a feature of 0 and 1."""
        return self.categories[1:] if len(self.categories) == 2 else self.categories

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that the column becomes."""
        return tuple(f"{self.name}={c}" for c in self.indicated) if self.kind == "category" else (self.name,)

    def read(self, values: Any, marks: Sequence[str]) -> NDArray[np.float64]:
        """The features (m, q) of the column's ``values`` (m,)."""
        if self.kind == "category":
            return self._indicators(_texts(values, self.name, marks))
        numbers = _measured(values, self.name, self.form, marks)
        gaps = np.isnan(numbers)
        if gaps.any() and self.fill is None:
            raise _missing(self.name, int(np.argmax(gaps)))
        numbers[gaps] = self.fill
        return numbers[:, None]

    def _indicators(self, texts: list[str | None]) -> NDArray[np.float64]:
        if None in texts and self.fill is None:
            raise _missing(self.name, texts.index(None))
        known = [self.fill if t is None else t for t in texts]
        strange = [t for t in known if t not in self.categories]
        if strange:
            read_as = f", which here reads as {self.categories[0]!r}" if len(self.categories) == 2 else ""
            several = len(set(strange)) > 1
            warnings.warn(
                f"Column {self.name!r} holds {strange[0]!r}{' and other values' if several else ''}, not there in training "
                f"({plural(len(strange), 'row')}): {'they have' if several else 'it has'} 0 in {', '.join(self.features[:3])}"
                f"{', ...' if len(self.features) > 3 else ''}{read_as}.",
                stacklevel=2,
            )
        return np.array([[float(t == c) for c in self.indicated] for t in known]).reshape(len(known), -1)


class Preparation(BaseModel):
    """How the columns of a table become the features of a tree; see :meth:`learn`.

    Attributes
    ----------
    columns : tuple of Column
        In order; other columns of a table are ignored.
    missing : tuple of str
        Texts that stand for a missing value.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")
    columns: tuple[Column, ...] = Field(strict=False)
    missing: tuple[str, ...] = Field(default=(), strict=False)

    @classmethod
    def learn(
        cls,
        X: Any,
        *,
        encode: Sequence[str] = (),
        dates: Sequence[str] | Mapping[str, str] = (),
        impute: str | Mapping[str, str] | None = None,
        missing: Sequence[str] = (),
    ) -> Preparation:
        """Learn how to make features of a table, on the training rows.

        Parameters
        ----------
        X : DataFrame (n, p)
            Of pandas, polars or Arrow.
        encode : sequence of str
            Columns of categories: a feature of 0 and 1 for each, or one feature where there are two. A category that
            training did not show has 0 in all of them, with a warning.
        dates : sequence of str, or mapping of column to form
            Columns of dates: days since 1970-01-01. Without a form (of ``datetime.strptime``) ISO 8601 and 31.12.2026 are read.
        impute : str or mapping of column to str, optional
            What fills missing values: the "median" or "mean" of the training rows (categories: the most frequent), the
            "most_frequent" value (the first in order where several are), or "category": a category of its own, called
            "missing". The key "" of a mapping stands for all other columns. Without a rule a missing value is refused.
        missing : sequence of str
            Texts that stand for a missing value, such as "?". One that is a number, such as "-999", stands for the number too.

        Returns
        -------
        Preparation

        Raises
        ------
        InvalidData
            A column is not there, holds something else, or nothing at all.
        InvalidParameter
            An unknown rule, one that does not fit its column, no form of dates, or a text where several belong.
        """
        frame = _frame(X)
        names = [str(k) for k in frame.keys]
        for option, given in (("encode", encode), ("dates", dates), ("missing", missing)):
            _require_texts(option, given)
        forms = dict(dates) if isinstance(dates, Mapping) else dict.fromkeys(dates, "")
        rules = {"": impute} if isinstance(impute, str) else dict(impute or {})
        for name in (*encode, *forms, *(n for n in rules if n)):
            if name not in names:
                raise InvalidData(f"X has no column {name!r}; it has {listed(names)}.")
        for name, form in forms.items():
            _require_form(name, form)
        both = next((n for n in encode if n in forms), None)
        if both is not None:
            raise InvalidParameter(f"Column {both!r} is to be a category and a date. Choose one of them.")
        columns = []
        for j, name in enumerate(names):
            kind = "category" if name in encode else "date" if name in forms else "number"
            rule = _rule(name, kind, rules)
            values, marks = frame.column(j), tuple(missing)
            if kind == "category":
                columns.append(_learn_category(name, values, rule, marks))
            else:
                columns.append(_learn_number(name, values, rule, marks, forms.get(name)))
        out = cls(columns=tuple(columns), missing=tuple(missing))
        twice = next((n for n, count in Counter(out.feature_names).items() if count > 1), None)
        if twice is not None:
            raise InvalidData(f"Two features would be called {twice!r}. Rename a column of X.")
        return out

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features (q,): a column's own, or column=category."""
        return tuple(name for column in self.columns for name in column.features)

    def matrix(self, X: Any) -> NDArray[np.float64]:
        """The features (m, q) of a table (m, ...) that has the columns, in any order.

        Raises
        ------
        InvalidData
            A column is missing, holds something else, or a missing value that no rule fills.
        """
        frame = _frame(X)
        place = {str(k): j for j, k in enumerate(frame.keys)}
        for column in self.columns:
            if column.name not in place:
                raise InvalidData(f"X lacks the column {column.name!r}; it has {listed(list(place))}.")
        parts = [c.read(frame.column(place[c.name]), self.missing) for c in self.columns]
        return np.hstack(parts) if parts else np.empty((frame.rows, 0))

    def gaps(self, values: Any) -> NDArray[np.bool_]:
        """Which of a column's ``values`` (m,) are missing."""
        return _objects(values, self.missing)[1]

    def takes(self, X: Any) -> bool:
        """Whether ``X`` is a table for :meth:`matrix`: it has all columns, or none of the features that only :meth:`matrix` makes."""
        frame = None if isinstance(X, np.ndarray) and X.dtype.names is None else frame_of(X)
        if frame is None:
            return False
        columns, names = {c.name for c in self.columns}, {str(k) for k in frame.keys}
        return columns <= names or names.isdisjoint({*self.feature_names} - columns)

    def worded(self, j: int, below: float) -> tuple[str, str] | None:
        """What "feature ``j`` is below ``below``" and its contrary mean for the column; None for plain numbers."""
        column, category = [(c, i) for c in self.columns for i in (c.indicated or (None,))][j]
        if category is not None and 0 < below <= 1:
            return f"{column.name} is not {category!r}", f"{column.name} is {category!r}"
        if column.kind == "date":
            with contextlib.suppress(OverflowError):
                when = (EPOCH + timedelta(days=below)).replace(tzinfo=None).isoformat(" ", "seconds")
                when = when.removesuffix(" 00:00:00")
                return f"{column.name} before {when}", f"{column.name} from {when} on"
        return None

    def to_dict(self) -> dict[str, Any]:
        """As plain data, fit for JSON."""
        return {"version": VERSION, **self.model_dump(mode="json", exclude_defaults=True)}

    @classmethod
    def from_dict(cls, data: Any) -> Preparation:
        """Rebuild it from :meth:`to_dict`; nothing is executed.

        Raises
        ------
        InvalidData
            It is damaged, or of a newer version.
        """
        values = dict(data) if isinstance(data, Mapping) else {}
        version = values.pop("version", None)
        require_version(version, "table's preparation", VERSION)
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise damaged("table's preparation", error) from None


# -- what is learned ----------------------------------------------------------------------------------------------


def _require_texts(option: str, given: Any) -> None:
    """Refuse a text, which would be taken letter by letter, and what is none among several."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise InvalidParameter(
            f"{option}={given!r} should be several texts, if only one: {option}=[{str(given)!r}]."
        )
    odd = next((text for text in given if not isinstance(text, str)), None)
    if odd is not None:
        raise InvalidParameter(f"{option} holds {odd!r}, which is no text. Write {str(odd)!r}.")


def _rule(name: str, kind: str, rules: Mapping[str, str]) -> str | None:
    """The rule for a column; ``median`` and ``mean`` for all columns are those of the numbers among them."""
    rule = rules.get(name, rules.get(""))
    if rule is None:
        return None
    if rule not in RULES:
        raise InvalidParameter(f"The rule {rule!r} for missing values is unknown; known: {', '.join(RULES)}.")
    if kind == "category" and rule in ("median", "mean"):
        if name in rules:
            raise InvalidParameter(
                f"Column {name!r} holds categories, which have no {rule}; choose most_frequent or category."
            )
        return "most_frequent"
    if kind != "category" and rule == "category":
        raise InvalidParameter(
            f"The rule category is for columns of categories, and {name!r} holds {kind}s; choose median, mean or most_frequent."
        )
    return rule


def _learn_category(name: str, values: Any, rule: str | None, marks: Sequence[str]) -> Column:
    texts = _texts(values, name, marks)
    held = [t for t in texts if t is not None]
    categories = sorted(set(held))
    if not held:
        raise _empty(name)
    if len(categories) == len(texts) and len(texts) >= 10:
        raise InvalidData(
            f"Column {name!r} holds another value in every row, such as {categories[0]!r}: as categories they tell every row "
            "from all others. Leave the column out."
        )
    fill = None
    if rule == "most_frequent":
        fill = max(categories, key=Counter(held).__getitem__)  # the first in order where several are
    elif rule == "category":
        fill = MISSING
        categories = sorted({*categories, MISSING})
    return Column(name=name, kind="category", categories=tuple(categories), fill=fill, rule=rule)


def _learn_number(name: str, values: Any, rule: str | None, marks: Sequence[str], form: str | None) -> Column:
    """Of numbers, or of dates where a ``form`` is given; "" stands for whichever fits."""
    kind: Literal["number", "date"] = "number" if form is None else "date"
    found = _form_of_dates(values, name, marks) if form == "" else form or ""
    fill = _filled(name, _measured(values, name, found, marks), rule)
    return Column(name=name, kind=kind, form=found, fill=fill, rule=rule)


def _require_form(name: str, form: str) -> None:
    """Refuse a form that ``datetime.strptime`` cannot read any date by."""
    try:
        datetime.strptime("", form)
    except (ValueError, re.error) as error:
        if "does not match" not in str(error):
            raise InvalidParameter(
                f"{form!r} is no form of the dates in column {name!r} ({error}). Write each of its codes once, such as %d/%m/%Y."
            ) from None


def _filled(name: str, numbers: NDArray[np.float64], rule: str | None) -> float | None:
    held = numbers[~np.isnan(numbers)]
    if not len(held):
        raise _empty(name)
    if rule is None:
        return None
    if rule == "most_frequent":
        different, counts = np.unique(held, return_counts=True)
        return float(different[np.argmax(counts)])
    return float(np.median(held) if rule == "median" else np.mean(held))


# -- values -------------------------------------------------------------------------------------------------------


def _frame(X: Any) -> Frame:
    frame = frame_of(X)
    if frame is None:
        raise InvalidData(
            f"X is a {type(X).__name__} without names of columns; a preparation goes by them. Pass a DataFrame."
        )
    return frame


def marked(values: Iterable[Any], marks: Sequence[str]) -> list[bool]:
    """Which of ``values`` are missing, or stand for a missing one: -999 does where "-999" is among the ``marks``."""
    numbers = [float(mark) for mark in marks if is_number(mark)]
    texts = ("", *marks)
    return [
        is_missing(v)
        or (
            v.strip() in texts
            if isinstance(v, str)
            else bool(numbers) and checks.is_number(v) and v in numbers
        )
        for v in values
    ]


def _objects(values: Any, marks: Sequence[str]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values as objects, and which of them are missing."""
    found = np.array([*np.asarray(values, dtype=object), None], dtype=object)[:-1]
    return found, np.array(marked(found, marks), dtype=bool)


def _measured(values: Any, name: str, form: str, marks: Sequence[str]) -> NDArray[np.float64]:
    """Numbers (m,), or the days of dates where they have a ``form``; nan where one is missing."""
    return _days(values, name, form, marks) if form else _numbers(values, name, marks)


def _numbers(values: Any, name: str, marks: Sequence[str]) -> NDArray[np.float64]:
    """Numbers (m,), nan where one is missing."""
    found, gaps = _objects(values, marks)
    found[gaps] = 0.0
    for i in np.flatnonzero(~gaps):
        if isinstance(found[i], str):
            try:
                found[i] = float(found[i])
            except ValueError:
                raise InvalidData(
                    f"Column {name!r} holds {found[i]!r} in row {i}, which is no number. If that stands for a missing value, name "
                    "it (missing=); columns of categories and dates are named as well (encode=, dates=)."
                ) from None
    numbers = read_column(found, name, frame=True, key=name)
    if np.isinf(numbers).any():
        raise InvalidData(
            f"Column {name!r} is infinite in row {int(np.isinf(numbers).argmax())}. Replace it by a finite number or drop the row."
        )
    numbers[gaps] = np.nan
    return numbers


def _texts(values: Any, name: str, marks: Sequence[str]) -> list[str | None]:
    """Categories as text, None where one is missing; 1.0 is 1, as a missing value makes fractions of whole numbers."""
    found, gaps = _objects(values, marks)
    out: list[str | None] = []
    for value, gap in zip(found, gaps, strict=True):
        if not gap and isinstance(value, (list, dict, set, tuple, np.ndarray)):
            raise InvalidData(f"Column {name!r} holds {value!r}, which is no category. Categories are text.")
        out.append(None if gap else re.sub(r"^([+-]?\d+)\.0+$", r"\1", str(value).strip()))
    return out


def _days(values: Any, name: str, form: str, marks: Sequence[str]) -> NDArray[np.float64]:
    """Days since 1970-01-01 (m,), nan where a date is missing.

    Where none is written in ``form``, and all in another that needs none given, that is theirs.
    """
    found, gaps = _objects(values, marks)
    held = found[~gaps]
    if not any(_when(v, form) for v in held):
        # Days and months stand in one order in ISO only: other forms give way to that, and to no other.
        others = DATE_FORMS if form in DATE_FORMS else (ISO,)
        form = next((f for f in others if all(_when(v, f) for v in held)), form)
    out = np.full(len(found), np.nan)
    for i in np.flatnonzero(~gaps):
        when = _when(found[i], form)
        if when is None:
            said = "of ISO 8601, such as 2026-12-31" if form == ISO else f"written as {form}"
            raise InvalidData(
                f"Column {name!r} holds {found[i]!r} in row {i}, which is no date {said}. Write all dates of the column so"
                + ("." if form == ISO else ", or all as 2026-12-31.")
            )
        out[i] = (when - EPOCH) / timedelta(days=1)
    return out


def _form_of_dates(values: Any, name: str, marks: Sequence[str]) -> str:
    found, gaps = _objects(values, marks)
    held = found[~gaps]
    if not len(held):
        raise _empty(name)
    odd = {form: [v for v in held if _when(v, form) is None] for form in DATE_FORMS}
    fits = [form for form in DATE_FORMS if not odd[form]]
    if not fits and len(wrong := min(odd.values(), key=len)) < len(held) / 2:
        row = next(i for i in np.flatnonzero(~gaps) if found[i] is wrong[0])
        raise InvalidData(
            f"Column {name!r} holds {wrong[0]!r} in row {row}, which is no date, or not written as the others, such as "
            f"{next(v for v in held if v not in wrong)!r}. Correct it."
        )
    if not fits:
        raise InvalidData(
            f"Column {name!r} holds dates such as {held[0]!r}, whose form is not plain. Give the form, e.g. %d/%m/%Y, %m/%d/%Y or %d %b %Y."
        )
    return fits[0]


def _when(value: Any, form: str) -> datetime | None:
    """A point in time; where it names no zone, that of UTC."""
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime(warn=False) if hasattr(value, "nanosecond") else value.to_pydatetime()
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            text = value.strip()
            value = datetime.fromisoformat(text) if form == ISO else datetime.strptime(text, form)
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return None
    with contextlib.suppress(OverflowError):  # past the year 9999 in UTC
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return None


def _missing(name: str, row: int) -> InvalidData:
    return InvalidData(
        f"Column {name!r} has a missing value in row {row}, and no rule to fill it was learned. Fill it, or learn the "
        "preparation with impute=."
    )


def _empty(name: str) -> InvalidData:
    return InvalidData(f"Column {name!r} holds no value at all. Leave it out.")
