"""What a fitted tree comes to, in words: costs, suspects and weights, for the summary of a fit and for the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..formulations.trees import Tree

MARGIN = {
    "margin": "width of the margins: wide ones cost little",
    "errors": "rows on the wrong side of a split or within its margin, by how far",
    "relabelled": "labels given up, on each level where they are",
    "misclassified": "rows in a leaf of another class",
    "splits": "splits in use",
}
LEAF = {"errors": "rows of another class than their leaf's", "complexity": "splits, or features in them"}


class Judged(NamedTuple):
    """A row, and what the tree makes of its given label."""

    row: int  # its position among the rows that were looked at
    given: Any
    believed: Any  # the label that the row was given up for, or else the tree's prediction
    predicted: Any  # may be the given label, although that was given up at one split
    cost: float | None  # of giving its label up; None where it was not
    # How much speaks for the given label: the row's score towards it in margins (below 0 it is on the other side), or
    # the share of its class in the row's leaf.
    support: float

    @property
    def suspect(self) -> bool:
        """Whether the tree disagrees with the label, or gave it up."""
        return self.cost is not None or self.predicted != self.given


def words_of(terms: Iterable[str], term: str) -> str:
    """What a term among the ``terms`` of an objective stands for; its name where that is not known."""
    return (MARGIN if "margin" in terms else LEAF).get(term, term)


def judged(tree: Tree, X: Any, y: Any, node_weights: Any, trained: Mapping[int, int]) -> list[Judged]:
    """What the tree makes of every row of ``X (m, p)`` with the given labels ``y (m,)``.

    ``node_weights (nodes, K)`` is the weight of the training rows of each class at each node; ``trained`` leads from
    positions of training rows, as the tree counts them, to positions in ``X``.
    """
    M = tree.features_of(X)
    cost: dict[int, float] = {}
    for record in getattr(tree, "relabelled", ()):
        place = trained.get(record.row)
        if place is not None:
            cost[place] = cost.get(place, 0.0) + record.cost
    labels = zip(y, tree.predict(M).tolist(), supports(tree, M, list(y), node_weights).tolist(), strict=True)
    return [
        Judged(i, given, _believed(tree, given, predicted), predicted, cost.get(i), support)
        for i, (given, predicted, support) in enumerate(labels)
    ]


def supports(tree: Tree, X: Any, y: Any, node_weights: Any = ()) -> Any:
    """How much speaks for the label ``y`` of each row of ``X`` (m,), as in :class:`Judged`."""
    import numpy as np

    from ..exports._decision_paths import decision_paths, leaf_scores, levels
    from ..formulations.trees import MarginTree

    M = tree.features_of(X)
    leaf = decision_paths(tree, M).max(axis=1)
    index = np.array([tree.classes.index(v) if v in tree.classes else -1 for v in y])
    if isinstance(tree, MarginTree):
        return leaf_scores(tree, M, leaf) * np.where(index == 1, 1.0, -1.0)
    weights = (
        np.asarray(node_weights) if len(node_weights) else np.zeros((2 ** levels(tree), len(tree.classes)))
    )
    shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    return np.where(index >= 0, shares[leaf - 1, index], 0.0)


def _believed(tree: Tree, given: Any, predicted: Any) -> Any:
    """The label believed: a row that was given up at one node may be predicted as given in the end."""
    return predicted if predicted != given else next((c for c in tree.classes if c != given), predicted)


def weights_of(tree: Tree) -> list[tuple[int, list[tuple[str, float, float]]]]:
    """Node by node the features of its split in order of their effect: name, weight in scaled and in original units.

    Empty for trees whose splits are of one feature, or of a kernel other than "linear".
    """
    import numpy as np

    from ..formulations.trees import AxisTree

    if isinstance(tree, AxisTree) or not tree.weighs_features:
        return []
    scaled, original = tree.weights("scaled")[0], tree.weights("original")[0]

    def features(t: int) -> list[tuple[str, float, float]]:
        order = tree.by_effect(t)
        return [(tree.feature_names[j], float(scaled[t - 1][j]), float(original[t - 1][j])) for j in order]

    return [(t, features(t)) for t in (np.flatnonzero(tree.splits) + 1).tolist()]
