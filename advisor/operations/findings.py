"""The findings of a host: by the numbers of the scan page, by severity, what fixes them, and which are accepted.

A number counts the findings of the page of `advisor scan`, from 1; the id of a rule means all of its findings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from glob import escape
from typing import TYPE_CHECKING

from advisor.errors import UsageError
from advisor.host import Host, live_host
from advisor.host.files import DirectoryFiles
from advisor.host.numbers import is_count
from advisor.host.provenance import is_own_tree
from advisor.operations import scan
from advisor.operations.library import explain_absence
from advisor.operations.muting import (
    IGNORE_FILE,
    VARIABLE,
    MutingEntry,
    add_muting,
    current_day,
    ignore_file,
    is_about,
    parse_until,
)
from advisor.recommend.fixes import Fix, make_fix, make_safe_fix, select_findings
from advisor.rules.judged import NumberedFindings, find_numbered, number_findings
from advisor.rules.rule import finding_devices
from advisor.shell.quote import shell_quote

if TYPE_CHECKING:
    from pathlib import Path

MOST_DEVICES = 32
"""Entries that a number may make: one for each device of its findings."""


def find_finding(
    number: str, host: Host | None = None, *, workload: str | None = None, volumes: Path | None = None
) -> NumberedFindings | None:
    """Return the findings that a number of the scan page means on ``host``, by default this one; None for a word that
    is no number, such as the id of a rule. Scans the host, with what is declared of it: both change the numbers.

    Raises UsageError for a number that no finding has, and as `scan`.
    """
    if not is_count(number):
        return None
    return find_numbered(number_findings(scan(host, workload=workload, volumes=volumes).findings), number)[0]


def find_captured(
    identity: str, host: Host, *, workload: str | None = None, volumes: Path | None = None
) -> tuple[NumberedFindings, ...]:
    """Return the findings of a captured ``host`` that a number of its scan page or the id of a rule means; none for an
    id of which it has no finding. Scans the host, with what is declared of it.

    Raises UsageError for a number that no finding has, and as `scan`.
    """
    numbered = number_findings(scan(host, workload=workload, volumes=volumes).findings)
    return find_numbered(numbered, identity) if is_count(identity) else tuple(o for o in numbered if o.id == identity)


def find_fix(
    names: Sequence[str] = (),
    *,
    all_safe: bool = False,
    host: Host | None = None,
    workload: str | None = None,
    volumes: Path | None = None,
    is_unattended: bool = False,
) -> Fix:
    """Return what fixes the findings of these numbers or ids, or with ``all_safe`` all whose remedy interrupts nothing.

    ``asked`` and ``settings`` of the result are what `plan` and `apply` take. Accepted findings are left out. Scans
    ``host``, by default this one, and changes nothing. ``is_unattended`` leaves out what is right only after a
    decision: nobody is asked. Raises UsageError for a name that no finding has.
    """
    if names and all_safe:
        raise UsageError("expected findings or --all-safe, not both", hint="leave out the one or the other")
    if not names and not all_safe:
        raise UsageError("expected findings or --all-safe", hint="advisor scan lists the findings with their numbers")
    found = scan(host, workload=workload, volumes=volumes).active
    here = host or live_host()

    def why_absent(identity: str) -> str | None:
        why = explain_absence(identity, here)
        if why and not here.is_live:
            return "the capture does not hold it; on the host itself it may be there"
        return f"this host does not have it: {why}" if why else None

    if all_safe:
        return make_safe_fix(found, why_absent)
    return make_fix(select_findings(found, names), why_absent, is_unattended=is_unattended)


def accept_finding(
    identity: str,
    reason: str,
    *,
    until: str | None = None,
    device: str | Sequence[str] | None = None,
    host: str = "",
    of: Host | None = None,
    workload: str | None = None,
    volumes: Path | None = None,
) -> tuple[MutingEntry, ...]:
    """Write into the file of accepted findings that a rule, or the findings of a number, are accepted; return the
    entries: one for each device that is given, else one for each device of a number.

    ``until`` is the last day, as `parse_until` takes it, ``device`` and ``host`` are names or patterns as for a shell;
    without a host it holds for this machine alone. With a capture ``of`` another host, the number is of its page and
    the host is it, which `IGNORE_FILE` takes only where ``host`` says so; ``workload`` and ``volumes`` are those of the
    page. Changes that file. Raises UsageError, PermissionDeniedError, InvalidInputError.
    """
    day = None if until is None else parse_until(until, current_day())
    given = (device,) if isinstance(device, str) else tuple(dict.fromkeys(device or ()))
    rule, devices = _meant_by(identity, given, find_finding(identity, of, workload=workload, volumes=volumes))
    if of is not None and not host:
        host = escape(scan(of).facts.host.hostname or "")
        if not host:
            raise UsageError("the capture does not say its host's name", hint="--host NAME says whose finding it is")
        is_own = isinstance(of.files, DirectoryFiles) and is_own_tree(of.files.root)
        if str(ignore_file()) == IGNORE_FILE and not is_own:
            raise UsageError(
                f"{IGNORE_FILE} is this host's, and the finding is another one's",
                hint=f"--host {shell_quote(host)} accepts it there for that host; {VARIABLE} names another file",
            )
    if not reason.strip():
        raise UsageError("--reason: empty", hint="say why, for those who read it later")
    entries = tuple(MutingEntry(rule, reason, name, host, day) for name in devices)
    for entry in entries:
        add_muting(entry)
    return entries


def find_idle_muting(
    entries: Sequence[MutingEntry],
    host: Host | None = None,
    *,
    workload: str | None = None,
    volumes: Path | None = None,
) -> Mapping[MutingEntry, tuple[str, ...]]:
    """Return those of the entries of one rule in the file that mute no finding of ``host``, by default this one, now.

    Each has the devices that its findings are about as well, since a finding is muted where all of its devices are; it
    has none where it is about no finding: a pattern that no device fits, a mistyped name. Scans the host.
    """
    findings = [one for one in scan(host, workload=workload, volumes=volumes).findings if one.id == entries[0].id]
    idle: dict[MutingEntry, tuple[str, ...]] = {}
    for entry in entries:
        about = [one for one in findings if is_about(entry, one)]
        if any(one.muted for one in about):
            continue
        names = dict.fromkeys(name for one in about for name in finding_devices(one))
        idle[entry] = tuple(name for name in names if not any(fnmatchcase(name, one.device) for one in entries))
    return idle


def _meant_by(identity: str, given: tuple[str, ...], group: NumberedFindings | None) -> tuple[str, tuple[str, ...]]:
    """The rule, and the devices that are given or those of a number of the page; an id without a device means all."""
    if group is None:
        return identity, given or ("",)
    names = dict.fromkeys(escape(name) for one in group.findings for name in finding_devices(one))
    if not given and len(names) > MOST_DEVICES:
        raise UsageError(
            f"finding {identity}: is about {len(names)} devices",
            hint=f"--device takes a pattern for all of them: advisor mute {group.id} --device PATTERN",
        )
    return group.id, given or tuple(names) or ("",)
