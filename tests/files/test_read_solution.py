"""Write here, solve there, load the result: with solvers that run as programs of their own."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import other_host
import pyomo.environ as pyo
import pytest
from places import FIXTURES

import octsvm
from octsvm.formulations.registry import NAMES, formulation

RNG = np.random.default_rng(5)
X = RNG.random((6, 2))
Y = (X[:, 0] + 0.3 * X[:, 1] > 0.6).astype(int)
Y[2] = 1 - Y[2]  # one wrong label
TREE = {"depth": 1, "alpha": 0.1}
SVM = {"c1": 3.0, "c2": 4.0}
RE_SVM = {"c1": 50.0, "c2": 60.0}

RANK = TREE | {"variant": "rank"}
CASES: dict[str, tuple[str, dict[str, Any], bool]] = {
    # name: formulation, parameters, whether there are quadratics
    "oct": ("oct", TREE, False),
    "oct-flow": ("oct", TREE | {"variant": "flow"}, False),
    "oct-rank": ("oct", TREE | {"variant": "rank"}, False),
    "oct-bd": ("oct", TREE | {"variant": "bd"}, False),
    "oct_h": ("oct_h", TREE, False),
    "oct_h-bd": ("oct_h", TREE | {"variant": "bd", "mu": 0.05}, False),
    **{
        f"re_svm-{norm}{'-' if v else ''}{v or ''}": (
            "re_svm",
            RE_SVM | {"norm": norm, "variant": v},
            norm == "l2",
        )
        for norm in ("l1", "l2")
        for v in (None, "compact", "paper")
    },
    **{
        f"octsvm-{norm}{'-' if v else ''}{v or ''}": (
            "octsvm",
            SVM | {"depth": 0, "c3": 0.1, "norm": norm, "variant": v},
            norm == "l2",
        )
        for norm in ("l1", "l2")
        for v in (None, "compact", "paper")
    },
    **{
        f"moctsvm-{norm}{'-' if v else ''}{v or ''}": (
            "moctsvm",
            SVM | {"depth": 1, "c3": 0.1, "norm": norm, "variant": v},
            norm == "l2",
        )
        for norm in ("l1", "l2")
        for v in (None, *formulation("moctsvm").variants)
    },
    "octsvm-l1-deep": ("octsvm", SVM | {"depth": 1, "c3": 0.1, "norm": "l1"}, False),
    "octsvm-l2-deep": ("octsvm", SVM | {"depth": 1, "c3": 0.1}, True),
}
# Ceilings of the size-limited licences: rows and columns together with a quadratic term.
TOO_LARGE = {("xpress", "octsvm-l2-deep")}


def build(case: str) -> pyo.ConcreteModel:
    name, params, _ = CASES[case]
    return octsvm.build(name, X, Y, **params)


# SCIP reads every model in every format; the others are given one model of each kind.
MAIN = (
    "oct",
    "oct_h",
    "re_svm-l1",
    "re_svm-l2",
    "octsvm-l1-deep",
    "octsvm-l2-deep",
    "octsvm-l2",
    "moctsvm-l1",
)
GENERIC = ("oct", "re_svm-l2", "octsvm-l1-deep")


def jobs_of(engine: str) -> list[tuple[str, str, bool]]:
    """Case, ending, compact: what an engine is given."""
    endings, quadratics, _ = other_host.READS[engine]
    return [
        (case, ending, compact)
        for case in (CASES if engine == "scip" else MAIN)
        for ending in endings
        for compact in ((False, True) if case in GENERIC else (False,))
        if (quadratics or not CASES[case][2]) and (engine, case) not in TOO_LARGE
    ]


JOBS = [(engine, *job) for engine in other_host.READS for job in jobs_of(engine)]


@cache
def optimum_of(case: str) -> float:
    return octsvm.solve(build(case), gap=1e-6).objective


def solved(engine: str, case: str, ending: str, compact: bool, folder: Path) -> Path:
    """The solution file of a job."""
    solve = other_host.engines()[engine]
    if solve is None:
        pytest.skip(f"no program here that is or speaks {engine}")
    model = octsvm.write(build(case), folder / f"model{ending}", compact=compact)
    solve([(model, folder / "model.sol")])
    return folder / "model.sol"


def test_all_formulations_variants_and_norms_are_among_the_cases() -> None:
    for name in NAMES:
        form = formulation(name)
        for norm in ("l1", "l2") if "norm" in form.Params.model_fields else (None,):
            found = {
                p.get("variant")
                for n, p, _ in CASES.values()
                if n == name and p.get("norm", "l2" if norm else None) == norm
            }
            assert found >= {None, *form.variants}, (name, norm)


def test_five_solvers_are_here() -> None:
    here = {name for name, solve in other_host.engines().items() if solve is not None}
    assert here >= {"highs", "scip", "gurobi", "cplex", "cbc"} or len(here) < 5, here
    if len(here) < 5:
        pytest.skip(f"only {sorted(here)} are installed here")


@pytest.mark.parametrize(("engine", "case", "ending", "compact"), JOBS, ids=lambda v: str(v).strip("."))
@pytest.mark.quick_cases("highs-*-lp-False", "cbc-oct-mps-*")
@pytest.mark.every_value
def test_written_here_solved_there_and_loaded(
    engine: str, case: str, ending: str, compact: bool, tmp_path: Path
) -> None:
    path = solved(engine, case, ending, compact, tmp_path)
    model = build(case)
    optimum = optimum_of(case)
    result = octsvm.read_solution(model, path)
    assert result.objective == pytest.approx(optimum, rel=2e-6, abs=1e-7)
    proved = model.info.least  # in building it: depth 1 of oct is enumerated
    assert result.status == ("optimal" if proved > 0 else "feasible")
    assert result.solver == other_host.READS[engine][2]
    assert result.stop == "file"
    assert (result.bound, result.gap) == ((proved, 0.0) if proved > 0 else (0.0, 1.0))
    assert result.model_objective == pytest.approx(optimum, rel=1e-4)
    assert result.tree.splits.any()
    assert f"read from {path.name!r}" in result.notes[0]
    assert "other data" not in result.notes[0]
    name, params, _ = CASES[case]
    params = {k: v for k, v in params.items() if k != "depth"}
    assert octsvm.evaluate(
        name, result.tree, X[: result.n], Y[: result.n], **params
    ).objective == pytest.approx(result.objective, rel=1e-9)
    # The model holds that very tree.
    assert pyo.value(model.cost) == pytest.approx(result.objective, rel=1e-6)
    assert octsvm.extract(model).to_dict()["kind"] == result.tree.to_dict()["kind"]
    assert json.loads(result.to_json())["stop"] == "file"


# ------------------------------------------------------------------------------------------- which column is which


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    """An oct as model.mps with its sidecar, and the optimal solution of HiGHS, by names."""
    return answered(build("oct-rank"), tmp_path, "model.mps")


def answered(model: pyo.ConcreteModel, folder: Path, name: str, compact: bool = False) -> Path:
    """Write a model and, as a solver would, its optimal values."""
    octsvm.write(model, folder / name, compact=compact)
    octsvm.solve(model)
    columns = json.loads((folder / f"{name}.json").read_text())["columns"]
    value = {v.name: v.value for v in model.component_data_objects(pyo.Var)}
    lines = [f"{c} {value[v]!r}\n" for c, v in columns if v is not None]
    path = (folder / name).with_suffix(".sol")
    path.write_text(f"# Objective value = {pyo.value(model.objective)!r}\n" + "".join(lines))
    return path


def refused(model: pyo.ConcreteModel, path: Path, *says: str, **options: Any) -> None:
    before = [v.value for v in model.component_data_objects(pyo.Var)]
    with pytest.raises(octsvm.InvalidSolutionFile) as caught:
        octsvm.read_solution(model, path, **options)
    for text in says:
        assert text in str(caught.value)
    assert [v.value for v in model.component_data_objects(pyo.Var)] == before


def test_the_sidecar_is_found_or_named(answer: Path, tmp_path: Path) -> None:
    optimum = octsvm.solve(build("oct-rank")).objective
    found = octsvm.read_solution(build("oct-rank"), answer)
    assert (found.objective, found.status) == (optimum, "feasible")
    assert not any("sidecar" in note for note in found.notes)
    for sidecar in ("model.mps.json", "model.mps"):
        assert (
            octsvm.read_solution(build("oct-rank"), answer, sidecar=tmp_path / sidecar).objective == optimum
        )
    for name in ("model.mps.sol", "model.highs.sol"):  # "model", then what the solver adds
        again = answer.with_name(name)
        again.write_text(answer.read_text())
        assert not any("sidecar" in n for n in octsvm.read_solution(build("oct-rank"), again).notes)
    elsewhere_ = tmp_path / "other.sol"
    elsewhere_.write_text(answer.read_text())
    by_names = octsvm.read_solution(build("oct-rank"), elsewhere_)
    assert by_names.objective == optimum
    assert "no sidecar was found" in by_names.notes[1]
    refused(build("oct-rank"), answer, "There is no sidecar", sidecar=tmp_path / "none.json")


@pytest.mark.parametrize("ending", [".lp", ".mps", ".nl"])
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.quick_cases("False-*", "True-.lp")
def test_without_a_sidecar_names_are_found_again(ending: str, compact: bool, tmp_path: Path) -> None:
    path = answered(build("octsvm-l2"), tmp_path, f"model{ending}", compact)
    optimum = octsvm.read_solution(build("octsvm-l2"), path).objective
    (tmp_path / f"model{ending}.json").unlink()
    found = octsvm.read_solution(build("octsvm-l2"), path)
    assert found.objective == pytest.approx(optimum, rel=1e-9)
    assert "no sidecar was found" in found.notes[1]


def test_the_answer_to_another_model_is_refused(answer: Path, tmp_path: Path) -> None:
    refused(
        octsvm.build("oct", X, Y, **RANK | {"alpha": 0.2}),
        answer,
        "alpha=0.1 there and 0.2 here",
        "Build the model",
    )
    refused(octsvm.build("oct_h", X, Y, **TREE), answer, "'oct'", "'oct_h'")
    refused(octsvm.build("oct", X, 1 - Y, **RANK), answer, "other data", build("oct-rank").info.data.digest)
    refused(octsvm.build("oct", X[::-1], Y[::-1], **RANK), answer, "other data", "their order")
    wider = build("oct-rank")
    wider.extra = pyo.Var(bounds=(0, 1))
    wider.row = pyo.Constraint(expr=wider.extra >= wider.split.b[1])
    refused(wider, answer, "extra", "were added or unfixed since")
    smaller = build("oct-rank")
    smaller.del_component("split")
    refused(smaller, answer, "split.a[1,0]", "none of that name")
    fixed = build("oct-rank")
    fixed.split.d[1].fix(0)
    refused(fixed, answer, "split.d[1] is fixed to 0", "has 1")
    text = answer.read_text()
    answer.write_text(text + "stranger 1\n")
    refused(build("oct-rank"), answer, "stranger", "another model file")
    (tmp_path / "model.mps.json").unlink()
    refused(build("oct-rank"), answer, "stranger", "not those of this model")
    answer.write_text(
        text.replace(
            next(line for line in text.splitlines() if "assignment_z(0_2)" in line), "assignment_z(0_2) 0.5"
        )
    )
    refused(build("oct-rank"), answer, "assignment.z[0,2] = 0.5", "relaxed")


def test_a_sidecar_that_is_wrong_is_refused(answer: Path, tmp_path: Path) -> None:
    side = tmp_path / "model.mps.json"
    content = json.loads(side.read_text())
    for change, says in (
        ({"version": 99}, "Upgrade octsvm"),
        ({"columns": 3}, "damaged"),
        ({"columns": [["a"]]}, "damaged"),
        ({"params": 5}, "damaged"),
        ({"params": ["depth"]}, "damaged"),
        ({"sha256": "0"}, "no longer the file"),
    ):
        side.write_text(json.dumps(content | change, indent=1))
        refused(build("oct-rank"), answer, "model.mps", says)
    side.write_text("{")
    refused(build("oct-rank"), answer, "no JSON", sidecar=side)
    side.write_text('{"schema": "octsvm.tree"}')
    refused(build("oct-rank"), answer, "no sidecar of a model file", sidecar=side)
    side.write_text(json.dumps({k: v for k, v in content.items() if k != "columns"}, indent=1))
    refused(build("oct-rank"), answer, "damaged", "columns")


def test_of_several_model_files_the_one_that_fits(tmp_path: Path) -> None:
    path = answered(build("oct"), tmp_path, "model.mps")
    octsvm.write(build("oct"), tmp_path / "model.lp")
    assert octsvm.read_solution(build("oct"), path).tree.splits.any()  # the same names in both
    octsvm.write(octsvm.build("oct", X, Y, depth=1, alpha=0.7), tmp_path / "model.lp")
    assert octsvm.read_solution(build("oct"), path).tree.splits.any()  # the other is of another model
    path = answered(build("oct"), tmp_path, "model.mps", compact=True)
    octsvm.write(build("oct"), tmp_path / "model.lp", compact=True)
    assert octsvm.read_solution(build("oct"), path).stop == "file"  # it lacks columns of the .lp
    # Where zeros are left out it may be either, and x7 is one variable in the .lp and another in the .mps.
    values = [line for line in path.read_text().splitlines()[1:] if float(line.split()[1])]
    sides = [dict(json.loads((tmp_path / f"model.{e}.json").read_text())["columns"]) for e in ("lp", "mps")]
    both = [line for line in values if all(line.split()[0] in names for names in sides)]
    path.write_text("\n".join(["solution status: optimal", "objective value: 1", *both]))
    refused(build("oct"), path, "several model files", "'model.lp.json', 'model.mps.json'")
    (tmp_path / "model.lp.json").unlink()
    (tmp_path / "model.mps.json").unlink()
    refused(build("oct"), path, "could be the answer to .lp and .mps", "sidecar=")
    octsvm.write(build("oct"), tmp_path / "model.mps", compact=True)
    path = answered(build("oct"), tmp_path, "model.mps", compact=True)
    assert octsvm.read_solution(build("oct"), path, sidecar=tmp_path / "model.mps").stop == "file"


def test_a_column_that_gurobi_leaves_out_is_told(answer: Path) -> None:
    lines = answer.read_text().splitlines(keepends=True)
    answer.write_text("".join(line for line in lines if not line.endswith((" 0.0\n", " 0\n"))))
    found = octsvm.read_solution(build("oct-rank"), answer)
    assert any("columns are not in the file, and were taken to be 0" in note for note in found.notes)
    answer.write_text(
        "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 1\n# Columns 1\nsplit_d(1) 1\n"
    )
    refused(build("oct-rank"), answer, "lacks the columns")


# ---------------------------------------------------------------------------------------------- what holds, what not


def changed(path: Path, **values: float) -> None:
    lines = path.read_text().splitlines()
    names = {k.replace("__", "(") + ")": v for k, v in values.items()}
    path.write_text(
        "\n".join(
            f"{w} {names.get(w, v)}" if w != "#" else f"# {v}"
            for w, v in (line.split(" ", 1) for line in lines)
        )
        + "\n"
    )


def test_an_answer_that_claims_too_little_does_not_hold(tmp_path: Path) -> None:
    path = answered(build("octsvm-l1-deep"), tmp_path, "model.lp")
    optimum = octsvm.read_solution(build("octsvm-l1-deep"), path).objective
    text = path.read_text()
    # No errors anywhere, and a margin for nothing: no point of the model.
    path.write_text(
        "\n".join(
            f"{line.split()[0]} 0" if line.startswith(("hinge_e", "margin_delta", "relabelling_xi")) else line
            for line in text.splitlines()
        )
        + "\n"
    )
    model = build("octsvm-l1-deep")
    with pytest.raises(octsvm.CertificateMismatch) as caught:
        octsvm.read_solution(model, path)
    assert "does not hold outside its solver" in str(caught.value)
    assert "model.sol" in str(caught.value)
    with pytest.warns(UserWarning, match="does not hold"):
        octsvm.read_solution(build("octsvm-l1-deep"), path, on_mismatch="warn")
    found = octsvm.read_solution(build("octsvm-l1-deep"), path, on_mismatch="ignore")
    for result in (caught.value.result, found):
        assert (result.status, result.stop) == ("unverified", "file")
        assert result.objective >= optimum * (1 - 1e-6)
        assert result.model_objective < optimum - 0.1
        assert octsvm.evaluate(
            "octsvm",
            result.tree,
            X[:6],
            Y[:6],
            **{k: v for k, v in CASES["octsvm-l1-deep"][1].items() if k != "depth"},
        ).objective == pytest.approx(result.objective)
    # The tree in it is the optimal one, and is polished up to what it costs in truth.
    assert found.objective == pytest.approx(optimum, rel=1e-6)


def test_rows_that_go_elsewhere_do_not_hold(answer: Path) -> None:
    optimum = octsvm.solve(build("oct-rank")).objective
    changed(answer, assignment_z__0_2=1, assignment_z__0_3=1)
    found = octsvm.read_solution(build("oct-rank"), answer, on_mismatch="ignore")
    assert found.status == "unverified"
    assert found.differing_rows == (0,)
    assert found.objective >= optimum


def test_a_poor_answer_is_feasible_and_one_worse_than_no_split_is_not_returned(tmp_path: Path) -> None:
    model = octsvm.build("oct", X, Y, depth=1, alpha=0.1, variant="rank")
    path = answered(model, tmp_path, "model.lp")
    expensive = octsvm.build("oct", X, Y, depth=1, alpha=5.0, variant="rank")
    (tmp_path / "model.lp.json").unlink()
    found = octsvm.read_solution(expensive, path)
    assert found.status == "fallback"
    assert not found.tree.splits.any()
    assert any("without a split is better" in note for note in found.notes)
    # The file's objective was another, which is the sign of other parameters where no sidecar tells.
    assert "may be the answer to other data or parameters" in found.notes[0]
    assert pyo.value(expensive.cost) == found.objective


def test_digits_that_a_file_rounds_are_polished(tmp_path: Path) -> None:
    path = answered(build("octsvm-l2"), tmp_path, "model.lp")
    optimum = octsvm.solve(build("octsvm-l2"), gap=1e-7).objective
    lines = [line.split() for line in path.read_text().splitlines()]
    path.write_text(
        "\n".join(f"{w[0]} {float(w[1]):.5g}" if w[0] != "#" else " ".join(w) for w in lines) + "\n"
    )
    found = octsvm.read_solution(build("octsvm-l2"), path)
    assert found.status == "feasible"
    assert found.objective == pytest.approx(optimum, rel=1e-6)


def test_rows_of_your_own_bind_what_is_read(tmp_path: Path) -> None:
    def model() -> pyo.ConcreteModel:
        m = build("oct")
        m.no_second_feature = pyo.Constraint(expr=m.split.a[1, 0] == 0)
        m.penalty = pyo.Var(bounds=(0, 5))
        m.tie = pyo.Constraint(expr=m.penalty >= 2 * m.split.d[1])
        m.objective.set_value(m.cost + m.penalty)
        return m

    path = answered(model(), tmp_path, "model.mps")
    optimum = octsvm.solve(model()).objective
    found = octsvm.read_solution(model(), path)
    assert found.objective == pytest.approx(optimum)
    assert found.bound == 0.0  # the penalty is never negative
    free = answered(build("oct"), tmp_path, "free.mps")
    (tmp_path / "free.mps.json").unlink()
    with pytest.raises(octsvm.CertificateMismatch, match="tie is violated"):
        octsvm.read_solution(model(), free)


def test_where_the_answer_breaks_a_row_of_your_own_the_result_has_a_tree_that_keeps_it(
    tmp_path: Path,
) -> None:
    path = answered(build("oct"), tmp_path, "free.mps")
    model = build("oct")
    model.mine = pyo.Constraint(expr=model.split.d[1] <= 0)
    with pytest.raises(octsvm.CertificateMismatch, match="mine is violated") as caught:
        octsvm.read_solution(model, path)
    kept = caught.value.result
    assert not kept.tree.splits.any()
    octsvm.embed(model, kept.tree)  # no row is broken
    # No tree that keeps the rows is known: the one returned is the answer's, and that is said.
    model.mine.deactivate()
    model.other = pyo.Constraint(expr=sum(model.leaf_label.c[1, t] for t in (2, 3)) == 0)
    model.splits = pyo.Constraint(expr=model.split.d[1] >= 1)
    with pytest.raises(octsvm.CertificateMismatch, match="the one returned is the answer's"):
        octsvm.read_solution(model, path)


def test_parts_of_your_own_that_are_there_and_not_here_are_told(tmp_path: Path) -> None:
    limited = build("oct-rank")
    limited.mine = pyo.Constraint(expr=limited.split.d[1] <= 0)
    path = answered(limited, tmp_path, "model.mps")
    assert octsvm.read_solution(limited, path).status == "feasible"
    plain = octsvm.read_solution(build("oct-rank"), path)
    assert any("other parts of your own (mine there and not here)" in note for note in plain.notes)
    with pytest.raises(octsvm.InvalidParameter, match=r"bound=1 is one of another model.*mine"):
        octsvm.read_solution(build("oct-rank"), path, bound=1.0)
    # Of a sidecar of an earlier version nobody knows.
    beside = tmp_path / "model.mps.json"
    content = json.loads(beside.read_text())
    del content["own"]
    beside.write_text(json.dumps(content))
    assert not any("other parts" in note for note in octsvm.read_solution(build("oct-rank"), path).notes)


def test_an_objective_or_a_row_that_was_changed_is_a_part_of_your_own(tmp_path: Path) -> None:
    path = answered(build("oct-rank"), tmp_path, "model.mps")
    model = build("oct-rank")
    model.objective.set_value(model.cost + 0.01 * model.split.d[1])
    model.split.d[1].fix(1)
    notes = octsvm.read_solution(model, path).notes
    assert any("(objective, split.d here and not there)" in note for note in notes)


def test_a_cost_of_nothing_is_optimal(tmp_path: Path) -> None:
    model = octsvm.build("oct", X, (X[:, 0] > 0.5).astype(int), depth=1, alpha=0.0)
    found = octsvm.read_solution(model, answered(model, tmp_path, "model.lp"))
    assert (found.objective, found.bound, found.status, found.gap) == (0.0, 0.0, "optimal", 0.0)


def test_files_without_a_point_and_models_without_a_formulation(answer: Path, tmp_path: Path) -> None:
    fixtures = FIXTURES / "solutions"
    for name in ("asl_infeasible.sol", "scip_infeasible.sol", "cbc_time_limit.sol", "highs_time_limit.sol"):
        refused(build("oct-rank"), fixtures / name, name, "holds no solution to read", "octsvm.solve(model)")
    with pytest.raises(octsvm.InvalidParameter, match=r"octsvm\.build"):
        octsvm.read_solution(pyo.ConcreteModel(), answer)
    with pytest.raises(octsvm.InvalidParameter, match="on_mismatch"):
        octsvm.read_solution(build("oct-rank"), answer, on_mismatch="never")
    two = build("oct-rank")
    two.second = pyo.Objective(expr=two.cost)
    with pytest.raises(octsvm.UnsupportedProblem, match="2 active objectives"):
        octsvm.read_solution(two, answer)
    refused(build("oct-rank"), tmp_path / "none.sol", "There is no file")


def test_glpk_without_a_sidecar_is_told_how_names_are_had(tmp_path: Path) -> None:
    path = FIXTURES / "solutions" / "glpk.sol"  # of another model
    refused(build("oct-rank"), path, "glpsol write names as well (-o in place of -w)")
