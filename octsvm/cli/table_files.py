"""What kind of file a table is in: text in some encoding, compressed or not, or a format that pandas reads."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import io
import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InvalidData, MissingPackage
from ..formulations.read_file import CHUNK

if TYPE_CHECKING:
    import pandas as pd

CURE = "Save the table as CSV in UTF-8."
# More than so many times the file, and so many bytes, is no table but a way to fill the memory.
MOST_TIMES, MOST_BYTES = 200, 1 << 26


class Content(NamedTuple):
    """What a file holds: ``text`` in CSV, or a ``frame`` of a format that has columns by itself.

    ``first_row`` is the number of the first row in a sheet, from 1; ``remarks``, what was chosen where there was a choice.
    """

    text: str = ""
    frame: pd.DataFrame | None = None
    first_row: int | None = None
    remarks: tuple[str, ...] = ()


# First bytes, what the file is, and the function of pandas that reads it.
FORMATS: tuple[tuple[bytes, str, str], ...] = (
    (b"PAR1", "a Parquet file", "read_parquet"),
    (b"ARROW1", "a Feather file", "read_feather"),
    (b"ORC", "an ORC file", "read_orc"),
    (b"<stata_dta>", "a Stata file", "read_stata"),
    *(
        (version + order + b"\1\0", "a Stata file", "read_stata")
        for version in (b"r", b"s")
        for order in (b"\1", b"\2")
    ),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel file of the old kind (.xls)", "read_excel"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", ""),
    (b"SQLite format 3\0", "an SQLite database", ""),
    (b"%PDF", "a PDF document", ""),
    (b"\x93NUMPY", "an array of numpy", ""),
    (b"\x89PNG", "a picture (PNG)", ""),
    (b"\xff\xd8\xff", "a picture (JPEG)", ""),
    (b"\x28\xb5\x2f\xfd", "compressed by Zstandard", ""),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", ""),
    (b"Rar!\x1a\x07", "a RAR archive", ""),
    (b"$FL2", "an SPSS file", ""),
    (b"RDX", "a file of R", ""),
    (b"\x7fELF", "a program", ""),
    (b"\x80\x04\x95", "a pickle, which is never opened, as it can run code", ""),
    (b"\x80\x05\x95", "a pickle, which is never opened, as it can run code", ""),
)
COMPRESSED: tuple[tuple[bytes, str, Callable[[Any], Any]], ...] = (
    (b"\x1f\x8b", "gzip", lambda file: gzip.GzipFile(fileobj=file)),
    (b"BZh", "bzip2", bz2.BZ2File),
    (b"\xfd7zXZ\0", "xz", lzma.LZMAFile),
)
ZIP = b"PK\x03\x04"
ENCODINGS = (  # the marks that say so, the longer one first
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def read_content(name: str, encoding: str | None = None) -> Content:
    """What the file called ``name`` holds; ``encoding`` is that of text where it is no Unicode.

    A file that is no table is refused, and named for what it is; one that cannot be read at all is an OSError.
    """
    with Path(name).open("rb") as file:
        head = file.read(CHUNK)
        if _is_binary(head) or _encoding(head):
            return _content(name, head + file.read(), encoding)
        found = bytearray(head)
        while b"\0" not in head and (head := file.read(CHUNK)):  # /dev/zero never ends
            found += head
    return _content(name, bytes(found), encoding)


def _is_binary(head: bytes) -> bool:
    starts = [ZIP, *(start for start, *_ in (*FORMATS, *COMPRESSED))]
    return any(head.startswith(start) for start in starts) and not _is_text(head)


def _is_text(raw: bytes) -> bool:
    """Whether the first bytes are text: a column may be called ORC or BZh."""
    with contextlib.suppress(UnicodeDecodeError):
        codecs.getincrementaldecoder("utf-8")().decode(raw[:CHUNK])  # a letter may be cut in two
        return b"\0" not in raw[:CHUNK]
    return False


def _content(name: str, raw: bytes, encoding: str | None, inside: str = "") -> Content:
    if _is_text(raw):
        return Content(_text(name, raw, encoding))
    for start, how, opened in COMPRESSED:
        if raw.startswith(start):
            if inside:
                raise InvalidData(f"{name}: the file is compressed more than once. {CURE}")
            return _content(name, _unpacked(name, raw, how, opened), encoding, how)
    if raw.startswith(ZIP):
        return _of_zip(name, raw, encoding, inside)
    for start, what, reader in FORMATS:
        if raw.startswith(start):
            if not reader:
                raise InvalidData(f"{name}: the file is {what}. {CURE}")
            if reader == "read_excel":
                return _of_workbook(name, raw, what)
            return Content(frame=_by_pandas(name, raw, what, reader))
    return Content(_text(name, raw, encoding))


def _unpacked(name: str, raw: bytes, how: str, opened: Callable[[Any], Any]) -> bytes:
    found = bytearray()
    try:
        with opened(io.BytesIO(raw)) as file:
            while chunk := file.read(CHUNK):
                found += chunk
                _require_moderate(name, len(found), len(raw))
    except InvalidData:
        raise
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        raise InvalidData(f"{name}: the file is compressed by {how} and damaged: {error}.") from None
    return bytes(found)


def _require_moderate(name: str, size: int, packed: int) -> None:
    if size > MOST_BYTES and size > MOST_TIMES * packed:
        raise InvalidData(
            f"{name}: the file holds more than {MOST_TIMES} times its own size, which no table does. Unpack it first."
        )


def _of_zip(name: str, raw: bytes, encoding: str | None, inside: str) -> Content:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            members = [
                m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")
            ]
            _require_moderate(name, sum(m.file_size for m in members), len(raw))
            names = {m.filename for m in members}
            if "xl/workbook.xml" in names:
                return _of_workbook(name, raw, "an Excel file")
            if "content.xml" in names and b"spreadsheet" in raw[:200]:
                return _of_workbook(name, raw, "a spreadsheet of OpenDocument (.ods)")
            for sign, what in (
                ("xl/workbook.bin", "a binary Excel file (.xlsb)"),
                ("word/document.xml", "a Word document"),
            ):
                if sign in names:
                    raise InvalidData(f"{name}: the file is {what}. {CURE}")
            if inside or len(members) != 1:
                raise InvalidData(
                    f"{name}: the file is a ZIP archive of {len(members)} files. Unpack it and name one of them."
                )
            return _content(name, archive.read(members[0]), encoding, "zip")
    except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError) as error:
        raise InvalidData(f"{name}: the file is a ZIP archive that cannot be read: {error}.") from None


def _of_workbook(name: str, raw: bytes, what: str) -> Content:
    """The first sheet."""
    # By type object, else the text 01 becomes the number 1.
    read = partial(_by_pandas, name, raw, what, "read_excel", dtype=object, header=None)
    sheets: dict[str, Any] = read(sheet_name=None)
    blank = {sheet: int(frame.isna().all(axis=1).cummin().sum()) for sheet, frame in sheets.items()}
    held = [sheet for sheet, frame in sheets.items() if len(frame) > blank[sheet] + 1]
    if not held:
        raise InvalidData(
            f"{name}: the file is {what} without values. It needs the columns' names in its first row."
        )
    remarks: tuple[str, ...] = ()
    if len(held) > 1:
        remarks = (f"{name}: the sheet {held[0]!r} is read, and not {', '.join(map(repr, held[1:]))}.",)
    above = blank[held[0]]
    names = read(sheet_name=held[0], skiprows=above, nrows=1, na_filter=False)  # a column may be called NA
    frame = sheets[held[0]].iloc[above + 1 :].set_axis(names.iloc[0].astype(str), axis=1)
    return Content(frame=frame, first_row=above + 2, remarks=remarks)


def _by_pandas(name: str, raw: bytes, what: str, reader: str, **options: Any) -> Any:
    import warnings

    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on styles of cells
            return getattr(pd, reader)(io.BytesIO(raw), **options)
    except ImportError as error:
        wanted = re.search(r"'([\w.-]+)'|`Import ([\w.-]+)`", str(error))
        package = next((g for g in wanted.groups() if g), "") if wanted else ""
        raise MissingPackage(
            f"{name}: the file is {what}, and pandas needs {package or 'another package'} to read it: pip install "
            f"{package if package not in ('', 'pyarrow', 'openpyxl') else repr('octsvm[files]')}. Or save the table as CSV in UTF-8."
        ) from None
    except Exception as error:  # whatever a reader raises on a damaged file
        reason = " ".join(str(error).split())[:200]
        raise InvalidData(f"{name}: the file is {what} that cannot be read: {reason}. {CURE}") from None


# -- text ---------------------------------------------------------------------------------------------------------


def _encoding(raw: bytes) -> str:
    """UTF-16 or UTF-32, by its mark or by the zero bytes between Latin letters; "" for anything else."""
    for mark, name in ENCODINGS:
        if raw.startswith(mark):
            return name
    start = raw[: 1000 - len(raw) % 2]
    zeros = [start[k::2].count(0) for k in (0, 1)]
    if len(start) >= 4 and max(zeros) > 0.9 * (len(start) // 2) and min(zeros) == 0:
        return "utf-16-be" if zeros[0] else "utf-16-le"
    return ""


def _text(name: str, raw: bytes, asked: str | None) -> str:
    encoding = _encoding(raw) or asked
    try:
        text = raw.decode(encoding or "utf-8-sig")
    except LookupError:
        raise InvalidData(
            f"{name}: there is no encoding {asked!r} of text. Of Excel in Western Europe it is cp1252, of older systems latin1."
        ) from None
    except UnicodeDecodeError as error:
        if encoding:
            raise InvalidData(
                f"{name}: the file is text in {encoding.upper()} that is damaged or cut off, or in another encoding. {CURE}"
            ) from None
        line = raw[: error.start].count(b"\n") + 1
        raise InvalidData(
            f"{name}, line {line}: the byte 0x{raw[error.start]:02x} is not UTF-8. Save the file as CSV in UTF-8, or name its "
            "encoding: --encoding cp1252 for a file of Excel in Western Europe."
        ) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise InvalidData(
            f"{name}, line {line}: the file holds a zero byte, so it is not a text file. Save it as CSV in UTF-8."
        )
    if not text.strip():
        raise InvalidData(
            f"{name}: the file is empty. It needs a header line with the columns' names, then one line a row."
        )
    what = _what_text_is(text)
    if what:
        raise InvalidData(f"{name}: the file is {what}. {CURE}")
    return text if "\n" in text else text.replace("\r", "\n")  # as old Macs end lines


def _what_text_is(text: str) -> str:
    start = text[:1000].lstrip().lower()
    if re.match(r"<(!doctype|html|\?xml|table|!--)", start):
        return "HTML or XML"
    if re.match(r"(%[^\n]*\n\s*)*@relation\b", start):
        return "an ARFF file"
    if start[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(text)
            return "JSON"
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(text.splitlines()[0])
            return "JSON, one record a line"
    if start.startswith("version https://git-lfs"):
        return "a pointer of Git LFS, and not the table itself"
    return ""
