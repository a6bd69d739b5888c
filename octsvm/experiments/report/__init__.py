"""Reports of experiments: the paper's table beside ours, with every figure traceable to its cells."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ...errors import InvalidData, InvalidParameter, MissingPackage, OutputNotWritable
from ...formulations.replace_file import replace_bytes
from ...reports.document import render
from ..protocol import Protocol, load_protocol
from ..selection import select
from . import pictures, tables
from .figures import Run
from .paper import SOURCE

__all__ = ["require_packages", "write_report"]

Format = Literal["html", "md"]
FORMATS: dict[Format, str] = {"html": "html", "md": "markdown"}  # and their layouts
TEMPLATE = ("report.j2", __package__)
NEEDED = ("jinja2", "statsmodels")  # matplotlib and scikit-posthocs only draw


def require_packages() -> None:
    """Raise MissingPackage unless what a report is made with is installed: to ask before a run of days."""
    lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if lacking:
        raise MissingPackage(
            f"A report needs {' and '.join(lacking)}, not installed here. Install it: pip install 'octsvm[report]'. The "
            "cells of a run are kept without it: octsvm table2 run; the report can be made of them later."
        )


# What scipy and matplotlib come across on their way is no error, whatever the caller made of those.
@np.errstate(all="ignore")
def write_report(
    source: str | Path | pd.DataFrame | tuple[Protocol, pd.DataFrame, Mapping[str, Any]],
    out_dir: str | Path,
    *,
    formats: Sequence[Format] = ("html", "md"),
) -> list[Path]:
    """Write the report of a run, finished or not.

    ``report.html`` is one self-contained file; ``report.md`` has its pictures beside it. ``selected.csv`` has one line
    for each rule, set, noise, method, repetition and fold with the cell that was chosen, ``accuracies.csv`` the
    means of them beside the published figures. Without matplotlib and scikit-posthocs the report has no pictures and
    says so.

    Parameters
    ----------
    source : str, Path, DataFrame or tuple
        A store of cells or an export of it; the cells as read from there, with the protocol in ``attrs``; or the
        protocol, the cells, and what is known of versions and machines (a mapping).
    out_dir : str or Path
        Folder to write into; it is made.
    formats : sequence of str
        Of "html" and "md".

    Returns
    -------
    list of Path
        The files, the reports first.

    Raises
    ------
    MissingPackage
        What makes it is not installed: the extra ``report``.
    InvalidParameter
        There is no such format.
    InvalidData
        The source holds no cells that can be read.
    OutputNotWritable
        The folder or a file cannot be written.
    """
    for name in formats:
        if name not in FORMATS:
            raise InvalidParameter(f"format={name!r} is none; there are {', '.join(FORMATS)}.")
    require_packages()
    protocol, cells, meta = _read(source)
    selection = select(cells, protocol.rules, protocol=protocol)
    run = Run(protocol, cells, meta, selection)
    drawn = pictures.draw_all(run)
    content: dict[str, bytes] = {}
    names = {"title": f"octsvm: {protocol.name}", "run": run, "pictures": drawn}
    names |= {"tables": tables, "source": SOURCE}
    for kind, layout in FORMATS.items():
        if kind in formats:
            content[f"report.{kind}"] = render(layout, names, *TEMPLATE).encode()
    for file, frame in (("selected", selection.chosen), ("accuracies", accuracies(run))):
        content[f"{file}.csv"] = frame.to_csv(index=False, lineterminator="\n").encode()
    if "md" in formats:
        for picture in (drawn or {}).values():
            content[f"{picture.name}.svg"], content[f"{picture.name}-dark.svg"] = picture.light, picture.dark
    folder = Path(out_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # a ValueError where no folder can be called so
        why = getattr(error, "strerror", None) or error
        raise OutputNotWritable(f"The report cannot be written to {str(folder)!r} ({why}).") from None
    # The reports last: once they are there, so are their pictures.
    for file, data in reversed(content.items()):
        replace_bytes(folder / file, data)
    return [folder / file for file in content]


def _read(source: Any) -> tuple[Protocol, pd.DataFrame, Mapping[str, Any]]:
    """Protocol, cells, and what is known of the run."""
    if isinstance(source, str | Path):
        from ..store import read_cells

        source = read_cells(source)
    if isinstance(source, tuple):
        return source
    if "protocol" not in source.attrs:
        raise InvalidData(
            "These cells do not say of which protocol they are: attrs has no 'protocol'. Give the store itself, or "
            "(protocol, cells, {})."
        )
    meta = {k: v for k, v in source.attrs.items() if k != "protocol"}
    return load_protocol(source.attrs["protocol"]), source, meta


def accuracies(run: Run) -> pd.DataFrame:
    """One line for each rule, set, noise and method: accuracy in percent, folds; with published sets, their figure and the difference."""
    table = run.selection.table.reset_index()
    table["accuracy"] *= 100
    if not run.columns:
        return table.round({"accuracy": 6})
    given = {(*place, m): v for m, column in run.paper.items() for place, v in column.items()}  # type: ignore[misc]
    keys = zip(table["set"], table["noise"], table["method"], strict=True)
    table["paper"] = [given.get(key, math.nan) for key in keys]
    table["difference"] = table["accuracy"] - table["paper"]
    return table.round({"accuracy": 6, "difference": 6})
