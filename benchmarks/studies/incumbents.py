"""Our tree after a second, an engine's alone after thirty, and a crude tree, on quarters of the eight data sets.

    python -m benchmarks run incumbents --data DIR                       ours and the crude tree
    python -m benchmarks run incumbents --data DIR --who highs           the engine alone, 30 s a cell
    python -m benchmarks run incumbents --data DIR --who highs:paper     the same, the printed rows

A quarter of the rows (stratified) trains: one seed a set, three for heart and sonar. ``ours`` is
strategy="heuristic", an engine gets the built model alone, and the crude tree grows top-down, an SVM a node, relabelling as it
goes, for six values of C, the best objective kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

import octsvm
from octsvm.data import prepare
from octsvm.formulations.registry import formulation
from octsvm.formulations.trees import MarginTree

from ..cases import SETS, quarter
from ..study import REQUIRED, Line, Study, Watch, kept
from ..tables import table

SEEDS = {"heart": (0, 1, 2), "sonar": (0, 1, 2)}
SETTINGS: dict[str, tuple[float, float, float]] = {  # c1, c2, c3: spread over the grid of the paper
    "tiny": (1e-3, 1e-3, 1e-2),
    "keep": (1e-1, 1e1, 1e-2),
    "ones": (1.0, 1.0, 1.0),
    "middle": (1e2, 1e2, 1.0),
    "relabel": (1e3, 1.0, 1e-1),
    "huge": (1e5, 1e5, 1e2),
}
DEPTHS = (1, 2)
CRUDE = np.geomspace(1e-1, 1e4, 6)  # SVM costs C of the crude tree
WORSE = 1e-6  # relative
PRINTED = {"variant": "paper", "mu_svm": 1e-3}  # with (9′), without which a row may be routed both ways


CELL = ("name", "seed", "setting", "depth")
Cell = tuple[str, int, str, int]


def grid() -> list[Cell]:
    """All tables and choices of parameters, as name of the set, seed, setting and depth."""
    tables = [(name, seed) for name in SETS for seed in SEEDS.get(name, (0,))]
    return [(*table, *choice) for table in tables for choice in product(SETTINGS, DEPTHS)]


def cells(asked: Any) -> Iterator[Line]:
    whos = asked.who.split(",")
    for who in whos:
        if who.partition(":")[2] not in ("", "paper"):
            raise SystemExit(f"--who {who}: after a solver's name only :paper is known, the printed rows")
    return ({"who": who, **dict(zip(CELL, cell, strict=True))} for cell in grid() for who in whos)


def crude(X: Any, y: Any, params: dict[str, Any]) -> float:
    """Objective of the best crude tree."""
    form = formulation("octsvm")
    checked, data = form.Params.make("octsvm", **params), prepare(form, X, y)
    best = np.inf
    for C in CRUDE:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            tree = grown(data, checked, float(C))
        known = form.evaluate(tree, data.X_original, data.y, checked, data.weights)
        best = min(best, known.objective)
    return float(best)


def grown(data: Any, params: Any, C: float) -> MarginTree:
    """Split while both classes are there; a row that is cheaper to relabel changes its label."""
    T = 2 ** (params.depth + 1) - 1
    omega, omega0, split = np.zeros((T, data.p)), np.zeros(T), np.zeros(T, dtype=bool)
    node = np.ones(data.n, dtype=int)
    for t in range(1, T + 1):
        rows = np.flatnonzero(node == t)
        sign = data.sign[rows]
        omega0[t - 1] = 1.0 if sign.sum() >= 0 else -1.0
        if (t == 1 or split[t // 2 - 1]) and len(set(sign)) == 2:
            label = sign
            for _ in range(5):
                svm = SVC(kernel="linear", C=C, max_iter=20_000).fit(data.X[rows], label)
                omega[t - 1], omega0[t - 1], split[t - 1] = svm.coef_[0], float(svm.intercept_[0]), True
                ys = sign * (data.X[rows] @ omega[t - 1] + omega0[t - 1])
                keep = params.c1 * np.maximum(0, 1 - ys) <= params.c2 + params.c1 * np.maximum(0, 1 + ys)
                fresh = np.where(keep, sign, -sign)
                if (fresh == label).all() or len(set(fresh)) < 2:
                    break
                label = fresh
        if t <= T // 2:
            node[rows] = 2 * t + (data.X[rows] @ omega[t - 1] + omega0[t - 1] >= 0)
    return MarginTree(params.depth, data.classes, data.feature_names, data.scaling, omega, omega0, split)


def engine_alone(formulation: str, X: Any, y: Any, who: str, limit: float, params: dict[str, Any]) -> Any:
    """What an engine finds in so many seconds, those of building not among them, with no start and no search of ours beside it."""
    solver, _, variant = who.partition(":")
    model = octsvm.build(formulation, X, y, **params, **(PRINTED if variant else {}))
    return octsvm.solve(model, solver=solver, time_limit=limit, on_mismatch="ignore")


def measure(cell: Line, asked: Any) -> Line:
    """One line of results."""
    who, limit = cell["who"], asked.limit or (1.0 if cell["who"] == "ours" else 30.0)
    X, y, _, _ = quarter(asked.data, cell["name"], cell["seed"])
    params = {**dict(zip(("c1", "c2", "c3"), SETTINGS[cell["setting"]], strict=True)), "depth": cell["depth"]}
    watch = Watch()
    line: Line = {"n": len(y), "p": X.shape[1]}
    if who == "crude":
        line["objective"] = crude(X, y, params)
    else:
        if who == "ours":
            how: dict[str, Any] = {"strategy": "heuristic", "on_mismatch": "ignore"}
            result = octsvm.fit("octsvm", X, y, time_limit=limit, **how, **params)
        else:
            result = engine_alone("octsvm", X, y, who, limit, params)
        line |= kept(result, "objective", "bound", "status", "stop")
        line |= {"limit": limit, "version": result.solver_version}
    return line | watch.seconds()


def by_cell(lines: list[Line]) -> dict[tuple[str, Cell], Line]:
    """Lines by who answered and what."""
    return {(c["who"], (c["name"], c["seed"], c["setting"], c["depth"])): c for c in lines}


def report(lines: list[Line]) -> str:
    """Ratios by rival and depth, and every cell in which ours is worse."""
    found = by_cell(lines)
    ours = {cell: line for (who, cell), line in found.items() if who == "ours"}
    head = "against | D | cells | equal | better | worse | geometric mean of the ratios | lowest | highest"
    rows, worse = [], []
    for rival in sorted({who for who, _ in found} - {"ours"}):
        for depth in DEPTHS:
            ratios = {}
            for (who, cell), line in found.items():
                if who == rival and cell[-1] == depth and cell in ours:
                    ratios[cell] = max(ours[cell]["objective"], 1e-12) / max(line["objective"], 1e-12)
            if not ratios:
                continue
            values = list(ratios.values())
            high = [c for c, r in ratios.items() if r > 1 + WORSE]
            low = sum(r < 1 - WORSE for r in values)
            limits = [c["limit"] for (w, _), c in found.items() if w == rival and "limit" in c]
            name = f"{rival} alone, {max(limits):g} s" if limits else rival
            rows.append(
                f"{name} | {depth} | {len(values)} | {len(values) - low - len(high)} | {low} | {len(high)} | "
                f"{np.exp(np.log(values).mean()):.3f} | {min(values):.3g} | {max(values):.3f}"
            )
            worse += [
                f"- {name}, seed {seed}, {setting} {SETTINGS[setting]}, D = {depth}: "
                f"{ours[cell]['objective']:.6g} against {found[rival, cell]['objective']:.6g} ({rival})"
                for cell in high
                for name, seed, setting, depth in [cell]
            ]
    told = ["Worse:", "", *worse] if worse else ["Ours is worse in no cell."]
    return "\n".join([table(head, rows), "", *told])


STUDY = Study(
    key=("who", *CELL),
    options={"data": REQUIRED, "who": "ours,crude", "limit": None},
    quick={"limit": 1.0},
    code=("octsvm/heuristics", "octsvm/solving", "octsvm/bridges", "formulations"),
)
