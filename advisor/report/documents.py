"""The JSON documents of what changes a host. Keys and words are those of the command-line contract."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import msgspec

from advisor.planning.records import Plan, plan_document
from advisor.report.format import format_timestamp
from advisor.report.layers import layers_document
from advisor.shell.state_table import state_of_kept
from advisor.transaction.journal import Record, Store
from advisor.transaction.restore import kept_outcomes
from advisor.transaction.side_effects import ItemOutcome
from advisor.transaction.status import Drift, RolledBack, Status, count_values

Document = dict[str, object]


def transaction_document(
    record: Record | None, plan: Plan, taken_out: RolledBack = (), *, foreseen: Sequence[tuple[Record, Plan]] = ()
) -> Document:
    """``advisor.transaction/1``: the plan's own keys and what became of it.

    Without a record nothing was changed: all was there already, or it was a dry run, and ``changes`` is what would be.
    ``taken_out`` are the transactions whose place it took; ``foreseen`` what a dry run says about them.
    """
    from advisor.report.fix import step_blocks
    from advisor.report.plan import cannot_apply_reason

    return {
        "schema": "advisor.transaction/1",
        "id": None if record is None else record.id,
        "state": "unchanged" if record is None else record.state,
        "deadline": None if record is None else _format_deadline(record),
        "dry_run": record is None and not (plan.is_empty and not foreseen),
        "cannot_apply": cannot_apply_reason(plan),
        "began": None if record is None else format_timestamp(record.began),
        "ended": None if record is None else format_timestamp(record.ended),
        "rollback_script": None if record is None else str(Store().script_path(record.id)),
        "taken_out": [_rolled_back(one, outcomes) for one, outcomes in taken_out],
        "forced": record is not None and record.forced,
        "peers": None if record is None else record.peers,
        "steps": [{"what": block.what, "commands": list(block.commands)} for block in step_blocks(plan, foreseen)],
        **{key: value for key, value in plan_document(plan).items() if key != "schema"},
    }


def status_document(status: Status) -> Document:
    """``advisor.status/1``: every transaction, oldest first, and the drift of the active ones."""
    return {
        "schema": "advisor.status/1",
        "transactions": [_transaction_dict(record) for record in status.records],
        "in_force": [record.id for record in status.records if record.is_active],
        "layers": layers_document(status.records),
        "awaiting_confirmation": _list_awaiting(status.records),
        "drift": _list_drift(status.drift),
        "damaged": _list_damaged(status),
        "stopped_process": status.stopped_holder,
        "lock_holder": status.lock_holder,
    }


def _list_awaiting(records: Iterable[Record]) -> list[Document]:
    return [
        {"id": record.id, "deadline": _format_deadline(record), "seconds_left": round(record.seconds_left)}
        for record in records
        if record.seconds_left is not None
    ]


def _list_damaged(status: Status) -> list[object]:
    """Transactions with an unreadable journal; ``by_script`` where their rollback script has rolled them back."""
    return [msgspec.to_builtins(one) for one in status.damaged]


def _format_deadline(record: Record) -> str | None:
    return None if record.seconds_left is None else format_timestamp(time.time() + record.seconds_left)


def _transaction_dict(record: Record) -> Document:
    return {
        "id": record.id,
        "state": record.state,
        "in_force": record.is_active,
        "unfinished": record.is_unfinished,
        "process": record.process,
        "profiles": list(record.plan.profiles),
        "fingerprint": record.fingerprint,
        "began": format_timestamp(record.began),
        "ended": format_timestamp(record.ended),
        "deadline": _format_deadline(record),
        "confirmed": format_timestamp(record.confirmed),
        "changes": [
            {"tunable": change.tunable, "before": change.before, "after": change.after, "persist": change.persist}
            for change in record.plan.changes
        ],
        "files": [file.path for file in record.plan.files],
        "claims": [{"tunable": one.tunable, "after": one.after} for one in record.plan.claims],
        "instead_of": list(record.plan.instead_of),
        "without": list(record.without),
        "would_report": list((record.applied_plan or record.plan).would_report),
        "forced": record.forced,
        "peers": record.peers,
        "passed": [{"what": what, "to": identity} for what, identity in record.passed],
        "why_undone": record.why_undone,
        "pending": record.pending,
        "kept": [{"what": what, "reason": reason} for what, reason in record.kept],
        "rollback_script": str(Store().script_path(record.id)),
    }


def verify_document(status: Status) -> Document:
    """``advisor.verify/1``: ``ok`` where nothing has drifted and nothing is half-done. ``values`` and ``files`` are
    how many were read, ``next_boot`` what a boot would change, ``others`` who else writes such values, and which
    managed values they set otherwise (null where that is unknown)."""
    values, files = count_values(status.records)
    return {
        "schema": "advisor.verify/1",
        "ok": status.is_as_set,
        "unfinished": [record.id for record in status.unfinished],
        "transactions": [record.id for record in status.records if record.is_active],
        "values": values,
        "files": files,
        "awaiting_confirmation": _list_awaiting(status.records),
        "drift": _list_drift(status.drift),
        "next_boot": _list_drift(status.next_boot),
        "others": [msgspec.to_builtins(one) for one in status.others],
        "damaged": _list_damaged(status),
        "stopped_process": status.stopped_holder,
    }


def _list_drift(drift: Iterable[Drift]) -> list[object]:
    return [msgspec.to_builtins(one) for one in drift]


def rollback_document(found: RolledBack) -> Document:
    """``advisor.rollback/1``: ``ok`` where every item is as it was before."""
    transactions = [_rolled_back(record, outcomes) for record, outcomes in found]
    return {
        "schema": "advisor.rollback/1",
        "ok": all(one["state"] == "rolled-back" for one in transactions),
        "transactions": transactions,
    }


def _rolled_back(record: Record, outcomes: Sequence[ItemOutcome]) -> Document:
    return {
        "id": record.id,
        "state": state_of_kept(why for _, why in kept_outcomes(outcomes)),
        "profiles": list(record.plan.profiles),
        "outcomes": [msgspec.to_builtins(one) for one in outcomes],
    }
