"""A checked tree on real data within a limit: quarters of the eight data sets, four models.

A quarter of each set (stratified, seed 0) trains, and what the result says is computed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import octsvm

from ..cases import SETS, quarter
from ..study import REQUIRED, Line, Study, Watch, every, kept
from ..tables import table

MODELS: dict[str, dict[str, Any]] = {
    "octsvm": {"depth": 1},
    "oct": {"depth": 2, "n_min": 0.05},
    "oct_h": {"depth": 2, "n_min": 0.05},
    "re_svm": {},
}


def cells(asked: Any) -> Iterator[Line]:
    return every(set=SETS, formulation=MODELS)


def measure(cell: Line, asked: Any) -> Line:
    """Fit, and check again what the result says."""
    formulation, params = cell["formulation"], MODELS[cell["formulation"]]
    X, y, X_test, y_test = quarter(asked.data, cell["set"])
    watch = Watch()
    result = octsvm.fit(formulation, X, y, time_limit=asked.limit, on_mismatch="ignore", **params)
    spent = watch.seconds()
    costs = {k: v for k, v in params.items() if k != "depth"}
    again = octsvm.evaluate(formulation, result.tree, X, y, **costs)
    return {
        "limit": asked.limit,
        **kept(result, "n", "p", "status", "stop", "objective", "bound", "gap", "rounds", "nodes"),
        **spent,
        "train": float(np.mean(result.tree.predict(X) == y)),
        "test": float(np.mean(result.tree.predict(X_test) == y_test)),
        "recomputed": again.objective,
        "differing_rows": len(result.differing_rows),
    }


HEAD = "set | n × p | model | status | objective | bound | gap | seconds | train | test"
ROW = (
    "{set} | {n} × {p} | {formulation} | {status} | {objective:.4g} | {bound:.4g} | {gap:.1%} | {seconds:.1f} | "
    "{train:.1%} | {test:.1%}"
)


def report(lines: list[Line]) -> str:
    return table(HEAD, (ROW.format(**line) for line in lines))


STUDY = Study(
    key=("set", "formulation"),
    options={"data": REQUIRED, "limit": 30.0},
    quick={"limit": 1.0},
)
