"""All errors of the toolkit: what you asked, what is so, what you can do. One class a cause, facts as fields."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .formulations.errors import (
    InvalidData,
    InvalidParameter,
    NoValues,
    OctsvmError,
    OutputNotWritable,
    TreeNotAdmitted,
    UnknownFormulation,
)

if TYPE_CHECKING:
    from .result import Result

__all__ = [
    "CertificateMismatch",
    "DatasetUnavailable",
    "EngineFailed",
    "InvalidData",
    "InvalidParameter",
    "InvalidSolutionFile",
    "InvalidSolverTable",
    "InvalidStore",
    "LicenseTooSmall",
    "MissingPackage",
    "NoValues",
    "OctsvmError",
    "OutputNotWritable",
    "ProtocolMismatch",
    "SchedulerLost",
    "SolverUnavailable",
    "TimeLimitReached",
    "TreeNotAdmitted",
    "UnknownFormulation",
    "UnknownSolver",
    "UnsupportedProblem",
]


class UnknownSolver(OctsvmError, ValueError):
    """No entry of that name in the solver table."""


class SolverUnavailable(OctsvmError, RuntimeError):
    """The solver is known but not installed here."""


class MissingPackage(OctsvmError, ImportError):
    """What was asked for needs a package that comes with an optional extra, and it is not installed."""


class LicenseTooSmall(OctsvmError, RuntimeError):
    """The model is larger than the solver's licence allows."""


class UnsupportedProblem(OctsvmError, ValueError):
    """The solver cannot take this class of problem, and no bridge leads there."""


class InvalidSolverTable(OctsvmError, ValueError):
    """A mistake in solvers.yaml."""


class InvalidSolutionFile(OctsvmError, ValueError):
    """A solution file of a solver cannot be read, or is none of this model."""


class DatasetUnavailable(OctsvmError, OSError):
    """A data set is in no folder and cannot be downloaded, or what came is not what is known."""


class EngineFailed(OctsvmError, RuntimeError):
    """The solver broke down without an answer."""


class TimeLimitReached(OctsvmError, TimeoutError):
    """A time limit was over before there was anything to return; the message says how large a model would be, or how far it came."""


class InvalidStore(OctsvmError, ValueError):
    """A file cannot be read as a store of an experiment's cells."""


class ProtocolMismatch(OctsvmError, ValueError):
    """A store holds cells of another protocol.

    Attributes
    ----------
    differences : tuple of str
        What differs, in words.
    """

    def __init__(self, message: str, differences: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.differences = differences


class SchedulerLost(OctsvmError, RuntimeError):
    """A Dask scheduler does not answer, or has lost its tasks."""


class CertificateMismatch(OctsvmError, RuntimeError):
    """The tree in the solver's answer is worse than the answer claims, or routes rows elsewhere.

    Attributes
    ----------
    result : Result
        With status "unverified" and the best tree known.
    """

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result: Any = result


@contextlib.contextmanager
def unhidden_interrupts() -> Iterator[None]:
    """Raise the KeyboardInterrupt itself that Python 3.11 makes the cause of a RuntimeError.

    That is what becomes of one that comes while a class is made (``__set_name__``), as in the middle of an import.
    """
    try:
        yield
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise
