"""OCT, OCT-H and MOCTSVM as classifiers: any number of classes, probabilities from the training rows of a leaf."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exports._decision_paths import decision_paths
from ..formulations.base import FloatArray
from ..formulations.heap import upwards
from ._base import TreeClassifier


class LeafLabelledClassifier(TreeClassifier):
    """What the classifiers with a class at each leaf share."""

    def predict_proba(self, X: Any) -> FloatArray:
        """Share of each class (m, K) in the training weight of each row's leaf, columns in the order of ``classes_``.

        These are frequencies among the given labels, as in other trees: with few rows in a leaf they are 0 or 1.
        Where a leaf got no training row, those of the nearest node above count. The predicted class is never below
        another one: it wins a tie by the last bit, and an unproved tree's leaf may have to be lifted to one.
        """
        M = self._rows_of(X)
        leaf = decision_paths(self.tree_, M).max(axis=1)
        share = np.zeros((len(leaf), len(self.classes_)))
        for t in np.unique(leaf):
            share[leaf == t] = self._shares(int(t))
        return share

    def _shares(self, leaf: int) -> FloatArray:
        t = next(t for t in upwards(leaf) if self.node_weights_[t - 1].any())
        share: FloatArray = self.node_weights_[t - 1] / self.node_weights_[t - 1].sum()
        chosen = int(self._positions()[self.tree_._class_below(leaf, None)])
        others = np.delete(share, chosen)
        if others.size and share[chosen] <= others.max():
            share = share.copy()
            share[chosen] = others.max()
            share /= share.sum()
            share[chosen] = np.nextafter(np.delete(share, chosen).max(), 2)
        return share

    def decision_function(self, X: Any) -> FloatArray:
        """Two classes: share of the second less that of the first (m,); else the shares (m, K)."""
        share = self.predict_proba(X)
        if share.shape[1] == 2:
            return np.asarray(share[:, 1] - share[:, 0])
        return share[:, 0] if share.shape[1] == 1 else share


class OCTClassifier(LeafLabelledClassifier):
    """Optimal classification tree with one feature a split (OCT; Bertsimas & Dunn 2017), any number of classes.

    Examples
    --------
    >>> from octsvm import OCTClassifier
    >>> OCTClassifier(max_depth=1).fit([[0], [1], [2], [3]], list("aabb")).predict([[0.5], [2.5]]).tolist()
    ['a', 'b']
    """

    formulation = "oct"


class OCTHClassifier(LeafLabelledClassifier):
    """Optimal classification tree with oblique splits (OCT-H; Bertsimas & Dunn 2017), any number of classes.

    Examples
    --------
    >>> from octsvm import OCTHClassifier
    >>> OCTHClassifier(max_depth=1).fit([[0, 1], [1, 2], [1, 0], [2, 1]], [0, 0, 1, 1]).predict([[0, 3]]).tolist()
    [0]
    """

    formulation = "oct_h"


class MOCTSVMClassifier(LeafLabelledClassifier):
    """Tree with a margin at every split and a class at every leaf (MOCTSVM; Blanco, Japón, Puerto 2023), any number of classes.

    The weights of its splits have the scale of the margins.

    Examples
    --------
    >>> from octsvm import MOCTSVMClassifier
    >>> model = MOCTSVMClassifier(max_depth=2, c1=10, c2=50, c3=0.1)
    >>> model.fit([[0], [1], [4], [5], [8], [9]], list("aabbcc")).predict([[0.5], [4.5], [8.5]]).tolist()
    ['a', 'b', 'c']
    """

    formulation = "moctsvm"
