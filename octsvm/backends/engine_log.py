"""An engine's log: to the console, a file and Python's logging, and read for what it says about bound and nodes."""

from __future__ import annotations

import collections
import contextlib
import logging
import re
import sys
import threading
from pathlib import Path
from typing import IO, Any

from ..solvers import SolverSpec

KEPT = 400  # lines
TAIL = 6  # lines that an error quotes
UNHEARD: Any = object()  # a target of what nobody asked for: not even Python's logging hears of it
LONGEST = 1 << 16  # bytes of a line; what is longer is cut into several


class EngineLog:
    """Takes an engine's lines as they come.

    Attributes
    ----------
    bound : float or None
        The last one that the log names, where the solver's entry says how to find it.
    nodes : int
    start : str
        "accepted" or "rejected" where the log says so, else empty.
    stop : str
        The reason that the log names, else empty.
    version : str
        The program's, where the log names it.
    refused : str
        The first line that refuses an option, else empty.
    trouble : str
        Why it could not be passed on to the end, for a user; else empty.
    """

    def __init__(self, spec: SolverSpec, target: Any) -> None:
        self.bound: float | None = None
        self.nodes = 0
        self.start = self.stop = self.trouble = self.version = self.refused = ""
        self._spec, self._lines = spec, collections.deque[str](maxlen=KEPT)
        self._console: Any = sys.stdout if target is True else None  # as it is at the call
        self._file: Any = None
        if target is not None and target is not UNHEARD and not isinstance(target, bool):
            self._file = Path(target).open("a", encoding="utf-8")  # noqa: SIM115
        self._logger = logging.getLogger(f"octsvm.engine.{spec.name.replace('.', '_')}")
        self._heard = target is not UNHEARD
        self._patterns = [
            (keys[-1], re.compile(pattern)) for keys, pattern in spec.log.patterns.items() if pattern
        ]
        self._lock = threading.Lock()

    def drain(self, stream: IO[bytes]) -> None:
        """Read ``stream`` to its end; an engine whose pipe is not read would stand still."""
        try:
            for raw in iter(lambda: stream.readline(LONGEST), b""):
                self.line(raw.decode("utf-8", errors="replace").rstrip("\r\n"))
        except (OSError, ValueError):
            pass

    def text(self, message: str) -> None:
        """Take what may be several lines."""
        for line in message.splitlines():
            self.line(line)

    def line(self, text: str) -> None:
        """Take one line."""
        with self._lock:
            self._lines.append(text)
            for kind, pattern in self._patterns:
                found = pattern.search(text)
                if found is not None:
                    self._note(kind, found)
            if self._file is not None:
                try:
                    self._file.write(text + "\n")
                    self._file.flush()
                except OSError as error:  # a full disk costs the log, not the solve
                    self.trouble = f"the log is not complete: {error.strerror or error}"
                    self._file = None
            if self._console is not None:
                self._show(text)
        if self._heard:
            with contextlib.suppress(Exception):  # a logging handler of the user's own may raise anything
                self._logger.debug("%s", text)

    def _show(self, text: str) -> None:
        try:
            try:
                print(text, file=self._console, flush=True)
            except UnicodeEncodeError:
                print(ascii(text)[1:-1], file=self._console, flush=True)
        except Exception:  # the console is gone, or a stream of the user's own fails: neither costs the solve
            self._console = None

    def _note(self, kind: str, found: re.Match[str]) -> None:
        if kind in ("accepted", "rejected"):
            self.start = kind
        elif kind == "version":
            self.version = self.version or found[1 if found.re.groups else 0]
        elif kind == "refused":
            self.refused = self.refused or found.string.strip()
        elif kind in ("bound", "nodes"):
            try:
                value = float(found[1])
            except (ValueError, IndexError):
                return
            if kind == "bound" and abs(value) < 1e19:
                self.bound = value
            elif kind == "nodes":
                self.nodes = max(self.nodes, int(value))
        else:
            self.stop = kind

    def tail(self, count: int) -> list[str]:
        """The last lines that say something."""
        with self._lock:
            return [line.strip() for line in self._lines if line.strip()][-count:]

    def ending(self) -> str:
        """The last lines as the end of an error's text; empty where there are none."""
        lines = self.tail(TAIL)
        return ". The end of its log: " + " / ".join(lines) if lines else ""

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                with contextlib.suppress(OSError):
                    self._file.close()
                self._file = None
