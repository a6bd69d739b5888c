"""Training rows as the pictures need them: read, checked, and counted where their labels were given up."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import read_labels, require_same_rows
from ..errors import InvalidData
from ..formulations.base import FloatArray, IntArray
from ..formulations.heap import is_below
from ..formulations.outline import Leaf, Split
from ..formulations.trees import MarginTree, Tree


def classes_of(fitted: Any, tree: Tree) -> list[Any]:
    """The labels in their order: a classifier's, where there is one, as it may know one that its tree does not."""
    known = getattr(fitted, "classes_", None)
    return list(tree.classes) if known is None else list(known.tolist())


def read_rows(tree: Tree, classes: list[Any], X: Any, y: Any) -> tuple[FloatArray, IntArray]:
    """``X (n, p)`` in original units and each row's index into ``classes``.

    Raises
    ------
    InvalidData
        Not the tree's features, or not its labels.
    """
    matrix = tree.features_of(X)
    require_same_rows(X=X, y=y)
    given, index = read_labels(y, len(matrix))
    strange = [label for label in given if label not in classes]
    if strange:
        raise InvalidData(
            f"y holds the label {strange[0]!r}, and the tree knows {', '.join(map(repr, classes))}. "
            "Pass the labels in the form they had when the tree was fitted."
        )
    return matrix, np.array([classes.index(label) for label in given], dtype=np.int64)[index]


def relabelled_at(tree: Tree, part: Split | Leaf) -> int:
    """Rows whose label was given up at a node, below it as well where nothing splits any more."""
    if not isinstance(tree, MarginTree):
        return 0
    if isinstance(part, Split):
        return sum(r.node == part.node for r in tree.relabelled)
    return len({r.row for r in tree.relabelled if is_below(r.node, part.node)})
