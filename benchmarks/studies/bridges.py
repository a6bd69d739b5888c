"""Two outer approximations of the cone side by side: counts of rounds, rows and nodes.

"lifted" is the bridge of the package: one more variable for each weight, tangents coordinate by coordinate. "norm" keeps
the variables and cuts with tangents of the norm itself, v'w/||v|| <= k u, the textbook form. Same models, same engine,
same loop; only the bridge differs.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import octsvm
from octsvm.backends.matrix_program import Array, LinearProgram, Row
from octsvm.bridges import outer_approximation
from octsvm.bridges.outer_approximation import OuterApproximation, PlainCone
from octsvm.formulations.blocks.rows import linear
from octsvm.solving import dispatch

from ..study import Line, Study, every, kept
from ..tables import table


class NormCuts(OuterApproximation):
    """Tangents of ‖v‖ in the model's own variables, first along the axes."""

    name = "norm_cuts"

    def rewrite(self, model: Any, problem: Any) -> None:
        import pyomo.environ as pyo

        self._cones = list(problem.cones)
        block = self.add_block(model, outer_approximation.BLOCK)
        block.cuts = pyo.ConstraintList()
        for cone in self._cones:
            self.deactivate(cone.row)
            for v in cone.vector:
                for sign in (1.0, -1.0):
                    block.cuts.add((None, linear([sign, -cone.factor], [v, cone.rhs]), 0.0))

    def attach(self, program: LinearProgram) -> None:
        at = program.position
        self._plain, self._squares_at, self._lifted = [], [], []
        for cone in self._cones:
            v = np.array([at[id(u)] for u in cone.vector if id(u) in at], dtype=np.int64)
            self._plain.append(PlainCone(v, np.array([at[id(cone.rhs)]]), cone.factor))

    def cuts(self, x: Array, violated: bool = True) -> list[Row]:
        if violated:
            return super().cuts(x)
        rows = []
        for v, u, factor, _ in self._plain:
            size = float(np.linalg.norm(x[v]))
            if size > 1e-9:
                rows.append(Row((*v.tolist(), *u.tolist()), (*(-x[v] / size).tolist(), factor), 0.0))
        return rows

    def repair(self, x: Array) -> Array | None:
        out = x.copy()
        for v, u, factor, _ in self._plain:
            out[u] = np.maximum(out[u], float(np.linalg.norm(out[v])) / factor)
        return out


@contextmanager
def bridge(kind: type[OuterApproximation]) -> Iterator[None]:
    """Let every solve use ``kind``."""
    kept = dispatch.leading_to
    dispatch.leading_to = lambda *asked: kind() if kept(*asked) is not None else None
    try:
        yield
    finally:
        dispatch.leading_to = kept


KINDS = {"lifted": OuterApproximation, "norm": NormCuts}


def cells(asked: Any) -> Iterator[Line]:
    return every(index=range(asked.count), tangents=KINDS)


def measure(cell: Line, asked: Any) -> Line:
    """One table of 10 to 14 rows, one bridge."""
    seed = cell["index"]
    n, p = 10 + 2 * (seed % 3), 2 + seed % 4
    X = np.random.default_rng(seed).random((n, p))
    y = octsvm.flip_labels(np.where(X.sum(axis=1) > p / 2, 1, -1), 0.2, seed)
    with bridge(KINDS[cell["tangents"]]):
        r = octsvm.fit("octsvm", X, y, depth=1, c1=3, c2=4, c3=0.1, time_limit=asked.limit, solver="highs")
    return kept(r, "n", "p", "status", "objective", "rounds", "nodes", "seconds")


def report(lines: list[Line]) -> str:
    rows = []
    for kind in KINDS:
        mine = [line for line in lines if line["tangents"] == kind]
        if mine:
            proved = sum(line["status"] == "optimal" for line in mine)
            counts = [sum(line[k] for line in mine) for k in ("rounds", "nodes")]
            median = statistics.median(line["seconds"] for line in mine)
            rows.append([kind, f"{proved} of {len(mine)}", *counts, f"{median:.2f} s"])
    return table(["tangents", "proved", "rounds in all", "nodes in all", "median"], rows)


STUDY = Study(
    key=("index", "tangents"),
    options={"count": 8, "limit": 60.0},
    code=("octsvm/bridges", "octsvm/solving"),
)
