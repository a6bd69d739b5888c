"""The budget of a start heuristic: seconds, a number of steps, or both."""

from __future__ import annotations

from collections.abc import Callable

from ..options import Clock


class Budget:
    """Seconds, or a reproducible number of steps (of whatever a heuristic counts).

    Parameters
    ----------
    seconds : float
        Of the clock, from now on.
    steps : int, optional
        The number of :meth:`tick` calls that are granted; None grants any number.
    watch : callable, optional
        Asked at every tick whether to stop.

    Attributes
    ----------
    ended_by : str
        "time_limit" or "work_limit" once either is used up, "interrupted" once it was stopped, empty before.
    """

    def __init__(
        self, seconds: float, steps: int | None = None, watch: Callable[[], bool] | None = None
    ) -> None:
        self._clock, self._watch = Clock(seconds), watch
        self._steps = steps
        self.ended_by = ""

    def tick(self) -> bool:
        """Count a step; True once nothing is left."""
        if not self.ended_by and self._steps is not None:
            self._steps -= 1
            if self._steps < 0:
                self.ended_by = "work_limit"
        if not self.ended_by and self._watch is not None and self._watch():
            self.ended_by = "interrupted"
        if not self.ended_by and self._clock.late():
            self.ended_by = "time_limit"
        return bool(self.ended_by)

    spent = tick  # the name that heuristics of others may know

    def late(self) -> bool:
        """True once nothing is left, or no time; without counting a step."""
        return bool(self.ended_by) or self._clock.late()

    def overdue(self) -> bool:
        """True once no time is left, whatever is left of the steps: what is cut short by it repeats under a step limit."""
        return self._clock.late()

    def left(self) -> float:
        """Seconds that are left."""
        return self._clock.left()

    def stop(self) -> None:
        """End the budget, whatever is left."""
        self.ended_by = self.ended_by or "interrupted"

    def part(self, share: float, steps: int) -> Budget:
        """A budget of a share of the seconds that are left and at most ``steps``, for a part of a heuristic."""
        left = max(0.0, self._clock.limit - self._clock.seconds())
        most = steps if self._steps is None else min(steps, max(0, self._steps))
        return Budget(left * share, most, self._watch)
