"""One model on many solvers, one after the other: what each came to, and whether they agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import solvers as table
from ..errors import (
    EngineFailed,
    InvalidParameter,
    LicenseTooSmall,
    OctsvmError,
    SolverUnavailable,
    UnknownSolver,
    UnsupportedProblem,
)
from ..options import RACE, SolveOptions, declarations, takes_options
from ..problem_class import require_plain
from ..result import OWN_SEARCH, Progress, Result

if TYPE_CHECKING:
    import pandas as pd


class Row(NamedTuple):
    """A solver's row of the table."""

    solver: str
    version: str
    status: str
    stop: str
    seconds: float = math.nan
    startup: float = math.nan
    objective: float = math.nan
    bound: float = math.nan
    gap: float = math.nan
    nodes: int = 0
    rounds: int = 0
    certificate: str = "none"
    start: str = "none"
    as_it_stands: bool = False
    note: str = ""


COLUMNS = Row._fields
REFUSED, FAILED = "refused", "failed"
REASONS: dict[type[OctsvmError], str] = {
    LicenseTooSmall: "licence",
    UnsupportedProblem: "unsupported",
    SolverUnavailable: "not installed",
}
SLACK = 1e-6  # of an objective, for the engines' tolerances


@takes_options(RACE)
def race(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    solvers: Iterable[str] | None = None,
    scale: bool = True,
    on_begin: Callable[[str], Any] | None = None,
    on_end: Callable[[Mapping[str, Any]], Any] | None = None,
    **params: Any,
) -> pd.DataFrame:
    """Solve one model on several solvers, one after the other, and put what each came to side by side.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel or str
        A model, or the name of a formulation, which is then built on ``X`` and ``y`` once, for all of them.
    X : array-like of shape (n, p), optional
        For a formulation.
    y : array-like of shape (n,), optional
        For a formulation.
    solvers : iterable of str, optional
        Names of the solver table; all that are installed by default.
    scale : bool
        As for :func:`octsvm.build`, which has the time limit for itself, as each solver then has.
    on_begin : callable, optional
        Called with the name of each solver before it runs.
    on_end : callable, optional
        Called with each row of the table as soon as it is known.
    {options}
    **params
        Parameters of the formulation.

    Returns
    -------
    pandas.DataFrame
        A row for each solver, columns :data:`COLUMNS`. ``status`` is that of a :class:`octsvm.Result`, or "refused"
        (``stop`` and ``note`` say why) or "failed" (it broke down). ``seconds`` are those of the call without
        ``startup``, the time in which a process of its own was started. ``certificate`` is "ok", "mismatch", or "none"
        where there was no answer to check. ``attrs["disagreements"]`` is what :func:`disagreements` finds;
        ``attrs["interrupted"]`` whether Ctrl-C ended the race early, with the rows up to there.

    Raises
    ------
    InvalidData, InvalidParameter, UnknownFormulation, UnknownSolver, TreeNotAdmitted, TimeLimitReached
        Before anything is solved.
    """
    import pandas as pd

    from ..solving import certificate as checks

    options = {name: params.pop(name) for name in declarations(RACE) if name in params}
    gap = SolveOptions(**options).gap  # each solver has a clock of its own, and all are refused now
    asked: dict[str, Any] = {name: options[name] for name in ("start", "time_limit") if name in options}
    built = _model_of(model, X, y, {"scale": scale, **asked, **params})
    require_plain(built)
    names = contestants() if solvers is None else list(solvers)
    if solvers is not None and not names:
        raise InvalidParameter(
            "solvers names no solver. Name some, or leave it out for all that are installed."
        )
    for name in names:
        if name == table.AUTO:
            raise UnknownSolver(
                f"{name!r} is no solver of its own. A race is run by those it is given by name, or, without names, by all that "
                "are installed."
            )
        table.get(name)
    before = checks.kept_values(built)
    rows: list[dict[str, Any]] = []
    interrupted = False
    try:
        for name in names:
            if on_begin is not None:
                on_begin(name)
            checks.restore(before)
            found, ended = _run(built, name, **options)
            row = found._asdict()
            rows.append(row)
            if on_end is not None:
                on_end(row)
            if ended:
                interrupted = True
                break
    except KeyboardInterrupt:  # between two solves
        interrupted = True
    finally:
        checks.restore(before)
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    frame.attrs["disagreements"] = disagreements(rows, gap)
    frame.attrs["interrupted"] = interrupted
    return frame


def _model_of(model: Any, X: Any, y: Any, more: dict[str, Any]) -> Any:
    """The model itself, or that of a formulation on a table."""
    if isinstance(model, str):
        from ..api import build

        if X is None or y is None:
            raise InvalidParameter(
                f"octsvm.race({model!r}) needs a table too: octsvm.race({model!r}, X, y). A built model needs none."
            )
        return build(model, X, y, **more)
    if X is not None or y is not None or set(more) - {"scale", "start", "time_limit"}:
        raise InvalidParameter(
            "X, y and parameters go with the name of a formulation; a built model has them already."
        )
    return model


def contestants() -> list[str]:
    """The solvers of the table that are installed, in its order, each once."""
    out: dict[str, str] = {}
    for name, spec in table.table().items():
        found = table.installed(name)
        if found is not None and spec.backend != "neos":
            out.setdefault(found.name, name)
    return list(out.values())


def _run(model: Any, name: str, callback: Any = None, **options: Any) -> tuple[Row, bool]:
    """The row of one solver, and whether Ctrl-C was pressed."""
    from ..problem_class import classify
    from ..solving.dispatch import solve

    asked: list[bool] = []

    def watch(progress: Progress) -> bool:
        if callback is not None and callback(progress):
            asked.append(True)
        return bool(asked)

    try:
        result = solve(model, solver=name, callback=watch, on_mismatch="ignore", **options)
    except (LicenseTooSmall, UnsupportedProblem, SolverUnavailable) as error:
        spec, problem = table.installed(name), classify(model)
        against = REASONS[type(error)]
        short = {
            "licence": f"its licence takes no model of {problem.variables} variables and {problem.rows} rows",
            "unsupported": f"does not solve a {problem.name}",
            "not installed": table.get(name).install,
        }[against]
        version = "" if spec is None else spec.version or ""
        return Row(name, version, REFUSED, against, note=short), False
    except (EngineFailed, InvalidParameter) as error:
        return Row(name, "", FAILED, "error", note=" ".join(str(error).split())), False
    return _row(name, result), result.stop == "interrupted" and not asked


def _row(name: str, result: Result) -> Row:
    certificate = "none"
    if result.tree is not None and result.status != "fallback":
        certificate = "mismatch" if result.status == "unverified" else "ok"
    startup = float(result.engine.get("startup_seconds", 0.0))
    claimed = result.model_objective
    objective = claimed if certificate == "mismatch" and math.isfinite(claimed) else result.objective
    return Row(
        name,
        "" if result.solver == OWN_SEARCH else result.solver_version,
        result.status,
        result.stop,
        max(0.0, result.seconds - startup),
        startup,
        objective,
        result.bound,
        result.gap,
        result.nodes,
        result.rounds,
        certificate,
        result.engine.get("start", "none"),
        bool(result.engine.get("as_it_stands", False)),
        "; ".join(result.notes),
    )


def disagreements(rows: Iterable[Mapping[str, Any]], gap: float = 1e-4) -> tuple[str, ...]:
    """Pairs of solvers that cannot both be right, as sentences.

    Two that both claim the optimum must have the same objective, and none may prove a bound above an objective that
    another one's checked tree has; both within the relative ``gap``, and a millionth for the engines' tolerances. The
    ``rows`` are those of the table of :func:`race`.
    """
    out = []
    there = [r for r in rows if r["status"] not in (REFUSED, FAILED)]
    for k, a in enumerate(there):
        for b in there[k + 1 :]:
            if {a["stop"], b["stop"]} == {"optimal", "infeasible"}:
                out.append(f"{a['solver']} says {a['stop']}, and {b['solver']} says {b['stop']}")
                continue
            size = max(abs(a["objective"]), abs(b["objective"]))
            if not math.isfinite(size):
                continue
            allowed = gap * size + SLACK * max(1.0, size)
            both = a["stop"] == b["stop"] == "optimal"
            if both and abs(a["objective"] - b["objective"]) > allowed:
                out.append(
                    f"{a['solver']} and {b['solver']} both claim the optimum, {a['objective']:.8g} and {b['objective']:.8g}"
                )
                continue
            for one, other in ((a, b), (b, a)):
                if other["certificate"] == "ok" and one["bound"] > other["objective"] + allowed:
                    out.append(
                        f"{one['solver']} claims a bound of {one['bound']:.8g}, and the tree of {other['solver']} costs "
                        f"{other['objective']:.8g}"
                    )
    return tuple(out)
