"""Which tables are proved optimal within half a minute: the facts behind the advice of ``octsvm size``.

The tables have 5 features, uniform in [0, 1], two classes by a hyperplane, and one wrong label in ten. For each
formulation and depth the number of rows doubles until a solve takes longer. Time is processor time (the solver has
one thread), so that a busy machine gives the same answer. All of it takes some ten minutes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import octsvm

from .. import tables
from ..study import Line, Study, every, kept

P, WRONG, SECONDS = 5, 0.1, 30.0
ROWS = (10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120)
CASES = {
    ("oct", ""): (1, 2, 3),
    ("oct_h", ""): (1, 2),
    ("re_svm", "l2"): (0,),
    ("re_svm", "l1"): (0,),
    ("octsvm", "l2"): (0, 1, 2),
    ("octsvm", "l1"): (0, 1, 2),
    ("moctsvm", "l2"): (1, 2),
    ("moctsvm", "l1"): (1, 2),
}


def table(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """``X (n, P)`` and labels, WRONG of which are flipped."""
    rng = np.random.default_rng([seed, n])
    X = rng.random((n, P))
    y = np.where(X @ np.arange(1, P + 1) > P * (P + 1) / 4, 1, 0)
    return X, octsvm.flip_labels(y, WRONG, seed)


def cells(asked: Any) -> Iterator[Line]:
    for (name, norm), depths in CASES.items():
        for depth in depths:
            sizes = ROWS[:1] if asked.quick else ROWS
            for cell in every(formulation=[name], norm=[norm], depth=[depth], n=sizes):
                yield cell
                found = [line for line in asked.done if cell.items() <= line.items()]
                if found and found[-1]["status"] != "optimal":
                    break


def measure(cell: Line, asked: Any) -> Line:
    """One fit, stopped after the limit in processor time."""
    X, y = table(cell["n"])
    params = {} if cell["formulation"] == "re_svm" else {"depth": cell["depth"]}
    params |= {"norm": cell["norm"]} if cell["norm"] else {}
    began = time.process_time()

    def late(_: Any) -> bool:
        return time.process_time() - began > asked.limit

    result = octsvm.fit(cell["formulation"], X, y, time_limit=10 * asked.limit, callback=late, **params)
    spent, splits = round(time.process_time() - began, 2), result.counts.get("splits")
    return kept(result, "p", "status", "gap") | {"seconds": spent, "splits": splits}


def report(lines: list[Line]) -> str:
    """The largest number of rows that was proved, and how long it took."""
    rows = []
    for case in dict.fromkeys((c["formulation"], c["norm"], c["depth"]) for c in lines):
        mine = [c for c in lines if (c["formulation"], c["norm"], c["depth"]) == case]
        best = max((c for c in mine if c["status"] == "optimal"), key=lambda c: c["n"], default=None)
        rows.append([*case, best["n"] if best else "none", f"{best['seconds']} s" if best else ""])
    return tables.table(["formulation", "norm", "depth", "rows proved", "processor time"], rows)


STUDY = Study(
    key=("formulation", "norm", "depth", "n"),
    options={"limit": SECONDS},
)
