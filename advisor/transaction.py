"""Carrying a plan out as one transaction, putting it back, and telling whether it is still in force.

Order: journal, step, read back, tunable by tunable; persistence last, so that a crash before the end leaves a host
that a reboot heals by itself. Any failure puts everything back. Putting back compares three values, before, after and
live, and keeps what somebody else has changed since.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from advisor import __version__
from advisor.errors import AdvisorError, CommandError, NotRestoredError, RefusedError, RestoredError
from advisor.host import Host, Missing, PutFile, observe
from advisor.journal import Applied, Doing, Done, Entry, Journal, Left, Record, Store, Undoing, Undone, sequence
from advisor.plan.records import Bystander, Change, FileChange, Plan
from advisor.script import hand_command, rollback_script
from advisor.tunables import edited

Progress = Callable[[str], None]


class Outcome(msgspec.Struct, frozen=True):
    """What became of one item of a rollback. ``by_hand`` is the command that would put it back."""

    what: str
    state: Literal["restored", "already", "kept", "failed"]
    detail: str
    by_hand: str | None = None

    @property
    def is_back(self) -> bool:
        return self.state in ("restored", "already")


class Drift(msgspec.Struct, frozen=True):
    """A live or persisted value that is not what the transaction set. ``live`` is None where it could not be read."""

    transaction: str
    what: str
    wanted: str
    live: str | None
    reason: str


def apply_plan(host: Host, plan: Plan, store: Store, *, progress: Progress = lambda _: None) -> Record:
    """Carry ``plan`` out; the caller holds ``store.lock()``.

    Raises RefusedError with nothing changed, RestoredError when a change failed and all is back, NotRestoredError when
    something could not be put back.
    """
    _preflight(host, plan)
    boot = _boot_id(host)
    with store.begin(plan, boot_id=boot, version=__version__, script=_encoded(rollback_script(plan))) as journal:
        at = _Place()
        try:
            _carry_out(host, plan, journal, at, progress)
        except BaseException as error:
            _put_back_after(error, host, plan, journal, at)
            raise
    record = store.record(journal.id)
    store.write_script(record.id, _encoded(rollback_script(plan, record.bystanders_after)))
    return record


def _encoded(script: str) -> bytes:
    return script.encode("utf-8", "surrogateescape")


class _Place:
    """Which item was being worked on: its live value may be neither before nor after, and is ours all the same."""

    what: str | None = None


class Trial:
    """A plan whose live values go in and out of force, again and again, as a measurement asks. Persists nothing."""

    def __init__(self, host: Host, plan: Plan) -> None:
        self._host = host
        self._plan = plan
        self.pending: str | None = None
        """What was being set when it failed: its live value is ours, whatever it reads."""

    def put_in(self) -> None:
        """Every value after, read back. Raises CommandError."""
        for change in self._plan.changes:
            self.pending = change.tunable
            kept = None if observe(self._host, change.probe) == change.after else _set(self._host, change)
            if kept is None:
                _read_back(self._host, change)
            self.pending = None

    def take_out(self) -> None:
        """Every value before, read back. Raises CommandError."""
        for change in reversed(self._plan.changes):
            outcome = _restore_value(self._host, change, force=change.tunable == self.pending)
            if not outcome.is_back:
                raise CommandError(f"{outcome.what}: {outcome.detail}", hint=outcome.by_hand)


@contextlib.contextmanager
def trial(host: Host, plan: Plan, store: Store) -> Iterator[Trial]:
    """A trial of a plan's live values under the journal; the caller holds ``store.lock()``.

    However the block ends, every value is put back and read back; after a kill or a power cut the next run does it, or
    the rollback script. Raises RefusedError before anything is changed, NotRestoredError where something is not back.
    """
    _preflight(host, plan)
    boot = _boot_id(host)
    with store.begin(plan, boot_id=boot, version=__version__, script=_encoded(rollback_script(plan))) as journal:
        for change in plan.changes:
            # From here on any of them may be in force, and is ours to put back.
            journal.write(Doing(change.tunable))
        running = Trial(host, plan)
        try:
            yield running
        finally:
            outcomes = _restore(host, plan, journal, why="trial", force_one=running.pending)
    lost = tuple(one for one in outcomes if not one.is_back)
    if lost:
        raise _not_restored("the trial is over", lost)


def _not_restored(reason: str, lost: tuple[Outcome, ...]) -> NotRestoredError:
    return NotRestoredError(
        f"{reason}; {len(lost)} item(s) could not be put back",
        items=tuple((one.what, one.by_hand or one.detail) for one in lost),
    )


def _boot_id(host: Host) -> str | None:
    boot_id = host.read("/proc/sys/kernel/random/boot_id")
    return None if isinstance(boot_id, Missing) else boot_id


def _preflight(host: Host, plan: Plan) -> None:
    """What must hold before the journal is opened. Raises RefusedError."""
    if plan.blocking:
        first = plan.blocking[0]
        raise RefusedError(f"{first.tunable}: {first.reason}", hint="advisor plan shows all that stands in the way")
    if plan.is_empty:
        reason = plan.skipped[0].reason if plan.skipped else "it sets nothing"
        raise RefusedError(f"nothing of this profile applies here: {reason}", hint="advisor plan lists every item")
    machine = host.read("/etc/machine-id")
    if plan.machine_id is not None and machine != plan.machine_id:
        raise RefusedError("the plan was made for another host (its machine-id differs)")
    for change in plan.changes:
        live = observe(host, change.probe)
        if live != change.before:
            raise RefusedError(f"{change.tunable}: changed since the plan was made", hint="make the plan again")
    for file in plan.files:
        if _content(host, file.path) != file.before:
            raise RefusedError(f"{file.path}: changed since the plan was made", hint="make the plan again")
        if not _is_writable(host, file):
            raise RefusedError(f"{file.path}: its directory cannot be written to", hint="or use --runtime-only")


def _is_writable(host: Host, file: FileChange) -> bool:
    # Asked for before the first live value is touched; a disk that fills up later is handled by putting back.
    parent = (file.new_directories or (file.path,))[-1].rpartition("/")[0] or "/"
    return os.access(host.locate(f"{parent.rstrip('/')}/x").rpartition("/")[0] or "/", os.W_OK)


def _content(host: Host, path: str) -> bytes | Missing | None:
    content = host.read_bytes(path)
    return None if isinstance(content, Missing) and content.is_absent else content


def _carry_out(host: Host, plan: Plan, journal: Journal, at: _Place, progress: Progress) -> None:
    for change in plan.changes:
        at.what = change.tunable
        journal.write(Doing(change.tunable))
        progress(f"{change.tunable}: {change.before} → {change.after}")
        why = _set(host, change)
        if why is not None:
            journal.write(Left(change.tunable, why))
            progress(f"{change.tunable}: left, the kernel manages it ({why})")
        elif change.steps:
            journal.write(Done(change.tunable, _read_back(host, change)))
    for file in plan.files:
        at.what = file.path
        journal.write(Doing(file.path))
        progress(f"{file.path}: {'written' if file.before is None else 'changed'}")
        host.do(PutFile(file.path, file.after, file.mode, file.uid, file.gid))
        journal.write(Done(file.path, None))
    _reload(host, plan.files)
    for change in plan.changes:
        if not change.steps:
            at.what = change.tunable
            journal.write(Done(change.tunable, _read_back(host, change)))
    moved = {one.tunable: live for one in plan.bystanders if isinstance(live := observe(host, one.probe), str)}
    journal.write(Applied(time.time(), moved))


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
        found = f"cannot be read: {live.why}" if isinstance(live, Missing) else f"reads {live}"
        raise CommandError(f"{change.tunable}: set to {change.after}, but {found}")
    return change.after


def _reload(host: Host, files: Iterable[FileChange]) -> None:
    for step in dict.fromkeys(step for file in files for step in file.reload):
        host.do(step)


def _put_back_after(error: BaseException, host: Host, plan: Plan, journal: Journal, at: _Place) -> None:
    """Undo a transaction that failed, whatever the reason. Raises RestoredError for what a host or a tool refused,
    NotRestoredError; returns for an interrupt and for a fault of our own, which go on to the caller."""
    reason = str(error) or type(error).__name__
    outcomes = _restore(host, plan, journal, why=reason, force_one=at.what)
    lost = tuple(one for one in outcomes if not one.is_back)
    if lost:
        raise _not_restored(reason, lost) from error
    if isinstance(error, AdvisorError | OSError):
        raise RestoredError(f"{reason}; everything has been put back") from error


def roll_back(host: Host, record: Record, store: Store, *, force: bool = False) -> tuple[Outcome, ...]:
    """Put a transaction back; the caller holds ``store.lock()``. Raises RefusedError if a later one is in the way."""
    later = _later_overlap(record, store.records())
    if later:
        raise RefusedError(
            f"transaction {later.id} came later and changed the same things",
            hint=f"roll it back first: advisor rollback {later.id}, or advisor rollback --all",
        )
    with store.reopen(record.id) as journal:
        why = "interrupted" if record.is_unfinished else "asked for"
        return _restore(host, record.plan, journal, why=why, force=force, bystanders_after=record.bystanders_after)


def _later_overlap(record: Record, records: Iterable[Record]) -> Record | None:
    own = _touched(record.plan)
    later = [one for one in records if sequence(one.id) > sequence(record.id) and one.state == "applied"]
    return next((one for one in reversed(later) if own & _touched(one.plan)), None)


def _touched(plan: Plan) -> set[str]:
    return {change.tunable for change in plan.changes} | {file.path for file in plan.files}


def recover(host: Host, store: Store) -> tuple[tuple[Record, tuple[Outcome, ...]], ...]:
    """Put back every transaction that a crash, a kill or a power cut left unfinished; the caller holds the lock."""
    unfinished = [record for record in store.records() if record.is_unfinished]
    return tuple((record, roll_back(host, record, store)) for record in reversed(unfinished))


def _restore(
    host: Host,
    plan: Plan,
    journal: Journal,
    *,
    why: str,
    force: bool = False,
    force_one: str | None = None,
    bystanders_after: Mapping[str, str] | None = None,
) -> tuple[Outcome, ...]:
    """Files first, then live values, each in the reverse order of apply; then what the kernel moved along."""
    _note(journal, Undoing(time.time(), why))
    outcomes = [_restore_file(host, file, force=force or file.path == force_one) for file in reversed(plan.files)]
    restored_files = {one.what for one in outcomes if one.state == "restored"}
    if restored_files:
        outcomes += _reload_again(host, plan.files)
    for change in reversed(plan.changes):
        outcome = _restore_value(host, change, force=force or change.tunable == force_one)
        if outcome.state == "already" and not change.undo and change.persist in restored_files:
            # The file and its reload were what brought the value about, and back.
            outcome = Outcome(change.tunable, "restored", f"{change.after} → {change.before}")
        outcomes.append(outcome)
    after = bystanders_after or {}
    moved = [_restore_bystander(host, one, after.get(one.tunable)) for one in plan.bystanders]
    outcomes += [one for one in moved if one is not None]
    kept = tuple((one.what, one.detail) for one in outcomes if not one.is_back)
    _note(journal, Undone(time.time(), kept))
    return tuple(outcomes)


def _note(journal: Journal, entry: Entry) -> None:
    """Journal an entry of a rollback; a full disk must not keep the host from being put back."""
    with contextlib.suppress(OSError):
        journal.write(entry)


def _restore_file(host: Host, file: FileChange, *, force: bool) -> Outcome:
    live = _content(host, file.path)
    if live == file.before:
        return Outcome(file.path, "already", "as before")
    by_hand = hand_command(file.undo)
    if live != file.after and not force:
        return Outcome(file.path, "kept", "somebody else changed it since", by_hand)
    try:
        host.do(file.undo)
    except CommandError as error:
        return Outcome(file.path, "failed", error.message, by_hand)
    if _content(host, file.path) != file.before:
        return Outcome(file.path, "failed", "written, but reads otherwise", by_hand)
    return Outcome(file.path, "restored", "removed" if file.before is None else "earlier content")


def _reload_again(host: Host, files: Iterable[FileChange]) -> list[Outcome]:
    failed: list[Outcome] = []
    for step in dict.fromkeys(step for file in files for step in file.reload):
        try:
            host.do(step)
        except CommandError as error:
            failed.append(Outcome(" ".join(step.argv), "failed", error.message, hand_command(step)))
    return failed


def _restore_value(host: Host, change: Change, *, force: bool) -> Outcome:
    live = observe(host, change.probe)
    if live == change.before:
        return Outcome(change.tunable, "already", f"is {change.before}")
    by_hand = "; ".join(hand_command(step) for step in change.undo) or f"set it to {change.before}"
    if isinstance(live, Missing):
        return Outcome(change.tunable, "failed", f"cannot be read: {live.why}", by_hand)
    if live != change.after and not force:
        return Outcome(change.tunable, "kept", f"somebody else set it to {live}", by_hand)
    try:
        for step in change.undo:
            host.do(step)
    except CommandError as error:
        return Outcome(change.tunable, "failed", error.message, by_hand)
    live = observe(host, change.probe)
    if live != change.before:
        shown = live.why if isinstance(live, Missing) else live
        return Outcome(change.tunable, "failed", f"put back, but reads {shown}", by_hand)
    return Outcome(change.tunable, "restored", f"{change.after} → {change.before}")


def _restore_bystander(host: Host, one: Bystander, after: str | None) -> Outcome | None:
    """None where it is as it was. One that moved with the change is put back; one that somebody set since is left."""
    live = observe(host, one.probe)
    if isinstance(live, Missing) or live == one.before or live != (after or live):
        return None
    by_hand = "; ".join(hand_command(step) for step in one.undo)
    try:
        for step in one.undo:
            host.do(step)
    except CommandError as error:
        return Outcome(one.tunable, "failed", error.message, by_hand)
    return Outcome(one.tunable, "restored", f"moved along to {live}, {one.before} again")


def verify(host: Host, records: Iterable[Record]) -> tuple[Drift, ...]:
    """What is no longer as the transactions in force set it; where several set one tunable, the last one counts."""
    changes: dict[str, tuple[str, Change]] = {}
    files: dict[str, tuple[str, FileChange]] = {}
    for record in records:
        if record.is_in_force:
            left = {what for what, _ in record.left}
            made = [change for change in record.plan.changes if change.tunable not in left]
            changes.update({change.tunable: (record.id, change) for change in made})
            files.update({file.path: (record.id, file) for file in record.plan.files})
    drifted = [_value_drift(host, identity, change) for identity, change in changes.values()]
    drifted += [_file_drift(host, identity, file) for identity, file in files.values()]
    return tuple(sorted((one for one in drifted if one is not None), key=lambda one: one.what))


def _value_drift(host: Host, identity: str, change: Change) -> Drift | None:
    live = observe(host, change.probe)
    if live == change.after:
        return None
    if isinstance(live, Missing):
        return Drift(identity, change.tunable, change.after, None, f"cannot be read: {live.why}")
    reason = "is as before the transaction" if live == change.before else "was changed since"
    if live == change.before and change.persist is None and change.persist_note:
        reason = f"is as before the transaction; {change.persist_note}"
    return Drift(identity, change.tunable, change.after, live, reason)


def _file_drift(host: Host, identity: str, file: FileChange) -> Drift | None:
    content = _content(host, file.path)
    if isinstance(content, Missing):
        return Drift(identity, file.path, "its content", None, f"cannot be read: {content.why}")
    if content is None:
        return Drift(identity, file.path, "its content", None, "was removed")
    if all(edited(content, edit) == content for edit in file.edits):
        return None
    return Drift(identity, file.path, "its content", None, "no longer holds what the transaction wrote")
