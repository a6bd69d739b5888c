"""Drop, swap and add blocks: four models that no parameter reaches.

Run it with ``python docs/examples/compose_your_own.py``.
"""

import numpy as np
import pyomo.environ as pyo

import octsvm
from octsvm.formulations import blocks
from octsvm.formulations.blocks import big_m

rng = np.random.default_rng(4)
X = rng.random((10, 3)).round(3)
y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0.8, 1, -1)
y[3] *= -1  # a wrong label


def without_relabelling(X, sign, depth=1, c1=1.0, c3=0.1, mu=1e-3):
    """DROP: OCTSVM that has to believe every label, written as a recipe of blocks."""
    n = len(X)
    minority = min((sign > 0).sum(), (sign < 0).sum())
    known = (
        (depth + 1) * minority * 2 * c1
    )  # cost of the best tree without a split: the bound behind each big-M
    weights = big_m.weight_bound(known, "largest")
    scores = big_m.score_bound(weights, big_m.farthest(X))

    m = pyo.ConcreteModel(name="OCTSVM without relabelling")
    topology = blocks.add_topology(m, depth)
    nodes = topology.tree.nodes
    split = blocks.add_hyperplanes(m, nodes, X, weights, scores)
    pruning = blocks.add_pruning(m, topology, split, weights)
    assignment = blocks.add_level_assignment(m, topology, n)
    blocks.add_side_routing(m, topology, split, assignment, scores, mu)
    hinge = blocks.add_hinge(m, nodes, split, sign, scores, 1 + scores, assignment)
    margin = blocks.add_margin(m, nodes, split, "l2", weights / 2)
    m.cost = pyo.Expression(expr=margin.delta + c1 * sum(hinge.e.values()) + c3 * sum(pruning.d.values()))
    m.objective = pyo.Objective(expr=m.cost)
    return m


def swap_routing_and_labels(model):
    """SWAP: the printed rows of OCT for its compact ones; the optimum stays where it is."""
    data, assignment = model.info.data, model.assignment
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1] for column in data.X_original.T])
    top = np.maximum(ranks.max(axis=0), 1)
    model.del_component("routing")
    blocks.add_leafwise_axis_routing(
        model,
        model.topology,
        model.split,
        assignment,
        ranks / top,
        np.where(ranks.max(axis=0) > 0, 1 / top, 0),
    )
    model.del_component("leaf_label")
    label = blocks.add_counted_leaf_labels(model, model.topology, assignment, data.y, data.K, data.weights)
    model.cost.set_value(sum(label.L.values()) + model.info.params.alpha * sum(model.split.d.values()))
    return model


def add_prices(model, prices):
    """ADD: a block of one's own. A feature costs its price once, however many nodes use it."""
    omega = model.split.omega
    block = model.prices = pyo.Block(doc="features are bought once")
    block.bought = pyo.Var(range(len(prices)), domain=pyo.Binary)
    block.above = pyo.Constraint(
        list(omega), rule=lambda b, t, j: omega[t, j] <= omega[t, j].ub * b.bought[j]
    )
    block.below = pyo.Constraint(
        list(omega), rule=lambda b, t, j: omega[t, j] >= omega[t, j].lb * b.bought[j]
    )
    block.total = pyo.Expression(expr=sum(price * block.bought[j] for j, price in enumerate(prices)))
    model.objective.set_value(model.cost + block.total)  # cost stays the formulation's own
    return model


def main():
    """Solve all four and print what came of them."""
    m = without_relabelling(X, y.astype(float))
    result = octsvm.solve(m)  # no formulation any more: nothing is certified, and the result says so
    omega = np.array([[m.split.omega[t, j].value for j in range(3)] for t in m.topology.tree.nodes])
    omega0 = np.array([m.split.omega0[t].value for t in m.topology.tree.nodes]) - omega @ m.split.center
    print(
        f"dropped  relabelling: {result.objective:.4f} ({result.status}), largest norm {np.linalg.norm(omega, axis=1).max():.3f}"
    )
    print(f"         class read at the root: {(X @ omega[0] + omega0[0] >= 0).astype(int).tolist()}")

    plain = octsvm.build("oct", X, y, depth=2, alpha=0.4, variant="rank")
    before = octsvm.solve(plain).objective
    after = octsvm.solve(swap_routing_and_labels(plain)).objective
    print(f"swapped  routing and leaf labels of OCT: {before:.4f} before, {after:.4f} after")

    costs = {"depth": 1, "c1": 5.0, "c2": 10.0, "c3": 0.1}
    free = octsvm.fit("octsvm", X, y, **costs)
    m = octsvm.build("octsvm", X, y, **costs)
    blocks.add_feature_budget(m, m.split, 1)
    blocks.add_relabelling_cap(m, m.relabelling, 1)
    bound = octsvm.solve(m)
    used = np.flatnonzero(np.abs(bound.tree.omega).max(axis=0) > 1e-9)
    print(
        f"added    one feature, one relabelled row: {free.objective:.4f} before, {bound.objective:.4f} with features {used.tolist()}"
    )

    m = add_prices(octsvm.build("octsvm", X, y, **costs), prices=[1.0, 8.0, 4.0])
    priced = octsvm.solve(m)
    print(f"added    prices: {priced.objective:.4f}, of which features {pyo.value(m.prices.total):.1f}")
    print(f"         note: {priced.notes[-1]}")
    return result, (before, after), (free, bound), priced


if __name__ == "__main__":
    main()
