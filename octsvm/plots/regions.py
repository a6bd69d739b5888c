"""Decision regions in the plane: convex polygons, cut out of the picture by one split after the other.

Those of a tree with a kernel are level sets of its scores on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidParameter
from ..exports._outline import tree_of
from ..formulations.base import BoolArray, FloatArray, IntArray
from ..formulations.checks import is_whole, listed
from ..formulations.outline import Leaf, Split, outline
from ..formulations.trees import KernelTree, MarginTree, Tree
from ._rows import classes_of, read_rows
from ._style import (
    PLAIN,
    Style,
    axes_for,
    colour_of,
    elided,
    frame,
    legend,
    marker_of,
    matplotlib,
    style_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AROUND = 0.06  # room around the rows, in their range
TINT = 0.32  # of a region's colour
NAME = 30  # characters of a name
FINE = 161  # points of a grid across and up, where a kernel's scores are drawn
SIZE = 34.0  # of a row's mark, in square points
LINE = "split"
DASHES = (0, (4, 3))  # of the lines at a margin's sides
MARGINS = "margin: score -1 and 1"
WRONG = "predicted as another class"
GIVEN_UP = "label given up"


def plot_regions(
    fitted: Any,
    X: Any,
    y: Any,
    *,
    features: tuple[int | str, int | str] = (0, 1),
    at: Any = None,
    show_legend: bool = True,
    dark: bool | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what a tree predicts in the plane of two features, its splits, and the training rows.

    Regions have the colours of the classes. A split is drawn where rows can reach it, the root's line thickest; the
    splits of RE-SVM and OCTSVM have their margins, the band of scores between -1 and 1, around them. Rows have
    the colour and the shape of the label they were given. A cross marks those that the tree puts into another class, a ring
    those whose label was given up at some node.

    With more than two features the picture is a slice: the others are held at their medians, which the horizontal
    axis says. The rows keep their own values there, so a row may be predicted right and yet lie in the other colour.

    Parameters
    ----------
    fitted : Tree, Result or classifier
        What holds the tree.
    X : array-like of shape (n, p)
        The training rows (rings go by their position). For other rows than those, pass ``fitted.tree_`` without its
        record: ``tree.with_relabelled(())``.
    y : array-like of shape (n,)
        Their labels.
    features : tuple of two int or str
        Positions or names of the features across and up.
    at : array-like of shape (p,), optional
        Values at which the other features are held instead of their medians; those of the two are not used.
    show_legend : bool
        Name the marks to the right of the picture.
    dark : bool, optional
        Colours for a dark background. None looks at what is behind ``ax``, and where that is transparent, at
        matplotlib's text colour.
    ax : matplotlib Axes, optional
        Where to draw; None makes a figure of its own, ``returned.figure``, without pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        Regions have the gid "region4", splits "split2", by heap numbers.

    Raises
    ------
    InvalidData, InvalidParameter
        No tree, fewer than two features, rows or labels that are not the tree's, a wrong option.
    MissingPackage
        matplotlib is not installed.
    """
    tree = tree_of(fitted)
    across, up = _two_features(tree, features)
    classes = classes_of(fitted, tree)
    matrix, index = read_rows(tree, classes, X, y)
    held = _held(tree, matrix, at)
    given_up = _given_up(tree, len(matrix))
    style = style_of(ax, dark)
    axes = axes_for(ax, (6.4 if show_legend else 4.6, 4.2), style)
    low, high = _view(matrix[:, [across, up]])
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    corners = np.array([low, [high[0], low[1]], high, [low[0], high[1]]])
    kind = _Curves if isinstance(tree, KernelTree) else _Plane
    drawn = kind(axes, tree, classes, [across, up], held, style)
    drawn.draw(outline(tree, "original"), corners)
    shapes = drawn.handles()

    predicted = np.array([classes.index(c) for c in tree.classes])[tree.predict_index(matrix)]
    plane = matrix[:, [across, up]]
    rows = _draw_rows(axes, plane, index, classes, style)
    wrong = predicted != index
    if wrong.any():
        shapes.append(_mark_rows(axes, plane[wrong], style, WRONG, "x", 2.0))
    if given_up.any():
        shapes.append(_mark_rows(axes, plane[given_up], style, GIVEN_UP, "o", 2.7))
    names = [elided(tree.feature_names[j], NAME) for j in (across, up)]
    axes.set_xlabel(names[0] + _said_of_others(tree, (across, up), held, at is not None), **PLAIN)
    axes.set_ylabel(names[1], **PLAIN)
    frame(axes, style)
    if show_legend:
        handles, labels = zip(*rows, *shapes, strict=True)
        where = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "labelspacing": 0.9}
        legend(axes, list(handles), list(labels), style, **where)
    return axes


def _draw_rows(
    axes: Axes, plane: FloatArray, index: IntArray, classes: list[Any], style: Style
) -> list[tuple[Any, str]]:
    """Draw all rows at ``plane (n, 2)``, class by class; what the legend says of them."""
    handles = []
    for k, label in enumerate(classes):
        look: dict[str, Any] = {"marker": marker_of(k), "color": colour_of(k)}
        border: dict[str, Any] = {"edgecolors": style.ink, "linewidths": 0.7}
        across, up = plane[index == k].T
        axes.scatter(across, up, s=SIZE, zorder=3, gid=f"rows{k}", **border, **look)
        border = {"markeredgecolor": style.ink, "markeredgewidth": 0.7, "linestyle": "none"}
        handle = matplotlib("lines").Line2D([], [], markersize=float(np.sqrt(SIZE)), **border, **look)
        handles.append((handle, elided(label, NAME)))
    return handles


def _mark_rows(
    axes: Axes, plane: FloatArray, style: Style, what: str, marker: str, times: float
) -> tuple[Any, str]:
    """Draw crosses or rings, so many ``times`` as wide, around the rows at ``plane (m, 2)``, whose own marks stay in sight.

    Returns what the legend says of them.
    """
    side = times * float(np.sqrt(SIZE))
    look: dict[str, Any] = {"facecolors": style.ink}
    if marker == "o":
        look = {"facecolors": "none", "edgecolors": style.ink}
    axes.scatter(
        plane[:, 0], plane[:, 1], s=side**2, marker=marker, linewidths=1.6, zorder=2.8, gid=what, **look
    )
    look = {"linestyle": "none", "color": style.ink, "markerfacecolor": "none", "markeredgewidth": 1.6}
    return matplotlib("lines").Line2D([], [], marker=marker, markersize=side, **look), what


@dataclass(eq=False)
class _Plane:
    """Splits and leaves, drawn as polygons."""

    ax: Axes
    tree: Tree
    classes: list[Any]
    shown: list[int]
    held: FloatArray
    style: Style
    some_split: bool = False
    some_margin: bool = False

    def draw(self, part: Split | Leaf, cell: FloatArray, level: int = 0) -> None:
        """Draw ``part`` in its ``cell``, a convex polygon (corners, 2) that may be empty."""
        if len(cell) < 3:
            return
        if isinstance(part, Leaf):
            self._area(cell, self._tint(part), f"region{part.node}", 1)
            return
        w = part.weights[self.shown]
        if not w.any():
            # The slice lies on one side as a whole; the tree itself says on which.
            row = self.tree._matrix(self.held[None, :])
            right = bool(self.tree._goes_right(part.node, row)[0])
            self.draw(part.right if right else part.left, cell, level + 1)
            return
        others = np.ones(len(part.weights), dtype=bool)
        others[self.shown] = False
        below = part.below - float(part.weights[others] @ self.held[others])
        ends = chord(cell, w, below)
        if len(ends):
            self.some_split = True
            self._add(ends, linewidth=line_width(level), gid=f"split{part.node}", zorder=2.2)
        if isinstance(self.tree, MarginTree):
            self._margin(cell, w, below, part.node)
        self.draw(part.left, clipped(cell, w, below), level + 1)
        self.draw(part.right, clipped(cell, -w, -below), level + 1)

    def _tint(self, leaf: Leaf) -> Any:
        return matplotlib("colors").to_rgba(
            colour_of(self.classes.index(self.tree.classes[leaf.label])), TINT
        )

    def _margin(self, cell: FloatArray, w: FloatArray, below: float, node: int) -> None:
        band = clipped(clipped(cell, w, below + 1), -w, 1 - below)
        if len(band) >= 3:
            self._area(band, self._grey(), f"margin{node}", 1.5)
        for side in (-1, 1):
            ends = chord(cell, w, below + side)
            if len(ends):
                self.some_margin = True
                self._add(ends, linewidth=0.9, linestyle=DASHES, zorder=2.1)

    def _area(self, corners: FloatArray, colour: Any, gid: str, zorder: float) -> None:
        area = matplotlib("patches").Polygon
        self.ax.add_patch(
            area(corners, closed=True, facecolor=colour, edgecolor="none", zorder=zorder, gid=gid)
        )

    def _grey(self) -> Any:
        return matplotlib("colors").to_rgba(self.style.ink, 0.09)

    def _add(self, ends: FloatArray, **look: Any) -> None:
        line = matplotlib("lines").Line2D(*ends.T, color=self.style.ink, solid_capstyle="butt", **look)
        self.ax.add_line(line)

    def handles(self) -> list[tuple[Any, str]]:
        """What the legend says of the lines."""
        line = partial(matplotlib("lines").Line2D, [], [], color=self.style.ink)
        lines = (self.some_split, LINE, 2.0, "-"), (self.some_margin, MARGINS, 0.9, DASHES)
        return [
            (line(linewidth=wide, linestyle=dashes), words) for some, words, wide, dashes in lines if some
        ]


class _Curves(_Plane):
    """Splits and leaves of a tree with a kernel, drawn as level lines of its scores on a grid."""

    def draw(self, part: Split | Leaf, cell: FloatArray, level: int = 0) -> None:
        """Draw ``part`` in its ``cell``, the corners (4, 2) of the picture."""
        assert isinstance(self.tree, KernelTree)
        self.across, self.up = (np.linspace(a, b, FINE) for a, b in zip(cell[0], cell[2], strict=True))
        rows = np.tile(self.held, (FINE * FINE, 1))
        rows[:, self.shown] = np.stack(np.meshgrid(self.across, self.up), axis=-1).reshape(-1, 2)
        self.mapped = self.tree.scaling.transform(rows)
        self._draw_where(part, np.ones((FINE, FINE)), level)

    def _draw_where(self, part: Split | Leaf, inside: FloatArray, level: int) -> None:
        """Draw ``part`` where ``inside`` (FINE, FINE) is not negative: the least distance to the splits above, in scores."""
        if not (inside >= 0).any():
            return
        if isinstance(part, Leaf):
            self._fill(inside, self._tint(part), f"region{part.node}", 1)
            return
        assert isinstance(self.tree, KernelTree)
        score = self.tree.node_score(part.node, self.mapped).reshape(FINE, FINE)
        self._fill(np.minimum(inside, 1 - np.abs(score)), self._grey(), f"margin{part.node}", 1.5)
        self.some_split |= self._level_line(
            inside, score, [0.0], linewidths=line_width(level), gid=f"split{part.node}", zorder=2.2
        )
        self.some_margin |= self._level_line(
            inside, score, [-1.0, 1.0], linewidths=0.9, linestyles=[DASHES], zorder=2.1
        )
        self._draw_where(part.left, np.minimum(inside, -score), level + 1)
        self._draw_where(part.right, np.minimum(inside, score), level + 1)

    def _fill(self, inside: FloatArray, colour: Any, gid: str, zorder: float) -> None:
        if (inside > 0).any():
            high = float(inside.max()) + 1.0
            drawn = self.ax.contourf(
                self.across, self.up, inside, levels=[0.0, high], colors=[colour], zorder=zorder
            )
            drawn.set_gid(gid)

    def _level_line(
        self, inside: FloatArray, score: FloatArray, levels: list[float], gid: str | None = None, **look: Any
    ) -> bool:
        """Lines at the ``levels`` that some score of the cell lies on both sides of; whether there are any."""
        here = score[inside >= 0]
        levels = [v for v in levels if here.min() < v < here.max()]
        if levels:
            shown = np.ma.masked_where(inside < 0, score)
            drawn = self.ax.contour(
                self.across, self.up, shown, levels=levels, colors=[self.style.ink], **look
            )
            drawn.set_gid(gid)
        return bool(levels)


def line_width(level: int) -> float:
    """Of a split's line on a level of the tree, in points."""
    return max(1.1, 2.4 - 0.7 * level)


def clipped(cell: FloatArray, w: FloatArray, below: float) -> FloatArray:
    """The part of a convex polygon (corners, 2) where ``w'x <= below`` (corners, 2)."""
    points = [point for point, value in _around(cell, w, below) if value <= 0]
    return np.array(points) if len(points) >= 3 else cell[:0]


def chord(cell: FloatArray, w: FloatArray, value: float) -> FloatArray:
    """The ends (2, 2) of the line ``w'x = value`` in a convex polygon; (0, 2) where it does not run through its inside."""
    around = _around(cell, w, value)
    ends = [point for point, score in around if score == 0]
    sides = {score > 0 for _, score in around if score}
    return np.array(ends) if len(ends) == 2 and len(sides) == 2 else cell[:0]


def _around(cell: FloatArray, w: FloatArray, value: float) -> list[tuple[FloatArray, float]]:
    """The corners of a polygon and where the line ``w'x = value`` crosses its edges, in their order, with ``w'x - value``."""
    score = cell @ w - value
    out: list[tuple[FloatArray, float]] = []
    for k in range(len(cell)):
        a, b = score[k], score[(k + 1) % len(cell)]
        out.append((cell[k], a))
        if (a < 0 < b) or (b < 0 < a):
            out.append((cell[k] + (cell[(k + 1) % len(cell)] - cell[k]) * (a / (a - b)), 0.0))
    return out


def _two_features(tree: Tree, features: Any) -> tuple[int, int]:
    names = tree.feature_names
    if len(names) < 2:
        raise InvalidParameter(
            f"Regions lie in the plane of two features, and this tree has one, {names[0]!r}. plot_tree shows it."
        )
    if isinstance(features, str) or not hasattr(features, "__len__") or len(features) != 2:
        raise InvalidParameter(
            f"features={features!r} should be two of the tree's, by position or name, e.g. (0, 1) or "
            f"{names[:2]!r}. The others are held at their medians."
        )
    found = []
    for f in features:
        if is_whole(f, 0) and f < len(names):
            found.append(int(f))
        elif isinstance(f, str) and f in names:
            found.append(names.index(f))
        else:
            raise InvalidParameter(
                f"features={features!r}: {f!r} is none of the tree's {len(names)} features. "
                f"Use positions from 0 to {len(names) - 1}, or names: {listed(names, 6)}."
            )
    if found[0] == found[1]:
        raise InvalidParameter(f"features={features!r} names one feature twice; choose two.")
    return found[0], found[1]


def _held(tree: Tree, matrix: FloatArray, at: Any) -> FloatArray:
    if at is None:
        return np.asarray(np.median(matrix, axis=0), dtype=np.float64)
    try:
        held = np.asarray(at, dtype=np.float64)
    except (TypeError, ValueError):
        held = np.array([np.nan])
    if held.shape != (len(tree.feature_names),) or not np.isfinite(held).all():
        raise InvalidParameter(
            f"at should hold one finite number for each of the tree's {len(tree.feature_names)} features, in their "
            "order; those of the two that are drawn are not used."
        )
    return held


def _given_up(tree: Tree, n: int) -> BoolArray:
    marks = np.zeros(n, dtype=bool)
    for record in tree.relabelled if isinstance(tree, MarginTree) else ():
        if record.row >= n:
            raise InvalidParameter(
                f"The tree gave up the label of row {record.row}, and X has {n} rows. Pass the training table, or "
                "the tree without its record: tree.with_relabelled(())."
            )
        marks[record.row] = True
    return marks


def _view(plane: FloatArray) -> tuple[FloatArray, FloatArray]:
    low, high = plane.min(axis=0), plane.max(axis=0)
    span = np.where(high > low, high - low, np.maximum(1.0, np.abs(low)))
    return low - AROUND * span, high + AROUND * span


def _said_of_others(tree: Tree, shown: tuple[int, int], held: FloatArray, given: bool) -> str:
    others = [j for j in range(len(tree.feature_names)) if j not in shown]
    if not others:
        return ""
    if len(others) == 1:
        name = elided(tree.feature_names[others[0]], NAME)
        return f"\n({name} held at {held[others[0]]:.4g}{'' if given else ', its median'})"
    return f"\n({len(others)} other features held at {'given values' if given else 'their medians'})"
