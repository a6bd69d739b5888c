"""The public functions: fit, build, solve, embed, extract, evaluate."""

from __future__ import annotations

import difflib
import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import pyomo.environ as pyo

from . import solvers
from .data import prepare, read_labels, read_weights
from .errors import InvalidData, InvalidParameter, TreeNotAdmitted
from .formulations.base import Data, Evaluation, Formulation, ModelInfo
from .formulations.margin_trees import records as margin_records
from .formulations.params import Params
from .formulations.read_matrix import read_matrix
from .formulations.registry import formulation as find_formulation
from .formulations.trees import Tree
from .result import Progress, Result, TracePoint, relative_gap, versions
from .solving import certificate as certification
from .solving.dispatch import OnMismatch, check_log, check_options, solve, solve_from

Strategy = Literal["balanced", "exact", "heuristic"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)
OPTIONS = (
    "solver",
    "time_limit",
    "work_limit",
    "gap",
    "threads",
    "seed",
    "start",
    "log",
    "callback",
    "scale",
    "weights",
    "on_mismatch",
    "strategy",
    "options",
)
START_SECONDS = 1.0
ROWS_FOR_ALL = 56  # rows from which on the start heuristic gets all its seconds
START_STEPS = 300
CAUGHT = "Ctrl-C came while the model was built or handed over; the tree is the best one known before"
SHORTEST_FOR_START = 0.5  # seconds below which the heuristic would eat the limit
LARGEST_SEARCHED = 1_000  # rows times nodes up to which strategy="heuristic" builds a model
HEURISTIC_SHARE = 0.7  # of the limit that goes to the start heuristics before neighbourhoods are searched
MODEL_SECONDS = 1e-5  # of building and compiling, for each row, node and feature: generous

__all__ = ["build", "embed", "evaluate", "extract", "fit", "solve"]


def fit(
    formulation: str,
    X: Any,
    y: Any,
    *,
    solver: str = "highs",
    time_limit: float = 60,
    work_limit: int | Mapping[str, int] | None = None,
    gap: float = 1e-4,
    threads: int = 1,
    seed: int = 0,
    start: Tree | None = None,
    log: Any = None,
    callback: Callable[[Progress], Any] | None = None,
    scale: bool = True,
    weights: Any = None,
    on_mismatch: OnMismatch = "raise",
    strategy: Strategy = "balanced",
    options: Mapping[str, Any] | None = None,
    **params: Any,
) -> Result:
    """Build the model of ``formulation`` on a table, solve it, and return the checked tree.

    Parameters
    ----------
    formulation : str
        "oct", "oct_h", "re_svm" or "octsvm".
    X : array-like of shape (n, p)
        numpy array, lists, or DataFrame of numbers; any units.
    y : array-like of shape (n,)
        Labels of any kind; two classes for "re_svm" and "octsvm".
    scale : bool
        Scale features to [0, 1] on these rows (kept in the tree). False wants X in [0, 1] already.
    weights : array-like of shape (n,), optional
        Weight of each row's errors.
    strategy : "balanced", "exact" or "heuristic"
        "balanced" looks for a good tree first (a heuristic, at most a tenth of the limit), which tightens the model
        and is the engine's first incumbent; "exact" leaves all time to the engine. Bounds and proofs are the same.
        "heuristic" proves nothing: start heuristics, then the engine on small neighbourhoods of the best tree. Where
        rows times nodes exceed 1,000 no model is built, and the tree is that of the heuristics.
    solver : str
        This and all below as for :func:`octsvm.solve`.
    time_limit : float
        Wall-clock seconds; building the model counts, importing libraries in a first call does not.
    work_limit : int or mapping, optional
        Branch-and-bound nodes, or ``{"nodes": ..., "rounds": ..., "work": ...}``. With strategy="heuristic": nodes
        over all neighbourhoods and the number of neighbourhoods, after a fixed number of steps of the heuristics.
    gap : float
        Relative gap at which a tree counts as optimal.
    threads : int
        Threads of the solver.
    seed : int
        Of the solver's random choices.
    start : Tree, optional
        A tree that the model admits.
    log : bool or path, optional
        The engine's log: True for the console, or a file.
    callback : callable, optional
        Called with :class:`octsvm.Progress`; return True to stop.
    on_mismatch : str
        "raise", "warn" or "ignore": what to do when the solver's answer does not hold outside the solver.
    options : mapping, optional
        The solver's own options, by its own names.
    **params
        Parameters of the formulation, e.g. depth, c1, alpha; see its Params class.

    Returns
    -------
    Result
        The tree, its objective, a bound, and how it was found.

    Raises
    ------
    InvalidData, InvalidParameter, UnknownFormulation
        Before anything is solved.
    UnknownSolver, SolverUnavailable, UnsupportedProblem, OutputNotWritable, TreeNotAdmitted, EngineFailed
        As :func:`octsvm.solve`.
    CertificateMismatch
        The answer does not hold; its ``result`` has the best tree found.

    Warns
    -----
    UserWarning
        Where y holds one class only: the tree predicts it everywhere, and nothing is solved.
    """
    began = time.monotonic()
    check_options(time_limit, work_limit, gap, threads, seed, on_mismatch, options)
    if strategy not in STRATEGIES:
        raise InvalidParameter(f"strategy={strategy!r} should be one of {', '.join(map(repr, STRATEGIES))}.")
    if solver != solvers.AUTO:
        solvers.require(solver)
    form = find_formulation(formulation)
    for name in params:
        close = difflib.get_close_matches(name, OPTIONS, n=1, cutoff=0.8)
        if close and name not in form.Params.model_fields:
            raise InvalidParameter(f"{name!r} is no argument of octsvm.fit. Did you mean {close[0]!r}?")
    checked = form.Params.make(formulation, **params)
    data = prepare(form, X, y, scale=scale, weights=weights)
    if data.K == 1:
        warnings.warn(one_class_note(data), stacklevel=2)
        return one_class(form, data, checked, began, solver)
    if start is not None:
        _require_tree(start)
    passed: dict[str, Any] = {
        "solver": solver,
        "work_limit": work_limit,
        "gap": gap,
        "threads": threads,
        "seed": seed,
        "log": log,
        "callback": callback,
        "on_mismatch": on_mismatch,
        "options": options,
    }
    interrupted = False
    if strategy != "exact":
        from . import heuristics

        loading = time.monotonic()
        try:
            heuristics.load(form.name)
        except KeyboardInterrupt:
            interrupted = True
        began += time.monotonic() - loading
    if strategy == "heuristic":
        return _search(
            form,
            data,
            checked,
            began,
            start,
            interrupted,
            time_limit=float(time_limit),
            **passed,
        )
    given = start
    if strategy == "balanced" and float(time_limit) >= SHORTEST_FOR_START and not interrupted:
        start, interrupted = _better_start(
            form, data, checked, start, float(time_limit), work_limit, int(seed)
        )
    until = began + float(time_limit) / 3

    def late() -> bool:
        return work_limit is None and time.monotonic() > until

    try:
        try:
            model = _build(form, data, checked, start, late)
        except TreeNotAdmitted:
            if start is given:
                raise
            start = given  # e.g. a big_m of the caller's that cuts the heuristic's tree off
            model = _build(form, data, checked, start, late)
        # Where building took all the time, the result is the start or the constant tree.
        left = 1e-3 if interrupted else max(1e-3, float(time_limit) - (time.monotonic() - began))
        result = solve_from(
            model,
            start,
            optional_start=start is not given,
            time_limit=left,
            **passed,
        )
    except KeyboardInterrupt:  # before anything was solved: from then on Ctrl-C is caught where it is solved
        known = None if start is None else form.normalise(start, data, checked)
        return unmodelled(
            form, data, checked, known, stop="interrupted", began=began, solver=solver, note=CAUGHT
        )
    stop = "interrupted" if interrupted and result.status != "optimal" else result.stop
    return replace(result, stop=stop, seconds=time.monotonic() - began)


def _search(
    form: Formulation,
    data: Data,
    params: Params,
    began: float,
    start: Tree | None,
    interrupted: bool,
    *,
    solver: str,
    time_limit: float,
    work_limit: Any,
    callback: Callable[[Progress], Any] | None,
    **others: Any,
) -> Result:
    """strategy="heuristic": the start heuristics, then neighbourhoods of the best tree where a model is worth building.

    ``interrupted`` says that Ctrl-C was pressed already: nothing more is looked for.
    """
    from . import heuristics

    if callback is not None and not callable(callback):
        raise InvalidParameter(f"callback={callback!r} should be a function that is handed a Progress.")
    check_log(others["log"])
    constant = form.constant_tree(data, params)
    given = None
    if start is not None:
        given = form.normalise(start, data, params)
        form.require(given, data, params)
    cells = data.n * constant.n_nodes
    building = MODEL_SECONDS * cells * (data.p + 10)
    # Without the time to build the model and to use it, the heuristics get all of it.
    model_wanted = cells <= LARGEST_SEARCHED and (
        work_limit is not None or time_limit * (1 - HEURISTIC_SHARE) > 2 * building + START_SECONDS
    )
    seconds = time_limit * HEURISTIC_SHARE if model_wanted and work_limit is None else time_limit
    budget = heuristics.Budget(
        max(1e-3, seconds - (time.monotonic() - began)), None if work_limit is None else START_STEPS
    )
    if interrupted:
        budget.stop()
    seed = int(others["seed"])

    def cost(tree: Tree) -> Evaluation:
        return form.evaluate(tree, data.X_original, data.y, params, data.weights)

    trace = []

    def watch(objective: float) -> bool:
        now = time.monotonic() - began
        trace.append(TracePoint(now, objective, 0.0))
        return callback is not None and bool(callback(Progress(now, objective, 0.0, 0, 0)))

    found, _ = heuristics.find(form, data, params, seconds, seed=seed, budget=budget, watch=watch)
    known = [tree for tree in (given, found) if tree is not None]
    best = min(known, key=lambda tree: cost(tree).objective, default=None)
    if budget.ended_by == "interrupted" or not model_wanted:
        stop = budget.ended_by or "local_optimum"
        why = (
            f"rows times nodes are {cells}, above {LARGEST_SEARCHED}"
            if cells > LARGEST_SEARCHED
            else "the search was stopped before it"
            if stop == "interrupted"
            else "the time limit leaves none for it"
        )
        note = f"no model was built: {why}; the tree was found and checked without one"
        return unmodelled(
            form,
            data,
            params,
            best,
            stop=stop,
            began=began,
            solver=solver,
            note=note,
            trace=tuple(trace),
        )
    try:
        try:
            model = _build(form, data, params, best)
        except TreeNotAdmitted:
            # E.g. a big_m of the caller's that cuts the heuristic's tree off.
            best = given
            model = _build(form, data, params, best)
        result = solve_from(
            model,
            best,
            optional_start=best is not given,
            solver=solver,
            time_limit=max(1e-3, time_limit - (time.monotonic() - began)),
            work_limit=work_limit,
            callback=callback,
            neighbourhoods=True,
            **others,
        )
    except KeyboardInterrupt:
        return unmodelled(
            form,
            data,
            params,
            best,
            stop="interrupted",
            began=began,
            solver=solver,
            note=CAUGHT,
            trace=tuple(trace),
        )
    shift = time.monotonic() - began - result.seconds
    later = (TracePoint(p.seconds + shift, p.incumbent, p.bound) for p in result.trace)
    return replace(result, seconds=time.monotonic() - began, trace=(*trace, *later))


def unmodelled(
    form: Formulation,
    data: Data,
    params: Params,
    tree: Tree | None,
    *,
    stop: str,
    began: float,
    solver: str,
    note: str,
    trace: tuple[TracePoint, ...] = (),
) -> Result:
    """The result of heuristics alone: the tree is a point of the model by the formulation's own checks.

    None stands for the constant tree. ``began`` is the monotonic clock when the fit began, ``note`` says why no model was built.
    """
    held: Any = form.constant_tree(data, params) if tree is None else tree
    form.require(held, data, params)
    evaluation = form.evaluate(held, data.X_original, data.y, params, data.weights)
    if evaluation.relabelled is not None:
        held = held.with_relabelled(
            margin_records(held, data, params.c1, params.c2, evaluation.relabelled)  # type: ignore[attr-defined]
        )
    return Result(
        formulation=form.name,
        params=params.model_dump(),
        tree=held,
        status="fallback" if tree is None else "feasible",
        stop=stop,
        objective=evaluation.objective,
        bound=0.0,
        gap=relative_gap(evaluation.objective, 0.0),
        terms=evaluation.terms,
        counts=evaluation.counts,
        seconds=time.monotonic() - began,
        solver=solver,
        solver_version="not called",
        trace=trace,
        notes=(note,),
        model_objective=math.nan,
        data_digest=data.digest,
        index=data.index,
        n=data.n,
        p=data.p,
        versions=versions(),
    )


def _better_start(
    form: Formulation,
    data: Data,
    params: Params,
    start: Tree | None,
    time_limit: float,
    work_limit: Any,
    seed: int,
) -> tuple[Tree | None, bool]:
    """The better of the given start and the heuristic's; under a work limit a fixed number of steps is taken.

    The second value says whether Ctrl-C ended the heuristic.
    """
    from . import heuristics

    if work_limit is None:
        levels = getattr(params, "depth", 0) + 1
        most = START_SECONDS * (data.n / ROWS_FOR_ALL) ** 2 * levels / 2
        found, interrupted = heuristics.find(
            form, data, params, seconds=min(START_SECONDS, most, time_limit / 10), seed=seed
        )
    else:
        found, interrupted = heuristics.find(
            form, data, params, seconds=time_limit, steps=START_STEPS, seed=seed
        )
    if start is None or found is None:
        return (found if start is None else start), interrupted

    def cost(tree: Tree) -> float:
        known = form.normalise(tree, data, params)
        return form.evaluate(known, data.X_original, data.y, params, data.weights).objective

    return (found if cost(found) < cost(start) else start), interrupted


def build(
    formulation: str,
    X: Any,
    y: Any,
    *,
    scale: bool = True,
    start: Tree | None = None,
    weights: Any = None,
    upper_bound: float | None = None,
    **params: Any,
) -> pyo.ConcreteModel:
    """Build the model of ``formulation`` on a table, as a Pyomo ConcreteModel.

    The model is complete by itself: solve it with bare Pyomo, write it to a file, add blocks of your own. It knows
    its formulation, parameters, scaling and classes (``model.info``).

    Parameters
    ----------
    formulation : str
        "oct", "oct_h", "re_svm" or "octsvm".
    X : array-like of shape (n, p)
        numpy array, lists, or DataFrame of numbers; any units.
    y : array-like of shape (n,)
        Labels of any kind; two classes for "re_svm" and "octsvm".
    scale : bool
        Scale features to [0, 1] on these rows (kept in the tree). False wants X in [0, 1] already.
    start : Tree, optional
        A tree that the model admits; its objective gives the bound that the big-M constants come from. Without one
        it is that of the best constant tree.
    weights : array-like of shape (n,), optional
        Weight of each row's errors.
    upper_bound : float, optional
        SVM models: a bound on the optimum that big-M is built from instead. Needed where rows of your own exclude
        the constant tree, e.g. a cap on relabelled rows: trees that cost more than the bound are not in the model.
    **params
        Parameters of the formulation, e.g. depth, c1, alpha; see its Params class.

    Returns
    -------
    pyomo.environ.ConcreteModel
        ``model.cost`` is the formulation's objective, ``model.objective`` what is minimised.

    Raises
    ------
    InvalidData, InvalidParameter, UnknownFormulation
        What was given cannot be used; the message says why.
    TreeNotAdmitted
        ``start`` is no point of the model.
    """
    form = find_formulation(formulation)
    checked = form.Params.make(formulation, **params)
    data = prepare(form, X, y, scale=scale, weights=weights)
    if upper_bound is None:
        return _build(form, data, checked, start)
    if not form.binary_only:
        raise InvalidParameter(
            f"upper_bound= is for the SVM models; no big-M of {formulation!r} depends on the objective."
        )
    if start is not None:
        raise InvalidParameter("Give start= or upper_bound=, not both: each says what big-M is built from.")
    if (
        isinstance(upper_bound, bool)
        or not isinstance(upper_bound, (int, float, np.number))
        or not 0 < upper_bound < np.inf
    ):
        raise InvalidParameter(f"upper_bound={upper_bound!r} should be a positive number.")
    return form.build(data, checked, float(upper_bound))


def _build(
    form: Formulation, data: Data, params: Params, start: Tree | None, stop: Callable[[], bool] | None = None
) -> pyo.ConcreteModel:
    more = {"stop": stop} if form.searches and stop is not None else {}
    if start is None:
        return form.build(data, params, np.inf, **more)
    _require_tree(start)
    tree = form.normalise(start, data, params)
    bound = np.inf
    for known in (tree, form.constant_tree(data, params)):
        bound = min(bound, form.evaluate(known, data.X_original, data.y, params, data.weights).objective)
    model = form.build(data, params, bound, **more)
    if (
        form.binary_only
        and form.evaluate(tree, data.X_original, data.y, params, data.weights).objective <= bound
    ):
        form.embed(model, tree)  # an objective is a bound only if the model has that tree
        for var in model.component_data_objects(pyo.Var):
            if not var.fixed:
                var.set_value(None)
    return model


def embed(model: pyo.ConcreteModel, tree: Tree) -> Tree:
    """Set every variable of ``model``, in place, to the values that ``tree`` has there; return the tree as embedded.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        From :func:`octsvm.build`.
    tree : Tree
        Of the model's kind, with its features and classes; a smaller depth will do.

    Returns
    -------
    Tree
        In the model's depth. In the SVM models intercepts may have moved, which never raises the objective.

    Raises
    ------
    TreeNotAdmitted
        With the reason, if the tree is no point of the model. The values are then as before.
    InvalidParameter
        ``tree`` is no tree, or the model belongs to no formulation.
    """
    _require_tree(tree)
    before = [(v, v.value) for v in model.component_data_objects(pyo.Var)]
    try:
        certification.forget_own_values(model)
        return certification.embed(model, _formulation_of(model), tree)
    except BaseException:
        for var, value in before:
            var.set_value(value, skip_validation=True)
        raise


def extract(model: pyo.ConcreteModel) -> Tree:
    """Read the fitted tree from the values of the model's variables, whoever set them.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        From :func:`octsvm.build`.

    Returns
    -------
    Tree
        Thresholds in the middle of gaps, units and labels of the training table.

    Raises
    ------
    NoValues
        If the model was not solved.
    InvalidParameter
        The model belongs to no formulation.
    """
    tree: Tree = _formulation_of(model).extract(model)
    return tree


def evaluate(
    formulation: str, tree: Tree, X: Any, y: Any, *, weights: Any = None, **params: Any
) -> Evaluation:
    """The objective of ``tree`` on a table, term by term, in plain numpy.

    Parameters
    ----------
    formulation : str
        "oct", "oct_h", "re_svm" or "octsvm".
    tree : Tree
        Of the formulation's kind.
    X : array-like of shape (m, p)
        Original units; the training table or another with its columns.
    y : array-like of shape (m,)
        Labels that the tree knows.
    weights : array-like of shape (m,), optional
        Weight of each row's errors.
    **params
        Parameters of the formulation; leave depth out, the tree has one.

    Returns
    -------
    Evaluation
        The objective, its terms and the counts behind them.

    Raises
    ------
    InvalidData, InvalidParameter, UnknownFormulation
        What was given cannot be used; the message says why.
    """
    form = find_formulation(formulation)
    checked = form.Params.make(formulation, **params)
    _require_tree(tree)
    if not isinstance(tree, form.Tree):
        raise InvalidParameter(
            f"{formulation!r} evaluates trees of the kind {form.Tree.kind!r}, and this one is {tree.kind!r}."
        )
    depth = getattr(checked, "depth", 0)
    if "depth" in params and depth != tree.depth:
        raise InvalidParameter(
            f"depth={depth} was given, and the tree has depth {tree.depth}. Leave depth out."
        )
    matrix, _ = read_matrix(X, tree.feature_names)
    classes, index = read_labels(y, len(matrix))
    known = {c: k for k, c in enumerate(tree.classes)}
    for c in classes:
        if c not in known:
            raise InvalidData(
                f"y holds the label {c!r}, and the tree knows {', '.join(map(repr, tree.classes))}."
            )
    position = np.array([known[c] for c in classes], dtype=np.int64)[index]
    found: Evaluation = form.evaluate(tree, matrix, position, checked, read_weights(weights, len(matrix)))
    return found


def _formulation_of(model: pyo.ConcreteModel) -> Formulation:
    info = getattr(model, "info", None)
    if not isinstance(info, ModelInfo):
        raise InvalidParameter(
            "This model does not know its formulation. Build it with octsvm.build, or set model.info to a ModelInfo."
        )
    return find_formulation(info.formulation)


def _require_tree(tree: Any) -> None:
    if not isinstance(tree, Tree):
        raise InvalidParameter(
            f"A fitted tree was expected, not {type(tree).__name__}. A Result's tree is result.tree."
        )


def one_class_note(data: Data) -> str:
    """What to warn of where one class is left."""
    return f"y holds one class only ({data.classes[0]!r}): the tree predicts it everywhere, and nothing was solved."


def one_class(form: Formulation, data: Data, params: Params, began: float, solver: str) -> Result:
    """The result where one class is left: the constant tree, which is optimal. ``began`` is the monotonic clock then."""
    if hasattr(params, "leaf_size"):
        params.leaf_size(data.n)
    tree = form.constant_tree(data, params)
    evaluation = form.evaluate(tree, data.X_original, data.y, params, data.weights)
    return Result(
        formulation=form.name,
        params=params.model_dump(),
        tree=tree,
        status="optimal",
        stop="optimal",
        objective=evaluation.objective,
        bound=evaluation.objective,
        gap=0.0,
        terms=evaluation.terms,
        counts=evaluation.counts,
        seconds=time.monotonic() - began,
        solver=solver,
        solver_version="not called",
        notes=("one class only: nothing was solved",),
        model_objective=math.nan,
        data_digest=data.digest,
        n=data.n,
        p=data.p,
        versions=versions(),
    )
