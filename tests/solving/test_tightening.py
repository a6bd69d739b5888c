"""Tightening: nothing below the known cost is lost, rows of one's own included, and all of it is undone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracles
import pyomo.environ as pyo
import pytest
from long_cases import long

import octsvm
from octsvm.formulations import blocks
from octsvm.formulations.base import structure

COSTS = ((1.0, 1.0), (10.0, 5.0), (1.0, 10.0), (100.0, 1.0), (2.0, 0.0), (3.0, 6.0))


def table(seed: int, n: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Few rows; every other table has many ties."""
    rng = np.random.default_rng([19, seed])
    X = rng.integers(0, 3, (n, 2)) / 2 if seed % 2 else rng.random((n, 2))
    y = np.where(X[:, 0] + 0.4 * rng.normal(size=n) > 0.5, 1, -1)
    y[:2] = 1, -1
    return X, y


def text(model: pyo.ConcreteModel, folder: Path) -> str:
    model.write(str(folder / "m.lp"), io_options={"symbolic_solver_labels": True})
    return (folder / "m.lp").read_text()


@pytest.mark.parametrize("variant", [None, "paper"])
@pytest.mark.parametrize("seed", [*range(6), *long(range(6, 12))])
@pytest.mark.slow_cases("[45]-*")
def test_the_optimum_stays_and_everything_is_undone(seed: int, variant: str | None, tmp_path: Path) -> None:
    X, y = table(seed)
    c1, c2 = COSTS[seed % len(COSTS)]
    known = oracles.re_svm_optimum(X, y, c1=c1, c2=c2)
    model = octsvm.build("re_svm", X, y, scale=False, c1=c1, c2=c2, variant=variant)
    best = octsvm.fit("re_svm", X, y, scale=False, c1=c1, c2=c2, gap=1e-6).tree
    before, info, marks = text(model, tmp_path), model.info, structure(model)
    for start in (None, best):  # the cost of the constant tree, and that of the optimum itself
        with octsvm.tighten(model, start=start) as done:
            assert done.bound <= known * (1 + 1e-6) + 1e-9 <= done.upper_bound * (1 + 2e-6) + 2e-9
            assert (done.scores[:, 0] <= done.scores[:, 1]).all()
            result = octsvm.solve(model, solver="highs", start=start)
            assert result.objective == pytest.approx(known, rel=2e-4, abs=1e-6)
            assert result.bound <= known * (1 + 1e-6) + 1e-7
        done.undo()
        for var in model.component_data_objects(pyo.Var):
            var.set_value(None)
        assert text(model, tmp_path) == before
        assert model.info is info
        assert structure(model) == marks


@pytest.mark.parametrize("seed", [*range(6), *long(range(6, 12))])
@pytest.mark.slow_cases("5")
def test_rows_of_ones_own_only_make_it_tighter(seed: int) -> None:
    """A cap on given up labels, and a label that has to be given up although that costs more."""
    X, y = table(seed)
    c1, c2 = COSTS[seed % len(COSTS)]

    def build() -> pyo.ConcreteModel:
        model = octsvm.build("re_svm", X, y, scale=False, c1=c1, c2=c2, upper_bound=1e3)
        if seed % 3:
            model.cap = pyo.Constraint(expr=sum(model.relabelling.xi.values()) <= seed % 3 - 1)
        else:
            model.forced = pyo.Constraint(expr=model.relabelling.xi[0, 1] == 1)
        return model

    known = octsvm.solve(build(), gap=1e-6)
    model = build()
    with octsvm.tighten(model, start=known.tree):
        found = octsvm.solve(model, gap=1e-6)
        assert found.objective == pytest.approx(known.objective, rel=1e-5, abs=1e-6)


LINE = np.array([[0.0], [0.22], [0.37], [0.0], [0.19]])


@pytest.mark.parametrize("price", [0.0, 1.0])
def test_parts_of_ones_own_that_come_afterwards_have_their_optimum(price: float) -> None:
    """A cap that forces a label which costs more, and a cost on another, on both of which trees up to the bound differ."""
    found = []
    for tight in (False, True):
        model = octsvm.build(
            "re_svm", LINE, [0, 1, 1, 1, 1], weights=[100, 1, 1, 1, 1], c1=10, c2=1, upper_bound=28.2
        )
        if tight:
            assert octsvm.tighten(model).settled > 0
        blocks.add_relabelling_cap(model, model.relabelling, 0)
        model.objective.set_value(model.cost + price * model.hinge.e[4, 1])
        found.append(octsvm.solve(model, gap=1e-6))
    assert found[0].tree.predict(LINE).tolist() == found[1].tree.predict(LINE).tolist()
    assert found[1].objective == pytest.approx(found[0].objective, rel=1e-5)
    assert found[1].bound <= found[0].objective * (1 + 1e-6)


def test_a_term_of_ones_own_leaves_trees_above_the_bound_unproved() -> None:
    X, y = np.array([[0.0], [0.1], [0.9], [1.0]]), [0, 0, 1, 1]
    model = octsvm.build("re_svm", X, y, c1=10, c2=4, upper_bound=7.5)
    octsvm.tighten(model)
    model.objective.set_value(model.cost + 20 * (1 - model.relabelling.xi[0, 1]))
    assert (
        octsvm.solve(model).bound <= 8.0
    )  # the cost of all labels given up of class 0, which is more than 7.5


def test_a_label_that_is_fixed_afterwards_is_the_answers() -> None:
    X, y = table(0)
    model = octsvm.build("re_svm", X, y, c1=1, c2=1)
    octsvm.tighten(model, start=octsvm.fit("re_svm", X, y, c1=1, c2=1).tree)
    xi = model.relabelling.xi
    for label in (1, 0):
        xi[0, 1].fix(label)
        result = octsvm.solve(model)
        assert result.status != "optimal" or xi[0, 1].value == label


def test_a_prediction_that_is_added_afterwards_loses_no_tree() -> None:
    X, y = np.array([[0.0], [0.1], [0.2], [0.8], [0.9], [1.0]]), [0, 0, 0, 1, 1, 1]
    start = octsvm.fit("re_svm", X, y, c1=10, c2=1000)
    model = octsvm.build("re_svm", X, y, c1=10, c2=1000)
    octsvm.tighten(model, start=start.tree)
    blocks.add_side_prediction(model, model.topology, model.split)
    assert octsvm.solve(model).objective == pytest.approx(start.objective, rel=1e-4)


def test_values_of_a_solve_stay_when_it_is_undone() -> None:
    X, y = np.array([[0.0], [0.1], [0.2], [0.8], [0.9], [1.0], [0.05]]), [0, 0, 0, 1, 1, 1, 1]
    known = octsvm.fit("re_svm", X, y, c1=10, c2=15)
    model = octsvm.build("re_svm", X, y, c1=10, c2=15)
    for _ in range(2):
        with octsvm.tighten(model, start=known.tree) as done:
            assert done.fixed
            octsvm.solve(model, solver="highs")
        assert pyo.value(model.objective) == pytest.approx(known.objective, rel=1e-4)
        assert octsvm.evaluate(
            "re_svm", octsvm.extract(model), X, y, c1=10, c2=15
        ).objective == pytest.approx(known.objective, rel=1e-4)


@pytest.mark.slow
def test_it_tightens() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((40, 3))
    y = octsvm.flip_labels(np.where(X[:, 0] > 0.5, 1, -1), 0.1)
    model = octsvm.build("re_svm", X, y, c1=10, c2=10)
    tree = octsvm.fit("re_svm", X, y, c1=10, c2=10).tree
    wide = model.info.big_m["scores"]
    done = octsvm.tighten(model, start=tree)
    assert done.settled > 20
    assert 0 < done.fixed <= done.settled
    assert done.bound > 0
    assert model.info.big_m["scores"] < wide / 2
    assert model.split.s[0, 1].ub < wide
    assert f"{done.settled} of 40 labels settled" in str(done)
    again = octsvm.solve(model, start=tree)  # as it was built, but tighter
    assert again.solver == "branch_and_reduce"
    assert again.status == "optimal"
    assert again.objective == pytest.approx(done.upper_bound, rel=1e-4)


def test_what_it_refuses() -> None:
    X, y = table(0)
    for model in (octsvm.build("octsvm", X, y, depth=0), octsvm.build("re_svm", X, y, norm="l1")):
        with pytest.raises(octsvm.UnsupportedProblem, match="takes models of 're_svm'"):
            octsvm.tighten(model)
    model = octsvm.build("re_svm", X, y)
    model.objective.set_value(model.cost - model.relabelling.xi[0, 1])
    with pytest.raises(octsvm.UnsupportedProblem, match="own cost"):
        octsvm.tighten(model)
    for change in (
        lambda m: m.hinge.hinge[0, 1].deactivate(),
        lambda m: m.split.s[0, 1].setlb(None),
        lambda m: m.cost.set_value(m.cost.expr - m.relabelling.xi[0, 1] + m.split.s[0, 1]),
        lambda m: m.relabelling.xi[0, 1].fix(0),
    ):
        model = octsvm.build("re_svm", X, y)
        change(model)
        with pytest.raises(octsvm.UnsupportedProblem, match="Tighten it first"):
            octsvm.tighten(model)
    with pytest.raises(octsvm.InvalidParameter, match="time_limit"):
        octsvm.tighten(octsvm.build("re_svm", X, y), time_limit=0)


def test_a_written_file_has_the_tighter_bounds(tmp_path: Path) -> None:
    X, y = table(2)
    model = octsvm.build("re_svm", X, y, c1=3, c2=2)
    octsvm.write(model, tmp_path / "wide.lp")
    with octsvm.tighten(model, start=octsvm.fit("re_svm", X, y, c1=3, c2=2).tree):
        octsvm.write(model, tmp_path / "tight.lp")
    assert (tmp_path / "wide.lp").read_text() != (tmp_path / "tight.lp").read_text()
