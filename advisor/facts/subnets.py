"""Networks in which this host has more than one link, and how it answers ARP and checks sources there.

All four settings of a link are the larger of its own and of conf.all (kernel: networking/ip-sysctl; IN_DEV_MAXCONF and
IN_DEV_ORCONF in include/linux/inetdevice.h).
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Interface

import msgspec

from advisor.facts.links import Link
from advisor.host import Host, Missing

SETTINGS = ("rp_filter", "arp_filter", "arp_ignore", "arp_announce")
RULES = ("ip", "-j", "rule", "show")


class SubnetLink(msgspec.Struct, frozen=True):
    """A link with an address in the network; the settings as they take effect, None where unknown."""

    link: str
    rp_filter: int | None
    arp_filter: int | None
    arp_ignore: int | None
    arp_announce: int | None


class SharedSubnet(msgspec.Struct, frozen=True):
    """An IPv4 network with several links of this host. ``source_rules`` is whether routing goes by the source address
    somewhere on this host (``ip rule`` with ``from``), None where that could not be asked."""

    network: str
    links: tuple[SubnetLink, ...]
    source_rules: bool | None


def read_shared_subnets(host: Host, links: Iterable[Link]) -> tuple[SharedSubnet, ...]:
    """Networks with two links and more that are up, by address; none where there are none."""
    found: dict[str, list[str]] = {}
    for link in links:
        if link.kind == "loopback" or link.state == "down":
            continue
        for address in link.addresses:
            network = _network_of(address)
            names = found.setdefault(network, []) if network else []
            if link.name not in names:
                names.append(link.name)
    shared = {network: names for network, names in found.items() if len(names) > 1}
    if not shared:
        return ()
    done = host.run(RULES)
    rules = None if isinstance(done, Missing) or not done.ok else parse_source_rules(done.stdout)
    everywhere = {key: host.read_int(f"/proc/sys/net/ipv4/conf/all/{key}") for key in SETTINGS}
    return tuple(
        SharedSubnet(network, tuple(_subnet_link(host, name, everywhere) for name in names), rules)
        for network, names in sorted(shared.items())
    )


def _network_of(address: str) -> str | None:
    try:
        network = IPv4Interface(address).network
    except ValueError:
        return None
    # Every link may have 169.254.0.0/16, service processors' links first of all.
    return str(network) if network.prefixlen < 31 and not network.is_link_local else None


def _subnet_link(host: Host, name: str, everywhere: dict[str, int | Missing]) -> SubnetLink:
    return SubnetLink(name, *(_in_effect(host, name, key, everywhere[key]) for key in SETTINGS))


def _in_effect(host: Host, name: str, key: str, everywhere: int | Missing) -> int | None:
    own = host.read_int(f"/proc/sys/net/ipv4/conf/{name}/{key}")
    return None if isinstance(own, Missing) or isinstance(everywhere, Missing) else max(own, everywhere)


def parse_source_rules(text: str) -> bool | None:
    """Whether ``ip -j rule show`` lists one that goes by the source address; None where it is no such list."""
    import json

    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(listed, list):
        return None
    return any(isinstance(one, dict) and one.get("src") not in (None, "all") for one in listed)
