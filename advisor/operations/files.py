"""Files that commands write: those that an option names, and errors of those that advisor keeps for itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from advisor.errors import InvalidInputError, PermissionDeniedError, RefusedError
from advisor.host.files import open_given
from advisor.host.provenance import read_provenance
from advisor.host.putfile import put_file, save_output
from advisor.host.safe_open import make_own_directory, named_directory
from advisor.rules.judged import EarlierScan, judge
from advisor.rules.rule import SEVERITIES, Finding
from advisor.transaction.journal import STATE_DIRECTORY


@contextmanager
def explain_file_errors(path: Path) -> Iterator[None]:
    """Raise PermissionDeniedError or RefusedError that names ``path`` in the place of an OSError."""
    try:
        yield
    except PermissionError as error:
        raise PermissionDeniedError(f"{path}: {error.strerror}", hint="run it with sudo") from error
    except OSError as error:
        raise RefusedError(f"{path}: {error.strerror}") from error


def check_output(path: Path | str) -> None:
    """Raise UsageError where `write_output` could not write, before the work whose result it is. Leaves nothing."""
    from advisor.host import putfile

    putfile.check_output(str(path))


def write_output(path: Path | str, content: str | bytes, *, mode: int = 0o644) -> None:
    """Write a result into the file that an option names, whole or not at all: a new one or a regular one.

    Bytes of names that are no UTF-8 stay as they are. Raises UsageError where it cannot be written.
    """

    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    save_output(str(path), data, mode=mode)


# Earlier scans of a host, to compare with: JSON documents, snapshots, and the scans that are kept.

SCHEMA = "advisor.scan/1"
KEPT = "scans"
_KEPT_NAME = "%Y-%m-%dT%H-%M-%SZ.json"
_MAX_BYTES = 256 << 20
_DATE = re.compile(r"[0-9]{1,4}[-./][0-9]{1,2}([-./][0-9]{1,4})?([T ].*)?", re.ASCII)
"""What is meant as a date, whether or not there is such a day."""
_DATE_HINT = "year, month and day, as 2027-01-31"


def read_earlier(since: str) -> EarlierScan:
    """The scan that ``--since`` means: a JSON document of a scan, a snapshot, or the last kept one before a date.

    Raises InvalidInputError for a file that is neither, RefusedError where no scan from before the date is kept.
    """
    moment = _parse_moment(since)
    if moment is not None and not Path(since).exists():
        directory = kept_directory()
        try:
            names = sorted(one for one in os.listdir(directory) if one.endswith(".json"))
        except FileNotFoundError:
            names = []
        except PermissionError as error:
            raise PermissionDeniedError(f"{directory}: {error.strerror}", hint="run it with sudo") from error
        # A day means what was so before it began; the scans are named by their time.
        limit = moment.astimezone(UTC).strftime(_KEPT_NAME)
        earlier = [one for one in names if one < limit]
        if not earlier:
            if names and (first := _kept_at(names[0])):
                raise RefusedError(
                    f"no scan from before {since} is kept: the first is of {first.date()}",
                    hint=f"advisor scan --since {_soon_after(first)} compares with the first",
                )
            raise RefusedError(
                f"no scan from before {since} is kept in {directory}",
                hint="advisor scan --keep keeps one each time it runs, by a timer for instance",
            )
        return read_scan_file(directory / earlier[-1])
    if _DATE.fullmatch(since) and not Path(since).exists():
        raise InvalidInputError(f"--since {since}: not a date", hint=_DATE_HINT)
    return read_scan_file(Path(since))


def _kept_at(name: str) -> datetime | None:
    """When the scan of a kept file was made; None for a file of another name."""
    try:
        return datetime.strptime(name, _KEPT_NAME).replace(tzinfo=UTC)
    except ValueError:
        return None


def _soon_after(moment: datetime) -> str:
    """The first day, or until that has begun the first second, that is after the moment, as ``--since`` takes it."""
    day = moment.date() + timedelta(days=1)
    if day <= datetime.now(UTC).date():
        return day.isoformat()
    return f"{moment + timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}"


def read_scan_file(path: Path) -> EarlierScan:
    """The findings of a JSON document of a scan, or of a snapshot. Raises InvalidInputError."""
    try:
        return _read_scan_file(path)
    except InvalidInputError as error:
        # The reader of snapshots knows no other way to come by one.
        error.hint = "--since takes a file of advisor scan --json, a snapshot, or a date such as 2027-01-31"
        raise


def _read_scan_file(path: Path) -> EarlierScan:
    try:
        with open_given(path) as file:
            begin = file.read(1)
            data = begin + (file.read(_MAX_BYTES) if begin == b"{" else b"")
    except FileNotFoundError as error:
        raise InvalidInputError(f"{path}: no such file") from error
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror or error}") from error
    if begin == b"{":
        import json

        try:
            found = json.loads(data)
            schema = found.get("schema")
            if schema != SCHEMA:
                raise InvalidInputError(f"{path}: schema is {str(schema)[:80]!r}, this version reads {SCHEMA}")
            findings = tuple(_parse_finding(one) for one in found["findings"])
            host: Any = found.get("host") or {}
            moment = _parse_moment(found.get("captured_at") or found.get("scanned_at") or "")
            return EarlierScan(str(path), host.get("hostname"), moment.timestamp() if moment else None, findings)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InvalidInputError(f"{path}: no document of advisor scan --json: {error}") from error
    from advisor.facts.host_facts import scan
    from advisor.snapshot.open import open_host

    host = open_host(snapshot=path)
    facts = scan(host)
    return EarlierScan(str(path), facts.host.hostname, read_provenance(host).captured_at, judge(facts))


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
    return Path(named_directory() or STATE_DIRECTORY) / KEPT


def _kept_path(scanned_at: int) -> Path:
    return kept_directory() / datetime.fromtimestamp(scanned_at, UTC).strftime(_KEPT_NAME)


def keep_scan(document: bytes, scanned_at: int) -> Path:
    """Keep a JSON document of a scan for ``--since``. Raises PermissionDeniedError, RefusedError."""
    path = _kept_path(scanned_at)
    with explain_file_errors(path):
        make_own_directory(str(path.parent))
        while path.exists():
            # Two scans of one second, as of several captures: each has a name of its own, in their order.
            scanned_at += 1
            path = _kept_path(scanned_at)
        put_file(str(path), document, mode=0o600, uid=os.geteuid(), gid=os.getegid())
    return path
