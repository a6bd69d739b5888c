"""A stand-in for the Couenne and Bonmin executables: the AMPL protocol as they speak it, with SCIP as the solver.

As a program it is an AMPL solver that nobody knows: ``asl.py model.nl -AMPL``.

``couenne model.nl -AMPL`` reads the model and, in its working folder, couenne.opt; it writes model.sol next to the model.
What the real programs do at the edges is kept: an unknown option ends Couenne by SIGABRT, and Bonmin with exit code 0 and no
solution file; an interrupt makes both write their incumbent with code 422.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from pyscipopt import SCIP_EVENTTYPE, Eventhdlr, Model

OPTIONS = {
    "couenne": ("time_limit", "allowable_fraction_gap", "allowable_gap", "node_limit", "feas_tolerance", "integer_tolerance"),
    "bonmin": (
        "bonmin.time_limit", "bonmin.allowable_fraction_gap", "bonmin.allowable_gap", "bonmin.node_limit",
        "bonmin.integer_tolerance", "bonmin.algorithm", "bonmin.bb_log_level", "bonmin.variable_selection",
    ),
}  # fmt: skip
OURS = {
    "time_limit": "limits/time",
    "allowable_fraction_gap": "limits/gap",
    "allowable_gap": "limits/absgap",
    "node_limit": "limits/nodes",
    "feas_tolerance": "numerics/feastol",
}


class _Log(Eventhdlr):
    def eventinit(self) -> None:
        self.model.catchEvent(SCIP_EVENTTYPE.NODESOLVED, self)

    def eventexec(self, event: object) -> None:
        del event
        m = self.model
        say(
            f"Cbc0010I After {m.getNNodes()} nodes, {m.getNNodesLeft()} on tree, {m.getPrimalbound():.9g} best solution, "
            f"best possible {m.getDualbound():.9g} ({m.getSolvingTime():.2f} seconds)"
        )


def say(text: str) -> None:
    """Print a line of the log at once."""
    print(text, flush=True)


def options(name: str) -> dict[str, str]:
    """The option file's entries; ends the process where one of them is unknown."""
    found: dict[str, str] = {}
    path = Path(f"{name}.opt")
    for line in path.read_text().splitlines() if path.is_file() else []:
        key, _, value = line.strip().partition(" ")
        if key not in OPTIONS.get(name, ()):
            say(
                f'Read Option: "{key}". It is not a valid option. Please check the list of available options.'
            )
            if name == "couenne":
                os.abort()
            raise SystemExit(0)
        found[key.removeprefix("bonmin.")] = value
    return found


def columns_and_rows(path: Path) -> tuple[int, int]:
    """Counts from the second line of the model's file."""
    with path.open() as file:
        file.readline()
        words = file.readline().split()
    return int(words[0]), int(words[1])


def write(path: Path, name: str, text: str, code: int, x: list[float], rows: int, columns: int) -> None:
    """Write the solution file as these programs do."""
    lines = [f"{name}: {text}", "", "Options", "3", "0", "1", "0", str(rows), "0", str(columns), str(len(x))]
    lines += [repr(v) for v in x]
    lines.append(f"objno 0 {code}")
    path.write_text("\n".join(lines) + "\n")


def main(name: str) -> int:
    """Solve the model that the command line names."""
    model_path = Path(sys.argv[1])
    if model_path.suffix != ".nl":
        model_path = model_path.with_suffix(".nl")
    columns, rows = columns_and_rows(model_path)
    say(f"{name} (a stand-in) -- reads AMPL models")
    say(f"Problem has {columns} columns and {rows} rows")
    used = options(name)
    model = Model()
    model.hideOutput(True)
    model.readProblem(str(model_path))
    for key, ours in OURS.items():
        if key in used:
            value = float(used[key])
            if key == "allowable_fraction_gap":
                value = value / (1 - value)  # SCIP's gap is relative to the smaller value
            model.setParam(ours, int(value) if ours == "limits/nodes" else value)
    log = _Log()
    model.includeEventhdlr(log, "log", "prints the bound")
    interrupted = threading.Event()

    def stop(number: int, frame: object) -> None:
        del number, frame
        interrupted.set()
        model.interruptSolve()

    signal.signal(signal.SIGINT, stop)
    thread = threading.Thread(target=model.optimizeNogil)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
    status = model.getStatus()
    bound, nodes = model.getDualbound(), model.getNTotalNodes()
    x: list[float] = []
    if model.getNSols() and status not in ("infeasible", "unbounded", "inforunbd"):
        x = [0.0] * columns
        best = model.getBestSol()
        for var in model.getVars():
            if var.name[0] in "xbi" and var.name[1:].isdigit() and int(var.name[1:]) < columns:
                x[int(var.name[1:])] = model.getSolVal(best, var)
    say(
        f"Cbc0005I Partial search - best objective {model.getPrimalbound():.9g} (best possible {bound:.9g}), took 1 iterations "
        f"and {nodes} nodes ({model.getSolvingTime():.2f} seconds)"
    )
    text, code = {
        "optimal": ("Optimal", 0),
        "gaplimit": ("Optimal", 3),
        "infeasible": ("Infeasible", 220),
        "unbounded": ("Unbounded", 300),
        "inforunbd": ("Unbounded", 300),
        "userinterrupt": ("Optimization interrupted by user", 422),
    }.get(status, ("Optimization interrupted on limit", 421))
    if interrupted.is_set() and code in (421, 422):
        text, code = "Optimization interrupted by user", 422
    if code == 3:
        say("Cbc0011I Exiting as integer gap of 0 less than 0 or 0%")
    if status == "timelimit":
        say("Cbc0020I Exiting on maximum time")
    if status in ("nodelimit", "totalnodelimit"):
        say("Cbc0019I Exiting on maximum nodes")
    write(model_path.with_suffix(".sol"), name, text, code, x, rows, columns)
    return 0


if __name__ == "__main__":
    raise SystemExit(main("stand-in 1.2.3"))
