"""The options of a solve: each is declared, checked and documented here, once, and the clock of a call.

:func:`octsvm.fit`, :func:`octsvm.solve`, :func:`octsvm.race`, :func:`octsvm.plan`, the classifiers and the command line
take their options from :class:`SolveOptions`. A new option is a new field here; what it does is for whoever reads it.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import os
import re
import textwrap
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from .formulations.checks import is_number, is_whole, nearest
from .formulations.errors import InvalidParameter, OutputNotWritable

OnMismatch = Literal["raise", "warn", "ignore"]
Strategy = Literal["balanced", "exact", "heuristic"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)
FIT, SOLVE, RACE, PLAN, ESTIMATOR, COMMAND = "fit", "solve", "race", "plan", "estimator", "command"
BUILD, PATH, READ = "build", "fit_path", "read_solution"
UNLIMITED = frozenset((BUILD, PATH, READ))  # take as long as they take, where no time limit is given
EVERYWHERE = frozenset((FIT, SOLVE, ESTIMATOR, COMMAND))
LEAST_SECONDS = 1e-3  # an engine is never asked for less: where nothing is left, it returns its start


# -- the clock ----------------------------------------------------------------------------------------------------


class Clock:
    """When a call began, and how much of its ``limit`` (seconds of wall clock) is left; whoever spends time asks it."""

    def __init__(self, limit: float = math.inf) -> None:
        self.began = time.monotonic()
        self.limit = float(limit)

    def seconds(self) -> float:
        """Seconds since the call began."""
        return time.monotonic() - self.began

    def left(self) -> float:
        """Seconds that are left, at least :data:`LEAST_SECONDS`."""
        return max(LEAST_SECONDS, self.limit - self.seconds())

    def late(self, share: float = 1.0) -> bool:
        """Whether this share of the limit is over."""
        return self.seconds() > share * self.limit

    def part(self, seconds: float) -> Clock:
        """The same clock for a part of the call that ends in so many seconds, and no later than the call."""
        clock = Clock(min(self.limit, self.seconds() + seconds))
        clock.began = self.began
        return clock

    def exclude(self, seconds: float) -> None:
        """Take out what is no part of the call, such as importing libraries for the first time."""
        self.began += seconds


# Of a limit, for finding a kernel's pivots; the coordinates of all rows take about as long again.
MAPPING_SHARE = 0.1


class WorkLimits(NamedTuple):
    """Reproducible limits: nodes and rounds over all rounds, and the engine's own units of a single one."""

    nodes: int | None = None
    rounds: int | None = None
    work: float | None = None


# -- checks -------------------------------------------------------------------------------------------------------

Check = Callable[[str, Any], None]  # of an option's name and value


def _should_be(what: str, fits: Callable[[Any], bool]) -> Check:
    def check(name: str, value: Any) -> None:
        if not fits(value):
            raise InvalidParameter(f"{name}={value!r} should be {what}.")

    return check


def _from(least: int) -> Check:
    return _should_be(f"a whole number, {least} or more", lambda value: is_whole(value, least))


def _is_work(value: Any) -> bool:
    limits = {"nodes": value} if is_whole(value, -(10**18)) else {} if value is None else value
    return (
        isinstance(limits, Mapping)
        and not set(limits) - {"nodes", "rounds", "work"}
        and all(is_whole(limits.get(k, 1), 1) for k in ("nodes", "rounds"))
        and is_number(limits.get("work", 1))
        and limits.get("work", 1) > 0
    )


_seconds = _should_be("a positive number of seconds", lambda value: is_number(value) and value > 0)
_relative_gap = _should_be(
    "a relative gap, 0 or more and below 1 (1e-4 is the default)",
    lambda value: is_number(value) and 0 <= value < 1,
)
_strategy = _should_be(f"one of {', '.join(map(repr, STRATEGIES))}", lambda value: value in STRATEGIES)
_on_mismatch = _should_be("'raise', 'warn' or 'ignore'", lambda value: value in get_args(OnMismatch))
_callback = _should_be("a function that is handed a Progress", lambda value: value is None or callable(value))
_engine_options = _should_be(
    "a mapping from the solver's own option names to values, or None",
    lambda value: (
        value is None or (isinstance(value, Mapping) and all(isinstance(name, str) for name in value))
    ),
)
_work_limit = _should_be(
    "a number of nodes, or {'nodes': ..., 'rounds': ...} with whole numbers (and 'work' in the solver's own units)",
    _is_work,
)


def _log(name: str, value: Any) -> None:
    if value is None or isinstance(value, bool):
        return
    if not isinstance(value, (str, os.PathLike)):
        raise InvalidParameter(f"{name}={value!r} should be None, True (the console) or a file's path.")
    try:
        with open(value, "a", encoding="utf-8"):
            pass
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise OutputNotWritable(f"The log file {os.fspath(value)!r} cannot be written: {why}.") from None


def _solver(name: str, value: Any) -> None:
    from . import solvers

    if value is None:
        raise InvalidParameter(
            f"solver=None is no name. Leave it out for {default_of(name)!r}, or say {solvers.AUTO!r}."
        )
    if not isinstance(value, str):
        shown = f"{name} is a {type(value).__name__}, and a name of the solver table is wanted (octsvm solvers lists them). "
        own = "octsvm.build gives a Pyomo model: solve it with this object yourself, then call octsvm.extract(model)."
        one = "Give one; octsvm.race runs several."
        raise InvalidParameter(shown + (own if hasattr(value, "solve") else one))
    if value != solvers.AUTO:
        solvers.require(value)


def _bridge(name: str, value: Any) -> None:
    if value is not None:
        from . import bridges

        if not isinstance(value, str):
            raise InvalidParameter(
                f"{name}={value!r} should be one of {', '.join(bridges.names())}, or None."
            )
        bridges.bridge(value)


# -- declarations -------------------------------------------------------------------------------------------------


class Unasked(str):
    """The name of a default that the caller did not ask for: something that suits the model better may take its place."""

    __slots__ = ()


class Declared(NamedTuple):
    """What is known of an option besides its name, type and default.

    ``doc`` is its paragraph in docstrings, headed by ``kind``; ``help`` its line on the command line, where ``metavar``
    stands for the value; ``where`` says who takes it.
    """

    doc: str
    help: str
    kind: str = ""
    metavar: str | None = None
    check: Check | None = None
    where: frozenset[str] = EVERYWHERE
    choices: tuple[str, ...] = ()


def option(default: Any, doc: str, *, help: str = "", **more: Any) -> Any:
    """A field of :class:`SolveOptions`; see :class:`Declared`."""
    text = " ".join(doc.split())
    return field(default=default, metadata={"declared": Declared(text, help or text, **more)})


@dataclass(frozen=True, eq=False)
class SolveOptions:
    """What a solve is asked for, checked, and the clock that began with it.

    Attributes
    ----------
    clock : Clock
        Began when the options were made.

    Raises
    ------
    InvalidParameter, OutputNotWritable, UnknownSolver, SolverUnavailable
        When one is made: it names the option, what was given and what is allowed.
    """

    solver: str = option(
        Unasked("highs"),
        """A name of the solver table (`octsvm solvers` shows it), "auto", "neos:<solver>", or "branch_and_reduce", our search
        for RE-SVM. Where none is named (None in a classifier), that search takes RE-SVM's models, and HiGHS all others.""",
        kind="str, optional",
        help="A name of the solver table (octsvm solvers lists it), auto, or neos:NAME.",
        metavar="NAME",
        where=EVERYWHERE | {PLAN},
        check=_solver,
    )
    time_limit: float = option(
        60,
        """Wall-clock seconds over everything: building, the rounds of a bridge, checking. Importing libraries in a first
        call does not count.""",
        kind="float",
        help="Wall-clock limit.",
        metavar="SECONDS",
        where=EVERYWHERE | {RACE} | UNLIMITED,
        check=_seconds,
    )
    work_limit: int | Mapping[str, int] | None = option(
        None,
        """A reproducible limit: branch-and-bound nodes over all rounds, or ``{"nodes": ..., "rounds": ..., "work": ...}``,
        where "work" is in the solver's own deterministic units. With strategy="heuristic": nodes over all neighbourhoods
        and the number of neighbourhoods, after a fixed number of steps of the heuristics.""",
        kind="int or mapping, optional",
        help="Reproducible limit: 500 nodes, or nodes=500,rounds=3.",
        metavar="NODES",
        check=_work_limit,
    )
    gap: float = option(
        1e-4,
        "Relative gap at which a tree counts as optimal.",
        kind="float",
        help="Relative gap that counts as optimal.",
        where=EVERYWHERE | {RACE},
        check=_relative_gap,
    )
    threads: int = option(
        1,
        "Threads of the solver; one by default, for runs that can be repeated.",
        kind="int",
        help="Threads of the solver.",
        where=EVERYWHERE | {RACE},
        check=_from(1),
    )
    seed: int = option(
        0,
        "Of the random choices of the solver and the heuristics.",
        kind="int",
        help="For the split, the flipped labels and the solver.",
        where=frozenset((FIT, SOLVE, RACE, COMMAND)),
        check=_from(0),
    )
    start: Any = option(
        None,
        "A tree that the model admits; the result is never worse.",
        kind="Tree, optional",
        help="A saved tree to start from; the result is never worse.",
        metavar="TREE.json",
        where=frozenset((FIT, SOLVE, RACE, COMMAND)),
    )
    log: Any = option(
        None,
        "The engine's log: silent, on the console (True), or appended to a file.",
        kind="bool or path, optional",
        help="Append the solver's log to this file.",
        metavar="PATH",
        where=frozenset((FIT, SOLVE, COMMAND)),
        check=_log,
    )
    callback: Callable[[Any], Any] | None = option(
        None,
        "Called with :class:`octsvm.Progress`, on the thread of the call; return True to stop.",
        kind="callable, optional",
        where=frozenset((FIT, SOLVE, RACE)),
        check=_callback,
    )
    on_mismatch: OnMismatch = option(
        "raise",
        '"raise", "warn" or "ignore": what to do when the solver\'s answer does not hold outside the solver.',
        kind="str",
        where=frozenset((FIT, SOLVE)),
        check=_on_mismatch,
    )
    strategy: Strategy = option(
        "balanced",
        """"balanced" looks for a good tree first (a heuristic, at most a tenth of the limit), which tightens the model and
        is the engine's first incumbent; "exact" leaves all time to the engine. Bounds and proofs are the same.
        "heuristic" proves nothing: start heuristics, then the engine on small neighbourhoods of the best tree. Where
        rows times nodes exceed 1,000 no model is built, and the tree is that of the heuristics.""",
        kind='"balanced", "exact" or "heuristic"',
        help="Look for a good tree first, leave all time to the solver, or look for good trees only and prove nothing.",
        where=frozenset((FIT, ESTIMATOR, COMMAND)),
        choices=STRATEGIES,
        check=_strategy,
    )
    options: Mapping[str, Any] | None = option(
        None,
        'The solver\'s own options by its own names, e.g. ``{"MIPFocus": 1}``; they win over ours.',
        kind="mapping, optional",
        help="An option of the solver's own, by its own name; may be repeated.",
        metavar="NAME=VALUE",
        check=_engine_options,
    )
    bridge: str | None = option(
        None,
        """The rewrite that the solver is reached through, one of ``octsvm.bridges.names()``, even where the solver takes the
        model as it stands: a bridge to linear models, or the form in which cones are written for a solver that reads
        .nl files. By default the first that is needed.""",
        kind="str, optional",
        help="Reach the solver through this rewrite of the model, e.g. outer_approximation.",
        metavar="NAME",
        where=EVERYWHERE | {PLAN, RACE},
        check=_bridge,
    )
    clock: Clock = field(init=False, repr=False, compare=False, default_factory=Clock)

    def __post_init__(self) -> None:
        for name, declared in declarations().items():
            if declared.check is not None:
                declared.check(name, getattr(self, name))
        for name in ("time_limit", "gap"):
            object.__setattr__(self, name, float(getattr(self, name)))
        self.clock.limit = self.time_limit

    @property
    def limits(self) -> WorkLimits:
        """The work limit, part by part."""
        given = self.work_limit
        if given is None or isinstance(given, Mapping):
            known: Mapping[str, Any] = given or {}
            return WorkLimits(known.get("nodes"), known.get("rounds"), known.get("work"))
        return WorkLimits(int(given))

    @property
    def engine_wanted(self) -> bool:
        """Whether a solver was named, or something was asked that only one from the table has."""
        named = not isinstance(self.solver, Unasked)
        return named or bool(self.options or self.bridge or self.log) or self.threads > 1

    def but(self, **changes: Any) -> SolveOptions:
        """The same options on the same clock, but for some."""
        return self._on(self.clock, changes)

    def within(self, seconds: float, **changes: Any) -> SolveOptions:
        """The same options, but for some, for a part of the call that ends in so many seconds."""
        return self._on(self.clock.part(seconds), changes)

    def _on(self, clock: Clock, changes: dict[str, Any]) -> SolveOptions:
        changed = dataclasses.replace(self, **changes)
        object.__setattr__(changed, "clock", clock)
        return changed


@functools.cache
def declarations(who: str | None = None) -> dict[str, Declared]:
    """Options by name, those that ``who`` takes (all by default), in the order in which they are declared."""
    found = {f.name: f.metadata["declared"] for f in dataclasses.fields(SolveOptions) if f.init}
    return {name: d for name, d in found.items() if who is None or who in d.where}


def default_of(name: str) -> Any:
    """What an option is where it is not given."""
    return SolveOptions.__dataclass_fields__[name].default


def parameters(who: str) -> list[inspect.Parameter]:
    """The options of ``who`` as keyword parameters of a signature."""
    fields = SolveOptions.__dataclass_fields__

    def default(name: str) -> Any:
        if who in UNLIMITED:
            return None
        given = fields[name].default
        # scikit-learn wants defaults of plain types, and cannot tell "highs" left out from "highs" given.
        return None if who == ESTIMATOR and isinstance(given, Unasked) else given

    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default(name),
            annotation=f"{fields[name].type} | None" if who in UNLIMITED else fields[name].type,
        )
        for name in declarations(who)
    ]


def documentation(who: str, but: Collection[str] = ()) -> str:
    """The paragraphs of a numpydoc "Parameters" section on the options of ``who``, but for some."""
    optional, none = (", optional", " None for no limit.") if who in UNLIMITED else ("", "")
    return "\n".join(
        f"{name} : {d.kind or SolveOptions.__dataclass_fields__[name].type}{optional}\n"
        f"{textwrap.indent(textwrap.fill(d.doc + none, 110), '    ')}"
        for name, d in declarations(who).items()
        if name not in but
    )


def limited(options: dict[str, Any]) -> Clock:
    """The clock of a call of :data:`UNLIMITED`, from now on; its time limit is taken out of the ``options``."""
    time_limit = options.pop("time_limit", None)
    if time_limit is None:
        return Clock()
    _seconds("time_limit", time_limit)
    return Clock(time_limit)


# Names that people bring along from scikit-learn, Pyomo and solvers: ours, and what to say besides.
BROUGHT = {
    **dict.fromkeys(("verbose", "tee", "output_flag"), ("log", "log=True shows the solver's log.")),
    **dict.fromkeys(("random_state", "random_seed", "rng"), ("seed", "It is a whole number.")),
    **dict.fromkeys(("n_jobs", "n_threads", "num_threads"), ("threads", "They are those of the solver.")),
    **dict.fromkeys(
        ("timeout", "max_time", "time", "timelimit", "TimeLimit"), ("time_limit", "It is in seconds.")
    ),
    **dict.fromkeys(("mip_gap", "MIPGap", "rel_gap", "mip_rel_gap", "tol"), ("gap", "It is relative.")),
    **dict.fromkeys(("warm_start", "warmstart"), ("start", "It is a tree.")),
    **dict.fromkeys(("solver_options", "solver_params"), ("options", "It is a mapping.")),
    **dict.fromkeys(("sample_weight", "sample_weights"), ("weights", "")),
    "class_weight": (
        "weights",
        "sklearn.utils.class_weight.compute_sample_weight(class_weight, y) gives them.",
    ),
    "max_depth": ("depth", ""),
    "min_samples_leaf": ("n_min", ""),
    "ccp_alpha": ("alpha", ""),
}


def advice_on(name: str, known: Collection[str]) -> str:
    """What to say instead of a name that belongs elsewhere; "" where it is not in :data:`BROUGHT` or ours is not ``known``."""
    ours, more = BROUGHT.get(name, ("", ""))
    return f"Say {ours}= instead. {more}".rstrip() if ours in known else ""


def require_known(who: str, given: Mapping[str, Any], own: tuple[str, ...] = ()) -> None:
    """Refuse what is no option of ``octsvm.<who>``; ``own`` are arguments that it takes besides."""
    known = (*declarations(who), *own)
    for name in given:
        if name not in known:
            hint = nearest(name, known) or f" It takes: {', '.join(known)}."
            advice = advice_on(name, known)
            if advice:
                hint = f" {advice}"
            elif name in BROUGHT:
                hint = f" {BROUGHT[name][0]}= is for octsvm.build or octsvm.fit."
            raise InvalidParameter(f"{name!r} is no argument of octsvm.{who}.{hint}")


def takes_options(who: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a function's signature and docstring the options of ``who``.

    The function takes them as ``**options``, or as ``**params`` where it has parameters of another kind besides. Its
    docstring has a line ``{options}`` where theirs belong.
    """

    def complete(function: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(function)
        rest = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        open_ended = [
            p
            for p in own.parameters.values()
            if p.kind is inspect.Parameter.VAR_KEYWORD and p.name != "options"
        ]
        there = {p.name for p in rest}
        added = [p for p in parameters(who) if p.name not in there]
        function.__signature__ = own.replace(parameters=[*rest, *added, *open_ended])  # type: ignore[attr-defined]
        function.__doc__ = with_options(function.__doc__ or "", who, there)
        return function

    return complete


def with_options(doc: str, who: str, but: Collection[str] = ()) -> str:
    """A docstring whose line ``{options}`` is replaced by the paragraphs of the options of ``who``, but for some."""
    return re.sub(
        r"^([ \t]*)\{options\}$",
        lambda match: textwrap.indent(documentation(who, but), match[1]),
        doc,
        flags=re.MULTILINE,
    )
