"""Whether this installation works: versions, solvers, and a model of two variables solved for real."""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any, Literal

State = Literal["ok", "missing", "failed"]

TRIAL_SECONDS = 10.0
OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True)
class Check:
    """One line of the report.

    Attributes
    ----------
    name : str
    group : "program", "dependency" or "solver"
    state : "ok", "missing" or "failed"
    needed : bool
        Whether octsvm does not work without it.
    detail : str
        The version found, or what is wrong.
    cure : str
        What to do; empty where all is well.
    """

    name: str
    group: str
    state: State
    needed: bool
    detail: str
    cure: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The line as plain data."""
        return asdict(self)


def examine() -> list[Check]:
    """Check everything, and never raise: what is broken is a line of the report."""
    needed = _requirements()
    checks = [_python(), _itself(), *(_dependency(name, least) for name, least in needed.items())]
    return checks + _solvers(set(needed))


def well(checks: list[Check]) -> bool:
    """Whether everything that is needed is there and works."""
    return all(c.state == "ok" for c in checks if c.needed)


def _python() -> Check:
    version = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        return Check("python", "program", "ok", True, version)
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return Check(
        "python",
        "program",
        "failed",
        True,
        f"{version}, and {oldest} is needed",
        f"Make an environment with Python {oldest} or newer.",
    )


def _itself() -> Check:
    from . import __version__

    return Check("octsvm", "program", "ok", True, __version__)


def _requirements() -> dict[str, str]:
    """Lowest version of each distribution that octsvm needs, extras apart."""
    try:
        lines = metadata.requires("octsvm") or []
    except metadata.PackageNotFoundError:
        return {}
    out = {}
    for line in lines:
        found = re.match(r"([\w.-]+)\s*(?:\(?\s*>=\s*([\d.]+))?", line)
        if found is not None and "extra ==" not in line:
            out[found[1]] = found[2] or ""
    return out


def _older(version: str, least: str) -> bool:
    def key(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text)[:3]]

    return bool(least) and key(version) < key(least)


def _dependency(name: str, least: str) -> Check:
    install = f"pip install --upgrade '{name}>={least}'" if least else f"pip install {name}"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check(name, "dependency", "missing", True, "not installed", install)
    if _older(version, least):
        return Check(name, "dependency", "failed", True, f"{version}, and {least} is needed", install)
    return Check(name, "dependency", "ok", True, version)


def _solvers(needed: set[str]) -> list[Check]:
    try:
        from . import solvers

        table = solvers.table()
    except Exception as error:
        cure = "Reinstall octsvm, or correct the table that OCTSVM_SOLVERS names."
        return [Check("solver table", "solver", "failed", True, _one_line(error), cure)]
    out = []
    for name, spec in table.items():
        embedded = spec.requires is not None and spec.requires.distribution in needed
        classes = ", ".join(spec.classes)
        version = spec.version
        if version is None:
            out.append(
                Check(name, "solver", "missing", embedded, f"not installed; solves {classes}", spec.install)
            )
            continue
        if spec.requires is not None and _older(version, spec.requires.version):
            detail = f"{version}, and {spec.requires.version} is needed"
            out.append(Check(name, "solver", "failed", embedded, detail, spec.install))
            continue
        trouble = _trial(name)
        if trouble:
            cure = f"Reinstall it: {spec.install}. Where it needs a licence, see whether that is found."
            out.append(Check(name, "solver", "failed", embedded, f"{version}, {trouble}", cure))
        else:
            out.append(
                Check(
                    name, "solver", "ok", embedded, f"{version}, solves {classes}; a trial model was solved"
                )
            )
    return out


def _trial(name: str) -> str:
    """Solve min -3x - 2y, 2x + 2y <= 3, x whole, 0 <= x <= 2, 0 <= y <= 1: -4 at (1, 0.5). What went wrong, or ""."""
    try:
        import pyomo.environ as pyo

        from .api import solve

        model = pyo.ConcreteModel(name="trial")
        model.x = pyo.Var(domain=pyo.Integers, bounds=(0, 2))
        model.y = pyo.Var(bounds=(0, 1))
        model.row = pyo.Constraint(expr=2 * model.x + 2 * model.y <= 3)
        model.objective = pyo.Objective(expr=-3 * model.x - 2 * model.y)
        result = solve(model, solver=name, time_limit=TRIAL_SECONDS)
        if abs(result.objective + 4.0) > 1e-6 or abs(model.x.value - 1.0) > 1e-6:
            return f"a trial model came out as {result.objective:g} in place of -4"
    except Exception as error:
        return f"a trial model was not solved: {_one_line(error)}"
    return ""


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
