"""A formulation's own rows, bounds and cost, changed by the user: solved right, or told apart from what a solver did."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest

import octsvm
from octsvm.solving.certificate import changed_inside, is_own

X = [[0.1, 0.9], [0.2, 0.7], [0.8, 0.2], [0.9, 0.3], [0.4, 0.1], [0.5, 0.8]]
Y = list("aabbab")
FORMULATIONS: dict[str, dict[str, Any]] = {
    "oct": {"depth": 1, "alpha": 0.1},
    "oct_h": {"depth": 1, "alpha": 0.1},
    "re_svm": {},
    "octsvm": {"depth": 1},
    "moctsvm": {"depth": 1},
}
every_formulation = pytest.mark.parametrize("formulation", FORMULATIONS)


def build(formulation: str) -> pyo.ConcreteModel:
    return octsvm.build(formulation, X, Y, **FORMULATIONS[formulation])


@pytest.mark.parametrize(
    ("formulation", "name"),
    [
        ("oct_h", "routing.goes_left"),
        ("octsvm", "hinge.hinge"),
        ("re_svm", "split.score"),
        ("moctsvm", "hinge.e"),
    ],
)
def test_an_answer_without_rows_that_were_deactivated_is_not_put_on_the_solver(
    formulation: str, name: str
) -> None:
    model = build(formulation)
    component = model.find_component(name)
    if component.ctype is pyo.Var:
        component.setlb(None)
    else:
        component.deactivate()
    with pytest.raises(octsvm.CertificateMismatch) as caught:
        octsvm.solve(model)
    assert f"was changed since it was built ({name})" in str(caught.value)
    assert "The solver's" not in str(caught.value)
    assert caught.value.result.tree is not None


@every_formulation
@pytest.mark.slow_cases("octsvm")
def test_bounds_that_were_taken_away_are_no_harm(formulation: str) -> None:
    """Those that the model has rows for as well."""
    expected = octsvm.solve(build(formulation)).objective
    for name in (
        "mixes.r",
        "split.omega",
        "split.s",
        "split.omega0",
        "split.a",
        "relabelling.xi",
        "margin.delta",
    ):
        model = build(formulation)
        component = model.find_component(name)
        if component is not None:
            component.setlb(None)
            component.setub(None)
            result = octsvm.solve(model, time_limit=20)
            assert result.status == "optimal", name
            assert result.objective == pytest.approx(expected, rel=1e-4), name


@every_formulation
def test_bounds_that_cross_are_infeasible_and_named(formulation: str) -> None:
    model = build(formulation)
    name = "split.a" if formulation.startswith("oct_h") or formulation == "oct" else "split.omega"
    model.find_component(name)[1, 0].setlb(0.4)
    model.find_component(name)[1, 0].setub(0.3)
    result = octsvm.solve(model)
    assert result.status == "infeasible"
    assert result.conflict == (f"{name} (changed since the model was built)",)


@pytest.mark.parametrize("asked", [False, True])
def test_bounds_on_subtrees_prove_nothing_without_the_rows_that_they_rest_on(asked: bool) -> None:
    """One row is of the other class. With two rows in a leaf or more it is an error, without that a split costs 0.1."""
    model = octsvm.build("oct", [[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 1], depth=1, alpha=0.1, n_min=2)
    if asked:
        model.mine = pyo.Constraint(expr=model.leaf_label.L[2] + model.leaf_label.L[3] <= 0)
    model.assignment.leaf_size.deactivate()
    result = octsvm.solve(model)
    assert (result.status, result.stop) == ("no_tree" if asked else "feasible", "numeric")
    assert result.bound <= 0.1
    assert any("assignment.leaf_size" in note and "n_min" in note for note in result.notes)
    model.assignment.leaf_size.activate()
    model.subtree_bounds.left.deactivate()  # implied
    model.splits = pyo.Constraint(expr=model.split.d[1] >= 1)
    assert octsvm.solve(model).status == ("infeasible" if asked else "optimal")


@every_formulation
def test_a_cost_that_was_rewritten_is_named_where_the_tree_costs_more(formulation: str) -> None:
    """That it may be is in docs/compose.md: for blocks that take the place of others."""
    model = build(formulation)
    model.cost.set_value(model.cost.expr - 1)
    with pytest.raises(octsvm.CertificateMismatch, match=r"changed since it was built \(cost\)"):
        octsvm.solve(model)


@every_formulation
@pytest.mark.parametrize("share", [0.0, 0.1, 3.0, 1e6])
@pytest.mark.quick_cases("*-oct", "3.0-*")
@pytest.mark.every_value
def test_an_objective_may_have_the_own_cost_several_times_or_not_at_all(
    formulation: str, share: float
) -> None:
    expected = octsvm.solve(build(formulation)).objective
    model = build(formulation)
    model.objective.set_value(share * model.cost + 1)
    result = octsvm.solve(model, time_limit=20)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(share * expected + 1, rel=2e-4)


@pytest.mark.parametrize("number", [1e15, 1e30, 1e300])
@pytest.mark.parametrize("place", ["coefficient", "side", "price"])
def test_numbers_that_solvers_take_for_infinite_are_refused_by_name(place: str, number: float) -> None:
    model = build("re_svm")
    omega = model.split.omega
    if place == "price":
        model.objective.set_value(model.cost + number * model.hinge.e[0, 1])
    else:
        low, body = (number, omega[1, 0]) if place == "side" else (1.0, number * omega[1, 0] + omega[1, 1])
        model.mine = pyo.Constraint(expr=body >= low)
    if number < 1e20 and place != "coefficient":  # large, and no more than that
        assert octsvm.solve(model).status in ("optimal", "no_tree", "fallback", "feasible")
        return
    with pytest.raises(octsvm.InvalidParameter, match=r"'mine' has|'objective' has") as caught:
        octsvm.solve(model)
    assert f"{number:g}" in str(caught.value)


@pytest.mark.slow
def test_a_model_is_the_same_in_another_process(tmp_path: Path) -> None:
    """Which a hash of names or of None would not show."""
    for formulation in FORMULATIONS:
        model = build(formulation)
        assert is_own(pickle.loads(pickle.dumps(model)))
        (tmp_path / f"{formulation}.pickle").write_bytes(pickle.dumps(model))
    code = (
        "import pickle, sys, pathlib\n"
        "from octsvm.solving.certificate import is_own\n"
        "sys.exit(not all(is_own(pickle.loads(p.read_bytes())) for p in pathlib.Path(sys.argv[1]).glob('*.pickle')))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 0


def test_what_was_changed_is_named_and_what_was_not_is_not() -> None:
    model = build("octsvm")
    assert changed_inside(model) == []
    model.hinge.hinge[0, 1].deactivate()
    model.relabelling.xi[0, 1].domain = pyo.Reals
    model.split.omega[1, 0].setub(0.25)
    model.margin.delta.fix(1.0)
    assert set(changed_inside(model)) == {"hinge.hinge", "relabelling.xi", "split.omega", "margin.delta"}
    assert math.isfinite(octsvm.solve(model, on_mismatch="ignore", time_limit=10).objective)


def test_a_variable_that_was_taken_out_is_told_by_the_row_that_has_it() -> None:
    model = build("octsvm")
    model.split.del_component("s")
    with pytest.raises(octsvm.InvalidParameter, match=r"'split.score.* a variable that was taken out"):
        octsvm.solve(model)
