"""Two outer approximations of the cone side by side: `python benchmarks/bridges.py`, counts of rounds, rows and nodes.

"lifted" is the bridge of the package: one more variable for each weight, tangents coordinate by coordinate. "norm" keeps
the variables and cuts with tangents of the norm itself, v'w/||v|| <= k u, the textbook form. Same models, same engine,
same loop; only the bridge differs.
"""

from __future__ import annotations

import argparse
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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--time-limit", type=float, default=60)
    arguments = parser.parse_args()
    lines: dict[str, list[Any]] = {"lifted": [], "norm": []}
    for seed in range(arguments.count):
        rng = np.random.default_rng(seed)
        n, p, depth = 10 + 2 * (seed % 3), 2 + seed % 4, 1
        X = rng.random((n, p))
        y = octsvm.flip_labels(np.where(X.sum(axis=1) > p / 2, 1, -1), 0.2, seed)
        for label, kind in (("lifted", OuterApproximation), ("norm", NormCuts)):
            with bridge(kind):
                result = octsvm.fit(
                    "octsvm", X, y, depth=depth, c1=3, c2=4, c3=0.1, time_limit=arguments.time_limit
                )
            lines[label].append(result)
        a, b = lines["lifted"][-1], lines["norm"][-1]
        print(
            f"n={n:2d} p={p}: lifted {a.rounds:2d} rounds {a.nodes:6d} nodes {a.seconds:5.1f} s {a.status}; "
            f"norm {b.rounds:2d} rounds {b.nodes:6d} nodes {b.seconds:5.1f} s {b.status}; "
            f"objectives {a.objective:.6g} {b.objective:.6g}",
            flush=True,
        )
    for label, found in lines.items():
        print(
            f"{label}: {sum(r.status == 'optimal' for r in found)} proved, rounds {sum(r.rounds for r in found)}, "
            f"nodes {sum(r.nodes for r in found)}, median {statistics.median(r.seconds for r in found):.2f} s"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
