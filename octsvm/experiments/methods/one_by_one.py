"""Methods whose fits share nothing: what fits one point of a grid, made what fits a whole grid."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..cells import Fit, PartData
from ..protocol import MethodSpec


def one_by_one(
    fit: Callable[[PartData, Mapping[str, float], MethodSpec, int], Fit],
) -> Callable[..., Iterator[tuple[int, Fit]]]:
    """The method that calls ``fit`` for each wanted point of the grid; seconds are measured here, whatever ``fit`` says of them."""

    @wraps(fit)
    def fit_grid(
        data: PartData,
        settings: Sequence[Mapping[str, float]],
        spec: MethodSpec,
        seed: int,
        skip: Collection[int],
    ) -> Iterator[tuple[int, Fit]]:
        for index, setting in enumerate(settings):
            if index not in skip:
                began = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # limits of work are meant
                    found = fit(data, setting, spec, seed)
                seconds = time.perf_counter() - began
                yield index, replace(found, predict=partial(_whole, found.predict), seconds=seconds)

    return fit_grid


def _whole(predict: Callable[[NDArray[np.float64]], Any], X: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.asarray(predict(X), dtype=np.int64)
