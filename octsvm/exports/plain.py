"""Plain Python data."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..formulations.outline import Leaf, Split, outline
from ..formulations.saved_trees import plain_labels
from ..formulations.trees import KernelTree
from ._outline import exact_units, tree_of


def export_dict(fitted: Any, *, units: Literal["original", "scaled"] | None = None) -> dict[str, Any]:
    """The tree's rules as nested plain data that JSON takes, for other programs to read.

    A row goes left where the sum of weight times feature over ``weights`` is less than ``below``, otherwise right. In
    scaled units a feature is first put through ``(x - low)/span`` (0 where span is 0). To load a tree again, save it
    with ``tree.to_json``.

    Parameters
    ----------
    fitted : Tree, Result or classifier
        What holds the tree.
    units : "original" or "scaled", optional
        None takes those that the tree computes in: original for one feature a split, scaled for oblique ones. In the
        other units the numbers are rounded, and a row on a boundary may change sides.

    Returns
    -------
    dict
        ``kind``, ``units``, ``classes``, ``features``, ``scaling`` (by feature; scaled units only), and ``root``: a
        split with ``node``, ``weights`` (by feature, zeros left out), ``below``, ``left``, ``right``, or a leaf with
        ``node`` and ``class``. Where features are made of a table's columns, ``preparation`` says how. A tree with a kernel has ``kernel`` and ``support`` (samples in scaled units) besides, and its
        splits have ``alpha`` in place of ``weights``: the coefficient of each support sample's kernel value. From a classifier, nodes also have ``training_weight`` by class.

    Raises
    ------
    InvalidData, InvalidParameter
        Unknown units, no tree, or labels that JSON does not hold.
    """
    tree = tree_of(fitted)
    if units is None or (isinstance(tree, KernelTree) and units == "original"):
        units = exact_units(tree)  # type: ignore[assignment]  # a kernel acts on scaled features only
    names = tree.feature_names
    weight = getattr(fitted, "node_weights_", None)

    def visit(part: Split | Leaf) -> dict[str, Any]:
        out: dict[str, Any] = {"node": part.node}
        if weight is not None:
            out["training_weight"] = [float(w) for w in weight[part.node - 1]]
        if isinstance(part, Leaf):
            return out | {"class": tree.classes[part.label]}
        if isinstance(tree, KernelTree):
            out["alpha"] = tree.alpha[part.node - 1].tolist()
        else:
            out["weights"] = {names[j]: float(part.weights[j]) for j in np.flatnonzero(part.weights)}
        return out | {"below": part.below, "left": visit(part.left), "right": visit(part.right)}

    out: dict[str, Any] = {
        "kind": tree.kind,
        "units": units,
        "classes": plain_labels(tree.classes),
        "features": list(names),
    }
    if tree.preparation is not None:
        out["preparation"] = tree.preparation.to_dict()
    root = visit(outline(tree, units))
    if units == "scaled":
        out["scaling"] = {
            name: {"low": float(low), "span": float(span)}
            for name, low, span in zip(names, tree.scaling.low, tree.scaling.span, strict=True)
        }
    if isinstance(tree, KernelTree):
        out |= {"kernel": tree.kernel.to_dict(), "support": tree.support.tolist()}
    return out | {"root": root}
