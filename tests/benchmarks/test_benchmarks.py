"""The measurements run, their reports hold what they measured, and the limit is the model's own matrix."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import octsvm
from benchmarks import tables
from benchmarks.__main__ import main
from benchmarks.cases import CASES, PHASES, PROOFS
from benchmarks.limit import matrix
from benchmarks.phases import PEERS, size
from benchmarks.run import read, run
from benchmarks.studies import own_fuzz, proofs, re_svm_proofs, speed
from benchmarks.study import find, names
from octsvm.backends.matrix_program import LinearProgram
from octsvm.data import prepare
from octsvm.formulations.registry import formulation


def bench(*arguments: str) -> SimpleNamespace:
    """What the command of the benchmarks prints, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: Any = main([*arguments])
        except SystemExit as end:
            code = end.code
    if isinstance(code, str):  # a message, which Python prints before it ends with 1
        code, _ = 1, err.write(code)
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


def measured(folder: Path, *more: str) -> list[dict[str, Any]]:
    """The lines of a short run of the study of speed."""
    out = folder / "results.jsonl"
    done = bench("run", "speed", "--quick", "--out", str(out), *more)
    assert done.returncode == 0, done.stderr
    return [json.loads(text) for text in out.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return measured(tmp_path_factory.mktemp("benchmarks"))


@pytest.mark.slow
def test_each_case_and_phase_is_measured_once(lines: list[dict[str, Any]]) -> None:
    found = [(line["case"], line["phase"]) for line in lines]
    assert found == [(name, phase) for name, case in CASES.items() for phase in case.phases]
    assert {phase for _, phase in found} == set(PHASES)
    for line in lines:
        if line["phase"] in PEERS:
            assert "--peers" in line["error"]
            continue
        assert line["seconds"] > 0
        assert line["nonzeros"] > line["rows"] > 0
        assert line["us_per_nonzero"] == pytest.approx(1e6 * line["seconds"] / line["nonzeros"])
        assert line["versions"]["octsvm"] == octsvm.__version__


def test_all_formulations_variants_and_norms_are_there() -> None:
    variants = [case for case in CASES.values() if case.group == "variants"]
    built = {(c.formulation, c.params.get("variant"), c.params.get("norm")) for c in variants}
    for name in ("oct", "re_svm", "octsvm", "moctsvm"):
        for variant in formulation(name).variants:
            for norm in (None,) if name == "oct" else ("l2", "l1"):
                assert (name, variant, norm) in built
    assert ("oct_h", None, None) in built


@pytest.mark.slow
def test_solved_cases_are_proved_optimal(lines: list[dict[str, Any]]) -> None:
    solved = [line for line in lines if line["phase"] == "solve"]
    assert solved
    assert {line["status"] for line in solved} == {"optimal"}


@pytest.mark.slow
def test_report_names_every_case(lines: list[dict[str, Any]]) -> None:
    text = speed.report(lines)
    for name, case in CASES.items():
        assert case.group.startswith("growth") or f"| {name} |" in text
    assert "### Growth in n" in text
    assert "### Ratios" in text
    assert f"pyomo {lines[0]['versions']['pyomo']}" in text


def test_compare_gives_ratios_and_says_what_is_noise(tmp_path: Path) -> None:
    cases = "case=oct-bd-60x10,re_svm-compact-l2-12x2"
    lines = measured(tmp_path, "--only", cases, "--only", "phase=build,solve")
    own = [line | {"runs": 5, "spread": 0.1} for line in lines if "seconds" in line]
    slower = [line | {"seconds": 2 * line["seconds"]} for line in own]
    assert "slower" in compare(own, slower)
    assert "| 2 |" in compare(own, slower)
    assert "within the noise" in compare(own, own)
    assert "in common" in compare(own[:1], own[1:2])
    assert "not the same case" in compare(own, [line | {"n": 99} for line in own])


@pytest.mark.parametrize("name", [name for name in names() if find(name).cells is not None])
def test_every_study_names_its_cells(name: str, tmp_path: Path) -> None:
    study = find(name)
    options = study.options | study.quick | {"limit": 1.0, "data": tmp_path}
    asked = study.asked(**{**options, "quick": True})
    if name == "refine":  # its cells are known when the grid is fitted
        return
    cell = next(iter(study.cells(asked)))
    assert set(study.key) <= set(cell)
    assert json.loads(json.dumps(cell)) == cell


def test_an_unknown_study_field_or_value_is_refused(tmp_path: Path) -> None:
    out = str(tmp_path / "out.jsonl")
    for words, said in (
        (("run", "nothing"), "There is no study 'nothing'"),
        (("run", "bridges", "--out", out, "--only", "case=1"), "A cell has no 'case'"),
        (("run", "bridges", "--out", out, "--only", "index"), "FIELD=VALUE"),
        (("run", "table2", "--out", out), "octsvm table2 run"),
        (("run", "readings", "--out", out), "--data"),
        (("report", "bridges"), "python -m benchmarks run bridges"),
        (("report", "proofs", "--part", "x"), "profile"),
    ):
        done = bench(*words)
        assert done.returncode, words
        assert said in done.stderr, words
    assert not Path(out).exists()


def test_a_run_says_what_made_it_and_a_fault_is_its_exit_code(tmp_path: Path) -> None:
    from dataclasses import replace

    from benchmarks import run as runner

    out = tmp_path / "out.jsonl"
    study = replace(find("bridges"), measure=lambda cell, asked: {"faults": [1] * cell["index"]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "find", lambda name: study)
        assert run("bridges", out, study.asked(count=2), {"index": ["0"]}) == 0
        assert run("bridges", out, study.asked(count=2), {}) == 1
        assert run("bridges", out, study.asked(count=2), {"index": ["0"]}, again=True) == 0
    lines = runner.read(out)
    assert len(lines) == 6
    assert len(study.last(lines)) == 4
    assert all({"commit", "versions", "load"} <= set(line) for line in lines)


@pytest.mark.slow
def test_cells_in_processes_of_their_own_fail_alone_and_skip_alone(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    one = ["--solver", "nothing", "--only", "index=0", "--only", "way=default"]
    done = bench("run", "proofs", "--out", str(out), *one)
    assert done.returncode == 1
    assert "FAILED proofs: 0, default, nothing: " in done.stderr
    few = ["--only", "table=sonar", "--only", "c2=5.0", "--limit", "1", "--data", str(tmp_path)]
    done = bench("run", "re_svm_proofs", "--out", str(out), *few)
    assert done.returncode == 0, done.stderr
    assert "SKIPPED re_svm_proofs: ours, sonar, 10.0, 5.0: sonar is not in " in done.stdout
    assert not out.exists()


def test_an_unknown_case_is_refused_with_the_names(tmp_path: Path) -> None:
    done = bench("run", "speed", "--only", "case=nothing", "--out", str(tmp_path / "out.jsonl"))
    assert done.returncode == 2
    assert "octsvm-paper" in done.stderr


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_the_limit_is_the_matrix_of_the_default_model(depth: int) -> None:
    rng = np.random.default_rng(depth)
    X, y = rng.random((11, 4)), np.arange(11) % 2
    form = formulation("octsvm")
    params = form.Params.make("octsvm", depth=depth)
    ours = matrix(prepare(form, X, y, scale=True, weights=None), params)

    model = octsvm.build("octsvm", X, y, depth=depth)
    model.margin.cone.deactivate()
    for i in range(11):
        model.assignment.z[i, 1].unfix()
    program = LinearProgram.compile(model)
    at = []
    for v in program.columns:
        name, index = v.parent_component().local_name, v.index()
        places = () if index is None else index if isinstance(index, tuple) else (index,)
        node = 0 if name == "omega" else len(places) - 1  # nodes count from 1
        at.append(int(ours.columns[name][tuple(i - (k == node) for k, i in enumerate(places))]))
    by_hand = ours.program()
    assert np.abs(program.A - by_hand.A[:, at]).max() < 1e-12
    np.testing.assert_allclose(program.row_low, by_hand.row_low)
    np.testing.assert_allclose(program.row_high, by_hand.row_high)
    np.testing.assert_allclose(program.low, by_hand.low[at])
    np.testing.assert_allclose(program.high, by_hand.high[at])


def test_nonzeros_are_counted_as_the_matrix_has_them() -> None:
    model = octsvm.build("octsvm", np.random.default_rng(0).random((9, 3)), np.arange(9) % 2, norm="l1")
    for i in range(9):
        model.assignment.z[i, 1].unfix()
    program = LinearProgram.compile(model)
    rows, nonzeros = program.A.shape[0], program.A.nnz
    assert size(model) == {"rows": rows, "nonzeros": nonzeros, "variables": program.n}


def compare(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> str:
    return tables.compare(speed.STUDY, before, after)


def _proof(index: int, way: str, **more: Any) -> dict[str, Any]:
    found = {"status": "optimal", "objective": 4.0, "bound": 4.0, "nodes": 1}
    spent = {"seconds": 1.0, "cpu": 1.0, "limit": 60.0}
    return {"index": index, "way": way, "solver": "highs", **found, **spent, **more}


def test_proofs_are_compared_by_shifted_means_and_must_agree() -> None:
    found = [_proof(0, "default"), _proof(0, "paper", seconds=19.0, cpu=19.0)]
    told = proofs.report(found)
    assert "| paper | 1 | 1 | 19.00 | 19.00 | 19.00 | 1 | 19.0 times (19.0 by processor) |" in told
    assert "All proved optima agree" in told
    assert proofs.seconds_of(_proof(0, "paper", status="feasible", seconds=3.0), "seconds") == 60.0
    assert proofs.shifted_mean([1.0, 7.0], 1.0) == pytest.approx(3.0)
    wrong = [_proof(0, "default"), _proof(0, "paper", objective=3.0, bound=3.0)]
    assert len(proofs.disagreements(wrong)) == 2
    assert proofs.profile(found).splitlines()[1] == "1,1,0"


def test_the_tables_of_the_proofs_are_fixed_by_their_index() -> None:
    assert len(PROOFS) >= 24
    assert sum(case.n >= 11 for case in PROOFS) > len(PROOFS) / 2
    for case in PROOFS:
        X, y = case.table()
        assert X.shape == (case.n, case.p)
        assert 8 <= case.n <= 16
        assert 2 <= case.p <= 5
        assert set(y) == {-1, 1}
        np.testing.assert_array_equal(X, case.table()[0])
    assert {(case.params["depth"], case.labels) for case in PROOFS} == {
        (d, k) for d in (1, 2) for k in ("plane", "xor")
    }
    cell = {"index": 23, "way": "default", "solver": "highs"}
    line = proofs.measure(cell, proofs.STUDY.asked(limit=30.0))
    assert line["status"] == "optimal"
    with proofs.changed("without mixes"):
        assert not hasattr(octsvm.build("octsvm", *PROOFS[23].table(), depth=1), "mixes")
    assert hasattr(octsvm.build("octsvm", *PROOFS[23].table(), depth=1), "mixes")


@pytest.mark.slow
def test_proofs_of_re_svm_are_measured_and_compared(tmp_path: Path) -> None:
    out = tmp_path / "re_svm.jsonl"
    for who, solver in (("ours", ""), ("highs", "highs")):
        more = ["--quick", "--who", who, "--solver", solver, "--only", "table=30x10"]
        shown = bench("run", "re_svm_proofs", "--out", str(out), *more)
        assert shown.returncode == 0, shown.stderr
    lines = read(out)
    assert [line["solver"] for line in lines] == ["branch_and_reduce", "highs"]
    assert "| 30x10 (30 × 10) | (1, 1) | ours |" in shown.stdout
    assert "No bound lies above an objective." in shown.stdout
    lines[1]["bound"] = 2 * lines[0]["objective"]
    assert "highs has the bound" in re_svm_proofs.report(lines)


@pytest.mark.slow
def test_the_fuzz_is_taken_up_where_it_stopped(tmp_path: Path) -> None:
    out = tmp_path / "fuzz.jsonl"
    assert run("own_fuzz", out, own_fuzz.STUDY.asked(count=2, seed=3, solver="highs"), {}) == 0
    with out.open("a") as file:
        file.write('{"seed": 5, "for')  # cut off
    asked = own_fuzz.STUDY.asked(count=3, seed=3, solver="highs")
    assert run("own_fuzz", out, asked, {}) == 0
    assert [line["seed"] for line in asked.done] == [3, 4, 5]
    assert own_fuzz.report(asked.done).startswith("3 instances, ")
