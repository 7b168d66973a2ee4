"""The findings of a host: by the numbers of the scan page, by severity, what fixes them, and which are accepted.

A number counts the findings of the page of `advisor scan`, from 1; the id of a rule means all of its findings.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from glob import escape
from typing import Final

from advisor.errors import UsageError
from advisor.host import Host
from advisor.host.numbers import is_count
from advisor.i18n import msg
from advisor.operations import scan
from advisor.operations.muting import MutingEntry, add_muting, current_day
from advisor.recommend.fixes import Fix, make_fix, make_safe_fix, select_findings
from advisor.rules.finding import finding_devices
from advisor.rules.numbering import NumberedFindings, find_numbered, number_findings

MOST_DEVICES: Final = 32
"""Entries that a number may make: one for each device of its findings."""


def find_finding(number: str, host: Host | None = None) -> NumberedFindings | None:
    """Return the findings that a number of the scan page means on ``host``, by default this one; None for a word that
    is no number, such as the id of a rule. Scans the host.

    Raises UsageError for a number that no finding has.
    """
    return find_numbered(number_findings(scan(host).findings), number)[0] if is_count(number) else None


def find_fix(
    names: Sequence[str] = (), *, all_safe: bool = False, host: Host | None = None, workload: str | None = None
) -> Fix:
    """Return what fixes the findings of these numbers or ids, or with ``all_safe`` all whose remedy interrupts nothing.

    ``asked`` and ``settings`` of the result are what `plan` and `apply` take. Accepted findings are left out. Scans
    ``host``, by default this one, and changes nothing. Raises UsageError for a name that no finding has.
    """
    if bool(names) == all_safe:
        raise UsageError("expected findings or --all-safe", hint="advisor scan lists the findings with their numbers")
    found = scan(host, workload=workload).active
    return make_safe_fix(found) if all_safe else make_fix(select_findings(found, names))


def accept_finding(
    identity: str,
    reason: str,
    *,
    until: str | None = None,
    device: str | None = None,
    host: str = "",
) -> tuple[MutingEntry, ...]:
    """Write into the file of accepted findings that a rule, or the findings of a number, are accepted; return the
    entries: one for each device of a number.

    ``until`` is the last day (2027-01-31), ``device`` and ``host`` are names or patterns as for a shell; without a host
    it holds for this machine alone. Changes that file. Raises UsageError, PermissionDeniedError, InvalidInputError.
    """
    day = _parse_day(until)
    if day is not None and day < current_day():
        raise UsageError(msg("--until {until}: is in the past", until=until))
    rule, devices = _meant_by(identity, device)
    if not reason.strip():
        raise UsageError(msg("{option}: empty", option="--reason"), hint="say why, for those who read it later")
    entries = tuple(MutingEntry(rule, reason, name, host, day) for name in devices)
    for entry in entries:
        add_muting(entry)
    return entries


def _meant_by(identity: str, device: str | None) -> tuple[str, tuple[str, ...]]:
    """The rule, and the devices of a number of the page; an id without a device means all."""
    group = find_finding(identity)
    if group is None:
        return identity, (device or "",)
    names = dict.fromkeys(escape(name) for one in group.findings for name in finding_devices(one))
    if device is None and len(names) > MOST_DEVICES:
        raise UsageError(
            msg("finding {name}: is about {count} devices", name=identity, count=len(names)),
            hint=msg("--device takes a pattern for all of them: advisor mute {id} --device PATTERN", id=group.id),
        )
    return group.id, (device,) if device is not None else tuple(names) or ("",)


def _parse_day(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            msg("--until {until}: not a date", until=text), hint="year, month and day, as 2027-01-31"
        ) from error
