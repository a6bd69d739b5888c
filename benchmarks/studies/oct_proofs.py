"""What is proved of OCT with alpha = 1: quarters of the eight data sets and whole ones, beside ConTree.

    python -m benchmarks run oct_proofs --data DIR --who ours,contree --clock processor
    python -m benchmarks run oct_proofs --data DIR --only rows=quarter --only depth=2

ConTree (Brita, van der Linden and Demirović, AAAI 2025) is the package pycontree, where it is installed. Its optimum has no
n_min, as here, and it says nothing of how far it came where its time is over. Quarters are those of ``re_svm_proofs``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import tables
from ..cases import SETS, quarter, whole
from ..study import REQUIRED, Line, SkippedError, Study, Watch, every
from .re_svm_proofs import agreement, fitted_to, times, values

DEPTHS = (2, 3)
KEY = ("who", "rows", "depth", "set")


def cells(asked: Any) -> Iterator[Line]:
    return every(rows=("quarter", "whole"), depth=DEPTHS, set=SETS, who=asked.who.split(","))


def contree(X: Any, y: Any, depth: int, limit: float) -> Line:
    """The optimum of ConTree, whose cost of a split is a share of the rows."""
    try:
        from pycontree import ConTree
    except ImportError as error:
        raise SkippedError(f"ConTree is not installed: {error}") from error
    rows, label = np.asarray(X, dtype=float), np.unique(y, return_inverse=True)[1]
    watch = Watch()
    tree = ConTree(max_depth=depth, complexity_cost=1 / len(label), time_limit=limit).fit(rows, label)
    spent = watch.seconds()
    cost = float((tree.predict(rows) != label).sum()) + tree.tree_.get_num_branching_nodes()
    proved = spent["cpu"] < limit
    known = {"status": "optimal", "bound": cost, "gap": 0.0}
    told = known if proved else {"status": "feasible", "bound": 0.0, "gap": 1.0}
    return {"limit": limit, "n": len(label), "p": rows.shape[1], "objective": cost, **told, **spent}


def measure(cell: Line, asked: Any) -> Line:
    """One line of results."""
    table = quarter if cell["rows"] == "quarter" else whole
    X, y = table(asked.data, cell["set"])[:2]
    if cell["who"] == "contree":
        return contree(X, y, cell["depth"], asked.limit)
    return fitted_to("oct", X, y, asked, {"depth": cell["depth"], "alpha": 1})[1]


def report(lines: list[Line]) -> str:
    """A row a cell, then what was proved by whom, and whether all answers agree."""
    rows = [
        [f"{c['set']} ({c['n']} × {c['p']})", c["depth"], c["who"], *values(c), *times(c)]
        for c in sorted(lines, key=lambda c: (c["rows"], c["depth"], c["set"]))
    ]
    head = ["table", "D", "by", "objective", "bound", "gap", "processor, s", "limit, s"]
    return "\n".join([tables.table(head, rows), agreement(lines, KEY)])


STUDY = Study(
    key=KEY,
    options={"data": REQUIRED, "who": "ours", "package": None, "limit": 120.0, "clock": "wall"},
    quick={"limit": 1.0},
    apart=True,
    code=("formulations/oct.py", "formulations/bounds/subtrees.py", "octsvm/heuristics/axis_search.py"),
)
