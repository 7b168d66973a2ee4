"""Lines for many devices that say different things of one: the later line keeps it, the earlier is reported by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from advisor.facts.disks import kind_of
from advisor.host import Host, Missing
from advisor.importers.made import leave_out
from advisor.importers.records import ImportedSetting
from advisor.profiles.profile import Only
from advisor.tunables import parse_tunable
from advisor.tunables.preflight import ExpandsIds
from advisor.tunables.udev import may_agree


def last_wins(settings: Sequence[ImportedSetting]) -> list[ImportedSetting]:
    """A tunable that two lines set has what the later one says."""
    last = {(one.tunable, one.only): one for one in settings if one.outcome == "tunable"}
    found = []
    for one in settings:
        winner = last.get((one.tunable, one.only), one) if one.outcome == "tunable" else one
        place = f"{winner.file} line {winner.line} ([{winner.section}])"
        found.append(one if winner is one else leave_out(one, f"{place} sets it again"))
    return found


def make_disjoint(settings: Sequence[ImportedSetting], host: Host) -> list[ImportedSetting]:
    """Each device and each file of the host in one line for each of its settings, as a profile needs it."""
    covered: dict[str, list[str]] = {}
    found = []
    for one in reversed(settings):
        subject = _subject_of(one)
        if subject is None:
            found.append(one)
            continue
        kind, patterns = subject
        later = covered.setdefault(kind, [])
        found.append(_without_later(one, later, host) if later else one)
        later.extend(patterns)
    return _files_once(found[::-1], host)


def _files_once(settings: Iterable[ImportedSetting], host: Host) -> list[ImportedSetting]:
    """What patterns and names of old kernels stand for on this host, each of it once."""
    covered: set[str] = set()
    found = []
    for one in reversed(list(settings)):
        names = _stands_for(one, host)
        again = covered & names
        covered |= names
        if not again:
            found.append(one)
        elif again == names:
            found.append(_leave_out_line(one))
        else:
            rest = sorted(names - again, reverse=True)
            found.extend(msgspec.structs.replace(one, tunable=name) for name in rest)
    return found[::-1]


def _stands_for(one: ImportedSetting, host: Host) -> set[str]:
    if one.outcome != "tunable" or one.tunable is None or one.for_each is not None:
        return set()
    known = parse_tunable(one.tunable)
    names = known.expand_ids(host) if isinstance(known, ExpandsIds) else (one.tunable,)
    return {one.tunable} if isinstance(names, Missing) else {_real_id(name, host) for name in names}


def _real_id(identity: str, host: Host) -> str:
    """An id by the file's own place, of which links below /sys/bus and /sys/class are other names."""
    place = host.real(identity.removeprefix("sysfs:")) if identity.startswith("sysfs:") else identity
    return identity if isinstance(place, Missing) or place == identity else f"sysfs:{place}"


def _subject_of(one: ImportedSetting) -> tuple[str, tuple[str, ...]] | None:
    """What is set of devices (``block::scheduler``), and of which."""
    if one.outcome != "tunable" or one.tunable is None:
        return None
    named = re.fullmatch(r"(block|link):(.+):([^:]+)", one.tunable)
    if named is None:
        return None
    kind, device, attribute = named.groups()
    each = {"{disk}": "disks", "{array}": "arrays", "{link}": "links"}.get(device)
    if each is None:
        each = "links" if kind == "link" else "arrays" if re.match(r"md|dm-", device) else "disks"
        return f"{each}:{attribute}", (device,)
    return f"{each}:{attribute}", (one.only.names if one.only is not None and one.only.names else ("*",))


def _without_later(one: ImportedSetting, later: Sequence[str], host: Host) -> ImportedSetting:
    if one.for_each is None:
        name = (one.tunable or "").split(":")[1]
        return _leave_out_line(one) if _fits_patterns(name, later) else one
    patterns = one.only.names if one.only is not None and one.only.names else ("*",)
    here = [name for name in _devices_of(host, one.for_each) if _fits_patterns(name, patterns)]
    if not any(may_agree(pattern, other) for pattern in patterns for other in later):
        return one
    names = tuple(name for name in here if not _fits_patterns(name, later))
    if not names:
        return _leave_out_line(one)
    only = msgspec.structs.replace(one.only or Only(), names=names)
    return msgspec.structs.replace(one, only=only)


def _leave_out_line(one: ImportedSetting) -> ImportedSetting:
    return leave_out(one, "a later line says otherwise of all that it could be for here")


def _devices_of(host: Host, each: str) -> Iterable[str]:
    if each == "links":
        return host.names("/sys/class/net")
    names = host.names("/sys/block")
    if each == "arrays":
        return [name for name in names if re.match(r"md([0-9]|_)|dm-[0-9]", name)]
    return [name for name in names if kind_of(name) is not None]


def _fits_patterns(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
