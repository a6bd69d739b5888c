"""RE-SVM: one support vector machine that may give up labels (Blanco, Japón, Puerto 2022); two classes.

    min ½‖ω‖₂² + c1 Σ e_i + c2 Σ ξ_i     s.t. (1 - 2ξ_i) y_i(ω'x_i + ω0) >= 1 - e_i,  e >= 0,  ξ binary

The default is linear in the constraints after a big-M split: with ξ = 0 and ξ = 1 the product row reads y s >= 1 - e
and -y s >= 1 - e, one of which is switched off. ``variant="paper"`` linearises the products ξω instead. Both have the
same optimum. ``norm="l1"`` minimises ‖ω‖₁ and makes the model a MILP.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyomo.environ as pyo

from . import blocks, margin_trees
from .base import BoolArray, Data, IntArray, ModelInfo, Tried, origin, structure
from .blocks import big_m
from .blocks.hinge import hinge_size, product_hinge_size
from .blocks.margin import set_margin, squared_margin_size
from .blocks.relabelling import relabelling_size
from .blocks.rows import linear, model_builder
from .blocks.sizes import BlockSize, Shape
from .blocks.split import hyperplanes_size
from .bounds.scores import Intervals, ScoreCosts, ScoreProblem
from .kernels import model_rows
from .registry import register
from .trees import MarginTree

NAME = "re_svm"
# Rows of the largest table proved optimal, by norm and depth: :mod:`octsvm.diagnostics.model_size` says how measured.
PROVED_ROWS: dict[str, dict[int, int]] = {"l2": {0: 20}, "l1": {0: 40}}


class RESVMParams(margin_trees.MarginParams):
    """Parameters of RE-SVM: those of :class:`~octsvm.formulations.margin_trees.MarginParams`; the margin term is ½‖ω‖₂² or ‖ω‖₁."""

    def margin_cost(self, size: float) -> float:
        """The margin term of a hyperplane whose norm is ``size``."""
        return size**2 / 2 if self.norm == "l2" else size


@model_builder
def build(data: Data, params: RESVMParams, upper_bound: float = np.inf) -> pyo.ConcreteModel:
    """Build RE-SVM on ``data`` (features in [0, 1]); ``upper_bound`` is the objective of a known
    solution; infinite: that of the best constant classifier.

    Source: Blanco, Japón, Puerto, (RE-SVM).
    """
    data.require_two_classes(NAME)
    data = model_rows(data, params)
    variant = params.variant or "compact"
    ub = margin_trees.known_cost(data, params, upper_bound)
    W = big_m.weight_bound(ub, "squared" if params.norm == "l2" else "norm")
    proved = big_m.score_bound(W, big_m.farthest(data.X, params.norm))
    M = big_m.chosen_score_bound(proved, params.big_m)
    E = big_m.error_bound(ub, params.c1, data.weights, M)

    m = pyo.ConcreteModel(name=f"RE-SVM ({variant}, {params.norm})")
    nodes = blocks.add_topology(m, 0).tree.nodes
    split = blocks.add_hyperplanes(m, nodes, data.X, W, M)
    relabelling = blocks.add_relabelling(m, nodes, data.n)
    if variant == "paper":
        W0 = big_m.intercept_bound(W, M, data.X - split.center, params.norm)
        hinge = blocks.add_product_hinge(m, nodes, split, relabelling, data.sign, data.X, W, W0, M, E)
    else:
        hinge = blocks.add_hinge(m, nodes, split, data.sign, M, E, relabelling=relabelling)
    margin = blocks.add_squared_margin(m, 1, split, params.norm)
    w = data.weights.tolist()
    m.cost = pyo.Expression(
        expr=margin.cost
        + linear(
            [params.c1 * v for v in w] + [params.c2 * v for v in w],
            [*(hinge.e[i, 1] for i in range(data.n)), *(relabelling.xi[i, 1] for i in range(data.n))],
        ),
        doc="½‖ω‖² + c1 Σ e_i + c2 Σ ξ_i",
    )
    m.objective = pyo.Objective(expr=m.cost, doc="margin, errors and relabelling")
    largest = margin_trees.largest_big_m(W, M) | {"scores_proved": float(proved.max())}
    m.info = ModelInfo(NAME, params, data, ub, largest, structure=structure(m))
    return m


def size(params: RESVMParams, table: Data | Shape) -> BlockSize:
    """What :func:`build` builds on ``table``; of a shape every value counts as nonzero."""
    n, p = table.n, margin_trees.model_columns(params, table)
    entries = margin_trees.centred_entries(table, p)
    printed = params.variant == "paper"
    hinge = product_hinge_size(n, p, 1, entries) if printed else hinge_size(n, 1)
    margin = squared_margin_size(p, params.norm)
    return hyperplanes_size(n, p, 1, entries) + relabelling_size(n, 1) + hinge + margin


def extract(model: pyo.ConcreteModel) -> MarginTree:
    """Read the hyperplane, and the rows whose label was given up, from the values of the model's variables."""
    tree = margin_trees.read_margin_tree(model, 0, np.ones(1, dtype=bool))
    return margin_trees.with_given_up(model, replace(tree, split=(tree.omega != 0).any(axis=1)))


def root_path(model: pyo.ConcreteModel) -> IntArray:
    """Every row sits at the one node (n, 1)."""
    return np.ones((model.info.data.n, 1), dtype=np.int64)


def embed(model: pyo.ConcreteModel, tree: MarginTree, relabelled: BoolArray | None = None) -> MarginTree:
    """Set every variable of ``model`` to the values that ``tree`` has there, and return the tree as embedded.

    Each row takes the cheaper of error and relabelling, unless ``relabelled (n, 1)`` prescribes it.

    Raises
    ------
    TreeNotAdmitted
        With the reason, e.g. where its objective is worse than the bound the model was built from.
    """
    tree = margin_trees.normalise_margin(tree, *origin(model, RESVMParams))
    tree, _, _ = margin_trees.embed_margin_tree(model, tree, relabelled)
    set_margin(model.margin, tree.omega)
    return tree


def scores(model: pyo.ConcreteModel) -> ScoreProblem | None:
    """The model as a function of its scores, within their bounds; None where these are below the proved ones, or for l1."""
    data, params = origin(model, RESVMParams)
    if params.norm != "l2" or model.info.big_m["scores"] < model.info.big_m["scores_proved"]:
        return None
    costs = ScoreCosts.of(data.X, data.sign, data.weights, params.c1, params.c2)
    low, high = np.full(len(costs.X), -np.inf), np.full(len(costs.X), np.inf)
    for i, g in enumerate(costs.group.tolist()):
        low[g] = max(low[g], model.split.s[i, 1].lb)
        high[g] = min(high[g], model.split.s[i, 1].ub)
    return ScoreProblem(costs, Intervals(low, high))


@register
class RESVM(margin_trees.MarginFormulation):
    """RE-SVM, as :mod:`octsvm.formulations.re_svm` says."""

    name = NAME
    title = "support vector machine with relabelling"
    Params = RESVMParams
    heuristic = "octsvm.heuristics.label_search:candidates"
    tried = Tried(
        ({"c1": [3.0, 10.0, 30.0, 100.0, 300.0], "c2": margin_trees.RATIOS},),
        usual={"c1": 10.0, "c2": 100.0},
        kernels=({**margin_trees.RADIAL, "c1": [3.0, 30.0, 300.0]},),
    )
    proved_rows = PROVED_ROWS
    build = staticmethod(build)
    extract = staticmethod(extract)
    embed = staticmethod(embed)
    size = staticmethod(size)
    assigned_path = staticmethod(root_path)
    scores = staticmethod(scores)

    def unit_cost(self, data: Data, params: RESVMParams) -> float:
        """The c1 at which labels drawn by lot lead to scores of about 1: √n / spread², or 1 / spread with norm "l1".

        Half the square of the norm lets every hyperplane pay, ω = c1·Σ_i y_i x_i at first.
        """
        rows = model_rows(data, params)
        spread = margin_trees.spread(rows, params.norm)
        return float(np.sqrt(rows.weights.sum())) / spread**2 if params.norm == "l2" else 1.0 / spread
