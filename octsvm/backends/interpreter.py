"""The Python that processes of engines are started with, also where this Python runs within another program."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_NAME = re.compile(r"(python|pypy|graalpy)[\w.]*$", re.IGNORECASE)
_BESIDE = "python.exe" if os.name == "nt" else "bin/python{}.{}".format(*sys.version_info[:2])


def _candidates() -> Iterator[str]:
    # A program that embeds Python is its sys.executable, or there is none; to start that would open another window of it.
    own, spawn = sys.executable, sys.modules.get("multiprocessing.spawn")
    named = None if spawn is None else spawn.get_executable()
    if named and os.fsdecode(named) != own:  # by multiprocessing.set_executable: whoever named it means it
        yield os.fsdecode(named)
    if own and _NAME.match(Path(own).name):
        yield own
    for prefix in dict.fromkeys([sys.prefix, sys.exec_prefix, sys.base_exec_prefix]):
        yield os.path.join(prefix, _BESIDE)


def found_interpreter() -> str | None:
    """The path of an interpreter of this installation; None where there is none."""
    return next((path for path in _candidates() if os.access(path, os.X_OK)), None)
