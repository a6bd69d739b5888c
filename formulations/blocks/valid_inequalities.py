"""Blocks ``side_costs`` and ``mixes``: rows that follow from the others and need no big-M."""

from __future__ import annotations

import pyomo.environ as pyo

from ..base import FloatArray, set_values
from ..bounds.hull import Combination
from .roles import describe
from .rows import linear
from .sizes import BlockSize, continuous, rows
from .topology import Topology


def add_misrouting_inequalities(
    model: pyo.ConcreteModel,
    topology: pyo.Block,
    assignment: pyo.Block,
    hinge: pyo.Block,
    relabelling: pyo.Block,
    sign: FloatArray,
    mu: float,
) -> pyo.Block:
    """Add ``model.side_costs``: what a row pays at a branch node for the side that it takes.

    Needs: ``topology``, level ``assignment``, ``hinge``, ``relabelling``, and the routing that ties z to the scores.
    Data: ``sign (n,)`` is y ∈ {-1,+1}; ``mu`` of (9′), 0 without it. Write c for the child of t on the other class's
    side (left for +1) and κ = 1 + μ for +1, 1 for -1.

        e_it + κ ξ_it >= κ z_ic           e_it >= ξ_it - z_ic

    Source: ours. **differs:** not in the paper; implied by its rows. A row in c that is not relabelled has y s <= 1 - κ,
    so e >= κ. A relabelled row on its own side has y s >= 0, so e >= 1. Both hold at every point of the model. Size: 2n|τ_B| rows.
    """
    tree, I = topology.tree, range(len(sign))
    block = model.side_costs = pyo.Block(doc="what the side taken costs")
    z, e, xi, y = assignment.z, hinge.e, relabelling.xi, sign.tolist()

    @block.Constraint(I, tree.branch, doc="e_it + κ ξ_it >= κ z_ic, c on the other side")
    def wrong_side(b: pyo.Block, i: int, t: int) -> object:
        k, c = (1.0 + mu, 2 * t) if y[i] > 0 else (1.0, 2 * t + 1)
        return (0.0, linear([1.0, k, -k], [e[i, t], xi[i, t], z[i, c]]), None)

    @block.Constraint(I, tree.branch, doc="e_it >= ξ_it - z_ic, c on the other side")
    def relabelled_side(b: pyo.Block, i: int, t: int) -> object:
        c = 2 * t if y[i] > 0 else 2 * t + 1
        return (0.0, linear([1.0, -1.0, 1.0], [e[i, t], xi[i, t], z[i, c]]), None)

    return block


def misrouting_inequalities_size(tree: Topology, n: int) -> BlockSize:
    """What :func:`add_misrouting_inequalities` adds for ``n`` samples."""
    return rows(2 * n * len(tree.branch), 3)


def add_convex_hull_inequalities(
    model: pyo.ConcreteModel,
    keys: list[tuple[Combination, int]],
    weight_bound: float,
    margin: pyo.Block,
    pruning: pyo.Block,
    assignment: pyo.Block,
    hinge: pyo.Block,
    relabelling: pyo.Block,
) -> pyo.Block:
    """Add ``model.mixes``: rows of both classes in one node cannot all be right at no cost.

    Needs: ``margin`` with δ, ``pruning``, level ``assignment``, ``hinge``, ``relabelling``. Data: ``keys``, each a
    :class:`formulations.hull.Combination` and a node; ``weight_bound`` W >= ‖ω_t‖.

        Σ_k m_k e_kt + 2 Σ_k ξ_kt + dist·r_t >= 2 - 2 Σ_k (1 - z_kt)          k over the rows of the mix
        r_t <= 2δ,   r_t <= W d_t

    Source: ours (:mod:`octsvm.formulations.bounds.hull` has the proof). **differs:** not in the paper; implied. r_t stands for any
    number that ‖ω_t‖ does not exceed, and min(2δ, W d_t) is one. Both hold at every point of the model that has
    ‖ω_t‖ <= W. Size: |t| variables, 2|t| rows, and a row with 5 to 13 nonzeros for each key.
    """
    block = model.mixes = pyo.Block(doc="rows of both classes in one node pay")
    e, xi, z = hinge.e, relabelling.xi, assignment.z
    nodes = sorted({t for _, t in keys})
    W = block.weight_bound = float(weight_bound)
    block.r = pyo.Var(nodes, bounds=(0.0, W), doc="at least ‖ω_t‖")
    describe(block.r, node=0)
    block.within_margin = pyo.Constraint(
        nodes, rule=lambda b, t: (None, linear([1.0, -2.0], [b.r[t], margin.delta]), 0.0), doc="r_t <= 2δ"
    )
    block.needs_split = pyo.Constraint(
        nodes, rule=lambda b, t: (None, linear([1.0, -W], [b.r[t], pruning.d[t]]), 0.0), doc="r_t <= W d_t"
    )

    @block.Constraint(range(len(keys)), doc="Σ m_k e_kt + 2 Σ ξ_kt + dist·r_t >= 2 - 2 Σ (1 - z_kt)")
    def separated(b: pyo.Block, k: int) -> object:
        mix, t = keys[k]
        size = len(mix.rows)
        coefs = [*mix.weights, *[2.0] * size, mix.distance]
        variables = [*(e[i, t] for i in mix.rows), *(xi[i, t] for i in mix.rows), b.r[t]]
        if t == 1:
            return (2.0, linear(coefs, variables), None)
        coefs += [-2.0] * size
        variables += [z[i, t] for i in mix.rows]
        return (2.0 - 2.0 * size, linear(coefs, variables), None)

    return block


def convex_hull_inequalities_size(nodes: int, mixes: int, entries: int) -> BlockSize:
    """What :func:`add_convex_hull_inequalities` adds: so many ``mixes`` at so many ``nodes``, with ``entries`` nonzeros in all."""
    return continuous(nodes) + rows(2 * nodes, 2) + rows(mixes, more=entries)


def convex_hull_entries(keys: list[tuple[Combination, int]]) -> int:
    """Nonzeros of the rows of ``keys``; z of the root is fixed and stands in none."""
    return sum(2 * len(mix.rows) + 1 + (len(mix.rows) if t > 1 else 0) for mix, t in keys)


def set_convex_hull_inequalities(block: pyo.Block, margin: pyo.Block, pruning: pyo.Block) -> None:
    """Values of r from those of δ and d."""
    set_values(block.r, lambda t: min(2 * margin.delta.value, block.weight_bound * pruning.d[t].value))
