"""The supervisor by itself, on real processes: what it ends, how fast, and that it leaves nothing."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from places import ROOT
from waiting import PATIENCE, wait_until

from octsvm.backends.supervisor import Supervisor, bound_to_this_process, death

SLEEPS = "print('ready', flush=True); time.sleep(600)"
STOPS_WHEN_TOLD = f"""
def stop(*_):
    print("stopped", flush=True)
    sys.exit(0)
signal.signal(signal.SIGINT, stop)
{SLEEPS}
"""
LEAVES_A_CHILD = """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session={})
print("ready", flush=True)
print(child.pid, flush=True)
"""
IGNORES_SIGNALS = (
    f"signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPS}"
)

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="process groups, and the ends of a process, are looked up in /proc"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files that is empty again afterwards."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


class Lines:
    """The lines of a process, as they come."""

    def __init__(self) -> None:
        self.queue: queue.Queue[str] = queue.Queue()
        self.bytes, self.complete = 0, threading.Event()

    def read(self, stream: IO[bytes]) -> None:
        for line in stream:
            self.bytes += len(line)
            self.queue.put(line.decode().strip())
        self.complete.set()

    def next(self) -> str:
        return self.queue.get(timeout=PATIENCE)


def runs(pid: int) -> bool:
    """Whether a process is there and is not merely waiting for its parent to look at it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def begin(supervisor: Supervisor, code: str) -> tuple[int, Lines]:
    """Start Python on some code and wait until it says that it is ready."""
    lines = Lines()
    supervisor.make_folder()
    program = f"import os, signal, subprocess, sys, time\n{textwrap.dedent(code)}"
    process = supervisor.start([sys.executable, "-c", program], os.environ, output=lines.read)
    assert lines.next() == "ready"
    return process.pid, lines


def watched(supervisor: Supervisor) -> Callable[[], bool]:
    """A step of a backend: wait a little for the end, and ask the callback."""

    def finished() -> bool:
        ended = supervisor.poll(0.02)
        supervisor.ask(-1.0, 0)
        return ended

    return finished


def test_a_process_that_ends_by_itself_is_left_to() -> None:
    told: list[int] = []
    with Supervisor(PATIENCE) as supervisor:
        _, lines = begin(supervisor, "print('ready', flush=True); print('last words'); sys.exit(7)")
        assert supervisor.wait(watched(supervisor), lambda: told.append(1))
        assert supervisor.end() == 7
        assert lines.next() == "last words"
        seen = [supervisor.told, supervisor.ended, supervisor.late, supervisor.called_off]
        assert seen == [False] * 4
    assert told == []


def test_past_the_limit_an_interrupt_is_enough_for_who_listens() -> None:
    with Supervisor(0.5, patience=0.1, grace=PATIENCE) as supervisor:
        _, lines = begin(supervisor, STOPS_WHEN_TOLD)
        assert supervisor.wait(watched(supervisor), supervisor.interrupt)
        assert supervisor.told
        assert lines.next() == "stopped"
        assert supervisor.end() == 0
        assert supervisor.reason == "time_limit"


@pytest.mark.slow
def test_who_ignores_every_request_is_killed_after_the_grace() -> None:
    with Supervisor(0.5, patience=0.1, grace=0.5) as supervisor:
        pid, _ = begin(supervisor, IGNORES_SIGNALS)
        assert not supervisor.wait(watched(supervisor), supervisor.interrupt)
        assert time.monotonic() >= supervisor.deadline + 0.6
        assert supervisor.ended
        assert supervisor.end() == -signal.SIGKILL
        assert (supervisor.late, supervisor.reason) == (True, "time_limit")
    assert not runs(pid)


def test_a_grandchild_ends_with_its_parent() -> None:
    code = f"""
        inner = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", inner])
        print("ready", flush=True)
        print(child.pid, flush=True)
        {IGNORES_SIGNALS}
    """
    with Supervisor(PATIENCE) as supervisor:
        pid, lines = begin(supervisor, code)
        grandchild = int(lines.next())
        assert runs(pid)
        assert runs(grandchild)
        supervisor.end()
        assert lines.complete.wait(PATIENCE)
    assert not runs(pid)
    assert wait_until(lambda: not runs(grandchild))


def test_what_a_process_leaves_behind_ends_too() -> None:
    with Supervisor(PATIENCE) as supervisor:
        _, lines = begin(supervisor, LEAVES_A_CHILD.format(False))
        grandchild = int(lines.next())
        assert supervisor.wait(watched(supervisor))
        assert runs(grandchild)
        assert supervisor.end() == 0
    assert wait_until(lambda: not runs(grandchild))


@pytest.mark.slow
def test_one_that_left_the_group_does_not_hold_up_the_end() -> None:
    # It keeps the other end of the pipe, whose reader goes on.
    done = threading.Event()
    found: list[int] = []

    def solve() -> None:
        with Supervisor(PATIENCE) as supervisor:
            _, lines = begin(supervisor, LEAVES_A_CHILD.format(True))
            found.append(int(lines.next()))
            supervisor.wait(watched(supervisor))
        done.set()

    threading.Thread(target=solve, daemon=True).start()
    try:
        assert done.wait(PATIENCE)
    finally:
        for pid in found:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_megabytes_are_read_while_it_runs_and_to_their_end() -> None:
    code = """
        print("ready", flush=True)
        for _ in range(40):
            os.write(1, b"x" * 200_000 + b"\\n")
            os.write(2, b"a line\\n" * 20_000)
    """
    with Supervisor(PATIENCE) as supervisor:
        _, lines = begin(supervisor, code)
        assert supervisor.wait(watched(supervisor))
        assert supervisor.end() == 0
        assert lines.complete.is_set()
    assert lines.bytes == len("ready\n") + 40 * (200_001 + 7 * 20_000)


def test_the_end_waits_for_a_reader_that_is_slow() -> None:
    seen: list[bytes] = []

    def read(stream: IO[bytes]) -> None:
        text = stream.read()
        time.sleep(0.3)
        seen.append(text)

    with Supervisor(PATIENCE) as supervisor:
        supervisor.start([sys.executable, "-c", "print('last words')"], os.environ, output=read)
        assert supervisor.wait(watched(supervisor))
        supervisor.end()
        assert seen == [b"last words\n"]


def test_two_streams_and_a_standard_input() -> None:
    out, err = Lines(), Lines()
    with Supervisor(PATIENCE) as supervisor:
        code = "import sys; print(sys.stdin.readline().strip(), file=sys.stderr); print('ready')"
        process = supervisor.start([sys.executable, "-c", code], os.environ, output=out.read, errors=err.read)
        assert process.stdin is not None
        process.stdin.write(b"a word\n")
        process.stdin.flush()
        assert supervisor.wait(watched(supervisor))
        supervisor.end()
    assert (out.next(), err.next()) == ("ready", "a word")


def test_the_callback_ends_it_and_is_asked_no_more() -> None:
    asked: list[tuple[float, int, Any]] = []

    def watch(*known: Any) -> bool:
        asked.append(known)
        return len(asked) == 3

    with Supervisor(PATIENCE, watch, grace=0.3) as supervisor:
        pid, _ = begin(supervisor, IGNORES_SIGNALS)
        assert not supervisor.wait(watched(supervisor), supervisor.interrupt)
        assert supervisor.asked
        assert supervisor.reason == "interrupted"
        assert time.monotonic() < supervisor.deadline
    assert asked == [(-1.0, 0, None)] * 3
    assert not runs(pid)


def test_an_exception_of_the_callback_leaves_neither_process_nor_folder(temporary: Path) -> None:
    def watch(*_: Any) -> bool:
        assert len(list(temporary.iterdir())) == 1
        raise ValueError("mine")

    pids: list[int] = []

    def solve() -> None:
        with Supervisor(PATIENCE, watch) as supervisor:
            pids.append(begin(supervisor, IGNORES_SIGNALS)[0])
            supervisor.wait(watched(supervisor), supervisor.interrupt)

    with pytest.raises(ValueError, match="mine"):
        solve()
    assert [runs(pid) for pid in pids] == [False]


def test_a_guarded_exception_waits_for_the_end() -> None:
    error = ValueError("mine")
    steps: list[str] = []

    def watch(*_: Any) -> bool:
        raise error

    supervisor = Supervisor(PATIENCE, watch)

    def finished() -> bool:
        supervisor.guarded(lambda: supervisor.ask(0.0, 0))
        steps.append("step")
        return len(steps) == 3

    assert supervisor.wait(finished, lambda: steps.append("told"))
    assert supervisor.error is error
    assert steps == ["step", "told", "step"]


def test_ctrl_c_tells_it_to_stop_and_what_it_found_is_read() -> None:
    pressed: list[int] = []

    def watch(*_: Any) -> bool:
        if not pressed:
            pressed.append(1)
            signal.raise_signal(signal.SIGINT)
        return False

    with Supervisor(PATIENCE, watch, grace=PATIENCE) as supervisor:
        _, lines = begin(supervisor, STOPS_WHEN_TOLD)
        assert supervisor.wait(watched(supervisor), supervisor.interrupt)
        assert (supervisor.pressed, supervisor.asked, supervisor.reason) == (True, False, "interrupted")
        assert lines.next() == "stopped"


def test_ctrl_c_again_and_again_does_not_get_past_the_end() -> None:
    def watch(*_: Any) -> bool:
        signal.raise_signal(signal.SIGINT)
        return False

    with Supervisor(PATIENCE, watch, grace=0.3) as supervisor:
        pid, _ = begin(supervisor, IGNORES_SIGNALS)
        assert not supervisor.wait(watched(supervisor), supervisor.interrupt)
        assert supervisor.pressed
    assert not runs(pid)


def test_without_patience_and_grace_the_limit_is_the_end() -> None:
    supervisor = Supervisor(0.2, patience=0.0, grace=0.0)
    steps: list[float] = []

    def finished() -> bool:
        steps.append(time.monotonic())
        time.sleep(0.02)
        return False

    assert not supervisor.wait(finished)
    assert steps
    assert sum(step >= supervisor.deadline for step in steps) <= 1  # one may have begun just before
    assert supervisor.left() == 0.0
    assert supervisor.reason == "time_limit"


@pytest.mark.slow
def test_a_process_ends_with_the_one_that_supervises_it() -> None:
    code = textwrap.dedent(f"""
        import os, sys
        from octsvm.backends.supervisor import Supervisor, bound_to_this_process
        sleeper = [sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"]
        with Supervisor({PATIENCE}) as supervisor:
            supervisor.start(
                bound_to_this_process(sleeper), os.environ, output=lambda s: print(s.readline().decode(), flush=True)
            )
            supervisor.wait(lambda: supervisor.poll(0.1))
    """)
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert runs(pid)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()  # type: ignore[union-attr]
    assert wait_until(lambda: not runs(pid))


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with Supervisor(PATIENCE) as supervisor:
        supervisor.make_folder()
        with pytest.raises(FileNotFoundError):
            supervisor.start([str(tmp_path / "none")], os.environ, output=Lines().read)
        assert supervisor.end() is None
    lines = Lines()
    with Supervisor(PATIENCE) as supervisor:
        supervisor.start(bound_to_this_process([str(tmp_path / "none")]), os.environ, output=lines.read)
        assert supervisor.wait(watched(supervisor))
        assert supervisor.end() == 127
    assert "none could not be started: No such file or directory" in lines.next()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (None, "did not end"),
        (3, "exit code 3"),
        (-signal.SIGSEGV, "ended by SIGSEGV"),
        (-signal.SIGKILL, r"SIGKILL (often for want of memory)"),
        (-99, "signal 99"),
    ],
)
def test_an_exit_code_in_words(code: int | None, said: str) -> None:
    assert death(code).endswith(said)


def test_the_process_runs_in_its_folder_which_goes_with_what_is_in_it(temporary: Path) -> None:
    with contextlib.ExitStack() as stack:
        supervisor = stack.enter_context(Supervisor(PATIENCE))
        _, lines = begin(
            supervisor,
            "os.mkdir('below'); open('below/file', 'w').close(); print('ready'); print(os.getcwd())",
        )
        folder = Path(lines.next())
        assert folder.parent == temporary
        assert (folder / "below" / "file").exists()
        assert supervisor.wait(watched(supervisor))
    assert not folder.exists()
