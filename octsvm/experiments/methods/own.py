"""The formulations: every grid by :func:`octsvm.fit_path`, one pool of trees for all its points."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import InvalidParameter
from ...formulations.base import Formulation
from ...formulations.registry import formulation, register_from
from ...formulations.trees import MarginTree
from ...parameter_grid import check_settings, fit_path
from ...result import Result
from ..cells import Fit, PartData
from ..protocol import MethodSpec
from .cart import least_rows

WHOLE = ("depth", "n_min")  # a protocol's grid holds floats


def fit_grid(
    data: PartData,
    settings: Sequence[Mapping[str, float]],
    spec: MethodSpec,
    seed: int,
    skip: Collection[int],
) -> Iterator[tuple[int, Fit]]:
    """Yield a fit for every wanted point of the grid; ``spec.work`` are steps of the search for each."""
    if len(np.unique(data.y)) < 2:  # nothing to fit
        alike = replace(Fit.constant(data.y), believed=data.y)
        yield from ((k, alike) for k in range(len(settings)) if k not in skip)
        return
    fixed: dict[str, Any] = dict(spec.fixed)
    form = form_of(spec.kind)
    if "n_min" in form.Params.model_fields and not any("n_min" in setting for setting in settings):
        fixed.setdefault("n_min", least_rows(data))
    points = _points(settings)
    path = fit_path(form.name, data.X, data.y, points, work_limit=spec.work, seed=seed, skip=skip, **fixed)
    for k, result in path:
        yield k, _fit(data, result)


def require(spec: MethodSpec) -> None:
    """Refuse parameters that the formulation does not take, and a limit in seconds."""
    if "time_limit" in spec.fixed:
        raise InvalidParameter(
            f"fixed of {spec.kind!r}: time_limit is no limit here, as trees are the same on every machine. Give it work, steps of the "
            "search for each point of the grid."
        )
    fixed = {k: v for k, v in spec.fixed.items() if k != "scale"}
    check_settings(form_of(spec.kind), _points(spec.settings()), fixed)


def form_of(name: str) -> Formulation:
    """The formulation of that name, or at ``FILE.py:CLASS`` or ``module:CLASS``, which is registered."""
    return register_from(name) if ":" in name else formulation(name)


def _points(settings: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    return [
        {k: int(v) if k in WHOLE and float(v).is_integer() else v for k, v in setting.items()}
        for setting in settings
    ]


def _fit(data: PartData, result: Result) -> Fit:
    tree = result.tree
    assert tree is not None
    believed = None
    if isinstance(tree, MarginTree):  # of rows that it gave up on some level, the tree's own label
        believed = data.y.copy()
        rows = np.unique([record.row for record in tree.relabelled]).astype(int)
        if len(rows):
            believed[rows] = tree.predict(data.X[rows])
    return Fit(
        predict=lambda X: np.asarray(tree.predict(X), dtype=np.int64),
        seconds=result.seconds,
        objective=result.objective,  # heuristics prove nothing: no bound
        status=result.status,
        splits=int(tree.splits.sum()),
        believed=believed,
        tree=tree,
    )
