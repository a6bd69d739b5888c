"""The tree as it is drawn: splits in use and the leaves under them. All exports are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidData, InvalidParameter
from ..formulations.base import FloatArray
from ..formulations.heap import children
from ..formulations.trees import AxisTree, KernelTree, MarginTree, Tree, Units, printable


@dataclass(frozen=True, eq=False)
class Leaf:
    """Where rows end.

    Attributes
    ----------
    node : int
        Heap number.
    label : int
        Index into the tree's classes.
    """

    node: int
    label: int


@dataclass(frozen=True, eq=False)
class Split:
    """A row goes left where its weighted sum of features is below ``below``, otherwise right.

    Of a tree with a kernel, the weighted sum of the kernel's values at its support samples.

    Attributes
    ----------
    node : int
        Heap number.
    weights : ndarray of shape (p,), or (r,) with a kernel
    below : float
    left, right : Split or Leaf
    """

    node: int
    weights: FloatArray
    below: float
    left: Split | Leaf
    right: Split | Leaf


def tree_of(fitted: Any) -> Tree:
    """The tree of a classifier or a result, or the tree itself.

    Raises
    ------
    InvalidParameter
        There is none.
    """
    for found in (fitted, getattr(fitted, "tree_", None), getattr(fitted, "tree", None)):
        if isinstance(found, Tree):
            return found
    many = getattr(fitted, "estimators_", None)
    if many is not None:
        raise InvalidParameter(
            f"This {type(fitted).__name__} holds {len(many)} trees, one in each of its estimators_. Pass one of those."
        )
    if hasattr(fitted, "steps"):
        raise InvalidParameter(
            f"A tree was expected, and this is a {type(fitted).__name__}. Pass its last step, pipe[-1]: its tree knows the table that "
            "the steps before it hand on."
        )
    raise InvalidParameter(
        f"A tree was expected, a Result, or a fitted classifier, not this {type(fitted).__name__}. "
        "Fit it first where it is a classifier."
    )


def exact_units(tree: Tree) -> Units:
    """The units that the tree routes in, where its rules hold to the last bit."""
    return "scaled" if tree.routes_on_scaled else "original"


def outline(tree: Tree, units: Units) -> Split | Leaf:
    """The tree's splits and leaves, with weights in ``units`` ("original" or "scaled"; those of support samples have none).

    Raises
    ------
    InvalidData
        Other units.
    """
    if units not in ("original", "scaled"):
        raise InvalidData(f"units={units!r} is unknown; choose 'scaled' or 'original'.")
    W, b = (tree.alpha, tree.omega0) if isinstance(tree, KernelTree) else tree.weights(units)
    below = -b if isinstance(tree, MarginTree) else b

    def visit(t: int, side: int | None) -> Split | Leaf:
        if not tree._splits_at(t):
            return Leaf(t, tree._class_below(t, side))
        left, right = children(t)
        return Split(t, W[t - 1], float(below[t - 1]), visit(left, 0), visit(right, 1))

    return visit(1, None)


def condition(tree: Tree, split: Split, digits: int | None, most: int | None) -> tuple[str, str]:
    """What holds on the left and on the right of ``split``, as text.

    With ``digits`` None numbers are the shortest that read back the same, and with ``most`` None all weights are shown.
    """

    def number(value: float) -> str:
        return repr(float(value)) if digits is None else f"{value:.{digits}g}"

    def name(j: int) -> str:
        return printable(" ".join(tree.feature_names[j].split())) or repr(tree.feature_names[j])

    used = np.flatnonzero(split.weights)
    if isinstance(tree, KernelTree):
        left = tree.score_text(split.node)
    elif isinstance(tree, AxisTree):
        left = name(int(used[0]))
        words = tree.in_words(int(used[0]), float(tree.threshold[split.node - 1]))
        if words is not None:
            return words
    else:
        order = [j for j in tree.by_effect(split.node) if split.weights[j] != 0]
        shown = order if most is None else order[:most]
        left = ""
        for k, j in enumerate(shown):
            w = split.weights[j]
            sign = ("-" if w < 0 else "") if k == 0 else (" - " if w < 0 else " + ")
            left += f"{sign}{number(abs(w))}*{name(int(j))}"
        left = left or "0"
        rest = len(order) - len(shown)
        if rest:
            left += f" + ({rest} with less effect)"
    return f"{left} < {number(split.below)}", f"{left} >= {number(split.below)}"


def question(left: str, right: str) -> tuple[str, str, str]:
    """What the conditions of a split have in common, and what each says of it: "width", "< 4.5" and ">= 4.5"."""
    one, other = left.split(" "), right.split(" ")
    common = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    while common and one[common - 1] == "is":
        common -= 1
    return " ".join(one[:common]), " ".join(one[common:]), " ".join(other[common:])


def require_count(name: str, value: Any) -> None:
    """Refuse what is neither None nor a whole number from 1 on.

    Raises
    ------
    InvalidParameter
    """
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1
    ):
        raise InvalidParameter(f"{name}={value!r} should be a whole number, 1 or more, or None for all.")
