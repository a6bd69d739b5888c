"""Archives from UCI: downloaded once, checked member by member, kept in the user's cache."""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

from ..errors import DatasetUnavailable
from .catalogue import DatasetInfo, Original
from .convert import sha256, with_plain_line_ends

UCI = "https://archive.ics.uci.edu"
BASE_URL = "OCTSVM_UCI"
FILE = "{base}/static/public/{id}/{archive}"
RETRIES = 2
TIMEOUT = 30.0  # seconds without an answer


def read_archive(content: bytes, original: Original) -> dict[str, bytes]:
    """The members of an archive that are needed, checked: name -> content.

    Raises
    ------
    ValueError
        It is no complete zip archive, or a member is missing or is another file.
    """
    members = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in original.members:
                members[name] = archive.read(name)
    except KeyError:
        raise ValueError(f"it has no member {name!r}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"it is no whole zip archive ({len(content)} bytes: {error})") from None
    for name, content in members.items():
        found = sha256(with_plain_line_ends(content) if original.any_line_ends else content)
        if found != original.members[name]:
            raise ValueError(
                f"its member {name!r} ({len(content)} bytes) is not the file that is known: sha256 {found}, "
                f"expected {original.members[name]}"
            )
    return members


def fetch(
    name: str, info: DatasetInfo, base_url: str | None, cache_dir: str | Path | None
) -> dict[str, bytes]:
    """Members of a set's archive, from the cache or the network: name -> content.

    Raises
    ------
    DatasetUnavailable
        It cannot be had, or is not what is known.
    """
    import pooch
    import requests

    original = info.original
    base = (base_url or os.environ.get(BASE_URL) or UCI).rstrip("/")
    url = FILE.format(base=base, id=info.uci_id, archive=original.archive)
    folder = Path(pooch.os_cache("octsvm") if cache_dir is None else cache_dir)
    kept = folder / original.archive

    def download(url: str, file: Any, getter: Any) -> None:
        """Only a good archive gets into the cache."""
        pooch.HTTPDownloader(timeout=TIMEOUT)(url, file, getter)
        read_archive(Path(file).read_bytes(), original)

    if kept.is_file():
        try:
            return read_archive(kept.read_bytes(), original)
        except (OSError, ValueError):
            pass  # fetched again below
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept.unlink(missing_ok=True)
        getter = pooch.create(
            folder,
            base_url="",
            registry={original.archive: None},
            urls={original.archive: url},
            retry_if_failed=RETRIES,
        )
        return read_archive(Path(getter.fetch(original.archive, downloader=download)).read_bytes(), original)
    except requests.exceptions.HTTPError as error:
        why = f"the server answered {error.response.status_code} {error.response.reason}"
    except requests.exceptions.Timeout:
        why = f"the server did not answer within {TIMEOUT:g} seconds"
    except requests.exceptions.ChunkedEncodingError:
        why = "the connection broke off before all of it had come"
    except requests.exceptions.ConnectionError:
        why = "there is no connection to the server, or it was cut"
    except (requests.exceptions.RequestException, ValueError) as error:
        why = " ".join(str(error).split())
    except OSError as error:
        why = f"the cache {folder} cannot be used ({error.strerror or error})"
    raise DatasetUnavailable(
        f"The data set {name} could not be had from {url}: {why}. What you can do: try again with a connection; "
        f"or download that archive elsewhere and put it, unchanged, at {kept}; or point data_dir= (or the "
        f"environment variable OCTSVM_DATA) to a folder with {name}.csv. Its page is {info.page}"
    )
