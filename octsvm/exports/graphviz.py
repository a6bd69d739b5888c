"""Graphviz's DOT language."""

from __future__ import annotations

import textwrap
from typing import Any, Literal

from ..formulations.outline import Leaf, Split, condition, outline, question
from ._outline import number_format, require_count, shown_names, tree_of

# Okabe and Ito's colours: told apart by colour-blind readers, light enough for black text.
COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#CC79A7", "#D55E00", "#BBBBBB")
WIDTH = 32  # characters of a line in a box


def export_graphviz(
    fitted: Any,
    *,
    units: Literal["original", "scaled"] = "original",
    digits: int | None = 4,
    most: int | None = 4,
) -> str:
    """The tree in Graphviz's DOT language, e.g. for ``dot -Tsvg``.

    Nodes are called n1, n2, ... by their heap numbers. The left edge comes first; edges say
    what holds of the sum or feature in the box, such as "< 3.2". Leaves are coloured by class. A classifier's boxes also show the training weight of each class.

    Parameters
    ----------
    fitted : Tree, Result or classifier
        What holds the tree.
    units : "original" or "scaled"
        Of weights and thresholds: the table's own, or [0, 1] on the training rows.
    digits : int or None
        Significant digits; None prints the shortest numbers that read back the same.
    most : int or None
        How many of an oblique split's weights, those with most effect first; None shows all.

    Returns
    -------
    str
        A digraph.

    Raises
    ------
    InvalidData, InvalidParameter
        Unknown units, no tree, or a count that is none.
    """
    tree = tree_of(fitted)
    require_count(digits=digits, most=most)
    names, form = shown_names(tree), number_format(digits)
    weight = getattr(fitted, "node_weights_", None)
    nodes: list[str] = []
    edges: list[str] = []

    def visit(part: Split | Leaf) -> None:
        if isinstance(part, Leaf):
            colour = COLOURS[part.label % len(COLOURS)]
            lines, style = (
                [f"class {tree.classes[part.label]!r}"],
                f'fillcolor="{colour}", style="filled,rounded"',
            )
        else:
            words, *sides = question(*condition(tree, part, names, most, form, form))
            lines = textwrap.wrap(words, WIDTH, break_long_words=False, break_on_hyphens=False)
            style = 'fillcolor="#FFFFFF"'
        if weight is not None:
            lines.append("weight " + " | ".join(f"{w:.6g}" for w in weight[part.node - 1]))
        nodes.append(f'  n{part.node} [label="{_quoted(lines)}", {style}];')
        if isinstance(part, Split):
            for side, below in zip(sides, (part.left, part.right), strict=True):
                edges.append(f'  n{part.node} -> n{below.node} [label="{_quoted([side])}"];')
                visit(below)

    visit(outline(tree, units))
    head = [
        "digraph tree {",
        '  graph [ordering="out", bgcolor="transparent"];',
        '  node [shape="box", style="filled", color="#555555", fontcolor="#000000", fontname="sans-serif"];',
        '  edge [color="#808080", fontcolor="#808080", fontname="sans-serif"];',
    ]
    return "\n".join([*head, *nodes, *edges, "}"]) + "\n"


def _quoted(lines: list[str]) -> str:
    return "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
