"""``neos:<solver>`` against a server on loopback that speaks NEOS's protocol; nothing here reaches the network."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
import xmlrpc.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

import numpy as np
import pytest
from places import FAKE_SOLVERS
from waiting import PATIENCE, wait_until

import octsvm
from octsvm import solvers
from octsvm.backends import neos

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("pyscipopt") is None, reason="the server on loopback solves with pyscipopt"
)
FAKE = FAKE_SOLVERS / "asl.py"


class Server:
    """NEOS as far as Pyomo's client uses it.

    ``waits`` is how often a job is said to wait (None: for ever), ``runs`` how often it is said to run after that.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.waits: int | None = 0
        self.runs: int | None = 1
        self.refusal = self.garbage = ""
        self.calls: list[str] = []
        self.jobs: list[dict[str, Any]] = []
        self.killed: list[int] = []
        self.server = SimpleXMLRPCServer(
            ("127.0.0.1", 0), requestHandler=SimpleXMLRPCRequestHandler, logRequests=False, allow_none=True
        )
        for name in (
            "ping",
            "listSolversInCategory",
            "submitJob",
            "getJobStatus",
            "getFinalResults",
            "killJob",
        ):
            self.server.register_function(getattr(self, name), name)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def ping(self) -> str:
        self.calls.append("ping")
        return "NeosServer is alive"

    def listSolversInCategory(self, category: str) -> list[str]:
        assert category == "kestrel"
        return ["Bonmin:AMPL", "Cbc:AMPL", "SCIP:AMPL", "Ipopt:AMPL", "MINOS:GAMS"]

    def submitJob(self, xml: str, user: str, interface: str) -> list[Any]:
        self.calls.append("submitJob")
        if self.refusal:
            return [0, self.refusal]
        assert interface == "kestrel"
        document = ET.fromstring(xml)
        text = {child.tag: (child.text or "").strip() for child in document}
        packed = document.find("nlfile/base64")
        assert packed is not None
        assert packed.text is not None
        job = {
            "email": text["email"],
            "user": user,
            "solver": text["solver"],
            "options": text["solver_options"],
        }
        job["nl"] = gzip.decompress(base64.b64decode(packed.text))
        self.jobs.append(job | {"asked": 0})
        return [len(self.jobs), "secret"]

    def getJobStatus(self, number: int, password: str) -> str:
        assert password == "secret"
        job = self.jobs[number - 1]
        job["asked"] += 1
        if self.waits is None or job["asked"] <= self.waits:
            return "Waiting"
        if self.runs is None or job["asked"] <= self.waits + self.runs:
            return "Running"
        return "Done"

    def getFinalResults(self, number: int, password: str) -> Any:
        assert password == "secret"
        if self.garbage:
            return xmlrpc.client.Binary(self.garbage.encode())
        path = self.folder / f"job{number}.nl"
        path.write_bytes(self.jobs[number - 1]["nl"])
        subprocess.run(
            [sys.executable, FAKE, path, "-AMPL"], check=True, capture_output=True, timeout=PATIENCE
        )
        return xmlrpc.client.Binary(path.with_suffix(".sol").read_bytes())

    def killJob(self, number: int, password: str, message: str = "") -> str:
        assert password == "secret"
        self.killed.append(number)
        return f"Job #{number} killed"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server(tmp_path)
    monkeypatch.setenv(neos.SERVER, made.address)
    monkeypatch.setenv("NEOS_EMAIL", "somebody@example.org")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(neos, "POLL_SECONDS", (0.05, 0.2))
    yield made
    made.close()


def data(n: int = 9) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.random((n, 2)).round(2)
    return X, (X[:, 0] + 0.4 * rng.random(n) > 0.7).astype(int)


@pytest.fixture
def model() -> Any:
    return octsvm.build("oct", *data(), depth=1, alpha=0.1, variant="rank")


@pytest.mark.parametrize(
    ("solver", "formulation", "params"),
    [
        ("neos:bonmin", "oct", {"depth": 1, "alpha": 0.1}),
        ("neos:bonmin", "octsvm", {"depth": 1, "c1": 1.0, "c2": 2.0, "c3": 0.1}),
        ("neos:scip", "re_svm", {"c1": 5.0, "c2": 9.0}),
        # One that takes linear models only gets a job for every round.
        ("neos:cbc", "octsvm", {"depth": 0, "c1": 1.0, "c2": 2.0, "c3": 0.1}),
    ],
)
@pytest.mark.slow_cases("*-octsvm-*")
def test_the_optimum_comes_back_checked(
    server: Server, solver: str, formulation: str, params: dict[str, Any]
) -> None:
    X, y = data()
    built = octsvm.build(formulation, X, y, **params)
    ours = octsvm.solve(built)
    theirs = octsvm.solve(built, solver=solver, time_limit=120)
    assert theirs.status == "optimal", theirs.notes
    assert theirs.objective == pytest.approx(ours.objective, rel=1.1e-4, abs=1e-6)
    assert theirs.bound <= ours.objective + 1e-6
    assert theirs.engine["interface"] == "the NEOS server"
    assert theirs.engine["start"] == "none"
    assert len(server.jobs) == theirs.rounds
    assert (len(server.jobs) > 1) == (solver == "neos:cbc")
    assert {job["solver"].lower() for job in server.jobs} == {solver.removeprefix("neos:")}
    assert {job["email"] for job in server.jobs} == {"somebody@example.org"}
    assert server.killed == []


@pytest.mark.slow
def test_an_unknown_claim_proves_nothing(server: Server, model: Any) -> None:
    result = octsvm.solve(model, solver="neos:ipopt")
    assert (result.status, result.bound) == ("feasible", 0.0)
    assert result.objective == octsvm.solve(model).objective


def test_own_options_go_along(server: Server, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("kestrel_options", "solver=minos")  # of another program's
    octsvm.solve(model, solver="neos:bonmin", options={"bonmin.algorithm": "B-BB", "bonmin.node_limit": 500})
    options = server.jobs[0]["options"]
    assert "solver=bonmin" in options
    assert "bonmin_options:bonmin.algorithm=B-BB bonmin.node_limit=500" in options
    assert os.environ["kestrel_options"] == "solver=minos"  # noqa: SIM112, this is how it is written


@pytest.mark.parametrize(
    ("waits", "runs", "word"), [(None, 0, "waiting in the queue"), (1, None, "still running")]
)
@pytest.mark.slow
def test_a_job_past_its_limit_is_killed(
    server: Server, model: Any, waits: int | None, runs: int | None, word: str
) -> None:
    server.waits, server.runs = waits, runs
    result = octsvm.solve(model, solver="neos:bonmin", time_limit=0.8)
    assert (result.stop, result.status) == ("time_limit", "fallback")
    assert server.killed == [1]
    assert any(word in note for note in result.notes), result.notes


def test_a_callback_ends_the_job(server: Server, model: Any) -> None:
    server.waits = None
    result = octsvm.solve(model, solver="neos:bonmin", callback=lambda p: p.seconds > 0.6)
    assert result.stop == "interrupted"
    assert server.killed == [1]


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_ctrl_c_ends_the_job(server: Server, model: Any) -> None:
    server.waits = None

    def press() -> None:
        wait_until(lambda: any(job["asked"] for job in server.jobs))
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    try:
        result = octsvm.solve(model, solver="neos:bonmin", time_limit=PATIENCE)
        pressing.join()
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C came through to the caller")
    assert result.stop == "interrupted"
    assert server.killed == [1]


def test_an_address_is_needed(server: Server, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for given, part in ((None, "NEOS_EMAIL is not set"), ("me", "NEOS_EMAIL is 'me', which is none")):
        if given is None:
            monkeypatch.delenv("NEOS_EMAIL")
        else:
            monkeypatch.setenv("NEOS_EMAIL", given)
        with pytest.raises(octsvm.SolverUnavailable, match=re.escape(part)):
            octsvm.solve(model, solver="neos:bonmin")
    assert server.calls == []


def test_no_server_is_said_quickly(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEOS_EMAIL", "somebody@example.org")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(neos, "CONNECT_SECONDS", 0.5)
    silent = socket.create_server(("127.0.0.1", 0))  # takes connections and never answers
    closed = socket.create_server(("127.0.0.1", 0))
    ports = silent.getsockname()[1], closed.getsockname()[1]
    closed.close()
    before = [v.value for v in model.component_data_objects(octsvm.formulations.base.pyo.Var)]
    for port in ports:
        monkeypatch.setenv(neos.SERVER, f"http://127.0.0.1:{port}")
        with pytest.raises(
            octsvm.SolverUnavailable, match=f"127.0.0.1:{port} cannot be reached.*octsvm solvers"
        ):
            octsvm.solve(model, solver="neos:bonmin")
    assert before == [v.value for v in model.component_data_objects(octsvm.formulations.base.pyo.Var)]
    silent.close()


def test_the_default_server_is_pyomos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(neos.SERVER, raising=False)
    assert neos.address() == "https://neos-server.org:3333"


def test_an_unknown_solver_is_told_from_what_is_there(server: Server, model: Any) -> None:
    with pytest.raises(
        octsvm.UnknownSolver, match=r"'bonmi'.*Did you mean 'neos:bonmin'.*bonmin, cbc, ipopt, scip"
    ):
        octsvm.solve(model, solver="neos:bonmi")
    with pytest.raises(octsvm.UnknownSolver, match="needs a solver behind the colon"):
        octsvm.solve(model, solver="neos:")
    assert server.jobs == []


def test_a_refused_job_is_an_error(server: Server, model: Any) -> None:
    server.refusal = "Error: too many jobs from this address"
    with pytest.raises(octsvm.EngineFailed, match=r"does not take the job.*too many jobs"):
        octsvm.solve(model, solver="neos:bonmin")


def test_what_is_no_solution_file_is_quoted(server: Server, model: Any) -> None:
    server.garbage = "License expired\nsee the administrator\n"
    result = octsvm.solve(model, solver="neos:bonmin")
    assert (result.stop, result.status) == ("error", "fallback")
    assert any("License expired / see the administrator" in note for note in result.notes), result.notes


def test_a_smaller_gap_than_the_servers_is_refused(server: Server, model: Any) -> None:
    with pytest.raises(octsvm.InvalidParameter, match=r"gap=1e-06.*neos:bonmin stops at its own.*options="):
        octsvm.solve(model, solver="neos:bonmin", gap=1e-6)
    options = {"bonmin.allowable_fraction_gap": 1e-7}
    result = octsvm.solve(model, solver="neos:bonmin", gap=1e-6, options=options)
    assert result.status == "optimal"
    assert result.gap <= 1e-6


def test_the_plan_says_where_it_goes(server: Server, model: Any) -> None:
    plan = octsvm.plan(model, "neos:bonmin")
    assert plan.interface == "the NEOS server"
    assert solvers.get("neos:bonmin").claim == solvers.get("bonmin").claim
    assert server.calls == []


def test_the_log_names_the_job(server: Server, model: Any, tmp_path: Path) -> None:
    octsvm.solve(model, solver="neos:bonmin", log=tmp_path / "log.txt")
    text = (tmp_path / "log.txt").read_text()
    assert f"job 1 sent to {server.address}" in text
    assert "job 1: Done" in text
    assert "secret" not in text
