"""What ``multipath -ll`` prints, at any verbosity, in the form of today and in those of RHEL 4 and 5 (multipath(8))."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from advisor.host.patterns import lazy_regex

_MAP = lazy_regex(
    r"(?:\w+: )?(?:(?P<alias>\S+) \((?P<wwid>[^()]+)\)|(?P<only>\S(?:[^()]*\S)?(?= dm-\d)|\w+?(?=dm-\d)|\S+)) ?"
    r"(?:(?P<dm>dm-\d+) ?(?P<product>[^=]*))?",
    re.ASCII,
)
_DM = lazy_regex(r"dm-\d+( |$)", re.ASCII)
_PROPERTIES = lazy_regex(r"\s*\[?size=")
# A blank lies within the checker's words "i/o pending" and "i/o timeout".
_STATE = lazy_regex(r"\[([^\]]*)\]|(i/o \w+|[^\s\[\]]+)")
_SOUND = frozenset({"", "ready", "ghost", "undef", "running", "unknown", "up"})
_PATH = lazy_regex(
    r"[|\s]*(?:[`|]-|\\_) (?P<hctl>[\d#]+(?::[\d#]+){3}) +(?P<device>\S+) +(?P<number>[\d#]+:[\d#]+) +(?P<states>.*)",
    re.ASCII,
)
_GROUP = lazy_regex(
    r"[|\s]*(?:[`|]-\+-|\\_) (?:policy='(?P<policy>[^']*)'|(?P<old>[a-z-]+ \d+) )(?P<rest>.*)", re.ASCII
)


class MultipathPath(msgspec.Struct, frozen=True):
    """One path: state by device-mapper (active, failed), by the checker (ready, faulty, ghost …), of the device.

    An empty text stands for a state that is not printed.
    """

    device: str
    hctl: str
    number: str
    dm_state: str
    check_state: str
    device_state: str

    @property
    def is_usable(self) -> bool:
        """Whether it leads to a device, device-mapper would send I/O over it, and neither checker nor kernel doubts it.

        A word that is not known is taken for the worse. A device that is gone is printed as ``-``.
        """
        return (
            self.device not in {"-", "#"}
            and self.dm_state in {"", "active"}
            and {self.check_state, self.device_state} <= _SOUND
        )


class MultipathGroup(msgspec.Struct, frozen=True):
    """A priority group; ``state`` is active, enabled or disabled."""

    policy: str
    priority: int | None
    state: str
    paths: tuple[MultipathPath, ...]


class MultipathMap(msgspec.Struct, frozen=True):
    """One map. ``name`` is the alias, or the WWID where there is none; ``size`` as printed (``54T``)."""

    name: str
    wwid: str
    device: str
    vendor: str | None
    product: str | None
    size: str | None
    features: str | None
    hwhandler: str | None
    access: str | None
    groups: tuple[MultipathGroup, ...]

    @property
    def paths(self) -> tuple[MultipathPath, ...]:
        return tuple(path for group in self.groups for path in group.paths)


def parse_multipath(text: str) -> tuple[MultipathMap, ...]:
    """Maps in the order of the text; debug lines and the list of paths before them are passed over."""
    return tuple(_parse_map(head, body) for head, body in _split_sections(text.replace("\0", " ")))


def count_unread(text: str) -> int:
    """How many maps the text has, by their sizes, whose first line is of no form that is known."""
    heads = sum(1 for _ in _split_sections(text))
    return max(sum(1 for line in text.splitlines() if _PROPERTIES.match(line)) - heads, 0)


def _split_sections(text: str) -> Iterator[tuple[re.Match[str], list[str]]]:
    """The first line of each map and what follows it; RHEL 4 names no dm-N there, but the size follows."""
    head: re.Match[str] | None = None
    body: list[str] = []
    lines = text.splitlines()
    for line, following in zip(lines, (*lines[1:], ""), strict=False):
        is_head = len(line) < 1000 and (_DM.search(line) or _PROPERTIES.match(following))
        found = _MAP.fullmatch(line.rstrip()) if is_head else None
        if found is None:
            body.append(line)
            continue
        if head is not None:
            yield head, body
        head, body = found, []
    if head is not None:
        yield head, body


def _parse_map(head: re.Match[str], body: list[str]) -> MultipathMap:
    properties = next((line for line in body if _PROPERTIES.match(line)), "")
    vendor, _, product = (part.strip() for part in (head["product"] or "").partition(","))
    found = re.search(r"\bwp=(\w+)|\[(r[owx])\]", properties)
    return MultipathMap(
        name=(head["alias"] or head["only"]).strip(),
        wwid=(head["wwid"] or head["only"]).strip(),
        device=head["dm"] or (head["alias"] or head["only"]).strip(),
        vendor=vendor or None,
        product=product or None,
        size=_parse_property(properties, "size"),
        features=_parse_property(properties, "features"),
        hwhandler=_parse_property(properties, "hwhandler"),
        access=(found[1] or found[2]) if found else None,
        groups=_parse_groups(body),
    )


def _parse_property(line: str, name: str) -> str | None:
    """The value in ``name='value'``, ``name=value`` or ``[name=value]``."""
    found = re.search(rf"\b{name}=(?:'([^']*)'|([^\]\s][^\]]*)\]|(\S+))", line)
    return next((value for value in found.groups() if value is not None), None) if found else None


def _parse_groups(body: list[str]) -> tuple[MultipathGroup, ...]:
    groups: list[tuple[re.Match[str], list[MultipathPath]]] = []
    for line in body:
        path = _PATH.fullmatch(line.rstrip())
        group = None if path else _GROUP.fullmatch(line.rstrip())
        if group:
            groups.append((group, []))
        elif path and groups:
            words = _STATE.findall(path["states"])
            dm_state, check_state, device_state, *_ = [*(old or new for old, new in words), "", "", ""]
            groups[-1][1].append(
                MultipathPath(path["device"], path["hctl"], path["number"], dm_state, check_state, device_state)
            )
    return tuple(_make_group(found, paths) for found, paths in groups)


def _make_group(found: re.Match[str], paths: list[MultipathPath]) -> MultipathGroup:
    rest = found["rest"]
    priority = re.search(r"prio=(-?[0-9]{1,9})", rest)
    state = re.search(r"status=(\w+)|\[(\w+)\]$", rest)
    return MultipathGroup(
        policy=found["policy"] or found["old"] or "",
        priority=int(priority[1]) if priority else None,
        state=(state[1] or state[2]) if state else "",
        paths=tuple(paths),
    )
