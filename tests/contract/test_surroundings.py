"""Engines among what is the caller's: threads, streams, warnings, seeds, locale, logging."""

from __future__ import annotations

import contextlib
import io
import locale
import logging
import math
import shutil
import sqlite3
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import engines
import numpy as np
import pytest
import scipy.sparse as sp
from engines import Entry, every_entry, every_way, hard, solve
from waiting import PATIENCE

import octsvm
from octsvm.backends.matrix_program import LinearProgram
from octsvm.backends.mps import write_model


@every_way
@pytest.mark.quick_cases("highs")
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
            return len(told) > 1

        result = solve(entry, hard(), time_limit=PATIENCE, callback=callback)
        assert own.execute("select count(*) from seen").fetchone()[0] == len(told)
        assert 0 <= result.bound <= result.objective < math.inf
        threads.add(threading.get_ident())
        done.append(True)

    done: list[bool] = []
    run()
    assert len(threads) == 1
    away = threading.Thread(target=run)  # a caller that is not the main thread
    threads.clear()
    told.clear()
    away.start()
    away.join(PATIENCE)
    assert done == [True, True]
    assert len(told) > 1
    assert len(threads) == 1


@every_way
@pytest.mark.quick_cases("highs", "cbc")
def test_an_exception_of_the_callback_reaches_the_caller_at_once(entry: Entry) -> None:
    class MineError(Exception):
        pass

    calls: list[float] = []

    def callback(progress: octsvm.Progress) -> bool:
        calls.append(progress.seconds)
        if progress.seconds > 0.3:
            raise MineError("of my own")
        return False

    with pytest.raises(MineError, match="of my own"):
        solve(entry, hard(), time_limit=PATIENCE, callback=callback)
    assert sum(seconds > 0.3 for seconds in calls) == 1


@cache
def optimum() -> float:
    """Of the model that these tests solve."""
    return solve("highs", engines.tree_model(1, 5, 1)).objective


class _Full(io.StringIO):
    def write(self, text: str) -> int:
        raise RuntimeError(f"no room for {text!r}")


@every_way
@pytest.mark.parametrize(
    "stream", [_Full(), io.TextIOWrapper(io.BytesIO(), "ascii"), None], ids=["fails", "ascii", "none"]
)
@pytest.mark.quick_cases("*-highs")
@pytest.mark.every_value
def test_a_stream_that_fails_costs_nothing(
    entry: Entry, stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, known = engines.tree_model(1, 5, 1), optimum()
    monkeypatch.setattr(sys, "stdout", stream)
    result = solve(entry, model, log=True)
    monkeypatch.undo()
    assert (result.status, result.objective) == ("optimal", pytest.approx(known, rel=1e-4))


# ---------------------------------------------------------------------------------------------- set-ups of the user's


@contextlib.contextmanager
def numpy_that_raises() -> Iterator[Callable[[], Any]]:
    with np.errstate(all="raise"):
        yield np.geterr


@contextlib.contextmanager
def warnings_as_errors() -> Iterator[Callable[[], Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield lambda: list(warnings.filters)


@contextlib.contextmanager
def logging_that_fails() -> Iterator[Callable[[], Any]]:
    class Fails(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError(record.getMessage())

    root, logger, handler = logging.getLogger(), logging.getLogger("octsvm"), Fails()
    root.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield lambda: (list(root.handlers), root.level, logger.level, logging.root.manager.disable)
    finally:
        root.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


@pytest.fixture(scope="module")
def locales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a locale in which numbers have a decimal comma."""
    if shutil.which("localedef") is None:
        pytest.skip("localedef, which makes a locale, is not here")
    folder = tmp_path_factory.mktemp("locales")
    subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"], check=True)
    return folder


@pytest.fixture
def german(locales: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Numbers have a decimal comma, here and in processes that are started."""
    for name, value in (("LOCPATH", str(locales)), ("LC_ALL", "de_DE.UTF-8"), ("LANG", "de_DE.UTF-8")):
        monkeypatch.setenv(name, value)
    before = locale.setlocale(locale.LC_ALL)
    locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
    assert locale.localeconv()["decimal_point"] == ","
    yield
    after = locale.setlocale(locale.LC_ALL)
    locale.setlocale(locale.LC_ALL, before)
    assert after == "de_DE.UTF-8"


@every_entry
def test_set_ups_neither_count_nor_are_touched(
    entry: Entry, german: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at once: each of them alone would show by what it raises, or by a number that is cut off at its comma."""
    model, known = engines.tree_model(1, 5, 1), optimum()
    own = {"highs": {"mip_rel_gap": "0.00001"}, "scip": {"limits/gap": "0.00001"}}
    monkeypatch.setenv("PYTHONWARNINGS", "error")  # what a process of the engine's own would inherit
    with numpy_that_raises() as errors, warnings_as_errors() as filters, logging_that_fails() as handlers:
        before = errors(), filters(), handlers()
        result = solve(entry, model, options=own.get(entry.name))
        assert (errors(), filters(), handlers()) == before
    assert (result.status, result.objective) == ("optimal", pytest.approx(known, rel=1e-4))
    assert not any("broke down" in note for note in result.notes)


def test_files_of_a_model_have_decimal_points(german: None, tmp_path: Path) -> None:
    one = np.array([1.25])
    program = LinearProgram(
        [0], one, 0.0, 0 * one, one, np.array([True]), sp.csr_array([[0.3]]), one / 3, one
    )
    for ending in ("mps", "lp"):
        write_model(program, tmp_path / f"m.{ending}", 1.0)
        text = (tmp_path / f"m.{ending}").read_text()
        assert "1.25" in text
        assert "," not in text
