"""Enumeration of small relabelled sets, for small tables: trees whose root gives up at most two labels.

Alternating between a linear SVM and the labels that are cheaper to give up ends at a local optimum next to where it began.
Where few rows and a noisy or XOR-like pattern make many of them, trying all small sets is quick and finds others. For each set
the linear SVM of the changed labels becomes the root, and linear SVMs of the same C are fitted below it.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ..formulations.margin_trees import norms
from .linear_svm import fit_linear_svm
from .tree_builder import Hyperplanes, InductionOptions, TreeBuilder

LARGEST_TABLE = 24  # rows: 300 sets of up to two
MOST_LABELS = 2  # given up at the root
KEPT = 6  # trees, whose norms are then optimised
LEAST_COST, MOST_COST = 300.0, 1e4  # SVM cost C: nearly hard margins where the rows are separable


def trees(builder: TreeBuilder, steps: int) -> list[Hyperplanes]:
    """The few best of these trees, norms as the linear SVMs have them; within 60 % of the seconds left and ``steps`` steps."""
    n, y, limit = len(builder.X), builder.sign, builder.best.cost
    if n > LARGEST_TABLE:
        return []
    C = float(np.clip(100.0 * builder.c1, LEAST_COST, MOST_COST))
    all_rows, found = np.arange(n), []
    whole, builder.budget = builder.budget, builder.budget.part(0.6, steps)
    for count in range(MOST_LABELS + 1):
        for rows in combinations(range(n), count):
            given_up = list(rows)
            if (
                builder.budget.tick()
                or builder.c3 + builder.c2 * float(builder.weights[given_up].sum()) >= limit
            ):
                continue
            label = y.copy()
            label[given_up] *= -1
            root = fit_linear_svm(builder.X, label, builder.weights, C)
            if not root[0].any():
                continue
            subtree = builder.grow(1, all_rows, InductionOptions(C=C, given={1: root}), np.inf)
            if subtree.planes:
                largest = float(
                    norms(np.array([omega for omega, _ in subtree.planes.values()]), builder.norm).max()
                )
                found.append((subtree.cost + builder.margin(largest), subtree))
    builder.budget = whole
    found.sort(key=lambda one: one[0])
    return [builder.assemble(subtree) for _, subtree in found[:KEPT]]
