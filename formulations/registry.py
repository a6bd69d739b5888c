"""The formulations by name: those of this folder, those of packages, and those that a user registers."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .checks import nearest
from .errors import InvalidParameter, OctsvmError, UnknownFormulation

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .base import Formulation

Class = TypeVar("Class", bound="type[Formulation]")

GROUP = "octsvm.formulations"  # of the entry points by which packages make theirs known

_registered: dict[str, Formulation] = {}


def _stated_here() -> dict[str, str]:
    """Name -> module of the formulations of this folder. Their text is read: importing them would load Pyomo."""
    found = {}
    for file in sorted(Path(__file__).parent.glob("*.py")):
        stated = re.search(r'^NAME = "(\w+)"$', file.read_text(encoding="utf-8"), re.MULTILINE)
        if stated is not None:
            found[stated[1]] = f"{__package__}.{file.stem}"
    return found


_BUILT_IN = _stated_here()
NAMES = tuple(_BUILT_IN)  # the built-in ones


def names() -> tuple[str, ...]:
    """Names of all formulations: the built-in ones, the registered ones, and those of installed packages."""
    return tuple(dict.fromkeys((*NAMES, *_registered, *_of_packages())))


def formulation(name: str) -> Formulation:
    """Return the formulation called ``name``.

    Raises
    ------
    UnknownFormulation
        With the nearest name; or the package that offers it cannot be used.
    """
    if not isinstance(name, str):
        raise _unknown(name)
    if name not in _registered and name in _BUILT_IN:
        importlib.import_module(_BUILT_IN[name])
    elif name not in _registered:
        offered = _of_packages().get(name)
        if offered is None:
            raise _unknown(name)
        _load(name, offered)
    return _registered[name]


def _unknown(name: object) -> UnknownFormulation:
    known = names()
    hint = nearest(str(name).lower().replace("-", "_"), known, 0.4)
    return UnknownFormulation(f"{name!r} is not a formulation.{hint} There are: {', '.join(known)}.")


def register(cls: Class) -> Class:
    """Make a formulation known by its name in this process.

    Packages do the same for their users by an entry point of the group ``octsvm.formulations``, called like the formulation.

    Parameters
    ----------
    cls : type
        Subclass of :class:`octsvm.formulations.base.Formulation`. One that was defined anew under the same name and
        module, as in a notebook's cell that is run again, replaces the former.

    Returns
    -------
    type
        ``cls``, so that ``register`` can be used as a decorator.

    Raises
    ------
    InvalidParameter
        A part is missing, or the name belongs to another class.
    """
    from .base import Formulation
    from .params import Params

    if not (isinstance(cls, type) and issubclass(cls, Formulation)):
        raise InvalidParameter(
            f"{cls!r} is not a formulation. Register a subclass of octsvm.formulations.base.Formulation."
        )
    name, own = getattr(cls, "name", None), cls.__qualname__
    if not isinstance(name, str) or not name.isidentifier():
        raise InvalidParameter(f'{own}.name is {name!r}; it should be a short word, e.g. name = "stump".')
    missing = sorted(cls.__abstractmethods__)
    if missing:
        raise InvalidParameter(
            f"{own} lacks {', '.join(missing)}: octsvm.formulations.base.Formulation says what each is handed and returns."
        )
    if not (isinstance(getattr(cls, "Params", None), type) and issubclass(cls.Params, Params)):
        raise InvalidParameter(
            f"{own}.Params should be a subclass of octsvm.formulations.params.Params, with a field for each parameter."
        )
    if not isinstance(getattr(cls, "Tree", None), type):
        raise InvalidParameter(f"{own}.Tree should be the class of its trees, e.g. Tree = octsvm.AxisTree.")
    home = f"{cls.__module__}.{own}"
    former = _registered.get(name)
    taken = _home_of(former) if former is not None else _BUILT_IN.get(name, home)
    if taken not in (home, cls.__module__):
        raise InvalidParameter(f"The name {name!r} of {home} is taken by {taken}. Give it another one.")
    _registered[name] = cls()
    return cls


def load_from(place: str) -> Any:
    """What stands at ``"FILE.py:NAME"`` or ``"module:NAME"``; the code in the file is run.

    Raises
    ------
    Exception
        Whatever that code raises; the file or module cannot be imported, or lacks the name.
    """
    source, _, own = place.rpartition(":")
    if source.endswith(".py"):
        # No module that can be imported is called "toy.py", so none is replaced.
        known = importlib.util.spec_from_file_location(Path(source).name, source)
        assert known is not None
        assert known.loader is not None
        module = importlib.util.module_from_spec(known)
        sys.modules[known.name] = module
        known.loader.exec_module(module)
    else:
        module = importlib.import_module(source)
    return getattr(module, own)


def register_from(place: str) -> Formulation:
    """Register the class at ``"FILE.py:CLASS"`` or ``"module:CLASS"``, and return the formulation.

    The code in the file is run.

    Raises
    ------
    UnknownFormulation
        The file or module cannot be imported, or lacks the class.
    InvalidParameter
        As :func:`register`.
    """
    try:
        cls = load_from(place)
    except OctsvmError:
        raise
    except Exception as error:  # whatever the user's own code raises
        raise UnknownFormulation(
            f"{place!r} cannot be loaded: {type(error).__name__}: {error}. Give a formulation's name, or FILE.py:CLASS."
        ) from error
    return _registered[register(cls).name]


def known_everywhere(name: str) -> bool:
    """Whether another process knows a formulation by this name, rather than by its registration in this one."""
    return name in _BUILT_IN or name in _of_packages()


def _home_of(form: Formulation) -> str:
    return f"{type(form).__module__}.{type(form).__qualname__}"


def _of_packages() -> dict[str, list[EntryPoint]]:
    from importlib import metadata  # slow to import, and rarely needed

    found = defaultdict(list)
    for point in metadata.entry_points(group=GROUP):
        found[point.name].append(point)
    return dict(found)


def _load(name: str, offered: list[EntryPoint]) -> None:
    """Import and register what a package offers under ``name``.

    Raises
    ------
    UnknownFormulation
        Naming the package.
    """
    packages = " and ".join(sorted({point.dist.name for point in offered if point.dist is not None}))
    where = f"The formulation {name!r} of the package {packages}"
    if len({point.value for point in offered}) > 1:
        raise UnknownFormulation(f"{where} is offered more than once. Uninstall one of them.")
    try:
        cls = register(offered[0].load())
    except Exception as error:  # whatever the package's own code raises
        raise UnknownFormulation(
            f"{where} cannot be loaded: {type(error).__name__}: {error}. Repair or uninstall that package."
        ) from error
    if cls.name != name:
        raise UnknownFormulation(f"{where} calls itself {cls.name!r}. Its entry point has to have that name.")
