"""Which solver "auto" takes: the first in the table, and the next where that one breaks down."""

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


@pytest.mark.parametrize("direct", ["scip", "gurobi", "cplex", "bonmin_casadi"])
def test_the_order_is_that_of_the_table_whoever_takes_cones_as_they_stand(prefer: Any, direct: str) -> None:
    need(direct)
    conic, linear = octsvm.build("octsvm", X, Y, **CONIC), octsvm.build("octsvm", X, Y, **LINEAR)
    for order in (("highs", direct), (direct, "highs")):
        prefer(*order)
        plan = octsvm.plan(conic)
        assert (plan.solver, plan.rejected) == (order[0], ())
        assert plan.reasons[0].endswith("is installed and proves a MISOCP")
    prefer("cbc", "glpk", "highs")
    assert octsvm.plan(linear).solver == next(n for n in ("cbc", "glpk", "highs") if solvers.installed(n))


def test_where_scip_is_installed_too_the_table_that_comes_with_the_package_takes_highs() -> None:
    order = solvers.table().prefer
    assert order.index("highs") < order.index("scip")


def test_the_version_of_a_package_is_named_as_its(prefer: Any) -> None:
    need("scip")
    prefer("scip")
    conic = octsvm.build("octsvm", X, Y, **CONIC)
    plan = octsvm.plan(conic)
    assert f"scip: SCIP (pyscipopt {plan.version})" in str(plan)
    rewritten = octsvm.plan(conic, solver="highs")
    assert "HiGHS takes LP, MILP" in str(rewritten)
    assert "so a MISOCP is rewritten for it" in str(rewritten)


def test_what_breaks_down_is_followed_by_the_next(prefer: Any) -> None:
    need("scip")
    prefer("scip", "highs")
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
