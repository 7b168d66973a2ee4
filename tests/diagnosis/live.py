"""Bottlenecks on this machine itself: in network namespaces, control groups and files of this test's own.

Nothing of the machine's links, disks and sysctls is touched. Each injection yields the command words that enter the
place where ``advisor why`` is to look.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.cases import read_cases
from tests.reach.space import Spaces
from tests.running import run_text

DATA = read_cases(__file__)

Where = tuple[str, ...]
FAR: Final = "10.77.0.2"
_numbers = itertools.count()

RECEIVE = DATA["RECEIVE"]
SEND = DATA["SEND"]
ANSWER = DATA["ANSWER"]
ASK = DATA["ASK"]
NO_ACCEPT = DATA["NO_ACCEPT"]
CONNECT = DATA["CONNECT"]
RELAY = DATA["RELAY"]
READ = DATA["READ"]
GROW = DATA["GROW"]
BURN = "while True: pass"


class Injection(NamedTuple):
    name: str
    right: frozenset[str]
    make: Callable[[], AbstractContextManager[Where]]


@contextmanager
def _program(*words: str, ready: bool = False) -> Iterator[subprocess.Popen[str]]:
    program = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        if ready:
            assert program.stdout is not None
            assert program.stdout.readline().strip() == "ready"
        yield program
    finally:
        program.kill()
        program.wait()
        if program.stdout:
            program.stdout.close()


@contextmanager
def _two_spaces(loss: float = 0, delay: float = 0) -> Iterator[Spaces]:
    """Two namespaces on one wire, which loses a share of the packets or takes some seconds for each way."""
    spaces = Spaces()
    try:
        spaces.add("here", "far")
        if loss or delay:
            names = (spaces.name("here"), spaces.name("far"))
            with _program(sys.executable, "-c", RELAY, str(loss), str(delay), *names, ready=True):
                yield spaces
            return
        spaces.wire(("here", "e0"), ("far", "e0"))
        spaces.address("here", "e0", "10.77.0.1/24")
        spaces.address("far", "e0", f"{FAR}/24")
        yield spaces
    finally:
        spaces.remove()


def _enter(spaces: Spaces, space: str = "here") -> Where:
    return "ip", "netns", "exec", spaces.name(space)


def _python(spaces: Spaces, space: str, program: str, *words: str) -> tuple[str, ...]:
    return *_enter(spaces, space), sys.executable, "-c", program, *words


def _sending(
    *, loss: float = 0, delay: float = 0, rate: str = "", receive: int = 0, pause: float = 0, send: int = 0
) -> Callable[[], AbstractContextManager[Where]]:
    """One connection that sends as fast as it can."""

    @contextmanager
    def make() -> Iterator[Where]:
        with _two_spaces(loss, delay) as spaces:
            if rate:
                spaces.run("here", f"tc qdisc add dev e0 root tbf rate {rate} burst 32k limit 1000k")
            with (
                _program(*_python(spaces, "far", RECEIVE, str(receive), str(pause)), ready=True),
                _program(*_python(spaces, "here", SEND, str(send))),
            ):
                time.sleep(1)
                yield _enter(spaces)

    return make


@contextmanager
def _asking(delay: float) -> Iterator[Where]:
    """One question at a time, each of which takes a round trip."""
    with (
        _two_spaces(delay=delay) as spaces,
        _program(*_python(spaces, "far", ANSWER), ready=True),
        _program(*_python(spaces, "here", ASK)),
    ):
        time.sleep(1)
        yield _enter(spaces)


@contextmanager
def _listen_drops() -> Iterator[Where]:
    with (
        _two_spaces() as spaces,
        _program(*_python(spaces, "far", NO_ACCEPT), ready=True),
        _program(*_python(spaces, "here", CONNECT)),
    ):
        time.sleep(1)
        yield _enter(spaces, "far")


@contextmanager
def _group(controller: str, settings: dict[str, str]) -> Iterator[Path]:
    """A control group of version 1 of its own, or of version 2 where that is what the machine has."""
    unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    top = Path("/sys/fs/cgroup") if unified else Path("/sys/fs/cgroup", controller)
    group = top / f"advisor-test-{os.getpid()}-{next(_numbers)}.service"
    group.mkdir()
    try:
        for name, value in settings.items():
            (group / name).write_text(value)
        yield group
    finally:
        for _ in range(50):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


@contextmanager
def _cpu_quota() -> Iterator[Where]:
    unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    settings = {"cpu.max": "10000 100000"} if unified else {"cpu.cfs_quota_us": "10000"}
    with _group("cpu", settings) as group, _program(sys.executable, "-c", BURN) as burner:
        (group / "cgroup.procs").write_text(str(burner.pid))
        yield ()


FILE_BYTES: Final = 64 << 20


@contextmanager
def _loop_disk() -> Iterator[str]:
    """A loop device over a file of its own; direct I/O, so that no cache answers."""
    with tempfile.NamedTemporaryFile(dir=os.environ.get("ADVISOR_TEST_DIR", "/var/tmp")) as file:
        file.write(os.urandom(FILE_BYTES))
        file.flush()
        os.fsync(file.fileno())
        made = run_text(["losetup", "--find", "--show", "--direct-io=on", file.name], check=True)
        device = made.stdout.strip()
        try:
            yield device
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


@contextmanager
def _one_request_at_a_time() -> Iterator[Where]:
    with _loop_disk() as device, _program(sys.executable, "-c", READ, device, str(FILE_BYTES), ready=True):
        yield ()


@contextmanager
def _storage_limit() -> Iterator[Where]:
    with _loop_disk() as device:
        number = os.stat(device).st_rdev
        number_text = f"{os.major(number)}:{os.minor(number)}"
        unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
        settings = (
            {"io.max": f"{number_text} riops=50"}
            if unified
            else {"blkio.throttle.read_iops_device": f"{number_text} 50"}
        )
        with (
            _group("blkio", settings) as group,
            _program(sys.executable, "-c", READ, device, str(FILE_BYTES), ready=True) as reader,
        ):
            (group / "cgroup.procs").write_text(str(reader.pid))
            yield ()


@contextmanager
def _out_of_memory() -> Iterator[Where]:
    """A process that outgrows its own group, again and again."""
    unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    name = "memory.max" if unified else "memory.limit_in_bytes"
    with _group("memory", {name: str(64 << 20)}) as group:
        script = f"while :; do sh -c 'echo $$ >{group}/cgroup.procs; exec \"$0\" -c \"$1\"' {sys.executable} '{GROW}'"
        with _program("setsid", "sh", "-c", f"{script} </dev/null; sleep 0.2; done") as shell:
            try:
                yield ()
            finally:
                os.killpg(shell.pid, signal.SIGKILL)
                time.sleep(0.2)


@contextmanager
def _cpu_burners() -> Iterator[Where]:
    with contextlib.ExitStack() as stack:
        for _ in range(2 * (os.cpu_count() or 1)):
            stack.enter_context(_program(sys.executable, "-c", BURN))
        yield ()


def can_throttle_cpu() -> bool:
    """Whether a control group with a quota can be made here."""
    try:
        with _group("cpu", {}) as group:
            return (group / "cpu.max").exists() or (group / "cpu.cfs_quota_us").exists()
    except OSError:
        return False


def _injection(name: str, right: str, make: Callable[[], AbstractContextManager[Where]]) -> Injection:
    return Injection(name, frozenset(right.split()), make)


INJECTIONS: Final = (
    _injection("2 % of the packets are lost", "net.loss", _sending(loss=0.02)),
    _injection("round trip of 40 ms", "net.round-trip", lambda: _asking(0.02)),
    _injection("rate of 10 Mbit/s", "net.link-saturated", _sending(rate="10mbit")),
    _injection("small receive window", "net.receive-window", _sending(delay=0.005, receive=4096)),
    _injection("receiver that reads slowly", "net.receive-window", _sending(receive=65536, pause=0.01)),
    _injection("small send buffer", "net.send-buffer net.round-trip", _sending(delay=0.005, send=4096)),
    _injection("listen queue overflows", "net.listen-drops", lambda: _listen_drops()),
    _injection("CPU quota of a service", "cpu.quota", lambda: _cpu_quota()),
    _injection("one request at a time", "application.serial", lambda: _one_request_at_a_time()),
    _injection("IOPS limit of a service", "disk.cgroup-limit", lambda: _storage_limit()),
    _injection("process that outgrows its memory limit", "memory.oom", lambda: _out_of_memory()),
    _injection("more tasks than CPUs", "cpu.saturated", lambda: _cpu_burners()),
)
