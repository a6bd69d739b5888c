"""From the caller's table and labels to checked :class:`Data`; the caller's objects are never changed."""

from __future__ import annotations

from enum import Enum, EnumType, Flag
from typing import Any

import numpy as np

from .errors import InvalidData
from .formulations.base import Data, FloatArray, Formulation, IntArray, Scaling
from .formulations.read_matrix import frame_of, read_matrix


def prepare(
    formulation: Formulation, X: Any, y: Any, *, scale: bool = True, weights: Any = None, params: Any = None
) -> Data:
    """Check ``X (n, p)``, ``y (n,)`` and ``weights (n,)`` and learn the scaling.

    ``params`` are those of a model that is built: they decide on its rows, where they name a kernel.

    Raises
    ------
    InvalidData
        Naming the column, the row or the label that cannot be used.
    """
    matrix, names = read_matrix(X)
    require_same_rows(X, y=y, weights=weights)
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
    data = Data(matrix, scaling.transform(matrix), index, classes, names, scaling, w, rows)
    return data if params is None else formulation.model_rows(data, params)


def require_same_rows(X: Any, **others: Any) -> None:
    """Refuse what belongs to a table of pandas and has its index in another order: rows go by position.

    Raises
    ------
    InvalidData
    """
    for name, other in others.items():
        if not (hasattr(X, "iloc") and hasattr(other, "iloc")) or len(X) != len(other):
            continue
        if not X.index.equals(other.index) and set(X.index) == set(other.index):
            raise InvalidData(
                f"X and {name} have the same index in different orders, and rows are matched by position. "
                f"Pass {name}.loc[X.index], or .to_numpy() of both where the order is meant."
            )


def read_labels(y: Any, n: int) -> tuple[tuple[Any, ...], IntArray]:
    """The distinct labels in order, and each row's index into them.

    Labels may be strings, integers, booleans, floats or members of an Enum, of one kind. What does not sort is in the
    order of its definition.

    Raises
    ------
    InvalidData
    """
    values = _label_list(y)
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
        if not isinstance(v, (str, bool, int, float, Enum)):
            raise InvalidData(
                f"The label of row {i} is {v!r} ({type(v).__name__}); labels are strings, integers, booleans or floats."
            )
    kinds = {_kind(v) for v in values}
    if len(kinds) > 1:
        raise InvalidData(
            f"y mixes {' and '.join(sorted(kinds))}. Give all labels one type, e.g. y = y.astype(str)."
        )
    if kinds == {"numbers"}:
        fractions = {v for v in values if isinstance(v, float) and v != int(v)}
        if len(fractions) > 10:
            raise InvalidData(
                f"y holds {len(set(values))} different numbers, among them fractions such as {next(iter(fractions))!r}: it looks like a "
                "measurement, and these trees predict classes. Cut it into classes first, e.g. y > y.median()."
            )
    classes = _in_order(set(values))
    position = {c: k for k, c in enumerate(classes)}
    return classes, np.array([position[v] for v in values], dtype=np.int64)


def _label_list(y: Any) -> list[Any]:
    frame = frame_of(y)
    if frame is not None:
        if len(frame.keys) != 1:
            raise InvalidData(f"y has {len(frame.keys)} columns; give one label a row.")
        y = frame.column(0)
    times = getattr(getattr(y, "dtype", None), "kind", "") in ("m", "M")  # nanoseconds are integers as a list
    listed = next((getattr(y, name) for name in ("tolist", "to_pylist") if hasattr(y, name)), None)
    values = None
    if listed is not None and not times:
        values = listed()
    elif hasattr(y, "__iter__") and not isinstance(y, (str, bytes, set, frozenset, dict, EnumType)):
        values = list(y)
    if not isinstance(values, list):
        raise InvalidData(
            f"y is {str(y)[:40]!r}, a {type(y).__name__}, which does not say in order which label belongs to which row. "
            "Give a list or an array."
        )
    if values and all(isinstance(v, (list, tuple)) and len(v) == 1 for v in values):
        values = [v[0] for v in values]
    return [v.item() if isinstance(v, np.generic) and v.dtype.kind not in "mM" else v for v in values]


def _kind(label: Any) -> str:
    if isinstance(label, Enum):
        return f"members of {type(label).__name__}"
    return "text" if isinstance(label, str) else "true/false" if isinstance(label, bool) else "numbers"


def _in_order(labels: set[Any]) -> tuple[Any, ...]:
    if any(isinstance(v, Flag) for v in labels):
        return tuple(sorted(labels, key=lambda v: v.value))  # combinations have no place in the definition
    try:
        return tuple(sorted(labels))
    except TypeError:
        return tuple(v for v in type(next(iter(labels))) if v in labels)


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
