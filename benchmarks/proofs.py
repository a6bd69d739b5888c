"""How long proofs of optimality take: the default of OCTSVM against the paper's rows with (9′), by the same engine.

    python benchmarks/proofs.py run --out proofs.jsonl --solver highs --solver scip --limit 120
    python benchmarks/proofs.py run --out proofs.jsonl --further
    python benchmarks/proofs.py ablation --out proofs.jsonl
    python benchmarks/proofs.py report proofs.jsonl
    python benchmarks/proofs.py profile proofs.jsonl --solver highs --plot profile.svg

The tables are those of ``benchmarks.cases.PROOFS``; with --further they are as many others, by which nothing in the
package was chosen. What is in --out already is not run again, so a run may be stopped
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
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.cases import FURTHER_PROOFS, PROOFS, Proof

WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"variant": "paper", "mu_svm": 1e-3, "strategy": "exact"},
}
# Of the ablation: the default without one of its parts.
WITHOUT = (
    "without the start",
    "without rows on sides",
    "without mixes",
    "without sets of three and four rows",
    "without the bound on delta",
    "as for large models",
)
ABLATED = range(12)  # indices
SHIFTS = (1.0, 10.0)
GAP = 1e-4
AGREE = 2e-4  # relative: two gaps


@contextmanager
def changed(way: str) -> Iterator[None]:
    """The package without the part that ``way`` names, for a while."""
    from octsvm.formulations import octsvm as model
    from octsvm.formulations.bounds import hull
    from octsvm.solving import dispatch

    patches = {
        "without rows on sides": lambda: patch.object(
            model, "add_misrouting_inequalities", lambda *a, **k: None
        ),
        "without mixes": lambda: patch.object(model, "chosen_rows", lambda *a: []),
        "without sets of three and four rows": lambda: patch.object(model, "MOST_SETS", 0),
        "without the bound on delta": lambda: patch.object(
            hull, "margin_bound", lambda *a: a[-1] * (1 + 1e-6)
        ),
        "as for large models": lambda: patch.object(
            dispatch, "SMALL_TABLE", 0
        ),  # loose rounds first, heuristics of the engine
    }
    if way not in patches:
        yield
        return
    with patches[way]():
        yield


def cpu_seconds() -> float:
    """Of this process and its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def measure(case: Proof, way: str, solver: str, limit: float) -> dict[str, Any]:
    """One line of results."""
    import octsvm

    X, y = case.table()
    octsvm.fit("octsvm", X[:4], [0, 1, 0, 1], depth=1, time_limit=5, solver=solver)  # imports what it needs
    before, began = cpu_seconds(), time.monotonic()
    how = {"strategy": "exact"} if way == "without the start" else WAYS.get(way, {})
    with changed(way):
        result = octsvm.fit(
            "octsvm", X, y, solver=solver, time_limit=limit, on_mismatch="ignore", **case.params, **how
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


def run(out: Path, tasks: list[tuple[Proof, str, str, float]]) -> None:
    """Measure what is not in ``out`` yet."""
    found = read(out)
    for case, way, solver, limit in tasks:
        if (case.index, way, solver) in found:
            continue
        line = apart(case, way, solver, limit)
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(
            f"{solver:6} {way:36} {case.index:2} {line['status']:9} {line['objective']:.6g} in {line['seconds']:.2f} s "
            f"({line['cpu']:.2f} s of a processor), {line['nodes']} nodes",
            flush=True,
        )


def seconds_of(line: dict[str, Any], clock: str) -> float:
    """What a run counts for: the whole limit where nothing was proved."""
    return min(line[clock], line["limit"]) if line["status"] == "optimal" else float(line["limit"])


def shifted_mean(seconds: list[float], shift: float) -> float:
    """exp(mean log(t + shift)) - shift."""
    return float(np.exp(np.mean(np.log(np.array(seconds) + shift))) - shift)


def disagreements(found: dict[tuple[int, str, str], dict[str, Any]]) -> list[str]:
    """Proved optima of one table that differ, and bounds above an objective that another run found."""
    out = []
    for index in sorted({i for i, _, _ in found}):
        lines = {(way, solver): line for (i, way, solver), line in found.items() if i == index}
        best = min(line["objective"] for line in lines.values())
        for (way, solver), line in lines.items():
            if line["bound"] > best + AGREE * abs(best):
                out.append(
                    f"{index}: {way} ({solver}) has the bound {line['bound']:.8g}, and {best:.8g} was found"
                )
            if line["status"] == "optimal" and line["objective"] > best + AGREE * abs(best):
                out.append(
                    f"{index}: {way} ({solver}) calls {line['objective']:.8g} optimal, and {best:.8g} was found"
                )
    return out


def report(found: dict[tuple[int, str, str], dict[str, Any]]) -> str:
    """Solved counts, shifted geometric means and ratios in Markdown, and whether all answers agree."""
    groups = ((PROOFS, "the tables"), (FURTHER_PROOFS, "further tables, by which nothing was chosen"))
    out = []
    for cases, title in groups:
        indices = {case.index for case in cases}
        out += _of_group({key: line for key, line in found.items() if key[0] in indices}, title)
    wrong = disagreements(found)
    return "\n".join([*out, *(wrong or ["All proved optima agree, and no bound lies above an objective."])])


def _of_group(found: dict[tuple[int, str, str], dict[str, Any]], title: str) -> list[str]:
    out = []
    for solver in sorted({s for _, _, s in found}):
        ways = [w for w in (*WAYS, *WITHOUT) if any((s, v) == (solver, w) for _, v, s in found)]
        out += [
            f"{solver}, {title}:",
            "",
            "| way | tables | proved | mean, shift 1 | mean, shift 10 | processor, shift 1 | nodes | longer than the default |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for way in ways:
            of_way = {i: line for (i, v, s), line in found.items() if (v, s) == (way, solver)}
            both = [i for i in of_way if (i, "default", solver) in found]
            means = [shifted_mean([seconds_of(x, "seconds") for x in of_way.values()], k) for k in SHIFTS]
            processor = shifted_mean([seconds_of(x, "cpu") for x in of_way.values()], 1.0)
            ratios = [
                shifted_mean([seconds_of(of_way[i], clock) for i in both], 1.0)
                / max(1e-9, shifted_mean([seconds_of(found[i, "default", solver], clock) for i in both], 1.0))
                for clock in ("seconds", "cpu")
                if both
            ]
            proved = sum(line["status"] == "optimal" for line in of_way.values())
            nodes = shifted_mean([float(x["nodes"]) for x in of_way.values()], 1.0)
            out.append(
                f"| {way} | {len(of_way)} | {proved} | {means[0]:.2f} | {means[1]:.2f} | {processor:.2f} | {nodes:.0f} | "
                + (f"{ratios[0]:.1f} times ({ratios[1]:.1f} by processor) |" if both else "|")
            )
        out.append("")
    return out


def profile(found: dict[tuple[int, str, str], dict[str, Any]], solver: str, plot: Path | None) -> str:
    """Share of the tables that each way proved within a factor of the faster way's time, as CSV; with ``plot`` a picture."""
    own = {case.index for case in PROOFS}
    indices = sorted(
        i for i, w, s in found if i in own and (w, s) == ("paper", solver) and (i, "default", solver) in found
    )
    if not indices:
        return "Nothing was measured both ways."
    times = {way: np.array([seconds_of(found[i, way, solver], "seconds") for i in indices]) for way in WAYS}
    proved = {way: np.array([found[i, way, solver]["status"] == "optimal" for i in indices]) for way in WAYS}
    least = np.minimum(*times.values())
    factors = np.geomspace(1.0, max(float((t / least).max()) for t in times.values()) * 1.01, 60)
    shares = {w: np.array([np.mean(proved[w] & (times[w] <= f * least)) for f in factors]) for w in WAYS}
    if plot is not None:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
        for way, share in shares.items():
            axes.step(factors, share, where="post", label=way)
        axes.set(
            xscale="log",
            ylim=(0, 1.02),
            xlabel="time over that of the faster way",
            ylabel="share of tables proved",
        )
        axes.legend(loc="lower right")
        figure.savefig(plot)
    rows = [",".join(f"{v:.4g}" for v in row) for row in zip(factors, *shares.values(), strict=True)]
    return "\n".join(["factor," + ",".join(WAYS), *rows])


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
    one.add_argument("--index", action="append", type=int, choices=range(2 * len(PROOFS)), help="(all)")
    one.add_argument("--further", action="store_true", help="other tables, by which nothing was chosen")
    one.add_argument("--limit", type=float, default=120.0)
    one = commands.add_parser("ablation", help="the default without one part, where it is not there yet")
    one.add_argument("--out", type=Path, required=True, help="JSON lines, appended")
    one.add_argument("--solver", default="highs")
    one.add_argument("--limit", type=float, default=60.0)
    one = commands.add_parser("report", help="means, ratios and agreement in Markdown")
    one.add_argument("results", type=Path)
    one = commands.add_parser("profile", help="performance profile of the two ways as CSV")
    one.add_argument("results", type=Path)
    one.add_argument("--solver", default="highs")
    one.add_argument("--plot", type=Path, help="and as a picture")
    asked = parser.parse_args()
    if asked.command == "report":
        print(report(read(asked.results)))
    elif asked.command == "profile":
        print(profile(read(asked.results), asked.solver, asked.plot))
    elif asked.command == "ablation":
        run(asked.out, [(PROOFS[i], way, asked.solver, asked.limit) for way in WITHOUT for i in ABLATED])
    else:
        solvers, ways = asked.solver or ["highs", "scip"], asked.way or list(WAYS)
        cases = FURTHER_PROOFS if asked.further else PROOFS
        chosen = [Proof(index) for index in asked.index] if asked.index else cases
        run(asked.out, [(c, way, s, asked.limit) for s in solvers for way in ways for c in chosen])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
