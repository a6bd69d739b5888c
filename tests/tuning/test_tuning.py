"""Tuning: what may be seen by whom, the rules of choice, costs that keep their meaning, and runs that were killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import octsvm
from octsvm.data import prepare
from octsvm.formulations.registry import NAMES, formulation
from octsvm.tuning import folds as fold_module
from octsvm.tuning.choice import choose, scores
from octsvm.tuning.grids import absolute, prior, settings_of

SMALL: dict[str, list[Any]] = {"depth": [0, 1], "c1": [2.0, 8.0], "c2": [100.0], "c3": [0.01]}
QUICK: dict[str, Any] = {"grid": SMALL, "relative": True, "repeats": 1, "folds": 3, "refit": False}
# Of OCT, whose trees are found at once: for what is done around the fits.
QUICKEST: dict[str, Any] = QUICK | {"grid": {"depth": [1, 2], "alpha": [0.01, 0.1]}}


def exclusive_or(n: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).random((n, 2))
    return X, np.where((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5), "in", "out")


def linear(n: int = 60, p: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).random((n, p))
    return X, (X[:, 0] + X[:, 1] > 1).astype(int)


@pytest.fixture(scope="module")
def of_a_plane() -> Any:
    return octsvm.tune("octsvm", *linear(40), **QUICK)


@pytest.fixture(scope="module")
def of_no_plane() -> Any:
    return octsvm.tune("octsvm", *exclusive_or(40), **QUICK)


# -- choosing -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_tree_where_the_truth_is_none_of_a_plane_and_a_plane_where_it_is(
    of_a_plane: Any, of_no_plane: Any
) -> None:
    assert of_no_plane.choice["depth"] == 1
    assert of_a_plane.choice["depth"] == 0


@pytest.mark.slow
def test_the_fit_of_all_rows_has_the_choice_and_is_certified() -> None:
    X, y = linear()
    tuned = octsvm.tune("octsvm", X, y, **QUICK | {"refit": True}, time_limit=200, work_limit=1)
    assert tuned.result is not None
    assert {k: tuned.result.params[k] for k in tuned.choice} == tuned.choice
    chosen = tuned.frame().loc[tuned.chosen]
    costs = {k: v for k, v in tuned.choice.items() if k != "depth"}
    assert {k: chosen[f"plain_{k}"] for k in ("c1", "c2", "c3")} == costs
    assert any("No label was given up" in note for note in tuned.notes) == (not tuned.tree.relabelled)
    again = octsvm.evaluate("octsvm", tuned.tree, X, y, **costs)
    assert again.objective == pytest.approx(tuned.result.objective)
    assert str(tuned).startswith("octsvm: ")


def test_accuracies_are_those_of_scikit_learns_folds_fitted_one_by_one() -> None:
    from sklearn.model_selection import RepeatedStratifiedKFold

    X, y = linear(48)
    plain = {"depth": 0, "c1": 0.4, "c2": 50.0, "c3": 0.0}
    tuned = octsvm.tune("octsvm", X, y, [{k: [v] for k, v in plain.items()}], folds=4, repeats=2, refit=False)
    right = 0
    for train, judged in RepeatedStratifiedKFold(n_splits=4, n_repeats=2, random_state=0).split(X, y):
        ((_, result),) = octsvm.fit_path("octsvm", X[train], y[train], [plain], work_limit=1)
        right += int((result.tree.predict(X[judged]) == y[judged]).sum())
    assert tuned.accuracy == pytest.approx(right / (2 * len(y)))


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.slow
def test_a_cost_that_is_given_is_plain_and_trees_of_the_folds_are_those_of_the_heuristic(depth: int) -> None:
    from sklearn.model_selection import RepeatedStratifiedKFold

    rng = np.random.default_rng(3)
    X = rng.random((60, 3))
    y = octsvm.flip_labels((X[:, 0] > 0.5) ^ (X[:, 1] > 0.4), 0.1)
    tuned = octsvm.tune("oct", X, y, repeats=1, refit=False, depth=depth, alpha=1.0)
    right, splits = 0, []
    for train, judged in RepeatedStratifiedKFold(n_splits=5, n_repeats=1, random_state=0).split(X, y):
        tree = octsvm.fit("oct", X[train], y[train], depth=depth, alpha=1.0, strategy="heuristic").tree
        right += int((tree.predict(X[judged]) == y[judged]).sum())
        splits.append(int(tree.splits.sum()))
    assert tuned.choice == {"depth": depth, "alpha": 1.0}
    assert "plain_alpha" not in tuned.frame()
    assert tuned.accuracy == pytest.approx(right / len(y))
    assert tuned.frame()["splits"][0] == pytest.approx(np.mean(splits))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_formulation_has_a_grid_of_valid_settings_with_the_usual_one_in_it(name: str) -> None:
    form = formulation(name)
    settings = settings_of(form, None)
    for setting in settings:
        form.Params.make(name, **setting)
    assert max(prior(form, settings)) == 0


def test_what_is_fixed_leaves_the_grid() -> None:
    tuned = octsvm.tune("octsvm", *linear(30), folds=2, repeats=1, refit=False, depth=0, c2=7.0)
    assert tuned.choice["depth"] == 0
    assert tuned.choice["c2"] == 7.0  # as it was given
    assert set(tuned.frame()["c1"]) == {1.5, 3.0, 6.0, 12.0, 32.0}
    assert "depth" not in tuned.frame()


# -- kernels ------------------------------------------------------------------------------------------------------


def ring(n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, np.where((X**2).sum(axis=1) > 1.4, "out", "in")


AUTO: dict[str, Any] = {"kernel": "auto", "folds": 2, "repeats": 1, "refit": False, "time_limit": 500}


@pytest.mark.slow
def test_a_kernel_where_no_hyperplane_is_near() -> None:
    curved = octsvm.tune("re_svm", *ring(), **AUTO)
    assert curved.choice["kernel"] == "rbf"
    gamma = curved.frame()["gamma"][curved.chosen]
    X = prepare(formulation("re_svm"), *ring()).X
    assert curved.choice["gamma"] == pytest.approx(gamma / (2 * X.var()))
    assert curved.frame()["plain_gamma"][curved.chosen] == curved.choice["gamma"]
    titles = [axes.get_title() for axes in curved.plot()]
    assert titles == ["", "rbf"]


@pytest.mark.slow
def test_no_kernel_where_a_hyperplane_is_near() -> None:
    flat = octsvm.tune("re_svm", *linear(40), **AUTO)
    assert "kernel" not in flat.choice
    assert flat.frame()["kernel"].notna().any()


@pytest.mark.slow
def test_a_kernel_also_of_few_rows_and_many_columns() -> None:
    y = np.arange(60) % 2
    X = np.random.default_rng(0).normal(size=(60, 30)) * np.where(y, 3.0, 1.0)[:, None]
    assert octsvm.tune("octsvm", X, y, depth=0, **AUTO).choice["kernel"] == "rbf"


def test_within_a_standard_error_no_kernel_comes_before_a_small_depth() -> None:
    settings = [{"depth": 0}, {"depth": 1}, {"depth": 0, "kernel": "rbf"}]
    near = scores(settings, lines([10, 17, 18], [10, 17, 16], [10, 16, 17]), [0, 0, 0], 100, 0)
    assert choose(near, "one_standard_error") == 1
    assert choose(near, "best") == 2
    far = scores(settings, lines([10, 12, 18], [10, 12, 18], [10, 12, 17]), [0, 0, 0], 100, 0)
    assert choose(far, "one_standard_error") == 2


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("octsvm", {"depth": 2}, "one hyperplane alone, and what else is given \\(depth\\)"),
        ("octsvm", {"norm": "l1"}, "has no kernel form"),
        ("oct", {}, "'oct' has no kernels to choose from"),
        ("octsvm", {"grid": {"c1": [1.0]}}, "'auto' is not allowed|take 'auto'"),
    ],
)
def test_where_no_kernel_can_be_chosen_it_says_so(name: str, given: dict[str, Any], says: str) -> None:
    with pytest.raises(octsvm.InvalidParameter, match=says):
        octsvm.tune(name, *linear(30), kernel="auto", **given)


@pytest.mark.parametrize("kind", [np.array, list, lambda v: np.array(v, dtype=np.float32)])
def test_a_relative_gamma_is_one_in_every_type_of_number(kind: Any) -> None:
    grid = {"gamma": kind([1, 2]), "kernel": ["rbf"]}
    tuned = octsvm.tune("re_svm", *ring(12), grid, relative=True, folds=2, repeats=1, refit=False)
    X = prepare(formulation("re_svm"), *ring(12)).X
    assert tuned.frame()["plain_gamma"].tolist() == pytest.approx([0.5 / X.var(), 1 / X.var()])


def test_functions_as_kernels_in_a_grid_go_by_their_names(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    def grid() -> dict[str, Any]:
        def products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
            return A @ B.T

        return {"kernel": ["linear", products], "c1": [1.0]}

    store, kept = tmp_path / "folds.jsonl", []
    for _ in range(2):
        tuned = octsvm.tune("re_svm", *ring(12), grid(), folds=2, repeats=1, refit=False, store=store)
        kept.append(store.read_text())
    assert kept[0] == kept[1]
    assert [axes.get_title().split(".")[-1] for axes in tuned.plot()] == ["linear", "products"]


@pytest.mark.slow
def test_on_many_rows_no_kernel_is_tried() -> None:
    X, y = linear(1_100, 2)
    tuned = octsvm.tune("re_svm", X, y, kernel="auto", c1=1.0, c2=9.0, folds=2, repeats=1, refit=False)
    assert "kernel" not in tuned.frame()
    assert any("up to 1,000 rows" in note for note in tuned.notes)


# -- rules --------------------------------------------------------------------------------------------------------


def lines(*right: list[float], weight: float = 20.0) -> list[dict[str, Any]]:
    zero = [0.0] * len(right[0])
    same = {"weight": weight, "judged": weight, "trained": 4 * weight, "splits": zero, "relabelled": zero}
    return [{"right": r, **same} for r in right]


def test_one_standard_error_takes_the_smaller_depth_only_where_the_difference_is_within_it() -> None:
    settings = [{"depth": 0}, {"depth": 1}]
    noisy = scores(settings, lines([14, 17], [16, 14], [15, 17], [14, 15], [15, 14]), [0, 0], 100, 0)
    assert choose(noisy, "best") == 1
    assert choose(noisy, "one_standard_error") == 0
    sure = scores(settings, lines([14, 19], [16, 20], [15, 19], [14, 18], [15, 20]), [0, 0], 100, 0)
    assert choose(sure, "one_standard_error") == 1


def test_the_standard_error_is_that_of_nadeau_and_bengio() -> None:
    found = scores([{"a": 0}, {"a": 1}], lines([14, 17], [16, 14], [15, 17], [14, 15]), [0, 0], 80, 0)
    differences = np.array([3, -2, 2, 1]) / 20
    assert found["standard_error"][0] == pytest.approx(np.sqrt(differences.var(ddof=1) * (1 / 4 + 1 / 4)))
    assert found["standard_error"][1] == 0
    own = np.array([14, 16, 15, 14]) / 20
    assert found["accuracy_error"][0] == pytest.approx(np.sqrt(own.var(ddof=1) * (1 / 4 + 1 / 4)))


def test_the_prior_counts_like_rows_and_fades() -> None:
    settings = [{"depth": 0}, {"depth": 1}]
    few = scores(settings, lines([14, 15], [14, 15]), [0, -0.1], 20, 100)
    many = scores(settings, lines([14, 15], [14, 15]), [0, -0.1], 20_000, 100)
    assert choose(few, "best") == 0
    assert choose(many, "best") == 1
    # 20 rows of accuracy 0.75 and 100 of 0.7 - 0.1
    assert few["score"][1] == pytest.approx((20 * 0.75 + 100 * 0.6) / 120)


# -- nobody judges by what was fitted to him ----------------------------------------------------------------------


@pytest.mark.slow
def test_labels_drawn_by_lot_are_guessed_half_the_time() -> None:
    # More columns than rows: whoever is judged on rows that trained is right nearly always.
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 80)), rng.permutation(np.repeat([0, 1], 30))
    tuned = octsvm.tune("re_svm", X, y, {"c1": [10.0], "c2": [1e3]}, folds=5, repeats=4, refit=False)
    assert 0.3 < tuned.accuracy < 0.7
    ((_, result),) = octsvm.fit_path("re_svm", X, y, [{"c1": 10.0, "c2": 1e3}])
    assert (result.tree.predict(X) == y).mean() > 0.95


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_a_fold_does_not_see_the_rows_that_judge_it(
    kernel: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = linear(40)
    setting = {"depth": 0, "c1": 4.0, "c2": 9.0, "c3": 0.01}
    grid = fold_module.Grid("octsvm", [setting], {"kernel": kernel}, True, True, 0)
    seen: list[Any] = []
    genuine = fold_module.fit_path

    def spied(*given: Any, **options: Any) -> Any:
        for k, result in genuine(*given, **options):
            seen.append((result.tree.to_json(), given[3], options["weights"].tolist()))
            yield k, result

    monkeypatch.setattr(fold_module, "fit_path", spied)
    table = fold_module.Table(X, y, (0, 1), np.ones(40), "balanced")
    fold = fold_module.split(table, 4, 1, 0)[0]
    assert not set(fold.train) & set(fold.judged)
    assert len(fold.train) + len(fold.judged) == 40
    fold_module.fit_fold(table, grid, fold)
    planted = X.copy(), y.copy(), np.ones(40)
    planted[0][fold.judged] = 1e6 * np.random.default_rng(0).normal(size=planted[0][fold.judged].shape)
    planted[1][fold.judged] = 1
    planted[2][fold.judged] = 50.0
    leaky = fold_module.Table(planted[0], planted[1], (0, 1), planted[2], "balanced")
    fold_module.fit_fold(leaky, grid, fold)
    assert seen[0] == seen[1]


# -- costs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["octsvm", "re_svm", "moctsvm"])
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_relative_costs_do_not_depend_on_units_and_count_rows(name: str, norm: str) -> None:
    X, y = linear(50)
    form = formulation(name)
    setting = {"c1": 2.0, "c2": 3.0} | ({} if name == "re_svm" else {"c3": 0.02})

    def costs(X: Any, y: Any, weights: Any = None) -> list[float]:
        data = prepare(form, X, y, weights=weights)
        return list(absolute(form, [setting], {"norm": norm}, data)[0].values())

    plain = costs(X, y)
    assert costs(1000 * X - 7, y) == pytest.approx(plain)
    assert costs(np.vstack([X, X]), np.r_[y, y]) == pytest.approx(costs(X, y, np.full(50, 2.0)))
    four = costs(np.vstack([X] * 4), np.tile(y, 4))
    assert four[0] == pytest.approx(plain[0] / 2)  # by the root of the rows
    if name != "re_svm":
        assert four[2] == pytest.approx(plain[2] * 2)  # a share of all rows, at that c1


@pytest.mark.slow
def test_below_one_labels_drawn_by_lot_pay_for_no_hyperplane() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((400, 5))
    splits = {0.5: 0, 2.0: 0}
    for _ in range(6):
        y = rng.permutation(np.repeat([0, 1], 200))
        data = prepare(formulation("octsvm"), X, y)
        for c1 in splits:
            (one,) = absolute(formulation("octsvm"), [{"c1": c1, "c2": 1e3, "c3": 0.0, "depth": 0}], {}, data)
            ((_, result),) = octsvm.fit_path("octsvm", X, y, [one])
            splits[c1] += int(result.tree.splits.sum())
    assert splits[0.5] == 0
    assert splits[2.0] > 3


# -- weights ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rows_without_weight_and_weights_that_decide() -> None:
    X, y = exclusive_or(30)
    X2, y2 = np.vstack([X, X]), np.r_[y, np.where(y == "in", "out", "in")]
    weights = np.r_[np.ones(30), np.zeros(30)]
    whole = octsvm.tune("oct", X, y, **QUICKEST).frame()
    assert octsvm.tune("oct", X2, y2, weights=weights, **QUICKEST).frame().equals(whole)
    weights[30:] = 1e-3
    costs = {"grid": SMALL | {"c1": [8.0]}}
    light = octsvm.tune("octsvm", X2, y2, weights=weights, prior_rows=0, **QUICK | costs)
    assert light.choice["depth"] == 1


@pytest.mark.slow
def test_class_weights_count_where_rows_are_judged() -> None:
    X, _ = linear(60)
    y = np.repeat([0, 1], [54, 6])  # nothing to learn: the larger class is the guess
    X = X[np.random.default_rng(0).permutation(60)]
    plane: dict[str, Any] = QUICK | {"grid": SMALL | {"depth": [0]}}
    assert octsvm.tune("octsvm", X, y, **plane).accuracy > 0.8
    assert octsvm.tune("octsvm", X, y, class_weight="balanced", **plane).accuracy < 0.7


# -- stores, processes --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_killed_run_goes_on_and_comes_to_the_same_choice(tmp_path: Path) -> None:
    store = tmp_path / "folds.jsonl"
    X, y = linear(40)
    whole = octsvm.tune("oct", X, y, **QUICKEST)
    code = (
        "import os, octsvm, numpy as np\n"
        "from octsvm.tuning import folds\n"
        "genuine = folds.fit_fold\n"
        "def dies(table, grid, fold, seconds):\n"
        "    if fold.number == 1: os._exit(9)\n"
        "    return genuine(table, grid, fold, seconds)\n"
        "folds.fit_fold = dies\n"
        "X = np.random.default_rng(0).random((40, 3))\n"
        f"octsvm.tune('oct', X, (X[:, 0] + X[:, 1] > 1).astype(int), store={str(store)!r}, **{QUICKEST!r})\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert [json.loads(line)["fold"] for line in store.read_text().splitlines()] == [0]
    store.write_text(store.read_text() + '{"key": "cut o')
    again = octsvm.tune("oct", X, y, store=store, **QUICKEST)
    assert again.choice == whole.choice
    assert again.frame().equals(whole.frame())
    known = store.read_text()
    octsvm.tune("oct", X, y, store=store, **QUICKEST)
    assert store.read_text() == known
    other = octsvm.tune("oct", X, 1 - y, store=store, **QUICKEST)  # another table in the same file
    assert store.read_text() != known
    assert other.frame().equals(octsvm.tune("oct", X, 1 - y, **QUICKEST).frame())


@pytest.mark.slow
def test_a_dask_client_comes_to_the_same() -> (
    None
):  # processes: test_a_grid_search_and_a_tuning_in_two_processes
    from joblib import parallel_config

    X, y = linear(40)
    alone = octsvm.tune("oct", X, y, **QUICKEST).frame()
    distributed = pytest.importorskip("distributed")
    here: Any = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.Client(**here), parallel_config("dask"):
        assert octsvm.tune("oct", X, y, **QUICKEST).frame().equals(alone)


@pytest.mark.slow
def test_progress_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    octsvm.tune("oct", *linear(30), progress=True, **QUICKEST)
    out, err = capsys.readouterr()
    assert "oct: folds: 1 of 3 after" in err
    assert "s left" in err
    assert out == ""


# -- tables that leave nothing to judge, wrong input --------------------------------------------------------------


def test_a_class_of_one_row_leaves_the_usual_setting() -> None:
    X, _y = linear(20)
    tuned = octsvm.tune("octsvm", X, np.r_[1, np.zeros(19, dtype=int)], refit=False)
    assert tuned.choice["depth"] == 0
    assert "nothing could be judged" in str(tuned)
    with pytest.warns(UserWarning, match="one class"):
        tuned = octsvm.tune("octsvm", X, np.zeros(20), time_limit=5)
    assert tuned.tree is not None
    assert "given up" not in str(tuned)  # no choice was made that could be the reason


def test_more_classes_and_frames() -> None:
    from sklearn.datasets import load_iris

    frame = load_iris(as_frame=True)
    y = pd.Series(frame.target_names[frame.target])
    tuned = octsvm.tune("oct", frame.data, y, {"depth": [1, 2]}, folds=2, repeats=1, time_limit=5)
    assert tuned.choice["depth"] == 2
    assert set(tuned.tree.classes) == set(y)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"rule": "luck"}, "one_standard_error"),
        ({"folds": 1}, "2 or more"),
        ({"repeats": 0}, "1 or more"),
        ({"prior_rows": -1}, "0 or more"),
        ({"jobs": 0}, "-1 for all"),
        ({"store": 3}, "path of a file"),
        ({"grid": 3}, "lists of values"),
        ({"grid": {}}, "empty"),
        ({"grid": {"c7": [1]}}, "c7"),
        ({"grid": {"c1": [-1.0]}}, "c1"),
        ({"grid": {"c1": [1.0]}, "c1": 2.0}, "once"),
        ({"class_weight": "heavy"}, "balanced"),
        ({"time_limit": -3}, "time_limit"),
    ],
)
def test_wrong_input_is_said_before_anything_is_fitted(wrong: dict[str, Any], match: str) -> None:
    with pytest.raises(octsvm.InvalidParameter, match=match):
        octsvm.tune("octsvm", *linear(20), **wrong)


@pytest.mark.slow
def test_a_fold_that_is_damaged_is_fitted_again(tmp_path: Path) -> None:
    store, (X, y) = tmp_path / "folds.jsonl", linear(20)
    two: dict[str, Any] = QUICKEST | {"store": store, "folds": 2}
    whole = octsvm.tune("oct", X, y, **two)
    first, second = store.read_text().splitlines()
    damage: list[dict[str, Any]] = [{"right": [1.0]}, {"splits": {}}, {"weight": "x"}, {"fold": []}]
    texts = [json.dumps(json.loads(first) | change) for change in damage]
    texts += ["{" * 100_000, '{"key": ' + "9" * 5000 + "}", first[: len(first) // 2]]
    for text in texts:
        store.write_text(f"{text}\n{second}\n")
        again = octsvm.tune("oct", X, y, **two)
        assert again.choice == whole.choice
        assert json.loads(store.read_text().splitlines()[-1]) == json.loads(first)


def test_a_file_of_something_else_is_no_store(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("dear diary\n")
    with pytest.raises(octsvm.InvalidStore, match="another file"):
        octsvm.tune("octsvm", *linear(20), store=other, **QUICK)
    assert other.read_text() == "dear diary\n"
    for strange in (tmp_path / "no" / "folder", tmp_path, "a\0b"):
        with pytest.raises(octsvm.OutputNotWritable, match="cannot be written: "):
            octsvm.tune("octsvm", *linear(20), store=strange, **QUICK)


# -- the time limit --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_folds_take_half_of_the_limit_and_what_they_are_short_of_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = linear(40)
    asked: list[float] = []
    known = fold_module.fit_fold

    def slow(table: Any, grid: Any, fold: Any, seconds: float) -> Any:
        asked.append(seconds)
        return known(table, grid, fold, seconds if fold.number < 2 else 1e-3)

    monkeypatch.setattr(fold_module, "fit_fold", slow)
    tuned = octsvm.tune("octsvm", X, y, **QUICK | {"refit": True}, time_limit=200)
    assert 50 < min(asked) <= max(asked) <= 100
    assert asked == sorted(asked, reverse=True)
    assert tuned.notes[0].startswith("The time limit left time for 2 of 3 folds.")
    assert tuned.notes[0] in str(tuned)
    assert tuned.frame()["standard_error"].notna().all()
    assert 0 < tuned.seconds < 200


@pytest.mark.slow
def test_processes_that_do_not_come_back_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    monkeypatch.setattr(fold_module, "fit_fold", lambda *fold: time.sleep(300))
    tuned = octsvm.tune("octsvm", *linear(40), **QUICK, jobs=2, time_limit=1)
    assert "none of 3 folds" in str(tuned)
    assert time.monotonic() - began < 150


@pytest.mark.slow
def test_folds_that_end_in_time_do_not_depend_on_the_limit(of_no_plane: Any) -> None:
    limited = octsvm.tune("octsvm", *exclusive_or(40), **QUICK, time_limit=1e6)
    pd.testing.assert_frame_equal(limited.frame(), of_no_plane.frame())


@pytest.mark.parametrize("name", ["oct", "oct_h", "re_svm", "octsvm", "moctsvm"])
def test_where_no_fold_ends_the_usual_setting_is_fitted(name: str) -> None:
    tuned = octsvm.tune(name, *linear(60), time_limit=1e-3)
    assert "none of" in tuned.notes[0]
    assert np.isnan(tuned.accuracy)
    assert "nan" not in str(tuned)
    assert tuned.result is not None
    frame = tuned.frame()
    assert frame["accuracy"].isna().all()
    assert frame["score"][frame["chosen"]].item() == frame["score"].max() == 0


# -- pictures -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_picture_has_a_panel_for_each_depth_and_rings_the_choice(of_a_plane: Any) -> None:
    pytest.importorskip("matplotlib")
    panels = of_a_plane.plot()
    assert [axes.get_title() for axes in panels] == ["depth 0", "depth 1"]
    ring = next(line for line in panels[0].get_lines() if line.get_gid() == "chosen")
    assert ring.get_ydata()[0] == of_a_plane.accuracy
    panels[0].figure.savefig("/dev/null", format="png")
    with pytest.raises(octsvm.InvalidParameter):
        octsvm.plot_tuning([1, 2])


# -- the command --------------------------------------------------------------------------------------------------


def test_of_one_fold_in_time_no_error_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from octsvm import cli
    from octsvm.tuning import run

    fit_folds = run.fit_folds
    monkeypatch.setattr(run, "fit_folds", lambda *asked: fit_folds(*asked)[:1])
    X, y = linear(30)
    table, out = tmp_path / "table.csv", tmp_path / "tree.json"
    pd.DataFrame(X).assign(label=y).to_csv(table, index=False)
    words = ["tune", str(table), "--depth", "0", "--c2", "100", "--folds", "2", "--repeats", "1"]
    done = CliRunner().invoke(cli.main, [*words, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert done.stdout.count("of one fold") == 2
    assert "nan" not in done.stdout.partition("\n\n")[0]
    assert json.loads(out.read_text())["fit"]["folds"]["standard_error"] is None
    assert (
        json.loads(CliRunner().invoke(cli.main, [*words, "--json"]).stdout)["tuning"]["accuracy_error"]
        is None
    )


@pytest.mark.slow
def test_the_command_keeps_what_is_given_and_saves_a_tree_for_the_other_commands(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from octsvm import cli

    X, y = linear(30)
    table = tmp_path / "table.csv"
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=np.where(y, "yes", "no")).to_csv(table, index=False)
    out = tmp_path / "tree.json"
    words = [
        "tune",
        table,
        *["--depth", "0", "--c2", "100", "--folds", "2", "--repeats", "1", "--time-limit", "40"],
    ]
    done = CliRunner().invoke(cli.main, [*map(str, words), "--json", "--out", str(out), "--jobs", "1"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["tuning"]["choice"] == {k: said["params"][k] for k in said["tuning"]["choice"]}
    assert (said["params"]["depth"], said["params"]["c2"]) == (0, 100.0)
    assert sum(line["chosen"] for line in said["tuning"]["settings"]) == 1
    folds = json.loads(out.read_text())["fit"]["folds"]
    assert folds["accuracy"] == said["tuning"]["accuracy"]
    assert folds["standard_error"] == said["tuning"]["accuracy_error"] > 0
    told = f"over folds, on rows not trained on: {folds['accuracy']:.4f}"
    summary = CliRunner().invoke(cli.main, [*map(str, words), "--quiet"])
    assert told in summary.stdout
    assert "no rows are held out" not in summary.stdout
    assert not summary.stderr
    page = tmp_path / "report.html"
    assert CliRunner().invoke(cli.main, ["report", str(out), "--out", str(page)]).exit_code == 0
    assert told in page.read_text(encoding="utf-8")
    predicted = CliRunner().invoke(cli.main, ["predict", str(out), str(table)])
    assert predicted.exit_code == 0
    wrong = CliRunner().invoke(cli.main, ["tune", str(table), "--rule", "luck"])
    assert wrong.exit_code == 2
