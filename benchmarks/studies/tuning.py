"""What choosing brings: OCTSVM and RE-SVM tuned and with usual costs, beside other classifiers, on noisy labels.

A quarter of each set trains with a share of its labels flipped, the rest tests with its own labels; of other sets 200 rows
train, or half where there are fewer. No test label is seen by any choice, but by the one that is said to be no choice: the best of the grid.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import octsvm
from octsvm import datasets
from octsvm.data import prepare
from octsvm.experiments import Part, load_protocol, part_data
from octsvm.formulations.registry import formulation
from octsvm.tuning.grids import absolute, settings_of

from ..study import REQUIRED, Line, Study, Watch, every
from ..tables import table

PROTOCOL = load_protocol("table2")
SHARES = (0.0, 0.2, 0.3, 0.4)
ROWS, TEST_ROWS = 200, 1_000
CEILING = "best on test labels"
KERNELS_TOO = "OCTSVM tuned, kernels too"
Rows = tuple[Any, Any, Any, Any]
Table = tuple[Any, Any]


def square(seed: int) -> Any:
    return np.random.default_rng(seed).random((ROWS + TEST_ROWS, 2))


def exclusive_or(seed: int) -> Table:
    X = square(seed)
    return X, (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)


def checkerboard(seed: int) -> Table:
    X = square(seed)
    return X, (np.floor(3 * X[:, 0]) + np.floor(3 * X[:, 1])) % 2 == 1


def moons(seed: int) -> Table:
    from sklearn.datasets import make_moons

    X, y = make_moons(ROWS + TEST_ROWS, noise=0.2, random_state=seed)
    return X, y


def monk(problem: int, seed: int) -> Table:
    """The three problems of Thrun et al. (1991) on all 432 rows, their values as numbers."""
    values = [np.arange(1, k + 1) for k in (3, 3, 2, 3, 4, 2)]
    a = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, 6)
    y = (
        (a[:, 0] == a[:, 1]) | (a[:, 4] == 1),
        (a == 1).sum(axis=1) == 2,
        ((a[:, 4] == 3) & (a[:, 3] == 1)) | ((a[:, 4] != 4) & (a[:, 1] != 3)),
    )[problem - 1]
    order = np.random.default_rng(seed).permutation(len(a))
    return a[order].astype(float), y[order]


def sklearn_set(name: str, seed: int) -> Table:
    """A set of scikit-learn's, its first class against the others, in random order."""
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order] == 0


def gaussians(seed: int) -> Table:
    """Two classes of 20 normal columns, 2/√20 away from 0 each (Breiman's twonorm)."""
    y = np.random.default_rng(seed).random(ROWS + TEST_ROWS) < 0.5
    centres = np.where(y, 1, -1)[:, None] * 2 / np.sqrt(20)
    return centres + np.random.default_rng(seed + 1).normal(size=(len(y), 20)), y


def clusters(seed: int) -> Table:
    """Two clusters of each class in four of ten columns, scikit-learn's make_classification."""
    from sklearn.datasets import make_classification

    X, y = make_classification(ROWS + TEST_ROWS, 10, n_informative=4, flip_y=0, random_state=seed)
    return X, y


CURVED: dict[str, Callable[[int], Table]] = {
    "xor": exclusive_or,
    "checkerboard": checkerboard,
    "moons": moons,
    "monk 1": partial(monk, 1),
    "monk 2": partial(monk, 2),
    "monk 3": partial(monk, 3),
}
UNSEEN: dict[str, Callable[[int], Table]] = {
    "breast cancer": partial(sklearn_set, "breast_cancer"),
    "wine": partial(sklearn_set, "wine"),
    "two normals": gaussians,
    "clusters": clusters,
}
MADE = CURVED | UNSEEN


def cells(asked: Any) -> Iterator[Line]:
    places = {"repetition": range(asked.count), "fold": range(PROTOCOL.folds), "share": SHARES}
    for cell in every(**places, set=(*PROTOCOL.sets, *MADE), method=METHODS):
        if cell["set"] not in CURVED or cell["share"] <= 0.2:
            yield cell


def rows(cell: Line, data: Any) -> Rows:
    """Training rows with flips, test rows without."""
    if cell["set"] not in MADE:
        part = Part(cell["set"], cell["share"], cell["repetition"], cell["fold"], False)
        found = part_data(PROTOCOL, part, datasets.load(cell["set"], data_dir=data))
        return found.X, found.y, found.X_score, found.y_score
    seed = 100 * cell["repetition"] + cell["fold"]
    X, truth = MADE[cell["set"]](seed)
    y = np.where(truth, 1, -1)
    n = min(ROWS, len(y) // 2)
    return X[:n], octsvm.flip_labels(y[:n], cell["share"], seed), X[n:], y[n:]


class Chosen(NamedTuple):
    """The tree of a tuning, and of all settings its scores, and the trees that all training rows give."""

    tree: octsvm.Tree
    scores: Any
    trees: list[octsvm.Tree]

    def predict(self, X: Any) -> Any:
        return self.tree.predict(X)

    def settings(self, X: Any, y: Any) -> list[list[float]]:
        """Of each setting the accuracy over the folds, the standard error of its difference from the best, and the accuracy on (X, y)."""
        kept = self.scores[["accuracy", "standard_error"]].to_numpy().tolist()
        tests = [float(np.mean(np.asarray(tree.predict(X)) == y)) for tree in self.trees]
        return [[round(v, 4) for v in (*two, test)] for two, test in zip(kept, tests, strict=True)]


def trees(name: str, X: Any, y: Any, settings: list[Any]) -> list[octsvm.Tree]:
    """One for each setting of relative costs."""
    plain = absolute(formulation(name), settings, {}, prepare(formulation(name), X, y))
    return [result.tree for _, result in octsvm.fit_path(name, X, y, plain, work_limit=1)]


def usual(name: str, X: Any, y: Any) -> Any:
    """The tree with the costs where the prior is highest."""
    tried = formulation(name).tried
    assert tried is not None
    return trees(name, X, y, [tried.usual])[0]


def tuned(name: str, X: Any, y: Any, kernel: str | None = None) -> Chosen:
    """What is chosen, searched for itself, and what all settings give, along the grid."""
    more = {} if kernel is None else {"kernel": kernel}
    tuning = octsvm.tune(name, X, y, refit=False, time_limit=1e6, **more)  # all folds
    ((_, result),) = octsvm.fit_path(name, X, y, [tuning.choice])
    settings = settings_of(formulation(name), None, kernels=kernel is not None)
    return Chosen(result.tree, tuning.scores, trees(name, X, y, settings))


def paper_costs(X: Any, y: Any) -> Any:
    """OCTSVM with c1 = c2 = c3 = 1 and two levels above the last, as the formulation has them."""
    return next(iter(octsvm.fit_path("octsvm", X, y, [{}])))[1].tree


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


LINEAR_SVCS = ("SVC C = 1", "SVC tuned")
OTHERS = (*LINEAR_SVCS, "logistic", "forest", "CART")
METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "OCTSVM tuned": partial(tuned, "octsvm"),
    "RE-SVM tuned": partial(tuned, "re_svm"),
    KERNELS_TOO: partial(tuned, "octsvm", kernel="auto"),
    "OCTSVM usual": partial(usual, "octsvm"),
    "RE-SVM usual": partial(usual, "re_svm"),
    "OCTSVM c = 1": paper_costs,
    **{kind: partial(other, kind) for kind in OTHERS},
}


def measure(cell: Line, asked: Any) -> Line:
    """Fit on the noisy rows, count on the rest."""
    X, y, X_test, y_test = rows(cell, asked.data)
    watch = Watch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = METHODS[cell["method"]](X, y)
    seconds = watch.seconds()
    more = {"settings": model.settings(X_test, y_test)} if isinstance(model, Chosen) else {}
    tree = model.tree if isinstance(model, Chosen) else model
    return {
        "n": len(y),
        "accuracy": float(np.mean(np.asarray(model.predict(X_test)) == y_test)),
        "depth": tree.depth if isinstance(tree, octsvm.Tree) else None,
        **({"kind": tree.kind} if isinstance(tree, octsvm.Tree) else {}),
        **more,
        **seconds,
    }


def mean_table(
    lines: list[Line],
    names: Iterable[str],
    by: str,
    methods: Iterable[str] = tuple(m for m in METHODS if m != KERNELS_TOO),
    share: float | None = None,
) -> str:
    """Mean accuracy in per cent of each method, and how far OCTSVM is from the best other one with the standard error.

    On the parts (set, share, repetition, fold) that all methods have, of one share where that is given.
    """
    chosen = [
        line
        for line in lines
        if line["set"] in names and line["method"] in methods and share in (None, line["share"])
    ]
    ceiling = [
        line | {"method": CEILING, "accuracy": max(test for *_, test in line["settings"])}
        for line in chosen
        if line["method"] == "OCTSVM tuned" and "settings" in line
    ]
    frame = pd.DataFrame(chosen + ceiling, columns=[*KEY, "accuracy"])
    whole = 100 * frame.pivot(index=list(KEY[:-1]), columns="method", values="accuracy").dropna()
    columns = [part for _, part in whole.groupby(level=by)] + [whole]
    heads = [key if by == "set" else f"{key:.0%}" for key in whole.groupby(level=by).groups]
    methods = [m for m in (*METHODS, CEILING) if m in whole]
    body = [[m, *(f"{part[m].mean():.1f}" for part in columns)] for m in methods]
    for m in whole.columns.intersection(("OCTSVM tuned", KERNELS_TOO, "OCTSVM usual")):
        for who, of in (("other", OTHERS), ("linear SVC", LINEAR_SVCS)):
            others = whole.columns.intersection(of)
            less = [part[m] - part[part[others].mean().idxmax()] for part in columns if len(others)]
            body.append(
                [
                    f"{m} less the best {who}",
                    *(f"{d.mean():+.1f} ± {d.sem():.1f}".removesuffix(" ± nan") for d in less),
                ]
            )
    return table(["method", *heads, f"all {len(whole)} parts"], body if len(whole) else [])


WITH_KERNELS = ("OCTSVM tuned", KERNELS_TOO, "OCTSVM usual", *OTHERS)
KEY = ("set", "share", "repetition", "fold", "method")
PARTS: dict[str, Callable[[list[Line]], str]] = {
    "tuning": lambda lines: mean_table(lines, PROTOCOL.sets, "share"),
    "tuning_curved": lambda lines: mean_table(lines, CURVED, "set", WITH_KERNELS, 0.0),
    "tuning_curved_flipped": lambda lines: mean_table(lines, CURVED, "set", WITH_KERNELS, 0.2),
    "tuning_kernels": lambda lines: mean_table(lines, PROTOCOL.sets, "share", WITH_KERNELS),
    "tuning_unseen": lambda lines: mean_table(lines, UNSEEN, "set"),
    "tuning_unseen_shares": lambda lines: mean_table(lines, UNSEEN, "share"),
}


STUDY = Study(
    key=KEY,
    options={"data": REQUIRED, "count": 4},
    quick={"count": 1},
    quick_cells=len(METHODS),
    parts=PARTS,
)
