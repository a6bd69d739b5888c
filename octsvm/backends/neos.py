"""The NEOS server, through Pyomo's client: the model's .nl file goes there, and the .sol of an AMPL solver comes back.

A job that does not end within the limit is killed there. Nothing is known of its bound; what the solver's "optimal" is
worth is what its entry in the table says, within the gap at which it stops unless told otherwise.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import time
import xmlrpc.client
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import numpy as np
from pyomo.neos.kestrel import NEOS, ProxiedTransport, kestrelAMPL

from ..errors import EngineFailed, InvalidSolutionFile, SolverUnavailable, UnknownSolver
from ..solvers import REMOTE, SolverSpec, neos_email
from .engine_log import EngineLog
from .matrix_program import Array, Outcome, Request, Watch
from .scratch import unwritable
from .solution_formats import SolutionFile, read
from .supervisor import Supervisor

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
        """The server's spelling of the solver's name; one that it does not have is refused."""
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


class _Job:
    """A job on the server: sent, asked about while it runs, and fetched or ended."""

    def __init__(self, request: Request, log: EngineLog, supervisor: Supervisor) -> None:
        self._request, self._log, self._supervisor = request, log, supervisor
        self._client: _Client | None = None
        self._at_server: tuple[int, str] | None = None
        self._pause, self._next = POLL_SECONDS[0], 0.0
        self.status = "not sent"  # then the server's word for it
        self.startup = 0.0  # seconds until it was sent

    def run(self) -> tuple[SolutionFile | None, str]:
        """Send it, wait for its end or for the limit, and fetch the answer: the solution file, or why there is none."""
        supervisor = self._supervisor
        stub = supervisor.make_folder() / "model"
        assert self._request.nl is not None
        stub.with_suffix(".nl").write_bytes(self._request.nl.path.read_bytes())
        client = self._client = _connected(self._request.spec, dict(self._request.limits.options))
        self._send(client, stub)
        finished = supervisor.wait(lambda: self._poll(client))
        if not finished and not supervisor.called_off:
            finished = self._ask_server(client)  # it may have ended since the last question
        if not finished:
            return None, ""
        answer = _answer(client, self._number, stub, self.status)
        self._at_server = None
        return answer

    @property
    def _number(self) -> tuple[int, str]:
        assert self._at_server is not None
        return self._at_server

    def _send(self, client: _Client, stub: Path) -> None:
        try:
            self._at_server = client.submit(client.formXML(str(stub)))
        except (OSError, xmlrpc.client.Error, RuntimeError) as error:
            raise EngineFailed(
                f"The NEOS server does not take the job: {' '.join(str(error).split())}. Try again later, or another "
                "solver."
            ) from None
        self.status, self.startup = "Waiting", time.monotonic() - self._supervisor.began
        self._next = time.monotonic() + self._pause
        self._log.text(f"job {self._number[0]} sent to {client.address}")

    def _poll(self, client: _Client) -> bool:
        """Wait a short while, and ask the server where it is time to; whether the job has ended."""
        left = min(self._next - time.monotonic(), self._supervisor.left())
        time.sleep(max(0.0, min(0.05, left)))
        self._supervisor.ask(-np.inf, 0)
        if self._supervisor.asked or time.monotonic() < self._next:
            return False
        ended = self._ask_server(client)
        self._pause = min(2 * self._pause, POLL_SECONDS[1])
        self._next = time.monotonic() + self._pause
        return ended

    def _ask_server(self, client: _Client) -> bool:
        before = self.status
        try:
            self.status = str(client.neos.getJobStatus(*self._number))
        except (OSError, xmlrpc.client.Error):  # the line may come back before the limit
            client.transport.close()
        if self.status != before:
            self._log.text(f"job {self._number[0]}: {self.status}")
        return self.status not in RUNNING

    def close(self) -> None:
        """End it on the server where it still runs, and the connection."""
        if self._client is None:
            return
        if self._at_server is not None:  # whoever waits behind us in the queue is glad
            with contextlib.suppress(Exception, KeyboardInterrupt):
                self._client.limit(KILL_SECONDS)
                self._client.kill(*self._at_server)
                self._log.text(f"job {self._at_server[0]} ended from here")
        with contextlib.suppress(Exception):
            self._client.transport.close()


def solve(request: Request, start: Array | None = None, watch: Watch | None = None) -> Outcome:
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
    spec, limits = request.spec, request.limits
    supervisor = Supervisor(limits.seconds, watch, patience=0.0, grace=0.0)
    log = EngineLog(spec, limits.log)
    job = _Job(request, log, supervisor)
    found: SolutionFile | None = None
    trouble = ""
    try:
        with contextlib.closing(log), supervisor, contextlib.closing(job):
            found, trouble = job.run()
    except KeyboardInterrupt:
        supervisor.pressed = True
    except OSError as error:
        raise unwritable(spec.title, error) from None
    if found is not None:
        return _answered(request, found, job.startup)
    stop, failure = _cut_short(job.status, supervisor)
    if trouble:
        stop, failure = "error", f"{spec.title} gave no answer: {trouble}"
    return request.outcome(stop, None, -np.inf, 0, failure=failure, startup=job.startup)


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


def _cut_short(status: str, supervisor: Supervisor) -> tuple[str, str]:
    """Stop and failure of a job that was ended from here while it waited or ran."""
    if supervisor.called_off:
        return "interrupted", f"the job on NEOS was ended from here while it was {status.lower()}"
    if status == "Waiting":
        said = "waiting in the queue at the limit, and was ended; a longer time_limit lets it begin"
    else:
        said = "running at the limit, and was ended; nothing comes back from such a job"
    return "time_limit", f"the job on NEOS was still {said}"


def _answered(request: Request, found: SolutionFile, startup: float) -> Outcome:
    """The outcome of a job whose solution file came back."""
    spec, limits = request.spec, request.limits
    x = request.point(found.ordered) if found.has_point else None
    bound = -np.inf
    if found.stop == "optimal" and x is not None:
        asked = limits if limits.options else replace(limits, gap=max(limits.gap, 0.9 * spec.least_gap))
        bound = replace(request, limits=asked).claimed_bound(request.objective(x))
    native, options = " ".join(found.status.split()), dict(limits.options)
    return request.outcome(found.stop, x, bound, 0, native=native, options=options, startup=startup)
