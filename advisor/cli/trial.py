"""The seconds that an apply on trial has left, on a terminal whose user has agreed to it."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.transaction.journal import Record

_TICK_SECONDS = 1.0


def is_watched(*, yes: bool, as_json: bool) -> bool:
    """Whether a person waits at a terminal. With --yes a script may want to go on and confirm by itself."""
    return not yes and not as_json and all(one.isatty() for one in (sys.stdin, sys.stdout, sys.stderr))


def watch_trial(read: Callable[[str], Record], record: Record) -> Record:
    """Show the time left until the transaction is confirmed or rolled back; return it as it is then. Raises
    KeyboardInterrupt from Ctrl-C."""
    from advisor.cli.progress import wait_progress

    with wait_progress("confirm from a new login, Ctrl-C rolls back", record.seconds_left):
        while record.is_active and record.seconds_left is not None:
            time.sleep(min(_TICK_SECONDS, max(record.seconds_left, 0.05)))
            record = read(record.id)
        while record.is_unfinished:
            time.sleep(_TICK_SECONDS / 10)
            record = read(record.id)
    return record


def follow_trial(record: Record) -> int:
    """Watch a transaction on trial to its end, and report that. The exit code is 0 for confirmed, 4 for rolled back
    and 5 where something could not be restored; Ctrl-C rolls back at once, 130."""
    from advisor.cli.output import print_text, say, terminal_width, wants_color
    from advisor.errors import RestoredError
    from advisor.operations.pending import cancel_trial, read_transaction
    from advisor.report.transaction import rollback_text

    try:
        found = watch_trial(read_transaction, record)
    except KeyboardInterrupt:
        lost = cancel_trial(record.id, warn=say)
        print_text(rollback_text(lost, width=terminal_width(), color=wants_color()))
        return 5
    if found.is_active:
        say(f"{found.id} is confirmed; it stays active")
        return 0
    if found.state == "rolled-back":
        raise RestoredError(f"{found.id} was not confirmed in time; everything has been rolled back")
    say(f"{found.id} was not confirmed in time, and is not rolled back completely: advisor status")
    return 5
