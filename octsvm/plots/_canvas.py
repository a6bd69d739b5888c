"""Figures without pyplot. Importing this module imports matplotlib."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Hinting makes text wider where a point has few pixels: what is measured holds on a screen and in a vector file.
SCRATCH_DPIS = (72, 720)


class ShownAxes(Axes):
    """Axes that a notebook shows as their figure, which pyplot does not know."""

    def _repr_png_(self) -> bytes:
        figure = self.get_figure(root=True)
        assert figure is not None
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
        return buffer.getvalue()


def new_axes(size: tuple[float, float], behind: str, *, whole: bool = False) -> Axes:
    """Axes in a figure whose background is ``behind``; ``whole`` makes them fill it."""
    figure = Figure(figsize=size, layout=None if whole else "constrained", facecolor=behind)
    FigureCanvasAgg(figure)
    ax: Axes
    if whole:
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0), axes_class=ShownAxes)
    else:
        ax = figure.add_subplot(axes_class=ShownAxes)
    ax.set_facecolor("none")
    return ax


class Measure:
    """Sizes of texts in points."""

    def __init__(self) -> None:
        self._figures = [Figure(figsize=(1, 1), dpi=dpi) for dpi in SCRATCH_DPIS]
        self._renderers: list[Any] = [FigureCanvasAgg(f).get_renderer() for f in self._figures]
        self._known: dict[tuple[str, float], tuple[float, float]] = {}

    def __call__(self, text: str, size: float) -> tuple[float, float]:
        """Width and height of ``text``, with its line breaks, in font size ``size``."""
        if (text, size) not in self._known:
            sizes = []
            for figure, renderer in zip(self._figures, self._renderers, strict=True):
                artist = figure.text(0, 0, text, fontsize=size, parse_math=False, usetex=False)
                box = artist.get_window_extent(renderer)
                artist.remove()
                sizes.append((box.width * 72 / figure.dpi, box.height * 72 / figure.dpi))
            self._known[text, size] = max(w for w, _ in sizes), max(h for _, h in sizes)
        return self._known[text, size]
