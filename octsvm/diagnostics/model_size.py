"""How large a model gets, from formulas, before it is built; and what to expect of proving it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..data import prepare
from ..errors import InvalidData, InvalidParameter
from ..formulations.base import Data, Formulation
from ..formulations.blocks.sizes import BlockSize, Shape, counted
from ..formulations.checks import whole
from ..formulations.params import Params
from ..formulations.registry import formulation as find_formulation


@dataclass(frozen=True)
class Size:
    """Counts of a model as a solver sees it."""

    formulation: str
    n: int
    p: int
    k: int
    problem: str  # problem class, such as "MILP"
    variables: int  # without those that are fixed, as the binaries among them
    binaries: int
    rows: int
    cones: int  # how many of the rows are second-order cones
    nonzeros: int  # variables that stand in the rows, each counted once a row, also where it is squared
    exact: bool  # zeros of a table were taken off; from n, p and k alone every value of the table counts as nonzero

    @property
    def continuous(self) -> int:
        """Variables that are not binary."""
        return self.variables - self.binaries

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data."""
        return asdict(self) | {"continuous": self.continuous}


def of_shape(formulation: str, n: int, p: int, k: int = 2, **params: Any) -> Size:
    """The size of the model of ``formulation`` with ``params`` on any table of n rows, p features and k classes."""
    form = find_formulation(formulation)
    checked = form.Params.make(formulation, **params)
    for name, value, least in (("n", n, 2), ("p", p, 1), ("k", k, 2)):
        whole(name, value, least)
    if k > n:
        raise InvalidParameter(f"k={k} classes need as many rows, and n={n}. Give k of at most n.")
    if form.binary_only and k > 2:
        raise InvalidParameter(
            f"{formulation!r} separates two classes, and k={k}. Choose 'oct', 'oct_h' or 'moctsvm', or k=2 for one "
            "class against the rest."
        )
    return _size(form, checked, Shape(n, p, k))


def of_table(formulation: str, X: Any, y: Any, *, scale: bool = True, **params: Any) -> Size:
    """The size of the model of ``formulation`` on this table, to the last nonzero."""
    form = find_formulation(formulation)
    checked = form.Params.make(formulation, **params)
    data = prepare(form, X, y, scale=scale, params=checked)
    if data.K < 2:
        raise InvalidData(
            f"y holds one class only ({data.classes[0]!r}): the tree predicts it everywhere, and no model is built."
        )
    return _size(form, checked, data)


def _size(form: Formulation, params: Params, table: Data | Shape) -> Size:
    count: BlockSize | None = form.size(params, table)
    if count is None:  # it does not state its size: that of a model, of a shape on random values
        if isinstance(table, Data):
            data = table
        else:
            X = np.random.default_rng(0).random((table.n, table.p))
            data = prepare(form, X, np.arange(table.n) % table.K, params=params)
        count = counted(form.build(data, params, np.inf))
    problem = "MISOCP" if count.cones else "MIQP" if count.squares else "MILP"
    return Size(
        form.name,
        table.n,
        len(table.feature_names) if isinstance(table, Data) else table.p,
        table.K,
        problem,
        count.variables,
        count.binaries,
        count.rows,
        count.cones,
        count.nonzeros,
        isinstance(table, Data),
    )


# -- what to expect -----------------------------------------------------------------------------------------------

# A formulation's ``proved_rows`` says, by norm and depth, the rows of the largest table proved optimal within half a minute
# of processor time. Tables of 5 features with one wrong label in ten, default costs, HiGHS 1.16 on one thread, the rows
# doubling from 10; twice as many were not proved any more (oct at depth 1 took 30.3 s for 5120). benchmarks/studies/provable.py
# measures it again.
MEASURED_P = 5
BYTES_PER_NONZERO = 500  # of Pyomo's model, measured on OCTSVM as printed with a million nonzeros
LARGE = 2_000_000  # nonzeros from which the memory of the model itself is worth a word


def expectation(size: Size, params: dict[str, Any]) -> dict[str, Any]:
    """What our measurements say about proving a model of this size, which was asked for with ``params``.

    ``provable`` is "likely", "unlikely" or "unknown" (not measured); ``proved_rows`` are those of the largest table
    that was proved within half a minute at this depth, or None; ``advice`` has both in words.
    """
    form = find_formulation(size.formulation)
    checked: Any = form.Params.make(size.formulation, **params)
    norm = getattr(checked, "norm", "")
    depth = getattr(checked, "depth", 0)
    proved = form.proved_rows
    measured = proved.get(norm)
    if not measured:
        text = f"We did not measure how large tables of {size.formulation!r} can be proved."
        return {"provable": "unknown", "proved_rows": None, "advice": text}
    deepest = max(measured)
    rows = None if depth < min(measured) else measured[min(depth, deepest)]
    if rows is None:  # no split at all
        text = "A model without a split has next to nothing to decide: expect a proof."
        return {"provable": "likely", "proved_rows": None, "advice": text}
    where = f" at depth {min(depth, deepest)}" if hasattr(checked, "depth") else ""
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
            f"{_ways(size, depth, norm, proved)}."
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


def _ways(size: Size, depth: int, norm: str, proved: Mapping[str, dict[int, int]]) -> str:
    """What makes a proof more likely, as far as it was measured."""
    ways, measured = [], proved[norm]
    less = [d for d in measured if d < depth and measured[d] >= size.n]
    if less:
        ways.append(f"depth {max(less)} was proved with as many rows")
    linear = proved.get("l1", {})
    if norm == "l2" and linear.get(depth, 0) > measured.get(depth, 0):
        ways.append(f"with norm l1 {linear[depth]} rows were proved")
    most = measured.get(depth, 0)
    if most and most < size.n:
        ways.append(f"a sample of {most} rows may be proved")
    return f" ({'; '.join(ways)})" if ways else ""
