"""Processes that hold the lock of the store: which they are, whether they are stopped, and how their hold is ended.

A stopped process (SIGSTOP, Ctrl-Z, a debugger) holds the lock for ever. It executes nothing, so that ending it is
safe: SIGKILL takes effect before its next instruction.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from pathlib import Path

import msgspec

from advisor.host.numbers import is_count
from advisor.transaction.watchdog import process_fields

_STOPPED_STATES = ("T", "t")
_SAMPLE_SECONDS = 0.2
_END_SECONDS = 5.0


class LockHolder(msgspec.Struct, frozen=True):
    """A process that has the lock file open. ``start`` and ``cpu_ticks`` are in clock ticks."""

    number: int
    start: str
    cpu_ticks: int
    is_stopped: bool


def lock_holders(path: Path) -> tuple[LockHolder, ...]:
    """Processes that have the lock file open, but this one; what cannot be looked at is left out."""
    try:
        wanted = os.stat(path)
    except OSError:
        return ()
    found = []
    for name in os.listdir("/proc"):
        if is_count(name) and int(name) != os.getpid() and _has_open(name, (wanted.st_dev, wanted.st_ino)):
            holder = _read_holder(int(name))
            if holder is not None:
                found.append(holder)
    return tuple(sorted(found, key=lambda one: one.number))


def _has_open(process: str, wanted: tuple[int, int]) -> bool:
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{process}/fd"):
            with contextlib.suppress(OSError):
                seen = os.stat(f"/proc/{process}/fd/{name}")
                if (seen.st_dev, seen.st_ino) == wanted:
                    return True
    return False


def _read_holder(number: int) -> LockHolder | None:
    fields = process_fields(number)
    if fields is None:
        return None
    rest = fields[1]
    return LockHolder(number, rest[19], int(rest[11]) + int(rest[12]), rest[0] in _STOPPED_STATES)


def stopped_hint(holders: tuple[LockHolder, ...]) -> str | None:
    """What to do where all that hold the lock are stopped; None where one runs."""
    if not holders or not all(one.is_stopped for one in holders):
        return None
    numbers = " ".join(str(one.number) for one in holders)
    return (
        f"it is stopped; to let it go on: kill -CONT {numbers}\nto end it: kill -KILL {numbers}; advisor "
        "rollback then restores what it has left"
    )


def stopped_process(path: Path) -> int | None:
    """The number of the process that holds the lock and is stopped; None where nobody holds it, or the holder runs."""
    holders = lock_holders(path) if _is_locked(path) else ()
    return holders[0].number if holders and all(one.is_stopped for one in holders) else None


def read_lock_holder(path: Path) -> str | None:
    """What the holder of the lock has left of itself there, its number and since when it holds it; None where nobody
    holds it."""
    if not _is_locked(path):
        return None
    try:
        text = path.read_text("utf-8", "replace")[:200]
    except OSError:
        text = ""
    return " ".join(text.split()) or "another process"


def _is_locked(path: Path) -> bool:
    try:
        return re.search(rf"FLOCK .*:{os.stat(path).st_ino} 0 EOF", Path("/proc/locks").read_text()) is not None
    except OSError:
        return False


def end_stopped_holders(path: Path, stopped_for: float) -> bool:
    """End what holds the lock, where all of it is stopped and stays so for ``stopped_for`` seconds.

    False where one of them runs, or goes on meanwhile: then nothing was ended.
    """
    seen = lock_holders(path)
    end = time.monotonic() + stopped_for
    while True:
        if not seen or not all(one.is_stopped for one in seen) or lock_holders(path) != seen:
            return False
        if time.monotonic() >= end:
            break
        time.sleep(_SAMPLE_SECONDS)
    for one in seen:
        _kill_process(one)
    end = time.monotonic() + _END_SECONDS
    while lock_holders(path) and time.monotonic() < end:
        time.sleep(_SAMPLE_SECONDS / 10)
    return True


def _kill_process(one: LockHolder) -> None:
    """Kill it, and no later process that has its number."""
    try:
        handle = os.pidfd_open(one.number)
    except OSError:
        return
    try:
        if _read_holder(one.number) == one:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)
