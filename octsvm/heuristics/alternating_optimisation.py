"""Tree alternating optimization: every node in turn is fitted to what the nodes below it would rather have.

With all other planes kept, each row at a branch node has a side on which it costs less further down, and a price of lying on
the other one. A machine for the believed labels (which the node pays for itself) and for the preferred sides, weighted
by these prices, is a hyperplane that serves both. The idea is that of Carreira-Perpiñán and Tavallali (Alternating
optimization of decision trees, NeurIPS 2018); here a node also pays for its own errors, and all share the largest norm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..formulations.base import FloatArray, IntArray
from ..formulations.margin_trees import norms
from .linear_svm import fit_svm
from .tree_builder import Planes, Workshop, clear_of_the_plane

LIGHTEST = 1e-3  # of the prices, those above which a preference is heard


@dataclass(frozen=True)
class Taste:
    """How a sweep weighs things: sides against own labels, what a norm costs, what a flipped label weighs, and chance."""

    sides: float
    C: float
    flipped: float
    chance: bool


def saved_on_the_right(shop: Workshop, planes: Planes, t: int, rows: IntArray) -> FloatArray:
    """What each of the ``rows`` at branch node ``t`` would pay less below its right side than below its left one."""
    y, everyone = shop.sign[rows], np.arange(len(rows))
    S = shop.X[rows] @ planes.omega.T + planes.omega0
    saved = np.zeros(len(rows))
    for child, sign in ((2 * t, 1.0), (2 * t + 1, -1.0)):
        node = np.full(len(rows), child)
        for _ in range(t.bit_length(), shop.depth + 1):
            s = S[everyone, node - 1]
            saved += sign * shop.loss(y * s)
            node = 2 * node + (s >= 0)
    found: FloatArray = saved * shop.weights[rows]
    return found


def machine(
    shop: Workshop, planes: Planes, t: int, rows: IntArray, score: FloatArray, taste: Taste
) -> tuple[FloatArray, float]:
    """A machine for the rows at node ``t``, whose scores there are ``score``."""
    X, y, w = shop.X[rows], shop.sign[rows], shop.weights[rows]
    label = shop.believed(score[:, None], rows)[:, 0]
    w = w * np.where(label == y, 1.0, taste.flipped)
    if t > shop.B:
        return fit_svm(X, label, w, taste.C)
    if taste.chance:
        w = w * shop.rng.exponential(size=len(rows))
    gain = saved_on_the_right(shop, planes, t, rows)
    price = np.abs(gain) * (taste.sides / min(2 * shop.c1, shop.c2))
    heard = price > LIGHTEST * max(float(price.max(initial=0.0)), 1e-12)
    return fit_svm(
        np.concatenate([X, X[heard]]),
        np.concatenate([label, np.where(gain[heard] > 0, 1.0, -1.0)]),
        np.concatenate([w, price[heard]]),
        taste.C,
    )


def swept(shop: Workshop, planes: Planes, cap: float, taste: Taste) -> Planes:
    """All nodes that rows come to fitted once, from the root down, no norm above ``cap``; with its cost."""
    before, planes = planes, shop.unsplit()
    node, paid = np.ones(len(shop.X), dtype=np.int64), 0.0
    for level in range(shop.depth + 1):
        for t in np.unique(node).tolist():
            rows = np.flatnonzero(node == t)
            X, y = shop.X[rows], shop.sign[rows]
            alone, side = shop.constant(rows)
            planes.omega0[t - 1] = side
            s = np.full(len(rows), side)
            if alone > shop.c3 and (t == 1 or planes.split[t // 2 - 1]):
                omega, omega0 = before.omega[t - 1], float(before.omega0[t - 1])
                now = X @ omega + omega0 if before.split[t - 1] else s
                fresh, fresh0 = machine(shop, before, t, rows, now, taste)
                size = float(norms(fresh[None, :], shop.norm)[0])
                if size > 1e-9:
                    shrunk = min(1.0, cap / size)
                    omega, omega0 = fresh * shrunk, fresh0 * shrunk
                if omega.any():
                    s = X @ omega + omega0
                    if t <= shop.B and shop.mu:
                        shift = clear_of_the_plane(s, shop.mu)
                        s, omega0 = s + shift, omega0 + shift
                    planes.omega[t - 1], planes.omega0[t - 1], planes.split[t - 1] = omega, omega0, True
            paid += float(shop.weights[rows] @ shop.loss(y * s))
            if level < shop.depth:
                node[rows] = 2 * t + (s >= 0)
    planes.cost = (
        shop.margin(float(norms(planes.omega, shop.norm).max())) + shop.c3 * planes.split.sum() + paid
    )
    return planes
