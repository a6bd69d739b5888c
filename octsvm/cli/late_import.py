"""Modules that libraries import for what most commands never use: executed when something of them is used first."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
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
            spec.loader = importlib.util.LazyLoader(spec.loader)
        return spec
