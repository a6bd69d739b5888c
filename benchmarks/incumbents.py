"""Our tree after a second, an engine's alone after thirty, and a crude tree, on quarters of the eight data sets.

    python benchmarks/incumbents.py run --data DIR --out results.jsonl                   ours and the crude tree
    python benchmarks/incumbents.py run --data DIR --out results.jsonl --who highs       the engine alone, 30 s a cell
    python benchmarks/incumbents.py run --data DIR --out results.jsonl --who scip --setting middle --depth 2
    python benchmarks/incumbents.py run --data DIR --out results.jsonl --who highs:paper     the same, the printed rows
    python benchmarks/incumbents.py report results.jsonl

DIR holds one CSV a data set, label last. A quarter of the rows (stratified) trains: one seed a set, three for heart
and sonar. Cells that are in --out already are not run again, so a run may be stopped and taken up; the last line of a
cell counts. ``ours`` is strategy="heuristic", the engine is strategy="exact", and the crude tree grows top-down, an
SVM a node, relabelling as it goes, for six values of C, the best objective kept.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import octsvm
from octsvm.data import prepare
from octsvm.formulations.registry import formulation
from octsvm.formulations.trees import MarginTree

Array = NDArray[Any]
SETS = ("australian", "breastcancer", "heart", "ionosphere", "monks", "parkinson", "sonar", "wholesale")
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


class Cell(NamedTuple):
    """One training table with one choice of parameters."""

    name: str
    seed: int
    setting: str
    depth: int


def cells(sets: list[str], settings: list[str], depths: list[int], seeds: list[int] | None) -> Iterator[Cell]:
    """All chosen cells."""
    for name in sets:
        for seed in SEEDS.get(name, (0,)):
            if seeds and seed not in seeds:
                continue
            for setting in settings:
                for depth in depths:
                    yield Cell(name, seed, setting, depth)


def quarter(folder: Path, name: str, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """The training rows."""
    frame = pd.read_csv(folder / f"{name}.csv")
    X, y = frame.drop(columns="label"), frame["label"]
    train, _, labels, _ = train_test_split(X, y, train_size=0.25, stratify=y, random_state=seed)
    return train, labels


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


def measure(folder: Path, cell: Cell, who: str, limit: float) -> dict[str, Any]:
    """One line of results."""
    X, y = quarter(folder, cell.name, cell.seed)
    params = {**dict(zip(("c1", "c2", "c3"), SETTINGS[cell.setting], strict=True)), "depth": cell.depth}
    began = time.monotonic()
    line: dict[str, Any] = {"who": who, **cell._asdict(), "n": len(y), "p": X.shape[1]}
    if who == "crude":
        line["objective"] = crude(X, y, params)
    else:
        how: dict[str, Any] = {"strategy": "heuristic"}
        if who != "ours":
            solver, _, variant = who.partition(":")
            how = {"strategy": "exact", "solver": solver, **(PRINTED if variant else {})}
        result = octsvm.fit("octsvm", X, y, time_limit=limit, on_mismatch="ignore", **how, **params)
        line |= {
            "limit": limit,
            "objective": result.objective,
            "bound": result.bound,
            "status": result.status,
            "stop": result.stop,
            "version": result.solver_version,
        }
    load = round(os.getloadavg()[0] / (os.cpu_count() or 1), 2) if hasattr(os, "getloadavg") else None
    return line | {"seconds": round(time.monotonic() - began, 3), "load": load}


def read(path: Path) -> dict[tuple[str, Cell], dict[str, Any]]:
    """The last line of every cell."""
    if not path.exists():
        return {}
    lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines() if text]
    return {(c["who"], Cell(c["name"], c["seed"], c["setting"], c["depth"])): c for c in lines}


def geometric_mean(ratios: list[float]) -> float:
    """1 where there is none."""
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else 1.0


def report(found: dict[tuple[str, Cell], dict[str, Any]]) -> str:
    """Ratios by rival and depth, and every cell in which ours is worse."""
    ours = {cell: line for (who, cell), line in found.items() if who == "ours"}
    out = [
        "| against | D | cells | equal | better | worse | geometric mean of the ratios | lowest | highest |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    worse = []
    for rival in sorted({who for who, _ in found} - {"ours"}):
        for depth in DEPTHS:
            ratios = {}
            for (who, cell), line in found.items():
                if who == rival and cell.depth == depth and cell in ours:
                    ratios[cell] = max(ours[cell]["objective"], 1e-12) / max(line["objective"], 1e-12)
            if not ratios:
                continue
            values = list(ratios.values())
            high = [c for c, r in ratios.items() if r > 1 + WORSE]
            low = sum(r < 1 - WORSE for r in values)
            name = (
                rival
                if rival == "crude"
                else f"{rival} alone, {max(c['limit'] for (w, _), c in found.items() if w == rival):g} s"
            )
            out.append(
                f"| {name} | {depth} | {len(values)} | {len(values) - low - len(high)} | {low} | {len(high)} | "
                f"{geometric_mean(values):.3f} | {min(values):.3g} | {max(values):.3f} |"
            )
            worse += [
                f"- {cell.name}, seed {cell.seed}, {cell.setting} {SETTINGS[cell.setting]}, D = {cell.depth}: "
                f"{ours[cell]['objective']:.6g} against {found[rival, cell]['objective']:.6g} ({rival})"
                for cell in high
            ]
    return "\n".join([*out, "", *(["Worse:", "", *worse] if worse else ["Ours is worse in no cell."])])


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="measure the cells that are not there yet")
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True, help="JSON lines, appended")
    one.add_argument(
        "--who", action="append", help="ours, crude, a solver's name, or that with :paper (ours and crude)"
    )
    one.add_argument("--limit", type=float, help="seconds (1 for ours, 30 for a solver)")
    one.add_argument("--set", action="append", choices=SETS)
    one.add_argument("--seed", action="append", type=int)
    one.add_argument("--setting", action="append", choices=list(SETTINGS))
    one.add_argument("--depth", action="append", type=int, choices=DEPTHS)
    one.add_argument("--again", action="store_true", help="also cells that are there")
    one = commands.add_parser("report", help="ratios in Markdown")
    one.add_argument("results", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "report":
        print(report(read(arguments.results)))
        return 0
    if not arguments.data.is_dir():
        print(f"SKIPPED: there is no folder {arguments.data}; nothing was measured.")
        return 0
    for who in arguments.who or []:
        if who.partition(":")[2] not in ("", "paper"):
            parser.error(f"--who {who}: after a solver's name only :paper is known, the printed rows")
    found = read(arguments.out)
    chosen = cells(
        arguments.set or list(SETS),
        arguments.setting or list(SETTINGS),
        arguments.depth or list(DEPTHS),
        arguments.seed,
    )
    for cell in chosen:
        for who in arguments.who or ["ours", "crude"]:
            if (who, cell) in found and not arguments.again:
                continue
            if not (arguments.data / f"{cell.name}.csv").is_file():
                print(f"SKIPPED: {cell.name} is not in {arguments.data}.")
                continue
            line = measure(arguments.data, cell, who, arguments.limit or (1.0 if who == "ours" else 30.0))
            with arguments.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")
            print(
                f"{who:8} {cell.name:13} seed {cell.seed} {cell.setting:8} D={cell.depth} "
                f"{line['objective']:.6g} in {line['seconds']:.2f} s",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
