"""Which tables are proved optimal within half a minute: the facts behind the advice of ``octsvm size``.

    python benchmarks/provable.py            # some ten minutes; one JSON line a case
    python benchmarks/provable.py --quick    # the smallest cases only

The tables have 5 features, uniform in [0, 1], two classes by a hyperplane, and one wrong label in ten. For each
formulation and depth the number of rows doubles until a solve takes longer. Time is processor time (the solver has
one thread), so that a busy machine gives the same answer.
"""

from __future__ import annotations

import argparse
import json
import os
import time

import numpy as np

import octsvm

P, WRONG, SECONDS = 5, 0.1, 30.0
ROWS = (10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120)
CASES = {
    ("oct", ""): (1, 2, 3),
    ("oct_h", ""): (1, 2),
    ("re_svm", "l2"): (0,),
    ("re_svm", "l1"): (0,),
    ("octsvm", "l2"): (0, 1, 2),
    ("octsvm", "l1"): (0, 1, 2),
    ("moctsvm", "l2"): (1, 2),
    ("moctsvm", "l1"): (1, 2),
}


def table(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """``X (n, P)`` and labels, WRONG of which are flipped."""
    rng = np.random.default_rng([seed, n])
    X = rng.random((n, P))
    y = np.where(X @ np.arange(1, P + 1) > P * (P + 1) / 4, 1, 0)
    return X, octsvm.flip_labels(y, WRONG, seed)


def run(quick: bool, only: str | None) -> None:
    """Print one JSON line a case."""
    for (name, norm), depths in CASES.items():
        if only not in (None, name):
            continue
        for depth in depths:
            for n in ROWS[:1] if quick else ROWS:
                X, y = table(n)
                params: dict[str, object] = {} if name == "re_svm" else {"depth": depth}
                if norm:
                    params["norm"] = norm
                began = time.process_time()
                result = octsvm.fit(
                    name,
                    X,
                    y,
                    time_limit=10 * SECONDS,
                    callback=lambda _, began=began: time.process_time() - began > SECONDS,
                    **params,
                )
                record = {
                    "formulation": name,
                    "norm": norm,
                    "depth": depth,
                    "n": n,
                    "p": P,
                    "status": result.status,
                    "seconds": round(time.process_time() - began, 2),
                    "gap": round(result.gap, 4),
                    "splits": result.counts.get("splits"),
                    "cpus": os.cpu_count(),
                    "versions": result.versions,
                }
                print(json.dumps(record), flush=True)
                if result.status != "optimal":
                    break


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest cases only")
    parser.add_argument("--only", choices=sorted({name for name, _ in CASES}), help="one formulation")
    given = parser.parse_args()
    run(given.quick, given.only)
