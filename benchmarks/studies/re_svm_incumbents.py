"""RE-SVM: our hyperplane after a second, and an engine's alone after thirty, on quarters of the eight data sets.

    python -m benchmarks run re_svm_incumbents --data DIR
    python -m benchmarks run re_svm_incumbents --data DIR --who highs,scip

``ours`` is strategy="heuristic", an engine gets the built model alone. Quarters are those of ``re_svm_proofs``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import tables
from ..cases import SETS, quarter
from ..study import REQUIRED, Line, Study, Watch, kept
from .incumbents import WORSE, engine_alone

COSTS = ((1.0, 1.0), (10.0, 5.0), (1.0, 10.0), (100.0, 1.0), (0.1, 1.0))


def cells(asked: Any) -> Iterator[Line]:
    for name in SETS:
        for c1, c2 in COSTS:
            for who in asked.who.split(","):
                yield {"who": who, "table": name, "c1": c1, "c2": c2}


def measure(cell: Line, asked: Any) -> Line:
    """One line of results."""
    import octsvm

    who = cell["who"]
    X, y = quarter(asked.data, cell["table"])[:2]
    limit = asked.limit or (1.0 if who == "ours" else 30.0)
    params = {"c1": cell["c1"], "c2": cell["c2"]}
    watch = Watch()
    if who == "ours":
        result = octsvm.fit(
            "re_svm", X, y, time_limit=limit, strategy="heuristic", on_mismatch="ignore", **params
        )
    else:
        result = engine_alone("re_svm", X, y, who, limit, params)
    line = {"limit": limit, "version": result.solver_version, **watch.seconds()}
    return line | kept(result, "n", "p", "status", "objective", "bound")


def report(lines: list[Line]) -> str:
    """A row for each rival, and every cell in which ours is worse."""
    found = {(c["who"], c["table"], c["c1"], c["c2"]): c["objective"] for c in lines}
    rows, worse = [], []
    for rival in dict.fromkeys(c["who"] for c in lines if c["who"] != "ours"):
        pairs = [
            (cell, found["ours", *cell], theirs)
            for (who, *cell), theirs in found.items()
            if who == rival and ("ours", *cell) in found
        ]
        better = sum(ours < theirs * (1 - WORSE) for _, ours, theirs in pairs)
        behind = [pair for pair in pairs if pair[1] > pair[2] * (1 + WORSE)]
        rows.append([rival, len(pairs), len(pairs) - better - len(behind), better, len(behind)])
        worse += [
            f"- {name} ({c1:g}, {c2:g}): {ours:.6g} against {theirs:.6g} ({rival})"
            for (name, c1, c2), ours, theirs in behind
        ]
    told = ["Worse:", "", *worse] if worse else ["Ours is worse in no cell."]
    return "\n".join([tables.table("against | cells | equal | better | worse", rows), "", *told])


STUDY = Study(
    key=("who", "table", "c1", "c2"),
    options={"data": REQUIRED, "who": "ours", "limit": None},
    quick={"limit": 1.0},
    code=("octsvm/heuristics", "formulations/bounds/scores.py", "formulations/re_svm.py"),
)
