"""The answer of a solver elsewhere, from its solution file to a checked result."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyomo.environ as pyo

from ..backends import solution_formats
from ..backends.scratch import Scratch
from ..backends.solution_formats import SolutionFile
from ..errors import InvalidParameter, InvalidSolutionFile, OctsvmError, TimeLimitReached
from ..formulations.base import FEASIBILITY, Formulation, ModelInfo
from ..formulations.checks import is_number
from ..formulations.registry import formulation as find_formulation
from ..options import READ, Clock, OnMismatch, declarations, default_of, limited, require_known, takes_options
from ..result import Result
from ..solving import certificate as checks
from ..solving.certificate import Certificate
from ..solving.excluded_trees import excluded_trees
from ..solving.outcome import BARRED, Contest, Outcome, delivered, rebuild_note
from ..solving.own_terms import least_terms
from ..solving.polish import polish_tree
from ..solving.steps_ahead import MANY_VARIABLES
from . import column_map, write
from .column_map import ColumnMap
from .labels import Names

# SCIP's own names for the objective where that is quadratic; Pyomo's for its constant.
NO_VARIABLES = frozenset(("quadobjvar", "qmatrixvar", "nlobjvar", "ONE_VAR_CONSTANT"))
POLISH_SECONDS = 10.0
INTEGRAL = 1e-3  # farther from a whole number than that, a point is none of the model with its integers
CLAIMS_AGREE = 1e-4  # what six printed digits leave of an objective


@takes_options(READ)
def read_solution(
    model: pyo.ConcreteModel,
    path: str | Path,
    *,
    kind: str | None = None,
    sidecar: str | Path | None = None,
    on_mismatch: OnMismatch = "raise",
    bound: float | None = None,
    bound_source: str | None = None,
    **options: Any,
) -> Result:
    """Take the solution file of a solver elsewhere back into the model it was written from, and check the tree in it.

    What the file says of its quality is a note, never a proof: the bound of the result is what is known of every tree, or one
    that you vouch for (``bound``).
    The model's variables take the values of the returned tree where the model admits it; after an error they are as
    before.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        The model that :func:`octsvm.write` wrote, or the same one built again.
    path : str or Path
        A solution file of an AMPL solver, SCIP, Gurobi, HiGHS, CPLEX, CBC, GLPK or Xpress.
    kind : str, optional
        Who wrote it: "asl", "scip", "gurobi", "highs", "cplex", "cbc", "glpk" or "xpress"; found out by default.
    sidecar : str or Path, optional
        The column map of the model file, or that file itself. By default the one beside the solution file whose name
        begins in the same way (model.sol, model.mps.json); where there is none, columns are found by their names.
    on_mismatch : str
        "raise", "warn" or "ignore": what to do when the file's answer does not hold outside its solver.
    bound : float, optional
        A lower bound on the model's objective that you trust, such as the "best bound" of a solver's log. It is refused where
        a known tree costs less or the file was written with other parts of your own, and limited to the trees that the model as it
        was built is exact for.
    bound_source : str, optional
        Whose bound that is, e.g. "CPLEX 22.1.1, job 4711"; kept in the result's ``bound_source`` and shown wherever its
        status is. "the caller of read_solution" where it is left out. Empty where building the model proved as much.
    {options}

    Returns
    -------
    Result
        Its status is "feasible"; "fallback" where the tree without a split is better than the file's; "unverified",
        with the best tree known, where the answer does not hold. "optimal" only where a bound within 1e-4 of the objective proves
        it: one that was found in building the model, or a trusted one, and then the status is said with its source. A better tree
        that was met in building is returned in place of the file's.

    Raises
    ------
    InvalidSolutionFile
        The file is broken, holds no point, or is the answer to another model.
    InvalidParameter
        The model belongs to no formulation, ``on_mismatch`` is unknown, or ``bound`` is no number, above a known tree, or that
        of a model with other parts.
    UnsupportedProblem
        The model has no objective to be minimised, or several.
    CertificateMismatch
        The answer does not hold; its ``result`` has the best tree known.
    TimeLimitReached
        There is no time to check the answer. The model is as before.
    """
    clock = limited(options)
    require_known(READ, options, ("kind", "sidecar", "on_mismatch", "bound", "bound_source"))
    declarations()["on_mismatch"].check("on_mismatch", on_mismatch)  # type: ignore[misc]
    trusted = _trusted(bound, bound_source)
    info = getattr(model, "info", None)
    if not isinstance(info, ModelInfo):
        raise InvalidParameter(
            "This model does not know its formulation, so there is no tree to read. Build it with octsvm.build."
        )
    form = find_formulation(info.formulation)
    checks.active_objective(model)
    found = solution_formats.read(path, kind)
    name = Path(path).name
    if not found.has_point:
        raise InvalidSolutionFile(
            f"{name!r} holds no solution to read: {found.why}. Give the solver more time, or, where it says infeasible, "
            "look at the rows that you added and at big_m; octsvm.solve(model) tells whether there is a tree."
        )
    point, notes = _columns(model, info, found, Path(path), sidecar)
    if point.own is not None:
        notes += _other_parts(point.own, checks.own_parts(model), name, trusted)
    before = checks.kept_values(model)
    with checks.restored_on_error(before):
        _load(model, point, name)
        # On nobody's word:
        known = max(least_terms(model).floor(), info.least if checks.is_own(model) else -math.inf)
        if trusted is not None and trusted.bound <= known:
            trusted = None
        notes.insert(0, _claim(model, found, name, trusted, known))
        _require_time(clock, len(before))
        with checks.with_its_blocks(model):
            result = _checked(model, form, info, found, notes, clock, known, trusted)
    return delivered(result, on_mismatch, f"The answer in {name!r} does not hold outside its solver")


# -- which column is which variable -----------------------------------------------------------------------------------


class _Point(NamedTuple):
    values: list[tuple[Any, float]]
    own: tuple[str, ...] | None  # parts of the user's own in the file, where that is known


def _columns(
    model: pyo.ConcreteModel,
    info: ModelInfo,
    found: SolutionFile,
    path: Path,
    given: str | Path | None,
) -> tuple[_Point, list[str]]:
    """The model's variables with the file's values, and notes on how they were found."""
    plain = Names(plain=True)
    variables = {plain(var): var for var in model.component_data_objects(pyo.Var, active=True)}
    places = _beside(path) if given is None else [Path(given)]
    if given is not None and places[0].suffix.lower() in write.FORMATS:
        places = [column_map.beside(places[0])]
    candidates = [column_map.read(place) for place in places]
    if not candidates:
        return _without_column_map(model, found, path.name, variables)
    same = [side for side in candidates if _difference(side, info) is None]
    if not same:
        raise InvalidSolutionFile(
            f"The sidecar {candidates[0].path.name!r} belongs to another model: {_difference(candidates[0], info)}. Build the "
            "model as it was when it was written, or write this one and solve that file."
        )
    fitting: list[tuple[ColumnMap, dict[str, float]]] = []
    reasons: list[str] = []
    for side in same:
        try:
            fitting.append((side, _by_variable(found, side.columns, side.format == "nl" and side.generic)))
        except _DoesNotFit as error:
            reasons.append(f"{side.path.name}: {error}")
    if not fitting:
        raise InvalidSolutionFile(
            f"{path.name!r} is the answer to another model file ({'; '.join(reasons)}). Name the sidecar of the file that was "
            "solved with sidecar=."
        )
    if any(by_variable != fitting[0][1] for _, by_variable in fitting):
        names = ", ".join(repr(side.path.name) for side, _ in fitting)
        raise InvalidSolutionFile(
            f"{path.name!r} fits several model files ({names}), in which its columns are different variables. Name the one "
            "that was solved with sidecar=."
        )
    side, by_variable = fitting[0]
    unknown = [v for v in by_variable if v not in variables]
    if unknown:
        raise InvalidSolutionFile(
            f"{side.path.name!r} has the variables {_some(unknown)}, and this model has none of that name. Build the model "
            "as it was when it was written, or write this one and solve that file."
        )
    others = {id(v) for n, v in variables.items() if n not in by_variable and not v.fixed}
    absent = [v.name for v in checks.used_variables(model) if id(v) in others] if others else []
    if absent:
        raise InvalidSolutionFile(
            f"This model has the variables {_some(absent)}, which were not in the file that {side.path.name!r} describes. They "
            "were added or unfixed since: write the model again, and solve that file."
        )
    notes = _missing(found, len(side.columns))
    return _Point([(variables[v], x) for v, x in by_variable.items()], side.own), notes


def _beside(path: Path) -> list[Path]:
    """Column maps whose names begin as the solution's does."""
    stems = [path.stem]
    while "." in stems[-1].strip("."):
        stems.append(Path(stems[-1]).stem)
    endings = [e for ending in write.FORMATS for e in (ending, ending.upper())]
    for stem in dict.fromkeys(stems):
        if Path(stem).suffix.lower() in write.FORMATS:
            endings = [*endings, ""]
        places = [path.with_name(stem + e + column_map.SUFFIX) for e in endings]
        here = [p for p in places if column_map.is_column_map(p)]
        if here:
            return here
    return []


def _difference(side: ColumnMap, info: ModelInfo) -> str | None:
    """What of formulation, parameters and data is another in the column map."""
    if side.formulation != info.formulation:
        return f"its formulation is {side.formulation!r}, and this one's {info.formulation!r}"
    ours = column_map.plain_params(info)
    # Files of earlier versions lack parameters that are new since.
    theirs = type(info.params)().model_dump(mode="json") | (side.params or {})
    different = [k for k in {**ours, **theirs} if ours.get(k) != theirs.get(k)]
    if different:
        return ", ".join(f"{k}={theirs.get(k)!r} there and {ours.get(k)!r} here" for k in different)
    if side.data_digest != info.data.digest:
        return (
            f"it was written for other data ({side.data_digest} there, {info.data.digest} here), so rows of the table, "
            "their order, labels or weights differ"
        )
    return None


def _other_parts(
    theirs: Iterable[str], ours: Iterable[str], name: str, trusted: _Trusted | None
) -> list[str]:
    """A note where the model has other parts of the user's own than the file was written with.

    Raises
    ------
    InvalidParameter
        A bound is to be taken on trust: it is that of the other model.
    """
    only_there, only_here = set(theirs) - set(ours), set(ours) - set(theirs)
    if not only_there and not only_here:
        return []
    sides = [(only_there, "there and not here"), (only_here, "here and not there")]
    which = "; ".join(f"{checks.some(sorted(names))} {where}" for names, where in sides if names)
    text = f"{name!r} answers a model with other parts of your own ({which})"
    if trusted is not None:
        raise InvalidParameter(
            f"bound={trusted.bound:.8g} is one of another model: {text}. Leave bound= out, or build the model as it was when it was "
            "written."
        )
    return [f"{text}: its tree was checked in this one"]


class _DoesNotFit(Exception):
    """Why a solution is not one of these columns."""


def _by_variable(
    found: SolutionFile, columns: Iterable[tuple[str, str | None]], numbered: bool
) -> dict[str, float]:
    """Variable -> value; ``numbered`` for an .nl without names, where solvers call column 7 x7, b7 or i7."""
    columns = list(columns)
    if found.ordered is not None:
        if len(columns) != len(found.ordered):
            raise _DoesNotFit(f"{len(columns)} columns there and {len(found.ordered)} in the solution")
        return {v: float(x) for (_, v), x in zip(columns, found.ordered, strict=True) if v is not None}
    values: Mapping[str, float] = found.values or {}
    if numbered:
        values = {re.sub(r"^[bi](?=\d+$)", "x", k): x for k, x in values.items()}
    known = {c for c, _ in columns}
    unknown = [c for c in values if c not in known and c not in NO_VARIABLES]
    if unknown:
        raise _DoesNotFit(f"it has no columns {_some(unknown)}")
    if not found.sparse:
        lacking = [c for c, v in columns if v is not None and c not in values]
        if lacking:
            raise _DoesNotFit(f"the solution lacks the columns {_some(lacking)}")
    return {v: values.get(c, 0.0) for c, v in columns if v is not None}


def _without_column_map(
    model: pyo.ConcreteModel, found: SolutionFile, name: str, variables: Mapping[str, Any]
) -> tuple[_Point, list[str]]:
    """Write the model again, as each format and each way of naming has it, and see which fit."""
    endings = {"asl": [".nl"], "glpk": [".lp", ".mps"]}.get(found.kind, [".lp", ".mps", ".nl"])
    fitting: list[tuple[str, dict[str, float], int]] = []
    reasons: dict[bool, str] = {}
    with Scratch() as folder:
        for compact in (False, True) if found.ordered is None else (True,):
            for ending in endings:
                try:
                    columns = write.columns_of(model, folder / f"model{ending}", compact)
                except OctsvmError:
                    continue  # a format that cannot carry the model was not solved
                try:
                    by_variable = _by_variable(found, columns, compact and ending == ".nl")
                except _DoesNotFit as error:
                    reasons.setdefault(compact, str(error))
                else:
                    fitting.append((ending, by_variable, len(columns)))
            if fitting:
                break
    what = "values" if found.ordered is not None else "columns"
    unnamed = found.kind == "glpk" and found.ordered is not None
    named = " Or have glpsol write names as well (-o in place of -w)." if unnamed else ""
    if not fitting:
        raise InvalidSolutionFile(
            f"The {what} in {name!r} are not those of this model: {next(iter(reasons.values()), 'no format can carry it')}. "
            "Build the model as it was when it was written. With the sidecar that octsvm.write left (sidecar=) more can be said.{named}"
        )
    if any(by_variable != fitting[0][1] for _, by_variable, _ in fitting):
        files = " and ".join(ending for ending, _, _ in fitting)
        raise InvalidSolutionFile(
            f"{name!r} could be the answer to {files}, in which its {what} are different variables. Name the sidecar of the file "
            f"that was solved with sidecar=.{named}"
        )
    _, by_variable, columns_there = fitting[0]
    notes = [
        "no sidecar was found: columns were found by the model's names, and nothing tells whether its data and parameters "
        "are those of the file"
        if found.ordered is None
        else "no sidecar was found: columns were taken in the model's order, and nothing tells whether it is that of the file"
    ]
    return _Point([(variables[v], x) for v, x in by_variable.items()], None), notes + _missing(
        found, columns_there
    )


def _missing(found: SolutionFile, columns: int) -> list[str]:
    rarely = found.kind in solution_formats.RARELY_SPARSE
    if not rarely or found.values is None or len(found.values) >= columns:
        return []
    return [f"{columns - len(found.values)} of {columns} columns are not in the file, and were taken to be 0"]


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f", ... ({len(names)} in all)" if len(names) > 3 else "")


# -- from values to a result ------------------------------------------------------------------------------------------


def _load(model: pyo.ConcreteModel, point: _Point, name: str) -> None:
    """Set the variables; what stands in no row gets 0, as after a solve."""
    for var, value in point.values:
        if not var.is_continuous():
            whole = float(round(value))
            if abs(value - whole) > INTEGRAL:
                raise InvalidSolutionFile(
                    f"In {name!r} {var.name} = {value:.6g}, and it has to be a whole number: this is the answer to the relaxed "
                    "problem. Have the solver keep the integers (glpsol without --nomip, for one)."
                )
            value = whole
        if var.fixed:
            if var.value is not None and abs(var.value - value) > FEASIBILITY:
                raise InvalidSolutionFile(
                    f"{var.name} is fixed to {var.value:g} here, and {name!r} has {value:g}. It was fixed after the model was "
                    "written: write it again and solve that file, or unfix it."
                )
            continue
        var.set_value(value, skip_validation=True)
    read = {id(var) for var, _ in point.values}
    for var in model.component_data_objects(pyo.Var):
        if id(var) not in read and not var.fixed:
            var.set_value(0.0, skip_validation=True)


class _Trusted(NamedTuple):
    """A bound that the caller vouches for."""

    bound: float
    source: str


def _trusted(bound: float | None, source: str | None) -> _Trusted | None:
    if bound is None:
        if source is not None:
            raise InvalidParameter(f"bound_source={source!r} says whose bound it is: give bound= as well.")
        return None
    if not is_number(bound):
        raise InvalidParameter(
            f"bound={bound!r} should be a finite number, in the units of the model's objective."
        )
    if source is not None and (not isinstance(source, str) or not source.strip()):
        raise InvalidParameter(f"bound_source={source!r} should be text that says whose bound it is.")
    return _Trusted(float(bound), source or "the caller of read_solution")


def _claim(
    model: pyo.ConcreteModel, found: SolutionFile, name: str, trusted: _Trusted | None, known: float
) -> str:
    """What the file says of itself, as a note."""
    said = [repr(found.status)] if found.status else []
    if found.code is not None:
        said.append(f"solve code {found.code}")
    if found.objective is not None:
        said.append(f"objective {found.objective:.8g}")
    text = f"read from {name!r}" + (f", which says {', '.join(said)}" if said else "")
    text += "; that is no proof here, "
    if trusted is not None:
        text += f"and the bound {trusted.bound:.8g} is taken on trust from {trusted.source}"
    elif known > 0:
        text += f"but building the model proved the bound {known:.8g}"
    else:
        text += "the bound holds for every tree"
    value = float(pyo.value(checks.active_objective(model).expr))
    if found.objective is not None and abs(found.objective - value) > _allowance(value):
        text += (
            f". With the values in the file this model's objective is {value:.8g}, not {found.objective:.8g}: "
            "it may be the answer to other data or parameters"
        )
    return text


def _checked(
    model: pyo.ConcreteModel,
    form: Formulation,
    info: ModelInfo,
    found: SolutionFile,
    notes: list[str],
    clock: Clock,
    known: float,
    trusted: _Trusted | None,
) -> Result:
    """Certify the file's answer, polish it, and choose the best tree known."""
    own = checks.is_own(model)
    certificate = checks.certify(model, form)
    contest = Contest(model, form, info)
    contest.certified(certificate)
    mismatch = _mismatch(certificate)
    polished = own and bool(mismatch or form.uses_upper_bound)
    if polished and clock.left() < clock.seconds():  # another model is built, as large as this one
        notes = [*notes, "no time to polish the file's tree"]
    elif polished:
        # Other engines stop within their tolerances, and files round; the continuous part is solved to the end here.
        better = polish_tree(form, info, certificate.tree, min(POLISH_SECONDS, clock.left()))
        if better is not None:
            contest.enter(better, "polished")
    if info.tree is not None:
        contest.enter(info.tree, "known")
    contest.enter(form.constant_tree(info.data, info.params), "constant")
    contest.load()
    best = contest.best
    assert best is not None
    if contest.barred:
        mismatch += BARRED
    notes = [*notes, *certificate.notes]
    if best.source == "polished":
        notes.append(f"polished: the file's tree costs {certificate.objective:.8g} before")
    elif best.source == "known":
        notes.append(
            f"a tree that was met in building the model is better than the file's ({certificate.objective:.8g}), and is returned"
        )
    elif best.source == "constant":
        notes.append("the tree without a split is better than the file's, and is returned")
    outcome = Outcome(
        info,
        "file",
        best,
        bound=known,
        asked_gap=default_of("gap"),
        found=best.source != "constant",
        mismatch=mismatch,
        claimed=certificate.claimed,
        differing=certificate.differing_rows,
        notes=notes,
        how={"solver": found.kind, "solver_version": "from a file"},
    )
    if trusted is not None:
        if not mismatch and trusted.bound > best.objective + _allowance(best.objective):
            raise InvalidParameter(
                f"bound={trusted.bound:.8g} cannot be right: a tree that costs {best.objective:.8g} was checked, and a bound is what no "
                "tree of this model costs less than. Take the solver's best bound (not the objective of its answer) of this very "
                "model."
            )
        outcome.bound = min(trusted.bound, best.objective)
    terms = least_terms(model)
    outcome.limit_bound(own, rebuild_note(form, info, terms), terms, excluded=excluded_trees(model))
    if trusted is not None and outcome.bound > known:
        outcome.bound_source = trusted.source
    return outcome.result(clock.seconds())


def _require_time(clock: Clock, variables: int) -> None:
    """Refuse to check an answer in less time than reading it took: every variable is set again, and every row looked at."""
    if clock.late() or (variables > MANY_VARIABLES and clock.left() < clock.seconds()):
        raise TimeLimitReached(
            f"time_limit={clock.limit:g} seconds leave no time to check the answer: reading it into the model of {variables} "
            f"variables took {clock.seconds():.2g}. Give it more."
        )


def _mismatch(certificate: Certificate) -> str:
    """Why the file's answer does not hold; empty where it does."""
    excess = certificate.objective - certificate.claimed
    if certificate.admitted and not certificate.differing_rows and excess <= _allowance(certificate.claimed):
        return ""  # the tree is a point of the model; files print few digits, and no bound rests on the claim
    return certificate.mismatch


def _allowance(objective: float) -> float:
    return CLAIMS_AGREE * max(1e-3, abs(objective))
