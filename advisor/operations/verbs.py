"""The commands as functions, for the command line and for other programs (docs/api.md is generated from this module).

Each function does what the command of its name does and returns its record; `document` turns a record into what
``--json`` prints (docs/schemas). Errors are those of `advisor.errors`, each with its message, hint and exit code.
Nothing is printed, there is no prompt, and only `apply`, `confirm` and `rollback` change the host.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from advisor.errors import AdvisorError, UsageError
from advisor.facts.host_facts import Facts
from advisor.facts.infoscale_configuration import Recognition
from advisor.host import Host, live_host
from advisor.host.provenance import Provenance, read_provenance
from advisor.host.trusted_files import need_root
from advisor.operations.muting import mute_findings
from advisor.operations.transactions import CONFIRM_SECONDS, ApplyResult
from advisor.planning.records import Plan
from advisor.recommend.records import Recommendation
from advisor.rules.finding import Finding
from advisor.rules.workload import DeclaredWorkload
from advisor.snapshot.open import open_host
from advisor.transaction.journal import Record
from advisor.transaction.status import RolledBack, Status

__all__ = [
    "Advice",
    "AdvisorError",
    "Scan",
    "apply",
    "confirm",
    "document",
    "open_host",
    "plan",
    "recommend",
    "rollback",
    "rollback_script",
    "scan",
    "status",
    "verify",
]

_NO_SETTINGS: Final[Mapping[str, str]] = {}


class Scan(msgspec.Struct, frozen=True):
    """The facts of a host, the findings of the rules (the muted ones too), and when and of what they are."""

    facts: Facts
    findings: tuple[Finding, ...]
    provenance: Provenance | None = None


class Advice(msgspec.Struct, frozen=True):
    """The judgement on each profile, with the declared workload and the recognised system that it rests on."""

    workload: DeclaredWorkload | None
    recognised: Recognition | None
    recommendations: tuple[Recommendation, ...]


def scan(host: Host | None = None, *, workload: str | None = None) -> Scan:
    """Return the facts and findings of ``host``, by default of this host. Changes nothing.

    ``workload`` is what ``--workload`` takes. Raises UsageError for an invalid one, InvalidInputError for a file of
    accepted findings that is.
    """
    from advisor.facts.host_facts import scan as read_facts
    from advisor.rules.registry import judge

    wanted = None
    if workload:
        from advisor.recommend import declared

        wanted = declared(workload)
    asked = host or live_host()
    facts = read_facts(asked)
    muted = mute_findings(asked, facts, judge(facts, wanted))
    return Scan(facts, muted.findings, read_provenance(asked))


def plan(
    *profiles: str,
    host: Host | None = None,
    settings: Mapping[str, str] = _NO_SETTINGS,
    runtime_only: bool = False,
) -> Plan:
    """Return the plan of the profiles on ``host``: the same host state gives the same plan. Changes nothing.

    Raises UsageError, and RefusedError where a budget does not hold.
    """
    from advisor.planner import plan_profiles

    _check_named(profiles)
    return plan_profiles(host or live_host(), profiles, settings, runtime_only=runtime_only)


def apply(
    *profiles: str,
    settings: Mapping[str, str] = _NO_SETTINGS,
    runtime_only: bool = False,
    peers: Sequence[str] = (),
    confirm_within: float = CONFIRM_SECONDS,
    agree: Callable[[Plan], bool] = lambda _: True,
    progress: Callable[[str], None] = lambda _: None,
    instead_of: Sequence[str] = (),
) -> ApplyResult:
    """Apply the profiles to this host as one transaction; no record if every value is already set. Changes the host.

    ``instead_of`` lists active transactions, by id or profile, that this one replaces. ``agree`` is called once with
    the plan before anything is changed. A change of links waits ``confirm_within`` seconds for `confirm`. Raises
    PermissionDeniedError without root, RefusedError with nothing changed, RestoredError after a complete rollback,
    NotRestoredError if a value could not be restored.
    """
    from advisor.operations.transactions import apply_profiles

    _check_named(profiles)
    need_root()
    return apply_profiles(
        live_host(),
        profiles,
        settings,
        runtime_only=runtime_only,
        agree=agree,
        progress=progress,
        peers=peers,
        confirm_within=confirm_within,
        instead_of=instead_of,
    )


def confirm(transaction: str | None = None, *, same_session: bool = False) -> Record:
    """Confirm the pending transaction. Raises RefusedError if none is pending, or its time is over."""
    from advisor.transaction.status import confirm_transaction

    need_root()
    return confirm_transaction(live_host(), transaction, same_session=same_session)


def status() -> Status:
    """Return every transaction of this host, and the drift of the active ones. Changes nothing."""
    from advisor.transaction.status import host_status

    return host_status(live_host())


def verify(transaction: str | None = None) -> Status:
    """Compare the live values and files with one transaction, by default with all active ones: ``is_as_set``."""
    from advisor.transaction.status import verify_transactions

    return verify_transactions(live_host(), transaction)


def rollback(transaction: str | None = None, *, everything: bool = False, force: bool = False) -> RolledBack:
    """Roll back one transaction, the last active one, or all; return each with the outcome of every item."""
    from advisor.transaction.status import rollback_transactions

    need_root()
    return rollback_transactions(live_host(), transaction, everything=everything, force=force)


def rollback_script(name: str | None = None, *, settings: Mapping[str, str] = _NO_SETTINGS) -> str:
    """Return the POSIX ``sh`` script that rolls back a transaction, or a profile as it would be applied now."""
    from advisor.operations.transactions import script_for

    return script_for(live_host(), name, settings)


def recommend(host: Host | None = None, *, workload: str | None = None) -> Advice:
    """Return which profiles fit ``host`` and a declared workload, and why the others do not. Changes nothing."""
    from advisor.facts.host_facts import scan as read_facts
    from advisor.recommend import declared, outlooks
    from advisor.recommend import recommend as judged
    from advisor.rules.infoscale import recognition

    wanted = declared(workload) if workload is not None else None
    asked = host or live_host()
    facts = read_facts(asked)
    found = judged(facts, wanted, outlooks(asked, facts))
    return Advice(wanted, recognition(facts, wanted), tuple(found))


def document(found: object) -> dict[str, Any]:
    """Return what ``--json`` prints of a record of this module. Raises TypeError for other types."""
    from advisor.planning.records import plan_document
    from advisor.report.documents import status_document, transaction_document
    from advisor.report.json import scan_document
    from advisor.report.recommend import recommendation_document

    match found:
        case Scan(facts=facts, findings=findings, provenance=provenance):
            return _decoded(scan_document(facts, findings, provenance))
        case Plan():
            return _decoded(msgspec.json.encode(plan_document(found)))
        case ApplyResult(plan=made, record=record):
            return _decoded(msgspec.json.encode(transaction_document(record, made)))
        case Record():
            return _decoded(msgspec.json.encode(transaction_document(found, found.plan)))
        case Status():
            return _decoded(msgspec.json.encode(status_document(found)))
        case Advice():
            return _decoded(recommendation_document(found.workload, found.recommendations, found.recognised))
        case _:
            raise TypeError(f"{type(found).__name__} is no record of advisor.operations")


def _check_named(profiles: Sequence[str]) -> None:
    if not profiles:
        raise UsageError("no profile is named", hint="advisor profiles lists them")


def _decoded(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(data)
    return found
