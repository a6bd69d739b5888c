"""Figures without pyplot. Importing this module imports matplotlib."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

SCRATCH_DPI = 720  # ten pixels a point: what is measured does not depend on hinting


class ShownAxes(Axes):
    """Axes that a notebook shows as their figure, which pyplot does not know."""

    def _repr_png_(self) -> bytes:
        figure = self.get_figure(root=True)
        assert figure is not None
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
        return buffer.getvalue()


def new_axes(size: tuple[float, float], *, whole: bool = False) -> Axes:
    """Axes in a transparent figure; ``whole`` makes them fill it."""
    figure = Figure(figsize=size, layout=None if whole else "constrained", facecolor="none")
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
        self._figure = Figure(dpi=SCRATCH_DPI)
        self._renderer: Any = FigureCanvasAgg(self._figure).get_renderer()

    def __call__(self, text: str, size: float) -> tuple[float, float]:
        """Width and height of ``text``, with its line breaks, in font size ``size``."""
        artist = self._figure.text(0, 0, text, fontsize=size, parse_math=False, usetex=False)
        box = artist.get_window_extent(self._renderer)
        artist.remove()
        return box.width * 72 / SCRATCH_DPI, box.height * 72 / SCRATCH_DPI
