"""Tables by name: a file (CSV, Excel, Parquet), a data set that scikit-learn brings along, or a generated one."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidData, MissingPackage
from ..formulations.checks import listed, nearest
from ..formulations.read_matrix import is_missing
from . import table_remarks
from .built_in_tables import BUILT_IN, built_in
from .csv_form import PLAIN, CsvForm
from .table_columns import of_frame, of_text, single_column
from .table_files import Content, read_content
from .table_preparation import named

if TYPE_CHECKING:
    import pandas as pd

    from ..formulations.preparation import Preparation
    from ..formulations.written_numbers import Writing


@dataclass(frozen=True, eq=False)
class CsvTable:
    """Features and labels, and where they come from."""

    name: str  # as it was asked for
    X: pd.DataFrame  # (n, p)
    y: Any  # (n,); None where no label column was asked for
    label: str | None  # name of the label column
    lines: Sequence[int] | None = None  # line of the file that each row stands on
    remarks: tuple[str, ...] = ()  # on what looks odd and is used all the same
    # The labels as they stand in the file, whatever type y has for all of them.
    cells: Sequence[str] | None = None
    by_default: bool = False  # the label is the last column because no other one was asked for
    preparation: Preparation | None = None  # what made X of the table's columns
    writing: Writing = PLAIN.writing  # how numbers among the cells are written

    def features(self, rows: Any) -> Any:
        """The features of ``rows`` in an array: a tree makes them of named columns, and here they are made already."""
        return self.X.iloc[rows].to_numpy()

    def labels_like(self, classes: Sequence[Any]) -> list[Any]:
        """The labels in the types of a tree's ``classes``, whatever else the file holds: "1" is 1 for numbers; None for a gap."""
        known = [] if self.y is None else [None if is_missing(v) else v for v in self.y.tolist()]
        if self.cells is None:
            return known
        return [
            None if v is None else _like(c, v, classes, self.writing)
            for c, v in zip(self.cells, known, strict=True)
        ]

    def check(self, asked: Mapping[str, Any] | None = None) -> None:
        """Refuse features and labels that no model can use, before they are split up.

        ``asked`` is what a preparation is to be learned with: it makes numbers of text, and fills missing values.
        """
        from ..data import read_labels
        from ..formulations.read_matrix import read_matrix

        encode, dates, impute = ((asked or {}).get(what, ()) for what in ("encode", "dates", "impute"))
        found: list[table_remarks.Refusal | None] = []
        columns = list(self.X.columns)
        if self.y is not None and self.label is not None and self.by_default:
            other = table_remarks.other_label(self.X, self.y, self.label)
            if other is not None:
                found.append(other[1])
                columns.remove(other[0])
        found += [table_remarks.on_names([str(v) for v in self.X[name].dropna()], name) for name in encode]
        numbers = [c for c in columns if c not in encode and c not in dates]
        filled = [c for c in columns if c not in impute and "" not in impute]
        self._refuse([*found, *self._seen(numbers, filled)])
        with self.located():
            if not asked:
                read_matrix(self.X)
            if self.y is not None:
                read_labels(self.y, len(self.X))

    def check_needed(self, numbers: Sequence[str], filled: Sequence[str]) -> None:
        """Refuse text in columns of ``numbers``, and missing values in those to be ``filled``, which a tree needs."""
        self._refuse(self._seen(numbers, filled, needed=True))

    def _seen(
        self, numbers: Sequence[str], filled: Sequence[str], needed: bool = False
    ) -> list[table_remarks.Refusal | None]:
        looks = [(table_remarks.on_cells, c) for c in numbers] + [
            (table_remarks.on_missing, c) for c in filled
        ]
        return [look(self.X[c], c, needed=needed) for look, c in looks if c in self.X.columns]

    def _refuse(self, seen: Sequence[table_remarks.Refusal | None]) -> None:
        found = [refusal for refusal in seen if refusal]
        if not found:
            return
        where = ["" if r.row is None or self.lines is None else f"line {self.lines[r.row]}" for r in found]
        texts = [r.message + (r.as_label if self.by_default else "") for r in found]
        taken = f", where the last column, {self.label!r}, is taken as the label" if self.by_default else ""
        if len(found) == 1:
            raise InvalidData(f"{self.name}{', ' if where[0] else ''}{where[0]}: {texts[0]}")
        every = [f"  {line}{': ' if line else ''}{text}" for line, text in zip(where, texts, strict=True)]
        together = table_remarks.together(found)
        lines = [f"{self.name}: {len(found)} things in the columns stand in the way{taken}:", *every]
        raise InvalidData("\n".join([*lines, *([f"All at once: {together}"] if together else [])]))

    @contextlib.contextmanager
    def located(self) -> Iterator[None]:
        """What is wrong with the data is said with the table's name, and the line of the first row that is named."""
        try:
            yield
        except InvalidData as error:
            message = str(error)
            for in_python, here in (
                ("Drop the row or give it a label.", "Give it one, or --skip-unlabelled."),
                (
                    "Cut it into classes first, e.g. y > y.median().",
                    f"Write classes in place of the numbers in {self.label!r}, such as low and high, or name another column (--label).",
                ),
            ):
                message = message.replace(in_python, here)
            found = re.search(r"\brow (\d+)", message)
            if self.lines is None or found is None or int(found[1]) >= len(self.lines):
                raise InvalidData(f"{self.name}: {message}") from None
            line = self.lines[int(found[1])]
            message = message.replace(f" in {found[0]}", "").replace(found[0], f"line {line}")
            raise InvalidData(f"{self.name}, line {line}: {message}") from None


def load(name: str, *, seed: int = 0, **how: Any) -> CsvTable:
    """The table called ``name``: one of :data:`BUILT_IN` (``seed`` is for "toy"), or a file, as :func:`read_table` takes it."""
    if name not in BUILT_IN:
        return read_table(name, **how)
    label = how.get("label")
    if label is not None and label != "class":
        raise InvalidData(
            f"{name}: there is no label column {label!r}: built-in data have their labels in 'class'. Leave it out."
        )
    X, y = built_in(name, seed)
    kept = _kept(name, [*X.columns, "class"], how.get("features", ()), how.get("drop", ()), "class")
    return CsvTable(name, X[[c for c in kept if c != "class"]], y, "class")


def read_table(
    path: str | Path,
    *,
    label: str | None = None,  # the column that holds the labels; the last one by default
    form: CsvForm = PLAIN,
    labelled: bool = True,  # False takes every column as a feature, but for the label and those to drop
    features: Sequence[str] = (),  # columns that are used; all by default
    drop: Sequence[str] = (),
    as_text: Sequence[str] = (),  # columns that are left as they are written, also where they hold numbers
    missing: Sequence[str] = (),  # texts that stand for a missing value
) -> CsvTable:
    """Read a table from a file: CSV with a header line, or a format that pandas reads; errors name the file and the line."""
    name = str(path)
    content = _content(name, form.encoding, BUILT_IN if labelled else ())
    read = (of_text if content.frame is None else of_frame)(name, content, form, as_text, missing)
    header = list(read.frame.columns)
    _require_columns(name, header, label, form.separator, labelled)
    if not len(read.frame):
        raise InvalidData(f"{name}: the table has a header line and no rows. Add rows below line 1.")
    kept = _kept(name, header, features, drop, label)
    remarks = (*content.remarks, *(f"{name}, {r}" for r in table_remarks.on_header(kept)))
    if not labelled and label is None:
        return CsvTable(name, read.frame[kept], None, None, read.lines, remarks)
    chosen = kept[-1] if label is None else label
    if content.frame is not None:
        _require_single_values(name, read.frame[kept])
    X = read.frame[[c for c in kept if c != chosen]]
    y, written = read.labels(header.index(chosen))
    odd = [*table_remarks.on_identifiers(X), *table_remarks.on_labels(y.tolist(), chosen)]
    by_default = label is None
    if by_default:
        odd += table_remarks.on_default_label(X, y, chosen)
    remarks += tuple(f"{name}: {r}" for r in odd)
    writing = (form if content.frame is None else PLAIN).writing
    return CsvTable(name, X, y, chosen, read.lines, remarks, written, by_default, writing=writing)


def _kept(
    name: str, header: list[str], features: Sequence[str], drop: Sequence[str], label: str | None
) -> list[str]:
    """The columns that are left; refuse to leave out what is not there, the label, or everything."""
    used = named(name, header, features, "use as a feature")
    gone = named(name, header, drop, "drop")
    last = [c for c in header if c not in gone][-1:]
    chosen = label if label is not None else next(iter(last), None)
    if label in gone:
        raise InvalidData(f"{name}: {label!r} is the label, and --drop leaves it out. Leave one of them out.")
    if label is None and chosen in used:
        raise InvalidData(
            f"{name}: {chosen!r} is the last column, so it is taken as the label, and --features names it. Name the column of "
            f"the labels (--label)."
        )
    if label is not None and label in used:
        raise InvalidData(
            f"{name}: {label!r} is the label and cannot be a feature. Take it out of --features."
        )
    both = next((c for c in gone if c in used), None)
    if both is not None:
        raise InvalidData(
            f"{name}: --features names {both!r}, and --drop leaves it out. Leave one of them out."
        )
    if gone and len(set(header) - set(gone)) < 2:
        raise InvalidData(f"{name}: --drop leaves no feature. Its columns are: {listed(header)}.")
    return [c for c in header if c not in gone and (not used or c in used or c == chosen)]


def _require_single_values(name: str, frame: pd.DataFrame) -> None:
    """Refuse a column that holds lists or records, as Parquet may."""
    for column in (c for c in frame.columns if frame[c].dtype.kind == "O"):
        values = [v for v in frame[column] if hasattr(v, "__len__") and not isinstance(v, (str, bytes))]
        if values:
            raise InvalidData(
                f"{name}: column {column!r} holds several values in one cell, such as {str(values[0])[:40]}. Give each a column of "
                f"its own, or leave the column out: --drop {table_remarks.quoted(column)}."
            )


def _require_columns(name: str, header: list[str], label: str | None, separator: str, labelled: bool) -> None:
    if labelled and len(header) < 2:
        raise single_column(name, header, separator)
    if label is not None and label not in header:
        raise InvalidData(
            f"{name}, line 1: there is no label column {label!r}.{table_remarks.nearest(label, header)} Its columns are: "
            f"{listed(header)}."
        )


def _like(cell: str, value: Any, classes: Sequence[Any], writing: Writing) -> Any:
    """The label that ``cell`` is among ``classes``; what it reads as where it is none of them."""
    if all(isinstance(c, str) for c in classes):
        return value if value in classes else next((c for c in classes if c.strip() == cell), value)
    if all(isinstance(c, bool) for c in classes):
        return {"true": True, "false": False}.get(cell.lower(), cell)
    numbers = [int(cell)] if re.fullmatch(r"[+-]?[0-9]+", cell) else writing.numbers([cell])
    if numbers is None:
        return value
    return next((c for c in classes if c == numbers[0]), numbers[0])  # 1.0 where that is how 1 was fitted


def _content(name: str, encoding: str | None, names: Sequence[str]) -> Content:
    path = Path(name)
    try:
        return read_content(name, encoding)
    except FileNotFoundError:
        # Names alone: in one folder all paths are alike.
        beside = [n for n in _tables_in(path.parent) if n != path.name]
        hint = nearest(path.name, [*names, *beside])
        raise InvalidData(
            f"{name}: there is no such file.{hint} Give the path of a CSV file"
            + (f", or one of {', '.join(names)}." if names else "; built-in data are for fitting.")
        ) from None
    except IsADirectoryError:
        example = "".join(f", for example {path / inside}" for inside in _tables_in(path)[:1])
        raise InvalidData(f"{name}: this is a directory. Give the path of a CSV file{example}.") from None
    except (InvalidData, MissingPackage):
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidData(f"{name}: the file cannot be read: {reason}.") from None


def _tables_in(folder: Path) -> list[str]:
    try:
        return sorted(n for n in os.listdir(folder) if n.endswith(".csv"))
    except (OSError, ValueError):
        return []


def labelled_only(table: CsvTable) -> CsvTable:
    """The same table without the rows that have no label; the index of ``X`` still counts all, and a remark says how many went."""
    import numpy as np
    import pandas as pd

    if table.y is None:
        return table
    held = np.flatnonzero(~pd.isna(pd.Series(table.y, dtype=object).to_numpy())).tolist()
    if len(held) == len(table.y):
        return table
    if not len(held):
        raise InvalidData(
            f"{table.name}: no row has a label in {table.label!r}. Name another column (--label)."
        )
    y, cells = table.y[held], None if table.cells is None else [table.cells[i] for i in held]
    if y.dtype.kind == "f" and cells is not None and all(re.fullmatch(r"[+-]?\d+", c) for c in cells):
        y = np.array([int(c) for c in cells])  # a gap made fractions of them
    return replace(
        table,
        X=table.X.iloc[held],
        y=y,
        lines=None if table.lines is None else [table.lines[i] for i in held],
        cells=cells,
        remarks=(
            *table.remarks,
            f"{table.name}: rows without a label are left out: {len(table.y) - len(held)}.",
        ),
    )


def against_rest(table: CsvTable, chosen: str) -> CsvTable:
    """The same table with two classes: ``chosen``, and everything else as "not <chosen>"; a missing label stays one."""
    import numpy as np

    if table.y is None:
        return table
    texts = [None if is_missing(v) else str(v) for v in table.y.tolist()]
    if table.cells is not None:  # 1 is 1 where a fraction further down makes it 1.0, too
        texts = [c if c == chosen else v for c, v in zip(table.cells, texts, strict=True)]
    if chosen not in texts:
        known = sorted({t for t in texts if t is not None})
        raise InvalidData(
            f"{table.name}: no row has the label {chosen!r}.{table_remarks.nearest(chosen, known)} Its labels are: {listed(known)}."
        )
    rest = f"not {chosen}"
    y = np.array([v if v in (chosen, None) else rest for v in texts], dtype=object)
    return replace(table, y=y, cells=None, by_default=False)
