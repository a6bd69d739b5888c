"""What is proved of RE-SVM: quarters of the eight data sets for three pairs of costs, and made tables.

    python -m benchmarks run re_svm_proofs --data DIR --limit 120
    python -m benchmarks run re_svm_proofs --data DIR --limit 120 --who highs --solver highs
    python -m benchmarks run re_svm_proofs --data DIR --who before --package CHECKOUT

Without --data only the made tables are run. A run is a plain octsvm.fit, by the solver that is named or the default,
of the package in another checkout where --package names one: that is how an earlier version is measured; --who is what the
run is called. Every run is a process of its own; its processor seconds are there too, as a busy machine gives a limit in wall
clock less of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import tables
from ..cases import SETS, Case, quarter
from ..study import Line, Study, kept

COSTS = ((1.0, 1.0), (10.0, 5.0), (1.0, 10.0))
MADE = ((60, 3), (30, 10), (60, 10), (100, 5))  # rows and features, c = (1, 1), one label in ten wrong
AGREE = 2e-4  # relative: two gaps


class Cell(NamedTuple):
    """A table by name, "60x3" for a made one, and costs."""

    table: str
    c1: float
    c2: float


def grid(with_sets: bool) -> Iterator[Cell]:
    """All cells, those of the data sets first."""
    if with_sets:
        for c1, c2 in COSTS:
            yield from (Cell(name, c1, c2) for name in SETS)
    yield from (Cell(f"{n}x{p}", 1.0, 1.0) for n, p in MADE)


def cells(asked: Any) -> Iterator[Line]:
    for cell in grid(asked.data is not None):
        yield {**cell._asdict(), "who": asked.who}


def sample(name: str, data: Any) -> tuple[Any, Any]:
    """Training rows and labels."""
    if name in SETS:
        return quarter(data, name)[:2]
    n, p = map(int, name.split("x"))
    return Case("made", "", "re_svm", n, p).table()


def measure(cell: Line, asked: Any) -> Line:
    """One line of results, by the package that is imported."""
    import octsvm

    X, y = sample(cell["table"], asked.data)
    how: dict[str, Any] = {"solver": asked.solver} if asked.solver else {}
    octsvm.fit("re_svm", [[0.0], [0.1], [0.9], [1.0]], [0, 1, 0, 1], time_limit=5, **how)  # imports
    began, before = time.monotonic(), time.process_time()
    costs = {"c1": cell["c1"], "c2": cell["c2"]}
    result = octsvm.fit("re_svm", X, y, time_limit=asked.limit, on_mismatch="ignore", **costs, **how)
    return {
        "solver": result.solver,
        "limit": asked.limit,
        "clock": asked.clock,
        "n": result.n,
        "p": result.p,
        "seconds": round(time.monotonic() - began, 3),
        "cpu": round(time.process_time() - before, 3),
        **kept(result, "status", "objective", "bound", "gap", "nodes"),
        "version": result.solver_version,
    }


Found = dict[tuple[str, Cell], dict[str, Any]]


def disagreements(found: Found) -> list[str]:
    """Bounds above an objective that another run found for the same cell."""
    out = []
    for cell in sorted({cell for _, cell in found}):
        lines = {who: line for (who, at), line in found.items() if at == cell}
        best = min(line["objective"] for line in lines.values())
        out += [
            f"{cell.table} ({cell.c1:g}, {cell.c2:g}): {who} has the bound {line['bound']:.8g}, and {best:.8g} was found"
            for who, line in lines.items()
            if line["bound"] > best + AGREE * abs(best)
        ]
    return out


def by_who(lines: list[Line]) -> str:
    """How many cells each proved, and how far it came on average."""
    rows = []
    for who in dict.fromkeys(line["who"] for line in lines):
        gaps = [0.0 if c["status"] == "optimal" else c["gap"] for c in lines if c["who"] == who]
        proved = sum(c["status"] == "optimal" for c in lines if c["who"] == who)
        rows.append([who, len(gaps), proved, f"{sum(gaps) / len(gaps):.1%}"])
    return tables.table(["by", "cells", "proved", "mean gap"], rows)


def report(lines: list[Line]) -> str:
    """A row a cell, then what was proved by whom, and whether all answers agree."""
    found: Found = {(line["who"], Cell(line["table"], line["c1"], line["c2"])): line for line in lines}
    order, whos = list(grid(True)), list(dict.fromkeys(who for who, _ in found))
    rows = []
    for who, cell in sorted(found, key=lambda key: (order.index(key[1]), whos.index(key[0]))):
        line = found[who, cell]
        gap = "proved" if line["status"] == "optimal" else f"{line['gap']:.1%}"
        name, costs = f"{cell.table} ({line['n']} × {line['p']})", f"({cell.c1:g}, {cell.c2:g})"
        values = [f"{line['objective']:.6g}", f"{line['bound']:.6g}", gap, f"{line['seconds']:.1f}"]
        rows.append([name, costs, who, *values, f"{line['cpu']:.1f}", line["nodes"]])
    head = ["table", "(c1, c2)", "by", "objective", "bound", "gap", "seconds", "of a processor", "nodes"]
    agreement = disagreements(found) or ["No bound lies above an objective."]
    return "\n".join([tables.table(head, rows), "", by_who(lines), "", *agreement])


STUDY = Study(
    key=("who", *Cell._fields),
    report=report,
    cells=cells,
    measure=measure,
    options={"data": None, "who": "ours", "solver": "", "package": None, "limit": 120.0, "clock": "wall"},
    quick={"limit": 1.0},
    apart=True,
    parts={"re_svm_proofs_by": by_who},
    code=("octsvm/heuristics", "octsvm/solving", "formulations/re_svm.py"),
)
