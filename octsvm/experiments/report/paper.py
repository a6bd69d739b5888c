"""The published figures: Table 2 of Blanco, Japón and Puerto (2022)."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import pandas as pd
import yaml

SOURCE = (
    "V. Blanco, A. Japón, J. Puerto: Robust optimal classification trees under noisy labels, "
    "Advances in Data Analysis and Classification 16 (2022), Table 2"
)


@lru_cache(maxsize=1)
def _raw() -> dict[str, dict[str, dict[int, list[float]]]]:
    return yaml.safe_load((files(__package__) / "paper.yaml").read_text(encoding="utf-8"))


def published() -> pd.DataFrame:
    """Accuracies in percent, indexed by set and noise (a share), one column for each of cart, oct, oct_h and octsvm."""
    raw = _raw()
    rows = {
        (name, percent / 100): values
        for name, lines in raw["accuracy"].items()
        for percent, values in lines.items()
    }
    index = pd.MultiIndex.from_tuples(rows, names=["set", "noise"])
    return pd.DataFrame(list(rows.values()), index=index, columns=list(raw["columns"]))


def published_averages() -> pd.DataFrame:
    """The averages that the table prints, in percent, indexed by set and "total"."""
    raw = _raw()
    return pd.DataFrame.from_dict(raw["average"], orient="index", columns=list(raw["columns"]))
