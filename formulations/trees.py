"""Fitted trees: plain arrays in heap order, routed by numpy alone.

Nodes are numbered as a heap: the root is 1, the children of t are 2t (left) and 2t + 1 (right). Array position
k of a per-node array belongs to node k + 1. One routing rule everywhere: a row whose
score is below zero goes left, otherwise right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import saved_trees
from .base import BoolArray, Data, FloatArray, IntArray, Scaling
from .checks import plural
from .errors import InvalidData, TreeNotAdmitted
from .heap import parent, rightmost
from .kernels import Kernel, KernelMap
from .outline import Split, condition, outline, sum_text, text_lines
from .preparation import Preparation
from .read_file import read_json
from .read_matrix import read_matrix
from .replace_file import replace_text

Units = Literal["scaled", "original"]
Kind = TypeVar("Kind", bound="Tree")


class Relabelled(NamedTuple):
    """A training row whose label the model gave up at a node, and what that costs there (c2 and the error left)."""

    row: int
    node: int
    cost: float


def _dot(X: FloatArray, w: FloatArray) -> FloatArray:
    # Summed row by row, so that a row's score does not depend on the rows it comes with (a BLAS product's does).
    return np.add.reduce(X * w, axis=1) if w.any() else np.zeros(len(X))


def printable(name: str) -> str:
    """A name for a terminal or a page: what controls them is written out, such as \\x1b for an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def label_array(labels: Sequence[Any]) -> NDArray[Any]:
    """``labels`` as an array (K,) that holds exactly them: objects where numpy would make others of them."""
    if all(type(label) in (str, bool, int, float) for label in labels):
        plain = np.asarray(labels)
        whole = all(type(label) is int for label in labels)  # -1 and 2**63 would become floats
        if plain.tolist() == list(labels) and not (whole and plain.dtype.kind == "f"):
            return plain
    out = np.empty(len(labels), dtype=object)
    for k, label in enumerate(labels):  # at once, numpy takes tuples for rows
        out[k] = label
    return out


@dataclass(frozen=True, eq=False)
class Tree:
    """What the three kinds of tree share.

    Attributes
    ----------
    depth : int
        D: the number of levels that route rows to a child.
    classes : tuple
        The labels, in the order of their indices.
    feature_names : tuple of str
        Made up (x1, x2, ...) where the training table had none: then every table is taken by position.
    scaling : Scaling
        Learned on the training rows.
    preparation : Preparation or None
        How the features are made of a table's columns. Where there is one, tables with those columns are taken as they
        are; tables without names, and such with the features themselves, are taken as features.
    """

    depth: int
    classes: tuple[Any, ...]
    feature_names: tuple[str, ...]
    scaling: Scaling
    preparation: Preparation | None = field(default=None, kw_only=True)

    kind: ClassVar[str] = ""
    routes_on_scaled: ClassVar[bool] = True
    _threshold_format: ClassVar[str] = ".6g"

    @property
    def n_branch(self) -> int:
        """Number of nodes above the last level, 2^D - 1."""
        return 2**self.depth - 1

    @property
    def n_nodes(self) -> int:
        """T = 2^(D+1) - 1."""
        return 2 ** (self.depth + 1) - 1

    @property
    def splits(self) -> BoolArray:
        """Which nodes carry a split, over the nodes that can (d_t of the models)."""
        raise NotImplementedError

    def _splits_at(self, t: int) -> bool:
        """Whether node ``t`` splits; nodes below the last that can do not."""
        return t <= len(self.splits) and bool(self.splits[t - 1])

    def _class_below(self, t: int, side: int | None) -> int:
        """Class index of the rows of the unsplit node ``t``; ``side`` is the one (0 left, 1 right) taken above it."""
        raise NotImplementedError

    def _goes_right(self, t: int, X: FloatArray) -> BoolArray:
        raise NotImplementedError

    def weights(self, units: Units = "original") -> tuple[FloatArray, FloatArray]:
        """Weights and thresholds, or intercepts, of the nodes that can split."""
        raise NotImplementedError

    @property
    def weighs_features(self) -> bool:
        """Whether its splits are of (weighted sums of) features: all but those of a kernel other than "linear"."""
        return True

    def by_effect(self, t: int) -> IntArray:
        """Features with a weight at node ``t``, by what each does over its range in training, the most first.

        Weights in a table's own units cannot be compared: they tell the features' units as well.
        """
        effect = np.abs(self.weights("scaled")[0][t - 1])
        order = np.argsort(-effect, kind="stable")
        return order[effect[order] > 0]

    def class_index_at(self, path: IntArray, X: FloatArray) -> IntArray:
        """Class index (m,) for rows with the given path of nodes (m, D + 1)."""
        raise NotImplementedError

    def prepared_by(self, preparation: Preparation | None) -> Self:
        """The same tree for tables as ``preparation`` takes them; its features are those that the tree was fitted to.

        Raises
        ------
        InvalidData
            It makes other features.
        """
        return replace(self, preparation=preparation)

    def features_of(self, X: Any) -> FloatArray:
        """The features (m, p) of the rows of ``X`` in original units: its columns, or what ``preparation`` makes of them.

        Raises
        ------
        InvalidData
            If X does not have the training table's columns, or holds values that are not finite numbers.
        """
        if self.preparation is not None and self.preparation.takes(X):
            X = self.preparation.matrix(X)
        return read_matrix(X, self.feature_names)[0]

    def _matrix(self, X: Any) -> FloatArray:
        matrix = self.features_of(X)
        return self.scaling.transform(matrix) if self.routes_on_scaled else matrix

    def _route(self, M: FloatArray) -> IntArray:
        path = np.ones((len(M), self.depth + 1), dtype=np.int64)
        for level in range(self.depth):
            here = path[:, level]
            step = np.zeros(len(M), dtype=np.int64)
            for t in np.unique(here):
                rows = np.flatnonzero(here == t)
                step[rows] = self._goes_right(int(t), M[rows])
            path[:, level + 1] = 2 * here + step
        return path

    def nodes(self, X: Any) -> IntArray:
        """The node that each row visits on each level (m, D + 1), heap numbers.

        Raises
        ------
        InvalidData
            If X does not have the training table's columns, or holds values that are not finite numbers.
        """
        return self._route(self._matrix(X))

    def decision_path(self, X: Any) -> BoolArray:
        """Indicator (m, T) of the nodes that each row visits; column k belongs to node k + 1."""
        return visited(self.nodes(X), self.n_nodes)

    def predict_index(self, X: Any) -> IntArray:
        """Index into ``classes`` (m,) of each row's predicted class."""
        M = self._matrix(X)
        return self.class_index_at(self._route(M), M)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted labels (m,) of the rows of ``X (m, p)``, in the labels the tree was trained with."""
        return label_array(self.classes)[self.predict_index(X)]

    # -- text -----------------------------------------------------------------------------------------------

    def _rules(self, units: str) -> tuple[FloatArray, FloatArray]:
        """Weights of the nodes that can split, and what the weighted sum of a row that goes left is below."""
        return self.weights(units)  # type: ignore[arg-type]  # which refuses others

    def _words(self, t: int) -> tuple[str, str] | None:
        """What holds on both sides of node ``t`` where no number says it."""
        return None

    def _asked(self, split: Split, names: Sequence[str], most: int | None, weight: str) -> str:
        """What a split looks at, as text; the arguments are those of :func:`~.outline.condition`."""
        return sum_text(self, split, names, most, weight)

    def _condition(self, split: Split, most: int) -> tuple[str, str]:
        """What holds on the left and on the right of a ``split`` of the tree's outline, as :meth:`to_text` says it."""
        names = [printable(name) for name in self.feature_names]
        return condition(self, split, names, most, ".4g", self._threshold_format)

    def to_text(self, units: Units = "original", most: int = 6) -> str:
        """The tree as indented text; an oblique split shows its ``most`` largest weights."""
        return "\n".join(text_lines(self, outline(self, units), lambda split: self._condition(split, most)))

    def __str__(self) -> str:
        return self.to_text()

    # -- JSON -----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain Python data, fit for JSON.

        Raises
        ------
        InvalidData
            Its labels are of a kind that JSON does not hold, such as members of an Enum.
        """
        return saved_trees.to_dict(self)

    def to_json(self, path: str | Path | None = None) -> str:
        """The tree as JSON text; written to ``path`` too if one is given."""
        text = saved_trees.to_json(self)
        if path is not None:
            replace_text(path, text + "\n")
        return text

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tree:
        """Rebuild a tree from :meth:`to_dict`; nothing of the file is executed.

        Raises
        ------
        InvalidData
            Not a tree, a newer schema, or arrays that do not fit together.
        """
        kind, values = saved_trees.from_dict(data)
        kinds: dict[str, type[Tree]] = {k.kind: k for k in (AxisTree, ObliqueTree, MarginTree, KernelTree)}
        return kinds[kind]._of_saved(values)

    @classmethod
    def _of_saved(cls, values: dict[str, Any]) -> Tree:
        return cls(**values)

    @classmethod
    def from_json(cls, source: str | Path) -> Tree:
        """Rebuild a tree from JSON text or from a file's path."""
        return cls.from_dict(read_json(source, "saved tree"))

    def _check_common(self) -> None:
        p = len(self.feature_names)
        if (
            self.depth < 0
            or not self.classes
            or self.scaling.low.shape != (p,)
            or self.scaling.span.shape != (p,)
        ):
            raise InvalidData("The tree's arrays do not fit together: depth, classes, names or scaling.")
        if self.preparation is not None and self.preparation.feature_names != tuple(self.feature_names):
            raise InvalidData(
                f"The preparation makes {len(self.preparation.feature_names)} features of a table, and they are not the "
                f"{len(self.feature_names)} of the tree. Fit the tree to what the preparation makes of the training rows."
            )


class _LeafLabelledTree(Tree):
    """What trees with a label at each leaf share. Not a dataclass: ``label`` is a field of the classes below."""

    label: IntArray

    def class_index_at(self, path: IntArray, X: FloatArray) -> IntArray:
        """Class of the leaf at the end of each path."""
        return self.label[path[:, -1] - self.n_branch - 1]

    def _class_below(self, t: int, side: int | None) -> int:
        """Class of the leaf that the rows of the unsplit node ``t`` reach."""
        return int(self.label[rightmost(t, self.depth) - self.n_branch - 1])


@dataclass(frozen=True, eq=False)
class AxisTree(_LeafLabelledTree):
    """OCT: one feature a split, ``x_j < threshold`` goes left; an unsplit node sends every row right.

    Attributes
    ----------
    feature : ndarray of int, shape (2^D - 1,)
        Feature of each branch node, -1 where the node does not split.
    threshold : ndarray of shape (2^D - 1,)
        In original units.
    label : ndarray of int, shape (2^D,)
        Class index of each leaf.
    """

    feature: IntArray
    threshold: FloatArray
    label: IntArray

    kind: ClassVar[str] = "axis"
    routes_on_scaled: ClassVar[bool] = False
    _threshold_format: ClassVar[str] = ".12g"

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together."""
        self._check_common()
        _require_shapes(
            (self.feature, (self.n_branch,)),
            (self.threshold, (self.n_branch,)),
            (self.label, (self.n_branch + 1,)),
        )
        _require_range(self.feature, -1, len(self.feature_names), "feature")
        _require_parents(self.splits)
        _require_range(self.label, 0, len(self.classes), "label")

    @property
    def splits(self) -> BoolArray:
        """Which branch nodes split (2^D - 1,)."""
        return np.asarray(self.feature >= 0)

    def _goes_right(self, t: int, X: FloatArray) -> BoolArray:
        j = self.feature[t - 1]
        if j < 0:
            return np.ones(len(X), dtype=bool)
        return np.asarray(X[:, j] >= self.threshold[t - 1])

    def weights(self, units: Units = "original") -> tuple[FloatArray, FloatArray]:
        """Weights (2^D - 1, p) and thresholds (2^D - 1,): a row goes left where its weighted sum is below."""
        _require_units(units)
        W = np.zeros((self.n_branch, len(self.feature_names)))
        b = np.where(self.splits, self.threshold, 0.0)
        for t in np.flatnonzero(self.splits):
            j = self.feature[t]
            W[t, j] = 1.0
            if units == "scaled":
                b[t] = (
                    (b[t] - self.scaling.low[j]) / self.scaling.span[j] if self.scaling.span[j] > 0 else 0.0
                )
        return W, b

    def in_words(self, j: int, below: float) -> tuple[str, str] | None:
        """What holds on both sides of ``below`` where feature ``j`` stands for a category or a date; None for numbers."""
        words = None if self.preparation is None else self.preparation.worded(j, below)
        return None if words is None else (printable(words[0]), printable(words[1]))

    def _words(self, t: int) -> tuple[str, str] | None:
        return self.in_words(int(self.feature[t - 1]), float(self.threshold[t - 1]))

    def _asked(self, split: Split, names: Sequence[str], most: int | None, weight: str) -> str:
        return names[int(self.feature[split.node - 1])]


@dataclass(frozen=True, eq=False)
class ObliqueTree(_LeafLabelledTree):
    """OCT-H: ``a'x < b`` goes left, on scaled features; an unsplit node sends every row right.

    Attributes
    ----------
    a : ndarray of shape (2^D - 1, p)
        Scaled units.
    b : ndarray of shape (2^D - 1,)
    split : ndarray of bool, shape (2^D - 1,)
    label : ndarray of int, shape (2^D,)
        Class index of each leaf.
    """

    a: FloatArray
    b: FloatArray
    split: BoolArray
    label: IntArray

    kind: ClassVar[str] = "oblique"

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together."""
        self._check_common()
        B = self.n_branch
        _require_shapes(
            (self.a, (B, len(self.feature_names))), (self.b, (B,)), (self.split, (B,)), (self.label, (B + 1,))
        )
        _require_parents(self.split)
        _require_no_weights(self.a, self.split)
        _require_range(self.label, 0, len(self.classes), "label")

    @property
    def splits(self) -> BoolArray:
        """Which branch nodes split (2^D - 1,)."""
        return self.split

    def node_score(self, t: int, X: FloatArray) -> FloatArray:
        """a_t'x (m,) at branch node ``t`` for scaled rows ``X (m, p)``."""
        return _dot(X, self.a[t - 1])

    def _goes_right(self, t: int, X: FloatArray) -> BoolArray:
        if not self.split[t - 1]:
            return np.ones(len(X), dtype=bool)
        return np.asarray(self.node_score(t, X) >= self.b[t - 1])

    def weights(self, units: Units = "original") -> tuple[FloatArray, FloatArray]:
        """Weights (2^D - 1, p) and thresholds (2^D - 1,): a row goes left where its weighted sum is below."""
        _require_units(units)
        if units == "scaled":
            return self.a.copy(), self.b.copy()
        W, shift = _to_original(self.a, self.scaling)
        return W, self.b + shift


@dataclass(frozen=True, eq=False)
class MarginTree(Tree):
    """RE-SVM (depth 0) and OCTSVM: a hyperplane at every node of all D + 1 levels; two classes.

    A row goes right where omega_t'x + omega_t0 >= 0. The class is the side taken at the last split on the path:
    left is ``classes[0]`` (-1), right is ``classes[1]`` (+1); where nothing splits, the sign of omega_1,0.

    Attributes
    ----------
    omega : ndarray of shape (T, p)
        Scaled units; zero where the node does not split.
    omega0 : ndarray of shape (T,)
        Kept for unsplit nodes too: its sign is what the model charges there.
    split : ndarray of bool, shape (T,)
        d_t of the model.
    relabelled : tuple of Relabelled
        Training rows whose label was given up, by node.
    """

    omega: FloatArray
    omega0: FloatArray
    split: BoolArray
    relabelled: tuple[Relabelled, ...] = field(default=())

    kind: ClassVar[str] = "margin"

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together."""
        self._check_common()
        T = self.n_nodes
        _require_shapes((self.omega, (T, self._n_columns())), (self.omega0, (T,)), (self.split, (T,)))
        _require_parents(self.split)
        _require_no_weights(self.omega, self.split)
        if any(not 1 <= r.node <= T for r in self.relabelled):
            raise InvalidData(
                f"The tree's arrays do not fit together: relabelled rows at nodes 1 to {T} are allowed."
            )
        if len(self.classes) > 2:
            raise InvalidData(f"A margin tree has two classes, not {len(self.classes)}.")

    def _n_columns(self) -> int:
        return len(self.feature_names)

    @property
    def splits(self) -> BoolArray:
        """Which nodes split (T,)."""
        return self.split

    def node_score(self, t: int, X: FloatArray) -> FloatArray:
        """omega_t'x + omega_t0 (m,) at node ``t`` for scaled rows ``X (m, p)``."""
        return _dot(X, self.omega[t - 1]) + self.omega0[t - 1]

    def scores(self, X: Any) -> FloatArray:
        """Scores (m, T) of all nodes for rows in original units."""
        return self._node_scores(self._matrix(X))

    def _node_scores(self, M: FloatArray) -> FloatArray:
        return np.column_stack([self.node_score(t, M) for t in range(1, self.n_nodes + 1)])

    def _goes_right(self, t: int, X: FloatArray) -> BoolArray:
        return np.asarray(self.node_score(t, X) >= 0)

    def class_index_at(self, path: IntArray, X: FloatArray) -> IntArray:
        """Side taken at the last split on each path."""
        side = np.full(len(path), int(self.omega0[0] >= 0), dtype=np.int64)
        for level in range(self.depth + 1):
            for t in np.unique(path[:, level]):
                if self.split[t - 1]:
                    rows = np.flatnonzero(path[:, level] == t)
                    side[rows] = self._goes_right(int(t), X[rows])
        return np.minimum(side, len(self.classes) - 1)

    def _class_below(self, t: int, side: int | None) -> int:
        """Side taken at the last split, that of omega_1,0 where nothing splits."""
        index = int(self.omega0[0] >= 0) if side is None else side
        return min(index, len(self.classes) - 1)

    @classmethod
    def _of_saved(cls, values: dict[str, Any]) -> Tree:
        return cls(**values | {"relabelled": tuple(Relabelled(*r) for r in values["relabelled"])})

    def weights(self, units: Units = "original") -> tuple[FloatArray, FloatArray]:
        """Weights (T, p) and intercepts (T,) of the scores."""
        _require_units(units)
        omega = self._feature_weights()
        if units == "scaled":
            return omega, self.omega0.copy()
        W, shift = _to_original(omega, self.scaling)
        return W, self.omega0 - shift

    def _feature_weights(self) -> FloatArray:
        """Weights (T, p) of the scaled features."""
        return self.omega.copy()

    def with_relabelled(self, relabelled: tuple[Relabelled, ...]) -> Self:
        """The same tree with another record of relabelled rows."""
        return replace(self, relabelled=relabelled)

    def _rules(self, units: str) -> tuple[FloatArray, FloatArray]:
        W, w0 = super()._rules(units)
        return W, -w0


@dataclass(frozen=True, eq=False)
class KernelTree(MarginTree):
    """RE-SVM and OCTSVM with a kernel: the score of a node is Σ_j alpha_tj k(x_j, x) + omega_t0 over the support samples x_j.

    ``scaling`` is a :class:`~octsvm.formulations.kernels.KernelMap`, which leads from a row in original units to its coordinates in
    feature space; the samples that it needs are all that is kept of the training table.

    Attributes
    ----------
    omega : ndarray of shape (T, r)
        In coordinates of feature space; its norm is that of the model.
    """

    scaling: KernelMap

    kind: ClassVar[str] = "kernel_margin"

    def _n_columns(self) -> int:
        return len(self.scaling.support)

    @property
    def kernel(self) -> Kernel:
        """The kernel with its parameters."""
        return self.scaling.kernel

    @property
    def weighs_features(self) -> bool:
        """Whether the kernel is "linear": a score of it is a weighted sum of features."""
        return self.kernel.name == "linear"

    @property
    def support(self) -> FloatArray:
        """Support samples (r, p) in scaled units."""
        return self.scaling.support

    @property
    def alpha(self) -> FloatArray:
        """Coefficients (T, r) of the support samples in each node's score."""
        return np.asarray(self.omega @ self.scaling.basis.T)

    @classmethod
    def _of_saved(cls, values: dict[str, Any]) -> Tree:
        kernel, support = Kernel.from_dict(values.pop("kernel")), values.pop("support")
        values["scaling"] = KernelMap.spanned_by(values["scaling"], kernel, support)
        return super()._of_saved(values)

    def weights(self, units: Units = "original") -> tuple[FloatArray, FloatArray]:
        """Weights (T, p) and intercepts (T,) of the scores, of the kernel "linear" alone: others are no weighted sums of features.

        Raises
        ------
        InvalidData
            Another kernel; ``alpha``, ``support`` and ``omega0`` say what the score is.
        """
        return super().weights(units)

    def _feature_weights(self) -> FloatArray:
        if self.weighs_features:
            return np.asarray(self.alpha @ self.support)
        raise InvalidData(
            f"The splits of this tree have no weights of features, as its kernel ({self.kernel.describe()}) is none of them: "
            "a score is Σ_j alpha[t, j] k(support[j], x) + omega0[t], with tree.alpha, tree.support and tree.omega0."
        )

    def score_text(self, t: int) -> str:
        """What stands for the sum Σ_j alpha_tj k(x_j, x) of node ``t`` where a split is shown."""
        used = int(np.count_nonzero(self.omega[t - 1] @ self.scaling.basis.T))
        return f"score({printable(self.kernel.describe())}; {plural(used, 'support sample')})"

    def _rules(self, units: str) -> tuple[FloatArray, FloatArray]:
        _require_units(units)
        return super()._rules(units) if self.weighs_features else (self.alpha, -self.omega0)

    def _asked(self, split: Split, names: Sequence[str], most: int | None, weight: str) -> str:
        if self.weighs_features:
            return super()._asked(split, names, most, weight)
        return self.score_text(split.node)


def tree_on(data: Data, kind: type[Kind], depth: int, *arrays: Any) -> Kind:
    """A tree with the classes, features and scaling of ``data`` and the arrays of its ``kind``, in the order of their fields.

    A :class:`MarginTree` on rows that a kernel maps is a :class:`KernelTree`.
    """
    made: Any = KernelTree if kind is MarginTree and isinstance(data.scaling, KernelMap) else kind
    tree: Kind = made(depth, data.classes, data.feature_names, data.scaling, *arrays)
    return tree


def visited(path: IntArray, T: int) -> BoolArray:
    """Which of the nodes 1 to T lie on each row's ``path (n, D + 1)``, (n, T)."""
    out = np.zeros((len(path), T), dtype=bool)
    np.put_along_axis(out, path - 1, True, axis=1)
    return out


def _to_original(W: FloatArray, scaling: Scaling) -> tuple[FloatArray, FloatArray]:
    """Weights for original units, and what the threshold moves by: a'((x - low)/span) = (a/span)'x - shift."""
    span = np.where(scaling.span > 0, scaling.span, np.inf)
    original = W / span
    return original, original @ scaling.low


def _require_units(units: str) -> None:
    if units not in ("scaled", "original"):
        raise InvalidData(f"units={units!r} is unknown; choose 'scaled' or 'original'.")


def _require_shapes(*pairs: tuple[NDArray[Any], tuple[int, ...]]) -> None:
    for array, shape in pairs:
        if array.shape != shape or (array.dtype.kind == "f" and not np.isfinite(array).all()):
            raise InvalidData(
                f"The tree's arrays do not fit together: {array.shape} where {shape} finite values belong."
            )


def _require_parents(split: BoolArray) -> None:
    for t in range(2, len(split) + 1):
        if split[t - 1] and not split[parent(t) - 1]:
            raise InvalidData(f"Node {t} of the tree splits below node {parent(t)}, which does not.")


def _require_no_weights(weights: FloatArray, split: BoolArray) -> None:
    if (weights[~split] != 0).any():
        raise InvalidData("The tree's arrays do not fit together: a node that does not split has weights.")


def _require_range(array: IntArray, low: int, high: int, what: str) -> None:
    if array.size and (array.min() < low or array.max() >= high):
        raise InvalidData(
            f"The tree's arrays do not fit together: {what} indices from {low} to {high - 1} are allowed."
        )


def rescaled(tree: Any, scaling: Scaling) -> Any:
    """The same oblique or margin tree, written for another scaling of the features (up to rounding).

    Of a tree with a kernel, its projection on the span of other support samples: the same on the table that they span.

    Raises
    ------
    TreeNotAdmitted
        One has a kernel that the other has not.
    """
    if isinstance(tree.scaling, KernelMap) or isinstance(scaling, KernelMap):
        return _on_other_basis(tree, scaling)
    if np.array_equal(tree.scaling.low, scaling.low) and np.array_equal(tree.scaling.span, scaling.span):
        return tree
    W, constant = tree.weights("original")
    shift = W @ scaling.low
    if isinstance(tree, MarginTree):
        return replace(tree, omega=W * scaling.span, omega0=constant + shift, scaling=scaling)
    return replace(tree, a=W * scaling.span, b=constant - shift, scaling=scaling)


def _on_other_basis(tree: MarginTree, scaling: Scaling) -> MarginTree:
    """A tree with a kernel, in the coordinates of another map of the same space."""
    if not isinstance(scaling, KernelMap) or not scaling.same_space(tree.scaling):
        asked, has = _space(scaling), _space(tree.scaling)
        also = ", on features of other ranges" if asked == has else ""
        raise TreeNotAdmitted(
            f"The tree's splits are made with {has}, and the model's with {asked}{also}. Give a tree that was fitted with "
            "the model's kernel on its table, or none."
        )
    assert isinstance(tree.scaling, KernelMap)
    if np.array_equal(tree.scaling.support, scaling.support):
        return replace(tree, scaling=scaling)
    there = tree.scaling.coordinates(scaling.support) @ tree.omega.T
    return replace(tree, omega=there.T @ scaling.basis, scaling=scaling)


def _space(scaling: Scaling) -> str:
    return f"the kernel {scaling.kernel.describe()}" if isinstance(scaling, KernelMap) else "no kernel"
