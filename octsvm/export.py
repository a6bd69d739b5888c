"""Models as files for solvers elsewhere."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pyomo.environ as pyo
from pyomo.repn.plugins.nl_writer import NLWriter

from .errors import InvalidParameter, OutputNotWritable
from .names import Names

FORMATS = {".lp": "lp", ".nl": "nl", ".mps": "mps"}
NAMES_OF_NL = (
    ".row",
    ".col",
)  # AMPL's convention: the names of an .nl file's rows and variables, in its order


def format_of(path: str | Path) -> str:
    """The format that the ending of ``path`` stands for.

    Raises
    ------
    InvalidParameter
        For another ending.
    """
    target = Path(path)
    kind = FORMATS.get(target.suffix.lower())
    if kind is None:
        raise InvalidParameter(
            f"{target.name!r} ends in {target.suffix!r}; a model is written as {', '.join(FORMATS)}."
        )
    return kind


def companions(path: Path) -> list[Path]:
    """The files of names that belong to ``path``: two for .nl, none for the other formats."""
    return [path.with_suffix(s) for s in NAMES_OF_NL] if format_of(path) == "nl" else []


def _write(model: pyo.ConcreteModel, part: Path, compact: bool) -> None:
    if format_of(part) != "nl":
        model.write(
            str(part), io_options={"symbolic_solver_labels": False} if compact else {"labeler": Names()}
        )
        if format_of(part) == "lp":
            # SCIP's reader refuses `x ^ 2` with blanks; without them all readers take it.
            text = part.read_text(encoding="utf-8")
            if " ^ 2" in text:
                part.write_text(text.replace(" ^ 2", "^2"), encoding="utf-8")
        return
    # The writer itself, as it says which row and variable stands where; as they are, nothing presolved or scaled.
    with part.open("w", newline="") as out:
        info = NLWriter().write(model, out, linear_presolve=False, scale_model=False)
    if not compact:
        name = Names(plain=True)
        rows, columns = companions(part)
        for file, members in ((rows, [*info.constraints, *info.objectives]), (columns, info.variables)):
            with file.open("w", encoding="utf-8", newline="") as out:
                out.writelines(f"{name(member)}\n" for member in members)


def write(model: pyo.ConcreteModel, path: str | Path, compact: bool = False) -> Path:
    """Write ``model`` as .lp, .nl or .mps, by the ending of ``path``.

    A file appears complete or not at all.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        Any Pyomo model.
    path : str or Path
        Where to; a file that is there is replaced.
    compact : bool
        Generic names (x1, c1, ...). Readable names by default: in the file, or for .nl, which holds none, in files
        of the same name that end in .row and .col. With ``compact`` those of an earlier model are removed, as they
        would name this one's rows and variables wrongly.

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
    format_of(target)
    real = Path(os.path.realpath(target))
    device = real.exists() and not real.is_file()  # is written to, never replaced
    folder = Path(tempfile.mkdtemp()) if device else real.parent
    part = folder / f".{target.stem}-{os.getpid()}-part{target.suffix.lower()}"
    parts = [part, *companions(part)]
    finished = [real, *companions(real.with_suffix(target.suffix))]
    try:
        _write(model, part, compact)
        if device:
            with part.open("rb") as written, real.open("wb") as out:
                shutil.copyfileobj(written, out)
            return target
        # The model last: once it is there, so are its names.
        for one, final in reversed(list(zip(parts, finished, strict=True))):
            if one.exists():
                os.replace(one, final)
            else:
                final.unlink(missing_ok=True)
    except OSError as error:
        raise OutputNotWritable(
            f"{str(target)!r} cannot be written: {error.strerror or error}. Choose another place."
        ) from None
    finally:
        for leftover in parts:
            with contextlib.suppress(OSError):
                leftover.unlink(missing_ok=True)
        if device:
            shutil.rmtree(folder, ignore_errors=True)
    return target
