"""``octsvm.tune``: parameters of a formulation, chosen by repeated folds of the table itself."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import api
from ..data import class_weights, prepare
from ..errors import InvalidParameter
from ..formulations.base import Formulation
from ..formulations.checks import require_jobs
from ..formulations.registry import formulation as find_formulation
from ..options import FIT, SolveOptions, declarations, takes_options
from ..parameter_grid import whole
from .choice import RULES, Rule, choose, scores
from .folds import Grid, Table, fit_folds, split
from .grids import COSTS, Setting, absolute, has_kernel, prior, settings_of
from .tuning import Tuning

PRIOR_ROWS = 20.0  # for each column
FOLDS_SHARE = 0.5  # of the time limit
KERNEL_ROWS = 1_000  # of the table: on more a kernel takes minutes for each setting
MANY_ROWS = f'kernel="auto" tries kernels on up to {KERNEL_ROWS:,} rows; the table has more, and hyperplanes alone were tried.'
NO_FOLDS = "A class has one row only, or there is one class: nothing could be judged, and the usual setting was taken."

NONE_GIVEN_UP = (
    "No label was given up: what predicts best is chosen, and that need not name wrong labels. To look for those, use "
    "octsvm.suspect_rows, or give a c2 of twice this c1 and tune the rest."
)


@takes_options(FIT)
def tune(
    formulation: str,
    X: Any,
    y: Any,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = None,
    *,
    relative: bool | None = None,
    rule: Rule = "one_standard_error",
    prior_rows: float | None = None,
    folds: int = 5,
    repeats: int | None = None,
    jobs: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = False,
    refit: bool = True,
    class_weight: Any = None,
    scale: bool = True,
    weights: Any = None,
    **params: Any,
) -> Tuning:
    """Choose parameters of ``formulation`` by repeated stratified folds, and fit all rows with them.

    Labels are taken as they are, wrong ones included. In every fold the whole grid is fitted by :func:`octsvm.fit_path` on the
    training rows alone, and judged on the others.

    Parameters
    ----------
    formulation : str
        "oct", "oct_h", "re_svm", "octsvm" or "moctsvm".
    X : array-like of shape (n, p)
        As for :func:`octsvm.fit`.
    y : array-like of shape (n,)
        As for :func:`octsvm.fit`.
    grid : mapping or sequence of mappings, optional
        Values of parameters, as scikit-learn's ParameterGrid takes them. None is a grid of relative costs and depths
        that suits most tables.
    relative : bool, optional
        Whether costs and gammas in the grid are relative (:mod:`octsvm.tuning.grids`): they keep their meaning when the number
        of rows or columns changes. None: those of the default grid are, those of a grid of yours are the model's own.
    rule : "one_standard_error" or "best"
        The simplest within a standard error of the best score (no kernel, then the smallest depth), and there the best;
        or the best score.
    prior_rows : float, optional
        How many rows the prior towards usual settings counts. None is 20 for each column with relative costs, and 0 with your own.
    folds : int
        2 or more; fewer are made where a class has fewer rows.
    repeats : int, optional
        How often folds are drawn; None: until 400 rows are judged, twice at most.
    jobs : int, optional
        Processes on this machine, -1 for all processors. None is what ``joblib.parallel_config`` says (with a Dask client of
        yours and ``parallel_config("dask")``: its workers), and one without it.
    store : path, optional
        A file of one line a fold. A call that was killed goes on from it, and comes to the same choice.
    progress : bool
        A bar with the time left on stderr; where that is no terminal, a line for each fold.
    refit : bool
        Fit all rows with the choice by :func:`octsvm.fit`. False leaves ``result`` None.
    class_weight : None, "balanced" or dict
        Weight of the errors of each class, learnt on the rows that are fitted.
    scale : bool
        As for :func:`octsvm.fit`.
    weights : array-like of shape (n,), optional
        Weight of each row's errors, and of the row where it is judged.
    {options}
    **params
        Parameters that all settings share; costs among them are those of the model, in the folds as in the last fit.
        ``kernel="auto"`` ("re_svm", "octsvm") chooses between hyperplanes in the features and the kernel "rbf".

    Returns
    -------
    Tuning
        The choice, the accuracies behind it, and the fit.

    Raises
    ------
    InvalidData, InvalidParameter, UnknownFormulation
        Before anything is fitted.
    InvalidStore, OutputNotWritable
        ``store`` is another file, or cannot be written.

    Notes
    -----
    The time limit holds for everything: folds take what they need of half of it (of all without ``refit``), the fit of all
    rows takes the rest. Folds that do not end in time do not count, and ``notes`` says so. The other options of a solve
    go to the fit of all rows; folds take a fixed number of steps of the heuristics, and where the limit ends none of
    them, the same call makes the same choice on every machine.
    """
    given = {name: params.pop(name) for name in declarations(FIT) if name in params}
    asked = SolveOptions(**given)
    clock, seed = asked.clock, asked.seed
    form = find_formulation(formulation)
    _check(rule, prior_rows, folds, repeats, jobs, store)
    relative = grid is None if relative is None else bool(relative)
    data = prepare(form, X, y, scale=scale, weights=weights)
    kernels = params.get("kernel") == "auto" and grid is None
    if kernels:
        del params["kernel"]
    many = kernels and data.n > KERNEL_ROWS
    settings = _settings(form, grid, params, kernels and not many)
    everyone = class_weights(class_weight, data.weights, data.classes, data.y)
    kept = np.flatnonzero(data.weights > 0)
    table = Table(data.X_original[kept], data.y[kept], data.classes, data.weights[kept], class_weight)
    parts = split(table, folds, repeats, seed)
    lines = fit_folds(
        table,
        Grid(formulation, settings, params, relative, scale, seed),
        parts,
        jobs,
        None if store is None else Path(store),
        progress,
        clock.part((FOLDS_SHARE if refit else 1.0) * clock.limit),
    )
    counted = (
        (PRIOR_ROWS * table.X.shape[1] if relative else 0.0) if prior_rows is None else float(prior_rows)
    )
    frame = scores(settings, lines, prior(form, settings), len(kept), counted)
    chosen = choose(frame, rule)
    plain = absolute(form, settings, params, replace(data, weights=everyone)) if relative else settings
    for name in (*COSTS, "gamma"):
        if relative and name in frame:
            frame[f"plain_{name}"] = [one.get(name, np.nan) for one in plain]
    choice = {**params, **plain[chosen]}
    result = None
    if refit:
        given["time_limit"] = clock.left()
        result = api.fit(formulation, X, y, scale=scale, weights=everyone, **given, **choice)
    tuned = Tuning(
        formulation=formulation,
        choice=choice,
        result=result,
        accuracy=float(frame["accuracy"].iloc[chosen]),
        rule=rule,
        chosen=chosen,
        seconds=clock.seconds(),
        scores=frame.assign(chosen=np.arange(len(frame)) == chosen),
        folds_wanted=len(parts),
        folds_judged=len(lines),
    )
    kept_all = bool(lines) and hasattr(tuned.tree, "relabelled") and not tuned.tree.relabelled
    said = (NO_FOLDS * (not parts), tuned.folds_missed, NONE_GIVEN_UP * kept_all, MANY_ROWS * many)
    return replace(tuned, notes=tuple(filter(None, said)))


def _settings(form: Formulation, grid: Any, fixed: Mapping[str, Any], kernels: bool) -> list[Setting]:
    """The settings of a grid, valid together with what is fixed; of our own grid those that agree with it."""
    if kernels and not (form.tried and form.tried.kernels):
        raise InvalidParameter(f"{form.name!r} has no kernels to choose from; leave kernel='auto' out.")
    found = settings_of(form, grid, kernels)
    twice = [name for name in fixed if any(name in setting for setting in found)]
    if twice and grid is not None:
        raise InvalidParameter(
            f"{twice[0]!r} is in the grid and an argument of its own as well; name it once."
        )
    for name in twice:
        found = [s for s in found if s.get(name) == fixed[name]] or found
        found = [{k: v for k, v in s.items() if k != name} for s in found]
    found = [s for k, s in enumerate(found) if s not in found[:k]]
    if kernels and not any(has_kernel(s.get("kernel")) for s in found):
        raise InvalidParameter(
            f"kernel='auto' tries kernels with one hyperplane alone, and what else is given ({', '.join(fixed)}) leaves "
            "none of those settings. Leave one of the two out, or give kernel='rbf', which every setting has then."
        )
    for setting in found:
        form.Params.make(form.name, **fixed, **setting)
    return found


def _check(rule: Any, prior_rows: Any, folds: Any, repeats: Any, jobs: Any, store: Any) -> None:
    """Refuse what is out of range."""
    if rule not in RULES:
        raise InvalidParameter(f"rule={rule!r} should be one of {', '.join(map(repr, RULES))}.")
    whole("folds", folds, 2)
    whole("repeats", 1 if repeats is None else repeats, 1)
    known = 0.0 if prior_rows is None else prior_rows
    if isinstance(known, bool) or not isinstance(known, (int, float, np.number)) or not 0 <= known < np.inf:
        raise InvalidParameter(f"prior_rows={prior_rows!r} should be a number, 0 or more.")
    require_jobs("jobs", jobs)
    if store is not None and not isinstance(store, (str, os.PathLike)):
        raise InvalidParameter(f"store={store!r} should be the path of a file.")
