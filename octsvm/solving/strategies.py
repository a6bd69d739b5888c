"""The strategies of a fit: what is looked for by heuristics, what is built, and what is left to the engine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyomo.environ as pyo

from .. import heuristics, solvers
from ..errors import TimeLimitReached, TreeNotAdmitted, unhidden_interrupts
from ..formulations.base import Data, Formulation, ModelInfo
from ..formulations.blocks.rows import Abandoned, between_rows, uncollected
from ..formulations.blocks.sizes import BlockSize, Shape
from ..formulations.margin_trees import require_within
from ..formulations.params import Params
from ..formulations.trees import Tree
from ..options import Clock, SolveOptions
from ..result import OWN_SEARCH, Progress, Result, TracePoint
from .case_search import Cases, Restriction
from .dispatch import solve_with
from .engine import require_options
from .outcome import unmodelled, with_bound
from .telling import Telling, rising

if TYPE_CHECKING:
    from .level_bound import LevelBound, LevelSearch

START_SECONDS = 1.0
ROWS_FOR_ALL = 56  # rows from which on the start heuristic gets all its seconds
START_STEPS = 300
SHORTEST_FOR_START = 0.5  # seconds below which the heuristic would eat the limit
LARGEST_SEARCHED = 1_000  # rows times nodes up to which strategy="heuristic" builds a model
HEURISTIC_SHARE = 0.7  # of the limit that goes to the start heuristics before neighbourhoods are searched
BUILDING_SHARE = 0.7  # of the limit after which building looks for no further bounds
# Of building a model, embedding a tree, compiling and checking, for each nonzero: 6 to 15 µs on tables of up to a million
# nonzeros, in all formulations. The engine's own time comes on top.
MODEL_SECONDS = 1.5e-5
LEAST_BUILDING_SECONDS = 4e-7  # of building alone, for each nonzero: no machine is known to be faster
START_SHARE = 0.1  # of the limit, at most, for the start heuristic
# Where the top level of trees is known to pay by itself, on tables of more rows than engines prove in a moment:
LEVEL_ROWS, MOST_LEVEL_ROWS = 40, 1_000
# Shares of the limit for a bound from it, between which the share is what the bound leaves open of the best tree's cost: where
# many rows are wrong, and much is open, the engine proves even less.
LEVEL_SHARES = 0.12, 0.8
# It goes on, up to the larger share, while the last third of its time has closed so much of what was open: on quarters of data
# sets the engine overtakes a bound that rises more slowly, and where classes overlap in none.
LEVEL_PACE, OVERLAPPING_PACE = 0.3, 0.03
NARROWING_SHARE = 0.02  # of the limit, for each case that the bound leaves open
LEAST_LEFT = 0.05  # of the limit, after the cases, for which the top level is searched once more
ENDING_SECONDS = 0.1  # that are left after it
LEVEL_START_SECONDS = 3.0  # for trees before that, which every bound feeds on; within START_SHARE
# Before that moments for both, of so many seconds for trees and for the bound, each at most such a share of the limit: where
# hardly a label is in doubt, one proves the tree, on a busy machine the second.
MOMENTS, MOMENT_SHARE = ((0.25, 0.5), (1.0, 2.0)), 0.05
SEARCHING, BOUNDING, BUILDING = "start heuristics", "bounding", "building"  # phases of a callback
CALLED_OFF = "the callback asked for the end before the engine ran; the tree is the best one known by then"
CAUGHT = "Ctrl-C came before the engine ran; the tree is the best one known by then"


def cost_of(form: Formulation, data: Data, params: Params, tree: Tree) -> float:
    """The objective of a tree on its training table, rewritten for the model first."""
    return form.evaluate_on(form.normalise(tree, data, params), data, params).objective


def bound_from(form: Formulation, data: Data, params: Params, start: Tree) -> float:
    """What the better of the start and the constant tree costs.

    Raises
    ------
    TreeNotAdmitted
        The start is the worse, and the formulation builds big-M from this bound: the model does not have it.
    """
    given = cost_of(form, data, params, start)
    bound = min(given, cost_of(form, data, params, form.constant_tree(data, params)))
    if form.uses_upper_bound:
        require_within(given, bound)
    return bound


def build_from(
    form: Formulation,
    data: Data,
    params: Params,
    start: Tree | None,
    stop: Callable[[], bool] | None = None,
    upper_bound: float | None = None,
) -> pyo.ConcreteModel:
    """The model, with big-M from ``upper_bound`` where it is given, else from the better of the start and the constant tree.

    ``stop`` is asked in between whether to end a search for bounds.

    Raises
    ------
    TreeNotAdmitted
        The start is no point of the model.
    """
    more = {"stop": stop} if form.searches and stop is not None else {}
    if start is None or upper_bound is not None:
        return form.build(data, params, np.inf if upper_bound is None else upper_bound, **more)
    tree = form.normalise(start, data, params)
    bound = bound_from(form, data, params, tree)
    model = form.build(data, params, bound, **more)
    if form.uses_upper_bound:
        form.embed(model, tree)  # an objective is a bound only if the model has that tree
        for var in model.component_data_objects(pyo.Var):
            if not var.fixed:
                var.set_value(None)
    return model


def build_within(
    clock: Clock,
    form: Formulation,
    data: Data,
    params: Params,
    start: Tree | None,
    upper_bound: float | None = None,
) -> pyo.ConcreteModel:
    """:func:`build_from`, while there is time; a search for bounds ends after half of it.

    Raises
    ------
    TreeNotAdmitted
        The start is no point of the model.
    TimeLimitReached
    """
    if clock.limit == math.inf:
        return build_from(form, data, params, start, upper_bound=upper_bound)

    def beat() -> None:
        if clock.late():
            raise Abandoned

    size = form.size(params, Shape(data.n, data.p, data.K))
    try:
        if size is not None and LEAST_BUILDING_SECONDS * size.nonzeros > clock.left():
            raise Abandoned
        with between_rows(beat):
            return build_from(
                form, data, params, start, lambda: clock.late(BUILDING_SHARE), upper_bound=upper_bound
            )
    except Abandoned:
        raise TimeLimitReached(
            f"time_limit={clock.limit:g} seconds leave no time to build the model{_counts(size)}. Give it more, a smaller "
            "depth or fewer rows; octsvm.fit with this limit returns the best tree of its heuristics."
        ) from None


@dataclass
class Fit:
    """One call of :func:`octsvm.fit` on a checked table, step by step.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C was pressed before the engine ran: from then on nothing more is looked for.
    best : Tree or None
        The best tree known so far: that of a heuristic, or the start.
    level : LevelBound or None
        What is proved from the top level of all trees.
    """

    form: Formulation
    data: Data
    params: Params
    options: SolveOptions
    interrupted: bool = False
    best: Tree | None = None
    trace: list[TracePoint] = field(default_factory=list)
    level: LevelBound | None = None
    _size: BlockSize | None = None  # of the model, as predicted
    _levels: LevelSearch | None = None  # which the bound is of

    def __post_init__(self) -> None:
        self.options = rising(self.options)
        self.telling = Telling(self.options)

    def run(self) -> Result:
        """Fit by the strategy that was asked for."""
        self._convert_start()
        self.best = self.options.start
        if self.best is not None and self.form.uses_upper_bound:  # one that no model has is refused by all
            bound_from(self.form, self.data, self.params, self.best)
        if self.options.solver != solvers.AUTO:  # which engine that is, the model decides
            require_options(solvers.require(self.options.solver), self.options.options)
        if self.options.strategy != "exact":
            self._load_libraries()
        if self.options.strategy == "heuristic":
            return self._search()
        return self._prove()

    def _load_libraries(self) -> None:
        """Import what the heuristics use; a first import in a process takes seconds, and is no part of the limit."""
        began = time.monotonic()
        try:
            with unhidden_interrupts():
                heuristics.load(self.form.name, self.data, self.params)
        except KeyboardInterrupt:
            self.interrupted = True
        self.options.clock.exclude(time.monotonic() - began)

    # -- strategy="balanced" and "exact" --------------------------------------------------------------------

    def _prove(self) -> Result:
        """A start by heuristics unless all time is the engine's, then the engine on the whole model."""
        size = self._size = self._predicted()
        if not self.data.scaling.complete:
            return self._unbuilt(None)
        if size is not None and not self._fits(size) and not self.interrupted:
            return self._unbuilt(size)
        self._start_and_bound()
        self._look_again()
        self._narrow_cases()
        if self.level is not None and self.level.closed:
            note = f"proved optimal by {self.level}: no model was built"
            return self._without_model(self._known(), "optimal", note)
        if self.telling.asked or self.interrupted:
            note = CAUGHT if self.interrupted else CALLED_OFF
            return self._without_model(self._known(), "interrupted", note)
        result = self._after_cases(self._built_and_solved())
        if self.level is not None and result.status != "optimal" and result.bound <= self.level.value:
            # It holds whatever big-M the model has.
            result = self._with_bound(result, self.level.value)
            return replace(result, notes=(*result.notes, f"the bound is that of {self.level}"))
        return result

    def _with_bound(self, result: Result, bound: float) -> Result:
        """The result with a bound of the top level's."""
        size = self._cost(self.form.constant_tree(self.data, self.params))
        return with_bound(result, bound, self.options.gap, self.options.clock.seconds(), size)

    def _after_cases(self, result: Result) -> Result:
        """The result with the bound that the top level comes to in the time which an engine left that a case was too hard for."""
        options, known = self.options, self.level
        over = result.stop != "time_limit" or options.clock.late(1 - LEAST_LEFT)
        if known is None or not known.cases or self._levels is None or over or options.work_limit is not None:
            return result
        self.telling.incumbent, self.telling.bound = result.objective, result.bound

        def stop(bound: float, _: bool) -> bool:
            self.telling.bound = max(self.telling.bound, bound)
            return self.telling.tell(BOUNDING)

        level = self._levels.run(stop, options.clock.part(options.clock.left() - ENDING_SECONDS))
        self.level = level if level.value > known.value else known
        if level.interrupted or self.telling.asked:
            result = replace(result, stop="interrupted")
        return self._with_bound(result, max(result.bound, level.value))

    def _start_and_bound(self) -> None:
        """A start by heuristics, unless all time is the engine's, and a bound from the top level: first moments for each."""
        options = self.options
        wanted = options.strategy == "balanced" and options.time_limit >= SHORTEST_FOR_START
        share = MOMENT_SHARE * options.time_limit
        looks = [(math.inf, math.inf)]
        if wanted and options.work_limit is None and self._has_top_level():
            short = min(MOMENTS[0][0], share), share
            looks = [*([m for m in MOMENTS if max(m) <= share] or [short]), *looks]
        for start_seconds, level_seconds in looks:
            if wanted and not self.interrupted:
                self._better_start(start_seconds)
            if not self.interrupted and not self.telling.asked:
                try:
                    self._bound_by_levels(level_seconds)
                except KeyboardInterrupt:
                    self.interrupted = True
            if self.interrupted or self.telling.asked or (self.level is not None and self.level.closed):
                return

    # -- a bound from the top level -------------------------------------------------------------------------

    def _has_top_level(self) -> bool:
        """Whether a bound from the top level is looked for: it is known, and the table is of a fit size."""
        options = self.options
        repeatable = options.work_limit is None or options.limits.nodes is not None
        if not repeatable or not LEVEL_ROWS <= self.data.n <= MOST_LEVEL_ROWS:
            return False
        return bool(self.form.top_level(self.data, self.params, 1.0))

    def _bound_by_levels(self, most_seconds: float) -> None:
        """Search the top level of all trees, where that is known and the table is of a fit size, for as long as that pays."""
        form, options, nodes = self.form, self.options, self.options.limits.nodes
        if not self._has_top_level() or options.time_limit < SHORTEST_FOR_START:
            return
        from .level_bound import LevelSearch, Pace

        self._load_libraries()
        if self.best is options.start:
            self._admit_start()
            self.options = options = options.but(
                start=self.best
            )  # still the caller's, whom a refusal is told
        cost = self._cost(form.constant_tree(self.data, self.params))
        if self.best is not None:
            cost = min(cost, self._cost(self.best))
        self.telling.incumbent = cost
        least, most = LEVEL_SHARES
        seconds = min(options.time_limit * most, options.clock.left() - 2 * self._ahead, most_seconds)
        if cost <= 0 or seconds <= 0:
            return

        began, pace = options.clock.seconds(), Pace(cost)

        def stop(bound: float, overlapping: bool) -> bool:
            self.telling.bound = bound
            closed = pace.after(options.clock.seconds() - began, bound)
            slow = closed < (OVERLAPPING_PACE if overlapping else LEVEL_PACE)
            share = max(least, 1 - bound / cost) if overlapping else least
            enough = slow and nodes is None and options.clock.late(share)
            return self.telling.tell(BOUNDING) or enough

        problems = form.top_level(self.data, self.params, cost)
        self._levels = LevelSearch(problems, cost, options.gap, nodes)
        level = self._levels.run(stop, options.clock.part(seconds))
        if self.level is None or level.closed or level.value > self.level.value:
            self.level = level
        self.interrupted = self.interrupted or level.interrupted

    def _look_again(self) -> None:
        """Trees by the heuristic from another seed, where the bound from the top level leaves much open: classes overlap."""
        options, level = self.options, self._levels
        ended = self.interrupted or self.telling.asked or (self.level is not None and self.level.closed)
        if level is None or options.strategy != "balanced" or options.work_limit is not None or ended:
            return
        seconds = min(START_SHARE * options.time_limit, options.clock.left() - 2 * self._ahead)
        if level.overlapping and seconds > 0:
            self._find_within(seconds, options.seed + 1)

    def _narrow_cases(self) -> None:
        """Look once more at each case of the top level that is open, before the engine does."""
        options, level = self.options, self.level
        ended = self.interrupted or self.telling.asked
        if level is None or not level.cases or options.work_limit is not None or ended:
            return
        from .level_bound import narrowed

        def stop() -> bool:
            return self.telling.tell(BOUNDING)

        try:
            seconds = NARROWING_SHARE * options.time_limit
            self.level = narrowed(level, self.telling.incumbent, options.gap, options.clock, seconds, stop)
        except KeyboardInterrupt:
            self.interrupted = True

    @uncollected
    def _built_and_solved(self) -> Result:
        """The engine on the whole model; where building took all the time, the start or the constant tree."""
        options = self.options

        def late() -> bool:
            by_time = options.work_limit is None
            if self.telling.tell(BUILDING):
                return True
            return by_time and (options.clock.late(BUILDING_SHARE) or options.clock.left() < self._ahead)

        try:
            model = self._build(late if options.work_limit is None or options.callback else None)
            if model is None:
                return self._abandoned()
            if self.level is not None:
                model.info = replace(model.info, least=max(model.info.least, self.level.value))
            result = solve_with(
                model,
                options.but(start=self.best),
                start_is_optional=self.best is not options.start,
                incumbent=self.telling.incumbent,
                cases=self._cases(model),
            )
        except KeyboardInterrupt:
            # Before anything was solved: from then on it is caught where it is solved.
            return self._without_model(self._known(), "interrupted", CAUGHT)
        if result.solver == OWN_SEARCH and result.stop == "time_limit":
            return self._searched_instead(result, model.info)
        return result

    def _cases(self, model: pyo.ConcreteModel) -> Cases | None:
        """What the bound from the top level left open, as bounds of the model's variables."""
        level = self.level
        if level is None or not level.cases or self.options.work_limit is not None:  # cases share time
            return None
        if self.best is None:  # without the engine's heuristics few of them find a tree
            return None
        known = [self.form.in_case(model, case.problem) for case in level.cases]
        each = [
            Restriction(b, case.bound) for b, case in zip(known, level.cases, strict=True) if b is not None
        ]
        overlapping = self._levels is not None and self._levels.overlapping
        return Cases(level.below, each, overlapping) if len(each) == len(known) else None

    def _searched_instead(self, result: Result, info: ModelInfo) -> Result:
        """What the heuristics find in the time that is left where a built model was not handed over, if that is better."""
        if self.interrupted or self.options.clock.left() < SHORTEST_FOR_START:
            return result
        self._load_libraries()
        stop = "interrupted" if self._heuristics(model_wanted=False) == "interrupted" else "time_limit"
        if self.best is None or self._cost(self.best) >= result.objective:
            return replace(result, stop=stop, seconds=self.options.clock.seconds())
        return self._without_model(self._known(), stop, result.notes[0], info, self.options.gap)

    def _predicted(self) -> BlockSize | None:
        """The model's size by its formulation's own statement, at most that; None where it does not state it.

        Zeros and equal values of the table are looked for only where the model of any such table would be too large.
        """
        form, data, params = self.form, self.data, self.params
        size = form.size(params, Shape(data.n, data.p, data.K))
        if size is None or self._fits(size):
            return size
        return form.size(params, data, **({"stop": lambda: True} if form.searches else {}))

    @property
    def _ahead(self) -> float:
        """Seconds that building the model, compiling and checking take, as far as its size says."""
        return 0.0 if self._size is None else MODEL_SECONDS * self._size.nonzeros

    def _fits(self, size: BlockSize) -> bool:
        """Whether the limit leaves time to build, hand over and check a model of this size after the start heuristic.

        Under a work limit the same is decided whenever it is asked.
        """
        options = self.options
        left = options.time_limit if options.work_limit is not None else options.clock.left()
        return MODEL_SECONDS * size.nonzeros <= left - START_SHARE * options.time_limit

    def _unbuilt(self, size: BlockSize | None) -> Result:
        """The tree of the heuristics, which get all the time where no model can be built in it; "exact" as well.

        A limit that is too short for them leaves the start or the constant tree.
        """
        if self.options.solver != solvers.AUTO:
            solvers.require(self.options.solver)
        self._admit_start()
        stop = "time_limit"
        if self.options.time_limit >= SHORTEST_FOR_START:
            self._load_libraries()
            if self._heuristics(model_wanted=False) == "interrupted":
                stop = "interrupted"
        return self._without_model(self.best, stop, _no_time(size))

    def _convert_start(self) -> None:
        """A start of another kind as one of the formulation's, in a share of the limit."""
        options = self.options
        if options.start is None or isinstance(options.start, self.form.Tree):
            return
        self._load_libraries()
        budget = self._budget(START_SHARE * options.time_limit)
        start = self.form.start_of(options.start, self.data, self.params, budget, options.seed)
        self.options = options.but(start=start)

    def _budget(self, seconds: float) -> heuristics.Budget:
        """Of a heuristic; under a work limit a fixed number of steps is taken."""
        steps = None if self.options.work_limit is None else START_STEPS
        return heuristics.Budget(seconds, steps, lambda: self.telling.tell(SEARCHING))

    def _admit_start(self) -> None:
        """The caller's start for the model's depth and scaling; one that the model does not admit is refused."""
        if self.best is not None:
            self.best = self.form.normalise(self.best, self.data, self.params)
            self.form.require(self.best, self.data, self.params)

    def _better_start(self, most_seconds: float) -> None:
        """The better of the given start and the heuristic's."""
        options = self.options
        seconds = options.time_limit
        if options.work_limit is None:
            levels = getattr(self.params, "depth", 0) + 1
            most = min(START_SECONDS, START_SECONDS * (self.data.n / ROWS_FOR_ALL) ** 2 * levels / 2)
            if self._has_top_level():
                most = LEVEL_START_SECONDS
            seconds = min(most, options.time_limit * START_SHARE, most_seconds)

        self._find_within(seconds, options.seed)

    def _find_within(self, seconds: float, seed: int) -> None:
        """Keep what the heuristic finds in so many seconds, if it is the best."""

        def watch(objective: float) -> bool:
            self.telling.incumbent = min(self.telling.incumbent, objective)
            return False

        self.interrupted = self._find(self._budget(seconds), watch, seed)

    def _find(self, budget: heuristics.Budget, watch: Callable[[float], bool], seed: int) -> bool:
        """Keep what the heuristic finds from a seed, if it is the best; whether Ctrl-C ended that."""
        options = self.options
        found, interrupted = heuristics.find(
            self.form,
            self.data,
            self.params,
            options.time_limit,
            seed=seed,
            budget=budget,
            watch=watch,
        )
        if found is not None and (self.best is None or self._cost(found) < self._cost(self.best)):
            self.best = found
        return interrupted

    def _known(self) -> Tree | None:
        """The best tree known, rewritten for the model."""
        return None if self.best is None else self.form.normalise(self.best, self.data, self.params)

    def _abandoned(self) -> Result:
        """The best tree known, where the callback or the clock ended the building."""
        if self.telling.asked:
            return self._without_model(self._known(), "interrupted", CALLED_OFF)
        return self._without_model(self._known(), "time_limit", _no_time(self._size))

    def _build(self, stop: Callable[[], bool] | None = None) -> pyo.ConcreteModel | None:
        """The model, None where it was abandoned; a tree of our own that it does not admit is dropped."""
        if self.best is not None:
            self.telling.incumbent = self._cost(self.best)
        try:
            with between_rows(self.telling.between_rows(BUILDING)):
                try:
                    model = build_from(self.form, self.data, self.params, self.best, stop)
                except TreeNotAdmitted:  # e.g. for a big_m of the caller's
                    if self.best is self.options.start:
                        raise
                    self.best = self.options.start
                    model = build_from(self.form, self.data, self.params, self.best, stop)
        except Abandoned:
            self.telling.settle()
            return None
        return None if self.telling.asked else model

    # -- strategy="heuristic" -------------------------------------------------------------------------------

    def _search(self) -> Result:
        """The start heuristics, then neighbourhoods of the best tree where a model is worth building."""
        constant = self.form.constant_tree(self.data, self.params)
        self._admit_start()
        given = self.best
        cells = self.data.n * constant.n_nodes
        model_wanted = self._model_pays(cells)
        ended_by = self._heuristics(model_wanted)
        if ended_by == "interrupted" or not model_wanted:
            stop = ended_by or "local_optimum"
            return self._without_model(self.best, stop, _no_model(cells, stop))
        try:
            model = self._build()
            if model is None:
                return self._abandoned()
            result = solve_with(
                model,
                self.options.but(start=self.best),
                start_is_optional=self.best is not given and self.best is not self.options.start,
                neighbourhoods=True,
                incumbent=self.telling.incumbent,
            )
        except KeyboardInterrupt:
            return self._without_model(self.best, "interrupted", CAUGHT)
        return replace(result, trace=(*self.trace, *result.trace))

    def _model_pays(self, cells: int) -> bool:
        """Whether there is time to build a model of so many rows times nodes and to use it."""
        if not self.data.scaling.complete:
            return False
        if cells > LARGEST_SEARCHED or self.options.work_limit is not None:
            return cells <= LARGEST_SEARCHED
        size = self._predicted()
        building = 0.0 if size is None else MODEL_SECONDS * size.nonzeros
        return self.options.time_limit * (1 - HEURISTIC_SHARE) > building + START_SECONDS

    def _heuristics(self, model_wanted: bool) -> str:
        """Search for the best tree, with all the time where no model follows; what ended that."""
        options, clock = self.options, self.options.clock
        by_time = options.work_limit is None
        seconds = options.time_limit * (HEURISTIC_SHARE if model_wanted and by_time else 1.0)
        budget = self._budget(max(1e-3, seconds - clock.seconds()))
        if self.interrupted:
            budget.stop()

        def watch(objective: float) -> bool:
            now = clock.seconds()
            self.trace.append(TracePoint(now, objective, 0.0))
            self.telling.incumbent = objective
            told = Progress(now, objective, 0.0, 0, 0, SEARCHING)
            return options.callback is not None and bool(options.callback(told))

        self._find(budget, watch, options.seed)
        return budget.ended_by

    # -- parts ----------------------------------------------------------------------------------------------

    def _cost(self, tree: Tree) -> float:
        return cost_of(self.form, self.data, self.params, tree)

    def _without_model(
        self,
        tree: Tree | None,
        stop: str,
        note: str,
        info: ModelInfo | None = None,
        gap: float | None = None,
    ) -> Result:
        if info is None:
            info = ModelInfo(self.form.name, self.params, self.data)
            if self.level is not None:
                info, gap = replace(info, least=self.level.value), self.options.gap
        return unmodelled(
            self.form,
            info,
            tree,
            stop=stop,
            seconds=self.options.clock.seconds(),
            note=note,
            trace=self.trace,
            asked_gap=gap,
        )


def _no_time(size: BlockSize | None) -> str:
    return f"no time to build the model{_counts(size)}: the tree was found and checked without it"


def _counts(size: BlockSize | None) -> str:
    if size is None:
        return ""
    return f" ({size.variables} variables, {size.rows} rows, {size.nonzeros} nonzeros)"


def _no_model(cells: int, stop: str) -> str:
    why = "the search was stopped before it" if stop == "interrupted" else "the time limit leaves none for it"
    if cells > LARGEST_SEARCHED:
        why = f"rows times nodes are {cells}, above {LARGEST_SEARCHED}"
    return f"no model was built: {why}; the tree was found and checked without one"
