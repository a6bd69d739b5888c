"""Polishing: an answer's integers are fixed, and the convex rest is solved to the end by the embedded solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..backends.matrix_program import Array, Limits, LinearProgram
from ..bridges import LINEAR, Bridge, leading_to
from ..errors import OctsvmError
from ..formulations.base import Formulation, ModelInfo
from ..formulations.trees import Tree
from ..options import Clock
from ..problem_class import classify
from . import certificate
from .compile import compile_program, start_point
from .engine import embedded

ROUNDS = 40  # of cuts at one assignment
GAP = 1e-9  # relative, at which they end
STARTS_WITHIN = 2e-6  # violation of a row that a start may have: twice the feasibility tolerance


class Polished(NamedTuple):
    """The best point found, None where there is none; its objective; and why the last solve stopped."""

    point: Array | None
    objective: float
    stop: str


def polish_point(
    program: LinearProgram, bridge: Bridge | None, x: Array, limits: Limits, left: Callable[[], float]
) -> Polished:
    """Fix the integers of ``x (n,)`` and solve the rest, with cuts of the bridge until bound and point meet.

    ``left`` says how many seconds there are.
    """
    from ..backends import highs  # with the first solve, not with octsvm.build

    rest = highs.FixedProgram(program, embedded(), limits, x)
    best, value, stop = None, float("inf"), "time_limit"
    for _ in range(ROUNDS):
        seconds = left()
        if seconds <= 0:
            break
        stop, point, bound = rest.solve(seconds)
        if point is None:
            break
        whole = repaired(program, bridge, point)
        if whole is not None and program.objective(whole) < value:
            best, value = whole, program.objective(whole)
        if bridge is None or (best is not None and value - bound <= GAP * max(abs(value), 1e-3)):
            break
        cuts = bridge.cuts(point)
        if not cuts:
            break
        rest.add_rows(cuts)
    if best is not None:
        best = best.copy()
        best[program.integer] = np.round(best[program.integer])
    return Polished(best, value, stop)


def repaired(program: LinearProgram, bridge: Bridge | None, x: Array) -> Array | None:
    """``x`` (n,) as a point of the model that ``bridge`` relaxes.

    None where there is none, or where what has to move breaks a row, as one of the user's own on a margin may be.
    """
    if bridge is None:
        return x
    point = bridge.repair(x)
    if point is None or program.violation(point) > max(STARTS_WITHIN, 2 * program.violation(x)):
        return None
    return point


def polish_tree(form: Formulation, info: ModelInfo, tree: Tree, seconds: float) -> Tree | None:
    """Fix in the default variant what follows from the tree's routing, solve the convex rest, and return that tree.

    None where the default variant does not admit the tree, or nothing came of it.
    """
    clock, data = Clock(seconds), info.data
    params = info.params.model_copy(update={"variant": None})
    cost = form.evaluate_on(tree, data, params).objective
    model = form.build(data, params, cost)
    bridge: Bridge | None = None
    try:
        form.embed(model, tree)
        problem = classify(model)
        bridge = leading_to(problem, LINEAR)
        program = compile_program(model, problem, bridge)
        start = start_point(program, bridge)
        point = start if bridge is None else bridge.repair(start)
        if point is None or program.violation(point) > STARTS_WITHIN:
            return None
        if not (program.quadratic or program.partial):
            limits = Limits(clock.left(), 1e-4, size=cost)
            found = polish_point(program, bridge, point, limits, clock.left)
            if found.point is not None and found.objective < program.objective(point) - 1e-12:
                point = found.point
        program.load(point)
        if bridge is not None:
            bridge.undo()
        return certificate.certify(model, form).tree
    except OctsvmError:
        return None
