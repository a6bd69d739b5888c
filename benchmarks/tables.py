"""Results as Markdown: tables, figures, and the comparison of two runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from .study import Line, Study


def table(head: Sequence[str] | str, rows: Iterable[Sequence[Any] | str], align: str = "---|") -> str:
    """A Markdown table of lists or of texts with " | " between the cells; ``align`` is repeated, or all of the second row."""
    head = head.split(" | ") if isinstance(head, str) else head
    rule = align if align.startswith("|") else "|" + align * len(head)
    texts = (row if isinstance(row, str) else " | ".join(map(str, row)) for row in rows)
    return "\n".join([f"| {' | '.join(head)} |", rule, *(f"| {text} |" for text in texts)])


def number(value: float | None, digits: int = 3) -> str:
    """Three digits; thousands whole."""
    return "" if value is None else f"{value:.{digits}g}" if value < 1000 else f"{value:,.0f}"


def disagreements(
    lines: Sequence[Line], cell: Sequence[str], who: Sequence[str], tolerance: float
) -> list[str]:
    """Bounds above an objective, and optima that are none, by what another run (``who``) found of the same ``cell``.

    ``tolerance`` is relative.
    """
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(", ".join(str(line[name]) for name in cell), []).append(line)
    out = []
    for name, group in groups.items():
        best = min(line["objective"] for line in group)
        most = best + tolerance * abs(best)
        for line in group:
            by = f"{name}: {', '.join(str(line[k]) for k in who)}"
            if line["bound"] > most:
                out.append(f"{by} has the bound {line['bound']:.8g}, and {best:.8g} was found")
            if line["status"] == "optimal" and line["objective"] > most:
                out.append(f"{by} calls {line['objective']:.8g} optimal, and {best:.8g} was found")
    return out


def compare(study: Study, before: list[Line], after: list[Line]) -> str:
    """after/before for the cells that both runs measured, and whether the difference exceeds the runs' own spread."""
    old, new = ({study.key_of(line): line for line in lines} for lines in (before, after))
    rows, ratios = [], []
    for key in sorted(old.keys() & new.keys()):
        a, b = old[key], new[key]
        if not a.get("seconds") or not b.get("seconds"):
            continue
        ratio = b["seconds"] / a["seconds"]
        ratios.append(ratio)
        name = ", ".join(str(b[k]) for k in study.key)
        cells = [name, number(a["seconds"]), number(b["seconds"]), number(ratio)]
        cells += [_ratio(a, b, "cpu_seconds") or _ratio(a, b, "cpu"), _ratio(a, b, "objective", 6)]
        rows.append([*cells, _verdict(a, b, ratio)])
    if not rows:
        return "The two runs have no timed cell in common."
    note = (
        f"Median ratio {number(statistics.median(ratios))} over {len(ratios)} cells. A ratio within the spread (slowest "
        "less fastest run, over the median) says nothing; on a busy machine the ratio of CPU times is the steadier one. "
        "Runs on different machines or versions compare machines and versions."
    )
    if {str(x.get("versions")) for x in before} ^ {str(x.get("versions")) for x in after}:
        note += " The versions of the two runs differ."
    head = ["cell", "before", "after", "ratio", "ratio of CPU", "ratio of objectives", ""]
    return note + "\n\n" + table(head, rows)


def _ratio(a: Line, b: Line, name: str, digits: int = 3) -> str:
    return number(b[name] / a[name], digits) if a.get(name) and b.get(name) is not None else ""


def _verdict(a: Line, b: Line, ratio: float) -> str:
    if any(a.get(k) != b.get(k) for k in ("n", "p", "params", "quick", "limit")):
        return "not the same case"
    if "spread" not in a or min(a["runs"], b["runs"]) == 1:
        return "one run only"
    spread = max(a["spread"], b["spread"])
    return (
        f"within the noise ({spread:.0%})"
        if abs(ratio - 1) <= spread
        else "faster"
        if ratio < 1
        else "slower"
    )
