"""Tree alternating optimisation (TAO): every node in turn is fitted to its labels and to the sides that the nodes below prefer.

With all other hyperplanes kept, each row at a branch node has a side on which it costs less further down, and a penalty of lying
on the other one. A linear SVM for the cheaper labels (which the node pays for itself) and for the preferred sides, weighted
by these penalties, is a hyperplane that serves both. The idea is that of Carreira-Perpiñán and Tavallali (Alternating
optimization of decision trees, NeurIPS 2018); here a node also pays for its own errors, and all share the largest norm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..formulations.base import FloatArray, IntArray
from ..formulations.margin_trees import norms
from .linear_svm import fit_linear_svm
from .tree_builder import Hyperplanes, TreeBuilder, boundary_shift

LEAST_PENALTY = 1e-3  # of the largest one: smaller preferences are left out, so that the SVM has fewer rows


@dataclass(frozen=True)
class Weighting:
    """How a sweep weighs its rows.

    ``sides`` is the weight of preferred sides against own labels, ``C`` the SVM cost, ``relabelled`` the weight of rows whose
    label is given up; with ``randomised`` all weights are multiplied by random ones.
    """

    sides: float
    C: float
    relabelled: float
    randomised: bool


def saving_on_the_right(builder: TreeBuilder, planes: Hyperplanes, t: int, rows: IntArray) -> FloatArray:
    """What each of the ``rows`` at branch node ``t`` costs less below its right side than below its left one."""
    y, all_rows = builder.sign[rows], np.arange(len(rows))
    S = builder.X[rows] @ planes.omega.T + planes.omega0
    saved = np.zeros(len(rows))
    for child, sign in ((2 * t, 1.0), (2 * t + 1, -1.0)):
        node = np.full(len(rows), child)
        for _ in range(t.bit_length(), builder.depth + 1):
            s = S[all_rows, node - 1]
            saved += sign * builder.loss(y * s)
            node = 2 * node + (s >= 0)
    found: FloatArray = saved * builder.weights[rows]
    return found


def fit_node(
    builder: TreeBuilder, planes: Hyperplanes, t: int, rows: IntArray, score: FloatArray, weighting: Weighting
) -> tuple[FloatArray, float]:
    """The linear SVM for the rows at node ``t``, whose scores there are ``score``."""
    X, y, w = builder.X[rows], builder.sign[rows], builder.weights[rows]
    label = builder.cheaper_labels(score[:, None], rows)[:, 0]
    w = w * np.where(label == y, 1.0, weighting.relabelled)
    if t > builder.B:
        return fit_linear_svm(X, label, w, weighting.C)
    if weighting.randomised:
        w = w * builder.rng.exponential(size=len(rows))
    gain = saving_on_the_right(builder, planes, t, rows)
    penalty = np.abs(gain) * (weighting.sides / min(2 * builder.c1, builder.c2))
    used = penalty > LEAST_PENALTY * max(float(penalty.max(initial=0.0)), 1e-12)
    return fit_linear_svm(
        np.concatenate([X, X[used]]),
        np.concatenate([label, np.where(gain[used] > 0, 1.0, -1.0)]),
        np.concatenate([w, penalty[used]]),
        weighting.C,
    )


def sweep(builder: TreeBuilder, planes: Hyperplanes, cap: float, weighting: Weighting) -> Hyperplanes:
    """A TAO sweep: all nodes that have rows fitted once, from the root down, no norm above ``cap``; the result has its cost."""
    before, planes = planes, builder.unsplit()
    node, paid = np.ones(len(builder.X), dtype=np.int64), 0.0
    for level in range(builder.depth + 1):
        for t in np.unique(node).tolist():
            rows = np.flatnonzero(node == t)
            X, y = builder.X[rows], builder.sign[rows]
            alone, side = builder.constant(rows)
            planes.omega0[t - 1] = side
            s = np.full(len(rows), side)
            if alone > builder.c3 and (t == 1 or planes.split[t // 2 - 1]):
                omega, omega0 = before.omega[t - 1], float(before.omega0[t - 1])
                now = X @ omega + omega0 if before.split[t - 1] else s
                fresh, fresh0 = fit_node(builder, before, t, rows, now, weighting)
                size = float(norms(fresh[None, :], builder.norm)[0])
                if size > 1e-9:
                    shrunk = min(1.0, cap / size)
                    omega, omega0 = fresh * shrunk, fresh0 * shrunk
                if omega.any():
                    s = X @ omega + omega0
                    if t <= builder.B and builder.mu:
                        shift = boundary_shift(s, builder.mu)
                        s, omega0 = s + shift, omega0 + shift
                    planes.omega[t - 1], planes.omega0[t - 1], planes.split[t - 1] = omega, omega0, True
            paid += float(builder.weights[rows] @ builder.loss(y * s))
            if level < builder.depth:
                node[rows] = 2 * t + (s >= 0)
    planes.cost = (
        builder.margin(float(norms(planes.omega, builder.norm).max()))
        + builder.c3 * planes.split.sum()
        + paid
    )
    return planes
