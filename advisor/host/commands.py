"""How commands are run: live with a deadline and a clean environment, or looked up in what a snapshot recorded."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Protocol

import msgspec

from advisor.host.files import BYTES_OF_STEP, ReadBudget
from advisor.host.missing import Missing
from advisor.host.safe_open import is_roots_alone

if TYPE_CHECKING:
    from subprocess import Popen

DEADLINE_SECONDS = 10.0
MAX_OUTPUT_BYTES = 8 * 1024 * 1024
# All of it, whatever root's shell exports: that must not steer what we run or how it answers.
SAFE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/VRTS/bin:/opt/VRTSllt"
SAFE_ENVIRONMENT = {"PATH": SAFE_PATH, "LC_ALL": "C", "LANG": "C", "HOME": "/", "SYSTEMD_COLORS": "0"}

_OD_NUMBER = ("od", "-A", "n", "-t", "d4")


class Completed(msgspec.Struct, frozen=True):
    """A command that ran to its end."""

    rc: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        return self.rc == 0

    def failure(self, program: str) -> Missing:
        """Why a command that failed has no answer: what it printed, in one line.

        "absent" where it is systemd's and systemd does not run, as in most containers (sd_booted(3)).
        """
        if "has not been booted with systemd" in self.stderr:
            return Missing("absent", "systemd does not run on this host")
        lines = "; ".join(line.strip() for line in self.stderr.splitlines() if line.strip())
        return Missing("unreadable", f"{program} returned {self.rc}: {lines[:200] or 'no message'}")


class CommandRunner(Protocol):
    """Runs a command; `Missing` says that it is not installed, not recorded, or did not end in time."""

    def run(
        self, argv: Sequence[str], *, timeout: float = DEADLINE_SECONDS, stdin: str | None = None
    ) -> Completed | Missing: ...


class NoCommands:
    """A bare tree has no commands."""

    def run(
        self, argv: Sequence[str], *, timeout: float = DEADLINE_SECONDS, stdin: str | None = None
    ) -> Completed | Missing:
        return Missing("absent", f"no recorded output of {argv[0]}")


class RecordedCommands:
    """Answers of a snapshot, keyed by the exact argument vector."""

    def __init__(self, answers: Mapping[tuple[str, ...], Completed | Missing]) -> None:
        self._answers = answers

    def run(
        self, argv: Sequence[str], *, timeout: float = DEADLINE_SECONDS, stdin: str | None = None
    ) -> Completed | Missing:
        return self._answers.get(tuple(argv)) or Missing("absent", f"no recorded output of {argv[0]}")


class MeteredCommands:
    """The recorded commands of an archive, whose answers count towards what may be read of it."""

    def __init__(self, commands: CommandRunner, budget: ReadBudget) -> None:
        self._commands = commands
        self._budget = budget

    def run(
        self, argv: Sequence[str], *, timeout: float = DEADLINE_SECONDS, stdin: str | None = None
    ) -> Completed | Missing:
        answer = self._commands.run(argv, timeout=timeout, stdin=stdin)
        size = 0 if isinstance(answer, Missing) else len(answer.stdout) + len(answer.stderr)
        self._budget.spend(1 + size // BYTES_OF_STEP)
        return answer


class LiveCommands:
    """Real commands in a scrubbed environment. ``path`` replaces the search path (tests put stand-ins there)."""

    def __init__(self, *, path: str = SAFE_PATH) -> None:
        self._environment = {**SAFE_ENVIRONMENT, "PATH": path}
        self._has_stand_ins = path != SAFE_PATH

    def run(
        self, argv: Sequence[str], *, timeout: float = DEADLINE_SECONDS, stdin: str | None = None
    ) -> Completed | Missing:
        if tuple(argv[:-1]) == _OD_NUMBER and not self._has_stand_ins and (read := _read_number(argv[-1])):
            return read
        program = find_program(argv[0], self._environment["PATH"])
        if isinstance(program, Missing):
            return program
        try:
            words = (program, *argv[1:])
            import subprocess

            with contextlib.ExitStack() as stack:
                given: int | IO[bytes] = subprocess.DEVNULL
                if stdin is not None:
                    from tempfile import TemporaryFile

                    # A file, not a pipe: nothing waits for a command that does not read it.
                    given = stack.enter_context(TemporaryFile())
                    given.write(stdin.encode())
                    given.seek(0)
                process = subprocess.Popen(
                    words,
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=self._environment,
                    cwd="/",
                    start_new_session=True,
                )
        except OSError as error:
            return Missing("unreadable", f"{argv[0]} did not start: {error.strerror}")
        except ValueError as error:
            # A word with a NUL or a lone surrogate, which no command can be given.
            return Missing("unreadable", f"{argv[0]} did not start: {error}")
        try:
            answer = _collect_output(process, timeout)
        except BaseException:
            _kill_group(process)
            raise
        if isinstance(answer, str):
            _kill_group(process)
            return Missing("unreadable", f"{argv[0]} {answer}")
        _close_pipes(process)
        return answer


def _read_number(path: str) -> Completed | None:
    """Return what ``od -A n -t d4`` prints of a device of four bytes; None where od has to print it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            data = os.read(fd, 5)
        finally:
            os.close(fd)
    except (OSError, ValueError):
        return None
    number = int.from_bytes(data, sys.byteorder, signed=True)
    return Completed(0, f"{number:12d}\n", "") if len(data) == 4 else None


def find_program(name: str, path: str) -> str | Missing:
    """Where a command lies: at its absolute name, or in the first directory of ``path`` that has it.

    Relative names and directories are never used. Root does not use a program that somebody else could have put there.
    """
    found = Missing("absent", f"{name} is not installed")
    if not name or "\0" in name or not name.isprintable():
        return found
    if "/" in name:
        places = [name] if name.startswith("/") else []
    else:
        places = [f"{directory}/{name}" for directory in path.split(":") if directory.startswith("/")]
    for candidate in (place for place in places if os.access(place, os.X_OK) and os.path.isfile(place)):
        if os.geteuid() != 0 or is_roots_alone(candidate):
            return candidate
        found = Missing("unreadable", f"{name} is not run: others than root can change {candidate}")
    return found


def _collect_output(process: Popen[bytes], timeout: float) -> Completed | str:
    """What a command returned and printed, or why it has to be ended."""
    assert process.stdout is not None
    assert process.stderr is not None
    deadline = time.monotonic() + timeout
    outputs = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    waiting = select.poll()
    for fd in outputs:
        waiting.register(fd, select.POLLIN)
    is_open = set(outputs)
    while is_open or process.poll() is None:
        left = deadline - time.monotonic()
        if left <= 0:
            return f"did not answer within {timeout:g} s"
        # With both streams at their end, its exit is all that is left to wait for.
        for fd, _ in waiting.poll(left * 1000 if is_open else 1):
            chunk = os.read(fd, 65536)
            outputs[fd] += chunk
            if not chunk:
                waiting.unregister(fd)
                is_open.remove(fd)
        if sum(map(len, outputs.values())) > MAX_OUTPUT_BYTES:
            return f"printed more than {MAX_OUTPUT_BYTES >> 20} MiB"
    out, err = (bytes(output).decode("utf-8", "replace") for output in outputs.values())
    return Completed(process.returncode, out, err)


def _kill_group(process: Popen[bytes]) -> None:
    """Kill a command with its children. One that the kernel holds (a hung disk) is left behind, not waited for."""
    import signal

    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    _close_pipes(process)
    deadline = time.monotonic() + 1
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)


def _close_pipes(process: Popen[bytes]) -> None:
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
