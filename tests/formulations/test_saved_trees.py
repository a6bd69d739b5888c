"""Saved trees, results and classifiers of every format version are read; newer ones are refused, damaged ones too."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import FIXTURES

import octsvm
from octsvm.estimators import _saving
from octsvm.formulations import saved_trees

SAVED = FIXTURES / "saved"
EXPECTED: dict[str, Any] = json.loads((SAVED / "expected.json").read_text(encoding="utf-8"))
PRESENT = {"tree": saved_trees.VERSION, "result": 1, "estimator": _saving.VERSION}
CLASSIFIERS = {
    "axis": octsvm.OCTClassifier,
    "oblique": octsvm.OCTHClassifier,
    "margin": octsvm.OCTSVMClassifier,
}


def read(name: str, source: Any) -> Any:
    what, _, kind = name.split("_")
    return CLASSIFIERS[kind].from_json(source) if what == "estimator" else octsvm.Tree.from_json(source)


def test_there_is_a_file_of_every_version_and_kind() -> None:
    found = {p.stem for p in SAVED.glob("*_v*.json")}
    wanted = {
        f"{what}_v{v}_{kind}"
        for what, last in PRESENT.items()
        for v in range(1, last + 1)
        for kind in CLASSIFIERS
    }
    assert found == wanted == set(EXPECTED), "python tests/make_saved.py writes those of a new version"


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_files_of_every_version_predict_as_they_did(name: str) -> None:
    path = SAVED / f"{name}.json"
    assert json.loads(path.read_text(encoding="utf-8"))["version"] == int(re.findall(r"_v(\d+)_", name)[0])
    thing = read(name, path)
    found = thing.predict(np.array(EXPECTED[name]["X"]))
    assert found.tolist() == EXPECTED[name]["labels"]
    assert set(found) == {"ja", "nein"}
    if PRESENT[name.split("_")[0]] == 1 and name.startswith(("tree", "estimator")):
        again = json.loads(thing.to_json()) | {"result": None}
        before = json.loads(path.read_text(encoding="utf-8")) | {"result": None}
        if "params" in before:  # a classifier may have got parameters since, at their defaults
            defaults = type(thing)().get_params()
            before["params"] = {name: defaults[name] for name in again["params"]} | before["params"]
        assert again == before


@pytest.mark.parametrize("name", sorted(n for n in EXPECTED if not n.startswith("result")))
@pytest.mark.parametrize(
    ("version", "words"),
    [(99, "format version 99.*Upgrade octsvm"), ("1", "no version of"), (0, "no version")],
)
def test_a_newer_or_made_up_version_is_refused(name: str, version: Any, words: str) -> None:
    data = json.loads((SAVED / f"{name}.json").read_text(encoding="utf-8"))
    with pytest.raises(octsvm.InvalidData, match=words):
        read(name, json.dumps(data | {"version": version}))


def test_a_loaded_classifier_has_what_was_saved() -> None:
    model = octsvm.OCTHClassifier.from_json(SAVED / "estimator_v1_oblique.json")
    assert model.class_weight == {"ja": 2.0, "nein": 1.0}
    assert model.n_features_in_ == 3
    assert not hasattr(model, "result_")
    assert model.gap_ >= 0
    assert model.score(EXPECTED["estimator_v1_oblique"]["X"], EXPECTED["estimator_v1_oblique"]["labels"]) == 1
    margin = octsvm.OCTSVMClassifier.from_json(SAVED / "estimator_v1_margin.json")
    assert margin.relabelled_["row"].tolist() == [r.row for r in margin.tree_.relabelled]
    assert "Fitted" in margin._repr_html_()
    none = octsvm.RESVMClassifier(c2=100.0).fit([[0.0], [1.0]], [0, 1])
    read_back = octsvm.RESVMClassifier.from_json(none.to_json())
    assert none.relabelled_.empty
    assert read_back.relabelled_.dtypes.equals(none.relabelled_.dtypes)


def changed(**entries: Any) -> str:
    data = json.loads((SAVED / "estimator_v1_margin.json").read_text(encoding="utf-8"))
    for path, value in entries.items():
        *way, last = path.split("__")
        place = data
        for key in way:
            place = place[key]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{", "{}", changed(schema="octsvm.tree"), changed(params=3), changed(params__cost=1.0),
        changed(classes=["ja", "vielleicht"]), changed(classes=3), changed(tree=...), changed(tree__omega0=[0.0]),
        changed(node_weights=[[1, 2]]), changed(node_weights="x"), changed(relabelled=[[1]]), changed(bound="low"),
        changed(tree__version=99), changed(named_features=...), changed(**{"class": "OCTClassifier"}),
        changed(**{"class": "os.system"}),
    ],
)  # fmt: skip
def test_a_damaged_classifier_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(octsvm.InvalidData):
        octsvm.OCTSVMClassifier.from_json(text)
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(octsvm.InvalidData):
        octsvm.OCTSVMClassifier.from_json(tmp_path / "model.json")


def test_the_class_that_wrote_a_file_reads_it() -> None:
    with pytest.raises(octsvm.InvalidData, match=r"OCTSVMClassifier.*not with RESVMClassifier"):
        octsvm.RESVMClassifier.from_json(changed())
    tree = octsvm.Tree.from_json(SAVED / "tree_v1_axis.json")
    with pytest.raises(octsvm.InvalidData, match="of the kind 'axis'"):
        octsvm.OCTSVMClassifier.from_json(changed(tree=tree.to_dict()))
    with pytest.raises(octsvm.InvalidData, match=r"octsvm\.Tree\.from_json"):
        octsvm.OCTClassifier.from_json(SAVED / "tree_v1_axis.json")


def test_what_json_cannot_hold_is_named(tmp_path: Path) -> None:
    model = octsvm.OCTClassifier(max_depth=1, random_state=np.random.RandomState(0)).fit(
        [[0.0], [1.0]], [0, 1]
    )
    with pytest.raises(octsvm.InvalidData, match="random_state"):
        model.to_json(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())
    with pytest.raises(octsvm.OutputNotWritable):
        model.set_params(random_state=np.int64(0)).to_json(tmp_path / "no" / "model.json")
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        octsvm.OCTClassifier().to_json()
