"""Files that are made to exhaust who reads them: refused in under a second, with little memory, in a process that has little."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from octsvm.errors import InvalidStore
from octsvm.experiments.store import Store, read_cells

SAVED = Path(__file__).parent.parent / "face" / "recorded" / "saved"
EXPORT = gzip.decompress((SAVED / "cells.csv.gz").read_bytes())
ABOUT, HEAD, ROW = EXPORT.split(b"\n")[:3]
SECONDS, MEGABYTES = 1.0, 200

# Reads the files that a line names, one after the other, in a fork whose memory may grow by so much; prints the error that each
# one got, and the seconds of computing that it took.
READER = f"""
import json, os, resource, sys, time
from pathlib import Path
import octsvm, pandas, pyarrow
from octsvm import solvers
from octsvm.backends import solution_formats
from octsvm.experiments.cells import Part
from octsvm.experiments.protocol import load_protocol
from octsvm.experiments.store import Store, read_cells
model = octsvm.build("oct", [[0.0], [1.0]], ["a", "b"], depth=1)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for line in sys.stdin:
    if os.fork():
        os.wait()
        continue
    resource.setrlimit(resource.RLIMIT_AS, (used + ({MEGABYTES} << 20),) * 2)
    found = []
    for path, how in json.loads(line):
        os.environ["OCTSVM_SOLVERS"] = path
        began = time.process_time()
        try:
            eval(how, globals())
            said = ""
        except BaseException as error:
            said = type(error).__name__
        found.append([path, how, said, time.process_time() - began])
    print(json.dumps(found), flush=True)
    os._exit(0)
"""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the memory of a process is limited and known there"
)


Cases = Iterable[tuple[Path, str]]
Outcomes = Callable[[Cases], list[tuple[str, str, str, float]]]


@pytest.fixture(scope="module")
def outcomes() -> Iterator[Outcomes]:
    """Path, reader, class of the error ("" for none), and seconds of each case."""
    with subprocess.Popen(
        [sys.executable, "-c", READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:

        def read(cases: Cases) -> list[tuple[str, str, str, float]]:
            print(json.dumps([(str(path), how) for path, how in cases]), file=reader.stdin, flush=True)
            return [tuple(one) for one in json.loads(reader.stdout.readline())]  # type: ignore[union-attr]

        yield read


def all_refused(outcomes: Outcomes, cases: Cases, error: str) -> None:
    wrong = [one for one in outcomes(cases) if one[2] != error or one[3] > SECONDS]
    assert not wrong


# -- YAML ---------------------------------------------------------------------------------------------------------


def laughs(bottom: str, level: str) -> str:
    """Nine levels, each of nine times the one below."""
    lines = [f"a0: &a0 {bottom}"]
    lines += [f"a{k}: &a{k} " + level.replace("?", f"*a{k - 1}") for k in range(1, 10)]
    return "\n".join(lines) + "\n"


LISTS = laughs("[x, x]", "[" + ", ".join("?" * 9) + "]")
MAPPINGS = laughs("{a: x}", "{" + ", ".join(f"{k}: ?" for k in "abcdefghi") + "}")
MERGES = laughs("{a: x, b: x}", "{<<: [" + ", ".join("?" * 9) + "]}")
ENTRY = "solvers:\n  mine:\n    inherit: cbc\n"
YAMLS = {
    "lists": LISTS + ENTRY + "    title: *a9\n",
    "mappings": MAPPINGS + ENTRY + "    title: x\n    options: *a9\n",
    "merges": MERGES + ENTRY + "    <<: *a9\n",
    "itself": ENTRY + "    title: x\n    options: &a {b: *a}\n",
    "deep list": "solvers: " + "[" * 100_000,
    "deep mapping": "solvers: " + "{a: " * 50_000,
    "deep block": "solvers:\n" + "".join(" " * k + "a:\n" for k in range(1, 600)),
    "many digits": ENTRY + "    title: " + "9" * 200_000,
    "many hexadecimal digits": ENTRY + "    tested: 0x" + "f" * 200_000,
    "base 60": ENTRY + "    title: " + "1:" * 100_000 + "1\n",
    "large": ENTRY + "    title: x\n" + "# none\n" * 3_000_000,
    "object": ENTRY + "    title: !!python/object/apply:os.system ['touch executed']\n",
    "brackets": ENTRY + "    title: x\n    log: {bound: '" + "(" * 5_000 + "'}\n",
}


def files(folder: Path, texts: dict[str, str], ending: str) -> list[Path]:
    paths = []
    for name, text in texts.items():
        paths.append(folder / f"{name}{ending}")
        paths[-1].write_text(text)
    return paths


@pytest.mark.slow
def test_yaml_that_outgrows_its_text(outcomes: Outcomes, tmp_path: Path) -> None:
    paths = files(tmp_path, YAMLS, ".yaml")
    all_refused(outcomes, [(path, "solvers.table()") for path in paths], "InvalidSolverTable")
    endless = [Path("/dev/zero")] if Path("/dev/zero").exists() else []
    all_refused(outcomes, [(path, "load_protocol(path)") for path in paths + endless], "InvalidParameter")
    assert not Path("executed").exists()


# -- exports and stores -------------------------------------------------------------------------------------------

TEN = 10**7
BOMBS: dict[str, Callable[[], Iterable[bytes]]] = {
    "zeros": lambda: [b"0" * TEN] * 25,
    "deep": lambda: [b"# ", *[b"[" * TEN] * 25],
    "long row": lambda: [ABOUT, b"\n", HEAD, b"\n", *[b"x" * TEN] * 25],
    "wide head": lambda: [ABOUT, b"\n", *[b"a," * (TEN // 2)] * 30],
    "one row again and again": lambda: [ABOUT, b"\n", HEAD, b"\n", *[(ROW + b"\n") * 20_000] * 100],
    "blank lines": lambda: [ABOUT, b"\n", HEAD, b"\n", *[b"\n" * TEN] * 25],
    "one quote": lambda: [ABOUT, b"\n", HEAD, b'\n"', *[b"\n" * TEN] * 25],
    "digits": lambda: [b'# {"format": 1, "a": ' + b"9" * 10**6 + b"}\n", HEAD, b"\n"],
    "no mapping": lambda: [b"# [1]\n", HEAD, b"\n"],
    "overflow": lambda: [ABOUT, b"\n", HEAD, b"\n", ROW.replace(b"1", b"9" * 500)],
}


@pytest.mark.slow
def test_an_export_that_unpacks_to_anything_but_cells(outcomes: Outcomes, tmp_path: Path) -> None:
    cases = []
    for name, content in BOMBS.items():
        path = tmp_path / f"{name}.csv.gz"
        # Equal parts are packed once: a gzip file may have many members.
        parts = list(content())
        packed = {part: gzip.compress(part) for part in set(parts)}
        path.write_bytes(b"".join(packed[part] for part in parts))
        assert path.stat().st_size < 1 << 22
        cases.append((path, "read_cells(path)"))
    all_refused(outcomes, cases, "InvalidStore")


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
DEEP = "[" * 100_000
CHANGES = {
    "endless view": [
        "ALTER TABLE meta RENAME TO old",
        f"CREATE VIEW meta AS {ENDLESS} SELECT 'k' || x AS key, x AS value FROM c",
    ],
    "endless trigger": [
        f"CREATE TRIGGER t AFTER INSERT ON runs BEGIN UPDATE runs SET host = ({ENDLESS} SELECT max(x) FROM c); END"
    ],
    "generated column": [
        "DROP TABLE settings",
        "CREATE TABLE settings (method TEXT, position INTEGER, params TEXT AS (zeroblob(1000000000)))",
    ],
    "large value": [
        "UPDATE cells SET error = CAST(zeroblob(100000000) AS TEXT) WHERE (batch, position) = (SELECT batch, position FROM cells LIMIT 1)"
    ],
    "words for counts": ["UPDATE cells SET n_right = 'many'"],
    "no settings": ["DELETE FROM settings"],
    "deep settings": [f"UPDATE settings SET params = '{DEEP}'"],
    "deep machine": [f"UPDATE runs SET machine = '{DEEP}'"],
    "cells of no batch": ["UPDATE cells SET batch = batch + 10000"],
    "no text": ["UPDATE cells SET status = CAST(x'ff' AS TEXT)"],
}


@pytest.mark.slow
def test_a_store_that_is_changed(outcomes: Outcomes, tmp_path: Path) -> None:
    cases = []
    for name, statements in CHANGES.items():
        path = tmp_path / f"{name}.sqlite"
        shutil.copy(SAVED / "cells.sqlite", path)
        with sqlite3.connect(path) as db:
            for statement in statements:
                db.execute(statement)
        db.close()
        cases.append((path, "read_cells(path)"))
    all_refused(outcomes, cases, "InvalidStore")


def test_a_store_with_damaged_bytes_is_refused_or_read(tmp_path: Path) -> None:
    import random

    whole, drawn = (SAVED / "cells.sqlite").read_bytes(), random.Random(0)
    count = 0
    for k in range(40):
        content = bytearray(whole)
        for _ in range(drawn.choice([1, 10, 60])):
            content[drawn.randrange(100, len(content))] = drawn.randrange(256)
        path = tmp_path / f"{k}.sqlite"
        path.write_bytes(content)
        try:
            read_cells(path)
        except InvalidStore:
            count += 1
    assert count > 10


@pytest.mark.slow
def test_a_tree_that_unpacks_to_anything(outcomes: Outcomes, tmp_path: Path) -> None:
    path = tmp_path / "cells.sqlite"
    shutil.copy(SAVED / "cells.sqlite", path)
    bomb = zlib.compressobj(9)
    packed = b"".join(bomb.compress(b"0" * TEN) for _ in range(30)) + bomb.flush()
    with sqlite3.connect(path) as db:
        db.execute("INSERT OR REPLACE INTO trees SELECT batch, position, ? FROM cells LIMIT 1", (packed,))
        wanted = 'SELECT "set", repetition, noise, fold, inner, method, position FROM trees JOIN batches ON batch = id'
        kind, repetition, noise, fold, inner, method, position = db.execute(wanted).fetchone()
    db.close()
    part = f"Part({kind!r}, {noise!r}, {repetition!r}, {fold!r}, {bool(inner)!r})"
    all_refused(
        outcomes, [(path, f"Store.open(path).tree({part}, {method!r}, {position!r})")], "InvalidStore"
    )


def test_what_is_no_bomb_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv.gz"
    path.write_bytes((SAVED / "cells.csv.gz").read_bytes())
    with Store.open(SAVED / "cells.sqlite") as store:
        assert len(read_cells(path)) == len(store.frame()) > 0


# -- trees, column maps, solutions --------------------------------------------------------------------------------

JSONS = {
    "deep": '{"a": ' + "[" * 1_000_000,
    "deep mapping": '{"a":' * 500_000,
    "digits": '{"depth": ' + "9" * 5_000_000 + "}",
    "blanks": "{" + " " * 10**7,
}


@pytest.mark.slow
def test_json_that_is_deep_or_long(outcomes: Outcomes, tmp_path: Path) -> None:
    (tmp_path / "x.sol").write_text("# Objective value = 1\nx 1\n")
    paths = files(tmp_path, JSONS, ".json")
    readers = [f"octsvm.{reader}.from_json(Path(path))" for reader in ("Tree", "OCTClassifier")]
    all_refused(outcomes, [(path, how) for path in paths for how in readers], "InvalidData")
    how = f"octsvm.read_solution(model, {str(tmp_path / 'x.sol')!r}, sidecar=path)"
    all_refused(outcomes, [(path, how) for path in paths], "InvalidSolutionFile")


ENTITIES = "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 10}">' for k in range(1, 10))
CPLEX = (
    '<CPLEXSolution version="1.2"><header objectiveValue="1" solutionStatusString="&e{};"/></CPLEXSolution>'
)
SOLUTIONS = {
    "laughs": f'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY e0 "x">{ENTITIES}]>{CPLEX.format(9)}',
    "another file": f'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY e SYSTEM "file:///etc/passwd">]>{CPLEX.format("")}',
    "deep": "<CPLEXSolution>" + "<a>" * 100_000,
    "columns": "c\ns mip 1 2000000000 o 1\ne o f\n",
    "options": "m\nOptions\n2000000000\n",
    "values": "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 1\n# Columns 2000000000\nx 1\n",
}


@pytest.mark.slow
def test_a_solution_that_announces_more_than_it_has(outcomes: Outcomes, tmp_path: Path) -> None:
    paths = files(tmp_path, SOLUTIONS, ".sol")
    all_refused(outcomes, [(path, "solution_formats.read(path)") for path in paths], "InvalidSolutionFile")


@pytest.mark.slow
def test_the_limit_of_these_tests_binds(outcomes: Outcomes) -> None:
    assert outcomes([(Path("x"), f"bytearray({2 * MEGABYTES} << 20)")])[0][2] == "MemoryError"
