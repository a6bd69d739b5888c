"""Colours, text and axes that all pictures share; matplotlib is imported here and when first drawn."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InvalidParameter, MissingPackage
from ..exports.graphviz import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The last ones want white text, or tell less well apart.
PALETTE = (*COLOURS, "#0072B2", "#882255", "#999933")
MARKERS = "osD^vPXph"  # a class is told by shape as well as by colour
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}  # "$" and "_" in names are only characters


@dataclass(frozen=True)
class Style:
    """Colours on a light or on a dark background.

    Attributes
    ----------
    ink : str
        Text and marks.
    box : str
        Fill of a split's box.
    line : str
        Edges between boxes, frames and ticks.
    """

    ink: str
    box: str
    line: str


LIGHT = Style("#1A1A1A", "#F1F3F5", "#6B7280")
DARK = Style("#ECEFF4", "#2E333D", "#9AA1AD")
# A figure of our own is opaque: a viewer may show anything behind it.
BEHIND = {LIGHT: "#FFFFFF", DARK: "#1E2129"}


def matplotlib(part: str) -> Any:
    """A module of matplotlib, e.g. "figure", or matplotlib itself ("").

    Raises
    ------
    MissingPackage
        It is not installed.
    """
    try:
        return importlib.import_module(f"matplotlib.{part}".rstrip("."))
    except ImportError as error:
        raise MissingPackage(
            f"Pictures are drawn by matplotlib, which cannot be imported here ({error}). Install it: "
            "pip install 'octsvm[plot]'. export_text and export_graphviz show a tree without it."
        ) from None


def luminance(colour: Any) -> float:
    """Relative luminance of a colour, from 0 (black) to 1 (white)."""
    parts = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in matplotlib("colors").to_rgb(colour)
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def text_on(fill: Any) -> str:
    """Black or white, whichever has the higher contrast ratio (WCAG 2) on ``fill``."""
    return "#000000" if (luminance(fill) + 0.05) ** 2 > 0.05 * 1.05 else "#FFFFFF"


def colour_of(index: int) -> str:
    """Colour of a class."""
    return PALETTE[index % len(PALETTE)]


def marker_of(index: int) -> str:
    """Shape of a class; colour and shape together repeat after 90 classes only."""
    return MARKERS[index % len(MARKERS)]


def style_of(ax: Axes | None, dark: bool | None) -> Style:
    """The colours to use: as asked, else by what is behind ``ax``, else by the text colour of the settings.

    Raises
    ------
    InvalidParameter
        ``dark`` is neither None nor a boolean.
    """
    if dark is not None:
        if not isinstance(dark, bool):
            raise InvalidParameter(
                f"dark={dark!r} should be True, False, or None to follow matplotlib's style."
            )
        return DARK if dark else LIGHT
    colours = matplotlib("colors")
    for part in () if ax is None else (ax, ax.get_figure(root=False)):
        red, green, blue, alpha = colours.to_rgba(part.get_facecolor())  # type: ignore[union-attr]
        if alpha > 0.5:
            return DARK if luminance((red, green, blue)) < 0.18 else LIGHT
    return DARK if luminance(matplotlib("").rcParams["text.color"]) > 0.4 else LIGHT


def elided(name: Any, most: int) -> str:
    """``name`` on one line with at most ``most`` characters: the middle is what goes, as long names differ at the ends."""
    text = " ".join("".join(c if c.isprintable() else " " for c in str(name)).split()) or repr(str(name))
    if len(text) <= most:
        return text
    back = max(1, (most - 1) * 2 // 5)
    head, tail = text[: most - 1 - back], text[-back:]
    # Whole words, unless that leaves little.
    if text[len(head)] != " " and head.rfind(" ") >= len(head) // 2:
        head = head[: head.rfind(" ")]
    if text[-back - 1] != " " and 0 <= tail.find(" ") <= len(tail) // 2:
        tail = tail[tail.find(" ") :]
    return f"{head.rstrip()}…{tail.rstrip()}"


def elided_apart(names: Any, most: int) -> list[str]:
    """The names elided; those that look the same then get their numbers (from 1)."""
    short = [elided(name, most) for name in names]
    return [
        text if short.count(text) == 1 else f"{elided(names[j], max(4, most - 2 - len(str(j + 1))))} #{j + 1}"
        for j, text in enumerate(short)
    ]


def axes_for(ax: Any, size: tuple[float, float], style: Style, **options: Any) -> Axes:
    """``ax``, or axes in an opaque figure of their own of ``size`` inches that pyplot knows nothing of.

    Raises
    ------
    InvalidParameter
        ``ax`` is something else.
    MissingPackage
        matplotlib is not installed.
    """
    axes = matplotlib("axes").Axes
    if ax is not None:
        if not isinstance(ax, axes):
            raise InvalidParameter(
                f"ax should be matplotlib's Axes, e.g. plt.gca(), or None for a figure of its own, not {type(ax).__name__}."
            )
        return ax
    from . import _canvas

    return _canvas.new_axes(size, BEHIND[style], **options)


def frame(ax: Axes, style: Style) -> None:
    """Give ticks, labels and frame of ``ax`` the colours of ``style``."""
    ax.tick_params(colors=style.ink)
    for side in ax.spines.values():
        side.set_color(style.line)
    for label in (ax.xaxis.label, ax.yaxis.label, ax.title):
        label.set_color(style.ink)


def logarithmic(ax: Axes) -> None:
    """Prices on a logarithmic axis across, with plain numbers that do not run into each other."""
    ticks = matplotlib("ticker")
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(ticks.LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(ticks.FuncFormatter(lambda v, _: f"{v:g}"))
    ax.xaxis.set_minor_locator(ticks.NullLocator())


def legend(owner: Any, handles: list[Any], labels: list[str], style: Style, **where: Any) -> None:
    """A legend of axes or of a figure, with any labels: those that start with an underscore are shown as well."""
    made = owner.legend(handles, [str(k) for k in range(len(handles))], frameon=False, **where)
    for text, label in zip(made.get_texts(), labels, strict=True):
        text.set_parse_math(False)
        text.set_usetex(False)
        text.set_color(style.ink)
        text.set_text(label)
