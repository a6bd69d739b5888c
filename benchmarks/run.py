"""The runner of all studies: measures the cells that are not in the file of results yet, and appends a line for each."""

from __future__ import annotations

import fnmatch
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib.metadata import version
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from .study import ROOT, Line, SkippedError, Study, find

SHOWN = ("status", "objective", "bound", "accuracy", "seconds", "error", "faults")  # while it runs


@cache
def versions() -> dict[str, str]:
    """Of Python and the packages whose speed is measured."""
    packages = ("octsvm", "pyomo", "numpy", "scipy", "highspy")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


@cache
def commit(folder: Path = ROOT) -> str:
    """The commit of a checkout, with "-dirty" behind it where files differ; empty outside a Git checkout."""
    done = subprocess.run(
        ["git", "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty"],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    return done.stdout.strip()


def load() -> float | None:
    """How many processes wanted each processor in the last minute; None where the system does not say."""
    return round(os.getloadavg()[0] / (os.cpu_count() or 1), 2) if hasattr(os, "getloadavg") else None


def read(path: Path) -> list[Line]:
    """The lines of a file of results, none where there is no file; one that was cut off is left out."""
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return lines


def chosen(cells: Iterable[Line], only: dict[str, list[str]]) -> Iterator[Line]:
    """The cells whose fields match one of the patterns each."""
    for cell in cells:
        for name in only:
            if name not in cell:
                raise SystemExit(f"A cell has no {name!r}. It has: {', '.join(cell)}.")
        if all(any(fnmatch.fnmatch(str(cell[k]), p) for p in patterns) for k, patterns in only.items()):
            yield cell


def measured(study: Study, name: str, cell: Line, asked: Any) -> Line:
    """The line of a cell, with what made it."""
    package = getattr(asked, "package", None)
    apart = study.apart and (package is not None or not asked.quick)
    assert study.measure is not None
    found = in_process(name, cell, asked) if apart else study.measure(cell, asked)
    origin = {"quick": asked.quick, "load": load(), "commit": commit(package or ROOT), "versions": versions()}
    return cell | found | origin


def in_process(name: str, cell: Line, asked: Any) -> Line:
    """What a cell measures, in a process of its own."""
    options = {k: v for k, v in vars(asked).items() if k != "done"}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(measured_there, name, cell, options).result()


def measured_there(name: str, cell: Line, options: dict[str, Any]) -> Line:
    """What the process of a cell does."""
    os.dup2(2, 1)  # what libraries print is no part of the report
    package = options.get("package")
    if package:
        sys.path.insert(0, str(package))
        import octsvm

        if not Path(octsvm.__file__ or "").resolve().is_relative_to(package):
            raise RuntimeError(f"octsvm was imported from {octsvm.__file__}, and not from {package}")
    if options.get("clock") == "processor":
        from .processor_clock import start

        start()
    study = find(name)
    assert study.measure is not None
    return study.measure(cell, study.asked(**options))


def run(name: str, out: Path, asked: Any, only: dict[str, list[str]], again: bool = False) -> int:
    """Measure what is not in ``out`` yet (with ``again`` all of it); 1 where anything failed, 2 where nothing was chosen."""
    study = find(name)
    if study.cells is None:
        raise SystemExit(f"{name} has no cells of its own: its results are made by `{study.made_by}`.")
    asked.done[:] = read(out)
    if out.exists() and not out.read_bytes().endswith(b"\n"):
        with out.open("a", encoding="utf-8") as file:
            file.write("\n")  # behind a line that was cut off
    known = {
        study.key_of(line) for line in asked.done if line.get("quick", False) == asked.quick and not again
    }
    bad = any_chosen = there = 0
    for cell in islice(chosen(study.cells(asked), only), study.quick_cells if asked.quick else None):
        any_chosen += 1
        if study.key_of(cell) in known:
            there += 1
            continue
        label = f"{name}: " + ", ".join(str(cell[k]) for k in study.key if k in cell)
        try:
            line = measured(study, name, cell, asked)
        except SkippedError as missing:
            print(f"SKIPPED {label}: {missing}")
            continue
        except Exception as error:
            if not study.apart or asked.quick:
                raise
            print(f"FAILED {label}: {error}", file=sys.stderr, flush=True)
            bad += 1
            continue
        asked.done.append(line)
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, default=float) + "\n")
        bad += bool(line.get("faults"))
        said = ", ".join(f"{k} {line[k]}" for k in SHOWN if line.get(k) not in (None, []))
        print(f"{label}: {said}", file=sys.stderr, flush=True)
    if there:
        print(f"{there} cells were in {out} already; --again measures them again.", file=sys.stderr)
    if not any_chosen and only:
        values = {k: sorted({str(c[k]) for c in study.cells(asked) if k in c}) for k in only}
        told = "; ".join(f"{k} is one of {', '.join(v)}" for k, v in values.items())
        print(f"No cell of {name} was chosen: {told}.", file=sys.stderr)
        return 2
    return 1 if bad else 0
