"""A transaction of this host on trial: confirmed, followed, cancelled."""

from __future__ import annotations

from collections.abc import Callable

from advisor.host import live_host
from advisor.host.signals import Interrupted
from advisor.host.trusted_files import need_root
from advisor.transaction import status
from advisor.transaction.journal import Record, Store
from advisor.transaction.status import ConfirmResult, RolledBack


def confirm_pending(identity: str | None, *, same_session: bool = False) -> ConfirmResult:
    """Confirm the pending transaction (by id, or the one there is), and roll back those that it replaces.

    Raises PermissionDeniedError without root, RefusedError if none is pending or its time is over.
    """
    need_root()
    return status.confirm_switch(live_host(), identity, same_session=same_session)


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
