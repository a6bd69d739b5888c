"""Tightening: what the cost of a known tree leaves of a model's variables, written into it and undone exactly."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ..errors import InvalidParameter, UnsupportedProblem
from ..formulations.base import BoolArray, FloatArray, ModelInfo, Structure, structure
from ..formulations.blocks.big_m import SLACK
from ..formulations.blocks.hinge import narrow_hinge
from ..formulations.bounds.scores import Intervals, ScoreProblem
from ..formulations.registry import formulation
from ..formulations.trees import Tree
from ..heuristics.score_relaxation import Plane
from . import certificate as checks
from .branch_and_reduce import Reduction

SECONDS = 10.0


@dataclass(eq=False)
class Changes:
    """What a model had before it was tightened: its ``info``, bounds and values of scores, of fixed variables, and changed rows.

    Other values of scores say that the model was solved since.
    """

    model: pyo.ConcreteModel
    info: ModelInfo
    bounds: list[tuple[Any, Any, Any, float | None]] = field(default_factory=list)
    fixed: list[tuple[Any, float | None]] = field(default_factory=list)
    rows: list[tuple[Any, Any]] = field(default_factory=list)


@dataclass(eq=False)
class Tightening:
    """What :func:`tighten` did to a model. As a context manager it is undone at the end.

    Attributes
    ----------
    upper_bound : float
        Trees that cost more are not in the tightened model.
    bound : float
        No tree of the model costs less.
    scores : ndarray of shape (n, 2)
        Least and greatest score of each training row, in units of the margin.
    settled : int
        Rows whose label is kept, or given up, in every tree that is left.
    fixed : int
        Binaries that were fixed: of rows whose other label costs too much, whichever trees and labels your own rows admit.
    relaxations : int
        That were solved.
    seconds : float
    changes : Changes
        What :meth:`undo` gives back.
    """

    upper_bound: float
    bound: float
    scores: FloatArray
    settled: int
    fixed: int
    relaxations: int
    seconds: float
    changes: Changes = field(repr=False)

    def undo(self) -> None:
        """Give the model back what it had: bounds, fixings and big-M. A second call does nothing.

        Values stay where the model was solved since.
        """
        had = self.changes
        unsolved = all(var.value == value for var, *_, value in had.bounds)
        for var, low, high, _ in had.bounds:
            var.setlb(low)
            var.setub(high)
        for var, value in had.fixed:
            var.unfix()
            if unsolved:
                var.set_value(value, skip_validation=True)
        for row, expression in had.rows:
            row.set_value(expression)
        if had.bounds:
            had.model.info = had.info
        had.bounds, had.fixed, had.rows = [], [], []

    def __enter__(self) -> Tightening:
        return self

    def __exit__(self, *failure: object) -> None:
        self.undo()

    def __str__(self) -> str:
        width = float((self.scores[:, 1] - self.scores[:, 0]).mean())
        return (
            f"from trees that cost up to {self.upper_bound:.6g}: {self.settled} of {len(self.scores)} labels settled, scores "
            f"within {width:.3g} on average, no tree below {self.bound:.6g} ({self.relaxations} relaxations, "
            f"{self.seconds:.2f} s)"
        )


def tighten(
    model: pyo.ConcreteModel, *, start: Tree | None = None, time_limit: float = SECONDS
) -> Tightening:
    """Narrow the scores of a RE-SVM model, in place, to those of trees no dearer than a known one; fix labels that these share.

    Every bound is proved by weak duality: no tree of the model that costs less than ``upper_bound``, whatever labels it
    gives up, is lost, and one of that cost stays. So rows, fixings and costs of your own that you add, before or afterwards,
    only make the model tighter. Big-M follows the scores. Any solver, and any file of :func:`octsvm.write`, profits.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        From :func:`octsvm.build`: "re_svm" with norm="l2", its objective, rows and bounds as they were built.
    start : Tree, optional
        A tree that the model admits; its cost is the ``upper_bound``. Without one it is that of the tree that the model was
        built from, the best constant one if no other was given.
    time_limit : float
        Seconds; what is found by then is used.

    Returns
    -------
    Tightening
        Print it; ``undo()`` gives the model back as it was.

    Raises
    ------
    UnsupportedProblem
        The model is of another kind, or was changed inside.
    TreeNotAdmitted
        ``start`` is no point of the model.
    InvalidParameter
        ``time_limit`` is not positive.
    """
    if isinstance(time_limit, bool) or not isinstance(time_limit, (int, float)) or not time_limit > 0:
        raise InvalidParameter(f"time_limit={time_limit!r} should be a positive number of seconds.")
    began = time.monotonic()
    problem = _problem(model)
    info: ModelInfo = model.info
    upper_bound = info.upper_bound if start is None else min(info.upper_bound, _cost(model, start))

    def left() -> float:
        return began + time_limit - time.monotonic()

    box, bound, relaxations = _reduced(problem, upper_bound, left)
    low, high = box.low[problem.costs.group], box.high[problem.costs.group]
    sign, switch = info.data.sign, problem.costs.switch
    kept, given_up = (np.where(sign > 0, low, -high) >= switch), (np.where(sign > 0, high, -low) < switch)
    done = Tightening(
        upper_bound,
        max(info.least, min(bound, upper_bound)),
        np.column_stack([low, high]),
        int((kept | given_up).sum()),
        0,
        relaxations,
        0.0,
        Changes(model, info),
    )
    _write(done)
    done.seconds = time.monotonic() - began
    return done


def _problem(model: pyo.ConcreteModel) -> ScoreProblem:
    """The model as a function of scores; one that is none is refused."""
    info: ModelInfo | None = getattr(model, "info", None)
    if changed := checks.changed_inside(model):
        raise UnsupportedProblem(
            f"The model's own {checks.some(changed)} was fixed, deactivated or changed since it was built, so that the bounds "
            "that are proved for the model as built need not hold. Tighten it first; what you fix afterwards only makes it tighter."
        )
    problem: ScoreProblem | None = None if info is None else formulation(info.formulation).scores(model)
    if problem is None:
        raise UnsupportedProblem(
            "octsvm.tighten takes models of 're_svm' with norm='l2' and without a big_m below the proved one, and this one is "
            + ("of no formulation." if info is None else f"{info.formulation!r} with {info.params!r}.")
            + " Solve it as it is."
        )
    if not checks.has_own_objective(model):
        raise UnsupportedProblem(
            "The objective of this model is not its formulation's own cost, so that the cost of a tree says nothing of the "
            "others. Tighten it before you change the objective, if your terms cannot be negative."
        )
    return problem


def _cost(model: pyo.ConcreteModel, start: Tree) -> float:
    """What a tree costs that the model admits, rows of the user's own included; the model's values stay."""
    form = formulation(model.info.formulation)
    before = checks.kept_values(model)
    try:
        checks.embed(model, form, start)
        return float(pyo.value(model.cost.expr))
    finally:
        checks.restore(before)


def _reduced(problem: ScoreProblem, upper_bound: float, left: Any) -> tuple[Intervals, float, int]:
    """Intervals (G,) of trees up to ``upper_bound``, a bound on their cost, and the number of relaxations."""
    zero = np.zeros(problem.costs.X.shape[1])
    # The slack keeps trees of that very cost, as in big-M.
    first = Plane(upper_bound + SLACK * max(1.0, upper_bound), zero, 0.0)
    reduction = Reduction(problem.costs, first, 0.0, lambda: left() <= 0, left, improve=False)
    box, bound = problem.box, 0.0
    for value, fresh in reduction.thoroughly(box):
        if fresh.empty:  # but for rounding the known tree itself would be lost
            break
        box, bound = fresh, max(bound, value)
    return box, bound, reduction.relaxation.solves


def _forced(info: ModelInfo, scores: FloatArray, room: float) -> tuple[BoolArray, BoolArray]:
    """Rows that keep their label, and that give it up, in every tree which costs ``room`` more than the bound at most.

    The other label costs more than the cheaper one by what grows along the row's score, so at least by that at an end:

        c2 w + c1 w max(0, 1 + u) - c1 w max(0, 1 - u) > room  at the least u = y s:  kept

    and its negative > room at the greatest: given up.
    """
    sign, weights, params = info.data.sign, info.data.weights, info.params
    c1, c2 = params.c1 * weights, params.c2 * weights  # type: ignore[attr-defined]
    ends = np.sort(sign[:, None] * scores, axis=1)
    dearer = c2[:, None] + c1[:, None] * (np.maximum(0.0, 1.0 + ends) - np.maximum(0.0, 1.0 - ends))
    return dearer[:, 0] > room, -dearer[:, 1] > room


def _write(done: Tightening) -> None:
    """Put the bounds, the fixings and big-M into the model, and say so in its ``info``."""
    had = done.changes
    model, info = had.model, had.info
    low, high = done.scores.T
    slack = SLACK * max(1.0, done.upper_bound)
    kept, given_up = _forced(info, done.scores, done.upper_bound - done.bound + slack)
    for i in np.flatnonzero(kept | given_up).tolist():
        var = model.relabelling.xi[i, 1]
        had.fixed.append((var, var.value))
        var.fix(float(given_up[i]))
    done.fixed = len(had.fixed)
    if hasattr(model.hinge, "hinge_relabelled"):
        had.rows = narrow_hinge(model.hinge, model.split, model.relabelling, info.data.sign, low, high)
    for i, (least, most) in enumerate(done.scores.tolist()):
        var = model.split.s[i, 1]
        had.bounds.append((var, var.lb, var.ub, var.value))
        var.setlb(least if var.lb is None else max(least, var.lb))
        var.setub(most if var.ub is None else min(most, var.ub))
    largest = float(np.abs(done.scores).max())
    # By how much the bounds were above the proved ones, there is still room for scores that rows of the user's own ask for.
    room = info.big_m["scores"] - info.big_m["scores_proved"]
    known, now = info.structure, structure(model)
    model.info = replace(
        info,
        upper_bound=done.upper_bound,
        least=done.bound,
        structure=known
        and Structure(
            known.components,
            {name: now.inside[name] for name in known.inside},
            known.fixed.union(var.name for var, _ in had.fixed),
        ),
        big_m={**info.big_m, "scores": largest, "scores_proved": largest - room, "hinge": 1 + largest},
    )
