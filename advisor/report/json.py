"""The JSON document of a scan, after the command-line contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.facts.host_facts import Facts
from advisor.host.provenance import Provenance
from advisor.report.encode import encode_document
from advisor.report.format import format_timestamp
from advisor.rules.judged import ScanDifference, count_judged
from advisor.rules.processors.locality_score import locality
from advisor.rules.rule import Finding

if TYPE_CHECKING:
    pass

_SCHEMA = "advisor.scan/1"


def scan_document(
    facts: Facts,
    findings: tuple[Finding, ...],
    provenance: Provenance | None = None,
    difference: ScanDifference | None = None,
) -> bytes:
    """``advisor.scan/1``: when and of what it is, every fact under its own name, the locality score, the findings, and
    what is unknown; of a support archive also which, with a difference what is new, worse and gone since an earlier
    scan. Without a provenance the same facts give the same bytes."""
    whole = {name: getattr(facts, name) for name in facts.__struct_fields__ if name != "unknown"}
    taken = {
        "scanned_at": format_timestamp(provenance.scanned_at) if provenance else None,
        "captured_at": format_timestamp(provenance.captured_at) if provenance else None,
        "source": provenance.source if provenance else None,
    }
    origin = provenance.origin if provenance else None
    archive = {"archive": {"kind": origin.kind, "version": origin.version, "user": origin.user}} if origin else {}
    judged = count_judged(facts, findings)
    return encode_document(
        {
            "schema": _SCHEMA,
            **taken,
            **archive,
            **whole,
            "locality": locality(facts),
            "judged": judged._asdict(),
            "findings": findings,
            "unknown": facts.unknown,
            **({} if difference is None else {"since": _since_dict(difference)}),
        }
    )


def _since_dict(difference: ScanDifference) -> dict[str, object]:
    earlier = difference.earlier
    lists = {"new": difference.new, "worse": difference.worse, "gone": difference.gone}
    return {
        "hostname": earlier.hostname,
        "time": format_timestamp(earlier.time),
        **{
            name: [
                {"id": one.id, "severity": one.severity, "title": one.title, "evidence": one.evidence} for one in found
            ]
            for name, found in lists.items()
        },
    }
