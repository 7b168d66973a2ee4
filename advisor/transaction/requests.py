"""Which transactions a request names, and whether a new one may begin."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.errors import RefusedError, UsageError
from advisor.i18n import msg
from advisor.transaction.journal import Store, sequence, waiting_of


def replaced_by(names: Sequence[str] | None, store: Store | None = None) -> tuple[str, ...]:
    """Ids of the transactions in force that a plan is to take the place of.

    Raises UsageError for a name that means none, PermissionDeniedError where only root can tell.
    """
    return in_force_by_name(store or Store(), tuple(names or ()))


def in_force_by_name(store: Store, names: Sequence[str]) -> tuple[str, ...]:
    """Ids of transactions in force that ids or names of profiles mean, the oldest first. Raises UsageError."""
    if not names:
        return ()
    in_force = [record for record in store.records() if record.is_in_force]
    found: set[str] = set()
    for name in names:
        meant = {one.id for one in in_force if name in one.plan.profiles or sequence(one.id) == (sequence(name) or -1)}
        if not meant:
            raise UsageError(
                msg("--instead-of {name}: no transaction in force is or holds that", name=name), hint="advisor status"
            )
        found |= meant
    return tuple(record.id for record in in_force if record.id in found)


def refuse_while_one_waits(store: Store) -> None:
    """Raises RefusedError: what comes after a change that may yet be rolled back has no firm ground.

    Nor has it on a damaged transaction, of which nobody knows what it has set.
    """
    records, damaged = store.survey()
    broken = next((one for one in damaged if not one.by_script), None)
    if broken is not None:
        raise RefusedError(broken.message, hint=broken.hint)
    waiting = waiting_of(records)
    if waiting is not None:
        raise RefusedError(
            msg(
                "transaction {id} waits for confirmation, {seconds_left:.0f} s left",
                id=waiting.id,
                seconds_left=waiting.seconds_left or 0,
            ),
            hint=msg("advisor confirm {id}, or advisor rollback {id}", id=waiting.id),
        )
