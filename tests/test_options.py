"""The options of a solve: declared once, found by everybody, checked with messages that teach; and the clock."""

from __future__ import annotations

import inspect
import math
import time
import warnings
from typing import Any

import pyomo.environ as pyo
import pytest
from click.testing import CliRunner
from places import ROOT

import octsvm
from octsvm import options
from octsvm.cli import main
from octsvm.options import Clock, SolveOptions

TAKERS: dict[str, Any] = {
    options.FIT: octsvm.fit, options.SOLVE: octsvm.solve, options.RACE: octsvm.race, options.PLAN: octsvm.plan,
    options.BUILD: octsvm.build, options.PATH: octsvm.fit_path, options.READ: octsvm.read_solution,
    options.ESTIMATOR: octsvm.OCTSVMClassifier,
}  # fmt: skip


@pytest.mark.parametrize("who", TAKERS)
def test_an_option_is_found_where_it_is_taken(who: str) -> None:
    taker, said = TAKERS[who], " ".join(TAKERS[who].__doc__.split())
    for name, declared in options.declarations(who).items():
        assert name in inspect.signature(taker).parameters
        assert f"{name} : " in said
        assert declared.doc in said or (who, name) == (options.PLAN, "solver"), name
    assert "{options}" not in said


def test_an_option_is_found_on_the_command_line() -> None:
    said = " ".join(CliRunner().invoke(main, ["fit", "--help"]).output.split())
    for name, declared in options.declarations(options.COMMAND).items():
        assert "--" + name.replace("_", "-") in said
        assert declared.help in said, name


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"time_limit": 0}, "time_limit=0 should be a positive number of seconds."),
        ({"time_limit": math.nan}, "positive number of seconds"),
        ({"time_limit": True}, "positive number of seconds"),
        ({"gap": 1}, "below 1"),
        ({"threads": 1.0}, "threads=1.0 should be a whole number, 1 or more."),
        ({"seed": -1}, "seed=-1 should be a whole number, 0 or more."),
        ({"work_limit": {"node": 3}}, "should be a number of nodes"),
        ({"work_limit": 0}, "should be a number of nodes"),
        ({"time_limit": 10**400}, "should be a positive number of seconds"),
        ({"work_limit": {"work": math.inf}}, "should be a number of nodes"),
        ({"on_mismatch": "pass"}, "on_mismatch='pass' should be 'raise', 'warn' or 'ignore'."),
        ({"strategy": "fast"}, "'balanced', 'exact', 'heuristic'"),
        ({"callback": 3}, "callback=3 should be a function"),
        ({"options": [1]}, "mapping from the solver's own option names"),
        ({"log": 3}, "log=3 should be None, True"),
        ({"bridge": "outer_aproximation"}, "outer_approximation"),
    ],
)
def test_what_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(octsvm.InvalidParameter) as refused:
        SolveOptions(**given)
    assert says in str(refused.value)


def test_the_page_on_solvers_names_every_option() -> None:
    page = (ROOT / "docs" / "solvers.md").read_text(encoding="utf-8")
    table = page[page.index("## Limits") : page.index("At any limit you get")]
    assert [name for name in options.declarations() if f"`{name}`" not in table] == []


def test_an_unknown_option_is_refused_with_the_nearest() -> None:
    model = octsvm.build("oct", [[0.0], [1.0]], ["a", "b"], depth=1)
    with pytest.raises(
        octsvm.InvalidParameter, match=r"'time_limt' is no argument of octsvm\.solve.*'time_limit'"
    ):
        octsvm.solve(model, time_limt=3)


def test_the_clock_runs_through_a_whole_call() -> None:
    asked = SolveOptions(time_limit=0.2)
    later = asked.but(seed=3, start=None)
    assert later.clock is asked.clock
    assert (later.seed, asked.seed) == (3, 0)
    assert 0 < asked.clock.left() <= 0.2
    assert not asked.clock.late()
    asked.clock.exclude(-0.3)  # as if it had begun earlier
    assert later.clock.late()
    assert later.clock.left() == options.LEAST_SECONDS


def test_a_clock_without_a_limit_never_ends() -> None:
    clock = Clock()
    assert math.isinf(clock.left())
    assert not clock.late()
    assert clock.seconds() <= time.monotonic()


@pytest.mark.slow
def test_the_trace_counts_from_the_call() -> None:
    X, y = [[k % 7, (k * 5) % 11] for k in range(12)], [(k // 3) % 2 for k in range(12)]
    seen: list[float] = []
    work = {"nodes": 1, "rounds": 1}
    result = octsvm.fit("octsvm", X, y, depth=1, work_limit=work, callback=lambda p: seen.append(p.seconds))
    assert [t.seconds for t in result.trace] == sorted(t.seconds for t in result.trace)
    assert seen == sorted(seen)
    assert all(t.seconds <= result.seconds for t in result.trace)


# -- names and values that people bring along ----------------------------------------------------------------------

POINTS, SIDES = [[0.0], [1.0], [2.0], [3.0]], list("aabb")


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("verbose", "log=True"),
        ("tee", "log=True"),
        ("random_state", "seed="),
        ("max_depth", "depth="),
        ("min_samples_leaf", "n_min="),
        ("n_jobs", "threads="),
        ("mip_gap", "gap="),
        ("sample_weight", "weights="),
        ("warm_start", "start="),
    ],
)
def test_names_from_elsewhere_are_answered_with_ours(given: str, ours: str) -> None:
    with pytest.raises(octsvm.InvalidParameter, match=f"'{given}'.* {ours}"):
        octsvm.fit("oct", POINTS, SIDES, **{given: 1})
    model = octsvm.build("oct", POINTS, SIDES, depth=1)
    with pytest.raises(octsvm.InvalidParameter, match=f"'{given}'.* {ours.rstrip('True')}"):
        octsvm.solve(model, **{given: 1})


def test_names_from_elsewhere_are_answered_by_build_and_evaluate() -> None:
    with pytest.raises(octsvm.InvalidParameter, match="Say depth= instead"):
        octsvm.build("oct", POINTS, SIDES, max_depth=2)
    tree = octsvm.fit("oct", POINTS, SIDES, depth=1).tree
    with pytest.raises(octsvm.InvalidParameter, match="Say weights= instead"):
        octsvm.evaluate("oct", tree, POINTS, SIDES, sample_weight=[1.0] * 4)
    with pytest.raises(octsvm.InvalidParameter, match="'max_depth' is not a parameter of 're_svm'"):
        octsvm.fit("re_svm", POINTS, SIDES, max_depth=2)  # it has none


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "Leave it out"),
        (["highs"], "octsvm.race"),
        (1, "name of the solver table"),
        (pyo.SolverFactory("cbc"), r"octsvm\.extract"),
    ],
)
def test_a_solver_is_a_name(value: Any, words: str) -> None:
    with pytest.raises(octsvm.InvalidParameter, match=words):
        octsvm.fit("oct", POINTS, SIDES, solver=value)
    with pytest.raises(octsvm.InvalidParameter, match=words):
        octsvm.solve(octsvm.build("oct", POINTS, SIDES, depth=1), solver=value)


def test_a_bridge_is_a_name() -> None:
    with pytest.raises(octsvm.InvalidParameter, match="bridge="):
        octsvm.fit("oct", POINTS, SIDES, bridge=["outer_approximation"])


@pytest.mark.parametrize("seed", [2**31, 2**32, 2**64, 10**30])
@pytest.mark.parametrize("formulation", ["oct", "oct_h", "re_svm", "octsvm"])
@pytest.mark.quick_cases("oct-18446744073709551616")
@pytest.mark.every_value
def test_a_seed_may_have_any_size(formulation: str, seed: int) -> None:
    asked = {} if formulation == "re_svm" else {"depth": 1}
    assert octsvm.fit(formulation, POINTS, SIDES, seed=seed, **asked).status == "optimal"
    assert octsvm.fit(formulation, POINTS, SIDES, seed=seed, strategy="heuristic", **asked).tree is not None
    assert len(octsvm.flip_labels(SIDES, 0.5, seed)) == 4


@pytest.mark.parametrize(("formulation", "name"), [("oct", "alpha"), ("oct_h", "alpha"), ("octsvm", "c3")])
def test_weights_so_small_that_no_split_pays_are_spoken_of(formulation: str, name: str) -> None:
    asked: dict[str, Any] = {"depth": 1, name: 1.0}
    for small in ([0.25] * 4, [0.1, 0.2, 0.3, 0.4]):
        for call in (octsvm.fit, octsvm.build):
            with pytest.warns(UserWarning, match=f"{name}=1.* as much as all errors.*weights.sum"):
                call(formulation, POINTS, SIDES, weights=small, **asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for enough in (None, [1.0] * 4, [1.0, 2.0, 1.0, 2.0]):
            octsvm.fit(formulation, POINTS, SIDES, weights=enough, **asked)
        octsvm.fit(formulation, POINTS, SIDES, weights=[0.25] * 4, depth=1, **{name: 0.1})


def test_a_classifier_speaks_of_small_weights_too() -> None:
    with pytest.warns(UserWarning, match="as much as all errors"):
        octsvm.OCTClassifier(max_depth=1, alpha=1.0).fit(POINTS, SIDES, sample_weight=[0.25] * 4)
