"""The folders of solves: what is in them is the caller's data, and goes with the solve, or with the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from places import ROOT
from waiting import PATIENCE, wait_until

from octsvm import solvers
from octsvm.backends.scratch import Scratch

SOLVES = """
import sys
sys.path[:0] = ["tests"]
import engines, octsvm
model = engines.hard()
print("ready", flush=True)
octsvm.solve(model, solver=sys.argv[1], time_limit=60)
"""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there is no such signal, and no shell")


def empty(folder: Path) -> bool:
    return not any(entry.name.startswith("octsvm-") for entry in folder.iterdir())


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP], ids=str)
@pytest.mark.parametrize("solver", ["cbc", "scip", "bonmin"])
@pytest.mark.every_value
@pytest.mark.slow
def test_nothing_is_left_of_a_solve_that_a_signal_ends(
    solver: str, how: signal.Signals, tmp_path: Path
) -> None:
    if solvers.installed(solver) is None:
        pytest.skip(f"{solver} is not installed")
    process = subprocess.Popen(
        [sys.executable, "-c", SOLVES, solver],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    assert wait_until(lambda: any(tmp_path.glob("octsvm-*/*")))
    process.send_signal(how)
    assert process.wait(PATIENCE) == -how
    process.stdout.close()
    assert wait_until(lambda: empty(tmp_path))


WRITES = """
import sys
import numpy as np
import octsvm
rng = np.random.default_rng(0)
model = octsvm.build("oct", rng.random((300, 8)), rng.integers(0, 2, 300), depth=2)
print("ready", flush=True)
octsvm.write(model, sys.argv[1])
print("written", flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=str)
@pytest.mark.parametrize("ending", ["lp", "nl"])
@pytest.mark.every_value
@pytest.mark.slow
def test_nothing_is_left_of_a_model_file_whose_writing_a_signal_ends(
    ending: str, how: signal.Signals, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITES, str(tmp_path / f"model.{ending}")], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    assert wait_until(lambda: any(tmp_path.iterdir()), every=0.001)
    process.send_signal(how)
    assert process.wait(PATIENCE) == -how
    assert process.stdout.read() == b""
    process.stdout.close()
    assert wait_until(lambda: not any(tmp_path.iterdir()))


def test_a_folder_goes_at_once_and_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    scratch = Scratch()
    keeper = scratch._keeper
    assert keeper is not None
    assert keeper.poll() is None
    (scratch.path / "below").mkdir()
    (scratch.path / "below" / "data").write_text("mine")
    assert scratch.path.stat().st_mode & 0o077 == 0
    scratch.remove()
    scratch.remove()
    assert not scratch.path.exists()
    assert keeper.poll() == 0


def test_without_a_shell_the_folder_goes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("octsvm.backends.scratch._SHELL", str(tmp_path / "none"))
    scratch = Scratch()
    scratch.remove()
    assert empty(tmp_path)
