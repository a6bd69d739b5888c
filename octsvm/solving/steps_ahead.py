"""Whether a time limit leaves room for the steps of a solve that nothing can interrupt.

On a large model reading, embedding a tree, compiling, writing a file and checking an answer take seconds each, and all in
about the same proportion: how long one of them took says what those ahead will take on this machine, as busy as it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..options import Clock

MANY_VARIABLES, MANY_NONZEROS = 20_000, 100_000  # from which on a model is large: before, no step takes long

# In times of embedding a tree and checking every row of the model.
READING = 1.0  # the whole model, whether it is one that engines take
EMBEDDING = 1.0
OTHER_WAYS = 3.0  # in which a tree may be embedded that the user's own rows refuse, or whose price is theirs
COMPILING = 3.0
CHECKING = 3.0  # reading an answer's tree, embedding it, and entering the other trees
CHECKING_OWN = 6.0  # the same under rows of the user's own: a tree is embedded in several ways
REBUILDING = 9.0  # another model of the same table, compiled, and its answer checked
STOPPING_SHARE = 0.1  # of what is left, for an engine that looks at the clock now and then
LISTING = 0.1  # the variables; less in most models
CLASSIFYING = 0.3  # counting the model's rows and variables


class NoTimeLeft(Exception):
    """The limit leaves no time for what is ahead; nothing is wrong."""


class StepsAhead:
    """What the steps ahead of a large model take, from those that were taken."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.large = clock, False
        self.step = 0.0  # seconds of embedding a tree, by the last step that was measured

    def size_up(self, variables: int, nonzeros: int) -> None:
        """Say how large the model is."""
        self.large = variables > MANY_VARIABLES or nonzeros > MANY_NONZEROS

    @contextmanager
    def measured(self, steps: float) -> Iterator[None]:
        """Take a step that is known to take as long as so many embeddings."""
        began = time.monotonic()
        yield
        self.step = (time.monotonic() - began) / steps

    def too_long(self, steps: float) -> bool:
        """Whether so many embeddings would take more than is left."""
        return self.large and self._clock.left() < steps * self.step

    def require(self, steps: float) -> None:
        """Go on where there is time for so many embeddings.

        Raises
        ------
        NoTimeLeft
        """
        if self.too_long(steps):
            raise NoTimeLeft
