"""When giving up labels helps: kinds of wrong labels, sizes, and a truth that is a hyperplane or exclusive or.

Five columns in [0, 1]. Whoever learns sees the wrong labels; accuracies are on 2,000 other rows with right ones. OCTSVM has the depth
of the truth; the margin models have four times the usual c1, and c2 that keeps all labels (100 c1) or gives some up (2 c1).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import octsvm
from octsvm.formulations.registry import formulation

from ..study import Line, Study, Watch, every
from ..tables import table
from .tuning import other, trees

SIZES, COLUMNS, TEST_ROWS = (50, 200, 1_000, 5_000), 5, 2_000
SHOWN = 200  # rows, of the tables by method
SHARE = 0.2  # of the labels that are wrong
NEAR, FAR = (
    0.4,
    3.0,
)  # share of the rows next to the boundary; how many times as far from the middle outliers are
DIRECTION = np.array([1.0, -1.0, 0.5, 0.0, 0.0])
HIGHER = 4.0  # than the usual c1, which is best on few rows of many columns

# Of points around the middle: positive on one side of the true boundary, and growing with the distance from it.
TRUTHS: dict[str, Callable[[Any], Any]] = {
    "hyperplane": lambda X: X @ DIRECTION,
    "exclusive or": lambda X: np.sign(X[:, 0] * X[:, 1]) * np.minimum(abs(X[:, 0]), abs(X[:, 1])),
}
WRONG = ("none", "at random", "of one class", "near the boundary", "far outliers", "in two clusters")


def wrong_rows(kind: str, X: Any, score: Any, rng: Any) -> Any:
    """Positions of the rows whose labels are wrong."""
    n = len(X)
    count = round(SHARE * n)
    if kind == "none":
        return np.array([], dtype=int)
    if kind == "of one class":
        return rng.permutation(np.flatnonzero(score > 0))[:count]
    if kind == "near the boundary":
        return rng.permutation(np.argsort(abs(score))[: round(NEAR * n)])[:count]
    if kind == "in two clusters":
        centres = X[rng.permutation(n)[:2]]
        nearest = np.argsort(((X[:, None] - centres) ** 2).sum(axis=2), axis=0)[: count // 2]
        return np.unique(nearest)
    return rng.permutation(n)[: count // 2 if kind == "far outliers" else count]


def rows(cell: Line) -> tuple[Any, Any, Any, Any, Any]:
    """X, the labels that are given and whether each is wrong; other rows with right labels."""
    rng = np.random.default_rng(cell["seed"])
    X, X_test = (rng.random((n, COLUMNS)) - 0.5 for n in (cell["n"], TEST_ROWS))
    score = TRUTHS[cell["truth"]](X)
    flipped = np.zeros(len(X), dtype=bool)
    flipped[wrong_rows(cell["wrong"], X, score, rng)] = True
    if cell["wrong"] == "far outliers":
        X[flipped] *= FAR
    y = np.where(score > 0, 1, -1)
    return X, np.where(flipped, -y, y), flipped, X_test, np.where(TRUTHS[cell["truth"]](X_test) > 0, 1, -1)


def tree(name: str, X: Any, y: Any, depth: int, ratio: float | None = None) -> Any:
    """The tree with usual costs, but of this depth and with this c2 of c1."""
    tried = formulation(name).tried
    assert tried is not None
    setting = dict(tried.usual)
    if name != "re_svm":
        setting["depth"] = depth + (name == "oct")  # axis-parallel splits: one level more
    if ratio is not None:
        setting |= {"c1": HIGHER * setting["c1"], "c2": ratio}
    return trees(name, X, y, [setting])[0]


def confident(X: Any, y: Any, depth: int) -> Any:
    """cleanlab's confident learning around logistic regression; its issues are in ``wrong``."""
    from cleanlab.classification import CleanLearning
    from sklearn.linear_model import LogisticRegression

    model = CleanLearning(LogisticRegression(), seed=0, find_label_issues_kwargs={"n_jobs": 1})
    model.fit(X, (y > 0).astype(int))
    return model


METHODS: dict[str, Callable[..., Any]] = {
    "OCTSVM keeps": partial(tree, "octsvm", ratio=100.0),
    "OCTSVM gives up": partial(tree, "octsvm", ratio=2.0),
    "RE-SVM keeps": partial(tree, "re_svm", ratio=100.0),
    "RE-SVM gives up": partial(tree, "re_svm", ratio=2.0),
    "OCT": partial(tree, "oct"),
    **{
        name: (lambda X, y, depth, kind=kind: other(kind, X, y))
        for name, kind in {"SVC": "SVC C = 1", "logistic": "logistic", "forest": "forest"}.items()
    },
    "cleanlab": confident,
}


def suspects(method: str, model: Any, X: Any, y: Any) -> Any:
    """Rows whose labels are given up in the end, or that the model classifies otherwise where it gives up none."""
    if method == "cleanlab":
        return np.flatnonzero(model.get_label_issues()["is_label_issue"].to_numpy(dtype=bool))
    if method.endswith("gives up"):
        report = octsvm.relabelling_report(model, X, y)
        return report["row"][report["predicted"] == report["believed"]].unique()
    return np.flatnonzero(np.asarray(model.predict(X)) != y)


def cells(asked: Any) -> Iterator[Line]:
    for cell in every(n=SIZES, truth=TRUTHS, wrong=WRONG, seed=range(asked.count), method=METHODS):
        if cell["n"] < SIZES[-1] or cell["seed"] == 0:
            yield cell


def measure(cell: Line, asked: Any) -> Line:
    X, y, flipped, X_test, y_test = rows(cell)
    watch = Watch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = METHODS[cell["method"]](X, y, depth=int(cell["truth"] != "hyperplane"))
        seconds = watch.seconds()
        found = suspects(cell["method"], model, X, y)
        predicted = np.asarray(model.predict(X_test))
    if cell["method"] == "cleanlab":
        predicted = 2 * predicted - 1
    return {
        "accuracy": float(np.mean(predicted == y_test)),
        "suspects": len(found),
        "found": int(flipped[found].sum()),
        "flipped": int(flipped.sum()),
        **seconds,
    }


def means(lines: list[Line]) -> str:
    """Mean accuracy in per cent of each method on tables of 200 rows."""
    frame = pd.DataFrame(lines)
    if not (shown := frame["n"] == SHOWN).any():
        return ""
    frame = frame[shown]
    of = 100 * frame.pivot_table("accuracy", ["truth", "wrong"], "method", sort=False)
    return by_wrong(of.map("{:.1f}".format))


def by_wrong(texts: pd.DataFrame) -> str:
    """A table of texts by truth, kind of wrong labels, and method."""
    of = texts[[m for m in METHODS if m in texts]]
    body = [[*key, *row] for key, row in zip(of.index, of.to_numpy(), strict=True)]
    return table(["truth", "wrong", *of.columns], body)


def gains(lines: list[Line]) -> str:
    """Points of accuracy that giving up labels adds to the same model with all labels kept, by size."""
    frame = pd.DataFrame(lines)
    of = 100 * frame.pivot(index=["truth", "wrong", "n", "seed"], columns="method", values="accuracy")
    gain = (of["OCTSVM gives up"] - of["OCTSVM keeps"]).dropna()
    cells = gain.groupby(level=["truth", "wrong", "n"]).mean().unstack("n")
    body = [
        [truth, wrong, *("" if v != v else f"{v:+.1f}" for v in cells.loc[(truth, wrong)])]
        for truth in TRUTHS
        for wrong in WRONG
        if (truth, wrong) in cells.index
    ]
    return table(["truth", "wrong", *(f"n = {n:,}" for n in cells.columns)], body)


def finds(lines: list[Line]) -> str:
    """Precision / recall in per cent of the suspects of each method, on tables of 200 rows."""
    frame = pd.DataFrame([line for line in lines if line["wrong"] != "none" and line["n"] == SHOWN])
    if frame.empty:
        return ""
    sums = frame.groupby(["truth", "wrong", "method"], sort=False)[["found", "suspects", "flipped"]].sum()
    precision, recall = (
        (100 * sums["found"] / sums[k]).map("{:.0f}".format).replace("nan", "–")
        for k in ("suspects", "flipped")
    )
    return by_wrong(
        (precision + " / " + recall)
        .unstack("method")
        .reindex(list(dict.fromkeys(sums.index.droplevel("method"))))
    )


PARTS: dict[str, Callable[[list[Line]], str]] = {
    "wrong_labels": means,
    "wrong_labels_gains": gains,
    "wrong_labels_found": finds,
}


STUDY = Study(
    key=("n", "truth", "wrong", "seed", "method"),
    options={"count": 3},
    quick={"count": 1},
    quick_cells=len(METHODS),
    parts=PARTS,
)
