"""The solver table: solvers.yaml with the user's own file merged over it, validated, and asked what is installed."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.resources
import importlib.util
import io
import os
import re
import shutil
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import yaml
from platformdirs import user_config_path
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from .errors import InvalidSolverTable, SolverUnavailable, UnknownSolver
from .formulations.checks import nearest
from .read_yaml import read_yaml

ENVIRONMENT = "OCTSVM_SOLVERS"
AUTO = "auto"

REMOTE = "neos:"
INTERFACES = {
    "highs": "in this process",
    "own": "a search of ours, in this process",
    "child": "its Python interface, in a process of its own",
    "executable": "a program that reads a file",
    "neos": "the NEOS server",
}
NEUTRAL = (
    "time_limit", "gap", "gap_abs", "threads", "seed", "node_limit", "work_limit", "feasibility_tolerance",
    "integrality_tolerance", "log",
)  # fmt: skip


class _At(ValueError):
    """A mistake, and the keys that lead to its place within the part that is looked at."""

    def __init__(self, text: str, *keys: str | int) -> None:
        super().__init__(text)
        self.keys = keys


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Requirement(_Strict):
    """The distribution that brings a solver's interface."""

    distribution: str
    module: str
    version: str


class Tolerances(_Strict):
    """Feasibility and integrality tolerance that are set on every solve."""

    feasibility: float = 1e-6
    integrality: float = 1e-6


class Option(_Strict):
    """One of the solver's own options: its name, and how its values relate to ours."""

    name: str
    measure: Literal["same", "smaller"] = "same"


class OptionFile(_Strict):
    """The file of options that a program reads in its working directory."""

    name: str
    line: str = "{key} {value}"

    @model_validator(mode="after")
    def _in_its_folder(self) -> OptionFile:
        taken = ("model", "start.", "solution.", "linear.")
        if not re.fullmatch(r"[\w+][\w.+-]*", self.name) or self.name.lower().startswith(taken):
            raise _At(
                f"{self.name!r} should be the plain name of a file in the folder of the solve, and none of its other files",
                "name",
            )
        return self


class Ceiling(_Strict):
    """The largest model that a free licence takes."""

    variables: int | None = None
    rows: int | None = None
    total: int | None = None

    def beside(self, variables: int, rows: int) -> list[tuple[int, int, str]]:
        """What a model has, what there may be, and of what, for each ceiling."""
        counts = (
            (variables, self.variables, "variables"),
            (rows, self.rows, "rows"),
            (variables + rows, self.total, "rows and variables together"),
        )
        return [(have, most, what) for have, most, what in counts if most is not None]

    def broken_by(self, variables: int, rows: int) -> str:
        """Which ceiling a model breaks, as text; empty where none."""
        counts = self.beside(variables, rows)
        return next((f"{h} {what}, and it takes {most}" for h, most, what in counts if h > most), "")


class Licence(_Strict):
    """Ceilings of the free licence, for linear models and for those with any quadratic term.

    ``required`` says that its package carries no free one.
    """

    linear: Ceiling = Ceiling()
    quadratic: Ceiling = Ceiling()
    required: bool = False


class Start(_Strict):
    """How a start is passed; a program gets a file with a ``head`` and one ``line`` for each value."""

    passes: Literal["all", "integers", "none"] = "none"
    head: str = ""
    line: str = "{name} {value}"


class LogPatterns(_Strict):
    """Regular expressions for what an engine's log says; the first group of the first three is what is looked for."""

    version: str = ""
    bound: str = ""
    nodes: str = ""
    accepted: str = ""
    rejected: str = ""
    refused: str = ""
    stop: dict[str, str] = {}

    @model_validator(mode="after")
    def _readable(self) -> LogPatterns:
        for keys, pattern in self.patterns.items():
            try:
                re.compile(pattern)
            except (re.error, RecursionError, OverflowError) as error:
                raise _At(f"{pattern[:60]!r} is no regular expression ({error})", *keys) from None
        return self

    @property
    def patterns(self) -> dict[tuple[str, ...], str]:
        """Every expression by its keys."""
        said = {(k,): getattr(self, k) for k in type(self).model_fields if k != "stop"}
        return said | {("stop", k): v for k, v in self.stop.items()}


class SolverSpec(_Strict):
    """One entry of the solver table."""

    name: str = ""
    title: str
    backend: Literal["highs", "own", "child", "executable", "neos"]
    adapter: str = ""
    requires: Requirement | None = None
    executable: tuple[str, ...] = ()
    argv: tuple[str | tuple[str, ...], ...] = ()
    own_option: tuple[str, ...] = ()
    own: dict[str, Literal["whole", "number", "text"] | tuple[str, ...]] = {}
    env: dict[str, str] = {}
    format: Literal["", "any", "nl", "mps", "lp"] = ""
    reads: tuple[Literal["nl", "mps", "lp"], ...] = ()
    answer: str = ""
    option_file: OptionFile | None = None
    otherwise: str = ""
    classes: tuple[str, ...]
    cone_form: Literal["quadratic", "perspective", "norm", "none"] = "none"
    claim: Literal["global", "convex", "none"] = "global"
    proves_nothing_with: dict[str, tuple[str, ...]] = {}
    set_with: dict[str, dict[str, dict[str, Any]]] = {}
    licence: Licence | None = None
    options: dict[str, str | Option] = {}
    fixed: dict[str, Any] = {}
    bounding: dict[str, Any] = {}
    cutoff: str = ""
    small: dict[str, Any] = {}
    unsupported: tuple[str, ...] = ()
    least_gap: float = 0.0
    tolerances: Tolerances = Tolerances()
    start: Start = Start()
    log: LogPatterns = LogPatterns()
    trusted: bool = False
    tested: bool = True
    install: str

    @model_validator(mode="after")
    def _consistent(self) -> SolverSpec:
        if self.backend == "child" and not self.adapter:
            raise ValueError("backend: child needs an adapter")
        if self.adapter and not self.adapter.isidentifier():
            raise _At(f"{self.adapter!r} is no name of a module", "adapter")
        if self.backend in ("child", "highs", "own") and self.requires is None:
            raise ValueError(f"backend: {self.backend} needs requires")
        if self.backend == "executable":
            missing = [k for k in ("executable", "argv", "format", "answer") if not getattr(self, k)]
            if missing:
                raise ValueError(f"backend: executable needs {', '.join(missing)}")
        for section, keys in (("options", self.options), ("unsupported", self.unsupported)):
            for k, key in enumerate(keys):
                if key not in NEUTRAL:
                    place = key if section == "options" else k
                    raise _At(f"{key!r} is no neutral option; there are {', '.join(NEUTRAL)}", section, place)
        return self

    @property
    def file_formats(self) -> tuple[str, ...]:
        """The formats of model files that it reads."""
        return self.reads or tuple(f for f in (self.format,) if f in ("nl", "mps", "lp"))

    def with_own(self, options: Mapping[str, Any] | None) -> SolverSpec:
        """The entry under options of the caller's: some of them take away what its "optimal" proves."""
        for name, values in self.proves_nothing_with.items():
            if any(self._has(options, name, value) for value in values):
                return self.model_copy(update={"claim": "none"})
        return self

    def fixed_with(self, options: Mapping[str, Any] | None) -> dict[str, Any]:
        """The options that are always set, and those that are set with some of the caller's."""
        out = dict(self.fixed)
        for name, values in self.set_with.items():
            for value, more in values.items():
                out |= more if self._has(options, name, value) else {}
        return out

    @staticmethod
    def _has(options: Mapping[str, Any] | None, name: str, value: str) -> bool:
        """Whether an option has a value; solvers read the words of both without regard to case."""
        given = {own.lower(): str(said).lower() for own, said in (options or {}).items()}
        return given.get(name.lower()) == value.lower()

    def native(self, neutral: str) -> str | None:
        """The solver's own name of a neutral option, None where it has none."""
        found = self.options.get(neutral)
        return found.name if isinstance(found, Option) else found

    def takes(self, neutral: str) -> bool:
        """Whether the solver has this neutral option, by name or in its arguments."""
        return neutral in self.options or any(
            f"{{{neutral}}}" in part for a in self.argv for part in ((a,) if isinstance(a, str) else a)
        )

    @property
    def program(self) -> str | None:
        """Path of the executable, None where there is none."""
        for candidate in self.executable:
            if candidate.startswith("python:"):
                found = _path_from_python(candidate.removeprefix("python:"))
            else:
                found = shutil.which(candidate)
            if found:
                return found
        return None

    @property
    def version(self) -> str | None:
        """Version of the installed interface (of a program: "installed"), None where it is missing."""
        if self.requires is not None:
            found = importlib.util.find_spec(self.requires.module)
            if found is None:
                return None
            try:
                return _distribution_version(self.requires.distribution, found.origin)
            except importlib.metadata.PackageNotFoundError:
                return None
        if self.backend == "neos":
            return "remote" if neos_email() else None
        return "installed" if self.program else None


@lru_cache
def _distribution_version(distribution: str, origin: str | None) -> str:
    """Version of an installed distribution, whose module is at ``origin``: looked for once, as that takes milliseconds."""
    return importlib.metadata.version(distribution)


_from_python: dict[str, str] = {}
_one_at_a_time = threading.Lock()


def _path_from_python(dotted: str) -> str | None:
    module, _, name = dotted.rpartition(".")
    with _one_at_a_time:  # sys.stdout is exchanged meanwhile: some of these functions print
        known = _from_python.get(dotted)
        if known is None:
            try:
                if not module or importlib.util.find_spec(module) is None:
                    return None
                with contextlib.redirect_stdout(io.StringIO()):
                    found = getattr(importlib.import_module(module), name)
                    known = str(found() if callable(found) else found)
            except Exception:
                return None
        if not os.path.exists(known):
            return None
        _from_python[dotted] = known
    return known


def neos_email() -> str:
    """The address that NEOS wants with every job, from $NEOS_EMAIL; empty where it is missing or none."""
    given = os.environ.get("NEOS_EMAIL", "")
    return given if re.match(r"[^@]+@[^@]+\.[a-zA-Z0-9]+$", given) else ""


def expand(text: str) -> str:
    """``python:module.function`` as what it returns; anything else as it is."""
    if not text.startswith("python:"):
        return text
    return _path_from_python(text.removeprefix("python:")) or ""


@lru_cache
def table_path() -> Path:
    """Where the shipped solver table is: in the package, or in the project root."""
    package = Path(str(importlib.resources.files(__package__)))
    places = [package / "solvers.yaml", package.parent / "solvers.yaml"]
    for place in places:
        if place.is_file():
            return place
    raise InvalidSolverTable(
        f"The solver table solvers.yaml was not found; looked for {' and '.join(map(str, places))}. Reinstall octsvm."
    )


def user_table_path() -> Path | None:
    """The user's table: $OCTSVM_SOLVERS, else solvers.yaml in the user's configuration folder; None without one."""
    chosen = os.environ.get(ENVIRONMENT)
    if chosen:
        if not os.path.isfile(chosen):  # False also where no file can be called so
            raise InvalidSolverTable(f"${ENVIRONMENT} names {chosen!r}, and there is no such file.")
        return Path(chosen)
    own = user_config_path("octsvm", appauthor=False) / "solvers.yaml"
    return own if own.is_file() else None


def _parse(path: Path) -> tuple[dict[str, Any], yaml.Node | None]:
    try:
        content, node = read_yaml(path)
    except (OSError, ValueError) as error:
        raise InvalidSolverTable(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    if not isinstance(content, dict) or not isinstance(content.get("solvers"), dict):
        raise InvalidSolverTable(f"{path}: a table `solvers:` of entries by name is missing.")
    for key in ("prefer", "classes"):
        names = content.get(key) or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InvalidSolverTable(f"{path}, line {_place(node, (key,))[1]}: {key} is a list of names.")
    return content, node


def _place(node: yaml.Node | None, keys: tuple[Any, ...]) -> tuple[int, int | None]:
    """How many of ``keys`` lead to a part of the file, and the line (from 1) where that stands."""
    line = None
    for depth, key in enumerate(keys):
        if isinstance(node, yaml.MappingNode):
            found = [(k, v) for k, v in node.value if k.value == str(key)]
            if not found:
                return depth, line
            line, node = found[0][0].start_mark.line + 1, found[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
        else:
            return depth, line
    return len(keys), line


def merge(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """``over`` merged over ``under``, mapping by mapping; other values replace."""
    out = dict(under)
    for key, value in over.items():
        below = out.get(key)
        out[key] = merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return out


class Table(dict[str, SolverSpec]):
    """Entries by name, the order in which "auto" prefers them, and searches of our own, which take some models only."""

    prefer: tuple[str, ...] = ()
    searches: Mapping[str, SolverSpec] = {}


class _Sources:
    """The files of a table, later ones over earlier ones; it knows where a mistake stands."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.content: dict[str, Any] = {}
        self._files: list[tuple[Path, yaml.Node | None]] = []
        for path in paths:
            part, node = _parse(path)
            self._files.append((path, node))
            self.content = merge(self.content, part)

    def mistake(self, text: str, *keys: Any) -> InvalidSolverTable:
        """The error for what stands at ``keys``: in the last file that has them, whose word counts."""
        places = [(*_place(node, keys), path) for path, node in self._files]
        _, line, path = max(reversed(places), key=lambda place: place[0])
        return InvalidSolverTable(f"{path}{f', line {line}' if line else ''}: {text}")


@lru_cache(maxsize=8)
def _read(paths: tuple[tuple[Path, float], ...]) -> Table:
    sources = _Sources([path for path, _ in paths])
    entries = sources.content["solvers"]
    out = Table()
    for name in entries:
        out[str(name)] = _entry(sources, name)
    for name, spec in out.items():
        if spec.otherwise and spec.otherwise not in out:
            raise sources.mistake(
                f"solver {name!r}: otherwise names {spec.otherwise!r}, which is no entry.",
                "solvers",
                name,
                "otherwise",
            )
    preferred = sources.content.get("prefer") or list(out)
    for k, name in enumerate(preferred):
        if name not in out:
            raise sources.mistake(f"prefer names {name!r}, which is no entry.", "prefer", k)
    out.prefer = tuple(preferred)
    out.searches = {
        str(name): _entry(sources, name, "searches") for name in sources.content.get("searches") or {}
    }
    return out


def _entry(sources: _Sources, name: Any, section: str = "solvers") -> SolverSpec:
    """One entry, checked."""
    entry = _inherited(sources.content[section], name, sources.mistake)
    try:
        spec = SolverSpec(**(entry | {"name": str(name)}))
    except ValidationError as error:
        raise _refused(sources, name, error, section) from None
    except TypeError as error:
        raise sources.mistake(f"solver {str(name)!r}: {error}", section, name) from None
    known = sources.content.get("classes") or []
    wrong = [c for c in spec.classes if c not in known]
    if wrong:
        raise sources.mistake(
            f"solver {str(name)!r}: {wrong[0]!r} is no problem class; there are {', '.join(known)}.",
            section,
            name,
            "classes",
            spec.classes.index(wrong[0]),
        )
    return spec


def _refused(sources: _Sources, name: Any, error: ValidationError, section: str) -> InvalidSolverTable:
    """The first mistake that the check of an entry found."""
    first = error.errors()[0]
    # pydantic names the branch of a union too; those are no keys of the file
    keys = tuple(k for k in first["loc"] if k not in ("str", "Option"))
    keys += getattr(first.get("ctx", {}).get("error"), "keys", ())
    field = ".".join(map(str, keys))
    allowed = ", ".join(k for k in SolverSpec.model_fields if k != "name")
    more = f" The keys of an entry are {allowed}." if first["type"] == "extra_forbidden" else ""
    return sources.mistake(
        f"solver {str(name)!r}: {field + ': ' if field else ''}{first['msg']}.{more}", section, name, *keys
    )


def _inherited(
    entries: dict[str, Any], name: Any, mistake: Any, heirs: tuple[Any, ...] = ()
) -> dict[str, Any]:
    """An entry over what it inherits, but for a stand-in, which is its own; ``heirs`` inherit it."""
    entry, heirs = entries[name], (*heirs, name)
    if not isinstance(entry, dict):
        raise mistake(f"solver {str(name)!r}: an entry is a mapping of keys.", "solvers", name)
    own = {key: value for key, value in entry.items() if key != "inherit"}
    parent = entry.get("inherit")
    if parent is None:
        return own
    why = f"names {parent!r}, which is this entry again" if parent in heirs else ""
    if not isinstance(parent, str):
        why = "is the name of an entry"
    elif parent not in entries:
        why = f"names {parent!r}, which is no entry"
    if why:
        raise mistake(f"solver {str(name)!r}: inherit {why}.", "solvers", name, "inherit")
    below = _inherited(entries, parent, mistake, heirs)
    return merge({key: value for key, value in below.items() if key != "otherwise"}, own)


def table() -> Table:
    """All entries by name, the user's merged over ours.

    Raises
    ------
    InvalidSolverTable
        With the file and the line of the mistake.
    """
    paths = [table_path()]
    own = user_table_path()
    if own is not None:
        paths.append(own)
    return _read(tuple((p, p.stat().st_mtime) for p in paths))


def get(name: str) -> SolverSpec:
    """The entry called ``name``, whether installed or not; ``neos:<solver>`` is made up on the spot.

    Raises
    ------
    UnknownSolver
        With the nearest name.
    """
    entries = table()
    if str(name).startswith(REMOTE):
        return remote(str(name))
    if name in entries.searches:
        return entries.searches[name]
    if name not in entries:
        known = [*entries, *entries.searches]
        hint = nearest(str(name).lower(), [*known, AUTO], 0.4)
        raise UnknownSolver(
            f"{name!r} is not in the solver table.{hint} There are: {AUTO}, {', '.join(known)}. Another solver is one "
            "entry in a table of your own (`octsvm solvers --help`), or takes a file of octsvm.write."
        )
    return entries[name]


def remote(name: str) -> SolverSpec:
    """The entry of ``neos:<solver>``: what we know of the solver, run on the NEOS server."""
    solver = name.removeprefix(REMOTE)
    entries = table()
    if not solver:
        raise UnknownSolver(
            "neos: needs a solver behind the colon, e.g. neos:bonmin. NEOS lists them at neos-server.org."
        )
    below = entries.get(solver)
    return SolverSpec(
        name=name,
        title=f"{below.title if below else solver} on NEOS",
        backend="neos",
        format="nl",
        answer="asl",
        classes=below.classes if below else ("LP", "MILP"),
        cone_form=below.cone_form if below else "none",
        claim=below.claim if below else "none",
        least_gap=1e-4,
        options={k: v for k, v in below.options.items() if k == "gap"} if below else {},
        own=below.own if below else {},
        unsupported=tuple(k for k in NEUTRAL if k != "log"),
        tested=False,
        install="set the environment variable NEOS_EMAIL to your address; needs the network",
    )


def installed(name: str) -> SolverSpec | None:
    """The entry called ``name``, or the one that stands in for it; None where neither is installed."""
    spec: SolverSpec | None = get(name)
    seen: set[str] = set()
    while spec is not None and spec.name not in seen:
        seen.add(spec.name)
        if spec.version is not None:
            return spec
        spec = get(spec.otherwise) if spec.otherwise else None
    return None


def require(name: str) -> SolverSpec:
    """The entry called ``name`` (or its stand-in), installed."""
    spec = get(name)
    found = installed(name)
    if found is not None:
        return found
    if spec.backend == "neos":
        given = os.environ.get("NEOS_EMAIL")
        raise SolverUnavailable(
            f"{name} runs on the NEOS server, which wants an e-mail address with every job, and the environment variable "
            f"NEOS_EMAIL {'is not set' if given is None else f'is {given!r}, which is none'}. Set it to your address: "
            "export NEOS_EMAIL=you@example.org. Your data leave this machine."
        )
    if spec.requires is not None:
        what = (
            f"the module {spec.requires.module!r} (distribution {spec.requires.distribution} >= {spec.requires.version}) was "
            "not found"
        )
    else:
        what = f"no program called {' or '.join(spec.executable)} was found"
    there = [n for n, s in table().items() if s.version is not None and s.backend != "neos"]
    raise SolverUnavailable(
        f"{name} is not installed here: {what}. To get it: {spec.install}. "
        f"Installed are: {', '.join(there) or 'none'}."
    )
