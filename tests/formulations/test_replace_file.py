"""Files appear complete or not at all, under names that nobody knows before, with the mode that they had."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import octsvm
from octsvm.formulations.replace_file import replace_text

X, Y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["a", "a", "b", "b"]


def writers() -> dict[str, Callable[[Path], Any]]:
    result = octsvm.fit("oct", X, Y, depth=1, alpha=0.1)
    fitted = octsvm.OCTClassifier(max_depth=1, alpha=0.1).fit(X, Y)
    model = octsvm.build("oct", X, Y, depth=1, alpha=0.1)
    return {
        "tree.json": result.tree.to_json,
        "result.json": result.to_json,
        "classifier.json": fitted.to_json,
        "predict.py": lambda path: octsvm.export_source(result, path),
        "model.lp": lambda path: octsvm.write(model, path),
        "model.nl": lambda path: octsvm.write(model, path),
        "model.mps": lambda path: octsvm.write(model, path),
    }


@pytest.fixture(scope="module")
def written() -> dict[str, Callable[[Path], Any]]:
    return writers()


NAMES = ["tree.json", "result.json", "classifier.json", "predict.py", "model.lp", "model.nl", "model.mps"]


@pytest.mark.parametrize("name", NAMES)
def test_the_mode_of_a_replaced_file_is_kept_and_a_new_one_has_that_of_the_umask(
    written: dict[str, Callable[[Path], Any]], name: str, tmp_path: Path
) -> None:
    before = os.umask(0o027)
    try:
        written[name](tmp_path / name)
        made = {p: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
        assert set(made.values()) == {0o640}
        for path in made:
            path.chmod(0o600)
        written[name](tmp_path / name)
    finally:
        os.umask(before)
    assert {p: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()} == dict.fromkeys(made, 0o600)


@pytest.mark.parametrize("name", NAMES)
def test_a_link_is_followed_and_one_of_a_temporary_name_is_not(
    written: dict[str, Callable[[Path], Any]], name: str, tmp_path: Path
) -> None:
    real, precious = tmp_path / f"real-{name}", tmp_path / "precious"
    real.write_text("old")
    precious.write_text("precious")
    link = tmp_path / name
    link.symlink_to(real)
    for stem in (name, real.name):
        (tmp_path / f".{stem}.{os.getpid()}.part").symlink_to(precious)
        (tmp_path / f".{Path(stem).stem}-{os.getpid()}-part{Path(stem).suffix}").symlink_to(precious)
    written[name](link)
    assert link.is_symlink()
    assert real.read_text() != "old"
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("name", ["tree.json", "predict.py"])
def test_threads_that_write_to_one_path_all_succeed(
    written: dict[str, Callable[[Path], Any]], name: str, tmp_path: Path
) -> None:
    failed: list[BaseException] = []
    gate = threading.Barrier(8)

    def work() -> None:
        gate.wait()
        try:
            for _ in range(10):
                written[name](tmp_path / name)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_models_written_to_one_path_at_once_keep_their_sidecar(tmp_path: Path) -> None:
    models = [octsvm.build("oct", X, Y, depth=1, alpha=0.1) for _ in range(4)]
    failed: list[BaseException] = []

    def work(model: Any) -> None:
        try:
            octsvm.write(model, tmp_path / "model.nl")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "model.col",
        "model.nl",
        "model.nl.json",
        "model.row",
    ]


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "tree.json"
    target.write_text("old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(octsvm.OutputNotWritable, match="No space left"):
        replace_text(target, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["tree.json"]
    assert target.read_text() == "old"
    with pytest.raises(octsvm.OutputNotWritable):
        replace_text(tmp_path / "missing" / "tree.json", "new")


@pytest.mark.slow
def test_a_report_that_is_written_again_keeps_the_modes_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from octsvm.experiments.report import write_report
    from octsvm.experiments.store import read_cells

    monkeypatch.setitem(sys.modules, "scikit_posthocs", None)  # no pictures, which take seconds
    saved = Path(__file__).parent.parent / "face" / "recorded" / "saved" / "cells.csv.gz"
    before = [tmp_path / name for name in ("report.md", "accuracies.csv")]
    for path in before:
        path.touch(0o600)
    cells = read_cells(saved)
    cells.attrs["protocol"] |= {"rules": ["honest"]}
    assert set(before) < set(write_report(cells, tmp_path))
    assert {stat.S_IMODE(path.stat().st_mode) for path in before} == {0o600}
