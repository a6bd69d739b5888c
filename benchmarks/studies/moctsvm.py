"""MOCTSVM on iris, wine and three classes of digits: a tree after a second, beside engines alone and other trees.

    python -m benchmarks run moctsvm --only what=trees       # six minutes: a second of heuristics, half a minute an engine
    python -m benchmarks run moctsvm --only what=accuracy    # six minutes: five folds, a second a fit

The costs are set once and not chosen by any result: c1 = 1, c2 = 10, c3 = 1 (OCTSVM, one class against the rest: the same, with
labels that cost 10 to give up; with two classes also with labels that are never given up), and alpha = 1 for OCT and OCT-H. CART has scikit-learn's defaults. Depths are levels of
splits everywhere: D of OCTSVM is one less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.tree import DecisionTreeClassifier

import octsvm

from ..study import Line, Study, Watch, every, kept
from ..tables import table

COSTS = {"c1": 1.0, "c2": 10.0, "c3": 1.0}
DEPTHS = (2, 3)
ENGINES = ("highs", "scip")
TREE_SECONDS, ENGINE_SECONDS = 1.0, 30.0
FOLDS = 5
SECOND: dict[str, Any] = {"strategy": "heuristic", "time_limit": TREE_SECONDS}
METHODS: dict[str, Callable[[int], Any]] = {
    "MOCTSVM": lambda depth: octsvm.MOCTSVMClassifier(max_depth=depth, **COSTS, **SECOND),
    "OCT": lambda depth: octsvm.OCTClassifier(max_depth=depth, alpha=1.0, **SECOND),
    "OCT-H": lambda depth: octsvm.OCTHClassifier(max_depth=depth, alpha=1.0, **SECOND),
    "CART": lambda depth: DecisionTreeClassifier(max_depth=depth, random_state=0),
    "OCTSVM, one against the rest": lambda depth: OneVsRestClassifier(
        octsvm.OCTSVMClassifier(max_depth=depth - 1, **COSTS, **SECOND)
    ),
}


TWO_CLASSES = "iris, two classes"  # versicolor and virginica
KEPT = "OCTSVM, no label given up"
OF_TWO = METHODS | {
    KEPT: lambda depth: octsvm.OCTSVMClassifier(max_depth=depth - 1, **COSTS | {"c2": 1e6}, **SECOND)
}


TABLES = ("iris", "wine", "digits")
WAYS: dict[str, dict[str, Any]] = {"a second": SECOND} | {
    name: {"strategy": "exact", "solver": name, "time_limit": ENGINE_SECONDS, "on_mismatch": "ignore"}
    for name in ENGINES
}


def sample(name: str) -> tuple[np.ndarray, np.ndarray]:
    """``X (n, p)`` and ``y (n,)`` of a table."""
    X, y = {"wine": load_wine, "digits": load_digits}.get(name, load_iris)(return_X_y=True)
    kept = y > 0 if name == TWO_CLASSES else y < 3
    return X[kept], y[kept]


def cells(asked: Any) -> Iterator[Line]:
    for what, names in (("trees", TABLES), ("accuracy", (*TABLES, TWO_CLASSES))):
        for name in names:
            ways: Any = WAYS if what == "trees" else OF_TWO if name == TWO_CLASSES else METHODS
            yield from every(what=[what], table=[name], depth=DEPTHS, way=ways)


def measure(cell: Line, asked: Any) -> Line:
    """A tree after a second or an engine alone (no start, no heuristic); or right predictions on held-out rows, by folds."""
    X, y = sample(cell["table"])
    depth, way = cell["depth"], cell["way"]
    if cell["what"] == "accuracy":
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        return {
            "scores": [OF_TWO[way](depth).fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds.split(X, y)]
        }
    watch = Watch()
    result = octsvm.fit("moctsvm", X, y, depth=depth, **COSTS, **WAYS[way])
    return {
        **kept(result, "objective", "bound", "status", "stop"),
        "wrong": result.counts["wrong_rows"],
        **watch.seconds(),
        "notes": list(result.notes),
    }


def shown(lines: list[Line], what: str, ways: list[str]) -> str:
    """Objectives, or accuracies in percent, a column a way."""

    def text(n: Line) -> str:
        return f"{100 * np.mean(n['scores']):.1f}" if what == "accuracy" else f"{n['objective']:.2f}"

    found = {(n["table"], n["depth"], n["way"]): n for n in lines if n["what"] == what}
    rows = []
    for name, depth in dict.fromkeys(key[:2] for key in found):
        of_ways = [found.get((name, depth, way)) for way in ways]
        rows.append([name, depth, *(text(n) if n else "" for n in of_ways)])
    return table(["table", "D", *ways], rows)


PARTS: dict[str, Callable[[list[Line]], str]] = {
    "moctsvm_trees": partial(shown, what="trees", ways=list(WAYS)),
    "moctsvm_accuracy": partial(shown, what="accuracy", ways=list(OF_TWO)),
}


STUDY = Study(
    key=("what", "table", "depth", "way"),
    code=("octsvm/heuristics", "octsvm/estimators", "octsvm/solving", "formulations"),
    parts=PARTS,
)
