"""Confirm a transaction that waits for it."""

from __future__ import annotations

import time

from advisor.errors import RefusedError
from advisor.host import Host
from advisor.i18n import msg
from advisor.transaction.journal import Applied, Confirmed, Record, Store
from advisor.transaction.layers import script_of, set_again
from advisor.transaction.restore import encode_script
from advisor.transaction.rollback import write_scripts
from advisor.transaction.watchdog import session


def confirm(host: Host, record: Record, store: Store, *, same_session: bool = False) -> Record:
    """Keep a transaction that waits for it; the caller holds ``store.lock()``.

    Raises RefusedError where it does not wait (any more), or where the ssh connection is the one that it was applied
    over: that one was made under the old values and may live on where no new one can be made.
    """
    if record.state != "awaiting-confirmation":
        said = record.why_undone or record.state
        raise RefusedError(
            msg("transaction {id} does not wait for confirmation: {said}", id=record.id, said=said),
            hint="advisor status",
        )
    if not same_session and record.session is not None and record.session == session():
        raise RefusedError(
            "this is the ssh connection that the change was made over; that it lives on proves nothing about new ones",
            hint=msg("log in anew and run: advisor confirm {id} (or add --same-session)", id=record.id),
        )
    watchdog = store.watchdog(record.id)
    if record.seconds_left == 0 and watchdog.place is None:
        # Its watchdog has restored the values and could not record it.
        raise RefusedError(
            msg("too late: the time to confirm transaction {id} is over", id=record.id),
            hint=msg("advisor rollback {id}", id=record.id),
        )
    with store.reopen(record.id) as journal:
        journal.write(Confirmed(time.time()))
        if not watchdog.keep():
            raise RefusedError(
                msg("too late: transaction {id} is being put back", id=record.id),
                hint="advisor status shows what came of it",
            )
    record = settle_claims(store, store.record(record.id))
    write_scripts(store, record)
    return record


def settle_claims(store: Store, record: Record) -> Record:
    """A transaction that is kept, as it is from now on: what it has set again is held by an earlier one as well.

    Not before: until then it goes back to what it has found.
    """
    plan = set_again(record, store.readable())
    if plan is None:
        return record
    try:
        with store.reopen(record.id) as journal:
            journal.write(Applied(time.time(), record.bystanders_after, plan))
        record = store.record(record.id)
        store.write_script(record.id, encode_script(script_of(record, store.readable())))
    except OSError:
        # It then goes back to what it found, as what another profile sets does.
        return store.record(record.id)
    return record
