"""What the runner of experiments costs: `python benchmarks/cells.py`.

A method that does nothing (a majority vote) is run through the store, on this process, on worker processes (joblib) and
on a local Dask cluster. Seconds are those of the run after its start-up, from the first recorded cell to the last one;
the overhead is the time of a worker for a cell: parts, hand-over, scoring, and the durable record.
"""

from __future__ import annotations

import argparse
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


def fit_grid(data: Any, settings: Any, spec: Any, seed: int, skip: Any) -> Iterator[tuple[int, Fit]]:
    for index in range(len(settings)):
        if index not in skip:
            began = time.perf_counter()
            label = Counter(data.y.tolist()).most_common(1)[0][0]
            yield (
                index,
                Fit(
                    lambda X, label=label: np.full(len(X), label),
                    time.perf_counter() - began,
                    believed=data.y,
                ),
            )


def load(name: str) -> Any:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((690, 14)))
    return SimpleNamespace(X=X, y=pd.Series(np.where(X[0] > 0.5, 1, -1)), name=name)


def protocol(cells: int, grid: int) -> Any:
    method = {"title": "Nothing", "kind": "cells:fit_grid", "grid": {"a": [float(k) for k in range(grid)]}}
    return load_protocol(
        {
            "name": "cells",
            "title": "Cells that cost nothing",
            "sets": ["made_up"],
            "noise": [0.3],
            "rules": ["oracle_mean"],
            "repetitions": max(1, round(cells / grid / 4)),
            "methods": {"nothing": method},
        }
    )


def measure(cells: int, grid: int, **way: Any) -> dict[str, Any]:
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
        return {
            "cells": n,
            "seconds": last - first,
            "startup": whole - (last - first),
            "bytes": store.stat().st_size,
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=4000)
    parser.add_argument("--grid", type=int, default=11, help="cells of a batch")
    arguments = parser.parse_args()
    print("| way | workers | cells | cells/s | ms of a worker for a cell | start and end, s | bytes/cell |")
    print("|---|---|---|---|---|---|---|")
    for way, workers, options in (
        ("this process", 1, {}),
        ("joblib", 2, {"jobs": 2}),
        ("Dask", 1, {"jobs": 1, "scheduler": "local"}),
        ("Dask", 2, {"jobs": 2, "scheduler": "local"}),
    ):
        found = measure(arguments.cells, arguments.grid, **options)
        speed = found["cells"] / found["seconds"]
        print(
            f"| {way} | {workers} | {found['cells']:,} | {speed:,.0f} | {1000 * workers / speed:.2f} | "
            f"{found['startup']:.1f} | {found['bytes'] / found['cells']:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
