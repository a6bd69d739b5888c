"""The formulations by name."""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING

from .errors import UnknownFormulation

if TYPE_CHECKING:
    from .base import Formulation

NAMES = ("oct", "oct_h", "re_svm", "octsvm")


def formulation(name: str) -> Formulation:
    """Return the formulation called ``name``.

    Raises
    ------
    UnknownFormulation
        With the nearest name.
    """
    if name not in NAMES:
        close = difflib.get_close_matches(str(name).lower().replace("-", "_"), NAMES, n=1, cutoff=0.4)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UnknownFormulation(f"{name!r} is not a formulation.{hint} There are: {', '.join(NAMES)}.")
    module = importlib.import_module(f".{name}", __package__)
    found: Formulation = module.FORMULATION
    return found
