"""Folds: who trains and who is judged, the fits of a grid on one fold, and many of them in parallel, kept in a file.

Everything is fitted on a fold's training rows: scaling, a kernel's factor, relative costs, weights of classes. The
rows that judge it are seen by ``predict`` only.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..data import class_weights, prepare
from ..errors import InvalidStore, OutputNotWritable
from ..formulations.base import FloatArray, IntArray
from ..formulations.registry import formulation as find_formulation
from ..options import Clock
from ..parameter_grid import POOL_SHARE, fit_path
from .grids import Setting, absolute

MOST_ROWS = 1_500  # that train in a fold: relative costs mean the same on more
JUDGED = 400  # rows that are judged at least, over the repetitions
MOST_REPEATS = 2  # a third and a fourth take 7 % off the corrected standard error


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of positive weight: ``X (n, p)``, ``y (n,)`` as positions in ``classes``, ``weights (n,)``."""

    X: FloatArray
    y: IntArray
    classes: tuple[Any, ...]
    weights: FloatArray
    class_weight: Any

    def weights_of(self, rows: IntArray) -> FloatArray:
        """Weights of some rows, those of their classes included, which are learnt on these rows."""
        return class_weights(self.class_weight, self.weights[rows], self.classes, self.y[rows])


@dataclass(frozen=True, eq=False)
class Grid:
    """What is fitted on every fold: relative costs in ``settings`` only, those in ``fixed`` are plain."""

    formulation: str
    settings: Sequence[Setting]
    fixed: Mapping[str, Any]
    relative: bool
    scale: bool
    seed: int

    @property
    def steps(self) -> int:
        """Of the search, for each setting."""
        tried = find_formulation(self.formulation).tried
        return max(1, (tried.steps if tried else 0) // len(self.settings))

    def on(self, table: Table, rows: IntArray) -> list[Setting]:
        """The settings with the costs of the model that is built on some rows."""
        if not self.relative:
            return [dict(s) for s in self.settings]
        form = find_formulation(self.formulation)
        data = prepare(form, table.X[rows], table.y[rows], scale=self.scale, weights=table.weights_of(rows))
        return absolute(form, self.settings, self.fixed, data)


@dataclass(frozen=True, eq=False)
class Fold:
    """Positions of the rows that train and of those that are judged."""

    number: int
    train: IntArray
    judged: IntArray


class _Line(BaseModel):
    """A fold as a store has it: lists have an entry for each setting."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)
    fold: int
    trained: int = Field(gt=0)
    judged: int = Field(gt=0)
    weight: float = Field(gt=0)
    right: list[float]
    splits: list[int]
    relabelled: list[int]


def split(table: Table, folds: int, repeats: int | None, seed: int) -> list[Fold]:
    """Stratified folds, each repetition shuffled anew; none where there is one class, or a class has one row only.

    ``repeats`` of None repeats until 400 rows are judged, twice at most. A fold trains on 1,500 rows at most.
    """
    from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split

    least = int(np.bincount(table.y).min()) if len(table.classes) > 1 else 0
    if least < 2:
        return []
    if repeats is None:
        repeats = int(np.clip(math.ceil(JUDGED / len(table.y)), 1, MOST_REPEATS))
    splitter = RepeatedStratifiedKFold(
        n_splits=min(folds, least), n_repeats=repeats, random_state=seed % 2**32
    )
    found = []
    for number, (train, judged) in enumerate(splitter.split(table.X, table.y)):
        if len(train) > MOST_ROWS:
            train, _ = train_test_split(
                train, train_size=MOST_ROWS, stratify=table.y[train], random_state=(seed + number) % 2**32
            )
        found.append(Fold(number, np.sort(train), np.sort(judged)))
    return found


def fit_fold(table: Table, grid: Grid, fold: Fold, seconds: float = math.inf) -> dict[str, Any] | None:
    """Fit the grid on a fold's training rows, and count for each setting the weight of the judged rows that come out right.

    None where so many seconds end before every setting is fitted.
    """
    from threadpoolctl import threadpool_limits

    weights = table.weights_of(np.arange(len(table.y)))[fold.judged]
    right, splits, relabelled = ([math.nan] * len(grid.settings) for _ in range(3))
    clock = Clock(seconds)
    with threadpool_limits(1):
        path = fit_path(
            grid.formulation,
            table.X[fold.train],
            table.y[fold.train],
            grid.on(table, fold.train),
            work_limit=grid.steps,
            seed=grid.seed,
            scale=grid.scale,
            weights=table.weights_of(fold.train),
            # Its pool ends when this clock does, so that no fold counts whose trees a limit made worse.
            time_limit=None if seconds == math.inf else seconds / POOL_SHARE,
            **grid.fixed,
        )
        for k, result in path:
            if clock.late():
                return None
            assert result.tree is not None
            predicted = np.asarray(result.tree.predict(table.X[fold.judged]))
            right[k] = float(weights[predicted == table.y[fold.judged]].sum())
            splits[k] = int(result.tree.splits.sum())
            relabelled[k] = len({r.row for r in getattr(result.tree, "relabelled", ())})
    return {
        "fold": fold.number,
        "trained": len(fold.train),
        "judged": len(fold.judged),
        "weight": float(weights.sum()),
        "right": right,
        "splits": splits,
        "relabelled": relabelled,
    }


def fit_folds(
    table: Table,
    grid: Grid,
    folds: Sequence[Fold],
    jobs: int | None,
    store: Path | None,
    progress: bool,
    clock: Clock,
) -> list[dict[str, Any]]:
    """The lines of the folds that the clock leaves time for, in their order.

    Those in the file ``store`` are read, but for damaged ones; new ones are appended as they come.

    Raises
    ------
    OutputNotWritable
    """
    from multiprocessing import TimeoutError

    from joblib import Parallel, delayed, hash

    key = hash(
        (table.X, table.y, table.weights, repr(table.class_weight), _plain(grid), [f.train for f in folds])
    )
    _append(store, "")  # what cannot be written to is refused before it is read
    known = (line for line in _read(store) if line.get("key") == key)
    done = {line["fold"]: line for line in known if _is_whole(line, len(grid.settings))}
    left = [fold for fold in folds if fold.number not in done]
    _append(store, "\n" if store is not None and _is_cut(store) else "")
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
    tasks = (  # made one by one, as processes become free
        delayed(fit_fold)(table, grid, fold, clock.left()) for fold in left if not clock.late()
    )
    lines: Iterator[dict[str, Any] | None] = parallel(tasks)
    parallel.timeout = clock.left()  # to the next line: processes that take long to start are not waited for
    try:
        for line in _told(lines, f"{grid.formulation}: folds", len(left)) if progress else lines:
            parallel.timeout = clock.left()
            if line is None:
                continue
            done[line["fold"]] = line
            _append(store, json.dumps({"key": key, **line}) + "\n")
    except TimeoutError:
        pass
    return [done[fold.number] for fold in folds if fold.number in done]


def _told(lines: Iterator[dict[str, Any] | None], label: str, total: int) -> Iterator[dict[str, Any] | None]:
    """The lines, with a bar on stderr, or there a text for each of them where it is no terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    if console.is_terminal:
        yield from track(lines, label, total=total, console=console)
        return
    began = time.monotonic()
    for done, line in enumerate(lines, 1):
        seconds = time.monotonic() - began
        left = seconds / done * (total - done)
        console.print(
            f"{label}: {done} of {total} after {seconds:.1f} s, about {left:.0f} s left",
            soft_wrap=True,
            highlight=False,
        )
        yield line


def _plain(grid: Grid) -> list[Any]:
    """What tells grids apart; a kernel of the caller's goes by its name."""
    fixed, *settings = (
        {k: getattr(v, "__qualname__", v) for k, v in part.items()} for part in (grid.fixed, *grid.settings)
    )
    return [
        grid.formulation,
        repr(settings),
        repr(sorted(fixed.items())),
        grid.relative,
        grid.scale,
        grid.seed,
        grid.steps,
    ]


def _read(store: Path | None) -> list[dict[str, Any]]:
    """The lines of a file, none where there is no file; one that was cut off is left out.

    Raises
    ------
    InvalidStore
        It is another file.
    """
    if store is None or not store.exists():
        return []
    lines = []
    for text in store.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            lines.append(json.loads(text))
        except (ValueError, RecursionError):  # also of numbers with thousands of digits
            continue
    if not all(isinstance(line, dict) and "key" in line for line in lines) or (
        not lines and store.stat().st_size
    ):
        raise InvalidStore(
            f"store={str(store)!r} holds no folds of octsvm.tune. Name another file, or a new one."
        )
    return lines


def _is_whole(line: Mapping[str, Any], settings: int) -> bool:
    """Whether a line is one that was written here, so that its fold needs not be fitted again."""
    try:
        found = _Line.model_validate(line)
    except ValidationError:
        return False
    return all(len(part) == settings for part in (found.right, found.splits, found.relabelled))


def _is_cut(store: Path) -> bool:
    """Whether a run was killed in the middle of a line."""
    return store.exists() and store.stat().st_size > 0 and not store.read_bytes().endswith(b"\n")


def _append(store: Path | None, text: str) -> None:
    if store is None:
        return
    try:
        with store.open("a", encoding="utf-8") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error  # or no path at all, such as one with a zero byte
        raise OutputNotWritable(f"store={str(store)!r} cannot be written: {why}.") from None
