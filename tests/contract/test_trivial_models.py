"""Programs with next to nothing in them: no rows, no columns, constants, fixed columns, coefficients 0. Every engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import engines
import numpy as np
import pyomo.environ as pyo
import pytest
from engines import Entry, every_entry, solve

import octsvm
from octsvm.problem_class import classify

Of = Callable[[pyo.ConcreteModel], Any]
# Models with x (integer, 1 to 5) and y (continuous, 1/4 to 5): the optimum, the objective, the rows, and what is done before.
MODELS: dict[str, tuple[float, Of] | tuple[float, Of, Of] | tuple[float, Of, Of, Of]] = {
    "no rows": (3, lambda m: m.x + 2),
    "no rows and no integers": (2.25, lambda m: m.y + 2),
    "a constant": (7, lambda m: 7.0),
    "a constant with rows": (7, lambda m: 7.0, lambda m: [m.x + m.y >= 5]),
    "no variables": (3, lambda m: 3.0, lambda m: [], lambda m: (m.del_component(m.x), m.del_component(m.y))),
    "all fixed": (2.5, lambda m: m.x + m.y, lambda m: [m.x + m.y >= 2], lambda m: (m.x.fix(2), m.y.fix(0.5))),
    "all fixed by bounds": (
        2.5, lambda m: m.x + m.y, lambda m: [m.x + m.y >= 2],
        lambda m: (m.x.setlb(2), m.x.setub(2), m.y.setlb(0.5), m.y.setub(0.5)),
    ),
    "a column in no row": (2.25, lambda m: m.x + m.y, lambda m: [m.x >= 2]),
    "a coefficient 0": (2, lambda m: m.x + 0.0 * m.y, lambda m: [m.x + 0.0 * m.y >= 2]),
    "coefficients 0 alone": (0, lambda m: 0.0 * m.x, lambda m: [0.0 * m.x <= 2]),
    "nonlinear terms times 0": (
        0.5, lambda m: 0.0 * m.x**2 + m.y, lambda m: [0.0 * pyo.exp(m.x) + m.y >= 0.5, 0.0 * m.x * m.y <= 1],
    ),
    "a square without rows": (1, lambda m: (m.x - 3) ** 2 + 1),
    "a square that is fixed": (1, lambda m: m.x**2, lambda m: [], lambda m: m.x.setub(1)),
}  # fmt: skip


@every_entry
@pytest.mark.parametrize("names", [[*MODELS][k::3] for k in range(3)], ids=range(3))
@pytest.mark.quick_cases("*-highs")
@pytest.mark.every_value
def test_next_to_nothing_has_its_optimum(entry: Entry, names: list[str]) -> None:
    solved = 0
    for name in names:
        optimum, cost, *more = MODELS[name]
        m = pyo.ConcreteModel(name=name)
        m.x = pyo.Var(domain=pyo.Integers, bounds=(1, 5), initialize=4)
        m.y = pyo.Var(bounds=(0.25, 5), initialize=3)
        for prepare in more[1:]:
            prepare(m)
        m.rows = pyo.ConstraintList()
        for row in more[0](m) if more else ():
            m.rows.add(row)
        m.cost = pyo.Objective(expr=cost(m))
        if classify(m).name not in entry.spec.classes:
            with pytest.raises(octsvm.UnsupportedProblem):
                solve(entry, m)
            continue
        result = solve(entry, m, time_limit=20)
        assert (result.stop, result.objective) == ("optimal", pytest.approx(optimum, abs=1e-5)), name
        assert result.bound == pytest.approx(optimum, rel=2e-4, abs=1e-5), name
        solved += 1
    assert solved >= len(names) - 1


FITS: list[tuple[str, int, dict[str, Any]]] = [
    ("re_svm", 1, {"c1": 0.0, "c2": 1e-5}),
    ("re_svm", 2, {"c1": 0.0, "c2": 0.0}),
    ("re_svm", 2, {"c1": 0.0, "c2": 1e-5, "norm": "l1"}),
    ("octsvm", 2, {"c1": 0.0, "c2": 0.0, "c3": 0.0, "depth": 1}),
    ("octsvm", 1, {"c1": 0.0, "c2": 1.0, "c3": 0.1, "depth": 1, "norm": "l1"}),
    ("oct", 1, {"alpha": 0.0, "depth": 1}),
    ("oct_h", 2, {"alpha": 0.0, "depth": 1}),
]


@every_entry
@pytest.mark.parametrize(("formulation", "columns", "params"), FITS)
@pytest.mark.quick_cases("*-highs")
@pytest.mark.every_value
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tables_that_leave_nothing_to_decide(
    entry: Entry, formulation: str, columns: int, params: dict[str, Any]
) -> None:
    labels = [-1, -1, 1, -1]
    result = octsvm.fit(
        formulation,
        np.zeros((4, columns)),
        labels,
        solver=entry.name,
        time_limit=20,
        scale=False,
        **params,
    )
    free = formulation in ("re_svm", "octsvm")
    assert (result.status, result.objective) == ("optimal", pytest.approx(0.0 if free else 1.0))


def test_a_variable_of_the_file_alone_is_left_as_it_was() -> None:
    m = octsvm.build("re_svm", [[0.0]] * 4, [-1, -1, 1, -1], c1=0.0, c2=1e-5)
    result = engines.solve("bonmin", m)
    assert (result.status, result.objective, result.bound) == ("optimal", 0.0, pytest.approx(0.0, abs=1e-8))
