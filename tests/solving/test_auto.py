"""Which solver "auto" takes: the first in the table, and one that takes the model as it stands before one that does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import octsvm
from octsvm import solvers

RNG = np.random.default_rng(0)
X = RNG.random((8, 2))
Y = (X[:, 0] > 0.5).astype(int)
CONIC, LINEAR = {"norm": "l2", "depth": 1}, {"norm": "l1", "depth": 1}


@pytest.fixture
def prefer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def set_order(*names: str) -> None:
        table = tmp_path / "solvers.yaml"
        table.write_text(f"prefer: [{', '.join(names)}]\nsolvers: {{}}\n")
        monkeypatch.setenv(solvers.ENVIRONMENT, str(table))

    return set_order


def need(*names: str) -> None:
    for name in names:
        if solvers.installed(name) is None:
            pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize("direct", ["scip", "gurobi", "cplex"])
def test_a_solver_that_takes_cones_comes_before_one_that_needs_rounds(prefer: Any, direct: str) -> None:
    need(direct)
    prefer("highs", "cbc", direct)
    conic, linear = octsvm.build("octsvm", X, Y, **CONIC), octsvm.build("octsvm", X, Y, **LINEAR)
    plan = octsvm.plan(conic)
    assert (plan.solver, plan.native, plan.rewritten) == (direct, True, ())
    assert plan.reasons[0].endswith("proves a MISOCP as it stands")
    assert dict(plan.rejected)["highs"] == "takes it rewritten, and another one as it stands"
    assert octsvm.plan(linear).solver == "highs"
    chosen, other = octsvm.solve(conic, solver="auto"), octsvm.solve(conic, solver="highs")
    assert (chosen.solver, chosen.status) == (direct, "optimal")
    assert chosen.engine["as_it_stands"]
    assert chosen.objective == pytest.approx(other.objective, rel=1e-3)


def test_cones_in_another_form_are_rewritten_too(prefer: Any) -> None:
    need("bonmin_casadi")
    conic = octsvm.build("octsvm", X, Y, **CONIC)
    for order in (("highs", "bonmin_casadi"), ("bonmin_casadi", "highs")):
        prefer(*order)
        plan = octsvm.plan(conic)
        assert plan.solver == order[0]
        assert plan.rewritten
        assert not plan.reasons[0].endswith("as it stands")


def test_the_version_of_a_package_is_named_as_its(prefer: Any) -> None:
    need("scip")
    prefer("scip")
    conic = octsvm.build("octsvm", X, Y, **CONIC)
    plan = octsvm.plan(conic)
    assert f"scip: SCIP (pyscipopt {plan.version})" in str(plan)
    rewritten = octsvm.plan(conic, solver="highs")
    assert "HiGHS takes LP, MILP" in str(rewritten)
    assert "so a MISOCP is rewritten for it" in str(rewritten)


def test_with_a_bridge_that_was_asked_for_the_order_is_that_of_the_table(prefer: Any) -> None:
    need("scip")
    prefer("highs", "scip")
    conic = octsvm.build("octsvm", X, Y, **CONIC)
    assert octsvm.plan(conic, bridge="outer_approximation").solver == "highs"


def test_what_breaks_down_is_followed_by_those_that_rewrite(
    prefer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("scip")
    prefer("highs", "scip")
    from octsvm.problem_class import classify
    from octsvm.solving.plan import candidates

    conic = octsvm.build("octsvm", X, Y, **CONIC)
    plans = list(candidates(conic, classify(conic), "auto"))
    assert [plan.solver for plan in plans] == ["scip", "highs"]
    assert dict(plans[1].rejected) == {"scip": "was tried before"}


def test_an_engine_that_is_named_or_whose_log_is_wanted_runs_even_where_all_is_proved_before(
    tmp_path: Path,
) -> None:
    """The search for bounds while OCT is built proves this tree."""
    model = octsvm.build("oct", X, Y, depth=1, alpha=0.1)
    assert model.info.least == pytest.approx(0.1)
    unasked = octsvm.solve(model)
    assert (unasked.status, unasked.rounds) == ("optimal", 0)
    log = tmp_path / "engine.log"
    for asked in ({"solver": "highs"}, {"solver": "auto"}, {"log": str(log)}):
        result = octsvm.solve(model, **asked)
        assert (result.status, result.rounds) == ("optimal", 1)
        assert result.engine["status"]  # in the engine's own words
        assert (result.objective, result.bound) == (unasked.objective, unasked.bound)
    assert "HiGHS" in log.read_text()
