"""Our own search in the place of an engine: RE-SVM by branch and reduce, its answers points of the model like any other.

It takes a model that is a function of scores (:func:`octsvm.solving.certificate.scores_of`). Every better hyperplane is
embedded in the model and becomes the incumbent of the rounds, whose bound, nodes, trace, limits and certificate are those
of an engine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ..backends.matrix_program import Array
from ..errors import TreeNotAdmitted
from ..formulations.base import Formulation
from ..formulations.bounds.scores import ScoreProblem
from ..formulations.trees import MarginTree
from ..heuristics.label_search import LabelSearch
from ..heuristics.score_relaxation import Plane
from .branch_and_reduce import SHARE_OF_GAP, BranchAndReduce, Reduction
from .cutting_planes import CuttingPlaneLoop
from .hyperplane_search import HyperplaneSearch

TELL_AFTER = 0.1  # seconds between two reports
LABELS = 0.1  # of the relaxations, for the search over labels
FEW_FEATURES = 8  # up to so many, boxes of hyperplanes are halved as well
TRIAL = 2_000  # relaxations of each way, before the better one goes on
LONG = 6_000  # relaxations after which combinations are looked for: what is left by then may be of classes that overlap


class Turns:
    """Searches of one problem in several ways, in turns until one of them ends or all had a trial; then the best bound goes on.

    A turn goes to the one with the fewest relaxations. A better hyperplane of one is the incumbent of all. After :data:`LONG` the
    search that ``otherwise`` makes takes the place of that over labels, if its bound is better than theirs from the start.
    """

    def __init__(
        self,
        searches: Sequence[BranchAndReduce | HyperplaneSearch],
        by_work: bool,
        otherwise: Callable[[], BranchAndReduce],
    ) -> None:
        self._all, self._by_work = [*searches], by_work
        self._running = {search: search.run(by_work) for search in searches}
        self._otherwise: Callable[[], BranchAndReduce] | None = otherwise

    @property
    def nodes(self) -> int:
        """Nodes that were looked at, in all ways."""
        return sum(search.nodes for search in self._all)

    @property
    def solves(self) -> int:
        """Relaxations that were solved, in all ways."""
        return sum(search.solves for search in self._all)

    @property
    def bound(self) -> float:
        """The best of the bounds."""
        return max(search.bound for search in self._all)

    @property
    def closed(self) -> bool:
        """Whether one of them has no better tree left to look for."""
        return any(search.closed for search in self._all)

    @property
    def incumbent(self) -> Plane:
        """The best hyperplane known."""
        return self._all[0].reduction.incumbent

    def offer(self, plane: Plane) -> None:
        """Make a better hyperplane the incumbent of all."""
        for search in self._all:
            search.reduction.incumbent = plane

    def step(self) -> bool:
        """Give one of them its turn; whether that was its end."""
        search = min(self._running, key=lambda one: one.solves)
        ended = next(self._running[search], search) is search
        self.offer(min((each.reduction.incumbent for each in self._all), key=lambda plane: plane.cost))
        if len(self._running) > 1 and min(one.solves for one in self._running) >= TRIAL:
            best = max(self._running, key=lambda search: search.bound)
            self._running = {best: self._running[best]}
        # Boxes that are ahead go on: where both were run to the end (a quarter of monks) they proved more.
        by_boxes = all(isinstance(one, HyperplaneSearch) for one in self._running)
        if self._otherwise is not None and not ended and not by_boxes and self.solves >= LONG:
            other, self._otherwise = self._otherwise(), None
            if other.bound > self.bound:
                self._running = {other: other.run(self._by_work, thoroughly=False)}
                self._all.append(other)
        return ended


class OwnSearch:
    """One search, on the rounds that hold the incumbent; ``put`` says what point of the program the model's values are."""

    def __init__(
        self,
        model: pyo.ConcreteModel,
        form: Formulation,
        rounds: CuttingPlaneLoop,
        problem: ScoreProblem,
        put: Callable[[], Array],
    ) -> None:
        self.model, self.form, self.rounds, self.problem, self._put = model, form, rounds, problem, put
        self._told = 0.0
        self._asked_to_stop = False
        self._held = np.inf  # cost of the hyperplane that the rounds hold

    def run(self, start: Array | None) -> str:
        """Search to the end and return why it stopped; the incumbent is ``rounds.best``."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):  # of matrices so small, several threads take longer
            return self._run(start)

    def _run(self, start: Array | None) -> str:
        rounds, gap = self.rounds, self.rounds.asked.gap * SHARE_OF_GAP
        first, problem = self._first(start), self.problem
        limit = rounds.asked.limits.nodes

        def reduction() -> Reduction:
            return Reduction(problem.costs, first, gap, self._stop, rounds.left)

        by_labels = BranchAndReduce(reduction(), problem.box, rounds.bound)
        searches: list[BranchAndReduce | HyperplaneSearch] = [by_labels]
        if problem.costs.X.shape[1] <= FEW_FEATURES:
            searches.append(HyperplaneSearch(reduction(), problem.box, rounds.bound))

        def by_combinations() -> BranchAndReduce:
            from .overlap_search import OverlapSearch  # with HiGHS, which other searches do without

            plane = by_labels.reduction.incumbent
            reduction = Reduction(problem.costs, plane, gap, self._stop, rounds.left)
            box = by_labels.root._replace(longest=math.sqrt(2 * plane.cost))
            return OverlapSearch([(reduction, box)], overlap=0.0, by_work=limit is not None)

        search = Turns(searches, limit is not None, by_combinations)
        places = len(by_labels.reduction.unsettled(problem.box))
        labels = LabelSearch(problem.costs, first, lambda: max(0.0, rounds.left()), rounds.asked.seed)
        rounds.rounds = 1
        while True:
            ended = search.step()
            if search.nodes and not ended:
                self._look_elsewhere(labels, search)
            self._keep(search.incumbent)
            rounds.nodes, rounds.bound = search.nodes, max(rounds.bound, search.bound)
            self._tell(at_once=ended or search.nodes <= 1)
            if places and (by_labels.nodes or ended):
                settled = places - len(by_labels.reduction.unsettled(by_labels.root))
                rounds.notes.append(
                    f"searched over scores: {settled} of {places} labels were settled before the first branching"
                )
                places = 0
            if self._asked_to_stop:
                return "interrupted"
            if ended:
                return "time_limit" if rounds.left() <= 0 and not search.closed else "optimal"
            if limit is not None and search.nodes >= limit:
                return "optimal" if search.closed else "work_limit"

    def _look_elsewhere(self, labels: LabelSearch, search: Turns) -> None:
        """A step of the local search over labels, which takes a tenth of the relaxations: what it finds cuts nodes off."""
        if labels.solves > LABELS * search.solves:
            return
        if search.incumbent.cost < labels.best.cost:
            labels.go_on_from(search.incumbent)
        if labels.step():
            search.offer(labels.best)

    def _first(self, start: Array | None) -> Plane:
        """The hyperplane of the start, or the better constant one."""
        costs = self.problem.costs
        if start is not None and self.rounds.keep(start, own=False):
            self.rounds.start = "accepted"
            tree: Any = self.form.extract(self.model)
        else:
            tree = self.form.constant_tree(self.model.info.data, self.model.info.params)
        omega = np.asarray(tree.omega[0], dtype=np.float64)
        omega0 = float(tree.omega0[0] + omega @ costs.center)
        first = Plane(costs.objective(omega, omega0), omega, omega0)
        self._held = first.cost if self.rounds.best is not None else np.inf
        return first

    def _keep(self, plane: Plane) -> None:
        """Make a better hyperplane the incumbent of the rounds."""
        if plane.cost >= self._held:
            return
        self._held = plane.cost
        info = self.model.info
        constant = self.form.constant_tree(info.data, info.params)
        assert isinstance(constant, MarginTree)
        tree = replace(
            constant,
            omega=plane.omega[None, :].copy(),
            omega0=np.array([plane.omega0 - plane.omega @ self.problem.costs.center]),
            split=np.array([bool(plane.omega.any())]),
        )
        try:
            self.form.embed(self.model, tree)
        except TreeNotAdmitted as error:
            self.rounds.notes.append(f"a hyperplane of the search was no point of the model: {error}")
            return
        self.rounds.keep(self._put(), own=True)

    def _stop(self) -> bool:
        self._tell()
        return self._asked_to_stop or self.rounds.left() <= 0

    def _tell(self, at_once: bool = False) -> None:
        """Tell the caller's callback how things are, every now and then."""
        now = time.monotonic()
        if at_once or now - self._told >= TELL_AFTER:
            self._told = now
            self._asked_to_stop |= self.rounds.tell()
