"""Kernels against wrong labels: OCTSVM and RE-SVM with and without one, an SVC and a random forest.

Moons, circles and a checkerboard of 80 samples, each --count times, and with --data a quarter of each of the eight data
sets there, at most 80 samples; 0 to 40 % of the labels are flipped. Parameters are chosen by threefold cross-validation on
the flipped labels; the accuracy is that on samples with right labels that no fit saw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import make_circles, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

import octsvm

from .. import tables
from ..cases import SETS, quarter
from ..study import Line, Study, Watch, every

FLIPS = (0.0, 0.1, 0.2, 0.3, 0.4)
TRAIN, TEST = 80, 4000
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
        RandomForestClassifier(n_estimators=100, random_state=0),
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


def sample(name: str, seed: int, folder: Any) -> tuple[Any, Any, Any, Any]:
    """Training table and clean test table."""
    if name in SHAPES:
        return *SHAPES[name](TRAIN, seed), *SHAPES[name](TEST, 1000 + seed)
    X, y, X_test, y_test = quarter(folder, name)
    return X.to_numpy(float)[:TRAIN], y.to_numpy()[:TRAIN], X_test.to_numpy(float), y_test.to_numpy()


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


def cells(asked: Any) -> Iterator[Line]:
    sets = [*product(SHAPES, range(asked.count)), *((name, 0) for name in SETS if asked.data is not None)]
    for name, seed in sets:
        yield from every(set=[name], seed=[seed], flip=FLIPS, method=(*GRIDS, *PEERS))


def measure(cell: Line, asked: Any) -> Line:
    """Accuracy of one method on one flipped table."""
    X, y, X_test, y_test = sample(cell["set"], cell["seed"], asked.data)
    noisy = octsvm.flip_labels(y, cell["flip"], seed=cell["seed"])
    watch = Watch()
    said, chosen = (ours if cell["method"] in GRIDS else peer)(cell["method"], X, noisy, X_test)
    return {
        "n": len(y),
        "accuracy": float(np.mean(said == y_test)),
        "chosen": {k: str(v) for k, v in chosen.items()},
        **watch.seconds(),
    }


def report(lines: list[Line]) -> str:
    """Mean accuracy on clean samples in percent, of each set and of all sets of a kind."""
    kinds = {
        name: f"mean of the {kind}" for kind, of in (("shapes", SHAPES), ("data sets", SETS)) for name in of
    }
    frame = pd.DataFrame(lines)
    frame = pd.concat([frame, frame.assign(set=frame["set"].map(kinds))])
    frame["set"] = pd.Categorical(frame["set"], [*kinds, *dict.fromkeys(kinds.values())])
    found = frame.groupby(["set", "flip", "method"], observed=True)["accuracy"].mean()
    means = (100 * found).unstack("method").reindex(columns=[*GRIDS, *PEERS])
    rows = [
        [name, f"{flip:.0%}", *("–" if np.isnan(v) else f"{v:.1f}" for v in line)]
        for (name, flip), line in means.iterrows()
    ]
    return tables.table(["set", "flipped", *means], rows)


STUDY = Study(
    key=("set", "seed", "flip", "method"),
    options={"data": None, "count": 3},
    code=("octsvm/heuristics", "octsvm/parameter_grid.py", "formulations"),
)
