"""What a link is known by at boot, before anybody has given it its name."""

from __future__ import annotations

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
