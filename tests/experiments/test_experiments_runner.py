"""Runs of experiments: killed, stopped, shared, resumed, on processes and on a cluster, the cells are the same."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import small_runs
from small_runs import comparable, gone, load, protocol, until, whole
from waiting import wait_until

import octsvm
from octsvm.experiments import Fit, Protocol, Store, Summary, batch_queue, part_data, read_cells, run
from octsvm.experiments.cells import Part
from octsvm.experiments.progress import Lines, RunProgress, Snapshot, duration, remaining

posix = pytest.mark.skipif(os.name != "posix", reason="signals and forks of POSIX")


def small(store: Path, which: Protocol | None = None, **options: Any) -> Summary:
    return run(which or protocol(), store, load=load, **options)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    return small_runs.undisturbed(tmp_path_factory.mktemp("undisturbed") / "cells.sqlite")


@pytest.fixture(scope="module")
def start() -> Iterator[Any]:
    with small_runs.server() as function:
        yield function


# -- parts ----------------------------------------------------------------------------------------------------------


def data(noise: float = 0.3, fold: int = 0, inner: bool = False, repetition: int = 0, **changes: Any) -> Any:
    return part_data(protocol(**changes), Part("one", noise, repetition, fold, inner), load("one"))


def rows(X: Any) -> set[bytes]:
    return {row.tobytes() for row in np.asarray(X)}


def test_every_row_trains_once_and_scores_in_the_other_folds() -> None:
    everything = rows(load("one").X)
    folds = [data(fold=k) for k in range(4)]
    assert Counter(row for one in folds for row in rows(one.X)) == dict.fromkeys(everything, 1)
    for one in folds:
        assert rows(one.X) | rows(one.X_score) == everything
        assert len(one.X) + len(one.X_score) == small_runs.ROWS
    other = data(repetition=1)
    assert rows(other.X) != rows(folds[0].X)
    assert rows(data(seed=1).X) != rows(folds[0].X)


def test_labels_are_those_of_the_rows_and_exactly_the_share_is_flipped() -> None:
    given = load("one")
    known = {row.tobytes(): label for row, label in zip(given.X.to_numpy(), given.y, strict=True)}
    for noise in (0.0, 0.2, 0.3, 0.4, 1.0):
        one = data(noise)
        assert [known[row.tobytes()] for row in one.X] == one.y_given.tolist()
        assert [known[row.tobytes()] for row in one.X_score] == one.y_score.tolist()
        assert one.flipped.sum() == round(noise * len(one.y))
        assert set(one.y) <= {-1, 1}


def test_flips_of_less_noise_are_among_those_of_more() -> None:
    flipped = [data(noise).flipped for noise in (0.2, 0.3, 0.4)]
    assert (flipped[0] <= flipped[1]).all()
    assert (flipped[1] <= flipped[2]).all()
    assert (data(0.3, fold=0).flipped[:20] != data(0.3, fold=1).flipped[:20]).any()


def test_inner_part_splits_the_noisy_training_rows_and_is_scored_on_noisy_labels() -> None:
    full, inner = data(), data(inner=True)
    noisy = {row.tobytes(): label for row, label in zip(full.X, full.y, strict=True)}
    assert rows(inner.X) | rows(inner.X_score) == rows(full.X)
    assert len(inner.y) == int(0.7 * len(full.y))
    assert [noisy[row.tobytes()] for row in inner.X] == inner.y.tolist()
    assert [noisy[row.tobytes()] for row in inner.X_score] == inner.y_score.tolist()
    share = (full.y == 1).mean()
    assert abs((inner.y == 1).mean() - share) < 1 / len(inner.y)
    assert rows(data(0.0, inner=True).X) != rows(full.X)


def test_parts_that_cannot_be_made_say_why() -> None:
    few = load("one")
    few.X, few.y = few.X[:3], few.y[:3]
    with pytest.raises(octsvm.InvalidData, match="3 rows, too few for 4 folds"):
        part_data(protocol(), Part("one", 0.0, 0, 0, False), few)
    few.X, few.y = load("one").X[:5], load("one").y[:5]
    with pytest.raises(octsvm.InvalidData, match="too few for an inner split"):
        part_data(protocol(), Part("one", 0.0, 0, 3, True), few)
    few.y = few.y * 2
    with pytest.raises(octsvm.InvalidData, match="1 and -1"):
        part_data(protocol(), Part("one", 0.0, 0, 0, False), few)


# -- what is recorded -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_cells_are_those_of_scikit_learn(undisturbed: pd.DataFrame) -> None:
    from sklearn.tree import DecisionTreeClassifier

    assert len(undisturbed) == 2 * 2 * 4 * 2 * 2 * len(small_runs.GRID)
    found = undisturbed[(undisturbed["method"] == "cart") & (undisturbed["set"] == "one")]
    found = found[(found["noise"] == 0.3) & (found["fold"] == 2)]
    for inner in (False, True):
        one = data(fold=2, inner=inner)
        for row in found[found["inner"] == inner].to_dict("records"):
            tree = DecisionTreeClassifier(
                max_depth=3,
                min_samples_leaf=2 if not inner else 1,  # 5 % of 22 and 15 rows, rounded up
                ccp_alpha=small_runs.GRID[row["position"]],
                random_state=one.part.seed(0) % 2**32,
            ).fit(one.X, one.y)
            assert row["n_right"] == (tree.predict(one.X_score) == one.y_score).sum()
            assert row["train_right"] == (tree.predict(one.X) == one.y).sum()
            assert (row["n_score"], row["n_train"]) == (len(one.y_score), len(one.y))
            assert row["splits"] == tree.get_n_leaves() - 1
            assert row["flipped"] == one.flipped.sum()
            assert row["params"] == f'{{"alpha":{small_runs.GRID[row["position"]]}}}'


@pytest.mark.slow
def test_one_complete_repetition_comes_first(tmp_path: Path) -> None:
    store = tmp_path / "cells.sqlite"
    small(store, protocol(repetitions=2, noise=[0.3], rules=["oracle_mean"]))
    with closing(sqlite3.connect(store)) as db:
        order = db.execute(
            "SELECT repetition FROM cells JOIN batches ON batch = id ORDER BY time, repetition"
        ).fetchall()
    assert order == sorted(order)


# -- resume ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_done_twice_and_a_store_may_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: pd.DataFrame
) -> None:
    store, log = tmp_path / "cells.sqlite", tmp_path / "log"
    monkeypatch.setenv(small_runs.LOG, str(log))

    def fits() -> int:
        lines = log.read_text().splitlines()
        assert len(lines) == len(set(lines))
        return len(lines)

    assert small(store, methods=["svm"], sets=["two"]).fitted == fits() == 64
    assert small(store, methods=["svm"]).fitted == 64
    found = small(store)
    assert (found.total, found.done, found.fitted) == (256, 256, 128)
    assert small(store).fitted == 0
    assert fits() == 256
    pd.testing.assert_frame_equal(comparable(read_cells(store)), undisturbed)
    assert small(store, repetitions=2).fitted == 256
    assert small(store, protocol(sets=["one", "two", "three"])).fitted == 128
    assert fits() == 256 * 2 + 128
    assert small(store, repetitions=1).fitted == 0  # a smaller protocol does not shrink the store
    with Store.open(store) as opened:
        assert (opened.protocol.repetitions, opened.protocol.sets) == (2, ("one", "two", "three"))
        # The third set in two repetitions was never asked for.
        assert opened.counts()["total"].sum() == 256 * 3
    whole(store)


@posix
@pytest.mark.slow
def test_twenty_kills_change_nothing(start: Any, tmp_path: Path, undisturbed: pd.DataFrame) -> None:
    store, rng = tmp_path / "cells.sqlite", random.Random(5)
    moments = sorted(rng.sample(range(len(undisturbed) * 2 // 3), 20))  # a slow machine is late by many cells
    for moment in moments:
        pid = start(store)
        until(store, moment)
        time.sleep(rng.random() * 0.005)
        os.kill(pid, signal.SIGKILL)
        assert wait_until(partial(gone, pid), every=0.001)
    killed = small_runs.done(store)
    assert killed < len(undisturbed)
    pid = start(store)
    until(store, len(undisturbed))
    assert wait_until(partial(gone, pid), every=0.001)
    pd.testing.assert_frame_equal(comparable(read_cells(store)), undisturbed)
    whole(store)
    again = Counter(Path(f"{store}.log").read_text().split("\n")[:-1])
    # A kill costs one cell: what was fitted twice was never recorded the first time.
    assert sum(again.values()) <= len(undisturbed) + 20


@posix
@pytest.mark.slow
def test_two_runs_share_a_store(start: Any, tmp_path: Path, undisturbed: pd.DataFrame) -> None:
    store = tmp_path / "cells.sqlite"
    pids = [start(store), start(store)]
    assert wait_until(lambda: all(map(gone, pids)))
    pd.testing.assert_frame_equal(comparable(read_cells(store)), undisturbed)
    whole(store)
    once = Path(f"{store}.log").read_text().split("\n")[:-1]
    assert len(once) == len(set(once)) == len(undisturbed)
    with closing(sqlite3.connect(store)) as db:
        shares = db.execute("SELECT COUNT(*) FROM cells GROUP BY run").fetchall()
    assert len(shares) == 2
    assert min(shares)[0] > 20


@posix
@pytest.mark.slow
def test_half_a_log_of_changes_is_survived(start: Any, tmp_path: Path, undisturbed: pd.DataFrame) -> None:
    store, rng = tmp_path / "cells.sqlite", random.Random(3)
    pid = start(store)
    until(store, 150)
    os.kill(pid, signal.SIGKILL)
    assert wait_until(partial(gone, pid), every=0.001)
    main, changes = store.read_bytes(), Path(f"{store}-wal").read_bytes()
    assert len(changes) > 10_000
    kept = []
    for k in range(3):
        torn = tmp_path / f"torn{k}.sqlite"
        torn.write_bytes(main)
        left = changes[: rng.randrange(len(changes) // 2, len(changes))]
        Path(f"{torn}-wal").write_bytes(left + b"\x00torn" * (k % 2))
        if small_runs.done(torn) == 0:
            continue  # torn within the first transaction: an empty file
        kept.append(small_runs.done(torn))
        assert small(torn).complete
        pd.testing.assert_frame_equal(comparable(read_cells(torn)), undisturbed)
        whole(torn)
    assert kept
    assert max(kept) < 200


def test_a_batch_that_kills_its_workers_is_given_up_for_now(tmp_path: Path) -> None:
    path = tmp_path / "cells.sqlite"
    with Store.create(path, protocol()) as store:
        queue = batch_queue.BatchQueue(store, protocol(), ("one",), ("svm",), load)
        queue.run = store.begin()
        for attempt in range(batch_queue.ATTEMPTS):
            tasks = queue.tasks()
            deadly, other = next(tasks), next(tasks)
            assert deadly.batch == queue.selected[0].id
            assert other.batch == queue.selected[attempt + 1].id
            queue.died([deadly.batch])
            queue.finished(other.batch)
        assert queue.given_up == ["one/0/r0/f0/full/svm"]
        assert queue.selected[0].id not in {task.batch for task in queue.tasks()}
        assert store.claim(queue.selected[0].id, store.begin()) == "claimed"
        queue.died()
        assert queue.wait()


# -- Ctrl-C and failures --------------------------------------------------------------------------------------------


CELLS = 64  # of a protocol with a method of a test's own


def odd(monkeypatch: pytest.MonkeyPatch, fit: Any) -> Protocol:
    """One set, and a method of a test's own: ``fit`` of the data and a point of the grid yields what it fits there."""

    def fit_grid(data: Any, settings: Any, spec: Any, seed: int, skip: Any) -> Iterator[tuple[int, Fit]]:
        for k in range(len(settings)):
            if k not in skip:
                yield from ((k, found) for found in fit(data, k))

    monkeypatch.setattr(sys.modules[__name__], "fit_grid", fit_grid, raising=False)
    method = {"title": "Odd", "kind": f"{__name__}:fit_grid", "grid": {"a": [0, 1, 2, 3]}}
    return protocol(sets=["one"], methods={"odd": method})


def always(label: int) -> Any:
    return lambda X: np.full(len(X), label)


def test_a_fit_that_ctrl_c_cut_short_is_no_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(data: Any, k: int) -> Iterator[Fit]:
        if k == 2 and data.part.fold == 1 and not stopped:
            stopped.append(True)
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)
            except KeyboardInterrupt:
                yield Fit(always(-1), 0.0, status="interrupted")  # as a solver does
        yield Fit(always(1), 0.0)

    stopped: list[bool] = []
    which, store = odd(monkeypatch, fit), tmp_path / "cells.sqlite"
    with pytest.raises(KeyboardInterrupt):
        small(store, which)
    assert stopped
    whole(store)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    done = read_cells(store)
    assert 16 < len(done) < CELLS
    assert "interrupted" not in set(done["status"])
    assert small(store, which).complete
    assert read_cells(store)["status"].tolist() == ["ok"] * CELLS


def test_failed_fits_are_cells_with_their_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = True

    def fit(data: Any, k: int) -> Iterator[Fit]:
        if k == 1 and broken:
            raise ValueError("no tree\nhas one  leaf")
        if k == 3 and broken:
            yield Fit(lambda X: 1 // 0, 0.0)  # type: ignore[arg-type,return-value]
        believed = np.where(data.flipped, -data.y, data.y)
        yield Fit(always(1), 0.5, objective=2.0, believed=believed, extra={"rounds": k})

    which, store = odd(monkeypatch, fit), tmp_path / "cells.sqlite"
    found = small(store, which)
    assert found.complete
    assert found.failed == found.total // 2
    cells = read_cells(store)
    assert cells.groupby("position")["error"].unique().map(list).to_dict() == {
        0: [""],
        1: ["ValueError: no tree has one leaf"],
        2: [""],
        3: ["ZeroDivisionError: integer division or modulo by zero"],
    }
    failed = cells["status"] == "failed"
    assert set(cells["position"][failed]) == {1, 3}
    assert (cells["n_right"][failed] == 0).all()
    assert cells["objective"][failed].isna().all()
    assert (cells["objective"][~failed] == 2).all()
    assert (cells["relabelled"][~failed] == cells["flipped"][~failed]).all()
    assert (cells["both"][~failed] == cells["flipped"][~failed]).all()
    assert set(cells["extra"][~failed]) == {'{"rounds":0}', '{"rounds":2}'}
    assert small(store, which).fitted == 0
    with Store.open(store) as opened:
        assert opened.failures()["cells"].sum() == found.failed
        assert opened.counts().loc["odd", "failed"] == found.failed
    broken = False
    again = small(store, which, retry_failed=True)
    assert (again.fitted, again.failed) == (found.failed, 0)
    whole(store)


def test_a_method_that_ends_early_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(data: Any, k: int) -> Iterator[Fit]:
        if k == 0:
            yield Fit(always(1), 0.0)

    store = tmp_path / "cells.sqlite"
    assert small(store, odd(monkeypatch, fit)).failed == CELLS * 3 // 4
    assert "ended before" in read_cells(store)["error"].iloc[1]


@pytest.mark.slow
def test_what_cannot_run_is_refused_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "cells.sqlite"
    for options, part in (
        ({"methods": ["oct"]}, "'oct'; the protocol has cart, svm"),
        ({"sets": ["three"]}, "'three'; the protocol has one, two"),
        ({"sets": []}, "an empty list"),
        ({"jobs": 0}, "jobs=0"),
        ({"repetitions": 0}, "repetitions=0"),
    ):
        with pytest.raises(octsvm.InvalidParameter, match=part):
            small(store, **options)
    assert not store.exists()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(octsvm.MissingPackage, match=r"octsvm\[dask\]"):
        small(store, scheduler="local")
    methods = {"stree": {"title": "STree", "kind": "stree", "grid": {"C": [1.0]}}}
    both = protocol(methods=protocol().model_dump()["methods"] | methods, sets=["one"])
    with pytest.raises(octsvm.MissingPackage, match="pip install STree"):
        small(store, both, methods=["stree"])
    assert small(store, both).skipped == ("stree",)


# -- progress -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_progress_counts_up_and_guesses_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_queue, "LOOK", 0.02)
    seen: list[Snapshot] = []
    small(tmp_path / "cells.sqlite", progress=seen.append)
    done = [s.done for s in seen]
    assert done == sorted(done)
    assert len(set(done)) > 3
    assert (seen[-1].done, seen[-1].total, seen[-1].remaining) == (256, 256, 0.0)
    middle = next(s for s in seen if s.done > 100)
    left = seen[-1].elapsed - middle.elapsed
    assert left / 10 < middle.remaining < left * 10


def test_the_guess_weighs_methods_by_what_their_fits_took() -> None:
    guess = remaining({"a": 10, "b": 2}, {"a": 1.0, "b": 30.0}, {"a": 10, "b": 3}, 0.5)
    assert guess == 0.5 * (10 * 0.1 + 2 * 10)
    assert remaining({"c": 4}, {"a": 1.0}, {"a": 2}, 1.0) == 2.0
    assert np.isnan(remaining({"a": 4}, {}, {}, 1.0))
    assert [duration(s) for s in (3.2, 99, 600, 7200)] == ["3 s", "99 s", "10 min", "2.0 h"]


def test_a_line_a_minute_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    now = Snapshot(100, 40, 1, 40, 20.0, 30.0)
    with (
        RunProgress(sys.stderr, every=0.0) as shown,
        RunProgress(sys.stderr) as patient,
        RunProgress(sys.stderr, quiet=True) as quiet,
    ):
        for one in (shown, patient, quiet):
            one(now)
    assert capsys.readouterr().err == "40 of 100 cells, 1 failed, 20 s so far, about 30 s left\n"
    with caplog.at_level("INFO", "octsvm.experiments"):
        Lines(0.0)(now)
        Lines()(now)
    assert caplog.messages == [str(now)]


@pytest.mark.slow
def test_a_bar_on_a_terminal() -> None:
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    with RunProgress(screen) as shown:
        shown(Snapshot(1000, 400, 1, 40, 20.0, 300.0))
    assert "400 of 1,000 cells (1 failed)" in screen.getvalue()
    assert "about 5 min left" in screen.getvalue()
