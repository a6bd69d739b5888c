"""Load a set: a ready file from a folder, else the original from UCI."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidData, InvalidParameter
from .catalogue import DatasetInfo, info
from .convert import sha256, to_csv, with_plain_line_ends
from .fetch import fetch

if TYPE_CHECKING:
    import pandas as pd

FOLDER = "OCTSVM_DATA"


@dataclass(frozen=True)
class Dataset:
    """A data set.

    Attributes
    ----------
    name : str
        Its name in the catalogue.
    X : pandas.DataFrame
        Features, (n, p), numeric and complete, rows in the original's order.
    y : pandas.Series
        Labels 1 and -1, (n,), named ``label``.
    info : DatasetInfo
        Licence, citation, and what was changed.
    """

    name: str
    X: pd.DataFrame = field(repr=False)
    y: pd.Series = field(repr=False)
    info: DatasetInfo = field(repr=False)


def load(
    name: str,
    data_dir: str | Path | None = None,
    *,
    base_url: str | None = None,
    cache_dir: str | Path | None = None,
) -> Dataset:
    """Load one of the eight sets, checked row by row against what is known of it.

    A file ``<name>.csv`` in a folder of yours comes first. Else the set's archive is downloaded from UCI, once: it
    is kept in the user's cache, and the table is made from it.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    data_dir : str or Path, optional
        Folder with ready files, features first, ``label`` last. None takes the environment variable OCTSVM_DATA, and
        without it no folder.
    base_url : str, optional
        Address that stands for https://archive.ics.uci.edu, such as a mirror's. None takes the environment variable
        OCTSVM_UCI, and without it UCI.
    cache_dir : str or Path, optional
        Where archives are kept. None takes the user's cache folder.

    Returns
    -------
    Dataset
        Features, labels and facts.

    Raises
    ------
    InvalidParameter
        There is no such set, or no such folder.
    InvalidData
        The file in the folder is not the known table; the message says what differs.
    DatasetUnavailable
        No file in the folder, and no download.
    """
    import pandas as pd

    about = info(name)
    content = _ready(name, about, data_dir)
    if content is None:
        content = to_csv(fetch(name, about, base_url, cache_dir), name, about)
    frame = pd.read_csv(io.BytesIO(content))
    return Dataset(name, frame.drop(columns="label"), frame["label"], about)


def _ready(name: str, about: DatasetInfo, data_dir: str | Path | None) -> bytes | None:
    """The checked content of the file in the folder; None where there is none."""
    asked = os.environ.get(FOLDER) if data_dir is None else data_dir
    if not asked:
        return None
    folder = Path(asked)
    if not folder.is_dir():
        where = f"data_dir={str(data_dir)!r}" if data_dir is not None else f"{FOLDER}={asked}"
        raise InvalidParameter(f"{where} is no folder here. Leave it out to have the set from UCI.")
    file = folder / f"{name}.csv"
    if not file.is_file():
        return None
    try:
        content = with_plain_line_ends(file.read_bytes())
    except OSError as error:
        raise InvalidData(f"{file} cannot be read ({error.strerror or error}).") from None
    if sha256(content) != about.sha256:
        raise InvalidData(
            f"{file} is not the known table {name}: {'; '.join(_differences(content, about))}. Take the file away "
            "to have the set from UCI; a table of your own is read by pandas.read_csv."
        )
    return content


def _differences(content: bytes, about: DatasetInfo) -> list[str]:
    """What a file has otherwise than the catalogue says."""
    import pandas as pd

    try:
        frame = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    except ValueError:  # of the parser and of the encoding
        return ["it cannot be read as CSV"]
    found = []
    columns = list(frame.columns)
    if not columns or columns[-1] != "label":
        found.append(f"the last column is {columns[-1] if columns else ''!r}, expected 'label'")
    elif len(columns) - 1 != about.p:
        found.append(f"{len(columns) - 1} features, expected {about.p}")
    elif tuple(columns[:-1]) != about.features:
        k = next(k for k, c in enumerate(about.features) if columns[k] != c)
        found.append(f"column {k + 1} is called {columns[k]!r}, expected {about.features[k]!r}")
    if len(frame) != about.n:
        found.append(f"{len(frame)} rows, expected {about.n}")
    if "label" in columns:
        for label, expected in (("1", about.positive), ("-1", about.negative)):
            count = int((frame["label"] == label).sum())
            if count != expected:
                found.append(f"{count} rows with label {label}, expected {expected}")
    if not found:
        found.append("size, names and counts are right, but some values or their digits differ")
    return [*found, f"sha256 {sha256(content)}, expected {about.sha256}"]
