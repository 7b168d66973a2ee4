"""Journals of transactions as a capture keeps them: whole but for the secrets in the files that they hold.

A journal holds each file that a transaction wrote, before and after, so also iscsid.conf with its passwords. A plan
that was made from a capture never held them, so that its fingerprint stays what it was; that of another may change.
"""

from __future__ import annotations

from msgspec.structs import replace

from advisor.errors import InvalidInputError
from advisor.facts.redaction import without_secrets
from advisor.host import Missing
from advisor.planning.records import FileChange, Plan
from advisor.transaction.journal import Begun, decode_journal, encode_entry
from advisor.tunables import FileEdit


def redacted_journal(data: bytes) -> bytes | Missing:
    """The journal without secrets; unreadable where it is damaged, since its content is unknown then."""
    try:
        entries = decode_journal(data, "journal")
    except InvalidInputError as error:
        return Missing("unreadable", error.message)
    return b"".join(
        encode_entry(replace(one, plan=_redact_plan(one.plan)) if isinstance(one, Begun) else one) for one in entries
    )


def _redact_plan(plan: Plan) -> Plan:
    return replace(plan, files=tuple(_redact_file(one) for one in plan.files))


def _redact_file(one: FileChange) -> FileChange:
    return replace(
        one,
        before=None if one.before is None else without_secrets(one.path, one.before),
        after=without_secrets(one.path, one.after),
        edits=tuple(_redact_edit(edit) for edit in one.edits),
    )


def _redact_edit(one: FileEdit) -> FileEdit:
    return replace(one, fresh=without_secrets(one.path, one.fresh), also=tuple(_redact_edit(also) for also in one.also))
