"""The tables of a report, each from the figures of its run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from ...reports.document import Cell, Table, number
from ..selection import cell_key
from .figures import Run
from .ranks import Ranks

RULE_TITLES = {
    "oracle_mean": "best mean test accuracy",
    "oracle_fold": "best test accuracy of each fold",
    "honest": "chosen on held-out training rows",
}
RULE_TEXTS = {
    "oracle_mean": "For each set, noise and method the grid point with the best mean test accuracy over folds and repetitions. "
    "This looks at the test labels.",
    "oracle_fold": "For each fold the grid point with the best test accuracy. This looks at the test labels of every fold and is "
    "an upper limit of what any choice from the grid reaches.",
    "honest": "For each fold the grid point that does best on held-out rows of the noisy training part, refitted on the "
    "whole part. No test label is looked at. Ties go to the better neighbourhood in the grid, then to fewer splits, "
    "then to the grid's order.",
}

PROVED = 1e-4  # a gap up to this, in percent, is none
QUANTILES = {"10 %": 0.1, "median": 0.5, "90 %": 0.9, "most": 1.0}


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("hours", 3600), ("minutes", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} seconds"


def percent(noise: float) -> Cell:
    """A share as percent, without needless digits."""
    return Cell(f"{100 * noise:g}", number=True)


def p_text(p: float, equals: str = "") -> Cell:
    """A p-value with two significant digits, or what it is below."""
    if p != p:
        return number(p)
    return Cell("< 0.0001" if p < 1e-4 else f"{equals}{p:.2g}", number=True)


def params_text(params: str) -> str:
    """Parameters of a grid point, as text."""
    return " ".join(f"{k}={v:g}" for k, v in json.loads(params).items()) or "no parameters"


def anchor(rule: str, name: str, noise: float, method: str) -> str:
    """Where the report lists the cells behind a figure."""
    return f"{rule}-{name}-{percent(noise)}-{method}"


# -- accuracies -------------------------------------------------------------------------------------------------


def overview(run: Run) -> Table:
    """Averages by noise, of the paper and of each rule, over the same rows."""
    ours = "ours, " if run.columns else ""
    shown = {f"{ours}{RULE_TITLES[rule]}": run.accuracy(rule) for rule in run.protocol.rules}
    if run.common.isin(run.paper.dropna().index).all():
        shown = {"paper": run.paper} | shown
    rows: list[list[Any]] = []
    strong = []
    for m, title in run.titles.items():
        label = title
        for what, table in shown.items():
            if m in table:
                used = table.loc[run.common, m]
                by_noise = [
                    used[used.index.get_level_values("noise") == v].mean() for v in run.protocol.noise
                ]
                strong += [len(rows)] if what == "paper" else []
                rows.append([label, what, *by_noise, used.mean()])
                label = ""
    return Table(
        ["method", "figures", *(f"{percent(v)} %" for v in run.protocol.noise), "all"], rows, strong=strong
    )


def _lines(run: Run, used: pd.Index) -> Iterator[tuple[list[str], tuple[str, float] | None, pd.Index, str]]:
    """Lines of a table: its labels; set and noise, or which of ``used`` are averaged; the paper's word for that average."""
    noises = run.protocol.noise
    for name in run.protocol.sets:
        for noise, label in zip(noises, (name, *[""] * len(noises)), strict=False):
            yield [label, percent(noise)], (name, noise), used, ""
        yield ["", "average"], None, used[used.get_level_values("set") == name], name
    for noise, label in zip(noises, ("all sets", *[""] * len(noises)), strict=False):
        yield [label, percent(noise)], None, used[used.get_level_values("noise") == noise], ""
    yield ["", "average"], None, used, "total"


def _line(table: pd.DataFrame, place: Any, used: pd.Index) -> pd.Series[float]:
    """The figures of a line: those of a set and a noise, else the averages."""
    return table.loc[used].mean() if place is None else table.loc[place]


def _best(value: float, among: pd.Series) -> bool:
    """Whether a figure is the largest, as they are shown, of at least two."""
    # Of Python's floats: numpy rounds otherwise than what is shown.
    known = [round(float(v), 2) for v in among if v == v]
    return len(known) > 1 and round(float(value), 2) == max(known)


def _traced(run: Run, rule: str, place: tuple[str, float] | None, method: str, line: pd.Series) -> Cell:
    """A figure, bold where it is the best of its line; one that is no average leads to its cells."""
    value = line[method]
    marks: dict[str, Any] = {"bold": _best(value, line)}
    if place is not None and value == value:
        chosen = run.chosen[(rule, *place, method)]
        params = chosen["params"].unique()
        what = params_text(params[0]) if len(params) == 1 else f"{len(params)} grid points"
        marks |= {"link": anchor(rule, *place, method), "hint": f"mean of {len(chosen)} folds; {what}"}
    return number(value, **marks)


def comparison(run: Run, rule: str) -> Table:
    """The paper's table beside ours by one rule, and the difference, for each method."""
    mine = list(run.columns.values())
    ours = run.accuracy(rule)[mine]
    both = ours.dropna().index.intersection(run.paper.dropna().index)
    rows: list[list[Any]] = []
    strong = []
    for labels, place, used, printed in _lines(run, both):
        given = run.paper_average(used, printed) if place is None else _line(run.paper, place, used)
        got = _line(ours, place, used)
        if not place:
            strong.append(len(rows))
        row: list[Any] = list(labels)
        for m in mine:
            row.append(number(given[m], bold=_best(given[m], given)))
            row += [_traced(run, rule, place, m, got), number(got[m] - given[m], "+.2f")]
        rows.append(row)
    groups = [(run.titles[m], head) for m in mine for head in ("paper", "ours", "diff.")]
    return Table(["set", "% flipped", *groups], rows, strong=strong)


def all_methods(run: Run, rule: str) -> Table:
    """All our methods, by one rule."""
    ours = run.accuracy(rule)
    rows: list[list[Any]] = []
    strong = []
    for labels, place, used, _ in _lines(run, ours.dropna().index):
        got = _line(ours, place, used)
        if not place:
            strong.append(len(rows))
        rows.append([*labels, *(_traced(run, rule, place, m, got) for m in run.titles)])
    return Table(["set", "% flipped", *run.titles.values()], rows, strong=strong)


def cells_behind(run: Run, rule: str) -> Table:
    """The cells behind each figure of a rule."""
    rows = []
    for (of_rule, name, noise, method), group in run.chosen.items():
        if of_rule != rule:
            continue
        parts: dict[str, list[str]] = {}
        columns = (group[c] for c in ("params", "repetition", "fold", "n_right", "n_score"))
        for params, r, f, right, n in zip(*columns, strict=True):
            parts.setdefault(params, []).append(f"r{r}f{f} {right}/{n}")
        listed = "; ".join(f"{params_text(params)}: {', '.join(folds)}" for params, folds in parts.items())
        place = Cell(name, anchor=anchor(rule, name, noise, method))
        mean = 100 * float(group["accuracy"].mean())
        rows.append([place, percent(noise), run.titles[method], mean, listed])
    caption = RULE_TITLES[rule].capitalize()
    return Table(["set", "% flipped", "method", "mean", "folds"], rows, caption, folded=True)


# -- what else is compared --------------------------------------------------------------------------------------


def pairs(run: Run, ranks: Ranks) -> Table:
    """Pairs of methods, and whether they differ."""
    rows = [
        [
            run.titles[line["first"]],
            run.titles[line["second"]],
            Cell(f"{line['won']} / {line['tied']} / {line['lost']}", number=True),
            number(line["median"], "+.2f"),
            p_text(line["p"]),
            p_text(line["p_holm"]),
        ]
        for line in ranks.pairs.to_dict("records")
    ]
    heads = ["method", "against", "won / tied / lost", "median difference", "p", "p after Holm"]
    return Table(heads, rows, "Pairs")


def relabelling(run: Run, found: pd.DataFrame) -> Table:
    """How well relabelled rows and flipped rows agree."""
    rows = [
        [
            run.titles[line["method"]],
            percent(line["noise"]),
            *(int(line[k]) for k in ("n_train", "flipped", "relabelled", "both")),
            *(number(100 * line[k], ".1f") for k in ("precision", "recall")),
        ]
        for line in found.to_dict("records")
    ]
    counts = ["training rows", "flipped", "relabelled", "both"]
    return Table(["method", "% flipped", *counts, "precision, %", "recall, %"], rows)


def effort(run: Run) -> Table:
    """Seconds and gaps of the fits on whole training parts."""
    rows = []
    for m, spec in run.protocol.methods.items():
        fits = run.fits[run.fits["method"] == m]
        if fits.empty:
            continue
        seconds, gaps = fits["seconds"].dropna().astype(float), fits["gap"].dropna()
        proved = number((gaps <= PROVED).sum() if len(gaps) else float("nan"), ".0f")
        times = [number(v, ".3g") for v in seconds.quantile(list(QUANTILES.values()))]
        shares = [number(v, ".1f") for v in gaps.quantile(list(QUANTILES.values()))]
        rows.append([spec.title, len(fits), *times, seconds.sum() / 3600, len(gaps), proved, *shares])
    seconds_of = [("seconds", head) for head in (*QUANTILES, "hours")]
    gap_of = [("gap, %", head) for head in ("with bound", "proved", *QUANTILES)]
    return Table(["method", "fits", *seconds_of, *gap_of], rows)


# -- what is there, and how it was made -------------------------------------------------------------------------


def missing(run: Run) -> Table:
    """What is not there."""
    found = run.selection.missing
    rules = [c for c in found.columns if c.startswith("compared_")]
    rows = [
        [
            line["set"],
            percent(line["noise"]),
            run.protocol.methods[line["method"]].title,
            *(line[what] for what in ("expected", *rules, "why")),
        ]
        for line in found.to_dict("records")
    ]
    compared = [f"compared: {RULE_TITLES[rule.removeprefix('compared_')]}" for rule in rules]
    return Table(["set", "% flipped", "method", "folds", *compared, "why"], rows)


def failures(run: Run) -> Table:
    """What failed."""
    titles = {m: spec.title for m, spec in run.protocol.methods.items()}
    rows = [
        [titles.get(str(m), str(m)), len(group), error, cell_key(group.iloc[0].to_dict())]
        for (m, error), group in run.cells[run.failed].groupby(["method", "error"], sort=False)
    ]
    return Table(["method", "fits", "error", "for example"], rows, "Failed fits")


def _flat(meta: Mapping[str, Any], before: str = "") -> Iterator[list[str]]:
    """Nested facts as pairs of a name and a value; of several alike, each with its number."""
    for key, value in meta.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key} ")
        elif isinstance(value, list | tuple) and value and all(isinstance(v, Mapping) for v in value):
            for k, one in enumerate(value, 1):
                yield from _flat(
                    one, f"{before}{str(key).removesuffix('s')} {k} " if len(value) > 1 else before
                )
        else:
            listed = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            yield [f"{before}{key}", listed]


def versions(run: Run) -> Table:
    """What is known of the machines."""
    return Table(["versions and machine", ""], list(_flat(run.meta)))


def protocol(run: Run) -> Table:
    """What was to be run."""
    p = run.protocol
    rows = {
        "sets": ", ".join(p.sets),
        "flipped training labels": ", ".join(f"{percent(v)} %" for v in p.noise),
        "folds × repetitions": f"{p.folds} × {p.repetitions}, one fold trains",
        "least rows in a leaf": f"{percent(p.min_samples_leaf)} % of the training rows",
        "held-out rows for the honest rule": f"{percent(1 - p.inner_share)} % of the training rows",
        "seed": str(p.seed),
    }
    return Table(["protocol", ""], list(rows.items()))


def methods(run: Run) -> Table:
    """What was compared."""
    rows = []
    for m, spec in run.protocol.methods.items():
        grid = "; ".join(f"{k}: {', '.join(f'{v:g}' for v in values)}" for k, values in spec.grid.items())
        fixed = ", ".join(f"{k}={v}" for k, v in spec.fixed.items())
        limits = [f"{spec.time_limit:g} s a fit"] if spec.time_limit else []
        limits += [f"{spec.work} steps of work"] if spec.work else []
        rows.append([spec.title, m, spec.kind, fixed, grid, ", ".join(limits)])
    return Table(["method", "name", "kind", "fixed", "grid", "limit"], rows, "Methods")
