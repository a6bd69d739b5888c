"""Limits, interruption, starts and what a result says about them."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest
from waiting import PATIENCE

import octsvm
from octsvm.result import OWN_SEARCH, STATUSES, STOPS
from octsvm.solving.strategies import LEVEL_ROWS

HARD = {"depth": 2, "c1": 1.0, "c2": 1.0, "c3": 0.1}


def hard(n: int = 60, p: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    y = octsvm.flip_labels(np.where(X.sum(axis=1) > p / 2, 1, -1), 0.2, seed)
    return X, y


@pytest.mark.parametrize("limit", [5, {"nodes": 40}, {"rounds": 1, "nodes": 30}])
@pytest.mark.slow
def test_work_limit_repeats_exactly(limit: object) -> None:
    X, y = hard(16, 2)
    one, two = (octsvm.fit("octsvm", X, y, work_limit=limit, time_limit=300, **HARD) for _ in range(2))
    assert one.stop == "work_limit"
    assert one.objective == two.objective
    assert one.bound == two.bound
    assert one.nodes == two.nodes
    assert not isinstance(limit, dict) or one.rounds <= limit.get("rounds", one.rounds)
    assert one.tree.to_json() == two.tree.to_json()


@pytest.mark.parametrize(("phase", "n"), [("bounding", 60), ("solving", LEVEL_ROWS - 1)])
@pytest.mark.slow
def test_ctrl_c_returns_the_incumbent(phase: str, n: int) -> None:
    # Tables of LEVEL_ROWS and more have a bound from their top level first, which takes a share of the long limit.
    X, y = hard(n)
    bounds: list[float] = []
    pressed = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT))

    def tell(progress: octsvm.Progress) -> bool:
        if progress.phase == phase and progress.bound > 0 and not bounds:
            bounds.append(progress.bound)
            pressed.start()
        return False

    try:
        result = octsvm.fit("octsvm", X, y, callback=tell, time_limit=PATIENCE, strategy="exact", **HARD)
        pressed.join()
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C came through to the caller")
    assert result.stop == "interrupted"
    assert result.status in ("feasible", "fallback")
    assert result.objective > 0
    assert result.bound >= bounds[0]


@pytest.mark.parametrize(
    ("place", "strategy"),
    [
        (p, s)
        for p in ("strategies.build_from", "strategies.solve_with")
        for s in ("balanced", "exact", "heuristic")
    ]
    + [("heuristics.load", "balanced"), ("heuristics.load", "heuristic")],
)
@pytest.mark.quick_cases("heuristics.load-*")
def test_ctrl_c_before_anything_is_solved(place: str, strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from octsvm import heuristics
    from octsvm.solving import strategies

    def pressed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    module, name = place.split(".")
    monkeypatch.setattr({"strategies": strategies, "heuristics": heuristics}[module], name, pressed)
    X, y = hard(40)
    result = octsvm.fit("octsvm", X, y, strategy=strategy, time_limit=4, **HARD)
    assert result.stop == "interrupted"
    again = octsvm.evaluate("octsvm", result.tree, X, y, **HARD)
    assert again.objective == pytest.approx(result.objective, rel=1e-9)
    searched = strategy != "exact" and place != "heuristics.load"
    assert result.status == ("feasible" if searched else "fallback")
    if place != "heuristics.load" or strategy == "balanced":
        assert "Ctrl-C" in result.notes[0]
    if place == "heuristics.load":
        assert result.solver == OWN_SEARCH  # nothing was handed over after Ctrl-C


@pytest.mark.slow
def test_log_file_collects_all_rounds_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    X, y = hard(9, 2, seed=1)
    log = tmp_path / "engine.log"
    result = octsvm.fit("octsvm", X, y, depth=1, log=log)
    assert result.rounds > 1
    assert capfd.readouterr() == ("", "")
    assert log.read_text().count("Running HiGHS") + log.read_text().count("Solving report") >= result.rounds


def test_result_is_complete() -> None:
    X, y = hard(12, 2)
    result = octsvm.fit("octsvm", X, y, depth=1)
    assert result.status in STATUSES
    assert result.stop in STOPS
    assert sum(result.terms.values()) == pytest.approx(result.objective)
    assert {"python", "octsvm", "pyomo", "numpy", "highspy"} <= set(result.versions)
    text = result.summary()
    for part in ("octsvm", "objective", "bound", "gap", "optimal"):
        assert part in text
    frame = result.to_frame()
    assert len(frame) == 1
    assert frame.loc[0, "objective"] == result.objective
    assert json.loads(result.to_json())["tree"]["kind"] == "margin"
    assert "<table>" in result._repr_html_()
    assert list(result.relabelled().columns) == ["row", "node", "cost"]


def test_a_quadratic_row_of_the_users_own_is_refused_by_name() -> None:
    X, y = hard(8, 2)
    model = octsvm.build("octsvm", X, y, depth=0, norm="l1")
    model.mine = pyo.Constraint(expr=model.split.omega[1, 0] ** 2 <= 1)
    with pytest.raises(octsvm.UnsupportedProblem, match="mine"):
        octsvm.solve(model)


@pytest.mark.slow
def test_a_bound_below_the_optimum_given_as_upper_bound_proves_nothing() -> None:
    X, y = hard(9, 2, seed=2)
    params = {"depth": 1, "c1": 2.0, "c2": 1.5, "c3": 0.1}
    best = octsvm.fit("octsvm", X, y, **params)
    assert best.status == "optimal"
    for share in (0.5, 0.9):
        result = octsvm.solve(octsvm.build("octsvm", X, y, upper_bound=share * best.objective, **params))
        assert result.status != "optimal"
        assert result.bound <= best.objective * (1 + 1e-6)


def test_a_row_added_inside_a_block_is_noticed() -> None:
    X, y = hard(12, 2)
    model = octsvm.build("octsvm", X, y, depth=1, c1=2.0, c2=0.1, c3=0.1)
    model.relabelling.none = pyo.Constraint(expr=sum(model.relabelling.xi.values()) <= 0)
    result = octsvm.solve(model)
    assert result.status != "optimal" or not result.tree.relabelled
    assert any("upper_bound=" in note for note in result.notes)
