"""Apply a plan as one transaction.

Order: journal, step, read back, tunable by tunable; persistence last, so that a reboot restores the host after a crash
before the end. Any failure rolls back the whole transaction.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from advisor.errors import AdvisorError, CommandError, RefusedError, RestoredError
from advisor.host import Host, Missing, Probe, PutFile, ReadFile, observe
from advisor.host.config_text import or_empty
from advisor.host.device_identity import located
from advisor.host.signals import Interrupted
from advisor.host.would_be import other_names
from advisor.planning.records import Change, Plan
from advisor.shell.rollback_script import rollback_data
from advisor.transaction.journal import Applied, Awaiting, Doing, Done, Journal, Left, Record, Store, Undoing, Undone
from advisor.transaction.layer_ownership import values_of
from advisor.transaction.layers import touched_items
from advisor.transaction.origin import find_elsewhere, origin_of, private_namespaces
from advisor.transaction.reserved_space import release_space
from advisor.transaction.restore import (
    MOVING_KINDS,
    Progress,
    file_content,
    not_restored_error,
    note_entry,
    restore_plan,
)
from advisor.transaction.rollback import STEP_SECONDS, close_rolled_back, settle_claims, taken_over_error, write_scripts
from advisor.transaction.side_effects import on_own_links, settle_changes
from advisor.transaction.watchdog import TakenOverError, Watchdog, current_session, not_started
from advisor.tunables.preflight import LostLink, SideEffect, foreign_links, link_of, place_of
from advisor.tunables.sysctl_group import can_move, coupled_among
from advisor.version import __version__

Gate = Callable[[], int]
"""Called once the live values are active and before anything is written to disk: how many peers answer again. Raises
CommandError to roll all of it back."""


def apply_plan(
    host: Host,
    plan: Plan,
    store: Store,
    *,
    progress: Progress = lambda _: None,
    gate: Gate | None = None,
    confirm_within: float = 0,
    forced: bool = False,
) -> Record:
    """Apply ``plan``; the caller holds ``store.lock()``. ``forced`` goes into the journal.

    On the running host a watchdog rolls it back if this process ends half-way. With ``confirm_within`` seconds it
    also does so unless `confirm` is called in that time, counted from the gate. Raises RefusedError with nothing
    changed, RestoredError when a change failed and everything is restored, NotRestoredError when something is not.
    """
    check_preconditions(host, plan)
    _refuse_other_places(host, plan, store)
    _refuse_other_devices(host, plan, store)
    _refuse_other_links(host, plan, store)
    waits = bool(host.is_live and confirm_within)
    seconds = _step_seconds(plan, confirm_within)
    with begin_transaction(host, plan, store, seconds, forced=forced) as (journal, watchdog):
        at = _Place()
        try:
            moved = _carry_out(host, plan, journal, watchdog, at, progress, gate)
            store.write_script(journal.id, rollback_data(plan, moved, origin=origin_of(host)))
            if waits:
                watchdog.check_ownership()
                watchdog.await_confirmation(confirm_within)
                journal.write_entry(Awaiting(time.time(), confirm_within, current_session()))
        except BaseException as error:
            _roll_back_after(error, host, plan, journal, watchdog, at)
            raise
        if not waits and not watchdog.keep_change():
            raise taken_over_error(host, plan, watchdog)
    record = store.find_record(journal.id)
    if not record.is_active:
        raise taken_over_error(host, plan, watchdog)
    if record.state == "applied":
        record = settle_claims(store, record)
    write_scripts(store, record)
    return record


_LINK_STEP_SECONDS = (10.0, 60.0)
_GATE_SECONDS = 45.0
"""For links to come up and everybody to answer again (`advisor.reach.await_gate`), with a margin."""


def _step_seconds(plan: Plan, confirm_within: float) -> float:
    """After how long without a next step a client counts as hung."""
    if not plan.has_link_risk:
        return STEP_SECONDS
    least, most = _LINK_STEP_SECONDS
    return min(max(confirm_within, least), most)


@contextlib.contextmanager
def begin_transaction(
    host: Host, plan: Plan, store: Store, step_seconds: float | None, *, forced: bool = False
) -> Iterator[tuple[Journal, Watchdog]]:
    """Journal, rollback script and watchdog, all there before anything is changed. Raises RefusedError.

    A watchdog of a tree is there as files alone: no process of its own acts on what is no running host.
    """
    origin = origin_of(host)
    data = rollback_data(plan, origin=origin)
    begun = store.begin_journal(plan, origin=origin, version=__version__, data=data, forced=forced)
    with begun as journal:
        watchdog = store.watchdog_of(journal.id)
        if host.is_live:
            try:
                watchdog.start_watching(persists=plan.persists, state="pending", step_seconds=step_seconds)
            except BaseException as error:
                note_entry(journal, Undoing(time.time(), "the watchdog could not be started"))
                note_entry(journal, Undone(time.time(), ()))
                watchdog.close_files()
                release_space(journal.directory)
                if isinstance(error, OSError):
                    raise not_started(watchdog, error) from error
                raise
        yield journal, watchdog


class _Place:
    """Which item is being worked on: its live value may be neither before nor after, and is the transaction's still.

    What was not ``announced`` is not the transaction's, unless it has the value that the plan sets.
    """

    def __init__(self) -> None:
        self.what: str | None = None
        self.external: str | None = None
        self.announced: set[str] = set()

    def announce_step(self, what: str) -> None:
        self.what = what
        self.announced.add(what)


_READ_AGAIN = "nothing was changed; plan again once it can be read"


def check_preconditions(host: Host, plan: Plan) -> None:
    """What must hold before the journal is opened. Raises RefusedError."""
    if plan.blocking:
        first = plan.blocking[0]
        raise RefusedError(f"{first.tunable}: {first.reason}", hint="advisor plan shows everything that is blocked")
    if plan.is_empty:
        reason = plan.skipped[0].reason if plan.skipped else "it sets nothing"
        raise RefusedError(f"nothing of this profile applies here: {reason}", hint="advisor plan lists every item")
    machine = host.read("/etc/machine-id")
    if plan.machine_id is not None and machine != plan.machine_id:
        raise RefusedError("the plan was made for another host (its machine-id differs)")
    if host.is_live and (plan.namespace or {}).items() - private_namespaces(host).items():
        raise RefusedError("the plan was made in another network or IPC namespace", hint="plan again")
    for why in foreign_links(host, plan.links).values():
        raise RefusedError(f"changed since the plan was made: {why}", hint="plan again")
    # What a device is found by is compared with that of all others, for each value.
    reading = host.remembering()
    for change in (*plan.changes, *plan.claims):
        live = observe(reading, change.probe)
        if isinstance(live, Missing):
            raise RefusedError(f"{change.tunable}: cannot be read: {live.why}", hint=_READ_AGAIN)
        if live != change.before:
            raise RefusedError(f"{change.tunable}: changed since the plan was made", hint="plan again")
    for file in plan.files:
        content = file_content(host, file.path)
        if isinstance(content, Missing):
            raise RefusedError(f"{file.path}: cannot be read: {content.why}", hint=_READ_AGAIN)
        if content != file.before:
            raise RefusedError(f"{file.path}: changed since the plan was made", hint="plan again")
        if linked := other_names(host.locate(file.path)):
            raise RefusedError(f"{file.path}: {linked}", hint="or use --runtime-only")
        # Asked for before the first live value is touched; a disk that fills up later makes the transaction roll back.
        parent = (file.new_directories or (file.path,))[-1].rpartition("/")[0] or "/"
        if not os.access(host.locate(f"{parent.rstrip('/')}/x").rpartition("/")[0] or "/", os.W_OK):
            raise RefusedError(f"{file.path}: its directory cannot be written to", hint="or use --runtime-only")


def _refuse_other_places(host: Host, plan: Plan, store: Store) -> None:
    """An id can be no layer on one of the same name in another namespace, nor one of what could not be restored,
    nor any on those of another machine. Raises RefusedError."""
    own = {one.tunable for one in (*plan.changes, *plan.claims)} | {file.path for file in plan.files}
    for record in store.open_records():
        if record.is_active or record.is_unfinished:
            place = find_elsewhere(host, record.id, record.plan, record.origin)
            shared = sorted(own & touched_items(record))
            if place is not None and (place.is_machine or shared):
                raise place.as_error(record.id)
            if record.is_unfinished and shared:
                raise RefusedError(
                    f"{shared[0]}: transaction {record.id} could not restore it, and it is not as it was before that",
                    hint=f"advisor rollback {record.id}",
                )


def _refuse_other_devices(host: Host, plan: Plan, store: Store) -> None:
    """An id can be no layer on one of the same name that is set on another device, or is not found. Raises
    RefusedError."""
    host = host.remembering()
    places = {one.tunable: _find_device(host, one.probe) for one in (*plan.changes, *plan.claims)}
    if not any(places.values()):
        return
    irqs = {place: name for name, place in places.items() if name.startswith("irq:") and isinstance(place, str)}
    for record in store.open_records():
        for name, change in values_of(record).items() if record.is_active else ():
            own = irqs.get(place) if isinstance(place := _find_device(host, change.probe), str) else None
            if own is not None and own != name:
                raise RefusedError(
                    f"{own}: transaction {record.id} holds it as {name}, its number then",
                    hint=f"roll it back first: advisor rollback {record.id}",
                )
            if places.get(name) and places[name] != (_find_device(host, change.probe) or places[name]):
                raise RefusedError(
                    f"{name}: transaction {record.id} holds it on another device, which had this name then",
                    hint=f"roll it back first: advisor rollback {record.id}",
                )


def _refuse_other_links(host: Host, plan: Plan, store: Store) -> None:
    """An id can be no layer on one of the same name that an active transaction holds on another link, or on one that
    is not found. Raises RefusedError."""
    own = {one.tunable for one in (*plan.changes, *plan.claims)} | {one.tunable for one in plan.side_effects}
    named = {mark.name for mark in plan.links}
    for record in store.open_records():
        if not record.is_active:
            continue
        places = {mark.name: place_of(host, mark) for mark in record.plan.links if mark.name in named}
        for name in sorted(own & touched_items(record)):
            link = link_of(name)
            place = places.get(link, link) if link else None
            if link is None or place is None or place == link:
                continue
            if isinstance(place, LostLink):
                raise RefusedError(
                    f"{name}: transaction {record.id} holds it on a link that is not found ({place.why})",
                    hint=f"roll it back first: advisor rollback {record.id}",
                )
            raise RefusedError(
                f"{name}: transaction {record.id} holds it on another link (named {link} then, {place} now)",
                hint=f"roll it back first: advisor rollback {record.id}; or name that link {place}",
            )


def _find_device(host: Host, probe: Probe) -> str | Missing | None:
    """Where the value of a block device is now; None for all others."""
    if not isinstance(probe, ReadFile) or probe.identity is None:
        return None
    return located(host, probe.path, probe.identity)


def _carry_out(
    host: Host, plan: Plan, journal: Journal, watchdog: Watchdog, at: _Place, progress: Progress, gate: Gate | None
) -> Mapping[str, str]:
    """Carry the plan out. Returns the values of its side effects, by tunable."""
    expected = _Expected(host, plan.changes)
    left: set[str] = set()
    for change in plan.changes:
        watchdog.check_ownership()
        check_link(host, plan, change)
        expected.check_before_step(change, at)
        at.announce_step(change.tunable)
        journal.write_entry(Doing(change.tunable))
        progress(f"{change.tunable}: {or_empty(change.before)} → {or_empty(change.after)}")
        watchdog.check_ownership()
        why = set_value(host, change)
        watchdog.check_ownership()
        if why is not None:
            left.add(change.tunable)
            journal.write_entry(Left(change.tunable, why))
            progress(f"{change.tunable}: skipped, the kernel manages it ({why})")
        elif change.steps:
            journal.write_entry(Done(change.tunable, read_back(host, change)))
        expected.note_moves(change)
    at.what = None
    settle_changes(host, [one for one in plan.changes if one.tunable not in left])
    _restore_lost(host, on_own_links(host, plan).plan.side_effects)
    peers = None
    if gate is not None:
        watchdog.extend_limit(_GATE_SECONDS)
        peers = gate()
    for file in plan.files:
        watchdog.check_ownership()
        if file_content(host, file.path) != file.before:
            raise CommandError(f"{file.path}: changed since the plan was made")
        at.announce_step(file.path)
        journal.write_entry(Doing(file.path))
        progress(f"{file.path}: {'written' if file.before is None else 'changed'}")
        watchdog.check_ownership()
        host.do(PutFile(file.path, file.after, file.mode, file.uid, file.gid))
        watchdog.check_ownership()
        journal.write_entry(Done(file.path, None))
    for step in dict.fromkeys(step for file in plan.files for step in file.reload):
        host.do(step)
    watchdog.check_ownership()
    for change in plan.changes:
        if not change.steps:
            at.what = change.tunable
            journal.write_entry(Done(change.tunable, read_back(host, change)))
    for change in plan.changes:
        # A later step may have changed it.
        if change.steps and change.tunable not in left:
            read_back(host, change)
    possible = on_own_links(host, plan).plan.side_effects
    moved = {one.tunable: live for one in possible if isinstance(live := observe(host, one.probe), str)}
    watchdog.check_ownership()
    journal.write_entry(Applied(time.time(), moved, peers=peers))
    return moved


def check_link(host: Host, plan: Plan, change: Change) -> None:
    """The link is the one that the plan was made for. Raises CommandError."""
    own = [mark for mark in plan.links if mark.name == link_of(change.tunable)]
    for why in foreign_links(host, own).values():
        raise CommandError(f"{change.tunable}: {why}", hint="plan again")


class _Expected:
    """What each value reads right before it is set, as far as this transaction's own steps explain it."""

    def __init__(self, host: Host, changes: tuple[Change, ...]) -> None:
        self._host = host
        among = coupled_among([one.tunable for one in changes])
        self._moving = [one for one in changes if one.tunable.startswith(MOVING_KINDS) or one.tunable in among]
        self._moved: dict[str, str | Missing] = {}

    def check_before_step(self, change: Change, at: _Place) -> None:
        """What another process has set since the plan was made is not overwritten. Raises CommandError."""
        live = observe(self._host, change.probe)
        is_own = change in self._moving and live == change.after
        if live == change.before or is_own or (self._moved and live == self._moved.get(change.tunable)):
            return
        found = (
            f"cannot be read: {live.why}" if isinstance(live, Missing) else f"expected {change.before}, found {live}"
        )
        at.external = change.tunable
        raise CommandError(f"{change.tunable}: changed since the plan was made: {found}", hint="plan again")

    def note_moves(self, change: Change) -> None:
        """After a step: what it may have moved is looked at. The CPUs of an interrupt move nothing else."""
        if change.tunable.startswith("irq:"):
            return
        if change in self._moving or any(can_move(change.tunable, one.tunable) for one in self._moving):
            for one in self._moving:
                self._moved[one.tunable] = observe(self._host, one.probe)


def _restore_lost(host: Host, side_effects: Iterable[SideEffect]) -> None:
    """Restore addresses and routes that a link lost while it was changed. What cannot be restored yet (IPv6 below 1280
    bytes of MTU) is restored with the rollback."""
    for one in side_effects:
        if one.keeps and observe(host, one.probe) != one.before:
            for step in one.undo:
                with contextlib.suppress(CommandError):
                    host.do(step)


def set_value(host: Host, change: Change) -> str | None:
    """Carry a change's steps out. The kernel's words where it manages an interrupt itself, which is no failure.

    genirq answers EIO or EPERM to a write into a managed affinity; older kernels give no sign of it beforehand.
    """
    try:
        for step in change.steps:
            host.do(step)
    except CommandError as error:
        if change.tunable.startswith("irq:") and error.errno in (errno.EIO, errno.EPERM):
            return error.message
        raise
    return None


def read_back(host: Host, change: Change) -> str:
    live = observe(host, change.probe)
    if live != change.after:
        found = f"cannot be read: {live.why}" if isinstance(live, Missing) else f"reads {live}"
        raise CommandError(f"{change.tunable}: set to {change.after}, but {found}")
    return change.after


def _roll_back_after(
    error: BaseException, host: Host, plan: Plan, journal: Journal, watchdog: Watchdog, at: _Place
) -> None:
    """Roll back a transaction that failed, whatever the reason. Raises RestoredError for what a host or a tool refused,
    NotRestoredError; returns for an interrupt and for a bug, which go on to the caller."""
    reason = str(error) or type(error).__name__
    if not watchdog.claim_rollback():
        raise taken_over_error(host, plan, watchdog, at.what) from error
    try:
        outcomes = restore_plan(
            host,
            plan,
            journal,
            why=reason,
            force_one=at.what,
            announced=at.announced,
            external=at.external,
            check=watchdog.check_ownership,
        )
    except TakenOverError:
        raise taken_over_error(host, plan, watchdog, at.what) from error
    close_rolled_back(journal, watchdog, outcomes)
    lost = tuple(one for one in outcomes if not one.is_back)
    if lost:
        raise not_restored_error(reason, lost) from error
    if isinstance(error, AdvisorError | OSError):
        hint = error.hint if isinstance(error, AdvisorError) else None
        raise RestoredError(f"{reason}; everything has been rolled back", hint=hint) from error
    if isinstance(error, Interrupted):
        error.rolled_back = journal.id
