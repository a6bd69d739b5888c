"""Which point of a grid counts: the three readings of "the best" that a table of accuracies can have.

``oracle_mean``
    For a set, noise and method, the grid point with the best mean test accuracy over folds and repetitions. It looks
    at the test labels once for each cell of the table: the reading that fits the paper's figures.
``oracle_fold``
    For every fold the grid point with the best test accuracy. It looks at the test labels of every fold: an upper
    limit of what any choice from the grid can reach.
``honest``
    For every fold the grid point with the best accuracy on held-out rows of the noisy training part. Test labels play no
    part; this is what a user can have.

Ties of the oracle rules do not change the accuracy; the first point in the order of the grid stands for them. The
honest rule scores on few rows, so its ties are many, and they matter. They are broken by, in this order:

1. the mean score of the point and its neighbours, that differ by one step of one parameter: a point on a plateau is
   less likely to be best by luck than one on a peak;
2. fewer splits of the tree fitted on the inner part: of two that do as well, the simpler one;
3. the order of the grid.

All three are known without a test label.

Folds are compared that are complete: a fold of a method counts when every point of its grid was tried (and on the
inner part too, for the honest rule) and at least one of them worked. For a set and noise, methods are compared on
the folds that are complete for all methods that have one. A point whose fit failed is not chosen; for ``oracle_mean``
it must have worked on all compared folds.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.ndimage import convolve, generate_binary_structure

from ..errors import InvalidData, InvalidParameter
from .cells import Cell, Part
from .protocol import Protocol, Rule

RULES: tuple[Rule, ...] = get_args(Rule)
FOLD = ["set", "noise", "repetition", "fold"]
KEY = [*FOLD, "inner", "method", "params"]
CARRIED = ["n_train", "train_right", "objective", "bound", "status", "seconds", "splits"]
CARRIED += ["relabelled", "flipped", "both"]
DIGITS = 12  # accuracies that agree in these are tied


@dataclass(frozen=True)
class Selection:
    """What the rules chose.

    Attributes
    ----------
    chosen : pandas.DataFrame
        One row for each rule, set, noise, method, repetition and fold: ``params``, ``n_right``, ``n_score``,
        ``accuracy`` (a share), ``key`` of the cell, ``inner_key`` of the cell by which the honest rule chose, ``tied``
        (how many points were as good by the rule's first criterion), and further columns of the cell.
    missing : pandas.DataFrame
        One row for each set, noise and method that lacks something: ``expected``, ``complete`` and, for each rule,
        ``compared_<rule>`` folds, and in words ``why``.
    table : pandas.DataFrame
        Mean ``accuracy`` over the compared folds, and their number ``folds``, indexed by rule, set, noise and method.
    """

    chosen: pd.DataFrame
    missing: pd.DataFrame
    table: pd.DataFrame = field(init=False)

    def __post_init__(self) -> None:
        by = ["rule", "set", "noise", "method"]
        found = self.chosen.groupby(by, sort=False)["accuracy"].agg(["mean", "size"])
        object.__setattr__(self, "table", found.set_axis(["accuracy", "folds"], axis=1))


@dataclass(frozen=True)
class _Scores:
    """The cells of a method as arrays over (folds, grid points)."""

    shape: tuple[int, ...]
    at: NDArray[np.int64]
    full: NDArray[np.int64]
    inner: NDArray[np.int64]


def select(
    cells: pd.DataFrame, rules: Sequence[Rule] = RULES, *, protocol: Protocol | None = None
) -> Selection:
    """Apply the rules to the cells of a run, finished or not.

    Parameters
    ----------
    cells : pandas.DataFrame
        One row for each finished cell: set, noise, repetition, fold, inner, method, params (JSON), n_right, n_score,
        error, and what else is known of it.
    rules : sequence of str
        Of "oracle_mean", "oracle_fold" and "honest".
    protocol : Protocol, optional
        Says which sets, folds, methods and grid points there should be. None takes those that occur.

    Returns
    -------
    Selection
        What was chosen, and what is missing.

    Raises
    ------
    InvalidData
        A column is missing, or params cannot be read.
    InvalidParameter
        There is no such rule.
    """
    for rule in rules:
        if rule not in RULES:
            raise InvalidParameter(f"rule={rule!r} is none; there are {', '.join(RULES)}.")
    lacking = [c for c in (*KEY, "n_right", "n_score") if c not in cells.columns]
    if lacking:
        raise InvalidData(f"The cells have no column {', '.join(lacking)}.")
    cells = cells.drop_duplicates(KEY, keep="last", ignore_index=True)
    folds = _folds(cells, protocol)
    methods = list(protocol.methods) if protocol else list(dict.fromkeys(cells["method"]))
    # As a share; NaN where the fit failed.
    accuracy = cells["n_right"].to_numpy(float) / cells["n_score"].to_numpy(float)
    if "error" in cells:
        accuracy[cells["error"].fillna("").astype(str).ne("").to_numpy()] = np.nan
    scores = {m: _scores(cells, m, folds, protocol) for m in methods}
    places: dict[Any, NDArray[np.int64]] = {
        k: np.asarray(v) for k, v in folds.groupby(["set", "noise"], sort=False).indices.items()
    }
    complete = _complete(scores, accuracy)
    compared = {honest: _compared(those, places) for honest, those in complete.items()}

    splits = cells["splits"].to_numpy(float) if "splits" in cells else np.zeros(len(cells))
    parts = []
    nothing: set[tuple[Any, str]] = set()
    for rule, (k, m), (place, where) in product(rules, enumerate(methods), places.items()):
        these = where[compared[rule == "honest"][k, where]]
        if len(these):
            parts.append(_choose(rule, scores[m], these, accuracy, splits))
            if parts[-1].empty:
                nothing.add((place, m))
    chosen = _described(cells, accuracy, parts)
    return Selection(chosen, _missing(places, scores, complete, compared, nothing, rules))


def _complete(scores: Mapping[str, _Scores], accuracy: NDArray[np.float64]) -> dict[bool, NDArray[np.bool_]]:
    """The folds (methods, folds) on which all was tried and something worked, by whether the inner fits are needed too."""
    plain, honest = [], []
    for s in scores.values():
        full, inner = (np.isfinite(_taken(accuracy, rows)) for rows in (s.full, s.inner))  # what worked
        tried, tried_inside = (np.asarray((rows >= 0).all(axis=1)) for rows in (s.full, s.inner))
        plain.append(tried & full.any(axis=1))
        honest.append(tried & tried_inside & (full & inner).any(axis=1))
    return {False: np.array(plain), True: np.array(honest)}


def _folds(cells: pd.DataFrame, protocol: Protocol | None) -> pd.DataFrame:
    """All folds there should be, in the protocol's order."""
    if protocol is None:
        return cells[FOLD].drop_duplicates().sort_values(FOLD, kind="stable", ignore_index=True)
    rows = product(protocol.sets, protocol.noise, range(protocol.repetitions), range(protocol.folds))
    return pd.DataFrame(list(rows), columns=FOLD)


def _point(params: str) -> tuple[tuple[str, Any], ...]:
    try:
        return tuple(sorted((k, float(v)) for k, v in json.loads(params).items()))
    except (TypeError, ValueError, AttributeError):
        raise InvalidData(f"params={params!r} of a cell are no JSON object of numbers.") from None


def _scores(cells: pd.DataFrame, method: str, folds: pd.DataFrame, protocol: Protocol | None) -> _Scores:
    """Rows of ``cells`` for each fold and grid point; -1 where there is none."""
    mine = cells[cells["method"] == method]
    told = {text: _point(text) for text in mine["params"].unique()}
    if protocol is None:
        points = sorted(dict.fromkeys(told.values()), key=lambda p: [v for _, v in p])
    else:
        points = [_point(json.dumps(p)) for p in protocol.methods[method].settings()]
    number = {p: k for k, p in enumerate(points)}
    column = mine["params"].map({text: number.get(p, -1) for text, p in told.items()}).to_numpy(int)
    line = pd.MultiIndex.from_frame(folds).get_indexer(pd.MultiIndex.from_frame(mine[FOLD]))
    known = (column >= 0) & (line >= 0)
    inner = mine["inner"].to_numpy(bool)
    tables = []
    for kind in (False, True):
        table = np.full((len(folds), len(points)), -1)
        these = known & (inner == kind)
        table[line[these], column[these]] = mine.index.to_numpy()[these]
        tables.append(table)
    return _Scores(*_places_in_grid(points), *tables)


def _places_in_grid(
    points: Sequence[tuple[tuple[str, Any], ...]],
) -> tuple[tuple[int, ...], NDArray[np.int64]]:
    """Lengths of the grid's parameters, and where in the grid each point lies. No lengths: they are no product."""
    values = [sorted({p[k][1] for p in points}) for k in range(len(points[0]))] if points else []
    shape = tuple(len(v) for v in values)
    if not shape or int(np.prod(shape)) != len(points) or len({tuple(k for k, _ in p) for p in points}) > 1:
        return (), np.arange(len(points))
    at = [[v.index(p[k][1]) for p in points] for k, v in enumerate(values)]
    return shape, np.ravel_multi_index(at, shape)


def _taken(values: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """``values`` at ``rows``; NaN where there is no row, which is -1."""
    found: NDArray[np.float64] = np.append(values, np.nan)[rows]
    return found


def _compared(complete: NDArray[np.bool_], places: Mapping[Any, NDArray[np.int64]]) -> NDArray[np.bool_]:
    """The folds (methods, folds) on which each method is compared, of those that are complete."""
    found = np.zeros_like(complete)
    for where in places.values():
        present = complete[:, where].any(axis=1)
        found[np.ix_(present, where)] = complete[np.ix_(present, where)].all(axis=0)
    return found


def smoothed(scores: NDArray[np.float64], shape: Sequence[int], at: NDArray[np.int64]) -> NDArray[np.float64]:
    """Mean of each grid point and its neighbours, that differ by one step of one parameter; NaN is no neighbour.

    ``scores`` (folds, points) are of a grid with so many values of each parameter (``shape``), in which the points lie ``at``
    (points,) flat indices.
    """
    grid = np.full(scores.shape, np.nan)
    grid[:, at] = scores
    grid = grid.reshape(len(scores), *shape)
    cross = generate_binary_structure(len(shape), 1)[None].astype(float)
    sums, counts = (
        convolve(values, cross, mode="constant") for values in (np.nan_to_num(grid), np.isfinite(grid) * 1.0)
    )
    means: NDArray[np.float64] = (sums / np.maximum(counts, 1)).reshape(scores.shape)[:, at]
    return means


def _choose(
    rule: Rule,
    scores: _Scores,
    folds: NDArray[np.int64],
    accuracy: NDArray[np.float64],
    splits: NDArray[np.float64],
) -> pd.DataFrame:
    """The rows of the cells that a rule chooses for a method on some folds of one set and noise."""
    full, inner = scores.full[folds], scores.inner[folds]
    test = np.round(_taken(accuracy, full), DIGITS)
    if rule == "oracle_mean":
        first = np.round(test.mean(axis=0, keepdims=True), DIGITS)  # NaN where a fit failed
        if not np.isfinite(first).any():
            return pd.DataFrame()
        criteria = [first := np.repeat(first, len(folds), axis=0)]
    elif rule == "oracle_fold":
        criteria = [first := test]
    else:
        first = np.round(_taken(accuracy, inner), DIGITS)
        first[np.isnan(test)] = np.nan  # that a fit failed is known without the test labels
        near = (
            smoothed(first, scores.shape, scores.at).round(DIGITS) if scores.shape else np.zeros_like(first)
        )
        criteria = [first, near, -np.nan_to_num(_taken(splits, inner), nan=np.inf)]
    open_ = np.isfinite(first)
    tied = (first == np.nanmax(first, axis=1, keepdims=True)).sum(axis=1)
    for criterion in criteria:
        worth = np.where(open_, criterion, -np.inf)
        open_ &= worth == worth.max(axis=1, keepdims=True)
    at = open_.argmax(axis=1)
    lines = np.arange(len(folds))
    inside = inner[lines, at] if rule == "honest" else -1
    return pd.DataFrame({"rule": rule, "row": full[lines, at], "inner_row": inside, "tied": tied})


def cell_key(row: Mapping[Any, Any]) -> str:
    """Key of a cell, as :attr:`octsvm.experiments.Cell.key`, from a row of the cells."""
    part = Part(row["set"], row["noise"], int(row["repetition"]), int(row["fold"]), bool(row["inner"]))
    return Cell(part, row["method"], json.loads(row["params"])).key


def _described(cells: pd.DataFrame, accuracy: NDArray[np.float64], parts: list[pd.DataFrame]) -> pd.DataFrame:
    """The chosen rows with what is known of their cells."""
    columns = ["rule", *FOLD[:2], "method", *FOLD[2:], "params", "n_right", "n_score", "accuracy", "key"]
    columns += ["inner_key", "tied", *(c for c in CARRIED if c in cells.columns)]
    parts = [p for p in parts if len(p)]
    if not parts:
        return pd.DataFrame(columns=columns)
    picked = pd.concat(parts, ignore_index=True)
    rows, inner = picked["row"], picked["inner_row"]
    used = cells.loc[cells.index.isin(rows) | cells.index.isin(inner), KEY]
    keys = pd.Series([cell_key(row) for row in used.to_dict("records")], used.index)
    found = cells.loc[rows].reset_index(drop=True).astype({"n_right": int, "n_score": int})
    found["rule"], found["tied"], found["accuracy"] = picked["rule"], picked["tied"], accuracy[rows]
    found["key"], found["inner_key"] = rows.map(keys), inner.map(keys).fillna("")
    return found[columns]


def _missing(
    places: Mapping[Any, NDArray[np.int64]],
    scores: Mapping[str, _Scores],
    complete: Mapping[bool, NDArray[np.bool_]],
    compared: Mapping[bool, NDArray[np.bool_]],
    nothing: Collection[tuple[Any, str]],
    rules: Sequence[Rule],
) -> pd.DataFrame:
    """What each method lacks, where it lacks something."""
    lines = []
    for ((name, noise), where), (k, (m, s)) in product(places.items(), enumerate(scores.items())):
        n, done = len(where), int(complete[False][k, where].sum())
        counts = {f"compared_{rule}": int(compared[rule == "honest"][k, where].sum()) for rule in rules}
        absent, inside = (int((rows[where] < 0).sum()) for rows in (s.full, s.inner))
        reasons = {
            f"{absent} of {s.full[where].size} fits are not there": absent,
            f"{inside} of {s.inner[where].size} inner fits are not there": inside and "honest" in rules,
            f"every fit failed on {n - done} of {n} folds": not absent and done < n,
        }
        why = [text for text, so in reasons.items() if so]
        if min(counts.values(), default=n) < n and not why:
            why = ["other methods lack folds"]
        if ((name, noise), m) in nothing:
            why.append("oracle_mean: no grid point worked on all compared folds")
        if why:
            lines.append([name, noise, m, n, done, *counts.values(), "; ".join(why)])
    columns = ["set", "noise", "method", "expected", "complete", *(f"compared_{r}" for r in rules), "why"]
    return pd.DataFrame(lines, columns=columns)
