"""The figures of a report: what its tables and pictures show, from the cells of a run and what the rules chose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import pandas as pd

from ..protocol import Protocol
from ..selection import Selection
from .paper import published, published_averages
from .ranks import Ranks, rank

ENOUGH_SETS = 5  # ranks over fewer sets are a draw of the lot


@dataclass(frozen=True)
class Run:
    """All that the report is made of; accuracies are in percent, indexed by set and noise, a column for each method."""

    protocol: Protocol
    cells: pd.DataFrame
    meta: Mapping[str, Any]
    selection: Selection

    @cached_property
    def expected(self) -> int:
        """How many cells the protocol has."""
        grids = sum(len(spec.settings()) for spec in self.protocol.methods.values())
        return len(list(self.protocol.parts())) * grids

    @cached_property
    def failed(self) -> pd.Series:
        """Which cells failed."""
        return self.cells["error"].fillna("").astype(str).ne("")

    @cached_property
    def titles(self) -> dict[str, str]:
        """Titles of the methods that have a figure, in the protocol's order."""
        present = set(self.selection.chosen["method"])
        return {m: spec.title for m, spec in self.protocol.methods.items() if m in present}

    @cached_property
    def columns(self) -> dict[str, str]:
        """Columns of the published table -> our method for it, by name, else by kind; none without a published set."""
        found: dict[str, str] = {}
        given = published().reindex(self.index).dropna(axis=1, how="all")
        for column in map(str, given.columns):
            kinds = [m for m, spec in self.protocol.methods.items() if spec.kind == column]
            method = column if column in kinds else next(iter(kinds), "")
            if method in self.titles:
                found[column] = method
        return found

    @property
    def small(self) -> bool:
        """Whether there are too few sets or draws to say which method is better."""
        return len(self.protocol.sets) < ENOUGH_SETS or self.protocol.repetitions == 1

    @cached_property
    def index(self) -> pd.MultiIndex:
        """All sets and noises."""
        return pd.MultiIndex.from_product([self.protocol.sets, self.protocol.noise], names=["set", "noise"])

    @cached_property
    def chosen(self) -> dict[tuple[str, str, float, str], pd.DataFrame]:
        """The chosen cells for each rule, set, noise and method."""
        grouped = self.selection.chosen.groupby(["rule", "set", "noise", "method"], sort=False)
        return {tuple(k): group for k, group in grouped}  # type: ignore[misc]

    def accuracy(self, rule: str) -> pd.DataFrame:
        """Our figures by a rule; NaN where there is none."""
        table = self.selection.table["accuracy"]
        if rule not in table.index.get_level_values("rule"):
            return pd.DataFrame(np.nan, self.index, list(self.titles))
        return 100 * table.loc[rule].unstack("method").reindex(index=self.index, columns=list(self.titles))

    @cached_property
    def common(self) -> pd.Index:
        """Sets and noises for which every method has a figure by every rule."""
        used = (self.accuracy(rule).dropna().index for rule in self.protocol.rules)
        return reduce(lambda one, other: one.intersection(other), used, self.index)

    @cached_property
    def paper(self) -> pd.DataFrame:
        """The published figures for the run's sets and noises, a column for each of our methods that has one."""
        given = published().reindex(self.index)[list(self.columns)]
        return given.rename(columns=self.columns)

    def paper_average(self, rows: pd.Index, printed: str) -> pd.Series:
        """The published figures' average over ``rows``: the ``printed`` one if it is of just these, else ours."""
        table, averages = published(), published_averages()
        whole = (
            table.index if printed == "total" else table.index[table.index.get_level_values("set") == printed]
        )
        if printed in averages.index and len(rows) == len(whole) and rows.isin(whole).all():
            line = averages.loc[printed]
            return pd.Series({m: line[column] for column, m in self.columns.items()})
        return self.paper.loc[rows].mean()

    @cached_property
    def ranks(self) -> dict[str, Ranks]:
        """Ranks by the paper's figures ("paper") and by those of each rule, where there are enough."""
        tables = {"paper": self.paper.dropna(axis=1, how="all")}
        tables |= {rule: self.accuracy(rule) for rule in self.protocol.rules}
        found = {what: rank(table) for what, table in tables.items()}
        return {what: ranks for what, ranks in found.items() if ranks is not None}

    @cached_property
    def relabelled(self) -> dict[str, pd.DataFrame]:
        """For each rule, of the chosen fits of methods that relabel: counts of rows by method and noise.

        The columns are n_train, relabelled, flipped, both, and precision and recall as shares.
        """
        out: dict[str, pd.DataFrame] = {}
        for rule in self.protocol.rules:
            chosen = self.selection.chosen
            chosen = chosen[(chosen["rule"] == rule) & chosen["relabelled"].notna()]
            counts = ["n_train", "relabelled", "flipped", "both"]
            found = chosen.groupby(["method", "noise"], sort=False)[counts].sum().astype(float)
            # Without flips there is nothing to find: neither of the two says anything.
            flips = found["flipped"].where(found["flipped"] > 0)
            found["precision"] = found["both"] / found["relabelled"].where(
                flips.gt(0) & found["relabelled"].gt(0)
            )
            found["recall"] = found["both"] / flips
            if len(found):
                order = [m for m in self.titles if m in found.index.get_level_values("method")]
                out[rule] = found.reindex(order, level="method").reset_index()
        return out

    @cached_property
    def fits(self) -> pd.DataFrame:
        """Cells of whole training parts that did not fail, with their ``gap`` in percent."""
        cells = self.cells[~self.cells["inner"].astype(bool) & ~self.failed]
        return cells.assign(gap=100 * gap(cells))


def gap(cells: pd.DataFrame) -> pd.Series:
    """Relative gap of objective and bound, NaN without a finite bound; 0 where the objective is."""
    objective, bound = cells["objective"].astype(float), cells["bound"].astype(float)
    known = np.isfinite(objective) & np.isfinite(bound)
    relative = ((objective - bound) / objective.where(objective > 1e-9)).clip(lower=0)
    return relative.where(objective > 1e-9, 0.0).where(known)
