"""Links as a fleet compares them: which link of one host is which of another, and what must be alike on both.

Names say little: firmware, slots and udev name the same port ens5f0 here and enp59s0f0 there. So a link is known by
what it does, then by its name:

1. a link that carries LLT: ``llt-1``, ``llt-2`` …, ``llt-low-1`` for one of low priority; in the order of /etc/llttab,
   which is LLT's own numbering of them;
2. a link that carries iSCSI sessions: ``iscsi-1`` …; one that a BeeGFS service may use: ``beegfs-1`` …; in the order of
   their networks, which hosts that share storage have in common;
3. the link of the default route: ``default``;
4. the ports of a bond, team or bridge and the parent of a VLAN: after the link above them, ``llt-1.port-1``;
5. every other link: its name. What is left over by that on single hosts is matched by network, then by driver and
   speed, once all hosts are known (`advisor.fleet.compare.matching`).

Links of containers and virtual machines (veth, tap and bridges without a port of the machine) come and go; they count
only where they do one of the things above, or, but for such bridges, have an address of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Interface, IPv6Interface, ip_interface

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.links import Link
from advisor.fleet.compare.collected import Collected

MAX_LINKS = 64
MAX_MEMBERSHIPS = 128
_PASSING = frozenset({"veth", "tap", "tun", "dummy", "ifb", "macvtap", "sit", "ip6tnl", "gre", "gretap", "ipip"})
OWN_DETAIL = frozenset(
    {"id", "bridge_id", "root_id", "active_slave", "local", "remote", "local6", "remote6", "link", "group", "user"}
    | {"rdma_device", "rdma_state", "port_state"}
)


class Membership(msgspec.Struct, frozen=True):
    """An address of a link in a network. ``role`` is what the fleet knows the link by, ``mtu`` in bytes."""

    network: str
    address: str
    link: str
    role: str
    mtu: int | None
    speed_mbps: int | None
    carries_llt: bool


def link_roles(facts: Facts) -> dict[str, str]:
    """What each link that is compared is known by."""
    links = {link.name: link for link in facts.links if link.kind != "loopback"}
    roles: dict[str, str] = {}
    for title, names in _links_by_function(facts, links):
        free = [name for name in dict.fromkeys(names) if name in links and name not in roles]
        ordered = free if title.startswith("llt") else _by_network(free, links)
        roles |= {name: f"{title}-{number}" for number, name in enumerate(ordered, 1)}
    for name in sorted(links):
        if links[name].default_route and name not in roles:
            roles[name] = "default" if "default" not in roles.values() else name
    for name in tuple(roles):
        _name_below(name, links, roles)
    for name in sorted(links):
        if name not in roles and _is_counted(links[name], links):
            roles[name] = name
    return dict(tuple(roles.items())[:MAX_LINKS])


def _links_by_function(facts: Facts, links: Mapping[str, Link]) -> Iterator[tuple[str, list[str]]]:
    llt = facts.llt.links if facts.llt else ()
    yield "llt", [one.link for one in llt if one.link and not one.low_priority]
    yield "llt-low", [one.link for one in llt if one.link and one.low_priority]
    yield "iscsi", [name for session in (facts.iscsi.sessions if facts.iscsi else ()) for name in session.links]
    services = facts.beegfs.services if facts.beegfs else ()
    yield "beegfs", sorted({name for service in services for name in service.interfaces or () if name in links})


def _by_network(names: list[str], links: Mapping[str, Link]) -> list[str]:
    networks = {name: next(_link_networks(links[name]), None) for name in names}
    if None in networks.values() or len(set(networks.values())) < len(names):
        return names
    return sorted(names, key=lambda name: _network_order(networks[name]))


def _network_order(network: str | None) -> tuple[int, int]:
    place = ip_interface(network or "0.0.0.0/0")
    return place.version, int(place)


def _name_below(name: str, links: Mapping[str, Link], roles: dict[str, str]) -> None:
    pending = [name]
    while pending:
        above = pending.pop()
        free = [one for one in links[above].lower if one in links and one not in roles]
        word = "parent" if links[above].kind in ("vlan", "macvlan", "ipvlan") else "port"
        for number, one in enumerate(sorted(free), 1):
            roles[one] = f"{roles[above]}.{word}-{number}"
            pending.append(one)


def _is_counted(link: Link, links: Mapping[str, Link]) -> bool:
    if link.kind == "bridge":
        # Whether a bridge leads out of the host: one of containers alone has the same address on every host.
        return any(name in links and links[name].kind not in _PASSING for name in link.lower)
    return link.kind not in _PASSING or any(_link_networks(link))


def _link_networks(link: Link) -> Iterator[str]:
    yield from (network for network, _ in _link_addresses(link))


def _link_addresses(link: Link) -> Iterator[tuple[str, str]]:
    """Network and address of each address that others can be in one network with."""
    for text in link.addresses:
        try:
            place: IPv4Interface | IPv6Interface = ip_interface(text)
        except ValueError:
            continue
        is_single = place.network.prefixlen == place.max_prefixlen
        if not (is_single or place.is_link_local or place.is_loopback or place.is_multicast):
            yield str(place.network), str(place.ip)


def memberships_of(facts: Facts, roles: Mapping[str, str]) -> tuple[Membership, ...]:
    """Networks of the links that are compared and not down."""
    found = (
        Membership(
            network,
            address,
            link.name,
            role,
            link.mtu,
            link.speed_mbps,
            carries_llt=re.fullmatch(r"llt-(low-)?\d+", role, re.ASCII) is not None,
        )
        for link in facts.links
        if (role := roles.get(link.name)) is not None and link.state != "down"
        for network, address in _link_addresses(link)
    )
    return tuple(sorted(found, key=lambda one: (one.network, one.address, one.link)))[:MAX_MEMBERSHIPS]


def collect_links(facts: Facts, roles: Mapping[str, str], found: Collected) -> None:
    """Attributes ``link.ROLE.…`` of every link that is compared."""
    links = {link.name: link for link in facts.links}
    if len(roles) >= MAX_LINKS:
        found.unknown("link.*")
    for name, role in roles.items():
        _collect_link(links[name], f"link.{role}", found)
    found.put("link.count", sum(link.pci is not None for link in facts.links) if facts.links else None)


def _collect_link(link: Link, base: str, found: Collected) -> None:
    found.put(f"{base}.present", "yes")
    names = ("name", "kind", "mtu", "speed_mbps", "state", "driver", "firmware", "numa_node", "txqueuelen", "mtu_max")
    found.fields(base, link, *names)
    found.flag(f"{base}.carrier", link.carrier)
    if link.rings:
        found.fields(f"{base}.ring", link.rings, "rx", "tx", "rx_max", "tx_max")
    if link.channels:
        found.fields(f"{base}.channels", link.channels, "rx", "tx", "combined", "combined_max")
    if link.pcie:
        found.put(f"{base}.pcie", f"x{link.pcie.width} {link.pcie.speed_gts} GT/s")
    for name, is_on in (link.features or {}).items():
        found.put(f"{base}.feature.{name}", "on" if is_on else "off")
    found.entries(f"{base}.detail", link.detail, OWN_DETAIL)
    if link.rps_cpus and link.rps_cpus.strip("0,"):
        found.put(f"{base}.rps_cpus", link.rps_cpus)
