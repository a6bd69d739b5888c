"""Constraint blocks that models are assembled from.

Each function adds one ``pyo.Block`` under a fixed name and returns it; it takes the blocks it builds on as
arguments, never by their names. Any of them can be used in a model of your own, left out, or exchanged. Each
declares with :func:`describe` which sample, node and feature its variables are about; :func:`subject` says it of a variable.

==================  =====================================================================================
``topology``        :func:`add_topology`: the nodes of a full binary tree
``split``           :func:`add_cut_splits`, :func:`add_axis_splits`, :func:`add_oblique_splits`, :func:`add_hyperplanes`
``pruning``         :func:`add_pruning`: which nodes carry a hyperplane
``assignment``      :func:`add_group_assignment`, :func:`add_leaf_assignment`, :func:`add_level_assignment`
``routing``         :func:`add_flow_routing`, :func:`add_axis_routing`, :func:`add_oblique_routing`, :func:`add_side_routing`, ...
``leaf_label``      :func:`add_group_leaf_labels`, :func:`add_leaf_labels`, :func:`add_counted_leaf_labels`
``subtree_bounds``  :func:`add_subtree_bounds`: least costs of the two sides of the root
``relabelling``     :func:`add_relabelling`
``hinge``           :func:`add_hinge`, :func:`add_product_hinge`, :func:`add_side_hinge`
``margin``          :func:`add_margin`, :func:`add_squared_margin`
``prediction``      :func:`add_leaf_prediction`, :func:`add_side_prediction`: classes, for rows of one's own
==================  =====================================================================================
"""

from .assignment import add_leaf_assignment, add_level_assignment
from .extras import add_feature_budget, add_relabelling_cap
from .flow import (
    add_cut_splits,
    add_flow_routing,
    add_group_assignment,
    add_group_leaf_labels,
    add_subtree_bounds,
)
from .hinge import add_hinge, add_product_hinge, add_side_hinge
from .leaf_label import add_counted_leaf_labels, add_leaf_labels
from .margin import SecondOrderCone, SquaredNorm, add_margin, add_squared_margin
from .prediction import add_leaf_prediction, add_side_prediction
from .relabelling import add_relabelling
from .roles import Role, Subject, describe, groups_of, role_of, subject
from .routing import add_axis_routing, add_leafwise_axis_routing, add_oblique_routing, add_side_routing
from .split import add_axis_splits, add_hyperplanes, add_oblique_splits, add_pruning
from .topology import Topology, add_topology
from .valid_inequalities import add_convex_hull_inequalities, add_misrouting_inequalities

# Former names, after the names of their blocks.
add_side_costs, add_mixes = add_misrouting_inequalities, add_convex_hull_inequalities

__all__ = [
    "Role",
    "SecondOrderCone",
    "SquaredNorm",
    "Subject",
    "Topology",
    "add_axis_routing",
    "add_axis_splits",
    "add_convex_hull_inequalities",
    "add_counted_leaf_labels",
    "add_cut_splits",
    "add_feature_budget",
    "add_flow_routing",
    "add_group_assignment",
    "add_group_leaf_labels",
    "add_hinge",
    "add_hyperplanes",
    "add_leaf_assignment",
    "add_leaf_labels",
    "add_leaf_prediction",
    "add_leafwise_axis_routing",
    "add_level_assignment",
    "add_margin",
    "add_misrouting_inequalities",
    "add_mixes",
    "add_oblique_routing",
    "add_oblique_splits",
    "add_product_hinge",
    "add_pruning",
    "add_relabelling",
    "add_relabelling_cap",
    "add_side_costs",
    "add_side_hinge",
    "add_side_prediction",
    "add_side_routing",
    "add_squared_margin",
    "add_subtree_bounds",
    "add_topology",
    "describe",
    "groups_of",
    "role_of",
    "subject",
]
