"""Confident learning, then CART: cleanlab finds wrong labels, and CART learns from the rest (Northcutt et al. 2021)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cells import Fit, PartData
from ..protocol import MethodSpec
from .cart import classifier

FOLDS = 5


def fit_grid(
    data: PartData,
    settings: Sequence[Mapping[str, float]],
    spec: MethodSpec,
    seed: int,
    skip: Collection[int],
) -> Iterator[tuple[int, Fit]]:
    """CleanLearning around CART for every ``alpha`` of the grid that is not in ``skip``.

    The probabilities come from a stratified cross-validation within the training rows, with as many folds as the
    smaller class has rows, five at most. Where it has one row only, nothing can be cross-validated: plain CART, no
    label given up, status "plain". What is believed of a row that cleanlab drops is the other label.
    """
    from cleanlab.classification import CleanLearning

    smallest = int(np.unique(data.y, return_counts=True)[1].min())
    plain = smallest < 2 or len(np.unique(data.y)) < 2
    for index, setting in enumerate(settings):
        if index in skip:
            continue
        began = time.perf_counter()
        inner = classifier(data, setting["alpha"], spec, seed)
        believed = data.y
        model: Any = inner
        if plain:
            inner.fit(data.X, data.y > 0)
        else:
            model = CleanLearning(
                inner,
                seed=seed % 2**32,
                cv_n_folds=min(FOLDS, smallest),
                find_label_issues_kwargs={"n_jobs": 1},
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(data.X, (data.y > 0).astype(np.int64))
            wrong = model.get_label_issues()["is_label_issue"].to_numpy(dtype=bool)
            believed = np.where(wrong, -data.y, data.y)
        seconds = time.perf_counter() - began

        def predict(X: NDArray[np.float64], model: Any = model) -> NDArray[np.int64]:
            return np.where(np.asarray(model.predict(X)) > 0, 1, -1).astype(np.int64)

        leaves = getattr(model, "clf", model).get_n_leaves()
        yield (
            index,
            Fit(
                predict,
                seconds,
                status="plain" if plain else "heuristic",
                splits=int(leaves) - 1,
                believed=believed,
            ),
        )
