"""What a solve came to: why it stopped, apart from what you hold."""

from __future__ import annotations

import html
import json
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .formulations.checks import plural
from .formulations.errors import NoValues
from .formulations.replace_file import replace_text
from .formulations.trees import Tree

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

STATUSES = {
    "optimal": "proved: no better tree within the gap asked for",
    "feasible": "a checked tree, not proved to be the best",
    "fallback": "the solver found none: this is the start, or the best tree without a split",
    "unverified": "the solver's answer does not hold outside the solver: this is the best tree known",
    "infeasible": "the model has no solution",
    "no_tree": "no tree is known: the solve ended before it found one, and nothing says that there is none",
}
STOPS = (
    "optimal",
    "gap_limit",
    "time_limit",
    "node_limit",
    "work_limit",
    "solution_limit",
    "memory_limit",
    "objective_limit",
    "interrupted",
    "infeasible",
    "unbounded",
    "inf_or_unbd",
    "licence",
    "unsupported",
    "numeric",
    "error",
    "local_optimum",  # of strategy="heuristic": nothing that it tries improves the tree any more; no proof
    "file",  # an answer that was read from a file: a note has that solver's own words
)
OWN_SEARCH = "octsvm's own search"  # in place of a solver's name, where none was called


# Fields of a result that its JSON has besides the tree, in that order.
IN_JSON = (
    "formulation", "status", "stop", "objective", "bound", "gap", "seconds", "solver", "solver_version", "rounds", "nodes",
    "model_objective", "bound_source", "data_digest", "n", "p", "params", "terms", "counts", "trace", "notes", "conflict",
    "differing_rows", "big_m", "engine", "versions",
)  # fmt: skip


class TracePoint(NamedTuple):
    """Best objective (``incumbent``) and ``bound`` known after some ``seconds``."""

    seconds: float
    incumbent: float
    bound: float


def shown_cost(value: float) -> str:
    """A cost as it is shown; what the arithmetic leaves of none is none."""
    return f"{0.0 if abs(value) < 1e-9 else value:.6g}"


def relative_gap(objective: float, bound: float, size: float = 1.0) -> float:
    """(objective - bound)/|objective|: 0 where they meet, infinite without an objective or a bound.

    They meet within 2e-9 of ``size``, about how large objectives are (1 at most).
    """
    if not math.isfinite(objective) or bound == -math.inf:
        return math.inf
    difference = max(0.0, objective - bound)
    if difference <= 2e-9 * min(1.0, size):
        return 0.0
    return difference / max(abs(objective), difference)


def telling(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a formulation that say something: those with a value, and a kernel's where there is one."""
    without = () if params.get("kernel") is not None else ("gamma", "degree", "coef0")
    return {k: v for k, v in params.items() if v is not None and k not in without}


@dataclass(frozen=True)
class Progress:
    """What a callback is handed while a solve runs; it may return True to stop the solve. As text it is one line.

    Attributes
    ----------
    seconds : float
        Wall clock since the call.
    incumbent : float
        Objective of the best tree; infinite until one is known.
    bound : float
        No tree of the model is better.
    rounds, nodes : int
        Solves of the (refined) model so far, and branch-and-bound nodes in all of them.
    phase : str
        What goes on: "start heuristics", "bounding", "building", "reading", "compiling", "solving" or "checking".
    """

    seconds: float
    incumbent: float
    bound: float
    rounds: int
    nodes: int
    phase: str = "solving"

    @property
    def gap(self) -> float:
        """Relative distance of incumbent and bound; infinite until a tree is known."""
        return relative_gap(self.incumbent, self.bound)

    def __str__(self) -> str:
        if math.isfinite(self.incumbent):
            tree = f"best tree {self.incumbent:.6g}"
            gap = f"{self.gap:.2%}"
        else:
            tree, gap = "no tree yet", "-"
        counted = self.phase == "solving" and (self.rounds or self.nodes)
        more = self.phase + (f"  rounds {self.rounds}  nodes {self.nodes}" if counted else "")
        return f"{self.seconds:7.1f} s  {tree}  bound {self.bound:.6g}  gap {gap}  {more}"


@dataclass(frozen=True, eq=False)
class Result:
    """The best tree known, checked outside the solver, and how it was found.

    Attributes
    ----------
    formulation : str
    params : dict
        Parameters of the formulation, defaults included.
    tree : Tree or None
        None for an infeasible model, where none was found, and for a model that belongs to no formulation.
    status : str
        What you hold; see :data:`STATUSES`.
    stop : str
        Why the solve ended; one of :data:`STOPS`.
    objective : float
        Recomputed in numpy by walking the tree.
    bound : float
        No tree of the model is better than this; at least 0.
    gap : float
        (objective - bound)/|objective|.
    terms, counts : dict
        The objective's terms with their costs, and the plain figures behind them.
    seconds : float
        Wall clock of the whole call.
    solver, solver_version : str
        Its name in the solver table, and the version that ran; "octsvm's own search" where none was called.
    rounds, nodes : int
        Solves of the (refined) model, and branch-and-bound nodes in all of them.
    trace : tuple of TracePoint
        Objective and bound over time.
    notes : tuple of str
        What was rewritten, kept, or is worth knowing.
    model_objective : float
        The solver's claim for its own answer (nan without one).
    differing_rows : tuple of int
        Training rows that the tree routes otherwise than the solver's answer did.
    big_m : dict
        Largest big-M of each family of rows.
    engine : dict
        How the solver was talked to: the ``entry`` and its ``interface``; ``as_it_stands``, or refined in rounds; what
        became of the ``start`` ("accepted", "rejected", "unsupported", "unknown" where the engine does not say, "none" where none was given);
        the engine's own word for its ``status``; ``startup_seconds`` of a process of its own; its ``options``.
    index : tuple or None
        Index of the DataFrame of training rows, None where they came in another form.
    data_digest : str
        Hash of the training table, its labels and weights.
    table_digest : str
        Hash of the training table and its labels alone; "" in results of earlier versions.
    n, p : int
        Rows and features of the training table.
    versions : dict
        Of Python and of the packages that a result depends on.
    bound_source : str
        Whose word the bound is, where it was taken on trust (:func:`octsvm.read_solution`); "" where it was proved in
        this call.
    conflict : tuple of str
        Only where the model is infeasible: names of rows and fixings of your own that no tree keeps together, as few as
        were found; a note says so too.
    """

    formulation: str
    params: Mapping[str, Any]
    tree: Tree | None
    status: str
    stop: str
    objective: float
    bound: float
    gap: float
    terms: Mapping[str, float]
    counts: Mapping[str, float]
    seconds: float
    solver: str
    solver_version: str
    rounds: int = 0
    nodes: int = 0
    trace: tuple[TracePoint, ...] = ()
    notes: tuple[str, ...] = ()
    model_objective: float = math.nan
    differing_rows: tuple[int, ...] = ()
    big_m: Mapping[str, float] = field(default_factory=dict)
    engine: Mapping[str, Any] = field(default_factory=dict)
    data_digest: str = ""
    index: tuple[Any, ...] | None = None
    n: int = 0
    p: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    table_digest: str = ""
    bound_source: str = ""
    conflict: tuple[str, ...] = ()

    def _meaning(self) -> str:
        if self.status == "optimal" and self.bound_source:
            return f"no better tree within the gap asked for, if the bound is right that is taken on trust from {self.bound_source}"
        if self.tree is None and self.status == "unverified":
            return "the model belongs to no formulation, so nothing was checked"
        return STATUSES[self.status]

    def _stopped(self) -> str:
        work = f"{plural(self.rounds, 'round')}, {plural(self.nodes, 'node')}"
        return f"{self.stop} after {self.seconds:.2f} s, {work}"

    def _bound(self) -> str:
        source = f", taken on trust from {self.bound_source}" if self.bound_source else ""
        gap = f" (gap {self.gap:.3%})" if math.isfinite(self.gap) else ""
        return ("none" if self.status == "infeasible" else f"{self.bound:.8g}{gap}") + source

    def _objective(self) -> str:
        if not math.isfinite(self.objective):
            return "none: there is no tree"
        terms = " + ".join(f"{shown_cost(v)} {k}" for k, v in self.terms.items())
        return f"{self.objective:.8g}" + (f" = {terms}" if terms else "")

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (m,) that the tree gives the rows of ``X (m, p)``, in original units.

        Raises
        ------
        NoValues
            There is no tree: the status says why.
        InvalidData
            X does not have the training table's columns, or holds what is no finite number.
        """
        if self.tree is None:
            raise NoValues(f"There is no tree to predict with: {self.status}, {self._meaning()}.")
        return self.tree.predict(X)

    def summary(self) -> str:
        """The result in a few lines."""
        shown = telling(self.params)
        lines = [
            f"{self.formulation} on {plural(self.n, 'row')} and {plural(self.p, 'feature')}, "
            + ", ".join(f"{k}={v}" for k, v in shown.items()),
            f"status     {self.status}: {self._meaning()}",
            f"stop       {self._stopped()} ({self.solver} {self.solver_version})",
            f"objective  {self._objective()}",
            f"bound      {self._bound()}",
        ]
        if self.counts:
            lines.append("counts     " + ", ".join(f"{k} {v:.6g}" for k, v in self.counts.items()))
        lines += [f"note       {note}" for note in self.notes]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def to_frame(self) -> pd.DataFrame:
        """The result as one row: status, figures, terms and parameters."""
        import pandas as pd

        shown = (
            "formulation", "n", "p", "status", "stop", "objective", "bound", "gap", "seconds", "rounds", "nodes", "solver",
        )  # fmt: skip
        row: dict[str, Any] = {name: getattr(self, name) for name in shown}
        row |= {f"term_{k}": v for k, v in self.terms.items()}
        row |= {f"param_{k}": v for k, v in self.params.items()}
        return pd.DataFrame([row])

    def relabelled(self) -> pd.DataFrame:
        """Rows whose label the model gave up: columns row, node, cost (empty for OCT and OCT-H).

        ``row`` is the position among the training rows; where they came in a DataFrame, its index is the frame's.
        """
        import pandas as pd

        found = list(getattr(self.tree, "relabelled", ()))
        names = None if self.index is None else [self.index[r.row] for r in found]
        return pd.DataFrame(found, columns=["row", "node", "cost"], index=names)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, fit for JSON (infinite and missing numbers become None)."""
        out = {name: getattr(self, name) for name in IN_JSON}
        out["tree"] = None if self.tree is None else self.tree.to_dict()
        plain: dict[str, Any] = finite(out)
        return {"schema": "octsvm.result", "version": 1} | plain

    def to_json(self, path: str | Path | None = None) -> str:
        """The result as JSON text; written to ``path`` too if one is given."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False)
        if path is not None:
            replace_text(path, text + "\n")
        return text

    def _repr_html_(self) -> str:
        rows = [
            ("status", f"{self.status}: {self._meaning()}"),
            ("stop", self._stopped()),
            ("solver", f"{self.solver} {self.solver_version}"),
            ("objective", self._objective()),
            ("bound", self._bound()),
            *(("note", note) for note in self.notes),
        ]
        body = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows)
        tree = f"<pre>{html.escape(str(self.tree))}</pre>" if self.tree is not None else ""
        return f"<table><caption>{html.escape(self.formulation)}</caption>{body}</table>{tree}"


DEPENDS_ON = ("octsvm", "pyomo", "numpy", "scipy", "highspy", "clarabel", "daqp")


def versions() -> dict[str, str]:
    """Versions of everything that a result depends on."""
    return {"python": platform.python_version(), **{name: _version(name) for name in DEPENDS_ON}}


@cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def finite(value: Any) -> Any:
    """Plain data with None for infinite and missing numbers, as JSON and SQL want it."""
    if isinstance(value, Mapping):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
