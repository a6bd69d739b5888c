"""What the top level of OCTSVM costs, with the least that is paid below: a lower bound on every tree, in scores alone.

Every level of OCTSVM pays for itself, and nothing that it pays is negative. Keep of a tree that splits at the root what
the root pays, δ >= ½‖ω_1‖, and of each of its two children that it

* splits: c3, and on each level below what samples with equal features of both classes cannot avoid; or
* does not split: then nothing below it does, and its samples of one class pay κ = min(2 c1, c2) on every level.

Nine cases (each child splits, or has one of two labels). In each of them a sample's share depends on its score at the root
alone, :class:`.scores.ScoreCosts` with a jump at 0: no tree that splits costs less than the least of the nine optima. Where
the optimal tree splits at the root only, it is one of them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from ..base import Data, FloatArray
from .scores import ScoreCosts, ScoreProblem

SPLITS = 0.0  # in place of a label, -1 or +1
ENDS = (-1.0, 1.0)  # of the scores between which a group pays a concave cost, and beyond which no less


def top_level(
    data: Data, c1: float, c2: float, c3: float, depth: int, longest: float, boundary: float
) -> list[ScoreProblem]:
    """The cases of a tree with ``depth`` levels below the root, ½‖ω‖ as its margin, and norms up to ``longest``.

    No row of a tree has a score between -``boundary`` and 0 at the root.
    """
    base = replace(ScoreCosts.of(data.X, data.sign, data.weights, c1, c2), squared=False, constant=c3)
    reach = base.within_norm(longest)
    if depth == 0:
        return [ScoreProblem(base, reach)]
    least = np.minimum(*(base.of_score(np.full(len(base.X), s)) for s in ENDS))
    out = []
    for left, right in product((SPLITS, -1.0, 1.0), repeat=2):
        below = [depth * _paid(base, label, least) for label in (left, right)]
        common = np.minimum(*below)
        splits = float((left == SPLITS) + (right == SPLITS))
        costs = replace(
            base,
            constant=c3 * (1 + splits) + float(common.sum()),
            left_pays=below[0] - common,
            right_pays=below[1] - common,
            boundary=boundary,
        )
        out.append(ScoreProblem(costs, reach, (left, right)))
    return out


def _paid(costs: ScoreCosts, label: float, least: FloatArray) -> FloatArray:
    """What the samples of each group (G,) pay on one level in a child with that label."""
    if label == SPLITS:
        return least
    wrong = costs.minus if label > 0 else costs.plus
    return min(2 * costs.c1, costs.c2) * wrong
