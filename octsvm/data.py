"""From the caller's table and labels to checked :class:`Data`; the caller's objects are never changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import InvalidData
from .formulations.base import Data, FloatArray, Formulation, IntArray, Scaling
from .formulations.read_matrix import read_matrix


def prepare(formulation: Formulation, X: Any, y: Any, *, scale: bool = True, weights: Any = None) -> Data:
    """Check ``X (n, p)``, ``y (n,)`` and ``weights (n,)`` and learn the scaling.

    Raises
    ------
    InvalidData
        Naming the column, the row or the label that cannot be used.
    """
    matrix, names = read_matrix(X)
    _require_same_order(X, y)
    classes, index = read_labels(y, len(matrix))
    w = read_weights(weights, len(matrix))
    if scale:
        scaling = Scaling.learn(matrix)
    else:
        scaling = Scaling.identity(matrix.shape[1])
        if formulation.uses_scaling and (matrix.min() < 0 or matrix.max() > 1):
            j = int(np.argmax((matrix.min(axis=0) < 0) | (matrix.max(axis=0) > 1)))
            raise InvalidData(
                f"scale=False takes the features as they are, and {formulation.name!r} needs them in [0, 1]: column "
                f"{names[j]!r} goes from {matrix[:, j].min():g} to {matrix[:, j].max():g}. Leave scale=True."
            )
    if formulation.binary_only and len(classes) > 2:
        Data(matrix, matrix, index, classes, names, scaling, w).require_two_classes(formulation.name)
    rows = tuple(X.index) if hasattr(X, "iloc") else None
    return Data(matrix, scaling.transform(matrix), index, classes, names, scaling, w, rows)


def _require_same_order(X: Any, y: Any) -> None:
    """Refuse a table and labels of pandas whose indices hold the same rows in another order: rows go by position."""
    if not (hasattr(X, "iloc") and hasattr(y, "iloc")) or len(X) != len(y) or X.index.equals(y.index):
        return
    if set(X.index) == set(y.index):
        raise InvalidData(
            "X and y have the same index in different orders, and rows are matched by position. "
            "Pass y.loc[X.index], or .to_numpy() of both where the order is meant."
        )


def read_labels(y: Any, n: int) -> tuple[tuple[Any, ...], IntArray]:
    """The distinct labels in order, and each row's index into them.

    Labels may be strings, integers, booleans or floats, of one kind.

    Raises
    ------
    InvalidData
    """
    if hasattr(y, "columns") and hasattr(y, "iloc"):
        if y.shape[1] != 1:
            raise InvalidData(f"y has {y.shape[1]} columns; give one label a row.")
        y = y.iloc[:, 0]
    values = None
    if hasattr(y, "tolist"):
        values = y.tolist()
    elif hasattr(y, "__iter__") and not isinstance(y, (str, bytes, set, frozenset, dict)):
        values = list(y)
    if not isinstance(values, list):
        raise InvalidData(
            f"y is {str(y)[:40]!r}, a {type(y).__name__}, which does not say in order which label belongs to which row. "
            "Give a list or an array."
        )
    if values and all(isinstance(v, (list, tuple)) and len(v) == 1 for v in values):
        values = [v[0] for v in values]
    values = [v.item() if isinstance(v, np.generic) else v for v in values]
    if len(values) != n:
        raise InvalidData(f"X has {n} rows and y has {len(values)} labels. Give one label a row.")
    for i, v in enumerate(values):
        missing = v is None or type(v).__name__ in ("NAType", "NaTType") or (isinstance(v, float) and v != v)
        if missing:
            raise InvalidData(f"The label of row {i} is missing ({v!r}). Drop the row or give it a label.")
        if isinstance(v, (int, float)) and not abs(v) <= 1e308:
            raise InvalidData(
                f"The label of row {i} is too large for a number of double precision ({str(v)[:20]})."
            )
        if not isinstance(v, (str, bool, int, float)):
            raise InvalidData(
                f"The label of row {i} is {v!r} ({type(v).__name__}); labels are strings, integers, booleans or floats."
            )
    kinds = {
        ("text" if isinstance(v, str) else "true/false" if isinstance(v, bool) else "numbers") for v in values
    }
    if len(kinds) > 1:
        raise InvalidData(
            f"y mixes {' and '.join(sorted(kinds))}. Give all labels one type, e.g. y = y.astype(str)."
        )
    if kinds == {"numbers"}:
        fractions = {v for v in values if float(v) != int(v)}
        if len(fractions) > 10:
            raise InvalidData(
                f"y holds {len(set(values))} different numbers, among them fractions such as {next(iter(fractions))!r}: it looks like a "
                "measurement, and these trees predict classes. Cut it into classes first, e.g. y > y.median()."
            )
    classes = tuple(sorted(set(values)))
    position = {c: k for k, c in enumerate(classes)}
    return classes, np.array([position[v] for v in values], dtype=np.int64)


def read_weights(weights: Any, n: int) -> FloatArray:
    """Weights of the rows (n,), ones by default.

    Raises
    ------
    InvalidData
    """
    if weights is None:
        return np.ones(n)
    try:
        if np.asarray(weights).dtype.kind not in "biufO":
            raise TypeError
        w = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidData(
            "weights must be numbers, one a row. For balanced classes: "
            "weights=sklearn.utils.class_weight.compute_sample_weight('balanced', y)."
        ) from None
    if w.shape != (n,):
        raise InvalidData(f"weights has shape {w.shape}, and X has {n} rows. Give one weight a row.")
    bad = ~np.isfinite(w) | (w < 0)
    if bad.any():
        i = int(np.argmax(bad))
        raise InvalidData(f"The weight of row {i} is {w[i]}; weights are finite and not negative.")
    if not (w > 0).any():
        raise InvalidData(
            "All weights are zero, so every tree costs nothing. Give at least one row a weight."
        )
    return w
