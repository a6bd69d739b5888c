"""What every registered bridge keeps: the model, all its feasible points, and its optimum."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import engines
import numpy as np
import pyomo.environ as pyo
import pytest
from cone_models import column_values, everything, points
from model_values import largest_violation

import octsvm
from octsvm import bridges, solvers
from octsvm.bridges import LINEAR, Bridge, bridge, leading_to
from octsvm.options import SolveOptions
from octsvm.problem_class import CLASSES, ProblemClass, classify
from octsvm.solving.compile import compile_program
from octsvm.solving.cutting_planes import CuttingPlaneLoop, Known
from octsvm.solving.engine import Engine, embedded

DIRECT = ("scip", "gurobi")  # take cones and squares as they stand
NL = "bonmin_casadi"  # takes any .nl file

every_bridge = pytest.mark.parametrize("name", bridges.names())


def tree() -> pyo.ConcreteModel:
    return engines.tree_model(1, 5, 1)


MODELS = [everything, tree]
every_model = pytest.mark.parametrize("build", MODELS, ids=lambda f: f.__name__)


def without_norms(model: pyo.ConcreteModel) -> pyo.ConcreteModel:
    for row in (model.norms.free, model.norms.tight):
        row.deactivate()
    return model


# ---------------------------------------------------------------------------------------------- the model


@every_bridge
@every_model
def test_the_model_is_as_before_after_undo_once_and_twice(name: str, build: Any) -> None:
    model = build()
    before, way = engines.fingerprint(model), bridge(name)
    way.apply(model, classify(model))
    assert engines.fingerprint(model) != before
    way.undo()
    assert engines.fingerprint(model) == before
    way.undo()
    assert engines.fingerprint(model) == before
    bridge(name).undo()


@every_bridge
@every_model
def test_the_model_is_as_before_after_an_error(name: str, build: Any) -> None:
    model = build()
    before, problem = engines.fingerprint(model), classify(model)
    broken = replace(problem.cones[-1], row=None)
    with pytest.raises(AttributeError, match="deactivate"):
        bridge(name).apply(model, replace(problem, cones=(*problem.cones, broken)))
    assert engines.fingerprint(model) == before
    with pytest.raises(KeyError, match="between"), bridge(name).applied(model, problem):
        raise KeyError("between")
    assert engines.fingerprint(model) == before
    way = bridge(name)
    way.apply(model, problem)
    with pytest.raises(RuntimeError):
        way.apply(model, problem)
    assert engines.fingerprint(model) == before


# ---------------------------------------------------------------------------------------------- the points


@every_bridge
def test_every_row_and_every_cut_holds_at_random_feasible_points(name: str) -> None:
    rng = np.random.default_rng(5)
    model, way = everything(), bridge(name)
    feasible = points(model, 40, rng)
    program = compile_program(model, classify(model), way)
    at_points = []
    for point in feasible:
        given = column_values(program, point)
        x = way.repair(given)
        assert x is not None
        kept = [k for k, v in enumerate(program.columns) if id(v) in point]
        assert np.array_equal(x[kept], given[kept]), "a feasible point is moved"
        for var in model.component_data_objects(pyo.Var):
            var.set_value(point.get(id(var)))
        program.load(x)
        assert largest_violation(model) <= 1e-9
        at_points.append(x)
    cuts = []
    for _ in range(40):
        x = rng.uniform(np.maximum(program.low, -5), np.minimum(program.high, 5))
        cuts += way.cuts(x) + way.cuts(x, violated=False)
        for cut in way.cuts(x):
            assert np.dot(cut.value, x[list(cut.at)]) < cut.low, "the point that it is made at obeys it"
    assert bool(cuts) == (way.exactness == "converges")
    for cut in cuts:
        for x in at_points:
            assert np.dot(cut.value, x[list(cut.at)]) >= cut.low - 1e-9
    way.undo()


@every_bridge
def test_repair_gives_a_feasible_point_of_the_original_or_none(name: str) -> None:
    rng = np.random.default_rng(6)
    model, way = everything(), bridge(name)
    anywhere = points(without_norms(model), 60, rng)
    for row in (model.norms.free, model.norms.tight):
        row.activate()
    program = compile_program(model, classify(model), way)
    way.undo()
    refused = 0
    for point in anywhere:
        x = way.repair(column_values(program, point))
        size = np.hypot(*(point[id(w)] for w in model.w.values()))
        assert (x is None) == (size > 1.2 * point[id(model.z)] + 1e-6), "it cannot make z more than it is"
        if x is None:
            refused += 1
            continue
        for var in model.component_data_objects(pyo.Var):
            var.set_value(point[id(var)])
        program.load(x)
        assert largest_violation(model) <= 1e-9
        assert [model.v[j].value for j in range(3)] == [point[id(model.v[j])] for j in range(3)]
    assert 0 < refused < len(anywhere)


# ---------------------------------------------------------------------------------------------- the optimum


def optimum_through(way: Bridge, model: pyo.ConcreteModel) -> float:
    """Of ``model`` rewritten by ``way``, by an engine that takes no cones."""
    problem = classify(model)
    if way.gives(problem) in LINEAR:
        program = compile_program(model, problem, way)
        way.undo()
        loop = CuttingPlaneLoop(
            program,
            Engine(embedded(), program, way, native=False),
            way,
            SolveOptions(gap=1e-5),
            Known(floor=-np.inf, size=1.0),
        )
        assert loop.run(None) == "optimal"
        assert loop.rounds > 1, "nothing had to be refined"
        return loop.objective
    engines.skip_absent(engines.Entry(NL))
    out = engines.raw(solvers.require(NL).model_copy(update={"cone_form": way.name}), model, 1.0, {})
    assert (out.stop, out.failure) == ("optimal", "")
    return out.objective


@every_bridge
@every_model
@pytest.mark.quick_cases("tree-perspective", "everything-norm", "everything-outer_approximation")
def test_the_optimum_is_that_of_an_engine_which_takes_the_original(name: str, build: Any) -> None:
    there = [direct for direct in DIRECT if solvers.get(direct).version is not None]
    if not there:
        pytest.skip(f"none of {', '.join(DIRECT)} is installed")
    model = build()
    before = engines.fingerprint(model)
    assert octsvm.plan(model, there[0]).native
    direct = engines.raw(solvers.require(there[0]), model, 1.0, {})
    assert direct.stop == "optimal"
    assert optimum_through(bridge(name), model) == pytest.approx(direct.objective, rel=2e-4)
    assert engines.fingerprint(model) == before


# ---------------------------------------------------------------------------------------------- the registry


def test_every_module_has_a_test_of_its_name_and_every_bridge_a_module() -> None:
    modules = {p.stem for p in Path(bridges.__file__).parent.glob("*.py")} - {"__init__"}
    assert {f"test_{m}.py" for m in modules} <= {p.name for p in Path(__file__).parent.glob("test_*.py")}
    kinds = [type(bridge(name)) for name in bridges.names()]
    assert {kind.__module__.removeprefix("octsvm.bridges.") for kind in kinds} == modules
    assert [kind.name for kind in kinds] == bridges.names()


def test_names_lead_to_a_bridge_the_nearest_name_or_what_it_takes() -> None:
    problem = classify(everything())
    assert bridges.names()[0] == "outer_approximation"
    assert leading_to(problem, LINEAR).name == "outer_approximation"
    assert leading_to(problem, ("MILP", "MINLP"), "norm").name == "norm"
    assert leading_to(problem, ("MINLP",)).name == "perspective"
    assert leading_to(problem, ("NLP",)) is None
    with pytest.raises(octsvm.InvalidParameter, match=r"Did you mean 'outer_approximation'\?"):
        leading_to(problem, LINEAR, "outer-aproximation")
    with pytest.raises(
        octsvm.UnsupportedProblem, match="takes models with marked cones and gives NLP or MINLP"
    ):
        leading_to(problem, LINEAR, "norm")
    linear = classify(engines.tree_model(1, 5, 1, norm="l1"))
    for name in bridges.names():
        with pytest.raises(octsvm.UnsupportedProblem, match="and this is a MILP"):
            leading_to(linear, CLASSES, name)


def test_a_plan_goes_through_the_bridge_that_is_named() -> None:
    engines.skip_absent(engines.Entry("scip"))
    model = everything()
    assert (octsvm.plan(model, "scip").native, octsvm.plan(model, "scip").bridge) == (True, None)
    plan = octsvm.plan(model, "scip", bridge="outer_approximation")
    assert (plan.native, plan.bridge) == (False, "outer_approximation")
    assert "(outer approximation)" in plan.rewritten[0]
    assert plan.reasons == ("you asked for scip", "you asked for the bridge outer_approximation")
    unnamed, named = octsvm.plan(model, "highs"), octsvm.plan(model, "highs", bridge="outer_approximation")
    assert unnamed.bridge == named.bridge == "outer_approximation"
    assert unnamed.rewritten == named.rewritten
    auto = octsvm.plan(model, bridge="outer_approximation")
    assert (auto.native, auto.bridge) == (False, "outer_approximation")
    with pytest.raises(
        octsvm.UnsupportedProblem, match="scip cannot take this model through the bridge norm"
    ):
        octsvm.plan(model, "scip", bridge="norm")
    with pytest.raises(octsvm.InvalidParameter, match=r"'nrom' is not a bridge\. Did you mean 'norm'"):
        octsvm.plan(model, "scip", bridge="nrom")
    with pytest.raises(octsvm.UnsupportedProblem, match="takes models with marked cones"):
        octsvm.plan(engines.tree_model(1, 5, 1, norm="l1"), bridge="norm")


@pytest.mark.parametrize("name", ["perspective", "norm"])
def test_a_plan_writes_cones_in_the_form_that_is_named(name: str) -> None:
    engines.skip_absent(engines.Entry(NL))
    assert octsvm.plan(tree(), NL).spec.cone_form == "perspective"
    plan = octsvm.plan(tree(), NL, bridge=name)
    assert (plan.native, plan.bridge, plan.spec.cone_form) == (True, None, name)
    assert {"perspective": "perspective form", "norm": "smoothed norms"}[name] in plan.rewritten[0]


def test_a_bridge_of_ones_own_is_tried_behind_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(Bridge):
        name, exactness, takes, classes = "mine", "exact", "all models", ("QP", "MILP")

        @classmethod
        def gives(cls, problem: ProblemClass) -> str:
            return "QP" if problem.unmarked else "MILP"

        def rewrite(self, model: pyo.ConcreteModel, problem: ProblemClass) -> None:
            self.add_block(model, "mine").x = pyo.Var()

    monkeypatch.setattr(bridges, "_kinds", dict(bridges._kinds))
    bridges.register("mine", Mine)
    assert bridges.names()[-1] == "mine"
    model = everything()
    problem = classify(model)
    assert leading_to(problem, LINEAR).name == "outer_approximation"
    assert leading_to(classify(engines.tree_model(1, 5, 1, norm="l1")), LINEAR).name == "mine"
    way = leading_to(problem, LINEAR, "mine")
    before = engines.fingerprint(model)
    with way.applied(model, problem):
        assert model.mine.x.value is None
    assert engines.fingerprint(model) == before
    x = np.ones(3)
    assert (way.own_variables(), way.cuts(x)) == ([], [])
    assert way.repair(x) is x


# ------------------------------------------------------------------------------------------------ by name


@pytest.mark.parametrize("solver", ["scip", "gurobi"])
def test_a_named_bridge_is_used_where_the_solver_takes_the_model_as_it_stands(solver: str) -> None:
    engines.skip_absent(engines.Entry(solver))
    model = octsvm.build("octsvm", [[0.0], [1.0], [2.0], [3.0]], ["a", "b", "a", "b"], depth=0, c1=3, c2=4)
    direct = octsvm.solve(model, solver=solver, gap=1e-6)
    through = octsvm.solve(model, solver=solver, gap=1e-6, bridge="outer_approximation")
    assert (direct.engine["as_it_stands"], through.engine["as_it_stands"]) == (True, False)
    assert direct.status == through.status == "optimal"
    assert through.objective == pytest.approx(direct.objective, rel=1e-5)
    assert "outer_approximation" in through.notes[0]
