"""``octsvm solvers``: what is here is proved by a solve, what is broken is a line, what is missing is known at once."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from command_line import run
from waiting import PATIENCE, at_most

import octsvm
from octsvm import cli, solvers
from octsvm.diagnostics import installed
from octsvm.solving import licences

ENTRY = """\
  {name}:
    title: {name}
    backend: executable
    executable: ["{path}"]
    format: mps
    answer: highs
    argv: ["{{model}}", "{{solution}}"]
    classes: [LP, MILP]
    install: get {name} somewhere
"""
RIGHT = """\
Model status
Optimal

# Primal solution values
Feasible
Objective -4
# Columns 2
c0 1
c1 0.5
# Rows 1
r0 3
"""
PROGRAMS = {
    "right": f'echo "right 7.5"\ncat > "$2" <<END\n{RIGHT}END',
    "wrong": f'cat > "$2" <<END\n{RIGHT.replace("c0 1", "c0 0").replace("-4", "-1")}END',
    "silent": "exit 0",
    "failing": "echo no luck today\nexit 3",
    "garbage": 'echo "# Columns three" > "$2"',
    "crashing": "kill -SEGV $$",
    "unlicensed": "echo 'No license found.'\nexit 1",
    "hanging": "exec sleep 60",
}
posix = pytest.mark.skipif(os.name == "nt", reason="the programs are shell scripts")


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A table with a program for each way of failing, one that works, one that may not be run, one that is missing."""
    text = "solvers:\n"
    for name, script in PROGRAMS.items():
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        text += ENTRY.format(name=name, path=path)
        if name == "unlicensed":
            text += "    licence: {required: true}\n"
        if name == "right":
            text += "    tested: false\n    log: {version: 'right (\\S+)'}\n"
    data = tmp_path / "data"
    data.write_text("#!/no/such/interpreter\n")
    data.chmod(0o755)
    text += ENTRY.format(name="no_program", path=data) + ENTRY.format(
        name="missing", path="no-such-program-anywhere"
    )
    (tmp_path / "mine.yaml").write_text(text)
    monkeypatch.setenv(solvers.ENVIRONMENT, str(tmp_path / "mine.yaml"))
    return [*PROGRAMS, "no_program", "missing"]


@posix
@pytest.mark.slow
def test_what_is_broken_is_a_line_with_its_reason(broken: list[str]) -> None:
    names = [n for n in broken if n != "hanging"]
    found = {one.name: one for one in installed.look(names=names, seconds=PATIENCE)}
    assert {name: one.state for name, one in found.items()} == {
        "right": "ok",
        **dict.fromkeys(
            ("wrong", "silent", "failing", "garbage", "crashing", "unlicensed", "no_program"), "failed"
        ),
        "missing": "missing",
    }
    for name, part in {
        "wrong": "trial model",
        "silent": "no solution file",
        "failing": "no luck today",
        "garbage": "cannot be read",
        "crashing": "SIGSEGV",
        "unlicensed": "No license found",
        "no_program": "could not be started",
    }.items():
        assert part in found[name].detail, found[name].detail
        assert "\n" not in found[name].detail
    assert found["right"].version == "7.5"
    assert not found["right"].tested
    assert found["unlicensed"].licence == "unlicensed"
    assert found["right"].licence == "none needed"
    assert found["missing"].install == "get missing somewhere"


@posix
@pytest.mark.slow
def test_one_that_hangs_does_not_hold_the_others_up(broken: list[str]) -> None:
    found = {one.name: one for one in installed.look(names=["right", "hanging"], seconds=4)}
    assert found["right"].state == "ok"
    assert found["hanging"].state == "failed"


@posix
def test_the_command_shows_it(broken: list[str]) -> None:
    result = run("solvers", "right", "failing", "missing")
    assert result.exit_code == 0, result.output
    assert re.search(r"^ok +right +7\.5", result.stdout, re.MULTILINE)
    assert "untested: written from its manual" in " ".join(result.stdout.split())
    assert re.search(r"^failed +failing", result.stdout, re.MULTILINE)
    assert re.search(r"^missing +missing", result.stdout, re.MULTILINE)
    assert "get missing somewhere" in result.stdout
    content = json.loads(run("solvers", "right", "--json", "--no-trial").stdout)
    assert content["schema"] == "octsvm.solvers"
    (one,) = content["solvers"]
    assert (one["state"], one["starts"], one["classes"], one["tested"]) == (
        "untried",
        "none",
        ["LP", "MILP"],
        False,
    )
    refused = run("solvers", "rihgt")
    assert refused.exit_code == cli.WRONG_INPUT
    assert "Did you mean 'right'?" in refused.stderr


@pytest.mark.slow
def test_everything_that_is_here_solves_the_trial_model_quickly() -> None:
    busy = hasattr(os, "getloadavg") and os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1)
    with nullcontext() if busy else at_most(10.0):
        done = subprocess.run(
            [sys.executable, "-m", "octsvm", "solvers", "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
    content = json.loads(done.stdout)
    assert content["version"] == 1
    # On a busy machine an engine may take longer than a command waits for it.
    found = {one.name: one for one in installed.look(seconds=120.0)}
    assert [one["name"] for one in content["solvers"]] == list(found) == list(solvers.table())
    for one in content["solvers"]:
        known = json.loads(json.dumps(found[one["name"]].to_dict()))
        assert one.keys() == known.keys()
        untried = known.keys() - {"state", "version", "licence", "detail", "seconds"}
        assert {key: one[key] for key in untried} == {key: known[key] for key in untried}
    for name, one in found.items():
        spec = solvers.get(name)
        here = solvers.installed(name) is not None
        assert one.state == ("ok" if here else "missing"), one
        assert bool(one.version) == here
        assert one.tested == spec.tested
        if here and spec.licence is None:
            assert one.licence == "none needed"
        if here and spec.licence is not None:
            assert one.licence in ("full", "size-limited")
            assert (one.licence == "size-limited") == licences.limited(one.by)
    assert found["highs"].version == octsvm.result.versions()["highspy"]


def test_untested_entries_are_marked_and_not_chosen() -> None:
    marked = {name for name, spec in solvers.table().items() if not spec.tested}
    assert marked == {"copt", "mosek", "knitro", "baron"}
    assert not marked & set(solvers.table().prefer)
    shown = " ".join(run("solvers", "--no-trial", *sorted(marked)).stdout.split())
    assert shown.count("untested: written from its manual, never run by us") == len(marked)


def test_a_missing_solver_is_known_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = (
        "  gone: {title: Gone, backend: child, adapter: gone, classes: [MILP], install: pip install gone,\n"
        "         requires: {distribution: gone, module: gone_module, version: '1'}}\n"
        "  box: {title: Box, backend: executable, executable: ['python:gone_box.path'], format: mps, answer: cbc,\n"
        "        argv: ['{model}'], classes: [MILP], install: pip install gone}\n"
    )
    (tmp_path / "mine.yaml").write_text("solvers:\n" + ENTRY.format(name="absent", path="absent") + child)
    monkeypatch.setenv(solvers.ENVIRONMENT, str(tmp_path / "mine.yaml"))
    solvers.table()
    for name in ("absent", "gone", "box", "couenne_that_is_not_here"):
        best = float("inf")
        for _ in range(5):
            began = time.perf_counter()
            try:
                assert solvers.installed(name) is None
            except octsvm.UnknownSolver:
                assert name == "couenne_that_is_not_here"
            best = min(best, time.perf_counter() - began)
        assert best < 0.05
    for name in ("absent", "gone", "box"):
        with pytest.raises(octsvm.SolverUnavailable, match=f"{name} is not installed here"):
            solvers.require(name)


@pytest.mark.slow
def test_a_stand_in_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "solvers:\n" + ENTRY.format(name="front", path="no-such-program") + "    otherwise: highs\n"
    (tmp_path / "mine.yaml").write_text(text)
    monkeypatch.setenv(solvers.ENVIRONMENT, str(tmp_path / "mine.yaml"))
    (front,) = installed.look(names=["front"])
    assert (front.state, front.by, front.interface) == ("ok", "highs", "in this process")
    assert "highs stands in for it" in run("solvers", "front", "--no-trial").stdout


def test_what_is_too_old_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yaml").write_text("solvers: {highs: {requires: {version: '999'}}}")
    monkeypatch.setenv(solvers.ENVIRONMENT, str(tmp_path / "mine.yaml"))
    (one,) = installed.look(names=["highs"])
    assert one.state == "failed"
    assert "and 999 is needed" in one.detail


def test_nothing_is_solved_without_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(octsvm.api, "solve", lambda *args, **options: 1 / 0)
    assert {one.state for one in installed.look(trial=False)} <= {"untried", "missing"}
    (one,) = installed.look(names=["highs"])
    assert one.state == "failed"
    assert "ZeroDivisionError" in one.detail


def test_the_help_explains_the_own_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import yaml
    from platformdirs import user_config_path

    text = run("solvers", "--help").stdout
    assert solvers.ENVIRONMENT in text
    assert str(user_config_path("octsvm", appauthor=False)) in re.sub(r"\n +", " ", text)
    example = text[text.index("    solvers:\n") : text.index("  The first lines of the shipped")]
    (tmp_path / "mine.yaml").write_text(example)
    monkeypatch.setenv(solvers.ENVIRONMENT, str(tmp_path / "mine.yaml"))
    assert list(yaml.safe_load(example)["solvers"]) == ["highs_program"]
    assert solvers.get("highs_program").backend == "executable"


@pytest.mark.slow
def test_packages_of_extras_are_named_with_what_brings_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from octsvm.diagnostics import doctor

    def version(name: str) -> str:
        raise doctor.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.metadata, "version", version)
    found = next(check for check in doctor.examine() if check.name == "jinja2")
    assert (found.state, found.needed, found.cure) == ("missing", False, "pip install 'octsvm[report]'")
