"""The batches of a run: which are to do, which are under way, which other runs hold, and how far all of them are."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .parts import part_data
from .progress import Snapshot, remaining
from .protocol import Protocol
from .store import Batch, Store
from .work import Task, on_interrupt

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
    package that is not here, ``useless`` those of which every fit failed.
    """

    total: int
    done: int
    failed: int
    fitted: int
    seconds: float
    given_up: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    useless: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do."""
        return self.done >= self.total


@dataclass
class BatchQueue:
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
        return iter(self._next, None)

    def _next(self) -> Task | None:
        with self._lock:
            while self._todo and not self.interrupted:
                batch = self._todo.popleft()
                answer = self.store.claim(batch.id, self.run)
                if answer == "held":
                    self._held.append(batch)
                elif answer == "claimed":
                    self._under_way[batch.id] = batch
                    return self._task(batch)
        return None

    def _task(self, batch: Batch) -> Task:
        part, spec = batch.part, self.protocol.methods[batch.method]
        if part.set not in self._loaded:
            self._loaded[part.set] = self.load(part.set)
        return Task(
            batch=batch.id,
            run=self.run,
            spec=spec,
            data=part_data(self.protocol, part, self._loaded[part.set]),
            seed=part.seed(self.protocol.seed),
            skip=frozenset(self.store.done(batch.id)),
            keep_trees=self.keep_trees,
        )

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
        """Be a run: with progress, a note of Ctrl-C, and all leases given back at the end."""
        self.run = self.store.begin()
        over = threading.Event()

        def tick() -> None:
            while not over.wait(LOOK):
                try:
                    progress(self.snapshot())
                except Exception as error:  # it is not worth the run
                    log.warning("progress: %s", error)

        def note(*_: Any) -> None:
            self.interrupted = True
            raise KeyboardInterrupt

        ticker = threading.Thread(target=tick, daemon=True)
        ticker.start()
        try:
            with on_interrupt(note):
                yield
                # Solvers end on Ctrl-C with the best tree so far; such a tree must not be taken for a finished cell.
                if self.interrupted:
                    raise KeyboardInterrupt
        finally:
            over.set()
            ticker.join()
            self.store.end(self.run)
            with contextlib.suppress(Exception):
                progress(self.snapshot())

    # -- how far ----------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """How far the selection is."""
        now = self.store.progress()
        left, fits, failed = Counter[str](), Counter[str](), 0
        seconds = dict.fromkeys(self.methods, 0.0)
        for batch in self.selected:
            there, wrong, took = now[batch.id]
            failed += wrong
            left[batch.method] += batch.total - there
            fits[batch.method] += there
            seconds[batch.method] += took
        elapsed, done = time.monotonic() - self._began, fits.total()
        fitted = done - sum(self._before.values())
        # Several runs share what is left: what all of them did since this one began says how fast it goes.
        guess = math.nan
        if fitted:
            mean = sum(seconds.values()) / max(1, done)
            guess = remaining(left, seconds, fits, elapsed / max(1e-9, fitted * mean))
        return Snapshot(done + left.total(), done, failed, fitted, elapsed, guess)

    def summary(self, skipped: tuple[str, ...]) -> Summary:
        """What the run came to."""
        now = self.snapshot()
        own = self.store.fitted([self.run, *self.machines.values()])
        counts: Any = self.store.counts().to_dict("index")
        useless = tuple(m for m in self.methods if 0 < counts[m]["done"] == counts[m]["failed"])
        given_up = tuple(self.given_up)
        return Summary(now.total, now.done, now.failed, own, now.elapsed, given_up, skipped, useless)
