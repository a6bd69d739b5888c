"""The store of cells: what it keeps, what it refuses, whose leases hold, and that an export is as good."""

from __future__ import annotations

import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from small_runs import load, protocol
from waiting import PATIENCE

import octsvm
from octsvm import cli
from octsvm.experiments import Store, read_cells, run
from octsvm.experiments import store as stores
from octsvm.experiments.store import CellRow, LeaseLost, protocol_hash


def row(position: int = 0, **changes: Any) -> CellRow:
    values = {
        "n_right": 5, "n_score": 8, "train_right": 3, "n_train": 4, "objective": 0.1 + 0.2, "bound": float("nan"),
        "status": "optimal", "seconds": 0.25, "splits": 2, "relabelled": None, "flipped": 1, "both": None,
    }  # fmt: skip
    return CellRow(position, **(values | changes))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cells.sqlite"


@pytest.fixture
def filled(path: Path) -> Path:
    with Store.create(path, protocol()) as store:
        number = store.begin()
        ids = [b.id for b in store.batches().values()]
        for batch in ids[:3]:
            store.claim(batch, number)
        store.record(ids[0], number, [row(3), row(1, relabelled=2, both=1, extra='{"nodes":3}')])
        error = 'ValueError: "quoted", with\ttabs'
        store.record(ids[2], number, [row(0, status="failed", error=error, objective=None, n_right=0)])
        store.end(number)
    return path


# -- reading --------------------------------------------------------------------------------------------------------


def test_cells_are_read_as_they_were_recorded(filled: Path) -> None:
    cells = read_cells(filled)
    assert len(cells) == 3
    first = cells.iloc[0]
    place = ["set", "noise", "repetition", "fold", "inner", "method", "position", "params"]
    assert first[place].tolist() == ["one", 0.0, 0, 0, False, "cart", 1, '{"alpha":0.01}']
    assert (first["relabelled"], first["both"], first["extra"]) == (2, 1, '{"nodes":3}')
    assert (first["objective"], first["score"], first["train_score"]) == (0.1 + 0.2, 5 / 8, 3 / 4)
    assert np.isnan(first["bound"])
    assert np.isnan(cells["relabelled"].iloc[1])
    assert cells["status"].tolist() == ["optimal", "optimal", "failed"]
    assert cells["inner"].tolist() == [False, False, True]
    assert cells["inner"].dtype == bool


def test_an_export_gives_the_same_frame(filled: Path, tmp_path: Path) -> None:
    with Store.open(filled) as store:
        out = store.export(tmp_path / "cells.csv.gz")
        again = store.export(tmp_path / "again.csv.gz")
    assert out.read_bytes() == again.read_bytes()
    a, b = read_cells(filled), read_cells(out)
    pd.testing.assert_frame_equal(a, b)
    assert a.attrs == b.attrs
    assert a.attrs["hash"] == protocol_hash(protocol())
    assert a.attrs["protocol"] == protocol().model_dump(mode="json")
    assert a.attrs["machines"] == [stores.machine()]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.csv.gz", "cells.csv.gz", "cells.sqlite"]


def test_an_empty_store_reads_and_exports(path: Path, tmp_path: Path) -> None:
    with Store.create(path, protocol()) as store:
        out = store.export(tmp_path / "cells.csv.gz")
    pd.testing.assert_frame_equal(read_cells(path), read_cells(out))
    assert len(read_cells(path)) == 0


@pytest.mark.slow
def test_an_export_is_compact(path: Path, tmp_path: Path) -> None:
    grid = [float(k) for k in range(1, 606)]
    many = protocol(methods={"svm": {"title": "SVM", "kind": "svm", "grid": {"C": grid}}})
    rng = np.random.default_rng(0)
    with Store.create(path, many) as store:
        number = store.begin()
        for batch in store.batches().values():
            store.claim(batch.id, number)
            rows = [
                row(k, n_right=int(rng.integers(90)), seconds=round(rng.random(), 6), objective=rng.random())
                for k in range(605)
            ]
            store.record(batch.id, number, rows)
        store.end(number)
        out = store.export(tmp_path / "cells.csv.gz")
    cells = 32 * 605
    assert path.stat().st_size / cells < 120
    assert out.stat().st_size / cells < 40  # bytes: 4 MB for 100,000 cells, of which 2 MB are random digits
    pd.testing.assert_frame_equal(read_cells(path), read_cells(out))


def test_trees_are_kept_where_asked_for(path: Path) -> None:
    with Store.create(path, protocol()) as store:
        number = store.begin()
        batch = next(iter(store.batches().values()))
        store.claim(batch.id, number)
        store.record(batch.id, number, [row(0, tree='{"a": 1}'), row(1)])
        assert store.tree(batch.part, batch.method, 0) == '{"a": 1}'
        assert store.tree(batch.part, batch.method, 1) is None


def test_nothing_names_the_machine(filled: Path, tmp_path: Path) -> None:
    import getpass
    import platform

    with Store.open(filled) as store:
        text = gzip.decompress(store.export(tmp_path / "cells.csv.gz").read_bytes()).decode()
    text += filled.read_bytes().decode("latin-1")
    for word in (platform.node(), str(tmp_path), str(Path.home()), f"/{getpass.getuser()}/"):
        assert len(word) < 4 or word not in text


# -- protocols ------------------------------------------------------------------------------------------------------


def test_another_protocol_is_refused_with_its_differences(filled: Path) -> None:
    raw = protocol().model_dump()

    def svm(**changes: Any) -> dict[str, Any]:
        return {"methods": raw["methods"] | {"svm": raw["methods"]["svm"] | changes}}

    for change, part in (
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"folds": 5}, "folds is 4 there and 5 here"),
        ({"inner_share": 0.5}, "inner_share is 0.7 there and 0.5 here"),
        ({"min_samples_leaf": 0.1}, "min_samples_leaf is 0.05 there and 0.1 here"),
        (svm(work=9), "work of svm is None there and 9"),
        (svm(grid={"C": [1.0]}), "grid of svm is"),
    ):
        before = filled.read_bytes()
        with pytest.raises(octsvm.ProtocolMismatch, match=part) as found:
            Store.create(filled, protocol(**change))
        assert len(found.value.differences) == 1
        assert "--store" in str(found.value)
        assert filled.read_bytes() == before
    with pytest.raises(octsvm.ProtocolMismatch, match=r"seed is.*; folds is"):
        run(protocol(seed=1, folds=5), filled, load=load)


def test_titles_do_not_matter_and_growth_is_kept(filled: Path) -> None:
    grown = protocol(title="Other", name="other", repetitions=3, noise=[0.4, 0.0], sets=["three", "two"])
    with Store.create(filled, grown) as store:
        found = store.protocol
        assert (found.sets, found.noise, found.repetitions) == (("one", "two", "three"), (0.0, 0.3, 0.4), 3)
        assert store.hash == protocol_hash(found)
        parts = {part for part, _ in store.batches()}
        assert parts == set(found.parts())
        assert parts > set(protocol().parts()) | set(grown.parts())
    assert len(read_cells(filled)) == 3
    assert protocol_hash(protocol(title="Other")) == protocol_hash(protocol())
    assert protocol_hash(grown) != protocol_hash(protocol())


# -- leases ---------------------------------------------------------------------------------------------------------


def test_a_lease_holds_until_its_run_ends(path: Path) -> None:
    with Store.create(path, protocol()) as one, Store.create(path, protocol()) as two:
        a, b = one.begin(), two.begin()
        number = next(iter(one.batches().values())).id
        assert one.claim(number, a) == "claimed"
        assert two.claim(number, b) == "held"
        assert one.claim(number, a) == "claimed"  # its own
        with pytest.raises(LeaseLost):
            two.record(number, b, [row()])
        one.record(number, a, [row(k) for k in range(3)])
        one.end(a)
        assert two.claim(number, b) == "claimed"
        with pytest.raises(LeaseLost):
            one.record(number, a, [row(3)])
        assert one.done(number) == {0, 1, 2}
        two.record(number, b, [row(3)])
        assert two.claim(number, b) == "done"
        assert two.progress()[number] == (4, 0, 1.0)


def test_a_cell_is_never_there_twice(path: Path) -> None:
    with Store.create(path, protocol()) as store:
        a = store.begin()
        store.claim(1, a)
        store.record(1, a, [row(0)])
        with pytest.raises(octsvm.InvalidStore, match="UNIQUE"):
            store.record(1, a, [row(1), row(0, n_right=0)])
        assert store.done(1) == {0}
        assert store.progress()[1][0] == 1


HOLDER = """
import subprocess, sys
from octsvm.experiments import Store, load_protocol
store = Store.open(sys.argv[1])
assert store.claim(1, store.begin()) == "claimed"
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_lease_of_a_killed_run_is_taken_over_though_its_child_lives(path: Path) -> None:
    with Store.create(path, protocol()) as store:
        run = store.begin()
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], **pipes) as holder:
            assert holder.stdout is not None
            child = int(holder.stdout.readline())
            try:
                assert store.claim(1, run) == "held"
                link = path.with_name("link.sqlite")
                link.symlink_to(path)
                with Store.open(link) as linked:
                    assert linked.claim(1, linked.begin()) == "held", "by another name of the file, too"
                holder.kill()
                holder.wait(PATIENCE)
                assert store.claim(1, run) == "claimed"
            finally:
                os.kill(child, signal.SIGKILL)
                holder.kill()


def test_a_lease_without_a_lock_is_of_the_dead(path: Path) -> None:
    """Of a run that ended without saying so, as the store was closed; or of another machine, from where it was copied."""
    with Store.create(path, protocol()) as one, Store.create(path, protocol()) as two:
        a, b = one.begin(), two.begin()
        assert one.claim(1, a) == "claimed"
        assert two.claim(1, b) == "held"
        one.close()
        assert two.claim(1, b) == "claimed"
    assert not list(path.parent.glob("*.lock")), "nothing is left beside the store"


def test_a_run_whose_lock_another_has_is_refused(path: Path) -> None:
    """A store that was deleted under a run, and made again."""
    with Store.create(path, protocol()) as old:
        old.begin()
        path.unlink()
        for more in ("-wal", "-shm"):
            Path(f"{path}{more}").unlink(missing_ok=True)
        with (
            Store.create(path, protocol()) as new,
            pytest.raises(octsvm.OutputNotWritable, match="End what still"),
        ):
            new.begin()


# -- files that are none --------------------------------------------------------------------------------------------


def test_what_is_no_store_is_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "table.csv"
    text.write_text("a,label\n1,1\n")
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE mine (a)")
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"SQLite format 3\0" + b"\x07" * 5000)
    for path in (text, other, broken, tmp_path):
        before = path.read_bytes() if path.is_file() else None
        for use in (read_cells, Store.open, lambda p: Store.create(p, protocol())):
            with pytest.raises((octsvm.InvalidStore, octsvm.OutputNotWritable)) as found:
                use(path)
            assert str(path) in str(found.value)
        assert before is None or path.read_bytes() == before
    with pytest.raises(octsvm.InvalidStore, match="no such file"):
        Store.open(tmp_path / "nowhere")
    with pytest.raises(octsvm.OutputNotWritable, match="no directory"):
        Store.create(tmp_path / "no" / "cells.sqlite", protocol())


def test_broken_exports_are_refused(filled: Path, tmp_path: Path) -> None:
    with Store.open(filled) as store:
        good = gzip.decompress(store.export(tmp_path / "good.csv.gz").read_bytes())
    head, rest = good.split(b"\n", 1)
    bad = tmp_path / "bad.csv.gz"
    for content in (
        gzip.compress(rest),
        gzip.compress(head + b"\n"),
        gzip.compress(head.replace(b'"format": 1', b'"format": 9') + b"\n" + rest),
        gzip.compress(head + b"\n" + rest.replace(b"n_right", b"n_write")),
        gzip.compress(good)[:-20],
        b"\x1f\x8b" + b"junk" * 9,
    ):
        bad.write_bytes(content)
        with pytest.raises(octsvm.InvalidStore, match="no export of cells"):
            read_cells(bad)


def test_a_store_of_a_later_format_is_refused(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as db:
        db.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
        db.commit()
    for use in (Store.open, lambda p: Store.create(p, protocol())):
        with pytest.raises(octsvm.InvalidStore, match="has format 99"):
            use(filled)


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_that_cannot_be_written_can_be_read(filled: Path) -> None:
    filled.chmod(0o444)
    filled.parent.chmod(0o555)
    try:
        assert len(read_cells(filled)) == 3
        with pytest.raises(octsvm.OutputNotWritable):
            Store.create(filled, protocol())
    finally:
        filled.parent.chmod(0o755)


# -- the command ----------------------------------------------------------------------------------------------------


def command(*words: Any) -> Result:
    result = CliRunner().invoke(cli.main, ["table2", *map(str, words)])
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A protocol file, with tables of its own beside it."""
    monkeypatch.chdir(tmp_path)
    file, tables = tmp_path / "own.yaml", {}
    for name in ("one", "two"):
        data, tables[name] = load(name), {"file": f"{name}.csv"}
        data.X.assign(label=data.y).to_csv(tables[name]["file"], index=False)
    small = protocol(name="own", noise=[0.3], rules=["oracle_mean"], tables=tables)
    file.write_text(json.dumps(small.model_dump(mode="json")))  # JSON is YAML
    return file


def test_run_status_export(own: Path, tmp_path: Path) -> None:
    done = command("run", "--protocol", own, "--jobs", 1, "--methods", "cart", "--sets", "one")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "16 of 16 cells are in own/cells.sqlite; 16 of them were fitted now" in done.stderr
    shown = command("status", "own/cells.sqlite").stdout
    assert [line.split() for line in shown.splitlines()[2:]] == [
        ["cart", "16", "16", "0", shown.split()[-15 + 4]],
        ["svm", "0", "32", "0", "0.0"],
        ["all", "16", "48", "0", shown.split()[-1]],
    ]
    found = json.loads(command("status", "own/cells.sqlite", "--json").stdout)
    assert found["methods"]["cart"] | {"seconds": 0} == {"total": 32, "done": 16, "failed": 0, "seconds": 0}
    again = command("run", "-p", own, "-j", 1, "--json", "--quiet")
    assert again.stderr == ""
    found = json.loads(again.stdout)
    assert (found["total"], found["done"], found["fitted"], found["failed"]) == (64, 64, 48, 0)
    assert command("export", "own/cells.sqlite", "cells.csv.gz").exit_code == 0
    assert len(read_cells(tmp_path / "cells.csv.gz")) == 64


@pytest.mark.slow
def test_the_bare_command_runs_and_reports(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scikit_posthocs", None)  # no pictures, which take seconds
    done = command("--protocol", own, "--jobs", 1, "--out", "here")
    assert done.exit_code == 0, done.output
    assert all(Path(line).is_file() for line in done.stdout.splitlines())
    assert "here" in done.stdout
    text = done.stdout
    assert command("report", "here/cells.sqlite", "--out", "here").stdout == text
    assert len(read_cells(tmp_path / "here" / "cells.sqlite")) == 64
    assert len(list((tmp_path / "here").iterdir())) > 1


def test_wrong_usage_is_one_line_and_exit_code_2(own: Path, tmp_path: Path) -> None:
    assert command("run", "-p", own, "-j", 1).exit_code == 0
    text = own.read_text().replace('"seed": 0', '"seed": 7')
    (tmp_path / "other.yaml").write_text(text)
    for words, part in (
        (("run", "-p", "other.yaml", "--store", "own/cells.sqlite"), "seed is 0 there and 7 here"),
        (("run", "-p", own, "--methods", "oct"), "the protocol has cart, svm"),
        (("run", "-p", "nowhere.yaml"), "neither a file nor one of table2, quick"),
        (("run", "--quick", "-p", own), "Leave one of them out"),
        (("--quick", "run"), "octsvm table2 run --quick"),
        (("status", own), "is no store of cells"),
        (("export", "nowhere.sqlite", "out.csv.gz"), "no such file"),
    ):
        result = command(*words)
        assert result.exit_code == cli.WRONG_INPUT, result.output
        assert part in result.stderr
        assert result.stdout == ""


def test_an_interrupted_command_says_how_to_go_on(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("octsvm.experiments.runner.keep_batch", stop)
    for words in (("run",), ()):
        result = command(*words, "-p", own, "-j", 1)
        assert result.exit_code == cli.INTERRUPTED
        assert "is kept in own/cells.sqlite; the same command goes on" in result.stderr


def test_lost_workers_are_an_exit_code(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from octsvm.experiments import Summary

    monkeypatch.setattr(
        "octsvm.experiments.runner.run",
        lambda *_, **__: Summary(9, 3, 0, 3, 1.0, ("one/0.3/r0/f0/full/cart",)),
    )
    result = command("run", "-p", own)
    assert result.exit_code == cli.UNEXPECTED
    assert "one/0.3/r0/f0/full/cart" in result.stderr


def test_help_of_every_subcommand_has_examples_and_exit_codes() -> None:
    for name in cli.main.commands["table2"].commands:  # type: ignore[attr-defined]
        text = command(name, "--help").stdout
        for part in ("Examples", f"octsvm table2 {name}", "Exit codes:", "130"):
            assert part in text
