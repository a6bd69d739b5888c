"""The report's pictures, each on light and on dark ground. matplotlib is imported when they are drawn."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...errors import MissingPackage
from ...plots._style import BEHIND, DARK, LIGHT, PALETTE, Style, legend, matplotlib
from ...reports.document import Picture
from .figures import Run
from .ranks import ALPHA, Ranks

# Of the shared palette those that can be told from white and from dark; the last is the style's grey.
COLOURS = (*(PALETTE[k] for k in (0, 1, 2, 5, 4, 7, 9)), None)
MARKERS = "osD^vPXp"
DASHES = ("-", "-", "-", "-", "--", "--", "-.", "-.")
QUANTILES = np.linspace(0, 1, 201)
FLIPPED = "flipped training labels, %"


def draw_all(run: Run) -> dict[str, Picture] | None:
    """All pictures of a run by their names, or None without what draws them."""
    try:
        matplotlib("figure")
        import scikit_posthocs  # noqa: F401
    except (MissingPackage, ImportError):
        return None
    tables = {rule: run.accuracy(rule) for rule in run.protocol.rules}
    drawn = [
        accuracy_picture(f"accuracy-{rule}", run, table)
        for rule, table in tables.items()
        if not table.isna().all(axis=None)
    ]
    drawn += [rank_picture(f"ranks-{what}", ranks, run.titles) for what, ranks in run.ranks.items()]
    drawn += [
        relabelling_picture(f"relabelling-{rule}", run, table) for rule, table in run.relabelled.items()
    ]
    for name, what, label in (("seconds", "seconds", "seconds of a fit"), ("gaps", "gap", "gap, %")):
        values = {str(m): v.dropna() for m, v in run.fits.groupby("method")[what] if v.notna().any()}
        if values:
            drawn.append(distribution_picture(name, run, values, label))
    return {picture.name: picture for picture in drawn}


def _drawn(name: str, alt: str, size: tuple[float, float], draw: Callable[[Any, Style], None]) -> Picture:
    svg = []
    for style in (LIGHT, DARK):
        looks = {
            **{f"{what}.color": style.ink for what in ("text", "xtick", "ytick")},
            **{"axes.labelcolor": style.ink, "axes.edgecolor": style.line, "axes.facecolor": "none"},
            **{"grid.color": style.line, "grid.alpha": 0.25, "grid.linewidth": 0.6, "axes.titlesize": 9.0},
            # "$" and "_" in names are only characters.
            **{"svg.hashsalt": "octsvm", "font.size": 9.0, "text.usetex": False, "text.parse_math": False},
        }
        with matplotlib("").rc_context(looks):
            figure = matplotlib("figure").Figure(figsize=size, layout="constrained", facecolor=BEHIND[style])
            draw(figure, style)
            buffer = io.BytesIO()
            figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        svg.append(buffer.getvalue())
    return Picture(name, alt, *svg)


def looks(run: Run, style: Style) -> dict[str, dict[str, Any]]:
    """Colour, marker and dashes of each method: the same in all pictures, by its place in the protocol, again after eight."""
    found = {}
    for place, method in enumerate(run.protocol.methods):
        k = place % len(COLOURS)
        found[method] = {
            "color": COLOURS[k] or style.line,
            "marker": MARKERS[k],
            "linestyle": DASHES[k],
            "linewidth": 1.6,
            "markersize": 4.5,
        }
    return found


def _key(figure: Any, run: Run, lines: Mapping[str, Any], style: Style) -> None:
    """One legend for the figure, above it, from a line of each method."""
    titles = [run.protocol.methods[m].title for m in lines]
    inches = 0.6 + 0.08 * max(map(len, titles))  # of an entry, at this font size
    columns = max(1, min(len(titles), int(figure.get_figwidth() / inches)))
    legend(figure, list(lines.values()), titles, style, loc="outside upper center", ncols=columns)


def accuracy_picture(name: str, run: Run, accuracy: pd.DataFrame) -> Picture:
    """Accuracy against noise: the average, ours and the published ones with open marks, and set by set.

    ``accuracy`` is in percent, indexed by set and noise, a column for each method.
    """
    sets = list(run.protocol.sets)
    columns = 3
    lines = -(-(len(sets) + 1) // columns)
    # Averages are over the sets that every method has.
    ours, paper = (
        t.loc[t.dropna().index].groupby(level="noise", sort=False).mean() for t in (accuracy, run.paper)
    )

    def draw(figure: Any, style: Style) -> None:
        look, key = looks(run, style), {}
        for place, panel in enumerate(["", *sets]):
            axes = figure.add_subplot(lines, columns, place + 1)
            axes.grid()
            table = accuracy.loc[panel] if panel else ours
            for method in run.titles:
                values = table[method].dropna()
                gid = f"{panel or 'average'} {method}"
                [key[method]] = axes.plot(values.index * 100, values, gid=gid, **look[method])
                if not panel and method in paper:
                    given = look[method] | {"linestyle": ":", "linewidth": 1.2, "markerfacecolor": "none"}
                    axes.plot(paper.index * 100, paper[method], gid=f"paper {method}", **given)
            axes.set_title(panel or ("average (dotted, open: the paper's)" if run.columns else "average"))
            axes.set_xticks([100 * v for v in run.protocol.noise])
            if place % columns == 0:
                axes.set_ylabel("accuracy, %")
            if place >= len(sets) + 1 - columns:
                axes.set_xlabel(FLIPPED)
        _key(figure, run, key, style)

    alt = "Test accuracy of each method against the share of flipped training labels, average and set by set."
    return _drawn(name, alt, (9.5, 0.5 + 2.1 * lines), draw)


def rank_picture(name: str, ranks: Ranks, titles: Mapping[str, str]) -> Picture:
    """Mean ranks on a line; methods under one bar do not differ by Nemenyi's test (Demšar 2006, Figure 1)."""
    from scikit_posthocs import critical_difference_diagram, posthoc_nemenyi_friedman

    listed = {str(m): f"{titles.get(str(m), str(m))}  {v:.2f}" for m, v in ranks.mean.items()}
    differ = posthoc_nemenyi_friedman(ranks.table)

    def draw(figure: Any, style: Style) -> None:
        axes = figure.add_subplot(xlim=(1, len(listed)), xticks=range(1, len(listed) + 1))
        made = critical_difference_diagram(
            ranks.mean,
            differ.copy(),  # with pandas 2 it writes into it
            alpha=ALPHA,
            ax=axes,
            label_fmt_left="{label}",
            label_fmt_right="{label}",
            text_h_margin=0.02 * (len(listed) - 1),
            elbow_props={"color": style.line, "linewidth": 1, "clip_on": False},
            marker_props={"s": 12, "clip_on": False},
            crossbar_props={"color": style.ink, "linewidth": 3},
        )
        for text in made["labels"]:
            left = text.get_ha() == "right"
            words = listed[text.get_text()]
            text.set(text=f"{words}  " if left else f"  {words}", color=style.ink)
        # The difference as a length, above the axis; as long as the axis if it is longer.
        axes.set_ylim(top=2.2)
        end = 1 + min(ranks.critical_difference, len(listed) - 1)
        axes.plot([1, end], [1.5, 1.5], color=style.ink, linewidth=2, clip_on=False)
        words = f"critical difference {ranks.critical_difference:.2f}"
        axes.text((1 + end) / 2, 1.65, words, ha="center", color=style.ink)

    alt = "Mean ranks of the methods: " + ", ".join(" ".join(text.split()) for text in listed.values())
    return _drawn(name, alt, (8.5, 1.2 + 0.22 * len(listed)), draw)


def relabelling_picture(name: str, run: Run, found: pd.DataFrame) -> Picture:
    """Precision and recall of relabelling against noise; ``found`` has columns method, noise, precision, recall."""

    def draw(figure: Any, style: Style) -> None:
        look, key = looks(run, style), {}
        panels = {
            "precision": "relabelled rows that were flipped, %",
            "recall": "flipped rows that are relabelled, %",
        }
        for place, (what, title) in enumerate(panels.items()):
            axes = figure.add_subplot(1, 2, place + 1, title=title, xlabel=FLIPPED, ylim=(-3, 103))
            axes.grid()
            for method, lines in found.groupby("method", sort=False):
                values = lines.dropna(subset=[what])
                drawn = axes.plot(
                    values["noise"] * 100, values[what] * 100, gid=f"{what} {method}", **look[str(method)]
                )
                [key[str(method)]] = drawn
            axes.set_xticks([100 * v for v in sorted(found["noise"].unique())])
        _key(figure, run, key, style)

    return _drawn(name, "Precision and recall of relabelling against noise.", (8.5, 3.1), draw)


def distribution_picture(name: str, run: Run, values: Mapping[str, pd.Series], label: str) -> Picture:
    """Share of fits up to a value, for each method; seconds on a logarithmic scale."""

    def draw(figure: Any, style: Style) -> None:
        look, key = looks(run, style), {}
        axes = figure.add_subplot(xlabel=label, ylabel="share of fits, %")
        axes.grid()
        if name == "seconds":
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        for method in (m for m in run.protocol.methods if m in values):
            at = values[method].astype(float).quantile(QUANTILES)
            [key[method]] = axes.plot(at, QUANTILES * 100, gid=method, **look[method] | {"marker": ""})
        _key(figure, run, key, style)

    return _drawn(name, f"Share of fits against {label}, for each method.", (8.5, 3.6), draw)
