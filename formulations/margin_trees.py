"""What RE-SVM and OCTSVM share: margin trees, their errors and relabelled rows, and how they enter a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import pyomo.environ as pyo
from pydantic import Field, model_validator

from .base import FEASIBILITY, BoolArray, Data, Evaluation, FloatArray, Formulation, IntArray, table, values
from .blocks.hinge import set_hinge
from .blocks.relabelling import set_relabelling
from .blocks.sizes import Shape
from .blocks.split import set_hyperplanes
from .errors import TreeNotAdmitted
from .kernels import Gamma, KernelChoice, model_rows
from .leaf_trees import require_same_features, sides
from .params import Norm, Params
from .trees import MarginTree, Relabelled, rescaled, tree_on, visited

# Prices of a label, in units of c1, that ``octsvm.tune`` tries. Below 2 c1 the constant tree would rather give up the smaller
# class than pay 2 c1 for each of its rows, and be the best one where a hyperplane is wanted; at 100 c1 no label is given up.
RATIOS = [2.0, 100.0]
# Kernels that octsvm.tune tries, gamma relative to "scale". Where labels are given up as well a fit takes four times as long.
RADIAL: dict[str, list[Any]] = {"kernel": ["rbf"], "gamma": [1.0, 4.0], "c2": [100.0]}


# Rows beyond which the start heuristics have a linear SVM solved in the primal, by scikit-learn's own class.
LARGE = 3000
LIBRARIES = ("clarabel", "daqp", "octsvm.heuristics.linear_svm:binding")


def libraries_for(data: Data, params: Any) -> tuple[str, ...]:
    """What the start heuristics use on a table: scikit-learn's classes of SVMs where there are many rows, or a sparse ω is wanted."""
    return (*LIBRARIES, "sklearn.svm") if data.n > LARGE or params.norm == "l1" else LIBRARIES


class MarginParams(Params):
    """Parameters of RE-SVM and OCTSVM.

    Attributes
    ----------
    c1 : float
        Cost of a unit of error; the margin's unit is 1.
    c2 : float
        Cost of giving up a label.
    norm : "l2" or "l1"
        Of the normal vectors in the margin term; "l1" makes the model a MILP.
    variant : None, "compact" or "paper"
        None is "compact".
    big_m : float, optional
        Used instead of the proved bound on a row's score, with a warning where it is not the proved one.
    kernel : None, "linear", "poly", "rbf", a registered name or callable
        None: hyperplanes in the features themselves. A kernel: hyperplanes in its feature space, with norm "l2"; a callable
        takes tables ``(n, p)`` and ``(m, p)`` scaled to [0, 1] and returns ``(n, m)``.
    gamma : "scale", "auto" or float
        Of "poly" and "rbf": "scale" is 1/(p · variance of the scaled table), "auto" is 1/p.
    degree : int
        Of "poly".
    coef0 : float
        Of "poly".
    """

    c1: float = Field(1.0, ge=0)
    c2: float = Field(1.0, ge=0)
    norm: Norm = "l2"
    variant: Literal["compact", "paper"] | None = None
    big_m: float | None = Field(None, gt=0)
    kernel: KernelChoice = None
    gamma: Gamma = "scale"
    degree: int = Field(3, ge=1)
    coef0: float = 0.0

    @model_validator(mode="after")
    def _norm_has_kernel(self) -> Self:
        if self.kernel is not None and self.norm == "l1":
            raise ValueError(
                "norm='l1' has no kernel form, as the sum of a vector's entries depends on the basis; "
                "give norm='l2', or leave kernel out"
            )
        return self


def centred_entries(table: Data | Shape, p: int) -> int:
    """Nonzeros of the centred rows with ``p`` columns; of a shape, all of their values."""
    if isinstance(table, Data):
        return int(np.count_nonzero(table.X - table.X.mean(axis=0)))
    return table.n * p


def model_columns(params: Any, table: Data | Shape) -> int:
    """Columns of the rows that a model is built on; of a shape with a kernel, as many as samples: no kernel needs more."""
    return table.n if isinstance(table, Shape) and params.kernel is not None else table.p


def constant_side(data: Data) -> float:
    """+1 or -1: the class with more weight."""
    return 1.0 if float((data.weights * data.sign).sum()) >= 0 else -1.0


def depth_of(params: Any) -> int:
    """Levels above the last one; RE-SVM has none."""
    return int(getattr(params, "depth", 0))


def constant_margin_tree(data: Data, params: Any) -> MarginTree:
    """No split anywhere; every intercept says the heavier class."""
    depth = depth_of(params)
    T = 2 ** (depth + 1) - 1
    splits = np.zeros((T, data.p)), np.full(T, constant_side(data)), np.zeros(T, dtype=bool)
    return tree_on(data, MarginTree, depth, *splits)


def known_cost(data: Data, params: Any, upper_bound: float) -> float:
    """``upper_bound``, or where it is infinite the objective of the best constant tree."""
    if not np.isinf(upper_bound):
        return upper_bound
    constant = constant_margin_tree(data, params)
    return evaluate(constant, data.X_original, data.y, params, data.weights).objective


def largest_big_m(W: float, M: FloatArray) -> dict[str, float]:
    """The largest big-M of each family of rows, for bounds W on weights and M (n,) on scores."""
    return {"weights": W, "scores": float(M.max()), "hinge": 1 + float(M.max())}


def norms(omega: FloatArray, norm: str) -> FloatArray:
    """Norm of each row of ``omega (T, p)``."""
    return np.sqrt((omega**2).sum(axis=1)) if norm == "l2" else np.abs(omega).sum(axis=1)


def spread(rows: Data, norm: str) -> float:
    """Length to expect of Σ_i ±(x_i - mean), signs drawn by lot, in the norm dual to ``norm``; 1 where rows are all alike.

    With "l2" the root of the summed squared distances from the mean, with "l1" that of the widest column alone.
    A row of weight 2 counts like two rows.
    """
    mean = rows.weights @ rows.X / rows.weights.sum()
    squares = rows.weights @ (rows.X - mean) ** 2
    return float(np.sqrt(squares.sum() if norm == "l2" else squares.max())) or 1.0


def noise_cost(rows: Data, norm: str) -> float:
    """The c1 up to which no hyperplane pays for its margin ½||ω|| where labels are drawn by lot: ½ / spread."""
    return 0.5 / spread(rows, norm)


def node_costs(
    tree: MarginTree,
    M: FloatArray,
    sign: FloatArray,
    c1: float,
    c2: float,
    relabelled: BoolArray | None,
) -> tuple[FloatArray, BoolArray, IntArray]:
    """Errors e (n, T) and relabelled marks (n, T) of every row in the nodes it visits, and the paths (n, D + 1).

    Each row takes the cheaper of c1·max(0, 1 - y s) and c2 + c1·max(0, 1 + y s), unless ``relabelled (n, T)``
    prescribes it.
    """
    path = tree._route(M)
    error = np.zeros((len(M), tree.n_nodes))
    marks = np.zeros((len(M), tree.n_nodes), dtype=bool)
    for level in range(tree.depth + 1):
        for t in np.unique(path[:, level]):
            rows = np.flatnonzero(path[:, level] == t)
            ys = sign[rows] * tree.node_score(int(t), M[rows])
            keep, give_up = np.maximum(0.0, 1.0 - ys), np.maximum(0.0, 1.0 + ys)
            xi = c2 + c1 * give_up < c1 * keep if relabelled is None else relabelled[rows, t - 1]
            error[rows, t - 1] = np.where(xi, give_up, keep)
            marks[rows, t - 1] = xi
    return error, marks, path


def evaluate(
    tree: MarginTree,
    X: FloatArray,
    y: IntArray,
    params: Any,
    weights: FloatArray,
    relabelled: BoolArray | None = None,
) -> Evaluation:
    """Objective of a margin tree on rows ``X (n, p)`` in original units as an :class:`Evaluation`, walking the tree.

    ``y (n,)`` holds indices into the tree's classes (1 is +1). Nodes that do not split are charged by the sign of their
    intercept.
    """
    M, sign = tree.scaling.transform(X), np.where(y > 0, 1.0, -1.0)
    c1, c2, c3 = params.c1, params.c2, getattr(params, "c3", 0.0)
    error, marks, path = node_costs(tree, M, sign, c1, c2, relabelled)
    largest, splits = float(norms(tree.omega, params.norm).max()), float(tree.split.sum())
    e, xi = float((weights @ error).sum()), float((weights @ marks).sum())
    terms = {"margin": params.margin_cost(largest), "errors": c1 * e, "relabelled": c2 * xi}
    if c3:
        terms["splits"] = c3 * splits
    predicted = tree.class_index_at(path, M)
    wrong = predicted != (sign > 0)
    # Rows whose charged class at the last level is not the class that the tree predicts (an unsplit node below).
    last = np.zeros(len(M), dtype=bool)
    for t in np.unique(path[:, -1]):
        rows = np.flatnonzero(path[:, -1] == t)
        last[rows] = tree.node_score(int(t), M[rows]) >= 0
    counts = {
        "errors": e,
        "relabelled": xi,
        "relabelled_rows": float(marks.any(axis=1).sum()),
        "splits": splits,
        "largest_norm": largest,
        "wrong_rows": float(wrong.sum()),
        "charged_otherwise": float((last.astype(int) != predicted).sum()),
    }
    return Evaluation(sum(terms.values()), terms, counts, marks)


def records(tree: MarginTree, data: Data, c1: float, c2: float, marks: BoolArray) -> tuple[Relabelled, ...]:
    """The relabelled rows by node, with what each costs there."""
    error, _, _ = node_costs(tree, data.X, data.sign, c1, c2, marks)
    cost = data.weights[:, None] * (c2 + c1 * error)
    return tuple(Relabelled(int(i), int(t) + 1, float(cost[i, t])) for i, t in np.argwhere(marks))


def recorded(tree: MarginTree, data: Data, params: Any, marks: BoolArray) -> MarginTree:
    """The tree with its record of the relabelled rows."""
    return tree.with_relabelled(records(tree, data, params.c1, params.c2, marks))


def pad(tree: MarginTree, depth: int, data: Data) -> MarginTree:
    """The same splits in a heap of depth ``depth``; new nodes do not split and say their rows' heavier class.

    Raises
    ------
    TreeNotAdmitted
        If the tree splits below the model's last level.
    """
    T = 2 ** (depth + 1) - 1
    if tree.split[T:].any():
        raise TreeNotAdmitted(
            f"The tree has {tree.depth + 1} levels of hyperplanes and the model {depth + 1}. "
            f"Build the model with depth={tree.depth}."
        )
    omega, omega0, split = np.zeros((T, data.p)), np.full(T, constant_side(data)), np.zeros(T, dtype=bool)
    both = slice(min(T, tree.n_nodes))
    omega[both], omega0[both], split[both] = tree.omega[both], tree.omega0[both], tree.split[both]
    out = replace(tree, depth=depth, omega=omega, omega0=omega0, split=split, relabelled=())
    for level in range(tree.depth + 1, depth + 1):
        path = out._route(data.X)
        for t in np.unique(path[:, level]):
            rows = path[:, level] == t
            omega0[t - 1] = 1.0 if (data.weights[rows] * data.sign[rows]).sum() >= 0 else -1.0
    return out


def normalise_margin(tree: MarginTree, data: Data, params: Any) -> MarginTree:
    """Rewrite ``tree`` for the data's scaling and the model's depth, and move intercepts towards the rows.

    Where all training rows have a score of one sign beyond 1, the intercept moves until the smallest is 1: no side
    changes and no error grows, and the scores then obey the proved bounds (:func:`blocks.big_m.score_bound`).
    Unsplit nodes have a zero normal vector.
    """
    if not isinstance(tree, MarginTree):
        raise TreeNotAdmitted(
            f"The SVM models take margin trees, and this is an {type(tree).__name__}: it has no margins. octsvm.fit(..., start=) "
            "makes one with margins of it. Elsewhere give the tree of a fit of theirs, or octsvm.from_sklearn of a linear classifier."
        )
    require_same_features(tree, data)
    if tuple(tree.classes) != tuple(data.classes):
        raise TreeNotAdmitted(
            f"The tree separates the classes {tree.classes!r} and the model's data has {data.classes!r}."
        )
    tree = pad(rescaled(tree, data.scaling), depth_of(params), data)
    omega, omega0 = np.where(tree.split[:, None], tree.omega, 0.0), tree.omega0.copy()
    tree = replace(tree, omega=omega, omega0=omega0)
    for t in range(1, tree.n_nodes + 1):
        omega0[t - 1] -= beyond(tree.node_score(t, data.X))
    return tree


def beyond(score: FloatArray) -> float:
    """By how much the smallest of scores of one sign is beyond 1, in that direction; 0 where there is no such margin."""
    return max(0.0, float(score.min()) - 1) + min(0.0, float(score.max()) + 1)


def read_margin_tree(model: pyo.ConcreteModel, depth: int, split: BoolArray) -> MarginTree:
    """The tree in the values of the hyperplane block; the record of relabelled rows is empty."""
    return tree_on(model.info.data, MarginTree, depth, *read_hyperplanes(model, split), split)


def read_hyperplanes(model: pyo.ConcreteModel, split: BoolArray) -> tuple[FloatArray, FloatArray]:
    """ω (T, p) and ω_0 (T,) of nodes 1 to T for rows that are not centred; ω is zero where a node does not ``split`` (T,)."""
    nodes = range(1, len(split) + 1)
    omega = np.where(split[:, None], table(model.split.omega, nodes, range(model.info.data.p)), 0.0)
    return omega, values(model.split.omega0, list(nodes)) - omega @ model.split.center


def snapping_shifts(score: FloatArray, omega: FloatArray, path: IntArray) -> FloatArray:
    """By how little to move the intercepts (T,) so that every row goes where the solver said (``path (n, D + 1)``).

    ``score (n, T)`` and ``omega (T, p)`` are of the nodes. A row on a boundary comes back from a solver a rounding error
    to either side of it. Where one shift cannot separate the two sides, nothing is moved.
    """
    shift = np.zeros(len(omega))
    for t in range(1, 2 ** (path.shape[1] - 1)):
        left, right = sides(path, t)
        low = float(score[left, t - 1].max(initial=-np.inf))
        high = float(score[right, t - 1].min(initial=np.inf))
        hair = 1e-9 * (1.0 + float(np.abs(omega[t - 1]).sum()))
        if not (low < 0 <= high or high - low <= 2 * hair):
            shift[t - 1] = hair - high if high < 0 else -hair - low
    return shift


def require_beyond(score: FloatArray, path: IntArray, mu: float) -> None:
    """Refuse ``score (n, T)`` of nodes where a row goes left by its ``path (n, D + 1)`` with -μ < s < 0.

    Raises
    ------
    TreeNotAdmitted
    """
    for t in range(1, 2 ** (path.shape[1] - 1)):
        rows = np.flatnonzero(sides(path, t)[0])
        s = score[rows, t - 1]
        if len(rows) and s.max() > -mu + FEASIBILITY:
            i = int(rows[np.argmax(s)])
            raise TreeNotAdmitted(
                f"Row {i} goes left at node {t} with score {s.max():.3g}, and the model wants rows on the left to "
                f"be at most {-mu:g} (mu_svm). Move the intercept, or scale the node's weights up."
            )


def with_given_up(model: pyo.ConcreteModel, tree: MarginTree) -> MarginTree:
    """The tree with its record of the rows that the model's ξ relabels in the nodes that they visit."""
    data, T = model.info.data, tree.n_nodes
    marks = visited(tree._route(data.X), T)
    if hasattr(model, "relabelling"):
        marks &= table(model.relabelling.xi, range(data.n), range(1, T + 1)) > 0.5
    else:
        marks[:] = False
    return recorded(tree, data, model.info.params, marks)


def embed_margin_tree(
    model: pyo.ConcreteModel, tree: MarginTree, relabelled: BoolArray | None
) -> tuple[MarginTree, IntArray, FloatArray]:
    """Set ``split``, ``hinge`` and ``relabelling``; return the tree with its record, the paths (n, D + 1) and the scores (n, T).

    Each row takes the cheaper of error and relabelling unless ``relabelled (n, T)`` prescribes it, or that block was taken
    out of the model.

    Raises
    ------
    TreeNotAdmitted
        It costs more than the bound that the model's big-M was built from.
    """
    data, params = model.info.data, model.info.params
    block = model.component("relabelling")
    if block is None:
        relabelled = np.zeros((data.n, tree.n_nodes), dtype=bool)
    found = evaluate(tree, data.X_original, data.y, params, data.weights, relabelled)
    require_within(found.objective, model.info.upper_bound)
    error, marks, path = node_costs(tree, data.X, data.sign, params.c1, params.c2, relabelled)
    given_up, score = marks.copy(), tree._node_scores(data.X)
    if block is not None:
        # One that the user fixed at a node where its row is not costs what it costs, and changes no tree.
        for (i, t), xi in block.xi.items():
            if xi.fixed and t not in path[i]:
                given_up[i, t - 1] = xi.value == 1
        set_relabelling(block, given_up)
    set_hyperplanes(model.split, tree.omega, tree.omega0, score)
    set_hinge(model.hinge, error, given_up, model.split)
    return recorded(tree, data, params, marks), path, score


def require_within(objective: float, upper_bound: float) -> None:
    """Refuse a tree that is worse than the bound the model's big-M constants were built from.

    Raises
    ------
    TreeNotAdmitted
    """
    if objective > upper_bound * (1 + 1e-6) + 1e-12:
        raise TreeNotAdmitted(
            f"The tree's objective {objective:.8g} is worse than {upper_bound:.8g}, the bound that the model's big-M "
            "was built from (the best of the constant classifier and the start given to build). Trees as bad as that "
            "are cut off on purpose; embed a better one."
        )


class MarginFormulation(Formulation):
    """What RE-SVM and OCTSVM share."""

    Tree = MarginTree
    two_classes_only = True
    uses_scaling = True
    variants = ("compact", "paper")
    converter = "octsvm.heuristics.axis_start:margin_tree_of"
    libraries = LIBRARIES
    libraries_for = staticmethod(libraries_for)
    grid = "octsvm.parameter_grid:margin_path"
    evaluate = staticmethod(evaluate)
    constant_tree = staticmethod(constant_margin_tree)
    model_rows = staticmethod(model_rows)
    normalise = staticmethod(normalise_margin)
