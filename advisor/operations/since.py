"""What has changed between two scans of a host: findings that are new, worse and gone; and the scans that are kept."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from advisor.errors import InvalidInputError, PermissionDeniedError, RefusedError
from advisor.host.input_files import open_given
from advisor.host.provenance import read_provenance
from advisor.host.putfile import put_file
from advisor.host.trusted_files import make_own_directory
from advisor.i18n import msg
from advisor.operations.files import explain_file_errors
from advisor.rules.finding import SEVERITIES, Finding, finding_devices
from advisor.transaction.journal import STATE_DIRECTORY

SCHEMA: Final = "advisor.scan/1"
KEPT: Final = "scans"
_MAX_BYTES: Final = 256 << 20
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


def read_earlier(since: str) -> EarlierScan:
    """The scan that ``--since`` means: a JSON document of a scan, a snapshot, or the last kept one before a date.

    Raises InvalidInputError for a file that is neither, RefusedError where no scan from before the date is kept.
    """
    moment = _parse_moment(since)
    if moment is not None and not Path(since).exists():
        return _last_kept(moment, since)
    return read_scan_file(Path(since))


def read_scan_file(path: Path) -> EarlierScan:
    """The findings of a JSON document of a scan, or of a snapshot. Raises InvalidInputError."""
    try:
        with open_given(path) as file:
            begin = file.read(1)
            data = begin + (file.read(_MAX_BYTES) if begin == b"{" else b"")
    except FileNotFoundError as error:
        raise InvalidInputError(
            msg("{path}: no such file", path=path),
            hint="--since takes a file of advisor scan --json, a snapshot, or a date such as 2027-01-31",
        ) from error
    except OSError as error:
        raise InvalidInputError(msg("{path}: {error}", path=path, error=error.strerror or error)) from error
    return _parse_document(data, path) if begin == b"{" else _read_snapshot(path)


def _read_snapshot(path: Path) -> EarlierScan:
    from advisor.facts.host_facts import scan
    from advisor.rules.registry import judge
    from advisor.snapshot.open import open_host

    host = open_host(snapshot=path)
    facts = scan(host)
    return EarlierScan(str(path), facts.host.hostname, read_provenance(host).captured_at, judge(facts))


def _parse_document(data: bytes, path: Path) -> EarlierScan:
    import json

    try:
        found = json.loads(data)
        schema = found.get("schema")
        if schema != SCHEMA:
            raise InvalidInputError(
                msg(
                    "{where}: schema is {schema!r}, this version reads {schema_2}",
                    where=path,
                    schema=str(schema)[:80],
                    schema_2=SCHEMA,
                )
            )
        findings = tuple(_parse_finding(one) for one in found["findings"])
        host: Any = found.get("host") or {}
        moment = _parse_moment(found.get("captured_at") or found.get("scanned_at") or "")
        return EarlierScan(str(path), host.get("hostname"), moment.timestamp() if moment else None, findings)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidInputError(
            msg("{path}: no document of advisor scan --json: {error}", path=path, error=error)
        ) from error


def _parse_finding(found: Mapping[str, Any]) -> Finding:
    """What is compared and printed of a finding; documents of earlier versions have fewer keys."""
    if found["severity"] not in SEVERITIES:
        raise ValueError(f"severity {found['severity']!r}")
    evidence = {
        str(key): tuple(map(str, value)) if isinstance(value, list) else value
        for key, value in dict(found["evidence"]).items()
    }
    title, advice = str(found["title"]), str(found.get("advice") or "")
    return Finding(str(found["id"]), found["severity"], title, "", evidence, advice, None, "", ())


def _parse_moment(text: str) -> datetime | None:
    """A date or a time of ISO 8601; in UTC where it names no zone."""
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def kept_directory() -> Path:
    """Where ``advisor scan --keep`` keeps scans."""
    return Path(os.environ.get("ADVISOR_STATE_DIR") or STATE_DIRECTORY) / KEPT


def keep_scan(document: bytes, scanned_at: int) -> Path:
    """Keep a JSON document of a scan for ``--since``. Raises PermissionDeniedError, RefusedError."""
    name = datetime.fromtimestamp(scanned_at, UTC).strftime("%Y-%m-%dT%H-%M-%SZ.json")
    path = kept_directory() / name
    with explain_file_errors(path):
        make_own_directory(str(path.parent))
        put_file(str(path), document, mode=0o600, uid=os.geteuid(), gid=os.getegid())
    return path


def _last_kept(moment: datetime, since: str) -> EarlierScan:
    directory = kept_directory()
    try:
        names = sorted(one for one in os.listdir(directory) if one.endswith(".json"))
    except FileNotFoundError:
        names = []
    except PermissionError as error:
        raise PermissionDeniedError(
            msg("{path}: {error}", path=directory, error=error.strerror), hint="run it with sudo"
        ) from error
    # A day means what was so before it began; the scans are named by their time.
    limit = moment.astimezone(UTC).strftime("%Y-%m-%dT%H-%M-%SZ.json")
    earlier = [one for one in names if one < limit]
    if not earlier:
        message = msg("no scan from before {since} is kept in {directory}", since=since, directory=directory)
        if names:
            message = msg("no scan from before {since} is kept: the first is of {day}", since=since, day=names[0][:10])
        raise RefusedError(message, hint="advisor scan --keep keeps one each time it runs, by a timer for instance")
    return read_scan_file(directory / earlier[-1])
