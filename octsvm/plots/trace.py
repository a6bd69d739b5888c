"""Best tree and bound over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidParameter
from ..result import Result
from ._style import axes_for, colour_of, frame, legend, matplotlib, style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_trace(result: Any, *, dark: bool | None = None, ax: Axes | None = None) -> Axes:
    """Draw the objective of the best tree and the bound over the seconds of a solve.

    The optimum lies between the two lines. The bound is the solver's word; the objective's last value is
    that of the checked tree.

    Parameters
    ----------
    result : Result or classifier
        From :func:`octsvm.fit` or :func:`octsvm.solve`, or a fitted classifier.
    dark : bool, optional
        Colours for a dark background. None looks at what is behind ``ax``, and where that is transparent, at
        matplotlib's text colour.
    ax : matplotlib Axes, optional
        Where to draw; None makes a figure of its own, ``returned.figure``, without pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        Its lines have the gids "incumbent" and "bound".

    Raises
    ------
    InvalidParameter
        No result, or one without a trace: read from a file, or nothing was solved.
    MissingPackage
        matplotlib is not installed.
    """
    found = result if isinstance(result, Result) else getattr(result, "result_", None)
    if not isinstance(found, Result):
        raise InvalidParameter(
            f"A Result was expected, or a classifier with its result_, not this {type(result).__name__}. "
            "What is read from JSON has none."
        )
    points = [(t.seconds, t.incumbent, t.bound) for t in found.trace]
    if not points:
        raise InvalidParameter(
            "The result has no trace: nothing was solved (one class only), or it was read from a solution file."
        )
    points.append((max(found.seconds, points[-1][0]), found.objective, found.bound))
    style = style_of(ax, dark)
    axes = axes_for(ax, (6.0, 3.4), style)
    seconds, best, bound = np.where(np.isfinite(points), points, np.nan).T
    axes.fill_between(seconds, bound, best, step="post", color=style.line, alpha=0.18, linewidth=0)
    line = matplotlib("lines").Line2D
    handles = []
    for name, values, colour, dashes, mark in (
        ("incumbent", best, colour_of(0), "-", "o"),
        ("bound", bound, colour_of(1), "--", "s"),
    ):
        axes.step(seconds, values, where="post", color=colour, linestyle=dashes, linewidth=2.0, gid=name)
        # A single point shows nothing as a line.
        for last in np.flatnonzero(np.isfinite(values))[-1:]:
            axes.plot(seconds[last], values[last], mark, color=colour, markersize=5)
        handles.append(line([], [], color=colour, linestyle=dashes, linewidth=2.0))
    axes.set_xlim(left=0.0)
    axes.set_xlabel("seconds")
    axes.set_ylabel("objective")
    frame(axes, style)
    gap = f"gap {found.gap:.1%}" if math.isfinite(found.gap) else "no gap"
    if found.status == "optimal":
        gap = "proved optimal"
    tree = f"best tree: {found.objective:.4g}" if math.isfinite(found.objective) else "no tree"
    words = [tree, f"bound: {found.bound:.4g} ({gap})"]
    legend(axes, handles, words, style, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return axes
