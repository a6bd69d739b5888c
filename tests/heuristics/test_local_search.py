"""Search over routing and labels: settling never costs, steps take what is better, and it all repeats."""

from __future__ import annotations

from itertools import islice
from typing import Any, cast

import numpy as np
import pyomo.environ as pyo
import pytest

import octsvm
from octsvm.data import prepare
from octsvm.formulations.registry import formulation as find_formulation
from octsvm.heuristics import Budget
from octsvm.heuristics import local_search as structure_search
from octsvm.heuristics.local_search import Search
from octsvm.heuristics.margin_tree import TreeSearch, as_margin_tree
from octsvm.heuristics.tree_builder import Planes

TABLES = {"noisy": (28, 3), "tenths": (30, 1), "twice": (24, 3)}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "l2": ("octsvm", "noisy", {"depth": 2, "c1": 3.0, "c2": 2.0, "c3": 0.1}),
    "l1": ("octsvm", "noisy", {"depth": 2, "c1": 3.0, "c2": 2.0, "c3": 0.1, "norm": "l1"}),
    "depth 0": ("octsvm", "noisy", {"depth": 0, "c1": 10.0, "c2": 5.0, "c3": 0.1}),
    "no price of labels": ("octsvm", "noisy", {"depth": 1, "c1": 3.0, "c2": 0.0, "c3": 0.1}),
    "tiny costs": ("octsvm", "noisy", {"depth": 2, "c1": 1e-5, "c2": 1e-5, "c3": 1e-7}),
    "large costs": ("octsvm", "tenths", {"depth": 2, "c1": 1e5, "c2": 1e5, "c3": 1.0}),
    "duplicates": ("octsvm", "twice", {"depth": 1, "c1": 3.0, "c2": 4.0, "c3": 0.1}),
    "as printed": ("octsvm", "noisy", {"depth": 1, "c1": 3.0, "c2": 4.0, "c3": 0.1, "variant": "paper"}),
    "re_svm": ("re_svm", "noisy", {"c1": 3.0, "c2": 2.0}),
    "re_svm l1": ("re_svm", "tenths", {"c1": 30.0, "c2": 20.0, "norm": "l1"}),
}


def shop_of(case: str, seed: int = 0, **changes: Any) -> TreeSearch:
    name, table, params = CASES[case]
    n, digits = TABLES[table]
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, 3)), digits)
    y = octsvm.flip_labels((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5), 0.1, seed=seed)
    if table == "twice":
        X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
        y[1] = not y[1]  # equal rows of different labels as well
    form = find_formulation(name)
    data = prepare(form, X, y, weights=rng.choice([0.0, 1.0, 2.0], size=len(X), p=[0.1, 0.7, 0.2]))
    checked = form.Params.make(name, **(params | changes))
    return TreeSearch(data.X, data.sign, data.weights, checked, Budget(120), seed)


def searched(case: str, seed: int = 0, steps: int = 60, **changes: Any) -> Search:
    """The search of a workshop after some steps, its best tree settled; rows weigh alike."""
    shop = shop_of(case, seed, **changes)
    shop.weights[:] = 1.0
    shop.budget = Budget(120, steps)
    for _ in shop.run():
        pass
    shop.budget = Budget(120)
    search = Search(shop)
    search.settle_best()
    return search


def trees(case: str, seed: int, count: int = 4) -> list[Planes]:
    """A few trees of the case that split; grown where labels have a price, if they have none in the case."""
    shop = shop_of(case, seed, **({"c2": 2.0} if CASES[case][2]["c2"] == 0 else {}))
    shop.budget = Budget(120, 60)
    found = [planes.copy() for planes in islice(shop.run(), count)]
    if not found:  # a split does not pay here: one is looked at all the same
        planes = shop.unsplit()
        planes.omega[0], planes.split[0] = np.random.default_rng(seed).normal(size=shop.X.shape[1]), True
        planes.omega0[0] = -float(np.median(shop.X @ planes.omega[0]))
        shop.clear(planes)
        found = [planes]
    return [planes for planes in found if planes.split.any()]


@pytest.mark.parametrize("case", CASES)
def test_settling_never_costs_and_the_tree_routes_as_it_was_fixed(case: str) -> None:
    better = 0
    for seed in range(3):
        shop = shop_of(case, seed)
        for planes in trees(case, seed):
            before = shop.value(planes)
            settled = Search(shop).settle(planes)
            assert settled is not None
            assert settled.cost <= before * (1 + 1e-6) + 1e-12
            assert settled.cost == pytest.approx(shop.value(settled.planes), rel=1e-12)
            node, score = shop.route(settled.planes)
            assert (node == settled.fixed.node).all()
            assert settled.planes.split.tolist() == planes.split.tolist()
            if shop.mu:
                assert not ((score[:, :-1] < 0) & (score[:, :-1] > -shop.mu)).any()
            # Once more finds nothing: hyperplanes and labels are at rest.
            again = Search(shop).settle(settled.planes)
            assert again is not None
            assert again.cost == pytest.approx(settled.cost, rel=1e-6)
            better += settled.cost < before * (1 - 1e-6)
    assert better


@pytest.mark.parametrize("case", CASES)
def test_steps_and_leaps_keep_the_best_tree_or_take_a_better_one(case: str) -> None:
    shop = shop_of(case)
    shop.best = trees(case, 0)[0]
    shop.best.cost = shop.value(shop.best)
    search = Search(shop)
    for k in range(10):
        before = shop.best
        done = search.leap() if k % 3 == 2 else search.step()
        if done:
            assert shop.best.cost < before.cost
        else:
            assert shop.best is before
        assert shop.best.cost == pytest.approx(shop.value(shop.best), rel=1e-12)


def test_the_same_seed_searches_alike() -> None:
    ends = []
    for _ in range(2):
        shop = shop_of("l2")
        shop.best = trees("l2", 0)[0]
        search = Search(shop)
        done = [search.leap() if k % 2 else search.step() for k in range(12)]
        ends.append((done, shop.best.omega.tolist(), shop.best.omega0.tolist()))
    assert ends[0] == ends[1]


def test_steps_go_on_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = shop_of("l2")
    shop.best = trees("l2", 0)[-1]
    search = Search(shop)
    while search.settle_best():
        pass
    # A settled tree that is a hair dearer than the one it came from is not settled again, step for step.
    settlings, looked, tried = [], [], []
    plain, solve = Search.settle, Search.solve

    def settle(self: Search, planes: Planes) -> Any:
        settlings.append(planes)
        return plain(self, planes)

    def look(self: Search, fixed: Any, base: Planes, rough: bool) -> Any:
        tried.append(fixed)
        found = solve(self, fixed, base, rough)
        if found is not None:
            found.planes.cost = np.inf
        return found

    class Hopeful:
        """Estimates by which every change is worth solving for."""

        possible = True

        def __call__(self, at: Any, fixed: Any, limit: float) -> float:
            looked.append(fixed)
            return limit / 2

    search.estimates = cast(Any, Hopeful())
    monkeypatch.setattr(structure_search, "STEP", 3)
    monkeypatch.setattr(structure_search, "SOLVED", 2)
    monkeypatch.setattr(Search, "settle", settle)
    monkeypatch.setattr(Search, "solve", look)
    monkeypatch.setattr(shop, "offer", lambda planes: False)
    assert not any(search.step() for _ in range(10))
    assert not settlings
    structures = [(f.node.tolist(), f.label.tolist()) for f in looked]
    assert structure_search.STEP < len(structures) <= 1.5 * structure_search.MOST_MOVES
    assert all(structures.count(one) == 1 for one in structures)
    steps = -(-len(looked) // structure_search.STEP)
    assert structure_search.SOLVED < len(tried) <= steps * structure_search.SOLVED


def test_a_tree_that_is_returned_to_goes_on_with_the_changes_that_are_left() -> None:
    search = searched("l2")
    shop, at = search.shop, search.at
    assert at is not None
    everything = [(c.node.tobytes(), c.label.tobytes(), c.split.tobytes()) for c in search._changes(at)]
    assert len(everything) > 7
    list(islice(search._next, 5))
    assert shop.best is not None
    best, shop.best = shop.best.copy(), shop.unsplit()
    shop.best.cost = shop.value(shop.best)
    search.settle_best()
    assert list(search._next) == []
    shop.best = best
    search.settle_best()
    left = [(c.node.tobytes(), c.label.tobytes(), c.split.tobytes()) for c in search._next]
    assert left == everything[5:]


@pytest.mark.parametrize("c2", [1.0, 10.0])
def test_a_row_that_crosses_may_open_a_split_and_the_estimate_knows_its_price(c2: float) -> None:
    opened = 0
    for seed in range(8):
        search = searched("l2", seed, 20, c1=0.3, c2=c2, c3=0.02)
        shop, at = search.shop, search.at
        if at is None:
            continue
        for fixed in search._changes(at):
            more = np.flatnonzero(fixed.split & ~at.fixed.split) + 1
            if not len(more):
                continue
            (t,) = more.tolist()
            opened += 1
            assert t > shop.B
            rows = fixed.node[:, -1] == t
            assert (fixed.label[rows, -1] == shop.sign[rows]).all()
            assert set(shop.sign[rows]) == {-1.0, 1.0}
            assert at.fixed.split[t // 2 - 1]
            found = search.solve(fixed, at.planes)
            value = search.estimates(at, fixed, np.inf)
            if found is not None:
                assert value <= found.cost * (1 + structure_search.DOUBT)
                assert found.planes.split[t - 1]
    assert opened > 5


def test_rows_that_only_have_to_make_room_are_tried_as_well() -> None:
    search = searched("l2")
    shop, at = search.shop, search.at
    assert at is not None
    near = {
        (row, level)
        for row, level in np.argwhere(np.abs(at.fixed.score) < structure_search.NEAR).tolist()
        if level < shop.depth and at.fixed.split[at.fixed.node[row, level] - 1]
    }
    crossed = set()
    for fixed in search._changes(at):
        for row, level in np.argwhere(fixed.node != at.fixed.node).tolist():
            crossed.add((row, level - 1))
    assert near <= crossed


def test_a_single_change_is_one_row_on_one_level_and_what_follows_from_it() -> None:
    shop = shop_of("l2")
    settled = Search(shop).settle(trees("l2", 0)[-1])
    assert settled is not None
    search = Search(shop)
    changes = list(search._changes(settled))
    assert 0 < len(changes) <= 1.5 * structure_search.MOST_MOVES
    for fixed in changes:
        other = (fixed.node != settled.fixed.node) | (fixed.label != settled.fixed.label)
        assert len(np.unique(np.argwhere(other)[:, 0])) == 1
    for row in range(5):
        for level in range(shop.depth):
            fixed = search._crossed(settled.fixed, settled.planes, row, level)
            path, before = fixed.node[row], settled.fixed.node[row]
            assert (path[: level + 1] == before[: level + 1]).all()
            assert path[level + 1] == before[level + 1] ^ 1
            assert (path[1:] // 2 == path[:-1]).all()
            # Below, the row goes where the tree sends it and is believed what is cheaper there.
            at = settled.planes.omega[path - 1] @ shop.X[row] + settled.planes.omega0[path - 1]
            assert ((at[level + 1 : -1] >= 0) == (path[level + 2 :] % 2 == 1)).all()
            believed = shop.believed(at[None, :], np.array([row]))[0]
            assert (fixed.label[row, level + 1 :] == believed[level + 1 :]).all()
            others = np.arange(len(shop.X)) != row
            assert (fixed.node[others] == settled.fixed.node[others]).all()


@pytest.mark.parametrize(("c2", "follows"), [(4.0, True), (50.0, False)])
def test_a_row_that_crosses_takes_the_label_of_its_side_where_labels_are_cheap(
    c2: float, follows: bool
) -> None:
    shop = shop_of("l2")
    shop.c2 = c2
    settled = Search(shop).settle(trees("l2", 0)[-1])
    assert settled is not None
    search = Search(shop)
    assert search.follows is (c2 < 2 * shop.c1) is follows
    for row in range(8):
        fixed = search._crossed(settled.fixed, settled.planes, row, 0)
        side = 1.0 if fixed.node[row, 1] == 3 else -1.0
        assert fixed.label[row, 0] == (side if follows else settled.fixed.label[row, 0])


def test_what_is_promoted_is_better_and_what_is_far_dearer_is_not_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = shop_of("l2")
    grown = sorted(trees("l2", 0), key=shop.value)
    best, worst = grown[0], grown[-1]
    shop.offer(best)
    before, search = shop.best_cost, Search(shop)
    settlings = []
    plain = Search.settle
    monkeypatch.setattr(
        Search,
        "settle",
        lambda self, planes, limit: (settlings.append(planes), plain(self, planes, limit))[1],
    )
    worst.cost = shop.value(worst)
    assert worst.cost > structure_search.PROMISING * before
    assert not search.promoted(worst)
    assert not settlings
    better = search.promoted(worst, np.inf)
    assert len(settlings) == 1
    assert better is (shop.best_cost < before)
    assert shop.best_cost == pytest.approx(shop.value(shop.best), rel=1e-12)


def test_a_spent_budget_settles_nothing() -> None:
    shop = shop_of("l2")
    shop.best = trees("l2", 0)[0]
    shop.best.cost = shop.value(shop.best)
    shop.budget = Budget(60, 0)
    search = Search(shop)
    before = shop.best
    assert not search.settle_best()
    assert not search.step()
    assert not search.leap()
    assert shop.best is before


def test_without_a_split_nothing_is_searched() -> None:
    shop = shop_of("l2")
    shop.best = shop.unsplit()
    shop.best.cost = shop.value(shop.best)
    search = Search(shop)
    assert not search.settle_best()
    assert not search.step()
    assert not search.leap()


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_the_model_with_these_integers_fixed_has_the_same_optimum(norm: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.random((14, 2))
    y = octsvm.flip_labels((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5), 0.1)
    params = {"depth": 1, "c1": 3.0, "c2": 4.0, "c3": 0.1, "norm": norm}
    form = find_formulation("octsvm")
    data, checked = prepare(form, X, y), form.Params.make("octsvm", **params)
    shop = TreeSearch(data.X, data.sign, data.weights, checked, Budget(60, 40), 0)
    first = next(planes.copy() for planes in shop.run() if planes.split[0])
    shop.budget = Budget(60)
    settled = Search(shop).settle(first)
    assert settled is not None
    tree = as_margin_tree(settled.planes, data, checked)
    model = octsvm.build("octsvm", X, y, start=as_margin_tree(first, data, checked), **params)
    octsvm.embed(model, tree)
    for variable in model.component_data_objects(pyo.Var):
        if not variable.is_continuous():
            variable.fix(round(variable.value))
    result = octsvm.solve(model, gap=1e-6, time_limit=60)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(settled.cost, rel=1e-5)
