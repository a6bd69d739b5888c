"""A table of the user's own: merged over ours, mistakes found by their line, a new solver as one entry without code."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from instances import halves
from places import FAKE_SOLVERS, ROOT

import octsvm
from octsvm import solvers

FAKE = FAKE_SOLVERS / "asl.py"
# The table that the page on adding a part shows, as its Python reads it.
PAGE = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
PROGRAM = PAGE.split('Path("my-solvers.yaml").write_text("""')[1].split('"""')[0].replace("\\\\", "\\")


def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(textwrap.dedent(text))
    monkeypatch.setenv(solvers.ENVIRONMENT, str(path))
    return path


def program(tmp_path: Path, name: str, script: str) -> Path:
    """A program that is called ``name``."""
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


MODELS = [
    ("oct", {"depth": 1, "alpha": 0.1}),
    ("octsvm", {"depth": 1, "c1": 1.0, "c2": 2.0, "c3": 0.1, "norm": "l2"}),
    ("re_svm", {"c1": 5.0, "c2": 9.0}),
]


def same_optimum(name: str, formulation: str, params: dict[str, Any], seed: int) -> octsvm.Result:
    X, y = halves(seed)
    model = octsvm.build(formulation, X, y, **params)
    ours = octsvm.solve(model, time_limit=60)
    theirs = octsvm.solve(model, solver=name, time_limit=60)
    assert (ours.status, theirs.status) == ("optimal", "optimal"), theirs.notes
    assert theirs.objective == pytest.approx(ours.objective, rel=2e-4, abs=1e-6)
    assert theirs.bound <= ours.objective + 1e-6
    return theirs


@pytest.mark.skipif(importlib.util.find_spec("highsbox") is None, reason="highsbox is not installed")
@pytest.mark.parametrize(("formulation", "params"), MODELS, ids=lambda v: v if isinstance(v, str) else "")
def test_a_program_that_reads_a_file_is_one_entry(
    formulation: str, params: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(monkeypatch, tmp_path, PROGRAM)
    result = same_optimum("highs_program", formulation, params, 2 if formulation == "re_svm" else 1)
    assert result.solver_version[0].isdigit()
    assert result.engine["interface"] == "a program that reads a file"


@pytest.mark.skipif(
    importlib.util.find_spec("pyscipopt") is None, reason="the stand-in solves with pyscipopt"
)
@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
@pytest.mark.parametrize(("formulation", "params"), MODELS, ids=lambda v: v if isinstance(v, str) else "")
@pytest.mark.parametrize("classes", ["[LP, MILP]", "[LP, MILP, MIQP, MISOCP]"])
@pytest.mark.quick_cases("[[]LP, MILP[]]-re_svm-", "[[]LP, MILP, MIQP, MISOCP[]]-oct-")
def test_an_ampl_solver_is_one_entry(
    formulation: str, params: dict[str, Any], classes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One that takes linear models only gets the rows of every round in a new file.
    path = program(tmp_path, "standin", f'exec "{sys.executable}" "{FAKE}" "$@"')
    own(
        monkeypatch,
        tmp_path,
        f"""\
        solvers:
          standin:
            title: Stand-in
            backend: executable
            executable: [{path}]
            format: nl
            answer: asl
            argv: ["{{model}}", "-AMPL", "limit={{time_limit}}"]
            classes: {classes}
            cone_form: {"quadratic" if "MISOCP" in classes else "none"}
            log: {{version: 'stand-in (\\S+)'}}
            install: it comes with the tests
        """,
    )
    result = same_optimum("standin", formulation, params, 1)
    assert result.solver_version == "1.2.3"
    linear = formulation == "oct" or "MISOCP" not in classes
    assert result.engine["as_it_stands"] == (formulation == "oct" or not linear)


def test_linear_nl_file_holds_the_program(tmp_path: Path) -> None:
    scip = pytest.importorskip("pyscipopt")
    import scipy.sparse as sp

    from octsvm.backends.matrix_program import LinearProgram
    from octsvm.backends.nl_text import write_linear_nl

    rng = np.random.default_rng(0)
    for _ in range(20):
        n, m = int(rng.integers(1, 7)), int(rng.integers(0, 6))
        whole = rng.random(n) < 0.6
        low = np.where(rng.random(n) < 0.7, -rng.integers(0, 3, n), 0).astype(float)
        high = low + rng.integers(1, 4, n)
        A = sp.csr_array(np.where(rng.random((m, n)) < 0.6, rng.integers(-4, 5, (m, n)), 0).astype(float))
        middle = A @ ((low + high) / 2)
        kind = rng.integers(0, 4, m)
        program = LinearProgram(
            columns=[None] * n,
            cost=rng.integers(-5, 6, n).astype(float),
            offset=2.5,
            low=low,
            high=high,
            integer=whole,
            A=A,
            row_low=np.where(kind == 0, -np.inf, middle - 1.5),
            row_high=np.where(kind == 1, np.inf, middle + 1.5),
        )
        order = write_linear_nl(program, tmp_path / "model.nl", 2.0)
        assert sorted(order.tolist()) == list(range(n))
        model = scip.Model()
        model.hideOutput()
        model.readProblem(str(tmp_path / "model.nl"))
        model.optimize()
        from scipy.optimize import LinearConstraint, milp

        rows = [] if not m else [LinearConstraint(A, program.row_low, program.row_high)]
        known = milp(program.cost, integrality=whole, bounds=(low, high), constraints=rows)
        assert (model.getStatus() == "infeasible") == (known.status == 2)
        if known.status == 0:
            assert model.getObjVal() == pytest.approx(2 * (known.fun + 2.5), abs=1e-5)
            x = np.zeros(n)
            for var in model.getVars():
                if var.name[0] in "xbi" and var.name[1:].isdigit():
                    x[order[int(var.name[1:])]] = model.getVal(var)
            assert 2 * (program.cost @ x + 2.5) == pytest.approx(model.getObjVal(), abs=1e-5)


# -- merging ------------------------------------------------------------------------------------------------------


def test_an_own_file_changes_one_option_of_a_shipped_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = solvers.table()["highs"]
    own(
        monkeypatch,
        tmp_path,
        "solvers: {highs: {tolerances: {feasibility: 1.0e-8}, fixed: {mip_heuristic_effort: 0.2}}}",
    )
    merged = solvers.table()["highs"]
    assert merged.tolerances.feasibility == 1e-8
    assert merged.tolerances.integrality == shipped.tolerances.integrality
    assert merged.fixed == {**shipped.fixed, "mip_heuristic_effort": 0.2}
    assert merged.model_copy(update={"tolerances": shipped.tolerances, "fixed": shipped.fixed}) == shipped
    assert set(solvers.table()) > {"highs", "gurobi", "scip"}
    X, y = halves(1)
    assert octsvm.fit("oct", X, y, depth=1).status == "optimal"


def test_the_preference_and_the_table_of_the_configuration_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(solvers.ENVIRONMENT, raising=False)
    monkeypatch.setattr(solvers, "user_config_path", lambda *args, **options: tmp_path)
    assert solvers.user_table_path() is None
    (tmp_path / "solvers.yaml").write_text("prefer: [glpk, highs]\nsolvers: {}\n")
    assert solvers.table().prefer == ("glpk", "highs")


def test_an_entry_inherits_what_it_does_not_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own(
        monkeypatch,
        tmp_path,
        "solvers: {careful: {inherit: highs, title: Careful, tolerances: {integrality: 1.0e-9}}}",
    )
    careful, highs = solvers.get("careful"), solvers.get("highs")
    assert careful.options == highs.options
    assert (careful.title, careful.tolerances.integrality) == ("Careful", 1e-9)
    X, y = halves(1)
    assert octsvm.fit("oct", X, y, depth=1, solver="careful").solver == "careful"


# -- mistakes -----------------------------------------------------------------------------------------------------

NO_FILES = ["../../x", "/x", "..", ".", "", "below/x", "a\\b", "a b", "model.nl", "MODEL.SOL", "solution.txt", "-", "a\n"]  # fmt: skip
ENTRY = """\
solvers:
  mine:
    title: Mine
    backend: executable
    executable: [mine]
    argv: ["{model}"]
    format: mps
    answer: highs
    classes: [LP, MILP]
    install: nowhere
"""


@pytest.mark.parametrize(
    ("text", "line", "parts"),
    [
        (ENTRY + "    colour: red\n", 11, ["'mine'", "colour", "The keys of an entry are title, backend"]),
        (ENTRY.replace("[LP, MILP]", "[LP, MISOP]"), 9, ["'MISOP' is no problem class", "there are LP, MILP"]),
        (ENTRY + "    inherit: nothing\n", 11, ["inherit names 'nothing', which is no entry"]),
        (ENTRY + "    inherit: mine\n", 11, ["inherit names 'mine', which is this entry again"]),
        (ENTRY.replace("title: Mine", "title: [a, b]"), 3, ["'mine'", "title", "string"]),
        (ENTRY.replace("format: mps", "format: docx"), 7, ["format", "'nl', 'mps' or 'lp'"]),
        (ENTRY.replace("backend: executable", "backend: telepathy"), 4, ["backend", "'executable'"]),
        (ENTRY + "    options:\n      time_limit: t\n      time: t\n", 13, ["'time' is no neutral option; there are time_limit, gap"]),
        (ENTRY + "    unsupported:\n      - seed\n      - speed\n", 13, ["'speed' is no neutral option"]),
        (ENTRY + "    trusted: perhaps\n", 11, ["trusted", "boolean"]),
        (ENTRY + "    otherwise: nothing\n", 11, ["otherwise names 'nothing', which is no entry"]),
        (ENTRY.replace("    answer: highs\n", ""), 2, ["backend: executable needs answer"]),
        (ENTRY.replace("    install: nowhere\n", ""), 2, ["install", "required"]),
        (ENTRY + "    log:\n      bound: '(['\n", 12, ["log.bound", "'([' is no regular expression"]),
        (ENTRY + "prefer: [highs, nothing]\n", 11, ["prefer names 'nothing', which is no entry"]),
        ("solvers:\n  highs:\n    claim: sometimes\n", 3, ["'highs'", "claim", "'global'"]),
        ("solvers:\n  highs: fast\n", 2, ["'highs': an entry is a mapping of keys"]),
        ("solvers:\n  mine: {title: [}\n", None, ["line 2"]),
        ("solver:\n  mine: {}\n", None, ["a table `solvers:` of entries by name is missing"]),
        # an option file stays in its folder, and an adapter is one of ours
        *((f"solvers:\n  bonmin:\n    option_file:\n      name: {json.dumps(n)}\n", 4, ["name"]) for n in NO_FILES),
        *((f"solvers:\n  scip:\n    adapter: '{n}'\n", 3, ["is no name of a module"]) for n in ("../launcher", "..cli", "os.path", "a b")),
    ],
)  # fmt: skip
def test_a_mistake_is_found_by_file_and_line(
    text: str, line: int | None, parts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = own(monkeypatch, tmp_path, text)
    with pytest.raises(octsvm.InvalidSolverTable) as caught:
        solvers.table()
    message = str(caught.value)
    assert message.startswith(f"{path}, line {line}: " if line else str(path)), message
    for part in parts:
        assert part in message


@pytest.mark.parametrize("name", ["highs", "branch_and_reduce"])
def test_a_mistake_in_ours_is_not_blamed_on_the_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path, name: str
) -> None:
    shipped = tmp_path / "solvers.yaml"
    before, entry = (root / "solvers.yaml").read_text().split(f"\n  {name}:\n", 1)
    shipped.write_text(f"{before}\n  {name}:\n" + entry.replace("claim: global", "claim: perhaps", 1))
    monkeypatch.setattr(solvers, "table_path", lambda: shipped)
    own(monkeypatch, tmp_path, "solvers: {highs: {title: Mine}}")
    with pytest.raises(octsvm.InvalidSolverTable, match=rf"^{shipped}, line \d+: solver '{name}': claim"):
        solvers.table()


def test_a_missing_own_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(solvers.ENVIRONMENT, str(tmp_path / "nowhere.yaml"))
    with pytest.raises(octsvm.InvalidSolverTable, match=r"nowhere\.yaml.*there is no such file"):
        solvers.table()


def test_functions_that_print_do_not_disturb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "noisy_box.py").write_text(
        "print('hello')\ndef where():\n    print('here')\n    return __file__\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    own(monkeypatch, tmp_path, ENTRY.replace("[mine]", '["python:noisy_box.where"]'))
    assert solvers.get("mine").program == str(tmp_path / "noisy_box.py")
    assert capsys.readouterr().out == ""
