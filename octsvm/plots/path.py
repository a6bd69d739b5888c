"""How many labels are given up, over what giving one up costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidParameter
from ..formulations.base import BoolArray, FloatArray
from ._style import axes_for, colour_of, frame, legend, logarithmic, matplotlib, style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Column of the path, what the legend calls it, marker and dashes.
CURVES = (
    ("relabelled", "labels given up", "o", "-"),
    ("found", "of them flipped", "^", ":"),
    ("against", "rows predicted as another class", "s", "--"),
)


def plot_relabelling_path(
    path: Any, *, flipped: int | None = None, dark: bool | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how many labels are given up against their price c2.

    Filled marks stand for trees that are proved optimal, open ones for others. Where the path was made with known flips,
    a third line shows how many of the rows given up are among them.

    Parameters
    ----------
    path : pandas.DataFrame
        From :func:`octsvm.relabelling_path`.
    flipped : int, optional
        How many labels are known to be wrong: drawn as a level. None takes the path's own number, if it has one.
    dark : bool, optional
        Colours for a dark background. None looks at what is behind ``ax``, and where that is transparent, at
        matplotlib's text colour.
    ax : matplotlib Axes, optional
        Where to draw; None makes a figure of its own, ``returned.figure``, without pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        Its lines have the columns' names as gids.

    Raises
    ------
    InvalidParameter
        Not such a path, or an empty one.
    MissingPackage
        matplotlib is not installed.
    """
    needed = ("c2", "relabelled", "against", "status")
    if not hasattr(path, "columns") or not set(needed) <= set(path.columns) or not len(path):
        raise InvalidParameter(
            "A path is what octsvm.relabelling_path(estimator, X, y) returns: a DataFrame with the columns "
            f"{', '.join(needed)}, and at least one line."
        )
    path = path.sort_values("c2", kind="stable")
    style = style_of(ax, dark)
    axes = axes_for(ax, (6.0, 3.6), style)
    costs = path["c2"].to_numpy(dtype=float)
    proved = (path["status"] == "optimal").to_numpy()
    line = matplotlib("lines").Line2D
    handles, labels = [], []
    for k, (column, words, marker, dashes) in enumerate(CURVES):
        if column in path:
            look: dict[str, Any] = {"color": colour_of((0, 2, 1)[k]), "linestyle": dashes, "linewidth": 1.8}
            _draw_curve(
                axes, path[column].to_numpy(dtype=float), costs, proved, marker, {"gid": column, **look}
            )
            handles.append(line([], [], marker=marker, markersize=6, **look))
            labels.append(words)
    known = flipped
    if known is None and "flipped" in path:
        known = int(path["flipped"].iloc[0])
    if known is not None:
        axes.axhline(known, color=style.line, linewidth=1.2, linestyle=(0, (1, 2)), gid="flipped", zorder=1)
        handles.append(line([], [], color=style.line, linewidth=1.2, linestyle=(0, (1, 2))))
        labels.append(f"{known} known to be flipped")
    if len(costs) > 1 and costs.min() > 0 and costs.max() / costs.min() >= 5:
        logarithmic(axes)
    axes.yaxis.set_major_locator(matplotlib("ticker").MaxNLocator(integer=True))
    top = max(1.0, *(float(np.nanmax(curve.get_ydata())) for curve in axes.get_lines()))  # type: ignore[arg-type]
    axes.set_ylim(-0.04 * top, 1.06 * top)
    axes.set_xlabel("price c2 of giving up a label")
    axes.set_ylabel("rows")
    if (~proved).any():
        handles.append(line([], [], color=style.line, marker="o", markerfacecolor="none", linestyle="none"))
        labels.append("open marks: proof missing")
    frame(axes, style)
    legend(axes, handles, labels, style, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return axes


def _draw_curve(
    axes: Axes, counts: FloatArray, costs: FloatArray, proved: BoolArray, marker: str, look: dict[str, Any]
) -> None:
    """Draw a line, with filled marks where the trees are proved optimal and open ones elsewhere."""
    axes.plot(costs, counts, zorder=2, **look)
    for these, fill in ((proved, look["color"]), (~proved, "none")):
        axes.scatter(
            costs[these],
            counts[these],
            marker=marker,
            s=38,
            facecolors=fill,
            edgecolors=look["color"],
            linewidths=1.4,
            zorder=3,
        )
