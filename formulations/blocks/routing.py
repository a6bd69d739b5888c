"""Block ``routing``: a row sits where the splits send it."""

from __future__ import annotations

import pyomo.environ as pyo

from ..base import FloatArray, IntArray, set_values
from .roles import describe
from .rows import linear
from .sizes import BlockSize, binary, continuous, rows
from .topology import Topology


def add_left_needs_split(
    block: pyo.Block, topology: pyo.Block, splits: pyo.Block, assignment: pyo.Block
) -> None:
    """No leaf left of a node that does not split is in use."""
    tree = topology.tree
    pairs = [(t, m) for t in tree.leaf for m in tree.left_ancestors(t)]
    block.left_needs_split = pyo.Constraint(
        pairs,
        rule=lambda b, t, m: assignment.l[t] <= splits.d[m],
        doc="l_t <= d_m, m ∈ A_L(t): implied, tightens",
    )


def _add_position(
    block: pyo.Block, topology: pyo.Block, splits: pyo.Block, X: FloatArray, low: float
) -> None:
    """q_im (at least ``low``) and the rows that define it."""
    branch, I, J = topology.tree.branch, range(len(X)), range(X.shape[1])
    block.q = pyo.Var(I, branch, bounds=(low, 1), doc="q_im = a_m'x_i")
    describe(block.q, sample=0, node=1)
    rows = [[*row, -1.0] for row in X.tolist()]
    a = {m: [splits.a[m, j] for j in J] for m in branch}
    block.position = pyo.Constraint(
        I,
        branch,
        rule=lambda b, i, m: (0.0, linear(rows[i], [*a[m], b.q[i, m]]), 0.0),
        doc="q_im = a_m'x_i",
    )


def _steps(step: FloatArray) -> tuple[float, float, list[float]]:
    """ε_min and ε_max of the features that vary (1 where none does), and ε_j - ε_min of each (0 of a constant one)."""
    usable = step > 0
    low = float(step[usable].min()) if usable.any() else 1.0
    high = float(step[usable].max()) if usable.any() else 1.0
    return low, high, [float(e - low) if e > 0 else 0.0 for e in step]


def add_axis_routing(
    model: pyo.ConcreteModel,
    topology: pyo.Block,
    splits: pyo.Block,
    assignment: pyo.Block,
    X: FloatArray,
    step: FloatArray,
) -> pyo.Block:
    """Add ``model.routing``: two rows per row and branch node, on one position variable.

    Needs: ``topology``, axis ``splits``, leaf ``assignment``. Data: ``X (n, p)`` in [0,1]; ``step (p,)`` is ε_j,
    the smallest gap between two values of feature j (0 for a constant column).

        q_im = a_m'x_i                 g_m = a_m'(ε - ε_min) + ε_min
        q_im       >= b_m - (1 - Σ_{t right of m} z_it)
        q_im + g_m <= b_m + (1 + ε_max)(1 - Σ_{t left of m} z_it)

    Source: Bertsimas & Dunn (2017), (13), (14), the left row corrected as below. **differs:** the leaves on one side
    of m share a row. Their z sum to 0 or 1, and to 1 exactly if the row of the source is in force for one of
    them, so the integer points are the same; the relaxation is tighter and there are fewer rows.
    Size: (n + 1)|τ_B| variables, 3n|τ_B| + |τ_B| rows and those of ``left_needs_split``.
    """
    tree, I = topology.tree, range(len(X))
    low, high, beyond = _steps(step)
    block = model.routing = pyo.Block(doc="axis-parallel routing to leaves")
    _add_position(block, topology, splits, X, 0.0)
    block.g = pyo.Var(tree.branch, bounds=(0, 1 + high), doc="what a row must stay below the threshold by")
    describe(block.g, node=0)
    block.gap = pyo.Constraint(
        tree.branch,
        rule=lambda b, m: (
            -low,
            linear([*beyond, -1.0], [*(splits.a[m, j] for j in range(X.shape[1])), b.g[m]]),
            -low,
        ),
        doc="g_m = a_m'(ε - ε_min) + ε_min",
    )

    @block.Constraint(I, tree.branch, doc="a_m'x_i >= b_m - (1 - z_it), t right of m (B&D 13)")
    def goes_right(b: pyo.Block, i: int, m: int) -> object:
        below = tree.leaves_below(2 * m + 1)
        z = [assignment.z[i, t] for t in below]
        return (-1.0, linear([1.0, -1.0] + [-1.0] * len(z), [b.q[i, m], splits.b[m], *z]), None)

    big = 1.0 + high

    @block.Constraint(
        I, tree.branch, doc="a_m'(x_i + ε - ε_min) + ε_min <= b_m + (1 + ε_max)(1 - z_it), t left of m"
    )
    def goes_left(b: pyo.Block, i: int, m: int) -> object:
        z = [assignment.z[i, t] for t in tree.leaves_below(2 * m)]
        return (None, linear([1.0, 1.0, -1.0] + [big] * len(z), [b.q[i, m], b.g[m], splits.b[m], *z]), big)

    add_left_needs_split(block, topology, splits, assignment)
    return block


def axis_routing_size(tree: Topology, n: int, entries: int, gaps: int) -> BlockSize:
    """What :func:`add_axis_routing` adds; ``gaps`` features have a larger ε than the smallest, constant ones apart."""
    B, pairs = len(tree.branch), tree.n_left_pairs
    defined = continuous((n + 1) * B) + rows(n * B, 1, B * entries) + rows(B, 1, B * gaps)
    sides = rows(n * B, 2, n * pairs) + rows(n * B, 3, n * pairs)
    return defined + sides + rows(pairs, 2)


def set_axis_routing(block: pyo.Block, feature: IntArray, X: FloatArray, step: FloatArray) -> None:
    """Values of q and g, where the block has them; node t splits on ``feature[t - 1]`` (-1: it does not split)."""
    if not hasattr(block, "g"):
        return
    low, _, _ = _steps(step)
    set_values(block.q, lambda i, t: 0.0 if feature[t - 1] < 0 else X[i, feature[t - 1]])
    set_values(block.g, lambda t: low if feature[t - 1] < 0 else step[feature[t - 1]])


def add_leafwise_axis_routing(
    model: pyo.ConcreteModel,
    topology: pyo.Block,
    splits: pyo.Block,
    assignment: pyo.Block,
    X: FloatArray,
    step: FloatArray,
) -> pyo.Block:
    """Add ``model.routing`` as printed: one row per row, leaf and ancestor.

    Needs and data: as :func:`add_axis_routing`.

        a_m'x_i >= b_m - (1 - z_it)                                     ∀i, t ∈ τ_L, m ∈ A_R(t)
        a_m'(x_i + ε - ε_min) + ε_min <= b_m + (1 + ε_max)(1 - z_it)     ∀i, t ∈ τ_L, m ∈ A_L(t)

    Source: Bertsimas & Dunn (2017), (13), (14). **differs:** the left row subtracts ε_min inside and adds it
    outside, so that an unsplit node (a = 0, b = 0) sends every row right. Size: n·D·2^D rows.
    """
    tree, I = topology.tree, range(len(X))
    low, high, beyond = _steps(step)
    big = 1.0 + high
    block = model.routing = pyo.Block(doc="axis-parallel routing to leaves, a row per leaf and ancestor")
    a = {m: [splits.a[m, j] for j in range(X.shape[1])] for m in tree.branch}
    right_rows, left_rows = X.tolist(), (X + beyond).tolist()
    right = [(t, m) for t in tree.leaf for m in tree.right_ancestors(t)]
    left = [(t, m) for t in tree.leaf for m in tree.left_ancestors(t)]
    block.goes_right = pyo.Constraint(
        I,
        right,
        rule=lambda b, i, t, m: (
            -1.0,
            linear([*right_rows[i], -1.0, -1.0], [*a[m], splits.b[m], assignment.z[i, t]]),
            None,
        ),
        doc="a_m'x_i >= b_m - (1 - z_it) (B&D 13)",
    )
    block.goes_left = pyo.Constraint(
        I,
        left,
        rule=lambda b, i, t, m: (
            None,
            linear([*left_rows[i], -1.0, big], [*a[m], splits.b[m], assignment.z[i, t]]),
            big - low,
        ),
        doc="a_m'(x_i + ε - ε_min) + ε_min <= b_m + (1 + ε_max)(1 - z_it) (B&D 14, corrected)",
    )
    return block


def leafwise_axis_routing_size(tree: Topology, n: int, entries: int, left_entries: int) -> BlockSize:
    """What :func:`add_leafwise_axis_routing` adds; ``left_entries`` are those of the table with ε - ε_min added."""
    pairs = tree.n_left_pairs
    return rows(2 * n * pairs, 2, pairs * (entries + left_entries))


def add_oblique_routing(
    model: pyo.ConcreteModel,
    topology: pyo.Block,
    splits: pyo.Block,
    assignment: pyo.Block,
    X: FloatArray,
    mu: float,
) -> pyo.Block:
    """Add ``model.routing``: rows left of an oblique split stay below its threshold by ``mu``.

    Needs: ``topology``, oblique ``splits``, leaf ``assignment``. Data: ``X (n, p)`` in [0,1]; ``mu`` in score units.

        q_im = a_m'x_i
        q_im      >= b_m - 2(1 - Σ_{t right of m} z_it)
        q_im + μ  <= b_m + (2 + μ)(1 - Σ_{t left of m} z_it)

    Source: Bertsimas & Dunn (2017), Section 4. **differs:** the leaves on one side share a row (as in
    :func:`add_axis_routing`). Size: n|τ_B| variables, 3n|τ_B| rows and those of ``left_needs_split``.
    """
    tree, I = topology.tree, range(len(X))
    block = model.routing = pyo.Block(doc="oblique routing to leaves")
    _add_position(block, topology, splits, X, -1.0)

    @block.Constraint(I, tree.branch, doc="a_m'x_i >= b_m - 2(1 - z_it), t right of m")
    def goes_right(b: pyo.Block, i: int, m: int) -> object:
        z = [assignment.z[i, t] for t in tree.leaves_below(2 * m + 1)]
        return (-2.0, linear([1.0, -1.0] + [-2.0] * len(z), [b.q[i, m], splits.b[m], *z]), None)

    @block.Constraint(I, tree.branch, doc="a_m'x_i + μ <= b_m + (2 + μ)(1 - z_it), t left of m")
    def goes_left(b: pyo.Block, i: int, m: int) -> object:
        z = [assignment.z[i, t] for t in tree.leaves_below(2 * m)]
        return (None, linear([1.0, -1.0] + [2.0 + mu] * len(z), [b.q[i, m], splits.b[m], *z]), 2.0)

    add_left_needs_split(block, topology, splits, assignment)
    return block


def oblique_routing_size(tree: Topology, n: int, entries: int) -> BlockSize:
    """What :func:`add_oblique_routing` adds."""
    B, pairs = len(tree.branch), tree.n_left_pairs
    defined = continuous(n * B) + rows(n * B, 1, B * entries)
    return defined + rows(2 * n * B, 2, 2 * n * pairs) + rows(pairs, 2)


def set_oblique_routing(block: pyo.Block, score: FloatArray) -> None:
    """Values of q: a_t'x_i (n, B)."""
    set_values(block.q, lambda i, t: score[i, t - 1])


def add_side_routing(
    model: pyo.ConcreteModel,
    topology: pyo.Block,
    hyperplanes: pyo.Block,
    assignment: pyo.Block,
    score_bound: FloatArray,
    mu: float | None,
    last_level: bool = False,
    forced: bool = True,
) -> pyo.Block:
    """Add ``model.routing``: θ_it says on which side of node t row i lies, and rows follow their sides.

    Needs: ``topology``, ``hyperplanes``, level ``assignment``. Data: ``score_bound (n,)`` M_i; ``mu`` (the margin's
    unit is 1) or None for the rows as printed; ``last_level`` adds θ where no row is routed any more (as printed);
    ``forced`` adds the two rows that leave a continuous z no choice.

        (8)  s_it >= -M_i(1 - θ_it)                (9)  s_it <= M_i θ_it
        (9′) s_it <= M_i θ_it - μ z_i,2t           replaces (9) at branch nodes where ``mu`` is given
        (10) z_it - z_i,2t <= θ_it                 (11) z_it - z_i,2t+1 <= 1 - θ_it
        forced: z_i,2t <= 1 - θ_it, z_i,2t+1 <= θ_it

    Source: Blanco, Japón, Puerto (8)-(11). **differs:** (9′) keeps a row that goes left strictly left. As printed,
    a row with s = 0 chooses its side, and the model has optima that belong to no tree. No θ on the last level:
    nothing depends on it. Size: n|τ_B| binaries, 6n|τ_B| rows.
    """
    tree = topology.tree
    I = range(len(score_bound))
    where = tree.nodes if last_level else tree.branch
    block = model.routing = pyo.Block(doc="rows follow the side they lie on")
    block.theta = pyo.Var(I, where, domain=pyo.Binary, doc="θ_it = 1: row i lies right of hyperplane t")
    describe(block.theta, sample=0, node=1, open_if_absent=True)
    s, z, M = hyperplanes.s, assignment.z, [float(v) for v in score_bound]

    block.right_side = pyo.Constraint(
        I,
        where,
        rule=lambda b, i, t: (-M[i], linear([1.0, -M[i]], [s[i, t], b.theta[i, t]]), None),
        doc="s_it >= -M_i(1 - θ_it) (8)",
    )

    @block.Constraint(I, where, doc="s_it <= M_i θ_it - μ z_i,2t (9, 9′)")
    def left_side(b: pyo.Block, i: int, t: int) -> object:
        if mu is None or t not in tree.branch:
            return (None, linear([1.0, -M[i]], [s[i, t], b.theta[i, t]]), 0.0)
        return (None, linear([1.0, -M[i], mu], [s[i, t], b.theta[i, t], z[i, 2 * t]]), 0.0)

    block.goes_left = pyo.Constraint(
        I,
        tree.branch,
        rule=lambda b, i, t: (None, linear([1.0, -1.0, -1.0], [z[i, t], z[i, 2 * t], b.theta[i, t]]), 0.0),
        doc="z_it - z_i,2t <= θ_it (10)",
    )
    block.goes_right = pyo.Constraint(
        I,
        tree.branch,
        rule=lambda b, i, t: (None, linear([1.0, -1.0, 1.0], [z[i, t], z[i, 2 * t + 1], b.theta[i, t]]), 1.0),
        doc="z_it - z_i,2t+1 <= 1 - θ_it (11)",
    )
    if forced:
        block.left_needs_side = pyo.Constraint(
            I,
            tree.branch,
            rule=lambda b, i, t: (None, linear([1.0, 1.0], [z[i, 2 * t], b.theta[i, t]]), 1.0),
            doc="z_i,2t <= 1 - θ_it",
        )
        block.right_needs_side = pyo.Constraint(
            I,
            tree.branch,
            rule=lambda b, i, t: (None, linear([1.0, -1.0], [z[i, 2 * t + 1], b.theta[i, t]]), 0.0),
            doc="z_i,2t+1 <= θ_it",
        )
    return block


def side_routing_size(
    tree: Topology, n: int, strict: bool, last_level: bool = False, forced: bool = True
) -> BlockSize:
    """What :func:`add_side_routing` adds; ``strict`` where ``mu`` is given. z of the root is fixed."""
    B = len(tree.branch)
    theta = n * len(tree.nodes if last_level else tree.branch)
    sides = rows(2 * theta, 2, strict * n * B)
    ways = rows(2 * n * B, 3, -2 * n if B else 0)
    return binary(theta) + sides + ways + rows(2 * n * B * forced, 2)


def set_side_routing(block: pyo.Block, score: FloatArray) -> None:
    """Values of θ for the scores (n, T)."""
    set_values(block.theta, lambda i, t: score[i, t - 1] >= 0)
