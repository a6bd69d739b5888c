"""From the caller's table and labels to checked :class:`Data`; the caller's objects are never changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum, EnumType, Flag
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from .errors import InvalidData, InvalidParameter
from .formulations.base import Data, FloatArray, Formulation, IntArray, Scaling
from .formulations.checks import is_number, listed, plural
from .formulations.read_matrix import frame_of, read_matrix


def prepare(
    formulation: Formulation,
    X: Any,
    y: Any,
    *,
    scale: bool = True,
    weights: Any = None,
    params: Any = None,
    late: Callable[[], bool] | None = None,
) -> Data:
    """Check ``X (n, p)``, ``y (n,)`` and ``weights (n,)`` and learn the scaling.

    ``params`` are those of a model that is built: they decide on its rows, where they name a kernel; ``late`` then ends what
    takes long, as :meth:`Formulation.model_rows` says. Errors name the column, the row or the label that cannot be used.
    """
    if not isinstance(scale, bool | np.bool_):
        raise InvalidParameter(f"scale={scale!r} should be True or False.")
    matrix, names = read_matrix(X)
    require_same_rows(X=X, y=y, weights=weights)
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
    rows = tuple(X.index) if hasattr(X, "iloc") else None
    data = Data(matrix, scaling.transform(matrix), index, classes, names, scaling, w, rows)
    if formulation.binary_only:
        data.require_two_classes(formulation.name)
    return data if params is None else formulation.model_rows(data, params, late)


def require_same_rows(**tables: Any) -> None:
    """Refuse tables, labels and weights (by their names) whose pandas indices do not fit: rows go by position.

    Indices fit where they are equal, or where one of them only counts the rows: that says nothing of which row is meant.
    """
    indexed = [(name, t.index) for name, t in tables.items() if hasattr(t, "iloc") and hasattr(t, "index")]
    for (name, one), (other, two) in combinations(indexed, 2):
        if len(one) != len(two) or one.equals(two):
            continue
        if one.is_unique and set(one) == set(two):
            raise InvalidData(
                f"{name} and {other} have the same index in different orders, and rows are matched by position. "
                f"Pass {other}.loc[{name}.index], or .to_numpy() of both where the order is meant."
            )
        if not (_counts_rows(one) or _counts_rows(two)):
            k = next(k for k, (a, b) in enumerate(zip(one, two, strict=True)) if not _same(a, b))
            raise InvalidData(
                f"The indices of {name} and {other} differ (row {k} is {_plain(one[k])!r} in {name} and {_plain(two[k])!r} in {other}), and "
                f"rows are matched by position. Take both from one table, or pass .to_numpy() of both where the order is meant."
            )


def _counts_rows(index: Any) -> bool:
    """Whether an index is 0, 1, 2, ..."""
    return bool(index.dtype.kind in "iu" and (index.to_numpy() == np.arange(len(index))).all())


def _same(a: Any, b: Any) -> bool:
    """Whether two entries of an index are the same; what says neither yes nor no, as pd.NA, is the same as itself only."""
    try:
        return bool(a is b or a == b or (a != a and b != b))
    except TypeError:
        return False


def read_labels(y: Any, n: int) -> tuple[tuple[Any, ...], IntArray]:
    """The distinct labels in order, and each row's index into them.

    Labels may be whatever can be hashed and is of one kind: text, numbers, true/false, members of an Enum, dates, tuples,
    objects of one class. What does not sort is in the order of its definition, or else of its first row.

    Raises
    ------
    InvalidData
    """
    values = label_list(y)
    if len(values) != n:
        both = f"X has {plural(n, 'row')} and y has {plural(len(values), 'label')}"
        raise InvalidData(f"{both}. Give one label a row.")
    for i, v in enumerate(values):
        _require_label(v, i)
    kinds = {_kind(v) for v in values}
    if len(kinds) > 1:
        raise InvalidData(
            f"y mixes {' and '.join(sorted(kinds))}. Give all labels one type, e.g. y = y.astype(str)."
        )
    measured = {v for v in values if _is_measured(v)}
    if len(measured) > 10:
        raise InvalidData(
            f"y holds {len(set(values))} different {kinds.pop()}, such as {next(v for v in values if v in measured)!r}: it looks "
            "like a measurement, and these trees predict classes. Cut it into classes first, e.g. y > y.median()."
        )
    classes = _in_order(values)
    position = {c: k for k, c in enumerate(classes)}
    return classes, np.array([position[v] for v in values], dtype=np.int64)


def _require_label(v: Any, i: int) -> None:
    """Refuse what is no label in row ``i``: missing, not finite, or not to be hashed."""
    try:
        hash(v)
        missing = v is None or type(v).__name__ in ("NAType", "NaTType") or bool(v != v)
    except ArithmeticError:  # of a signalling NaN: it is none of the others either
        missing = True
    except Exception:  # of a class of the user's, which may do anything
        raise InvalidData(
            f"The label of row {i} is {str(v)[:40]!r}, and a {type(v).__name__} can change, or does not say what it is equal to, "
            "so that it names no class. Give one label a row, of text, numbers or tuples."
        ) from None
    if missing:
        raise InvalidData(f"The label of row {i} is missing ({v!r}). Drop the row or give it a label.")
    infinite = isinstance(v, Decimal) and v.is_infinite()
    if infinite or (isinstance(v, (int, float)) and not abs(v) <= 1e308):
        raise InvalidData(
            f"The label of row {i} is too large for a number of double precision ({str(v)[:20]})."
        )


def _is_measured(v: Any) -> bool:
    """Whether many different labels of the kind are no classes: fractions and points in time."""
    if isinstance(v, (np.datetime64, np.timedelta64, date, timedelta)):
        return True
    return isinstance(v, (float, Decimal, Fraction)) and not isinstance(v, Enum) and v != int(v)


def label_list(y: Any) -> list[Any]:
    """The labels of a list, array, series or column of any library, as they are; numbers of numpy as those of Python.

    Refused where ``y`` does not say which label belongs to which row.
    """
    if hasattr(y, "nnz"):
        raise InvalidData("y is a sparse matrix, and labels are a dense column. Pass y.toarray().ravel().")
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
    elif hasattr(y, "__array__"):
        values = np.asarray(y).tolist()
    if not isinstance(values, list):
        raise InvalidData(
            f"y is {str(y)[:40]!r}, a {type(y).__name__}, which does not say in order which label belongs to which row. "
            "Give a list or an array."
        )
    if values and all(type(v) is list and len(v) == 1 for v in values):
        values = [v[0] for v in values]
    return [_plain(v) for v in values]


def _plain(v: Any) -> Any:
    if isinstance(v, np.longdouble) and v == float(v):
        return float(v)
    return v.item() if isinstance(v, np.generic) and v.dtype.kind not in "mM" else v


def _kind(label: Any) -> str:
    if isinstance(label, Enum):
        return f"members of {type(label).__name__}"
    return next(
        (name for kind, name in _KINDS if isinstance(label, kind)), f"labels of type {type(label).__name__}"
    )


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (str, "text"),
    (bool, "true/false"),
    ((int, float), "numbers"),
)


def _in_order(values: list[Any]) -> tuple[Any, ...]:
    """The distinct ``values``, sorted where they sort."""
    labels = list(dict.fromkeys(values))
    if any(isinstance(v, Flag) for v in labels):
        return tuple(sorted(labels, key=lambda v: v.value))  # combinations have no place in the definition
    try:
        found = sorted(labels)
        if all(a < b for a, b in pairwise(found)):  # sets, say, are ordered in part only
            return tuple(found)
    except Exception:  # whatever does not sort, in its own way
        pass
    if labels and isinstance(labels[0], Enum):
        return tuple(v for v in type(labels[0]) if v in labels)
    return tuple(labels)


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
        raise InvalidData(
            f"weights has shape {w.shape}, and X has {plural(n, 'row')}. Give one weight a row."
        )
    bad = ~np.isfinite(w) | (w < 0)
    if bad.any():
        i = int(np.argmax(bad))
        raise InvalidData(f"The weight of row {i} is {w[i]}; weights are finite and not negative.")
    with np.errstate(over="ignore"):
        if not np.isfinite(w.sum()):
            raise InvalidData(
                "The weights add up to more than a number of double precision. Divide them by their largest."
            )
    if not (w > 0).any():
        raise InvalidData(
            "All weights are zero, so every tree costs nothing. Give at least one row a weight."
        )
    return w


def class_weights(
    asked: Any, weights: FloatArray, classes: Sequence[Any] | np.ndarray, position: IntArray
) -> FloatArray:
    """``weights (n,)`` times the weight of each row's class, which ``position (n,)`` gives in ``classes``.

    ``asked`` is None, "balanced" (all classes get the same total; of the weights, not of the rows, so a row of weight 2
    counts like two rows), or a dict from labels to weights.

    Raises
    ------
    InvalidData, InvalidParameter
    """
    if asked is None:
        return weights
    if isinstance(asked, str) and asked == "balanced":
        totals = np.bincount(position, weights=weights, minlength=len(classes))
        share = np.divide(1.0, totals, out=np.zeros(len(classes)), where=totals > 0)
        return np.asarray(weights * (share * weights.sum() / (totals > 0).sum())[position])
    if not isinstance(asked, dict):
        raise InvalidParameter(
            f"class_weight={asked!r} should be None, 'balanced', or a dict from labels to weights."
        )
    for label, weight in asked.items():
        if not is_number(weight) or weight < 0:
            raise InvalidParameter(
                f"class_weight gives {label!r} the weight {weight!r}; it should be a number from 0 to 1e300."
            )
    labels = list(classes)
    strange = [label for label in asked if label not in labels]
    if strange and not all(label in asked for label in labels):  # else a part of a table may lack a class
        raise InvalidParameter(
            f"class_weight has a weight for {strange[0]!r}, which is no label in y. There are {listed(labels)}."
        )
    factor = np.array([asked.get(label, 1.0) for label in labels], dtype=np.float64)
    with np.errstate(over="ignore"):
        return read_weights(weights * factor[position], len(position))
