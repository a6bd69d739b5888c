"""Modules that libraries import for what most commands never use: executed when something of them is used first."""

from __future__ import annotations

import importlib.util
import signal
import sys
import threading
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType


class LateImport:
    """Puts off the execution of one module, by the loader that the standard library has for that, until its second import.

    Pyomo imports scipy.stats, scipy.integrate and scipy.spatial, which are a third of a small fit's time.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def install(self) -> None:
        """Have the module imported so, unless it is there already."""
        if self.name not in sys.modules:
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
            spec.loader = importlib.util.LazyLoader(_Uninterrupted(spec.loader))
        return spec


class _Uninterrupted(Loader):
    """Executes a module as a whole: Ctrl-C comes right after it.

    The import statement that has a late module executed drops what is raised meanwhile, and would go on with a part of it.
    """

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the module's own loader does."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute it, Ctrl-C held back."""
        if threading.current_thread() is not threading.main_thread():  # signals belong to the main one
            self.loader.exec_module(module)
            return
        asked: list[int] = []
        before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
        try:
            self.loader.exec_module(module)
        finally:
            if before is not None:  # of the program that Python runs in
                signal.signal(signal.SIGINT, before)
            if asked:  # from another thread, so that it comes when this statement is over
                threading.Timer(0.05, _interrupt).start()


def _interrupt() -> None:
    """Ctrl-C for the main thread, from another one; a wait of the main thread ends by it where the system can."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
