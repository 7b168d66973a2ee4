"""Roll a transaction back, and finish what a crash, a watchdog or a rollback script has left open."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator

import msgspec

from advisor.errors import AdvisorError, NotRestoredError, RefusedError, RestoredError
from advisor.facts.writers import is_as_said, last_write, read_boot_settings
from advisor.host import Host
from advisor.planning.records import Plan
from advisor.shell.rollback_script import rollback_data
from advisor.transaction.journal import (
    BY_SCRIPT,
    Applied,
    Bottom,
    Confirmed,
    Damaged,
    Journal,
    Record,
    Store,
    Undoing,
    Undone,
    damaged_above,
    kept_items,
)
from advisor.transaction.layers import (
    LayerRollback,
    claim_owned,
    data_of,
    plan_layer_rollback,
    still_active,
    touched_items,
)
from advisor.transaction.origin import find_elsewhere, gone_kinds, origin_of
from advisor.transaction.reserved_space import ignore_errors, release_space
from advisor.transaction.restore import (
    Progress,
    kept_outcomes,
    not_restored_error,
    note_entry,
    restore_change,
    restore_file,
    restore_plan,
)
from advisor.transaction.side_effects import ItemOutcome
from advisor.transaction.watchdog import TakenOverError, Watchdog, current_session
from advisor.transaction.watchdog import WatchdogOutcome as Watched
from advisor.tunables import namespace_of

STEP_SECONDS = 300.0
"""For one step of a plan that puts no link at risk: a command has 60 s, and a file may lie on NFS."""


def taken_over_error(host: Host, plan: Plan, watchdog: Watchdog, at: str | None = None) -> AdvisorError:
    """What to report for a client whose transaction the watchdog has rolled back meanwhile.

    ``at`` is the item that the client was at: a step that was already on its way when it was stopped may have come
    after the watchdog, and is undone here. Only that item: whatever else it reads now is not this client's.
    """
    outcome = watchdog.await_outcome()
    if outcome is None:
        return NotRestoredError("the watchdog took over and has not reported a result", hint="advisor status")
    kept = {name for name, _ in kept_items(plan, outcome)}
    is_late = at is not None and at not in kept
    late = [restore_change(host, plan, one, force=True) for one in plan.changes if is_late and one.tunable == at]
    late += [restore_file(host, one, force=False) for one in plan.files if is_late and one.path == at]
    lost = tuple(one for one in (*watched_outcomes(plan, outcome), *late) if not one.is_back)
    if lost:
        return not_restored_error(f"the watchdog took over ({outcome.why})", lost)
    return RestoredError(f"the watchdog took over ({outcome.why}); everything has been rolled back")


def watched_outcomes(plan: Plan, outcome: Watched) -> tuple[ItemOutcome, ...]:
    """What the watchdog did, item by item."""
    lost = dict(kept_items(plan, outcome))
    names = [file.path for file in reversed(plan.files)] + [change.tunable for change in reversed(plan.changes)]
    back = [ItemOutcome(name, "restored", "by the watchdog") for name in names if name not in lost]
    return (
        *back,
        *(ItemOutcome(name, "kept" if why.startswith("kept") else "failed", why) for name, why in lost.items()),
    )


def close_rolled_back(journal: Journal, watchdog: Watchdog, outcomes: Iterable[ItemOutcome]) -> None:
    """Close a transaction that is rolled back. Where its journal could not say so, it stays open: the next run, or the
    watchdog, looks at each item again and records that."""
    if not journal.is_ended:
        return
    watchdog.close_files()
    if all(one.is_back for one in outcomes):
        release_space(journal.directory)


def roll_back(
    host: Host,
    record: Record,
    store: Store,
    *,
    force: bool = False,
    warn: Progress = lambda _: None,
    unrecorded: Collection[str] = (),
    bottom: Bottom | None = None,
    any_host: bool = False,
) -> tuple[ItemOutcome, ...]:
    """Roll a transaction back, also one below upper layers; the caller holds ``store.lock()``.

    What an active upper layer holds stays as it is, and is restored with that one. Where the disk is full or
    read-only, values and files are restored all the same, and ``warn`` is given what could not be written.
    ``unrecorded`` are transactions that were rolled back before without a record of it. Where all are rolled back,
    ``bottom`` is where that ends: what reads so already was not modified externally. Raises RefusedError where it is of
    another machine (unless ``any_host``) or of namespaces that this process is not in, where an upper layer still
    awaits confirmation, its journal is damaged, or cannot be written; RestoredError or NotRestoredError where the
    watchdog took over because this process did not get on.
    """
    place = find_elsewhere(host, record.id, record.plan, record.origin, any_host=any_host)
    if place is not None:
        raise place.as_error(record.id)
    surveyed, damaged = store.survey_records(with_closed=False)
    records = tuple(one for one in surveyed if one.id not in unrecorded)
    _refuse_under_damaged(record, damaged)
    taken = plan_layer_rollback(host, record, records, force=force)
    gone = gone_kinds(host, record.plan, record.origin)
    remaining, went = _without_gone(taken.remaining, gone)
    own = msgspec.structs.replace(record, plan=remaining, side_effects_after=taken.side_effects.after)
    why = "interrupted" if record.is_unfinished else "asked for"
    watchdog = store.watchdog_of(record.id)
    with store.reopen_journal(record.id, may_fail=True) as journal:
        is_open = watchdog.read_state().open is not None
        outcome = _claim_rollback(watchdog, warn)
        if outcome is not None:
            _record_outcome(journal, watchdog, own, taken, outcome)
            return (*taken.outcomes, *went, *watched_outcomes(own.plan, outcome))
        if taken.upper:
            try:
                _hand_over(store, own, journal, taken, why, record.fingerprint)
            except RefusedError:
                if not is_open and not journal.is_begun:
                    ignore_errors(watchdog.close_files)
                raise
        if host.is_live and not watchdog.stands_down:
            _start_again(own.plan, watchdog, warn)
        try:
            outcomes = restore_plan(
                host,
                _of_this_boot(host, own),
                journal,
                why=why,
                force=force,
                force_one=record.pending if record.is_unfinished else None,
                side_effects_after=own.side_effects_after,
                taken=taken,
                bottom=bottom,
                announced=None if record.was_applied else set(record.announced),
                reloads=record.state == "unfinished",
                check=watchdog.check_ownership,
            )
        except TakenOverError as error:
            raise _taken_over_while_undoing(host, own, journal, watchdog, taken) from error
        if not journal.is_ended:
            warn(
                f"{journal.directory}: cannot be written: the rollback of {record.id} is not recorded; once "
                f"it can be written, run: advisor rollback {record.id}"
            )
        close_rolled_back(journal, watchdog, outcomes)
    if not all(one.is_back for one in outcomes):
        # What is left over alone: the rest may be another transaction's by then.
        ignore_errors(lambda: store.write_script(record.id, data_of(store.find_record(record.id), records)))
    write_scripts(store, record)
    return (
        *_set_again_at_boot(host, record.plan, outcomes),
        *went,
        *(still_active(record, records) if record.is_active else ()),
    )


def _set_again_at_boot(host: Host, plan: Plan, outcomes: Iterable[ItemOutcome]) -> Iterator[ItemOutcome]:
    """The outcomes, which say of a restored value that a file of somebody else gives it another one at boot."""
    names = {one.tunable: one.before for one in plan.changes if one.persist is not None}
    found = read_boot_settings(host, names) if names else None
    for one in outcomes:
        write = last_write(found, one.what) if found and one.state == "restored" and one.what in names else None
        if write is not None and write.value is not None and not is_as_said(one.what, names[one.what], write.value):
            one = msgspec.structs.replace(one, detail=f"{one.detail}; at the next boot: {write.sentence}")
        yield one


def _without_gone(plan: Plan, kinds: Collection[str]) -> tuple[Plan, tuple[ItemOutcome, ...]]:
    """A plan without the values of namespaces that are gone, and what to say of these."""
    if not kinds:
        return plan, ()
    changes = tuple(one for one in plan.changes if namespace_of(one.tunable) not in kinds)
    gone = (one.tunable for one in plan.changes if one not in changes)
    side_effects = tuple(one for one in plan.side_effects if namespace_of(one.tunable) not in kinds)
    said = tuple(ItemOutcome(name, "already", "is gone with its namespace") for name in gone)
    return msgspec.structs.replace(plan, changes=changes, side_effects=side_effects), said


_ROLLBACK_SECONDS = 30.0
"""For one step of a rollback that changes links."""


def _claim_rollback(watchdog: Watchdog, warn: Progress) -> Watched | None:
    """Claim the rollback for this process. Returns the watchdog's outcome where that was faster, else None."""
    standing = watchdog.read_state()
    if standing.outcome is not None:
        return standing.outcome
    if standing.open is not None:
        if watchdog.claim_rollback():
            if watchdog.stands_down:
                warn(f"{watchdog.directory}: cannot be written: it is rolled back without a watchdog")
            return None
        outcome = watchdog.await_outcome()
        if outcome is not None:
            return outcome
    try:
        watchdog.open_files("taken")
    except OSError as error:
        watchdog.stand_down()
        warn(f"{watchdog.directory}: {error.strerror}: it is rolled back without a watchdog")
    return None


def _start_again(plan: Plan, watchdog: Watchdog, warn: Progress) -> None:
    """Start a watchdog of the rollback. Where none can be started the rollback goes on: a delay improves nothing."""
    seconds = _ROLLBACK_SECONDS if plan.has_link_risk else STEP_SECONDS
    try:
        watchdog.start_watching(persists=plan.persists, state="taken", step_seconds=seconds)
    except OSError as error:
        watchdog.stand_down()
        warn(f"the watchdog cannot be started ({error.strerror or error}): it is rolled back without one")


def _record_outcome(journal: Journal, watchdog: Watchdog, own: Record, taken: LayerRollback, outcome: Watched) -> None:
    """Journal the outcome of the watchdog, and remove its own file only then."""
    note_entry(journal, Undoing(time.time(), outcome.why))
    kept = (*kept_outcomes(taken.outcomes), *kept_items(own.plan, outcome))
    note_entry(journal, Undone(outcome.time, kept, taken.passed))
    if journal.is_ended:
        watchdog.forget_outcome()
        watchdog.close_files()
        if not kept:
            release_space(journal.directory)


def _taken_over_while_undoing(
    host: Host, own: Record, journal: Journal, watchdog: Watchdog, taken: LayerRollback
) -> AdvisorError:
    """What to report for a rollback that its watchdog has ended, since this process did not get on with it."""
    error = taken_over_error(host, own.plan, watchdog)
    outcome = watchdog.read_state().outcome
    if outcome is not None:
        _record_outcome(journal, watchdog, own, taken, outcome)
    return error


def _refuse_under_damaged(record: Record, damaged: Iterable[Damaged]) -> None:
    above = damaged_above(record, damaged)
    if above:
        raise RefusedError(
            f"upper layer {above[0].id} is damaged, and what it holds is unknown: {above[0].message}",
            hint=above[0].as_error.hint,
        )


def _hand_over(store: Store, own: Record, journal: Journal, taken: LayerRollback, why: str, fingerprint: str) -> None:
    """Journal the upper layers without this transaction, and write their scripts, before the first step.

    If it is interrupted in between, this transaction is unfinished, and the next run ends it. Raises RefusedError.
    """
    try:
        journal.write_entry(Undoing(time.time(), why))
        for upper in taken.upper:
            without = (*(one for one in upper.without if one != own.id), own.id)
            with store.reopen_journal(upper.id) as theirs:
                theirs.write_entry(Applied(time.time(), upper.side_effects_after, upper.plan, without))
        records = [one for one in store.open_records() if one.id != own.id]
        for upper in taken.upper:
            store.write_script(upper.id, data_of(store.find_record(upper.id), records))
        cut_off = msgspec.structs.replace(own.plan, side_effects=taken.cut_off.side_effects)
        store.write_script(
            own.id, rollback_data(cut_off, taken.cut_off.after, fingerprint=fingerprint, origin=own.origin)
        )
    except OSError as error:
        raise RefusedError(
            f"{store.directory}: the journal cannot be written: {error.strerror}",
            hint=f"once it can be written: advisor rollback {own.id}; advisor rollback --all needs no journal",
        ) from error


def write_scripts(store: Store, changed: Record) -> None:
    """Write the scripts of the active transactions that share something with ``changed``, which began or ended.

    A script that cannot be written stays safe: it skips what it finds set by another transaction.
    """
    records, damaged = store.survey_records(with_closed=False)
    for record in records:
        is_known = record.is_active and not damaged_above(record, damaged)
        if is_known and record.id != changed.id and touched_items(changed) & touched_items(record):
            with contextlib.suppress(OSError):
                store.write_script(record.id, data_of(record, records))


def _of_this_boot(host: Host, record: Record) -> Plan:
    """The plan without side effects that each boot resets, where the host was booted since."""
    if record.boot_id == origin_of(host).boot_id:
        return record.plan
    return msgspec.structs.replace(
        record.plan, side_effects=tuple(one for one in record.plan.side_effects if not one.resets)
    )


def recover_unfinished(
    host: Host, store: Store, warn: Progress = lambda _: None, *, any_host: bool = False
) -> tuple[tuple[Record, tuple[ItemOutcome, ...]], ...]:
    """Roll back every transaction of this place that a crash, a kill or a power cut left unfinished; the caller holds
    the lock.

    One that a watchdog rolled back is among them, once: its outcome goes into the journal. A switch that was cut
    off once the new transaction was kept is finished. What a kill has left of a closed one is removed.
    """
    # Journal what rollback scripts have rolled back; the caller holds the lock.
    for record in store.open_records():
        if record.by_script:
            _take_down_note(host, record, store)
    unfinished = [record for record in store.open_records() if record.is_unfinished or record.by_watchdog]
    done: list[tuple[Record, tuple[ItemOutcome, ...]]] = []
    for record in reversed(unfinished):
        place = find_elsewhere(host, record.id, record.plan, record.origin, any_host=any_host)
        if place is not None:
            warn(f"{record.id} was not finished, and {place.why}: {place.hint}")
        else:
            outcomes = roll_back(host, record, store, warn=warn, any_host=any_host)
            again = store.find_record(record.id)
            # What a watchdog could not restore is tried again, once that is in the journal.
            if record.by_watchdog and again.is_unfinished:
                outcomes = roll_back(host, again, store, warn=warn, any_host=any_host)
            done.append((record, outcomes))
    store.remove_leftovers(is_live=host.is_live)
    return (*done, *finish_switches(host, store, warn))


def _take_down_note(host: Host, record: Record, store: Store) -> None:
    watchdog = store.watchdog_of(record.id)
    # The watchdog guards a transaction until its time to confirm is over, and reports its own outcome once it acts.
    if watchdog.read_state().open is not None and not watchdog.claim_rollback():
        return
    with store.reopen_journal(record.id, may_fail=True) as journal:
        if not ignore_errors(lambda: watchdog.open_files("taken")):
            return
        note_entry(journal, Undoing(record.ended or time.time(), BY_SCRIPT))
        note_entry(journal, Undone(record.ended or time.time(), ()))
        if journal.is_ended:
            watchdog.forget_outcome()
        close_rolled_back(journal, watchdog, ())
    write_scripts(store, record)


def finish_switches(
    host: Host, store: Store, warn: Progress = lambda _: None
) -> tuple[tuple[Record, tuple[ItemOutcome, ...]], ...]:
    """Roll back what a confirmed transaction replaces; the caller holds the lock.

    The oldest first: what only such transactions hold is then restored at once, and not from layer to layer.
    """
    records = store.open_records()
    replaced = {one for record in records if record.state == "applied" for one in record.plan.instead_of}
    out = [record for record in records if record.id in replaced and record.is_active]
    return tuple((record, roll_back(host, store.find_record(record.id), store, warn=warn)) for record in out)


# Confirm a transaction that awaits it.

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
