"""Tiny instances for the comparison with brute force: a seeded generator, and the project's shared cases.

``tiny("octsvm", 200, seed=1)`` returns the same list on every call. The kinds of data rotate with the index,
so any run of a dozen holds them all: random and gridded columns, XOR, noise, equal rows with different
labels, columns with few values or one, values close together, rows on a line. Sizes suit the oracles in
``oracles.py``.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from places import SHARED

import octsvm

Array = NDArray[Any]

__all__ = [
    "CASES",
    "CASES_DIR",
    "FORMULATIONS",
    "Case",
    "Instance",
    "halves",
    "noisy",
    "shared_cases",
    "sloped",
    "tiny",
]

FORMULATIONS = ("oct", "oct_h", "re_svm", "octsvm", "moctsvm")
KINDS = ("uniform", "grid", "xor", "noise", "clash", "few", "constant", "close", "line", "bands")


@dataclass(frozen=True)
class Instance:
    """One small problem: ``X (n, p)``, ``y (n,)`` (-1/+1 for the SVM models, else 0..K-1), parameters."""

    name: str
    formulation: str
    X: Array
    y: Array
    params: dict[str, Any]


def _features(kind: str, n: int, p: int, rng: np.random.Generator) -> Array:
    """``(n, p)`` in [0, 1]."""
    X = rng.random((n, p))
    if kind == "grid":
        step = int(rng.choice([2, 4, 5, 10]))
        X = np.round(X * step) / step
    elif kind == "xor":
        corner = rng.permutation(np.arange(n) % 4)
        X[:, 0] = (corner & 1) * 0.8 + 0.1
        if p > 1:
            X[:, 1] = (corner >> 1) * 0.8 + 0.1
        if rng.random() < 0.6:  # else the corners themselves, with equal rows
            X[:, : min(p, 2)] += rng.uniform(-0.1, 0.1, (n, min(p, 2)))
    elif kind == "clash":
        for i in range(1, n, 3):
            X[i] = X[i - 1]
    elif kind == "few":
        values = np.sort(rng.random(3))
        X[:, 0] = values[rng.integers(0, 3, n)]
        if p > 1:
            X[:, 1] = rng.integers(0, 2, n)
    elif kind == "constant":
        X[:, -1] = float(rng.choice([0.0, 0.4, 1.0]))
    elif kind == "close":
        X = np.round(X, 1)
        for i in range(1, n, 2):
            X[i] = X[i - 1]
            X[i, 0] = abs(X[i, 0] - float(rng.choice([0.0023, 0.0137, 0.043])))
    elif kind == "line":
        X = np.round(X[:, :1], 1) * np.linspace(1.0, 0.5, p)
    elif kind == "bands":
        X[:, 0] = (np.arange(n) + rng.uniform(0.2, 0.8, n)) / n
    return X


def _labels(kind: str, X: Array, k: int, rng: np.random.Generator) -> Array:
    """``(n,)`` integers below ``k``; at least two classes."""
    n, p = X.shape
    if kind == "xor":
        y = (X[:, 0] > 0.5).astype(int) ^ (X[:, min(1, p - 1)] > 0.5).astype(int)
        if k > 2:
            y[rng.integers(n)] = 2
        if rng.random() < 0.3:
            y[rng.integers(n)] = 0
    elif kind == "noise":
        score = X @ rng.normal(size=p)
        y = np.searchsorted(np.quantile(score, np.arange(1, k) / k), score)
        flip = np.flatnonzero(rng.random(n) < 0.2)
        y[flip] = rng.integers(0, k, len(flip))
    elif kind == "bands":
        y = np.arange(n) * (k + 1) // n % k
    elif kind in ("clash", "close"):
        y = np.arange(n) % k
    else:
        y = rng.integers(0, k, n)
    if len(np.unique(y)) < 2:
        y[0] = (y[0] + 1) % k
    return np.asarray(y, dtype=int)


def _pick(rng: np.random.Generator, values: Iterable[Any]) -> Any:
    options = list(values)
    return options[int(rng.integers(len(options)))]


def _oct(kind: str, index: int, rng: np.random.Generator) -> tuple[Array, Array, dict[str, Any]]:
    n, p, k = int(rng.integers(4, 13)), int(rng.integers(1, 4)), 2 + index // 2 % 2
    X = _features(kind, n, max(p, 2) if kind == "xor" else p, rng)
    y = _labels(kind, X, k, rng)
    if kind == "close":
        X[:, 0] += np.where(np.arange(n) % 3 == 0, 1e-7, 0.0)
    if kind in ("uniform", "few") and rng.random() < 0.5:  # other units, other signs
        X = X * np.array([1e5, 1.0, 1e-3])[: X.shape[1]] - np.array([5e4, 5.0, 0.0])[: X.shape[1]]
    scale = _pick(rng, ["count", "count", "baseline"])
    alpha = _pick(rng, [0.0, 0.1, 0.5, 1.0, 2.0, 10.0] if scale == "count" else [0.0, 0.01, 0.1, 0.3, 1.0])
    return (
        X,
        y,
        {"depth": 1 + index % 2, "alpha": alpha, "n_min": _pick(rng, [1, 1, 2, 3]), "error_scale": scale},
    )


def _oct_h(kind: str, index: int, rng: np.random.Generator) -> tuple[Array, Array, dict[str, Any]]:
    depth = 2 if index % 4 == 3 else 1
    n = int(rng.integers(4, 7 if depth == 2 else 8))
    p = 2 if kind == "xor" else _pick(rng, [1, 2, 2, 2, 3])
    X = _features(kind, n, p, rng)
    if kind == "close":  # round numbers would put some margin at mu exactly
        X = np.clip(X + rng.uniform(-4e-4, 4e-4, X.shape), 0.0, 1.0)
    y = _labels(kind, X, 2 + index // 2 % 2, rng)
    scale = _pick(rng, ["count", "count", "baseline"])
    return X, y, {
        "depth": depth,
        "alpha": _pick(rng, [0.0, 0.1, 0.4, 1.0, 5.0] if scale == "count" else [0.0, 0.01, 0.1, 0.3, 1.0]),
        "n_min": _pick(rng, [1, 1, 2, 3]),
        "mu": _pick(rng, [0.005, 0.005, 0.0317]),  # no margin of gridded rows is within 1e-4
        "complexity": _pick(rng, ["splits", "features"]),
        "error_scale": scale,
    }  # fmt: skip


def _costs(kind: str, rng: np.random.Generator) -> tuple[float, float, float]:
    """c1, c2, c3: where splits pay, moderate, or anything from 1e-2 to 1e2."""
    draw = rng.random()
    if draw < (0.6 if kind in ("xor", "bands", "close") else 0.25):
        return _pick(rng, [10.0, 20.0]), _pick(rng, [10.0, 15.0, 30.0]), _pick(rng, [0.01, 0.1, 0.5])
    if draw < 0.65:
        return (
            _pick(rng, [0.5, 1.0, 3.0, 10.0]),
            _pick(rng, [0.5, 1.0, 2.5, 6.0]),
            _pick(rng, [0.01, 0.1, 0.4]),
        )
    extreme = [0.01, 0.1, 1.0, 10.0, 100.0]
    return _pick(rng, extreme), _pick(rng, extreme), _pick(rng, extreme)


def _re_svm(kind: str, index: int, rng: np.random.Generator) -> tuple[Array, Array, dict[str, Any]]:
    n = int(rng.integers(4, 10))
    p = 2 if kind == "xor" else int(rng.integers(1, 4))
    X = _features(kind, n, p, rng)
    c1, c2, _ = _costs(kind, rng)
    return X, 2 * _labels(kind, X, 2, rng) - 1, {"c1": c1, "c2": c2, "norm": ("l2", "l1")[index // 2 % 2]}


def _octsvm(kind: str, index: int, rng: np.random.Generator) -> tuple[Array, Array, dict[str, Any]]:
    depth = (1, 0, 1, 2, 1, 1, 2)[index % 7]
    n = int(rng.integers(*((5, 9), (4, 8), (4, 6))[depth]))
    p = 2 if kind == "xor" else int(_pick(rng, [1, 2, 2, 3]))
    X = _features(kind, n, p, rng)
    c1, c2, c3 = _costs(kind, rng)
    return X, 2 * _labels(kind, X, 2, rng) - 1, {
        "depth": depth, "c1": c1, "c2": c2, "c3": c3, "mu_svm": 1e-3, "norm": ("l2", "l1")[index // 2 % 2],
    }  # fmt: skip


def _moctsvm(kind: str, index: int, rng: np.random.Generator) -> tuple[Array, Array, dict[str, Any]]:
    depth = (1, 2, 1, 2, 1, 2, 0)[index % 7]
    n = int(rng.integers(*((4, 8), (5, 8), (4, 7))[depth]))
    p = 2 if kind == "xor" else int(_pick(rng, [1, 2, 2, 3]))
    X = _features(kind, n, p, rng)
    c1, c2, c3 = _costs(kind, rng)
    return X, _labels(kind, X, 2 + index // 2 % 3, rng), {
        "depth": depth, "c1": c1, "c2": c2, "c3": c3, "mu_svm": 1e-3, "norm": ("l2", "l1")[index // 2 % 2],
    }  # fmt: skip


_MAKERS = {"oct": _oct, "oct_h": _oct_h, "re_svm": _re_svm, "octsvm": _octsvm, "moctsvm": _moctsvm}


def tiny(formulation: str, count: int, seed: int) -> list[Instance]:
    """``count`` instances of a formulation, the same for the same (seed, index)."""
    if formulation not in _MAKERS:
        raise ValueError(f"unknown formulation {formulation!r}")
    instances = []
    for index in range(count):
        rng = np.random.default_rng([seed, FORMULATIONS.index(formulation), index])
        kind = KINDS[index % len(KINDS)]
        X, y, params = _MAKERS[formulation](kind, index, rng)
        order = rng.permutation(len(y))
        name = f"{formulation}-{seed}-{index}-{kind}"
        instances.append(Instance(name, formulation, np.ascontiguousarray(X[order]), y[order], params))
    return instances


# ------------------------------------------------------------------------------------------------ shared ca


@dataclass(frozen=True)
class Case:
    """One expectation of the shared cases; ``relabelled`` where the case names the rows."""

    file: str
    model: str
    X: Array
    y: Array
    params: dict[str, Any]
    objective: float
    note: str
    relabelled: tuple[int, ...] | None = field(default=None)


CASES_DIR = SHARED / "cases"


def shared_cases(path: str | Path = CASES_DIR) -> list[Case]:
    """All expectations in ``cases.json`` under ``path``, with their CSV files; empty where there is none.

    Features as they are; labels as integers -1/+1 for the SVM models, else as strings where they are not
    numbers.
    """
    folder = Path(path)
    if not (folder / "cases.json").is_file():
        return []
    cases = []
    for record in json.loads((folder / "cases.json").read_text()):
        with (folder / record["file"]).open(newline="") as handle:
            rows = list(csv.reader(handle))[1:]
        X = np.array([[float(v) for v in row[:-1]] for row in rows])
        labels = [row[-1] for row in rows]
        try:
            y = np.array([int(v) for v in labels])
        except ValueError:
            y = np.array(labels)
        for model, expected in record["expect"].items():
            for one in expected:
                params = {k: v for k, v in one.items() if k not in ("objective", "relabelled")}
                rows_named = tuple(one["relabelled"]) if "relabelled" in one else None
                cases.append(
                    Case(
                        record["file"],
                        model,
                        X,
                        y,
                        params,
                        float(one["objective"]),
                        record["note"],
                        rows_named,
                    )
                )
    return cases


CASES: list[Case] = shared_cases()


# Larger tables, for what brute force is not asked about.


def sloped(n: int = 40, p: int = 3) -> tuple[Array, Array]:
    """Classes of a line, with noise: hard to prove."""
    rng = np.random.default_rng(0)
    X = rng.random((n, p))
    return X, (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n) > 1).astype(int)


def noisy(n: int = 30, p: int = 3, seed: int = 0) -> tuple[Array, Array]:
    """Exclusive or, with one label in ten turned around."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    return X, octsvm.flip_labels((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5), 0.1, seed=seed)


def halves(seed: int = 1, n: int = 10) -> tuple[Array, Array]:
    """Two columns of few digits, the first of which nearly tells the classes."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2)).round(2)
    return X, (X[:, 0] + 0.5 * rng.random(n) > 0.75).astype(int)
