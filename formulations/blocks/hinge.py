"""Block ``hinge``: the error of each row at each node that holds it, against its label or against the side that it is sent to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from ..base import BoolArray, FloatArray, set_values
from .roles import describe
from .rows import linear, sum_of, term
from .sizes import BlockSize, continuous, rows
from .topology import Topology


def add_hinge(
    model: pyo.ConcreteModel,
    nodes: range,
    hyperplanes: pyo.Block,
    sign: FloatArray,
    score_bound: FloatArray,
    error_bound: FloatArray,
    assignment: pyo.Block | None = None,
    relabelling: pyo.Block | None = None,
) -> pyo.Block:
    """Add ``model.hinge``: e_it >= 1 - y s for a row in node t, with y turned around where it is relabelled.

    Needs: ``hyperplanes``; optionally ``assignment`` (without it every row is in every node) and ``relabelling``
    (without it: the plain soft margin). Data: ``nodes``; ``sign (n,)`` is y ∈ {-1,+1}; ``score_bound (n,)`` M_i;
    ``error_bound (n,)`` at least the largest error at an optimum.

        y_i s_it  >= 1 - e_it - (1 + M_i)(1 - z_it + ξ_it)
        -y_i s_it >= 1 - e_it - (1 + M_i)(2 - z_it - ξ_it)

    Source: Blanco, Japón, Puerto (2), (3). **differs:** the products β = ξω are gone. With ξ = 0 the second row is
    void and the first is (2) with β = 0; with ξ = 1 the first is void and the second is (2) with β = ω.
    Size: n|t| variables, 2n|t| rows (n|t| without relabelling).
    """
    I = range(len(sign))
    block = model.hinge = pyo.Block(doc="errors of the rows")
    block.e = pyo.Var(
        I, nodes, bounds=lambda b, i, t: (0.0, float(error_bound[i])), doc="error of row i at node t"
    )
    describe(block.e, sample=0, node=1)
    s, y, M = hyperplanes.s, sign.tolist(), [1.0 + float(v) for v in score_bound]

    @block.Constraint(I, nodes, doc="y_i s_it >= 1 - e_it - (1 + M_i)(1 - z_it + ξ_it) (2, 3 with ξ = 0)")
    def hinge(b: pyo.Block, i: int, t: int) -> object:
        coefs, variables, low = [y[i], 1.0], [s[i, t], b.e[i, t]], 1.0
        if assignment is not None:
            coefs.append(-M[i])
            variables.append(assignment.z[i, t])
            low -= M[i]
        if relabelling is not None:
            coefs.append(M[i])
            variables.append(relabelling.xi[i, t])
        return (low, linear(coefs, variables), None)

    if relabelling is not None:

        @block.Constraint(
            I, nodes, doc="-y_i s_it >= 1 - e_it - (1 + M_i)(2 - z_it - ξ_it) (2, 3 with ξ = 1)"
        )
        def hinge_relabelled(b: pyo.Block, i: int, t: int) -> object:
            coefs = [-y[i], 1.0, -M[i]]
            variables, low = [s[i, t], b.e[i, t], relabelling.xi[i, t]], 1.0 - M[i]
            if assignment is not None:
                coefs.append(-M[i])
                variables.append(assignment.z[i, t])
                low -= M[i]
            return (low, linear(coefs, variables), None)

    return block


def narrow_hinge(
    block: pyo.Block,
    hyperplanes: pyo.Block,
    relabelling: pyo.Block,
    sign: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> list[tuple[Any, Any]]:
    """Give the rows of :func:`add_hinge` at node 1, without assignment, the least big-M for scores in [low, high] (n,).

        y_i s_i  >= 1 - e_i - M_i ξ_i            M_i  = max(0, 1 - min y_i s_i)
        -y_i s_i >= 1 - e_i - M'_i (1 - ξ_i)     M'_i = max(0, 1 + max y_i s_i)

    Returns each row with the expression that it had.
    """
    least, most = np.where(sign > 0, low, -high), np.where(sign > 0, high, -low)
    keep, give_up = np.maximum(0.0, 1.0 - least).tolist(), np.maximum(0.0, 1.0 + most).tolist()
    before = []
    for i, y in enumerate(sign.tolist()):
        variables = [hyperplanes.s[i, 1], block.e[i, 1], relabelling.xi[i, 1]]
        for row, coefs, low_side in (
            (block.hinge[i, 1], [y, 1.0, keep[i]], 1.0),
            (block.hinge_relabelled[i, 1], [-y, 1.0, -give_up[i]], 1.0 - give_up[i]),
        ):
            before.append((row, row.expr))
            row.set_value((low_side, linear(coefs, variables), None))
    return before


def hinge_size(n: int, nodes: int, relabelling: bool = True, placed: int = 0) -> BlockSize:
    """What :func:`add_hinge` adds for ``n`` samples at so many ``nodes``; z is free at ``placed`` of them."""
    families = 2 if relabelling else 1
    return continuous(n * nodes) + rows(families * n * nodes, 2 + relabelling, families * n * placed)


def add_product_hinge(
    model: pyo.ConcreteModel,
    nodes: range,
    hyperplanes: pyo.Block,
    relabelling: pyo.Block,
    sign: FloatArray,
    X: FloatArray,
    weight_bound: float,
    intercept_bound: float,
    score_bound: FloatArray,
    error_bound: FloatArray,
    assignment: pyo.Block | None = None,
) -> pyo.Block:
    """Add ``model.hinge`` as printed, with the products β_it = ξ_it ω_t linearised.

    Needs: ``hyperplanes``, ``relabelling``; optionally ``assignment``. Data: as :func:`add_hinge`; ``X (n, p)``
    scaled; ``weight_bound`` W for |ω_tj|, ``intercept_bound`` for the centred intercept.

        y_i s_it - 2 y_i(β_it'x_i + β_it0) >= 1 - e_it - (1 + M_i)(1 - z_it)
        -W ξ_it <= β_itj <= W ξ_it,      -W(1 - ξ_it) <= β_itj - ω_tj <= W(1 - ξ_it),      j = 0..p

    Source: Blanco, Japón, Puerto (2), (3). **differs:** none but the bounds (W and W_0 instead of one M).
    Size: n|t|(p + 2) variables, n|t|(4p + 5) rows.
    """
    n, p = X.shape
    I, J = range(n), range(p)
    block = model.hinge = pyo.Block(doc="errors of the rows, on the products ξω")
    block.e = pyo.Var(
        I, nodes, bounds=lambda b, i, t: (0.0, float(error_bound[i])), doc="error of row i at node t"
    )
    describe(block.e, sample=0, node=1)
    block.beta = pyo.Var(I, nodes, J, bounds=(-weight_bound, weight_bound), doc="β_itj = ξ_it ω_tj")
    block.beta0 = pyo.Var(I, nodes, bounds=(-intercept_bound, intercept_bound), doc="β_it0 = ξ_it ω_t0")
    describe(block.beta, sample=0, node=1, feature=2)
    describe(block.beta0, sample=0, node=1)
    s, xi, omega, omega0 = hyperplanes.s, relabelling.xi, hyperplanes.omega, hyperplanes.omega0
    centred = (X - hyperplanes.center).tolist()
    M = [1.0 + float(v) for v in score_bound]

    @block.Constraint(I, nodes, doc="y_i s_it - 2 y_i(β_it'x_i + β_it0) >= 1 - e_it - M(1 - z_it) (2)")
    def hinge(b: pyo.Block, i: int, t: int) -> object:
        y = float(sign[i])
        coefs = [y, *(-2 * y * x for x in centred[i]), -2 * y, 1.0]
        variables = [s[i, t], *(b.beta[i, t, j] for j in J), b.beta0[i, t], b.e[i, t]]
        if assignment is None:
            return (1.0, linear(coefs, variables), None)
        return (1.0 - M[i], linear([*coefs, -M[i]], [*variables, assignment.z[i, t]]), None)

    keys = [*J, -1]
    # β, ω and Wξ stand in two to 2p + 2 of the rows of (3) each: their terms are made once.
    plus_beta = {(i, t, j): term(1.0, v) for (i, t, j), v in block.beta.items()}
    plus_beta |= {(i, t, -1): term(1.0, v) for (i, t), v in block.beta0.items()}
    minus_omega = {(t, j): term(-1.0, v) for (t, j), v in omega.items()}
    minus_omega |= {(t, -1): term(-1.0, v) for t, v in omega0.items()}
    bound = {**dict.fromkeys(J, weight_bound), -1: intercept_bound}
    plus_xi = {W: {k: term(W, v) for k, v in xi.items()} for W in set(bound.values())}
    minus_xi = {W: {k: term(-W, v) for k, v in xi.items()} for W in set(bound.values())}

    @block.Constraint(I, nodes, keys, doc="β_itj <= W ξ_it (3)")
    def product_above(b: pyo.Block, i: int, t: int, j: int) -> object:
        return (None, sum_of(plus_beta[i, t, j], minus_xi[bound[j]][i, t]), 0.0)

    @block.Constraint(I, nodes, keys, doc="-W ξ_it <= β_itj (3)")
    def product_below(b: pyo.Block, i: int, t: int, j: int) -> object:
        return (0.0, sum_of(plus_beta[i, t, j], plus_xi[bound[j]][i, t]), None)

    @block.Constraint(I, nodes, keys, doc="β_itj - ω_tj <= W(1 - ξ_it) (3)")
    def equals_above(b: pyo.Block, i: int, t: int, j: int) -> object:
        return (None, sum_of(plus_beta[i, t, j], minus_omega[t, j], plus_xi[bound[j]][i, t]), bound[j])

    @block.Constraint(I, nodes, keys, doc="-W(1 - ξ_it) <= β_itj - ω_tj (3)")
    def equals_below(b: pyo.Block, i: int, t: int, j: int) -> object:
        return (-bound[j], sum_of(plus_beta[i, t, j], minus_omega[t, j], minus_xi[bound[j]][i, t]), None)

    return block


def product_hinge_size(n: int, p: int, nodes: int, entries: int, placed: int = 0) -> BlockSize:
    """What :func:`add_product_hinge` adds; ``entries`` of the centred table, z is free at ``placed`` nodes."""
    e, products = n * nodes, n * nodes * (p + 1)
    errors = rows(e, 3, nodes * entries + n * placed)
    return continuous(e + products) + errors + rows(2 * products, 2) + rows(2 * products, 3)


def set_hinge(block: pyo.Block, error: FloatArray, relabelled: BoolArray, hyperplanes: pyo.Block) -> None:
    """Values of e (n, T) and, where the block has them, the products of ``relabelled (n, T)`` and the hyperplanes' values."""
    set_values(block.e, lambda i, t: error[i, t - 1])
    if hasattr(block, "beta"):
        on, omega, omega0 = relabelled.astype(float), hyperplanes.omega, hyperplanes.omega0
        set_values(block.beta0, lambda i, t: on[i, t - 1] * omega0[t].value)
        set_values(block.beta, lambda i, t, j: on[i, t - 1] * omega[t, j].value)


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
