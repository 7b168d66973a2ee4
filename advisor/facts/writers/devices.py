"""What udev's rules and tmpfiles.d write to devices when they appear (udev(7), tmpfiles.d(5)).

Of a rule's conditions those are judged that a captured host can answer; where another one decides, the value is
unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from advisor.facts.site_settings import parse_multipath
from advisor.facts.sysctl_files import dotted_key
from advisor.facts.writers.commands import OF_INTEREST, written_file
from advisor.facts.writers.record import Place
from advisor.facts.writers.scripts import places_of
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

RULES = (
    *("/etc/udev/rules.d", "/run/udev/rules.d", "/usr/local/lib/udev/rules.d"),
    *("/usr/lib/udev/rules.d", "/lib/udev/rules.d"),
)
_TMPFILES = ("/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d")
_TOKEN = lazy_regex(r'([A-Z]+)(?:\{([^}]*)\})?\s*(==|!=|\+=|:=|=)\s*"([^"]*)"')
_CLASSES = {"block": "/sys/block", "net": "/sys/class/net"}
_MULTIPATH, _MULTIPATH_MORE = "/etc/multipath.conf", "/etc/multipath/conf.d"
_WRITES = lazy_regex(r'ATTR\{[^}]*\}\s*=\s*"|RUN|SYSCTL\{')
_NAME = lazy_regex(r"%k|\$kernel\b|\$name\b|\$env\{INTERFACE\}|%E\{INTERFACE\}")
_MOST_TEXT = 256 * 1024
_MOST_DEVICES = 512


class _Token(NamedTuple):
    key: str
    attribute: str
    sign: str
    value: str


def _files(host: Host, places: Sequence[str], ending: str) -> list[str]:
    """The files of directories of which an earlier one hides its namesakes in later ones, by name."""
    found: dict[str, str] = {}
    for place in places:
        for name in host.names(place):
            if name.endswith(ending):
                found.setdefault(name, f"{place}/{name}")
    return [found[name] for name in sorted(found)]


def list_rules(host: Host) -> list[str]:
    """Return the files of udev's rules that may set values, by name."""
    return _files(host, RULES, ".rules")


def read_tmpfiles(host: Host) -> Iterator[Place]:
    """Yield what lines of tmpfiles.d write; of several for one file the first counts, so it comes last."""
    for path in reversed(_files(host, _TMPFILES, ".conf")):
        lines = list(enumerate(host.read_or_empty(path)[:_MOST_TEXT].split("\n"), 1))
        for number, line in reversed(lines):
            words = line.split(None, 6)
            if len(words) == 7 and words[0].rstrip("!-+^=") == "w":
                for tunable, value in written_file(words[1], words[6].strip("\"' \t\r")):
                    yield Place(tunable, value, path, number, "advisor" if "/advisor" in path else None)


def read_multipath(host: Host) -> Iterator[Place]:
    """Yield the largest request that multipathd gives its maps and their paths (multipath.conf(5), max_sectors_kb);
    what a section gives single maps or arrays is no value that can be told."""
    lines = [
        (path, number, value if re.fullmatch("defaults|overrides", scope) else None)
        for path in (_MULTIPATH, *(f"{_MULTIPATH_MORE}/{name}" for name in host.names(_MULTIPATH_MORE)))
        for number, (key, value, scope) in parse_multipath(host.read_or_empty(path))
        if key == "max_sectors_kb"
    ]
    for disk in host.names(_CLASSES["block"]) if lines else ():
        if host.read_or_empty(f"/sys/block/{disk}/dm/uuid").startswith("mpath-"):
            for device in (disk, *host.names(f"/sys/block/{disk}/slaves")):
                for path, number, value in sorted(lines, key=lambda line: line[2] is None):
                    yield Place(f"block:{device}:max_sectors_kb", value, path, number)


def read_udev_rules(host: Host) -> Iterator[Place]:
    """Yield what rules write to the disks and links that are there, in the order of the files."""
    devices = [(kind, name) for kind, place in _CLASSES.items() for name in host.names(place)][:_MOST_DEVICES]
    for path in list_rules(host):
        rules = _rules_of(host.read_or_empty(path)[:_MOST_TEXT])
        by = "advisor" if "-advisor" in path else None
        for kind, name in devices if any(map(_actions, (tokens for _, tokens in rules))) else ():
            yield from _of_file(host, rules, kind, name, path, by)


def _rules_of(text: str) -> list[tuple[int, list[_Token]]]:
    """The rules that set something, jump, or are jumped to, each with its first line."""
    found: list[tuple[int, list[_Token]]] = []
    begun, whole = 0, ""
    for number, line in enumerate(text.split("\n") if _WRITES.search(text) else (), 1):
        begun, whole = (begun, whole + line) if whole else (number, line)
        if whole.endswith("\\"):
            whole = whole[:-1]
            continue
        if not whole.lstrip().startswith("#"):
            tokens = [_Token(*one) for one in _TOKEN.findall(whole)]
            if _actions(tokens) or any(one.key in ("GOTO", "LABEL") for one in tokens):
                found.append((begun, tokens))
        whole = ""
    return found


def _actions(tokens: Sequence[_Token]) -> list[_Token]:
    return [
        one
        for one in tokens
        if one.sign not in ("==", "!=")
        and (one.key in ("ATTR", "SYSCTL") or (one.key == "RUN" and OF_INTEREST.search(one.value)))
    ]


def _of_file(
    host: Host, rules: Sequence[tuple[int, list[_Token]]], kind: str, name: str, path: str, by: str | None
) -> Iterator[Place]:
    """What the rules of a file do to a device. What a jump may leave out is a value that cannot be told."""
    skipped, doubted = "", ""
    for line, tokens in rules:
        labels = [one.value for one in tokens if one.key == "LABEL"]
        skipped, doubted = ("" if one in labels else one for one in (skipped, doubted))
        answers = [] if skipped else [_is_met(host, one, kind, name) for one in tokens if one.sign in ("==", "!=")]
        if skipped or False in answers:
            continue
        is_known = None not in answers and not doubted
        for one in _actions(tokens):
            for place in _of_action(host, one, kind, name, path, line, by):
                if is_known:
                    yield place
                elif not place.tunable.startswith("sysfs:"):
                    yield Place(place.tunable, None, path, line, by)
        for one in tokens:
            if one.key == "GOTO":
                skipped, doubted = (skipped, one.value) if None in answers else (one.value, doubted)


def _of_action(host: Host, one: _Token, kind: str, name: str, path: str, line: int, by: str | None) -> Iterator[Place]:
    if one.key == "RUN":
        yield from places_of(host, _NAME.sub(name, one.value), path, line, by)
    elif one.key == "SYSCTL":
        yield Place(f"sysctl:{dotted_key(one.attribute.replace('$name', name))}", one.value, path, line, by)
    else:
        for tunable, value in written_file(f"{_CLASSES[kind]}/{name}/{one.attribute}", one.value):
            yield Place(tunable, value, path, line, by)


def _is_met(host: Host, one: _Token, kind: str, name: str) -> bool | None:
    """Whether a device meets a condition; None where that cannot be told here."""
    base = f"{_CLASSES[kind]}/{name}"
    has: str | Missing | None = None
    if one.key == "KERNEL":
        has = name
    elif one.key == "SUBSYSTEM":
        has = kind
    elif one.key == "ACTION":
        return any(fnmatchcase(word, part) for part in one.value.split("|") for word in ("add", "change")) is (
            one.sign == "=="
        )
    elif one.key in ("ATTR", "ATTRS"):
        has = host.read(f"{base}/{one.attribute}")
        if one.key == "ATTRS" and isinstance(has, Missing):
            # The devices above that one are not looked through: what they have cannot be denied.
            has = host.read(f"{base}/device/{one.attribute}")
            has = None if isinstance(has, Missing) else has
        has = has.rstrip() if isinstance(has, str) else has
    elif (one.key, one.attribute) == ("ENV", "DEVTYPE"):
        has = "disk" if kind == "block" else None
    elif one.key == "DRIVERS" and kind == "net":
        has = host.readlink(f"{base}/device/driver")
        has = has if isinstance(has, Missing) else has.rpartition("/")[2]
    if has is None or (isinstance(has, Missing) and not has.is_absent):
        return None
    is_alike = isinstance(has, str) and any(fnmatchcase(has, part) for part in one.value.split("|"))
    return is_alike is (one.sign == "==")
