"""A slice of the comparison of every engine with brute force, and the report that is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import agreement_engines
import pytest

ENGINES = agreement_engines.engines()
SLICE = [("oct", {"variant": "rank"}), ("oct_h", {}), ("re_svm", {"norm": "l2"}), ("octsvm", {"norm": "l2"})]


@pytest.mark.parametrize("engine", list(ENGINES))
def test_no_engine_claims_what_is_wrong(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement_engines, "MODELS", SLICE)
    monkeypatch.setattr(agreement_engines, "engines", lambda chosen: {engine: ENGINES[engine]})
    lines = list(agreement_engines.run(1, seed=3, time_limit=10, chosen=None, done=set()))
    assert len(lines) == len(SLICE)
    assert not [line for line in lines if line["faults"]]
    assert any(line.get("status") == "optimal" for line in lines) or engine == "bonmin B-Hyb"
    report = agreement_engines.report(lines)
    assert "0 wrong" in report
    assert "octsvm default l2" in report


def test_every_installed_entry_is_compared() -> None:
    from octsvm import solvers

    table = solvers.table()
    stand_ins = {spec.otherwise for spec in table.values() if spec.otherwise}
    compared = {entry for entry, _ in ENGINES.values()}
    assert compared == {
        name for name in table if name not in stand_ins and solvers.installed(name) is not None
    }


def test_a_wrong_claim_is_seen(tmp_path: Path) -> None:
    line = {"model": "oct default", "engine": "one", "instance": "a", "optimum": 1.0, "seconds": 0.1}
    good = line | {"status": "optimal", "faults": []}
    bad = line | {"instance": "b", "status": "optimal", "faults": ["says optimal and is not"]}
    text = agreement_engines.report([good, bad])
    assert "2/2, **1 wrong**" in text
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps(good) + "\n" + json.dumps(bad)[:20])
    assert agreement_engines.read(path) == [good]  # the second was cut off
