"""Everything that README.md shows is run, and what it states is compared with the code."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import readme
import yaml

import octsvm
from octsvm import cli
from octsvm.cli import csv_tables as tables
from octsvm.formulations.registry import NAMES, formulation
from octsvm.result import STATUSES

TEXT = readme.README.read_text(encoding="utf-8")
INSTALL = "python3 -m venv .venv && .venv/bin/pip install -q -e "


def execute(command: list[str], cwd: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(readme.README.parent)}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def octsvm_command(line: str, cwd: Path) -> str:
    program, *args = shlex.split(line)
    assert program in ("octsvm", ".venv/bin/octsvm")
    return execute([sys.executable, "-m", "octsvm.cli", *args], cwd)


def test_two_commands_install_and_run() -> None:
    job, tests = readme.commands()[:2]
    assert job.startswith(INSTALL + ". && .venv/bin/octsvm fit breast_cancer ")
    assert tests == INSTALL + "'.[test]' && .venv/bin/python -m pytest"


def test_main_job(tmp_path: Path) -> None:
    line = readme.commands()[0].split(" && ")[-1]
    limit = re.search(r"--time-limit (\d+)", line)
    assert limit is not None
    assert int(limit[1]) <= 50  # with the import and the model, a minute
    out = octsvm_command(line.replace(limit[0], "--time-limit 6"), tmp_path)
    # The sample output under it has the same lines.
    (sample,) = readme.blocks("text")
    for start in (
        "octsvm on 426 rows",
        "status ",
        "stop ",
        "objective ",
        "bound ",
        "accuracy   train",
        "relabelled ",
    ):
        for text in (out, sample):
            assert any(row.startswith(start) for row in text.splitlines()), start
    assert ", test 0." in out
    assert "class 'benign'" in out


def test_test_command_is_the_one_of_the_checks(root: Path) -> None:
    script = root / ".ci" / "run"
    if not script.is_file():
        pytest.skip("the checks' script is not part of a source distribution")
    ours = readme.commands()[1].split(" && ")[-1].removeprefix(".venv/bin/")
    lines = script.read_text(encoding="utf-8").splitlines()
    assert f"check {ours}" in lines
    assert os.access(script, os.X_OK)
    # ... and what it installs includes what the README's command installs.
    assert "\"$venv/bin/pip\" install -q -e '.[dev,docs]'" in lines
    assert 'dev = ["octsvm[test]"' in (root / "pyproject.toml").read_text(encoding="utf-8")


def test_first_example(tmp_path: Path) -> None:
    out = execute([sys.executable, "-c", readme.blocks("python")[0]], tmp_path)
    assert "status     optimal" in out
    relabelled = {row.split()[1] for row in out.splitlines() if re.fullmatch(r"\d+ +\d+ +\d+ +[\d.]+", row)}
    flipped = re.search(r"flipped: \[([\d ]+)\] right: 1.0", out)
    assert flipped is not None
    assert set(flipped[1].split()) == relabelled
    assert len(relabelled) == 3


def test_other_examples(tmp_path: Path) -> None:
    first, *others = readme.blocks("python")
    assert "octsvm.fit" in first
    for example in others:
        assert "status     optimal" in execute([sys.executable, "-c", example], tmp_path)


@pytest.mark.slow
def test_command_line_examples(tmp_path: Path) -> None:
    iris = tables.load("iris")
    iris.X.assign(species=iris.y).to_csv(tmp_path / "measurements.csv", index=False)
    lines = [line for line in readme.commands() if line.startswith("octsvm ")]
    assert len(lines) >= 5
    for line in lines:
        out = octsvm_command(line, tmp_path)
        if " fit " in line:
            assert "optimal" in out
    assert (tmp_path / "model.lp").is_file()
    assert (tmp_path / "predictions.csv").read_text().startswith("prediction\n")


def test_links_lead_somewhere(root: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        if not target.startswith("https://"):
            assert (root / target).exists(), target


def test_parameters_are_those_of_the_code() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", TEXT, re.MULTILINE))
    known: dict[str, dict[str, object]] = {}
    for name in NAMES:
        known[name] = formulation(name).Params.make(name).model_dump()
        shown = {
            k: yaml.safe_load(v.replace("None", "null"))
            for k, v in re.findall(r"(\w+)=([^\s`]+)", rows[name])
        }
        if "as `oct`" in rows[name]:
            shown = known["oct"] | shown
        assert shown == known[name]


def test_exit_codes_are_those_of_the_code() -> None:
    table = TEXT[TEXT.index("| exit code | meaning |") :].split("\n\n")[0]
    codes = [cli.OK, cli.UNEXPECTED, cli.WRONG_INPUT, cli.NO_TREE, cli.UNVERIFIED, cli.DISAGREEMENT]
    codes.append(cli.INTERRUPTED)
    assert [int(c) for c in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == codes


def test_statuses_are_those_of_the_code() -> None:
    table = TEXT[TEXT.index("| status | meaning |") :].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(STATUSES)


def test_one_version_everywhere(root: Path) -> None:
    citation = root / "CITATION.cff"
    assert yaml.safe_load(citation.read_text(encoding="utf-8"))["version"] == octsvm.__version__
    assert f"## {octsvm.__version__}" in (root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f'version = "{octsvm.__version__}"' in (root / "pyproject.toml").read_text(encoding="utf-8")
