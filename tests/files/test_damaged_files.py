"""Damaged and hostile files are refused in the words of the house, soon, and nothing in them is executed."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

import octsvm
from octsvm import cli, solvers
from octsvm.backends import solution_formats
from octsvm.errors import InvalidData, InvalidSolutionFile, InvalidSolverTable, InvalidStore

X, Y = [[0.0, 0.2], [0.3, 0.1], [0.7, 0.4], [1.0, 0.5]], list("aabb")
DIGITS = "9" * 10_000
HUGE: list[Any] = [
    10**30,
    [10**30],
    [[10**30] * 2],
    10**400,
    [10**400],
    -1,
    None,
    {},
    "x",
    [],
    [[]],
    [None],
    [1e308, -1e308],
]


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """Less than a second for each refusal, with room for a busy machine."""
    began = time.process_time()
    yield
    assert time.process_time() - began < 5


@pytest.mark.parametrize("formulation", ["oct", "oct_h", "octsvm"])
def test_a_damaged_tree_is_refused_or_one_that_predicts(formulation: str) -> None:
    content = octsvm.fit(formulation, X, Y, depth=1).tree.to_dict()
    refused = 0
    for key in set(content) - {"relabelled"}:
        first = (
            [[value, *content[key][1:]] for value in HUGE]
            if isinstance(content[key], list) and content[key]
            else []
        )
        for value in [*HUGE, *first]:
            try:
                assert len(octsvm.Tree.from_json(json.dumps(content | {key: value})).predict(X)) == 4
            except InvalidData:
                refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    "text", ['{"depth": ' + DIGITS, '{"a":' * 200_000, '{"schema": "octsvm.tree", "version": ' + DIGITS + "}"]
)
def test_text_that_python_itself_refuses_is_refused(text: str, tmp_path: Path) -> None:
    for reader in (octsvm.Tree.from_json, octsvm.OCTClassifier.from_json):
        with pytest.raises(InvalidData, match="not JSON"):
            reader(text)
    model = octsvm.build("oct", X, Y, depth=1)
    octsvm.write(model, tmp_path / "model.lp")
    (tmp_path / "model.lp.json").write_text(text)
    (tmp_path / "answer.sol").write_text("# Objective value = 1\nx 1\n")
    with pytest.raises(InvalidSolutionFile, match="damaged"):
        octsvm.read_solution(model, tmp_path / "answer.sol", sidecar=tmp_path / "model.lp.json")


def test_a_classifier_has_weights_that_are_none_in_no_file() -> None:
    saved = json.loads(octsvm.OCTClassifier(max_depth=1).fit(X, Y).to_json())
    first, *rest = saved["node_weights"]
    for weights in (
        [[-1.0, 3.0], *rest],
        [[float("nan"), 1.0], *rest],
        [first, *([[float("inf"), 0.0]] * len(rest))],
    ):
        with pytest.raises(InvalidData):
            octsvm.OCTClassifier.from_json(json.dumps(saved | {"node_weights": weights}))
    for name in ("bound", "gap"):
        with pytest.raises(InvalidData):
            octsvm.OCTClassifier.from_json(json.dumps(saved | {name: float("nan")}))


@pytest.mark.parametrize(
    "text",
    [
        "s mip 5 nan o 1\ne o f\n",
        "s mip 5 inf o 1\ne o f\n",
        f"s mip 5 {DIGITS} o 1\ne o f\n",
        f"Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 1\n# Columns {DIGITS}\nx 1\n",
        "m\nOptions\n3\n1\n1\n0\n0\n0\n1\n1\n2\nobjno 0 inf\n",
        f"m\nOptions\n{DIGITS}\n",
        f"Optimal - objective value 1\n{DIGITS} x 1\n",
        "Optimal - objective value 1\n\u00b2 x 1\n",
    ],
)
def test_a_solution_file_with_impossible_counts_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "answer.sol"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSolutionFile):
        solution_formats.read(path)
    for kind in solution_formats.READERS:
        with pytest.raises(InvalidSolutionFile):
            solution_formats.read(path, kind)


OWN = "solvers:\n  mine:\n    inherit: cbc\n    title: x\n"


@pytest.mark.parametrize(
    "text",
    [
        OWN + "prefer: 5\n",
        OWN + "prefer: [[highs]]\n",
        OWN + "classes: 5\n",
        OWN + "classes: {a: 1}\n",
        OWN.replace("cbc", "[highs]"),
        OWN.replace("cbc", "{highs: 1}"),
        "solvers: " + "[" * 100_000,
        *(OWN + f"    option_file: {{name: {name!r}}}\n" for name in ("../../x", "/x", "a/b", "..", "")),
    ],
)
def test_a_damaged_solver_table_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "solvers.yaml"
    path.write_text(text)
    monkeypatch.setenv(solvers.ENVIRONMENT, str(path))
    with pytest.raises(InvalidSolverTable, match=r"solvers\.yaml"):
        solvers.table()


@pytest.mark.parametrize("protocol", ["no JSON", "[" * 100_000, "{}", "[1]", "null", DIGITS])
def test_a_store_whose_protocol_is_damaged_is_refused(protocol: str, tmp_path: Path) -> None:
    from octsvm.experiments.store import read_cells

    path = tmp_path / "cells.sqlite"
    saved = Path(__file__).parent.parent / "face" / "recorded" / "saved" / "cells.sqlite"
    path.write_bytes(saved.read_bytes())
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'protocol'", (protocol,))
    db.close()
    with pytest.raises(InvalidStore, match="protocol"):
        read_cells(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero on this system")
def test_a_file_that_never_ends_is_refused() -> None:
    for command in (["fit", "/dev/zero"], ["show", "/dev/zero"], ["predict", "/dev/zero", "x.csv"]):
        result = CliRunner().invoke(cli.main, command)
        assert result.exit_code == cli.WRONG_INPUT
        assert "/dev/zero" in result.stderr
    with pytest.raises(InvalidData):
        octsvm.OCTClassifier.from_json(Path("/dev/zero"))
    with pytest.raises(InvalidSolutionFile):
        solution_formats.read("/dev/zero")


def test_what_controls_a_terminal_is_written_out_in_exports() -> None:
    names, labels = ["a\x1b[31m\u202eb\x07\x9b", "n\nm"], ["l\x1b]0;x\x07"] * 2 + ["\x00<b>"] * 2
    frame = pd.DataFrame(X, columns=names)
    for formulation in ("oct", "oct_h", "octsvm"):
        result = octsvm.fit(formulation, frame, labels, depth=1)
        tree = result.tree
        assert tree.splits.any()
        texts = [
            str(tree),
            result.summary(),
            result._repr_html_(),
            tree.to_json(),
            octsvm.export_source(tree),
        ]
        texts += [octsvm.export_text(tree), octsvm.export_graphviz(tree)]
        for text in texts:
            assert all(c.isprintable() or c == "\n" for c in text)
        assert octsvm.Tree.from_json(tree.to_json()).feature_names == tuple(names)
