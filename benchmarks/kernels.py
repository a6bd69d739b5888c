"""Kernels against wrong labels: `python benchmarks/kernels.py [--data DIR] [--seeds 3] [--out results.jsonl]`.

Moons, circles and a checkerboard of 120 samples, or with --data a quarter of each of the eight data sets there (one CSV a set,
label last), with 0 to 40 % of the labels flipped. OCTSVM and RE-SVM with and without the kernel "rbf" stand beside the SVC
of that kernel and a random forest. Parameters are chosen by threefold cross-validation on the flipped labels; the accuracy is that on clean
samples that no fit saw. Prints a Markdown table; --out collects JSON lines, and cells that are in it already are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from real_data import SETS, quarter
from sklearn.base import clone
from sklearn.datasets import make_circles, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

import octsvm

FLIPS = (0.0, 0.1, 0.2, 0.3, 0.4)
TRAIN, TEST = 120, 4000
STEPS = 3  # of the search along the grid, for each setting
COSTS = [{"c1": c1, "c2": c1 * r} for c1, r in product((1.0, 10.0, 100.0), (0.5, 2.0))]
GAMMAS: list[Any] = ["scale", 20.0]
KERNELS = [{"kernel": "rbf", "gamma": g} for g in GAMMAS]
GRIDS: dict[str, tuple[str, dict[str, Any], list[dict[str, Any]]]] = {
    "octsvm": ("octsvm", {"depth": 1, "c3": 0.1}, COSTS),
    "octsvm rbf": ("octsvm", {"depth": 1, "c3": 0.1}, [a | b for a, b in product(KERNELS, COSTS)]),
    "re_svm": ("re_svm", {}, COSTS),
    "re_svm rbf": ("re_svm", {}, [a | b for a, b in product(KERNELS, COSTS)]),
}
PEERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "svc rbf": (
        make_pipeline(MinMaxScaler(), SVC(kernel="rbf")),
        {"svc__C": [0.1, 1.0, 10.0, 100.0], "svc__gamma": GAMMAS},
    ),
    "random forest": (
        RandomForestClassifier(n_estimators=200, random_state=0),
        {"min_samples_leaf": [1, 3, 10], "max_features": ["sqrt", None]},
    ),
}


def checkerboard(n: int, seed: int) -> tuple[Any, Any]:
    """Samples (n, 2) on four by four fields."""
    X = np.random.default_rng(seed).uniform(0, 4, (n, 2))
    return X, np.floor(X).sum(axis=1).astype(int) % 2


SHAPES: dict[str, Callable[[int, int], tuple[Any, Any]]] = {
    "moons": lambda n, seed: make_moons(n, noise=0.15, random_state=seed),
    "circles": lambda n, seed: make_circles(n, noise=0.1, factor=0.5, random_state=seed),
    "checkerboard": checkerboard,
}


def tables(folder: Path | None, seeds: int) -> Iterator[tuple[str, int, Any, Any, Any, Any]]:
    """Name, seed, training table and clean test table."""
    if folder is not None:
        for name in SETS:
            X, y, X_test, y_test = quarter(folder, name)
            yield name, 0, X.to_numpy(float), y.to_numpy(), X_test.to_numpy(float), y_test.to_numpy()
        return
    for name, seed in product(SHAPES, range(seeds)):
        yield name, seed, *SHAPES[name](TRAIN, seed), *SHAPES[name](TEST, 1000 + seed)


def ours(name: str, X: Any, y: Any, X_test: Any) -> tuple[Any, dict[str, Any]]:
    """Predictions on ``X_test`` of the setting that does best on held-out parts of the flipped table."""
    formulation, fixed, settings = GRIDS[name]
    right = np.zeros(len(settings))
    for inner, outer in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        path = octsvm.fit_path(formulation, X[inner], y[inner], settings, work_limit=STEPS, **fixed)
        for k, result in path:
            right[k] += (result.tree.predict(X[outer]) == y[outer]).sum()
    best = int(right.argmax())
    others = set(range(len(settings))) - {best}
    ((_, result),) = octsvm.fit_path(formulation, X, y, settings, work_limit=STEPS, skip=others, **fixed)
    return result.tree.predict(X_test), settings[best]


def peer(name: str, X: Any, y: Any, X_test: Any) -> tuple[Any, dict[str, Any]]:
    """The same of a classifier of scikit-learn."""
    model, grid = PEERS[name]
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(clone(model), grid, cv=folds).fit(X, y)
    return search.predict(X_test), search.best_params_


def table(lines: list[dict[str, Any]]) -> str:
    """Mean accuracy on clean samples, in percent."""
    methods = [*GRIDS, *PEERS]
    out = ["| set | flipped | " + " | ".join(methods) + " |", "|---" * (len(methods) + 2) + "|"]
    for name, flip in dict.fromkeys((c["set"], c["flip"]) for c in lines):
        means = []
        for method in methods:
            found = [
                c["accuracy"] for c in lines if (c["set"], c["flip"], c["method"]) == (name, flip, method)
            ]
            means.append(f"{100 * np.mean(found):.1f}" if found else "–")
        out.append(f"| {name} | {flip:.0%} | " + " | ".join(means) + " |")
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--flips", type=float, nargs="+", default=FLIPS)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    done: list[dict[str, Any]] = []
    if arguments.out and arguments.out.exists():
        done = [json.loads(line) for line in arguments.out.read_text(encoding="utf-8").splitlines()]
    known = {(c["set"], c["seed"], c["flip"], c["method"]) for c in done}
    for (name, seed, X, y, X_test, y_test), flip in product(
        tables(arguments.data, arguments.seeds), arguments.flips
    ):
        noisy = octsvm.flip_labels(y, flip, seed=seed)
        for method in (*GRIDS, *PEERS):
            if (name, seed, flip, method) in known:
                continue
            began = time.monotonic()
            said, chosen = (ours if method in GRIDS else peer)(method, X, noisy, X_test)
            cell = {
                "set": name,
                "seed": seed,
                "flip": flip,
                "method": method,
                "n": len(y),
                "accuracy": float(np.mean(said == y_test)),
                "chosen": {k: str(v) for k, v in chosen.items()},
                "seconds": time.monotonic() - began,
            }
            done.append(cell)
            if arguments.out:
                with arguments.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(cell) + "\n")
    print(table(done))


if __name__ == "__main__":
    main()
