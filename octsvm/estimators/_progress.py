"""What goes on during a fit, in one line that changes: a carriage return does so in terminals and in notebooks alike."""

from __future__ import annotations

import contextlib
import math
import sys
from typing import Any, Self

from ..errors import InvalidParameter
from ..result import Progress

EVERY = 0.2  # seconds


class ProgressLine:
    """A callback that writes the line to stderr, if ``verbose`` is "progress"; left as a context it ends the line."""

    def __init__(self, verbose: Any) -> None:
        if isinstance(verbose, str) and verbose != "progress":
            raise InvalidParameter(f"verbose={verbose!r} should be True, False or 'progress'.")
        self.wanted = isinstance(verbose, str)
        self._last, self._width = -math.inf, 0

    def __call__(self, progress: Progress) -> None:
        """Take news; never asks the solve to stop."""
        if progress.seconds - self._last >= EVERY:
            self._last = progress.seconds
            text = str(progress)
            self._write("\r" + text.ljust(self._width))
            self._width = len(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._write("\n")

    @staticmethod
    def _write(text: str) -> None:
        if sys.stderr is not None:
            with contextlib.suppress(OSError, ValueError):  # a stream that is closed or full ends no fit
                sys.stderr.write(text)
                sys.stderr.flush()
