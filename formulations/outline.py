"""The tree as it is drawn: splits in use and the leaves under them. All texts, pictures and exports are made from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .base import FloatArray
from .heap import children


@dataclass(frozen=True, eq=False)
class Leaf:
    """Where rows end."""

    node: int  # heap number
    label: int  # index into the tree's classes


@dataclass(frozen=True, eq=False)
class Split:
    """A row goes left where its weighted sum of features is below ``below``, otherwise right.

    Of a tree with a kernel other than "linear", the weighted sum of the kernel's values at its support samples.
    """

    node: int  # heap number
    weights: FloatArray  # (p,), or (r,) with such a kernel
    below: float
    left: Split | Leaf
    right: Split | Leaf


def outline(tree: Any, units: str) -> Split | Leaf:
    """The splits and leaves of a ``tree``, with weights in ``units`` ("original" or "scaled"; those of support samples have none)."""
    W, below = tree._rules(units)

    def visit(t: int, side: int | None) -> Split | Leaf:
        if not tree._splits_at(t):
            return Leaf(t, tree._class_below(t, side))
        left, right = children(t)
        return Split(t, W[t - 1], float(below[t - 1]), visit(left, 0), visit(right, 1))

    return visit(1, None)


def largest(tree: Any, split: Split, most: int | None) -> tuple[list[int], int]:
    """The features of an oblique split, those with most effect first, ``most`` of them; and how many there are besides."""
    order = [int(j) for j in tree.by_effect(split.node) if split.weights[j] != 0]
    shown = order if most is None else order[:most]
    return shown, len(order) - len(shown)


def condition(
    tree: Any, split: Split, names: Sequence[str], most: int | None, weight: str = "", below: str = ""
) -> tuple[str, str]:
    """What holds on the left and on the right of ``split``, as text, with the features' ``names``.

    ``weight`` and ``below`` are the formats of weights and thresholds: "" writes the shortest numbers that read back the
    same. With ``most`` None all weights are shown.
    """
    words: tuple[str, str] | None = tree._words(split.node)
    if words is not None:
        return words
    asked = tree._asked(split, names, most, weight)
    return f"{asked} < {split.below:{below}}", f"{asked} >= {split.below:{below}}"


def sum_text(tree: Any, split: Split, names: Sequence[str], most: int | None, weight: str) -> str:
    """The weighted sum of an oblique split; the arguments are those of :func:`condition`."""
    shown, rest = largest(tree, split, most)
    text = ""
    for k, j in enumerate(shown):
        w = float(split.weights[j])
        sign = ("-" if w < 0 else "") if k == 0 else (" - " if w < 0 else " + ")
        text += f"{sign}{abs(w):{weight}}*{names[j]}"
    return (text or "0") + (f" + ({rest} with less effect)" if rest else "")


def text_lines(tree: Any, part: Split | Leaf, said: Callable[[Split], tuple[str, str]]) -> list[str]:
    """The tree below ``part`` as indented text, one line a branch; ``said`` gives the conditions of a split."""
    if isinstance(part, Leaf):
        return [f"class {tree.classes[part.label]!r}"]
    out: list[str] = []
    for words, below in zip(said(part), (part.left, part.right), strict=True):
        inner = text_lines(tree, below, said)
        if isinstance(below, Leaf):
            out.append(f"[{part.node}] {words}: {inner[0]}")
        else:
            out += [f"[{part.node}] {words}:", *("    " + line for line in inner)]
    return out


def question(left: str, right: str) -> tuple[str, str, str]:
    """What the conditions of a split have in common, and what each says of it: "width", "< 4.5" and ">= 4.5"."""
    one, other = left.split(" "), right.split(" ")
    common = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    while common and one[common - 1] == "is":
        common -= 1
    return " ".join(one[:common]), " ".join(one[common:]), " ".join(other[common:])
