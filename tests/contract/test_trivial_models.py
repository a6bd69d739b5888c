"""Programs with next to nothing in them: no rows, no columns, constants, fixed columns, coefficients 0. Every engine."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import engines
import numpy as np
import pyomo.environ as pyo
import pytest
from engines import Entry, every_entry, solve

import octsvm
from octsvm.problem_class import classify

Maker = Callable[[pyo.ConcreteModel], float]
MODELS: dict[str, Maker] = {}


def model(make: Maker) -> Maker:
    """A model by what it adds to one with x (integer) and y (continuous); it returns the optimum."""
    MODELS[make.__name__] = make
    return make


@model
def no_rows(m: pyo.ConcreteModel) -> float:
    m.cost = pyo.Objective(expr=m.x + 2)
    return 3


@model
def no_rows_and_no_integers(m: pyo.ConcreteModel) -> float:
    m.cost = pyo.Objective(expr=m.y + 2)
    return 2.25


@model
def a_constant(m: pyo.ConcreteModel) -> float:
    m.cost = pyo.Objective(expr=7.0)
    return 7


@model
def a_constant_with_rows(m: pyo.ConcreteModel) -> float:
    m.row = pyo.Constraint(expr=m.x + m.y >= 5)
    m.cost = pyo.Objective(expr=7.0)
    return 7


@model
def no_variables(m: pyo.ConcreteModel) -> float:
    m.del_component(m.x)
    m.del_component(m.y)
    m.cost = pyo.Objective(expr=3.0)
    return 3


@model
def all_fixed(m: pyo.ConcreteModel) -> float:
    m.row = pyo.Constraint(expr=m.x + m.y >= 2)
    m.cost = pyo.Objective(expr=m.x + m.y)
    m.x.fix(2)
    m.y.fix(0.5)
    return 2.5


@model
def all_fixed_by_bounds(m: pyo.ConcreteModel) -> float:
    m.row = pyo.Constraint(expr=m.x + m.y >= 2)
    m.cost = pyo.Objective(expr=m.x + m.y)
    m.x.setlb(2)
    m.x.setub(2)
    m.y.setlb(0.5)
    m.y.setub(0.5)
    return 2.5


@model
def a_column_in_no_row(m: pyo.ConcreteModel) -> float:
    m.row = pyo.Constraint(expr=m.x >= 2)
    m.cost = pyo.Objective(expr=m.x + m.y)
    return 2.25


@model
def a_coefficient_0(m: pyo.ConcreteModel) -> float:
    m.row = pyo.Constraint(expr=m.x + 0.0 * m.y >= 2)
    m.cost = pyo.Objective(expr=m.x + 0.0 * m.y)
    return 2


@model
def coefficients_0_alone(m: pyo.ConcreteModel) -> float:
    m.row = pyo.Constraint(expr=0.0 * m.x <= 2)
    m.cost = pyo.Objective(expr=0.0 * m.x)
    return 0


@model
def nonlinear_terms_times_0(m: pyo.ConcreteModel) -> float:
    m.row = pyo.Constraint(expr=0.0 * pyo.exp(m.x) + m.y >= 0.5)
    m.other = pyo.Constraint(expr=0.0 * m.x * m.y <= 1)
    m.cost = pyo.Objective(expr=0.0 * m.x**2 + m.y)
    return 0.5


@model
def a_square_without_rows(m: pyo.ConcreteModel) -> float:
    m.cost = pyo.Objective(expr=(m.x - 3) ** 2 + 1)
    return 1


@model
def a_square_that_is_fixed(m: pyo.ConcreteModel) -> float:
    m.x.setub(1)
    m.cost = pyo.Objective(expr=m.x**2)
    return 1


@every_entry
@pytest.mark.quick_cases("highs")
def test_next_to_nothing_has_its_optimum(entry: Entry) -> None:
    solved = 0
    for name, make in MODELS.items():
        m = pyo.ConcreteModel(name=name)
        m.x = pyo.Var(domain=pyo.Integers, bounds=(1, 5), initialize=4)
        m.y = pyo.Var(bounds=(0.25, 5), initialize=3)
        optimum = make(m)
        if classify(m).name not in entry.spec.classes:
            with pytest.raises(octsvm.UnsupportedProblem):
                solve(entry, m)
            continue
        result = solve(entry, m, time_limit=20)
        assert (result.stop, result.objective) == ("optimal", pytest.approx(optimum, abs=1e-5)), name
        assert result.bound == pytest.approx(optimum, rel=2e-4, abs=1e-5), name
        solved += 1
    assert solved >= 8


FITS: list[tuple[str, dict[str, Any]]] = [
    ("re_svm", {"c1": 0.0, "c2": 1e-5}),
    ("re_svm", {"c1": 0.0, "c2": 0.0}),
    ("re_svm", {"c1": 0.0, "c2": 1e-5, "norm": "l1"}),
    ("octsvm", {"c1": 0.0, "c2": 0.0, "c3": 0.0, "depth": 1}),
    ("octsvm", {"c1": 0.0, "c2": 1.0, "c3": 0.1, "depth": 1, "norm": "l1"}),
    ("oct", {"alpha": 0.0, "depth": 1}),
    ("oct_h", {"alpha": 0.0, "depth": 1}),
]


@every_entry
@pytest.mark.quick_cases("highs")
def test_tables_that_leave_nothing_to_decide(entry: Entry) -> None:
    for name, params in FITS:
        for X in ([[0.0]] * 4, np.zeros((4, 2))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                result = octsvm.fit(
                    name, X, [-1, -1, 1, -1], solver=entry.name, time_limit=20, scale=False, **params
                )
            free = name in ("re_svm", "octsvm")
            assert (result.status, result.objective) == ("optimal", pytest.approx(0.0 if free else 1.0)), (
                params
            )


def test_a_variable_of_the_file_alone_is_left_as_it_was() -> None:
    m = octsvm.build("re_svm", [[0.0]] * 4, [-1, -1, 1, -1], c1=0.0, c2=1e-5)
    result = engines.solve("bonmin", m)
    assert (result.status, result.objective, result.bound) == ("optimal", 0.0, pytest.approx(0.0, abs=1e-8))
