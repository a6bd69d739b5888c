"""Block ``margin``: what the norm of the normal vectors costs.

Where the norm is Euclidean, the block carries the quadratic form as bare Pyomo can use it, and marks it:
``block.second_order_cones`` and ``block.squared_norms`` list what a solver without quadratics needs rewritten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pyomo.environ as pyo

from ..base import FloatArray, set_values
from .roles import describe
from .rows import linear
from .sizes import BlockSize, continuous, rows


@dataclass(frozen=True)
class SecondOrderCone:
    """‖vector‖₂ <= factor·rhs with rhs >= 0, standing in the model as Σ v² <= factor²·rhs² (``row``)."""

    vector: tuple[Any, ...]
    rhs: Any
    factor: float
    row: Any


@dataclass(frozen=True)
class SquaredNorm:
    """½‖vector‖₂², standing in the objective as the named expression ``expression``."""

    vector: tuple[Any, ...]
    expression: Any


def _add_absolute_values(block: pyo.Block, nodes: range, omega: Any, J: range) -> None:
    block.abs_omega = pyo.Var(nodes, J, domain=pyo.NonNegativeReals, doc="at least |ω_tj|")
    describe(block.abs_omega, node=0, feature=1)
    block.abs_above = pyo.Constraint(
        nodes, J, rule=lambda b, t, j: omega[t, j] <= b.abs_omega[t, j], doc="ω_tj <= |ω_tj|"
    )
    block.abs_below = pyo.Constraint(
        nodes, J, rule=lambda b, t, j: -b.abs_omega[t, j] <= omega[t, j], doc="-|ω_tj| <= ω_tj"
    )


def add_margin(
    model: pyo.ConcreteModel,
    nodes: range,
    hyperplanes: pyo.Block,
    norm: Literal["l2", "l1"] = "l2",
    delta_bound: float | None = None,
    pruning: pyo.Block | None = None,
    weight_bound: float | None = None,
) -> pyo.Block:
    """Add ``model.margin``: δ, the largest half norm, whose minimisation widens the narrowest margin 2/‖ω_t‖.

    Needs: ``hyperplanes``; with ``pruning`` and ``weight_bound`` W also (4) as printed. Data: ``nodes``; ``norm``
    "l2" or "l1"; ``delta_bound`` >= δ.

        l2: ω_t'ω_t <= 4δ² (δ >= 0)            l1: Σ_j u_tj <= 2δ, -u_tj <= ω_tj <= u_tj
        (4): ω_t'ω_t <= W² d_t²                 (4): Σ_j u_tj <= W d_t

    Source: Blanco, Japón, Puerto (1), (4). **differs:** the norm is squared on both sides, a second-order cone that
    quadratic solvers recognise; the l1 norm is an option that makes the model linear.
    Size: 1 variable and |t| rows (l1: p|t| variables and (2p + 1)|t| rows).
    """
    J = range(len(hyperplanes.center))
    omega = hyperplanes.omega
    block = model.margin = pyo.Block(doc="½‖ω_t‖ <= δ")
    block.delta = pyo.Var(bounds=(0, delta_bound), doc="largest half norm")
    describe(block.delta)
    if norm == "l1":
        _add_absolute_values(block, nodes, omega, J)
    cones: list[SecondOrderCone] = []

    def add_norms(name: str, rhs: Any, factor: float, doc: str) -> None:
        """‖ω_t‖ <= factor·rhs_t at every node."""

        def row(b: pyo.Block, t: int) -> object:
            if norm == "l2":
                return sum(omega[t, j] ** 2 for j in J) <= factor**2 * rhs[t] ** 2
            sizes = [block.abs_omega[t, j] for j in J]
            return (None, linear([*[1.0] * len(J), -factor], [*sizes, rhs[t]]), 0.0)

        rows = pyo.Constraint(nodes, rule=row, doc=doc)
        block.add_component(name, rows)
        if norm == "l2":
            vectors = {t: tuple(omega[t, j] for j in J) for t in nodes}
            cones.extend(SecondOrderCone(vectors[t], rhs[t], factor, rows[t]) for t in nodes)

    add_norms("cone", dict.fromkeys(nodes, block.delta), 2.0, "½‖ω_t‖ <= δ (1)")
    if pruning is not None and weight_bound is not None:
        add_norms("weights_need_split", pruning.d, float(weight_bound), "‖ω_t‖ <= M d_t (4)")
    block.second_order_cones = tuple(cones)
    block.squared_norms = ()
    return block


def margin_size(p: int, nodes: int, norm: str, pruning: bool = False) -> BlockSize:
    """What :func:`add_margin` adds at so many ``nodes``; ``pruning``: with (4) as printed."""
    norms = rows((1 + pruning) * nodes, p + 1)
    if norm == "l2":
        return continuous(1) + norms + BlockSize(cones=norms.rows)
    return continuous(1 + p * nodes) + norms + rows(2 * p * nodes, 2)


def add_squared_margin(
    model: pyo.ConcreteModel, node: int, hyperplanes: pyo.Block, norm: Literal["l2", "l1"] = "l2"
) -> pyo.Block:
    """Add ``model.margin`` with ``margin.cost``: ½‖ω‖₂² of one hyperplane (or ‖ω‖₁).

    Needs: ``hyperplanes``. Data: ``node`` is the hyperplane's index; ``norm`` "l2" or "l1".

    Source: the objective of RE-SVM. **differs:** none for l2; l1 makes it linear. Size: l2 nothing; l1 p variables
    and 2p rows.
    """
    J = range(len(hyperplanes.center))
    omega = hyperplanes.omega
    block = model.margin = pyo.Block(doc="cost of a narrow margin")
    block.second_order_cones = ()
    if norm == "l2":
        block.cost = pyo.Expression(expr=0.5 * sum(omega[node, j] ** 2 for j in J), doc="½‖ω‖₂²")
        block.squared_norms = (SquaredNorm(tuple(omega[node, j] for j in J), block.cost),)
    else:
        _add_absolute_values(block, range(node, node + 1), omega, J)
        block.cost = pyo.Expression(
            expr=linear([1.0] * len(J), [block.abs_omega[node, j] for j in J]), doc="‖ω‖₁"
        )
        block.squared_norms = ()
    return block


def squared_margin_size(p: int, norm: str) -> BlockSize:
    """What :func:`add_squared_margin` adds."""
    return BlockSize(squares=1) if norm == "l2" else continuous(p) + rows(2 * p, 2)


def set_margin(block: pyo.Block, omega: FloatArray, delta: float = 0.0) -> None:
    """Values of |ω| (T, p) and δ, where the block has them."""
    if hasattr(block, "abs_omega"):
        set_values(block.abs_omega, lambda t, j: abs(omega[t - 1, j]))
    if hasattr(block, "delta"):
        block.delta.set_value(delta, skip_validation=True)
