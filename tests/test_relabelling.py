"""The relabelling report is what its numbers say, by another way of computing them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from long_cases import long

import octsvm
from octsvm import OCTClassifier, OCTSVMClassifier, RESVMClassifier


def table(n: int = 30) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, right labels and given labels, three of them flipped."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(4 * n, 2))
    X = X[abs(X.sum(axis=1) - 10) > 2][:n]
    y = np.where(X.sum(axis=1) > 10, "blue", "red")
    return X, y, octsvm.flip_labels(y, 0.1, seed=0)


def test_the_report_on_flipped_labels() -> None:
    X, y, noisy = table()
    model = OCTSVMClassifier(max_depth=0, c1=2, c2=3, c3=0.5, class_weight={"blue": 2.0, "red": 1.0}).fit(
        X, noisy
    )
    report = model.relabelled_
    flipped = np.flatnonzero(noisy != y)
    assert report["row"].tolist() == flipped.tolist()
    assert report["given"].tolist() == noisy[flipped].tolist()
    assert report["believed"].tolist() == report["predicted"].tolist() == y[flipped].tolist()
    W, w0 = model.tree_.weights("original")
    for r in report.itertuples():
        score = float(W[0] @ X[r.row] + w0[0]) * (1 if r.given == "red" else -1)  # red sorts last: +1
        assert r.margin_before == pytest.approx(score, rel=1e-9)
        assert r.margin_after == -r.margin_before > 0
        assert r.cost == pytest.approx(
            (2.0 if r.given == "blue" else 1.0) * (3 + 2 * max(0, 1 + score)), rel=1e-9
        )
    assert report["cost"].sum() <= model.result_.objective
    scores = octsvm.relabelling_scores(report, noisy != y)
    assert scores == (1.0, 1.0, 3, 3, 3)
    assert octsvm.relabelling_scores(report, flipped) == scores


@pytest.mark.parametrize("seed", [0, *long([1, 2])])
@pytest.mark.slow
def test_every_record_is_cheaper_than_the_error_it_replaces(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.random((25, 3))
    y = octsvm.flip_labels(np.where(X[:, 0] + X[:, 1] > 1, 1, -1), 0.2, seed=seed)
    model = OCTSVMClassifier(
        max_depth=1, c1=5, c2=4, c3=0.2, strategy="heuristic", work_limit={"nodes": 1, "rounds": 1}
    ).fit(X, y)
    report = model.relabelled_
    assert len(report)
    scores, path = model.tree_.scores(X), model.tree_.nodes(X)
    marked = set()
    for r in report.itertuples():
        assert r.node in path[r.row]
        assert r.margin_before == pytest.approx(y[r.row] * scores[r.row, r.node - 1], abs=1e-12)
        assert 4 + 5 * max(0, 1 - r.margin_after) < 5 * max(0, 1 - r.margin_before)
        assert r.predicted == model.predict(X[r.row : r.row + 1])[0]
        marked.add((r.row, r.node))
    for i in range(25):
        for t in path[i]:
            ys = y[i] * scores[i, t - 1]
            if 4 + 5 * max(0, 1 + ys) < 5 * max(0, 1 - ys) - 1e-9:
                assert (i, int(t)) in marked


@pytest.mark.slow
def test_from_a_result_or_a_tree_too() -> None:
    X, _, noisy = table()
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(30)])
    result = octsvm.fit("re_svm", frame, noisy, c1=2, c2=3)
    report = octsvm.relabelling_report(result, frame, noisy)
    assert report.index.tolist() == result.relabelled().index.tolist()
    for name in ("row", "node", "cost"):
        assert report[name].tolist() == result.relabelled()[name].tolist()
    plain = octsvm.relabelling_report(result.tree, X, noisy)
    assert plain.reset_index(drop=True).equals(report.reset_index(drop=True))
    model = RESVMClassifier(c1=2, c2=3).fit(frame, noisy)
    assert octsvm.relabelling_report(model, frame, noisy).equals(model.relabelled_)


def test_trees_without_relabelling_have_an_empty_report() -> None:
    X, y, noisy = table()
    model = OCTClassifier(max_depth=1).fit(X, noisy)
    assert model.relabelled_.empty
    assert model.relabelled_.dtypes["row"] == np.int64
    scores = octsvm.relabelling_scores(model.relabelled_, noisy != y)
    assert np.isnan(scores.precision)
    assert scores[1:] == (0.0, 0, 0, 3)


def test_another_table_is_refused() -> None:
    X, _, noisy = table()
    model = RESVMClassifier(c1=2, c2=3).fit(X, noisy)
    with pytest.raises(octsvm.InvalidData, match="fitted to 30 rows, and X has 29"):
        octsvm.relabelling_report(model, X[1:], noisy[1:])
    with pytest.raises(octsvm.InvalidData, match="gave up the label of row"):
        octsvm.relabelling_report(model.tree_, X[:2], noisy[:2])
    with pytest.raises(octsvm.InvalidData, match="labels of the fit"):
        octsvm.relabelling_report(model, X, np.arange(30) % 2)


def test_precision_and_recall_by_hand() -> None:
    report = pd.DataFrame({"row": [1, 1, 4, 7], "node": [1, 2, 1, 1]})  # row 1 at two nodes counts once
    scores = octsvm.relabelling_scores(report, np.isin(np.arange(10), [1, 7, 8, 9]))
    assert (scores.precision, scores.recall) == (2 / 3, 2 / 4)
    assert scores[2:] == (2, 3, 4)
    assert np.isnan(octsvm.relabelling_scores(report, []).recall)
    assert octsvm.relabelling_scores(report, [False] * 10).precision == 0


@pytest.mark.parametrize(
    ("flipped", "words"),
    [
        ([0, 1, 1, 0], "names a row twice"),
        ([0.5, 1.0], "boolean mask"),
        (["a"], "boolean mask"),
        ([[True]], "shape"),
        ([-1], "row -1"),
    ],
)
def test_flips_that_are_neither_mask_nor_positions(flipped: Any, words: str) -> None:
    with pytest.raises(octsvm.InvalidData, match=words):
        octsvm.relabelling_scores(pd.DataFrame({"row": [0]}), flipped)


@pytest.mark.slow
def test_rows_at_odds_with_every_tree_of_a_grid() -> None:
    X, y, noisy = table()
    frame = pd.DataFrame(X, index=np.arange(100, 130))
    grid = {"c1": [1, 5], "c2": [2]}
    found = octsvm.suspect_rows(RESVMClassifier(time_limit=20, work_limit=50), grid, frame, noisy)
    assert found.index.tolist() == list(range(100, 130))
    assert (found["trees"] == 2).all()
    assert np.flatnonzero(found["always"]).tolist() == np.flatnonzero(noisy != y).tolist()
    against, relabelled = np.zeros(30, int), np.zeros(30, int)
    for c1 in (1, 5):
        model = RESVMClassifier(time_limit=20, work_limit=50, c1=c1, c2=2).fit(X, noisy)
        against += model.predict(X) != noisy
        relabelled[model.relabelled_["row"]] += 1
    assert found["against"].tolist() == against.tolist()
    assert found["relabelled"].tolist() == relabelled.tolist()
    assert found["given"].tolist() == noisy.tolist()


def test_suspects_of_trees_that_give_up_no_label() -> None:
    X, y, noisy = table()
    found = octsvm.suspect_rows(
        OCTClassifier(max_depth=1), [{"alpha": [1, 2]}, {"min_samples_leaf": [3]}], X, noisy
    )
    assert (found["trees"] == 3).all()
    assert (found["relabelled"] == 0).all()
    assert found["always"].equals(found["against"] == 3)
    with pytest.raises(octsvm.InvalidParameter, match="param_grid"):
        octsvm.suspect_rows(OCTClassifier(), [], X, y)


def test_trees_that_predict_one_class_suspect_nobody() -> None:
    X, _, noisy = table()
    with pytest.warns(UserWarning, match=r"1 of 2 trees .*left out: \{'alpha': 100\}\."):
        found = octsvm.suspect_rows(OCTClassifier(max_depth=1), {"alpha": [1, 100]}, X, noisy)
    one = octsvm.suspect_rows(OCTClassifier(max_depth=1), {"alpha": [1]}, X, noisy)
    assert found.equals(one)
    assert one["always"].any()
    with pytest.warns(UserWarning, match="1 of 1 trees"):
        none = octsvm.suspect_rows(OCTClassifier(max_depth=1), {"alpha": [100]}, X, noisy)
    assert none["trees"].tolist() == [0] * 30
    assert not none["always"].any()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.slow
def test_a_report_on_other_rows_than_those_of_the_fit_is_refused(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((12, 2)), np.array(["a", "b"] * 6)
    weights = rng.random(12) if weighted else None
    fitted = [
        octsvm.fit("re_svm", X, y, weights=weights),
        octsvm.RESVMClassifier().fit(X, y, sample_weight=weights),
        octsvm.RESVMClassifier().fit(np.vstack([X, X]), np.append(y, y)),  # equal rows are solved as one
    ]
    turned = y[::-1]
    for k, one in enumerate(fitted):
        rows, labels = (np.vstack([X, X]), np.append(y, y)) if k == 2 else (X, y)
        octsvm.relabelling_report(one, rows, labels)
        octsvm.relabelling_report(one, rows.tolist(), labels.tolist())
        others = [(rows[::-1], labels), (rows, np.append(turned, labels[12:])), (rows + 1e-9, labels)]
        for other, given in [*others, (rows[:, ::-1], labels), (rows, np.where(labels == "a", "c", "b"))]:
            with pytest.raises(octsvm.InvalidData):
                octsvm.relabelling_report(one, other, given)


@pytest.mark.slow
def test_a_pickled_result_and_a_pickled_classifier_know_their_rows_too() -> None:
    X, _, noisy = table()
    result = octsvm.fit("re_svm", X, noisy, c1=2, c2=3)
    model = RESVMClassifier(c1=2, c2=3).fit(X, noisy)
    for saved in (pickle.loads(pickle.dumps(result)), pickle.loads(pickle.dumps(model))):
        assert len(octsvm.relabelling_report(saved, X, noisy)) == len(result.tree.relabelled) > 0
        for rows, labels in ((X[::-1], noisy[::-1]), (np.roll(X, 1, axis=0), noisy), (X, np.roll(noisy, 1))):
            with pytest.raises(octsvm.InvalidData, match="rows and labels that the tree was fitted to"):
                octsvm.relabelling_report(saved, rows, labels)


@pytest.mark.slow
def test_half_of_a_letter_in_names_and_labels() -> None:
    X, _, noisy = table()
    frame = pd.DataFrame(X, columns=pd.Index(["a\ud800", *"bcdefgh"[: X.shape[1] - 1]], dtype=object))
    labels = [f"{label}\udcff" for label in noisy]
    result = octsvm.fit("re_svm", frame, labels, c1=2, c2=3)
    model = RESVMClassifier(c1=2, c2=3).fit(frame, labels)
    for report in (octsvm.relabelling_report(result, frame, labels), model.relabelled_):
        assert [f"{label}\udcff" for label in noisy[report["row"]]] == report["given"].tolist()
    assert set(model.predict(frame)) <= set(labels)
    assert (
        octsvm.Tree.from_json(result.tree.to_json()).predict(frame).tolist()
        == result.tree.predict(frame).tolist()
    )


def test_suspects_are_asked_of_our_classifiers_only_before_anything_is_fitted() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    X, y = np.arange(12.0).reshape(-1, 1), np.arange(12) // 4
    pipe = make_pipeline(StandardScaler(), RESVMClassifier(work_limit=5))
    with pytest.raises(octsvm.InvalidParameter, match=r"not a Pipeline.*pipe\[-1\]"):
        octsvm.suspect_rows(pipe, {"resvmclassifier__c1": [1]}, X, y > 0)
    suspects = octsvm.suspect_rows(pipe[-1], {"c1": [10], "c2": [100]}, pipe[:-1].fit_transform(X), y > 0)
    assert suspects["trees"].tolist() == [1] * 12
    with pytest.raises(octsvm.InvalidParameter, match="not SVC"):
        octsvm.suspect_rows(SVC(), {"C": [1]}, X, y > 0)
    with pytest.raises(octsvm.InvalidData, match="no single tree"):
        octsvm.suspect_rows(RESVMClassifier(multi_class="ovr"), {"c1": [1]}, X, y)
    with pytest.raises(octsvm.InvalidData, match=r"no single tree.*relabelling_path\("):
        octsvm.relabelling_path(RESVMClassifier(multi_class="ovr"), X, y)
    with pytest.raises(octsvm.InvalidParameter, match=r"pipe\[-1\]"):
        octsvm.export_text(pipe)


@pytest.mark.parametrize("grid", [{"alpha": 1}, [1, 2], {"alpha": []}, []])
def test_a_grid_of_suspects_that_is_none(grid: Any) -> None:
    with pytest.raises(octsvm.InvalidParameter, match=r"^param_grid"):
        octsvm.suspect_rows(OCTClassifier(), grid, [[0.0], [1.0]], [0, 1])
    with pytest.raises(octsvm.InvalidParameter, match=r"^n_jobs=0 should"):
        octsvm.suspect_rows(OCTClassifier(), {"alpha": [1]}, [[0.0], [1.0]], [0, 1], n_jobs=0)


@pytest.mark.parametrize(
    ("flipped", "words"),
    [([True], "marks 1 row, and X has 2"), ([2], "row 2, .*from 0 to 1"), ([-1], "row -1")],
)
def test_flips_of_another_table_are_refused_before_a_path(flipped: Any, words: str) -> None:
    told: list[Any] = []
    model = RESVMClassifier(kernel=lambda A, B: told.append(0) or A @ B.T)  # asked in every fit
    with pytest.raises(octsvm.InvalidData, match=words):
        octsvm.relabelling_path(model, [[0.0], [1.0]], [0, 1], flipped=flipped)
    assert not told
