"""What is proved of OCTSVM: quarters of the eight data sets for two choices of costs, and made tables.

    python -m benchmarks run octsvm_proofs --data DIR --limit 120 --only depth=1
    python -m benchmarks run octsvm_proofs --data DIR --only depth=2
    python -m benchmarks run octsvm_proofs --data DIR --who before --package CHECKOUT

Tables, names of runs and other versions of the package are as in ``re_svm_proofs``. A run is a plain octsvm.fit of that
depth; ``source`` says whether its bound is the engine's or that of the top level. Without --data only the made tables are run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from .. import tables
from ..cases import SETS
from ..study import Line, Study
from .re_svm_proofs import agreement, by_who, fitted, times, values

COSTS = ((1.0, 1.0, 1.0), (10.0, 5.0, 0.5))
DEPTHS = (1, 2)
MADE = ("60x3", "60x10")


def cells(asked: Any) -> Iterator[Line]:
    names = (*(SETS if asked.data is not None else ()), *MADE)
    for depth, (c1, c2, c3), name in product(DEPTHS, COSTS, names):
        yield {"who": asked.who, "depth": depth, "table": name, "c1": c1, "c2": c2, "c3": c3}


def measure(cell: Line, asked: Any) -> Line:
    """One line of results, by the package that is imported."""
    params = {name: cell[name] for name in ("depth", "c1", "c2", "c3")}
    result, line = fitted("octsvm", cell, asked, params)
    top = any("top level" in note for note in result.notes)
    return line | {"source": "top level" if top else "engine"}


def report(lines: list[Line]) -> str:
    """A row a cell, then what was proved by whom, and whether all answers agree."""
    rows = []
    for c in sorted(lines, key=lambda line: (line["depth"], line["c1"])):
        name, costs = f"{c['table']} ({c['n']} × {c['p']})", f"({c['c1']:g}, {c['c2']:g}, {c['c3']:g})"
        rows.append([name, c["depth"], costs, c["who"], *values(c), c["source"], *times(c)])
    head = "table | D | (c1, c2, c3) | by | objective | bound | gap | bound of | processor, s | limit, s"
    return tables.table(head, rows) + "\n" + agreement(lines, STUDY.key)


STUDY = Study(
    key=("who", "depth", "table", "c1", "c2", "c3"),
    options={"data": None, "who": "ours", "package": None, "limit": 120.0, "clock": "wall"},
    quick={"limit": 1.0},
    apart=True,
    parts={"octsvm_proofs_by": by_who},
    code=("octsvm/heuristics", "octsvm/solving", "formulations/octsvm.py", "formulations/bounds"),
)
