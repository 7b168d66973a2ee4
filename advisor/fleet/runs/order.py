"""Who has to be changed before whom, and which hosts stand in for one another: learnt from the facts of each host.

Pure but for `subject_of`, which reads a captured host. The order matters for an MTU alone. Linux has one MTU for what a
link sends and for what it takes in, so there is no step in which every host accepts large packets and none sends them.
What can be had is an order in which those who answer with large packets find hosts that take them: servers of storage
before their clients when it is raised, clients before their servers when it is lowered.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.facts.clusters.infoscale import InfoScale
from advisor.facts.clusters.llt import Llt
from advisor.facts.host_facts import Facts
from advisor.facts.network.links import Link
from advisor.facts.remote.iscsi import Iscsi
from advisor.fleet.runs.waves import Before, FailoverGroup, Waves
from advisor.host import Host
from advisor.host.numbers import is_count
from advisor.planning.records import Change, Plan
from advisor.reach import Peer, peers_of

_SERVERS = frozenset({"iscsi", "nfs", "nvme"})
_LLT_OVER_IP = frozenset({"udp", "udp6", "rdma"})
_SAID_AT_MOST = 6


class OrderFacts(msgspec.Struct, frozen=True):
    """What of a host's facts orders and gates are made from; the rest of thousands of hosts need not be kept."""

    hostname: str | None
    links: tuple[Link, ...]
    llt: Llt | None = None
    iscsi: Iscsi | None = None
    infoscale: InfoScale | None = None


class OrderSubject(msgspec.Struct, frozen=True):
    """A host as it was captured, with the plan for it; ``plan`` is None where there is none for it.

    ``peers`` are those whom it talks to over links whose MTU the plan moves.
    """

    name: str
    facts: OrderFacts
    plan: Plan | None
    peers: tuple[Peer, ...] = ()
    hardware: str = ""
    """Processor, CPUs, memory and disks in words; the same for hosts that are built alike."""


def subject_of(name: str, host: Host, facts: Facts, plan: Plan | None) -> OrderSubject:
    """A subject out of a captured host, of which nothing else is needed afterwards."""
    moved = frozenset(move.link for move in mtu_moves(plan))
    peers = peers_of(host, facts, links=moved).asked if moved else ()
    known = OrderFacts(facts.host.hostname, facts.links, facts.llt, facts.iscsi, facts.infoscale)
    return OrderSubject(name, known, plan, peers, _describe_hardware(facts))


def _describe_hardware(facts: Facts) -> str:
    disks = Counter(f"{disk.model or disk.kind} {(disk.size_bytes or 0) // 10**9} GB" for disk in facts.disks)
    # Firmware keeps some of the memory to itself, not the same on each boot.
    memory = round((facts.memory.total_bytes or 0) / 2**30)
    parts = [f"{facts.cpu.model or 'CPU'}", f"{facts.cpu.threads or 0} CPUs", f"{memory} GiB"]
    return ", ".join([*parts, *(f"{count} x {disk}" for disk, count in sorted(disks.items()))])


class MtuMove(msgspec.Struct, frozen=True):
    """One link's MTU in bytes, before and after."""

    link: str
    before: int
    after: int

    @property
    def is_raise(self) -> bool:
        return self.after > self.before


def mtu_moves(plan: Plan | None) -> tuple[MtuMove, ...]:
    """What a plan does to the MTU of links, in its own order (which has parents in their place already)."""
    moves = (_mtu_move(change) for change in plan.changes) if plan is not None else ()
    return tuple(move for move in moves if move is not None)


def _mtu_move(change: Change) -> MtuMove | None:
    kind, _, rest = change.tunable.partition(":")
    link, _, what = rest.rpartition(":")
    if kind != "link" or what != "mtu" or not (is_count(change.before) and is_count(change.after)):
        return None
    return MtuMove(link, int(change.before), int(change.after))


def known_groups(subjects: Iterable[OrderSubject]) -> dict[str, tuple[FailoverGroup, ...]]:
    """Failover groups that the hosts themselves show: an LLT cluster, an iSCSI target that several export."""
    found: dict[str, list[FailoverGroup]] = {}
    for subject in subjects:
        llttab = subject.facts.llt.llttab if subject.facts.llt else None
        cluster = llttab.cluster if llttab else None
        if cluster is not None:
            nodes = subject.facts.infoscale.hosts if subject.facts.infoscale else ()
            why = f"set-cluster {cluster} in /etc/llttab" + (f", {len(nodes)} nodes in /etc/llthosts" if nodes else "")
            found.setdefault(subject.name, []).append(FailoverGroup(f"LLT cluster {cluster}", why))
        for target in subject.facts.iscsi.targets if subject.facts.iscsi else ():
            group = FailoverGroup(f"iSCSI target {target.name}", "exported by each of them")
            if group not in found.setdefault(subject.name, []):
                found[subject.name].append(group)
    return {name: tuple(groups) for name, groups in found.items()}


def mtu_order(subjects: Sequence[OrderSubject]) -> tuple[Before, ...]:
    """Servers of storage before their clients where the link between them is raised, after them where it is lowered."""
    owners = owners_of(subjects)
    found: dict[tuple[str, str], Before] = {}
    for subject, move, peer in _peers_at_risk(subjects):
        server = owners.get(peer.address)
        if server is None or server == subject.name or peer.role not in _SERVERS:
            continue
        first, then = (server, subject.name) if move.is_raise else (subject.name, server)
        said = "raised at the server" if move.is_raise else "lowered at the client"
        why = f"{peer.why} of {subject.name}: the MTU is {said} first"
        found.setdefault((first, then), Before(first, then, why))
    return tuple(found.values())


def _peers_at_risk(subjects: Iterable[OrderSubject]) -> Iterator[tuple[OrderSubject, MtuMove, Peer]]:
    for subject in subjects:
        moves = {move.link: move for move in mtu_moves(subject.plan)}
        if not moves:
            continue
        for peer in subject.peers:
            move = moves.get(peer.link or "")
            if move is not None:
                yield subject, move, peer


def owners_of(subjects: Iterable[OrderSubject]) -> dict[str, str]:
    """Which host has each address; those that several have (a floating one, a copied one) are nobody's."""
    owners: dict[str, str] = {}
    shared = set()
    for subject in subjects:
        for link in subject.facts.links:
            for address in addresses_of(link):
                if owners.setdefault(address, subject.name) != subject.name:
                    shared.add(address)
    return {address: name for address, name in owners.items() if address not in shared}


def addresses_of(link: Link) -> Iterator[str]:
    """The addresses of a link that another host can reach, without prefix."""
    return (address for _, address in _reachable_addresses(link))


def subnet_addresses(link: Link) -> Iterator[tuple[str, str]]:
    """Those of them that are in a subnet with others: subnet and address."""
    return (
        (subnet, address)
        for text, address in _reachable_addresses(link)
        if (subnet := _shared_subnet(text)) is not None
    )


def _reachable_addresses(link: Link) -> Iterator[tuple[str, str]]:
    for text in link.addresses if link.kind != "loopback" else ():
        address = text.partition("/")[0]
        if not address.lower().startswith("fe80:"):
            yield text, address


def subnets_of(link: Link) -> Iterator[str]:
    """The subnets that a link has an address of and shares with others."""
    yield from (subnet for text in link.addresses if (subnet := _shared_subnet(text)) is not None)


def _shared_subnet(text: str) -> str | None:
    try:
        network = ipaddress.ip_interface(text).network
    except ValueError:
        return None
    is_shared = not network.is_link_local and not network.is_loopback and network.num_addresses > 1
    return str(network) if is_shared else None


class Segment(msgspec.Struct, frozen=True):
    """A subnet on which an MTU moves: the hosts whose link there moves, and those whose link there stays smaller."""

    subnet: str
    before: int
    after: int
    moving: tuple[str, ...]
    smaller: tuple[tuple[str, int], ...]
    """Host and MTU of each link on it that is, and stays, below ``after``."""
    llt: tuple[str, ...]
    """Those of the moving hosts whose LLT runs over it, by UDP or RDMA."""


def find_segments(subjects: Sequence[OrderSubject]) -> tuple[Segment, ...]:
    """The subnets on which a link's MTU is raised; those of the very same hosts count as one."""
    moving: dict[str, dict[str, MtuMove]] = {}
    there: dict[str, list[tuple[OrderSubject, Link]]] = {}
    for subject in subjects:
        moves = {move.link: move for move in mtu_moves(subject.plan)}
        for link in subject.facts.links:
            for subnet in dict.fromkeys(subnets_of(link)):
                there.setdefault(subnet, []).append((subject, link))
                if link.name in moves and moves[link.name].is_raise:
                    moving.setdefault(subnet, {})[subject.name] = moves[link.name]
    found: dict[object, Segment] = {}
    for subnet in sorted(moving, key=lambda subnet: (":" in subnet, subnet)):
        made = _make_segment(subnet, moving[subnet], there[subnet])
        alike = (made.before, made.after, made.moving, made.smaller, made.llt)
        also = found.get(alike)
        found[alike] = msgspec.structs.replace(also, subnet=f"{also.subnet} and {subnet}") if also else made
    return tuple(found.values())


def _make_segment(subnet: str, moves: Mapping[str, MtuMove], there: Iterable[tuple[OrderSubject, Link]]) -> Segment:
    after = max(move.after for move in moves.values())
    least: dict[str, int] = {}
    llt: dict[str, None] = {}
    for subject, link in there:
        llt_links = subject.facts.llt.links if subject.facts.llt else ()
        if subject.name not in moves and link.mtu is not None:
            least[subject.name] = min(link.mtu, least.get(subject.name, link.mtu))
        elif subject.name in moves and any(one.link == link.name and one.type in _LLT_OVER_IP for one in llt_links):
            llt[subject.name] = None
    smaller = {name: mtu for name, mtu in least.items() if mtu < after}
    return Segment(
        subnet, min(move.before for move in moves.values()), after, tuple(moves), tuple(smaller.items()), tuple(llt)
    )


def mtu_warnings(found: Iterable[Segment], waves: Waves) -> tuple[str, ...]:
    """What a person has to know before a raise: how long the subnet is mixed, who stays small, what cannot be seen."""
    numbers = waves.numbers()
    return tuple(sentence for segment in found for sentence in _segment_warnings(segment, numbers))


def _segment_warnings(segment: Segment, known: Mapping[str, int]) -> Iterator[str]:
    numbers = sorted({known[name] for name in segment.moving if name in known})
    subnet, before, after = segment.subnet, segment.before, segment.after
    lost = f"packets of more than {before} bytes from those at {after} are lost there without an error"
    if len(numbers) > 1:
        yield (
            f"{subnet}: mixed from wave {numbers[0]} to wave {numbers[-1]}; to hosts not raised yet, {lost}, "
            "but for TCP, whose two ends agree on the smaller size"
        )
    if len(numbers) > 1 and len(segment.llt) > 1:
        yield (
            f"LLT runs over {subnet} by UDP, in packets of 8192 bytes unless its link lines say otherwise: between "
            f"raised and other nodes they are lost until wave {numbers[-1]} is done. Raise it while LLT is stopped, "
            f"or have the link lines' MTU fit {before} bytes first"
        )
    if segment.smaller:
        named = [f"{name} ({mtu})" for name, mtu in segment.smaller]
        yield f"{subnet}: {_shorten_list(named)} stay below {after}, and {lost}"
    yield (
        f"{subnet}: what the switches between the hosts carry cannot be read from any host. The gate has raised hosts "
        f"ask each other with whole packets of {after} bytes, so a switch shows from the second raised host on"
    )


def _shorten_list(words: Sequence[str]) -> str:
    more = len(words) - _SAID_AT_MOST
    return ", ".join(words[:_SAID_AT_MOST]) + (f" and {more} more" if more > 0 else "")
