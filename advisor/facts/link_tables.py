"""Tables below /proc/net that describe links: bonding, VLANs, routes and addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from advisor.host.numbers import is_count, is_hexadecimal
from advisor.host.patterns import lazy_regex

# RTF_UP and RTF_REJECT of linux/route.h: a reject route leads nowhere.
_UP, _REJECT = 0x0001, 0x0200
_BOND_MODES = (
    ("load balancing (round-robin)", "balance-rr"),
    ("fault-tolerance (active-backup)", "active-backup"),
    ("load balancing (xor)", "balance-xor"),
    ("fault-tolerance (broadcast)", "broadcast"),
    ("IEEE 802.3ad", "802.3ad"),
    ("transmit load balancing", "balance-tlb"),
    ("adaptive load balancing", "balance-alb"),
)
_BOND_NAMES = {
    "MII Polling Interval (ms)": "miimon",
    "Up Delay (ms)": "updelay",
    "Down Delay (ms)": "downdelay",
    "ARP Polling Interval (ms)": "arp_interval",
    "LACP rate": "lacp_rate",
    "Min links": "min_links",
    "Aggregator selection policy (ad_select)": "ad_select",
    "Currently Active Slave": "active_slave",
}


class BondMember(msgspec.Struct, frozen=True):
    """A member as /proc/net/bonding prints it. ``speed_mbps`` in Mbit/s, None where unknown."""

    name: str
    mii_status: str | None
    speed_mbps: int | None
    permanent_mac: str | None
    churned: str | None = None
    """Who never came to agree on the aggregation (IEEE 802.3ad): actor, partner or both."""


class Bonding(msgspec.Struct, frozen=True):
    """A bond. ``detail`` by the names of the bonding options (mode, xmit_hash_policy, miimon …)."""

    mode: str | None
    mii_status: str | None
    detail: Mapping[str, str]
    members: tuple[BondMember, ...]


def parse_bonding(text: str) -> Bonding:
    """/proc/net/bonding/BOND (bonding.rst). What a truncated text no longer says is None or left out."""
    head, *sections = re.split(r"^Slave Interface:", text, flags=re.MULTILINE)
    fields = _parse_fields(head)
    mode = _bond_mode(fields.get("Bonding Mode", ""))
    detail = {own: fields[name] for name, own in _BOND_NAMES.items() if fields.get(name, "None") != "None"}
    if mode:
        detail["mode"] = mode
    policy = fields.get("Transmit Hash Policy", "").split(" ")[0]
    if policy:
        detail["xmit_hash_policy"] = policy
    primary = fields.get("Primary Slave", "None").split(" ")[0]
    if primary != "None":
        detail["primary"] = primary
    return Bonding(mode, fields.get("MII Status"), detail, tuple(_make_member(section) for section in sections))


def _bond_mode(words: str) -> str | None:
    return next((mode for printed, mode in _BOND_MODES if words.startswith(printed)), None)


def _make_member(section: str) -> BondMember:
    name, _, rest = section.partition("\n")
    fields = _parse_fields(rest)
    speed = re.fullmatch(r"([0-9]{1,9}) Mbps", fields.get("Speed", ""), re.ASCII)
    mac = fields.get("Permanent HW addr")
    churned = [side for side in ("actor", "partner") if fields.get(f"{side.title()} Churn State") == "churned"]
    return BondMember(
        name.strip(), fields.get("MII Status"), int(speed[1]) if speed else None, mac, ", ".join(churned) or None
    )


def _parse_fields(text: str) -> dict[str, str]:
    """``Name: value`` lines; a name without a value is left out."""
    pairs = (line.partition(": ") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs if value.strip()}


_ROUTE_MTU = lazy_regex(r"^([0-9a-f:.]+(?:/[0-9]+)?|default)(?= )[^\n]*? mtu (lock )?([0-9]{1,9})\\b", re.MULTILINE)


def parse_route_mtus(text: str) -> dict[str, int]:
    """``ip -o route show``: the MTU of each route that has one of its own, in bytes, by destination. After a ``lock``
    the destination has ``, locked`` behind it: path MTU discovery is off there (ip-route(8))."""
    return {
        destination + (", locked" if lock else ""): int(size) for destination, lock, size in _ROUTE_MTU.findall(text)
    }


def parse_vlan_config(text: str) -> dict[str, tuple[str, str]]:
    """/proc/net/vlan/config: VLAN id and the link below, by the name of the VLAN link."""
    rows = (tuple(field.strip() for field in line.split("|")) for line in text.splitlines())
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3 and is_count(row[1])}


class _Route(msgspec.Struct, frozen=True):
    link: str
    network: int
    gateway: int
    mask: int


def parse_default_routes(text: str) -> frozenset[str]:
    """Links with a default route in /proc/net/route (the main IPv4 table).

    Of a route with several next hops the kernel lists the first only.
    """
    return frozenset(route.link for route in _parse_routes(text) if not route.network and not route.mask)


def parse_default_routes6(text: str) -> frozenset[str]:
    """Links with a default route in /proc/net/ipv6_route; each next hop has a line of its own."""
    links = set()
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 10 and fields[1] == "00" and not fields[0].strip("0"):
            flags = _parse_hex(fields[8])
            if flags is not None and flags & _UP and not flags & _REJECT:
                links.add(fields[9])
    return frozenset(links)


def _parse_routes(text: str) -> Iterator[_Route]:
    """The usable IPv4 routes; addresses as numbers, most significant byte first."""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 8 or (flags := _parse_hex(fields[3])) is None or not flags & _UP or flags & _REJECT:
            continue
        network, gateway, mask = [_parse_address(fields[at]) for at in (1, 2, 7)]
        if network is not None and gateway is not None and mask is not None:
            yield _Route(fields[0], network, gateway, mask)


def _parse_address(text: str) -> int | None:
    """An IPv4 address in the host's byte order, as the kernel prints it; all hosts that we know are little-endian."""
    number = _parse_hex(text) if len(text) == 8 else None
    return None if number is None else int.from_bytes(number.to_bytes(4, "little"), "big")


def _parse_hex(text: str) -> int | None:
    return int(text, 16) if len(text) <= 8 and is_hexadecimal(text) else None


def parse_local_addresses(text: str) -> frozenset[str]:
    """IPv4 addresses of this host, from the local table in /proc/net/fib_trie."""
    found = re.findall(r"\|-- ([0-9.]{7,15})\n\s*/32 host LOCAL", text)
    return frozenset(address for address in found if _address_number(address) >= 0)


def place_addresses(local: Iterable[str], routes: str) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """IPv4 addresses with prefix length by link, and those whose link is unknown.

    The kernel's text names no link with a local address. It is certain only where a network that is directly
    connected (/proc/net/route) holds one local address: a second one may as well sit on ``lo``.
    127.0.0.0/8, whose route is not listed, belongs to ``lo``.
    """
    connected = [
        _Route("lo", 127 << 24, 0, 255 << 24),
        *(row for row in _parse_routes(routes) if row.mask and not row.gateway),
    ]
    holders: dict[_Route | None, list[str]] = {}
    for address in sorted(local, key=_address_number):
        holders.setdefault(_narrowest_route(connected, _address_number(address)), []).append(address)
    placed: dict[str, tuple[str, ...]] = {}
    homeless: list[str] = []
    for route, addresses in holders.items():
        if route is not None and len(addresses) == 1:
            placed[route.link] = (*placed.get(route.link, ()), f"{addresses[0]}/{route.mask.bit_count()}")
        else:
            homeless.extend(addresses)
    return placed, tuple(homeless)


def _narrowest_route(routes: Iterable[_Route], address: int) -> _Route | None:
    around = [route for route in routes if address & route.mask == route.network]
    narrowest = max((route.mask for route in around), default=None)
    found = [route for route in around if route.mask == narrowest]
    return found[0] if len(found) == 1 else None


def _address_number(address: str) -> int:
    """-1 for what is no IPv4 address."""
    parts = address.split(".")
    if len(parts) != 4 or not all(re.fullmatch("[0-9]{1,3}", part) and int(part) < 256 for part in parts):
        return -1
    return int.from_bytes(bytes(int(part) for part in parts), "big")


def parse_inet6(text: str) -> dict[str, tuple[str, ...]]:
    """IPv6 addresses with prefix length by link, from /proc/net/if_inet6."""
    import socket

    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        fields = line.split()
        if (
            len(fields) == 6
            and re.fullmatch("[0-9a-f]{32}", fields[0])
            and (length := _parse_hex(fields[2])) is not None
        ):
            address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(fields[0]))
            found.setdefault(fields[5], []).append(f"{address}/{length}")
    return {name: tuple(addresses) for name, addresses in found.items()}
