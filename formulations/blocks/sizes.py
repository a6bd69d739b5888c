"""How much a block adds to a model, without building it: next to each ``add_x`` stands its ``x_size``.

Counted is what a solver is handed: variables that are fixed do not count, nor do zeros among the coefficients. Nodes are
counted on a :class:`~.topology.Topology`; ``entries`` are the nonzeros of the table that a block's rows multiply.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

import pyomo.environ as pyo
from pyomo.repn import generate_standard_repn


class Shape(NamedTuple):
    """A table of which only the shape is known: n samples, p features, K classes."""

    n: int
    p: int
    K: int


@dataclass(frozen=True)
class BlockSize:
    """Counts of a block, or of a sum of blocks.

    Attributes
    ----------
    variables, binaries : int
        All variables, and how many of them are binary.
    rows, cones : int
        All rows, and how many of them are second-order cones.
    nonzeros : int
        Variables that stand in the rows, each counted once a row, also where it is squared.
    squares : int
        Squared norms in the objective.
    """

    variables: int = 0
    binaries: int = 0
    rows: int = 0
    cones: int = 0
    nonzeros: int = 0
    squares: int = 0

    def __add__(self, other: BlockSize) -> BlockSize:
        return BlockSize(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def continuous(count: int) -> BlockSize:
    """``count`` continuous variables."""
    return BlockSize(variables=count)


def binary(count: int) -> BlockSize:
    """``count`` binary variables."""
    return BlockSize(variables=count, binaries=count)


def rows(count: int, each: int = 0, more: int = 0) -> BlockSize:
    """``count`` rows with ``each`` nonzeros, and ``more`` nonzeros in all of them together."""
    return BlockSize(rows=count, nonzeros=count * each + more)


def counted(model: Any) -> BlockSize:
    """The size of a model or block that was built."""
    marked = [b.squared_norms for b in model.block_data_objects() if hasattr(b, "squared_norms")]
    size = BlockSize(squares=sum(map(len, marked)))
    for var in model.component_data_objects(pyo.Var):
        if not var.fixed:
            size += binary(1) if var.is_binary() else continuous(1)
    for row in model.component_data_objects(pyo.Constraint, active=True):
        form = generate_standard_repn(row.body, quadratic=True)
        linear = zip(form.linear_vars, form.linear_coefs, strict=True)
        inside = {id(v) for v, c in linear if c != 0} | {id(v) for pair in form.quadratic_vars for v in pair}
        size += BlockSize(rows=1, cones=int(bool(form.quadratic_vars)), nonzeros=len(inside))
    return size
