"""Hyperplanes that separate all but a few rows: rows in the way are given up one by one, and taken back where that fits.

A machine that relabels all rows on its wrong side at once gives up too many: most of them are there because of a few.
Where giving up a label is dear, the number of those few is what matters.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..formulations.base import FloatArray, IntArray
from .linear_svm import fit_svm, least_slack

CLEAN = 0.01  # of a margin that may be missing
MOST_GIVEN_UP = 20
FEW_WRONG, MOST_WRONG = (
    12,
    24,
)  # rows on the wrong side of a usual machine: the more there are, the longer it takes
AMONG = 3  # rows furthest on the wrong side, of which a random choice takes one


def separator(
    X: FloatArray,
    sign: FloatArray,
    weights: FloatArray,
    C: float,
    rng: np.random.Generator | None = None,
    spent: Callable[[], bool] = lambda: False,
) -> tuple[FloatArray, float]:
    """ω and ω_0 of a machine with the SVM cost ``C`` on all rows but those given up; ω = 0 where too many are in the way.

    The row that is furthest on the wrong side goes first, with ``rng`` one of the furthest. Those given up have no say in
    the hyperplane, on whichever side they come to lie. With C = inf it is a hyperplane of any length and least slack. ``spent``
    is asked before every fit, and ends it all.
    """

    def machine(held: FloatArray) -> tuple[FloatArray, float]:
        return (
            least_slack(X, sign, held)
            if np.isinf(C)
            else fit_svm(X, sign, held, C, patient=wrong <= FEW_WRONG)
        )

    omega, omega0 = fit_svm(X, sign, weights, min(C, 1e3))
    wrong = int((sign * (X @ omega + omega0) < 0).sum())
    if wrong > MOST_WRONG:
        return np.zeros(X.shape[1]), 0.0
    held = weights.copy()
    given_up: list[int] = []
    omega, omega0 = machine(held)
    while omega.any() and len(given_up) < MOST_GIVEN_UP and not spent():
        missing = np.where(held > 0, 1.0 - sign * (X @ omega + omega0), 0.0)
        worst: IntArray = np.argsort(-missing, kind="stable")
        worst = worst[: int((missing > CLEAN).sum())]
        if not len(worst):
            break
        row = int(worst[0] if rng is None else rng.choice(worst[:AMONG]))
        given_up.append(row)
        held[row] = 0.0
        omega, omega0 = machine(held)
    for row in given_up[:-1]:
        if not omega.any() or spent():
            break
        if sign[row] * float(X[row] @ omega + omega0) >= 1.0:
            continue  # it lies right as it is
        held[row] = weights[row]
        fresh, fresh0 = machine(held)
        if fresh.any() and (1.0 - sign * (X @ fresh + fresh0))[held > 0].max() <= CLEAN:
            omega, omega0 = fresh, fresh0
        else:
            held[row] = 0.0
    return omega, omega0
