"""A program that reads an .mps file and writes HiGHS's solution file, and fails on request (``--fault``)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import highspy


def main() -> int:
    """``program.py model.mps solution [--fault what]``."""
    model, solution = sys.argv[1:3]
    fault = sys.argv[4] if len(sys.argv) > 4 else ""
    if fault and fault not in KNOWN:
        print(f"Unknown fault {fault}")
        return 1
    print("reads the model", flush=True)
    if fault == "abort":
        os.abort()
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "exit":
        return 0
    if fault in ("sleep", "with a child"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if fault == "with a child":
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
        while True:
            time.sleep(1)
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.readModel(model)
    h.run()
    h.writeSolution(solution, 0)
    lines = Path(solution).read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith(("Objective_bound", "MIP_rel_gap"))) + "\n"
    Path(solution).write_text(text)
    if fault == "garbage":
        Path(solution).write_bytes(os.urandom(5000))
    if fault == "cut off":
        first, last = text.index("# Columns"), text.index("# Rows")
        Path(solution).write_text(text[: (first + last) // 2])
    if fault == "infeasible":
        lines = text.splitlines()
        first = next(k for k, line in enumerate(lines) if line.startswith("c0 "))
        for k in range(first, len(lines)):
            name, _, value = lines[k].partition(" ")
            if not name.startswith("c"):
                break
            lines[k] = f"{name} {1 - round(float(value)) if float(value) in (0, 1) else value}"
        Path(solution).write_text("\n".join(lines) + "\n")
    if fault == "empty":
        Path(solution).write_text("")
    if fault == "prints":
        for _ in range(10):
            os.write(1, b"x" * 200_000 + b"\n" + b"a line\n" * 20_000)
    return 0


KNOWN = (
    "abort",
    "kill",
    "exit",
    "sleep",
    "with a child",
    "garbage",
    "cut off",
    "infeasible",
    "empty",
    "prints",
    "none",
)

if __name__ == "__main__":
    raise SystemExit(main())
