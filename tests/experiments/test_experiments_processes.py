"""Runs of experiments on worker processes: the run is killed, a worker is, Ctrl-C comes; the cells stay the same."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import small_runs
from small_runs import comparable, gone, load, protocol, until, whole, workers
from waiting import PATIENCE, wait_until

import octsvm
from octsvm.experiments import Fit, read_cells, run


def program(store: Path, jobs: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, small_runs.__file__, "run", str(store), str(jobs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=small_runs.ENVIRONMENT,
    )


def family(session: int) -> list[int]:
    """Living processes of a session, itself left out."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(entry.parent.name)
        if int(words[3]) == session and pid != session and words[0] not in "ZX":
            found.append(pid)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.slow
def test_worker_processes_stop_and_go_on(tmp_path: Path) -> None:
    store, undisturbed = tmp_path / "cells.sqlite", small_runs.undisturbed(tmp_path / "undisturbed.sqlite")
    with program(store, 2) as child:  # the run is killed, its workers are not: they follow
        until(store, 30)
        os.kill(child.pid, signal.SIGKILL)
        child.wait(PATIENCE)
        assert wait_until(lambda: all(gone(w) for w in workers(store)))
    with program(
        store, 2
    ) as child:  # a worker is killed, and the run lives on; then comes Ctrl-C, for all of them
        until(store, small_runs.done(store) + 15)
        with closing(sqlite3.connect(store)) as db:
            victim = int(db.execute("SELECT worker FROM cells ORDER BY time DESC LIMIT 1").fetchone()[0])
        os.kill(victim, signal.SIGKILL)
        assert wait_until(lambda: gone(victim))
        until(store, small_runs.done(store) + 30)
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, out) == (130, "stopped\n")
    assert err == "a worker process died; its batch is tried again\n"
    assert wait_until(lambda: not family(child.pid))
    whole(store)
    before = small_runs.done(store)
    assert run(protocol(), store, load=load).fitted == len(undisturbed) - before > 0
    pd.testing.assert_frame_equal(comparable(read_cells(store)), undisturbed)
    whole(store)


def my_method(data: Any, settings: Any, spec: Any, seed: int, skip: Any) -> Iterator[tuple[int, Fit]]:
    for k in range(len(settings)):
        if k not in skip:
            yield k, Fit(lambda X: np.sign(X[:, 0] - X[:, 1]).astype(int), 0.0)


def test_a_method_of_ones_own_is_named_by_its_function(tmp_path: Path) -> None:
    """In workers too: those of small_runs are such methods."""
    method = {"title": "Mine", "kind": f"{__name__}:my_method", "grid": {"a": [0.0, 1.0]}}
    store = tmp_path / "cells.sqlite"
    assert run(protocol(methods={"mine": method}, sets=["one"]), store, load=load).failed == 0
    cells = read_cells(store)
    assert cells["score"][~cells["inner"]].mean() > 0.8  # the sets are made so
    for kind in ("nowhere:f", f"{__name__}:nothing", ":f", "nothing"):
        with pytest.raises(octsvm.InvalidParameter, match=f"kind='{kind}'"):
            run(protocol(methods={"mine": method | {"kind": kind}}), store, load=load)
