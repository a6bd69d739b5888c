"""Which solvers are here, in which version, under which licence, and whether each solves a model for real."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from .. import solvers
from ..errors import LicenseTooSmall
from ..solvers import INTERFACES, SolverSpec

State = Literal["ok", "failed", "untried", "missing"]
LicenceState = Literal["none needed", "full", "size-limited", "unlicensed", "unknown"]

SECONDS = 8.0  # for all trials together
ENDING = 1.5  # of them, in which an engine that hangs is told to stop, and killed
LICENCE_WORD = re.compile(r"licen[cs]e", re.IGNORECASE)


@dataclass(frozen=True)
class Installed:
    """An entry of the solver table, and what is here of it."""

    name: str
    title: str
    state: State  # "ok": a model of two variables was solved to its optimum; "untried": it is here, and nothing was solved
    version: str  # the solver's own, as far as it is known; empty where it is missing
    by: str  # the entry that stands in where this one itself is not installed; its own name otherwise
    interface: str  # how it is talked to
    licence: LicenceState
    classes: tuple[str, ...]  # of problems that it solves as they stand
    claim: str  # what its "optimal" proves: "global", "convex" or "none"
    starts: str  # which values of a start it takes: "all", "integers" or "none"
    tested: bool  # False where its entry was written from its manual and never run by us
    install: str  # what to type to get it
    # Of the free licence: "linear" and "quadratic" models, each with "variables", "rows" or their "total".
    ceilings: dict[str, dict[str, int]] = field(default_factory=dict)
    detail: str = ""  # what is wrong with it
    seconds: float = 0.0  # that its trial took

    def to_dict(self) -> dict[str, Any]:
        """The entry as plain data."""
        return asdict(self)


def look(trial: bool = True, names: Iterable[str] | None = None, seconds: float = SECONDS) -> list[Installed]:
    """All entries of the table, or those of ``names``, in order; what is broken is said, and never raised.

    With ``trial`` a model of two variables is solved on each that is here, all at the same time, and its licence is found
    out about; what has not answered after so many ``seconds`` counts as failed.
    """
    chosen = list(solvers.table()) if names is None else list(names)
    out = {name: _here(solvers.get(name)) for name in chosen}
    if trial:
        _try_all(out, seconds)
    for name, one in out.items():
        if one.by != name and one.state != "missing":
            stand_in = out.get(one.by) or look(trial, [one.by], seconds)[0]
            out[name] = replace(
                one,
                **{
                    key: getattr(stand_in, key)
                    for key in ("state", "version", "licence", "ceilings", "detail", "seconds")
                },
            )
    return list(out.values())


def _here(spec: SolverSpec) -> Installed:
    known = solvers.installed(spec.name)
    shown = known or spec
    state: State = "missing" if known is None else "untried"
    detail, version = "", (known.version if known is not None else "") or ""
    if known is not None and known.requires is not None and older(version, known.requires.version):
        state, detail = "failed", f"{version}, and {known.requires.version} is needed"
    licence: LicenceState = "unknown" if shown.licence is not None else "none needed"
    return Installed(
        name=spec.name,
        title=spec.title,
        state=state,
        version="" if version == "installed" else version,
        by=shown.name,
        interface=INTERFACES[shown.backend],
        licence=licence,
        classes=shown.classes,
        claim=shown.claim,
        starts=shown.start.passes,
        tested=shown.tested,
        install=spec.install,
        ceilings=_ceilings(shown),
        detail=detail,
    )


def _ceilings(spec: SolverSpec) -> dict[str, dict[str, int]]:
    if spec.licence is None:
        return {}
    kinds = {"linear": spec.licence.linear, "quadratic": spec.licence.quadratic}
    found = {kind: most.model_dump(exclude_none=True) for kind, most in kinds.items()}
    return {kind: most for kind, most in found.items() if most}


def _try_all(out: dict[str, Installed], seconds: float) -> None:
    """Replace every untried entry that is no other's stand-in by what came of its trial."""
    tried = [
        name
        for name, one in out.items()
        if one.state == "untried"
        and one.by == name
        # A trial at NEOS is a job for others' machines.
        and solvers.get(name).backend != "neos"
    ]
    deadline = time.monotonic() + seconds
    results: dict[str, Installed] = {}

    def work(name: str) -> None:
        # Told in two steps: a trial that was answered counts even where the licence is not known in time.
        results[name] = answered = _tried(out[name], deadline)
        if answered.state == "ok":
            results[name] = replace(answered, licence=_licence(solvers.get(name)))

    # Daemons, so that an engine that hangs does not keep the process from ending.
    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in tried]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    for name in tried:
        late = replace(
            out[name], state="failed", detail=f"it gave no answer in {seconds:g} s", seconds=seconds
        )
        out[name] = results.get(name, late)


def _tried(one: Installed, deadline: float) -> Installed:
    began, spec = time.monotonic(), solvers.get(one.name)
    if not {"LP", "MILP"} & set(spec.classes):
        return replace(one, detail="it takes no linear model, and was not tried")
    try:
        version = _solve(one.name, "MILP" in spec.classes, max(0.1, deadline - began - ENDING))
    except Exception as error:
        # However an engine fails, and whatever its binding raises then, is a line of the report.
        detail = f"a trial model was not solved: {one_line(error)}"
        licensed = spec.licence is not None and spec.licence.required
        bare = licensed and LICENCE_WORD.search(str(error)) is not None
        state: LicenceState = "unlicensed" if isinstance(error, LicenseTooSmall) or bare else one.licence
        return replace(one, state="failed", detail=detail, licence=state, seconds=time.monotonic() - began)
    return replace(one, state="ok", version=version or one.version, seconds=time.monotonic() - began)


def one_line(error: BaseException) -> str:
    """An error as a line of a report."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _licence(spec: SolverSpec) -> LicenceState:
    """Of an engine that has just solved a small model."""
    from ..solving import licences

    if spec.licence is None:
        return "none needed"
    return "size-limited" if licences.limited(spec.name) else "full"


def _solve(name: str, whole: bool, seconds: float) -> str:
    """Solve a trial model; the solver's version."""
    from ..api import solve
    from ..solving.engine import trial_model

    model = trial_model(whole)
    result = solve(model, solver=name, time_limit=seconds)
    if not (abs(result.objective + 4.0) <= 1e-6 and abs(model.x.value - 1.0) <= 1e-6):
        raise ValueError(
            f"its answer to a trial model is {result.objective:g} in place of -4 ({result.stop})"
        )
    known: str = result.solver_version
    return "" if known in ("installed", "remote") else known


def older(version: str, least: str) -> bool:
    """Whether ``version`` is below ``least``, by their first three numbers."""

    def key(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text)[:3]]

    return bool(least) and bool(version) and key(version) < key(least)
