"""A callback is told what goes on while no engine runs, and can end it there."""

from __future__ import annotations

import itertools
import logging
import math
import threading
import time

import numpy as np
import pyomo.environ as pyo
import pytest
from instances import sloped
from waiting import at_most, wait_until

import octsvm
import octsvm.api  # whole, before anything of it is replaced
from octsvm.cli import progress as shown
from octsvm.formulations.blocks import rows
from octsvm.formulations.registry import formulation
from octsvm.result import Progress
from octsvm.solving import strategies, telling

PHASES = ("start heuristics", "building", "reading", "compiling", "solving", "checking")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every word is told, however short the call."""
    for name in ("oct", "oct_h", "re_svm", "octsvm"):
        formulation(name).load_libraries()
    monkeypatch.setattr(telling, "FROM", 0.0)
    monkeypatch.setattr(telling, "EVERY", 0.0)
    monkeypatch.setattr(rows, "ROWS_PER_BEAT", 1)


@pytest.mark.parametrize("name", ["oct", "oct_h", "re_svm", "octsvm"])
@pytest.mark.slow
def test_every_phase_is_told_in_order_on_the_callers_thread(name: str, at_once: None) -> None:
    seen: list[octsvm.Progress] = []
    threads = set()

    def watch(progress: octsvm.Progress) -> None:
        seen.append(progress)
        threads.add(threading.get_ident())

    params = {} if name == "re_svm" else {"depth": 1}
    octsvm.fit(name, *sloped(16, 2), time_limit=20, callback=watch, **params)
    assert threads == {threading.get_ident()}
    told = [phase for phase, _ in itertools.groupby(p.phase for p in seen)]
    assert told == [phase for phase in PHASES if phase in told]
    assert {"building", "reading", "compiling", "solving", "checking"} <= set(told)
    assert all(a.incumbent >= b.incumbent - 1e-6 for a, b in itertools.pairwise(seen))
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(seen))


@pytest.mark.slow
def test_trees_are_looked_for_again_where_the_bound_leaves_much_open(at_once: None) -> None:
    rng = np.random.default_rng(3)
    X, noise = rng.random((60, 3)), rng.integers(0, 2, 60)
    told: dict[str, list[str]] = {}
    for strategy in ("balanced", "exact"):
        seen: list[str] = []

        def watch(progress: octsvm.Progress, seen: list[str] = seen) -> bool:
            seen.append(progress.phase)
            return progress.phase == "building"

        octsvm.fit("octsvm", X, noise, depth=1, strategy=strategy, time_limit=15, callback=watch)
        told[strategy] = [phase for phase, _ in itertools.groupby(seen)]
    # A moment for both, the bound for as long as it pays, and then trees once more before its cases are narrowed.
    again = ["start heuristics", "bounding"]
    assert told["balanced"][:6] == [*again, *again, *again]
    assert "start heuristics" not in told["exact"]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("strategy", ["balanced", "exact", "heuristic"])
@pytest.mark.parametrize("name", ["oct", "octsvm"])
@pytest.mark.quick_cases("octsvm-balanced-*", "*-solving")
@pytest.mark.every_value
def test_a_callback_ends_any_phase(
    name: str, strategy: str, phase: str, at_once: None, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []

    def stop(progress: octsvm.Progress) -> bool:
        asked.append(progress.phase)
        return progress.phase == phase

    X, y = sloped(20, 2)
    limit = 0.5 if strategy == "heuristic" else 1.5  # which searches until then
    with caplog.at_level(logging.WARNING):
        result = octsvm.fit(name, X, y, depth=1, strategy=strategy, time_limit=limit, callback=stop)
    if phase in asked and phase != "checking":
        # OCT finds bounds in building that prove some trees by themselves.
        assert result.stop in ("interrupted", "optimal")
        assert asked[-1] in (phase, "checking")
        if phase != "solving":
            assert asked.count(phase) == 1
    assert octsvm.evaluate(name, result.tree, X, y).objective == pytest.approx(result.objective)
    assert not caplog.records
    assert not rows.PYOMO.filters


@pytest.mark.parametrize("phase", ["building", "reading", "compiling", "checking"])
@pytest.mark.quick_cases("building")
def test_what_a_callback_raises_comes_out(phase: str, at_once: None) -> None:
    def fail(progress: octsvm.Progress) -> None:
        if progress.phase == phase:
            raise LookupError(phase)

    with pytest.raises(LookupError, match=phase):
        octsvm.fit("octsvm", *sloped(16, 2), depth=1, strategy="exact", time_limit=5, callback=fail)
    assert not rows.PYOMO.filters


def test_a_solve_with_own_rows_is_called_off_with_the_tree_that_holds_in_them(at_once: None) -> None:
    model = octsvm.build("octsvm", *sloped(), depth=1)
    model.mine = pyo.Constraint(expr=pyo.quicksum(model.relabelling.xi.values()) <= 3)
    result = octsvm.solve(model, callback=lambda progress: progress.phase == "compiling", time_limit=5)
    assert result.stop == "interrupted"
    assert result.tree is None or result.objective == pytest.approx(pyo.value(model.objective))


@pytest.mark.parametrize("name", ["oct_h", "octsvm"])
@pytest.mark.slow
def test_building_ends_with_the_limit(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    X, y = sloped(3000, 60)
    formulation(name).load_libraries()
    monkeypatch.setattr(strategies, "MODEL_SECONDS", 0.0)  # so that the model is begun
    with caplog.at_level(logging.WARNING), at_most(0.6 + 2.0):
        result = octsvm.fit(name, X, y, depth=3, time_limit=0.6, strategy="exact")
    assert result.stop == "time_limit"
    assert result.notes[0].startswith(("no time to build the model (", "no time to hand the model over ("))
    assert not caplog.records
    assert not rows.PYOMO.filters


@pytest.mark.slow
def test_the_command_line_has_a_line_before_there_is_any_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shown, "FIRST", 0.1)
    monkeypatch.setattr(shown, "SILENCE", 0.2)
    said: list[str] = []

    def told(word: str) -> bool:
        said.append(capsys.readouterr().err)
        return "".join(said).endswith(f"{word}\n")

    with shown.SolveProgress(quiet=False) as line:
        wait_until(lambda: told("preparing"))
        line.update(octsvm.Progress(0.7, 12.5, 1.0, 0, 0, "building"))
        wait_until(lambda: told("building"))
    assert "".join(said).splitlines()[0].endswith("preparing")
    assert told("building")
    with shown.SolveProgress(quiet=True):
        time.sleep(0.5)
    assert not capsys.readouterr().err


@pytest.mark.slow
def test_the_longer_a_solve_takes_the_less_often_there_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with shown.SolveProgress(quiet=False) as line:
        line.began -= 1000
        line.update(octsvm.Progress(1.0, 12.5, 1.0, 0, 0, "bounding"))
        time.sleep(1.1)
        line.update(octsvm.Progress(1.0, 12.5, 1.1, 0, 0, "bounding"))
    assert capsys.readouterr().err.count("bounding") == 1


def test_rounds_and_nodes_are_told_once_there_are_some() -> None:
    assert str(Progress(1.0, 4.0, 3.0, 0, 0)).endswith("best tree 4  bound 3  gap 25.00%  solving")
    assert str(Progress(1.0, 4.0, 3.0, 0, 7)).endswith("solving  rounds 0  nodes 7")


def test_progress_says_how_far_apart_incumbent_and_bound_are() -> None:
    assert Progress(1.0, 4.0, 3.0, 1, 0).gap == 0.25
    assert Progress(1.0, math.inf, 0.0, 0, 0).gap == math.inf
