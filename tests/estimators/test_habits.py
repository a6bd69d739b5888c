"""What people bring along from scikit-learn: sizes of trees, figures of features, selections by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.tree import DecisionTreeClassifier

import octsvm
from octsvm import MOCTSVMClassifier, OCTClassifier, OCTHClassifier, OCTSVMClassifier, RESVMClassifier
from octsvm.formulations.base import Scaling

ALL = [OCTClassifier, OCTHClassifier, RESVMClassifier, OCTSVMClassifier, MOCTSVMClassifier]
SHORT: dict[str, Any] = {"work_limit": {"nodes": 1, "rounds": 1}}


def around(theirs: DecisionTreeClassifier, X: Any, y: Any) -> OCTClassifier:
    """A classifier of ours that holds the tree of scikit-learn's, node by node."""
    depth, tree = theirs.get_depth(), theirs.tree_
    feature, threshold = np.full(2**depth - 1, -1), np.zeros(2**depth - 1)
    label = np.zeros(2**depth, dtype=int)

    def place(node: int, t: int) -> None:
        if tree.children_left[node] >= 0:
            feature[t - 1], threshold[t - 1] = tree.feature[node], tree.threshold[node]
            place(tree.children_left[node], 2 * t)
            place(tree.children_right[node], 2 * t + 1)
            return
        while t < 2**depth:
            t = 2 * t + 1
        label[t - 2**depth] = tree.value[node].argmax()

    place(0, 1)
    names = tuple(f"x{j + 1}" for j in range(X.shape[1]))
    model = OCTClassifier(max_depth=1, **SHORT).fit(X, y)
    model.tree_ = octsvm.AxisTree(
        depth, (0, 1, 2), names, Scaling.identity(X.shape[1]), feature, threshold, label
    )
    model.node_weights_ = model._weights_at_nodes(X, y, np.ones(len(y)))
    return model


def test_sizes_and_importances_of_a_tree_are_those_of_scikit_learn() -> None:
    X, y = load_iris(return_X_y=True)
    for leaves in (2, 5, 9):
        theirs = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0).fit(X, y)
        ours = around(theirs, X, y)
        assert (ours.predict(X) == theirs.predict(X)).all()
        assert ours.get_depth() == theirs.get_depth()
        assert ours.get_n_leaves() == theirs.get_n_leaves()
        np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-12)


@pytest.mark.parametrize("cls", ALL)
def test_sizes_are_those_of_the_paths(cls: Any) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:60, :4], y[:60]
    model = cls(**SHORT, time_limit=20).fit(X, y)
    box = np.random.default_rng(0).uniform(X.min(axis=0), X.max(axis=0), (5000, 4))
    rows = np.vstack([X, box])
    lengths = model.decision_path(rows).toarray().sum(axis=1)
    assert model.get_depth() >= lengths.max() - 1
    assert model.get_n_leaves() >= len(np.unique(model.apply(rows)))
    assert model.get_depth() < model.get_n_leaves() <= 2 ** model.get_depth()
    assert octsvm.export_text(model).count("class") == model.get_n_leaves()


@pytest.mark.parametrize("cls", ALL)
def test_importances_do_not_know_units_and_a_useless_tree_has_none(cls: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.random((30, 3))
    y = (X[:, 1] > 0.5).astype(int)
    one = cls(**SHORT).fit(X, y)
    found = one.feature_importances_
    assert found.shape == (3,)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    assert found.argmax() == 1
    other = cls(**SHORT).fit(X * [1, 1024, 1], y)
    np.testing.assert_allclose(other.feature_importances_, found, atol=1e-9)
    with pytest.warns(UserWarning, match="one class only"):
        none = cls().fit(X, np.zeros(30))
    assert none.feature_importances_.tolist() == [0.0, 0.0, 0.0]
    assert (none.get_depth(), none.get_n_leaves()) == (0, 1)


@pytest.mark.parametrize("cls", ALL)
def test_nothing_before_a_fit(cls: Any) -> None:
    model = cls()
    for ask in (model.get_depth, model.get_n_leaves, lambda: model.feature_importances_):
        with pytest.raises(NotFittedError):
            ask()
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("machine", [RESVMClassifier(), OCTSVMClassifier(max_depth=0)])
def test_a_hyperplane_is_the_decision_function(machine: Any) -> None:
    X, y = load_iris(return_X_y=True)
    X = X * [1, 10, 0.1, 5] + 3
    two = machine.set_params(**SHORT).fit(X[50::4], y[50::4])
    assert two.coef_.shape == (1, 4)
    np.testing.assert_allclose(X @ two.coef_[0] + two.intercept_[0], two.decision_function(X), atol=1e-9)
    many = machine.set_params(multi_class="ovr").fit(X[::8], y[::8])
    np.testing.assert_allclose(X @ many.coef_.T + many.intercept_, many.decision_function(X), atol=1e-9)
    assert many.feature_importances_.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        (OCTSVMClassifier(max_depth=1), "may split below its root"),
        (RESVMClassifier(kernel="rbf"), "has a kernel"),
    ],
)
def test_no_hyperplane_no_coefficients(machine: Any, why: str) -> None:
    X, y = load_iris(return_X_y=True)
    machine.set_params(**SHORT).fit(X[50::5], y[50::5])
    with pytest.raises(AttributeError, match=why):
        _ = machine.coef_
    assert not hasattr(machine, "intercept_")
    assert hasattr(machine, "feature_importances_") is (why != "has a kernel")
    if why == "has a kernel":
        with pytest.raises(AttributeError, match="permutation_importance"):
            _ = machine.feature_importances_


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("getter", ["auto", "feature_importances_"])
def test_features_are_selected(cls: Any, getter: str) -> None:
    X = np.random.default_rng(2).random((16, 3))
    y = (X[:, 2] > 0.5).astype(int)
    costs = {"c1": 10, "c2": 12} if cls in (RESVMClassifier, OCTSVMClassifier) else {}
    depth = {} if cls is RESVMClassifier else {"max_depth": 0 if cls is OCTSVMClassifier else 1}
    model = cls(**depth, **costs, **SHORT)
    rest = RFE(model, n_features_to_select=1, importance_getter=getter).fit(X, y)
    assert rest.get_support().tolist() == [False, False, True]
    chosen = SelectFromModel(model, importance_getter=getter).fit(X, y)
    assert chosen.get_support()[2]


def test_importances_are_kept_in_a_saved_classifier() -> None:
    X, y = load_iris(return_X_y=True)
    model = OCTHClassifier(max_depth=1, **SHORT).fit(X, y)
    again = OCTHClassifier.from_json(model.to_json())
    assert again.feature_importances_.tolist() == model.feature_importances_.tolist()
    assert again.get_depth() == model.get_depth() == 1


@pytest.mark.parametrize("cls", [c for c in ALL if c is not RESVMClassifier])
def test_an_open_depth_is_refused_with_what_to_say(cls: Any) -> None:
    with pytest.raises(
        octsvm.InvalidParameter, match=r"max_depth=None.*Start with max_depth=2 \(the default\)"
    ):
        cls(max_depth=None).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(octsvm.InvalidParameter, match="Start with depth=2"):
        octsvm.fit(cls.formulation, [[0.0], [1.0]], [0, 1], depth=None)
