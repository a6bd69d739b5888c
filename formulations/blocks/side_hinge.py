"""Block ``hinge`` where the split of a node is the label: each sample has a margin on the side that it is sent to."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from ..base import FloatArray, set_values
from .roles import describe
from .rows import linear
from .sizes import BlockSize, continuous, rows
from .topology import Topology


def add_side_hinge(
    model: pyo.ConcreteModel,
    topology: pyo.Block,
    hyperplanes: pyo.Block,
    pruning: pyo.Block,
    assignment: pyo.Block,
    score_bound: FloatArray,
    mu: float | None,
) -> pyo.Block:
    """Add ``model.hinge``: what a sample lies inside the margin of a branch node, on the side that it is sent to.

    Needs: ``topology``, ``hyperplanes`` and ``pruning`` of the branch nodes, leaf or level ``assignment``. Data:
    ``score_bound (n,)`` M_i; ``mu``: how far below 0 a sample on the left is (the margin's unit is 1), or None where a
    routing block says so.

        s_it >= 1 - e_it - (1 + M_i)(1 - R_it)        R_it = Σ z_iu over the leaves u right of t (levels: z_i,2t+1)
        s_it <= e_it - 1 + (1 + M_i)(1 - L_it)        L_it = Σ z_iu over the leaves u left of t (levels: z_i,2t)
        L_it <= d_t,    0 <= e_it <= 1,    e_it + μ L_it <= 1 (with ``mu``)

    With e_it <= 1 the first two rows also route: s_it >= 0 right of t, s_it <= 0 left, and s_it <= -μ by the last one.
    A node that does not split sends all samples right at no cost, with ω_t = 0 and ω_t0 = 1.

    Source: ours, after the soft margin of Blanco, Japón, Puerto, *Multiclass optimal classification trees with
    SVM-splits* (2023). **differs:** see the page on the model. Size: n|τ_B| variables, 3n|τ_B| rows, 4n|τ_B| with ``mu``.
    """
    tree = topology.tree
    I = range(len(score_bound))
    block = model.hinge = pyo.Block(doc="what samples lie inside the margins of their sides")
    block.e = pyo.Var(I, tree.branch, bounds=(0, 1), doc="error of row i at node t")
    describe(block.e, sample=0, node=1)
    s, d, z, M = hyperplanes.s, pruning.d, assignment.z, [1.0 + float(v) for v in score_bound]

    def held(i: int, child: int) -> list[Any]:
        """The z that say that sample ``i`` comes to ``child``."""
        return [z[i, child]] if (i, child) in z else [z[i, u] for u in tree.leaves_below(child)]

    @block.Constraint(I, tree.branch, doc="s_it >= 1 - e_it - (1 + M_i)(1 - R_it)")
    def goes_right(b: pyo.Block, i: int, t: int) -> object:
        right = held(i, 2 * t + 1)
        return (1.0 - M[i], linear([1.0, 1.0, *(-M[i] for _ in right)], [s[i, t], b.e[i, t], *right]), None)

    @block.Constraint(I, tree.branch, doc="s_it <= e_it - 1 + (1 + M_i)(1 - L_it)")
    def goes_left(b: pyo.Block, i: int, t: int) -> object:
        left = held(i, 2 * t)
        return (None, linear([1.0, -1.0, *(M[i] for _ in left)], [s[i, t], b.e[i, t], *left]), M[i] - 1.0)

    @block.Constraint(I, tree.branch, doc="L_it <= d_t")
    def left_needs_split(b: pyo.Block, i: int, t: int) -> object:
        left = held(i, 2 * t)
        return (None, linear([*(1.0 for _ in left), -1.0], [*left, d[t]]), 0.0)

    if mu is not None:

        @block.Constraint(I, tree.branch, doc="e_it + μ L_it <= 1")
        def strictly_left(b: pyo.Block, i: int, t: int) -> object:
            left = held(i, 2 * t)
            return (None, linear([1.0, *(mu for _ in left)], [b.e[i, t], *left]), 1.0)

    return block


def side_hinge_size(tree: Topology, n: int, levels: bool, strict: bool) -> BlockSize:
    """What :func:`add_side_hinge` adds for ``n`` samples; ``levels`` with a level assignment, ``strict`` with ``mu``."""
    B = len(tree.branch)
    z = n * (B if levels else tree.n_left_pairs)  # of all rows of one family together
    strictly = rows(n * B, 1, z) if strict else BlockSize()
    return continuous(n * B) + rows(2 * n * B, 2, 2 * z) + rows(n * B, 1, z) + strictly


def set_side_hinge(block: pyo.Block, error: FloatArray) -> None:
    """Values of e (n, B)."""
    set_values(block.e, lambda i, t: error[i, t - 1])
