"""Which link leads to an address, and which routers lead out: from ip(8), or from /proc/net where ip is missing."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from advisor.host import Host, Missing, is_count
from advisor.reach.addresses import Address, FoundAddress, parse_address, scope_of

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
