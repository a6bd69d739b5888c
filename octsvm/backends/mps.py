"""The linear part of a program as a free .mps file with columns c0, c1, ...: what many engines read fastest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import highspy
import numpy as np


class _Silent(highspy.Highs):
    def enableCallbacks(self) -> None:
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()


def write_mps(job: Any, path: str | Path) -> None:
    """Write cost, rows, bounds and integers of a job or a program; numbers keep 15 digits.

    Raises
    ------
    OSError
        The file was not written.
    """
    lp = highspy.HighsLp()
    n, m = len(job.cost), len(job.row_low)
    lp.num_col_, lp.num_row_ = n, m
    lp.col_cost_, lp.offset_ = job.cost, job.offset
    lp.col_lower_, lp.col_upper_ = job.low, job.high
    lp.row_lower_, lp.row_upper_ = job.row_low, job.row_high
    indptr, indices, data = job.matrix
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = indptr.astype(np.int32)
    lp.a_matrix_.index_ = indices.astype(np.int32)
    lp.a_matrix_.value_ = data
    if job.integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(k)] for k in job.integer]
    lp.col_names_ = [f"c{k}" for k in range(n)]
    lp.row_names_ = [f"r{k}" for k in range(m)]
    h = _Silent()
    h.passModel(lp)
    if h.writeModel(str(path)) == highspy.HighsStatus.kError or not Path(path).is_file():
        raise OSError(f"the model could not be written to {path}")
