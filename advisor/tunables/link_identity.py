"""What a link is known by: at boot, before anybody has given it its name, and since a plan was made: names are given to
other links, and links get other names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from advisor.facts.link_claim import udev_property
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

_ADDRESS = lazy_regex(r"[0-9a-f]{2}(:[0-9a-f]{2}){5,19}")


class ByName(msgspec.Struct, frozen=True):
    """A virtual link: whoever makes it gives it this name."""

    name: str


class ByAddress(msgspec.Struct, frozen=True):
    """A port by the address that it was built with. ``driver`` distinguishes it from a VLAN or macvlan on top, which
    shows the same address; empty where the port's driver is not known."""

    address: str
    driver: str


class ByPlace(msgspec.Struct, frozen=True):
    """A port by udev's ID_PATH: the slot that it is in."""

    path: str


def link_identity(host: Host, link: str) -> ByName | ByAddress | ByPlace | Missing:
    """What identifies a link when it appears. Missing where nothing about it lasts."""
    base = f"/sys/class/net/{link}"
    if not host.exists(f"{base}/device"):
        return ByName(link)
    # A bond member shows the bond's address; its own one is kept aside.
    member = host.read(f"{base}/bonding_slave/perm_hwaddr")
    own = host.read(f"{base}/address") if host.read(f"{base}/addr_assign_type") == "0" else member
    address = member if isinstance(own, Missing) else own
    if not isinstance(address, Missing) and _ADDRESS.fullmatch(address):
        driver = host.readlink(f"{base}/device/driver")
        return ByAddress(address, "" if isinstance(driver, Missing) else driver.rpartition("/")[2])
    path = udev_property(host, link, "ID_PATH")
    return ByPlace(path) if path else Missing("unreadable", "it has no lasting address or path to be known by at boot")


_SYSCTL = lazy_regex(r"sysctl:net\.(?:ipv[46]\.(?:conf|neigh)|mpls\.conf)\.([^.]+)\.[^.]+")
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_LINKS = "/sys/class/net"


class LinkMark(msgspec.Struct, frozen=True):
    """What identifies a link: ``ifindex`` within one boot, across boots the permanent ``address`` and the path
    of its ``device``. None where the kernel gives no such thing; a virtual link has neither of the last two, and is
    known by its name alone after a boot."""

    name: str
    ifindex: str | None
    boot_id: str | None
    address: str | None
    device: str | None


class LostLink(msgspec.Struct, frozen=True):
    """Why a link is not found. ``is_gone``: for certain, and what was set on it with it."""

    why: str
    is_gone: bool


def link_of(tunable: str) -> str | None:
    """The name of the link that a tunable is of; None for all others."""
    if tunable.startswith("link:"):
        return tunable.split(":")[1]
    found = _SYSCTL.fullmatch(tunable)
    name = found[1].replace("/", ".") if found else None
    return None if name in ("all", "default") else name


def mark_of(host: Host, name: str) -> LinkMark | None:
    """None where there is no such link, or nothing identifies it."""
    base = f"{_LINKS}/{name}"
    ifindex = host.read_text(f"{base}/ifindex")
    if ifindex is None:
        return None
    address = host.read_text(f"{base}/bonding_slave/perm_hwaddr")
    if host.read_text(f"{base}/addr_assign_type") == "0":
        address = host.read_text(f"{base}/address")
    device, boot_id = host.real(f"{base}/device"), host.read_text(_BOOT_ID)
    if isinstance(device, Missing):
        # A virtual link shows the address of the one below it, or a random one.
        return LinkMark(name, ifindex, boot_id, None, None)
    return LinkMark(name, ifindex, boot_id, address, device)


def marks_of(host: Host) -> tuple[LinkMark, ...]:
    """Of each link of the host."""
    return tuple(mark for name in host.names(_LINKS) if (mark := mark_of(host, name)) is not None)


def place_of(host: Host, mark: LinkMark) -> str | LostLink:
    """The name that the link has now. Within one boot it is found by its ifindex, after a boot by its permanent address
    and its device together, and a virtual one by its name; what is known of it besides must agree."""
    names = host.names(_LINKS)
    if mark.boot_id is not None and mark.boot_id == host.read_text(_BOOT_ID):
        for name in (mark.name, *names):
            if host.read_text(f"{_LINKS}/{name}/ifindex") == mark.ifindex:
                return name if _is_same_link(mark, mark_of(host, name)) else _report_unclear(mark, name)
        return _report_gone(host, mark)
    found = {name: now for name in names if (now := mark_of(host, name)) is not None}
    if mark.device is None:
        # Who makes a virtual link gives it its name.
        is_there = mark.name in found and found[mark.name].device is None
        return mark.name if is_there else _report_gone(host, mark)
    same = [name for name, now in found.items() if (now.address, now.device) == (mark.address, mark.device)]
    if len(same) == 1:
        return same[0]
    known = {mark.address, mark.device} - {None}
    alike = same or [name for name, now in found.items() if known & {now.address, now.device}]
    return _report_unclear(mark, *alike) if alike else _report_gone(host, mark)


def foreign_links(host: Host, marks: Iterable[LinkMark]) -> Mapping[str, str]:
    """Names that do not stand for the link that they stood for, each with the reason."""
    found = {}
    for mark in marks:
        place = place_of(host, mark)
        if isinstance(place, LostLink):
            found[mark.name] = place.why
        elif place != mark.name:
            what = "is another link than it was" if host.exists(f"{_LINKS}/{mark.name}") else "is not there"
            found[mark.name] = f"{mark.name} {what}; the one that is meant is {place} now"
    return found


def _is_same_link(mark: LinkMark, now: LinkMark | None) -> bool:
    if now is None or now.device != mark.device:
        return False
    # A link that has been given another address does not show its permanent one.
    return mark.address is None or now.address is None or mark.address == now.address


def _report_gone(host: Host, mark: LinkMark) -> LostLink:
    if host.exists(f"{_LINKS}/{mark.name}"):
        return LostLink(f"{mark.name} is another link than it was; the one that is meant is gone", is_gone=True)
    return LostLink(f"{mark.name} is not there, under any name", is_gone=True)


def _report_unclear(mark: LinkMark, *names: str) -> LostLink:
    return LostLink(f"{mark.name} cannot be distinguished from {', '.join(names)}", is_gone=False)
