"""The NEOS server, through Pyomo's client: the model's .nl file goes there, and the .sol of an AMPL solver comes back.

A job that does not end within the limit is killed there. Nothing is known of its bound; what the solver's "optimal" is
worth is what its entry in the table says, within the gap at which it stops unless told otherwise.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import tempfile
import time
import xmlrpc.client
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import numpy as np
from pyomo.neos.kestrel import NEOS, ProxiedTransport, kestrelAMPL

from ..errors import (
    EngineFailed,
    InvalidSolutionFile,
    OutputNotWritable,
    SolverUnavailable,
    UnknownSolver,
)
from ..solvers import REMOTE, SolverSpec, neos_email
from .engine_log import EngineLog, discard
from .executable import ASL_INTERRUPTED, ASL_STOPS
from .matrix_program import Array, Limits, LinearProgram, Outcome, Watch, claimed_bound
from .solution_formats import SolutionFile, read

SERVER = "OCTSVM_NEOS"  # address of another server that speaks its protocol
CONNECT_SECONDS = 5.0
CALL_SECONDS = 30.0
KILL_SECONDS = 5.0
POLL_SECONDS = (0.5, 5.0)  # the first pause between two questions, and the longest
RUNNING = ("Running", "Waiting")


class _Client(kestrelAMPL):
    """Pyomo's client, with time limits on every call, and without the process's environment for its options."""

    def __init__(self, address: str, solver: str, own: dict[str, Any]) -> None:
        self.address, self._asked, self._own = address, solver, own
        self.options = None
        super().__init__()

    def setup_connection(self) -> None:
        """Connect, and see whether the server answers."""
        parts = urlsplit(self.address)
        proxy = getproxies().get(parts.scheme)
        if proxy and not proxy_bypass(parts.hostname or ""):
            transport: Any = ProxiedTransport()
            transport.set_proxy(proxy)
        elif parts.scheme == "https":
            transport = xmlrpc.client.SafeTransport()
        else:
            transport = xmlrpc.client.Transport()
        self.transport = transport
        self._connect = transport.make_connection
        self.limit(CONNECT_SECONDS)
        self.neos = xmlrpc.client.ServerProxy(self.address, transport=transport)
        self.neos.ping()
        self.limit(CALL_SECONDS)

    def limit(self, seconds: float) -> None:
        """Let every call from now on take so many seconds at most."""
        self.transport.close()

        def connect(host: Any) -> Any:
            connection = self._connect(host)
            connection.timeout = seconds
            if connection.sock is not None:
                connection.sock.settimeout(seconds)
            return connection

        self.transport.make_connection = connect

    def getEmailAddress(self) -> str:
        """The address of the sender."""
        return neos_email()

    def getSolverName(self) -> str:
        """The server's spelling of the solver's name.

        Raises
        ------
        UnknownSolver
        """
        there = self.getAvailableSolvers()
        for name in there:
            if name.lower() == self._asked.lower():
                return str(name)
        close = difflib.get_close_matches(self._asked.lower(), [n.lower() for n in there], n=1, cutoff=0.5)
        hint = f" Did you mean {REMOTE + close[0]!r}?" if close else ""
        raise UnknownSolver(
            f"The NEOS server takes no .nl files for {self._asked!r}.{hint} For these it does: "
            f"{', '.join(n.lower() for n in there) or 'none at present'}."
        )

    def formXML(self, stub: str) -> str:
        """The job, with the caller's own options in it."""
        xml: str = super().formXML(stub)
        if self._own:
            words = " ".join(f"{key}={value}" for key, value in self._own.items())
            line = f"{self._asked.lower()}_options:{words}\n"
            xml = xml.replace("</solver_options>", f"{line}</solver_options>", 1)
        return xml


def address() -> str:
    """Where the server is."""
    return os.environ.get(SERVER) or f"{NEOS.scheme}://{NEOS.host}:{NEOS.port}"


def solve(
    program: LinearProgram,
    spec: SolverSpec,
    limits: Limits,
    start: Array | None = None,
    watch: Watch | None = None,
    nl: Any = None,
) -> Outcome:
    """Send the .nl file, wait for the end of the job or of the limit, and read what came back.

    Raises
    ------
    SolverUnavailable
        The server cannot be reached.
    UnknownSolver
        It has no such solver for .nl files.
    EngineFailed
        It does not take the job.
    OutputNotWritable
    """
    own = dict(limits.options)
    began = time.monotonic()
    deadline = began + limits.seconds
    log = EngineLog(spec, limits.log)
    folder = Path(tempfile.mkdtemp(prefix="octsvm-"))
    client: _Client | None = None
    job: tuple[int, str] | None = None
    status, pressed, asked = "not sent", False, False
    found: SolutionFile | None = None
    trouble = ""
    startup = 0.0
    try:
        stub = folder / "model"
        stub.with_suffix(".nl").write_bytes(Path(nl.path).read_bytes())
        client = _connected(spec, own)
        try:
            job = client.submit(client.formXML(str(stub)))
        except (OSError, xmlrpc.client.Error, RuntimeError) as error:
            raise EngineFailed(
                f"The NEOS server does not take the job: {' '.join(str(error).split())}. Try again later, or another "
                "solver."
            ) from None
        startup = time.monotonic() - began
        log.text(f"job {job[0]} sent to {client.address}")
        pause, status = POLL_SECONDS[0], "Waiting"
        while status in RUNNING and not asked:
            until = min(time.monotonic() + pause, deadline)
            while time.monotonic() < until and not asked:
                time.sleep(max(0.0, min(0.05, until - time.monotonic())))
                asked = watch is not None and watch(-np.inf, 0, None)
            if asked:
                break
            before, status = status, _status(client, job, status)
            if status != before:
                log.text(f"job {job[0]}: {status}")
            if status in RUNNING and time.monotonic() >= deadline:
                break
            pause = min(2 * pause, POLL_SECONDS[1])
        if status not in RUNNING:
            found, trouble = _answer(client, job, stub, status)
            job = None
    except KeyboardInterrupt:
        pressed = True
    except OSError as error:
        raise OutputNotWritable(
            f"The model's file for {spec.title} cannot be written: {error.strerror or error}. TMPDIR names another folder for "
            "temporary files."
        ) from None
    finally:
        if client is not None:
            if job is not None:  # whoever waits behind us in the queue is glad
                with contextlib.suppress(Exception, KeyboardInterrupt):
                    client.limit(KILL_SECONDS)
                    client.kill(*job)
                    log.text(f"job {job[0]} ended from here")
            with contextlib.suppress(Exception):
                client.transport.close()
        log.close()
        discard(folder)
    return _outcome(program, spec, limits, nl, found, trouble, status, pressed or asked, startup)


def _connected(spec: SolverSpec, own: dict[str, Any]) -> _Client:
    where = address()
    try:
        return _Client(where, spec.name.removeprefix(REMOTE), own)
    except (OSError, xmlrpc.client.Error, ValueError) as error:
        raise SolverUnavailable(
            f"The NEOS server at {where} cannot be reached: {' '.join(str(error).split()) or type(error).__name__}. See "
            "whether this machine may reach it (a proxy is named by https_proxy), try again later, or use a solver that is "
            "installed here (`octsvm solvers`)."
        ) from None


def _status(client: _Client, job: tuple[int, str], last: str) -> str:
    try:
        return str(client.neos.getJobStatus(*job))
    except (OSError, xmlrpc.client.Error):  # the line may come back before the limit
        client.transport.close()
        return last


def _answer(
    client: _Client, job: tuple[int, str], stub: Path, status: str
) -> tuple[SolutionFile | None, str]:
    """The solution file, or why there is none."""
    if status != "Done":
        return None, f"the server says of the job: {status}"
    try:
        client.retrieve(str(stub), *job)
        path = stub.with_suffix(".sol")
        text = path.read_text(encoding="utf-8", errors="replace")
    except (OSError, xmlrpc.client.Error) as error:
        return None, f"its answer could not be fetched ({' '.join(str(error).split())})"
    try:
        return read(path, "asl"), ""
    except InvalidSolutionFile:
        said = " / ".join(line.strip() for line in text.splitlines() if line.strip())[:300]
        return None, f"no solution came back, but: {said or 'nothing'}"


def _outcome(
    program: LinearProgram,
    spec: SolverSpec,
    limits: Limits,
    nl: Any,
    found: SolutionFile | None,
    trouble: str,
    status: str,
    ended: bool,
    startup: float,
) -> Outcome:
    if found is None:
        if trouble:
            stop, failure = "error", f"{spec.title} gave no answer: {trouble}"
        elif ended:
            stop, failure = (
                "interrupted",
                f"the job on NEOS was ended from here while it was {status.lower()}",
            )
        else:
            stop = "time_limit"
            failure = (
                "the job on NEOS was still waiting in the queue at the limit, and was ended; a longer time_limit lets it begin"
                if status == "Waiting"
                else "the job on NEOS was still running at the limit, and was ended; nothing comes back from such a job"
            )
        return Outcome(stop, None, np.inf, -np.inf, 0, failure=failure, startup=startup)
    stop = _stop(found.code)
    x = None
    whole = found.ordered is not None and len(found.ordered) == len(nl.columns)
    if found.has_point and whole and stop not in ("infeasible", "unbounded"):
        x = np.clip(np.zeros(program.n), program.low, program.high)
        x[nl.columns] = found.ordered
        x = x if np.isfinite(x).all() else None
    objective = np.inf if x is None else program.objective(x)
    bound = -np.inf
    if stop == "infeasible":
        bound = np.inf
    elif stop == "optimal" and x is not None:
        asked = limits if limits.options else replace(limits, gap=max(limits.gap, 0.9 * spec.least_gap))
        bound = claimed_bound(objective, asked, spec.native("gap"))
    return Outcome(
        stop,
        x,
        objective,
        bound,
        0,
        start="unsupported",
        native=" ".join(found.status.split()),
        startup=startup,
        options=dict(limits.options),
    )


def _stop(code: int | None) -> str:
    if code == ASL_INTERRUPTED:
        return "interrupted"
    if code is not None:
        for below, stop in ASL_STOPS:
            if code < below:
                return stop
    return "error"
