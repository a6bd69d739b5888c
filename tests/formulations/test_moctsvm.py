"""MOCTSVM: its trees in the model and back, what its terms are, and what it does not admit."""

from __future__ import annotations

import dataclasses
from typing import Any

import instances
import numpy as np
import oracles
import pyomo.environ as pyo
import pytest
from model_values import largest_violation
from test_embed import check, random_oblique_tree

import octsvm
from octsvm.formulations.base import Scaling
from octsvm.formulations.trees import ObliqueTree

COSTS = {"c1": 2.0, "c2": 10.0, "c3": 0.3}


def terms(tree: ObliqueTree, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """What the tree costs, sample by sample and in plain Python."""
    S = tree.scaling.transform(X)
    error = wrong = 0.0
    for x, label in zip(S, y, strict=True):
        t = 1
        while t <= tree.n_branch:
            right = True
            if tree.split[t - 1]:
                s = sum(v * w for v, w in zip(x, tree.a[t - 1], strict=True)) - tree.b[t - 1]
                right = s >= 0
                error += max(0.0, 1 - s if right else 1 + s)
            t = 2 * t + right
        wrong += tree.classes[tree.label[t - tree.n_branch - 1]] != label
    norm = max(float(np.sqrt((a**2).sum())) for a in tree.a)
    return {
        "margin": norm / 2,
        "errors": 2.0 * error,
        "misclassified": 10.0 * wrong,
        "splits": 0.3 * tree.split.sum(),
    }


def scaled_up(tree: ObliqueTree, X: np.ndarray, factor: float) -> ObliqueTree:
    """The same splits with normal vectors so long that every sample keeps a distance of ``factor``."""
    a, b = tree.a.copy(), tree.b.copy()
    for t in np.flatnonzero(tree.split):
        gap = np.abs(tree.scaling.transform(X) @ a[t] - b[t]).min()
        a[t], b[t] = a[t] * factor / gap, b[t] * factor / gap
    return dataclasses.replace(tree, a=a, b=b)


@pytest.mark.parametrize("variant", ["compact", "levels"])
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.quick_cases("l2-compact")
def test_random_trees_enter_the_model_and_come_back(variant: str, norm: str) -> None:
    entered = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        K, depth = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        X = rng.normal(size=(12, 3)) * [1.0, 100.0, 0.01] - 5
        tree = random_oblique_tree(rng, X, K, depth, sparse=False)
        tree = scaled_up(tree, X, float(rng.choice([0.1, 1.0])))
        y = tree.predict(X)
        if len(set(y)) < 2:  # the constant tree is as good
            continue
        params = {"c1": 1.0, "c2": 1e7, "c3": 0.1, "norm": norm, "variant": variant}
        check("moctsvm", X, y, tree, depth=depth + seed % 2, **params)
        entered += 1
    assert entered >= 4


@pytest.mark.parametrize("seed", range(8))
def test_terms_are_those_of_a_second_account(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.random((20, 2)) * [3.0, 0.2]
    y = np.concatenate([np.arange(3), rng.integers(0, 3, 17)])
    tree = random_oblique_tree(rng, X, 3, 3, sparse=True)
    found = octsvm.evaluate("moctsvm", tree, X, y, **COSTS)
    assert found.terms == pytest.approx(terms(tree, X, y))
    assert found.objective == pytest.approx(sum(terms(tree, X, y).values()))


def test_a_node_that_does_not_split_sends_all_right_at_no_cost() -> None:
    X, y = [[0.0], [0.2], [0.8], [1.0]], ["a", "a", "b", "c"]
    for depth in (0, 2):
        model = octsvm.build("moctsvm", X, y, depth=depth, **COSTS)
        octsvm.embed(model, octsvm.fit("moctsvm", X, y, depth=0, **COSTS).tree)
        assert largest_violation(model) < 1e-9
        assert pyo.value(model.objective) == pytest.approx(20.0)  # two samples of other classes
        assert (octsvm.extract(model).nodes(X)[:, -1] == 2 ** (depth + 1) - 1).all()


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_two_classes_at_one_split_are_the_svm_of_their_sides(norm: str) -> None:
    """With dear misclassified samples the root separates the classes, and what is left is a soft-margin SVM."""
    X, y = (
        np.array([[0.0, 0.1], [0.2, 0.0], [0.3, 0.4], [0.7, 0.5], [0.8, 1.0], [1.0, 0.9]]),
        [0, 0, 0, 1, 1, 1],
    )
    params: dict[str, Any] = {"c1": 3.0, "c2": 1e3, "c3": 0.2, "norm": norm}
    ours = octsvm.fit("moctsvm", X, y, depth=1, gap=1e-6, **params)
    svm = octsvm.fit("octsvm", X, y, depth=0, gap=1e-6, **params)
    assert svm.tree.relabelled == ()
    assert ours.objective == pytest.approx(svm.objective, rel=1e-5)


def test_what_the_model_does_not_admit() -> None:
    X, y = np.array([[0.0], [0.49995], [0.6], [1.0]]), [0, 0, 1, 2]
    tree = ObliqueTree(
        1,
        (0, 1, 2),
        ("x1",),
        Scaling.identity(1),
        np.array([[4.0]]),
        np.array([2.0]),
        np.array([True]),
        np.array([0, 1]),
    )
    params = {"c1": 1.0, "c2": 10.0, "c3": 0.1}
    model = octsvm.build("moctsvm", X, y, scale=False, depth=1, **params)
    with pytest.raises(octsvm.TreeNotAdmitted, match=r"Row 1 goes left at node 1 with score -0\.0002"):
        octsvm.embed(model, tree)
    octsvm.embed(octsvm.build("moctsvm", X, y, scale=False, depth=1, mu_svm=1e-4, **params), tree)
    far = dataclasses.replace(tree, a=tree.a * 1e3, b=tree.b * 1e3)
    with pytest.raises(octsvm.TreeNotAdmitted, match=r"objective .* is worse than .* big-M"):
        octsvm.embed(model, far)
    with pytest.raises(octsvm.TreeNotAdmitted, match="splits on 1 levels and the model has 0"):
        octsvm.embed(octsvm.build("moctsvm", X, y, depth=0), tree)
    with pytest.raises(octsvm.TreeNotAdmitted, match="oblique splits, not AxisTree"):
        octsvm.embed(model, octsvm.fit("oct", X, y, depth=1).tree)


@pytest.mark.slow
def test_a_known_tree_tightens_the_model_and_any_bound_is_taken() -> None:
    rng = np.random.default_rng(5)
    X = rng.random((12, 2))
    y = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.6)
    params = {"depth": 2, "c1": 1.0, "c2": 20.0, "c3": 0.5}
    known = octsvm.fit("moctsvm", X, y, strategy="heuristic", work_limit={"rounds": 1}, **params)
    plain = octsvm.build("moctsvm", X, y, **params)
    tight = octsvm.build("moctsvm", X, y, start=known.tree, **params)
    assert tight.info.upper_bound == pytest.approx(known.objective)
    assert tight.info.big_m["scores"] < plain.info.big_m["scores"]
    octsvm.embed(tight, known.tree)
    assert largest_violation(tight) < 1e-6
    assert octsvm.build("moctsvm", X, y, upper_bound=50.0, **params).info.upper_bound == 50.0


@pytest.mark.slow
def test_mirrored_trees_of_equal_cost_do_not_end_the_outer_approximation() -> None:
    """Turning a split around costs nothing: round after round meets another tree of the same cost, until all have tangents."""
    instance = instances.tiny("moctsvm", 9, 0)[8]
    result = octsvm.fit(
        "moctsvm", instance.X, instance.y, scale=False, strategy="exact", time_limit=120, **instance.params
    )
    assert result.status == "optimal"
    assert result.objective == pytest.approx(
        oracles.optimum("moctsvm", instance.X, instance.y, instance.params), rel=1e-4
    )
