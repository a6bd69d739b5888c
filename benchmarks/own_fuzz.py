"""The fuzz of models with a user's own rows, terms, variables and fixings, as long as wanted.

    python benchmarks/own_fuzz.py run --instances 20000 --seed 0 --out own_fuzz.jsonl
    python benchmarks/own_fuzz.py report own_fuzz.jsonl

The instances are those of tests/own_fuzz.py, one a seed; each is solved twice and compared with all trees that are known of it.
What is in --out already is not run again, so a run may be stopped and taken up. The exit code is 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def run(instances: int, seed: int, out: Path, engines: list[str]) -> int:
    """Run the instances from ``seed`` on that are not in ``out``, a line each; how many have anything wrong."""
    import own_fuzz

    done = {json.loads(line)["seed"] for line in out.read_text().splitlines()} if out.exists() else set()
    wrong = 0
    with out.open("a", encoding="utf-8") as lines:
        for one in range(seed, seed + instances):
            if one in done:
                continue
            found = own_fuzz.examine(one, engines)
            wrong += bool(found.failures)
            for text in found.failures:
                print(text, file=sys.stderr, flush=True)
            lines.write(json.dumps(as_line(found)) + "\n")
            lines.flush()
    return wrong


def as_line(found: Any) -> dict[str, Any]:
    """What is kept of an instance."""
    instance = found.instance
    return {
        "seed": instance.seed,
        "formulation": instance.name,
        "engine": instance.engine,
        "additions": instance.additions,
        "refused": found.refused,
        "verdicts": [f"{r.status}, {r.stop}" for r in found.results],
        "engines": [r.solver for r in found.results],
        "seconds": [round(r.seconds, 3) for r in found.results],
        "failures": found.failures,
    }


def report(path: Path) -> str:
    """The figures of a run, as Markdown."""
    lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    verdicts = Counter(v for line in lines for v in line["verdicts"])
    engines = Counter(e for line in lines for e in line["engines"])
    longest = max((s for line in lines for s in line["seconds"]), default=0.0)
    rows = [f"| {verdict} | {count} |" for verdict, count in verdicts.most_common()]
    return "\n".join(
        [
            f"{len(lines)} instances, {sum(engines.values())} solves ("
            + ", ".join(f"{name} {count}" for name, count in engines.most_common())
            + f"), {sum(bool(line['refused']) for line in lines)} refused by name, "
            f"{sum(bool(line['failures']) for line in lines)} with anything wrong; the longest solve took {longest:.1f} s.",
            "",
            "| status, stop | solves |",
            "|---|---|",
            *rows,
        ]
    )


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="run instances")
    one.add_argument("--instances", type=int, default=1000)
    one.add_argument("--seed", type=int, default=0, help="the first one")
    one.add_argument(
        "--engine", action="append", help="may be given again; all that are installed by default"
    )
    one.add_argument("--out", type=Path, required=True, help="JSON lines, appended")
    one = commands.add_parser("report", help="figures in Markdown")
    one.add_argument("results", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "report":
        print(report(arguments.results))
        return 0
    import own_fuzz

    from octsvm import solvers

    installed = [name for name in own_fuzz.ENGINES if solvers.installed(name) is not None]
    engines = arguments.engine or installed
    return int(run(arguments.instances, arguments.seed, arguments.out, engines) > 0)


if __name__ == "__main__":
    raise SystemExit(main())
