"""A margin tree whose hyperplanes are optimal for its assignment, and how two assignments differ."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..formulations.base import BoolArray, IntArray
from .fixed_assignment import Assignment, Solution
from .tree_builder import Hyperplanes


@dataclass
class SolvedTree:
    """A tree whose hyperplanes are optimal for its assignment.

    ``node_values`` and ``node_norms`` keep what :mod:`.move_estimates` computed of its nodes: the Lagrangian term of a node,
    and the least norm that its rows need.
    """

    planes: Hyperplanes
    assignment: Assignment
    solution: Solution
    node_values: dict[int, float] = field(default_factory=dict)
    node_norms: dict[int, float] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        """The objective."""
        return self.planes.cost


def changed_rows(before: Assignment, after: Assignment) -> IntArray:
    """Rows with another node or label on some level, or at a node that splits in one of the two only."""
    other: BoolArray = (after.node != before.node) | (after.label != before.label)
    opened = after.split != before.split
    if opened.any():
        other |= opened[after.node - 1]
    return np.flatnonzero(other.any(axis=1))
