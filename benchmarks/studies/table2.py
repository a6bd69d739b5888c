"""The tables of docs/table2.md, from a store of the paper's experiment or from its export.

The results are made by ``octsvm table2 run``.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from octsvm.experiments import Protocol, read_cells
from octsvm.experiments.report.paper import published
from octsvm.experiments.selection import RULES, select

from ..run import read
from ..study import RESULTS, Line, Study
from ..tables import table
from . import readings

NAMES = {
    "cart": "CART",
    "oct": "OCT",
    "oct_h": "OCT-H",
    "octsvm": "OCTSVM",
    "re_svm": "RE-SVM",
    "svm": "SVM",
    "stree": "STree",
    "cleanlab_cart": "cleanlab + CART",
}
TITLES = {
    "oracle_mean": "best mean",
    "oracle_fold": "best of each fold",
    "honest": "honest",
}


@lru_cache(maxsize=1)
def accuracies(source: Path) -> pd.DataFrame:
    """Percent, indexed by rule, set and noise, a column a method."""
    cells = read_cells(source)
    protocol = Protocol.model_validate(cells.attrs["protocol"])
    table = select(cells, RULES, protocol=protocol).table["accuracy"]
    return (100 * table.unstack("method")).reindex(columns=list(NAMES))


def averages(ours: pd.DataFrame, theirs: pd.DataFrame) -> str:
    """Means over the sets by share of flipped labels, for every method and rule."""
    noises = sorted(ours.index.get_level_values("noise").unique())
    rows = []
    for method, name in NAMES.items():
        if method in theirs:
            by_noise = theirs[method].groupby("noise").mean()
            rows.append([f"**{name}**", "paper", *_figures([*by_noise, theirs[method].mean()])])
        for rule, title in TITLES.items():
            column = ours.loc[rule][method]
            by_noise = column.groupby("noise").mean()
            label = "" if method in theirs or rule != RULES[0] else f"**{name}**"
            rows.append([label, title, *_figures([*by_noise, column.mean()])])
    head = ["method", "figures", *(f"{noise:.0%}" for noise in noises), "all"]
    return table(head, rows, "|---|---|" + "--:|" * (len(noises) + 1))


def by_set(ours: pd.DataFrame, theirs: pd.DataFrame, method: str) -> str:
    """Every set and share of flipped labels: the paper, ours by every rule, and the difference to the better oracle."""
    rows = []
    for (name, noise), value in theirs[method].items():
        found = [ours.loc[(rule, name, noise), method] for rule in TITLES]
        less = ours.loc[("oracle_fold", name, noise), method] - value
        rows.append([name, f"{noise:.0%}", *_figures([value, *found]), f"{less:+.2f}"])
    head = ["set", "flipped", "paper", *TITLES.values(), "best of each fold less paper"]
    return table(head, rows, "|---|--:|--:|" + "--:|" * (len(TITLES) + 1))


def ceilings(source: Path, lines: list[Line]) -> str:
    """For the cells that were read in other ways: what any fit of any method reaches, and what more rows would.

    ``lines`` are those of the study ``readings``.
    """
    cells = read_cells(source)
    by_fold = cells[~cells["inner"]].groupby(["set", "noise", "repetition", "fold"])["score"].max()
    read = pd.DataFrame(lines)
    read["score"] = read["right"].map(max) / read["n_score"]
    found = read.pivot_table("score", ["set", "noise"], "reading").reindex(readings.CELLS)
    found["any"] = by_fold.groupby(["set", "noise"]).mean()
    theirs = published()["octsvm"]
    rows = []
    for name, noise in readings.CELLS:
        best = 100 * found.loc[(name, noise), ["exact", "any", "three folds train"]]
        rows.append([name, f"{noise:.0%}", *_figures([theirs[name, noise], *best])])
    head = ["set", "flipped", "paper", "OCTSVM, all repetitions", "best fit of any method"]
    return table([*head, "OCTSVM, three folds train"], rows, "|---|--:|--:|--:|--:|--:|")


def _figures(values: list[float]) -> list[str]:
    return ["not measured" if np.isnan(v) else f"{v:.2f}" for v in values]


def _source(lines: list[Line]) -> Path:
    return Path(lines[0]["source"])


def report(lines: list[Line]) -> str:
    """Averages, then OCTSVM and CART set by set."""
    ours, theirs = accuracies(_source(lines)), published()
    tables = averages(ours, theirs), by_set(ours, theirs, "octsvm"), by_set(ours, theirs, "cart")
    return "\n\n".join(tables)


STUDY = Study(
    key=("source",),
    results="table2.csv.gz",
    made_by="octsvm table2 run",
    code=("octsvm/experiments", "octsvm/heuristics"),
    parts={
        "averages": lambda lines: averages(accuracies(_source(lines)), published()),
        "octsvm": lambda lines: by_set(accuracies(_source(lines)), published(), "octsvm"),
        "cart": lambda lines: by_set(accuracies(_source(lines)), published(), "cart"),
        "ceilings": lambda lines: ceilings(_source(lines), read(RESULTS / "readings.jsonl")),
    },
)
