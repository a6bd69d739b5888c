"""Hard-margin SVMs with outlier trimming: how few rows are left out, for any C, and when trimming stops."""

from __future__ import annotations

import numpy as np
import pytest

from octsvm.heuristics.linear_svm import fit_linear_svm
from octsvm.heuristics.outlier_trimming import MOST_WRONG, trimmed_svm


def table(n: int, wrong: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows on both sides of a wide gap, and labels of which the first ``wrong`` are turned around."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    side = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X[:, 0] = 0.5 + side * (0.1 + 0.4 * X[:, 0])
    side[:wrong] *= -1
    return X, side


@pytest.mark.parametrize("C", [100.0, 1e4, np.inf])
@pytest.mark.parametrize("wrong", [0, 1, 4])
def test_it_gives_up_the_wrong_labels_and_no_others(wrong: int, C: float) -> None:
    X, sign = table(40, wrong)
    omega, omega0 = trimmed_svm(X, sign, np.ones(40), C)
    ys = sign * (X @ omega + omega0)
    assert set(np.flatnonzero(ys < 0)) <= set(range(wrong))  # a long vector may get round some of them
    assert (ys[:wrong] < 0).sum() >= wrong - 1
    assert ys[wrong:].min() > 0.98


def test_fewer_than_by_relabelling_all_at_once() -> None:
    # An SVM of all rows has more of them on its wrong side than are trimmed.
    better = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.random((30, 4))
        sign = np.where(X @ [1.0, -1.0, 0.5, 0.2] > 0.3, 1.0, -1.0)
        sign[rng.permutation(30)[:4]] *= -1
        omega, omega0 = fit_linear_svm(X, sign, np.ones(30), 10.0)
        usual = int((sign * (X @ omega + omega0) < 0).sum())
        omega, omega0 = trimmed_svm(X, sign, np.ones(30), 1e4)
        ours = int((sign * (X @ omega + omega0) < 0).sum())
        assert ours <= usual
        better += ours < usual
    assert better >= 3


def test_where_too_many_are_in_the_way_there_is_none() -> None:
    rng = np.random.default_rng(0)
    n = 8 * MOST_WRONG
    omega, _ = trimmed_svm(rng.random((n, 2)), rng.choice([-1.0, 1.0], n), np.ones(n), 100.0)
    assert not omega.any()


def test_the_generator_decides_and_a_used_up_budget_ends_it() -> None:
    rng = np.random.default_rng(3)
    X, sign = rng.random((30, 3)), rng.choice([-1.0, 1.0], 30, p=[0.75, 0.25])
    one, other = (trimmed_svm(X, sign, np.ones(30), 1e3, np.random.default_rng(5)) for _ in range(2))
    assert (one[0] == other[0]).all()
    assert one[1] == other[1]
    asked = []

    def tick() -> bool:
        asked.append(True)
        return True

    trimmed_svm(X, sign, np.ones(30), 1e3, None, tick)
    assert len(asked) <= 2
