"""Blocks of OCT as a flow: a split is a choice among the cuts that the data has, and rows flow from the root to a leaf.

Nothing here has a big-M. Feature j has m_j distinct values and m_j - 1 cuts: at cut v the rows with one of the v
smallest values go left. Rows with equal features take the same way in every tree. They are one *group* g, with a
position pos_gj (place of its value of feature j, from 0), a number of rows n_g, and a weight w_gk of each class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from ..base import FloatArray, IntArray, set_values
from ..bounds.subtrees import RootBounds
from .leaf_label import add_one_class
from .roles import describe, groups_in, groups_of
from .routing import add_left_needs_split
from .rows import linear
from .sizes import BlockSize, binary, continuous, rows
from .topology import Topology


def at_or_above(splits: pyo.Block, t: int, j: int, v: int) -> Any:
    """The variable that says whether node t splits on feature j at cut ``v`` or a higher one."""
    return splits.a[t, j] if v == 1 else splits.u[t, j, v]


def add_cut_splits(model: pyo.ConcreteModel, topology: pyo.Block, n_values: IntArray) -> pyo.Block:
    """Add ``model.split``: at most one feature and one of its cuts at each branch node.

    Needs: ``topology``. Data: ``n_values (p,)`` is m_j.

        u_tj1 = a_tj          u_tjv <= u_tj,v-1          Σ_j a_tj = d_t          d_t <= d_p(t)          u, d binary

    u_tjv says that node t splits on feature j at cut v or a higher one; the cut itself is Σ_v u_tjv.

    Source: the splits (2), (5) of Bertsimas & Dunn (2017) with thresholds of the data, as in the choice among
    thresholds of Verwer & Zhang (AAAI 2019). **differs:** the choice is cumulative, so that a row asks one variable a
    feature instead of all the cuts above it, and setting one variable halves the cuts. Columns with one value are
    fixed out. Size: |τ_B|(1 + Σ_j max(1, m_j - 1)) variables, |τ_B|(2 + Σ_j max(0, m_j - 2)) - 1 rows.
    """
    branch, m = topology.tree.branch, n_values.tolist()
    J = range(len(m))
    block = model.split = pyo.Block(doc="axis-parallel splits at cuts between neighbouring values")
    block.a = pyo.Var(branch, J, domain=pyo.Binary, doc="a_tj = 1: node t splits on feature j")
    block.d = pyo.Var(branch, domain=pyo.Binary, doc="d_t = 1: node t splits")
    higher = [(t, j, v) for t in branch for j in J for v in range(2, m[j])]
    block.u = pyo.Var(
        higher, domain=pyo.Binary, doc="u_tjv = 1: node t splits on feature j at cut v or above"
    )
    describe(block.a, block.u, node=0, feature=1)
    describe(block.d, node=0)
    for j in J:
        if m[j] < 2:
            for t in branch:
                block.a[t, j].fix(0)
    ones = [1.0] * len(m) + [-1.0]

    @block.Constraint(branch, doc="Σ_j a_tj = d_t (B&D 2)")
    def one_feature(b: pyo.Block, t: int) -> object:
        return (0.0, linear(ones, [b.a[t, j] for j in J] + [b.d[t]]), 0.0)

    @block.Constraint(higher, doc="u_tjv <= u_tj,v-1")
    def in_order(b: pyo.Block, t: int, j: int, v: int) -> object:
        return (None, linear([1.0, -1.0], [b.u[t, j, v], at_or_above(b, t, j, v - 1)]), 0.0)

    @block.Constraint(branch, doc="d_t <= d_p(t) (B&D 5)")
    def parent_splits(b: pyo.Block, t: int) -> object:
        return pyo.Constraint.Skip if t == 1 else b.d[t] <= b.d[t // 2]

    return block


def cut_splits_size(tree: Topology, features: int, cuts: int) -> BlockSize:
    """What :func:`add_cut_splits` adds: ``features`` have two values or more, and ``cuts`` between them in all."""
    B = len(tree.branch)
    return (
        binary(B * (cuts + 1))
        + rows(B, features + 1)
        + rows(B * (cuts - features), 2)
        + rows(max(0, B - 1), 2)
    )


def set_cut_splits(block: pyo.Block, feature: IntArray, cut: IntArray) -> None:
    """Values of d, a and u where node t splits on ``feature[t - 1]`` (-1: it does not split) at ``cut[t - 1]``."""
    set_values(block.d, lambda t: feature[t - 1] >= 0)
    set_values(block.a, lambda t, j: feature[t - 1] == j)
    set_values(block.u, lambda t, j, v: feature[t - 1] == j and cut[t - 1] >= v)


def add_group_assignment(
    model: pyo.ConcreteModel, topology: pyo.Block, of_row: IntArray, n_min: int
) -> pyo.Block:
    """Add ``model.assignment``: every group of equal rows flows into one leaf; a leaf in use holds at least N_min rows.

    Needs: ``topology``. Data: ``of_row (n,)`` is the group of each row; ``n_min`` rows.

        Σ_t f_gt = 1        f_gt <= l_t        Σ_g n_g f_gt >= N_min l_t        l binary, 0 <= f <= 1

    z_it is another name of f_gt, for every row i of group g, so that rows of other blocks can be written as ever.

    Source: Bertsimas & Dunn (2017), (6)-(8). **differs:** equal rows share a variable, and it is continuous: the
    routing of :func:`add_flow_routing` on binary splits leaves it no choice. Size: (G + 1)|τ_L| variables,
    G + (G + 1)|τ_L| rows.
    """
    leaf, size = topology.tree.leaf, np.bincount(of_row).astype(float).tolist()
    G = range(len(size))
    block = model.assignment = pyo.Block(doc="groups of equal rows to leaves")
    block.f = pyo.Var(G, leaf, domain=pyo.UnitInterval, doc="f_gt = 1: group g is in leaf t")
    block.l = pyo.Var(leaf, domain=pyo.Binary, doc="l_t = 1: leaf t is in use")
    block.z = pyo.Reference({(i, t): block.f[g, t] for i, g in enumerate(of_row.tolist()) for t in leaf})
    block.z.doc = "z_it: another name of f_gt, g the group of row i"
    describe(block.f, sample=0, node=1, groups=groups_of(of_row))
    describe(block.z, sample=0, node=1)
    describe(block.l, node=0)
    ones = [1.0] * len(leaf)

    @block.Constraint(G, doc="Σ_t f_gt = 1 (B&D 8)")
    def one_leaf(b: pyo.Block, g: int) -> object:
        return (1.0, linear(ones, [b.f[g, t] for t in leaf]), 1.0)

    @block.Constraint(G, leaf, doc="f_gt <= l_t (B&D 6)")
    def leaf_in_use(b: pyo.Block, g: int, t: int) -> object:
        return (None, linear([1.0, -1.0], [b.f[g, t], b.l[t]]), 0.0)

    @block.Constraint(leaf, doc="Σ_g n_g f_gt >= N_min l_t (B&D 7)")
    def leaf_size(b: pyo.Block, t: int) -> object:
        return (0.0, linear([*size, -float(n_min)], [*(b.f[g, t] for g in G), b.l[t]]), None)

    return block


def group_assignment_size(tree: Topology, groups: int) -> BlockSize:
    """What :func:`add_group_assignment` adds for so many ``groups`` of equal samples."""
    L = len(tree.leaf)
    return continuous(groups * L) + binary(L) + rows(groups, L) + rows(groups * L, 2) + rows(L, groups + 1)


def add_flow_routing(
    model: pyo.ConcreteModel,
    topology: pyo.Block,
    splits: pyo.Block,
    assignment: pyo.Block,
    position: IntArray,
    n_values: IntArray,
) -> pyo.Block:
    """Add ``model.routing``: what flows left of a node, all leaves there together, has to be left of its cut.

    Needs: ``topology``, cut ``splits``, group ``assignment``. Data: ``position (G, p)`` is pos_gj; ``n_values (p,)``
    is m_j.

        q_gm = Σ_{j: pos_gj < m_j - 1} u_{m,j,pos_gj + 1}         1 if group g lies left of the cut of node m, else 0
        Σ_{t left of 1} f_gt = q_g1                             at the root
        Σ_{t left of m} f_gt <= q_gm,    Σ_{t right of m} f_gt <= 1 - q_gm         below it
        l_t <= d_m, m ∈ A_L(t)                                  implied, tightens

    A node that does not split has u = 0, so q = 0, and sends everything right. Source: the flow of Aghaei, Gómez &
    Vayanos (*Strong optimal classification trees*, Operations Research 2024), (1). **differs:** it is for binary
    features, with a sink at every node; here features have any values, all flow ends in leaves, and the flow on an arc
    is the sum of that into the leaves below it. No q at the root, where the first row says it all.
    Size: G(|τ_B| - 1) variables, G(3|τ_B| - 2) rows and those of ``left_needs_split``.
    """
    tree, f = topology.tree, assignment.f
    G, m, place = range(len(position)), n_values.tolist(), position.tolist()
    lower = [t for t in tree.branch if t > 1]
    block = model.routing = pyo.Block(doc="flow from the root to the leaves")
    block.q = pyo.Var(
        G, lower, domain=pyo.UnitInterval, doc="q_gm = 1: group g lies left of the cut of node m"
    )
    describe(block.q, sample=0, node=1, groups=groups_in(f))

    def left_of_cut(g: int, t: int) -> list[Any]:
        return [at_or_above(splits, t, j, v + 1) for j, v in enumerate(place[g]) if v + 1 < m[j]]

    def flow(g: int, t: int) -> list[Any]:
        return [f[g, leaf] for leaf in tree.leaves_below(t)]

    @block.Constraint(G, range(1, min(1, tree.depth) + 1), doc="Σ_{t left of 1} f_gt = q_g1")
    def root(b: pyo.Block, g: int, t: int) -> object:
        left, below = left_of_cut(g, t), flow(g, 2 * t)
        return (0.0, linear([1.0] * len(left) + [-1.0] * len(below), left + below), 0.0)

    @block.Constraint(G, lower, doc="q_gm = Σ_j u_{m,j,pos_gj + 1}")
    def side(b: pyo.Block, g: int, t: int) -> object:
        left = left_of_cut(g, t)
        return (0.0, linear([1.0] * len(left) + [-1.0], [*left, b.q[g, t]]), 0.0)

    @block.Constraint(G, lower, doc="Σ_{t left of m} f_gt <= q_gm")
    def goes_left(b: pyo.Block, g: int, t: int) -> object:
        below = flow(g, 2 * t)
        return (None, linear([1.0] * len(below) + [-1.0], [*below, b.q[g, t]]), 0.0)

    @block.Constraint(G, lower, doc="Σ_{t right of m} f_gt <= 1 - q_gm")
    def goes_right(b: pyo.Block, g: int, t: int) -> object:
        below = flow(g, 2 * t + 1)
        return (None, linear([1.0] * len(below) + [1.0], [*below, b.q[g, t]]), 1.0)

    add_left_needs_split(block, topology, splits, assignment)
    return block


def flow_routing_size(tree: Topology, groups: int, below_last: int) -> BlockSize:
    """What :func:`add_flow_routing` adds; ``below_last`` counts the pairs of group and feature with pos_gj < m_j - 1."""
    B, L, pairs = len(tree.branch), len(tree.leaf), tree.n_left_pairs
    if not B:
        return BlockSize()
    q = groups * (B - 1)
    root = rows(groups, L // 2)
    sides = rows(q, 1, B * below_last)  # those of the root, too
    ways = rows(2 * q, 1, 2 * groups * (pairs - L // 2))
    return continuous(q) + root + sides + ways + rows(pairs, 2)


def set_flow_routing(block: pyo.Block, feature: IntArray, cut: IntArray, position: IntArray) -> None:
    """Values of q with the splits of :func:`set_cut_splits` (``cut`` 0 without one) and pos_gj ``position (G, p)``."""
    if block.component("q") is not None:  # otherwise a routing of the user's own
        set_values(block.q, lambda g, t: position[g, feature[t - 1]] < cut[t - 1])


def add_group_leaf_labels(
    model: pyo.ConcreteModel, topology: pyo.Block, assignment: pyo.Block, weight: FloatArray
) -> pyo.Block:
    """Add ``model.leaf_label``: one class a leaf in use; of each group the weight of that class is right.

    Needs: ``topology``, group ``assignment``. Data: ``weight (G, K)`` is w_gk.

        Σ_k c_kt = l_t        Σ_k r_gkt <= f_gt        r_gkt <= c_kt        L_t = Σ_g Σ_k w_gk(f_gt - r_gkt)
        c binary; r only where w_gk > 0

    Source: the errors L_t of Bertsimas & Dunn (2017), (9)-(12), as in :func:`add_leaf_labels`. **differs:** a group
    has one class in a leaf, so that the r of its classes share its flow: a group with rows of two classes costs the
    lighter one in the relaxation, too. Size: (K + 1 + S)|τ_L| variables and (2 + G' + S)|τ_L| rows, where S counts the
    w_gk > 0 and G' the groups that have one.
    """
    leaf = topology.tree.leaf
    G, K = weight.shape
    classes = [np.flatnonzero(w > 0).tolist() for w in weight]
    block = model.leaf_label = pyo.Block(doc="classes and errors of the leaves")
    block.c = pyo.Var(range(K), leaf, domain=pyo.Binary, doc="c_kt = 1: leaf t predicts class k")
    block.r = pyo.Var(
        [(g, k, t) for g in range(G) for k in classes[g] for t in leaf],
        domain=pyo.UnitInterval,
        doc="r_gkt = 1: group g is in leaf t, which predicts class k",
    )
    block.L = pyo.Var(leaf, domain=pyo.NonNegativeReals, doc="errors in leaf t")
    f = assignment.f
    describe(block.c, node=1)
    describe(block.r, sample=0, node=2, groups=groups_in(f))
    describe(block.L, node=0)

    add_one_class(block, leaf, assignment, K)

    @block.Constraint([g for g in range(G) if classes[g]], leaf, doc="Σ_k r_gkt <= f_gt")
    def right_in_leaf(b: pyo.Block, g: int, t: int) -> object:
        some = [b.r[g, k, t] for k in classes[g]]
        return (None, linear([1.0] * len(some) + [-1.0], [*some, f[g, t]]), 0.0)

    @block.Constraint(list(block.r), doc="r_gkt <= c_kt")
    def right_by_class(b: pyo.Block, g: int, k: int, t: int) -> object:
        return (None, linear([1.0, -1.0], [b.r[g, k, t], b.c[k, t]]), 0.0)

    heavy = [(g, float(w.sum())) for g, w in enumerate(weight) if classes[g]]
    right = [(g, k, -float(weight[g, k])) for g in range(G) for k in classes[g]]
    coefs = [w for _, w in heavy] + [w for _, _, w in right] + [-1.0]

    @block.Constraint(leaf, doc="L_t = Σ_g Σ_k w_gk(f_gt - r_gkt)")
    def errors(b: pyo.Block, t: int) -> object:
        variables = [f[g, t] for g, _ in heavy] + [b.r[g, k, t] for g, k, _ in right] + [b.L[t]]
        return (0.0, linear(coefs, variables), 0.0)

    return block


def group_leaf_labels_size(tree: Topology, groups: int, K: int, classes: int) -> BlockSize:
    """What :func:`add_group_leaf_labels` adds; ``classes`` counts the pairs of a group and a class that it has."""
    L = len(tree.leaf)
    errors = rows(L, groups + classes + 1)
    right = rows(groups * L, 1, classes * L) + rows(classes * L, 2)
    return continuous((classes + 1) * L) + binary(K * L) + rows(L, K + 1) + right + errors


def add_subtree_bounds(
    model: pyo.ConcreteModel,
    topology: pyo.Block,
    splits: pyo.Block,
    labels: pyo.Block,
    bounds: RootBounds,
    error: float,
    alpha: float,
) -> pyo.Block:
    """Add ``model.subtree_bounds``: each side of the root, and the whole tree, cost at least what is known of them.

    Needs: ``topology``, cut ``splits``, ``leaf_label`` with L_t. Data: ``bounds`` holds numbers A_jv and C_jv such
    that no tree whose root splits on feature j at cut v costs less than A_jv in its left and C_jv in its right
    subtree, C_0 that no tree without a split costs less than, and B for all trees; ``error`` is the cost of an error,
    ``alpha`` α.

        error·Σ_{t left of 1} L_t + α Σ_{m left of 1} d_m   >= Σ_j Σ_v (A_jv - A_j,v-1) u_1jv
        error·Σ_{t right of 1} L_t + α Σ_{m right of 1} d_m >= C_0 (1 - d_1) + Σ_j Σ_v (C_jv - C_j,v-1) u_1jv
        total = error·Σ_t L_t + α Σ_m d_m,          total >= B                       with A_j0 = C_j0 = 0

    *Valid at every tree of the model.* Where the root splits on feature j at cut v, u_1j1 to u_1jv are 1 and all other
    u_1 are 0: the sums telescope to A_jv and C_jv, and the left sides are what the two subtrees cost. Where it does not split,
    no node does (d_t <= d_p(t)): all u are 0, the right sides are 0 and C_0, and all rows are in one leaf on the right. So they
    hold with any rows of your own, too, but not without those of the model: N_min is in the numbers. Numbers above the cost of a known tree are lowered
    to it: a smaller bound is one as well, and more is of no use. ``total`` is for the objective: engines know its
    bound before they solve anything.

    Source: ours; the numbers are those of :mod:`~octsvm.formulations.bounds.subtrees`, found outside the engine.
    **differs:** not in the papers. Size: 1 variable and 3 rows (1 row with D = 0); beside L and d a nonzero for each cut
    where the bound changes.
    """
    tree = topology.tree
    block = model.subtree_bounds = pyo.Block(doc="least costs of the tree and the two sides of the root")
    most = bounds.found.upper
    block.total = pyo.Var(bounds=(min(bounds.found.sized, most), None), doc="errors and complexity")
    describe(block.total)

    def least_cost(name: str, leaves: Any, nodes: Any, terms: list[tuple[float, Any]], sides: Any) -> None:
        """One row: errors in ``leaves``, splits of ``nodes`` and ``terms`` between ``sides``."""
        cost = [(error, labels.L[t]) for t in leaves] + [(alpha, splits.d[t]) for t in nodes if alpha]
        coefs, variables = zip(*cost, *terms, strict=True)
        row = (sides[0], linear(list(coefs), list(variables)), sides[1])
        block.add_component(name, pyo.Constraint(rule=row, doc=f"least cost: {name}"))

    least_cost("whole", tree.leaf, tree.branch, [(-1.0, block.total)], (0.0, 0.0))
    for name, child, table in (("left", 2, bounds.left), ("right", 3, bounds.right)):
        if not tree.depth:
            break
        low = bounds.unsplit if child == 3 and bounds.unsplit else 0.0
        terms = [(low, splits.d[1])] if low else []
        for j, values in enumerate(table):
            steps = np.diff(np.minimum(values, most), prepend=0.0)
            for v in np.flatnonzero(steps).tolist():
                terms.append((-float(steps[v]), at_or_above(splits, 1, j, v + 1)))
        inner = [t for t in tree.branch if t > 1 and t >> (t.bit_length() - 2) == child]
        least_cost(name, tree.leaves_below(child), inner, terms, (low, None))
    return block


def subtree_bounds_size(tree: Topology, priced: bool, steps: int, unsplit: bool) -> BlockSize:
    """What :func:`add_subtree_bounds` adds: ``priced`` with α > 0, ``unsplit`` with C_0 > 0; the bounds change at ``steps`` cuts."""
    B, L = len(tree.branch), len(tree.leaf)
    whole = continuous(1) + rows(1, L + priced * B + 1)
    return whole + rows(2, L // 2, priced * (B - 1) + steps + unsplit) if B else whole
