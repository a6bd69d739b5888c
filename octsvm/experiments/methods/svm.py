"""The soft-margin linear SVM: scikit-learn's SVC (libsvm) on features in [0, 1]."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from ..cells import Fit, PartData
from ..protocol import MethodSpec
from .one_by_one import one_by_one

ITERATIONS = 1_000_000  # a large C on noisy labels would otherwise take libsvm minutes


@one_by_one
def fit_grid(data: PartData, setting: Mapping[str, float], spec: MethodSpec, seed: int) -> Fit:
    """Minimise ``½·||w||² + C·(sum of the hinge losses)`` for ``C`` of a point of the grid.

    ``spec.work`` limits libsvm's iterations (a million by default); a fit that it ends has status "work_limit".
    Objective and bound are the primal and the dual value, computed here from the fitted coefficients.
    """
    if len(np.unique(data.y)) == 1:
        return Fit.constant(data.y)
    scaler, C = MinMaxScaler().fit(data.X), setting["C"]
    X = scaler.transform(data.X)
    svm = SVC(kernel="linear", C=C, max_iter=spec.work or ITERATIONS)
    svm.fit(X, data.y)
    w = np.asarray(svm.coef_, dtype=np.float64)[0]
    norm = 0.5 * float(w @ w)
    hinge = np.maximum(0.0, 1.0 - data.y * (X @ w + float(svm.intercept_[0])))
    return Fit(
        lambda X: svm.predict(scaler.transform(X)),
        0.0,
        objective=norm + C * float(hinge.sum()),
        bound=float(np.abs(svm.dual_coef_).sum()) - norm,
        status="work_limit" if svm.fit_status_ else "optimal",
        splits=1,
    )
