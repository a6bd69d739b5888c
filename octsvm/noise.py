"""Label noise on purpose."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .data import label_list, read_labels
from .errors import InvalidData, InvalidParameter
from .formulations.checks import is_number, whole
from .formulations.trees import label_array


def flip_labels(y: Any, share: float, seed: int = 0) -> NDArray[Any]:
    """Return the labels with exactly ``round(share · n)`` of them changed; ``y`` stays untouched.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any kind; with more than two classes, a flipped label becomes one of the others, each as likely.
    share : float
        Between 0 and 1.
    seed : int
        The same seed flips the same rows; 0 by default, so that two calls with the same labels and share do.

    Returns
    -------
    ndarray of shape (n,)
        The rows that were flipped are ``np.flatnonzero(returned != np.asarray(y))``.

    Raises
    ------
    InvalidData, InvalidParameter
        No other label to flip to; a share or seed out of range.
    """
    if not is_number(share) or not 0 <= share <= 1:
        raise InvalidParameter(f"share={share!r} should be a number between 0 and 1.")
    seed = whole("seed", seed, 0)
    values = label_list(y)
    n = len(values)
    classes, index = read_labels(values, n)
    count = round(float(share) * n)
    if count and len(classes) < 2:
        raise InvalidData("y holds one class only, so there is no other label to flip to.")
    rng = np.random.default_rng(seed)
    rows = rng.permutation(n)[:count]
    step = rng.integers(1, max(2, len(classes)), size=count)
    index[rows] = (index[rows] + step) % max(1, len(classes))
    return label_array(classes)[index]
