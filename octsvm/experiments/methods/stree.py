"""STree: oblique trees with an SVM in every node, from the package of that name (Montañana, Gámez, Puerta 2021)."""

from __future__ import annotations

from collections.abc import Mapping

from sklearn.preprocessing import MinMaxScaler
from stree import Stree

from ..cells import Fit, PartData
from ..protocol import MethodSpec
from .one_by_one import one_by_one

ITERATIONS = 100_000


@one_by_one
def fit_grid(data: PartData, setting: Mapping[str, float], spec: MethodSpec, seed: int) -> Fit:
    """Fit a tree of linear SVMs on features in [0, 1] for ``C`` of a point of the grid.

    ``fixed.depth`` counts levels of splits, as everywhere in the experiments; STree counts levels of nodes, hence one
    more there. ``spec.work`` limits libsvm's iterations in each node (100,000 by default, as in STree).
    """
    scaler = MinMaxScaler().fit(data.X)
    depth = spec.fixed.get("depth")
    tree = Stree(
        C=setting["C"],
        kernel="linear",
        max_depth=None if depth is None else depth + 1,
        max_iter=spec.work or ITERATIONS,
        random_state=seed % 2**31,
    )
    tree.fit(scaler.transform(data.X), data.y)
    for node in tree:
        # STree (1.4.2) gives the leaves at the depth limit no class, and then predicts the first one there.
        node.make_predictor(tree.n_classes_)  # does nothing but at leaves
    _, leaves = tree.nodes_leaves()
    return Fit(
        lambda X: tree.predict(scaler.transform(X)), 0.0, status="heuristic", splits=max(0, int(leaves) - 1)
    )
