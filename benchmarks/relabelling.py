"""How many wrong labels are found: `python benchmarks/relabelling.py --data DIR --limit 10`.

DIR holds one CSV a data set, label last. In a quarter of each set (stratified, seed 0) 20 % of the labels are flipped
(seed 0); each model is fitted to the flipped labels, and its relabelling report is compared with the flips. Prints a
Markdown table; --out collects JSON lines, and cells that are in it already are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from real_data import SETS, quarter

import octsvm

SHARE = 0.2
MODELS: dict[str, Any] = {
    "OCTSVMClassifier": {"max_depth": 1},
    "RESVMClassifier": {},
}


def run(folder: Path, name: str, model: str, limit: float) -> dict[str, Any]:
    """One cell: flip, fit, compare."""
    X, y, _, _ = quarter(folder, name)
    noisy = octsvm.flip_labels(y, SHARE, seed=0)
    flipped = noisy != y.to_numpy()
    began = time.monotonic()
    fitted = getattr(octsvm, model)(time_limit=limit, **MODELS[model]).fit(X, noisy)
    seconds = time.monotonic() - began
    report = fitted.relabelled_
    every = octsvm.relabelling_scores(report, flipped)
    final = octsvm.relabelling_scores(report[report["predicted"] == report["believed"]], flipped)
    return {
        "set": name,
        "model": model,
        "n": len(y),
        "p": X.shape[1],
        "limit": limit,
        "flipped": every.flipped,
        "relabelled": every.relabelled,
        "precision": every.precision,
        "recall": every.recall,
        "final": final.relabelled,
        "final_precision": final.precision,
        "final_recall": final.recall,
        "right_labels": float(np.mean(fitted.predict(X) == y)),
        "splits": int(fitted.tree_.splits.sum()),
        "gap": fitted.gap_,
        "status": fitted.result_.status,
        "seconds": seconds,
        "versions": dict(fitted.result_.versions),
    }


def share(value: float) -> str:
    """A percentage, or a dash where there is none."""
    return "–" if value != value else f"{value:.0%}"


def table(lines: list[dict[str, Any]]) -> str:
    """The cells as a Markdown table."""
    out = [
        "| set | n × p | flipped | model | splits | given up | precision | recall | in the end | precision | recall |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for c in lines:
        out.append(
            f"| {c['set']} | {c['n']} × {c['p']} | {c['flipped']} | {c['model'].removesuffix('Classifier')} "
            f"| {c['splits']} | {c['relabelled']} | {share(c['precision'])} | {share(c['recall'])} "
            f"| {c['final']} | {share(c['final_precision'])} | {share(c['final_recall'])} |"
        )
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=10)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    done: list[dict[str, Any]] = []
    if arguments.out and arguments.out.exists():
        done = [json.loads(line) for line in arguments.out.read_text(encoding="utf-8").splitlines()]
    for name in SETS:
        for model in MODELS:
            if any(c["set"] == name and c["model"] == model for c in done):
                continue
            cell = run(arguments.data, name, model, arguments.limit)
            done.append(cell)
            if arguments.out:
                with arguments.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(cell) + "\n")
    print(table(done))


if __name__ == "__main__":
    main()
