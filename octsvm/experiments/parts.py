"""The rows of a part: which ones train, which labels are flipped, which ones score. Nothing here fits anything."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, train_test_split

from ..errors import InvalidData, InvalidParameter
from ..noise import flip_labels
from .cells import Part, PartData
from .protocol import Protocol


def _seed(protocol: Protocol, part: Part, *more: int) -> int:
    """A seed of the set, the repetition and ``more``; the noise has no say, so that flips are nested."""
    words = [protocol.seed, zlib.crc32(part.set.encode()), part.repetition, *more]
    return int(np.random.SeedSequence(words).generate_state(1)[0])


def training_rows(protocol: Protocol, part: Part, n: int) -> NDArray[np.int64]:
    """Rows of a set of ``n`` that train in a part's fold, in their order; all others test.

    Raises
    ------
    InvalidData
        Fewer rows than folds.
    """
    if n < protocol.folds:
        raise InvalidData(f"{part.set} has {n} rows, too few for {protocol.folds} folds.")
    if part.fold not in range(protocol.folds):
        raise InvalidParameter(
            f"fold {part.fold} of {part.set}: there are {protocol.folds}, the first one is 0."
        )
    folds = KFold(protocol.folds, shuffle=True, random_state=_seed(protocol, part))
    _, rows = list(folds.split(np.zeros(n)))[part.fold]
    return np.asarray(rows, dtype=np.int64)


def part_data(protocol: Protocol, part: Part, dataset: Any) -> PartData:
    """The training and scoring rows of a part.

    One fold of a random K-fold (shuffled, not stratified) trains, the others score. Of the training labels exactly
    the share ``part.noise`` is flipped; the flips of a smaller share are among those of a larger one. An inner part
    fits on ``protocol.inner_share`` of the noisy training rows, stratified by the noisy label where its counts admit
    that, and scores on the rest of them with their noisy labels.

    Parameters
    ----------
    protocol : Protocol
    part : Part
    dataset : object with ``X`` (DataFrame, or array, of shape (n, p)) and ``y`` (n,) of -1 and 1
        Such as :func:`octsvm.datasets.load` returns.

    Returns
    -------
    PartData
        The features as they are in the set: methods scale on what they train on.

    Raises
    ------
    InvalidData
        Labels other than -1 and 1, or too few rows.
    """
    X = np.asarray(dataset.X, dtype=np.float64)
    labels = np.asarray(dataset.y)
    if not np.isin(labels, (-1, 1)).all():
        strange = labels[~np.isin(labels, (-1, 1))][0]
        raise InvalidData(f"{part.set}: labels are 1 and -1 in an experiment, and one is {strange!r}.")
    y = labels.astype(np.int64)
    train = training_rows(protocol, part, len(y))
    given = y[train]
    noisy = np.asarray(flip_labels(given, part.noise, _seed(protocol, part, part.fold)), dtype=np.int64)
    if part.inner:
        fit, held = _inner(protocol, part, noisy)
        train, given, noisy, score, y_score = train[fit], given[fit], noisy[fit], train[held], noisy[held]
    else:
        score = np.setdiff1d(np.arange(len(y)), train)
        y_score = y[score]
    return PartData(
        part=part,
        X=X[train],
        y=noisy,
        y_given=given,
        X_score=X[score],
        y_score=y_score,
        feature_names=tuple(
            map(str, getattr(dataset.X, "columns", [f"x{j + 1}" for j in range(X.shape[1])]))
        ),
        min_samples_leaf=protocol.min_samples_leaf,
    )


def _inner(
    protocol: Protocol, part: Part, noisy: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions among the training rows on which the honest rule fits, and those on which it scores."""
    n = len(noisy)
    if n < 2:
        raise InvalidData(f"{part.key} has {n} training rows, too few for an inner split.")
    count = min(n - 1, max(1, int(protocol.inner_share * n)))
    _, sizes = np.unique(noisy, return_counts=True)
    stratified = sizes.min() >= 2 and len(sizes) <= min(count, n - count)
    fit, held = train_test_split(
        np.arange(n),
        train_size=count,
        stratify=noisy if stratified else None,
        random_state=_seed(protocol, part, part.fold, 1),
    )
    return np.sort(fit), np.sort(held)
