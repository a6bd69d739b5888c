"""Fitted models of scikit-learn as trees of ours, to begin a fit with."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from ..errors import InvalidParameter
from ..formulations.base import Scaling
from ..formulations.heap import children, rightmost
from ..formulations.params import MAX_DEPTH
from ..formulations.read_matrix import MadeUpNames
from ..formulations.trees import AxisTree, MarginTree


def from_sklearn(model: Any) -> AxisTree | MarginTree:
    """A fitted decision tree, or a linear classifier of two classes, as a tree of ours that predicts the same.

    ``octsvm.fit(..., start=octsvm.from_sklearn(model))`` begins with it: the result is never worse. A decision tree is a start
    for "oct" and "oct_h", a linear classifier for "re_svm" and "octsvm" of any depth; for these two a fit turns the thresholds of
    a decision tree into hyperplanes and optimises them. One that costs more than the best tree without a split is no
    start for them: TreeNotAdmitted says so.

    Parameters
    ----------
    model : estimator
        A fitted DecisionTreeClassifier, or a classifier with ``coef_`` (1, p) and ``intercept_`` (LinearSVC, SVC with
        kernel="linear", LogisticRegression, ...), fitted to the features in the units that ours is fitted in.

    Returns
    -------
    AxisTree or MarginTree
        Without a table: its features are taken as they are. The float32 in which scikit-learn's trees compare is kept
        to the last bit; a linear score of exactly 0 is the second class here.

    Raises
    ------
    InvalidParameter
        It is neither, is not fitted, is deeper than trees of ours can be, or has several outputs or more classes.
    """
    kind = type(model).__name__
    if isinstance(model, Pipeline):
        raise InvalidParameter(
            "A Pipeline's last step knows the features as its other steps change them. Fit the tree or the linear classifier to "
            "the table itself (trees need no scaling; ours scale by themselves), or pass pipeline[-1] and fit to "
            "pipeline[:-1].transform(X)."
        )
    if not (
        isinstance(model, DecisionTreeClassifier) or hasattr(type(model), "coef_") or hasattr(model, "coef_")
    ):
        fitted = isinstance(model, type) or not hasattr(model, "classes_")
        raise InvalidParameter(
            f"from_sklearn takes a fitted DecisionTreeClassifier or a fitted linear classifier of two classes, not this {kind}."
            + (" Fit it first, where it is one." if fitted else "")
        )
    try:
        check_is_fitted(model)
    except ValueError:
        raise InvalidParameter(f"This {kind} is not fitted. Call its fit(X, y) first.") from None
    return _axis_tree(model) if isinstance(model, DecisionTreeClassifier) else _hyperplane(model, kind)


def _names(model: Any) -> tuple[str, ...]:
    named = getattr(model, "feature_names_in_", None)
    return MadeUpNames.of(int(model.n_features_in_)) if named is None else tuple(map(str, named))


def _axis_tree(model: DecisionTreeClassifier) -> AxisTree:
    if model.n_outputs_ > 1:
        raise InvalidParameter(
            f"This tree predicts {model.n_outputs_} outputs, and ours predict one. Fit one tree for each."
        )
    depth, theirs = int(model.get_depth()), model.tree_
    if depth > MAX_DEPTH:
        raise InvalidParameter(
            f"This tree has {depth} levels of splits, and trees of ours have at most {MAX_DEPTH}. Fit it with max_depth="
            f"{MAX_DEPTH} or less: that of the model that it is to be the start of."
        )
    B = 2**depth - 1
    feature, threshold = np.full(B, -1, dtype=np.int64), np.zeros(B)
    label = np.zeros(B + 1, dtype=np.int64)
    waiting = [(0, 1)]
    while waiting:
        node, t = waiting.pop()
        if theirs.children_left[node] < 0:
            label[rightmost(t, depth) - B - 1] = int(theirs.value[node, 0].argmax())
            continue
        feature[t - 1], threshold[t - 1] = theirs.feature[node], _below(float(theirs.threshold[node]))
        left, right = children(t)
        waiting += [(theirs.children_left[node], left), (theirs.children_right[node], right)]
    if not np.isfinite(threshold).all():
        raise InvalidParameter(
            "This tree was fitted to a table with gaps and splits on whether a value is missing; ours know no gaps. Fit it to the "
            "table that ours is fitted to."
        )
    names = _names(model)
    scaling = Scaling.identity(len(names))
    return AxisTree(depth, tuple(model.classes_.tolist()), names, scaling, feature, threshold, label)


def _below(threshold: float) -> float:
    """The number that exactly those stay below which, rounded to float32, are at most ``threshold``."""
    last = np.float32(threshold)
    if float(last) > threshold:
        last = np.nextafter(last, np.float32(-np.inf))
    middle = (float(last) + float(np.nextafter(last, np.float32(np.inf)))) / 2
    # The middle itself is rounded to the even neighbour.
    return middle if float(np.float32(middle)) > threshold else float(np.nextafter(middle, np.inf))


def _hyperplane(model: Any, kind: str) -> MarginTree:
    weights = getattr(model, "coef_", None)
    if weights is None:
        raise InvalidParameter(
            f"This {kind} has no coef_, and is no linear classifier (kernel='linear' in SVC)."
        )
    weights = weights.toarray() if hasattr(weights, "toarray") else weights
    weights = np.atleast_2d(np.asarray(weights, dtype=float))  # of two classes RidgeClassifier has a vector
    classes = getattr(model, "classes_", None)
    if len(weights) != 1 or classes is None or len(classes) != 2:
        count = "none" if classes is None else len(classes)
        raise InvalidParameter(
            f"This {kind} separates {count} classes with {len(weights)} hyperplane(s), and one between two is "
            "wanted. The models with margins separate two classes; fit it to those."
        )
    names = _names(model)
    intercept = np.asarray(model.intercept_, dtype=float).reshape(-1)[:1]
    return MarginTree(
        0,
        tuple(classes.tolist()),
        names,
        Scaling.identity(len(names)),
        weights,
        intercept,
        np.array([bool(weights.any())]),
    )
