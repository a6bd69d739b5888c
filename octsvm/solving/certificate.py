"""Checks an answer outside the solver: the tree in it, where that tree sends the rows, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression, MonomialTermExpression
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn import generate_standard_repn

from ..errors import InvalidParameter, TreeNotAdmitted, UnsupportedProblem
from ..formulations.base import (
    FEASIBILITY,
    BoolArray,
    Evaluation,
    Formulation,
    ModelInfo,
    Structure,
    structure,
)
from ..formulations.bounds.scores import ScoreProblem
from ..formulations.margin_trees import records
from ..formulations.registry import formulation
from ..formulations.trees import MarginTree, Tree

# Agreement asked of two computations of one objective, relative: what feasibility tolerances of 1e-6 leave.
AGREE = 1e-5
ROUNDING = 1e-14  # of the sum of the sizes of its terms: what a sum may be off by, in any order
MOST_NAMED = 4  # of parts of a model that were changed
TIE = 1e-9  # relative: what has to be saved for a tree, or a choice of labels, to take the place of an earlier one


@dataclass(frozen=True, eq=False)
class Certificate:
    """The tree in the model's values and what was recomputed of it.

    ``objective`` includes the user's own terms; ``claimed`` is the model's objective at its values; ``admitted`` says
    whether the tree is a point of the model; ``mismatch`` is empty where the claim holds.
    """

    tree: Tree
    evaluation: Evaluation
    objective: float
    claimed: float
    differing_rows: tuple[int, ...]
    admitted: bool
    mismatch: str
    notes: tuple[str, ...]


def as_built(model: pyo.ConcreteModel) -> Structure | None:
    """What the model was built of; None where it belongs to no formulation."""
    info: ModelInfo | None = getattr(model, "info", None)
    return None if info is None else info.structure


def user_components(model: pyo.ConcreteModel) -> list[Any]:
    """Top-level components that were not there when the model was built."""
    built = as_built(model)
    own = model.component_objects(descend_into=False)
    return [] if built is None else [c for c in own if c.local_name not in built.components]


def active_objective(model: pyo.ConcreteModel) -> Any:
    """The one active objective, to be minimised.

    Raises
    ------
    UnsupportedProblem
    """
    found = list(model.component_data_objects(pyo.Objective, active=True))
    if len(found) != 1:
        names = ", ".join(o.name for o in found) or "none"
        raise UnsupportedProblem(
            f"The model has {len(found)} active objectives ({names}), and one is needed. Deactivate the others."
        )
    if found[0].sense != pyo.minimize:
        raise UnsupportedProblem(
            f"The objective {found[0].name!r} is to be maximised, and trees are fitted by minimising. "
            "Change its sign and set its sense to minimize."
        )
    return found[0]


def has_own_objective(model: pyo.ConcreteModel) -> bool:
    """Whether the objective is the formulation's own cost, to which nothing was added."""
    return active_objective(model).expr is model.component("cost")


def is_own(model: pyo.ConcreteModel) -> bool:
    """Whether nothing was added, fixed or changed in the objective since the model was built."""
    return (
        has_own_objective(model) and not user_components(model) and structure(model) == model.info.structure
    )


def changed_inside(model: pyo.ConcreteModel) -> list[str]:
    """The formulation's own rows and variables that were deactivated, fixed, rewritten or given other bounds or domains."""
    built = as_built(model)
    if built is None:
        return []
    now = structure(model).inside
    return [name for name, mark in built.inside.items() if now.get(name) != mark]


def own_parts(model: pyo.ConcreteModel) -> list[str]:
    """Names of what was added, or changed inside, since the model was built, and of an objective that was changed."""
    objective = active_objective(model)
    priced = [] if has_own_objective(model) else [objective.name]
    return list(
        dict.fromkeys([*(c.local_name for c in user_components(model)), *changed_inside(model), *priced])
    )


def some(names: list[str]) -> str:
    """The first of the names, and how many more there are."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED] + ([f"{more} more"] if more > 0 else []))


@contextmanager
def with_its_blocks(model: pyo.ConcreteModel) -> Iterator[None]:
    """Name the blocks of the formulation that were taken out of ``model``, where what is done inside fails for want of them.

    Raises
    ------
    InvalidParameter
    """
    try:
        yield
    except AttributeError:
        built = as_built(model)
        known = () if built is None else built.components
        lacking = sorted(name for name in known if model.component(name) is None)
        if not lacking:
            raise
        raise InvalidParameter(
            f"The model lacks {', '.join(map(repr, lacking))}, which was taken out of it, and without it no tree can be read or "
            "set. Put a block with the same variables in its place, deactivate rows instead, or build the model again."
        ) from None


def scores_of(model: pyo.ConcreteModel) -> ScoreProblem | None:
    """The model as a function of scores; None where it is none, or not as it was built."""
    info: ModelInfo | None = getattr(model, "info", None)
    return formulation(info.formulation).scores(model) if info is not None and is_own(model) else None


def user_terms(model: pyo.ConcreteModel) -> float:
    """What the user added to the objective, at the present values: objective minus the formulation's own cost."""
    return float(pyo.value(active_objective(model).expr)) - float(pyo.value(model.cost.expr))


def total(model: pyo.ConcreteModel, evaluation: Evaluation) -> float:
    """What a tree costs in the model that has its values: the objective there, and at least its own recomputed cost.

    The user's prices can make it pay that variables of the formulation are larger than the tree needs.
    """
    own = float(pyo.value(model.cost.expr))
    return max(own, evaluation.objective) + user_terms(model)


def _present(body: Any) -> float | None:
    """The value of ``body`` at the present values, None where a variable has none, or the arithmetic there."""
    # Nearly every row; Pyomo's walk through the expression takes several times as long.
    if type(body) is LinearExpression:
        total = 0.0
        for part in body.args:
            if type(part) is not MonomialTermExpression:
                break
            coef, var = part.args
            if type(coef) is not float or var.value is None:
                break
            total += coef * var.value
        else:
            return total
    try:
        found = pyo.value(body, exception=False)
    except ArithmeticError:  # a division by zero
        return None
    return None if found is None or isinstance(found, complex) or math.isnan(found) else float(found)


def _has_no_value(expression: Any) -> bool:
    """Whether all variables have values, and the expression has none there."""
    return _present(expression) is None and all(v.value is not None for v in variables_in(expression))


def variables_in(expression: Any) -> Iterable[Any]:
    """The variables of an expression, fixed ones included; some may come twice."""
    # Nearly every row; Pyomo's walk through the expression takes ten times as long.
    if type(expression) is LinearExpression:
        parts = expression.args
        if all(type(part) is MonomialTermExpression for part in parts):
            return [part.args[1] for part in parts]
    return identify_variables(expression, include_fixed=True)


def excess(row: Any) -> tuple[float, float]:
    """By how much a row is violated at the present values: relative to its larger side, and absolute.

    (0, 0) where a variable of the user's own has no value: nothing to check yet. Infinite where all have one and the row
    has none, as a division by zero.
    """
    low, expression, high = row.to_bounded_expression(evaluate_bounds=True)
    body = _present(expression)
    if body is None:
        if _has_no_value(expression):
            return math.inf, math.inf
        repn = generate_standard_repn(expression, compute_values=True, quadratic=False)
        if not repn.is_constant():
            return 0.0, 0.0
        body = float(repn.constant)  # every coefficient is 0
    size = max(1.0, abs(low or 0.0), abs(high or 0.0))
    beyond = _beyond(body, low, high)
    if beyond > 0:
        beyond = max(0.0, beyond - ROUNDING * _sum_of_sizes(expression))
    return beyond / size, beyond


def _beyond(value: float, low: float | None, high: float | None) -> float:
    """By how much a value is outside its bounds; not above 0 where it is not."""
    return max(low - value if low is not None else 0.0, value - high if high is not None else 0.0)


def _sum_of_sizes(expression: Any) -> float:
    """Σ |coefficient·value| of a linear expression, by which its value may be rounded; 0 of others."""
    repn = generate_standard_repn(expression, compute_values=False, quadratic=False)
    if repn.nonlinear_expr is not None:
        return 0.0
    parts = zip(repn.linear_coefs, repn.linear_vars, strict=True)
    return float(sum(abs(pyo.value(c) * pyo.value(v)) for c, v in parts))


def broken_row(model: pyo.ConcreteModel, tolerance: float = 1e-6) -> str | None:
    """The most violated active row or bound at the present values, as text; None where all hold and the objective has a value.

    The tolerance is relative to the larger side of the row, and to a variable's value for its bounds.
    """
    worst, text = tolerance, None
    for row in model.component_data_objects(pyo.Constraint, active=True):
        relative, absolute = excess(row)
        if relative > worst:
            worst, doc = relative, row.parent_component().doc
            text = f"{row.name} is violated by {absolute:.3g}" if absolute < math.inf else _valueless(row)
            text += f" ({doc})" if doc else ""
    for var in model.component_data_objects(pyo.Var, active=True):
        if var.value is None:
            continue
        low, high = var.bounds
        relative = _beyond(var.value, low, high) / max(1.0, abs(var.value))
        if relative > worst:
            worst, text = relative, f"{var.name} = {var.value:.6g} is outside [{low}, {high}]"
    objective = active_objective(model)
    if text is None and not has_own_objective(model) and _has_no_value(objective.expr):
        text = _valueless(objective)
    return text


def _valueless(component: Any) -> str:
    return f"{component.name} has no value there, as in a division by zero"


def used_variables(model: pyo.ConcreteModel) -> list[Any]:
    """The variables of active rows and the objective, fixed ones included, each once."""
    rows = model.component_data_objects(pyo.Constraint, active=True)
    expressions = [*(row.body for row in rows), active_objective(model).expr]
    return list({id(var): var for expression in expressions for var in variables_in(expression)}.values())


def without_value(model: pyo.ConcreteModel) -> list[Any]:
    """Variables of an active row or the objective that have no value, which only the user's own can be."""
    if all(var.value is not None for var in model.component_data_objects(pyo.Var)):
        return []
    return [var for var in used_variables(model) if var.value is None]


def moved(fixed: list[tuple[Any, float | None]]) -> str | None:
    """Restore variables that the user fixed; say which of them the tree wants elsewhere."""
    text = None
    for var, value in fixed:
        if value is not None and var.value is not None and abs(var.value - value) > FEASIBILITY:
            text = text or f"{var.name} is fixed to {value:g}, and the tree has {var.value:g} there"
        var.set_value(value, skip_validation=True)
    return text


def forget_own_values(model: pyo.ConcreteModel) -> None:
    """Unset the variables of the user's own: values of an earlier solve say nothing about another tree."""
    for component in user_components(model):
        for var in variables_of(component):
            if not var.fixed:
                var.set_value(None)


def variables_of(component: Any) -> list[Any]:
    """The variables in a top-level component."""
    if component.ctype is pyo.Var:
        return list(component.values())
    if component.ctype is pyo.Block:
        return [v for data in component.values() for v in data.component_data_objects(pyo.Var)]
    return []


def rows_of(component: Any) -> list[Any]:
    """The active rows in a top-level component."""
    if component.ctype is pyo.Constraint:
        return [row for row in component.values() if row.active]
    if component.ctype is pyo.Block:
        return [r for b in component.values() for r in b.component_data_objects(pyo.Constraint, active=True)]
    return []


Kept = list[tuple[Any, float | None]]  # variables, and the values that they had


def kept_values(model: pyo.ConcreteModel) -> Kept:
    """The values of all variables, to be given back by :func:`restore`."""
    return [(v, v.value) for v in model.component_data_objects(pyo.Var)]


def restore(kept: Iterable[tuple[Any, float | None]]) -> None:
    """Give variables the values that they had."""
    for var, value in kept:
        var.set_value(value, skip_validation=True)


@contextmanager
def restored_on_error(kept: Iterable[tuple[Any, float | None]]) -> Iterator[None]:
    """As :func:`restore`, where what is done inside fails."""
    try:
        yield
    except BaseException:
        restore(kept)
        raise


Refusal = Callable[[pyo.ConcreteModel], "str | None"]  # why the present values are no point of the model


def embed(
    model: pyo.ConcreteModel,
    formulation: Formulation,
    tree: Tree,
    marks: BoolArray | None = None,
    retry: bool = True,
    refusal: Refusal = broken_row,
) -> Tree:
    """Embed ``tree`` and check every row of the model at the values, the user's own rows included.

    Rows that wait for values of the user's own variables hold, unless ``refusal`` says otherwise
    (:func:`octsvm.solving.admission.embed`).

    With ``retry``, a tree that breaks a row is tried at its own scale, then with the labels given up that it records and
    with every label kept. Where the objective has terms of the user's own, all of them are tried, for the cheapest.

    Raises
    ------
    TreeNotAdmitted
    """
    fixed = [(v, v.value) for v in model.component_data_objects(pyo.Var) if v.fixed]
    try:
        embedded: Tree = formulation.embed(model, tree, marks)
        reason, retry = moved(fixed) or refusal(model), retry and marks is None
        if reason is None and (not retry or has_own_objective(model)):
            return embedded
        best = None if reason is not None else (price(model), embedded, kept_values(model))
        for way, choice in _other_ways(formulation, tree, embedded, model.info.data.n) if retry else ():
            try:
                other = way(model, tree, choice)
            except TreeNotAdmitted:
                continue
            if moved(fixed) is None and refusal(model) is None and (best is None or price(model) < best[0]):
                best = price(model), other, kept_values(model)
    finally:
        moved(fixed)
    if best is None:
        raise TreeNotAdmitted(f"The tree is not a point of this model: {reason}.")
    restore(best[2])
    return best[1]


def _other_ways(
    formulation: Formulation, tree: Tree, embedded: Tree, n: int
) -> Iterator[tuple[Callable[..., Tree], BoolArray | None]]:
    """How else a tree may be embedded: at its own scale, and with other labels given up than the cheapest."""
    if not isinstance(tree, MarginTree) or not isinstance(embedded, MarginTree):
        yield formulation.embed_as_it_stands, None
        return
    if tree.relabelled and tree.n_nodes == embedded.n_nodes and max(r.row for r in tree.relabelled) < n:
        yield formulation.embed, relabelling(tree, n)
    if embedded.relabelled:
        yield formulation.embed, np.zeros((n, embedded.n_nodes), dtype=bool)


def price(model: pyo.ConcreteModel) -> float:
    """The objective at the present values; infinite where a variable has none."""
    found = pyo.value(active_objective(model).expr, exception=False)
    return np.inf if found is None else float(found)


def is_cheaper(cost: float, known: float) -> bool:
    """Whether a tree takes the place of one that was known before."""
    return cost < known - TIE * max(1.0, abs(known))


def certify(model: pyo.ConcreteModel, formulation: Formulation) -> Certificate:
    """Read the tree from the model's values, route the training rows by it, and recompute its objective.

    Each row takes the cheaper of error and relabelling, as far as the user's own rows allow and their prices make it
    pay. The model's values become those of the tree where the model admits it, and stay as they are otherwise.
    """
    info: ModelInfo = model.info
    data = info.data
    claimed = float(pyo.value(active_objective(model).expr))
    said = formulation.assigned_path(model)
    tree: Tree = formulation.extract(model)
    path = tree.nodes(data.X_original)
    differing = tuple(int(i) for i in np.flatnonzero((path != said).any(axis=1)))
    tree, refused = _embed_best(model, formulation, tree)
    admitted, own = refused is None, is_own(model)
    extra = 0.0 if own else user_terms(model)
    # An embedded tree records the rows that it relabels in this model; otherwise each row takes the cheaper.
    marks = None
    if isinstance(tree, MarginTree) and (admitted or not own):
        marks = relabelling(tree, data.n)
    evaluation = formulation.evaluate_on(tree, data, info.params, marks)
    if isinstance(tree, MarginTree) and not admitted and evaluation.relabelled is not None:
        tree = with_records(tree, info, evaluation.relabelled)
    objective = total(model, evaluation) if admitted and not own else evaluation.objective + extra
    notes = [] if own else [_note_on_own_parts(model)]
    # As printed, OCTSVM lets a row on a hyperplane choose its side: only a worse tree contradicts it then.
    chooses = getattr(info.params, "boundary", 0.0) is None
    found = [] if chooses or not differing else [_otherwise_routed(differing, data.n)]
    # Below a feasibility tolerance nothing is told apart: a row of δ or of an error may be off by that much, at its price.
    least = FEASIBILITY * max(1.0, getattr(info.params, "c1", 1.0) * float(data.weights.max(initial=0.0)))
    # Relative for small objectives too: an absolute 1e-5 would hide a wrong answer worth 1e-4.
    if objective > claimed + max(least, AGREE * max(1e-3, abs(claimed))):
        found.append(f"the tree costs {objective:.8g} and the answer claims {claimed:.8g}")
    elif objective < claimed - 1e-6 * max(1e-3, abs(claimed)):
        notes.append(f"the recomputed objective is better than the solver's ({claimed:.8g}) and kept")
    if not admitted and not found:
        if evaluation.objective > info.upper_bound:
            notes.append(
                "the engine's tree is worse than the bound that big-M was built from, where the model is not exact"
            )
        else:
            found.append(f"the tree is no point of the model: {str(refused).rstrip('.')}")
    mismatch = "; ".join(found)
    changes = [] if own or not found else changed_inside(model)
    if changes:
        mismatch += (
            f". The model was changed since it was built ({some(changes)}), which may be why: restore what was changed, "
            "or build it again"
        )
    return Certificate(tree, evaluation, objective, claimed, differing, admitted, mismatch, tuple(notes))


def _embed_best(model: pyo.ConcreteModel, formulation: Formulation, tree: Tree) -> tuple[Tree, str | None]:
    """The best of ``tree`` that the model admits, whose values it then has; or ``tree`` and why the model refuses it.

    The best that the routing leaves open comes first. A user's own rows may forbid it, or their prices make another
    cheaper: the labels that the answer gives up, none, and the answer's values as they stand.
    """
    info: ModelInfo = model.info
    before, priced = kept_values(model), not has_own_objective(model)
    marks = relabelling(tree, info.data.n) if isinstance(tree, MarginTree) else None
    attempts: list[tuple[Tree, BoolArray | None]] = [
        (formulation.improve(tree, info.data, info.params), None),
        (tree, marks),
    ]
    if marks is not None and marks.any():
        attempts.append((tree, np.zeros_like(marks)))
    reason = ""
    best: tuple[float, Tree, Kept] | None = None
    for candidate, choice in attempts:
        try:
            embedded = embed(model, formulation, candidate, choice, retry=False)
        except TreeNotAdmitted as error:
            reason = reason or str(error)
        else:
            cost = price(model)
            if best is None or is_cheaper(cost, best[0]):
                best = cost, embedded, kept_values(model)
        restore(before)
        if best is not None and not priced and choice is None:
            break  # nothing of this routing is cheaper
    else:
        held = None if is_own(model) else _held(model, formulation)
        if held is not None and (best is None or is_cheaper(held[0], best[0])):
            best = (*held, before)
    if best is None:
        return tree, reason
    restore(best[2])
    return best[1], None


def _held(model: pyo.ConcreteModel, formulation: Formulation) -> tuple[float, Tree] | None:
    """What the values as they stand cost, and their tree; None where they are no point of the model, or of no tree."""
    info: ModelInfo = model.info
    tree = formulation.extract_as_it_stands(model)
    routed_otherwise = (tree.nodes(info.data.X_original) != formulation.assigned_path(model)).any()
    if routed_otherwise or broken_row(model) is not None:
        return None
    marks = relabelling(tree, info.data.n) if isinstance(tree, MarginTree) else None
    return total(model, formulation.evaluate_on(tree, info.data, info.params, marks)), tree


def _note_on_own_parts(model: pyo.ConcreteModel) -> str:
    return f"the model carries parts of your own ({some(own_parts(model))}); what they cost, if anything, is the term 'yours'"


def _otherwise_routed(differing: tuple[int, ...], n: int) -> str:
    rows = ", ".join(map(str, differing[:8])) + (", ..." if len(differing) > 8 else "")
    return f"the tree routes {len(differing)} of {n} training rows otherwise than the solver's answer (rows {rows})"


def relabelling(tree: MarginTree, n: int) -> BoolArray:
    """Which of ``n`` rows the tree has relabelled at which node (n, T)."""
    marks = np.zeros((n, tree.n_nodes), dtype=bool)
    for r in tree.relabelled:
        marks[r.row, r.node - 1] = True
    return marks


def with_records(tree: MarginTree, info: ModelInfo, marks: BoolArray) -> MarginTree:
    """The tree with its relabelled rows and their costs."""
    params: Any = info.params
    return tree.with_relabelled(records(tree, info.data, params.c1, params.c2, marks))
