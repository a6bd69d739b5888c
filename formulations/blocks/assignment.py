"""Block ``assignment``: which node holds which row."""

from __future__ import annotations

import pyomo.environ as pyo

from ..base import IntArray, set_values
from .roles import describe
from .rows import linear
from .sizes import BlockSize, binary, continuous, rows
from .topology import Topology


def add_leaf_assignment(model: pyo.ConcreteModel, topology: pyo.Block, n: int, n_min: int) -> pyo.Block:
    """Add ``model.assignment``: every row sits in one leaf, and a leaf in use holds at least N_min rows.

    Needs: ``topology``. Data: ``n`` rows, ``n_min`` rows.

        Σ_t z_it = 1        z_it <= l_t        Σ_i z_it >= N_min l_t        z, l binary

    Source: Bertsimas & Dunn (2017), (6)-(8). **differs:** none. Size: (n + 1)|τ_L| variables, n + (n + 1)|τ_L| rows.
    """
    leaf, I = topology.tree.leaf, range(n)
    block = model.assignment = pyo.Block(doc="rows to leaves")
    block.z = pyo.Var(I, leaf, domain=pyo.Binary, doc="z_it = 1: row i is in leaf t")
    block.l = pyo.Var(leaf, domain=pyo.Binary, doc="l_t = 1: leaf t is in use")
    describe(block.z, sample=0, node=1)
    describe(block.l, node=0)
    ones = [1.0] * len(leaf)

    @block.Constraint(I, doc="Σ_t z_it = 1 (B&D 8)")
    def one_leaf(b: pyo.Block, i: int) -> object:
        return (1.0, linear(ones, [b.z[i, t] for t in leaf]), 1.0)

    block.leaf_in_use = pyo.Constraint(
        I, leaf, rule=lambda b, i, t: b.z[i, t] <= b.l[t], doc="z_it <= l_t (B&D 6)"
    )

    @block.Constraint(leaf, doc="Σ_i z_it >= N_min l_t (B&D 7)")
    def leaf_size(b: pyo.Block, t: int) -> object:
        return (0.0, linear([1.0] * n + [-float(n_min)], [b.z[i, t] for i in I] + [b.l[t]]), None)

    return block


def leaf_assignment_size(tree: Topology, n: int) -> BlockSize:
    """What :func:`add_leaf_assignment` adds for ``n`` samples."""
    L = len(tree.leaf)
    return binary((n + 1) * L) + rows(n, L) + rows(n * L, 2) + rows(L, n + 1)


def set_leaf_assignment(block: pyo.Block, path: IntArray) -> None:
    """Values of z and l (of groups, too) where each sample comes to the last node of its ``path (n, D + 1)``."""
    leaf = path[:, -1].tolist()
    used = set(leaf)
    set_values(block.z, lambda i, t: leaf[i] == t)
    set_values(block.l, lambda t: t in used)


def add_level_assignment(
    model: pyo.ConcreteModel, topology: pyo.Block, n: int, binary: bool = False
) -> pyo.Block:
    """Add ``model.assignment``: every row sits in one node of each level, below its node of the level above.

    Needs: ``topology``. Data: ``n`` rows; ``binary`` declares z binary (needed only where the routing does not
    force it).

        Σ_{t∈u} z_it = 1 for every level u         z_it <= z_ip(t)

    Source: Blanco, Japón, Puerto (6), (7). **differs:** z_i1 is fixed to 1 (level u_0 says so), and z may be
    continuous: routing on binary θ leaves it no choice but 0 or 1. Size: nT variables, n(D + T - 1) rows.
    """
    tree, I = topology.tree, range(n)
    block = model.assignment = pyo.Block(doc="rows to one node of each level")
    block.z = pyo.Var(
        I, tree.nodes, domain=pyo.Binary if binary else pyo.UnitInterval, doc="z_it = 1: row i is in node t"
    )
    describe(block.z, sample=0, node=1)
    for i in I:
        block.z[i, 1].fix(1)

    @block.Constraint(I, range(1, tree.depth + 1), doc="Σ_{t∈u} z_it = 1 (6)")
    def one_node_per_level(b: pyo.Block, i: int, u: int) -> object:
        level = tree.levels[u]
        return (1.0, linear([1.0] * len(level), [b.z[i, t] for t in level]), 1.0)

    block.child_needs_parent = pyo.Constraint(
        I, tree.nodes[1:], rule=lambda b, i, t: b.z[i, t] <= b.z[i, t // 2], doc="z_it <= z_ip(t) (7)"
    )
    return block


def level_assignment_size(tree: Topology, n: int, is_binary: bool = False) -> BlockSize:
    """What :func:`add_level_assignment` adds for ``n`` samples; z of the root is fixed and stands in no row."""
    z = n * (len(tree.nodes) - 1)
    of_root = 2 * n if tree.depth else 0  # its children have no z above them
    return (binary if is_binary else continuous)(z) + rows(n * tree.depth, more=z) + rows(z, 2, -of_root)


def set_level_assignment(block: pyo.Block, path: IntArray) -> None:
    """Values of z where each sample takes its ``path (n, D + 1)``."""
    held = path.tolist()
    set_values(block.z, lambda i, t: held[i][t.bit_length() - 1] == t)
