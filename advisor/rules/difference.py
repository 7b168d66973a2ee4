"""What has changed between two scans of a host: findings that are new, worse and gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from advisor.rules.finding import SEVERITIES, Finding, finding_devices

_Unit = tuple[str, str]


class EarlierScan(msgspec.Struct, frozen=True):
    """Findings of an earlier scan; ``time`` in seconds since the epoch, None where the file does not say."""

    place: str
    hostname: str | None
    time: float | None
    findings: tuple[Finding, ...]


class ScanDifference(msgspec.Struct, frozen=True):
    """``new`` and ``worse`` are of the later scan, ``gone`` of the earlier one.

    A finding is worse where its severity rose, where more is missing, or where it is about further devices.
    """

    earlier: EarlierScan
    new: tuple[Finding, ...]
    worse: tuple[Finding, ...]
    gone: tuple[Finding, ...]


def compare_findings(earlier: EarlierScan, findings: Iterable[Finding]) -> ScanDifference:
    """The difference by rule and device; what both have in the same severity is in none of the lists.

    What is muted is neither new nor worse, and not gone.
    """
    later = tuple(findings)
    before, after = _units(earlier.findings), _units(later)
    shown = tuple(one for one in later if one.muted is None)
    new = tuple(one for one in shown if not any(unit in before for unit in _units_of(one)))
    worse = tuple(
        one for one in shown if one not in new and any(_is_worse(unit, one, before) for unit in _units_of(one))
    )
    gone = tuple(one for one in earlier.findings if not any(unit in after for unit in _units_of(one)))
    return ScanDifference(earlier, new, worse, gone)


def _units_of(finding: Finding) -> Iterator[_Unit]:
    for device in finding_devices(finding) or ("",):
        yield finding.id, device


def _units(findings: Iterable[Finding]) -> Mapping[_Unit, Finding]:
    return {unit: one for one in findings for unit in _units_of(one)}


def _is_worse(unit: _Unit, finding: Finding, before: Mapping[_Unit, Finding]) -> bool:
    old = before.get(unit)
    if old is None:
        return True
    missing = (finding.evidence.get("missing"), old.evidence.get("missing"))
    has_lost_more = all(isinstance(one, int) for one in missing) and missing[0] > missing[1]  # type: ignore[operator]
    return SEVERITIES.index(finding.severity) > SEVERITIES.index(old.severity) or has_lost_more
