"""What a call came to: which of the trees known is returned, what is proved of it, and the Result that says so.

Every Result is made here: of a solve, of heuristics without a model, of a solution file, and of a table with one class.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from ..errors import CertificateMismatch, OctsvmError
from ..formulations.base import Data, Evaluation, Formulation, ModelInfo
from ..formulations.registry import formulation
from ..formulations.trees import MarginTree, Tree
from ..result import OWN_SEARCH, Result, TracePoint, relative_gap, versions
from . import certificate as checks
from .certificate import Certificate
from .own_terms import NOTHING, Least, complete

REFUTED = 1e-6  # relative: a bound that lies farther above a checked tree is wrong
BENT = 0.5  # of M times the integrality tolerance, in units of the margin: from here on nothing is proved
BARRED = "; no tree is known that holds with parts of your own, and the one returned is the answer's"
UNSEEN = 0.01  # of an objective: an engine that cannot tell so much apart proves nothing of it


class Candidate(NamedTuple):
    """A checked tree, what it costs in this model, and where it comes from.

    ``tree`` is None for a point of a model that belongs to no formulation. ``source`` is "answer" (the solver's), "start", "constant", "re-routed" or "polished" (both made of an answer), or
    "heuristic".
    """

    tree: Tree | None
    evaluation: Evaluation
    objective: float
    source: str


class Contest:
    """Trees that may be returned for a model; its variables end with the values of the best that it admits.

    Attributes
    ----------
    best : Candidate or None
        None while no tree is known.
    loaded : bool
        Whether the model holds the best tree.
    barred : bool
        Whether the best is an answer that rows of the user's own, or what was changed inside, do not admit: any tree that the
        model admits takes its place.
    """

    def __init__(self, model: pyo.ConcreteModel, form: Formulation, info: ModelInfo) -> None:
        self.loaded, self.barred = True, False
        self._model, self._form, self._info = model, form, info
        self._own, self._unpriced = checks.is_own(model), checks.has_own_objective(model)
        self._values = checks.kept_values(self._model)
        self.best: Candidate | None = None

    def certified(self, certificate: Certificate) -> None:
        """Enter the answer that was certified; the model holds it now, and its tree where it admits that."""
        self._values = checks.kept_values(self._model)
        self.loaded = certificate.admitted and not certificate.mismatch
        self.barred = bool(certificate.mismatch) and not certificate.admitted and not self._own
        self.best = Candidate(certificate.tree, certificate.evaluation, certificate.objective, "answer")

    def enter(self, tree: Tree, source: str) -> None:
        """Enter a tree if the model admits it; one for which variables of the user's own have no value is not known to be."""
        if self._unpriced and self.best is not None:
            cost = self._form.evaluate_on(tree, self._info.data, self._info.params).objective
            if not self._wins(cost):
                return  # spare the embedding
        try:
            embedded = checks.embed(self._model, self._form, tree)
        except OctsvmError:
            self.load()
            return
        if self._own or complete(self._model):
            self.enter_embedded(embedded, source)
        self.load()

    def enter_embedded(self, tree: Tree, source: str) -> None:
        """Enter a tree whose values the model has, those of the user's own variables included."""
        data, params = self._info.data, self._info.params
        marks = None
        if isinstance(tree, MarginTree) and not self._own:
            marks = checks.relabelling(tree, data.n)
        evaluation = self._form.evaluate_on(tree, data, params, marks)
        cost = evaluation.objective if self._own else checks.total(self._model, evaluation)
        if self._wins(cost):
            self.best, self.loaded, self.barred = Candidate(tree, evaluation, cost, source), True, False
            self._values = checks.kept_values(self._model)

    def enter_unembedded(self, tree: Tree, source: str) -> None:
        """Enter a tree by its cost alone: the model as it stands need not admit it.

        The model takes its values if it does.
        """
        evaluation = self._form.evaluate_on(tree, self._info.data, self._info.params)
        if not self._wins(evaluation.objective):
            return
        self.best = Candidate(tree, evaluation, evaluation.objective, source)
        try:
            checks.embed(self._model, self._form, tree)
            self._values = checks.kept_values(self._model)
        except OctsvmError:
            self.loaded = False
            self.load()

    def load(self) -> None:
        """Give the model's variables the values of the best tree, or those from before."""
        checks.restore(self._values)

    def _wins(self, cost: float) -> bool:
        return self.best is None or self.barred or checks.is_cheaper(cost, self.best.objective)


@dataclass
class Outcome:
    """What is known at the end of a call.

    Attributes
    ----------
    info : ModelInfo or None
        None for a model that belongs to no formulation.
    stop : str
        Why it ended, one of :data:`octsvm.result.STOPS`.
    best : Candidate or None
        None where no tree is known. With ``stop`` "infeasible" that means that there is none.
    bound : float
        No tree of the model costs less.
    asked_gap : float or None
        Relative gap at which a tree counts as optimal; None where no proof was asked for.
    found : bool
        Whether ``best`` was found or given, rather than being the tree to fall back on.
    mismatch : str
        Why the solver's answer does not hold; empty where it does.
    size : float
        About how large objectives are, 1 at most.
    claimed : float
        The solver's objective for its own answer.
    differing : tuple of int
        Training rows that the tree routes otherwise than the answer.
    notes : list of str
    how : dict
        Further fields of the Result: solver, solver_version, engine, rounds, nodes, trace.
    bound_source : str
        Whose word the bound is, where it is taken on trust.
    conflict : tuple of str
        Rows and fixings of the user's own that no tree keeps together.
    """

    info: ModelInfo | None
    stop: str
    best: Candidate | None = None
    bound: float = 0.0
    asked_gap: float | None = 0.0
    found: bool = True
    mismatch: str = ""
    size: float = math.nan  # that of the model's own, unless it is given
    claimed: float = math.nan
    differing: tuple[int, ...] = ()
    notes: list[str] = field(default_factory=list)
    how: Mapping[str, Any] = field(default_factory=dict)
    bound_source: str = ""
    conflict: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.size = min(1.0, objective_size(self.info) if math.isnan(self.size) else self.size)

    def limit_bound(
        self,
        own: bool,
        rebuild: str,
        terms: Least = NOTHING,
        slack: float = 0.0,
        unseen: float = 0.0,
        excluded: str = "",
    ) -> None:
        """Take from the bound what this model, as it is built and priced, does not support; a note says why.

        ``own`` says whether the model is as it was built, ``rebuild`` what to do where big-M excludes trees, ``terms``
        what the user's terms come to at least, ``slack`` how far integrality can be bent, in units of the margin,
        ``unseen`` which differences of objectives are within the engine's tolerances, and ``excluded`` why the model may not
        have all trees up to UB (:func:`octsvm.solving.excluded_trees.excluded_trees`).
        """
        assert self.info is not None
        objective = math.inf if self.best is None else self.best.objective
        if slack >= BENT:
            self.bound = -math.inf
            self.stop = "numeric" if self.stop in ("optimal", "infeasible") else self.stop
        if self.best is not None and unseen > UNSEEN * abs(objective) and self.bound > terms.floor():
            self.bound = -math.inf
            self.notes.append(
                f"this tree costs {objective:.3g}, and costs of others are so large that the engine tells nothing below "
                f"{unseen:.2g} apart: its bound is dropped; weights or prices of more equal sizes can be solved"
            )
        if own:
            self.bound = max(self.bound, self.info.least)  # the engine may not have come that far
        self.bound = max(self.bound, terms.floor())
        ceiling = terms.ceiling(self.info.upper_bound)
        beyond = ceiling == -math.inf or objective > ceiling + 1e-6 * abs(ceiling)
        if math.isfinite(self.info.upper_bound) and beyond:
            # The model holds the trees up to UB only, and the best may lie above.
            self.bound = min(self.bound, ceiling)
            self.notes.append(rebuild)
        if not excluded and self.info.big_m.get("scores", 0.0) < self.info.big_m.get("scores_proved", 0.0):
            excluded = (
                "big_m is below the proved value: the engine's bound is no bound on all trees, and is dropped"
            )
        if excluded:
            self.bound = min(self.bound, terms.floor())
            self.notes.append(excluded)
        if (
            self.best is not None
            and not self.mismatch
            and self.bound > objective + REFUTED * max(self.size, abs(objective))
        ):
            self.notes.append(
                f"the engine's bound {self.bound:.8g} lies above this tree's objective and is thereby refuted; it is dropped"
            )
            self.bound = min(0.0, objective)

    def verdict(self) -> tuple[str, str]:
        """Status and stop: what is held, and why the call ended."""
        if self.best is None:
            if self.stop == "infeasible":
                return "infeasible", self.stop
            return ("fallback" if self.info is None else "no_tree"), self.stop
        if self.info is None:
            return "unverified", self.stop
        distance = relative_gap(self.best.objective, self.bound, self.size)
        proved = self.asked_gap is not None and distance <= self.asked_gap
        stop = self.stop
        if stop == "optimal" and (self.mismatch or not proved):
            stop = "numeric"
        if self.mismatch:
            return "unverified", stop
        if proved:
            return "optimal", "file" if stop == "file" else "optimal"
        return ("feasible" if self.found else "fallback"), stop

    def result(self, seconds: float) -> Result:
        """The Result, after ``seconds`` of wall clock."""
        status, stop = self.verdict()
        if self.best is None:
            tree, evaluation, objective = None, Evaluation(math.inf, {}, {}), math.inf
        else:
            tree, evaluation, objective, _ = self.best
        bound = math.inf if status == "infeasible" else min(self.bound, objective)
        return Result(
            tree=tree,
            status=status,
            stop=stop,
            objective=objective,
            bound=bound,
            gap=relative_gap(objective, bound, self.size),
            terms=_terms(evaluation, objective),
            counts=dict(evaluation.counts),
            seconds=seconds,
            notes=(*self.notes, *([self.mismatch] if self.mismatch else [])),
            model_objective=self.claimed,
            differing_rows=self.differing,
            versions=versions(),
            bound_source=self.bound_source,
            conflict=self.conflict,
            **_origin(self.info),
            **self.how,
        )


def objective_size(info: ModelInfo | None) -> float:
    """About how large objectives are: that of the bound that big-M was built from, or of the constant tree."""
    if info is None:
        return 1.0
    if math.isfinite(info.upper_bound):
        return info.upper_bound
    form, data, params = formulation(info.formulation), info.data, info.params
    return float(form.evaluate_on(form.constant_tree(data, params), data, params).objective)


def _origin(info: ModelInfo | None) -> dict[str, Any]:
    """The fields of a Result on the model and its table."""
    if info is None:
        return {"params": {}}
    data = info.data
    return {
        "formulation": info.formulation,
        "params": info.params.model_dump(),
        "big_m": dict(info.big_m),
        "data_digest": data.digest,
        "table_digest": data.table_digest,
        "index": data.index,
        "n": data.n,
        "p": len(data.feature_names),
    }


def _terms(evaluation: Evaluation, objective: float) -> dict[str, float]:
    """The objective's terms; what the user's own add is a term of its own."""
    terms = dict(evaluation.terms)
    if terms and abs(objective - evaluation.objective) > 1e-12 * max(1.0, abs(objective)):
        terms["yours"] = objective - evaluation.objective
    return terms


def no_solver() -> dict[str, str]:
    """The fields of a Result on the solver, where none was called."""
    return {"solver": OWN_SEARCH, "solver_version": versions()["octsvm"]}


def unmodelled(
    form: Formulation,
    info: ModelInfo,
    tree: Tree | None,
    *,
    stop: str,
    seconds: float,
    note: str,
    trace: Iterable[TracePoint] = (),
    asked_gap: float | None = None,
) -> Result:
    """The result of heuristics alone: the tree is a point of the model by the formulation's own checks.

    None stands for the constant tree; ``note`` says why no model was built, or handed over. With ``asked_gap`` a bound
    that was found in building it counts.
    """
    data, params = info.data, info.params
    held: Any = form.constant_tree(data, params) if tree is None else tree
    form.require(held, data, params)
    evaluation = form.evaluate_on(held, data, params)
    if evaluation.relabelled is not None:
        held = checks.with_records(held, info, evaluation.relabelled)
    return Outcome(
        info,
        stop,
        Candidate(held, evaluation, evaluation.objective, "constant" if tree is None else "heuristic"),
        bound=0.0 if asked_gap is None else info.least,
        asked_gap=asked_gap,
        found=tree is not None,
        notes=[note],
        how={**no_solver(), "trace": tuple(trace)},
    ).result(seconds)


def with_bound(result: Result, bound: float, asked_gap: float, seconds: float, size: float) -> Result:
    """The result with a bound that was proved elsewhere, after ``seconds`` in all; objectives are about as large as ``size``."""
    bound = min(bound, result.objective)
    gap = relative_gap(result.objective, bound, size)
    trace = (*result.trace, TracePoint(seconds, result.objective, bound))
    result = replace(result, bound=bound, gap=gap, seconds=seconds, trace=trace)
    if gap <= asked_gap and result.status in ("feasible", "fallback"):
        return replace(result, status="optimal", stop="optimal")
    return result


def delivered(result: Result, on_mismatch: str, said: str) -> Result:
    """The result, unless its answer does not hold, as is ``said``: then as ``on_mismatch`` wants.

    Raises
    ------
    CertificateMismatch
    """
    if result.status != "unverified" or result.tree is None or on_mismatch == "ignore":
        return result
    message = (
        f"{said}: {result.notes[-1]}. The `result` of this error has the best tree known, which costs {result.objective:.8g} (bound "
        f"{result.bound:.8g}), with status 'unverified'. Pass on_mismatch='ignore' to get it returned instead."
    )
    if result.params.get("variant") == "paper":
        message += " variant='paper' without mu_svm lets rows on a hyperplane choose their side; the default variant does not."
    if on_mismatch == "raise":
        raise CertificateMismatch(message, result)
    warnings.warn(message, stacklevel=3)
    return result


def one_class_note(data: Data) -> str:
    """What to warn of where one class is left."""
    return f"y holds one class only ({data.classes[0]!r}): the tree predicts it everywhere, and nothing was solved."


def one_class(form: Formulation, info: ModelInfo, seconds: float) -> Result:
    """The result where one class is left: the constant tree, which is optimal."""
    data, params = info.data, info.params
    if hasattr(params, "leaf_size"):
        params.leaf_size(data.n)
    tree = form.constant_tree(data, params)
    evaluation = form.evaluate_on(tree, data, params)
    return Outcome(
        info,
        "optimal",
        Candidate(tree, evaluation, evaluation.objective, "constant"),
        bound=evaluation.objective,
        notes=["one class only: nothing was solved"],
        how=no_solver(),
    ).result(seconds)


def rebuild_note(form: Formulation, info: ModelInfo, terms: Least = NOTHING) -> str:
    """What to do where rows of the user's own exclude the tree that big-M was built from, or their ``terms`` a proof."""
    if terms.ceiling(info.upper_bound) == -math.inf:
        return (
            f"big-M was built from a tree that costs {info.upper_bound:.6g}, the model is exact for trees up to that only, "
            "and terms of your own may be so negative that a dearer tree pays: nothing is proved of those. Build it with "
            "upper_bound= a bound so large that no dearer tree pays, and give variables of your own bounds"
        )
    if terms.floor() < 0:
        return (
            f"big-M was built from a tree that costs {info.upper_bound:.6g}, the model is exact for trees up to that only, "
            "and with terms of your own that can be negative a dearer tree may be better. Build it with upper_bound= a "
            "bound that holds with your terms"
        )
    data, params = info.data, info.params
    constant = form.constant_tree(data, params)
    none = np.zeros((data.n, constant.n_nodes), dtype=bool)
    cost = form.evaluate_on(constant, data, params, none).objective
    return (
        f"big-M was built from a tree that costs {info.upper_bound:.6g}, which rows or fixings of your own may exclude; "
        f"the model is exact for trees up to that only. Build it with upper_bound= more than {info.upper_bound:.6g}, a bound "
        "that holds with your rows"
        + (f" (the constant tree without relabelling costs {cost:.6g})" if cost > info.upper_bound else "")
    )
