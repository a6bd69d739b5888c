"""Engines among what is the caller's: threads, streams, warnings, seeds, locale, logging."""

from __future__ import annotations

import contextlib
import io
import math
import sqlite3
import sys
import threading
from typing import Any

import engines
import pytest
from engines import ENTRIES, Entry, solve

import octsvm

every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=str)


def hard() -> Any:
    """A model that takes minutes, below the ceilings of the free licences."""
    return engines.tree_model(0, 36, 4, c1=1.0, c2=1.0, c3=0.1)


@every_entry
def test_the_callback_comes_on_the_callers_thread(entry: Entry) -> None:
    told: list[octsvm.Progress] = []
    threads: set[int] = set()

    def run() -> None:
        own = sqlite3.connect(":memory:")  # refuses every thread but the one that made it
        own.execute("create table seen (bound real, incumbent real)")

        def callback(progress: octsvm.Progress) -> bool:
            told.append(progress)
            threads.add(threading.get_ident())
            own.execute("insert into seen values (?, ?)", (progress.bound, progress.incumbent))
            return False

        result = solve(entry, hard(), time_limit=1.5, callback=callback)
        assert own.execute("select count(*) from seen").fetchone()[0] == len(told)
        assert 0 <= result.bound <= result.objective < math.inf
        threads.add(threading.get_ident())
        done.append(True)

    done: list[bool] = []
    run()
    away = threading.Thread(target=run)  # a caller that is not the main thread
    threads.clear()
    told.clear()
    away.start()
    away.join(30)
    assert done == [True, True]
    assert len(told) > 1
    assert len(threads) == 1


@every_entry
def test_an_exception_of_the_callback_reaches_the_caller_at_once(entry: Entry) -> None:
    class MineError(Exception):
        pass

    calls: list[float] = []

    def callback(progress: octsvm.Progress) -> bool:
        calls.append(progress.seconds)
        if progress.seconds > 0.7:
            raise MineError("of my own")
        return False

    with pytest.raises(MineError, match="of my own"):
        solve(entry, hard(), time_limit=60, callback=callback)
    assert calls[-1] < 4


@every_entry
def test_the_log_goes_to_standard_output_as_it_is_at_the_call(
    entry: Entry, capfd: pytest.CaptureFixture[str]
) -> None:
    cell = io.StringIO()
    with contextlib.redirect_stdout(cell):
        solve(entry, engines.tree_model(1, 5, 1), log=True)
    assert len(cell.getvalue().splitlines()) >= 3
    assert capfd.readouterr() == ("", "")


class _Full(io.StringIO):
    def write(self, text: str) -> int:
        raise RuntimeError(f"no room for {text!r}")


@every_entry
@pytest.mark.parametrize(
    "stream", [_Full(), io.TextIOWrapper(io.BytesIO(), "ascii"), None], ids=["fails", "ascii", "none"]
)
def test_a_stream_that_fails_costs_nothing(
    entry: Entry, stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = engines.tree_model(1, 5, 1)
    optimum = solve(entry, model).objective
    monkeypatch.setattr(sys, "stdout", stream)
    result = solve(entry, model, log=True)
    monkeypatch.undo()
    assert (result.status, result.objective) == ("optimal", pytest.approx(optimum, rel=1e-4))
