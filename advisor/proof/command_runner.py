"""Runs the user's own benchmark: as the user named, bounded in time and output, ended with all that it started."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import resource
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO

import msgspec

from advisor.errors import AdvisorError, CommandError, RefusedError
from advisor.host import Missing
from advisor.host.commands import SAFE_ENVIRONMENT, find_program
from advisor.host.patterns import lazy_regex
from advisor.host.putfile import put_file
from advisor.host.safe_open import make_own_directory
from advisor.host.signals import signal_group
from advisor.proof.metrics import RunFigures, read_query
from advisor.proof.own_command import CommandMetric, CommandOutput, MetricError, OwnCommand, read_figure, read_number
from advisor.proof.process import (
    POLL_SECONDS,
    TERMINATION_SECONDS,
    AdoptedProcesses,
    FioProcess,
    Stop,
    adopted_processes,
)
from advisor.transaction.journal import Store

# Results that are kept without being asked for: the newest ones, in the state directory, for root alone to read.

KEPT_RESULTS = 50
_NAME = lazy_regex(r"[0-9]{8}T[0-9]{6}Z-[a-z0-9_.+-]{1,100}\.json\.gz")
_STRANGE = lazy_regex(r"[^a-z0-9_.+-]+")


def results_directory() -> Path:
    """``proofs`` in the state directory."""
    return Store().directory.absolute() / "proofs"


def store_result(content: bytes, what: str, started: datetime) -> Path:
    """Write a result under a name with its time and what it is; all but the newest fifty are removed. Its path.

    Raises OSError and RefusedError where the state directory cannot be written to or is not its owner's alone.
    """
    directory = results_directory()
    for place in (directory.parent, directory):
        make_own_directory(str(place))
    path = _reserve_name(directory, f"{started:%Y%m%dT%H%M%SZ}-{_STRANGE.sub('-', what.lower())[:80]}")
    try:
        put_file(str(path), content, mode=0o600, uid=os.geteuid(), gid=os.getegid())
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise
    # a result that was written is not lost because an old one cannot be removed
    with contextlib.suppress(OSError):
        others = sorted(
            (name for name in os.listdir(directory) if _NAME.fullmatch(name) and name != path.name), reverse=True
        )
        for name in others[KEPT_RESULTS - 1 :]:
            with contextlib.suppress(FileNotFoundError):
                (directory / name).unlink()
    return path


def explain_not_stored(error: OSError | AdvisorError) -> str:
    """Why a result could not be written, with its place."""
    if isinstance(error, AdvisorError):
        return error.message
    return f"{error.filename}: {error.strerror}"


def _reserve_name(directory: Path, stem: str) -> Path:
    """A name that nobody else has; an empty file stands for it."""
    number = 1
    while True:
        path = directory / f"{stem}{f'.{number}' if number > 1 else ''}.json.gz"
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            number += 1
            continue
        return path


OUTPUT_BYTES = 4 << 20
"""Of each stream the last so many bytes are kept."""
RECORDED_CHARACTERS = 32 << 10
"""Of each stream the last so many characters go into the record of a session."""
METRIC_SECONDS = 60.0
"""For a metric's own command."""
FAILED_OUTPUT = "failed-command.txt"


class RunFailedError(CommandError):
    """A run of the user's command that cannot be counted."""

    kind = "run-failed"


class CommandProcess(FioProcess):
    """Runs one command again and again. ``environment`` are the values that its names stand for."""

    def __init__(self, command: OwnCommand, environment: Mapping[str, str]) -> None:
        super().__init__()
        self.command = command
        self._user = None if command.user is None else pwd.getpwnam(command.user)
        self._environment = self._full_environment(environment)

    def _full_environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """A small one in the language C, so that numbers have points; the search path is that of the caller."""
        who = self._user or pwd.getpwuid(os.geteuid())
        own = {"PATH": os.environ.get("PATH", os.defpath), "HOME": who.pw_dir, "USER": who.pw_name}
        return {**SAFE_ENVIRONMENT, **own, "LOGNAME": who.pw_name, **given}

    def try_out(self, stop: Stop) -> float:
        """One run before anything is changed: its wall seconds. Raises as `run_command`."""
        return self.run_command(stop)[0].runtime_seconds

    def run_command(self, stop: Stop) -> tuple[RunFigures, str]:
        """One run: its figures, and what it printed as JSON for the record.

        Raises RunFailedError and MetricError, with the output kept in a file, and StoppedError after a signal.
        """
        cpu_before, began = _children_cpu_seconds(), time.monotonic()
        output = self._run(self.command.argv, self.command.timeout_seconds, stop)
        cpu_seconds = _children_cpu_seconds() - cpu_before
        try:
            # A server is asked first: what it counts goes on while a metric's own command runs.
            asked = {one.name: ask_server(one, began, stop) for one in self.command.metrics if one.kind == "prom"}
            measures = {
                one.name: asked.get(one.name) or self._read_metric(one, output, stop) for one in self.command.metrics
            }
        except MetricError as error:
            raise MetricError(error.message, hint=_keep_output(self.command.argv, output)) from None
        return _figures(output.seconds, cpu_seconds, measures), _record(output)

    def _read_metric(self, metric: CommandMetric, output: CommandOutput, stop: Stop) -> float:
        return (
            read_figure(metric, output) if metric.kind != "command" else self.run_metric(metric, METRIC_SECONDS, stop)
        )

    def run_metric(self, metric: CommandMetric, timeout: float, stop: Stop) -> float:
        """The figure that a metric's own command prints last, above 0. Raises RunFailedError where it does not end
        within ``timeout`` seconds, and MetricError."""
        seen = self._run(shlex.split(metric.expression), timeout, stop)
        lines = [line.strip() for line in seen.stdout.splitlines() if line.strip()]
        try:
            return read_number(lines[-1] if lines else "")
        except ValueError as error:
            raise MetricError(
                f"metric {metric.name} ({metric.kind}:{metric.expression}): {error!s}; the last lines: "
                f"{seen.last_lines}"
            ) from None

    def _run(self, argv: Sequence[str], timeout: float, stop: Stop) -> CommandOutput:
        stop.check()
        with adopted_processes() as adopted:
            return self._run_adopting(argv, timeout, stop, adopted)

    def _run_adopting(
        self, argv: Sequence[str], timeout: float, stop: Stop, adopted: AdoptedProcesses
    ) -> CommandOutput:
        began = time.monotonic()
        process = self._start(argv)
        adopted.keep(process.pid)
        tails = [_Tail(stream) for stream in (process.stdout, process.stderr) if stream is not None]
        ended = _EndTime(process.pid)
        try:
            timed_out = _wait_for_end(ended, began + timeout, stop, adopted)
            if timed_out:
                signal_group(process.pid, signal.SIGTERM)
                ended.wait(TERMINATION_SECONDS)
        finally:
            # What it started goes, too; the leader is not reaped before, so that the group is still its own.
            signal_group(process.pid, signal.SIGKILL)
            ended.wait(TERMINATION_SECONDS)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(TERMINATION_SECONDS)
            # Then what has left the group: it would disturb the next run, and may hold the output open.
            adopted.kill_all(TERMINATION_SECONDS)
            for tail in tails:
                tail.finish()
        output = CommandOutput(
            tails[0].text,
            tails[1].text,
            ended.at - began,
            # One that the kernel holds was killed and has not ended yet.
            -signal.SIGKILL if process.returncode is None else process.returncode,
            sum(one.dropped for one in tails),
        )
        self._require_success(argv, output, timeout if timed_out else None)
        return output

    def _start(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        program = self._find(argv[0])
        who = self._user
        try:
            if who is None:
                return self._spawn([program, *argv[1:]])
            groups = os.getgrouplist(who.pw_name, who.pw_gid)
            return self._spawn([program, *argv[1:]], user=who.pw_uid, group=who.pw_gid, extra_groups=groups)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise RunFailedError(f"{program} did not start: {words}") from error

    def _spawn(
        self,
        argv: Sequence[str],
        *,
        user: int | None = None,
        group: int | None = None,
        extra_groups: Sequence[int] | None = None,
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment,
            cwd=self.command.directory,
            start_new_session=True,
            user=user,
            group=group,
            extra_groups=extra_groups,
        )

    def _find(self, name: str) -> str:
        """The program: root runs none that others can change, another user what that user finds."""
        path = self._environment["PATH"]
        if "/" in name:
            name = os.path.join(self.command.directory, name)
        found = find_program(name, path) if self._user is None else shutil.which(name, path=path)
        if isinstance(found, str):
            return found
        if "/" in name and os.path.isfile(name) and not os.access(name, os.X_OK):
            raise RefusedError(
                f"--command: {name} is not executable",
                hint=f"chmod +x {name}, or name its interpreter: --command 'sh {name}'",
            )
        why = f"{name} is not installed" if found is None else found.why
        hint = None
        if isinstance(found, Missing) and not found.is_absent:
            hint = "--as-user USER runs it as a user who may"
        raise RefusedError(f"--command: {why}", hint=hint)

    def _require_success(self, argv: Sequence[str], output: CommandOutput, timeout: float | None) -> None:
        name = os.path.basename(argv[0])
        if timeout is not None:
            raise RunFailedError(
                (
                    f"{name} did not end within {timeout:g} s and was killed with all that it started: "
                    f"{output.last_lines}"
                ),
                hint=_keep_output(argv, output),
            )
        if output.returncode:
            lines = _failure_lines(output)
            how = (
                f"{name} was killed by signal {-output.returncode}: {lines}"
                if output.returncode < 0
                else f"{name} returned {output.returncode}: {lines}"
            )
            raise RunFailedError(how, hint=_keep_output(argv, output))


def find_closed_directory(place: Path, user: str) -> str | None:
    """The first directory on the way to ``place``, itself included, that a user cannot enter; None where that one can.
    Asked as that user, as access lists and servers of files have a say, too."""
    who = pwd.getpwnam(user)
    if who.pw_uid == os.geteuid():
        return None
    found = subprocess.run(
        ["/bin/sh", "-c", 'for one; do test -x "$one" || { printf %s "$one"; exit; }; done', "sh",
         *map(str, reversed(place.parents)), str(place)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd="/",
        env=SAFE_ENVIRONMENT,
        user=who.pw_uid,
        group=who.pw_gid,
        extra_groups=os.getgrouplist(who.pw_name, who.pw_gid),
        check=False,
    )  # fmt: skip
    return os.fsdecode(found.stdout) or None


def ask_server(metric: CommandMetric, began: float, stop: Stop) -> float:
    """The figure of a ``prom`` metric for the time since ``began`` of the monotonic clock. Raises MetricError."""
    try:
        return read_number(read_query(metric.expression, began, stop.check))
    except ValueError as error:
        raise MetricError(f"metric {metric.name} (prom:{metric.expression}): {error!s}") from None


class _EndTime(threading.Thread):
    """Notes when a process ends, without reaping it: a loop that polls would be late by its pause."""

    def __init__(self, pid: int) -> None:
        super().__init__(name="advisor-end-time", daemon=True)
        self._pid = pid
        self._done = threading.Event()
        self.at = time.monotonic()
        self.start()

    def run(self) -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        self.at = time.monotonic()
        self._done.set()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, after at most so long."""
        return self._done.wait(seconds)


def _wait_for_end(ended: _EndTime, deadline: float, stop: Stop, adopted: AdoptedProcesses) -> bool:
    """Whether the time was up before the process ended."""
    while not ended.wait(POLL_SECONDS):
        stop.check()
        adopted.reap_ended()
        if time.monotonic() > deadline:
            return True
    return False


class _Tail(threading.Thread):
    """Reads a stream to its end and keeps the last bytes of it, so that no output can fill the memory."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(name="advisor-output", daemon=True)
        self._stream = stream
        self._kept = bytearray()
        self.dropped = 0
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._stream.fileno(), 1 << 16):
                self._kept += chunk
                if len(self._kept) > 2 * OUTPUT_BYTES:
                    self._cut()
        self._cut()

    def _cut(self) -> None:
        more = max(0, len(self._kept) - OUTPUT_BYTES)
        del self._kept[:more]
        self.dropped += more

    def finish(self) -> None:
        """No more is waited for than what is there: one that may not be killed can hold the stream open."""
        self.join(TERMINATION_SECONDS)
        if not self.is_alive():
            self._stream.close()

    @property
    def text(self) -> str:
        return bytes(self._kept).decode("utf-8", "replace")


def _failure_lines(output: CommandOutput) -> str:
    """Of a run that failed, standard error says why."""
    return msgspec.structs.replace(output, stdout=output.stderr, stderr=output.stdout).last_lines


def _figures(seconds: float, cpu_seconds: float, measures: Mapping[str, float]) -> RunFigures:
    """Figures of fio are 0, which stands for none."""
    return RunFigures(
        iops=0.0,
        bandwidth_bytes_per_s=0.0,
        latency_mean_us=0.0,
        latency_p50_us=0.0,
        latency_p95_us=0.0,
        latency_p99_us=0.0,
        latency_p999_us=0.0,
        ios=0,
        read_bytes=0,
        written_bytes=0,
        runtime_seconds=seconds,
        cpu_us_per_io=0.0,
        cpu_seconds=cpu_seconds,
        measures=measures,
    )


def _record(output: CommandOutput) -> str:
    return json.dumps(
        {
            "stdout": output.stdout[-RECORDED_CHARACTERS:],
            "stderr": output.stderr[-RECORDED_CHARACTERS:],
            "seconds": output.seconds,
            "returncode": output.returncode,
        }
    )


def _keep_output(argv: Sequence[str], output: CommandOutput) -> str | None:
    """The whole output of a failed run in a file of the state directory, the latest one only: a hint that names it."""
    path = results_directory() / FAILED_OUTPUT
    text = (
        f"$ {shlex.join(argv)}\nexit status {output.returncode} after {output.seconds:.3f} s\n"
        f"--- standard output\n{output.stdout}\n--- standard error\n{output.stderr}\n"
    )
    try:
        for place in (path.parent.parent, path.parent):
            make_own_directory(str(place))
        put_file(str(path), text.encode("utf-8", "replace"), mode=0o600, uid=os.geteuid(), gid=os.getegid())
    except (OSError, AdvisorError):
        return None
    return f"its output is kept in {path}"


def _children_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
