"""Tables and labels as the classifiers take them: by octsvm's own rules, and with scikit-learn's conventions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import check_classification_targets

from ..data import label_list, read_labels
from ..errors import InvalidData
from ..formulations.base import FloatArray, IntArray
from ..formulations.read_matrix import MadeUpNames, frame_of, read_matrix
from ..formulations.trees import label_array

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # before 1.6 it was a method

    def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """Check ``X (m, p)`` and ``y (m,)``, and keep or compare the features' number and names."""
        return estimator._validate_data(X, y, **options)


MOST_CELLS = 2**27  # of a sparse table whose zeros are written out: numbers that take a GiB


def read_training(estimator: Any, X: Any, y: Any) -> tuple[FloatArray, NDArray[Any], NDArray[Any], IntArray]:
    """Check a fit's table and labels, and keep the features' number and names.

    Returned are the table (n, p), its labels (n,), the distinct ones in order (K,), and each label's index into these (n,).
    Labels that scikit-learn knows pass its checks. Others (members of an Enum, integers beyond 64 bits, dates, tuples)
    are taken as :func:`octsvm.fit` takes them. For cells of an array that are neither text nor numbers scikit-learn raises
    a TypeError.
    """
    X = _dense(X)
    if y is None or isinstance(y, (str, bytes, int, float)):
        _checked(estimator, X, y)  # raises
    values = label_list(y)
    known = _as_scikit_learn_knows(y, values)
    if known is None:
        matrix = read_rows(estimator, X, reset=True)
        _or_ours(X, check_consistent_length, matrix, values)
        found, position = read_labels(values, len(matrix))
        return matrix, label_array(values), label_array(found), position
    matrix, labels = _checked(estimator, _table(X), known)
    _or_ours(X, check_classification_targets, labels)
    read_labels(values, len(values))
    classes, index = np.unique(labels, return_inverse=True)
    return matrix, labels, classes, index.reshape(-1)


def read_rows(estimator: Any, X: Any, *, reset: bool = False) -> FloatArray:
    """``X (m, p)`` as numbers; its features are those of the fit, or with ``reset`` become them."""
    X = _dense(X)
    by_position = not reset and not hasattr(estimator, "feature_names_in_")
    found: FloatArray = _checked(estimator, _table(X, by_position=by_position), reset=reset)
    return found


def _dense(X: Any) -> Any:
    """A sparse table with its zeros written out; anything else as it is."""
    if not (hasattr(X, "nnz") and hasattr(X, "toarray")):
        return X
    cells = math.prod(X.shape)
    if cells > MOST_CELLS:
        raise InvalidData(
            f"X is sparse with {' x '.join(map(str, X.shape))} cells. The models know no zeros that are left out, and written "
            f"out these take {cells / 2**27:.3g} GiB, where 1 GiB is the most that is done unasked. Choose columns first (e.g. "
            "sklearn.feature_selection.SelectKBest, sklearn.decomposition.TruncatedSVD), or pass X.toarray()."
        )
    return X.toarray()


def _table(X: Any, *, by_position: bool = False) -> Any:
    """``X`` for scikit-learn; what it would make other numbers of, or refuse without a column's name, is read here."""
    frame = frame_of(X)
    if frame is not None:
        import pandas as pd

        # Columns by position: whether the names are those of the fit, scikit-learn says.
        matrix, _ = read_matrix(X, MadeUpNames.of(len(frame.keys)))
        if by_position and len(set(frame.keys)) < len(frame.keys):
            return matrix
        if len({type(key) for key in frame.keys}) > 1 and any(isinstance(key, str) for key in frame.keys):
            raise InvalidData(
                "The names of X's columns are text and other things, of which scikit-learn keeps text only. Give all columns "
                "text: X.columns = X.columns.astype(str)."
            )
        # As objects: not every text that Python holds is one to Arrow, which pandas keeps text in.
        return pd.DataFrame(matrix, columns=pd.Index(frame.keys, dtype=object, tupleize_cols=False))
    if isinstance(X, np.ndarray) and type(X) is not np.ndarray:
        return read_matrix(X)[0]  # masks, and what scikit-learn refuses
    plain = isinstance(X, (np.ndarray, Sequence)) or hasattr(X, "__array__")
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    text = kind in "US" or (kind == "O" and any(isinstance(v, (str, bytes)) for v in np.ravel(X)))
    return X if plain and not text and kind not in ("m", "M", "V") else read_matrix(X)[0]


def _checked(estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
    return _or_ours(X, validate_data, estimator, X, *y, dtype=np.float64, **options)


def _or_ours(X: Any, check: Any, *given: Any, **options: Any) -> Any:
    """scikit-learn's check; where it refuses, our words on the table come first, with column and row."""
    try:
        return check(*given, **options)
    except InvalidData:
        raise
    except (ValueError, TypeError) as error:
        if isinstance(error, TypeError) and isinstance(X, np.ndarray):
            raise
        message = str(error)
    try:
        read_matrix(X)
    except InvalidData as ours:
        message = str(ours) if "convert string" in message else f"{ours}\n{message}"
    raise InvalidData(message)


def _as_scikit_learn_knows(y: Any, values: list[Any]) -> Any | None:
    """``y``, or its labels in an array, where scikit-learn keeps them exactly; None where it does not."""
    if not all(type(v) in (str, bool, int, float) for v in values):
        return None
    array = label_array(values)
    if array.dtype == object:
        return None
    held = np.asarray(y) if isinstance(y, (list, tuple)) else y
    kind = getattr(getattr(held, "dtype", None), "kind", "")
    if not isinstance(held, np.ndarray) and not hasattr(held, "iloc"):
        return array
    if kind in "biuf" and not isinstance(getattr(held, "dtype", None), np.dtype):
        return array  # pandas' own integers and booleans, which scikit-learn makes floats of
    texts = all(isinstance(v, str) for v in values)
    if kind in "biufU" or (kind == "O" and texts) or getattr(held, "ndim", 1) == 2:
        return y if np.asarray(held).reshape(-1).tolist() == values else array
    return array
