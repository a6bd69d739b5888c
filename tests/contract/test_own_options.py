"""An option by the solver's own name: a wrong name or value is refused before anything is solved, by every engine."""

from __future__ import annotations

from functools import cache
from typing import Any

import engines
import numpy as np
import pyomo.environ as pyo
import pytest
from engines import Entry, every_entry, every_way, solve
from waiting import at_most

import octsvm
from octsvm import solvers
from octsvm.backends.own_options import own_options

# of each engine: a number, a whole number, a word
NAMES: dict[str, tuple[str, str, str]] = {
    "highs": ("mip_rel_gap", "mip_max_nodes", "presolve"),
    "gurobi": ("MIPGap", "MIPFocus", "LogFile"),
    "cplex": ("mip.tolerances.mipgap", "mip.limits.cutpasses", "workdir"),
    "xpress": ("miprelstop", "maxnode", "mpsrhsname"),
    "scip": ("limits/gap", "limits/maxsol", "nodeselection/childsel"),
    "bonmin": ("bonmin.allowable_fraction_gap", "bonmin.bb_log_level", "bonmin.algorithm"),
    "bonmin_casadi": ("bonmin.allowable_fraction_gap", "bonmin.bb_log_level", "bonmin.algorithm"),
    "couenne": ("allowable_fraction_gap", "node_limit", ""),
    "shot": ("Termination.ObjectiveGap.Relative", "Dual.MIP.NumberOfThreads", ""),
    "cbc": ("ratioGap", "maxNodes", "cuts"),
    "glpk": ("mipgap", "seed", ""),
}
TEXTS = ("gurobi", "cplex", "xpress")  # whose third option is a file or a name


@cache
def small() -> pyo.ConcreteModel:
    return engines.tree_model(1, 5, 1)


@cache
def optimum() -> float:
    return octsvm.solve(small(), solver="highs").objective


def refused(entry: Entry, name: str, value: Any) -> None:
    with pytest.raises(octsvm.InvalidParameter) as caught:
        solve(entry, small(), options={name: value}, time_limit=60)
    assert name.lower().removeprefix("bonmin.") in str(caught.value).lower()


@every_entry
@pytest.mark.parametrize("kind", ["number", "whole number"])
@pytest.mark.quick_cases("*-highs")
@pytest.mark.every_value
def test_a_value_of_the_wrong_type_is_refused_by_name(entry: Entry, kind: str) -> None:
    number, whole, word = NAMES[entry.name]
    if kind == "number":
        for value in ("abc", float("nan"), [0.1]):
            refused(entry, number, value)
        return
    refused(entry, whole, 1.5)
    refused(entry, whole, "many")
    own_limit = entry.spec.native("time_limit")
    if own_limit is not None:
        refused(entry, own_limit, "soon")
        refused(entry, own_limit, -1.0)
    if word:
        refused(entry, word, 3 if entry.name in TEXTS else "nosuch")


@every_way
@pytest.mark.quick_cases("highs")
def test_it_is_refused_before_a_start_is_looked_for_and_where_nothing_would_be_solved(
    entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    from octsvm import heuristics

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a start was looked for")

    monkeypatch.setattr(heuristics, "find", never)
    options = {NAMES[entry.name][0]: "abc"}
    X, y = engines.data(0, 30, 2)
    for strategy, limit in (("balanced", 20.0), ("exact", 1e-3), ("heuristic", 20.0), ("heuristic", 1e-3)):
        with pytest.raises(octsvm.InvalidParameter):
            octsvm.fit("oct", X, y, solver=entry.name, strategy=strategy, time_limit=limit, options=options)
    with pytest.raises(octsvm.InvalidParameter):
        solve(entry, octsvm.build("re_svm", X, y, c1=0.0, c2=0.0), options=options)


@every_entry
@pytest.mark.parametrize("values", [(str, str), (np.float64, float)], ids=["text", "number"])
@pytest.mark.quick_cases("*-highs")
@pytest.mark.every_value
def test_a_value_that_reads_as_the_right_one_is_taken(entry: Entry, values: tuple[Any, Any]) -> None:
    number, whole, _ = NAMES[entry.name]
    result = solve(
        entry, small(), options={number: values[0](1e-5), whole: values[1](1000 if "ode" in whole else 1)}
    )
    assert not any("broke down" in note for note in result.notes)
    assert result.objective == pytest.approx(optimum(), rel=1e-4)


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("cbc", {"ratioGap": -1}),
        ("cbc", {"cuts": "maybe"}),
        ("cbc", {"ratio": "x"}),
        ("cbc", {"r": 1}),
        ("glpk", {"mipgap": -1}),
        ("glpk", {"nosuch": 1}),
        ("gurobi", {"MIPGap": -1}),
        ("gurobi", {"Thread*": 1}),
        ("cplex", {"mip": 1}),
        ("cplex", {"_cplex": 1}),
        ("cplex", {"mip.strategy.search": 7}),
        ("highs", {"mip_rel_gap": -1.0}),
        ("highs", {"mip_allow_restart": "perhaps"}),
        ("scip", {"lp/threads": 10**6}),
        ("scip", {"heuristics/emphasis": "loud"}),
        ("shot", {"Dual.MIP.Solver": 77}),
        ("bonmin", {"bonmin.allowable_gap": "x"}),
        ("gurobi", {"timelimit": -1.0}),
        ("bonmin", {"bonmin.max_iter": 2.5}),
        ("bonmin", {"algorithm": "B-OA"}),
    ],
    ids=str,
)
@pytest.mark.quick_cases("scip-*", "cbc-*")
def test_what_an_engine_says_of_a_value_is_no_breakdown(engine: str, options: dict[str, Any]) -> None:
    if solvers.installed(engine) is None:
        pytest.skip(f"{engine} is not installed")
    refused(Entry(engine), *next(iter(options.items())))


@pytest.mark.parametrize(("engine", "name"), [("gurobi", "timelimit"), ("xpress", "TIMELIMIT")])
@pytest.mark.slow
def test_a_limit_by_a_name_in_another_case_counts(engine: str, name: str) -> None:
    if solvers.installed(engine) is None:
        pytest.skip(f"{engine} is not installed")
    model = engines.hard()
    with at_most(8.0):
        result = solve(engine, model, options={name: "1"}, time_limit=20)
    assert result.stop == "time_limit"


@pytest.mark.parametrize("name", ["bonmin", "couenne", "cbc", "glpk", "knitro"])
def test_an_option_is_one_line(name: str) -> None:
    spec = solvers.get(name)
    for options in (
        {"max_iter": "1\nbonmin.algorithm B-Hyb"},
        {"a\nb": 1},
        {" ": 1},
        {"a": "\0"},
        {"a": None},
    ):
        with pytest.raises(octsvm.InvalidParameter, match=r"does not take an option"):
            own_options(spec, options)


@pytest.mark.parametrize(
    ("name", "number", "whole"),
    [
        ("copt", "mipgap", "threads"),
        ("mosek", "inttol", "seed"),
        ("knitro", "mip_opt_gap_rel", "mip_maxnodes"),
        ("baron", "epsr", "threads"),
    ],
)
def test_values_for_solvers_that_need_a_licence_are_checked_by_the_same_rule(
    name: str, number: str, whole: str
) -> None:
    spec = solvers.get(name)
    assert own_options(spec, {number: "1e-3", whole: "2"}) == {number: 1e-3, whole: 2}
    for options in ({number: "abc"}, {whole: 1.5}, {number.upper(): "abc"}, {whole: float("nan")}):
        with pytest.raises(octsvm.InvalidParameter, match=spec.title):
            own_options(spec, options)
    # what the entry itself sets by these names is known as well
    ours = {
        part.split("=")[0] for a in spec.argv for part in ([a] if isinstance(a, str) else a) if "={" in part
    }
    assert {o for o in ours if not o.startswith("{")} <= set(spec.own)


def test_what_proves_nothing_is_seen_in_any_spelling() -> None:
    spec = solvers.get("bonmin")
    assert spec.with_own({"bonmin.algorithm": "b-hyb"}).claim == "none"
    assert spec.with_own({"algorithm": "B-Hyb"}).claim == "none"
    assert spec.with_own({"bonmin.algorithm": "B-OA"}).claim == "convex"


def test_a_search_of_our_own_has_no_options_of_its_own() -> None:
    with pytest.raises(octsvm.InvalidParameter, match="branch_and_reduce is a search of octsvm"):
        octsvm.fit("re_svm", [[0.0], [1.0]], ["a", "b"], solver="branch_and_reduce", options={"x": 1})
