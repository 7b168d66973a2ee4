"""What udev's rules and tmpfiles.d write to devices when they appear (udev(7), tmpfiles.d(5)).

Of a rule's conditions those are judged that a captured host can answer; where another one decides, the value is
unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from advisor.facts.sysctl_files import dotted_key
from advisor.facts.writers.commands import written_file
from advisor.facts.writers.record import Place
from advisor.facts.writers.scripts import places_of
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

_RULES = (("/etc/udev/rules.d", ""), ("/run/udev/rules.d", ""), ("/usr/lib/udev/rules.d", "9"))
_TMPFILES = ("/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d")
_TOKEN = lazy_regex(r'([A-Z]+)(?:\{([^}]*)\})?\s*(==|!=|\+=|:=|=)\s*"([^"]*)"')
_CLASSES = {"block": "/sys/block", "net": "/sys/class/net"}
_NAME = lazy_regex(r"%k|\$kernel\b|\$name\b|\$env\{INTERFACE\}|%E\{INTERFACE\}")
_MOST_TEXT = 256 * 1024
_MOST_DEVICES = 512


class _Token(NamedTuple):
    key: str
    attribute: str
    sign: str
    value: str


def _files(host: Host, places: Sequence[tuple[str, str]], ending: str) -> list[str]:
    """The files of directories of which an earlier one hides its namesakes in later ones, by name."""
    found: dict[str, str] = {}
    for place, begin in places:
        for name in host.names(place):
            if name.endswith(ending) and name.startswith(begin):
                found.setdefault(name, f"{place}/{name}")
    return [found[name] for name in sorted(found)]


def list_rules(host: Host) -> list[str]:
    """Return the files of udev's rules that may set values, by name."""
    return _files(host, _RULES, ".rules")


def read_tmpfiles(host: Host) -> Iterator[Place]:
    """Yield what lines of tmpfiles.d write; of several for one file the first counts, so it comes last."""
    for path in reversed(_files(host, [(place, "") for place in _TMPFILES], ".conf")):
        lines = list(enumerate(host.read_or_empty(path)[:_MOST_TEXT].split("\n"), 1))
        for number, line in reversed(lines):
            words = line.split(None, 6)
            if len(words) == 7 and words[0].rstrip("!-+^=") == "w":
                for tunable, value in written_file(words[1], words[6].strip("\"' \t\r")):
                    yield Place(tunable, value, path, number, "advisor" if "/advisor" in path else None)


def read_udev_rules(host: Host) -> Iterator[Place]:
    """Yield what rules write to the disks and links that are there, in the order of the files."""
    devices = [(kind, name) for kind, place in _CLASSES.items() for name in host.names(place)][:_MOST_DEVICES]
    for path in list_rules(host):
        text = host.read_or_empty(path)[:_MOST_TEXT]
        if not re.search(r'ATTR\{[^}]*\}\s*=\s*"|RUN|SYSCTL\{', text):
            continue
        is_certain = "GOTO=" not in text
        by = "advisor" if "-advisor" in path else None
        begun, whole = 0, ""
        for number, line in enumerate(text.split("\n"), 1):
            begun, whole = (begun, whole + line) if whole else (number, line)
            if whole.endswith("\\"):
                whole = whole[:-1]
                continue
            if whole.strip() and not whole.lstrip().startswith("#"):
                tokens = [_Token(*one) for one in _TOKEN.findall(whole)]
                yield from _of_rule(host, tokens, devices, path, begun, by, is_certain=is_certain)
            whole = ""


def _of_rule(
    host: Host,
    tokens: Sequence[_Token],
    devices: Sequence[tuple[str, str]],
    path: str,
    line: int,
    by: str | None,
    *,
    is_certain: bool,
) -> Iterator[Place]:
    conditions = [one for one in tokens if one.sign in ("==", "!=")]
    actions = [one for one in tokens if one not in conditions and one.key in ("ATTR", "RUN", "SYSCTL")]
    for kind, name in devices if actions else ():
        answers = [_is_met(host, one, kind, name) for one in conditions]
        if False in answers:
            continue
        is_known = is_certain and None not in answers
        for one in actions:
            for place in _of_action(host, one, kind, name, path, line, by):
                yield place if is_known else Place(place.tunable, None, path, line, by)


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
    elif one.key == "ATTR":
        has = host.read(f"{base}/{one.attribute}")
    elif (one.key, one.attribute) == ("ENV", "DEVTYPE"):
        has = "disk" if kind == "block" else None
    elif one.key == "DRIVERS" and kind == "net":
        has = host.readlink(f"{base}/device/driver")
        has = has if isinstance(has, Missing) else has.rpartition("/")[2]
    if has is None or (isinstance(has, Missing) and not has.is_absent):
        return None
    is_alike = isinstance(has, str) and any(fnmatchcase(has, part) for part in one.value.split("|"))
    return is_alike is (one.sign == "==")
