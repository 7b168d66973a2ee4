"""Whom each node of a fleet asks: the links of other nodes that are in one network with a link of its own.

Up to `FULL_MESH` hosts in a network, everybody asks everybody. Beyond that each asks some `NEIGHBOURS`, and is asked by
as many, at distances that grow from the next one to the far end of the ring: no chance in it, so that two runs ask the
same. Each pair is asked in both directions. Links of a cluster and of storage come first, since a host asks
`MAX_TARGETS` at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network

import msgspec

from advisor.fleet import counted_hosts
from advisor.fleet.compare.summary_links import Membership
from advisor.reach.addresses import parse_address
from advisor.reach.icmp import LARGEST

FULL_MESH = 16
NEIGHBOURS = 8
MAX_TARGETS = 128
_LEAST_MTU = {4: 68, 6: 1280}  # RFC 791, RFC 8200
_LINK_NAME_BYTES = 15  # IFNAMSIZ, without the end


class ProbedLink(msgspec.Struct, frozen=True):
    """A link of another host, to be asked over ``link``.

    ``mtu`` and ``target_mtu`` are those of the two links in bytes, ``wanted`` the smaller of them: the largest packet
    that both take. ``role`` is what the fleet knows the link by (`advisor.fleet.compare.summary_links`).
    """

    target: str
    address: str
    network: str
    link: str
    target_link: str
    role: str
    mtu: int | None
    target_mtu: int | None

    @property
    def wanted(self) -> int | None:
        return None if self.mtu is None or self.target_mtu is None else min(self.mtu, self.target_mtu, LARGEST)


class Targets(msgspec.Struct, frozen=True):
    """Whom each host asks. ``possible`` counts the pairs of links that share a network, in both directions; ``notes``
    says what is left out, and why."""

    by_host: Mapping[str, tuple[ProbedLink, ...]]
    possible: int
    notes: tuple[str, ...]

    @property
    def asked(self) -> int:
        return sum(map(len, self.by_host.values()))


_Place = tuple[str, Membership]
_Ring = Mapping[str, Sequence[Membership]]


def choose_targets(members: Mapping[str, Iterable[Membership]]) -> Targets:
    """Whom each host asks, by the networks that its links are in (`HostSummary.memberships`)."""
    notes: list[str] = []
    places = [(host, one) for host in sorted(members) for one in members[host] if _is_askable(one)]
    chosen: dict[str, dict[tuple[str, str, str], ProbedLink]] = {host: {} for host in sorted(members)}
    rings = _make_rings(_without_shared(places, notes))
    for ring in rings:
        for host, other, own, far in _ring_pairs(ring, ring_strides(len(ring))):
            made = ProbedLink(other, far.address, own.network, own.link, far.link, own.role, own.mtu, far.mtu)
            # Two links that share several networks (IPv4 and IPv6, say) are one wire.
            chosen[host].setdefault((own.link, other, far.link), made)
    kept = {host: tuple(found.values())[:MAX_TARGETS] for host, found in chosen.items()}
    # Pairs of links, each once. Those of a large network are counted and not listed: a thousand hosts have a million;
    # of two large networks over the very same links, one counts.
    listed: set[tuple[str, str, str, str]] = set()
    large = {}
    for ring in rings:
        if len(ring) <= FULL_MESH:
            pairs = _ring_pairs(ring, range(1, len(ring)))
            listed.update((host, own.link, other, far.link) for host, other, own, far in pairs)
        else:
            ends = frozenset((host, one.link) for host, links in ring.items() for one in links)
            # Of hosts with so many links each, ascending: every two of them make as many pairs as the one with more
            # has.
            large[ends] = 2 * sum(place * count for place, count in enumerate(sorted(map(len, ring.values()))))
    targets = Targets(kept, len(listed) + sum(large.values()), tuple(notes))
    is_large = any(len(ring) > FULL_MESH for ring in rings)
    return msgspec.structs.replace(targets, notes=(*notes, *_describe_bounds(targets, chosen, is_large=is_large)))


def ring_strides(count: int) -> tuple[int, ...]:
    """How far around a ring of ``count`` hosts those are whom each asks; with d also ``count`` - d, so that every pair
    is asked in both directions."""
    if count <= FULL_MESH:
        return tuple(range(1, count))
    steps = NEIGHBOURS // 2
    ahead = {max(1, round((count // 2) ** (step / (steps - 1)))) for step in range(steps)}
    return tuple(sorted(ahead | {count - one for one in ahead}))


def _is_askable(one: Membership) -> bool:
    """Whether a captured host's words are an address and a name of a link, as they go into a script."""
    address = parse_address(one.address)
    if address is None or "%" in one.address or (one.mtu is not None and one.mtu < _LEAST_MTU[address.version]):
        return False
    name = one.link
    is_name = name not in ("", ".", "..") and name.isprintable() and not any(char in "/: " for char in name)
    return is_name and len(name.encode("utf-8", "surrogateescape")) <= _LINK_NAME_BYTES


def _without_shared(places: Sequence[_Place], notes: list[str]) -> list[_Place]:
    """Those whose address no other host has: an address of a cluster moves about, and that of a bridge for containers
    is there on every host and reaches none of them."""
    holders: dict[str, set[str]] = {}
    for host, one in places:
        holders.setdefault(one.address, set()).add(host)
    shared = sorted(address for address, hosts in holders.items() if len(hosts) > 1)
    notes += [f"{address} is on {len(holders[address])} hosts: not asked" for address in shared[:5]]
    notes += [f"{len(shared) - 5} more addresses are on several hosts: not asked"] if len(shared) > 5 else []
    return [(host, one) for host, one in places if len(holders[one.address]) == 1]


def _make_rings(places: Iterable[_Place]) -> list[_Ring]:
    """Networks with two hosts and more, the more important ones first; in each the links of every host."""
    found: dict[str, dict[str, dict[str, Membership]]] = {}
    for host, one in places:
        found.setdefault(one.network, {}).setdefault(host, {}).setdefault(one.link, one)
    rings = {
        network: {host: sorted(links.values(), key=lambda one: (one.role, one.link)) for host, links in hosts.items()}
        for network, hosts in found.items()
        if len(hosts) > 1
    }
    return [ring for _, ring in sorted(rings.items(), key=lambda item: _ring_rank(*item))]


def _ring_rank(network: str, ring: _Ring) -> tuple[int, int, int]:
    """LLT before other storage and cluster links before the rest; IPv4 first, then by address."""
    roles = {one.role for links in ring.values() for one in links}
    kinds = (("llt-",), ("iscsi-", "beegfs-"), ("",))
    kind = next(number for number, words in enumerate(kinds) if any(role.startswith(words) for role in roles))
    place = ip_network(network, strict=False)
    return kind, place.version, int(place.network_address)


def _ring_pairs(ring: _Ring, distances: Iterable[int]) -> Iterator[tuple[str, str, Membership, Membership]]:
    """Host, other host and their links; where a host has several links in the network, the first asks the first."""
    hosts = sorted(ring, key=lambda host: (int(ip_address(ring[host][0].address)), host))
    for at, host in enumerate(hosts):
        for distance in distances:
            other = hosts[(at + distance) % len(hosts)]
            own, far = ring[host], ring[other]
            for number in range(max(len(own), len(far))):
                yield host, other, own[number % len(own)], far[number % len(far)]


def _describe_bounds(
    targets: Targets, chosen: Mapping[str, Mapping[tuple[str, str, str], ProbedLink]], *, is_large: bool
) -> Iterator[str]:
    cut = [host for host, found in chosen.items() if len(found) > len(targets.by_host[host])]
    if is_large:
        yield (
            f"{targets.asked} of {targets.possible} pairs are asked: in a network of more than {FULL_MESH} hosts each "
            f"asks about {NEIGHBOURS}, and is asked by as many"
        )
    if cut:
        yield (
            f"{counted_hosts(len(cut))} asked about the first {MAX_TARGETS} targets only, those over cluster and "
            "storage links first"
        )
