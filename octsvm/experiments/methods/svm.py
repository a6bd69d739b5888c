"""The soft-margin linear SVM: scikit-learn's SVC (libsvm) on features in [0, 1]."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from ..cells import Fit, PartData
from ..protocol import MethodSpec
from ._scaling import unit_scaler

ITERATIONS = 1_000_000  # a large C on noisy labels would otherwise take libsvm minutes


def fit_grid(
    data: PartData,
    settings: Sequence[Mapping[str, float]],
    spec: MethodSpec,
    seed: int,
    skip: Collection[int],
) -> Iterator[tuple[int, Fit]]:
    """Minimise ``½·||w||² + C·(sum of the hinge losses)`` for every ``C`` of the grid that is not in ``skip``.

    ``spec.work`` limits libsvm's iterations (a million by default); a fit that it ends has status "work_limit".
    Objective and bound are the primal and the dual value, computed here from the fitted coefficients.
    """
    scaler = unit_scaler(data.X)
    X = scaler.transform(data.X)
    for index, setting in enumerate(settings):
        if index in skip:
            continue
        began = time.perf_counter()
        if len(np.unique(data.y)) == 1:
            yield index, _constant(int(data.y[0]), time.perf_counter() - began)
            continue
        C = setting["C"]
        machine = SVC(kernel="linear", C=C, max_iter=spec.work or ITERATIONS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(X, data.y)
        seconds = time.perf_counter() - began
        w = np.asarray(machine.coef_, dtype=np.float64)[0]
        norm = 0.5 * float(w @ w)
        hinge = np.maximum(0.0, 1.0 - data.y * (X @ w + float(machine.intercept_[0])))

        def predict(X: NDArray[np.float64], machine: SVC = machine) -> NDArray[np.int64]:
            return np.asarray(machine.predict(scaler.transform(X)), dtype=np.int64)

        yield (
            index,
            Fit(
                predict,
                seconds,
                objective=norm + C * float(hinge.sum()),
                bound=float(np.abs(machine.dual_coef_).sum()) - norm,
                status="work_limit" if machine.fit_status_ else "optimal",
                splits=1,
            ),
        )


def _constant(label: int, seconds: float) -> Fit:
    """Training labels of one class: the plane that has all rows on its side costs nothing."""

    def predict(X: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.full(len(X), label, dtype=np.int64)

    return Fit(predict, seconds, objective=0.0, bound=0.0, status="optimal")
