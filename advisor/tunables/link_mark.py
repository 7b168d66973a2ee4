"""Which link a name stood for when a plan was made: names are given to other links, and links get other names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from advisor.host import Host, Missing

_SYSCTL: Final = re.compile(r"sysctl:net\.ipv[46]\.(?:conf|neigh)\.([^.]+)\.[^.]+")
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"


class LinkMark(msgspec.Struct, frozen=True):
    """What tells a link from others: ``ifindex`` within one boot, across boots the permanent ``address``, else the path
    of its ``device``. None where the kernel gives no such thing; what has neither of the last two is known by its name
    alone after a boot."""

    name: str
    ifindex: str | None
    boot_id: str | None
    address: str | None
    device: str | None


def link_of(tunable: str) -> str | None:
    """The name of the link that a tunable is of; None for all others."""
    if tunable.startswith("link:"):
        return tunable.split(":")[1]
    found = _SYSCTL.fullmatch(tunable)
    name = found[1].replace("/", ".") if found else None
    return None if name in ("all", "default") else name


def mark_of(host: Host, name: str) -> LinkMark | None:
    """None where there is no such link, or nothing tells it from others."""
    base = f"/sys/class/net/{name}"
    ifindex = _text(host, f"{base}/ifindex")
    if ifindex is None:
        return None
    address = _text(host, f"{base}/bonding_slave/perm_hwaddr")
    if _text(host, f"{base}/addr_assign_type") == "0":
        address = _text(host, f"{base}/address")
    device, boot_id = host.real(f"{base}/device"), _text(host, _BOOT_ID)
    if isinstance(device, Missing):
        # A virtual link shows the address of the one below it, or a random one.
        return LinkMark(name, ifindex, boot_id, None, None)
    return LinkMark(name, ifindex, boot_id, address, device)


def marks_of(host: Host, tunables: Iterable[str]) -> tuple[LinkMark, ...]:
    """Of each link that one of the tunables is of."""
    names = sorted({name for one in tunables if (name := link_of(one)) is not None})
    return tuple(mark for name in names if (mark := mark_of(host, name)) is not None)


def foreign_links(host: Host, marks: Iterable[LinkMark]) -> Mapping[str, str]:
    """Names that do not stand for the link that they stood for, each with the reason."""
    found: dict[str, str] = {}
    for mark in marks:
        now = mark_of(host, mark.name)
        if now is None or not _is_same(mark, now):
            others = (mark_of(host, name) for name in host.names("/sys/class/net") if name != mark.name)
            new = next((one.name for one in others if one is not None and _is_same(mark, one, elsewhere=True)), None)
            what = "is another link than it was" if now is not None else "is not there"
            found[mark.name] = f"{mark.name} {what}; the one that is meant is {f'{new} now' if new else 'gone'}"
    return found


def _is_same(mark: LinkMark, now: LinkMark, *, elsewhere: bool = False) -> bool:
    if mark.boot_id is not None and mark.boot_id == now.boot_id:
        return mark.ifindex == now.ifindex
    if mark.address is not None:
        return mark.address == now.address
    if mark.device is not None:
        return mark.device == now.device
    return not elsewhere


def _text(host: Host, path: str) -> str | None:
    text = host.read(path)
    return None if isinstance(text, Missing) or not text else text
