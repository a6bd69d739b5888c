"""Whether a tree is a point of a model with rows and variables of the user's own, and what values these get."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import octsvm
from octsvm.formulations import blocks
from octsvm.formulations.base import Scaling
from octsvm.formulations.trees import MarginTree
from octsvm.solving.certificate import broken_row

COSTS: dict[str, Any] = {"depth": 1, "c1": 10, "c2": 5, "c3": 0.5}


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((14, 3))
    y = (X @ [1.0, -0.7, 0.5] > 0.4).astype(int)
    y[3] = 1 - y[3]
    return X, y


def plane(features: int) -> MarginTree:
    """A tree that splits by the first so many features, once."""
    weights = 20 * np.array([[1.0, -0.7, 0.5][:features] + [0.0] * (3 - features)])
    scaling = Scaling.identity(3)
    names, intercept = ("x0", "x1", "x2"), np.array([-8.0 if features == 3 else -3.0])
    return MarginTree(0, (0, 1), names, scaling, weights, intercept, np.array([True]))


def budgeted() -> pyo.ConcreteModel:
    model = octsvm.build("octsvm", *table(), upper_bound=2000, **COSTS)
    blocks.add_feature_budget(model, model.split, 2)
    for j, value in enumerate((1, 1, 0)):
        model.feature_budget.v[j].set_value(value)
    return model


def own_values(model: pyo.ConcreteModel) -> list[Any]:
    return [v.value for v in model.feature_budget.v.values()]


def test_embed_refuses_a_tree_that_leaves_own_variables_no_values() -> None:
    model = budgeted()
    with pytest.raises(
        octsvm.TreeNotAdmitted, match=r"feature_budget\.at_most.* leave no values for variables"
    ):
        octsvm.embed(model, plane(3))
    assert own_values(model) == [1, 1, 0]


def test_embed_completes_own_variables() -> None:
    model = budgeted()
    model.feature_budget.v[0].set_value(0)
    octsvm.embed(model, plane(2))
    assert own_values(model)[:2] == [1, 1]
    assert broken_row(model) is None


def test_embed_keeps_own_values_where_rows_are_not_linear() -> None:
    model = budgeted()
    model.mine = pyo.Var(initialize=2.0)
    model.curve = pyo.Constraint(expr=model.mine**3 == 8)
    octsvm.embed(model, plane(2))
    assert model.mine.value == 2.0
    model.mine.set_value(1.0)
    with pytest.raises(octsvm.TreeNotAdmitted, match=r"mine.*not linear.*curve is violated by 7"):
        octsvm.embed(model, plane(2))
    assert model.mine.value == 1.0
    assert own_values(model)[:2] == [1, 1]


def test_embed_keeps_the_value_of_a_variable_in_no_row() -> None:
    model = budgeted()
    model.loose = pyo.Var(initialize=5.0)
    octsvm.embed(model, plane(2))
    assert model.loose.value == 5.0


def test_solve_refuses_a_start_that_leaves_own_variables_no_values() -> None:
    model = budgeted()
    with pytest.raises(octsvm.TreeNotAdmitted, match=r"feature_budget\.at_most"):
        octsvm.solve(model, start=plane(3), solver="highs", time_limit=20)
    assert own_values(model) == [1, 1, 0]


@pytest.mark.parametrize("way", ["build", "fit", "heuristic", "solve", "embed"])
def test_a_start_that_costs_more_than_no_split_is_refused_everywhere(way: str) -> None:
    X, y = table()
    dear = replace(plane(3), omega=1e4 * plane(3).omega, omega0=1e4 * plane(3).omega0)
    model = octsvm.build("octsvm", X, y, **COSTS)
    with pytest.raises(octsvm.TreeNotAdmitted, match="is worse than"):
        {
            "build": lambda: octsvm.build("octsvm", X, y, start=dear, **COSTS),
            "fit": lambda: octsvm.fit("octsvm", X, y, start=dear, time_limit=5, **COSTS),
            "heuristic": lambda: octsvm.fit("octsvm", X, y, start=dear, strategy="heuristic", **COSTS),
            "solve": lambda: octsvm.solve(model, start=dear),
            "embed": lambda: octsvm.embed(model, dear),
        }[way]()


def test_a_tree_of_oct_is_no_start_with_margins_and_what_is() -> None:
    X, y = table()
    axis = octsvm.fit("oct", X, y, depth=1).tree
    with pytest.raises(octsvm.TreeNotAdmitted, match=r"AxisTree: it has no margins.*from_sklearn"):
        octsvm.build("octsvm", X, y, start=axis, **COSTS)


def test_the_engine_has_a_start_only_where_one_was_given() -> None:
    X, y = table()
    model = octsvm.build("oct", X, y, depth=1)
    first = octsvm.solve(model, solver="highs")
    assert first.engine["start"] == "none"
    assert octsvm.solve(model, solver="highs", start=first.tree).engine["start"] == "accepted"
