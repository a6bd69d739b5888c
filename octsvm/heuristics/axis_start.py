"""A tree with thresholds, or oblique splits, as a tree with margins: the same rows on the same sides, then the best hyperplanes.

Every split below which the tree is not constant becomes a hyperplane, turned so that a leaf on its left is of the first
class and one on its right of the second, as the SVM models label leaves: the same prediction everywhere. Its norm is tried
at several lengths, the hyperplanes are optimised for the sides and labels that the rows take, and the local search of
:mod:`.margin_tree` goes on from there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import TreeNotAdmitted
from ..formulations.base import Data
from ..formulations.heap import children
from ..formulations.trees import AxisTree, MarginTree, ObliqueTree
from .budget import Budget
from .margin_tree import TreeSearch, as_margin_tree
from .tree_builder import Hyperplanes

LENGTHS = (0.02, 0.1, 0.5)  # of a hyperplane's normal, of one that puts the rows next to it at a score of 1


def margin_tree_of(tree: Any, data: Data, params: Any, budget: Budget, seed: int) -> MarginTree:
    """The best tree of RE-SVM or OCTSVM that local search reaches from ``tree``, which splits by thresholds or obliquely.

    Raises
    ------
    TreeNotAdmitted
        It has other features or classes, too many levels, or no such tree costs less than the best one without a split.
    """
    if params.kernel is not None:
        raise TreeNotAdmitted(
            f"The start splits by the features themselves, and the model by kernel={params.kernel!r}. Give the tree of a fit with that "
            "kernel, or leave start= out."
        )
    if not isinstance(tree, (AxisTree, ObliqueTree)) or data.p != len(tree.feature_names):
        raise TreeNotAdmitted(
            f"The start is an {type(tree).__name__} on {len(tree.feature_names)} features, and the model's data has {data.p}. Give "
            "a tree that splits those by thresholds, or one with margins."
        )
    if tuple(tree.classes) != tuple(data.classes):
        raise TreeNotAdmitted(
            f"The start tells the classes {tree.classes!r} apart, and the model's data has {data.classes!r}."
        )
    search = TreeSearch(data.X, data.sign, data.weights, params, budget, seed)
    planes = _hyperplanes(tree, data, search)
    search.best = planes
    for length in LENGTHS:
        longer = planes.copy()
        longer.omega, longer.omega0 = (
            longer.omega * length,
            np.where(longer.split, longer.omega0 * length, 0.0),
        )
        search.clear_boundaries(longer)
        search.offer(longer)
        found = search.search.optimise(longer)
        if found is not None:
            search.offer(found.planes)
    for _ in search.improve():
        pass
    constant = search.unsplit()
    least = search.value(constant)
    if not search.best.split.any() or search.best.cost >= least:
        raise TreeNotAdmitted(
            f"The start was turned into a tree with margins, and no way of placing its hyperplanes that was found costs less than "
            f"{least:.6g}, what the best tree without a split costs here. Leave start= out, or raise c1."
        )
    return as_margin_tree(search.best, data, params)


def _hyperplanes(tree: AxisTree | ObliqueTree, data: Data, search: TreeSearch) -> Hyperplanes:
    """The tree in scaled units, each normal of the length that puts the rows next to its hyperplane at a score of 1 in the mean."""
    W, b = tree.weights("original")
    normals, offsets = W * data.scaling.span, b - W @ data.scaling.low
    out = search.unsplit()

    def constant(t: int) -> int | None:
        """The one class below node ``t``, None where there are two."""
        if not tree._splits_at(t):
            return int(tree._class_below(t, None))
        left, right = (constant(child) for child in children(t))
        return left if left == right else None

    def fill(t: int, target: int, rows: Any) -> None:
        if constant(t) is not None:
            return
        if target > search.T:
            raise TreeNotAdmitted(
                f"The start has more levels of splits than the model, which has {search.depth + 1}. Give a smaller tree, or the model "
                "more depth."
            )
        left, right = children(t)
        score = data.X[rows] @ normals[t - 1] - offsets[t - 1]
        turned = constant(left) == 1 or constant(right) == 0
        gap = float(score[score >= 0].min(initial=1.0) - score[score < 0].max(initial=-1.0))
        scale = (-2.0 if turned else 2.0) / max(gap, 1e-3)
        out.split[target - 1] = True
        out.omega[target - 1], out.omega0[target - 1] = scale * normals[t - 1], -scale * offsets[t - 1]
        for source, side, below in ((left, int(turned), score < 0), (right, 1 - int(turned), score >= 0)):
            fill(source, children(target)[side], rows[below])

    fill(1, 1, np.arange(data.n))
    return out
