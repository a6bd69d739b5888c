"""Options of a solver by its own names: ours for a solve, and the caller's, checked against what its entry knows of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidParameter
from ..solvers import Option, SolverSpec
from .matrix_program import SEEDS, Limits
from .protocol import fitting

_KINDS = {"whole": int, "number": float, "text": str}


def neutral_values(spec: SolverSpec, limits: Limits) -> dict[str, Any]:
    """The options of a solve by our names, but for its time; None where there is no limit."""
    integrality = limits.integrality
    return {
        "gap": float(limits.gap),
        "gap_abs": 1e-9,
        "threads": int(limits.threads),
        "seed": int(limits.seed) % SEEDS,
        "node_limit": None if limits.nodes is None else int(limits.nodes),
        "work_limit": limits.work,
        "feasibility_tolerance": spec.tolerances.feasibility,
        "integrality_tolerance": spec.tolerances.integrality if integrality is None else integrality,
    }


def settings(spec: SolverSpec, limits: Limits, own: Mapping[str, Any]) -> dict[str, Any]:
    """The solver's own options for these limits, without the time limit; the caller's ``own`` win."""
    out = spec.fixed_with(own)
    for neutral, value in neutral_values(spec, limits).items():
        option = spec.options.get(neutral)
        if option is None or value is None:
            continue
        if isinstance(option, Option):
            if option.measure == "smaller":  # its gap is relative to the smaller of objective and bound
                value = value / (1 - value)
            option = option.name
        # two of ours may be one of theirs: the stricter counts
        out[option] = min(out[option], value) if option in out and option not in spec.fixed else value
    return out | dict(own)


def own_options(spec: SolverSpec, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the entry says that the program takes them.

    Raises
    ------
    InvalidParameter
        There is no way to pass them, or one is of the wrong kind.
    """
    if options and spec.backend == "executable" and spec.option_file is None and not spec.own_option:
        raise InvalidParameter(
            f"{spec.title} has no way to take options of your own here ({', '.join(options)})."
        )
    out = {}
    for name, value in options.items():
        try:
            out[name] = _value(spec, name, value)
        except ValueError as error:
            raise not_taken(spec, f"{name} = {value!r} ({error})") from None
    return out


def _value(spec: SolverSpec, name: str, value: Any) -> Any:
    if not name.strip() or any(c in f"{name}{value}" for c in "\r\n\0"):
        raise ValueError("should be a name and a value on one line")
    if name.lower() == (spec.native("time_limit") or "").lower():
        seconds: float = fitting(value, float)
        if seconds < 0:
            raise ValueError("should be a number of seconds")
        return seconds
    kinds = {known.lower(): kind for known, kind in spec.own.items()}
    kind = kinds.get(name.lower())
    if isinstance(kind, tuple):
        if str(value).lower() not in [word.lower() for word in kind]:
            raise ValueError(f"should be one of {', '.join(kind)}")
        return value
    return fitting(value, None if kind is None else _KINDS[kind])


def not_taken(spec: SolverSpec, what: str) -> InvalidParameter:
    """The error for an option that a solver does not take."""
    return InvalidParameter(
        f"{spec.title} does not take an option: {what}. See its manual for names and values."
    )
