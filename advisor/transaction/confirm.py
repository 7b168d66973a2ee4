"""Confirm a transaction that awaits it."""

from __future__ import annotations

import time

from advisor.errors import RefusedError
from advisor.host import Host
from advisor.transaction.journal import Applied, Confirmed, Record, Store
from advisor.transaction.layers import claim_owned, data_of
from advisor.transaction.origin import find_elsewhere
from advisor.transaction.rollback import write_scripts
from advisor.transaction.watchdog import current_session

_STATES = {
    "applied": "it is active for good",
    "rolled-back": "it has been rolled back",
    "unchanged": "it changed nothing",
}


def confirm_record(host: Host, record: Record, store: Store, *, same_session: bool = False) -> Record:
    """Confirm a transaction that awaits it; the caller holds ``store.hold_lock()``.

    Raises RefusedError where it does not await confirmation (any more), or where the ssh connection is the one that it
    was applied over: that one was made under the old values and may work where no new one can be made.
    """
    if record.state != "awaiting-confirmation":
        words = _STATES.get(record.state)
        message = (
            f"transaction {record.id} is not awaiting confirmation: {words}"
            if words
            else f"transaction {record.id} is not awaiting confirmation"
        )
        raise RefusedError(message, hint="advisor status")
    if not same_session and record.session is not None and record.session == current_session():
        raise RefusedError(
            "the change was made over this ssh connection; that it still works proves nothing about new connections",
            hint=f"reconnect and run: advisor confirm {record.id} (or add --same-session)",
        )
    place = find_elsewhere(host, record.id, record.plan, record.origin, command="advisor confirm")
    if place is not None:
        raise place.as_error(record.id)
    watchdog = store.watchdog_of(record.id)
    if record.seconds_left == 0 and watchdog.place is None:
        # Its watchdog has restored the values and could not record it.
        raise RefusedError(
            f"too late: the time to confirm transaction {record.id} is over", hint=f"advisor rollback {record.id}"
        )
    with store.reopen_journal(record.id) as journal:
        journal.write_entry(Confirmed(time.time()))
        if not watchdog.keep_change():
            raise RefusedError(
                f"too late: transaction {record.id} is being rolled back", hint="advisor status shows the outcome"
            )
    record = settle_claims(store, store.find_record(record.id))
    write_scripts(store, record)
    return record


def settle_claims(store: Store, record: Record) -> Record:
    """A confirmed transaction whose values that a lower layer of its profile holds as well become claims.

    Not before: until then its rollback restores what it found.
    """
    plan = claim_owned(record, store.open_records())
    if plan is None:
        return record
    try:
        with store.reopen_journal(record.id) as journal:
            journal.write_entry(Applied(time.time(), record.side_effects_after, plan))
        record = store.find_record(record.id)
        store.write_script(record.id, data_of(record, store.open_records()))
    except OSError:
        # Its rollback then restores what it found, as for another profile.
        return store.find_record(record.id)
    return record
