"""Where Python itself is at its end, is part of another program, or has no standard streams."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from forked import Forked

from octsvm import solvers

pytestmark = pytest.mark.skipif(os.name != "posix", reason="descriptors and programs of POSIX")


# -- its end --------------------------------------------------------------------------------------------------------

ENDS = """
import os, sys, threading, time
import engines, octsvm
from octsvm.backends import highs
for case in ("0", "1.1", "late"):
    if not os.fork():
        break
    assert os.wait()[1] == 0, case
else:
    sys.exit()
model = engines.hard()
threading.Thread(target=lambda: octsvm.solve(model, solver="highs", time_limit=60), daemon=True).start()
while not highs._runs:
    time.sleep(0.01)
if case != "late":
    time.sleep(float(case))
else:
    highs._end_all()
    late = []
    thread = threading.Thread(target=lambda: late.append(octsvm.solve(engines.tree_model(1, 5, 1), solver="highs")))
    thread.start()
    thread.join()
    assert late == []
    print(octsvm.solve(engines.tree_model(1, 5, 1), solver="highs").status)  # the main thread may: it ends last
"""


@pytest.mark.slow
def test_a_thread_that_solves_does_not_outlive_the_interpreter(tmp_path: Path) -> None:
    """Ended at once, ended later, and one that starts to solve then, which is ended without a word."""
    with Forked(tmp_path, ENDS) as done:
        assert (done.wait(), done.out, done.err) == (0, "optimal\n", "")


# -- within another program -----------------------------------------------------------------------------------------

EMBEDDED = """
import multiprocessing, sys
python, sys.executable, sys._base_executable = sys.executable, None, None
import engines, octsvm

def tell(what, *solvers):
    for solver in solvers:
        try:
            said = octsvm.solve(engines.tree_model(1, 5, 1), solver=solver).status
        except octsvm.OctsvmError as error:
            said = f"{type(error).__name__} {error}"
        print(what, solver, said, sep="|")

here = sys.argv[1:]
values = [None, "", "/bin/false", "/usr/bin/blender"]  # none, and programs that are no Python
for k, sys.executable in enumerate(values):
    sys._base_executable = sys.executable
    tell(sys.executable, here[k % len(here)])
sys.prefix = sys.exec_prefix = sys.base_prefix = sys.base_exec_prefix = "/nowhere"
for sys.executable in values[1:3]:
    sys._base_executable = sys.executable
    tell(f"alone {sys.executable}", *here)
multiprocessing.set_executable(python)
tell("told", here[0])
"""


@pytest.mark.slow
def test_the_interpreter_of_the_installation_is_found_or_said_to_be_lacking(tmp_path: Path) -> None:
    here = [s for s in ("scip", "cbc", "bonmin", "highs") if solvers.installed(s) is not None]
    with Forked(tmp_path, EMBEDDED, *here) as done:
        assert done.wait() == 0, done.err
    said = [line.split("|") for line in done.out.splitlines()]
    assert len(said) == 5 + 2 * len(here)
    for what, solver, answer in said:
        if what.startswith("alone") and solvers.require(solver).backend == "child":
            assert answer.startswith("EngineFailed ")
            assert f"within {what.removeprefix('alone ') or 'another program'}," in answer
            assert "multiprocessing.set_executable" in answer
        else:
            assert answer == "optimal", (what, solver)


# -- without streams ------------------------------------------------------------------------------------------------

CLOSED = """
import os, sys
import engines, octsvm
model = engines.tree_model(1, 5, 1)
for job in sys.argv[2:]:
    if os.fork():
        os.wait()
        continue
    solver, closed = job.split("-")
    for number in map(int, closed):
        os.close(number)
    try:
        found = octsvm.solve(model, solver=solver, log=f"{sys.argv[1]}/{job}.log").status
    except BaseException as error:
        found = repr(error)
    with open(f"{sys.argv[1]}/{job}", "w") as out:
        out.write(found)
    os._exit(0)
"""


@pytest.mark.slow
def test_an_engine_needs_no_standard_streams(tmp_path: Path) -> None:
    jobs = [
        f"{solver}-{closed}"
        for solver, closed in (("cbc", "012"), ("scip", "0"), ("highs", "12"))
        if solvers.installed(solver) is not None
    ]
    with Forked(tmp_path, CLOSED, str(tmp_path), *jobs) as done:
        assert done.wait() == 0, done.err
    assert {job: (tmp_path / job).read_text() for job in jobs} == dict.fromkeys(jobs, "optimal")
    for job in jobs:
        assert len((tmp_path / f"{job}.log").read_text().splitlines()) >= 3
