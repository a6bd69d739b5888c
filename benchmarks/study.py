"""What a study is, the options that it may take, and the registry: every file of studies/ is one."""

from __future__ import annotations

import json
import os
import pkgutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from . import studies

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
Line = dict[str, Any]
REQUIRED: Any = object()  # default of an option that has to be given

# Every option that a study may take, with its type and what it means.
OPTIONS: dict[str, tuple[type, str]] = {
    "data": (Path, "folder with one CSV a data set, label last"),
    "limit": (float, "seconds of a solve"),
    "count": (int, "how many instances, repetitions or fits, as the study says"),
    "seed": (int, "the first seed"),
    "repeat": (int, "runs of each, of which the median counts"),
    "rows": (int, "rows of the model"),
    "solver": (str, "solvers, with commas between them"),
    "who": (str, "who answers, with commas between them"),
    "package": (Path, "the checkout whose octsvm is measured (this one)"),
    "peers": (str, "a Python that has the other packages, or 'install', which makes one"),
    "clock": (str, "of limits and times: wall, or processor"),
    "every": (bool, "all combinations, and not the study's own choice of them"),
}


class SkippedError(Exception):
    """A cell that cannot be measured here; the message says what is missing."""


@dataclass(frozen=True)
class Study:
    """What a study is; its file has three functions besides.

    ``cells`` gives dictionaries of JSON values, which may depend on ``asked.done``, the lines there are so far;
    ``measure`` gives what is added to a cell, ``report`` the text of the lines. Lines with the same ``key`` are one cell,
    of which the last counts. A line with ``faults`` makes the exit code 1. With ``apart`` each cell has a process
    of its own. ``code`` names the files and folders whose speed or answers are measured.
    """

    key: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    quick: dict[str, Any] = field(default_factory=dict)  # options of --quick
    quick_cells: int | None = 2  # how many cells --quick runs; None for all
    apart: bool = False
    code: tuple[str, ...] = ("octsvm", "formulations")
    # Of the report, or beside it: `report NAME --part PART` prints one, and a page may show it.
    parts: dict[str, Callable[[list[Line]], str]] = field(default_factory=dict)
    results: str = ""  # file in results/, where it is not NAME.jsonl
    made_by: str = ""  # the command that makes the results, where it is not `run`
    # The functions of these names in the study's file, filled in by `find`.
    cells: Callable[[Any], Iterable[Line]] | None = None
    measure: Callable[[Line, Any], Line] | None = None
    report: Callable[[list[Line]], str] = str

    def asked(self, **changes: Any) -> Any:
        """The options of a run, as ``cells`` and ``measure`` get them."""
        return SimpleNamespace(**{"quick": False, "done": [], **self.options, **changes})

    def all_parts(self, lines: list[Line]) -> str:
        """The report of a study whose file has no other one."""
        return "\n\n".join(part(lines) for part in self.parts.values())

    def key_of(self, line: Line) -> str:
        """What tells cells apart; lists and tuples are the same."""
        return json.dumps([line.get(name) for name in self.key], default=float)

    def last(self, lines: list[Line]) -> list[Line]:
        """The last line of each cell, in the order of the first ones."""
        return list({self.key_of(line): line for line in lines}.values())


def kept(result: Any, *fields: str) -> Line:
    """What a line keeps of a result, or of anything with these attributes."""
    return {name: getattr(result, name) for name in fields}


def every(**fields: Iterable[Any]) -> Iterator[Line]:
    """A cell for each combination of the fields' values; the last field varies fastest."""
    return (dict(zip(fields, values, strict=True)) for values in product(*fields.values()))


class Watch:
    """Seconds since it was made: of the clock, and of a processor, for this process and its children that ended."""

    def __init__(self) -> None:
        self._began = self._now()

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.monotonic(), time.process_time() + sum(os.times()[2:4])

    def seconds(self) -> Line:
        """What a line keeps of it."""
        return {
            name: round(now - began, 3)
            for name, began, now in zip(("seconds", "cpu"), self._began, self._now(), strict=True)
        }


def peak_memory() -> float | None:
    """Most memory that this process has held, in MB; None where the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20, 1)


def names() -> list[str]:
    """Names of all studies."""
    return sorted(module.name for module in pkgutil.iter_modules(studies.__path__))


def find(name: str) -> Study:
    """The study of that name."""
    if name not in names():
        raise SystemExit(f"There is no study {name!r}. There are: {', '.join(names())}.")
    module = import_module(f"benchmarks.studies.{name}")
    functions = {what: vars(module)[what] for what in ("cells", "measure", "report") if what in vars(module)}
    return replace(module.STUDY, **{"report": module.STUDY.all_parts, **functions})


def summary(name: str) -> str:
    """First line of the study's docstring."""
    return (import_module(f"benchmarks.studies.{name}").__doc__ or "").strip().splitlines()[0]


def results_of(name: str) -> Path:
    """Where the committed results of a study are, or would be."""
    return RESULTS / (find(name).results or f"{name}.jsonl")
