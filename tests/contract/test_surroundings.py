"""Engines among what is the caller's: threads, streams, warnings, seeds, locale, logging."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import math
import os
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
from engines import Entry, every_entry, hard, solve
from places import ROOT
from waiting import PATIENCE

import octsvm


@every_entry
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


@every_entry
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


@every_entry
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


@every_entry
@pytest.mark.parametrize("set_up", [numpy_that_raises, warnings_as_errors, logging_that_fails])
@pytest.mark.quick_cases("*-highs")
@pytest.mark.every_value
def test_a_set_up_neither_counts_nor_is_touched(
    entry: Entry, set_up: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, known = engines.tree_model(1, 5, 1), optimum()
    monkeypatch.setenv("PYTHONWARNINGS", "error")  # what a process of the engine's own would inherit
    with set_up() as state:
        before = state()
        result = solve(entry, model)
        assert state() == before
    assert (result.status, result.objective) == ("optimal", pytest.approx(known, rel=1e-4))
    assert not any("broke down" in note for note in result.notes)


LOCALE = """
import json, locale, sys
sys.path[:0] = ["tests"]
import engines, octsvm
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
assert locale.localeconv()["decimal_point"] == ","
found = {}
for name, options in json.loads(sys.argv[1]).items():
    try:
        result = engines.solve(name, engines.tree_model(1, 5, 1), options=options)
        found[name] = [result.status, result.objective, result.notes]
    except Exception as error:
        found[name] = [repr(error), None, []]
    assert locale.setlocale(locale.LC_ALL) == "de_DE.UTF-8"
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def german(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which numbers have a decimal comma."""
    folder = tmp_path_factory.mktemp("locales")
    if shutil.which("localedef") is None:
        pytest.skip("localedef, which makes a locale, is not here")
    subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"], check=True)
    return os.environ | {"LOCPATH": str(folder), "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}


@pytest.mark.slow
@pytest.mark.parametrize("stand_in", [False, True])
def test_a_decimal_comma(stand_in: bool, german: dict[str, str], stand_ins: Path) -> None:
    """All engines in one process, in which numbers have one."""
    own = {"highs": {"mip_rel_gap": "0.00001"}, "scip": {"limits/gap": "0.00001"}}
    names = [e.name for e in engines.ENTRIES if e.stand_in == stand_in and not e.absent]
    path = f"{stand_ins}{os.pathsep}" * stand_in + os.environ["PATH"]
    done = subprocess.run(
        [sys.executable, "-c", LOCALE, json.dumps({name: own.get(name, {}) for name in names})],
        cwd=ROOT,
        env=german | {"PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found) == names
    for name, (status, objective, notes) in found.items():
        assert (status, objective) == ("optimal", pytest.approx(optimum(), rel=1e-4)), name
        assert not any("broke down" in note for note in notes), name


@pytest.mark.slow
def test_files_of_a_model_have_decimal_points(german: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import locale, sys, numpy as np; from scipy.sparse import csr_array\n"
        "from octsvm.backends.mps import write_model\n"
        "from octsvm.backends.matrix_program import LinearProgram\n"
        "locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8'); one = np.array([1.25])\n"
        "p = LinearProgram([0], one, 0.0, 0 * one, one, np.array([True]), csr_array([[0.3]]), one / 3, one)\n"
        "for ending in ('mps', 'lp'): write_model(p, sys.argv[1] + '/m.' + ending, 1.0)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, env=german, check=True)
    for ending in ("mps", "lp"):
        text = (tmp_path / f"m.{ending}").read_text()
        assert "1.25" in text
        assert "," not in text
