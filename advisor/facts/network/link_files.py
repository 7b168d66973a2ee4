"""The text of /etc/network/interfaces and the files that it includes (interfaces(5))."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import pairwise

import msgspec

from advisor.facts.network.link_claim import LinkOwner, is_stopped, link_addresses
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

_LINE = lazy_regex(r"[^\n]*\n|[^\n]+")
_CONTINUED = lazy_regex(r"\\\n")
# Words that begin a stanza; any other first word is an option of the one before.
_STANZAS = lazy_regex(
    r"iface|mapping|auto|allow-\S+|no-auto-down|no-scripts|rename|template|source|source-directory|source-dir"
)


class JoinedLine(msgspec.Struct, frozen=True):
    """A line with those that continue it. ``text`` has a blank for each character of a line break inside, so that an
    offset in it, added to ``start``, is one in the file. ``end`` is after the line's end."""

    start: int
    end: int
    text: str

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.text.split())


class Stanza(msgspec.Struct, frozen=True):
    """A first line and the options below it."""

    head: JoinedLine
    options: tuple[JoinedLine, ...]

    @property
    def kind(self) -> str:
        return self.head.words[0]

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.head.words[1:]

    @property
    def interface(self) -> str | None:
        """The logical interface that an ``iface`` stanza defines."""
        return self.arguments[0] if self.kind == "iface" and self.arguments else None

    @property
    def family(self) -> str:
        """``inet`` where none is given, as ifupdown2 and ifupdown-ng allow."""
        return self._plain[1] if len(self._plain) > 1 else "inet"

    @property
    def method(self) -> str:
        return self._plain[2] if len(self._plain) > 2 else "static"

    @property
    def inherits(self) -> tuple[str, ...]:
        """Stanzas whose options are this one's as well."""
        return tuple(after for word, after in pairwise(self.arguments) if word == "inherits")

    @property
    def _plain(self) -> tuple[str, ...]:
        words = self.arguments
        return words[: words.index("inherits")] if "inherits" in words else words

    @property
    def takes_mtu(self) -> bool:
        """Whether ``mtu`` is an option that sets the link's MTU here: that of inet6 may set IPv6's alone."""
        return self.family == "inet" and self.method in {"static", "manual", "tunnel"}


def parse_interfaces(text: str) -> Iterator[Stanza]:
    """The stanzas of one file, in order. Lines before the first are no one's."""
    head: JoinedLine | None = None
    options: list[JoinedLine] = []
    for line in _logical_lines(text):
        if not _STANZAS.fullmatch(line.words[0]):
            options.append(line)
            continue
        if head is not None:
            yield Stanza(head, tuple(options))
        head, options = line, []
    if head is not None:
        yield Stanza(head, tuple(options))


def _logical_lines(text: str) -> Iterator[JoinedLine]:
    pieces = _LINE.finditer(text)
    for piece in pieces:
        start = piece.start()
        # A comment is not continued.
        if not piece[0].strip() or piece[0].lstrip().startswith("#"):
            continue
        while piece[0].endswith("\\\n"):
            following = next(pieces, None)
            if following is None:
                break
            piece = following
        line = _CONTINUED.sub("  ", text[start : piece.end()]).removesuffix("\n")
        # The file may end where a line was to be continued.
        line = f"{line[:-1]} " if line.endswith("\\") else line
        if line.strip():
            yield JoinedLine(start, piece.end(), line)


# Links that ifupdown brings up (interfaces(5)), and where their stanzas stand.

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


# ifcfg files: of Red Hat's network scripts (also read by NetworkManager) and of SUSE's wicked (ifcfg(5)).

NETWORK_SCRIPTS = "/etc/sysconfig/network-scripts"
WICKED = "/etc/sysconfig/network"
# What both leave aside: copies of editors and package managers.
_LEFT_BEHIND = lazy_regex(r".*(~|\.(bak|old|orig|save|scpmbackup|rpm(new|save|orig)|swp|template))|ifcfg-template")
_ASSIGNMENT = lazy_regex(r"[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=(.*)", re.ASCII)


def parse_assignments(text: str) -> dict[str, str]:
    """Variables of a file that a shell reads, one to a line; the last assignment counts. A value that would have to be
    worked out is left out."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        match = _ASSIGNMENT.fullmatch(line.rstrip("\r"))
        if not match:
            continue
        try:
            words = shlex.split(match[2], comments=True)
        except ValueError:
            found.pop(match[1], None)
        else:
            found[match[1]] = words[0] if words and not match[2][:1].isspace() else ""
    return found


def read_ifcfg(host: Host, directory: str) -> dict[str, dict[str, str]] | Missing:
    """The variables of each ifcfg file of a directory, by path. Missing where one cannot be read."""
    found: dict[str, dict[str, str]] = {}
    for name in host.names(directory):
        if name.startswith("ifcfg-") and name != "ifcfg-lo" and not _LEFT_BEHIND.fullmatch(name):
            text = host.read(f"{directory}/{name}")
            if isinstance(text, Missing):
                return Missing("unreadable", f"{directory}/{name}: {text.why}")
            found[f"{directory}/{name}"] = parse_assignments(text)
    return found


def find_ifcfg(host: Host, directory: str, link: str, uuid: str | None = None) -> str | Missing | None:
    """The link's file: by the profile's UUID, else by its DEVICE, by its hardware address, or by its own name."""
    found = read_ifcfg(host, directory)
    if isinstance(found, Missing):
        return found
    addresses = link_addresses(host, link)
    by_uuid = [path for path, said in found.items() if uuid and said.get("UUID") == uuid]
    by_device = [path for path, said in found.items() if said.get("DEVICE") == link]
    nameless = [path for path, said in found.items() if "DEVICE" not in said]
    by_address = [path for path in nameless if found[path].get("HWADDR", "").lower() in addresses]
    by_name = [path for path in nameless if path == f"{directory}/ifcfg-{link}"]
    matching = by_uuid or by_device or by_address or by_name
    if len(matching) > 1:
        return Missing("unreadable", f"{' and '.join(matching)} both describe it")
    return matching[0] if matching else None


def read_sysconfig_owner(host: Host, link: str) -> LinkOwner | Missing | None:
    """None where neither the network scripts nor wicked bring the link up."""
    if not is_stopped(host, "network.service"):
        path = find_ifcfg(host, NETWORK_SCRIPTS, link)
        if path is not None:
            return _make_owner("network-scripts", link, path)
    if not is_stopped(host, "wickedd.service"):
        path = find_ifcfg(host, WICKED, link)
        if path is not None:
            return _make_owner("wicked", link, path)
    return None


def _make_owner(manager: str, link: str, path: str | Missing) -> LinkOwner | Missing:
    if isinstance(path, Missing):
        return path
    if manager == "wicked":
        return LinkOwner("wicked", path, link, f"wicked brings it up, by {path}")
    return LinkOwner("network-scripts", path, link, f"the network scripts bring it up, by {path}")
