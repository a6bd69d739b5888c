"""The hard-margin subproblem: the program of :mod:`.fixed_assignment` where no error is made, node by node.

The margin term is that of the largest norm, so that where all margins are kept the problem separates: every node takes
the least norm that keeps its rows at 1 or beyond, on the side that they are assigned to. That is optimal also where errors are
allowed, if the term costs no more than an error of 1 (c1 times the least weight). With ½‖ω‖² as objective the dual values
of the node with the largest norm sum to ‖ω‖², or to less where a row has to stay farther off; divided by 2‖ω‖, the slope of δ
in it, to the term itself. None of them is above c1 then, which is the bound on a dual value where errors are allowed.

With :mod:`.active_set` a node takes some 50 µs, and all of them a thirtieth of what the interior-point method takes.
"""

from __future__ import annotations

import numpy as np

from ..formulations.base import FloatArray, IntArray
from ..formulations.margin_trees import norms
from .active_set import HardMarginSVM, minimum_norm
from .fixed_assignment import CLEAR, Assignment, Costs, Solution


def at_node(
    X: FloatArray, assignment: Assignment, t: int, rows: IntArray, mu: float, largest: float
) -> HardMarginSVM | None:
    """The least norm for the ``rows`` at node ``t``; None where a margin is missed or it is above ``largest``."""
    level = t.bit_length() - 1
    over, bound = assignment.label[rows, level] > 0, np.ones(len(rows))
    if level < assignment.node.shape[1] - 1:
        right = assignment.node[rows, level + 1] % 2 == 1
        if (over != right).any():
            return None  # an error of 1 at least
        bound[~right] = max(1.0, mu + CLEAR)
    return minimum_norm(X[rows], over, bound, largest)


def largest_error_free_norm(weights: FloatArray, c1: float, single: bool) -> float:
    """The norm up to which an optimum has no error: δ is ½‖ω‖, and ‖ω‖² counts in RE-SVM."""
    penalty = c1 * float(weights.min(initial=np.inf))
    return float(np.sqrt(penalty)) if single else 2 * penalty


def solve(X: FloatArray, weights: FloatArray, assignment: Assignment, costs: Costs) -> Solution | None:
    """The optimal hyperplanes for an assignment; None where they make errors, and under the norm l1."""
    nodes = np.flatnonzero(assignment.split) + 1
    if costs.norm != "l2" or not len(nodes):
        return None
    p, T = X.shape[1], len(assignment.split)
    largest = largest_error_free_norm(weights, costs.c1, costs.single)
    omega, omega0 = np.zeros((T, p)), np.zeros(T)
    hinge, side = np.zeros(assignment.node.shape), np.zeros(assignment.node.shape)
    for t in nodes.tolist():
        level = t.bit_length() - 1
        rows = np.flatnonzero(assignment.node[:, level] == t)
        if not len(rows):
            continue
        found = at_node(X, assignment, t, rows, costs.mu, largest)
        if found is None:
            return None
        omega[t - 1], omega0[t - 1] = found.omega, found.omega0
        hinge[rows, level] = found.dual_values
    norm_dual = np.zeros(T)
    if not costs.single:
        size = norms(omega, "l2")
        top = int(np.argmax(size)) + 1
        norm_dual[top - 1] = 1.0
        hinge = np.where(assignment.node == top, hinge / max(2 * float(size[top - 1]), 1e-12), 0.0)
    return Solution(omega, omega0, side, hinge, norm_dual)
