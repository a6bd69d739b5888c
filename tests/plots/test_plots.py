"""Pictures: what they say is what the tree does, nothing lies on anything else, and all of it can be read."""

from __future__ import annotations

import copy
import importlib.util
import re
import subprocess
import sys
import warnings
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from long_cases import long

pytest.importorskip("matplotlib", reason="pictures need it: pip install 'octsvm[plot]'")

import matplotlib
from drawn_trees import FORM, exact, fitted_around, grid, large, tree
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

import octsvm
from octsvm import OCTClassifier, OCTHClassifier, OCTSVMClassifier, RESVMClassifier
from octsvm.exports._decision_paths import decision_paths
from octsvm.exports.graphviz import COLOURS
from octsvm.formulations.base import Scaling
from octsvm.formulations.trees import Relabelled
from octsvm.plots import _style
from octsvm.result import TracePoint

SHORT: dict[str, Any] = {"work_limit": {"nodes": 1, "rounds": 1}, "time_limit": 20}
BACKGROUND = {False: "#FFFFFF", True: "#1E2129"}  # a page, and the dark one of the documentation


# -- reading a picture --------------------------------------------------------------------------------------


def named(ax: Any, start: str) -> dict[str, Any]:
    """Everything in the picture whose gid is ``start`` and a number, by what follows ``start``."""
    found = {}
    for artist in ax.findobj(lambda a: bool(re.fullmatch(rf"{start}\d.*", a.get_gid() or ""))):
        assert artist.get_gid() not in found
        found[artist.get_gid().removeprefix(start)] = artist
    return found


def by_picture(ax: Any, values: dict[str, Fraction], top: int = 1) -> tuple[list[int], str]:
    """Split nodes on the way of a row and its class, by what the picture shows alone."""
    texts = {int(n): t for n, t in named(ax, "node").items()}
    answers = [(*map(int, n.split("-")), t) for n, t in named(ax, "answer").items()]
    node, way = top, []
    while any(parent == node for parent, _, _ in answers):
        way.append(node)
        total = Fraction(0)
        for line in texts[node].get_text().splitlines():
            if "|" in line or line.startswith("and "):
                break
            # "- 0.25 a", "a", or "0" where no feature has a weight
            number, _, name = line.replace("- ", "-").replace("+ ", "").rpartition(" ")
            total += Fraction(float(number or 1)) * values[name] if name != "0" else 0
        children = sorted((texts[c].get_position()[0], c) for p, c, _ in answers if p == node)
        assert len(children) == 2
        assert children[0][0] < texts[node].get_position()[0] < children[1][0]
        said = {c: t.get_text() for p, c, t in answers if p == node}
        (left, less), (right, more) = (said[c].rsplit(" ", 1) for _, c in children)
        assert (left, right, less) == ("<", ">=", more)
        node = children[0 if total < Fraction(float(less)) else 1][1]
    return way, texts[node].get_text().splitlines()[0]


def extents(ax: Any, dpi: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Where texts and boxes are, in pixels of a rendered picture."""
    figure = ax.figure
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    texts = {
        t.get_gid() or t.get_text(): t.get_window_extent(renderer) for t in ax.texts if t.get_text().strip()
    }
    boxes = {p.get_gid(): p.get_window_extent(renderer) for p in ax.patches if isinstance(p, FancyBboxPatch)}
    return texts, boxes


def overlap(one: Any, other: Any) -> bool:
    return bool(
        min(one.x1, other.x1) > max(one.x0, other.x0) and min(one.y1, other.y1) > max(one.y0, other.y0)
    )


def require_readable(ax: Any, dpi: int) -> None:
    """No text lies on a text, no box on a box, each text in its box, no edge across a box, all inside the axes."""
    texts, boxes = extents(ax, dpi)
    assert len(boxes) > 0
    for (a, one), (b, other) in combinations(texts.items(), 2):
        assert not overlap(one, other), f"{a} lies on {b}"
    for (a, one), (b, other) in combinations(boxes.items(), 2):
        assert not overlap(one, other), f"{a} lies on {b}"
    for name, text in texts.items():
        assert ax.bbox.x0 <= text.x0 <= text.x1 <= ax.bbox.x1, name
        assert ax.bbox.y0 <= text.y0 <= text.y1 <= ax.bbox.y1, name
        inside = [b for b, box in boxes.items() if overlap(text, box)]
        if not name.startswith("node"):
            assert not inside, f"{name} lies on {inside}"
            continue
        own = boxes[name.replace("node", "box")]
        assert inside == [name.replace("node", "box")]
        assert own.x0 < text.x0 < text.x1 < own.x1, name
        assert own.y0 < text.y0 < text.y1 < own.y1, name
    for name, edge in named(ax, "edge").items():
        points = ax.transData.transform(np.column_stack(edge.get_data()))
        steps = np.concatenate([np.linspace(a, b, 50) for a, b in pairwise(points)])
        for b, box in boxes.items():
            within = (
                (steps[:, 0] > box.x0 + 1)
                & (steps[:, 0] < box.x1 - 1)
                & (steps[:, 1] > box.y0 + 1)
                & (steps[:, 1] < box.y1 - 1)
            )
            assert not within.any(), f"edge {name} crosses {b}"
        for t, text in texts.items():
            hit = (
                (steps[:, 0] > text.x0)
                & (steps[:, 0] < text.x1)
                & (steps[:, 1] > text.y0)
                & (steps[:, 1] < text.y1)
            )
            assert not hit.any(), f"edge {name} crosses {t}"


def luminance(colour: Any) -> float:
    r, g, b = (((c + 0.055) / 1.055) ** 2.4 if c > 0.04045 else c / 12.92 for c in to_rgb(colour))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: Any, other: Any) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


# -- trees --------------------------------------------------------------------------------------------------


def large_trees() -> list[Any]:
    """Depth 3, sixty features with long names, every node in use."""
    given_up = tuple(Relabelled(i, 1 + i % 15, 1.0) for i in range(40))
    axis, oblique, margin = large(
        3,
        ("a kind of label that somebody was eager to spell out", "no"),
        "mean energy of the returning signal, frequency band number {}",
    )
    return [axis, oblique, margin.with_relabelled(given_up)]


def rows_for(fitted: Any, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = fitted.scaling.low + fitted.scaling.span * rng.random((n, len(fitted.feature_names)))
    return X, np.array(fitted.classes)[rng.integers(0, len(fitted.classes), n)]


def constant(classes: tuple[Any, ...] = ("a",), p: int = 2) -> list[Any]:
    """Trees without a split."""
    names = tuple(f"x{j}" for j in range(p))
    common = (0, classes, names, Scaling.identity(p))
    no = np.zeros(0)
    return [
        octsvm.AxisTree(*common, no.astype(int), no, np.zeros(1, int)),
        octsvm.ObliqueTree(*common, np.zeros((0, p)), no, no.astype(bool), np.zeros(1, int)),
        octsvm.MarginTree(*common, np.zeros((1, p)), np.array([-1.0]), np.zeros(1, bool)),
    ]


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(60, 2))
    X = X[abs(X.sum(axis=1) - 10) > 2][:30]
    return X, octsvm.flip_labels(np.where(X.sum(axis=1) > 10, "up", "down"), 0.1, seed=0)


@pytest.fixture(scope="module")
def four(table: tuple[np.ndarray, np.ndarray]) -> list[Any]:
    models = [
        OCTClassifier(max_depth=2, alpha=0.1, **SHORT),
        OCTHClassifier(max_depth=2, alpha=0.1, **SHORT),
        RESVMClassifier(c1=2, c2=3, **SHORT),
        OCTSVMClassifier(max_depth=1, c1=2, c2=3, c3=0.1, **SHORT),
    ]
    return [model.fit(*table) for model in models]


# -- left and right: texts and exports of the same trees are asked in tests/exports/test_exports.py ----------


@pytest.mark.parametrize("kind", list(FORM))
@pytest.mark.parametrize("seed", [0, *long([1, 2])])
def test_the_picture_sends_rows_where_the_tree_does(kind: str, seed: int) -> None:
    fitted, X = tree(kind, seed), grid()
    model = fitted_around(fitted, X)
    options: dict[str, Any] = {
        "units": "scaled" if kind != "axis" else "original",
        "digits": None,
        "most": None,
    }
    ax = octsvm.plot_tree(model, **options)
    paths, predicted = decision_paths(fitted, X), fitted.predict(X)
    for i, x in enumerate(X):
        path = [int(t) for t in paths[i] if t]
        assert by_picture(ax, exact(fitted, x)) == (path[:-1], str(predicted[i]))


@pytest.mark.parametrize("kind", list(FORM))
@pytest.mark.parametrize("seed", range(4))
def test_regions_are_those_of_predict(kind: str, seed: int) -> None:
    fitted = tree(kind, seed)
    rng = np.random.default_rng(seed)
    X, y = rows_for(fitted, 40)
    held = np.median(X, axis=0)
    for features in ((0, 3), ("d", "b")):
        ax = octsvm.plot_regions(fitted, X, y, features=features)
        columns = [fitted.feature_names.index(f) if isinstance(f, str) else f for f in features]
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        points = np.tile(held, (300, 1))
        points[:, columns] = rng.uniform((left, low), (right, high), size=(300, 2))
        want, hits = fitted.predict_index(points), np.zeros(300, int)
        for region in named(ax, "region").values():
            inside = region.get_path().contains_points(points[:, columns])
            hits += inside
            assert {COLOURS[k] for k in want[inside]} <= {to_hex(region.get_facecolor()[:3]).upper()}
        assert (hits == 1).mean() > 0.99  # but for points on a line between two of them
        assert (hits <= 1).all()


@pytest.mark.slow
def test_splits_and_margins_are_where_the_scores_say(four: list[Any], table: Any) -> None:
    X, y = table
    for model in four[2:]:
        ax = octsvm.plot_regions(model, X, y)
        for name, line in named(ax, "split").items():
            ends = np.column_stack(line.get_data())
            assert np.allclose(model.tree_.scores(ends)[:, int(name) - 1], 0, atol=1e-8)
        bands = named(ax, "margin")
        assert bands
        for name, band in bands.items():
            scores = model.tree_.scores(band.get_xy())[:, int(name) - 1]
            assert (abs(scores) <= 1 + 1e-8).all()
            assert max(abs(scores)) == pytest.approx(1, abs=1e-6)


# -- what can be read ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("fitted", large_trees(), ids=lambda t: t.kind)
@pytest.mark.parametrize("dpi", [60, 100, 220])
@pytest.mark.quick_cases("100-axis")
@pytest.mark.every_value
def test_a_large_tree_can_be_read(fitted: Any, dpi: int) -> None:
    X, y = rows_for(fitted)
    require_readable(octsvm.plot_tree(fitted, X, y), dpi)
    if dpi == 100:
        require_readable(octsvm.plot_tree(fitted, fontsize=14, width=60, most=5), dpi)


@pytest.mark.parametrize("size", [(8, 4), (3, 6), (20, 20)])
def test_a_large_tree_shrinks_into_given_axes(size: tuple[float, float]) -> None:
    figure = Figure(figsize=size, dpi=200)
    ax = figure.subplots()
    assert octsvm.plot_tree(large_trees()[1], ax=ax) is ax
    require_readable(ax, 200)


@pytest.mark.slow
def test_the_checks_on_overlaps_can_fail() -> None:
    ax = octsvm.plot_tree(large_trees()[1])
    require_readable(ax, 100)
    for text in ax.texts:
        text.set_fontsize(text.get_fontsize() * 1.5)
    with pytest.raises(AssertionError):
        require_readable(ax, 100)


def test_names_are_shortened_but_not_confused() -> None:
    names = [f"{'x' * 40}{j}{'y' * 40}" for j in range(3)] + ["short"]
    short = _style.elided_apart(names, 20)
    assert len(set(short)) == 4
    assert max(map(len, short)) <= 20
    assert short[3] == "short"
    assert _style.elided("a\n b\tc", 20) == "a b c"
    assert _style.elided("", 20) == "''"
    assert _style.elided("mean energy of the returning signal in band 12", 26) == "mean energy of…in band 12"
    for most in range(8, 60):
        assert len(_style.elided("mean energy of the returning signal in band 12", most)) <= most
    fitted = large_trees()[1]
    shown = " ".join(t.get_text() for t in named(octsvm.plot_tree(fitted), "node").values())
    assert "and 57 with less effect" in shown
    assert re.search(r"mean energy.*…band number \d+|…", shown)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.slow
def test_text_stands_out_from_what_is_behind_it(dark: bool, four: list[Any], table: Any) -> None:
    X, y = table
    seen = 0
    for fitted in [*four, *large_trees()]:
        ax = octsvm.plot_tree(fitted, dark=dark)
        fills = {p.get_gid(): p.get_facecolor() for p in ax.patches if p.get_gid()}
        for text in ax.texts:
            behind = fills.get((text.get_gid() or "").replace("node", "box"), BACKGROUND[dark])
            assert contrast(text.get_color(), behind) >= 4.5, text.get_text()
            seen += behind != BACKGROUND[dark]
    assert seen > 30
    for ax in (
        octsvm.plot_regions(four[3], X, y, dark=dark),
        octsvm.plot_trace(four[3], dark=dark),
        octsvm.plot_relabelling_path(made_up_path(), dark=dark),
    ):
        words = [ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels(), *ax.get_legend().get_texts()]
        for text in words:
            assert contrast(text.get_color(), BACKGROUND[dark]) >= 4.5, text.get_text()
    for colour in _style.PALETTE:
        assert contrast(_style.text_on(colour), colour) >= 4.5


def test_colours_follow_the_background() -> None:
    fitted = tree("oblique")
    light, dark = _style.LIGHT.ink, _style.DARK.ink

    def ink(ax: Any) -> str:
        return str(next(iter(named(ax, "answer").values())).get_color())

    assert ink(octsvm.plot_tree(fitted)) == light
    with matplotlib.rc_context({"text.color": "white"}):
        assert ink(octsvm.plot_tree(fitted)) == dark
        assert ink(octsvm.plot_tree(fitted, ax=Figure(facecolor="white").subplots())) == light
    black = Figure(facecolor="black").subplots()
    black.set_facecolor("none")
    assert ink(octsvm.plot_tree(fitted, ax=black)) == dark
    # Figures of our own are opaque: ink that was chosen for one background is not shown on another.
    for dark, style in ((False, _style.LIGHT), (True, _style.DARK)):
        drawn = octsvm.plot_tree(fitted, dark=dark).figure
        assert to_hex(drawn.get_facecolor(), keep_alpha=True).upper() == _style.BEHIND[style] + "FF"


def distance(one: str, other: str) -> float:
    """Euclidean distance in CIELAB."""

    def lab(colour: str) -> np.ndarray:
        rgb = np.array(to_rgb(colour))
        linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
        xyz = (
            np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
        )
        f = np.cbrt(np.maximum(xyz / [0.9505, 1.0, 1.089], 1e-9))
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

    return float(np.linalg.norm(lab(one) - lab(other)))


# Machado, Oliveira, Fernandes (2009), severity 1, on linear RGB.
BLIND = {
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


@pytest.mark.parametrize("kind", list(BLIND))
def test_the_first_classes_differ_to_colour_blind_readers(kind: str) -> None:
    def seen(colour: str) -> str:
        rgb = np.array(to_rgb(colour))
        linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
        out = np.clip(np.array(BLIND[kind]) @ linear, 0, 1)
        return to_hex(np.where(out > 0.0031308, 1.055 * out ** (1 / 2.4) - 0.055, 12.92 * out))

    assert min(distance(seen(a), seen(b)) for a, b in combinations(COLOURS[:4], 2)) > 12
    assert len({(_style.colour_of(k), _style.marker_of(k)) for k in range(60)}) == 60


# -- counts, labels, names ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_counts_are_those_of_the_rows() -> None:
    for fitted in large_trees():
        X, y = rows_for(fitted)
        texts = named(octsvm.plot_tree(fitted, X, y), "node")
        paths = decision_paths(fitted, X)
        for node, text in texts.items():
            here = (paths == int(node)).any(axis=1)
            want = " | ".join(str(int((y[here] == c).sum())) for c in fitted.classes)
            assert want in text.get_text().splitlines()
            given_up = len({r.row for r in getattr(fitted, "relabelled", ()) if r.node == int(node)})
            assert (f"{given_up} relabelled" in text.get_text()) == (given_up > 0)
        assert " | " not in "".join(t.get_text() for t in named(octsvm.plot_tree(fitted), "node").values())


def test_of_many_classes_the_largest_are_named() -> None:
    X = np.arange(21.0)[:, None]
    y = np.repeat(["one", "two", "three", "four", "five", "six"], range(1, 7))
    fitted = OCTClassifier(max_depth=1, alpha=0.1, **SHORT).fit(X, y)
    ax = octsvm.plot_tree(fitted)
    require_readable(ax, 100)
    assert named(ax, "node")["1"].get_text().splitlines()[1:] == ["6 six", "5 five", "4 four", "… +3 more"]
    assert sorted(t.get_text() for t in named(ax, "class").values()) == sorted(set(y))


def test_the_weights_that_are_shown_are_those_with_the_largest_effect() -> None:
    """In the table's units a feature with a small range has a large weight, however little it does."""
    scaling = Scaling(np.zeros(3), np.array([1000.0, 0.001, 1.0]))
    weights = np.array([[0.5, 0.1, 0.4]])
    fitted = octsvm.ObliqueTree(
        1, ("a", "b"), ("wide", "narrow", "middle"), scaling, weights, *map(np.array, ([0.3], [True], [0, 1]))
    )
    assert abs(fitted.weights("original")[0][0]).argmax() == 1
    shown = named(octsvm.plot_tree(fitted, most=2), "node")["1"].get_text().splitlines()
    assert [line.split()[-1] for line in shown[:2]] == ["wide", "middle"]
    assert shown[2] == "and 1 with less effect"


@pytest.mark.parametrize("dark", [False, True])
def test_bars_show_every_class_that_is_there(dark: bool) -> None:
    X = np.arange(200.0)[:, None]
    y = np.array(["few"] + ["many"] * 199)
    fitted = octsvm.fit("oct", X, y, depth=1, n_min=20, alpha=0).tree
    ax = octsvm.plot_tree(fitted, X, y, dark=dark)
    colours = {_style.colour_of(0), _style.colour_of(1)}
    bars = [
        p
        for p in ax.patches
        if not isinstance(p, FancyBboxPatch) and to_hex(p.get_facecolor()).upper() in colours
    ][:-2]  # the last two are the key's
    assert bars
    assert min(bar.get_width() for bar in bars) > 2  # points
    boxes = named(ax, "box")
    for bar in bars:
        around = [
            p
            for p in ax.patches
            if not isinstance(p, FancyBboxPatch)
            and to_hex(p.get_facecolor()).upper() == _style.BEHIND[_style.DARK if dark else _style.LIGHT]
            and p.get_x() < bar.get_x()
            and bar.get_x() + bar.get_width() < p.get_x() + p.get_width()
            and p.get_y() < bar.get_y()
        ]
        assert around, "a rim parts a bar from a leaf of the same colour"
    assert len(bars) >= len(boxes)


def test_labels_given_up_where_nothing_splits_are_counted_once() -> None:
    fitted = octsvm.MarginTree(
        1,
        ("a", "b"),
        ("x", "y"),
        Scaling.identity(2),
        np.array([[1.0, 0], [0, 0], [0, 1]]),
        np.array([-0.5, 1, -0.5]),
        np.array([True, False, True]),
        (Relabelled(0, 1, 1.0), Relabelled(0, 2, 1.0), Relabelled(1, 2, 1.0), Relabelled(2, 3, 1.0)),
    )
    texts = {n: t.get_text() for n, t in named(octsvm.plot_tree(fitted), "node").items()}
    assert {n for n, t in texts.items() if "relabelled" in t} == {"1", "2", "3"}
    assert "2 relabelled" in texts["2"]
    flat = constant(("a", "b"))[2].with_relabelled((Relabelled(3, 1, 1.0),))
    assert named(octsvm.plot_tree(flat), "node")["1"].get_text() == "a\n1 relabelled"


@pytest.mark.parametrize("k", range(4))
@pytest.mark.slow
def test_all_pictures_of_all_models(k: int, four: list[Any], table: Any, tmp_path: Path) -> None:
    X, y = table
    model = four[k]
    figure = Figure(figsize=(12, 8), layout="constrained")
    axes = figure.subplots(2, 2)
    for fitted in (model, model.result_, model.tree_):
        drawn = octsvm.plot_tree(fitted, X, y)
        octsvm.plot_regions(fitted, X, y)
    drawn.figure.savefig(tmp_path / "tree.png")
    octsvm.plot_tree(model, ax=axes[0, 0])
    octsvm.plot_regions(model, X, y, ax=axes[0, 1])
    octsvm.plot_trace(model, ax=axes[1, 0])
    octsvm.plot_trace(model.result_, ax=axes[1, 1])
    for ending in ("png", "svg", "pdf") if k == 3 else ("png",):
        figure.savefig(tmp_path / f"all.{ending}")
        assert (tmp_path / f"all.{ending}").stat().st_size > 1000
    # The marks of the rows themselves stay in sight.
    over = {c.get_gid(): c.get_zorder() for c in axes[0, 1].collections if c.get_gid()}
    rows = [z for name, z in over.items() if name.startswith("rows")]
    assert all(
        z < min(rows) for name, z in over.items() if name in ("predicted as another class", "label given up")
    )
    # Crosses are the rows predicted as another class, rings those given up.
    found = {c.get_gid(): c.get_offsets() for c in axes[0, 1].collections if c.get_gid()}
    wrong = X[model.predict(X) != y]
    assert np.array_equal(found.get("predicted as another class", np.empty((0, 2))), wrong)
    given_up = X[sorted(model.relabelled_["row"].unique())]
    assert np.array_equal(found.get("label given up", np.empty((0, 2))), given_up)
    assert len(wrong) + len(given_up) > 0 or k < 2


@pytest.mark.parametrize("classes", [("a",), ("a", "b")])
def test_constant_trees(classes: tuple[str, ...]) -> None:
    X = [[0.0, 1.0], [1.0, 1.0]]
    for fitted in constant(classes):
        ax = octsvm.plot_tree(fitted, X, ["a", "a"])
        assert list(named(ax, "box")) == ["1"]
        require_readable(ax, 100)
        ax = octsvm.plot_regions(fitted, X, ["a", "a"])
        assert list(named(ax, "region")) == ["1"]
        assert not named(ax, "split")
    with pytest.warns(UserWarning, match="one class"):
        model = OCTSVMClassifier().fit(X, ["a", "a"])
    octsvm.plot_tree(model)
    octsvm.plot_regions(model, X, ["a", "a"])
    with pytest.raises(octsvm.InvalidParameter, match="no trace"):
        octsvm.plot_trace(model)


ODD = [
    "$\\alpha",
    "_hidden",
    "x^2 $5 & 10%",
    "naïve – Ω ß é",
    "tab\there",
    "l" * 90,
    "%s {0} \\n",
    "<b>&amp;",
]


@pytest.mark.slow
def test_odd_labels_and_names_are_only_characters(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((80, 3)), columns=["$price_1$ in \\$", "_id", "größe\n(m²)"])
    y = np.array(ODD)[rng.integers(0, len(ODD), 80)]
    model = OCTClassifier(max_depth=2, alpha=0.01, min_samples_leaf=5, **SHORT).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with matplotlib.rc_context({"axes.formatter.use_mathtext": False}):
            ax = octsvm.plot_tree(model)
            require_readable(ax, 100)
            drawn = octsvm.plot_regions(model, X, y, features=("_id", "$price_1$ in \\$"))
            for picture in (ax, drawn):
                for ending in ("png", "svg", "pdf"):
                    picture.figure.savefig(tmp_path / f"odd.{ending}")
    shown = [t.get_text() for t in drawn.get_legend().get_texts()]
    for label in ("$\\alpha", "_hidden", "x^2 $5 & 10%", "naïve – Ω ß é", "tab here"):
        assert label in shown
        assert label in [t.get_text() for t in named(ax, "class").values()]
    assert not any(t.get_parse_math() for t in [*ax.texts, *drawn.get_legend().get_texts()])
    assert drawn.get_xlabel() == f"_id\n(größe (m²) held at {X.iloc[:, 2].median():.4g}, its median)"
    assert drawn.get_ylabel() == "$price_1$ in \\$"


def test_more_classes_and_columns_in_any_order() -> None:
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.random((60, 4)), columns=list("abcd"))
    y = np.digitize(X["b"], [0.25, 0.5, 0.75])
    model = OCTClassifier(max_depth=2, alpha=0.1, **SHORT).fit(X, y)
    ax = octsvm.plot_regions(model, X[list("dcba")], y, features=("b", "d"))
    assert len(named(ax, "region")) >= 3
    assert "2 other features held at their medians" in ax.get_xlabel()
    assert ax.get_ylabel() == "d"
    ax = octsvm.plot_regions(model, X, y, features=(1, 0), at=[0, 0, 1, 1])
    assert "given values" in ax.get_xlabel()
    one = octsvm.plot_tree(model.tree_, X[list("dcba")], pd.Series(y))
    assert [t.get_text() for t in named(one, "node").values()] == [
        t.get_text() for t in named(octsvm.plot_tree(model), "node").values()
    ]


# -- the trace and the path ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_trace_shows_the_results_own_figures(four: list[Any]) -> None:
    from dataclasses import replace

    trace = (TracePoint(0.5, float("inf"), 0.0), TracePoint(1.0, 9.0, 1.0), TracePoint(2.0, 7.0, 4.0))
    result = replace(
        four[3].result_, trace=trace, seconds=3.0, objective=6.5, bound=5.0, status="feasible", gap=1.5 / 6.5
    )
    ax = octsvm.plot_trace(result)
    lines = {line.get_gid(): line for line in ax.get_lines() if line.get_gid() in ("incumbent", "bound")}
    assert lines["incumbent"].get_xdata() == pytest.approx([0.5, 1, 2, 3])
    assert lines["incumbent"].get_ydata() == pytest.approx([np.nan, 9, 7, 6.5], nan_ok=True)
    assert lines["bound"].get_ydata() == pytest.approx([0, 1, 4, 5])
    words = [t.get_text() for t in ax.get_legend().get_texts()]
    assert words == ["best tree: 6.5", "bound: 5 (gap 23.1%)"]
    assert (lines["bound"].get_linestyle(), lines["incumbent"].get_linestyle()) == ("--", "-")


def made_up_path(**more: Any) -> pd.DataFrame:
    columns = {
        "c2": [4.0, 1.0, 2.0],
        "relabelled": [0, 9, 3],
        "against": [3, 9, 4],
        "status": ["optimal", "feasible", "optimal"],
    }
    return pd.DataFrame(columns | more)


def test_the_path_is_drawn_in_the_order_of_the_prices() -> None:
    ax = octsvm.plot_relabelling_path(made_up_path())
    lines = {line.get_gid(): line for line in ax.get_lines() if line.get_gid()}
    assert set(lines) == {"relabelled", "against"}
    assert lines["relabelled"].get_xdata() == pytest.approx([1, 2, 4])
    assert lines["relabelled"].get_ydata() == pytest.approx([9, 3, 0])
    assert "open marks: proof missing" in [t.get_text() for t in ax.get_legend().get_texts()]
    ax = octsvm.plot_relabelling_path(made_up_path(found=[0, 4, 3], flipped=5))
    assert {"found", "flipped"} <= {line.get_gid() for line in ax.get_lines()}


@pytest.mark.slow
def test_a_path_over_c2(table: Any) -> None:
    X, y = table
    clean = np.where(X.sum(axis=1) > 10, "up", "down")
    model = RESVMClassifier(c1=2, time_limit=20)
    before = model.get_params()
    path = octsvm.relabelling_path(model, X, y, c2=[50, 0.01, 3], flipped=y != clean)
    assert model.get_params() == before
    assert not hasattr(model, "tree_")
    assert path["c2"].tolist() == [0.01, 3, 50]
    assert path["relabelled"].is_monotonic_decreasing
    assert path["relabelled"].iloc[-1] == 0
    assert path["found"].tolist()[1] == (y != clean).sum() == path["flipped"].iloc[0]
    # Each line is what a fit of its own comes to.
    alone = RESVMClassifier(c1=2, c2=3, time_limit=20).fit(X, y)
    assert alone.result_.status == path["status"].iloc[1] == "optimal"
    assert alone.result_.objective == pytest.approx(path["objective"].iloc[1], rel=1e-3)
    octsvm.plot_relabelling_path(path)


# -- manners ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_settings_and_open_figures_stay_as_they_are(four: list[Any], table: Any) -> None:
    import matplotlib.pyplot as plt

    X, y = table
    settings, figures = copy.deepcopy(dict(matplotlib.rcParams)), plt.get_fignums()
    backend = matplotlib.get_backend()
    values = X.copy()
    pictures = [
        octsvm.plot_tree(four[3], X, y),
        octsvm.plot_regions(four[3], X, y),
        octsvm.plot_trace(four[3]),
        octsvm.plot_relabelling_path(made_up_path()),
    ]
    assert dict(matplotlib.rcParams) == settings
    assert plt.get_fignums() == figures
    assert matplotlib.get_backend() == backend
    assert np.array_equal(X, values)
    for ax in pictures:
        assert ax._repr_png_().startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == settings
    figure = plt.figure()
    try:
        ax = figure.gca()
        assert octsvm.plot_regions(four[3], X, y, ax=ax) is ax
        assert plt.get_fignums() == [*figures, figure.number]
    finally:
        plt.close(figure)


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_matplotlib_the_message_says_what_to_install() -> None:
    code = """
import sys, numpy as np, octsvm
from octsvm.formulations.base import Scaling  # Pyomo does not take it well where a module is blocked like that
sys.modules["matplotlib"] = None
tree = octsvm.AxisTree(1, ("a", "b"), ("x", "y"), Scaling.identity(2), np.array([0]), np.array([0.5]), np.array([0, 1]))
for draw in (lambda: octsvm.plot_tree(tree), lambda: octsvm.plot_regions(tree, [[0.0, 1.0]], ["a"])):
    try:
        draw()
    except octsvm.MissingPackage as error:
        assert isinstance(error, ImportError)
        print(error)
"""
    lines = run(code).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert "pip install 'octsvm[plot]'" in line
        assert "export_text" in line


@pytest.mark.slow
def test_what_cannot_be_drawn_is_refused_with_advice(four: list[Any], table: Any) -> None:
    X, y = table
    fitted = four[3]
    narrow = octsvm.AxisTree(
        1, ("a", "b"), ("x",), Scaling.identity(1), np.array([0]), np.array([0.5]), np.array([0, 1])
    )
    parameter, data = octsvm.InvalidParameter, octsvm.InvalidData
    path = made_up_path()
    for error, words, draw in (
        (parameter, "Fit it first", lambda: octsvm.plot_tree(OCTClassifier())),
        (parameter, "both X and y", lambda: octsvm.plot_tree(fitted, X)),
        (parameter, "width=3", lambda: octsvm.plot_tree(fitted, width=3)),
        (parameter, "most=0", lambda: octsvm.plot_tree(fitted, most=0)),
        (parameter, "fontsize=0", lambda: octsvm.plot_tree(fitted, fontsize=0)),
        (parameter, "dark='yes'", lambda: octsvm.plot_tree(fitted, dark="yes")),
        (parameter, "Axes", lambda: octsvm.plot_tree(fitted, ax=Figure())),
        (data, "units='feet'", lambda: octsvm.plot_tree(fitted, units="feet")),
        (data, "label 'sideways'", lambda: octsvm.plot_tree(fitted, X, ["sideways"] * len(X))),
        (data, "3 columns", lambda: octsvm.plot_regions(fitted, X[:, [0, 1, 1]], y)),
        (parameter, "plot_tree shows it", lambda: octsvm.plot_regions(narrow, [[0.0]], ["a"])),
        (parameter, "should be two", lambda: octsvm.plot_regions(fitted, X, y, features=(0, 1, 1))),
        (parameter, "should be two", lambda: octsvm.plot_regions(fitted, X, y, features="ab")),
        (parameter, "none of the tree's", lambda: octsvm.plot_regions(fitted, X, y, features=(0, 7))),
        (parameter, "none of the tree's", lambda: octsvm.plot_regions(fitted, X, y, features=("x1", "z"))),
        (parameter, "twice", lambda: octsvm.plot_regions(fitted, X, y, features=(1, 1))),
        (parameter, "one finite number", lambda: octsvm.plot_regions(fitted, X, y, at=[1])),
        (parameter, "training table", lambda: octsvm.plot_regions(four[2], X[:1], y[:1])),
        (parameter, "Result was expected", lambda: octsvm.plot_trace(fitted.tree_)),
        (parameter, "relabelling_path", lambda: octsvm.plot_relabelling_path(path[:0])),
        (parameter, "relabelling_path", lambda: octsvm.plot_relabelling_path([1, 2])),
        (parameter, "RESVMClassifier", lambda: octsvm.relabelling_path(OCTClassifier(), X, y)),
        (parameter, "numbers above 0", lambda: octsvm.relabelling_path(RESVMClassifier(), X, y, c2=[0, 1])),
        (parameter, "numbers above 0", lambda: octsvm.relabelling_path(RESVMClassifier(), X, y, c2=[])),
    ):
        with pytest.raises(error, match=re.escape(words)):
            draw()


# -- the gallery --------------------------------------------------------------------------------------------


def test_the_gallerys_pictures_are_those_of_its_examples(root: Path) -> None:
    folder = root / "docs" / "gallery"
    spec = importlib.util.spec_from_file_location("make_gallery", folder / "make.py")
    assert spec is not None
    assert spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    examples = [found for page in make.PAGES for found in make.examples(page)]
    page = (root / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown = [name for name, _, _ in make.examples(root / "docs" / "gallery.md")]
    assert len(shown) >= 6
    assert re.findall(r"!\[[^\]]{20,}\]\(gallery/([\w-]+\.svg)\)", page) == shown
    wanted = {name.replace(".svg", f"{end}.svg") for name, _, _ in examples for end in ("", "-dark")}
    assert {p.name for p in folder.glob("*.svg")} == wanted
    for name, _, mark in examples:
        for end in ("", "-dark"):
            picture = folder / name.replace(".svg", f"{end}.svg")
            assert make.fingerprint(picture) == mark, f"{picture.name} is old: python docs/gallery/make.py"
            assert not re.search(r"(?:href|src)=\"?https?:", picture.read_text(encoding="utf-8"))
    # The clock may end a fit too early on a busy machine; these trees are to be shown whole.
    for name, boxes in (("six-points", 7), ("sixty-features", 15), ("iris", 5)):
        for end in ("", "-dark"):
            text = (folder / f"{name}{end}.svg").read_text(encoding="utf-8")
            assert len(re.findall(r'id="box\d+"', text)) == boxes, (
                f"{name}{end}.svg: python docs/gallery/make.py"
            )
    assert sum(p.stat().st_size for p in folder.iterdir() if p.is_file()) < 1_500_000
