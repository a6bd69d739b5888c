"""Constraint blocks: each alone, dropped, swapped, added; models as Pyomo users and other programs meet them."""

from __future__ import annotations

import io
import pickle
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from model_counts import counted
from places import ROOT

import octsvm
from octsvm.formulations import blocks
from octsvm.formulations.blocks import (
    assignment,
    big_m,
    extras,
    flow,
    hinge,
    leaf_label,
    margin,
    prediction,
    relabelling,
    routing,
    sizes,
    split,
    valid_inequalities,
)
from octsvm.formulations.blocks.sizes import BlockSize
from octsvm.formulations.bounds import hull
from octsvm.formulations.bounds.subtrees import Found, RootBounds

rng = np.random.default_rng(1)
X = rng.random((8, 2))
Y = np.where(X[:, 0] > 0.5, 1, -1)
Y[0] *= -1
N, P = X.shape
SVM = {"depth": 1, "c1": 3.0, "c2": 4.0, "c3": 0.1}

# --------------------------------------------------------------------------------- each block alone: sizes, use

W, M = 5.0, np.full(N, 9.0)
DEPTH = 2
T = 7  # nodes of a tree of depth 2
ONES = np.ones(N)
K = 3
CLASSES = np.arange(N) % K


def topology(m: pyo.ConcreteModel) -> pyo.Block:
    return m.component("topology") or blocks.add_topology(m, DEPTH)


def nodes(m: pyo.ConcreteModel) -> range:
    return topology(m).tree.nodes


def planes(m: pyo.ConcreteModel) -> pyo.Block:
    return m.component("split") or blocks.add_hyperplanes(m, nodes(m), X, W, M)


def leaves(m: pyo.ConcreteModel) -> pyo.Block:
    return m.component("assignment") or blocks.add_leaf_assignment(m, topology(m), N, 1)


def levels(m: pyo.ConcreteModel) -> pyo.Block:
    return m.component("assignment") or blocks.add_level_assignment(m, topology(m), N)


def giving_up(m: pyo.ConcreteModel) -> pyo.Block:
    return m.component("relabelling") or blocks.add_relabelling(m, nodes(m), N)


def errors(m: pyo.ConcreteModel) -> pyo.Block:
    return m.component("hinge") or blocks.add_hinge(
        m, nodes(m), planes(m), SIGN, M, 1 + M, levels(m), giving_up(m)
    )


def margins(m: pyo.ConcreteModel, assigned: Callable[[Any], pyo.Block], mu: float | None) -> pyo.Block:
    branch = topology(m).tree.branch
    at = blocks.add_hyperplanes(m, branch, X, W, M)
    return blocks.add_side_hinge(
        m, topology(m), at, blocks.add_pruning(m, topology(m), at, W, branch), assigned(m), M, mu
    )


PLACE = np.column_stack([np.unique(column, return_inverse=True)[1] for column in X.T])
VALUES = PLACE.max(axis=0) + 1
GROUPS = np.minimum(np.arange(N), N - 2)  # the last two rows are equal
G = N - 1
WEIGHT = np.add.reduceat(np.eye(K)[CLASSES], np.unique(GROUPS, return_index=True)[1])
S = int((WEIGHT > 0).sum())
CUTS = int((VALUES - 1).sum())


def cuts(m: pyo.ConcreteModel) -> pyo.Block:
    return m.component("split") or blocks.add_cut_splits(m, topology(m), VALUES)


def groups(m: pyo.ConcreteModel) -> pyo.Block:
    return m.component("assignment") or blocks.add_group_assignment(m, topology(m), GROUPS, 1)


def bounds() -> RootBounds:
    ends = [np.arange(v - 1.0) for v in VALUES]  # 0 at the first cut, and a step at each other
    return RootBounds(ends, ends, 2.0, Found(1.0, 1.0, 100.0))


STEP = np.array([np.diff(np.unique(column)).min() for column in X.T])
SIGN = Y.astype(float)

TREE = blocks.Topology(DEPTH)
BELOW = T - 1  # nodes whose z is not fixed
MIXES = int((SIGN > 0).sum() * (SIGN < 0).sum())
FILLED = N * P

# name: what adds it, and the size that it states
BLOCKS: dict[str, tuple[Callable[[Any], Any], BlockSize]] = {
    "topology": (topology, BlockSize()),
    "axis splits": (lambda m: blocks.add_axis_splits(m, topology(m), P), split.axis_splits_size(TREE, P)),
    "oblique splits": (
        lambda m: blocks.add_oblique_splits(m, topology(m), P),
        split.oblique_splits_size(TREE, P),
    ),
    "sparse oblique splits": (
        lambda m: blocks.add_oblique_splits(m, topology(m), P, sparse=True),
        split.oblique_splits_size(TREE, P, sparse=True),
    ),
    "hyperplanes": (planes, split.hyperplanes_size(N, P, T, FILLED)),
    "pruning": (lambda m: blocks.add_pruning(m, topology(m), planes(m), W), split.pruning_size(P, T)),
    "pruning as printed": (
        lambda m: blocks.add_pruning(m, topology(m), planes(m), None),
        split.pruning_size(P, T, weights=False),
    ),
    "leaf assignment": (leaves, assignment.leaf_assignment_size(TREE, N)),
    "level assignment": (levels, assignment.level_assignment_size(TREE, N)),
    "axis routing": (
        lambda m: blocks.add_axis_routing(
            m, topology(m), blocks.add_axis_splits(m, topology(m), P), leaves(m), X, STEP
        ),
        routing.axis_routing_size(TREE, N, FILLED, P - 1),
    ),
    "axis routing as printed": (
        lambda m: blocks.add_leafwise_axis_routing(
            m, topology(m), blocks.add_axis_splits(m, topology(m), P), leaves(m), X, STEP
        ),
        routing.leafwise_axis_routing_size(TREE, N, FILLED, FILLED),
    ),
    "oblique routing": (
        lambda m: blocks.add_oblique_routing(
            m, topology(m), blocks.add_oblique_splits(m, topology(m), P), leaves(m), X, 0.005
        ),
        routing.oblique_routing_size(TREE, N, FILLED),
    ),
    "side routing": (
        lambda m: blocks.add_side_routing(m, topology(m), planes(m), levels(m), M, 1e-3),
        routing.side_routing_size(TREE, N, strict=True),
    ),
    "leaf labels": (
        lambda m: blocks.add_leaf_labels(m, topology(m), leaves(m), CLASSES, K, ONES),
        leaf_label.leaf_labels_size(TREE, N, K),
    ),
    "counted leaf labels": (
        lambda m: blocks.add_counted_leaf_labels(m, topology(m), leaves(m), CLASSES, K, ONES),
        leaf_label.counted_leaf_labels_size(TREE, N, K),
    ),
    "cut splits": (cuts, flow.cut_splits_size(TREE, P, CUTS)),
    "group assignment": (groups, flow.group_assignment_size(TREE, G)),
    "flow routing": (
        lambda m: blocks.add_flow_routing(m, topology(m), cuts(m), groups(m), PLACE[:G], VALUES),
        flow.flow_routing_size(TREE, G, int((PLACE[:G] < VALUES - 1).sum())),
    ),
    "group leaf labels": (
        lambda m: blocks.add_group_leaf_labels(m, topology(m), groups(m), WEIGHT),
        flow.group_leaf_labels_size(TREE, G, K, S),
    ),
    "subtree bounds": (
        lambda m: blocks.add_subtree_bounds(
            m,
            topology(m),
            cuts(m),
            blocks.add_group_leaf_labels(m, topology(m), groups(m), WEIGHT),
            bounds(),
            1.0,
            0.5,
        ),
        flow.subtree_bounds_size(TREE, True, int(2 * (VALUES - 2).sum()), True),
    ),
    "relabelling": (giving_up, relabelling.relabelling_size(N, T)),
    "relabelling in nodes": (
        lambda m: blocks.add_relabelling(m, nodes(m), N, levels(m)),
        relabelling.relabelling_size(N, T, BELOW),
    ),
    "plain hinge": (
        lambda m: blocks.add_hinge(m, nodes(m), planes(m), SIGN, M, 1 + M),
        hinge.hinge_size(N, T, relabelling=False),
    ),
    "hinge": (
        lambda m: blocks.add_hinge(m, nodes(m), planes(m), SIGN, M, 1 + M, levels(m), giving_up(m)),
        hinge.hinge_size(N, T, placed=BELOW),
    ),
    "hinge on products": (
        lambda m: blocks.add_product_hinge(
            m, nodes(m), planes(m), giving_up(m), SIGN, X, W, 20.0, M, 1 + M, levels(m)
        ),
        hinge.product_hinge_size(N, P, T, FILLED, BELOW),
    ),
    "side hinge": (
        lambda m: margins(m, leaves, 1e-3),
        hinge.side_hinge_size(TREE, N, levels=False, strict=True),
    ),
    "side hinge by levels": (
        lambda m: margins(m, levels, None),
        hinge.side_hinge_size(TREE, N, levels=True, strict=False),
    ),
    "leaf labels without l": (
        lambda m: blocks.add_leaf_labels(m, topology(m), levels(m), CLASSES, K, ONES),
        leaf_label.leaf_labels_size(TREE, N, K, levels=True),
    ),
    "side costs": (
        lambda m: blocks.add_misrouting_inequalities(
            m, topology(m), levels(m), errors(m), giving_up(m), SIGN, 1e-3
        ),
        valid_inequalities.misrouting_inequalities_size(TREE, N),
    ),
    "mixes": (
        lambda m: blocks.add_convex_hull_inequalities(
            m,
            [(mix, t) for mix in hull.pairs(X, SIGN) for t in nodes(m)],
            W,
            blocks.add_margin(m, nodes(m), planes(m), "l1"),
            blocks.add_pruning(m, topology(m), planes(m), W),
            levels(m),
            errors(m),
            giving_up(m),
        ),
        valid_inequalities.convex_hull_inequalities_size(T, T * MIXES, MIXES * (7 * T - 2)),
    ),
    "margin": (lambda m: blocks.add_margin(m, nodes(m), planes(m), "l2"), margin.margin_size(P, T, "l2")),
    "margin l1": (lambda m: blocks.add_margin(m, nodes(m), planes(m), "l1"), margin.margin_size(P, T, "l1")),
    "squared margin": (
        lambda m: blocks.add_squared_margin(m, 1, planes(m), "l2"),
        margin.squared_margin_size(P, "l2"),
    ),
    "squared margin l1": (
        lambda m: blocks.add_squared_margin(m, 1, planes(m), "l1"),
        margin.squared_margin_size(P, "l1"),
    ),
    "leaf prediction": (
        lambda m: blocks.add_leaf_prediction(
            m, leaves(m), blocks.add_leaf_labels(m, topology(m), leaves(m), CLASSES, K, ONES)
        ),
        prediction.leaf_prediction_size(TREE, N, K),
    ),
    "side prediction": (
        lambda m: blocks.add_side_prediction(
            m, topology(m), planes(m), levels(m), blocks.add_pruning(m, topology(m), planes(m), W)
        ),
        prediction.side_prediction_size(TREE, N),
    ),
    "feature budget": (
        lambda m: blocks.add_feature_budget(m, planes(m), 1),
        extras.feature_budget_size(P, P * T),
    ),
    "relabelling cap": (
        lambda m: blocks.add_relabelling_cap(m, giving_up(m), 1),
        extras.relabelling_cap_size(TREE, N),
    ),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_alone_has_the_size_that_it_states_and_is_feasible(name: str) -> None:
    add, stated = BLOCKS[name]
    m = pyo.ConcreteModel()
    block = add(m)
    built = counted(block)
    assert {key: getattr(stated, key) for key in built} == built
    assert stated.squares == len(getattr(block, "squared_norms", ()))
    assert stated == sizes.counted(block)  # of formulations that do not state their size
    assert block is m.component(block.local_name)
    assert block.doc
    for component in block.component_objects((pyo.Var, pyo.Constraint)):
        assert component.doc, f"{component.name} has no line that says what it is"
    # Alone it is a complete, feasible piece of a model.
    m.objective = pyo.Objective(expr=sum(m.component_data_objects(pyo.Var), start=0.0) * 0.0)
    if not getattr(block, "second_order_cones", ()) and list(m.component_data_objects(pyo.Var)):
        result = octsvm.solve(m, on_mismatch="ignore")
        assert result.stop == "optimal"


def builders() -> set[str]:
    """Names of all functions that add a block; a former name stands for the same function."""
    return {getattr(blocks, n).__name__ for n in blocks.__all__ if n.startswith("add_")}


def test_every_block_states_its_size_beside_its_builder() -> None:
    for name in builders() - {"add_topology"}:
        module = sys.modules[getattr(blocks, name).__module__]
        assert callable(getattr(module, f"{name.removeprefix('add_')}_size"))


def test_every_block_is_in_the_table_of_sizes() -> None:
    helpers = (topology, planes, leaves, levels, giving_up, errors, margins, cuts, groups)
    added: list[Any] = [*helpers, *(add for add, _ in BLOCKS.values())]
    assert builders() <= {name for add in added for name in add.__code__.co_names}


def test_the_topology_is_a_heap() -> None:
    tree = blocks.add_topology(pyo.ConcreteModel(), 2).tree
    assert list(tree.nodes) == [1, 2, 3, 4, 5, 6, 7]
    assert list(tree.branch) == [1, 2, 3]
    assert list(tree.leaf) == [4, 5, 6, 7]
    assert [list(u) for u in tree.levels] == [[1], [2, 3], [4, 5, 6, 7]]
    assert [tree.left_ancestors(t) for t in (4, 5, 6, 7)] == [[2, 1], [1], [3], []]
    assert [tree.right_ancestors(t) for t in (4, 5, 6, 7)] == [[], [2], [1], [3, 1]]
    assert [list(tree.leaves_below(t)) for t in (1, 2, 3, 6)] == [[4, 5, 6, 7], [4, 5], [6, 7], [6]]


# ---------------------------------------------------------------------------------------- drop, swap, add


@pytest.fixture(scope="module")
def example() -> tuple[dict[str, Any], Any, str]:
    """The example of the documentation, run once: its names, what main returned, what it printed."""
    space = runpy.run_path(str(ROOT / "docs" / "examples" / "compose_your_own.py"))
    out, sys.stdout = sys.stdout, io.StringIO()
    try:
        returned = space["main"]()
        text = sys.stdout.getvalue()
    finally:
        sys.stdout = out
    return space, returned, text


def test_the_example_drops_relabelling(example: Any) -> None:
    space, (dropped, _, _, _), text = example
    # Where giving up a label costs too much, the full model is the one without relabelling.
    full = octsvm.fit(
        "octsvm", space["X"], space["y"], depth=1, c1=1.0, c2=1e3, c3=0.1, scale=False, gap=1e-5
    )
    assert not full.tree.relabelled
    assert dropped.objective == pytest.approx(full.objective, rel=2e-4)
    assert any("belongs to no formulation" in note for note in dropped.notes)
    assert dropped.status == "unverified"
    assert "dropped" in text


def test_the_example_swaps_blocks(example: Any) -> None:
    _, (_, (before, after), _, _), _ = example
    assert after == pytest.approx(before, abs=1e-9)


def test_the_example_adds_limits_and_prices(example: Any) -> None:
    space, (_, _, (free, bound), priced), text = example
    assert np.count_nonzero(np.abs(bound.tree.omega).max(axis=0) > 1e-9) <= 1
    assert free.objective <= bound.objective
    assert any("feature_budget, relabelling_cap" in note for note in bound.notes)
    assert any("prices" in note for note in priced.notes)
    bought = np.abs(priced.tree.omega).max(axis=0) > 1e-9
    own = octsvm.evaluate(
        "octsvm", priced.tree, space["X"], space["y"], depth=1, c1=5.0, c2=10.0, c3=0.1
    ).objective
    assert priced.objective == pytest.approx(own + float(np.array([1.0, 8.0, 4.0])[bought].sum()), rel=1e-6)
    assert priced.terms["yours"] == pytest.approx(priced.objective - own, rel=1e-6)
    assert text.count("\n") >= 5


def test_a_model_without_formulation_is_solved_without_a_certificate() -> None:
    """Nothing is claimed of it, so nothing can be contradicted: values, status and a note, no error."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], domain=pyo.Binary)
    m.row = pyo.Constraint(expr=m.x[1] + m.x[2] >= 1)
    m.objective = pyo.Objective(expr=2 * m.x[1] + m.x[2])
    result = octsvm.solve(m)
    assert result.objective == pytest.approx(1)
    assert result.status == "unverified"
    assert result.tree is None
    assert [m.x[1].value, m.x[2].value] == [0, 1]
    assert any("nothing was checked" in note for note in result.notes)


def test_taking_relabelling_out_of_a_built_model() -> None:
    m = octsvm.build("octsvm", X, Y, **SVM)
    for name in ("hinge", "relabelling", "cost", "objective"):
        m.del_component(name)
    data, bound = m.info.data, np.full(N, m.info.big_m["scores"])
    blocks.add_hinge(m, m.topology.tree.nodes, m.split, data.sign, bound, 1 + bound, m.assignment)
    m.cost = pyo.Expression(
        expr=m.margin.delta + 3 * sum(m.hinge.e.values()) + 0.1 * sum(m.pruning.d.values())
    )
    m.objective = pyo.Objective(expr=m.cost)
    result = octsvm.solve(m, gap=1e-5)
    dear = octsvm.fit("octsvm", X, Y, **(SVM | {"c2": 1e3}), gap=1e-5)
    assert not dear.tree.relabelled
    assert result.objective == pytest.approx(dear.objective, rel=3e-5)
    assert not result.tree.relabelled


def ranks(data: Any) -> tuple[np.ndarray, np.ndarray]:
    place = np.column_stack([np.unique(column, return_inverse=True)[1] for column in data.X_original.T])
    top = place.max(axis=0)
    return place / np.maximum(top, 1), np.where(top > 0, 1 / np.maximum(top, 1), 0.0)


@pytest.mark.parametrize("variant", ["rank", "bd"])
@pytest.mark.parametrize(("swap", "depth"), [("routing", 1), ("labels", 1), ("both", 1), ("both", 2)])
@pytest.mark.slow_cases("*-2-*")
def test_swapping_blocks_of_oct_keeps_the_optimum(variant: str, swap: str, depth: int) -> None:
    y = np.arange(N) % 3
    m = octsvm.build("oct", X, y, depth=depth, alpha=0.3, n_min=1, variant=variant)
    before = octsvm.solve(m)
    data = m.info.data
    if swap in ("routing", "both"):
        m.del_component("routing")
        rows, step = ranks(data) if variant == "rank" else (data.X, STEP / np.ptp(X, axis=0))
        other = blocks.add_leafwise_axis_routing if variant == "rank" else blocks.add_axis_routing
        other(m, m.topology, m.split, m.assignment, rows, step)
    if swap in ("labels", "both"):
        m.del_component("leaf_label")
        other = blocks.add_counted_leaf_labels if variant == "rank" else blocks.add_leaf_labels
        other(m, m.topology, m.assignment, data.y, data.K, data.weights)
        m.cost.set_value(sum(m.leaf_label.L.values()) + 0.3 * sum(m.split.d.values()))
    after = octsvm.solve(m)
    assert before.status == after.status == "optimal"
    assert after.objective == pytest.approx(before.objective, abs=1e-9)
    assert after.objective == pytest.approx(
        octsvm.evaluate("oct", after.tree, X, y, depth=depth, alpha=0.3).objective, abs=1e-9
    )


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_swapping_the_hinge_of_octsvm_keeps_the_optimum(norm: str) -> None:
    m = octsvm.build("octsvm", X, Y, norm=norm, **SVM)
    before = octsvm.solve(m, gap=1e-6)
    data, all_nodes, weight = m.info.data, m.topology.tree.nodes, m.info.big_m["weights"]
    score = big_m.score_bound(weight, big_m.farthest(data.X, norm))
    intercept = big_m.intercept_bound(weight, score, data.X - m.split.center, norm)
    m.del_component("hinge")
    blocks.add_product_hinge(
        m, all_nodes, m.split, m.relabelling, data.sign, data.X, weight, intercept, score, 1 + score, m.assignment
    )  # fmt: skip
    m.cost.set_value(
        m.margin.delta + 3 * sum(m.hinge.e.values()) + 4 * sum(m.relabelling.xi.values())
        + 0.1 * sum(m.pruning.d.values())
    )  # fmt: skip
    after = octsvm.solve(m, gap=1e-6)
    assert before.status == after.status == "optimal"
    assert after.objective == pytest.approx(before.objective, rel=3e-6)


@pytest.mark.parametrize(
    ("formulation", "params"),
    [
        ("oct", {"depth": 2, "alpha": 0.1}),
        ("oct_h", {"depth": 1, "alpha": 0.1}),
        ("oct_h", {"depth": 1, "alpha": 0.1, "complexity": "features"}),
        ("re_svm", {"c1": 5.0, "c2": 20.0}),
        ("octsvm", SVM),
        ("octsvm", SVM | {"norm": "l1"}),
    ],
)
@pytest.mark.slow_cases("octsvm-*")
def test_a_feature_budget_is_kept(formulation: str, params: Any) -> None:
    table = np.column_stack([X, X[:, 0] * X[:, 1], 1 - X[:, 0] ** 2])
    free = octsvm.fit(formulation, table, Y, **params)
    costs = []
    for budget in (0, 1, 4):
        m = octsvm.build(formulation, table, Y, **params)
        blocks.add_feature_budget(m, m.split, budget)
        result = octsvm.solve(m)
        assert result.status == "optimal"
        tree = result.tree
        weights = tree.weights("scaled")[0]
        assert np.count_nonzero(np.abs(weights).max(axis=0) > 1e-9) <= budget
        assert any("feature_budget" in note for note in result.notes)
        assert result.objective == pytest.approx(
            octsvm.evaluate(formulation, tree, table, Y, **params).objective, rel=1e-9
        )
        costs.append(result.objective)
    assert costs[0] >= costs[1] - 1e-6 >= costs[2] - 2e-6
    assert costs[2] == pytest.approx(free.objective, rel=2e-4)
    with pytest.raises(octsvm.InvalidParameter, match="budget"):
        blocks.add_feature_budget(octsvm.build(formulation, table, Y, **params), m.split, -1)


def relabelled_rows(tree: Any) -> int:
    return len(tree.relabelled)


@pytest.mark.slow
def test_a_cap_on_relabelled_rows_is_kept() -> None:
    table = np.linspace(0, 1, 10)[:, None]
    y = np.array([-1, -1, 1, -1, -1, 1, 1, -1, 1, 1])  # two labels that cost less to give up than to explain
    params = {"c1": 20.0, "c2": 40.0}
    free = octsvm.fit("re_svm", table, y, **params)
    assert relabelled_rows(free.tree) == 2
    before = free.objective
    for most in (2, 1, 0):
        m = octsvm.build("re_svm", table, y, **params)
        blocks.add_relabelling_cap(m, m.relabelling, most)
        result = octsvm.solve(m)
        assert result.status == "optimal"
        assert relabelled_rows(result.tree) <= most
        assert result.objective >= before - 1e-3
        assert any("relabelling_cap" in note for note in result.notes)
        before = result.objective


@pytest.mark.parametrize(("formulation", "depth"), [("re_svm", {}), ("octsvm", {"depth": 1})])
def test_a_cap_of_zero_where_relabelling_is_cheap_still_has_a_solution(formulation: str, depth: Any) -> None:
    """The tree behind the big-M relabels rows, so that tree is not in the model any more: say so, and take a bound."""
    params = {"c1": 1.0, "c2": 0.01, **depth}
    m = octsvm.build(formulation, X, Y, **params)
    blocks.add_relabelling_cap(m, m.relabelling, 0)
    refused = octsvm.solve(m)
    assert (refused.status, refused.stop) == ("no_tree", "numeric")
    (note,) = [note for note in refused.notes if "upper_bound=" in note]
    bound = float(note.rsplit("costs ", 1)[1].rstrip(")"))
    m = octsvm.build(formulation, X, Y, upper_bound=bound, **params)
    blocks.add_relabelling_cap(m, m.relabelling, 0)
    result = octsvm.solve(m, gap=1e-5)
    dear = octsvm.fit(formulation, X, Y, **(params | {"c2": 1e3}), gap=1e-5)
    assert not dear.tree.relabelled
    assert result.status == "optimal"
    assert result.objective == pytest.approx(dear.objective, rel=3e-5)


def test_a_variable_that_the_user_fixed_stays_fixed() -> None:
    table = np.linspace(0, 1, 10)[:, None]
    y = np.array([-1, -1, 1, -1, -1, 1, 1, -1, 1, 1])
    m = octsvm.build("re_svm", table, y, c1=2.0, c2=2.0)
    m.relabelling.xi.fix(0)
    result = octsvm.solve(m, gap=1e-5)
    assert not result.tree.relabelled
    assert all(v.fixed and v.value == 0 for v in m.relabelling.xi.values())
    dear = octsvm.fit("re_svm", table, y, c1=2.0, c2=1e3, gap=1e-5)
    assert result.objective == pytest.approx(dear.objective, rel=3e-5)

    m = octsvm.build("oct", X, Y, depth=1, alpha=0)
    assert octsvm.solve(m).tree.feature.tolist() == [0]
    m.split.a[1, 0].fix(0)
    other = octsvm.solve(m)
    assert other.tree.feature.tolist() != [0]
    assert m.split.a[1, 0].fixed
    assert m.split.a[1, 0].value == 0


def test_a_term_of_the_users_own_is_in_the_objective_and_named() -> None:
    m = octsvm.build("oct", X, Y, depth=1, alpha=0)
    plain = octsvm.solve(m)
    m.objective.set_value(m.cost + 0.25 * m.split.a[1, plain.tree.feature[0]])
    result = octsvm.solve(m)
    assert result.objective == pytest.approx(plain.objective + 0.25)
    assert result.terms["yours"] == pytest.approx(0.25)
    assert any("your own" in note for note in result.notes)


def test_a_reward_of_the_users_own_is_followed_below_zero() -> None:
    m = octsvm.build("oct", X, Y, depth=1, alpha=0)
    m.objective.set_value(m.cost - 50 * m.split.a[1, 1])
    result = octsvm.solve(m)
    best = min(
        octsvm.evaluate(
            "oct", octsvm.fit("oct", X[:, [1]], Y, depth=1, alpha=0).tree, X[:, [1]], Y, alpha=0
        ).objective
        - 50,
        octsvm.fit("oct", X, Y, depth=1, alpha=0).objective,
    )
    assert result.objective == pytest.approx(best)
    assert result.bound <= result.objective + 1e-6
    assert not any("lies above" in note for note in result.notes)


def test_an_objective_of_the_users_own_is_the_one_reported() -> None:
    m = octsvm.build("oct", X, Y, depth=1, alpha=0)
    plain = octsvm.solve(m).objective
    m.objective.deactivate()
    m.mine = pyo.Objective(expr=m.cost + 0.25 * m.split.d[1])
    result = octsvm.solve(m)
    assert result.objective == pytest.approx(plain + 0.25)
    assert result.objective == pytest.approx(pyo.value(m.mine))
    assert result.bound <= result.objective + 1e-9
    assert result.bound >= result.objective * (1 - 1e-4) - 1e-9


def test_maximising_a_formulation_is_refused() -> None:
    m = octsvm.build("oct", X, Y, depth=1, alpha=0)
    m.objective.set_value(50 * m.split.d[1] - m.cost)
    m.objective.sense = pyo.maximize
    with pytest.raises(octsvm.OctsvmError, match="maxim"):
        octsvm.solve(m)


# --------------------------------------------------------------------------------------------- bare Pyomo

MILPS: list[tuple[str, dict[str, Any]]] = [
    ("oct", {"depth": 1, "alpha": 0.1}),
    ("oct", {"depth": 2, "alpha": 0.1}),
    ("oct", {"depth": 1, "alpha": 0.1, "variant": "bd"}),
    ("oct", {"depth": 1, "alpha": 0.1, "variant": "rank"}),
    ("oct_h", {"depth": 1, "alpha": 0.1}),
    ("re_svm", {"norm": "l1", "c1": 3.0, "c2": 4.0}),
    ("re_svm", {"norm": "l1", "c1": 3.0, "c2": 4.0, "variant": "paper"}),
    ("octsvm", SVM | {"norm": "l1"}),
    ("octsvm", SVM | {"norm": "l1", "variant": "paper", "mu_svm": 1e-3}),
]
MILP_IDS = [f"{f}-{'-'.join(str(v) for v in p.values() if isinstance(v, (str, int)))}" for f, p in MILPS]


@pytest.mark.parametrize("clone", [False, True], ids=["model", "clone"])
@pytest.mark.parametrize(("formulation", "params"), MILPS, ids=MILP_IDS)
@pytest.mark.quick_cases("*-model", "oct-1-clone")
def test_bare_pyomo_reaches_the_same_optimum(formulation: str, params: Any, clone: bool) -> None:
    ours = octsvm.fit(formulation, X, Y, gap=1e-6, **params)
    m = octsvm.build(formulation, X, Y, **params)
    with pytest.raises(octsvm.NoValues, match="Solve the model first"):
        octsvm.extract(m)
    if clone:
        original, m = m, m.clone()
    pyo.SolverFactory("appsi_highs").solve(m)
    tree = octsvm.extract(m)
    evaluated = octsvm.evaluate(formulation, tree, X, Y, **params).objective
    assert evaluated == pytest.approx(ours.objective, rel=1e-4)
    assert evaluated == pytest.approx(pyo.value(m.objective), rel=1e-5)
    if clone:
        with pytest.raises(octsvm.NoValues):
            octsvm.extract(original)  # the clone's values are its own


@pytest.mark.parametrize(("formulation", "params"), [("re_svm", {}), ("octsvm", SVM), ("oct", {"depth": 1})])
def test_a_clone_is_solved_and_extended_like_the_model(formulation: str, params: Any) -> None:
    m = octsvm.build(formulation, X, Y, **params)
    clone = m.clone()
    blocks.add_feature_budget(clone, clone.split, 0)
    assert m.component("feature_budget") is None
    nothing = octsvm.solve(clone)
    assert not np.any(nothing.tree.weights("scaled")[0])
    first, second = octsvm.solve(m), octsvm.solve(m.clone())
    assert first.objective == second.objective
    assert first.tree.to_json() == second.tree.to_json()


# -------------------------------------------------------------------------- the model after a solve is as before


def state(m: pyo.ConcreteModel) -> list[Any]:
    """Everything but the values: components, active rows as text, bounds, domains, what is fixed or switched off."""
    text = io.StringIO()
    for component in m.component_objects(pyo.Constraint, active=True):
        component.pprint(ostream=text)
    return [
        [(c.name, c.active, type(c).__name__) for c in m.component_objects()],
        [(c.name, c.active) for c in m.component_data_objects(pyo.Constraint)],
        [(v.name, v.bounds, str(v.domain), v.fixed) for v in m.component_data_objects(pyo.Var)],
        [(str(o.expr), o.sense, o.active) for o in m.component_data_objects(pyo.Objective)],
        [(e.name, str(e.expr)) for e in m.component_data_objects(pyo.Expression)],
        text.getvalue(),
        m.info,
    ]


def assert_same_state(m: pyo.ConcreteModel, before: list[Any]) -> None:
    for now, then in zip(state(m), before, strict=True):
        assert now == then


STATES: list[tuple[str, dict[str, Any]]] = [
    ("oct", {"depth": 1}),
    ("oct_h", {"depth": 1}),
    ("re_svm", {}),
    ("octsvm", SVM),
    ("octsvm", SVM | {"variant": "paper", "mu_svm": 1e-3, "depth": 0}),
]


@pytest.mark.parametrize(("formulation", "params"), STATES)
def test_a_failing_solve_leaves_the_model_as_it_was(formulation: str, params: Any) -> None:
    m = octsvm.build(formulation, X, Y, **params)
    before = state(m)
    values = [v.value for v in m.component_data_objects(pyo.Var)]

    def explode(progress: Any) -> bool:
        raise ZeroDivisionError("from the callback")

    with pytest.raises(ZeroDivisionError):
        octsvm.solve(m, callback=explode)
    assert_same_state(m, before)
    assert [v.value for v in m.component_data_objects(pyo.Var)] == values
    with pytest.raises(octsvm.OctsvmError):
        octsvm.solve(m, start="no tree")  # type: ignore[arg-type]
    assert_same_state(m, before)


def test_what_the_user_switched_off_stays_off() -> None:
    m = octsvm.build("octsvm", X, Y, **SVM)
    m.extra = pyo.Constraint(expr=m.pruning.d[1] <= 0)
    m.extra.deactivate()
    m.margin.cone[3].deactivate()
    before = state(m)
    octsvm.solve(m, on_mismatch="ignore")
    assert not m.extra.active
    assert not m.margin.cone[3].active
    assert m.margin.cone[1].active
    assert_same_state(m, before)


# ------------------------------------------------------------------------------------------------- dependencies


def test_the_folder_cannot_be_imported_by_its_bare_name() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import formulations"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "ImportError" in done.stderr
    assert "import octsvm.formulations" in done.stderr


# ------------------------------------------------------------------------------------------ files for other programs


def by_highs(path: Path) -> float:
    highspy = pytest.importorskip("highspy")
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.setOptionValue("mip_rel_gap", 1e-6)
    assert h.readModel(str(path)) == highspy.HighsStatus.kOk
    h.run()
    assert h.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(h.getInfo().objective_function_value)


def by_scip(path: Path) -> float:
    pyscipopt = pytest.importorskip("pyscipopt")
    scip = pyscipopt.Model()
    scip.hideOutput()
    scip.readProblem(str(path))
    scip.setParam("limits/time", 60)
    scip.setParam("limits/gap", 1e-6)
    scip.optimize()
    assert scip.getStatus() in ("optimal", "gaplimit")
    return float(scip.getObjVal())


@pytest.mark.parametrize("ending", [".lp", ".mps"])
@pytest.mark.parametrize(("formulation", "params"), MILPS, ids=MILP_IDS)
@pytest.mark.quick_cases("*-.lp", "oct-1-.mps")
def test_highs_reads_a_written_milp_to_the_same_optimum(
    formulation: str, params: Any, ending: str, tmp_path: Path
) -> None:
    m = octsvm.build(formulation, X, Y, **params)
    path = octsvm.write(m, tmp_path / f"model{ending}")
    assert path == tmp_path / f"model{ending}"
    assert sorted(f.name for f in tmp_path.iterdir()) == [path.name, f"{path.name}.json"]
    assert by_highs(path) == pytest.approx(octsvm.solve(m, gap=1e-6).objective, rel=1e-4)


@pytest.mark.parametrize(
    ("formulation", "params"),
    [
        ("oct", {"depth": 2, "alpha": 0.1}),
        ("oct_h", {"depth": 1, "alpha": 0.1}),
        ("octsvm", SVM),
        ("octsvm", SVM | {"depth": 0, "variant": "paper", "mu_svm": 1e-3}),
        ("re_svm", {"c1": 3.0, "c2": 4.0}),
    ],
)
def test_scip_reads_a_written_nl_to_the_same_optimum(formulation: str, params: Any, tmp_path: Path) -> None:
    m = octsvm.build(formulation, X, Y, **params)
    path = octsvm.write(m, tmp_path / "model.nl")
    assert sorted(f.name for f in tmp_path.iterdir()) == [
        "model.col",
        "model.nl",
        "model.nl.json",
        "model.row",
    ]
    assert by_scip(path) == pytest.approx(octsvm.solve(m, gap=1e-6).objective, rel=1e-4)


def test_names_in_a_file_can_be_read(tmp_path: Path) -> None:
    text = octsvm.write(octsvm.build("octsvm", X, Y, **SVM), str(tmp_path / "model.lp")).read_text()
    for name in (
        "assignment_z(3_2)",
        "split_omega(1_0)",
        "margin_delta",
        "routing_goes_left(0_1)",
        "hinge_e",
    ):
        assert name in text


def test_writing_says_nothing_and_changes_nothing(tmp_path: Path, caplog: Any, capfd: Any) -> None:
    m = octsvm.build("octsvm", X, Y, **SVM)
    before = state(m)
    for ending in ("lp", "mps", "nl"):
        octsvm.write(m, tmp_path / f"model.{ending}")
    assert_same_state(m, before)
    assert [v.value for v in m.split.omega.values()] == [None] * 6
    assert [r.getMessage() for r in caplog.records] == []
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize("name", ["model.txt", "model", ".lp", "model.lp.gz", "lp"])
def test_an_unknown_ending_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(octsvm.InvalidParameter, match=r"\.lp, \.nl, \.mps"):
        octsvm.write(octsvm.build("oct", X, Y, depth=1), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_an_ending_in_capitals_is_fine(tmp_path: Path) -> None:
    path = octsvm.write(octsvm.build("oct", X, Y, depth=1), tmp_path / "MODEL.LP")
    assert path.name == "MODEL.LP"
    assert path.stat().st_size > 100


@pytest.mark.parametrize("ending", ["lp", "mps", "nl"])
def test_a_place_that_cannot_be_written_leaves_no_file(ending: str, tmp_path: Path, monkeypatch: Any) -> None:
    m = octsvm.build("oct", X, Y, depth=1)
    (tmp_path / "file").write_text("x")
    (tmp_path / f"folder.{ending}").mkdir()
    kept = sorted(p.name for p in tmp_path.rglob("*"))
    places = [tmp_path / "missing", tmp_path / "file"]
    for target in [*(p / f"model.{ending}" for p in places), tmp_path / f"folder.{ending}"]:
        with pytest.raises(octsvm.OutputNotWritable) as caught:
            octsvm.write(m, target)
        assert str(target) in str(caught.value)
        assert sorted(p.name for p in tmp_path.rglob("*")) == kept

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("octsvm.files.write.os.replace", full)
    with pytest.raises(octsvm.OutputNotWritable, match="No space left"):
        octsvm.write(m, tmp_path / f"model.{ending}")
    assert sorted(p.name for p in tmp_path.rglob("*")) == kept


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_the_farthest_row_is_that_of_all_differences(norm: str) -> None:
    rng = np.random.default_rng(0)
    for k in range(40):
        n, p = int(rng.integers(1, 60)), int(rng.integers(1, 6))
        rows = rng.random((n, p)) if k % 2 else rng.integers(0, 3, (n, p)) / 2.0
        rows = 0.999 + 1e-7 * rows if k % 4 == 3 else rows
        difference = np.abs(rows[:, None] - rows[None])
        every = np.linalg.norm(difference, axis=2) if norm == "l2" else difference.max(axis=2)
        np.testing.assert_allclose(big_m.farthest(rows, norm), every.max(axis=1), rtol=1e-8, atol=1e-15)


PARTS: dict[str, tuple[str, Any]] = {
    "relabelling_cap": ("octsvm", lambda m, most=1: blocks.add_relabelling_cap(m, m.relabelling, most)),
    "feature_budget": ("oct", lambda m, budget=1: blocks.add_feature_budget(m, m.split, budget)),
    "side prediction": (
        "octsvm",
        lambda m: blocks.add_side_prediction(m, m.topology, m.split, m.assignment, m.pruning),
    ),
    "leaf prediction": ("oct", lambda m: blocks.add_leaf_prediction(m, m.assignment, m.leaf_label)),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_on_top_can_be_pickled_and_takes_no_other_ones_place(part: str) -> None:
    name, add = PARTS[part]
    m = octsvm.build(name, X, Y, depth=1)
    first = add(m)
    copy = pickle.loads(pickle.dumps(m))
    assert sum(1 for _ in copy.component_data_objects(pyo.Constraint)) == sum(
        1 for _ in m.component_data_objects(pyo.Constraint)
    )
    with pytest.raises(octsvm.InvalidParameter, match=f"has a block '{first.name}' already"):
        add(m)
    assert m.component(first.name) is first


def test_parts_on_top_refuse_numbers_below_0_and_blocks_of_another_kind() -> None:
    m = octsvm.build("octsvm", X, Y, depth=1)
    with pytest.raises(octsvm.InvalidParameter, match="most=-1 is negative"):
        blocks.add_relabelling_cap(m, m.relabelling, -1)
    with pytest.raises(octsvm.InvalidParameter, match="'hinge' is no relabelling block"):
        blocks.add_relabelling_cap(m, m.hinge, 1)
    with pytest.raises(octsvm.InvalidParameter, match="'hinge' is no split block"):
        blocks.add_feature_budget(m, m.hinge, 1)
    with pytest.raises(octsvm.InvalidParameter, match="'pruning' is no assignment block"):
        blocks.add_side_prediction(m, m.topology, m.split, m.pruning, m.assignment)
