"""The store of a run: one SQLite file with every finished cell, safe against kills and shared by several runners.

Tables: ``meta`` (protocol), ``runs`` (who worked when, on what kind of machine), ``settings`` (grids),
``batches`` (a method on a part: the unit that a runner takes and leases), ``cells`` (finished fits) and ``trees``.
A cell and the count of its batch change in one transaction, that goes through only while the writer holds the lease.
A run that lives holds a lock on a file beside the store; the system takes it from a process that ends, however it ends.
The file is in WAL mode: a kill loses the cell in the making, a power failure perhaps the last few, neither the file.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import platform
import sqlite3
import sys
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InvalidParameter, InvalidStore, OutputNotWritable, ProtocolMismatch
from ..formulations.read_file import open_bytes
from ..formulations.replace_file import replace_bytes, require_writable
from ..result import finite
from .cells import Part
from .protocol import Protocol

if TYPE_CHECKING:
    import pandas as pd
    from filelock import FileLock

FORMAT = 1
BUSY = 60.0  # seconds that a writer waits for another one
LONGEST = 1 << 24  # bytes of a text or a tree in a store
UNPACKED = 1 << 23  # bytes of an export from which on they are compared with those of the file
RATIO = 100  # of the two; cells shrink to a twentieth at best

# host, born and heartbeat of a run say nothing any more; they belong to the format.
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, born TEXT NOT NULL,
    began REAL NOT NULL, heartbeat REAL NOT NULL, ended REAL, machine TEXT NOT NULL
);
CREATE TABLE settings (
    method TEXT NOT NULL, position INTEGER NOT NULL, params TEXT NOT NULL, PRIMARY KEY (method, position)
) WITHOUT ROWID;
CREATE TABLE batches (
    id INTEGER PRIMARY KEY, "set" TEXT NOT NULL, noise REAL NOT NULL, repetition INTEGER NOT NULL,
    fold INTEGER NOT NULL, inner INTEGER NOT NULL, method TEXT NOT NULL, total INTEGER NOT NULL,
    done INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, seconds REAL NOT NULL DEFAULT 0,
    owner INTEGER REFERENCES runs,
    UNIQUE ("set", noise, repetition, fold, inner, method)
);
CREATE TABLE cells (
    batch INTEGER NOT NULL REFERENCES batches, position INTEGER NOT NULL,
    n_right INTEGER NOT NULL, n_score INTEGER NOT NULL, train_right INTEGER NOT NULL, n_train INTEGER NOT NULL,
    objective REAL, bound REAL, status TEXT NOT NULL, seconds REAL NOT NULL, splits INTEGER NOT NULL,
    relabelled INTEGER, flipped INTEGER NOT NULL, both INTEGER, error TEXT NOT NULL, extra TEXT NOT NULL,
    run INTEGER NOT NULL REFERENCES runs, worker TEXT NOT NULL, time REAL NOT NULL,
    PRIMARY KEY (batch, position)
) WITHOUT ROWID;
CREATE TABLE trees (
    batch INTEGER NOT NULL, position INTEGER NOT NULL, tree BLOB NOT NULL, PRIMARY KEY (batch, position)
) WITHOUT ROWID;
"""


# -- what is kept of a cell -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellRow:
    """A finished cell as it is stored; counts are of rows, ``seconds`` of the fit.

    A failed fit has status "failed", its ``error``, and no row right. ``relabelled`` and ``both`` (relabelled and
    flipped) are None for methods that give up no labels.
    """

    position: int
    n_right: int
    n_score: int
    train_right: int
    n_train: int
    objective: float | None
    bound: float | None
    status: str
    seconds: float
    splits: int
    relabelled: int | None
    flipped: int
    both: int | None
    error: str = ""
    extra: str = ""
    worker: str = ""
    tree: str | None = None


_STORED = [f.name for f in fields(CellRow) if f.name != "tree"]
TEXT = object
COLUMNS: dict[str, Any] = {  # with their types; a float is NaN where there is none
    "set": TEXT, "noise": "float64", "repetition": "int64", "fold": "int64", "inner": bool, "method": TEXT,
    "position": "int64", "params": TEXT, "n_right": "int64", "n_score": "int64", "train_right": "int64", "n_train": "int64",
    "objective": "float64", "bound": "float64", "status": TEXT, "seconds": "float64", "splits": "int64",
    "relabelled": "float64", "flipped": "int64", "both": "float64", "error": TEXT, "extra": TEXT,
}  # fmt: skip
_FLOATS = [name for name, kind in COLUMNS.items() if kind == "float64"]


@dataclass(frozen=True)
class Batch:
    """A method on a part, and how far it is."""

    id: int
    part: Part
    method: str
    total: int
    done: int


class LeaseLost(Exception):
    """Another run has taken the batch over: the worker stops, and nobody else sees this."""


# -- who runs ---------------------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """Versions and the kind of machine; no name or path of it."""
    from .. import __version__

    found: dict[str, Any] = {"octsvm": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn", "pandas", "highspy", "STree", "cleanlab"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found | {"platform": f"{platform.system()} {platform.machine()}", "cpus": cpus()}


def cpus() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# -- protocols --------------------------------------------------------------------------------------------------


def protocol_hash(protocol: Protocol) -> str:
    """Twelve hex digits of all that a protocol says, but for its titles."""
    content = protocol.model_dump(mode="json", exclude={"title": True, "methods": {"__all__": {"title"}}})
    if not protocol.tables:  # as before there were any
        del content["tables"]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def differences(old: Protocol, new: Protocol) -> list[str]:
    """What keeps the cells of ``old`` from being cells of ``new``, in words; growth of either one is no difference.

    Sets, noise, repetitions, rules and methods may be more or fewer; seeds, folds, shares, grids and limits may not
    differ.
    """

    def settled(p: Protocol) -> dict[str, Any]:
        found = {name: getattr(p, name) for name in ("seed", "folds", "min_samples_leaf", "inner_share")}
        for name, spec in p.methods.items():
            found |= {f"{k} of {name}": v for k, v in spec.model_dump(exclude={"title"}).items()}
        return found

    a, b = settled(old), settled(new)
    found = [f"{k} is {a[k]} there and {b[k]} here" for k in a if a[k] != b.get(k, a[k])]
    tables = [n for n in old.tables if old.tables[n] != new.tables.get(n, old.tables[n])]
    return found + [f"the table {n} is another one" for n in tables]


def _union(old: Protocol, new: Protocol) -> Protocol:
    """All that either one asks for."""

    def both(name: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys([*getattr(old, name), *getattr(new, name)]))

    return old.model_copy(
        update={
            "sets": both("sets"),
            "noise": tuple(sorted(both("noise"))),
            "rules": both("rules"),
            "repetitions": max(old.repetitions, new.repetitions),
            "tables": new.tables | old.tables,
            "methods": old.methods | new.methods | old.methods,
        }
    )


# -- the store --------------------------------------------------------------------------------------------------


class Store:
    """An open store. Use :meth:`create` to work with a protocol, :meth:`open` to look.

    One object may serve several threads; another process opens its own.
    """

    def __init__(self, path: str | Path, protocol: Protocol | None = None, *, readonly: bool = False) -> None:
        self.path = Path(path)
        if os.path.exists(path) and _head(path) not in (b"", b"SQLite format 3\0"):
            raise InvalidStore(
                f"{str(path)!r} is no store of cells. Give a file that octsvm table2 run made."
            )
        self._lock = threading.RLock()
        self._lives: dict[int, FileLock] = {}  # of the runs of this object
        # In a folder where nothing can be written, SQLite reads a file in WAL mode only if told that nobody changes it.
        mode = "ro&immutable=1" if readonly else "rwc"
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        how: dict[str, Any] = {"isolation_level": None, "check_same_thread": False}
        with self._understood(), contextlib.ExitStack() as undo:
            self._db = sqlite3.connect(uri, uri=True, timeout=BUSY, **how)
            undo.callback(self._db.close)
            # The file may be anybody's: no functions in its schema, no values that fill the memory.
            self._db.execute("PRAGMA trusted_schema=OFF")
            self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            # Equal texts are kept once: a million rows share a few.
            self._db.text_factory = lambda text: sys.intern(text.decode())
            if not readonly:
                self._db.execute("PRAGMA synchronous=NORMAL")
            if protocol is None or self._read("SELECT 1 FROM sqlite_master"):
                self._check_format()  # before anything in somebody else's file is changed
            if protocol is not None:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._prepare(protocol)
            undo.pop_all()

    @classmethod
    def create(cls, path: str | Path, protocol: Protocol) -> Store:
        """Open the store of ``protocol``, making or growing it as needed.

        Raises
        ------
        ProtocolMismatch
            It holds cells of another protocol; the message names the differences.
        InvalidStore, OutputNotWritable
            The file is no store, or cannot be written.
        """
        require_writable(path)
        return cls(path, protocol)

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """Open a store that is there.

        Raises
        ------
        InvalidStore
            There is none, or the file is something else.
        """
        if not os.path.isfile(path):  # False also where no file can be called so
            raise InvalidStore(
                f"{str(path)!r}: there is no such file. A run makes it: octsvm table2 run --store."
            )
        try:
            return cls(path)
        except OutputNotWritable:
            return cls(path, readonly=True)

    def close(self) -> None:
        """Close the connection; what was recorded is recorded. Runs that did not :meth:`end` have ended with it."""
        with self._lock:
            for run in list(self._lives):
                _let_go(self._lives.pop(run))
            self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _understood(self) -> Iterator[None]:
        """SQLite's own errors as ours."""
        name = repr(str(self.path))
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # SQLite quotes what it stumbles over
            text = str(error)
            if isinstance(error, sqlite3.OperationalError) and "locked" in text:
                raise OutputNotWritable(
                    f"{name} has been locked by another program for {BUSY:.0f} seconds. End that one, then run again; "
                    "nothing that was recorded is lost."
                ) from None
            unwritable = any(word in text for word in ("full", "readonly", "unable to open", "disk I/O"))
            if isinstance(error, sqlite3.OperationalError) and unwritable:
                raise OutputNotWritable(
                    f"{name} cannot be written: {text}. Free some space or choose another place; what was recorded is kept."
                ) from None
            raise InvalidStore(
                f"{name} cannot be read as a store of cells: {text}. Give another file, or restore it from a copy."
            ) from None

    @contextlib.contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """A transaction that writes: all of it or nothing."""
        with self._lock, self._understood():
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock, self._understood():
            return self._db.execute(query, values).fetchall()

    # -- protocol ---------------------------------------------------------------------------------------------

    def _check_format(self) -> None:
        if not self._read("SELECT 1 FROM sqlite_master WHERE name = 'meta'"):
            raise _no_store(self.path, "is an SQLite file, but no store of cells")
        # Views, triggers and generated columns can run without an end: nothing is read before they are refused.
        found = self._read("SELECT type, sql FROM sqlite_master WHERE sql IS NOT NULL")
        wanted, there = (
            {" ".join(s.split()) for s in of} for of in (SCHEMA.split(";"), (s for _, s in found))
        )
        active = {kind for kind, _ in found} & {"view", "trigger"}
        if active or wanted - there - {""}:
            why = f"it holds a {sorted(active)[0]}" if active else "its tables are others"
            raise _no_store(self.path, f"is no store of cells that this octsvm made: {why}")
        found = self._read("SELECT value FROM meta WHERE key = 'format'")
        if not found or found[0][0] != str(FORMAT):
            raise InvalidStore(
                f"{str(self.path)!r} has format {found[0][0] if found else 'unknown'}, and this octsvm reads format "
                f"{FORMAT}. Use the octsvm that wrote it, or export it there."
            )

    def _prepare(self, protocol: Protocol) -> None:
        with self._change() as db:
            if not self._read("SELECT 1 FROM sqlite_master"):
                for statement in SCHEMA.split(";"):
                    db.execute(statement)
                db.execute("INSERT INTO meta VALUES ('format', ?)", (str(FORMAT),))
            else:
                old = self.protocol
                found = differences(old, protocol)
                if found:
                    raise ProtocolMismatch(
                        f"{str(self.path)!r} holds cells of another protocol ({old.name}): {'; '.join(found)}. Choose "
                        "another --store for this one, or go on with the protocol of the store.",
                        tuple(found),
                    )
                protocol = _union(old, protocol)
            db.execute("INSERT OR REPLACE INTO meta VALUES ('protocol', ?)", (protocol.model_dump_json(),))
            db.execute("INSERT OR REPLACE INTO meta VALUES ('hash', ?)", (protocol_hash(protocol),))
            grids = {name: spec.settings() for name, spec in protocol.methods.items()}
            points = [
                (name, k, json.dumps(setting, separators=(",", ":")))
                for name, grid in grids.items()
                for k, setting in enumerate(grid)
            ]
            db.executemany("INSERT OR IGNORE INTO settings VALUES (?, ?, ?)", points)
            db.executemany(
                'INSERT OR IGNORE INTO batches ("set", noise, repetition, fold, inner, method, total) '
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(*astuple(p), name, len(grid)) for p in protocol.parts() for name, grid in grids.items()],
            )

    @property
    def protocol(self) -> Protocol:
        """All that the store has been asked for: the union of the protocols of its runs."""
        found = self._read("SELECT value FROM meta WHERE key = 'protocol'")
        if not found:
            raise _no_store(self.path, "holds no protocol")
        try:
            return Protocol.model_validate_json(found[0][0])
        except (ValueError, TypeError) as error:
            why = " ".join(str(error).split())[:200]
            raise _no_store(self.path, f"has a protocol that is damaged: {why}") from None

    @property
    def hash(self) -> str:
        """The hash of :attr:`protocol`, see :func:`protocol_hash`."""
        return str(self._read("SELECT value FROM meta WHERE key = 'hash'")[0][0])

    # -- runs -------------------------------------------------------------------------------------------------

    def begin(self) -> int:
        """Enter this process as a run, and return its number: the owner of the leases that it takes.

        Raises
        ------
        OutputNotWritable
            No lock can be had beside the store.
        """
        with self._change() as db:
            run = self._entered(db, os.getpid(), machine(), None)
            life = self._life(run)
            try:
                life.acquire()
            except (OSError, NotImplementedError) as error:
                raise OutputNotWritable(
                    f"{life.lock_file!r} cannot be locked: {error}. End what still works on a store of this name, or "
                    "choose another place."
                ) from None
            self._lives[run] = life
        return run

    def _entered(self, db: sqlite3.Connection, pid: int, kind: Mapping[str, Any], ended: float | None) -> int:
        now = time.time()
        done = db.execute(
            "INSERT INTO runs (host, pid, born, began, heartbeat, ended, machine) VALUES ('', ?, '', ?, ?, ?, ?)",
            (pid, now, now, ended, json.dumps(kind)),
        )
        return int(done.lastrowid or 0)

    def enter(self, kind: Mapping[str, Any]) -> int:
        """Enter a machine of a cluster, that works for a run and holds no lease; returns its number."""
        with self._change() as db:
            return self._entered(db, 0, kind, time.time())

    def end(self, run: int) -> None:
        """Give all leases back."""
        with self._change() as db:
            db.execute("UPDATE batches SET owner = NULL WHERE owner = ?", (run,))
            db.execute("UPDATE runs SET ended = ? WHERE id = ?", (time.time(), run))
        if run in self._lives:
            _let_go(self._lives.pop(run))

    def _life(self, run: int) -> FileLock:
        """The lock that a run holds as long as it lives."""
        from filelock import FileLock

        return FileLock(f"{os.path.realpath(self.path)}-run{run}.lock", timeout=0, thread_local=False)

    def _alive(self, run: int) -> bool:
        """Whether a run lives. Only asked in a transaction that writes, so by one at a time."""
        life = self._life(run)
        try:
            life.acquire()
        except TimeoutError:
            return True
        _let_go(life)
        return False

    def machines(self) -> list[dict[str, Any]]:
        """Versions and kind of every machine that recorded cells, each once."""
        found = self._read("SELECT DISTINCT machine FROM runs WHERE id IN (SELECT DISTINCT run FROM cells)")
        with _sound(self.path):
            return [json.loads(text) for (text,) in found]

    # -- batches ----------------------------------------------------------------------------------------------

    def batches(self) -> dict[tuple[Part, str], Batch]:
        """Every batch by part and method."""
        rows = self._read(
            'SELECT id, "set", noise, repetition, fold, inner, method, total, done FROM batches ORDER BY id'
        )
        return {
            (part, method): Batch(id_, part, method, total, done)
            for id_, name, noise, repetition, fold, inner, method, total, done in rows
            for part in [Part(name, noise, repetition, fold, bool(inner))]
        }

    def claim(self, batch: int, run: int) -> Literal["claimed", "done", "held"]:
        """Try to lease a batch: "held" where a run that lives has it. A lease of a dead run is taken over."""
        with self._change() as db:
            ((done, owner),) = self._read("SELECT done >= total, owner FROM batches WHERE id = ?", (batch,))
            if done:
                return "done"
            if owner not in (None, run) and self._alive(owner):
                return "held"
            db.execute("UPDATE batches SET owner = ? WHERE id = ?", (run, batch))
        return "claimed"

    def release(self, batch: int, run: int) -> None:
        """Give a lease back."""
        with self._change() as db:
            db.execute("UPDATE batches SET owner = NULL WHERE id = ? AND owner = ?", (batch, run))

    def done(self, batch: int) -> set[int]:
        """Positions in the grid of the cells of a batch that are there."""
        return {k for (k,) in self._read("SELECT position FROM cells WHERE batch = ?", (batch,))}

    def forget_failed(self, batches: Sequence[int]) -> int:
        """Drop the failed cells of batches, so that they are tried again; how many there were."""
        these = [(batch,) for batch in batches]
        with self._change() as db:
            dropped = db.executemany(
                "DELETE FROM cells WHERE batch = ? AND status = 'failed'", these
            ).rowcount
            db.executemany("UPDATE batches SET done = done - failed, failed = 0 WHERE id = ?", these)
        return max(0, dropped)

    # -- cells ------------------------------------------------------------------------------------------------

    def record(self, batch: int, run: int, rows: Sequence[CellRow], *, on: int | None = None) -> None:
        """Keep finished cells; on return they survive a kill. ``on`` names a machine of :meth:`enter`.

        Raises
        ------
        LeaseLost
            The run does not hold the batch any more; nothing was kept.
        """
        now = round(time.time(), 3)
        names = ", ".join(["batch", *_STORED, "run", "time"])
        marks = ", ".join("?" * (len(_STORED) + 3))
        with self._change() as db:
            failed = sum(r.status == "failed" for r in rows)
            held = db.execute(
                "UPDATE batches SET done = done + ?, failed = failed + ?, seconds = seconds + ? "
                "WHERE id = ? AND owner = ?",
                (len(rows), failed, sum(r.seconds for r in rows), batch, run),
            )
            if held.rowcount != 1:
                raise LeaseLost
            for row in rows:
                values = [finite(getattr(row, name)) for name in _STORED]
                db.execute(f"INSERT INTO cells ({names}) VALUES ({marks})", [batch, *values, on or run, now])
                if row.tree is not None:
                    packed = zlib.compress(row.tree.encode())
                    db.execute("INSERT OR REPLACE INTO trees VALUES (?, ?, ?)", (batch, row.position, packed))

    def tree(self, part: Part, method: str, position: int) -> str | None:
        """The tree of a cell as JSON, where the run kept trees."""
        found = self._read(
            'SELECT tree FROM trees JOIN batches ON batch = id WHERE "set" = ? AND noise = ? AND repetition = ? '
            "AND fold = ? AND inner = ? AND method = ? AND position = ?",
            (*astuple(part), method, position),
        )
        if not found:
            return None
        with _sound(self.path):
            unpacked = zlib.decompressobj().decompress(found[0][0], LONGEST + 1)
            if len(unpacked) > LONGEST:
                raise ValueError(f"a tree of more than {LONGEST:,} bytes")
            return unpacked.decode()

    def progress(self) -> dict[int, tuple[int, int, float]]:
        """Cells done, cells failed, and seconds of fits, by batch."""
        return {k: (a, b, c) for k, a, b, c in self._read("SELECT id, done, failed, seconds FROM batches")}

    def fitted(self, runs: Sequence[int]) -> int:
        """Cells that were recorded on machines of :meth:`begin` and :meth:`enter`."""
        marks = ", ".join("?" * len(runs))
        return int(self._read(f"SELECT COUNT(*) FROM cells WHERE run IN ({marks})", runs)[0][0])

    def _frame(self, query: str) -> pd.DataFrame:
        """What a query finds."""
        import pandas as pd

        with self._lock, self._understood():
            try:
                return pd.concat(pd.read_sql_query(query, self._db, chunksize=50_000), ignore_index=True)
            except pd.errors.DatabaseError as error:
                raise error.__cause__ or error from None

    def counts(self) -> pd.DataFrame:
        """Cells of each method: ``total``, ``done``, ``failed``, and ``seconds`` of their fits."""
        frame = self._frame(
            "SELECT method, SUM(total) AS total, SUM(done) AS done, SUM(failed) AS failed, SUM(seconds) AS seconds "
            "FROM batches GROUP BY method"
        ).set_index("method")
        return frame.reindex([m for m in self.protocol.methods if m in frame.index])

    def failures(self) -> pd.DataFrame:
        """Failed cells by method and message, with their number and the key of one part."""
        return self._frame(
            "SELECT method, error, COUNT(*) AS cells, "
            "\"set\" || '/' || noise || '/r' || repetition || '/f' || fold AS example "
            "FROM cells JOIN batches ON batch = id WHERE status = 'failed' GROUP BY method, error ORDER BY COUNT(*) DESC"
        )

    def frame(self) -> pd.DataFrame:
        """All cells, one row each, with the columns of :func:`read_cells`.

        Raises
        ------
        InvalidStore
            It is damaged.
        """
        names = ", ".join(f'{"cells." * (name in _STORED)}"{name}"' for name in COLUMNS)
        with _sound(self.path):
            frame = _typed(
                self._frame(
                    f"SELECT {names} FROM cells JOIN batches ON batch = batches.id JOIN settings USING (method, position) "
                    'ORDER BY repetition, "set", fold, noise, inner, batch, cells.position'
                )
            )
            if len(frame) != self._read("SELECT COUNT(*) FROM cells")[0][0]:
                raise ValueError("cells without a batch or settings")
            if not all(isinstance(json.loads(text), dict) for text in frame["params"].unique()):
                raise ValueError("settings that are no mapping")
        frame.attrs |= self.about()
        return frame

    def about(self) -> dict[str, Any]:
        """The protocol, its hash, and the machines."""
        protocol = self.protocol.model_dump(mode="json")
        return {"protocol": protocol, "hash": self.hash, "machines": self.machines()}

    def export(self, path: str | Path) -> Path:
        """Write all cells to a compact file: a gzipped CSV under one line of JSON with protocol and versions.

        Raises
        ------
        OutputNotWritable
        """
        frame = self.frame().astype({"inner": int, "relabelled": "Int64", "both": "Int64"})
        text = f"# {json.dumps({'format': FORMAT, **frame.attrs})}\n"
        text += frame.to_csv(index=False, lineterminator="\n")
        packed = io.BytesIO()
        # No time and no name inside: the same cells give the same bytes.
        with gzip.GzipFile("", "wb", 9, packed, mtime=0) as file:
            file.write(text.encode())
        replace_bytes(path, packed.getvalue())
        return Path(os.path.realpath(path))


# What reading fails on where the content is no such thing.
_DAMAGES = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
    EOFError,
    zlib.error,
)


@contextlib.contextmanager
def _sound(path: Path) -> Iterator[None]:
    """A store's damages as our error."""
    try:
        yield
    except InvalidStore:
        raise
    except _DAMAGES as error:
        raise InvalidStore(
            f"{str(path)!r} is damaged: {' '.join(str(error).split())[:300]}. Restore it from a copy, or run again "
            "into another store."
        ) from None


def _let_go(life: FileLock) -> None:
    """Release a lock and leave no file behind."""
    life.release()
    with contextlib.suppress(OSError):
        os.unlink(life.lock_file)


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame in its types, with the shares of rows predicted right."""
    frame = frame.astype(COLUMNS)
    for score, right, of in (("score", "n_right", "n_score"), ("train_score", "train_right", "n_train")):
        frame.insert(list(frame).index(of) + 1, score, frame[right] / frame[of])
    return frame


def _no_store(path: str | Path, why: str) -> InvalidStore:
    return InvalidStore(f"{str(path)!r} {why}. Give another file.")


def _head(path: str | Path) -> bytes:
    """The first bytes of a file."""
    try:
        with open_bytes(path) as file:
            return file.read(16)
    except OSError as error:
        raise _no_store(path, f"cannot be read: {error.strerror or error}") from None


def read_cells(path: str | Path) -> pd.DataFrame:
    """All cells of a store, or of a file that :meth:`Store.export` wrote: both give the same frame.

    Returns
    -------
    pandas.DataFrame
        One row a cell: ``set``, ``noise``, ``repetition``, ``fold``, ``inner``, ``method``, ``position`` in the grid,
        ``params`` (JSON), ``n_right`` of ``n_score`` scoring rows and their share ``score``, the same of the training
        rows (``train_right``, ``n_train``, ``train_score``), ``objective``, ``bound``, ``status``, ``seconds``,
        ``splits``, how many training rows are ``relabelled``, ``flipped`` and ``both``, and for a failed fit its
        ``error``. NaN stands for what a method does not have. ``attrs`` holds protocol, hash and machines.

    Raises
    ------
    InvalidStore
        The file is neither.
    """
    import pandas as pd

    path = Path(path)
    if not _head(path).startswith(b"\x1f\x8b"):
        with Store.open(path) as store:
            return store.frame()
    try:
        most = max(UNPACKED, RATIO * path.stat().st_size)
        with gzip.open(path) as packed:
            text = io.BytesIO(packed.read(most + 1))
        if len(text.getbuffer()) > most:
            raise ValueError(f"it unpacks to more than {RATIO} times its size")
        about = json.loads(text.readline().removeprefix(b"# "))
        form = about.pop("format")
        if form != FORMAT:
            raise InvalidParameter(f"its format is {form}, and this octsvm reads {FORMAT}")
        # Floats as text first: they come back to the last digit with every version of pandas.
        kinds = COLUMNS | dict.fromkeys(_FLOATS, "str") | {"inner": "int64"}
        frame = pd.read_csv(text, dtype=kinds, keep_default_na=False)
        frame[_FLOATS] = frame[_FLOATS].replace("", "nan").astype("float64")
        frame = _typed(frame[list(COLUMNS)])
    except (OSError, *_DAMAGES) as error:
        why = " ".join(str(error).split())[:300]
        raise InvalidStore(f"{str(path)!r} is no export of cells: {why}. Export the store again.") from None
    frame.attrs.update(about)
    return frame
