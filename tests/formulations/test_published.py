"""Published optima of OCT (alpha = 0, N_min = 1): errors of the best tree on iris, wine and breast cancer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from places import FIXTURES
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import octsvm

FREE = {"alpha": 0.0, "n_min": 1}


@pytest.mark.parametrize(
    ("load", "depth", "errors"),
    [
        (load_iris, 1, 50),
        (load_iris, 2, 6),
        (load_iris, 3, 1),
        (load_wine, 1, 54),
        (load_wine, 2, 6),
        (load_breast_cancer, 2, 22),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
@pytest.mark.quick_cases("load_iris-1*")
def test_proved(load: Callable, depth: int, errors: int) -> None:
    X, y = load(return_X_y=True)
    result = octsvm.fit("oct", X, y, depth=depth, time_limit=400, **FREE)
    assert result.status == "optimal"
    assert result.objective == errors
    assert (result.tree.predict(X) != y).sum() == errors
    assert result.bound == pytest.approx(errors, abs=1e-3)


@pytest.mark.parametrize(
    ("load", "name", "errors"), [(load_wine, "wine", 6), (load_breast_cancer, "breast_cancer", 22)]
)
@pytest.mark.slow
def test_depth_two_as_a_start(load: Callable, name: str, errors: int) -> None:
    X, y = load(return_X_y=True)
    tree = octsvm.Tree.from_json(FIXTURES / f"{name}_depth_2.json")
    assert (tree.predict(X) != y).sum() == errors  # found by exhaustive search, see make_fixtures.py
    result = octsvm.fit("oct", X, y, depth=2, variant="rank", start=tree, time_limit=3, **FREE)
    assert result.status in ("feasible", "optimal")
    assert result.objective == errors
    assert result.bound <= errors + 1e-6
