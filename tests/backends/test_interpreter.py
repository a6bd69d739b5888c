"""Where Python itself is at its end, is part of another program, or has no standard streams."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT
from waiting import PATIENCE

from octsvm import solvers

pytestmark = pytest.mark.skipif(os.name != "posix", reason="descriptors and programs of POSIX")


def run(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` with the tests' modules at hand."""
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = ['tests']\n{code}", *args],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def require(solver: str) -> None:
    if solvers.installed(solver) is None:
        pytest.skip(f"{solver} is not installed")


# -- its end --------------------------------------------------------------------------------------------------------

ENDS = """
import threading, time
import engines, octsvm
from octsvm.backends import highs
model = engines.hard()
threading.Thread(target=lambda: octsvm.solve(model, solver="highs", time_limit=60), daemon=True).start()
while not highs._runs:
    time.sleep(0.01)
time.sleep(float(sys.argv[1]))
{after}
"""


@pytest.mark.parametrize("seconds", ["0", "1.1"])
@pytest.mark.slow
def test_a_thread_that_solves_does_not_outlive_the_interpreter(seconds: str) -> None:
    done = run(ENDS.format(after=""), seconds)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_who_starts_to_solve_then_is_ended_without_a_word() -> None:
    after = """
highs._end_all()
late = []
thread = threading.Thread(target=lambda: late.append(octsvm.solve(engines.tree_model(1, 5, 1), solver="highs")))
thread.start()
thread.join()
assert late == []
print(octsvm.solve(engines.tree_model(1, 5, 1), solver="highs").status)  # the main thread may: it ends last
"""
    done = run(ENDS.format(after=after), "0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "optimal\n", "")


# -- within another program -----------------------------------------------------------------------------------------

EMBEDDED = """
value = {"None": None}.get(sys.argv[2], sys.argv[2])
sys.executable = sys._base_executable = value
if sys.argv[3] == "nothing beside":
    sys.prefix = sys.exec_prefix = sys.base_prefix = sys.base_exec_prefix = "/nowhere"
import engines, octsvm
try:
    print(octsvm.solve(engines.tree_model(1, 5, 1), solver=sys.argv[1]).status)
except octsvm.OctsvmError as error:
    print(type(error).__name__, error)
"""
VALUES = ["None", "", "/bin/false", "/usr/bin/blender"]  # none, and programs that are no Python


@pytest.mark.parametrize("value", VALUES, ids=["none", "empty", "foreign", "missing"])
@pytest.mark.parametrize("solver", ["scip", "cbc", "bonmin", "highs"])
@pytest.mark.every_value
@pytest.mark.slow
def test_the_interpreter_of_the_installation_is_found(solver: str, value: str) -> None:
    require(solver)
    done = run(EMBEDDED, solver, value, "")
    assert (done.returncode, done.stdout) == (0, "optimal\n"), done.stderr


@pytest.mark.parametrize("value", VALUES[1:3], ids=["empty", "foreign"])
@pytest.mark.parametrize("solver", ["scip", "cbc", "highs"])
@pytest.mark.every_value
@pytest.mark.slow
def test_without_an_interpreter_programs_run_and_packages_say_what_is_lacking(
    solver: str, value: str
) -> None:
    require(solver)
    done = run(EMBEDDED, solver, value, "nothing beside")
    assert done.returncode == 0, done.stderr
    if solvers.get(solver).backend == "child":
        assert done.stdout.startswith("EngineFailed ")
        assert f"within {value or 'another program'}," in done.stdout
        assert "multiprocessing.set_executable" in done.stdout
    else:
        assert done.stdout == "optimal\n"


@pytest.mark.slow
def test_the_interpreter_that_multiprocessing_was_told_is_used() -> None:
    require("scip")
    named = f"import multiprocessing; multiprocessing.set_executable({sys.executable!r})\n"
    done = run(named + EMBEDDED, "scip", "/bin/false", "nothing beside")
    assert (done.returncode, done.stdout) == (0, "optimal\n"), done.stderr


# -- without streams ------------------------------------------------------------------------------------------------

CLOSED = """
import os
import engines, octsvm
model = engines.tree_model(1, 5, 1)
for number in map(int, sys.argv[2].split(",")):
    os.close(number)
try:
    found = octsvm.solve(model, solver=sys.argv[1], log=sys.argv[3] + ".log").status
except BaseException as error:
    found = repr(error)
with open(sys.argv[3], "w") as out:
    out.write(found)
os._exit(0)
"""


@pytest.mark.parametrize("closed", ["0,1,2", "0", "1,2"])
@pytest.mark.parametrize("solver", ["cbc", "scip", "highs"])
@pytest.mark.every_value
@pytest.mark.slow
def test_an_engine_needs_no_standard_streams(solver: str, closed: str, tmp_path: Path) -> None:
    require(solver)
    out = tmp_path / "out"
    run(CLOSED, solver, closed, str(out))
    assert out.read_text() == "optimal"
    assert len(out.with_name("out.log").read_text().splitlines()) >= 3
