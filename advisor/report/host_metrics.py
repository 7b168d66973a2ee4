"""What a scan found and what binds a host, as metrics. Their names differ from those of ``advisor verify``.

Each command writes a file of its own, and node_exporter refuses a series that two files hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from advisor.diagnosis.cause import Resource
from advisor.diagnosis.diagnose import Diagnosis, ResourceUse
from advisor.report.monitoring import MAX_SERIES, Families, Gauge, Series
from advisor.rules.rule import SEVERITIES, Finding

_SCAN_SUCCESS = Gauge("advisor_scan_success", "Whether the host could be scanned: 1, or 0 where that failed.")
_SCAN_TIME = Gauge("advisor_scan_timestamp_seconds", "When the host was scanned, in seconds since the epoch.")
_FINDINGS = Gauge("advisor_scan_findings", "Findings that are not muted, by severity.")
_MUTED = Gauge("advisor_scan_muted_findings", "Findings that are accepted.")
_UNKNOWN = Gauge("advisor_scan_unknown_facts", "Facts that could not be read.")
_FINDING = Gauge("advisor_scan_finding", f"How often a rule found something; the first {MAX_SERIES} rules.")

_WHY_SUCCESS = Gauge("advisor_why_success", "Whether the host could be observed: 1, or 0 where that failed.")
_WHY_TIME = Gauge("advisor_why_timestamp_seconds", "When the span ended, in seconds since the epoch.")
_SPAN = Gauge("advisor_why_span_seconds", "How long the host was observed.")
_CAUSES = Gauge("advisor_why_causes", "What binds the host over the span, by resource.")
_SHARE = Gauge(
    "advisor_why_binding_ratio", f"What binds, and the share of time or requests; the first {MAX_SERIES} causes."
)
_USE = Gauge("advisor_why_use_ratio", f"How much of a resource was used; the first {MAX_SERIES}.")
_WAIT = Gauge("advisor_why_wait_ratio", "The share of time in which a task waited for a resource.")
_UNJUDGED = Gauge(
    "advisor_why_unknown_use", "1 for each link that carries traffic and whose speed, so its use, is unknown."
)
_BLIND = Gauge("advisor_why_unknown_items", "What could not be read over the span.")


def scan_metrics(findings: Sequence[Finding], *, muted: int, unknown: int, at_seconds: float) -> Families:
    """Of a scan: ``findings`` that are not muted, how many are, and how many facts are unknown; ``at_seconds`` since
    the epoch."""
    severities = Counter(one.severity for one in findings)
    rules = Counter((one.id, one.severity) for one in findings)
    return {
        _SCAN_SUCCESS: [((), 1)],
        _SCAN_TIME: [((), at_seconds)],
        _FINDINGS: [((("severity", one),), severities[one]) for one in reversed(SEVERITIES)],
        _MUTED: [((), muted)],
        _UNKNOWN: [((), unknown)],
        _FINDING: [
            ((("id", name), ("severity", severity)), count)
            for (name, severity), count in sorted(rules.items())[:MAX_SERIES]
        ],
    }


def failed_scan_metrics(at_seconds: float) -> Families:
    """Of a host that could not be scanned: that, and when; nothing that could pass for a state."""
    return {_SCAN_SUCCESS: [((), 0)], _SCAN_TIME: [((), round(at_seconds, 3))]}


def why_metrics(diagnosis: Diagnosis, uses: Sequence[ResourceUse]) -> Families:
    """Of a span: what binds, and how much of each resource was used."""
    resources = Counter(one.resource for one in diagnosis.binds)
    shares: list[Series] = []
    for one in diagnosis.binds[:MAX_SERIES]:
        names = {"id": one.id, "resource": one.resource, "device": one.device or "", "help": one.help, "of": one.of}
        shares.append((tuple(names.items()), one.share))
    return {
        _WHY_SUCCESS: [((), 1)],
        _WHY_TIME: [((), round(diagnosis.taken_at, 3))],
        _SPAN: [((), diagnosis.seconds)],
        _CAUSES: [((("resource", one),), resources[one]) for one in get_args(Resource)],
        _SHARE: shares,
        _USE: [
            ((("resource", kind), ("device", "all" if name == "busy" else name)), use.share)
            for use in uses
            for kind, _, name in (use.name.partition(" "),)
            if name != "waits"
        ][:MAX_SERIES],
        _WAIT: [
            ((("resource", use.name.removesuffix(" waits")),), use.share) for use in uses if use.name.endswith(" waits")
        ],
        _UNJUDGED: [((("resource", "net"), ("device", name)), 1) for name in diagnosis.unjudged[:MAX_SERIES]],
        _BLIND: [((), len(diagnosis.unknown))],
    }


def failed_why_metrics(at_seconds: float) -> Families:
    """Of a host that could not be observed: that, and when."""
    return {_WHY_SUCCESS: [((), 0)], _WHY_TIME: [((), round(at_seconds, 3))]}
