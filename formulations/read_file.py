"""Text files that others wrote: read to their end, but no further than shows that they are no text."""

from __future__ import annotations

from pathlib import Path

CHUNK = 1 << 20


def read_text_bytes(path: str | Path) -> bytes:
    """The bytes of a text file; up to its first block with a zero byte where it is none, as /dev/zero never ends.

    Raises
    ------
    OSError
    """
    found = bytearray()
    with Path(path).open("rb") as file:
        while chunk := file.read(CHUNK):
            found += chunk
            if b"\0" in chunk:
                break
    return bytes(found)
