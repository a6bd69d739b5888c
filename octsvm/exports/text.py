"""Indented text."""

from __future__ import annotations

from typing import Any, Literal

from ..formulations.outline import condition, outline, text_lines
from ._outline import number_format, require_count, shown_names, tree_of


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
    require_count(digits=digits, most=most)

    names, form = shown_names(tree), number_format(digits)
    top = outline(tree, units)
    return "\n".join(text_lines(tree, top, lambda split: condition(tree, split, names, most, form, form)))
