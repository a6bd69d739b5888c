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

from collections.abc import Iterator, Mapping
from typing import Any

from .. import tables
from ..cases import SETS, Case, quarter
from ..study import Line, Study, Watch, every, kept

COSTS = ((1.0, 1.0), (10.0, 5.0), (1.0, 10.0))
MADE = ("60x3", "30x10", "60x10", "100x5")  # rows and features, c = (1, 1), one label in ten wrong
AGREE = 2e-4  # relative: two gaps


def cells(asked: Any) -> Iterator[Line]:
    for c1, c2 in COSTS if asked.data is not None else ():
        yield from every(table=SETS, c1=[c1], c2=[c2], who=[asked.who])
    yield from every(table=MADE, c1=[1.0], c2=[1.0], who=[asked.who])


def sample(name: str, data: Any) -> tuple[Any, Any]:
    """Training rows and labels."""
    if name in SETS:
        return quarter(data, name)[:2]
    n, p = map(int, name.split("x"))
    return Case("made", "", "re_svm", n, p).table()


def fitted(
    formulation: str, cell: Line, asked: Any, params: Mapping[str, Any], **how: Any
) -> tuple[Any, Line]:
    """:func:`fitted_to` the table of a cell."""
    return fitted_to(formulation, *sample(cell["table"], asked.data), asked, params, **how)


def fitted_to(
    formulation: str, X: Any, y: Any, asked: Any, params: Mapping[str, Any], **how: Any
) -> tuple[Any, Line]:
    """A plain octsvm.fit by the package that is imported, and what is kept of it."""
    import octsvm

    small = {"time_limit": 5, **({"depth": 1} if "depth" in params else {}), **how}
    octsvm.fit(formulation, [[0.0], [0.1], [0.9], [1.0]], [0, 1, 0, 1], **small)  # imports
    watch = Watch()
    result = octsvm.fit(formulation, X, y, time_limit=asked.limit, on_mismatch="ignore", **params, **how)
    line = {
        "solver": result.solver,
        "limit": asked.limit,
        "clock": asked.clock,
        "version": result.solver_version,
        **watch.seconds(),
    }
    return result, line | kept(result, "n", "p", "status", "objective", "bound", "gap", "nodes")


def measure(cell: Line, asked: Any) -> Line:
    """One line of results."""
    how = {"solver": asked.solver} if asked.solver else {}
    return fitted("re_svm", cell, asked, {"c1": cell["c1"], "c2": cell["c2"]}, **how)[1]


def by_who(lines: list[Line]) -> str:
    """How many cells each proved, and how far it came on average."""
    rows = []
    for who in dict.fromkeys(line["who"] for line in lines):
        gaps = [0.0 if c["status"] == "optimal" else c["gap"] for c in lines if c["who"] == who]
        proved = sum(c["status"] == "optimal" for c in lines if c["who"] == who)
        rows.append([who, len(gaps), proved, f"{sum(gaps) / len(gaps):.1%}"])
    return tables.table(["by", "cells", "proved", "mean gap"], rows)


def values(line: Line) -> list[str]:
    """Objective, bound and gap of a line, as text."""
    gap = "proved" if line["status"] == "optimal" else f"{line['gap']:.1%}"
    return [f"{line['objective']:.6g}", f"{line['bound']:.6g}", gap]


def times(line: Line) -> list[str]:
    """Seconds of a processor, and the limit, as text."""
    return [f"{line['cpu']:.1f}", f"{line['limit']:g}"]


def agreement(lines: list[Line], key: tuple[str, ...]) -> str:
    """What was proved by whom, and whether all answers agree."""
    found = tables.disagreements(lines, key[1:], key[:1], AGREE) or ["No bound lies above an objective."]
    return "\n".join(["", by_who(lines), "", *found])


def report(lines: list[Line]) -> str:
    """A row a cell, then what was proved by whom, and whether all answers agree."""
    places = [(name, *costs) for costs in COSTS for name in SETS] + [(name, 1.0, 1.0) for name in MADE]
    whos = list(dict.fromkeys(line["who"] for line in lines))
    rows = []
    for c in sorted(
        lines, key=lambda c: (places.index((c["table"], c["c1"], c["c2"])), whos.index(c["who"]))
    ):
        name, costs = f"{c['table']} ({c['n']} × {c['p']})", f"({c['c1']:g}, {c['c2']:g})"
        rows.append([name, costs, c["who"], *values(c), *times(c), c["nodes"]])
    head = "table | (c1, c2) | by | objective | bound | gap | processor, s | limit, s | nodes"
    return tables.table(head, rows) + "\n" + agreement(lines, STUDY.key)


STUDY = Study(
    key=("who", "table", "c1", "c2"),
    options={"data": None, "who": "ours", "solver": "", "package": None, "limit": 120.0, "clock": "wall"},
    quick={"limit": 1.0},
    apart=True,
    parts={"re_svm_proofs_by": by_who},
    code=("octsvm/heuristics", "octsvm/solving", "formulations/re_svm.py"),
)
