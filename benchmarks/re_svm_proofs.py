"""What is proved of RE-SVM: quarters of the eight data sets for three pairs of costs, and made tables.

    python benchmarks/re_svm_proofs.py run --data DIR --out results.jsonl --limit 120
    python benchmarks/re_svm_proofs.py run --data DIR --out results.jsonl --limit 120 --who highs --solver highs
    python benchmarks/re_svm_proofs.py run --data DIR --out results.jsonl --who before --package CHECKOUT
    python benchmarks/re_svm_proofs.py report results.jsonl

DIR holds one CSV a data set, label last; without --data only the made tables are run. A run is a plain octsvm.fit, by the
solver that is named or the default, of the package in another checkout where --package names one: that is how an earlier
version is measured. Cells that are in --out already are not run again, so a run may be stopped and taken up. Every
run is a process of its own; its processor seconds are there too, as a busy machine gives a limit in wall clock less of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SETS = ("australian", "breastcancer", "heart", "ionosphere", "monks", "parkinson", "sonar", "wholesale")
COSTS = ((1.0, 1.0), (10.0, 5.0), (1.0, 10.0))
MADE = ((60, 3), (30, 10), (60, 10), (100, 5))  # rows and features, c = (1, 1), one label in ten wrong
AGREE = 2e-4  # relative: two gaps


class Cell(NamedTuple):
    """A table by name, "60x3" for a made one, and costs."""

    table: str
    c1: float
    c2: float


def cells(with_sets: bool) -> Iterator[Cell]:
    """All cells, those of the data sets first."""
    if with_sets:
        for c1, c2 in COSTS:
            yield from (Cell(name, c1, c2) for name in SETS)
    yield from (Cell(f"{n}x{p}", 1.0, 1.0) for n, p in MADE)


def table(cell: Cell, data: Path | None) -> tuple[Any, Any]:
    """Training rows and labels."""
    from benchmarks.cases import Case
    from benchmarks.incumbents import quarter

    if cell.table in SETS:
        assert data is not None
        return quarter(data, cell.table, 0)
    n, p = map(int, cell.table.split("x"))
    return Case("made", "", "re_svm", n, p).table()


def measure(cell: Cell, data: Path | None, who: str, solver: str, limit: float) -> dict[str, Any]:
    """One line of results, by the package that is imported."""
    import octsvm

    X, y = table(cell, data)
    how: dict[str, Any] = {"solver": solver} if solver else {}
    octsvm.fit("re_svm", [[0.0], [0.1], [0.9], [1.0]], [0, 1, 0, 1], time_limit=5, **how)  # imports
    began, before = time.monotonic(), time.process_time()
    result = octsvm.fit("re_svm", X, y, c1=cell.c1, c2=cell.c2, time_limit=limit, on_mismatch="ignore", **how)
    return {
        **cell._asdict(),
        "who": who,
        "solver": result.solver,
        "limit": limit,
        "n": result.n,
        "p": result.p,
        "seconds": round(time.monotonic() - began, 3),
        "cpu": round(time.process_time() - before, 3),
        "status": result.status,
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "nodes": result.nodes,
        "version": result.solver_version,
    }


def apart(cell: Cell, asked: argparse.Namespace) -> dict[str, Any]:
    """:func:`measure` in a process of its own, on the package that was asked for."""
    arguments = json.dumps(
        [cell, str(asked.data) if asked.data else None, asked.who, asked.solver, asked.limit]
    )
    done = subprocess.run(
        [sys.executable, __file__, "one", str(asked.package), arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{cell}: {done.stderr}")
    line: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return line


def one(package: str, arguments: str) -> None:
    """What the process of one cell does: print its line."""
    sys.path[:0] = [package, str(ROOT)]
    import octsvm

    assert octsvm.__file__ is not None
    if not Path(octsvm.__file__).resolve().is_relative_to(Path(package).resolve()):
        raise SystemExit(f"octsvm was imported from {octsvm.__file__}, and not from {package}")
    cell, data, who, solver, limit = json.loads(arguments)
    print(json.dumps(measure(Cell(*cell), Path(data) if data else None, who, solver, limit)))


Found = dict[tuple[str, Cell], dict[str, Any]]


def read(path: Path) -> Found:
    """The last line of every run."""
    if not path.exists():
        return {}
    lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines() if text]
    return {(line["who"], Cell(line["table"], line["c1"], line["c2"])): line for line in lines}


def run(asked: argparse.Namespace) -> None:
    """Measure what is not there yet."""
    found = read(asked.out)
    for cell in cells(asked.data is not None):
        if (asked.who, cell) in found or (asked.table and cell.table not in asked.table):
            continue
        line = apart(cell, asked)
        with asked.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(
            f"{asked.who:8} {cell.table:13} ({cell.c1:g}, {cell.c2:g})  {line['status']:9} {line['objective']:.6g} "
            f">= {line['bound']:.6g}  {line['seconds']:.1f} s ({line['cpu']:.1f} s of a processor), {line['nodes']} nodes",
            flush=True,
        )


def disagreements(found: Found) -> list[str]:
    """Bounds above an objective that another run found for the same cell."""
    out = []
    for cell in sorted({cell for _, cell in found}):
        lines = {who: line for (who, at), line in found.items() if at == cell}
        best = min(line["objective"] for line in lines.values())
        out += [
            f"{cell.table} ({cell.c1:g}, {cell.c2:g}): {who} has the bound {line['bound']:.8g}, and {best:.8g} was found"
            for who, line in lines.items()
            if line["bound"] > best + AGREE * abs(best)
        ]
    return out


def report(found: Found) -> str:
    """A row a cell, then what was proved by whom, and whether all answers agree."""
    order = list(cells(True))
    whos = list(dict.fromkeys(who for who, _ in found))
    out = ["| table | (c1, c2) | by | objective | bound | gap | seconds | of a processor | nodes |"]
    out.append("|---|---|---|---|---|---|---|---|---|")
    for who, cell in sorted(found, key=lambda key: (order.index(key[1]), whos.index(key[0]))):
        line = found[who, cell]
        gap = "proved" if line["status"] == "optimal" else f"{line['gap']:.1%}"
        out.append(
            f"| {cell.table} ({line['n']} × {line['p']}) | ({cell.c1:g}, {cell.c2:g}) | {who} | {line['objective']:.6g} | "
            f"{line['bound']:.6g} | {gap} | {line['seconds']:.1f} | {line['cpu']:.1f} | {line['nodes']} |"
        )
    out += ["", "| by | cells | proved | mean gap |", "|---|---|---|---|"]
    for who in whos:
        lines = [line for (by, _), line in found.items() if by == who]
        proved = sum(line["status"] == "optimal" for line in lines)
        mean = sum(0.0 if line["status"] == "optimal" else line["gap"] for line in lines) / len(lines)
        out.append(f"| {who} | {len(lines)} | {proved} | {mean:.1%} |")
    return "\n".join([*out, "", *(disagreements(found) or ["No bound lies above an objective."])])


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    part = commands.add_parser("run", help="measure what is not there yet")
    part.add_argument("--out", type=Path, required=True, help="JSON lines, appended")
    part.add_argument("--data", type=Path, help="folder of the data sets")
    part.add_argument("--table", action="append", help="only this one; may be repeated")
    part.add_argument("--who", default="ours", help="what the run is called (ours)")
    part.add_argument("--solver", default="", help="(the package's default)")
    part.add_argument(
        "--package", type=Path, default=ROOT, help="the checkout whose octsvm is run (this one)"
    )
    part.add_argument("--limit", type=float, default=120.0, help="seconds of a run")
    part = commands.add_parser("report", help="tables in Markdown, and whether all answers agree")
    part.add_argument("results", type=Path)
    part = commands.add_parser("one", help="what the process of one cell is called with")
    part.add_argument("package")
    part.add_argument("arguments")
    asked = parser.parse_args()
    if asked.command == "run":
        run(asked)
    elif asked.command == "report":
        print(report(read(asked.results)))
    else:
        one(asked.package, asked.arguments)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
