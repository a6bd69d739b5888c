"""Tables by name: a file (CSV, Excel, Parquet), a data set that scikit-learn brings along, or a generated one."""

from __future__ import annotations

import contextlib
import csv
import difflib
import io
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InvalidData, MissingPackage
from .table_files import Content, read_content

if TYPE_CHECKING:
    import pandas as pd

BUILT_IN = ("iris", "wine", "breast_cancer", "toy")
TOY_ROWS = 32
TOY_WRONG = 0.1  # share of the toy's labels that are wrong on purpose


@dataclass(frozen=True, eq=False)
class CsvTable:
    """Features and labels, and where they come from.

    Attributes
    ----------
    name : str
        As it was asked for.
    X : DataFrame (n, p)
    y : ndarray (n,) or None
        None where no label column was asked for.
    label : str or None
        Name of the label column.
    lines : sequence of int, or None
        Line of the file that each row stands on.
    remarks : tuple of str
        What looks odd and is used all the same.
    cells : sequence of str, or None
        The labels as they stand in the file, whatever type ``y`` has for all of them.
    """

    name: str
    X: pd.DataFrame
    y: Any
    label: str | None
    lines: Sequence[int] | None = None
    remarks: tuple[str, ...] = ()
    cells: Sequence[str] | None = None

    def labels_like(self, classes: Sequence[Any]) -> list[Any]:
        """The labels in the types of a tree's ``classes``, whatever else the file holds: "1" is 1 for numbers."""
        known = [] if self.y is None else self.y.tolist()
        return (
            known
            if self.cells is None
            else [_like(c, v, classes) for c, v in zip(self.cells, known, strict=True)]
        )

    def check(self) -> None:
        """Refuse features and labels that no model can use, before they are split up.

        Raises
        ------
        InvalidData
            Naming the file, and the line where there is one.
        """
        from ..data import read_labels
        from ..formulations.read_matrix import read_matrix

        self.check_cells(list(self.X.columns))
        try:
            read_matrix(self.X)
            if self.y is not None:
                read_labels(self.y, len(self.X))
        except InvalidData as error:
            raise InvalidData(self.located(str(error))) from None

    def check_cells(self, columns: Sequence[str]) -> None:
        """Refuse a column of numbers with other things in between (one such cell makes a column text).

        Raises
        ------
        InvalidData
            Naming the cell.
        """
        import numpy as np

        for name in columns:
            if name not in self.X.columns or self.X[name].dtype.kind in "biufmM":
                continue
            column = self.X[name]
            bad = column.notna().to_numpy() & ~np.array([_is_number(v) for v in column.tolist()])
            if 0 < bad.sum() <= len(bad) / 2:
                row = int(np.argmax(bad))
                place = self.name if self.lines is None else f"{self.name}, line {self.lines[row]}"
                raise InvalidData(
                    f"{place}: column {name!r} holds {_shown(column.iloc[row])} among numbers ({int(bad.sum())} such cells). "
                    "Correct the cell or remove the row; if it stands for a missing value, fill in a number."
                )

    def located(self, message: str) -> str:
        """``message`` with the table's name in front, and behind it the line of the first row it names."""
        found = re.search(r"\brow (\d+)", message)
        if self.lines is None or found is None or int(found[1]) >= len(self.lines):
            return f"{self.name}: {message}"
        return f"{self.name}, line {self.lines[int(found[1])]}: {message}"


def load(
    name: str, *, label: str | None = None, separator: str = ",", decimal: str = ".", seed: int = 0
) -> CsvTable:
    """The table called ``name``: one of :data:`BUILT_IN`, or a file (:func:`read_table`).

    Parameters
    ----------
    label : str, optional
        The column that holds the labels; the last one by default.
    separator : str
        One character, for CSV files.
    decimal : str
        The decimal sign of a CSV file, '.' or ','.
    seed : int
        For "toy".

    Raises
    ------
    InvalidData
        Naming the file and, where there is one, the line.
    """
    if name not in BUILT_IN:
        return read_table(name, label=label, separator=separator, decimal=decimal)
    if label is not None and label != "class":
        raise InvalidData(
            f"{name}: there is no label column {label!r}: built-in data have their labels in 'class'. Leave it out."
        )
    return _toy(seed) if name == "toy" else _bundled(name)


def read_table(
    path: str | Path,
    *,
    label: str | None = None,
    separator: str = ",",
    decimal: str = ".",
    labelled: bool = True,
) -> CsvTable:
    """Read a table from a file: CSV with a header line, or a format that pandas reads.

    ``labelled=False`` takes every column as a feature, but for ``label``. The separator and the decimal sign are those of CSV.

    Raises
    ------
    InvalidData
        Naming the file and, where there is one, the line.
    MissingPackage
        pandas needs a package for this format.
    """
    separator = {"\\t": "\t", "tab": "\t"}.get(separator, separator)  # as shells and people write it
    if len(separator) != 1 or separator in '"\r\n':
        raise InvalidData(f"The separator {separator!r} should be one character, such as ',' or ';', or tab.")
    if decimal not in (".", ",") or decimal == separator:
        raise InvalidData(
            f"The decimal sign {decimal!r} should be '.' or ',', and another one than the separator {separator!r}."
        )
    name = str(path)
    content = _content(name)
    read = (
        _of_frame(name, content)
        if content.frame is not None
        else _of_text(name, content.text, separator, decimal)
    )
    header = list(read.frame.columns)
    _require_columns(name, header, label, separator, labelled)
    if not len(read.frame):
        raise InvalidData(f"{name}: the table has a header line and no rows. Add rows below line 1.")
    remarks = (*content.remarks, *_remarks(name, header))
    if not labelled and label is None:
        return CsvTable(name, read.frame, None, None, read.lines, remarks)
    chosen = header[-1] if label is None else label
    y, written = read.labels(header.index(chosen))
    return CsvTable(name, read.frame.drop(columns=[chosen]), y, chosen, read.lines, remarks, written)


class _Read(NamedTuple):
    """A table, the line of each row, and its labels as they stand in a column: what they are, and how they are written."""

    frame: pd.DataFrame
    lines: Sequence[int] | None
    labels: Callable[[int], tuple[Any, list[str]]]


def _of_text(name: str, text: str, separator: str, decimal: str) -> _Read:
    import pandas as pd

    header, lines = _scan(name, text, separator)
    if not lines:  # said behind what is wrong with the header
        return _Read(pd.DataFrame(columns=header), lines, lambda place: ([], []))
    # Labels are read as pandas reads them; a text such as "NA" counts as missing there.
    frame = pd.read_csv(io.StringIO(text), sep=separator, decimal=decimal, index_col=False, low_memory=False)
    frame.columns = pd.Index(header)

    def labels(place: int) -> tuple[Any, list[str]]:
        cells = pd.read_csv(
            io.StringIO(text), sep=separator, usecols=[place], dtype=str, index_col=False
        ).iloc[:, 0]
        written = [c.strip() for c in cells.fillna("").tolist()]
        if decimal != ".":
            written = [c.replace(decimal, ".") for c in written]
        return _plain_labels(frame.iloc[:, place], cells, written), written

    return _Read(frame, lines, labels)


def _of_frame(name: str, content: Content) -> _Read:
    import numpy as np
    import pandas as pd

    frame = content.frame.reset_index(drop=True)  # type: ignore[union-attr]
    header = [str(c).strip() for c in frame.columns]
    _require_distinct(name, header)
    frame.columns = pd.Index(header)

    from ..formulations.trees import label_array

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
        return label_array(values), written

    features = frame.copy()
    for name_of in header:
        features[name_of] = _as_numbers(frame[name_of])
    return _Read(features, range(2, len(frame) + 2) if content.in_rows else None, labels)


def _as_numbers(column: pd.Series) -> pd.Series:
    """Numbers that are held as text, as numbers; in CSV all of them are text."""
    import pandas as pd

    if column.dtype.kind in "biufmM":
        return column
    with contextlib.suppress(ValueError, TypeError):
        return pd.to_numeric(column)
    return column.infer_objects()


def _require_columns(name: str, header: list[str], label: str | None, separator: str, labelled: bool) -> None:
    if labelled and len(header) < 2:
        others = [s for s in (";", "\t", "|", ",") if s != separator and header and s in header[0]]
        cure = (
            f"Its header line holds {others[0]!r}: is that what separates the columns? Then say so (--separator)."
            if others
            else f"Separate the columns by {separator!r}: features first, the label last."
        )
        raise InvalidData(
            f"{name}, line 1: the table has a single column, {''.join(header)!r}, and needs features and a label. {cure}"
        )
    if label is not None and label not in header:
        raise InvalidData(
            f"{name}, line 1: there is no label column {label!r}.{_nearest(label, header)} Its columns are: "
            f"{_some(header)}."
        )


def _plain_labels(y: pd.Series, cells: pd.Series, written: list[str]) -> Any:
    import numpy as np

    if y.dtype.kind in "iuf" and any(re.match(r"[+-]?0[0-9]", c) for c in written):
        return cells.to_numpy(dtype=object)  # a code, such as 007, and not the number 7
    if y.dtype.kind not in "biu" and all(re.fullmatch(r"-?[0-9]+", c) for c in written):
        return np.array([int(c) for c in written], dtype=object)  # more digits than a double has
    return y.to_numpy(dtype=object) if y.dtype.kind not in "biuf" else y.to_numpy()


def _like(cell: str, value: Any, classes: Sequence[Any]) -> Any:
    """The label that ``cell`` is among ``classes``; ``value``, which pandas made of it, where it is none of them."""
    if all(isinstance(c, str) for c in classes):
        return value if value in classes else next((c for c in classes if c.strip() == cell), value)
    if all(isinstance(c, bool) for c in classes):
        return {"true": True, "false": False}.get(cell.lower(), cell)
    for read in (int, float):
        with contextlib.suppress(ValueError):
            return read(cell)
    return value


def _content(name: str) -> Content:
    path = Path(name)
    try:
        return read_content(name)
    except FileNotFoundError:
        close = difflib.get_close_matches(name, [*BUILT_IN, *_beside(path)], n=1, cutoff=0.6)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InvalidData(
            f"{name}: there is no such file.{hint} Give the path of a CSV file, or one of {', '.join(BUILT_IN)}."
        ) from None
    except IsADirectoryError:
        raise InvalidData(
            f"{name}: this is a directory. Give the path of a CSV file{_csv_inside(path)}."
        ) from None
    except (InvalidData, MissingPackage):
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidData(f"{name}: the file cannot be read: {reason}.") from None


def _scan(name: str, text: str, separator: str) -> tuple[list[str], list[int]]:
    """The columns' names and the line of each row. (pandas fills short rows up and shifts long ones.)"""
    reader = csv.reader(io.StringIO(text), delimiter=separator, strict=True)
    header: list[str] = []
    lines: list[int] = []
    last = 0
    try:
        for record in reader:
            line, last = last + 1, reader.line_num
            if not record or (len(record) == 1 and not record[0].strip()):
                continue  # pandas skips blank lines too
            if not header:
                header = [c.strip() for c in record]
                continue
            if len(record) != len(header):
                raise InvalidData(
                    f"{name}, line {line}: there are {len(record)} values, and the header line names {len(header)} columns. "
                    "Give every row one value a column (a missing one still needs its separator)."
                )
            lines.append(line)
    except csv.Error as error:
        raise InvalidData(
            f"{name}, line {last + 1}: the line cannot be read as CSV ({error}). Is a quotation mark left open, here or "
            "further up?"
        ) from None
    _require_distinct(name, header)
    return [c or f"Unnamed: {j}" for j, c in enumerate(header)], lines


def _require_distinct(name: str, header: Sequence[str]) -> None:
    twice = next((c for c in header if c and header.count(c) > 1), None)
    if twice is not None:
        raise InvalidData(
            f"{name}, line 1: two columns are called {twice!r}. Give every column a name of its own."
        )


def _remarks(name: str, header: Sequence[str]) -> tuple[str, ...]:
    out = []
    unnamed = [c for c in header if c.startswith("Unnamed: ")]
    if unnamed:
        out.append(
            f"{name}, line 1: a column without a name is used as the feature {unnamed[0]!r}. If it only numbers the rows, "
            "remove it: a tree would learn from it."
        )
    if any(_is_measurement(c) for c in header):
        out.append(
            f"{name}, line 1: the first line is taken as the columns' names, and it looks like a row of values. "
            "Put a header line above it."
        )
    return tuple(out)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):  # the last: digits beyond what a double holds
        return False
    return True


def _shown(value: Any, most: int = 40) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


def _is_measurement(text: str) -> bool:
    # Whole numbers are fine as names: a table written without names has 0, 1, 2, ...
    try:
        return not float(text).is_integer()
    except (ValueError, OverflowError):
        return False


def _nearest(name: str, names: Sequence[str]) -> str:
    by_lower = {c.lower(): c for c in names}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.5)
    return f" Did you mean {by_lower[close[0]]!r}?" if close else ""


def _some(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(repr(c) for c in names[:most]) + (", ..." if len(names) > most else "")


def _beside(path: Path) -> list[str]:
    try:
        return [str(path.with_name(n)) for n in os.listdir(path.parent) if n.endswith(".csv")]
    except (OSError, ValueError):
        return []


def _csv_inside(path: Path) -> str:
    inside = sorted(p.name for p in path.glob("*.csv"))
    return f", for example {path / inside[0]}" if inside else ""


def against_rest(table: CsvTable, chosen: str) -> CsvTable:
    """The same table with two classes: ``chosen``, and everything else as "not <chosen>".

    Raises
    ------
    InvalidData
        If no row has the label ``chosen``.
    """
    import numpy as np

    if table.y is None:
        return table
    texts = [str(v) for v in table.y.tolist()]
    if table.cells is not None:  # 1 is 1 where a fraction further down makes it 1.0, too
        texts = [c if c == chosen else v for c, v in zip(table.cells, texts, strict=True)]
    if chosen not in texts:
        known = sorted(set(texts))
        raise InvalidData(
            f"{table.name}: no row has the label {chosen!r}.{_nearest(chosen, known)} Its labels are: {_some(known)}."
        )
    rest = f"not {chosen}"
    y = np.array([chosen if v == chosen else rest for v in texts], dtype=object)
    return CsvTable(table.name, table.X, y, table.label, table.lines, table.remarks)


def _bundled(name: str) -> CsvTable:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")(as_frame=True)
    y = bunch.target_names[bunch.target.to_numpy()].astype(object)
    return CsvTable(name, bunch.data, y, "class")


def _toy(seed: int) -> CsvTable:
    """Two classes with a wide gap between them, and a tenth of the labels wrong."""
    import numpy as np
    import pandas as pd

    from ..noise import flip_labels

    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 10.0, size=(10 * TOY_ROWS, 2)).round(2)
    X = X[np.abs(X.sum(axis=1) - 10.0) > 2.0][:TOY_ROWS]
    y = np.where(X.sum(axis=1) > 10.0, "blue", "red").astype(object)
    frame = pd.DataFrame(X, columns=["width", "height"])
    return CsvTable("toy", frame, flip_labels(y, TOY_WRONG, seed).astype(object), "class")
