"""Rows with weights as the models want them: none of weight zero, and equal rows once.

A row of weight 2 and the same row twice are the same to the models, and here they become the same table, row order
included: both give the same tree, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..formulations.base import FloatArray, IntArray
from ..formulations.trees import MarginTree, Relabelled
from ..result import Result


@dataclass(frozen=True, eq=False)
class Rows:
    """A table for the models, and where its rows came from."""

    X: FloatArray  # (k, p)
    y: IntArray  # (k,)
    weights: FloatArray  # (k,)
    origin: IntArray  # the row here that each given row became (n,); -1 for a row of weight zero
    given: FloatArray  # weights of the given rows (n,)
    as_given: bool  # nothing was changed

    @property
    def kept(self) -> IntArray:
        """Given rows with a weight."""
        return np.flatnonzero(self.origin >= 0)


def condense(X: FloatArray, y: IntArray, weights: FloatArray, merge: bool) -> Rows:
    """Leave out rows of weight zero, and with ``merge`` add up the weights of rows equal in ``X (n, p)`` and ``y (n,)``.

    A table that needs neither and has unit weights stays as it is; any other one is sorted.
    """
    n = len(y)
    kept = np.flatnonzero(weights > 0)
    key = np.column_stack([X[kept], y[kept]]) + 0.0  # -0.0 is 0.0
    if not merge:
        key = np.column_stack([key, weights[kept]])
    distinct, first, inverse = np.unique(key, axis=0, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    repeated = merge and len(distinct) < len(kept)
    if len(kept) == n and not repeated and (weights == 1).all():
        return Rows(X, y, weights, np.arange(n), weights, True)
    if merge:
        rows, total = kept[first], np.bincount(inverse, weights=weights[kept]).astype(np.float64)
    else:
        order = np.argsort(inverse, kind="stable")
        rows, inverse = kept[order], np.argsort(order)
        total = weights[rows]
    origin = np.full(n, -1, dtype=np.int64)
    origin[kept] = inverse
    return Rows(X[rows], y[rows], total, origin, weights, False)


def for_given_rows(result: Result, rows: Rows) -> Result:
    """The result with row numbers of the given table, and what it says of single rows for each of them."""
    if rows.as_given:
        return result
    members: dict[int, list[int]] = {}
    for i in rows.kept.tolist():
        members.setdefault(int(rows.origin[i]), []).append(i)
    tree = result.tree
    if isinstance(tree, MarginTree):
        records = [
            Relabelled(i, r.node, r.cost * float(rows.given[i] / rows.weights[r.row]))
            for r in tree.relabelled
            for i in members[r.row]
        ]
        tree = tree.with_relabelled(tuple(sorted(records)))
    differing = tuple(sorted(i for k in result.differing_rows for i in members[k]))
    notes = []
    left_out, merged = len(rows.origin) - len(rows.kept), len(rows.kept) - len(rows.y)
    if left_out:
        notes.append(f"rows of weight zero were left out: {left_out}")
    if merged:
        notes.append(f"{len(rows.kept)} rows were solved as {len(rows.y)}: equal ones add up their weights")
    return replace(
        result, tree=tree, differing_rows=differing, n=len(rows.origin), notes=(*result.notes, *notes)
    )
