"""Links that ifupdown brings up (interfaces(5)), and where their stanzas stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

import msgspec

from advisor.facts.interfaces_text import Stanza, parse_interfaces
from advisor.facts.link_claim import LinkOwner
from advisor.host import Host, Missing, lazy_regex

INTERFACES = "/etc/network/interfaces"
_IN_SOURCED_DIRECTORY = lazy_regex(r"[a-zA-Z0-9_-]+")
# What the shell would expand beyond wildcards.
_SHELL = lazy_regex(r"[$`\"'\\~{(|&;<>]")
_MAX_FILES = 200


class Placed(msgspec.Struct, frozen=True):
    """A stanza and the file in which it stands."""

    path: str
    stanza: Stanza


def read_stanzas(host: Host) -> tuple[Placed, ...] | Missing:
    """Every stanza in the order in which ifup reads them, those of included files in their place."""
    found: list[Placed] = []
    return _follow_includes(host, (INTERFACES,), found, [INTERFACES]) or tuple(found)


def _follow_includes(host: Host, way: tuple[str, ...], found: list[Placed], read: list[str]) -> Missing | None:
    """Append the stanzas of the last file on the ``way`` of includes. Missing says why some could not be had."""
    path = way[-1]
    content = host.read_bytes(path)
    if isinstance(content, Missing):
        return content if content.is_absent and path == INTERFACES else Missing("unreadable", f"{path}: {content.why}")
    for stanza in parse_interfaces(content.decode("utf-8", "surrogateescape")):
        found.append(Placed(path, stanza))
        included = _included_files(host, stanza, path) if stanza.kind.startswith("source") else ()
        if isinstance(included, Missing):
            return included
        for each in included:
            read.append(each)
            if len(read) > _MAX_FILES:
                return Missing("unreadable", f"{INTERFACES} includes more than {_MAX_FILES} files")
            wrong = None if each in way else _follow_includes(host, (*way, each), found, read)
            if wrong is not None:
                return wrong
    return None


def _included_files(host: Host, stanza: Stanza, path: str) -> tuple[str, ...] | Missing:
    paths: list[str] = []
    for pattern in stanza.arguments:
        if _SHELL.search(pattern):
            return Missing("unreadable", f"{path} includes {pattern}, which only a shell could expand")
        absolute = pattern if pattern.startswith("/") else f"{path.rpartition('/')[0]}/{pattern}"
        # Files that fit a pattern with wildcards, in the order of the names that fit.
        places = [""]
        for part in (part for part in absolute.split("/") if part):
            if re.search(r"[*?\[]", part):
                places = [
                    f"{place}/{name}"
                    for place in places
                    for name in host.names(place or "/")
                    if fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))
                ]
            else:
                places = [f"{place}/{part}" for place in places]
        found = (host.real(place) for place in places)
        # One file has one name, whatever way leads there.
        for each in (place for place in found if not isinstance(place, Missing)):
            if stanza.kind == "source":
                paths += [] if host.is_dir(each) else [each]
            else:
                names = (name for name in host.names(each) if _IN_SOURCED_DIRECTORY.fullmatch(name))
                paths += [f"{each}/{name}" for name in names if not host.is_dir(f"{each}/{name}")]
    return tuple(paths)


def read_ifupdown_owner(host: Host, link: str) -> LinkOwner | Missing | None:
    """None where ifupdown is not there or does not bring the link up."""
    # Logical interface by link, of those that are up now.
    lines = host.read_or_empty("/run/network/ifstate").splitlines()
    states = {line.partition("=")[0]: line.partition("=")[2] for line in lines if "=" in line}
    if not states and not any(host.exists(path) for path in ("/usr/sbin/ifup", "/sbin/ifup")):
        return None
    placed = read_stanzas(host)
    if isinstance(placed, Missing):
        return None if placed.is_absent else placed
    logical = states.get(link) or _logical_interface(host, link, placed)
    if logical is None:
        return Missing("unreadable", f"a mapping of {INTERFACES} chooses its stanza when it is brought up")
    own = [one for one in placed if one.stanza.interface == logical]
    if not own or not (link in states or _is_brought_up(host, link, placed) or any(map(sets_mtu, own))):
        return None
    shared = tuple(sorted(other for other, name in states.items() if name == logical and other != link))
    evidence = f"ifupdown brings it up, by 'iface {logical}' in {own[0].path}"
    return LinkOwner("ifupdown", own[0].path, logical, evidence, shared)


def sets_mtu(placed: Placed) -> bool:
    """Whether the stanza has an MTU of its own."""
    return any(option.words[0] == "mtu" for option in placed.stanza.options)


def _logical_interface(host: Host, link: str, placed: Iterable[Placed]) -> str | None:
    """The stanza that a link would get. None where a script decides."""
    for pattern in brought_up(placed):
        match, _, logical = pattern.partition("=")
        if logical and _matches_pattern(host, link, match):
            return logical
    mappings = (one.stanza for one in placed if one.stanza.kind == "mapping")
    return None if any(fnmatchcase(link, glob) for one in mappings for glob in one.arguments) else link


def _is_brought_up(host: Host, link: str, placed: Iterable[Placed]) -> bool:
    return any(_matches_pattern(host, link, pattern.partition("=")[0]) for pattern in brought_up(placed))


def brought_up(placed: Iterable[Placed]) -> Iterator[str]:
    """Names and patterns of what is brought up at boot or as it appears."""
    for one in placed:
        if one.stanza.kind == "auto" or one.stanza.kind.startswith("allow-"):
            yield from one.stanza.arguments


def _matches_pattern(host: Host, link: str, pattern: str) -> bool:
    """``eth0``, ``/eth*``, ``mac/02:*`` or ``FILE/VALUE`` of the link's directory in sysfs, with an optional ``/N``."""
    variable, slash, rest = pattern.partition("/")
    if not slash:
        return pattern == link
    value = rest.rpartition("/")[0] if re.fullmatch(r".+/[0-9]+", rest) else rest
    if not variable:
        return fnmatchcase(link, value)
    name = "address" if variable == "mac" else variable
    live = host.read(f"/sys/class/net/{link}/{name}") if re.fullmatch(r"\w+", name) else Missing("absent", "")
    return isinstance(live, str) and fnmatchcase(live, value)
