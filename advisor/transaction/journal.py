"""The write-ahead journal of a transaction, and the store that keeps all of them.

A journal is a file of lines, each a CRC-32 and one JSON entry, fsynced before what it announces is done. A power cut
can tear the last line only, which then lacks its newline; it is as if that entry had never been written. Anything else
that does not read as it was written is damage. The first entry holds the whole plan, so every value before and after is
on disk before the first step touches the host.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from shutil import rmtree
from typing import Literal

import msgspec

from advisor.errors import BusyError, InvalidInputError, PermissionDeniedError, RefusedError, UsageError
from advisor.host.putfile import put_file, sync_directory
from advisor.host.safe_open import (
    check_own_directory,
    make_own_directory,
    named_directory,
    open_own_file,
    read_own_file,
)
from advisor.planning.records import NOWHERE, Origin, Plan
from advisor.shell.quote import BIDI
from advisor.shell.rollback_script import script_text
from advisor.shell.state_table import (
    ACTIVE,
    CLOSED,
    CUT_OFF,
    FAILED,
    LENGTH,
    LOCK_DIRECTORY,
    NOTE,
    SCRIPT_DATA,
    STATE_AFTER,
    UNFINISHED,
    State,
    state_of_kept,
)
from advisor.transaction.lock_holder import (
    end_stopped_holders,
    lock_holders,
    read_lock_holder,
    stopped_hint,
    stopped_process,
)
from advisor.transaction.reserved_space import ignore_errors, is_read_only, needed_bytes, reserve_space, with_reserve
from advisor.transaction.watchdog import TransactionFiles, Watchdog, boot_units, is_alive
from advisor.transaction.watchdog import WatchdogOutcome as Watched
from advisor.tunables.preflight import link_of
from advisor.version import __version__

STATE_DIRECTORY = "/var/lib/advisor"
MAX_JOURNAL_BYTES = 64 * 1024 * 1024
MOST_CLOSED = 1000
CLOSED_DAYS = 400
"""How many transactions that are rolled back as a whole are kept at most, and for how long."""

_MAX_NOTE_BYTES = 1 << 10
_MOST_NAMED = 5
BY_SCRIPT = "rolled back by its rollback script"
"""Why a transaction is rolled back that its script alone has rolled back."""


class Begun(msgspec.Struct, frozen=True, tag="begun"):
    """The plan, before anything is done. ``time`` is in seconds since the epoch, ``forced`` whether ``--force`` passed
    the warnings of the plan (`Plan.warnings`), ``hardware`` and ``network`` those of `Origin`."""

    plan: Plan
    boot_id: str | None
    time: float
    version: str
    forced: bool = False
    hardware: str | None = None
    network: int | None = None


class Doing(msgspec.Struct, frozen=True, tag="doing"):
    """Written before a step: ``what`` is a tunable or the path of a file."""

    what: str


class Done(msgspec.Struct, frozen=True, tag="done"):
    """Written after a step was read back: ``live`` is what was read (None for a file)."""

    what: str
    live: str | None


class Left(msgspec.Struct, frozen=True, tag="left"):
    """Written where the kernel keeps an interrupt's affinity to itself: the change is not made, and no failure."""

    what: str
    why: str


class Applied(msgspec.Struct, frozen=True, tag="applied"):
    """Every change is active and read back. ``side_effects`` are the values of the side effects.

    ``peers`` is how many answered again over changed links. Written once more where a lower layer is rolled back:
    ``plan`` is then that of this transaction without the lower one, the last of ``without``.
    """

    time: float
    side_effects: Mapping[str, str] = msgspec.field(name="bystanders")
    plan: Plan | None = None
    without: tuple[str, ...] = ()
    peers: int | None = None


class Awaiting(msgspec.Struct, frozen=True, tag="awaiting"):
    """Active until ``seconds`` are over, and longer only if it is confirmed. ``session`` is the ssh connection that it
    was applied over."""

    time: float
    seconds: float
    session: str | None


class Confirmed(msgspec.Struct, frozen=True, tag="confirmed"):
    time: float


class Undoing(msgspec.Struct, frozen=True, tag="undoing"):
    time: float
    why: str


class Undone(msgspec.Struct, frozen=True, tag="undone"):
    """The end of a rollback. ``kept`` are the items that are not as they were before, with the reason; ``passed`` those
    that an upper layer holds, with its id: the rollback of that one restores them."""

    time: float
    kept: tuple[tuple[str, str], ...]
    passed: tuple[tuple[str, str], ...] = ()


Entry = Begun | Doing | Done | Left | Applied | Awaiting | Confirmed | Undoing | Undone
_DECODER: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


class Record(msgspec.Struct, frozen=True):
    """A transaction by its journal. ``plan`` is what a rollback goes by: the plan that was applied, without the lower
    layers that have been rolled back since."""

    id: str
    plan: Plan
    state: State
    began: float
    ended: float | None
    boot_id: str | None
    done: tuple[str, ...]
    side_effects_after: Mapping[str, str]
    kept: tuple[tuple[str, str], ...]
    why_undone: str | None
    pending: str | None = None
    """The item whose step was announced and not read back when the journal ends."""
    left: tuple[tuple[str, str], ...] = ()
    """Changes that were not made because the kernel manages the value, with its words."""
    seconds_left: float | None = None
    """Time left to confirm it; None where it does not await confirmation."""
    session: str | None = None
    """The ssh connection over which a transaction that awaits confirmation was applied."""
    confirmed: float | None = None
    by_watchdog: bool = False
    """Rolled back by the watchdog, and not in the journal yet."""
    by_script: bool = False
    """Rolled back by its rollback script, and not in the journal yet."""
    passed: tuple[tuple[str, str], ...] = ()
    """What was passed to an upper layer when this transaction was rolled back, with the id of that layer."""
    without: tuple[str, ...] = ()
    """Lower layers that were rolled back below this one."""
    applied_plan: Plan | None = None
    """The plan as it was applied, where ``plan`` is no longer that."""
    announced: tuple[str, ...] = ()
    """What a step was announced for."""
    was_applied: bool = False
    """Every change was made once; otherwise only what was announced can be its."""
    process: int | None = None
    """The process that works on it now."""
    forced: bool = False
    """Applied with ``--force`` in spite of the warnings of its plan."""
    hardware: str | None = None
    network: int | None = None
    peers: int | None = None
    """How many peers answered over its links after the change; None where nobody was to be asked."""

    @property
    def origin(self) -> Origin:
        """The machine, the boot and the network namespace that it was made in."""
        return Origin(self.hardware, self.boot_id, self.network)

    @property
    def fingerprint(self) -> str:
        """That of the plan as it was applied."""
        return (self.applied_plan or self.plan).fingerprint

    @property
    def is_unfinished(self) -> bool:
        """Interrupted between its first and its last entry, unless its process still runs; or not restored whole."""
        return self.state in UNFINISHED

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE


def sequence_of(identity: str) -> int:
    """The running number that a transaction's id is; 0 for a name that is no id."""
    return int(identity) if re.fullmatch(r"[0-9]{1,255}", identity) else 0


def encode_json(value: object) -> bytes:
    """JSON in which no character turns the direction of what a reader sees."""
    text = msgspec.json.encode(value).decode()
    return BIDI.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def encode_entry(entry: Entry) -> bytes:
    body = encode_json(entry)
    return b"%08x %s\n" % (zlib.crc32(body), body)


def decode_journal(data: bytes, where: str) -> tuple[Entry, ...]:
    """Entries of a journal. A last line without its newline is torn, and left out unless its checksum holds.

    Raises InvalidInputError for every other line that does not read as it was written, or stands where it cannot.
    """
    *lines, last = data.split(b"\n")
    entries: list[Entry] = []
    order = _Order()
    for number, line in enumerate(lines, 1):
        entry = _decode_line(line)
        if entry is None:
            newer = _is_whole(line) and (version := _version_in(lines[0])) not in (None, __version__)
            why = f"is of advisor {version}, and this one cannot read it" if newer else "damaged"
            raise InvalidInputError(f"{where}: line {number}: {why}")
        is_repeated = number > 1 and line == lines[number - 2] and not isinstance(entry, Undoing | Confirmed)
        if is_repeated or not order.accepts_entry(entry):
            raise InvalidInputError(f"{where}: line {number}: damaged (out of order)")
        entries.append(entry)
    torn = _decode_line(last)
    if torn is not None and order.accepts_entry(torn):
        entries.append(torn)
    return tuple(entries)


def pack_journal(fingerprint: str, data: bytes) -> bytes:
    """The journal of a closed transaction: a line by which scripts find the plan, and the rest as gzip(1) has it."""
    return b"plan\t%s\n" % fingerprint.encode() + zlib.compress(data, 9, _GZIP)


def unpack_journal(packed: bytes, where: str) -> bytes:
    """What `pack_journal` was given. Raises InvalidInputError."""
    unpacking = zlib.decompressobj(_GZIP)
    with contextlib.suppress(zlib.error):
        data = unpacking.decompress(packed.partition(b"\n")[2], MAX_JOURNAL_BYTES)
        if unpacking.eof:
            return data
    raise InvalidInputError(f"{where}: damaged")


_GZIP = 31


class _Order:
    """Which entry may follow those before it: a line that is repeated, lost or moved is damage."""

    def __init__(self) -> None:
        self._phase: Literal["new", "applying", "applied", "undoing", "undone"] = "new"
        self._announced: set[str] = set()
        self._settled: set[str] = set()

    def accepts_entry(self, entry: Entry) -> bool:
        phase = self._phase
        match entry:
            case Begun():
                self._phase = "applying"
                return phase == "new"
            case Doing(what):
                is_new = what not in self._announced
                self._announced.add(what)
                return phase == "applying" and is_new
            case Done(what) | Left(what):
                is_new = what in self._announced and what not in self._settled
                self._settled.add(what)
                return phase == "applying" and is_new
            case Applied(plan=plan):
                self._phase = "applied"
                return phase == ("applying" if plan is None else "applied")
            case Awaiting() | Confirmed():
                return phase == "applied"
            case Undoing():
                self._phase = "undoing"
                return phase != "new"
            case Undone():
                # What it follows may not have found room on a full disk.
                self._phase = "undone"
                return phase != "new"


def _is_whole(line: bytes) -> bool:
    """Whether a line is as it was written, by its checksum."""
    checksum, _, body = line.partition(b" ")
    return re.fullmatch(rb"[0-9a-f]{8}", checksum) is not None and int(checksum, 16) == zlib.crc32(body)


def _version_in(line: bytes) -> str | None:
    """The version of advisor that began a journal, by its first line."""
    found = re.search(rb'"version":"([0-9A-Za-z.+-]{1,40})"', line) if _is_whole(line) else None
    return None if found is None else found[1].decode()


def _decode_line(line: bytes) -> Entry | None:
    if not _is_whole(line):
        return None
    try:
        return _DECODER.decode(line.partition(b" ")[2])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def replay_entries(identity: str, entries: tuple[Entry, ...]) -> Record | None:
    """What the entries amount to; None where not even the first one is whole, so that nothing can have been done."""
    if not entries or not isinstance(entries[0], Begun):
        return None
    begun = entries[0]
    record = Record(
        *(identity, begun.plan, STATE_AFTER["begun"], begun.time, None, begun.boot_id, (), {}, (), None),
        forced=begun.forced,
        hardware=begun.hardware,
        network=begun.network,
    )
    for entry in entries[1:]:
        record = _apply_entry(record, entry)
    last = entries[-1]
    state = STATE_AFTER[str(last.__struct_config__.tag)]
    if isinstance(last, Undone):
        state = state_of_kept(why for _, why in last.kept)
    return msgspec.structs.replace(record, state=state)


def _apply_entry(record: Record, entry: Entry) -> Record:
    change = msgspec.structs.replace
    match entry:
        case Doing(what):
            return change(record, pending=what, announced=(*record.announced, what))
        case Done(what):
            return change(record, done=(*record.done, what), pending=None)
        case Left(what, why):
            return change(record, left=(*record.left, (what, why)), pending=None)
        case Applied(when, side_effects, None, _, peers):
            return change(record, was_applied=True, ended=when, side_effects_after=side_effects, peers=peers)
        case Applied(when, side_effects, plan, without):
            first = record.applied_plan or record.plan
            return change(record, plan=plan, without=without, applied_plan=first, side_effects_after=side_effects)
        case Awaiting(_, _, session):
            return change(record, session=session)
        case Confirmed(when):
            return change(record, confirmed=when)
        case Undoing(_, why):
            return change(record, why_undone=why)
        case Undone(when, kept, passed):
            whole = (record.applied_plan or record.plan) if kept else record.applied_plan
            return change(
                record, ended=when, kept=kept, passed=passed, plan=_left_over(record.plan, kept), applied_plan=whole
            )
    return record


def _left_over(plan: Plan, kept: Iterable[tuple[str, str]]) -> Plan:
    """What of a plan a rollback has not restored, with the side effects that restoring it may have; all of it where an
    item is none of the plan's."""
    names = {name for name, _ in kept}
    side_effects = {one.tunable for one in plan.side_effects}
    if not names or names - side_effects - {one.tunable for one in plan.changes} - {file.path for file in plan.files}:
        return plan
    links = set(filter(None, map(link_of, names)))
    return msgspec.structs.replace(
        plan,
        changes=tuple(one for one in plan.changes if one.tunable in names),
        files=tuple(file for file in plan.files if file.path in names),
        side_effects=tuple(
            one for one in plan.side_effects if one.coupled or one.tunable in names or link_of(one.tunable) in links
        ),
    )


def first_seen(records: Iterable[Record]) -> dict[str, str]:
    """Each tunable's value before the oldest active transaction."""
    seen: dict[str, str] = {}
    for record in records:
        if record.is_active:
            for change in record.plan.changes:
                seen.setdefault(change.tunable, change.before)
    return seen


class Bottom(msgspec.Struct, frozen=True):
    """What was there before all active transactions: values by tunable, contents by path (None: no file)."""

    values: Mapping[str, str]
    files: Mapping[str, bytes | None]


def bottom_of(records: Sequence[Record]) -> Bottom:
    files: dict[str, bytes | None] = {}
    for record in records:
        if record.is_active:
            for file in record.plan.files:
                files.setdefault(file.path, file.before)
    return Bottom(first_seen(records), files)


def find_record(records: Iterable[Record], identity: str, damaged: Iterable[Damaged] = ()) -> Record:
    """A transaction by its id, where leading zeros may be left out, or by a profile that is active once. Raises
    UsageError, InvalidInputError where it is a damaged one."""
    for broken in damaged:
        if sequence_of(broken.id) == sequence_of(identity):
            raise broken.as_error
    listed = tuple(records)
    matching = [one for one in listed if sequence_of(identity) == sequence_of(one.id)]
    of_profile = [one for one in listed if identity in one.plan.profiles]
    named = [one for one in of_profile if one.is_active] or [one for one in of_profile if one.is_unfinished]
    if not matching and len(named) > 1:
        ids = ", ".join(one.id for one in named)
        raise UsageError(f"{identity} is active more than once: {ids}", hint="name one of these ids")
    if not matching and not named:
        raise UsageError(f"there is no transaction {identity!r}", hint=_name_records(listed))
    return (*matching, *named)[0]


def _name_records(records: Sequence[Record]) -> str:
    """Which transactions there are, the last of many."""
    ids = [one.id for one in records]
    if not ids:
        return "this host has none: advisor apply makes one"
    if len(ids) == 1:
        return f"there is {ids[0]} alone: advisor status"
    if len(ids) <= _MOST_NAMED:
        return f"there are {', '.join(ids)}: advisor status"
    return f"there are {len(ids)}, at last {', '.join(ids[-3:])}: advisor status --all"


def find_waiting(records: Iterable[Record]) -> Record | None:
    """The transaction that awaits confirmation."""
    return next((one for one in records if one.state == "awaiting-confirmation"), None)


def with_watchdog_files(record: Record, standing: TransactionFiles) -> Record:
    """The record with the files of its watchdog, which are newer than the journal."""
    change = msgspec.structs.replace
    if standing.outcome is not None:
        kept = kept_items(record.plan, standing.outcome)
        state = state_of_kept(why for _, why in kept)
        outcome = standing.outcome
        return change(
            record, state=state, ended=outcome.time, kept=kept, why_undone=outcome.why, pending=None, by_watchdog=True
        )
    if standing.open is None:
        return record
    if standing.seconds_left is not None and record.state == "applied":
        return change(record, state="awaiting-confirmation", seconds_left=standing.seconds_left)
    is_undoing = standing.open != "pending" or record.state == "rolling-back"
    return change(record, state="rolling-back" if is_undoing else "applying", process=standing.process)


def noted_time(note: str, journal_bytes: int) -> float | None:
    """When everything was rolled back, by the note of the rollback script; None where the note is of a journal of
    another size."""
    found = re.fullmatch(r"([0-9]{1,12}) ([0-9]{1,12})\n", note)
    return None if found is None or int(found[1]) != journal_bytes else float(found[2])


def with_note(record: Record, note: str, journal_bytes: int) -> Record:
    """The record with the note of its rollback script that everything is restored: the size of the journal then, in
    bytes, and the time, in seconds since the epoch. Entries that the journal has since are newer than the note."""
    ended = noted_time(note, journal_bytes)
    # What was cut off is for the next run to look at, item by item.
    if ended is None or record.state in ("applying", "rolling-back", "rolled-back"):
        return record
    return msgspec.structs.replace(
        record,
        state="rolled-back",
        ended=ended,
        kept=(),
        why_undone=BY_SCRIPT,
        seconds_left=None,
        by_script=True,
        by_watchdog=False,
    )


def kept_items(plan: Plan, outcome: Watched) -> tuple[tuple[str, str], ...]:
    """What the watchdog did not restore, with the reason, from the lines that the rollback script printed."""
    values = [one.tunable for one in plan.changes] + [one.tunable for one in plan.side_effects]
    names = sorted(values + [file.path for file in plan.files], key=len, reverse=True)
    kept: list[tuple[str, str]] = []
    for line in outcome.lines:
        word, _, rest = line.partition(" ")
        if word in ("kept", "failed"):
            rest = rest.strip()
            name = next((one for one in names if rest.startswith(one)), rest)
            kept.append((name, f"{word}: {rest.removeprefix(name).lstrip(': ')}".rstrip(": ")))
    if outcome.code and not kept:
        kept.append(("rollback.sh", f"{FAILED}: ended with {outcome.code}: {' '.join(outcome.lines) or 'no message'}"))
    return tuple(kept)


def _mend_end(path: Path) -> None:
    """Make the journal end with a whole line, as it reads: what is torn goes, and a line end that is missing comes."""
    data = read_own_file(str(path), limit=MAX_JOURNAL_BYTES)
    start = data.rfind(b"\n") + 1
    last = data[start:]
    if not last:
        return
    fd = open_own_file(str(path), os.O_WRONLY | os.O_APPEND)
    try:
        if _decode_line(last) is None:
            os.ftruncate(fd, start)
        else:
            os.write(fd, b"\n")
        os.fsync(fd)
    finally:
        os.close(fd)


class Damaged(msgspec.Struct, frozen=True):
    """A transaction whose journal cannot be relied on. ``script`` is its rollback script, where one is left."""

    id: str
    message: str
    script: str | None
    by_script: bool = False
    """That script has rolled it back since, so that it blocks nothing."""
    directory: str = ""

    @property
    def look_command(self) -> str:
        """The command that shows what is left of it."""
        return f"ls -l {quote(self.directory)}; cat {quote(self.directory)}/journal"

    @property
    def settle_commands(self) -> tuple[str, ...]:
        """Commands that settle it: roll it back, or keep its values and set its records aside."""
        place = Path(self.directory)
        aside = f"mv {quote(self.directory)} {quote(str(place.parent.parent / f'set-aside-{self.id}'))}"
        return (aside,) if self.script is None else (f"sh {quote(self.script)}", aside)

    @property
    def as_error(self) -> InvalidInputError:
        return InvalidInputError(self.message, hint=self.hint)

    @property
    def hint(self) -> str:
        *script, aside = self.settle_commands
        roll = f"to roll it back: {script[0]}" if script else "no rollback script is left"
        return f"to look: {self.look_command}\n{roll}\nto keep its values, and set its records aside: {aside}"


def damaged_above(record: Record, damaged: Iterable[Damaged]) -> tuple[Damaged, ...]:
    """Damaged transactions that began after this one and may hold the same items."""
    return tuple(one for one in damaged if not one.by_script and sequence_of(one.id) > sequence_of(record.id))


class Journal:
    """One transaction's journal, open for appending."""

    def __init__(self, directory: Path, *, may_fail: bool = False) -> None:
        """Raises OSError where it cannot be written; with ``may_fail``, `write` does so instead."""
        self.id = directory.name
        self.directory = directory
        self.is_begun = False
        """An entry was written since it was opened."""
        self.is_ended = False
        """The last of them says that the transaction is rolled back."""
        self._unwritable: OSError | None = None
        self._fd = -1
        try:
            self._fd = open_own_file(str(directory / "journal"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            sync_directory(str(directory))
        except OSError as error:
            if not may_fail:
                raise
            self._unwritable = error

    def write_entry(self, entry: Entry) -> None:
        """Append and fsync; returns when the entry is on disk. Raises OSError, and leaves no part of it then."""
        if self._unwritable is not None:
            raise self._unwritable
        line = encode_entry(entry)
        with_reserve(self.directory, lambda: self._append_line(line))
        self.is_begun, self.is_ended = True, isinstance(entry, Undone)

    def _append_line(self, line: bytes) -> None:
        start = os.lseek(self._fd, 0, os.SEEK_END)
        try:
            data = memoryview(line)
            while data:
                data = data[os.write(self._fd, data) :]
            os.fsync(self._fd)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, start)
            raise

    def move_to(self, directory: Path) -> None:
        """Give the transaction's directory another name. Raises OSError."""
        os.rename(self.directory, directory)
        self.id, self.directory = directory.name, directory
        sync_directory(str(directory.parent))

    def close(self) -> None:
        """Note what it holds, and close it."""
        if self._fd >= 0:
            os.close(self._fd)
        if self._unwritable is not None:
            return
        # A full disk: the earlier note, which is of less, still holds.
        with contextlib.suppress(OSError, RefusedError):
            data = read_own_file(str(self.directory / "journal"), limit=MAX_JOURNAL_BYTES)
            note = b"%d %08x\n" % (len(data), zlib.crc32(data))
            path = str(self.directory / LENGTH)
            put_file(path, note, mode=0o600, uid=os.geteuid(), gid=os.getegid(), is_alone=True, is_durable=False)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _holds_bytes(path: str) -> bool:
    """Whether it is a file that is not empty: a version before left an empty mark beside a journal."""
    try:
        return os.lstat(path).st_size > 0
    except OSError:
        return False


def _take_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Store:
    """All transactions of a host, below one directory that belongs to root alone."""

    def __init__(self, directory: str | None = None) -> None:
        self.directory = Path(directory or named_directory() or STATE_DIRECTORY)
        self._closed: set[str] = set()

    @property
    def _transactions(self) -> Path:
        return self.directory / "transactions"

    @contextlib.contextmanager
    def hold_lock(self, *, may_be_read_only: bool = False, stopped_for: float | None = None) -> Iterator[None]:
        """Hold the store. Raises BusyError naming the holder, PermissionDeniedError or RefusedError if it cannot be.

        ``may_be_read_only`` is for what only restores: it holds a store that it cannot write to as well. A holder that
        stays stopped (SIGSTOP) for ``stopped_for`` seconds is ended; None: no process is ended.
        """
        try:
            for directory in (self.directory, self._transactions):
                make_own_directory(str(directory))
        except PermissionError as error:
            raise PermissionDeniedError(f"{self.directory}: {error.strerror}", hint="run it as root") from error
        except OSError as error:
            raise self._unwritable_error(error) from error
        path, flags = self.directory / "lock", os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600)
        except OSError as error:
            if not may_be_read_only or not is_read_only(error):
                raise self._unwritable_error(error) from error
            fd = os.open(path if os.path.lexists(path) else self.directory, os.O_RDONLY | flags)
        try:
            if not _take_lock(fd) and (
                stopped_for is None or not end_stopped_holders(path, stopped_for) or not _take_lock(fd)
            ):
                holder = os.pread(fd, 200, 0).decode("utf-8", "replace").strip() or "another process"
                raise BusyError(
                    f"another transaction is under way ({holder})",
                    hint=stopped_hint(lock_holders(path)) or "wait for it to end",
                )
            self._refuse_under_directory_lock()
            # Leave the holder's name in the lock file, for the one who finds it taken. A full disk stops nothing.
            with contextlib.suppress(OSError):
                os.ftruncate(fd, 0)
                os.pwrite(fd, f"process {os.getpid()}, since {time.strftime('%F %T')}\n".encode(), 0)
            yield
        finally:
            os.close(fd)

    def _refuse_under_directory_lock(self) -> None:
        """A script on a host without flock(1) holds the store by a directory; one that was killed does not."""
        place = self.directory / LOCK_DIRECTORY
        if not place.is_dir():
            return
        try:
            text = (place / "holder").read_text("ascii", "replace")
        except OSError:
            text = ""
        found = re.fullmatch(r"([0-9]{1,10}) ([0-9]{1,20})\n", text)
        if found is None or is_alive(int(found[1]), found[2]):
            holder = f"process {found[1]}" if found else "another process"
            hint = f"wait for it to end; where no such process is left: rm -r {quote(str(place))}"
            raise BusyError(f"another transaction is under way ({holder})", hint=hint)
        rmtree(place, ignore_errors=True)

    def _unwritable_error(self, error: OSError) -> RefusedError:
        return RefusedError(
            f"{self.directory}: the journal cannot be written: {error.strerror}",
            hint="make room there, or name another directory in ADVISOR_STATE_DIR",
        )

    def begin_journal(
        self, plan: Plan, *, version: str, data: bytes | None, origin: Origin = NOWHERE, forced: bool = False
    ) -> Journal:
        """A new journal, its first entry and the rollback script on disk. Raises RefusedError, nothing left then."""
        try:
            # A running number, not the time: a clock that is set back must not reorder transactions.
            last = max((sequence_of(name) for name in os.listdir(self._transactions)), default=0)
            name = f"{last + 1:04d}"
        except OSError as error:
            raise self._unwritable_error(error) from error
        # It is renamed once it is complete: a script next to an empty journal is then a damaged transaction.
        making = self._transactions / f".{name}.new"
        self._discard_directory(making)
        try:
            making.mkdir(mode=0o700)
            if data is not None:
                put_file(str(making / SCRIPT_DATA), data, mode=0o600, uid=0, gid=0)
                self._put_script(making / "rollback.sh", self._transactions / f"{last:04d}" / "rollback.sh")
            first = Begun(plan, origin.boot_id, time.time(), version, forced, origin.hardware, origin.network)
            items = len(plan.changes) + len(plan.side_effects) + len(plan.files)
            reserve_space(making, needed_bytes(len(encode_entry(first)), len(data or b""), items))
            # Before the journal: one that says that it is being applied, and has no such file, is damaged.
            Watchdog(making, "").open_files("pending", is_durable=False)
            journal = Journal(making)
            journal.write_entry(first)
            journal.move_to(self._transactions / name)
        except OSError as error:
            for directory in (making, self._transactions / name):
                self._discard_directory(directory)
            raise self._unwritable_error(error) from error
        return journal

    @staticmethod
    def _put_script(place: Path, earlier: Path) -> None:
        """The rollback script; one file for all transactions of this version that follow each other."""
        script = script_text().encode()
        with contextlib.suppress(OSError):
            if earlier.stat().st_uid in (0, os.geteuid()) and earlier.read_bytes() == script:
                os.link(earlier, place, follow_symlinks=False)
                return
        put_file(str(place), script, mode=0o700, uid=0, gid=0)

    @staticmethod
    def _discard_directory(directory: Path) -> None:
        with contextlib.suppress(OSError):
            for path in directory.iterdir():
                path.unlink()
            directory.rmdir()

    def watchdog_of(self, identity: str) -> Watchdog:
        """The watchdog of a transaction, armed or not."""
        return Watchdog(self._transactions.absolute() / identity, self._unit_name(identity))

    def _unit_name(self, identity: str) -> str:
        # Another store counts from 0001 as well, and all units have one set of names.
        own = str(self.directory)
        store = "" if own == STATE_DIRECTORY else f"-{zlib.crc32(os.fsencode(own)):08x}"
        return f"advisor-watchdog{store}-{identity}"

    def remove_leftovers(self, *, is_live: bool) -> None:
        """Remove what a kill has left of closed transactions; the caller holds the lock."""
        open_ones: set[str] = set()
        for record in self.open_records():
            watchdog = self.watchdog_of(record.id)
            standing = watchdog.read_state()
            if standing.open is not None or standing.outcome is not None:
                open_ones.add(record.id)
                continue
            keeps_script = record.is_active
            if watchdog.has_files(with_script=not keeps_script):
                ignore_errors(lambda one=watchdog, keeps=keeps_script: one.close_files(keeps_script=keeps))  # type: ignore[misc]
            if record.state == "rolled-back" and not record.by_script:
                self.close_for_good(record)
        self._thin_out_closed()
        if is_live:
            for identity in boot_units(self._unit_name("")):
                if identity not in open_ones:
                    ignore_errors(self.watchdog_of(identity).remove_boot_unit)

    def close_for_good(self, record: Record) -> None:
        """Leave of a transaction that is rolled back as a whole, and has no files of a running one, its journal alone,
        compressed."""
        directory = self._transactions / record.id

        def write() -> None:
            data = read_own_file(str(directory / "journal"), limit=MAX_JOURNAL_BYTES)
            # As long as it is not marked, the next run does what is left to do.
            for path in directory.iterdir():
                if path.name != "journal":
                    path.unlink()
            packed = pack_journal(record.fingerprint, data)
            put_file(str(directory / CLOSED), packed, mode=0o600, uid=os.geteuid(), gid=os.getegid())
            (directory / "journal").unlink()

        ignore_errors(write)

    def _thin_out_closed(self) -> None:
        """Remove the oldest closed transactions, but never the last one: the next one goes on from its number."""
        names = sorted(self._closed, key=sequence_of)
        oldest = time.time() - CLOSED_DAYS * 86400
        for left, name in zip(range(len(names), 1, -1), names, strict=False):
            directory = self._transactions / name
            if left <= MOST_CLOSED and os.path.getmtime(directory / CLOSED) > oldest:
                break
            rmtree(directory, ignore_errors=True)

    def reopen_journal(self, identity: str, *, may_fail: bool = False) -> Journal:
        """The journal to go on with. A last line that a power cut tore goes first: an entry behind it would join it.

        Raises OSError where it cannot be written; with ``may_fail``, writing an entry does so instead.
        """
        self._closed.discard(identity)
        try:
            (self._transactions / identity / CLOSED).unlink(missing_ok=True)
            _mend_end(self._transactions / identity / "journal")
        except OSError:
            if not may_fail:
                raise
        return Journal(self._transactions / identity, may_fail=may_fail)

    def write_script(self, identity: str, data: bytes) -> None:
        """Replace what a transaction's rollback script reads, and the script where it is of another version. Raises
        OSError."""
        path, script = self.script_path(identity), script_text().encode()

        def write() -> None:
            put_file(str(path.with_name(SCRIPT_DATA)), data, mode=0o600, uid=0, gid=0, is_alone=True)
            # A script that needs no data, of a version before, still holds all of its own.
            if not path.is_file() or path.read_bytes() != script:
                put_file(str(path), script, mode=0o700, uid=0, gid=0, is_alone=True)

        with_reserve(path.parent, write)

    def script_path(self, identity: str) -> Path:
        return self._transactions / identity / "rollback.sh"

    def read_records(self, *, with_closed: bool = True) -> tuple[Record, ...]:
        """Every transaction, oldest first. Raises InvalidInputError where one is damaged, and as `survey`."""
        records, damaged = self.survey_records(with_closed=with_closed)
        for one in damaged:
            if not one.by_script:
                raise one.as_error
        return records

    def readable_records(self) -> tuple[Record, ...]:
        """Every transaction that is not damaged, oldest first. Raises as `survey`."""
        return self.survey_records()[0]

    def open_records(self) -> tuple[Record, ...]:
        """As `readable_records`, without those that are known to be closed for good."""
        return self.survey_records(with_closed=False)[0]

    def survey_records(self, *, with_closed: bool = True) -> tuple[tuple[Record, ...], tuple[Damaged, ...]]:
        """Every transaction, oldest first, and those whose journals are damaged; ``with_closed`` is False for all but
        those that are known to be closed for good, whose journals nobody reads.

        Raises PermissionDeniedError where only root can read them, RefusedError where others could have written them.
        """
        try:
            for directory in (self.directory, self._transactions):
                check_own_directory(str(directory))
            names = os.listdir(self._transactions)
        except FileNotFoundError:
            return (), ()
        except PermissionError as error:
            raise PermissionDeniedError(f"{self.directory}: only root can read it", hint="run it as root") from error
        if not with_closed:
            names = [name for name in names if name not in self._closed]
            place = str(self._transactions)
            self._closed.update(name for name in names if _holds_bytes(f"{place}/{name}/{CLOSED}"))
            names = [name for name in names if name not in self._closed]
        names = sorted(filter(sequence_of, names), key=lambda name: (sequence_of(name), name))
        found = [self._load_record(name) for name in names]
        records = tuple(one for one in found if isinstance(one, Record))
        return records, tuple(one for one in found if isinstance(one, Damaged))

    def _load_record(self, name: str) -> Record | Damaged | None:
        path = self._transactions / name / "journal"
        data = b""
        try:
            data = self._read_journal(path)
            record = replay_entries(name, decode_journal(data, str(path)))
        except FileNotFoundError:
            return self._without_beginning(name, f"{path}: is not there", 0)
        except PermissionError as error:
            raise PermissionDeniedError(f"{path}: only root can read it", hint="run it as root") from error
        except InvalidInputError as error:
            return self._make_damaged(name, error.message, len(data))
        if record is None:
            message = f"{path}: line 1: damaged" if data else f"{path}: is empty"
            return self._without_beginning(name, message, len(data))
        standing = self.watchdog_of(name).read_state()
        # The files of a running transaction are there before it does anything, and until its journal says how it
        # ended: an unfinished journal without them cannot be right.
        if record.state in CUT_OFF and standing.open is None and standing.outcome is None:
            word = "applied" if record.state == "applying" else "rolled back"
            why = f"ends while the transaction is being {word}, and no file of a running transaction is there"
        else:
            why = None
        if why is None and not self._is_as_noted(name, data):
            why = "entries are missing, or are not those that were written"
        if why is not None:
            return self._make_damaged(name, f"{path}: damaged: {why}", len(data))
        return with_note(with_watchdog_files(record, standing), self._read_note(name), len(data))

    @staticmethod
    def _read_journal(path: Path) -> bytes:
        try:
            return read_own_file(str(path), limit=MAX_JOURNAL_BYTES)
        except FileNotFoundError:
            packed = path.with_name(CLOSED)
            return unpack_journal(read_own_file(str(packed), limit=MAX_JOURNAL_BYTES), str(packed))

    def _is_as_noted(self, name: str, data: bytes) -> bool:
        """Whether a journal begins with what it held when it was closed last; True where nothing says."""
        try:
            text = read_own_file(str(self._transactions / name / LENGTH), limit=_MAX_NOTE_BYTES)
        except (OSError, InvalidInputError, RefusedError):
            return True
        found = re.fullmatch(rb"(\d{1,9}) ([0-9a-f]{8})\n", text)
        if found is None:
            return True
        whole = data + b"\n" if _decode_line(data[data.rfind(b"\n") + 1 :]) is not None else data
        size = int(found[1])
        return len(whole) >= size and zlib.crc32(whole[:size]) == int(found[2], 16)

    def _without_beginning(self, name: str, message: str, journal_bytes: int) -> Damaged | None:
        """None where a power cut can have left it so, before anything was changed: no script was there by then."""
        return self._make_damaged(name, message, journal_bytes) if self.script_path(name).is_file() else None

    def _make_damaged(self, name: str, message: str, journal_bytes: int) -> Damaged:
        script = self.script_path(name)
        is_back = noted_time(self._read_note(name), journal_bytes) is not None
        there = str(script) if script.is_file() else None
        return Damaged(name, message, there, is_back, str(script.parent.absolute()))

    def _read_note(self, name: str) -> str:
        """What the rollback script has left of its own; empty where that is nothing, or not to be trusted."""
        try:
            data = read_own_file(str(self._transactions / name / NOTE), limit=_MAX_NOTE_BYTES)
        except (OSError, InvalidInputError, RefusedError):
            return ""
        return data.decode("ascii", "replace")

    def find_record(self, identity: str) -> Record:
        """One transaction, as `find_record` finds it. Raises UsageError, InvalidInputError where it is damaged."""
        try:
            records, damaged = self.survey_records(with_closed=False)
            return find_record(records, identity, damaged)
        except UsageError:
            records, damaged = self.survey_records()
            return find_record(records, identity, damaged)

    def stopped_holder(self) -> int | None:
        """The number of a process that holds the store and is stopped; None where none does."""
        return stopped_process(self.directory / "lock")

    def lock_holder(self) -> str | None:
        """Who holds the store and since when, for people; None where nobody does."""
        return read_lock_holder(self.directory / "lock")

    def find_waiting(self) -> Record | None:
        """The transaction that awaits confirmation."""
        return find_waiting(self.open_records())
