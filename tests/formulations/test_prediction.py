"""The block of predictions: its variables are what the tree predicts, whatever pulls at them."""

from __future__ import annotations

import functools
from itertools import product
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import octsvm
from octsvm.formulations import blocks

RNG = np.random.default_rng(4)
# On such a grid what pulls at predictions ends with scores of 0, where a rounding error would decide.
X = RNG.permutation(np.linspace(0, 1, 12)).reshape(6, 2)
TWO = np.array([0, 0, 1, 0, 1, 1])
THREE = np.array([0, 2, 1, 0, 2, 1])

MODELS = [
    ("oct", {"depth": 1, "alpha": 0.3}, THREE),
    ("oct", {"depth": 2, "alpha": 0.3}, TWO),
    ("oct", {"depth": 1, "alpha": 0.3, "variant": "rank"}, THREE),
    ("oct", {"depth": 1, "alpha": 0.3, "variant": "bd"}, TWO),
    ("oct_h", {"depth": 1, "alpha": 0.3}, THREE),
    ("moctsvm", {"depth": 1, "c1": 1.0, "c2": 2.0, "c3": 0.2, "norm": "l1"}, THREE),
    ("moctsvm", {"depth": 1, "c1": 1.0, "c2": 2.0, "c3": 0.2, "norm": "l1", "variant": "levels"}, TWO),
    ("re_svm", {"c1": 2.0, "c2": 3.0, "norm": "l1"}, TWO),
    ("octsvm", {"depth": 0, "c1": 2.0, "c2": 3.0, "c3": 0.2, "norm": "l1"}, TWO),
    ("octsvm", {"depth": 1, "c1": 1.0, "c2": 1.0, "c3": 0.1, "norm": "l1"}, TWO),
]


def predicted(name: str, params: dict[str, Any], y: Any) -> tuple[pyo.ConcreteModel, pyo.Block]:
    """A model with the block; big-M has room for trees that rows or terms of one's own ask for."""
    room = {"upper_bound": 25.0} if name in ("re_svm", "octsvm", "moctsvm") else {}
    m = octsvm.build(name, X, y, **room, **params)
    if name in ("re_svm", "octsvm"):
        return m, blocks.add_side_prediction(
            m, m.topology, m.split, m.component("assignment"), m.component("pruning")
        )
    return m, blocks.add_leaf_prediction(m, m.assignment, m.leaf_label)


@functools.cache
def solved(case: int) -> octsvm.Result:
    """What the model of a case with the block comes to."""
    name, params, y = MODELS[case]
    m, block = predicted(name, params, y)
    result = octsvm.solve(m, time_limit=60)
    assert (shown(block) == result.tree.predict_index(X)).all()
    return result


def shown(block: pyo.Block) -> Any:
    """The class that the variables say (n,); each is 0 or 1."""
    p = np.array([[pyo.value(block.p[i, k]) for k in sorted({k for _, k in block.p})] for i in range(len(X))])
    assert np.abs(p - p.round()).max() < 1e-5
    assert (p.round().sum(axis=1) == 1).all()
    return p.argmax(axis=1)


@pytest.mark.parametrize("case", range(len(MODELS)), ids=[f"{m[0]} {i}" for i, m in enumerate(MODELS)])
@pytest.mark.slow_cases("octsvm *", "moctsvm *", "oct 1")
def test_the_variables_are_what_the_tree_predicts_whatever_pulls_at_them(case: int) -> None:
    name, params, y = MODELS[case]
    m, block = predicted(name, params, y)
    plain = solved(case)
    free = octsvm.solve(octsvm.build(name, X, y, **params), time_limit=60)
    assert plain.objective == pytest.approx(free.objective, rel=1e-3)
    for seed in range(2):
        pull = np.random.default_rng(seed).normal(size=len(X)).round(1)
        m.objective.set_value(m.cost + sum(w * block.p[i, 1] for i, w in enumerate(pull.tolist())))
        result = octsvm.solve(m, time_limit=60)
        found = result.tree.predict_index(X)
        assert (shown(block) == found).all()
        assert result.terms.get("yours", 0.0) == pytest.approx(float(pull @ (found == 1)), abs=1e-6)
        # The tree from before is a point of the model, too, so it costs no less.
        before = float(pull @ (plain.tree.predict_index(X) == 1))
        assert result.objective <= plain.objective + before + 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_with_terms_on_predictions_is_that_of_all_stumps(seed: int) -> None:
    pull = np.random.default_rng(seed).normal(size=(len(X), 3)).round(2)
    m, block = predicted("oct", {"depth": 1, "alpha": 0.3, "n_min": 1}, THREE)
    m.objective.set_value(m.cost + sum(pull[i, k] * block.p[i, k] for i, k in block.p))
    everyone = np.zeros(len(X), dtype=bool)
    cuts = [(X[:, j] < b) for j in range(2) for b in np.sort(X[:, j])[1:]]
    costs = []
    for left, (a, b) in product([everyone, *cuts], product(range(3), repeat=2)):
        found = np.where(left, a, b)
        own = pull[np.arange(len(X)), found].sum()
        costs.append((found != THREE).sum() + 0.3 * left.any() + own)
    assert octsvm.solve(m).objective == pytest.approx(min(costs), abs=1e-6)


@pytest.mark.parametrize("case", [0, 5, 7, 9])
@pytest.mark.slow_cases("5", "9")
def test_rows_on_predictions_hold_in_the_tree_and_in_no_cheaper_one(case: int) -> None:
    name, params, y = MODELS[case]
    m, block = predicted(name, params, y)
    best = solved(case)
    wanted = 1 - (best.tree.predict_index(X)[0] == 1)  # another class for the first sample
    m.mine = pyo.Constraint(expr=block.p[0, wanted] >= 1)
    result = octsvm.solve(m, time_limit=60)
    assert result.tree.predict_index(X)[0] == wanted
    assert result.objective >= best.objective - 1e-4
    m.del_component("mine")
    octsvm.embed(m, result.tree)
    assert (shown(block) == result.tree.predict_index(X)).all()


def test_some_samples_only() -> None:
    m = octsvm.build("oct", X, TWO, depth=1)
    block = blocks.add_leaf_prediction(m, m.assignment, m.leaf_label, samples=[2, 5])
    assert sorted({i for i, _ in block.p}) == [2, 5]
    octsvm.solve(m)


@pytest.mark.parametrize("given", [0, 1])
def test_a_tree_with_branch_nodes_is_not_described_by_half_of_its_blocks(given: int) -> None:
    m = octsvm.build("octsvm", X, TWO, depth=1)
    parts = [m.assignment, m.pruning][:given]
    with pytest.raises(octsvm.InvalidParameter, match=r"pruning (is|are) missing.*3 nodes"):
        blocks.add_side_prediction(m, m.topology, m.split, *parts)
    assert m.component("prediction") is None
