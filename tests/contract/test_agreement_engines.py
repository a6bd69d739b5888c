"""A slice of the comparison of every engine with brute force, and the report that is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import instances
import oracles
import pytest

from benchmarks.run import read
from benchmarks.studies import agreement_engines
from octsvm import solvers
from octsvm.backends.matrix_program import Limits, Request

ENGINES = agreement_engines.engines()
# The others are in test_small_models_have_the_optimum_of_brute_force.
MODELS = [("oct", {"variant": "rank"}), ("oct_h", {}), ("moctsvm", {"norm": "l2"})]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model[0])
@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.quick_cases("highs-oct*")
@pytest.mark.every_value
def test_no_engine_claims_what_is_wrong(
    engine: str, model: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agreement_engines, "MODELS", [model])
    monkeypatch.setattr(agreement_engines, "engines", lambda chosen=None: {engine: ENGINES[engine]})
    asked = agreement_engines.STUDY.asked(count=1, seed=3, limit=30)
    lines = [cell | agreement_engines.measure(cell, asked) for cell in agreement_engines.cells(asked)]
    assert len(lines) == 1
    assert not [line for line in lines if line["faults"]]
    assert any(line.get("status") == "optimal" for line in lines) or engine == "bonmin B-Hyb"
    report = agreement_engines.report(lines)
    assert "0 wrong" in report
    assert agreement_engines.label(*model) in report


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("cbc", {"ratioGap": 0.9}),
        ("glpk", {"mipgap": 0.9}),
        ("bonmin", {"bonmin.allowable_fraction_gap": 0.9}),
    ],
)
@pytest.mark.slow
def test_a_gap_of_the_callers_own_is_no_proof(engine: str, options: dict[str, float]) -> None:
    if solvers.installed(engine) is None:
        pytest.skip(f"{engine} is not installed")
    for instance in instances.tiny("octsvm", 2, 5):
        optimum = oracles.optimum("octsvm", instance.X, instance.y, instance.params)
        line = agreement_engines.solve(instance, {}, optimum, engine, options, time_limit=10)
        assert not line["faults"], line


def test_a_claim_names_the_bound_only_within_the_gap_that_we_asked_for() -> None:
    spec = solvers.get("gurobi")
    nameless = spec.model_copy(update={"options": {}})

    def claimed(spec: solvers.SolverSpec, **options: float) -> float:
        limits = Limits(1.0, 0.1, None, 1, 0, 1e-6, options=options)
        return Request(None, spec, limits).claimed_bound(10.0)  # type: ignore[arg-type]

    assert claimed(nameless) == pytest.approx(9.0)
    assert claimed(nameless, MIPGap=0.5) == -float("inf")
    assert claimed(nameless, threads=2) == pytest.approx(9.0)
    assert claimed(spec, MIPGap=0.01) == pytest.approx(9.0)
    assert claimed(spec, MIPGapAbs=0.01) == -float("inf")
    assert claimed(spec, MIPGap=0.5) == -float("inf")


def test_every_installed_entry_is_compared() -> None:
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
    assert read(path) == [good]  # the second was cut off
