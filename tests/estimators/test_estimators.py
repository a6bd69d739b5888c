"""The classifiers keep scikit-learn's contract, and hand the models what they are given."""

from __future__ import annotations

import inspect
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from places import ROOT
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from waiting import PATIENCE, wait_until

import octsvm
from octsvm import MOCTSVMClassifier, OCTClassifier, OCTHClassifier, OCTSVMClassifier, RESVMClassifier
from octsvm.exports._decision_paths import weights_at_nodes
from octsvm.formulations.registry import formulation
from octsvm.options import ESTIMATOR, declarations

# Most fits here end at a limit, and what they say of it is not what is looked at.
pytestmark = pytest.mark.filterwarnings("ignore:A limit ended this fit")
ALL = [OCTClassifier, OCTHClassifier, RESVMClassifier, OCTSVMClassifier, MOCTSVMClassifier]
MARGIN = [RESVMClassifier, OCTSVMClassifier]
LEAFY = [OCTClassifier, OCTHClassifier, MOCTSVMClassifier]
TREES = [cls for cls in ALL if cls is not MOCTSVMClassifier]  # whose trees are those of OCT-H
SHORT: dict[str, Any] = {"work_limit": {"nodes": 1, "rounds": 1}}
# Work and gap end these, not the clock: what a fit finds must not depend on how busy the machine is.
SHORTEST: dict[str, Any] = SHORT | {"gap": 0.99, "time_limit": 300}
OWN = {*declarations(ESTIMATOR), "random_state", "warm_start", "verbose", "class_weight"}

# No check is left out, and none is expected to fail.
CHECKED = [
    OCTClassifier(strategy="heuristic", **SHORTEST),
    OCTClassifier(**SHORTEST),
    OCTHClassifier(**SHORTEST),
    RESVMClassifier(**SHORTEST),
    OCTSVMClassifier(max_depth=1, **SHORTEST),
    RESVMClassifier(kernel="rbf", **SHORTEST),
    OCTSVMClassifier(max_depth=1, kernel="poly", coef0=1.0, **SHORTEST),
    # Of several or dear fits, without a search for a start.
    RESVMClassifier(multi_class="ovr", norm="l1", strategy="exact", **SHORTEST),
    MOCTSVMClassifier(strategy="exact", **SHORTEST),
]
NEED_A_GOOD_TREE = ("check_classifiers_train", "check_classifiers_classes")


@parametrize_with_checks(CHECKED)
@pytest.mark.quick_cases("OCTClassifier(gap=0.99,strategy*")
@pytest.mark.slow_cases("*-check_estimator_sparse_*")
@pytest.mark.every_value
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    if estimator.strategy == "exact" and check.func.__name__ in NEED_A_GOOD_TREE:
        estimator = clone(estimator).set_params(strategy="balanced")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "y holds one class only")
        check(estimator)


def small(cls: Any, **params: Any) -> Any:
    """The classifier with a depth that is proved optimal at once on a dozen rows."""
    depth = {} if cls is RESVMClassifier else {"max_depth": 1 if cls in LEAFY else 0}
    return cls(**{**depth, "time_limit": 30, **params})


def table(n: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows either side of a line, none near it, with one label wrong."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (6 * n, 2))
    X = X[abs(X.sum(axis=1) - 10) > 2][:n]
    y = np.where(X.sum(axis=1) > 10, "blue", "red")
    y[0] = "red" if y[0] == "blue" else "blue"
    return X, y


# -- parameters ---------------------------------------------------------------------------------------------


def test_a_subclass_keeps_its_own_initialiser_and_defaults() -> None:
    class Mine(OCTClassifier):
        formulation = "oct"
        time_limit = 5

        def __init__(self, *, max_depth: int = 3) -> None:
            super().__init__(max_depth=max_depth)
            self.mine = 1

    class Plain(OCTClassifier):
        pass

    assert (Mine().max_depth, Mine().mine, Mine.time_limit) == (3, 1, 5)
    assert Mine().get_params() == {"max_depth": 3}
    assert Plain(max_depth=1, alpha=0.1).fit([[0], [1]], ["a", "b"]).predict([[2]]).tolist() == ["b"]
    with pytest.raises(TypeError, match="OCTClassifier: got an unexpected keyword argument 'dept'"):
        OCTClassifier(dept=3)
    with pytest.raises(TypeError, match="OCTClassifier: too many positional arguments"):
        OCTClassifier(3)


@pytest.mark.parametrize("cls", ALL)
def test_every_parameter_of_the_model_is_there_with_its_default(cls: Any) -> None:
    names = {"depth": "max_depth", "n_min": "min_samples_leaf"}
    wanted = {names.get(k, k): f.default for k, f in formulation(cls.formulation).Params.model_fields.items()}
    params = {p.name: p for p in list(inspect.signature(cls).parameters.values())}
    assert set(params) == set(wanted) | OWN | ({"multi_class"} if cls in MARGIN else set())
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in params.values())
    for name, default in wanted.items():
        if name != "mu_svm":  # None there, as the printed rows tell whether it was given
            assert params[name].default == default
    defaults = inspect.signature(octsvm.fit).parameters
    for name in declarations(ESTIMATOR):
        # scikit-learn's tools take "highs" for a choice of the user's.
        assert params[name].default == (None if name == "solver" else defaults[name].default)
    lines = inspect.getdoc(cls).splitlines()  # type: ignore[union-attr]
    told = {
        name
        for line in lines
        if " : " in line or "random_state, " in line
        for name in line.split(" : ")[0].split(", ")
    }
    assert told >= set(params)


@pytest.mark.parametrize("cls", ALL)
def test_the_models_get_the_parameters(cls: Any) -> None:
    X, y = table()
    own = {
        "variant": "bd",
        "alpha": 0.3,
        "min_samples_leaf": 2,
        "complexity": "features",
        "error_scale": "baseline",
    }
    if cls is OCTHClassifier:
        own["mu"] = 0.02
    if cls is MOCTSVMClassifier:
        own = {"variant": "levels", "c1": 0.7, "c2": 0.9, "c3": 0.4, "mu_svm": 0.01, "norm": "l1"}
    if cls in MARGIN:
        own = {"variant": "paper", "c1": 0.7, "c2": 0.9, "norm": "l1", "big_m": 500.0}
    if cls is OCTSVMClassifier:
        own |= {"c3": 0.4, "mu_svm": 0.01}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a big_m that is not the proved one
        result = small(cls, **own).fit(X, y).result_
    names = {"max_depth": "depth", "min_samples_leaf": "n_min"}
    for name, value in own.items():
        assert result.params[names.get(name, name)] == value


@pytest.mark.parametrize("cls", TREES)
def test_a_fit_is_that_of_octsvm_fit(cls: Any) -> None:
    X, y = table(20)
    model = small(cls, **SHORT).fit(X, y)
    depth = {} if cls is RESVMClassifier else {"depth": model.max_depth}
    result = octsvm.fit(cls.formulation, X, y, **depth, **SHORT)
    assert model.result_.solver == result.solver
    assert model.tree_.to_json() == result.tree.to_json()  # type: ignore[union-attr]
    assert (model.bound_, model.gap_) == (result.bound, result.gap)
    assert model.result_.tree is model.tree_


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"max_depth": -1}, "max_depth=-1"),
        ({"max_depth": None}, "max_depth=None"),
        ({"min_samples_leaf": 0}, "min_samples_leaf=0"),
        ({"min_samples_leaf": 50}, "Give at most 12"),
        ({"time_limit": 0}, "time_limit=0"),
        ({"random_state": -1}, "random_state=-1"),
        ({"random_state": 1.5}, "random_state=1.5 should"),
        ({"random_state": np.random.default_rng(0)}, "random_state=Generator.* should"),
        ({"class_weight": "heavy"}, "class_weight='heavy'"),
        ({"class_weight": {"zzz": 2}}, "a weight for 'zzz', which is no label in y. There are "),
        ({"class_weight": {"zzz": "2"}}, "gives 'zzz' the weight '2'"),
        ({"class_weight": {"zzz": -1}}, "gives 'zzz' the weight -1"),
        ({"strategy": "fast"}, "strategy='fast'"),
    ],
)
def test_what_is_not_allowed_is_named_as_it_was_given(params: dict[str, Any], words: str) -> None:
    with pytest.raises(octsvm.InvalidParameter, match=words) as caught:
        OCTClassifier(**params).fit(*table())
    assert "n_min" not in str(caught.value)


def test_random_state_may_be_a_generator_or_none() -> None:
    X, y = table()
    for state in (None, 3, np.int64(3), np.random.RandomState(0)):
        assert small(OCTClassifier, random_state=state).fit(X, y).gap_ <= 1e-4


# -- predictions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", TREES)
@pytest.mark.quick_cases("OCTClassifier", "OCTSVMClassifier")
def test_predictions_agree_with_each_other(cls: Any) -> None:
    X, y = table(20, seed=4)
    model = small(cls, **SHORT).fit(X, y)
    Z = np.vstack([X, np.random.default_rng(1).uniform(-20, 30, (500, 2))])
    predicted, share, score = model.predict(Z), model.predict_proba(Z), model.decision_function(Z)
    assert (model.classes_[share.argmax(axis=1)] == predicted).all()
    assert (model.classes_[(score > 0).astype(int)] == predicted).all()
    np.testing.assert_allclose(share.sum(axis=1), 1, rtol=0, atol=4e-16)
    leaf = model.apply(Z)
    for t in np.unique(leaf):
        assert len(set(predicted[leaf == t])) == 1
    marks = model.decision_path(Z).toarray()
    for i, t in enumerate(leaf):
        way = []
        while t:
            way.append(int(t) - 1)
            t //= 2
        assert np.flatnonzero(marks[i]).tolist() == sorted(way)


@pytest.mark.parametrize("cls", [OCTClassifier, OCTHClassifier])
@pytest.mark.quick_cases("OCTClassifier")
def test_probabilities_are_the_shares_of_the_training_weight(cls: Any) -> None:
    X, y = (part[::6] for part in load_iris(return_X_y=True))
    weights = np.random.default_rng(0).integers(1, 4, 25).astype(float)
    model = cls(max_depth=1, **SHORT).fit(X, y, sample_weight=weights)
    leaf, share = model.apply(X), model.predict_proba(X)
    assert share.shape == (25, 3)
    for t in np.unique(leaf):
        rows = leaf == t
        totals = np.array([weights[rows & (y == k)].sum() for k in range(3)])
        np.testing.assert_allclose(share[rows], np.tile(totals / totals.sum(), (rows.sum(), 1)), rtol=1e-15)
    assert (model.decision_function(X) == share).all()
    assert model.node_weights_[0].tolist() == [weights[y == k].sum() for k in range(3)]


def by_hand(cls: Any, tree: Any, X: Any, y: Any) -> Any:
    """A fitted classifier around a tree that was made elsewhere."""
    model = small(cls, **SHORT).fit(X, y)
    model.tree_ = tree
    position = np.searchsorted(model.classes_, y)
    model.node_weights_ = weights_at_nodes(
        tree, np.asarray(X, float), position, np.ones(len(y)), len(model.classes_)
    )
    return model


def test_a_tie_and_a_leaf_with_a_lighter_class_follow_the_tree() -> None:
    from octsvm.formulations.base import Scaling

    X, y = [[0.0], [0.0], [1.0], [1.0], [1.0], [3.0]], np.array([0, 1, 0, 0, 1, 1])
    for labels in ([0, 1, 1, 1], [1, 1, 1, 0]):
        tree = octsvm.AxisTree(
            2,
            (0, 1),
            ("x1",),
            Scaling.identity(1),
            np.array([0, 0, 0]),
            np.array([0.5, -1.0, 2.0]),
            np.array([0, *labels[1:]]),
        )
        model = by_hand(OCTClassifier, tree, X, y)
        Z = [[-2.0], [0.0], [1.0], [3.0]]
        predicted, share = model.predict(Z), model.predict_proba(Z)
        assert (share.argmax(axis=1) == predicted).all()
        assert ((model.decision_function(Z) > 0) == predicted).all()
        np.testing.assert_allclose(share[0], [0.5, 0.5], atol=1e-15)  # no row there: the parent's two


def test_scores_of_the_margin_models_are_those_of_the_deciding_split() -> None:
    X = np.linspace(0, 1, 9)[:, None]
    y = np.array([0, 0, 0, 1, 1, 1, 0, 0, 0])
    model = OCTSVMClassifier(max_depth=1, c1=20, c2=30, c3=0.1).fit(X, y)
    assert model.result_.status == "optimal"
    assert (model.predict(X) == y).all()
    scores = model.tree_.scores(X)
    for i, t in enumerate(model.apply(X)):
        assert model.decision_function(X)[i] == scores[i, t // 2 - 1]
    assert (np.abs(model.decision_function(X)) >= 1 - 1e-6).all()


def test_a_score_of_zero_goes_right() -> None:
    from octsvm.formulations.base import Scaling

    X, y = [[0.0], [0.25], [0.75], [1.0]], [0, 0, 1, 1]
    tree = octsvm.MarginTree(
        0, (0, 1), ("x1",), Scaling.identity(1), np.array([[2.0]]), np.array([-1.0]), np.array([True])
    )
    model = by_hand(RESVMClassifier, tree, X, y)
    assert model.predict([[0.5]]).tolist() == [1]
    assert 0 < model.decision_function([[0.5]])[0] < 1e-300
    assert model.predict_proba([[0.5]]).argmax() == 1
    assert model.apply([[0.5]]).tolist() == [3]


@pytest.mark.parametrize("cls", ALL)
def test_one_class_is_predicted_everywhere(cls: Any) -> None:
    with pytest.warns(UserWarning, match="one class only"):
        model = small(cls).fit([[0.0], [1.0]], ["a", "a"])
    assert model.predict([[5.0]]).tolist() == ["a"]
    assert model.predict_proba([[5.0]]).tolist() == [[1.0]]
    with pytest.warns(UserWarning, match="one class only"):
        model.fit([[0.0], [1.0], [2.0]], ["a", "b", "b"], sample_weight=[0, 1, 1])
    assert model.classes_.tolist() == ["a", "b"]
    assert model.predict([[0.0]]).tolist() == ["b"]
    assert model.predict_proba([[0.0]]).argmax() == 1
    assert model.decision_function([[0.0]])[0] > 0


def test_a_frame_gives_names_and_index() -> None:
    X, y = table()
    frame = pd.DataFrame(X, columns=["width", "height"], index=[f"r{i}" for i in range(12)])
    model = small(RESVMClassifier, c1=10, c2=12).fit(frame, pd.Series(y, index=frame.index))
    assert model.feature_names_in_.tolist() == ["width", "height"]
    assert model.tree_.feature_names == ("width", "height")
    assert model.relabelled_.index.tolist() == model.result_.relabelled().index.tolist() == ["r0"]
    assert model.result_.index == tuple(frame.index)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"width": "w"}))


# -- weights ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", ALL)
def test_weights_reach_the_errors_of_the_model(cls: Any) -> None:
    X, y = table(14, seed=3)
    weights = np.random.default_rng(2).uniform(0.2, 3, 14)
    model = small(cls).fit(X, y, sample_weight=weights)
    depth = {} if cls is RESVMClassifier else {"depth": model.max_depth}
    result = octsvm.fit(cls.formulation, X, y, weights=weights, **depth)
    assert model.result_.status == result.status == "optimal"
    assert model.result_.objective == pytest.approx(result.objective, rel=2e-4)
    again = octsvm.evaluate(cls.formulation, model.tree_, X, y, weights=weights)
    assert again.objective == pytest.approx(model.result_.objective, rel=1e-9)
    assert dict(again.terms) == pytest.approx(dict(model.result_.terms))


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.slow_cases("RESVMClassifier", "MOCTSVMClassifier")
def test_whole_weights_are_repeated_rows_to_the_last_bit(cls: Any) -> None:
    X, y = table(16, seed=5)
    weights = np.random.default_rng(0).integers(0, 4, 16)
    order = np.random.default_rng(1).permutation(weights.sum())
    rows = np.repeat(np.arange(16), weights)[order]
    one = small(cls, **SHORT).fit(X, y, sample_weight=weights)
    other = small(cls, **SHORT).fit(X[rows], y[rows])
    Z = np.random.default_rng(2).uniform(0, 10, (200, 2))
    assert (one.decision_function(Z) == other.decision_function(Z)).all()
    assert (one.predict_proba(Z) == other.predict_proba(Z)).all()
    # ... and what is said of single rows is said of the rows as given.
    assert (one.result_.n, other.result_.n) == (16, len(rows))
    assert sorted(np.repeat(one.relabelled_["row"], weights[one.relabelled_["row"]])) == sorted(
        rows[other.relabelled_["row"]]
    )
    np.testing.assert_allclose(other.relabelled_["cost"].sum(), one.relabelled_["cost"].sum(), rtol=1e-12)
    evaluation = octsvm.evaluate(cls.formulation, other.tree_, X[rows], y[rows])
    assert evaluation.counts == other.result_.counts
    assert any("of weight zero" in note for note in one.result_.notes)


def test_min_samples_leaf_counts_rows_not_weights() -> None:
    X = np.array([[0.0], [0.0], [1.0], [2.0], [3.0], [4.0]])
    y = np.array([1, 1, 0, 0, 0, 0])
    two = OCTClassifier(max_depth=1, min_samples_leaf=2, alpha=0.1).fit(X, y)
    assert two.tree_.splits.any()  # two equal rows are two
    heavy = OCTClassifier(max_depth=1, min_samples_leaf=2, alpha=0.1)
    heavy.fit(X[1:], y[1:], sample_weight=[2, 1, 1, 1, 1])
    assert np.unique(heavy.apply(X[1:]), return_counts=True)[1].min() >= 2  # a row of weight two is one


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.slow_cases("MOCTSVMClassifier", "RESVMClassifier")
def test_class_weight_multiplies_the_weights(cls: Any) -> None:
    X, y = table(14, seed=7)
    given = np.linspace(0.5, 2, 14)
    by_class = small(cls, class_weight={"blue": 3.0, "red": 0.5}).fit(X, y, sample_weight=given)
    by_row = small(cls).fit(X, y, sample_weight=given * np.where(y == "blue", 3.0, 0.5))
    # Not to the last digit: a heuristic that looks at the clock may polish one of them a little further.
    assert by_class.result_.objective == pytest.approx(by_row.result_.objective, rel=1e-6)
    assert (by_class.predict(X) == by_row.predict(X)).all()
    balanced = small(cls, class_weight="balanced").fit(X, y, sample_weight=given)
    totals = balanced.node_weights_[0]
    assert totals[0] == pytest.approx(totals[1])
    assert totals.sum() == pytest.approx(given.sum())


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0], "sample_weight has shape"),
        ([-1.0] * 12, "finite and not negative"),
        (["x"] * 12, "sample_weight must be"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(weights: Any, words: str) -> None:
    with pytest.raises(octsvm.InvalidData, match=words):
        OCTClassifier().fit(*table(), sample_weight=weights)


# -- starts, warnings, output -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cls", [OCTClassifier, RESVMClassifier, MOCTSVMClassifier]
)  # one of each kind of start
@pytest.mark.quick_cases("OCTClassifier")
def test_a_warm_start_is_never_worse(cls: Any) -> None:
    X, y = table(16, seed=6)
    cold = small(cls, warm_start=True, **SHORT).fit(X, y)
    before = cold.result_
    cold.set_params(strategy="exact").fit(X, y)
    assert cold.result_.objective <= before.objective * (1 + 1e-9)
    without = clone(cold).fit(X, y)
    assert not hasattr(clone(cold), "tree_")
    assert without.result_.objective >= cold.result_.objective * (1 - 1e-9)


def test_a_former_tree_that_is_no_start_is_dropped_with_a_warning() -> None:
    X = np.arange(9.0)[:, None]
    y = np.repeat([0, 1, 0], 3)
    model = OCTClassifier(max_depth=2, alpha=0.1, warm_start=True).fit(X, y)
    assert model.tree_.splits.sum() == 2
    with pytest.warns(UserWarning, match="warm_start: the former tree is no start.*splits on 2 levels"):
        model.set_params(max_depth=1).fit(X, y)
    assert model.tree_.depth == 1
    with pytest.warns(UserWarning, match="warm_start"):
        model.fit(np.column_stack([X, X]), y)


def test_an_answer_that_does_not_hold_is_a_warning_and_a_status() -> None:
    text = (ROOT / "docs" / "certificate.md").read_text(encoding="utf-8")
    assert 'variant="paper"' in text
    X = np.array([[0.0], [0.5], [0.5], [1.0]])
    y = np.array([-1, -1, 1, 1])
    with pytest.warns(UserWarning, match="does not hold outside the solver"):
        model = OCTSVMClassifier(max_depth=1, c1=1, c2=50, c3=0.01, variant="paper", strategy="exact").fit(
            X, y
        )
    assert model.result_.status == "unverified"
    assert model.predict(X).shape == (4,)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.quick_cases("OCTClassifier", "OCTSVMClassifier")
def test_silent_unless_verbose(cls: Any, capfd: pytest.CaptureFixture[str]) -> None:
    X, y = table()
    small(cls).fit(X, y)
    assert capfd.readouterr() == ("", "")
    # OCT's other variants are proved while the model is built here, so that no solver has anything to say.
    more = {"variant": "bd"} if cls is OCTClassifier else {}
    small(cls, verbose=True, **more).fit(X, y)
    assert "HiGHS" in capfd.readouterr().out


# -- scikit-learn's tools -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [octsvm.OCTClassifier, octsvm.OCTHClassifier])
def test_pickles_with_the_former_path_of_a_class_are_read(cls: Any) -> None:
    X, y = table(30)
    model = small(cls, **SHORT).fit(X, y)
    now = pickle.dumps(model, protocol=0)
    former = now.replace(b"coctsvm.estimators.leaf_labelled\n", b"coctsvm.estimators.leafy\n")
    assert former != now
    copy = pickle.loads(former)
    assert type(copy) is cls
    assert (copy.predict(X) == model.predict(X)).all()


GRID = """
import sys, time, warnings
import numpy as np
from sklearn.model_selection import GridSearchCV
import octsvm

rng = np.random.default_rng(0)
X = rng.random((16, 2))
y = np.where(X[:, 0] + X[:, 1] > 1, 1, 0)
y[:3] = 1 - y[:3]
found = []
for jobs in (1, 2):
    search = GridSearchCV(
        octsvm.RESVMClassifier(c1=5, work_limit={"nodes": 2, "rounds": 1}, time_limit=300),
        {"c2": [6]}, cv=2, n_jobs=jobs, error_score="raise",
    ).fit(X, y)
    scores = [search.cv_results_[f"split{k}_test_score"][0] for k in range(2)]
    found.append((scores, search.best_estimator_.tree_.to_json()))
assert found[0] == found[1], "the results differ"
one, two = (octsvm.tune("oct", X, y, depth=1, folds=2, repeats=1, jobs=jobs).frame() for jobs in (1, 2))
assert one.equals(two), "the tunings differ"

LIMIT = 1.0
search = GridSearchCV(
    octsvm.OCTSVMClassifier(max_depth=1, time_limit=LIMIT), {"c1": [1]}, cv=2, n_jobs=2, refit=False,
).fit(rng.random((120, 6)), rng.integers(0, 2, 120))
print(max(search.cv_results_["mean_fit_time"]), *found[0][0])
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="counts processes in /proc")
@pytest.mark.slow
def test_a_grid_search_and_a_tuning_in_two_processes() -> None:
    root = ROOT
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(GRID)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(root), "PYTHONWARNINGS": "ignore:A limit ended this fit"},
    )
    try:
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        assert err == ""
        longest, *scores = (float(word) for word in out.split())  # and nothing else was printed
        assert len(scores) == 2
        assert longest <= 1.0 + 2.0  # the limit, and what checking the last answer takes
        # joblib's tracker of resources sees only now that its parent is gone.
        assert wait_until(lambda: in_session(process.pid) == [])
    finally:
        for pid in in_session(process.pid):
            os.kill(pid, signal.SIGKILL)


def in_session(session: int) -> list[int]:
    """Processes of a session, by /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test_in_a_pipeline_with_set_output() -> None:
    X, y = table(20)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = (
        make_pipeline(StandardScaler(), small(OCTHClassifier, **SHORT))
        .set_output(transform="pandas")
        .fit(frame, y)
    )
    assert model[-1].feature_names_in_.tolist() == ["a", "b"]
    assert model[-1].tree_.feature_names == ("a", "b")
    assert model.score(frame, y) >= 0.9


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.quick_cases("OCTClassifier", "RESVMClassifier")
def test_metadata_routing_carries_weights(cls: Any) -> None:
    X, y = table(16)
    weights = np.linspace(0.1, 2, 16)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = small(cls).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        model = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), inner)
        model.fit(X, y, sample_weight=weights)
        routing = inner.get_metadata_routing()
    assert routing.fit.requests["sample_weight"] is True
    np.testing.assert_allclose(model[-1].node_weights_[0].sum(), weights.sum())


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.quick_cases("OCTClassifier", "OCTSVMClassifier")
def test_html(cls: Any) -> None:
    model = small(cls, class_weight="balanced")
    assert cls.__name__ in model._repr_html_()
    assert "balanced" in repr(model)
    assert "Fitted" in model.fit(*table())._repr_html_()


@pytest.mark.parametrize(("kind", "wrap"), [("ovr", OneVsRestClassifier), ("ovo", OneVsOneClassifier)])
@pytest.mark.parametrize("cls", MARGIN)
@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.quick_cases("None-OCTSVM*-ovo-*")
@pytest.mark.every_value
def test_many_classes_are_decided_as_scikit_learn_does(cls: Any, kind: str, wrap: Any, kernel: Any) -> None:
    iris = load_iris()
    X, y = iris.data[::10], iris.target_names[iris.target[::10]]
    norm = "l2" if kernel else "l1"
    machine = small(cls, c1=10, c2=20, kernel=kernel, norm=norm, **SHORT)
    with pytest.raises(octsvm.InvalidData, match=rf"Only binary.*OneVsRestClassifier\({cls.__name__}"):
        machine.fit(X, y)
    ours, theirs = clone(machine).set_params(multi_class=kind).fit(X, y), wrap(machine).fit(X, y)
    assert len(ours.estimators_) == 3
    assert ours.predict(iris.data).tolist() == theirs.predict(iris.data).tolist()
    score = theirs.decision_function(iris.data)
    np.testing.assert_allclose(ours.decision_function(iris.data), score, atol=1e-12)
    shares = ours.predict_proba(iris.data)
    assert shares.argmax(axis=1).tolist() == ours.decision_function(iris.data).argmax(axis=1).tolist()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


@pytest.mark.slow
def test_many_classes_know_weights_and_names() -> None:
    iris = load_iris(as_frame=True)
    X, y = iris.data[::10], iris.target[::10]
    machine = small(RESVMClassifier, multi_class="ovo", norm="l1", c1=10, c2=20, **SHORT)
    weights = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    once = clone(machine).fit(X, y, sample_weight=weights)
    more = np.repeat(np.arange(len(y)), weights.astype(int))
    twice = clone(machine).fit(X.iloc[more], y.iloc[more])
    assert (once.decision_function(X) == twice.decision_function(X)).all()
    assert once.estimators_[0].tree_.feature_names == tuple(X.columns)
    heavy = clone(machine).set_params(class_weight={0: 1.0, 1: 1.0, 2: 3.0}).fit(X, y)
    by_hand = clone(machine).fit(X, y, sample_weight=np.where(y == 2, 3.0, 1.0))
    assert (heavy.decision_function(X) == by_hand.decision_function(X)).all()
    assert [one.time_limit for one in once.estimators_] == [10.0] * 3
    assert not [name for name in vars(once) if name in ("tree_", "result_")]


@pytest.mark.slow
def test_many_classes_share_the_time_limit_and_begin_with_their_former_trees() -> None:
    X, y = [[0.0], [1.0], [2.0]], ["a", "b", "c"]
    limits: dict[str, Any] = {"time_limit": np.int64(6), "work_limit": {"nodes": 1, "rounds": 1}}
    machine = small(RESVMClassifier, multi_class="ovr", warm_start=True, **limits).fit(X, y)
    assert [one.time_limit for one in machine.estimators_] == [2.0] * 3
    with pytest.warns(UserWarning, match="the former tree is no start for this fit.*no kernel") as said:
        machine.set_params(kernel="rbf").fit(X, y)
    assert sum("no start" in str(one.message) for one in said) == 3


@pytest.mark.slow
def test_what_many_trees_do_not_have() -> None:
    iris = load_iris()
    X, y = iris.data[::10], iris.target[::10]
    machine = small(OCTSVMClassifier, multi_class="ovr", norm="l1", **SHORT).fit(X, y)
    for ask in (machine.apply, machine.decision_path, lambda _: machine.to_json()):
        with pytest.raises(octsvm.InvalidData, match=r"no single tree.*3 classifiers in estimators_"):
            ask(X)
    for name in ("tree_", "result_", "gap_", "relabelled_", "node_weights_"):
        with pytest.raises(AttributeError, match=rf"{name}: .*no single tree.*3 classifiers in estimators_"):
            getattr(machine, name)
        assert not hasattr(machine, name)
    with pytest.raises(AttributeError, match="has no attribute 'leaf_'"):
        _ = machine.leaf_
    with pytest.raises(octsvm.InvalidParameter, match="3 trees"):
        octsvm.export_text(machine)
    assert pickle.loads(pickle.dumps(machine)).predict(X).tolist() == machine.predict(X).tolist()
    machine.fit(X[y < 2], y[y < 2])  # two classes are one tree again
    assert not hasattr(machine, "estimators_")
    assert set(machine.apply(X)) <= {1, 2, 3}
    with pytest.raises(octsvm.InvalidParameter, match="'ovr'"):
        machine.set_params(multi_class="crammer_singer").fit(X, y)
