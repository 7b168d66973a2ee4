"""The state of a transaction as data that Python and the shell scripts share: files, journal entries, allowed commands.

Templates read it as ``state_table``. The state of a transaction follows from the last entry of its journal
(`STATE_AFTER`); the files of a running transaction are newer than the journal and take precedence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

State = Literal[
    "applying", "applied", "awaiting-confirmation", "rolling-back", "rolled-back", "unfinished", "kept-external"
]

OPEN_FILES: Mapping[str, str] = {
    "pending": "the transaction is open and unclaimed; who renames or removes this file decides how it ends",
    "taken": "a client rolls it back",
    "reverting": "the watchdog rolls it back",
}
"""The file that is there while a transaction is open, and what it means."""

RUNNING_FILES: Mapping[str, str] = {
    "client": "number and start time of the process that works on it",
    "limit": "uptime in seconds by which that process must reach its next step, or it counts as hung",
    "deadline": "uptime in seconds by which the change must be confirmed; absent while the client works",
    "watching": "number of the process that runs the watchdog",
    "boot": "id of the boot that the other numbers belong to",
}
"""Files that are there only while a transaction is open; they are removed with it."""

OUTCOME = "outcome"
RESERVE = "reserve"
LENGTH = "length"
NOTE = "put-back"
LOCK_DIRECTORY = "lock.d"
CLOSED = "closed"
SCRIPT_DATA = "rollback.data"
WATCH_DATA = "watch.data"

CLOSED_FILES: Mapping[str, str] = {
    RESERVE: "space for what is written when the disk is full",
    OUTCOME: "result of the rollback by the watchdog: exit code, seconds since the epoch, reason; then a line per item",
    LENGTH: "size of the journal in bytes when it was closed, and the CRC-32 of these bytes",
    CLOSED: "all that is left of what is rolled back as a whole: a line with its plan, the journal as gzip(1) has it",
    NOTE: "size of the journal in bytes and seconds since the epoch when the rollback script had restored everything",
}
"""Files that can outlive a running transaction."""

FILES: Mapping[str, str] = {
    "journal": "the plan, and an entry before and after each step",
    "rollback.sh": "restores the values before the transaction; the same text for each",
    SCRIPT_DATA: "these values and files, which it reads",
    "watch.sh": "the watchdog; the same text for each transaction",
    WATCH_DATA: "the boot unit of this transaction, which it removes; options of its rollback script",
    **OPEN_FILES,
    **RUNNING_FILES,
    **CLOSED_FILES,
}
"""All files in the directory of a transaction."""

STATE_AFTER: Mapping[str, State] = {
    "begun": "applying",
    "doing": "applying",
    "done": "applying",
    "left": "applying",
    "applied": "applied",
    "awaiting": "applied",
    "confirmed": "applied",
    "undoing": "rolling-back",
    "undone": "rolled-back",
}
"""Type of the last journal entry → state; `state_of_kept` says it of an ``undone`` that lists items as kept."""

FAILED = "failed"
"""What begins the reason of an item that could not be restored, and is work left over."""


def state_of_kept(reasons: Iterable[str]) -> State:
    """The state of a transaction that was rolled back but for items with these reasons."""
    listed = tuple(reasons)
    if any(why.startswith(FAILED) for why in listed):
        return "unfinished"
    return "kept-external" if listed else "rolled-back"


ALLOWED: Mapping[State, tuple[str, ...]] = {
    "applying": ("rollback",),
    "applied": ("apply", "verify", "rollback"),
    "awaiting-confirmation": ("confirm", "verify", "rollback"),
    "rolling-back": ("rollback",),
    "rolled-back": ("apply",),
    "unfinished": ("rollback",),
    "kept-external": ("apply", "rollback"),
}
"""Commands that each state allows; ``apply`` is that of another plan."""

ACTIVE = tuple(state for state, commands in ALLOWED.items() if "verify" in commands)
"""States in which the values of the transaction are set on the host."""

UNFINISHED = tuple(state for state, commands in ALLOWED.items() if commands == ("rollback",))
"""States of a transaction that is not at its end, unless its process still runs."""

CUT_OFF = ("applying", "rolling-back")
"""Those of one that was interrupted: files of a running transaction are there."""
