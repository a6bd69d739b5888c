"""What the values of a model's variables say, by Pyomo alone."""

import pyomo.environ as pyo


def largest_violation(model: pyo.ConcreteModel) -> float:
    """Of all active rows, bounds and domains at the present values."""
    worst = 0.0
    for row in model.component_data_objects(pyo.Constraint, active=True):
        body = pyo.value(row.body)
        size = max(1.0, abs(pyo.value(row.lower) or 0.0), abs(pyo.value(row.upper) or 0.0))
        if row.has_lb():
            worst = max(worst, (pyo.value(row.lower) - body) / size)
        if row.has_ub():
            worst = max(worst, (body - pyo.value(row.upper)) / size)
    for var in model.component_data_objects(pyo.Var):
        low, high = var.bounds
        worst = max(
            worst,
            (low - var.value) if low is not None else 0.0,
            (var.value - high) if high is not None else 0.0,
        )
        if not var.is_continuous():
            worst = max(worst, abs(var.value - round(var.value)))
    return worst
