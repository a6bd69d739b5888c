"""Accuracy over the folds of a tuning, depth by depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidParameter
from ..formulations.kernels import kernel_name
from ._style import axes_for, colour_of, frame, legend, logarithmic, marker_of, style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Columns that are no parameters.
JUDGED = ("accuracy", "accuracy_error", "score", "standard_error", "splits", "relabelled", "chosen")


def plot_tuning(tuning: Any, *, dark: bool | None = None) -> list[Axes]:
    """Draw accuracy over the folds against c1 (or alpha), a line for each c2, side by side for each depth and kernel.

    Of settings that differ in other parameters only, the best one stands for all. Bars are one standard error of the
    difference from the best score to either side; a ring marks the choice.

    Parameters
    ----------
    tuning : Tuning
        From :func:`octsvm.tune`.
    dark : bool, optional
        Colours for a dark background; None looks at matplotlib's text colour.

    Returns
    -------
    list of matplotlib.axes.Axes
        One for each depth and kernel, in one figure, ``returned[0].figure``, without pyplot.

    Raises
    ------
    InvalidParameter
        No tuning, or nothing was judged in it.
    MissingPackage
        matplotlib is not installed.
    """
    table = tuning.frame() if hasattr(tuning, "frame") else None
    if table is None or "accuracy" not in table or table["accuracy"].isna().all():
        raise InvalidParameter(
            "A tuning is what octsvm.tune(...) returns, and some setting has to be judged in it."
        )
    if "kernel" in table:
        table["kernel"] = table["kernel"].map(kernel_name, na_action="ignore")  # a function of the caller's
    parameters = [name for name in table if name not in JUDGED]
    across = next((name for name in ("c1", "alpha") if name in parameters), parameters[0])
    style = style_of(None, dark)
    apart = [name for name in ("kernel", "depth") if name in parameters and name != across]
    table[apart] = table[apart].fillna("")  # no kernel
    panels = [part for _, part in table.groupby(apart)] if apart else [table]
    figure: Any = axes_for(None, (1.4 + 2.6 * len(panels), 3.4), style).figure
    kind = type(figure.axes[0])
    figure.clear()
    found = figure.subplots(1, len(panels), sharey=True, squeeze=False, subplot_kw={"axes_class": kind})[0]
    shades = sorted(table["c2"].unique()) if "c2" in parameters else [None]
    for axes, part in zip(found, panels, strict=True):
        for k, c2 in enumerate(shades):
            _draw_line(axes, part if c2 is None else part[part["c2"] == c2], across, k)
        chosen = part[part["chosen"]]
        axes.plot(chosen[across], chosen["accuracy"], "o", ms=13, mfc="none", mec=style.ink, gid="chosen")
        if np.issubdtype(table[across].dtype, np.number) and table[across].min() > 0:
            logarithmic(axes)
        axes.set_facecolor("none")
        axes.set_xlabel(across)
        values = [f"depth {part['depth'].iloc[0]}"] if "depth" in apart else []
        values += [part["kernel"].iloc[0]] if "kernel" in apart else []
        axes.set_title(", ".join(value for value in values if value))
        frame(axes, style)
    found[0].set_ylabel("accuracy over the folds")
    if shades != [None]:
        lines = found[-1].get_lines()[: len(shades)]
        legend(found[-1], list(lines), [f"c2 = {c2:g}" for c2 in shades], style, loc="lower right")
    return list(found)


def _draw_line(axes: Axes, part: Any, across: str, number: int) -> None:
    """The best setting at each place, with its bar."""
    best = part.sort_values("accuracy").groupby(across, sort=True).tail(1).sort_values(across)
    axes.errorbar(
        best[across],
        best["accuracy"],
        yerr=best["standard_error"].fillna(0.0),
        color=colour_of(number),
        marker=marker_of(number),
        ms=4,
        lw=1.6,
        elinewidth=0.8,
        gid=f"line {number}",
    )
