"""What counts as the formulation's own part of a model, and what as the user's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyomo.environ as pyo
import pytest

import octsvm
from octsvm.formulations.base import structure
from octsvm.options import SolveOptions
from octsvm.solving import certificate, dispatch

X = [[0, 0], [0, 1], [1, 0], [1, 1]]
Y = ["a", "b", "b", "a"]


def one_sided(built: bool) -> Any:
    """OCT where one child of the root may split: a formulation's own block, or one that a user added."""
    model = octsvm.build("oct", X, Y, depth=2, alpha=0.1, variant="rank")
    model.one_sided = pyo.Block()
    model.one_sided.at_most = pyo.Constraint(expr=model.split.d[2] + model.split.d[3] <= 1)
    if built:  # what a build records at its end
        model.info = replace(model.info, structure=structure(model))
    return model


@pytest.mark.parametrize("built", [True, False])
def test_a_block_made_in_building_is_the_formulations_own(built: bool) -> None:
    model = one_sided(built)
    assert certificate.is_own(model) is built
    assert [c.local_name for c in certificate.user_components(model)] == ([] if built else ["one_sided"])
    result = octsvm.solve(model)
    assert any("(one_sided)" in note for note in result.notes) is not built
    assert certificate.is_own(model.clone()) is built


def test_a_block_added_after_building_is_the_users_whatever_its_name() -> None:
    model = octsvm.build("oct", X, Y, depth=1)
    model.margin = pyo.Block()  # a name that other formulations build
    assert [c.local_name for c in certificate.user_components(model)] == ["margin"]
    assert not certificate.is_own(model)


@pytest.mark.parametrize(("built", "credit", "bound"), [(True, 0, 0.0), (False, 0, 0.0), (False, -2, -4.0)])
def test_the_bound_starts_at_what_rows_and_terms_of_ones_own_leave(
    built: bool, credit: float, bound: float
) -> None:
    model = one_sided(built)
    if credit:
        model.objective.set_value(model.cost + credit * (model.split.d[2] + model.split.d[3]))
    result = dispatch.solve_with(
        model, SolveOptions(work_limit={"rounds": 1}), neighbourhoods=True
    )  # fmt: skip
    assert result.bound == bound
