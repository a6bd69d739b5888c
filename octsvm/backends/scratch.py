"""Folders for temporary files, which hold the model's data: gone after a solve, and after the end of this process too."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

from ..errors import OutputNotWritable

# It waits for the end of its standard input, which comes with the process that holds the other end, whatever ends that; what
# is killed with the process may still write for a moment. A job's manager signals every process of the job: it does not hear.
_KEEPER = 'trap "" HUP INT TERM; read -r _; rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }'
_SHELL = "/bin/sh"
LAST_SECONDS = 5.0


def unwritable(title: str, error: OSError) -> OutputNotWritable:
    """The error for a file of a solve with the solver that is called ``title``."""
    return OutputNotWritable(
        f"A file for {title} cannot be written: {error.strerror or error}. TMPDIR names another folder for temporary files."
    )


class Scratch:
    """A folder of its own; where there is a shell, it goes even if this process is killed. As a context it yields its path.

    Parameters
    ----------
    beside : Path, optional
        A file that what is in the folder will replace: the folder is made in the same place, hidden. Otherwise it is
        made where temporary files belong.

    Raises
    ------
    OSError
        It cannot be made.
    """

    def __init__(self, beside: Path | None = None) -> None:
        folder, start = (
            (tempfile.gettempdir(), "octsvm-") if beside is None else (beside.parent, f".{beside.name[:40]}.")
        )
        self.path = Path(os.path.abspath(folder), start + secrets.token_hex(8))
        self._keeper: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):
            self._keeper = subprocess.Popen(
                [_SHELL, "-c", _KEEPER, "octsvm", str(self.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        # After its keeper: a signal between the two would leave the folder. Its name is known to nobody.
        try:
            self.path.mkdir(0o700)
        except BaseException:
            self.remove()
            raise

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *failure: object) -> None:
        self.remove()

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
