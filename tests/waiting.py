"""Waiting in tests: for what is to happen, however busy the machine is, and with limits in processor time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = (
    300.0  # seconds for what should happen at once: a net under a test that hangs, and no measure of anything
)


def wait_until(holds: Callable[[], bool], every: float = 0.02) -> bool:
    """Wait until something holds, and say whether it does."""
    until = time.monotonic() + PATIENCE
    while not (held := holds()) and time.monotonic() < until:
        time.sleep(every)
    return held


def busy() -> float:
    """Seconds that this process, and those that it has waited for, had a processor."""
    return sum(os.times()[:4])


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail where the block takes more processor time; by the clock it may take longer, as others have the cores too."""
    began = busy()
    yield
    taken = busy() - began
    assert taken <= seconds, f"{taken:.1f} s of {seconds:g}"
