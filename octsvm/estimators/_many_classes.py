"""More than two classes with classifiers of two: one fit for each class against the rest, or for each pair of classes.

As scikit-learn's OneVsRestClassifier and OneVsOneClassifier decide. Those hand on neither weights of rows nor names of
columns, and know nothing of a time limit that all fits share.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from ..formulations.base import BoolArray, FloatArray, IntArray
from ..formulations.checks import is_number


def problems(kind: str, position: IntArray, n_classes: int) -> list[tuple[BoolArray, BoolArray]]:
    """For each fit the rows that it takes (n,), and which of all rows are positive (n,); ``position`` is each row's class."""
    if kind == "ovr":
        everyone = np.ones(len(position), dtype=bool)
        return [(everyone, position == k) for k in range(n_classes)]
    return [((position == a) | (position == b), position == b) for a, b in combinations(range(n_classes), 2)]


def fit_all(
    machine: Any,
    kind: str,
    table: Any,
    position: IntArray,
    weights: FloatArray,
    n_classes: int,
    begin: Any,
) -> list[Any]:
    """Fitted clones of ``machine`` for two classes, the positive one being True; its time limit is shared in equal parts.

    ``table (n, p)`` may be a DataFrame; ``weights (n,)`` are those of the rows, classes weighted already.
    """
    from sklearn.base import clone

    fitted: list[Any] = []
    todo = problems(kind, position, n_classes)
    former = getattr(machine, "estimators_", []) if machine.warm_start else []
    for k, (rows, positive) in enumerate(todo):
        one = clone(machine).set_params(multi_class=None, class_weight=None)
        if len(former) == len(todo):
            one.tree_ = former[k].tree_  # its fit begins with it
        if is_number(one.time_limit):
            one.set_params(time_limit=one.time_limit / len(todo))
        part = table.loc[rows] if hasattr(table, "loc") else table[rows]
        one._fit(part, positive[rows], weights[rows], begin)
        fitted.append(one)
    return fitted


def decisions(kind: str, fitted: list[Any], table: Any, n_classes: int) -> FloatArray:
    """A score (m, K) for each class, the largest one being predicted.

    One against the rest: the score of that classifier. In pairs: the votes, and among equal ones the sum of scores, which is
    shrunk to less than half a vote.
    """
    score = np.column_stack([one.decision_function(table) for one in fitted])
    if kind == "ovr":
        return score
    votes, total = np.zeros((len(score), n_classes)), np.zeros((len(score), n_classes))
    for (a, b), s in zip(combinations(range(n_classes), 2), score.T, strict=True):
        votes[:, b] += s > 0
        votes[:, a] += s <= 0
        total[:, b] += s
        total[:, a] -= s
    return np.asarray(votes + total / (3 * (np.abs(total) + 1)))
