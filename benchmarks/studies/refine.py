"""What more time buys: trees of the experiment's grid, taken up by the engine for a few seconds each.

For every set and share of wrong labels of the experiment one training fold is drawn, its whole OCTSVM grid fitted as the
experiment does, and of the settings where a split pays 16 are drawn: 512 cells. Each goes to the engine with its tree
as the start (strategy="heuristic": neighbourhoods of the tree, solved by HiGHS as models) for --limit seconds.
--count is the number of settings of a part.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

import octsvm
from octsvm import datasets
from octsvm.experiments import Part, part_data

from ..study import REQUIRED, Line, Study, Watch
from ..tables import table
from .readings import PROTOCOL, whole_grid

EACH = 16  # settings of a part
SEED = 0


def parts() -> list[Part]:
    """One full part for every set and share of wrong labels."""
    rng = np.random.default_rng(SEED)
    return [
        Part(name, noise, 0, int(rng.integers(PROTOCOL.folds)), False)
        for name in PROTOCOL.sets
        for noise in PROTOCOL.noise
    ]


@lru_cache(maxsize=1)
def fitted(part: Part, folder: Any) -> tuple[Any, dict[int, Any]]:
    """The rows of a part, and the results of the whole grid on it, as the experiment has them."""
    data = part_data(PROTOCOL, part, datasets.load(part.set, data_dir=folder))
    return data, dict(whole_grid(part, data.X, data.y))


def cells(asked: Any) -> Iterator[Line]:
    settings = PROTOCOL.methods["octsvm"].settings()
    for number, part in enumerate(parts()):
        cell = {"part": part.key, "set": part.set, "noise": part.noise}
        there = [line["setting"] for line in asked.done if line["part"] == part.key]
        if len(there) >= asked.count:  # nothing of it is left, so that its grid need not be fitted again
            yield from ({**cell, "setting": k} for k in there)
            continue
        found = fitted(part, asked.data)[1]
        order = np.random.default_rng([SEED, number]).permutation(len(settings)).tolist()
        chosen = [k for k in order if found[k].counts.get("splits", 0)][: asked.count]
        yield from ({**cell, "setting": k} for k in chosen)


def measure(cell: Line, asked: Any) -> Line:
    """A tree of the grid, and what the engine makes of it."""
    spec = PROTOCOL.methods["octsvm"]
    (part,) = (part for part in parts() if part.key == cell["part"])
    data, found = fitted(part, asked.data)
    before, params = found[cell["setting"]], spec.settings()[cell["setting"]]
    watch = Watch()
    how = {"strategy": "heuristic", "time_limit": asked.limit, "on_mismatch": "ignore"}
    after = octsvm.fit("octsvm", data.X, data.y, start=before.tree, **how, **spec.fixed, **params)
    return {
        "params": params,
        "limit": asked.limit,
        "before": before.objective,
        "after": after.objective,
        "right_before": int((before.tree.predict(data.X_score) == data.y_score).sum()),
        "right_after": int((after.tree.predict(data.X_score) == data.y_score).sum()),
        "n_score": len(data.y_score),
        **watch.seconds(),
        "stop": after.stop,
    }


def report(lines: list[dict[str, Any]]) -> str:
    """By share of wrong labels: how many cells the engine made better, by how much, and test accuracy before and after."""
    rows = []
    noises = sorted({x["noise"] for x in lines})
    groups = {f"{noise:.0%}": [x for x in lines if x["noise"] == noise] for noise in noises}
    for name, found in [*groups.items(), ("all", lines)]:
        ratio = np.array([max(x["after"], 1e-9) / max(x["before"], 1e-9) for x in found])
        better = ratio < 1 - 1e-6
        right = [np.mean([x[key] / x["n_score"] for x in found]) for key in ("right_before", "right_after")]
        of_better = f"{np.exp(np.log(ratio[better]).mean()):.3f}" if better.any() else ""
        counts = [len(found), int(better.sum())]
        means = [f"{np.exp(np.log(ratio).mean()):.4f}", of_better]
        rows.append([name, *counts, *means, f"{right[0]:.2%}", f"{right[1]:.2%}"])
    head = ["wrong labels", "cells", "better", "geometric mean after/before", "of those better"]
    return table([*head, "accuracy before", "after"], rows)


STUDY = Study(
    key=("part", "setting"),
    options={"data": REQUIRED, "limit": 2.5, "count": EACH},
    quick={"limit": 0.3},
    code=("octsvm/heuristics", "octsvm/solving"),
)
