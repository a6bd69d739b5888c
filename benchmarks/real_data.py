"""A checked tree on real data within a limit: `python benchmarks/real_data.py --data DIR --limit 30`.

DIR holds one CSV a data set, label last. A quarter of each set (stratified, seed 0) trains. Prints a Markdown table;
--out collects JSON lines, and cells that are in it already are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

import octsvm

SETS = ("australian", "breastcancer", "heart", "ionosphere", "monks", "parkinson", "sonar", "wholesale")
MODELS: dict[str, dict[str, Any]] = {
    "octsvm": {"depth": 1},
    "oct": {"depth": 2, "n_min": 0.05},
    "oct_h": {"depth": 2, "n_min": 0.05},
    "re_svm": {},
}


def quarter(folder: Path, name: str) -> tuple[pd.DataFrame, pd.Series, pd.DataFrame, pd.Series]:
    """A quarter of the rows to train, the rest to test."""
    frame = pd.read_csv(folder / f"{name}.csv")
    X, y = frame.drop(columns="label"), frame["label"]
    a, b, c, d = train_test_split(X, y, train_size=0.25, stratify=y, random_state=0)
    return a, c, b, d


def run(folder: Path, name: str, formulation: str, limit: float) -> dict[str, Any]:
    """One cell: fit, and check again what the result says."""
    X, y, X_test, y_test = quarter(folder, name)
    params = MODELS[formulation]
    began = time.monotonic()
    result = octsvm.fit(formulation, X, y, time_limit=limit, on_mismatch="ignore", **params)
    seconds = time.monotonic() - began
    again = octsvm.evaluate(
        formulation, result.tree, X, y, **{k: v for k, v in params.items() if k != "depth"}
    )
    return {
        "set": name,
        "formulation": formulation,
        "n": len(y),
        "p": X.shape[1],
        "limit": limit,
        "status": result.status,
        "stop": result.stop,
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "seconds": seconds,
        "rounds": result.rounds,
        "nodes": result.nodes,
        "train": float(np.mean(result.tree.predict(X) == y)),
        "test": float(np.mean(result.tree.predict(X_test) == y_test)),
        "recomputed": again.objective,
        "differing_rows": len(result.differing_rows),
        "versions": dict(result.versions),
    }


def table(lines: list[dict[str, Any]]) -> str:
    """The cells as a Markdown table."""
    out = [
        "| set | n × p | model | status | objective | bound | gap | seconds | train | test |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for c in lines:
        out.append(
            f"| {c['set']} | {c['n']} × {c['p']} | {c['formulation']} | {c['status']} | {c['objective']:.4g} | "
            f"{c['bound']:.4g} | {c['gap']:.1%} | {c['seconds']:.1f} | {c['train']:.1%} | {c['test']:.1%} |"
        )
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=30)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    done: list[dict[str, Any]] = []
    if arguments.out and arguments.out.exists():
        done = [json.loads(line) for line in arguments.out.read_text(encoding="utf-8").splitlines()]
    for name in SETS:
        for formulation in MODELS:
            if any(c["set"] == name and c["formulation"] == formulation for c in done):
                continue
            cell = run(arguments.data, name, formulation, arguments.limit)
            done.append(cell)
            if arguments.out:
                with arguments.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(cell) + "\n")
    print(table(done))


if __name__ == "__main__":
    main()
