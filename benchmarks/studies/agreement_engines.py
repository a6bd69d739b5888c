"""Every engine against brute force.

A cell is a formulation, a variant, a norm, an engine and one of the tiny instances of tests/instances.py, whose
optima tests/oracles.py enumerates without any of the models' code. An engine that says "optimal" must have the
enumerated optimum within its gap, never less, and no bound may lie above it. The linear kernel has that of no kernel. An answer that does not hold outside the
solver must come back as "unverified", with the best tree known; such cells are counted as caught. What the dispatcher refuses (a licence that
is too small) is counted with its reason.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

import numpy as np

from octsvm import solvers

from ..study import Line, Study, every
from ..tables import table
from .agreement import optimum, solved, tiny

MODELS: list[tuple[str, dict[str, Any]]] = [
    ("oct", {}),
    ("oct", {"variant": "rank"}),
    ("oct", {"variant": "bd"}),
    ("oct_h", {}),
    *(
        (formulation, {"norm": norm} | ({"variant": variant} if variant else {}))
        for formulation in ("re_svm", "octsvm")
        for variant in ("", "paper")
        for norm in ("l2", "l1")
    ),
    *((formulation, {"norm": "l2", "kernel": "linear"}) for formulation in ("re_svm", "octsvm")),
    *(
        ("moctsvm", {"norm": norm, "variant": variant})
        for variant in ("compact", "levels")
        for norm in ("l2", "l1")
    ),
]
# Algorithms of an engine that are engines of their own here: entry -> {label: its options}.
ALGORITHMS: dict[str, dict[str, dict[str, Any]]] = {
    "bonmin": {f"bonmin {a}": {"bonmin.algorithm": a} for a in ("B-BB", "B-Hyb", "B-OA")}
}


def engines(chosen: list[str] | None = None) -> dict[str, tuple[str, dict[str, Any]]]:
    """Label -> (entry, options) of all installed engines; stand-ins run under the name that they stand in for."""
    table = solvers.table()
    behind = {spec.otherwise for spec in table.values() if spec.otherwise}
    out = {}
    for name in table:
        if name in behind or solvers.installed(name) is None or (chosen and name not in chosen):
            continue
        for label, options in ALGORITHMS.get(name, {name: {}}).items():
            out[label] = (name, options)
    return out


def label(formulation: str, changes: dict[str, Any]) -> str:
    """Name of a model: formulation, variant, norm, kernel."""
    parts = [formulation, changes.get("variant", "default"), changes.get("norm", "")]
    parts += [f"{changes['kernel']} kernel"] if "kernel" in changes else []
    return " ".join(part for part in parts if part)


def solve(
    instance: Any, changes: Line, optimum: float, solver: str, options: Line, time_limit: float
) -> Line:
    """One solve by one engine alone, compared."""
    how = {"solver": solver, "options": options or None, "time_limit": time_limit, "strategy": "exact"}
    result, line = solved(instance, changes, optimum, **how)
    if result is None:
        return line
    return line | {
        "as_it_stands": result.engine.get("as_it_stands"),
        "version": result.solver_version,
        "notes": [n for n in result.notes if "broke down" in n or "did not" in n],
    }


def cells(asked: Any) -> Iterator[Line]:
    chosen = engines(asked.solver.split(",") if asked.solver else None)
    for formulation, changes in MODELS:
        names = [instance.name for instance in tiny(formulation, asked.count, asked.seed)]
        yield from every(model=[label(formulation, changes)], instance=names, engine=chosen)


def measure(cell: Line, asked: Any) -> Line:
    """One model of one instance by one engine."""
    formulation, changes = next(model for model in MODELS if label(*model) == cell["model"])
    which = (formulation, asked.count, asked.seed)
    index = [instance.name for instance in tiny(*which)].index(cell["instance"])
    best = optimum(*which, index, tuple((k, v) for k, v in changes.items() if k not in ("variant", "kernel")))
    solver, options = engines()[cell["engine"]]
    return {"optimum": best} | solve(tiny(*which)[index], changes, best, solver, options, asked.limit)


def report(lines: list[Line]) -> str:
    """The table: one row a model, one column an engine; "proved/solved", faults and refusals."""
    names = list(dict.fromkeys(line["engine"] for line in lines))
    cells: dict[tuple[str, str], list[Line]] = collections.defaultdict(list)
    for line in lines:
        cells[line["model"], line["engine"]].append(line)

    def text(found: list[Line]) -> str:
        solved = [line for line in found if "refused" not in line]
        proved = sum(line["status"] == "optimal" for line in solved)
        counts = {
            "{} refused": len(found) - len(solved),
            "{} caught": sum(line["status"] == "unverified" for line in solved),
            "**{} wrong**": sum(bool(line["faults"]) for line in solved),
        }
        parts = [f"{proved}/{len(solved)}"] if solved else []
        return ", ".join(parts + [words.format(count) for words, count in counts.items() if count])

    rows = [
        [model, *(text(cells[model, name]) for name in names)]
        for model in dict.fromkeys(line["model"] for line in lines)
    ]
    medians = []
    for name in names:
        seconds = [line["seconds"] for line in lines if line["engine"] == name and "seconds" in line]
        medians.append(f"{np.median(seconds):.2f} s" if seconds else "")
    rows.append(["median time", *medians])
    faulty = sum(bool(line["faults"]) for line in lines)
    proved = sum(line.get("status") == "optimal" for line in lines)
    whys = collections.Counter(f"{line['engine']}: {line['refused']}" for line in lines if "refused" in line)
    told = (
        f"{len(lines) - whys.total()} solves, {proved} of them proved optimal, {faulty} wrong; {whys.total()} refused by the "
        f"dispatcher ({', '.join(f'{k} {v}' for k, v in sorted(whys.items())) or 'none'})."
    )
    return table(["model", *names], rows) + "\n\n" + told


STUDY = Study(
    key=("model", "engine", "instance"),
    options={"count": 30, "seed": 0, "limit": 20.0, "solver": ""},
    quick={"count": 1},
)
