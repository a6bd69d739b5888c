"""What more time buys: trees of the experiment's grid, taken up by the engine for a few seconds each.

    python benchmarks/refine.py run --data DIR --out results.jsonl
    python benchmarks/refine.py report results.jsonl

For every set and share of wrong labels of the experiment one training fold is drawn, its whole OCTSVM grid fitted as the
experiment does, and of the settings where a split pays 16 are drawn: 512 cells. Each goes to the engine with its tree
as the start (strategy="heuristic": neighbourhoods of the tree, solved by HiGHS as models) for --limit seconds. Lines that are in
--out already are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import octsvm
from octsvm import datasets
from octsvm.experiments import Part, load_protocol, part_data

EACH = 16  # settings of a part
SEED = 0


def parts(protocol: Any) -> list[Part]:
    """One full part for every set and share of wrong labels."""
    rng = np.random.default_rng(SEED)
    return [
        Part(name, noise, 0, int(rng.integers(protocol.folds)), False)
        for name in protocol.sets
        for noise in protocol.noise
    ]


def run(folder: Path, out: Path, limit: float, each: int, sets: list[str] | None) -> None:
    """Append a line for every cell that is not there yet."""
    protocol = load_protocol("table2")
    spec = protocol.methods["octsvm"]
    settings = spec.settings()
    known = {(line["part"], line["setting"]) for line in read(out)}
    for number, part in enumerate(parts(protocol)):
        if sets and part.set not in sets:
            continue
        rng = np.random.default_rng([SEED, number])
        order = rng.permutation(len(settings)).tolist()
        if sum(k == part.key for k, _ in known) >= each:
            continue
        data = part_data(protocol, part, datasets.load(part.set, data_dir=folder))
        found = dict(
            octsvm.fit_path(
                "octsvm",
                data.X,
                data.y,
                settings,
                work_limit=spec.work,
                seed=part.seed(protocol.seed),
                **spec.fixed,
            )
        )
        chosen = [k for k in order if found[k].counts.get("splits", 0)][:each]
        for k in chosen:
            if (part.key, k) in known:
                continue
            before = found[k]
            began = time.monotonic()
            after = octsvm.fit(
                "octsvm",
                data.X,
                data.y,
                start=before.tree,
                strategy="heuristic",
                time_limit=limit,
                on_mismatch="ignore",
                **spec.fixed,
                **settings[k],
            )
            line = {
                "part": part.key,
                "set": part.set,
                "noise": part.noise,
                "setting": k,
                "params": settings[k],
                "limit": limit,
                "before": before.objective,
                "after": after.objective,
                "right_before": int((before.tree.predict(data.X_score) == data.y_score).sum()),
                "right_after": int((after.tree.predict(data.X_score) == data.y_score).sum()),
                "n_score": len(data.y_score),
                "seconds": round(time.monotonic() - began, 2),
                "stop": after.stop,
                "versions": dict(after.versions),
            }
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of results; none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines() if text]


def report(lines: list[dict[str, Any]]) -> str:
    """By share of wrong labels: how many cells the engine made better, by how much, and test accuracy before and after."""
    rows = [
        "| wrong labels | cells | better | geometric mean after/before | of those better | accuracy before | after |",
        "|---|---|---|---|---|---|---|",
    ]
    groups = [
        (f"{noise:.0%}", [x for x in lines if x["noise"] == noise])
        for noise in sorted({x["noise"] for x in lines})
    ]
    for name, found in [*groups, ("all", lines)]:
        ratio = np.array([max(x["after"], 1e-9) / max(x["before"], 1e-9) for x in found])
        better = ratio < 1 - 1e-6
        right = [np.mean([x[key] / x["n_score"] for x in found]) for key in ("right_before", "right_after")]
        of_better = f"{np.exp(np.log(ratio[better]).mean()):.3f}" if better.any() else ""
        rows.append(
            f"| {name} | {len(found)} | {int(better.sum())} | {np.exp(np.log(ratio).mean()):.4f} | {of_better} | "
            f"{right[0]:.2%} | {right[1]:.2%} |"
        )
    return "\n".join(rows)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="measure the cells that are not there yet")
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True, help="JSON lines, appended")
    one.add_argument("--limit", type=float, default=2.5, help="seconds of the engine for each cell (2.5)")
    one.add_argument("--each", type=int, default=EACH, help="cells of a part (16)")
    one.add_argument("--set", action="append")
    one = commands.add_parser("report", help="a table in Markdown")
    one.add_argument("results", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "report":
        print(report(read(arguments.results)))
        return 0
    if not arguments.data.is_dir():
        print(f"SKIPPED: there is no folder {arguments.data}; nothing was measured.")
        return 0
    run(arguments.data, arguments.out, arguments.limit, arguments.each, arguments.set)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
