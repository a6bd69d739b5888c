"""The process of its own that an untrusted engine runs in: ``python -m octsvm.backends.worker ADAPTER PARENT``.

It reads one job from its standard input, solves it, and writes messages to its standard output; what the engine prints
goes to standard error. A further byte on standard input, or its end (the parent died), ends the solve.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import sys
import threading
import time
from typing import Any

from .launcher import die_with
from .protocol import Refused, Reporter, read_message, write_message

LAST_SECONDS = 3.0  # after which a process whose parent is gone ends itself


def _flush_what_engines_print() -> None:
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).fflush(None)


def _print_line_by_line() -> None:
    # C's own output is buffered in a pipe: the log would come long after the event.
    with contextlib.suppress(Exception):
        library = ctypes.CDLL(None)
        library.setvbuf(ctypes.c_void_p.in_dll(library, "stdout"), None, 1, 0)


def main() -> int:
    """Solve one job; 0 also where the engine failed in an orderly way."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's; it says when to stop
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    commands = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _print_line_by_line()
    lock = threading.Lock()

    def send(message: tuple[Any, ...]) -> None:
        with lock:
            try:
                write_message(channel, message)
            except OSError:
                os._exit(3)  # nobody listens any more

    name, parent = sys.argv[1], int(sys.argv[2])
    die_with(parent)
    reporter = Reporter(send)

    def listen() -> None:
        command = commands.read(1)
        reporter.stop()
        if not command:
            time.sleep(LAST_SECONDS)
            os._exit(3)

    try:
        # The engine is loaded while the parent still puts the job together.
        adapter = importlib.import_module(f".adapters.{name}", __package__)
        send(("version", str(adapter.version())))
        job = read_message(commands)
        threading.Thread(target=listen, daemon=True).start()
        answer = adapter.solve(job, reporter)
        _flush_what_engines_print()
        send(("done", answer))
    except EOFError:
        os._exit(3)  # the parent is gone
    except Refused as error:
        send(("refused", error.kind, str(error)))
    except BaseException as error:
        send(("failed", f"{type(error).__name__}: {error}"))
    channel.flush()
    sys.stderr.flush()
    _flush_what_engines_print()
    # Engines have been seen to crash or hang while Python takes them apart; everything is sent.
    os._exit(0)


if __name__ == "__main__":
    main()
