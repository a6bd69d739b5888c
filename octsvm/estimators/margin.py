"""RE-SVM and OCTSVM as classifiers: two classes, a score at the split that decides, and the labels given up.

More than two classes: scikit-learn's OneVsRestClassifier or OneVsOneClassifier around them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidData
from ..formulations.base import FloatArray
from ._base import TreeClassifier
from ._decision_paths import decision_paths, leaf_scores


class MarginClassifier(TreeClassifier):
    """What RE-SVM and OCTSVM share."""

    def _require_classes(self, classes: NDArray[Any]) -> None:
        if len(classes) > 2:
            name = type(self).__name__
            raise InvalidData(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"y holds {len(classes)} classes. {name} separates two; wrap it in scikit-learn's "
                f"OneVsRestClassifier({name}(...)) or OneVsOneClassifier({name}(...)), which fit one tree a class or "
                "a pair of classes."
            )

    def __sklearn_tags__(self) -> Any:
        """Two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _more_tags(self) -> dict[str, Any]:
        return {"binary_only": True}  # the same for scikit-learn before 1.6

    def decision_function(self, X: Any) -> FloatArray:
        """Score (m,) at the last split on each row's way, positive for ``classes_[1]``.

        Its unit is the margin: beyond 1 or -1 a row lies clear of the hyperplane. Scores of different nodes belong to
        different hyperplanes. A score of exactly 0 goes right, as in the model, and is returned as the smallest
        positive number.
        """
        M = self._rows_of(X)
        leaf = decision_paths(self.tree_, M).max(axis=1)
        score = leaf_scores(self.tree_, M, leaf)
        if len(self.tree_.classes) == 1:  # one class in training, whatever the intercept says
            return np.full(len(M), 1.0 if self._positions()[0] == 1 else -1.0)
        return np.where(score == 0, np.nextafter(0.0, 1.0), score)

    def predict_proba(self, X: Any) -> FloatArray:
        """1/(1 + exp(-score)) for ``classes_[1]`` (m, 2): the order of :meth:`decision_function` on a scale from 0 to 1.

        No frequency stands behind it: half a margin is 0.62, a margin 0.73. For probabilities, calibrate it on rows
        of their own with scikit-learn's CalibratedClassifierCV.
        """
        score = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.ones((len(score), 1))
        with np.errstate(over="ignore"):
            second = 1.0 / (1.0 + np.exp(-score))
        tie = (second == 0.5) & (score > 0)
        second[tie] = np.nextafter(0.5, 1.0)
        return np.column_stack([1.0 - second, second])


class RESVMClassifier(MarginClassifier):
    """Support vector machine that may give up labels (RE-SVM; Blanco, Japón, Puerto 2022), two classes.

    For more classes wrap it in scikit-learn's OneVsRestClassifier or OneVsOneClassifier.

    Parameters
    ----------
    c1 : float
        Cost of a unit of error; the margin's unit is 1.
    c2 : float
        Cost of giving up a label.
    norm : "l2" or "l1"
        Of the normal vector; "l1" makes the model linear.
    variant : None, "compact" or "paper"
        None is "compact"; see the page on the model.
    big_m : float, optional
        Used instead of the proved bound on scores.
    kernel : None, "linear", "poly", "rbf", a registered name or callable
        None: hyperplanes in the features themselves. A kernel: in its feature space, with norm "l2"; a callable takes
        tables ``(n, p)`` and ``(m, p)`` scaled to [0, 1] and returns ``(n, m)``. See :func:`octsvm.register_kernel`.
    gamma : "scale", "auto" or float
        Of "poly" and "rbf", as in SVC; "scale" takes the variance of the scaled table, rows by their weights.
    degree : int
        Of "poly".
    coef0 : float
        Of "poly".
    {options}
    random_state : int, RandomState or None
        Seed of the solver and the heuristic; None is 0, so that fits can be repeated.
    warm_start : bool
        Hand the former hyperplane to the next fit as its start: the new one is never worse. Where it is no start, a
        warning says why.
    verbose : bool
        Show the solver's log.
    class_weight : None, "balanced" or dict
        Weight of the errors and given-up labels of each class; "balanced" gives both classes the same total.

    Attributes
    ----------
    tree_ : MarginTree
        One node.
    result_ : Result
        How it was found: status, objective, bound, notes.
    bound_, gap_ : float
        No classifier of the model is better than the bound; the relative gap to it.
    classes_ : ndarray of shape (2,)
        The labels in order; the second one is +1.
    n_features_in_ : int
        p.
    feature_names_in_ : ndarray of shape (p,)
        Only where X had names.
    node_weights_ : ndarray of shape (nodes, 2)
        Training weight of each given label at each node, in heap order.
    relabelled_ : DataFrame
        Training rows whose label was given up; see :func:`octsvm.relabelling_report`.

    Examples
    --------
    >>> from octsvm import RESVMClassifier
    >>> RESVMClassifier(c1=10).fit([[0], [1], [8], [9]], [-1, -1, 1, 1]).predict([[2], [7]]).tolist()
    [-1, 1]
    """

    formulation = "re_svm"


class OCTSVMClassifier(MarginClassifier):
    """Tree with a margin at every split that may give up labels (OCTSVM; Blanco, Japón, Puerto 2022), two classes.

    ``max_depth`` is D of the paper, and **all D + 1 levels decide**: ``max_depth=1`` splits on two levels, as
    ``OCTClassifier(max_depth=2)`` does. For more classes wrap it in scikit-learn's OneVsRestClassifier or
    OneVsOneClassifier.

    Parameters
    ----------
    max_depth : int
        D: levels that send rows to a child. The level below them carries hyperplanes too, so D + 1 levels decide.
    c1 : float
        Cost of a unit of error, on every level; the margin's unit is 1.
    c2 : float
        Cost of giving up a label, on every level.
    c3 : float
        Cost of a split.
    mu_svm : float, optional
        How far below 0 a training row that goes left must be. None is the model's own: 1e-3, and no such rule in
        ``variant="paper"``.
    norm : "l2" or "l1"
        Of the normal vectors; "l1" makes the model linear.
    variant : None, "compact" or "paper"
        None is "compact"; see the page on the model.
    big_m : float, optional
        Used instead of the proved bound on scores.
    kernel, gamma, degree, coef0
        As for :class:`RESVMClassifier`.
    {options}
    random_state, warm_start, verbose, class_weight
        As for :class:`RESVMClassifier`.

    Attributes
    ----------
    tree_ : MarginTree
        The fitted tree.
    result_ : Result
        How it was found: status, objective, bound, notes.
    bound_, gap_ : float
        No tree of the model is better than the bound; the relative gap to it.
    classes_ : ndarray of shape (2,)
        The labels in order; the second one is +1.
    n_features_in_ : int
        p.
    feature_names_in_ : ndarray of shape (p,)
        Only where X had names.
    node_weights_ : ndarray of shape (nodes, 2)
        Training weight of each given label at each node, in heap order.
    relabelled_ : DataFrame
        Training rows whose label was given up, by node; see :func:`octsvm.relabelling_report`.

    Examples
    --------
    >>> from octsvm import OCTSVMClassifier
    >>> model = OCTSVMClassifier(max_depth=1, c1=20, c2=30, c3=0.1)
    >>> model.fit([[0], [1], [4], [5], [8], [9]], [0, 0, 1, 1, 0, 0]).predict([[0.5], [4.5], [8.5]]).tolist()
    [0, 1, 0]
    """

    formulation = "octsvm"
