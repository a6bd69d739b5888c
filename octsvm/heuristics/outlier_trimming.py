"""Hard-margin SVMs with outlier trimming: rows that prevent the separation are left out one by one, and put back where possible.

An SVM that relabels all rows on its wrong side at once gives up too many: most of them are there because of a few.
Where giving up a label has a large penalty, the number of those few is what matters.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..formulations.base import FloatArray, IntArray
from .linear_svm import fit_linear_svm, least_slack

SEPARATED = 0.01  # of a margin that may be missing: SMO's tolerance is a tenth of it
MOST_LEFT_OUT = 20  # each takes a fit
# Rows that the usual SVM misclassifies: up to the first number fits are to a finer tolerance, beyond the second none is tried.
FEW_WRONG, MOST_WRONG = 12, 24
AMONG = 3  # rows furthest on the wrong side, of which a randomised choice takes one


def trimmed_svm(
    X: FloatArray,
    sign: FloatArray,
    weights: FloatArray,
    C: float,
    rng: np.random.Generator | None = None,
    tick: Callable[[], bool] = lambda: False,
) -> tuple[FloatArray, float]:
    """ω and ω_0 of a linear SVM with the cost ``C`` on all rows but those left out; ω = 0 where too many would have to be.

    The row that is furthest on the wrong side is left out first, with ``rng`` one of the furthest. Rows left out have no
    influence on the hyperplane. With C = inf it is the hyperplane of least slack. ``tick`` is called before every fit; True ends
    the trimming.
    """

    def fit(held: FloatArray) -> tuple[FloatArray, float]:
        return (
            least_slack(X, sign, held)
            if np.isinf(C)
            else fit_linear_svm(X, sign, held, C, patient=wrong <= FEW_WRONG)
        )

    omega, omega0 = fit_linear_svm(X, sign, weights, min(C, 1e3))
    wrong = int((sign * (X @ omega + omega0) < 0).sum())
    if wrong > MOST_WRONG:
        return np.zeros(X.shape[1]), 0.0
    held = weights.copy()
    left_out: list[int] = []
    omega, omega0 = fit(held)
    while omega.any() and len(left_out) < MOST_LEFT_OUT and not tick():
        missing = np.where(held > 0, 1.0 - sign * (X @ omega + omega0), 0.0)
        worst: IntArray = np.argsort(-missing, kind="stable")
        worst = worst[: int((missing > SEPARATED).sum())]
        if not len(worst):
            break
        row = int(worst[0] if rng is None else rng.choice(worst[:AMONG]))
        left_out.append(row)
        held[row] = 0.0
        omega, omega0 = fit(held)
    for row in left_out[:-1]:
        if not omega.any() or tick():
            break
        if sign[row] * float(X[row] @ omega + omega0) >= 1.0:
            continue  # its margin is kept as it is
        held[row] = weights[row]
        fresh, fresh0 = fit(held)
        if fresh.any() and (1.0 - sign * (X @ fresh + fresh0))[held > 0].max() <= SEPARATED:
            omega, omega0 = fresh, fresh0
        else:
            held[row] = 0.0
    return omega, omega0
