"""Block ``relabelling``: rows whose label the model gives up."""

from __future__ import annotations

import pyomo.environ as pyo

from ..base import BoolArray, set_values
from .roles import describe
from .sizes import BlockSize, binary, rows


def add_relabelling(
    model: pyo.ConcreteModel, nodes: range, n: int, assignment: pyo.Block | None = None
) -> pyo.Block:
    """Add ``model.relabelling``: ξ_it = 1 where row i counts as of the other class at node t.

    Needs: optionally a level ``assignment``, then a row is relabelled only in nodes that hold it. Data: ``n`` rows.

        ξ_it ∈ {0,1},        ξ_it <= z_it

    Source: the ξ of Blanco, Japón, Puerto (RE-SVM; OCTSVM (2), (3)). **differs:** ξ_it <= z_it is implied at any
    optimum with c2 > 0 and shrinks the search. Size: n|t| binaries, n|t| rows.
    """
    I = range(n)
    block = model.relabelling = pyo.Block(doc="rows whose label is given up")
    block.xi = pyo.Var(I, nodes, domain=pyo.Binary, doc="ξ_it = 1: row i is relabelled at node t")
    describe(block.xi, sample=0, node=1)
    if assignment is not None:
        block.only_in_node = pyo.Constraint(
            I, nodes, rule=lambda b, i, t: b.xi[i, t] <= assignment.z[i, t], doc="ξ_it <= z_it"
        )
    return block


def relabelling_size(n: int, nodes: int, placed: int | None = None) -> BlockSize:
    """What :func:`add_relabelling` adds; z is free at ``placed`` of the nodes, None without assignment."""
    xi = binary(n * nodes)
    return xi if placed is None else xi + rows(n * nodes, 1, n * placed)


def set_relabelling(block: pyo.Block, relabelled: BoolArray) -> None:
    """Values of ξ: which sample is relabelled at which node (n, T)."""
    set_values(block.xi, lambda i, t: relabelled[i, t - 1])
