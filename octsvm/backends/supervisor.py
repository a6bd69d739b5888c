"""One solve under supervision: its limit, its callback, Ctrl-C, and an orderly end of all that it started.

Every backend supervises with the same class: a process with an adapter or a program in it, a job on a server, a thread.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from . import launcher
from .interpreter import found_interpreter
from .scratch import Scratch

if TYPE_CHECKING:
    from .matrix_program import Array, Watch

PATIENCE = 0.4  # seconds past the limit after which a solve is told to stop
GRACE = 0.7  # seconds that it then has before it is ended
END_SECONDS = 5.0  # at most so long for a killed process to be gone
READ_SECONDS = 2.0  # at most so long to read what an ended process left in its pipes


class Supervisor:
    """Supervises one solve from its creation on.

    As a context manager it leaves neither a process nor a file behind, whatever happens.

    Parameters
    ----------
    seconds : float
        The limit of the solve.
    watch : Watch or None
        The callback of the solve, which may ask it to stop.
    patience : float
        Seconds past the limit after which the solve is told to stop.
    grace : float
        Seconds that it then has before it is ended.

    Attributes
    ----------
    began, deadline : float
        On the clock of ``time.monotonic``.
    asked : bool
        Whether the callback asked for the end.
    pressed : bool
        Whether Ctrl-C was pressed.
    told : bool
        Whether the solve was told to stop.
    ended : bool
        Whether the solve did not stop within the grace, so that it was ended.
    error : BaseException or None
        What the callback raised in a step that was guarded.
    """

    def __init__(
        self, seconds: float, watch: Watch | None = None, patience: float = PATIENCE, grace: float = GRACE
    ) -> None:
        self.began = time.monotonic()
        self.deadline = self.began + seconds
        self.asked = self.pressed = self.told = self.ended = False
        self.error: BaseException | None = None
        self._watch = watch
        self._stop_at, self._grace, self._end_at = self.deadline + patience, grace, np.inf
        self._stopped_at = np.inf
        self._scratch: Scratch | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._readers: list[tuple[threading.Thread, IO[bytes]]] = []

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *failure: object) -> None:
        try:
            self.end()
        finally:
            if self._scratch is not None:
                self._scratch.remove()

    # -- the time, the callback and Ctrl-C ------------------------------------------------------------------------

    @property
    def called_off(self) -> bool:
        """Whether the user wants the end, by the callback or by Ctrl-C."""
        return self.asked or self.pressed

    @property
    def stopping(self) -> bool:
        """Whether the solve is to stop, or was told so."""
        return self.called_off or self.told or self.error is not None

    @property
    def late(self) -> bool:
        """Whether the solve ended, or still runs, after its limit."""
        return min(self._stopped_at, time.monotonic()) > self.deadline

    @property
    def reason(self) -> str:
        """Why a solve that was interrupted ended: "time_limit", or "interrupted" by the user or for nobody knows what."""
        return "time_limit" if self.late and not self.called_off else "interrupted"

    def without_answer(self, title: str, said: str) -> tuple[str, str]:
        """Stop and failure of a solver that left no answer: it was ended, or broke down, and ``said`` tells how."""
        if self.ended or self.told or self.called_off:  # an interrupt ends many at once
            return self.reason, f"{title} did not stop when told to, and was ended" if self.ended else ""
        return "error", f"{title} broke down: {said}"

    def left(self) -> float:
        """Seconds until the limit, at least 0."""
        return max(0.0, self.deadline - time.monotonic())

    def ask(self, bound: float, nodes: int, point: Array | None = None) -> None:
        """Tell the callback what is known, and ask it whether to stop; never again once it has said so.

        For the caller's thread alone: what the callback uses may belong to it.
        """
        if self._watch is not None and not self.asked and self._watch(bound, nodes, point):
            self.asked = True

    def guarded(self, step: Callable[[], None]) -> None:
        """Take a step whose exception must wait until the engine has stopped: it is kept as ``error``."""
        try:
            step()
        except KeyboardInterrupt:
            self.pressed = True
        except BaseException as error:
            self.error = self.error or error

    def wait(self, finished: Callable[[], bool], stop: Callable[[], None] | None = None) -> bool:
        """Wait for the end of the solve, or end it.

        Parameters
        ----------
        finished : callable
            Called over and over: waits a short while, calls :meth:`ask`, and says whether the solve has ended.
        stop : callable, optional
            Tells the solve to stop; called once, when it is to.

        Returns
        -------
        bool
            Whether it ended by itself. Otherwise its process, where there is one, has been killed.
        """
        while True:
            try:
                now = time.monotonic()
                if not self.told and (self.stopping or now >= self._stop_at):
                    if stop is not None:
                        stop()
                    self.told, self._end_at = True, now + self._grace
                if now >= self._end_at:
                    self.ended = True
                    self.kill()
                    break
                if finished():
                    break
            except KeyboardInterrupt:  # may arrive at any line
                self.pressed = True
        self._stopped_at = time.monotonic()
        return not self.ended

    # -- the folder and the process -------------------------------------------------------------------------------

    def make_folder(self) -> Path:
        """A folder for temporary files, in which the process runs; removed at the end, also of this process.

        Raises
        ------
        OSError
        """
        self._scratch = Scratch()
        return self._scratch.path

    def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        output: Callable[[IO[bytes]], None],
        errors: Callable[[IO[bytes]], None] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start the process, in a group of its own; ``output`` and ``errors`` read what it writes, on threads.

        Without ``errors`` standard error goes where standard output goes, and there is no standard input; with it, standard
        input is a pipe.

        Raises
        ------
        OSError
        """
        split = errors is not None
        process = self._process = subprocess.Popen(
            argv,
            cwd=None if self._scratch is None else self._scratch.path,
            env=env,
            stdin=subprocess.PIPE if split else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if split else subprocess.STDOUT,
            start_new_session=True,
        )
        for read, stream in ((output, process.stdout), (errors, process.stderr)):
            if read is not None and stream is not None:
                thread = threading.Thread(target=read, args=(stream,), daemon=True)
                self._readers.append((thread, stream))
                thread.start()
        return process

    def signal(self, number: int) -> None:
        """Send a signal to the process and all that it started."""
        if self._process is not None:
            with contextlib.suppress(OSError, ValueError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, number)
                else:
                    self._process.send_signal(number)

    def interrupt(self) -> None:
        """Send what Ctrl-C sends: many programs then write what they have found."""
        self.signal(signal.SIGINT)

    def kill(self) -> None:
        """End the process and all that it started, without asking."""
        if self._process is not None:
            if hasattr(signal, "SIGKILL"):
                self.signal(signal.SIGKILL)
            with contextlib.suppress(OSError):
                self._process.kill()

    def poll(self, seconds: float) -> bool:
        """Whether the process has ended by itself within some seconds."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.poll() is not None

    def end(self) -> int | None:
        """End the process with all that it started, and read the rest of what they wrote; its exit code."""
        process = self._process
        if process is None:
            return None
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
        for thread, _ in self._readers:
            thread.join(READ_SECONDS)
        # A stream that is still read would block whoever closes it: something that left the group holds its other end.
        streams = [process.stdin, *(stream for thread, stream in self._readers if not thread.is_alive())]
        for stream in streams:
            if stream is not None:
                with contextlib.suppress(OSError, ValueError):
                    stream.close()
        self._process, self._stopped_at = None, time.monotonic()
        return process.poll()


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """This process's environment for another one, whose numbers and messages must not depend on the user's language."""
    out = {key: value for key, value in os.environ.items() if key not in ("LC_ALL", "LANGUAGE")}
    if os.environ.get("LC_ALL"):
        out["LC_CTYPE"] = os.environ["LC_ALL"]  # names of files
    return out | {"LC_NUMERIC": "C", "LC_MESSAGES": "C"} | dict(more)


def bound_to_this_process(argv: Sequence[str]) -> list[str]:
    """What to start so that ``argv`` is killed when this process dies, where the system can do so (Linux)."""
    python = found_interpreter()
    if sys.platform != "linux" or python is None:
        return list(argv)
    return [python, "-I", "-S", launcher.__file__, str(os.getpid()), *argv]


def death(code: int | None) -> str:
    """What an exit code says, for a user."""
    if code is None:
        return "its process did not end"
    if code >= 0:
        return f"its process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    more = " (often for want of memory)" if name == "SIGKILL" else ""
    return f"its process was ended by {name}{more}"
