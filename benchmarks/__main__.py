"""``python -m benchmarks run | report | compare``: how long building, writing, handing off, embedding, checking take.

    python -m benchmarks run --out results.jsonl               all cases, a process for each phase
    python -m benchmarks run --quick --out results.jsonl       all cases, small, once, in one process
    python -m benchmarks run --case octsvm --case 'octsvm-n*' --phase build --out results.jsonl
    python -m benchmarks report results.jsonl
    python -m benchmarks compare before.jsonl after.jsonl

Other packages are measured in a Python that has them: --peers-python PATH, or --install-peers, which makes one.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import platform
import subprocess
import sys
import tempfile
import venv
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .cases import CASES, PHASES, SEED
from .report import compare, report

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("pyoptree", "odtlearn[cbc]")


@cache
def versions() -> dict[str, str]:
    names = ("octsvm", "pyomo", "numpy", "scipy", "highspy")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def chosen(cases: list[str] | None, phases: list[str] | None) -> list[tuple[str, str]]:
    """Pairs of case and phase; names may be patterns."""
    pairs = []
    for name, case in CASES.items():
        if cases and not any(fnmatch.fnmatch(name, pattern) for pattern in cases):
            continue
        pairs += [(name, phase) for phase in case.phases if not phases or phase in phases]
    return pairs


def worker(task: dict[str, Any]) -> None:
    """In a process of its own: measure, and print a JSON line for each pair."""
    from .phases import PEERS, measure, peer

    for name, phase in task["pairs"]:
        case = CASES[name].small() if task["quick"] else CASES[name]
        if phase in PEERS:
            found = peer(phase, case, task["peers_python"], task["repeat"])
        else:
            found = measure(case, phase, task["repeat"], task["seconds"])
        line = {
            "case": name,
            "group": case.group,
            "phase": phase,
            "formulation": case.formulation,
            "params": case.params,
            "n": case.n,
            "p": case.p,
            "seed": SEED,
            "quick": task["quick"],
            **found,
            "load": round(os.getloadavg()[0] / (os.cpu_count() or 1), 2)
            if hasattr(os, "getloadavg")
            else None,
            "versions": versions(),
        }
        print(json.dumps(line), flush=True)


def run(arguments: argparse.Namespace) -> int:
    """Measure the chosen pairs, one process each (all in one with --quick), and append the lines to --out."""
    pairs = chosen(arguments.case, arguments.phase)
    if not pairs:
        print(
            f"No such case or phase. Cases: {', '.join(CASES)}. Phases: {', '.join(PHASES)}.", file=sys.stderr
        )
        return 2
    with tempfile.TemporaryDirectory() as folder:
        python = arguments.peers_python
        if arguments.install_peers:
            python = install_peers(Path(folder))
        task = {
            "quick": arguments.quick,
            "repeat": 1 if arguments.quick else max(2, arguments.repeat),
            "seconds": arguments.seconds,
            "peers_python": python,
        }
        failed = 0
        for batch in [pairs] if arguments.quick else [[pair] for pair in pairs]:
            with subprocess.Popen(
                [sys.executable, "-m", "benchmarks", "worker", json.dumps({**task, "pairs": batch})],
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            ) as process:
                assert process.stdout is not None
                for text in process.stdout:
                    if not text.startswith("{"):
                        continue
                    with arguments.out.open("a", encoding="utf-8") as out:
                        out.write(text)
                    line = json.loads(text)
                    took = line.get("error") or f"{line['seconds']:.3f} s"
                    print(f"{line['case']:28} {line['phase']:10} {took}", file=sys.stderr, flush=True)
            failed += process.returncode != 0
    if failed:
        print(f"{failed} of the processes failed; what they say stands above.", file=sys.stderr)
    return 1 if failed else 0


def install_peers(folder: Path) -> str | None:
    """A Python with the other packages, as far as they install; None where none does."""
    venv.create(folder / "peers", with_pip=True)
    python = folder / "peers" / ("Scripts" if os.name == "nt" else "bin") / "python"
    for package in PACKAGES:
        done = subprocess.run(
            [str(python), "-m", "pip", "install", "-q", package], capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"{package} does not install: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    return str(python)


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of results."""
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines() if text]


def main() -> int:
    """The command line."""
    if sys.argv[1:2] == ["worker"]:
        worker(json.loads(sys.argv[2]))
        return 0
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="measure")
    one.add_argument("--case", action="append", help="name or pattern; may be given again")
    one.add_argument("--phase", action="append", choices=PHASES)
    one.add_argument("--quick", action="store_true", help="small tables, one run each")
    one.add_argument("--repeat", type=int, default=5, help="runs of each phase (5)")
    one.add_argument("--seconds", type=float, default=30.0, help="no further run past this time (30)")
    one.add_argument("--peers-python", help="a Python that has pyoptree and odtlearn[cbc]")
    one.add_argument("--install-peers", action="store_true", help="make one with pip for this run")
    one.add_argument("--out", type=Path, required=True, help="JSON lines, appended")
    one = commands.add_parser("report", help="tables in Markdown")
    one.add_argument("results", type=Path)
    one = commands.add_parser("compare", help="ratios of two runs")
    one.add_argument("before", type=Path)
    one.add_argument("after", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "run":
        arguments.out = arguments.out.resolve()
        return run(arguments)
    if arguments.command == "report":
        print(report(read(arguments.results)))
    else:
        print(compare(read(arguments.before), read(arguments.after)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
