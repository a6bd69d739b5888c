"""The outer approximation apart from what every bridge keeps: its native program, coordinates and sides that are fixed."""

from __future__ import annotations

from typing import Any

import engines
import numpy as np
import pyomo.environ as pyo
import pytest
from cone_models import column_values, everything, points

import octsvm
from octsvm.bridges.outer_approximation import OuterApproximation
from octsvm.problem_class import classify
from octsvm.solving.compile import compile_program


def attached(model: pyo.ConcreteModel) -> tuple[OuterApproximation, Any]:
    way = OuterApproximation()
    program = compile_program(model, classify(model), way)
    way.undo()
    return way, program


def test_the_native_program_has_the_cones_and_the_objective_of_the_model() -> None:
    model = everything()
    feasible = points(model, 20, np.random.default_rng(1))
    way, program = attached(model)
    native, keep = way.native(program)
    assert {id(v) for v in native.columns} == {id(v) for v in model.component_data_objects(pyo.Var)}
    assert [id(program.columns[k]) for k in keep] == [id(v) for v in native.columns]
    for point in feasible:
        x = column_values(native, point)
        for var in model.component_data_objects(pyo.Var):
            var.set_value(point[id(var)])
        assert native.objective(x) == pytest.approx(pyo.value(model.objective))
        assert native.violation(x) <= 1e-9
        short = x.copy()
        short[native.position[id(model.u)]] = 0.0
        norm = sum(point[id(v)] ** 2 for v in model.v.values())
        assert native.violation(short) == pytest.approx(norm)


def test_the_lifted_variables_are_its_own() -> None:
    model = everything()
    way, program = attached(model)
    own = {id(v) for v in way.own_variables()}
    assert own == {id(v) for v in program.columns} - {id(v) for v in model.component_data_objects(pyo.Var)}
    assert len(own) == 3 + 2  # of the free cone and of the square; a cone of a binary is not lifted


def test_a_coordinate_that_is_fixed_is_refused_and_one_that_is_0_is_not() -> None:
    model = everything()
    model.v[0].fix(0.5)
    with pytest.raises(octsvm.UnsupportedProblem, match=r"v\[0\] is fixed to 0.5 inside a norm"):
        octsvm.solve(model, solver="highs")
    model.v[0].fix(0.0)
    fixed = octsvm.solve(model, solver="highs", gap=1e-5)
    model.v[0].unfix()
    model.v[0].setlb(0)
    model.v[0].setub(0)
    bounded = octsvm.solve(model, solver="highs", gap=1e-5)
    assert fixed.stop == bounded.stop == "optimal"
    assert fixed.objective == pytest.approx(bounded.objective, rel=1e-4)


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize(("side", "value"), [("u", 0.4), ("z", 1)])
@pytest.mark.quick_cases("u-0.4-scip", "z-1-highs")
def test_a_side_that_is_fixed_is_the_side_that_is_bounded(solver: str, side: str, value: float) -> None:
    engines.skip_absent(engines.Entry(solver))
    model = everything()
    model.objective.set_value(
        model.objective.expr - 3 * model.w[0] - 3 * model.w[1]
    )  # both norms hold it back
    model.component(side).fix(value)
    fixed = octsvm.solve(model, solver=solver, gap=1e-5)
    model.component(side).unfix()
    model.component(side).setlb(value)
    model.component(side).setub(value)
    bounded = octsvm.solve(model, solver=solver, gap=1e-5)
    assert fixed.stop == bounded.stop == "optimal"
    assert fixed.objective == pytest.approx(bounded.objective, rel=1e-4)
