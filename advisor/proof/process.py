"""A process of a measurement: started in a session of its own, bounded in time, and ended whatever happens.

One session for each, so that one signal reaches everything that it started.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

import msgspec

from advisor.errors import AdvisorError, CommandError, RefusedError
from advisor.host import Missing
from advisor.host.commands import SAFE_ENVIRONMENT, find_program
from advisor.host.numbers import is_count
from advisor.host.signals import signal_group

# Signals during a session: whatever would end the process asks it to stop instead, all in the same way.

SIGNALS = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    # what batch systems and resource limits send before they kill
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGALRM),
)
SLICE_SECONDS = 0.05


class StoppedError(AdvisorError):
    """A signal asked the session to stop."""

    exit_code = 130
    kind = "interrupted"


class Stop:
    """Whether a signal came; ``signal_number`` is 0 until then."""

    def __init__(self) -> None:
        self.signal_number = 0

    def check(self) -> None:
        """Raise StoppedError if a signal came."""
        if self.signal_number:
            raise StoppedError(f"stopped by {signal.Signals(self.signal_number).name}")

    def sleep(self, seconds: float) -> None:
        """Wait, but raise StoppedError soon after a signal."""
        end = time.monotonic() + seconds
        self.check()
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(SLICE_SECONDS, left))
            self.check()

    def request(self, number: int, _frame: FrameType | None = None) -> None:
        """The signal handler. The first signal counts."""
        self.signal_number = self.signal_number or number


@contextmanager
def caught_signals() -> Iterator[Stop]:
    """Direct `SIGNALS` to a `Stop` for the time of the block. A signal that is ignored stays ignored
    (nohup), and outside the main thread, where Python cannot take signals, nothing is changed."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    taken = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    try:
        for number in taken:
            signal.signal(number, stop.request)
        yield stop
    finally:
        for number in taken:
            # None: a handler that was not set from Python, which Python cannot restore
            signal.signal(number, before[number] or signal.SIG_DFL)


# What a command has started and left behind: it is adopted while the command runs, and killed after it.

_SET_CHILD_SUBREAPER = 36
_GET_CHILD_SUBREAPER = 37
_PAUSE_SECONDS = 0.01


class AdoptedProcesses:
    """The processes of one run whose parents have ended, as children of this process.

    Children from before are not among them, nor are those that this process starts in its own session: what a run
    starts is in the run's session or in one of its own.
    """

    def __init__(self) -> None:
        self._others = set(_list_children())

    def keep(self, pid: int) -> None:
        """Leave this child to whoever started it."""
        self._others.add(pid)

    def reap_ended(self) -> None:
        """Take the ended ones off the process table, on which a long run could fill it."""
        with contextlib.suppress(ChildProcessError, ProcessLookupError):
            while (seen := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if seen.si_pid in self._others or os.getsid(seen.si_pid) == os.getsid(0):
                    return
                os.waitpid(seen.si_pid, os.WNOHANG)

    def kill_all(self, seconds: float) -> None:
        """Kill and reap them until none is left, for at most so long: the children of one that ends come next.

        One of another user, which this process may not kill, stays.
        """
        deadline = time.monotonic() + seconds
        while found := [pid for pid in _list_children() if pid not in self._others]:
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except PermissionError:
                    self._others.add(pid)
                except ProcessLookupError:
                    continue
            for pid in found:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            if time.monotonic() > deadline:
                return
            time.sleep(_PAUSE_SECONDS)


@contextlib.contextmanager
def adopted_processes() -> Iterator[AdoptedProcesses]:
    """Adopt what loses its parent in the block; a kernel that cannot leaves it to the init process."""
    import ctypes  # 2 ms, and few calls run a command

    library = ctypes.CDLL(None)
    before = ctypes.c_int(0)
    library.prctl(_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    adopted = AdoptedProcesses()
    library.prctl(_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)
    try:
        yield adopted
    finally:
        library.prctl(_SET_CHILD_SUBREAPER, ctypes.c_ulong(before.value), 0, 0, 0)


def _list_children() -> list[int]:
    """The children of this process that are not in its own session, ended ones too."""
    own, session = os.getpid(), os.getsid(0)
    found = []
    for name in os.listdir("/proc"):
        if not is_count(name):
            continue
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            # The name of the program is in brackets and may hold anything.
            fields = file.read().rpartition(b")")[2].split()
            if int(fields[1]) == own and int(fields[3]) != session:
                found.append(int(name))
    return found


TERMINATION_SECONDS = 2.0
POLL_SECONDS = 0.1
_PACKAGES = {"fio": "fio (3.1 or later)", "timeout": "coreutils"}


class FioMissingError(RefusedError):
    """fio is not installed."""

    kind = "fio-missing"


class FioError(CommandError):
    """A run that cannot be counted: fio failed, hung, or did not follow its arguments."""

    kind = "fio"


class EndedProcess(msgspec.Struct, frozen=True):
    """A process that ended, or was ended. ``cpu_seconds`` is user and system time together."""

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool
    cpu_seconds: float


class FioRunner(Protocol):
    """Runs one fio command to its end. Raises StoppedError (fio stopped first) when a signal came."""

    def run(
        self, argv: Sequence[str], *, timeout: float, cwd: str, stop: Stop, keep_open: Sequence[int] = ()
    ) -> EndedProcess: ...


class FioProcess:
    """The real runner: the program on the search path, in a session of its own, with nothing on standard input."""

    def __init__(self, *, search_path: str | None = None) -> None:
        self._search_path = os.environ.get("PATH", os.defpath) if search_path is None else search_path

    def run(
        self, argv: Sequence[str], *, timeout: float, cwd: str, stop: Stop, keep_open: Sequence[int] = ()
    ) -> EndedProcess:
        """Run it. ``timeout`` in seconds is hard: SIGTERM, then SIGKILL to the whole group. It inherits the
        descriptors ``keep_open``."""
        program = find_program(argv[0], self._search_path)
        if isinstance(program, Missing):
            raise FioMissingError(program.why, hint=f"install the package {_PACKAGES.get(argv[0], argv[0])}")
        cpu_before = _children_cpu_seconds()
        try:
            process = subprocess.Popen(
                [program, *argv[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(SAFE_ENVIRONMENT),
                cwd=cwd,
                start_new_session=True,
                pass_fds=tuple(keep_open),
            )
        except OSError as error:
            raise FioError(f"{program} did not start: {os.strerror(error.errno or 0)}") from error
        with process:
            try:
                out, err, timed_out = _wait_for_end(process, timeout, stop)
            finally:
                if process.poll() is None:
                    _end_group(process)
        cpu_seconds = _children_cpu_seconds() - cpu_before
        return EndedProcess(process.returncode, _decode_output(out), _decode_output(err), timed_out, cpu_seconds)


def _wait_for_end(process: subprocess.Popen[bytes], timeout: float, stop: Stop) -> tuple[bytes, bytes, bool]:
    deadline = time.monotonic() + timeout
    while True:
        stop.check()
        try:
            out, err = process.communicate(timeout=POLL_SECONDS)
            return out, err, False
        except subprocess.TimeoutExpired:
            if time.monotonic() > deadline:
                out, err = _end_group(process)
                return out, err, True


def _end_group(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Stop the whole group, politely first, and reap it. Returns what it had written."""
    signal_group(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=TERMINATION_SECONDS)
    # always, also after a polite end: a member of the group may have stayed behind and hold the pipes
    signal_group(process.pid, signal.SIGKILL)
    try:
        return process.communicate(timeout=TERMINATION_SECONDS)
    except (subprocess.TimeoutExpired, ValueError):
        process.kill()
        return b"", b""


def _children_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _decode_output(output: bytes) -> str:
    return output.decode("utf-8", "replace")
