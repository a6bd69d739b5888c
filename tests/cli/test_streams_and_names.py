"""What the command line does where streams fail, where a name is none, and where the working directory is gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from waiting import PATIENCE

import octsvm
from octsvm import cli, solvers
from octsvm.experiments.protocol import load_protocol

ROWS = "a,b,class\n1,2,x\n2,1,x\n3,5,y\n4,4,y\n"
FIT = ["-f", "oct", "--depth", "1", "--alpha", "0.1"]
LONG = "x" * 300
NAMES = ["a\0b", "a\ud800", LONG, f"{LONG}/{LONG}"]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="streams and names of POSIX")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(ROWS)
    return path


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """A line of bash in which ``octsvm`` is the command."""
    command = f'octsvm() {{ "{sys.executable}" -m octsvm "$@"; }}; {line}'
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE)


# -- streams ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("stream", ["2>/dev/full", "2> >(true)", "2>&-"])
@pytest.mark.slow
def test_messages_that_nobody_gets_change_no_exit_code(stream: str, table: Path) -> None:
    out = table.with_name("tree.json")
    done = shell(f"octsvm fit {table} {' '.join(FIT)} --out {out} {stream}")
    assert done.returncode == 0
    assert "status     optimal" in done.stdout
    octsvm.Tree.from_json(out)
    # Two that fail, in our words and in those of click.
    assert shell(f"octsvm fit {table}.none {stream}").returncode == cli.WRONG_INPUT
    assert shell(f"octsvm fit {table} --depth much {stream}").returncode == cli.WRONG_INPUT


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.slow
def test_a_tree_is_written_where_every_stream_is_full(table: Path) -> None:
    out = table.with_name("tree.json")
    done = shell(f"octsvm fit {table} {' '.join(FIT)} --out {out} >/dev/full 2>/dev/full")
    assert done.returncode == cli.WRONG_INPUT  # the summary was asked for, and is lost
    octsvm.Tree.from_json(out)


# -- names --------------------------------------------------------------------------------------------------------


def refused(*args: str, env: dict[str, str] | None = None) -> Result:
    result = CliRunner().invoke(cli.main, args, env=env)
    assert result.exit_code == cli.WRONG_INPUT, result.output
    assert "fault in octsvm" not in result.output
    return result


@pytest.mark.parametrize("name", NAMES[2:], ids=["long", "long path"])  # no argument holds the others
def test_what_is_no_name_of_a_file_is_refused_by_every_command(
    name: str, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(table.parent)
    fit = ["fit", str(table), *FIT, "-q"]
    for option in ("--out", "--log", "--start"):
        refused(*fit, option, name)
    refused("fit", name, *FIT)
    refused("write", str(table), *FIT, "--out", f"{name}.lp")
    refused("show", name)
    refused("predict", name, str(table))
    refused("read", str(table), name, *FIT)
    refused("race", str(table), *FIT, "--out", name)
    refused("table2", "run", "--protocol", name)
    refused("table2", "status", "--store", name)
    refused("table2", "run", "--quick", "--store", name)
    assert [p.name for p in table.parent.iterdir()] == [table.name]


@pytest.mark.parametrize("name", NAMES, ids=["zero", "half", "long", "long path"])
@pytest.mark.slow
def test_what_is_no_name_of_a_file_is_refused_by_every_function(name: str, tmp_path: Path) -> None:
    from octsvm.experiments.report import write_report
    from octsvm.experiments.store import Store, read_cells

    model = octsvm.build("oct", [[0.0], [1.0]], ["a", "b"], depth=1, alpha=0.1)
    result = octsvm.solve(model)
    place = str(tmp_path / name)
    nothing = read_cells(Path(__file__).parent.parent / "face" / "recorded" / "saved" / "cells.csv.gz")[:0]
    calls = [
        lambda: result.to_json(place),
        lambda: result.tree.to_json(place),
        lambda: octsvm.export_source(result, place),
        lambda: octsvm.write(model, place + ".lp"),
        lambda: octsvm.write(model, place + ".nl"),
        lambda: octsvm.solve(model, log=place),
        lambda: octsvm.read_solution(model, place),
        lambda: octsvm.Tree.from_json(Path(place)),
        lambda: octsvm.OCTClassifier.from_json(Path(place)),
        lambda: load_protocol(place),
        lambda: read_cells(place),
        lambda: Store.open(place),
        lambda: Store.create(place, load_protocol("quick")),
        lambda: write_report(nothing, place),
    ]
    for call in calls:
        with pytest.raises(octsvm.OctsvmError) as caught:
            call()
        assert len(str(caught.value)) < 3000
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_solvers_with_a_name_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(solvers.ENVIRONMENT, LONG)
    with pytest.raises(octsvm.InvalidSolverTable, match="no such file"):
        solvers.table()


# -- the working directory ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_where_the_working_directory_is_gone(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, out = table.with_name("gone"), table.with_name("tree.json")
    fit = ["fit", str(table), *FIT, "-q"]
    done = shell(f"mkdir {gone} && cd {gone} && rmdir {gone} && octsvm {' '.join(fit)} --out {out}")
    assert done.returncode == 0, done.stderr
    octsvm.Tree.from_json(out)
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for line in ([*fit, "--out", "x.json"], [*fit, "--log", "x.log"], ["write", str(table), "--out", "x.lp"], [*fit, "--start", "x.json"]):  # fmt: skip
        done = refused(*line)
        assert done.stdout == ""
        assert done.stderr.startswith("Error: ")


@pytest.mark.slow
def test_engines_where_the_working_directory_is_gone(tmp_path: Path) -> None:
    here = [s for s in ("highs", "scip", "cbc", "bonmin") if solvers.installed(s) is not None]
    code = (
        "import json, os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]); import octsvm\n"
        "for solver in sys.argv[2:]:\n"
        "    r = octsvm.fit('oct', [[0.], [1.], [2.]], ['a', 'a', 'b'], depth=1, alpha=0.1, solver=solver)\n"
        "    print(json.dumps([solver, r.status, r.objective]))"
    )
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code, gone, *here], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found == [[solver, "optimal", pytest.approx(0.1)] for solver in here]
