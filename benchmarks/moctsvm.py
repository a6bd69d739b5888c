"""MOCTSVM on iris, wine and three classes of digits: a tree after a second, beside engines alone and other trees.

    python benchmarks/moctsvm.py trees --out results.jsonl       # six minutes: a second of heuristics, half a minute an engine
    python benchmarks/moctsvm.py accuracy --out results.jsonl    # six minutes: five folds, a second a fit
    python benchmarks/moctsvm.py report results.jsonl

The costs are set once and not chosen by any result: c1 = 1, c2 = 10, c3 = 1 (OCTSVM, one class against the rest: the same, with
labels that cost 10 to give up; with two classes also with labels that are never given up), and alpha = 1 for OCT and OCT-H. CART has scikit-learn's defaults. Depths are levels of
splits everywhere: D of OCTSVM is one less. Lines that are in --out already are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.tree import DecisionTreeClassifier

import octsvm

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


def tables() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, ``X (n, p)`` and ``y (n,)`` of the three tables."""
    for name, load in (("iris", load_iris), ("wine", load_wine), ("digits", load_digits)):
        X, y = load(return_X_y=True)
        kept = y < 3
        yield name, X[kept], y[kept]


def trees(done: set[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """A second of heuristics, and each engine alone: no start, no heuristic."""
    ways: dict[str, dict[str, Any]] = {"a second": SECOND}
    ways |= {
        name: {"strategy": "exact", "solver": name, "time_limit": ENGINE_SECONDS, "on_mismatch": "ignore"}
        for name in ENGINES
    }
    for table, X, y in tables():
        for depth in DEPTHS:
            for way, options in ways.items():
                if ("trees", table, depth, way) in done:
                    continue
                began = time.monotonic()
                result = octsvm.fit("moctsvm", X, y, depth=depth, **COSTS, **options)
                yield {
                    "what": "trees",
                    "table": table,
                    "depth": depth,
                    "way": way,
                    "objective": result.objective,
                    "bound": result.bound,
                    "status": result.status,
                    "stop": result.stop,
                    "wrong": result.counts["wrong_rows"],
                    "seconds": round(time.monotonic() - began, 2),
                    "notes": list(result.notes),
                    "versions": result.versions,
                }


def accuracy(done: set[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """Share of right predictions on held-out rows, by folds."""
    iris, kind = load_iris(return_X_y=True)
    for table, X, y in [*tables(), (TWO_CLASSES, iris[kind > 0], kind[kind > 0])]:
        for depth in DEPTHS:
            for name, make in (OF_TWO if table == TWO_CLASSES else METHODS).items():
                if ("accuracy", table, depth, name) in done:
                    continue
                folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
                scores = [make(depth).fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds.split(X, y)]
                yield {"what": "accuracy", "table": table, "depth": depth, "way": name, "scores": scores}


def read(path: Path) -> list[dict[str, Any]]:
    """Lines of an earlier run."""
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )


def report(lines: list[dict[str, Any]]) -> str:
    """Two tables: objectives, and accuracies in percent."""
    out = []
    for what, ways in (("trees", ["a second", *ENGINES]), ("accuracy", list(OF_TWO))):
        out += [f"| table | D | {' | '.join(ways)} |", "|---" * (len(ways) + 2) + "|"]
        cells = {(n["table"], n["depth"], n["way"]): n for n in lines if n["what"] == what}
        for table, depth in dict.fromkeys(key[:2] for key in cells):
            found = [cells.get((table, depth, way)) for way in ways]
            shown = [
                ""
                if line is None
                else f"{100 * np.mean(line['scores']):.1f}"
                if what == "accuracy"
                else f"{line['objective']:.2f}"
                for line in found
            ]
            out.append(f"| {table} | {depth} | {' | '.join(shown)} |")
        out.append("")
    return "\n".join(out)


def main() -> None:
    """Run what is not there yet, or show it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["trees", "accuracy", "report"])
    parser.add_argument("results", type=Path, nargs="?", default=Path("benchmarks/results/moctsvm.jsonl"))
    parser.add_argument("--out", type=Path, help="the same as RESULTS")
    given = parser.parse_args()
    path = given.out or given.results
    lines = read(path)
    if given.command == "report":
        print(report(lines))
        return
    done = {(n["what"], n["table"], n["depth"], n["way"]) for n in lines}
    for line in {"trees": trees, "accuracy": accuracy}[given.command](done):
        with path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        print({k: v for k, v in line.items() if k not in ("notes", "versions")}, flush=True)


if __name__ == "__main__":
    main()
