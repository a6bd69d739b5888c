"""Indented text."""

from __future__ import annotations

from typing import Any, Literal

from ._outline import Leaf, Split, condition, outline, require_count, tree_of


def export_text(
    fitted: Any,
    *,
    units: Literal["original", "scaled"] = "original",
    digits: int | None = 6,
    most: int | None = 6,
) -> str:
    """The tree as indented text, one line a branch.

    Rounded numbers are for reading: a row on a boundary may belong to the other side of them. ``digits=None,
    most=None`` prints what the tree computes with; oblique trees compute in scaled units.

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
        ``[t]`` is the heap number of a node: the root is 1, its children are 2 and 3.

    Raises
    ------
    InvalidData, InvalidParameter
        Unknown units, no tree, or a count that is none.
    """
    tree = tree_of(fitted)
    require_count("digits", digits)
    require_count("most", most)

    def lines(part: Split | Leaf) -> list[str]:
        if isinstance(part, Leaf):
            return [f"class {tree.classes[part.label]!r}"]
        out: list[str] = []
        for words, below in zip(condition(tree, part, digits, most), (part.left, part.right), strict=True):
            inner = lines(below)
            if isinstance(below, Leaf):
                out.append(f"[{part.node}] {words}: {inner[0]}")
            else:
                out += [f"[{part.node}] {words}:", *("    " + line for line in inner)]
        return out

    return "\n".join(lines(outline(tree, units)))
