"""A process of a measurement: started in a session of its own, bounded in time, and ended whatever happens.

One session for each, so that one signal reaches everything that it started.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Protocol

import msgspec

from advisor.errors import CommandError, RefusedError
from advisor.host import Missing
from advisor.host.commands import SAFE_ENVIRONMENT, find_program
from advisor.host.signals import signal_group
from advisor.proof.interrupt import Stop

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
