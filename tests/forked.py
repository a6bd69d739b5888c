"""Python processes that have loaded the package: forks of one that has, as to load it takes two seconds of a processor."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

from places import ROOT, TESTS
from waiting import PATIENCE

_FORKS = """
import json, os, signal, sys, tempfile
import engines, octsvm.backends.highs, octsvm.files.write, octsvm.heuristics.margin_tree, octsvm.solving.strategies
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        signal.alarm(job["patience"])
        os.setsid()
        os.chdir(job["cwd"])
        os.environ.clear()
        os.environ.update(job["env"])
        tempfile.tempdir = None
        for number, name in enumerate(("/dev/null", job["out"], job["err"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
        sys.argv[1:] = job["args"]
        exec(job["code"])
        break
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def parent() -> subprocess.Popen[str]:
    """The process that forks, which ends with this one.

    What a test sets in the environment would stay with it: it is to be started before that.
    """
    return subprocess.Popen(
        [sys.executable, "-c", _FORKS],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


class Forked:
    """A process that runs ``code`` in a session of its own; ended and waited for at the end of the block."""

    def __init__(self, folder: Path, code: str, *args: str) -> None:
        self._out, self._err = folder / "out.txt", folder / "err.txt"
        self._code: int | None = None
        job = {
            "code": code,
            "args": args,
            "env": dict(os.environ),
            "cwd": os.getcwd(),
            "out": str(self._out),
            "err": str(self._err),
            "patience": int(PATIENCE),
        }
        process = parent()
        assert process.stdin is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        self.pid = self._answer()

    def _answer(self) -> int:
        out = parent().stdout
        assert out is not None
        return int(out.readline())

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *_: object) -> None:
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait()

    def wait(self) -> int:
        """Its exit code, or minus the signal that ended it."""
        if self._code is None:
            self._code = self._answer()
        return self._code

    @property
    def out(self) -> str:
        """What it has printed."""
        return self._out.read_text()

    @property
    def err(self) -> str:
        """What it has said besides."""
        return self._err.read_text()
