"""Time and memory of strategy="heuristic" as the table grows: `python benchmarks/scale.py --out scale.jsonl --plot scale.png`.

Generated tables with p features; the class is decided by two crossing hyperplanes (OCTSVM) or two thresholds (OCT), and
one label in ten is wrong. Every fit runs in a process of its own. Prints a Markdown table; lines that are in --out already
are not measured again. The plot needs matplotlib; without it a plain SVG is written.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
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


def one(name: str, n: int, p: int, limit: float, seed: int) -> dict[str, Any]:
    """A single fit, in this process."""
    import resource

    import octsvm

    formulation, params = MODELS[name]
    X, y, truth = table(n, p, formulation, seed)
    # Everything that is imported late is imported now.
    octsvm.fit(formulation, X[:50], y[:50], strategy="heuristic", time_limit=1, **params)
    began, used = time.monotonic(), time.process_time()
    result = octsvm.fit(formulation, X, y, strategy="heuristic", time_limit=limit, seed=seed, **params)
    unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, kilobytes elsewhere
    return {
        "model": name,
        "n": n,
        "p": p,
        "seed": seed,
        "seconds": round(time.monotonic() - began, 2),
        "cpu": round(time.process_time() - used, 2),
        "megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1),
        "objective": result.objective,
        "per_row": result.objective / n,
        "truth": round(float(np.mean(result.tree.predict(X) == truth)), 4),
        "status": result.status,
        "stop": result.stop,
        "load": round(os.getloadavg()[0] / (os.cpu_count() or 1), 2),
    }


def slope(lines: list[dict[str, Any]], what: str) -> float:
    """Exponent k of what ~ n^k, by least squares on logarithms; 10,000 rows on, where fixed costs no longer rule."""
    used = [line for line in lines if line["n"] >= 10_000] or lines
    if len(used) < 2:
        return math.nan
    x, z = np.log([line["n"] for line in used]), np.log([max(line[what], 1e-3) for line in used])
    return float(np.polyfit(x, z, 1)[0])


def report(lines: list[dict[str, Any]]) -> str:
    """The measurements as a Markdown table, with the exponents below."""
    out = [
        "| model | rows | seconds | CPU seconds | memory, MB | objective a row | agrees with the truth | stop |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for c in lines:
        out.append(
            f"| {c['model']} | {c['n']:,} | {c['seconds']:.1f} | {c['cpu']:.1f} | {c['megabytes']:.0f} | "
            f"{c['per_row']:.4f} | {c['truth']:.1%} | {c['stop']} |"
        )
    out.append("")
    for name in MODELS:
        mine = [c for c in lines if c["model"] == name]
        if len(mine) > 1:
            out.append(
                f"{name}: CPU seconds grow as n^{slope(mine, 'cpu'):.2f} and memory as "
                f"n^{slope(mine, 'megabytes'):.2f} from 10,000 rows on."
            )
    return "\n".join(out)


def plot(lines: list[dict[str, Any]], path: Path) -> Path:
    """CPU seconds over rows, both logarithmic; as SVG where matplotlib is missing."""
    series = {
        name: [(c["n"], max(c["cpu"], 1e-2)) for c in lines if c["model"] == name]
        for name in MODELS
        if any(c["model"] == name for c in lines)
    }
    try:
        from matplotlib.figure import Figure
    except ImportError:
        path = path.with_suffix(".svg")
        path.write_text(svg(series), encoding="utf-8")
        return path
    figure = Figure(figsize=(6, 4))
    axes = figure.subplots()
    for (name, points), colour in zip(series.items(), COLOURS, strict=False):
        axes.loglog(*zip(*points, strict=True), marker="o", label=name, color=colour)
    axes.set_xlabel("rows")
    axes.set_ylabel("CPU seconds")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)
    return path


def svg(series: dict[str, list[tuple[float, float]]]) -> str:
    """A plain chart with logarithmic axes."""
    width, height, left, top, right, bottom = 600, 400, 60, 20, 20, 50
    points = [point for line in series.values() for point in line]
    low = [math.floor(math.log10(min(point[k] for point in points))) for k in (0, 1)]
    high = [math.ceil(math.log10(max(point[k] for point in points))) for k in (0, 1)]
    high = [max(a, b + 1) for a, b in zip(high, low, strict=True)]

    def at(x: float, y: float) -> tuple[float, float]:
        u = (math.log10(x) - low[0]) / (high[0] - low[0])
        v = (math.log10(y) - low[1]) / (high[1] - low[1])
        return left + u * (width - left - right), height - bottom - v * (height - top - bottom)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for k in range(low[0], high[0] + 1):
        x, _ = at(10.0**k, 10.0 ** low[1])
        out.append(f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{top}" y2="{height - bottom}" stroke="#ddd"/>')
        out.append(f'<text x="{x:.0f}" y="{height - bottom + 16}" text-anchor="middle">{10**k:,}</text>')
    for k in range(low[1], high[1] + 1):
        _, y = at(10.0 ** low[0], 10.0**k)
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{y:.0f}" y2="{y:.0f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{10.0**k:g}</text>')
    for k, ((name, line), colour) in enumerate(zip(series.items(), COLOURS, strict=False)):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in line))
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in (at(*p) for p in line)
        ]
        out.append(f'<text x="{left + 12}" y="{top + 18 + 16 * k}" fill="{colour}">{name}</text>')
    out.append(f'<text x="{width / 2}" y="{height - 10}" text-anchor="middle">rows</text>')
    out.append(
        f'<text x="16" y="{height / 2}" text-anchor="middle" transform="rotate(-90 16 {height / 2})">CPU seconds</text>'
    )
    return "\n".join([*out, "</svg>"]) + "\n"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, action="append", help="may be given again (1,000 to 100,000)")
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--model", action="append", choices=list(MODELS))
    parser.add_argument("--limit", type=float, default=600, help="seconds of a fit (600)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON lines, appended")
    parser.add_argument("--plot", type=Path, help="PNG, or SVG without matplotlib")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    rows = arguments.rows or list(SIZES)
    if arguments.one:
        print(json.dumps(one(arguments.one, rows[0], arguments.features, arguments.limit, arguments.seed)))
        return 0
    lines: list[dict[str, Any]] = []
    if arguments.out and arguments.out.exists():
        lines = [json.loads(text) for text in arguments.out.read_text(encoding="utf-8").splitlines() if text]
    for name in arguments.model or list(MODELS):
        for n in rows:
            if any((c["model"], c["n"], c["p"]) == (name, n, arguments.features) for c in lines):
                continue
            command = [
                sys.executable,
                __file__,
                "--one",
                name,
                "--rows",
                str(n),
                "--seed",
                str(arguments.seed),
            ]
            command += ["--features", str(arguments.features), "--limit", str(arguments.limit)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{name}, {n} rows: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                continue
            line = json.loads(done.stdout.splitlines()[-1])
            lines.append(line)
            if arguments.out:
                with arguments.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(line) + "\n")
    lines.sort(key=lambda c: (list(MODELS).index(c["model"]), c["n"]))
    print(report(lines))
    if arguments.plot and lines:
        print(f"\nplotted to {plot(lines, arguments.plot)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
