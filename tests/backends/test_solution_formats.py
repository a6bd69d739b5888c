"""Solution files as solvers write them: tests/fixtures/solutions holds files of real runs on one model of 43 columns."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from places import FIXTURES

import octsvm
from octsvm.backends import solution_formats as solution_files
from octsvm.backends.solution_formats import WRITTEN_BY, read

FILES = FIXTURES / "solutions"
ALL = sorted(p.name for p in FILES.iterdir())

# file: kind, columns given, objective, status, whether there is a point
WANTED = {
    "asl.sol": ("asl", 43, None, "optimal solution found", True),
    "asl_cone.sol": ("asl", 23, None, "optimal solution found", True),
    "asl_infeasible.sol": ("asl", 0, None, "infeasible", False),
    "asl_time_limit.sol": ("asl", 0, None, "time limit reached", False),
    "cbc.sol": ("cbc", 43, 1.1, "Optimal", True),
    "cbc_all.sol": ("cbc", 43, 1.1, "Optimal", True),
    "cbc_dev_infeasible.sol": ("cbc", 43, None, "Integer infeasible", False),
    "cbc_infeasible.sol": ("cbc", 43, None, "Infeasible", False),
    "cbc_time_limit.sol": (
        "cbc",
        43,
        None,
        "Stopped on time (no integer solution - continuous used)",
        False,
    ),
    "cplex.sol": ("cplex", 43, 1.1, "integer optimal solution", True),
    "cplex_cone.sol": ("cplex", 23, 4.0, "integer optimal solution", True),
    "glpk.sol": ("glpk", 43, 1.1, "INTEGER OPTIMAL", True),
    "glpk_infeasible.sol": ("glpk", 43, None, "INTEGER EMPTY", False),
    "glpk_printed.txt": ("glpk", 43, 1.1, "INTEGER OPTIMAL", True),
    "glpk_printed_infeasible.txt": ("glpk", 43, None, "INTEGER EMPTY", False),
    "gurobi.sol": ("gurobi", 43, 1.1, "", True),
    "gurobi_cone.sol": ("gurobi", 23, 4.0, "", True),
    "highs_glpsol.sol": ("glpk", 43, 1.1, "INTEGER OPTIMAL", True),
    "highs_infeasible.sol": ("highs", 0, None, "Infeasible", False),
    "highs_newer.sol": ("highs", 43, 1.1, "Optimal", True),
    "highs_newer_infeasible.sol": ("highs", 0, None, "Infeasible", False),
    "highs_newer_pretty.sol": ("highs", 43, 1.1, "Optimal", True),
    "highs_newer_sparse.sol": ("highs", 25, 1.1, "Optimal", True),
    "highs_pretty.sol": ("highs", 43, 1.1, "Optimal", True),
    "highs_pretty_infeasible.sol": ("highs", 0, None, "Infeasible", False),
    "highs_raw.sol": ("highs", 43, 1.1, "Optimal", True),
    "highs_sparse.sol": ("highs", 25, 1.1, "Optimal", True),
    "highs_time_limit.sol": ("highs", 0, None, "Time limit reached", False),
    "scip.sol": ("scip", 25, 1.1, "optimal solution found", True),
    "scip_best.sol": ("scip", 25, 1.1, "", True),
    "scip_cone.sol": ("scip", 9, 4.0, "", True),
    "scip_infeasible.sol": ("scip", 0, None, "infeasible", False),
    "xpress.slx": ("xpress", 43, None, "", True),
    "xpress_infeasible.slx": ("xpress", 0, None, "", False),
}


def columns_of(found: solution_files.SolutionFile) -> int:
    return len(found.values or ()) if found.ordered is None else len(found.ordered)


def refused(path: Path, text: str | bytes, kind: str | None = None) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(octsvm.InvalidSolutionFile) as caught:
        read(path, kind)
    message = str(caught.value)
    assert path.name in message or "kind=" in message
    return message


def test_every_file_and_every_kind_is_tried() -> None:
    assert set(WANTED) == set(ALL)
    assert {w[0] for w in WANTED.values()} == set(WRITTEN_BY) == set(solution_files.READERS)
    for kind in WRITTEN_BY:  # each with a point and without one; Gurobi and CPLEX write nothing then
        assert {w[4] for w in WANTED.values() if w[0] == kind} >= (
            {True} if kind in ("gurobi", "cplex") else {True, False}
        )


@pytest.mark.parametrize("name", ALL)
def test_a_file_is_recognised_and_read(name: str) -> None:
    kind, columns, objective, status, has_point = WANTED[name]
    found = read(FILES / name)
    assert (found.kind, columns_of(found), found.status, found.has_point) == (
        kind,
        columns,
        status,
        has_point,
    )
    assert (found.objective is None) == (objective is None)
    if objective is not None:
        assert found.objective == pytest.approx(objective)
    assert bool(found.why) != has_point
    if kind == "asl":
        assert (
            found.code
            == {"asl.sol": 0, "asl_cone.sol": 0, "asl_infeasible.sol": 200, "asl_time_limit.sol": 472}[name]
        )
    same = read(FILES / name, kind)
    assert (same.status, columns_of(same)) == (status, columns)


@pytest.mark.parametrize("name", [n for n in ALL if WANTED[n][4] and WANTED[n][1] not in (9, 23)])
def test_values_are_those_of_a_point_of_the_model(name: str) -> None:
    # Each of the six rows is in one of two leaves; 0.1 for the split and one error.
    found = read(FILES / name)
    if found.values is None:
        assert found.ordered is not None
        assert np.isin(np.round(found.ordered, 6), [0, 0.2, 0.4, 0.6, 0.8, 1]).all()
        return
    at = {
        k: found.values.get(k, 0.0 if found.sparse else math.nan)
        for i in range(6)
        for k in (f"assignment_z({i}_2)", f"assignment_z({i}_3)")
    }
    for i in range(6):
        assert at[f"assignment_z({i}_2)"] + at[f"assignment_z({i}_3)"] == pytest.approx(1)
    errors = found.values.get("leaf_label_L(2)", 0.0) + found.values.get("leaf_label_L(3)", 0.0)
    assert 0.1 * found.values["split_d(1)"] + errors == pytest.approx(1.1)


def test_the_order_of_a_file_without_names_is_that_of_the_model() -> None:
    names = list(read(FILES / "glpk_printed.txt").values or {})
    ordered = read(FILES / "glpk.sol").ordered
    assert ordered is not None
    printed = read(FILES / "glpk_printed.txt").values
    assert printed is not None
    assert dict(zip(names, ordered.tolist(), strict=True)) == pytest.approx(printed)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", list(WRITTEN_BY))
def test_a_file_read_as_another_kind_is_refused(name: str, kind: str, tmp_path: Path) -> None:
    if kind == WANTED[name][0]:
        return
    message = refused(tmp_path / name, (FILES / name).read_text(), kind)
    assert "cannot be read as" in message


# The last line of these may be cut without loss: names are counted, or nothing follows.
@pytest.mark.parametrize("name", [n for n in ALL if WANTED[n][4]])
def test_a_file_that_was_cut_off_is_refused_or_shorter(name: str, tmp_path: Path) -> None:
    text = (FILES / name).read_text()
    kind, columns, *_ = WANTED[name]
    counted = kind not in ("scip", "gurobi", "cbc")
    seen = 0
    for cut in range(1, len(text) - 1, max(1, len(text) // 150)):
        path = tmp_path / name
        path.write_text(text[:cut])
        try:
            found = read(path)
        except octsvm.InvalidSolutionFile:
            seen += 1
        else:
            if name == "cbc_all.sol" and found.values and next(iter(found.values)).startswith("c_e_"):
                continue  # of its rows, which stand first; no column of a model has such a name
            assert columns_of(found) <= columns
            if counted:  # all there, only what follows the columns is missing
                assert columns_of(found) == columns
                assert found.has_point
    assert seen > (75 if counted and kind != "highs" else 0)


def test_options_of_ampl_solvers() -> None:
    text = (FILES / "asl.sol").read_text()
    plain = read(FILES / "asl.sol").ordered
    head = "Options\n3\n1\n0\n1\n70\n0\n43\n43\n"
    assert head in text
    variants = {
        # a tolerance after the counts, two more options announced than given
        "vbtol": text.replace(head, "Options\n5\n1\n3\n1\n70\n0\n43\n43\n0.0\n"),
        "duals": text.replace(head, "Options\n3\n1\n1\n0\n70\n70\n43\n43\n" + "-1.5e-3\n" * 70),
        "message": "\nbonmin: Optimal\n\n" + text.split("\n", 2)[2],
        "no message": text[text.index("Options") :],
        "windows": text.replace("\n", "\r\n"),
        "no code": text.replace("objno 0 0", "objno 0"),
        "suffixes": text + "suffix 0 2 7 0 0\nstatus\n0 1\n3 4\n",
    }
    for name, variant in variants.items():
        found = solution_files.READERS["asl"](variant)
        assert solution_files.detect(variant) == "asl", name
        assert np.array_equal(found.ordered, plain), name
        assert found.has_point, name
        assert found.code == (None if name == "no code" else 0), name
    assert solution_files.READERS["asl"](variants["message"]).status == "bonmin: Optimal"


@pytest.mark.parametrize(
    ("code", "point"), [(0, True), (100, True), (220, False), (300, False), (422, True), (500, False)]
)
def test_solve_codes(code: int, point: bool, tmp_path: Path) -> None:
    path = tmp_path / "model.sol"
    path.write_text((FILES / "asl.sol").read_text().replace("objno 0 0", f"objno 0 {code}"))
    found = read(path)
    assert (found.code, found.has_point) == (code, point)
    assert point or str(code) in found.why


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e+20", "-1e30", "+infinity"])
@pytest.mark.parametrize(
    "name",
    ["asl.sol", "gurobi.sol", "scip.sol", "highs_raw.sol", "cplex.sol", "cbc.sol", "glpk.sol", "xpress.slx"],
)
def test_a_value_that_is_no_number_is_no_point(name: str, value: str, tmp_path: Path) -> None:
    lines = (FILES / name).read_text().splitlines()
    at = next(
        k
        for k, line in enumerate(lines)
        if "assignment_l(3)" in line or line.startswith("j 20 ") or (name == "asl.sol" and k == 20)
    )
    lines[at] = {
        "asl.sol": value,
        "cplex.sol": f'<variable name="assignment_l(3)" index="1" value="{value}"/>',
        "cbc.sol": f"  17 assignment_l(3) {value} 0",
        "glpk.sol": f"j 20 {value}",
        "xpress.slx": f" C assignment_l(3) {value}",
    }.get(name, f"assignment_l(3) {value}")
    (tmp_path / name).write_text("\n".join(lines) + "\n")
    found = read(tmp_path / name)
    assert not found.has_point
    assert "nan" in found.why if value == "nan" else "infinity" in found.why


def test_what_is_no_solution_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answer.sol"
    assert "is empty" in refused(path, "")
    assert "is empty" in refused(path, " \n\n")
    assert "zero byte" in refused(path, b"\x00\x01" * 40)
    assert "UTF-8" in refused(path, b"\xff\xfe\xfa garbage")
    assert "binary form" in refused(path, b"\x06\x00\x00\x00binary\x06\x00\x00\x00")
    message = refused(path, "hello world\n")
    assert "'hello world'" in message
    assert "kind='asl', 'highs'" in message
    assert "no kind" in refused(path, "hello\n", "cplx")
    assert "not well formed" in refused(path, "<?xml version='1.0'?>\n<CPLEXSolution><header/>")
    assert "second value" in refused(path, "# Objective value = 1\nx 1\nx 2\n")
    assert "line 2 holds 'one'" in refused(path, "# Objective value = 1\nx one\n")
    assert "recognised" in refused(path, "<?xml version='1.0'?>\n<osrl/>")
    with pytest.raises(octsvm.InvalidSolutionFile, match="There is no file"):
        read(tmp_path / "nowhere.sol")
    with pytest.raises(octsvm.InvalidSolutionFile, match="directory"):
        read(tmp_path)


def test_sparse_files_may_hold_no_line_at_all(tmp_path: Path) -> None:
    path = tmp_path / "zero.sol"
    path.write_text("solution status: optimal solution found\nobjective value:  0\n")
    assert read(path).has_point
    path.write_text("Optimal - objective value 0.00000000\n")
    assert read(path).has_point
    path.write_text("# Objective value = 0\n")
    assert not read(path).has_point


def test_reading_needs_no_pyomo() -> None:
    import subprocess
    import sys

    code = (
        "import sys\nfrom octsvm.backends import solution_formats as f\n"
        f"assert f.read({str(FILES / 'asl.sol')!r}).has_point\n"
        "assert not {m for m in sys.modules if m.split('.')[0] in ('pyomo', 'highspy', 'pandas')}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
