"""One file a study; each defines ``STUDY``, and its name is that of the file."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def of_tests(name: str) -> Any:
    """A module of tests/, where small instances and their brute force are."""
    tests = str(Path(__file__).resolve().parents[2] / "tests")
    if tests not in sys.path:
        sys.path.insert(0, tests)
    return import_module(name)
