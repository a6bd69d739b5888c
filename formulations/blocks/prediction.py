"""Block ``prediction``: the class that the tree predicts for a sample, as variables for rows of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyomo.environ as pyo

from ..errors import InvalidParameter
from .roles import describe
from .rows import forget_rules, linear, own_block, part_of
from .sizes import BlockSize, binary, continuous, rows
from .topology import Topology

# How far above 0 a score of the second class is: at 0 itself the tree's prediction would hang on a rounding error, and terms of
# one's own pull scores there. Ten times the coarsest tolerance of an engine.
ABOVE = 1e-5


def add_leaf_prediction(
    model: pyo.ConcreteModel,
    assignment: pyo.Block,
    leaf_label: pyo.Block,
    samples: Iterable[int] | None = None,
) -> pyo.Block:
    """Add ``model.prediction``: p_ik = 1 where the leaf of sample i predicts class k (OCT, OCT-H, MOCTSVM).

    Needs: ``assignment`` to leaves or levels, ``leaf_label``. Data: ``samples``, those to predict, from 0; all by default.

        Σ_k p_ik = 1        p_ik >= z_it + c_kt - 1        0 <= p <= 1

    Source: ours. **differs:** not in the papers. With z and c whole, p is: one row raises the class of the sample's leaf to
    1, and the sum leaves the others 0. Other blocks than these, and a second such block, are refused (InvalidParameter). Size: nK
    variables, n(K|τ_L| + 1) rows, for n samples.
    """
    z, c = part_of(assignment, "z", "assignment"), part_of(leaf_label, "c", "leaf label")
    classes, leaf = range(1 + max(k for k, _ in c)), sorted({t for _, t in c})
    I = sorted({i for i, _ in z}) if samples is None else list(samples)
    block = own_block(model, "prediction", "the class that each sample's leaf predicts")
    block.p = pyo.Var(
        I, classes, domain=pyo.UnitInterval, doc="p_ik = 1: sample i is predicted as of class k"
    )
    describe(block.p, sample=0)
    _add_one_class(block, I, classes)

    @block.Constraint(I, classes, leaf, doc="p_ik >= z_it + c_kt - 1")
    def as_its_leaf(b: pyo.Block, i: int, k: int, t: int) -> object:
        return (None, linear([1.0, 1.0, -1.0], [z[i, t], c[k, t], b.p[i, k]]), 1.0)

    forget_rules(block)
    return block


def leaf_prediction_size(tree: Topology, n: int, K: int) -> BlockSize:
    """What :func:`add_leaf_prediction` adds for ``n`` samples."""
    return continuous(n * K) + rows(n, K) + rows(n * K * len(tree.leaf), 3)


def add_side_prediction(
    model: pyo.ConcreteModel,
    topology: pyo.Block,
    hyperplanes: pyo.Block,
    assignment: pyo.Block | None = None,
    pruning: pyo.Block | None = None,
    samples: Iterable[int] | None = None,
    mu: float = 1e-3,
) -> pyo.Block:
    """Add ``model.prediction``: p_i1 = 1 where sample i is predicted as of the second class, p_i0 as of the first (RE-SVM, OCTSVM).

    Needs: ``topology``, ``hyperplanes``; of a tree with branch nodes also level ``assignment`` and ``pruning``. Data:
    ``samples``, those to predict, from 0, all by default; ``mu``, how far below 0 a score of the first class is.

        p_i0 + p_i1 = 1,  p binary
        s_it >= ε - (M_i + ε)(1 - p_i1 + 2 - z_it - d_t),   s_it <= -μ + (M_i + μ)(p_i1 + 2 - z_it - d_t)      t of the last level
        p_i1 >= z_it + d_p(t) - d_t - 1 for right children t,   p_i0 >= z_it + d_p(t) - d_t - 1 for left ones
        s_i1 >= ε - (M_i + ε)(1 - p_i1 + d_1),   s_i1 <= -μ + (M_i + μ)(p_i1 + d_1)      where the root does not split

    The class is the side taken at the last node that splits; M_i is the larger bound that s_i1 carries. A tree of one node has the last
    rows alone, without d. Source: ours. **differs:** not in the papers; a tree that decides a sample by a score between -μ and
    ε = 1e-5 is cut off. Size: 2n binaries, n(2 + 1) rows with one node, else n(2|τ_L| + T + 2), for n samples.

    Raises
    ------
    InvalidParameter
        The tree has branch nodes, and a block that says where samples go or which nodes split was not given; a block is another
        than the one that is needed; or the model has predictions already.
    """
    tree, s = topology.tree, part_of(hyperplanes, "s", "split")
    given = {"assignment": assignment, "pruning": pruning}
    lacking = [name for name, part in given.items() if part is None and tree.depth > 0]
    if lacking:
        raise InvalidParameter(
            f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} missing. This tree has {len(tree.nodes)} nodes, and "
            "which of them decides on a sample stands in both blocks: "
            "add_side_prediction(model, model.topology, model.split, model.assignment, model.pruning)."
        )
    I = sorted({i for i, _ in s}) if samples is None else list(samples)
    block = own_block(model, "prediction", "the class of the side that each sample takes last")
    block.p = pyo.Var(I, range(2), domain=pyo.Binary, doc="p_ik = 1: sample i is predicted as of class k")
    describe(block.p, sample=0)
    _add_one_class(block, I, range(2))
    above = block.score_above = pyo.Constraint(
        pyo.Any, doc="s_it >= ε - (M_i + ε)(1 - p_i1) where node t decides"
    )
    below = block.score_below = pyo.Constraint(pyo.Any, doc="s_it <= -μ + (M_i + μ)p_i1 where node t decides")

    def decided_at(i: int, t: int, ones: Sequence[pyo.Var] = (), zeros: Sequence[pyo.Var] = ()) -> None:
        """The sign of s_it is the class where all ``ones`` are 1 and all ``zeros`` are 0."""
        largest = max(-s[i, t].lb, s[i, t].ub)  # its bounds may have been narrowed
        variables, by = [s[i, t], block.p[i, 1], *ones, *zeros], [1.0] * len(ones) + [-1.0] * len(zeros)
        M = largest + ABOVE
        above[i, t] = (ABOVE - M * (1 + len(ones)), linear([1.0, -M, *(-M * v for v in by)], variables), None)
        M = largest + mu
        below[i, t] = (None, linear([1.0, -M, *(M * v for v in by)], variables), M * len(ones) - mu)

    if assignment is None or pruning is None or tree.depth == 0:  # one node
        for i in I:
            decided_at(i, 1)
        forget_rules(block)
        return block
    z, d = part_of(assignment, "z", "assignment"), part_of(pruning, "d", "pruning")
    for i in I:
        decided_at(i, 1, zeros=[d[1]])
        for t in tree.levels[-1]:
            decided_at(i, t, ones=[z[i, t], d[t]])

    @block.Constraint(I, tree.nodes[1:], doc="p_ik >= z_it + d_p(t) - d_t - 1, k the side of t")
    def decided_above(b: pyo.Block, i: int, t: int) -> object:
        return (None, linear([1.0, 1.0, -1.0, -1.0], [z[i, t], d[t // 2], d[t], b.p[i, t % 2]]), 1.0)

    forget_rules(block)
    return block


def side_prediction_size(tree: Topology, n: int) -> BlockSize:
    """What :func:`add_side_prediction` adds for ``n`` samples; with branch nodes, where there are some."""
    one = binary(2 * n) + rows(n, 2)
    if tree.depth == 0:
        return one + rows(2 * n, 2)
    return one + rows(2 * n, 3) + rows(2 * n * len(tree.leaf), 4) + rows(n * (len(tree.nodes) - 1), 4)


def _add_one_class(block: pyo.Block, samples: Iterable[int], classes: range) -> None:
    @block.Constraint(samples, doc="Σ_k p_ik = 1")
    def one_class(b: pyo.Block, i: int) -> object:
        return (1.0, linear([1.0] * len(classes), [b.p[i, k] for k in classes]), 1.0)
