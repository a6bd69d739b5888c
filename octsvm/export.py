"""Models as files for solvers elsewhere."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pyomo.environ as pyo

from .errors import InvalidParameter, OutputNotWritable

FORMATS = {".lp": "lp", ".nl": "nl", ".mps": "mps"}


def write(model: pyo.ConcreteModel, path: str | Path) -> Path:
    """Write ``model`` as .lp, .nl or .mps, by the ending of ``path``; readable names in .lp and .mps.

    The file appears complete or not at all.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        Any Pyomo model.
    path : str or Path
        Where to; a file that is there is replaced.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidParameter
        For another ending.
    OutputNotWritable
        The place cannot be written to.
    """
    target = Path(path)
    kind = FORMATS.get(target.suffix.lower())
    if kind is None:
        raise InvalidParameter(
            f"{target.name!r} ends in {target.suffix!r}; a model is written as {', '.join(FORMATS)}."
        )
    part = target.with_name(f"{target.stem}-{os.getpid()}-part{target.suffix.lower()}")
    try:
        model.write(str(part), io_options={"symbolic_solver_labels": kind != "nl"})
        os.replace(part, target)
    except OSError as error:
        raise OutputNotWritable(
            f"{str(target)!r} cannot be written: {error.strerror or error}. Choose another place."
        ) from None
    finally:
        for leftover in part.parent.glob(f"{part.stem}*") if part.parent.is_dir() else ():
            with contextlib.suppress(OSError):
                leftover.unlink()
    return target
