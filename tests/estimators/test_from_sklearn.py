"""Fitted models of scikit-learn become trees that predict the same, and starts that no result is worse than."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import octsvm
from octsvm import api, from_sklearn, solvers
from octsvm.formulations.registry import formulation
from octsvm.heuristics import axis_start
from octsvm.heuristics.budget import Budget

SHORT: dict[str, Any] = {"work_limit": {"nodes": 1, "rounds": 1}}
IRIS = load_iris()
X, Y = IRIS.data, IRIS.target_names[IRIS.target]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, ExtraTreeClassifier])
def test_a_decision_tree_predicts_the_same_to_the_last_bit(kind: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(200, 3)) * 10.0 ** rng.integers(-3, 4, size=3)
    theirs = kind(max_depth=6, random_state=seed).fit(table, rng.integers(0, 3, 200))
    ours = from_sklearn(theirs)
    # Around every threshold: the numbers next to it, in doubles and in the float32 that scikit-learn compares in.
    used = theirs.tree_.feature >= 0
    j, t = theirs.tree_.feature[used], theirs.tree_.threshold[used]
    low = np.nextafter(t.astype(np.float32), np.float32(-np.inf)).astype(float)
    high = np.nextafter(t.astype(np.float32), np.float32(np.inf)).astype(float)
    here = t.astype(np.float32).astype(float)
    middles = [(here + low) / 2, (here + high) / 2]
    near = [
        t,
        here,
        low,
        high,
        *middles,
        *(np.nextafter(m, s) for m in [t, *middles] for s in (-np.inf, np.inf)),
    ]
    rows = np.repeat(table[:20], len(near), axis=0)
    for k, feature in enumerate(j):
        rows[:, feature] = np.tile([values[k] for values in near], 20)
        assert (ours.predict(rows) == theirs.predict(rows)).all()
    assert (ours.predict(table) == theirs.predict(table)).all()
    assert ours.splits.sum() + 1 == theirs.get_n_leaves()


def test_names_and_labels_are_those_of_the_fit() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    theirs = DecisionTreeClassifier(max_depth=2).fit(frame, Y)
    ours = from_sklearn(theirs)
    assert (ours.classes, ours.feature_names) == (("setosa", "versicolor", "virginica"), tuple("abcd"))
    assert (ours.predict(frame[list("dcba")]) == theirs.predict(frame)).all()
    assert from_sklearn(DecisionTreeClassifier().fit([[0.0], [1.0]], [5, 5])).predict([[3.0]]).tolist() == [5]
    assert octsvm.Tree.from_json(ours.to_json()).to_json() == ours.to_json()


@pytest.mark.parametrize(("solver", "formulation"), [("highs", "oct"), ("highs", "oct_h"), ("scip", "oct_h")])
@pytest.mark.slow_cases("scip-*")
def test_a_decision_tree_is_a_start(solver: str, formulation: str) -> None:
    if solvers.installed(solver) is None:
        pytest.skip(f"{solver} is not installed")
    rows = slice(None, None, 5)
    theirs = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X[rows], Y[rows])
    start = from_sklearn(theirs)
    cost = float((theirs.predict(X[rows]) != Y[rows]).sum()) + 0.1 * (theirs.get_n_leaves() - 1)
    model = octsvm.build(formulation, X[rows], Y[rows], depth=2, alpha=0.1)
    octsvm.embed(model, start)
    held = octsvm.extract(model)
    assert (held.predict(X[rows]) == theirs.predict(X[rows])).all()
    given = octsvm.solve(model, start=start, solver=solver, time_limit=20, **SHORT)
    assert given.objective <= cost + 1e-9
    for strategy in ("balanced", "exact", "heuristic"):
        params: dict[str, Any] = {"depth": 2, "alpha": 0.1, "strategy": strategy, "time_limit": 20, **SHORT}
        fitted = octsvm.fit(formulation, X[rows], Y[rows], start=start, solver=solver, **params)
        assert fitted.objective <= cost + 1e-9


@pytest.mark.parametrize("formulation", ["re_svm", "octsvm"])
@pytest.mark.parametrize(
    "machine",
    [LinearSVC(random_state=0), SVC(kernel="linear"), LogisticRegression(), RidgeClassifier()],
    ids=lambda m: type(m).__name__,
)
def test_a_linear_classifier_is_a_start(formulation: str, machine: Any) -> None:
    rows = slice(50, None, 4)
    machine.fit(X[rows], Y[rows])
    start = from_sklearn(machine)
    np.testing.assert_allclose(start.scores(X)[:, 0], machine.decision_function(X), atol=1e-9)
    assert (start.predict(X) == machine.predict(X)).all()
    params: dict[str, Any] = {"c1": 10.0, "c2": 20.0}
    priced = octsvm.evaluate(formulation, start, X[rows], Y[rows], **params)
    deeper = {} if formulation == "re_svm" else {"depth": 1}
    result = octsvm.fit(
        formulation, X[rows], Y[rows], start=start, strategy="exact", **params, **deeper, **SHORT
    )
    assert result.objective <= priced.objective * (1 + 1e-9)


def test_a_start_that_is_worse_than_none_says_so() -> None:
    rows = slice(50, None, 4)
    loud = SGDClassifier(random_state=0).fit(X[rows], Y[rows])  # whose scores are in the hundreds
    with pytest.raises(octsvm.TreeNotAdmitted, match=r"is worse than .*the best of the constant classifier"):
        octsvm.fit("re_svm", X[rows], Y[rows], start=from_sklearn(loud), strategy="exact", c1=10.0, c2=20.0)


def test_a_sparse_fit_is_one_too() -> None:
    data = load_breast_cancer()
    machine = SVC(kernel="linear").fit(sp.csr_array(data.data[:80, :5]), data.target[:80])
    assert (from_sklearn(machine).predict(data.data[:, :5]) == machine.predict(data.data[:, :5])).all()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (DecisionTreeClassifier(), "This DecisionTreeClassifier is not fitted"),
        (LinearSVC(), "fitted linear classifier.*Fit it first"),
        (DecisionTreeClassifier, "not this ABCMeta"),
        (KNeighborsClassifier().fit(X, Y), "not this KNeighborsClassifier"),
        (SVC().fit(X, Y), "SVC"),
        (DecisionTreeClassifier().fit([[np.nan], [1.0], [np.nan]], [0, 1, 0]), "table with gaps"),
        (LinearSVC().fit(X, Y), "separates 3 classes with 3 hyperplane"),
        (DecisionTreeClassifier().fit(X, np.column_stack([IRIS.target, IRIS.target])), "2 outputs"),
        (make_pipeline(StandardScaler(), LinearSVC()).fit(X, Y), r"Pipeline.*pipeline\[-1\]"),
    ],
)
def test_what_is_no_tree_of_ours(model: Any, words: str) -> None:
    with pytest.raises(octsvm.InvalidParameter, match=words):
        from_sklearn(model)


def test_a_tree_that_is_too_deep() -> None:
    rng = np.random.default_rng(0)
    deep = DecisionTreeClassifier().fit(rng.random((3000, 2)), rng.integers(0, 2, 3000))
    with pytest.raises(octsvm.InvalidParameter, match=r"at most 10.*max_depth=10"):
        from_sklearn(deep)
    two = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, Y)
    with pytest.raises(octsvm.TreeNotAdmitted, match="splits on 2 levels"):
        octsvm.fit("oct", X, Y, depth=1, start=from_sklearn(two))


def two_classes(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    table = rng.uniform(-3, 50, (50, 3))
    y = np.where((table[:, 0] > 25) & (table[:, 1] > 15), "up", "down")
    return table, octsvm.flip_labels(y, 0.06, seed)


def problem(name: str, table: Any, y: Any, **params: Any) -> tuple[Any, Any, Any]:
    form = formulation(name)
    checked = form.Params.make(name, **params)
    return form, checked, api.prepare(form, table, y, scale=True, weights=None, params=checked)


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_with_thresholds_has_hyperplanes_that_predict_the_same(seed: int) -> None:
    table, y = two_classes(seed)
    theirs = DecisionTreeClassifier(max_depth=3, random_state=seed).fit(table, y)
    _, params, data = problem("octsvm", table, y, depth=2)
    search = axis_start.TreeSearch(data.X, data.sign, data.weights, params, Budget(1.0), 0)
    planes = axis_start._hyperplanes(from_sklearn(theirs), data, search)
    ours = axis_start.as_margin_tree(planes, data, params)
    assert (ours.predict(table) == theirs.predict(table)).all()


@pytest.mark.parametrize(("name", "depth"), [("octsvm", 1), ("re_svm", 0)])
@pytest.mark.slow
def test_a_decision_tree_is_a_start_for_models_with_margins(name: str, depth: int) -> None:
    more = {"depth": depth, "c3": 0.1} if name == "octsvm" else {}
    table, y = two_classes(3)
    start = from_sklearn(DecisionTreeClassifier(max_depth=depth + 1, random_state=0).fit(table, y))
    form, params, data = problem(name, table, y, c1=5.0, c2=10.0, **more)
    made = axis_start.margin_tree_of(start, data, params, Budget(60.0, 30), 0)
    costs = {"c1": 5.0, "c2": 10.0} | {k: v for k, v in more.items() if k != "depth"}
    reached = octsvm.evaluate(name, made, table, y, **costs).objective
    constant = octsvm.evaluate(name, form.constant_tree(data, params), table, y, **costs).objective
    assert reached < constant
    oblique = octsvm.fit("oct_h", table, y, depth=depth + 1, **SHORT).tree
    assert oblique.splits.any()
    for tree in (start, oblique):
        result = octsvm.fit(
            name, table, y, start=tree, strategy="exact", c1=5.0, c2=10.0, **more, time_limit=1
        )
        assert result.objective <= constant
        assert result.tree.splits.any()


@pytest.mark.slow
def test_what_cannot_become_a_tree_with_margins_is_refused() -> None:
    table, y = two_classes(0)
    deep = from_sklearn(DecisionTreeClassifier(max_depth=4, random_state=0).fit(table, y))
    for start, kept, says in (
        (deep, {"depth": 1}, "more levels of splits than the model, which has 2"),
        (
            from_sklearn(DecisionTreeClassifier(max_depth=1).fit(table[:, :2], y)),
            {"depth": 1},
            "on 2 features",
        ),
        (
            from_sklearn(DecisionTreeClassifier(max_depth=1).fit(table, y == "up")),
            {"depth": 1},
            "the classes",
        ),
        (deep, {"depth": 3, "c1": 1e-9}, "what the best tree without a split costs"),
        (deep, {"depth": 3, "kernel": "rbf"}, "the model by kernel='rbf'"),
    ):
        with pytest.raises(octsvm.TreeNotAdmitted, match=says):
            octsvm.fit("octsvm", table, y, start=start, **kept, **SHORT)
    with pytest.raises(octsvm.TreeNotAdmitted, match=r"octsvm\.fit\(\.\.\., start=\)"):
        octsvm.build("octsvm", table, y, depth=3, start=deep)
    with pytest.raises(octsvm.InvalidParameter, match="from_sklearn"):
        octsvm.fit("oct", table, y, start=DecisionTreeClassifier().fit(table, y), **SHORT)


@pytest.mark.parametrize("kind", [octsvm.OCTClassifier, octsvm.OCTHClassifier, octsvm.OCTSVMClassifier])
def test_a_classifier_begins_with_a_tree_and_tells_how_far_it_is(kind: Any) -> None:
    table, y = two_classes(3)
    start = from_sklearn(DecisionTreeClassifier(max_depth=2, random_state=0).fit(table, y))
    told: list[octsvm.Progress] = []
    model = kind(max_depth=1 if kind is octsvm.OCTSVMClassifier else 2, time_limit=20)
    before = model.get_params()
    model.fit(table, y, start=start, callback=lambda progress: told.append(progress) or len(told) > 1)
    assert model.get_params() == before
    assert told
    assert model.tree_.splits.any()
    assert model.result_.stop == "interrupted" or model.result_.status == "optimal"


def test_a_start_goes_through_a_grid_search() -> None:
    table, y = two_classes(3)
    both = GridSearchCV(octsvm.OCTClassifier(max_depth=1, **SHORT), {"random_state": [0, 1]}, cv=2)
    stump = from_sklearn(DecisionTreeClassifier(max_depth=1).fit(table, y))
    assert both.fit(table, y, start=stump).best_estimator_.tree_.splits.any()


def test_one_start_is_none_for_several_trees() -> None:
    start = from_sklearn(DecisionTreeClassifier(max_depth=1).fit(X, Y))
    with pytest.raises(octsvm.InvalidParameter, match="start= is one tree"):
        octsvm.RESVMClassifier(multi_class="ovr").fit(X, Y, start=start)
