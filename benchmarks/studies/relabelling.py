"""How many wrong labels are found: 20 % of the labels of a quarter of each data set are flipped.

Each model is fitted to the flipped labels (seed 0), and its relabelling report is compared with the flips.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import octsvm

from ..cases import SETS, quarter
from ..study import REQUIRED, Line, Study, Watch, every, kept
from ..tables import table

SHARE = 0.2
MODELS: dict[str, Any] = {"OCTSVMClassifier": {"max_depth": 1}, "RESVMClassifier": {}}


def cells(asked: Any) -> Iterator[Line]:
    return every(set=SETS, model=MODELS)


def measure(cell: Line, asked: Any) -> Line:
    """Flip, fit, compare."""
    model, limit = cell["model"], asked.limit
    X, y, _, _ = quarter(asked.data, cell["set"])
    noisy = octsvm.flip_labels(y, SHARE, seed=0)
    flipped = noisy != y.to_numpy()
    watch = Watch()
    fitted = getattr(octsvm, model)(time_limit=limit, **MODELS[model]).fit(X, noisy)
    spent = watch.seconds()
    found = fitted.relabelled_
    whole = octsvm.relabelling_scores(found, flipped)
    final = octsvm.relabelling_scores(found[found["predicted"] == found["believed"]], flipped)
    return {
        "n": len(y),
        "p": X.shape[1],
        "limit": limit,
        **kept(whole, "flipped", "relabelled", "precision", "recall"),
        "final": final.relabelled,
        "final_precision": final.precision,
        "final_recall": final.recall,
        "right_labels": float(np.mean(fitted.predict(X) == y)),
        "splits": int(fitted.tree_.splits.sum()),
        "gap": fitted.gap_,
        "status": fitted.result_.status,
        **spent,
    }


def share(value: float) -> str:
    """A percentage, or a dash where there is none."""
    return "–" if value != value else f"{value:.0%}"


HEAD = (
    "set | n × p | flipped | model | splits | given up | precision | recall | in the end | precision | recall"
)


def report(lines: list[Line]) -> str:
    rows = []
    for c in lines:
        first = [
            c["set"],
            f"{c['n']} × {c['p']}",
            c["flipped"],
            c["model"].removesuffix("Classifier"),
            c["splits"],
        ]
        every = [c["relabelled"], share(c["precision"]), share(c["recall"])]
        rows.append([*first, *every, c["final"], share(c["final_precision"]), share(c["final_recall"])])
    return table(HEAD, rows)


STUDY = Study(
    key=("set", "model"),
    options={"data": REQUIRED, "limit": 10.0},
    quick={"limit": 1.0},
)
