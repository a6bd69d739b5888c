"""Methods of other packages in the experiments: CART, SVM, STree, cleanlab."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from octsvm.experiments import Fit, MethodSpec, Part, PartData
from octsvm.experiments.methods import available, fit_grid

C = {"C": (0.1, 10.0, 1000.0)}
ALPHA = {"alpha": (0.0, 0.01, 10.0)}
SPECS = {
    "cart": MethodSpec(title="", kind="cart", grid=ALPHA, fixed={"depth": 3}),
    "svm": MethodSpec(title="", kind="svm", grid=C),
    "stree": MethodSpec(title="", kind="stree", grid=C, fixed={"depth": 3}),
    "cleanlab_cart": MethodSpec(title="", kind="cleanlab_cart", grid=ALPHA, fixed={"depth": 3}),
}


def part(flips: int = 0, n: int = 120, crossed: bool = False) -> PartData:
    """Rows on both sides of a line, or in the four fields of a cross, some of them with the wrong label."""
    rng = np.random.default_rng(1)
    X = rng.random((n, 2))
    side = (X - 0.5).prod(axis=1) if crossed else X[:, 0] - 0.5
    X, side = X[np.abs(side) > 0.02], side[np.abs(side) > 0.02]
    given = np.where(side > 0, 1, -1)
    y = given.copy()
    y[rng.permutation(len(y))[:flips]] *= -1
    return PartData(Part("made", 0.0, 0, 0, False), X, y, given, X, given, ("a", "b"), 0.05)


def fits(kind: str, data: PartData, skip: Any = (), **changes: Any) -> dict[int, Fit]:
    if not available(kind):
        pytest.skip(f"the package of {kind} is not installed")
    spec = SPECS[kind].model_copy(update=changes)
    return dict(fit_grid(kind)(data, spec.settings(), spec, 7, skip))


def right(data: PartData, fit: Fit) -> float:
    return float((fit.predict(data.X_score) == data.y_score).mean())


@pytest.mark.parametrize("kind", SPECS)
def test_what_is_left_out_changes_nothing(kind: str) -> None:
    data = part(12)
    everything, some = fits(kind, data), fits(kind, data, {0, 2})
    assert list(everything) == [0, 1, 2]
    assert list(some) == [1]
    probe = np.random.default_rng(2).random((500, 2))
    for index, fit in some.items():
        assert (fit.predict(probe) == everything[index].predict(probe)).all()
        assert fit.splits == everything[index].splits
        assert fit.objective == everything[index].objective or np.isnan(fit.objective)
    assert all(fit.predict(probe).dtype == np.int64 for fit in everything.values())
    assert all(set(fit.predict(probe)) <= {-1, 1} for fit in everything.values())


@pytest.mark.parametrize("kind", SPECS)
def test_the_easy_is_learnt_and_units_do_not_matter(kind: str) -> None:
    data = part()
    best = max(fits(kind, data).items(), key=lambda item: right(data, item[1]))
    assert right(data, best[1]) == 1.0
    factor = np.array([1e4, 1e-3])
    scaled = replace(data, X=data.X * factor, X_score=data.X_score * factor)
    assert right(scaled, fits(kind, scaled)[best[0]]) > 0.97


def test_cart_holds_the_limits_of_its_leaves_and_prunes() -> None:
    data = part(30)
    found = fits("cart", data)
    assert found[0].splits > found[1].splits >= 1
    assert found[2].splits == 0
    assert set(found[2].predict(data.X)) == {1 if data.y.sum() > 0 else -1}
    many = fits("cart", replace(data, min_samples_leaf=0.4), fixed={"depth": None})[0]
    assert many.splits == 1


def test_svm_is_at_its_optimum() -> None:
    data = part(25)
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
    data = part(crossed=True)
    for depth in (1, 2, 3):
        for fit in fits("stree", data, fixed={"depth": depth}).values():
            assert fit.splits <= 2**depth - 1
            # The majority of each leaf is never worse than that of all rows.
            assert right(data, fit) >= max((data.y > 0).mean(), (data.y < 0).mean())
    line = part()
    assert max(right(line, f) for f in fits("stree", line, fixed={"depth": 1}).values()) == 1.0


def test_cleanlab_finds_wrong_labels() -> None:
    data = part(10)
    for fit in list(fits("cleanlab_cart", data).values())[:2]:
        assert fit.believed is not None
        relabelled = fit.believed != data.y
        assert (relabelled & data.flipped).sum() > 5  # of ten; by chance it would be one
        assert (relabelled & data.flipped).sum() > 2 * (relabelled & ~data.flipped).sum()
        assert right(data, fit) > 0.95
    few = part(n=12)
    lonely = replace(few, y=np.where(np.arange(len(few.y)) == 0, 1, -1))
    for fit in fits("cleanlab_cart", lonely).values():
        assert fit.status == "plain"
        assert (fit.believed == lonely.y).all()
