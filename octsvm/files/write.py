"""Models as files for solvers elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from pathlib import Path

import pyomo.environ as pyo
from pyomo.repn.plugins.nl_writer import NLWriter

from .. import solvers
from ..backends.scratch import Scratch
from ..errors import InvalidParameter, UnsupportedProblem
from ..formulations.base import ModelInfo
from ..formulations.registry import formulation as find_formulation
from ..formulations.replace_file import destination, move, stat_of, writing
from ..formulations.trees import Tree
from ..problem_class import ProblemClass, classify, degree, require_plain
from ..solving.admission import embed_wholly
from ..solving.certificate import own_parts
from ..solving.plan import largest_big_m, slack_advice
from . import column_map
from .labels import Names

Columns = list[tuple[str, str | None]]  # of a file, in its order: name there, name of the variable

START = ".mst"  # the ending of a start
FORMATS = {".lp": "lp", ".nl": "nl", ".mps": "mps"}
# AMPL's convention: the names of an .nl file's rows and variables, in its order.
NAMES_OF_NL = (".row", ".col")


def format_of(path: str | Path) -> str:
    """The format that the ending of ``path`` stands for."""
    target = Path(path)
    kind = FORMATS.get(target.suffix.lower())
    if kind is None:
        raise InvalidParameter(
            f"{target.name!r} ends in {target.suffix!r}; a model is written as {', '.join(FORMATS)}."
        )
    return kind


def companions(path: Path) -> list[Path]:
    """The files of names that belong to ``path``: two for .nl, none for the other formats."""
    return [path.with_suffix(s) for s in NAMES_OF_NL] if format_of(path) == "nl" else []


def files_of(path: Path) -> list[Path]:
    """What :func:`write` left at ``path``: the model file, then names, start and column map, as far as they were wanted."""
    beside = [*companions(path), path.with_suffix(START), column_map.beside(path)]
    return [path, *(p for p in beside if os.path.isfile(p))]


def columns_of(model: pyo.ConcreteModel, part: Path, compact: bool) -> Columns:
    """Write ``model`` to ``part`` (and, for .nl, its names), and say which variables the columns are.

    A model that the format cannot carry is refused, and one with two names that are one in the letters of the format.
    """
    if format_of(part) == "nl":
        return _write_nl(model, part, compact)
    try:
        _, number = model.write(
            str(part), io_options={"symbolic_solver_labels": False} if compact else {"labeler": Names()}
        )
    except (ValueError, RuntimeError, IndexError) as error:
        reason = _why_not(model, part.suffix, str(error))
        if reason is None:
            raise
        raise reason from None
    symbols = model.solutions.symbol_map[number].bySymbol
    model.solutions.delete_symbol_map(number)
    plain = Names(plain=True)
    text = part.read_text(encoding="utf-8")
    if format_of(part) == "lp":
        # SCIP's reader refuses `x ^ 2` with blanks; without them all readers take it.
        wanted = text.replace(" ^ 2", "^2")
        # Columns are numbered by their first appearance: terms begin with a sign, bounds do not.
        order = re.findall(r"^[+-]\S+ ([^\s^*]+)", wanted[: wanted.rfind("\nbounds\n")], re.MULTILINE)
    else:
        # GLPK knows no OBJSENSE; without it every reader minimises.
        wanted = text.replace("\nOBJSENSE\n MIN\n", "\n", 1)
        section = wanted[wanted.index("\nCOLUMNS\n") + 9 : wanted.index("\nRHS\n")]
        order = re.findall(r"^ +(\S+) (?!'MARKER')", section, re.MULTILINE)
    if wanted != text:
        part.write_text(wanted, encoding="utf-8", newline="")
    named = {
        name: plain(member)
        for name, member in symbols.items()
        # A constant in the objective is a column that belongs to no block.
        if getattr(member, "ctype", None) is pyo.Var and member.parent_block() is not None
    }
    found = dict.fromkeys(order)
    return [(name, named.get(name)) for name in [*found, *(n for n in named if n not in found)]]


def _write_nl(model: pyo.ConcreteModel, part: Path, compact: bool) -> Columns:
    # The writer itself, as it says which row and variable stands where; as they are, nothing presolved or scaled.
    with part.open("w", newline="") as out:
        info = NLWriter().write(model, out, linear_presolve=False, scale_model=False)
    name = Names(plain=True)
    variables = [name(v) for v in info.variables]
    if compact:
        return [(f"x{k}", v) for k, v in enumerate(variables)]
    rows, columns = companions(part)
    for file, members in (
        (rows, [name(row) for row in (*info.constraints, *info.objectives)]),
        (columns, variables),
    ):
        with file.open("w", encoding="utf-8", newline="") as out:
            out.writelines(f"{member}\n" for member in members)
    return [(v, v) for v in variables]


def _why_not(model: pyo.ConcreteModel, suffix: str, message: str) -> Exception | None:
    """What hinders a format from carrying the model, in words; None where it is something else."""
    objectives = list(model.component_data_objects(pyo.Objective, active=True))
    if len(objectives) != 1:
        names = ", ".join(o.name for o in objectives) or "none"
        return UnsupportedProblem(
            f"The model has {len(objectives)} active objectives ({names}), and an {suffix} file carries one. "
            + ("Deactivate the others." if objectives else "Activate one.")
        )
    rows = [
        row.name for row in model.component_data_objects(pyo.Constraint, active=True) if degree(row.body) > 2
    ]
    rows += [o.name for o in objectives if degree(o.expr) > 2]
    if rows:
        shown = ", ".join(map(repr, rows[:4])) + (", ..." if len(rows) > 4 else "")
        return UnsupportedProblem(
            f"An {suffix} file carries linear and quadratic rows, and {shown} {'is' if len(rows) == 1 else 'are'} neither. "
            "Write an .nl file, which carries every expression (SCIP, Couenne, Bonmin, SHOT and Knitro read it), or write "
            "the row with linear and quadratic terms."
        )
    if re.search("duplicate symbol", message, re.IGNORECASE):
        return InvalidParameter(
            f"Two names of the model are one in the letters that an {suffix} file admits ('a b' and 'a_b', say): {message} "
            "Rename one, write generic names with compact=True, or write an .nl file."
        )
    return None


def _start_file(model: pyo.ConcreteModel, columns: Columns, solver: str | None) -> str:
    """The model's values by the names in its file, as the ``solver`` reads a start, or as Gurobi and SCIP do."""
    form = solvers.Start() if solver is None else solvers.get(solver).start
    plain, (objective,) = Names(plain=True), model.component_data_objects(pyo.Objective, active=True)
    value = {plain(v): pyo.value(v, exception=False) for v in model.component_data_objects(pyo.Var)}
    lines = [form.head.format(objective=repr(float(pyo.value(objective))))] if form.head else []
    lines += [
        form.line.format(index=k, name=column, value=repr(float(value[name])))
        for k, (column, name) in enumerate(columns)
        if name is not None and value.get(name) is not None
    ]
    return "\n".join(lines) + "\n"


def _hindrances(problem: ProblemClass, kind: str, name: str) -> list[str]:
    """Why a solver of the table does not take a model's file, or not rightly: what is so, and what to do."""
    spec = solvers.get(name)
    found = []
    if kind not in spec.file_formats:
        reads = " and ".join(f".{f}" for f in spec.file_formats) or "no model files"
        found.append(f"it reads {reads}, and this is an .{kind} file")
    if problem.name not in spec.classes:
        others = [
            n
            for n, s in solvers.table().items()
            if problem.name in s.classes and s.cone_form == "quadratic" and kind in s.file_formats
        ]
        linear = " norm='l1' makes a linear model." if problem.cones or problem.squared_norms else ""
        found.append(
            f"it solves {', '.join(spec.classes)}, and this is a {problem}; in a file nothing is rewritten for it. "
            f"octsvm.solve(model, solver={name!r}) may reach it through a bridge.{linear} "
            f"As it stands the file is for {', '.join(others) or 'none of the known solvers'}"
        )
    elif problem.cones and spec.cone_form not in ("quadratic", "none"):
        found.append(
            "it takes tangents of the rows v'v <= k² u² that stand for cones, cuts off feasible points by them, and may call a wrong "
            f"value optimal. octsvm.solve(model, solver={name!r}) hands it the cones in another form "
            f"({spec.cone_form})"
        )
    return found


def write(
    model: pyo.ConcreteModel,
    path: str | Path,
    compact: bool = False,
    *,
    sidecar: bool = True,
    solver: str | None = None,
    start: Tree | None = None,
) -> Path:
    """Write ``model`` as .lp, .nl or .mps, by the ending of ``path``, for a solver elsewhere.

    Beside it a column map is written, called ``<name>.json``: which variable each column is, the formulation, its
    parameters, a hash of the data. With it :func:`octsvm.read_solution` takes the solver's answer back. A file
    appears complete or not at all.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        Any Pyomo model.
    path : str or Path
        Where to; a file that is there is replaced.
    compact : bool
        Generic names (x1, c1, ...). Readable names by default: in the file, or for .nl, which holds none, in files
        of the same name that end in .row and .col. With ``compact`` those of an earlier model are removed, as they
        would name this one's rows and variables wrongly.
    sidecar : bool
        False for the model alone; the column map of an earlier model is removed.
    solver : str, optional
        The entry of the solver table that the file is for, installed or not: a warning says where that solver does not
        take it.
    start : Tree, optional
        A tree that the model admits, to begin with. Its values go into ``<name>.mst``, a name and a value a line, which
        Gurobi and SCIP read, or in the form of ``solver`` where the table has one (CBC); an .nl file carries them itself. The
        model's variables hold it afterwards.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidParameter
        For another ending; or two names are one in the letters that .lp and .mps admit.
    UnsupportedProblem
        The format cannot carry the model; the message says why, and which can.
    UnknownSolver
        ``solver`` is not in the table.
    TreeNotAdmitted
        ``start`` is no point of the model.
    OutputNotWritable
        The place cannot be written to.

    Warns
    -----
    UserWarning
        ``solver`` does not read the format, does not solve models of this class as they stand, or its integrality tolerance is
        too large for the big-M of this one.
    """
    target = Path(path)
    kind = format_of(target)
    require_plain(model)
    for hindrance in [] if solver is None else _hindrances(classify(model), kind, solver):
        warnings.warn(f"{target.name!r} is not for {solver}: {hindrance}.", stacklevel=2)
    given = getattr(model, "info", None)
    info = given if isinstance(given, ModelInfo) else None
    tolerance = 0.0 if solver is None else solvers.get(solver).tolerances.integrality
    if info is not None and (advice := slack_advice(info, tolerance)):
        bent = largest_big_m(info) * tolerance
        warnings.warn(
            f"In {target.name!r} big-M times an integrality tolerance of {tolerance:g} is {bent:.2g} of the margin; {advice}.",
            stacklevel=2,
        )
    if start is not None:
        if info is None:
            raise InvalidParameter(
                "start= is a tree, and this model belongs to no formulation. Leave it out."
            )
        embed_wholly(model, find_formulation(info.formulation), start)
    real = destination(target)
    names, beside = companions(real.with_suffix(target.suffix)), column_map.beside(real)
    for final in [*([] if compact else names), *([beside] if sidecar else [])]:
        with writing(final):  # with what is added to it a name may be too long
            stat_of(final)
    with writing(target):
        if real.exists() and not real.is_file():  # a device is written to, never replaced
            with Scratch() as folder:
                part = folder / f"model{target.suffix.lower()}"
                columns_of(model, part, compact)
                with part.open("rb") as written, real.open("wb") as out:
                    shutil.copyfileobj(written, out)
            return target
        with Scratch(beside=real) as folder:
            part = folder / f"model{target.suffix.lower()}"
            columns = columns_of(model, part, compact)
            finished, parts = [real, *names], [part, *companions(part)]
            if start is not None and kind != "nl":
                parts.append(part.with_suffix(START))
                finished.append(real.with_suffix(START))
                parts[-1].write_text(_start_file(model, columns, solver), encoding="utf-8", newline="")
            finished.append(beside)
            parts.append(column_map.beside(part))
            if sidecar:
                own = own_parts(model) if info else []
                text = column_map.text_of(info, own, part, target.name, compact, columns)
                parts[-1].write_text(text, encoding="utf-8", newline="")
            elif not column_map.is_column_map(finished[-1]):
                finished.pop()  # a file of the user's own that is called so stays
            # The model last: once it is there, so are its names.
            for one, final in reversed(list(zip(parts, finished, strict=False))):
                if one.exists():
                    move(one, Path(os.path.realpath(final)))
                elif os.path.lexists(final):
                    final.unlink()
    return target
