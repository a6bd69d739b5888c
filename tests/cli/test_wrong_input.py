"""Input that is wrong, from Python and on the command line: what refuses it, what that says, and what it leaves."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyomo.environ as pyo
import pytest
from click.testing import CliRunner
from waiting import PATIENCE

import octsvm
from octsvm import cli
from octsvm.diagnostics import model_size as size

X = pd.DataFrame({"width": range(10), "height": [i * 7 % 10 for i in range(10)]}, dtype=float)
Y = ["low"] * 5 + ["high"] * 5
TABLE = "width,height,kind\n" + "".join(f"{i},{i * 7 % 10},{k}\n" for i, k in enumerate(Y))
TREE = octsvm.fit("oct", X, Y, depth=1).tree


HAS_FULL = Path("/dev/full").exists()


def half_written(error: BaseException) -> pyo.ConcreteModel:
    """A model whose writing breaks off in the middle of the file."""

    def write(path: str, **options: Any) -> None:
        Path(path).write_text("half of a mod")
        raise error

    model = pyo.ConcreteModel()
    model.write = write
    return model


def changed(column: str, row: int, value: Any) -> pd.DataFrame:
    out = X.astype(object)
    out.loc[row, column] = value
    return out


@dataclass(frozen=True)
class Wrong:
    """One wrong input: ``ends`` is the error's class or the exit code, ``says`` is what the message must hold."""

    name: str
    do: Callable[[], Any] | list[str]
    ends: Any
    says: tuple[str, ...]
    files: dict[str, bytes | str] = field(default_factory=dict)


def python(name: str, do: Callable[[], Any], error: type[BaseException], *says: str) -> Any:
    return pytest.param(Wrong(name, do, error, says), id=f"python: {name}")


def command(name: str, line: str, *says: str, code: int = cli.WRONG_INPUT, **files: bytes | str) -> Any:
    """A command; ``files`` are further files of the folder it runs in (``_`` in a name stands for the dot)."""
    contents = {k.replace("_", "."): v for k, v in files.items()}
    return pytest.param(Wrong(name, line.split(), code, says, contents), id=f"command: {name}")


def csv(name: str, content: bytes | str, *says: str) -> Any:
    """A CSV file that no tree can be fitted to."""
    return command(
        name, "fit wrong.csv -f oct --depth 1 -q --out new.json", "wrong.csv", *says, wrong_csv=content
    )


BAD, PARAM = octsvm.InvalidData, octsvm.InvalidParameter
CASES = [
    # names and parameters; tables, labels and weights are those of tests/test_data.py
    python("solver", lambda: octsvm.fit("oct", X, Y, solver="hihgs"), octsvm.UnknownSolver, "'hihgs'", "'highs'"),
    python("leaves too large", lambda: octsvm.fit("oct", X, Y, n_min=99), PARAM, "n_min=99", "Give at most 10"),
    python("time limit", lambda: octsvm.fit("oct", X, Y, time_limit=0), PARAM, "time_limit=0", "a positive number"),
    python("work limit", lambda: octsvm.fit("oct", X, Y, work_limit="many"), PARAM, "work_limit='many'", "nodes"),
    python("gap", lambda: octsvm.fit("oct", X, Y, gap=2), PARAM, "gap=2", "below 1"),
    python("bound", lambda: octsvm.build("octsvm", X, Y, upper_bound=-1), PARAM, "upper_bound=-1", "positive"),
    python("size of nothing", lambda: size.of_shape("oct", 0, 2), PARAM, "n=0", "2 or more"),
    python("size of three", lambda: size.of_shape("octsvm", 9, 2, 3), PARAM, "k=3", "Choose 'oct'"),
    # trees and models
    python("start", lambda: octsvm.fit("oct", X, Y, start="tree.json"), PARAM, "not str", "result.tree"),
    python("tree of a kind", lambda: octsvm.evaluate("octsvm", TREE, X, Y), PARAM, "'axis'", "'margin'"),
    python("other columns", lambda: TREE.predict(X[["width"]]), BAD, "'height'", "same features"),
    python("no such tree", lambda: octsvm.Tree.from_json("nowhere.json"), BAD, "'nowhere.json'", "No such file"),
    python("no JSON", lambda: octsvm.Tree.from_json("{"), BAD, "not JSON"),
    python("no values", lambda: octsvm.extract(octsvm.build("oct", X, Y)), octsvm.NoValues, "split.d", "Solve the model"),
    # files that Python writes
    python("file type", lambda: octsvm.write(octsvm.build("oct", X, Y), "m.gms"), PARAM, "'.gms'", ".lp, .nl, .mps"),
    python(
        "no folder", lambda: octsvm.write(octsvm.build("oct", X, Y, depth=1), "no/m.lp"), octsvm.OutputNotWritable,
        "'no/m.lp'", "Choose another place",
    ),
    python(
        "disk full", lambda: octsvm.write(half_written(OSError(errno.ENOSPC, "No space left")), "m.mps"),
        octsvm.OutputNotWritable, "'m.mps'", "No space left", "Choose another place",
    ),
    python("Ctrl-C", lambda: octsvm.write(half_written(KeyboardInterrupt()), "m.lp"), KeyboardInterrupt),
    python("log", lambda: octsvm.fit("oct", X, Y, log="no/log"), octsvm.OutputNotWritable, "'no/log'", "cannot be written"),
    # CSV files
    csv("empty file", "", "the file is empty", "header line"),
    csv("no rows in the file", "a,b,c\n", "line 1", "Add rows"),
    csv("ragged line", "a,b,c\n1,2,x\n3,4\n", "line 3", "2 values", "one value a column"),
    csv("quoted nothing", 'a,b,c\n1,2,x\n""\n3,4,y\n', "line 3", "1 value,"),
    csv("open quotation mark", 'a,b,c\n1,2,x\n3,"4,y\n', "line 3", "quotation mark"),
    csv("Latin-1", "a,b,c\n1,2,caf\xe9\n".encode("latin-1"), "line 2", "0xe9", "UTF-8"),
    csv("no text file", b"a,b,c\n1,\0,x\n", "line 2", "zero byte", "Save it as CSV"),
    csv("huge field", "a,b,c\n1,2,x\n3," + "4" * 200_000 + ",y\n", "line 3", "131072", "quotation mark"),
    csv("huge number", "a,b,c\n1,2,x\n3," + "9" * 400 + ",y\n", "line 3", "'b'", "Correct the cell"),
    csv("other separator", "a;b;c\n1;2;x\n", "line 1", "';'", "--separator"),
    csv("column name twice", "a,a,c\n1,2,x\n", "line 1", "'a'", "a name of its own"),
    csv("a row of values for a header", "1,1,x\n1,2,x\n", "line 1", "'1'", "header line above it"),
    csv("question mark", "a,b,c\n1,2,x\n3,?,y\n4,5,y\n", "line 3", "'b'", "'?'", "Correct the cell"),
    csv("empty cell", "a,b,c\n1,2,x\n3,,y\n", "line 3", "'b'", "Fill it"),
    csv("empty label", "a,b,c\n1,2,x\n3,4,\n", "line 3", "label", "--skip-unlabelled"),
    csv("blank file", "\n\n  \n", "the file is empty"),
    csv("long line", "a,b,c\n1,2,x\n\n3,4,5,y\n", "line 4", "4 values", "3 columns"),
    csv("one column", "a\n1\n2\n", "line 1", "single column, 'a'"),
    csv("words", "a,b,c\n1,red,x\n3,blue,y\n", "line 2", "'b'", "'red'", "--encode b"),
    csv("infinite cell", "a,b,c\n1,2,x\n3,inf,y\n", "line 3", "'b'", "infinite"),
    csv("measured label", "a,c\n" + "".join(f"1,{i}.5\n" for i in range(12)), "measurement", "classes in place of the numbers in 'c'"),
    csv("quoted, other separator", '"a,1";"b";c\n1;2;x\n', "line 1", "';'", "--separator"),
    # the command line
    command("no such file", "fit tabel.csv", "tabel.csv", "Did you mean 'table.csv'?"),
    *(
        command(f"fit {words}", f"fit {words}", *says)
        for words, *says in [
            ("nowhere.csv", "nowhere.csv", "no such file", "iris"),
            ("irs", "irs", "Did you mean 'iris'?"),
            (".", "directory", "table.csv"),
            ("table.csv/x.csv", "cannot be read"),
            ("iris --label species", "'species'", "built-in"),
            ("iris -f re_svm", "separates two classes", "--against-rest versicolor"),
            ("table.csv another.csv", "another.csv"),
            ("table.csv --separator ::", "'::'", "one character"),
            ("table.csv -f octt", "'octt'", "Did you mean 'oct'?"),
            ("table.csv -f oct --c1 1", "'c1'", "is not a parameter of 'oct'", "It takes: ", "alpha"),
            ("table.csv --depth -1", "--depth -1 is not allowed", "greater than or equal to 0"),
            ("table.csv --depth two", "--depth", "two"),
            ("table.csv --norm l3", "--norm 'l3'", "'l2' or 'l1'"),
            ("table.csv --variant bd", "--variant 'bd'", "paper"),
            ("table.csv -f oct --n-min 99", "--n-min 99 asks", "10 rows"),
            ("table.csv -f oct --n-min 1.5", "--n-min 1.5", "share"),
            ("table.csv --c1 nan", "--c1 nan", "finite"),
            ("table.csv --test-size 1", "--test-size"),
            ("table.csv --flip 2", "--flip"),
            ("table.csv --time-limit -5", "--time-limit -5.0 should be"),
            ("table.csv --gap 1", "--gap 1.0"),
            ("table.csv --threads 0", "--threads 0"),
            ("table.csv --seed -1", "--seed", "-1"),
            ("table.csv --work-limit many", "'many'", "rounds=3"),
            ("table.csv --work-limit cuts=3", "'cuts=3'", "rounds=3"),
            ("table.csv --work-limit 0", "'0'", "rounds=3"),
            ("table.csv --start nowhere.json", "nowhere.json"),
            ("table.csv --start table.csv", "not JSON"),
            ("table.csv --log nowhere/solver.log", "nowhere/solver.log", "no directory"),
            ("table.csv --no-scale", "--no-scale takes", "width", "[0, 1]", "Leave it out."),
        ]
    ),
    *(
        command(f"predict {k}", f"predict tree.json less.csv {more}", *says, less_csv=text)
        for k, (text, more, *says) in enumerate([
            ("width,height\n1,2\n3,\n", "", "line 3", "'height'", "missing"),
            ("width,height\n1,2\n3,tall\n", "", "line 3", "'tall'"),
            ("width,height\n", "", "no rows"),
            ("width,height\n1,2,3\n", "", "line 2", "3 values"),
            ("width,height,kind\n1,2,low\n", "--label kid", "Did you mean 'kind'?"),
            ("width,height\n1,2\n", "--out nowhere/p.csv", "no directory"),
        ])
    ),
    *(
        command(f"show {text}", "show bad.json", says, bad_json=text)
        for text, says in [
            ("", "not JSON"),
            ("[1, 2]", "not a saved tree"),
            ('{"schema": "octsvm.tree", "version": 1, "kind": "axis"}', "damaged"),
            (b"\xff", "cannot be read"),
        ]
    ),
    command("no label column", "fit table.csv --label kin", "line 1", "'kin'", "Did you mean 'kind'?"),
    command("no such class", "fit table.csv --against-rest lo", "'lo'", "Did you mean 'low'?"),
    command("option misspelt", "fit table.csv --dept 1", "--dept", "--depth"),
    command("command misspelt", "fti table.csv", "fti", "Try 'main --help'"),
    command("no count", "fit table.csv -f oct --n-min few", "'few'", "count of rows (5)"),
    command("share too small", "fit table.csv --test-size 0.01", "share of 0.01", "--test-size 0"),
    command("share too large", "fit table.csv --test-size 0.95", "share of 0.95", "test_size=0.95"),
    command("tune three classes", "tune iris", "iris: ", "separates two classes", "--against-rest versicolor"),
    command("unknown solver", "fit table.csv --solver highest", "'highest'", "Did you mean 'highs'?"),
    command("target's folder", "fit table.csv --out no/tree.json", "no/tree.json", "no directory", "another place"),
    command("predictions for Excel", "predict tree.json table.csv --out p.XLSX", "--out p.XLSX", "what is written is CSV", "predictions.csv"),
    command("target is a folder", "fit table.csv --out .", "it is a directory", "Choose another place"),
    command("device full", "fit table.csv -f oct --depth 1 -q --out /dev/full", "/dev/full", "No space left", "another place"),
    command("show no tree", "show table.csv", "not JSON", "table.csv"),
    command("show nothing", "show nowhere.json", "nowhere.json", "octsvm fit --out"),
    command("show two ways", "show tree.json --text --json", "--text and --json", "leave one"),
    command("units", "show tree.json --units metres", "metres", "original", "scaled"),
    command("damaged tree", "show bad.json", "bad.json", "damaged", "classes", bad_json=TREE.to_json().replace("[", "{\"a\": [", 1).replace("]", "]}", 1)),
    command("newer tree", "predict new.json table.csv", "version 99", "Upgrade", new_json='{"schema": "octsvm.tree", "version": 99}'),
    command("predict without a column", "predict tree.json less.csv", "less.csv, line 1", "no column 'height'", "trained on", less_csv="width\n1\n"),
    command("predict a feature", "predict tree.json table.csv --label height", "'height'", "takes it for the labels"),
    command("predict other labels", "predict tree.json other.csv --label kind", "'blue'", "'high', 'low'", other_csv="width,height,kind\n1,2,blue\n"),
    command("write another type", "write table.csv -f oct --out model.xls", "'.xls'", ".lp, .nl, .mps"),
    command("write nowhere", "write table.csv -f oct --out no/model.lp", "no/model.lp", "another place"),
    command("write to a full disk", "write table.csv -f oct --depth 1 --out full.lp", "full.lp", "No space left", "another place"),
    command("no solution file", "read table.csv none.sol -f oct --depth 1", "none.sol", "There is no file", "its log"),
    command("no such solution", "read table.csv new.sol -f oct --depth 1", "'new.sol'", "recognised", "say which with --kind 'asl', ", new_sol="hello\n"),
    command("no solution in it", "read table.csv new.sol -f oct --depth 1", "'new.sol'", "no solution available", "more time", new_sol="solution status: infeasible\nno solution available\n"),
    command("kind of no solution file", "read table.csv new.sol -f oct --depth 1 --kind x", "--kind 'x' is no kind", new_sol="hello\n"),
    command("no processes", "tune table.csv -f oct --jobs 0 -q", "--jobs 0 should be a number of processes, -1 for all processors."),
    command("no folds", "tune table.csv -f oct --store table.csv -q", "--store 'table.csv' holds no folds"),
    command("column called like an option", "fit gap.csv", "--impute gap=median", gap_csv="gap,y\n1,a\n,b\n2,b\n"),
    command("write without a target", "write table.csv -f oct", "--out"),
    command("size of what", "size -f oct", "--n and --p are missing", "Give a table"),
    command("size of both", "size table.csv --n 10", "--n", "Leave one of them out"),
    command("size of too little", "size --n 1 --p 3", "--n 1 should", "2 or more"),
    command("no solvers", "race table.csv -f oct --depth 1 --solvers ,", "names no solver"),
    command("one file for folds and tree", "tune table.csv -f oct --store a.x --out ./a.x", "--store and --out", "Name two"),
    command("completion", "completion tcsh", "tcsh", "bash", "zsh", "fish"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a table and a tree in it; ``full.lp`` leads to a disk that is full."""
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text(TABLE)
    TREE.to_json("tree.json")
    if HAS_FULL:
        os.symlink("/dev/full", "full.lp")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes | None]:
    return {p.name: p.read_bytes() if p.is_file() else None for p in folder.iterdir()}


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 40
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES)
def test_wrong_input_is_refused_and_leaves_nothing(case: Wrong, folder: Path) -> None:
    if isinstance(case.do, list) and any("full" in word for word in case.do) and not HAS_FULL:
        pytest.skip("needs /dev/full")
    for name, content in case.files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    before = contents(folder)
    if isinstance(case.do, list):
        result = CliRunner().invoke(cli.main, case.do)
        assert result.exit_code == case.ends, result.output
        assert result.stdout == ""
        assert "fault in octsvm" not in result.stderr
        assert "Traceback" not in result.stderr
        message = result.stderr
        assert "Error" in message
        assert len(message.splitlines()) <= 4  # one, or one and the usage
    else:
        with pytest.raises(case.ends) as caught:
            case.do()
        assert type(caught.value) is case.ends
        message = str(caught.value)
        assert "\n" not in message
    for part in case.says:
        assert part in message, message
    assert contents(folder) == before


# -- what only a process of its own shows -----------------------------------------------------------------------------

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals, pipes and limits of POSIX")


def process(*args: str, **options: Any) -> subprocess.Popen[str]:
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.Popen([sys.executable, "-m", "octsvm", *args], **options)


def clean(stderr: str) -> bool:
    return not any(text in stderr for text in ("Traceback", "Exception ignored", "fault in octsvm"))


@POSIX
@pytest.mark.parametrize("line", ["show tree.json --json", "predict tree.json table.csv"])
@pytest.mark.slow
def test_stdout_that_cannot_be_written(folder: Path, line: str) -> None:
    if not HAS_FULL:
        pytest.skip("needs /dev/full")
    with open("/dev/full", "w") as full:
        child = process(*line.split(), stdout=full)
        _, stderr = child.communicate(timeout=PATIENCE)
    assert child.returncode == cli.WRONG_INPUT
    assert "No space left on device" in stderr
    assert "Send it elsewhere" in stderr
    assert clean(stderr)


@POSIX
@pytest.mark.slow
def test_reader_that_leaves(folder: Path) -> None:
    Path("many.csv").write_text("width,height\n" + "1,2\n" * 20_000)
    child = process("predict", "tree.json", "many.csv", "-q")
    assert child.stdout is not None
    assert child.stdout.readline() == "prediction\n"
    child.stdout.close()
    assert child.stderr is not None
    assert child.stderr.read() == ""
    child.wait(PATIENCE)


@POSIX
@pytest.mark.parametrize(
    "line", ["write table.csv -f oct --out model.nl", "write table.csv -f oct --out model.lp"]
)
@pytest.mark.slow
def test_disk_that_fills_up_while_a_model_is_written(folder: Path, line: str) -> None:
    import resource

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    before = contents(folder)
    child = process(*line.split(), preexec_fn=small)
    _, stderr = child.communicate(timeout=PATIENCE)
    assert child.returncode == cli.WRONG_INPUT, stderr
    assert "model." in stderr
    assert "Choose another place" in stderr
    assert clean(stderr)
    assert contents(folder) == before


def reader(fifo: Path) -> int:
    """Wait until somebody reads from ``fifo``."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.05)
    raise TimeoutError


@POSIX
@pytest.mark.parametrize(
    "line",
    [
        "fit pipe.csv --out new.json",
        "predict tree.json pipe.csv --out new.csv",
        "write pipe.csv --out new.lp",
    ],
)
@pytest.mark.quick_cases("fit*")
def test_interrupted_while_it_reads(folder: Path, line: str) -> None:
    os.mkfifo("pipe.csv")
    before = contents(folder)
    child = process(*line.split())
    ours = reader(folder / "pipe.csv")
    child.send_signal(signal.SIGINT)
    os.close(ours)  # a signal just before it waits in read() is seen after that call only
    _, stderr = child.communicate(timeout=PATIENCE)
    assert child.returncode == cli.INTERRUPTED
    assert stderr.splitlines()[-1] == "Interrupted."  # a busy machine may tell what it reads before
    assert contents(folder) == before
