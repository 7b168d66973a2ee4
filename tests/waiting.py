"""Waiting for what comes by itself: long enough for a machine that is busy with many other things."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Callable
from pathlib import Path

from advisor.transaction.journal import Store

PATIENCE_SECONDS = 100.0


def until(is_so: Callable[[], bool], what: object = "waited in vain", *, pause: float = 0.05) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(pause)


def until_unwatched(store: Store, what: object = "waited in vain") -> None:
    """Until no watchdog is left: its mark goes first, the lock when its process has ended. One that a busy machine has
    not let begin has neither, but its script's name."""
    until(
        lambda: (
            all(store.watchdog_of(one.id).place is None for one in store.read_records())
            and not is_locked(store.directory / "lock")
            and not is_named_by_a_process(store.directory)
        ),
        what,
    )


def is_named_by_a_process(directory: Path) -> bool:
    """Whether a process runs a script below the directory."""
    name = f"{directory.absolute()}/transactions/".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if any(word.startswith(name) for word in path.read_bytes().split(b"\0")):
                return True
    return False


def is_locked(path: Path) -> bool:
    with open(path) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
