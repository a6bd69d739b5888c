"""The folders of solves: what is in them is the caller's data, and goes with the solve, or with the process."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest
from forked import Forked, parent
from waiting import wait_until

from octsvm import solvers
from octsvm.backends.scratch import Scratch

SOLVES = """
import sys
import engines, octsvm
model = engines.hard()
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
    solver: str, how: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if solvers.installed(solver) is None:
        pytest.skip(f"{solver} is not installed")
    parent()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Forked(tmp_path, SOLVES, solver) as process:
        assert wait_until(lambda: any(tmp_path.glob("octsvm-*/*")))
        os.kill(process.pid, how)
        assert process.wait() == -how
    assert wait_until(lambda: empty(tmp_path))


WRITES = """
import sys
import numpy as np
import octsvm
rng = np.random.default_rng(0)
model = octsvm.build("oct", rng.random((300, 8)), rng.integers(0, 2, 300), depth=2)
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
    folder = tmp_path / "written"
    folder.mkdir()
    with Forked(tmp_path, WRITES, str(folder / f"model.{ending}")) as process:
        assert wait_until(lambda: any(folder.iterdir()), every=0.001)
        os.kill(process.pid, how)
        assert process.wait() == -how
        assert process.out == ""
    assert wait_until(lambda: not any(folder.iterdir()))


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
