"""What a worker does: fit a batch cell by cell, score each fit, and keep it (or hand it back)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .cells import Fit, PartData
from .methods import fit_grid
from .protocol import MethodSpec
from .store import CellRow, LeaseLost, Store, machine

LOOK = 0.5  # seconds between looks at whether the run still lives


@dataclass(frozen=True)
class Task:
    """A batch on its way to a worker, with all that it needs."""

    batch: int
    run: int
    spec: MethodSpec
    data: PartData
    seed: int
    skip: frozenset[int]
    keep_trees: bool = False


def fit_batch(task: Task) -> Iterator[CellRow]:
    """Fit and score the cells of a batch that are not in ``task.skip``, in the order of the grid.

    A fit that raises is a failed cell with its message; the method then begins again behind it.
    """
    from threadpoolctl import threadpool_limits

    done, settings = set(task.skip), task.spec.settings()
    positions = range(len(settings))
    with threadpool_limits(1):  # workers share the machine: BLAS and OpenMP get one thread each
        while len(done) < len(positions):
            at = next(k for k in positions if k not in done)
            began = time.perf_counter()
            try:
                method = fit_grid(task.spec.kind)
                for at, fit in method(task.data, settings, task.spec, task.seed, frozenset(done)):
                    row = _scored(task, at, fit)
                    done.add(at)
                    yield row
                    at = next((k for k in positions if k not in done), -1)
                    began = time.perf_counter()
                if at >= 0:
                    raise RuntimeError("the method ended before this point of its grid")
            except Exception as error:
                if at >= 0:
                    done.add(at)
                    yield _failed(task, at, error, time.perf_counter() - began)


def _scored(task: Task, index: int, fit: Fit) -> CellRow:
    data, flipped = task.data, task.data.flipped
    relabelled = None if fit.believed is None else np.asarray(fit.believed) != data.y
    return CellRow(
        position=index,
        n_right=int(np.sum(fit.predict(data.X_score) == data.y_score)),
        n_score=len(data.y_score),
        train_right=int(np.sum(fit.predict(data.X) == data.y)),
        n_train=len(data.y),
        objective=float(fit.objective),
        bound=float(fit.bound),
        status=fit.status or "ok",
        seconds=round(float(fit.seconds), 6),
        splits=int(fit.splits),
        relabelled=None if relabelled is None else int(relabelled.sum()),
        flipped=int(flipped.sum()),
        both=None if relabelled is None else int((relabelled & flipped).sum()),
        extra=json.dumps(dict(fit.extra), separators=(",", ":"), default=float) if fit.extra else "",
        worker=str(os.getpid()),
        tree=fit.tree.to_json() if task.keep_trees and fit.tree is not None else None,
    )


def _failed(task: Task, index: int, error: Exception, seconds: float) -> CellRow:
    """The cell of a fit that raised: 0 is neither class, so no row is right."""
    none = Fit(lambda X: np.zeros(len(X), dtype=np.int64), seconds, status="failed")
    return replace(
        _scored(task, index, none), error=f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000]
    )


# -- the ways home ----------------------------------------------------------------------------------------------


def keep_batch(store: Store, task: Task, stopped: Callable[[], bool] = lambda: False) -> int:
    """Fit a batch and record every cell at once; returns the batch, also where another run has taken it over.

    Raises
    ------
    KeyboardInterrupt
        ``stopped`` says so: a fit that Ctrl-C has cut short is not recorded.
    """
    with contextlib.suppress(LeaseLost):
        for row in fit_batch(task):
            if stopped():
                raise KeyboardInterrupt
            store.record(task.batch, task.run, [row])
    return task.batch


def keep_in_worker(path: Path, task: Task) -> int:
    """The same in a worker process, which opens the store once."""
    return keep_batch(_opened(path), task)


_opened = lru_cache(maxsize=1)(Store)


def return_batch(task: Task) -> tuple[list[CellRow], dict[str, Any]]:
    """Fit a batch, perhaps on another machine, and hand its rows back with versions and kind of that machine."""
    return list(fit_batch(task)), machine()


@contextlib.contextmanager
def on_interrupt(handler: Any) -> Iterator[None]:
    """What Ctrl-C does meanwhile; in another thread than the main one, to which signals belong, nothing changes."""
    with contextlib.ExitStack() as undo:
        with contextlib.suppress(ValueError):
            undo.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, handler))
        yield


def end_with_parent(parent: int) -> None:
    """Prepare a worker process: Ctrl-C is for the run to handle, and where the run is gone, so is the worker."""
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.name != "posix":
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
