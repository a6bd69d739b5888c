"""The variants of OCT side by side, and what each part of the flow variant is worth.

    python benchmarks/oct_variants.py compare --out compare.jsonl             # iris, wine, breast_cancer at depth 2
    python benchmarks/oct_variants.py quarters --data DIR --out quarters.jsonl # depth 3 in 30 s, against CART
    python benchmarks/oct_variants.py ablation --data DIR --out ablation.jsonl # parts taken out, or put in

DIR holds one CSV a data set, label last; a quarter of each (stratified, seed 0) is used. Every solve has the same start,
alpha = 0 and N_min = 1 (published optima are for these); lines that are in --out already are not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import octsvm  # noqa: E402
from benchmarks.real_data import SETS, quarter  # noqa: E402
from octsvm.formulations import blocks, leaf_trees  # noqa: E402
from octsvm.formulations.base import ModelInfo, structure  # noqa: E402
from octsvm.formulations.bounds.subtrees import Groups  # noqa: E402

FREE: dict[str, Any] = {"alpha": 0.0, "n_min": 1}


def table(name: str, data: Path | None) -> tuple[Any, Any]:
    """``X`` and ``y`` of a set of scikit-learn, or of the quarter of a set in ``data``."""
    from sklearn import datasets

    if name in ("iris", "wine", "breast_cancer"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return X, y
    if data is None:
        raise SystemExit("--data is needed for this benchmark")
    X, y, _, _ = quarter(data, name)
    return X.to_numpy(), y.to_numpy()


def now() -> tuple[float, float]:
    """Wall clock and processor time."""
    return time.monotonic(), time.process_time()


def record(result: octsvm.Result, began: tuple[float, float]) -> dict[str, Any]:
    """What is kept of a run; ``began`` is :func:`now` before it."""
    return {
        "status": result.status,
        "objective": result.objective,
        "bound": result.bound,
        "nodes": result.nodes,
        "seconds": round(time.monotonic() - began[0], 2),
        "cpu_seconds": round(
            time.process_time() - began[1], 2
        ),  # of the process: others on the machine do not count
        "differing_rows": len(result.differing_rows),
        "versions": dict(result.versions),
    }


# -- variants -------------------------------------------------------------------------------------------------------


def compare(arguments: argparse.Namespace) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
    """All variants, by ``octsvm.fit`` as everybody calls it."""
    cases = [(s, "flow") for s in ("iris", "wine", "breast_cancer")]
    cases += [(s, v) for s in ("iris", "wine") for v in ("bd", "rank")]
    for name, variant in cases:
        X, y = table(name, None)

        def run(X: Any = X, y: Any = y, variant: str = variant) -> dict[str, Any]:
            began = now()
            result = octsvm.fit(
                "oct", X, y, depth=2, variant=variant, time_limit=arguments.limit or 600, **FREE
            )
            return record(result, began)

        yield {"set": name, "depth": 2, "variant": variant}, run


def quarters(arguments: argparse.Namespace) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
    """Depth 3 against CART with the same depth and least leaf size, by the training objective (alpha 0 and 1)."""
    from sklearn.tree import DecisionTreeClassifier

    for name in SETS:
        for alpha in (0.0, 1.0):
            for variant in ("flow", "rank"):
                X, y = table(name, arguments.data)
                params = {"alpha": alpha, "n_min": 1}

                def run(
                    X: Any = X, y: Any = y, params: dict[str, Any] = params, variant: str = variant
                ) -> dict[str, Any]:
                    cart = DecisionTreeClassifier(max_depth=3, min_samples_leaf=1, random_state=0).fit(X, y)
                    splits = int((cart.tree_.children_left >= 0).sum())
                    known = float((cart.predict(X) != y).sum()) + params["alpha"] * splits
                    began = now()
                    result = octsvm.fit(
                        "oct", X, y, depth=3, variant=variant, time_limit=arguments.limit or 30, **params
                    )
                    return {"cart": known, **record(result, began)}

                yield {"set": name, "depth": 3, "alpha": alpha, "variant": variant}, run


# -- ablation -------------------------------------------------------------------------------------------------------


def without_bounds(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """The flow alone."""
    m.del_component("subtree_bounds")
    m.cost.set_value(sum(m.leaf_label.L.values()) + m.info.params.alpha * sum(m.split.d.values()))
    m.info = ModelInfo("oct", m.info.params, m.info.data, structure=structure(m))
    return m


def sides_only(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """The rows of the root's two sides, and no bound on the objective's variable."""
    m.subtree_bounds.total.setlb(None)
    m.info = ModelInfo("oct", m.info.params, m.info.data, structure=structure(m))
    return m


def total_only(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """The bound on the objective's variable, and no rows of the root's two sides."""
    m.subtree_bounds.left.deactivate()
    m.subtree_bounds.right.deactivate()
    m.info = ModelInfo("oct", m.info.params, m.info.data, structure=structure(m))
    return m


def whole_errors(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """Errors of a leaf are integers, which tells an engine that the objective is."""
    without_bounds(m)
    for var in m.leaf_label.L.values():
        var.domain = pyo.NonNegativeIntegers
    m.info = ModelInfo("oct", m.info.params, m.info.data, structure=structure(m))
    return m


def class_borders(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """On the last level, no cut between two values that belong to one class only, and that the same.

    With N_min = 1 an optimum is left: the rows of such a run are wrong left of the cut or right of it by class alone,
    so the errors are linear in how many of them lie left, and one end of the run is as good. But not every tree is.
    """
    without_bounds(m)
    groups = _groups(m)
    m.dominated = pyo.ConstraintList()
    last = m.topology.tree.levels[m.topology.tree.depth - 1]
    for j, count in enumerate(groups.n_values.tolist()):
        held = np.zeros((count, groups.weight.shape[1]))
        np.add.at(held, groups.position[:, j], groups.weight)
        pure = np.where((held > 0).sum(axis=1) == 1, held.argmax(axis=1), -1)
        for v in range(1, count):  # cut v is taken where u_v = 1 and u_(v + 1) = 0
            if pure[v - 1] >= 0 and pure[v - 1] == pure[v]:
                for t in last:
                    this = m.split.a[t, j] if v == 1 else m.split.u[t, j, v]
                    above = m.split.u[t, j, v + 1] if v + 1 < count else 0.0
                    m.dominated.add(this == above)
    return m


def rows_apart(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """Equal rows are not merged."""
    info, merged = m.info, _groups(m)
    data, params = info.data, info.params
    weight = np.zeros((data.n, data.K))
    weight[np.arange(data.n), data.y] = data.weights
    position = merged.position[merged.of_row]
    fresh = pyo.ConcreteModel()
    topology = blocks.add_topology(fresh, params.depth)
    split = blocks.add_cut_splits(fresh, topology, merged.n_values)
    assignment = blocks.add_group_assignment(fresh, topology, np.arange(data.n), params.leaf_size(data.n))
    blocks.add_flow_routing(fresh, topology, split, assignment, position, merged.n_values)
    blocks.add_group_leaf_labels(fresh, topology, assignment, weight)
    leaf_trees.add_objective(fresh, data, params, sum(split.d.values()))
    return fresh


def _groups(m: pyo.ConcreteModel) -> Groups:
    from octsvm.formulations.oct import groups_of

    return groups_of(m.info.data)


PARTS: dict[str, Callable[[pyo.ConcreteModel], pyo.ConcreteModel] | None] = {
    "flow": None,
    "flow, bound of the whole tree only": total_only,
    "flow, bounds of the sides only": sides_only,
    "flow without bounds": without_bounds,
    "flow without bounds, rows apart": rows_apart,
    "flow without bounds, whole errors": whole_errors,
    "flow without bounds, cuts at class borders": class_borders,
}


def ablation(arguments: argparse.Namespace) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
    """Models with one thing changed, from the start of the default strategy."""
    cases = [("iris", 2), ("wine", 2), ("monks", 2), ("breastcancer", 2), ("heart", 2)]
    for name, depth in cases:
        X, y = table(name, arguments.data)
        quick = octsvm.fit("oct", X, y, depth=depth, time_limit=10, **FREE)
        for part in (*PARTS, "rank", "bd"):

            def run(
                X: Any = X, y: Any = y, part: str = part, depth: int = depth, start: Any = quick.tree
            ) -> dict[str, Any]:
                variant = part if part in ("rank", "bd") else "flow"
                began = now()
                m = octsvm.build("oct", X, y, depth=depth, variant=variant, **FREE)
                change = PARTS.get(part)
                if change is not None:
                    m = change(m)
                known = start if hasattr(m, "info") else None
                result = octsvm.solve(m, start=known, time_limit=arguments.limit or 60, on_mismatch="ignore")
                return record(result, began)

            yield {"set": name, "depth": depth, "model": part}, run


def as_markdown(lines: list[dict[str, Any]]) -> str:
    """The lines as a table."""
    if not lines:
        return ""
    shown = [k for k in lines[0] if k not in ("versions", "differing_rows")]
    out = ["| " + " | ".join(shown) + " |", "|" + "---|" * len(shown)]
    for line in lines:
        cells = [f"{line[k]:.4g}" if isinstance(line[k], float) else str(line[k]) for k in shown]
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("compare", "quarters", "ablation"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--limit", type=float, help="seconds a solve (600, 30 and 60)")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    done: list[dict[str, Any]] = []
    if arguments.out and arguments.out.exists():
        done = [json.loads(line) for line in arguments.out.read_text(encoding="utf-8").splitlines()]
    for key, run in {"compare": compare, "quarters": quarters, "ablation": ablation}[arguments.what](
        arguments
    ):
        if any(key.items() <= line.items() for line in done):
            continue
        line = key | run()
        done.append(line)
        print({k: v for k, v in line.items() if k != "versions"}, file=sys.stderr, flush=True)
        if arguments.out:
            with arguments.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")
    print(as_markdown(done))


if __name__ == "__main__":
    main()
