"""Which transactions a request names, and whether a new one may begin."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.errors import RefusedError, UsageError
from advisor.transaction.journal import Store, find_waiting, sequence_of


def active_by_name(store: Store, names: Sequence[str]) -> tuple[str, ...]:
    """Ids of the active transactions that ids or names of profiles mean, the oldest first. Raises UsageError."""
    if not names:
        return ()
    in_force = [record for record in store.open_records() if record.is_active]
    found: set[str] = set()
    for name in names:
        meant = {
            one.id for one in in_force if name in one.plan.profiles or sequence_of(one.id) == (sequence_of(name) or -1)
        }
        if not meant:
            raise UsageError(
                f"--instead-of {name}: no active transaction has this id or profile", hint="advisor status"
            )
        found |= meant
    return tuple(record.id for record in in_force if record.id in found)


def refuse_while_one_waits(store: Store) -> None:
    """Raises RefusedError while a transaction awaits confirmation: its values may still be rolled back.

    So it does for a damaged transaction, as it is unknown what that has set.
    """
    records, damaged = store.survey_records(with_closed=False)
    broken = next((one for one in damaged if not one.by_script), None)
    if broken is not None:
        raise RefusedError(broken.message, hint=broken.hint)
    waiting = find_waiting(records)
    if waiting is not None:
        raise RefusedError(
            f"transaction {waiting.id} awaits confirmation, {waiting.seconds_left or 0:.0f} s left",
            hint=f"advisor confirm {waiting.id}, or advisor rollback {waiting.id}",
        )
