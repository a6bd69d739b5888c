"""Text, Graphviz, plain data, source, predictions and the model agree on left and right, boundaries included."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_trees import (
    FORM,
    NAMES,
    by_dot,
    by_text,
    exact,
    fitted_around,
    grid,
    large,
    rows_on_boundaries,
    tree,
)
from long_cases import long

import octsvm
from octsvm import MOCTSVMClassifier, OCTClassifier, OCTHClassifier, OCTSVMClassifier, RESVMClassifier
from octsvm.exports._decision_paths import decision_paths
from octsvm.formulations.base import Scaling


def by_dict(rules: dict[str, Any], x: np.ndarray) -> tuple[list[int], str]:
    """The same by the plain data, scaled by what stands in it."""
    values = {n: Fraction(float(v)) for n, v in zip(rules["features"], x, strict=True)}
    for name, s in rules.get("scaling", {}).items():
        values[name] = (values[name] - Fraction(s["low"])) / Fraction(s["span"]) if s["span"] else Fraction(0)
    part, way = rules["root"], []
    while "class" not in part:
        way.append(part["node"])
        total = sum((Fraction(w) * values[n] for n, w in part["weights"].items()), Fraction(0))
        part = part["left"] if total < Fraction(part["below"]) else part["right"]
    return way, repr(part["class"])


def run_source(text: str, name: str = "predict") -> Any:
    space: dict[str, Any] = {}
    exec(compile(text, "generated", "exec"), space)
    return space[name]


@pytest.mark.parametrize("kind", list(FORM))
@pytest.mark.parametrize("seed", [0, *long(range(1, 6))])
@pytest.mark.slow_cases("0-margin")
def test_all_agree_on_left_and_right(kind: str, seed: int) -> None:
    fitted, X = tree(kind, seed), grid()
    model = fitted_around(fitted, X)
    paths, predicted = decision_paths(fitted, X), fitted.predict(X)
    options: dict[str, Any] = {
        "units": "scaled" if kind != "axis" else "original",
        "digits": None,
        "most": None,
    }
    text, dot = octsvm.export_text(model, **options), octsvm.export_graphviz(model, **options)
    rules = json.loads(json.dumps(octsvm.export_dict(model), allow_nan=False))
    by_source = run_source(octsvm.export_source(model))(X)
    leaf, marks = model.apply(X), model.decision_path(X).toarray()
    # Rows on a boundary are among them: a split they reach has its threshold as their score.
    on_boundary = 0
    for i, x in enumerate(X):
        values = exact(fitted, x)
        path = [int(t) for t in paths[i] if t]
        want = (path[:-1], repr(str(predicted[i])))
        assert by_text(text, values) == want
        assert by_dot(dot, values) == want
        assert by_dict(rules, x) == want
        assert by_source[i] == model.predict(X[i : i + 1])[0] == predicted[i]
        assert leaf[i] == path[-1]
        assert (np.flatnonzero(marks[i]) + 1).tolist() == path
        W, b = fitted.weights(options["units"])
        for t in path[:-1]:
            score = sum(Fraction(float(w)) * values[n] for w, n in zip(W[t - 1], NAMES, strict=True))
            on_boundary += score == Fraction(float(-b[t - 1] if kind == "margin" else b[t - 1]))
    assert on_boundary > 0
    assert rows_on_boundaries(kind, fitted, X) > 0


# -- round trips --------------------------------------------------------------------------------------------

POINTS = 1_000


def fitted_classifiers() -> list[Any]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 6)) * [1, 10, 100, 1e-3, 1, 1e5]
    X[:, 4] = 2.5
    y = np.where(X[:, 0] * 10 + X[:, 1] > 3, "oui", "non")
    y[:3] = np.where(y[:3] == "oui", "non", "oui")
    short: dict[str, Any] = {"work_limit": {"nodes": 1, "rounds": 1}, "time_limit": 20}
    models = [
        OCTClassifier(max_depth=2, alpha=0.1, **short),
        OCTHClassifier(max_depth=2, alpha=0.1, **short),
        RESVMClassifier(c1=5, c2=8, **short),
        OCTSVMClassifier(max_depth=1, c1=5, c2=8, c3=0.1, **short),
        MOCTSVMClassifier(max_depth=1, c1=5, c2=20, c3=0.1, **short),
    ]
    return [model.fit(X, y) for model in models]


def deep_trees() -> list[Any]:
    return large(4, (-1, 1), "a feature with quite a long name, number {}")


def points(p: int, X: Any = None) -> np.ndarray:
    return np.random.default_rng(8).normal(size=(POINTS, p)) * 3 * (1 if X is None else X)


@pytest.mark.slow
def test_round_trips_predict_the_same_on_a_thousand_points(tmp_path: Path) -> None:
    sources, wanted = [], []
    for k, model in enumerate(fitted_classifiers()):
        Z = points(6, [1, 10, 100, 1e-3, 1, 1e5])
        predicted = model.predict(Z)
        assert len(set(predicted)) == 2
        path = tmp_path / f"model{k}.json"
        model.to_json(path)
        for copy in (type(model).from_json(path), pickle.loads(pickle.dumps(model))):
            assert (copy.predict(Z) == predicted).all()
            assert (copy.decision_function(Z) == model.decision_function(Z)).all()
            assert (copy.predict_proba(Z) == model.predict_proba(Z)).all()
        assert (octsvm.Tree.from_json(model.tree_.to_json()).predict(Z) == predicted).all()
        sources.append((model, Z))
        wanted.append(predicted)
    for fitted in deep_trees():
        Z = points(60)
        predicted = fitted.predict(Z)
        for copy in (octsvm.Tree.from_json(fitted.to_json()), pickle.loads(pickle.dumps(fitted))):
            assert (copy.predict(Z) == predicted).all()
        sources.append((fitted, Z))
        wanted.append(predicted)
    # The generated source runs in a process that cannot import octsvm.
    code = ["import sys, numpy as np", "sys.modules['octsvm'] = None"]
    for k, (model, Z) in enumerate(sources):
        octsvm.export_source(model, tmp_path / f"tree{k}.py")
        np.save(tmp_path / f"points{k}.npy", Z)
        code.append(f"import tree{k}; np.save('labels{k}.npy', tree{k}.predict(np.load('points{k}.npy')))")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(code)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for k, predicted in enumerate(wanted):
        found = np.load(tmp_path / f"labels{k}.npy")
        assert found.dtype == predicted.dtype
        assert (found == predicted).all()


# -- each of them -------------------------------------------------------------------------------------------


def test_what_the_text_looks_like() -> None:
    fitted = tree("margin", 1)
    assert octsvm.export_text(fitted).splitlines()[0].startswith("[1] ")
    wide = deep_trees()[1]
    first = octsvm.export_text(wide, most=2).splitlines()[0]
    assert first.count("*") == 2
    assert "(58 with less effect)" in first
    assert "(1 with less effect)" in octsvm.export_text(wide, most=59).splitlines()[0]
    leaf = octsvm.AxisTree(
        0, ("a",), ("x1",), Scaling.identity(1), np.array([], int), np.array([]), np.array([0])
    )
    assert octsvm.export_text(leaf) == "class 'a'"
    assert "n1 [" in octsvm.export_graphviz(leaf)
    assert octsvm.export_dict(leaf)["root"] == {"node": 1, "class": "a"}
    assert run_source(octsvm.export_source(leaf))([[1.0], [2.0]]).tolist() == ["a", "a"]


@pytest.mark.parametrize("fitted", [*map(tree, FORM), *deep_trees()], ids=lambda t: f"{t.kind}{t.depth}")
def test_the_trees_own_text_has_the_same_lines_but_for_digits(fitted: Any) -> None:
    ours, theirs = octsvm.export_text(fitted).splitlines(), fitted.to_text().splitlines()
    assert [re.sub(r"-?[\d.]+(e[+-]\d+)?", "#", a) for a in ours] == [
        re.sub(r"-?[\d.]+(e[+-]\d+)?", "#", b) for b in theirs
    ]


def test_a_result_and_a_tree_do_as_well_as_a_classifier() -> None:
    result = octsvm.fit("oct", [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], depth=1)
    assert octsvm.export_text(result) == octsvm.export_text(result.tree) == str(result.tree)
    assert octsvm.export_dict(result) == octsvm.export_dict(result.tree)
    with pytest.raises(octsvm.InvalidParameter, match="Fit it first"):
        octsvm.export_text(OCTClassifier())


def test_the_training_weight_stands_at_the_nodes_of_a_classifier() -> None:
    model = OCTClassifier(max_depth=1).fit(
        [[0.0], [1.0], [2.0], [3.0]], list("aabb"), sample_weight=[1, 2, 1, 1]
    )
    root = octsvm.export_dict(model)["root"]
    assert (root["training_weight"], root["left"]["training_weight"]) == ([3.0, 2.0], [3.0, 0.0])
    assert "weight 3 | 2" in octsvm.export_graphviz(model)


HOSTILE = ('"]; evil [label="', "back\\slash\nnew line", "'''\"\"\"; import os; os.abort()", "{x}%s", "   ")


def test_hostile_names_stay_text() -> None:
    p = len(HOSTILE)
    a = np.ones((1, p)) / p
    fitted = octsvm.ObliqueTree(
        1, HOSTILE[:3], HOSTILE, Scaling.identity(p), a, np.array([0.5]), np.array([True]), np.array([0, 2])
    )
    dot = octsvm.export_graphviz(fitted, most=None)
    assert len(re.findall(r'^  n\d+ \[label="(?:[^"\\]|\\.)*", ', dot, re.MULTILINE)) == 3
    assert "evil [" not in re.sub(r'"(?:[^"\\]|\\.)*"', '""', dot)
    space: dict[str, Any] = {}
    exec(octsvm.export_source(fitted), space)
    assert (tuple(space["FEATURES"]), tuple(space["CLASSES"])) == (HOSTILE, HOSTILE[:3])
    Z = np.random.default_rng(0).random((50, p))
    assert (space["predict"](Z) == fitted.predict(Z)).all()
    assert len(octsvm.export_text(fitted, most=None).splitlines()) == 2
    assert json.loads(json.dumps(octsvm.export_dict(fitted)))["features"] == list(HOSTILE)


def test_the_source_says_what_it_cannot_use(tmp_path: Path) -> None:
    predict = run_source(octsvm.export_source(tree("oblique"), name="classify"), "classify")
    with pytest.raises(ValueError, match=r"\(m, 4\)"):
        predict([[1.0, 2.0]])
    with pytest.raises(ValueError, match="missing or infinite"):
        predict([[np.nan] * 4])
    for name in ("two words", "class", 3, "f(): import os"):
        with pytest.raises(octsvm.InvalidParameter, match="Python name"):
            octsvm.export_source(tree("axis"), name=name)  # type: ignore[arg-type]
    with pytest.raises(octsvm.OutputNotWritable):
        octsvm.export_source(tree("axis"), tmp_path / "no" / "folder.py")


@pytest.mark.parametrize(
    "options", [{"units": "metric"}, {"digits": 0}, {"most": 0}, {"most": True}, {"digits": 2.5}]
)
def test_unknown_options_are_refused(options: dict[str, Any]) -> None:
    for export in (octsvm.export_text, octsvm.export_graphviz):
        with pytest.raises(ValueError, match=next(iter(options))):
            export(tree("axis"), **options)


@pytest.mark.slow
def test_original_units_are_the_same_rule_away_from_boundaries() -> None:
    for fitted in (*map(tree, ("oblique", "margin")), *deep_trees()[1:]):
        rules = octsvm.export_dict(fitted, units="original")
        assert "scaling" not in rules
        Z = np.random.default_rng(1).normal(size=(300, len(fitted.feature_names)))
        if "c" in fitted.feature_names:
            Z[:, 2] = 5.0
        assert [by_dict(rules, z)[1] for z in Z] == [repr(c.item()) for c in fitted.predict(Z)]
