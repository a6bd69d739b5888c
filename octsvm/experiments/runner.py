"""Run a protocol: batches from a store to workers, on this machine (joblib) or on a cluster (Dask).

The store is the only memory of a run. A run that is killed, or stopped with Ctrl-C, is gone on with by the same call;
several runs may work on one store at a time. On this machine every cell is durable as soon as it is fitted. On a
cluster the workers hand a whole batch back, and the client records it: what is lost with a worker, or with the
client, are the batches under way.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import math
import signal
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InvalidParameter, MissingPackage
from .methods import available, fit_grid
from .parts import part_data
from .progress import Lines, Snapshot, remaining
from .protocol import Protocol
from .store import HEARTBEAT, Batch, Store
from .work import Task, close_stores, keep_batch

ATTEMPTS = 3  # workers that a batch may take with it before the run gives it up
LOOK = 1.0  # seconds between looks at the progress
WAIT = 0.25  # seconds between looks at batches that other runs hold

log = logging.getLogger("octsvm.experiments")

Load = Callable[[str], Any]


@dataclass(frozen=True)
class Summary:
    """What a run came to, in cells of its selection.

    ``fitted`` were fitted by this run, ``done`` of ``total`` are in the store, ``failed`` of them. ``given_up`` names
    batches whose workers died again and again (the next run tries them once more), ``skipped`` methods that need a
    package that is not here.
    """

    total: int
    done: int
    failed: int
    fitted: int
    seconds: float
    given_up: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do."""
        return self.done >= self.total


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
        From the name of a set to an object with ``X`` and ``y``, in place of ``octsvm.datasets.load``.
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
    InvalidParameter, MissingPackage
        A name that the protocol does not have; a package that a chosen method or the scheduler needs.
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
    names = _chosen("methods", methods, tuple(protocol.methods))
    skipped = tuple(n for n in names if methods is None and not available(protocol.methods[n].kind))
    for name in skipped:
        log.warning("%s is left out: a package that it needs is not installed", name)
    names = tuple(n for n in names if n not in skipped)
    for name in names:
        fit_grid(protocol.methods[name].kind)
    if scheduler is not None and importlib.util.find_spec("distributed") is None:
        raise MissingPackage(
            "scheduler= needs dask.distributed, which is not installed: pip install 'octsvm[dask]'."
        )
    if load is None:
        load = _loader(data_dir)
    with Store.create(store, protocol) as opened:
        queue = Queue(opened, protocol, sets, names, load, keep_trees)
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


def _chosen(what: str, asked: Sequence[str] | None, there: tuple[str, ...]) -> tuple[str, ...]:
    if asked is None:
        return there
    strange = [name for name in asked if name not in there]
    if strange or not asked:
        found = ", ".join(map(repr, strange)) or "an empty list"
        raise InvalidParameter(f"{what}: {found}; the protocol has {', '.join(there)}.")
    return tuple(name for name in there if name in asked)


def _loader(data_dir: str | Path | None) -> Load:
    from .. import datasets

    def load(name: str) -> Any:
        return datasets.load(name, data_dir=data_dir)

    return load


# -- the queue --------------------------------------------------------------------------------------------------


@dataclass
class Queue:
    """The batches of a run, in their order: which are to do, which are under way, which are somebody else's."""

    store: Store
    protocol: Protocol
    sets: tuple[str, ...]
    methods: tuple[str, ...]
    load: Load
    keep_trees: bool = False
    run: int = 0
    selected: list[Batch] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    machines: dict[str, int] = field(default_factory=dict)
    interrupted: bool = False

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._todo: deque[Batch] = deque()
        self._held: list[Batch] = []
        self._under_way: dict[int, Batch] = {}
        self._attempts: Counter[int] = Counter()
        self._loaded: dict[str, Any] = {}
        self._began = time.monotonic()
        self.reload()
        self._before = {b.id: b.done for b in self.selected}

    def reload(self) -> None:
        """Read the batches from the store."""
        there = self.store.batches()
        parts = [p for p in self.protocol.parts() if p.set in self.sets]
        self.selected = [there[part, method] for part in parts for method in self.methods]
        self._todo = deque(b for b in self.selected if b.done < b.total)
        self._before = {b.id: b.done for b in self.selected}

    # -- tasks ------------------------------------------------------------------------------------------------

    def tasks(self) -> Iterator[Task]:
        """Lease batches one by one, until there is none to have."""
        while True:
            with self._lock:
                task = self._next()
            if task is None:
                return
            yield task

    def _next(self) -> Task | None:
        while self._todo and not self.interrupted:
            batch = self._todo.popleft()
            answer = self.store.claim(batch.id, self.run)
            if answer == "held":
                self._held.append(batch)
            elif answer == "claimed":
                self._under_way[batch.id] = batch
                spec = self.protocol.methods[batch.method]
                return Task(
                    batch=batch.id,
                    run=self.run,
                    method=batch.method,
                    spec=spec,
                    settings=spec.settings(),
                    data=part_data(self.protocol, batch.part, self._set(batch.part.set)),
                    seed=batch.part.seed(self.protocol.seed),
                    skip=frozenset(self.store.done(batch.id)),
                    keep_trees=self.keep_trees,
                )
        return None

    def _set(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self.load(name)
        return self._loaded[name]

    def finished(self, batch: int) -> None:
        """A worker is through with a batch."""
        with self._lock:
            self._under_way.pop(batch, None)
        self.store.release(batch, self.run)

    def died(self, batches: Sequence[int] | None = None) -> None:
        """A worker died, and perhaps ``batches`` with it (all that are under way if None): they go to the front."""
        with self._lock:
            gone = list(self._under_way) if batches is None else list(batches)
            for number in reversed(gone):
                batch = self._under_way.pop(number)
                self._attempts[number] += 1
                if self._attempts[number] < ATTEMPTS:
                    self._todo.appendleft(batch)
                    continue
                self.store.release(number, self.run)
                self.given_up.append(f"{batch.part.key}/{batch.method}")
                log.warning(
                    "%s: %d workers died on it; it is left for the next run", self.given_up[-1], ATTEMPTS
                )

    def wait(self) -> bool:
        """Whether there is more to do; waits for batches that other runs hold, and takes over those of dead ones."""
        with self._lock:
            if self._todo:
                return True
            if not self._held:
                return False
            self._todo, self._held = deque(self._held), []
        time.sleep(WAIT)
        return True

    # -- around the work --------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def working(self, progress: Callable[[Snapshot], None]) -> Iterator[None]:
        """Be a run: with a heartbeat, progress, a note of Ctrl-C, and all leases given back at the end."""
        self.run = self.store.begin()
        over = threading.Event()

        def tick() -> None:
            beaten = time.monotonic()
            while not over.wait(LOOK):
                try:
                    progress(self.snapshot())
                    if time.monotonic() - beaten >= HEARTBEAT:
                        beaten = time.monotonic()
                        self.store.beat(self.run)
                except Exception as error:  # neither is worth the run
                    log.warning("progress: %s", error)

        ticker = threading.Thread(target=tick, daemon=True)
        ticker.start()
        try:
            with self._noting_interrupts():
                yield
        finally:
            over.set()
            ticker.join()
            close_stores()
            self.store.end(self.run)
            with contextlib.suppress(Exception):
                progress(self.snapshot())

    @contextlib.contextmanager
    def _noting_interrupts(self) -> Iterator[None]:
        """Solvers end on Ctrl-C with the best tree so far; such a tree must not be taken for a finished cell."""

        def note(*_: Any) -> None:
            self.interrupted = True
            raise KeyboardInterrupt

        try:
            before = signal.signal(signal.SIGINT, note)
        except ValueError:  # signals belong to the main thread, and this is another one
            yield
            return
        try:
            yield
            if self.interrupted:
                raise KeyboardInterrupt
        finally:
            signal.signal(signal.SIGINT, before)

    # -- how far ----------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """How far the selection is."""
        now = self.store.progress()
        left: Counter[str] = Counter()
        fits: Counter[str] = Counter()
        seconds: Counter[str] = Counter()
        done = failed = fitted = 0
        for batch in self.selected:
            there, wrong, took = now[batch.id]
            done, failed = done + there, failed + wrong
            fitted += there - self._before[batch.id]
            left[batch.method] += batch.total - there
            fits[batch.method] += there
            seconds[batch.method] += took  # type: ignore[assignment]
        elapsed = time.monotonic() - self._began
        total = sum(b.total for b in self.selected)
        # Several runs share what is left: what all of them did since this one began says how fast it goes.
        guess = math.nan
        if fitted:
            mean = sum(seconds.values()) / max(1, done)
            guess = remaining(left, seconds, fits, elapsed / max(1e-9, fitted * mean))
        return Snapshot(total, done, failed, fitted, elapsed, guess)

    def summary(self, skipped: tuple[str, ...]) -> Summary:
        """What the run came to."""
        now = self.snapshot()
        own = self.store.fitted([self.run, *self.machines.values()])
        return Summary(now.total, now.done, now.failed, own, now.elapsed, tuple(self.given_up), skipped)


# -- on this machine --------------------------------------------------------------------------------------------


def _here(queue: Queue) -> None:
    """One batch after the other, in this process."""
    while queue.wait():
        for task in queue.tasks():
            queue.finished(keep_batch(queue.store.path, task, lambda: queue.interrupted))


def _processes(queue: Queue, jobs: int) -> None:
    """Worker processes, that record their cells themselves."""
    import os

    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    from .work import settle

    path = queue.store.path.absolute()
    try:
        while queue.wait():
            with parallel_config(
                "loky",
                n_jobs=jobs,
                inner_max_num_threads=1,
                initializer=settle,
                initargs=(os.getpid(),),
                max_nbytes=None,
            ):
                parallel = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=jobs + 1)
                with warnings.catch_warnings():
                    warnings.simplefilter(
                        "ignore", UserWarning
                    )  # a worker that leaves for a new one is no news
                    try:
                        for batch in parallel(delayed(keep_batch)(path, task) for task in queue.tasks()):
                            queue.finished(batch)
                    except TerminatedWorkerError:
                        log.warning("a worker process died; its batch is tried again")
                        queue.died()
    finally:
        get_reusable_executor(max_workers=jobs, reuse=True).shutdown(wait=True, kill_workers=True)
