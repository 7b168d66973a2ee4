"""The transactions of a captured host, from its own journals: what ``advisor status`` and ``find_drift`` say there.

The same journal reader and the same comparison as on the host itself; what differs is where the bytes come from.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from advisor.errors import InvalidInputError, PermissionDeniedError, UsageError
from advisor.host import Host, Missing
from advisor.shell.state_table import NOTE, OPEN_FILES, OUTCOME
from advisor.transaction.journal import (
    STATE_DIRECTORY,
    Record,
    Store,
    decode_journal,
    replay_entries,
    sequence_of,
    with_note,
    with_watchdog_files,
)
from advisor.transaction.status import Status
from advisor.transaction.verify import find_drift
from advisor.transaction.watchdog import TransactionFiles, parse_outcome


class CapturedStore(Store):
    """A `Store` that can be asked and not written to: that of a capture made by root, by a command that looks there.

    Every question raises PermissionDeniedError where the capture was not made by root, InvalidInputError for a journal
    that is damaged.
    """

    def __init__(self, host: Host, directory: str = STATE_DIRECTORY) -> None:
        super().__init__(directory)
        self._host = host

    def read_records(self, *, with_closed: bool = True) -> tuple[Record, ...]:
        """Every transaction, oldest first, as it stood when the capture was made."""
        place = f"{self.directory}/transactions"
        names = self._host.listdir(place)
        if isinstance(names, Missing):
            if names.is_absent and self._host.is_root:
                return ()
            raise PermissionDeniedError(f"{place}: {names.why}", hint="only root on that host can read it")
        known = sorted(filter(sequence_of, names), key=lambda name: (sequence_of(name), name))
        found = (self._read_captured(f"{place}/{name}", name) for name in known)
        return tuple(record for record in found if record is not None)

    def _read_captured(self, place: str, name: str) -> Record | None:
        data = self._host.read_bytes(f"{place}/journal")
        if isinstance(data, Missing):
            if data.is_absent:
                return None
            raise InvalidInputError(f"{place}/journal: {data.why}")
        record = replay_entries(name, decode_journal(data, f"{place}/journal"))
        if record is None:
            return None
        note = self._host.read_bytes(f"{place}/{NOTE}")
        text = "" if isinstance(note, Missing) else note.decode("ascii", "replace")
        return with_note(with_watchdog_files(record, captured_standing(self._host, place)), text, len(data))


def captured_standing(host: Host, place: str) -> TransactionFiles:
    """How far the transaction in the directory ``place`` was when the capture was made."""
    text = host.read(f"{place}/{OUTCOME}")
    outcome = None if isinstance(text, Missing) else parse_outcome(text + "\n")
    if outcome is not None:
        return TransactionFiles(None, None, outcome)
    opened = next((name for name in OPEN_FILES if host.exists(f"{place}/{name}")), None)
    return TransactionFiles(opened, _seconds_left(host, place) if opened == "pending" else None, None)


def _seconds_left(host: Host, place: str) -> float | None:
    """Until the watchdog rolls it back; None where it does not wait, or waited in an earlier boot.

    0 where the capture does not hold that host's uptime: that it waits is known, for how long is not.
    """
    limit, boot = host.read(f"{place}/deadline"), host.read(f"{place}/boot")
    if isinstance(limit, Missing) or boot != host.read("/proc/sys/kernel/random/boot_id"):
        return None
    uptime = host.read("/proc/uptime")
    try:
        return max(0.0, float(limit) - float("" if isinstance(uptime, Missing) else uptime.partition(" ")[0]))
    except ValueError:
        return 0.0


def captured_status(host: Host, *, only: Iterable[str] | None = None) -> Status:
    """Every transaction of a captured host (or ``only`` those ids), and the drift of the active ones.

    Raises as `CapturedStore` does; UsageError for an id that the host does not have.
    """
    records = CapturedStore(host).read_records()
    if only is not None:
        wanted = {sequence_of(one) for one in only}
        missing = wanted - {sequence_of(one.id) for one in records}
        if missing:
            raise UsageError(f"there is no transaction {min(missing):04d} on that host")
        records = tuple(one for one in records if sequence_of(one.id) in wanted)
    return Status(records, find_drift(host, records))


class Sought(msgspec.Struct, frozen=True):
    """A transaction by the fingerprint of its plan, later than those that were there when the plan was made (by the
    running number of the last one)."""

    fingerprint: str
    after: int = 0

    def among(self, records: Iterable[Record]) -> Record | None:
        """The latest one, None where it was never begun."""
        later = [one for one in records if sequence_of(one.id) > self.after]
        return next((one for one in reversed(later) if one.plan.fingerprint == self.fingerprint), None)
