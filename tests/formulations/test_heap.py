"""Heap numbers of nodes, compared with a tree of linked nodes that is numbered while it is made."""

from __future__ import annotations

from octsvm.formulations import heap


def linked(depth: int) -> dict[int, list[int]]:
    """Heap number of each node, and the numbers from it up to the root."""
    found = {1: [1]}
    for _ in range(depth):
        for t, up in list(found.items()):
            found |= {t + t: [t + t, *up], t + t + 1: [t + t + 1, *up]}
    return found


def test_heap_numbers() -> None:
    nodes = linked(4)
    assert set(nodes) == set(range(1, 32))
    for t, up in nodes.items():
        assert heap.upwards(t) == up
        assert heap.level(t) == len(up) - 1
        assert heap.parent(t) == (up[1] if t > 1 else 0)
        for child in heap.children(t):
            assert nodes.get(child, [child, *up]) == [child, *up]
        assert {top for top in nodes if heap.is_below(t, top)} == set(up)
        leaf = heap.rightmost(t, 4)
        assert heap.level(leaf) == 4
        below = [other for other, path in nodes.items() if t in path and len(path) == 5]
        assert leaf == max(below)
