"""The convex problem of :mod:`.convex` where no error is made: a machine of its own at every node, by a dual active-set method.

The margin term is that of the longest vector, so that where all margins are kept the problem falls apart: every node takes
the shortest vector that keeps its rows at 1 or beyond, on the side that they go to. That is the best there is, errors
included, where the term costs no more than an error of 1 (c1 times the least weight). With ½‖ω‖² as objective the multipliers
of the longest node sum to ‖ω‖², or to less where a row has to stay farther off; divided by 2‖ω‖, the slope of δ in it, to
the term itself. None of them is above c1 then, which is what a multiplier may be where errors are allowed: so it is optimal
there too.

With :mod:`.active_set` a machine takes some 50 µs, and all of them a thirtieth of what the interior-point method takes.
"""

from __future__ import annotations

import numpy as np

from ..formulations.base import FloatArray, IntArray
from ..formulations.margin_trees import norms
from .active_set import Machine, shortest
from .fixed_assignment import CLEAR, Costs, Fixed, Solved


def at_node(X: FloatArray, fixed: Fixed, t: int, rows: IntArray, mu: float, longest: float) -> Machine | None:
    """The shortest vector for the ``rows`` that come to node ``t``; None where a margin is missed or it is above ``longest``."""
    level = t.bit_length() - 1
    over, bound = fixed.label[rows, level] > 0, np.ones(len(rows))
    if level < fixed.node.shape[1] - 1:
        right = fixed.node[rows, level + 1] % 2 == 1
        if (over != right).any():
            return None  # an error of 1 at least
        bound[~right] = max(1.0, mu + CLEAR)
    return shortest(X[rows], over, bound, longest)


def longest_kept(weights: FloatArray, c1: float, single: bool) -> float:
    """The length up to which no error is made: δ is ½‖ω‖, and without δ ‖ω‖² is what counts."""
    dear = c1 * float(weights.min(initial=np.inf))
    return float(np.sqrt(dear)) if single else 2 * dear


def solve(X: FloatArray, weights: FloatArray, fixed: Fixed, costs: Costs) -> Solved | None:
    """The best hyperplanes for what is fixed; None where they make errors, and under the norm l1."""
    nodes = np.flatnonzero(fixed.split) + 1
    if costs.norm != "l2" or not len(nodes):
        return None
    p, T = X.shape[1], len(fixed.split)
    longest = longest_kept(weights, costs.c1, costs.single)
    omega, omega0 = np.zeros((T, p)), np.zeros(T)
    hinge, side = np.zeros(fixed.node.shape), np.zeros(fixed.node.shape)
    for t in nodes.tolist():
        level = t.bit_length() - 1
        rows = np.flatnonzero(fixed.node[:, level] == t)
        if not len(rows):
            continue
        found = at_node(X, fixed, t, rows, costs.mu, longest)
        if found is None:
            return None
        omega[t - 1], omega0[t - 1] = found.omega, found.omega0
        hinge[rows, level] = found.multipliers
    price = np.zeros(T)
    if not costs.single:
        size = norms(omega, "l2")
        top = int(np.argmax(size)) + 1
        price[top - 1] = 1.0
        hinge = np.where(fixed.node == top, hinge / max(2 * float(size[top - 1]), 1e-12), 0.0)
    return Solved(omega, omega0, side, hinge, price)
