"""What choosing brings: OCTSVM and RE-SVM tuned and with usual costs, beside other classifiers, on noisy labels.

A quarter of each set trains with a share of its labels flipped, the rest tests with its own labels; made sets train on 100
rows and test on 1,000. No test label is seen by any choice.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import octsvm
from octsvm import datasets
from octsvm.data import prepare
from octsvm.experiments import Part, load_protocol, part_data
from octsvm.formulations.registry import formulation
from octsvm.tuning.grids import absolute

from ..study import REQUIRED, Line, Study, Watch, every
from ..tables import table

PROTOCOL = load_protocol("table2")
SHARES = (0.0, 0.2, 0.3, 0.4)
ROWS, TEST_ROWS = 100, 1_000
Rows = tuple[Any, Any, Any, Any]


def exclusive_or(X: Any) -> Any:
    return (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)


def checkerboard(X: Any) -> Any:
    return (np.floor(3 * X[:, 0]) + np.floor(3 * X[:, 1])) % 2 == 1


MADE: dict[str, Callable[[Any], Any] | None] = {
    "xor": exclusive_or,
    "checkerboard": checkerboard,
    "moons": None,
}


def cells(asked: Any) -> Iterator[Line]:
    places = {"repetition": range(asked.count), "fold": range(PROTOCOL.folds), "share": SHARES}
    for cell in every(**places, set=(*PROTOCOL.sets, *MADE), method=METHODS):
        if cell["set"] not in MADE or cell["share"] <= 0.2:
            yield cell


def rows(cell: Line, data: Any) -> Rows:
    """Training rows with flips, test rows without."""
    if cell["set"] not in MADE:
        part = Part(cell["set"], cell["share"], cell["repetition"], cell["fold"], False)
        found = part_data(PROTOCOL, part, datasets.load(cell["set"], data_dir=data))
        return found.X, found.y, found.X_score, found.y_score
    from sklearn.datasets import make_moons

    seed = 100 * cell["repetition"] + cell["fold"]
    truth = MADE[cell["set"]]
    if truth is None:
        X, y = make_moons(ROWS + TEST_ROWS, noise=0.2, random_state=seed)
    else:
        X = np.random.default_rng(seed).random((ROWS + TEST_ROWS, 2))
        y = truth(X)
    y = np.where(y, 1, -1)
    return X[:ROWS], octsvm.flip_labels(y[:ROWS], cell["share"], seed), X[ROWS:], y[ROWS:]


def found(name: str, X: Any, y: Any, setting: dict[str, Any]) -> Any:
    """The tree of the heuristics along a grid, at one setting; {} is c1 = c2 = c3 = 1 and two levels above the last."""
    ((_, result),) = octsvm.fit_path(name, X, y, [setting])
    return result.tree


def usual(name: str, X: Any, y: Any) -> Any:
    """The tree with the costs where the prior is highest."""
    form = formulation(name)
    assert form.tried is not None
    (setting,) = absolute(form, [form.tried.usual], {}, prepare(form, X, y))
    return found(name, X, y, setting)


def tuned(name: str, X: Any, y: Any) -> Any:
    """The tree with the costs that were chosen, by the heuristics that chose them."""
    return found(name, X, y, octsvm.tune(name, X, y, refit=False, time_limit=1e6).choice)  # all folds


def other(kind: str, X: Any, y: Any) -> Any:
    """A classifier of scikit-learn's on features in [0, 1]."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    least = max(1, round(PROTOCOL.min_samples_leaf * len(y)))
    machine: Any = {
        "SVC": SVC(kernel="linear", max_iter=1_000_000),
        "logistic": LogisticRegression(max_iter=1_000),
        "forest": RandomForestClassifier(random_state=0),
        "CART": DecisionTreeClassifier(max_depth=3, min_samples_leaf=least, random_state=0),
    }[kind.split()[0]]
    model: Any = make_pipeline(MinMaxScaler(), machine)
    if kind.endswith("tuned"):
        folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0)
        model = GridSearchCV(model, {"svc__C": list(np.geomspace(1e-2, 1e2, 9))}, cv=folds)
    return model.fit(X, y)


METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "OCTSVM usual": partial(usual, "octsvm"),
    "RE-SVM usual": partial(usual, "re_svm"),
    "OCTSVM c = 1": partial(found, "octsvm", setting={}),
    **{kind: partial(other, kind) for kind in ("SVC C = 1", "SVC tuned", "logistic", "forest", "CART")},
    "OCTSVM tuned": partial(tuned, "octsvm"),
    "RE-SVM tuned": partial(tuned, "re_svm"),
}


def measure(cell: Line, asked: Any) -> Line:
    """Fit on the noisy quarter, count on the rest."""
    X, y, X_test, y_test = rows(cell, asked.data)
    watch = Watch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = METHODS[cell["method"]](X, y)
    return {
        "n": len(y),
        "accuracy": float(np.mean(np.asarray(model.predict(X_test)) == y_test)),
        "depth": getattr(model, "depth", None) if isinstance(model, octsvm.Tree) else None,
        **watch.seconds(),
    }


def mean_table(lines: list[Line], names: tuple[str, ...], by: str) -> str:
    """Mean accuracy in per cent of each method over the sets ``names``, on the parts that all methods have."""
    columns = ["set", "share", "repetition", "fold", "method", "accuracy"]
    chosen = pd.DataFrame([line for line in lines if line["set"] in names], columns=columns)
    whole = 100 * chosen.pivot(index=columns[:4], columns="method", values="accuracy").dropna()
    means = whole.groupby(level=by).mean()
    heads = [key if by == "set" else f"{key:.0%}" for key in means.index]
    body = [
        [m, *(f"{v:.1f}" for v in (*means[m], whole[m].mean()))] for m in METHODS if m in whole and len(whole)
    ]
    return table(["method", *heads, f"all {len(whole)} parts"], body)


def report(lines: list[Line]) -> str:
    return f"{mean_table(lines, PROTOCOL.sets, 'share')}\n\n{mean_table(lines, tuple(MADE), 'set')}"


STUDY = Study(
    key=("set", "share", "repetition", "fold", "method"),
    options={"data": REQUIRED, "count": 4},
    quick={"count": 1},
    quick_cells=len(METHODS),
)
