"""What the pages say of the committed measurements holds in them, and the pages show them."""

from __future__ import annotations

import pytest

from benchmarks import pages
from benchmarks.cases import PROOFS
from benchmarks.run import read
from benchmarks.studies import incumbents, moctsvm, proofs
from benchmarks.study import RESULTS, ROOT, find, names


@pytest.mark.slow
def test_the_pages_are_those_that_the_command_writes() -> None:
    assert not [page.name for page in pages.differing()], "run python -m benchmarks pages"
    shown = {
        name
        for page in pages.DOCS.glob("*.md")
        for _, name, *_ in pages.REGION.findall(page.read_text("utf-8"))
    }
    known = pages.regions()
    assert shown <= set(known), "a region of a page has no results"
    assert {known[name][0] for name in shown} == set(pages.committed())


@pytest.mark.parametrize("name", names())
def test_what_a_study_measures_is_there(name: str) -> None:
    for path in find(name).code:
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("name", pages.committed())
def test_committed_results_say_which_code_made_them(name: str) -> None:
    assert any(pages.origins(name))
    assert "commit" in pages.origin(name)


def test_every_cell_was_measured_with_ours_and_the_crude_tree() -> None:
    measured = incumbents.by_cell(read(RESULTS / "incumbents.jsonl"))
    cells = set(incumbents.grid())
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


def test_no_engine_alone_has_a_cheaper_tree_of_many_classes_than_a_second() -> None:
    found = {
        (n["table"], n["depth"], n["way"]): n["objective"]
        for n in read(RESULTS / "moctsvm.jsonl")
        if n["what"] == "trees"
    }
    assert len(found) == len(moctsvm.TABLES) * len(moctsvm.DEPTHS) * len(moctsvm.WAYS)
    for (table, depth, _), objective in found.items():
        assert found[table, depth, "a second"] <= objective * (1 + 1e-9)


def test_no_proof_is_contradicted() -> None:
    lines = read(RESULTS / "proofs.jsonl")
    assert not proofs.disagreements(lines)
    found = proofs.by_run(lines)
    for solver in ("highs", "scip"):
        for way in ("default", "paper"):
            assert {case.index for case in PROOFS} <= {i for i, w, s in found if (w, s) == (way, solver)}
