"""Small runs on made-up sets, for tests that end them in every way.

As a program, ``python small_runs.py serve`` reads names of stores and forks a run for each, so that the imports are
paid for once. What is fitted goes to the file that ``SMALL_RUNS_LOG`` names, here ``STORE.log``. ``python small_runs.py run STORE JOBS`` is one run by itself.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from places import ROOT
from waiting import PATIENCE

from octsvm.experiments import Fit, Protocol, load_protocol, read_cells, run
from octsvm.experiments.methods import fit_grid

GRID = [1e-4, 1e-2, 1.0, 10.0]
ROWS = 90
LOG = "SMALL_RUNS_LOG"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def logged(kind: str, data: Any, *grid: Any) -> Iterator[tuple[int, Fit]]:
    """A method of ours, with a line in the log for every fit."""
    for index, fit in fit_grid(kind)(data, *grid):
        with open(os.environ.get(LOG, os.devnull), "a") as file:
            file.write(f"{data.part.key} {kind} {index}\n")
        yield index, fit


cart, svm = partial(logged, "cart"), partial(logged, "svm")


def protocol(**changes: Any) -> Protocol:
    """CART and SVM on two sets, two shares of noise, four folds: 32 parts, 256 cells."""
    return load_protocol(
        {
            "name": "small",
            "title": "A small run",
            "sets": ["one", "two"],
            "noise": [0.0, 0.3],
            "repetitions": 1,
            "methods": {
                "cart": {
                    "title": "CART",
                    "kind": "small_runs:cart",
                    "grid": {"alpha": GRID},
                    "fixed": {"depth": 3},
                },
                "svm": {"title": "SVM", "kind": "small_runs:svm", "grid": {"C": GRID}},
            },
        }
        | changes
    )


def load(name: str) -> Any:
    """A made-up set of 90 rows and 4 features in the shape of octsvm.datasets."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    X = rng.random((ROWS, 4))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(ROWS) > X[:, 1], 1, -1)
    return SimpleNamespace(X=pd.DataFrame(X, columns=list("abcd")), y=pd.Series(y, name="label"), name=name)


def comparable(frame: pd.DataFrame) -> pd.DataFrame:
    """What two runs must agree in."""
    return frame.drop(columns="seconds")


def done(store: Path) -> int:
    """Finished cells, read behind the toolkit's back."""
    try:
        with closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True, timeout=10)) as db:
            return int(db.execute("SELECT COUNT(*) FROM cells").fetchone()[0])
    except sqlite3.OperationalError:  # not there yet
        return 0


def until(store: Path, cells: int, seconds: float = PATIENCE) -> None:
    """Wait for a number of finished cells, and look often while they come, seldom while processes start."""
    end, before, pause = time.monotonic() + seconds, 0, 0.02
    while (found := done(store)) < cells:
        assert time.monotonic() < end, f"{found} of {cells} cells"
        pause = min(2 * pause, 0.02) if found == before else 0.001
        before = found
        time.sleep(pause)


def undisturbed(store: Path) -> pd.DataFrame:
    """The cells of a run that nothing happens to."""
    assert run(protocol(), store, load=load).complete
    return comparable(read_cells(store))


def whole(store: Path) -> None:
    """The file is sound, the counts are those of the cells, and who ended in order holds no lease."""
    with closing(sqlite3.connect(store)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        counted = "SELECT batch, COUNT(*), SUM(status = 'failed') FROM cells GROUP BY batch ORDER BY batch"
        noted = "SELECT id, done, failed FROM batches WHERE done ORDER BY id"
        assert db.execute(counted).fetchall() == db.execute(noted).fetchall()
        left = "SELECT COUNT(*) FROM batches JOIN runs ON owner = runs.id WHERE ended IS NOT NULL"
        assert db.execute(left).fetchone() == (0,)


def workers(store: Path) -> list[int]:
    """Processes that recorded cells."""
    with closing(sqlite3.connect(store)) as db:
        return [int(w) for (w,) in db.execute("SELECT DISTINCT worker FROM cells")]


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@contextmanager
def server() -> Iterator[Any]:
    """A function that starts a run in a process of its own and returns its number."""
    with subprocess.Popen(
        [sys.executable, __file__, "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def start(store: Path) -> int:
            process.stdin.write(f"{store}\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            return int(process.stdout.readline())  # type: ignore[union-attr]

        yield start
        process.stdin.close()


def _run(store: str, jobs: int = 1) -> int:
    try:
        found = run(protocol(), store, jobs=jobs, load=load)
    except KeyboardInterrupt:
        print("stopped", flush=True)
        return 130
    print(found.fitted, flush=True)
    return 0


def _serve() -> None:
    import signal

    for kind in ("cart", "svm"):
        fit_grid(kind)  # imports it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os.environ[LOG] = f"{line.strip()}.log"
            run(protocol(), line.strip(), load=load)
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve()
    else:
        sys.exit(_run(sys.argv[2], int(sys.argv[3])))
