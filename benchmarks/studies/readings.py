"""Cells of the paper's table read in other ways: more repetitions, labels that flip by chance, more training rows.

The paper says which share of the training labels is flipped, and not whether exactly that share or every label with that
probability, independently of the others. A fold in which fewer labels flip is easier, and the oracle rules take
the best. For each cell the whole OCTSVM grid is fitted on four folds of several repetitions: with exact flips, with
independent ones, and with exact flips where three folds train and one tests, the usual way round.
--count is the number of repetitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import octsvm
from octsvm import datasets
from octsvm.datasets import Dataset
from octsvm.experiments import Part, load_protocol, part_data
from octsvm.experiments.parts import training_rows
from octsvm.experiments.report.paper import published

from ..study import REQUIRED, Line, Study
from ..tables import table

PROTOCOL = load_protocol("table2")
SHARES = {
    "heart": (0.4, 0.3, 0.2),
    "sonar": (0.4, 0.3),
    "monks": (0.4, 0.3),
    "ionosphere": (0.4,),
    "parkinson": (0.2,),
}
CELLS = [(name, noise) for name, noises in SHARES.items() for noise in noises]
READINGS = ("exact", "independent", "three folds train")


def read_as(part: Part, data: Dataset, reading: str) -> tuple[Any, ...]:
    """Training rows with noisy and given labels, and test rows with theirs: X, y, y_given, X_score, y_score."""
    if reading == "three folds train":
        X, y = np.asarray(data.X, dtype=float), np.asarray(data.y)
        test = training_rows(PROTOCOL, part, len(y))
        train = np.setdiff1d(np.arange(len(y)), test)
        noisy = octsvm.flip_labels(y[train], part.noise, part.seed(PROTOCOL.seed))
        return X[train], noisy, y[train], X[test], y[test]
    rows = part_data(PROTOCOL, part, data)
    noisy = rows.y
    if reading == "independent":
        rng = np.random.default_rng([part.seed(PROTOCOL.seed), 1])
        noisy = np.where(rng.random(len(noisy)) < part.noise, -rows.y_given, rows.y_given)
    return rows.X, noisy, rows.y_given, rows.X_score, rows.y_score


def whole_grid(part: Part, X: Any, y: Any) -> Iterator[tuple[int, octsvm.Result]]:
    """The results of the whole OCTSVM grid on a part's rows, as the experiment has them."""
    spec = PROTOCOL.methods["octsvm"]
    how = {"work_limit": spec.work, "seed": part.seed(PROTOCOL.seed), **spec.fixed}
    return octsvm.fit_path("octsvm", X, y, spec.settings(), **how)


def cells(asked: Any) -> Iterator[Line]:
    folds = range(PROTOCOL.folds)
    for repetition, (name, noise), fold, kind in product(range(asked.count), CELLS, folds, READINGS):
        place = {"set": name, "noise": noise, "repetition": repetition, "fold": fold}
        yield {"reading": kind, "part": Part(**place, inner=False).key, **place}


def measure(cell: Line, asked: Any) -> Line:
    """The whole grid on one part, read in one way."""
    part = Part(**{k: cell[k] for k in ("set", "noise", "repetition", "fold")}, inner=False)
    data = datasets.load(cell["set"], data_dir=asked.data)
    X, y, given, X_score, y_score = read_as(part, data, cell["reading"])
    path = whole_grid(part, X, y)
    return {
        "n": len(y),
        "flipped": float((y != given).mean()),
        "right": [int((found.tree.predict(X_score) == y_score).sum()) for _, found in path],
        "n_score": len(y_score),
    }


def report(lines: list[dict[str, Any]]) -> str:
    """By cell: the paper, and for each reading both oracle rules, with the standard error over repetitions."""
    paper = published()["octsvm"]
    found = dict(list(pd.DataFrame(lines).groupby(["set", "noise", "reading"])))
    rows = []
    for (name, noise), kind in product(CELLS, READINGS):
        if (name, noise, kind) not in found:
            continue
        cells = found[name, noise, kind]
        accuracy = 100 * np.array(cells["right"].tolist()) / cells[["n_score"]].to_numpy()
        best = accuracy.max(axis=1)
        of_repetition = pd.Series(best).groupby(cells["repetition"].to_numpy()).mean()
        spread = f"{of_repetition.sem():.2f}" if len(of_repetition) > 1 else ""
        rows.append(
            f"{name} | {noise:.0%} | {paper[name, noise]:.2f} | {kind} | {len(of_repetition)} | "
            f"{accuracy.mean(axis=0).max():.2f} | {best.mean():.2f} | {spread} | {best.min():.1f} to {best.max():.1f}"
        )
    head = (
        "set | flipped | paper | reading | repetitions | best mean | best of each fold | standard error | "
        "lowest to highest fold"
    )
    return table(head, rows, "|---|--:|--:|---|--:|--:|--:|--:|---|")


STUDY = Study(
    key=("reading", "part"),
    options={"data": REQUIRED, "count": 4},
    code=("octsvm/heuristics", "octsvm/experiments", "octsvm/parameter_grid.py"),
)
