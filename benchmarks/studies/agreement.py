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

from ..study import Line, Study, every, kept
from ..tables import table
from . import of_tests

REACHED = 1e-4  # relative: the default gap
NOT_BELOW = 2e-6  # relative: what a feasibility tolerance of 1e-6 may leave
VARIANTS = {
    "oct": ("default", "rank", "bd"),
    "oct_h": ("default",),
    "re_svm": ("default", "paper"),
    "octsvm": ("default", "paper"),  # with mu_svm, which every instance gives
    "moctsvm": ("default", "levels"),
}


def wrong_claims(result: octsvm.Result, optimum: float) -> list[str]:
    """What a result says that brute force, or the routing of its own tree, contradicts."""
    size = max(abs(optimum), 1e-3)
    claims = {
        "says optimal and is not": result.status == "optimal"
        and abs(result.objective - optimum) > REACHED * size,
        "below the optimum": result.objective < optimum - NOT_BELOW * size,
        "bound above the optimum": result.bound > optimum + NOT_BELOW * size,
        "does not hold outside the solver, and nothing says so": result.status != "unverified"
        and bool(result.differing_rows),
    }
    return [claim for claim, wrong in claims.items() if wrong]


def solved(instance: Any, changes: Line, optimum: float, **how: Any) -> tuple[octsvm.Result | None, Line]:
    """One solve of an instance with some parameters changed, compared: ``faults`` is empty where nothing claimed is wrong."""
    params = instance.params | changes
    scale = instance.formulation == "oct"
    try:
        result = octsvm.fit(
            instance.formulation, instance.X, instance.y, scale=scale, on_mismatch="ignore", **how, **params
        )
    except (octsvm.LicenseTooSmall, octsvm.UnsupportedProblem, octsvm.InvalidData) as error:
        # "bd" refuses values closer than its rows can tell apart; of data nothing else may be refused.
        if isinstance(error, octsvm.InvalidData) and "apart after scaling" not in str(error):
            raise
        return None, {"refused": type(error).__name__, "why": str(error).split(". ")[0], "faults": []}
    line = kept(result, "objective", "bound", "status", "stop", "seconds", "rounds", "nodes")
    return result, line | {"faults": wrong_claims(result, optimum)}


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
        yield from every(
            formulation=[formulation], seed=[asked.seed], index=range(asked.count), variant=variants
        )


def measure(cell: Line, asked: Any) -> Line:
    """One variant of one instance."""
    which = (cell["formulation"], asked.count, asked.seed, cell["index"])
    instance, best = tiny(*which[:3])[cell["index"]], optimum(*which)
    changes = {} if cell["variant"] == "default" else {"variant": cell["variant"]}
    result, line = solved(instance, changes, best, time_limit=asked.limit)
    line |= {"instance": instance.name, "params": instance.params, "optimum": best}
    if result is None:
        return line if cell["variant"] == "bd" else line | {"faults": ["refused"]}
    if result.status != "optimal":
        line["faults"].append(f"status {result.status}, stop {result.stop}")
    costs = {k: v for k, v in (instance.params | changes).items() if k != "depth"}
    again = octsvm.evaluate(instance.formulation, result.tree, instance.X, instance.y, **costs)
    if abs(again.objective - result.objective) > 1e-9 * max(1.0, abs(best)):
        line["faults"].append("evaluate differs from the result")
    return line


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
    options={"count": 200, "seed": 0, "limit": 120.0},
    quick={"count": 2},
)
