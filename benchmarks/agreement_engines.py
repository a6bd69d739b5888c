"""Every engine against brute force: `python benchmarks/agreement_engines.py run --count 30`, then `... report`.

A cell is a formulation, a variant, a norm and an engine; each solves the same tiny instances of tests/instances.py, whose
optima tests/oracles.py enumerates without any of the models' code. An engine that says "optimal" must have the
enumerated optimum within its gap, never less, and no bound may lie above it. An answer that does not hold outside the
solver must come back as "unverified", with the best tree known; such cells are counted as caught. What the dispatcher refuses (a licence that
is too small) is counted with its reason. Lines go to --out as they come; a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import instances  # noqa: E402
import oracles  # noqa: E402

import octsvm  # noqa: E402
from octsvm import solvers  # noqa: E402

GAP = 1e-4
NOT_BELOW = 2e-6  # relative: what a feasibility tolerance of 1e-6 may leave
MODELS: list[tuple[str, dict[str, Any]]] = [
    ("oct", {}),
    ("oct", {"variant": "rank"}),
    ("oct", {"variant": "bd"}),
    ("oct_h", {}),
    *(
        (formulation, {"norm": norm} | ({"variant": variant} if variant else {}))
        for formulation in ("re_svm", "octsvm")
        for variant in ("", "paper")
        for norm in ("l2", "l1")
    ),
    *(
        ("moctsvm", {"norm": norm, "variant": variant})
        for variant in ("compact", "levels")
        for norm in ("l2", "l1")
    ),
]
# Algorithms of an engine that are engines of their own here: entry -> {label: its options}.
ALGORITHMS: dict[str, dict[str, dict[str, Any]]] = {
    "bonmin": {f"bonmin {a}": {"bonmin.algorithm": a} for a in ("B-BB", "B-Hyb", "B-OA")}
}


def engines(chosen: list[str] | None = None) -> dict[str, tuple[str, dict[str, Any]]]:
    """Label -> (entry, options) of all installed engines; stand-ins run under the name that they stand in for."""
    table = solvers.table()
    behind = {spec.otherwise for spec in table.values() if spec.otherwise}
    out = {}
    for name in table:
        if name in behind or solvers.installed(name) is None or (chosen and name not in chosen):
            continue
        for label, options in ALGORITHMS.get(name, {name: {}}).items():
            out[label] = (name, options)
    return out


def label(formulation: str, changes: dict[str, Any]) -> str:
    """Name of a model: formulation, variant, norm."""
    parts = [formulation, changes.get("variant", "default")]
    return " ".join(parts + ([changes["norm"]] if "norm" in changes else []))


def solve(
    instance: instances.Instance,
    changes: dict[str, Any],
    optimum: float,
    solver: str,
    options: dict[str, Any],
    time_limit: float,
) -> dict[str, Any]:
    """One solve, compared; ``faults`` is empty where nothing that was claimed is wrong."""
    params = instance.params | changes
    try:
        result = octsvm.fit(
            instance.formulation,
            instance.X,
            instance.y,
            scale=instance.formulation == "oct",
            solver=solver,
            options=options or None,
            time_limit=time_limit,
            strategy="exact",
            on_mismatch="ignore",
            **params,
        )
    except (octsvm.LicenseTooSmall, octsvm.UnsupportedProblem) as error:
        return {"refused": type(error).__name__, "why": str(error).split(". ")[0], "faults": []}
    except octsvm.InvalidData as error:
        if "apart after scaling" not in str(error):
            raise
        return {
            "refused": "InvalidData",
            "why": "values closer than the rows of this variant can tell apart",
            "faults": [],
        }
    size = max(abs(optimum), 1e-3)
    faults = []
    if result.status == "optimal" and abs(result.objective - optimum) > GAP * size:
        faults.append("says optimal and is not")
    if result.objective < optimum - NOT_BELOW * size:
        faults.append("below the optimum")
    if result.bound > optimum + NOT_BELOW * size:
        faults.append("bound above the optimum")
    if result.status != "unverified" and result.differing_rows:
        faults.append("does not hold outside the solver, and nothing says so")
    return {
        "objective": result.objective,
        "bound": result.bound,
        "status": result.status,
        "stop": result.stop,
        "seconds": round(result.seconds, 3),
        "rounds": result.rounds,
        "nodes": result.nodes,
        "as_it_stands": result.engine.get("as_it_stands"),
        "version": result.solver_version,
        "notes": [n for n in result.notes if "broke down" in n or "did not" in n],
        "faults": faults,
    }


def run(
    count: int, seed: int, time_limit: float, chosen: list[str] | None, done: set[tuple[str, str, str]]
) -> Iterator[dict[str, Any]]:
    """All cells that are not ``done``, instance by instance."""
    for formulation, changes in MODELS:
        cell = label(formulation, changes)
        for instance in instances.tiny(formulation, count, seed):
            optimum = None
            for name, (solver, options) in engines(chosen).items():
                if (cell, name, instance.name) in done:
                    continue
                if optimum is None:
                    changed = {k: v for k, v in changes.items() if k != "variant"}
                    optimum = oracles.optimum(formulation, instance.X, instance.y, instance.params | changed)
                line = solve(instance, changes, optimum, solver, options, time_limit)
                yield {"model": cell, "engine": name, "instance": instance.name, "optimum": optimum} | line


def read(path: Path) -> list[dict[str, Any]]:
    """Lines of an earlier run; a half-written last one is left out."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return lines


def report(lines: list[dict[str, Any]]) -> str:
    """The table: one row a model, one column an engine; "proved/solved", faults and refusals."""
    names = list(dict.fromkeys(line["engine"] for line in lines))
    models = list(dict.fromkeys(line["model"] for line in lines))
    cells: dict[tuple[str, str], list[dict[str, Any]]] = collections.defaultdict(list)
    for line in lines:
        cells[line["model"], line["engine"]].append(line)

    def text(found: list[dict[str, Any]]) -> str:
        if not found:
            return ""
        refused = sum("refused" in line for line in found)
        solved = [line for line in found if "refused" not in line]
        proved = sum(line["status"] == "optimal" for line in solved)
        faulty = sum(bool(line["faults"]) for line in solved)
        caught = sum(line["status"] == "unverified" for line in solved)
        parts = [f"{proved}/{len(solved)}"] if solved else []
        if refused:
            parts.append(f"{refused} refused")
        if caught:
            parts.append(f"{caught} caught")
        if faulty:
            parts.append(f"**{faulty} wrong**")
        return ", ".join(parts)

    rows = [f"| model | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    rows += [
        f"| {model} | " + " | ".join(text(cells[model, name]) for name in names) + " |" for model in models
    ]
    medians = []
    for name in names:
        seconds = [line["seconds"] for line in lines if line["engine"] == name and "seconds" in line]
        medians.append(f"{np.median(seconds):.2f} s" if seconds else "")
    rows.append("| median time | " + " | ".join(medians) + " |")
    faulty = [line for line in lines if line["faults"]]
    solved = sum("refused" not in line for line in lines)
    proved = sum(line.get("status") == "optimal" for line in lines)
    whys = collections.Counter(f"{line['engine']}: {line['refused']}" for line in lines if "refused" in line)
    tail = [
        "",
        f"{solved} solves, {proved} of them proved optimal, {len(faulty)} wrong; {sum(whys.values())} refused by the "
        f"dispatcher ({', '.join(f'{k} {v}' for k, v in sorted(whys.items())) or 'none'}).",
    ]
    return "\n".join(rows + tail) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["run", "report"])
    parser.add_argument("--count", type=int, default=30, help="instances a cell")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--engine", action="append", help="only this entry (may be given again)")
    parser.add_argument("--out", type=Path, default=Path("agreement_engines.jsonl"))
    arguments = parser.parse_args()
    lines = read(arguments.out)
    if arguments.command == "report":
        print(report(lines), end="")
        return 1 if any(line["faults"] for line in lines) else 0
    done = {(line["model"], line["engine"], line["instance"]) for line in lines}
    began, count, bad = time.monotonic(), 0, 0
    with arguments.out.open("a", encoding="utf-8") as out:
        if lines:
            out.write("\n")  # behind a line that was cut off
        for line in run(arguments.count, arguments.seed, arguments.time_limit, arguments.engine, done):
            out.write(json.dumps(line, default=float) + "\n")
            out.flush()
            count += 1
            if line["faults"]:
                bad += 1
                print(f"  {line}", flush=True)
    print(f"{count} solves in {time.monotonic() - began:.0f} s, {bad} wrong", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
