"""How the time and the memory of a fit grow with the rows.

Generated tables with 20 features; the class is decided by two crossing hyperplanes (OCTSVM) or two thresholds (OCT), and
one label in ten is wrong. Every fit runs in a process of its own. The part "chart" of the report is an SVG.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import tables
from ..study import Line, Study, Watch, every, kept, peak_memory

Array = NDArray[Any]
FEATURES = 20
SIZES = (1_000, 5_000, 10_000, 30_000, 100_000)
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "OCT, D = 3": ("oct", {"depth": 3, "n_min": 0.01, "alpha": 1.0}),
    "OCTSVM, D = 1": ("octsvm", {"depth": 1, "c1": 1.0, "c2": 1.0, "c3": 1.0}),
    "OCTSVM, D = 2": ("octsvm", {"depth": 2, "c1": 1.0, "c2": 1.0, "c3": 1.0}),
}
COLOURS = ("#00695c", "#c62828", "#1565c0")


def table(n: int, p: int, kind: str, seed: int) -> tuple[Array, Array, Array]:
    """Rows, labels with one in ten wrong, and the true labels."""
    rng = np.random.default_rng([seed, n, p])
    X = rng.random((n, p))
    if kind == "oct":
        y = ((X[:, 0] > 0.5) & (X[:, 1] > 0.3)) | ((X[:, 0] <= 0.5) & (X[:, 2] > 0.7))
    else:
        y = (X[:, 0] + X[:, 1] > 1.0) & (X[:, 2] - X[:, 3] > -0.5)
    return X, (y ^ (rng.random(n) < 0.1)).astype(int), y.astype(int)


def cells(asked: Any) -> Iterator[Line]:
    return every(model=MODELS, n=SIZES, p=[FEATURES], seed=[asked.seed])


def measure(cell: Line, asked: Any) -> Line:
    """A single fit, in this process."""
    import octsvm

    n, p, limit, seed = cell["n"], cell["p"], asked.limit, cell["seed"]
    formulation, params = MODELS[cell["model"]]
    X, y, truth = table(n, p, formulation, seed)
    # Everything that is imported late is imported now.
    octsvm.fit(formulation, X[:50], y[:50], strategy="heuristic", time_limit=1, **params)
    watch = Watch()
    result = octsvm.fit(formulation, X, y, strategy="heuristic", time_limit=limit, seed=seed, **params)
    return {
        **watch.seconds(),
        "megabytes": peak_memory(),
        **kept(result, "objective", "status", "stop"),
        "per_row": result.objective / n,
        "truth": round(float(np.mean(result.tree.predict(X) == truth)), 4),
    }


def slope(lines: list[dict[str, Any]], what: str) -> float:
    """Exponent k of what ~ n^k, by least squares on logarithms; 10,000 rows on, where fixed costs no longer rule."""
    used = [line for line in lines if line["n"] >= 10_000] or lines
    if len(used) < 2:
        return math.nan
    x, z = np.log([line["n"] for line in used]), np.log([max(line[what], 1e-3) for line in used])
    return float(np.polyfit(x, z, 1)[0])


HEAD = "model | rows | seconds | CPU seconds | memory, MB | objective a row | agrees with the truth | stop"
ROW = "{model} | {n:,} | {seconds:.1f} | {cpu:.1f} | {megabytes:.0f} | {per_row:.4f} | {truth:.1%} | {stop}"


def report(lines: list[Line]) -> str:
    """The measurements, with the exponents below."""
    lines = sorted(lines, key=lambda c: (list(MODELS).index(c["model"]), c["n"]))
    out = [tables.table(HEAD, (ROW.format(**line) for line in lines)), ""]
    for name in MODELS:
        mine = [c for c in lines if c["model"] == name]
        if len(mine) > 1:
            out.append(
                f"{name}: CPU seconds grow as n^{slope(mine, 'cpu'):.2f} and memory as "
                f"n^{slope(mine, 'megabytes'):.2f} from 10,000 rows on."
            )
    return "\n".join(out)


def chart(lines: list[Line]) -> str:
    """CPU seconds over rows, both logarithmic, as SVG."""
    from io import StringIO

    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name, colour in zip(MODELS, COLOURS, strict=True):
        points = sorted((c["n"], max(c["cpu"], 1e-2)) for c in lines if c["model"] == name)
        if points:
            axes.loglog(*zip(*points, strict=True), marker="o", label=name, color=colour)
    axes.set(xlabel="rows", ylabel="CPU seconds")
    axes.legend()
    out = StringIO()
    figure.savefig(out, format="svg")
    return out.getvalue()


STUDY = Study(
    key=("model", "n", "p", "seed"),
    options={"limit": 600.0, "seed": 0},
    quick={"limit": 2.0},
    quick_cells=1,
    apart=True,
    code=("octsvm/heuristics",),
    parts={"chart": chart},
)
