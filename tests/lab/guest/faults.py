"""Runs ``advisor`` in the guest and ends it, or stops it, at a chosen moment: just before or just after it writes a
line of its journal, which is just before or just after a step.

usage: faults.py sweep STATES EVERY -- advisor words   kills at every EVERY-th such moment, rolls back, compares
       faults.py stop POINT - -- advisor words         stops there (SIGSTOP) and stays: for a power cut

STATES is a directory with two scripts that print what the host is: ``near``, what the words can change, is compared
after each kill; ``whole`` after every twelfth and at the end.

Nothing of ``advisor`` is replaced: the moment is found in the system calls that it makes. ``sweep`` prints a line for
each point, and ends with 1 if the host was ever other than before.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

write, fsync = os.write, os.fsync
TRANSACTIONS = Path("/var/lib/advisor/transactions")


class Moments:
    """Counts them, and acts at the one that was asked for."""

    def __init__(self, point: int, act: Callable[[], None]) -> None:
        self.point = point
        self.act = act
        self.seen = 0
        os.write = self.write  # type: ignore[assignment]
        os.fsync = self.fsync  # type: ignore[assignment]

    def write(self, fd: int, data: bytes) -> int:
        self.count(fd)
        return write(fd, data)

    def fsync(self, fd: int) -> None:
        fsync(fd)
        self.count(fd)

    def count(self, fd: int) -> None:
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{fd}").endswith("/journal"):
                if self.seen == self.point:
                    self.act()
                self.seen += 1


def run(words: Sequence[str], point: int | None = None, act: Callable[[], None] | None = None) -> int:
    """``advisor`` in a child that has everything imported already; its exit code, or minus the signal."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.setsid()
        quiet = os.open("/run/faults.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        if point is not None and act is not None:
            Moments(point, act)
        sys.argv = ["advisor", *words]
        from advisor.cli.main import main

        try:
            main()
        except SystemExit as ended:
            os._exit(int(ended.code or 0))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def state(directory: str, name: str) -> list[str]:
    script = f"{directory}/{name}"
    return subprocess.run(["sh", script], capture_output=True, text=True, check=False).stdout.splitlines()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def open_ones() -> list[Path]:
    return [path for name in ("pending", "taken", "reverting") for path in TRANSACTIONS.glob(f"*/{name}")]


def await_watchdog(seconds: float = 240) -> bool:
    """Whether nothing is open any more; an emulated machine on a busy host may need minutes."""
    end = time.monotonic() + seconds
    while open_ones():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def sweep(states: str, every: int, words: Sequence[str]) -> int:
    import pyroute2  # noqa: F401  # once, for all children

    import advisor.cli.change
    import advisor.operations.transactions  # noqa: F401

    before = {name: state(states, name) for name in ("near", "whole")}
    wrong = 0
    for tried, point in enumerate(range(0, 1000, every)):
        ended = run(words, point, die)
        if ended != -signal.SIGKILL:
            print(f"points {tried} of {point}, last run ended with {ended}, wrong {wrong}")
            run(["rollback", "--all"])
            return 1 if wrong or ended != 0 or state(states, "whole") != before["whole"] else 0
        # By turns: the watchdog on its own, and the next run of advisor at once.
        way = "rollback" if tried % 2 else "watchdog"
        if way == "rollback":
            run(["rollback"])
        settled = await_watchdog()
        name = "whole" if tried % 12 == 11 else "near"
        after = state(states, name)
        if after != before[name] or not settled:
            wrong += 1
            left = [f"open: {path}" for path in open_ones()]
            differs = sorted({*before[name]} ^ {*after})
            print(f"point {point} by {way}: not as before", *left, *differs, sep="\n  ")
            before[name] = after
    return 1


def main() -> int:
    mode, first, every, _, *words = sys.argv[1:]
    if mode == "sweep":
        return sweep(first, int(every), words)
    return run(words, int(first), lambda: os.kill(os.getpid(), signal.SIGSTOP))


if __name__ == "__main__":
    sys.exit(main())
