"""The classifiers that choose their parameters."""

from __future__ import annotations

import inspect
import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import octsvm
from octsvm import (
    MOCTSVMClassifierCV,
    OCTClassifierCV,
    OCTHClassifierCV,
    OCTSVMClassifierCV,
    RESVMClassifierCV,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:A limit ended this fit"),
    pytest.mark.filterwarnings("ignore:y holds one class only"),
]
ALL = [OCTClassifierCV, OCTHClassifierCV, RESVMClassifierCV, OCTSVMClassifierCV, MOCTSVMClassifierCV]
SHORTEST: dict[str, Any] = {"work_limit": {"nodes": 1, "rounds": 1}, "gap": 0.99, "folds": 2, "repeats": 1}
TWO: dict[str, Any] = {"c1": [2.0, 8.0], "c2": [100.0]}


@pytest.mark.slow
@parametrize_with_checks(
    [
        OCTSVMClassifierCV(grid=TWO | {"max_depth": [0], "c3": [0.01]}, relative=True, **SHORTEST),
        RESVMClassifierCV(grid=TWO, relative=True, multi_class="ovr", strategy="exact", **SHORTEST),
        OCTClassifierCV(grid={"max_depth": [2], "alpha": [0.01, 0.1]}, relative=True, **SHORTEST),
    ]
)
@pytest.mark.every_value
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
def test_a_kernel_is_chosen_where_auto_is_asked_for() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where((X**2).sum(axis=1) > 1.4, "out", "in")
    model = RESVMClassifierCV(kernel="auto", c2=100.0, **SHORTEST).fit(X, y)
    assert model.best_params_["kernel"] == "rbf"
    assert model.best_params_["gamma"] > 0
    assert model.tree_.kind == "kernel_margin"
    assert model.score(X, y) > 0.9


def data(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).random((n, 2))
    return X, np.where(X[:, 0] + X[:, 1] > 1, "up", "down")


@pytest.mark.parametrize("cls", ALL[:-1])  # MOCTSVM's parameters are those of OCTSVM
@pytest.mark.quick_cases("OCTClassifierCV", "OCTHClassifierCV", "RESVMClassifierCV")
def test_what_is_none_is_chosen_and_what_is_given_stays(cls: Any) -> None:
    X, y = data(24)
    grid = {"alpha": [0.01, 0.1]} if "alpha" in cls.chosen else {"c1": [4.0], "c2": [3.0, 100.0]}
    fixed = {} if cls is RESVMClassifierCV else {"max_depth": 0 if cls is OCTSVMClassifierCV else 1}
    model = cls(grid=grid, relative=True, **fixed, **SHORTEST).fit(X, y)
    assert all(model.get_params()[name] is None for name in grid)
    assert {k: model.result_.params[k] for k in model.tuning_.choice} == model.tuning_.choice
    assert model.tree_.depth == fixed.get("max_depth", 0)
    assert model.tuning_.frame()["chosen"].sum() == 1
    assert model.score(X, y) >= 0.75
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X) == model.predict(X)).all()
    assert (cls.from_json(model.to_json()).predict(X) == model.predict(X)).all()


def test_a_second_fit_chooses_anew() -> None:
    X, y = data()
    model = OCTSVMClassifierCV(grid=TWO | {"max_depth": [0], "c3": [0.01]}, relative=True, **SHORTEST)
    first = model.fit(X, y).tuning_
    assert model.fit(X[:20], y[:20]).tuning_.choice != first.choice  # costs are those of 20 rows
    model.fit(X, y, np.full(40, 2.0))
    assert (model.result_.terms["errors"] > 0) == (model.result_.counts["errors"] > 0)


@pytest.mark.parametrize(
    ("weights", "class_weight"),
    [(None, None), ([1, 2, 3] * 10, "balanced"), ([0, 1, 2] * 10, {"up": 2.0, "down": 1.0})],
)
def test_repeated_rows_are_judged_as_by_tune(weights: Any, class_weight: Any) -> None:
    X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]] * 10)
    y = np.where(np.arange(30) % 7 == 0, "down", np.where(X[:, 0] > 0, "up", "down"))
    folds: dict[str, Any] = {"relative": True, "folds": 3, "repeats": 1}
    grid = {"alpha": [0.01, 0.2]}
    more = {"class_weight": class_weight, "refit": False, "depth": 1}
    tuned = octsvm.tune("oct", X, y, grid, weights=weights, **more, **folds)
    model = OCTClassifierCV(max_depth=1, grid=grid, class_weight=class_weight, **folds).fit(X, y, weights)
    assert model.best_score_ == tuned.accuracy > 0.6
    assert model.best_params_["alpha"] == pytest.approx(tuned.choice["alpha"])


@pytest.mark.slow
def test_weights_of_classes_without_weighted_rows_and_several_trees() -> None:
    X, y = np.repeat([[0.0], [1.0], [2.0]], 4, axis=0), np.repeat(["a", "b", "c"], 4)
    folds: dict[str, Any] = {"class_weight": {"a": 1, "b": 2, "c": 1}, **SHORTEST}
    assert OCTClassifierCV(max_depth=1, **folds).fit(X, y, y != "c").best_score_ == 1
    many = RESVMClassifierCV(grid=TWO, relative=True, multi_class="ovr", **folds).fit(X, y, [1, 2] * 6)
    assert [one.tuning_.folds_judged for one in many.estimators_] == [2, 2, 2]


def test_choosing_and_fitting_share_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    known = octsvm.fit

    def watched(*table: Any, **options: Any) -> Any:
        asked.append(options["time_limit"])
        return known(*table, **options)

    monkeypatch.setattr(octsvm.api, "fit", watched)
    grid = TWO | {"max_depth": [0], "c3": [0.01]}
    model = OCTSVMClassifierCV(grid=grid, relative=True, **SHORTEST, time_limit=200).fit(*data())
    assert asked == [200 - model.tuning_.seconds]
    assert model.get_params()["time_limit"] == 200
    with pytest.raises(octsvm.InvalidParameter, match="time_limit=-1 should"):
        OCTSVMClassifierCV(time_limit=-1).fit(*data())


@pytest.mark.slow
def test_folds_that_the_limit_left_out_are_a_warning() -> None:
    model = RESVMClassifierCV(grid=TWO, relative=True, **SHORTEST | {"repeats": 500}, time_limit=1)
    with pytest.warns(ConvergenceWarning, match=r"(\d+|none) of 1000 folds.* time_limit=1 ") as said:
        model.fit(*data())
    assert said[0].filename == __file__
    assert model.tuning_.folds_judged < model.tuning_.folds_wanted == 1000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(repeats=1, time_limit=300).fit(*data())


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.quick_cases("OCTClassifierCV")
def test_what_users_of_searches_look_for(cls: Any) -> None:
    documented = set(re.findall(r"^(\w+) : ", inspect.getdoc(cls) or "", re.MULTILINE))
    assert set(inspect.signature(cls).parameters) <= documented
    assert {"tuning_", "best_params_", "tree_", "relabelled_"} <= documented
    assert (inspect.getdoc(cls) or "").count("time_limit : float") == 1
    with pytest.raises(TypeError, match="Say folds= instead of cv="):
        cls(cv=3)
    X, y = data()
    name = "alpha" if "alpha" in cls.chosen else "c1"
    with pytest.raises(octsvm.InvalidParameter, match=rf"grid=.'{name}': \[1, 10\]"):
        cls(**{name: [1, 10]}).fit(X, y)
    assert not hasattr(cls(), "best_params_")
    grid = {name: [0.1, 1.0]} if name == "alpha" else {"c1": [4.0, 5.0]}
    fixed = {} if cls is RESVMClassifierCV else {"max_depth": 0}
    model = cls(grid=grid, strategy="exact", **fixed, **SHORTEST).fit(X, y)
    assert model.best_params_[name] in grid[name]
    assert model.best_score_ == model.tuning_.accuracy


def test_nested_cross_validation_is_one_line() -> None:
    found = cross_val_score(RESVMClassifierCV(grid=TWO, relative=True, **SHORTEST), *data(), cv=2)
    assert found.min() > 0.6


def test_wrong_input_names_the_classifiers_parameters() -> None:
    with pytest.raises(octsvm.InvalidParameter, match="rule"):
        OCTSVMClassifierCV(rule="luck").fit(*data())
    with pytest.raises(octsvm.InvalidParameter, match=r"^n_jobs=0"):
        OCTSVMClassifierCV(n_jobs=0).fit(*data())
    with pytest.raises(octsvm.InvalidParameter, match="max_depth"):
        OCTSVMClassifierCV(grid={"max_depth": [1]}, max_depth=2).fit(*data())


@pytest.mark.parametrize(
    ("name", "says"), [("depth", "max_depth="), ("C", "c1="), ("max_dept", "'max_depth'")]
)
def test_a_grid_takes_the_names_of_the_classifier(name: str, says: str) -> None:
    for grid in ({name: [1]}, [{"c1": [1.0]}, {name: [1]}]):
        with pytest.raises(octsvm.InvalidParameter, match=f"grid has '{name}'.*{says}"):
            OCTSVMClassifierCV(grid=grid, **SHORTEST).fit(*data())


def test_a_grid_of_a_parameter_that_has_a_default() -> None:
    model = OCTClassifierCV(grid={"min_samples_leaf": [2, 3]}, max_depth=1, **SHORTEST).fit(*data())
    assert model.best_params_["min_samples_leaf"] in (2, 3)
    with pytest.raises(octsvm.InvalidParameter, match="name it once"):
        model.set_params(min_samples_leaf=4).fit(*data())
