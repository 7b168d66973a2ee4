"""The transactions of this host: confirm, list, verify and roll them back.

What a monitoring system calls every minute is here: this module imports no planner and no rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from advisor.host import live_host
from advisor.host.signals import Interrupted
from advisor.host.trusted_files import need_root
from advisor.transaction import status
from advisor.transaction.journal import Record, Store
from advisor.transaction.status import ConfirmResult, RolledBack, Status


def confirm_pending(identity: str | None, *, same_session: bool = False) -> ConfirmResult:
    """Confirm the pending transaction (by id, or the one there is), and roll back those that it replaces.

    Raises PermissionDeniedError without root, RefusedError if none is pending or its time is over.
    """
    need_root()
    return status.confirm_switch(live_host(), identity, same_session=same_session)


def read_status() -> Status:
    """Return every transaction and the drift of the active ones. Raises PermissionDeniedError without root."""
    return status.host_status(live_host())


def verify_values(identity: str | None, *, with_others: bool = True) -> Status:
    """Return the drift of one transaction, by default of all active ones. ``with_others``: also which other tools set
    the same values, which may take a scan. Raises RefusedError if there is none to verify."""
    return status.verify_transactions(live_host(), identity, with_others=with_others)


def roll_back_transactions(
    identity: str | None, *, everything: bool = False, force: bool = False, warn: Callable[[str], None] = lambda _: None
) -> RolledBack:
    """Roll back one transaction, by default the last active one, or all; return each with the outcome of every item.

    ``warn`` receives what could not be written meanwhile. Raises PermissionDeniedError without root, RefusedError.
    """
    need_root()
    return status.rollback_transactions(live_host(), identity, everything=everything, force=force, warn=warn)


def read_transaction(identity: str) -> Record:
    """Return one transaction as its files have it now. Raises UsageError, InvalidInputError for a damaged journal."""
    return Store().find_record(identity)


def cancel_trial(identity: str, *, warn: Callable[[str], None]) -> RolledBack:
    """Roll back a transaction on trial for Ctrl-C. Raises Interrupted once nothing of it is left; return what became of
    each item where something could not be restored."""
    done = status.rollback_transactions(live_host(), identity, everything=False, force=False, warn=warn)
    if all(one.is_back for _record, outcomes in done for one in outcomes):
        raise Interrupted(rolled_back=identity)
    return done


def list_transaction_ids() -> Sequence[str]:
    """Return the ids of all transactions, the oldest first. Raises PermissionDeniedError without root."""
    return [record.id for record in Store().read_records()]
