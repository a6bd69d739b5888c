"""The method whose parameters are chosen on the training rows."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import octsvm
from octsvm.experiments import Part, load_protocol, part_data, read_cells, run
from octsvm.experiments.methods import require
from octsvm.experiments.protocol import MethodSpec
from octsvm.experiments.selection import select


def dataset(name: str) -> Any:
    X = np.random.default_rng(0).random((80, 2))
    return SimpleNamespace(X=pd.DataFrame(X, columns=["a", "b"]), y=np.where(X[:, 0] > 0.5, 1, -1))


@pytest.mark.slow
def test_one_cell_a_part_is_the_tuned_tree_under_every_rule(tmp_path: Path) -> None:
    protocol = load_protocol(
        {
            "name": "t",
            "title": "t",
            "sets": ["made"],
            "noise": [0.1],
            "folds": 2,
            "repetitions": 1,
            "methods": {
                "re_svm_tuned": {
                    "title": "RE-SVM, tuned",
                    "kind": "tuned",
                    "fixed": {"formulation": "re_svm", "c2": 100.0, "folds": 2, "repeats": 1},
                }
            },
        }
    )
    run(protocol, tmp_path / "store.sqlite", load=dataset)
    cells = read_cells(tmp_path / "store.sqlite")
    assert len(cells) == 4
    assert not cells["error"].fillna("").astype(str).any()
    part = Part("made", 0.1, 0, 0, False)
    data = part_data(protocol, part, dataset("made"))
    choice = octsvm.tune(
        "re_svm", data.X, data.y, seed=part.seed(0) % 2**32, refit=False, c2=100.0, folds=2, repeats=1
    ).choice
    ((_, result),) = octsvm.fit_path("re_svm", data.X, data.y, [choice], seed=part.seed(0))
    line = cells[(cells["fold"] == 0) & ~cells["inner"].astype(bool)].iloc[0]
    assert line["n_right"] == (result.tree.predict(data.X_score) == data.y_score).sum()
    assert json.loads(line["extra"])["c1"] == pytest.approx(choice["c1"])
    table = select(cells, protocol=protocol).table["accuracy"]
    assert table.nunique() == 1
    assert len(table) == 3


def test_a_formulation_has_to_be_named() -> None:
    for given in ({}, {"fixed": {"formulation": "oct"}, "grid": {"alpha": (1.0,)}}):
        with pytest.raises(octsvm.InvalidParameter, match="formulation"):
            require(MethodSpec(title="t", kind="tuned", **given))
