"""Every model against brute force.

For each tiny instance of tests/instances.py the optimum is enumerated by tests/oracles.py, which shares no code with
the models. Each variant solved on HiGHS must be proved optimal, cost what the enumeration says (1e-4 relative),
never less, and its bound must not lie above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

import octsvm

from ..study import Line, Study, kept
from ..tables import table
from . import of_tests

REACHED = 1e-4  # relative: the default gap
NOT_BELOW = 2e-6  # relative: what a feasibility tolerance of 1e-6 may leave
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "oct": [{}, {"variant": "rank"}, {"variant": "bd"}],
    "oct_h": [{}],
    "re_svm": [{}, {"variant": "paper"}],
    "octsvm": [{}, {"variant": "paper"}],  # with mu_svm, which every instance gives
    "moctsvm": [{}, {"variant": "levels"}],
}


def wrong_claims(result: octsvm.Result, optimum: float) -> list[str]:
    """What a result says that brute force contradicts."""
    size = max(abs(optimum), 1e-3)
    claims = {
        "says optimal and is not": result.status == "optimal"
        and abs(result.objective - optimum) > REACHED * size,
        "below the optimum": result.objective < optimum - NOT_BELOW * size,
        "bound above the optimum": result.bound > optimum + NOT_BELOW * size,
    }
    return [claim for claim, wrong in claims.items() if wrong]


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
    faults = wrong_claims(result, optimum)
    if result.status != "optimal":
        faults.append(f"status {result.status}, stop {result.stop}")
    if result.differing_rows:
        faults.append("routing differs")
    recomputed = octsvm.evaluate(
        instance.formulation,
        result.tree,
        instance.X,
        instance.y,
        **{k: v for k, v in (instance.params | variant).items() if k != "depth"},
    )
    if abs(recomputed.objective - result.objective) > 1e-9 * max(1.0, abs(optimum)):
        faults.append("evaluate differs from the result")
    return {
        "instance": instance.name,
        "params": instance.params,
        "optimum": optimum,
        **kept(result, "objective", "bound", "status"),
        "seconds": round(result.seconds, 3),
        "rounds": result.rounds,
        "nodes": result.nodes,
        "faults": faults,
    }


@lru_cache(maxsize=8)
def tiny(formulation: str, count: int, seed: int) -> Any:
    """The instances of a formulation."""
    return of_tests("instances").tiny(formulation, count, seed)


@lru_cache(maxsize=64)
def optimum(
    formulation: str, count: int, seed: int, index: int, changes: tuple[tuple[str, Any], ...] = ()
) -> float:
    """What brute force says of an instance, with some parameters changed."""
    instance = tiny(formulation, count, seed)[index]
    found = of_tests("oracles").optimum(formulation, instance.X, instance.y, instance.params | dict(changes))
    return float(found)


def cells(asked: Any) -> Iterator[Line]:
    for formulation, variants in VARIANTS.items():
        for index in range(asked.count):
            for variant in variants:
                which = {"formulation": formulation, "seed": asked.seed, "index": index}
                yield {**which, "variant": variant.get("variant", "default")}


def measure(cell: Line, asked: Any) -> Line:
    """One variant of one instance."""
    which = (cell["formulation"], asked.count, asked.seed)
    instance = tiny(*which)[cell["index"]]
    variant = {} if cell["variant"] == "default" else {"variant": cell["variant"]}
    try:
        return check(instance, variant, optimum(*which, cell["index"]), asked.limit)
    except octsvm.InvalidData as error:
        # "bd" refuses values closer than its rows can tell apart; nothing else may be refused.
        if cell["variant"] != "bd" or "apart after scaling" not in str(error):
            raise
        return {"instance": instance.name, "refused": str(error), "faults": []}


def report(lines: list[Line]) -> str:
    rows = []
    for formulation in dict.fromkeys(line["formulation"] for line in lines):
        mine = [line for line in lines if line["formulation"] == formulation]
        solved = [line for line in mine if "refused" not in line]
        seconds = [line["seconds"] for line in solved] or [0.0]
        faulty = sum(bool(line["faults"]) for line in mine)
        figures = [len(solved), faulty, len(mine) - len(solved)]
        rows.append([formulation, *figures, f"{np.median(seconds):.2f} s", f"{max(seconds):.1f} s"])
    return table(["formulation", "solves", "faulty", "refused (bd)", "median", "largest"], rows)


STUDY = Study(
    key=("formulation", "variant", "seed", "index"),
    report=report,
    cells=cells,
    measure=measure,
    options={"count": 200, "seed": 0, "limit": 120.0},
    quick={"count": 2},
)
