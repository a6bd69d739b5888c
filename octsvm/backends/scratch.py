"""Folders for temporary files, which hold the model's data: gone after a solve, and after the end of this process too."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path

# It waits for the end of its standard input, which comes with the process that holds the other end, whatever ends that; what
# is killed with the process may still write for a moment. A job's manager signals every process of the job: it does not hear.
_KEEPER = 'trap "" HUP INT TERM; read -r _; rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }'
_SHELL = "/bin/sh"
LAST_SECONDS = 5.0


class Scratch:
    """A folder of its own; where there is a shell, it goes even if this process is killed.

    Attributes
    ----------
    path : Path

    Raises
    ------
    OSError
        It cannot be made.
    """

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="octsvm-"))
        self._keeper: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):
            self._keeper = subprocess.Popen(
                [_SHELL, "-c", _KEEPER, "octsvm", str(self.path.resolve())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            assert keeper.stdin is not None
            with contextlib.suppress(OSError):
                keeper.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                keeper.wait(LAST_SECONDS)
