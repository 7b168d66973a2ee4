"""What ``multipath -ll`` prints, at any verbosity, in the form of today and in that of RHEL 5 (multipath(8))."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from advisor.host.patterns import lazy_regex

_MAP = lazy_regex(
    r"(?:\w+: )?(?:(?P<alias>\S+) \((?P<wwid>[^()]+)\)|(?P<only>\S(?:[^()]*\S)?)) "
    r"(?P<dm>dm-\d+) ?(?P<product>[^=]*)",
    re.ASCII,
)
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
        """Whether device-mapper would send I/O over it, and neither checker nor kernel says that it would fail."""
        bad = {"failed", "faulty", "offline", "shaky", "i/o pending", "i/o timeout", "delayed"}
        return not bad & {self.dm_state, self.check_state, self.device_state}


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


def _split_sections(text: str) -> Iterator[tuple[re.Match[str], list[str]]]:
    head: re.Match[str] | None = None
    body: list[str] = []
    for line in text.splitlines():
        found = _MAP.fullmatch(line.rstrip()) if len(line) < 1000 and " dm-" in line else None
        if found is None:
            body.append(line)
            continue
        if head is not None:
            yield head, body
        head, body = found, []
    if head is not None:
        yield head, body


def _parse_map(head: re.Match[str], body: list[str]) -> MultipathMap:
    properties = next((line for line in body if re.match(r"\[?size=", line)), "")
    vendor, _, product = (part.strip() for part in head["product"].partition(","))
    found = re.search(r"\bwp=(\w+)|\[(r[owx])\]", properties)
    return MultipathMap(
        name=(head["alias"] or head["only"]).strip(),
        wwid=(head["wwid"] or head["only"]).strip(),
        device=head["dm"],
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
            text: str = path["states"]
            states: list[str] = re.findall(r"\[([^\]]*)\]", text) or text.split()
            dm_state, check_state, device_state, *_ = [*states, "", "", ""]
            groups[-1][1].append(
                MultipathPath(path["device"], path["hctl"], path["number"], dm_state, check_state, device_state)
            )
    return tuple(_make_group(found, paths) for found, paths in groups)


def _make_group(found: re.Match[str], paths: list[MultipathPath]) -> MultipathGroup:
    rest = found["rest"]
    priority = re.search(r"prio=(-?[0-9]{1,9})", rest)
    state = re.search(r"status=(\w+)|\]\[(\w+)\]", rest)
    return MultipathGroup(
        policy=found["policy"] or found["old"] or "",
        priority=int(priority[1]) if priority else None,
        state=(state[1] or state[2]) if state else "",
        paths=tuple(paths),
    )
