"""Columns and labels of a table as they stand in its file: CSV text, or a format that has columns by itself."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InvalidData
from ..formulations.checks import plural
from ..formulations.written_numbers import is_number
from .csv_form import CsvForm
from .table_files import Content

if TYPE_CHECKING:
    import pandas as pd


SEPARATORS = (";", "\t", "|", ",")


class Read(NamedTuple):
    """A table, the line of each row, and its labels as they stand in a column: what they are, and how they are written."""

    frame: pd.DataFrame
    lines: Sequence[int] | None
    labels: Callable[[int], tuple[Any, list[str]]]


def of_text(
    name: str, content: Content, csv_form: CsvForm, as_text: Sequence[str] = (), missing: Sequence[str] = ()
) -> Read:
    """The table in the CSV text of ``content``; columns ``as_text`` are left as they are written, and ``missing`` texts are missing values."""
    import pandas as pd

    text = content.text
    header, lines = _scan(name, text, csv_form.separator)
    if not lines:  # said behind what is wrong with the header
        return Read(pd.DataFrame(columns=header), lines, lambda place: ([], []))
    # Labels are read as pandas reads them; a text such as "NA" counts as missing there.
    form: dict[str, Any] = {"sep": csv_form.separator, "index_col": False, "na_values": list(missing)}
    frame = pd.read_csv(io.StringIO(text), decimal=csv_form.decimal, low_memory=False, **form)
    frame.columns = pd.Index(header)
    features = frame.copy()

    def column_as_text(place: int) -> pd.Series:
        return pd.read_csv(io.StringIO(text), usecols=[place], dtype=str, **form).iloc[:, 0]

    for place, column in enumerate(header):
        if column in as_text:
            frame[column] = features[column] = column_as_text(place)
        elif frame[column].dtype.kind not in "biuf":
            features[column] = csv_form.numbers(frame[column])
            if features[column].dtype.kind == "f":
                frame[column] = features[column]

    def labels(place: int) -> tuple[Any, list[str]]:
        cells = column_as_text(place)
        written = [c.strip() for c in cells.fillna("").tolist()]
        return _plain_labels(frame.iloc[:, place], cells, written), written

    return Read(features, lines, labels)


def of_frame(
    name: str, content: Content, csv_form: CsvForm, as_text: Sequence[str] = (), missing: Sequence[str] = ()
) -> Read:
    """The table in the frame of ``content``; rows are numbered as in its sheet, where it has one. The rest as for CSV."""
    import numpy as np
    import pandas as pd

    from ..formulations.preparation import marked
    from ..formulations.trees import label_array

    frame = content.frame.reset_index(drop=True)  # type: ignore[union-attr]
    header = [str(c).strip() for c in frame.columns]
    _require_distinct(name, header, None if content.first_row is None else content.first_row - 1)
    header = names_of(header)
    frame.columns = pd.Index(header)
    for held in header:
        if any(isinstance(v, (bytes, Decimal)) for v in frame[held]):
            frame[held] = [_as_in_text(v) for v in frame[held]]
    if missing:
        frame = frame.mask(pd.DataFrame({c: marked(frame[c].tolist(), missing) for c in header}))

    def labels(place: int) -> tuple[Any, list[str]]:
        column = frame.iloc[:, place]
        values = column.tolist()
        missing = column.isna().to_numpy()
        written = ["" if m else str(v).strip() for v, m in zip(values, missing, strict=True)]
        kinds = {type(v) for v, m in zip(values, missing, strict=True) if not m}
        if str in kinds and len(kinds) > 1:  # as in CSV, 1 and 3A are both text
            return np.array(
                [None if m else c for c, m in zip(written, missing, strict=True)], dtype=object
            ), written
        if kinds and not any(issubclass(kind, (str, Number)) for kind in kinds):
            # Text, as in CSV: saved trees hold no dates, intervals, ...
            written = [c.removesuffix(" 00:00:00") for c in written]
            return np.array([c or None for c in written], dtype=object), written
        return label_array(values), written

    features = frame.copy()
    for name_of in (c for c in header if c not in as_text):
        features[name_of] = _as_numbers(frame[name_of], csv_form)
    first = content.first_row
    return Read(features, None if first is None else range(first, first + len(frame)), labels)


def _as_in_text(value: Any) -> Any:
    """Bytes as text, and decimals as numbers, whole ones where they have no decimal places; anything else as it is."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, Decimal):
        return int(value) if value.as_tuple().exponent == 0 else float(value)
    return value


def _as_numbers(column: pd.Series, form: CsvForm) -> pd.Series:
    """Numbers that are held as text, as numbers; in CSV all of them are text."""
    import pandas as pd

    if column.dtype.kind in "biufmM":
        return column
    with contextlib.suppress(ValueError, TypeError):
        return pd.to_numeric(column)
    return form.numbers(column.infer_objects())


def _plain_labels(y: pd.Series, cells: pd.Series, written: list[str]) -> Any:
    import numpy as np

    if y.dtype.kind in "iuf" and any(re.match(r"[+-]?0[0-9]", c) for c in written):
        return cells.to_numpy(dtype=object)  # a code, such as 007, and not the number 7
    if y.dtype.kind not in "biu" and all(re.fullmatch(r"-?[0-9]+", c) for c in written):
        return np.array([int(c) for c in written], dtype=object)  # more digits than a double has
    return y.to_numpy(dtype=object) if y.dtype.kind not in "biuf" else y.to_numpy()


def _scan(name: str, text: str, separator: str) -> tuple[list[str], list[int]]:
    """The columns' names and the line of each row. (pandas fills short rows up and shifts long ones.)"""
    reader = csv.reader(io.StringIO(text), delimiter=separator, strict=True)
    header: list[str] = []
    lines: list[int] = []
    last, written, blank = 0, text.split("\n"), " \t\r".replace(separator, "")
    try:
        for record in reader:
            line, last = last + 1, reader.line_num
            if not written[line - 1].strip(blank):
                continue  # pandas skips blank lines too, but none with "" on it
            if not header:
                header = [c.strip() for c in record]
                continue
            if len(record) != len(header) and len(header) == 1 and set(header[0]) & set(SEPARATORS):
                raise single_column(name, header, separator)
            if len(record) != len(header):
                raise InvalidData(
                    f"{name}, line {line}: the line has {plural(len(record), 'value')}, and the header line names {plural(len(header), 'column')}. "
                    "Give every row one value a column (a missing one still needs its separator)."
                )
            lines.append(line)
    except csv.Error as error:
        other = next((s for s in SEPARATORS if s != separator and f'"{s}' in written[last]), None)
        raise InvalidData(
            f"{name}, line {last + 1}: the line cannot be read as CSV ({error}). Is a quotation mark left open, here or "
            f"further up?{'' if other is None else f' Or is it {other!r} that separates the columns? Then say so (--separator).'}"
        ) from None
    _require_distinct(name, header, 1)
    return names_of(header), lines


def names_of(header: Sequence[str]) -> list[str]:
    """The columns' names, with one for each column that has none."""
    out = list(header)
    for j in (j for j, given in enumerate(header) if not given):
        out[j] = f"Unnamed: {j}"
        while out[j] in header:
            out[j] += ".1"
    return out


def single_column(name: str, header: Sequence[str], separator: str) -> InvalidData:
    """What to say of a table with one column: its columns may be separated by something else."""
    cure = (
        other_separator(header, separator)
        or f" Separate the columns by {separator!r}: features first, the label last."
    )
    return InvalidData(
        f"{name}, line 1: the table has a single column, {''.join(header)!r}, and needs features and a label.{cure}"
    )


def other_separator(header: Sequence[str], separator: str) -> str:
    """The question whether a ``header`` of one column holds another separator; "" where it does not."""
    others = [s for s in SEPARATORS if len(header) == 1 and s != separator and s in header[0]]
    return (
        f" Its header line holds {others[0]!r}: is that what separates the columns? Then say so (--separator)."
        if others
        else ""
    )


def _require_distinct(name: str, header: Sequence[str], line: int | None) -> None:
    twice = next((c for c in header if c and header.count(c) > 1), None)
    if twice is not None:
        values = sum(map(is_number, header)) > len(header) / 2
        raise InvalidData(
            f"{name}{'' if line is None else f', line {line}'}: two columns are called {twice!r}. "
            + (
                "Is it a row of values? Put a header line above it."
                if values
                else "Give every column a name of its own."
            )
        )
