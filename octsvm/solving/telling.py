"""The caller's callback while no engine runs: in start heuristics, building, reading, compiling and checking."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from ..formulations.blocks.rows import Abandoned
from ..options import SolveOptions
from ..result import Progress

FROM = 1.0  # seconds of a call from which on its callback is told of what goes on between two results
EVERY = 0.5  # seconds, at the least, between two such words


class CalledOff(Exception):
    """The callback asked for the end before an engine was called; nothing is wrong."""


def rising(options: SolveOptions) -> SolveOptions:
    """The same options, whose callback is told the best bound so far: parts of a call that begin anew know less than those before."""
    callback, best = options.callback, [-math.inf]
    if callback is None:
        return options

    def told(progress: Progress) -> object:
        best[0] = max(best[0], progress.bound)
        return callback(replace(progress, bound=best[0]))

    return options.but(callback=told)


class Telling:
    """Tells a callback what goes on, on the thread that this is called on.

    Attributes
    ----------
    incumbent, bound : float
        The best objective that is known, and what no tree of the model is better than.
    asked : bool
        Whether the callback asked for the end; it is not called again then.
    """

    def __init__(self, options: SolveOptions, bound: float = 0.0) -> None:
        self._callback, self._clock = options.callback, options.clock
        self.incumbent, self.bound = math.inf, bound
        self.asked = False
        self._error: BaseException | None = None
        self._last = -math.inf

    def tell(self, phase: str) -> bool:
        """Tell the callback, where it was not told a moment ago; whether it asks for the end."""
        now = self._clock.seconds()
        if self._callback is None or self.asked or now < FROM or now - self._last < EVERY:
            return self.asked
        self._last = now
        self.asked = bool(self._callback(Progress(now, self.incumbent, self.bound, 0, 0, phase)))
        return self.asked

    def between_rows(self, phase: str) -> Callable[[], None]:
        """The same as a function for within Pyomo's rules, which abandons the model where it is to end or the time is over.

        What the callback raises waits for :meth:`settle`.
        """

        def tell() -> None:
            try:
                self.tell(phase)
            except BaseException as error:
                self._error, self.asked = error, True
            if self.asked or self._clock.late():
                raise Abandoned

        return tell

    def settle(self) -> None:
        """Raise what the callback raised between rows."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
