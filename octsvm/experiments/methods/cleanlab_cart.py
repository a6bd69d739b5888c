"""Confident learning, then CART: cleanlab finds wrong labels, and CART learns from the rest (Northcutt et al. 2021)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
from cleanlab.classification import CleanLearning

from ..cells import Fit, PartData
from ..protocol import MethodSpec
from .cart import classifier
from .one_by_one import one_by_one

FOLDS = 5


@one_by_one
def fit_grid(data: PartData, setting: Mapping[str, float], spec: MethodSpec, seed: int) -> Fit:
    """CleanLearning around CART for ``alpha`` of a point of the grid.

    The probabilities come from a stratified cross-validation within the training rows, with as many folds as the
    smaller class has rows, five at most. Where it has one row only, nothing can be cross-validated: plain CART, no
    label given up, status "plain". What is believed of a row that cleanlab drops is the other label.
    """
    classes, counts = np.unique(data.y, return_counts=True)
    inner = classifier(data, setting["alpha"], spec, seed)
    if len(classes) < 2 or counts.min() < 2:
        inner.fit(data.X, data.y)
        return Fit(inner.predict, 0.0, status="plain", splits=inner.get_n_leaves() - 1, believed=data.y)
    folds = min(FOLDS, int(counts.min()))
    one = {"n_jobs": 1}
    model = CleanLearning(inner, seed=seed % 2**32, cv_n_folds=folds, find_label_issues_kwargs=one)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.X, (data.y > 0).astype(np.int64))
    wrong = model.get_label_issues()["is_label_issue"].to_numpy(dtype=bool)
    return Fit(
        lambda X: np.where(np.asarray(model.predict(X)) > 0, 1, -1),
        0.0,
        status="heuristic",
        splits=int(model.clf.get_n_leaves()) - 1,
        believed=np.where(wrong, -data.y, data.y),
    )
