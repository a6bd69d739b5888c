"""Modules that libraries import for what most commands never use: executed when something of them is used first."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class LateImport:
    """Puts off the execution of one module until an attribute or a module in it is asked for.

    Pyomo imports scipy.stats, scipy.integrate and scipy.spatial, scikit-learn the first of them, which together are a third of a
    small fit's time. The standard library's lazy loader executes a module at its second import, where nothing is used yet.
    """

    name: str

    def install(self) -> None:
        """Have the module imported so, unless it is there already, or is to be imported so: put off twice, it is never executed."""
        if self.name not in sys.modules and self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module as the other finders have it, executed later."""
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _LateLoader(spec.loader)
        return spec


class _LateLoader(Loader):
    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the module's own loader does."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute it when the first attribute is asked for that it does not have before."""
        spec = module.__spec__
        assert spec is not None
        spec.loader = module.__loader__ = self.loader
        spec.loader_state = _Execution()
        module.__dict__.pop("__path__", None)  # asked for by every import of a module in it
        module.__class__ = _LateModule


class _Execution:
    """Of one module, by one thread; a lock of all modules would wait for other threads' imports, which wait for it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.runs = False


class _LateModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        assert spec is not None
        execution = spec.loader_state
        with execution.lock:
            if type(self) is _LateModule and not execution.runs:
                execution.runs = True
                try:
                    self._execute(spec)
                finally:
                    execution.runs = False
        return ModuleType.__getattribute__(self, name)

    def _execute(self, spec: ModuleSpec) -> None:
        assert spec.loader is not None
        if spec.submodule_search_locations is not None:
            self.__path__ = spec.submodule_search_locations
        try:
            spec.loader.exec_module(self)
        except BaseException:  # Ctrl-C, say: the next use executes it again
            self.__dict__.pop("__path__", None)
            raise
        self.__class__ = ModuleType  # type: ignore[assignment]
