"""How long proofs of optimality of OCTSVM take: the default against the paper's rows with (9′), by the same engine.

    python -m benchmarks run proofs --solver highs --only further=False,index=23
    python -m benchmarks run proofs --only way=default,paper          without the ablation

The tables are those of ``benchmarks.cases.PROOFS``, and as many further ones, by which nothing in the package was chosen.
``paper`` is variant="paper", mu_svm=1e-3, strategy="exact"; ``default`` is a plain octsvm.fit; "without ..." is the default
without one of its parts, by the first solver, on the first tables. Every run is a process of its own, whose CPU seconds (those of
its children too) are counted; importing the package is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np

from .. import tables
from ..cases import FURTHER_PROOFS, N_PROOFS, PROOFS, Proof
from ..study import Line, Study, Watch, kept

WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"variant": "paper", "mu_svm": 1e-3, "strategy": "exact"},
}
# Of the ablation: the default without one of its parts.
WITHOUT = (
    "without the start",
    "without rows on sides",
    "without mixes",
    "without sets of three and four rows",
    "without the bound on delta",
    "as for large models",
)
ABLATED = range(12)  # indices
SHIFTS = (1.0, 10.0)
GAP = 1e-4
AGREE = 2e-4  # relative: two gaps


@contextmanager
def changed(way: str) -> Iterator[None]:
    """The package without the part that ``way`` names, for a while."""
    from octsvm.formulations import octsvm as model
    from octsvm.formulations.bounds import hull
    from octsvm.solving import dispatch

    patches: dict[str, tuple[Any, str, Any]] = {
        "without rows on sides": (model, "add_misrouting_inequalities", lambda *a, **k: None),
        "without mixes": (model, "chosen_rows", lambda *a: []),
        "without sets of three and four rows": (model, "MOST_SETS", 0),
        "without the bound on delta": (hull, "margin_bound", lambda *a: a[-1] * (1 + 1e-6)),
        "as for large models": (dispatch, "SMALL_TABLE", 0),  # loose rounds first, heuristics of the engine
    }
    with patch.object(*patches[way]) if way in patches else nullcontext():
        yield


def cells(asked: Any) -> Iterator[Line]:
    solvers, indices = asked.solver.split(","), [case.index for case in (*PROOFS, *FURTHER_PROOFS)]
    for solver, way, index in product(solvers, WAYS, indices):
        yield {"index": index, "way": way, "solver": solver, "further": index >= N_PROOFS}
    for way, index in product(WITHOUT, ABLATED):
        yield {"index": index, "way": way, "solver": solvers[0], "further": False}


def measure(cell: Line, asked: Any) -> Line:
    """One line of results."""
    import octsvm

    case, way, solver = Proof(cell["index"]), cell["way"], cell["solver"]
    limit = asked.limit or (120.0 if way in WAYS else 60.0)
    X, y = case.table()
    octsvm.fit("octsvm", X[:4], [0, 1, 0, 1], depth=1, time_limit=5, solver=solver)  # imports what it needs
    watch = Watch()
    how = {"strategy": "exact"} if way == "without the start" else WAYS.get(way, {})
    params = {"time_limit": limit, "on_mismatch": "ignore", **case.params, **how}
    with changed(way):
        result = octsvm.fit("octsvm", X, y, solver=solver, **params)
    return {
        **watch.seconds(),
        **kept(case, "n", "p", "labels"),
        **case.params,
        **kept(result, "status", "objective", "bound", "nodes", "rounds"),
        "limit": limit,
        "version": result.solver_version,
    }


Found = dict[tuple[int, str, str], Line]


def by_run(lines: list[Line]) -> Found:
    """Lines by table, way and solver."""
    return {(line["index"], line["way"], line["solver"]): line for line in lines}


def seconds_of(line: dict[str, Any], clock: str) -> float:
    """What a run counts for: the whole limit where nothing was proved."""
    return min(line[clock], line["limit"]) if line["status"] == "optimal" else float(line["limit"])


def shifted_mean(seconds: list[float], shift: float) -> float:
    """exp(mean log(t + shift)) - shift."""
    return float(np.exp(np.mean(np.log(np.array(seconds) + shift))) - shift)


def mean_seconds(lines: Iterable[Line], clock: str, shift: float = 1.0) -> float:
    """The shifted mean of what the runs count for."""
    return shifted_mean([seconds_of(line, clock) for line in lines], shift)


def disagreements(lines: list[Line]) -> list[str]:
    """Proved optima of one table that differ, and bounds above an objective that another run found."""
    return tables.disagreements(lines, ("index",), ("way", "solver"), AGREE)


def report(lines: list[Line]) -> str:
    """Solved counts, shifted geometric means and ratios in Markdown, and whether all answers agree."""
    found = by_run(lines)
    groups = ((PROOFS, "the tables"), (FURTHER_PROOFS, "further tables, by which nothing was chosen"))
    out = []
    for cases, title in groups:
        indices = {case.index for case in cases}
        out += _of_group({key: line for key, line in found.items() if key[0] in indices}, title)
    wrong = disagreements(lines)
    return "\n".join([*out, *(wrong or ["All proved optima agree, and no bound lies above an objective."])])


def _of_group(found: Found, title: str) -> list[str]:
    out = []
    for solver in sorted({s for _, _, s in found}):
        ways = [w for w in (*WAYS, *WITHOUT) if any((s, v) == (solver, w) for _, v, s in found)]
        rows = []
        for way in ways:
            of_way = {i: line for (i, v, s), line in found.items() if (v, s) == (way, solver)}
            default = {i: found[i, "default", solver] for i in of_way if (i, "default", solver) in found}
            means = [mean_seconds(of_way.values(), "seconds", k) for k in SHIFTS] + [
                mean_seconds(of_way.values(), "cpu")
            ]
            ratios = [
                mean_seconds([of_way[i] for i in default], clock)
                / max(1e-9, mean_seconds(default.values(), clock))
                for clock in ("seconds", "cpu")
                if default
            ]
            proved = sum(line["status"] == "optimal" for line in of_way.values())
            nodes = shifted_mean([float(x["nodes"]) for x in of_way.values()], 1.0)
            longer = f"{ratios[0]:.1f} times ({ratios[1]:.1f} by processor)" if ratios else ""
            figures = [f"{value:.2f}" for value in means]
            rows.append([way, len(of_way), proved, *figures, f"{nodes:.0f}", longer])
        head = ["way", "tables", "proved", "mean, shift 1", "mean, shift 10", "processor, shift 1", "nodes"]
        out += [f"{solver}, {title}:", "", tables.table([*head, "longer than the default"], rows), ""]
    return out


def profile(lines: list[Line], solver: str = "highs") -> str:
    """Share of the tables that each way proved within a factor of the faster way's time, as CSV."""
    found = by_run(lines)
    own = {case.index for case in PROOFS}
    indices = sorted(
        i for i, w, s in found if i in own and (w, s) == ("paper", solver) and (i, "default", solver) in found
    )
    if not indices:
        return "Nothing was measured both ways."
    times = {way: np.array([seconds_of(found[i, way, solver], "seconds") for i in indices]) for way in WAYS}
    proved = {way: np.array([found[i, way, solver]["status"] == "optimal" for i in indices]) for way in WAYS}
    least = np.minimum(*times.values())
    factors = np.geomspace(1.0, max(float((t / least).max()) for t in times.values()) * 1.01, 60)
    shares = {w: np.array([np.mean(proved[w] & (times[w] <= f * least)) for f in factors]) for w in WAYS}
    rows = [",".join(f"{v:.4g}" for v in row) for row in zip(factors, *shares.values(), strict=True)]
    return "\n".join(["factor," + ",".join(WAYS), *rows])


STUDY = Study(
    key=("index", "way", "solver"),
    options={"solver": "highs,scip", "limit": None},
    quick={"limit": 5.0},
    apart=True,
    code=("octsvm/solving", "octsvm/bridges", "octsvm/heuristics", "formulations", "solvers.yaml"),
    parts={"profile": profile},
)
