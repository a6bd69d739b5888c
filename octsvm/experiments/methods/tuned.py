"""A formulation with the parameters that :func:`octsvm.tune` chooses on the training rows: one point, whatever the rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...errors import InvalidParameter
from ...tuning import tune
from ..cells import Fit, PartData
from ..protocol import MethodSpec
from . import own
from .one_by_one import one_by_one

UNHURRIED = 1e6  # seconds: all folds, on whatever machine


@one_by_one
def fit_grid(data: PartData, setting: Mapping[str, float], spec: MethodSpec, seed: int) -> Fit:
    """Fit with the choice; ``spec.fixed`` names the ``formulation``, and what else :func:`octsvm.tune` is given.

    Raises
    ------
    InvalidParameter
        No formulation, or a grid: a tuning has its own.
    """
    fixed = {"time_limit": UNHURRIED, **spec.fixed}
    name = fixed.pop("formulation", None)
    if name is None or spec.grid:
        raise InvalidParameter(
            "kind 'tuned' wants fixed: {formulation: octsvm}, or another one, and no grid: octsvm.tune has its own."
        )
    choice = tune(name, data.X, data.y, seed=seed % 2**32, refit=False, **fixed).choice
    chosen = spec.model_copy(update={"kind": name, "fixed": choice})
    ((_, found),) = own.fit_grid(data, [{}], chosen, seed, ())
    return replace(found, extra=choice)
