"""Enumeration of small relabelled sets: its trees are points of the model, and better than those of alternating relabelling."""

from __future__ import annotations

import numpy as np
import pytest
from long_cases import long

import octsvm
from benchmarks.cases import PROOFS
from octsvm import heuristics
from octsvm.data import prepare
from octsvm.formulations.registry import formulation
from octsvm.heuristics import few_relabelled, margin_tree, tree_builder
from octsvm.heuristics.local_search import LocalSearch

FORM = formulation("octsvm")


def builder_of(index: int) -> margin_tree.TreeSearch:
    """Of a table of the benchmark, with the constant tree."""
    case = PROOFS[index]
    params, data = FORM.Params.make("octsvm", **case.params), prepare(FORM, *case.table())
    builder = margin_tree.TreeSearch(data.X, data.sign, data.weights, params, heuristics.Budget(60), 0)
    builder.best = builder.unsplit()
    builder.best.cost = builder.value(builder.best)
    return builder


def optimised_cost(builder: margin_tree.TreeSearch) -> float:
    LocalSearch(builder).optimise_best()
    return builder.best.cost


@pytest.mark.parametrize("index", [3, 8, 10, *long([2])])
@pytest.mark.slow_cases("8", "10")
def test_optima_that_other_trees_miss(index: int) -> None:
    case = PROOFS[index]
    result = octsvm.fit("octsvm", *case.table(), **case.params)
    assert result.status == "optimal"
    ours, others = builder_of(index), builder_of(index)
    for planes in few_relabelled.trees(ours, 600):
        fresh = ours.rescaled(planes)
        assert fresh is not None
        ours.offer(fresh)
    for C in margin_tree.SVM_COSTS:
        others.grow_and_offer(tree_builder.InductionOptions(C=C))
    assert optimised_cost(ours) == pytest.approx(result.objective, rel=1e-3)
    assert optimised_cost(others) > 1.1 * result.objective


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_what_is_claimed_is_what_the_tree_costs(norm: str) -> None:
    case = PROOFS[17]
    X, y = case.table()
    params = FORM.Params.make("octsvm", **case.params, norm=norm)
    data = prepare(FORM, X, y, weights=np.linspace(0.5, 1.5, len(y)))
    builder = margin_tree.TreeSearch(data.X, data.sign, data.weights, params, heuristics.Budget(60), 0)
    builder.best = builder.unsplit()
    builder.best.cost = builder.value(builder.best)
    found = few_relabelled.trees(builder, 600)
    assert 0 < len(found) <= few_relabelled.KEPT
    for planes in found:
        tree = FORM.normalise(margin_tree.as_margin_tree(planes, data, params), data, params)
        FORM.require(tree, data, params)
        known = FORM.evaluate(tree, data.X_original, data.y, params, data.weights).objective
        assert known <= builder.value(planes) * (1 + 1e-9)


def test_larger_tables_and_used_up_budgets_have_no_trees() -> None:
    rng = np.random.default_rng(0)
    params = FORM.Params.make("octsvm", depth=1)
    for n, seconds in ((few_relabelled.LARGEST_TABLE + 1, 60.0), (12, 0.0)):
        data = prepare(FORM, rng.random((n, 2)), np.arange(n) % 2)
        builder = margin_tree.TreeSearch(
            data.X, data.sign, data.weights, params, heuristics.Budget(seconds), 0
        )
        builder.best = builder.unsplit()
        builder.best.cost = builder.value(builder.best)
        assert few_relabelled.trees(builder, 600) == []
        assert few_relabelled.trees(builder, 0) == []
