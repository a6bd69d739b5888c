"""A linear program as an .nl file: for AMPL solvers that take linear models only, which get the rows of every round."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .matrix_program import LinearProgram


def write_linear_nl(program: LinearProgram, path: Path, scale: float) -> NDArray[np.int64]:
    """Write the linear part of ``program``, its objective multiplied by ``scale``.

    The format wants continuous variables first, then binary ones, then other integers.

    Returns
    -------
    ndarray of shape (n,)
        The program's column behind each variable of the file.

    Raises
    ------
    OSError
        The file was not written.
    """
    binary = program.integer & (program.low >= 0) & (program.high <= 1)
    kind = np.where(~program.integer, 0, np.where(binary, 1, 2))
    order = np.argsort(kind, kind="stable").astype(np.int64)
    A = sp.csr_array(program.A[:, order]) if program.n else program.A
    A.sum_duplicates()
    m, n = A.shape
    cost = program.cost[order] * scale
    charged = np.flatnonzero(cost)
    equal = program.row_low == program.row_high
    ranged = np.isfinite(program.row_low) & np.isfinite(program.row_high) & ~equal
    lines = [
        "g3 1 1 0",
        f" {n} {m} 1 {int(ranged.sum())} {int(equal.sum())}",
        " 0 0 0 0 0 0",
        " 0 0",
        " 0 0 0",
        " 0 0 0 1",
        f" {int(binary.sum())} {int(program.integer.sum() - binary.sum())} 0 0 0",
        f" {A.nnz} {len(charged)}",
        " 0 0",
        " 0 0 0 0 0",
    ]
    for k in range(m):
        lines += [f"C{k}", "n0"]
    lines += ["O0 0", f"n{program.offset * scale!r}", "r"]
    lines += _sides(program.row_low, program.row_high)
    lines.append("b")
    lines += _sides(program.low[order], program.high[order])
    lines.append(f"k{max(n - 1, 0)}")
    counts = np.bincount(A.indices, minlength=n)
    lines += [str(c) for c in np.cumsum(counts)[: n - 1].tolist()]
    for k in range(m):
        at = slice(A.indptr[k], A.indptr[k + 1])
        if at.stop > at.start:
            lines.append(f"J{k} {at.stop - at.start}")
            pairs = sorted(zip(A.indices[at].tolist(), A.data[at].tolist(), strict=True))
            lines += [f"{j} {v!r}" for j, v in pairs]
    if len(charged):
        lines.append(f"G0 {len(charged)}")
        lines += [f"{j} {v!r}" for j, v in zip(charged.tolist(), cost[charged].tolist(), strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    return order


def _sides(low: NDArray[np.float64], high: NDArray[np.float64]) -> list[str]:
    out = []
    for below, above in zip(low.tolist(), high.tolist(), strict=True):
        if below == above:
            out.append(f"4 {below!r}")
        elif np.isfinite(below):
            out.append(f"0 {below!r} {above!r}" if np.isfinite(above) else f"2 {below!r}")
        else:
            out.append(f"1 {above!r}" if np.isfinite(above) else "3")
    return out
