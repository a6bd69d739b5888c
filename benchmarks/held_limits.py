"""By how much fits and solves overrun a time limit, over table, depth, strategy, engine and rows of one's own.

    python benchmarks/held_limits.py run --out held.jsonl --limit 5 --spread
    python benchmarks/held_limits.py run --out held.jsonl --solver highs --solver scip --case octsvm
    python benchmarks/held_limits.py run --out held.jsonl --strategy own --case oct
    python benchmarks/held_limits.py report held.jsonl

The strategy "own" solves a model that octsvm.build made, with a row and a priced variable of one's own. Every run is a
process of its own, in which the libraries are imported before the clock starts. What is in --out already is not run again,
so a run may be stopped and taken up. The seconds are those of the whole call, wall clock; "load" is how many processes
wanted a processor meanwhile, and "processor" how many processors the call got of them, its engine's process included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

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
# What --spread runs: each engine on small and large models, each strategy on each formulation.
SPREAD: list[tuple[str, str, tuple[str, ...], tuple[int, ...]]] = [
    ("highs", "balanced", ("oct", "oct_h", "octsvm", "re_svm"), tuple(range(len(CASES)))),
    ("highs", "exact", ("oct", "oct_h", "octsvm", "re_svm"), (0, 1, 3, 7, 8, 12, 16, 17)),
    ("highs", "heuristic", ("oct", "oct_h", "octsvm", "re_svm"), (0, 2, 6, 9, 14, 18)),
    ("highs", "own", ("oct", "oct_h", "octsvm", "re_svm"), (0, 3, 5, 8, 11, 12, 13, 16, 18)),
    ("scip", "exact", ("oct", "octsvm", "re_svm"), (0, 3, 12, 17)),
    ("cbc", "exact", ("oct", "octsvm", "re_svm"), (0, 3, 12, 17)),
    ("glpk", "exact", ("oct", "octsvm", "re_svm"), (0, 3, 12, 17)),
    ("shot", "exact", ("octsvm", "re_svm"), (11, 12, 17)),
    ("bonmin", "exact", ("octsvm", "re_svm"), (11, 12, 17)),
    ("scip", "own", ("oct", "octsvm"), (3, 12)),
    ("cbc", "own", ("oct", "octsvm"), (3, 12)),
]


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


def processor_seconds() -> float:
    """Of this process and of those that it started and that ended."""
    return sum(os.times()[:4])


def measure(case: list[Any], strategy: str, solver: str, limit: float) -> dict[str, Any]:
    """One call in this process."""
    import octsvm
    from octsvm.formulations.registry import formulation

    name, n, p, depth = case
    formulation(name).load_libraries()
    octsvm.fit("oct", *table(20, 2), depth=1, time_limit=1, solver=solver)
    X, y = table(n, p)
    params = {} if depth is None else {"depth": depth}
    model = with_own_parts(name, X, y, params) if strategy == "own" else None
    began, used = time.monotonic(), processor_seconds()
    if model is not None:
        result = octsvm.solve(model, time_limit=limit, solver=solver, on_mismatch="ignore")
    else:
        result = octsvm.fit(name, X, y, time_limit=limit, strategy=strategy, solver=solver, **params)
    seconds = time.monotonic() - began
    handed_over = result.solver_version != "not called"
    return {
        "seconds": seconds,
        "processor": (processor_seconds() - used) / seconds,
        "load": os.getloadavg()[0],
        "status": result.status,
        "stop": result.stop,
        "handed_over": handed_over,
    }


Cell = tuple[tuple[str, int, int, int | None], str, str]  # case, strategy, solver


def spread() -> list[Cell]:
    """The cells of --spread."""
    return [
        (CASES[k], strategy, solver)
        for solver, strategy, names, chosen in SPREAD
        for k in chosen
        if CASES[k][0] in names
    ]


def run(out: Path, limit: float, cells: list[Cell]) -> None:
    """Measure what is not in ``out`` yet."""
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    keys = [(d["case"], d["strategy"], d["solver"], d["limit"]) for d in done]
    for case, strategy, solver in cells:
        key = (list(case), strategy, solver, limit)
        if key in keys:
            continue
        asked = json.dumps(key)
        child = subprocess.run(
            [sys.executable, __file__, "one", asked], capture_output=True, text=True, check=False
        )
        lines = child.stdout.splitlines()
        found = json.loads(lines[-1]) if lines else {"error": child.stderr[-300:]}
        record = dict(zip(("case", "strategy", "solver", "limit"), key, strict=True)) | found
        with out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(json.dumps(record), flush=True)


def report(out: Path) -> None:
    """The table, in Markdown, and the largest overrun."""
    records = [json.loads(line) for line in out.read_text().splitlines()]
    # Of what was measured twice the last counts.
    found = {(tuple(d["case"]), d["strategy"], d["solver"]): d for d in records if "seconds" in d}
    ways = list(dict.fromkeys((d["solver"], d["strategy"]) for d in records))
    ways.sort(key=lambda way: (way[0] != "highs", way[0], STRATEGIES.index(way[1])))
    print("| model | rows x features | depth | " + " | ".join(f"{b}, {a}" for a, b in ways) + " |")
    print("|---|---|---|" + "---|" * len(ways))
    for case in CASES:
        cells = []
        for solver, strategy in ways:
            d = found.get((case, strategy, solver))
            cells.append("" if d is None else f"{d['seconds']:.1f}{'' if d['handed_over'] else ' *'}")
        if any(cells):
            name, n, p, depth = case
            print(f"| {name} | {n:,} x {p} | {'' if depth is None else depth} | " + " | ".join(cells) + " |")
    over = [d["seconds"] - d["limit"] for d in found.values()]
    loads = [d["load"] for d in found.values()]
    print(
        f"\n{len(found)} calls: {sum(o <= 2 for o in over)} overran by at most 2 s, the median by "
        f"{max(0.0, float(np.median(over))):.1f} s, the worst by {max(over):.1f} s. The load was {min(loads):.0f} to "
        f"{max(loads):.0f}."
    )
    for d in found.values():
        if d["seconds"] - d["limit"] > 2:
            print(
                f"late: {d['case']} {d['strategy']} {d['solver']} {d['seconds']:.1f} s with {d['processor']:.2f} processors",
                file=sys.stderr,
            )
    for d in records:
        if "error" in d:
            print("failed:", d["case"], d["strategy"], d["solver"], d["error"][-200:], file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "report", "one"))
    parser.add_argument("rest", nargs="?", help="for report, the file; for one, what to run, as JSON")
    parser.add_argument("--out", type=Path, default=Path("held.jsonl"))
    parser.add_argument("--limit", type=float, default=5.0)
    parser.add_argument("--solver", action="append", help="may be repeated; highs by default")
    parser.add_argument("--strategy", action="append", help="may be repeated; all by default")
    parser.add_argument("--case", action="append", help="a formulation; may be repeated; all by default")
    parser.add_argument("--spread", action="store_true", help="a choice of cells, in place of all of them")
    parser.add_argument("--rows", type=int, help="only tables of so many rows")
    args = parser.parse_args()
    if args.what == "one":
        print(json.dumps(measure(*json.loads(args.rest))))
    elif args.what == "report":
        report(Path(args.rest or args.out))
    else:
        cells = [
            (case, strategy, solver)
            for case in CASES
            for strategy in args.strategy or STRATEGIES
            for solver in args.solver or ["highs"]
        ]
        cells = [
            (case, strategy, solver)
            for case, strategy, solver in (spread() if args.spread else cells)
            if (not args.case or case[0] in args.case)
            and args.rows in (None, case[1])
            and (not args.solver or solver in args.solver)
            and (not args.strategy or strategy in args.strategy)
        ]
        run(args.out, args.limit, cells)


if __name__ == "__main__":
    main()
