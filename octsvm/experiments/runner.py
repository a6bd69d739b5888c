"""Run a protocol: batches from a store to workers, on this machine (joblib) or on a cluster (Dask).

The store is the only memory of a run. A run that is killed, or stopped with Ctrl-C, is gone on with by the same call;
several runs may work on one store at a time. On this machine every cell is durable as soon as it is fitted. On a
cluster the workers hand a whole batch back, and the client records it: what is lost with a worker, or with the
client, are the batches under way.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import InvalidParameter, MissingPackage
from .batch_queue import BatchQueue, Load, Summary
from .methods import available, require
from .progress import Lines, Snapshot
from .protocol import Protocol
from .store import Store
from .work import end_with_parent, keep_batch, keep_in_worker

log = logging.getLogger("octsvm.experiments")


def run(
    protocol: Protocol,
    store: str | Path,
    *,
    data_dir: str | Path | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    methods: Sequence[str] | None = None,
    sets: Sequence[str] | None = None,
    repetitions: int | None = None,
    progress: Callable[[Snapshot], None] | None = None,
    load: Load | None = None,
    keep_trees: bool = False,
    retry_failed: bool = False,
) -> Summary:
    """Fit and score all cells of a protocol that are not in the store yet, one complete repetition first.

    Parameters
    ----------
    protocol : Protocol
    store : path
        The SQLite file; made if it is not there. It may have grown by other sets, methods or repetitions.
    data_dir : path, optional
        Where :func:`octsvm.datasets.load` looks for the sets.
    jobs : int
        Worker processes on this machine; 1 works in this process.
    scheduler : str, optional
        Address of a Dask scheduler (``"tcp://host:8786"``), or ``"local"`` for a cluster of ``jobs`` processes.
    methods, sets : sequence of str, optional
        Only these of the protocol.
    repetitions : int, optional
        In place of the protocol's number.
    progress : callable, optional
        Is given a :class:`~octsvm.experiments.progress.Snapshot` every second, from another thread; by default a line
        a minute goes to the logger ``octsvm.experiments``.
    load : callable, optional
        From the name of a set to an object with ``X``, a table of shape (n, p), and ``y`` (n,) of -1 and 1, in place of
        ``octsvm.datasets.load``.
    keep_trees : bool
        Store the fitted trees as well, where a method has one.
    retry_failed : bool
        Fit failed cells again.

    Returns
    -------
    Summary

    Raises
    ------
    ProtocolMismatch, InvalidStore, OutputNotWritable
        The store is of another protocol, is none, or cannot be written.
    InvalidParameter, UnknownFormulation, MissingPackage
        A name that the protocol does not have; what a method does not take, and every fit would fail on; a package that a chosen
        method or the scheduler needs.
    SchedulerLost
        The scheduler does not answer (any more).
    KeyboardInterrupt
        After a clean stop; the same call goes on.
    """
    if jobs < 1:
        raise InvalidParameter(f"jobs={jobs} should be 1 or more.")
    if repetitions is not None:
        if repetitions < 1:
            raise InvalidParameter(f"repetitions={repetitions} should be 1 or more.")
        protocol = protocol.model_copy(update={"repetitions": repetitions})
    sets = _chosen("sets", sets, protocol.sets)
    names, skipped = _chosen_methods(protocol, methods, workers=jobs > 1 or scheduler is not None)
    if scheduler is not None and importlib.util.find_spec("distributed") is None:
        raise MissingPackage(
            "scheduler= needs dask.distributed, which is not installed: pip install 'octsvm[dask]'."
        )
    with Store.create(store, protocol) as opened:
        queue = BatchQueue(
            opened, protocol, sets, names, load or partial(_load, protocol, data_dir), keep_trees
        )
        if retry_failed:
            opened.forget_failed([b.id for b in queue.selected])
            queue.reload()
        with queue.working(progress or Lines()):
            if scheduler is not None:
                from .cluster import work

                work(queue, scheduler, jobs)
            elif jobs > 1:
                _processes(queue, jobs)
            else:
                _here(queue)
        return queue.summary(skipped)


def _chosen_methods(
    protocol: Protocol, asked: Sequence[str] | None, workers: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Methods to run, and those that are left out as a package is missing; one that was asked for has to be there."""
    names = _chosen("methods", asked, tuple(protocol.methods))
    skipped = tuple(n for n in names if asked is None and not available(protocol.methods[n].kind))
    for name in skipped:
        log.warning("%s is left out: a package that it needs is not installed", name)
    names = tuple(n for n in names if n not in skipped)
    for name in names:
        require(protocol.methods[name], workers)
    return names, skipped


def _chosen(what: str, asked: Sequence[str] | None, there: tuple[str, ...]) -> tuple[str, ...]:
    if asked is None:
        return there
    strange = [name for name in asked if name not in there]
    if strange or not asked:
        found = ", ".join(map(repr, strange)) or "an empty list"
        raise InvalidParameter(f"{what}: {found}; the protocol has {', '.join(there)}.")
    return tuple(name for name in there if name in asked)


def _load(protocol: Protocol, data_dir: str | Path | None, name: str) -> Any:
    from .. import datasets

    if name in protocol.tables:
        raise InvalidParameter(
            f"{name!r} is a table of your own. Pass load=, a function from its name to an object with X and y (of -1 and 1), or "
            "run the protocol by octsvm table2, which reads the file."
        )
    return datasets.load(name, data_dir=data_dir)


# -- workers --------------------------------------------------------------------------------------------


def _here(queue: BatchQueue) -> None:
    """One batch after the other, in this process."""
    while queue.wait():
        for task in queue.tasks():
            queue.finished(keep_batch(queue.store, task, lambda: queue.interrupted))


def _processes(queue: BatchQueue, jobs: int) -> None:
    """Worker processes, that record their cells themselves."""
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    path = queue.store.path.absolute()
    of_workers: Any = {"initializer": end_with_parent, "initargs": (os.getpid(),), "max_nbytes": None}
    report = threading.excepthook

    def excepthook(failed: threading.ExceptHookArgs) -> None:
        # The thread of the pool looks up a job that the end of the pool has just taken away.
        if not (queue.interrupted and failed.exc_type is KeyError):
            report(failed)

    threading.excepthook = excepthook
    try:
        while queue.wait():
            with (
                parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1, **of_workers),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore", UserWarning)  # a worker that leaves for a new one is no news
                parallel = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=jobs + 1)
                try:
                    for batch in parallel(delayed(keep_in_worker)(path, task) for task in queue.tasks()):
                        queue.finished(batch)
                except TerminatedWorkerError:
                    log.warning("a worker process died; its batch is tried again")
                    queue.died()
    finally:
        get_reusable_executor(max_workers=jobs, reuse=True).shutdown(wait=True, kill_workers=True)
        threading.excepthook = report
