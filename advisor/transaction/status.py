"""What has been applied, whether it is still in force, and putting it back: what the command line and other programs
call once a transaction is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from advisor.errors import RefusedError, UsageError
from advisor.host import Host
from advisor.host.signals import interruptible
from advisor.i18n import msg
from advisor.importers.conflicts import OtherWriter, writers_beside
from advisor.transaction.confirm import confirm
from advisor.transaction.journal import Damaged, Record, Store, bottom_of, one_of
from advisor.transaction.rollback import finish_switches, recover, roll_back
from advisor.transaction.side_effects import ItemOutcome
from advisor.transaction.verify import Drift, verify

STOPPED_SECONDS: Final = 10.0
"""How long a process that holds the store must stay stopped before a rollback ends it."""

RolledBack = Sequence[tuple[Record, tuple[ItemOutcome, ...]]]


def as_set(records: Iterable[Record]) -> tuple[int, int]:
    """Values and files that the transactions in force set, each counted once."""
    plans = [record.plan for record in records if record.is_in_force]
    values = {change.tunable for plan in plans for change in (*plan.changes, *plan.claims)}
    return len(values), len({file.path for plan in plans for file in (*plan.files, *plan.claimed_files)})


class Status(msgspec.Struct, frozen=True):
    """Transactions, and what of those in force is no longer as set. ``others`` write such values as well; ``damaged``
    are transactions of which nobody can tell any more what they have set."""

    records: tuple[Record, ...]
    drift: tuple[Drift, ...]
    others: tuple[OtherWriter, ...] = ()
    damaged: tuple[Damaged, ...] = ()
    stopped_holder: int | None = None
    """The number of a process that holds the store and is stopped: others are refused until it goes on or ends."""

    @property
    def unfinished(self) -> tuple[Record, ...]:
        """Those that were interrupted and are not put back yet: what is live may be either."""
        return tuple(record for record in self.records if record.is_unfinished)

    @property
    def is_as_set(self) -> bool:
        return not self.drift and not self.unfinished and not self.unreadable

    @property
    def unreadable(self) -> tuple[Damaged, ...]:
        """Those that are damaged, and not put back as far as anybody knows."""
        return tuple(one for one in self.damaged if not one.by_script)


def host_status(host: Host, store: Store | None = None) -> Status:
    """Every transaction, and the drift of those in force. Raises PermissionDeniedError without root."""
    kept = store or Store()
    records, damaged = kept.survey()
    return Status(records, verify(host, records), damaged=damaged, stopped_holder=kept.stopped_holder())


def verify_transactions(
    host: Host, identity: str | None, store: Store | None = None, *, with_others: bool = True
) -> Status:
    """Drift of one transaction or of all in force, and who else writes what they set (``with_others``; where one of
    them is at work, that takes a scan). Raises RefusedError where there is none to verify."""
    everything, damaged = (store or Store()).survey()
    asked = (one_of(everything, identity, damaged),) if identity else everything
    if identity and not asked[0].is_in_force:
        raise RefusedError(msg("transaction {id} is {state}, not in force", id=asked[0].id, state=asked[0].state))
    # What a later transaction holds is that one's to answer for.
    own = {record.id for record in asked}
    drift = tuple(one for one in verify(host, everything) if one.transaction in own)
    return Status(asked, drift, _others(host, asked) if with_others else (), () if identity else damaged)


def _others(host: Host, records: Iterable[Record]) -> tuple[OtherWriter, ...]:
    in_force = [record for record in records if record.is_in_force]
    changes = {one.tunable: one for record in in_force for one in (*record.plan.changes, *record.plan.claims)}
    files = {one.path: one for record in in_force for one in (*record.plan.files, *record.plan.claimed_files)}
    return writers_beside(host, tuple(changes.values()), tuple(files)) if in_force else ()


def rollback_transactions(
    host: Host,
    identity: str | None,
    *,
    everything: bool,
    force: bool,
    store: Store | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> tuple[tuple[Record, tuple[ItemOutcome, ...]], ...]:
    """Put back one transaction, the last one, or all; unfinished ones come first whatever was asked. ``warn`` is given
    what could not be written meanwhile."""
    if identity and everything:
        raise UsageError(
            "give a transaction or --all, not both",
            hint=msg("advisor rollback {id} rolls one back, advisor rollback --all every active one", id=identity),
        )
    kept = store or Store()
    # One whose journal is damaged is put back by its script alone: only those beside it can be asked for.
    if not identity and not (kept.records() if everything else kept.readable() or kept.records()):
        raise RefusedError("there is no transaction to put back", hint="advisor status lists what there is")
    with kept.lock(may_be_read_only=True, stopped_for=STOPPED_SECONDS), interruptible():
        done = list(recover(host, kept, warn))
        bottom = bottom_of(kept.readable()) if everything else None
        for record in _chosen(kept, identity, everything=everything, force=force, has_recovered=bool(done)):
            before = {one.id for one, _ in done}
            outcomes = roll_back(host, record, kept, force=force, warn=warn, unrecorded=before, bottom=bottom)
            done.append((record, outcomes))
        return tuple(done)


def _chosen(
    store: Store, identity: str | None, *, everything: bool, force: bool, has_recovered: bool
) -> tuple[Record, ...]:
    if identity:
        record = store.record(identity)
        return () if record.state == "rolled-back" else (record,)
    in_force = [
        record
        for record in reversed(store.readable())
        if record.is_in_force or (force and record.state == "partly-rolled-back")
    ]
    if everything:
        return tuple(in_force)
    if not in_force and not has_recovered and store.records():
        raise RefusedError("no transaction is in force: there is nothing to put back")
    # An interrupted transaction was what the user meant by the last one.
    return () if has_recovered else tuple(in_force[:1])


class ConfirmResult(msgspec.Struct, frozen=True):
    """A transaction that stays, the transactions whose place it took, and what became of each item of theirs."""

    record: Record
    taken_out: tuple[tuple[Record, tuple[ItemOutcome, ...]], ...] = ()


def confirm_transaction(
    host: Host, identity: str | None, *, same_session: bool = False, store: Store | None = None
) -> Record:
    """Keep the transaction that waits for confirmation. Raises RefusedError where none does."""
    return confirm_switch(host, identity, same_session=same_session, store=store).record


def confirm_switch(
    host: Host, identity: str | None, *, same_session: bool = False, store: Store | None = None
) -> ConfirmResult:
    """Keep the transaction that waits, and take out what it was applied instead of. Raises as `confirm_transaction`."""
    kept = store or Store()
    if identity is None and kept.waiting() is None:
        raise RefusedError("no transaction waits for confirmation", hint="advisor status lists what there is")
    with kept.lock(), interruptible():
        record = kept.record(identity) if identity else kept.waiting()
        if record is None:
            raise RefusedError("too late: nothing waits any more", hint="advisor status shows what came of it")
        confirmed = confirm(host, record, kept, same_session=same_session)
        return ConfirmResult(confirmed, finish_switches(host, kept))
