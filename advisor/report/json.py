"""The JSON document of a scan, after the command-line contract."""

from __future__ import annotations

from advisor.facts.host_facts import Facts
from advisor.report.encode import encode_document
from advisor.rules.finding import Finding
from advisor.rules.locality_score import locality

_SCHEMA = "advisor.scan/1"


def scan_document(facts: Facts, findings: tuple[Finding, ...]) -> bytes:
    """``advisor.scan/1``: every fact under its own name, the locality score, the findings, and what is unknown."""
    whole = {name: getattr(facts, name) for name in facts.__struct_fields__ if name != "unknown"}
    return encode_document(
        {"schema": _SCHEMA, **whole, "locality": locality(facts), "findings": findings, "unknown": facts.unknown}
    )
