"""The watchdog of a transaction: a shell script next to its journal that rolls it back when its client cannot.

It runs outside the client's process and session: as a transient unit where systemd runs, detached elsewhere. While a
client works, the watchdog looks whether that process lives and gets on: the file ``limit`` says until when it must have
reached its next step, so that a process that is stopped, or blocked in the kernel, does not hold the change for ever.
Once the transaction waits for a person, it looks whether that time is up. A unit for the next boot is there for just as
long, for a power cut or a restart in between.

The file ``pending`` settles who decides, since one process alone can rename or remove it: confirming the transaction
removes it, the watchdog renames it to ``reverting``, a client that rolls back renames it to ``taken``.
`advisor.shell.state_table` lists all files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import subprocess
import time
from functools import cache
from pathlib import Path

import msgspec

from advisor.errors import CommandError, RefusedError
from advisor.host.putfile import fixed_temporary, put_file, remove_temporary, sync_directory
from advisor.shell.quote import FORMAT, make_data, make_records
from advisor.shell.state_table import OPEN_FILES, OUTCOME, RUNNING_FILES, WATCH_DATA
from advisor.shell.templates import render_shell
from advisor.transaction.reserved_space import ignore_errors, is_full, is_read_only, with_reserve

_UNIT_DIRECTORY = "/etc/systemd/system"
_BOOT_TARGET = f"{_UNIT_DIRECTORY}/sysinit.target.wants"
_START_SECONDS = 20.0
_REVERT_SECONDS = 120.0
_FILES = (*OPEN_FILES, *RUNNING_FILES)
_MAX_OUTCOME_BYTES = 1 << 20
WATCH_KIND = "advisor-watch"
"""What the first record of the data of ``watch.sh`` says."""
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


class TakenOverError(CommandError):
    """The watchdog has taken the transaction over: it found this process gone or hung."""

    kind = "taken-over"


def not_started(watchdog: Watchdog, error: OSError) -> RefusedError:
    """The refusal of a change that no watchdog can guard."""
    return RefusedError(
        f"the watchdog, which guards the change, cannot be started: {error}",
        hint=f"nothing was changed; see {watchdog.directory}",
    )


class WatchdogOutcome(msgspec.Struct, frozen=True):
    """What the watchdog did: the rollback script's exit code, seconds since the epoch, the reason, a line each item."""

    code: int
    time: float
    why: str
    lines: tuple[str, ...]


class TransactionFiles(msgspec.Struct, frozen=True):
    """The state of a transaction by the files next to its journal.

    ``open`` is ``pending``, ``taken`` or ``reverting``, None once it is closed. ``seconds_left`` is the time to confirm
    it, None where it does not wait for that, or waited in an earlier boot. ``process`` is the number of the process
    that works on it now, None where none lives.
    """

    open: str | None
    seconds_left: float | None
    outcome: WatchdogOutcome | None
    process: int | None = None


def parse_outcome(text: str) -> WatchdogOutcome | None:
    """The file ``outcome``; None where it is not there yet, or not whole."""
    found = re.match(r"([0-9]{1,3}) ([0-9]{1,12}) ([^\n]*)\n", text)
    if found is None:
        return None
    return WatchdogOutcome(int(found[1]), float(found[2]), found[3], tuple(text[found.end() :].splitlines()))


class Watchdog:
    """The watchdog of the transaction in ``directory``; ``unit`` is the name of its transient unit."""

    def __init__(self, directory: Path, unit: str) -> None:
        self.directory = directory
        self._place = str(directory)
        self._name = unit
        self._script = directory / "watch.sh"
        self._data = directory / WATCH_DATA
        self._state: str | None = "pending"
        self._step_seconds: float | None = None
        self._limit = 0.0

    # -- what the client does ------------------------------------------------------------------------------------

    def open_files(self, state: str, *, is_durable: bool = True) -> None:
        """Open the transaction for this process. ``state`` is ``pending`` for one that begins,
        ``taken`` for one that is rolled back. Raises OSError."""
        # What these two hold means nothing after a power cut; that the third is there does.
        self._write_file("boot", _boot_id(), is_durable=False)
        self._sign_client()
        self._write_file(state, "", is_durable=is_durable)
        self._state = state

    def start_watching(self, *, persists: bool, state: str, step_seconds: float | None) -> None:
        """Start watching this process; returns when the watchdog is seen to run.

        ``persists`` asks for the unit that acts at the next boot. ``step_seconds`` is how long each step may take
        before this process counts as hung; None where that is not watched. Raises OSError and leaves what is there.
        """
        try:
            (self.directory / OUTCOME).unlink(missing_ok=True)
            self._state, self._step_seconds, self._limit = state, step_seconds, 0.0
            self.extend_limit()
            self._lay_out(state, with_boot_unit=persists and _systemd_runs())
            words = ["/bin/sh", str(self._script)]
            if not (_is_in_the_hosts_namespaces() and _systemd_runs() and self._start_unit(words)):
                # The shell in between ends at once, so that the watchdog is nobody's child that we would have to reap.
                subprocess.run(
                    ["/bin/sh", "-c", '"$@" </dev/null >/dev/null 2>&1 &', "sh", *words],
                    check=True,
                    start_new_session=True,
                    cwd="/",
                    env=_ENVIRONMENT,
                    timeout=_START_SECONDS,
                )
            end = time.monotonic() + _START_SECONDS
            while self._find_process() is None:
                if time.monotonic() > end:
                    raise subprocess.SubprocessError(f"{self._script} does not start")
                time.sleep(0.01)
        except subprocess.SubprocessError as error:
            raise OSError(errno.EIO, str(error)) from error

    def check_ownership(self) -> None:
        """Before and after each step. Raises TakenOverError where the transaction is no longer this client's to carry
        on with; gives it time for another step otherwise."""
        if self._state is not None and not os.path.lexists(f"{self._place}/{self._state}"):
            raise TakenOverError("the watchdog took over: this process was thought to be gone or hung")
        if self._step_seconds is not None:
            # Where that cannot be written the time runs out, and the watchdog takes over.
            ignore_errors(self.extend_limit)

    def stand_down(self) -> None:
        """Nothing of it could be written: `check_ownership` lets this process go on without a watchdog."""
        self._state = None

    @property
    def stands_down(self) -> bool:
        """Whether this process works without a watchdog."""
        return self._state is None

    @property
    def is_watching(self) -> bool:
        """Whether its process runs, or this one goes on without it."""
        return self.stands_down or self._find_process() is not None

    def extend_limit(self, more_seconds: float = 0.0) -> None:
        """Let the next step take that much longer. Raises OSError where even the reserved space is gone."""
        if self._step_seconds is None:
            return
        wanted = _read_uptime() + self._step_seconds + more_seconds
        # Not at each of many fast steps: it is a write.
        if more_seconds or wanted - self._limit > self._step_seconds / 4:
            self._write_file("limit", f"{wanted:.0f}\n", is_durable=False)
            self._limit = wanted

    def await_confirmation(self, seconds: float) -> None:
        """From now on the watchdog waits for a person, not for this process."""
        self._write_file("deadline", f"{_read_uptime() + seconds:.0f}\n")

    def keep_change(self) -> bool:
        """Close the transaction as it is. False where the watchdog was faster and rolls it back."""
        try:
            os.unlink(self.directory / "pending")
        except FileNotFoundError:
            return False
        self.close_files(keeps_script=True)
        return True

    def claim_rollback(self) -> bool:
        """Claim the rollback for this process. False where the watchdog does it or has done it.

        Where the directory has become read-only nobody can claim anything: this process goes on without a watchdog, and
        the watchdog, which may act as well, restores the same values.
        """
        ignore_errors(self._sign_client)
        try:
            for name in ("pending", "taken"):
                if self._take_file(name):
                    break
            else:
                if self._read_outcome() is not None or not self._is_abandoned() or not self._take_file("reverting"):
                    return False
        except OSError as error:
            if not is_read_only(error):
                raise
            self.stand_down()
            return True
        self._state = "taken"
        ignore_errors(lambda: (self.directory / "deadline").unlink(missing_ok=True))
        if self._step_seconds is None:
            ignore_errors(lambda: (self.directory / "limit").unlink(missing_ok=True))
        ignore_errors(self.extend_limit)
        ignore_errors(lambda: sync_directory(str(self.directory)))
        return True

    def _take_file(self, name: str) -> bool:
        try:
            os.rename(self.directory / name, self.directory / "taken")
        except FileNotFoundError:
            return False
        return True

    def close_files(self, *, keeps_script: bool = False) -> None:
        """Remove the files of a running transaction: the watchdog then ends, and the boot unit is removed.

        With ``keeps_script`` the watchdog's script stays, for a rollback script that is run by hand.
        """
        for name in _FILES:
            (self.directory / name).unlink(missing_ok=True)
        self.remove_boot_unit()
        if not keeps_script:
            self._script.unlink(missing_ok=True)
            self._data.unlink(missing_ok=True)
        ignore_errors(lambda: sync_directory(str(self.directory)))

    def await_outcome(self) -> WatchdogOutcome | None:
        """The outcome of the watchdog, once it is done; None where it ended without one or took too long."""
        end = time.monotonic() + _REVERT_SECONDS
        while time.monotonic() < end:
            outcome = self._read_outcome()
            if outcome is not None or self._is_abandoned():
                return outcome
            time.sleep(0.2)
        return None

    def forget_outcome(self) -> None:
        """Remove the outcome, which the journal holds from now on."""
        (self.directory / OUTCOME).unlink(missing_ok=True)
        ignore_errors(lambda: sync_directory(str(self.directory)))

    def read_state(self) -> TransactionFiles:
        """How far the transaction is."""
        outcome = self._read_outcome()
        if outcome is not None:
            return TransactionFiles(None, None, outcome)
        opened = next((name for name in OPEN_FILES if (self.directory / name).exists()), None)
        left = self._seconds_left() if opened == "pending" else None
        return TransactionFiles(opened, left, None, self._find_client() if opened in ("pending", "taken") else None)

    def has_files(self, *, with_script: bool) -> bool:
        """Whether files of a running transaction are there; ``with_script``: the watchdog's script counts as one."""
        names = (*_FILES, self._script.name, WATCH_DATA) if with_script else _FILES
        return any((self.directory / name).exists() for name in names)

    @property
    def place(self) -> str | None:
        """Where the watchdog runs, in words for a person; None where it does not."""
        number = self._find_process()
        if number is None:
            return None
        with contextlib.suppress(OSError):
            if f"{self._name}.service" in Path(f"/proc/{number}/cgroup").read_text():
                return f"unit {self._name}.service"
        return f"process {number}"

    # -- files ----------------------------------------------------------------------------------------------------

    @property
    def _boot_unit(self) -> str:
        return f"{_UNIT_DIRECTORY}/{self._name}-boot.service"

    @property
    def _boot_link(self) -> str:
        return f"{_BOOT_TARGET}/{self._name}-boot.service"

    def _lay_out(self, state: str, *, with_boot_unit: bool) -> None:
        if not (self.directory / state).exists():
            self.open_files(state)
        # Holds the block that the script's own number goes into.
        self._write_file("watching", "0\n", is_durable=False)
        made = with_boot_unit and not os.path.isdir(_BOOT_TARGET)
        units = (self._boot_link, self._boot_unit, fixed_temporary(self._boot_unit)) if with_boot_unit else ()
        records = [("unit", path) for path in units] + [("made", _BOOT_TARGET)] * made
        self._write_file(self._data.name, make_data(WATCH_KIND, make_records(records)).decode("ascii"))
        self._write_file(self._script.name, watch_text(), mode=0o700)
        if with_boot_unit:
            text = self.boot_unit_text()
            put_file(self._boot_unit, text.encode("utf-8", "surrogateescape"), mode=0o644, uid=0, gid=0, is_alone=True)
            os.makedirs(_BOOT_TARGET, mode=0o755, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.symlink(f"../{self._name}-boot.service", self._boot_link)
            sync_directory(_BOOT_TARGET)

    def boot_unit_text(self) -> str:
        """The unit that runs the watchdog at the next boot."""
        context = {"identity": self.directory.name, "directory": _unit_escaped(str(self.directory))}
        return render_shell("boot.service.j2", context)

    def remove_boot_unit(self) -> None:
        """Remove the unit for the next boot, and what a kill has left of it."""
        for path in (self._boot_link, self._boot_unit):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
                ignore_errors(lambda path=path: sync_directory(os.path.dirname(path)))  # type: ignore[misc]
        ignore_errors(lambda: remove_temporary(self._boot_unit))
        if f"\nmade\t{_BOOT_TARGET}\n" in (self._read_file(self._data.name) or ""):
            with contextlib.suppress(OSError):
                os.rmdir(_BOOT_TARGET)

    def _write_file(self, name: str, text: str, *, mode: int = 0o600, is_durable: bool = True) -> None:
        content, path = text.encode("utf-8", "surrogateescape"), str(self.directory / name)

        def write() -> None:
            put_file(path, content, mode=mode, uid=os.geteuid(), gid=os.getegid(), is_alone=True, is_durable=is_durable)

        with_reserve(self.directory, write)

    def _read_file(self, name: str) -> str | None:
        try:
            with open(self.directory / name, "rb") as file:
                return file.read(_MAX_OUTCOME_BYTES).decode("utf-8", "surrogateescape")
        except FileNotFoundError:
            return None

    def _sign_client(self) -> None:
        number = os.getpid()
        found = process_fields(number)
        if found is None:
            raise FileNotFoundError(f"/proc/{number}/stat")
        # The clock ticks after boot at which it started: a number alone may be given to another process.
        text = f"{number} {found[1][19]}\n"
        try:
            self._write_file("client", text, is_durable=False)
        except OSError as error:
            if not is_full(error) or not self._overwrite_file("client", text):
                raise

    def _overwrite_file(self, name: str, text: str) -> bool:
        """Write a small file into the block that it has already: what a full disk allows."""
        try:
            fd = os.open(self.directory / name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            os.pwrite(fd, text.encode(), 0)
            os.ftruncate(fd, len(text))
        except OSError:
            return False
        finally:
            os.close(fd)
        return True

    def _find_client(self) -> int | None:
        """The process that works on the transaction, where it lives."""
        found = re.fullmatch(r"([0-9]{1,10}) ([0-9]{1,20})\n", self._read_file("client") or "")
        return int(found[1]) if found is not None and is_alive(int(found[1]), found[2]) else None

    def _seconds_left(self) -> float | None:
        limit = self._read_file("deadline")
        if limit is None or self._read_file("boot") != _boot_id():
            return None
        return max(0.0, float(limit) - _read_uptime())

    def _read_outcome(self) -> WatchdogOutcome | None:
        return parse_outcome(self._read_file(OUTCOME) or "")

    # -- the process ----------------------------------------------------------------------------------------------

    def _start_unit(self, words: list[str]) -> bool:
        command = ["systemd-run", "--quiet", "--collect", f"--unit={self._name}"]
        command += ["--property=Restart=on-failure", "--property=TimeoutStopSec=60", "--", *words]
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, timeout=_START_SECONDS, env=_ENVIRONMENT, cwd="/"
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0

    def _find_process(self) -> int | None:
        """The number of the process that runs the script, if it does."""
        # Written in place: behind the line there may be what is left of a longer one.
        text = (self._read_file("watching") or "").partition("\n")[0]
        if not re.fullmatch(r"[0-9]{1,10}", text):
            return None
        try:
            argv = Path(f"/proc/{int(text)}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return None
        return int(text) if os.fsencode(self._script) in argv else None

    def _is_abandoned(self) -> bool:
        return self._find_process() is None


@cache
def watch_text() -> str:
    """``watch.sh``: the same for every transaction of this version."""
    return render_shell("watch.sh.j2", {"data_format": FORMAT, "data_kind": WATCH_KIND})


def boot_units(prefix: str) -> set[str]:
    """Transactions for which a unit for the next boot, its link or a part of one is there, by what follows
    ``prefix`` in its name."""
    found: set[str] = set()
    for directory in (_UNIT_DIRECTORY, _BOOT_TARGET):
        with contextlib.suppress(OSError):
            for name in os.listdir(directory):
                named = re.fullmatch(rf"\.?{re.escape(prefix)}([0-9]+)-boot\.service(\.advisor\.new)?", name)
                if named is not None:
                    found.add(named[1])
    return found


def current_session() -> str | None:
    """The ssh connection that this process was started over, as the number and start time of its sshd; None else."""
    number = os.getpid()
    for _ in range(64):
        fields = process_fields(number)
        if fields is None or number <= 1:
            return None
        name, rest = fields
        if name in ("sshd", "sshd-session"):
            return f"{number} {rest[19]}"
        number = int(rest[1])
    return None


def is_alive(number: int, start: str) -> bool:
    """Whether the process of that number, and of that start time in clock ticks after boot, is there still."""
    fields = process_fields(number)
    return fields is not None and fields[1][0] not in ("Z", "X") and fields[1][19] == start


def process_fields(number: int) -> tuple[str, list[str]] | None:
    """A process's name, and its fields from the state on (proc_pid_stat(5)); None where it is gone."""
    try:
        text = Path(f"/proc/{number}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    name = text[text.find("(") + 1 : text.rfind(")")]
    return name, text[text.rfind(")") + 2 :].split()


def _read_uptime() -> float:
    """Seconds since boot, suspended ones included: a clock that is set does not move it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _systemd_runs() -> bool:
    """sd_booted(3)."""
    return os.path.isdir("/run/systemd/system")


def _is_in_the_hosts_namespaces() -> bool:
    """Whether a unit that PID 1 starts would see the same links, files and processes as this process does."""
    try:
        return all(os.readlink(f"/proc/self/ns/{one}") == os.readlink(f"/proc/1/ns/{one}") for one in _NAMESPACES)
    except OSError:
        return False


_NAMESPACES = ("net", "mnt", "pid", "ipc")


def _unit_escaped(text: str) -> str:
    """A word of a unit file, whatever it holds (systemd.syntax(7), systemd.unit(5) for %)."""

    def escaped(found: re.Match[str]) -> str:
        return "".join(f"\\x{byte:02x}" for byte in os.fsencode(found[0]))

    return re.sub(r"[^\w./-]", escaped, text, flags=re.ASCII)
