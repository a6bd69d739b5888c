"""Optional blocks on top of a finished model: examples of what a user may add without touching the others."""

from __future__ import annotations

import pyomo.environ as pyo

from ..errors import InvalidParameter
from .roles import describe
from .rows import forget_rules, linear, own_block, part_of
from .sizes import BlockSize, binary, rows
from .topology import Topology


def add_feature_budget(model: pyo.ConcreteModel, splits: pyo.Block, budget: int) -> pyo.Block:
    """Add ``model.feature_budget``: the whole tree uses at most ``budget`` features.

    Needs: any ``split`` block (a_tj of OCT and OCT-H, ω_tj of the SVM models).

        -U v_j <= weight_tj <= U v_j,       Σ_j v_j <= budget,       v binary

    where U is the bound that the weight carries already. Source: ours. **differs:** not in the papers.
    Size: p binaries, 2p|t| + 1 rows.

    Raises
    ------
    InvalidParameter
        If ``budget`` is negative, ``splits`` is no split block, or the model has such a budget already.
    """
    if budget < 0:
        raise InvalidParameter(f"budget={budget!r} is negative; give the number of features allowed.")
    weight = splits.component("omega") or part_of(splits, "a", "split")
    J = sorted({j for _, j in weight})
    block = own_block(model, "feature_budget", "at most so many features in the tree")
    block.v = pyo.Var(J, domain=pyo.Binary, doc="v_j = 1: feature j may be used")
    describe(block.v, feature=0)
    keys = list(weight)
    block.used_above = pyo.Constraint(
        keys,
        rule=lambda b, t, j: (None, linear([1.0, -weight[t, j].ub], [weight[t, j], b.v[j]]), 0.0),
        doc="weight_tj <= U v_j",
    )
    block.used_below = pyo.Constraint(
        keys,
        rule=lambda b, t, j: (0.0, linear([1.0, -weight[t, j].lb], [weight[t, j], b.v[j]]), None),
        doc="-U v_j <= weight_tj",
    )
    block.at_most = pyo.Constraint(
        expr=linear([1.0] * len(J), [block.v[j] for j in J]) <= budget, doc="Σ_j v_j <= budget"
    )
    forget_rules(block)
    return block


def feature_budget_size(p: int, weights: int) -> BlockSize:
    """What :func:`add_feature_budget` adds for ``p`` features and so many ``weights`` in the tree."""
    return binary(p) + rows(2 * weights, 2) + rows(1, p)


def add_relabelling_cap(model: pyo.ConcreteModel, relabelling: pyo.Block, most: int) -> pyo.Block:
    """Add ``model.relabelling_cap``: at most ``most`` labels are given up on each level of the tree.

    Needs: a ``relabelling`` block.

        Σ_i Σ_{t∈u} ξ_it <= most for every level u

    Source: ours. **differs:** not in the papers. Size: one row a level.

    Raises
    ------
    InvalidParameter
        If ``most`` is negative, ``relabelling`` is no such block, or the model has such a cap already.
    """
    if most < 0:
        raise InvalidParameter(
            f"most={most!r} is negative; give the number of labels that may be given up on a level."
        )
    levels: dict[int, list] = {}
    for (_, t), xi in part_of(relabelling, "xi", "relabelling").items():
        levels.setdefault(t.bit_length() - 1, []).append(xi)
    block = own_block(model, "relabelling_cap", "at most so many relabelled rows a level")
    block.at_most = pyo.Constraint(
        sorted(levels),
        rule=lambda b, u: linear([1.0] * len(levels[u]), levels[u]) <= most,
        doc="Σ ξ_it <= most",
    )
    forget_rules(block)
    return block


def relabelling_cap_size(tree: Topology, n: int) -> BlockSize:
    """What :func:`add_relabelling_cap` adds for ``n`` samples."""
    return rows(tree.depth + 1, more=n * len(tree.nodes))
