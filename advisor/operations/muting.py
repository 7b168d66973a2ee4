"""Accepted findings: /etc/advisor/ignore.toml says which, why and until when.

    [[ignore]]
    id = "arrays.degraded"      # the rule
    device = "md4*"             # optional: a device of the finding, or a pattern as for a shell
    host = "stor*"              # optional: host names; without it, this machine alone
    reason = "spare ordered"
    until = 2027-01-31          # optional: the last day

A finding about several devices is muted where each of them is. ``ADVISOR_IGNORE_FILE`` names another file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from itertools import product
from typing import TYPE_CHECKING, Any

import msgspec

from advisor.errors import InvalidInputError, RefusedError, UsageError, near_names
from advisor.host.numbers import whole_number
from advisor.rules.rule import Finding, Muted, finding_devices

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.facts.host_facts import Facts
    from advisor.host import Host
    from advisor.report.scan_page import MutingRow

IGNORE_FILE = "/etc/advisor/ignore.toml"
VARIABLE = "ADVISOR_IGNORE_FILE"
_TABLE = "ignore"
_MAX_BYTES = 1 << 20


class MutingEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One accepted finding; empty ``device`` and ``host`` stand for every device and for this machine."""

    id: str
    reason: str
    device: str = ""
    host: str = ""
    until: date | None = None

    def is_expired(self, today: date) -> bool:
        """Whether its last day is over."""
        return self.until is not None and self.until < today

    def is_for(self, names: Sequence[str], is_live: bool) -> bool:
        """Whether it is for a host of one of these names; without a host, it is for this machine alone."""
        return any(fnmatchcase(name, self.host) for name in names) if self.host else is_live

    @property
    def label(self) -> str:
        """The id with what it is bound to: ``arrays.degraded of md4* on stor*``."""
        if self.device and self.host:
            return f"{self.id} of {self.device} on {self.host}"
        if self.device:
            return f"{self.id} of {self.device}"
        return f"{self.id} on {self.host}" if self.host else self.id


class MutedFindings(msgspec.Struct, frozen=True):
    """Findings with their muting, and the entries that are over although their finding is still there."""

    findings: tuple[Finding, ...]
    expired: tuple[MutingEntry, ...]

    @property
    def active(self) -> tuple[Finding, ...]:
        """The findings that are not muted."""
        return tuple(one for one in self.findings if one.muted is None)


def ignore_file() -> Path:
    """The file of the accepted findings."""
    from pathlib import Path

    return Path(os.environ.get(VARIABLE) or IGNORE_FILE)


def current_day() -> date:
    """Today in UTC, as all times of advisor are."""
    return datetime.now(UTC).date()


_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_GERMAN_MONTHS = (
    *("januar", "februar", "märz", "april", "mai", "juni"),
    *("juli", "august", "september", "oktober", "november", "dezember"),
)


def parse_until(text: str, today: date) -> date:
    """The last day that ``--until`` names: a date (2027-01-31); days or weeks from ``today`` (30d, 2 weeks); or a month
    (January, jan, Januar, 2027-01), before whose first day it ends, as in speech: ``until January`` is until 31
    December.

    Raises UsageError for anything else, and for a day before ``today``.
    """
    import re

    word = text.strip().lower()
    try:
        if span := re.fullmatch(r"([0-9]{1,9})(?: ?(d|w|days?|weeks?))", word):
            day = today + timedelta(days=(whole_number(span[1]) or 0) * (7 if span[2][0] == "w" else 1))
        elif month := re.fullmatch(r"([0-9]{4})-([0-9]{2})", word):
            day = date(whole_number(month[1]) or 0, whole_number(month[2]) or 0, 1) - timedelta(days=1)
        elif number := _month_of(word):
            day = date(today.year + (number <= today.month), number, 1) - timedelta(days=1)
        else:
            day = date.fromisoformat(word)
    except (ValueError, OverflowError) as error:
        if span:
            raise UsageError(
                f"--until {text}: too far ahead", hint="without --until it is accepted for good"
            ) from error
        raise UsageError(
            f"--until {text}: not a date",
            hint="a date (2027-01-31), a month (January, 2027-01) or a time from now (30d, 2w)",
        ) from error
    if day < today:
        raise UsageError(
            f"--until {text}: is in the past", hint="name the last day on which it is accepted, as 2030-12-31"
        )
    return day


def suggest_days(today: date) -> Mapping[str, str]:
    """Return last days that ``--until`` may name, the first one first, with what each of them is."""
    ends = [_month_end(today), _month_end(_month_end(today) + timedelta(days=1))]
    end = (ends[1], "end of next month") if ends[0] == today else (ends[0], "end of the month")
    found = [(today + timedelta(days=span), f"in {span} days") for span in (30, 90)]
    found += [(date(today.year + 1, 1, 1), "1 January"), end]
    return {day.isoformat(): about for day, about in sorted(found)}


def _month_end(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1) - timedelta(days=1)


def _month_of(word: str) -> int:
    """1 to 12 for the beginning of a month's name, in English or German; 0 for no such name."""
    months = (*enumerate(_MONTHS, 1), *enumerate(_GERMAN_MONTHS, 1))
    return next((at for at, name in months if len(word) > 2 and name.startswith(word)), 0)


def read_muting(path: Path | None = None) -> tuple[MutingEntry, ...]:
    """The entries of the file; none where it is not there. Raises InvalidInputError naming file and line."""
    place = path or os.environ.get(VARIABLE) or IGNORE_FILE
    return parse_muting(_read_text(place), place)


def _read_text(path: Path | str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise InvalidInputError(f"{path}: longer than {_MAX_BYTES >> 20} MiB")
        return data.decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path}: not UTF-8: {error}") from error
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror or error}") from error


def parse_muting(text: str, path: Path | str) -> tuple[MutingEntry, ...]:
    """The entries of a text. Raises InvalidInputError naming ``path`` and the line."""
    if not text:
        return ()
    import tomllib

    from advisor.profiles.toml_text import line_of

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(_syntax_message(text, path, error), hint=_HINT) from error
    except RecursionError as error:
        raise InvalidInputError(f"{path}: nested too deeply", hint=_HINT) from error
    entries = document.get(_TABLE, [])
    unknown = next((key for key in document if key != _TABLE), None)
    if unknown is not None or not isinstance(entries, list):
        key = unknown or _TABLE
        message = f"{path}:{line_of(text, [key])}: {key}: expected [[ignore]] tables"
        raise InvalidInputError(message, hint=_HINT)
    return tuple(_parse_entry(one, number, text, path) for number, one in enumerate(entries))


def _syntax_message(text: str, path: Path | str, error: ValueError) -> str:
    """The decoder's words, with the line and the key on it where it names the line."""
    import re

    found = re.search(r"\(at line ([0-9]{1,9}),", str(error))
    line = whole_number(found[1]) if found else None
    if line is None:
        return f"{path}: {error}"
    key = re.match(r"\s*([A-Za-z0-9_-]+)\s*=", text.split("\n")[line - 1])
    what = f"{key[1]}: {error}" if key else str(error)
    return f"{path}:{line}: {what}"


_HINT = "[[ignore]] takes id, reason, device, host and until (2027-01-31)"


def _parse_entry(found: Any, number: int, text: str, path: Path | str) -> MutingEntry:
    from advisor.profiles.toml_text import line_of

    def fault(key: str, why: str) -> InvalidInputError:
        line = line_of(text, [_TABLE, number, key]) or 1
        return InvalidInputError(f"{path}:{line}: {key}: {why}", hint=_HINT)

    if not isinstance(found, dict):
        raise fault(_TABLE, "not a table")
    for key, value in found.items():
        if key not in MutingEntry.__struct_fields__:
            raise fault(key, "not a key of [[ignore]]")
        if key == "until":
            if not isinstance(value, date) or isinstance(value, datetime):
                raise fault(key, "not a date without quotes, such as 2027-01-31")
        elif not isinstance(value, str) or not value.strip():
            raise fault(key, "not a text")
    for key in ("id", "reason"):
        if key not in found:
            raise fault(key, "missing")
    return MutingEntry(**found)


def apply_muting(
    findings: Iterable[Finding], entries: Sequence[MutingEntry], *, names: Sequence[str], is_live: bool, today: date
) -> MutedFindings:
    """Return the findings of a host with their muting. An entry is for a host by one of its ``names``; without a host,
    for this machine (``is_live``) alone."""
    here = [one for one in entries if one.is_for(names, is_live)]
    muted = tuple(_with_muting(one, here, today) for one in findings)
    over = [one for one in here if one.is_expired(today)]
    expired = tuple(one for one in over if any(is_about(one, finding) for finding in muted if finding.muted is None))
    return MutedFindings(muted, expired)


def mute_findings(host: Host, facts: Facts, findings: Iterable[Finding]) -> MutedFindings:
    """Findings of a host with the muting of this machine's file. Raises InvalidInputError."""
    names = (facts.host.hostname or "",)
    return apply_muting(findings, read_muting(), names=names, is_live=host.is_live, today=current_day())


def list_muting(
    findings: Sequence[Finding], *, names: Sequence[str] | None = None, is_live: bool = True
) -> tuple[MutingRow, ...]:
    """Return each entry of the file with the titles of those findings that it is about, muted or shown again.

    With the ``names`` of their host, an entry for other hosts has no titles; ``is_live`` is whether it is this machine.

    Raises InvalidInputError.
    """
    from advisor.report.scan_page import MutingRow
    from advisor.rules.judged import RULES

    today, rules = current_day(), {rule.id for rule in RULES}
    entries = [(one, names is None or one.is_for(names, is_live)) for one in read_muting()]
    return tuple(
        MutingRow(
            one.label,
            one.reason,
            one.until.isoformat() if one.until else None,
            one.is_expired(today),
            tuple(finding.title for finding in findings if is_here and is_about(one, finding)),
            is_elsewhere=not is_here,
            unknown=None if one.id in rules else tuple(near_names(one.id, rules)),
        )
        for one, is_here in entries
    )


def expired_notes(expired: Sequence[MutingEntry]) -> tuple[str, ...]:
    """A line that says which accepted findings are shown again, since their last day is over; none for none."""
    if not expired:
        return ()
    first = expired[0]
    more = f" and {len(expired) - 1} more: advisor scan --muted" if len(expired) > 1 else ""
    return (f"no longer muted: {first.label} (until {first.until}){more}",)


def is_about(entry: MutingEntry, finding: Finding) -> bool:
    """Whether an entry is about a finding, or about one of its devices, on a host that it is for."""
    devices = finding_devices(finding)
    named = not entry.device or any(fnmatchcase(one, entry.device) for one in devices)
    return entry.id == finding.id and named


def is_muted(identity: str, devices: Sequence[str], *, names: Sequence[str], is_live: bool) -> bool:
    """Return whether a finding of this id, about these devices, is muted on a host of one of these ``names``.

    Raises InvalidInputError.
    """
    entries = [one for one in read_muting() if one.id == identity and one.is_for(names, is_live)]
    return _muting_entry(devices, entries, current_day()) is not None


def _muting_entry(devices: Sequence[str], entries: Iterable[MutingEntry], today: date) -> MutingEntry | None:
    """Return the one of the entries of a rule that mutes its finding, or the first of those that do together."""
    fitting = [one for one in entries if not one.is_expired(today)]
    whole = next((one for one in fitting if not one.device), None)
    is_covered = devices and all(any(fnmatchcase(name, one.device) for one in fitting) for name in devices)
    return whole or (fitting[0] if is_covered else None)


def _with_muting(finding: Finding, entries: Sequence[MutingEntry], today: date) -> Finding:
    entry = _muting_entry(finding_devices(finding), [one for one in entries if is_about(one, finding)], today)
    if entry is None:
        return finding
    until = entry.until.isoformat() if entry.until else None
    return msgspec.structs.replace(finding, muted=Muted(entry.reason, until))


def add_muting(entry: MutingEntry, path: Path | None = None) -> None:
    """Write an entry into the file, in place of an earlier one for the same id, device and host.

    Raises UsageError for an id that no rule has, PermissionDeniedError where the file cannot be written.
    """
    from advisor.profiles.toml_text import quote_toml
    from advisor.rules.judged import RULES

    path = path or ignore_file()
    rules = {rule.id for rule in RULES}
    if entry.id not in rules:
        close = near_names(entry.id, rules)
        raise UsageError(
            f"{entry.id}: no rule has this id",
            hint=f"did you mean {', '.join(close)}?" if close else "advisor scan --all prints the id of each finding",
        )
    text = _read_text(path)
    kept = _without(text, [_same(one, entry) for one in parse_muting(text, path)], path)
    block = ["[[ignore]]", f"id = {quote_toml(entry.id)}"]
    block += [f"{key} = {quote_toml(value)}" for key in ("device", "host") if (value := getattr(entry, key))]
    block += [f"reason = {quote_toml(entry.reason)}"]
    block += [f"until = {entry.until.isoformat()}"] if entry.until else []
    _write(path, "\n".join([*([kept.rstrip("\n"), ""] if kept.strip() else []), *block]) + "\n")


def remove_muting(
    identity: str | Sequence[str], device: str | Sequence[str] = "", host: str = "", path: Path | None = None
) -> tuple[MutingEntry, ...]:
    """Take the entries of an id, or of several (of one host or some devices, where given), out of the file, and return
    them.
    A number means the entry that `list_muting` has at this place before any is removed, from 1.

    Raises RefusedError, with nothing removed, where there is none for one of them.
    """
    path = path or ignore_file()
    text = _read_text(path)
    entries = parse_muting(text, path)
    is_meant = [False] * len(entries)
    names = (identity,) if isinstance(identity, str) else identity
    devices = (device,) if isinstance(device, str) else (*device,) or ("",)
    for name, of in product(names, devices):
        found = [
            at
            for at, one in enumerate(entries)
            if name in (one.id, str(at + 1)) and of in ("", one.device) and host in ("", one.host)
        ]
        if not found:
            what = f"{name} of {of}" if of else name
            raise RefusedError(f"{path}: {what} is not muted", hint="advisor scan --muted lists what is")
        for at in found:
            is_meant[at] = True
    _write(path, _without(text, is_meant, path))
    return tuple(one for one, meant in zip(entries, is_meant, strict=True) if meant)


def _same(one: MutingEntry, other: MutingEntry) -> bool:
    return (one.id, one.device, one.host) == (other.id, other.device, other.host)


def _without(text: str, is_removed: Sequence[bool], path: Path) -> str:
    """The text without some of its tables; comments elsewhere stay. Raises InvalidInputError for another form."""
    import re

    if not any(is_removed):
        return text
    lines = text.splitlines(keepends=True)
    heads = [at for at, line in enumerate(lines) if re.match(r"\s*\[", line)]
    tables = [at for at in heads if re.match(r"\s*\[\[\s*ignore\s*\]\]", lines[at])]
    if len(tables) != len(is_removed):
        raise InvalidInputError(
            f"{path}: its entries are not [[ignore]] tables of their own", hint="remove the entry with an editor"
        )
    gone: set[int] = set()
    for start, removed in zip(tables, is_removed, strict=True):
        if removed:
            end = next((at for at in heads if at > start), len(lines))
            # Comments right above the next table belong to that one.
            while end < len(lines) and end > start + 1 and lines[end - 1].lstrip().startswith("#"):
                end -= 1
            gone.update(range(start, end))
    return "".join(line for at, line in enumerate(lines) if at not in gone)


def _write(path: Path, text: str) -> None:
    from advisor.host.putfile import put_file
    from advisor.operations.files import explain_file_errors

    # What is written is read again first: a file that no scan could read must not come to be.
    parse_muting(text, path)
    with explain_file_errors(path):
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        put_file(str(path), text.encode(), mode=0o644, uid=os.geteuid(), gid=os.getegid())
