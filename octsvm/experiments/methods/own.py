"""The formulations: every grid by :func:`octsvm.fit_path`, one pool of trees for all its points."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidParameter
from ...formulations.registry import formulation
from ...formulations.trees import MarginTree, Tree
from ...parameter_grid import fit_path
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
    """Yield a fit for every wanted point of the grid; ``spec.work`` are steps of the search for each.

    Raises
    ------
    InvalidParameter
        The protocol limits seconds: the trees would differ from machine to machine.
    """
    if spec.time_limit is not None:
        raise InvalidParameter(
            f"time_limit={spec.time_limit!r} is no limit of {spec.kind!r}, whose trees are the same on every machine. "
            "Give it work, steps of the search for each point of the grid."
        )
    if len(np.unique(data.y)) < 2:
        yield from _one_class(data, len(settings), skip)
        return
    fixed: dict[str, Any] = dict(spec.fixed)
    known = formulation(spec.kind).Params.model_fields
    if "n_min" in known and not any("n_min" in setting for setting in settings):
        fixed.setdefault("n_min", least_rows(data))
    points = [
        {
            name: int(value) if name in WHOLE and float(value).is_integer() else value
            for name, value in setting.items()
        }
        for setting in settings
    ]
    path = fit_path(spec.kind, data.X, data.y, points, work_limit=spec.work, seed=seed, skip=skip, **fixed)
    for k, result in path:
        yield k, _fit(data, result)


def _fit(data: PartData, result: Result) -> Fit:
    tree = result.tree
    assert tree is not None

    def predict(X: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.asarray(tree.predict(X), dtype=np.int64)

    return Fit(
        predict=predict,
        seconds=result.seconds,
        objective=result.objective,
        bound=np.nan,  # heuristics prove nothing
        status=result.status,
        splits=int(tree.splits.sum()),
        believed=_believed(data, tree),
        tree=tree,
    )


def _believed(data: PartData, tree: Tree) -> NDArray[np.int64] | None:
    """The tree's own label for rows that it gave up on some level and classifies otherwise in the end."""
    if not isinstance(tree, MarginTree):
        return None
    believed = data.y.copy()
    rows = np.unique([record.row for record in tree.relabelled]).astype(int)
    if len(rows):
        believed[rows] = np.asarray(tree.predict(data.X[rows]), dtype=np.int64)
    return believed


def _one_class(data: PartData, count: int, skip: Collection[int]) -> Iterator[tuple[int, Fit]]:
    """Where one label is left, there is nothing to fit."""
    label = int(data.y[0])
    for k in range(count):
        if k not in skip:
            yield (
                k,
                Fit(
                    predict=lambda X: np.full(len(X), label, dtype=np.int64),
                    seconds=0.0,
                    objective=0.0,
                    bound=0.0,
                    status="optimal",
                    believed=data.y.copy(),
                ),
            )
