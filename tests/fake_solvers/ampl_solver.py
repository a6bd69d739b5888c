"""A program that speaks the protocol of AMPL solvers: ``ampl_solver.py MODEL -AMPL [limit=SECONDS]``; SCIP solves."""

from __future__ import annotations

import sys
from pathlib import Path

from pyscipopt import Model

CODES = {"optimal": 0, "gaplimit": 0, "infeasible": 200, "unbounded": 300, "timelimit": 400}


def solve(text: bytes, folder: Path, seconds: float = 60.0) -> str:
    """The .sol text of an .nl file's content."""
    path = folder / "stand-in.nl"
    path.write_bytes(text)
    lines = text.decode().splitlines()
    n, m = map(int, lines[1].split()[:2])
    model = Model()
    model.hideOutput(True)
    model.readProblem(str(path))
    model.setParam("limits/time", seconds)
    model.setParam("limits/gap", 0.0)
    model.optimize()
    status = model.getStatus()
    out = [f"SCIP: {status}", "", "Options", "3", "1", "1", "0", str(m), "0", str(n), str(n)]
    if model.getNSols():
        best = model.getBestSol()
        values = [0.0] * n
        for var in model.getVars():
            if var.name[0] in "xbic" and var.name[1:].isdigit():
                values[int(var.name[1:])] = model.getSolVal(best, var)
        out += [repr(v) for v in values]
    else:
        out[-1] = "0"
    return "\n".join([*out, f"objno 0 {CODES.get(status, 500)}"]) + "\n"


def main() -> None:
    """Read the model and write its .sol next to it."""
    stub = Path(sys.argv[1]).with_suffix("")
    words = dict(word.split("=", 1) for word in sys.argv[2:] if "=" in word)
    print("AMPL stand-in 1.2.3")
    if sys.argv[2:3] != ["-AMPL"]:
        sys.exit("called without -AMPL")
    text = solve(stub.with_suffix(".nl").read_bytes(), stub.parent, float(words.get("limit", 60)))
    stub.with_suffix(".sol").write_text(text)


if __name__ == "__main__":
    main()
