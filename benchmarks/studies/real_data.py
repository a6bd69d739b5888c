"""A checked tree on real data within a limit: quarters of the eight data sets, four models.

A quarter of each set (stratified, seed 0) trains, and what the result says is computed again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import octsvm

from ..cases import SETS, quarter
from ..study import REQUIRED, Line, Study, kept
from ..tables import table

MODELS: dict[str, dict[str, Any]] = {
    "octsvm": {"depth": 1},
    "oct": {"depth": 2, "n_min": 0.05},
    "oct_h": {"depth": 2, "n_min": 0.05},
    "re_svm": {},
}


def cells(asked: Any) -> Iterator[Line]:
    for name in SETS:
        for formulation in MODELS:
            yield {"set": name, "formulation": formulation}


def measure(cell: Line, asked: Any) -> Line:
    """Fit, and check again what the result says."""
    formulation, limit = cell["formulation"], asked.limit
    X, y, X_test, y_test = quarter(asked.data, cell["set"])
    params = MODELS[formulation]
    began = time.monotonic()
    result = octsvm.fit(formulation, X, y, time_limit=limit, on_mismatch="ignore", **params)
    seconds = time.monotonic() - began
    again = octsvm.evaluate(
        formulation, result.tree, X, y, **{k: v for k, v in params.items() if k != "depth"}
    )
    return {
        "n": len(y),
        "p": X.shape[1],
        "limit": limit,
        **kept(result, "status", "stop", "objective", "bound", "gap"),
        "seconds": seconds,
        "rounds": result.rounds,
        "nodes": result.nodes,
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
    report=report,
    cells=cells,
    measure=measure,
    options={"data": REQUIRED, "limit": 30.0},
    quick={"limit": 1.0},
)
