"""An engine that breaks down costs its own solve, and nothing else.

Each case: a clear result or one of our errors, the best tree known with the reason in its notes, the model unchanged, and
neither files nor processes left behind.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engines
import numpy as np
import pytest
from forked import Forked, parent
from places import ROOT
from waiting import PATIENCE, at_most, wait_until

import octsvm
from octsvm import solvers
from octsvm.errors import OctsvmError

TABLE = """
solvers:
  faulty:
    title: Faulty
    backend: child
    adapter: faulty
    requires: {distribution: highspy, module: highspy, version: "1"}
    classes: [LP, MILP]
    cone_form: none
    options: {time_limit: seconds, node_limit: nodes}
    start: {passes: all}
    install: "it is here"
  program:
    title: Program
    backend: executable
    executable: [PROGRAM]
    format: mps
    answer: highs
    argv: ["{model}", "{solution}", "{own}"]
    own_option: ["--{key}", "{value}"]
    classes: [LP, MILP]
    cone_form: none
    options: {}
    install: "it is here"
"""


def marked(mark: str) -> list[str]:
    """Processes (not this one) that carry ``mark`` in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.name != str(os.getpid()) and mark.encode() in (folder / "environ").read_bytes():
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    line = (folder / "cmdline").read_text().replace("\0", " ")
                    if (
                        "resource_tracker" not in line
                    ):  # of the tests' own pools, until the end of this process
                        found.append(line)
        except OSError:
            continue
    return found


def wait_for_none(mark: str) -> list[str]:
    """Those that do not go."""
    wait_until(lambda: not marked(mark))
    return marked(mark)


@pytest.fixture(scope="module", autouse=True)
def _forks() -> None:
    parent()  # before its environment is marked


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A table with the faulty engines; afterwards no file and no process is left."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "program"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.argv[0] = 'program'\nsys.path.insert(0, {str(engines.FAKE_SOLVERS)!r})\n"
        "import program\nraise SystemExit(program.main())\n"
    )
    program.chmod(0o755)
    (programs / "sitecustomize.py").write_text(
        f"import octsvm.backends.adapters as found\nfound.__path__.append({str(engines.FAKE_SOLVERS)!r})\n"
    )
    (programs / "table.yaml").write_text(TABLE.replace("PROGRAM", str(program)))
    temporary, cwd = tmp_path / "tmp", tmp_path / "cwd"
    temporary.mkdir()
    cwd.mkdir()
    mark = uuid.uuid4().hex
    monkeypatch.setenv("OCTSVM_TEST_MARK", mark)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("OCTSVM_SOLVERS", str(programs / "table.yaml"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(programs)]))
    monkeypatch.chdir(cwd)
    yield mark
    monkeypatch.chdir(ROOT)
    assert wait_for_none(mark) == []
    assert list(temporary.iterdir()) == []
    assert list(cwd.iterdir()) == []


def model() -> Any:
    """A linear tree model, whose optimum is better than its start."""
    return engines.tree_model(4, 6, 2, norm="l1")


OPTIMUM: list[octsvm.Result] = []


def optimum() -> octsvm.Result:
    if not OPTIMUM:
        OPTIMUM.append(engines.solve("highs", model()))
    return OPTIMUM[0]


def checked(result: octsvm.Result, *, best: bool) -> str:
    """What every result must be; its notes."""
    known = optimum()
    assert result.tree is not None
    assert result.bound <= known.objective * (1 + 1e-6)
    assert result.objective >= known.objective * (1 - 1e-6)
    if best:
        assert result.objective == pytest.approx(known.objective, rel=1e-6)
    json.loads(result.to_json())
    return " ".join(result.notes)


# engine, fault: whether the best tree comes back all the same; status and stop; what the notes say
FAULTS = {
    ("faulty", "none"): (True, "optimal", "optimal", ""),
    ("program", "none"): (True, "optimal", "optimal", ""),
    ("faulty", "prints"): (True, "optimal", "optimal", ""),  # megabytes
    ("program", "prints"): (True, "optimal", "optimal", ""),
    # a child that dies leaves what it had found
    ("faulty", "abort"): (True, "feasible", "error", "Faulty.*SIGABRT"),
    ("faulty", "segfault"): (True, "feasible", "error", "Faulty.*SIGSEGV"),
    ("faulty", "kill"): (True, "feasible", "error", "Faulty.*SIGKILL"),
    ("faulty", "exit"): (True, "feasible", "error", "Faulty.*exit code 0"),
    ("faulty", "raise"): (True, "feasible", "error", "Faulty.*MemoryError: out of memory"),
    ("faulty", "garbage"): (True, "feasible", "error", "Faulty.*broke down"),
    ("faulty", "cut off"): (True, "feasible", "error", "Faulty.*broke down"),
    ("faulty", "at once"): (False, "fallback", "error", "SIGABRT"),
    ("program", "abort"): (False, "fallback", "error", "SIGABRT"),
    ("program", "kill"): (False, "fallback", "error", "SIGKILL"),
    ("program", "exit"): (False, "fallback", "error", "wrote no solution file"),
    ("program", "garbage"): (False, "fallback", "error", "cannot be read|no text file|zero byte"),
    ("program", "cut off"): (False, "fallback", "error", "cannot be read"),
    ("program", "empty"): (False, "fallback", "error", "is empty"),
    # one that ignores its limit is ended, with what it started
    ("faulty", "sleep"): (True, "feasible", "time_limit", "did not stop when told to"),
    ("faulty", "sleep with the lock"): (True, "feasible", "time_limit", "did not stop when told to"),
    ("program", "sleep"): (False, "fallback", "time_limit", "did not stop when told to"),
    ("program", "with a child"): (False, "fallback", "time_limit", "did not stop when told to"),
    # wrong answers
    ("faulty", "wrong shape"): (False, "fallback", "numeric", "no point of the model"),
    ("faulty", "infeasible"): (False, "fallback", "numeric", "claim did not hold|solved again|refuted"),
    ("program", "infeasible"): (False, "fallback", "numeric", "claim did not hold|solved again|refuted"),
    ("faulty", "bound too high"): (True, "feasible", "numeric", "refuted"),
    ("faulty", "claims the start"): (False, "fallback", "numeric", ""),
}


@pytest.mark.slow
def test_at_a_limit_of_nodes_the_bound_is_what_the_engine_ends_with() -> None:
    """Not what it told on the way, at moments of its clock: a limit of work gives the same again."""
    told: list[float] = []
    result = octsvm.solve(
        model(),
        solver="faulty",
        options={"fault": "node limit"},
        work_limit=7,
        callback=lambda progress: told.append(progress.bound),
    )
    assert result.stop == "work_limit"
    assert result.bound == pytest.approx(0.5 * optimum().objective)
    assert max(told) > 0.9 * optimum().objective
    assert max(point.bound for point in result.trace) == result.bound


@pytest.mark.parametrize(("engine", "fault"), FAULTS)
@pytest.mark.slow_cases("faulty-sleep*", "program-sleep", "program-with a child", "*-prints")
@pytest.mark.quick_cases(
    "faulty-segfault",
    "faulty-raise",
    "faulty-none",
    "faulty-bound too high",
    "program-cut off",
    "program-exit",
)
def test_a_fault_costs_its_own_solve_alone(engine: str, fault: str) -> None:
    best, status, stop, said = FAULTS[engine, fault]
    limit = {"time_limit": 2.5} if stop == "time_limit" else {}
    result = engines.solve(engine, model(), options={"fault": fault}, **limit)
    notes = checked(result, best=best)
    assert (result.status, result.stop) == (status, stop), notes
    assert re.search(said, notes), notes
    if status == "feasible" and stop == "error":
        assert result.bound >= 0.99 * result.objective


def test_an_engine_that_dies_at_once_gives_the_start() -> None:
    result = engines.solve("faulty", model(), options={"fault": "at once"}, start=optimum().tree)
    checked(result, best=True)
    assert (result.stop, result.status) == ("error", "feasible")


def test_without_a_start_a_dead_engine_is_an_error() -> None:
    import pyomo.environ as pyo

    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=pyo.Integers, bounds=(0, 5), initialize=4)
    m.cost = pyo.Objective(expr=m.x)
    m.row = pyo.Constraint(expr=m.x >= 1)
    for name, fault in (("faulty", "at once"), ("program", "exit")):
        with pytest.raises(octsvm.EngineFailed, match=r"broke down.*octsvm\.write"):
            engines.solve(name, m, options={"fault": fault})
        assert m.x.value == 4


@pytest.mark.slow
def test_a_callback_ends_a_child_that_sleeps() -> None:
    result = engines.solve(
        "faulty", model(), options={"fault": "sleep"}, time_limit=PATIENCE, callback=lambda p: p.seconds > 2
    )
    assert result.stop == "interrupted"
    checked(result, best=True)


def test_a_program_that_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "programs" / "broken"
    broken.write_bytes(b"\x7fELF rubbish")
    broken.chmod(0o755)
    table = tmp_path / "programs" / "table.yaml"
    table.write_text(table.read_text().replace(str(tmp_path / "programs" / "program"), str(broken)))
    result = engines.solve("program", model())
    assert "could not be started" in checked(result, best=False)
    assert result.status == "fallback"


def test_auto_goes_on_where_an_engine_breaks_down(tmp_path: Path) -> None:
    table = tmp_path / "programs" / "table.yaml"
    table.write_text(
        "prefer: [faulty, program, highs]\n"
        + table.read_text().replace(
            "options: {time_limit: seconds}", "options: {time_limit: seconds}\n    fixed: {fault: at once}"
        )
    )
    result = engines.solve("auto", model())
    assert (result.solver, result.status) == ("program", "optimal")
    assert "faulty was tried first" in checked(result, best=True)


# ---------------------------------------------------------------------------------------------- the real crash


@pytest.mark.skipif(solvers.get("scip").version is None, reason="pyscipopt is not installed")
@pytest.mark.slow
def test_a_size_on_which_an_engine_has_crashed_before() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((67, 13))
    y = octsvm.flip_labels(np.where(X.sum(axis=1) > 6.5, 1, -1), 0.2, 0)
    m = octsvm.build("octsvm", X, y, depth=2)
    with at_most(10.0):
        result = engines.solve("scip", m, time_limit=8)
    assert result.tree is not None
    assert result.status in ("feasible", "fallback")
    assert result.stop == "time_limit" or any("broke down" in note for note in result.notes)


# ---------------------------------------------------------------------------------------------- disks and folders


@engines.every_engine_here
def test_a_full_disk_costs_the_log_and_a_working_folder_that_cannot_be_written_nothing(
    entry: engines.Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/proc")
    result = engines.solve(entry, engines.tree_model(4, 5, 1), log="/dev/full")
    assert result.status == "optimal"
    assert any("log is not complete" in note and "No space left" in note for note in result.notes)


BACKENDS = engines.every(
    [e for e in engines.ENTRIES if not e.absent and str(e) in ("scip", "gurobi", "shot", "cbc", "glpk")]
)


@BACKENDS
def test_a_full_folder_for_temporary_files(
    entry: engines.Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(small)], capture_output=True)
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        monkeypatch.setattr(tempfile, "tempdir", str(small))
        m = engines.tree_model(4, 6, 2)
        error, result = None, None
        try:
            result = engines.solve(entry, m, time_limit=10)
        except OctsvmError as raised:
            error = str(raised)
        if result is None:
            assert "TMPDIR" in error or "octsvm.write" in error
        else:
            assert result.tree is not None
            if result.status != "optimal":
                assert result.stop == "error"
                assert result.notes
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", str(small)], check=True)


@BACKENDS
def test_a_folder_for_temporary_files_that_cannot_be_written(
    entry: engines.Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nowhere")
    with pytest.raises((octsvm.EngineFailed, octsvm.OutputNotWritable), match="TMPDIR"):
        engines.solve(entry, engines.tree_model(4, 5, 1))


# ---------------------------------------------------------------------------------------------- several at once


@pytest.mark.slow
def test_two_solves_at_once_in_threads() -> None:
    found: dict[int, octsvm.Result] = {}
    names = ["scip", "cbc", "highs", "gurobi"]
    names = [n for n in names if solvers.installed(n)]

    def work(k: int) -> None:
        found[k] = octsvm.solve(engines.tree_model(7, 6, 2), solver=names[k % len(names)], threads=1 + k % 2)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(2 * len(names))]
    for pair in zip(workers[::2], workers[1::2], strict=True):
        for worker in pair:
            worker.start()
        for worker in pair:
            worker.join(PATIENCE)
    values = [found[k].objective for k in sorted(found)]
    assert len(values) == len(workers)
    assert values == pytest.approx([values[0]] * len(values), rel=2e-4)


PROCESSES = """
import json, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import engines, octsvm

def solved(name):
    result = octsvm.solve(engines.tree_model(7, 6, 2), solver=name)
    return result.status, result.objective

with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
    print(json.dumps(list(pool.map(solved, sys.argv[1:]))))
"""


@pytest.mark.slow
def test_two_solves_at_once_in_processes(tmp_path: Path) -> None:
    names = [n for n in ("highs", "scip", "cbc", "gurobi") if solvers.installed(n)]
    with Forked(tmp_path, PROCESSES, *names) as process:
        assert process.wait() == 0, process.err
        found = json.loads(process.out)
    assert {status for status, _ in found} == {"optimal"}
    assert [v for _, v in found] == pytest.approx([found[0][1]] * len(found), rel=2e-4)


@pytest.mark.skipif(sys.platform != "linux", reason="how children are ended with their parent is Linux' own")
@pytest.mark.parametrize("name", ["scip", "cbc", "program", "faulty"])
@pytest.mark.slow
def test_a_parent_that_is_killed_leaves_no_process(name: str, clean: str, tmp_path: Path) -> None:
    if solvers.installed(name) is None:
        pytest.skip(f"{name} is not installed")
    options = {"fault": "sleep"} if name in ("program", "faulty") else {}
    code = textwrap.dedent(f"""
        import engines
        model = engines.tree_model(0, 36, 4, c1=1.0, c2=1.0, c3=0.1, norm="l1")
        engines.solve({name!r}, model, time_limit=60, options={options!r})
    """)
    with Forked(tmp_path, code) as process:
        assert wait_until(lambda: len(marked(clean)) >= 2)  # the engine, and what empties its folder
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert wait_for_none(clean) == []
    for folder in (tmp_path / "tmp").iterdir():  # nobody is left who could remove it
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
