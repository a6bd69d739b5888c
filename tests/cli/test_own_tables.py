"""Experiments with tables of one's own: a protocol that names files, and reports without the paper's figures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from places import FIXTURES, ROOT

from octsvm import InvalidParameter, cli
from octsvm.cli import table2
from octsvm.experiments import load_protocol, run
from octsvm.experiments.store import differences, protocol_hash

EXAMPLES = ROOT / "docs" / "examples"


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The example's protocol with one method, its table in the current folder."""
    shutil.copy(EXAMPLES / "applications.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    content: dict[str, Any] = yaml.safe_load((EXAMPLES / "applications.yaml").read_text())
    content["rules"] = ["oracle_mean", "oracle_fold", "honest"]
    content["methods"] = {k: content["methods"][k] for k in ("cart", "svm")}
    return content


def written(raw: dict[str, Any]) -> str:
    Path("own.yaml").write_text(yaml.safe_dump(raw))
    return "own.yaml"


@pytest.mark.slow
def test_the_report_of_ones_own_table_has_no_paper_in_it(raw: dict[str, Any]) -> None:
    found = CliRunner().invoke(cli.main, ["table2", "-p", written(raw), "--jobs", "1", "--out", "own", "-q"])
    assert found.exit_code == 0, found.output
    text = Path("own/report.md").read_text()
    assert "160 of 160 fits" in text
    for word in ("paper", "Table 2", "ours, ", "Ours"):
        assert word not in text, text[max(0, text.find(word) - 80) :][:200]
    assert "What it cannot show is which of them is better" in text
    assert Path("own/accuracies.csv").read_text().splitlines()[0] == "rule,set,noise,method,accuracy,folds"


def test_a_table_is_prepared_as_by_fit_and_has_two_classes(raw: dict[str, Any]) -> None:
    protocol = load_protocol(raw)
    data = table2._load(protocol, None, "applications")
    assert list(data.X.columns)[-2:] == ["owner=yes", "claims"]
    assert not np.isnan(data.X.to_numpy()).any()
    lines = Path("applications.csv").read_text().splitlines()[1:]
    assert data.y.tolist() == [1 if line.endswith("high") else -1 for line in lines]
    raw["tables"]["applications"] |= {"label": "region", "drop": ["customer", "risk"]}
    del raw["tables"]["applications"]["positive"]
    refused = CliRunner().invoke(
        cli.main, ["table2", "run", "-p", written(raw), "--jobs", "1", "--store", "c.sqlite", "-q"]
    )
    assert refused.exit_code == cli.WRONG_INPUT, refused.output
    assert "'region' has 3" in refused.output
    assert "positive" in refused.output


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.update(lable="risk"), "tables.applications.lable"),
        (lambda t: t.pop("file"), "tables.applications.file"),
        (lambda t: t.update(file="none.csv"), "no such file"),
        (lambda t: t.update(drop=["custmer"]), "Did you mean 'customer'?"),
        (lambda t: t.update(impute=["medain"]), "medain"),
    ],
)
def test_a_wrong_table_is_one_line(change: Any, says: str, raw: dict[str, Any]) -> None:
    change(raw["tables"]["applications"])
    refused = CliRunner().invoke(
        cli.main, ["table2", "run", "-p", written(raw), "--jobs", "1", "--store", "c.sqlite", "-q"]
    )
    assert refused.exit_code == cli.WRONG_INPUT, refused.output
    assert says in refused.output
    assert len(refused.output.splitlines()) == 1


def test_a_table_belongs_to_a_set_and_stores_know_it(raw: dict[str, Any]) -> None:
    protocol = load_protocol(raw)
    other = protocol.model_copy(
        update={
            "tables": {"applications": protocol.tables["applications"].model_copy(update={"positive": "low"})}
        }
    )
    assert differences(protocol, other) == ["the table applications is another one"]
    assert protocol_hash(protocol) != protocol_hash(other)
    without = protocol.model_copy(update={"tables": {}})
    assert not differences(without, protocol)
    raw["tables"]["others"] = raw["tables"]["applications"]
    with pytest.raises(InvalidParameter, match="'others' is none of the sets"):
        load_protocol(raw)
    with pytest.raises(InvalidParameter, match="load="):
        run(protocol, "cells.sqlite")


def test_the_hash_of_protocols_without_tables_is_what_it_was() -> None:
    assert protocol_hash(load_protocol("quick")) == "972f5faac0ac"


def one_method(raw: dict[str, Any], **method: Any) -> str:
    small = {"noise": [0.0], "repetitions": 1, "rules": ["oracle_mean"]}
    return written(raw | small | {"methods": {"mine": {"title": "Mine"} | method}})


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.quick_cases("1")
def test_a_formulation_of_ones_own_is_named_by_its_file(
    raw: dict[str, Any], jobs: str, only_built_in: None
) -> None:
    shutil.copy(FIXTURES / "toy_formulation.py", "toy_formulation.py")
    name = one_method(raw, kind="toy_formulation.py:Stump", grid={"miss": [1.0, 3.0]})
    words = ["table2", "run", "-p", name, "--jobs", jobs, "--store", "c.sqlite", "-q", "--json"]
    found = CliRunner().invoke(cli.main, words)
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["failed"] == 0


def test_where_every_fit_of_a_method_fails_the_exit_code_says_so(raw: dict[str, Any]) -> None:
    Path("broken.py").write_text("def fit(*handed):\n    raise ValueError('no such thing')\n")
    words = [
        "table2",
        "run",
        "-p",
        one_method(raw, kind="broken.py:fit"),
        "--jobs",
        "1",
        "--store",
        "c.sqlite",
    ]
    found = CliRunner().invoke(cli.main, [*words, "-q"])
    assert found.exit_code == 1, found.output
    assert "every fit of mine failed" in found.output


def test_what_no_fit_could_work_with_is_wrong_input(raw: dict[str, Any]) -> None:
    name = one_method(raw, kind="octsvm", fixed={"strategy": "heuristic"})
    found = CliRunner().invoke(cli.main, ["table2", "run", "-p", name, "--store", "c.sqlite", "-q"])
    assert found.exit_code == cli.WRONG_INPUT, found.output
    assert "'strategy' is not a parameter of 'octsvm'" in found.output
    assert not Path("c.sqlite").exists()


def test_load_may_give_arrays(raw: dict[str, Any], tmp_path: Path) -> None:
    X = np.random.default_rng(0).random((40, 2))
    made = SimpleNamespace(X=X, y=np.where(X[:, 0] > 0.5, 1, -1))
    protocol = load_protocol(one_method(raw, kind="cart", grid={"alpha": [0.01]}, fixed={"depth": 2}))
    found = run(protocol, tmp_path / "c.sqlite", load=lambda name: made)
    assert (found.failed, found.useless) == (0, ())
