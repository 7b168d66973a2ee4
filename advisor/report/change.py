"""What ``advisor plan``, ``apply``, ``status``, ``verify`` and ``rollback`` print: text for people, documents for
programs."""

from __future__ import annotations

from advisor.report.documents import rollback_document, status_document, transaction_document, verify_document
from advisor.report.plan import plan_text
from advisor.report.steps import steps_text
from advisor.report.transaction import applied_text, rollback_text, status_text, verify_text

__all__ = [
    "applied_text",
    "plan_text",
    "rollback_document",
    "rollback_text",
    "status_document",
    "status_text",
    "steps_text",
    "transaction_document",
    "verify_document",
    "verify_text",
]
