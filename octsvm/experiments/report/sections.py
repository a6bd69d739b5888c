"""What the report says, section by section."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...errors import MissingPackage
from ..protocol import Protocol
from ..selection import Selection, cell_key
from . import pictures
from .document import Block, Heading, Picture, ReportTable, TableCell, TableRow, Text, number
from .paper import SOURCE, published, published_averages
from .ranks import Ranks, rank

RULE_TITLES = {
    "oracle_mean": "best mean test accuracy",
    "oracle_fold": "best test accuracy of each fold",
    "honest": "chosen on held-out training rows",
}
RULE_TEXTS = {
    "oracle_mean": "For each set, noise and method the grid point with the best mean test accuracy over folds and repetitions. "
    "This looks at the test labels; it is the reading that fits the paper's figures.",
    "oracle_fold": "For each fold the grid point with the best test accuracy. This looks at the test labels of every fold and is "
    "an upper limit of what any choice from the grid reaches.",
    "honest": "For each fold the grid point that does best on held-out rows of the noisy training part, refitted on the "
    "whole part. No test label is looked at. Ties go to the better neighbourhood in the grid, then to fewer splits, "
    "then to the grid's order.",
}

PROVED = 1e-6  # a gap up to this is none
QUANTILES = {"10 %": 0.1, "median": 0.5, "90 %": 0.9, "most": 1.0}


@dataclass(frozen=True)
class Run:
    """All that the report is made of."""

    protocol: Protocol
    cells: pd.DataFrame
    meta: Mapping[str, Any]
    selection: Selection

    @property
    def order(self) -> list[str]:
        """All methods of the protocol."""
        return list(self.protocol.methods)

    @cached_property
    def titles(self) -> dict[str, str]:
        """Titles of the methods that have a figure, in the protocol's order."""
        present = set(self.selection.chosen["method"])
        return {m: spec.title for m, spec in self.protocol.methods.items() if m in present}

    @cached_property
    def columns(self) -> dict[str, str]:
        """Columns of the published table -> our method for it, by name, else by kind."""
        found = {}
        for column in published().columns:
            kinds = [m for m, spec in self.protocol.methods.items() if spec.kind == column]
            if column in kinds:
                kinds = [column]
            if kinds and kinds[0] in self.titles:
                found[str(column)] = kinds[0]
        return found

    @cached_property
    def index(self) -> pd.MultiIndex:
        """All sets and noises."""
        return pd.MultiIndex.from_product([self.protocol.sets, self.protocol.noise], names=["set", "noise"])

    @cached_property
    def by_place(self) -> dict[tuple[str, str, float, str], pd.DataFrame]:
        """The chosen cells for each rule, set, noise and method."""
        grouped = self.selection.chosen.groupby(["rule", "set", "noise", "method"], sort=False)
        return {tuple(k): group for k, group in grouped}  # type: ignore[misc]

    def accuracy(self, rule: str) -> pd.DataFrame:
        """In percent, indexed by set and noise, a column for each method."""
        table = self.selection.table["accuracy"]
        if rule not in table.index.get_level_values("rule"):
            return pd.DataFrame(np.nan, self.index, list(self.titles))
        return 100 * table.loc[rule].unstack("method").reindex(index=self.index, columns=list(self.titles))

    @cached_property
    def paper(self) -> pd.DataFrame:
        """The published figures for the run's sets and noises, a column for each of our methods that has one."""
        given = published().reindex(self.index)[list(self.columns)]
        return given.rename(columns=self.columns)


def average(table: pd.DataFrame, rows: pd.Index) -> dict[str, float]:
    """Mean of each method over the sets and noises in ``rows``; NaN over none."""
    means = table.loc[table.index.isin(rows)].mean()
    return {str(m): float(v) for m, v in means.items()}


def by_noise(table: pd.DataFrame) -> pd.DataFrame:
    """Means over the sets and noises that every method has, for each noise."""
    return table.loc[table.index.isin(common_rows(table))].groupby(level="noise", sort=False).mean()


def figures(table: pd.DataFrame) -> dict[tuple[str, float], dict[str, float]]:
    """A table as (set, noise) -> method -> figure."""
    return dict(zip(table.index, table.to_dict("records"), strict=True))


def best(values: Mapping[str, float]) -> float:
    """The largest, rounded as it is shown; NaN where there is nothing to compare."""
    known = [round(v, 2) for v in values.values() if v == v]
    return max(known) if len(known) > 1 else np.nan


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("hours", 3600), ("minutes", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} seconds"


def common_rows(table: pd.DataFrame) -> pd.Index:
    """Sets and noises for which every method has a figure."""
    return table.dropna().index


def percent(noise: float) -> str:
    """A share as percent, without needless digits."""
    return f"{100 * noise:g}"


def anchor(rule: str, name: str, noise: float, method: str) -> str:
    """Where the report lists the cells behind a figure."""
    return f"{rule}-{name}-{percent(noise)}-{method}"


def params_text(params: str) -> str:
    """Parameters of a grid point, as text."""
    return " ".join(f"{k}={v:g}" for k, v in json.loads(params).items()) or "no parameters"


def _pair(label: str, value: Any) -> TableRow:
    return TableRow((TableCell(label), TableCell(str(value))))


def _head(*texts: str, numbers: int = 0) -> tuple[TableCell, ...]:
    """Headings, of which those from ``numbers`` on stand over numbers."""
    return tuple(TableCell(t, number=k >= numbers) for k, t in enumerate(texts))


def compose(run: Run) -> list[Block]:
    """The whole report."""
    blocks = [*summary(run), *overview(run)]
    for rule in run.protocol.rules:
        blocks += table2(run, rule)
    blocks += further(run)
    blocks += ranking(run)
    blocks += relabelling(run)
    blocks += effort(run)
    blocks += gaps_in_the_run(run)
    blocks += setting(run)
    blocks += trace(run)
    return _with_pictures(blocks)


@dataclass(frozen=True)
class _Later:
    """A picture that is drawn if matplotlib is there."""

    draw: Any


def _with_pictures(blocks: list[Any]) -> list[Block]:
    out: list[Block] = []
    told = False
    for block in blocks:
        if not isinstance(block, _Later):
            out.append(block)
            continue
        try:
            picture: Picture = block.draw()
            out.append(picture)
        except MissingPackage:
            if not told:
                out.insert(
                    0, Text("Pictures are left out: they need matplotlib, pip install 'octsvm[plot]'.")
                )
                told = True
    return out


# ----------------------------------------------------------------------------------------------------- sections


def failed(cells: pd.DataFrame) -> pd.Series:
    """Which cells failed."""
    return cells["error"].fillna("").astype(str).ne("")


def expected(protocol: Protocol) -> int:
    """How many cells a protocol has."""
    parts = len(list(protocol.parts()))
    return parts * sum(len(spec.settings()) for spec in protocol.methods.values())


def summary(run: Run) -> list[Any]:
    """What this is, and how much of it there is."""
    cells = run.cells
    whole = expected(run.protocol)
    bad = int(failed(cells).sum())
    missing = run.selection.missing
    lines = [
        Text(f"Protocol {run.protocol.name}: {run.protocol.title}."),
        Text(
            f"{len(cells)} of {whole} fits are there ({100 * len(cells) / whole:.1f} %), {bad} of them failed; "
            f"{duration(float(cells['seconds'].sum()))} of fitting. One fold of {run.protocol.folds} trains and the "
            f"others test, {run.protocol.repetitions} repetitions."
        ),
    ]
    if len(missing):
        lines.append(
            Text(
                f"This run is not complete: {len(missing)} combinations of set, noise and method lack something, see "
                "“Missing and failed”. Methods are compared on the folds that all of them have."
            )
        )
    lines.append(
        Text(
            "Accuracies are in percent, on clean test rows, means over folds and repetitions. Every figure links to the cells "
            "behind it, at the end of this page; selected.csv lists them with their keys."
        )
    )
    return lines


def overview(run: Run) -> list[Any]:
    """Averages by noise, of the paper and of each rule, over the same rows."""
    tables: dict[str, pd.DataFrame] = {rule: run.accuracy(rule) for rule in run.protocol.rules}
    used: pd.Index = run.index
    for table in tables.values():
        used = used.intersection(common_rows(table))
    shown = {"paper": run.paper} if used.isin(common_rows(run.paper)).all() else {}
    shown |= tables
    rows = []
    for m, title in run.titles.items():
        label = title
        for what, table in shown.items():
            if m not in table:
                continue
            values = [average(table, _level(used, "noise", v))[m] for v in run.protocol.noise]
            cells = [
                TableCell(label),
                TableCell("paper" if what == "paper" else f"ours, {RULE_TITLES[what]}"),
            ]
            cells += [TableCell(number(v), number=True) for v in (*values, average(table, used)[m])]
            rows.append(TableRow(tuple(cells), strong=what == "paper"))
            label = ""
    heads = _head("method", "figures", *(f"{percent(v)} %" for v in run.protocol.noise), "all", numbers=2)
    return [
        Heading("Averages over the sets"),
        ReportTable((heads,), tuple(rows)),
        Text(
            f"Averaged are the {len(used)} of {len(run.index)} pairs of set and noise for which every method has a figure "
            "by every rule."
        ),
        Text(f"Paper: {SOURCE}."),
    ]


def _traced(
    run: Run, rule: str, place: tuple[str, float] | None, method: str, values: Mapping[str, float]
) -> TableCell:
    """A figure, bold where it is the best of its line; one that is no average leads to its cells."""
    value = values[method]
    bold = round(value, 2) == best(values)
    if place is None or value != value:
        return TableCell(number(value), bold=bold, number=True)
    chosen = run.by_place[(rule, *place, method)]
    params = list(dict.fromkeys(chosen["params"]))
    what = params_text(params[0]) if len(params) == 1 else f"{len(params)} grid points"
    return TableCell(
        number(value),
        bold=bold,
        number=True,
        link=anchor(rule, *place, method),
        title=f"mean of {len(chosen)} folds; {what}",
    )


def table2(run: Run, rule: str) -> list[Any]:
    """The paper's table beside ours by one rule."""
    table = run.accuracy(rule)
    heading = Heading(f"Table 2: {RULE_TITLES[rule]}", anchor=f"table2-{rule}")
    words = Text(RULE_TEXTS[rule])
    if table.isna().all(axis=None):
        return [heading, words, Text("No fold is complete yet for this rule.")]
    blocks: list[Any] = [heading, words]
    mine = list(run.columns.values())
    if mine:
        blocks.append(_beside(run, rule, table[mine]))
    ours, given = by_noise(table), by_noise(run.paper)
    blocks.append(
        _Later(
            lambda: pictures.accuracy_picture(f"accuracy-{rule}", table, ours, given, run.titles, run.order)
        )
    )
    return blocks


def _level(rows: pd.Index, name: str, value: Any) -> pd.Index:
    return rows[rows.get_level_values(name) == value]


def _lines(run: Run) -> Iterator[tuple[str, str, tuple[str, float] | None, tuple[str, Any]]]:
    """Lines of a table: two labels, set and noise, or which rows are averaged."""
    for name in run.protocol.sets:
        for k, noise in enumerate(run.protocol.noise):
            yield (name if k == 0 else "", percent(noise), (name, noise), ("", None))
        yield ("", "average", None, ("set", name))
    for k, noise in enumerate(run.protocol.noise):
        yield ("all sets" if k == 0 else "", percent(noise), None, ("noise", noise))
    yield ("", "average", None, ("", None))


def paper_average(run: Run, rows: pd.Index, level: str, value: Any) -> dict[str, float]:
    """The published figures' average over ``rows``: as printed where it is, else ours of the printed figures."""
    table, printed = published(), published_averages()
    label = str({"set": value, "": "total"}.get(level))
    whole = table.index if label == "total" else _level(table.index, "set", value)
    if label in printed.index and len(rows) == len(whole) and rows.isin(whole).all():
        line = printed.loc[label].to_dict()
        return {m: float(line[c]) for c, m in run.columns.items()}
    return average(run.paper, rows)


def _beside(run: Run, rule: str, table: pd.DataFrame) -> ReportTable:
    """Paper, ours and difference for each method."""
    methods = [str(m) for m in table]
    heads = (
        (TableCell(""), TableCell(""), *(TableCell(run.titles[m], span=3, group=True) for m in methods)),
        (
            *_head("set", "% flipped", numbers=1),
            *(
                TableCell(t, number=True, group=t == "paper")
                for _ in methods
                for t in ("paper", "ours", "diff.")
            ),
        ),
    )
    both = common_rows(table).intersection(common_rows(run.paper))
    ours, paper = figures(table), figures(run.paper)
    rows = []
    for first, second, place, (level, value) in _lines(run):
        if place is not None:
            given, got = paper[place], ours[place]
        else:
            used = _level(both, level, value) if level else both
            given, got = paper_average(run, used, level, value), average(table, used)
        cells = [TableCell(first), TableCell(second, number=True)]
        for m in methods:
            cells.append(
                TableCell(number(given[m]), number=True, bold=round(given[m], 2) == best(given), group=True)
            )
            cells.append(_traced(run, rule, place, m, got))
            cells.append(TableCell(number(got[m] - given[m], sign=True), number=True))
        rows.append(TableRow(tuple(cells), strong=place is None))
    return ReportTable(heads, tuple(rows))


def further(run: Run) -> list[Any]:
    """All our methods, by each rule."""
    blocks: list[Any] = [Heading("All methods")]
    for rule in run.protocol.rules:
        table = run.accuracy(rule)
        if table.isna().all(axis=None):
            continue
        common, ours = common_rows(table), figures(table)
        rows = []
        for first, second, place, (level, value) in _lines(run):
            got = ours[place] if place else average(table, _level(common, level, value) if level else common)
            cells = [TableCell(first), TableCell(second, number=True)]
            cells += [_traced(run, rule, place, m, got) for m in run.titles]
            rows.append(TableRow(tuple(cells), strong=place is None))
        heads = (_head("set", "% flipped", *run.titles.values(), numbers=1),)
        blocks += [Heading(RULE_TITLES[rule].capitalize(), 3, f"all-{rule}"), ReportTable(heads, tuple(rows))]
    return blocks


def ranking(run: Run) -> list[Any]:
    """Ranks and tests, for the paper's figures and for each rule."""
    blocks: list[Any] = [
        Heading("Ranks"),
        Text(
            "Mean ranks over the pairs of set and noise that all methods have; 1 is best. Friedman's test asks whether the "
            "methods differ at all; ranks further apart than Nemenyi's critical difference differ at the level of 5 %; "
            "Wilcoxon's signed ranks compare pairs, with Holm's correction (Demšar 2006). The pairs of one set share "
            "their rows, so p-values describe this table more than they prove anything beyond it."
        ),
    ]
    tables = {"paper": run.paper.dropna(axis=1, how="all")} | {r: run.accuracy(r) for r in run.protocol.rules}
    for what, table in tables.items():
        ranks = rank(table)
        if ranks is None:
            continue
        title = "The paper's figures" if what == "paper" else f"Ours, {RULE_TITLES[what]}"
        blocks += [Heading(title, 3, f"ranks-{what}"), Text(_ranks_text(ranks, run.titles))]
        blocks.append(_Later(lambda w=what, r=ranks: pictures.rank_picture(f"ranks-{w}", r, run.titles)))
        rows = [
            TableRow(
                (
                    TableCell(run.titles[line["first"]]),
                    TableCell(run.titles[line["second"]]),
                    TableCell(f"{line['won']} / {line['tied']} / {line['lost']}", number=True),
                    TableCell(number(line["median"], sign=True), number=True),
                    TableCell(p_text(line["p"]), number=True),
                    TableCell(p_text(line["p_holm"]), number=True),
                )
            )
            for line in ranks.pairs.to_dict("records")
        ]
        heads = (
            _head(
                "method", "against", "won / tied / lost", "median difference", "p", "p after Holm", numbers=2
            ),
        )
        blocks.append(ReportTable(heads, tuple(rows), "Pairs"))
    return blocks if len(blocks) > 2 else [*blocks[:1], Text("There are not enough figures to rank.")]


def p_text(p: float) -> str:
    """A p-value with two significant digits."""
    if p != p:
        return "–"
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def _ranks_text(ranks: Ranks, titles: Mapping[str, str]) -> str:
    listed = ", ".join(f"{titles[str(m)]} {v:.2f}" for m, v in ranks.mean.items())
    test = ""
    if ranks.statistic == ranks.statistic:
        p = p_text(ranks.p)
        test = f" Friedman: chi-square {ranks.statistic:.2f}, p {p if p[0] == '<' else '= ' + p}."
    return (
        f"{ranks.blocks} pairs of set and noise. Mean ranks: {listed}.{test} "
        f"Critical difference {ranks.critical_difference:.2f}."
    )


def relabelling_table(run: Run, rule: str) -> pd.DataFrame:
    """Counts of the chosen fits of a rule, by method and noise: rows, relabelled, flipped, both, precision, recall."""
    chosen = run.selection.chosen
    chosen = chosen[(chosen["rule"] == rule) & chosen["relabelled"].notna()]
    counts = ["n_train", "relabelled", "flipped", "both"]
    found = chosen.groupby(["method", "noise"], sort=False)[counts].sum().astype(float)
    # Without flips there is nothing to find: neither of the two says anything.
    found["precision"] = found["both"] / found["relabelled"].where(
        (found["relabelled"] > 0) & (found["flipped"] > 0)
    )
    found["recall"] = found["both"] / found["flipped"].where(found["flipped"] > 0)
    order = [m for m in run.titles if m in found.index.get_level_values("method")]
    return found.reindex(order, level="method").reset_index() if order else found.reset_index()


def relabelling(run: Run) -> list[Any]:
    """How well relabelled rows and flipped rows agree."""
    blocks: list[Any] = [
        Heading("Relabelling"),
        Text(
            "Of the chosen fits, counted over all training rows: precision is the share of relabelled rows whose label was "
            "flipped, recall the share of flipped rows that are relabelled."
        ),
    ]
    for rule in run.protocol.rules:
        table = relabelling_table(run, rule)
        if table.empty:
            continue
        rows = [
            TableRow(
                (
                    TableCell(run.titles[r["method"]]),
                    TableCell(percent(r["noise"]), number=True),
                    *(
                        TableCell(f"{r[k]:.0f}", number=True)
                        for k in ("n_train", "flipped", "relabelled", "both")
                    ),
                    *(TableCell(number(100 * r[k], 1), number=True) for k in ("precision", "recall")),
                )
            )
            for r in table.to_dict("records")
        ]
        heads = (
            _head(
                "method",
                "% flipped",
                "training rows",
                "flipped",
                "relabelled",
                "both",
                "precision, %",
                "recall, %",
                numbers=1,
            ),
        )
        titles = {m: t for m, t in run.titles.items() if m in set(table["method"])}
        blocks += [
            Heading(RULE_TITLES[rule].capitalize(), 3, f"relabelling-{rule}"),
            ReportTable(heads, tuple(rows)),
            _Later(
                lambda r=rule, t=table, n=titles: pictures.relabelling_picture(
                    f"relabelling-{r}", t, n, run.order
                )
            ),
        ]
    return blocks if len(blocks) > 2 else []


def gap(cells: pd.DataFrame) -> pd.Series:
    """Relative gap of objective and bound, NaN without a finite bound; 0 where the objective is."""
    objective, bound = cells["objective"].astype(float), cells["bound"].astype(float)
    known = np.isfinite(objective) & np.isfinite(bound)
    relative = ((objective - bound) / objective.where(objective > 1e-9)).clip(lower=0)
    return relative.where(objective > 1e-9, 0.0).where(known)


def effort(run: Run) -> list[Any]:
    """Seconds and gaps of the fits on whole training parts."""
    cells = run.cells[~run.cells["inner"].astype(bool) & ~failed(run.cells)]
    titles = {m: s.title for m, s in run.protocol.methods.items() if (cells["method"] == m).any()}
    if not titles:
        return []
    seconds = {m: cells.loc[cells["method"] == m, "seconds"].dropna().to_numpy(float) for m in titles}
    gaps = gap(cells)
    gap_of = {m: gaps[cells["method"] == m].dropna().to_numpy(float) for m in titles}
    rows = [
        _effort_row(title, int((cells["method"] == m).sum()), seconds[m], gap_of[m])
        for m, title in titles.items()
    ]
    heads = (
        (
            TableCell(""),
            TableCell(""),
            TableCell("seconds", span=5, group=True),
            TableCell("gap, %", span=6, group=True),
        ),
        (
            TableCell("method"),
            *(
                TableCell(t, number=True, group=k in (1, 6))
                for k, t in enumerate(["fits", *QUANTILES, "hours", "with bound", "proved", *QUANTILES])
            ),
        ),
    )
    blocks: list[Any] = [
        Heading("Time and gap"),
        Text(
            "Fits on whole training parts, over all grid points. A gap is (objective - bound) / objective; it is known where the "
            "bound is finite. Seconds are those of the machine below, and of how busy it was."
        ),
        ReportTable(heads, tuple(rows)),
        _Later(
            lambda: pictures.distribution_picture(
                "seconds", seconds, titles, run.order, "seconds of a fit", True
            )
        ),
    ]
    with_gap = {m: 100 * g for m, g in gap_of.items() if len(g)}
    if with_gap:
        shown = {m: titles[m] for m in titles if m in with_gap}
        blocks.append(
            _Later(lambda: pictures.distribution_picture("gaps", with_gap, shown, run.order, "gap, %", False))
        )
    return blocks


def _effort_row(title: str, fits: int, seconds: NDArray[np.float64], gaps: NDArray[np.float64]) -> TableRow:
    at = list(QUANTILES.values())
    times = [f"{v:.3g}" for v in np.quantile(seconds, at)] if len(seconds) else ["–"] * 4
    shares = [number(100 * v, 1) for v in np.quantile(gaps, at)] if len(gaps) else ["–"] * 4
    told = [str(fits), *times, number(float(seconds.sum()) / 3600)]
    told += [str(len(gaps)), str(int((gaps <= PROVED).sum())) if len(gaps) else "–", *shares]
    # The second and the seventh of them begin a group.
    figures = (TableCell(t, number=True, group=k in (1, 6)) for k, t in enumerate(told))
    return TableRow((TableCell(title), *figures))


def gaps_in_the_run(run: Run) -> list[Any]:
    """What is not there, and what failed."""
    blocks: list[Any] = [Heading("Missing and failed")]
    missing = run.selection.missing
    titles = {m: s.title for m, s in run.protocol.methods.items()}
    if len(missing):
        rules = [c for c in missing.columns if c.startswith("compared_")]
        rows = [
            TableRow(
                (
                    TableCell(line["set"]),
                    TableCell(percent(line["noise"]), number=True),
                    TableCell(titles[line["method"]]),
                    TableCell(str(line["expected"]), number=True),
                    *(TableCell(str(line[r]), number=True) for r in rules),
                    TableCell(line["why"]),
                )
            )
            for line in missing.to_dict("records")
        ]
        named = [RULE_TITLES[r.removeprefix("compared_")] for r in rules]
        heads = (
            (
                *_head("set"),
                TableCell("% flipped", number=True),
                *_head("method", numbers=1),
                TableCell("folds", number=True),
                *(TableCell(f"compared: {n}", number=True) for n in named),
                TableCell("why"),
            ),
        )
        blocks.append(ReportTable(heads, tuple(rows)))
    else:
        blocks.append(Text("All folds of all methods are complete."))
    bad = run.cells[failed(run.cells)]
    if bad.empty:
        return [*blocks, Text("No fit failed.")]
    rows = []
    for (m, error), group in bad.groupby(["method", "error"], sort=False):
        example = cell_key(group.iloc[0].to_dict())
        rows.append(
            TableRow(
                (
                    TableCell(titles.get(str(m), str(m))),
                    TableCell(str(len(group)), number=True),
                    TableCell(str(error)),
                    TableCell(example),
                )
            )
        )
    heads = (
        (TableCell("method"), TableCell("fits", number=True), TableCell("error"), TableCell("for example")),
    )
    return [*blocks, ReportTable(heads, tuple(rows), "Failed fits")]


def _flat(meta: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for key, value in meta.items():
        if isinstance(value, Mapping):
            out += _flat(value, f"{before}{key} ")
        elif isinstance(value, list | tuple) and value and all(isinstance(v, Mapping) for v in value):
            word = key.removesuffix("s") if isinstance(key, str) else key
            for k, one in enumerate(value, 1):
                out += _flat(one, f"{before}{word} {k} " if len(value) > 1 else before)
        elif isinstance(value, list | tuple):
            out.append((f"{before}{key}", ", ".join(map(str, value))))
        else:
            out.append((f"{before}{key}", str(value)))
    return out


def setting(run: Run) -> list[Any]:
    """Versions, machine and protocol."""
    blocks: list[Any] = [Heading("How it was run")]
    if run.meta:
        rows = tuple(_pair(k, v) for k, v in _flat(run.meta))
        blocks.append(ReportTable(((TableCell("versions and machine"), TableCell("")),), rows))
    p = run.protocol
    rows = (
        _pair("sets", ", ".join(p.sets)),
        _pair("flipped training labels", ", ".join(f"{percent(v)} %" for v in p.noise)),
        _pair("folds × repetitions", f"{p.folds} × {p.repetitions}, one fold trains"),
        _pair("least rows in a leaf", f"{percent(p.min_samples_leaf)} % of the training rows"),
        _pair("held-out rows for the honest rule", f"{percent(1 - p.inner_share)} % of the training rows"),
        _pair("seed", p.seed),
    )
    blocks.append(ReportTable(((TableCell("protocol"), TableCell("")),), rows))
    lines = []
    for m, spec in p.methods.items():
        limit = f"{spec.time_limit:g} s a fit" if spec.time_limit else ""
        work = f"{spec.work} steps of work" if spec.work else ""
        grid = "; ".join(f"{k}: {', '.join(f'{v:g}' for v in values)}" for k, values in spec.grid.items())
        fixed = ", ".join(f"{k}={v}" for k, v in spec.fixed.items())
        texts = (spec.title, m, spec.kind, fixed, grid, ", ".join(t for t in (limit, work) if t))
        lines.append(TableRow(tuple(TableCell(t) for t in texts)))
    heads = (tuple(TableCell(t) for t in ("method", "name", "kind", "fixed", "grid", "limit")),)
    return [*blocks, ReportTable(heads, tuple(lines), "Methods")]


def trace(run: Run) -> list[Any]:
    """The cells behind each figure."""
    blocks: list[Any] = [
        Heading("The cells behind the figures"),
        Text(
            "Repetition and fold, rows predicted right and rows tested, by the grid point that was chosen. selected.csv has one "
            "line for each, with the key of its cell."
        ),
    ]
    by_rule: dict[str, list[TableRow]] = {}
    for (rule, name, noise, method), group in run.by_place.items():
        parts = []
        for params, these in group.groupby("params", sort=False):
            folds = ", ".join(
                f"r{r}f{f} {right}/{n}"
                for r, f, right, n in zip(
                    these["repetition"], these["fold"], these["n_right"], these["n_score"], strict=True
                )
            )
            parts.append(f"{params_text(str(params))}: {folds}")
        cells = (
            TableCell(name, anchor=anchor(rule, name, noise, method)),
            TableCell(percent(noise), number=True),
            TableCell(run.titles[method]),
            TableCell(number(100 * float(group["accuracy"].mean())), number=True),
            TableCell("; ".join(parts)),
        )
        by_rule.setdefault(rule, []).append(TableRow(cells))
    heads = (
        (
            TableCell("set"),
            TableCell("% flipped", number=True),
            TableCell("method"),
            TableCell("mean", number=True),
            TableCell("folds"),
        ),
    )
    for rule, rows in by_rule.items():
        blocks.append(
            ReportTable(heads, tuple(rows), RULE_TITLES[rule].capitalize(), folded=True, html_only=True)
        )
    return blocks
