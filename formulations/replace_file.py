"""Files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from .errors import OutputNotWritable


@contextlib.contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Say it in the house's words where ``path`` cannot be written.

    Raises
    ------
    OutputNotWritable
    """
    try:
        yield
    except OSError as error:
        raise OutputNotWritable(
            f"{str(path)!r} cannot be written: {error.strerror or error}. Choose another place."
        ) from None


@contextlib.contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """A folder of this call alone in the folder of ``target``: nobody knows its name before, and nothing stays of it."""
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name[:40]}.", dir=target.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def move(part: Path, target: Path) -> None:
    """Put ``part`` in the place of ``target`` at once; the mode of a file that is replaced is kept."""
    with contextlib.suppress(FileNotFoundError):
        os.chmod(part, stat.S_IMODE(target.stat().st_mode))
    os.replace(part, target)


def replace_bytes(path: str | Path, content: bytes | Sequence[bytes]) -> None:
    """Write ``content`` to ``path``; an older file stays as it was until the new one is complete.

    Links are followed, a device or a pipe is written to and never replaced, and a new file has the mode that the
    umask of the process gives it.

    Raises
    ------
    OutputNotWritable
    """
    target = Path(os.path.realpath(path))
    chunks = [content] if isinstance(content, bytes) else content
    with writing(path):
        if target.exists() and not target.is_file():
            with target.open("wb") as out:
                out.writelines(chunks)
            return
        with folder_beside(target) as folder:
            part = folder / "part"
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
