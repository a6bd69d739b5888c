"""What the tests of the engines share: every entry of the solver table, stand-ins for programs that are not here, and
a check that a model comes back as it was."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from places import FAKE_SOLVERS

import octsvm
from octsvm import solvers
from octsvm.backends.matrix_program import Limits
from octsvm.bridges import leading_to
from octsvm.options import Clock
from octsvm.problem_class import classify
from octsvm.solving.compile import compile_program, start_point
from octsvm.solving.engine import Engine

STOOD_IN = ("couenne", "bonmin")  # programs whose AMPL protocol the stand-in speaks
REAL = {name: shutil.which(name) for name in STOOD_IN}


@dataclass(frozen=True)
class Entry:
    """An entry of the solver table, and whether a stand-in plays its program."""

    name: str
    stand_in: bool = False

    def __str__(self) -> str:
        return f"{self.name}-stand-in" if self.stand_in else self.name

    @property
    def spec(self) -> solvers.SolverSpec:
        """Its entry in the table; of a program played by a stand-in, that of the program."""
        found = solvers.get(self.name)
        return found if self.stand_in or found.version else solvers.require(self.name)

    @property
    def absent(self) -> bool:
        """Whether neither it nor a stand-in of ours is here."""
        return not self.stand_in and solvers.get(self.name).version is None


def entries() -> list[Entry]:
    """Every entry of the table; those of :data:`STOOD_IN` by their stand-in too."""
    out = []
    for name in solvers.table():
        if name not in STOOD_IN or REAL[name]:
            out.append(Entry(name))
        if name in STOOD_IN:
            out.append(Entry(name, stand_in=True))
    return out


ENTRIES = entries()
# One for each way to talk to an engine: in this process, in a child, as a program. The tests of all engines are run with
# these always, and with the others where slow tests are.
QUICK = ("highs", "scip", "cbc")


def every(entries: list[Entry]) -> pytest.MarkDecorator:
    """Run a test with each of these entries, as ``entry``."""
    return pytest.mark.parametrize(
        "entry",
        [
            pytest.param(e, id=str(e), marks=[*absent(e), *([] if str(e) in QUICK else [pytest.mark.slow])])
            for e in entries
        ],
    )


def absent(entry: Entry) -> list[pytest.MarkDecorator]:
    """The mark that skips, visibly, what is not installed."""
    if not entry.absent:
        return []
    return [pytest.mark.skip(f"{entry.name} is not installed; {solvers.get(entry.name).install}")]


every_entry = every(ENTRIES)
every_engine_here = every([e for e in ENTRIES if not e.absent and not e.stand_in])
every_way = every([e for e in ENTRIES if str(e) in QUICK])


def make_stand_ins(folder: Path) -> Path:
    """Programs called couenne and bonmin in ``folder``."""
    folder.mkdir(exist_ok=True)
    for name in STOOD_IN:
        path = folder / name
        path.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(FAKE_SOLVERS)!r})\n"
            f"import asl\nraise SystemExit(asl.main({name!r}))\n"
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder


@contextlib.contextmanager
def on_path(folder: Path) -> Iterator[None]:
    """``folder`` first on PATH."""
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}{os.pathsep}{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before


def fingerprint(model: pyo.ConcreteModel) -> tuple[str, int]:
    """A hash of everything but the values of variables, and the number of components."""
    kept = [(v, v.value, v.stale) for v in model.component_data_objects(pyo.Var)]
    for var, _, _ in kept:
        var.set_value(None)
    parts = [
        (component.name, component.active, component.ctype, contents(component))
        for component in model.component_objects(descend_into=True)
    ]
    for var, value, stale in kept:
        var.set_value(value, skip_validation=True)
        var.stale = stale
    return hashlib.sha256(repr(parts).encode()).hexdigest(), len(parts)


def contents(component: Any) -> Any:
    """All of a component: of variables and rows what Pyomo would print, without the time that printing takes."""
    if component.ctype is pyo.Var:
        return [(k, v.domain.name, v.lb, v.ub, v.fixed) for k, v in component.items()]
    if component.ctype in (pyo.Constraint, pyo.Objective, pyo.Expression):
        return [
            (k, getattr(v, "active", True), getattr(v, "sense", None), written(v.expr))
            for k, v in component.items()
        ]
    text = io.StringIO()
    if component.ctype is not pyo.Block:  # whose components come by themselves
        component.pprint(ostream=text)
    return text.getvalue()


def written(part: Any) -> Any:
    """An expression as nested tuples, its variables by what they are."""
    if getattr(part, "is_expression_type", bool)():
        return type(part).__name__, *map(written, part.args)
    return part if isinstance(part, (int, float)) else id(part)


def solve(entry: Entry | str, model: pyo.ConcreteModel, **options: Any) -> octsvm.Result:
    """octsvm.solve, and the check that the model is as it was, whatever came of it."""
    before = fingerprint(model)
    try:
        return octsvm.solve(model, solver=entry if isinstance(entry, str) else entry.name, **options)
    finally:
        assert fingerprint(model) == before, "the model was changed"


def raw(
    spec: solvers.SolverSpec,
    model: pyo.ConcreteModel,
    size: float = 1.0,
    options: dict[str, Any] | None = None,
    tree: Any = None,
    spoil: bool = False,
) -> Any:
    """What the engine of an entry answers by itself: without polishing or a second try, from a tree or from nothing.

    The integers of a start that is to be ``spoil``t are turned around, so that it breaks rows.
    """
    native = tree is None or octsvm.plan(model, spec.name).native
    problem, start = classify(model), None
    bridge = leading_to(problem, ("LP", "MILP"))
    if tree is not None:
        octsvm.embed(model, tree)
    program = compile_program(model, problem, bridge)
    if tree is not None:
        start = start_point(program, bridge)
        start = start if bridge is None else bridge.repair(start)
        if spoil:
            start[program.integer] = 1 - start[program.integer]
    if bridge is not None:
        bridge.undo()
    engine = Engine(spec, program, bridge, native)
    engine.write_file(model, problem, size, Clock())
    try:
        return engine.solve(Limits(30, 1e-4, size=size, options=options or {}), start)
    finally:
        engine.close()


def data(seed: int, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in [0, 1] on two sides of a line, about every fifth with the other label; both classes are there."""
    rng = np.random.default_rng([7103, seed])
    X = rng.random((n, p))
    y = np.where(X @ rng.uniform(0.5, 1.5, p) > p / 2, 1, -1)
    y[rng.random(n) < 0.2] *= -1
    if len(set(y.tolist())) == 1:
        y[0] *= -1
    return X, y


def small(formulation: str, X: Any, y: Any, **more: Any) -> pyo.ConcreteModel:
    """The model of a formulation with costs at which splits pay, of depth 1 where there is one."""
    params: dict[str, Any] = {} if formulation == "re_svm" else {"depth": 1}
    params |= {"alpha": 0.1} if formulation in ("oct", "oct_h") else {"c1": 1.0, "c2": 1.0}
    return octsvm.build(formulation, X, y, **(params | more))


def costs(seed: int) -> dict[str, Any]:
    """Costs that make splits pay in about half of the instances."""
    rng = np.random.default_rng([7104, seed])
    return {
        "c1": float(rng.choice([1.0, 5.0, 20.0])),
        "c2": float(rng.choice([0.6, 3.0, 15.0])),
        "c3": float(rng.choice([0.01, 0.1, 0.4])),
    }


def tree_model(seed: int, n: int, p: int, depth: int = 1, **more: Any) -> pyo.ConcreteModel:
    """An OCTSVM on :func:`data` with :func:`costs`."""
    X, y = data(seed, n, p)
    return octsvm.build(
        "octsvm", X, y, scale=False, **({"depth": depth, "mu_svm": 1e-3} | costs(seed) | more)
    )


def hard(seed: int = 0) -> pyo.ConcreteModel:
    """A model that takes minutes, below the ceilings of the free licences."""
    return tree_model(seed, 36, 4, c1=1.0, c2=1.0, c3=0.1)


def skip_absent(entry: Entry) -> None:
    """Skip, visibly, what is not installed."""
    if entry.absent:
        pytest.skip(f"{entry.name} is not installed; {solvers.get(entry.name).install}")
