"""The methods of the experiment: what a fit says of itself, one label only, what is skipped, and a small run end to end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import octsvm
from octsvm.experiments import Fit, MethodSpec, Part, PartData, load_protocol, read_cells, run
from octsvm.experiments.methods import available, fit_grid, require
from octsvm.formulations.trees import MarginTree

COSTS = {"c1": (0.1, 10.0), "c2": (0.1, 1.0, 100.0)}
SPECS = {
    "oct": MethodSpec(title="", kind="oct", grid={"alpha": (0.1, 1.0, 100.0)}, fixed={"depth": 2}, work=60),
    "oct_h": MethodSpec(
        title="", kind="oct_h", grid={"alpha": (0.1, 1.0, 100.0)}, fixed={"depth": 1}, work=20
    ),
    "re_svm": MethodSpec(title="", kind="re_svm", grid=COSTS),
    "octsvm": MethodSpec(title="", kind="octsvm", grid=COSTS | {"c3": (0.1,)}, fixed={"depth": 1}),
}
C = {"C": (0.1, 10.0, 1000.0)}
ALPHA = {"alpha": (0.0, 0.01, 10.0)}
OTHERS = {
    "cart": MethodSpec(title="", kind="cart", grid=ALPHA, fixed={"depth": 3}),
    "svm": MethodSpec(title="", kind="svm", grid=C),
    "stree": MethodSpec(title="", kind="stree", grid=C, fixed={"depth": 3}),
    "cleanlab_cart": MethodSpec(title="", kind="cleanlab_cart", grid=ALPHA, fixed={"depth": 3}),
}
LABELS = (3, 7)


def part(n: int = 40, flips: int = 5) -> PartData:
    """Rows on both sides of a line, some of them with the wrong label; labels are numbers of the user's own."""
    rng = np.random.default_rng(1)
    X = rng.random((n, 2)) * [10.0, 0.1]
    given = np.where(X[:, 0] > 5, *LABELS[::-1])
    y = given.copy()
    wrong = rng.permutation(n)[:flips]
    y[wrong] = sum(LABELS) - y[wrong]
    return PartData(Part("made", 0.0, 0, 0, False), X, y, given, X, given, ("a", "b"), 0.05)


def sides(flips: int = 0, n: int = 120, crossed: bool = False) -> PartData:
    """Rows on both sides of a line, or in the four fields of a cross, some of them with the wrong label."""
    rng = np.random.default_rng(1)
    X = rng.random((n, 2))
    side = (X - 0.5).prod(axis=1) if crossed else X[:, 0] - 0.5
    X, side = X[np.abs(side) > 0.02], side[np.abs(side) > 0.02]
    given = np.where(side > 0, 1, -1)
    y = given.copy()
    y[rng.permutation(len(y))[:flips]] *= -1
    return PartData(Part("made", 0.0, 0, 0, False), X, y, given, X, given, ("a", "b"), 0.05)


def fits(kind: str, data: PartData, skip: Any = (), seed: int = 7, **changes: Any) -> dict[int, Fit]:
    if not available(kind):
        pytest.skip(f"the package of {kind} is not installed")
    spec = (SPECS | OTHERS)[kind].model_copy(update=changes)
    return dict(fit_grid(kind)(data, spec.settings(), spec, seed, skip))


@pytest.mark.parametrize("kind", SPECS)
def test_a_fit_says_what_its_tree_is(kind: str) -> None:
    data, spec = part(), SPECS[kind]
    found = fits(kind, data)
    assert list(found) == list(range(len(spec.settings())))
    for k, fit in found.items():
        assert fit.tree is not None
        assert fit.splits == fit.tree.splits.sum()
        assert fit.status == ("feasible" if fit.splits else "fallback")
        costs = spec.settings()[k] | ({"n_min": 2} if kind in ("oct", "oct_h") else {})
        again = octsvm.evaluate(kind, fit.tree, data.X, data.y, **costs)
        assert fit.objective == pytest.approx(again.objective, rel=1e-9)
        assert np.isnan(fit.bound)
        assert fit.seconds > 0
        predicted = fit.predict(data.X_score)
        assert predicted.dtype == np.int64
        assert set(predicted) <= set(LABELS)
        assert (predicted == fit.tree.predict(data.X_score)).all()
    assert max(np.mean(fit.predict(data.X) == data.y_given) for fit in found.values()) > 0.85
    assert {fit.splits > 0 for fit in found.values()} == {True, False}


@pytest.mark.parametrize("kind", ["re_svm", "octsvm"])
def test_a_label_given_up_is_believed_to_be_the_trees_own(kind: str) -> None:
    data = part()
    given_up = 0
    for fit in fits(kind, data).values():
        assert isinstance(fit.tree, MarginTree)
        assert fit.believed is not None
        rows = {record.row for record in fit.tree.relabelled}
        predicted = fit.predict(data.X)
        for i in range(len(data.y)):
            assert fit.believed[i] == (predicted[i] if i in rows else data.y[i])
        given_up += len(rows)
    assert given_up


@pytest.mark.parametrize("kind", ["oct", "oct_h"])
def test_trees_without_relabelling_believe_nothing(kind: str) -> None:
    assert all(fit.believed is None for fit in fits(kind, part()).values())


@pytest.mark.parametrize("kind", [*SPECS, *OTHERS])
def test_what_is_skipped_changes_nothing(kind: str) -> None:
    data = part() if kind in SPECS else sides(12)
    everything, some = fits(kind, data), fits(kind, data, {0, 2})
    assert list(some) == [k for k in everything if k not in (0, 2)]
    probe = np.random.default_rng(2).random((500, 2))
    for k, fit in some.items():
        whole = everything[k]
        assert fit.predict(probe).dtype == np.int64
        assert fit.predict(probe).tolist() == whole.predict(probe).tolist()
        assert (fit.tree and fit.tree.to_json()) == (whole.tree and whole.tree.to_json())
        assert fit.splits == whole.splits
        np.testing.assert_equal(fit.objective, whole.objective)


@pytest.mark.parametrize("kind", SPECS)
def test_one_label_is_predicted_everywhere(kind: str) -> None:
    data = part()
    data = replace(data, y=np.full(len(data.y), LABELS[1]))
    found = fits(kind, data, {1})
    assert list(found) == [k for k in range(len(SPECS[kind].settings())) if k != 1]
    for fit in found.values():
        assert (fit.predict(data.X_score) == LABELS[1]).all()
        assert (fit.objective, fit.bound, fit.splits, fit.status) == (0.0, 0.0, 0, "optimal")
        assert fit.believed is not None
        assert (fit.believed == data.y).all()


def smallest_leaf(fit: Fit, data: PartData) -> int:
    assert fit.tree is not None
    return int(np.unique(fit.tree.nodes(data.X)[:, -1], return_counts=True)[1].min())


@pytest.mark.parametrize("kind", ["oct", "oct_h"])
def test_leaves_hold_the_share_of_the_protocol(kind: str) -> None:
    data = part()
    grid = {"alpha": (0.01,)}
    for share, least in ((0.0, 1), (0.05, 2), (0.3, 12)):
        fit = fits(kind, replace(data, min_samples_leaf=share), grid=grid, fixed={"depth": 2})[0]
        assert smallest_leaf(fit, data) >= least
    # A grid or a fixed value of the protocol's own comes first; grids hold floats.
    own = fits(kind, data, grid={"n_min": (20.0, 3.0), "alpha": (0.01,)}, fixed={"depth": 1})
    leaves = [smallest_leaf(fit, data) for fit in own.values() if fit.tree]
    assert leaves[0] >= 20
    assert leaves[1] >= 3


def test_a_grid_of_depths() -> None:
    found = fits("octsvm", part(), grid={"depth": (0.0, 1.0), "c1": (10.0,)}, fixed={})
    assert [fit.tree.depth for fit in found.values() if fit.tree] == [0, 1]
    with pytest.raises(octsvm.InvalidParameter, match=r"depth=0\.5"):
        fits("octsvm", part(), grid={"depth": (0.5,)}, fixed={})


@pytest.mark.parametrize(
    ("kind", "given", "says"),
    [
        ("octsvm", {"time_limit": 3.0}, "Give it work"),
        ("octsvm", {"fixed": {"depth": 1, "time_limit": 1}}, "Give it work"),
        ("octsvm", {"fixed": {"strategy": "heuristic"}}, "'strategy' is not a parameter of 'octsvm'"),
        ("octsvm", {"grid": {"C1": (1.0,), "c2": (2.0,)}}, "Did you mean 'c1'"),
        ("octsvm", {"grid": {"c1": (-1.0,)}}, "c1=-1.0 is not allowed"),
        ("octsvm", {"grid": {"c1": (1.0,)}, "fixed": {"c1": 2.0}}, "name it once"),
        ("octsvm", {"solver": "scip"}, "solver='scip' is for functions of your own"),
        (
            "cart",
            {"grid": {"alpha": (1.0,)}, "fixed": {"max_depth": 3}},
            "'max_depth' is none. It takes depth",
        ),
        ("cart", {"grid": {"alpha": (1.0,)}, "work": 3}, "no steps to limit"),
        ("svm", {"grid": {"c": (1.0,)}}, "'c' is none. It takes C"),
        ("svm", {}, "'C' is not given"),
        ("tuned", {"fixed": {"formulation": "oct", "c1": 1.0}}, "'c1' is not a parameter of 'oct'"),
        ("tuned", {"fixed": {"formulation": "oct"}, "time_limit": 3.0}, "a time_limit in fixed"),
        ("none.py:F", {}, "kind='none.py:F': FileNotFoundError"),
        ("../none:F", {}, r"kind='\.\./none:F': TypeError"),
        ("octsvm:__version__", {}, "no function, and no formulation"),
    ],
)
def test_what_no_fit_could_work_with_is_refused(kind: str, given: dict[str, Any], says: str) -> None:
    with pytest.raises(octsvm.InvalidParameter, match=says):
        require(MethodSpec(title="", kind=kind, **given))


def test_what_the_protocols_that_come_with_the_package_ask_for_is_admitted() -> None:
    for name in ("table2", "quick"):
        for spec in load_protocol(name).methods.values():
            if available(spec.kind):
                require(spec)
    require(MethodSpec(title="", kind="octsvm", grid={"depth": (0.0, 1.0)}, fixed={"scale": False}, work=9))
    require(MethodSpec(title="", kind="tuned", fixed={"formulation": "octsvm", "depth": 1, "folds": 3}))


@pytest.mark.slow
def test_the_smallest_grids_of_the_quick_protocol_end_to_end(tmp_path: Path) -> None:
    protocol = load_protocol("quick").model_copy(update={"noise": (0.0,)})
    sizes = {m: len(spec.settings()) for m, spec in protocol.methods.items() if spec.kind in SPECS}
    own = sorted(sizes, key=lambda m: sizes[m])[:2]
    rng = np.random.default_rng(0)
    X = rng.random((88, 3))
    y = np.where(X[:, 0] > 0.5, 1, -1)
    made_up = SimpleNamespace(X=pd.DataFrame(X), y=pd.Series(y), name="made up")
    store = tmp_path / "cells.sqlite"
    assert run(protocol, store, load=lambda _: made_up, methods=own, sets=["heart"]).complete
    found = read_cells(store)
    parts = sum(part.set == "heart" for part in protocol.parts())
    assert len(found) == parts * sum(sizes[m] for m in own)
    assert (found["error"] == "").all()
    assert set(found["status"]) <= {"feasible", "fallback"}
    assert ((found["splits"] > 0) == (found["status"] == "feasible")).all()
    assert (found["splits"] > 0).any()
    assert found[~found["inner"]].groupby(["method", "fold"])["score"].max().min() > 0.8


# -- methods of other packages ----------------------------------------------------------------------------------------


def right(data: PartData, fit: Fit) -> float:
    return float((fit.predict(data.X_score) == data.y_score).mean())


@pytest.mark.parametrize("kind", OTHERS)
def test_the_easy_is_learnt_and_units_do_not_matter(kind: str) -> None:
    data = sides()
    best = max(fits(kind, data).items(), key=lambda item: right(data, item[1]))
    assert right(data, best[1]) == 1.0
    factor = np.array([1e4, 1e-3])
    scaled = replace(data, X=data.X * factor, X_score=data.X_score * factor)
    assert right(scaled, fits(kind, scaled)[best[0]]) > 0.97


def test_cart_holds_the_limits_of_its_leaves_and_prunes() -> None:
    data = sides(30)
    found = fits("cart", data)
    assert found[0].splits > found[1].splits >= 1
    assert found[2].splits == 0
    assert set(found[2].predict(data.X)) == {1 if data.y.sum() > 0 else -1}
    many = fits("cart", replace(data, min_samples_leaf=0.4), fixed={"depth": None})[0]
    assert many.splits == 1


def test_svm_is_at_its_optimum() -> None:
    data = sides(25)
    for index, fit in fits("svm", data).items():
        assert fit.status == "optimal"
        assert fit.bound <= fit.objective + 1e-9
        assert fit.objective - fit.bound < 2e-3 * fit.objective, index
    flat = fits("svm", data, grid={"C": (1e-9,)})[0]
    smaller = min((data.y > 0).sum(), (data.y < 0).sum())
    assert flat.objective == pytest.approx(
        2e-9 * smaller, rel=1e-3
    )  # one side pays 2 a row, the other nothing
    assert fits("svm", data, work=3)[2].status == "work_limit"
    alike = replace(data, y=np.ones_like(data.y))
    only = fits("svm", alike)[0]
    assert (only.objective, only.splits) == (0.0, 0)
    assert (only.predict(data.X) == 1).all()


def test_stree_uses_the_leaves_at_its_depth_limit() -> None:
    data = sides(crossed=True)
    for depth in (1, 2, 3):
        for fit in fits("stree", data, fixed={"depth": depth}).values():
            assert fit.splits <= 2**depth - 1
            # The majority of each leaf is never worse than that of all rows.
            assert right(data, fit) >= max((data.y > 0).mean(), (data.y < 0).mean())
    line = sides()
    assert max(right(line, f) for f in fits("stree", line, fixed={"depth": 1}).values()) == 1.0


def test_cleanlab_finds_wrong_labels() -> None:
    data = sides(10)
    for fit in list(fits("cleanlab_cart", data).values())[:2]:
        assert fit.believed is not None
        relabelled = fit.believed != data.y
        assert (relabelled & data.flipped).sum() > 5  # of ten; by chance it would be one
        assert (relabelled & data.flipped).sum() > 2 * (relabelled & ~data.flipped).sum()
        assert right(data, fit) > 0.95
    few = sides(n=12)
    lonely = replace(few, y=np.where(np.arange(len(few.y)) == 0, 1, -1))
    for fit in fits("cleanlab_cart", lonely).values():
        assert fit.status == "plain"
        assert (fit.believed == lonely.y).all()
