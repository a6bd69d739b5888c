"""Fitted trees by themselves: routing, classes, text, JSON, units. No model and no solver in here."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import octsvm
from octsvm.formulations.base import Scaling
from octsvm.formulations.trees import Relabelled, Tree

UNIT = Scaling.identity(2)
METRES = Scaling(np.array([-3.0, 100.0]), np.array([8.0, 2500.0]))  # what the scaled units stand for


def axis(**change: Any) -> octsvm.AxisTree:
    """Root splits on f; left child does not split; right child splits on g."""
    arrays: dict[str, Any] = {
        "depth": 2, "classes": ("a", "b", "c"), "feature_names": ("f", "g"), "scaling": UNIT,
        "feature": np.array([0, -1, 1]), "threshold": np.array([0.5, 0.0, 0.25]), "label": np.array([0, 1, 2, 0]),
    }  # fmt: skip
    return octsvm.AxisTree(**(arrays | change))


def oblique(**change: Any) -> octsvm.ObliqueTree:
    arrays: dict[str, Any] = {
        "depth": 2, "classes": ("a", "b", "c"), "feature_names": ("f", "g"), "scaling": UNIT,
        "a": np.array([[0.5, 0.5], [0.0, 0.0], [1.0, -1.0]]), "b": np.array([0.5, 0.0, 0.25]),
        "split": np.array([True, False, True]), "label": np.array([0, 1, 2, 0]),
    }  # fmt: skip
    return octsvm.ObliqueTree(**(arrays | change))


def margin(**change: Any) -> octsvm.MarginTree:
    """Root splits on f; node 2 does not split (positive intercept); node 3 splits on g."""
    arrays: dict[str, Any] = {
        "depth": 1, "classes": ("no", "yes"), "feature_names": ("f", "g"), "scaling": UNIT,
        "omega": np.array([[4.0, 0.0], [0.0, 0.0], [0.0, 2.0]]), "omega0": np.array([-2.0, 1.0, -1.0]),
        "split": np.array([True, False, True]), "relabelled": (Relabelled(3, 1, 0.5),),
    }  # fmt: skip
    return octsvm.MarginTree(**(arrays | change))


def random_tree(kind: str, depth: int, p: int, seed: int) -> Tree:
    """Any tree in which a node splits only below a node that splits."""
    rng = np.random.default_rng([seed, depth, p])
    B = 2**depth - 1
    nodes = 2 * B + 1 if kind == "margin" else B
    split = rng.random(nodes) < 0.75
    for t in range(2, nodes + 1):
        split[t - 1] &= split[t // 2 - 1]
    names = tuple(f"v{j}" for j in range(p))
    scaling = Scaling(rng.normal(size=p) * 10, rng.uniform(0.5, 50, size=p))
    weights = np.where(split[:, None], np.round(rng.normal(size=(nodes, p)), 3), 0.0)
    if kind == "axis":
        feature = np.where(split, rng.integers(0, p, nodes), -1)
        label = rng.integers(0, 3, B + 1)
        return octsvm.AxisTree(
            depth, ("a", "b", "c"), names, scaling, feature, rng.normal(size=B) * 10, label
        )
    if kind == "oblique":
        label = rng.integers(0, 3, B + 1)
        return octsvm.ObliqueTree(
            depth, ("a", "b", "c"), names, scaling, weights, np.round(rng.normal(size=B), 3), split, label
        )
    omega0 = np.round(rng.normal(size=nodes), 3)
    return octsvm.MarginTree(depth, (-1, 1), names, scaling, weights, omega0, split)


KINDS = ("axis", "oblique", "margin")
SHAPES = [(0, 1), (0, 3), (1, 2), (2, 2), (3, 5), (4, 60)]


def points(tree: Tree, m: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    low, span = tree.scaling.low, tree.scaling.span
    return low + span * rng.uniform(-1.5, 2.5, size=(m, len(low)))


# ----------------------------------------------------------------------------------------------------- routing


def test_an_axis_tree_routes_and_predicts() -> None:
    X = [[0.4, 0.0], [0.4, 9.0], [0.6, 0.2], [0.6, 0.3]]
    tree = axis()
    # An unsplit node (2) sends every row right.
    assert tree.nodes(X).tolist() == [[1, 2, 5], [1, 2, 5], [1, 3, 6], [1, 3, 7]]
    assert tree.predict(X).tolist() == ["b", "b", "c", "a"]
    assert tree.predict_index(X).tolist() == [1, 1, 2, 0]
    assert tree.splits.tolist() == [True, False, True]


def test_an_oblique_tree_routes_and_predicts() -> None:
    X = [[0.4, 0.5], [0.0, 0.0], [0.9, 0.8], [0.9, 0.2]]
    tree = oblique()
    assert tree.nodes(X).tolist() == [[1, 2, 5], [1, 2, 5], [1, 3, 6], [1, 3, 7]]
    assert tree.predict(X).tolist() == ["b", "b", "c", "a"]


def test_a_margin_tree_routes_and_predicts() -> None:
    X = [[0.4, 0.0], [0.6, 0.4], [0.6, 0.6]]
    tree = margin()
    assert tree.nodes(X).tolist() == [[1, 2], [1, 3], [1, 3]]
    # Node 2 does not split: the class is the side taken at the root, not the sign of its intercept.
    assert tree.node_score(2, np.array(X)).tolist() == [1, 1, 1]
    assert tree.predict(X).tolist() == ["no", "no", "yes"]
    np.testing.assert_allclose(tree.scores(X), [[-0.4, 1, -1], [0.4, 1, -0.2], [0.4, 1, 0.2]])


@pytest.mark.parametrize("omega0", [3.0, -3.0])
def test_an_unsplit_margin_node_follows_the_sign_of_its_intercept(omega0: float) -> None:
    tree = margin(
        depth=2, omega=np.zeros((7, 2)), omega0=np.full(7, omega0), split=np.zeros(7, bool), relabelled=()
    )
    X = [[0.0, 0.0], [1.0, 1.0]]
    assert tree.nodes(X).tolist() == ([[1, 3, 7]] * 2 if omega0 > 0 else [[1, 2, 4]] * 2)
    assert tree.predict(X).tolist() == ["yes" if omega0 > 0 else "no"] * 2


def test_an_intercept_of_zero_counts_as_positive() -> None:
    for zero in (0.0, -0.0):
        tree = margin(depth=0, omega=np.zeros((1, 2)), omega0=np.array([zero]), split=np.array([False]))
        assert tree.predict([[1.0, 1.0]]).tolist() == ["yes"]


def test_a_row_on_the_boundary_goes_right() -> None:
    on, below = 0.5, np.nextafter(0.5, 0)
    assert axis().nodes([[on, 0.0], [below, 0.0]])[:, 1].tolist() == [3, 2]
    assert oblique().nodes([[0.5, 0.5], [0.5, 0.5 - 1e-15]])[:, 1].tolist() == [3, 2]
    assert margin().nodes([[on, 0.0], [below, 0.0]])[:, 1].tolist() == [3, 2]
    assert margin().predict([[1.0, 0.5], [1.0, np.nextafter(0.5, 0)]]).tolist() == ["yes", "no"]


def test_zero_and_negative_zero_are_one_value() -> None:
    tree = axis(threshold=np.array([0.0, 0.0, 0.25]))
    assert tree.nodes([[0.0, 0.0], [-0.0, 0.0]])[:, 1].tolist() == [3, 3]
    tree = axis(threshold=np.array([-0.0, 0.0, 0.25]))
    assert tree.nodes([[0.0, 0.0], [-0.0, 0.0]])[:, 1].tolist() == [3, 3]


def test_a_leaf_that_no_training_row_reached_has_a_class() -> None:
    X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], ["a", "a", "b", "b"]
    tree = octsvm.fit("oct", X, y, depth=2, alpha=0).tree
    filled = set(tree.nodes(X)[:, -1].tolist())
    somewhere = np.random.default_rng(0).uniform(-10, 10, size=(500, 2))
    assert set(tree.predict(somewhere).tolist()) <= {"a", "b"}
    for leaf in set(range(4, 8)) - filled:
        assert tree.classes[tree.label[leaf - 4]] in ("a", "b")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("depth", "p"), SHAPES)
def test_the_decision_path_marks_the_nodes_visited(kind: str, depth: int, p: int) -> None:
    tree = random_tree(kind, depth, p, 1)
    X = points(tree, 50)
    nodes, path = tree.nodes(X), tree.decision_path(X)
    assert nodes.shape == (50, depth + 1)
    assert path.shape == (50, 2 ** (depth + 1) - 1)
    assert path.dtype == bool
    for i in range(50):
        assert (np.flatnonzero(path[i]) + 1).tolist() == nodes[i].tolist()
        assert all(b in (2 * a, 2 * a + 1) for a, b in zip(nodes[i], nodes[i][1:], strict=False))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("depth", "p"), SHAPES)
def test_a_row_is_routed_alone_as_in_a_batch(kind: str, depth: int, p: int) -> None:
    tree = random_tree(kind, depth, p, 2)
    X = points(tree, 200)
    together, classes = tree.nodes(X), tree.predict(X)
    for i in range(200):
        assert tree.nodes(X[i : i + 1])[0].tolist() == together[i].tolist()
        assert tree.predict(X[i : i + 1])[0] == classes[i]
    order = np.random.default_rng(0).permutation(200)
    np.testing.assert_array_equal(tree.nodes(X[order]), together[order])
    np.testing.assert_array_equal(tree.nodes(np.asfortranarray(X)), together)
    if kind == "margin":
        scores = tree.scores(X)
        np.testing.assert_array_equal(np.vstack([tree.scores(X[i : i + 1]) for i in range(200)]), scores)


def test_rows_on_an_oblique_boundary_stay_there_in_every_batch() -> None:
    rng = np.random.default_rng(3)
    w = rng.normal(size=60)
    X = rng.random((300, 60))
    scaling = Scaling.identity(60)
    names = tuple(f"v{j}" for j in range(60))
    one = octsvm.MarginTree(0, (0, 1), names, scaling, w[None], np.zeros(1), np.array([True]))
    score = one.node_score(1, X)
    for i in range(0, 300, 10):  # put the boundary exactly on row i
        tree = replace(one, omega0=np.array([-score[i]]))
        assert tree.predict(X)[i] == tree.predict(X[i : i + 1])[0] == tree.predict(X[: i + 1])[i] == 1


# ------------------------------------------------------------------------------------- columns at predict time


@pytest.mark.parametrize("make", [axis, oblique, margin])
def test_predict_wants_the_training_tables_columns(make: Any) -> None:
    tree = make()
    X = pd.DataFrame({"f": [0.4, 0.6], "g": [0.3, 0.3]})
    expected = tree.predict(X).tolist()
    assert tree.predict(X[["g", "f"]]).tolist() == expected
    assert tree.predict(X.to_numpy()).tolist() == expected
    assert tree.predict(X.to_numpy().tolist()).tolist() == expected
    for method in (tree.predict, tree.predict_index, tree.nodes, tree.decision_path):
        for wrong, words in (
            (X.rename(columns={"g": "h"}), ["'g'", "'h'"]),
            (X[["f"]], ["'g'"]),
            (np.zeros((2, 3)), ["3 columns", "trained on 2", "'f', 'g'"]),
            (np.zeros((2, 1)), ["1 column,", "trained on 2"]),
            (np.zeros(2), ["reshape"]),
            (np.zeros((0, 2)), ["empty"]),
            (X.assign(g=["x", "y"]), ["'g'", "text"]),
            (X.assign(g=[np.nan, 0]), ["'g'", "row 0", "missing"]),
            (X.assign(f=[0, np.inf]), ["'f'", "row 1", "infinite"]),
            (np.array([[0, 0], [0, np.nan]]), ["'g'", "row 1", "missing"]),
        ):
            with pytest.raises(octsvm.InvalidData) as caught:
                method(wrong)
            for word in words:
                assert word in str(caught.value)


# -------------------------------------------------------------------------------------------------------- text


def read_text(tree: Tree, text: str, X: np.ndarray) -> list[Any]:
    """Route rows by what the printed tree says; an interpreter of its own."""
    lines = [((len(s) - len(s.lstrip())) // 4, s.strip()) for s in text.splitlines()]

    def holds(condition: str, row: dict[str, float]) -> bool:
        left, sign, right = re.fullmatch(r"\[\d+\] (.*) (<|>=) (\S+)", condition).groups()  # type: ignore[union-attr]
        value = 0.0
        for term in re.finditer(r"(^-|[+-] )?(?:([\d.e+-]+)\*)?([A-Za-z]\w*)", left):
            weight = float(term.group(2) or 1) * (-1 if (term.group(1) or "").startswith("-") else 1)
            value += weight * row[term.group(3)]
        return (value < float(right)) == (sign == "<")

    def walk(at: int, level: int, row: dict[str, float]) -> Any:
        while at < len(lines) and lines[at][0] == level:
            text = lines[at][1]
            if text.startswith("class "):
                return eval(text.removeprefix("class "))
            condition, _, rest = text.partition(":")
            if holds(condition, row):
                return eval(rest.strip().removeprefix("class ")) if rest else walk(at + 1, level + 1, row)
            at += 1
            while at < len(lines) and lines[at][0] > level:
                at += 1
        raise AssertionError(f"no line of the text holds for {row}")

    names = tree.feature_names
    return [walk(0, 0, dict(zip(names, row, strict=True))) for row in X.tolist()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("units", ["scaled", "original"])
def test_the_printed_tree_says_what_predict_does(kind: str, seed: int, units: Any) -> None:
    tree = random_tree(kind, 3, 3, seed)
    X = points(tree, 300, seed)
    M = tree.scaling.transform(X) if units == "scaled" else X
    said = read_text(tree, tree.to_text(units, most=99), M)
    agree = np.mean(np.asarray(said) == tree.predict(X))
    assert agree > 0.98  # the text rounds to a few digits, which matters only close to a boundary


def test_text_with_a_split_below_a_node_without_one() -> None:
    """Either such a tree is refused, or the text agrees with predict."""
    rows = np.array([[0.1, 0.1], [0.9, 0.9], [0.1, 0.9], [0.9, 0.1]])
    for make, change in (
        (axis, {"feature": np.array([-1, -1, 1])}),
        (oblique, {"split": np.array([False, False, True])}),
        (margin, {"split": np.array([False, False, True]), "omega0": np.array([1.0, 1.0, -1.0])}),
    ):
        try:
            tree = make(**change)
        except octsvm.InvalidData:
            continue
        assert read_text(tree, str(tree), rows) == tree.predict(rows).tolist()


def test_printing_one_leaf() -> None:
    leaf = axis(depth=0, feature=np.array([], dtype=int), threshold=np.array([]), label=np.array([2]))
    assert str(leaf) == "class 'c'"
    assert leaf.predict([[1.0, 1.0]]).tolist() == ["c"]
    assert leaf.nodes([[1.0, 1.0]]).tolist() == [[1]]
    constant = margin(depth=0, omega=np.zeros((1, 2)), omega0=np.array([-1.0]), split=np.array([False]))
    assert str(constant) == "class 'no'"


def test_printing_names_the_largest_weights_first_and_counts_the_rest() -> None:
    names = tuple(f"v{j}" for j in range(60))
    w = np.linspace(0.1, 6.0, 60)[None] * np.where(np.arange(60) % 2, 1, -1)
    tree = octsvm.MarginTree(0, (0, 1), names, Scaling.identity(60), w, np.array([1.0]), np.array([True]), ())
    text = tree.to_text(most=3)
    assert "6*v59 - 5.9*v58 + 5.8*v57" in text
    assert "57 with less effect" in text
    with pytest.raises(octsvm.InvalidData, match=r"scaled.*original"):
        tree.to_text("metres")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------- units


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [2, 7])
def test_weights_in_both_units_give_the_same_sides(kind: str, p: int) -> None:
    tree = next(t for t in (random_tree(kind, 2, p, seed) for seed in range(99)) if t.splits[:3].all())
    X = points(tree, 2000)
    M = tree.scaling.transform(X)
    W, b = tree.weights("original")
    V, c = tree.weights("scaled")
    compared = 0
    for t in np.flatnonzero(tree.splits):
        if kind == "margin":
            original, scaled = X @ W[t] + b[t], M @ V[t] + c[t]
            np.testing.assert_allclose(original, scaled, atol=1e-9)
            assert ((tree.scores(X)[:, t] >= 0) == (original >= 0))[np.abs(scaled) > 1e-9].all()
        else:
            original, scaled = X @ W[t] - b[t], M @ V[t] - c[t]
            unit = tree.scaling.span[tree.feature[t]] if kind == "axis" else 1.0
            np.testing.assert_allclose(original, scaled * unit, atol=1e-9)
            here = tree.decision_path(X)[:, t]
            right = tree.decision_path(X)[:, 2 * t + 2]
            away = here & (np.abs(scaled) > 1e-9)
            assert (right == (original >= 0))[away].all()
            compared += int(away.sum())
    assert kind == "margin" or compared > 1900  # the root alone sees 2000 rows
    with pytest.raises(octsvm.InvalidData, match="units='feet'"):
        tree.weights("feet")


def test_known_weights_in_original_units() -> None:
    W, w0 = margin(scaling=METRES).weights()
    np.testing.assert_allclose(W, [[0.5, 0], [0, 0], [0, 2 / 2500]])
    np.testing.assert_allclose(w0, [-2 + 4 * 3 / 8, 1, -1 - 2 * 100 / 2500])
    W, b = axis(scaling=METRES, threshold=np.array([1.0, 0.0, 725.0])).weights("scaled")
    np.testing.assert_allclose(W, [[1, 0], [0, 0], [0, 1]])
    np.testing.assert_allclose(b, [0.5, 0, 0.25])


def test_a_constant_column_has_no_weight_in_original_units() -> None:
    scaling = Scaling(np.array([0.0, 4.0]), np.array([2.0, 0.0]))
    W, w0 = margin(scaling=scaling, omega=np.array([[4.0, 1.0], [0, 0], [0, 2.0]]), relabelled=()).weights()
    np.testing.assert_allclose(W, [[2, 0], [0, 0], [0, 0]])
    np.testing.assert_allclose(w0, [-2, 1, -1])


def test_the_arrays_handed_out_are_copies() -> None:
    for tree in (oblique(), margin()):
        W, b = tree.weights("scaled")
        W[:] = 99
        b[:] = 99
        again = tree.weights("scaled")
        assert again[0].max() < 99
        assert again[1].max() < 99


# -------------------------------------------------------------------------------------------------------- JSON


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("depth", "p"), [(0, 2), (2, 3), (4, 10)])
def test_a_saved_tree_predicts_the_same(kind: str, depth: int, p: int, tmp_path: Path) -> None:
    tree = random_tree(kind, depth, p, 9)
    X = points(tree, 10_000)
    file = tmp_path / "tree.json"
    text = tree.to_json(file)
    for back in (
        Tree.from_json(text),
        Tree.from_json(file),
        Tree.from_json(str(file)),
        octsvm.Tree.from_dict(json.loads(text)),
        type(tree).from_json(text),
    ):
        assert type(back) is type(tree)
        np.testing.assert_array_equal(back.nodes(X), tree.nodes(X))
        np.testing.assert_array_equal(back.predict(X), tree.predict(X))
        assert back.to_json() == text
        assert str(back) == str(tree)


def test_what_json_keeps() -> None:
    tree = margin(scaling=METRES)
    saved = json.loads(tree.to_json())
    assert saved["schema"] == "octsvm.tree"
    assert saved["version"] == 1
    assert saved["kind"] == "margin"
    back = Tree.from_json(tree.to_json())
    assert back.relabelled == (Relabelled(3, 1, 0.5),)
    assert back.scaling.low.tolist() == METRES.low.tolist()
    for classes in (("no", "yes"), (False, True), (0, 1), (-1.5, 2.5), ("", "é\n\"'")):
        kept = Tree.from_json(replace(tree, classes=classes).to_json()).classes
        assert kept == classes
        assert [type(c) for c in kept] == [type(c) for c in classes]


def damaged(tree: Tree, **change: Any) -> str:
    return json.dumps({**tree.to_dict(), **change})


NAN, INF = float("nan"), float("inf")
DAMAGE: list[tuple[str, str]] = [
    ("newer version", damaged(axis(), version=2)),
    ("version as text", damaged(axis(), version="1")),
    ("version true", damaged(axis(), version=True)),
    ("version 0", damaged(axis(), version=0)),
    ("no version", json.dumps({k: v for k, v in axis().to_dict().items() if k != "version"})),
    ("other schema", damaged(axis(), schema="sklearn.tree")),
    ("no schema", json.dumps({k: v for k, v in axis().to_dict().items() if k != "schema"})),
    ("unknown kind", damaged(axis(), kind="forest")),
    ("kind of a name to import", damaged(axis(), kind="os.system")),
    ("kind is a list", damaged(axis(), kind=["axis"])),
    ("kind is an object", damaged(axis(), kind={"py/object": "os.system"})),
    ("kind of another tree", damaged(axis(), kind="margin")),
    ("depth huge", damaged(axis(), depth=10**9)),
    ("depth too large by one", damaged(axis(), depth=3)),
    ("depth negative", damaged(axis(), depth=-1)),
    ("depth fraction", damaged(axis(), depth=2.5)),
    ("depth as text", damaged(axis(), depth="2")),
    ("depth none", damaged(axis(), depth=None)),
    ("no classes", damaged(axis(), classes=[])),
    ("classes as one text", damaged(axis(), classes="abc")),
    ("classes twice", damaged(axis(), classes=["a", "a", "b"])),
    ("classes are lists", damaged(axis(), classes=[["a"], ["b"], ["c"]])),
    ("classes are objects", damaged(axis(), classes=[{"py/reduce": ["os.system", "true"]}, "b", "c"])),
    ("class nan", damaged(axis(), classes=[0.0, NAN, 1.0])),
    ("class none", damaged(axis(), classes=[None, "b", "c"])),
    ("three classes in a margin tree", damaged(margin(), classes=["a", "b", "c"])),
    ("names as one text", damaged(axis(), feature_names="fg")),
    ("names twice", damaged(axis(), feature_names=["f", "f"])),
    ("one name too few", damaged(axis(), feature_names=["f"])),
    ("no scaling", damaged(axis(), scaling=None)),
    ("scaling short", damaged(axis(), scaling={"low": [0.0], "span": [1.0]})),
    ("scaling nan", damaged(axis(), scaling={"low": [0.0, NAN], "span": [1.0, 1.0]})),
    ("scaling infinite", damaged(margin(), scaling={"low": [0.0, 0.0], "span": [1.0, INF]})),
    ("scaling negative", damaged(margin(), scaling={"low": [0.0, 0.0], "span": [1.0, -1.0]})),
    ("feature out of range", damaged(axis(), feature=[0, -1, 2])),
    ("feature below -1", damaged(axis(), feature=[0, -2, 1])),
    ("feature fraction", damaged(axis(), feature=[0.5, -1, 1])),
    ("threshold short", damaged(axis(), threshold=[0.5, 0.0])),
    ("threshold nan", damaged(axis(), threshold=[0.5, 0.0, NAN])),
    ("threshold text", damaged(axis(), threshold=["import os", 0.0, 0.0])),
    ("label out of range", damaged(axis(), label=[0, 1, 2, 3])),
    ("label negative", damaged(axis(), label=[0, 1, 2, -1])),
    ("label short", damaged(axis(), label=[0, 1, 2])),
    ("label missing", json.dumps({k: v for k, v in axis().to_dict().items() if k != "label"})),
    ("weights of another width", damaged(oblique(), a=[[1.0, 0.0, 0.0]] * 2)),
    ("weights ragged", damaged(oblique(), a=[[1.0], [1.0, 2.0], [0.0, 0.0]])),
    ("weights infinite", damaged(oblique(), a=[[INF, 0.0], [0.0, 0.0], [0.0, 0.0]])),
    ("split as numbers", damaged(oblique(), split=[1, 0, 1])),
    ("split short", damaged(margin(), split=[True, False])),
    ("intercept nan", damaged(margin(), omega0=[1.0, 2.0, NAN])),
    ("weights where nothing splits", damaged(margin(), split=[True, False, False])),
    ("relabelled is a number", damaged(margin(), relabelled=5)),
    ("relabelled is short", damaged(margin(), relabelled=[[0]])),
    ("relabelled at a node that is none", damaged(margin(), relabelled=[[0, 99, 1.0]])),
    ("relabelled row negative", damaged(margin(), relabelled=[[-1, 1, 1.0]])),
    ("an empty object", "{}"),
    ("a list", "[1, 2]"),
    ("a number", "7"),
    ("no JSON", "{not json"),
    ("half a file", axis().to_json()[:80]),
    ("nested without end", '{"schema":' * 100_000),
    ("a null byte", "\x00"),
    ("a pickle", "cos\nsystem\n(S'true'\ntR."),
    ("empty", ""),
]


@pytest.mark.timeout(5)
@pytest.mark.parametrize("text", [d[1] for d in DAMAGE], ids=[d[0] for d in DAMAGE])
def test_a_damaged_file_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(octsvm.InvalidData):
        Tree.from_json(text)
    file = tmp_path / "tree.json"
    file.write_bytes(text.encode())
    with pytest.raises(octsvm.InvalidData):
        Tree.from_json(file)


def test_loading_executes_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "executed"
    bait = f"__import__('pathlib').Path({str(trace)!r}).touch()"
    tree = axis(classes=(bait, "b", "c"), feature_names=(bait, "g"))
    back = Tree.from_json(tree.to_json())
    assert back.classes[0] == bait
    str(back)
    back.predict([[0.0, 0.0]])
    for field in ("kind", "depth", "threshold", "label", "scaling", "classes"):
        for value in (bait, {"py/object/apply": bait}, [bait] * 3, {"$type": bait, "__reduce__": bait}):
            with pytest.raises(octsvm.InvalidData):
                Tree.from_json(damaged(axis(), **{field: value}))
            if field == "classes":
                break  # three texts are three classes
    assert not trace.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"feature": np.array([0, -1])},
        {"feature": np.array([0, -1, 7])},
        {"threshold": np.array([0.5, np.nan, 0.25])},
        {"label": np.array([0, 1, 2, 5])},
        {"classes": ()},
        {"depth": -1},
        {"depth": 3},
        {"feature_names": ("f",)},
        {"scaling": Scaling.identity(3)},
    ],
)
def test_arrays_that_do_not_fit_together_make_no_tree(change: Any) -> None:
    with pytest.raises(octsvm.InvalidData, match="do not fit together"):
        axis(**change)


def test_printed_weights_are_those_with_most_effect_over_the_range_in_training() -> None:
    # A weight per unit of a wide column is small, and decides all the same.
    scaling = Scaling(np.zeros(3), np.array([100000.0, 1.0, 10.0]))
    tree = octsvm.MarginTree(
        0, (0, 1), ("income", "flag", "years"), scaling,
        np.array([[20.0, 1.0, -5.0]]), np.array([0.5]), np.array([True]), (),
    )  # fmt: skip
    assert (
        tree.to_text(most=2)
        .splitlines()[0]
        .startswith("[1] 0.0002*income - 0.5*years + (1 with less effect) <")
    )
    assert octsvm.export_text(tree, most=1).startswith("[1] 0.0002*income + (2 with less effect) <")
    assert "0.0002*income\\n- 0.5*years" in octsvm.export_graphviz(tree).replace(" - ", "\\n- ")
    assert tree.by_effect(1).tolist() == [0, 2, 1]
