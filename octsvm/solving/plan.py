"""Which engine a model goes to, how, and why: decided before anything is solved, from the solver table alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo

from .. import solvers
from ..bridges import LINEAR, leading_to
from ..errors import LicenseTooSmall, SolverUnavailable, UnsupportedProblem
from ..problem_class import ProblemClass, classify
from ..solvers import INTERFACES, SolverSpec
from . import licences

CONES = {
    "quadratic": "cones as quadratic rows",
    "perspective": "cones in perspective form v'v/(u + 1e-5) <= k²u",
    "norm": "cones as smoothed norms",
    "none": "no cones",
}


@dataclass(frozen=True, eq=False)
class Plan:
    """How a model would be solved.

    Attributes
    ----------
    solver, title, version : str
        Entry of the solver table, its name to show, and what is installed.
    problem : ProblemClass
    spec : SolverSpec
    native : bool
        Whether the engine takes the model as it stands; otherwise its cones and squares become linear rows that are
        refined in rounds.
    reasons : tuple of str
        Why this engine.
    rejected : tuple of (str, str)
        Engines that were looked at before it, each with the reason against it.
    rewritten : tuple of str
        What is rewritten for it.
    ceilings : tuple of str
        Ceilings of the free licence, and how the model stands to them.
    slack : float
        Largest big-M times the integrality tolerance, in units of the margin: how far integrality may be bent.
    options : dict
        The solver's own options that are set by default.
    start : str
        "all", "integers" or "none": which values of a start it takes.
    """

    solver: str
    title: str
    version: str
    problem: ProblemClass
    spec: SolverSpec
    native: bool
    reasons: tuple[str, ...]
    rejected: tuple[tuple[str, str], ...]
    rewritten: tuple[str, ...]
    ceilings: tuple[str, ...]
    slack: float
    options: dict[str, Any]
    start: str

    @property
    def interface(self) -> str:
        """How the engine is talked to."""
        return INTERFACES[self.spec.backend]

    def __str__(self) -> str:
        lines = [
            f"solver     {self.solver}: {self.title} {self.version}, {self.interface}",
            f"problem    {self.problem}",
            *(f"because    {reason}" for reason in self.reasons),
            *(f"not        {name}: {reason}" for name, reason in self.rejected),
            *(f"rewritten  {text}" for text in self.rewritten or ("nothing: the model goes as it stands",)),
            *(f"ceiling    {text}" for text in self.ceilings),
            f"start      {STARTS[self.start]}",
        ]
        if self.slack:
            lines.append(
                f"slack      M x integrality tolerance = {self.slack:.2g} of the margin"
                + ("; a good start= lowers M" if self.slack > 0.01 else "")
            )
        if self.options:
            lines.append("options    " + ", ".join(f"{k}={v}" for k, v in self.options.items()))
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, fit for JSON."""
        return {
            "schema": "octsvm.plan",
            "version": 1,
            "solver": self.solver,
            "title": self.title,
            "solver_version": self.version,
            "interface": self.interface,
            "problem": {
                "class": self.problem.name,
                "variables": self.problem.variables,
                "binaries": self.problem.binaries,
                "rows": self.problem.rows,
                "cones": len(self.problem.cones),
            },
            "as_it_stands": self.native,
            "reasons": list(self.reasons),
            "rejected": [{"solver": name, "reason": reason} for name, reason in self.rejected],
            "rewritten": list(self.rewritten),
            "ceilings": list(self.ceilings),
            "slack": self.slack,
            "options": dict(self.options),
            "start": self.start,
        }


STARTS = {
    "all": "is handed over, every variable of it",
    "integers": "its integers are handed over",
    "none": "cannot be handed over; it stays the result to beat",
}


def plan(model: pyo.ConcreteModel, solver: str = solvers.AUTO) -> Plan:
    """How ``model`` would be solved by ``solver``; nothing is solved or changed.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        From :func:`octsvm.build`, or any other with one objective.
    solver : str
        A name of the solver table, or "auto": the first of the table's preferences that is installed, proves this class
        of problem, and whose licence takes the model's size.

    Returns
    -------
    Plan
        Print it.

    Raises
    ------
    UnknownSolver, SolverUnavailable, UnsupportedProblem, LicenseTooSmall
        As :func:`octsvm.solve` would, with the alternatives.
    """
    return next(candidates(model, classify(model), solver))


def candidates(model: pyo.ConcreteModel, problem: ProblemClass, solver: str) -> Iterator[Plan]:
    """Plans in the order of preference: one for a named solver, all that fit for "auto".

    Raises
    ------
    UnknownSolver, SolverUnavailable, UnsupportedProblem, LicenseTooSmall
        Where there is none.
    """
    if solver != solvers.AUTO:
        spec = solvers.require(solver)
        native, rewritten = _route(problem, spec, _described(model))
        yield _make(model, problem, solver, spec, native, rewritten, (f"you asked for {solver}",), ())
        return
    rejected: list[tuple[str, str]] = []
    found = False
    for name in solvers.table().prefer:
        known = solvers.installed(name)
        if known is None:
            rejected.append((name, "not installed"))
            continue
        fits, against = _fit(problem, known)
        if fits is None:
            rejected.append(
                (name, f"its licence: {against}" if against else f"does not solve a {problem.name}")
            )
            continue
        if known.claim == "none" or (known.claim == "convex" and problem.unmarked):
            rejected.append((name, "its answer would be no proof"))
            continue
        found = True
        reason = f"the first of the table's preferences that is installed and proves a {problem.name}"
        rewritten = _rewritten(problem, known, fits)
        yield _make(model, problem, name, known, fits, rewritten, (reason,), tuple(rejected))
        rejected.append((name, "was tried before"))
    if not found:
        raise SolverUnavailable(
            f"No installed solver takes this model, a {problem}: "
            + "; ".join(f"{name}: {reason}" for name, reason in rejected)
            + ". Install one of them, or write the model with octsvm.write for a solver elsewhere."
        )


def _fit(problem: ProblemClass, spec: SolverSpec) -> tuple[bool | None, str]:
    """Whether the engine takes the model as it stands (None: not at all), and the ceiling that is in the way."""
    whole = problem.name in spec.classes and not (problem.cones and spec.cone_form == "none")
    refined = leading_to(problem, tuple(c for c in LINEAR if c in spec.classes)) is not None
    against = ""
    for native, possible in ((True, whole), (False, refined)):
        if possible:
            against = licences.too_large(spec, *licences.sizes(problem, native))
            if not against:
                return native, ""
    return None, against


def _described(model: pyo.ConcreteModel) -> str:
    """The model in the words of who built it."""
    info = getattr(model, "info", None)
    if info is None:
        return "this model"
    depth = getattr(info.params, "depth", None)
    return f"{info.formulation} on {info.data.n} training rows and {info.data.p} features" + (
        "" if depth is None else f" with depth {depth}"
    )


def _route(problem: ProblemClass, spec: SolverSpec, described: str) -> tuple[bool, tuple[str, ...]]:
    """Whether the engine takes the model as it stands, and what is rewritten.

    Raises
    ------
    UnsupportedProblem, LicenseTooSmall
    """
    native, against = _fit(problem, spec)
    if native is not None:
        return native, _rewritten(problem, spec, native)
    if against:
        raise LicenseTooSmall(_too_small(problem, spec, against, described))
    raise UnsupportedProblem(_unsupported(problem, spec))


def _rewritten(problem: ProblemClass, spec: SolverSpec, native: bool) -> tuple[str, ...]:
    if not (problem.cones or problem.squared_norms):
        return ()
    if not native:
        return ("cones and squares as linear rows, refined until bound and tree meet (outer approximation)",)
    if problem.cones and spec.format in ("nl",) and spec.cone_form in ("perspective", "norm"):
        return (f"{CONES[spec.cone_form]}, a relaxation by at most 5e-6 of u",)
    return ()


def _make(
    model: pyo.ConcreteModel,
    problem: ProblemClass,
    name: str,
    spec: SolverSpec,
    native: bool,
    rewritten: tuple[str, ...],
    reasons: tuple[str, ...],
    rejected: tuple[tuple[str, str], ...],
) -> Plan:
    info = getattr(model, "info", None)
    largest = max(info.big_m["scores"], info.big_m["hinge"]) if info is not None and info.big_m else 0.0
    variables, rows, quadratic = licences.sizes(problem, native)
    most = licences.ceiling(spec, quadratic)
    ceilings: tuple[str, ...] = ()
    if most is not None:
        limits = [
            f"{have} of {limit} {what}"
            for have, limit, what in (
                (variables, most.variables, "variables"),
                (rows, most.rows, "rows"),
                (variables + rows, most.total, "rows and variables together"),
            )
            if limit is not None
        ]
        kind = "quadratic" if quadratic else "linear"
        ceilings = (f"of the free licence for {kind} models: {', '.join(limits)}",)
    if spec.name != name:
        reasons = (*reasons, f"{name} itself is not installed, and {spec.name} stands in for it")
    return Plan(
        solver=name,
        title=spec.title,
        version=spec.version or "",
        problem=problem,
        spec=spec,
        native=native,
        reasons=reasons,
        rejected=rejected,
        rewritten=rewritten,
        ceilings=ceilings,
        slack=largest * spec.tolerances.integrality,
        options=dict(spec.fixed)
        | {
            spec.native(n) or n: v
            for n, v in (
                ("feasibility_tolerance", spec.tolerances.feasibility),
                ("integrality_tolerance", spec.tolerances.integrality),
            )
            if n in spec.options
        },
        start=spec.start.passes,
    )


def others(problem: ProblemClass, but: str) -> list[str]:
    """Installed solvers that take the problem, in the order of preference."""
    there = [(name, solvers.installed(name)) for name in solvers.table().prefer if name != but]
    return [name for name, spec in there if spec is not None and _fit(problem, spec)[0] is not None]


def _too_small(problem: ProblemClass, spec: SolverSpec, against: str, described: str) -> str:
    there = others(problem, spec.name)
    way = (
        f"Of the installed solvers, {', '.join(there)} take it (solver='auto' chooses)."
        if there
        else "Install another (`octsvm solvers`), or write the model with octsvm.write."
    )
    return (
        f"The licence of {spec.title} that is installed is too small for {described}: that is {against}. {way} A full "
        f"licence takes it, and so does a model of fewer rows, levels or features. ({spec.title}: {spec.install})"
    )


def _unsupported(problem: ProblemClass, spec: SolverSpec) -> str:
    cause = (
        f" The rows {', '.join(problem.unmarked[:3])} are not linear and carry no mark that a bridge knows."
        if problem.unmarked
        else ""
    )
    there = others(problem, spec.name)
    way = (
        f"Of the installed solvers, {', '.join(there)} take it."
        if there
        else (
            "Write the cone with blocks.add_margin, whose quadratic rows are marked, choose norm='l1', or write the model "
            "for another solver with octsvm.write."
        )
    )
    return (
        f"{spec.name} cannot take this model: it is a {problem}, and {spec.name} solves "
        f"{', '.join(spec.classes)}.{cause} {way}"
    )
