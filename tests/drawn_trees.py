"""Trees of every kind with exact numbers, and readers of what is exported of them."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np

import octsvm
from octsvm import OCTClassifier, OCTHClassifier, OCTSVMClassifier
from octsvm.exports._decision_paths import weights_at_nodes
from octsvm.formulations.base import Scaling
from octsvm.formulations.registry import formulation

SCALING = Scaling(
    np.array([-1.0, 2.0, 5.0, 0.0]), np.array([2.0, 0.5, 0.0, 4.0])
)  # the third one is constant


NAMES = ("a", "b", "c", "d")


FORM = {"axis": "oct", "oblique": "oct_h", "margin": "octsvm"}


CLASSIFIER: dict[str, Any] = {"axis": OCTClassifier, "oblique": OCTHClassifier, "margin": OCTSVMClassifier}


def tree(kind: str, seed: int = 0, depth: int = 2) -> Any:
    """Numbers that are sums of few powers of two, so that every way of adding them up is exact."""
    rng = np.random.default_rng(seed)
    B = 2**depth - 1
    T = 2 * B + 1 if kind == "margin" else B
    split = np.ones(T, dtype=bool)
    split[rng.integers(1, T)] = False
    for t in range(2, T + 1):
        split[t - 1] &= split[t // 2 - 1]
    common = (depth, ("no", "yes"), NAMES, SCALING)
    label = rng.permutation(np.arange(B + 1) % 2)
    if kind == "axis":
        feature = np.where(split, rng.integers(0, 2, T) * 3, -1)  # the first or the last
        low, span = SCALING.low[feature], SCALING.span[feature]
        threshold = np.where(split, low + span * rng.integers(1, 4, T) / 4, 0.0)
        return octsvm.AxisTree(*common, feature, threshold, label)
    weights = np.where(split[:, None], rng.integers(-2, 3, (T, 4)) / 8, 0.0)
    weights[:, 2] = 0.0
    weights[split & ~weights.any(axis=1), 0] = 0.25
    if kind == "oblique":
        return octsvm.ObliqueTree(
            *common, weights, np.where(split, rng.integers(-2, 3, T) / 16, 0.0), split, label
        )
    constant = np.where(split, rng.integers(-2, 3, T) / 2, 1.0)
    return octsvm.MarginTree(*common, 8 * weights, constant, split)


def large(depth: int, classes: tuple[Any, ...], name: str) -> list[Any]:
    """Trees of each kind on sixty features with long names, every node in use."""
    rng = np.random.default_rng(5)
    scaling = Scaling(rng.normal(size=60) * 1e3, rng.uniform(0.1, 1e5, 60))
    B, T = 2**depth - 1, 2 ** (depth + 1) - 1
    common = (depth, classes, tuple(name.format(j) for j in range(60)), scaling)
    a = rng.normal(size=(B, 60)) / 60
    return [
        octsvm.AxisTree(*common, rng.integers(0, 60, B), rng.normal(size=B) * 1e4, rng.integers(0, 2, B + 1)),
        octsvm.ObliqueTree(*common, a, rng.normal(size=B) / 60, np.ones(B, bool), rng.integers(0, 2, B + 1)),
        octsvm.MarginTree(*common, rng.normal(size=(T, 60)), rng.normal(size=T), np.ones(T, bool)),
    ]


def grid() -> np.ndarray:
    """Quarters of every range (m, 4), the constant feature away from its value as well."""
    quarters = np.arange(5) / 4
    a, b, c, d = (g.ravel() for g in np.meshgrid(quarters, quarters, [5.0, 6.0], quarters))
    return np.column_stack([-1 + 2 * a, 2 + b / 2, c, 4 * d])


def exact(tree: Any, x: np.ndarray) -> dict[str, Fraction]:
    """The features by name in the units that the tree computes in, as exact numbers."""
    if tree.kind == "axis":
        return {n: Fraction(float(v)) for n, v in zip(NAMES, x, strict=True)}
    out = {}
    for n, v, low, span in zip(NAMES, x, SCALING.low, SCALING.span, strict=True):
        out[n] = (Fraction(float(v)) - Fraction(low)) / Fraction(span) if span else Fraction(0)
    return out


def holds(words: str, values: dict[str, Fraction]) -> bool:
    """Whether a printed condition is true of a row."""
    left, sign, right = re.fullmatch(r"(.*) (<|>=) (\S+)", words).groups()  # type: ignore[union-attr]
    total = Fraction(0)
    for part in re.sub(r" ([+-]) ", r" \1", left).split(" "):
        number, _, name = part.rpartition("*")
        factor = Fraction(float(number)) if number else Fraction(1)
        total += factor * values[name] if name != "0" else 0
    below = total < Fraction(float(right))
    return below if sign == "<" else not below


def by_text(text: str, values: dict[str, Fraction]) -> tuple[list[int], str]:
    """Split nodes on the way of a row and its class, by the printed tree alone."""
    lines, way, indent, k = text.splitlines(), [], 0, 0
    while not lines[k].lstrip().startswith("class"):
        line = lines[k]
        assert len(line) - len(line.lstrip()) == indent
        node, words, rest = re.fullmatch(r"\s*\[(\d+)\] ([^:]*):(.*)", line).groups()  # type: ignore[union-attr]
        if not holds(words, values):
            k += 1
            while len(lines[k]) - len(lines[k].lstrip()) > indent:
                k += 1
            assert lines[k].lstrip().startswith(f"[{node}] ")
            continue
        way.append(int(node))
        if rest:
            return way, rest.strip().removeprefix("class ")
        indent, k = indent + 4, k + 1
    return way, lines[k].strip().removeprefix("class ")


def by_dot(text: str, values: dict[str, Fraction]) -> tuple[list[int], str]:
    """The same by the Graphviz text."""
    labels = {int(n): w for n, w in re.findall(r'^  n(\d+) \[label="((?:[^"\\]|\\.)*)"', text, re.MULTILINE)}
    edges = re.findall(r'^  n(\d+) -> n(\d+) \[label="([^"]*)"\];', text, re.MULTILINE)
    assert len(edges) == len(labels) - 1
    node, way = 1, []
    while not labels[node].startswith("class"):
        way.append(node)
        answers = [(word, int(b)) for a, b, word in edges if int(a) == node]
        assert [word.split(" ")[0] for word, _ in answers] == ["<", ">="]  # the left one is drawn first
        asked = labels[node].replace("\\n", " ").split(" weight ")[0]
        (node,) = (child for word, child in answers if holds(f"{asked} {word}", values))
    return way, labels[node].replace("\\n", " ").split(" weight ")[0].removeprefix("class ")


def fitted_around(tree: Any, X: np.ndarray) -> Any:
    """A classifier that holds ``tree``."""
    model = CLASSIFIER[tree.kind]()
    model.tree_, model.classes_, model.n_features_in_ = tree, np.array(["no", "yes"]), 4
    model.node_weights_ = weights_at_nodes(model.tree_, X, np.arange(len(X)) % 2, np.ones(len(X)), 2)
    return model


def rows_on_boundaries(kind: str, fitted: Any, X: np.ndarray) -> int:
    """In the Pyomo model the tree's own routing is feasible, and a row on a boundary may not go left; tried rows."""
    from model_values import largest_violation

    # The model learns its scaling from its rows: all of one value in the constant column, both ends of the others.
    rows = X[X[:, 2] == 5.0]
    y = np.where(np.arange(len(rows)) % 2 == 0, "no", "yes")
    params: dict[str, Any] = {"depth": 2}
    if kind == "margin":
        params |= {"c1": 1.0, "c2": 1.0, "upper_bound": 1e5}
    model = octsvm.build(FORM[kind], rows, y, **params)
    octsvm.embed(model, fitted)
    assert largest_violation(model) <= 1e-6
    form = formulation(FORM[kind])
    path = form.assigned_path(model)
    assert (path == fitted.nodes(rows)).all()
    scaled = rows if kind == "axis" else fitted.scaling.transform(rows)
    W, b = fitted.weights("original" if kind == "axis" else "scaled")
    edge = -b if kind == "margin" else b
    tried = 0
    for level in range(fitted.depth):
        for i, t in enumerate(path[:, level]):
            if not fitted.splits[t - 1] or scaled[i] @ W[t - 1] != edge[t - 1] or tried >= 3:
                continue
            tried += 1
            octsvm.embed(model, fitted)
            assert largest_violation(model.routing) <= 1e-6
            # To the left here, and on from there as the tree says: nothing else about the row's way is wrong.
            left = path[i].copy()
            left[level + 1] = 2 * t
            for below in range(level + 1, fitted.depth):
                node = int(left[below])
                left[below + 1] = 2 * node + int(fitted._goes_right(node, scaled[i : i + 1])[0])
            for column, on in ((path[i], 0.0), (left, 1.0)):
                for node in column:
                    if (i, int(node)) in model.assignment.z:
                        model.assignment.z[i, int(node)].set_value(on)
            if hasattr(model.routing, "theta"):
                model.routing.theta[i, int(t)].set_value(0.0)
            assert largest_violation(model.routing) > 5e-4, "the model lets a row on the boundary go left"
    return tried
