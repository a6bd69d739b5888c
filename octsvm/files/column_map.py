"""The column map beside a model file: which variable each column is, and where the model came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidSolutionFile
from ..formulations.base import ModelInfo
from ..formulations.read_file import read_text_bytes
from ..result import versions

SCHEMA, VERSION = "octsvm.model_file", 1
SUFFIX = ".json"  # after the whole name: model.lp and model.mps have one each, and model.json may be a tree


@dataclass(frozen=True)
class ColumnMap:
    """A column map that was read; ``formulation``, ``params`` and ``data_digest`` are None where the model belongs to none."""

    path: Path
    format: str  # "lp", "nl" or "mps"
    generic: bool  # whether the columns have generic names
    formulation: str | None
    params: dict[str, Any] | None  # with all defaults
    data_digest: str | None  # of the training table, its labels and weights
    # Name in the file and name of the variable, in the order of the file; None for a column that is no variable.
    columns: tuple[tuple[str, str | None], ...]
    # What was added to the model, or changed in it, since it was built; None where an earlier version wrote the file.
    own: tuple[str, ...] | None


def beside(model_file: Path) -> Path:
    """Where the column map of a model file is."""
    return model_file.with_name(model_file.name + SUFFIX)


def is_column_map(path: Path) -> bool:
    """Whether a file is a column map, by its first words."""
    try:
        with path.open("rb") as file:
            return f'"schema": "{SCHEMA}"'.encode() in file.read(80)
    except OSError:
        return False


def text_of(
    info: ModelInfo | None,
    own: Sequence[str],
    file: Path,
    name: str,
    compact: bool,
    columns: Sequence[tuple[str, str | None]],
) -> str:
    """The content of the column map of ``file``, which will be called ``name``."""
    known = versions()
    head = {
        "schema": SCHEMA,
        "version": VERSION,
        "file": name,
        "format": file.suffix[1:].lower(),
        "sha256": hash_of(file),
        "names": "generic" if compact else "readable",
        "formulation": info.formulation if info else None,
        "params": plain_params(info) if info else None,
        "data_digest": info.data.digest if info else None,
        "n": info.data.n if info else None,
        "p": len(info.data.feature_names) if info else None,
        "own": list(own),
        "versions": {k: known[k] for k in ("octsvm", "pyomo")},
    }
    start = json.dumps(head, indent=1, allow_nan=False, default=str).removesuffix("\n}")
    return f'{start},\n "columns": {json.dumps(list(columns))}\n}}\n'


def plain_params(info: ModelInfo) -> dict[str, Any]:
    """The parameters as JSON has them."""
    return json.loads(json.dumps(info.params.model_dump(mode="json")))


def hash_of(file: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def read(path: Path) -> ColumnMap:
    """Read and check a column map; a model file that stands beside it has to be the one it was written with."""
    again = "Write the model again with octsvm.write, and solve that file."
    try:
        content = json.loads(read_text_bytes(path))
    except FileNotFoundError:
        raise InvalidSolutionFile(
            f"There is no sidecar {str(path)!r}. Name the .json that octsvm.write left beside the model file."
        ) from None
    except OSError as error:
        raise InvalidSolutionFile(
            f"The sidecar {str(path)!r} cannot be read: {error.strerror or error}."
        ) from None
    except (ValueError, RecursionError) as error:
        raise InvalidSolutionFile(
            f"The sidecar {path.name!r} is damaged: no JSON ({error}). {again}"
        ) from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise InvalidSolutionFile(
            f"{path.name!r} is no sidecar of a model file. It is called as the model file with {SUFFIX} after it: model.lp{SUFFIX}."
        )
    if content.get("version") != VERSION:
        raise InvalidSolutionFile(
            f"The sidecar {path.name!r} has version {content.get('version')}, and version {VERSION} is read here. Upgrade octsvm."
        )
    try:
        columns = tuple((str(c), None if v is None else str(v)) for c, v in content["columns"])
        found = ColumnMap(
            path,
            content["format"],
            content["names"] == "generic",
            content["formulation"],
            None if content["params"] is None else dict(content["params"]),
            content["data_digest"],
            columns,
            None if content.get("own") is None else tuple(map(str, content["own"])),
        )
        digest = content["sha256"]
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidSolutionFile(f"The sidecar {path.name!r} is damaged ({error}). {again}") from None
    model_file = path.with_name(path.name.removesuffix(SUFFIX))
    if model_file.is_file() and hash_of(model_file) != digest:
        raise InvalidSolutionFile(
            f"{model_file.name!r} is no longer the file that {path.name!r} was written with: its columns may be others. {again}"
        )
    return found
