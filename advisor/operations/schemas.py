"""The JSON Schemas of the documents that ``--json`` prints."""

from __future__ import annotations

from typing import Any


def list_schemas() -> tuple[str, ...]:
    """Return the names of all documents, as their ``schema`` key has them."""
    from advisor.report.schemas.build import SCHEMA_NAMES

    return SCHEMA_NAMES


def read_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a document, by its name (``advisor.scan/1``) or its word (``scan``).

    Raises UsageError for an unknown name.
    """
    from advisor.report.schemas.build import build_schema

    return build_schema(name)
