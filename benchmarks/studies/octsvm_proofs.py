"""What is proved of OCTSVM: quarters of the eight data sets for two choices of costs, and made tables.

    python -m benchmarks run octsvm_proofs --data DIR --limit 120 --only depth=1
    python -m benchmarks run octsvm_proofs --data DIR --only depth=2
    python -m benchmarks run octsvm_proofs --data DIR --who before --package CHECKOUT

Tables, names of runs and other versions of the package are as in ``re_svm_proofs``. A run is a plain octsvm.fit of that
depth; ``source`` says whether its bound is the engine's or that of the top level. Without --data only the made tables are run.
"""

from __future__ import annotations

import time
from itertools import product
from typing import Any

from .. import tables
from ..cases import SETS
from ..study import Line, Study, kept
from .re_svm_proofs import AGREE, by_who, sample

COSTS = ((1.0, 1.0, 1.0), (10.0, 5.0, 0.5))
DEPTHS = (1, 2)
MADE = ("60x3", "60x10")
KEY = ("who", "depth", "table", "c1", "c2", "c3")


def cells(asked: Any) -> Any:
    names = (*(SETS if asked.data is not None else ()), *MADE)
    for depth, (c1, c2, c3), name in product(DEPTHS, COSTS, names):
        yield {"who": asked.who, "depth": depth, "table": name, "c1": c1, "c2": c2, "c3": c3}


def measure(cell: Line, asked: Any) -> Line:
    """One line of results, by the package that is imported."""
    import octsvm

    X, y = sample(cell["table"], asked.data)
    params = {name: cell[name] for name in ("depth", "c1", "c2", "c3")}
    octsvm.fit("octsvm", [[0.0], [0.1], [0.9], [1.0]], [0, 1, 0, 1], depth=1, time_limit=5)  # imports
    began, before = time.monotonic(), time.process_time()
    result = octsvm.fit("octsvm", X, y, time_limit=asked.limit, on_mismatch="ignore", **params)
    top = any("top level" in note for note in result.notes)
    return {
        "limit": asked.limit,
        "clock": asked.clock,
        "n": result.n,
        "p": result.p,
        "seconds": round(time.monotonic() - began, 3),
        "cpu": round(time.process_time() - before, 3),
        **kept(result, "status", "objective", "bound", "gap", "nodes"),
        "source": "top level" if top else "engine",
    }


def disagreements(lines: list[Line]) -> list[str]:
    """Bounds above an objective that another run found for the same cell."""
    out = []
    for cell in dict.fromkeys(tuple(line[name] for name in KEY[1:]) for line in lines):
        mine = [line for line in lines if tuple(line[name] for name in KEY[1:]) == cell]
        best = min(line["objective"] for line in mine)
        out += [
            f"{cell}: {line['who']} has the bound {line['bound']:.8g}, and {best:.8g} was found"
            for line in mine
            if line["bound"] > best + AGREE * abs(best)
        ]
    return out


def report(lines: list[Line]) -> str:
    """A row a cell, then what was proved by whom, and whether all answers agree."""
    rows = []
    for line in sorted(lines, key=lambda line: (line["depth"], line["c1"])):
        gap = "proved" if line["status"] == "optimal" else f"{line['gap']:.1%}"
        costs = f"({line['c1']:g}, {line['c2']:g}, {line['c3']:g})"
        name = f"{line['table']} ({line['n']} × {line['p']})"
        values = [f"{line['objective']:.6g}", f"{line['bound']:.6g}", gap, line["source"]]
        rows.append([name, line["depth"], costs, line["who"], *values, f"{line['seconds']:.1f}"])
    head = ["table", "D", "(c1, c2, c3)", "by", "objective", "bound", "gap", "bound of", "seconds"]
    agreement = disagreements(lines) or ["No bound lies above an objective."]
    return "\n".join([tables.table(head, rows), "", by_who(lines), "", *agreement])


STUDY = Study(
    key=KEY,
    report=report,
    cells=cells,
    measure=measure,
    options={"data": None, "who": "ours", "package": None, "limit": 120.0, "clock": "wall"},
    quick={"limit": 1.0},
    apart=True,
    parts={"octsvm_proofs_by": by_who},
    code=("octsvm/heuristics", "octsvm/solving", "formulations/octsvm.py", "formulations/bounds"),
)
