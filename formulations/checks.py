"""What checks of arguments share: which values are numbers, and how a message lists names or asks for the one that was meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

from .errors import InvalidParameter


def is_number(value: Any) -> bool:
    """Whether ``value`` is a finite number; true and false are none."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    number: Any = value if isinstance(value, Integral) else float(value)
    return bool(abs(number) <= 1e300)  # integers of 400 digits, too, can be compared


def is_whole(value: Any, least: int) -> bool:
    """Whether ``value`` is a whole number, ``least`` or more; true and false are none."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def whole(name: str, value: Any, least: int, otherwise: str = "") -> int:
    """A whole number that is ``least`` or more; ``otherwise`` says what else would do."""
    if not is_whole(value, least):
        raise InvalidParameter(f"{name}={value!r} should be a whole number, {least} or more{otherwise}.")
    return int(value)


def require_jobs(name: str, jobs: Any) -> None:
    """Refuse what is no number of processes, in joblib's sense."""
    if jobs is not None and (not isinstance(jobs, Integral) or isinstance(jobs, bool) or jobs == 0):
        raise InvalidParameter(
            f"{name}={jobs!r} should be a number of processes, -1 for all processors, or None."
        )


def nearest(name: Any, known: Iterable[Any], cutoff: float = 0.6) -> str:
    """The question whether another one of ``known`` was meant, for a message; "" where none is near."""
    import difflib  # only errors need it

    close = difflib.get_close_matches(str(name), [str(k) for k in known], n=1, cutoff=cutoff)
    return f" Did you mean {close[0]!r}?" if close else ""


def plural(count: int, what: str, form: str = "") -> str:
    """ "1 row", "2 rows": a count, written in the format ``form``, of ``what``."""
    return f"{count:{form}} {what}{'' if count == 1 else 's'}"


def listed(names: Sequence[Any], most: int = 12) -> str:
    """``names`` for a message, the first of them where there are many."""
    return ", ".join(repr(c) for c in names[:most]) + (", ..." if len(names) > most else "")
