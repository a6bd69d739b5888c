"""The public functions: fit, build, solve, embed, extract, evaluate."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyomo.environ as pyo

from .data import prepare, read_labels, read_weights, require_same_rows
from .errors import InvalidData, InvalidParameter
from .formulations.base import Data, Evaluation, Formulation, ModelInfo
from .formulations.checks import is_number, nearest
from .formulations.registry import formulation as find_formulation
from .formulations.trees import Tree
from .options import BUILD, FIT, MAPPING_SHARE, SolveOptions, advice_on, declarations, limited, takes_options
from .result import Result
from .solving import admission
from .solving import certificate as checks
from .solving.dispatch import solve
from .solving.outcome import one_class, one_class_note
from .solving.strategies import Fit, build_within

__all__ = ["build", "embed", "evaluate", "extract", "fit", "solve"]


@takes_options(FIT)
def fit(
    formulation: str,
    X: Any,
    y: Any,
    *,
    scale: bool = True,
    weights: Any = None,
    **params: Any,
) -> Result:
    """Build the model of ``formulation`` on a table, solve it, and return the checked tree.

    Parameters
    ----------
    formulation : str
        "oct", "oct_h", "re_svm", "octsvm" or "moctsvm".
    X : array-like of shape (n, p)
        numpy array, lists, or DataFrame of numbers; any units.
    y : array-like of shape (n,)
        Labels of any kind; two classes for "re_svm" and "octsvm".
    scale : bool
        Scale features to [0, 1] on these rows (kept in the tree). False wants X in [0, 1] already.
    weights : array-like of shape (n,), optional
        Weight of each row's errors.
    {options}
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
        The answer does not hold; its ``result`` has the best tree known.

    Warns
    -----
    UserWarning
        Where y holds one class only: the tree predicts it everywhere, and nothing is solved. Where the weights are so
        small that a split costs as much as all errors.
    """
    options = SolveOptions(**{name: params.pop(name) for name in declarations(FIT) if name in params})
    form = find_formulation(formulation)
    _require_parameters(form, params)
    checked = form.Params.make(formulation, **params)
    late = options.clock.part(MAPPING_SHARE * options.time_limit).late
    data = prepare(form, X, y, scale=scale, weights=weights, params=checked, late=late)
    _warn_of_cheap_errors(checked, data)
    if data.K == 1:
        info = ModelInfo(form.name, checked, data)
        warnings.warn(one_class_note(data), stacklevel=2)
        return one_class(form, info, options.clock.seconds())
    if options.start is not None:
        _require_tree(options.start)
    return Fit(form, data, checked, options).run()


def _require_parameters(form: Formulation, given: Mapping[str, Any], who: str = FIT) -> None:
    """Refuse a misspelt option of a fit; a misspelt parameter is refused by the formulation."""
    own = form.Params.model_fields
    others = {
        FIT: [*declarations(FIT), "scale", "weights"],
        BUILD: [*declarations(BUILD), "scale", "weights", "start"],
    }.get(who, ["weights"])
    for name in given:
        if name in own:
            continue
        advice = advice_on(name, [*own, *others])
        if advice:
            raise InvalidParameter(f"{name!r} is no argument of octsvm.{who}. {advice}")
        hint = nearest(name, others, 0.8)
        if hint and who == FIT:
            raise InvalidParameter(f"{name!r} is no argument of octsvm.fit.{hint}")


def _warn_of_cheap_errors(params: Any, data: Data) -> None:
    """Say so where weights are so small that no tree pays for a split."""
    name = next((n for n in ("alpha", "c3") if hasattr(params, n)), "")
    price, total = getattr(params, name, 0.0), float(data.weights.sum()) * getattr(params, "c1", 1.0)
    if (
        getattr(params, "error_scale", "count") == "count"
        and (data.weights != 1).any()
        and total <= price * (1 + 1e-9)
    ):
        warnings.warn(
            f"The weights sum up to {data.weights.sum():.4g}, so that a split ({name}={price:g}) costs as much as all errors "
            f"together, and none pays. Give weights * len(weights) / weights.sum(), or {name}={price / data.n:.3g}.",
            stacklevel=3,
        )


@takes_options(BUILD)
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
        "oct", "oct_h", "re_svm", "octsvm" or "moctsvm".
    X : array-like of shape (n, p)
        numpy array, lists, or DataFrame of numbers; any units.
    y : array-like of shape (n,)
        Labels of any kind; two classes for "re_svm" and "octsvm".
    scale : bool
        Scale features to [0, 1] on these rows (kept in the tree). False wants X in [0, 1] already.
    start : Tree, optional
        A tree that the model admits; its objective gives the bound that the big-M constants come from. Without one
        it is that of the best constant tree, and in the SVM models a start that costs more than this is refused.
    weights : array-like of shape (n,), optional
        Weight of each row's errors.
    upper_bound : float, optional
        SVM models: a bound on the optimum that big-M is built from instead. Needed where rows of your own exclude
        the constant tree, e.g. a cap on relabelled rows: trees that cost more than the bound are not in the model.
    {options}
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
    TimeLimitReached
        The limit leaves no time to build the model; the message says how large it is.
    """
    clock = limited(params)
    form = find_formulation(formulation)
    _require_parameters(form, params, BUILD)
    checked = form.Params.make(formulation, **params)
    data = prepare(form, X, y, scale=scale, weights=weights, params=checked)
    _warn_of_cheap_errors(checked, data)
    if upper_bound is None:
        if start is not None:
            _require_tree(start)
        return build_within(clock, form, data, checked, start)
    if not form.uses_upper_bound:
        raise InvalidParameter(
            f"upper_bound= is for the SVM models; no big-M of {formulation!r} depends on the objective."
        )
    if start is not None:
        raise InvalidParameter("Give start= or upper_bound=, not both: each says what big-M is built from.")
    if not is_number(upper_bound) or upper_bound <= 0:
        raise InvalidParameter(f"upper_bound={upper_bound!r} should be a positive number.")
    return build_within(clock, form, data, checked, None, float(upper_bound))


def embed(model: pyo.ConcreteModel, tree: Tree) -> Tree:
    """Set every variable of ``model``, in place, to the values that ``tree`` has there; return the tree as embedded.

    Variables of your own get the best values that your rows leave them beside the tree. Where these rows are not linear,
    they keep the values that they have, if all rows hold with those.

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
        With the reason, if the tree is no point of the model: rows of the model's or of your own that exclude it, or for
        which variables of your own have no values. All values are then as before.
    InvalidParameter
        ``tree`` is no tree, or the model belongs to no formulation.
    """
    _require_tree(tree)
    with checks.restored_on_error(checks.kept_values(model)), checks.with_its_blocks(model):
        return admission.embed_wholly(model, _formulation_of(model), tree)


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
    with checks.with_its_blocks(model):
        return _formulation_of(model).extract(model)


def evaluate(
    formulation: str, tree: Tree, X: Any, y: Any, *, weights: Any = None, **params: Any
) -> Evaluation:
    """The objective of ``tree`` on a table, term by term, in plain numpy.

    Parameters
    ----------
    formulation : str
        "oct", "oct_h", "re_svm", "octsvm" or "moctsvm".
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
    _require_parameters(form, params, "evaluate")
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
    matrix = tree.features_of(X)
    require_same_rows(X=X, y=y, weights=weights)
    classes, index = read_labels(y, len(matrix))
    known = {c: k for k, c in enumerate(tree.classes)}
    for c in classes:
        if c not in known:
            raise InvalidData(
                f"y holds the label {c!r}, and the tree knows {', '.join(map(repr, tree.classes))}."
            )
    position = np.array([known[c] for c in classes], dtype=np.int64)[index]
    return form.evaluate(tree, matrix, position, checked, read_weights(weights, len(matrix)))


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
            f"A fitted tree was expected, not {type(tree).__name__}. A Result's tree is result.tree, a classifier's "
            "classifier.tree_; octsvm.from_sklearn makes one of a decision tree or linear classifier of scikit-learn."
        )
