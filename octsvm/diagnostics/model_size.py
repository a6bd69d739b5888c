"""How large a model gets, from formulas, before it is built; and what to expect of proving it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..errors import InvalidData, InvalidParameter
from ..formulations.base import Data, Formulation
from ..formulations.oct import DEFAULT
from ..formulations.octsvm import MOST_PAIRS, OCTSVMParams, chosen_rows
from ..formulations.params import Params
from ..formulations.registry import formulation as find_formulation


@dataclass(frozen=True)
class Size:
    """Counts of a model as a solver sees it.

    Attributes
    ----------
    formulation : str
    n, p, k : int
        Rows, features and classes of the table.
    problem : str
        Problem class, such as "MILP".
    variables, binaries : int
        Without those that are fixed.
    rows, cones : int
        Rows in all, and how many of them are second-order cones.
    nonzeros : int
        Variables that stand in the rows, each counted once a row, also where it is squared.
    exact : bool
        Whether zeros of a table were taken off. From n, p and k alone every value of the table counts as nonzero.
    """

    formulation: str
    n: int
    p: int
    k: int
    problem: str
    variables: int
    binaries: int
    rows: int
    cones: int
    nonzeros: int
    exact: bool

    @property
    def continuous(self) -> int:
        """Variables that are not binary."""
        return self.variables - self.binaries

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data."""
        return asdict(self) | {"continuous": self.continuous}


@dataclass
class _Zeros:
    """What a table takes off the formulas: zeros among the coefficients that come from it."""

    constant: int = 0  # columns that OCT fixes out
    position: int = 0  # in the matrix that the splits multiply, constant columns apart
    left: int = 0  # the same in the left rows of OCT as printed
    gap: int = 0  # features whose gap is the smallest one


@dataclass
class _Flow:
    """What the size of the flow variant of OCT depends on. Of a table that is not known: all values differ."""

    groups: int  # of equal rows
    features: int  # with two values or more
    cuts: int  # between neighbouring values of all features
    left: int  # pairs of a group and a feature in which it lies below the last value
    classes: int  # pairs of a group and a class that it has
    steps: int  # nonzeros of the bounds on subtrees: cuts where they change
    unsplit: int = 1  # whether there is a bound on trees without a split

    @classmethod
    def of_shape(cls, n: int, p: int) -> _Flow:
        return cls(n, p, p * (n - 1), p * (n - 1), n, 2 * p * (n - 1))


@dataclass
class _Mixes:
    """Rows on mixes in OCTSVM. Of a table that is not known: two classes of one size, and no sets of more than two rows."""

    nodes: int
    rows: int
    entries: int

    @classmethod
    def of(cls, keys: list[tuple[Any, int]]) -> _Mixes:
        entries = sum(2 * len(mix.rows) + 1 + (len(mix.rows) if t > 1 else 0) for mix, t in keys)
        return cls(len({t for _, t in keys}), len(keys), entries)

    @classmethod
    def of_shape(cls, n: int, depth: int) -> _Mixes:
        T, pairs = 2 ** (depth + 1) - 1, (n // 2) * (n - n // 2)
        if pairs * T > MOST_PAIRS:
            return cls(1, n // 2, 5 * (n // 2))
        return cls(T, pairs * T, pairs * (7 * T - 2))


class _Count:
    def __init__(self) -> None:
        self.free = self.binary = self.rows = self.cones = self.entries = 0

    def variables(self, free: int = 0, binary: int = 0) -> None:
        self.free += free
        self.binary += binary

    def row(self, count: int, entries: int) -> None:
        """``count`` rows of ``entries`` variables each."""
        self.rows += count
        self.entries += count * entries


def of_shape(formulation: str, n: int, p: int, k: int = 2, **params: Any) -> Size:
    """The size of the model of ``formulation`` on any table of n rows, p features and k classes.

    Parameters
    ----------
    **params
        Parameters of the formulation, as for :func:`octsvm.build`.

    Raises
    ------
    InvalidParameter, UnknownFormulation
    """
    form = find_formulation(formulation)
    checked = form.Params.make(formulation, **params)
    for name, value, least in (("n", n, 2), ("p", p, 1), ("k", k, 2)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidParameter(f"{name}={value!r} should be a whole number, {least} or more.")
    if k > n:
        raise InvalidParameter(f"k={k} classes need as many rows, and n={n}. Give k of at most n.")
    if form.binary_only and k > 2:
        raise InvalidParameter(
            f"{formulation!r} separates two classes, and k={k}. Choose 'oct' or 'oct_h', or k=2 for one class against "
            "the rest."
        )
    mixes = _Mixes.of_shape(n, getattr(checked, "depth", 0))
    return _count(form, checked, n, p, k, _Zeros(), _Flow.of_shape(n, p), mixes, exact=False)


def of_table(formulation: str, X: Any, y: Any, *, scale: bool = True, **params: Any) -> Size:
    """The size of the model of ``formulation`` on this table, to the last nonzero.

    Raises
    ------
    InvalidData, InvalidParameter, UnknownFormulation
    """
    from ..data import prepare

    form = find_formulation(formulation)
    checked = form.Params.make(formulation, **params)
    data = prepare(form, X, y, scale=scale)
    if data.K < 2:
        raise InvalidData(
            f"y holds one class only ({data.classes[0]!r}): the tree predicts it everywhere, and no model is built."
        )
    if hasattr(checked, "leaf_size"):
        checked.leaf_size(data.n)
    zeros, flow = _zeros(form, checked, data), _Flow.of_shape(data.n, data.p)
    if form.name == "oct" and (getattr(checked, "variant", None) or DEFAULT) == "flow":
        flow = _flow(checked, data)
    mixes = _Mixes.of(chosen_rows(data, checked) if isinstance(checked, OCTSVMParams) else [])
    return _count(form, checked, data.n, data.p, data.K, zeros, flow, mixes, exact=True)


def _flow(params: Any, data: Data) -> _Flow:
    import numpy as np

    from ..formulations.leaf_trees import error_factor
    from ..formulations.oct import groups_of, root_bounds

    groups = groups_of(data)
    factor = error_factor(data.y, data.weights, data.K, params.error_scale)
    bounds = root_bounds(groups, params, params.leaf_size(data.n), factor)
    steps = [np.diff(np.minimum(v, bounds.found.upper), prepend=0.0) for v in bounds.left + bounds.right]
    return _Flow(
        groups=len(groups.size),
        features=int((groups.n_values > 1).sum()),
        cuts=int((groups.n_values - 1).sum()),
        left=int((groups.position < groups.n_values - 1).sum()),
        classes=int((groups.weight > 0).sum()),
        steps=sum(int(np.count_nonzero(v)) for v in steps),
        unsplit=int(bounds.unsplit != 0),
    )


def _zeros(form: Formulation, params: Params, data: Data) -> _Zeros:
    import numpy as np

    if form.name == "oct":
        # The rows are built on ranks, or on scaled values: both are 0 at the smallest value of a column.
        from ..formulations.oct import _levels

        levels = _levels(data, getattr(params, "variant", None) or DEFAULT)
        usable = levels.step > 0
        X = levels.X[:, usable]
        beyond = levels.step[usable] - levels.step[usable].min() if usable.any() else levels.step[usable]
        return _Zeros(
            constant=int((~usable).sum()),
            position=int((X == 0).sum()),
            left=int((X + beyond == 0).sum()),
            gap=int((beyond == 0).sum()),
        )
    X = data.X if form.name == "oct_h" else data.X - data.X.mean(axis=0)
    return _Zeros(position=int(np.sum(X == 0)))


def _count(
    form: Formulation,
    params: Params,
    n: int,
    p: int,
    k: int,
    zeros: _Zeros,
    flow: _Flow,
    mixes: _Mixes,
    exact: bool,
) -> Size:
    counts = _Count()
    depth = getattr(params, "depth", 0)
    norm = getattr(params, "norm", "l1")
    if form.binary_only:
        _svm(counts, form.name, params, n, p, depth, zeros, mixes)
    elif form.name == "oct" and (getattr(params, "variant", None) or DEFAULT) == "flow":
        _oct_flow(counts, params, k, depth, flow)
    else:
        _leafy(counts, form.name, params, n, p, k, depth, zeros)
    problem = "MILP" if norm == "l1" else "MISOCP" if counts.cones else "MIQP"
    return Size(
        form.name,
        n,
        p,
        k,
        problem,
        counts.free + counts.binary,
        counts.binary,
        counts.rows,
        counts.cones,
        counts.entries,
        exact,
    )


def _leafy(m: _Count, name: str, params: Any, n: int, p: int, k: int, depth: int, zeros: _Zeros) -> None:
    B, L = 2**depth - 1, 2**depth
    pairs = depth * L // 2  # of a leaf and an ancestor on one side of it
    printed = name == "oct" and params.variant == "bd"
    p -= zeros.constant
    if name == "oct":
        m.variables(free=B, binary=B * (p + 1))
        m.row(B, p + 1)  # one_feature
        m.row(B, 2)  # threshold_needs_split
    else:
        m.variables(free=B * (2 * p + 1), binary=B)
        m.row(B, p + 1)  # weights_need_split
        m.row(2 * B * p, 2)  # abs_above, abs_below
        m.row(2 * B, 2)  # threshold_above, threshold_below
        if params.complexity == "features":
            m.variables(binary=B * p)
            m.row(3 * B * p, 2)  # used_above, used_below, feature_needs_split
            m.row(B, p + 1)  # split_needs_feature
    m.row(max(0, B - 1), 2)  # parent_splits
    # assignment
    m.variables(binary=(n + 1) * L)
    m.row(n, L)
    m.row(n * L, 2)
    m.row(L, n + 1)
    # routing
    if printed:
        m.row(2 * n * pairs, p + 2)
        m.entries -= pairs * (zeros.position + zeros.left)
    else:
        m.variables(free=n * B)
        m.row(n * B, p + 1)  # position
        m.entries -= B * zeros.position
        left = 2
        if name == "oct":
            left = 3
            m.variables(free=B)
            m.row(B, p + 1)  # gap
            m.entries -= B * zeros.gap
        m.row(n * B, 2)  # goes_right, and below the leaves on that side
        m.row(n * B, left)  # goes_left
        m.entries += 2 * n * pairs
        m.row(pairs, 2)  # left_needs_split
    # labels
    m.row(L, k + 1)
    if printed:
        m.variables(free=(k + 2) * L, binary=k * L)
        m.rows += k * L  # class_count: each row of the table stands in that of its class
        m.entries += (n + k) * L
        m.row(L, n + 1)
        m.row(2 * k * L, 4)
    else:
        m.variables(free=(n + 1) * L, binary=k * L)
        m.row(2 * n * L, 2)
        m.row(L, 2 * n + 1)


def _oct_flow(m: _Count, params: Any, k: int, depth: int, flow: _Flow) -> None:
    B, L, G = 2**depth - 1, 2**depth, flow.groups
    lower = max(0, B - 1)
    pairs = depth * L // 2  # of a leaf and an ancestor on one side of it
    # splits
    m.variables(binary=B * (flow.cuts + 1))
    m.row(B, flow.features + 1)
    m.row(B * (flow.cuts - flow.features), 2)
    m.row(lower, 2)
    # assignment
    m.variables(free=G * L, binary=L)
    m.row(G, L)
    m.row(G * L, 2)
    m.row(L, G + 1)
    # routing
    m.variables(free=G * lower)
    if depth:
        m.row(G, L // 2)  # root
        m.row(G * lower, 1)  # side
        m.entries += B * flow.left
        m.row(2 * G * lower, 1)  # goes_left, goes_right, and the leaves below
        m.entries += 2 * G * (pairs - L // 2)
    m.row(pairs, 2)
    # labels
    m.variables(free=(flow.classes + 1) * L, binary=k * L)
    m.row(L, k + 1)
    m.row(G * L, 1)
    m.entries += flow.classes * L
    m.row(flow.classes * L, 2)
    m.row(L, G + flow.classes + 1)
    # bounds on subtrees
    priced = int(params.alpha > 0)
    m.variables(free=1)
    m.row(1, L + priced * B + 1)
    if depth:
        m.row(2, L // 2)
        m.entries += priced * lower + flow.steps + flow.unsplit


def _svm(m: _Count, name: str, params: Any, n: int, p: int, depth: int, zeros: _Zeros, mixes: _Mixes) -> None:
    T, B = 2 ** (depth + 1) - 1, 2**depth - 1
    tree, printed = name == "octsvm", params.variant == "paper"
    # hyperplanes
    m.variables(free=T * (p + 1 + n))
    m.row(n * T, p + 2)
    m.entries -= T * zeros.position
    if tree:
        # pruning
        m.variables(binary=T)
        if not printed:
            m.row(2 * p * T, 2)
        m.row(T - 1, 2)
        # assignment; every row is in the root, where z is fixed and stands in no row
        if printed:
            m.variables(binary=n * (T - 1))
        else:
            m.variables(free=n * (T - 1))
        m.rows += n * depth
        m.entries += n * (T - 1)
        m.row(n * (T - 1), 2)
        # routing
        where = T if printed else B
        m.variables(binary=n * where)
        m.row(2 * n * where, 2)
        if params.boundary is not None:
            m.entries += n * B
        m.row(2 * n * B, 3)
        if depth:
            m.entries -= 4 * n  # the root's z: two children below it, two ways out of it
        if not printed:
            m.row(2 * n * B, 2)
            m.row(n * T, 2)  # only_in_node
            m.entries -= n
            m.row(2 * n * B, 3)  # side_costs
            m.variables(free=mixes.nodes)
            m.row(2 * mixes.nodes, 2)
            m.rows += mixes.rows
            m.entries += mixes.entries
    # relabelling and hinge
    m.variables(binary=n * T)
    of_z = int(tree)
    if printed:
        m.variables(free=n * T * (p + 2))
        m.row(n * T, p + 3 + of_z)
        m.entries -= T * zeros.position + of_z * n
        m.entries += 10 * n * T * (p + 1)
        m.rows += 4 * n * T * (p + 1)
    else:
        m.variables(free=n * T)
        m.row(2 * n * T, 3 + of_z)
        m.entries -= 2 * of_z * n
    # margin
    if params.norm == "l1":
        m.variables(free=p * T)
        m.row(2 * p * T, 2)
    if tree:
        m.variables(free=1)
        families = 1 + int(printed)
        m.row(families * T, p + 1)
        if params.norm == "l2":
            m.cones += families * T


# -- what to expect -----------------------------------------------------------------------------------------------

# Rows of the largest table proved optimal within half a minute of processor time, by formulation, norm and depth.
# Tables of 5 features with one wrong label in ten, default costs, HiGHS 1.16 on one thread, the rows doubling from 10;
# twice as many were not proved any more (oct at depth 1 took 30.3 s for 5120). benchmarks/provable.py measures it again.
PROVED: dict[tuple[str, str], dict[int, int]] = {
    ("oct", ""): {1: 2560, 2: 2560, 3: 160},
    ("oct_h", ""): {1: 80, 2: 40},
    ("re_svm", "l2"): {0: 20},
    ("re_svm", "l1"): {0: 40},
    ("octsvm", "l2"): {0: 40, 1: 20, 2: 20},
    ("octsvm", "l1"): {0: 40, 1: 20, 2: 20},
}
MEASURED_P = 5
BYTES_PER_NONZERO = 500  # of Pyomo's model, measured on OCTSVM as printed with a million nonzeros
LARGE = 2_000_000  # nonzeros from which the memory of the model itself is worth a word


def expectation(size: Size, params: dict[str, Any]) -> dict[str, Any]:
    """What our measurements say about proving a model of this size.

    Parameters
    ----------
    params : dict
        The parameters that the size was asked for with.

    Returns
    -------
    dict
        ``provable``: "likely", "unlikely" or "unknown" (not measured); ``proved_rows``: rows of the largest table
        that was proved within half a minute at this depth, or None; ``advice``: both in words.
    """
    checked: Any = find_formulation(size.formulation).Params.make(size.formulation, **params)
    norm = getattr(checked, "norm", "")
    depth = getattr(checked, "depth", 0)
    measured = PROVED[size.formulation, norm]
    deepest = max(measured)
    rows = None if depth < min(measured) else measured[min(depth, deepest)]
    if rows is None:  # no split at all
        text = "A model without a split has next to nothing to decide: expect a proof."
        return {"provable": "likely", "proved_rows": None, "advice": text}
    where = "" if size.formulation == "re_svm" else f" at depth {min(depth, deepest)}"
    text = (
        f"In our measurements ({MEASURED_P} features, one wrong label in ten, default costs and variants, HiGHS on one thread) tables of up to "
        f"{rows} rows{where} were proved optimal within half a minute, and one of {2 * rows} rows was not. "
    )
    verdict = "unknown"
    if depth <= deepest and size.n <= rows and size.p <= 2 * MEASURED_P:
        verdict = "likely"
        text += "Expect a proof."
    elif size.n >= 2 * rows:
        verdict = "unlikely"
        text += (
            "This one is probably too large to prove in minutes: expect a checked tree with a bound and a gap"
            f"{_ways(size, depth, norm, measured)}."
        )
    elif depth > deepest:
        verdict = "unlikely"
        text += f"Depth {depth} is harder: expect a checked tree with a bound and a gap."
    elif size.n > rows:
        text += "This one lies between: a proof may take minutes or hours."
    else:
        text += f"This one has {size.p} features, which we did not measure: more of them make it harder."
    if size.nonzeros >= LARGE:
        gigabytes = size.nonzeros * BYTES_PER_NONZERO / 1e9
        text += (
            f" The model alone takes about {gigabytes:.1f} GB: Pyomo needed some {BYTES_PER_NONZERO} bytes a nonzero "
            "in our measurements."
        )
    return {"provable": verdict, "proved_rows": rows, "advice": text}


def _ways(size: Size, depth: int, norm: str, measured: dict[int, int]) -> str:
    """What makes a proof more likely, as far as it was measured."""
    ways = []
    less = [d for d in measured if d < depth and measured[d] >= size.n]
    if less:
        ways.append(f"depth {max(less)} was proved with as many rows")
    linear = PROVED.get((size.formulation, "l1"), {})
    if norm == "l2" and linear.get(depth, 0) > measured.get(depth, 0):
        ways.append(f"with norm l1 {linear[depth]} rows were proved")
    most = measured.get(depth, 0)
    if most and most < size.n:
        ways.append(f"a sample of {most} rows may be proved")
    return f" ({'; '.join(ways)})" if ways else ""
