"""Ends a process with its parent (Linux); run by its path, it becomes a program that is ended so: ``PARENT PROGRAM ...``.

A process group of its own keeps a program from hearing of its parent's death by any other way. The standard library alone:
it starts fast, and without the package.
"""

import contextlib
import ctypes
import os
import signal
import sys


def die_with(parent: int) -> None:
    """Be killed when the process ``parent`` dies, or end at once where it is dead already; elsewhere than on Linux, nothing."""
    # A thread that watches the parent is not enough: an engine may hold Python's lock for long.
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if parent and os.getppid() != parent:
            os._exit(3)


def main() -> None:
    """Become the program, which keeps the promise of :func:`die_with`."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    die_with(int(sys.argv[1]))
    try:
        os.execv(sys.argv[2], sys.argv[2:])
    except OSError as error:
        print(f"{sys.argv[2]} could not be started: {error.strerror}", flush=True)
        os._exit(127)


if __name__ == "__main__":
    main()
