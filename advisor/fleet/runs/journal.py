"""The journal of a run over many hosts: JSON lines, each on disk before what follows from it is done.

An interrupted run is reconstructed from its journal and from the hosts themselves; what the journal alone says about a
host is never taken for its state. A power cut can tear the last line only, which is then as if it had not been written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from advisor.errors import BusyError, InvalidInputError, RefusedError, UsageError
from advisor.fleet.runs.waves import Wave, WaveShape
from advisor.fleet.scan import FleetStore
from advisor.host.numbers import is_count
from advisor.host.putfile import sync_directory
from advisor.host.safe_open import make_own_directory, open_own_file, read_own_file
from advisor.snapshot.remote.store import Sought

NAME = "journal"
MAX_BYTES = 256 << 20

Verb = Literal["apply", "confirm", "rollback", "gate", "capture"]
HostState = Literal[
    "applied", "awaiting-confirmation", "unchanged", "rolled-back", "refused", "failed", "unreachable", "unknown"
]
"""What is known of a host after a step.

``applied`` active and kept, ``awaiting-confirmation`` active until its window is over, ``unchanged`` and
``refused`` nothing was done, ``rolled-back`` as before, ``failed`` and ``unreachable`` nothing is left half-done there,
``unknown`` it may be either.
"""


class Asked(msgspec.Struct, frozen=True, tag="asked", tag_field="event"):
    """What was asked for, so that a resumed run asks for the same. ``time`` in seconds since 1970 everywhere."""

    time: float
    version: str
    profiles: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    inventory: tuple[str, ...]
    limit: str | None
    forks: int
    confirm_within: int
    shape: WaveShape
    gate_command: str | None = None
    proof: tuple[str, ...] | None = None
    """The options of the proof on the canary; None where none was asked for."""


PlannedState = Literal["change", "nothing", "unfit", "cannot", "failed", "done", "same"]
"""What a plan amounts to on a host.

``change`` there is something to do, ``nothing`` all is there already, ``unfit`` nothing of it applies there, ``cannot``
something is blocked, ``failed`` the host could not be asked, ``done`` an earlier part of the run changed it, ``same``
it is another name of a host that is planned for.
"""


class PlannedHost(msgspec.Struct, frozen=True):
    """A host of the run, and what the plan for it amounts to."""

    name: str
    state: PlannedState
    fingerprint: str | None = None
    values: int = 0
    files: int = 0
    message: str = ""
    after: int = 0
    """The running number of the last transaction that the host had when its plan was made."""

    @property
    def sought(self) -> Sought:
        """What its transaction will be known by."""
        return Sought(self.fingerprint or "", self.after)


class Planned(msgspec.Struct, frozen=True, tag="planned", tag_field="event"):
    time: float
    hosts: tuple[PlannedHost, ...]
    waves: tuple[Wave, ...]
    notes: tuple[str, ...]


class ProofBegun(msgspec.Struct, frozen=True, tag="proof-begun", tag_field="event"):
    """From here on the profile may be set on the host, and restored, many times."""

    time: float
    host: str
    token: str = ""
    """By which the host finds the process of the proof; empty in journals of before it was kept."""


class ProofDone(msgspec.Struct, frozen=True, tag="proof", tag_field="event"):
    """The end of a proof on a canary. ``code`` is an exit code: 0 for a gain, 1 for any other verdict.

    ``untouched`` the profile was never set there, ``rolled-back`` it was, and every value is as before, ``unknown`` it
    may be either; then ``by_hand`` is the command that shows it. ``path`` is the answer, kept on the controller.
    """

    time: float
    host: str
    code: int
    state: Literal["untouched", "rolled-back", "unknown"]
    message: str
    verdict: str | None = None
    path: str | None = None
    by_hand: str | None = None


class WaveBegun(msgspec.Struct, frozen=True, tag="wave-begun", tag_field="event"):
    time: float
    wave: int
    hosts: tuple[str, ...]


class HostDone(msgspec.Struct, frozen=True, tag="host", tag_field="event"):
    """What became of a host in one step. ``by_hand`` is the command that settles what is unknown."""

    time: float
    wave: int
    host: str
    verb: Verb
    state: HostState
    transaction: str | None = None
    message: str = ""
    by_hand: str | None = None


class GateDone(msgspec.Struct, frozen=True, tag="gate", tag_field="event"):
    """Whether the gate held; ``failing`` says in sentences why not, ``passing`` what was asked and answered."""

    time: float
    wave: int
    held: bool
    failing: tuple[str, ...]
    passing: tuple[str, ...] = ()


class WaveEnded(msgspec.Struct, frozen=True, tag="wave-ended", tag_field="event"):
    """``confirmed`` each of its hosts is kept; ``rolled-back`` each is as before; ``open`` one may be neither."""

    time: float
    wave: int
    outcome: Literal["confirmed", "rolled-back", "open"]


class RunInterrupted(msgspec.Struct, frozen=True, tag="interrupted", tag_field="event"):
    time: float
    message: str


class Resumed(msgspec.Struct, frozen=True, tag="resumed", tag_field="event"):
    """Resumed: to go on, or to be rolled back."""

    time: float
    verb: Literal["apply", "rollback"] = "apply"


class Ended(msgspec.Struct, frozen=True, tag="ended", tag_field="event"):
    """The end of the run, or of a rollback of it."""

    time: float
    code: int
    outcome: Literal["done", "nothing", "stopped", "rolled-back"]
    message: str = ""


ProofEntry = ProofBegun | ProofDone
WaveEntry = WaveBegun | HostDone | GateDone | WaveEnded
Entry = Asked | Planned | ProofEntry | WaveEntry | RunInterrupted | Resumed | Ended
_DECODER = msgspec.json.Decoder(Entry)


class RunJournal:
    """A run's journal, open for appending; also what it holds already."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        path = directory / NAME
        self.entries: list[Entry] = list(read_entries(directory))
        self._fd = open_own_file(str(path), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        size = os.fstat(self._fd).st_size
        tail = os.pread(self._fd, 1, size - 1) if size else b"\n"
        if tail != b"\n":
            whole = os.pread(self._fd, size, 0).rpartition(b"\n")[0]
            os.ftruncate(self._fd, len(whole) + 1 if whole else 0)
        sync_directory(str(directory))

    def write(self, entry: Entry) -> None:
        """Append and fsync. Raises OSError."""
        data = memoryview(msgspec.json.encode(entry) + b"\n")
        while data:
            data = data[os.write(self._fd, data) :]
        os.fsync(self._fd)
        self.entries.append(entry)

    def note(self, entry: Entry) -> None:
        """Write where that can be done: a full disk here must not prevent a rollback."""
        with contextlib.suppress(OSError):
            self.write(entry)

    def close(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> RunJournal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_entries(directory: Path) -> tuple[Entry, ...]:
    """The entries of a run's journal, without a torn last line. Raises InvalidInputError for damage anywhere else."""
    path = directory / NAME
    try:
        data = read_own_file(str(path), limit=MAX_BYTES)
    except FileNotFoundError:
        return ()
    where = str(path)
    found = []
    whole, _, _ = data.rpartition(b"\n")
    for number, line in enumerate(whole.split(b"\n") if whole else (), 1):
        try:
            found.append(_DECODER.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidInputError(
                f"{where}: line {number}: {error}", hint="the run cannot be read from it"
            ) from error
    return tuple(found)


class RunRecord(msgspec.Struct, frozen=True):
    """A run as its journal records it. ``hosts`` has the last thing that is known of each host that was touched."""

    id: str
    asked: Asked
    planned: Planned | None
    hosts: dict[str, HostDone]
    gates: tuple[GateDone, ...]
    outcomes: dict[int, str]
    """Of the waves that ended, by number."""
    began: float
    ended: Ended | None
    open_wave: WaveBegun | None
    """The wave that had begun when the journal ends, and not ended."""
    begun: tuple[tuple[str, ...], ...] = ()
    """The hosts of each wave that was begun, in the order in which that was."""
    sought: dict[str, Sought] = {}
    """The transaction by which each host was last to be changed."""
    is_going_back: bool = False
    """Whether the last request was to roll it back, not to carry it out."""
    proofs: tuple[ProofDone, ...] = ()
    """Every proof on a canary that came to an end, in their order."""
    open_proofs: dict[str, str] = {}
    """The token of each proof that may go on, or have left something, by host: one without an end, or whose end is
    unknown."""

    @property
    def state(self) -> str:
        """``planned``, ``interrupted`` (or still at it), or how it ended."""
        if self.ended is not None:
            return self.ended.outcome
        return "interrupted" if self.outcomes or self.open_wave or self.proofs or self.open_proofs else "planned"

    @property
    def waves(self) -> tuple[Wave, ...]:
        """The waves that were planned last."""
        return self.planned.waves if self.planned else ()

    @property
    def is_to_be_proven(self) -> bool:
        """Whether a proof on the canary was asked for and has not yet let the run begin."""
        return self.asked.proof is not None and self.planned is None

    @property
    def touched(self) -> tuple[str, ...]:
        """Hosts on which something may be active, in the order of their waves."""
        return tuple(
            name for name, one in self.hosts.items() if one.state in ("applied", "awaiting-confirmation", "unknown")
        )


def read_run(run_id: str, entries: tuple[Entry, ...]) -> RunRecord | None:
    """What the entries amount to; None where not even the first one is whole, so that nothing can have been done."""
    if not entries or not isinstance(entries[0], Asked):
        return None
    planned: Planned | None = None
    hosts: dict[str, HostDone] = {}
    gates: list[GateDone] = []
    outcomes: dict[int, str] = {}
    opened: WaveBegun | None = None
    ended: Ended | None = None
    begun: list[tuple[str, ...]] = []
    sought: dict[str, Sought] = {}
    is_going_back = False
    proofs = []
    open_proofs = {}
    for entry in entries:
        match entry:
            case Planned():
                # A resumed run counts its waves from one; what came of the hosts of earlier ones stays.
                planned, outcomes, opened = entry, {}, None
                changing = (one for one in entry.hosts if one.state == "change")
                sought.update({one.name: one.sought for one in changing})
            case ProofBegun():
                open_proofs[entry.host], ended = entry.token, None
            case ProofDone():
                proofs.append(entry)
                if entry.state != "unknown":
                    open_proofs.pop(entry.host, None)
            case WaveBegun():
                opened, ended = entry, None
                begun.append(entry.hosts)
            case HostDone() if entry.verb not in ("gate", "capture"):
                hosts[entry.host] = entry
            case GateDone():
                gates.append(entry)
            case WaveEnded():
                outcomes[entry.wave] = entry.outcome
                opened = None
            case Resumed():
                ended, is_going_back = None, entry.verb == "rollback"
            case Ended():
                ended = entry
            case _:
                pass
    began = entries[0].time
    return RunRecord(
        run_id, entries[0], planned, hosts, tuple(gates), outcomes, began, ended, opened, tuple(begun), sought,
        is_going_back, tuple(proofs), open_proofs,
    )  # fmt: skip


@contextlib.contextmanager
def lock_store(store: FleetStore) -> Iterator[None]:
    """Hold the store for one run. Raises BusyError naming the holder, RefusedError where it cannot be written."""
    try:
        make_own_directory(str(store.directory))
        fd = os.open(store.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RefusedError(
            f"{store.directory}: cannot be written: {error.strerror}", hint="name another place in ADVISOR_STATE_DIR"
        ) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 200, 0).decode("utf-8", "replace").strip() or "another process"
            raise BusyError(f"another fleet run is under way here ({holder})", hint="wait for it to end") from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"process {os.getpid()}, since {time.strftime('%F %T')}\n".encode(), 0)
        yield
    finally:
        os.close(fd)


def next_id(store: FleetStore) -> str:
    """The id of the next run: a running number, as a clock may be set back."""
    last = max((int(name) for name in store.runs() if is_count(name)), default=0)
    return f"{last + 1:04d}"


def all_runs(store: FleetStore) -> tuple[RunRecord, ...]:
    """Every run that got as far as to be asked for, oldest first. Raises InvalidInputError for a damaged journal."""
    found = (read_run(name, read_entries(store.directory / "runs" / name)) for name in store.runs())
    return tuple(run for run in found if run is not None)


def find_run(store: FleetStore, wanted: str | None) -> RunRecord:
    """A run by its id (leading zeros may be left out), or the last one. Raises UsageError."""
    runs = all_runs(store)
    if not runs:
        raise UsageError("there is no run", hint="advisor fleet apply makes one")
    if wanted in (None, "last"):
        return runs[-1]
    for one in runs:
        if one.id == wanted or one.id.lstrip("0") == str(wanted).lstrip("0"):
            return one
    raise UsageError(f"there is no run {wanted!r}", hint="advisor fleet status lists them")


def same_order(run: RunRecord) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """The waves of a run in which something may be active, in the order in which they were begun."""
    touched = set(run.touched)
    found = []
    for number, hosts in enumerate(run.begun, 1):
        # A host that was taken again is in the wave in which it was last.
        later = {name for others in run.begun[number:] for name in others}
        named = tuple(name for name in hosts if name in touched and name not in later)
        if named:
            found.append((number, named))
    return tuple(found)
