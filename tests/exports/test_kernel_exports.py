"""Trees with a kernel: text, Graphviz, plain data, source, pictures, the command line and classifiers know them."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import run

import octsvm
from octsvm.formulations import kernels
from octsvm.formulations.outline import outline
from octsvm.formulations.trees import KernelTree

KERNELS: list[dict[str, Any]] = [
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "coef0": 0.5},
    {"kernel": "rbf"},
]


def table(n: int = 24) -> tuple[Any, Any]:
    """Two features in units of their own, and a class in the middle."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.uniform(-40, 60, n), rng.uniform(0, 1e-3, n)])
    S = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return X, np.where(((S - 0.5) ** 2).sum(axis=1) < 0.12, "in", "out")


def fresh(X: Any) -> Any:
    """Rows in and around the table."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.random.default_rng(1).uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), (200, 2))


@pytest.fixture(params=range(len(KERNELS)), ids=lambda k: str(KERNELS[k]["kernel"]))
def fitted(request: pytest.FixtureRequest) -> Any:
    """A tree with splits on two levels."""
    return tree_with(request.param)


@functools.cache
def tree_with(kernel: int) -> Any:
    """The tree of one of the kernels, which no test changes."""
    X, y = table()
    result = octsvm.fit(
        "octsvm",
        X,
        y,
        depth=1,
        c1=5,
        c2=8,
        c3=0.01,
        strategy="heuristic",
        work_limit=5,
        **KERNELS[kernel],
    )
    assert result.tree.splits.any()
    return result.tree


def test_source_predicts_the_same(fitted: KernelTree) -> None:
    rows = fresh(table()[0])
    space: dict[str, Any] = {}
    exec(compile(octsvm.export_source(fitted), "generated", "exec"), space)
    assert space["predict"](rows).tolist() == fitted.predict(rows).tolist()


def test_source_runs_on_numpy_alone(fitted: KernelTree, tmp_path: Path) -> None:
    rows = fresh(table()[0])[:20]
    octsvm.export_source(fitted, tmp_path / "rules.py")
    np.save(tmp_path / "rows.npy", rows)
    code = (
        "import sys, numpy, rules; print(rules.predict(numpy.load('rows.npy')).tolist()); "
        "assert not any(m.startswith(('octsvm', 'sklearn', 'pyomo')) for m in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(fitted.predict(rows).tolist())


@pytest.mark.parametrize("units", [None, "original", "scaled"])
@pytest.mark.slow_cases("linear-*")
def test_plain_data_says_what_the_score_is(fitted: KernelTree, units: Any) -> None:
    rules = json.loads(json.dumps(octsvm.export_dict(fitted, units=units)))
    kernel, support = rules["kernel"], np.array(rules["support"])
    low = np.array([s["low"] for s in rules["scaling"].values()])
    span = np.array([s["span"] for s in rules["scaling"].values()])
    assert rules["units"] == "scaled"

    def value(x: Any, z: Any) -> float:
        if kernel["name"] == "rbf":
            return float(np.exp(-kernel["gamma"] * ((x - z) ** 2).sum()))
        if kernel["name"] == "poly":
            return float((kernel["gamma"] * (x @ z) + kernel["coef0"]) ** kernel["degree"])
        return float(x @ z)

    for row in fresh(table()[0])[:40]:
        part, x = rules["root"], (row - low) / span
        while "class" not in part:
            total = sum(a * value(x, z) for a, z in zip(part["alpha"], support, strict=True))
            part = part["left"] if total < part["below"] else part["right"]
        assert part["class"] == fitted.predict(row[None])[0]


@pytest.mark.quick_cases("rbf")
def test_text_and_graphviz_name_the_kernel(fitted: KernelTree) -> None:
    for text in (octsvm.export_text(fitted), octsvm.export_graphviz(fitted), str(fitted)):
        assert (f"score({fitted.kernel.name}" in text.replace("\\n", " ")) == (fitted.kernel.name != "linear")
    if not fitted.weighs_features:  # no weights to be rounded
        assert octsvm.export_text(fitted) == fitted.to_text()


def test_splits_of_the_linear_kernel_are_shown_in_the_features(tmp_path: Path) -> None:
    tree, rows = tree_with(0), fresh(table()[0])
    root = outline(tree, "original")
    assert ((rows @ root.weights < root.below) == (tree.scores(rows)[:, 0] < 0)).all()
    texts = [
        octsvm.export_text(tree, digits=None),
        octsvm.export_graphviz(tree, digits=None).replace("\\n", " "),
    ]
    for weight, name in zip(root.weights, tree.feature_names, strict=True):
        assert all(f"{abs(weight)}*{name}" in text for text in texts)
    tree.to_json(tmp_path / "tree.json")
    shown = run("show", tmp_path / "tree.json", "--units", "scaled", "--weights", 1).output
    assert "kernel linear, scaled units" in shown
    largest = max(tree.weights("scaled")[0][0], key=abs)
    assert f"[1] {largest:.4g}*" in shown


def test_regions_are_where_the_tree_predicts(fitted: KernelTree) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure

    from octsvm.plots._style import colour_of

    X, y = table()
    figure = Figure(figsize=(6, 6))
    canvas = FigureCanvasAgg(figure)
    ax = octsvm.plot_regions(fitted, X, y, ax=figure.add_axes((0, 0, 1, 1)), show_legend=False)
    gids = {a.get_gid() for a in ax.findobj(lambda a: bool(a.get_gid()))}
    assert any(g.startswith("split") for g in gids)
    for artist in ax.get_children():  # colours of the regions alone
        gid = artist.get_gid() or ""
        artist.set_visible(gid.startswith("region"))
    figure.patch.set_facecolor("white")
    ax.patch.set_visible(False)
    canvas.draw()
    image = np.asarray(canvas.buffer_rgba())[..., :3] / 255.0
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    rng = np.random.default_rng(0)
    points = rng.uniform((left, bottom), (right, top), (400, 2))
    height, width = image.shape[:2]
    across = ((points[:, 0] - left) / (right - left) * width).astype(int).clip(0, width - 1)
    up = ((top - points[:, 1]) / (top - bottom) * height).astype(int).clip(0, height - 1)
    tints = np.array([0.32 * np.array(to_rgb(colour_of(k))) + 0.68 for k in range(2)])
    shown = np.abs(image[up, across][:, None] - tints).sum(axis=2).argmin(axis=1)
    said = np.array([fitted.classes.index(c) for c in fitted.predict(points)])
    assert (shown == said).mean() > 0.985  # the rest lies next to a line

    octsvm.plot_tree(fitted).figure.canvas.draw()


@pytest.mark.slow
def test_the_command_line_fits_shows_and_predicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = table()
    pd.DataFrame(X, columns=["a", "b"]).assign(label=y).to_csv("rows.csv", index=False)
    given = [
        "-f",
        "re_svm",
        "--c1",
        "20",
        "--c2",
        "20",
        "--kernel",
        "poly",
        "--degree",
        "2",
        "--gamma",
        "auto",
        "--coef0",
        "1",
        "--time-limit",
        "5",
    ]
    done = run("fit", "rows.csv", "--label", "label", *given, "--out", "tree.json", "--json")
    assert done.exit_code == 0, done.output
    tree = octsvm.Tree.from_json("tree.json")
    assert isinstance(tree, KernelTree)
    assert (tree.kernel.describe(), len(tree.support)) == ("poly, gamma=0.5, degree=2, coef0=1", 6)
    shown = run("show", "tree.json")
    assert "kernel poly" in shown.output
    rules = json.loads(run("show", "tree.json", "--json").output)
    assert rules["nodes"][0]["alpha"] == tree.alpha[0].tolist()
    predicted = run("predict", "tree.json", "rows.csv")
    assert predicted.exit_code == 0, predicted.output
    bad = run("fit", "rows.csv", "--label", "label", "--kernel", "rbf", "--gamma", "wide")
    assert bad.exit_code == 2
    assert "'scale' or 'auto'" in bad.output


def bell(A: Any, B: Any) -> Any:
    """A kernel of one's own."""
    return np.exp(-2.0 * ((A[:, None] - B) ** 2).sum(axis=2))


@pytest.mark.parametrize("chosen", ["rbf", "bell", bell])
def test_classifiers_with_a_kernel_are_saved(chosen: Any, tmp_path: Path) -> None:
    X, y = table(10)
    octsvm.register_kernel("bell", bell)
    try:
        model = octsvm.RESVMClassifier(c1=5, c2=8, kernel=chosen, time_limit=5).fit(X, y)
        again = octsvm.RESVMClassifier.from_json(model.to_json(tmp_path / "model.json"))
        rows = fresh(X)
        assert np.array_equal(again.decision_function(rows), model.decision_function(rows))
        assert again.kernel == ("rbf" if chosen == "rbf" else "bell")
        assert again.fit(X, y).predict(rows).tolist() == model.predict(rows).tolist()
    finally:
        kernels._own.clear()
    if chosen is bell:
        with pytest.raises(octsvm.InvalidData, match="register_kernel"):
            model.to_json()
        with pytest.raises(octsvm.InvalidData, match="source code"):
            octsvm.export_source(model)


def test_written_models_come_back(tmp_path: Path) -> None:
    """The solution of a kernel model that another program solved, read back into a tree."""
    X, y = table(10)
    params: dict[str, Any] = {"depth": 1, "c1": 5, "c2": 8, "c3": 0.01, "kernel": "rbf"}
    model = octsvm.build("octsvm", X, y, **params)
    octsvm.write(model, tmp_path / "model.lp")
    here = octsvm.solve(model)
    side = json.loads(next(tmp_path.glob("*.json")).read_text())
    values = {c: octsvm_value(model, v) for c, v in side["columns"] if v is not None}
    lines = [
        "solution status: optimal",
        f"objective value: {here.objective!r}",
        *(f"{c} {v!r}" for c, v in values.items()),
    ]
    (tmp_path / "model.sol").write_text("\n".join(lines) + "\n")
    there = octsvm.read_solution(octsvm.build("octsvm", X, y, **params), tmp_path / "model.sol")
    assert there.objective == pytest.approx(here.objective, rel=1e-6)
    assert isinstance(there.tree, KernelTree)


def octsvm_value(model: Any, name: str) -> float:
    """The value of a variable of a solved model by its name."""
    return float(model.find_component(name).value or 0.0)
