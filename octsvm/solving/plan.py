"""Which engine a model goes to, how, and why: decided before anything is solved, from the solver table alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyomo.environ as pyo

from .. import bridges, solvers
from ..bridges import LINEAR, leading_to
from ..errors import LicenseTooSmall, SolverUnavailable, UnsupportedProblem
from ..formulations.base import ModelInfo
from ..formulations.registry import formulation
from ..options import PLAN, SolveOptions, Unasked, require_known, takes_options
from ..problem_class import CLASSES, ProblemClass, classify, require_plain
from ..solvers import INTERFACES, SolverSpec
from . import licences
from .certificate import scores_of

CONES = {
    "quadratic": "cones as quadratic rows",
    "perspective": "cones in perspective form v'v/(u + 1e-5) <= k²u",
    "norm": "cones as smoothed norms",
    "none": "no cones",
}


SLACK_WARNING = 0.01  # of M times the integrality tolerance, in units of the margin
TRIED, REWRITES = "was tried before", "takes it rewritten, and another one as it stands"


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
    bridge : str or None
        Name of the bridge that makes it linear where the engine does not take it as it stands.
    slack_advice : str
        What to do where ``slack`` is too much; empty where it is not.
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
    bridge: str | None = None
    slack_advice: str = ""

    @property
    def interface(self) -> str:
        """How the engine is talked to."""
        return INTERFACES[self.spec.backend]

    def __str__(self) -> str:
        # The version is that of the Python package where there is one: some number it otherwise than the solver.
        package = self.spec.requires
        version = f"({package.distribution} {self.version})" if package else self.version
        lines = [
            f"solver     {self.solver}: {self.title} {version}, {self.interface}",
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
                + (f"; {self.slack_advice}" if self.slack_advice else "")
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


@takes_options(PLAN)
def plan(model: pyo.ConcreteModel, solver: str = solvers.AUTO, **options: Any) -> Plan:
    """How ``model`` would be solved by ``solver``; nothing is solved or changed.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        From :func:`octsvm.build`, or any other with one objective.
    solver : str
        A name of the solver table, or "auto": the first of the table's preferences that is installed, proves this class
        of problem, and whose licence takes the model's size; one that takes the model as it stands before one that has
        its cones rewritten.
    {options}

    Returns
    -------
    Plan
        Print it.

    Raises
    ------
    UnknownSolver, SolverUnavailable, UnsupportedProblem, LicenseTooSmall
        As :func:`octsvm.solve` would, with the alternatives.
    InvalidParameter
        Where no bridge is called ``bridge``.
    """
    require_known(PLAN, options)
    asked = SolveOptions(solver=solver, **options)
    own_search = not asked.engine_wanted
    return next(candidates(model, classify(model), asked.solver, asked.bridge, own_search))


def candidates(
    model: pyo.ConcreteModel,
    problem: ProblemClass,
    solver: str,
    bridge: str | None = None,
    own_search: bool = False,
) -> Iterator[Plan]:
    """Plans in the order of preference: one for a named solver, all that fit for "auto".

    With ``own_search`` a search of our own that takes the model comes first.

    Raises
    ------
    UnknownSolver, SolverUnavailable, UnsupportedProblem, LicenseTooSmall, InvalidParameter
        Where there is none.
    """
    require_plain(model)
    asked: tuple[str, ...] = ()
    if bridge is not None:
        leading_to(problem, CLASSES, bridge)  # whether it takes this model at all
        asked = (f"you asked for the bridge {bridge}",)
    if own_search:
        yield from _searches(model, problem)
    if solver in solvers.table().searches:
        if bridge is not None or scores_of(model) is None:
            raise UnsupportedProblem(_not_searched(model, solver, bridge))
        way = _Way(solvers.require(solver), True, None)
        yield _make(model, problem, solver, way, (f"you asked for {solver}",), ())
        return
    if solver != solvers.AUTO:
        way = _route(problem, solvers.require(solver), _described(model), bridge)
        why = "no solver was named" if isinstance(solver, Unasked) else f"you asked for {solver}"
        yield _make(model, problem, solver, way, (why, *asked), ())
        return
    yield from _preferred(model, problem, bridge, asked)


def _preferred(
    model: pyo.ConcreteModel, problem: ProblemClass, bridge: str | None, asked: tuple[str, ...]
) -> Iterator[Plan]:
    """Plans for "auto": those of engines that take the model as it stands first, each in the order of the table."""
    against: dict[str, str] = {}
    fitting: list[tuple[str, _Way]] = []
    for name in solvers.table().prefer:
        way, reason = _proving_way(problem, solvers.installed(name), bridge)
        if way is None:
            against[name] = reason
        else:
            fitting.append((name, way))
    if not fitting:
        raise SolverUnavailable(
            f"No installed solver takes this model, a {problem}: "
            + "; ".join(f"{name}: {reason}" for name, reason in against.items())
            + ". Install one of them, or write the model with octsvm.write for a solver elsewhere."
        )
    order = list(solvers.table().prefer)
    for name, way in sorted(fitting, key=lambda pair: bool(_rewritten(problem, pair[1]))):
        before = {other: against.get(other, REWRITES) for other in order[: order.index(name)]}
        before |= {other: reason for other, reason in against.items() if reason == TRIED}
        direct = problem.quadratic and not _rewritten(problem, way)
        reason = f"the first of the table's preferences that is installed and proves a {problem.name}" + (
            " as it stands" if direct else ""
        )
        yield _make(model, problem, name, way, (reason, *asked), tuple(before.items()))
        against[name] = TRIED


def _proving_way(
    problem: ProblemClass, spec: SolverSpec | None, bridge: str | None
) -> tuple[_Way | None, str]:
    """How an engine is handed the model for a proof; None with the reason where it is not."""
    if spec is None:
        return None, "not installed"
    way, ceiling = _fit(problem, spec, bridge)
    if way is None:
        unfit = f"does not solve a {problem.name}" + ("" if bridge is None else f" through {bridge}")
        return None, f"its licence: {ceiling}" if ceiling else unfit
    if spec.claim == "none" or (spec.claim == "convex" and problem.unmarked):
        return None, "its answer would be no proof"
    return way, ""


def _searches(model: pyo.ConcreteModel, problem: ProblemClass) -> Iterator[Plan]:
    """Plans of our own searches that are installed and take the model."""
    for name in solvers.table().searches:
        spec = solvers.installed(name)
        if spec is not None and scores_of(model) is not None:
            reason = "our own search takes this model, and no solver was named"
            yield _make(model, problem, name, _Way(spec, True, None), (reason,), ())


def _not_searched(model: pyo.ConcreteModel, solver: str, bridge: str | None) -> str:
    """Why one of our own searches does not take a model."""
    info = getattr(model, "info", None)
    if bridge is not None:
        why = f"it goes through no bridge, and {bridge} was asked for"
    elif info is not None and formulation(info.formulation).scores(model) is not None:
        why = "this one has rows, terms, variables or fixings of your own"
    else:
        why = f"this is {_described(model)}" + ("" if info is None else f" ({info.params!r})")
    return (
        f"{solver} cannot take this model: it solves RE-SVM with norm='l2' and big-M no smaller than the proved ones, as "
        f"octsvm.build makes it, and {why}. Leave solver= out, or name a solver of the table (`octsvm solvers`)."
    )


class _Way(NamedTuple):
    """How an engine is handed a model."""

    spec: SolverSpec
    native: bool
    bridge: str | None


def _ways(problem: ProblemClass, spec: SolverSpec, bridge: str | None) -> Iterator[_Way]:
    """The ways in which an engine can be handed the model, the best first; with ``bridge`` only through that one."""
    linear = tuple(c for c in LINEAR if c in spec.classes)
    if bridge is not None:
        given = bridges.bridge(bridge).gives(problem)
        if given in linear:
            yield _Way(spec, False, bridge)
        elif given in spec.classes and spec.format == "nl":
            yield _Way(spec.model_copy(update={"cone_form": bridge}), True, None)
        return
    if problem.name in spec.classes and not (problem.cones and spec.cone_form == "none"):
        yield _Way(spec, True, None)
    refined = leading_to(problem, linear)
    if refined is not None:
        yield _Way(spec, False, refined.name)


def _fit(problem: ProblemClass, spec: SolverSpec, bridge: str | None = None) -> tuple[_Way | None, str]:
    """How the engine takes the model (None: not at all), and the ceiling that is in the way."""
    against = ""
    for way in _ways(problem, spec, bridge):
        against = licences.too_large(spec, *licences.sizes(problem, way.native))
        if not against:
            return way, ""
    return None, against


def _described(model: pyo.ConcreteModel) -> str:
    """The model in the words of who built it."""
    info = getattr(model, "info", None)
    if info is None:
        return "this model"
    depth = getattr(info.params, "depth", None)
    return (
        f"{info.formulation} on {info.data.n} training rows and {len(info.data.feature_names)} features"
        + ("" if depth is None else f" with depth {depth}")
    )


def _route(problem: ProblemClass, spec: SolverSpec, described: str, bridge: str | None) -> _Way:
    """How the engine takes the model; one that does not is refused."""
    way, against = _fit(problem, spec, bridge)
    if way is not None:
        return way
    if against:
        raise LicenseTooSmall(_too_small(problem, spec, against, described))
    raise UnsupportedProblem(_unsupported(problem, spec) if bridge is None else _no_way(spec, bridge))


def _rewritten(problem: ProblemClass, way: _Way) -> tuple[str, ...]:
    if not (problem.cones or problem.squared_norms):
        return ()
    if way.bridge is not None:
        name = way.bridge.replace("_", " ")
        return (f"cones and squares as linear rows, refined until bound and tree meet ({name})",)
    form = way.spec.cone_form
    if problem.cones and way.spec.format == "nl" and form in bridges.names():
        return (f"{CONES[form]}, a relaxation by at most 5e-6 of u" if form in CONES else f"by {form}",)
    return ()


def _make(
    model: pyo.ConcreteModel,
    problem: ProblemClass,
    name: str,
    way: _Way,
    reasons: tuple[str, ...],
    rejected: tuple[tuple[str, str], ...],
) -> Plan:
    spec, native = way.spec, way.native
    info = getattr(model, "info", None)
    largest = 0.0 if info is None else largest_big_m(info)
    variables, rows, quadratic = licences.sizes(problem, native)
    most = licences.ceiling(spec, quadratic)
    ceilings: tuple[str, ...] = ()
    if most is not None:
        limits = [f"{have} of {limit} {what}" for have, limit, what in most.beside(variables, rows)]
        kind = "quadratic" if quadratic else "linear"
        ceilings = (f"of the free licence for {kind} models: {', '.join(limits)}",)
    if spec.name != name:
        reasons = (*reasons, f"{name} itself is not installed, and {spec.name} stands in for it")
    if way.bridge is not None and problem.name not in spec.classes:
        taken = ", ".join(spec.classes)
        reasons = (*reasons, f"{spec.title} takes {taken}, so a {problem.name} is rewritten for it")
    return Plan(
        solver=name,
        title=spec.title,
        version=spec.version or "",
        problem=problem,
        spec=spec,
        native=native,
        reasons=reasons,
        rejected=rejected,
        rewritten=_rewritten(problem, way),
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
        bridge=way.bridge,
        slack_advice="" if info is None else slack_advice(info, spec.tolerances.integrality),
    )


def slack_advice(info: ModelInfo, tolerance: float) -> str:
    """What to do where integrality can be bent by more than μ, or a hundredth of the margin; empty where it cannot."""
    largest = largest_big_m(info)
    # As printed OCTSVM has no μ, whatever mu_svm says.
    mu = getattr(info.params, "boundary", getattr(info.params, "mu_svm", None))
    if largest and mu is not None and largest * tolerance > mu:
        return (
            f"that is more than mu_svm={mu:g}, so rows near a hyperplane may be taken for either side: a good start= or smaller costs "
            f"lower M; otherwise give a larger mu_svm=, or the solver an integrality tolerance below {mu / largest:.1g}"
        )
    return "a good start= lowers M" if largest * tolerance > SLACK_WARNING else ""


def largest_big_m(info: ModelInfo) -> float:
    """The largest constant that a binary switches a row off by; 0 where there is none."""
    return max(info.big_m["scores"], info.big_m["hinge"]) if info.big_m else 0.0


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


def _no_way(spec: SolverSpec, bridge: str) -> str:
    kind = bridges.bridge(bridge)
    reads = "" if spec.format == "nl" else ", and nonlinear ones only as they stand, without a bridge"
    return (
        f"{spec.name} cannot take this model through the bridge {bridge}, which takes {kind.takes} and gives "
        f"{' or '.join(kind.classes)}: {spec.name} solves {', '.join(spec.classes)}{reads}. Leave the bridge out, or "
        f"choose another of {', '.join(bridges.names())}."
    )
