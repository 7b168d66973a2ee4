"""Links that systemd-networkd configures, its own and those that netplan hands it (systemd.network(5))."""

from __future__ import annotations

import re

import msgspec

from advisor.facts.ini_text import last_value
from advisor.facts.link_claim import LinkOwner, is_stopped, link_index, others_with
from advisor.facts.netplan import netplan_owner
from advisor.host import Host, Missing, lazy_regex

_LINKS = "/run/systemd/netif/links"
# What is found in an earlier one hides its namesakes in later ones.
NETWORK_DIRECTORIES = (
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
)
_OF_NETPLAN = lazy_regex(r"/run/systemd/network/10-netplan-(.+)\.network")
_TRUE = frozenset({"1", "yes", "y", "true", "t", "on"})


class NetworkMtu(msgspec.Struct, frozen=True):
    """What a .network file and its drop-ins say about the MTU.

    ``files`` are those that set MTUBytes=, in the order in which they are read: the last one counts.
    ``from_dhcp``: the server's MTU is taken where none is set.
    """

    files: tuple[str, ...]
    from_dhcp: bool


def read_networkd_owner(host: Host, link: str) -> LinkOwner | Missing | None:
    """None where systemd-networkd has no hand in the link. Missing where netplan's own files cannot be read."""
    index = link_index(host, link)
    state = None if index is None else host.read(f"{_LINKS}/{index}")
    if not isinstance(state, str) or is_stopped(host, "systemd-networkd.service"):
        return None
    found = re.search(r"^NETWORK_FILE=(/.+\.network)$", state, re.MULTILINE)
    if not found:
        return None
    shared = tuple(others_with(host, link, _LINKS, found[0]))
    generated = _OF_NETPLAN.fullmatch(found[1])
    if generated:
        return netplan_owner(host, generated[1], shared)
    return LinkOwner("systemd-networkd", found[1], link, f"systemd-networkd configures it after {found[1]}", shared)


def network_files(host: Host, file: str) -> tuple[str, ...]:
    """A .network file and its drop-ins, in the order in which they are read."""
    name = file.rpartition("/")[2]
    found: dict[str, str] = {}
    for directory in NETWORK_DIRECTORIES:
        for each in host.names(f"{directory}/{name}.d"):
            if each.endswith(".conf"):
                found.setdefault(each, f"{directory}/{name}.d/{each}")
    return (file, *tuple(found[each] for each in sorted(found)))


def read_network_mtu(host: Host, file: str) -> NetworkMtu | Missing:
    """What a .network file and its drop-ins say about the MTU. Missing where one of them cannot be read."""
    setting: list[str] = []
    from_dhcp = False
    for path in network_files(host, file):
        text = host.read(path)
        if isinstance(text, Missing):
            return Missing("unreadable", f"{path}: {text.why}")
        if last_value(text, "Link", "MTUBytes", continued=True) is not None:
            setting.append(path)
        said = [last_value(text, section, "UseMTU", continued=True) for section in ("DHCP", "DHCPv4")]
        from_dhcp = next((one.lower() in _TRUE for one in reversed(said) if one is not None), from_dhcp)
    return NetworkMtu(tuple(setting), from_dhcp)
