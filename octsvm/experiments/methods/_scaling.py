"""Features in [0, 1] on the training rows, as the models of the paper have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import MinMaxScaler


def unit_scaler(X: NDArray[np.float64]) -> MinMaxScaler:
    """A fitted scaler to [0, 1]; a constant column becomes 0, and new rows may lie outside."""
    return MinMaxScaler().fit(X)
