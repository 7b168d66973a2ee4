"""The façade: what each command does, as functions; the command line and other programs call the same ones.

The verbs are here, what belongs to one topic is in the modules of this package. A public function does what the command
or option of its name does and returns its record; `document` turns the records of the verbs into what ``--json`` prints
(`advisor schema`). Errors are those of `advisor.errors`, each with its message, hint and exit code. Nothing is printed,
there is no prompt, and only what says so changes the host.

A function imports what it needs when it is called: `advisor verify` loads no rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from advisor.errors import AdvisorError as AdvisorError
from advisor.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from advisor.facts.clusters.infoscale_configuration import Recognition
    from advisor.facts.host_facts import Facts
    from advisor.host import Host
    from advisor.host.provenance import Provenance
    from advisor.limits.declared import Declared
    from advisor.operations.muting import MutingEntry
    from advisor.operations.transactions import ApplyResult
    from advisor.planning.records import Plan
    from advisor.profiles.requested import RequestedProfile
    from advisor.recommend.records import Recommendation
    from advisor.rules.judged import ScanDifference
    from advisor.rules.rule import Finding
    from advisor.rules.workload import DeclaredWorkload
    from advisor.transaction.journal import Record
    from advisor.transaction.status import RolledBack, Status


# What `advisor` itself has too; `advisor.recommend` is a package.
__all__ = [
    "apply",
    "confirm",
    "document",
    "open_host",
    "plan",
    "rollback",
    "rollback_script",
    "scan",
    "status",
    "verify",
]


class Scan(msgspec.Struct, frozen=True):
    """The facts of a host, the findings of the rules (the muted ones too), and when and of what they are.

    ``expired`` are accepted findings that are shown again, since their last day is over; ``declared`` is what the file
    of volumes says, ``difference`` what has changed since an earlier scan.
    """

    facts: Facts
    findings: tuple[Finding, ...]
    provenance: Provenance
    expired: tuple[MutingEntry, ...] = ()
    declared: Declared | None = None
    difference: ScanDifference | None = None

    @property
    def active(self) -> tuple[Finding, ...]:
        """The findings that are not muted."""
        return tuple(one for one in self.findings if one.muted is None)


class Advice(msgspec.Struct, frozen=True):
    """The judgement on each profile, with the declared workload and the recognised system that it rests on.

    ``findings`` are those of a scan with that workload, with their muting.
    """

    workload: DeclaredWorkload | None
    recognised: Recognition | None
    recommendations: tuple[Recommendation, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def active(self) -> tuple[Finding, ...]:
        """The findings that are not muted."""
        return tuple(one for one in self.findings if one.muted is None)


def open_host(root: str | PathLike[str] | None = None, snapshot: str | PathLike[str] | None = None) -> Host:
    """Return a host to read: a captured tree, an archive or the output of the capture script; by default this host.

    Raises UsageError for both arguments, InvalidInputError for what cannot be read.
    """
    from advisor.snapshot import open as captures

    return captures.open_host(root, snapshot)


def scan(
    host: Host | None = None,
    *,
    workload: str | None = None,
    volumes: Path | None = None,
    interval: float | None = None,
    since: str | None = None,
    place: str = "",
    only_judged: bool = False,
) -> Scan:
    """Return the facts and findings of ``host``, by default of this host. Changes nothing.

    ``workload`` and ``volumes`` are what the options of their names take. ``interval``, in seconds, reads the load of
    the multipath paths of this host over that time instead of since each path was added. ``since`` is an earlier scan
    to compare with: a JSON document, a snapshot, or a date for the last one kept before it. ``place`` is where a
    captured host was opened, for its provenance. ``only_judged`` leaves out what takes time and no rule looks at,
    the version of systemd. Raises UsageError for an invalid workload, InvalidInputError for a file of volumes, of
    accepted findings or of an earlier scan that is, RefusedError where none is kept.
    """
    from advisor.facts.host_facts import scan as read_facts
    from advisor.host import live_host
    from advisor.host.provenance import read_provenance
    from advisor.operations.muting import mute_findings
    from advisor.rules.judged import judge

    wanted = declared = earlier = difference = None
    if workload:
        from advisor.recommend import declared as parse_workload

        wanted = parse_workload(workload)
    if volumes is not None:
        from advisor.limits.declared import read_declared

        declared = read_declared(volumes)
    if since is not None:
        from advisor.operations.files import read_earlier

        # Before the scan: what cannot be compared is known at once.
        earlier = read_earlier(since)
    asked = host or live_host()
    options = (*(("--workload", workload) if workload else ()), *(("--volumes", str(volumes)) if volumes else ()))
    provenance = read_provenance(asked, place, options)
    facts = read_facts(asked, with_drives=True, only_judged=only_judged)
    if interval is not None:
        from advisor.facts.block.block import over_interval

        facts = msgspec.structs.replace(facts, path_load=over_interval(asked, facts.arrays, interval))
    if declared is not None:
        from advisor.limits.paths import with_purchases

        facts = with_purchases(facts, declared)
    found = mute_findings(asked, facts, judge(facts, wanted))
    if earlier is not None:
        from advisor.rules.judged import compare_findings

        difference = compare_findings(earlier, found.findings)
    return Scan(facts, found.findings, provenance, found.expired, declared, difference)


def plan(
    *profiles: str | RequestedProfile,
    host: Host | None = None,
    settings: Mapping[str, str] | None = None,
    runtime_only: bool = False,
    instead_of: Sequence[str] = (),
) -> Plan:
    """Return the plan of the profiles on ``host``: the same host state gives the same plan. Changes nothing.

    A profile is named as on the command line: by name, file or ``ID=VALUE``. ``instead_of`` are active transactions
    of this host, by id or profile, that the plan replaces. Raises UsageError, and RefusedError where a budget does
    not hold.
    """
    from advisor.host import live_host
    from advisor.planner import plan_profiles

    _check_named(profiles)
    replaced: Sequence[str] = ()
    if instead_of:
        from advisor.transaction.approvals import active_by_name
        from advisor.transaction.journal import Store

        replaced = active_by_name(Store(), instead_of)
    return plan_profiles(host or live_host(), profiles, settings or {}, runtime_only=runtime_only, instead_of=replaced)


def apply(
    *profiles: str | RequestedProfile,
    settings: Mapping[str, str] | None = None,
    runtime_only: bool = False,
    peers: Sequence[str] = (),
    confirm_within: float = 60,
    agree: Callable[[Plan], bool] | None = None,
    force: bool = False,
    progress: Callable[[str], None] = lambda _: None,
    instead_of: Sequence[str] = (),
) -> ApplyResult:
    """Apply the profiles to this host as one transaction; no record if every value is already set. Changes the host.

    ``instead_of`` lists active transactions, by id or profile, that this one replaces. ``agree`` is called once with
    the plan before anything is changed; without it, a plan because of which a scan would newly warn is refused, unless
    with ``force``, which the journal records. A change of links waits ``confirm_within`` seconds for `confirm`. Raises
    PermissionDeniedError without root, RefusedError with nothing changed, RestoredError after a complete rollback,
    NotRestoredError if a value could not be restored.
    """
    from advisor.host import live_host
    from advisor.host.safe_open import need_root

    _check_named(profiles)
    need_root()
    from advisor.operations.transactions import apply_profiles

    return apply_profiles(
        live_host(),
        profiles,
        settings or {},
        runtime_only=runtime_only,
        agree=agree,
        force=force,
        progress=progress,
        peers=peers,
        confirm_within=confirm_within,
        instead_of=instead_of,
    )


def confirm(transaction: str | None = None, *, same_session: bool = False) -> Record:
    """Confirm the pending transaction, and roll back those that it replaces. Changes the host.

    Raises PermissionDeniedError without root, RefusedError if none is pending, or its time is over.
    """
    from advisor.operations.transactions import confirm_pending

    return confirm_pending(transaction, same_session=same_session).record


def status(transaction: str | None = None) -> Status:
    """Return every transaction of this host, or one, and the drift of the active ones. Changes nothing.

    Raises PermissionDeniedError without root, UsageError where there is no such transaction.
    """
    from advisor.host import live_host
    from advisor.transaction.status import host_status

    return host_status(live_host(), identity=transaction)


def verify(transaction: str | None = None, *, with_others: bool = True, root: Path | None = None) -> Status:
    """Compare the live values and files with one transaction, by default with all active ones: ``is_as_set``.

    ``with_others``: also which other tools set the same values, which may take a scan. ``root``: a host whose
    directories are mounted below it, with its transactions, instead of this one; what only a command or the kernel can
    be asked for is then unknown. Raises PermissionDeniedError without root, RefusedError if there is none to verify.
    """
    import os

    from advisor.transaction.journal import STATE_DIRECTORY, Store
    from advisor.transaction.status import verify_transactions

    below = None if root is None or os.environ.get("ADVISOR_STATE_DIR") else f"{root}{STATE_DIRECTORY}"
    store = Store(below)
    return verify_transactions(open_host(root), transaction, store, with_others=with_others)


def rollback(
    transaction: str | None = None,
    *,
    everything: bool = False,
    force: bool = False,
    any_host: bool = False,
    warn: Callable[[str], None] = lambda _: None,
) -> RolledBack:
    """Roll back one transaction, the last active one, or all; return each with the outcome of every item.

    ``force`` restores values that were modified externally, too, ``any_host`` those of a store that another machine has
    left; ``warn`` receives what could not be written meanwhile. Changes the host. Raises PermissionDeniedError without
    root, RefusedError if there is none.
    """
    from advisor.host import live_host
    from advisor.host.safe_open import need_root
    from advisor.transaction.status import rollback_transactions

    need_root()
    return rollback_transactions(
        live_host(), transaction, everything=everything, force=force, warn=warn, any_host=any_host
    )


def rollback_script(name: str | None = None, *, settings: Mapping[str, str] | None = None) -> str:
    """Return the POSIX ``sh`` script that rolls back a transaction, or a profile as it would be applied now.

    Raises UsageError for a name that is neither, RefusedError where there would be nothing to roll back.
    """
    from advisor.host import live_host
    from advisor.operations.transactions import script_for

    return script_for(live_host(), name, settings or {})


def recommend(host: Host | None = None, *, workload: str | None = None) -> Advice:
    """Return which profiles fit ``host`` and a declared workload, and why the others do not. Changes nothing.

    Raises UsageError for an invalid workload, InvalidInputError for a file of accepted findings that is.
    """
    from advisor.facts.host_facts import scan as read_facts
    from advisor.host import live_host
    from advisor.operations.muting import mute_findings
    from advisor.recommend import declared, outlooks
    from advisor.recommend import recommend as judge_profiles
    from advisor.rules.clusters.infoscale import recognition
    from advisor.rules.judged import judge

    wanted = declared(workload) if workload is not None else None
    asked = host or live_host()
    facts = read_facts(asked)
    found = tuple(judge_profiles(facts, wanted, outlooks(asked, facts)))
    return Advice(wanted, recognition(facts, wanted), found, mute_findings(asked, facts, judge(facts, wanted)).findings)


def document(found: object) -> dict[str, Any]:
    """Return what ``--json`` prints of a record of these functions. Raises TypeError for other types."""
    from advisor.planning.records import Plan, plan_document

    if isinstance(found, Plan):
        return _decode(msgspec.json.encode(plan_document(found)))
    from advisor.operations.transactions import ApplyResult
    from advisor.report.documents import status_document, transaction_document
    from advisor.report.json import scan_document
    from advisor.report.recommend import recommendation_document
    from advisor.transaction.journal import Record
    from advisor.transaction.status import Status

    match found:
        case Scan():
            data = scan_document(found.facts, found.findings, found.provenance, found.difference)
        case ApplyResult(plan=made, record=record):
            data = msgspec.json.encode(transaction_document(record, made))
        case Record():
            data = msgspec.json.encode(transaction_document(found, found.plan))
        case Status():
            data = msgspec.json.encode(status_document(found))
        case Advice():
            data = recommendation_document(found.workload, found.recommendations, found.recognised)
        case _:
            raise TypeError(f"{type(found).__name__} is no record of advisor.operations")
    return _decode(data)


def _decode(data: bytes) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(data)
    return decoded


def _check_named(profiles: Sequence[object]) -> None:
    if not profiles:
        raise UsageError("no profile is named", hint="advisor profiles lists them")
