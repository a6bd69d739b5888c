"""Solvers as programs of their own: a model file in, the solution file that the program itself writes out."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from waiting import PATIENCE

# A Python package is run in a process of its own, which is handed pairs of files: model, solution.
PROGRAMS = {
    "pyscipopt": """
import pyscipopt
for model, solution in pairs:
    m = pyscipopt.Model()
    m.hideOutput()
    m.readProblem(model)
    m.optimize()
    m.writeBestSol(solution)
""",
    "gurobipy": """
import gurobipy
env = gurobipy.Env(params={"OutputFlag": 0})
for model, solution in pairs:
    m = gurobipy.read(model, env)
    m.Params.MIPGap = 0
    m.optimize()
    m.write(solution)
""",
    "cplex": """
import cplex
for model, solution in pairs:
    m = cplex.Cplex()
    for stream in (m.set_log_stream, m.set_results_stream, m.set_warning_stream):
        stream(None)
    m.read(model)
    m.parameters.mip.tolerances.mipgap.set(0)
    m.solve()
    m.solution.write(solution)
""",
    "xpress": """
import xpress
for model, solution in pairs:
    m = xpress.problem()
    m.controls.outputlog = 0
    m.controls.miprelstop = 0
    m.readProb(model)
    m.optimize()
    m.writeSlxSol(solution)
""",
    # The program `scip` itself, out of the library that pyscipopt brings: as an AMPL solver it writes a .sol beside the .nl.
    "scip_ampl": """
import ctypes, glob, pyscipopt
folder = os.path.join(os.path.dirname(os.path.dirname(pyscipopt.__file__)), "pyscipopt.libs")
scip = ctypes.CDLL(glob.glob(os.path.join(folder, "libscip-*"))[0])
for model, solution in pairs:
    words = [b"scip", model.encode(), b"-AMPL"]
    scip.SCIPrunShell(3, (ctypes.c_char_p * 3)(*words), b"none.set")
    os.replace(os.path.splitext(model)[0] + ".sol", solution)
""",
    # The same program by its commands, as a user types them.
    "scip_shell": """
import ctypes, glob, pyscipopt
folder = os.path.join(os.path.dirname(os.path.dirname(pyscipopt.__file__)), "pyscipopt.libs")
scip = ctypes.CDLL(glob.glob(os.path.join(folder, "libscip-*"))[0])
for model, solution in pairs:
    words = [b"scip", b"-q"]
    for command in (f"read {model}", "optimize", f"write solution {solution}", "quit"):
        words += [b"-c", command.encode()]
    scip.SCIPrunShell(len(words), (ctypes.c_char_p * len(words))(*words), b"none.set")
""",
}
HEAD = "import os, sys\npairs = list(zip(sys.argv[1::2], sys.argv[2::2]))\n"

Solve = Callable[[list[tuple[Path, Path]]], None]


def _run(words: list[str], folder: Path, **environment: str) -> None:
    # In the folder of the files: some leave logs where they run.
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


def by_package(program: str) -> Solve | None:
    """A solver that is a Python package."""
    package = "pyscipopt" if program.startswith("scip") else program
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        return None
    if program.startswith("scip_") and not list(
        (Path(found.origin).parent.parent / "pyscipopt.libs").glob("libscip-*")
    ):
        return None

    def solve(pairs: list[tuple[Path, Path]]) -> None:
        names = [str(p) for pair in pairs for p in pair]
        _run([sys.executable, "-c", HEAD + PROGRAMS[program], *names], pairs[0][0].parent)

    return solve


def highs() -> Solve | None:
    """The executable of HiGHS."""
    if importlib.util.find_spec("highsbox") is None:
        return None
    import highsbox

    def solve(pairs: list[tuple[Path, Path]]) -> None:
        for model, solution in pairs:
            options = solution.with_suffix(".options")
            options.write_text("mip_rel_gap = 0\nmip_abs_gap = 0\n")
            words = [str(highsbox.highs_bin_path()), str(model), "--options_file", str(options)]
            _run(
                [*words, "--solution_file", str(solution)],
                model.parent,
                LD_LIBRARY_PATH=str(highsbox.highs_lib_dir()),
            )

    return solve


def cbc() -> Solve | None:
    """The executable of CBC: that on PATH, or cbcbox's."""
    path = shutil.which("cbc", path=os.pathsep.join(["/usr/bin", os.environ.get("PATH", "")]))
    if path is None and importlib.util.find_spec("cbcbox") is not None:
        import cbcbox

        path = str(cbcbox.cbc_bin_path())
    if path is None:
        return None
    program = path

    def solve(pairs: list[tuple[Path, Path]]) -> None:
        for model, solution in pairs:
            _run([program, str(model), "-ratioGap", "0", "-solve", "-solution", str(solution)], model.parent)

    return solve


def cbc_ampl() -> Solve | None:
    """The executable of CBC as an AMPL solver, where it was built with that."""
    path = shutil.which("cbc")
    if path is None:
        return None
    said = subprocess.run([path, "none", "-AMPL"], capture_output=True, text=True, timeout=PATIENCE)
    if "No match for AMPL" in said.stdout:
        return None
    program = path

    def solve(pairs: list[tuple[Path, Path]]) -> None:
        for model, solution in pairs:
            _run([program, str(model.with_suffix("")), "-AMPL"], model.parent)
            os.replace(model.with_suffix(".sol"), solution)

    return solve


def glpk() -> Solve | None:
    """glpsol."""
    path = shutil.which("glpsol")
    if path is None:
        return None
    program = path

    def solve(pairs: list[tuple[Path, Path]]) -> None:
        for model, solution in pairs:
            kind = "--lp" if model.suffix == ".lp" else "--freemps"
            _run([program, kind, str(model), "-w", str(solution)], model.parent)

    return solve


@cache
def engines() -> dict[str, Solve | None]:
    """All engines; None for those that are not installed."""
    return {
        "highs": highs(),
        "cbc": cbc(),
        "cbc_ampl": cbc_ampl(),
        "glpk": glpk(),
        "scip": by_package("pyscipopt"),
        "scip_ampl": by_package("scip_ampl"),
        "scip_shell": by_package("scip_shell"),
        "gurobi": by_package("gurobipy"),
        "cplex": by_package("cplex"),
        "xpress": by_package("xpress"),
    }


# What each reads: endings, whether quadratics, and the kind of solution file it writes.
READS: dict[str, tuple[tuple[str, ...], bool, str]] = {
    "highs": ((".lp", ".mps"), False, "highs"),
    "cbc": ((".mps",), False, "cbc"),
    "cbc_ampl": ((".nl",), False, "asl"),
    "glpk": ((".lp", ".mps"), False, "glpk"),
    "scip": ((".lp", ".mps", ".nl"), True, "scip"),
    "scip_ampl": ((".nl",), True, "asl"),
    "scip_shell": ((".lp", ".mps", ".nl"), True, "scip"),
    "gurobi": ((".lp", ".mps"), True, "gurobi"),
    "cplex": ((".lp", ".mps"), True, "cplex"),
    "xpress": ((".lp", ".mps"), True, "xpress"),
}
