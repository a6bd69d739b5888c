"""An adapter that fails on request: HiGHS in the child, with ``options={"fault": ...}`` as what goes wrong.

It is put among the adapters by a sitecustomize.py on PYTHONPATH, and known by an entry of a user's table.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from typing import Any

import highspy
import numpy as np

from octsvm.backends.mps import write_mps
from octsvm.backends.protocol import Answer


def version() -> str:
    """Version of the stand-in."""
    return "0.0"


def solve(job: Any, reporter: Any) -> Answer:
    """Solve as HiGHS does, and fail as the option says."""
    fault = job.settings["fault"]
    if fault == "at once":
        os.abort()
    write_mps(job, "model.mps")
    h = highspy.Highs()
    h.setOptionValue("threads", 1)
    h.readModel("model.mps")
    h.run()
    x = np.array(h.getSolution().col_value)
    value = float(h.getInfo().objective_function_value)
    if fault not in ("wrong shape", "infeasible", "bound too high", "claims the start"):
        reporter.point(x)
        reporter.bound(value - 1e-3 * abs(value), 7)
    if fault == "abort":
        os.abort()
    if fault == "segfault":
        ctypes.string_at(0)
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "exit":
        os._exit(0)
    if fault == "raise":
        raise MemoryError("out of memory")
    if fault == "sleep":
        while True:
            time.sleep(1)
    if fault == "sleep with the lock":
        ctypes.PyDLL(None).sleep(1000)
    if fault in ("garbage", "cut off"):
        for number in range(3, 12):
            try:
                os.write(
                    number,
                    b"\xff\xfe rubbish" * 50
                    if fault == "garbage"
                    else b"\x00\x10\x00\x00\x00\x00\x00\x00abc",
                )
            except OSError:
                continue
        os._exit(0)
    if fault == "prints":
        for _ in range(10):
            os.write(1, b"x" * 200_000 + b"\n" + b"a line\n" * 20_000)
    if fault == "wrong shape":
        reporter.point(x[:-1])
        return Answer("optimal", np.full(job.n + 3, np.nan), float("nan"), 0, "rubbish")
    if fault == "infeasible":
        x[job.integer] = 1 - np.round(x[job.integer])
        return Answer("optimal", x, value, 0, "optimal")
    if fault == "bound too high":
        return Answer("optimal", x, value + 5.0, 0, "optimal")
    if fault == "claims the start":
        return Answer("optimal", job.start, value * 0.5, 0, "optimal")
    if fault == "node limit":
        return Answer("node_limit", x, 0.5 * value, 7, "node limit")
    return Answer("optimal", x, value, 1, "optimal")
