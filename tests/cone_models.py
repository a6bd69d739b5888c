"""A small model with every mark that a bridge knows, and random feasible points of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
from model_values import largest_violation

from octsvm.formulations.blocks import SecondOrderCone, SquaredNorm


def everything() -> pyo.ConcreteModel:
    """A cone whose side can rise, one whose side is a binary, a squared norm, and rows that tie them."""
    m = pyo.ConcreteModel(name="everything")
    m.v = pyo.Var(range(3), bounds=(-2, 2))
    m.w = pyo.Var(range(2), bounds=(-1.5, 1.5))
    m.u = pyo.Var(bounds=(0, 10))
    m.z = pyo.Var(domain=pyo.Binary)
    m.tied = pyo.Constraint(expr=sum(m.v.values()) + m.w[0] >= 1)
    m.split = pyo.Constraint(expr=m.w[0] - m.w[1] + m.v[0] >= 1.5 * m.z)
    norms = m.norms = pyo.Block()
    norms.free = pyo.Constraint(expr=sum(v**2 for v in m.v.values()) <= 4 * m.u**2)
    norms.tight = pyo.Constraint(expr=sum(w**2 for w in m.w.values()) <= 1.44 * m.z**2)
    norms.cost = pyo.Expression(expr=0.5 * sum(w**2 for w in m.w.values()))
    norms.second_order_cones = (
        SecondOrderCone(tuple(m.v.values()), m.u, 2.0, norms.free),
        SecondOrderCone(tuple(m.w.values()), m.z, 1.2, norms.tight),
    )
    norms.squared_norms = (SquaredNorm(tuple(m.w.values()), norms.cost),)
    m.objective = pyo.Objective(expr=2 * m.u + norms.cost - 0.2 * m.z + 0.1 * m.v[1])
    return m


def points(model: pyo.ConcreteModel, count: int, rng: np.random.Generator) -> list[dict[int, float]]:
    """Values of all variables of :func:`everything`, by id, that obey its bounds and active rows."""
    found: list[dict[int, float]] = []
    while len(found) < count:
        for var in model.component_data_objects(pyo.Var):
            low, high = var.bounds
            var.set_value(int(rng.integers(2)) if var.is_binary() else float(rng.uniform(low, high)))
        if model.z.value == 0 and rng.random() < 0.5:
            model.w[0].set_value(0.0)
            model.w[1].set_value(0.0)
        if largest_violation(model) == 0:
            found.append({id(v): v.value for v in model.component_data_objects(pyo.Var)})
    return found


def column_values(program: Any, point: dict[int, float]) -> np.ndarray:
    """``point`` in the program's columns, 0 in the bridge's own."""
    return np.array([point.get(id(v), 0.0) for v in program.columns])
