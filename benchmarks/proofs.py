"""How long proofs of optimality take: the default of OCTSVM against the paper's rows with (9′), by the same engine.

    python -m benchmarks.proofs run --out proofs.jsonl --solver highs --solver scip --limit 120
    python -m benchmarks.proofs ablation --out proofs.jsonl
    python -m benchmarks.proofs report proofs.jsonl
    python -m benchmarks.proofs profile proofs.jsonl --solver highs --plot profile.svg

The tables are those of ``benchmarks.cases.PROOFS``. What is in --out already is not run again, so a run may be stopped
and taken up; the last line counts. ``paper`` is variant="paper", mu_svm=1e-3, strategy="exact"; ``default`` is a plain
octsvm.fit. Every run is a process of its own, whose CPU seconds (those of its children too) are counted; importing
the package is not.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import PROOFS, Proof

WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"variant": "paper", "mu_svm": 1e-3, "strategy": "exact"},
}
SHIFTS = (1.0, 10.0)
GAP = 1e-4


def cpu_seconds() -> float:
    """Of this process and its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def measure(case: Proof, way: str, solver: str, limit: float) -> dict[str, Any]:
    """One line of results."""
    import octsvm

    X, y = case.table()
    octsvm.fit("octsvm", X[:4], [0, 1, 0, 1], depth=0, time_limit=1, strategy="exact")  # imports what it needs
    before, began = cpu_seconds(), time.monotonic()
    result = octsvm.fit(
        "octsvm", X, y, solver=solver, time_limit=limit, on_mismatch="ignore", **case.params, **WAYS[way]
    )
    return {
        "index": case.index,
        "way": way,
        "solver": solver,
        "limit": limit,
        "n": case.n,
        "p": case.p,
        "labels": case.labels,
        **case.params,
        "seconds": round(time.monotonic() - began, 3),
        "cpu": round(cpu_seconds() - before, 3),
        "status": result.status,
        "objective": result.objective,
        "bound": result.bound,
        "nodes": result.nodes,
        "rounds": result.rounds,
        "version": result.solver_version,
        "load": round(os.getloadavg()[0] / (os.cpu_count() or 1), 2),
    }


def _work(queue: Any, *task: Any) -> None:
    queue.put(measure(*task))


def apart(*task: Any) -> dict[str, Any]:
    """:func:`measure` in a process of its own."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_work, args=(queue, *task))
    process.start()
    line: dict[str, Any] = queue.get()
    process.join()
    return line


def read(path: Path) -> dict[tuple[int, str, str], dict[str, Any]]:
    """The last line of every run."""
    if not path.exists():
        return {}
    lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines() if text]
    return {(line["index"], line["way"], line["solver"]): line for line in lines}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="measure what is not there yet")
    one.add_argument("--out", type=Path, required=True, help="JSON lines, appended")
    one.add_argument("--solver", action="append", help="(highs and scip)")
    one.add_argument("--way", action="append", choices=list(WAYS), help="(default and paper)")
    one.add_argument("--index", action="append", type=int, help="(all)")
    one.add_argument("--limit", type=float, default=120.0)
    arguments = parser.parse_args()
    found = read(arguments.out)
    for solver in arguments.solver or ["highs", "scip"]:
        for way in arguments.way or ["default", "paper"]:
            for case in PROOFS:
                if arguments.index and case.index not in arguments.index:
                    continue
                if (case.index, way, solver) in found:
                    continue
                line = apart(case, way, solver, arguments.limit)
                with arguments.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(line) + "\n")
                print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
