"""Trees whose root gives up a few labels, for small tables: every choice of up to two rows is tried.

Machines that relabel what is cheaper to relabel end at the labels next to where they began. Where few rows and a noisy or
XOR-like pattern make many such ends, trying all small sets is quick and finds others. For each set the machine of the
changed labels becomes the root, and the rest grows below it from machines of the same C.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ..formulations.margin_trees import norms
from .linear_svm import fit_svm
from .tree_builder import Growth, Planes, Workshop

LARGEST_TABLE = 24  # rows: 300 sets of up to two
MOST_LABELS = 2
KEPT = 6  # trees whose lengths are worth choosing
STEEP, STEEPEST = 300.0, 1e4  # SVM costs C: all but separating where that can be


def trees(shop: Workshop, steps: int) -> list[Planes]:
    """The cheapest few, with the lengths that the machines gave them; at most 60 % of the seconds left, and ``steps``."""
    assert shop.best is not None
    n, y, limit = len(shop.X), shop.sign, shop.best.cost
    if n > LARGEST_TABLE:
        return []
    C = float(np.clip(100.0 * shop.c1, STEEP, STEEPEST))
    everyone, found = np.arange(n), []
    whole, shop.budget = shop.budget, shop.budget.part(0.6, steps)
    for count in range(MOST_LABELS + 1):
        for rows in combinations(range(n), count):
            given_up = list(rows)
            if shop.budget.spent() or shop.c3 + shop.c2 * float(shop.weights[given_up].sum()) >= limit:
                continue
            label = y.copy()
            label[given_up] *= -1
            root = fit_svm(shop.X, label, shop.weights, C)
            if not root[0].any():
                continue
            grown = shop.grow(1, everyone, Growth(C=C, fixed={1: root}), np.inf)
            if grown.planes:
                largest = float(
                    norms(np.array([omega for omega, _ in grown.planes.values()]), shop.norm).max()
                )
                found.append((grown.cost + shop.margin(largest), grown))
    shop.budget = whole
    found.sort(key=lambda one: one[0])
    return [shop.assemble(grown) for _, grown in found[:KEPT]]
