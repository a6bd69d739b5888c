"""The fuzz of models with a user's own rows, terms, variables and fixings, as long as wanted.

The instances are those of tests/own_fuzz.py, one a seed; each is solved twice and compared with all trees that are known of it.
The engines are those installed, in turn, or those of --solver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from octsvm import solvers

from ..study import Line, Study, every
from ..tables import table
from . import of_tests


def cells(asked: Any) -> Iterator[Line]:
    return every(seed=range(asked.seed, asked.seed + asked.count))


def measure(cell: Line, asked: Any) -> Line:
    """What is kept of an instance."""
    fuzz = of_tests("own_fuzz")
    installed = [name for name in fuzz.ENGINES if solvers.installed(name) is not None]
    found = fuzz.examine(cell["seed"], asked.solver.split(",") if asked.solver else installed)
    instance = found.instance
    return {
        "formulation": instance.name,
        "engine": instance.engine,
        "additions": instance.additions,
        "refused": found.refused,
        "verdicts": [f"{r.status}, {r.stop}" for r in found.results],
        "engines": [r.solver for r in found.results],
        "seconds": [round(r.seconds, 3) for r in found.results],
        "faults": found.failures,
    }


def report(lines: list[Line]) -> str:
    verdicts = Counter(v for line in lines for v in line["verdicts"])
    engines = Counter(e for line in lines for e in line["engines"])
    longest = max((s for line in lines for s in line["seconds"]), default=0.0)
    of_each = ", ".join(f"{name} {count}" for name, count in engines.most_common())
    told = (
        f"{len(lines)} instances, {sum(engines.values())} solves ({of_each}), "
        f"{sum(bool(line['refused']) for line in lines)} refused by name, "
        f"{sum(bool(line['faults']) for line in lines)} with anything wrong; the longest solve took {longest:.1f} s."
    )
    return told + "\n\n" + table(["status, stop", "solves"], verdicts.most_common())


STUDY = Study(
    key=("seed",),
    options={"count": 1000, "seed": 0, "solver": ""},
)
