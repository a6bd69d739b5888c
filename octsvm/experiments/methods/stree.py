"""STree: oblique trees with an SVM in every node, from the package of that name (Montañana, Gámez, Puerta 2021)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..cells import Fit, PartData
from ..protocol import MethodSpec
from ._scaling import unit_scaler

ITERATIONS = 100_000


def fit_grid(
    data: PartData,
    settings: Sequence[Mapping[str, float]],
    spec: MethodSpec,
    seed: int,
    skip: Collection[int],
) -> Iterator[tuple[int, Fit]]:
    """Fit a tree of linear SVMs on features in [0, 1] for every ``C`` of the grid that is not in ``skip``.

    ``fixed.depth`` counts levels of splits, as everywhere in the experiments; STree counts levels of nodes, hence one
    more there. ``spec.work`` limits libsvm's iterations in each node (100,000 by default, as in STree).
    """
    from stree import Stree

    scaler = unit_scaler(data.X)
    X = scaler.transform(data.X)
    depth = spec.fixed.get("depth")
    for index, setting in enumerate(settings):
        if index in skip:
            continue
        began = time.perf_counter()
        tree = Stree(
            C=setting["C"],
            kernel="linear",
            max_depth=None if depth is None else depth + 1,
            max_iter=spec.work or ITERATIONS,
            random_state=seed % 2**31,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            tree.fit(X, data.y)
        for node in tree:
            # STree (1.4.2) gives the leaves at the depth limit no class, and then predicts the first one there.
            node.make_predictor(tree.n_classes_)  # does nothing but at leaves
        seconds = time.perf_counter() - began

        def predict(X: NDArray[np.float64], tree: Stree = tree) -> NDArray[np.int64]:
            return np.asarray(tree.predict(scaler.transform(X)), dtype=np.int64)

        _, leaves = tree.nodes_leaves()
        yield index, Fit(predict, seconds, status="heuristic", splits=max(0, int(leaves) - 1))
