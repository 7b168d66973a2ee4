"""The JSON documents of what changes a host. Keys and words are those of the command-line contract."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from advisor.errors import AdvisorError, NotRestoredError
from advisor.host.patterns import lazy_regex
from advisor.planning.records import Plan, plan_document
from advisor.report.format import format_timestamp
from advisor.report.terms import layers_document
from advisor.shell.state_table import state_of_kept
from advisor.transaction.journal import Record, Store
from advisor.transaction.restore import kept_outcomes
from advisor.transaction.side_effects import ItemOutcome
from advisor.transaction.status import Drift, RolledBack, Status, count_values

# Documents as bytes of JSON, and the one that every command may print: an error. Same input, same bytes.

_BEYOND_ASCII = lazy_regex(r"[^\n -~]")
_SURROGATE = lazy_regex("[\ud800-\udfff]")


def error_document(error: AdvisorError) -> bytes:
    """``{"error": {…}}``; what could not be restored is listed with the command to run by hand."""
    body = {"code": error.exit_code, "kind": error.kind, "message": error.message, "hint": error.hint}
    if isinstance(error, NotRestoredError):
        items = [{"what": what, "by_hand": command} for what, command in error.items]
        return encode_document({"error": {**body, "items": items}})
    return encode_document({"error": body})


def encode_document(document: Mapping[str, object]) -> bytes:
    """A document as indented JSON and a newline: records in the order of their fields, mappings by key.

    A name that is not UTF-8 on disk reaches us with lone surrogates, which JSON cannot carry: they become U+FFFD. What
    a terminal would obey instead of show (controls of ISO 6429, marks of direction) is escaped, as those of ASCII are.
    """
    try:
        body = _encode_members(document)
    except UnicodeEncodeError:
        body = _encode_members(_replace_surrogates(msgspec.to_builtins(document, order="deterministic")))
    return _escape_controls(msgspec.json.format(body, indent=2)) + b"\n"


def _escape_controls(body: bytes) -> bytes:
    if body.isascii() and b"\x7f" not in body:
        return body
    return _BEYOND_ASCII.sub(_escape_char, body.decode()).encode()


def _escape_char(found: re.Match[str]) -> str:
    char = found[0]
    if char.isprintable():
        return char
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _encode_members(document: Mapping[str, object]) -> bytes:
    # The document's own keys keep their order (schema first); mappings inside it are sorted.
    encode = msgspec.json.Encoder(order="deterministic").encode
    return b"{" + b",".join(encode(key) + b":" + encode(value) for key, value in document.items()) + b"}"


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_surrogates(inner) for inner in value]
    return value


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
