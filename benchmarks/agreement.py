"""Every model against brute force: `python benchmarks/agreement.py --count 200`.

For each tiny instance of tests/instances.py the optimum is enumerated by tests/oracles.py, which shares no code with
the models. Each variant solved on HiGHS must be proved optimal, cost what the enumeration says (1e-4 relative),
never less, and its bound must not lie above it. One JSON line an instance and variant goes to --out.
"""

from __future__ import annotations

import argparse
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

REACHED = 1e-4  # relative: the default gap
NOT_BELOW = 2e-6  # relative: what a feasibility tolerance of 1e-6 may leave
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "oct": [{}, {"variant": "rank"}, {"variant": "bd"}],
    "oct_h": [{}],
    "re_svm": [{}, {"variant": "paper"}],
    "octsvm": [{}, {"variant": "paper"}],  # with mu_svm, which every instance gives
    "moctsvm": [{}, {"variant": "levels"}],
}


def check(instance: Any, variant: dict[str, Any], optimum: float, time_limit: float = 120) -> dict[str, Any]:
    """Solve one variant of an instance and compare; ``faults`` is empty where all holds."""
    result = octsvm.fit(
        instance.formulation,
        instance.X,
        instance.y,
        scale=instance.formulation == "oct",
        time_limit=time_limit,
        on_mismatch="ignore",
        **instance.params,
        **variant,
    )
    size = max(abs(optimum), 1e-3)
    faults = []
    if result.status != "optimal":
        faults.append(f"status {result.status}, stop {result.stop}")
    if abs(result.objective - optimum) > REACHED * size:
        faults.append("not the optimum")
    if result.objective < optimum - NOT_BELOW * size:
        faults.append("below the optimum")
    if result.bound > optimum + NOT_BELOW * size:
        faults.append("bound above the optimum")
    if result.differing_rows:
        faults.append("routing differs")
    recomputed = octsvm.evaluate(
        instance.formulation,
        result.tree,
        instance.X,
        instance.y,
        **{k: v for k, v in (instance.params | variant).items() if k != "depth"},
    )
    if abs(recomputed.objective - result.objective) > 1e-9 * max(1.0, size):
        faults.append("evaluate differs from the result")
    return {
        "instance": instance.name,
        "formulation": instance.formulation,
        "variant": variant.get("variant", "default"),
        "params": instance.params,
        "optimum": optimum,
        "objective": result.objective,
        "bound": result.bound,
        "status": result.status,
        "seconds": round(result.seconds, 3),
        "rounds": result.rounds,
        "nodes": result.nodes,
        "faults": faults,
    }


def run(formulation: str, count: int, seed: int, first: int = 0) -> Iterator[dict[str, Any]]:
    """Check ``count`` instances of a formulation, all variants."""
    for instance in instances.tiny(formulation, first + count, seed)[first:]:
        optimum = oracles.optimum(formulation, instance.X, instance.y, instance.params)
        for variant in VARIANTS[formulation]:
            try:
                yield check(instance, variant, optimum)
            except octsvm.InvalidData as error:
                # "bd" refuses values closer than its rows can tell apart; nothing else may be refused.
                if variant.get("variant") != "bd" or "apart after scaling" not in str(error):
                    raise
                yield {"instance": instance.name, "variant": "bd", "refused": str(error), "faults": []}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200, help="instances a formulation")
    parser.add_argument("--first", type=int, default=0, help="skip so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--formulation", action="append", choices=instances.FORMULATIONS)
    parser.add_argument("--out", type=Path, help="JSON lines")
    arguments = parser.parse_args()
    bad = 0
    for formulation in arguments.formulation or instances.FORMULATIONS:
        began, seconds, faulty, refused, solved = time.monotonic(), [], 0, 0, 0
        for line in run(formulation, arguments.count, arguments.seed, arguments.first):
            if arguments.out:
                with arguments.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(line, default=float) + "\n")
            if "refused" in line:
                refused += 1
                continue
            solved += 1
            seconds.append(line["seconds"])
            if line["faults"]:
                faulty += 1
                print(f"  {line['instance']} {line['variant']}: {line['faults']} {line}", flush=True)
        print(
            f"{formulation}: {solved} solves of {arguments.count} instances, {faulty} faulty, {refused} refused (bd); median "
            f"{np.median(seconds):.2f} s, largest {max(seconds):.1f} s, all in {time.monotonic() - began:.0f} s",
            flush=True,
        )
        bad += faulty
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
