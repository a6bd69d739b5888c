"""The linear part of a program as a free .mps file with columns c0, c1, ...: what many engines read fastest."""

from __future__ import annotations

import locale
from pathlib import Path
from typing import Any

import highspy
import numpy as np


class _Silent(highspy.Highs):
    def enableCallbacks(self) -> None:
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


def _write(part: Any, cost: Any, offset: float, matrix: tuple[Any, Any, Any], path: str | Path) -> None:
    lp = highspy.HighsLp()
    n, m = len(cost), len(part.row_low)
    lp.num_col_, lp.num_row_ = n, m
    lp.col_cost_, lp.offset_ = cost, offset
    lp.col_lower_, lp.col_upper_ = part.low, part.high
    lp.row_lower_, lp.row_upper_ = part.row_low, part.row_high
    indptr, indices, data = matrix
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = indptr.astype(np.int32)
    lp.a_matrix_.index_ = indices.astype(np.int32)
    lp.a_matrix_.value_ = data
    if part.integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(k)] for k in part.integer]
    lp.col_names_ = [f"c{k}" for k in range(n)]
    lp.row_names_ = [f"r{k}" for k in range(m)]
    h = _Silent()
    h.passModel(lp)
    if h.writeModel(str(path)) == highspy.HighsStatus.kError or not Path(path).is_file():
        raise OSError(f"the model could not be written to {path}")
    point = locale.localeconv()["decimal_point"]
    if point != ".":  # HiGHS prints numbers in the locale of the process; no name here has such a sign
        written = Path(path).read_text(encoding="utf-8")
        Path(path).write_text(written.replace(str(point), "."), encoding="utf-8")
