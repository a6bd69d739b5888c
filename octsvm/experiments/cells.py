"""What is fitted and scored: parts of the data, cells of the experiment, and what a fit comes to."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..formulations.trees import Tree


@dataclass(frozen=True, order=True)
class Part:
    """One training part: a fold of a repetition of a set under noise; ``inner`` for the split of the honest rule."""

    set: str
    noise: float
    repetition: int
    fold: int
    inner: bool

    @property
    def key(self) -> str:
        """Its name in the store, e.g. ``heart/0.4/r0/f2/full``."""
        return (
            f"{self.set}/{self.noise:g}/r{self.repetition}/f{self.fold}/{'inner' if self.inner else 'full'}"
        )

    def seed(self, base: int) -> int:
        """A seed that depends on nothing but the part and ``base``."""
        return int(np.random.SeedSequence([base, zlib.crc32(self.key.encode())]).generate_state(1)[0])


@dataclass(frozen=True)
class Cell:
    """One fit: a method with one point of its grid on one part."""

    part: Part
    method: str
    params: Mapping[str, float]

    @property
    def key(self) -> str:
        """Its name in the store, e.g. ``heart/0.4/r0/f2/full/octsvm/{"c1":1.0,...}``."""
        return f"{self.part.key}/{self.method}/{json.dumps(dict(self.params), separators=(',', ':'))}"


@dataclass(frozen=True)
class PartData:
    """The rows of a part. ``X (n, p)`` and ``y (n,)`` train, ``X_score`` and ``y_score`` score.

    ``y`` has the flips, ``y_given`` (n,) is without them. ``y_score`` is clean for a full part (the test folds), and
    noisy for an inner one (the rest of the noisy training fold: an honest rule knows no other labels).
    """

    part: Part
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    y_given: NDArray[np.int64]
    X_score: NDArray[np.float64]
    y_score: NDArray[np.int64]
    feature_names: tuple[str, ...]
    min_samples_leaf: float

    @property
    def flipped(self) -> NDArray[np.bool_]:
        """Which training labels are wrong, (n,)."""
        flipped: NDArray[np.bool_] = self.y != self.y_given
        return flipped


@dataclass(frozen=True)
class Fit:
    """What fitting one cell came to.

    ``believed`` (n,) are the labels that the fitted model believes of the training rows (a relabelled row's differs from the
    given one); None for methods that give up no labels. ``objective`` is certified where the method has one.
    """

    predict: Callable[[NDArray[np.float64]], NDArray[Any]]
    seconds: float
    objective: float = np.nan
    bound: float = np.nan
    status: str = ""
    splits: int = 0
    believed: NDArray[np.int64] | None = None
    tree: Tree | None = None
    extra: Mapping[str, Any] | None = None

    @classmethod
    def constant(cls, y: NDArray[np.int64]) -> Fit:
        """Of training labels that are all alike: the classifier that says the same of every row, at no cost."""
        label = int(y[0])
        return cls(lambda X: np.full(len(X), label), 0.0, objective=0.0, bound=0.0, status="optimal")
