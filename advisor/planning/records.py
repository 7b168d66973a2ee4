"""The records of a plan; their JSON is ``advisor.plan/1`` of the command-line contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from advisor.errors import RefusedError
from advisor.facts.redaction import for_display
from advisor.facts.writers.programs import LastWord
from advisor.host import Probe, PutFile, RunCommand, Step
from advisor.tunables import Effect, FileEdit, Risk
from advisor.tunables.kind import Sense
from advisor.tunables.preflight import ClassMember, LinkMark, SideEffect

SkipState = Literal["in-place", "would-lower", "kept", "not-applicable", "by-hand", "blocked", "overridden", "unknown"]

# States in which something that was asked for cannot be done: nothing at all is then applied.
BLOCKING: frozenset[SkipState] = frozenset({"blocked", "overridden"})

SATISFIED: frozenset[SkipState] = frozenset({"in-place", "would-lower", "kept"})


class PlanTarget(msgspec.Struct, frozen=True):
    """A wanted value on this host: ``value``, or ``multiply`` times the value before the oldest transaction.

    ``is_of_default``: ``multiply`` times the default of LLT instead, which is ``default`` where a person said it.
    """

    tunable: str
    value: str
    sense: Sense | tuple[Sense, ...]
    why: str
    hurts_when: str
    sources: tuple[str, ...]
    profile: str
    rank: int = 0
    multiply: int | None = None
    may_be_left_out: bool = False
    """Nobody named its device: where that cannot take the value, it alone is left out."""
    is_of_default: bool = False
    default: int | None = None


class Skipped(msgspec.Struct, frozen=True):
    """What will not be changed and why. ``state`` keeps *not applicable* apart from *blocked* and *already there*;
    *by hand* is what a person has to do instead."""

    tunable: str
    before: str | None
    wanted: str | None
    reason: str
    state: SkipState
    profile: str


class Change(msgspec.Struct, frozen=True):
    """One tunable, its value before and after. ``steps`` set ``after``, ``undo`` restores ``before``.

    ``persist`` is the file that carries it over a reboot; where it is None, ``persist_note`` says why.
    """

    tunable: str
    before: str
    after: str
    persist: str | None
    persist_note: str | None
    risk: Risk
    takes_effect: Effect
    why: str
    hurts_when: str
    sources: tuple[str, ...]
    profile: str
    probe: Probe
    steps: tuple[Step, ...]
    undo: tuple[Step, ...]
    members: tuple[ClassMember, ...] = ()
    """Of a rule for a class: the devices that were there, with what they had; a rollback restores that, and not what
    the rule found at a later boot."""
    next_boot: str | None = None
    """The value after the next boot, with the plan carried out; None where it is not known."""
    last_word: LastWord | None = None
    """Who gives it another value, or may, after ``persist`` was read; without ``persist``, who sets it at boot."""


class FileChange(msgspec.Struct, frozen=True):
    """A configuration file, whole, before and after (base64 in JSON); None before means that it is not there.

    ``edits`` are what made the one of the other; ``new_directories``, innermost first, are made for it.
    """

    path: str
    before: bytes | None
    after: bytes
    mode: int
    uid: int
    gid: int
    mode_before: int | None
    reload: tuple[RunCommand, ...]
    tunables: tuple[str, ...]
    edits: tuple[FileEdit, ...]
    new_directories: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        return (PutFile(self.path, self.after, self.mode, self.uid, self.gid), *self.reload)

    @property
    def undo(self) -> PutFile:
        """Restores the earlier content; the reload steps follow once for all files."""
        mode = self.mode if self.mode_before is None else self.mode_before
        return PutFile(self.path, self.before, mode, self.uid, self.gid, self.new_directories)


class Foreseen(msgspec.Struct, frozen=True):
    """A finding that a scan would newly report after a plan: its rule's id, severity, title and why, and its
    devices."""

    id: str
    severity: str
    title: str
    why: str
    devices: tuple[str, ...] = ()

    @property
    def is_warning(self) -> bool:
        """Whether the plan needs a person's agreement because of it: a warning, or critical."""
        return self.severity in ("warning", "critical")


class NewWarningError(RefusedError):
    """A plan because of which a scan would newly warn, and to which neither a person nor ``--force`` has agreed."""


def refuse_warnings(found: Sequence[Foreseen], where: str = "") -> None:
    """Raise NewWarningError, with the first of the findings, where there are any; ``where`` names the host."""
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise NewWarningError(
            f"{where}a scan would then report {found[0].id}: {found[0].title}{more}",
            hint="advisor plan shows it; --force applies the plan all the same",
        )


class Origin(msgspec.Struct, frozen=True):
    """What distinguishes the machine on which a transaction is made: ``hardware``, the UUID of the SMBIOS, which a copy
    of its disks does not take along, the boot, and the cookie of the network namespace. None is not known."""

    hardware: str | None = None
    boot_id: str | None = None
    network: int | None = None


NOWHERE = Origin()
"""Of a machine of which nothing is known."""


class Plan(msgspec.Struct, frozen=True):
    """An ordered list of changes. Nothing in it depends on the clock, on chance, or on the order of a set."""

    profiles: tuple[str, ...]
    machine_id: str | None
    changes: tuple[Change, ...]
    files: tuple[FileChange, ...]
    side_effects: tuple[SideEffect, ...] = msgspec.field(name="bystanders")
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] = ()
    """The values of --set, so that the same plan can be made again."""
    runtime_only: bool = False
    claims: tuple[Change, ...] = ()
    """Values that an active transaction has set already, and that this one holds as well: they are not written, and
    stay when that one is rolled back. ``before`` is ``after``."""
    claimed_files: tuple[FileChange, ...] = ()
    """Files of active transactions that hold the settings of this one already; ``before`` is ``after``."""
    instead_of: tuple[str, ...] = ()
    """Ids of the transactions that this one replaces."""
    links: tuple[LinkMark, ...] = ()
    """What distinguishes the links of this plan from others that may get their names."""
    words: tuple[str, ...] = ()
    """What asks for this plan on a command line, where that is not the names of its profiles alone: files, values."""
    namespace: Mapping[str, int] | None = None
    """Inode numbers of the namespaces whose values it sets, by kind (net, ipc), where they are not those of the host as
    a whole."""
    foreseen: tuple[Foreseen, ...] = ()
    """Findings that the host would newly have, gravest first; of the fingerprint are only their ids."""

    @property
    def would_report(self) -> tuple[str, ...]:
        """The ids of `foreseen`, each once."""
        return tuple(dict.fromkeys(one.id for one in self.foreseen))

    @property
    def warnings(self) -> tuple[Foreseen, ...]:
        """Those of `foreseen` that are warnings or critical."""
        return tuple(one for one in self.foreseen if one.is_warning)

    @property
    def is_empty(self) -> bool:
        return not self.changes and not self.files and not self.claims

    @property
    def has_link_risk(self) -> bool:
        """Whether carrying it out could cut this host off."""
        return any(change.risk == "link" for change in self.changes)

    @property
    def persists(self) -> bool:
        """Whether carrying it out changes what the next boot brings."""
        return bool(self.files) or any(change.persist is not None for change in self.changes)

    @property
    def cannot_apply(self) -> bool:
        """Whether an item is blocked, or nothing of the plan applies to this host (other than: already set)."""
        satisfied = any(one.state in SATISFIED for one in self.skipped)
        return bool(self.blocking) or (self.is_empty and not satisfied)

    @property
    def blocking(self) -> tuple[Skipped, ...]:
        return tuple(one for one in self.skipped if one.state in BLOCKING)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the canonical JSON of everything else; a plan without layers has the one that it always had."""
        import hashlib

        # Values are one profile, in whatever order they were typed.
        words = tuple(sorted(self.words)) if len(self.profiles) == 1 else self.words
        body = msgspec.json.encode(msgspec.structs.replace(self, words=words, foreseen=()), order="deterministic")
        body += msgspec.json.encode(self.would_report) if self.foreseen else b""
        for name in ("claims", "claimed_files", "instead_of", "links", "words", "foreseen"):
            if not getattr(self, name):
                body = body.replace(b',"%s":[]' % name.encode(), b"")
        for default in (
            b',"coupled":false',
            b',"members":[]',
            b',"next_boot":null',
            b',"last_word":null',
            b',"namespace":null',
        ):
            body = body.replace(default, b"")
        return hashlib.sha256(body).hexdigest()


def plan_document(plan: Plan) -> dict[str, object]:
    """``advisor.plan/1``. Files are in it as they are shown, without passwords and keys; the fingerprint is of the plan
    as it is."""
    files, claimed = (tuple(map(_redact_file, files)) for files in (plan.files, plan.claimed_files))
    body: dict[str, object] = msgspec.to_builtins(msgspec.structs.replace(plan, files=files, claimed_files=claimed))
    head = {"schema": "advisor.plan/1", "fingerprint": plan.fingerprint, "would_report": plan.would_report}
    return {**head, **body}


def _redact_file(file: FileChange) -> FileChange:
    return msgspec.structs.replace(
        file,
        before=None if file.before is None else for_display(file.path, file.before),
        after=for_display(file.path, file.after),
    )
