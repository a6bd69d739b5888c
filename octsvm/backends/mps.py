"""The linear part of a program as a free .mps file with columns c0, c1, ...: what many engines read fastest."""

from __future__ import annotations

import locale
from pathlib import Path
from typing import Any

import highspy
import numpy as np


class Silent(highspy.Highs):
    """HiGHS that prints nothing when it is made (its banner comes with the first call after construction)."""

    def enableCallbacks(self) -> None:
        """Come before what would print."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()


def write_mps(job: Any, path: str | Path) -> None:
    """Write cost, rows, bounds and integers of a job; numbers keep 15 digits.

    Raises
    ------
    OSError
        The file was not written.
    """
    _write(job, job.cost, job.offset, job.matrix, path)


def write_model(program: Any, path: str | Path, scale: float) -> None:
    """Write a program as .mps or .lp, its objective multiplied by ``scale`` and without its constant.

    Raises
    ------
    OSError
        The file was not written.
    """
    A = program.A
    _write(program, program.cost * scale, 0.0, (A.indptr, A.indices, A.data), path)


def linear_part(
    part: Any, cost: Any, offset: float, matrix: tuple[Any, Any, Any], relax: bool = False
) -> Any:
    """Rows, bounds and, unless they are relaxed, integers of a program or a job, as HiGHS takes them."""
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(cost), len(part.row_low)
    lp.col_cost_, lp.offset_ = cost, offset
    lp.col_lower_, lp.col_upper_ = part.low, part.high
    lp.row_lower_, lp.row_upper_ = part.row_low, part.row_high
    indptr, indices, data = matrix
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = indptr.astype(np.int32)
    lp.a_matrix_.index_ = indices.astype(np.int32)
    lp.a_matrix_.value_ = data
    if not relax and part.integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(k)] for k in part.integer]
    return lp


def _write(part: Any, cost: Any, offset: float, matrix: tuple[Any, Any, Any], path: str | Path) -> None:
    lp = linear_part(part, cost, offset, matrix)
    lp.col_names_ = [f"c{k}" for k in range(lp.num_col_)]
    lp.row_names_ = [f"r{k}" for k in range(lp.num_row_)]
    h = Silent()
    h.passModel(lp)
    if h.writeModel(str(path)) == highspy.HighsStatus.kError or not Path(path).is_file():
        raise OSError(f"the model could not be written to {path}")
    point = locale.localeconv()["decimal_point"]
    if point != ".":  # the writer follows the user's locale; no name of ours has a comma
        text = Path(path).read_bytes().replace(str(point).encode(), b".")
        Path(path).write_bytes(text)
