"""The tables of docs/table2.md from a store of the experiment, or from its export.

python benchmarks/table2_page.py benchmarks/results/table2.csv.gz
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import readings
from octsvm.experiments import Protocol, read_cells
from octsvm.experiments.report.paper import published
from octsvm.experiments.selection import RULES, select

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


def accuracies(source: Path) -> pd.DataFrame:
    """Percent, indexed by rule, set and noise, a column a method."""
    cells = read_cells(source)
    protocol = Protocol.model_validate(cells.attrs["protocol"])
    table = select(cells, RULES, protocol=protocol).table["accuracy"]
    return (100 * table.unstack("method")).reindex(columns=list(NAMES))


def paper() -> pd.DataFrame:
    """The paper's percent, indexed by set and noise, a column a method."""
    return published()


def averages(ours: pd.DataFrame, theirs: pd.DataFrame) -> str:
    """Means over the sets by share of flipped labels, for every method and rule."""
    noises = sorted(ours.index.get_level_values("noise").unique())
    out = [
        "| method | figures | " + " | ".join(f"{noise:.0%}" for noise in noises) + " | all |",
        "|---|---|" + "--:|" * (len(noises) + 1),
    ]
    for method, name in NAMES.items():
        if method in theirs:
            by_noise = theirs[method].groupby("noise").mean()
            out.append(_line(f"**{name}**", "paper", [*by_noise, theirs[method].mean()]))
        for rule, title in TITLES.items():
            column = ours.loc[rule][method]
            by_noise = column.groupby("noise").mean()
            out.append(
                _line(
                    "" if method in theirs or rule != RULES[0] else f"**{name}**",
                    title,
                    [*by_noise, column.mean()],
                )
            )
    return "\n".join(out)


def by_set(ours: pd.DataFrame, theirs: pd.DataFrame, method: str) -> str:
    """Every set and share of flipped labels: the paper, ours by every rule, and the difference to the better oracle."""
    out = [
        "| set | flipped | paper | " + " | ".join(TITLES.values()) + " | best of each fold less paper |",
        "|---|--:|--:|" + "--:|" * (len(TITLES) + 1),
    ]
    for (name, noise), value in theirs[method].items():
        found = [ours.loc[(rule, name, noise), method] for rule in TITLES]
        less = ours.loc[("oracle_fold", name, noise), method] - value
        out.append(_line(str(name), f"{noise:.0%}", [value, *found], f" {less:+.2f} |"))
    return "\n".join(out)


def ceilings(source: Path, lines: list[dict[str, Any]]) -> str:
    """For the cells that were read in other ways: what any fit of any method reaches, and what more rows would.

    ``lines`` are those of benchmarks/readings.py.
    """
    cells = read_cells(source)
    cells = cells[cells["inner"] == 0]
    anything = (
        (cells["n_right"] / cells["n_score"])
        .groupby([cells["set"], cells["noise"], cells["repetition"], cells["fold"]])
        .max()
        .groupby(["set", "noise"])
        .mean()
    )
    theirs = paper()["octsvm"]
    out = [
        "| set | flipped | paper | OCTSVM, all repetitions | best fit of any method | OCTSVM, three folds train |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, noise in readings.CELLS:
        values = [theirs[name, noise]]
        for kind in ("exact", "any", "three folds train"):
            best = [
                100 * max(x["right"]) / x["n_score"]
                for x in lines
                if (x["set"], x["noise"], x["reading"]) == (name, noise, kind)
            ]
            values.append(100 * anything[name, noise] if kind == "any" else np.mean(best) if best else np.nan)
        out.append(_line(name, f"{noise:.0%}", values).replace("nan", "not measured"))
    return "\n".join(out)


def _line(first: str, second: str, values: list[float], last: str = "") -> str:
    return f"| {first} | {second} | " + " | ".join(f"{v:.2f}" for v in values) + " |" + last


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("--readings", type=Path, help="results of benchmarks/readings.py")
    asked = parser.parse_args()
    ours, theirs = accuracies(asked.source), paper()
    print(averages(ours, theirs), by_set(ours, theirs, "octsvm"), by_set(ours, theirs, "cart"), sep="\n\n")
    if asked.readings:
        print("", ceilings(asked.source, readings.read(asked.readings)), sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
