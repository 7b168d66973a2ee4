"""Runs of this controller: one at a time, each kept with its journal, its scripts and every answer."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator

from advisor.errors import BusyError, RefusedError, UsageError
from advisor.fleet.runs.journal import RunRecord, read_entries, read_run
from advisor.fleet.store import FleetStore
from advisor.host.numbers import is_count
from advisor.host.trusted_files import make_own_directory


@contextlib.contextmanager
def lock_store(store: FleetStore) -> Iterator[None]:
    """Hold the store for one run. Raises BusyError naming the holder, RefusedError where it cannot be written."""
    try:
        make_own_directory(str(store.directory))
        fd = os.open(store.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RefusedError(
            f"{store.directory}: cannot be written: {error.strerror}", hint="name another place in ADVISOR_STATE_DIR"
        ) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 200, 0).decode("utf-8", "replace").strip() or "another process"
            raise BusyError(f"another fleet run is under way here ({holder})", hint="wait for it to end") from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"process {os.getpid()}, since {time.strftime('%F %T')}\n".encode(), 0)
        yield
    finally:
        os.close(fd)


def next_id(store: FleetStore) -> str:
    """The id of the next run: a running number, as a clock may be set back."""
    last = max((int(name) for name in store.runs() if is_count(name)), default=0)
    return f"{last + 1:04d}"


def all_runs(store: FleetStore) -> tuple[RunRecord, ...]:
    """Every run that got as far as to be asked for, oldest first. Raises InvalidInputError for a damaged journal."""
    found = (read_run(name, read_entries(store.directory / "runs" / name)) for name in store.runs())
    return tuple(run for run in found if run is not None)


def find_run(store: FleetStore, wanted: str | None) -> RunRecord:
    """A run by its id (leading zeros may be left out), or the last one. Raises UsageError."""
    runs = all_runs(store)
    if not runs:
        raise UsageError("there is no run", hint="advisor fleet apply makes one")
    if wanted in (None, "last"):
        return runs[-1]
    for one in runs:
        if one.id == wanted or one.id.lstrip("0") == str(wanted).lstrip("0"):
            return one
    raise UsageError(f"there is no run {wanted!r}", hint="advisor fleet status lists them")


def same_order(run: RunRecord) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """The waves of a run in which something may be active, in the order in which they were begun."""
    touched = set(run.touched)
    found = []
    for number, hosts in enumerate(run.begun, 1):
        # A host that was taken again is in the wave in which it was last.
        later = {name for others in run.begun[number:] for name in others}
        named = tuple(name for name in hosts if name in touched and name not in later)
        if named:
            found.append((number, named))
    return tuple(found)
