"""Blocks ``split`` and ``pruning``: where a node cuts the feature space, and whether it does."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from ..base import BoolArray, FloatArray, IntArray, set_values
from .roles import describe
from .rows import linear
from .sizes import BlockSize, binary, continuous, rows
from .topology import Topology


def _parent_splits(block: pyo.Block, t: int) -> object:
    if t == 1:
        return pyo.Constraint.Skip
    return block.d[t] <= block.d[t // 2]


def add_axis_splits(
    model: pyo.ConcreteModel, topology: pyo.Block, p: int, constant: BoolArray | None = None
) -> pyo.Block:
    """Add ``model.split``: at most one feature and one threshold at each branch node.

    Needs: ``topology``. Data: ``p`` features; ``constant (p,)`` marks columns that cannot split (fixed to 0).

        a_tj ∈ {0,1},  d_t ∈ {0,1},  0 <= b_t <= 1
        Σ_j a_tj = d_t          b_t <= d_t          d_t <= d_p(t)

    Source: Bertsimas & Dunn (2017), (2)-(5). **differs:** constant columns are fixed out.
    Size: |τ_B|(p + 2) variables, 3|τ_B| - 1 rows.
    """
    branch = topology.tree.branch
    block = model.split = pyo.Block(doc="axis-parallel splits a_t'x < b_t")
    J = range(p)
    block.a = pyo.Var(branch, J, domain=pyo.Binary, doc="a_tj = 1: node t splits on feature j")
    block.b = pyo.Var(branch, bounds=(0, 1), doc="threshold of node t")
    block.d = pyo.Var(branch, domain=pyo.Binary, doc="d_t = 1: node t splits")
    describe(block.a, node=0, feature=1)
    describe(block.b, block.d, node=0)
    if constant is not None:
        for j in np.flatnonzero(constant):
            for t in branch:
                block.a[t, int(j)].fix(0)
    ones = [1.0] * p + [-1.0]

    @block.Constraint(branch, doc="Σ_j a_tj = d_t (B&D 2)")
    def one_feature(b: pyo.Block, t: int) -> object:
        return (0.0, linear(ones, [b.a[t, j] for j in J] + [b.d[t]]), 0.0)

    @block.Constraint(branch, doc="b_t <= d_t (B&D 3)")
    def threshold_needs_split(b: pyo.Block, t: int) -> object:
        return b.b[t] <= b.d[t]

    block.parent_splits = pyo.Constraint(branch, rule=_parent_splits, doc="d_t <= d_p(t) (B&D 5)")
    return block


def axis_splits_size(tree: Topology, features: int) -> BlockSize:
    """What :func:`add_axis_splits` adds for so many ``features`` that are not constant."""
    B = len(tree.branch)
    return (
        continuous(B)
        + binary(B * (features + 1))
        + rows(B, features + 1)
        + rows(B, 2)
        + rows(max(0, B - 1), 2)
    )


def set_axis_splits(block: pyo.Block, feature: IntArray, threshold: FloatArray) -> None:
    """Values of d, a and b where node t splits on ``feature[t - 1]`` (-1: it does not split) at ``threshold[t - 1]``."""
    set_values(block.d, lambda t: feature[t - 1] >= 0)
    set_values(block.a, lambda t, j: feature[t - 1] == j)
    set_values(block.b, lambda t: threshold[t - 1])


def add_oblique_splits(
    model: pyo.ConcreteModel, topology: pyo.Block, p: int, sparse: bool = False
) -> pyo.Block:
    """Add ``model.split``: a hyperplane a_t'x < b_t with ‖a_t‖₁ <= 1 at each branch node.

    Needs: ``topology``. Data: ``p`` features; ``sparse`` adds the binaries s_tj that count used features.

        a_tj ∈ [-1,1],  Σ_j â_tj <= d_t,  -â_tj <= a_tj <= â_tj,  -d_t <= b_t <= d_t,  d_t <= d_p(t)
        sparse:  -s_tj <= a_tj <= s_tj,  s_tj <= d_t,  Σ_j s_tj >= d_t,  s binary

    Source: Bertsimas & Dunn (2017), Section 4. **differs:** s only where the objective counts features.
    Size: |τ_B|(2p + 2) variables and |τ_B|(2p + 4) - 1 rows; sparse: p more variables and 3p + 1 more rows a node.
    """
    branch = topology.tree.branch
    block = model.split = pyo.Block(doc="oblique splits a_t'x < b_t")
    J = range(p)
    block.a = pyo.Var(branch, J, bounds=(-1, 1), doc="weight of feature j at node t")
    block.abs_a = pyo.Var(branch, J, bounds=(0, 1), doc="at least |a_tj|")
    block.b = pyo.Var(branch, bounds=(-1, 1), doc="threshold of node t")
    block.d = pyo.Var(branch, domain=pyo.Binary, doc="d_t = 1: node t splits")
    describe(block.a, block.abs_a, node=0, feature=1)
    describe(block.b, block.d, node=0)

    @block.Constraint(branch, doc="Σ_j â_tj <= d_t (B&D 4)")
    def weights_need_split(b: pyo.Block, t: int) -> object:
        return (None, linear([1.0] * p + [-1.0], [b.abs_a[t, j] for j in J] + [b.d[t]]), 0.0)

    block.abs_above = pyo.Constraint(
        branch, J, rule=lambda b, t, j: b.a[t, j] <= b.abs_a[t, j], doc="a_tj <= â_tj"
    )
    block.abs_below = pyo.Constraint(
        branch, J, rule=lambda b, t, j: -b.abs_a[t, j] <= b.a[t, j], doc="-â_tj <= a_tj"
    )
    block.threshold_above = pyo.Constraint(branch, rule=lambda b, t: b.b[t] <= b.d[t], doc="b_t <= d_t")
    block.threshold_below = pyo.Constraint(branch, rule=lambda b, t: -b.d[t] <= b.b[t], doc="-d_t <= b_t")
    block.parent_splits = pyo.Constraint(branch, rule=_parent_splits, doc="d_t <= d_p(t)")
    if sparse:
        block.s = pyo.Var(branch, J, domain=pyo.Binary, doc="s_tj = 1: node t may use feature j")
        describe(block.s, node=0, feature=1)
        block.used_above = pyo.Constraint(
            branch, J, rule=lambda b, t, j: b.a[t, j] <= b.s[t, j], doc="a_tj <= s_tj"
        )
        block.used_below = pyo.Constraint(
            branch, J, rule=lambda b, t, j: -b.s[t, j] <= b.a[t, j], doc="-s_tj <= a_tj"
        )
        block.feature_needs_split = pyo.Constraint(
            branch, J, rule=lambda b, t, j: b.s[t, j] <= b.d[t], doc="s_tj <= d_t"
        )

        @block.Constraint(branch, doc="Σ_j s_tj >= d_t")
        def split_needs_feature(b: pyo.Block, t: int) -> object:
            return (0.0, linear([1.0] * p + [-1.0], [b.s[t, j] for j in J] + [b.d[t]]), None)

    return block


def oblique_splits_size(tree: Topology, p: int, sparse: bool = False) -> BlockSize:
    """What :func:`add_oblique_splits` adds."""
    B = len(tree.branch)
    weights = continuous(2 * p * B) + rows(B, p + 1) + rows(2 * p * B, 2)
    used = binary(p * B) + rows(3 * p * B, 2) + rows(B, p + 1) if sparse else BlockSize()
    return weights + continuous(B) + binary(B) + rows(2 * B, 2) + rows(max(0, B - 1), 2) + used


def set_oblique_splits(block: pyo.Block, a: FloatArray, b: FloatArray, split: BoolArray) -> None:
    """Values of the block for weights ``a (B, p)`` and thresholds ``b (B,)``; ``split (B,)`` says which nodes split."""
    set_values(block.d, lambda t: split[t - 1])
    set_values(block.b, lambda t: b[t - 1])
    set_values(block.a, lambda t, j: a[t - 1, j])
    set_values(block.abs_a, lambda t, j: abs(a[t - 1, j]))
    if hasattr(block, "s"):
        used = a != 0
        used[split & ~used.any(axis=1), 0] = True  # a split counts one feature at least
        set_values(block.s, lambda t, j: used[t - 1, j])


def add_hyperplanes(
    model: pyo.ConcreteModel, nodes: range, X: FloatArray, weight_bound: float, score_bound: FloatArray
) -> pyo.Block:
    """Add ``model.split``: a hyperplane at each node, and the score of each row there.

    Needs: nothing. Data: ``nodes``; ``X (n, p)`` scaled; ``weight_bound`` W >= |ω_tj| and ``score_bound (n,)``
    M_i >= |s_it| from :mod:`big_m`.

        s_it = ω_t'(x_i - x̄) + ω_t0          -W <= ω_tj <= W,   -M_i <= s_it <= M_i

    Source: the scores inside Blanco, Japón, Puerto (2), (8), (9). **differs:** the score is a variable of its own,
    so that p + 1 nonzeros stand in one row instead of four; rows are centred, so the intercept here is
    ω_t0 + ω_t'x̄ of the paper (:func:`intercepts` shifts it back).
    Size: |t|(p + 1 + n) variables, n|t| rows with p + 2 nonzeros.
    """
    n, p = X.shape
    block = model.split = pyo.Block(doc="hyperplanes ω_t'x + ω_t0 and the scores of the rows")
    block.center = X.mean(axis=0)
    J, I = range(p), range(n)
    block.omega = pyo.Var(nodes, J, bounds=(-weight_bound, weight_bound), doc="normal vector of node t")
    block.omega0 = pyo.Var(nodes, doc="intercept of node t for centred rows")
    block.s = pyo.Var(
        I, nodes, bounds=lambda b, i, t: (-score_bound[i], score_bound[i]), doc="score of row i at node t"
    )
    describe(block.omega, node=0, feature=1)
    describe(block.omega0, node=0)
    describe(block.s, sample=0, node=1)
    coefs = [[*row, 1.0, -1.0] for row in (X - block.center).tolist()]
    weights = {t: [block.omega[t, j] for j in J] + [block.omega0[t]] for t in nodes}

    @block.Constraint(I, nodes, doc="s_it = ω_t'(x_i - x̄) + ω_t0")
    def score(b: pyo.Block, i: int, t: int) -> object:
        return (0.0, linear(coefs[i], [*weights[t], b.s[i, t]]), 0.0)

    return block


def hyperplanes_size(n: int, p: int, nodes: int, entries: int) -> BlockSize:
    """What :func:`add_hyperplanes` adds at so many ``nodes``; ``entries`` of the centred table."""
    return continuous(nodes * (p + 1 + n)) + rows(n * nodes, 2, nodes * entries)


def set_hyperplanes(block: pyo.Block, omega: FloatArray, omega0: FloatArray, score: FloatArray) -> None:
    """Values of ω (T, p), ω_0 (T,) for rows that are not centred, and s (n, T)."""
    centred = omega0 + omega @ block.center
    set_values(block.omega, lambda t, j: omega[t - 1, j])
    set_values(block.omega0, lambda t: centred[t - 1])
    set_values(block.s, lambda i, t: score[i, t - 1])


def add_pruning(
    model: pyo.ConcreteModel,
    topology: pyo.Block,
    hyperplanes: pyo.Block,
    weight_bound: float | None,
    nodes: range | None = None,
) -> pyo.Block:
    """Add ``model.pruning``: d_t = 1 where node t may have a nonzero normal vector.

    Needs: ``topology``, ``hyperplanes``. Data: ``weight_bound`` W, or None where the margin block carries (4);
    ``nodes``, all of the tree unless given.

        -W d_t <= ω_tj <= W d_t        d_t <= d_p(t)

    Source: Blanco, Japón, Puerto (4), (5). **differs:** the linear rows replace ‖ω_t‖ <= M d_t: with d_t = 1
    the norm is bounded by 2δ <= W already, with d_t = 0 both say ω_t = 0.
    Size: T variables, (2p + 1)T - 1 rows.
    """
    nodes = topology.tree.nodes if nodes is None else nodes
    J = range(len(hyperplanes.center))
    block = model.pruning = pyo.Block(doc="which nodes split")
    block.d = pyo.Var(nodes, domain=pyo.Binary, doc="d_t = 1: node t splits")
    describe(block.d, node=0)
    if weight_bound is not None:
        W = float(weight_bound)
        block.weights_above = pyo.Constraint(
            nodes,
            J,
            rule=lambda b, t, j: (None, linear([1.0, -W], [hyperplanes.omega[t, j], b.d[t]]), 0.0),
            doc="ω_tj <= W d_t (4)",
        )
        block.weights_below = pyo.Constraint(
            nodes,
            J,
            rule=lambda b, t, j: (0.0, linear([1.0, W], [hyperplanes.omega[t, j], b.d[t]]), None),
            doc="-W d_t <= ω_tj (4)",
        )
    block.parent_splits = pyo.Constraint(nodes, rule=_parent_splits, doc="d_t <= d_p(t) (5)")
    return block


def pruning_size(p: int, nodes: int, weights: bool = True) -> BlockSize:
    """What :func:`add_pruning` adds at so many ``nodes``; ``weights``: with the rows on W."""
    return binary(nodes) + rows(2 * p * nodes * weights, 2) + rows(max(0, nodes - 1), 2)


def set_pruning(block: pyo.Block, split: BoolArray) -> None:
    """Values of d: which nodes split (T,)."""
    set_values(block.d, lambda t: split[t - 1])
