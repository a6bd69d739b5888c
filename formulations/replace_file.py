"""Text files that appear complete or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import OutputNotWritable


def replace_text(path: str | Path, text: str) -> None:
    """Write ``text`` to ``path``; an older file stays as it was until the new one is complete.

    Raises
    ------
    OutputNotWritable
    """
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")  # a device or a pipe is written to, never replaced
            return
        try:
            part.write_text(text, encoding="utf-8")
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise OutputNotWritable(
            f"{str(path)!r} cannot be written: {error.strerror or error}. Choose another place."
        ) from None
