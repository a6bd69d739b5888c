"""The page about strategies shows what the committed measurements hold."""

from __future__ import annotations

import re

import pytest
from places import ROOT

from benchmarks import incumbents, proofs

RESULTS = ROOT / "benchmarks" / "results"
PAGE = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", [incumbents, proofs], ids=["incumbents", "proofs"])
def test_the_page_shows_the_measurements(module: object) -> None:
    name = module.__name__.split(".")[-1]
    found = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", PAGE, re.DOTALL)
    assert found
    assert found[1] == module.report(module.read(RESULTS / f"{name}.jsonl"))


def test_every_cell_was_measured_with_ours_and_the_crude_tree() -> None:
    measured = incumbents.read(RESULTS / "incumbents.jsonl")
    cells = set(
        incumbents.cells(list(incumbents.SETS), list(incumbents.SETTINGS), list(incumbents.DEPTHS), None)
    )
    assert len(cells) == 144
    for who in ("ours", "crude", "highs", "scip", "highs:paper", "scip:paper"):
        assert {cell for w, cell in measured if w == who} == cells
    # Never dearer than the crude tree, nor than the printed rows after thirty seconds.
    for cell in cells:
        for who, slack in (
            ("crude", 1e-9),
            ("highs:paper", incumbents.WORSE),
            ("scip:paper", incumbents.WORSE),
        ):
            assert measured["ours", cell]["objective"] <= measured[who, cell]["objective"] * (1 + slack)


def test_no_proof_is_contradicted() -> None:
    found = proofs.read(RESULTS / "proofs.jsonl")
    assert not proofs.disagreements(found)
    for solver in ("highs", "scip"):
        for way in ("default", "paper"):
            assert {case.index for case in proofs.PROOFS} <= {
                i for i, w, s in found if (w, s) == (way, solver)
            }
