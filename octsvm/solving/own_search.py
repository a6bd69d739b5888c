"""Our own search in the place of an engine: RE-SVM by branch and reduce, its answers points of the model like any other.

It takes a model that is a function of scores (:func:`octsvm.solving.certificate.scores_of`). Every better hyperplane is
embedded in the model and becomes the incumbent of the rounds, whose bound, nodes, trace, limits and certificate are those
of an engine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
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

TELL_AFTER = 0.1  # seconds between two reports
LABELS = 0.1  # of the relaxations, for the search over labels
# Up to so many, intervals for the hyperplane are halved: few scores say all others there, and a label says little. Measured on
# made tables of 60 to 100 rows.
FEW_FEATURES = 5


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
        rounds, gap = self.rounds, self.rounds.asked.gap * SHARE_OF_GAP
        first, problem = self._first(start), self.problem
        if problem.costs.X.shape[1] <= FEW_FEATURES:
            problem = problem.with_basis(math.sqrt(2 * first.cost))
        reduction = Reduction(problem.costs, first, gap, self._stop, rounds.left)
        places = len(reduction.unsettled(problem.box))
        search = BranchAndReduce(reduction, problem.box, rounds.bound)
        limit = rounds.asked.limits.nodes
        steps = search.run(by_work=limit is not None)
        labels = LabelSearch(
            self.problem.costs, reduction.incumbent, lambda: max(0.0, rounds.left()), rounds.asked.seed
        )
        rounds.rounds = 1
        while True:
            ended = next(steps, search) is search
            if search.nodes and not ended:
                self._look_elsewhere(labels, reduction)
            self._keep(reduction.incumbent)
            rounds.nodes, rounds.bound = search.nodes, max(rounds.bound, search.bound)
            self._tell(at_once=ended or search.nodes <= 1)
            if places and search.nodes == 1:
                left = len(reduction.unsettled(search.root))
                rounds.notes.append(
                    f"searched over hyperplanes, by halves of the intervals for {problem.costs.basis} scores that say all others"
                    if problem.costs.basis
                    else f"searched over scores: {places - left} of {places} labels were settled before the first branching"
                )
                places = 0
            if self._asked_to_stop:
                return "interrupted"
            if ended:
                return "time_limit" if rounds.left() <= 0 and not search.closed else "optimal"
            if limit is not None and search.nodes >= limit:
                return "optimal" if search.closed else "work_limit"

    def _look_elsewhere(self, labels: LabelSearch, reduction: Reduction) -> None:
        """A step of the local search over labels, which takes a tenth of the relaxations: what it finds cuts nodes off."""
        if labels.solves > LABELS * reduction.relaxation.solves:
            return
        if reduction.incumbent.cost < labels.best.cost:
            labels.go_on_from(reduction.incumbent)
        if labels.step():
            reduction.incumbent = labels.best

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
