"""A prediction function of its own, as Python source that needs numpy only."""

from __future__ import annotations

import keyword
from pathlib import Path
from typing import Any

from ..errors import InvalidData, InvalidParameter
from ..formulations.outline import Leaf, Split, outline
from ..formulations.replace_file import replace_text
from ..formulations.saved_trees import plain_labels
from ..formulations.trees import AxisTree, KernelTree, label_array
from ._outline import exact_units, tree_of

HEAD = '''"""Predicts the classes of a classification tree. Made by octsvm; needs numpy only."""

import numpy as np

FEATURES = {features}
CLASSES = {classes}
'''
SCALING = """# Features are first put to (x - LOW) / SPAN, and to 0 where SPAN is 0.
LOW = np.array({low})
SPAN = np.array({span})
"""
KERNEL = '''# Support samples, scaled.
SUPPORT = np.array({support})


def _kernel(A, B):
    """{described}: values (n, m) of the scaled rows A (n, p) and B (m, p)."""
    out = np.zeros((len(A), len(B)))
    for a, b in zip(A.T, B.T):
        out += {term}
    return {value}


# Columns hold an orthonormal basis of the support samples' span in the kernel's feature space.
BASIS = {basis}


def _coordinates(X):
    K, out = _kernel(X, SUPPORT), np.zeros((len(X), len(BASIS)))
    for j, row in enumerate(BASIS):
        out[:, j:] += K[:, j : j + 1] * row[j:]
    return out


'''
BODY = '''# Node t sends a row to node 2 t where its sum of weight times feature is below the threshold, else to 2 t + 1.
SPLITS = {{
{splits}}}
LEAVES = {leaves}  # index into CLASSES


def {name}(X):
    """Labels (m,) of the rows of X (m, {p}): finite numbers in the order of FEATURES, in the units of the training table."""
    X = np.array(X, dtype=float, order="C")
    if X.ndim != 2 or X.shape[1] != len(FEATURES):
        raise ValueError(f"X has shape {{X.shape}}, and the tree needs (m, {{len(FEATURES)}}).")
    if not np.isfinite(X).all():
        raise ValueError("X holds missing or infinite values.")
{scale}    node = np.ones(len(X), dtype=np.int64)
    for t, ({what}, threshold) in SPLITS.items():
        rows = np.flatnonzero(node == t)
        node[rows] = 2 * t + ({score} >= threshold)
    label = np.zeros(len(X), dtype=np.int64)
    for t, k in LEAVES.items():
        label[node == t] = k
    return np.asarray(CLASSES{dtype})[label]
'''
TERMS = {"linear": ("a[:, None] * b", "out"), "rbf": ("(a[:, None] - b) ** 2", "np.exp(-{gamma!r} * out)")}
TERMS["poly"] = (TERMS["linear"][0], "({gamma!r} * out + {coef0!r}) ** {degree}")
SCALE = "    X = np.ascontiguousarray(np.where(SPAN > 0, (X - LOW) / np.where(SPAN > 0, SPAN, 1.0), 0.0))\n"


def export_source(fitted: Any, path: str | Path | None = None, *, name: str = "predict") -> str:
    """A standalone prediction function as Python source: it runs without octsvm, on numpy alone.

    It does the tree's own arithmetic in the tree's own order, so that its labels are the tree's, rows on a boundary
    included. Names and labels stand in it as literals and cannot be run. Where a tree makes its features of a table's
    columns, the function takes the features, which ``tree.preparation.matrix`` makes.

    Parameters
    ----------
    fitted : Tree, Result or classifier
        What holds the tree.
    path : str or Path, optional
        A file to write the source to, whole or not at all.
    name : str
        Of the function.

    Returns
    -------
    str
        A module with one function; ``FEATURES`` and ``CLASSES`` are its constants.

    Raises
    ------
    InvalidData
        Labels that source code does not hold, such as members of an Enum; a kernel that is a function of your own.
    InvalidParameter
        No tree, or ``name`` cannot be a function's.
    OutputNotWritable
        The file cannot be written.
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise InvalidParameter(f"name={name!r} should be a Python name, e.g. 'predict'.")
    tree = tree_of(fitted)
    axis, kernel = isinstance(tree, AxisTree), isinstance(tree, KernelTree)
    splits: list[tuple[int, str]] = []
    leaves: dict[int, int] = {}

    def visit(part: Split | Leaf) -> None:
        if isinstance(part, Leaf):
            leaves[part.node] = part.label
            return
        numbers = tree.omega[part.node - 1] if isinstance(tree, KernelTree) else part.weights
        weights = int(numbers.argmax()) if axis else numbers.tolist()
        splits.append((part.node, f"    {part.node}: ({weights!r}, {part.below!r}),\n"))
        visit(part.left)
        visit(part.right)

    visit(outline(tree, exact_units(tree)))
    text = HEAD.format(
        features=ascii(list(map(str, tree.feature_names))), classes=ascii(plain_labels(tree.classes))
    )
    if not axis:
        text += SCALING.format(low=tree.scaling.low.tolist(), span=tree.scaling.span.tolist())
    if isinstance(tree, KernelTree):
        text += _kernel_source(tree)
    text += BODY.format(
        splits="".join(line for _, line in sorted(splits)),
        leaves=dict(sorted(leaves.items())),
        name=name,
        p=len(tree.feature_names),
        scale="" if axis else SCALE + ("    X = _coordinates(X)\n" if kernel else ""),
        what="feature" if axis else "weights",
        dtype=", dtype=object" if label_array(tree.classes).dtype == object else "",
        score="X[rows, feature]" if axis else "np.add.reduce(X[rows] * np.array(weights), axis=1)",
    )
    if path is not None:
        replace_text(path, text)
    return text


def _kernel_source(tree: KernelTree) -> str:
    """The map of a tree with a kernel, in the arithmetic of :class:`~octsvm.formulations.kernels.KernelMap`."""
    kernel = tree.kernel
    if kernel.function is not None:
        raise InvalidData(
            f"The tree's kernel is the function {kernel.name}, which source code of its own does not hold. Save the tree with "
            "tree.to_json, or pickle it."
        )
    term, value = TERMS[kernel.name]
    learned = "np.triu(np.linalg.inv(np.linalg.cholesky(_kernel(SUPPORT, SUPPORT))).T)"
    return KERNEL.format(
        support=tree.support.tolist(),
        described=kernel.describe(),
        term=term,
        value=value.format(gamma=kernel.gamma, degree=kernel.degree, coef0=kernel.coef0),
        basis=learned if tree.scaling.basis.any() else "np.zeros((1, 1))",
    )
