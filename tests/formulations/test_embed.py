"""Trees enter the models as feasible points with evaluate's objective, and come back as they were."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from model_values import largest_violation
from sklearn.tree import DecisionTreeClassifier

import octsvm
from octsvm.formulations import leaf_trees
from octsvm.formulations.base import Scaling
from octsvm.formulations.trees import AxisTree, MarginTree, ObliqueTree


def walk(tree: Any, x: np.ndarray) -> list[int]:
    """Path of one row, written down a second time and in plain Python."""
    path, t = [1], 1
    for _ in range(tree.depth):
        if isinstance(tree, AxisTree):
            j = tree.feature[t - 1]
            right = j < 0 or x[j] >= tree.threshold[t - 1]
        else:
            span = np.where(tree.scaling.span > 0, tree.scaling.span, 1.0)
            scaled = np.where(tree.scaling.span > 0, (x - tree.scaling.low) / span, 0.0)
            if isinstance(tree, ObliqueTree):
                right = not tree.split[t - 1] or np.add.reduce(scaled * tree.a[t - 1]) >= tree.b[t - 1]
            else:
                right = np.add.reduce(scaled * tree.omega[t - 1]) + tree.omega0[t - 1] >= 0
        t = 2 * t + int(right)
        path.append(t)
    return path


def check(formulation: str, X: np.ndarray, y: np.ndarray, tree: Any, **params: Any) -> None:
    """Embed, compare with evaluate, extract, compare predictions."""
    model = octsvm.build(formulation, X, y, **params)
    embedded = octsvm.embed(model, tree)
    assert largest_violation(model) < 1e-6
    plain = {k: v for k, v in params.items() if k not in ("depth", "scale")}
    evaluation = octsvm.evaluate(formulation, embedded, X, y, **plain)
    assert pyo.value(model.objective) == pytest.approx(evaluation.objective, rel=1e-9, abs=1e-9)
    if embedded.depth == tree.depth:
        before = octsvm.evaluate(formulation, tree, X, y, **plain)
        assert evaluation.objective <= before.objective * (1 + 1e-9) + 1e-9
        assert (embedded.predict(X) == tree.predict(X)).all()
    back = octsvm.extract(model)
    assert (back.predict(X) == embedded.predict(X)).all()
    assert (back.nodes(X) == np.array([walk(back, x) for x in X])).all()
    assert octsvm.evaluate(formulation, back, X, y, **plain).objective == pytest.approx(
        evaluation.objective, rel=1e-7, abs=1e-7
    )


# -- OCT ----------------------------------------------------------------------------------------------------------


def random_axis_tree(rng: np.random.Generator, X: np.ndarray, K: int, depth: int, classes: tuple) -> AxisTree:
    B = 2**depth - 1
    feature = rng.integers(-1, X.shape[1], B)
    for t in range(2, B + 1):
        if feature[t // 2 - 1] < 0:
            feature[t - 1] = -1
    low, high = X.min(axis=0), X.max(axis=0)
    threshold = np.array([rng.uniform(low[max(j, 0)], high[max(j, 0)]) for j in feature])
    names = tuple(f"x{j + 1}" for j in range(X.shape[1]))
    return AxisTree(depth, classes, names, Scaling.learn(X), feature, threshold, rng.integers(0, K, B + 1))


@pytest.mark.parametrize("variant", ["flow", "rank", "bd"])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.slow_cases("5-flow", "9-flow")
def test_random_axis_trees(variant: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    K, depth = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    X = rng.normal(size=(15, 3)).round(3) * [1.0, 100.0, 0.01] - 5
    y = np.array(["a", "b", "c"])[np.concatenate([np.arange(K), rng.integers(0, K, 15 - K)])]
    tree = random_axis_tree(rng, X, K, depth, tuple(sorted(set(y))))
    scale = "baseline" if seed % 3 == 0 else "count"
    if variant == "bd":  # its printed rows admit the majority class of a leaf only
        leaf = tree.nodes(X)[:, -1] - 2**depth
        index = np.searchsorted(sorted(set(y)), y)
        label = [np.argmax(np.bincount(index[leaf == t], minlength=K)) for t in range(2**depth)]
        tree = dataclasses.replace(tree, label=np.array(label))
    check("oct", X, y, tree, depth=depth + seed % 2, alpha=0.3, variant=variant, error_scale=scale)


def from_cart(cart: DecisionTreeClassifier, X: np.ndarray, classes: tuple, depth: int) -> AxisTree:
    B = 2**depth - 1
    feature, threshold = np.full(B, -1), np.zeros(B)
    label = np.zeros(B + 1, dtype=np.int64)

    def fill(node: int, t: int) -> None:
        inner = cart.tree_.children_left[node] >= 0
        if t > B:
            label[t - B - 1] = int(np.argmax(cart.tree_.value[node][0]))
        elif inner:
            feature[t - 1] = cart.tree_.feature[node]
            threshold[t - 1] = np.nextafter(cart.tree_.threshold[node], np.inf)
            fill(cart.tree_.children_left[node], 2 * t)
            fill(cart.tree_.children_right[node], 2 * t + 1)
        else:
            fill(node, 2 * t)
            fill(node, 2 * t + 1)

    fill(0, 1)
    names = tuple(f"x{j + 1}" for j in range(X.shape[1]))
    return AxisTree(depth, classes, names, Scaling.learn(X), feature, threshold, label)


@pytest.mark.parametrize(
    ("n_min", "variant"), [(5, "flow"), *((n_min, variant) for n_min in (1, 5) for variant in ("rank", "bd"))]
)
@pytest.mark.slow_cases("*-flow")
def test_cart_enters_oct(variant: str, n_min: int) -> None:
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32).astype(float)
    cart = DecisionTreeClassifier(max_depth=3, min_samples_leaf=n_min, random_state=0).fit(X, y)
    tree = from_cart(cart, X, (0, 1, 2), 3)
    assert (tree.predict(X) == cart.predict(X)).all()
    check("oct", X, y, tree, depth=3, alpha=0.1, n_min=n_min, variant=variant)


def test_oct_refuses_what_it_does_not_admit() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([0, 0, 1, 1])
    names, scaling = ("x1",), Scaling.learn(X)

    def tree(threshold: float, depth: int = 1) -> AxisTree:
        B = 2**depth - 1
        return AxisTree(
            depth, (0, 1), names, scaling, np.zeros(B, dtype=int), np.full(B, threshold), np.arange(B + 1) % 2
        )

    model = octsvm.build("oct", X, y, depth=1, n_min=2)
    with pytest.raises(octsvm.TreeNotAdmitted, match="holds 1 training rows, and n_min asks for 2"):
        octsvm.embed(model, tree(0.5))
    with pytest.raises(octsvm.TreeNotAdmitted, match="above every value"):
        octsvm.embed(model, tree(9.0))
    with pytest.raises(octsvm.TreeNotAdmitted, match="2 levels and the model has 1"):
        octsvm.embed(model, tree(1.5, depth=2))
    assert all(v.value is None for v in model.component_data_objects(pyo.Var))  # a refusal changes nothing
    octsvm.embed(model, tree(1.5))
    hyperplane = octsvm.fit("re_svm", X, y).tree
    for start in (hyperplane, leaf_trees.as_oblique(tree(1.5))):
        with pytest.raises(octsvm.TreeNotAdmitted, match="OCT takes trees with axis-parallel splits, not "):
            octsvm.fit("oct", X, y, depth=1, start=start)
    minority = dataclasses.replace(tree(1.5), label=np.array([1, 1]))
    octsvm.embed(model, minority)
    with pytest.raises(octsvm.TreeNotAdmitted, match="majority classes only"):
        octsvm.embed(octsvm.build("oct", X, y, depth=1, n_min=2, variant="bd"), minority)


# -- OCT-H --------------------------------------------------------------------------------------------------------


def random_oblique_tree(
    rng: np.random.Generator, X: np.ndarray, K: int, depth: int, sparse: bool
) -> ObliqueTree:
    """Hyperplanes through the widest gap of a random direction, at the rows that reach the node."""
    B, p = 2**depth - 1, X.shape[1]
    scaling = Scaling.learn(X)
    S = scaling.transform(X)
    a, b, split = np.zeros((B, p)), np.zeros(B), np.zeros(B, dtype=bool)
    node = np.ones(len(X), dtype=int)
    for t in range(1, B + 1):
        rows = node == t
        if rows.sum() >= 2 and (t == 1 or split[t // 2 - 1]):
            a[t - 1] = rng.normal(size=p) * (rng.random(p) < 0.7 if sparse else 1)
            values = np.sort(S[rows] @ a[t - 1])
            k = int(np.argmax(np.diff(values)))
            b[t - 1] = (values[k] + values[k + 1]) / 2
            split[t - 1] = np.abs(a[t - 1]).sum() > 0
        right = np.where(split[t - 1], S @ a[t - 1] >= b[t - 1], True)
        node = np.where(rows, 2 * node + right, node)
    names = tuple(f"x{j + 1}" for j in range(p))
    return ObliqueTree(depth, tuple(range(K)), names, scaling, a, b, split, rng.integers(0, K, B + 1))


@pytest.mark.parametrize("complexity", ["splits", "features"])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.slow_cases("11-features")
def test_random_oblique_trees(complexity: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    K, depth = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    X = rng.normal(size=(12, 3)) * [1.0, 100.0, 0.01] - 5
    y = np.concatenate([np.arange(K), rng.integers(0, K, 12 - K)])
    tree = random_oblique_tree(rng, X, K, depth, complexity == "features")
    check("oct_h", X, y, tree, depth=depth + seed % 2, alpha=0.3, complexity=complexity, mu=1e-4)


def test_oct_h_refuses_a_separation_below_mu() -> None:
    X = np.array([[0.0], [0.500], [0.503], [1.0]])
    names = ("x1",)
    tree = ObliqueTree(
        1,
        (0, 1),
        names,
        Scaling.identity(1),
        np.array([[1.0]]),
        np.array([0.5015]),
        np.array([True]),
        np.array([0, 1]),
    )
    model = octsvm.build("oct_h", X, [0, 0, 1, 1], depth=1)
    with pytest.raises(octsvm.TreeNotAdmitted, match=r"separates its rows by 0\.003 .* mu=0\.005"):
        octsvm.embed(model, tree)
    octsvm.embed(octsvm.build("oct_h", X, [0, 0, 1, 1], depth=1, mu=0.002), tree)


# -- RE-SVM and OCTSVM --------------------------------------------------------------------------------------------


def teacher(
    rng: np.random.Generator, n: int, depth: int, p: int = 2
) -> tuple[np.ndarray, np.ndarray, MarginTree]:
    """A random margin tree with labels that it mostly gets right, so that it beats the constant classifier."""
    T = 2 ** (depth + 1) - 1
    X = rng.random((n, p)) * [10.0, 0.1][:p] - 3
    scaling = Scaling.learn(X)
    base = rng.normal(size=p)
    omega = base + 0.4 * rng.normal(size=(T, p))
    omega0 = -(omega @ np.full(p, 0.5)) + 0.05 * rng.normal(size=T)
    split = np.ones(T, dtype=bool)
    for t in range(2, T + 1):
        split[t - 1] = split[t // 2 - 1] and rng.random() < 0.7
    omega = np.where(split[:, None], omega * 8, 0.0)
    omega0 = np.where(split, omega0 * 8, rng.choice([-2.0, 1.0], T))
    tree = MarginTree(depth, (-1, 1), tuple(f"x{j + 1}" for j in range(p)), scaling, omega, omega0, split)
    y = np.asarray(tree.predict(X)).copy()
    y[rng.random(n) < 0.1] *= -1
    y[:2] = [-1, 1]
    return X, y, tree


MARGIN_MODELS = [
    ("re_svm", {}),
    ("re_svm", {"variant": "paper"}),
    ("octsvm", {}),
    ("octsvm", {"variant": "paper"}),
    ("octsvm", {"variant": "paper", "mu_svm": 1e-3}),
]


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize(("formulation", "variant"), MARGIN_MODELS)
@pytest.mark.slow_cases("octsvm-*")
def test_random_margin_trees(formulation: str, variant: dict, norm: str) -> None:
    entered = refused = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        depth = 0 if formulation == "re_svm" else int(rng.integers(0, 3))
        X, y, tree = teacher(rng, 14, depth)
        params = {"c1": 10.0, "c2": 40.0, "norm": norm} | variant
        if formulation == "octsvm":
            params |= {"c3": 0.5, "depth": depth + int(seed % 4 == 0)}
        try:
            check(formulation, X, y, tree, **params)
        except octsvm.TreeNotAdmitted as error:
            # Only two reasons are legal here: worse than the constant classifier, or a row just left of a plane.
            assert str(error).startswith(("The tree's objective", "Row "))  # noqa: PT017
            refused += 1
        else:
            entered += 1
    assert entered >= 3
    assert refused + entered == 8


def test_octsvm_refuses_a_row_just_left_of_a_plane() -> None:
    X = np.array([[0.0], [0.49995], [0.6], [1.0]])
    y = np.array([-1, -1, 1, 1])
    T = 3
    tree = MarginTree(
        1,
        (-1, 1),
        ("x1",),
        Scaling.identity(1),
        np.array([[4.0], [0.0], [0.0]]),
        np.array([-2.0, -1.0, 1.0]),
        np.array([True, False, False]),
    )
    assert tree.n_nodes == T
    model = octsvm.build("octsvm", X, y, scale=False, depth=1, c1=10.0, c2=10.0, c3=0.1)
    with pytest.raises(octsvm.TreeNotAdmitted, match=r"Row 1 goes left at node 1 with score -0\.0002"):
        octsvm.embed(model, tree)
    printed = octsvm.build("octsvm", X, y, scale=False, depth=1, c1=10.0, c2=10.0, c3=0.1, variant="paper")
    octsvm.embed(printed, tree)
    assert largest_violation(printed) < 1e-9


def test_a_bad_tree_is_refused_with_both_figures() -> None:
    X, y, tree = teacher(np.random.default_rng(0), 14, 1)
    worse = MarginTree(
        1, tree.classes, tree.feature_names, tree.scaling, tree.omega * 50, tree.omega0, tree.split
    )
    model = octsvm.build("octsvm", X, y, depth=1, c1=1.0, c2=1.0)
    with pytest.raises(octsvm.TreeNotAdmitted, match=r"objective .* is worse than .* big-M"):
        octsvm.embed(model, worse)


def test_start_gives_the_bound_and_is_never_lost() -> None:
    X, y, tree = teacher(np.random.default_rng(4), 14, 1)
    params = {"depth": 1, "c1": 10.0, "c2": 40.0, "c3": 0.5}
    plain = octsvm.build("octsvm", X, y, **params)
    tight = octsvm.build("octsvm", X, y, start=tree, **params)
    assert tight.info.upper_bound < plain.info.upper_bound
    assert tight.info.big_m["scores"] < plain.info.big_m["scores"]
    octsvm.embed(tight, tree)
    assert largest_violation(tight) < 1e-6
    result = octsvm.fit("octsvm", X, y, start=tree, work_limit=1, **params)
    assert (
        result.objective <= octsvm.evaluate("octsvm", tree, X, y, c1=10.0, c2=40.0, c3=0.5).objective + 1e-9
    )
    assert result.status in ("feasible", "optimal")


@pytest.mark.parametrize("formulation", ["oct", "octsvm"])
def test_a_tree_on_columns_of_other_names_is_no_point_of_a_model_on_these(formulation: str) -> None:
    X, y = pd.DataFrame({"u": [0.1, 0.2, 0.8, 0.9], "v": [0.3, 0.9, 0.1, 0.7]}), list("aabb")
    tree = octsvm.fit(formulation, X, y, depth=1).tree
    for other in (X[["v", "u"]], X.rename(columns={"u": "w"})):
        with pytest.raises(octsvm.TreeNotAdmitted, match="Feature 1 of the tree is 'u'"):
            octsvm.fit(formulation, other, y, depth=1, start=tree)
    assert octsvm.fit(formulation, X.to_numpy(), y, depth=1, start=tree).status == "optimal"
