"""From a model to a checked result: classify, bridge, solve in rounds, undo, certify."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pyomo.environ as pyo

from .. import solvers
from ..backends.matrix_program import Array, LinearProgram
from ..bridges import Bridge, leading_to
from ..errors import (
    CertificateMismatch,
    EngineFailed,
    InvalidParameter,
    LicenseTooSmall,
    OctsvmError,
    OutputNotWritable,
    TreeNotAdmitted,
    UnsupportedProblem,
)
from ..formulations.base import Evaluation, Formulation, ModelInfo
from ..formulations.registry import formulation as find_formulation
from ..formulations.trees import Tree
from ..problem_class import classify
from ..result import Progress, Result, relative_gap, versions
from ..solvers import SolverSpec
from . import certificate as certification
from . import large_neighbourhood as searching
from . import plan as planning
from .certificate import Certificate
from .compile import compile_program
from .cutting_planes import Rounds
from .engine import Engine, embedded
from .plan import Plan

SMALL_TABLE = 24  # rows, up to which proofs are likely and rounds short
OnMismatch = Literal["raise", "warn", "ignore"]
SLACK_WARNING = 0.01  # of M times the integrality tolerance, in units of the margin


def solve(
    model: pyo.ConcreteModel,
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
    on_mismatch: OnMismatch = "raise",
    options: Mapping[str, Any] | None = None,
) -> Result:
    """Solve ``model`` and return the best tree known, checked outside the solver.

    The model comes back as it was, but for the values of its variables: they are those of the returned tree where
    the model admits it.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        From :func:`octsvm.build`, with any blocks of your own on top.
    solver : str
        A name of the solver table (`octsvm solvers` shows it), "auto", or "neos:<solver>".
    time_limit : float
        Wall-clock seconds over everything, also the rounds of a bridge.
    work_limit : int or mapping, optional
        A reproducible limit: branch-and-bound nodes over all rounds, or ``{"nodes": ..., "rounds": ..., "work": ...}``,
        where "work" is in the solver's own deterministic units.
    gap : float
        Relative gap at which a tree counts as optimal.
    threads : int
        Threads of the solver; one by default, for runs that can be repeated.
    seed : int
        Of the solver's random choices.
    start : Tree, optional
        A tree that the model admits; the result is never worse.
    log : bool or path, optional
        The engine's log: silent, on the console (True), or appended to a file.
    callback : callable, optional
        Called with :class:`Progress`; return True to stop.
    on_mismatch : str
        "raise", "warn" or "ignore": what to do when the solver's answer does not hold outside the solver.
    options : mapping, optional
        The solver's own options by its own names, e.g. ``{"MIPFocus": 1}``; they win over ours.

    Returns
    -------
    Result
        The tree, its objective, a bound, and how it was found.

    Raises
    ------
    CertificateMismatch
        Where the answer's tree is worse than the answer claims, or routes training rows otherwise; its ``result``
        has status "unverified" and the best tree found.
    UnknownSolver, SolverUnavailable, UnsupportedProblem, LicenseTooSmall, InvalidParameter, OutputNotWritable
        Before anything is solved.
    TreeNotAdmitted
        ``start`` is no point of the model.
    EngineFailed
        The solver broke down without an answer.
    """
    return solve_from(
        model,
        start,
        optional_start=False,
        solver=solver,
        time_limit=time_limit,
        work_limit=work_limit,
        gap=gap,
        threads=threads,
        seed=seed,
        log=log,
        callback=callback,
        on_mismatch=on_mismatch,
        options=options,
    )


def solve_from(
    model: pyo.ConcreteModel,
    start: Tree | None,
    *,
    optional_start: bool,
    solver: str,
    time_limit: float,
    work_limit: int | Mapping[str, int] | None,
    gap: float,
    threads: int,
    seed: int,
    log: Any,
    callback: Callable[[Progress], Any] | None,
    on_mismatch: OnMismatch,
    options: Mapping[str, Any] | None = None,
    neighbourhoods: bool = False,
) -> Result:
    """As :func:`solve`; a start that is ``optional_start`` is dropped where the model does not admit it.

    With ``neighbourhoods`` the model is searched from the start (:mod:`octsvm.solving.large_neighbourhood`), not solved as a whole.
    """
    began = time.monotonic()
    if callback is not None and not callable(callback):
        raise InvalidParameter(f"callback={callback!r} should be a function that is handed a Progress.")
    limits = check_options(time_limit, work_limit, gap, threads, seed, on_mismatch, options)
    check_log(log)
    if solver != solvers.AUTO:
        solvers.require(solver)
    info: ModelInfo | None = getattr(model, "info", None)
    form = find_formulation(info.formulation) if info is not None else None
    certification.active_objective(model)
    problem = classify(model)
    plans = planning.candidates(model, problem, solver)
    plan = next(plans)
    before = {id(v): (v, v.value) for v in model.component_data_objects(pyo.Var)}
    deadline = began + float(time_limit)
    passed_over: list[str] = []
    try:
        start_tree = None
        if start is not None and form is None:
            raise InvalidParameter(
                "start= needs a model that octsvm.build made; this one belongs to no formulation."
            )
        has_start = False
        if form is not None and info is not None:
            # Without a start the engine is handed the tree met in building, or the constant tree: big-M is built from
            # its objective, and the incumbent is then never worse.
            certification.forget_own_values(model)
            for tree, known in _first_trees(form, info, start, optional_start):
                try:
                    seeded = certification.embed(model, form, tree)
                except TreeNotAdmitted:
                    if tree is start and not optional_start:
                        raise  # the others may break rows of the user's own, a start may not
                else:
                    has_start, start_tree = True, seeded if known else None
                    break
        while True:
            spec = searching.spec_of(plan) if neighbourhoods else plan.spec
            _check_limits(plan, limits, gap, bool(options), spec)
            values = [(v, v.value) for v in model.component_data_objects(pyo.Var)]
            failure, attempt = "", None
            try:
                attempt = _run(
                    model,
                    plan,
                    has_start,
                    form,
                    deadline=deadline,
                    began=began,
                    gap=gap,
                    threads=threads,
                    seed=seed,
                    node_limit=limits.nodes,
                    round_limit=limits.rounds,
                    work=limits.work,
                    options=options,
                    log=log,
                    callback=callback,
                    size=_size_of(form, info),
                    neighbourhoods=neighbourhoods,
                    small=info is not None and info.data.n <= SMALL_TABLE,
                    searched=optional_start and start_tree is not None,
                )
                if attempt.stop in ("error", "licence"):
                    failure = attempt.rounds.notes[-1] if attempt.rounds.notes else attempt.stop
            except (EngineFailed, LicenseTooSmall, UnsupportedProblem) as error:
                if solver != solvers.AUTO:
                    raise
                failure = str(error)
            following = next(plans, None) if failure and time.monotonic() < deadline else None
            if following is None:
                break
            # "auto": what one engine cannot do, the next may.
            passed_over.append(f"{plan.solver} was tried first: {failure}")
            for var, value in values:
                var.set_value(value, skip_validation=True)
            plan = following
        if attempt is None:
            raise EngineFailed(
                f"No engine solved this model: {failure}. Write it with octsvm.write and solve it elsewhere."
            )
        attempt.rounds.notes[:0] = passed_over
        try:
            result = _Outcome(model, form, info, attempt, start_tree, before).result(began, deadline, gap)
        except (
            KeyboardInterrupt
        ):  # the second one, while the answer is being checked: finish with what there is
            attempt = replace(attempt, stop="interrupted")
            result = _Outcome(model, form, info, attempt, start_tree, before).result(began, deadline, gap)
        used = set(attempt.program.position)
        for key, (var, value) in before.items():
            if var.value is None and key not in used:
                var.set_value(value, skip_validation=True)  # in no row: nothing that was solved concerns it
    except BaseException:
        for var, value in before.values():
            var.set_value(value, skip_validation=True)
        raise
    if result.status == "unverified" and form is not None and on_mismatch != "ignore":
        message = _mismatch_text(result)
        if on_mismatch == "raise":
            raise CertificateMismatch(message, result)
        import warnings

        warnings.warn(message, stacklevel=2)
    return result


@dataclass(frozen=True)
class _Attempt:
    """What one engine came to."""

    plan: Plan
    program: LinearProgram
    rounds: Rounds
    stop: str
    bridge: Bridge | None
    has_start: bool


def _first_trees(
    form: Formulation, info: ModelInfo, start: Tree | None, optional: bool
) -> list[tuple[Tree, bool]]:
    """Trees to begin with, the first that the model admits, and whether each is more than the constant tree."""
    if start is not None and not optional:
        return [(start, True)]

    def cost(tree: Tree) -> float:
        known = form.normalise(tree, info.data, info.params)
        data = info.data
        return form.evaluate(known, data.X_original, data.y, info.params, data.weights).objective

    found = [tree for tree in (start, info.tree) if tree is not None]
    constant = [(form.constant_tree(info.data, info.params), False)] if start is None else []
    return [(tree, True) for tree in (sorted(found, key=cost) if len(found) > 1 else found)] + constant


def _run(
    model: pyo.ConcreteModel,
    plan: Plan,
    has_start: bool,
    form: Formulation | None,
    neighbourhoods: bool,
    **options: Any,
) -> _Attempt:
    # Costs are not negative in any formulation; with terms of the user's own nothing is known beforehand.
    own = form is not None and certification.is_own(model)
    problem = plan.problem
    bridge = leading_to(problem, ("LP", "MILP"))
    engine: Engine | None = None
    try:
        program = compile_program(model, problem, bridge)
        engine = Engine(plan.spec.with_own(options["options"]), program, bridge, plan.native)
        start = _start_point(program, bridge) if has_start else None
        if bridge is not None:
            bridge.undo()
        searches = neighbourhoods and start is not None
        if not searches:
            engine.write_file(model, problem, options["size"])

        def settle(x: Array) -> Array | None:
            assert form is not None
            program.load(x)
            try:
                tree = form.extract(model)
                form.embed(model, form.improve(tree, model.info.data, model.info.params))
            except OctsvmError:
                return None
            return _start_point(program, bridge)

        rounds = Rounds(
            program,
            engine,
            bridge,
            floor=0.0 if own else -math.inf,
            settle=settle if own and form is not None else None,
            **options,
        )
        if searches and start is not None and form is not None:
            search = searching.Search(
                model, rounds, plan, bridge, options["seed"], lambda: form.assigned_path(model)
            )
            stop = search.run(start)
        else:
            stop = rounds.run(start)
    finally:
        if engine is not None:
            engine.close()
        if bridge is not None:
            bridge.undo()
    return _Attempt(plan, program, rounds, stop, bridge, has_start)


def _check_limits(plan: Plan, limits: WorkLimits, gap: float, own_options: bool, spec: SolverSpec) -> None:
    """Refuse a work limit that the engine does not know, and a gap that it cannot be asked for.

    Raises
    ------
    InvalidParameter
    """
    for name, neutral, value in (("nodes", "node_limit", limits.nodes), ("work", "work_limit", limits.work)):
        if value is not None and not spec.takes(neutral):
            raise InvalidParameter(
                f"work_limit={{{name!r}: ...}} was asked for, and {plan.solver} has no such limit. "
                "Use time_limit, or another solver."
            )
    least = plan.spec.least_gap
    if gap < least and not own_options:
        raise InvalidParameter(
            f"gap={gap:g} was asked for, and {plan.solver} stops at its own, which is {least:g} with most solvers. Pass its own "
            "option for it in options=, or a larger gap."
        )


def _size_of(form: Formulation | None, info: ModelInfo | None) -> float:
    """About how large objectives are: that of the constant tree, or of the bound that big-M was built from."""
    if form is None or info is None:
        return 1.0
    if math.isfinite(info.upper_bound):
        return info.upper_bound
    data = info.data
    constant = form.constant_tree(data, info.params)
    return float(form.evaluate(constant, data.X_original, data.y, info.params, data.weights).objective)


def _start_point(program: LinearProgram, bridge: Bridge | None) -> Array:
    """The model's values; NaN for variables of the user's own that have none, 0 for the bridge's (it repairs them)."""
    lifted = () if bridge is None else bridge.own_variables()
    lifted_ids = {id(v) for v in lifted}
    blank = {True: 0.0, False: np.nan}
    return np.array(
        [blank[id(v) in lifted_ids] if v.value is None else v.value for v in program.columns], dtype=float
    )


class _Outcome:
    """Turns what the rounds left into a certified result."""

    def __init__(
        self,
        model: pyo.ConcreteModel,
        form: Formulation | None,
        info: ModelInfo | None,
        attempt: _Attempt,
        start: Tree | None,
        before: Mapping[int, tuple[Any, float | None]],
    ) -> None:
        self.before = before
        self.model, self.form, self.info, self.attempt, self.start = model, form, info, attempt, start
        self.program, self.rounds, self.stop = attempt.program, attempt.rounds, attempt.stop
        self.notes: list[str] = list(attempt.rounds.notes)

    def result(self, began: float, deadline: float, gap: float) -> Result:
        self._note_what_was_rewritten()
        if self.rounds.best is not None:
            self._load(self.rounds.best)
        if self.form is None or self.info is None:
            return self._uncertified(began, gap)
        if self.stop == "infeasible":
            if math.isfinite(self.info.upper_bound):
                self.notes.append(self._rebuild_note())
            return self._infeasible(began)
        certificate: Certificate | None = None
        mismatch = ""
        if self.rounds.best is not None:
            certificate = certification.certify(self.model, self.form)
            self.notes += certificate.notes
            mismatch = certificate.mismatch
        found = self._best_tree(certificate, deadline)
        if found is None:
            return self._infeasible(began)
        tree, evaluation, objective, source = found
        bound = self.rounds.bound
        if certification.is_own(self.model):
            bound = max(bound, self.info.least)  # the engine may not have come that far
        if objective > self.info.upper_bound * (1 + 1e-6):
            # The model holds the trees up to UB only, and the best may lie above.
            bound = min(bound, self.info.upper_bound)
            self.notes.append(self._rebuild_note())
        if self.info.big_m.get("scores", 0.0) < self.info.big_m.get("scores_proved", 0.0):
            bound = min(bound, 0.0)
            self.notes.append(
                "big_m is below the proved value: the engine's bound is no bound on all trees, and is dropped"
            )
        if not mismatch and bound > objective + 1e-6 * max(self._size(), abs(objective)):
            self.notes.append(
                f"the engine's bound {bound:.8g} lies above this tree's objective and is thereby refuted; it is dropped"
            )
            bound = min(0.0, objective)
        distance = relative_gap(objective, bound, self._size())
        stop = self.stop
        if stop == "optimal" and distance > gap:
            stop = "numeric"
        if mismatch:
            status = "unverified"
            if stop == "optimal":
                stop = "numeric"
        elif distance <= gap:
            status, stop = "optimal", "optimal"
        elif (source == "answer" and self.rounds.own) or self.start is not None:
            status = "feasible"
        else:
            status = "fallback"
        if not tree.splits.any():
            self.notes.append(
                "the tree does not split: every row gets the heavier class. "
                + (
                    "Larger c1 and c2 make a split pay"
                    if "c1" in self.info.params.model_dump()
                    else "A smaller alpha makes one pay"
                )
            )
        return self._make(
            began,
            tree,
            evaluation,
            objective,
            min(bound, objective),
            status,
            stop,
            notes=[*self.notes, *([mismatch] if mismatch else [])],
            claimed=math.nan if certificate is None else certificate.claimed,
            differing=() if certificate is None else certificate.differing_rows,
        )

    # -- parts ----------------------------------------------------------------------------------------------

    def _size(self) -> float:
        return min(1.0, self.rounds.size)

    def _load(self, x: Array) -> None:
        for var in self.model.component_data_objects(pyo.Var):
            if var.value is None:  # stands in no row: any value will do, and its own is best
                _, own = self.before.get(id(var), (var, None))
                var.set_value(0.0 if own is None else own, skip_validation=True)
        for var, value, integer in zip(
            self.program.columns, x.tolist(), self.program.integer.tolist(), strict=True
        ):
            var.set_value(float(round(value)) if integer else value, skip_validation=True)

    def _best_tree(
        self, certificate: Certificate | None, deadline: float
    ) -> tuple[Tree, Evaluation, float, str] | None:
        """The certified tree, unless the start or the constant tree is better, or the answer does not hold."""
        assert self.form is not None
        assert self.info is not None
        found: list[tuple[Tree, Evaluation, float, str]] = []
        if certificate is not None:
            found.append((certificate.tree, certificate.evaluation, certificate.objective, "answer"))
            if certificate.mismatch:
                found += self._repaired(certificate.tree, deadline)
        others: list[tuple[Tree, str]] = [] if self.start is None else [(self.start, "start")]
        others.append((self.form.constant_tree(self.info.data, self.info.params), "constant"))
        values = None
        data = self.info.data
        known = certification.is_own(self.model)
        for tree, source in others:
            if known and found:
                cost = self.form.evaluate(
                    tree, data.X_original, data.y, self.info.params, data.weights
                ).objective
                if cost >= found[0][2] and not (certificate and certificate.mismatch):
                    continue  # no better: spare the embedding
            values = values or {id(v): (v, v.value) for v in self.model.component_data_objects(pyo.Var)}
            try:
                embedded = certification.embed(self.model, self.form, tree)
            except OctsvmError:
                continue
            evaluation = self.form.evaluate(embedded, data.X_original, data.y, self.info.params, data.weights)
            cost = float(pyo.value(certification.active_objective(self.model).expr))
            found.append((embedded, evaluation, cost, source))
        if values is not None:
            for var, value in values.values():
                var.set_value(value, skip_validation=True)
        if not found:
            return None
        best = found[0]
        for other in found[1:]:
            if other[2] < best[2] - 1e-9 * max(1.0, abs(best[2])):
                best = other
        if best[3] != "answer":
            if certificate is not None and not certificate.mismatch:
                self.notes.append(f"the {best[3]} tree is better than what the engine found, and is returned")
            try:
                certification.embed(self.model, self.form, best[0])
            except OctsvmError:
                self.notes.append("the model holds the engine's answer, not the returned tree")
        return best

    def _repaired(self, tree: Tree, deadline: float) -> list[tuple[Tree, Evaluation, float, str]]:
        """Re-route by the tree, fix what follows from it in the default variant, and polish there."""
        assert self.form is not None
        assert self.info is not None
        if not certification.is_own(self.model):
            return []
        better = polish_tree(self.form, self.info, tree, max(1.0, deadline - time.monotonic()))
        if better is None:
            return []
        data = self.info.data
        evaluation = self.form.evaluate(better, data.X_original, data.y, self.info.params, data.weights)
        return [(better, evaluation, evaluation.objective, "re-routed")]

    def _note_what_was_rewritten(self) -> None:
        plan, bridge = self.attempt.plan, self.attempt.bridge
        if not plan.native and bridge is not None:
            self.notes.append(
                f"{plan.problem.name} solved as a series of linear models ({bridge.name}, {bridge.exactness})"
            )
        elif plan.rewritten:
            self.notes.append("; ".join(plan.rewritten))
        if self.rounds.spec.claim == "none" != plan.spec.claim:
            self.notes.append(
                f"with these options {plan.title} has been seen to call wrong values optimal: its bound is not used"
            )
        if plan.spec.claim == "convex" and plan.problem.unmarked and self.stop == "optimal":
            self.notes.append(
                f"{plan.title} proves optimality of convex models only, and nothing is known of {plan.problem.unmarked[0]}: "
                "its bound is no proof"
            )
        if self.info is not None and self.info.big_m:
            largest = max(self.info.big_m["scores"], self.info.big_m["hinge"])
            slack = largest * self.rounds.integrality
            if slack > SLACK_WARNING:
                self.notes.append(
                    f"big-M {largest:.3g} times the integrality tolerance {self.rounds.integrality:g} is {slack:.2g} in units "
                    "of the margin: the engine's bound may be lower than the true one; a good start= lowers M"
                )

    def _engine(self) -> dict[str, Any]:
        """What is known of the engine's own doing."""
        plan, last = self.attempt.plan, self.rounds.last
        start = "none"
        if self.attempt.has_start:
            start = "unsupported" if plan.start == "none" else self.rounds.start or "unknown"
        return {
            "entry": plan.spec.name,
            "interface": plan.interface,
            "as_it_stands": plan.native,
            "start": start,
            "status": "" if last is None else last.native,
            "startup_seconds": self.rounds.startup,
            "options": {} if last is None else dict(last.options),
        }

    def _rebuild_note(self) -> str:
        assert self.form is not None
        assert self.info is not None
        data, params = self.info.data, self.info.params
        constant = self.form.constant_tree(data, params)
        none = np.zeros((data.n, constant.n_nodes), dtype=bool)
        cost = self.form.evaluate(constant, data.X_original, data.y, params, data.weights, none).objective
        return (
            f"big-M was built from a tree that costs {self.info.upper_bound:.6g}, which rows or fixings of your own may exclude; "
            "the model is exact for trees up to that only. Build it with upper_bound= a bound that holds with your rows "
            f"(the constant tree without relabelling costs {cost:.6g})"
        )

    def _infeasible(self, began: float) -> Result:
        return self._make(
            began,
            None,
            Evaluation(math.inf, {}, {}),
            math.inf,
            math.inf,
            "infeasible",
            "infeasible",
            notes=self.notes,
        )

    def _uncertified(self, began: float, gap: float) -> Result:
        rounds = self.rounds
        self.notes.append(
            "the model belongs to no formulation: values are loaded, and nothing was checked outside the solver"
        )
        status = (
            "infeasible"
            if self.stop == "infeasible"
            else "unverified"
            if rounds.best is not None
            else "fallback"
        )
        return self._make(
            began,
            None,
            Evaluation(rounds.objective, {}, {}),
            rounds.objective,
            rounds.bound,
            status,
            self.stop,
            notes=self.notes,
        )

    def _make(
        self,
        began: float,
        tree: Tree | None,
        evaluation: Evaluation,
        objective: float,
        bound: float,
        status: str,
        stop: str,
        *,
        notes: list[str],
        claimed: float = math.nan,
        differing: tuple[int, ...] = (),
    ) -> Result:
        info, rounds = self.info, self.rounds
        terms = dict(evaluation.terms)
        if terms and abs(objective - evaluation.objective) > 1e-12 * max(1.0, abs(objective)):
            terms["yours"] = objective - evaluation.objective
        return Result(
            formulation=info.formulation if info else self.model.name,
            params=info.params.model_dump() if info else {},
            tree=tree,
            status=status,
            stop=stop,
            objective=objective,
            bound=bound,
            gap=relative_gap(objective, bound) if math.isfinite(objective) else math.inf,
            terms=terms,
            counts=dict(evaluation.counts),
            seconds=time.monotonic() - began,
            solver=self.attempt.plan.solver,
            solver_version=(rounds.last.version if rounds.last is not None else "")
            or self.attempt.plan.version,
            engine=self._engine(),
            rounds=rounds.rounds,
            nodes=rounds.nodes,
            trace=tuple(rounds.trace),
            notes=tuple(notes),
            model_objective=claimed,
            differing_rows=differing,
            big_m=dict(info.big_m) if info else {},
            data_digest=info.data.digest if info else "",
            index=info.data.index if info else None,
            n=info.data.n if info else 0,
            p=info.data.p if info else 0,
            versions=versions(),
        )


def polish_tree(form: Formulation, info: ModelInfo, tree: Tree, seconds: float) -> Tree | None:
    """Fix in the default variant what follows from the tree's routing, solve the convex rest, and return that tree.

    None where the default variant does not admit the tree, or nothing came of it.
    """
    began = time.monotonic()
    data, params = info.data, info.params
    params = params.model_copy(update={"variant": None})
    cost = form.evaluate(tree, data.X_original, data.y, params, data.weights).objective
    model = form.build(data, params, cost)
    try:
        form.embed(model, tree)
        problem = classify(model)
        bridge = leading_to(problem, ("LP", "MILP"))
        program = compile_program(model, problem, bridge)
        rounds = Rounds(
            program,
            Engine(embedded(), program, bridge, native=bridge is None),
            bridge,
            deadline=began + seconds,
            began=began,
            gap=1e-4,
            threads=1,
            seed=0,
            node_limit=None,
            round_limit=None,
            floor=0.0,
            size=cost,
            log=None,
            callback=None,
        )
        rounds.begin_with(_start_point(program, bridge))
        if rounds.best is None:
            return None
        program.load(rounds.best)
        if bridge is not None:
            bridge.undo()
        return certification.certify(model, form).tree
    except OctsvmError:
        return None


def _mismatch_text(result: Result) -> str:
    return (
        f"The solver's answer does not hold outside the solver: {result.notes[-1]}. The best tree found costs "
        f"{result.objective:.8g} (bound {result.bound:.8g}); it is in the `result` of this error, with status 'unverified'. "
        "Pass on_mismatch='ignore' to get it returned instead."
        + (
            " variant='paper' without mu_svm lets rows on a hyperplane choose their side; the default variant does not."
            if result.params.get("variant") == "paper"
            else ""
        )
    )


def check_log(log: Any) -> None:
    """Refuse a log file that cannot be written, before anything is solved.

    Raises
    ------
    OutputNotWritable, InvalidParameter
    """
    if log is None or isinstance(log, bool):
        return
    if not isinstance(log, (str, os.PathLike)):
        raise InvalidParameter(f"log={log!r} should be None, True (the console) or a file's path.")
    try:
        with open(log, "a", encoding="utf-8"):
            pass
    except OSError as error:
        raise OutputNotWritable(
            f"The log file {os.fspath(log)!r} cannot be written: {error.strerror}."
        ) from None


class WorkLimits(NamedTuple):
    """Reproducible limits: nodes and rounds over all rounds, and the engine's own units of a single one."""

    nodes: int | None = None
    rounds: int | None = None
    work: float | None = None


def check_options(
    time_limit: Any,
    work_limit: Any,
    gap: Any,
    threads: Any,
    seed: Any,
    on_mismatch: Any,
    options: Any = None,
) -> WorkLimits:
    """Refuse what is no option of a solve; return the work limits.

    Raises
    ------
    InvalidParameter
    """

    def number(value: Any) -> bool:
        return (
            isinstance(value, (int, float, np.number))
            and not isinstance(value, bool)
            and math.isfinite(value)
        )

    def whole(value: Any) -> bool:
        return isinstance(value, (int, np.integer)) and not isinstance(value, bool)

    if not number(time_limit) or time_limit <= 0:
        raise InvalidParameter(f"time_limit={time_limit!r} should be a positive number of seconds.")
    if not number(gap) or not 0 <= gap < 1:
        raise InvalidParameter(
            f"gap={gap!r} should be a relative gap, 0 or more and below 1 (1e-4 is the default)."
        )
    if not whole(threads) or threads < 1:
        raise InvalidParameter(f"threads={threads!r} should be a whole number, 1 or more.")
    if not whole(seed) or seed < 0:
        raise InvalidParameter(f"seed={seed!r} should be a whole number, 0 or more.")
    if on_mismatch not in ("raise", "warn", "ignore"):
        raise InvalidParameter(f"on_mismatch={on_mismatch!r} should be 'raise', 'warn' or 'ignore'.")
    if options is not None and not (
        isinstance(options, Mapping) and all(isinstance(name, str) for name in options)
    ):
        raise InvalidParameter(
            f"options={options!r} should be a mapping from the solver's own option names to values, or None."
        )
    limits = {"nodes": work_limit} if whole(work_limit) else {} if work_limit is None else work_limit
    if (
        not isinstance(limits, Mapping)
        or set(limits) - {"nodes", "rounds", "work"}
        or not all(whole(limits.get(k, 1)) and limits.get(k, 1) >= 1 for k in ("nodes", "rounds"))
        or not (number(limits.get("work", 1)) and limits.get("work", 1) > 0)
    ):
        raise InvalidParameter(
            f"work_limit={work_limit!r} should be a number of nodes, or {{'nodes': ..., 'rounds': ...}} with whole numbers "
            "(and 'work' in the solver's own units)."
        )
    return WorkLimits(limits.get("nodes"), limits.get("rounds"), limits.get("work"))
