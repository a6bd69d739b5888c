"""The report's pictures, each on light and on dark ground. matplotlib is imported when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...plots._style import BEHIND, DARK, LIGHT, PALETTE, PLAIN, Style, frame, matplotlib
from .document import Picture
from .ranks import Ranks, cliques

# Of the shared palette those that can be told from white and from dark; the last is the style's grey.
COLOURS = (*(PALETTE[k] for k in (0, 1, 2, 5, 4, 7, 9)), None)
MARKERS = "osD^vPXp"
DASHES = ("-", "-", "-", "-", "--", "--", "-.", "-.")
QUANTILES = np.linspace(0, 1, 201)


def look(index: int, style: Style) -> dict[str, Any]:
    """Colour, marker and dashes of a method; they repeat after eight."""
    k = index % len(COLOURS)
    return {
        "color": COLOURS[k] or style.line,
        "marker": MARKERS[k],
        "linestyle": DASHES[k],
        "linewidth": 1.6,
        "markersize": 4.5,
    }


def _drawn(name: str, alt: str, size: tuple[float, float], draw: Callable[[Any, Style], None]) -> Picture:
    svg = []
    for style in (LIGHT, DARK):
        with matplotlib("").rc_context({"svg.hashsalt": "octsvm", "font.size": 9.0, "text.usetex": False}):
            figure = matplotlib("figure").Figure(figsize=size, layout="constrained", facecolor=BEHIND[style])
            draw(figure, style)
            buffer = io.BytesIO()
            figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        svg.append(buffer.getvalue())
    return Picture(name, alt, *svg)


def _axes(figure: Any, style: Style, *at: int) -> Any:
    axes = figure.add_subplot(*at)
    axes.set_facecolor("none")
    axes.grid(color=style.line, alpha=0.25, linewidth=0.6)
    frame(axes, style)
    return axes


def looks(titles: Mapping[str, str], order: Sequence[str], style: Style) -> dict[str, dict[str, Any]]:
    """Look of each method: the same in all pictures, by its place in ``order``."""
    return {m: look(order.index(m), style) for m in titles}


def _key(
    figure: Any, titles: Mapping[str, str], order: Sequence[str], style: Style, markers: bool = True
) -> None:
    """One legend for the figure, above it."""
    line = matplotlib("lines").Line2D
    seen = looks(titles, order, style).values()
    handles = [line([], [], **(one if markers else one | {"marker": ""})) for one in seen]
    inches = 0.6 + 0.08 * max(len(t) for t in titles.values())  # of an entry, at this font size
    columns = max(1, min(len(titles), int(figure.get_figwidth() / inches)))
    made = figure.legend(
        handles, [str(k) for k in range(len(titles))], loc="outside upper center", ncols=columns
    )
    made.get_frame().set_visible(False)
    for text, title in zip(made.get_texts(), titles.values(), strict=True):
        text.set_parse_math(False)
        text.set_color(style.ink)
        text.set_text(title)


def accuracy_picture(
    name: str,
    accuracy: pd.DataFrame,
    averages: pd.DataFrame,
    paper: pd.DataFrame,
    titles: Mapping[str, str],
    order: Sequence[str],
) -> Picture:
    """Accuracy against noise.

    Parameters
    ----------
    name : str
        Of the file.
    accuracy : pandas.DataFrame
        In percent, indexed by set and noise, one column for each method.
    averages, paper : pandas.DataFrame
        Averages over the sets, indexed by noise: ours and the published ones, drawn with open marks.
    titles : mapping
        Names of the methods to show.
    order : sequence of str
        All methods; a method's place decides its colour.
    """
    sets = list(accuracy.index.get_level_values("set").unique())
    columns = 3
    lines = -(-(len(sets) + 1) // columns)

    def draw(figure: Any, style: Style) -> None:
        seen = looks(titles, order, style)
        for place, panel in enumerate(["", *sets]):
            axes = _axes(figure, style, lines, columns, place + 1)
            table = accuracy.loc[panel] if panel else averages
            for method, one in seen.items():
                if method in table:
                    values = table[method].dropna()
                    axes.plot(values.index * 100, values, gid=f"{panel or 'average'} {method}", **one)
                if not panel and method in paper:
                    given = one | {"linestyle": ":", "linewidth": 1.2, "markerfacecolor": "none"}
                    axes.plot(paper.index * 100, paper[method], gid=f"paper {method}", **given)
            title = panel or "average (dotted, open: the paper's)"
            axes.set_title(title, color=style.ink, fontsize=9, **PLAIN)
            axes.set_xticks([100 * v for v in accuracy.index.get_level_values("noise").unique()])
            if place % columns == 0:
                axes.set_ylabel("accuracy, %", color=style.ink)
            if place >= len(sets) + 1 - columns:
                axes.set_xlabel("flipped training labels, %", color=style.ink)
        _key(figure, titles, order, style)

    alt = "Test accuracy of each method against the share of flipped training labels, average and set by set."
    return _drawn(name, alt, (9.5, 0.5 + 2.1 * lines), draw)


def rank_picture(name: str, ranks: Ranks, titles: Mapping[str, str]) -> Picture:
    """Mean ranks on a line; methods under one bar do not differ by Nemenyi's test (Demšar 2006, Figure 1)."""
    mean = ranks.mean
    bars = cliques(mean, ranks.critical_difference)
    methods = len(mean)

    def draw(figure: Any, style: Style) -> None:
        axes = figure.add_subplot()
        axes.set_facecolor("none")
        half = -(-methods // 2)
        foot = 1.1 + 0.28 * len(bars)
        axes.set_xlim(0.4, methods + 0.6)
        axes.set_ylim(-foot - 0.55 * half, 1.7)
        axes.axis("off")
        axes.plot([1, methods], [0, 0], color=style.ink, linewidth=1.2)
        for k in range(1, methods + 1):
            axes.plot([k, k], [0, 0.18], color=style.ink, linewidth=1.2)
            axes.text(k, 0.3, str(k), ha="center", color=style.ink)
        width = min(ranks.critical_difference, methods - 1)
        axes.plot([1, 1 + width], [1.15, 1.15], color=style.ink, linewidth=2)
        axes.text(
            1 + width / 2,
            1.27,
            f"critical difference {ranks.critical_difference:.2f}",
            ha="center",
            color=style.ink,
        )
        for level, (first, last) in enumerate(bars):
            y = -0.35 - 0.28 * level
            axes.plot(
                [mean.iloc[first] - 0.04, mean.iloc[last] + 0.04], [y, y], color=style.ink, linewidth=3.5
            )
        for k, (method, value) in enumerate(mean.items()):
            left = k < half
            y = -foot - 0.55 * (k if left else methods - 1 - k)
            end = 0.85 if left else methods + 0.15
            axes.plot([value, value, end], [0, y, y], color=style.line, linewidth=1)
            axes.text(
                end + (-0.05 if left else 0.05),
                y,
                f"{titles.get(str(method), str(method))}  {value:.2f}",
                ha="right" if left else "left",
                va="center",
                color=style.ink,
                **PLAIN,
            )

    alt = "Mean ranks of the methods: " + ", ".join(
        f"{titles.get(str(m), str(m))} {v:.2f}" for m, v in mean.items()
    )
    return _drawn(name, alt, (8.5, 1.3 + 0.12 * len(bars) + 0.25 * methods), draw)


def relabelling_picture(
    name: str, table: pd.DataFrame, titles: Mapping[str, str], order: Sequence[str]
) -> Picture:
    """Precision and recall of relabelling against noise; ``table`` has columns method, noise, precision, recall."""

    def draw(figure: Any, style: Style) -> None:
        seen = looks(titles, order, style)
        for place, what in enumerate(("precision", "recall")):
            axes = _axes(figure, style, 1, 2, place + 1)
            for method, one in seen.items():
                values = table[table["method"] == method].dropna(subset=[what])
                axes.plot(values["noise"] * 100, values[what] * 100, gid=f"{what} {method}", **one)
            words = {
                "precision": "relabelled rows that were flipped, %",
                "recall": "flipped rows that are relabelled, %",
            }
            axes.set_title(words[what], color=style.ink, fontsize=9)
            axes.set_ylim(-3, 103)
            axes.set_xticks([100 * v for v in sorted(table["noise"].unique())])
            axes.set_xlabel("flipped training labels, %", color=style.ink)
        _key(figure, titles, order, style)

    return _drawn(name, "Precision and recall of relabelling against noise.", (8.5, 3.1), draw)


def distribution_picture(
    name: str,
    values: Mapping[str, np.ndarray],
    titles: Mapping[str, str],
    order: Sequence[str],
    label: str,
    log: bool,
) -> Picture:
    """Share of fits up to a value, for each method."""

    def draw(figure: Any, style: Style) -> None:
        seen = looks(titles, order, style)
        axes = _axes(figure, style)
        for method, one in seen.items():
            if method in values and len(values[method]):
                at = np.quantile(values[method], QUANTILES)
                axes.plot(at, QUANTILES * 100, gid=method, **(one | {"marker": ""}))
        if log:
            axes.set_xscale("log")
        axes.set_xlabel(label, color=style.ink)
        axes.set_ylabel("share of fits, %", color=style.ink)
        _key(figure, titles, order, style, markers=False)

    return _drawn(name, f"Share of fits against {label}, for each method.", (8.5, 3.6), draw)
