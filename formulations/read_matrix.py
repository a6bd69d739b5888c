"""From whatever holds a table (array, list, DataFrame) to a finite float matrix, or a refusal that names the column.

Tables with named columns (pandas, polars, Arrow, records of numpy) are recognised by their attributes, so that this
module needs numpy only.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .checks import listed, plural
from .errors import InvalidData
from .written_numbers import form_of, is_number

LARGEST_WHOLE = 2**53  # up to which every whole number is one in double precision


class MadeUpNames(tuple[str, ...]):
    """x1, x2, ...: names of columns that came without any. Later tables are taken by position, whatever their names."""

    @classmethod
    def of(cls, p: int) -> MadeUpNames:
        """Those of ``p`` columns."""
        return cls(f"x{j + 1}" for j in range(p))


class UndecidedNames(tuple[str, ...]):
    """x1, x2, ... of a saved tree that does not say whether they are made up: a table where that matters is refused."""


class Frame(NamedTuple):
    """A table with named columns: their ``keys``, ``rows``, and ``column(j)``."""

    keys: list[Any]
    rows: int
    column: Callable[[int], Any]


def frame_of(X: Any) -> Frame | None:
    """The named columns of ``X``; None for a table without names."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return Frame(list(X.columns), len(X), lambda j: X.iloc[:, j])
    if isinstance(X, np.ndarray) and X.dtype.names is not None and X.ndim == 1:
        return Frame(list(X.dtype.names), len(X), lambda j: _unmasked(X[X.dtype.names[j]]))
    if isinstance(X, np.ndarray):
        return None
    if hasattr(X, "collect"):
        raise InvalidData(f"X is a lazy {type(X).__name__}, which holds no values yet. Pass X.collect().")
    if hasattr(X, "column_names") and hasattr(X, "column"):  # Arrow
        return Frame(list(X.column_names), len(X), lambda j: _plain_column(X.column(j)))
    named = hasattr(X, "dtypes") or hasattr(X, "__dataframe__") or hasattr(X, "__array__")
    if named and hasattr(X, "columns") and hasattr(X, "__getitem__") and hasattr(X, "__len__"):  # polars
        keys = list(X.columns)
        return Frame(keys, len(X), lambda j: _plain_column(X[keys[j]]))
    if hasattr(X, "to_pandas"):
        return frame_of(X.to_pandas())
    if hasattr(X, "__dataframe__"):
        raise InvalidData(
            f"X is a {type(X).__name__}, whose values cannot be read here. Pass pd.api.interchange.from_dataframe(X)."
        )
    return None


def _plain_column(column: Any) -> Any:
    """A column of polars or Arrow in numpy; with a missing value as objects, so that it is None and not a number."""
    missing = getattr(column, "null_count", 0)
    if not (missing() if callable(missing) else missing):
        # Whatever numpy has no type for is looked at value by value.
        with contextlib.suppress(Exception):
            found = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
            if found.ndim == 1:
                return found
    values = getattr(column, "to_list", None) or getattr(column, "tolist", None) or column.to_pylist
    return np.array([*values(), None], dtype=object)[:-1]


def _unmasked(column: Any) -> Any:
    """A column of a masked array, with None where a value is masked."""
    masked = np.ma.isMaskedArray(column) and bool(np.ma.getmaskarray(column).any())
    return np.array([*column.tolist(), None], dtype=object)[:-1] if masked else column


def read_matrix(X: Any, expected: Sequence[str] | None = None) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return ``X`` as a C-ordered float matrix ``(n, p)`` of its own, and the names of its columns.

    Parameters
    ----------
    X : array-like (n, p)
        numpy array, nested lists, or DataFrame (of pandas, polars, Arrow) with numeric or boolean columns. Never changed.
    expected : sequence of str, optional
        Names that the columns must have (those of the training table). A DataFrame's columns are picked by
        name and may come in any order; other tables must have as many columns. By position where they are
        :class:`MadeUpNames`, which are also what a table without names gets.

    Raises
    ------
    InvalidData
        Text, missing or infinite values, a wrong shape, an empty table, unknown columns: the message names
        the column and says what to do.
    """
    for dense in ("toarray", "todense"):
        if hasattr(X, dense) and hasattr(X, "nnz"):
            raise InvalidData(f"X is a sparse matrix; these models need dense features. Pass X.{dense}().")
    frame = frame_of(X)
    if frame is not None:
        return _read_frame(frame, expected)
    if np.ma.isMaskedArray(X) and np.ma.getmaskarray(X).any():
        i, j = (int(k) for k in np.argwhere(np.atleast_2d(np.ma.getmaskarray(X)))[0])
        _refuse_missing(f"x{j + 1}", i)
    try:
        array = np.asarray(X)
        if array.dtype.kind in "USO" and not isinstance(X, np.ndarray):
            array = np.asarray(X, dtype=object)  # numpy turns a list with one text into text altogether
    except ValueError:
        raise InvalidData(
            "X is ragged: its rows have different lengths. Give every row the same number of values."
        ) from None
    if array.ndim != 2:
        if isinstance(X, Mapping) or (len(array.shape) == 1 and len(array) and isinstance(array[0], Mapping)):
            raise InvalidData("X holds its values by name, in no table. Pass pd.DataFrame(X).")
        if hasattr(X, "__next__"):
            raise InvalidData(f"X is a {type(X).__name__}, which hands out rows once only. Pass list(X).")
        hint = (
            "For one feature pass X.reshape(-1, 1), for one row X.reshape(1, -1)."
            if array.ndim == 1
            else "It needs two dimensions: rows and features."
        )
        raise InvalidData(f"X has shape {array.shape}. {hint}")
    names = tuple(expected) if expected is not None else MadeUpNames.of(array.shape[1])
    if expected is not None and array.shape[1] != len(names):
        raise InvalidData(
            f"X has {plural(array.shape[1], 'column')}, and the tree was trained on {len(names)}: {listed(names, 8)}. "
            "Pass the same features in the same order."
        )
    if 0 in array.shape:
        raise _empty(*array.shape)
    if array.dtype.kind in "biuf":
        matrix = array.astype(np.float64, order="C", copy=True)
    else:
        matrix = np.empty(array.shape)
        for j, name in enumerate(names):
            matrix[:, j] = read_column(array[:, j], name, frame=False)
    _require_finite(matrix, names)
    if expected is None and array.dtype.kind not in "bf":
        for j, name in enumerate(names):
            _require_apart(array[:, j], matrix[:, j], name)
    return matrix, names


def _read_frame(X: Frame, expected: Sequence[str] | None) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    given = [str(c) for c in X.keys]
    names = tuple(expected) if expected is not None else tuple(given)
    order = _order_of(given, expected)
    if X.rows == 0 or not names:
        raise _empty(X.rows, len(names))
    matrix = np.empty((X.rows, len(names)))
    for position, j in enumerate(order):
        matrix[:, position] = read_column(X.column(j), given[j], frame=True, key=X.keys[j])
    _require_finite(matrix, [given[j] for j in order])
    if expected is None:
        for j, name in enumerate(given):
            _require_apart(X.column(j), matrix[:, j], name)
    return matrix, names


def _order_of(given: list[str], expected: Sequence[str] | None) -> list[int]:
    """Which of the columns ``given`` are meant, in the order that is ``expected``."""
    by_position = list(range(len(given)))
    if isinstance(expected, MadeUpNames):
        if len(given) != len(expected):
            raise InvalidData(
                f"X has {plural(len(given), 'column')}, and the tree was trained on {len(expected)} without names. "
                "Pass the same features in the same order."
            )
        return by_position
    if len(set(given)) < len(given):
        twice = next(c for c in given if given.count(c) > 1)
        raise InvalidData(f"Two columns of X are called {twice!r}. Give every column its own name.")
    if expected is None:
        return by_position
    missing = [c for c in expected if c not in given]
    undecided = isinstance(expected, UndecidedNames) and len(given) == len(expected)
    if undecided and missing:
        return by_position
    if undecided and list(expected) != given:
        raise InvalidData(
            f"X has the columns {listed(given, 8)}, and this tree was saved by an octsvm that did not note whether "
            f"{listed(expected, 8)} are names or positions. Pass X[{list(expected)!r}] for names, X.to_numpy() for positions."
        )
    if missing:
        raise InvalidData(
            f"X lacks the column {missing[0]!r} that the tree was trained on; it has {listed(given, 8)}. "
            "Pass the same features (any order)."
        )
    return [given.index(c) for c in expected]


def read_column(column: Any, name: str, *, frame: bool, key: Any = None) -> NDArray[np.float64]:
    """The numbers (n,) of a column; what cannot be one is refused, with the line of Python that mends it."""
    dtype = getattr(column, "dtype", None)
    kind = getattr(dtype, "kind", "O")
    if getattr(column, "ndim", 1) > 1:  # records of numpy may hold an array a cell
        raise InvalidData(
            f"Column {name!r} holds arrays of shape {column.shape[1:]}, and features must be numbers. Give each of their values a "
            "column of its own."
        )
    if kind in "biuf" and dtype is not None:
        if hasattr(column, "isna") and bool(column.isna().any()):
            _refuse_missing(name, int(np.flatnonzero(np.asarray(column.isna()))[0]))
        return np.asarray(column, dtype=np.float64)
    if kind in "mM":
        _refuse_times(name)
    if kind == "c":
        raise InvalidData(
            f"Column {name!r} holds complex numbers. Pass its real and imaginary parts as two columns."
        )
    out = np.empty(len(column))
    for i, value in enumerate(np.asarray(column, dtype=object)):
        if isinstance(value, (str, bytes)):
            texts = [str(v) for v in np.asarray(column, dtype=object) if not is_missing(v)]
            raise InvalidData(
                f"Column {name!r} holds text (row {i}: {value!r}), and features must be numbers. "
                + _cure(
                    texts, frame, name, "" if hasattr(column, "iloc") or not frame else ".to_pandas()", key
                )
            )
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            _refuse_missing(name, i)
        if isinstance(value, (datetime.date, datetime.timedelta)):
            _refuse_times(name)
        try:
            out[i] = float(value)
        except (TypeError, ValueError, OverflowError):
            raise InvalidData(
                f"Column {name!r}, row {i} holds {value!r} ({type(value).__name__}), and features must be numbers."
            ) from None
    return out


def _cure(texts: list[str], frame: bool, name: str, convert: str, key: Any) -> str:
    """The line to write for a column of ``texts``; ``convert`` makes a frame of pandas of X."""
    numeric, form = all(is_number(v) for v in texts), form_of(texts)
    first = f"X = X{convert}; " if convert else ""
    if frame and numeric:
        return f"Its values look like numbers: {first}X[{key!r}] = pd.to_numeric(X[{key!r}])."
    if frame and form is not None:
        return f"Its values look like {form.what}: {first}X[{key!r}] = {form.code(f'X[{key!r}]')}."
    if frame and len(texts) >= 10 and len(set(texts)) == len(texts) and not any(map(is_number, texts)):
        return f"Every row has another one, as identifiers have: {first}X = X.drop(columns=[{key!r}])."
    if frame:
        return f"One-hot encode it: {first}X = pd.get_dummies(X, columns=[{key!r}], dtype=float)."
    if numeric:
        return "Its values look like numbers: X = np.asarray(X, dtype=float)."
    place = int(name[1:]) - 1 if name[1:].isdigit() else name
    return (
        "Put X into a DataFrame and one-hot encode it: "
        f"X = pd.get_dummies(pd.DataFrame(X), columns=[{place!r}], dtype=float)."
    )


def is_missing(value: Any) -> bool:
    """Whether ``value`` stands for a missing one, whichever library it comes from."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
    )


def _empty(rows: int, columns: int) -> InvalidData:
    return InvalidData(f"X is empty: it has {plural(rows, 'row')} and {plural(columns, 'column')}.")


def _refuse_times(name: str) -> None:
    raise InvalidData(
        f"Column {name!r} holds dates or durations. Turn it into a number first, e.g. days since a fixed date."
    )


def _refuse_missing(name: str, row: int) -> None:
    raise InvalidData(
        f"Column {name!r} has a missing value in row {row} (rows count from 0, unnamed columns from x1). Fill it (e.g. sklearn.impute.SimpleImputer) or drop the row."
    )


def _require_finite(matrix: NDArray[np.float64], names: Sequence[str]) -> None:
    bad = ~np.isfinite(matrix)
    if bad.any():
        i, j = (int(k) for k in np.argwhere(bad)[0])
        if np.isnan(matrix[i, j]):
            _refuse_missing(names[j], i)
        raise InvalidData(
            f"Column {names[j]!r} is infinite in row {i}. Replace it by a finite number or drop the row."
        )
    with np.errstate(over="ignore"):
        wide = ~np.isfinite(matrix.max(axis=0) - matrix.min(axis=0))
    if wide.any():
        raise InvalidData(
            f"The range of column {names[int(np.argmax(wide))]!r} overflows a double. Rescale it first."
        )


def _require_apart(column: Any, numbers: NDArray[np.float64], name: str) -> None:
    """Refuse whole numbers of a training table that are different and one in double precision: no split tells them apart."""
    if np.abs(numbers).max() < LARGEST_WHOLE:
        return
    whole = sorted({int(v) for v in np.asarray(column, dtype=object) if isinstance(v, (int, np.integer))})
    for low, high in pairwise(whole):
        if float(low) == float(high):
            raise InvalidData(
                f"Column {name!r} holds {low} and {high}, which are one number in double precision. Subtract the least value "
                "of the column first, or leave it out if it only tells rows apart."
            )
