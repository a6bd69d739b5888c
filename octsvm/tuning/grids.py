"""Costs that keep their meaning when rows, columns or units change, the grids of them that are tried, and the usual ones.

Costs of the models are absolute: c1 = 1 is much on a table of 1,000 rows and little on one of 10. Relative costs are

* ``c1`` in units of the formulation's :meth:`~octsvm.formulations.base.Formulation.unit_cost` on the table,
* ``c2`` in units of c1: what a label given up costs, as a multiple of a unit of error,
* ``c3`` in units of c1 times the rows' total weight: how much error a split has to save, as a share of the rows,
* ``alpha`` in units of the rows' total weight: the share of the rows that a split has to set right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InvalidParameter
from ..formulations.base import Data, Formulation

COSTS = ("c1", "c2", "c3", "alpha")
Setting = dict[str, Any]

_SHARES = [0.005, 0.01, 0.02, 0.05, 0.1]
_RATIOS = [1.0, 3.0, 100.0]  # the last one gives up no label

# Relative costs, as scikit-learn's ParameterGrid reads them.
GRIDS: dict[str, list[dict[str, list[Any]]]] = {
    "octsvm": [
        {"depth": [0], "c1": [1.5, 3.0, 6.0, 12.0, 32.0], "c2": _RATIOS, "c3": [0.0]},
        {"depth": [1, 2], "c1": [3.0, 8.0, 32.0], "c2": _RATIOS, "c3": [0.01, 0.05]},
    ],
    "re_svm": [{"c1": [3.0, 10.0, 30.0, 100.0, 300.0], "c2": _RATIOS}],
    "moctsvm": [{"depth": [1, 2], "c1": [1.0, 3.0, 10.0], "c2": [1.0, 3.0], "c3": [0.01, 0.05]}],
    "oct": [{"depth": [1, 2, 3], "alpha": _SHARES}],
    "oct_h": [{"depth": [1, 2], "alpha": _SHARES}],
}

# What is best on average, in the same units: where the prior is highest.
USUAL: dict[str, Setting] = {
    "octsvm": {"depth": 0, "c1": 3.0, "c2": 100.0, "c3": 0.0},
    "re_svm": {"c1": 10.0, "c2": 100.0},
    "moctsvm": {"depth": 1, "c1": 3.0, "c2": 1.0, "c3": 0.05},
    "oct": {"depth": 2, "alpha": 0.02},
    "oct_h": {"depth": 1, "alpha": 0.02},
}

# Steps of the search in a fold for all settings together, where each is searched by itself (others: one step each, after
# a pool of trees that serves all of them). What a step is, and how long it takes, differs between formulations.
STEPS = {"oct": 6000, "oct_h": 600, "moctsvm": 120}

# Accuracy that the prior takes off for each level of depth, and for a factor of ten (one at most) in a cost, away from the
# usual one.
PER_LEVEL = 0.02
PER_TENFOLD = {"c1": 0.1, "c2": 0.03, "alpha": 0.1}


def settings_of(form: Formulation, grid: Any) -> list[Setting]:
    """All settings of a grid: that of the formulation where ``grid`` is None.

    Raises
    ------
    InvalidParameter
        No grid and none known, or it is none that scikit-learn's ParameterGrid reads.
    """
    from sklearn.model_selection import ParameterGrid

    if grid is None:
        if form.name not in GRIDS:
            raise InvalidParameter(
                f"There is no grid for {form.name!r} yet; give one, e.g. grid={{'depth': [1, 2]}}, with its parameters."
            )
        grid = GRIDS[form.name]
    try:
        found = [dict(setting) for setting in ParameterGrid(grid)]
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"grid={grid!r} should map parameters to lists of values, or be a list of such mappings: {error}"
        ) from None
    if not found or found == [{}]:
        raise InvalidParameter("grid is empty. Give at least one parameter with its values.")
    return found


def prior(form: Formulation, settings: Sequence[Setting]) -> list[float]:
    """For each setting how much accuracy it is expected to lose against the usual one: 0, or less."""
    usual = USUAL.get(form.name, {})
    return [
        -sum(_loss(name, value, usual[name]) for name, value in s.items() if name in usual) for s in settings
    ]


def _loss(name: str, value: float, usual: float) -> float:
    if name == "depth":
        return PER_LEVEL * abs(value - usual)
    if name not in PER_TENFOLD:
        return 0.0
    return PER_TENFOLD[name] * (min(1.0, abs(math.log10(value / usual))) if value > 0 else 1.0)


def absolute(
    form: Formulation, settings: Sequence[Setting], fixed: Mapping[str, Any], data: Data
) -> list[Setting]:
    """The settings with their relative costs turned into those of the model on a table."""
    units: dict[str, float] = {}
    total = float(data.weights.sum())
    found = []
    for setting in settings:
        others = {**fixed, **{k: v for k, v in setting.items() if k not in COSTS}}
        key = repr(sorted(others.items()))
        if key not in units:
            units[key] = form.unit_cost(data, form.Params.make(form.name, **others))
        one = dict(setting)
        base = one["c1"] * units[key] if "c1" in one else fixed.get("c1", 1.0)
        scale = {"c1": units[key], "c2": base, "c3": base * total, "alpha": total}
        found.append({k: float(v * scale[k]) if k in COSTS else v for k, v in one.items()})
    return found
