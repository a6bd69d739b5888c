"""Everything that README.md shows is run, and what it states is compared with the code."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import readme
import yaml
from click.testing import CliRunner
from waiting import PATIENCE

import octsvm
from octsvm import cli
from octsvm.cli import csv_tables as tables

TEXT = readme.README.read_text(encoding="utf-8")
INSTALL = "python3 -m venv .venv && .venv/bin/pip install -q -e "


def octsvm_command(line: str, cwd: Path) -> str:
    program, *args = shlex.split(line)
    assert program in ("octsvm", ".venv/bin/octsvm")
    done = subprocess.run(
        [sys.executable, "-m", "octsvm", *args],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ | {"PYTHONPATH": str(readme.README.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def printed(example: str) -> str:
    """What an example prints that is run here, each by itself; tests/test_packaging.py runs the first one in a process."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(example, str(readme.README), "exec"), {"__name__": "__main__"})
    return out.getvalue()


def test_two_commands_install_and_run() -> None:
    job, tests = readme.commands()[:2]
    assert job == INSTALL + ". && .venv/bin/octsvm fit iris --formulation oct --depth 2"
    assert tests == INSTALL + "'.[test]' && .venv/bin/python -m pytest"


def test_main_job_prints_what_is_shown(tmp_path: Path) -> None:
    def without_speed(text: str) -> str:
        return re.sub(r"after [\d.]+ s, .*", "", text)

    out = octsvm_command(readme.commands()[0].split(" && ")[-1], tmp_path)
    assert without_speed(out) == without_speed(readme.blocks("text")[0])
    assert "status     optimal: proved" in out


def test_test_command_is_the_one_of_the_checks(root: Path) -> None:
    script = root / ".ci" / "run"
    if not script.is_file():
        pytest.skip("the checks' script is not part of a source distribution")
    ours = readme.commands()[1].split(" && ")[-1].removeprefix(".venv/bin/")
    lines = script.read_text(encoding="utf-8").splitlines()
    assert f"check {ours}" in lines
    assert os.access(script, os.X_OK)
    # ... and what it installs includes what the README's command installs.
    assert any(line.endswith("install -q -e '.[dev,docs]'") for line in lines)
    assert 'dev = ["octsvm[test]"' in (root / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_relabelled_rows_are_the_flipped_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    out = printed(readme.blocks("python")[0])
    assert out == readme.blocks("text")[1]
    found = re.fullmatch(r"optimal \| given up: \[(.*)\]\nflipped: \[(.*)\] \| right: 1.0\n", out)
    assert found is not None
    given_up, flipped = (sorted(map(int, re.findall(r"\d+", part))) for part in found.groups())
    assert given_up == flipped
    assert len(flipped) == 2
    assert "Two of these 24 labels are wrong" in TEXT
    assert (tmp_path / "wrong-labels.svg").is_file()


@pytest.mark.slow
def test_the_picture_is_the_one_that_the_example_draws(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same parts in the same places, but for the fonts and the numbering of the matplotlib that is here."""

    def parts(picture: Path) -> list[tuple[str, list[float]]]:
        text = picture.read_text(encoding="utf-8")
        found = re.findall(r'<g id="((?:region|margin|split|rows)[^"]*)">(.*?)</g>', text, re.DOTALL)
        return [
            (name, [float(v) for v in re.findall(r"-?\d+\.\d+", " ".join(re.findall(r' d="([^"]*)"', body)))])
            for name, body in found
        ]

    monkeypatch.chdir(tmp_path)
    made = tmp_path / "docs" / "gallery"
    made.mkdir(parents=True)
    for name in ("README.md", "docs/gallery.md", "docs/gallery/make.py"):
        shutil.copyfile(root / name, tmp_path / name)
    monkeypatch.setattr(sys, "argv", ["make.py", "wrong-labels.svg"])
    runpy.run_path(str(made / "make.py"), run_name="__main__")
    for name in ("wrong-labels.svg", "wrong-labels-dark.svg"):
        ours, shown = parts(made / name), parts(root / "docs" / "gallery" / name)
        assert [name for name, _ in ours] == [name for name, _ in shown]
        assert len(ours) >= 5
        for (_, one), (_, other) in zip(ours, shown, strict=True):
            assert one == pytest.approx(other, abs=2.0)


@pytest.mark.slow
def test_other_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, python, sklearn = readme.blocks("python")
    assert "status     optimal" in printed(python)
    assert (tmp_path / "iris.lp").is_file()
    assert float(printed(sklearn)) > 0.9


@pytest.mark.slow
def test_command_line_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    iris = tables.load("iris")
    iris.X.assign(species=iris.y).to_csv(tmp_path / "measurements.csv", index=False)
    lines = [line for line in readme.commands() if line.startswith("octsvm ")]
    assert len(lines) >= 5
    lines.remove("octsvm doctor")  # which takes seconds: run once, by tests/cli/test_cli.py
    for line in lines:
        done = CliRunner().invoke(cli.main, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
        if " fit " in line:
            assert "optimal" in done.output
    assert (tmp_path / "model.lp").is_file()
    assert (tmp_path / "predictions.csv").read_text().startswith("prediction\n")


def test_links_lead_somewhere(root: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", TEXT):
        if not target.startswith("https://"):
            assert (root / target).exists(), target


def test_it_is_short() -> None:
    assert TEXT.count("\n") <= 150


def test_one_version_everywhere(root: Path) -> None:
    citation = root / "CITATION.cff"
    assert yaml.safe_load(citation.read_text(encoding="utf-8"))["version"] == octsvm.__version__
    assert f"## {octsvm.__version__}" in (root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f'version = "{octsvm.__version__}"' in (root / "pyproject.toml").read_text(encoding="utf-8")
