"""By how much fits overrun a time limit, over table, depth, strategy and engine.

    python benchmarks/held_limits.py run --out held.jsonl --limit 5
    python benchmarks/held_limits.py run --out held.jsonl --solver highs --solver scip --case octsvm
    python benchmarks/held_limits.py report held.jsonl

Every run is a process of its own, in which the libraries are imported before the clock starts. What is in --out already is
not run again, so a run may be stopped and taken up. The seconds are those of the whole call, wall clock.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

STRATEGIES = ("balanced", "exact", "heuristic")
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


def table(n: int, p: int) -> tuple[Any, Any]:
    """Two classes, on both sides of a line, with noise."""
    rng = np.random.default_rng(0)
    X = rng.random((n, p))
    return X, (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n) > 1).astype(int)


def measure(case: list[Any], strategy: str, solver: str, limit: float) -> dict[str, Any]:
    """One fit in this process."""
    import octsvm
    from octsvm.formulations.registry import formulation

    name, n, p, depth = case
    formulation(name).load_libraries()
    octsvm.fit("oct", *table(20, 2), depth=1, time_limit=1, solver=solver)
    X, y = table(n, p)
    params = {} if depth is None else {"depth": depth}
    began = time.monotonic()
    result = octsvm.fit(name, X, y, time_limit=limit, strategy=strategy, solver=solver, **params)
    seconds = time.monotonic() - began
    built = not any(note.startswith(("no time", "no model")) for note in result.notes)
    return {"seconds": seconds, "status": result.status, "stop": result.stop, "built": built}


def run(out: Path, limit: float, solvers: list[str], strategies: list[str], cases: list[Any]) -> None:
    """Measure what is not in ``out`` yet."""
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    keys = [(d["case"], d["strategy"], d["solver"], d["limit"]) for d in done]
    for case in cases:
        for strategy in strategies:
            for solver in solvers:
                key = (list(case), strategy, solver, limit)
                if key in keys:
                    continue
                asked = json.dumps([list(case), strategy, solver, limit])
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
    solvers = list(dict.fromkeys(d["solver"] for d in records))
    heads = [f"{strategy}, {solver}" for solver in solvers for strategy in STRATEGIES]
    print("| model | rows x features | depth | " + " | ".join(heads) + " |")
    print("|---|---|---|" + "---|" * len(heads))
    for case in CASES:
        cells = []
        for solver in solvers:
            for strategy in STRATEGIES:
                found = [
                    d
                    for d in records
                    if d["case"] == list(case) and d["strategy"] == strategy and d["solver"] == solver
                ]
                d = found[-1] if found else {}
                cells.append(f"{d['seconds']:.1f}{'' if d['built'] else ' *'}" if "seconds" in d else "")
        if any(cells):
            name, n, p, depth = case
            print(f"| {name} | {n:,} x {p} | {'' if depth is None else depth} | " + " | ".join(cells) + " |")
    over = [d["seconds"] - d["limit"] for d in records if "seconds" in d]
    print(f"\nThe largest overrun is {max(over):.1f} s, the median {max(0.0, float(np.median(over))):.1f} s.")


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
    parser.add_argument("--rows", type=int, help="only tables of so many rows")
    args = parser.parse_args()
    if args.what == "one":
        print(json.dumps(measure(*json.loads(args.rest))))
    elif args.what == "report":
        report(Path(args.rest or args.out))
    else:
        cases = [
            case for case in CASES if (not args.case or case[0] in args.case) and args.rows in (None, case[1])
        ]
        run(args.out, args.limit, args.solver or ["highs"], args.strategy or list(STRATEGIES), cases)


if __name__ == "__main__":
    main()
