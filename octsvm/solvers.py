"""The solver table: solvers.yaml, read and validated once."""

from __future__ import annotations

import difflib
import importlib.metadata
import importlib.resources
import importlib.util
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from .errors import InvalidSolverTable, SolverUnavailable, UnknownSolver

ENVIRONMENT = "OCTSVM_SOLVERS"


class Requirement(BaseModel):
    """The distribution that brings a solver's interface."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    distribution: str
    module: str
    version: str


class Tolerances(BaseModel):
    """Feasibility and integrality tolerance that are set on every solve."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    feasibility: float = 1e-6
    integrality: float = 1e-6


class SolverSpec(BaseModel):
    """One entry of the solver table."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    backend: str
    requires: Requirement
    classes: tuple[str, ...]
    options: dict[str, str]
    fixed: dict[str, Any] = {}
    tolerances: Tolerances = Tolerances()
    install: str
    name: str = ""

    @property
    def version(self) -> str | None:
        """Version of the installed interface, None where it is missing."""
        if importlib.util.find_spec(self.requires.module) is None:
            return None
        try:
            return importlib.metadata.version(self.requires.distribution)
        except importlib.metadata.PackageNotFoundError:
            return None


def table_path() -> Path:
    """Where the solver table is: $OCTSVM_SOLVERS, else in the package, else in the project root.

    Raises
    ------
    InvalidSolverTable
        Naming the places that were searched.
    """
    chosen = os.environ.get(ENVIRONMENT)
    if chosen:
        if not Path(chosen).is_file():
            raise InvalidSolverTable(f"${ENVIRONMENT} names {chosen!r}, and there is no such file.")
        return Path(chosen)
    package = Path(str(importlib.resources.files(__package__)))
    places = [package / "solvers.yaml", package.parent / "solvers.yaml"]
    for place in places:
        if place.is_file():
            return place
    raise InvalidSolverTable(
        f"The solver table solvers.yaml was not found; looked for {' and '.join(map(str, places))}. "
        f"Reinstall octsvm, or name a table in ${ENVIRONMENT}."
    )


@lru_cache(maxsize=8)
def _read(path: Path, changed: float) -> dict[str, SolverSpec]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidSolverTable(f"{path}: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("solvers"), dict):
        raise InvalidSolverTable(f"{path}: a table `solvers:` of entries by name is missing.")
    known = content.get("classes", [])
    table = {}
    for name, entry in content["solvers"].items():
        try:
            spec = SolverSpec(**(entry | {"name": str(name)}))
        except (ValidationError, TypeError) as error:
            raise InvalidSolverTable(f"{path}, solver {name!r}: {error}") from None
        wrong = [c for c in spec.classes if c not in known]
        if wrong:
            raise InvalidSolverTable(
                f"{path}, solver {name!r}: {wrong[0]!r} is no problem class; there are {known}."
            )
        table[str(name)] = spec
    return table


def table() -> dict[str, SolverSpec]:
    """All entries by name."""
    path = table_path()
    return _read(path, path.stat().st_mtime)


def get(name: str) -> SolverSpec:
    """The entry called ``name``, whether installed or not.

    Raises
    ------
    UnknownSolver
        With the nearest name.
    """
    entries = table()
    if name not in entries:
        close = difflib.get_close_matches(str(name).lower(), entries, n=1, cutoff=0.4)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UnknownSolver(
            f"{name!r} is not in the solver table.{hint} There are: {', '.join(entries)}. Another solver takes the model "
            "of octsvm.build through Pyomo's SolverFactory, or a file of octsvm.write."
        )
    return entries[name]


def require(name: str) -> SolverSpec:
    """The entry called ``name``, installed.

    Raises
    ------
    UnknownSolver, SolverUnavailable
    """
    spec = get(name)
    if spec.version is None:
        raise SolverUnavailable(
            f"{name} is not installed here: the module {spec.requires.module!r} "
            f"(distribution {spec.requires.distribution} >= {spec.requires.version}) was not found. {spec.install}"
        )
    return spec
