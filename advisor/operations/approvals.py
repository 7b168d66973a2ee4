"""Changes that another program asks for (``advisor mcp``), and the approval of a person that each needs.

A program plans (`request_plan`), a person approves the plan by its fingerprint on a terminal (``advisor approve``:
`find_approvable`, `grant_approval`), the program applies it (`apply_approved`). The plan is computed again in between
and must be the same. All of it is in ``agents/journal`` in the state directory.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from advisor.errors import AdvisorError, RefusedError, UsageError, as_root
from advisor.host import Host, live_host
from advisor.host.safe_open import need_root
from advisor.operations.transactions import ApplyResult, apply_profiles
from advisor.planner import plan_profiles
from advisor.planning.records import Plan
from advisor.profiles.requested import is_file_word
from advisor.transaction.approvals import MAX_SECONDS, Approval, ApprovalStore, Operation, PlanRequest
from advisor.transaction.journal import Record, Store
from advisor.transaction.layers import LayerRollback, plan_layer_rollback
from advisor.transaction.status import Drift, RolledBack, find_drift, rollback_transactions

MIN_DIGITS = 12
"""Digits of a fingerprint that a person must give at least."""
_DURATION = re.compile(r"([0-9]{1,5})([smh]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Approvable(msgspec.Struct, frozen=True):
    """What a person may approve: a plan as it is now, or the rollback of an active transaction.

    ``plan`` is what is applied; of a rollback, what it restores itself: the rest is ``restored_above``, by upper
    layers, and what ``drift`` names stays as it is.
    """

    operation: Operation
    fingerprint: str
    asked_by: str
    plan: Plan
    record: Record | None = None
    restored_above: tuple[tuple[str, str], ...] = ()
    """Tunables and files that an upper layer holds, with the reason why the rollback does not restore them."""
    drift: tuple[Drift, ...] = ()


def parse_duration(text: str) -> float:
    """Seconds of ``90s``, ``10m`` or ``1h``; at least one second, at most an hour. Raises UsageError."""
    found = _DURATION.fullmatch(text)
    seconds = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 1 <= seconds <= MAX_SECONDS:
        raise UsageError(f"--for {text}: expected 1s to 1h", hint="--for 10m approves for ten minutes")
    return float(seconds)


def request_plan(
    profiles: Sequence[str],
    *,
    settings: Mapping[str, str] | None = None,
    runtime_only: bool = False,
    asked_by: str = "",
    host: Host | None = None,
) -> Plan:
    """Return the plan of profiles by name or ``ID=VALUE``, and remember the request for ``advisor approve`` where this
    process is root and the host is this one. Changes nothing else.

    Raises UsageError for a profile that is a file: what a program names must be what root has installed.
    """
    for word in profiles:
        if is_file_word(word):
            raise UsageError(
                f"{word}: a file of a profile is not accepted here",
                hint="name a profile of advisor profiles, or ID=VALUE",
            )
    if not profiles:
        raise UsageError("no profile is named", hint="advisor profiles lists them")
    asked, given = host or live_host(), dict(settings or {})
    made = plan_profiles(asked, profiles, given, runtime_only=runtime_only, only_trusted=True)
    if host is None and os.geteuid() == 0 and not made.is_empty and not made.cannot_apply:
        request = PlanRequest(made.fingerprint, tuple(profiles), given, runtime_only, asked_by[:200], time.time())
        ApprovalStore(Store(), asked).save_request(request)
    return made


def find_approvable(fingerprint: str, *, rollback: bool = False) -> Approvable:
    """Return what the digits of a fingerprint stand for: the plan, computed again now, or an active transaction.

    Raises PermissionDeniedError without root, UsageError for too few digits, RefusedError where nothing has this
    fingerprint, or the host has changed since the plan was asked for.
    """
    need_root()
    if not re.fullmatch(rf"[0-9a-f]{{{MIN_DIGITS},64}}", fingerprint):
        raise UsageError(
            f"{fingerprint}: expected {MIN_DIGITS} to 64 digits of a fingerprint",
            hint="copy it from what the program shows",
        )
    host, store = live_host(), Store()
    if rollback:
        records = [one for one in store.read_records() if one.is_active and one.fingerprint.startswith(fingerprint)]
        if len(records) != 1:
            raise RefusedError(
                f"no active transaction has the fingerprint {fingerprint}", hint="advisor status lists all transactions"
            )
        return _describe_rollback(host, records[0], store.read_records())
    request = ApprovalStore(store, host).find_request(fingerprint)
    made = _plan_again(host, store, request)
    if made.fingerprint != request.fingerprint:
        raise _changed_error(made)
    return Approvable("apply", made.fingerprint, request.asked_by, made)


def grant_approval(found: Approvable, *, seconds: float) -> Approval:
    """Approve it for ``seconds``, once. Writes a file that root alone can read. Raises PermissionDeniedError without
    root. Whoever calls this has asked a person."""
    need_root()
    return ApprovalStore(Store(), live_host()).grant(
        found.operation,
        found.fingerprint,
        seconds=seconds,
        approved_by=_name_person(),
        asked_by=found.asked_by,
        transaction=found.record.id if found.record else None,
        restores=found.plan.fingerprint if found.record else None,
    )


def decline_approval(found: Approvable) -> None:
    """Record that a person has seen it and has not approved it; an approval that was given before is withdrawn."""
    need_root()
    ApprovalStore(Store(), live_host()).decline(
        found.operation, found.fingerprint, declined_by=_name_person(), asked_by=found.asked_by
    )


def apply_approved(
    fingerprint: str, *, asked_by: str = "", progress: Callable[[str], None] = lambda _: None
) -> ApplyResult:
    """Apply the plan with this fingerprint, which a person has approved; as `advisor.operations.apply` otherwise, trial
    of links and watchdog included. Changes the host.

    Raises PermissionDeniedError without root, RefusedError without an approval that holds, or where the plan is another
    one by now; and what `apply` raises.
    """
    need_root()
    host, store = live_host(), Store()
    approvals = ApprovalStore(store, host)
    fields: dict[str, object] = {"operation": "apply", "fingerprint": fingerprint, "asked_by": asked_by[:200]}
    try:
        request = approvals.find_request(fingerprint)

        def permit() -> None:
            # What would be rolled back on the way to an apply is a change that nobody has approved.
            _refuse_unfinished(store)
            fields["approval"] = approvals.take("apply", fingerprint).id

        def agree(made: Plan) -> bool:
            if made.fingerprint != fingerprint:
                raise _changed_error(made)
            approvals.write_entry("apply", profiles=made.profiles, **fields)
            return True

        done = apply_profiles(
            *(host, request.profiles, request.settings),
            runtime_only=request.runtime_only,
            agree=agree,
            progress=progress,
            store=store,
            permit=permit,
        )
    except BaseException as error:
        _note_failure(approvals, error, fields)
        raise
    if done.record is not None:
        _note_end(approvals, progress, "applied", transaction=done.record.id, state=done.record.state, **fields)
    return done


def rollback_approved(transaction: str, *, asked_by: str = "") -> RolledBack:
    """Roll back one active transaction, which a person has approved; what was modified externally is kept. Changes the
    host.

    Raises PermissionDeniedError without root, RefusedError without an approval that holds; and what `rollback` raises.
    """
    need_root()
    host, store = live_host(), Store()
    approvals = ApprovalStore(store, host)
    fields: dict[str, object] = {"operation": "rollback", "transaction": transaction, "asked_by": asked_by[:200]}
    try:

        def permit() -> None:
            _refuse_unfinished(store)
            records = store.read_records()
            record = store.find_record(transaction)
            fields["fingerprint"] = record.fingerprint
            if not record.is_active:
                raise RefusedError(f"transaction {record.id} is {record.state}, not active")
            restores = _describe_rollback(host, record, records).plan.fingerprint
            approval = approvals.take("rollback", record.fingerprint, transaction=record.id, restores=restores)
            fields["approval"] = approval.id
            approvals.write_entry("rollback", **fields)

        done = rollback_transactions(host, transaction, everything=False, force=False, store=store, permit=permit)
    except BaseException as error:
        _note_failure(approvals, error, fields)
        raise
    is_back = all(one.is_back for _, outcomes in done for one in outcomes)
    _note_end(approvals, lambda _: None, "rolled back" if is_back else "partly rolled back", **fields)
    return done


def _plan_again(host: Host, store: Store, request: PlanRequest) -> Plan:
    return plan_profiles(
        *(host, request.profiles, request.settings), runtime_only=request.runtime_only, store=store, only_trusted=True
    )


def _describe_rollback(host: Host, record: Record, records: Sequence[Record]) -> Approvable:
    found: LayerRollback = plan_layer_rollback(host, record, records)
    drift = tuple(one for one in find_drift(host, records) if one.transaction == record.id)
    above = tuple((one.what, one.detail) for one in found.outcomes)
    return Approvable("rollback", record.fingerprint, "", found.remaining, record, above, drift)


def _changed_error(made: Plan) -> RefusedError:
    return RefusedError(
        f"this host has changed since the plan was made: its plan is now {made.fingerprint}",
        hint="plan again, look at the new plan, and approve that one",
    )


def _refuse_unfinished(store: Store) -> None:
    unfinished = [one.id for one in store.read_records() if one.is_unfinished]
    if unfinished:
        raise RefusedError(
            f"transaction {unfinished[0]} was interrupted or is under way",
            hint="a person finishes it on a terminal of this host: " + as_root("advisor rollback"),
        )


def _note_end(approvals: ApprovalStore, progress: Callable[[str], None], event: str, **fields: object) -> None:
    """The host is changed by now, and its own journal says so: an entry that cannot be written refuses nothing."""
    try:
        approvals.write_entry(event, **fields)
    except RefusedError as error:
        progress(f"not recorded with the approvals: {error.message}")


def _note_failure(approvals: ApprovalStore, error: BaseException, fields: dict[str, object]) -> None:
    what = error.message if isinstance(error, AdvisorError) else type(error).__name__
    event = "refused" if isinstance(error, RefusedError) else "failed"
    # Calls without an approval must not fill what a person's approvals are recorded in.
    if "approval" not in fields and not approvals.has_room_to_spare():
        return
    try:
        approvals.write_entry(event, reason=what[:1000], **fields)
    except AdvisorError:
        if "approval" in fields:
            raise


def _name_person() -> str:
    """Who is logged in, as far as sudo or the kernel's audit number says."""
    by = os.environ.get("SUDO_USER") or ""
    try:
        with open("/proc/self/loginuid", encoding="ascii") as file:
            login = file.read().strip()
    except OSError:
        login = ""
    known = [f"sudo user {by[:64]}"] if by else []
    known += [f"login uid {login}"] if login and login != "4294967295" else []
    return ", ".join(known) or "root"
