"""What every engine must do, as one battery: eighteen points, each run for every entry of the solver table.

An entry that is not installed is skipped by name; none is left out (the guard is the first test). That the model comes back
unchanged, also from an exception, is checked by ``engines.solve`` in all of them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import json
import logging
import math
import os
import random
import shutil
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import engines
import numpy as np
import oracles
import pyomo.environ as pyo
import pytest
from engines import ENTRIES, Entry, every_entry, every_way, hard, solve
from long_cases import long
from waiting import PATIENCE, at_most

import octsvm
from octsvm import solvers
from octsvm.backends.matrix_program import Limits
from octsvm.backends.own_options import settings
from octsvm.problem_class import classify
from octsvm.solving import licences
from octsvm.solving.certificate import broken_row

POINTS: dict[int, list[Entry]] = {}
LIMITED = 1.0
STREAMS = ("highs", "gurobi", "cplex", "xpress", "scip", "shot")  # report points and bounds while they run
SPLITTING = 8  # the seed of a model whose best tree splits, and which engines branch on
LATE = 2.0  # seconds past the limit that an engine may work on


def point(*numbers: int) -> Callable[[Any], Any]:
    """Run a test for every entry of the table, as these points of the contract."""
    for number in numbers:
        POINTS[number] = ENTRIES
    return every_entry


def test_no_entry_of_the_table_is_left_out() -> None:
    assert sorted(POINTS) == list(range(1, 19))
    for number, run in POINTS.items():
        assert {e.name for e in run} == set(solvers.table()), f"point {number}"
    for entry in ENTRIES:
        if not entry.absent:
            continue
        # Absent must be true without asking the code under test.
        spec = solvers.get(entry.name)
        assert not any(shutil.which(p) for p in spec.executable), f"{entry.name} is here and is not run"
        if spec.requires is not None:
            assert importlib.util.find_spec(spec.requires.module) is None, (
                f"{entry.name} is here and is not run"
            )


# ---------------------------------------------------------------------------------------------- models


# Seen: two of its runs with the same seed end at bounds that differ by 1e-6, at the same tree.
VARYING_BOUNDS = ("shot",)


@lru_cache(maxsize=64)
def reference(formulation: str, seed: int, n: int, p: int) -> float:
    """The optimum by brute force."""
    X, y = engines.data(seed, n, p)
    params = engines.costs(seed)
    if formulation == "octsvm":
        params |= {"depth": 1, "mu_svm": 1e-3}
    else:
        del params["c3"]
    return oracles.optimum(formulation, X, y, params)


def small(formulation: str, seed: int) -> tuple[pyo.ConcreteModel, float]:
    """A model that every licence takes, with its cones, and its optimum."""
    n, p = 5 + seed % 2, 1 + seed // 2 % 2
    if formulation == "octsvm":
        n, p = (5, 1) if seed % 2 == 0 else (6, 2)
        return engines.tree_model(seed, n, p), reference(formulation, seed, n, p)
    n = 8
    X, y = engines.data(seed, n, p)
    params = {k: v for k, v in engines.costs(seed).items() if k != "c3"}
    return octsvm.build("re_svm", X, y, scale=False, **params), reference(formulation, seed, n, p)


def plain() -> pyo.ConcreteModel:
    """A small mixed-integer model of no formulation, with a constant in its objective: optimum -48 at x = 2, z = 0.5."""
    m = pyo.ConcreteModel(name="plain")
    m.x = pyo.Var(domain=pyo.Integers, bounds=(0, 10), initialize=1)
    m.z = pyo.Var(bounds=(0, 0.5), initialize=0.25)
    m.unused = pyo.Var(initialize=7.5)
    m.k = pyo.Var(domain=pyo.Integers, bounds=(0, 3), initialize=0)
    m.few = pyo.Constraint(expr=m.k <= m.x + 1)
    m.row = pyo.Constraint(expr=m.x + 2 * m.z >= 3)
    m.low = pyo.Constraint(expr=m.x - 2 * m.z <= 1)
    m.cost = pyo.Objective(expr=m.x - 50)
    return m


def native(entry: Entry, model: pyo.ConcreteModel) -> bool:
    return octsvm.plan(model, entry.name).native


# ---------------------------------------------------------------------------------------------- the points


def without_implied_rows(entry: Entry, model: pyo.ConcreteModel) -> None:
    """Take them out where a free licence has no room for the cone beside them: its own route is what is looked at."""
    if entry.spec.licence is None or native(entry, model):
        return
    for name in ("mixes", "side_costs"):
        if model.component(name) is not None:
            model.component(name).deactivate()


def agree(entry: Entry, formulations: tuple[str, ...], seeds: Sequence[int]) -> None:
    """Solves in one process, two at once, with one thread and with two."""
    asked = list(itertools.product(formulations, seeds))
    cases = [small(*one) for one in asked]
    for model, _ in cases:
        without_implied_rows(entry, model)
    with ThreadPoolExecutor(2) as pool:
        results = list(
            pool.map(
                lambda case, threads: solve(entry, case[0], time_limit=60, threads=threads),
                cases,
                itertools.cycle((1, 2)),
            )
        )
    as_they_stand = dict.fromkeys(formulations, 0)
    for (formulation, seed), (_, optimum), result in zip(asked, cases, results, strict=True):
        said = f"{formulation} {seed}: {result.summary()}\n{result.engine}"
        assert result.objective == pytest.approx(optimum, rel=1e-4, abs=1e-7), said
        assert result.bound <= optimum * (1 + 1e-6) + 1e-9, said
        assert result.status == "optimal", said
        assert not any("refuted" in note or "broke down" in note for note in result.notes), said
        as_they_stand[formulation] += result.engine["as_it_stands"]
    for formulation, count in as_they_stand.items():
        quadratic = (
            entry.spec.cone_form != "none" if formulation == "octsvm" else "MIQP" in entry.spec.classes
        )
        assert (count >= max(1, len(seeds) // 2)) == quadratic


@point(1, 12, 18)
@pytest.mark.quick_cases("highs")
def test_small_models_have_the_optimum_of_brute_force(entry: Entry) -> None:
    agree(entry, ("octsvm", "re_svm"), [SPLITTING])


@pytest.mark.long
@point(1, 12, 18)
def test_more_small_models_have_the_optimum_of_brute_force(entry: Entry) -> None:
    agree(entry, ("octsvm", "re_svm"), [seed for seed in range(30) if seed != SPLITTING])


@lru_cache(maxsize=1)
def good_tree() -> tuple[Any, float]:
    """A tree for :func:`hard`, and what it costs there."""
    costs = {"mu_svm": 1e-3, "c1": 1.0, "c2": 1.0, "c3": 0.1}
    found = octsvm.fit(
        "octsvm",
        *engines.data(0, 36, 4),
        scale=False,
        strategy="heuristic",
        work_limit=5,
        depth=1,
        **costs,
    )
    return found.tree, found.objective


@point(2, 8)
@pytest.mark.slow
def test_a_limit_of_a_second_holds_and_nothing_worse_than_the_start_comes_back(entry: Entry) -> None:
    model = hard()
    octsvm.plan(model, entry.name)  # asks the engine for its licence, once
    tree, cost = good_tree()
    seen: list[octsvm.Progress] = []
    with at_most(LIMITED + LATE):
        result = solve(
            entry, model, start=tree, time_limit=LIMITED, callback=lambda p: seen.append(p) and False
        )
    assert result.stop == "time_limit"
    assert result.status == "feasible"
    assert 0 <= result.bound <= result.objective <= cost * (1 + 1e-9)
    assert broken_row(model) is None
    # A point seen on the way holds within the engine's tolerances; it is polished at the end.
    assert all(
        a.bound <= b.bound and a.incumbent >= b.incumbent * (1 - 1e-6) for a, b in itertools.pairwise(seen)
    )


@point(3)
def test_a_limit_of_a_millisecond_gives_the_fallback(entry: Entry) -> None:
    for model in (hard(), plain()):
        octsvm.plan(model, entry.name)
        with at_most(LATE):
            result = solve(entry, model, time_limit=0.001)
        if result.formulation == "octsvm":
            assert broken_row(model) is None
            assert result.stop == "time_limit"
            assert result.tree is not None
            assert result.objective == pytest.approx(pyo.value(model.objective), rel=1e-6)
        else:
            assert (model.unused.value, result.tree) == (7.5, None)
            assert result.status in ("fallback", "unverified")
            if result.status == "fallback":
                assert (model.x.value, model.z.value) == (1, 0.25)
            else:
                assert broken_row(model) is None


@point(4)
def test_an_infeasible_model_is_called_so(entry: Entry) -> None:
    model = engines.tree_model(1, 5, 1)
    model.mine = pyo.Constraint(expr=(0.3, sum(model.pruning.d.values()), 0.7))
    result = solve(entry, model)
    assert (result.status, result.stop, result.tree) == ("infeasible", "infeasible", None)
    assert result.bound == math.inf
    json.loads(result.to_json())


@point(5)
def test_an_unbounded_model_is_called_so_and_loads_nothing(entry: Entry) -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=pyo.Integers, bounds=(0, None), initialize=2)
    m.y = pyo.Var(bounds=(0, None), initialize=3)
    m.row = pyo.Constraint(expr=m.x - m.y <= 1)
    m.cost = pyo.Objective(expr=-m.x - m.y)
    result = solve(entry, m, time_limit=10)
    assert result.stop in ("unbounded", "inf_or_unbd")
    assert result.status == "fallback"
    assert (m.x.value, m.y.value) == (2, 3)


@point(6)
def test_a_fixed_variable_that_makes_it_infeasible(entry: Entry) -> None:
    for alone in (True, False):
        m = plain()
        m.x.fix(0)
        m.more = pyo.Constraint(expr=m.x + (0 if alone else 0.25) * m.z >= 2)
        result = solve(entry, m)
        assert result.status == "infeasible"
        assert (m.x.value, m.x.fixed, m.z.value) == (0, True, 0.25)


def engine_says(entry: Entry, spoil: bool, norm: str) -> str:
    """What the engine itself makes of a start, a good one or one that breaks rows."""
    model, tree = engines.tree_model(1, 5, 1, norm=norm), small_tree(norm)
    said: str = engines.raw(entry.spec, model, tree=tree, spoil=spoil).start
    return said


@lru_cache(maxsize=2)
def small_tree(norm: str) -> Any:
    return solve("highs", engines.tree_model(1, 5, 1, norm=norm)).tree


@point(7)
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.every_value
@pytest.mark.quick_cases("l1-highs", "l1-scip", "l1-cbc", "l2-highs")
def test_a_start_is_used_and_the_engine_says_so(entry: Entry, norm: str) -> None:
    passes = entry.spec.start.passes != "none"
    if norm == "l1":  # the other one: below
        assert engine_says(entry, spoil=False, norm=norm) == ("accepted" if passes else "unsupported")
    assert engine_says(entry, spoil=True, norm=norm) == ("rejected" if passes else "unsupported")


@point(7)
@pytest.mark.quick_cases("highs", "cbc")
def test_a_start_that_leaves_a_variable_open_and_one_that_the_model_forbids(entry: Entry) -> None:
    tree, model = small_tree("l2"), engines.tree_model(1, 5, 1)
    model.mine = pyo.Var(bounds=(0, 100))
    model.row = pyo.Constraint(expr=model.mine >= 3 + model.pruning.d[1])
    model.objective.set_value(model.cost + 0.01 * model.mine)
    result = solve(entry, model, start=tree)
    passes = entry.spec.start.passes != "none"
    assert result.engine["start"] == ("accepted" if passes else "unsupported")
    assert result.status == "optimal"
    model.not_this = pyo.Constraint(expr=model.pruning.d[1] == 1 - int(tree.splits[0]))
    with pytest.raises(octsvm.TreeNotAdmitted, match="not_this"):
        solve(entry, model, start=tree)


@point(9)
def test_a_gap_of_one_half_is_honoured(entry: Entry) -> None:
    model, optimum = small("octsvm", 1)
    result = solve(entry, model, gap=0.5)
    assert result.status == "optimal"
    assert result.gap <= 0.5 + 1e-9
    assert result.bound <= optimum * (1 + 1e-6)
    assert result.objective >= optimum * (1 - 1e-6)
    assert (1 - 0.5) * result.objective <= optimum * (1 + 1e-6)


@point(10)
def test_an_unknown_option_is_refused_by_name(entry: Entry) -> None:
    model = engines.tree_model(0, 5, 1)
    with at_most(10.0), pytest.raises(octsvm.InvalidParameter, match="nosuch"):
        solve(entry, model, options={"nosuch": 1})


def stopped(entry: Entry, stop: Callable[[octsvm.Progress], bool]) -> None:
    """A solve that the callback or Ctrl-C ends, once the engine works and, where it reports them, has a bound."""
    streams = entry.name in STREAMS
    bounds: list[float] = []

    def callback(progress: octsvm.Progress) -> bool:
        bounds.append(progress.bound)
        return progress.seconds > 0.5 and (progress.bound > 0 or not streams) and stop(progress)

    with at_most(10.0 if streams else 0.5 + LATE):
        result = solve(entry, hard(), time_limit=PATIENCE, callback=callback)
    assert all(a <= b for a, b in itertools.pairwise(bounds))
    assert result.stop == "interrupted"
    assert result.status in ("feasible", "fallback")
    assert 0 <= result.bound <= result.objective < math.inf


@point(11)
@pytest.mark.slow
def test_a_callback_ends_it_with_the_incumbent(entry: Entry) -> None:
    stopped(entry, lambda _: True)


@every_way
@pytest.mark.slow
def test_ctrl_c_ends_it_with_the_incumbent(entry: Entry) -> None:
    """For the engine it is as the word of a callback."""
    pressed = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT))

    def press(_: octsvm.Progress) -> bool:
        if pressed.ident is None:
            pressed.start()
        return False

    try:
        stopped(entry, press)
        pressed.join()
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C came through to the caller")


@point(13, 17)
def test_the_same_seed_gives_the_same_tree_and_an_unused_variable_keeps_its_value(entry: Entry) -> None:
    model, _ = small("octsvm", 1)
    model.mine, model.nothing = pyo.Var(initialize=7.5), pyo.Var()
    found = []
    for global_seed in (1, 2):  # which neither counts nor moves
        random.seed(global_seed)
        np.random.seed(global_seed)
        before = random.getstate(), repr(np.random.get_state())
        found.append(solve(entry, model, seed=2**40 + 5))
        assert (random.getstate(), repr(np.random.get_state())) == before
    one, two = found
    assert model.mine.value == 7.5
    assert one.tree.to_json() == two.tree.to_json()
    assert (one.objective, one.nodes) == (two.objective, two.nodes)
    if entry.name in VARYING_BOUNDS:
        assert one.bound == pytest.approx(two.bound, rel=1e-4)  # the gap it was asked for
    else:
        assert one.bound == two.bound


def quadratic(rows: bool) -> tuple[pyo.ConcreteModel, float]:
    """A convex quadratic objective with a constant and a term off the diagonal (and a row -(x*x)): model and optimum."""
    m = pyo.ConcreteModel(name="quadratic")
    m.x = pyo.Var(domain=pyo.Integers, bounds=(-4, 5), initialize=0)
    m.y = pyo.Var(domain=pyo.Integers, bounds=(-4, 5), initialize=0)
    m.z = pyo.Var(bounds=(0, 8), initialize=1)
    m.link = pyo.Constraint(expr=m.z + m.x >= 1)
    if rows:
        m.curved = pyo.Constraint(expr=-(m.x * m.x) + 0.5 * m.y >= -6.5)
        m.other = pyo.Constraint(expr=m.y * m.y - m.x * m.y + m.x * m.x <= 7)
    m.cost = pyo.Objective(
        expr=30 + m.x * m.x + 2 * m.y * m.y - 1.5 * m.x * m.y - 9 * m.x + 2 * m.y + m.z, sense=pyo.minimize
    )
    best = math.inf
    for x, y in itertools.product(range(-4, 6), repeat=2):
        if rows and (-x * x + 0.5 * y < -6.5 or y * y - x * y + x * x > 7):
            continue
        z = max(0.0, 1.0 - x)
        best = min(best, 30 + x * x + 2 * y * y - 1.5 * x * y - 9 * x + 2 * y + z)
    return m, best


@point(14)
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.every_value
def test_quadratics_with_constant_and_terms_off_the_diagonal(entry: Entry, rows: bool) -> None:
    m, optimum = quadratic(rows)
    if ("MIQCP" if rows else "MIQP") not in entry.spec.classes:
        with pytest.raises(octsvm.UnsupportedProblem, match="MIQ"):
            solve(entry, m)
        return
    result = solve(entry, m, time_limit=20)
    assert result.stop == "optimal"
    assert result.objective == pytest.approx(optimum, rel=1e-4)
    assert pyo.value(m.cost) == pytest.approx(optimum, rel=1e-4)
    assert result.bound <= optimum + 1e-5


@point(14, 17)
def test_constants_in_a_linear_objective_and_a_maximisation(entry: Entry) -> None:
    m = plain()
    result = solve(entry, m)
    assert (result.stop, m.x.value, m.unused.value) == ("optimal", 2, 7.5)
    assert result.objective == pytest.approx(-48)
    assert -48 - 1e-4 * 50 <= result.bound <= -48 + 1e-6
    m.cost.sense = pyo.maximize
    with pytest.raises(octsvm.UnsupportedProblem, match="Change its sign"):
        solve(entry, m)


@point(15)
def test_the_log_goes_to_a_file_and_to_logging(
    entry: Entry, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "engine.log"
    model = engines.tree_model(1, 5, 1)
    with caplog.at_level(logging.DEBUG, logger="octsvm.engine"):
        solve(entry, model, log=log)
    assert capfd.readouterr() == ("", "")
    lines = [line for line in log.read_text().splitlines() if line.strip()]
    assert len(lines) >= 3
    heard = [r.getMessage() for r in caplog.records if r.name == f"octsvm.engine.{entry.spec.name}"]
    assert [line for line in heard if line.strip()] == lines


@every_way
def test_the_log_goes_to_standard_output_as_it_is_at_the_call(
    entry: Entry, capfd: pytest.CaptureFixture[str]
) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as cell:
        solve(entry, engines.tree_model(1, 5, 1), log=True)
    assert len(cell.getvalue().splitlines()) >= 3
    assert capfd.readouterr() == ("", "")


@lru_cache(maxsize=1)
def large() -> pyo.ConcreteModel:
    """A model that is above the ceilings of the free licences, and soon solved."""
    m = pyo.ConcreteModel(name="large")
    m.x = pyo.Var(range(3000), domain=pyo.Binary, initialize=1)
    m.pairs = pyo.Constraint(range(2999), rule=lambda m, k: m.x[k] + m.x[k + 1] >= 1)
    m.cost = pyo.Objective(expr=sum(m.x.values()))
    return m


@point(16)
def test_a_licence_that_is_too_small_is_known_before_the_solve(entry: Entry) -> None:
    if entry.spec.licence is None:
        assert octsvm.plan(hard(), entry.name).ceilings == ()
        return
    most = entry.spec.licence.linear
    model = large()
    for other in solvers.table():
        licences.limited(other)  # each is asked once in a process
    if not licences.limited(entry.spec.name):
        assert octsvm.plan(model, entry.name).native
        return
    broken = most.broken_by(*licences.sizes(classify(model), True)[:2])
    assert broken
    with at_most(1.0), pytest.raises(octsvm.LicenseTooSmall) as caught:
        octsvm.solve(model, solver=entry.name)
    text = str(caught.value)
    assert broken in text
    for other in ("highs", "scip"):
        assert other in text
    plan = octsvm.plan(model, "auto")
    assert plan.solver not in (entry.name, "gurobi", "cplex", "xpress")
    assert entry.name in {name for name, reason in plan.rejected if "licence" in reason}
    if entry.spec.licence.quadratic != most and "MIQP" in entry.spec.classes:
        assert not native(entry, hard())  # too many for quadratics, and few enough for linear rows


@point(16)
@pytest.mark.quick_cases("highs", "scip")
def test_auto_goes_on_to_the_next_engine(
    entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "table.yaml"
    table.write_text(f"prefer: [{entry.name}, highs]\nsolvers: {{}}\n")
    monkeypatch.setenv("OCTSVM_SOLVERS", str(table))
    assert octsvm.plan(small("octsvm", 0)[0], "auto").solver == entry.name
    if entry.spec.licence is None or not licences.limited(entry.spec.name):
        return
    # The engine's own word, where the table knows no ceilings: typed, and no end for "auto".
    table.write_text(f"prefer: [{entry.name}, highs]\nsolvers: {{{entry.name}: {{licence: null}}}}\n")
    model = large()
    with pytest.raises(octsvm.LicenseTooSmall, match="refuses this model for its licence"):
        octsvm.solve(model, solver=entry.name, time_limit=60)
    result = octsvm.solve(model, solver="auto", time_limit=60)
    assert result.solver == "highs"
    assert any(f"{entry.name} was tried first" in note for note in result.notes)


# ---------------------------------------------------------------------------------------------- more than the contract


@engines.every([e for e in ENTRIES if str(e) in ("highs", "scip", "bonmin-stand-in")])
@pytest.mark.quick_cases("highs")
def test_a_limit_by_the_solvers_own_name_wins_over_ours(entry: Entry) -> None:
    """In this process, in a child, and in the file of options of a program."""
    own = entry.spec.native("time_limit")
    model = hard()
    octsvm.plan(model, entry.name)
    with at_most(20.0):
        result = solve(entry, model, time_limit=60, options={own: 1.0})
    assert result.stop == "time_limit"


@pytest.mark.parametrize("name", list(solvers.table()))
def test_options_by_the_solvers_own_names_win_over_ours(name: str) -> None:
    spec = solvers.get(name)
    own = spec.native("gap")
    if own is not None:  # else it is an argument, and comes before the caller's own options
        assert settings(spec, Limits(1.0, 1e-4, None, 1, 0, 1e-6), {own: 0.25})[own] == 0.25
    if name == "scip" and solvers.installed(name):  # and they are what it gets
        assert octsvm.solve(plain(), solver=name, options={own: 0.25}).engine["options"][own] == 0.25


def split_evenly() -> pyo.ConcreteModel:
    """Three sums that are to be split evenly, which takes many nodes, each of a moment."""
    weights = np.random.default_rng(0).integers(1, 100, (3, 30))
    m = pyo.ConcreteModel(name="market split")
    m.x = pyo.Var(range(30), domain=pyo.Binary, initialize=0)
    m.off = pyo.Var(
        range(3), range(2), bounds=(0, None), initialize=lambda m, i, k: k * (weights[i].sum() // 2)
    )
    m.rows = pyo.Constraint(
        range(3),
        rule=lambda m, i: (
            sum(int(w) * m.x[k] for k, w in enumerate(weights[i])) - m.off[i, 0] + m.off[i, 1]
            == int(weights[i].sum() // 2)
        ),
    )
    m.cost = pyo.Objective(expr=sum(m.off.values()))
    return m


@every_entry
@pytest.mark.slow
def test_a_limit_of_nodes_is_honoured_or_refused(entry: Entry) -> None:
    model = split_evenly()
    if not entry.spec.takes("node_limit"):
        with pytest.raises(octsvm.InvalidParameter, match="no such limit"):
            solve(entry, model, work_limit={"nodes": 3})
        return
    with at_most(10.0):
        result = solve(entry, model, work_limit={"nodes": 3}, time_limit=PATIENCE)
    assert result.stop == "work_limit"
    assert 0 <= result.bound <= result.objective


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.slow
def test_points_are_seen_while_the_engine_runs(name: str) -> None:
    engines.skip_absent(Entry(name))
    model, optimum = small("octsvm", 7)
    seen: list[octsvm.Progress] = []
    result = solve(name, model, callback=lambda p: seen.append(p) and False)
    first = seen[0].incumbent
    assert first > 1.01 * optimum
    during = [p.incumbent for p in seen if p.rounds == 0]
    assert min(during) < first * (1 - 1e-3)
    assert min(during) >= optimum * (1 - 1e-3)
    assert result.trace[-1].incumbent == pytest.approx(optimum, rel=1e-4)


# B-Hyb is in test_no_engine_claims_what_is_wrong, on models of half the time.
@pytest.mark.parametrize("algorithm", ["B-QG", "b-ecp", *long(["B-Hyb"])])
@pytest.mark.slow
def test_what_bonmins_linear_algorithms_call_optimal_is_not_taken_for_it(algorithm: str) -> None:
    names = [n for n in ("bonmin", "bonmin_casadi") if solvers.get(n).version is not None]
    if not names:
        pytest.skip("Bonmin is not installed")
    options = {"bonmin.algorithm": algorithm}
    for seed, name in itertools.product(range(4), names):
        model, optimum = small("octsvm", seed)
        if engines.raw(solvers.require(name), model, optimum, options).objective > optimum * (1 + 1e-3):
            break
    else:
        pytest.fail(f"{algorithm} is right on all of these: look at its entry again")
    result = octsvm.solve(model, solver=name, time_limit=30, options=options)
    assert result.bound <= optimum * (1 + 1e-6)
    assert result.status != "optimal" or result.objective == pytest.approx(optimum, rel=1e-4)
    assert result.engine["options"]["bonmin.variable_selection"] == "osi-strong"


def test_an_option_that_comes_with_another_is_the_callers_where_he_has_it() -> None:
    spec = solvers.get("bonmin")
    own = {"bonmin.algorithm": "B-QG", "bonmin.variable_selection": "osi-simple"}
    limits = Limits(1.0, 1e-4, None, 1, 0, 1e-6)
    assert settings(spec, limits, own)["bonmin.variable_selection"] == "osi-simple"
    assert "bonmin.variable_selection" not in settings(spec, limits, {"bonmin.algorithm": "B-OA"})
    assert "bonmin.variable_selection" not in settings(spec, limits, {})
