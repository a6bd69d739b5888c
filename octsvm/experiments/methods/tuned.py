"""A formulation with the parameters that :func:`octsvm.tune` chooses on the training rows: one point, whatever the rule."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ...errors import InvalidParameter
from ...tuning import tune
from ..cells import Fit, PartData
from ..protocol import MethodSpec
from . import own

UNHURRIED = 1e6  # seconds: all folds, on whatever machine


def fit_grid(
    data: PartData,
    settings: Sequence[Mapping[str, float]],
    spec: MethodSpec,
    seed: int,
    skip: Collection[int],
) -> Iterator[tuple[int, Fit]]:
    """Yield the fit with the choice; ``spec.fixed`` names the ``formulation``, and what else :func:`octsvm.tune` is given.

    Raises
    ------
    InvalidParameter
        No formulation, or a grid: a tuning has its own.
    """
    fixed = dict(spec.fixed)
    name = fixed.pop("formulation", None)
    if name is None or spec.grid:
        raise InvalidParameter(
            "kind 'tuned' wants fixed: {formulation: octsvm}, or another one, and no grid: octsvm.tune has its own."
        )
    if 0 in skip:
        return
    began = time.perf_counter()
    fixed = {"time_limit": UNHURRIED, **fixed}
    choice = tune(name, data.X, data.y, seed=seed % 2**32, refit=False, **fixed).choice
    chosen = spec.model_copy(update={"kind": name, "fixed": choice})
    for k, fit in own.fit_grid(data, [{}], chosen, seed, ()):
        yield k, replace(fit, seconds=time.perf_counter() - began, extra=choice)
