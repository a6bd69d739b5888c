"""Rows, terms and variables that a user adds to a model: what is said of the result, and what is refused before."""

from __future__ import annotations

import fractions
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo import gdp, mpec

import octsvm
from octsvm import solvers
from octsvm.errors import InvalidParameter, UnsupportedProblem
from octsvm.formulations import blocks
from octsvm.formulations.registry import formulation as find_formulation
from octsvm.problem_class import classify, require_plain
from octsvm.solving import certificate as checks
from octsvm.solving.compile import compile_program
from octsvm.solving.excluded_trees import excluded_trees
from octsvm.solving.own_terms import least_terms

ENGINES = [name for name in ("highs", "scip", "gurobi") if solvers.installed(name) is not None]
LINE = [[0.0], [1 / 3], [2 / 3], [1.0]]
TABLE = [[0.1, 0.9], [0.2, 0.7], [0.8, 0.2], [0.9, 0.3], [0.4, 0.1], [0.5, 0.8]]
LABELS = list("aabbab")
MARKS: dict[str, Any] = {"highs": (), "scip": pytest.mark.slow, "gurobi": pytest.mark.long}
ON_ENGINES = pytest.mark.parametrize("engine", [pytest.param(e, marks=MARKS[e]) for e in ENGINES])


def re_svm(**more: Any) -> pyo.ConcreteModel:
    return octsvm.build("re_svm", LINE, [-1, 1, -1, 1], **{"c1": 1.0, "c2": 1.0, **more})


# -- terms of any sign --------------------------------------------------------------------------------------------------


@ON_ENGINES
def test_a_term_that_can_be_negative_leaves_the_bound_to_the_own_cost(engine: str) -> None:
    model = re_svm()
    model.objective.set_value(model.cost - 20 * model.split.omega[1, 0])
    narrow = octsvm.solve(model, solver=engine)
    assert (narrow.status, narrow.stop) == ("feasible", "numeric")
    assert narrow.bound <= -199
    assert any("upper_bound=" in note for note in narrow.notes)
    model = re_svm(upper_bound=1000.0)
    model.objective.set_value(model.cost - 20 * model.split.omega[1, 0])
    wide = octsvm.solve(model, solver=engine)
    assert wide.status == "optimal"
    assert wide.objective == pytest.approx(-199.0, rel=1e-4)


@ON_ENGINES
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.slow
def test_a_credit_on_splits_is_proved_where_the_bound_allows_dearer_trees(engine: str, norm: str) -> None:
    """A split is paid for by 9: the best tree costs more than the constant one, and the model up to that lacks it."""
    results = []
    for bound in (None, 60.0):
        params = {"depth": 1, "c1": 1.0, "c2": 1.0, "c3": 8.5, "norm": norm, "upper_bound": bound}
        model = octsvm.build("octsvm", TABLE, LABELS, **params)
        model.objective.set_value(model.cost - 9 * model.pruning.d[1])
        results.append(octsvm.solve(model, solver=engine, time_limit=20))
    narrow, wide = results
    assert narrow.bound <= wide.objective + 1e-6
    assert wide.status == "optimal"
    assert narrow.status in ("feasible", "fallback") or narrow.objective == pytest.approx(
        wide.objective, rel=1e-4
    )


def test_whole_numbers_of_ones_own_are_bounded_as_such() -> None:
    model = re_svm()
    model.k = pyo.Var(domain=pyo.Integers)
    model.row = pyo.Constraint(expr=model.k >= 1.5)
    model.objective.set_value(model.cost + model.k)
    assert least_terms(model)[:2] == (2.0, 0.0)
    assert octsvm.solve(model).status == "optimal"


def test_an_own_variable_that_may_be_negative_caps_the_bound_by_what_it_saves_at_most() -> None:
    model = re_svm()
    model.k = pyo.Var(bounds=(-3, 5))
    model.row = pyo.Constraint(expr=model.k >= model.relabelling.xi[0, 1] - 3)
    model.objective.set_value(model.cost + model.k)
    assert least_terms(model)[:2] == (-3.0, 0.0)
    result = octsvm.solve(model)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(-1.0)  # 2 of its own, as big-M has it


def test_what_own_terms_come_to_at_least() -> None:
    model = re_svm()
    xi, e, omega, s = model.relabelling.xi, model.hinge.e, model.split.omega, model.split.s
    W = model.info.big_m["weights"]
    model.t = pyo.Var(bounds=(-2, 3))
    model.free = pyo.Var()
    model.epigraph, model.open = pyo.Var(), pyo.Var()
    model.above = pyo.Constraint(expr=2 * model.epigraph >= 5 - omega[1, 0] + model.t)
    model.below = pyo.Constraint(expr=model.open + model.free >= 3)
    for terms, fixed, scaled in (
        (2 * xi[0, 1] - 3 * xi[1, 1], -3.0, 0.0),
        (e[0, 1] + model.t + 4, 2.0, 0.0),
        (-2 * omega[1, 0], 0.0, -2 * W),
        (omega[1, 0] ** 2, 0.0, 0.0),
        (-(omega[1, 0] ** 2), -math.inf, 0.0),
        (0.1 * s[0, 1], -math.inf, 0.0),
        (model.free, -math.inf, 0.0),
        (model.epigraph, 0.0, -W / 2),  # 1 at least, less what ω can take from it, which grows
        (-model.epigraph, -math.inf, 0.0),
        (-model.t * xi[0, 1], -3.0, 0.0),
    ):
        model.objective.set_value(model.cost + terms)
        assert least_terms(model)[:2] == pytest.approx((fixed, scaled)), str(terms)


@ON_ENGINES
def test_a_credit_for_errors_where_the_known_tree_costs_nothing(engine: str) -> None:
    """Of multiples of UB = 0 nothing is known: a tree that errs costs more, and the credit for it may be larger."""
    results = []
    for bound in (None, 50.0):
        weights = [1.0, 0.0, 1.0, 0.0]
        params = {"c1": 0.1, "c2": 5.0, "upper_bound": bound, "weights": weights}
        model = octsvm.build("re_svm", LINE, [-1, 1, -1, 1], **params)
        assert model.info.upper_bound == (bound or 0.0)
        model.capped = pyo.Constraint(expr=model.hinge.e[0, 1] <= 4)
        model.objective.set_value(model.cost - model.hinge.e[0, 1])
        results.append(octsvm.solve(model, solver=engine))
    assert results[0].bound <= results[1].objective == pytest.approx(-3.6, rel=1e-4)
    assert results[0].status != "optimal"


@ON_ENGINES
@pytest.mark.parametrize("kind", ["row", "term"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.every_value
def test_weights_that_are_zero_in_the_tree_that_is_known(engine: str, kind: str, norm: str) -> None:
    """Big-M from a tree that costs nothing bounds ω by 0 from both sides, which says nothing of its sign in dearer trees."""
    results = []
    for bound in (None, 400.0):
        model = re_svm(weights=[1.0, 0.0, 1.0, 0.0], upper_bound=bound, norm=norm)
        omega = model.split.omega[1, 0]
        if kind == "row":
            model.row = pyo.Constraint(expr=10 * omega <= -0.5)
        else:
            model.objective.set_value(model.cost + 10 * omega)
        results.append(octsvm.solve(model, solver=engine))
    assert results[0].status in ("no_tree", "fallback")
    assert results[0].stop == "numeric"
    assert results[0].bound <= results[1].objective
    assert results[1].objective < (0 if kind == "term" else 0.06)


@ON_ENGINES
def test_a_credit_for_an_error_that_costs_nothing_is_not_bounded_by_the_own_cost(engine: str) -> None:
    results = []
    for bound in (None, 300.0):
        model = re_svm(weights=[1.0, 1.0, 1.0, 0.0], upper_bound=bound)
        model.objective.set_value(model.cost - 0.2 * model.hinge.e[3, 1])
        results.append(octsvm.solve(model, solver=engine))
    assert results[0].status != "optimal"
    assert results[0].bound <= results[1].objective


@ON_ENGINES
def test_a_credit_above_the_price_of_an_error_has_no_least_value(engine: str) -> None:
    """Big-M bounds an error by what a tree needs; where it pays, it may be as large as its price allows."""
    objectives = []
    for bound in (None, 200.0, 400.0):
        model = re_svm(c1=0.1, c2=5.0, upper_bound=bound)
        model.objective.set_value(model.cost - 0.5 * model.hinge.e[0, 1])
        result = octsvm.solve(model, solver=engine)
        assert (result.status in ("feasible", "fallback"), result.stop) == (True, "numeric")
        assert result.bound == -math.inf
        objectives.append(result.objective)
    assert objectives[2] < objectives[1] - 1 < objectives[0] - 2
    model.objective.set_value(model.cost - 0.05 * model.hinge.e[0, 1])  # less than it costs
    assert octsvm.solve(model, solver=engine).status == "optimal"


@ON_ENGINES
@pytest.mark.parametrize("kind", ["epigraph", "equal"])
def test_rows_on_the_margin_hold_where_it_is_approximated_by_tangents(engine: str, kind: str) -> None:
    """The margin of a point is raised to its norm: a variable above it has to follow, and one fixed by a row cannot."""
    params = {"depth": 1, "c1": 0.1, "c2": 1.0, "c3": 0.0, "upper_bound": 50.0}
    model = octsvm.build("octsvm", TABLE, list("abaaba"), **params)
    if kind == "epigraph":
        model.own = pyo.Var(bounds=(0, 5))
        model.row = pyo.Constraint(expr=model.margin.delta <= model.own)
        model.objective.set_value(model.cost + 0.2 * model.own)
    else:
        model.row = pyo.Constraint(expr=model.margin.delta == 0.3)
        model.objective.set_value(
            model.cost - 0.01 * model.split.omega[1, 0] - 0.02 * model.split.omega[1, 1]
        )
    result = octsvm.solve(model, solver=engine, time_limit=30)
    assert result.status == "optimal"
    other = octsvm.solve(model, solver="gurobi" if engine == "highs" else "highs", time_limit=30)
    assert result.objective == pytest.approx(other.objective, rel=3e-4)
    assert checks.broken_row(model, 2e-6) is None


@ON_ENGINES
def test_an_untouched_objective_is_never_bounded_below_zero(engine: str) -> None:
    model = re_svm()
    model.row = pyo.Constraint(expr=model.split.omega[1, 0] <= 1)
    assert octsvm.solve(model, solver=engine, time_limit=1e-3).bound >= 0


# -- rows that forbid the proof of big-M ----------------------------------------------------------------------------------


def far_out(**more: Any) -> pyo.ConcreteModel:
    """Giving the label of row 0 up, or an intercept of 5: the constant tree with that costs 1, and the others 3.94."""
    model = octsvm.build("re_svm", LINE, [1, -1, 1, 1], c1=1.0, c2=1.0, upper_bound=4.0, **more)
    model.mine = pyo.Constraint(expr=model.split.omega0[1] >= 5 * (1 - model.relabelling.xi[0, 1]))
    return model


@ON_ENGINES
@pytest.mark.parametrize("tight", [False, True])
def test_a_row_on_an_intercept_has_what_big_m_cuts_off_unproved(engine: str, tight: bool) -> None:
    """The note's number is one that has room for the best tree."""
    narrow = octsvm.solve(far_out(), solver=engine)
    assert (narrow.status, narrow.stop, narrow.bound) == ("feasible", "numeric", 0.0)
    assert narrow.objective > 3
    (note,) = (note for note in narrow.notes if "big_m=" in note)
    assert "mine of yours" in note
    number = float(note.split("big_m=")[1].split(",")[0])
    wide = far_out(big_m=number)
    if tight:
        octsvm.tighten(wide)
    result = octsvm.solve(wide, solver=engine)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(1.0, rel=1e-4)
    assert "mine of yours" in excluded_trees(far_out(big_m=number - 0.1))


@pytest.mark.parametrize("formulation", ["re_svm", "octsvm"])
def test_no_tree_within_big_m_is_no_bound_on_those_beyond(formulation: str) -> None:
    more = {"depth": 0} if formulation == "octsvm" else {}
    results = []
    for big_m in (None, 31.0):
        model = octsvm.build(formulation, TABLE, LABELS, c1=1.0, c2=0.1, upper_bound=2.0, big_m=big_m, **more)
        model.mine = pyo.Constraint(expr=model.split.omega0[1] >= 20)
        results.append(octsvm.solve(model))
    narrow, wide = results
    assert (narrow.status, narrow.stop) == ("no_tree", "numeric")
    assert narrow.bound <= wide.objective < 0.5
    assert wide.status == "optimal"


def through_origin(model: pyo.ConcreteModel) -> Any:
    center = [float(c) for c in model.split.center]
    return model.split.omega0[1] == sum(c * model.split.omega[1, j] for j, c in enumerate(center))


@pytest.mark.parametrize("formulation", ["re_svm", "octsvm"])
@pytest.mark.parametrize("through", ["the mean", "the origin"])
def test_a_hyperplane_through_a_point_is_proved(formulation: str, through: str) -> None:
    """Through the mean of the rows no scores have one sign; through the origin they may be scaled instead of moved."""
    more = {"depth": 0, "c3": 0.1} if formulation == "octsvm" else {}
    objectives = []
    for big_m in (None, 50.0):
        model = octsvm.build(formulation, TABLE, LABELS, c1=1.0, c2=1.5, upper_bound=8.0, big_m=big_m, **more)
        if through == "the mean":
            model.split.omega0[1].fix(0)
        else:
            model.mine = pyo.Constraint(expr=through_origin(model))
        result = octsvm.solve(model)
        assert result.status == "optimal"
        objectives.append(result.objective)
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-4)


LACK: dict[str, tuple[bool, Callable[[Any], Any]]] = {
    "a small intercept": (False, lambda m: m.split.omega0[1] >= -1),
    "an intercept at most": (False, lambda m: m.split.omega0[1] <= 3),
    "an intercept at least": (
        False,
        lambda m: m.split.omega0[1] >= 1.1,
    ),  # nearer to all rows than some row is
    "a larger one": (True, lambda m: m.split.omega0[1] >= 30),
    "one that only splits have": (False, lambda m: m.split.omega0[1] <= 9 * m.pruning.d[1]),
    "one of an own variable": (True, lambda m: m.split.omega0[1] == m.k),
    "a difference of scores": (False, lambda m: m.split.s[0, 1] - m.split.s[1, 1] >= 2),
    "scores of mixed signs": (True, lambda m: 2 * m.split.s[0, 1] - m.split.s[1, 1] >= 40),
    "a score at least": (True, lambda m: m.split.s[0, 1] >= 2),
    "a sum of scores": (True, lambda m: m.split.s[0, 1] + m.split.s[1, 1] >= 40),
    "a product": (True, lambda m: m.split.omega0[1] * m.split.omega0[1] >= 4),
    "a line not through 0": (True, lambda m: m.split.omega0[1] == 1 + 9 * m.split.omega[1, 0]),
    "a line through 0": (False, lambda m: m.split.omega0[1] == 9 * m.split.omega[1, 0]),
    "a line and a weight": (
        True,
        lambda m: m.split.omega0[1] == 9 * m.split.omega[1, 0] + m.split.omega[2, 0],
    ),
    "a weight": (False, lambda m: m.split.omega[1, 0] >= 0.5),
    "errors at most": (False, lambda m: sum(m.hinge.e[i, 1] for i in range(6)) <= 2),
    "an error that big-M has room for": (False, lambda m: m.hinge.e[0, 1] >= 2),
    "an error beyond": (True, lambda m: m.hinge.e[0, 1] >= 40),
    "an error too dear": (False, lambda m: m.hinge.e[5, 1] >= 40),
}


@pytest.mark.parametrize("kind", LACK)
def test_which_rows_forbid_the_proof_of_big_m(kind: str) -> None:
    lacks, rule = LACK[kind]
    weights = [0.01, 1, 1, 1, 1, 1]
    model = octsvm.build("octsvm", TABLE, LABELS, depth=1, c1=1.0, c2=1.0, c3=0.1, weights=weights)
    model.k = pyo.Var()
    model.mine = pyo.Constraint(expr=rule(model))
    assert bool(excluded_trees(model)) is lacks
    assert not lacks or "mine" in excluded_trees(model)


def test_bounds_fixings_and_predictions_that_forbid_it_or_not() -> None:
    def lacking(change: Callable[[Any], Any], name: str = "octsvm", **more: Any) -> str:
        model = octsvm.build(name, TABLE, LABELS, **more)
        change(model)
        return excluded_trees(model)

    assert "split.omega0 of yours" in lacking(lambda m: m.split.omega0[1].fix(-30), depth=1)
    assert "split.s of yours" in lacking(lambda m: m.split.s[0, 1].setlb(1.5), depth=1)
    assert "hinge.e" not in lacking(lambda m: m.hinge.e[0, 1].fix(0), depth=1)
    assert not lacking(lambda m: m.split.s.setlb(None), depth=1)
    assert not lacking(lambda m: blocks.add_side_prediction(m, m.topology, m.split), "re_svm")
    assert not lacking(
        lambda m: blocks.add_side_prediction(m, m.topology, m.split, m.assignment, m.pruning), depth=1
    )
    product = lacking(
        lambda m: m.add_component("mine", pyo.Constraint(expr=m.hinge.beta0[0, 1] >= 0.5)),
        variant="paper",
        depth=1,
    )
    assert "big_m=" not in product
    assert "omega alone" in product
    assert "omega alone" in lacking(lambda m: m.split.omega0[1].fix(-30), "moctsvm", depth=1)


# -- the certificate prices by the objective that was solved ------------------------------------------------------------


@ON_ENGINES
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_an_own_price_on_relabelling_is_as_good_as_a_higher_c2(engine: str, norm: str) -> None:
    X, y = [[0.0], [0.1], [0.2], [0.8], [0.9], [1.0]], [-1, -1, 1, 1, 1, -1]
    more = {"c1": 5.0, "norm": norm, "upper_bound": 100.0}
    model = octsvm.build("re_svm", X, y, c2=1.0, **more)
    model.objective.set_value(model.cost + 10 * sum(model.relabelling.xi.values()))
    priced = octsvm.solve(model, solver=engine)
    plain = octsvm.solve(octsvm.build("re_svm", X, y, c2=11.0, **more), solver=engine)
    assert priced.status == plain.status == "optimal"
    assert priced.objective == pytest.approx(plain.objective, rel=1e-4)
    assert norm == "l1" or priced.objective == pytest.approx(22.875, rel=1e-4)


@ON_ENGINES
def test_a_credit_on_one_relabelled_row_is_taken(engine: str) -> None:
    model = re_svm(upper_bound=100.0)
    model.objective.set_value(model.cost - 5 * model.relabelling.xi[0, 1])
    result = octsvm.solve(model, solver=engine)
    assert result.status == "optimal"
    assert 0 in {r.row for r in result.tree.relabelled}
    assert result.objective == pytest.approx(pyo.value(model.objective))
    assert sum(result.terms.values()) == pytest.approx(result.objective)


@ON_ENGINES
def test_rows_and_prices_that_make_errors_larger_than_the_tree_needs(engine: str) -> None:
    for credit in (0.0, 1.5):  # a row that asks for an error, and a credit for it up to its bound
        model = re_svm(upper_bound=20.0)
        model.forced = pyo.Constraint(expr=model.hinge.e[0, 1] + model.hinge.e[1, 1] >= 4)
        model.capped = pyo.Constraint(expr=model.hinge.e[0, 1] <= 6)
        model.objective.set_value(model.cost - credit * model.hinge.e[0, 1])
        result = octsvm.solve(model, solver=engine)
        assert result.status in ("optimal", "feasible")
        assert result.objective == pytest.approx(pyo.value(model.objective), rel=1e-6)
        assert checks.broken_row(model) is None
        assert pyo.value(model.forced.body) >= 4 - 1e-6


# -- the answer's own scale ---------------------------------------------------------------------------------------------


@ON_ENGINES
@pytest.mark.parametrize("row", ["weights", "threshold", "both"])
@pytest.mark.every_value
def test_rows_on_the_scale_of_an_oblique_split_hold_in_the_tree(engine: str, row: str) -> None:
    X = [[0.1, 0.9], [0.2, 0.2], [0.3, 0.6], [0.6, 0.1], [0.7, 0.8], [0.9, 0.5]]
    model = octsvm.build("oct_h", X, list("aababb"), depth=1, alpha=0.1)
    if row != "threshold":
        model.low = pyo.Constraint(expr=model.split.a[1, 1] >= -0.3)
        model.high = pyo.Constraint(expr=model.split.a[1, 1] <= 0.3)
        model.other = pyo.Constraint(expr=model.split.a[1, 0] <= 0.25)
        model.another = pyo.Constraint(expr=model.split.a[1, 0] >= -0.25)
    if row != "weights":
        model.at = pyo.Constraint(expr=model.split.b[1] <= 0.05)
    result = octsvm.solve(model, solver=engine)
    assert result.status == "optimal"
    assert result.tree.splits.any()
    assert checks.broken_row(model) is None
    again = octsvm.embed(model, result.tree)  # the tree is a point of the model by itself
    assert checks.broken_row(model) is None
    assert np.array_equal(again.a, result.tree.a)


@ON_ENGINES
def test_a_price_on_weights_is_paid_at_the_answers_own_scale(engine: str) -> None:
    model = octsvm.build("oct_h", TABLE, LABELS, depth=1, alpha=0.1)
    model.objective.set_value(model.cost + 0.5 * sum(model.split.abs_a.values()))
    result = octsvm.solve(model, solver=engine)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(pyo.value(model.objective), abs=1e-6)
    assert np.abs(result.tree.a).sum() < 0.9  # less than the scale that extraction would give it


# -- constants off by rounding ------------------------------------------------------------------------------------------


@ON_ENGINES
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("formulation", ["oct", "oct_h", "re_svm", "octsvm"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.quick_cases("l1-oct-0-highs", "l1-oct_h-1-highs", "l2-re_svm-1-highs", "l2-octsvm-0-highs")
@pytest.mark.every_value
def test_a_point_that_embed_accepts_is_one_with_all_variables_fixed(
    formulation: str, norm: str, seed: int, engine: str
) -> None:
    X = np.random.default_rng(seed).random((8, 2))
    params: dict[str, Any] = {} if formulation == "re_svm" else {"depth": 1}
    if formulation in ("re_svm", "octsvm"):
        params |= {"norm": norm, "c2": 0.7}
    tree = octsvm.fit(formulation, X, [0, 1] * 4, time_limit=2, **params).tree
    model = octsvm.build(formulation, X, [0, 1] * 4, **params)
    octsvm.embed(model, tree)
    cost = pyo.value(model.cost)
    for var in model.component_data_objects(pyo.Var):
        var.fix()
    result = octsvm.solve(model, solver=engine)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(cost)
    model.never = pyo.Constraint(expr=model.cost <= cost - 0.01)
    assert octsvm.solve(model, solver=engine).status == "infeasible"


@ON_ENGINES
def test_one_row_of_fixed_variables_off_by_rounding(engine: str) -> None:
    model = octsvm.build("oct_h", TABLE, LABELS, depth=1, alpha=0.1)
    model.u = pyo.Var([1, 2, 3])
    model.sum = pyo.Constraint(expr=model.u[1] + model.u[2] == model.u[3])
    for k, value in enumerate((0.1, 0.2, 0.3), start=1):  # 0.1 + 0.2 is not 0.3
        model.u[k].fix(value)
    assert octsvm.solve(model, solver=engine).status == "optimal"
    model.u[3].fix(0.31)
    assert octsvm.solve(model, solver=engine).status == "infeasible"


# -- limits and unbounded terms -----------------------------------------------------------------------------------------


def with_own_variable(**more: Any) -> pyo.ConcreteModel:
    model = octsvm.build("oct", TABLE, LABELS, depth=1, alpha=0.3, **more)
    model.k = pyo.Var(bounds=(0, 5), initialize=0)
    model.row = pyo.Constraint(expr=model.k >= 0.5 * model.split.a[1, 0] + 0.25)
    model.objective.set_value(model.cost + model.k)
    return model


@ON_ENGINES
@pytest.mark.parametrize("limit", [1e-6, 1e-3])
@pytest.mark.parametrize(("variant", "status"), [("rank", "fallback"), (None, "feasible")])
@pytest.mark.every_value
def test_at_a_limit_own_variables_get_a_value_that_holds(
    engine: str, limit: float, variant: str | None, status: str
) -> None:
    model = with_own_variable(variant=variant)
    result = octsvm.solve(model, time_limit=limit, solver=engine)
    assert (result.status, result.stop) == (status, "time_limit")
    assert model.k.value == pytest.approx(0.25 + 0.5 * pyo.value(model.split.a[1, 0]))
    assert result.objective == pytest.approx(pyo.value(model.objective))
    assert 0 <= result.bound <= result.objective


@ON_ENGINES
def test_at_a_limit_integers_of_ones_own_get_a_value_and_impossible_ones_none(engine: str) -> None:
    model = with_own_variable(variant="rank")
    model.n = pyo.Var(domain=pyo.Integers)
    model.more = pyo.Constraint(expr=model.n >= model.k + 0.5)
    assert octsvm.solve(model, time_limit=1e-6, solver=engine).status == "fallback"
    assert model.n.value == 1
    model.never = pyo.Constraint(expr=model.n <= model.k)
    nothing = octsvm.solve(model, time_limit=1e-6, solver=engine)
    assert nothing.tree is None
    assert nothing.status in ("no_tree", "infeasible")


@ON_ENGINES
@pytest.mark.parametrize(
    ("splits", "status", "stop"), [(2, "no_tree", "unbounded"), (4, "infeasible", "infeasible")]
)
def test_without_a_known_tree_unbounded_and_infeasible_are_told_apart(
    engine: str, splits: int, status: str, stop: str
) -> None:
    X = [[float(k), float(k % 2)] for k in range(6)]
    model = octsvm.build("oct", X, list("aabbaa"), depth=2, alpha=0.01, variant="rank")
    model.mine = pyo.Constraint(expr=sum(model.split.d.values()) + model.split.d[3] >= 2 * splits - 1)
    model.k = pyo.Var(bounds=(0, None))
    model.objective.set_value(model.cost - model.k)
    result = octsvm.solve(model, solver=engine, time_limit=10)
    assert (result.status, result.stop, result.tree) == (status, stop, None)
    assert ("'objective'" in " ".join(result.notes)) is (stop == "unbounded")


# -- big-M and integrality ----------------------------------------------------------------------------------------------


@ON_ENGINES
def test_a_generous_bound_that_integrality_bears_is_still_proved(engine: str) -> None:
    result = octsvm.solve(re_svm(upper_bound=1e4), solver=engine)
    assert (result.status, result.stop) == ("optimal", "optimal")
    assert result.objective == pytest.approx(2.0)


# -- weights ------------------------------------------------------------------------------------------------------------


@ON_ENGINES
@pytest.mark.parametrize("limit", [1e-3, 5.0])
@pytest.mark.parametrize("formulation", ["re_svm", "octsvm", "oct"])
@pytest.mark.every_value
def test_tiny_weights_are_no_mismatch(engine: str, limit: float, formulation: str) -> None:
    more: dict[str, Any] = {} if formulation == "re_svm" else {"depth": 1}
    model = octsvm.build(formulation, TABLE, LABELS, weights=np.full(6, 1e-7), **more)
    result = octsvm.solve(model, solver=engine, time_limit=limit)
    assert result.status in ("optimal", "feasible", "fallback")
    assert 0 <= result.bound <= result.objective <= 3e-7 * 2.001


@ON_ENGINES
@pytest.mark.parametrize("formulation", ["oct", "oct_h"])
def test_nor_are_weights_so_far_apart_that_a_tolerance_hides_the_small_ones(
    engine: str, formulation: str
) -> None:
    model = octsvm.build(formulation, TABLE, LABELS, weights=[1e12, *[1.0] * 5], depth=1, alpha=0.1)
    result = octsvm.solve(model, solver=engine, time_limit=10)
    assert result.status != "unverified"
    assert result.bound <= octsvm.fit(formulation, TABLE, LABELS, depth=1, alpha=0.1).objective + 1e-6


def test_an_answer_within_a_feasibility_tolerance_of_its_claim_is_no_mismatch() -> None:
    model = octsvm.build(
        "octsvm", TABLE, LABELS, weights=np.full(6, 1e-6), depth=0, c1=0.1, c2=0.1, norm="l1"
    )
    octsvm.solve(model)
    exact = pyo.value(model.objective)
    for off, holds in ((1e-8, True), (1e-7, True), (2e-6, False)):
        octsvm.solve(model)
        model.margin.delta.set_value(model.margin.delta.value - off, skip_validation=True)
        certificate = checks.certify(model, find_formulation("octsvm"))
        assert certificate.objective == pytest.approx(exact, abs=1e-12)
        assert (certificate.mismatch == "") is holds


# -- what is refused before a solve and before a file -------------------------------------------------------------------


def other_model() -> pyo.ConcreteModel:
    other = pyo.ConcreteModel()
    other.x = pyo.Var()
    return other


def row(expression: Any) -> Callable[[Any, Any], None]:
    """Add a row ``mine``, made of the model and its variables a."""
    return lambda m, a: m.add_component("mine", pyo.Constraint(expr=expression(m, a)))


# What no engine can be given: how it gets into a model, the error, and what its message has to name.
SPOILT: dict[str, tuple[Callable[[Any, Any], Any], type[Exception], list[str]]] = {
    "nan coefficient": (row(lambda m, a: math.nan * a[1, 0] + a[1, 1] <= 0), InvalidParameter, ["mine", "split.a[1,0]", "nan"]),
    "infinite coefficient": (row(lambda m, a: a[1, 0] + math.inf * a[1, 1] <= 0), InvalidParameter, ["mine", "split.a[1,1]", "inf"]),
    "fraction": (
        row(lambda m, a: fractions.Fraction(1, 3) * a[1, 0] <= 1), InvalidParameter, ["mine", "Fraction(1, 3)", "float(...)"],
    ),
    "nan parameter": (row(lambda m, a: a[1, 0] + m.p * a[1, 1] <= 0), InvalidParameter, ["mine", "'p'"]),
    "parameter without a value": (row(lambda m, a: m.unset * a[1, 0] <= 1), InvalidParameter, ["mine", "'unset'", "None"]),
    "parameter without a value in the objective": (
        lambda m, a: m.objective.set_value(m.cost + m.unset * a[1, 0]), InvalidParameter, ["objective", "'unset'"],
    ),
    "division by a parameter": (row(lambda m, a: a[1, 0] / m.zero <= 1), InvalidParameter, ["mine", "division by zero"]),
    "division by a fixed variable": (row(lambda m, a: a[1, 0] / m.held <= 1), InvalidParameter, ["mine", "division by zero"]),
    "division in the objective": (
        lambda m, a: m.objective.set_value(m.cost + a[1, 0] * (1 + 1 / m.held)), InvalidParameter, ["objective", "division by zero"],
    ),
    "division in a side": (row(lambda m, a: a[1, 0] <= 1 / m.zero), InvalidParameter, ["mine", "side"]),
    "division in a bound": (lambda m, a: m.lone.setub(1 / m.zero), InvalidParameter, ["lone", "division by zero"]),
    "logarithm of a parameter": (
        row(lambda m, a: pyo.log(m.zero - 1) * a[1, 0] <= 1), InvalidParameter, ["mine", "domain"],
    ),
    "overflow of parameters": (row(lambda m, a: m.large * m.large * a[1, 0] <= 1), InvalidParameter, ["mine", "overflow"]),
    "nan side": (row(lambda m, a: (None, a[1, 0], m.p)), InvalidParameter, ["mine", "side"]),
    "nan in the objective": (
        lambda m, a: m.objective.set_value(m.cost + math.nan * m.lone), InvalidParameter, ["objective", "lone"],
    ),
    "nan inside a block": (
        lambda m, a: m.split.abs_above[1, 0].set_value(math.nan * a[1, 0] <= m.split.abs_a[1, 0]),
        InvalidParameter, ["split.abs_above[1,0]", "split.a[1,0]"],
    ),
    "nan bound": (lambda m, a: m.lone.setub(math.nan), InvalidParameter, ["lone"]),
    "fixed without a value": (row(lambda m, a: m.lost + a[1, 0] <= 1), InvalidParameter, ["lost", "mine", "unfix"]),
    "foreign variable": (
        row(lambda m, a: other_model().x + a[1, 0] <= 1), InvalidParameter, ["mine", "'x'", "does not belong"],
    ),
    "external function": (row(lambda m, a: m.f(a[1, 0]) <= 1), UnsupportedProblem, ["mine", "external function"]),
    "disjunction": (
        lambda m, a: m.add_component("mine", gdp.Disjunction(expr=[[a[1, 0] >= 0.5], [a[1, 1] >= 0.5]])),
        UnsupportedProblem, ["mine", "gdp.bigm"],
    ),
    "logical constraint": (
        lambda m, a: m.add_component("mine", pyo.LogicalConstraint(expr=m.yes)), UnsupportedProblem, ["mine", "core.logical_to_linear"],
    ),
    "sos": (lambda m, a: m.add_component("mine", pyo.SOSConstraint(var=a, sos=1)), UnsupportedProblem, ["mine", "binary variables"]),
    "piecewise": (
        lambda m, a: m.add_component("mine", pyo.Piecewise(
            m.lone, a[1, 0], pw_pts=[-1, 0, 1], f_rule=[1, 0, 1], pw_repn="SOS2", pw_constr_type="EQ"
        )),
        UnsupportedProblem, ["mine", "pw_repn"],
    ),
    "complementarity": (
        lambda m, a: m.add_component("mine", mpec.Complementarity(expr=mpec.complements(a[1, 0] >= 0, m.lone >= 0))),
        UnsupportedProblem, ["mine", "mpec"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", SPOILT)
def test_what_no_solver_can_be_given_is_refused_before(kind: str, tmp_path: Path) -> None:
    spoil, error, named = SPOILT[kind]
    model = octsvm.build("oct_h", TABLE, LABELS, depth=1)
    model.p = pyo.Param(initialize=math.nan, mutable=True, within=pyo.Any)
    model.zero, model.large = (
        pyo.Param(initialize=0.0, mutable=True),
        pyo.Param(initialize=1e200, mutable=True),
    )
    model.unset, model.held = pyo.Param(mutable=True), pyo.Var()
    model.held.fix(0)
    model.lone, model.yes = pyo.Var(bounds=(0, 1)), pyo.BooleanVar()
    model.f = pyo.ExternalFunction(lambda x: x)
    model.lost = pyo.Var()
    model.lost.fixed = True
    spoil(model, model.split.a)
    ways: list[Any] = [
        lambda: octsvm.solve(model),
        lambda: octsvm.plan(model),
        lambda: octsvm.race(model, solvers=["highs"], time_limit=1),
        *(lambda e=e: octsvm.write(model, tmp_path / f"m{e}") for e in (".lp", ".mps", ".nl")),
    ]
    for way in ways:
        with pytest.raises(error) as raised:
            way()
        assert all(name in str(raised.value) for name in named), raised.value
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [1e16, 1e300])
def test_numbers_too_large_for_any_engine_are_named_where_values_of_own_variables_are_looked_for(
    number: float,
) -> None:
    tree = octsvm.fit("oct", TABLE, LABELS, depth=1, alpha=0.3).tree
    model = with_own_variable()
    model.mine = pyo.Constraint(expr=number * model.k >= model.split.d[1])
    for call in (octsvm.solve, lambda m: octsvm.solve(m, time_limit=1e-3), lambda m: octsvm.embed(m, tree)):
        with pytest.raises(InvalidParameter, match=r"'mine' has .* beside 'k'"):
            call(model)


@ON_ENGINES
def test_what_was_transformed_is_solved(engine: str, tmp_path: Path) -> None:
    model = octsvm.build("oct_h", TABLE, LABELS, depth=1, alpha=0.1)
    a = model.split.a
    model.either = gdp.Disjunction(expr=[[a[1, 0] >= 0.5], [a[1, 1] >= 0.5]])
    pyo.TransformationFactory("gdp.bigm").apply_to(model)
    model.p = pyo.Param(initialize=math.inf, mutable=True, within=pyo.Any)
    model.open = pyo.Constraint(expr=a[1, 0] <= model.p)
    model.unused = pyo.Var()
    require_plain(model)
    result = octsvm.solve(model, solver=engine)
    assert result.status == "optimal"
    assert max(a[1, 0].value, a[1, 1].value) >= 0.5 - 1e-6
    assert octsvm.write(model, tmp_path / "m.lp").exists()


# -- fixed variables ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1e-6, 20.0])
@pytest.mark.parametrize("value", [0, 1])
def test_what_is_fixed_keeps_its_value_whatever_trees_are_tried(value: int, limit: float) -> None:
    X = [[0.0], [3.0], [1.0], [2.0], [2.0], [0.0], [1.0]]
    model = octsvm.build("oct", X, [0, 1, 0, 0, 1, 0, 1], depth=1, alpha=0.2, variant="rank")
    model.split.a[1, 0].fix(value)
    result = octsvm.solve(model, time_limit=limit)
    assert (model.split.a[1, 0].value, model.split.a[1, 0].fixed) == (value, True)
    assert result.tree is None or result.tree.splits.tolist() == [bool(value)]
    if limit > 1:
        assert (result.status, result.objective) == ("optimal", pytest.approx(2.2 if value else 3.0))
    form = find_formulation("oct")
    model = octsvm.build("oct", X, [0, 1, 0, 0, 1, 0, 1], depth=1, alpha=0.2)
    trees = [octsvm.fit("oct", X, [0, 1, 0, 0, 1, 0, 1], depth=1, alpha=a).tree for a in (0.1, 9.0)]
    model.split.a[1, 0].fix(value)
    for tree in trees:
        if bool(tree.splits.any()) is bool(value):
            checks.embed(model, form, tree)
        else:
            with pytest.raises(octsvm.TreeNotAdmitted, match=r"split\.a\[1,0\]"):
                checks.embed(model, form, tree)
        assert model.split.a[1, 0].value == value


# -- weights far from 1 -------------------------------------------------------------------------------------------------


@ON_ENGINES
@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e9, 1e12])
@pytest.mark.parametrize(("formulation", "variant"), [("oct", "bd"), ("oct", None), ("oct_h", None)])
@pytest.mark.every_value
def test_weights_in_any_unit_give_the_same_tree(
    engine: str, unit: float, formulation: str, variant: str | None
) -> None:
    X = [[0.0, 0.0], [0.0, 0.3], [0.6, 0.7], [0.6, 0.6], [1.0, 0.3], [0.3, 0.6]]
    y, weights = [0, 1, 1, 0, 2, 1], np.array([1.0, 1.0, 3.0, 1.0, 2.0, 1.0])
    results = []
    for scale in (1.0, unit):
        model = octsvm.build(
            formulation, X, y, depth=1, alpha=0.5 * scale, weights=scale * weights, variant=variant
        )
        results.append(octsvm.solve(model, solver=engine, time_limit=20))
        assert checks.broken_row(model, 1e-6 * max(1.0, scale)) is None
    plain, scaled = results
    assert plain.status == "optimal"
    assert scaled.bound <= unit * plain.objective * (1 + 1e-6)
    if (
        variant == "bd" and unit < 1e-9
    ):  # its counts are below a feasibility tolerance: nothing wrong is said of them
        assert scaled.status != "infeasible"
        assert (scaled.status == "optimal") is (scaled.objective < unit * plain.objective * (1 + 1e-4))
    else:
        assert scaled.status == "optimal"
        assert scaled.objective == pytest.approx(unit * plain.objective, rel=1e-6, abs=0.0)


@ON_ENGINES
@pytest.mark.parametrize("unit", [1e-3, 1e-6])
def test_errors_that_weigh_as_much_as_a_tolerance_count(engine: str, unit: float) -> None:
    """HiGHS called the tree without a split optimal, where rows that count errors could be off by all of them."""
    X = [[0.525069, 0.215296], [0.723023, 0.311860], [0.445317, 0.573598]]
    model = octsvm.build("oct", X, [0, 1, 1], weights=[unit] * 3, depth=1, alpha=0.0, variant="bd")
    result = octsvm.solve(model, solver=engine, time_limit=20)
    assert (result.status, result.objective) == ("optimal", 0.0)


@ON_ENGINES
@pytest.mark.parametrize("seed", [0, 1])
def test_a_margin_that_costs_next_to_nothing_is_not_mistaken_for_a_large_one(engine: str, seed: int) -> None:
    """In the units of objectives of 1e9, ½‖ω‖² costs less than a dual tolerance: such wrong optima have been seen."""
    weights = 1e9 * np.array([1.09, 1.03, 0.46, 0.67, 0.62, 0.66, 0.26])
    X = [[1 / 3], [1 / 3], [1 / 3], [2 / 3], [1 / 3], [0.0], [1 / 3]]
    params = {"c1": 0.1, "c2": 0.1, "variant": "paper", "upper_bound": 4.8e9}
    model = octsvm.build("re_svm", X, [-1, 1, 1, -1, -1, -1, -1], weights=weights, **params)
    model.relabelling.xi[5, 1].fix(1)
    model.mine = pyo.Constraint(expr=model.hinge.e[4, 1] == 0.3)
    result = octsvm.solve(model, solver=engine, seed=seed, time_limit=20)
    # Labels given up, the error that the row asks for, and a margin.
    least = 1e8 * (1.03 + 0.46 + 0.66) + 1e8 * 0.62 * 0.3 + 8
    assert result.status == "optimal"
    assert result.objective == pytest.approx(least, rel=2e-4)
    assert result.bound <= least * (1 + 2e-6)


def test_a_program_in_units_of_cost_is_the_same_program() -> None:
    from octsvm.backends.matrix_program import LinearProgram

    small = LinearProgram.compile(octsvm.build("oct", TABLE, LABELS, depth=1, alpha=0.1))
    assert small.in_units_of_cost(3.0)[0] is small
    model = octsvm.build("octsvm", TABLE, LABELS, depth=1, c1=1e7, c2=1e7, weights=np.full(6, 100.0))
    model.objective.set_value(model.cost + 1e-3 * model.split.omega[1, 0] ** 2)
    program = compile_program(model, classify(model), None)
    scaled, unit = program.in_units_of_cost(1e9)
    assert unit[program.position[id(model.margin.delta)]] == 2**23
    assert np.array_equal(np.log2(unit), np.round(np.log2(unit)))
    assert (unit[program.integer] == 1).all()
    assert len(scaled.quadratic_rows) == len(program.quadratic_rows) > 0
    x = 1e6 * np.random.default_rng(0).standard_normal(program.n)
    assert scaled.objective(x / unit) == pytest.approx(program.objective(x), rel=1e-12)
    assert scaled.violation(x / unit) == pytest.approx(program.violation(x), rel=1e-12)


def test_a_program_in_units_of_its_own_is_the_same_program() -> None:
    from octsvm.backends.matrix_program import LinearProgram

    model = octsvm.build("oct", TABLE, LABELS, depth=1, alpha=1e11, weights=np.full(6, 1e12), variant="bd")
    model.k = pyo.Var()
    model.own = pyo.Constraint(expr=9.7 * model.split.d[1] <= model.k)
    model.objective.set_value(model.cost + 0.2 * model.k)
    program = LinearProgram.compile(model)
    scaled = program.in_units()
    assert scaled.unit is not None
    assert np.array_equal(np.log2(scaled.unit), np.round(np.log2(scaled.unit)))
    assert np.abs(scaled.A.data).max() <= 10
    assert (scaled.unit[scaled.integer] == 1).all()
    octsvm.solve(model)
    x = np.array([v.value for v in program.columns])
    assert scaled.objective(x / scaled.unit) == program.objective(x)
    assert scaled.violation(x / scaled.unit) < 1e-9
    scaled.load(x / scaled.unit)
    assert [v.value for v in program.columns] == pytest.approx(x.tolist())
    plain = LinearProgram.compile(octsvm.build("oct", TABLE, LABELS, depth=1, alpha=0.1))
    assert plain.in_units() is plain


# -- rows and terms that have no value at some trees --------------------------------------------------------------------

WITHOUT_VALUE: dict[str, Callable[[Any], Any]] = {
    "division by zero": lambda x: 1 / x,
    "logarithm of zero": lambda x: -pyo.log(x),
    "square root of a negative number": lambda x: pyo.sqrt(x - 0.5),
    "power of a negative number": lambda x: (x - 0.5) ** 0.5,
}


@pytest.mark.skipif(solvers.installed("scip") is None, reason="SCIP solves what is no polynomial")
@pytest.mark.parametrize("place", ["row", "objective"])
@pytest.mark.parametrize("kind", WITHOUT_VALUE)
def test_a_tree_where_a_row_or_the_objective_has_no_value_is_none_of_the_model(kind: str, place: str) -> None:
    """Where no row is split, a feature's weight is 0."""
    model = octsvm.build("oct", TABLE, LABELS, depth=1, alpha=0.1)
    constant = find_formulation("oct").constant_tree(model.info.data, model.info.params)
    term = WITHOUT_VALUE[kind](model.split.a[1, 1])
    if place == "row":
        model.mine = pyo.Constraint(expr=term <= 5)
    else:
        model.objective.set_value(model.cost + term)
    named = "mine" if place == "row" else "objective"
    with pytest.raises(octsvm.TreeNotAdmitted, match=f"{named} has no value there"):
        octsvm.embed(model, constant)
    result = octsvm.solve(model, solver="scip", time_limit=20)
    assert result.tree.splits.tolist() == [True]  # on the second feature, which has the worse split
    assert result.objective == pytest.approx(2.1 + (0.0 if place == "row" else float(pyo.value(term))))
    assert result.bound <= result.objective


@pytest.mark.skipif(solvers.installed("scip") is None, reason="SCIP solves what is no polynomial")
@pytest.mark.slow
def test_an_objective_that_falls_towards_a_pole_has_no_bound() -> None:
    """SCIP stops at some point beside it, and calls that optimal."""
    model = octsvm.build("oct_h", TABLE, LABELS, depth=1, alpha=0.1)
    model.objective.set_value(model.cost + 1 / model.split.a[1, 0])
    result = octsvm.solve(model, solver="scip", time_limit=20)
    assert result.status != "optimal"
    assert result.bound == -math.inf
    deep = octsvm.build("oct", TABLE, LABELS, depth=1, alpha=0.1)
    deep.k = pyo.Var(bounds=(1, 5))
    deep.objective.set_value(deep.cost - 1e6 * pyo.log(deep.k))
    proved = octsvm.solve(deep, solver="scip", time_limit=20)
    assert (proved.status, proved.objective) == ("optimal", pytest.approx(0.1 - 1e6 * math.log(5)))


def test_what_is_known_of_an_objective_without_values() -> None:
    for term in (lambda k: pyo.sqrt(k), lambda k: pyo.log(k)):
        model = re_svm()
        model.k = pyo.Var(bounds=(-5, -1))
        model.objective.set_value(model.cost + term(model.k))
        assert least_terms(model).floor() == -math.inf
