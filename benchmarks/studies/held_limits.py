"""By how much fits and solves overrun a time limit, over table, depth, strategy, engine and rows of one's own.

    python -m benchmarks run held_limits --limit 5
    python -m benchmarks run held_limits --every --solver highs,scip --only name=octsvm --only strategy=own

The strategy "own" solves a model that octsvm.build made, with a row and a priced variable of one's own. Every run is a
process of its own, in which the libraries are imported before the clock starts. The seconds are those of the whole call, wall
clock; "load" is how many processes wanted each processor meanwhile, and "processor" how many processors the call got of
them, its engine's process included. Without --every a choice of cells is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from octsvm.result import OWN_SEARCH

from .. import tables
from ..study import Line, Study, Watch, kept

STRATEGIES = ("balanced", "exact", "heuristic", "own")
# Formulation, rows, features, depth (None for RE-SVM).
CASES: list[tuple[str, int, int, int | None]] = [
    ("oct", 150, 4, 3),
    ("oct", 150, 4, 9),
    ("oct", 180, 13, 7),
    ("oct", 570, 30, 2),
    ("oct", 570, 30, 6),
    ("oct", 2000, 50, 3),
    ("oct", 2000, 200, 4),
    ("oct", 5000, 50, 2),
    ("oct_h", 570, 30, 2),
    ("oct_h", 2000, 50, 3),
    ("oct_h", 5000, 50, 2),
    ("octsvm", 150, 4, 2),
    ("octsvm", 570, 30, 2),
    ("octsvm", 2000, 50, 3),
    ("octsvm", 2000, 200, 9),
    ("octsvm", 5000, 50, 2),
    ("re_svm", 570, 30, None),
    ("re_svm", 2000, 50, None),
    ("re_svm", 5000, 50, None),
]
# What is run without --every, by indices: each engine on small and large models, each strategy on each formulation.
SPREAD: dict[tuple[str, str], Sequence[int]] = {
    ("highs", "balanced"): range(len(CASES)),
    ("highs", "exact"): (0, 1, 3, 7, 8, 12, 16, 17),
    ("highs", "heuristic"): (0, 2, 6, 9, 14, 18),
    ("highs", "own"): (0, 3, 5, 8, 11, 12, 13, 16, 18),
    **{(solver, "exact"): (0, 3, 12, 17) for solver in ("scip", "cbc", "glpk")},
    **{(solver, "exact"): (11, 12, 17) for solver in ("shot", "bonmin")},
    **{(solver, "own"): (3, 12) for solver in ("scip", "cbc")},
}


def table(n: int, p: int) -> tuple[Any, Any]:
    """Two classes, on both sides of a line, with noise."""
    rng = np.random.default_rng(0)
    X = rng.random((n, p))
    return X, (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n) > 1).astype(int)


def with_own_parts(name: str, X: Any, y: Any, params: dict[str, Any]) -> Any:
    """A model with a row of one's own on its first binaries, and a variable in it that has a price."""
    import pyomo.environ as pyo

    import octsvm

    model = octsvm.build(name, X, y, **params)
    first = [v for v in model.component_data_objects(pyo.Var) if v.is_binary()][:50]
    model.own_variable = pyo.Var(bounds=(0, None))
    model.own_row = pyo.Constraint(expr=model.own_variable >= pyo.quicksum(first) - 1)
    model.objective.set_value(model.cost + 0.01 * model.own_variable)
    return model


def measure(cell: Line, asked: Any) -> Line:
    """One call in this process."""
    import octsvm
    from octsvm.formulations.registry import formulation

    strategy, solver, limit = cell["strategy"], cell["solver"], cell["limit"]
    name, n, p, depth = cell["case"]
    formulation(name).load_libraries()
    octsvm.fit("oct", *table(20, 2), depth=1, time_limit=1, solver=solver)
    X, y = table(n, p)
    params = {} if depth is None else {"depth": depth}
    model = with_own_parts(name, X, y, params) if strategy == "own" else None
    watch = Watch()
    if model is not None:
        result = octsvm.solve(model, time_limit=limit, solver=solver, on_mismatch="ignore")
    else:
        result = octsvm.fit(name, X, y, time_limit=limit, strategy=strategy, solver=solver, **params)
    spent = watch.seconds()
    return {
        **kept(result, "status", "stop"),
        "seconds": spent["seconds"],
        "processor": spent["cpu"] / spent["seconds"],
        "handed_over": result.solver != OWN_SEARCH,
    }


def cells(asked: Any) -> Iterator[Line]:
    chosen: Iterable[Any] = ((CASES[k], s, solver) for (solver, s), ks in SPREAD.items() for k in ks)
    if asked.every:
        chosen = product(CASES, STRATEGIES, asked.solver.split(","))
    for case, strategy, solver in chosen:
        of_case = {"name": case[0], "n": case[1], "case": list(case)}
        yield {**of_case, "strategy": strategy, "solver": solver, "limit": asked.limit}


def report(lines: list[Line]) -> str:
    """The table, how much the calls overran, and which were late."""
    found = {(tuple(d["case"]), d["strategy"], d["solver"]): d for d in lines}
    ways = list(dict.fromkeys((d["solver"], d["strategy"]) for d in lines))
    ways.sort(key=lambda way: (way[0] != "highs", way[0], STRATEGIES.index(way[1])))
    rows = []
    for case in CASES:
        of_ways = [found.get((case, strategy, solver)) for solver, strategy in ways]
        cells = [f"{d['seconds']:.1f}{'' if d['handed_over'] else ' *'}" if d else "" for d in of_ways]
        if any(cells):
            name, n, p, depth = case
            rows.append([name, f"{n:,} x {p}", "" if depth is None else depth, *cells])
    over = [d["seconds"] - d["limit"] for d in found.values()]
    late = [
        f"- late: {d['case']} {d['strategy']} {d['solver']} {d['seconds']:.1f} s with {d['processor']:.2f} processors"
        for d in found.values()
        if d["seconds"] - d["limit"] > 2
    ]
    told = (
        f"{len(found)} calls: {sum(o <= 2 for o in over)} overran by at most 2 s, the median by "
        f"{max(0.0, float(np.median(over))):.1f} s, the worst by {max(over):.1f} s."
    )
    head = ["model", "rows x features", "depth", *(f"{strategy}, {solver}" for solver, strategy in ways)]
    return "\n".join([tables.table(head, rows), "", told, *late])


STUDY = Study(
    key=("case", "strategy", "solver", "limit"),
    options={"limit": 5.0, "solver": "highs", "every": False},
    quick={"limit": 1.0},
    apart=True,
)
