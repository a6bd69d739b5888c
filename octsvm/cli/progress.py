"""What a solve shows on stderr while it runs."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from .options import say

if TYPE_CHECKING:
    from ..result import Progress


FIRST, SILENCE = 1.0, 5.0  # seconds until there is a line, and without news, where there is no terminal
NEWS_SHARE, SILENCE_SHARE = 0.05, 0.2  # of the time so far: what takes long tells less often
LONGEST = 60.0  # between two lines


@contextlib.contextmanager
def signs_of_life(doing: str, quiet: bool = False) -> Iterator[None]:
    """A line on stderr after a second, and then now and again, while the command is ``doing`` something that tells nothing."""
    done, began = threading.Event(), time.monotonic()

    def tell() -> None:
        wait = FIRST
        while not done.wait(wait):
            wait = SILENCE
            say(f"{time.monotonic() - began:7.1f} s  {doing}")

    ticker = threading.Thread(target=tell, daemon=True)
    if not quiet:
        ticker.start()
    try:
        yield
    finally:
        done.set()
        if not quiet:
            ticker.join()


class SolveProgress:
    """Progress on stderr: one line that changes on a terminal, else a new line when there is news, or none for a while."""

    def __init__(self, quiet: bool, label: str = "") -> None:
        self.quiet = quiet
        self.label = label
        self.terminal = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self.began = time.monotonic()
        self.last: Progress | None = None
        self.written = -math.inf
        self.said: tuple[float, float] | None = None
        self.width = 0
        self._done = threading.Event()
        self._ticker: threading.Thread | None = None

    def update(self, progress: Progress) -> None:
        """Take news from the solve; never asks it to stop."""
        self.last = progress
        if self.quiet or self.terminal:
            return
        now = time.monotonic()
        news = (progress.incumbent, progress.bound)
        if news != self.said and now - self.written >= self._pause(1.0, NEWS_SHARE):
            self.said, self.written = news, now
            say(self._state())

    def _state(self) -> str:
        seconds = time.monotonic() - self.began
        if self.last is None:
            return f"{self.label}{seconds:7.1f} s  preparing"
        return f"{self.label}{replace(self.last, seconds=seconds)}"

    def _tick(self) -> None:
        while not self._done.wait(0.3):
            if self.terminal:
                text = self._state()
                say("\r" + text.ljust(self.width), nl=False)
                self.width = len(text)
                continue
            now = time.monotonic()
            pause = self._pause(SILENCE, SILENCE_SHARE) if math.isfinite(self.written) else FIRST
            if now - max(self.began, self.written) >= pause:
                self.written = now
                say(self._state())

    def _pause(self, least: float, share: float) -> float:
        """Seconds between two lines by now."""
        return max(least, min(LONGEST, share * (time.monotonic() - self.began)))

    def __enter__(self) -> SolveProgress:
        if not self.quiet:
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._ticker is not None:
            self._ticker.join()
            if self.width:
                say("")
