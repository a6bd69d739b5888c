"""Trees that a model excludes although its rows do not say so: the proofs of its constants do not know what the user added or took away.

That scores are at most M_i (:func:`~octsvm.formulations.blocks.big_m.score_bound`) is so at *some* optimum. Where a tree has larger
ones, those of its node have one sign and all exceed 1. It is changed until the least is 1, and errors shrink with the scores,
to what their bounds allow. Two ways lead there; neither changes a side or adds to the cost:

* ω_0 is moved. A row of the user's own may stop it, where the score of some point c is at most v. Then the others are at most
  v + W ‖x_i - c‖. The points of s_i and ω_0 are x_i and the mean of all, that of a sum is their mean.
* ω and ω_0 are scaled down. Rows of the user's own that hold with both at 0, too, hold all the way, as they are linear.

The numbers in ``subtree_bounds`` were found with the rows of the formulation, and do not hold without them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn import generate_standard_repn

from ..formulations.base import FEASIBILITY, FloatArray, ModelInfo
from ..formulations.blocks.big_m import error_bound, farthest
from ..formulations.blocks.roles import subject
from . import certificate as checks

MOVED = ("split.omega0", "split.s", "hinge.beta0")  # with ω_0
SCALED = (*MOVED, "split.omega", "hinge.beta")
ERROR = "hinge.e"
SAME = 1e-9  # relative: sums of coefficients that differ by rounding alone


def excluded_trees(model: pyo.ConcreteModel) -> str:
    """Why the engine's bound on ``model`` is none on all its trees up to UB, and what to do; empty where it is one."""
    info: ModelInfo | None = getattr(model, "info", None)
    if info is None or checks.is_own(model):
        return ""
    changed = checks.changed_inside(model)
    return _without_rows(model, changed) or (_beyond_big_m(model, changed) if "scores" in info.big_m else "")


def _without_rows(model: pyo.ConcreteModel, changed: list[str]) -> str:
    """A note where rows that ``subtree_bounds`` rests on were taken out."""
    block = model.component("subtree_bounds")
    if block is None or not any(block.component_data_objects(pyo.Constraint, active=True)):
        return ""
    parts = {name: model.find_component(name) for name in changed if not name.startswith("subtree_bounds.")}
    out = [name for name, part in parts.items() if part is None or part.ctype is pyo.Constraint]
    if not out:
        return ""
    return (
        f"subtree_bounds was found with {checks.some(out)}, which was changed since: cheaper trees may be cut off, and the engine's "
        "bound is dropped. Build the model with the n_min that you want, or with variant='rank', which has no such bounds"
    )


def _beyond_big_m(model: pyo.ConcreteModel, changed: list[str]) -> str:
    """A note where rows or fixings of the user's own need larger scores than big-M has room for."""
    needed, names = _Scores(model, changed).needed()
    sizes = model.info.big_m
    if needed <= max(sizes["scores"], sizes.get("scores_proved", 0.0)):
        return ""
    if "scores_proved" in sizes and math.isfinite(needed):
        enough = float(f"{1.001 * needed:.4g}")  # rounded up
        way = f"Build the model with big_m={enough:g}, which has room for them, or state what you want on omega alone"
    else:
        way = "State what you want on omega alone, or give the other variables in it bounds"
    return (
        f"trees with scores above {sizes['scores']:.6g} are not in the model: none is better where intercepts can be moved, "
        f"which {checks.some(names)} of yours may forbid. The engine's bound is dropped. {way}"
    )


class _Term(NamedTuple):
    """coefficient·variable, and between which values it lies at all trees up to UB, in the model or not."""

    coef: float
    var: Any
    family: str  # of SCALED, ERROR, or empty
    node: int | None
    least: float
    most: float


class _Restriction(NamedTuple):
    """low <= Σ terms <= high, None without that side; of a row that is not linear low is infinite."""

    name: str
    terms: list[_Term]
    low: float | None
    high: float | None

    def short(self, rest: list[_Term]) -> tuple[float, float]:
        """What may be lacking at the lower and the upper side, with all terms but the ``rest`` at 0."""
        return (
            -math.inf if self.low is None else self.low - sum(term.least for term in rest),
            -math.inf if self.high is None else sum(term.most for term in rest) - self.high,
        )

    def scales(self, t: int | None) -> bool:
        """Whether it holds with the hyperplane of node t at 0, too."""
        return (
            max(self.short([x for x in self.terms if x.family not in SCALED or x.node != t])) <= FEASIBILITY
        )

    def stop(self, t: int | None) -> tuple[float, list[_Term]]:
        """The score v at which it may stop ω_t0 from moving towards the rows, and the terms whose mean has it."""
        mine: list[_Term] = []
        rest: list[_Term] = []
        for term in self.terms:
            (mine if term.family in MOVED and term.node == t else rest).append(term)
        total = abs(sum(x.coef for x in mine))
        if any(x.family == "hinge.beta0" for x in mine):
            return math.inf, mine
        if total <= SAME * sum(abs(x.coef) for x in mine):
            return -math.inf, mine  # differences of scores stay as they are
        return max(self.short(rest)) / total, mine

    def errors(self) -> Iterator[float]:
        """How large each error that it may forbid to become less has to be able to be."""
        for k, term in enumerate(self.terms):
            if term.family == ERROR:
                below, above = self.short(self.terms[:k] + self.terms[k + 1 :])
                asked = (below if term.coef > 0 else above) / abs(term.coef)
                yield min(asked, max(term.least / term.coef, term.most / term.coef))


class _Scores:
    """How large the scores of a model have to be, for what the user's rows, bounds and fixings ask."""

    def __init__(self, model: pyo.ConcreteModel, changed: list[str]) -> None:
        info: ModelInfo = model.info
        self._model, self._changed = model, changed
        self._proved = float(info.big_m.get("scores_proved", info.big_m["scores"]))
        families = (
            (*SCALED, ERROR) if "scores_proved" in info.big_m else SCALED
        )  # otherwise an error is at most 1
        self._found = {name: part for name in families if (part := model.find_component(name)) is not None}
        self._norm = getattr(info.params, "norm", "l2")
        self._family = {id(part): name for name, part in self._found.items()}
        # The largest errors that a tree up to UB can pay for.
        c1, unbounded = getattr(info.params, "c1", 0.0), np.full(info.data.n, math.inf)
        self._dearest = error_bound(info.upper_bound, c1, info.data.weights, unbounded)

    def needed(self) -> tuple[float, list[str]]:
        """A bound on scores that is enough, and what asks for more than the proved one."""
        asked: list[tuple[float, str]] = []
        stops: list[tuple[int | None, float, str]] = []
        unscaled: set[int | None] = set()
        unpriced = checks.has_own_objective(self._model)
        for one in self._restrictions():
            asked += [(error - 1, one.name) for error in one.errors()]
            for t in {term.node for term in one.terms if term.family in SCALED}:
                stops.append((t, self._stopped(*one.stop(t)), one.name))
                if not (unpriced and one.scales(t)):
                    unscaled.add(t)
        asked += [(scores, name) for t, scores, name in stops if t in unscaled]
        more = [(scores, name) for scores, name in asked if scores > self._proved]
        return max([self._proved, *(x for x, _ in more)]), list(dict.fromkeys(name for _, name in more))

    def _stopped(self, v: float, terms: list[_Term]) -> float:
        """A bound on scores that is enough where the mean of ``terms`` has the score ``v``."""
        total = sum(x.coef for x in terms)
        if not math.isfinite(v) or (v <= 1 and all(x.coef * total > 0 for x in terms)):
            return self._proved + v - 1  # no mean is farther away than the farthest row
        X, W = self._model.info.data.X, self._model.info.big_m.get("weights")
        if W is None:  # a formulation of the user's own
            return math.inf
        points = [X[subject(x.var).samples[0]] if x.family == "split.s" else X.mean(axis=0) for x in terms]
        away = X - sum(x.coef / total * point for x, point in zip(terms, points, strict=True))
        size = np.abs(away).max(axis=1) if self._norm == "l1" else np.sqrt((away**2).sum(axis=1))
        farther = float((size - self._farthest).max())
        return self._proved + v - 1 + W * farther

    @cached_property
    def _farthest(self) -> FloatArray:
        """max_h ‖x_i - x_h‖ (n,), as in the proved bounds."""
        return farthest(self._model.info.data.X, self._norm)

    def _term(self, coef: float, var: Any) -> _Term:
        family, about = self._family.get(id(var.parent_component()), ""), subject(var)
        low, high = (-math.inf if var.lb is None else var.lb), (math.inf if var.ub is None else var.ub)
        if family in MOVED:
            low, high = -math.inf, math.inf
        elif family == ERROR:
            low, high = 0.0, float(self._dearest[about.samples[0]]) if about.samples else math.inf
        least, most = sorted((coef * low, coef * high))
        return _Term(coef, var, family, about.node, least, most)

    def _restrictions(self) -> Iterator[_Restriction]:
        for name, part in self._found.items():
            for var in part.values() if name in self._changed else ():
                low, high = (var.value, var.value) if var.fixed else var.bounds
                yield _Restriction(name, [self._term(1.0, var)], low, high)
        for component in checks.user_components(self._model):
            for row in checks.rows_of(component):
                repn = generate_standard_repn(row.body, quadratic=False, compute_values=True)
                terms = list(zip(repn.linear_coefs, repn.linear_vars, strict=True))
                low, high = (None if side is None else side - repn.constant for side in (row.lb, row.ub))
                if repn.nonlinear_expr is not None:
                    terms, low = (
                        [(1.0, v) for v in identify_variables(row.body, include_fixed=False)],
                        math.inf,
                    )
                yield _Restriction(component.local_name, [self._term(c, v) for c, v in terms if c], low, high)
