"""The tree as boxes and edges. Everything is measured before it is drawn, so that nothing lies on anything else."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..errors import InvalidParameter
from ..exports._decision_paths import weights_at_nodes
from ..exports._outline import number_format, require_count, tree_of
from ..formulations.checks import is_number, whole
from ..formulations.heap import is_below
from ..formulations.outline import Leaf, Split, largest, outline, question
from ..formulations.trees import AxisTree, KernelTree, MarginTree, Tree, printable
from ._rows import classes_of, read_rows
from ._style import (
    BEHIND,
    PLAIN,
    Style,
    axes_for,
    colour_of,
    elided,
    elided_apart,
    matplotlib,
    style_of,
    text_on,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# All in points, for a font of size 1.
PAD = 0.7  # around the text in a box
BAR = 0.9  # height of the bar of classes
RIM = 0.18  # around the bar, so that it shows in a leaf of the same colour
THINNEST = 0.3  # a class with any rows has that much of the bar
BETWEEN = 1.6  # boxes side by side
GAP = 3.6  # levels: room for the edges and what holds there
EDGE = 0.85  # size of the edges' font
BESIDE = 0.4  # from the middle of an edge to its text
SHORTEST = 4.5  # a box is at least that wide
MARGIN = 0.8  # around everything

IN_A_ROW = 4  # classes whose counts stand side by side, in the order of the colours above the tree
NAMED = 3  # classes that a box names where there are more


@dataclass(eq=False)
class _Box:
    part: Split | Leaf
    text: str
    shares: list[tuple[int, float]]  # class and its share of the rows here
    label: int = 0  # class of a leaf
    side: str = ""  # what holds on the edge to it
    side_width: float = 0.0
    width: float = 0.0
    height: float = 0.0
    x: float = 0.0  # of the middle; relative to the parent until all are placed
    top: float = 0.0
    below: list[_Box] = field(default_factory=list)

    def all(self) -> list[_Box]:
        return [self, *(box for child in self.below for box in child.all())]


def plot_tree(
    fitted: Any,
    X: Any = None,
    y: Any = None,
    *,
    units: Literal["original", "scaled"] = "original",
    digits: int | None = 4,
    most: int | None = 3,
    width: int = 26,
    fontsize: float = 9.0,
    dark: bool | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a tree: a box for every split and every leaf, edges that say what holds there.

    A box shows the feature or sum that is asked, how many rows of each class come by (of more than four classes the three largest, by
    name) with a bar of their shares, and how many labels were given up there. A leaf has the colour of its class. The picture is laid out for the size that the axes have
    now; without ``ax`` it gets a figure as large as it needs.

    Parameters
    ----------
    fitted : Tree, Result or classifier
        What holds the tree.
    X : array-like of shape (n, p), optional
        Rows to count. Without them a classifier shows its training weights, and anything else no counts.
    y : array-like of shape (n,), optional
        Their labels.
    units : "original" or "scaled"
        Of weights and thresholds: the table's own, or [0, 1] on the training rows.
    digits : int or None
        Significant digits; None prints the shortest numbers that read back the same.
    most : int or None
        How many of an oblique split's weights, those with the largest effect over the range of the training rows
        first; the others are counted. None shows all.
    width : int
        Characters of a name, 8 or more. The middle of a longer one is left out.
    fontsize : float
        In points. It becomes smaller where the tree does not fit into ``ax``.
    dark : bool, optional
        Colours for a dark background. None looks at what is behind ``ax``, and where that is transparent, at
        matplotlib's text colour.
    ax : matplotlib Axes, optional
        Where to draw; None makes a figure of its own, ``returned.figure``, without pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        With the tree; its data units are points. Boxes have the gid "box1", texts "node1", edges "edge1-2" and answers
        "answer1-2", by heap numbers.

    Raises
    ------
    InvalidData, InvalidParameter
        No tree; rows or labels that are not the tree's; a wrong option.
    MissingPackage
        matplotlib is not installed.
    """
    tree = tree_of(fitted)
    require_count(digits=digits, most=most)
    whole("width", width, 8)
    if not is_number(fontsize) or not 0 < fontsize < 1000:
        raise InvalidParameter(f"fontsize={fontsize!r} should be a number of points above 0.")
    top = outline(tree, units)
    classes = classes_of(fitted, tree)
    counts = _counts(fitted, tree, classes, X, y)
    style = style_of(ax, dark)
    root = _Writer(tree, classes, counts, digits, most, width).box(top)
    names = [elided(label, width) for label in classes] if counts is not None else []
    from ._canvas import Measure

    measure = Measure()
    layout = _laid_out(root, names, measure, fontsize)
    axes = axes_for(ax, (layout.across / 72, layout.down / 72), style, whole=True)
    if ax is not None:
        room = ax.get_window_extent()
        dpi = ax.get_figure(root=True).dpi  # type: ignore[union-attr]
        wide, high = room.width * 72 / dpi, room.height * 72 / dpi
        fit = min(1.0, wide / layout.across, high / layout.down)
        if fit < 1:  # text does not shrink evenly: lay it out again
            fontsize *= fit
            layout = _laid_out(root, names, measure, fontsize)
        left, above = (layout.across - wide) / 2, (layout.down - high) / 2
        axes.set_xlim(left, left + wide)
        axes.set_ylim(above + high, above)
    else:
        axes.set_xlim(0, layout.across)
        axes.set_ylim(layout.down, 0)
    axes.set_axis_off()
    _draw(axes, root, style, fontsize)
    _draw_key(axes, layout.key, style, fontsize)
    return axes


def _counts(fitted: Any, tree: Tree, classes: list[Any], X: Any, y: Any) -> Any:
    """Rows, or their training weight, of each of k classes (nodes, k) at each node as it is drawn; None where nothing is known."""
    if (X is None) != (y is None):
        raise InvalidParameter("Counts need rows and their labels: pass both X and y, or neither.")
    if X is None:
        return getattr(fitted, "node_weights_", None)
    matrix, index = read_rows(tree, classes, X, y)
    return weights_at_nodes(tree, matrix, index, np.ones(len(index)), len(classes))


class _Writer:
    """What stands in the boxes."""

    def __init__(
        self, tree: Tree, classes: list[Any], counts: Any, digits: int | None, most: int | None, width: int
    ) -> None:
        self.tree, self.classes, self.counts = tree, classes, counts
        self.form, self.most, self.width = number_format(digits), most, width
        self.names = elided_apart(tree.feature_names, width)

    def box(self, part: Split | Leaf) -> _Box:
        label = 0
        if isinstance(part, Leaf):
            lines, below = [elided(self.tree.classes[part.label], self.width)], []
            label = self.classes.index(self.tree.classes[part.label])
        else:
            lines, sides = self._asked(part)
            below = [self.box(part.left), self.box(part.right)]
            for child, side in zip(below, sides, strict=True):
                child.side = side
        shares: list[tuple[int, float]] = []
        if self.counts is not None:
            here = self.counts[part.node - 1]
            lines += self._counted(here)
            if here.sum() > 0:
                shares = [(k, float(c / here.sum())) for k, c in enumerate(here) if c > 0]
        given_up = _given_up(self.tree, part)
        if given_up:
            lines.append(f"{given_up} relabelled")
        return _Box(part, "\n".join(lines), shares, label, below=below)

    def _counted(self, here: Any) -> list[str]:
        if len(here) <= IN_A_ROW:
            return [" | ".join(f"{c:.6g}" for c in here)]
        # Many classes: the largest by name.
        order = [k for k in np.argsort(-here, kind="stable") if here[k] > 0]
        lines = [f"{here[k]:.6g} {elided(self.classes[k], self.width)}" for k in order[:NAMED]]
        rest = len(order) - NAMED
        return [*(lines or ["0"]), *([f"… +{rest} more"] if rest > 0 else [])]

    def _asked(self, split: Split) -> tuple[list[str], list[str]]:
        """What a split looks at, line by line, and what holds of it on its left and its right."""
        used = np.flatnonzero(split.weights)
        sides = [f"{sign} {split.below:{self.form}}" for sign in ("<", ">=")]
        words = self.tree._words(split.node)
        if words is not None:
            asked, *sides = question(*words)
            return [elided(asked, self.width)], [elided(side, self.width) for side in sides]
        if isinstance(self.tree, KernelTree) and not self.tree.weighs_features:
            left = printable(self.tree.kernel.describe())
            return [elided(f"score({left})", self.width), f"at {len(used)} support samples"], sides
        if isinstance(self.tree, AxisTree):
            return [self.names[int(used[0])]], sides
        shown, rest = largest(self.tree, split, self.most)
        lines = []
        for k, j in enumerate(shown):
            w = float(split.weights[j])
            sign = ("-" if w < 0 else "") if k == 0 else ("- " if w < 0 else "+ ")
            lines.append(f"{sign}{abs(w):{self.form}} {self.names[j]}")
        if rest:
            lines.append(f"and {rest} with less effect")
        return lines or ["0"], sides


def _given_up(tree: Tree, part: Split | Leaf) -> int:
    """Rows whose label was given up at a node, below it as well where nothing splits any more."""
    if not isinstance(tree, MarginTree):
        return 0
    if isinstance(part, Split):
        return sum(r.node == part.node for r in tree.relabelled)
    return len({r.row for r in tree.relabelled if is_below(r.node, part.node)})


class _Layout(NamedTuple):
    """Width and height of the picture in points, and the colours' key: x, top, class and its name."""

    across: float
    down: float
    key: list[tuple[float, float, int, str]]


def _laid_out(root: _Box, names: list[str], measure: Any, size: float) -> _Layout:
    """Set sizes and places of all boxes, in points; the key of the ``names`` of the classes goes above them."""
    for box in root.all():
        w, h = measure(box.text, size)
        bar = BAR + 2 * RIM + PAD if box.shares else 0.0
        box.width = max(w + 2 * PAD * size, SHORTEST * size)
        box.height = h + (2 * PAD + bar) * size
        box.side_width = measure(box.side, EDGE * size)[0] + 2 * BESIDE * size if box.side else 0.0
    outer = _place(root, size)
    left, right = min(a for a, _ in outer), max(b for _, b in outer)
    margin = MARGIN * size
    widths = [1.4 * size + measure(name, size)[0] + 1.6 * size for name in names]
    across = max(right - left, min(max(widths, default=0.0), 60 * size)) + 2 * margin
    key: list[tuple[float, float, int, str]] = []
    x, top = margin, margin
    for k, name in enumerate(names):
        if x > margin and x + widths[k] > across - margin:
            x, top = margin, top + 1.7 * size
        key.append((x, top, k, name))
        x += widths[k]
    if key:
        top += 2.4 * size
    middle = (across - (right - left)) / 2 - left
    level = [root]
    root.x = middle
    while level:
        tallest = max(box.height for box in level)
        for box in level:
            box.top = top
            for child in box.below:
                child.x += box.x
        top += tallest + GAP * size
        level = [child for box in level for child in box.below]
    return _Layout(across, top - GAP * size + margin, key)


def _place(box: _Box, size: float) -> list[tuple[float, float]]:
    """Left and right ends of a subtree on each of its levels, around its root; sets the offsets of the children."""
    own = (-box.width / 2, box.width / 2)
    box.x = 0.0
    if not box.below:
        return [own]
    first, second = (_place(child, size) for child in box.below)
    apart = max(a[1] - b[0] for a, b in zip(first, second, strict=False)) + BETWEEN * size
    box.below[0].x, box.below[1].x = -apart / 2, apart / 2
    outer = [own]
    for k in range(max(len(first), len(second))):
        ends = [
            (a + child.x, b + child.x)
            for part, child in zip((first, second), box.below, strict=True)
            for a, b in part[k : k + 1]
        ]
        if k == 0:  # and what stands beside the edges' middles
            ends += [
                (x / 2 - child.side_width, x / 2 + child.side_width) for child in box.below for x in [child.x]
            ]
        outer.append((min(a for a, _ in ends), max(b for _, b in ends)))
    return outer


def _draw_key(ax: Axes, key: list[tuple[float, float, int, str]], style: Style, size: float) -> None:
    square = partial(matplotlib("patches").Rectangle, edgecolor=style.line, linewidth=0.6)
    for x, top, k, name in key:
        ax.add_patch(square((x, top), size, size, facecolor=colour_of(k)))
        look: dict[str, Any] = {"color": style.ink, "fontsize": size, "gid": f"class{k}", **PLAIN}
        ax.text(x + 1.4 * size, top + size / 2, name, ha="left", va="center", **look)


def _draw(ax: Axes, root: _Box, style: Style, size: float) -> None:
    boxes = root.all()
    bottoms: dict[float, float] = {}  # of each level, by its top
    for box in boxes:
        bottoms[box.top] = max(bottoms.get(box.top, 0.0), box.top + box.height)
    for box in boxes:
        _draw_box(ax, box, style, size)
        for child in box.below:
            _draw_edge(ax, (box, child), bottoms[box.top], style, size)


def _draw_box(ax: Axes, box: _Box, style: Style, size: float) -> None:
    patches = matplotlib("patches")
    leaf = isinstance(box.part, Leaf)
    fill = colour_of(box.label) if leaf else style.box
    ax.add_patch(
        patches.FancyBboxPatch(
            (box.x - box.width / 2, box.top),
            box.width,
            box.height,
            boxstyle=f"round,pad=0,rounding_size={0.6 * size if leaf else 0.15 * size}",
            facecolor=fill,
            edgecolor=style.line,
            linewidth=0.8,
            gid=f"box{box.part.node}",
        )
    )
    below = (BAR + 2 * RIM + PAD) * size if box.shares else 0.0
    _draw_bar(ax, box, style, size)
    ax.text(
        box.x,
        box.top + (box.height - below) / 2,
        box.text,
        ha="center",
        va="center",
        color=text_on(fill),
        fontsize=size,
        gid=f"node{box.part.node}",
        **PLAIN,
    )


def _draw_bar(ax: Axes, box: _Box, style: Style, size: float) -> None:
    """Draw the shares of the classes at the foot of a box, on a rim of the background's colour."""
    if not box.shares:
        return
    rectangle = matplotlib("patches").Rectangle
    across, high, rim = box.width - 2 * PAD * size, BAR * size, RIM * size
    x, top = box.x - across / 2, box.top + box.height - PAD * size - high
    around = (x - rim, top - rim), across + 2 * rim, high + 2 * rim
    ax.add_patch(rectangle(*around, facecolor=BEHIND[style], edgecolor=style.line, linewidth=0.6))
    widths = np.maximum([share * across for _, share in box.shares], THINNEST * size)
    for (k, _), wide in zip(box.shares, widths * (across / widths.sum()), strict=True):
        ax.add_patch(rectangle((x, top), wide, high, facecolor=colour_of(k), linewidth=0))
        x += wide


def _draw_edge(ax: Axes, ends: tuple[_Box, _Box], bottom: float, style: Style, size: float) -> None:
    """Draw an edge: straight down past taller boxes of the same level, then across in the gap between the levels."""
    box, child = ends
    between = f"{box.part.node}-{child.part.node}"
    left = child is box.below[0]
    ax.add_line(
        matplotlib("lines").Line2D(
            [box.x, box.x, child.x],
            [box.top + box.height, bottom, child.top],
            color=style.line,
            linewidth=1.0,
            gid=f"edge{between}",
            zorder=0.5,
        )
    )
    ax.text(
        (box.x + child.x) / 2 + (-BESIDE if left else BESIDE) * size,
        (bottom + child.top) / 2,
        child.side,
        ha="right" if left else "left",
        va="bottom",
        color=style.ink,
        fontsize=EDGE * size,
        gid=f"answer{between}",
        **PLAIN,
    )
