"""Addresses as the host or the user gives them: checked before anything is done with them."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from advisor.errors import UsageError
from advisor.host import Host, Missing, is_count

# Peers, and what was learnt of the path to each. Sizes in bytes of the whole IP packet, times in milliseconds.

Role = Literal["named", "gateway", "llt", "iscsi", "nfs", "nvme", "neighbour"]

Limit = Literal["link", "too-big", "silent", "way-back", "unknown"]
"""What ends the path MTU.

``link``      the link of this host itself: nothing on the way is smaller
``too-big``   a router (or the peer) said that more is too big
``silent``    more vanishes without a word, while small packets are answered
``way-back``  more arrives, but the answer comes back in fragments
``unknown``   nothing answered, or the peer fell silent meanwhile
"""


class Peer(msgspec.Struct, frozen=True):
    """An address to ask. ``link`` is the link that the route to it takes, None where no route was found.

    A link-local IPv6 address carries its link as the scope (``fe80::1%eth1``). ``source`` is the address of this host
    that the peer's service is bound to, None where the kernel chooses; ``mtu`` is the present MTU of ``link``.
    """

    address: str
    role: Role
    link: str | None
    why: str
    source: str | None = None
    mtu: int | None = None


class Unprobeable(msgspec.Struct, frozen=True):
    """Somebody at the other end who cannot be asked, or is not asked, and why."""

    what: str
    role: Role
    link: str | None
    why: str


class Peers(msgspec.Struct, frozen=True):
    """Whom to ask, and who is left out."""

    asked: tuple[Peer, ...]
    unprobeable: tuple[Unprobeable, ...] = ()


class Reach(msgspec.Struct, frozen=True):
    """What is known of the path to a peer and back.

    ``sent`` and ``lost`` count the small echoes of the round-trip time. ``path_mtu`` is the largest packet that was
    answered whole while one byte more was not (or could not leave: ``limit`` is ``link``); None where that is
    unknown, and ``why_not`` says why. ``limited_by`` is the address that said *too big*; ``said_mtu`` the MTU that it
    named, or the size of the fragments of a way back.
    """

    peer: Peer
    rtt_ms_min: float | None
    rtt_ms_median: float | None
    lost: int
    sent: int
    path_mtu: int | None
    limit: Limit
    limited_by: str | None
    answered: bool
    why_not: str | None
    said_mtu: int | None = None


Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_address(text: str) -> Address | None:
    """An IP address, with a scope where one is given; None for anything else. IPv4 in IPv6 clothes becomes IPv4."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def scope_of(address: Address) -> str | None:
    """The link that a scoped IPv6 address names."""
    return address.scope_id if isinstance(address, ipaddress.IPv6Address) else None


def with_scope(address: Address, link: str | None) -> Address:
    """A link-local IPv6 address with the link that it is on, where it names none."""
    if address.version == 4 or not address.is_link_local or scope_of(address) or not link or "%" in link:
        return address
    return ipaddress.IPv6Address(f"{address}%{link}")


def why_not_askable(address: Address) -> str | None:
    """Why no single host has this address; None where one may."""
    if address.is_multicast:
        return "a multicast address"
    if address.is_unspecified:
        return "no address of a host"
    if address == ipaddress.IPv4Address("255.255.255.255"):
        return "the broadcast address"
    if address.version == 6 and address.is_link_local and scope_of(address) is None:
        return "a link-local address without its link"
    return None


def link_groups(addresses: Iterable[str]) -> tuple[str, ...]:
    """The addresses at which all hosts of a link's networks listen, given its own with prefix lengths."""
    known = [ipaddress.ip_interface(text) for text in addresses]
    broadcasts = [
        str(one.network.broadcast_address) for one in known if one.version == 4 and one.network.prefixlen < 31
    ]
    return (*dict.fromkeys(broadcasts), *(("ff02::1",) if any(one.version == 6 for one in known) else ()))


def resolve(text: str) -> Address:
    """The address that a user means: one as it stands, or what the resolver has first for a name.

    Raises UsageError, which says what is wrong with it.
    """
    address = parse_address(text) or _looked_up(text)
    why = why_not_askable(address)
    if why is not None:
        is_local = address.version == 6 and address.is_link_local
        raise UsageError(f"{text}: {why}", hint=f"write {address}%LINK, as in {address}%eth1" if is_local else None)
    scope = scope_of(address)
    if scope is not None:
        try:
            socket.if_nametoindex(scope)
        except (OSError, ValueError) as error:
            raise UsageError(f"{text}: there is no link {scope!r}") from error
    return address


def _looked_up(name: str) -> Address:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, ValueError) as error:
        # UnicodeError, a ValueError: a label that is empty or longer than any may be.
        why = error.strerror if isinstance(error, socket.gaierror) else None
        raise UsageError(
            f"{name[:200]}: neither an address nor a name that can be looked up ({why or 'no host name'})",
            hint="give an IP address, such as 192.0.2.2 or 2001:db8::2",
        ) from error
    addresses = [parse_address(str(entry[4][0])) for entry in found]
    first = next((address for address in addresses if address is not None), None)
    if first is None:
        raise UsageError(f"{name[:200]}: has no IP address")
    return first


class FoundAddress(msgspec.Struct, frozen=True):
    """What a source of peers hands on, not yet checked: ``link`` is the link that the service is bound to, ``source``
    its own address; None where the route decides."""

    address: str
    role: Role
    why: str
    link: str | None = None
    source: str | None = None


# Which link leads to an address, and which routers lead out: from ip(8), or from /proc/net where ip is missing.

# RTF_UP, RTF_GATEWAY and RTF_REJECT of linux/route.h.
_UP, _GATEWAY, _REJECT = 0x0001, 0x0002, 0x0200
DEFAULT_ROUTES = {
    4: ("ip", "-j", "-4", "route", "show", "table", "all", "exact", "default"),
    6: ("ip", "-j", "-6", "route", "show", "table", "all", "exact", "default"),
}
_SEEN = ("REACHABLE", "PERMANENT", "DELAY", "PROBE", "STALE")
MOST_NEIGHBOURS = 32
_TABLES = {4: "/proc/net/route", 6: "/proc/net/ipv6_route"}


class Hop(msgspec.Struct, frozen=True):
    """Where packets to an address go next. ``is_local``: the address is this host's own."""

    link: str
    gateway: Address | None = None
    is_local: bool = False


class Route(msgspec.Struct, frozen=True):
    """A line of a routing table; ``prefix`` is the length of its network."""

    network: int
    prefix: int
    link: str
    gateway: Address | None
    metric: int


def route_to(host: Host, address: Address, source: Address | None = None) -> Hop | None:
    """The next hop to an address, as the kernel would choose it; None where there is no route."""
    scope = scope_of(address)
    if scope is not None:
        return Hop(scope)
    words = ["ip", "-j", "route", "get", str(address)]
    if source is not None and source.version == address.version:
        words += ["from", str(source)]
    done = host.run(words)
    if isinstance(done, Missing):
        return _from_table(host, address)
    if not done.ok:
        # No route from there; which link it would be without that is not ours to guess.
        return None
    return parse_route_get(done.stdout) or _from_table(host, address)


def parse_route_get(text: str) -> Hop | None:
    """What ``ip -j route get`` prints; None for anything else (busybox prints no JSON)."""
    for entry in _parse_entries(text):
        link = entry.get("dev")
        if isinstance(link, str) and link:
            return Hop(link, _parse_gateway(entry), entry.get("type") == "local")
    return None


def neighbours(host: Host) -> list[FoundAddress]:
    """Hosts of the same networks whose hardware address the kernel knows, at most 32, those confirmed last first."""
    known: list[tuple[int, FoundAddress]] = []
    done = host.run(("ip", "-j", "neighbor", "show"))
    for entry in [] if isinstance(done, Missing) or not done.ok else _parse_entries(done.stdout):
        address, link, states = entry.get("dst"), entry.get("dev"), entry.get("state")
        ranks = [_SEEN.index(state) for state in states if state in _SEEN] if isinstance(states, list) else []
        if isinstance(address, str) and isinstance(link, str) and ranks:
            known.append((min(ranks), FoundAddress(address, "neighbour", "spoken to lately", link)))
    return [one for _, one in sorted(known, key=lambda pair: pair[0])[:MOST_NEIGHBOURS]]


def gateways(host: Host) -> tuple[tuple[Address, str], ...]:
    """Every router of a default route, of any table, with the link that leads to it."""
    found: dict[tuple[Address, str], None] = {}
    for version, command in DEFAULT_ROUTES.items():
        done = host.run(command)
        if not isinstance(done, Missing) and done.ok and done.stdout.lstrip().startswith("["):
            found.update(dict.fromkeys(parse_default_routes(done.stdout)))
        else:
            routes = _read_table(host, version)
            found.update({(route.gateway, route.link): None for route in routes if not route.prefix and route.gateway})
    return tuple(found)


def parse_default_routes(text: str) -> tuple[tuple[Address, str], ...]:
    """Routers and links in what ``ip -j route show`` prints, each next hop of a multipath route."""
    found = []
    for entry in _parse_entries(text):
        hops = entry.get("nexthops")
        for hop in [entry, *(hops if isinstance(hops, list) else [])]:
            gateway = _parse_gateway(hop) if isinstance(hop, dict) else None
            if gateway is not None and isinstance(hop.get("dev"), str):
                found.append((gateway, hop["dev"]))
    return tuple(found)


def _parse_gateway(entry: dict[str, object]) -> Address | None:
    """``gateway``, or ``via`` where the router is of the other family (RFC 8950)."""
    via = entry.get("via")
    text = via.get("host") if isinstance(via, dict) else entry.get("gateway")
    return parse_address(text) if isinstance(text, str) else None


def _parse_entries(text: str) -> list[dict[str, object]]:
    try:
        return msgspec.json.decode(text, type=list[dict[str, object]])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return []


def _from_table(host: Host, address: Address) -> Hop | None:
    return lookup(_read_table(host, address.version), address)


def _read_table(host: Host, version: int) -> tuple[Route, ...]:
    text = host.read(_TABLES[version])
    if isinstance(text, Missing):
        return ()
    return parse_route_table(text) if version == 4 else parse_route_table6(text)


def lookup(routes: Sequence[Route], address: Address) -> Hop | None:
    """The longest prefix that holds the address; of several, the one with the least metric."""
    number, bits = int(address), address.max_prefixlen
    around = [one for one in routes if (number ^ one.network) >> (bits - one.prefix) == 0]
    best = min(around, key=lambda one: (-one.prefix, one.metric), default=None)
    return None if best is None else Hop(best.link, best.gateway, is_local=best.link == "lo")


def parse_route_table(text: str) -> tuple[Route, ...]:
    """/proc/net/route: the main IPv4 table; of several next hops the kernel lists the first."""
    return tuple(_parse_lines4(text.splitlines()))


def _parse_lines4(lines: Iterable[str]) -> Iterator[Route]:
    for line in lines:
        fields = line.split()
        if len(fields) < 8 or not is_count(fields[6]):
            continue
        numbers = [_parse_hex(fields[at], 8) for at in (1, 2, 7)]
        flags = _parse_hex(fields[3], 4)
        if None in numbers or flags is None or not flags & _UP or flags & _REJECT:
            continue
        # The kernel prints the address as the number that it is in memory; the hosts that we know are little-endian.
        network, gateway, mask = (int.from_bytes((number or 0).to_bytes(4, "little"), "big") for number in numbers)
        router = ipaddress.IPv4Address(gateway) if flags & _GATEWAY and gateway else None
        yield Route(network & mask, mask.bit_count(), fields[0], router, int(fields[6][:9]))


def parse_route_table6(text: str) -> tuple[Route, ...]:
    """/proc/net/ipv6_route: all IPv6 tables; a line for each next hop."""
    return tuple(_parse_lines6(text.splitlines()))


def _parse_lines6(lines: Iterable[str]) -> Iterator[Route]:
    for line in lines:
        fields = line.split()
        if len(fields) != 10:
            continue
        network, prefix, gateway = _parse_hex(fields[0], 32), _parse_hex(fields[1], 2), _parse_hex(fields[4], 32)
        metric, flags = _parse_hex(fields[5], 8), _parse_hex(fields[8], 8)
        if network is None or prefix is None or gateway is None or metric is None or flags is None or prefix > 128:
            continue
        if not flags & _UP or flags & _REJECT:
            continue
        router = ipaddress.IPv6Address(gateway) if flags & _GATEWAY and gateway else None
        yield Route(network, prefix, fields[9], router, metric)


def _parse_hex(text: str, digits: int) -> int | None:
    return int(text, 16) if re.fullmatch(f"[0-9A-Fa-f]{{{digits}}}", text) else None
