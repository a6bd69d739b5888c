"""Files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from .errors import OutputNotWritable


@contextlib.contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Say it in the house's words where ``path`` cannot be written."""
    try:
        yield
    except OSError as error:
        raise _not_writable(path, error.strerror or str(error)) from None


def _not_writable(path: str | Path, why: str) -> OutputNotWritable:
    return OutputNotWritable(f"{str(path)!r} cannot be written: {why}. Choose another place.")


def destination(path: str | Path) -> Path:
    """The file that a write to ``path`` replaces, with links followed.

    Refused where no file can have such a name, or ``path`` is relative to a working directory that is gone.
    """
    try:
        with writing(path):
            return Path(os.path.realpath(path))
    except ValueError as error:  # a zero byte, or half of a letter
        raise _not_writable(path, f"no file can be called so ({error})") from None


def require_writable(path: str | Path) -> None:
    """Refuse a place that cannot be written to: better before the work than after it."""
    target = destination(path)
    with writing(path):
        exists = stat_of(target) is not None
    if target.is_dir():
        raise _not_writable(path, "it is a directory")
    if not target.parent.is_dir():
        raise _not_writable(path, f"there is no directory {str(target.parent)!r}")
    if not os.access(target if exists else target.parent, os.W_OK):
        raise _not_writable(path, "permission denied")


def stat_of(target: Path) -> os.stat_result | None:
    """What the system says about a file, or that its name is too long, as an OSError; None where there is none."""
    try:
        return target.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def move(part: Path, target: Path) -> None:
    """Put ``part`` in the place of ``target`` at once; the mode of a file that is replaced is kept."""
    known = stat_of(target)
    if known is not None:
        os.chmod(part, stat.S_IMODE(known.st_mode))
    os.replace(part, target)


def replace_bytes(path: str | Path, content: bytes | Sequence[bytes]) -> None:
    """Write ``content`` to ``path``; an older file stays as it was until the new one is complete.

    Links are followed, a device or a pipe is written to and never replaced, and a new file has the mode that the
    umask of the process gives it.

    Raises
    ------
    OutputNotWritable
    """
    target = destination(path)
    chunks = [content] if isinstance(content, bytes) else content
    with writing(path):
        if target.exists() and not target.is_file():
            with target.open("wb") as out:
                out.writelines(chunks)
            return
        # Nobody knows the folder's name before, and nothing stays of it.
        start = f".{target.name[:40]}."
        with tempfile.TemporaryDirectory(
            prefix=start, dir=target.parent, ignore_cleanup_errors=True
        ) as folder:
            part = Path(folder, "part")
            with part.open("wb") as out:
                out.writelines(chunks)
            move(part, target)


def replace_text(path: str | Path, text: str) -> None:
    """Write ``text`` to ``path`` in UTF-8, as :func:`replace_bytes` does.

    Raises
    ------
    OutputNotWritable
    """
    replace_bytes(path, text.encode())
