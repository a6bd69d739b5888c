"""Kernels: the model on factor rows is that of the feature space, and its trees need their support samples alone."""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from long_cases import long
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC
from waiting import at_most

import octsvm
from octsvm.data import prepare
from octsvm.diagnostics import model_size
from octsvm.formulations import kernels
from octsvm.formulations.blocks.sizes import counted
from octsvm.formulations.registry import formulation
from octsvm.formulations.trees import KernelTree

SETTINGS: dict[str, dict[str, Any]] = {
    "re_svm": {"c1": 3.0, "c2": 2.0},
    "octsvm": {"depth": 1, "c1": 3.0, "c2": 2.0, "c3": 0.1},
}


def table(seed: int, n: int = 8, p: int = 2) -> tuple[Any, Any]:
    """Samples of which those near the middle are of one class, with some noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    y = np.where(((X - 0.5) ** 2).sum(axis=1) < 0.08 * p, 1, -1)
    y[rng.random(n) < 0.15] *= -1
    y[:2] = [1, -1]
    return X, y


def dot(A: Any, B: Any) -> Any:
    """A kernel of one's own, defined where Python can import it."""
    return A @ B.T


def bell(A: Any, B: Any) -> Any:
    """exp(-2 ‖a - b‖²)."""
    return np.exp(-2.0 * ((A[:, None] - B) ** 2).sum(axis=2))


def sine(A: Any, B: Any) -> Any:
    """Symmetric, and no kernel."""
    return np.sin(9.0 * (A @ B.T))


@pytest.fixture
def named() -> Iterator[str]:
    """A name for ``bell``."""
    octsvm.register_kernel("bell", bell)
    yield "bell"
    kernels._own.clear()


# -- the same model -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("seed", [0, 1, 2, *long(range(3, 10))])
@pytest.mark.quick_cases("[01]-re_svm")
def test_the_tree_of_a_linear_kernel_predicts_as_the_one_without(name: str, seed: int) -> None:
    X, y = table(seed, n=9)
    plain = octsvm.fit(name, X, y, gap=1e-7, **SETTINGS[name])
    kernel = octsvm.fit(name, X, y, kernel="linear", gap=1e-7, **SETTINGS[name])
    assert plain.status == kernel.status
    assert kernel.objective == pytest.approx(plain.objective, rel=1e-5)
    # Optima need not be unique: the tree of one model is a point of the other, at its cost.
    tree = octsvm.embed(octsvm.build(name, X, y, kernel="linear", **SETTINGS[name]), kernel.tree)
    omega = tree.alpha @ tree.support
    fresh = np.random.default_rng(seed).random((50, 2))
    by_hand = tree.scaling.scaled(fresh) @ omega.T + tree.omega0
    assert tree.scores(fresh) == pytest.approx(by_hand, abs=1e-8)
    assert np.linalg.norm(omega, axis=1) == pytest.approx(np.linalg.norm(tree.omega, axis=1), abs=1e-9)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("seed", [0, *long(range(1, 4))])
@pytest.mark.slow_cases("*-octsvm")
def test_the_quadratic_kernel_is_the_model_on_monomials(name: str, seed: int) -> None:
    X, y = table(seed)
    X = 0.7 * X  # so that √2 x lies in [0, 1]
    a, b, root = X[:, 0], X[:, 1], np.sqrt(2)
    monomials = np.column_stack([root * a, root * b, a * a, b * b, root * a * b])
    quadratic = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}
    kernel = octsvm.fit(name, X, y, scale=False, gap=1e-7, **quadratic, **SETTINGS[name])
    explicit = octsvm.fit(name, monomials, y, scale=False, gap=1e-7, **SETTINGS[name])
    assert kernel.objective == pytest.approx(explicit.objective, rel=1e-5)


def svc(S: Any, y: Any, C: float, weights: Any = None, **kernel: Any) -> tuple[float, Any]:
    """The objective of scikit-learn's SVC on scaled rows, and the machine.

    That of the dual, which the SVC maximises: its primal point is off by up to 1e-4, as it rounds kernels to single precision.
    """
    machine = SVC(C=C, tol=1e-10, **kernel).fit(S, y, sample_weight=weights)
    a, V = machine.dual_coef_[0], machine.support_vectors_
    gamma, shift = machine._gamma, machine.coef0
    K = {
        "linear": V @ V.T,
        "poly": (gamma * V @ V.T + shift) ** machine.degree,
        "rbf": np.exp(-gamma * ((V[:, None] - V) ** 2).sum(axis=2)),
    }[machine.kernel]
    return float(np.abs(a).sum() - 0.5 * a @ K @ a), machine


@pytest.mark.parametrize("seed", [*range(5), *long(range(5, 50))])  # each kernel
def test_where_labels_are_dear_it_is_the_svc_of_that_kernel(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, C = int(rng.integers(8, 30)), float(10 ** rng.uniform(-1, 1.5))
    X, y = table(seed, n=n, p=int(rng.integers(1, 4)))
    kernel: dict[str, Any] = [
        {"kernel": "rbf"},
        {"kernel": "rbf", "gamma": float(10 ** rng.uniform(-1, 1))},
        {"kernel": "poly", "coef0": 1.0},
        {"kernel": "poly", "degree": 2, "gamma": "auto"},
        {"kernel": "linear"},
    ][seed % 5]
    theirs, machine = svc(MinMaxScaler().fit_transform(X), y, C, **kernel)
    ours = octsvm.fit("re_svm", 10 * X - 3, y, c1=C, c2=1e3 * C, gap=1e-8, solver="highs", **kernel)
    assert ours.objective == pytest.approx(theirs, rel=1e-6)
    if seed % 5 != 4:
        assert ours.tree.kernel.gamma == pytest.approx(machine._gamma, rel=1e-9)


@pytest.mark.parametrize("solver", ["highs", "branch_and_reduce"])
@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_best_svc_over_all_choices_of_labels(seed: int, solver: str) -> None:
    X, y = table(seed, n=6)
    S = MinMaxScaler().fit_transform(X)
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], size=6)
    c1, c2 = 4.0, 1.5
    best = np.inf
    for flips in itertools.product([0, 1], repeat=6):
        labels = np.where(flips, -y, y)
        given_up = c2 * float(weights @ np.array(flips))
        alone = len(set(labels)) == 1
        best = min(
            best, given_up + (0.0 if alone else svc(S, labels, c1, weights, kernel="rbf", gamma=2.0)[0])
        )
    more: dict[str, Any] = {"weights": weights, "kernel": "rbf", "gamma": 2.0, "solver": solver}
    ours = octsvm.fit("re_svm", X, y, c1=c1, c2=c2, gap=1e-5, **more)
    assert ours.status == "optimal"
    assert ours.bound <= best * (1 + 1e-6)
    assert ours.objective == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_function_is_the_kernel_of_its_name(name: str, named: str) -> None:
    X, y = table(3)
    fits = [
        octsvm.fit(name, X, y, **chosen, **SETTINGS[name])
        for chosen in ({"kernel": bell}, {"kernel": named}, {"kernel": "rbf", "gamma": 2.0})
    ]
    assert [one.objective for one in fits] == pytest.approx([fits[2].objective] * 3, rel=1e-6)
    assert len({one.params["kernel"] for one in fits}) == 2  # the function's registered name, and "rbf"


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("variant", ["compact", "paper"])
@pytest.mark.quick_cases("compact-octsvm", "paper-re_svm")
def test_the_variants_agree(name: str, variant: str) -> None:
    X, y = table(1, n=7)
    more: dict[str, Any] = {"mu_svm": 1e-3} if name == "octsvm" else {}
    result = octsvm.fit(name, X, y, kernel="rbf", variant=variant, gap=1e-6, **more, **SETTINGS[name])
    default = octsvm.fit(name, X, y, kernel="rbf", gap=1e-6, **SETTINGS[name])
    assert result.objective == pytest.approx(default.objective, rel=1e-4)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_stated_size_is_the_built_one(name: str) -> None:
    X, y = table(2)
    more = {"kernel": "rbf", **SETTINGS[name]}
    stated, found = model_size.of_table(name, X, y, **more), counted(octsvm.build(name, X, y, **more))
    assert (stated.rows, stated.variables, stated.nonzeros) == (found.rows, found.variables, found.nonzeros)
    assert stated.p == 2
    assert model_size.of_shape(name, *X.shape, **more).variables >= found.variables


# -- the factor ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1e-4, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("degree", [0, 1, 3])
def test_the_rows_have_the_kernel_as_their_products(gamma: float, degree: int) -> None:
    X = np.random.default_rng(0).random((60, 3))
    X[40:] = X[:20]  # equal rows add no dimension
    kernel = kernels.Kernel("poly", gamma, degree, 1.0) if degree else kernels.Kernel("rbf", gamma)
    found = kernels.KernelMap.learn_from(octsvm.formulations.base.Scaling.identity(3), kernel, X)
    F, K = found.coordinates(X), kernel.values(X, X)
    size = K.max()
    assert np.abs(F @ F.T - K).max() <= 2 * kernels.TOLERANCE * size
    assert len(found.support) == F.shape[1] <= 40
    if degree:
        assert F.shape[1] <= 4 if degree == 1 else 20
    # Nothing about a row depends on the rows that it comes with.
    assert np.array_equal(np.vstack([found.transform(x[None]) for x in X]), F)


def test_large_tables_are_mapped_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).random((5000, 2))
    y = np.arange(5000) % 2
    form = formulation("re_svm")
    rows = prepare(form, X, y, params=form.Params.make("re_svm", kernel="poly", coef0=1.0))
    assert rows.X.shape == (5000, 10)
    monkeypatch.setattr(kernels, "MOST", 5000 * 50)
    with pytest.raises(octsvm.InvalidData, match="more than 50 coordinates for the 5000 rows"):
        prepare(form, X, y, params=form.Params.make("re_svm", kernel="rbf", gamma=50.0))


def test_how_much_the_tolerance_costs() -> None:
    """The bound of the module: ½(Σ α_i r_i)², from the multipliers of the full problem."""
    for seed in range(5):
        X, y = table(seed, n=40)
        S, C, gamma = MinMaxScaler().fit_transform(X), 5.0, 0.02
        full, machine = svc(S, y, C, kernel="rbf", gamma=gamma)
        rows = prepare(
            formulation("re_svm"),
            X,
            y,
            params=formulation("re_svm").Params.make("re_svm", kernel="rbf", gamma=gamma),
        )
        left = np.maximum(0.0, 1.0 - (rows.X**2).sum(axis=1))
        assert rows.p < 40
        reduced, _ = svc(rows.X, y, C, kernel="linear")
        most = 0.5 * (np.abs(machine.dual_coef_[0]) @ np.sqrt(left[machine.support_])) ** 2
        assert full * (1 - 1e-7) <= reduced <= full + most + 1e-7 * full


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"kernel": "sigmoid"}, "'linear', 'poly', 'rbf'"),
        ({"kernel": sine}, "positive semidefinite"),
        ({"kernel": lambda A, B: A}, r"shape \(8, 8\)"),
        ({"kernel": "poly", "coef0": -5.0}, "coef0"),
        ({"kernel": "rbf", "norm": "l1"}, "norm='l1' has no kernel form"),
        ({"kernel": "rbf", "gamma": 0.0}, "positive"),
        ({"kernel": "rbf", "gamma": "scaled"}, "'scale' or 'auto'"),
        ({"kernel": "poly", "degree": 0}, "greater than or equal to 1"),
    ],
)
def test_what_is_no_kernel_is_refused(given: dict[str, Any], says: str) -> None:
    X, y = table(0)
    for name in SETTINGS:
        with pytest.raises(octsvm.InvalidParameter, match=says):
            octsvm.build(name, X, y, **given)


def test_names_that_are_taken() -> None:
    with pytest.raises(octsvm.InvalidParameter, match="cannot name a kernel"):
        octsvm.register_kernel("rbf", bell)
    with pytest.raises(octsvm.InvalidParameter, match="function of two tables"):
        octsvm.register_kernel("bell", 3)  # type: ignore[arg-type]


def test_a_kernel_that_is_zero_on_the_table() -> None:
    result = octsvm.fit("re_svm", [[0.0], [0.0], [0.0]], [1, 1, -1], kernel="linear")
    assert result.tree.predict([[0.0], [5.0]]).tolist() == [1, 1]


# -- trees --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.quick_cases("linear-octsvm", "poly-re_svm", "rbf-octsvm")
def test_scores_are_sums_over_the_support_samples(name: str, kernel: str) -> None:
    X, y = table(4, n=12)
    tree = octsvm.fit(name, X, y, kernel=kernel, **SETTINGS[name]).tree
    assert isinstance(tree, KernelTree)
    fresh = np.random.default_rng(1).random((30, 2)) * 1.4 - 0.2
    K = tree.kernel.values(tree.scaling.scaled(fresh), tree.support)
    assert tree.scores(fresh) == pytest.approx(K @ tree.alpha.T + tree.omega0, abs=1e-6)
    assert octsvm.evaluate(name, tree, X, y, kernel=kernel, **without_depth(name)).objective > 0
    assert ("support samples" in str(tree)) == bool(tree.splits.any() and not tree.weighs_features)
    if kernel == "linear":
        W, b = tree.weights()
        assert tree.scores(fresh) == pytest.approx(fresh @ W.T + b, abs=1e-6)
    else:
        with pytest.raises(octsvm.InvalidData, match="no weights of features"):
            tree.weights()


def without_depth(name: str) -> dict[str, Any]:
    """The parameters that ``evaluate`` takes."""
    return {k: v for k, v in SETTINGS[name].items() if k != "depth"}


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "bell"])
def test_saved_trees_come_back(kernel: str, named: str) -> None:
    X, y = table(5, n=12)
    result = octsvm.fit("octsvm", 100 * X, y, kernel=kernel, **SETTINGS["octsvm"])
    fresh = np.random.default_rng(1).random((30, 2)) * 140 - 20
    for text in (result.tree.to_json(), result.to_json()):
        again = octsvm.Tree.from_json(text)
        assert np.array_equal(again.scores(fresh), result.tree.scores(fresh))
        assert again.relabelled == result.tree.relabelled
    copy = pickle.loads(pickle.dumps(result.tree))
    assert np.array_equal(copy.scores(fresh), result.tree.scores(fresh))


def test_a_function_without_a_name_is_not_saved() -> None:
    X, y = table(5)
    tree = octsvm.fit("re_svm", X, y, kernel=dot).tree
    with pytest.raises(octsvm.InvalidData, match="register_kernel"):
        tree.to_json()
    assert pickle.loads(pickle.dumps(tree)).predict(X).tolist() == tree.predict(X).tolist()


def test_a_saved_kernel_has_to_be_known(named: str) -> None:
    X, y = table(5)
    text = octsvm.fit("re_svm", X, y, kernel=named).tree.to_json()
    kernels._own.clear()
    with pytest.raises(octsvm.InvalidData, match="register_kernel"):
        octsvm.Tree.from_json(text)


@pytest.mark.parametrize(
    "damage",
    [
        {"support": []},
        {"support": [[0.0], [1.0]]},
        {"omega": [[1.0]]},
        {"kernel": {"name": "rbf"}},
        {"kernel": {"name": "os:system", "gamma": 1.0, "degree": 3, "coef0": 0.0}},
        {"kernel": {"name": "rbf", "gamma": -1.0, "degree": 3, "coef0": 0.0}},
    ],
)
def test_damaged_files_are_refused(damage: dict[str, Any]) -> None:
    X, y = table(5)
    saved = json.loads(octsvm.fit("re_svm", X, y, kernel="rbf").tree.to_json())
    with pytest.raises(octsvm.InvalidData):
        octsvm.Tree.from_dict(saved | damage)
    twice = saved | {"support": [saved["support"][0]] * len(saved["support"])}
    with pytest.raises(octsvm.InvalidData, match="linearly independent"):
        octsvm.Tree.from_dict(twice)


def test_a_start_from_other_rows_of_the_same_space() -> None:
    X, y = table(6, n=12)
    params = {"kernel": "rbf", "gamma": 2.0, **SETTINGS["octsvm"]}
    tree = octsvm.fit("octsvm", X, y, **params).tree
    turned = X[::-1]
    model = octsvm.build("octsvm", turned, y[::-1], **params)
    embedded = octsvm.embed(model, tree)
    assert embedded.scores(X) == pytest.approx(
        octsvm.embed(octsvm.build("octsvm", X, y, **params), tree).scores(X), abs=1e-6
    )
    again = octsvm.extract(model)
    assert again.scores(X) == pytest.approx(embedded.scores(X), abs=1e-6)


@pytest.mark.parametrize("theirs", [{}, {"kernel": "rbf", "gamma": 3.0}, {"kernel": "linear"}])
def test_a_tree_of_another_space_is_no_start(theirs: dict[str, Any]) -> None:
    X, y = table(6)
    tree = octsvm.fit("re_svm", X, y, **theirs).tree
    with pytest.raises(octsvm.TreeNotAdmitted, match=r"kernel"):
        octsvm.build("re_svm", X, y, kernel="rbf", gamma=2.0, start=tree)


def test_coordinates_of_one_array_are_those_of_its_rows_however_often_it_comes() -> None:
    X = np.random.default_rng(0).random((12, 2))
    space = octsvm.fit("re_svm", X, [0, 1] * 6, kernel="rbf", c1=10.0).tree.scaling
    first = space.transform(X)
    assert space.transform(X) is first
    other = X[:5].copy()
    assert np.array_equal(space.transform(other), first[:5])
    assert np.array_equal(space.transform(X), first)
    again = pickle.loads(pickle.dumps(space))
    assert np.array_equal(again.transform(other), first[:5])
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1.0


@pytest.mark.slow
def test_equal_rows_count_as_a_weight() -> None:
    X, y = table(7)
    twice = octsvm.fit("re_svm", np.vstack([X, X[:3]]), np.r_[y, y[:3]], kernel="rbf", gap=1e-7)
    weighted = octsvm.fit("re_svm", X, y, weights=np.r_[2.0, 2, 2, np.ones(5)], kernel="rbf", gap=1e-7)
    assert twice.objective == pytest.approx(weighted.objective, rel=1e-6)
    assert twice.tree.kernel.gamma == pytest.approx(weighted.tree.kernel.gamma, rel=1e-12)


@pytest.mark.slow
def test_a_grid_may_hold_several_kernels() -> None:
    X, y = table(8, n=10)
    settings: list[dict[str, Any]] = [
        {},
        {"kernel": "rbf"},
        {"kernel": "poly", "degree": 2},
        {"kernel": "rbf", "gamma": 9.0},
    ]
    for k, result in octsvm.fit_path("octsvm", X, y, settings, work_limit=3, **SETTINGS["octsvm"]):
        assert isinstance(result.tree, KernelTree) == bool(settings[k])
        again = octsvm.evaluate("octsvm", result.tree, X, y, **settings[k], **without_depth("octsvm"))
        assert again.objective == pytest.approx(result.objective, rel=1e-9)


def test_where_the_clock_ends_the_search_for_pivots_the_map_is_a_part() -> None:
    rng = np.random.default_rng(3)
    X = rng.random((150, 4))
    form = formulation("re_svm")
    params = form.Params.make("re_svm", kernel="rbf", gamma=5.0)
    data = prepare(form, X, X[:, 0] > 0.5)
    whole, part = form.model_rows(data, params), form.model_rows(data, params, lambda: True)
    assert whole.scaling.complete
    assert not part.scaling.complete
    r = part.X.shape[1]
    assert 0 < r < whole.X.shape[1]
    # Pivots are found in the same order: the part is the first coordinates of the whole.
    assert np.allclose(part.X, whole.X[:, :r], atol=1e-6)


@pytest.mark.parametrize("strategy", ["balanced", "exact", "heuristic"])
def test_a_limit_that_ends_the_map_returns_a_checked_tree_without_a_proof(strategy: str) -> None:
    rng = np.random.default_rng(4)
    X = rng.random((1500, 3))
    y = (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)
    costs: dict[str, Any] = {"kernel": "rbf", "gamma": 500.0, "c1": 1.0, "c2": 1.0}
    with at_most(2.5):
        result = octsvm.fit("re_svm", X, y, strategy=strategy, time_limit=0.5, **costs)
    assert (result.stop, result.bound) == ("time_limit", 0.0)
    assert not result.tree.scaling.complete
    again = octsvm.evaluate("re_svm", result.tree, X, y, **costs)
    assert again.objective == pytest.approx(result.objective, rel=1e-9)
