"""Heap numbers of the nodes of a binary tree: the root is 1, the children of t are 2t (left) and 2t + 1 (right)."""

from __future__ import annotations


def children(t: int) -> tuple[int, int]:
    """Left and right child of node ``t``."""
    return 2 * t, 2 * t + 1


def parent(t: int) -> int:
    """The node above ``t``; 0 for the root, which has none."""
    return t // 2


def level(t: int) -> int:
    """Level of node ``t``; the root's is 0."""
    return t.bit_length() - 1


def upwards(t: int) -> list[int]:
    """Node ``t`` and its ancestors, from ``t`` to the root."""
    return [t >> k for k in range(level(t) + 1)]


def is_below(t: int, top: int) -> bool:
    """Whether node ``t`` is ``top`` or in the subtree below it."""
    while t > top:
        t = parent(t)
    return t == top


def rightmost(t: int, depth: int) -> int:
    """The node on level ``depth`` that is reached from ``t`` by going right: an unsplit node sends every row there."""
    while level(t) < depth:
        t = children(t)[1]
    return t
