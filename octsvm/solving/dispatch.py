"""From a model to a checked result: classify, bridge, solve in rounds, undo, certify."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyomo.environ as pyo

from .. import solvers
from ..backends.matrix_program import Array, LinearProgram
from ..bridges import LINEAR, Bridge, leading_to
from ..errors import (
    EngineFailed,
    InvalidParameter,
    LicenseTooSmall,
    OctsvmError,
    TreeNotAdmitted,
    UnsupportedProblem,
)
from ..formulations.base import Evaluation, Formulation, ModelInfo
from ..formulations.blocks.rows import collected, uncollected
from ..formulations.blocks.sizes import Shape
from ..formulations.registry import formulation as find_formulation
from ..formulations.trees import Tree
from ..options import SOLVE, SolveOptions, require_known, takes_options
from ..problem_class import classify
from ..result import Result, versions
from . import admission, large_neighbourhood
from . import certificate as checks
from . import steps_ahead as steps
from .case_search import Cases, CaseSearch
from .certificate import Certificate
from .compile import compile_program, require_finite, start_point
from .conflicts import SECONDS as CONFLICT_SECONDS
from .conflicts import find_conflict, infeasible_at_any_cost
from .cutting_planes import CuttingPlaneLoop, Known
from .engine import Engine, embedded, require_options
from .excluded_trees import excluded_trees
from .outcome import (
    BARRED,
    BENT,
    Candidate,
    Contest,
    Outcome,
    delivered,
    no_solver,
    objective_size,
    rebuild_note,
    unmodelled,
)
from .own_search import OwnSearch
from .own_terms import NOTHING, holds_in_all_rows, is_deep, least_terms, runs_away, without_optimum
from .plan import Plan, candidates, largest_big_m, slack_advice
from .polish import polish_tree
from .steps_ahead import NoTimeLeft, StepsAhead
from .telling import CalledOff, Telling, rising

SMALL_TABLE = 24  # rows, up to which proofs are likely and rounds short
REDUCED_COST = 1e-7  # dual tolerance, in an engine's units of cost, as solvers.yaml sets it
POLISH_SECONDS = 1.0  # that a tree made of an answer which does not hold gets at least


@takes_options(SOLVE)
def solve(model: pyo.ConcreteModel, **options: Any) -> Result:
    """Solve ``model`` and return the best tree known, checked outside the solver.

    The model comes back as it was, but for the values of its variables: they are those of the returned tree where
    the model admits it.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        From :func:`octsvm.build`, with any blocks of your own on top.
    {options}

    Returns
    -------
    Result
        The tree, its objective, a bound, and how it was found.

    Raises
    ------
    CertificateMismatch
        Where the answer's tree is worse than the answer claims, or routes training rows otherwise; its ``result``
        has status "unverified" and the best tree known.
    UnknownSolver, SolverUnavailable, UnsupportedProblem, LicenseTooSmall, InvalidParameter, OutputNotWritable
        Before anything is solved.
    TreeNotAdmitted
        ``start`` is no point of the model.
    EngineFailed
        The solver broke down without an answer.
    """
    require_known(SOLVE, options)
    return solve_with(model, rising(SolveOptions(**options)))


@uncollected
def solve_with(
    model: pyo.ConcreteModel,
    options: SolveOptions,
    *,
    start_is_optional: bool = False,
    neighbourhoods: bool = False,
    incumbent: float = math.inf,
    cases: Cases | None = None,
) -> Result:
    """As :func:`solve`; a start that is optional is dropped where the model does not admit it.

    ``incumbent`` is what the start is known to cost. With ``cases`` the model is solved case by case.

    With ``neighbourhoods`` the model is searched from the start (:mod:`octsvm.solving.large_neighbourhood`), not
    solved as a whole.
    """
    call = _Call(model, options, start_is_optional, neighbourhoods, cases)
    call.telling.incumbent = incumbent
    with checks.restored_on_error(call.before.values()), checks.with_its_blocks(model):
        try:
            call.choose_plan()
            call.embed_first_tree()
            attempt = call.attempt()
        except NoTimeLeft:
            return call.unsolved("time_limit", "no time to hand the model over")
        except CalledOff:
            return call.unsolved(
                "interrupted", "the callback asked for the end before the model was handed over"
            )
        result = call.outcome(attempt)
        call.unset_what_was_not_used(attempt)
    return delivered(result, options.on_mismatch, "The answer does not hold outside the solver")


@dataclass(frozen=True)
class _Attempt:
    """What one engine came to."""

    plan: Plan
    program: LinearProgram
    rounds: CuttingPlaneLoop
    stop: str
    bridge: Bridge | None


class _Call:
    """One call of :func:`solve_with`, step by step."""

    def __init__(
        self,
        model: pyo.ConcreteModel,
        options: SolveOptions,
        start_is_optional: bool,
        neighbourhoods: bool,
        cases: Cases | None,
    ) -> None:
        self.model, self.options = model, options
        self.start_is_optional, self.neighbourhoods, self.cases = start_is_optional, neighbourhoods, cases
        self.info: ModelInfo | None = getattr(model, "info", None)
        self.form = None if self.info is None else find_formulation(self.info.formulation)
        checks.active_objective(model)
        self.ahead = StepsAhead(options.clock)
        with self.ahead.measured(steps.LISTING):
            self.before = {id(v): (v, v.value) for v in model.component_data_objects(pyo.Var)}
        self.changed = False  # any value of them
        if self.form is not None and self.info is not None:
            size = self.form.size(
                self.info.params, Shape(self.info.data.n, self.info.data.p, self.info.data.K)
            )
            self.ahead.size_up(len(self.before), 0 if size is None else size.nonzeros)
        self.solver = options.solver
        self.own_parts, self.checking = False, steps.CHECKING
        self.held: Tree | None = None  # which the model holds the values of at first
        self.feasible = False  # whether it is known to be a point of the model
        self.start: Tree | None = None  # the same; None where it is but the constant tree
        self.refused = ""  # why the model does not admit the tree to begin with
        self.terms = NOTHING if self.form is None else least_terms(model)
        self.telling = Telling(options, bound=self.terms.floor())

    @cached_property
    def excluded(self) -> str:
        """Why the model may not have all trees that rows of the user's own admit."""
        return excluded_trees(self.model) if self.own_parts else ""

    # -- the plan, the start, and what is returned where there is no time for more --------------------------

    def choose_plan(self) -> None:
        """The first engine that takes the model; NoTimeLeft where it could not be handed over."""
        if self.options.solver != solvers.AUTO:
            solvers.require(self.options.solver)
        self.own_parts = self.form is not None and not checks.is_own(self.model)
        self.ahead.require(steps.CLASSIFYING)
        with self.ahead.measured(steps.CLASSIFYING):
            problem = classify(self.model)
        self.checking = steps.CHECKING_OWN if self.own_parts else steps.CHECKING
        # A tree is looked for under rows of the user's own even where there is no time for the engine.
        coming = 0.0 if self.own_parts else steps.EMBEDDING + steps.COMPILING + self.checking
        self.ahead.require(steps.READING + coming)
        self._go_on("reading")
        with self.ahead.measured(steps.READING):
            options = self.options
            own_search = not (options.engine_wanted or self.neighbourhoods or self.own_parts)
            self.plans = candidates(self.model, problem, options.solver, options.bridge, own_search)
            self.first_plan = next(self.plans)
        self.solver = self.first_plan.solver
        _check_limits(self.first_plan, self.options, self.first_plan.spec)
        self.ahead.require(coming)

    def _go_on(self, phase: str) -> None:
        """Tell the callback what comes; nothing is called off where there is no tree to return but the engine's."""
        if self.form is not None and self.telling.tell(phase):
            raise CalledOff

    def unsolved(self, stop: str, why: str) -> Result:
        """The best tree known, where the model is not handed over."""
        form, info, options = self.form, self.info, self.options
        assert form is not None
        assert info is not None
        if self.solver != solvers.AUTO:
            require_options(solvers.require(self.solver), self.options.options)
        note = f"{why} ({len(self.before)} variables)"
        if self.own_parts:
            return self._unsolved_with_own_parts(form, info, stop, note)
        tree = self.start
        note += ": the tree was checked without it"
        if self.held is None:
            note += ", and the model's variables are as before"
            known = [tree for tree, better in self._first_trees(form, info) if better]
            tree = form.normalise(known[0], info.data, info.params) if known else None
        return unmodelled(
            form,
            info,
            tree,
            stop=stop,
            seconds=options.clock.seconds(),
            note=note,
            asked_gap=options.gap,
        )

    def _unsolved_with_own_parts(self, form: Formulation, info: ModelInfo, stop: str, note: str) -> Result:
        """The tree that the model holds: of others nobody knows whether rows of the user's own admit them."""
        best: Candidate | None = None
        if self.held is not None and not checks.without_value(self.model):
            contest = Contest(self.model, form, info)
            contest.enter_embedded(self.held, "constant" if self.start is None else "start")
            best = contest.best
            note += ": the tree holds in it, rows of your own included"
        else:
            if self.changed:
                checks.restore(self.before.values())
            note += ", and no tree is known to hold in rows of your own; its variables are as before"
        return Outcome(
            info,
            stop,
            best,
            bound=min(self.terms.floor(), self.terms.ceiling(info.upper_bound)),
            asked_gap=self.options.gap,
            found=self.start is not None,
            notes=[note],
            how=no_solver(),
        ).result(self.options.clock.seconds())

    def embed_first_tree(self) -> None:
        """Give the model the values of the first tree that it admits.

        Without a start the engine is handed the tree met in building, or the constant tree: big-M is built from its
        objective, and the incumbent is then never worse.
        """
        if self.form is None or self.info is None:
            if self.options.start is not None:
                raise InvalidParameter(
                    "start= needs a model that octsvm.build made; this one belongs to no formulation."
                )
            return
        self.ahead.require(steps.EMBEDDING)
        self.changed = True
        checks.forget_own_values(self.model)
        for tree, known in self._first_trees(self.form, self.info):
            self.ahead.require(steps.EMBEDDING)
            self._go_on("reading")
            retry = not self.ahead.too_long(steps.OTHER_WAYS + steps.COMPILING + self.checking)
            try:
                with nullcontext() if self.own_parts else self.ahead.measured(steps.EMBEDDING):
                    embedded = admission.embed(self.model, self.form, tree, retry=retry)
            except TreeNotAdmitted as error:
                if tree is self.options.start and not self.start_is_optional:
                    if retry:
                        raise  # the others may break rows of the user's own, a start may not
                    raise NoTimeLeft from None
                self.refused = f"of the {'tree known before' if known else 'constant tree'}: {error}"
            else:
                # What is left open of the user's own, the rounds try again.
                self.held, self.feasible = embedded, holds_in_all_rows(self.model)
                self.start = embedded if known else None
                self.telling.incumbent = min(self.telling.incumbent, checks.price(self.model))
                break
        self.ahead.require(steps.COMPILING + self.checking)

    def _first_trees(self, form: Formulation, info: ModelInfo) -> list[tuple[Tree, bool]]:
        """Trees to begin with, and whether each is more than the constant tree."""
        start, data = self.options.start, info.data
        if start is not None and not self.start_is_optional:
            return [(start, True)]

        def cost(tree: Tree) -> float:
            return form.evaluate_on(form.normalise(tree, data, info.params), data, info.params).objective

        found = [tree for tree in (start, info.tree) if tree is not None]
        constant = [(form.constant_tree(data, info.params), False)] if start is None else []
        return [(tree, True) for tree in (sorted(found, key=cost) if len(found) > 1 else found)] + constant

    # -- the engines ----------------------------------------------------------------------------------------

    def attempt(self) -> _Attempt:
        """Solve with the plan's engine; with "auto", what one engine cannot do, the next may."""
        passed_over: list[str] = []
        plan = self.first_plan
        while True:
            spec = large_neighbourhood.spec_of(plan) if self.neighbourhoods else plan.spec
            _check_limits(plan, self.options, spec)
            values = checks.kept_values(self.model)
            failure, attempt = "", None
            try:
                attempt = self._run(plan)
                if attempt.stop in ("error", "licence"):
                    failure = attempt.rounds.notes[-1] if attempt.rounds.notes else attempt.stop
            except (EngineFailed, LicenseTooSmall, UnsupportedProblem) as error:
                if self.options.solver != solvers.AUTO and plan.spec.backend != "own":
                    raise
                failure = str(error)
            late = self.options.clock.late() or self.ahead.too_long(steps.COMPILING + self.checking)
            following = next(self.plans, None) if failure and not late else None
            if following is None:
                break
            passed_over.append(f"{plan.solver} was tried first: {failure}")
            checks.restore(values)
            plan = following
        if attempt is None:
            raise EngineFailed(
                f"No engine solved this model: {failure}. Write it with octsvm.write and solve it elsewhere."
            )
        if attempt.rounds.last is None:  # nobody has read them
            require_options(attempt.plan.spec, self.options.options)
        attempt.rounds.notes[:0] = passed_over
        return attempt

    def _run(self, plan: Plan) -> _Attempt:
        model, form, options = self.model, self.form, self.options
        own, size = form is not None and not self.own_parts, objective_size(self.info)
        searched = checks.scores_of(model) if plan.spec.backend == "own" else None
        bridge = leading_to(plan.problem, LINEAR, plan.bridge)
        engine: Engine | None = None
        try:
            self._go_on("compiling")
            program = compile_program(model, plan.problem, bridge)
            require_finite(model, program, size)
            self.ahead.require(self.checking)
            if searched is None:
                engine = Engine(_proving(plan, options, program), program, bridge, plan.native)
            else:  # the embedded engine polishes
                engine = Engine(embedded(), program, bridge, native=False)
            start = start_point(program, bridge) if self.held is not None else None
            if bridge is not None:
                bridge.undo()
            searches = self.neighbourhoods and start is not None
            if not searches and searched is None:
                engine.write_file(model, plan.problem, size, options.clock)
            known = Known(
                # Costs are not negative in any formulation.
                floor=self._floor(own),
                size=size,
                improve=self._improver(program, bridge) if own else None,
                small=self.info is not None and self.info.data.n <= SMALL_TABLE,
                searched=self.start_is_optional and self.start is not None,
                bent=self.info is not None and _bent(plan, self.info) >= BENT,
            )
            rounds = CuttingPlaneLoop(program, engine, bridge, self._for_engine(), known)
            search: Any = rounds
            if searched is not None and form is not None:
                rounds.integrality = plan.spec.tolerances.integrality
                search = OwnSearch(model, form, rounds, searched, lambda: start_point(program, bridge))
            elif searches and form is not None:
                search = large_neighbourhood.Search(
                    model, rounds, plan, bridge, options.seed, lambda: form.assigned_path(model)
                )
            elif self.cases is not None and large_neighbourhood.spec_of(plan) is plan.spec:
                search = CaseSearch(rounds, bridge, plan.native, self.cases)
            with collected():
                try:
                    stop = search.run(start)
                except KeyboardInterrupt:
                    stop = "interrupted"
        finally:
            if engine is not None:
                engine.close()
            if bridge is not None:
                bridge.undo()
        return _Attempt(plan, program, rounds, stop, bridge)

    def _floor(self, own: bool) -> float:
        """What no point costs less than; a bound from before the solve is one where nothing was added to the model."""
        if self.form is None or self.info is None:
            return -math.inf
        return max(self.terms.floor(), self.info.least) if own else self.terms.floor()

    def _for_engine(self) -> SolveOptions:
        """The options, less the time that stopping on a large model and checking the answer take."""
        left = self.options.clock.left()
        stopping = steps.STOPPING_SHARE * left if self.ahead.large else 0.0
        return self.options.within(left - stopping - self.checking * self.ahead.step)

    def _improver(self, program: LinearProgram, bridge: Bridge | None) -> Any:
        """A point's tree with the best of what its routing leaves free, as a point again."""
        form, model = self.form, self.model

        def improve(x: Array) -> Array | None:
            assert form is not None
            program.load(x)
            try:
                tree = form.extract(model)
                form.embed(model, form.improve(tree, model.info.data, model.info.params))
            except OctsvmError:
                return None
            return start_point(program, bridge)

        return improve

    # -- the outcome ----------------------------------------------------------------------------------------

    def outcome(self, attempt: _Attempt) -> Result:
        """The certified result; a second Ctrl-C, while the answer is being checked, finishes with what there is."""
        try:
            self.telling.incumbent, self.telling.bound = attempt.rounds.objective, attempt.rounds.bound
            self.telling.tell("checking")
            return self._checked(attempt)
        except KeyboardInterrupt:
            return self._checked(replace(attempt, stop="interrupted"))

    def _checked(self, attempt: _Attempt) -> Result:
        rounds, form, info = attempt.rounds, self.form, self.info
        outcome = Outcome(
            info,
            attempt.stop,
            bound=rounds.bound,
            asked_gap=self.options.gap,
            size=rounds.size,
            notes=[*rounds.notes, *_what_was_rewritten(attempt, info, self.options)],
            how=self._how(attempt),
        )
        if rounds.best is not None:
            self._load(attempt.program, rounds.best)
        if outcome.stop == "inf_or_unbd":
            outcome.stop = "unbounded" if rounds.best is not None else without_optimum(attempt.program)
        if form is None or info is None:
            outcome.notes.append(
                "the model belongs to no formulation: values are loaded, and nothing was checked outside the solver"
            )
            if rounds.best is not None:
                outcome.best = Candidate(
                    None, Evaluation(rounds.objective, {}, {}), rounds.objective, "answer"
                )
        elif outcome.stop == "infeasible" and not self.feasible:
            self._without_tree(outcome, attempt, form, info)
        else:
            self._choose(outcome, attempt, form, info)
        if outcome.stop == "infeasible" and outcome.best is None:
            self._name_conflict(outcome)
        return outcome.result(self.options.clock.seconds())

    def _without_tree(self, outcome: Outcome, attempt: _Attempt, form: Formulation, info: ModelInfo) -> None:
        """What is proved where the engine calls the model infeasible: a model that holds the trees up to UB proves no more."""
        if self.refused:
            outcome.notes.append(self.refused)
        exact = not math.isfinite(info.upper_bound)
        if self.excluded if exact else not infeasible_at_any_cost(self.model):
            outcome.stop, outcome.bound = "numeric", math.inf
            self._limit_bound(outcome, attempt, form, info)

    def _name_conflict(self, outcome: Outcome) -> None:
        """Say which of the user's rows and fixings leave no tree, where there is time to find out."""
        if self.ahead.too_long(steps.COMPILING):
            return
        found = find_conflict(self.model, min(CONFLICT_SECONDS, self.options.clock.left()))
        if found is not None:
            outcome.conflict = found.names
            outcome.notes.append(found.note())
            if found.refuted:
                outcome.stop, outcome.bound = "numeric", self.terms.floor()

    def _choose(self, outcome: Outcome, attempt: _Attempt, form: Formulation, info: ModelInfo) -> None:
        """Certify the answer, choose the best tree known, and say what is proved of it."""
        contest = Contest(self.model, form, info)
        certificate: Certificate | None = None
        if outcome.stop == "infeasible":
            outcome.stop, outcome.bound = "numeric", -math.inf
            outcome.notes.append(f"{attempt.plan.title} called the model infeasible, and a tree holds in it")
        if attempt.rounds.best is not None:
            certificate = checks.certify(self.model, form)
            outcome.notes += certificate.notes
            outcome.mismatch, outcome.claimed = certificate.mismatch, certificate.claimed
            outcome.differing = certificate.differing_rows
            contest.certified(certificate)
            if certificate.mismatch and not self.own_parts and not self.ahead.too_long(steps.REBUILDING):
                # Route by the tree, fix in the default variant what follows from it, and polish there.
                seconds = max(POLISH_SECONDS, self.options.clock.left())
                better = polish_tree(form, info, certificate.tree, seconds)
                if better is not None:
                    contest.enter_unembedded(better, "re-routed")
        if self.start is not None:
            contest.enter(self.start, "start")
        if contest.best is None or not self.ahead.too_long(steps.EMBEDDING):
            contest.enter(form.constant_tree(info.data, info.params), "constant")
        contest.load()
        best = outcome.best = contest.best
        if contest.barred:
            outcome.mismatch += BARRED
        if outcome.mismatch and _bent(attempt.plan, info) >= BENT:
            # It is big-M that made room for the claim, and nothing is proved.
            outcome.notes.append(outcome.mismatch)
            outcome.mismatch = ""
        if best is not None and self.own_parts and outcome.bound > -math.inf:
            if runs_away(self.model):
                outcome.stop, outcome.bound = "unbounded", -math.inf
            elif self.terms.floor() == -math.inf and is_deep(self.model):
                outcome.stop = "numeric" if outcome.stop == "optimal" else outcome.stop
                outcome.bound = -math.inf
                outcome.notes.append(
                    "the objective is far below 0 where it is not a polynomial, and nothing says that it ends there: give the "
                    "variables in it bounds that keep it from its poles"
                )
        if best is None:
            outcome.notes += [self.refused] if self.refused else []
            self._limit_bound(outcome, attempt, form, info)
            return
        if best.source != "answer" and certificate is not None and not certificate.mismatch:
            outcome.notes.append(
                f"the {best.source} tree is better than what the engine found, and is returned"
            )
        if not contest.loaded:
            outcome.notes.append("the model holds the engine's answer, not the returned tree")
        more = attempt.rounds.own or (best.tree is not None and bool(best.tree.splits.any()))
        outcome.found = (best.source == "answer" and more) or self.start is not None
        self._limit_bound(outcome, attempt, form, info)
        # Rows of the user's own, or a better tree that was not found, may be why there is no split otherwise.
        proved = not self.own_parts and outcome.verdict()[0] == "optimal"
        if proved and best.tree is not None and not best.tree.splits.any():
            params = type(info.params).model_fields
            ways = {"c1": ". Larger c1 and c2 make a split pay", "alpha": ". A smaller alpha makes one pay"}
            way = next((text for name, text in ways.items() if name in params), "")
            outcome.notes.append(f"the tree does not split: every row gets the heavier class{way}")

    def _limit_bound(self, outcome: Outcome, attempt: _Attempt, form: Formulation, info: ModelInfo) -> None:
        note = rebuild_note(form, info, self.terms)
        unseen = REDUCED_COST / attempt.program.cost_scale(attempt.rounds.size)
        bent = _bent(attempt.plan, info)
        outcome.limit_bound(not self.own_parts, note, self.terms, bent, unseen, self.excluded)
        if outcome.stop in ("unbounded", "inf_or_unbd"):
            outcome.notes.append(
                f"the objective {checks.active_objective(self.model).name!r} has no least value: give bounds to the "
                "variables of its terms"
            )

    def _load(self, program: LinearProgram, x: Array) -> None:
        for var in self.model.component_data_objects(pyo.Var):
            if var.value is None:  # stands in no row: any value will do, and its own is best
                _, own = self.before.get(id(var), (var, None))
                var.set_value(0.0 if own is None else own, skip_validation=True)
        program.load(x)

    def _how(self, attempt: _Attempt) -> dict[str, Any]:
        """The fields of the Result on the engine's own doing."""
        plan, rounds, last = attempt.plan, attempt.rounds, attempt.rounds.last
        start = "none"
        if self.start is not None and self.options.start is not None:
            start = "unsupported" if plan.start == "none" else rounds.start or "unknown"
        engine = {
            "entry": plan.spec.name,
            "interface": plan.interface,
            "as_it_stands": plan.native,
            "start": start,
            "status": "" if last is None else last.native,
            "startup_seconds": rounds.startup,
            "options": {} if last is None else dict(last.options),
        }
        how = {
            "solver": plan.solver,
            # What the table requires for a search of our own is a part of it, whose version says nothing of who searched.
            "solver_version": f"of octsvm {versions()['octsvm']}"
            if plan.spec.backend == "own"
            else (last.version if last is not None else "") or plan.version,
            "engine": engine,
            "rounds": rounds.rounds,
            "nodes": rounds.nodes,
            "trace": tuple(rounds.trace),
        }
        return how if self.info is not None else how | {"formulation": self.model.name}

    def unset_what_was_not_used(self, attempt: _Attempt) -> None:
        """A variable in no row had no value before, and has none now: nothing that was solved concerns it."""
        used = set(attempt.program.position)
        for key, (var, value) in self.before.items():
            if var.value is None and key not in used:
                var.set_value(value, skip_validation=True)


def _proving(plan: Plan, options: SolveOptions, program: LinearProgram) -> solvers.SolverSpec:
    """The engine's entry with what it proves of this model under these options."""
    spec = plan.spec.with_own(options.options)
    if spec.claim == "convex" and plan.problem.unmarked and not program.is_convex():
        return spec.model_copy(update={"claim": "none"})
    return spec


def _what_was_rewritten(attempt: _Attempt, info: ModelInfo | None, options: SolveOptions) -> list[str]:
    """Notes on bridges, claims and slack."""
    plan, bridge, rounds = attempt.plan, attempt.bridge, attempt.rounds
    notes = []
    if not plan.native and bridge is not None:
        notes.append(
            f"{plan.problem.name} solved as a series of linear models ({bridge.name}, {bridge.exactness})"
        )
    elif plan.rewritten:
        notes.append("; ".join(plan.rewritten))
    if plan.spec.with_own(options.options).claim == "none" != plan.spec.claim:
        notes.append(
            f"with these options {plan.title} has been seen to call wrong values optimal: its bound is not used"
        )
    elif rounds.spec.claim == "none" != plan.spec.claim:
        notes.append(
            f"{plan.title} proves optimality of convex models only, and {plan.problem.unmarked[0]} is not known to be "
            "convex: its bound is not used"
        )
    if info is not None and info.big_m:
        largest = largest_big_m(info)
        asked = plan.spec.tolerances.integrality
        bent = largest * asked >= BENT
        tolerance = asked if bent else rounds.integrality
        advice = slack_advice(info, tolerance)
        if bent or advice:
            notes.append(
                f"big-M {largest:.3g} times the integrality tolerance {tolerance:g} is {largest * tolerance:.2g} in units of "
                "the margin: the engine's bound may be lower than the true one"
                + (
                    ", or too high as well, and nothing is proved; a good start= or a smaller upper_bound= lowers M"
                    if bent
                    else f"; {advice}"
                )
            )
    return notes


def _bent(plan: Plan, info: ModelInfo) -> float:
    """How far integrality can be bent, in units of the margin."""
    return largest_big_m(info) * plan.spec.tolerances.integrality


def _check_limits(plan: Plan, options: SolveOptions, spec: solvers.SolverSpec) -> None:
    """Refuse a work limit that the engine does not know, and a gap that it cannot be asked for."""
    limits = options.limits
    for name, neutral, value in (("nodes", "node_limit", limits.nodes), ("work", "work_limit", limits.work)):
        if value is not None and not spec.takes(neutral):
            raise InvalidParameter(
                f"work_limit={{{name!r}: ...}} was asked for, and {plan.solver} has no such limit. "
                "Use time_limit, or another solver."
            )
    least = plan.spec.least_gap
    if options.gap < least and not options.options:
        raise InvalidParameter(
            f"gap={options.gap:g} was asked for, and {plan.solver} stops at its own, which is {least:g} with most solvers. "
            "Pass its own option for it in options=, or a larger gap."
        )
