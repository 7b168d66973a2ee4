"""Approvals of a person for a change that another program asks for: given on a terminal, for one plan, used once.

Below ``agents`` in the state directory, for root alone: ``requests`` (what programs want to apply), ``approvals``
(what persons have approved, each a file until it is used or refused) and ``journal`` (who asked for what, who approved
it and what became of it, a JSON document a line).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from advisor.errors import InvalidInputError, PermissionDeniedError, RefusedError, UsageError, as_root
from advisor.host import Host
from advisor.host.putfile import put_file, sync_directory
from advisor.host.safe_open import make_own_directory, open_own_file, read_own_file
from advisor.transaction.journal import Store, find_waiting, sequence_of

# Which transactions a request names, and whether a new one may begin.


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


FORMAT = 1
MAX_SECONDS = 3600.0
"""An approval holds no longer than this."""
MAX_REQUESTS = 100
MAX_JOURNAL_BYTES = 4 << 20
BEGINNINGS = frozenset({"apply", "rollback"})
"""Entries before a change is begun."""
END_BYTES = 4096
_MAX_FILE_BYTES = 1 << 20

Operation = Literal["apply", "rollback"]
_T = TypeVar("_T")


class PlanRequest(msgspec.Struct, frozen=True):
    """What a program wants to apply: enough to compute the plan again. ``asked_by`` is what the program calls itself,
    and not verified; times are in seconds since the epoch."""

    fingerprint: str
    profiles: tuple[str, ...]
    settings: dict[str, str]
    runtime_only: bool
    asked_by: str
    asked_at: float


class Approval(msgspec.Struct, frozen=True):
    """A person's approval of one operation with one plan on one host, until that host boots again at most.

    ``boot_seconds`` is the time since boot when it was given, ``seconds`` how long it holds: a clock that is set does
    not change that. ``transaction`` is the one that is rolled back, ``restores`` the fingerprint of what that restores.
    """

    format: int
    id: str
    operation: Operation
    fingerprint: str
    host: str
    boot: str
    boot_seconds: float
    seconds: float
    approved_by: str
    approved_at: float
    transaction: str | None = None
    restores: str | None = None


class ApprovalStore:
    """The requests and approvals of a host, and the journal of both."""

    def __init__(self, store: Store, host: Host) -> None:
        self._store = store
        self._host = host
        self._place = store.directory / "agents"

    @property
    def journal_path(self) -> Path:
        return self._place / "journal"

    def save_request(self, request: PlanRequest) -> None:
        """Keep what a program wants to apply; the oldest of more than `MAX_REQUESTS` are removed."""
        place = self._make_directory("requests")
        _write_file(place / f"{request.fingerprint}.json", request)
        kept = sorted(place.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in kept[:-MAX_REQUESTS]:
            # Another server may have removed it; a directory is nothing that advisor made.
            with contextlib.suppress(OSError):
                path.unlink()

    def find_request(self, fingerprint: str) -> PlanRequest:
        """The request whose plan has this fingerprint, or the only one that begins so. Raises RefusedError."""
        place = self._make_directory("requests")
        found = [path for path in place.glob("*.json") if path.stem.startswith(fingerprint)]
        if len(found) != 1 or not fingerprint:
            raise RefusedError(
                f"no plan with the fingerprint {fingerprint} was asked for",
                hint="let the program plan again; this host's state may have changed",
            )
        return _read_file(found[0], PlanRequest)

    def grant(
        self,
        operation: Operation,
        fingerprint: str,
        *,
        seconds: float,
        approved_by: str,
        asked_by: str = "",
        transaction: str | None = None,
        restores: str | None = None,
    ) -> Approval:
        """Write an approval, in place of an earlier one of the same. Raises RefusedError where it cannot be written."""
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        made = Approval(
            *(FORMAT, secrets.token_hex(8), operation, fingerprint, self._identify_host(), self._boot(), now),
            *(min(seconds, MAX_SECONDS), approved_by, time.time(), transaction, restores),
        )
        place = self._make_directory("approvals")
        what: dict[str, object] = {"operation": operation, "fingerprint": fingerprint, "asked_by": asked_by}
        self.write_entry("approved", approval=made.id, seconds=made.seconds, by=approved_by, **what)
        _write_file(place / f"{operation}-{fingerprint}.json", made)
        return made

    def decline(self, operation: Operation, fingerprint: str, *, declined_by: str, asked_by: str = "") -> None:
        """Withdraw an approval of this, where there is one, and record it. Raises RefusedError where it cannot be."""
        path = self._make_directory("approvals") / f"{operation}-{fingerprint}.json"
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise RefusedError(f"{path}: {error.strerror}") from error
        what: dict[str, object] = {"operation": operation, "fingerprint": fingerprint, "asked_by": asked_by}
        self.write_entry("declined", by=declined_by, **what)

    def take(
        self, operation: Operation, fingerprint: str, *, transaction: str | None = None, restores: str | None = None
    ) -> Approval:
        """The approval of this operation with this plan, which is used up: one that does not hold is removed, too.

        Raises RefusedError where there is none, or it is not root's alone, of another plan, host or boot, or expired.
        """
        place = self._make_directory("approvals")
        file = place / f"{operation}-{fingerprint}.json"
        taken = place / f"taken-{secrets.token_hex(8)}"
        try:
            os.rename(file, taken)
        except FileNotFoundError:
            raise RefusedError(
                "no person has approved this plan, or the approval is used already",
                hint=approve_hint(operation, fingerprint),
            ) from None
        except OSError as error:
            raise RefusedError(f"{file}: {error.strerror}") from error
        try:
            found = _read_file(taken, Approval)
        finally:
            # A directory in its place stays, under a name that approves nothing: the message says where it is.
            with contextlib.suppress(IsADirectoryError):
                taken.unlink()
            sync_directory(str(place))
        fault = self._find_fault(found, operation, fingerprint, transaction, restores)
        if fault is not None:
            raise RefusedError(f"the approval does not hold: {fault}", hint=approve_hint(operation, fingerprint))
        return found

    def write_entry(self, event: str, **fields: object) -> None:
        """Append to the journal, on disk when this returns. Raises RefusedError where it cannot be written or is full:
        what is not recorded is not done."""
        self._make_directory("")
        line = msgspec.json.encode({"time": time.time(), "event": event, **fields}) + b"\n"
        try:
            fd = open_own_file(str(self.journal_path), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                # Of a change that is begun, the end has to be recorded, too.
                reserve = END_BYTES if event in BEGINNINGS else 0
                if os.fstat(fd).st_size + len(line) + reserve > MAX_JOURNAL_BYTES:
                    raise RefusedError(
                        f"{self.journal_path}: the journal is full",
                        hint=f"move it away: mv {self.journal_path} {self.journal_path}.old",
                    )
                os.write(fd, line)
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise RefusedError(f"{self.journal_path}: {error.strerror}") from error

    def has_room_to_spare(self) -> bool:
        """Whether less than half of the journal is used; the rest is kept for what a person approved."""
        try:
            return self.journal_path.stat().st_size < MAX_JOURNAL_BYTES // 2
        except FileNotFoundError:
            return True
        except OSError:
            return False

    def _find_fault(
        self, found: Approval, operation: Operation, fingerprint: str, transaction: str | None, restores: str | None
    ) -> str | None:
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - found.boot_seconds
        faults = {
            "it is of another version of advisor": found.format != FORMAT,
            "it is for another operation": found.operation != operation or found.transaction != transaction,
            "it is for another plan": found.fingerprint != fingerprint,
            "what the rollback restores has changed since": found.restores != restores,
            "it is for another host": found.host != self._identify_host(),
            "it was given before the last boot": found.boot != self._boot(),
            "it has expired": not 0 <= age < min(found.seconds, MAX_SECONDS),
        }
        return next((why for why, holds in faults.items() if holds), None)

    def _identify_host(self) -> str:
        known = self._host.read_text("/etc/machine-id")
        return known or f"name {os.uname().nodename}"

    def _boot(self) -> str:
        known = self._host.read("/proc/sys/kernel/random/boot_id")
        if not isinstance(known, str):
            raise RefusedError(f"the id of this boot: {known.why}")
        return known.strip()

    def _make_directory(self, name: str) -> Path:
        try:
            for place in (self._store.directory, self._place, self._place / name):
                make_own_directory(str(place))
        except PermissionError as error:
            raise PermissionDeniedError(f"{self._place}: {error.strerror}", hint="run it as root") from error
        except OSError as error:
            raise RefusedError(f"{self._place}: {error.strerror}") from error
        return self._place / name


def approve_hint(operation: Operation, fingerprint: str) -> str:
    """The command that a person runs."""
    option = " --rollback" if operation == "rollback" else ""
    call = as_root(f"advisor approve {fingerprint[:16]}{option} --for 10m")
    return f"a person approves it on a terminal of this host: {call}"


def _write_file(path: Path, record: msgspec.Struct) -> None:
    data = msgspec.json.encode(record)
    try:
        put_file(str(path), data, mode=0o600, uid=os.geteuid(), gid=os.getegid())
    except OSError as error:
        raise RefusedError(f"{path}: {error.strerror}") from error


def _read_file(path: Path, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(read_own_file(str(path), limit=_MAX_FILE_BYTES), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path}: not a file that advisor wrote", hint="approve the plan again") from error
    except OSError as error:
        raise RefusedError(f"{path}: {error.strerror}") from error
