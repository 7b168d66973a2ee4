"""What a network manager claims of a link, and the traces that show which one manages it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from advisor.host import Host, Missing, is_count

Manager = Literal["NetworkManager", "systemd-networkd", "netplan", "ifupdown", "network-scripts", "wicked", "udev"]


class LinkOwner(msgspec.Struct, frozen=True):
    """Who sets a link up at boot.

    ``file`` is the manager's file for the link, None where it has none; ``name`` what the manager calls the link there:
    a profile's UUID, a netplan ID as TYPE/ID, a logical interface, else the link's name. ``shared_with`` are other
    links that the same settings apply to. ``profile`` is the file that netplan makes for NetworkManager. ``evidence``
    says what shows it.
    """

    manager: Manager
    file: str | None
    name: str
    evidence: str
    shared_with: tuple[str, ...] = ()
    profile: str | None = None


def is_stopped(host: Host, unit: str) -> bool:
    """Whether systemd knows that a unit does not run. State files of a manager outlive it.

    systemd keeps a link per running unit since version 240; where there are none, a unit is not known to be stopped.
    """
    return host.exists("/run/systemd/units") and isinstance(
        host.readlink(f"/run/systemd/units/invocation:{unit}"), Missing
    )


def link_index(host: Host, link: str) -> str | None:
    """The kernel's number of a link."""
    index = host.read(f"/sys/class/net/{link}/ifindex")
    return None if isinstance(index, Missing) or not is_count(index) else index


def link_addresses(host: Host, link: str) -> frozenset[str]:
    """The address that a link shows, and a bond member's own one, in small letters."""
    paths = (f"/sys/class/net/{link}/address", f"/sys/class/net/{link}/bonding_slave/perm_hwaddr")
    return frozenset(text.lower() for path in paths if isinstance(text := host.read(path), str) and text)


def others_with(host: Host, link: str, directory: str, line: str) -> Iterator[str]:
    """Other links whose state file, by index in ``directory``, holds the same line."""
    numbers = {link_index(host, name): name for name in host.names("/sys/class/net")}
    for index in host.names(directory):
        name = numbers.get(index)
        if name is None or name == link:
            continue
        text = host.read(f"{directory}/{index}")
        if isinstance(text, str) and line in text.splitlines():
            yield name


def udev_property(host: Host, link: str, name: str) -> str | None:
    """A property of the link in udev's database."""
    index = link_index(host, link)
    known = Missing("absent", "") if index is None else host.read(f"/run/udev/data/n{index}")
    found = None if isinstance(known, Missing) else re.search(rf"^E:{name}=(.+)$", known, re.MULTILINE)
    return found[1] if found else None


def is_plain(text: str) -> bool:
    """Whether names can be shown and written: printable, and valid UTF-8."""
    return text.isprintable() and "\ufffd" not in text
