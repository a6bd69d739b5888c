"""Methods of the experiments by kind; each fits a whole grid on one part, so that fits can share work.

A method is a function ``fit_grid(data, settings, spec, seed, skip) -> Iterator[(index, Fit)]``: it yields one
:class:`~octsvm.experiments.cells.Fit` for each index of ``settings`` that is not in ``skip``, in that order, as
soon as it has it. A protocol may also name a function of your own as ``module:function``. What a method yields for an index depends on the arguments but not on ``skip``: a resumed run ends as an
undisturbed one.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...errors import InvalidParameter, MissingPackage
from ...formulations.registry import NAMES, names
from ..cells import Fit, PartData
from ..protocol import MethodSpec

FitGrid = Callable[
    [PartData, Sequence[Mapping[str, float]], MethodSpec, int, Collection[int]], Iterator[tuple[int, Fit]]
]


@dataclass(frozen=True)
class Kind:
    """Where a method lives, and the optional package that it needs."""

    module: str
    package: str = ""  # as pip knows it; Python has it in small letters


OWN = Kind("own")  # every formulation
KINDS = {kind: Kind(kind) for kind in ("cart", "tuned", "svm")} | dict.fromkeys(NAMES, OWN)
KINDS |= {"stree": Kind("stree", "STree"), "cleanlab_cart": Kind("cleanlab_cart", "cleanlab")}


def available(kind: str) -> bool:
    """Whether the packages of a method are installed."""
    package = KINDS[kind].package if kind in KINDS else ""
    return not package or importlib.util.find_spec(package.lower()) is not None


def fit_grid(kind: str) -> FitGrid:
    """The function of a method: one of ours, or ``module:function``.

    Raises
    ------
    InvalidParameter, MissingPackage
    """
    if ":" in kind:
        return _own(kind)
    method = KINDS.get(kind)
    if method is None and kind in names():
        method = OWN  # registered, or of a package
    if method is None:
        raise InvalidParameter(
            f"kind={kind!r} is no method; there are {', '.join(KINDS)}, and module:function for one of your own."
        )
    if not available(kind):
        raise MissingPackage(
            f"{kind} needs {method.package}, which is not installed: pip install {method.package}"
        )
    found: FitGrid = importlib.import_module(f".{method.module}", __name__).fit_grid
    return found


def _own(kind: str) -> FitGrid:
    """A function of the user's, by the name of its module and its own."""
    module, _, name = kind.partition(":")
    try:
        found: FitGrid = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidParameter(
            f"kind={kind!r}: {error}. Name a module that Python finds here (and in the workers), and a function in it."
        ) from None
    return found
