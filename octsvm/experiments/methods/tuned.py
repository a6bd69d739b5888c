"""A formulation with the parameters that :func:`octsvm.tune` chooses on the training rows: one point, whatever the rule."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace

from ...errors import InvalidParameter
from ...tuning import tune
from ...tuning.grids import settings_of
from ..cells import Fit, PartData
from ..protocol import MethodSpec
from . import own
from .one_by_one import one_by_one

UNHURRIED = 1e6  # seconds: all folds, on whatever machine


@one_by_one
def fit_grid(data: PartData, setting: Mapping[str, float], spec: MethodSpec, seed: int) -> Fit:
    """Fit with the choice; ``spec.fixed`` names the ``formulation``, and what else :func:`octsvm.tune` is given."""
    fixed = {"time_limit": UNHURRIED, **spec.fixed}
    name = own.form_of(fixed.pop("formulation")).name
    choice = tune(name, data.X, data.y, seed=seed % 2**32, refit=False, **fixed).choice
    chosen = spec.model_copy(update={"kind": name, "fixed": choice})
    ((_, found),) = own.fit_grid(data, [{}], chosen, seed, ())
    return replace(found, extra=choice)


def require(spec: MethodSpec) -> None:
    """Refuse what :func:`octsvm.tune` would refuse of every part.

    Raises
    ------
    InvalidParameter, UnknownFormulation
        No formulation; a grid beside ``fixed``; none known of the formulation, and none in ``fixed``; a name that the tuning does
        not take.
    """
    name = spec.fixed.get("formulation")
    if name is None or spec.grid:
        raise InvalidParameter(
            "kind 'tuned' wants fixed: {formulation: octsvm}, or another one, and no grid: octsvm.tune has its own, or takes one that "
            "stands in fixed."
        )
    form, taken = own.form_of(name), inspect.signature(tune).parameters
    params = {k: v for k, v in spec.fixed.items() if k not in taken}
    for setting in settings_of(form, spec.fixed.get("grid")):
        form.Params.make(form.name, **{**setting, **params})
