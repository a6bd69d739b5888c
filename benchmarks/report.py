"""Results as Markdown: the tables of one run, and the ratios of two."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

Line = dict[str, Any]
LABELS = {
    "write_lp": "write .lp",
    "write_nl": "write .nl",
    "write_mps": "write .mps",
    "hand_off": "hand-off",
    "limit": "limit: numpy → HiGHS",
}


def _last(lines: Iterable[Line]) -> dict[tuple[str, str], Line]:
    """The last line of each case and phase."""
    return {(line["case"], line["phase"]): line for line in lines}


def _number(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}g}" if value < 1000 else f"{value:,.0f}"


def _table(head: list[str], rows: list[list[str]]) -> str:
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(out + ["| " + " | ".join(row) + " |" for row in rows])


def report(lines: list[Line]) -> str:
    """Tables of one run, a section for each group of cases."""
    last = _last(lines)
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
            rows.append([line["case"], label, "", "", line["error"].replace("|", "/"), "", "", ""])
            continue
        rows.append(
            [
                line["case"],
                label,
                f"{line['rows']:,}",
                f"{line['nonzeros']:,}",
                _number(line["seconds"]),
                _number(line["cpu_seconds"]),
                _number(line["us_per_nonzero"]),
                _number(line.get("peak_mb")),
            ]
        )
    return _table(head, rows)


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
            cells.append(f"{_number(line['seconds'])} ({_number(line['us_per_nonzero'], 2)})" if line else "")
        rows.append(cells)
    head = ["n", "p", "D", "rows", "nonzeros", *(LABELS.get(p, p) for p in phases)]
    return "Seconds, and in brackets microseconds a nonzero.\n\n" + _table(head, rows)


def _ratios(last: dict[tuple[str, str], Line]) -> str:
    pairs = [
        ("build, against the limit", ("octsvm", "build"), ("octsvm", "limit")),
        ("build and hand-off, against the limit", None, ("octsvm", "limit")),
        ("paper's variant against the default, build", ("octsvm-paper", "build"), ("octsvm", "build")),
        ("pyoptree's build of OCT on iris, against ours", ("iris", "pyoptree"), ("iris", "build")),
        ("odtlearn's build of FlowOCT on iris, against ours", ("iris", "odtlearn"), ("iris", "build")),
    ]
    rows = []
    for label, upper, lower in pairs:
        parts = [("octsvm", "build"), ("octsvm", "hand_off")] if upper is None else [upper]
        if not all("seconds" in last.get(key, {}) for key in [*parts, lower]):
            continue
        clocks = []
        for clock in ("seconds", "cpu_seconds"):
            below = last[lower][clock]
            clocks.append(_number(sum(last[key][clock] for key in parts) / below) if below else "")
        a_nonzero = ""
        if upper is not None:
            a_nonzero = _number(last[upper]["us_per_nonzero"] / last[lower]["us_per_nonzero"])
        rows.append([label, *clocks, a_nonzero])
    if not rows:
        return ""
    head = ["ratio", "seconds", "CPU seconds", "µs a nonzero"]
    return "### Ratios\n\n" + _table(head, rows)


def compare(before: list[Line], after: list[Line]) -> str:
    """after/before for what both runs measured, and whether the difference exceeds the runs' own spread."""
    old, new = _last(before), _last(after)
    rows, ratios = [], []
    for key in old.keys() & new.keys():
        a, b = old[key], new[key]
        if "error" in a or "error" in b:
            continue
        same = all(a[k] == b[k] for k in ("n", "p", "params", "quick"))
        ratio = b["seconds"] / a["seconds"]
        ratios.append(ratio)
        spread = max(a["spread"], b["spread"])
        once = min(a["runs"], b["runs"]) == 1
        if not same:
            verdict = "not the same case"
        elif once:
            verdict = "one run only"
        else:
            verdict = "within the noise" if abs(ratio - 1) <= spread else "faster" if ratio < 1 else "slower"
        rows.append(
            [
                key[0],
                LABELS.get(key[1], key[1]),
                _number(a["seconds"]),
                _number(b["seconds"]),
                _number(ratio),
                _number(b["cpu_seconds"] / a["cpu_seconds"]) if a["cpu_seconds"] else "",
                f"{spread:.0%}",
                verdict,
            ]
        )
    if not rows:
        return "The two runs have no case and phase in common."
    rows.sort()
    head = ["case", "phase", "before", "after", "ratio", "ratio of CPU", "spread", ""]
    note = (
        f"Median ratio {_number(statistics.median(ratios))} over {len(ratios)} phases. A ratio within the spread (slowest "
        "less fastest run, over the median) says nothing; on a busy machine the ratio of CPU times is the steadier one. "
        "Runs on different machines or versions compare machines and versions."
    )
    kept = sorted({str(x["versions"]) for x in before} ^ {str(x["versions"]) for x in after})
    if kept:
        note += " The versions of the two runs differ."
    return note + "\n\n" + _table(head, rows)
