"""Carrying a plan out as one transaction, putting it back, and telling whether it is still in force.

Order: journal, step, read back, tunable by tunable; persistence last, so that a crash before the end leaves a host
that a reboot heals by itself. Any failure puts everything back. Putting back compares three values, before, after and
live, and keeps what somebody else has changed since.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from advisor.errors import AdvisorError, CommandError, NotRestoredError, RefusedError, RestoredError
from advisor.host import Host, Missing, Probe, PutFile, ReadFile, observe
from advisor.host.device_identity import located
from advisor.i18n import N_, msg
from advisor.planning.records import Bystander, Change, FileChange, Plan
from advisor.planning.unmerge import holds, settings_of
from advisor.shell.rollback_script import commands_by_hand, hand_command, queue_file, rollback_script
from advisor.transaction.coupled import Coupled, settle_changes
from advisor.transaction.journal import (
    BY_SCRIPT,
    Applied,
    Awaiting,
    Bottom,
    Confirmed,
    Damaged,
    Doing,
    Done,
    Entry,
    Journal,
    Left,
    Record,
    Store,
    Undoing,
    Undone,
    damaged_above,
    kept_items,
    sequence,
)
from advisor.transaction.layer_ownership import files_of, values_of
from advisor.transaction.layers import TakenOut, left_in_force, overlaid, script_of, set_again, take_out, touched
from advisor.transaction.own_links import OwnLinks, now_named, on_own_link, on_own_links
from advisor.transaction.reserved_space import ignore_errors, release
from advisor.transaction.side_effects import ItemOutcome as ItemOutcome
from advisor.transaction.side_effects import give_back, restore_lost, restore_surroundings, standing_of
from advisor.transaction.watchdog import TakenOverError, Watchdog, not_started, session
from advisor.transaction.watchdog import WatchdogOutcome as Watched
from advisor.tunables.link_mark import LostLink, foreign_links, link_of, place_of
from advisor.tunables.sysctl_group import can_move, coupled_among, is_moved
from advisor.version import __version__

Progress = Callable[[str], None]


class Drift(msgspec.Struct, frozen=True):
    """A live or persisted value that is not what the transaction set. ``live`` is None where it could not be read."""

    transaction: str
    what: str
    wanted: str
    live: str | None
    reason: str


Gate = Callable[[], None]
"""Asked once the live values are in force and before anything is written to disk. Raises CommandError to have all of it
put back."""


def apply_plan(
    host: Host,
    plan: Plan,
    store: Store,
    *,
    progress: Progress = lambda _: None,
    gate: Gate | None = None,
    confirm_within: float = 0,
) -> Record:
    """Carry ``plan`` out; the caller holds ``store.lock()``.

    On the running host a watchdog puts it back should this process end half-way. With ``confirm_within`` seconds it
    also does so unless `confirm` is called in that time, counted from the gate. Raises RefusedError with nothing
    changed, RestoredError when a change failed and all is back, NotRestoredError when something could not be put back.
    """
    _preflight(host, plan)
    _refuse_other_devices(host, plan, store)
    _refuse_other_links(host, plan, store)
    waits = bool(host.is_live and confirm_within)
    with _begin(host, plan, store, _step_seconds(plan, confirm_within)) as (journal, watchdog):
        at = _Place()
        try:
            moved = _carry_out(host, plan, journal, watchdog, at, progress, gate)
            store.write_script(journal.id, _encoded(rollback_script(plan, moved)))
            if waits:
                watchdog.check()
                watchdog.await_confirmation(confirm_within)
                journal.write(Awaiting(time.time(), confirm_within, session()))
        except BaseException as error:
            _put_back_after(error, host, plan, journal, watchdog, at)
            raise
        if not waits and not watchdog.keep():
            raise _taken_over(host, plan, watchdog)
    record = store.record(journal.id)
    if not record.is_in_force:
        raise _taken_over(host, plan, watchdog)
    if record.state == "applied":
        record = _settled(store, record)
    _write_scripts(store, record)
    return record


_LINK_STEP_SECONDS: Final = (10.0, 60.0)
_GATE_SECONDS: Final = 45.0
"""For links to come up and everybody to answer again (`advisor.reach.await_gate`), with a margin."""
_TRIAL_SECONDS: Final = 60.0
"""For one step of a trial, and for the time that its process may be stopped between two."""
_STEP_SECONDS: Final = 300.0
"""For one step of a plan that puts no link at risk: a command has 60 s, and a file may lie on NFS."""


def _step_seconds(plan: Plan, confirm_within: float) -> float:
    """After how long without a next step a client counts as hung."""
    if not plan.has_link_risk:
        return _STEP_SECONDS
    least, most = _LINK_STEP_SECONDS
    return min(max(confirm_within, least), most)


@contextlib.contextmanager
def _begin(host: Host, plan: Plan, store: Store, step_seconds: float | None) -> Iterator[tuple[Journal, Watchdog]]:
    """Journal, rollback script and watchdog, all there before anything is changed. Raises RefusedError.

    A watchdog of a tree is there as files alone: no process of its own acts on what is no running host.
    """
    script = _encoded(rollback_script(plan))
    with store.begin(plan, boot_id=_boot_id(host), version=__version__, script=script) as journal:
        watchdog = store.watchdog(journal.id)
        if host.is_live:
            try:
                watchdog.start(persists=plan.persists, state="pending", step_seconds=step_seconds)
            except BaseException as error:
                _note(journal, Undoing(time.time(), N_("the watchdog could not be started")))
                _note(journal, Undone(time.time(), ()))
                watchdog.close()
                release(journal.directory)
                if isinstance(error, OSError):
                    raise not_started(watchdog, error) from error
                raise
        yield journal, watchdog


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
    record = _settled(store, store.record(record.id))
    _write_scripts(store, record)
    return record


def _settled(store: Store, record: Record) -> Record:
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
        store.write_script(record.id, _encoded(script_of(record, store.readable())))
    except OSError:
        # It then goes back to what it found, as what another profile sets does.
        return store.record(record.id)
    return record


def _taken_over(host: Host, plan: Plan, watchdog: Watchdog, at: str | None = None) -> AdvisorError:
    """What to report for a client whose transaction the watchdog has rolled back meanwhile.

    ``at`` is the item that the client was at: a step that was already on its way when it was stopped may have come
    after the watchdog, and is undone here. Only that item: whatever else it reads now is not this client's.
    """
    outcome = watchdog.await_outcome()
    if outcome is None:
        return NotRestoredError("the watchdog took over and has not said what came of it", hint="advisor status")
    kept = {name for name, _ in kept_items(plan, outcome)}
    is_late = at is not None and at not in kept
    late = [_restore_change(host, plan, one, force=True) for one in plan.changes if is_late and one.tunable == at]
    late += [_restore_file(host, one, force=False) for one in plan.files if is_late and one.path == at]
    lost = tuple(one for one in (*watched_outcomes(plan, outcome), *late) if not one.is_back)
    if lost:
        return _not_restored(msg("the watchdog took over ({why})", why=outcome.why), lost)
    return RestoredError(msg("the watchdog took over ({why}); everything has been put back", why=outcome.why))


def watched_outcomes(plan: Plan, outcome: Watched) -> tuple[ItemOutcome, ...]:
    """What the watchdog did, item by item."""
    lost = dict(kept_items(plan, outcome))
    names = [file.path for file in reversed(plan.files)] + [change.tunable for change in reversed(plan.changes)]
    back = [ItemOutcome(name, "restored", N_("by the watchdog")) for name in names if name not in lost]
    return (
        *back,
        *(ItemOutcome(name, "kept" if why.startswith("kept") else "failed", why) for name, why in lost.items()),
    )


def _encoded(script: str) -> bytes:
    return script.encode("utf-8", "surrogateescape")


class _Place:
    """Which item was being worked on: its live value may be neither before nor after, and is ours all the same. What
    was not ``announced`` is not ours, unless it reads as we meant to set it."""

    def __init__(self) -> None:
        self.what: str | None = None
        self.external: str | None = None
        self.announced: set[str] = set()

    def announce(self, what: str) -> None:
        self.what = what
        self.announced.add(what)


class _Pace:
    """Keeps the watchdog's limit ahead while a trial runs, between its steps: a measurement may take minutes, but a
    process that is stopped, or blocked in a step, does not come to it."""

    def __init__(self, watchdog: Watchdog | None) -> None:
        self._watchdog = watchdog
        self._step = threading.Lock()
        self._is_over = threading.Event()

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Raises TakenOverError before and after the block, where the transaction is no longer this process's."""
        with self._step:
            self._check()
            yield
            self._check()

    def _check(self) -> None:
        if self._watchdog is not None:
            self._watchdog.check()

    @contextlib.contextmanager
    def kept(self, hung_after: float) -> Iterator[None]:
        """For the time of the block, where a watchdog runs."""
        if self._watchdog is None:
            yield
            return
        thread = threading.Thread(target=self._keep, args=(hung_after / 8,), name="advisor-pace", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    def _keep(self, seconds: float) -> None:
        while not self._is_over.wait(seconds):
            with self._step:
                try:
                    self._check()
                except TakenOverError:
                    # The next step says so.
                    return


class Trial:
    """A plan whose live values go in and out of force, again and again, as a measurement asks. Persists nothing."""

    def __init__(self, host: Host, plan: Plan, watchdog: Watchdog | None = None) -> None:
        self._host = host
        self._plan = plan
        self._pace = _Pace(watchdog)
        self.pending: str | None = None
        """What was being set when it failed: its live value is ours, whatever it reads."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """What the trial switches."""
        return self._plan.changes

    def paced(self, hung_after: float) -> contextlib.AbstractContextManager[None]:
        """The watchdog knows that this process gets on, for the time of the block."""
        return self._pace.kept(hung_after)

    def put_in(self, tunables: Collection[str] | None = None) -> None:
        """Every value after, or those of ``tunables`` alone, read back. Raises CommandError."""
        for change in self._plan.changes:
            if tunables is not None and change.tunable not in tunables:
                continue
            with self._pace.step():
                _check_link(self._host, self._plan, change)
                self.pending = change.tunable
                kept = None if observe(self._host, change.probe) == change.after else _set(self._host, change)
                if kept is None:
                    _read_back(self._host, change)
            self.pending = None

    def take_out(self) -> None:
        """Every value before, read back. Raises CommandError."""
        for change in reversed(self._plan.changes):
            with self._pace.step():
                outcome = _restore_change(self._host, self._plan, change, force=change.tunable == self.pending)
            if not outcome.is_back:
                raise CommandError(
                    msg("{what}: {detail}", what=outcome.what, detail=outcome.detail), hint=outcome.by_hand
                )


@contextlib.contextmanager
def trial(host: Host, plan: Plan, store: Store, *, hung_after: float = _TRIAL_SECONDS) -> Iterator[Trial]:
    """A trial of a plan's live values under the journal; the caller holds ``store.lock()``.

    A process that is stopped, or blocked in a step, for ``hung_after`` seconds counts as hung.

    However the block ends, every value is put back and read back; after a kill or a power cut the next run does it, or
    the rollback script. Raises RefusedError before anything is changed, NotRestoredError where something is not back.
    """
    _preflight(host, plan)
    with _begin(host, plan, store, hung_after) as (journal, watchdog):
        for change in plan.changes:
            # From here on any of them may be in force, and is ours to put back.
            journal.write(Doing(change.tunable))
        running = Trial(host, plan, watchdog if host.is_live else None)
        try:
            with running.paced(hung_after):
                yield running
        finally:
            if not watchdog.claim():
                raise _taken_over(host, plan, watchdog, running.pending)
            try:
                outcomes = _restore(host, plan, journal, why="trial", force_one=running.pending, check=watchdog.check)
            except TakenOverError as error:
                raise _taken_over(host, plan, watchdog, running.pending) from error
            _close(journal, watchdog, outcomes)
    lost = tuple(one for one in outcomes if not one.is_back)
    if lost:
        raise _not_restored(N_("the trial is over"), lost)


def _not_restored(reason: str, lost: tuple[ItemOutcome, ...]) -> NotRestoredError:
    return NotRestoredError(
        msg("{reason}; {count} item(s) could not be put back", reason=reason, count=len(lost)),
        items=tuple((one.what, one.by_hand or one.detail) for one in lost),
    )


def _boot_id(host: Host) -> str | None:
    boot_id = host.read("/proc/sys/kernel/random/boot_id")
    return None if isinstance(boot_id, Missing) else boot_id


_READ_AGAIN = N_("nothing was changed; plan again once it can be read")


def _preflight(host: Host, plan: Plan) -> None:
    """What must hold before the journal is opened. Raises RefusedError."""
    if plan.blocking:
        first = plan.blocking[0]
        raise RefusedError(
            msg("{tunable}: {reason}", tunable=first.tunable, reason=first.reason),
            hint="advisor plan shows all that stands in the way",
        )
    if plan.is_empty:
        reason = plan.skipped[0].reason if plan.skipped else N_("it sets nothing")
        raise RefusedError(
            msg("nothing of this profile applies here: {reason}", reason=reason), hint="advisor plan lists every item"
        )
    machine = host.read("/etc/machine-id")
    if plan.machine_id is not None and machine != plan.machine_id:
        raise RefusedError("the plan was made for another host (its machine-id differs)")
    for why in foreign_links(host, plan.links).values():
        raise RefusedError(msg("changed since the plan was made: {why}", why=why), hint="make the plan again")
    for change in (*plan.changes, *plan.claims):
        live = observe(host, change.probe)
        if isinstance(live, Missing):
            raise RefusedError(
                msg("{tunable}: cannot be read: {why}", tunable=change.tunable, why=live.why), hint=_READ_AGAIN
            )
        if live != change.before:
            raise RefusedError(
                msg("{tunable}: changed since the plan was made", tunable=change.tunable), hint="make the plan again"
            )
    for file in plan.files:
        content = _content(host, file.path)
        if isinstance(content, Missing):
            raise RefusedError(msg("{path}: cannot be read: {why}", path=file.path, why=content.why), hint=_READ_AGAIN)
        if content != file.before:
            raise RefusedError(
                msg("{path}: changed since the plan was made", path=file.path), hint="make the plan again"
            )
        if not _is_writable(host, file):
            raise RefusedError(
                msg("{path}: its directory cannot be written to", path=file.path), hint="or use --runtime-only"
            )


def _refuse_other_devices(host: Host, plan: Plan, store: Store) -> None:
    """An id can be no layer on one of the same name that is set on another device, or is not found. Raises
    RefusedError."""
    places = {one.tunable: _place(host, one.probe) for one in (*plan.changes, *plan.claims)}
    if not any(places.values()):
        return
    for record in store.readable():
        for name, change in values_of(record).items() if record.is_in_force else ():
            if places.get(name) and places[name] != (_place(host, change.probe) or places[name]):
                raise RefusedError(
                    msg(
                        "{name}: transaction {id} holds it on another device, which had this name then",
                        name=name,
                        id=record.id,
                    ),
                    hint=msg("roll it back first: advisor rollback {id}", id=record.id),
                )


def _refuse_other_links(host: Host, plan: Plan, store: Store) -> None:
    """An id can be no layer on one of the same name that an active transaction holds on another link, or on one that
    is not found. Raises RefusedError."""
    own = {one.tunable for one in (*plan.changes, *plan.claims)} | {one.tunable for one in plan.bystanders}
    named = {mark.name for mark in plan.links}
    for record in store.readable():
        if not record.is_in_force:
            continue
        places = {mark.name: place_of(host, mark) for mark in record.plan.links if mark.name in named}
        for name in sorted(own & touched(record)):
            link = link_of(name)
            place = places.get(link, link) if link else None
            if link is None or place is None or place == link:
                continue
            if isinstance(place, LostLink):
                raise RefusedError(
                    msg(
                        "{name}: transaction {id} holds it on a link that is not found ({why})",
                        name=name,
                        id=record.id,
                        why=place.why,
                    ),
                    hint=msg("roll it back first: advisor rollback {id}", id=record.id),
                )
            raise RefusedError(
                msg(
                    "{name}: transaction {id} holds it on another link (named {link} then, {place} now)",
                    name=name,
                    id=record.id,
                    link=link,
                    place=place,
                ),
                hint=msg(
                    "roll it back first: advisor rollback {id}; or name that link {place}", id=record.id, place=place
                ),
            )


def _place(host: Host, probe: Probe) -> str | Missing | None:
    """Where the value of a block device is now; None for all others."""
    if not isinstance(probe, ReadFile) or probe.identity is None:
        return None
    return located(host, probe.path, probe.identity)


def _is_writable(host: Host, file: FileChange) -> bool:
    # Asked for before the first live value is touched; a disk that fills up later is handled by putting back.
    parent = (file.new_directories or (file.path,))[-1].rpartition("/")[0] or "/"
    return os.access(host.locate(f"{parent.rstrip('/')}/x").rpartition("/")[0] or "/", os.W_OK)


def _content(host: Host, path: str) -> bytes | Missing | None:
    content = host.read_bytes(path)
    return None if isinstance(content, Missing) and content.is_absent else content


def _carry_out(
    host: Host,
    plan: Plan,
    journal: Journal,
    watchdog: Watchdog,
    at: _Place,
    progress: Progress,
    gate: Gate | None,
) -> Mapping[str, str]:
    """Gives what moved along, and its values."""
    expected = _Expected(host, plan.changes)
    left: set[str] = set()
    for change in plan.changes:
        watchdog.check()
        _check_link(host, plan, change)
        expected.check(change, at)
        at.announce(change.tunable)
        journal.write(Doing(change.tunable))
        progress(f"{change.tunable}: {change.before} → {change.after}")
        watchdog.check()
        why = _set(host, change)
        watchdog.check()
        if why is not None:
            left.add(change.tunable)
            journal.write(Left(change.tunable, why))
            progress(msg("{tunable}: left, the kernel manages it ({why})", tunable=change.tunable, why=why))
        elif change.steps:
            journal.write(Done(change.tunable, _read_back(host, change)))
        expected.note(change)
    at.what = None
    settle_changes(host, [one for one in plan.changes if one.tunable not in left])
    _give_back(host, on_own_links(host, plan).plan.bystanders)
    if gate is not None:
        watchdog.extend(_GATE_SECONDS)
        gate()
    for file in plan.files:
        watchdog.check()
        if _content(host, file.path) != file.before:
            raise CommandError(msg("{path}: changed since the plan was made", path=file.path))
        at.announce(file.path)
        journal.write(Doing(file.path))
        progress(f"{file.path}: {'written' if file.before is None else 'changed'}")
        watchdog.check()
        host.do(PutFile(file.path, file.after, file.mode, file.uid, file.gid))
        watchdog.check()
        journal.write(Done(file.path, None))
    _reload(host, plan.files)
    watchdog.check()
    for change in plan.changes:
        if not change.steps:
            at.what = change.tunable
            journal.write(Done(change.tunable, _read_back(host, change)))
    for change in plan.changes:
        # A later step may have changed it.
        if change.steps and change.tunable not in left:
            _read_back(host, change)
    beside = on_own_links(host, plan).plan.bystanders
    moved = {one.tunable: live for one in beside if isinstance(live := observe(host, one.probe), str)}
    watchdog.check()
    journal.write(Applied(time.time(), moved))
    return moved


def _check_link(host: Host, plan: Plan, change: Change) -> None:
    """The link is the one that the plan was made for. Raises CommandError."""
    own = [mark for mark in plan.links if mark.name == link_of(change.tunable)]
    for why in foreign_links(host, own).values():
        raise CommandError(msg("{tunable}: {why}", tunable=change.tunable, why=why), hint="make the plan again")


_MOVING: Final = ("link:", "irq:")
"""Where one attribute moves another: a ring with the MTU, a queue's CPUs with the channels, a member with its bond."""


class _Expected:
    """What each value reads right before it is set, as far as this transaction's own steps explain it."""

    def __init__(self, host: Host, changes: tuple[Change, ...]) -> None:
        self._host = host
        among = coupled_among([one.tunable for one in changes])
        self._moving = [one for one in changes if one.tunable.startswith(_MOVING) or one.tunable in among]
        self._moved: dict[str, str | Missing] = {}

    def check(self, change: Change, at: _Place) -> None:
        """What another process has set since the plan was made is not overwritten. Raises CommandError."""
        live = observe(self._host, change.probe)
        is_own = change in self._moving and live == change.after
        if live == change.before or is_own or (self._moved and live == self._moved.get(change.tunable)):
            return
        found = (
            msg("cannot be read: {why}", why=live.why)
            if isinstance(live, Missing)
            else msg("expected {before}, found {live}", before=change.before, live=live)
        )
        at.external = change.tunable
        raise CommandError(
            msg("{tunable}: changed since the plan was made: {found}", tunable=change.tunable, found=found),
            hint="make the plan again",
        )

    def note(self, change: Change) -> None:
        """After a step: what it may have moved is looked at."""
        if change in self._moving or any(can_move(change.tunable, one.tunable) for one in self._moving):
            for one in self._moving:
                self._moved[one.tunable] = observe(self._host, one.probe)


def _is_begun(name: str, announced: Collection[str] | None) -> bool:
    """Whether a transaction that was cut off may have changed an item: it came to it, or to one that moves it."""
    if announced is None or name in announced or is_moved(name, announced):
        return True
    return name.startswith(_MOVING) and any(one.startswith("link:") for one in announced)


def _give_back(host: Host, bystanders: Iterable[Bystander]) -> None:
    """Addresses and routes that a link lost while it was changed. What cannot be had now (IPv6 below 1280 bytes of MTU)
    comes back with the rollback."""
    for one in bystanders:
        if one.keeps and observe(host, one.probe) != one.before:
            for step in one.undo:
                with contextlib.suppress(CommandError):
                    host.do(step)


def _set(host: Host, change: Change) -> str | None:
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


def _read_back(host: Host, change: Change) -> str:
    live = observe(host, change.probe)
    if live != change.after:
        found = (
            msg("cannot be read: {why}", why=live.why) if isinstance(live, Missing) else msg("reads {live}", live=live)
        )
        raise CommandError(
            msg("{tunable}: set to {after}, but {found}", tunable=change.tunable, after=change.after, found=found)
        )
    return change.after


def _reload(host: Host, files: Iterable[FileChange]) -> None:
    for step in dict.fromkeys(step for file in files for step in file.reload):
        host.do(step)


def _put_back_after(
    error: BaseException, host: Host, plan: Plan, journal: Journal, watchdog: Watchdog, at: _Place
) -> None:
    """Undo a transaction that failed, whatever the reason. Raises RestoredError for what a host or a tool refused,
    NotRestoredError; returns for an interrupt and for a fault of our own, which go on to the caller."""
    reason = str(error) or type(error).__name__
    if not watchdog.claim():
        raise _taken_over(host, plan, watchdog, at.what) from error
    try:
        outcomes = _restore(
            host,
            plan,
            journal,
            why=reason,
            force_one=at.what,
            announced=at.announced,
            external=at.external,
            check=watchdog.check,
        )
    except TakenOverError:
        raise _taken_over(host, plan, watchdog, at.what) from error
    _close(journal, watchdog, outcomes)
    lost = tuple(one for one in outcomes if not one.is_back)
    if lost:
        raise _not_restored(reason, lost) from error
    if isinstance(error, AdvisorError | OSError):
        hint = error.hint if isinstance(error, AdvisorError) else None
        raise RestoredError(msg("{reason}; everything has been put back", reason=reason), hint=hint) from error


def _close(journal: Journal, watchdog: Watchdog, outcomes: Iterable[ItemOutcome]) -> None:
    """Close a transaction that is rolled back. Where its journal could not say so, it stays open: the next run, or the
    watchdog, looks at each item again and records that."""
    if not journal.is_ended:
        return
    watchdog.close()
    if all(one.is_back for one in outcomes):
        release(journal.directory)


def roll_back(
    host: Host,
    record: Record,
    store: Store,
    *,
    force: bool = False,
    warn: Progress = lambda _: None,
    unrecorded: Collection[str] = (),
    bottom: Bottom | None = None,
) -> tuple[ItemOutcome, ...]:
    """Put a transaction back, or take it out from under later ones; the caller holds ``store.lock()``.

    What a later transaction in force holds stays as it is, and goes back with that one. Where the disk is full or
    read-only, values and files are restored all the same, and ``warn`` is given what could not be written.
    ``unrecorded`` are transactions that were rolled back before without a record of it. Where all are rolled back,
    ``bottom`` is where that ends: what reads so already was not modified externally. Raises RefusedError where a
    later one still waits for confirmation, its journal is damaged, or cannot be written; RestoredError or
    NotRestoredError where the watchdog took over because this process did not get on.
    """
    surveyed, damaged = store.survey()
    records = tuple(one for one in surveyed if one.id not in unrecorded)
    _refuse_under_damaged(record, damaged)
    taken = take_out(host, record, records, force=force)
    own = msgspec.structs.replace(record, plan=taken.remaining, bystanders_after=taken.beside.after)
    why = N_("interrupted") if record.is_unfinished else N_("asked for")
    watchdog = store.watchdog(record.id)
    with store.reopen(record.id, may_fail=True) as journal:
        is_open = watchdog.standing().open is not None
        outcome = _claimed(watchdog, warn)
        if outcome is not None:
            _record_outcome(journal, watchdog, own, taken, outcome)
            return (*taken.outcomes, *watched_outcomes(own.plan, outcome))
        if taken.later:
            try:
                _hand_over(store, own, journal, taken, why, record.fingerprint)
            except RefusedError:
                if not is_open and not journal.is_begun:
                    ignore_errors(watchdog.close)
                raise
        if host.is_live and not watchdog.stands_down:
            _start_again(own.plan, watchdog, warn)
        try:
            outcomes = _restore(
                host,
                _of_this_boot(host, own),
                journal,
                why=why,
                force=force,
                force_one=record.pending if record.is_unfinished else None,
                bystanders_after=own.bystanders_after,
                taken=taken,
                bottom=bottom,
                announced=None if record.was_applied else set(record.announced),
                check=watchdog.check,
            )
        except TakenOverError as error:
            raise _taken_over_while_undoing(host, own, journal, watchdog, taken) from error
        if not journal.is_ended:
            warn(
                msg(
                    "{directory}: cannot be written: it is not recorded that {id} is rolled back; once it can be"
                    " written, run: advisor rollback {id}",
                    directory=journal.directory,
                    id=record.id,
                )
            )
        _close(journal, watchdog, outcomes)
    _write_scripts(store, record)
    return (*outcomes, *(left_in_force(record, records) if record.is_in_force else ()))


_ROLLBACK_SECONDS: Final = 30.0
"""For one step of a rollback that changes links."""


def _claimed(watchdog: Watchdog, warn: Progress) -> Watched | None:
    """The transaction is this process's to roll back; gives the watchdog's outcome instead where that was faster."""
    standing = watchdog.standing()
    if standing.outcome is not None:
        return standing.outcome
    if standing.open is not None:
        if watchdog.claim():
            if watchdog.stands_down:
                warn(f"{watchdog.directory}: cannot be written: it is rolled back without a watchdog")
            return None
        outcome = watchdog.await_outcome()
        if outcome is not None:
            return outcome
    try:
        watchdog.open("taken")
    except OSError as error:
        watchdog.stand_down()
        warn(
            msg(
                "{directory}: {error}: it is rolled back without a watchdog",
                directory=watchdog.directory,
                error=error.strerror,
            )
        )
    return None


def _start_again(plan: Plan, watchdog: Watchdog, warn: Progress) -> None:
    """A watchdog over a rollback. Where none can be started the rollback goes on: nothing is better for waiting."""
    seconds = _ROLLBACK_SECONDS if plan.has_link_risk else _STEP_SECONDS
    try:
        watchdog.start(persists=plan.persists, state="taken", step_seconds=seconds)
    except OSError as error:
        watchdog.stand_down()
        warn(
            msg(
                "the watchdog cannot be started ({error}): it is rolled back without one", error=error.strerror or error
            )
        )


def _record_outcome(journal: Journal, watchdog: Watchdog, own: Record, taken: TakenOut, outcome: Watched) -> None:
    """What the watchdog has done goes into the journal, and only then from its own file."""
    _note(journal, Undoing(time.time(), outcome.why))
    kept = (*_kept_of(taken.outcomes), *kept_items(own.plan, outcome))
    _note(journal, Undone(outcome.time, kept, taken.passed))
    if journal.is_ended:
        watchdog.forget_outcome()
        watchdog.close()
        if not kept:
            release(journal.directory)


def _taken_over_while_undoing(
    host: Host, own: Record, journal: Journal, watchdog: Watchdog, taken: TakenOut
) -> AdvisorError:
    """What to report for a rollback that its watchdog has ended, since this process did not get on with it."""
    error = _taken_over(host, own.plan, watchdog)
    outcome = watchdog.standing().outcome
    if outcome is not None:
        _record_outcome(journal, watchdog, own, taken, outcome)
    return error


def _refuse_under_damaged(record: Record, damaged: Iterable[Damaged]) -> None:
    above = damaged_above(record, damaged)
    if above:
        raise RefusedError(
            msg(
                "transaction {id} came later, and what it holds is unknown: {reason}",
                id=above[0].id,
                reason=above[0].message,
            ),
            hint=above[0].error.hint,
        )


def _hand_over(store: Store, own: Record, journal: Journal, taken: TakenOut, why: str, fingerprint: str) -> None:
    """Journal what the later transactions come to without this one, and write their scripts, before the first step.

    Cut off in between, this one is unfinished, and the next run ends it. Raises RefusedError.
    """
    try:
        journal.write(Undoing(time.time(), why))
        for upper in taken.later:
            without = (*(one for one in upper.without if one != own.id), own.id)
            with store.reopen(upper.id) as theirs:
                theirs.write(Applied(time.time(), upper.bystanders_after, upper.plan, without))
        records = [one for one in store.readable() if one.id != own.id]
        for upper in taken.later:
            store.write_script(upper.id, _encoded(script_of(store.record(upper.id), records)))
        cut_off = msgspec.structs.replace(own.plan, bystanders=taken.cut_off.bystanders)
        own_anew = rollback_script(cut_off, taken.cut_off.after, fingerprint=fingerprint)
        store.write_script(own.id, _encoded(own_anew))
    except OSError as error:
        raise RefusedError(
            msg("{directory}: the journal cannot be written: {error}", directory=store.directory, error=error.strerror),
            hint=msg(
                "once it can be written: advisor rollback {id}; advisor rollback --all needs no journal", id=own.id
            ),
        ) from error


def _write_scripts(store: Store, changed: Record) -> None:
    """Scripts of the transactions in force that share something with ``changed``, which has come or gone.

    A script that stays as it was does less than it could: it keeps what it finds set by another.
    """
    records, damaged = store.survey()
    for record in records:
        is_known = record.is_in_force and not damaged_above(record, damaged)
        if is_known and record.id != changed.id and touched(changed) & touched(record):
            with contextlib.suppress(OSError):
                store.write_script(record.id, _encoded(script_of(record, records)))


def _of_this_boot(host: Host, record: Record) -> Plan:
    """The plan without what a boot sets anew in any case, where there was one since."""
    if record.boot_id == _boot_id(host):
        return record.plan
    return msgspec.structs.replace(
        record.plan, bystanders=tuple(one for one in record.plan.bystanders if not one.resets)
    )


def recover(
    host: Host, store: Store, warn: Progress = lambda _: None
) -> tuple[tuple[Record, tuple[ItemOutcome, ...]], ...]:
    """Put back every transaction that a crash, a kill or a power cut left unfinished; the caller holds the lock.

    One that a watchdog has put back since is among them, once: its outcome goes into the journal. A switch that was cut
    off once the new transaction was kept is finished. What a kill has left of a closed one is removed.
    """
    take_down_notes(host, store)
    unfinished = [record for record in store.readable() if record.is_unfinished or record.by_watchdog]
    done = tuple((record, roll_back(host, record, store, warn=warn)) for record in reversed(unfinished))
    store.remove_leftovers(is_live=host.is_live)
    return (*done, *finish_switches(host, store, warn))


def take_down_notes(host: Host, store: Store) -> None:
    """Journal what rollback scripts have put back by themselves; the caller holds the lock."""
    for record in store.readable():
        if record.by_script:
            _take_down_note(host, record, store)


def _take_down_note(host: Host, record: Record, store: Store) -> None:
    watchdog = store.watchdog(record.id)
    # One that waits is watched until its time is up; a watchdog that is at it already says itself what came of it.
    if watchdog.standing().open is not None and not watchdog.claim():
        return
    with store.reopen(record.id, may_fail=True) as journal:
        if not ignore_errors(lambda: watchdog.open("taken")):
            return
        _note(journal, Undoing(record.ended or time.time(), BY_SCRIPT))
        _note(journal, Undone(record.ended or time.time(), ()))
        if journal.is_ended:
            watchdog.forget_outcome()
        _close(journal, watchdog, ())
    _write_scripts(store, record)


def finish_switches(
    host: Host, store: Store, warn: Progress = lambda _: None
) -> tuple[tuple[Record, tuple[ItemOutcome, ...]], ...]:
    """Take out what a kept transaction was applied instead of; the caller holds the lock.

    The first one first: what only such transactions hold then goes back at once, and not from layer to layer.
    """
    records = store.readable()
    replaced = {one for record in records if record.state == "applied" for one in record.plan.instead_of}
    out = [record for record in records if record.id in replaced and record.is_in_force]
    return tuple((record, roll_back(host, store.record(record.id), store, warn=warn)) for record in out)


def _restore(
    host: Host,
    plan: Plan,
    journal: Journal,
    *,
    why: str,
    force: bool = False,
    force_one: str | None = None,
    bystanders_after: Mapping[str, str] | None = None,
    taken: TakenOut | None = None,
    bottom: Bottom | None = None,
    announced: Collection[str] | None = None,
    external: str | None = None,
    check: Callable[[], None] = lambda: None,
) -> tuple[ItemOutcome, ...]:
    """Files first, then live values, each in the reverse order of apply; then what the kernel moved along.

    ``announced`` are the items that were begun, None for all; ``external`` is one that another process has set before
    its step. ``check`` is asked before each and after the last one.
    Raises TakenOverError, as that does.
    """
    check()
    ends = bottom or Bottom({}, {})
    _note(journal, Undoing(time.time(), why))
    outcomes: list[ItemOutcome] = []
    for file in reversed(plan.files):
        check()
        is_begun = _is_begun(file.path, announced)
        if file.before != (end := ends.files.get(file.path, file.before)) and _content(host, file.path) == end:
            outcomes.append(ItemOutcome(file.path, "already", "as before all transactions"))
            continue
        outcomes.append(_restore_file(host, file, force=force or file.path == force_one, is_begun=is_begun))
    restored_files = {one.what for one in outcomes if one.state == "restored"}
    if restored_files:
        outcomes += _reload_again(host, plan.files)
    own = on_own_links(host, plan)
    standing, coupled = standing_of(host, own.plan.bystanders), Coupled(host, own.plan)
    for change in reversed(plan.changes):
        check()
        is_begun = _is_begun(change.tunable, announced)
        first = ends.values.get(change.tunable, change.before)
        found = on_own_link(host, plan.links, change)
        if first != change.before and not isinstance(found, LostLink) and observe(host, found.probe) == first:
            outcomes.append(ItemOutcome(change.tunable, "already", "as before all transactions"))
            continue
        begun = None if change.tunable == external else announced
        is_own = change.tunable == force_one or coupled.is_own(change, (one.what for one in outcomes), begun)
        outcome = _restore_change(host, plan, change, force=force or is_own, is_begun=is_begun)
        if outcome.state == "already" and not change.undo and change.persist in restored_files:
            # The file and its reload were what brought the value about, and back.
            outcome = ItemOutcome(change.tunable, "restored", f"{change.after} → {change.before}")
        outcomes.append(outcome)
    check()
    outcomes = _tried_again(host, plan, outcomes)
    own, after = on_own_links(host, plan), bystanders_after or {}
    standing = {**standing_of(host, own.plan.bystanders), **standing}
    outcomes += restore_surroundings(host, own.plan, outcomes, after, standing, force=force)
    again = coupled.restore(outcomes, after, force=force)
    outcomes = [one for one in outcomes if one.what not in {other.what for other in again}] + again
    outcomes += restore_lost(host, own.plan, after, standing)
    outcomes = own.noted((*outcomes, *_lost_beside(plan, own, after)))
    if taken is not None:
        places = ((on_own_link(host, plan.links, one), left) for one, left in taken.beside.given)
        given = [(one, left) for one, left in places if not isinstance(one, LostLink)]
        outcomes += (*give_back(host, given), *taken.outcomes)
    check()
    _note(journal, Undone(time.time(), _kept_of(outcomes), taken.passed if taken else ()))
    return tuple(outcomes)


def _lost_beside(plan: Plan, own: OwnLinks, after: Mapping[str, str]) -> list[ItemOutcome]:
    """Side effects on a link that cannot be identified; what was on one that is gone needs nothing."""
    lost = {name: one.why for name, one in own.lost.items() if not one.is_gone}
    return [
        ItemOutcome(one.tunable, "failed", lost[name])
        for one in plan.bystanders
        if (name := link_of(one.tunable) or "") in lost and after.get(one.tunable) != one.before
    ]


def _kept_of(outcomes: Iterable[ItemOutcome]) -> tuple[tuple[str, str], ...]:
    return tuple((one.what, one.detail) for one in outcomes if not one.is_back)


def _tried_again(host: Host, plan: Plan, outcomes: list[ItemOutcome]) -> list[ItemOutcome]:
    """Values that did not go back while others were still changed: a ring's size fits one MTU and not another."""
    failed = {one.what for one in outcomes if one.state == "failed"}
    again = {
        change.tunable: _restore_change(host, plan, change, force=True)
        for change in plan.changes
        if change.tunable in failed
    }
    return [again.get(one.what, one) for one in outcomes]


def _note(journal: Journal, entry: Entry) -> None:
    """Journal an entry of a rollback; a full disk must not keep the host from being put back."""
    with contextlib.suppress(OSError):
        journal.write(entry)


def _restore_file(host: Host, file: FileChange, *, force: bool, is_begun: bool = True) -> ItemOutcome:
    live = _content(host, file.path)
    host.remove_leftovers(file.undo, prune=is_begun and live is None and file.before is None)
    if live == file.before:
        return ItemOutcome(file.path, "already", N_("as before"))
    by_hand = hand_command(file.undo)
    if not is_begun:
        return ItemOutcome(file.path, "already", _NOT_BEGUN)
    if live != file.after and not force:
        return ItemOutcome(file.path, "kept", N_("somebody else changed it since"), by_hand)
    try:
        host.do(file.undo)
    except CommandError as error:
        return ItemOutcome(file.path, "failed", error.message, by_hand)
    if _content(host, file.path) != file.before:
        return ItemOutcome(file.path, "failed", N_("written, but reads otherwise"), by_hand)
    return ItemOutcome(file.path, "restored", N_("removed") if file.before is None else N_("earlier content"))


def _reload_again(host: Host, files: Iterable[FileChange]) -> list[ItemOutcome]:
    failed: list[ItemOutcome] = []
    for step in dict.fromkeys(step for file in files for step in file.reload):
        try:
            host.do(step)
        except CommandError as error:
            failed.append(ItemOutcome(" ".join(step.argv), "failed", error.message, hand_command(step)))
    return failed


_NOT_BEGUN: Final = N_("was not changed by this transaction")


def _restore_change(host: Host, plan: Plan, change: Change, *, force: bool, is_begun: bool = True) -> ItemOutcome:
    """Restore a value on the link that it was set on, whatever the name of that is now."""
    found = on_own_link(host, plan.links, change)
    if not isinstance(found, LostLink):
        return _restore_value(host, found, force=force, is_begun=is_begun)
    return (
        ItemOutcome(change.tunable, "failed", found.why)
        if is_begun
        else ItemOutcome(change.tunable, "already", _NOT_BEGUN)
    )


def _restore_value(host: Host, change: Change, *, force: bool, is_begun: bool = True) -> ItemOutcome:
    live = observe(host, change.probe)
    if live == change.before:
        return ItemOutcome(change.tunable, "already", msg("is {before}", before=change.before))
    if isinstance(live, Missing) and live.is_absent and queue_file(change.probe) is not None:
        return ItemOutcome(change.tunable, "already", N_("is gone with its queue"))
    by_hand = commands_by_hand(host, change.undo)
    if by_hand == "":
        by_hand = msg("set it to {before}", before=change.before)
    if isinstance(live, Missing):
        return ItemOutcome(change.tunable, "failed", msg("cannot be read: {why}", why=live.why), by_hand)
    if not is_begun:
        return ItemOutcome(change.tunable, "already", _NOT_BEGUN)
    if live != change.after and not force:
        return ItemOutcome(change.tunable, "kept", msg("somebody else set it to {live}", live=live), by_hand)
    try:
        for step in change.undo:
            host.do(step)
    except CommandError as error:
        return ItemOutcome(change.tunable, "failed", error.message, by_hand)
    now = observe(host, change.probe)
    if now != change.before:
        shown = now.why if isinstance(now, Missing) else now
        return ItemOutcome(change.tunable, "failed", msg("put back, but reads {shown}", shown=shown), by_hand)
    return ItemOutcome(change.tunable, "restored", f"{live} → {change.before}")


def verify(host: Host, records: Iterable[Record]) -> tuple[Drift, ...]:
    """What is no longer as the transactions in force set it; where several set one tunable, or one line of a file, the
    last one counts."""
    in_force = [record for record in records if record.is_in_force]
    held: dict[object, Drift | None] = {}
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
    drifted = list(held.values())
    files: dict[str, Drift] = {}
    for record in in_force:
        for path, file in files_of(record).items():
            drift = _file_drift(host, record.id, file, overlaid(in_force, record, path))
            if drift is not None:
                files[path] = drift
    drifted += files.values()
    return tuple(sorted((one for one in drifted if one is not None), key=lambda one: one.what))


def _value_drift(host: Host, record: Record, change: Change, found: Change, in_force: Iterable[Record]) -> Drift | None:
    """``found`` is the change on the link that it was made on."""
    live = observe(host, found.probe)
    if live == change.after:
        return None
    named = "" if found is change else now_named(host, record.plan.links, change.tunable)
    if isinstance(live, Missing):
        why = msg("cannot be read: {why}", why=live.why)
        return Drift(record.id, change.tunable, change.after, None, f"{why}{named}")
    reason = N_("is as before the transaction") if live == change.before else N_("was changed since")
    if live == change.before and change.persist is None and change.persist_note:
        reason = msg("is as before the transaction; {note}", note=change.persist_note)
    later = (one for one in in_force if sequence(one.id) > sequence(record.id))
    moved = [one.id for one in later if one.bystanders_after.get(change.tunable) == live]
    if moved:
        reason = msg("moved along with what {moved} changed", moved=moved[-1])
    return Drift(record.id, change.tunable, change.after, live, f"{reason}{named}")


def _file_drift(host: Host, identity: str, file: FileChange, overlaid: frozenset[tuple[str, ...]]) -> Drift | None:
    content = _content(host, file.path)
    if isinstance(content, Missing):
        return Drift(identity, file.path, N_("its content"), None, msg("cannot be read: {why}", why=content.why))
    if content is None:
        return Drift(identity, file.path, N_("its content"), None, N_("was removed"))
    if all(holds(content, edit) for edit in file.edits if not settings_of(edit) & overlaid):
        return None
    return Drift(identity, file.path, N_("its content"), None, N_("no longer holds what the transaction wrote"))
