"""Status, verification, rollback and confirmation of transactions, as the command line and other programs call them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import msgspec

from advisor.errors import RefusedError, UsageError
from advisor.facts.writers import overriding_write, read_boot_settings
from advisor.host import Host, Missing, observe
from advisor.host.numbers import is_count
from advisor.host.safe_open import named_directory
from advisor.host.signals import interruptible
from advisor.planning.records import Change, FileChange
from advisor.planning.unmerge import holds_edit, settings_of
from advisor.transaction.conflicts import OtherWriter, writers_beside
from advisor.transaction.journal import Damaged, Record, Store, bottom_of, find_record, sequence_of
from advisor.transaction.layer_ownership import files_of, values_of
from advisor.transaction.layers import overlaid_settings
from advisor.transaction.origin import find_elsewhere
from advisor.transaction.restore import classes_of, file_content, own_places, unreached_devices
from advisor.transaction.rollback import confirm_record, finish_switches, recover_unfinished, roll_back
from advisor.transaction.side_effects import ItemOutcome, now_named, on_own_link
from advisor.tunables.preflight import LostLink, link_of

# Which live values and files drifted from what the active transactions set.


class Drift(msgspec.Struct, frozen=True):
    """A live or persisted value that is not what the transaction set. ``live`` is None where it could not be read."""

    transaction: str
    what: str
    wanted: str
    live: str | None
    reason: str


def find_drift(host: Host, records: Iterable[Record]) -> tuple[Drift, ...]:
    """What drifted from the active transactions; where several set one tunable, or one line of a file, the last one
    counts."""
    everywhere = [record for record in records if record.is_active]
    held: dict[object, Drift | None] = {}
    in_force: list[Record] = []
    for record in everywhere:
        place = find_elsewhere(host, record.id, record.plan, record.origin)
        if place is None:
            in_force.append(record)
            continue
        why = f"cannot be read: the transaction {place.why}"
        for change in values_of(record).values():
            held[record.id, change.tunable] = Drift(record.id, change.tunable, change.after, None, why)
    for record in in_force:
        for name, change in values_of(record).items():
            # Two transactions can mean one link by two names, and two links by one.
            found = on_own_link(host, record.plan.links, change)
            if isinstance(found, LostLink):
                lost = Drift(record.id, name, change.after, None, f"cannot be read: {found.why}")
                held[record.id, name] = lost
            else:
                key = (found.probe, None if link_of(name) else name)
                held.pop(key, None)
                held[key] = _value_drift(host, record, change, found, in_force)
    drifted = [*held.values(), *_appeared_drift(host, in_force)]
    files: dict[str, Drift] = {}
    for record in in_force:
        for path, file in files_of(record).items():
            drift = _file_drift(host, record.id, file, overlaid_settings(in_force, record, path))
            if drift is not None:
                files[path] = drift
    drifted += files.values()
    return tuple(sorted((one for one in drifted if one is not None), key=lambda one: one.what))


def find_boot_drift(host: Host, records: Iterable[Record]) -> tuple[Drift, ...]:
    """What the next boot would set otherwise than the active transactions have it: a file that came later, for one.
    ``live`` is the value then. What was known when a plan was made is not said again."""
    held = {
        name: (record, change) for record in records if record.is_active for name, change in values_of(record).items()
    }
    kept = {name: each for name, each in held.items() if each[1].persist is not None}
    if not kept:
        return ()
    found = read_boot_settings(host, kept)
    drifted: list[Drift] = []
    for name, (record, change) in sorted(kept.items()):
        write = overriding_write(found, name, change.after, change.persist)
        if write is not None and write.value is not None and write.word != change.last_word:
            drifted.append(Drift(record.id, name, change.after, write.value, write.sentence))
    return tuple(drifted)


def _appeared_drift(host: Host, in_force: Iterable[Record]) -> Iterator[Drift]:
    """Devices of a class that have appeared and have not its value; those that are set one by one are judged so."""
    records = tuple(in_force)
    known = own_places(host, (change for record in records for change in values_of(record).values()))
    # The last one that sets a class counts.
    rules = {
        change.tunable: (record, change, one)
        for record in records
        for change, one in classes_of(values_of(record).values())
    }
    for record, change, one in rules.values():
        left_out = {each.tunable for each in record.plan.skipped}
        for device, why in unreached_devices(host, change, one, left_out=left_out, known=known):
            live = None if isinstance(device.live, Missing) else device.live
            yield Drift(record.id, device.tunable, change.after, live, why)


def _value_drift(host: Host, record: Record, change: Change, found: Change, in_force: Iterable[Record]) -> Drift | None:
    """``found`` is the change on the link that it was made on."""
    live = observe(host, found.probe)
    if live == change.after:
        return None
    named = "" if found is change else now_named(host, record.plan.links, change.tunable)
    if isinstance(live, Missing):
        why = f"cannot be read: {live.why}"
        return Drift(record.id, change.tunable, change.after, None, f"{why}{named}")
    reason = "is as before the transaction" if live == change.before else "modified externally"
    if live == change.before and change.persist is None and change.persist_note:
        reason = f"is as before the transaction; {change.persist_note}"
    later = (one for one in in_force if sequence_of(one.id) > sequence_of(record.id))
    moved = [one.id for one in later if one.side_effects_after.get(change.tunable) == live]
    if moved:
        reason = f"side effect of {moved[-1]}"
    return Drift(record.id, change.tunable, change.after, live, f"{reason}{named}")


def _file_drift(host: Host, identity: str, file: FileChange, overlaid: frozenset[tuple[str, ...]]) -> Drift | None:
    content = file_content(host, file.path)
    if isinstance(content, Missing):
        return Drift(identity, file.path, "its content", None, f"cannot be read: {content.why}")
    if content is None:
        return Drift(identity, file.path, "its content", None, "was removed")
    if all(holds_edit(content, edit) for edit in file.edits if not settings_of(edit) & overlaid):
        return None
    return Drift(identity, file.path, "its content", None, "no longer holds what the transaction wrote")


STOPPED_SECONDS = 10.0
"""How long a process that holds the store must stay stopped before a rollback ends it."""

RolledBack = Sequence[tuple[Record, tuple[ItemOutcome, ...]]]


def count_values(records: Iterable[Record]) -> tuple[int, int]:
    """Numbers of values and of files that the active transactions set, each counted once."""
    plans = [record.plan for record in records if record.is_active]
    values = {change.tunable for plan in plans for change in (*plan.changes, *plan.claims)}
    return len(values), len({file.path for plan in plans for file in (*plan.files, *plan.claimed_files)})


class Status(msgspec.Struct, frozen=True):
    """Transactions, and the drift of the active ones. ``others`` write such values as well; ``damaged`` are
    transactions whose journals cannot be relied on."""

    records: tuple[Record, ...]
    drift: tuple[Drift, ...]
    others: tuple[OtherWriter, ...] = ()
    damaged: tuple[Damaged, ...] = ()
    stopped_holder: int | None = None
    """The number of a process that holds the store and is stopped: others are refused until it goes on or ends."""
    held_above: tuple[tuple[str, str], ...] = ()
    """Of one transaction that was asked for: the tunables and files that an upper one holds, with its id."""
    lock_holder: str | None = None
    """Who holds the store now, with its number and since when, as the lock says it; None where nobody does."""
    next_boot: tuple[Drift, ...] = ()
    """What the next boot would set otherwise than the active transactions."""

    @property
    def unfinished(self) -> tuple[Record, ...]:
        """Those that were interrupted and are not rolled back yet: a live value may be the one before or after."""
        return tuple(record for record in self.records if record.is_unfinished)

    @property
    def is_as_set(self) -> bool:
        return not self.drift and not self.next_boot and not self.unfinished and not self.unreadable

    @property
    def unreadable(self) -> tuple[Damaged, ...]:
        """Those that are damaged, and not rolled back by their script."""
        return tuple(one for one in self.damaged if not one.by_script)


def host_status(host: Host, store: Store | None = None, identity: str | None = None) -> Status:
    """Every transaction, or one, and the drift of the active ones. Raises PermissionDeniedError without root,
    UsageError where there is none of this id."""
    kept = store or Store()
    records, damaged = kept.survey_records()
    asked = (find_record(records, identity, damaged),) if identity else records
    own = {one.id for one in asked}
    drift = tuple(one for one in find_drift(host, records) if one.transaction in own)
    stopped, holder = kept.stopped_holder(), kept.lock_holder()
    return Status(asked, drift, damaged=() if identity else damaged, stopped_holder=stopped, lock_holder=holder)


def verify_transactions(
    host: Host, identity: str | None, store: Store | None = None, *, with_others: bool = True
) -> Status:
    """Drift of one transaction or of all active ones, and which other tools write what they set (``with_others``; where
    one of these runs, that takes a scan). Raises RefusedError where there is none to verify."""
    everything, damaged = (store or Store()).survey_records()
    asked = (find_record(everything, identity, damaged),) if identity else everything
    if identity and not asked[0].is_active:
        raise RefusedError(f"transaction {asked[0].id} is {asked[0].state}, not active")
    # What an upper layer holds is verified with that layer.
    own = {record.id for record in asked}
    drift = tuple(one for one in find_drift(host, everything) if one.transaction in own)
    others = _find_writers(host, asked) if with_others else ()
    coming = tuple(one for one in find_boot_drift(host, everything) if one.transaction in own)
    above = tuple(item for one in asked for item in _held_above(one, everything)) if identity else ()
    return Status(asked, drift, others, () if identity else damaged, held_above=above, next_boot=coming)


def _held_above(record: Record, everything: Iterable[Record]) -> Iterable[tuple[str, str]]:
    """What upper active transactions hold of what this one set, each with the id of one that does."""
    held = {*values_of(record), *files_of(record)}
    for upper in everything:
        if upper.is_active and sequence_of(upper.id) > sequence_of(record.id):
            yield from ((name, upper.id) for name in (*values_of(upper), *files_of(upper)) if name in held)


def _find_writers(host: Host, records: Iterable[Record]) -> tuple[OtherWriter, ...]:
    in_force = [record for record in records if record.is_active]
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
    permit: Callable[[], object] = lambda: None,
    any_host: bool = False,
) -> tuple[tuple[Record, tuple[ItemOutcome, ...]], ...]:
    """Roll back one transaction, the last one, or all; unfinished ones come first in each case. ``warn`` is called with
    what could not be written meanwhile, ``permit`` under the lock, before anything else; what it raises ends the call.
    """
    if identity and everything:
        raise UsageError(
            "name a transaction or --all, not both",
            hint=f"advisor rollback {identity} rolls one back, advisor rollback --all every active one",
        )
    kept = store or Store()
    # A damaged transaction is rolled back by its script alone: only the others can be asked for.
    if not identity and not (
        (kept.read_records(with_closed=False) if everything else kept.open_records()) or kept.read_records()
    ):
        named = named_directory()
        raise RefusedError(
            "nothing to roll back: there is no transaction",
            hint="advisor status lists all transactions"
            if named is None
            else f"looked for in {named}, which ADVISOR_STATE_DIR names",
        )
    with kept.hold_lock(may_be_read_only=True, stopped_for=STOPPED_SECONDS), interruptible():
        permit()
        done = list(recover_unfinished(host, kept, warn, any_host=any_host))
        bottom = bottom_of(kept.open_records()) if everything else None
        recovered = {one.id for one, _ in done}
        for record in _choose_records(kept, identity, everything=everything, force=force, recovered=recovered):
            place = find_elsewhere(host, record.id, record.plan, record.origin, any_host=any_host)
            if place is not None and everything:
                done.append((record, (ItemOutcome(record.id, "failed", place.why, place.hint),)))
                continue
            before = {one.id for one, _ in done}
            outcomes = roll_back(
                host, record, kept, force=force, warn=warn, unrecorded=before, bottom=bottom, any_host=any_host
            )
            done.append((record, outcomes))
        if not done:
            raise RefusedError("nothing to roll back: no transaction is active")
        return tuple(done)


def _choose_records(
    store: Store, identity: str | None, *, everything: bool, force: bool, recovered: Collection[str]
) -> tuple[Record, ...]:
    if identity:
        named = [record for record in store.open_records() if identity in record.plan.profiles]
        if not named and not is_count(identity):
            named = [record for record in store.readable_records() if identity in record.plan.profiles]
        if named and not any(record.is_active for record in named):
            if recovered:
                return ()
            raise RefusedError(f"nothing to roll back: no transaction of {identity} is active")
        record = store.find_record(identity)
        if record.id in recovered or (recovered and record.state == "rolled-back"):
            return ()
        if record.state != "rolled-back":
            return (record,)
        raise RefusedError(f"nothing to roll back: {record.id} is already rolled back")
    in_force = [
        record
        for record in reversed(store.open_records())
        if record.is_active or (force and record.state in ("kept-external", "unfinished"))
    ]
    if everything:
        return tuple(in_force)
    if not in_force and not recovered and store.read_records():
        raise RefusedError("nothing to roll back: no transaction is active")
    # The last one was the interrupted transaction, which is rolled back.
    return () if recovered else tuple(in_force[:1])


class ConfirmResult(msgspec.Struct, frozen=True):
    """A confirmed transaction, the transactions that it replaced, and the outcome of each of their items."""

    record: Record
    taken_out: tuple[tuple[Record, tuple[ItemOutcome, ...]], ...] = ()


def confirm_switch(
    host: Host, identity: str | None, *, same_session: bool = False, store: Store | None = None
) -> ConfirmResult:
    """Confirm the transaction that awaits it, and roll back those that it replaces. Raises RefusedError
    where none does."""
    kept = store or Store()
    if identity is None and kept.find_waiting() is None:
        raise RefusedError("no transaction awaits confirmation", hint="advisor status lists all transactions")
    with kept.hold_lock(), interruptible():
        record = kept.find_record(identity) if identity else kept.find_waiting()
        if record is None:
            raise RefusedError(
                "too late: no transaction awaits confirmation any more", hint="advisor status shows the outcome"
            )
        confirmed = confirm_record(host, record, kept, same_session=same_session)
        return ConfirmResult(confirmed, finish_switches(host, kept))
