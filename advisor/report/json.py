"""The JSON document of a scan, after the command-line contract."""

from __future__ import annotations

from advisor.facts.host_facts import Facts
from advisor.host.provenance import Provenance
from advisor.report.encode import encode_document
from advisor.report.format import format_timestamp
from advisor.rules.finding import Finding
from advisor.rules.locality_score import locality

_SCHEMA = "advisor.scan/1"


def scan_document(facts: Facts, findings: tuple[Finding, ...], provenance: Provenance | None = None) -> bytes:
    """``advisor.scan/1``: when and of what it is, every fact under its own name, the locality score, the findings, and
    what is unknown. Without a provenance the same facts give the same bytes."""
    whole = {name: getattr(facts, name) for name in facts.__struct_fields__ if name != "unknown"}
    taken = {
        "scanned_at": format_timestamp(provenance.scanned_at) if provenance else None,
        "captured_at": format_timestamp(provenance.captured_at) if provenance else None,
        "source": provenance.source if provenance else None,
    }
    return encode_document(
        {
            "schema": _SCHEMA,
            **taken,
            **whole,
            "locality": locality(facts),
            "findings": findings,
            "unknown": facts.unknown,
        }
    )
