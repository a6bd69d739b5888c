"""All four models on quarters of the eight real sets: a checked tree with bound and gap, within the limit."""

from __future__ import annotations

import pytest
from places import ROOT
from waiting import at_most

import octsvm
from benchmarks.cases import SETS, quarter

FOLDER = ROOT.parent / "shared" / "data"
LIMIT = 1.0
MODELS = {
    "octsvm": {"depth": 1},
    "oct": {"depth": 2, "n_min": 0.05},
    "oct_h": {"depth": 2, "n_min": 0.05},
    "re_svm": {},
}

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the real data sets are not here (../shared/data)"
)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("formulation", MODELS)
@pytest.mark.quick_cases("oct-heart")
@pytest.mark.every_value
def test_quarter_samples(name: str, formulation: str) -> None:
    X, y = quarter(FOLDER, name)[:2]
    params = MODELS[formulation]
    with at_most(LIMIT + 3.0):  # with building the model and checking the tree
        result = octsvm.fit(formulation, X, y, time_limit=LIMIT, on_mismatch="ignore", **params)
        costs = {k: v for k, v in params.items() if k != "depth"}
        again = octsvm.evaluate(formulation, result.tree, X, y, **costs)
    assert result.status in ("optimal", "feasible", "fallback")
    assert 0 <= result.bound <= result.objective * (1 + 1e-9)
    gap = (result.objective - result.bound) / result.objective if result.objective > 1e-9 else 0.0
    assert result.gap == pytest.approx(gap, abs=1e-6)
    assert again.objective == pytest.approx(result.objective, rel=1e-9)
    assert not len(result.differing_rows)
