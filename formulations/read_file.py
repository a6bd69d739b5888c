"""Text files that others wrote: read to their end, but no further than shows that they are no text."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, BinaryIO

from .errors import InvalidData

CHUNK = 1 << 20


def read_text_bytes(path: str | Path, most: int | None = None) -> bytes:
    """The bytes of a text file; up to its first block with a zero byte where it is none, as /dev/zero never ends.

    With ``most``, so many bytes at least where the file has more, and no more than a block beyond them.
    """
    found = bytearray()
    with open_bytes(path) as file:
        while chunk := file.read(CHUNK):
            found += chunk
            if b"\0" in chunk or (most is not None and len(found) >= most):
                break
    return bytes(found)


def read_json(source: str | Path, what: str) -> Any:
    """Content of JSON text, or of the file at a path; ``what`` is the name of what it should be."""
    text = source
    if isinstance(source, Path) or not source.lstrip().startswith("{"):
        try:
            text = read_text_bytes(source).decode()
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise InvalidData(f"The {what} {str(source)!r} cannot be read: {error}.") from None
    try:
        return json.loads(str(text), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:  # also a number of too many digits
        raise InvalidData(f"The {what} is not JSON: {error}.") from None


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} stands where a number is due")


def require_version(version: Any, what: str, most: int) -> None:
    """Refuse what was saved in a format that is newer than version ``most``, or in none."""
    if type(version) is not int or version < 1:
        raise InvalidData(f"The {what} has version {version!r}, which is no version of this format.")
    if version > most:
        raise InvalidData(
            f"The {what} has format version {version}, and this octsvm reads up to {most}. Upgrade octsvm."
        )


def damaged(what: str, error: Any) -> InvalidData:
    """What to say of the first thing that pydantic finds in what was saved."""
    first = error.errors()[0]
    return InvalidData(f"The {what} is damaged: {'.'.join(map(str, first['loc']))}: {first['msg']}.")


def open_bytes(path: str | Path) -> BinaryIO:
    """The file at ``path``, to read; an OSError where it cannot be, or no file can have such a name."""
    try:
        return Path(path).open("rb")
    except ValueError as error:  # a zero byte, or half of a letter
        raise OSError(errno.EINVAL, f"no file can be called so ({error})") from None
