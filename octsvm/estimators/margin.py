"""RE-SVM and OCTSVM as classifiers: two classes, a score at the split that decides, and the labels given up.

More than two classes: ``multi_class="ovr"`` or ``"ovo"`` fits one tree a class, or a pair of classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..data import class_weights
from ..errors import InvalidData, InvalidParameter
from ..exports._decision_paths import decision_paths, leaf_scores
from ..formulations.base import FloatArray, IntArray
from ._base import OURS, Begin, TreeClassifier
from ._many_classes import decisions, fit_all
from ._tables import read_rows

OF_ONE_TREE = (
    "tree_",
    "result_",
    "bound_",
    "gap_",
    "node_weights_",
    "relabelled_",
    "tuning_",
    "best_params_",
    "best_score_",
)


class MarginClassifier(TreeClassifier):
    """What RE-SVM and OCTSVM share.

    Parameters
    ----------
    multi_class : None, "ovr" or "ovo"
        What is done with more than two classes: None refuses them, "ovr" fits one tree for each class against the rest,
        "ovo" one for each pair of classes. Each is optimal for its own task; no bound holds for all of them at once. They
        share the time limit in equal parts, stand in ``estimators_``, and there is no ``tree_`` then.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (1, p) and (1,)
        Of a single hyperplane in the features' own units: no kernel but "linear", and no ``max_depth`` above 0.
    estimators_ : list
        Only with more than two classes: the fitted classifiers, each with the attributes named here and the labels False and
        True: of class k against the rest, or of the pairs (0, 1), (0, 2), ..., the later class being True.
    """

    own_parameters = OURS | {"multi_class": None}

    estimators_: list[Any]

    def _fit_many(
        self,
        matrix: FloatArray,
        classes: NDArray[Any],
        position: IntArray,
        sample_weight: Any,
        begin: Begin,
    ) -> bool:
        kind = self.multi_class  # type: ignore[attr-defined]
        if kind not in (None, "ovr", "ovo"):
            raise InvalidParameter(
                f"multi_class={kind!r} should be 'ovr' (one tree for each class against the rest), 'ovo' (one for each pair of "
                "classes), or None (two classes only)."
            )
        if len(classes) <= 2:
            return False
        if kind is None:
            name = type(self).__name__
            raise InvalidData(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"y holds {len(classes)} classes. {name} separates two; with multi_class='ovr' or 'ovo' it fits one tree "
                f"a class or a pair of classes, as scikit-learn's OneVsRestClassifier({name}(...)) and OneVsOneClassifier do."
            )
        given = self._read_weights(sample_weight, len(position))
        weights = class_weights(self.class_weight, given, classes, position)  # type: ignore[attr-defined]
        if begin.start is not None:
            raise InvalidParameter(
                f"start= is one tree, and multi_class={kind!r} fits several for {len(classes)} classes. Leave it out."
            )
        self.estimators_ = fit_all(self, kind, self._table(matrix), position, weights, len(classes), begin)
        self.classes_ = classes
        for name in OF_ONE_TREE:
            self.__dict__.pop(name, None)  # of a fit to two classes
        return True

    def _require_one_tree(self) -> None:
        if hasattr(self, "estimators_"):
            raise InvalidData(self._in_each())
        super()._require_one_tree()

    def _in_each(self) -> str:
        return (
            f"{type(self).__name__} was fitted to {len(self.classes_)} classes with multi_class={self.multi_class!r}: there "  # type: ignore[attr-defined]
            f"is no single tree, but one in each of the {len(self.estimators_)} classifiers in estimators_. Ask those."
        )

    def __getattr__(self, name: str) -> Any:
        """Say where attributes of a single tree are, after a fit of several."""
        if name in OF_ONE_TREE and "estimators_" in self.__dict__:
            raise AttributeError(f"{name}: {self._in_each()}", name=name, obj=self)
        return object.__getattribute__(self, name)  # the error that led here, a property's own one included

    def _many_scores(self, X: Any) -> FloatArray:
        matrix = read_rows(self, X)
        kind = self.multi_class  # type: ignore[attr-defined]
        return decisions(kind, self.estimators_, self._table(matrix), len(self.classes_))

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (m,) of the rows of ``X (m, p)``: those of the leaves that :meth:`apply` names.

        With more than two classes, those of the largest score of :meth:`decision_function`.
        """
        if not hasattr(self, "estimators_"):
            return super().predict(X)
        return np.asarray(self.classes_[self._many_scores(X).argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        """Two classes, unless several trees are wanted."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.multi_class is not None  # type: ignore[attr-defined]
        return tags

    def _more_tags(self) -> dict[str, Any]:
        return {"binary_only": self.multi_class is None}  # type: ignore[attr-defined]  # the same for scikit-learn before 1.6

    def decision_function(self, X: Any) -> FloatArray:
        """Score (m,) at the last split on each row's way, positive for ``classes_[1]``.

        Its unit is the margin: beyond 1 or -1 a row lies clear of the hyperplane. Scores of different nodes belong to
        different hyperplanes. A score of exactly 0 goes right, as in the model, and is returned as the smallest
        positive number.

        With more than two classes (m, K), one for each class: the score of its tree against the rest ("ovr"), or the pairs
        that it wins, and less than half of one for the sum of its scores there ("ovo").
        """
        if hasattr(self, "estimators_"):
            return self._many_scores(X)
        M = self._rows_of(X)
        leaf = decision_paths(self.tree_, M).max(axis=1)
        score = leaf_scores(self.tree_, M, leaf)
        if len(self.tree_.classes) == 1:  # one class in training, whatever the intercept says
            return np.full(len(M), 1.0 if self._positions()[0] == 1 else -1.0)
        return np.where(score == 0, np.nextafter(0.0, 1.0), score)

    @property
    def coef_(self) -> FloatArray:
        """Weights (1, p) of the features in their own units: ``decision_function(X) = X @ coef_[0] + intercept_[0]``.

        With several machines (``multi_class``) one row for each of ``estimators_``. They depend on the features' units:
        ``feature_importances_`` does not, and RFE takes it with ``importance_getter="feature_importances_"``.

        Raises
        ------
        AttributeError
            There is more than one hyperplane (``max_depth`` above 0), or a kernel other than "linear".
        """
        return np.array([weights for weights, _ in self._hyperplanes("coef_")])

    @property
    def intercept_(self) -> FloatArray:
        """What is added to the weighted sum (1,), one for each row of ``coef_``; raises what that raises."""
        return np.array([intercept for _, intercept in self._hyperplanes("intercept_")])

    def _hyperplanes(self, asked: str) -> list[tuple[FloatArray, float]]:
        check_is_fitted(self, "classes_")
        if hasattr(self, "estimators_"):
            return [pair for one in self.estimators_ for pair in one._hyperplanes(asked)]
        tree = self.tree_
        if tree.depth > 0 or not tree.weighs_features:
            why = "may split below its root (max_depth > 0)" if tree.weighs_features else "has a kernel"
            raise AttributeError(
                f"{asked} is of a single hyperplane in the features, and this classifier {why}."
            )
        weights, intercept = tree.weights()
        if len(tree.classes) == 1:  # as decision_function
            return [(weights[0], 1.0 if self._positions()[0] == 1 else -1.0)]
        return [(weights[0], float(intercept[0]))]

    def predict_proba(self, X: Any) -> FloatArray:
        """1/(1 + exp(-score)) for ``classes_[1]`` (m, 2): the order of :meth:`decision_function` on a scale from 0 to 1.

        No frequency stands behind it: half a margin is 0.62, a margin 0.73. For probabilities, calibrate it on rows
        of their own with scikit-learn's CalibratedClassifierCV. With more than two classes (m, K): exp(score), divided by
        their sum.
        """
        score = self.decision_function(X)
        if hasattr(self, "estimators_"):
            powers = np.exp(score - score.max(axis=1, keepdims=True))
            return np.asarray(powers / powers.sum(axis=1, keepdims=True))
        if len(self.classes_) == 1:
            return np.ones((len(score), 1))
        with np.errstate(over="ignore"):
            second = 1.0 / (1.0 + np.exp(-score))
        tie = (second == 0.5) & (score > 0)
        second[tie] = np.nextafter(0.5, 1.0)
        return np.column_stack([1.0 - second, second])


class RESVMClassifier(MarginClassifier):
    """Support vector machine that may give up labels (RE-SVM; Blanco, Japón, Puerto 2022), two classes.

    For more classes give ``multi_class``.

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
    ``OCTClassifier(max_depth=2)`` does. ``c1`` and ``c2`` are paid on every level. For more classes give ``multi_class``.

    Examples
    --------
    >>> from octsvm import OCTSVMClassifier
    >>> model = OCTSVMClassifier(max_depth=1, c1=20, c2=30, c3=0.1)
    >>> model.fit([[0], [1], [4], [5], [8], [9]], [0, 0, 1, 1, 0, 0]).predict([[0.5], [4.5], [8.5]]).tolist()
    [0, 1, 0]
    """

    formulation = "octsvm"
