"""All four models on quarters of the eight real sets: a checked tree with bound and gap, within the limit."""

from __future__ import annotations

import pytest
from places import ROOT
from waiting import at_most

from benchmarks.cases import SETS
from benchmarks.studies import real_data

FOLDER = ROOT.parent / "shared" / "data"
LIMIT = 2.0

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the real data sets are not here (../shared/data)"
)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("formulation", real_data.MODELS)
@pytest.mark.quick_cases("*-heart")
def test_quarter_samples(name: str, formulation: str) -> None:
    asked = real_data.STUDY.asked(data=FOLDER, limit=LIMIT)
    with at_most(LIMIT + 3.0):  # with building the model and checking the tree
        cell = real_data.measure({"set": name, "formulation": formulation}, asked)
    assert cell["status"] in ("optimal", "feasible", "fallback")
    assert 0 <= cell["bound"] <= cell["objective"] * (1 + 1e-9)
    assert cell["gap"] == pytest.approx(
        (cell["objective"] - cell["bound"]) / cell["objective"] if cell["objective"] > 1e-9 else 0.0, abs=1e-6
    )
    assert cell["recomputed"] == pytest.approx(cell["objective"], rel=1e-9)
    assert cell["differing_rows"] == 0
