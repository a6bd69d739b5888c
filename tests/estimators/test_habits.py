"""What people bring along from scikit-learn: sizes of trees, figures of features, selections by them."""

from __future__ import annotations

import io
import re
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.tree import DecisionTreeClassifier

import octsvm
from octsvm import MOCTSVMClassifier, OCTClassifier, OCTHClassifier, OCTSVMClassifier, RESVMClassifier
from octsvm.exports._decision_paths import weights_at_nodes

ALL = [OCTClassifier, OCTHClassifier, RESVMClassifier, OCTSVMClassifier, MOCTSVMClassifier]
TREES = [cls for cls in ALL if cls is not MOCTSVMClassifier]  # whose trees are those of OCT-H
# Most fits here end at a limit, and what they say of it is not what is looked at.
pytestmark = pytest.mark.filterwarnings("ignore:A limit ended this fit")
SHORT: dict[str, Any] = {"work_limit": {"nodes": 1, "rounds": 1}}
SEARCHED: dict[str, Any] = SHORT | {"strategy": "heuristic"}  # where any tree will do


def shallow(cls: Any, **more: Any) -> Any:
    """The classifier with one split at most, and little work."""
    depth = {} if cls is RESVMClassifier else {"max_depth": 1}
    return cls(**depth, **SHORT, **more)


def around(theirs: DecisionTreeClassifier, X: Any, y: Any) -> OCTClassifier:
    """A classifier of ours that holds the tree of scikit-learn's, node by node."""
    model = OCTClassifier(max_depth=1, **SHORT).fit(X, y)
    model.tree_ = octsvm.from_sklearn(theirs)
    model.node_weights_ = weights_at_nodes(model.tree_, X, y, np.ones(len(y)), 3)
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
@pytest.mark.quick_cases("OCTClassifier", "RESVMClassifier")
def test_sizes_are_those_of_the_paths(cls: Any) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:30, :4], y[:30]
    model = cls(**SEARCHED).fit(X, y)
    box = np.random.default_rng(0).uniform(X.min(axis=0), X.max(axis=0), (5000, 4))
    rows = np.vstack([X, box])
    lengths = model.decision_path(rows).toarray().sum(axis=1)
    assert model.get_depth() >= lengths.max() - 1
    assert model.get_n_leaves() >= len(np.unique(model.apply(rows)))
    assert model.get_depth() < model.get_n_leaves() <= 2 ** model.get_depth()
    assert octsvm.export_text(model).count("class") == model.get_n_leaves()


@pytest.mark.parametrize("cls", TREES)
@pytest.mark.quick_cases("OCTClassifier", "RESVMClassifier")
def test_importances_do_not_know_units_and_a_useless_tree_has_none(cls: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.random((20, 3))
    y = (X[:, 1] > 0.5).astype(int)
    one = shallow(cls, strategy="heuristic").fit(X, y)
    found = one.feature_importances_
    assert found.shape == (3,)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    assert found.argmax() == 1
    other = shallow(cls, strategy="heuristic").fit(X * [1, 1024, 1], y)
    np.testing.assert_allclose(other.feature_importances_, found, atol=1e-9)
    with pytest.warns(UserWarning, match="one class only"):
        none = cls().fit(X, np.zeros(20))
    assert none.feature_importances_.tolist() == [0.0, 0.0, 0.0]
    assert (none.get_depth(), none.get_n_leaves()) == (0, 1)


@pytest.mark.parametrize("cls", ALL)
def test_nothing_before_a_fit(cls: Any) -> None:
    model = cls()
    for ask in (model.get_depth, model.get_n_leaves, lambda: model.feature_importances_):
        with pytest.raises(NotFittedError):
            ask()
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    "machine", [RESVMClassifier(norm="l1"), RESVMClassifier(kernel="linear"), OCTSVMClassifier(max_depth=0)]
)
@pytest.mark.slow
def test_a_hyperplane_is_the_decision_function(machine: Any) -> None:
    X, y = load_iris(return_X_y=True)
    X = X * [1, 10, 0.1, 5] + 3
    two = machine.set_params(**SHORT).fit(X[50::8], y[50::8])
    assert two.coef_.shape == (1, 4)
    np.testing.assert_allclose(X @ two.coef_[0] + two.intercept_[0], two.decision_function(X), atol=1e-9)
    many = machine.set_params(multi_class="ovr").fit(X[::12], y[::12])
    np.testing.assert_allclose(X @ many.coef_.T + many.intercept_, many.decision_function(X), atol=1e-9)
    assert many.feature_importances_.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        (OCTSVMClassifier(max_depth=1), "may split below its root"),
        (RESVMClassifier(kernel="rbf"), "has a kernel"),
    ],
)
@pytest.mark.slow
def test_no_hyperplane_no_coefficients(machine: Any, why: str) -> None:
    X, y = load_iris(return_X_y=True)
    machine.set_params(**SEARCHED).fit(X[50::5], y[50::5])
    with pytest.raises(AttributeError, match=why):
        _ = machine.coef_
    assert not hasattr(machine, "intercept_")
    assert hasattr(machine, "feature_importances_") is (why != "has a kernel")
    if why == "has a kernel":
        with pytest.raises(AttributeError, match="permutation_importance"):
            _ = machine.feature_importances_


@pytest.mark.parametrize(
    ("cls", "kernel"),
    [
        *((cls, None) for cls in TREES),
        (RESVMClassifier, "linear"),
        (OCTSVMClassifier, "linear"),
    ],
)
@pytest.mark.parametrize("getter", ["auto", "feature_importances_"])
@pytest.mark.quick_cases("auto-OCT*", "feature_importances_-OCTClassifier-*")
@pytest.mark.every_value
def test_features_are_selected(cls: Any, kernel: str | None, getter: str) -> None:
    X = np.random.default_rng(2).random((10, 3))
    y = (X[:, 2] > 0.5).astype(int)
    costs = {"c1": 10, "c2": 12, "kernel": kernel} if cls in (RESVMClassifier, OCTSVMClassifier) else {}
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


# -- tables -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [OCTClassifier, OCTHClassifier])  # the others: scikit-learn's own checks
def test_sparse_tables_are_dense_ones(cls: Any) -> None:
    rng = np.random.default_rng(3)
    X = rng.random((12, 4)) * (rng.random((12, 4)) > 0.5)
    y = (X[:, 0] > 0.2).astype(int)
    dense = shallow(cls).fit(X, y)
    for form in (sp.csr_array, sp.coo_matrix, sp.dok_array):
        model = shallow(cls).fit(form(X), y)
        assert model.tree_.to_json() == dense.tree_.to_json()
        assert (model.decision_function(form(X)) == dense.decision_function(X)).all()
        assert model.score(form(X), y) == dense.score(X, y)
        assert (model.apply(form(X)) == dense.apply(X)).all()


def test_a_sparse_table_that_is_too_wide_is_refused_before_its_zeros_are_written() -> None:
    X = sp.eye_array(2**20, format="csr")
    for ask in (lambda: OCTClassifier().fit(X, np.arange(2**20) % 2), lambda: fitted().predict(X)):
        with pytest.raises(octsvm.InvalidData, match=r"1048576 x 1048576 cells.*8.19e\+03 GiB.*SelectKBest"):
            ask()
    with pytest.raises(octsvm.InvalidData, match=r"sparse matrix.*X.toarray\(\)"):
        octsvm.fit("oct", sp.eye_array(4), [0, 0, 1, 1], depth=1)


def fitted() -> OCTClassifier:
    return OCTClassifier(max_depth=1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])


@pytest.mark.parametrize(
    "X",
    [
        np.array([["1"], ["2"], ["3"], ["4"]]),
        np.array([["1"], ["2"], ["3"], ["4"]], dtype=object),
        np.array([[b"1"], [b"2"], [b"3"], [b"4"]]),
        [["1"], ["2"], ["3"], ["4"]],
        pd.DataFrame({"x1": list("1234")}),
    ],
    ids=["text", "objects", "bytes", "lists", "frame"],
)
def test_text_is_refused_in_our_words_alone(X: Any) -> None:
    for ask in (lambda: fitted().fit(X, [0, 0, 1, 1]), lambda: fitted().predict(X)):
        with pytest.raises(octsvm.InvalidData, match=r"^Column 'x1' holds text \(row 0: b?'1'\)") as caught:
            ask()
        assert "could not convert" not in str(caught.value)


# -- fits without a proof -----------------------------------------------------------------------------------


def hard(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return rng.random((n, 3)), rng.integers(0, 2, n)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("machine", "rows"),
    [
        (OCTClassifier(max_depth=4, time_limit=0.3), 400),
        (OCTHClassifier(time_limit=0.3), 40),
        (RESVMClassifier(**SHORT), 20),
        (OCTSVMClassifier(max_depth=1, **SHORT), 20),
        (MOCTSVMClassifier(max_depth=1, **SHORT), 20),
    ],
)
@pytest.mark.quick_cases("machine0-*", "machine1-*", "machine2-*")
def test_a_limit_without_a_proof_is_a_warning(machine: Any, rows: int) -> None:
    rng = np.random.default_rng(4)
    X, y = rng.random((rows, 5)), rng.integers(0, 2, rows)
    name = "work_limit" if machine.work_limit else "time_limit"
    with pytest.warns(ConvergenceWarning, match=rf"A limit ended this fit .*\({name}=") as said:
        model = machine.fit(X, y)
    of_limits = [w for w in said if "predicts one class" not in str(w.message)]
    assert len(of_limits) == 1
    assert of_limits[0].filename == __file__
    assert model.result_.status in ("feasible", "fallback")
    assert model.gap_ > 1e-4


@pytest.mark.slow
def test_several_machines_warn_once() -> None:
    X, y = hard(20)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "A tree of this fit predicts one class")
        model = shallow(RESVMClassifier, multi_class="ovr", norm="l1").fit(X, y + (X[:, 0] > 0.7))
    assert len(model.estimators_) == 3
    assert [w.category for w in said] == [ConvergenceWarning]


@pytest.mark.slow
def test_fits_at_one_line_say_once_that_a_limit_ended_them() -> None:
    X, y = hard()
    engine: dict[str, Any] = {"norm": "l1", "strategy": "exact"}
    for filter_, times in (("default", 1), ("once", 1), ("always", 3)):
        limit = {
            "nodes": 1,
            "rounds": len(filter_),
        }  # which the warning tells: it is another one for each filter
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter(filter_, ConvergenceWarning)  # type: ignore[arg-type]
            warnings.filterwarnings("ignore", "A tree of this fit predicts one class")
            for penalty in (1, 2, 3):
                RESVMClassifier(c1=penalty, work_limit=limit, **engine).fit(X, y)
        assert [w.category for w in said] == [ConvergenceWarning] * times
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default", ConvergenceWarning)
        warnings.filterwarnings("ignore", "A tree of this fit predicts one class")
        first = RESVMClassifier(**engine, **SHORT).fit(X, y)
        first.fit(X, y)
    assert len({w.lineno for w in said}) == len(said) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "A tree of this fit predicts one class")
        with pytest.raises(ConvergenceWarning):
            RESVMClassifier(**engine, **SHORT).fit(X, y)


@pytest.mark.parametrize("cls", ALL)
def test_no_warning_where_there_is_a_proof_or_none_was_asked_for(cls: Any) -> None:
    X, y = hard(12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "A tree of this fit predicts one class")
        shallow(cls, strategy="heuristic").fit(X, y)
        easy = cls() if cls is RESVMClassifier else cls(max_depth=1)
        assert easy.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).result_.status == "optimal"


@pytest.mark.parametrize("cls", ALL)
def test_a_classifier_that_predicts_one_class_everywhere_says_so(cls: Any) -> None:
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    dear = {"alpha": 9, "c3": 100}  # a split; RE-SVM has no price of one, and c1 = c2 = 1 are too low here
    cheap = {name: price for name, price in dear.items() if name in cls().get_params()}
    name = next(iter(cheap), "c1")
    with pytest.warns(UserWarning, match=rf"one class for all.* {name}.*{cls.__name__}CV") as said:
        model = cls(**cheap).fit(X, y)
    assert len(set(model.predict(X))) == 1
    assert said[0].filename == __file__


def test_a_depth_that_has_no_splits_is_no_surprise() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OCTClassifier(max_depth=0).fit([[0.0], [1.0], [2.0]], [0, 0, 1])


# -- names and labels ---------------------------------------------------------------------------------------


def test_another_name_is_answered_with_ours() -> None:
    for name, ours in (
        ("depth", "max_depth"),
        ("C", "c1"),
        ("seed", "random_state"),
        ("time_limitt", "time_limit"),
    ):
        with pytest.raises(TypeError, match=rf"(Say {ours}=|Did you mean '{ours}')"):
            OCTSVMClassifier(**{name: 1})
        with pytest.raises(octsvm.InvalidParameter, match=rf"(Say {ours}=|Did you mean '{ours}')"):
            OCTSVMClassifier().set_params(**{name: 1})


@pytest.mark.parametrize(("kind", "labels"), [("boolean", [False, True]), ("Int64", [1, 2])])
def test_labels_of_pandas_own_kinds_come_back_as_they_are(kind: str, labels: list[Any]) -> None:
    y = pd.Series(labels * 2).astype(kind)
    model = OCTClassifier(max_depth=1, alpha=0.1).fit([[0.0], [5.0], [1.0], [6.0]], y)
    assert model.classes_.tolist() == labels
    assert all(type(v) is type(labels[0]) for v in model.predict([[0.0], [6.0]]).tolist())


@pytest.mark.parametrize("cls", [OCTClassifier, RESVMClassifier])
def test_logarithms_of_probabilities(cls: Any) -> None:
    X = np.array([[0.0], [1.0], [8.0], [9.0]])
    model = cls().fit(X, [0, 0, 1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.exp(model.predict_log_proba(X)) == pytest.approx(model.predict_proba(X), abs=1e-15)


# -- results ------------------------------------------------------------------------------------------------


def test_a_result_predicts() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    result = octsvm.fit("oct", X, y, depth=1, **SHORT)
    assert (result.predict(X) == result.tree.predict(X)).all()  # type: ignore[union-attr]
    model = octsvm.build("oct", X.iloc[::10], y.iloc[::10], depth=1)
    model.never = pyo.Constraint(expr=model.split.d[1] >= 2)
    with pytest.raises(octsvm.NoValues, match="infeasible, the model has no solution"):
        octsvm.solve(model).predict(X)


# -- progress -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", TREES)
@pytest.mark.quick_cases("OCTClassifier", "RESVMClassifier")
def test_progress_is_one_line_that_changes(cls: Any, capfd: pytest.CaptureFixture[str]) -> None:
    X, y = hard(20)
    shallow(cls, verbose="progress").fit(X, y)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.endswith("\n")
    lines = err[:-1].split("\r")[1:]
    assert lines
    assert all(
        re.match(r" *\d+\.\d s  (no tree yet|best tree \S+)  bound \S+  gap \S+  \S", line) for line in lines
    )
    # What stood there is covered by what comes.
    assert all(len(new) >= len(old.rstrip()) for old, new in pairwise(lines))


def test_progress_needs_no_stream_and_no_other_word(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (None, io.StringIO()):
        if stream is not None:
            stream.close()
        monkeypatch.setattr("sys.stderr", stream)
        OCTClassifier(max_depth=1, verbose="progress").fit([[0.0], [1.0]], [0, 1])
    monkeypatch.undo()
    with pytest.raises(octsvm.InvalidParameter, match=r"verbose='loud' should be True, False or 'progress'"):
        OCTClassifier(max_depth=1, verbose="loud").fit([[0.0], [1.0]], [0, 1])


def test_the_bound_that_is_shown_never_falls(capsys: pytest.CaptureFixture[str]) -> None:
    from octsvm.estimators._progress import ProgressLine
    from octsvm.options import SolveOptions
    from octsvm.result import Progress
    from octsvm.solving.telling import rising

    with ProgressLine("progress") as line:
        told = rising(SolveOptions(callback=line))
        for seconds, bound in ((1.0, 3.83), (2.0, 0.0), (3.0, 3.92)):
            told.callback(Progress(seconds, 5.0, bound, 0, 0, "reading"))
    shown = re.findall(r"bound ([0-9.]+)", capsys.readouterr().err)
    assert shown == ["3.83", "3.83", "3.92"]
