"""Whether this installation works: versions, solvers, and a model of two variables solved for real."""

from __future__ import annotations

import platform
import re
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from typing import Any, Literal

from .. import __version__
from .installed import older, one_line

State = Literal["ok", "missing", "failed"]

# What commands need besides, and the extra that brings it.
OPTIONAL = {"matplotlib": ("pictures, also in reports", "plot"), "jinja2": ("reports", "report")}


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    group: Literal["program", "dependency", "solver"]
    state: State
    needed: bool  # octsvm does not work without it
    detail: str  # the version found, or what is wrong
    cure: str = ""  # what to do; empty where all is well

    def to_dict(self) -> dict[str, Any]:
        """The line as plain data."""
        return asdict(self)


def examine() -> list[Check]:
    """Check everything, and never raise: what is broken is a line of the report."""
    needed = _requirements()
    checks = [
        Check("python", "program", "ok", True, platform.python_version()),
        Check("octsvm", "program", "ok", True, __version__),
    ]
    checks += [_dependency(name, least) for name, least in needed.items()]
    checks += [
        _package(name, False, f"not installed; for {what}", f"pip install 'octsvm[{extra}]'")
        for name, (what, extra) in OPTIONAL.items()
    ]
    return checks + _solvers(set(needed))


def well(checks: list[Check]) -> bool:
    """Whether everything that is needed is there and works."""
    return all(c.state == "ok" for c in checks if c.needed)


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


def _dependency(name: str, least: str) -> Check:
    install = f"pip install --upgrade '{name}>={least}'" if least else f"pip install {name}"
    found = _package(name, True, "not installed", install)
    if found.state == "ok" and older(found.detail, least):
        return replace(found, state="failed", detail=f"{found.detail}, and {least} is needed", cure=install)
    return found


def _package(name: str, needed: bool, missing: str, install: str) -> Check:
    try:
        return Check(name, "dependency", "ok", needed, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Check(name, "dependency", "missing", needed, missing, install)


def _solvers(needed: set[str]) -> list[Check]:
    try:
        from .. import solvers
        from . import installed

        found = installed.look()
        table = solvers.table()
    except Exception as error:
        cure = "Reinstall octsvm, or correct the table that OCTSVM_SOLVERS names."
        return [Check("solver table", "solver", "failed", True, one_line(error), cure)]
    out = []
    for one in found:
        spec = table[one.name]
        embedded = spec.requires is not None and spec.requires.distribution in needed
        classes = ", ".join(one.classes)
        untested = "" if one.tested else "; its entry was written from its manual, and never run by us"
        if one.state == "missing":
            detail = f"not installed; solves {classes}{untested}"
            out.append(Check(one.name, "solver", "missing", embedded, detail, one.install))
            continue
        stands_in = f" ({one.by} stands in for it)" if one.by != one.name else ""
        if one.state == "failed":
            cure = f"Reinstall it: {one.install}. Where it needs a licence, see whether that is found."
            detail = f"{one.version}{stands_in}, {one.detail}" if one.version else one.detail
            out.append(Check(one.name, "solver", "failed", embedded, detail, cure))
            continue
        licence = {"full": ", full licence", "size-limited": ", size-limited licence"}.get(one.licence, "")
        proof = "; a trial model was solved" if one.state == "ok" else f"; {one.detail or 'not tried'}"
        detail = f"{one.version or 'version not told'}{stands_in}{licence}, solves {classes}{proof}{untested}"
        out.append(Check(one.name, "solver", "ok", embedded, detail))
    return out
