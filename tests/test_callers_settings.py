"""Fits, classifiers and reports among what is the caller's: numpy's errors, warnings, seeds, logging.

Engines are tried in tests/contract/test_surroundings.py; here is what is done around them.
"""

from __future__ import annotations

import contextlib
import io
import logging
import random
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from instances import FORMULATIONS

import octsvm
from octsvm import estimators, heuristics
from octsvm.data import prepare
from octsvm.experiments.report import write_report
from octsvm.experiments.store import read_cells
from octsvm.formulations.registry import formulation

RNG = np.random.default_rng(3)
X = RNG.random((24, 3))
Y = np.where(X[:, 0] + 0.4 * X[:, 1] > 0.7, "b", "a")
Y[[2, 9]] = np.where(Y[[2, 9]] == "a", "b", "a")
CELLS = Path(__file__).parent / "face" / "recorded" / "saved" / "cells.csv.gz"
SECONDS = 0.5


def neighbourhoods(name: str) -> bool:
    """What time ends differs from run to run; that there is a tree does not."""
    params = {} if name == "re_svm" else {"depth": 2}
    result = octsvm.fit(name, X, Y, seed=5, strategy="heuristic", time_limit=SECONDS, **params)
    return octsvm.evaluate(name, result.tree, X, Y, **params).objective <= result.objective * (1 + 1e-6)


def start(name: str) -> str:
    form = formulation(name)
    params = form.Params() if name == "re_svm" else form.Params(depth=2)
    data = prepare(form, X, Y)
    return str(heuristics.find(form, data, params, 60.0, steps=30, seed=4)[0])


def classified(cls: Any) -> Any:
    kept: dict[str, Any] = {"max_depth": 1} if "max_depth" in cls().get_params() else {}
    if (
        cls is estimators.RESVMClassifier
    ):  # at its own costs no hyperplane pays on so few rows, and that is a warning
        kept = {"c1": 10.0, "c2": 10.0}
    if cls.__name__.endswith("CV"):
        grid = {"alpha": [0.1]} if "alpha" in cls.chosen else {"c1": [4.0], "c2": [3.0]}
        # The limit ends nothing, also on a busy machine.
        kept |= {"grid": grid, "relative": True, "folds": 2, "repeats": 1, "time_limit": 600}
    return cls(random_state=1, **kept).fit(X[:10], Y[:10]).predict(X).tolist()


def report(folder: Path) -> bool:
    cells = read_cells(CELLS)
    cells.attrs["protocol"] |= {"rules": ["honest"]}  # for fewer pictures
    return {"report.html", "report.md"} < {path.name for path in write_report(cells, folder)}


def relabelled() -> str:
    result = octsvm.fit("re_svm", X[:14], Y[:14], c1=2, c2=1)
    return octsvm.relabelling_report(result, X[:14], Y[:14]).to_csv() + str(
        octsvm.flip_labels(Y, 0.2, seed=1)
    )


def written(folder: Path) -> list[str]:
    model = octsvm.build("oct", X, Y, depth=1)
    return [octsvm.write(model, folder / f"model.{ending}").read_text() for ending in ("lp", "nl", "mps")]


def drawn() -> None:
    plots = pytest.importorskip("octsvm.plots")
    result = octsvm.fit("octsvm", X[:, :2], Y, depth=1)
    plots.plot_tree(result.tree)
    plots.plot_regions(result.tree, X[:, :2], Y)


WORK: dict[str, Callable[[Path], Any]] = {
    **{f"{name}, heuristic": partial(lambda name, _: start(name), name) for name in FORMULATIONS},
    **{f"{name}, strategy": partial(lambda name, _: neighbourhoods(name), name) for name in FORMULATIONS},
    **{
        name: partial(lambda name, _: classified(getattr(estimators, name)), name)
        for name in estimators.__all__
        if name
        != "MOCTSVMClassifierCV"  # folds and grids are those of OCT-H, the search that of the classifier
    },
    "report": report,
    "pictures": lambda _: drawn(),
    "relabelling": lambda _: relabelled(),
    "files": written,
}

every_kind = pytest.mark.parametrize("kind", WORK)
plain: dict[str, Any] = {"report": True, "pictures": None}


def undisturbed(kind: str, folder: Path) -> Any:
    """What comes of it without set-ups."""
    if kind not in plain:
        plain[kind] = WORK[kind](folder / "plain")
    return plain[kind]


@contextlib.contextmanager
def set_ups(seed: int) -> Iterator[None]:
    """All at once, and that they are as they were afterwards."""
    random.seed(seed)
    np.random.seed(seed)
    root = logging.getLogger()
    handler, level = logging.StreamHandler(io.StringIO()), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            before = state()
            yield
            assert state() == before
        finally:
            root.removeHandler(handler)
            root.setLevel(level)


def state() -> list[Any]:
    root = logging.getLogger()
    printed = np.get_printoptions()
    seeds = random.getstate(), repr(np.random.get_state())
    return [np.geterr(), list(warnings.filters), *seeds, list(root.handlers), root.level, printed]


@every_kind
@pytest.mark.quick_cases("re_svm, *", "OCTSVMClassifier", "files")
def test_set_ups_of_the_callers_change_nothing_and_stay(kind: str, tmp_path: Path) -> None:
    for folder in ("plain", "set"):
        (tmp_path / folder).mkdir()
    wanted = undisturbed(kind, tmp_path)
    with set_ups(seed=11):
        assert WORK[kind](tmp_path / "set") == wanted
