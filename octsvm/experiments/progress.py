"""How far a run is, and how it shows that: a bar on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

EVERY = 60.0  # seconds between lines where there is no terminal

log = logging.getLogger("octsvm.experiments")


@dataclass(frozen=True)
class Snapshot:
    """A run at one moment; ``fitted`` cells are this run's own, ``remaining`` (seconds, NaN if unknown) is a guess."""

    total: int
    done: int
    failed: int
    fitted: int
    elapsed: float
    remaining: float

    def __str__(self) -> str:
        failed = f", {self.failed:,} failed" if self.failed else ""
        left = f", about {duration(self.remaining)} left" if math.isfinite(self.remaining) else ""
        return f"{self.done:,} of {self.total:,} cells{failed}, {duration(self.elapsed)} so far{left}"


def duration(seconds: float) -> str:
    """Seconds in words: "40 s", "12 min", "3.5 h"."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 99.5 * 60 else f"{seconds / 3600:.1f} h"


def remaining(
    left: Mapping[str, int], seconds: Mapping[str, float], fits: Mapping[str, int], wall: float
) -> float:
    """Guess the seconds that are left, from the cells to fit and the seconds and number of fits so far, all by method.

    ``wall`` are seconds of this run for a second of fits: below 1 with several workers, above with much overhead.
    """
    known = sum(fits.values())
    if not known or not math.isfinite(wall):
        return math.nan
    usual = sum(seconds.values()) / known
    return wall * sum(n * (seconds[m] / fits[m] if fits.get(m) else usual) for m, n in left.items())


class Lines:
    """A line a minute: through logging where ``say`` is not given, as a run does where nobody says otherwise."""

    def __init__(self, every: float = EVERY, say: Callable[[Snapshot], None] | None = None) -> None:
        self._every = every
        self._say = say or (lambda now: log.info("%s", now))
        self._next = time.monotonic() + every

    def __call__(self, now: Snapshot) -> None:
        """Say where the run is, if it is time."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self._every
            self._say(now)


class RunProgress:
    """Progress on a stream: a bar with the remaining time on a terminal, else a line a minute. A context manager."""

    def __init__(self, stream: TextIO, *, quiet: bool = False, every: float = EVERY) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._quiet = quiet
        self._lines = Lines(every, lambda now: print(now, file=stream, flush=True))
        self._bar = Progress(
            TextColumn("{task.fields[cells]}"),
            BarColumn(),
            TextColumn("{task.percentage:.0f} %  {task.fields[left]}"),
            console=Console(file=stream, highlight=False),
            refresh_per_second=2,
        )
        self._task = self._bar.add_task("", total=None, cells="starting", left="")
        self._shown = not quiet and stream.isatty()

    def __enter__(self) -> RunProgress:
        if self._shown:
            self._bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._shown:
            self._bar.stop()

    def __call__(self, now: Snapshot) -> None:
        """Show where the run is."""
        if self._shown:
            failed = f" ({now.failed:,} failed)" if now.failed else ""
            left = f"about {duration(now.remaining)} left" if math.isfinite(now.remaining) else ""
            self._bar.update(
                self._task,
                total=now.total,
                completed=now.done,
                cells=f"{now.done:,} of {now.total:,} cells{failed}",
                left=left,
            )
        elif not self._quiet:
            with contextlib.suppress(OSError, ValueError):  # a stream that is full or gone costs no cell
                self._lines(now)
