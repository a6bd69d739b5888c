"""What tightening alone is worth to an engine: time to prove RE-SVM, with the model as built and tightened.

    python -m benchmarks run tightening --data DIR
    python -m benchmarks run tightening --data DIR --who gurobi --only tightened=True

Instances are the quarters of ``re_svm_proofs`` with c = (1, 1) and (10, 5), and its made tables. Both ways an engine gets the same
start, that of the heuristics after a fixed amount of work, and the seconds of tightening count among those of the solve. A model
too large for an engine's licence is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import tables
from ..cases import SETS
from ..study import REQUIRED, Line, SkippedError, Study, Watch, every, kept
from .proofs import mean_seconds
from .re_svm_proofs import AGREE, COSTS, MADE, sample

START_STEPS = 30  # of the heuristics
SHARE = 0.15  # of the limit, at most, for tightening


def cells(asked: Any) -> Iterator[Line]:
    instances = [(name, *costs) for costs in COSTS[:2] for name in SETS] + [(name, 1.0, 1.0) for name in MADE]
    for name, c1, c2 in instances:
        yield from every(table=[name], c1=[c1], c2=[c2], who=asked.who.split(","), tightened=[False, True])


def measure(cell: Line, asked: Any) -> Line:
    """One line of results."""
    import octsvm
    from octsvm import errors, solvers

    who, costs = cell["who"], {"c1": cell["c1"], "c2": cell["c2"]}
    if solvers.installed(who) is None:
        raise SkippedError(f"{who} is not installed")
    X, y = sample(cell["table"], asked.data)
    octsvm.fit("re_svm", [[0.0], [0.1], [0.9], [1.0]], [0, 1, 0, 1], solver=who, time_limit=5)  # imports
    start = octsvm.fit("re_svm", X, y, strategy="heuristic", work_limit=START_STEPS, **costs).tree
    model = octsvm.build("re_svm", X, y, start=start, **costs)
    watch, limit = Watch(), asked.limit
    line: Line = {"limit": limit}
    if cell["tightened"]:
        done = octsvm.tighten(model, start=start, time_limit=SHARE * limit)
        line |= {"settled": done.settled, "tighten_seconds": round(done.seconds, 3)}
        limit -= done.seconds
    try:
        result = octsvm.solve(model, solver=who, start=start, time_limit=limit, on_mismatch="ignore")
    except errors.LicenseTooSmall as error:
        raise SkippedError(str(error)) from None
    line |= {"version": result.solver_version, **watch.seconds()}
    return line | kept(result, "n", "p", "status", "objective", "bound", "gap", "nodes")


def report(lines: list[Line]) -> str:
    """For each engine what was proved in which time both ways, then whether all answers agree."""
    found = {(c["who"], c["tightened"], c["table"], c["c1"], c["c2"]): c for c in lines}
    rows = []
    for who in dict.fromkeys(c["who"] for c in lines):
        both = [c for w, tightened, *c in found if w == who and tightened and (who, False, *c) in found]
        for tightened in (False, True):
            mine = [found[(who, tightened, *c)] for c in both]
            proved = [c for c in mine if c["status"] == "optimal"]
            gap = np.mean([0.0 if c["status"] == "optimal" else c["gap"] for c in mine])
            seconds = [mean_seconds(mine, clock) for clock in ("seconds", "cpu")]
            seconds.append(float(np.mean([c.get("tighten_seconds", 0.0) for c in mine])))
            way = "tightened" if tightened else "as built"
            rows.append([who, way, len(mine), len(proved), *(f"{s:.1f}" for s in seconds), f"{gap:.1%}"])
    head = "engine | model | instances | proved | mean seconds | of a processor | of tightening | mean gap"
    wrong = tables.disagreements(lines, ("table", "c1", "c2"), ("who", "tightened"), AGREE)
    return "\n".join(
        [
            tables.table(head, rows),
            "",
            *(wrong or ["All proved optima agree, and no bound lies above an objective."]),
        ]
    )


STUDY = Study(
    key=("table", "c1", "c2", "who", "tightened"),
    options={"data": REQUIRED, "who": "scip,gurobi,cplex", "limit": 60.0},
    quick={"limit": 1.0},
    apart=True,
    code=("octsvm/solving", "octsvm/bridges", "formulations/re_svm.py", "formulations/bounds/scores.py"),
)
