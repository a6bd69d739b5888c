"""Block ``leaf_label``: the class that each leaf predicts, and the errors it makes."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from ..base import BoolArray, Data, FloatArray, IntArray, set_values
from ..errors import TreeNotAdmitted
from .roles import describe, groups_in
from .rows import linear
from .sizes import BlockSize, binary, continuous, rows
from .topology import Topology


def add_leaf_labels(
    model: pyo.ConcreteModel,
    topology: pyo.Block,
    assignment: pyo.Block,
    y: IntArray,
    K: int,
    weights: FloatArray,
) -> pyo.Block:
    """Add ``model.leaf_label``: one class a leaf in use; a row is right where its leaf predicts its class.

    Needs: ``topology``, leaf or level ``assignment`` (without l_t, every leaf has a class). Data: ``y (n,)`` class
    indices, ``K`` classes, ``weights (n,)``.

        Σ_k c_kt = l_t        r_it <= z_it,  r_it <= c_{y_i},t        L_t = Σ_i w_i(z_it - r_it)        c binary

    Source: the errors L_t of Bertsimas & Dunn (2017), (9)-(12). **differs:** counted row by row instead of through
    N_kt and a big-M of n: minimising L_t drives r_it to z_it·c_{y_i},t, and the relaxation is tighter.
    Size: (n + K + 1)|τ_L| variables, (2n + 2)|τ_L| rows.
    """
    leaf, I = topology.tree.leaf, range(len(y))
    block = model.leaf_label = pyo.Block(doc="classes and errors of the leaves")
    block.c = pyo.Var(range(K), leaf, domain=pyo.Binary, doc="c_kt = 1: leaf t predicts class k")
    block.r = pyo.Var(I, leaf, bounds=(0, 1), doc="r_it = 1: row i is in leaf t and predicted right")
    block.L = pyo.Var(leaf, domain=pyo.NonNegativeReals, doc="errors in leaf t")
    describe(block.c, node=1)
    describe(block.r, sample=0, node=1)
    describe(block.L, node=0)
    add_one_class(block, leaf, assignment, K)
    z = assignment.z
    block.right_in_leaf = pyo.Constraint(
        I, leaf, rule=lambda b, i, t: b.r[i, t] <= z[i, t], doc="r_it <= z_it"
    )
    block.right_by_class = pyo.Constraint(
        I, leaf, rule=lambda b, i, t: b.r[i, t] <= b.c[int(y[i]), t], doc="r_it <= c_{y_i},t"
    )
    w = weights.tolist()

    @block.Constraint(leaf, doc="L_t = Σ_i w_i(z_it - r_it)")
    def errors(b: pyo.Block, t: int) -> object:
        variables = [z[i, t] for i in I] + [b.r[i, t] for i in I] + [b.L[t]]
        return (0.0, linear([*w, *(-v for v in w), -1.0], variables), 0.0)

    return block


def leaf_labels_size(tree: Topology, n: int, K: int, levels: bool = False) -> BlockSize:
    """What :func:`add_leaf_labels` adds for ``n`` samples of ``K`` classes; ``levels`` with a level assignment."""
    L = len(tree.leaf)
    fixed = n if levels and not tree.depth else 0  # z of the root
    variables = continuous((n + 1) * L) + binary(K * L)
    return variables + rows(L, K + (not levels)) + rows(2 * n * L, 2, -fixed) + rows(L, 2 * n + 1, -fixed)


def add_counted_leaf_labels(
    model: pyo.ConcreteModel,
    topology: pyo.Block,
    assignment: pyo.Block,
    y: IntArray,
    K: int,
    weights: FloatArray,
) -> pyo.Block:
    """Add ``model.leaf_label`` as printed, on the class counts N_kt.

    Needs and data: as :func:`add_leaf_labels`.

        N_kt = Σ_{i: y_i=k} w_i z_it,  N_t = Σ_i w_i z_it,  Σ_k c_kt = l_t
        L_t >= N_t - N_kt - n(1 - c_kt),   L_t <= N_t - N_kt + n c_kt,   L_t >= 0

    Source: Bertsimas & Dunn (2017), (9)-(12). **differs:** with weights, n is their sum. The upper row admits the
    majority class of a leaf only (of equals, any).
    Size: (2K + 2)|τ_L| variables, (3K + 2)|τ_L| rows.
    """
    leaf, I = topology.tree.leaf, range(len(y))
    total = float(weights.sum())
    w = weights.tolist()
    block = model.leaf_label = pyo.Block(doc="classes, counts and errors of the leaves")
    block.c = pyo.Var(range(K), leaf, domain=pyo.Binary, doc="c_kt = 1: leaf t predicts class k")
    block.N = pyo.Var(range(K), leaf, bounds=(0, total), doc="weight of class k in leaf t")
    block.N_all = pyo.Var(leaf, bounds=(0, total), doc="weight of all rows in leaf t")
    block.L = pyo.Var(leaf, domain=pyo.NonNegativeReals, doc="errors in leaf t")
    describe(block.c, block.N, node=1)
    describe(block.N_all, block.L, node=0)
    add_one_class(block, leaf, assignment, K)

    @block.Constraint(range(K), leaf, doc="N_kt = Σ_{i: y_i=k} w_i z_it (B&D 9)")
    def class_count(b: pyo.Block, k: int, t: int) -> object:
        rows = [i for i in I if y[i] == k]
        return (
            0.0,
            linear([*(w[i] for i in rows), -1.0], [*(assignment.z[i, t] for i in rows), b.N[k, t]]),
            0.0,
        )

    @block.Constraint(leaf, doc="N_t = Σ_i w_i z_it (B&D 10)")
    def leaf_count(b: pyo.Block, t: int) -> object:
        return (0.0, linear([*w, -1.0], [*(assignment.z[i, t] for i in I), b.N_all[t]]), 0.0)

    block.errors_above = pyo.Constraint(
        range(K),
        leaf,
        rule=lambda b, k, t: b.L[t] >= b.N_all[t] - b.N[k, t] - total * (1 - b.c[k, t]),
        doc="L_t >= N_t - N_kt - n(1 - c_kt) (B&D 11)",
    )
    block.errors_below = pyo.Constraint(
        range(K),
        leaf,
        rule=lambda b, k, t: b.L[t] <= b.N_all[t] - b.N[k, t] + total * b.c[k, t],
        doc="L_t <= N_t - N_kt + n c_kt (B&D 12)",
    )
    return block


def counted_leaf_labels_size(tree: Topology, n: int, K: int) -> BlockSize:
    """What :func:`add_counted_leaf_labels` adds for ``n`` samples of ``K`` classes."""
    L = len(tree.leaf)
    variables = continuous((K + 2) * L) + binary(K * L)
    counts = rows(K * L, 1, n * L) + rows(L, n + 1)  # each sample stands in the row of its class
    return variables + rows(L, K + 1) + counts + rows(2 * K * L, 4)


def set_leaf_labels(block: pyo.Block, path: IntArray, label: IntArray, data: Data) -> None:
    """Values of any block ``leaf_label`` where samples take their ``path (n, D + 1)`` and leaves say ``label (2^D,)``.

    Raises
    ------
    TreeNotAdmitted
        If a leaf says another class than the majority of its samples, and the block counts classes.
    """
    first = len(label)
    leaf, w = path[:, -1] - first, data.weights
    used, right = np.bincount(leaf, minlength=first) > 0, data.y == label[leaf]
    total, wrong = (np.bincount(leaf, v, minlength=first) for v in (w, np.where(right, 0.0, w)))
    labelled = used | getattr(block, "all_leaves", False)
    set_values(block.c, lambda k, t: labelled[t - first] and label[t - first] == k)
    set_values(block.L, lambda t: wrong[t - first])
    if hasattr(block, "N"):
        N = np.array(
            [np.bincount(leaf, np.where(data.y == k, w, 0.0), minlength=first) for k in range(data.K)]
        )
        _require_majority(N, label, used, data)
        set_values(block.N, lambda k, t: N[k, t - first])
        set_values(block.N_all, lambda t: total[t - first])
    elif block.r.dim() == 2:
        set_values(block.r, lambda i, t: right[i] and leaf[i] == t - first)
    else:
        groups = groups_in(block.r) or ()
        set_values(block.r, lambda g, k, t: leaf[groups[g][0]] == t - first and label[t - first] == k)


def _require_majority(N: FloatArray, label: IntArray, used: BoolArray, data: Data) -> None:
    for t in np.flatnonzero(used):
        if N[label[t], t] < N[:, t].max():
            raise TreeNotAdmitted(
                f"Leaf {t + len(label)} of the tree predicts {data.classes[label[t]]!r}, which is not the majority of its "
                "training rows, and row (12) of variant='bd' admits majority classes only. The default admits any."
            )


def add_one_class(block: pyo.Block, leaf: range, assignment: pyo.Block, K: int) -> None:
    """One class for each leaf in use; for every leaf where the assignment has no l_t."""
    block.all_leaves = assignment.component("l") is None

    @block.Constraint(leaf, doc="Σ_k c_kt = l_t, or 1 where no l_t says which leaves are in use")
    def one_class(b: pyo.Block, t: int) -> object:
        if b.all_leaves:
            return (1.0, linear([1.0] * K, [b.c[k, t] for k in range(K)]), 1.0)
        return (0.0, linear([1.0] * K + [-1.0], [b.c[k, t] for k in range(K)] + [assignment.l[t]]), 0.0)
