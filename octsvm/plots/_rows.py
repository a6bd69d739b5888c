"""Training rows and labels as the pictures need them, read and checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import read_labels, require_same_rows
from ..errors import InvalidData
from ..formulations.base import FloatArray, IntArray
from ..formulations.trees import Tree


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
