"""One session under live traffic in a namespace, of whose processes some are killed at one moment after another.

A moment is: before and after each write of a value, after each write of the journal to disk, and every four seconds in
between.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

from advisor.errors import AdvisorError
from advisor.host import Host, Step, live_host
from advisor.profiles.requested import load_one
from advisor.proof.live import LiveOptions, prove_live
from advisor.proof.process import StoppedError
from advisor.proof.session_runner import Settings
from advisor.transaction.journal import Store

Victim = Literal["client", "watchdog", "both"]
NAMES: Final = ("net.ipv4.tcp_autocorking", "net.ipv4.tcp_limit_output_bytes")
SESSION_SECONDS: Final = 40.0
"""Two short pairs, and a few seconds of the third: both arms come after one another in both orders."""
METRIC_SECONDS: Final = 5.0


def read_values() -> tuple[str, ...]:
    """In the namespace of the process."""
    return tuple(Path("/proc/sys", name.replace(".", "/")).read_text().strip() for name in NAMES)


def wanted_values(before: tuple[str, ...]) -> tuple[str, ...]:
    return "0" if before[0] == "1" else "1", str(int(before[1]) // 2)


class KilledSession:
    """``at`` is the moment of the kill, 0 for none; ``moments`` counts them, ``kills`` what was killed."""

    def __init__(self, state: Path, figure: Path, at: int, victim: Victim) -> None:
        self._store = Store(str(state))
        self._state, self._figure, self._at, self._victim = state, figure, at, victim
        self.moments = 0
        self._seconds = 0.0

    def run(self) -> int:
        """To the end, or to the kill. How many moments there were."""
        real = os.fsync

        def counted_fsync(fd: Any) -> None:
            real(fd)
            self.count_moment()

        os.fsync = counted_fsync
        host = CountingHost(live_host(), self.count_moment)
        wanted = zip(NAMES, wanted_values(read_values()), strict=True)
        asked = load_one(tuple(f"sysctl:{name}={value}" for name, value in wanted))
        options = LiveOptions((f"p99=command:{self._figure}:lower",), metric_timeout=METRIC_SECONDS)
        settings = Settings(seed=3, mode="quick")
        with contextlib.suppress(AdvisorError):
            prove_live(host, asked, {}, settings, options, consent=lambda _: None, store=self._store, clock=self)
        return self.moments

    def count_moment(self) -> None:
        self.moments += 1
        if self.moments != self._at:
            return
        if self._victim != "client":
            for watching in self._state.glob("transactions/*/watching"):
                kill_watchdog(watching)
        if self._victim != "watchdog":
            os.kill(os.getpid(), signal.SIGKILL)

    # -- a clock that nobody waits for ---------------------------------------------------------------------------

    def now(self) -> float:
        return self._seconds

    def sleep(self, seconds: float) -> None:
        self._seconds += seconds
        if self._seconds > SESSION_SECONDS:
            raise StoppedError("the session has been long enough")
        if self._seconds % 4 == 0:
            self.count_moment()


class CountingHost(Host):
    def __init__(self, host: Host, count: Callable[[], None]) -> None:
        super().__init__(host.files, host.commands, is_live=True, is_root=True)
        self._count = count

    def do(self, step: Step) -> None:
        self._count()
        super().do(step)
        self._count()


def kill_watchdog(watching: Path) -> None:
    """And wait until it is gone: it is a child of nobody here."""
    pid = int((watching.read_text().split() or ["0"])[0])
    if pid <= 0:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        while is_running(pid):
            time.sleep(0.002)


def is_running(pid: int) -> bool:
    """Not where it has ended and waits for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
