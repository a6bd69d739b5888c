"""From the files that UCI publishes to the table: the same digits, named columns, labels 1 and -1."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from ..errors import DatasetUnavailable
from .catalogue import DatasetInfo, Original


def sha256(content: bytes) -> str:
    """SHA-256 of ``content`` as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def with_plain_line_ends(content: bytes) -> bytes:
    """``content`` with every line end as ``\\n``."""
    return content.replace(b"\r\n", b"\n")


def _rows(text: str, original: Original) -> Iterator[dict[str, str]]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    split = [line.split(",") if original.separator == "comma" else line.split() for line in lines]
    columns = original.columns or split.pop(0)
    for fields in split:
        yield dict(zip(columns, fields, strict=True))


def to_csv(members: Mapping[str, bytes], name: str, info: DatasetInfo) -> bytes:
    """The table as CSV, made from the archive's ``members`` (name -> content).

    Raises
    ------
    DatasetUnavailable
        The members lead to another table than the catalogue's.
    """
    original = info.original
    labels = {original.label_1: "1", original.label_minus_1: "-1"}
    lines = [",".join((*info.features, "label"))]
    try:
        for number, member in enumerate(original.members, 1):
            for row in _rows(members[member].decode("utf-8"), original):
                if original.missing is not None and original.missing in row.values():
                    continue
                if original.member_column is not None:
                    row[original.member_column] = str(number)
                lines.append(",".join((*(row[f] for f in info.features), labels[row[original.label]])))
    except (KeyError, ValueError) as error:
        raise DatasetUnavailable(f"The original of {name} cannot be read as expected: {error}.") from None
    made = ("\n".join(lines) + "\n").encode()
    if sha256(made) != info.sha256:
        raise DatasetUnavailable(
            f"The original of {name} leads to another table than the known one: {len(lines) - 1} rows, "
            f"sha256 {sha256(made)}, expected {info.n} rows, {info.sha256}."
        )
    return made
