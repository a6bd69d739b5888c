"""Neighbourhood search with the model itself: fix most integers at the incumbent, solve the rest, and again.

The model is built and compiled once. A neighbourhood names rows and nodes that are free; the integers of all others are
fixed in the compiled program, and the rest goes through the same rounds and the same engine as a whole model does. What
comes back is read as a tree, routed, charged and embedded again before it replaces the incumbent, so no neighbourhood
makes it worse. Nothing is concluded about the whole model: its bound stays what it was.

Three kinds of neighbourhood take turns, those that found something first:

* ``near``: the rows next to the hyperplanes and those that cost most, and a node;
* ``subtree``: a node, all that is below it, and the rows that come there;
* ``random``: rows drawn at random, and a node.

Where no integer belongs to a row, as in OCT as a flow, ``near`` and ``random`` free nodes: those that such rows come to, or any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from ..backends.matrix_program import Array, LinearProgram
from ..bridges import Bridge
from ..errors import EngineFailed, LicenseTooSmall, UnsupportedProblem
from ..formulations.base import BoolArray, IntArray, ModelInfo
from ..formulations.blocks.roles import role_of, subject
from ..formulations.heap import is_below
from ..formulations.registry import formulation
from ..solvers import SolverSpec
from .cutting_planes import CuttingPlaneLoop, Known
from .engine import Engine, embedded
from .plan import Plan

KINDS = ("near", "subtree", "random")
FIRST_SIZE = 5  # free rows
NODES = 200  # of one neighbourhood
SLICE = 2.0  # seconds of one neighbourhood, without a work limit
ROUNDS = 4  # of refinement of one neighbourhood
FAILURES = 30  # neighbourhoods in a row that improve nothing, after which the search is over
IMPROVES = 1e-9  # relative


@dataclass(frozen=True)
class Layout:
    """Samples and node of every integer column, from what its block declared of it."""

    column: IntArray  # (C,) of the program
    node: IntArray  # (C,) 0 where it has none
    entry: IntArray  # with ``sample``: a pair for each of these columns (its position in ``column``) and sample of it
    sample: IntArray
    open_if_absent: BoolArray  # (C,)
    n: int
    T: int

    @classmethod
    def of(cls, model: pyo.ConcreteModel, program: LinearProgram) -> Layout:
        """The layout of ``program``, compiled from ``model``."""
        info: ModelInfo = model.info
        columns = np.flatnonzero(program.integer)
        variables = [program.columns[k] for k in columns.tolist()]
        about, roles = [subject(v) for v in variables], [role_of(v) for v in variables]
        return cls(
            columns,
            np.array([what.node or 0 for what in about], dtype=np.int64),
            np.repeat(np.arange(len(about)), [len(what.samples) for what in about]),
            np.array([i for what in about for i in what.samples], dtype=np.int64),
            np.array([role is not None and role.open_if_absent for role in roles], dtype=bool),
            info.data.n,
            formulation(info.formulation).constant_tree(info.data, info.params).n_nodes,
        )

    @property
    def by_sample(self) -> bool:
        """Whether any integer is of a sample; otherwise nodes alone make a neighbourhood."""
        return bool(len(self.entry))

    @property
    def most(self) -> int:
        """The largest size of a neighbourhood: all samples, or all nodes."""
        return self.n if self.by_sample else self.T

    def touches(self, cells: BoolArray) -> BoolArray:
        """Which columns (C,) have a sample that ``cells (n, T)`` marks at their node (at any, where they have none)."""
        marked = np.column_stack([cells.any(axis=1), cells])
        out = np.zeros(len(self.column), dtype=bool)
        out[self.entry[marked[self.sample, self.node[self.entry]]]] = True
        return out


@dataclass
class Kind:
    """How a kind of neighbourhood has done, and how large the next one is."""

    size: float
    score: float = 1.0


def spec_of(plan: Plan) -> SolverSpec:
    """The engine of the neighbourhoods: the plan's, or the embedded one where it reads expressions from a file.

    Programs that read an .nl file would have it written anew for every neighbourhood.
    """
    wants_file = plan.spec.format == "nl" or plan.spec.backend == "neos"
    return embedded() if wants_file else plan.spec


class Search:
    """The state of one search, on the rounds that hold the incumbent."""

    def __init__(
        self,
        model: pyo.ConcreteModel,
        rounds: CuttingPlaneLoop,
        plan: Plan,
        bridge: Bridge | None,
        seed: int,
        path: Callable[[], IntArray],
    ) -> None:
        self.rounds, self.bridge = rounds, bridge
        self.program = rounds.program
        self.spec = spec_of(plan)
        self.native = plan.native and self.spec is plan.spec
        self.layout = Layout.of(model, self.program)
        self.rng = np.random.default_rng(seed)
        first = min(FIRST_SIZE, self.layout.n) if self.layout.by_sample else 1
        self.kinds = {name: Kind(first) for name in KINDS}
        self._path = path
        self._model = model
        self._whole = rounds.asked.limits.nodes is not None or rounds.asked.limits.rounds is not None

    # -- neighbourhoods -------------------------------------------------------------------------------------

    def free(self, kind: str, size: int) -> tuple[BoolArray, BoolArray]:
        """Samples × nodes that are free (n, T), and nodes whose own integers are (T,); ``size`` counts samples.

        Where no integer is of a sample, it counts nodes.
        """
        n, T = self.layout.n, self.layout.T
        cells, nodes = np.zeros((n, T), dtype=bool), np.zeros(T, dtype=bool)
        path = self.path()
        if kind == "subtree":
            top = int(self.rng.choice(np.unique(path)))
            nodes[[t - 1 for t in range(1, T + 1) if is_below(t, top)]] = True
            rows = self.rng.permutation(np.flatnonzero((path == top).any(axis=1)))[:size]
            cells[np.ix_(rows, nodes)] = True
        elif self.layout.by_sample:
            rows = self.interesting() if kind == "near" else self.rng.permutation(n)
            cells[rows[:size]] = True
            nodes[int(self.rng.integers(T))] = True
        else:
            # A leaf's integers follow from the splits above it, so they are free together.
            some = np.unique(path[self.interesting()[:size]]) if kind == "near" else np.arange(1, T + 1)
            tops = self.rng.permutation(some)[:size].tolist()
            last = (t for t in range(T // 2 + 1, T + 1) if any(is_below(t, top) for top in tops))
            nodes[[t - 1 for t in (*tops, *last)]] = True
        return cells, nodes

    def path(self) -> IntArray:
        """Where the incumbent sends each row (n, levels)."""
        assert self.rounds.best is not None
        self.program.load(self.rounds.best)
        return self._path()

    def interesting(self) -> IntArray:
        """Rows, those first that cost most or lie next to a hyperplane, with some chance in it."""
        n = self.layout.n
        rank = self.rng.random(n)
        hinge = self._model.component("hinge")
        split = self._model.component("split")
        margins = hinge is not None and hasattr(split, "s")
        if margins:
            path = self.path()
            for i in range(n):
                nodes = [t for t in path[i].tolist() if (i, t) in hinge.e]  # leaves have no hyperplane
                near = min((abs(split.s[i, t].value or 0.0) for t in nodes), default=0.0)
                cost = sum(hinge.e[i, t].value or 0.0 for t in nodes)
                rank[i] += 1.0 / (0.3 + near) + min(cost, 3.0)
        if not margins or self._model.component("leaf_label") is not None:
            # Rows of a leaf that has errors, those in error first.
            tree = self._model.info.data
            wrong = self._wrong()
            leaf = self.path()[:, -1]
            share = np.array([wrong[leaf == t].mean() for t in leaf])
            rank += wrong + share * (len(tree.classes) > 1)
        return np.argsort(-rank, kind="stable")

    def _wrong(self) -> Array:
        info = self._model.info
        tree = formulation(info.formulation).extract(self._model)
        index = {c: k for k, c in enumerate(tree.classes)}
        said = np.array([index[c] for c in tree.predict(info.data.X_original)])
        return (said != info.data.y).astype(float)

    def restricted(self, cells: BoolArray, nodes: BoolArray) -> LinearProgram:
        """The program with all other integers fixed at the incumbent.

        A row that cannot come to a node may lie on either side there: its θ is left to itself, and need not be whole.
        """
        assert self.rounds.best is not None
        at, best = self.layout, self.rounds.best
        visited = np.zeros((at.n, at.T), dtype=bool)
        np.put_along_axis(visited, self.path() - 1, True, axis=1)
        of_sample = np.zeros(len(at.column), dtype=bool)
        of_sample[at.entry] = True
        of_node = np.concatenate(([True], nodes))[at.node]
        free: BoolArray = np.where(of_sample, at.touches(cells), of_node)
        moves = np.repeat(cells.any(axis=1, keepdims=True), at.T, axis=1)
        loose = at.open_if_absent & ~free & ~at.touches(np.logical_or(visited, moves))
        fixed = ~free & ~loose
        columns = at.column[fixed]
        integer: NDArray[np.bool_] = self.program.integer.copy()
        integer[at.column[loose]] = False
        sub = self.program.fixed_at(columns, np.round(best[columns]))
        return replace(sub, integer=integer)

    # -- the loop -------------------------------------------------------------------------------------------

    def solve(self, sub: LinearProgram) -> tuple[str, Array | None]:
        """One neighbourhood: why its solve stopped, and a better point if there is one."""
        rounds = self.rounds
        assert rounds.best is not None
        asked, left = rounds.asked, rounds.left()
        work: dict[str, Any] = {"rounds": ROUNDS, "nodes": NODES if self.spec.takes("node_limit") else None}
        if asked.limits.nodes is not None:
            work["nodes"] = min(
                work["nodes"] or asked.limits.nodes, max(1, asked.limits.nodes - rounds.nodes)
            )
        work["work"] = asked.limits.work
        inner = CuttingPlaneLoop(
            sub,
            Engine(self.spec, sub, self.bridge, self.native),
            self.bridge,
            asked.within(
                left if self._whole else min(left, SLICE),
                gap=1e-4,
                seed=int(self.rng.integers(2**31 - 1)),
                work_limit={name: most for name, most in work.items() if most is not None},
                # The caller's is told of the whole model, not of a neighbourhood.
                callback=None if asked.callback is None else lambda _: rounds.tell(),
                options=rounds.options if self.spec is rounds.spec else None,
            ),
            Known(rounds.bound, rounds.size),
        )
        inner.best, inner.objective = rounds.best.copy(), rounds.objective
        try:
            stop = inner.run(None)
        finally:
            rounds.nodes += max(1, inner.nodes)
            rounds.rounds += 1
            rounds.last = inner.last or rounds.last
            rounds.startup += inner.startup
        better = inner.own and inner.objective < rounds.objective * (1 - IMPROVES) - 1e-12
        return stop, inner.best if better else None

    def run(self, start: Array) -> str:
        """Search until nothing improves or a limit is hit; the incumbent is ``rounds.best``."""
        rounds, failures = self.rounds, 0
        rounds.begin_with(start)
        if rounds.best is None:
            return "error"
        while True:
            if rounds.tell():
                return "interrupted"
            if rounds.left() <= 0:
                return "time_limit"
            if rounds.out_of_work():
                return "work_limit"
            if failures >= FAILURES or not self.layout.n:
                return "local_optimum"
            name = self._next(failures)
            kind = self.kinds[name]
            cells, nodes = self.free(name, max(1, round(kind.size)))
            everything = bool(nodes.all() and (cells.all() or not self.layout.by_sample))
            try:
                stop, point = self.solve(self.restricted(cells, nodes))
            except (EngineFailed, LicenseTooSmall, UnsupportedProblem) as error:
                rounds.notes.append(f"a neighbourhood could not be solved: {error}")
                return "error"
            if stop == "interrupted":
                return stop
            improved = point is not None and rounds.adopt(point)
            kind.score = 0.7 * kind.score + (1.0 if improved else 0.0)
            failures = 0 if improved else failures + 1
            if stop == "optimal":
                if everything and not improved:
                    return "local_optimum"
                kind.size = min(self.layout.most, kind.size * (1.0 if improved else 1.4) + 1)
            else:
                kind.size = max(2.0, kind.size * 0.7)

    def _next(self, failures: int) -> str:
        """Kinds in the order of their success; after a failure the next one."""
        order = sorted(KINDS, key=lambda k: (-self.kinds[k].score, KINDS.index(k)))
        return order[failures % len(order)]
