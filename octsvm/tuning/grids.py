"""Costs that keep their meaning when rows, columns or units change, the grids of them that are tried, and the usual ones.

Costs of the models are absolute: c1 = 1 is much on a table of 1,000 rows and little on one of 10. Relative costs are

* ``c1`` in units of the formulation's :meth:`~octsvm.formulations.base.Formulation.unit_cost` on the table,
* ``c2`` in units of c1: what a label given up costs, as a multiple of a unit of error,
* ``c3`` in units of c1 times the rows' total weight: how much error a split has to save, as a share of the rows,
* ``alpha`` in units of the rows' total weight: the share of the rows that a split has to set right.

``gamma`` of a kernel is a relative one too, in units of gamma "scale" of the table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InvalidParameter
from ..formulations.base import Data, Formulation
from ..formulations.checks import is_number
from ..formulations.kernels import scale_gamma
from ..parameter_grid import combinations

COSTS = ("c1", "c2", "c3", "alpha")
Setting = dict[str, Any]

# Accuracy that the prior takes off for each level of depth, and for a factor of ten (one at most) in a cost, away from the
# usual one. A kernel loses nothing: where rows are few for their columns, no lead over the folds could make up for it.
PER_LEVEL = 0.02
PER_TENFOLD = {"c1": 0.1, "c2": 0.01, "alpha": 0.1}


def settings_of(form: Formulation, grid: Any, kernels: bool = False) -> list[Setting]:
    """All settings of a grid: that of the formulation where ``grid`` is None, its ``kernels`` last.

    Raises
    ------
    InvalidParameter
        No grid and none known, or it is none that scikit-learn's ParameterGrid reads.
    """
    if grid is None:
        if form.tried is None:
            raise InvalidParameter(
                f"There is no grid for {form.name!r} yet; give one, e.g. grid={{'depth': [1, 2]}}, with its parameters."
            )
        grid = form.tried.grid + (form.tried.kernels if kernels else ())
    found = combinations("grid", grid)
    if found == [{}]:
        raise InvalidParameter("grid is empty. Give at least one parameter with its values.")
    return found


def prior(form: Formulation, settings: Sequence[Setting]) -> list[float]:
    """For each setting how much accuracy it is expected to lose against the usual one: 0, or less."""
    usual = form.tried.usual if form.tried else {}
    return [
        -sum(_loss(name, value, usual[name]) for name, value in s.items() if name in usual) for s in settings
    ]


def has_kernel(kernel: Any) -> bool:
    """Whether the value of a setting, or of a frame of settings, is a kernel that is none of hyperplanes in the features."""
    return (isinstance(kernel, str) and kernel != "linear") or callable(kernel)


def _loss(name: str, value: float, usual: float) -> float:
    if name == "depth":
        return PER_LEVEL * abs(value - usual)
    if name not in PER_TENFOLD:
        return 0.0
    return PER_TENFOLD[name] * (min(1.0, abs(math.log10(value / usual))) if value > 0 else 1.0)


def absolute(
    form: Formulation, settings: Sequence[Setting], fixed: Mapping[str, Any], data: Data
) -> list[Setting]:
    """The settings with their relative costs and gammas turned into those of the model on a table."""
    units: dict[str, float] = {}
    total = float(data.weights.sum())
    found = []
    for setting in settings:
        setting = dict(setting)
        if is_number(setting.get("gamma")):
            setting["gamma"] = float(setting["gamma"]) * scale_gamma(data)
        others = {**fixed, **{k: v for k, v in setting.items() if k not in COSTS}}
        key = repr(sorted(others.items()))
        if key not in units:
            units[key] = form.unit_cost(data, form.Params.make(form.name, **others))
        base = setting["c1"] * units[key] if "c1" in setting else fixed.get("c1", 1.0)
        scale = {"c1": units[key], "c2": base, "c3": base * total, "alpha": total}
        found.append({k: float(v * scale[k]) if k in COSTS else v for k, v in setting.items()})
    return found
