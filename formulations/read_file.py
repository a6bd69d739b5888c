"""Text files that others wrote: read to their end, but no further than shows that they are no text."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import BinaryIO

CHUNK = 1 << 20


def read_text_bytes(path: str | Path, most: int | None = None) -> bytes:
    """The bytes of a text file; up to its first block with a zero byte where it is none, as /dev/zero never ends.

    With ``most``, so many bytes at least where the file has more, and no more than a block beyond them.

    Raises
    ------
    OSError
        It cannot be read, or no file can have such a name.
    """
    found = bytearray()
    with open_bytes(path) as file:
        while chunk := file.read(CHUNK):
            found += chunk
            if b"\0" in chunk or (most is not None and len(found) >= most):
                break
    return bytes(found)


def open_bytes(path: str | Path) -> BinaryIO:
    """The file at ``path``, to read.

    Raises
    ------
    OSError
        It cannot be read, or no file can have such a name.
    """
    try:
        return Path(path).open("rb")
    except ValueError as error:  # a zero byte, or half of a letter
        raise OSError(errno.EINVAL, f"no file can be called so ({error})") from None
