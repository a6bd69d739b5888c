"""From whatever holds a table (array, list, DataFrame) to a finite float matrix, or a refusal that names the column.

DataFrames are recognised by their attributes, so that this module needs numpy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidData


def read_matrix(X: Any, expected: Sequence[str] | None = None) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return ``X`` as a C-ordered float matrix ``(n, p)`` of its own, and the names of its columns.

    Parameters
    ----------
    X : array-like (n, p)
        numpy array, nested lists, or DataFrame with numeric or boolean columns. Never changed.
    expected : sequence of str, optional
        Names that the columns must have (those of the training table). A DataFrame's columns are picked by
        name and may come in any order; other tables must have as many columns.

    Raises
    ------
    InvalidData
        Text, missing or infinite values, a wrong shape, an empty table, unknown columns: the message names
        the column and says what to do.
    """
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise InvalidData("X is a sparse matrix; these models need dense features. Pass X.toarray().")
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return _read_frame(X, expected)
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
        hint = (
            "For one feature pass X.reshape(-1, 1), for one row X.reshape(1, -1)."
            if array.ndim == 1
            else "It needs two dimensions: rows and features."
        )
        raise InvalidData(f"X has shape {array.shape}. {hint}")
    names = tuple(expected) if expected is not None else tuple(f"x{j + 1}" for j in range(array.shape[1]))
    if expected is not None and array.shape[1] != len(names):
        raise InvalidData(
            f"X has {array.shape[1]} columns, and the tree was trained on {len(names)}: {_some(names)}. "
            "Pass the same features in the same order."
        )
    if 0 in array.shape:
        raise InvalidData(f"X is empty: it has {array.shape[0]} rows and {array.shape[1]} columns.")
    if array.dtype.kind in "biuf":
        matrix = array.astype(np.float64, order="C", copy=True)
    else:
        matrix = np.empty(array.shape)
        for j, name in enumerate(names):
            matrix[:, j] = _read_column(array[:, j], name, frame=False)
    _require_finite(matrix, names)
    return matrix, names


def _read_frame(X: Any, expected: Sequence[str] | None) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    given = [str(c) for c in X.columns]
    if len(set(given)) < len(given):
        twice = next(c for c in given if given.count(c) > 1)
        raise InvalidData(f"Two columns of X are called {twice!r}. Give every column its own name.")
    names = tuple(expected) if expected is not None else tuple(given)
    missing = [c for c in names if c not in given]
    if missing and len(given) == len(names) and all(c == f"x{j + 1}" for j, c in enumerate(names)):
        # The tree was trained on a table without names: go by position.
        order = list(range(len(given)))
    elif missing:
        raise InvalidData(
            f"X lacks the column {missing[0]!r} that the tree was trained on; it has {_some(given)}. "
            "Pass the same features (any order)."
        )
    else:
        order = [given.index(c) for c in names]
    if len(X) == 0 or not names:
        raise InvalidData(f"X is empty: it has {len(X)} rows and {len(names)} columns.")
    matrix = np.empty((len(X), len(names)))
    for position, j in enumerate(order):
        matrix[:, position] = _read_column(X.iloc[:, j], given[j], frame=True, key=X.columns[j])
    _require_finite(matrix, names)
    return matrix, names


def _read_column(column: Any, name: str, *, frame: bool, key: Any = None) -> NDArray[np.float64]:
    dtype = getattr(column, "dtype", None)
    kind = getattr(dtype, "kind", "O")
    if kind in "biuf" and dtype is not None:
        if hasattr(column, "isna") and bool(column.isna().any()):
            _refuse_missing(name, int(np.flatnonzero(np.asarray(column.isna()))[0]))
        return np.asarray(column, dtype=np.float64)
    if kind in "mM":
        raise InvalidData(
            f"Column {name!r} holds dates or durations. Turn it into a number first, e.g. days since a fixed date."
        )
    if kind == "c":
        raise InvalidData(
            f"Column {name!r} holds complex numbers. Pass its real and imaginary parts as two columns."
        )
    out = np.empty(len(column))
    for i, value in enumerate(np.asarray(column, dtype=object)):
        if isinstance(value, (str, bytes)):
            if (
                frame
                and isinstance(value, str)
                and _is_number(value.replace(",", "."))
                and not _is_number(value)
            ):
                raise InvalidData(
                    f"Column {name!r} holds text (row {i}: {value!r}) that looks like numbers with a decimal comma. Read the "
                    f"file with decimal=',' (--decimal on the command line), or X[{key!r}] = "
                    f"X[{key!r}].str.replace(',', '.').astype(float)."
                )
            raise InvalidData(
                f"Column {name!r} holds text (row {i}: {value!r}), and features must be numbers. "
                + _cure(all(_is_number(v) for v in np.asarray(column, dtype=object)), frame, name, key)
            )
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            _refuse_missing(name, i)
        try:
            out[i] = float(value)
        except (TypeError, ValueError, OverflowError):
            raise InvalidData(
                f"Column {name!r}, row {i} holds {value!r} ({type(value).__name__}), and features must be numbers."
            ) from None
    return out


def _cure(numeric: bool, frame: bool, name: str, key: Any) -> str:
    """The line to write for a column of text."""
    if frame and numeric:
        return f"Its values look like numbers: X[{key!r}] = pd.to_numeric(X[{key!r}])."
    if frame:
        return f"One-hot encode it: X = pd.get_dummies(X, columns=[{key!r}], dtype=float)."
    if numeric:
        return "Its values look like numbers: X = np.asarray(X, dtype=float)."
    place = int(name[1:]) - 1 if name[1:].isdigit() else name
    return (
        "Put X into a DataFrame and one-hot encode it: "
        f"X = pd.get_dummies(pd.DataFrame(X), columns=[{place!r}], dtype=float)."
    )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _refuse_missing(name: str, row: int) -> None:
    raise InvalidData(
        f"Column {name!r} has a missing value in row {row}. Fill it (e.g. sklearn.impute.SimpleImputer) or drop the row."
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


def _some(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(repr(c) for c in names[:most]) + (", ..." if len(names) > most else "")
