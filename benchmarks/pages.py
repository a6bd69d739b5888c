"""Committed results on the pages of docs/: written by one command, and checked against the code that they measure.

Between ``<!-- NAME -->`` and ``<!-- /NAME -->`` a page shows the report of the study NAME, or a part of a report by its name,
and below it which version was measured. Lines of results say so themselves; for those that were made before lines did,
results/origins.json has the commit, or where that is not known the one that added them.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from .run import read
from .study import RESULTS, ROOT, Line, Study, find, names, results_of

REGION = re.compile(r"(<!-- (\w+) -->\n)(.*?)(\n<!-- /\2 -->)", re.DOTALL)
DOCS = ROOT / "docs"


def results(study: Study, path: Path) -> list[Line]:
    """The last line of each cell of a file; a file of another kind is left to the study."""
    return study.last(read(path)) if path.suffix == ".jsonl" else [{"source": str(path)}]


def committed() -> list[str]:
    """Names of the studies whose results are in the repository."""
    return [name for name in names() if results_of(name).exists()]


def origins(name: str) -> tuple[list[str], list[str]]:
    """The commits whose code made the committed results, and those that brought results of older code."""
    lines = results(find(name), results_of(name))
    measured = list(dict.fromkeys(line["commit"] for line in lines if line.get("commit")))
    if all(line.get("commit") for line in lines):
        return measured, []
    earlier = json.loads((RESULTS / "origins.json").read_text(encoding="utf-8"))
    return measured + earlier["measured"].get(name, []), earlier["added"].get(name, [])


def origin(name: str) -> str:
    """What a page says of the version that was measured."""
    said = ("Measured at {}.", "Added with {}, measured by code that is no newer.")
    return " ".join(
        words.format(f"commit{'s' * (len(commits) > 1)} {', '.join(commits)}")
        for words, commits in zip(said, origins(name), strict=True)
        if commits
    )


def regions() -> dict[str, tuple[str, Callable[[list[Line]], str]]]:
    """What a page may show: the study, and what makes the text of its lines."""
    out: dict[str, tuple[str, Callable[[list[Line]], str]]] = {}
    for name in committed():
        study = find(name)
        out |= {part: (name, show) for part, show in {name: study.report, **study.parts}.items()}
    return out


def generated(page: Path) -> str:
    """The text of a page with its regions made again."""
    known = regions()

    def region(found: re.Match[str]) -> str:
        if found[2] not in known:
            return found[0]
        name, show = known[found[2]]
        text = show(results(find(name), results_of(name)))
        return f"{found[1]}{text}\n\n{origin(name)}{found[4]}"

    return REGION.sub(region, page.read_text(encoding="utf-8"))


def differing() -> dict[Path, str]:
    """Pages that do not show the committed results, and what they should be."""
    found = {page: generated(page) for page in sorted(DOCS.glob("*.md"))}
    return {page: text for page, text in found.items() if text != page.read_text(encoding="utf-8")}


def write() -> list[Path]:
    """Write the pages that differ."""
    out = differing()
    for page, text in out.items():
        page.write_text(text, encoding="utf-8")
    return list(out)


def changes_since(commit: str, code: tuple[str, ...]) -> int | None:
    """How many commits have changed the code since; None where that commit is not known here."""
    done = subprocess.run(
        ["git", "rev-list", "--count", "--no-merges", f"{commit.removesuffix('-dirty')}..HEAD", "--", *code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    return None if done.returncode else int(done.stdout)


def age(name: str) -> str:
    """Whether the committed results are older than the code they measure."""
    code = find(name).code
    commits = [commit for found in origins(name) for commit in found]
    since = [changes_since(commit, code) for commit in commits]
    if not since or None in since:
        return f"{name}: which code was measured is not known here"
    of = ", ".join(commits)
    count = max(n for n in since if n is not None)
    if not count:
        return f"{name}: as new as the code ({of})"
    return f"{name}: older than the code: since {of} {count} commits have changed {', '.join(code)}"
