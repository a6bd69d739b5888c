"""The experiment's own methods: what a fit says of itself, one label only, what is skipped, and a small run end to end."""

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
from octsvm.experiments.methods import fit_grid
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


def fits(kind: str, data: PartData, skip: Any = (), seed: int = 7, **changes: Any) -> dict[int, Fit]:
    spec = SPECS[kind].model_copy(update=changes)
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


@pytest.mark.parametrize("kind", SPECS)
def test_what_is_skipped_changes_nothing(kind: str) -> None:
    data = part()
    everything, some = fits(kind, data), fits(kind, data, {0, 2})
    assert list(some) == [k for k in everything if k not in (0, 2)]
    for k, fit in some.items():
        assert fit.tree is not None
        assert everything[k].tree is not None
        assert fit.tree.to_json() == everything[k].tree.to_json()
        assert fit.objective == everything[k].objective


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


def test_seconds_are_no_limit_here() -> None:
    with pytest.raises(octsvm.InvalidParameter, match="Give it work"):
        fits("octsvm", part(), time_limit=3.0)


def test_the_smallest_grids_of_the_quick_protocol_end_to_end(tmp_path: Path) -> None:
    protocol = load_protocol("quick")
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
    clean = found[~found["inner"] & (found["noise"] == 0)]
    assert clean.groupby(["method", "fold"])["score"].max().min() > 0.8
