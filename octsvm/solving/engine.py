"""An engine as the rounds see it: it takes a program in the columns of the lifted one and answers in them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.errors import InfeasibleConstraintException

from .. import solvers
from ..backends.matrix_program import Array, Limits, LinearProgram, ModelFile, Outcome, Request, Watch
from ..backends.nl_text import write_linear_nl
from ..backends.own_options import own_options
from ..backends.scratch import Scratch, unwritable
from ..bridges import Bridge
from ..errors import EngineFailed, InvalidParameter, LicenseTooSmall, OutputNotWritable, UnsupportedProblem
from ..options import Clock
from ..problem_class import ProblemClass
from ..solvers import SolverSpec
from .compile import write_nl

EMBEDDED = "highs"  # polishes every engine's answer
TRIAL_SECONDS = 5.0  # at most, for the model of two variables that options are tried on
# Seconds for each nonzero, by the format; "walked" is an .nl file by Pyomo, which walks through every expression.
WRITING = {"walked": 1e-5, "nl": 5e-6, "lp": 3.5e-6, "mps": 2.5e-6}
LONG_WRITING = 0.1  # seconds: what is shorter is done without looking at the clock


class Engine:
    """Hands a program to the backend of an entry, in the form that the entry wants.

    With ``native`` it takes the model as it stands (one solve is exact), rather than a relaxation that is refined.
    """

    def __init__(self, spec: SolverSpec, program: LinearProgram, bridge: Bridge | None, native: bool) -> None:
        self.spec, self.native = spec, native
        self._lifted, self._bridge = program, bridge
        self._backend = importlib.import_module(f"octsvm.backends.{spec.backend}")
        self._file: ModelFile | None = None
        self._scratch: Scratch | None = None
        self._program, self._keep = program, np.arange(program.n)
        if native and bridge is not None and not program.infeasible:
            self._program, self._keep = bridge.native(program)

    def seconds_of_writing(self) -> float:
        """About how long writing the model's file takes, which nothing can interrupt; 0 where no large one is to be written."""
        if self._file is not None:
            return 0.0
        program = self._program if self.native else self._lifted
        way = "walked" if self._wants_nl() else self.spec.format
        seconds = program.A.nnz * WRITING.get(way, 0.0)
        return seconds if seconds >= LONG_WRITING else 0.0

    def _wants_nl(self) -> bool:
        """Whether the entry is handed an .nl file of the model as it stands."""
        # What is refined in rounds is linear and gets new rows: its file is written anew for every solve.
        return self.native and (
            self.spec.format == "nl" or (self.spec.format == "any" and self._program.partial)
        )

    def write_file(self, model: pyo.ConcreteModel, problem: ProblemClass, size: float, clock: Clock) -> None:
        """Write the .nl file of ``model``, which must carry no bridge, for an entry that reads one, if there is time for it.

        Raises
        ------
        OutputNotWritable
        """
        if not self._wants_nl() or self._program.infeasible or not self._program.n:
            return
        if self._program.unit is not None:
            return  # a program in units of its own is written as it is
        if self.seconds_of_writing() > clock.left():
            return
        scale = self._program.cost_scale(size)
        try:
            place = self._place()
            self._file = write_nl(model, problem, self._program, self.spec.cone_form, scale, place)
        except OSError as error:
            raise unwritable(self.spec.title, error) from None
        except InfeasibleConstraintException:
            # Of a row of fixed variables alone, which the compiled program keeps.
            self._program.infeasible = self._lifted.infeasible = True

    def _place(self) -> Path:
        if self._scratch is None:
            self._scratch = Scratch()
        return self._scratch.path

    def _linear_file(self, program: LinearProgram, size: float) -> ModelFile | None:
        """The .nl file of a linear program for an entry that reads no other; None for all others."""
        if self.spec.format != "nl" or program.quadratic or program.partial:
            return None
        scale = program.cost_scale(size)
        try:
            path = self._place() / "linear.nl"
            return ModelFile(path, write_linear_nl(program, path, scale), scale)
        except OSError as error:
            raise unwritable(self.spec.title, error) from None

    def close(self) -> None:
        """Remove what was written."""
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None

    def solve(self, limits: Limits, start: Array | None = None, watch: Watch | None = None) -> Outcome:
        """Solve the program as it is now, rows that were added included.

        Raises
        ------
        EngineFailed, LicenseTooSmall, UnsupportedProblem, InvalidParameter, OutputNotWritable
        """
        program, unit = self._program if self.native else self._lifted, np.ones(len(self._keep))
        file = self._file
        if file is None:
            program, unit = program.in_units_of_cost(limits.size)
            file = self._linear_file(program, limits.size)
        given = None if start is None else start[self._keep] / unit
        if given is not None and not np.isfinite(given).all():
            given = None
        unsupported = given is not None and self.spec.start.passes == "none"

        def back(x: Array) -> Array:
            x = x * unit
            if len(self._keep) == self._lifted.n:
                return x
            out = np.zeros(self._lifted.n)
            out[self._keep] = x
            assert self._bridge is not None
            repaired = self._bridge.repair(out)
            return out if repaired is None else repaired

        def look(bound: float, nodes: int, point: Array | None) -> bool:
            assert watch is not None
            trusted = bound if self.spec.claim != "none" else -np.inf
            return watch(trusted, nodes, None if point is None else back(point))

        limits = replace(limits, options=own_options(self.spec, limits.options))
        request = Request(program, self.spec, limits, file)
        given = None if unsupported else given
        out: Outcome = self._backend.solve(request, given, None if watch is None else look)
        bound = out.bound
        if self.spec.claim == "none":
            bound = -np.inf
        elif out.stop in ("optimal", "gap_limit") and out.x is not None and not np.isfinite(bound):
            # It says that it is done within the gap, and names no bound.
            bound = request.claimed_bound(out.objective)
        x, state = None if out.x is None else back(out.x), "unsupported" if unsupported else out.start
        return replace(out, x=x, bound=bound, start=state)


_taken: set[tuple[str, str]] = set()  # options that an engine has taken in this process


def require_options(spec: SolverSpec, options: Mapping[str, Any] | None) -> None:
    """Refuse options by the engine's own names that it does not take, before anything else is done.

    What only the engine itself knows, it is asked: with them it solves a model of two variables, once in a process.

    Raises
    ------
    InvalidParameter
    """
    if not options:
        return
    if spec.backend == "own":
        raise InvalidParameter(
            f"options={dict(options)!r}: {spec.name} is a search of octsvm and has no options by names of its own. "
            "Leave them out, or name a solver of the table (`octsvm solvers`)."
        )
    own_options(spec, options)
    key = (spec.name, repr(sorted(options.items(), key=str)))
    if key in _taken or spec.backend == "neos":  # a trial there is a job for others' machines
        return
    limits = Limits(TRIAL_SECONDS, 1e-4, size=1.0, options=dict(options))
    engine = Engine(spec, LinearProgram.compile(trial_model()), None, native=True)
    try:
        if engine.solve(limits).stop == "interrupted":
            raise KeyboardInterrupt
    except (EngineFailed, LicenseTooSmall, UnsupportedProblem, OutputNotWritable):
        return  # which the model itself will tell
    finally:
        engine.close()
    _taken.add(key)


def trial_model(whole: bool = True) -> pyo.ConcreteModel:
    """min -3x - 2y, 2x + 2y <= 3, 0 <= x <= 2, 0 <= y <= 1 with x whole: -4 at (1, 0.5).

    Without integers x is at most 1, which has the same optimum.
    """
    model = pyo.ConcreteModel(name="trial")
    model.x = pyo.Var(domain=pyo.Integers if whole else pyo.Reals, bounds=(0, 2 if whole else 1))
    model.y = pyo.Var(bounds=(0, 1))
    model.row = pyo.Constraint(expr=2 * model.x + 2 * model.y <= 3)
    model.objective = pyo.Objective(expr=-3 * model.x - 2 * model.y)
    return model


def embedded() -> SolverSpec:
    """The entry of the embedded solver."""
    return solvers.get(EMBEDDED)


def solve_embedded(program: LinearProgram, seconds: float, gap: float = 1.0) -> Outcome:
    """What the embedded solver makes of a linear program in so many seconds; with the widest gap it looks for any point."""
    from ..backends import highs  # with the first solve, not with octsvm.build

    return highs.solve(Request(program, embedded(), Limits(seconds, gap)))
