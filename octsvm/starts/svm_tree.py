"""Starts for the SVM models: top-down trees of support vector machines that relabel as they go.

At every node a linear SVM is fitted, rows that are cheaper to relabel change their label, and the SVM is fitted
again until nothing changes. What a unit of margin is worth is not known beforehand (δ is shared by all nodes), so
trees are grown for a path of SVM costs C, coarse first, then around the best. Then the nodes of the best tree are
fitted anew one by one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formulations import octsvm
from ..formulations.base import BoolArray, Data, FloatArray
from ..formulations.trees import MarginTree

if TYPE_CHECKING:
    from . import Budget

COARSE = np.geomspace(1e-3, 1e5, 9)  # SVM costs C, in multiples of 1 (features in [0, 1])
FINE = np.geomspace(0.2, 5.0, 7)  # around the best of them
RELABEL_ROUNDS = 5
LARGE = 3000  # rows beyond which the dual solver is too slow


def fit_svm(X: FloatArray, sign: FloatArray, weights: FloatArray, C: float) -> tuple[FloatArray, float]:
    """Soft-margin SVM: ω (p,) and ω_0; a constant classifier where only one class is left."""
    used = weights > 0
    if not used.any() or (sign[used] == sign[used][0]).all():
        return np.zeros(X.shape[1]), float(sign[used][0]) if used.any() else 1.0
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVC, LinearSVC

    if len(X) > LARGE:
        model: Any = LinearSVC(C=C, loss="hinge", intercept_scaling=10.0, max_iter=2000, random_state=0)
    else:
        model = SVC(kernel="linear", C=C, cache_size=50, tol=1e-4, max_iter=20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a rough hyperplane is as good a start
        model.fit(X[used], sign[used], sample_weight=weights[used])
    return np.asarray(model.coef_[0], dtype=float), float(model.intercept_[0])


def fit_relabelling(
    X: FloatArray, sign: FloatArray, weights: FloatArray, C: float, c1: float, c2: float
) -> tuple[FloatArray, float]:
    """Alternate: fit, relabel what is cheaper to relabel, fit again."""
    label = sign.copy()
    omega, omega0 = fit_svm(X, label, weights, C)
    for _ in range(RELABEL_ROUNDS):
        ys = sign * (X @ omega + omega0)
        give_up = c2 + c1 * np.maximum(0, 1 + ys) < c1 * np.maximum(0, 1 - ys)
        fresh = np.where(give_up, -sign, sign)
        if (fresh == label).all():
            break
        label = fresh
        omega, omega0 = fit_svm(X, label, weights, C)
    return omega, omega0


def clear_of_the_plane(score: FloatArray, mu: float) -> float:
    """The smallest shift of ω_0 after which no row has -μ < s < 0."""
    near = score[np.abs(score) < 0.5]
    shifts = np.concatenate([[0.0], -near + 1e-9, -near - mu - 1e-9])
    for shift in shifts[np.argsort(np.abs(shifts), kind="stable")]:
        moved = score + shift
        if not ((moved > -mu) & (moved < 0)).any():
            return float(shift)
    return 0.0


def constant_cost(sign: FloatArray, weights: FloatArray, c1: float, c2: float) -> float:
    """Cost of the better constant classifier at one node."""
    minority = min(weights[sign > 0].sum(), weights[sign < 0].sum())
    return float(minority * min(2 * c1, c2))


def hinge_cost(score: FloatArray, sign: FloatArray, weights: FloatArray, c1: float, c2: float) -> float:
    """Errors and relabelling of the rows at one node, each row its cheaper."""
    ys = sign * score
    return float((weights * np.minimum(c1 * np.maximum(0, 1 - ys), c2 + c1 * np.maximum(0, 1 + ys))).sum())


def grow(
    data: Data, params: octsvm.OCTSVMParams, C: float, fixed: dict[int, tuple[FloatArray, float]]
) -> MarginTree:
    """Grow a tree top-down with SVM cost C; nodes in ``fixed`` keep their hyperplane."""
    T, p = 2 ** (params.depth + 1) - 1, data.p
    mu = params.boundary or 0.0
    omega, omega0, split = np.zeros((T, p)), np.zeros(T), np.zeros(T, dtype=bool)
    node = np.ones(data.n, dtype=np.int64)
    for t in range(1, T + 1):
        rows = np.flatnonzero(node == t)
        last = t > T // 2
        S, y, w = data.X[rows], data.sign[rows], data.weights[rows]
        heavier = 1.0 if float((w * y).sum()) >= 0 else -1.0
        omega0[t - 1] = heavier
        may_split = t == 1 or split[t // 2 - 1]
        if len(rows) and may_split:
            v, v0 = fixed.get(t) or fit_relabelling(S, y, w, C, params.c1, params.c2)
            if v.any():
                if not last:
                    v0 += clear_of_the_plane(S @ v + v0, mu)
                # What is below is not known yet: a split that pays here alone, or may pay below.
                here = hinge_cost(S @ v + v0, y, w, params.c1, params.c2) + params.c3
                if here < constant_cost(y, w, params.c1, params.c2) or not last:
                    omega[t - 1], omega0[t - 1], split[t - 1] = v, v0, True
        if not last:
            right = S @ omega[t - 1] + omega0[t - 1] >= 0
            node[rows] = 2 * t + right
    return MarginTree(params.depth, data.classes, data.feature_names, data.scaling, omega, omega0, split)


def pruned(tree: MarginTree, data: Data, params: octsvm.OCTSVMParams) -> MarginTree:
    """Take out splits, from the last level up, as long as the objective falls."""
    best, lowest = tree, _cost(tree, data, params)
    for t in range(tree.n_nodes, 0, -1):
        if not best.split[t - 1]:
            continue
        split, omega, omega0 = best.split.copy(), best.omega.copy(), best.omega0.copy()
        path = best._route(data.X)
        below = [t]
        for s in below:
            below += [c for c in (2 * s, 2 * s + 1) if c <= tree.n_nodes]
        rows = (path == t).any(axis=1)
        side = 1.0 if float((data.weights * data.sign)[rows].sum()) >= 0 else -1.0
        for s in below:
            split[s - 1], omega[s - 1], omega0[s - 1] = False, 0.0, side
        candidate = MarginTree(
            tree.depth, tree.classes, tree.feature_names, tree.scaling, omega, omega0, split
        )
        cost = _cost(candidate, data, params)
        if cost < lowest - 1e-12:
            best, lowest = candidate, cost
    return best


def _cost(tree: MarginTree, data: Data, params: octsvm.OCTSVMParams) -> float:
    return octsvm.evaluate(tree, data.X_original, data.y, params, data.weights).objective


def tree_candidates(
    data: Data, params: octsvm.OCTSVMParams, budget: Budget, seed: int
) -> Iterator[MarginTree]:
    """Trees over the path of C, finer around the best, then single nodes of the best fitted anew."""
    best: MarginTree | None = None
    lowest, at = np.inf, 1.0

    def consider(C: float, fixed: dict[int, tuple[FloatArray, float]]) -> MarginTree:
        nonlocal best, lowest, at
        tree = pruned(grow(data, params, C, fixed), data, params)
        cost = _cost(tree, data, params)
        if cost < lowest:
            best, lowest, at = tree, cost, C
        return tree

    for C in COARSE:
        if budget.spent():
            return
        yield consider(float(C), {})
    centre = at
    for factor in FINE:
        if budget.spent():
            return
        yield consider(float(centre * factor), {})
    improved = True
    while improved and best is not None:
        improved = False
        for t in range(1, best.n_nodes + 1):
            for factor in (0.25, 0.5, 2.0, 4.0):
                if budget.spent():
                    return
                fixed = {
                    s: (best.omega[s - 1], float(best.omega0[s - 1]))
                    for s in range(1, t)
                    if best.split[s - 1]
                }
                before = lowest
                yield consider(float(at * factor), fixed)
                improved = improved or lowest < before - 1e-9 * abs(before)


def single_candidates(data: Data, params: Any, budget: Budget, seed: int) -> Iterator[MarginTree]:
    """RE-SVM: alternating relabelling with the model's own C = c1, from the labels that other margins suggest."""
    label = data.sign
    marks: list[BoolArray] = [np.zeros(data.n, dtype=bool)]
    for C in COARSE:
        if budget.spent():
            break
        omega, omega0 = fit_svm(data.X, label, data.weights, float(C))
        ys = label * (data.X @ omega + omega0)
        marks.append(ys < 0)
        marks.append(ys < -0.5)
    for start in marks:
        given = np.where(start, -label, label)
        for _ in range(RELABEL_ROUNDS):
            if budget.spent():
                return
            omega, omega0 = fit_svm(data.X, given, data.weights, params.c1 or 1.0)
            yield MarginTree(
                0,
                data.classes,
                data.feature_names,
                data.scaling,
                omega[None, :],
                np.array([omega0]),
                np.array([bool(omega.any())]),
            )
            ys = label * (data.X @ omega + omega0)
            give_up = params.c2 + params.c1 * np.maximum(0, 1 + ys) < params.c1 * np.maximum(0, 1 - ys)
            fresh = np.where(give_up, -label, label)
            if (fresh == given).all():
                break
            given = fresh
