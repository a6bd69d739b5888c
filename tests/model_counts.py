"""The size of a model, or of a block in it, counted on what was built."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from pyomo.repn import generate_standard_repn


def counted(model: Any) -> dict[str, int]:
    """The counts of a model, taken from what its rows and variables are once fixed variables are numbers."""
    free = [v for v in model.component_data_objects(pyo.Var) if not v.fixed]
    rows = nonzeros = quadratic = 0
    for row in model.component_data_objects(pyo.Constraint, active=True):
        form = generate_standard_repn(row.body, quadratic=True)
        inside = {id(v) for v, c in zip(form.linear_vars, form.linear_coefs, strict=True) if c != 0}
        inside |= {id(v) for pair in form.quadratic_vars for v in pair}
        rows, nonzeros, quadratic = rows + 1, nonzeros + len(inside), quadratic + bool(form.quadratic_vars)
    binaries = sum(v.is_binary() for v in free)
    return {
        "variables": len(free),
        "binaries": binaries,
        "rows": rows,
        "cones": quadratic,
        "nonzeros": nonzeros,
    }
