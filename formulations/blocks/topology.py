"""Block ``topology``: the nodes of a full binary tree in heap order."""

from __future__ import annotations

from dataclasses import dataclass

import pyomo.environ as pyo

from ..heap import upwards


@dataclass(frozen=True)
class Topology:
    """A full binary tree of depth D: root 1, children of t are 2t (left) and 2t + 1 (right)."""

    depth: int

    @property
    def nodes(self) -> range:
        """All nodes, 1..T with T = 2^(D+1) - 1."""
        return range(1, 2 ** (self.depth + 1))

    @property
    def branch(self) -> range:
        """Branch nodes τ_B, those above the last level."""
        return range(1, 2**self.depth)

    @property
    def leaf(self) -> range:
        """Nodes of the last level τ_L."""
        return range(2**self.depth, 2 ** (self.depth + 1))

    @property
    def levels(self) -> list[range]:
        """The levels u_0 (root) to u_D."""
        return [range(2**u, 2 ** (u + 1)) for u in range(self.depth + 1)]

    def left_ancestors(self, t: int) -> list[int]:
        """A_L(t): ancestors whose left branch leads to ``t``."""
        return [s // 2 for s in upwards(t)[:-1] if s % 2 == 0]

    def right_ancestors(self, t: int) -> list[int]:
        """A_R(t): ancestors whose right branch leads to ``t``."""
        return [s // 2 for s in upwards(t)[:-1] if s % 2 == 1]

    @property
    def n_left_pairs(self) -> int:
        """How many pairs (t, m) there are of a leaf and an ancestor whose left branch leads to it; as many as on the right."""
        return self.depth * len(self.leaf) // 2

    def leaves_below(self, t: int) -> range:
        """Nodes of the last level below (or equal to) ``t``."""
        steps = self.depth + 1 - t.bit_length()
        return range(t << steps, (t + 1) << steps)


def add_topology(model: pyo.ConcreteModel, depth: int) -> pyo.Block:
    """Add ``model.topology``: the index sets of a tree of depth D, no variables.

    Needs: nothing. Data: ``depth`` D >= 0.
    Source: Blanco, Japón, Puerto, Section 2. **differs:** τ_L starts at ⌊T/2⌋ + 1 (the paper's starts one early).
    Size: no variables, no rows.
    """
    block = model.topology = pyo.Block(doc="nodes of a full binary tree in heap order")
    block.tree = Topology(depth)
    return block
