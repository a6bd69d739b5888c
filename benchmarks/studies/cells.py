"""What the runner of experiments costs, for a method that does nothing.

A majority vote is run through the store, on this process, on worker processes (joblib) and
on a local Dask cluster. Seconds are those of the run after its start-up, from the first recorded cell to the last one;
the overhead is the time of a worker for a cell: parts, hand-over, scoring, and the durable record.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from octsvm.experiments import Fit, load_protocol, run

from ..study import Line, Study, every
from ..tables import table

GRID = 11  # cells of a batch
WAYS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "this process": ("this process", 1, {}),
    "joblib": ("joblib", 2, {"jobs": 2}),
    "Dask, one worker": ("Dask", 1, {"jobs": 1, "scheduler": "local"}),
    "Dask, two workers": ("Dask", 2, {"jobs": 2, "scheduler": "local"}),
}


def fit_grid(data: Any, settings: Any, spec: Any, seed: int, skip: Any) -> Iterator[tuple[int, Fit]]:
    label = Counter(data.y.tolist()).most_common(1)[0][0]
    for index in range(len(settings)):
        if index not in skip:
            yield index, Fit(lambda X: np.full(len(X), label), 0.0, believed=data.y)


def load(name: str) -> Any:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((690, 14)))
    return SimpleNamespace(X=X, y=pd.Series(np.where(X[0] > 0.5, 1, -1)), name=name)


def protocol(cells: int, grid: int) -> Any:
    values = [float(k) for k in range(grid)]
    method = {"title": "Nothing", "kind": "benchmarks.studies.cells:fit_grid", "grid": {"a": values}}
    more = {"noise": [0.3], "rules": ["oracle_mean"], "repetitions": max(1, round(cells / grid / 4))}
    names = {"name": "cells", "title": "Cells that cost nothing", "sets": ["made_up"]}
    return load_protocol({**names, **more, "methods": {"nothing": method}})


def timed(cells: int, grid: int, **way: Any) -> Line:
    """One run: cells, seconds from the first recorded cell to the last one, and bytes of the store."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "cells.sqlite"
        began = time.monotonic()
        found = run(protocol(cells, grid), store, load=load, **way)
        whole = time.monotonic() - began
        assert found.complete
        assert not found.failed
        with closing(sqlite3.connect(store)) as db:
            first, last, n = db.execute("SELECT MIN(time), MAX(time), COUNT(*) FROM cells").fetchone()
        spent = {"seconds": last - first, "startup": whole - (last - first)}
        return {"cells": n, **spent, "bytes": store.stat().st_size}


def cells(asked: Any) -> Iterator[Line]:
    return every(way=WAYS)


def measure(cell: Line, asked: Any) -> Line:
    """One run."""
    return timed(asked.count, GRID, **WAYS[cell["way"]][2])


def report(lines: list[Line]) -> str:
    rows = []
    for line in lines:
        way, workers, _ = WAYS[line["way"]]
        speed = line["cells"] / line["seconds"]
        figures = [f"{speed:,.0f}", f"{1000 * workers / speed:.2f}", f"{line['startup']:.1f}"]
        rows.append([way, workers, f"{line['cells']:,}", *figures, f"{line['bytes'] / line['cells']:.0f}"])
    head = "way | workers | cells | cells/s | ms of a worker for a cell | start and end, s | bytes/cell"
    return table(head, rows)


STUDY = Study(
    key=("way",),
    options={"count": 4000},
    quick={"count": 100},
    code=("octsvm/experiments",),
)
