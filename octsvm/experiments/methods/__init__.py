"""Methods of the experiments by kind; each fits a whole grid on one part, so that fits can share work.

A method is a function ``fit_grid(data, settings, spec, seed, skip) -> Iterator[(index, Fit)]``: it yields one
:class:`~octsvm.experiments.cells.Fit` for each index of ``settings`` that is not in ``skip``, in that order, as
soon as it has it. A protocol may also name a function of your own, or a formulation, as ``module:name`` or ``FILE.py:name``. What a
method yields for an index depends on the arguments but not on ``skip``: a resumed run ends as an undisturbed one.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidParameter, MissingPackage
from ...formulations.base import Formulation
from ...formulations.registry import NAMES, known_everywhere, load_from, names
from ..cells import Fit, PartData
from ..protocol import MethodSpec

FitGrid = Callable[
    [PartData, Sequence[Mapping[str, float]], MethodSpec, int, Collection[int]], Iterator[tuple[int, Fit]]
]


@dataclass(frozen=True)
class Kind:
    """Where a method lives, the optional package that it needs, and what a protocol says of it.

    ``grid`` are the names that every point of its grid has, ``fixed`` those that may be fixed, ``work`` whether it has steps to
    limit. Without ``grid`` a function ``require(spec)`` of its module checks all that.
    """

    module: str
    package: str = ""  # as pip knows it; Python has it in small letters
    grid: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    work: bool = False


OWN = Kind("own")  # every formulation
KINDS = {
    "cart": Kind("cart", grid=("alpha",), fixed=("depth",)),
    "tuned": Kind("tuned"),
    "svm": Kind("svm", grid=("C",), work=True),
    **dict.fromkeys(NAMES, OWN),
    "stree": Kind("stree", "STree", ("C",), ("depth",), work=True),
    "cleanlab_cart": Kind("cleanlab_cart", "cleanlab", ("alpha",), ("depth",)),
}


def available(kind: str) -> bool:
    """Whether the packages of a method are installed."""
    package = KINDS[kind].package if kind in KINDS else ""
    return not package or importlib.util.find_spec(package.lower()) is not None


def fit_grid(kind: str) -> FitGrid:
    """The function of a method: one of ours, or the user's."""
    method, found = _method(kind)
    fit: FitGrid = found if method is None else _module(method).fit_grid
    return fit


def require(spec: MethodSpec, workers: bool = False) -> None:
    """Refuse what would fail in every fit, or be left out of account; of a function of the user's own nothing is known.

    Parameters
    ----------
    spec : MethodSpec
    workers : bool
        Whether other processes are to fit.

    Raises
    ------
    InvalidParameter, UnknownFormulation, MissingPackage
    """
    method, _ = _method(spec.kind)
    if method is None:
        return
    for name, value in (("time_limit", spec.time_limit), ("solver", spec.solver)):
        if value != MethodSpec.model_fields[name].default:
            raise InvalidParameter(
                f"{name}={value!r} is for functions of your own, and {spec.kind!r} is none: its trees are the same on every machine. "
                "Give it work, steps of the search for each point of the grid"
                + (", or a time_limit in fixed." if method.module == "tuned" else ".")
            )
    names_of_forms = [spec.kind] if method is OWN else [str(spec.fixed.get("formulation", ""))]
    local = [n for n in names_of_forms if n in names() and not known_everywhere(n)]
    if workers and local:
        raise InvalidParameter(
            f"{local[0]!r} was registered in this process, and worker processes do not know it. Name it as FILE.py:CLASS or "
            "module:CLASS, or fit in this process (jobs=1)."
        )
    if method.grid:
        _require_names(spec, method)
    else:
        _module(method).require(spec)


def _require_names(spec: MethodSpec, method: Kind) -> None:
    """Refuse other names in grid and fixed than a method reads, and work where it has none."""
    for where, given, known in (
        ("grid", set(spec.grid), set(method.grid)),
        ("fixed", set(spec.fixed), set(method.fixed)),
    ):
        strange, lacking = sorted(given - known), sorted(known - given) if where == "grid" else []
        if strange or lacking:
            wrong = f"{strange[0]!r} is none" if strange else f"{lacking[0]!r} is not given"
            takes = ", ".join(sorted(known)) or "nothing"
            raise InvalidParameter(f"{where} of {spec.kind!r}: {wrong}. It takes {takes}.")
    if spec.work is not None and not method.work:
        raise InvalidParameter(f"work={spec.work}: {spec.kind!r} has no steps to limit. Leave it out.")


def _module(method: Kind) -> Any:
    return importlib.import_module(f".{method.module}", __name__)


def _method(kind: str) -> tuple[Kind | None, Any]:
    """A method of ours, or else the function of the user's at ``module:name`` or ``FILE.py:name``."""
    if ":" in kind:
        found = _own(kind)
        if isinstance(found, type) and issubclass(found, Formulation):
            return OWN, None
        return None, found
    method = KINDS.get(kind)
    if method is None and kind in names():
        method = OWN  # registered, or of a package
    if method is None:
        raise InvalidParameter(
            f"kind={kind!r} is no method; there are {', '.join(KINDS)}, and module:name or FILE.py:name for a function or a "
            "formulation of your own."
        )
    if not available(kind):
        raise MissingPackage(
            f"{kind} needs {method.package}, which is not installed: pip install {method.package}"
        )
    return method, None


def _own(kind: str) -> Any:
    """A function of the user's, or the class of a formulation."""
    why = ""
    try:
        found = load_from(kind)
    except Exception as error:  # whatever the user's own code raises
        why = f"{type(error).__name__}: {error}"
    else:
        if callable(found):
            return found
        why = "it is no function, and no formulation"
    raise InvalidParameter(
        f"kind={kind!r}: {why}. Name a module that Python finds here (and in the workers), or a file FILE.py, and a function or a "
        "formulation in it."
    )
