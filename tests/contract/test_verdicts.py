"""Infeasible, unbounded, none found, interrupted, numeric: each is said only where it is so. Every engine."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import engines
import numpy as np
import pyomo.environ as pyo
import pytest
from engines import Entry, every_entry, solve

import octsvm
from octsvm import solvers

FORMULATIONS = ("oct", "oct_h", "re_svm", "octsvm")
X, Y = engines.data(3, 6, 2)
ON_FORMULATIONS = pytest.mark.parametrize("formulation", FORMULATIONS)


def build(formulation: str, **more: Any) -> pyo.ConcreteModel:
    return engines.small(formulation, X, Y, **more)


@cache
def least(formulation: str, norm: str | None = None) -> float:
    """The optimum of :func:`build`, by one engine for the tests of all."""
    model = build(formulation, **({} if norm is None else {"norm": norm}))
    return octsvm.solve(model, solver="highs", time_limit=60).objective


def choices(model: pyo.ConcreteModel) -> list[Any]:
    """Two integers of the formulation that may both be 0 or 1, in a row of a user's."""
    return [v for v in model.component_data_objects(pyo.Var) if v.is_binary() and not v.fixed][-2:]


@every_entry
@pytest.mark.parametrize("formulation", [*FORMULATIONS, "wide octsvm"])
@pytest.mark.quick_cases("*-highs", "octsvm-*")
@pytest.mark.every_value
def test_rows_that_contradict_each_other_are_infeasible(entry: Entry, formulation: str) -> None:
    wide = {"upper_bound": 1e10} if formulation.startswith("wide") else {}  # so that integrality bends
    model = build(formulation.removeprefix("wide "), **wide)
    one, other = choices(model)
    model.mine = pyo.Constraint(expr=one + other >= 3)
    result = solve(entry, model, time_limit=20)
    assert (result.status, result.stop, result.tree) == ("infeasible", "infeasible", None)
    assert result.bound == math.inf
    assert any("mine is violated by" in note for note in result.notes)


@every_entry
@pytest.mark.quick_cases("highs", "bonmin*")
def test_bounds_of_ones_own_that_cross_are_infeasible_and_suffixes_are_nothing(entry: Entry) -> None:
    """Both ended Bonmin in CasADi."""
    model = build("oct")
    model.priority = pyo.Suffix(direction=pyo.Suffix.EXPORT)
    model.priority[model.split.d[1]] = 3
    model.own = pyo.Var(bounds=(0, 1))
    model.mine = pyo.Constraint(expr=model.own >= model.split.d[1])
    assert solve(entry, model, time_limit=20).status == "optimal"
    assert model.priority.active
    model.own.setlb(2)
    assert solve(entry, model, time_limit=20).status == "infeasible"


@every_entry
@pytest.mark.parametrize(("formulation", "norm"), [("re_svm", "l1"), ("re_svm", "l2"), ("octsvm", "l1")])
@pytest.mark.quick_cases("*-highs", "re_svm-l1-*")
@pytest.mark.every_value
def test_a_row_that_only_dearer_trees_keep_is_not_infeasible(
    entry: Entry, formulation: str, norm: str
) -> None:
    """The model holds trees up to the cost of the one known before: that none of them keeps the row is no more than that."""
    more = {"norm": norm} | ({"c3": 0.1} if formulation == "octsvm" else {})
    narrow = build(formulation, **more)
    narrow.mine = pyo.Constraint(expr=narrow.split.omega[1, 0] >= 20)
    first = solve(entry, narrow, time_limit=20)
    wide = build(formulation, upper_bound=2000.0, **more)
    wide.mine = pyo.Constraint(expr=wide.split.omega[1, 0] >= 20)
    second = octsvm.solve(wide, solver="highs", time_limit=20)
    assert (first.status, first.stop) == ("no_tree", "numeric")
    assert any("upper_bound=" in note for note in first.notes)
    assert narrow.info.upper_bound <= first.bound * (1 + 1e-9) <= second.objective
    assert second.status == "optimal"


@every_entry
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.quick_cases("l1-highs", "l1-gurobi")
@pytest.mark.every_value
def test_nor_is_it_with_a_variable_without_bounds_in_the_objective(entry: Entry, norm: str) -> None:
    """Engines that have one word for infeasible and unbounded say that word then."""
    model = build("re_svm", norm=norm)
    model.t = pyo.Var()
    model.above = pyo.Constraint(expr=model.t >= 1 - 0.3 * model.relabelling.xi[0, 1])
    model.mine = pyo.Constraint(expr=model.split.omega[1, 0] >= 20)
    model.objective.set_value(model.cost + 0.2 * model.t)
    result = solve(entry, model, time_limit=20)
    assert (result.status, result.stop) == ("no_tree", "numeric")
    assert math.isfinite(result.bound)


@every_entry
@ON_FORMULATIONS
@pytest.mark.quick_cases("*-highs", "oct-*")
@pytest.mark.every_value
def test_a_term_without_end_is_unbounded(entry: Entry, formulation: str) -> None:
    model = build(formulation)
    model.k = pyo.Var(bounds=(0, None))
    model.objective.set_value(model.cost - model.k)
    # Global engines end by themselves, also on a busy machine.
    result = solve(entry, model, time_limit=60 if entry.spec.claim == "global" else 2)
    assert result.status in ("feasible", "fallback", "no_tree")
    assert result.bound == -math.inf
    if entry.spec.claim == "global" or result.stop == "unbounded":
        assert result.stop == "unbounded"
        assert any("'objective'" in note for note in result.notes)
    else:  # seen to go on along the ray for as long as it may, or to stop at a point of it
        assert result.stop in ("time_limit", "numeric")


@every_entry
@ON_FORMULATIONS
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.quick_cases("True-*-highs", "False-octsvm-highs", "*octsvm-cbc")
@pytest.mark.every_value
def test_a_limit_of_a_millisecond_proves_nothing(entry: Entry, formulation: str, known: bool) -> None:
    model = build(formulation, **({"variant": "rank"} if formulation == "oct" else {}))
    if not known:
        exclude_constant_trees(model)
    result = solve(entry, model, time_limit=1e-3)
    assert result.stop in (
        "time_limit",
        "optimal",
        "numeric",
    )  # the last where the model is too narrow for own rows
    assert result.tree is not None or not known
    assert result.status in ("optimal", "feasible", "fallback" if known else "no_tree")
    assert 0 <= result.bound < math.inf


@every_entry
@ON_FORMULATIONS
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.quick_cases("True-*-highs", "False-octsvm-highs", "*octsvm-cbc")
@pytest.mark.every_value
def test_a_callback_that_stops_at_once_proves_nothing(entry: Entry, formulation: str, known: bool) -> None:
    rows = engines.data(1, 16, 3)
    params = {} if formulation == "re_svm" else {"depth": 1}
    more = {"variant": "rank"} if formulation == "oct" else {}
    model = octsvm.build(formulation, *rows, **params, **more)
    if not known:
        exclude_constant_trees(model)
    result = solve(entry, model, time_limit=20, callback=lambda _: True)
    assert (result.tree is not None) or not known
    assert result.status != "infeasible"
    assert 0 <= result.bound < math.inf
    if result.status != "optimal":
        assert result.stop in ("interrupted", "time_limit")


OWN_LIMITS: list[tuple[str, dict[str, Any]]] = [
    ("highs", {"mip_max_nodes": 0}), ("highs", {"objective_bound": 0.001}), ("highs", {"objective_target": 100.0}),
    ("highs", {"mip_abs_gap": 100.0}), ("scip", {"limits/nodes": 1}), ("scip", {"limits/memory": 0.001}),
    ("scip", {"limits/dual": 0.0}), ("cbc", {"maxNodes": 1}), ("cbc", {"cutoff": 0.0001}), ("gurobi", {"Cutoff": 0.001}),
    ("gurobi", {"BestBdStop": 0.0}), ("gurobi", {"WorkLimit": 1e-6}), ("cplex", {"mip.tolerances.uppercutoff": 0.0001}),
    ("cplex", {"mip.limits.nodes": 0}), ("xpress", {"mipabscutoff": 0.0001}), ("xpress", {"maxnode": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), OWN_LIMITS, ids=[f"{n}-{next(iter(o))}" for n, o in OWN_LIMITS])
@pytest.mark.quick_cases("highs-*", "*utoff")
def test_a_solvers_own_limits_and_cutoffs_prove_nothing(name: str, options: dict[str, Any]) -> None:
    if solvers.installed(name) is None:
        pytest.skip(f"{name} is not installed")
    rng = np.random.default_rng(0)
    model = octsvm.build("oct_h", rng.random((30, 3)), rng.integers(0, 2, 30), depth=1)  # the least cost is 7
    exclude_constant_trees(model)
    result = octsvm.solve(model, solver=name, options=options, time_limit=20)
    assert result.status in ("no_tree", "feasible")
    assert result.stop not in ("optimal", "infeasible", "error")
    assert result.bound <= 7 * (1 + 1e-6)


def exclude_constant_trees(model: pyo.ConcreteModel) -> None:
    """A row that the trees known before do not keep, and cheap others do."""
    if model.info.formulation == "re_svm":
        model.mine = pyo.Constraint(expr=model.split.omega[1, 0] >= 0.01)
    else:
        split = model.find_component("pruning.d") or model.split.d
        model.mine = pyo.Constraint(expr=split[1] >= 1)


@every_entry
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.quick_cases("*-highs")
@pytest.mark.every_value
def test_nothing_is_optimal_where_integrality_bends_by_a_margin(entry: Entry, norm: str) -> None:
    best = least("octsvm", norm)
    result = solve(entry, build("octsvm", upper_bound=1e10, norm=norm), time_limit=3)
    assert result.status in ("feasible", "fallback")
    assert result.stop != "optimal"
    assert result.bound <= best * (1 + 1e-6)
    assert any("too high as well" in note for note in result.notes)


@every_entry
@pytest.mark.parametrize("shape", ["convex", "hollow"])
@pytest.mark.every_value
def test_rows_that_are_not_convex_are_proved_by_global_engines_only(entry: Entry, shape: str) -> None:
    if entry.stand_in or "MIQCP" not in entry.spec.classes:
        pytest.skip(f"{entry} takes no quadratic rows")
    model = build("oct_h")
    a = model.split.a
    product = a[1, 0] * a[1, 1]
    if shape == "convex":
        model.mine = pyo.Constraint(expr=(a[1, 0] - 0.5) ** 2 + (a[1, 1] + 0.5) ** 2 <= 0.01)
    else:
        model.mine = pyo.Constraint(expr=product <= -0.2)
    result = solve(entry, model, time_limit=20)
    proves = entry.spec.claim == "global" or (entry.spec.claim == "convex" and shape == "convex")
    assert result.status != "infeasible"
    if proves:
        assert result.status == "optimal"
        assert pyo.value(product) <= -0.15
    else:
        assert result.status in ("feasible", "fallback", "no_tree")
        assert result.bound == 0.0
        assert any("convex" in note for note in result.notes)


def test_what_is_convex_is_seen() -> None:
    from octsvm.backends.matrix_program import QuadraticForm, QuadraticRow

    def form(*terms: tuple[int, int, float]) -> QuadraticForm:
        first, second, coef = zip(*terms, strict=True)
        return QuadraticForm(np.array(first), np.array(second), np.array(coef, dtype=float))

    bowl, saddle = form((4, 4, 1), (7, 7, 2), (4, 7, 2)), form((0, 0, 1), (1, 1, 1), (0, 1, 3))
    assert bowl.is_convex()
    assert not bowl.is_convex(-1.0)
    assert not saddle.is_convex()
    assert not saddle.is_convex(-1.0)
    none, inf = np.zeros(0, dtype=int), math.inf
    for low, high, convex in ((-inf, 1.0, True), (0.0, inf, False), (0.0, 0.0, False)):
        assert QuadraticRow(bowl, none, np.zeros(0), low, high).is_convex() is convex


@every_entry
@ON_FORMULATIONS
@pytest.mark.parametrize("kind", ["zero", "zeros", "fixed beside zero"])
@pytest.mark.quick_cases("zero-*-highs", "zeros-octsvm-cbc", "fixed beside zero-oct-highs")
@pytest.mark.every_value
def test_a_row_whose_coefficients_are_all_zero_is_infeasible_or_holds(
    entry: Entry, formulation: str, kind: str
) -> None:
    model = build(formulation)
    model.a, model.b = pyo.Var(bounds=(0, 5)), pyo.Var(bounds=(0, 5))
    if kind == "fixed beside zero":
        model.b.fix(2)
    body = {
        "zero": 0 * model.a,
        "zeros": 0 * model.a + 0 * model.b,
        "fixed beside zero": 0 * model.a + model.b,
    }
    model.holds = pyo.Constraint(expr=body[kind] <= 3)
    assert solve(entry, model, time_limit=20).objective == pytest.approx(least(formulation), rel=1e-3)
    model.breaks = pyo.Constraint(expr=body[kind] >= 3)
    result = solve(entry, model, time_limit=20)
    assert (result.status, result.stop, result.tree) == ("infeasible", "infeasible", None)


@pytest.mark.parametrize(
    ("domain", "value", "said"),
    [
        (pyo.Reals, math.nan, "is fixed at nan, which is no number"),
        (pyo.Reals, math.inf, "is fixed at inf, which is no number"),
        (pyo.Reals, 99.0, "is fixed at 99, and its bounds are 0 and 5"),
        (pyo.Integers, -1.0, "is fixed at -1, and its bounds are 0 and 5"),
        (pyo.Binary, 0.5, "is fixed at 0.5, and its domain has whole numbers only"),
        (pyo.Reals, -1e-9, ""),
        (pyo.Binary, 1 - 1e-9, ""),
    ],
)
@pytest.mark.parametrize("where", ["row", "objective"])
@pytest.mark.quick_cases("objective-*", "row-domain4-*")
def test_a_variable_fixed_where_it_cannot_be_is_refused_by_name(
    domain: Any, value: float, said: str, where: str, tmp_path: Any
) -> None:
    model = build("octsvm")
    model.own = pyo.Var(domain=domain, bounds=(0, 1) if domain is pyo.Binary else (0, 5))
    model.own.set_value(value, skip_validation=True)
    model.own.fixed = True
    if where == "row":
        model.mine = pyo.Constraint(expr=model.own + choices(model)[0] <= 300)
    else:
        model.objective.set_value(model.cost + model.own)
    if not said:
        assert octsvm.solve(model, time_limit=20).status == "optimal"
        return
    for call in (octsvm.solve, octsvm.plan, lambda m: octsvm.write(m, tmp_path / "model.lp")):
        with pytest.raises(octsvm.InvalidParameter, match=f"'own' in .*{said}"):
            call(model)


@pytest.mark.parametrize(
    ("formulation", "block"),
    [("oct", "split"), ("oct_h", "assignment"), ("octsvm", "margin"), ("re_svm", "hinge")],
)
def test_a_block_that_was_taken_out_is_named(formulation: str, block: str) -> None:
    model = build(formulation)
    tree = octsvm.fit(
        formulation, X, Y, time_limit=5, **({} if formulation == "re_svm" else {"depth": 1})
    ).tree
    octsvm.embed(model, tree)
    model.del_component(block)
    for call in (octsvm.solve, lambda m: octsvm.embed(m, tree)):
        with pytest.raises(octsvm.OctsvmError, match=block):
            call(model)


def test_xpress_has_no_bound_before_its_first_relaxation() -> None:
    """Its attribute says 0 until then, also for what falls without end."""
    pytest.importorskip("xpress", reason="Xpress is not installed: pip install xpress")
    from octsvm.backends.adapters import xpress

    assert xpress.bound_of(xpress.xp.problem().attributes) == -math.inf


@every_entry
@pytest.mark.parametrize("kind", ["square", "product", "product in a row"])
@pytest.mark.quick_cases("square-scip")
@pytest.mark.every_value
def test_what_falls_without_end_is_neither_optimal_nor_infeasible(entry: Entry, kind: str) -> None:
    """Global engines put bounds of their own on it, or refuse it; some have called it infeasible."""
    model = build("oct")
    model.a, model.b = pyo.Var(), pyo.Var(bounds=(0, None))
    if kind == "product in a row":
        model.mine = pyo.Constraint(expr=model.a + choices(model)[0] <= 4)
    model.objective.set_value(model.cost - model.a**2 if kind == "square" else model.cost + model.a * model.b)
    try:
        result = solve(entry, model, time_limit=1.5)
    except (octsvm.UnsupportedProblem, octsvm.LicenseTooSmall):
        return  # what solves convex models only
    assert result.status not in ("optimal", "infeasible")
    assert result.bound == -math.inf
    model.a.setlb(-7)
    model.a.setub(3)
    model.b.setub(9)
    bounded = solve(entry, model, time_limit=1.5)
    optimum = least("oct") - (49 if kind == "square" else 63)
    if bounded.status == "optimal":
        assert bounded.objective == pytest.approx(optimum, rel=1e-3)
    assert bounded.bound <= optimum + 1e-2
