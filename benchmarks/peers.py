"""The build of OCT on iris by another package, in a Python of its own: ``python peers.py odtlearn 2 5``.

Arguments: the package, the depth, the repetitions. Prints one JSON object: seconds of each build and the sizes, or
``error``. It imports nothing of octsvm, so that the other package may have what versions it needs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any


def iris() -> tuple[Any, Any]:
    from sklearn.datasets import load_iris

    found = load_iris(as_frame=True)
    X = found.data
    X.columns = [f"x{j}" for j in range(X.shape[1])]
    return X, found.target


def pyoptree(depth: int) -> tuple[Callable[[], Any], Callable[[Any], dict[str, int]]]:
    """OCT of Bertsimas and Dunn in Pyomo; its ``generate_model``."""
    from pyomo.environ import Constraint
    from pyoptree.optree import OptimalTreeModel

    X, y = iris()
    table = X.assign(y=y)
    tree = OptimalTreeModel(list(X.columns), "y", tree_depth=depth, N_min=1, alpha=1.0)
    table = tree.normalize_data(table)
    branch, leaf = tree.generate_nodes(depth)

    def sizes(model: Any) -> dict[str, int]:
        from pyomo.core.expr.visitor import identify_variables

        rows = list(model.component_data_objects(Constraint, active=True))
        return {"rows": len(rows), "nonzeros": sum(len(list(identify_variables(r.body))) for r in rows)}

    return (lambda: tree.generate_model(table, branch, leaf)), sizes


def odtlearn(depth: int) -> tuple[Callable[[], Any], Callable[[Any], dict[str, int]]]:
    """FlowOCT (Aghaei, Gómez, Vayanos) on CBC; features in four binary bins each. Another model than OCT's."""
    import numpy as np
    import pandas as pd
    from odtlearn.flow_oct import FlowOCT

    X, y = iris()
    bins = {}
    for name in X:
        cut = pd.qcut(X[name], 4, labels=False, duplicates="drop")
        for k in range(1, int(cut.max()) + 1):
            bins[f"{name}_{k}"] = (cut >= k).astype(int)
    table = pd.DataFrame(bins)

    def build() -> Any:
        tree = FlowOCT(solver="cbc", depth=depth)
        tree._extract_metadata(table, y)
        tree._classes = np.unique(y)
        tree.weights = np.ones(len(y))
        tree._create_main_problem()
        return tree._solver

    return build, lambda s: {"rows": int(s.model.num_rows), "nonzeros": int(s.model.num_nz)}


def main() -> None:
    package, depth, repeat = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    out: dict[str, Any] = {}
    try:
        build, sizes = {"pyoptree": pyoptree, "odtlearn": odtlearn}[package](depth)
        build()
        wall, cpu = [], []
        for _ in range(repeat):
            began, used = time.perf_counter(), time.process_time()
            model = build()
            wall.append(time.perf_counter() - began)
            cpu.append(time.process_time() - used)
        out = {"wall": wall, "cpu": cpu, **sizes(model)}
        out["versions"] = {name: version(name) for name in (package, "numpy", "pandas")}
    except BaseException as error:  # whatever it is, it is the answer
        out["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    print(json.dumps(out))


if __name__ == "__main__":
    main()
