"""How long building, writing, handing over, embedding and checking a model take: cases × phases.

    python -m benchmarks run speed --peers install
    python -m benchmarks run speed --only 'case=octsvm,octsvm-n*' --only phase=build

Every pair of case and phase has a process of its own. Other packages are measured in a Python that has them: --peers PATH, or
--peers install, which makes one.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from ..cases import CASES, SEED
from ..study import Line, Study
from ..tables import number, table

LABELS = {
    "write_lp": "write .lp",
    "write_nl": "write .nl",
    "write_mps": "write .mps",
    "hand_off": "hand-off",
    "limit": "limit: numpy → HiGHS",
}


def cells(asked: Any) -> Iterator[Line]:
    for name, case in CASES.items():
        for phase in case.phases:
            yield {"case": name, "phase": phase, "group": case.group}


def measure(cell: Line, asked: Any) -> Line:
    """Medians of one phase."""
    from ..phases import PEERS, measure, peer

    case = CASES[cell["case"]].small() if asked.quick else CASES[cell["case"]]
    facts = {"formulation": case.formulation, "params": case.params, "n": case.n, "p": case.p, "seed": SEED}
    if cell["phase"] in PEERS:
        return facts | peer(cell["phase"], case, asked.peers, asked.repeat)
    return facts | measure(case, cell["phase"], asked.repeat, asked.limit)


def report(lines: list[Line]) -> str:
    """Tables of one run, a section for each group of cases."""
    last = {(line["case"], line["phase"]): line for line in lines}
    groups: dict[str, list[Line]] = {}
    for line in last.values():
        groups.setdefault(line["group"], []).append(line)
    out = [_origin(lines)]
    for group, found in groups.items():
        own = _growth(found) if group.startswith("growth") else _phases(found)
        out += [f"### {group[0].upper()}{group[1:]}", own]
    return "\n\n".join(part for part in [*out, _ratios(last)] if part)


def _origin(lines: list[Line]) -> str:
    found = {", ".join(f"{k} {v}" for k, v in line["versions"].items()) for line in lines}
    for line in lines:
        if "peer_versions" in line:
            found.add(", ".join(f"{k} {v}" for k, v in line["peer_versions"].items()))
    spread = [line["spread"] for line in lines if line.get("runs", 0) > 1]
    noise = f" The runs of one phase lie {statistics.median(spread):.0%} apart (median)." if spread else ""
    load = [line["load"] for line in lines if line.get("load") is not None]
    busy = f" Load per processor: {min(load):.1f} to {max(load):.1f}." if load else ""
    return f"Versions: {'; '.join(sorted(found))}. Seed {lines[0]['seed']}.{noise}{busy}" if lines else ""


def _phases(lines: list[Line]) -> str:
    head = ["case", "phase", "rows", "nonzeros", "seconds", "CPU seconds", "µs a nonzero", "peak MB"]
    rows = []
    for line in lines:
        label = LABELS.get(line["phase"], line["phase"])
        if "error" in line:
            cells = ["", "", line["error"].replace("|", "/"), "", "", ""]
        else:
            cells = [f"{line[k]:,}" for k in ("rows", "nonzeros")]
            cells += [number(line.get(k)) for k in ("seconds", "cpu_seconds", "us_per_nonzero", "peak_mb")]
        rows.append([line["case"], label, *cells])
    return table(head, rows)


def _growth(lines: list[Line]) -> str:
    phases = list(dict.fromkeys(line["phase"] for line in lines))
    rows = []
    for case in dict.fromkeys(line["case"] for line in lines):
        found = {line["phase"]: line for line in lines if line["case"] == case}
        one = next(iter(found.values()))
        cells = [str(one["n"]), str(one["p"]), str(one["params"].get("depth", 0))]
        built = found.get("build", one)
        cells += [f"{built['rows']:,}", f"{built['nonzeros']:,}"]
        for phase in phases:
            line = found.get(phase)
            cells.append(f"{number(line['seconds'])} ({number(line['us_per_nonzero'], 2)})" if line else "")
        rows.append(cells)
    head = ["n", "p", "D", "rows", "nonzeros", *(LABELS.get(p, p) for p in phases)]
    return "Seconds, and in brackets microseconds a nonzero.\n\n" + table(head, rows)


def _ratios(last: dict[tuple[str, str], Line]) -> str:
    ours = ("octsvm", "build")
    pairs: list[tuple[str, list[tuple[str, str]], tuple[str, str]]] = [
        ("build, against the limit", [ours], ("octsvm", "limit")),
        ("build and hand-off, against the limit", [ours, ("octsvm", "hand_off")], ("octsvm", "limit")),
        ("paper's variant against the default, build", [("octsvm-paper", "build")], ours),
        ("pyoptree's build of OCT on iris, against ours", [("iris", "pyoptree")], ("iris", "build")),
        ("odtlearn's build of FlowOCT on iris, against ours", [("iris", "odtlearn")], ("iris", "build")),
    ]
    rows = []
    for label, upper, lower in pairs:
        if not all("seconds" in last.get(key, {}) for key in [*upper, lower]):
            continue
        clocks = ["seconds", "cpu_seconds", *(["us_per_nonzero"] if len(upper) == 1 else [])]
        below = [last[lower][clock] for clock in clocks]
        above = [sum(last[key][clock] for key in upper) for clock in clocks]
        ratios = [number(a / b) if b else "" for a, b in zip(above, below, strict=True)]
        rows.append([label, *ratios, *[""] * (3 - len(ratios))])
    if not rows:
        return ""
    head = ["ratio", "seconds", "CPU seconds", "µs a nonzero"]
    return "### Ratios\n\n" + table(head, rows)


STUDY = Study(
    key=("case", "phase"),
    options={"repeat": 5, "limit": 30.0, "peers": None},
    quick={"repeat": 1},
    quick_cells=None,
    apart=True,
)
